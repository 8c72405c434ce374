//! Columns of plain text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// How headings stand out: in bold where the terminal has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// With escape codes.
    Bold,
    /// Without.
    Plain,
}

impl Heading {
    /// The text as a heading.
    pub fn apply(self, text: &str) -> String {
        match self {
            Self::Bold => format!("\x1b[1m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}

/// A table without borders: two blanks between columns, none at the ends.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    aligned(header, rows, &[])
}

/// The same, with these columns to the right.
pub(crate) fn aligned(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    for row in rows {
        table.add_row(row.clone());
    }
    let last = header.len().saturating_sub(1);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if i == last { 0 } else { 2 }));
        if right.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if out.is_empty() {
        out.push('\n');
    }
    out
}
