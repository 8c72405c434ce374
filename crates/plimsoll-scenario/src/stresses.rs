//! Hard times to try, what may be otherwise, and conditions that monitors evaluate: what a file says of them, and what holds where it is silent.

use jiff::Timestamp;
use plimsoll_fleet::promql::{self, BinaryOp, Expr};
use plimsoll_study::{
    Comparison, Condition, Lever, PoolFacts, SimulatedClass, Stress, StressHour, Uncertain,
    UnitOfLoss,
};
use plimsoll_workload::{Class, Shift};

use crate::sections::{self, Event, Scenario, StressLoss};
use crate::values::Range;
use crate::{ClassName, Loaded};

/// The standard stresses and the scenario's own. One that has the name of a standard one takes its place.
pub fn stresses(scenario: &Scenario, classes: &[SimulatedClass]) -> Vec<Stress> {
    let own = |name: &str| scenario.stress.iter().find(|own| own.name.as_str() == name);
    let mut all: Vec<Stress> = standard()
        .into_iter()
        .map(|stress| match own(&stress.name) {
            Some(own) => stated(own, classes),
            None => stress,
        })
        .collect();
    let more = scenario.stress.iter().filter(|own| {
        let name = own.name.as_str();
        !all.iter().any(|standard| standard.name == name)
    });
    let more: Vec<Stress> = more.map(|own| stated(own, classes)).collect();
    all.extend(more);
    all
}

/// Hard times that every fleet is tried with.
fn standard() -> Vec<Stress> {
    let none = Stress::none;
    vec![
        Stress {
            hour: StressHour::Baseline,
            ..none("baseline", "the busiest hour without events")
        },
        Stress {
            hour: StressHour::Launch,
            ..none("launch peak", "the busiest hour that an event changes")
        },
        // One in ten is enough to be a cohort and few enough to be overlooked; four times the prompt is what whole files instead of functions are.
        Stress {
            share: 0.1,
            shift: Shift { prompt: 4.0, ..Shift::NONE },
            ..none("long-context cohort", "one task in ten has prompts four times as long")
        },
        Stress {
            failure: 0.15,
            ..none("retry spike", "15% of all calls fail and come a second time")
        },
        Stress {
            shift: Shift { cache_hit: 0.0, ..Shift::NONE },
            ..none("cache-miss event", "nothing is found in a prefix cache")
        },
        // A router that escalates what it is unsure of sends about as much upwards when its judge is wrong.
        Stress {
            to_strongest: 0.3,
            ..none("route-mix shift", "30% of what others serve goes to the strongest model")
        },
        Stress {
            lose: UnitOfLoss::Region,
            inherits: true,
            ..none(
                "regional failover",
                "the region with most replicas is lost; where there is one, that of others comes here",
            )
        },
        Stress {
            lose: UnitOfLoss::Replicas(1),
            ..none("replica loss at peak", "every pool loses a replica and gets none back")
        },
        Stress {
            startup: 2.0,
            ..none("startup twice as slow", "replicas that should be ready are still starting")
        },
        Stress {
            shift: Shift { output: 1.5, ..Shift::NONE },
            ..none("output +50%", "answers are half as long again")
        },
        Stress { limits: 0.5, ..none("provider limit halved", "providers allow half as much") },
        // What one chip costs differs by four between clouds; a quarter is a usual renewal.
        Stress { price: 1.25, ..none("price change", "everything costs a quarter more") },
    ]
}

fn stated(own: &sections::Stress, classes: &[SimulatedClass]) -> Stress {
    Stress {
        name: own.name.as_str().to_owned(),
        about: "as the scenario says".to_owned(),
        owner: own.owner.clone(),
        hour: StressHour::Peak,
        classes: (!own.class.is_empty()).then(|| places(&own.class, classes)),
        share: own.share.get(),
        shift: Shift {
            rate: own.rate.get(),
            prompt: own.prompt.get(),
            output: own.output.get(),
            cache_hit: own.cache_hit.get(),
        },
        failure: own.failure.get(),
        startup: own.startup.get(),
        price: own.price.get(),
        limits: own.provider_limits.get(),
        to_strongest: own.to_strongest.get(),
        lose: match own.lose {
            StressLoss::Nothing => UnitOfLoss::Nothing,
            StressLoss::Replica => UnitOfLoss::Replicas(1),
            StressLoss::Node => UnitOfLoss::Nodes(1),
            StressLoss::Zone => UnitOfLoss::Zones(1),
            StressLoss::Region => UnitOfLoss::Region,
        },
        inherits: false,
    }
}

