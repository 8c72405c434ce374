//! What was seen of a pool lately.

use plimsoll_workload::{ClassHistory, History, StepCount};

use super::{PoolSighting, REPORTERS_S};

/// Seconds of a step of what is remembered, and how many steps there are: two days.
const STEP_S: u32 = 60;
const STEPS_MOST: usize = 2 * 24 * 60;
/// A gap of more steps than this begins the history anew: what lies before says little of what comes.
const GAP_MOST: usize = 30;
/// Seconds for which what was asked for is remembered.
const ASKED_S: f64 = 4.0 * 3600.0;

/// What was seen of a pool lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    pub(super) last: Option<Seen>,
    /// Replicas that were asked for, and when; the last is the latest.
    pub(super) asked: Vec<(f64, u32)>,
    pub(super) trouble: Vec<String>,
    /// Signals of demand that answered before, and do not any more.
    pub(super) lost: Vec<&'static str>,
    /// When none was lost.
    whole_at: f64,
    /// Which have ever answered.
    had: [bool; 3],
    /// Gateways that counted, and when.
    gateways: Vec<(f64, f64)>,
    /// Calls that waited, and when.
    waiting: Vec<(f64, f64)>,
    /// Replicas that reported, and when.
    reporters: Vec<(f64, f64)>,
    /// Minutes from 1970, and the demand that was seen last in each.
    minutes: Vec<(u64, f64)>,
}

/// The last that was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at_s: f64,
    pub(super) own: PoolSighting,
    /// Fresh prompt tokens a second that are asked for.
    pub(super) demand: Option<f64>,
}

impl Seen {
    /// A signal of the plan, and what it is called.
    pub(super) fn of(&self, signal: &str) -> Option<(f64, &'static str)> {
        let own = &self.own;
        let (value, name) = match signal {
            "fresh_tokens" => (self.demand, "fresh_tokens"),
            "in_flight" => (own.in_flight, "in_flight"),
            "queue_depth" => (own.waiting, "queue_depth"),
            "ttft_p90" => (own.ttft_p90_s, "ttft_p90"),
            "kv" => (own.kv_share, "kv"),
            _ => (None, "unknown"),
        };
        value.map(|value| (value, name))
    }
}

impl Recent {
    pub(super) fn see(&mut self, at_s: f64, own: &PoolSighting, demand: Option<f64>) {
        let lately = |all: &mut Vec<(f64, f64)>, value: Option<f64>| {
            all.retain(|(at, _)| *at > at_s - REPORTERS_S);
            all.extend(value.map(|value| (at_s, value)));
        };
        lately(&mut self.waiting, own.waiting);
        lately(&mut self.reporters, own.replicas);
        lately(&mut self.gateways, own.gateways);
        let answers = [own.fresh_tokens.is_some(), own.in_flight.is_some(), own.offered];
        let names =
            ["the rate of fresh prompt tokens", "the number of calls in flight", "the gateway"];
        let lost = names.into_iter().zip(self.had.iter().zip(answers));
        self.lost = lost.filter(|(_, (had, has))| **had && !has).map(|(name, _)| name).collect();
        self.had.iter_mut().zip(answers).for_each(|(had, has)| *had |= has);
        if self.lost.is_empty() {
            self.whole_at = at_s;
        }
        self.trouble.clone_from(&own.trouble);
        if let Some(demand) = demand {
            self.add(at_s, demand);
        }
        self.last = Some(Seen { at_s, own: own.clone(), demand });
    }

    pub(super) fn remember(&mut self, history: &[(f64, f64)]) {
        history.iter().for_each(|(at_s, demand)| self.add(*at_s, *demand));
    }

    fn add(&mut self, at_s: f64, demand: f64) {
        let minute = (at_s.max(0.0) / f64::from(STEP_S)) as u64;
        match self.minutes.last_mut() {
            Some((last, value)) if *last == minute => *value = demand,
            Some((last, _)) if *last > minute => {}
            _ => self.minutes.push((minute, demand)),
        }
        if self.minutes.len() > STEPS_MOST + STEPS_MOST / 8 {
            self.minutes.drain(..STEPS_MOST / 8);
        }
    }

