//! What is asked of the fleet in its busiest hour.
//!
//! The busiest hour is the one with the most expected fresh and output tokens, because requests a second
//! are only the envelope. Its arrivals are drawn several times, counted in windows, and the 95th
//! percentile over windows is averaged over the runs, with an interval.
//!
//! The hour is closed to a ring: what a task asks for after its end is counted at its beginning. So a
//! conversation that lasts a day has its full share of requests in the hour, as if the hour's rate had
//! held all along, and the mean is exact whatever the pauses are.

use plimsoll_stats::{
    ArrivalError, Arrivals, Interval, Process, RateCurve, Seed, in_order, mean_interval, quantile,
};
use plimsoll_workload::{Class, Drawn, Shift};
use serde::Serialize;

/// What a demand study needs.
#[derive(Clone, Debug)]
pub struct DemandInput {
    /// Who asks for what, hour by hour.
    pub classes: Vec<Class>,
    /// What of it comes to each pool; none where that is not asked for.
    pub pools: Vec<PoolRouting>,
    /// Demand is counted over windows of this length.
    pub window_s: f64,
    /// Independent runs.
    pub runs: u32,
    /// The level of intervals.
    pub level: f64,
    /// Makes it repeatable.
    pub seed: Seed,
    /// Threads to use; the result does not depend on it.
    pub threads: usize,
}

/// What comes to a pool, fallbacks and shifts apart.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRouting {
    /// The pool.
    pub pool: String,
    /// By class: the share of its calls that come here, by the stage that sends them; none for those that go where their class does.
    pub shares: Vec<Vec<(Option<u16>, f64)>>,
    /// Whether prompts are computed here.
    pub prompts: bool,
    /// Whether outputs are generated here.
    pub outputs: bool,
}

/// Why a study cannot be carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StudyError {
    /// There is no hour to look at.
    #[error("the study has no hour: the horizon is empty or no class has a rate")]
    Empty,
    /// A class's arrivals cannot be drawn.
    #[error("class `{class}` has no arrivals")]
    Arrivals {
        /// The class.
        class: String,
        /// Why.
        source: ArrivalError,
    },
    /// More requests than a simulation draws.
    #[error(
        "a run would get {requests:.1e} requests of `{class}`; at most {most:.0e} are simulated"
    )]
    TooMany {
        /// The class.
        class: String,
        /// How many it would be.
        requests: f64,
        /// How many it may be.
        most: f64,
    },
}

/// Demand in the busiest hour, without and with events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// Windows that demand is counted over.
    pub window_s: f64,
    /// Independent runs behind each number.
    pub runs: u32,
    /// The busiest hour without events.
    pub baseline_hour: BusyHour,
    /// The busiest hour that an event changes, if any does.
    pub launch_hour: Option<BusyHour>,
    /// All classes first, then each; requests, fresh prompt and output tokens of each.
    pub rows: Vec<DemandRow>,
    /// What comes to each pool; fresh prompt and output tokens where they are computed and generated there.
    pub pools: Vec<PoolDemand>,
}

/// What comes to a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolDemand {
    /// The pool.
    pub pool: String,
    /// What is counted.
    pub resource: Resource,
    /// Without events.
    pub baseline: Level,
    /// With them.
    pub launch: Option<Level>,
}

/// An hour of the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BusyHour {
    /// Counted from the start of the horizon.
    pub index: usize,
    /// One drawn task of the most frequent class stands for this many: above one only where rates are too
    /// high to draw each.
    pub tasks_per_draw: u64,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemandRow {
    /// The class; none for all of them together.
    pub class: Option<String>,
    /// What is counted.
    pub resource: Resource,
    /// Without events.
    pub baseline: Level,
    /// With them.
    pub launch: Option<Level>,
}

/// A resource of the launch table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Model requests.
    Requests,
    /// Prompt tokens that are not cached.
    FreshPromptTokens,
    /// Generated tokens.
    OutputTokens,
}

/// How much of it, a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Over the whole hour.
    pub mean_per_s: f64,
    /// The 95th percentile over windows, averaged over the runs.
    pub p95_per_s: f64,
    /// How sure that is.
    pub p95_interval: Option<Span>,
    /// The fullest window, averaged over the runs.
    pub peak_per_s: f64,
}

/// An interval, as results print it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Such as 0.95.
    pub level: f64,
    /// Observations behind it.
    pub n: usize,
}

