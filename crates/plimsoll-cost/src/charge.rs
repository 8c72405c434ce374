//! What was paid.

use plimsoll_units::Usd;

/// What money was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expense {
    /// Devices without a commitment.
    ComputeOnDemand,
    /// Devices with one.
    ComputeReserved,
    /// Devices that may be reclaimed.
    ComputeSpot,
    /// Devices that were bought: written off, with their power and place.
    ComputeOwned,
    /// Disks and object stores.
    Storage,
    /// Links and load balancers.
    Network,
    /// What leaves.
    Egress,
    /// Tokens of hosted models.
    ProviderTokens,
    /// Calls of tools.
    Tools,
    /// Logs, metrics and traces.
    Observability,
    /// Judges and test sets.
    Evaluation,
    /// People.
    Engineering,
    /// Fees of a commitment, used or not.
    Commitment,
    /// Taxes.
    Tax,
    /// Credits and refunds: the only negative lines.
    Credit,
    /// Anything else.
    Other,
}

impl Expense {
    /// As results call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ComputeOnDemand => "compute_on_demand",
            Self::ComputeReserved => "compute_reserved",
            Self::ComputeSpot => "compute_spot",
            Self::ComputeOwned => "compute_owned",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Egress => "egress",
            Self::ProviderTokens => "provider_tokens",
            Self::Tools => "tools",
            Self::Observability => "observability",
            Self::Evaluation => "evaluation",
            Self::Engineering => "engineering",
            Self::Commitment => "commitment",
            Self::Tax => "tax",
            Self::Credit => "credit",
            Self::Other => "other",
        }
    }

    /// Whether devices are paid for, an hour at a time.
    pub const fn is_compute(self) -> bool {
        matches!(
            self,
            Self::ComputeOnDemand | Self::ComputeReserved | Self::ComputeSpot | Self::ComputeOwned
        )
    }

    /// Whether one more request makes it larger.
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::ProviderTokens | Self::Tools | Self::Egress)
    }
}

/// One thing that was paid for in the period.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// What tables call it.
    pub name: String,
    /// What it was for.
    pub expense: Expense,
    /// The pool or provider that it belongs to, as a place in [`crate::Usage::places`].
    pub place: Option<u32>,
    /// How much. What is below zero is a credit, whatever it calls itself.
    pub usd: Usd,
    /// For devices: which hours it bought.
    pub devices: Option<Devices>,
    /// The price behind it.
    pub price: Option<PriceTag>,
    /// Whether somebody sent an invoice for it; otherwise it is hours or tokens times a price.
    pub invoiced: bool,
}

impl Charge {
    /// What it was for, credits told apart by their sign.
    pub fn expense(&self) -> Expense {
        if self.usd < Usd::ZERO { Expense::Credit } else { self.expense }
    }

    /// Device-hours that it bought.
    pub fn device_hours(&self) -> Option<f64> {
        let devices = self.devices.as_ref()?;
        let all: f64 = devices.replicas.iter().chain(&devices.spare).sum();
        Some(all * devices.per_replica)
    }
}

/// Devices, hour by hour of the period.
#[derive(Clone, Debug, PartialEq)]
pub struct Devices {
    /// Devices of one replica.
    pub per_replica: f64,
    /// Replicas that were paid for in each hour; hours past the end have none.
    pub replicas: Vec<f64>,
    /// Of these, what stands in reserve.
    pub reserve: Vec<f64>,
    /// Replicas that would fit on devices which were paid for, since nodes are whole, and on which none runs: idle whatever comes.
    pub spare: Vec<f64>,
    /// Sequences that a busy replica decodes together, by its model: what turns measured seconds of decoding into seconds of a device. Where it
    /// is not known, measured times are not used.
    pub batch: Option<f64>,
}

/// Where a price is from.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceTag {
    /// What a unit costs, in dollars, and of what: a device-hour, a million tokens.
    pub unit: Option<(f64, &'static str)>,
    /// Where it was read.
    pub source: String,
    /// When it held; unknown where nobody says.
    pub as_of: Option<String>,
    /// Where it holds.
    pub region: Option<String>,
}