    /// Calls a second by which the queue has grown since the oldest sighting that is at most so old, and at least half of it.
    pub(super) fn queue_growth(&self, at_s: f64, waiting: f64, over_s: f64) -> Option<f64> {
        let (at, before) = self.waiting.iter().find(|(at, _)| at_s - at <= over_s)?;
        (at_s - at >= over_s / 2.0).then(|| (waiting - before) / (at_s - at))
    }

    /// Time in which nothing was seen does not count: what was asked for before it is as recent as it was then.
    pub(super) fn wake(&mut self, at_s: f64, stale_s: f64) {
        let Some(seen) = &self.last else { return };
        let gap = at_s - seen.at_s;
        if gap <= stale_s {
            return;
        }
        self.asked.iter_mut().for_each(|(at, _)| *at += gap);
        for all in [&mut self.reporters, &mut self.gateways] {
            all.iter_mut().for_each(|(at, _)| *at += gap);
        }
        self.waiting.clear();
    }

    /// Whether a look shows only a part: fewer replicas or gateways answer than did a while ago, or a signal of demand that there was is gone.
    pub(super) fn is_partial(&self, at_s: f64, own: &PoolSighting) -> bool {
        let fell = |all: &[(f64, f64)], now: Option<f64>| {
            let lately = all.iter().filter(|(at, _)| *at > at_s - REPORTERS_S);
            now.unwrap_or(0.0) < lately.map(|(_, count)| *count).fold(0.0, f64::max)
        };
        let answers = [own.fresh_tokens.is_some(), own.in_flight.is_some(), own.offered];
        let lost = self.had.iter().zip(answers).any(|(had, has)| *had && !has);
        lost || fell(&self.gateways, own.gateways)
            || (!own.offered && fell(&self.reporters, own.replicas))
    }

    /// When what the advice rests on was seen: where a signal is lost, when it was there.
    pub(super) fn rests_on(&self, seen: &Seen) -> f64 {
        if self.lost.is_empty() { seen.at_s } else { self.whole_at }
    }

    pub(super) fn ask(&mut self, at_s: f64, replicas: u32) {
        self.asked.retain(|(at, _)| *at > at_s - ASKED_S);
        self.asked.push((at_s, replicas));
    }

    /// The most that was asked for since then; where nothing was seen since, the last that was.
    pub(super) fn most_asked(&self, since_s: f64) -> Option<u32> {
        let since = self.asked.iter().filter(|(at, _)| *at >= since_s);
        since.map(|(_, asked)| *asked).max().max(self.asked.last().map(|(_, asked)| *asked))
    }

    /// The demand minute by minute. A minute that was not seen has what the one before had, for a gap is no zero.
    pub(super) fn history(&self) -> Option<History> {
        let gap = |pair: &[(u64, f64)]| (pair[1].0 - pair[0].0) as usize > GAP_MOST;
        let from = self.minutes.windows(2).rposition(gap).map_or(0, |before| before + 1);
        let minutes = &self.minutes[from..];
        let (first, last) = (minutes.first()?.0, minutes.last()?.0);
        let mut steps = Vec::new();
        let mut at = 0;
        for minute in first..=last {
            if minutes.get(at + 1).is_some_and(|(next, _)| *next == minute) {
                at += 1;
            }
            // What is counted is called requests here: it only has to be one quantity.
            let requests = minutes[at].1 * f64::from(STEP_S);
            steps.push(StepCount { requests, attempts: requests, ..StepCount::default() });
        }
        let start_s = i64::try_from(first).ok()? * i64::from(STEP_S);
        let classes = vec![ClassHistory { name: "demand".to_owned(), steps }];
        Some(History { start_s, step_s: STEP_S, absolute: true, classes })
    }
}
