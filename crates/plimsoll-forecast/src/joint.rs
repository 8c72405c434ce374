//! Classes and quantities together: rates and lengths apart, combined through what they were off by at the same time.

mod changes;
mod remarks;
mod total;

use plimsoll_stats::{Seed, in_order, periodicity, quantile};
use plimsoll_workload::{Change, ClassOutlook, History, Outlook, Quantiles, Quantity};

use self::total::no_fresher_than_prompts;
use crate::actuals::Lengths;
use crate::adapt::Memory;
use crate::fan::{Actual, Backtest, Fan, Loss, backtest, chosen_then, scored_level};
use crate::gaps::{Gap, coarser, gaps, missing};
use crate::models::{MODELS, Model, Season, level};
use crate::rolling::{Rolling, Track, quantiles, tracks};
use crate::score::within;

/// What a forecast needs.
#[derive(Clone, Debug)]
pub struct ForecastInput<'a> {
    /// What was asked, in steps of the forecast or of a whole part of them: gaps are found at this grain.
    pub history: &'a History,
    /// How long a step of the forecast is.
    pub step_s: u32,
    /// Steps ahead.
    pub horizon: usize,
    /// The quantile that is sized for: models are chosen by their loss there.
    pub sizing: f64,
    /// What is known of the future, and of what was already in the past.
    pub changes: &'a [Change],
    /// What reconciling has learnt.
    pub memory: &'a Memory,
    /// For tests of seasonality.
    pub seed: Seed,
    /// Threads to use; the result does not depend on it.
    pub threads: usize,
}

/// Why there is no forecast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForecastError {
    /// There is no step.
    #[error("the history holds no whole step of {step_s} s")]
    Empty {
        /// The length of a step.
        step_s: u32,
    },
    /// No step knows anything.
    #[error("no request was counted in any step")]
    Nothing,
    /// Steps do not fit.
    #[error("steps of {step_s} s are not made of whole steps of {own_s} s")]
    Step {
        /// The length that is asked for.
        step_s: u32,
        /// The length that is there.
        own_s: u32,
    },
    /// A horizon of nothing, or beyond all sense.
    #[error("a horizon of {steps} steps is not between 1 and {most}")]
    Horizon {
        /// How many.
        steps: usize,
        /// How many at most.
        most: usize,
    },
    /// A count is no count.
    #[error(
        "class `{class}` counts {value} in the step at {at_s} s, which is no number from zero on"
    )]
    Count {
        /// The class.
        class: String,
        /// What it counts.
        value: String,
        /// Where.
        at_s: i64,
    },
}

/// A forecast: an outlook, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The demand ahead.
    pub outlook: Outlook,
    /// How each series of the outlook came about, in the same order.
    pub series: Vec<SeriesForecast>,
    /// Steps of history.
    pub steps: usize,
    /// Of which so many are missing.
    pub missing: usize,
    /// When the history begins, on its clock.
    pub from_s: i64,
    /// Stretches in which nobody was counting.
    pub gaps: Vec<Gap>,
    /// Steps that are far from what their class does: kept, and named.
    pub outliers: Vec<Outlier>,
    /// What was applied of what is known of the future, in the steps from one until before another.
    pub applied: Vec<(String, usize, usize)>,
    /// What should be known.
    pub warnings: Vec<String>,
}

/// How a series came about.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesForecast {
    /// The class; none for all of them together.
    pub class: Option<String>,
    /// What is counted.
    pub quantity: Quantity,
    /// The model that was chosen.
    pub model: String,
    /// Why, where it is not the model that was meant.
    pub instead: Option<String>,
    /// Seasons that a test has found.
    pub season: Season,
    /// Residuals behind its intervals, bucket of lead times by bucket.
    pub residuals: Vec<usize>,
    /// How it did.
    pub backtest: Backtest,
    /// What came, step by step, without what events of the past did to it; not a number where it is missing.
    pub history: Vec<f64>,
}

/// A step that is far from what its class does.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// The class.
    pub class: String,
    /// When, on the clock of the history.
    pub at_s: i64,
    /// What came, in requests a second.
    pub value: f64,
    /// Times what was to be expected.
    pub times: f64,
}

