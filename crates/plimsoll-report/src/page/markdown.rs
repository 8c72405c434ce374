//! The same sections as Markdown, as a pull request shows it.

use std::fmt::Write as _;

use super::{Block, Section, Table};

/// A document: what charts draw is said in their sentences.
pub(crate) fn markdown(title: &str, sections: &[Section]) -> String {
    let mut out = format!("# {}\n", escaped(title));
    for section in sections {
        let _ = writeln!(out, "\n## {}", escaped(&section.title));
        if let Some(conclusion) = &section.conclusion {
            let _ = writeln!(out, "\n{}", escaped(conclusion));
        }
        for block in &section.blocks {
            shown(&mut out, block);
        }
    }
    out
}

fn shown(out: &mut String, block: &Block) {
    let _ = match block {
        Block::Lead(text) => writeln!(out, "\n**{}**", escaped(text)),
        Block::Text(text) => writeln!(out, "\n{}", escaped(text)),
        Block::Tiles(tiles) => {
            out.push('\n');
            tiles.iter().try_for_each(|tile| {
                let note =
                    if tile.note.is_empty() { String::new() } else { format!(" {}", tile.note) };
                let text = format!("{}: {} {}.{note}", tile.title, tile.number, tile.word.text);
                writeln!(out, "- {}", escaped(&text))
            })
        }
        Block::Heading(text) => writeln!(out, "\n### {}", escaped(text)),
        Block::List(items) => {
            out.push('\n');
            items.iter().try_for_each(|own| writeln!(out, "- {}", escaped(own)))
        }
        Block::Answers(all) => all.iter().try_for_each(|(question, answer)| {
            writeln!(out, "\n**{}**\n\n{}", escaped(question), escaped(answer))
        }),
        Block::Table(own) => table(out, own),
        Block::Chart(chart) => {
            writeln!(out, "\n*{}:* {}", escaped(&chart.title), escaped(&chart.alt))
        }
        Block::Code(text) => {
            // A fence is longer than any that it holds.
            let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            writeln!(out, "\n{fence}\n{}\n{fence}", text.trim_end())
        }
        Block::Fold(name, blocks) => {
            let _ = writeln!(out, "\n<details>\n<summary>{}</summary>", entities(name));
            blocks.iter().for_each(|own| shown(out, own));
            writeln!(out, "\n</details>")
        }
    };
}

fn table(out: &mut String, table: &Table) -> std::fmt::Result {
    if !table.caption.is_empty() {
        writeln!(out, "\n{}", escaped(&table.caption))?;
    }
    let names: Vec<String> = table.columns.iter().map(|own| cell(&own.name)).collect();
    let rules: Vec<&str> =
        table.columns.iter().map(|own| if own.number { "---:" } else { "---" }).collect();
    writeln!(out, "\n| {} |\n| {} |", names.join(" | "), rules.join(" | "))?;
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|own| cell(&own.text)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|").replace('\n', " ")
}

fn entities(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "")
}

/// Text in which nothing but backticks is markup.
fn escaped(text: &str) -> String {
    let paired = text.matches('`').count().is_multiple_of(2);
    let mut typed = false;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '`' if paired => {
                typed = !typed;
                out.push('`');
            }
            _ if typed => out.push(letter),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '#' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Cell;

    #[test]
    fn names_are_no_markup_and_tables_stay_tables() {
        let mut own = Table::new("by *class*", &["class", ">rate, /s"]);
        own.row(vec![Cell::from("a|b <img>"), Cell::from("1")]);
        let mut section = Section::new("one", "One_two");
        section.text("set `a_b|c` to <b>");
        section.table(own);
        assert_eq!(
            markdown("x", &[section]),
            "# x\n\n## One\\_two\n\nset `a_b|c` to &lt;b&gt;\n\nby \\*class\\*\n\n| class | rate, /s |\n| --- | ---: |\n| a\\|b &lt;img&gt; | 1 |\n"
        );
    }
}
