//! What happens around the steps: the way in, and the hand-over between pools.

use crate::rates::{Rates, Term};
use crate::work::Work;

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
