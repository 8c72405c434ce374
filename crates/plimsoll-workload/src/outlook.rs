//! What will be asked, with how far it may be off: what a forecast gives and a plan takes.

use plimsoll_stats::{normal_quantile, three_point_quantile};

/// A demand ahead, step by step and quantile by quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// When the first step begins, in seconds: from 1970 (UTC), or from the start of the log.
    pub start_s: i64,
    /// How long a step is.
    pub step_s: u32,
    /// Whether `start_s` counts from 1970.
    pub absolute: bool,
    /// All classes together first, then each.
    pub classes: Vec<ClassOutlook>,
}

/// The demand of a class ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOutlook {
    /// What it is called; none for all of them together.
    pub class: Option<String>,
    /// What is known of each quantity; one that the history does not tell is not there.
    pub series: Vec<(Quantity, Vec<Quantiles>)>,
}

/// What demand is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Requests a second, first attempts only.
    Requests,
    /// Prompt tokens a second, cached ones included.
    PromptTokens,
    /// Prompt tokens a second that are not cached.
    FreshTokens,
    /// Output tokens a second.
    OutputTokens,
    /// The share of prompt tokens that are cached.
    CachedShare,
    /// Tokens in KV memory at a time.
    ResidentTokens,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Requests,
        Self::PromptTokens,
        Self::FreshTokens,
        Self::OutputTokens,
        Self::CachedShare,
        Self::ResidentTokens,
    ];

    /// As files and tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::PromptTokens => "prompt_tokens",
            Self::FreshTokens => "fresh_tokens",
            Self::OutputTokens => "output_tokens",
            Self::CachedShare => "cached_share",
            Self::ResidentTokens => "resident_kv_tokens",
        }
    }

    /// What it is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Requests => "requests/s",
            Self::PromptTokens | Self::FreshTokens | Self::OutputTokens => "tokens/s",
            Self::CachedShare => "share",
            Self::ResidentTokens => "tokens",
        }
    }

    /// The quantity of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }
}

/// Values that are exceeded with one minus the level, for each of [`Quantiles::LEVELS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles(pub [f64; 6]);

impl Quantiles {
    /// The levels.
    pub const LEVELS: [f64; 6] = [0.5, 0.8, 0.9, 0.95, 0.975, 0.99];

    /// The value at any level from the median on: between two that are known on a normal scale, beyond the last as steep as before it.
    /// Below the median it is the median.
    pub fn at(&self, level: f64) -> f64 {
        let z = normal_quantile(level.clamp(0.5, 0.9999));
        let places = Self::LEVELS.map(normal_quantile);
        let above = places.iter().position(|place| z <= *place).unwrap_or(5).max(1);
        let (from, to) = (places[above - 1], places[above]);
        let (low, high) = (self.0[above - 1], self.0[above]);
        low + (high - low) * (z - from) / (to - from)
    }
}

impl Outlook {
    /// The series of a quantity: of a class, or of all of them.
    pub fn series(&self, class: Option<&str>, quantity: Quantity) -> Option<&[Quantiles]> {
        let own = self.classes.iter().find(|own| own.class.as_deref() == class)?;
        let found = own.series.iter().find(|(of, _)| *of == quantity)?;
        Some(&found.1)
    }

    /// When a step begins.
    pub fn at_s(&self, step: usize) -> i64 {
        let steps = i64::try_from(step).unwrap_or(i64::MAX);
        self.start_s.saturating_add(i64::from(self.step_s).saturating_mul(steps))
    }
}

/// A multiplier that nobody knows exactly: its 5th, 50th and 95th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreePoint {
    /// One in twenty is below.
    pub low: f64,
    /// As many are below as above.
    pub likely: f64,
    /// One in twenty is above.
    pub high: f64,
}

impl ThreePoint {
    /// Nothing changes.
    pub const ONE: Self = Self { low: 1.0, likely: 1.0, high: 1.0 };

    /// A quantile of it.
    pub fn quantile(self, level: f64) -> f64 {
        three_point_quantile(self.low, self.likely, self.high, level)
    }
}

/// What somebody knows that no history tells: a launch, a holiday, a migration.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it is called.
    pub name: String,
    /// When it begins, on the clock of the history.
    pub from_s: i64,
    /// When it ends; none where it stays.
    pub until_s: Option<i64>,
    /// The classes it concerns; none for all.
    pub classes: Vec<String>,
    /// Multiplies the rate.
    pub rate: ThreePoint,
    /// Multiplies prompt lengths.
    pub prompt: ThreePoint,
    /// Multiplies output lengths.
    pub output: ThreePoint,
    /// Multiplies the share of prompts that is cached.
    pub cache_hit: ThreePoint,
}

impl Change {
    /// Whether it concerns a class at a time.
    pub fn holds(&self, class: &str, at_s: i64) -> bool {
        let concerned = self.classes.is_empty() || self.classes.iter().any(|own| own == class);
        concerned && at_s >= self.from_s && self.until_s.is_none_or(|until| at_s < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_between_and_beyond() {
        let six = Quantiles([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        for (level, value) in Quantiles::LEVELS.into_iter().zip(six.0) {
            assert!((six.at(level) - value).abs() < 1e-9, "{level}");
        }
        assert_eq!(six.at(0.1), 10.0);
        assert!(six.at(0.93) > 30.0 && six.at(0.93) < 40.0);
        assert!(six.at(0.999) > 60.0);
    }

    #[test]
    fn names_lead_back() {
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::of_name(quantity.name()), Some(quantity));
        }
        assert_eq!(Quantity::of_name("tokens"), None);
    }
}
