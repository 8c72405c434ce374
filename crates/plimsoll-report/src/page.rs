//! One self-contained page: words, tables and charts in a single file that loads nothing.
//!
//! The styles and the script are named by their hashes in its security policy, so that nothing else runs in it. Without the script, nothing is lost but what a chart says where it is pointed at.

mod markdown;
mod terminal;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(crate) use self::markdown::markdown;
pub(crate) use self::terminal::terminal;
use crate::chart::{Chart, SCRIPT, STYLE as CHARTS};

/// A part of a page under a heading.
#[derive(Clone)]
pub struct Section {
    /// Names it in links.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Its conclusion; a section that has one is folded behind it on a page.
    pub conclusion: Option<String>,
    /// What it says, one after the other.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that says nothing yet.
    pub fn new(id: &str, title: &str) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), conclusion: None, blocks: Vec::new() }
    }

    /// The same, folded behind its conclusion.
    #[must_use]
    pub fn folded(self, conclusion: String) -> Self {
        Self { conclusion: Some(conclusion), ..self }
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
    /// The answer in a few numbers.
    Tiles(Vec<Tile>),
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

/// A number that the answer rests on, and what it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// What it is.
    pub title: String,
    /// The number, with its unit.
    pub number: String,
    /// What that means, in a word.
    pub word: Cell,
    /// Its parts: a name, a share between 0 and 1, and the number.
    pub bars: Vec<(String, f64, String)>,
    /// What else should be known of it.
    pub note: String,
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

const STYLE: &str = include_str!("page/page.css");

/// What a security policy names the styles and the script of charts by; a test says what they are.
const STYLE_HASHES: &str = "'sha256-9OT4LwfWRU8NNURWqdXgb3VX0J/Qs24u9T4vHl2l9VA=' 'sha256-q5ZFUYvcXX01+d7p1q7nZjblrdH2JTKc/VXn0SLsinA='";
const SCRIPT_HASH: &str = "'sha256-6LZuQjyuTW+ay75GynkQqQpOuM3jBBIGkUdQ/AQkRr4='";

/// A page as a single file.
pub fn page(title: &str, sections: &[Section]) -> String {
    let drawn = sections.iter().any(|section| section.blocks.iter().any(has_chart));
    let script = if drawn { SCRIPT_HASH } else { "'none'" };
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {STYLE_HASHES}; base-uri 'none'; form-action 'none'"
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
                style { (PreEscaped(CHARTS)) }
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
                                @match &own.conclusion {
                                    None => {
                                        h2 id={ (own.id) "-title" } { (own.title) }
                                        @for block in &own.blocks { (shown(block)) }
                                    }
                                    Some(conclusion) => {
                                        details class="section" {
                                            summary {
                                                h2 id={ (own.id) "-title" } { (own.title) }
                                                span class="conclusion" { (inline(conclusion)) }
                                            }
                                            @for block in &own.blocks { (shown(block)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                @if drawn { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    markup.into_string()
}

fn has_chart(block: &Block) -> bool {
    match block {
        Block::Chart(_) => true,
        Block::Fold(_, blocks) => blocks.iter().any(has_chart),
        Block::Lead(_)
        | Block::Text(_)
        | Block::Tiles(_)
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
        Block::Tiles(tiles) => html! {
            div class="tiles" { @for tile in tiles { (tile_html(tile)) } }
        },
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

fn tile_html(tile: &Tile) -> Markup {
    html! {
        div class="tile" {
            h3 { (tile.title) }
            p class="figure" {
                (tile.number) " "
                span class=[class(tile.word.tone, false)] { (tile.word.text) }
            }
            @for (name, share, number) in &tile.bars {
                p class="bar" {
                    span { (name) }
                    svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                        rect class="ground" width="100" height="6" {}
                        rect class="bar-fill" width=(format!("{:.1}", share.clamp(0.0, 1.0) * 100.0)) height="6" {}
                    }
                    span class="amount" { (number) }
                }
            }
            @if !tile.note.is_empty() { p class="note" { (inline(&tile.note)) } }
        }
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
    html! {
        figure {
            figcaption { (chart.title) }
            (chart.html())
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
