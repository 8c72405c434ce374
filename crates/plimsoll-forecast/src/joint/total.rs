//! All classes together: drawn from what they were off by at the same time, or modelled itself.

use plimsoll_stats::in_order;
use plimsoll_workload::{Change, Quantiles, Quantity};

use super::changes::STRATA;
use super::{Class, ForecastInput, MEAN, NAIVE, Part, Setting, Shape, best, trusted};
use crate::fan::{Actual, FAN, Fan, Loss, backtest, chosen_then};
use crate::models::Model;
use crate::rolling::{Pair, Track, quantiles, tracks};

/// Joint residuals that a sum over classes is drawn from.
const DRAWS: usize = 512;

impl Setting<'_> {
    /// All classes together: the sum of what each may be at the same time, or a model of the sum where that does better.
    pub(super) fn all(&self, classes: &[Class]) -> Vec<Part> {
        let of = |class: &Class, quantity: Quantity| {
            class.parts.iter().position(|part| part.quantity == quantity)
        };
        if let [only] = classes {
            return only.parts.clone();
        }
        let count = u32::try_from(Quantity::ALL.len()).unwrap_or(u32::MAX);
        let each = in_order(self.input.threads, count, |i| {
            let quantity = Quantity::ALL[i as usize];
            let parts: Vec<(&str, &Part)> = classes
                .iter()
                .filter_map(|class| Some((class.name.as_str(), &class.parts[of(class, quantity)?])))
                .collect();
            (!parts.is_empty()).then(|| match quantity {
                Quantity::CachedShare => self.all_cached(classes),
                _ => self.sum(quantity, &parts),
            })
        });
        each.into_iter().flatten().collect()
    }

    /// The cached share of all prompts.
    pub(super) fn all_cached(&self, classes: &[Class]) -> Part {
        let came = |i: usize, quantity: Quantity| -> f64 {
            let parts = classes.iter().flat_map(|class| &class.parts);
            parts.filter(|part| part.quantity == quantity).map(|part| part.actual.values[i]).sum()
        };
        let share = |i: usize| {
            let prompt = came(i, Quantity::PromptTokens);
            if prompt > 0.0 { 1.0 - came(i, Quantity::FreshTokens) / prompt } else { f64::NAN }
        };
        let values: Vec<f64> = (0..self.rolling.steps).map(share).collect();
        let component = self.component(values, 1e-3);
        let mut all = self.part("", Quantity::CachedShare, &[(&component, Shape::Plain)], 1e-3);
        for (lead, quantiles) in all.ahead.iter_mut().enumerate() {
            let times = self.mixed(classes, lead);
            quantiles.0 = quantiles.0.map(|share| (share * times).min(1.0));
        }
        all
    }

    /// What changes of single classes multiply the cached share of all prompts by: through their own shares, and through how much of all
    /// prompts is theirs.
    pub(super) fn mixed(&self, classes: &[Class], lead: usize) -> f64 {
        let at = self.at_s(lead);
        let middle = |class: &str, quantity: Quantity| {
            let strata = self.strata(&self.holding(class, at), quantity, 0.0);
            libm::exp(strata[strata.len() / 2])
        };
        let (mut before, mut after) = ((0.0, 0.0), (0.0, 0.0));
        for class in classes {
            let of = |quantity| class.parts.iter().find(|part| part.quantity == quantity);
            let Some(prompt) = of(Quantity::PromptTokens) else { continue };
            let tokens = prompt.actual.value(prompt.track.ahead[lead]);
            let share = of(Quantity::FreshTokens).map_or(0.0, |fresh| fresh.cached_ahead(lead));
            let later = tokens * middle(&class.name, Quantity::PromptTokens);
            let hit = (share * middle(&class.name, Quantity::CachedShare)).min(1.0);
            before = (before.0 + tokens * share, before.1 + tokens);
            after = (after.0 + later * hit, after.1 + later);
        }
        // Changes of all classes are in the share of all already.
        let known = before.0 / before.1 * middle("", Quantity::CachedShare);
        let times = after.0 / after.1 / known;
        if times.is_finite() { times } else { 1.0 }
    }

    pub(super) fn sum(&self, quantity: Quantity, parts: &[(&str, &Part)]) -> Part {
        let rolling = self.rolling;
        let level = self.sizing();
        let values = (0..rolling.steps)
            .map(|i| parts.iter().map(|(_, part)| part.actual.values[i]).sum::<f64>())
            .collect();
        let offset = parts.iter().map(|(_, part)| part.actual.offset).sum::<f64>();
        let actual = Actual::new(values, offset);
        let season = self.season(&actual.logs);
        let alone = tracks(&actual.logs, season, rolling);
        let losses = alone.each_ref().map(|track| Loss::of(track, &actual, rolling, level));
        let summed = Summed::new(self, &actual, parts);
        let fan = summed.past();
        let own = Loss::of_fan(&fan, &actual, rolling, level);
        let naive = Self::naive_season(season, rolling.steps);
        let direct = best(&losses, [MEAN, NAIVE]);
        let [of_mean, of_naive] = [&losses[MEAN], &losses[NAIVE]];
        if own.mean <= losses[direct].mean {
            let against = [&own, of_naive, of_mean];
            let mut backtest = backtest(&fan, &actual, rolling, naive, level, against);
            backtest.pinball_chosen_then = chosen_then(&against, rolling);
            let levels = self.input.memory.levels(None, quantity);
            let ahead = summed.ahead(quantity, &levels, self.input.changes);
            let (track, residuals) = (summed.track(), summed.residuals());
            return Part {
                quantity,
                track,
                actual,
                model: "sum of classes".to_owned(),
                instead: None,
                season,
                residuals,
                ahead,
                backtest,
                cached: None,
                scales: None,
            };
        }
        let fan = Fan::of(&alone[direct], &actual, rolling);
        let against = [&losses[direct], of_naive, of_mean];
        let mut backtest = backtest(&fan, &actual, rolling, naive, level, against);
        backtest.pinball_chosen_then = chosen_then(&trusted(&losses), rolling);
        let still =
            Setting { input: &ForecastInput { changes: &[], ..self.input.clone() }, ..*self };
        let (residuals, plain) = still.ahead("", quantity, &actual, &alone[direct], None);
        let model = Model::ALL[direct].name();
        // Parts and whole are one: what the classes say is brought to what their sum is taken to be, and what changes a class changes the sum
        // through it.
        let of_parts = summed.ahead(quantity, &Quantiles::LEVELS, &[]);
        let changed = summed.ahead(quantity, &Quantiles::LEVELS, self.input.changes);
        let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 1.0 };
        let scales = plain.iter().zip(&of_parts).map(|(own, parts)| over(own.0[0], parts.0[0]));
        let scales = scales.collect();
        let mut ahead = plain;
        for ((own, parts), changed) in ahead.iter_mut().zip(&of_parts).zip(&changed) {
            let mut least = 0.0;
            for (i, value) in own.0.iter_mut().enumerate() {
                least = (*value * over(changed.0[i], parts.0[i])).max(least);
                *value = least;
            }
        }
        Part {
            quantity,
            model: format!("{model} of the sum"),
            instead: Some(format!(
                "the sum of classes loses to the {model} of the sum at the {level} quantile"
            )),
            track: alone[direct].clone(),
            season,
            residuals,
            ahead,
            backtest,
            actual,
            cached: None,
            scales: Some(scales),
        }
    }
}

