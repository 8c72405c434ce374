//! Hard times, what moves the answer, where the money goes, and proposed changes.

use plimsoll_study::{LoadVerdict, PressureChange, Review, Stressed};
use plimsoll_units::grouped;

use super::stop;
use crate::chart::hard::{cost_chart, stress_chart, tornado_chart};
use crate::cost::dollars as cents;
use crate::page::{Block, Cell, Section, Table, Tone};
use crate::stress::{about_times, breaks, dollars, end, guarded, most_moved, number, share};

pub(super) fn stress(review: &Review) -> Option<Section> {
    let result = review.stress.as_ref()?;
    let mut own = Section::new("stress", "Stress scenarios");
    own.text(format!("Compared with {}.", result.at));
    stress_blocks(&mut own, result, false);
    Some(own)
}

/// The table of hard times, what does not apply, the chart, and ways in which plans fail.
pub(crate) fn stress_blocks(
    own: &mut Section,
    result: &plimsoll_study::StressResult,
    resources: bool,
) {
    let columns = [
        "scenario",
        "good today",
        "good planned",
        ">carries today",
        ">planned",
        ">$/h planned",
        ">$/success",
        "first to break today",
        "first to break planned",
        "owner",
    ];
    let caption = "Stress scenarios: `good` is of the class that has least of what it was promised; `carries` is how many times that demand a fleet carries with every promise kept, to about a tenth";
    let mut table = Table::new(caption, &columns);
    let carries = |times: Option<f64>| times.map_or("-".to_owned(), about_times);
    let tried = || result.scenarios.iter().filter(|own| own.not_applicable.is_none());
    for own in tried() {
        let good = &own.attainment;
        table.row(vec![
            own.name.as_str().into(),
            held(good.now, good.verdict_now),
            held(good.planned, good.verdict_planned),
            carries(own.carries.now).into(),
            carries(own.carries.planned).into(),
            dollars(own.cost.planned_usd_per_hour).into(),
            dollars(own.cost.planned_usd_per_success).into(),
            breaks(own.first_to_break.now.as_ref()).into(),
            breaks(own.first_to_break.planned.as_ref()).into(),
            own.owner.as_deref().unwrap_or("not named").into(),
        ]);
    }
    own.table(table);
    if let Some(chart) = stress_chart(result) {
        own.push(Block::Chart(Box::new(chart)));
    }
    let about = tried().map(|own| {
        let moved = [("Worsened", &own.worsened), ("relieved", &own.relieved)];
        let moved = moved.iter().filter(|(_, all)| !all.is_empty());
        let moved = moved.map(|(what, all)| format!("{what}: {}", most_moved(all)));
        let moved: Vec<String> = moved.collect();
        let text = stop(&format!("{}: {}", own.name, own.about));
        if moved.is_empty() { text } else { format!("{text} {}", stop(&moved.join("; "))) }
    });
    let about: Vec<String> = about.collect();
    if !about.is_empty() {
        own.push(Block::Fold("What happens in each".to_owned(), vec![Block::List(about)]));
    }
    let not = result.scenarios.iter().filter_map(|own| {
        Some(stop(&format!("{} does not apply: {}", own.name, own.not_applicable.as_ref()?)))
    });
    own.list(not.collect());
    if let Some(why) = result.scenarios.iter().find_map(|own| own.cost.why.as_ref()) {
        own.text(stop(&format!("Where a cost is missing: {why}")));
    }
    for scenario in tried().filter(|_| resources) {
        own.table(resource_table(scenario));
    }
    own.push(Block::Heading("Ways in which plans fail".to_owned()));
    let mut table = Table::new("Failure shapes", &["shape", "today", "planned", "evidence"]);
    let said = |pass: Option<bool>| match pass {
        Some(true) => Cell { text: "pass".to_owned(), tone: Tone::Good },
        Some(false) => Cell { text: "FAIL".to_owned(), tone: Tone::Bad },
        None => Cell::from("-"),
    };
    for shape in &result.failure_shapes {
        table.row(vec![
            shape.name.into(),
            said(shape.pass_now),
            said(shape.pass),
            shape.evidence.as_str().into(),
        ]);
    }
    own.table(table);
    own.list(result.notes.iter().map(|note| stop(note)).collect());
}

