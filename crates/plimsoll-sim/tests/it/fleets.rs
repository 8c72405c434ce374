//! Fleets to begin with.

use plimsoll_perf::{RequestPath, StepModel};
use plimsoll_sim::{
    ClassSpec, Domain, EngineKind, FleetSpec, Good, Judged, Limits, PoolSpec, Queue, RouteSpec,
    Routing, StartupSpec, Target,
};

/// A second, in picoseconds.
pub const SECOND: u64 = 1_000_000_000_000;

/// A class whose tasks are one call, to a pool.
pub fn class(pool: usize) -> ClassSpec {
    ClassSpec {
        region: 0,
        routes: vec![RouteSpec {
            to: Target::Pool(pool),
            share: 1.0,
            fallback: Vec::new(),
            shift: None,
        }],
        retries: None,
        deadline: None,
        leaves: None,
        judged: Judged::Answer,
        good: Good::default(),
    }
}

/// Replicas that never fail, with nothing in front of them.
pub fn pool(model: &StepModel, limits: Limits, replicas: u32, routing: Routing) -> PoolSpec {
    PoolSpec {
        limits,
        engine: EngineKind::Vllm,
        caches: true,
        model: model.clone(),
        model_when_new: None,
        new_for: 0,
        path: RequestPath { request_seconds: 0.0, token_seconds: 0.0, servers: 1.0 },
        queue: Queue::default(),
        routing,
        staleness: 0,
        replicas,
        regions: vec![0],
        domain: Domain::Group(1),
        per_node: 1,
        zones: 1,
        between_failures: 1e9,
        repair: 60 * SECOND,
        startup: StartupSpec { phases: Vec::new(), beyond: None },
        drain: 60 * SECOND,
        spot: None,
        scaling: None,
        hands_over: None,
    }
}

/// One pool, and classes that go there.
pub fn fleet(pool: PoolSpec, classes: Vec<ClassSpec>) -> FleetSpec {
    FleetSpec {
        classes,
        pools: vec![pool],
        providers: Vec::new(),
        tools: Vec::new(),
        ways: vec![vec![Some(0)]],
        incidents: Vec::new(),
        chance: false,
        spent: false,
    }
}