impl From<Interval> for Span {
    fn from(i: Interval) -> Self {
        // No rate is below zero.
        Self { low: i.low.max(0.0), high: i.high, level: i.level, n: i.n }
    }
}

const HOUR: f64 = 3600.0;
/// Requests drawn for a column of one class at most; beyond, one draw stands for several tasks.
const CLASS_DRAWS_MAX: f64 = 12_000_000.0;
/// The same for all classes together.
const DRAWS_MAX: f64 = 48_000_000.0;
const RESOURCES: [Resource; 3] =
    [Resource::Requests, Resource::FreshPromptTokens, Resource::OutputTokens];

/// The busiest hour without events, and the busiest that an event changes, if any does.
pub fn busiest_hours(classes: &[Class]) -> Result<(usize, Option<usize>), StudyError> {
    let hours = classes.iter().map(|c| c.hours.len()).max().unwrap_or(0);
    let tokens = |hour: usize, events: bool| -> f64 {
        classes.iter().map(|class| class.expected_tokens(hour, events)).sum()
    };
    let busiest = |events: bool, candidates: &mut dyn Iterator<Item = usize>| -> Option<usize> {
        // The first of equals, so that the answer does not depend on rounding further on.
        candidates
            .fold(None, |best: Option<(usize, f64)>, hour| {
                let load = tokens(hour, events);
                match best {
                    Some((_, most)) if load <= most => best,
                    _ => Some((hour, load)),
                }
            })
            .map(|(hour, _)| hour)
    };
    let baseline = busiest(false, &mut (0..hours)).ok_or(StudyError::Empty)?;
    let shifted = |hour: &usize| {
        classes.iter().any(|c| c.hours.get(*hour).is_some_and(|h| h.shift != Shift::NONE))
    };
    Ok((baseline, busiest(true, &mut (0..hours).filter(shifted))))
}

/// Draws the busiest hours.
pub fn demand(input: &DemandInput) -> Result<Demand, StudyError> {
    let (baseline, launch) = busiest_hours(&input.classes)?;
    let before = column(input, baseline, false)?;
    let after = launch.map(|hour| column(input, hour, true)).transpose()?;
    let groups = std::iter::once(None).chain(input.classes.iter().map(|c| Some(c.name.clone())));
    let mut rows = Vec::new();
    for (group, class) in groups.enumerate() {
        for (i, resource) in RESOURCES.into_iter().enumerate() {
            let launch = after.as_ref().map(|column| column.levels[group][i]);
            rows.push(DemandRow {
                class: class.clone(),
                resource,
                baseline: before.levels[group][i],
                launch,
            });
        }
    }
    let mut pools = Vec::new();
    for (i, routing) in input.pools.iter().enumerate() {
        let group = 1 + input.classes.len() + i;
        let counted = [true, routing.prompts, routing.outputs];
        for (i, resource) in RESOURCES.into_iter().enumerate().filter(|(i, _)| counted[*i]) {
            pools.push(PoolDemand {
                pool: routing.pool.clone(),
                resource,
                baseline: before.levels[group][i],
                launch: after.as_ref().map(|column| column.levels[group][i]),
            });
        }
    }
    Ok(Demand {
        pools,
        window_s: input.window_s,
        runs: input.runs,
        baseline_hour: BusyHour { index: baseline, tasks_per_draw: before.tasks_per_draw },
        launch_hour: launch
            .zip(after)
            .map(|(index, c)| BusyHour { index, tasks_per_draw: c.tasks_per_draw }),
        rows,
    })
}

/// One column of the table: levels by group (all, then each class, then each pool) and resource.
struct Column {
    levels: Vec<[Level; 3]>,
    tasks_per_draw: u64,
}