impl Class {
    /// Brings a quantity to what the sum of classes is taken to be.
    pub(super) fn scale(&mut self, sum: &Part) {
        let Some(scales) = &sum.scales else { return };
        for part in self.parts.iter_mut().filter(|part| part.quantity == sum.quantity) {
            for (quantiles, scale) in part.ahead.iter_mut().zip(scales) {
                quantiles.0 = quantiles.0.map(|value| value * scale);
            }
            part.model.push_str(", scaled to the sum");
        }
    }
}

/// No more of a prompt is fresh than there is of it.
pub(super) fn no_fresher_than_prompts(parts: &mut [Part]) {
    let of = |parts: &[Part], quantity| parts.iter().position(|part| part.quantity == quantity);
    let prompt = of(parts, Quantity::PromptTokens);
    let fresh = of(parts, Quantity::FreshTokens);
    let (Some(prompt), Some(fresh)) = (prompt, fresh) else { return };
    let most = parts[prompt].ahead.clone();
    for (own, most) in parts[fresh].ahead.iter_mut().zip(most) {
        own.0.iter_mut().zip(most.0).for_each(|(own, most)| *own = own.min(most));
    }
}

impl Part {
    fn cached_ahead(&self, lead: usize) -> f64 {
        self.cached.as_ref().map_or(0.0, |cached| cached[lead])
    }
}

