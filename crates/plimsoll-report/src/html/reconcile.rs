//! What came of a forecast, as a page.

use plimsoll_forecast::Actuals;
use plimsoll_study::Reconciliation;
use plimsoll_workload::Quantity;

use super::forecast::{fan, placed};
use crate::chart::Chart;
use crate::forecast::{ForecastFile, level, moment, number, span, words};
use crate::page::{Block, Section, Table, page};
use crate::reconcile::{ReconcileDocument, service_rows};
use crate::simulate::percent;

/// What came of a forecast, as one self-contained page.
pub fn reconcile_html(document: &ReconcileDocument<'_>, actual: &Actuals) -> String {
    let (plan, result) = (document.plan, document.result);
    let mut own = Section::new("came", "Forecast against what came");
    own.list(result.verdict.clone());
    own.text(format!(
        "{} to {} · {} steps of {}, {} of them missing · forecast {} as of {} · sized for p{} · plimsoll {}.",
        moment(result.from_s, result.absolute),
        moment(result.until_s, result.absolute),
        result.steps,
        span(u64::from(result.step_s)),
        result.missing,
        plan.id,
        plan.as_of,
        level(result.sizing),
        document.version
    ));
    fans(plan, actual, result).for_each(|(_, fan)| own.push(Block::Chart(Box::new(fan))));
    own.table(resources(document));
    let mut sections = vec![own, shortfall(document)];
    let rows = service_rows(result);
    if !rows.is_empty() {
        let mut own = Section::new("service", "Service, in the history and since");
        let mut table =
            Table::new("Before and since", &["class", "what", ">before", ">since", ">change"]);
        rows.into_iter().for_each(|row| table.row(row.into_iter().map(Into::into).collect()));
        own.table(table);
        sections.push(own);
    }
    if !result.assumptions.is_empty() {
        sections.push(assumptions(document));
    }
    let mut next = Section::new("next", "To assume next");
    next.push(Block::Code(result.next.toml.clone()));
    next.list(document.notes.to_vec());
    sections.push(next);
    page(&format!("{} against {}", document.plan_file, document.source), &sections)
}

/// The fan of each resource of all classes, with what came of it.
pub(crate) fn fans<'a>(
    plan: &'a ForecastFile,
    actual: &'a Actuals,
    result: &'a Reconciliation,
) -> impl Iterator<Item = (&'a str, Chart)> {
    plan.series.iter().filter(|series| series.class == "all").filter_map(|series| {
        let quantity = Quantity::of_name(&series.resource)?;
        let values = actual.series(None, quantity)?;
        let start = plan.start.seconds(result.absolute).ok()?;
        let first = (actual.start_s - start) / i64::from(actual.step_s.max(1));
        // What came outside the forecast is not its business.
        let within = first..first.saturating_add(i64::try_from(values.len()).unwrap_or(0));
        let last = i64::try_from(series.points.len()).unwrap_or(0);
        let came: Vec<_> = placed(&plan.start, actual.step_s, first, values)
            .into_iter()
            .zip(within)
            .filter(|(_, i)| (0..last).contains(i))
            .map(|(point, _)| point)
            .collect();
        Some((series.resource.as_str(), fan(plan, series, ("what came", &came))))
    })
}

fn resources(document: &ReconcileDocument<'_>) -> Table {
    let columns = [
        "class",
        "resource",
        ">forecast",
        ">came",
        ">WAPE",
        ">bias",
        ">at or below p50",
        ">p90",
        ">p95",
        ">p99",
        "unit",
    ];
    let mut table = Table::new("How far it was off, and how often what came lay below", &columns);
    let value = |value: Option<f64>| value.map_or("-".to_owned(), number);
    for own in &document.result.resources {
        let covered = |at: f64| {
            let found = own.coverage.iter().find(|c| (c.level - at).abs() < 1e-9);
            found.and_then(|c| c.share).map_or("-".to_owned(), percent)
        };
        table.row(vec![
            own.class.as_deref().unwrap_or("all").into(),
            words(own.resource).into(),
            value(own.forecast_mean).into(),
            value(own.actual_mean).into(),
            own.wape.map_or("-".to_owned(), |v| format!("{v:.3}")).into(),
            own.bias.map_or("-".to_owned(), |b| format!("{b:+.3}")).into(),
            covered(0.5).into(),
            covered(0.9).into(),
            covered(0.95).into(),
            covered(0.99).into(),
            own.unit.into(),
        ]);
    }
    table
}

fn shortfall(document: &ReconcileDocument<'_>) -> Section {
    let result = document.result;
    let name = format!("Above p{}, which was sized for", level(result.sizing));
    let mut own = Section::new("shortfall", &name);
    let columns = [
        "class",
        "resource",
        ">steps above",
        ">planned",
        ">volume above",
        ">longest",
        ">mean above",
        ">room over demand",
    ];
    let mut table =
        Table::new("How often and by how much demand exceeded what was sized for", &columns);
    for row in &result.shortfall {
        let share = |own: &Option<plimsoll_study::ShareEstimate>| {
            own.as_ref().map_or("-".to_owned(), |own| {
                let interval = own.low.zip(own.high).map_or(String::new(), |(low, high)| {
                    format!(" ({} to {})", percent(low), percent(high))
                });
                format!("{}{interval}", percent(own.value))
            })
        };
        table.row(vec![
            row.class.as_deref().unwrap_or("all").into(),
            words(row.resource).into(),
            share(&row.frequency).into(),
            percent(row.planned).into(),
            share(&row.volume).into(),
            if row.longest_steps == 0 { "-".into() } else { span(row.longest_s).into() },
            row.tail.map_or("-".to_owned(), number).into(),
            row.over_share.map_or("-".to_owned(), |s| format!("{:+.1}%", s * 100.0)).into(),
        ]);
    }
    own.table(table);
    own
}

fn assumptions(document: &ReconcileDocument<'_>) -> Section {
    let mut own = Section::new("assumptions", "Assumptions, the one that moves most first");
    let columns =
        ["assumption", ">assumed", ">came", "unit", ">times", ">moves the tokens by", ">age"];
    let mut table = Table::new("What was assumed against the truth", &columns);
    for row in &document.result.assumptions {
        table.row(vec![
            row.name.as_str().into(),
            number(row.assumed).into(),
            number(row.actual).into(),
            row.unit.into(),
            row.ratio.map_or("-".to_owned(), |r| format!("{r:.2}")).into(),
            row.moves.map_or("-".to_owned(), |m| format!("{m:+.1}%")).into(),
            span(u64::try_from(row.age_s).unwrap_or(0)).into(),
        ]);
    }
    own.table(table);
    own
}
