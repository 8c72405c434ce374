//! The review: a document, a first screen, a page and Markdown, all of the same sections.

mod decide;
mod hard;
mod rest;
mod service;
mod text;

use plimsoll_study::{Review, RowVerdict};
use serde_json::{Value, json};

pub(crate) use self::hard::{register_blocks, stress_blocks, tornado_blocks};
#[cfg(test)]
pub(crate) use self::sample::review as sample;
pub use self::text::review_text;
use crate::page::{Cell, Section, Tone, markdown, page};

/// The review as a JSON document.
pub fn review_json(review: &Review, version: &str) -> Value {
    let mut document = json!({ "schema": "plimsoll/review/v1", "version": version });
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
    let all = [
        Some(decide::verdict(review)),
        Some(decide::launch(review)),
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
    all.into_iter().flatten().collect()
}

/// What a reader sees of a verdict, in words first.
fn verdict_cell(verdict: Option<RowVerdict>) -> Cell {
    let tone = match verdict {
        Some(RowVerdict::Ok) => Tone::Good,
        Some(RowVerdict::Tight) => Tone::Tight,
        Some(RowVerdict::Shortfall) => Tone::Bad,
        Some(RowVerdict::Unknown) | None => Tone::Plain,
    };
    Cell { text: verdict.map_or("", RowVerdict::word).to_owned(), tone }
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
