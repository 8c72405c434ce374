//! Histories that say little, nothing or nonsense: a result with warnings, or an error that names what is wrong; never a number that is none.

use crate::support::{HOUR_S, HOURS, ahead, by, change, check_finite, check_sound, p50, times};
use plimsoll_forecast::{Forecast, ForecastError};
use plimsoll_stats::Seed;
use plimsoll_testkit::{Kind, Lengths, Truth, class, history, hourly, lose, of_classes};
use plimsoll_workload::{Change, History, Known, Quantity, StepCount, ThreePoint};
use proptest::prelude::*;

const MOST: usize = 20_000;

/// There is a forecast, of so many steps, and every number of it is sound.
fn check(what: &str, history: &History, horizon: usize) -> Forecast {
    let found = ahead(history, horizon, &[]).unwrap_or_else(|error| panic!("{what}: {error}"));
    check_sound(&found).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    for (quantity, series) in found.outlook.classes.iter().flat_map(|own| &own.series) {
        assert_eq!(series.len(), horizon, "{what}: {quantity:?}");
    }
    found
}

/// There is none, for this reason.
fn check_error(history: &History, step_s: u32, horizon: usize, expect: &ForecastError, said: &str) {
    let error = by(step_s, history, horizon, &[]).expect_err("no forecast");
    assert_eq!(&error, expect);
    assert_eq!(error.to_string(), said);
}

fn chat(requests: &[f64]) -> History {
    of_classes(vec![class("chat", requests, |_| Lengths::CHAT)])
}

#[test]
fn nothing_is_no_history() {
    let empty = ForecastError::Empty { step_s: HOUR_S };
    let said = "the history holds no whole step of 3600 s";
    check_error(&history(&[]), HOUR_S, 24, &empty, said);
    check_error(&of_classes(Vec::new()), HOUR_S, 24, &empty, said);
    // Twenty-three hours are no day.
    let day = ForecastError::Empty { step_s: 86_400 };
    let said = "the history holds no whole step of 86400 s";
    check_error(&history(&[5.0; 23]), 86_400, 2, &day, said);
}

#[test]
fn zeros_are_no_demand() {
    let said = "no request was counted in any step";
    for steps in [1, 24, 400] {
        let zeros = history(&vec![0.0; steps]);
        check_error(&zeros, HOUR_S, 24, &ForecastError::Nothing, said);
    }
}

