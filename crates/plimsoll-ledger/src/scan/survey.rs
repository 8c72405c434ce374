//! What must be known before rows can be gathered: the first arrival, the classes and the clients.
//!
//! Where no class, no filter and no client asks for it, and every row is demand on a model, the manifest and the files' own statistics
//! say it, and nothing is read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_study::Gathered;
use wildmatch::WildMatch;

use super::columns::{Codes, Flags, Reals, Stamps};
use super::units::{self, Unit, in_order};
use super::{Classing, NamedClass, OTHER, ScanInput, Scanned, clock_at, damaged, text_column};
use crate::column::Columns;
use crate::error::LedgerError;
use crate::store::Ledger;

/// The clock of rows that do not say theirs.
pub(super) const UTC: &str = "absolute";
/// The clock of rows that count from the start of their log.
pub(super) const OWN_START: &str = "relative";
/// Clocks that rows can have in common, the better one first.
pub(super) const COMMON: [&str; 2] = [UTC, OWN_START];

/// What a survey has found.
pub struct Survey {
    /// The clock that kept rows have in common: UTC where some have it, else the start of their logs.
    pub clock: Option<String>,
    /// Kept rows that have a time, by their clock.
    pub(super) clocks: BTreeMap<String, OnClock>,
    /// The first arrival on the common clock.
    pub first_ns: Option<i64>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Names of the clients, in order.
    pub clients: Vec<String>,
    /// The columns that tell classes apart.
    pub columns: Vec<String>,
    pub(super) only: Vec<(String, String)>,
    /// The class of every combination of values.
    class_of: BTreeMap<Vec<Option<u32>>, u32>,
    /// The values of each column of `columns`, in order.
    values: Vec<Vec<String>>,
    /// Classes that were put together.
    pub merged: usize,
}

/// Rows of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnClock {
    /// How many they are.
    pub rows: u64,
    /// The first arrival, in nanoseconds from 1970.
    pub first_ns: i64,
    /// The last.
    pub last_ns: i64,
}

impl OnClock {
    fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.first_ns = self.first_ns.min(more.first_ns);
        self.last_ns = self.last_ns.max(more.last_ns);
    }
}

/// What one stretch knows.
#[derive(Default)]
struct Found {
    clocks: BTreeMap<String, OnClock>,
    clients: BTreeSet<String>,
    /// Combinations of values, and how many rows have them.
    keys: BTreeMap<Vec<Option<String>>, u64>,
}

pub(super) fn survey(ledger: &Ledger, input: &ScanInput) -> Result<Survey, LedgerError> {
    let columns: BTreeSet<String> = match &input.classes {
        Classing::Columns { names, .. } => names.iter().cloned().collect(),
        Classing::Named(classes) => {
            classes.iter().flat_map(|c| c.columns.keys().cloned()).collect()
        }
    };
    // In the order they were asked for, where they were.
    let columns: Vec<String> = match &input.classes {
        Classing::Columns { names, .. } => names.clone(),
        Classing::Named(_) => columns.into_iter().collect(),
    };
    for column in columns.iter().chain(input.only.iter().map(|(column, _)| column)) {
        text_column(column)?;
    }
    let mut found = Found::default();
    if columns.is_empty() && input.only.is_empty() && !says_any(ledger, &LOOKED_AT)? {
        for span in ledger.manifest().requests.iter().flat_map(|part| &part.clocks) {
            let (first_ns, last_ns) = (span.first_ns, span.last_ns);
            found.on_clock(&span.clock, OnClock { rows: span.rows, first_ns, last_ns });
        }
        found.keys.insert(Vec::new(), ledger.rows());
    } else {
        // In whatever order: nothing that is found depends on it.
        let units = units::units(ledger, &ledger.common_clock())?;
        let look = |unit: &Unit| look(ledger, unit, &columns, &input.only);
        in_order(&units, input.threads, look, |more: Found| found.add(more))?;
    }
    Ok(found.conclude(columns, input))
}

/// Columns that must be looked at where they say anything: who asks, and whether a row is demand on a model.
const LOOKED_AT: [&str; 4] = ["tenant", "user", "response_cached", "sample_weight"];

