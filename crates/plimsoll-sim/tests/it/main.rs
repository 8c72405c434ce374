//! Engines and fleets against theory, each other, and days worked by hand.

mod autoscale;
mod fast;
mod fleet;
mod fleets;
mod policies;
mod properties;
mod queueing;
mod scale;
mod support;
mod swarm;
