//! A plan held against what a fleet reports now: headroom, drift of what was assumed, and how many replicas it should have.
//!
//! Advice is given from what was seen, and what was not seen is never a zero: a signal that is lost leaves the last good answer, with its age, and no silence lowers a number.

mod advice;
mod drift;
mod recent;
#[cfg(test)]
mod tests;

use plimsoll_forecast::{Inflection, Line, inflection};
use plimsoll_workload::Quantity;

pub use self::advice::{
    Advice, Ask, Drift, ForecastNow, InflectionNow, PoolAdvice, ReplicaNow, ResourceNow,
};
use self::recent::{Recent, Seen};
use crate::plan::{FilePolicy, FileResource, PlanFile, PoolLine};

/// What a fleet reports at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sighting {
    /// When, in seconds from 1970.
    pub at_s: f64,
    /// Each pool of the plan.
    pub pools: Vec<PoolSighting>,
}

/// What a pool reports at a moment; what was not answered is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolSighting {
    /// The pool.
    pub pool: String,
    /// Replicas that report.
    pub replicas: Option<f64>,
    /// Whether tokens and calls are what was offered, and not only what was served.
    pub offered: bool,
    /// Gateways that say so, where they do.
    pub gateways: Option<f64>,
    /// Calls a second.
    pub requests: Option<f64>,
    /// Prompt tokens a second, cached ones included.
    pub prompt_tokens: Option<f64>,
    /// Prompt tokens a second that were not cached.
    pub fresh_tokens: Option<f64>,
    /// Output tokens a second.
    pub output_tokens: Option<f64>,
    /// Calls that run or wait.
    pub in_flight: Option<f64>,
    /// Calls that wait.
    pub waiting: Option<f64>,
    /// The share of the fullest cache in use.
    pub kv_share: Option<f64>,
    /// Seconds to the first token of nine calls in ten.
    pub ttft_p90_s: Option<f64>,
    /// Replica by replica.
    pub each: Vec<ReplicaSighting>,
    /// What could not be asked, and why.
    pub trouble: Vec<String>,
}

impl PoolSighting {
    /// Whether anything was seen that says how much is asked for.
    fn says_demand(&self) -> bool {
        self.fresh_tokens.is_some() || self.in_flight.is_some()
    }
}

/// What a replica reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaSighting {
    /// As it is called.
    pub replica: String,
    /// Prompt tokens a second that were not cached.
    pub fresh_tokens: Option<f64>,
    /// Output tokens a second.
    pub output_tokens: Option<f64>,
    /// Calls that run or wait.
    pub in_flight: Option<f64>,
    /// The share of its cache in use.
    pub kv_share: Option<f64>,
}

/// Calls a second below which lengths are chance.
const CALLS_LEAST: f64 = 0.05;
/// Seconds over which a queue must grow to count as demand: a shorter while is a burst that the queue is there for.
const QUEUE_GROWS_S: f64 = 300.0;
/// Seconds in which replicas that stop reporting make what is left a part of the truth.
const REPORTERS_S: f64 = 600.0;
/// Replicas that are shown, the fullest.
const EACH_MOST: usize = 64;

/// Holds a plan against what is seen.
#[derive(Clone, Debug)]
pub struct Watcher {
    plan: PlanFile,
    /// The beginning of the forecast, in seconds from 1970.
    start_s: f64,
    /// Seconds after which what was seen is old.
    stale_s: f64,
    pools: Vec<Recent>,
}

impl Watcher {
    /// For a plan whose forecast begins at `start_s`; what was seen `stale_s` ago is old.
    pub fn new(plan: PlanFile, start_s: f64, stale_s: f64) -> Self {
        let pools = plan.pools.iter().map(|_| Recent::default()).collect();
        Self { plan, start_s, stale_s, pools }
    }

    /// The plan.
    pub fn plan(&self) -> &PlanFile {
        &self.plan
    }

    /// Takes in the demand of the time before, oldest first: fresh prompt tokens a second by the second that they were seen at.
    pub fn remember(&mut self, pool: &str, history: &[(f64, f64)]) {
        if let Some(place) = self.place(pool) {
            self.pools[place].remember(history);
        }
    }

