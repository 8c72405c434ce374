//! What a scenario's classes would use, counted as a scan of a ledger counts what they used.

use std::collections::BTreeMap;

use plimsoll_cost::{
    Dimension, End, HourDemand, Key, Period, Place, Pricing, Sums, Table, Tasks, Usage, usd_of,
};
use plimsoll_sim::Target;
use plimsoll_stats::Seed;
use plimsoll_workload::{Drawn, Shift};

use plimsoll_load::SimulatedClass;
use plimsoll_load::{ClassResult, SimulateInput, Simulation};

/// What a class is called by those who pay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PayingClass {
    /// Who pays.
    pub tenant: Option<String>,
    /// What for.
    pub feature: Option<String>,
    /// What was sold.
    pub tier: Option<String>,
    /// The share of its answered tasks that succeed; none where nobody says.
    pub success_rate: Option<f64>,
}

/// Classes, hour by hour, and what serves them.
pub struct ExpectedUsage<'a> {
    /// The fleet and its classes.
    pub fleet: &'a SimulateInput,
    /// What serves: its pools, then its providers, in its order; each with the model it runs.
    pub places: Vec<(Place, Option<String>)>,
    /// Each class, in the fleet's order.
    pub classes: Vec<PayingClass>,
    /// What became of tasks in the hour that was simulated: how many attempts fail, and what they waste. None where all are answered at once.
    pub simulation: Option<&'a Simulation>,
    /// The beginning of the first hour, in seconds from 1970.
    pub start_s: Option<i64>,
    /// Of the draws of lengths.
    pub seed: Seed,
}

/// What the classes would use, and how often they call each tool.
pub fn expected_usage(input: &ExpectedUsage<'_>) -> (Usage, Vec<f64>) {
    let fleet = input.fleet;
    let hours = fleet.classes.iter().map(|c| c.class.hours.len()).max().unwrap_or(0);
    let mut made = Making::new(input, hours);
    for (i, class) in fleet.classes.iter().enumerate() {
        made.class(i, class);
    }
    (made.usage, made.tools)
}

/// How many tokens clients ask for at most, against what they get: the longest of each class's drawn outputs over their mean, by rate. At least one.
pub fn output_reserved(classes: &[SimulatedClass], seed: Seed) -> f64 {
    let (mut asked, mut got) = (0.0, 0.0);
    for own in classes {
        let mut stream = seed.stream(&format!("cost/{}", own.class.name));
        let rate: f64 = own.class.hours.iter().map(|hour| hour.rate).sum();
        let (mut longest, mut sum, mut n) = (0.0, 0.0, 0.0);
        for _ in 0..DRAWS {
            own.class.task.draw(&Shift::NONE, &mut stream, |request| {
                let output = request.output.get() as f64;
                (longest, sum, n) = (f64::max(longest, output), sum + output, n + 1.0);
            });
        }
        // Those who state no limit reserve what they write.
        asked += rate * if own.states_limit { longest * n } else { sum };
        got += rate * sum;
    }
    if got > 0.0 { (asked / got).max(1.0) } else { 1.0 }
}

/// Tasks drawn for what one asks for on average.
const DRAWS: u32 = 2048;

/// What a task asks for on average, place by place, and of tools.
struct Mean {
    shift: Shift,
    places: BTreeMap<Option<u32>, Sums>,
    tools: Vec<f64>,
}

struct Making<'a> {
    input: &'a ExpectedUsage<'a>,
    usage: Usage,
    tools: Vec<f64>,
}