/// What a scenario asks of each resource, beside the reference.
fn resource_table(scenario: &Stressed) -> Table {
    let columns = [
        "resource",
        ">asked",
        ">at the peak",
        "unit",
        ">used today",
        ">used planned",
        ">at the peak",
    ];
    let mut table = Table::new(&format!("Resources, {}", scenario.name), &columns);
    for row in &scenario.resources {
        let name = row.name.replace('_', " ");
        let of = row.of.as_ref().map_or(name.clone(), |of| format!("{name} of {of}"));
        let number = |value: Option<f64>| Cell::from(value.map_or("-".to_owned(), number));
        table.row(vec![
            of.into(),
            number(row.demand),
            number(row.reference),
            row.unit.into(),
            share(row.used_now).into(),
            share(row.used_planned).into(),
            share(row.reference_used_planned).into(),
        ]);
    }
    table
}

fn held(good: Option<f64>, verdict: Option<LoadVerdict>) -> Cell {
    let (word, tone) = match verdict {
        Some(LoadVerdict::Carried) => (" holds", Tone::Good),
        Some(LoadVerdict::Fails) => (" BREAKS", Tone::Bad),
        Some(LoadVerdict::TooClose) => (" TOO CLOSE", Tone::Plain),
        None => ("", Tone::Plain),
    };
    Cell { text: format!("{}{word}", share(good)), tone }
}

pub(super) fn tornado(review: &Review) -> Option<Section> {
    let result = review.stress.as_ref()?;
    let mut own = Section::new("tornado", "What moves the answer");
    tornado_blocks(&mut own, result);
    Some(own)
}

/// The chart, its table, and what to measure next.
pub(crate) fn tornado_blocks(section: &mut Section, result: &plimsoll_study::StressResult) {
    let own = &result.tornado;
    let ends = [("Best", &own.best), ("Likely", &own.base), ("Worst", &own.worst)];
    let ends = ends
        .iter()
        .filter_map(|(name, own)| own.as_ref().map(|own| stop(&format!("{name}: {}", end(own)))));
    section.list(ends.collect());
    if let Some(chart) = tornado_chart(result) {
        section.push(Block::Chart(Box::new(chart)));
    }
    let columns = [
        "assumption",
        "better",
        "likely",
        "worse",
        ">replicas",
        ">$/month apart",
        ">good on the planned fleet",
        "changes the plan",
        "range from",
        "how to know it better",
    ];
    let mut table = Table::new(
        "Each moves alone, the rest as it is likely; replicas are of all pools, reserve included",
        &columns,
    );
    for bar in &own.bars {
        table.row(vec![
            bar.name.as_str().into(),
            bar.better.as_str().into(),
            bar.likely.as_str().into(),
            bar.worse.as_str().into(),
            format!("{} to {}", bar.at_better.replicas, bar.at_worse.replicas).into(),
            dollars(bar.swing_usd_per_month).into(),
            format!("{} to {}", share(bar.at_better.attainment), share(bar.at_worse.attainment))
                .into(),
            if bar.changes_decision { "yes" } else { "no" }.into(),
            bar.source.as_str().into(),
            bar.measure.as_str().into(),
        ]);
    }
    section.table(table);
    if own.measure_next.is_empty() {
        section.text("No assumption by itself would change how many replicas are planned.");
    } else {
        section.text("Measure next, what is worth most first:");
        section.list(own.measure_next.iter().map(|what| stop(what)).collect());
    }
}