fn column(input: &DemandInput, hour: usize, events: bool) -> Result<Column, StudyError> {
    let budget = CLASS_DRAWS_MAX.min(DRAWS_MAX / input.classes.len().max(1) as f64);
    let loads: Vec<Load<'_>> = input
        .classes
        .iter()
        .map(|class| {
            let at = class.hours.get(hour);
            let shift = at.map_or(Shift::NONE, |h| h.changed(events));
            let rate = at.map_or(0.0, |h| h.rate) * shift.rate;
            let draws = rate * HOUR * class.task.mean_requests() * f64::from(input.runs);
            Load { class, rate, shift, tasks_per_draw: (draws / budget).ceil().max(1.0) }
        })
        .collect();
    let runs = in_order(input.threads, input.runs, |run| {
        draw_run(input, &loads, input.seed.run(u64::from(run)))
    });
    let runs: Vec<Vec<[Sample; 3]>> = runs.into_iter().collect::<Result<_, _>>()?;
    let levels = (0..=loads.len() + input.pools.len())
        .map(|group| {
            [0, 1, 2].map(|resource| {
                let of = |pick: fn(&Sample) -> f64| -> Vec<f64> {
                    runs.iter().map(|run| pick(&run[group][resource])).collect()
                };
                let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
                let p95 = of(|s| s.p95);
                Level {
                    mean_per_s: average(&of(|s| s.mean)),
                    p95_per_s: average(&p95),
                    p95_interval: mean_interval(&p95, input.level).map(Span::from),
                    peak_per_s: average(&of(|s| s.peak)),
                }
            })
        })
        .collect();
    let most = loads.iter().map(|l| l.tasks_per_draw).fold(1.0, f64::max);
    Ok(Column { levels, tasks_per_draw: most as u64 })
}

struct Load<'a> {
    class: &'a Class,
    rate: f64,
    shift: Shift,
    tasks_per_draw: f64,
}

#[derive(Clone, Copy)]
struct Sample {
    mean: f64,
    p95: f64,
    peak: f64,
}