/// A sum over classes, drawn from what they were off by at the same time.
struct Summed<'a> {
    setting: &'a Setting<'a>,
    actual: &'a Actual,
    parts: &'a [(&'a str, &'a Part)],
    /// By bucket: pairs whose step is known, and by class what each multiplies a forecast by.
    buckets: Vec<(Vec<Pair>, Vec<Vec<f64>>)>,
}

/// What a sum is drawn from.
struct Draws {
    bucket: usize,
    /// Pairs of the bucket, by their place.
    places: Vec<usize>,
    /// Which of them are recent.
    recent: Vec<bool>,
}

impl<'a> Summed<'a> {
    fn new(setting: &'a Setting<'a>, actual: &'a Actual, parts: &'a [(&'a str, &'a Part)]) -> Self {
        let rolling = setting.rolling;
        let of = |bucket: usize| {
            let pairs = rolling.pool(bucket, rolling.steps).iter().copied();
            let known: Vec<Pair> =
                pairs.filter(|pair| !actual.logs[rolling.target(*pair)].is_nan()).collect();
            let factors = parts.iter().map(|(_, part)| {
                let factor = |pair: &Pair| {
                    let residual = part.track.residual(rolling, &part.actual.logs, *pair);
                    if residual.is_nan() { 1.0 } else { libm::exp(residual) }
                };
                known.iter().map(factor).collect()
            });
            let factors = factors.collect();
            (known, factors)
        };
        let buckets = (0..rolling.ends.len()).map(of).collect();
        Self { setting, actual, parts, buckets }
    }

    fn residuals(&self) -> Vec<usize> {
        self.buckets.iter().map(|(pairs, _)| pairs.len()).collect()
    }

    /// The forecast of the sum: the sum of forecasts.
    fn track(&self) -> Track {
        let sum = |pick: &dyn Fn(&Track) -> &[f64]| -> Vec<f64> {
            let n = pick(&self.parts[0].1.track).len();
            let at = |i: usize| {
                let values = self.parts.iter().map(|(_, p)| p.actual.value(pick(&p.track)[i]));
                libm::log(values.sum::<f64>() + self.actual.offset)
            };
            (0..n).map(at).collect()
        };
        Track { past: sum(&|track| &track.past), ahead: sum(&|track| &track.ahead) }
    }

    /// What had come true of a bucket when `known` steps were known: pairs by their place, and which of them are recent.
    fn draws(&self, bucket: usize, known: usize) -> Draws {
        let rolling = self.setting.rolling;
        let (pairs, _) = &self.buckets[bucket];
        let n = pairs.partition_point(|pair| rolling.target(*pair) < known);
        let (from, recent) = (rolling.teaches_from(known), rolling.recent_from(known));
        let own: Vec<usize> = (0..n).filter(|j| pairs[*j].origin >= from).collect();
        let every = own.len().div_ceil(DRAWS).max(1);
        let places: Vec<usize> = own.into_iter().step_by(every).collect();
        let recent = places.iter().map(|j| pairs[*j].origin >= recent).collect();
        Draws { bucket, places, recent }
    }

