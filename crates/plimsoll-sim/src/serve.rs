//! A plain engine with a clock, driven by a step-time model.

use std::collections::BTreeMap;

use plimsoll_perf::{Host, StepModel};

use crate::drive::{Engine, Gauges, Moved, Pace, Stretch, Watch};
use crate::limits::{Limits, TooLong};
use crate::plain::{Given, PlainEngine, Step};
use crate::policy::{Policy, Vllm};
use crate::request::{End, Outcome, Wanted, tokens_u32};

/// The plain engine, which takes one step at a time.
pub struct PlainReplica<'a, P = Vllm> {
    engine: PlainEngine<P>,
    limits: Limits,
    model: &'a StepModel,
    /// The host of an asynchronous engine.
    host: Host<u64>,
    /// The step whose tokens nobody has seen yet.
    under_way: Option<UnderWay>,
    /// Whether the tokens before were handed out late, and when they were.
    late: bool,
    since: u64,
    /// How it stood then, where nothing was under way.
    stood: Option<Gauges>,
    records: BTreeMap<u64, Record>,
}

/// A step that was launched.
struct UnderWay {
    given: Given,
    /// When the device is done with it.
    end: u64,
    step: Step,
}

/// What is written down of a request.
struct Record {
    arrived: u64,
    scheduled: Option<u64>,
    first: Option<u64>,
    last: u64,
    class: u16,
    prompt: u64,
    output: u64,
    cached: u64,
    read: u32,
    preemptions: u8,
    largest_gap: u64,
}

impl<'a, P: Policy> PlainReplica<'a, P> {
    /// An idle one.
    pub fn new(limits: Limits, policy: P, model: &'a StepModel) -> Self {
        let engine = PlainEngine::with_policy(limits, policy);
        let host = Host { free: 0, done: 0 };
        let records = BTreeMap::new();
        Self {
            engine,
            limits,
            model,
            host,
            under_way: None,
            late: false,
            since: 0,
            stood: None,
            records,
        }
    }

    /// From here on its steps take other times.
    pub fn set_model(&mut self, model: &'a StepModel) {
        self.model = model;
    }

    fn schedule(&mut self, now: u64) -> Option<Step> {
        let step = self.engine.schedule();
        for serial in self.engine.thrown_out() {
            if let Some(record) = self.records.get_mut(&serial) {
                record.preemptions = record.preemptions.saturating_add(1);
            }
        }
        for (serial, cached) in step.iter().flat_map(|step| &step.admitted) {
            if let Some(record) = self.records.get_mut(serial)
                && record.scheduled.is_none()
            {
                (record.scheduled, record.cached) = (Some(now), *cached);
            }
        }
        step
    }

    /// A step is on its way.
    fn advance(&mut self, step: &Step) -> Given {
        let given = self.engine.advance(step);
        for (serial, tokens) in &given.read {
            if let Some(record) = self.records.get_mut(serial) {
                record.read = record.read.saturating_add(tokens_u32(*tokens));
            }
        }
        given
    }

    /// Hands out the tokens of a step.
    fn hand_out(
        &mut self,
        seen: UnderWay,
        (at, pace): (u64, Pace),
        gauges: Gauges,
        watch: &mut impl Watch,
    ) -> Moved {
        let UnderWay { given, step, .. } = seen;
        let gauges = self.stood.take().unwrap_or(gauges);
        // Those of clients that have gone are nobody's.
        let there = given.tokens.iter().filter(|(serial, _)| self.records.contains_key(serial));
        let tokens = there.map(|(_, tokens)| tokens).sum();
        watch.stretch(&Stretch {
            from: self.since,
            took: at - self.since,
            steps: 1,
            prefill: step.load.prefill,
            pairs_doubled: step.load.pairs_doubled,
            decodes: step.load.decodes,
            context: step.load.context,
            tokens,
            gauges,
            held: step.held,
            preempted: step.preempted.len() as u64,
        });
        self.since = at;
        for (serial, tokens) in given.tokens {
            let Some(record) = self.records.get_mut(&serial) else { continue };
            match record.first {
                None => record.first = Some(at),
                Some(_) => {
                    let gap = at - record.last;
                    record.largest_gap = record.largest_gap.max(gap);
                    watch.gap(record.class, gap, pace, 1);
                }
            }
            record.last = at;
            record.output += tokens;
        }
        for serial in &given.done {
            self.over(*serial, End::Completed, at, watch);
        }
        Moved { now: at, completed: given.done.len() }
    }

