//! The books: what was paid, who used it, and what one success costs.
//!
//! **Owns** usage counted in a form that money can be split by ([`Usage`]), what serves it and at which price ([`Place`]), what was paid
//! ([`Charge`]), the books that make lines of it and close ([`books()`]), what one success costs, and bills ([`Bill`]).
//! **Refuses** files, choosing a fleet, and inventing a price: what nobody can price is a line of its own with its reason.
//!
//! ```
//! use plimsoll_cost::split;
//! use plimsoll_units::Usd;
//!
//! // A dollar for three: nothing is lost, nothing is made.
//! let parts = split(Usd::micros(1_000_000), &[1.0, 1.0, 1.0]).ok_or("no weights")?;
//! assert_eq!(parts.iter().copied().sum::<Usd>(), Usd::micros(1_000_000));
//! assert_eq!(parts[0], Usd::micros(333_334));
//! # Ok::<(), &str>(())
//! ```

mod bill;
mod books;
mod buy;
mod charge;
mod commitment;
mod price_lints;
mod split;
mod success;
mod unit;
mod usage;

pub use bill::{Bill, BillLine, ChargeKind};
pub use books::{Books, CostError, Kind, Line, METHOD, Phase, Share, Shares, books};
pub use buy::{
    Bought, BuildOrBuy, HourDemand, LimitUse, ProviderLimits, build_or_buy, buy, usd_of,
};
pub use charge::{Charge, Devices, Expense, PriceTag};
pub use commitment::{Commitment, Uncertain};
pub use price_lints::{PriceLint, PriceRow, price_lints};
pub use split::split;
pub use success::{Factors, PerSuccess, per_success};
pub use unit::{UnitCosts, unit_costs, unit_costs_of_all};
pub use usage::{
    Dimension, End, Key, Period, Place, Pricing, Sums, Table, Tasks, TokenTable, Usage, Work,
};