/// The places of classes among those that are simulated.
fn places(names: &[ClassName], classes: &[SimulatedClass]) -> Vec<usize> {
    let at = |name: &ClassName| classes.iter().position(|c| c.class.name == name.as_str());
    names.iter().filter_map(at).collect()
}

/// The places of the classes that a change is of: those that it names, else those that its pool serves, else all.
pub fn proposed_classes(
    scenario: &Scenario,
    change: &sections::Change,
    classes: &[SimulatedClass],
) -> Vec<usize> {
    if !change.class.is_empty() {
        return places(&change.class, classes);
    }
    let named = change.pool.as_ref();
    let pool = named
        .and_then(|name| scenario.pool.iter().find(|pool| pool.name.as_str() == name.as_str()));
    let comes = |at: &usize| {
        pool.is_none_or(|pool| crate::serves(scenario, pool, &classes[*at].class.name))
    };
    (0..classes.len()).filter(comes).collect()
}

/// What a text says to a monitor; or what is wrong with it.
pub fn condition(text: &str) -> Result<Condition, String> {
    let expression = promql::read(text)
        .map_err(|error| format!("{}, at character {}", error.message, error.at + 1))?;
    match of(&expression) {
        Condition::Beyond(_) if !compares(&expression) => {
            Err("it compares nothing, so it is never true".to_owned())
        }
        condition => Ok(condition),
    }
}

fn of(expression: &Expr) -> Condition {
    let beyond = || Condition::Beyond(format!("`{expression}`"));
    match expression {
        Expr::Paren(inner) => of(inner),
        Expr::Binary(binary) => {
            let sides = || (Box::new(of(&binary.left)), Box::new(of(&binary.right)));
            match binary.op {
                BinaryOp::And => {
                    let (left, right) = sides();
                    Condition::Both(left, right)
                }
                BinaryOp::Or => {
                    let (left, right) = sides();
                    Condition::Either(left, right)
                }
                op => compared(op, &binary.left, &binary.right).unwrap_or_else(beyond),
            }
        }
        _ => beyond(),
    }
}

/// A metric against a number, either way round; none for anything else.
fn compared(op: BinaryOp, left: &Expr, right: &Expr) -> Option<Condition> {
    let (metric, value, turned) = match (left, right) {
        (Expr::Selector(metric), Expr::Number(value)) => (metric, value, false),
        (Expr::Number(value), Expr::Selector(metric)) => (metric, value, true),
        _ => return None,
    };
    // A selection by labels is of something that we do not tell apart.
    let name = metric.name.clone().filter(|_| metric.matchers.is_empty())?;
    let how = match (op, turned) {
        (BinaryOp::Less, false) | (BinaryOp::Greater, true) => Comparison::Below,
        (BinaryOp::LessEqual, false) | (BinaryOp::GreaterEqual, true) => Comparison::AtMost,
        (BinaryOp::Greater, false) | (BinaryOp::Less, true) => Comparison::Above,
        (BinaryOp::GreaterEqual, false) | (BinaryOp::LessEqual, true) => Comparison::AtLeast,
        _ => return None,
    };
    Some(Condition::Compare(name, how, *value))
}

/// Whether an expression compares anything: only then is it sometimes true and sometimes not.
fn compares(expression: &Expr) -> bool {
    match expression {
        Expr::Paren(inner) => compares(inner),
        Expr::Binary(binary) => {
            binary.op.compares() || compares(&binary.left) || compares(&binary.right)
        }
        // An alert on what is absent, or on a function of others.
        Expr::Call(_) => true,
        _ => false,
    }
}

