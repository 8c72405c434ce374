//! The launch table, as a terminal, a page and Markdown show it, and the lines that lead to it.

use plimsoll_study::{
    Decision, LaunchTable, Plan, PoolBlock, Reach, Review, RowVerdict, SharedRow, TableRow,
};

use crate::page::{Cell, Table, Tone};
use crate::plan::dollars;

/// What the demand is called.
pub(crate) fn demand_word(table: &LaunchTable) -> &'static str {
    if table.has_event { "launch" } else { "busiest hour" }
}

/// A share of the demand: `37%`, `> 200%`, `> 10x`, `?` where it is not known.
pub(crate) fn percent(reach: &Reach) -> String {
    match (reach.covers, reach.at_least) {
        (Some(covers), _) if covers < 10.0 => format!("{:.0}%", covers * 100.0),
        (None, Some(least)) if least < 10.0 => format!("> {:.0}%", least * 100.0),
        (None, None) if !reach.beyond => "?".to_owned(),
        _ => "> 10x".to_owned(),
    }
}

/// At most four digits that count: `13.5`, `9,010`, `196,700`, `2.46M`.
pub(crate) fn figure(value: f64) -> String {
    let rounded = |value: f64, digits: i32| {
        if value == 0.0 {
            return 0.0;
        }
        let scale = 10f64.powi(digits - 1 - value.abs().log10().floor() as i32);
        (value * scale).round() / scale
    };
    match value.abs() {
        _ if !value.is_finite() => "?".to_owned(),
        v if v >= 999.5e9 => format!("{:.3e}", rounded(value, 3)),
        v if v >= 999.5e6 => format!("{}G", plain(rounded(value, 3) / 1e9)),
        v if v >= 999_950.0 => format!("{}M", plain(rounded(value, 3) / 1e6)),
        v if v >= 1000.0 => plimsoll_units::grouped(rounded(value.max(0.0), 4) as u64),
        _ => plain(rounded(value, 3)),
    }
}

fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a row is called.
fn name(row: &TableRow) -> String {
    match row.resource {
        "requests" => "whole mix, requests/s".to_owned(),
        "fresh_prompt_tokens" => "fresh prompt tokens/s (prefill)".to_owned(),
        "output_tokens" => "output tokens/s (decode)".to_owned(),
        "active_kv_tokens" => "active KV tokens".to_owned(),
        "sequences" => "sequences running".to_owned(),
        other => format!("{}, requests/s", other.replace('_', " ")),
    }
}

/// Of today's fleet, then of the planned one; one word where they are equal.
pub(crate) fn pair(today: RowVerdict, planned: RowVerdict) -> String {
    match today == planned {
        true => today.word().to_owned(),
        false => format!("{} -> {}", today.word(), planned.word()),
    }
}

/// What binds a pool, and where it shows first.
fn cause_line(block: &PoolBlock) -> Option<String> {
    let cause = block.cause?.word().replace('_', " ");
    let signal = block
        .first_signal
        .as_ref()
        .map_or(String::new(), |signal| format!(", first seen in {}", signal_word(signal)));
    let with_loss = block.rows.first().and_then(|row| row.planned_with_loss);
    let loss = block.loss.as_ref().zip(with_loss).map_or(String::new(), |(loss, reach)| {
        let loss = loss.strip_suffix(&format!(" of {}", block.pool)).unwrap_or(loss);
        format!(". Planned with {loss} lost: {}", percent(&reach))
    });
    Some(format!("cause: {cause}{signal}{loss}"))
}

/// A promise as the field writes it.
pub(crate) fn signal_word(signal: &str) -> String {
    match signal {
        "ttft" | "tpot" | "e2e" => signal.to_uppercase(),
        "gap" => "gaps between tokens".to_owned(),
        other => other.replace('_', " "),
    }
}

fn replicas(block: &PoolBlock) -> String {
    match block.replicas_now == block.replicas_planned {
        true if block.replicas_now == 1 => "1 replica".to_owned(),
        true => format!("{} replicas", block.replicas_now),
        false => format!("{} -> {} replicas", block.replicas_now, block.replicas_planned),
    }
}

