//! The same demand on devices of one's own and on a hosted model.

use crate::usage::TokenTable;

/// What an hour asks for, in sums over the hour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HourDemand {
    /// Requests.
    pub requests: f64,
    /// Prompt tokens that are not cached.
    pub fresh: f64,
    /// Prompt tokens that are.
    pub cached: f64,
    /// Output tokens.
    pub output: f64,
    /// Output tokens that requests ask for at most.
    pub reserved_output: f64,
}

/// What a provider lets through in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderLimits {
    /// Requests.
    pub rpm: Option<u64>,
    /// Tokens of both kinds.
    pub tpm: Option<u64>,
    /// Prompt tokens.
    pub itpm: Option<u64>,
    /// Output tokens.
    pub otpm: Option<u64>,
    /// Whether cached prompt tokens count.
    pub counts_cached: bool,
    /// Whether the most that a request may write counts, not what it writes.
    pub reserves_max_tokens: bool,
}

/// A limit against what is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitUse {
    /// `rpm`, `tpm`, `itpm` or `otpm`.
    pub name: &'static str,
    /// What a minute lets through.
    pub limit: u64,
    /// What a mean minute of the busiest hour asks for. Minutes within it ask for more.
    pub peak: f64,
    /// Which hour that is.
    pub hour: usize,
    /// Hours that ask for more than the limit.
    pub hours_over: usize,
}

impl LimitUse {
    /// How often what is asked for fills the limit; above one it binds.
    pub fn fill(&self) -> f64 {
        self.peak / self.limit as f64
    }
}

/// A demand, bought.
#[derive(Clone, Debug, PartialEq)]
pub struct Bought {
    /// What the hours cost.
    pub usd: f64,
    /// Limits, the fullest first.
    pub limits: Vec<LimitUse>,
}

/// What the hours of each class cost at the prices of a provider, and which of its limits they exceed. Each class is priced by its mean
/// prompt, where prices depend on its length. In a batch queue, where there is one, as `batch` says for each class.
pub fn buy(
    classes: &[(bool, Vec<HourDemand>)],
    table: &TokenTable,
    limits: &ProviderLimits,
) -> Bought {
    let mut usd = 0.0;
    let mut hours: Vec<HourDemand> = Vec::new();
    for (batch, class) in classes {
        let table = table.batch.as_deref().filter(|_| *batch).unwrap_or(table);
        for (i, hour) in class.iter().enumerate() {
            usd += usd_of(table, hour);
            if hours.len() <= i {
                hours.push(HourDemand::default());
            }
            hours[i].add(hour);
        }
    }
    let prompt = |hour: &HourDemand| match limits.counts_cached {
        true => hour.fresh + hour.cached,
        false => hour.fresh,
    };
    let output = |hour: &HourDemand| match limits.reserves_max_tokens {
        true => hour.reserved_output.max(hour.output),
        false => hour.output,
    };
    let mut uses: Vec<LimitUse> = Vec::new();
    let mut hold = |name, limit: Option<u64>, of: &dyn Fn(&HourDemand) -> f64| {
        let Some(limit) = limit else { return };
        let mut used = LimitUse { name, limit, peak: 0.0, hour: 0, hours_over: 0 };
        for (i, hour) in hours.iter().enumerate() {
            let minute = of(hour) / 60.0;
            if minute > used.peak {
                (used.peak, used.hour) = (minute, i);
            }
            used.hours_over += usize::from(minute > limit as f64);
        }
        uses.push(used);
    };
    hold("rpm", limits.rpm, &|hour| hour.requests);
    hold("tpm", limits.tpm, &|hour| prompt(hour) + output(hour));
    hold("itpm", limits.itpm, &prompt);
    hold("otpm", limits.otpm, &output);
    // A stable order: the first of those that are as full.
    uses.sort_by(|a, b| b.fill().total_cmp(&a.fill()));
    Bought { usd, limits: uses }
}

/// What an hour of a class costs, or one request: all of it by the prices that its mean prompt has, in dollars.
pub fn usd_of(table: &TokenTable, hour: &HourDemand) -> f64 {
    let prompt = (hour.fresh + hour.cached) / hour.requests.max(f64::MIN_POSITIVE);
    let tier = table.above.iter().filter(|(above, _)| prompt > *above as f64);
    let table = tier.max_by_key(|(above, _)| *above).map_or(table, |(_, table)| table);
    let each = |price: plimsoll_units::UsdPerToken| price.get_picos() as f64 / 1e12;
    hour.fresh * each(table.input)
        + hour.cached * each(table.cached_input)
        + hour.output * each(table.output)
}

impl HourDemand {
    /// Adds what others ask for.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.fresh += other.fresh;
        self.cached += other.cached;
        self.output += other.output;
        self.reserved_output += other.reserved_output;
    }
}

