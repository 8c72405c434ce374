//! What was invoiced, as clouds write it: FOCUS 1.0 to 1.3, and the cost and usage reports of AWS in both spellings.
//!
//! A line that cannot be understood is kept with its reason, and so is one that is there twice; what these come to is said. Amounts are
//! read as decimals and rounded once, to the micro-dollar.

mod columns;
mod kind;
mod money;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read as _;

use csv::{ByteRecord, ReaderBuilder, StringRecord};
use plimsoll_cost::{Bill, BillLine};
use plimsoll_units::Usd;

use crate::page::Key;
use crate::unpack::{Content, Unpacking, open_bytes};
use crate::value::{clip, instant};
use columns::{Effective, Heading, Line, Said, amount};
use money::{Decimal, ONE};

/// What must be known to read a bill.
#[derive(Clone, Debug, Default)]
pub struct BillOptions {
    /// Dollars for one unit of another currency, by its code: `EUR`.
    pub usd_per: BTreeMap<String, f64>,
}

/// Why a file is no bill. Single lines that are wrong are in [`Bill::rejects`] instead.
#[derive(Debug, thiserror::Error)]
pub enum BillError {
    /// It could not be read, or not unpacked.
    #[error("{name}: cannot be read")]
    Unreadable {
        /// The file as the user named it.
        name: String,
        /// What the system or the unpacker says.
        source: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{name}: has no line")]
    Empty {
        /// The file as the user named it.
        name: String,
    },
    /// Nothing that is known.
    #[error("{name}: is no bill that is known: it is {looks}")]
    Unknown {
        /// The file as the user named it.
        name: String,
        /// What the file looks like.
        looks: String,
    },
    /// A column without which no line can be understood.
    #[error("{name}: a bill of {format} has the column `{missing}`, and this one has not")]
    Column {
        /// The file as the user named it.
        name: String,
        /// What it is otherwise.
        format: String,
        /// Which column is not there.
        missing: &'static str,
    },
    /// Another currency than dollars.
    #[error("{name}: is in {currency}, and nobody says what one {currency} is in dollars")]
    Currency {
        /// The file as the user named it.
        name: String,
        /// The currency.
        currency: String,
    },
    /// A rate that no currency has.
    #[error("{name}: is in {currency}, and {rate} dollars for one {currency} is no rate")]
    Rate {
        /// The file as the user named it.
        name: String,
        /// The currency.
        currency: String,
        /// The rate as it was given.
        rate: f64,
    },
    /// More than one currency.
    #[error("{name}: line {} is in {}, line {} in {}: amounts cannot be added", first.0, first.1, second.0, second.1)]
    Mixed {
        /// The file as the user named it.
        name: String,
        /// A line and its currency.
        first: (u64, String),
        /// A line with another.
        second: (u64, String),
    },
    /// Lines, but none that is understood.
    #[error("{name}: none of its {lines} lines can be understood, such as line {}: {}", first.0, first.1)]
    Nothing {
        /// The file as the user named it.
        name: String,
        /// How many lines there are.
        lines: usize,
        /// The first, and what is wrong with it.
        first: (u64, String),
    },
}

impl BillError {
    /// What the user could do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { .. } => {
                "if it is packed, it may be cut short: copy it again".to_owned()
            }
            Self::Empty { .. } => return None,
            Self::Unknown { .. } => {
                "export it as CSV in FOCUS (1.0 to 1.3), or as an AWS cost and usage report"
                    .to_owned()
            }
            Self::Column { missing, .. } => format!("export it again, with `{missing}`"),
            Self::Currency { currency, .. } => {
                format!("pass the rate of the invoice, such as `--usd-per {currency}=1.08`")
            }
            Self::Rate { currency, .. } => {
                format!("a rate is a number above zero, such as `--usd-per {currency}=1.08`")
            }
            Self::Mixed { .. } => "split it by currency, and give each part by itself".to_owned(),
            Self::Nothing { .. } => {
                "mend the first, and see whether others have the same".to_owned()
            }
        })
    }
}

impl From<Unpacking> for BillError {
    fn from(Unpacking { name, source }: Unpacking) -> Self {
        Self::Unreadable { name, source }
    }
}

