//! What happens around the steps: the way in, the host that launches them, and the hand-over between pools.

use plimsoll_fleet::{Architecture, Mixer};

use crate::rates::{Rates, Term};
use crate::work::{Work, attention, state_bytes};

/// The request path in front of an engine: HTTP, tokeniser, API server. It is a stage with a capacity of its own, which a
/// small model on fast devices reaches before the devices are full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestPath {
    /// What a request spends in it, in seconds, when nothing waits.
    pub request_seconds: f64,
    /// What the server's process works on each generated token, in seconds: it takes it from the engine, turns it into text, sends it.
    pub token_seconds: f64,
    /// Processes that share the work.
    pub servers: f64,
}

impl RequestPath {
    /// The path of a pool's engine.
    pub fn of(rates: &Rates, servers: f64) -> Self {
        Self {
            request_seconds: rates.get(Term::PathSeconds),
            token_seconds: rates.get(Term::PathTokenSeconds),
            servers: servers.max(1.0),
        }
    }

    /// Generated tokens per second that it can send.
    pub fn tokens_per_second(&self) -> f64 {
        self.servers / self.token_seconds
    }

    /// Share of it that so many generated tokens per second take; above one it is the bottleneck.
    pub fn utilisation(&self, tokens_per_second: f64) -> f64 {
        tokens_per_second / self.tokens_per_second()
    }
}

/// What the host does for one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch<T> {
    /// From the beginning until the device may start.
    pub before: T,
    /// Until all of the step is launched and the host is free again.
    pub whole: T,
}

/// An instant or a span: seconds, or whole picoseconds that stop at the end of their type.
pub trait Time: Copy + PartialOrd {
    /// Later by so much.
    #[must_use]
    fn plus(self, span: Self) -> Self;
}

impl Time for f64 {
    fn plus(self, span: Self) -> Self {
        self + span
    }
}

impl Time for u64 {
    fn plus(self, span: Self) -> Self {
        self.saturating_add(span)
    }
}

fn later<T: Time>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// The host of an asynchronous engine, and the device behind it.
///
/// One thread does everything: it launches a step, waits for the one before it, hands out that one's tokens, and goes on. Two steps at most are
/// under way, so the host's time is hidden while the device is busy with the other. Where a launch takes longer than that (a step with prompts,
/// launched kernel by kernel), the tokens of the step before it are handed out late, and those of the step itself soon after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<T> {
    /// When the host is free for the next thing.
    pub free: T,
    /// When the device will be done with all that was launched.
    pub done: T,
}

impl<T: Time> Host<T> {
    /// Launches a step as soon as the host is free, and says when the device will be done with it: never before the last kernel is launched.
    pub fn launch(&mut self, device: T, launch: Launch<T>) -> T {
        let ready = later(self.done, self.free.plus(launch.before)).plus(device);
        self.free = self.free.plus(launch.whole);
        self.done = later(ready, self.free);
        self.done
    }

    /// Waits for a step that ends at `end` and hands out its tokens; says when.
    pub fn hand_out(&mut self, end: T) -> T {
        self.free = later(self.free, end);
        self.free
    }

    /// Whether a step that ends at `end` will have waited for the host when its tokens are handed out.
    pub fn holds_up(&self, end: T) -> bool {
        self.free > end
    }
}

/// What is kept of one context, each number once: however many devices share it or hold copies of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextBytes {
    /// Keys and values of a token, in layers that look at all of them.
    pub token: f64,
    /// The same in layers that look only at so many of the last.
    pub windows: Vec<(u64, f64)>,
    /// Recurrent states.
    pub state: f64,
}

/// What a model keeps of one context, with so many bytes for each number of a key or value.
pub fn context_bytes(model: &Architecture, kv_element_bytes: u64) -> ContextBytes {
    let mut bytes = ContextBytes::default();
    for layer in &model.layers {
        if let Mixer::Recurrent(r) = &layer.mixer {
            bytes.state += state_bytes(r);
        }
        let Some(own) = attention(&layer.mixer, 1.0, 1.0, kv_element_bytes as f64) else {
            continue;
        };
        match own.window.map(|window| window as u64) {
            None => bytes.token += own.kv_bytes,
            Some(window) => match bytes.windows.iter_mut().find(|(known, _)| *known == window) {
                Some((_, token)) => *token += own.kv_bytes,
                None => bytes.windows.push((window, own.kv_bytes)),
            },
        }
    }
    bytes
}

/// Seconds that the keys, values and states of a context take from one pool to another, each device over a link of its own. Nothing overlaps: the
/// decode pool starts when all of it is there. Each stage holds its part of the layers; a context lies in one copy of the attention.
pub fn kv_transfer_seconds(
    work: &Work,
    context: f64,
    link_bytes_per_second: f64,
    latency: f64,
) -> f64 {
    latency + (context * work.kv_bytes() + work.state_bytes) / work.pipeline / link_bytes_per_second
}