/// What is assumed of an assumption that nobody has given a range: these shares less and more.
const LENGTHS: (f64, f64) = (0.8, 1.25);
const RATES: (f64, f64) = (0.8, 1.25);
const HITS: (f64, f64) = (0.7, 1.1);
const STARTUP: (f64, f64) = (0.6, 1.6);
const PRICES: (f64, f64) = (0.85, 1.2);
/// Classes whose lengths are looked at one by one, those that ask for most tokens first.
const CLASSES: usize = 3;
/// A median error times this is exceeded one time in ten, were errors normal: 1.645 / 0.674.
const BAND: f64 = 2.44;
/// The quantiles that ranges run between.
const ENDS: (f64, f64) = (0.05, 0.95);

const ASSUMED: &str = "assumed: nobody has said or measured how it varies";

/// What may be otherwise than is likely, each over its own range: as events say, as the ledger has seen, else as is assumed.
pub fn uncertain(
    loaded: &Loaded,
    classes: &[SimulatedClass],
    (start, hour, events): (Timestamp, usize, bool),
    pools: &[(String, PoolFacts)],
) -> Vec<Uncertain> {
    let mut all = Vec::new();
    let scenario = &loaded.scenario;
    let active: Vec<&Event> = match events {
        true => scenario.event.iter().filter(|event| touches(event, start, hour)).collect(),
        false => Vec::new(),
    };
    for event in &active {
        all.extend(of_event(event, classes));
    }
    let names: Vec<String> = classes.iter().map(|c| c.class.name.clone()).collect();
    let mut by_size: Vec<usize> = (0..classes.len()).collect();
    by_size.sort_by(|a, b| {
        let of = |at: &usize| classes[*at].class.expected_tokens(hour, events);
        of(b).total_cmp(&of(a))
    });
    let stated = |key: fn(&Event) -> Range, class: &str| {
        active.iter().any(|event| {
            let range = key(event);
            let concerned =
                event.class.is_empty() || event.class.iter().any(|c| c.as_str() == class);
            concerned && range.quantile(ENDS.0) < range.quantile(ENDS.1)
        })
    };
    for at in by_size.into_iter().take(CLASSES) {
        let (name, class) = (&names[at], &classes[at].class);
        let seen = loaded.observed(name, start, hour);
        let source = |known: bool| match known {
            true => "the ledger: how far it has varied around its forecast".to_owned(),
            false => ASSUMED.to_owned(),
        };
        let ends = |known: Option<(f64, f64)>, assumed: (f64, f64)| known.unwrap_or(assumed);
        let rate = seen.as_ref().and_then(|seen| seen.rate);
        if rate.is_some() || !stated(|event| event.rate, name) {
            let (low, high) = ends(rate, RATES);
            all.push(demand(
                (format!("rate of {name}"), source(rate.is_some())),
                "compare arrivals with the forecast day by day (`plimsoll reconcile`)",
                vec![at],
                (low, high),
                |times| Shift { rate: times, ..Shift::NONE },
            ));
        }
        let prompt = seen.as_ref().and_then(|seen| seen.prompt);
        if prompt.is_some() || !stated(|event| event.prompt, name) {
            all.push(demand(
                (format!("prompt length of {name}"), source(prompt.is_some())),
                "log prompt tokens of each request and look at their tail, not their mean",
                vec![at],
                ends(prompt, LENGTHS),
                |times| Shift { prompt: times, ..Shift::NONE },
            ));
        }
        let output = seen.as_ref().and_then(|seen| seen.output);
        if output.is_some() || !stated(|event| event.output, name) {
            all.push(demand(
                (format!("output length of {name}"), source(output.is_some())),
                "log output tokens of each request; cap them with `max_tokens` where answers may be cut",
                vec![at],
                ends(output, LENGTHS),
                |times| Shift { output: times, ..Shift::NONE },
            ));
        }
        if is_cached(class) && !stated(|event| event.cache_hit, name) {
            let hit = seen.as_ref().and_then(|seen| seen.hit);
            let (low, high) = ends(hit, HITS);
            all.push(demand(
                (format!("cache hits of {name}"), source(hit.is_some())),
                "scrape the engine's prefix cache counters; replay a day without them",
                vec![at],
                // More hits are better.
                (high, low),
                |times| Shift { cache_hit: times, ..Shift::NONE },
            ));
        }
    }
    let repeated = Shift { rate: 1.1, ..Shift::NONE };
    let attempts = "one in ten";
    all.push(Uncertain {
        name: "calls that come again".to_owned(),
        better: "none".to_owned(),
        likely: "none".to_owned(),
        worse: attempts.to_owned(),
        source: ASSUMED.to_owned(),
        measure: "count attempts and tasks apart; put a budget on retries".to_owned(),
        lever: Lever::Demand((0..classes.len()).collect(), Shift::NONE, repeated),
    });
    for (at, (name, facts)) in pools.iter().enumerate() {
        let Some(band) = facts.band_pct.filter(|band| *band > 0.0) else { continue };
        let slower = 1.0 + band / 100.0 * BAND;
        all.push(Uncertain {
            name: format!("step times of {name}"),
            // No step may be faster than physics allows, so only the worse end is tried.
            better: "as predicted".to_owned(),
            likely: "as predicted".to_owned(),
            worse: format!("{:.0}% slower", (slower - 1.0) * 100.0),
            source: format!("our own errors on measured engines: {band:.0}% in the middle"),
            measure: "run a benchmark on one replica and `plimsoll calibrate` it".to_owned(),
            lever: Lever::Steps(at, 1.0, slower),
        });
    }
    if !pools.is_empty() {
        all.push(times(
            "startup",
            "time a start from cold to ready, ten times",
            STARTUP,
            Lever::Startup,
        ));
        all.push(times(
            "prices",
            "ask for a quote; enter it under `[[prices.node]]` with its date",
            PRICES,
            Lever::Price,
        ));
    }
    all
}

