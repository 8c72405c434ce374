//! Hard times as a page.

use crate::page::page;
use crate::stress::{StressDocument, sections};

/// Hard times as one self-contained page.
pub fn stress_html(document: &StressDocument<'_>, version: &str) -> String {
    let sections = sections(document, &format!("{} · ", document.file), version);
    page(&format!("Stress scenarios: {}", document.name), &sections)
}