/// What a class is called that is all of them.
const ALL: &str = "all";
/// Steps ahead at most.
const HORIZON_MOST: usize = 20_000;
const DAY_S: u32 = 86_400;
/// Turns of the test of seasonality, and what it must find.
const TURNS: usize = 99;
const SIGNIFICANT: f64 = 0.05;
/// The share of its mean that a rate is taken for when it is idle, before the logarithm is taken.
const IDLE_SHARE: f64 = 0.02;
const OUTLIERS_NAMED: usize = 10;

/// Forecasts a history.
pub fn forecast(input: &ForecastInput<'_>) -> Result<Forecast, ForecastError> {
    let fine = input.history;
    check(input)?;
    let factor = (input.step_s / fine.step_s) as usize;
    let gone = missing(fine, None);
    let found = gaps(fine, &gone);
    let (history, gone) = coarser(fine, factor, &gone);
    let steps = history.len();
    if steps == 0 {
        return Err(ForecastError::Empty { step_s: input.step_s });
    }
    if history.classes.iter().flat_map(|class| &class.steps).all(|step| step.attempts <= 0.0) {
        return Err(ForecastError::Nothing);
    }
    let day = (DAY_S.is_multiple_of(input.step_s))
        .then(|| (DAY_S / input.step_s) as usize)
        .filter(|day| *day > 1 && 2 * day <= steps);
    let grid = Season { day, week: day.map(|day| 7 * day).filter(|week| 3 * week <= steps) };
    let rolling = Rolling::new(steps, input.horizon, input.step_s, grid);
    let setting = Setting { input, history: &history, missing: &gone, grid, rolling: &rolling };
    let overall = Lengths::of_all(&history);
    let count = u32::try_from(history.classes.len()).unwrap_or(u32::MAX);
    let mut classes: Vec<Class> =
        in_order(input.threads, count, |i| setting.class(i as usize, &overall));
    let mut all = setting.all(&classes);
    classes.iter_mut().for_each(|class| all.iter().for_each(|sum| class.scale(sum)));
    let own = classes.iter_mut().map(|class| &mut class.parts);
    own.chain(std::iter::once(&mut all)).for_each(|parts| no_fresher_than_prompts(parts));
    let mut outlook = Outlook {
        start_s: history.end_s(),
        step_s: history.step_s,
        absolute: history.absolute,
        classes: Vec::new(),
    };
    let mut series = Vec::new();
    // A class that is all of them and has no name of its own is said once.
    let several = classes.len() > 1 || classes.iter().any(|class| class.name != ALL);
    let own = classes.iter().map(|class| (Some(class.name.clone()), &class.parts));
    for (name, parts) in std::iter::once((None, &all)).chain(own.filter(|_| several)) {
        let published = parts.iter().map(|part| (part.quantity, part.ahead.clone()));
        outlook.classes.push(ClassOutlook { class: name.clone(), series: published.collect() });
        series.extend(parts.iter().map(|part| SeriesForecast {
            class: name.clone(),
            quantity: part.quantity,
            model: part.model.clone(),
            instead: part.instead.clone(),
            season: part.season,
            residuals: part.residuals.clone(),
            backtest: part.backtest.clone(),
            history: part.actual.values.clone(),
        }));
    }
    let mut warnings = setting.warnings(&classes, &found);
    let mut outliers: Vec<Outlier> = classes.iter().flat_map(|c| c.outliers.clone()).collect();
    outliers.sort_by(|a, b| b.times.total_cmp(&a.times).then(a.at_s.cmp(&b.at_s)));
    outliers.truncate(OUTLIERS_NAMED);
    let applied = setting.applied(outlook.start_s);
    for change in input.changes {
        let known = |name: &&String| !history.classes.iter().any(|class| class.name == **name);
        if let Some(name) = change.classes.iter().find(known) {
            warnings.push(format!(
                "`{}` changes class `{name}`, of which the history knows nothing",
                change.name
            ));
        }
    }
    let concerned = |change: &Change| applied.iter().any(|(name, ..)| *name == change.name);
    for change in input.changes.iter().filter(|change| !concerned(change)) {
        warnings
            .push(format!("`{}` lies outside the horizon and changes nothing in it", change.name));
    }
    Ok(Forecast {
        outlook,
        series,
        steps,
        missing: gone.iter().filter(|gone| **gone).count(),
        from_s: history.start_s,
        gaps: found,
        outliers,
        applied,
        warnings,
    })
}