#[test]
fn what_is_no_count_is_named() {
    let counts: [fn(&mut StepCount, f64); 8] = [
        |step, value| step.requests = value,
        |step, value| step.attempts = value,
        |step, value| step.limited = value,
        |step, value| step.failed = value,
        |step, value| step.prompt_tokens.sum = value,
        |step, value| step.cached_tokens.of = value,
        |step, value| step.output_tokens.sum = value,
        |step, value| step.kv_token_s.of = value,
    ];
    for set in counts {
        for (value, said) in [(-3.0, "-3"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            let mut wrong = of_classes(vec![
                class("chat", &[5.0; 30], |_| Lengths::CHAT),
                class("agent", &[5.0; 30], |_| Lengths::CHAT),
            ]);
            set(&mut wrong.classes[1].steps[7], value);
            let expect = ForecastError::Count {
                class: "agent".to_owned(),
                value: said.to_owned(),
                at_s: 7 * 3600,
            };
            let said = format!(
                "class `agent` counts {said} in the step at 25200 s, which is no number from zero on"
            );
            check_error(&wrong, HOUR_S, 24, &expect, &said);
        }
    }
}

#[test]
fn steps_that_do_not_fit() {
    let hours = history(&[5.0; 48]);
    for step_s in [0, 1800, 5400] {
        let expect = ForecastError::Step { step_s, own_s: 3600 };
        let said = format!("steps of {step_s} s are not made of whole steps of 3600 s");
        check_error(&hours, step_s, 24, &expect, &said);
    }
    let none = History { step_s: 0, ..hours };
    let expect = ForecastError::Step { step_s: HOUR_S, own_s: 0 };
    check_error(&none, HOUR_S, 24, &expect, "steps of 3600 s are not made of whole steps of 0 s");
}

#[test]
fn horizons_beyond_all_sense() {
    for steps in [0, MOST + 1, usize::MAX] {
        let expect = ForecastError::Horizon { steps, most: MOST };
        let said = format!("a horizon of {steps} steps is not between 1 and 20000");
        check_error(&history(&[5.0; 48]), HOUR_S, steps, &expect, &said);
    }
}

/// Little history is a forecast that says that it rests on little. With nothing else to go by it is what came.
#[test]
fn little_is_said_to_be_little() {
    for steps in [1, 2, 5, 6, 7, 23, 24, 47, 48, 49] {
        let found = check(&format!("{steps} steps"), &chat(&vec![3600.0; steps]), 24);
        assert!(found.warnings.iter().any(|w| w.contains("less than two weeks")), "{steps} steps");
        for (quantity, each) in [(Quantity::Requests, 1.0), (Quantity::OutputTokens, 200.0)] {
            for said in p50(&found, None, quantity) {
                assert!((said / each - 1.0).abs() < 1e-9, "{steps} steps: {quantity:?} {said}");
            }
        }
    }
    // One row: nothing is known of how far it may be off, which is not nothing.
    let one = check("one row", &chat(&[3600.0]), 1);
    let quantiles = one.outlook.series(None, Quantity::Requests).unwrap()[0];
    assert!(quantiles.at(0.95) > 1.5, "{quantiles:?}");
    assert_eq!((one.steps, one.series[0].backtest.points), (1, 0));
}

/// A year ahead of two days, and of one hour.
#[test]
fn far_ahead_of_little() {
    for (steps, horizon) in [(1, MOST), (48, 8760), (100, MOST)] {
        let requests = hourly(&Truth::CALM, Kind::Bursty, steps, &mut Seed::new(1).stream("short"));
        let found = check(&format!("{horizon} of {steps}"), &chat(&requests), horizon);
        assert!(
            found.warnings.iter().any(|w| w.contains("rest on little")),
            "{:?}",
            found.warnings
        );
    }
}

/// What never changes is forecast as it is, at every quantile.
#[test]
fn a_constant_is_certain() {
    for value in [1e-6, 1.0, 3600.0, 1e15] {
        let found = check(&format!("constant {value}"), &chat(&[value; HOURS]), 168);
        for quantiles in found.outlook.series(None, Quantity::Requests).unwrap() {
            for said in quantiles.0 {
                assert!((said * 3600.0 / value - 1.0).abs() < 1e-6, "{value}: {quantiles:?}");
            }
        }
    }
}

/// Everything but one step is empty: that is what is usual then, and nothing is known to be missing but the same time of a day or a week
/// beside it, of which nothing else is known.
#[test]
fn nearly_nothing_is_no_gap() {
    for (steps, hour) in [(5, 2), (47, 40), (48, 0), (48, 47), (400, 200)] {
        let mut broken = chat(&vec![3600.0; steps]);
        lose(&mut broken, 0..hour);
        lose(&mut broken, hour + 1..steps);
        let found = check(&format!("all of {steps} but one"), &broken, 48);
        assert!(found.missing <= 2, "{steps}: {}", found.missing);
    }
}

#[test]
fn large_numbers_stay_numbers() {
    let stream = &mut Seed::new(2).stream("large");
    let requests = hourly(&Truth::CALM, Kind::Bursty, 400, stream);
    let large: Vec<f64> = requests.iter().map(|n| n * 1e12).collect();
    check("1e15", &chat(&large), 168);
    // One of them among small ones.
    let mut mixed = requests;
    mixed[300] = 1e15;
    let found = check("one of 1e15", &chat(&mixed), 168);
    assert!(found.outliers.iter().any(|own| own.at_s == 300 * 3600), "{:?}", found.outliers);
    // Lengths of 1e15 tokens, and shares of more than one.
    let long = Lengths { prompt: 1e15, output: 1e15, cached: 3.0, held_s: 1e6 };
    check("long", &of_classes(vec![class("chat", &mixed, |_| long)]), 48);
}

/// A class that is always idle is forecast as idle and disturbs no other.
#[test]
fn an_idle_class_beside_a_busy_one() {
    let stream = &mut Seed::new(3).stream("busy");
    let requests = hourly(&Truth::CALM, Kind::Multiplicative, 400, stream);
    let idle = class("idle", &[0.0; 400], |_| Lengths::CHAT);
    let both = of_classes(vec![class("busy", &requests, |_| Lengths::CHAT), idle]);
    let found = check("idle", &both, 48);
    let alone = check("alone", &chat(&requests), 48);
    for quantity in [Quantity::Requests, Quantity::PromptTokens, Quantity::OutputTokens] {
        for said in p50(&found, Some("idle"), quantity) {
            assert!(said < 1e-12, "{quantity:?}: {said}");
        }
        let (all, busy) = (p50(&found, None, quantity), p50(&alone, None, quantity));
        for (all, busy) in all.iter().zip(&busy) {
            assert!((all / busy - 1.0).abs() < 0.01, "{quantity:?}: {all} and {busy}");
        }
    }
}

/// Classes of other lengths are idle where they have no steps.
#[test]
fn classes_of_other_lengths() {
    let both = of_classes(vec![
        class("long", &[50.0; 200], |_| Lengths::CHAT),
        class("short", &[50.0; 20], |_| Lengths::CHAT),
        class("none", &[], |_| Lengths::CHAT),
    ]);
    check("other lengths", &both, 24);
}

/// Tokens without requests, requests without attempts, sums over nothing.
#[test]
fn counts_that_contradict_each_other() {
    let odd = StepCount {
        requests: 0.0,
        attempts: 5.0,
        output_tokens: Known { sum: 10.0, of: 0.0 },
        prompt_tokens: Known { sum: 0.0, of: 5.0 },
        cached_tokens: Known { sum: 7.0, of: 1.0 },
        ..StepCount::default()
    };
    let mut all = chat(&[50.0; 100]);
    all.classes[0].steps[..60].fill(odd);
    check("odd", &all, 24);
    let mut only = chat(&[50.0; 100]);
    only.classes[0].steps.fill(odd);
    check("only odd", &only, 24);
}

/// Changes that leave nothing, multiply beyond measure, last no time, or concern nobody.
#[test]
fn changes_beyond_measure() {
    let history = chat(&[3600.0; 100]);
    let zero = ThreePoint { low: 0.0, likely: 0.0, high: 0.0 };
    let wide = ThreePoint { low: 0.0, likely: 1.0, high: 1e9 };
    let end = 100 * 3600;
    let rows = [
        Change { rate: zero, ..change("shut down", end) },
        Change { rate: zero, ..change("was shut down", 0) },
        Change { rate: wide, prompt: wide, output: wide, cache_hit: wide, ..change("wide", end) },
        Change { rate: wide, cache_hit: zero, ..change("was wide", 50 * 3600) },
        Change { cache_hit: times(100.0), ..change("hits", end) },
        Change { until_s: Some(end), ..change("no time", end) },
        Change { until_s: Some(i64::MIN), ..change("backwards", i64::MAX) },
        Change { rate: times(2.0), ..change("always", i64::MIN) },
        Change { classes: vec!["nobody".to_owned()], rate: wide, ..change("nobody's", end) },
    ];
    for own in rows.iter().map(std::slice::from_ref).chain([&rows[..]]) {
        let found = ahead(&history, 24, own).unwrap();
        check_finite(&found)
            .and(check_sound(&found))
            .unwrap_or_else(|wrong| panic!("{own:?}: {wrong}"));
    }
    let shut = ahead(&history, 24, &rows[..1]).unwrap();
    assert!(p50(&shut, None, Quantity::Requests).iter().all(|said| *said < 1e-6));
    for outside in [&rows[5], &rows[6]] {
        let found = ahead(&history, 24, std::slice::from_ref(outside)).unwrap();
        assert!(found.applied.is_empty());
        assert!(
            found.warnings.iter().any(|w| w.contains(&format!("`{}` lies outside", outside.name)))
        );
    }
}

/// Clocks at the ends of time.
#[test]
fn times_beyond_measure() {
    for start_s in [i64::MIN, -86_400 * 365, 1, i64::MAX - 100] {
        for absolute in [false, true] {
            let history = History { start_s, absolute, ..chat(&[50.0; 100]) };
            for step_s in [HOUR_S, 4 * HOUR_S] {
                let found = by(step_s, &history, 24, &[change("always", i64::MIN)]).unwrap();
                assert_eq!(check_sound(&found), Ok(()), "from {start_s}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(64)))]

    /// Counts of any size, in any mixture, are a forecast; with one that is no count they are an error.
    #[test]
    fn any_counts(
        mut counts in prop::collection::vec(
            prop_oneof![Just(0.0), 0.0f64..1.0, 0.0f64..1e4, Just(1e15), Just(1e-300)],
            0..60,
        ),
        wrong in prop::option::weighted(0.2, (any::<prop::sample::Index>(), prop_oneof![Just(-1.0), Just(f64::NAN)])),
        horizon in 1usize..40,
    ) {
        let mut fine = counts.iter().any(|n| *n > 0.0);
        if let Some((at, value)) = wrong && !counts.is_empty() {
            let at = at.index(counts.len());
            counts[at] = value;
            fine = false;
        }
        match ahead(&chat(&counts), horizon, &[]) {
            Ok(found) => {
                prop_assert!(fine);
                prop_assert_eq!(check_sound(&found), Ok(()));
            }
            Err(error) => prop_assert!(!fine, "{}", error),
        }
    }
}