/// What dollars are called.
const USD: &str = "USD";
/// Overlaps that are told one by one; there is one for each line in a bill that was exported twice.
const OVERLAPS_TOLD: usize = 5;

/// Reads a bill: plain, or packed by gzip or zstd.
pub fn read_bill(bytes: &[u8], name: &str, options: &BillOptions) -> Result<Bill, BillError> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    open_bytes(name, bytes, &mut |member, content| match content {
        Content::Text(mut content) => {
            let mut text = Vec::new();
            let failed = |source| BillError::Unreadable { name: member.to_owned(), source };
            content.read_to_end(&mut text).map_err(failed)?;
            texts.push(text);
            Ok(())
        }
        Content::Parquet(_) => Err(unknown(member, "a Parquet file")),
    })?;
    let [text] = &texts[..] else {
        return Err(unknown(name, &format!("an archive of {} files", texts.len())));
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut records = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut first = StringRecord::new();
    match records.read_record(&mut first) {
        Ok(true) => {}
        Ok(false) => return Err(BillError::Empty { name: name.to_owned() }),
        Err(_) => return Err(unknown(name, "no text of columns")),
    }
    let heading = Heading::of(&first).ok_or_else(|| {
        let columns: Vec<&str> = first.iter().take(5).collect();
        unknown(name, &format!("a table of `{}`", clip(&columns.join("`, `"))))
    })?;
    if let Some(missing) = heading.missing() {
        return Err(BillError::Column { name: name.to_owned(), format: heading.name(), missing });
    }
    let rest = &text[usize::try_from(records.position().byte()).unwrap_or(text.len())..];
    let line = records.position().line();
    let currency = currency_of(rest, line, name, &heading)?;
    let rate = rate_of(&currency, name, options)?;
    let mut reading = Reading::new(&heading, rate);
    each_line(rest, line, |line, record| reading.line(line, record));
    reading.conclude(name, currency, options)
}

fn unknown(name: &str, looks: &str) -> BillError {
    BillError::Unknown { name: name.to_owned(), looks: looks.to_owned() }
}

/// Hands on every line, with its number in the file; what is no text is none.
fn each_line(text: &[u8], first: u64, mut each: impl FnMut(u64, Result<&StringRecord, &str>)) {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut bytes = ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut bytes) {
            Ok(true) => {}
            // From memory nothing else can fail.
            Ok(false) | Err(_) => return,
        }
        let line = bytes.position().map_or(0, csv::Position::line) + first - 1;
        match StringRecord::from_byte_record(bytes.clone()) {
            Ok(record) => each(line, Ok(&record)),
            Err(_) => each(line, Err("it is no text")),
        }
    }
}

/// The one currency of all lines.
fn currency_of(
    text: &[u8],
    first: u64,
    name: &str,
    heading: &Heading,
) -> Result<String, BillError> {
    let mut seen: Vec<(u64, String)> = Vec::new();
    each_line(text, first, |line, record| {
        let Ok(record) = record else { return };
        let currency = Line { heading, record }.currency();
        if !currency.is_empty() && seen.iter().all(|(_, own)| own != currency) {
            seen.push((line, currency.to_owned()));
        }
    });
    let mut seen = seen.into_iter();
    match (seen.next(), seen.next()) {
        (Some(first), Some(second)) => {
            Err(BillError::Mixed { name: name.to_owned(), first, second })
        }
        (Some((_, currency)), None) => Ok(currency),
        (None, _) => Ok(USD.to_owned()),
    }
}

fn rate_of(currency: &str, name: &str, options: &BillOptions) -> Result<Decimal, BillError> {
    if currency == USD {
        return Ok(ONE);
    }
    let (name, currency) = (name.to_owned(), currency.to_owned());
    match options.usd_per.get(&currency) {
        Some(rate) => {
            Decimal::of_rate(*rate).ok_or(BillError::Rate { name, currency, rate: *rate })
        }
        None => Err(BillError::Currency { name, currency }),
    }
}