    /// Takes in what is seen. A pool that says nothing of its demand leaves what was seen before.
    pub fn see(&mut self, sighting: &Sighting) {
        for own in &sighting.pools {
            let Some(place) = self.place(&own.pool) else { continue };
            if !own.says_demand() {
                self.pools[place].trouble.clone_from(&own.trouble);
                continue;
            }
            let recent = &mut self.pools[place];
            recent.wake(sighting.at_s, self.stale_s);
            let partial = recent.is_partial(sighting.at_s, own);
            let demand = demand(own, recent, sighting.at_s);
            recent.see(sighting.at_s, own, demand);
            let asks = self.asks(place, sighting.at_s);
            let raw = asks.iter().map(|ask| ask.replicas).max();
            let recent = &mut self.pools[place];
            // Whoever does not report is asked for as before: part of the truth lowers nothing.
            let raw = match (raw, recent.asked.last()) {
                (Some(raw), Some((_, before))) if partial => Some(raw.max(*before)),
                (raw, _) => raw,
            };
            if let Some(raw) = raw {
                recent.ask(sighting.at_s, raw);
            }
        }
    }

    fn place(&self, pool: &str) -> Option<usize> {
        self.plan.pools.iter().position(|own| own.name == pool)
    }

    /// What is advised at a moment, from what was seen up to then.
    pub fn advice(&self, at_s: f64) -> Advice {
        let pools = (0..self.plan.pools.len()).map(|place| self.pool(place, at_s)).collect();
        Advice { plan: self.plan.id.clone(), at_s, pools }
    }

    fn pool(&self, place: usize, at_s: f64) -> PoolAdvice {
        let pool = &self.plan.pools[place];
        let recent = &self.pools[place];
        let forecast = self.forecast(&pool.name, at_s);
        let Some(seen) = &recent.last else {
            return PoolAdvice {
                pool: pool.name.clone(),
                replicas: None,
                desired_replicas: None,
                why: "nothing was seen of it yet, so nothing is advised".to_owned(),
                asks: Vec::new(),
                age_s: None,
                stale: true,
                resources: Vec::new(),
                each: Vec::new(),
                inflection: None,
                drift: Vec::new(),
                forecast,
                trouble: recent.trouble.clone(),
            };
        };
        let age_s = (at_s - recent.rests_on(seen)).max(0.0);
        let (desired_replicas, why, asks) = self.desired(place, at_s);
        let line = self.plan.line(&pool.name);
        // A cache is full where nobody is let in any more, and not where it is at the load line of the mix.
        let kv_line = self.plan.limits_of(&pool.name).and_then(|limits| limits.kv_ceiling.value);
        PoolAdvice {
            pool: pool.name.clone(),
            replicas: seen.own.replicas.map(whole),
            desired_replicas,
            why,
            asks,
            age_s: Some(age_s),
            stale: age_s > self.stale_s,
            resources: line.map_or_else(Vec::new, |line| resources(seen, line, kv_line)),
            each: line.map_or_else(Vec::new, |line| each(seen, line, kv_line)),
            inflection: self.inflection(place).map(|found| inflection_now(&found)),
            drift: line.map_or_else(Vec::new, |line| self.drift(seen, line)),
            forecast,
            trouble: self.troubles(recent, at_s),
        }
    }

    /// What could not be seen, and what is over.
    fn troubles(&self, recent: &Recent, at_s: f64) -> Vec<String> {
        let mut all = recent.trouble.clone();
        all.extend(recent.lost.iter().map(|lost| {
            format!("{lost} is not answered any more: nothing is advised to fall until it is")
        }));
        let steps = self.plan.forecast.classes.iter().map(|class| class.requests_per_s.p50.len());
        let lasts = steps.max().unwrap_or(0) as f64 * f64::from(self.plan.forecast.step_s);
        if at_s >= self.start_s + lasts {
            all.push("the hours that the plan is for are over, and with them its calendar and its forecast: plan again".to_owned());
        }
        all
    }

    /// How many replicas, why, and what each signal asks for.
    fn desired(&self, place: usize, at_s: f64) -> (Option<u32>, String, Vec<Ask>) {
        let pool = &self.plan.pools[place];
        let Some(policy) = self.plan.policy(&pool.name) else {
            let total = pool.replicas.total;
            let why = format!("the plan keeps {total} replicas: {}", self.plan.scaling.why);
            return (Some(total), why, Vec::new());
        };
        let mut asks = self.asks(place, at_s);
        // Time in which nothing is seen is no quiet time.
        let seen = self.pools[place].last.as_ref().map_or(at_s, |seen| seen.at_s.min(at_s));
        let held = self.pools[place].most_asked(seen - policy.down.stabilisation_s);
        let most = asks.iter().map(|ask| ask.replicas).max().unwrap_or(0);
        if let Some(held) = held.filter(|held| *held > most) {
            asks.push(Ask {
                signal: "held",
                replicas: held,
                why: format!(
                    "{held} were needed within the last {:.0} s, and fewer are only advised after that",
                    policy.down.stabilisation_s
                ),
            });
        }
        let Some(ask) = asks.iter().rev().max_by_key(|ask| ask.replicas) else {
            return (None, "no signal of the plan could be read".to_owned(), asks);
        };
        let bounded =
            ask.replicas.clamp(policy.min_replicas, policy.max_replicas.max(policy.min_replicas));
        let mut why = format!("{}: {}", ask.signal, ask.why);
        if bounded < ask.replicas {
            why.push_str(&format!(
                "; {} would be needed, and the plan has at most {}",
                ask.replicas, policy.max_replicas
            ));
        } else if bounded > ask.replicas {
            why = format!("the plan has at least {}; {why}", policy.min_replicas);
        }
        (Some(bounded), why, asks)
    }