    /// How far the sum may be from `base`, on the logarithm and in order, and the recent ones of that: `logs` are the forecasts of classes, each
    /// multiplied by its own of `changes`.
    fn drawn(
        &self,
        draws: &Draws,
        logs: &[f64],
        changes: &[Vec<f64>],
        base: f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let (_, factors) = &self.buckets[draws.bucket];
        let strata = changes.first().map_or(1, Vec::len);
        let n = draws.places.len();
        let mut drawn = vec![0.0; n * strata];
        for (stratum, sums) in drawn.chunks_exact_mut(n.max(1)).enumerate() {
            for (c, (_, part)) in self.parts.iter().enumerate() {
                let change = changes.get(c).map_or(1.0, |own| own[stratum]);
                let (forecast, offset) = (libm::exp(logs[c]), part.actual.offset);
                let own = &factors[c];
                for (sum, j) in sums.iter_mut().zip(&draws.places) {
                    *sum += (forecast * own[*j] - offset).max(0.0) * change;
                }
            }
        }
        drawn.iter_mut().for_each(|sum| *sum = libm::log((*sum + self.actual.offset) / base));
        let both = drawn.iter().zip(draws.recent.iter().cycle());
        let mut recent: Vec<f64> = both.filter(|(_, late)| **late).map(|(r, _)| *r).collect();
        recent.sort_by(f64::total_cmp);
        drawn.sort_by(f64::total_cmp);
        (drawn, recent)
    }

    fn past(&self) -> Fan {
        let rolling = self.setting.rolling;
        let track = self.track();
        let mut past = Vec::new();
        for i in rolling.scored..rolling.origins.len() {
            let known = rolling.origins[i];
            let draws: Vec<Draws> = (0..rolling.ends.len()).map(|b| self.draws(b, known)).collect();
            for lead in 0..rolling.horizon {
                let bucket = rolling.bucket_of(lead);
                let logs: Vec<f64> =
                    self.parts.iter().map(|(_, part)| part.track.at(rolling, i, lead)).collect();
                let log = track.at(rolling, i, lead);
                let (drawn, recent) = self.drawn(&draws[bucket], &logs, &[], libm::exp(log));
                let mut offsets = [0.0; FAN.len()];
                let independent = rolling.independent(bucket, known);
                quantiles(&drawn, &recent, independent, &FAN, &mut offsets);
                past.push(offsets.map(|offset| self.actual.value(log + offset)));
            }
        }
        Fan { past }
    }

    /// The sum ahead, with these changes.
    fn ahead(&self, quantity: Quantity, levels: &[f64; 6], changes: &[Change]) -> Vec<Quantiles> {
        let rolling = self.setting.rolling;
        let known = rolling.steps;
        let draws: Vec<Draws> = (0..rolling.ends.len()).map(|b| self.draws(b, known)).collect();
        let mut ahead = Vec::new();
        for lead in 0..rolling.horizon {
            let bucket = rolling.bucket_of(lead);
            let at = self.setting.at_s(lead);
            let changes: Vec<Vec<f64>> = self
                .parts
                .iter()
                .map(|(class, part)| {
                    let holding = if changes.is_empty() {
                        Vec::new()
                    } else {
                        self.setting.holding(class, at)
                    };
                    let mut strata =
                        self.setting.strata(&holding, quantity, part.cached_ahead(lead));
                    strata.resize(if changes.is_empty() { 1 } else { STRATA }, strata[0]);
                    strata.iter_mut().for_each(|log| *log = libm::exp(*log));
                    strata
                })
                .collect();
            let logs: Vec<f64> =
                self.parts.iter().map(|(_, part)| part.track.ahead[lead]).collect();
            // What the middle stratum makes of the sum: widening is around it.
            let middle: f64 = self
                .parts
                .iter()
                .zip(&changes)
                .map(|((_, part), own)| {
                    part.actual.value(part.track.ahead[lead]) * own[own.len() / 2]
                })
                .sum();
            let base = middle + self.actual.offset;
            let (drawn, recent) = self.drawn(&draws[bucket], &logs, &changes, base);
            let mut offsets = [0.0; 6];
            let independent = rolling.independent(bucket, rolling.steps);
            quantiles(&drawn, &recent, independent, levels, &mut offsets);
            let log = libm::log(base);
            ahead.push(Quantiles(offsets.map(|offset| self.actual.value(log + offset))));
        }
        ahead
    }
}