/// Devices of one's own against the same bought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BuildOrBuy {
    /// What the devices cost, whatever comes.
    pub own_usd: f64,
    /// What the tokens cost.
    pub bought_usd: f64,
    /// As many times this demand cost as much bought as the devices do: above one, buying is cheaper today. None where tokens are free.
    pub break_even_demand: Option<f64>,
    /// The share of their time at which the devices cost as much as tokens, were the demand to fill them so far. None where tokens are free, and
    /// where even full devices cost more.
    pub break_even_utilisation: Option<f64>,
    /// Whether a limit keeps the demand from being bought as it is.
    pub limited: bool,
}

/// Compares devices that are busy for `utilisation` of their time with the same demand bought.
pub fn build_or_buy(own_usd: f64, utilisation: f64, bought: &Bought) -> BuildOrBuy {
    let times = (bought.usd > 0.0).then(|| own_usd / bought.usd);
    BuildOrBuy {
        own_usd,
        bought_usd: bought.usd,
        break_even_demand: times,
        break_even_utilisation: times.map(|n| n * utilisation).filter(|busy| *busy <= 1.0),
        limited: bought.limits.iter().any(|used| used.hours_over > 0),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::UsdPerToken;

    use super::*;

    fn table(input: u64, output: u64) -> TokenTable {
        TokenTable {
            input: UsdPerToken::picos(input),
            cached_input: UsdPerToken::picos(input / 10),
            cache_write: UsdPerToken::picos(input),
            output: UsdPerToken::picos(output),
            above: Vec::new(),
            batch: None,
        }
    }

    fn hour(requests: f64, prompt: f64) -> HourDemand {
        let all = requests * prompt;
        HourDemand {
            requests,
            fresh: all * 0.5,
            cached: all * 0.5,
            output: requests * 100.0,
            reserved_output: requests * 1000.0,
        }
    }

    /// 6,000 requests of 1,000 prompt tokens, half of them cached, and 100 of output, at $2, $0.20 and $10 a million: $6 + $0.60 + $6.
    #[test]
    fn by_hand() {
        let bought = buy(
            &[(false, vec![hour(6000.0, 1000.0)])],
            &table(2_000_000, 10_000_000),
            &ProviderLimits::default(),
        );
        assert!((bought.usd - 12.6).abs() < 1e-9);
        let choice = build_or_buy(25.2, 0.3, &bought);
        assert!((choice.break_even_demand.unwrap() - 2.0).abs() < 1e-9);
        assert!((choice.break_even_utilisation.unwrap() - 0.6).abs() < 1e-9);
        assert_eq!(build_or_buy(25.2, 0.6, &bought).break_even_utilisation, None);
    }

    /// A prompt above the threshold is priced as such, all of it; a batch queue has its own prices.
    #[test]
    fn tiers_and_queues() {
        let mut prices = table(2_000_000, 10_000_000);
        prices.above = vec![(500, table(4_000_000, 20_000_000)), (5000, table(0, 0))];
        let none = ProviderLimits::default();
        let usd = |batch: bool, prices: &TokenTable| {
            buy(&[(batch, vec![hour(6000.0, 1000.0)])], prices, &none).usd
        };
        assert!((usd(false, &prices) - 25.2).abs() < 1e-9);
        prices.batch = Some(Box::new(table(1_000_000, 5_000_000)));
        assert!((usd(true, &prices) - 6.3).abs() < 1e-9);
        assert!((usd(true, &table(2_000_000, 10_000_000)) - 12.6).abs() < 1e-9);
    }

    /// What is reserved counts where a provider reserves, and what is cached where it counts that.
    #[test]
    fn limits_as_providers_count() {
        let hours = vec![hour(600.0, 1000.0), hour(6000.0, 1000.0)];
        let limits = ProviderLimits {
            rpm: Some(200),
            tpm: None,
            itpm: Some(60_000),
            otpm: Some(50_000),
            counts_cached: true,
            reserves_max_tokens: true,
        };
        let uses = buy(&[(false, hours.clone())], &table(1, 1), &limits).limits;
        let fills: Vec<(&str, f64, usize, usize)> =
            uses.iter().map(|u| (u.name, u.peak, u.hour, u.hours_over)).collect();
        assert_eq!(
            fills,
            [("otpm", 100_000.0, 1, 1), ("itpm", 100_000.0, 1, 1), ("rpm", 100.0, 1, 0)]
        );
        let lenient = ProviderLimits { counts_cached: false, reserves_max_tokens: false, ..limits };
        let uses = buy(&[(false, hours)], &table(1, 1), &lenient).limits;
        assert!(uses.iter().all(|used| used.hours_over == 0));
        assert_eq!(uses[0].name, "itpm");
    }
}