    /// What each signal asks for, from what was seen last.
    fn asks(&self, place: usize, at_s: f64) -> Vec<Ask> {
        let name = &self.plan.pools[place].name;
        let Some(policy) = self.plan.policy(name) else { return Vec::new() };
        let recent = &self.pools[place];
        let mut asks = Vec::new();
        if let Some(seen) = &recent.last {
            for threshold in &policy.thresholds {
                let Some(target) = threshold.value.filter(|target| *target > 0.0) else { continue };
                let Some((now, signal)) = seen.of(&threshold.signal) else { continue };
                let ask = if threshold.role == "demand" {
                    Some(whole((now / target).ceil()))
                } else {
                    guarded(seen, policy, threshold.kind == "average_value", now, target)
                };
                asks.extend(ask.map(|replicas| Ask {
                    signal,
                    replicas,
                    why: format!(
                        "{} {} against {} of the plan",
                        short(now),
                        threshold.unit.trim_end_matches("/replica"),
                        short(target)
                    ),
                }));
            }
        }
        asks.extend(self.ahead(place, policy));
        asks.extend(self.calendar(policy, at_s));
        asks
    }

    /// What is about to come, where the load line is about to be crossed.
    fn ahead(&self, place: usize, policy: &FilePolicy) -> Option<Ask> {
        let found = self.inflection(place)?;
        let crosses = found.crosses_in_s?;
        let target = policy.thresholds.iter().find(|own| own.signal == "fresh_tokens")?.value?;
        Some(Ask {
            signal: "ahead",
            replicas: whole((found.most_ahead / target).ceil()),
            why: format!(
                "{} fresh prompt tokens/s may come within {} s, and the load line is reached in {crosses} s",
                short(found.most_ahead),
                found.ahead_s
            ),
        })
    }

    /// What the plan has by the calendar, as many seconds ahead as replicas take to start.
    fn calendar(&self, policy: &FilePolicy, at_s: f64) -> Option<Ask> {
        let step = f64::from(self.plan.forecast.step_s.max(1));
        let hours = [0.0, policy.floors_lead_s].map(|ahead| (at_s + ahead - self.start_s) / step);
        let floor = policy
            .floors
            .iter()
            .filter(|floor| {
                hours
                    .iter()
                    .any(|hour| *hour >= floor.from_hour as f64 && *hour < floor.until_hour as f64)
            })
            .max_by_key(|floor| floor.replicas)?;
        Some(Ask {
            signal: "calendar",
            replicas: floor.replicas,
            why: format!(
                "the plan has at least {} from its hour {} to its hour {}",
                floor.replicas, floor.from_hour, floor.until_hour
            ),
        })
    }

    fn inflection(&self, place: usize) -> Option<Inflection> {
        let pool = &self.plan.pools[place];
        let line = self.plan.line(&pool.name)?;
        let recent = &self.pools[place];
        let replicas = recent.last.as_ref()?.own.replicas?;
        let most = line.fresh_tokens_per_s? * replicas;
        let quantity = Quantity::Requests;
        inflection(&recent.history()?, Line { quantity, most, startup_s: line.startup_p90_s })
    }

    fn forecast(&self, pool: &str, at_s: f64) -> Vec<ForecastNow> {
        let into = at_s - self.start_s;
        if into < 0.0 {
            return Vec::new();
        }
        let step = (into / f64::from(self.plan.forecast.step_s.max(1))) as usize;
        let all = [
            ("requests", FileResource::Requests),
            ("fresh_tokens", FileResource::FreshTokens),
            ("output_tokens", FileResource::OutputTokens),
        ];
        let quantile = self.plan.forecast.quantile;
        all.into_iter()
            .filter_map(|(resource, of)| {
                let (p50, planned) = self.plan.expected(pool, of, step)?;
                Some(ForecastNow { resource, p50, planned, quantile })
            })
            .collect()
    }
}

