//! The review: a document, a first screen, a page and Markdown, all of the same sections.

mod decide;
mod hard;
mod rest;
mod service;
mod text;

use plimsoll_study::Review;
use serde_json::{Value, json};

pub(crate) use self::decide::{budget_blocks, feasible, plan_section};
pub(crate) use self::hard::{register_blocks, stress_blocks, tornado_blocks};
#[cfg(test)]
pub(crate) use self::sample::review as sample;
pub(crate) use self::service::scaling_section;
pub use self::text::review_text;
use crate::page::{Section, markdown, page};

/// The review as a JSON document.
pub fn review_json(review: &Review, version: &str) -> Value {
    let mut document = json!({ "schema": "plimsoll/review/v2", "version": version });
    if let (Value::Object(document), Ok(Value::Object(body))) =
        (&mut document, serde_json::to_value(review))
    {
        document.extend(body);
    }
    document
}

/// The review as one self-contained page.
pub fn review_html(review: &Review, version: &str) -> String {
    page(&title(review), &sections(review, version))
}

/// The review as Markdown, for a pull request.
pub fn review_markdown(review: &Review, version: &str) -> String {
    markdown(&title(review), &sections(review, version))
}

fn title(review: &Review) -> String {
    format!("Capacity review: {}", review.name)
}

/// What a review says, in the order that a meeting asks for it; what is not known has no section.
fn sections(review: &Review, version: &str) -> Vec<Section> {
    let first = [decide::verdict(review), decide::launch(review)];
    let rest = [
        decide::plan(review),
        hard::stress(review),
        decide::cost(review),
        service::curve(review),
        service::memory(review),
        service::ahead(review),
        service::windows(review),
        hard::tornado(review),
        hard::cost_tree(review),
        hard::register(review),
        rest::signals(review),
        rest::questions(review),
        Some(rest::assumptions(review)),
        Some(rest::method(review, version)),
    ];
    let folded = rest.into_iter().flatten().map(|section| {
        let conclusion = conclusion(review, &section.id);
        section.folded(conclusion)
    });
    first.into_iter().chain(folded).collect()
}

/// What a section comes to, in a line.
fn conclusion(review: &Review, id: &str) -> String {
    let plan = review.plan.as_ref();
    let count =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let text = match id {
        "plan" => plan.map(|plan| {
            let total: u32 = plan.pools.iter().map(|pool| pool.replicas.total).sum();
            let carry: u32 =
                plan.pools.iter().map(|p| p.replicas.steady + p.replicas.forecast).sum();
            match plan.feasible {
                true => format!("feasible: {total} replicas, {} of them reserve", total - carry),
                false => "not feasible".to_owned(),
            }
        }),
        "stress" => review.stress.as_ref().map(text::stress),
        "cost" => text::cost(review),
        "curve" => plan.map(|plan| {
            let fleet = &plan.table.fleet;
            format!(
                "promises are kept up to {} of the demand today, and up to {} planned",
                crate::launch::percent(&fleet.today),
                crate::launch::percent(&fleet.planned)
            )
        }),
        "memory" => Some(
            review
                .memory
                .iter()
                .map(|fit| {
                    format!(
                        "a replica of {} holds {} tokens",
                        fit.name,
                        crate::launch::figure(fit.kv_tokens as f64)
                    )
                })
                .collect::<Vec<_>>()
                .join("; "),
        ),
        "windows" => plan.map(|plan| plan.scaling.why.clone()),
        "tornado" => review
            .stress
            .as_ref()
            .and_then(|stress| Some(format!("most: {}", stress.tornado.bars.first()?.name))),
        "register" => review
            .stress
            .as_ref()
            .map(|stress| count(stress.changes.len(), "proposed change", "proposed changes")),
        "signals" => Some(count(review.signals.len(), "signal", "signals")),
        "questions" => {
            let known = review.questions.iter().filter(|own| own.known).count();
            Some(format!("{known} of {} answered", review.questions.len()))
        }
        "assumptions" => Some(count(review.assumptions.len(), "value", "values")),
        "ahead" => Some(format!("hour by hour from {}", review.ahead.start)),
        _ => None,
    };
    text.unwrap_or_default()
}

/// A sentence with its full stop.
fn stop(text: &str) -> String {
    let text = crate::plan::sentence(text.trim());
    if text.ends_with(['.', '!', '?', ':']) { text } else { format!("{text}.") }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
