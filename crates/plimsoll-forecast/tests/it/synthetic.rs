//! A thousand series whose truth is known: what the intervals promise, they keep.

use plimsoll_forecast::{Forecast, ForecastInput, Memory, forecast};
use plimsoll_stats::{Seed, in_order};
use plimsoll_testkit::{Kind, Truth, history, hourly, sized};
use plimsoll_workload::Quantity;

const WEEKS: usize = 6;
const HOURS: usize = WEEKS * 168;
const AHEAD: usize = 24;

fn ahead(requests: &[f64]) -> Forecast {
    let history = history(requests);
    let input = ForecastInput {
        history: &history,
        step_s: 3600,
        horizon: AHEAD,
        sizing: 0.95,
        changes: &[],
        memory: &Memory::default(),
        seed: Seed::new(7),
        threads: 1,
    };
    forecast(&input).expect("a forecast")
}

/// What came of one series: hours at or below the 95th percentile; of the six busiest, those above the 97.5th; and the same of the back-test.
struct Came {
    below: usize,
    busiest_above: usize,
    backtest: f64,
    loses: bool,
}

fn one(kind: Kind, i: u32) -> Came {
    let mut stream = Seed::new(2026).run(u64::from(i)).stream("series");
    let truth = Truth::draw(&mut stream);
    let all = hourly(&truth, kind, HOURS + AHEAD, &mut stream);
    let (known, came) = all.split_at(HOURS);
    let found = ahead(known);
    let quantiles = found.outlook.series(None, Quantity::Requests).expect("requests");
    let rates: Vec<f64> = came.iter().map(|n| n / 3600.0).collect();
    let mut busiest: Vec<usize> = (0..AHEAD).collect();
    busiest.sort_by(|a, b| rates[*b].total_cmp(&rates[*a]));
    let below = (0..AHEAD).filter(|h| rates[*h] <= quantiles[*h].at(0.95)).count();
    let busiest_above =
        busiest[..AHEAD / 4].iter().filter(|h| rates[**h] > quantiles[**h].at(0.975)).count();
    let backtest = &found.series[0].backtest;
    let [own, naive, mean] = [backtest.pinball, backtest.pinball_naive, backtest.pinball_mean]
        .map(|loss| loss.expect("scored"));
    Came {
        below,
        busiest_above,
        backtest: backtest.coverage[3].share,
        loses: own > naive.min(mean) * (1.0 + 1e-8),
    }
}

/// A thousand series; in the quick tier fewer, of which less is known.
#[test]
fn a_thousand_series_are_covered_as_promised() {
    let (series, around) = sized((90, 0.92..=0.98), (1_000, 0.94..=0.96));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let came = in_order(threads, series, |i| one(Kind::ALL[i as usize % 3], i));
    let n = came.len() as f64;
    let mut worst = String::new();
    for kind in 0..3 {
        let own = || came.iter().skip(kind).step_by(3);
        let hours = own().count() * AHEAD;
        let share = own().map(|c| c.below).sum::<usize>() as f64 / hours as f64;
        let busy = own().map(|c| c.busiest_above).sum::<usize>() as f64 / (hours / 4) as f64;
        let back = own().map(|c| c.backtest).sum::<f64>() / own().count() as f64;
        worst +=
            &format!("{:?}: {share:.4}, busiest {busy:.4}, back-test {back:.4}; ", Kind::ALL[kind]);
    }
    let share = came.iter().map(|c| c.below).sum::<usize>() as f64 / (n * AHEAD as f64);
    let busy =
        came.iter().map(|c| c.busiest_above).sum::<usize>() as f64 / (n * AHEAD as f64 / 4.0);
    let back = came.iter().map(|c| c.backtest).sum::<f64>() / n;
    let said = format!("{worst}all {share:.4}, busiest {busy:.4}, back-test {back:.4}");
    eprintln!("{said}");
    assert!(around.contains(&share), "{said}");
    assert!(around.contains(&back), "{said}");
    assert!(busy <= 0.05, "{said}");
    assert!(came.iter().all(|c| !c.loses), "{said}");
}