/// Fresh prompt tokens a second that are asked for: as offered, or as served and what the queue has grown by.
fn demand(own: &PoolSighting, recent: &Recent, at_s: f64) -> Option<f64> {
    let fresh = own.fresh_tokens?;
    if own.offered {
        return Some(fresh);
    }
    let per_call = match own.requests {
        Some(requests) if requests >= CALLS_LEAST => fresh / requests,
        _ => 0.0,
    };
    let growth = own.waiting.and_then(|waiting| recent.queue_growth(at_s, waiting, QUEUE_GROWS_S));
    Some(fresh + growth.unwrap_or(0.0).max(0.0) * per_call)
}

/// What a guard asks for: nothing below its bound, and above it no more than the plan adds at once.
fn guarded(seen: &Seen, policy: &FilePolicy, shared: bool, now: f64, target: f64) -> Option<u32> {
    let replicas = seen.own.replicas.map(whole)?;
    let wants = if shared {
        whole((now / target).ceil())
    } else if now > target {
        replicas + 1
    } else {
        0
    };
    (wants > replicas).then(|| wants.min(replicas + policy.up.replicas.max(1)))
}

fn resources(seen: &Seen, line: &PoolLine, kv_line: Option<f64>) -> Vec<ResourceNow> {
    let own = &seen.own;
    let rows = [
        ("fresh_tokens", "tokens/s", seen.demand, line.fresh_tokens_per_s, true),
        ("output_tokens", "tokens/s", own.output_tokens, line.output_tokens_per_s, true),
        ("requests", "calls/s", own.requests, line.calls_per_s, true),
        ("in_flight", "calls", own.in_flight, line.in_flight, true),
        ("kv", "share of the cache", own.kv_share, kv_line, false),
    ];
    let rows = rows.into_iter().filter_map(|(resource, unit, now, per_replica, summed)| {
        let now = now?;
        let times = if summed { own.replicas } else { Some(1.0) };
        let line = per_replica.zip(times).map(|(line, times)| line * times);
        let line = line.filter(|line| *line > 0.0);
        let headroom_ratio = line.map(|line| (line - now) / line);
        Some(ResourceNow { resource, unit, now, line, headroom_ratio })
    });
    rows.collect()
}

fn each(seen: &Seen, line: &PoolLine, kv_line: Option<f64>) -> Vec<ReplicaNow> {
    let mut all: Vec<ReplicaNow> = seen
        .own
        .each
        .iter()
        .filter_map(|own| {
            let rows = [
                ("fresh_tokens", own.fresh_tokens, line.fresh_tokens_per_s),
                // Where prompts are read elsewhere, output is the work; otherwise it may be only another mix.
                (
                    "output_tokens",
                    own.output_tokens.filter(|_| line.fresh_tokens_per_s.is_none()),
                    line.output_tokens_per_s,
                ),
                ("in_flight", own.in_flight, line.in_flight),
                ("kv", own.kv_share, kv_line),
            ];
            let rows = rows.into_iter().filter_map(|(resource, now, line)| {
                let (now, line) = (now?, line.filter(|line| *line > 0.0)?);
                let headroom_ratio = (line - now) / line;
                let replica = own.replica.clone();
                Some(ReplicaNow { replica, resource, now, line, headroom_ratio })
            });
            rows.min_by(|a, b| a.headroom_ratio.total_cmp(&b.headroom_ratio))
        })
        .collect();
    all.sort_by(|a, b| {
        a.headroom_ratio.total_cmp(&b.headroom_ratio).then_with(|| a.replica.cmp(&b.replica))
    });
    all.truncate(EACH_MOST);
    all
}

fn inflection_now(found: &Inflection) -> InflectionNow {
    InflectionNow {
        crosses_in_s: found.crosses_in_s,
        line: found.line.most,
        most_ahead: found.most_ahead,
        ahead_s: found.ahead_s,
        alarms: found.record.alarms,
        false_alarms: found.record.false_alarms,
    }
}

/// Replicas, as many as can be counted.
fn whole(replicas: f64) -> u32 {
    replicas.clamp(0.0, f64::from(u32::MAX)).round() as u32
}

/// Three digits say enough of what changes by the second.
fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let digits = (2 - value.abs().log10().floor() as i32).max(0);
    let scale = 10f64.powi(digits);
    format!("{}", (value * scale).round() / scale)
}
