//! The requests of a measured run.

use std::collections::BTreeMap;

use plimsoll_study::EngineRun;
use plimsoll_units::Tokens;
use plimsoll_workload::{Trace, TraceFault, TraceRequest};

/// What was asked in a run of an engine: its arrivals and lengths, without what came of them.
///
/// Prompts picked from the same group begin alike, in whole blocks of the engine.
pub fn trace_of_run(run: &EngineRun) -> Result<Trace, TraceFault> {
    let block = run.setup.block_size.max(1);
    let mut groups = BTreeMap::new();
    let mut classes: Vec<String> = Vec::new();
    let requests = run.requests.iter().map(|request| {
        let prefix = request.prefix.map(|prefix| {
            // A group's blocks are numbered on from its own place; a prompt has fewer than 2^32.
            let next = groups.len() as u64;
            let first = *groups.entry(prefix.group).or_insert(next) << 32;
            (0..prefix.tokens.min(request.prompt) / block).map(move |i| first + i)
        });
        // A run of one kind is a class of its name.
        let kind = request.kind.as_ref().unwrap_or(&run.run);
        let class = classes.iter().position(|own| own == kind).unwrap_or_else(|| {
            classes.push(kind.clone());
            classes.len() - 1
        });
        TraceRequest {
            at: request.at,
            prompt: Tokens::new(request.prompt),
            output: Tokens::new(request.output),
            cached: Some(Tokens::new(request.cached)),
            class: u16::try_from(class).unwrap_or(u16::MAX),
            session: None,
            content: prefix.into_iter().flatten().collect(),
        }
    });
    let requests = requests.collect();
    let trace = Trace::new(requests, classes, block)?
        .noted(format!("{}, row {}: run `{}`", run.origin.file, run.origin.row, run.run));
    Ok(match run.clients {
        None => trace,
        Some(clients) => trace.noted(format!(
            "a closed loop of {clients} clients: requests came when the engine had answered, not when somebody asked"
        )),
    })
}