/// The table in as many columns as a terminal has: with what is carried, what a loss leaves and the cause beside it from 120 on.
pub(crate) fn lines(plan: &Plan, window_s: f64, columns: usize) -> Vec<String> {
    if columns >= WIDE {
        return wide(plan, window_s);
    }
    let table = &plan.table;
    let mut out = Vec::new();
    if !table.pools.is_empty() {
        let head = format!("p95 over {window_s} s windows");
        out.push(format!(
            "{head:<32}{:>9}{:>8}{:>9}  verdict",
            if table.has_event { "launch" } else { "demand" },
            "today",
            "planned"
        ));
    }
    for block in &table.pools {
        if block.idle {
            out.push(format!("{}, {}: idle", block.pool, replicas(block)));
            continue;
        }
        out.push(format!("{}, {}", block.pool, replicas(block)));
        for row in &block.rows {
            out.push(format!(
                "  {:<30}{:>9}{:>8}{:>9}  {}",
                name(row),
                row.demand().map_or("?".to_owned(), figure),
                percent(&row.today),
                percent(&row.planned),
                pair(row.verdict_today, row.verdict_planned)
            ));
            if let Some(source) = &row.source {
                out.push(format!("    measured: {source}"));
            }
            if row.resource == "requests" {
                out.extend(cause_line(block).map(|cause| format!("    {cause}")));
            }
        }
    }
    out.extend(shared_lines(table, 28));
    out
}

/// Columns from which the table shows all that it has.
const WIDE: usize = 120;

/// The table in 120 columns.
fn wide(plan: &Plan, window_s: f64) -> Vec<String> {
    let table = &plan.table;
    let mut out = Vec::new();
    if !table.pools.is_empty() {
        let demand = match table.has_event {
            true => format!("{:>8}{:>9}", "baseline", "launch"),
            false => format!("{:>17}", "busiest hour"),
        };
        out.push(format!(
            "{:<33}{demand}{:>14}{:>14}{:>8}  {:<15}  cause",
            format!("p95 over {window_s} s windows"),
            "today",
            "planned",
            "w/ loss",
            "verdict"
        ));
    }
    let carried = |reach: &Reach| {
        let carries = reach.carries.map_or(String::new(), figure);
        format!("{carries:>8}{:>6}", percent(reach))
    };
    for block in &table.pools {
        let devices = |n: u32| plimsoll_units::grouped(u64::from(n) * block.devices_per_replica);
        let gpus = match block.replicas_now == block.replicas_planned {
            true => devices(block.replicas_now),
            false => {
                format!("{} -> {}", devices(block.replicas_now), devices(block.replicas_planned))
            }
        };
        let note = match (block.idle, block.runs_out_first) {
            (true, _) => ": idle",
            (false, true) => ": runs out first",
            (false, false) => "",
        };
        out.push(format!(
            "{}, {} ({gpus} GPU{}){note}",
            block.pool,
            replicas(block),
            if gpus == "1" { "" } else { "s" }
        ));
        for row in block.rows.iter().filter(|_| !block.idle) {
            let baseline = if table.has_event {
                row.baseline.map_or(String::new(), figure)
            } else {
                String::new()
            };
            let cause = match (row.resource, row.is_cause) {
                ("requests", _) => block.cause.map(|cause| {
                    let cause = cause.word().replace('_', " ");
                    let signal = block.first_signal.as_deref().map(|signal| match signal {
                        "gap" => "gap".to_owned(),
                        other => signal_word(other),
                    });
                    signal.map_or(cause.clone(), |signal| format!("{cause}, {signal}"))
                }),
                (_, true) => Some("the cause".to_owned()),
                _ => None,
            };
            let line = format!(
                "  {:<31}{baseline:>8}{:>9}{}{}{:>8}  {:<15}  {}",
                name(row),
                row.demand().map_or("?".to_owned(), figure),
                carried(&row.today),
                carried(&row.planned),
                row.planned_with_loss.as_ref().map_or(String::new(), percent),
                pair(row.verdict_today, row.verdict_planned),
                cause.unwrap_or_default()
            );
            out.push(line.trim_end().to_owned());
            if let Some(source) = &row.source {
                out.push(format!("    measured: {source}"));
            }
        }
        if let Some(loss) = block.loss.as_ref().filter(|_| !block.idle) {
            out.push(format!("  w/ loss: without {loss}"));
        }
    }
    out.extend(shared_lines(table, 48));
    out
}