impl<'a> Making<'a> {
    fn new(input: &'a ExpectedUsage<'a>, hours: usize) -> Self {
        let table = || Table { values: Vec::new(), cells: BTreeMap::new(), tasks: Vec::new() };
        let by = [
            (Dimension::Tenant, input.classes.iter().any(|c| c.tenant.is_some())),
            (Dimension::Feature, true),
            (Dimension::Tier, input.classes.iter().any(|c| c.tier.is_some())),
            (Dimension::Model, input.places.iter().any(|(_, model)| model.is_some())),
            (Dimension::Route, true),
        ];
        let by = by.into_iter().filter(|(_, any)| *any).map(|(of, _)| (of, table()));
        let all = Table { values: vec![None], tasks: vec![Tasks::default()], ..table() };
        let mut notes = vec![
            "counts are expected ones: they have no spread of their own, so one success has no interval".to_owned(),
        ];
        if input.simulation.is_some() {
            notes.push(
                "attempts that fail, and what they waste, are as in the hour that was simulated"
                    .to_owned(),
            );
        }
        let usage = Usage {
            period: Period {
                start_s: input.start_s,
                hours: u32::try_from(hours).unwrap_or(u32::MAX),
            },
            places: input.places.iter().map(|(place, _)| place.clone()).collect(),
            by: by.collect(),
            all,
            tasks: Tasks::default(),
            outcomes_unknown: 0,
            response_cached: 0,
            undated: 0,
            notes,
        };
        Self { input, usage, tools: vec![0.0; input.fleet.tools.len()] }
    }

    fn class(&mut self, i: usize, own: &SimulatedClass) {
        let result = self.input.simulation.and_then(|simulation| {
            simulation.classes.iter().find(|class| class.name == own.class.name)
        });
        let fate = Fate::of(result);
        let mut means: Vec<Mean> = Vec::new();
        let (mut tasks, mut attempts) = (0.0, 0.0);
        let mut served: BTreeMap<Option<u32>, f64> = BTreeMap::new();
        for (hour, rates) in (0u32..).zip(&own.class.hours) {
            let shift = rates.changed(true);
            let count = rates.rate * shift.rate * 3600.0;
            if count <= 0.0 {
                continue;
            }
            tasks += count;
            let lengths = Shift { rate: 1.0, ..shift };
            let known = means.iter().position(|mean| mean.shift == lengths);
            let at = known.unwrap_or_else(|| {
                means.push(self.mean(own, lengths));
                means.len() - 1
            });
            let mean = &means[at];
            for (sum, each) in self.tools.iter_mut().zip(&mean.tools) {
                *sum += each * count;
            }
            for (place, sums) in &mean.places {
                let sums = times(sums, count);
                for (end, retry, part) in fate.parts(&sums) {
                    attempts += part.requests;
                    *served.entry(*place).or_default() += part.requests;
                    let key = Key { value: 0, place: *place, hour, end, retry };
                    enter(&mut self.usage, self.input, i, key, &part);
                }
            }
        }
        let whole = |n: f64| n.round().max(0.0) as u64;
        let tasks_of = |share: f64| {
            let rate = self.input.classes[i].success_rate;
            let all = whole(tasks * share);
            let succeeded = rate.map_or(0, |rate| whole(tasks * share * fate.answered * rate));
            Tasks {
                tasks: all,
                attempts: whole(attempts * share),
                succeeded,
                failed: rate.map_or(0, |_| all.saturating_sub(succeeded)),
                ..Tasks::default()
            }
        };
        let all = tasks_of(1.0);
        merge(&mut self.usage.tasks, &all);
        merge(&mut self.usage.all.tasks[0], &all);
        // A task counts for whom most of its calls go to.
        let most = served.iter().max_by(|a, b| a.1.total_cmp(b.1)).and_then(|(place, _)| *place);
        for dimension in self.usage.by.keys().copied().collect::<Vec<_>>() {
            let value = named(self.input, i, most, dimension);
            let table = self.usage.by.entry(dimension).or_default();
            let at = index(table, value);
            merge(&mut table.tasks[at as usize], &all);
        }
    }