pub(super) fn cost_tree(review: &Review) -> Option<Section> {
    let cost = review.cost.as_ref()?;
    let mut own = Section::new("cost-tree", "Where the money goes");
    let when = match (&cost.period.start, &cost.period.end) {
        (Some(start), Some(end)) => format!("{start} to {end}"),
        _ => "no dates".to_owned(),
    };
    let closes = if cost.closes {
        "the books close: nothing is missing".to_owned()
    } else {
        format!("THE BOOKS DO NOT CLOSE: {} micro-dollars are missing", cost.residual_microusd)
    };
    let (total, hours) = (cents(cost.total_usd), cost.period.hours);
    own.text(format!("{total} in {hours} hours, {when}; {closes}."));
    if let Some(chart) = cost_chart(cost) {
        own.push(Block::Chart(Box::new(chart)));
    }
    let columns = ["line", "kind", ">cost", ">device-hours", "from", "price", "why"];
    let mut table = Table::new("What is paid, line by line", &columns);
    for line in &cost.lines {
        let price = line.price.as_ref().map_or(String::new(), |price| {
            let unit = price.usd_per_unit.zip(price.unit);
            let unit = unit.map_or(String::new(), |(usd, unit)| format!("${usd:.4}/{unit}, "));
            let more = [&price.region, &price.as_of].into_iter().flatten();
            let more: String = more.map(|own| format!(", {own}")).collect();
            format!("{unit}{}{more}", price.source)
        });
        table.row(vec![
            line.name.as_str().into(),
            line.kind.into(),
            cents(line.usd).into(),
            line.device_hours.map_or(String::new(), |hours| format!("{hours:.1}")).into(),
            if line.invoiced { "invoiced" } else { "priced" }.into(),
            price.into(),
            line.why.as_str().into(),
        ]);
    }
    own.table(table);
    own.list(cost.build_or_buy.iter().map(|own| stop(&own.says)).collect());
    own.list(cost.commitment.iter().map(|own| stop(&own.says)).collect());
    let lints = cost.price_lints.iter();
    own.list(lints.map(|lint| stop(&format!("price {}: {}", lint.code, lint.message))).collect());
    own.list(cost.notes.iter().map(|note| stop(note)).collect());
    Some(own)
}

pub(super) fn register(review: &Review) -> Option<Section> {
    let changes = &review.stress.as_ref()?.changes;
    let mut own = Section::new("register", "Pressure register");
    register_blocks(&mut own, changes);
    Some(own)
}

/// Proposed changes, before and after on the same tasks.
pub(crate) fn register_blocks(own: &mut Section, changes: &[PressureChange]) {
    if changes.is_empty() {
        own.text("No change is proposed.");
        return;
    }
    let columns = [
        "change",
        "owner",
        "relieves",
        "creates",
        ">replicas",
        ">$/h",
        ">good",
        ">TTFT p95, ms",
        ">saves of a success",
        "guardrail",
        "rollback",
    ];
    let mut table = Table::new("Proposed changes, before and after on the same tasks", &columns);
    for change in changes {
        let both = |of: &dyn Fn(&plimsoll_study::ChangeSide) -> String| -> Cell {
            let (before, after) = (change.before.as_ref(), change.after.as_ref());
            before
                .zip(after)
                .map_or("-".to_owned(), |(a, b)| format!("{} → {}", of(a), of(b)))
                .into()
        };
        let moved = |all: &[plimsoll_study::Moved]| {
            if all.is_empty() { "nothing".to_owned() } else { most_moved(all) }
        };
        let saves = match (change.saving_per_success_pct, &change.why) {
            (Some(saving), _) => format!("{saving:.1}%"),
            (None, Some(why)) => why.clone(),
            (None, None) => "-".to_owned(),
        };
        let guard = |own, words| guarded(own, words).trim_start_matches([':', ',', ' ']).to_owned();
        let relieves = match &change.not_applicable {
            Some(why) => format!("cannot be tried: {why}"),
            None => moved(&change.relieved),
        };
        table.row(vec![
            change.name.as_str().into(),
            change.owner.as_deref().unwrap_or("not named").into(),
            relieves.into(),
            if change.not_applicable.is_some() {
                "-".into()
            } else {
                moved(&change.created).into()
            },
            both(&|side| grouped(side.replicas.iter().map(|n| u64::from(*n)).sum())),
            both(&|side| dollars(side.usd_per_hour)),
            both(&|side| share(side.attainment)),
            both(&|side| side.ttft_p95_ms.map_or("-".to_owned(), |ms| format!("{ms:.0}"))),
            saves.into(),
            guard(change.guardrail.as_ref(), ("holds", "BROKEN")).into(),
            guard(change.rollback.as_ref(), ("would FIRE at once", "would not fire")).into(),
        ]);
    }
    own.table(table);
    let tell = changes.iter().filter_map(|change| {
        Some(format!(
            "{}: {} tasks a side tell a fall of success by one point, four times in five.",
            change.name,
            grouped(change.tasks_to_tell?)
        ))
    });
    own.list(tell.collect());
}
