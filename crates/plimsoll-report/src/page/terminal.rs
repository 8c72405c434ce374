//! The same sections as a terminal shows them: charts stay away, and what is folded is shown.

use super::{Block, Section, Table};
use crate::text::{Heading, aligned};

/// A text column that is wider than this stands below its rows, if it is not the last.
const NARROW: usize = 60;
/// The same of the last one.
const LAST: usize = 100;

/// Sections, one below the other.
pub(crate) fn terminal(sections: &[Section], heading: Heading) -> String {
    let mut out = String::new();
    for section in sections {
        title(&mut out, &section.title, heading);
        section.blocks.iter().for_each(|block| shown(&mut out, block, heading));
    }
    out
}

fn title(out: &mut String, text: &str, heading: Heading) {
    out.push('\n');
    out.push_str(&heading.apply(text));
    out.push('\n');
}

fn line(out: &mut String, text: &str, heading: Heading) {
    out.push_str(&heading.tinted(text));
    out.push('\n');
}

fn shown(out: &mut String, block: &Block, heading: Heading) {
    match block {
        Block::Lead(text) | Block::Text(text) => line(out, text, heading),
        Block::Heading(text) => title(out, text, heading),
        Block::List(items) => {
            items.iter().for_each(|item| line(out, &format!("  {item}"), heading));
        }
        Block::Answers(all) => all.iter().for_each(|(question, answer)| {
            line(out, question, heading);
            line(out, &format!("  {answer}"), heading);
        }),
        Block::Table(own) => table(out, own, heading),
        Block::Code(text) => line(out, text.trim_end(), heading),
        Block::Fold(name, blocks) => {
            // A table alone has a caption that says what it is.
            if !matches!(blocks[..], [Block::Table(_)]) {
                title(out, name, heading);
            }
            blocks.iter().for_each(|own| shown(out, own, heading));
        }
        Block::Tiles(_) | Block::Chart(_) => {}
    }
}

fn table(out: &mut String, table: &Table, heading: Heading) {
    if !table.caption.is_empty() {
        title(out, &table.caption, heading);
    }
    let width = |column: usize| {
        let cells = table.rows.iter().map(|row| row[column].text.chars().count());
        cells.max().unwrap_or(0)
    };
    let last = table.columns.len().saturating_sub(1);
    let below = |column: usize| {
        let most = if column == last { LAST } else { NARROW };
        column > 0 && !table.columns[column].number && width(column) > most
    };
    let (beside, below): (Vec<usize>, Vec<usize>) =
        (0..table.columns.len()).partition(|column| !below(*column));
    let header: Vec<&str> = beside.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let numbers = beside.iter().enumerate().filter(|(_, at)| table.columns[**at].number);
    let right: Vec<usize> = numbers.map(|(i, _)| i).collect();
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| beside.iter().map(|at| row[*at].text.replace('\n', " ")).collect())
        .collect();
    let lines = aligned(&header, &rows, &right);
    let mut lines = lines.lines();
    lines.by_ref().take(1).for_each(|text| line(out, text, heading));
    for (text, row) in lines.zip(&table.rows) {
        line(out, text, heading);
        for at in below.iter().filter(|at| !row[**at].text.is_empty()) {
            let name = &table.columns[*at].name;
            line(out, &format!("    {name}: {}", row[*at].text), heading);
        }
    }
}