/// A bill on its way.
struct Reading<'a> {
    heading: &'a Heading,
    rate: Decimal,
    lines: Vec<BillLine>,
    rejects: Vec<(u64, String)>,
    /// What rejected lines come to, as far as it can be read, and how many these are.
    rejected: (Usd, usize),
    /// Hashes of all lines, and where each was first.
    seen: BTreeMap<u128, u64>,
    /// Usage of resources: what is charged, hashed, over which time, and by which line.
    charges: Vec<(u128, i64, i64, usize)>,
    /// Lines that do not say what they come to once commitments are spread.
    unspread: usize,
    /// Whether moments have a zone.
    zoned: Option<bool>,
}

/// Why a line is not taken, and its amount where that could be read.
struct Reject(String, Option<Usd>);

impl From<String> for Reject {
    fn from(why: String) -> Self {
        Self(why, None)
    }
}

impl<'a> Reading<'a> {
    const fn new(heading: &'a Heading, rate: Decimal) -> Self {
        Self {
            heading,
            rate,
            lines: Vec::new(),
            rejects: Vec::new(),
            rejected: (Usd::ZERO, 0),
            seen: BTreeMap::new(),
            charges: Vec::new(),
            unspread: 0,
            zoned: None,
        }
    }

    fn line(&mut self, line: u64, record: Result<&StringRecord, &str>) {
        let taken = match record {
            Ok(record) => self.take(line, record),
            Err(why) => Err(Reject(why.to_owned(), None)),
        };
        if let Err(Reject(why, amount)) = taken {
            let amount = amount.map(|amount| {
                self.rejected = (self.rejected.0 + amount, self.rejected.1 + 1);
                format!("; its {amount} are in no sum")
            });
            self.rejects.push((line, why + &amount.unwrap_or_default()));
        }
    }

    fn take(&mut self, line: u64, record: &StringRecord) -> Result<(), Reject> {
        if record.len() != self.heading.columns() {
            let (has, columns) = (record.len(), self.heading.columns());
            return Err(format!("it has {has} fields, and the heading {columns}").into());
        }
        let own = Line { heading: self.heading, record };
        // Before anything is judged: what a line comes to is known, whatever is wrong with the rest of it.
        let billed = self
            .amount(own.billed())?
            .ok_or_else(|| Reject(format!("`{}` is missing", own.billed().0), None))?;
        let reject = |why: String| Reject(why, Some(billed));
        let words = record.iter().map(str::trim);
        let text = words.fold(Key::new("bill", ""), Key::text).finish();
        let first = *self.seen.entry(text).or_insert(line);
        if first != line {
            return Err(reject(format!("it is line {first} once more, word for word")));
        }
        let said = own.said().map_err(reject)?;
        if own.currency().is_empty() {
            return Err(reject("it does not say its currency".to_owned()));
        }
        let (from_s, until_s) = self.period(&said).map_err(reject)?;
        let quantity = quantity(&said).map_err(reject)?;
        let sum = |amounts: &[(&str, &str)]| -> Result<Usd, Reject> {
            let own = amounts.iter().map(|own| self.amount(*own).map(Option::unwrap_or_default));
            own.sum::<Result<Usd, String>>().map_err(reject)
        };
        let list = (!said.list.1.is_empty()).then(|| sum(&[said.list])).transpose()?;
        let effective = match &said.effective {
            Effective::Billed | Effective::Unsaid => billed,
            Effective::Nothing => Usd::ZERO,
            Effective::Sum(plus, less) => sum(plus)? - sum(less)?,
        };
        self.unspread += usize::from(matches!(said.effective, Effective::Unsaid));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        if said.is_usage && !said.resource.is_empty() {
            let parts = [said.account, said.resource, &said.service, said.region, &said.meter];
            let key = parts.into_iter().chain(said.pricing).fold(Key::new("charge", ""), Key::text);
            self.charges.push((key.finish(), from_s, until_s, self.lines.len()));
        }
        self.lines.push(BillLine {
            kind: said.kind,
            service: said.service,
            description: said.description,
            resource: some(said.resource),
            region: some(said.region),
            pricing: said.pricing.map(str::to_owned),
            account: some(said.account),
            from_s,
            until_s,
            billed,
            effective,
            list,
            quantity,
            line,
        });
        Ok(())
    }

