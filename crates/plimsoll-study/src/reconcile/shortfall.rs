//! How often and by how much demand exceeded what was sized for.

use plimsoll_forecast::score::within;
use plimsoll_stats::{block_bootstrap, share_interval_of};
use plimsoll_workload::Quantity;

use super::result::{ShareEstimate, Shortfall};
use super::service::{find, period_cost};
use super::{Overlap, ratio};

const DAY_S: u32 = 86_400;
/// There are at least so many blocks, where there are as many steps.
const BLOCKS_LEAST: usize = 4;
const RESAMPLES: usize = 1000;

/// A step: what was asked for and what was provided.
#[derive(Clone, Copy)]
struct Step {
    demand: f64,
    capacity: f64,
}

impl Step {
    fn is_short(&self) -> bool {
        !within(self.demand, self.capacity)
    }

    fn missing(&self) -> f64 {
        if self.is_short() { self.demand - self.capacity } else { 0.0 }
    }
}

pub(super) fn shortfalls(overlap: &Overlap<'_>) -> Vec<Shortfall> {
    let demand = overlap.published().filter(|(_, quantity)| *quantity != Quantity::CachedShare);
    demand.map(|(class, quantity)| shortfall(overlap, class, quantity)).collect()
}

fn shortfall(overlap: &Overlap<'_>, class: Option<&str>, quantity: Quantity) -> Shortfall {
    let paired = overlap.paired(class, quantity);
    let both = paired.actual.iter().zip(&paired.said);
    let steps: Vec<Step> =
        both.map(|(came, said)| Step { demand: *came, capacity: overlap.bound(said) }).collect();
    let day = (DAY_S / overlap.step_s) as usize;
    let block_steps = (steps.len() / BLOCKS_LEAST).min(day).max(1);
    let estimate = |what: &str, statistic: fn(&[Step]) -> f64| {
        let name = format!("reconcile/{class:?}/{}/{what}", quantity.name());
        let stream = &mut overlap.input.seed.stream(&name);
        let level = overlap.input.confidence;
        let drawn = block_bootstrap(&steps, block_steps, statistic, level, RESAMPLES, stream);
        drawn.map(|drawn| (drawn.low, drawn.high))
    };
    let short = steps.iter().filter(|step| step.is_short()).count();
    let frequency = ratio(short as f64, steps.len() as f64).map(|value| {
        // A few blocks that are drawn again are hardly ever other than they were: one short step would be surer than none.
        let blocks = (steps.len() / block_steps) as f64;
        let wilson = share_interval_of(value, blocks, overlap.input.confidence);
        let both = estimate("frequency", frequency).zip(wilson);
        let (low, high) =
            both.map(|((low, high), own)| (low.min(own.low), high.max(own.high))).unzip();
        ShareEstimate { value, low, high }
    });
    let demand: f64 = steps.iter().map(|step| step.demand).sum();
    let capacity: f64 = steps.iter().map(|step| step.capacity).sum();
    let missing: f64 = steps.iter().map(Step::missing).sum();
    let volume = ratio(missing, demand).map(|value| {
        let (low, high) = (short > 0).then(|| estimate("volume", volume)).flatten().unzip();
        ShareEstimate { value, low, high }
    });
    let step_s = f64::from(overlap.step_s);
    let over: f64 = steps.iter().map(|step| (step.capacity - step.demand).max(0.0)).sum();
    let over_share = ratio(capacity, demand).map(|times| times - 1.0);
    let longest_steps = longest(&paired.at, &steps);
    let priced = matches!(quantity, Quantity::FreshTokens | Quantity::OutputTokens);
    let cost_usd = (class.is_none() && priced)
        .then(|| find(overlap.input.after, None).and_then(period_cost))
        .flatten();
    Shortfall {
        class: class.map(str::to_owned),
        resource: quantity.name(),
        unit: quantity.unit(),
        steps: steps.len(),
        planned: 1.0 - overlap.input.sizing,
        frequency,
        volume,
        block_steps,
        longest_steps,
        longest_s: longest_steps as u64 * u64::from(overlap.step_s),
        tail: ratio(missing, short as f64),
        over: over * step_s,
        over_unit: match quantity {
            Quantity::Requests => "requests",
            Quantity::PromptTokens | Quantity::FreshTokens | Quantity::OutputTokens => "tokens",
            Quantity::CachedShare => "seconds",
            Quantity::ResidentTokens => "token-seconds",
        },
        over_share,
        over_usd: over_share.zip(cost_usd).map(|(share, cost)| share * cost),
    }
}

fn frequency(steps: &[Step]) -> f64 {
    steps.iter().filter(|step| step.is_short()).count() as f64 / steps.len() as f64
}

/// Where nothing was asked for, nothing was missing.
fn volume(steps: &[Step]) -> f64 {
    let missing: f64 = steps.iter().map(Step::missing).sum();
    ratio(missing, steps.iter().map(|step| step.demand).sum()).unwrap_or(0.0)
}

/// The longest row of short steps that follow on each other.
fn longest(at: &[usize], steps: &[Step]) -> usize {
    let (mut longest, mut row, mut expected) = (0, 0, 0);
    for (at, step) in at.iter().zip(steps) {
        row = match (step.is_short(), *at == expected) {
            (true, true) => row + 1,
            (true, false) => 1,
            (false, _) => 0,
        };
        expected = at + 1;
        longest = longest.max(row);
    }
    longest
}
