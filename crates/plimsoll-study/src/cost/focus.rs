//! Lines by tenant, as rows of a FOCUS 1.3 table: one for each meter.

use plimsoll_cost::{
    Charge, Dimension, End, Expense, Key, Kind, Line, METHOD, Phase, Pricing, Shares, Sums, Table,
};

use super::charges;
use super::result::Cost;

/// A row. What is not known is none, and stays empty.
#[derive(Clone, Debug, PartialEq)]
pub struct FocusRow {
    /// What it costs, in whole micro-dollars; rows sum to the books.
    pub microusd: i64,
    /// Who pays.
    pub tenant: Option<String>,
    /// `Usage`, `Tax`, `Credit` or `Purchase`.
    pub category: &'static str,
    /// In words.
    pub description: String,
    /// The pool or provider.
    pub place: Option<String>,
    /// `pool` or `hosted model`.
    pub place_kind: Option<&'static str>,
    /// Where.
    pub region: Option<String>,
    /// `input`, `cache_read`, `output` or `gpu_hours`.
    pub meter: &'static str,
    /// `Standard`, `Committed`, `Dynamic` or `Other`.
    pub pricing: &'static str,
    /// Device-hours of it.
    pub device_hours: Option<f64>,
    /// Tokens of it; none where nothing was used.
    pub tokens: Option<f64>,
    /// Whether a reservation was used, where it is of one.
    pub reservation: Option<&'static str>,
    /// How it was split; none where it was not.
    pub method: Option<&'static str>,
    /// What it was split by.
    pub why: String,
    /// What it is in the books.
    pub kind: &'static str,
    /// What was paid for.
    pub line: &'static str,
    /// Tasks of the tenant, on its first row only, so that they may be summed.
    pub tasks: Option<u64>,
    /// Those that are known to have succeeded.
    pub successes: Option<u64>,
    /// How attempts ended that did not succeed.
    pub end: Option<&'static str>,
}

/// The rows of a period, by tenant where rows have one.
pub fn focus_rows(cost: &Cost) -> Vec<FocusRow> {
    let (books, usage) = (&cost.books, &cost.usage);
    let (shares, table): (&Shares, &Table) =
        match (books.by.get(&Dimension::Tenant), usage.by.get(&Dimension::Tenant)) {
            (Some(shares), Some(table)) => (shares, table),
            _ => (&books.all, &usage.all),
        };
    let mut told = vec![false; shares.values.len()];
    let mut rows = Vec::new();
    for (line, parts) in books.lines.iter().zip(&shares.split) {
        let charge = line.charge.and_then(|i| cost.charges.get(i));
        let whole = line.usd.get_micros();
        if parts.is_empty() {
            rows.push(row(cost, line, charge, whole));
            continue;
        }
        for (i, usd) in parts.iter().enumerate().filter(|(_, usd)| usd.get_micros() != 0) {
            let share = &shares.values[i];
            let part = usd.get_micros() as f64 / whole as f64;
            let first = !std::mem::replace(&mut told[i], true);
            let split = parts.len() > 1;
            rows.push(FocusRow {
                microusd: usd.get_micros(),
                tenant: share.value.clone(),
                device_hours: line.device_hours.map(|hours| hours * part),
                tokens: tokens(line, table, i),
                method: split.then_some(METHOD),
                tasks: first.then_some(share.tasks.tasks),
                successes: first.then_some(share.tasks.succeeded),
                ..row(cost, line, charge, 0)
            });
        }
    }
    rows
}

fn row(cost: &Cost, line: &Line, charge: Option<&Charge>, microusd: i64) -> FocusRow {
    let place = line.place.and_then(|i| charges::place(&cost.usage, i));
    let unused = matches!(line.kind, Kind::Idle | Kind::Reserve);
    let used = line.expense.is_compute() && line.kind != Kind::Unallocated;
    FocusRow {
        microusd,
        tenant: None,
        category: match line.expense {
            Expense::Tax => "Tax",
            Expense::Credit => "Credit",
            Expense::Commitment => "Purchase",
            _ => "Usage",
        },
        description: line.name.clone(),
        place: place.map(|place| place.name.clone()),
        place_kind: place.map(|place| match place.pricing {
            Pricing::Devices(_) => "pool",
            Pricing::Tokens(_) | Pricing::Unpriced => "hosted model",
        }),
        region: charge.and_then(|c| c.price.as_ref()?.region.clone()),
        meter: match line.phase {
            Some(Phase::Prefill) => "input",
            Some(Phase::Cached) => "cache_read",
            Some(Phase::Decode) => "output",
            _ if line.expense.is_compute() => "gpu_hours",
            _ => line.expense.name(),
        },
        pricing: match line.expense {
            Expense::ComputeReserved | Expense::Commitment => "Committed",
            Expense::ComputeSpot => "Dynamic",
            Expense::ComputeOwned => "Other",
            _ => "Standard",
        },
        device_hours: line.device_hours,
        tokens: None,
        reservation: match (used, unused) {
            (true, true) => Some("Unused"),
            (true, false) => Some("Used"),
            _ => None,
        },
        method: None,
        why: line.why.clone(),
        kind: line.kind.name(),
        line: line.expense.name(),
        tasks: None,
        successes: None,
        end: line.end.map(super::ended),
    }
}

/// Tokens of a value that a line is for.
fn tokens(line: &Line, table: &Table, value: usize) -> Option<f64> {
    let of: fn(&Sums) -> f64 = match line.phase? {
        Phase::Prefill => |sums| sums.fresh,
        Phase::Cached => |sums| sums.cached,
        Phase::Decode => |sums| sums.output,
        // Reading context makes no token.
        Phase::Kv => return None,
    };
    let same = |key: &&Key| {
        let ended = match line.end {
            Some(end) => key.end == end,
            None => matches!(key.end, End::Ok | End::Unknown),
        };
        usize::try_from(key.value).is_ok_and(|v| v == value) && key.place == line.place && ended
    };
    let keys = table.cells.keys().filter(same);
    Some(keys.map(|key| of(&table.cells[key])).sum())
}
