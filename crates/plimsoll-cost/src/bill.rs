//! What was invoiced.

use plimsoll_units::Usd;

/// What a line of a bill is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeKind {
    /// Devices and the servers around them.
    Compute,
    /// Disks and object stores.
    Storage,
    /// Links and what leaves them.
    Network,
    /// Tokens of hosted models.
    Tokens,
    /// Logs, metrics and traces.
    Observability,
    /// Fees of a commitment, used or not.
    Commitment,
    /// Taxes.
    Tax,
    /// Credits and refunds, which are negative.
    Credit,
    /// Anything else.
    Other,
}

/// One line of a bill, in dollars.
#[derive(Clone, Debug, PartialEq)]
pub struct BillLine {
    /// What it is for.
    pub kind: ChargeKind,
    /// The service, as the bill calls it.
    pub service: String,
    /// What was charged, in words of the bill.
    pub description: String,
    /// The resource; none where the bill does not say.
    pub resource: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// On demand, reserved (a commitment), spot; none where the bill does not say.
    pub pricing: Option<String>,
    /// Whose account.
    pub account: Option<String>,
    /// The beginning of what it is for, in seconds from 1970.
    pub from_s: i64,
    /// Its end.
    pub until_s: i64,
    /// What was billed.
    pub billed: Usd,
    /// What it comes to once prepaid commitments are spread over their use; as `billed` where the bill does not say.
    pub effective: Usd,
    /// At list prices; none where the bill does not say.
    pub list: Option<Usd>,
    /// How much was used, and of what.
    pub quantity: Option<(f64, String)>,
    /// Its line in the file.
    pub line: u64,
}

/// A bill, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Bill {
    /// `focus` with its version where that is known, `aws-cur` or `aws-cur-2`.
    pub format: String,
    /// The currency that it was written in; amounts are dollars by now.
    pub currency: String,
    /// Dollars for one unit of the currency; 1 for dollars.
    pub usd_per_unit: f64,
    /// Lines that were understood.
    pub lines: Vec<BillLine>,
    /// Lines that were not, with the reason; none of them is in a sum.
    pub rejects: Vec<(u64, String)>,
    /// What the reader should know: periods that overlap, lines that appear twice.
    pub notes: Vec<String>,
}