    /// What one task asks for, drawn.
    fn mean(&self, own: &SimulatedClass, shift: Shift) -> Mean {
        let mut stream = self.input.seed.stream(&format!("cost/{}", own.class.name));
        let mut mean = Mean { shift, places: BTreeMap::new(), tools: vec![0.0; self.tools.len()] };
        let each = 1.0 / f64::from(DRAWS);
        for _ in 0..DRAWS {
            own.class.task.draw_steps(&shift, &mut stream, |drawn| match drawn {
                Drawn::Request { request, route, .. } => {
                    let (prompt, fresh) =
                        (request.prompt.get() as f64, request.fresh().get() as f64);
                    let (cached, output) = (prompt - fresh, request.output.get() as f64);
                    // What was drawn is the output of all samples together.
                    let one = output / f64::from(request.samples.max(1));
                    let sums = Sums {
                        requests: each,
                        fresh: fresh * each,
                        fresh_context: fresh * (prompt - fresh / 2.0) * each,
                        cached: cached * each,
                        output: output * each,
                        output_context: output * (prompt + one / 2.0) * each,
                        ..Sums::default()
                    };
                    let target =
                        route.and_then(|r| own.targets.get(usize::from(r)).copied().flatten());
                    match target {
                        Some(target) => self.send(&mut mean.places, target, &sums, 1.0),
                        None => {
                            for route in &own.sent.routes {
                                self.send(&mut mean.places, route.to, &sums, route.share);
                            }
                        }
                    }
                }
                Drawn::Tool(tool, _) => {
                    if let Some(calls) = mean.tools.get_mut(usize::from(tool)) {
                        *calls += each;
                    }
                }
                Drawn::Wait(_) => {}
            });
        }
        mean
    }

    fn send(
        &self,
        places: &mut BTreeMap<Option<u32>, Sums>,
        target: Target,
        sums: &Sums,
        share: f64,
    ) {
        let fleet = self.input.fleet;
        let number = |n: usize| u32::try_from(n).ok();
        let sums = times(sums, share);
        match target {
            Target::Pool(pool) => {
                let over = fleet.pools.get(pool).and_then(|own| own.life.hands_over);
                let Some(over) = over else {
                    places.entry(number(pool)).or_default().add(&sums);
                    return;
                };
                // One reads, another writes; the request is counted once.
                let written = Sums {
                    output: sums.output,
                    output_context: sums.output_context,
                    ..Sums::default()
                };
                let read = Sums { output: 0.0, output_context: 0.0, ..sums };
                places.entry(number(pool)).or_default().add(&read);
                places.entry(number(over.to)).or_default().add(&written);
            }
            Target::Provider(provider) => {
                let at = fleet.pools.len() + provider;
                let mut sums = sums;
                if let Some((Place { pricing: Pricing::Tokens(table), .. }, _)) =
                    self.input.places.get(at)
                {
                    let one = HourDemand {
                        requests: sums.requests,
                        fresh: sums.fresh,
                        cached: sums.cached,
                        output: sums.output,
                        reserved_output: 0.0,
                    };
                    sums.token_usd = usd_of(table, &one);
                }
                places.entry(number(at)).or_default().add(&sums);
            }
        }
    }
}

/// Puts what a class used into every table.
fn enter(usage: &mut Usage, input: &ExpectedUsage<'_>, class: usize, key: Key, sums: &Sums) {
    usage.all.cells.entry(key).or_default().add(sums);
    for (dimension, table) in &mut usage.by {
        let value = index(table, named(input, class, key.place, *dimension));
        table.cells.entry(Key { value, ..key }).or_default().add(sums);
    }
}

fn named(
    input: &ExpectedUsage<'_>,
    class: usize,
    place: Option<u32>,
    dimension: Dimension,
) -> Option<String> {
    let own = &input.classes[class];
    let at = || place.and_then(|i| input.places.get(usize::try_from(i).ok()?));
    match dimension {
        Dimension::Tenant => own.tenant.clone(),
        // A class is a feature by itself, where nothing else is said.
        Dimension::Feature => {
            own.feature.clone().or_else(|| Some(input.fleet.classes[class].class.name.clone()))
        }
        Dimension::Tier => own.tier.clone(),
        Dimension::Model => at().and_then(|(_, model)| model.clone()),
        Dimension::Route => at().map(|(place, _)| place.name.clone()),
        _ => None,
    }
}