fn check(input: &ForecastInput<'_>) -> Result<(), ForecastError> {
    let fine = input.history;
    let (step_s, own_s) = (input.step_s, fine.step_s);
    if own_s == 0 || step_s == 0 || !step_s.is_multiple_of(own_s) {
        return Err(ForecastError::Step { step_s, own_s });
    }
    if !(1..=HORIZON_MOST).contains(&input.horizon) {
        return Err(ForecastError::Horizon { steps: input.horizon, most: HORIZON_MOST });
    }
    for class in &fine.classes {
        for (i, step) in class.steps.iter().enumerate() {
            let known =
                [step.prompt_tokens, step.cached_tokens, step.output_tokens, step.kv_token_s];
            let counts = [step.requests, step.attempts, step.limited, step.failed];
            let all = counts.into_iter().chain(known.into_iter().flat_map(|k| [k.sum, k.of]));
            if let Some(wrong) = all.into_iter().find(|n| !(n.is_finite() && *n >= 0.0)) {
                return Err(ForecastError::Count {
                    class: class.name.clone(),
                    value: wrong.to_string(),
                    at_s: fine.at_s(i),
                });
            }
        }
    }
    Ok(())
}

struct Setting<'a> {
    input: &'a ForecastInput<'a>,
    history: &'a History,
    missing: &'a [bool],
    grid: Season,
    rolling: &'a Rolling,
}

/// A class with all of its quantities.
struct Class {
    name: String,
    parts: Vec<Part>,
    outliers: Vec<Outlier>,
    /// Lengths are those of the other classes.
    borrowed: bool,
    /// What its level was multiplied by of late, where it has shifted.
    shifted: Option<f64>,
}

/// A quantity of a class.
#[derive(Clone)]
struct Part {
    quantity: Quantity,
    actual: Actual,
    track: Track,
    model: String,
    instead: Option<String>,
    season: Season,
    residuals: Vec<usize>,
    ahead: Vec<Quantiles>,
    backtest: Backtest,
    /// The cached share that is expected, lead by lead, where the quantity depends on it.
    cached: Option<Vec<f64>>,
    /// What parts are multiplied by, lead by lead, so that they add up to this sum.
    scales: Option<Vec<f64>>,
}

/// One of the things that quantities are made of, with the model that was chosen for it.
struct Component {
    actual: Actual,
    tracks: [Track; MODELS],
    losses: Vec<Loss>,
    chosen: usize,
    season: Season,
}

impl Component {
    fn track(&self) -> &Track {
        &self.tracks[self.chosen]
    }
}