/// Whether any row says anything in one of these columns; the files' own statistics say it.
pub(super) fn says_any(ledger: &Ledger, columns: &[&str]) -> Result<bool, LedgerError> {
    for part in &ledger.manifest().requests {
        let metadata = units::metadata(&ledger.path(&part.file))?;
        let mut groups = metadata.row_groups().iter();
        if groups.any(|group| columns.iter().any(|column| units::says(group, column))) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn look(
    ledger: &Ledger,
    unit: &Unit,
    columns: &[String],
    only: &[(String, String)],
) -> Result<Found, LedgerError> {
    let mut found = Found::default();
    let mut wanted: BTreeSet<&str> = ["ts_arrival", "clock"].into_iter().chain(LOOKED_AT).collect();
    wanted.extend(columns.iter().map(String::as_str));
    wanted.extend(only.iter().map(|(column, _)| column.as_str()));
    unit.read(ledger, &wanted, |path, batch| {
        found.batch(batch, columns, only).map_err(|problem| damaged(path, problem))
    })?;
    Ok(found)
}

impl Found {
    fn batch(
        &mut self,
        batch: &Columns,
        columns: &[String],
        only: &[(String, String)],
    ) -> Result<(), String> {
        let at = Stamps::of(batch, "ts_arrival")?;
        let clock = Names::of(batch, "clock")?;
        let (keep, demand) = (kept(batch, only)?, Demand::of(batch)?);
        let (tenant, user) = (Names::of(batch, "tenant")?, Names::of(batch, "user")?);
        let keys: Vec<Names<'_>> =
            columns.iter().map(|column| Names::of(batch, column)).collect::<Result<_, _>>()?;
        let mut clients: BTreeSet<(bool, u32)> = BTreeSet::new();
        let mut counts: BTreeMap<Vec<Option<u32>>, u64> = BTreeMap::new();
        let mut last: Option<(Vec<Option<u32>>, u64)> = None;
        // By the code of the clock; the last place is for rows that do not say it.
        let unsaid = clock.names.len();
        let mut clocks: Vec<Option<OnClock>> = vec![None; unsaid + 1];
        for i in (0..batch.rows).filter(|i| keep.has(*i) && demand.has(*i)) {
            if let Some(at) = at.get(i) {
                let one = OnClock { rows: 1, first_ns: at, last_ns: at };
                match &mut clocks[clock.codes.get(i).map_or(unsaid, |code| code as usize)] {
                    Some(own) => own.add(one),
                    none => *none = Some(one),
                }
            }
            if let Some(tenant) = tenant.codes.get(i) {
                clients.insert((true, tenant));
            } else if let Some(user) = user.codes.get(i) {
                clients.insert((false, user));
            }
            // Rows of a class come in runs.
            let same = last.as_ref().is_some_and(|(key, _)| {
                key.iter().zip(&keys).all(|(value, column)| *value == column.codes.get(i))
            });
            match &mut last {
                Some((_, rows)) if same => *rows += 1,
                _ => {
                    let key = keys.iter().map(|column| column.codes.get(i)).collect();
                    if let Some((key, rows)) = last.replace((key, 1)) {
                        *counts.entry(key).or_default() += rows;
                    }
                }
            }
        }
        if let Some((key, rows)) = last {
            *counts.entry(key).or_default() += rows;
        }
        for (code, rows) in clocks.into_iter().enumerate() {
            if let Some(rows) = rows {
                self.on_clock(clock.names.get(code).map_or(UTC, String::as_str), rows);
            }
        }
        for (is_tenant, code) in clients {
            let names = if is_tenant { &tenant } else { &user };
            self.clients.insert(names.name(code));
        }
        for (key, rows) in counts {
            let named =
                key.iter().zip(&keys).map(|(code, names)| code.map(|code| names.name(code)));
            *self.keys.entry(named.collect()).or_default() += rows;
        }
        Ok(())
    }

    fn on_clock(&mut self, clock: &str, rows: OnClock) {
        match self.clocks.get_mut(clock) {
            Some(own) => own.add(rows),
            None => {
                self.clocks.insert(clock.to_owned(), rows);
            }
        }
    }

    fn add(&mut self, more: Self) {
        for (clock, rows) in more.clocks {
            self.on_clock(&clock, rows);
        }
        self.clients.extend(more.clients);
        for (key, rows) in more.keys {
            *self.keys.entry(key).or_default() += rows;
        }
    }

    fn conclude(self, columns: Vec<String>, input: &ScanInput) -> Survey {
        let keys: Vec<(&Key, u64)> = self.keys.iter().map(|(key, rows)| (key, *rows)).collect();
        let Classes { classes, numbers, merged } = match &input.classes {
            Classing::Columns { most, .. } => Classes::by_values(&keys, *most),
            Classing::Named(named) => Classes::by_name(&keys, &columns, named),
        };
        let values: Vec<Vec<String>> = (0..columns.len())
            .map(|c| {
                let all: BTreeSet<&String> =
                    self.keys.keys().filter_map(|key| key[c].as_ref()).collect();
                all.into_iter().cloned().collect()
            })
            .collect();
        let number = |column: usize, value: &String| {
            values[column].binary_search(value).ok().and_then(|i| u32::try_from(i).ok())
        };
        let class_of = keys
            .iter()
            .zip(numbers)
            .map(|((key, _), class)| {
                let key = key
                    .iter()
                    .enumerate()
                    .map(|(c, value)| value.as_ref().and_then(|v| number(c, v)));
                (key.collect(), class)
            })
            .collect();
        let clock = COMMON.into_iter().find(|clock| self.clocks.contains_key(*clock));
        Survey {
            clock: clock.map(str::to_owned),
            first_ns: clock.map(|clock| self.clocks[clock].first_ns),
            clocks: self.clocks,
            classes,
            clients: self.clients.into_iter().collect(),
            columns,
            only: input.only.clone(),
            class_of,
            values,
            merged,
        }
    }
}

/// The values of a row in the columns that tell classes apart.
type Key = Vec<Option<String>>;

/// Classes in the order they are shown in, and the number of the class of each key. Keys are told apart, not what they look like.
struct Classes {
    classes: Vec<String>,
    numbers: Vec<u32>,
    /// Classes that were put together.
    merged: usize,
}

impl Classes {
    /// One for each key, with the most rows first; beyond `most` the rarest are one, the last.
    fn by_values(keys: &[(&Key, u64)], most: usize) -> Self {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|i| (Reverse(keys[*i].1), keys[*i].0));
        let merged = if keys.len() > most.max(1) { keys.len() + 1 - most.max(1) } else { 0 };
        order.truncate(keys.len() - merged);
        order.sort_by_cached_key(|i| (Reverse(keys[*i].1), joined(keys[*i].0), keys[*i].0));
        let mut numbers = vec![order.len() as u32; keys.len()];
        for (number, i) in (0u32..).zip(&order) {
            numbers[*i] = number;
        }
        let own: Vec<&Key> = order.iter().map(|i| keys[*i].0).collect();
        let mut classes = shown(&own);
        if merged > 0 {
            classes.push(OTHER.to_owned());
        }
        Self { classes, numbers, merged }
    }

    /// Those of a scenario that have rows, in its order; what matches none is the last.
    fn by_name(keys: &[(&Key, u64)], columns: &[String], named: &[NamedClass]) -> Self {
        let wanted: Vec<Vec<Option<WildMatch>>> = named
            .iter()
            .map(|class| {
                let of = |column: &String| class.columns.get(column).map(|p| WildMatch::new(p));
                columns.iter().map(of).collect()
            })
            .collect();
        let place = |key: &Key| {
            let fits = |wanted: &Vec<Option<WildMatch>>| {
                wanted.iter().zip(key).all(|(wanted, value)| match (wanted, value) {
                    (None, _) => true,
                    (Some(wanted), Some(value)) => wanted.matches(value),
                    (Some(_), None) => false,
                })
            };
            let class = wanted.iter().position(fits)?;
            // Classes of one name are one class.
            named.iter().position(|other| other.name == named[class].name)
        };
        let places: Vec<usize> =
            keys.iter().map(|(key, _)| place(key).unwrap_or(named.len())).collect();
        let there: Vec<usize> =
            places.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let taken = named.iter().any(|class| class.name == OTHER);
        let rest = if taken { format!("{OTHER} (of no class)") } else { OTHER.to_owned() };
        let name = |place: &usize| named.get(*place).map_or(&rest, |class| &class.name).clone();
        let classes = there.iter().map(name).collect();
        let numbers = places.iter().map(|place| there.partition_point(|p| p < place) as u32);
        Self { classes, numbers: numbers.collect(), merged: 0 }
    }
}

/// What classes are called: the values of their columns, in quotes where that could mean another class, too.
fn shown(keys: &[&Key]) -> Vec<String> {
    let mut names: Vec<String> = keys.iter().map(|key| joined(key)).collect();
    let mut quotes = vec![false; keys.len()];
    loop {
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        names.iter().for_each(|name| *uses.entry(name).or_default() += 1);
        let unclear: Vec<usize> = (0..keys.len())
            .filter(|i| {
                let name = names[*i].as_str();
                let taken = uses[name] > 1 || name == OTHER || name == ALL;
                !quotes[*i] && taken && !keys[*i].is_empty()
            })
            .collect();
        // In quotes no two are the same, but one may look like another that is not: until all are clear.
        if unclear.is_empty() {
            return names;
        }
        for i in unclear {
            names[i] = quoted(keys[i]);
            quotes[i] = true;
        }
    }
}

/// What all rows together are called.
const ALL: &str = "all";
/// What is shown of a value that is unknown.
const UNKNOWN: &str = "(unknown)";

fn joined(key: &[Option<String>]) -> String {
    if key.is_empty() {
        return ALL.to_owned();
    }
    let shown: Vec<&str> = key.iter().map(|value| value.as_deref().unwrap_or(UNKNOWN)).collect();
    shown.join(", ")
}

fn quoted(key: &[Option<String>]) -> String {
    let shown: Vec<String> = key
        .iter()
        .map(|value| value.as_ref().map_or(UNKNOWN.to_owned(), |value| format!("{value:?}")))
        .collect();
    shown.join(", ")
}

/// Names of a batch.
struct Names<'a> {
    codes: Codes<'a, u32>,
    names: Vec<String>,
}