fn times(
    name: &str,
    measure: &str,
    (better, worse): (f64, f64),
    lever: impl Fn(f64, f64) -> Lever,
) -> Uncertain {
    Uncertain {
        name: name.to_owned(),
        better: format!("{better:.2}x"),
        likely: "as stated".to_owned(),
        worse: format!("{worse:.2}x"),
        source: ASSUMED.to_owned(),
        measure: measure.to_owned(),
        lever: lever(better, worse),
    }
}

fn demand(
    (name, source): (String, String),
    measure: &str,
    classes: Vec<usize>,
    (better, worse): (f64, f64),
    shift: impl Fn(f64) -> Shift,
) -> Uncertain {
    Uncertain {
        name,
        better: format!("{better:.2}x"),
        likely: "as expected".to_owned(),
        worse: format!("{worse:.2}x"),
        source,
        measure: measure.to_owned(),
        lever: Lever::Demand(classes, shift(better), shift(worse)),
    }
}

/// Whether any prompt of a class is cached.
fn is_cached(class: &Class) -> bool {
    let cold = class.task.expected(&Shift { cache_hit: 0.0, ..Shift::NONE }).0;
    cold > class.task.expected(&Shift::NONE).0
}

/// Whether an event changes an hour.
fn touches(event: &Event, start: Timestamp, hour: usize) -> bool {
    let at = hour as f64 * 3600.0;
    let from = event.from.seconds_after(start);
    let to = event.to.map_or(f64::INFINITY, |to| to.seconds_after(start));
    from < at + 3600.0 && to > at
}

