//! What to watch, what reviewers ask, and what all of it rests on.

use plimsoll_study::Review;
use plimsoll_units::grouped;
use serde_json::json;

use super::stop;
use crate::page::{Block, Section, Table};
use crate::plan::number;
use crate::text::plain_percent;

pub(super) fn signals(review: &Review) -> Option<Section> {
    if review.signals.is_empty() {
        return None;
    }
    let mut own = Section::new("signals", "Signals to watch");
    let columns = ["signal", "of", ">act at", "unit", "metric", "means", "do"];
    let mut table = Table::new("First things first", &columns);
    for watch in &review.signals {
        let metric = watch.metric.as_ref().map_or("-".to_owned(), |own| format!("`{own}`"));
        table.row(vec![
            watch.signal.replace('_', " ").into(),
            watch.of.as_deref().unwrap_or("all").into(),
            watch.threshold.map_or("when it rises".to_owned(), number).into(),
            watch.unit.into(),
            metric.into(),
            watch.means.as_str().into(),
            watch.action.as_str().into(),
        ]);
    }
    own.table(table);
    Some(own)
}

pub(super) fn questions(review: &Review) -> Option<Section> {
    if review.questions.is_empty() {
        return None;
    }
    let mut own = Section::new("questions", "What a reviewer asks");
    let answered = review.questions.iter().map(|own| {
        let answer = stop(&own.answer);
        let answer = if own.known { answer } else { format!("NOT KNOWN: {answer}") };
        (own.question.to_owned(), answer)
    });
    own.push(Block::Answers(answered.collect()));
    Some(own)
}

pub(super) fn assumptions(review: &Review) -> Section {
    let mut own = Section::new("assumptions", "Assumptions");
    let said = |provenance: plimsoll_study::Provenance| {
        json!(provenance).as_str().unwrap_or_default().to_owned()
    };
    let count =
        |kind: &str| review.assumptions.iter().filter(|a| said(a.provenance) == kind).count();
    let kinds: Vec<String> = ["supplied", "observed", "calibrated", "modeled"]
        .iter()
        .map(|kind| format!("{} {kind}", count(kind)))
        .collect();
    own.text(format!("It rests on {} values: {}.", review.assumptions.len(), kinds.join(", ")));
    let columns = ["assumption", "value", "provenance", "source", "date", ">age, days"];
    let mut table = Table::new("Everything that was taken to be so", &columns);
    for assumed in &review.assumptions {
        table.row(vec![
            format!("`{}`", assumed.name.replace('`', "'")).into(),
            assumed.value.as_deref().unwrap_or("not known").into(),
            said(assumed.provenance).into(),
            assumed.source.as_str().into(),
            assumed.date.as_deref().unwrap_or("-").into(),
            assumed.age_days.map_or("-".to_owned(), |days| days.to_string()).into(),
        ]);
    }
    if !table.rows.is_empty() {
        let name = format!("All {} assumptions", review.assumptions.len());
        own.push(Block::Fold(name, vec![Block::Table(table)]));
    }
    own
}

pub(super) fn method(review: &Review, version: &str) -> Section {
    let mut own = Section::new("method", "Method");
    own.list(review.method.says.iter().map(|says| stop(says)).collect());
    let mut table = Table::new("What makes it repeatable", &["", "value"]);
    table.row(vec!["version".into(), version.into()]);
    table.row(vec!["seed".into(), review.seed.to_string().into()]);
    table.row(vec!["runs".into(), review.demand.runs.to_string().into()]);
    table.row(vec!["as of".into(), review.as_of.as_str().into()]);
    table.row(vec!["horizon from".into(), review.start.as_str().into()]);
    let quantile = format!("p{}", plain_percent(review.demand_quantile));
    table.row(vec!["demand at its".into(), quantile.into()]);
    own.table(table);
    let mut table = Table::new(
        "How far predictions of this model were off from what was measured",
        &["pool", "what", ">half were closer than", ">nine in ten", ">cases", "from"],
    );
    for case in &review.method.validation {
        table.row(vec![
            case.pool.as_str().into(),
            case.what.into(),
            format!("{:.0}%", case.median_abs_pct).into(),
            format!("{:.0}%", case.p90_abs_pct).into(),
            grouped(case.cases).into(),
            json!(case.provenance).as_str().unwrap_or_default().into(),
        ]);
    }
    own.table(table);
    own
}