impl Setting<'_> {
    fn sizing(&self) -> f64 {
        scored_level(self.input.sizing)
    }

    /// The seasons that a test finds in a series of logarithms.
    fn season(&self, logs: &[f64]) -> Season {
        let Some(day) = self.grid.day else { return Season::default() };
        // A drift is no season: what a period around a step has on average is taken off it.
        let known = |z: f64| (!z.is_nan()).then_some(z);
        let values: Vec<Option<f64>> = level(logs, day).into_iter().map(known).collect();
        let mut stream = self.input.seed.stream("season");
        let mut comes = |values: &[Option<f64>], length: usize| {
            periodicity(values, length, TURNS, &mut stream)
                .is_some_and(|found| found.p_value <= SIGNIFICANT)
        };
        if !comes(&values, day) {
            return Season::default();
        }
        let week = self.grid.week.filter(|_| {
            let days: Vec<Option<f64>> = logs
                .chunks_exact(day)
                .map(|day| {
                    let own: Vec<f64> = day.iter().copied().filter(|z| !z.is_nan()).collect();
                    (2 * own.len() >= day.len()).then(|| own.iter().sum::<f64>() / own.len() as f64)
                })
                .collect();
            let days: Vec<f64> = days.into_iter().map(|day| day.unwrap_or(f64::NAN)).collect();
            comes(&level(&days, 7).into_iter().map(known).collect::<Vec<_>>(), 7)
        });
        Season { day: Some(day), week }
    }

    /// Steps of the season that a naive forecast and its scale repeat.
    fn naive_season(season: Season, steps: usize) -> usize {
        season.longest(steps, 1).unwrap_or(1)
    }

    fn component(&self, values: Vec<f64>, offset: f64) -> Component {
        let actual = Actual::new(values, offset);
        let season = self.season(&actual.logs);
        let tracks = tracks(&actual.logs, season, self.rolling);
        let level = self.sizing();
        let losses: Vec<Loss> =
            tracks.iter().map(|track| Loss::of(track, &actual, self.rolling, level)).collect();
        let chosen = best(&losses, [MEAN, NAIVE]);
        Component { actual, tracks, losses, chosen, season }
    }

    fn class(&self, index: usize, overall: &Lengths) -> Class {
        let own = &self.history.classes[index];
        let step_s = f64::from(self.history.step_s);
        let n = own.steps.len();
        let factors: Vec<[f64; 4]> = (0..n).map(|i| self.past(&own.name, i)).collect();
        let requests: Vec<f64> = (0..n)
            .map(|i| {
                if self.missing[i] {
                    f64::NAN
                } else {
                    own.steps[i].requests / step_s / factors[i][0]
                }
            })
            .collect();
        let mean = |pick: fn(&plimsoll_workload::StepCount) -> plimsoll_workload::Known,
                    by: usize| {
            let mean = |i: usize| {
                let mean = pick(&own.steps[i]).mean().filter(|_| !self.missing[i]);
                mean.map_or(f64::NAN, |mean| mean / factors[i][by])
            };
            (0..n).map(mean).collect::<Vec<f64>>()
        };
        let told = |values: &[f64]| values.iter().any(|value| !value.is_nan());
        let mut prompt = mean(|s| s.prompt_tokens, 1);
        let mut output = mean(|s| s.output_tokens, 2);
        let mut borrowed = false;
        for (own, others) in [(&mut prompt, &overall.prompt), (&mut output, &overall.output)] {
            if !told(own) && told(others) {
                own.clone_from(others);
                borrowed = true;
            }
        }
        let cached = mean(|s| s.cached_tokens, 3);
        // What is held is mostly prompt.
        let kv = mean(|s| s.kv_token_s, 1);
        // Half a request a step and a little of the mean: so that none has a logarithm, too, and what is idle now and then is not taken to
        // multiply without end when it comes back.
        let some: Vec<f64> = requests.iter().copied().filter(|rate| !rate.is_nan()).collect();
        let least = 0.5 / step_s + IDLE_SHARE * some.iter().sum::<f64>() / some.len().max(1) as f64;
        let rate = self.component(requests.clone(), least);
        let outliers = self.outliers(&own.name, &rate);
        let mut parts = Vec::new();
        let typical = |values: &[f64]| {
            let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            quantile(&known, 0.5).unwrap_or(1.0).max(1e-9)
        };
        let length = |values: &[f64]| {
            told(values).then(|| self.component(values.to_vec(), 1e-3 * typical(values)))
        };
        let prompt_length = length(&prompt);
        let output_length = length(&output);
        let cached_share = length(&cached);
        let held = length(&kv);
        let class = own.name.as_str();
        parts.push(self.part(class, Quantity::Requests, &[(&rate, Shape::Plain)], least));
        if let Some(length) = &prompt_length {
            let both: [(&Component, Shape); 2] = [(&rate, Shape::Plain), (length, Shape::Plain)];
            let least = least * typical(&prompt);
            parts.push(self.part(class, Quantity::PromptTokens, &both, least));
            match &cached_share {
                Some(share) => {
                    let three = [both[0], both[1], (share, Shape::Rest)];
                    parts.push(self.part(class, Quantity::FreshTokens, &three, least));
                }
                // Nobody says what was cached: all of it is fresh.
                None => parts.push(self.part(class, Quantity::FreshTokens, &both, least)),
            }
        }
        if let Some(length) = &output_length {
            let both = [(&rate, Shape::Plain), (length, Shape::Plain)];
            parts.push(self.part(class, Quantity::OutputTokens, &both, least * typical(&output)));
        }
        if let Some(share) = &cached_share {
            parts.push(self.part(class, Quantity::CachedShare, &[(share, Shape::Plain)], 1e-3));
        }
        if let Some(held) = &held {
            let both = [(&rate, Shape::Plain), (held, Shape::Plain)];
            parts.push(self.part(class, Quantity::ResidentTokens, &both, least * typical(&kv)));
        }
        let shifted = self.shifted(&rate);
        Class { name: own.name.clone(), parts, outliers, borrowed, shifted }
    }

    /// A quantity as the product of what it is made of, or as its own past where that does better.
    fn part(
        &self,
        class: &str,
        quantity: Quantity,
        of: &[(&Component, Shape)],
        offset: f64,
    ) -> Part {
        let cached = of.iter().find(|(_, shape)| *shape == Shape::Rest);
        let cached: Option<Vec<f64>> = cached.map(|(share, _)| {
            share.track().ahead.iter().map(|log| share.actual.value(*log).min(1.0)).collect()
        });
        let level = self.sizing();
        let rolling = self.rolling;
        if let [(only, _)] = of {
            let (naive, mean) = (&only.losses[NAIVE], &only.losses[MEAN]);
            let fan = Fan::of(only.track(), &only.actual, rolling);
            let season = Self::naive_season(only.season, rolling.steps);
            let losses = [&only.losses[only.chosen], naive, mean];
            let mut backtest = backtest(&fan, &only.actual, rolling, season, level, losses);
            backtest.pinball_chosen_then = chosen_then(&trusted(&only.losses), rolling);
            let model = Model::ALL[only.chosen];
            let baseline = only.chosen == NAIVE || only.chosen == MEAN;
            let instead = baseline.then(|| {
                format!(
                    "no other model loses less than the {} at the {level} quantile",
                    model.name()
                )
            });
            let (residuals, ahead) =
                self.ahead(class, quantity, &only.actual, only.track(), cached.as_deref());
            return Part {
                quantity,
                actual: only.actual.clone(),
                track: only.track().clone(),
                model: model.name().to_owned(),
                instead,
                season: only.season,
                residuals,
                ahead,
                backtest,
                cached,
                scales: None,
            };
        }
        let product = |values: &mut dyn Iterator<Item = (f64, Shape)>| -> f64 {
            values.map(|(value, shape)| shape.of(value)).product()
        };
        let steps = of[0].0.actual.values.len();
        let came = (0..steps).map(|i| {
            // Nothing was asked: its length is no matter.
            if of[0].0.actual.values[i] <= 0.0 {
                return 0.0;
            }
            product(&mut of.iter().map(|(c, shape)| (c.actual.values[i], *shape)))
        });
        let actual = Actual::new(came.collect(), offset);
        let said = |pick: &dyn Fn(&Track) -> &[f64]| -> Vec<f64> {
            let n = pick(of[0].0.track()).len();
            let at = |i: usize| {
                let own =
                    |(c, shape): &(&Component, Shape)| (c.actual.value(pick(c.track())[i]), *shape);
                libm::log(product(&mut of.iter().map(own)) + offset)
            };
            (0..n).map(at).collect()
        };
        let together =
            Track { past: said(&|track| &track.past), ahead: said(&|track| &track.ahead) };
        let season = self.season(&actual.logs);
        let alone = tracks(&actual.logs, season, rolling);
        // Of equals the last is taken.
        let candidates = [&alone[MEAN], &alone[NAIVE], &together];
        let losses = candidates.map(|track| Loss::of(track, &actual, rolling, level));
        let chosen = best(&losses, [MEAN, NAIVE]);
        let names: Vec<&str> =
            of.iter().map(|(component, _)| Model::ALL[component.chosen].name()).collect();
        let model = match chosen {
            MEAN | NAIVE => Model::ALL[chosen].name().to_owned(),
            _ => names.join(" x "),
        };
        let instead = (chosen <= NAIVE).then(|| {
            format!("rates and lengths modelled apart lose to the {model} at the {level} quantile")
        });
        let track = candidates[chosen];
        let fan = Fan::of(track, &actual, rolling);
        let naive = Self::naive_season(season, rolling.steps);
        let against = [&losses[chosen], &losses[NAIVE], &losses[MEAN]];
        let mut backtest = backtest(&fan, &actual, rolling, naive, level, against);
        backtest.pinball_chosen_then = chosen_then(&trusted(&losses), rolling);
        let (residuals, ahead) = self.ahead(class, quantity, &actual, track, cached.as_deref());
        let track = track.clone();
        Part {
            quantity,
            actual,
            track,
            model,
            instead,
            season,
            residuals,
            ahead,
            backtest,
            cached,
            scales: None,
        }
    }

    /// Quantiles ahead of a quantity of a class, and how many residuals each bucket has.
    fn ahead(
        &self,
        class: &str,
        quantity: Quantity,
        actual: &Actual,
        track: &Track,
        cached: Option<&[f64]>,
    ) -> (Vec<usize>, Vec<Quantiles>) {
        // All of them together have no name; nor has one that is all of them.
        let named = !class.is_empty() && self.history.classes.len() > 1;
        let levels = self.input.memory.levels(named.then_some(class), quantity);
        let rolling = self.rolling;
        let mut residuals = Vec::new();
        let mut ahead = Vec::with_capacity(rolling.horizon);
        let mut offsets = [0.0; 6];
        // What is likely of changes multiplies what is forecast, and not what was added before the logarithm.
        let mut times = 1.0;
        let (mut sorted, mut recent): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        // Offsets are the same within a bucket, as long as the same changes hold.
        let mut same: Option<(usize, Vec<usize>)> = None;
        for lead in 0..rolling.horizon {
            let bucket = rolling.bucket_of(lead);
            let at = self.at_s(lead);
            let holding = self.holding(class, at);
            let now = (bucket, holding);
            // What a lower hit rate leaves fresh depends on the hour.
            let by_hour = quantity == Quantity::FreshTokens && !now.1.is_empty();
            if by_hour || same.as_ref() != Some(&now) {
                if same.as_ref().map(|(bucket, _)| *bucket) != Some(bucket) {
                    let from = rolling.teaches_from(rolling.steps);
                    sorted = track.residuals(rolling, &actual.logs, bucket, from);
                    let from = rolling.recent_from(rolling.steps);
                    recent = track.residuals(rolling, &actual.logs, bucket, from);
                    residuals.push(sorted.len());
                }
                let independent = rolling.independent(bucket, rolling.steps);
                let cached = cached.map_or(0.0, |cached| cached[lead]);
                let changes = self.strata(&now.1, quantity, cached);
                if changes.iter().all(|log| *log == 0.0) {
                    quantiles(&sorted, &recent, independent, &levels, &mut offsets);
                    times = 1.0;
                } else {
                    // The changes move the middle; the width is widened around it.
                    let middle = changes[changes.len() / 2];
                    let with = |own: &[f64]| -> Vec<f64> {
                        let each = own.iter().flat_map(|r| changes.iter().map(move |c| r + c));
                        let mut both: Vec<f64> = each.map(|r| r - middle).collect();
                        both.sort_by(f64::total_cmp);
                        both
                    };
                    let all = with(if sorted.is_empty() { &[0.0] } else { &sorted });
                    quantiles(&all, &with(&recent), independent, &levels, &mut offsets);
                    times = libm::exp(middle);
                }
                same = Some(now);
            }
            let most = if quantity == Quantity::CachedShare { 1.0 } else { f64::INFINITY };
            let value = |offset: f64| (actual.value(track.ahead[lead] + offset) * times).min(most);
            ahead.push(Quantiles(offsets.map(value)));
        }
        (residuals, ahead)
    }
}

/// How a component enters a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// As it is.
    Plain,
    /// What it leaves of one.
    Rest,
}

impl Shape {
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Plain => value,
            Self::Rest => 1.0 - value.min(1.0),
        }
    }
}

/// Where baselines stand among the models.
const MEAN: usize = 0;
const NAIVE: usize = 1;

/// The model with the least loss of late, among those that lose no more than any of `baselines` over all; of equals the last, which says more
/// than a baseline.
fn best(losses: &[Loss], baselines: [usize; 2]) -> usize {
    let most = baselines.map(|i| losses[i].mean).into_iter().fold(f64::INFINITY, f64::min);
    let may = || losses.iter().filter(|loss| within(loss.mean, most));
    let least = may().map(|loss| loss.of_late).fold(f64::INFINITY, f64::min);
    // What differs in the last digits is alike.
    let is = |loss: &Loss| within(loss.mean, most) && within(loss.of_late, least);
    losses.iter().rposition(is).unwrap_or(baselines[0])
}

/// Losses in the order in which models are trusted before anything is known: the median of all first.
fn trusted(losses: &[Loss]) -> Vec<&Loss> {
    losses.iter().rev().collect()
}
