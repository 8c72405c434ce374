//! Asking for a forecast, and what must hold of every one.

#![allow(dead_code, reason = "each of the tests uses some of it")]

use plimsoll_forecast::{
    Backtest, Coverage, Forecast, ForecastError, ForecastInput, Memory, forecast,
};
use plimsoll_stats::Seed;
use plimsoll_workload::{Change, History, Quantiles, Quantity, ThreePoint};

pub const HOUR_S: u32 = 3600;
pub const WEEK: usize = 168;
pub const WEEKS: usize = 6;
pub const HOURS: usize = WEEKS * WEEK;

/// A forecast by the hour on one thread.
pub fn ahead(
    history: &History,
    horizon: usize,
    changes: &[Change],
) -> Result<Forecast, ForecastError> {
    on(1, history, horizon, changes)
}

/// A forecast by the hour.
pub fn on(
    threads: usize,
    history: &History,
    horizon: usize,
    changes: &[Change],
) -> Result<Forecast, ForecastError> {
    forecast(&ForecastInput { threads, changes, ..plain(history, horizon, &Memory::default()) })
}

/// A forecast in steps of any length.
pub fn by(
    step_s: u32,
    history: &History,
    horizon: usize,
    changes: &[Change],
) -> Result<Forecast, ForecastError> {
    forecast(&ForecastInput { step_s, changes, ..plain(history, horizon, &Memory::default()) })
}

/// A forecast by the hour after reconciling.
pub fn learnt(
    history: &History,
    horizon: usize,
    memory: &Memory,
) -> Result<Forecast, ForecastError> {
    forecast(&plain(history, horizon, memory))
}

fn plain<'a>(history: &'a History, horizon: usize, memory: &'a Memory) -> ForecastInput<'a> {
    ForecastInput {
        history,
        step_s: HOUR_S,
        horizon,
        sizing: 0.95,
        changes: &[],
        memory,
        seed: Seed::new(7),
        threads: 1,
    }
}

/// A change from a time on, for all classes and for good, that changes nothing yet.
pub fn change(name: &str, from_s: i64) -> Change {
    Change {
        name: name.to_owned(),
        from_s,
        until_s: None,
        classes: Vec::new(),
        rate: ThreePoint::ONE,
        prompt: ThreePoint::ONE,
        output: ThreePoint::ONE,
        cache_hit: ThreePoint::ONE,
    }
}

/// A multiplier that is known exactly.
pub fn times(by: f64) -> ThreePoint {
    ThreePoint { low: by, likely: by, high: by }
}

/// The series of a quantity.
pub fn series<'a>(
    forecast: &'a Forecast,
    class: Option<&str>,
    quantity: Quantity,
) -> &'a [Quantiles] {
    forecast.outlook.series(class, quantity).expect("the quantity is forecast")
}

/// Its values at one of the published levels.
pub fn level(forecast: &Forecast, class: Option<&str>, quantity: Quantity, level: f64) -> Vec<f64> {
    let place = Quantiles::LEVELS.iter().position(|own| *own == level).expect("a published level");
    series(forecast, class, quantity).iter().map(|own| own.0[place]).collect()
}

/// Its medians.
pub fn p50(forecast: &Forecast, class: Option<&str>, quantity: Quantity) -> Vec<f64> {
    level(forecast, class, quantity, 0.5)
}

/// The largest distance of a ratio from one, and the mean of the ratio less one.
pub fn off(said: &[f64], truth: &[f64]) -> (f64, f64) {
    assert_eq!(said.len(), truth.len(), "one each");
    let ratios: Vec<f64> = said.iter().zip(truth).map(|(said, truth)| said / truth).collect();
    let worst = ratios.iter().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max);
    (worst, ratios.iter().sum::<f64>() / ratios.len() as f64 - 1.0)
}

/// What must hold of every forecast, whatever it was made from: every published number is a number; what is counted is not
/// negative; quantiles rise with their level; no more of a prompt is fresh than there is; a share is a share.
pub fn check_sound(forecast: &Forecast) -> Result<(), String> {
    check_finite(forecast)?;
    for own in &forecast.outlook.classes {
        for (quantity, series) in &own.series {
            for (step, Quantiles(values)) in series.iter().enumerate() {
                let at = || format!("{:?} {quantity:?} in step {step}: {values:?}", own.class);
                if values[0] < 0.0 {
                    return Err(format!("below zero: {}", at()));
                }
                if values.windows(2).any(|pair| pair[0] > pair[1]) {
                    return Err(format!("does not rise: {}", at()));
                }
                if *quantity == Quantity::CachedShare && values[5] > 1.0 {
                    return Err(format!("more than all of it: {}", at()));
                }
            }
        }
        let of = |quantity| own.series.iter().find(|(of, _)| *of == quantity).map(|(_, own)| own);
        let both = of(Quantity::FreshTokens).zip(of(Quantity::PromptTokens));
        for (step, (fresh, prompt)) in
            both.into_iter().flat_map(|(f, p)| f.iter().zip(p)).enumerate()
        {
            if fresh.0.iter().zip(prompt.0).any(|(fresh, prompt)| *fresh > prompt) {
                let class = &own.class;
                return Err(format!(
                    "fresher than prompts: {class:?} in step {step}: {fresh:?} of {prompt:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Every number of an outlook and of its back-tests is finite.
pub fn check_finite(forecast: &Forecast) -> Result<(), String> {
    let finite = |what: &dyn Fn() -> String, value: f64| {
        if value.is_finite() { Ok(()) } else { Err(format!("{} is {value}", what())) }
    };
    for own in &forecast.outlook.classes {
        for (quantity, series) in &own.series {
            for (step, Quantiles(values)) in series.iter().enumerate() {
                for (level, value) in Quantiles::LEVELS.iter().zip(values) {
                    let what = || format!("{:?} {quantity:?} p{level} in step {step}", own.class);
                    finite(&what, *value)?;
                }
            }
        }
    }
    for own in &forecast.series {
        for (name, value) in figures(&own.backtest) {
            finite(&|| format!("{name} of {:?} {:?}", own.class, own.quantity), value)?;
        }
    }
    for own in &forecast.outliers {
        finite(&|| format!("the outlier of {} at {} s", own.class, own.at_s), own.value)?;
        finite(&|| format!("how far {} is off at {} s", own.class, own.at_s), own.times)?;
    }
    Ok(())
}

/// All that a back-test says, by name; what it does not know is not there.
fn figures(of: &Backtest) -> Vec<(String, f64)> {
    let optional = [
        ("wape", of.wape),
        ("bias", of.bias),
        ("mase", of.mase),
        ("crps", of.crps),
        ("pinball_chosen_then", of.pinball_chosen_then),
        ("pinball", of.pinball),
        ("pinball_naive", of.pinball_naive),
        ("pinball_mean", of.pinball_mean),
        ("width", of.width),
        ("width_ideal", of.width_ideal),
    ];
    let always = [("level", of.level)];
    let known = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut all: Vec<(String, f64)> =
        known.chain(always).map(|(name, value)| (name.to_owned(), value)).collect();
    let mut cover = |lead: usize, coverage: &[Coverage]| {
        for own in coverage {
            let name = |what: &str| format!("{what} of p{} until lead {lead}", own.level);
            all.push((name("coverage"), own.share));
            all.extend(own.p_value.map(|p| (name("p-value"), p)));
        }
    };
    cover(of.leads, &of.coverage);
    of.by_lead.iter().for_each(|(lead, coverage)| cover(*lead, coverage));
    all
}