    /// An amount in dollars; none where nothing is written.
    fn amount(&self, own: (&str, &str)) -> Result<Option<Usd>, String> {
        let Some(amount) = amount(own)? else { return Ok(None) };
        let usd = amount.usd(self.rate);
        usd.map(Some).ok_or_else(|| format!("`{}` is `{}`, more than can be", own.0, clip(own.1)))
    }

    fn period(&mut self, said: &Said<'_>) -> Result<(i64, i64), String> {
        let mut at = |what: &str, text: &str| {
            let moment = instant(text, &mut self.zoned);
            moment.map_err(|why| format!("the {what} of what it is for {why}"))
        };
        let (from, until) = (at("beginning", said.from)?, at("end", said.until)?);
        if until < from {
            return Err(format!(
                "it is for a time that ends ({}) before it begins ({})",
                said.until, said.from
            ));
        }
        Ok((from.div_euclid(1_000_000_000), until.div_euclid(1_000_000_000)))
    }

    /// Pairs of lines that charge the same for the same time.
    fn overlaps(&mut self) -> Vec<String> {
        self.charges.sort_unstable();
        let mut notes = Vec::new();
        let (mut last, mut more): (Option<(u128, i64, usize)>, usize) = (None, 0);
        for (key, from_s, until_s, place) in &self.charges {
            let open = last.filter(|(own, ..)| own == key);
            if let Some((_, end_s, other)) = open.filter(|(_, end_s, _)| from_s < end_s) {
                let (a, b) = (&self.lines[other], &self.lines[*place]);
                if notes.len() < OVERLAPS_TOLD {
                    notes.push(format!(
                        "lines {} and {} both charge `{}` of `{}` for {} s of the same time: {} and {}, and both count",
                        a.line.min(b.line),
                        a.line.max(b.line),
                        clip(&a.description),
                        clip(a.resource.as_deref().unwrap_or_default()),
                        end_s.min(*until_s) - from_s,
                        if a.line < b.line { a.billed } else { b.billed },
                        if a.line < b.line { b.billed } else { a.billed },
                    ));
                } else {
                    more += 1;
                }
            }
            // What ends last is what the next may lie over.
            if open.is_none_or(|(_, end_s, _)| *until_s > end_s) {
                last = Some((*key, *until_s, *place));
            }
        }
        if more > 0 {
            notes.push(format!(
                "{more} more lines charge what another does for the same time, and all count"
            ));
        }
        notes
    }

    fn conclude(
        mut self,
        name: &str,
        currency: String,
        options: &BillOptions,
    ) -> Result<Bill, BillError> {
        let read = self.lines.len() + self.rejects.len();
        if self.lines.is_empty() {
            let name = name.to_owned();
            return Err(match self.rejects.into_iter().next() {
                Some(first) => BillError::Nothing { name, lines: read, first },
                None => BillError::Empty { name },
            });
        }
        let mut notes = self.overlaps();
        if !self.rejects.is_empty() {
            let (usd, known) = self.rejected;
            notes.push(format!(
                "{} of {read} lines are in no sum; {known} of them say an amount, together {usd}",
                self.rejects.len()
            ));
        }
        if self.unspread > 0 {
            notes.push(format!(
                "{} lines do not say what they come to once commitments are spread over their use: they count as they were billed",
                self.unspread
            ));
        }
        let usd_per_unit = if currency == USD {
            1.0
        } else {
            options.usd_per.get(&currency).copied().unwrap_or(1.0)
        };
        Ok(Bill {
            format: self.heading.name(),
            currency,
            usd_per_unit,
            lines: self.lines,
            rejects: self.rejects,
            notes,
        })
    }
}

/// How much was used, and of what; nobody uses less than nothing.
fn quantity(said: &Said<'_>) -> Result<Option<(f64, String)>, String> {
    let Some(number) = amount(said.quantity)? else { return Ok(None) };
    let (column, text) = said.quantity;
    if number.is_negative() {
        // What is given back may be counted so; what is used may not.
        let problem = || format!("`{column}` is `{}`, below zero", clip(text));
        return if said.is_usage { Err(problem()) } else { Ok(None) };
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    Ok(number.map(|number| (number, said.unit.to_owned())))
}
