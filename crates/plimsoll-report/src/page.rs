//! One self-contained page: words, tables and charts in a single file that loads nothing.
//!
//! Scripts are at the end of the page and named by their hashes in its security policy, so that nothing else runs in it. Without scripts the tables still say everything.

mod markdown;

use std::sync::LazyLock;

use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotly::Plot;
use sha2::{Digest as _, Sha256};

pub(crate) use self::markdown::markdown;
use crate::chart::Chart;

/// A part of a page under a heading.
#[derive(Clone)]
pub struct Section {
    /// Names it in links.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it says, one after the other.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that says nothing yet.
    pub fn new(id: &str, title: &str) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), blocks: Vec::new() }
    }

    /// Says one more thing.
    pub fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Says a sentence.
    pub fn text(&mut self, text: impl Into<String>) {
        self.push(Block::Text(text.into()));
    }

    /// Shows a table, where it has rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.push(Block::Table(table));
        }
    }

    /// Says sentences one below the other, where there are any.
    pub fn list(&mut self, items: Vec<String>) {
        if !items.is_empty() {
            self.push(Block::List(items));
        }
    }
}

/// Something that a page says. What stands between backticks is shown as it is typed.
#[derive(Clone)]
pub enum Block {
    /// The answer: a sentence that is read first.
    Lead(String),
    /// A sentence or a few.
    Text(String),
    /// A heading within the section.
    Heading(String),
    /// Sentences one below the other.
    List(Vec<String>),
    /// Questions and answers.
    Answers(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Box<Chart>),
    /// As it is typed.
    Code(String),
    /// What is long and seldom read: its name, and what it says.
    Fold(String, Vec<Block>),
}

/// A table: the first column names its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows; as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit.
    pub name: String,
    /// Whether it holds numbers, which stand to the right.
    pub number: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How it stands out; the text says as much by itself.
    pub tone: Tone,
}

/// How something stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It does not.
    Plain,
    /// It holds.
    Good,
    /// It holds, and not by much.
    Tight,
    /// It does not hold.
    Bad,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

impl Table {
    /// An empty one: a name that begins with `>` is of a column of numbers.
    pub fn new(caption: &str, columns: &[&str]) -> Self {
        let column = |name: &&str| {
            let number = name.strip_prefix('>');
            Column { name: number.unwrap_or(name).to_owned(), number: number.is_some() }
        };
        let columns = columns.iter().map(column).collect();
        Self { caption: caption.to_owned(), columns, rows: Vec::new() }
    }

    /// One more row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }
}

/// The script that draws charts, as the plotly crate has it.
pub fn plotly_script() -> &'static str {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| {
        // The crate hands out two scripts in their tags; the second draws formulas, of which there are none.
        let both = Plot::offline_js_sources();
        let first = both.split_once('>').map_or("", |(_, rest)| rest);
        first.split_once("</script>").map_or("", |(script, _)| script).to_owned()
    });
    &SCRIPT
}

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/charts.js");

/// A page as a single file.
pub fn page(title: &str, sections: &[Section]) -> String {
    let drawn = sections.iter().any(|own| own.blocks.iter().any(has_chart));
    let scripts: &[&str] = if drawn { &[plotly_script(), SCRIPT] } else { &[] };
    let hashes: Vec<String> = scripts.iter().map(|own| hash(own)).collect();
    let from = if hashes.is_empty() { "'none'".to_owned() } else { hashes.join(" ") };
    let policy = format!(
        "default-src 'none'; script-src {from}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    );
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="plimsoll";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#main" { "Skip to the answer" }
                header { h1 { (title) } }
                div class="columns" {
                    nav aria-label="Contents" {
                        ol { @for own in sections { li { a href={ "#" (own.id) } { (own.title) } } } }
                    }
                    main id="main" tabindex="-1" {
                        @for own in sections {
                            section id=(own.id) aria-labelledby={ (own.id) "-title" } {
                                h2 id={ (own.id) "-title" } { (own.title) }
                                @for block in &own.blocks { (shown(block)) }
                            }
                        }
                    }
                }
                @if drawn { noscript { p class="note" { "Charts need JavaScript; the tables say the same." } } }
                @for own in scripts { script { (PreEscaped(own)) } }
            }
        }
    };
    markup.into_string()
}

/// A hash as a security policy names a script by.
fn hash(script: &str) -> String {
    let digest = Sha256::digest(script.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
}

fn has_chart(block: &Block) -> bool {
    match block {
        Block::Chart(_) => true,
        Block::Fold(_, blocks) => blocks.iter().any(has_chart),
        Block::Lead(_)
        | Block::Text(_)
        | Block::Heading(_)
        | Block::List(_)
        | Block::Answers(_)
        | Block::Table(_)
        | Block::Code(_) => false,
    }
}

fn shown(block: &Block) -> Markup {
    match block {
        Block::Lead(text) => html! { p class="lead" { (inline(text)) } },
        Block::Text(text) => html! { p { (inline(text)) } },
        Block::Heading(text) => html! { h3 { (inline(text)) } },
        Block::List(items) => html! { ul { @for own in items { li { (inline(own)) } } } },
        Block::Answers(all) => html! {
            dl { @for (question, answer) in all { dt { (inline(question)) } dd { (inline(answer)) } } }
        },
        Block::Table(table) => table_html(table),
        Block::Chart(chart) => chart_html(chart),
        Block::Code(text) => html! { pre tabindex="0" { code { (text) } } },
        Block::Fold(name, blocks) => html! {
            details { summary { (inline(name)) } @for own in blocks { (shown(own)) } }
        },
    }
}

fn table_html(table: &Table) -> Markup {
    html! {
        div class="table" role="region" tabindex="0" aria-label=(table.caption) {
            table {
                caption { (inline(&table.caption)) }
                thead { tr {
                    @for own in &table.columns {
                        @if own.name.is_empty() { td {} }
                        @else { th scope="col" class=[own.number.then_some("number")] { (own.name) } }
                    }
                } }
                tbody {
                    @for row in &table.rows { tr {
                        @for (i, cell) in row.iter().enumerate() {
                            @let number = table.columns.get(i).is_some_and(|own| own.number);
                            @if i == 0 { th scope="row" class=[class(cell.tone, number)] { (inline(&cell.text)) } }
                            @else { td class=[class(cell.tone, number)] { (inline(&cell.text)) } }
                        }
                    } }
                }
            }
        }
    }
}

fn class(tone: Tone, number: bool) -> Option<String> {
    let tone = match tone {
        Tone::Plain => None,
        Tone::Good => Some("good"),
        Tone::Tight => Some("tight"),
        Tone::Bad => Some("bad"),
    };
    let all: Vec<&str> = number.then_some("number").into_iter().chain(tone).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn chart_html(chart: &Chart) -> Markup {
    // Nothing in the data may end the block that it is in.
    let json = chart.json();
    let data = json.to_string().replace('<', "\\u003c");
    let height = json["layout"]["height"].as_u64().unwrap_or(380);
    html! {
        figure {
            figcaption { (chart.title) }
            div class="chart" id={ "chart-" (chart.id) } role="img" aria-label=(chart.alt)
                style={ "min-height:" (height) "px" } {}
            script type="application/json" class="chart-data" data-for={ "chart-" (chart.id) } { (PreEscaped(data)) }
            p class="alt" aria-hidden="true" { (chart.alt) }
        }
    }
}

/// Text, in which what stands between backticks is typed.
fn inline(text: &str) -> Markup {
    // An odd backtick is one.
    if !text.matches('`').count().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (i, part) in text.split('`').enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests;
