//! Charts of hard times, of what moves the answer, and of where the money goes.

use plimsoll_study::{Cost, StressResult, TornadoBar};
use serde_json::{Value, json};

use super::{Beside, Chart, Draw, Ink, plain};
use crate::cost::dollars;

/// How many tasks are good in each hard time, today and planned, against what was promised.
pub(crate) fn stress_chart(result: &StressResult) -> Option<Chart> {
    // The first is read on top, where a category axis has its last.
    let tried: Vec<_> =
        result.scenarios.iter().rev().filter(|own| own.not_applicable.is_none()).collect();
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
    let broken = |holds: fn(&plimsoll_study::Stressed) -> Option<bool>| -> String {
        let names: Vec<&str> = tried
            .iter()
            .rev()
            .filter(|own| holds(own) == Some(false))
            .map(|own| own.name.as_str())
            .collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    let alt = format!(
        "Promises are broken today by: {}. With the planned fleet by: {}.",
        broken(|own| own.attainment.holds_now),
        broken(|own| own.attainment.holds_planned)
    );
    let draw = Draw::new("good tasks of the class that has least", "")
        .names_y()
        .percent_x()
        .legend()
        .height(130 + 34 * tried.len())
        .beside("promised", (Ink::Line, true), &promised)
        .beside("today", (Ink::Today, true), &now)
        .beside("planned", (Ink::Planned, false), &planned);
    Some(draw.done("stress", "Good tasks in hard times", alt))
}

/// What moves the answer, the most first.
pub(crate) fn tornado_chart(result: &StressResult) -> Option<Chart> {
    let own = &result.tornado;
    let base = own.base.as_ref()?;
    let bars: Vec<&TornadoBar> = own.bars.iter().rev().collect();
    if bars.is_empty() {
        return None;
    }
    let names: Vec<String> = bars.iter().map(|bar| plain(&bar.name)).collect();
    let side = |name: &str, ink: Ink, of: fn(&TornadoBar) -> (u32, &str)| -> Value {
        let length: Vec<i64> =
            bars.iter().map(|bar| i64::from(of(bar).0) - i64::from(base.replicas)).collect();
        let text: Vec<String> = bars.iter().map(|bar| plain(of(bar).1)).collect();
        let hover: Vec<String> = bars
            .iter()
            .map(|bar| {
                format!("{} at {}: {} replicas", plain(&bar.name), plain(of(bar).1), of(bar).0)
            })
            .collect();
        json!({
            "type": "bar", "orientation": "h", "name": name, "y": names, "x": length,
            "base": base.replicas, "text": text, "textposition": "auto", "hovertext": hover,
            "hoverinfo": "text", "marker": { "color": ink.css() },
        })
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
    let draw =
        Draw::new("replicas of all pools, reserve included; the broken line is as is likely", "")
            .names_y()
            .legend()
            .height(130 + 36 * bars.len())
            .raw(side("at the better end", Ink::Good, |bar| (bar.at_better.replicas, &bar.better)))
            .raw(side("at the worse end", Ink::Danger, |bar| (bar.at_worse.replicas, &bar.worse)))
            .upright(f64::from(base.replicas), "", Ink::Muted);
    Some(draw.done("tornado", "What moves the number of replicas", alt))
}

/// Where the money goes: by whom a line belongs to, then line by line.
pub(crate) fn cost_chart(cost: &Cost) -> Option<Chart> {
    // A tree has no room for what was paid back; the table has it.
    let lines: Vec<_> = cost.lines.iter().filter(|line| line.microusd > 0).collect();
    if lines.is_empty() {
        return None;
    }
    let mut kinds: Vec<&str> = Vec::new();
    for line in &lines {
        if !kinds.contains(&line.kind) {
            kinds.push(line.kind);
        }
    }
    let (mut ids, mut labels, mut parents) = (Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut colours, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    ids.push("all".to_owned());
    labels.push("all".to_owned());
    parents.push(String::new());
    values.push(0.0);
    colours.push(Ink::Muted.css());
    texts.push(dollars(cost.total_usd));
    for kind in &kinds {
        ids.push((*kind).to_owned());
        labels.push((*kind).to_owned());
        parents.push("all".to_owned());
        values.push(0.0);
        colours.push(kind_ink(kind).css());
        let sum = cost.by_kind.get(kind).map(|micros| dollars(*micros as f64 / 1e6));
        texts.push(sum.unwrap_or_default());
    }
    for (i, line) in lines.iter().enumerate() {
        ids.push(format!("{}/{i}", line.kind));
        labels.push(plain(&line.name));
        parents.push(line.kind.to_owned());
        values.push(line.usd);
        colours.push(kind_ink(line.kind).css());
        texts.push(dollars(line.usd));
    }
    let tree = json!({
        "type": "treemap", "ids": ids, "labels": labels, "parents": parents, "values": values, "text": texts,
        "textinfo": "label+text", "hoverinfo": "label+text+percent root", "branchvalues": "remainder",
        "textfont": { "color": "#ffffff" },
        "marker": { "colors": colours, "line": { "width": 1, "color": "#ffffff" } }, "tiling": { "pad": 2 }, "pathbar": { "visible": true },
    });
    let said: Vec<String> = cost
        .by_kind
        .iter()
        .map(|(kind, micros)| format!("{kind} {}", dollars(*micros as f64 / 1e6)))
        .collect();
    let alt = format!("{} in all: {}.", dollars(cost.total_usd), said.join(", "));
    Some(Draw::new("", "").bare().height(420).raw(tree).done(
        "cost-tree",
        "What is paid, by whom it belongs to",
        alt,
    ))
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
