//! Hard times as a page.

use crate::page::{Section, page};
use crate::review::{register_blocks, stress_blocks, tornado_blocks};
use crate::stress::StressDocument;
use crate::text::plain_percent;

/// Hard times as one self-contained page.
pub fn stress_html(document: &StressDocument<'_>, version: &str) -> String {
    let result = document.result;
    let mut hard = Section::new("stress", "Stress scenarios");
    hard.text(format!(
        "{} · as of {} · compared with {} · demand at its p{} · {}% good · seed {} · plimsoll {version}.",
        document.file,
        document.as_of,
        result.at,
        plain_percent(document.quantile),
        plain_percent(document.attainment),
        document.seed
    ));
    let pools = result.pools.iter();
    hard.list(
        pools
            .map(|pool| {
                format!("{}: {} replicas today, {} planned.", pool.name, pool.now, pool.planned)
            })
            .collect(),
    );
    stress_blocks(&mut hard, result);
    let mut tornado = Section::new("tornado", "What moves the answer");
    tornado_blocks(&mut tornado, result);
    let mut register = Section::new("register", "Pressure register");
    register_blocks(&mut register, &result.changes);
    page(&format!("Stress scenarios: {}", document.name), &[hard, tornado, register])
}