fn index(table: &mut Table, value: Option<String>) -> u32 {
    let at = table.values.iter().position(|known| *known == value).unwrap_or_else(|| {
        table.values.push(value);
        table.tasks.push(Tasks::default());
        table.values.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn merge(into: &mut Tasks, other: &Tasks) {
    into.tasks += other.tasks;
    into.attempts += other.attempts;
    into.succeeded += other.succeeded;
    into.failed += other.failed;
}

fn times(sums: &Sums, n: f64) -> Sums {
    Sums {
        requests: sums.requests * n,
        fresh: sums.fresh * n,
        fresh_context: sums.fresh_context * n,
        cached: sums.cached * n,
        output: sums.output * n,
        output_context: sums.output_context * n,
        token_usd: sums.token_usd * n,
        ..Sums::default()
    }
}

/// What becomes of attempts, against those that are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fate {
    /// The share of tasks that are answered.
    answered: f64,
    /// The share of answered attempts that were not the first.
    again: f64,
    /// Attempts for each that is answered: refused, failed, and given up.
    ends: [(End, f64); 3],
    /// Tokens that come to nothing for each that comes to something: read and written.
    wasted: (f64, f64),
}

impl Fate {
    fn of(result: Option<&ClassResult>) -> Self {
        let none = Self {
            answered: 1.0,
            again: 0.0,
            ends: [(End::Limited, 0.0), (End::Failed, 0.0), (End::Cancelled, 0.0)],
            wasted: (0.0, 0.0),
        };
        let Some(own) = result.filter(|own| own.attempts.answered > 0 && own.offered > 0) else {
            return none;
        };
        let per = |n: u64, of: u64| if of > 0 { n as f64 / of as f64 } else { 0.0 };
        let attempts = &own.attempts;
        let fresh = own.prompt_tokens.saturating_sub(own.cached_tokens);
        let failed = attempts.lost + attempts.nobody_there + attempts.too_long;
        Self {
            answered: per(own.completed, own.offered).min(1.0),
            again: per(own.extra_attempts, own.calls + own.extra_attempts),
            ends: [
                (End::Limited, per(attempts.refused, attempts.answered)),
                (End::Failed, per(failed, attempts.answered)),
                (End::Cancelled, per(attempts.given_up, attempts.answered)),
            ],
            wasted: (
                per(own.wasted_prefill_tokens, fresh),
                per(own.wasted_output_tokens, own.output_tokens),
            ),
        }
    }

    /// What is asked for, by how it ends: answered tokens in full, wasted ones with those that failed or were given up.
    fn parts(&self, sums: &Sums) -> Vec<(End, bool, Sums)> {
        let answered = times(sums, self.answered);
        let mut parts = vec![
            (End::Ok, false, times(&answered, 1.0 - self.again)),
            (End::Ok, true, times(&answered, self.again)),
        ];
        let lost: f64 = self.ends[1].1 + self.ends[2].1;
        for (end, each) in self.ends {
            let share = if end == End::Limited || lost <= 0.0 { 0.0 } else { each / lost };
            let (read, wrote) = (self.wasted.0 * share, self.wasted.1 * share);
            let part = Sums {
                requests: answered.requests * each,
                fresh: answered.fresh * read,
                fresh_context: answered.fresh_context * read,
                cached: answered.cached * read,
                output: answered.output * wrote,
                output_context: answered.output_context * wrote,
                // A meter runs for what it has read and written.
                token_usd: answered.token_usd * (read + wrote) / 2.0,
                ..Sums::default()
            };
            parts.push((end, false, part));
        }
        parts.retain(|(_, _, sums)| *sums != Sums::default());
        parts
    }
}
