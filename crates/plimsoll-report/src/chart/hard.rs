//! Charts of hard times, of what moves the answer, and of where the money goes.

use plimsoll_study::{Cost, LoadVerdict, StressResult, TornadoBar};

use super::{Bar, Beside, Chart, Draw, Ink};
use crate::cost::dollars;

/// How many tasks are good in each hard time, today and planned, against what was promised.
pub(crate) fn stress_chart(result: &StressResult) -> Option<Chart> {
    let tried: Vec<_> =
        result.scenarios.iter().filter(|own| own.not_applicable.is_none()).collect();
    let mut now: Vec<Beside> = Vec::new();
    let mut planned: Vec<Beside> = Vec::new();
    let mut promised: Vec<Beside> = Vec::new();
    for own in &tried {
        let all = &own.attainment;
        let span = |own: Option<plimsoll_study::Span>| own.map(|own| (own.low, own.high));
        now.extend(all.now.map(|at| (own.name.clone(), at, span(all.now_interval))));
        planned.extend(all.planned.map(|at| (own.name.clone(), at, span(all.planned_interval))));
        promised.extend(all.target.map(|at| (own.name.clone(), at, None)));
    }
    if now.is_empty() && planned.is_empty() {
        return None;
    }
    let broken = |verdict: fn(&plimsoll_study::Stressed) -> Option<LoadVerdict>| -> String {
        let names: Vec<&str> = tried
            .iter()
            .filter(|own| verdict(own) == Some(LoadVerdict::Fails))
            .map(|own| own.name.as_str())
            .collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    let alt = format!(
        "Promises are broken today by: {}. With the planned fleet by: {}.",
        broken(|own| own.attainment.verdict_now),
        broken(|own| own.attainment.verdict_planned)
    );
    let draw = Draw::rows("good tasks of the class that has least")
        .percent_x()
        .legend()
        .beside("promised", (Ink::Line, true), &promised)
        .beside("today", (Ink::Today, true), &now)
        .beside("planned", (Ink::Planned, false), &planned);
    Some(draw.done("stress", "Good tasks in stress scenarios", alt))
}

/// What moves the answer, the most first.
pub(crate) fn tornado_chart(result: &StressResult) -> Option<Chart> {
    let own = &result.tornado;
    let base = own.base.as_ref()?;
    if own.bars.is_empty() {
        return None;
    }
    let likely = f64::from(base.replicas);
    let side = |of: fn(&TornadoBar) -> (u32, &str)| -> Vec<Bar> {
        let bar = |bar: &TornadoBar| {
            let (replicas, at) = of(bar);
            let says = format!("{} at {at}: {replicas} replicas", bar.name);
            let moves = [bar.at_better.replicas, bar.at_worse.replicas] != [base.replicas; 2];
            let name = if moves { bar.name.clone() } else { format!("{}: no change", bar.name) };
            (name, (likely, f64::from(replicas)), at.to_owned(), says)
        };
        own.bars.iter().map(bar).collect()
    };
    let worst = own.bars.first();
    let alt = worst.map_or(String::new(), |bar| {
        format!(
            "{} moves most: {} replicas at {}, {} at {}; {} as it is likely.",
            bar.name,
            bar.at_better.replicas,
            bar.better,
            bar.at_worse.replicas,
            bar.worse,
            base.replicas
        )
    });
    let better = side(|bar| (bar.at_better.replicas, &bar.better));
    let worse = side(|bar| (bar.at_worse.replicas, &bar.worse));
    let draw = Draw::rows("replicas of all pools, reserve included")
        .legend()
        .bars("at the better end", Ink::Good, &better)
        .bars("at the worse end", Ink::Danger, &worse)
        .upright(likely, "as is likely", Ink::Muted);
    Some(draw.done("tornado", "What moves the number of replicas", alt))
}

/// Where the money goes: by whom a line belongs to, then line by line.
pub(crate) fn cost_chart(cost: &Cost) -> Option<Chart> {
    // A bar has no room for what was paid back; the table has it.
    let lines: Vec<_> = cost.lines.iter().filter(|line| line.microusd > 0).collect();
    if lines.is_empty() {
        return None;
    }
    let mut draw = Draw::rows("USD").zero_x();
    for line in &lines {
        let sum = cost.by_kind.get(line.kind).map(|micros| dollars(*micros as f64 / 1e6));
        let row = format!("{} {}", line.kind, sum.unwrap_or_default());
        let says = format!("{}: {}", line.name, dollars(line.usd));
        let bar = (row, (0.0, line.usd), line.name.clone(), says);
        draw = draw.stacked(line.kind, kind_ink(line.kind), &[bar]);
    }
    let said: Vec<String> = cost
        .by_kind
        .iter()
        .map(|(kind, micros)| format!("{kind} {}", dollars(*micros as f64 / 1e6)))
        .collect();
    let alt = format!("{} in all: {}.", dollars(cost.total_usd), said.join(", "));
    Some(draw.done("cost-tree", "What is paid, by whom it belongs to", alt))
}

fn kind_ink(kind: &str) -> Ink {
    match kind {
        "allocated" => Ink::Demand,
        "idle" => Ink::Other,
        "reserve" => Ink::Good,
        "failed" => Ink::Danger,
        _ => Ink::Muted,
    }
}