/// What belongs to no pool; names have so many columns.
fn shared_lines(table: &LaunchTable, names: usize) -> Vec<String> {
    let mut out = Vec::new();
    if table.shared.is_empty() {
        return out;
    }
    let from = |row: &SharedRow| match &row.trips_at {
        Some(at) if names > 30 => format!(", from {at}"),
        _ => String::new(),
    };
    let first = names + 2;
    out.push(format!(
        "{:<first$}{:>10}{:>10}{:>8}  verdict",
        "fleet-wide", "planned", "limit", "covers"
    ));
    for row in &table.shared {
        out.push(format!(
            "  {:<names$}{:>10}{:>10}{:>8}  {}{}",
            clipped(&shared_name(row), names),
            row.planned.map_or("?".to_owned(), |planned| amount(row, planned)),
            amount(row, row.limit),
            if row.verdict == RowVerdict::Idle { "-".to_owned() } else { percent(&row.reach) },
            row.verdict.word(),
            from(row)
        ));
    }
    out
}

/// As much of a name as fits.
fn clipped(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => format!("{}…", text.chars().take(most - 1).collect::<String>().trim_end()),
        false => text.to_owned(),
    }
}

fn is_money(row: &SharedRow) -> bool {
    row.name.starts_with("budget.")
}

fn amount(row: &SharedRow, value: f64) -> String {
    if is_money(row) { dollars(value) } else { figure(value) }
}

fn shared_name(row: &SharedRow) -> String {
    match row.name.as_str() {
        "budget.monthly" => "cost a month, cap".to_owned(),
        "budget.hourly" => "cost an hour, cap".to_owned(),
        name => match name.strip_prefix("provider.").and_then(|rest| rest.rsplit_once('.')) {
            Some((provider, _)) => format!("{provider}, {}", row.unit),
            None => name.to_owned(),
        },
    }
}

fn tone(verdict: RowVerdict) -> Tone {
    match verdict {
        RowVerdict::Ok => Tone::Good,
        RowVerdict::Tight | RowVerdict::OverCap => Tone::Tight,
        RowVerdict::Shortfall | RowVerdict::MemoryRisk => Tone::Bad,
        RowVerdict::Unknown | RowVerdict::Idle => Tone::Plain,
    }
}

/// The tables of a page: one a pool, and one of what pools share.
pub(crate) fn tables(plan: &Plan) -> Vec<Table> {
    let table = &plan.table;
    let mut all = Vec::new();
    let reach = |reach: &Reach| -> Cell {
        match reach.carries {
            Some(carries) => format!("{} ({})", figure(carries), percent(reach)).into(),
            None => percent(reach).into(),
        }
    };
    let maybe = |value: Option<f64>| Cell::from(value.map_or("-".to_owned(), figure));
    for block in &table.pools {
        let mut caption = format!("{}, {}", block.pool, replicas(block));
        if block.idle {
            caption.push_str(": idle, no request comes to it");
        }
        if let Some(cause) = cause_line(block) {
            caption = format!("{caption}; {cause}");
        }
        let lost = block.rows.iter().any(|row| row.planned_with_loss.is_some());
        let demand =
            if table.has_event { vec![">baseline", ">launch"] } else { vec![">busiest hour"] };
        let mut columns = vec!["resource"];
        columns.extend(demand);
        columns.extend([">today carries", ">planned carries"]);
        if lost {
            columns.push(">with the loss");
        }
        columns.extend(["today", "planned", "too little from"]);
        let mut own = Table::new(&caption, &columns);
        for row in &block.rows {
            let measured =
                row.source.as_ref().map_or(String::new(), |source| format!("; measured: {source}"));
            let mut cells: Vec<Cell> =
                vec![format!("{}{measured}", name(row)).into(), maybe(row.baseline)];
            if table.has_event {
                cells.push(maybe(row.launch));
            }
            cells.extend([reach(&row.today), reach(&row.planned)]);
            if lost {
                cells.push(row.planned_with_loss.as_ref().map_or("-".into(), reach));
            }
            let cell =
                |verdict: RowVerdict| Cell { text: verdict.word().to_owned(), tone: tone(verdict) };
            cells.extend([
                cell(row.verdict_today),
                cell(row.verdict_planned),
                row.runs_out_at.clone().unwrap_or_default().into(),
            ]);
            own.row(cells);
        }
        all.push(own);
    }
    let mut own = Table::new(
        "Fleet-wide: what belongs to no pool",
        &["limit", ">planned", ">limit", ">limit / planned", "verdict", "exceeded from"],
    );
    for row in &table.shared {
        own.row(vec![
            shared_name(row).into(),
            row.planned.map_or("?".into(), |planned| amount(row, planned).into()),
            amount(row, row.limit).into(),
            percent(&row.reach).into(),
            Cell { text: row.verdict.word().to_owned(), tone: tone(row.verdict) },
            row.trips_at.clone().unwrap_or_default().into(),
        ]);
    }
    all.push(own);
    all
}

