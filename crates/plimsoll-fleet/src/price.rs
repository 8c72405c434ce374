//! What things cost, where and when.

use plimsoll_units::{UsdPerHour, UsdPerToken};

use crate::fact::Fact;

/// The list price of a whole node in a region.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePrice {
    /// The instance's name.
    pub instance: String,
    /// As the cloud calls it.
    pub region: String,
    /// Without commitment.
    pub on_demand: UsdPerHour,
    /// Reclaimable, where it was published.
    pub spot: Option<UsdPerHour>,
    /// With a commitment, where it was published or negotiated.
    pub reserved: Option<UsdPerHour>,
    /// Source and date.
    pub fact: Fact,
}

/// The list price of a hosted model's tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenPrice {
    /// Who hosts it.
    pub provider: String,
    /// As the provider calls it.
    pub model: String,
    /// A prompt token that was not cached.
    pub input: UsdPerToken,
    /// A prompt token read from the provider's cache.
    pub cached_input: Option<UsdPerToken>,
    /// A generated token.
    pub output: UsdPerToken,
    /// The same in a batch queue.
    pub batch_input: Option<UsdPerToken>,
    /// The same in a batch queue.
    pub batch_output: Option<UsdPerToken>,
    /// Source and date.
    pub fact: Fact,
}
