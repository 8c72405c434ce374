//! Numbers for a monitor, as text of OpenMetrics 1.0.

use std::fmt::{Display, Write as _};

pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is written so far. Writing to a string does not fail.
#[derive(Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    /// Begins a metric; its samples follow.
    pub(crate) fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP plimsoll_{name} {help}.\n# TYPE plimsoll_{name} {kind}");
    }

    /// A sample, of a name that begins with the metric's.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.0, "plimsoll_{name}");
        for (i, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// All of it.
    pub(crate) fn end(self) -> String {
        self.0 + "# EOF\n"
    }
}
