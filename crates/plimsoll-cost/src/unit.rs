//! What one of anything costs.

use plimsoll_units::Usd;

use crate::books::{Share, Shares};
use crate::usage::Sums;

/// What requests and tokens cost; none where there were none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCosts {
    /// All that was paid, for each attempt.
    pub request_usd: Option<f64>,
    /// Reading a million fresh prompt tokens, without idle time and what everybody shares; so below.
    pub fresh_usd_per_mtok: Option<f64>,
    /// A million cached prompt tokens: what a hosted model charges for them, and the share of KV reads that they cause on devices.
    pub cached_usd_per_mtok: Option<f64>,
    /// A million prompt tokens of both kinds.
    pub prompt_usd_per_mtok: Option<f64>,
    /// Writing a million tokens, reading the rest of their context included.
    pub output_usd_per_mtok: Option<f64>,
    /// What idle time, reserve and shared lines add to each dollar that was used.
    pub overhead: Option<f64>,
    /// What attempts cost that were not the first.
    pub retries: Usd,
    /// What failed.
    pub failed: Usd,
    /// What users left.
    pub cancelled: Usd,
    /// What limits refused.
    pub limited: Usd,
}

/// What one of anything costs, by the share of somebody.
///
/// KV reads are told apart by what is in the context: a cached token is read as often as a fresh one of the same prompt, and a token of the
/// answer half as often on average. (Pairs of each kind are not counted, so this is by the sums of tokens.)
pub fn unit_costs(share: &Share) -> UnitCosts {
    let Sums { requests, fresh, cached, output, .. } = share.used;
    let dollars = |usd: Usd| usd.get_micros() as f64 / 1e6;
    let per = |usd: f64, of: f64| (of > 0.0).then(|| usd / of);
    let context = fresh + cached + output / 2.0;
    let read_cached = if context > 0.0 { dollars(share.kv) * cached / context } else { 0.0 };
    let (prefill, paid_cached) = (dollars(share.prefill), dollars(share.cached));
    let written = dollars(share.decode) + dollars(share.kv) - read_cached;
    let direct = dollars(share.direct());
    UnitCosts {
        request_usd: per(dollars(share.total), requests),
        fresh_usd_per_mtok: per(prefill * 1e6, fresh),
        cached_usd_per_mtok: per((paid_cached + read_cached) * 1e6, cached),
        prompt_usd_per_mtok: per((prefill + paid_cached + read_cached) * 1e6, fresh + cached),
        output_usd_per_mtok: per(written * 1e6, output),
        overhead: per(dollars(share.total) - direct, direct),
        retries: share.retries,
        failed: share.failed,
        cancelled: share.cancelled,
        limited: share.limited,
    }
}

/// The same of everybody together; none where nobody used anything.
pub fn unit_costs_of_all(shares: &Shares) -> Option<UnitCosts> {
    shares.values.first().map(unit_costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 million fresh, 6 million cached and 4 million output tokens: of 10 million tokens of context read, six were cached.
    #[test]
    fn by_hand() {
        let share = Share {
            used: Sums { requests: 4.0, fresh: 2e6, cached: 6e6, output: 4e6, ..Sums::default() },
            prefill: Usd::micros(1_000_000),
            cached: Usd::micros(600_000),
            decode: Usd::micros(2_000_000),
            kv: Usd::micros(1_000_000),
            headroom: Usd::micros(2_300_000),
            total: Usd::micros(6_900_000),
            ..Share::default()
        };
        let got = unit_costs(&share);
        let close = |got: Option<f64>, expect: f64| {
            assert!((got.unwrap() - expect).abs() < 1e-12, "{got:?} {expect}")
        };
        close(got.request_usd, 1.725);
        close(got.fresh_usd_per_mtok, 0.5);
        close(got.cached_usd_per_mtok, 0.2);
        close(got.prompt_usd_per_mtok, 0.275);
        close(got.output_usd_per_mtok, 0.6);
        close(got.overhead, 0.5);
        assert_eq!(unit_costs(&Share::default()).request_usd, None);
    }
}