    fn over(&mut self, serial: u64, end: End, now: u64, watch: &mut impl Watch) {
        let Some(r) = self.records.remove(&serial) else { return };
        let Record {
            arrived,
            scheduled,
            first,
            class,
            prompt,
            output,
            cached,
            read,
            preemptions,
            largest_gap,
            ..
        } = r;
        watch.over(&Outcome {
            serial,
            class,
            end,
            arrived,
            scheduled,
            first,
            done: now,
            prompt,
            output,
            cached,
            read,
            preemptions,
            largest_gap,
        });
    }
}

impl<P: Policy> Engine for PlainReplica<'_, P> {
    fn arrive(&mut self, at: u64, serial: u64, wanted: Wanted) -> Result<(), TooLong> {
        let record = Record {
            arrived: at,
            scheduled: None,
            first: None,
            last: 0,
            class: wanted.class,
            prompt: wanted.prompt,
            output: 0,
            cached: 0,
            read: 0,
            preemptions: 0,
            largest_gap: 0,
        };
        self.engine.arrive(serial, wanted)?;
        self.records.insert(serial, record);
        Ok(())
    }

    fn cancel(&mut self, now: u64, serial: u64, watch: &mut impl Watch) -> bool {
        let was_there = self.engine.cancel(serial);
        if was_there {
            self.over(serial, End::TimedOut, now, watch);
        }
        was_there
    }

    fn go(&mut self, now: u64, _until: u64, watch: &mut impl Watch) -> Option<Moved> {
        self.step(now, watch)
    }

    fn quiet(&mut self, _now: u64) -> Option<u64> {
        None
    }

    fn has_begun(&self, serial: u64) -> bool {
        self.records.get(&serial).is_some_and(|record| record.first.is_some())
    }

    fn first_waiting(&self) -> Option<u64> {
        let first = self.engine.first_waiting()?;
        self.records.get(&first).map(|record| record.arrived)
    }

    fn finds(&self, wanted: &Wanted) -> u64 {
        self.engine.finds(wanted)
    }

    fn step(&mut self, now: u64, watch: &mut impl Watch) -> Option<Moved> {
        self.host.free = self.host.free.max(now);
        let next = self.schedule(now);
        let gauges = self.gauges();
        if !self.limits.asynchronous {
            let step = next?;
            self.since = now;
            let end = now.saturating_add(self.model.step(&step.load));
            let given = self.advance(&step);
            self.engine.release();
            let pace = Pace::of(false, false, step.load.prefill > 0);
            return Some(self.hand_out(UnderWay { given, end, step }, (end, pace), gauges, watch));
        }
        let next = next.map(|step| {
            let end =
                self.host.launch(self.model.device(&step.load), self.model.launch(&step.load));
            (step, end)
        });
        let seen = self.under_way.take();
        if seen.is_some() {
            self.engine.release();
        }
        if let Some((step, end)) = next {
            let given = self.advance(&step);
            self.under_way = Some(UnderWay { given, end, step });
        }
        let Some(seen) = seen else {
            // With nothing under way the next is launched at once.
            self.under_way.as_ref()?;
            (self.since, self.stood) = (now, Some(gauges));
            return Some(Moved { now: self.host.free, completed: 0 });
        };
        let was_late = std::mem::replace(&mut self.late, self.host.holds_up(seen.end));
        let at = self.host.hand_out(seen.end);
        let pace = Pace::of(self.late, was_late, seen.step.load.prefill > 0);
        Some(self.hand_out(seen, (at, pace), gauges, watch))
    }

    fn lose(&mut self, now: u64, watch: &mut impl Watch) {
        let all: Vec<u64> = self.records.keys().copied().collect();
        for serial in all {
            self.over(serial, End::TimedOut, now, watch);
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            running: self.engine.running() as u64,
            waiting: self.engine.waiting() as u64,
            waiting_tokens: self.engine.waiting_tokens(),
            blocks: self.engine.blocks_used(),
            seats: (self.limits.max_num_seqs as u64).saturating_sub(self.engine.running() as u64),
        }
    }
}