/// The multipliers of an event that have a range.
fn of_event(event: &Event, classes: &[SimulatedClass]) -> Vec<Uncertain> {
    let concerned = match event.class.is_empty() {
        true => (0..classes.len()).collect(),
        false => places(&event.class, classes),
    };
    type Set = fn(f64) -> Shift;
    let keys: [(&str, Range, Set, bool, &str); 4] = [
        (
            "rate",
            event.rate,
            |times| Shift { rate: times, ..Shift::NONE },
            false,
            "let a small share of users in first, and count what they ask for",
        ),
        (
            "prompt length",
            event.prompt,
            |times| Shift { prompt: times, ..Shift::NONE },
            false,
            "run what changes on recorded requests, and count prompt tokens",
        ),
        (
            "output length",
            event.output,
            |times| Shift { output: times, ..Shift::NONE },
            false,
            "run what changes on recorded requests, and count output tokens",
        ),
        (
            "cache hits",
            event.cache_hit,
            |times| Shift { cache_hit: times, ..Shift::NONE },
            true,
            "run what changes on recorded requests against a warm cache, and count hits",
        ),
    ];
    let each = keys.into_iter().filter_map(|(what, range, set, more_is_better, measure)| {
        let (low, high) = (range.quantile(ENDS.0), range.quantile(ENDS.1));
        let middle = range.quantile(0.5);
        if low >= high || middle <= 0.0 || concerned.is_empty() {
            return None;
        }
        let (better, worse) = if more_is_better { (high, low) } else { (low, high) };
        Some(Uncertain {
            name: format!("{}: {what}", event.name.as_str()),
            better: format!("{better:.2}x"),
            likely: format!("{middle:.2}x"),
            worse: format!("{worse:.2}x"),
            source: format!("event `{}`: its low and high", event.name.as_str()),
            measure: measure.to_owned(),
            lever: Lever::Demand(concerned.clone(), set(better / middle), set(worse / middle)),
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_a_monitor_reads_them() {
        let below =
            |name: &str, value| Condition::Compare(name.to_owned(), Comparison::Below, value);
        let check =
            |text: &str, expect: Condition| assert_eq!(condition(text), Ok(expect), "{text}");
        check("edit_success_rate < 0.60", below("edit_success_rate", 0.6));
        check("0.6 > edit_success_rate", below("edit_success_rate", 0.6));
        check(
            "(a < 1) and b < 2",
            Condition::Both(Box::new(below("a", 1.0)), Box::new(below("b", 2.0))),
        );
        check(
            "a < 1 or b >= 2",
            Condition::Either(
                Box::new(below("a", 1.0)),
                Box::new(Condition::Compare("b".to_owned(), Comparison::AtLeast, 2.0)),
            ),
        );
        // What a monitor understands and a simulation does not is kept, and said to be so.
        let rate = "rate(errors_total[5m]) > 0.1";
        assert!(matches!(condition(rate), Ok(Condition::Beyond(_))), "{:?}", condition(rate));
        let labelled = r#"latency{quantile="0.95"} > 2"#;
        assert!(matches!(condition(labelled), Ok(Condition::Beyond(_))));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["", "edit success within 1 point", "a <", "just_a_metric", "1 + 2"] {
            assert!(condition(text).is_err(), "{text}: {:?}", condition(text));
        }
    }

    /// Classes may be left out of a study; a stress of these is not one of everybody.
    #[test]
    fn a_stress_of_classes_that_nobody_comes_of_is_not_of_all() {
        let text = "[[class]]\nname = \"chat\"\nprofile = \"chat\"\nrate = \"1/s\"\n\n[[stress]]\nname = \"surge\"\nclass = [\"chat\"]\nrate = 9.0\n\n[[stress]]\nname = \"all\"\nrate = 2.0\n";
        let loaded = crate::parse(&crate::Source::new("x.toml", text), crate::builtin());
        let loaded = loaded.unwrap_or_else(|mistakes| panic!("{}", mistakes[0].message));
        let all = stresses(&loaded.scenario, &[]);
        let classes = |name: &str| {
            all.iter().find(|own| own.name == name).and_then(|own| own.classes.clone())
        };
        assert_eq!((classes("surge"), classes("all")), (Some(Vec::new()), None));
        assert_eq!(all.len(), 14);
    }

    #[test]
    fn every_standard_stress_changes_something_or_is_an_hour() {
        let all = standard();
        assert_eq!(all.len(), 12);
        for stress in &all {
            let none = Stress::none(&stress.name, &stress.about);
            assert_ne!(*stress, none, "{}", stress.name);
        }
    }
}