impl<'a> Names<'a> {
    fn of(batch: &'a Columns, column: &str) -> Result<Self, String> {
        let mut names = Vec::new();
        let codes = Codes::of(batch, column, |name| {
            names.push(name.to_owned());
            (names.len() - 1) as u32
        })?;
        Ok(Self { codes, names })
    }

    fn name(&self, code: u32) -> String {
        self.names[code as usize].clone()
    }
}

/// Which rows of a batch are meant.
pub(super) enum Mask {
    All,
    None,
    These(Vec<bool>),
}

impl Mask {
    pub(super) fn has(&self, i: usize) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::These(rows) => rows[i],
        }
    }
}

/// Rows that are demand on a model: neither was a cache of whole answers asked instead, nor do they stand for no request.
pub(super) struct Demand<'a> {
    whole_answer: Flags<'a>,
    weight: Reals<'a>,
}

impl<'a> Demand<'a> {
    pub(super) fn of(batch: &'a Columns) -> Result<Self, String> {
        Ok(Self {
            whole_answer: Flags::of(batch, "response_cached")?,
            weight: Reals::of(batch, "sample_weight")?,
        })
    }

    pub(super) fn has(&self, i: usize) -> bool {
        self.whole_answer.get(i) != Some(true) && self.weight.get(i) != Some(0.0)
    }
}