/// The plan in a sentence or two: how many of what, what they carry, and what they cost against the caps.
pub(crate) fn plan_sentence(plan: &Plan, decision: Decision) -> String {
    if !plan.feasible {
        let why = plan.infeasible_because.first().map_or("", |obstacle| obstacle.what.as_str());
        return format!("Planned: NOT FEASIBLE: {why}.");
    }
    let pools: Vec<String> = plan
        .table
        .pools
        .iter()
        .map(|block| match block.replicas_now == block.replicas_planned {
            true => format!("{} {}", block.pool, block.replicas_now),
            false => {
                format!("{} {} -> {}", block.pool, block.replicas_now, block.replicas_planned)
            }
        })
        .collect();
    let who = match pools.as_slice() {
        [] => "hosted models".to_owned(),
        all => all.join(" and "),
    };
    let fleet = &plan.table.fleet;
    let what = demand_word(&plan.table);
    let lost =
        fleet.loss.as_ref().zip(fleet.planned_with_loss).map_or(String::new(), |(loss, reach)| {
            format!(", {} with {loss} lost", percent(&reach))
        });
    let mut says = format!(
        "Planned: {}. {who} {} {} of the {what}{lost}.",
        decision.word(),
        if pools.len() == 1 { "carries" } else { "carry" },
        percent(&fleet.planned)
    );
    for row in plan.table.shared.iter().filter(|row| row.verdict == RowVerdict::OverCap) {
        if let Some(planned) = row.planned {
            says.push_str(&format!(
                " OVER CAP: {} {}, {} over the cap of {}.",
                dollars(planned),
                row.unit.trim_start_matches("USD "),
                dollars(planned - row.limit),
                dollars(row.limit)
            ));
        }
    }
    says
}

/// What request counts alone would say, where they mislead: what today's fleet carries in the shape of the traffic without the event.
pub(crate) fn by_requests(review: &Review) -> Option<String> {
    let plan = review.plan.as_ref().filter(|plan| plan.table.has_event)?;
    let covers = plan.table.fleet.today.covers.filter(|covers| *covers < 1.0)?;
    let all = |row: &&plimsoll_study::DemandRow| {
        row.class.is_none() && row.resource == plimsoll_study::Resource::Requests
    };
    let demand = review.demand.rows.iter().find(all)?;
    let (baseline, launch) = (demand.baseline.p95_per_s, demand.launch?.p95_per_s);
    let plain = review.stress.as_ref()?.scenarios.iter().find(|own| own.name == "baseline")?;
    let carries = plain.carries.now? * baseline;
    (carries > launch && covers > 0.0).then(|| {
        format!(
            "By request count alone today's fleet would look sufficient: in today's traffic shape it carries about {} requests/s; the launch brings {}.",
            figure(carries),
            figure(launch)
        )
    })
}