/// One run of the hour, for all classes, then for each, then for each pool.
fn draw_run(
    input: &DemandInput,
    loads: &[Load<'_>],
    seed: Seed,
) -> Result<Vec<[Sample; 3]>, StudyError> {
    let count = (HOUR / input.window_s).floor().max(1.0) as usize;
    let mut all = vec![[0.0; 3]; count];
    let mut samples = Vec::with_capacity(loads.len() + input.pools.len() + 1);
    let mut pools = vec![all.clone(); input.pools.len()];
    for (at, load) in loads.iter().enumerate() {
        let stages: Vec<u16> = stages_of(&input.pools, at);
        let by_stage = draw_class(load, &stages, input.window_s, count, seed)?;
        let mut windows = vec![[0.0; 3]; count];
        by_stage.iter().for_each(|own| add(&mut windows, own, 1.0));
        add(&mut all, &windows, 1.0);
        for (sum, routing) in pools.iter_mut().zip(&input.pools) {
            for (stage, share) in routing.shares.get(at).into_iter().flatten() {
                let i = stage.and_then(|own| stages.iter().position(|stage| *stage == own));
                add(sum, &by_stage[i.map_or(0, |i| i + 1)], *share);
            }
        }
        samples.push(summarise(&windows, input.window_s));
    }
    samples.insert(0, summarise(&all, input.window_s));
    samples.extend(pools.iter().map(|windows| summarise(windows, input.window_s)));
    Ok(samples)
}

/// The stages of a class that pools tell apart.
fn stages_of(pools: &[PoolRouting], class: usize) -> Vec<u16> {
    let shares = pools.iter().filter_map(|routing| routing.shares.get(class)).flatten();
    let mut stages: Vec<u16> = shares.filter_map(|(stage, _)| *stage).collect();
    stages.sort_unstable();
    stages.dedup();
    stages
}

fn add(sum: &mut [[f64; 3]], windows: &[[f64; 3]], share: f64) {
    for (sum, window) in sum.iter_mut().zip(windows) {
        sum.iter_mut().zip(window).for_each(|(sum, own)| *sum += share * own);
    }
}

/// Requests, fresh and output tokens of one class in each window of the hour: of calls that go where their class does, and then of each stage.
fn draw_class(
    load: &Load<'_>,
    stages: &[u16],
    window_s: f64,
    count: usize,
    seed: Seed,
) -> Result<Vec<Vec<[f64; 3]>>, StudyError> {
    let class = load.class;
    let mut by_stage = vec![vec![[0.0; 3]; count]; 1 + stages.len()];
    if load.rate <= 0.0 {
        return Ok(by_stage);
    }
    let failed = |source| StudyError::Arrivals { class: class.name.clone(), source };
    // The ring: whole windows, so that none is shorter than the others.
    let ring = count as f64 * window_s;
    // Dumps that do not divide the hour: the busiest hour holds one more. Rarer ones bring all of their backlog.
    let end = match class.process {
        Process::Dumps { every } => (ring / every).ceil() * every,
        Process::Flow { .. } => ring,
    };
    let curve = RateCurve::constant(load.rate / load.tasks_per_draw, end).map_err(failed)?;
    let stream = seed.stream(&format!("arrivals/{}", class.name));
    let arrivals = Arrivals::new(&class.process, curve, stream).map_err(failed)?;
    let mut lengths = seed.stream(&format!("lengths/{}", class.name));
    for at in arrivals {
        class.task.draw_steps(&load.shift, &mut lengths, |drawn| {
            let Drawn::Request { request, route, .. } = drawn else { return };
            let stage = route.and_then(|route| stages.iter().position(|stage| *stage == route));
            let t = (at + request.offset) % ring;
            // Rounding may reach the end of the ring, which is its beginning.
            let window = (t / window_s) as usize % count;
            let window = &mut by_stage[stage.map_or(0, |i| i + 1)][window];
            window[0] += load.tasks_per_draw;
            window[1] += request.fresh().get() as f64 * load.tasks_per_draw;
            window[2] += request.output.get() as f64 * load.tasks_per_draw;
        });
    }
    if let (Process::Flow { burst: None, .. }, true) = (&class.process, load.tasks_per_draw > 1.0) {
        by_stage.iter_mut().for_each(|windows| unthin(windows, load.tasks_per_draw));
    }
    Ok(by_stage)
}

/// A draw that stands for n tasks shows n times the variance of n independent ones; without bursts, deviations from
/// the mean are therefore 1/sqrt(n) of those drawn. Bursts vary all tasks together and stay as drawn, which
/// errs to the safe side.
fn unthin(windows: &mut [[f64; 3]], tasks_per_draw: f64) {
    let n = windows.len() as f64;
    for i in 0..3 {
        let mean = windows.iter().map(|w| w[i]).sum::<f64>() / n;
        windows.iter_mut().for_each(|w| w[i] = mean + (w[i] - mean) / tasks_per_draw.sqrt());
    }
}

fn summarise(windows: &[[f64; 3]], window_s: f64) -> [Sample; 3] {
    [0, 1, 2].map(|i| {
        let rates: Vec<f64> = windows.iter().map(|w| w[i] / window_s).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let peak = rates.iter().copied().fold(0.0, f64::max);
        Sample { mean, p95: quantile(&rates, 0.95).unwrap_or(0.0), peak }
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::{Burst, Dist, Spacing};
    use plimsoll_workload::{Call, Hour, Lengths, Step, Task, Variant};
    use proptest::prelude::*;

    use super::*;

    fn class(name: &str, rate: f64, prompt: f64, output: f64, hit: f64, shift: Shift) -> Class {
        let constant = |x: f64| Dist::constant(x).unwrap();
        let lengths = Lengths::independent(constant(prompt), constant(output));
        Class {
            name: name.to_owned(),
            process: Process::Flow { spacing: Spacing::Poisson, burst: None },
            task: Task::steps(vec![Step::Call(Call::new(lengths, hit))]),
            hours: vec![Hour::new(rate / 2.0, Shift::NONE), Hour::new(rate, shift)],
        }
    }

    fn input(classes: Vec<Class>, threads: usize) -> DemandInput {
        DemandInput {
            classes,
            pools: Vec::new(),
            window_s: 10.0,
            runs: 4,
            level: 0.95,
            seed: Seed::new(7),
            threads,
        }
    }

    /// The oracle worked by hand: 100 req/s x 60 tokens = 6,000 tok/s and 300 x 65 = 19,500 with three times
    /// the rate and 65/60 the output. Poisson counts of a 10 s window have mean 1,000 and deviation 31.6, so the p95
    /// is 1,052 (105.2/s); at 3,000 it is 3,090 (309/s).
    #[test]
    fn first_principles() {
        let shift = Shift { rate: 3.0, prompt: 1.0, output: 65.0 / 60.0, cache_hit: 1.0 };
        let demand =
            demand(&input(vec![class("chat", 100.0, 900.0, 60.0, 0.5, shift)], 1)).unwrap();
        assert_eq!(demand.baseline_hour.index, 1);
        assert_eq!(demand.launch_hour.unwrap().index, 1);
        let row = |resource| {
            demand.rows.iter().find(|r| r.class.is_none() && r.resource == resource).unwrap()
        };
        let close = |got: f64, expect: f64| {
            assert!((got / expect - 1.0).abs() < 0.012, "{got} for {expect}");
        };
        close(row(Resource::Requests).baseline.mean_per_s, 100.0);
        close(row(Resource::Requests).baseline.p95_per_s, 105.2);
        close(row(Resource::OutputTokens).baseline.mean_per_s, 6000.0);
        close(row(Resource::FreshPromptTokens).baseline.mean_per_s, 45_000.0);
        let launch = row(Resource::OutputTokens).launch.unwrap();
        close(launch.mean_per_s, 19_500.0);
        close(launch.p95_per_s, 19_500.0 * 1.03);
        let interval = launch.p95_interval.unwrap();
        assert!(
            interval.low < launch.p95_per_s && launch.p95_per_s < interval.high && interval.n == 4
        );
    }

    #[test]
    fn classes_add_up_to_all() {
        let classes = vec![
            class("a", 10.0, 100.0, 10.0, 0.0, Shift::NONE),
            class("b", 5.0, 2000.0, 20.0, 0.25, Shift::NONE),
        ];
        let demand = demand(&input(classes, 2)).unwrap();
        assert!(demand.launch_hour.is_none() && demand.rows.iter().all(|r| r.launch.is_none()));
        for resource in RESOURCES {
            let mean = |class: Option<&str>| {
                demand
                    .rows
                    .iter()
                    .find(|r| r.class.as_deref() == class && r.resource == resource)
                    .unwrap()
                    .baseline
                    .mean_per_s
            };
            assert!((mean(None) - mean(Some("a")) - mean(Some("b"))).abs() < 1e-6);
        }
    }

    /// What comes to pools: a class that two share, a stage of a task that has a pool of its own, and a pool that only generates.
    #[test]
    fn pools_get_their_shares() {
        let constant = |x: f64| Dist::constant(x).unwrap();
        let call =
            |prompt: f64| Call::new(Lengths::independent(constant(prompt), constant(10.0)), 0.0);
        let mut staged = class("staged", 4.0, 0.0, 0.0, 0.0, Shift::NONE);
        staged.task = Task::steps(vec![
            Step::Call(call(100.0)),
            Step::Call(call(300.0).to(Some(0))),
            Step::Call(call(700.0).to(Some(1))),
        ]);
        let shared = class("shared", 10.0, 50.0, 20.0, 0.0, Shift::NONE);
        let routing = |pool: &str, shared: f64, own: f64, stage: f64, prompts: bool| PoolRouting {
            pool: pool.to_owned(),
            shares: vec![
                vec![(None, shared)],
                // The second stage goes to no pool at all.
                vec![(None, own), (Some(0), stage), (Some(1), 0.0)],
            ],
            prompts,
            outputs: true,
        };
        let pools = vec![routing("a", 0.75, 1.0, 0.0, true), routing("b", 0.25, 0.0, 1.0, false)];
        let own = DemandInput { pools, runs: 16, ..input(vec![shared, staged], 2) };
        let demand = demand(&own).unwrap();
        let mean = |pool: &str, resource| {
            let row = demand.pools.iter().find(|r| r.pool == pool && r.resource == resource);
            row.map(|row| row.baseline.mean_per_s)
        };
        let close = |got: Option<f64>, expect: f64| {
            assert!((got.unwrap() / expect - 1.0).abs() < 0.02, "{got:?} for {expect}");
        };
        close(mean("a", Resource::Requests), 7.5 + 4.0);
        close(mean("a", Resource::FreshPromptTokens), 7.5 * 50.0 + 4.0 * 100.0);
        close(mean("b", Resource::OutputTokens), 2.5 * 20.0 + 4.0 * 10.0);
        assert_eq!(mean("b", Resource::FreshPromptTokens), None);
    }

    /// Whatever the process and the task, the mean is the rate times the requests of a task: nothing is lost at
    /// the ends of the hour, however long a conversation lasts or rare a dump is.
    #[test]
    fn nothing_is_lost() {
        let constant = |x: f64| Dist::constant(x).unwrap();
        let call = || Call::new(Lengths::independent(constant(100.0), constant(10.0)), 0.0);
        let flow = |spacing, burst| Process::Flow { spacing, burst };
        let processes = [
            (flow(Spacing::Poisson, None), 1.0),
            (flow(Spacing::Gamma { cv: 3.0 }, None), 1.0),
            (flow(Spacing::Weibull { cv: 2.0 }, None), 1.0),
            (flow(Spacing::Poisson, Some(Burst::new(3.0, 20.0, 120.0).unwrap())), 1.0),
            (Process::Dumps { every: 900.0 }, 1.0),
            (Process::Dumps { every: 3600.0 }, 1.0),
            // Six hours of backlog in one; nine dumps of seven minutes in sixty.
            (Process::Dumps { every: 21_600.0 }, 6.0),
            (Process::Dumps { every: 420.0 }, 63.0 / 60.0),
        ];
        let tasks = [
            (Task::steps(vec![Step::Call(call())]), 1.0),
            (
                Task::steps(vec![
                    Step::Wait(constant(3.6e6), 1.0),
                    Step::Call(call().sometimes(0.5)),
                ]),
                0.5,
            ),
            (Task::agent(call(), constant(10.0), constant(5.0), constant(1200.0)), 10.0),
            (Task::session(call(), constant(10.0), constant(7200.0)), 10.0),
            (
                Task::steps(vec![Step::Call(call())]).variants(vec![Variant {
                    share: 0.5,
                    prompt: 2.0,
                    output: 1.0,
                    route: None,
                }]),
                1.0,
            ),
        ];
        for (process, busier) in &processes {
            for (task, requests) in &tasks {
                let class = Class {
                    name: "a".to_owned(),
                    process: process.clone(),
                    task: task.clone(),
                    hours: vec![Hour::new(2.0, Shift::NONE)],
                };
                let demand = demand(&DemandInput { runs: 8, ..input(vec![class], 2) }).unwrap();
                let mean = demand.rows[0].baseline.mean_per_s;
                let expect = 2.0 * busier * requests;
                assert!(
                    (mean / expect - 1.0).abs() < 0.06,
                    "{process:?} {task:?}: {mean} for {expect}"
                );
                assert!(demand.rows[0].baseline.peak_per_s >= mean);
            }
        }
    }

    /// A small class beside a flood is drawn as if it were alone, and the flood's own spread is a Poisson's: a p95 of
    /// 50,000 + 1.645 * sqrt(50,000) in ten seconds.
    #[test]
    fn a_flood_does_not_drown_a_trickle() {
        let trickle = || class("trickle", 0.5, 1000.0, 10.0, 0.0, Shift::NONE);
        let alone = demand(&input(vec![trickle()], 1)).unwrap();
        let both =
            demand(&input(vec![trickle(), class("flood", 5000.0, 10.0, 1.0, 0.0, Shift::NONE)], 2))
                .unwrap();
        let row = |d: &Demand, name: &str| {
            d.rows.iter().find(|r| r.class.as_deref() == Some(name)).unwrap().baseline
        };
        assert_eq!(row(&alone, "trickle"), row(&both, "trickle"));
        assert!(both.baseline_hour.tasks_per_draw > 1);
        let p95 = row(&both, "flood").p95_per_s;
        assert!((p95 / 5036.8 - 1.0).abs() < 0.002, "{p95}");
    }

    /// A rate far too high to draw each task: bounded work, the mean still right.
    #[test]
    fn extreme_rates_are_bounded() {
        let demand =
            demand(&input(vec![class("flood", 1e9, 100.0, 10.0, 0.0, Shift::NONE)], 2)).unwrap();
        assert!(demand.baseline_hour.tasks_per_draw > 1000);
        let requests = demand.rows[0].baseline.mean_per_s;
        assert!((requests / 1e9 - 1.0).abs() < 0.01, "{requests}");
    }

    #[test]
    fn no_hours_is_an_error() {
        assert_eq!(demand(&input(vec![], 1)), Err(StudyError::Empty));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(32)))]
        /// Byte for byte the same on any number of threads.
        #[test]
        fn threads_do_not_matter(seed: u64, threads in 1usize..9, rate in 0.0f64..20.0) {
            let mut one = input(vec![class("a", rate, 500.0, 50.0, 0.3, Shift::NONE)], 1);
            one.seed = Seed::new(seed);
            let many = DemandInput { threads, ..one.clone() };
            prop_assert_eq!(demand(&one), demand(&many));
        }
    }
}