/// Rows that have the clock that is common to all.
pub(super) fn on_clock(batch: &Columns, clock: &Option<String>) -> Result<Mask, String> {
    let Some(clock) = clock else { return Ok(Mask::None) };
    let own = Codes::of(batch, "clock", |name| name == clock)?;
    let unsaid = clock == UTC;
    Ok(Mask::These((0..batch.rows).map(|i| own.get(i).unwrap_or(unsaid)).collect()))
}

fn kept(batch: &Columns, only: &[(String, String)]) -> Result<Mask, String> {
    if only.is_empty() {
        return Ok(Mask::All);
    }
    let mut rows = vec![true; batch.rows];
    for (column, value) in only {
        let pattern = WildMatch::new(value);
        let own = Codes::of(batch, column, |name| pattern.matches(name))?;
        rows.iter_mut().enumerate().for_each(|(i, keep)| *keep &= own.get(i).unwrap_or(false));
    }
    Ok(Mask::These(rows))
}

/// The class of each row of a batch.
pub(super) enum ClassOf {
    One,
    These(Vec<u32>),
}

impl ClassOf {
    pub(super) fn get(&self, i: usize) -> u32 {
        match self {
            Self::One => 0,
            Self::These(classes) => classes[i],
        }
    }
}

/// The client of each row of a batch: its tenant, else its user.
pub(super) struct ClientOf<'a> {
    tenant: Codes<'a, Option<u32>>,
    user: Codes<'a, Option<u32>>,
}

impl ClientOf<'_> {
    pub(super) fn get(&self, i: usize) -> Option<u32> {
        self.tenant.get(i).or_else(|| self.user.get(i)).flatten()
    }
}

impl Survey {
    /// A survey of rows that somebody else has looked at, such as a cluster.
    pub fn of_keys(
        clocks: BTreeMap<String, OnClock>,
        clients: BTreeSet<String>,
        keys: BTreeMap<Vec<Option<String>>, u64>,
        columns: Vec<String>,
        input: &ScanInput,
    ) -> Self {
        Found { clocks, clients, keys }.conclude(columns, input)
    }

