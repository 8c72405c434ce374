//! A plain engine with a clock, driven by a step-time model.

use std::collections::BTreeMap;

use plimsoll_perf::StepModel;

use crate::drive::{Engine, Gauges, Moved, Stretch, Watch};
use crate::limits::{Limits, TooLong};
use crate::plain::{PlainEngine, Step};
use crate::policy::{Policy, Vllm};
use crate::request::{End, Outcome, Wanted};

/// The plain engine, which takes one step at a time.
pub struct PlainReplica<'a, P = Vllm> {
    engine: PlainEngine<P>,
    limits: Limits,
    model: &'a StepModel,
    /// Decided on while the one before it ran.
    ahead: Option<Step>,
    records: BTreeMap<u64, Record>,
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
    preemptions: u32,
}

impl<'a, P: Policy> PlainReplica<'a, P> {
    /// An idle one.
    pub fn new(limits: Limits, policy: P, model: &'a StepModel) -> Self {
        let engine = PlainEngine::with_policy(limits, policy);
        Self { engine, limits, model, ahead: None, records: BTreeMap::new() }
    }

    fn schedule(&mut self) -> Option<Step> {
        let step = self.engine.schedule();
        for serial in self.engine.thrown_out() {
            if let Some(record) = self.records.get_mut(&serial) {
                record.preemptions += 1;
            }
        }
        step
    }

    fn over(&mut self, serial: u64, end: End, now: u64, watch: &mut impl Watch) {
        let Some(r) = self.records.remove(&serial) else { return };
        let Record {
            arrived, scheduled, first, class, prompt, output, cached, preemptions, ..
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
            preemptions,
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
            preemptions: 0,
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
        let gauges = self.gauges();
        let step = self.ahead.take().or_else(|| self.schedule())?;
        for (serial, cached) in &step.admitted {
            if let Some(record) = self.records.get_mut(serial)
                && record.scheduled.is_none()
            {
                (record.scheduled, record.cached) = (Some(now), *cached);
            }
        }
        let given = self.engine.advance(&step);
        if self.limits.asynchronous {
            self.ahead = self.schedule();
        }
        let took = self.model.step(&step.load);
        let end = now.saturating_add(took);
        self.engine.release();
        watch.stretch(&Stretch {
            from: now,
            took,
            steps: 1,
            prefill: step.load.prefill,
            pairs_doubled: step.load.pairs_doubled,
            decodes: step.load.decodes,
            context: step.load.context,
            gauges,
            held: step.held,
            preempted: step.preempted.len() as u64,
        });
        for (serial, tokens) in given.tokens {
            let Some(record) = self.records.get_mut(&serial) else { continue };
            match record.first {
                None => record.first = Some(end),
                Some(_) => watch.gap(record.class, end - record.last, 1),
            }
            record.last = end;
            record.output += tokens;
        }
        for serial in &given.done {
            self.over(*serial, End::Completed, end, watch);
        }
        Some(Moved { now: end, completed: given.done.len() })
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            running: self.engine.running() as u64,
            waiting: self.engine.waiting() as u64,
            blocks: self.engine.blocks_used(),
        }
    }
}
