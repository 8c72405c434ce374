//! Steps in which nothing happens, all at once.

use plimsoll_perf::{DecodePiece, StepLoad};

use super::{Replica, peak};
use crate::drive::{Engine as _, Pace, Stretch, Watch};
use crate::plain::Held;

/// Steps in which nothing happens.
#[derive(Debug)]
pub(super) struct Leap {
    steps: u64,
    /// Blocks that they take, and give back.
    taken: u64,
    given: u64,
    piece: DecodePiece,
    /// The longest context when they begin.
    longest: u64,
    held: Option<Held>,
    /// When the first of their tokens are handed out, and the last.
    first: u64,
    pub(super) handed_out: u64,
    /// When the device is done with the last.
    end: u64,
}

impl Replica<'_> {
    /// As many pure decode steps as nothing can happen in and that are decided on before `until`.
    ///
    /// An asynchronous engine hands out the tokens of the step under way and of those after it but the last, which is then under way. Its host must be
    /// fast enough to be hidden behind the device, which it stays as contexts grow.
    pub(super) fn plan_leap(&mut self, now: u64, until: u64) -> Option<Leap> {
        if self.decodes == 0
            || self.reading.is_some()
            || !self.behind.is_empty()
            || !self.fresh.is_empty()
            || !self.leaving.is_empty()
            || self.limits.speculation.is_some()
            || self.decodes > self.limits.max_num_batched_tokens
        {
            return None;
        }
        let asynchronous = self.limits.asynchronous;
        let seen = &self.under_way;
        let pure = seen.alone.is_empty()
            && seen.load.prefill == 0
            && seen.load.decodes == self.decodes
            && seen.classes == self.by_class
            && seen.preempted == 0;
        if asynchronous && !(seen.is && pure) {
            return None;
        }
        let mut held = None;
        if let Some(index) = self.next() {
            held = self.admission(index, self.limits.max_num_batched_tokens - self.decodes).err();
            // What leaves a window may make room on the way.
            if held.is_none() || held == Some(Held::Kv) && self.limits.kv.sliding > 0 {
                return None;
            }
        }
        let (end, _) = Self::first(&self.slots, &mut self.ends)?;
        let (count, context, longest) = (self.decodes, self.context, self.longest());
        let load = StepLoad { decodes: count, context, longest, ..StepLoad::default() };
        let piece = if asynchronous {
            self.model.device_piece(count, context, load.uneven())
        } else {
            self.model.decode_piece(count, context, load.uneven())
        };
        if context > piece.until {
            return None;
        }
        // When the first tokens are handed out: those of the step under way, or of the next where none is.
        let mut first = now;
        if asynchronous {
            let (host, device) = (self.model.launch(&load), piece.at(context));
            first = self.under_way.end;
            if self.host.free.saturating_add(host.whole) > first || host.whole > device {
                return None;
            }
        }
        // Not the step in which one is done, nor one beyond the piece, nor one that gives room after a window is passed.
        let mut most = (end - 1 - self.count).min((piece.until - context) / count + 1);
        if let Some((passes, _)) = Self::first(&self.slots, &mut self.windows) {
            most = most.min(passes - self.count);
        }
        if most == 0 {
            return None;
        }
        // What the first `n` steps from here take together.
        let sum = |n: u64| {
            let (n, slope) = (u128::from(n), u128::from(piece.slope));
            let seen = n * u128::from(context) + u128::from(count) * (n * n.saturating_sub(1) / 2);
            n * u128::from(piece.base) + slope * seen
        };
        // All are decided on before somebody comes: the first now, each further one when the tokens before it are handed out.
        let skipped = u64::from(asynchronous);
        let within = u128::from(until.saturating_sub(first));
        let decided = |n: u64| n == 1 || sum(n - 1 - skipped) < within;
        if !decided(most) {
            let (mut low, mut high) = (1, most);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if decided(middle) { low = middle } else { high = middle }
            }
            most = low;
        }
        let (steps, taken, given) = self.within_blocks(most)?;
        let after = |n: u64| first.saturating_add(u64::try_from(sum(n)).unwrap_or(u64::MAX));
        Some(Leap {
            steps,
            taken,
            given,
            piece,
            longest,
            held,
            first,
            handed_out: after(steps - skipped),
            end: after(steps),
        })
    }

    /// Leaps; says when the last tokens were handed out.
    pub(super) fn leap(&mut self, leap: Leap, watch: &mut impl Watch) -> u64 {
        let Leap { steps, taken, given, piece, longest, held, first, handed_out, end } = leap;
        let (count, context) = (self.decodes, self.context);
        let asynchronous = self.limits.asynchronous;
        let skipped = u64::from(asynchronous);
        // Steps whose tokens are handed out began one step earlier where one was under way.
        let seen_first = context - skipped * count;
        watch.stretch(&Stretch {
            from: self.since,
            took: handed_out - self.since,
            steps,
            prefill: 0,
            pairs_doubled: 0,
            decodes: steps * count,
            tokens: steps * count,
            context: steps * seen_first + count * (steps * (steps - 1) / 2),
            gauges: self.stood.take().unwrap_or_else(|| self.gauges()),
            held,
            preempted: 0,
        });
        if asynchronous {
            let was_late = std::mem::take(&mut self.late);
            let pace = Pace::of(false, was_late, false);
            for (class, n) in (0u16..).zip(&self.by_class).filter(|(_, n)| **n > 0) {
                watch.gap(class, first - self.since, pace, *n);
            }
        }
        if asynchronous {
            peak(&mut self.peaks, first, first - self.since);
        }
        // They grow from step to step: the last is the largest.
        if steps > skipped {
            peak(&mut self.peaks, handed_out, piece.at(context + (steps - skipped - 1) * count));
        }
        for step in 0..if watch.hears_gaps() { steps - skipped } else { 0 } {
            let time = piece.at(context + step * count);
            for (class, n) in (0u16..).zip(&self.by_class).filter(|(_, n)| **n > 0) {
                watch.gap(class, time, Pace::Decodes, *n);
            }
        }
        self.pool.give(given);
        self.pool.take(taken);
        self.context += steps * count;
        self.count += steps;
        self.decode_steps += steps;
        self.roomed = self.count - 1;
        self.pass_windows();
        self.since = handed_out;
        if asynchronous {
            (self.host.free, self.host.done) = (handed_out, end);
            self.under_way.end = end;
            self.under_way.load.context = self.context - count;
            self.under_way.load.longest = longest + steps - 1;
            self.under_way.held = held;
        }
        self.steps.total += steps;
        self.steps.leapt += steps;
        handed_out
    }

    /// How many of `most` steps there are blocks for, and how many blocks they take and give back.
    pub(super) fn within_blocks(&self, most: u64) -> Option<(u64, u64, u64)> {
        let (kv, free) = (self.limits.kv, self.pool.free());
        let first = self.count;
        let (mut steps, mut taken, mut given) = (0, 0, 0);
        if kv.sliding == 0 {
            // Whole rounds of the residues take a block for every sequence.
            let round = self.decodes * kv.full;
            let rounds = (most / kv.block_tokens).min(free.checked_div(round).unwrap_or(u64::MAX));
            (steps, taken) = (rounds * kv.block_tokens, rounds * round);
        }
        while steps < most {
            let (takes, gives) = self.exchanged(first + steps);
            if taken + takes > free + given {
                break;
            }
            (steps, taken, given) = (steps + 1, taken + takes, given + gives);
        }
        (steps > 0).then_some((steps, taken, given))
    }
}