    /// Every combination of values, and the number of its class.
    pub fn keys(&self) -> Vec<(Vec<Option<String>>, usize)> {
        let named = |key: &[Option<u32>]| {
            let names = key.iter().zip(&self.values);
            names.map(|(value, names)| value.map(|i| names[i as usize].clone())).collect()
        };
        self.class_of.iter().map(|(key, class)| (named(key), *class as usize)).collect()
    }

    /// What a scan comes to whose rows were summed elsewhere: what prompts share and how tasks ended is not known.
    pub fn scanned(self, gathered: Gathered, response_cached: u64) -> Scanned {
        let mut notes = self.clock_notes();
        notes.extend(super::notes(response_cached, self.merged));
        Scanned {
            gathered,
            first_ns: self.first_ns,
            clock: self.first_ns.filter(|_| self.is_absolute()).and_then(clock_at),
            no_clock: self.clock.is_none().then(|| self.why_no_clock()),
            classes: self.classes,
            clients: self.clients,
            reuse: None,
            outcomes: None,
            notes,
        }
    }
}

impl Survey {
    /// The first and the last arrival on the common clock.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        self.clocks.get(self.clock.as_ref()?).map(|own| (own.first_ns, own.last_ns))
    }

    /// Whether the common clock is that of everybody.
    pub(super) fn is_absolute(&self) -> bool {
        self.clock.as_deref() == Some(UTC)
    }

    /// Columns, and those that classes and filters need.
    pub(super) fn with<'a>(&'a self, columns: &[&'a str]) -> BTreeSet<&'a str> {
        let own = self.columns.iter().chain(self.only.iter().map(|(column, _)| column));
        columns.iter().copied().chain(own.map(String::as_str)).collect()
    }

    /// Why rows have no clock in common.
    pub(super) fn why_no_clock(&self) -> String {
        if self.clocks.contains_key("session") {
            "every session counts from its own start".to_owned()
        } else {
            "the log does not say when requests came".to_owned()
        }
    }

    /// What should be known of rows that have another clock than the common one.
    pub(super) fn clock_notes(&self) -> Vec<String> {
        let others = self.clocks.iter().filter(|(clock, _)| Some(*clock) != self.clock.as_ref());
        others
            .map(|(clock, OnClock { rows, .. })| match clock.as_str() {
                OWN_START => format!("{rows} requests count from the start of their log, and have no place among those with a date"),
                "session" => format!("{rows} requests count from the start of their session, and have no place on a common clock"),
                other => format!("{rows} requests have the clock `{other}`"),
            })
            .collect()
    }

    pub(super) fn kept(&self, batch: &Columns) -> Result<Mask, String> {
        kept(batch, &self.only)
    }

    pub(super) fn class_of(&self, batch: &Columns) -> Result<ClassOf, String> {
        if self.columns.is_empty() {
            return Ok(ClassOf::One);
        }
        let mut columns: Vec<Codes<'_, Option<u32>>> = Vec::new();
        for (column, values) in self.columns.iter().zip(&self.values) {
            columns.push(Codes::of(batch, column, |name| {
                let place = values.binary_search_by(|value| value.as_str().cmp(name));
                place.ok().and_then(|i| u32::try_from(i).ok())
            })?);
        }
        let mut last: Option<(Vec<Option<u32>>, u32)> = None;
        let mut classes = Vec::with_capacity(batch.rows);
        for i in 0..batch.rows {
            let same = last.as_ref().filter(|(key, _)| {
                key.iter().zip(&columns).all(|(value, column)| *value == column.get(i).flatten())
            });
            let class = match same {
                Some((_, class)) => *class,
                None => {
                    let key: Vec<Option<u32>> =
                        columns.iter().map(|c| c.get(i).flatten()).collect();
                    let class = self.class_of.get(&key).copied().unwrap_or(0);
                    last = Some((key, class));
                    class
                }
            };
            classes.push(class);
        }
        Ok(ClassOf::These(classes))
    }

    pub(super) fn client_of<'a>(&self, batch: &'a Columns) -> Result<ClientOf<'a>, String> {
        let place = |name: &str| {
            let place = self.clients.binary_search_by(|client| client.as_str().cmp(name));
            place.ok().and_then(|i| u32::try_from(i).ok())
        };
        Ok(ClientOf {
            tenant: Codes::of(batch, "tenant", place)?,
            user: Codes::of(batch, "user", place)?,
        })
    }
}
