//! What is known of a manifest from the others, from the plan and from what was told.

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::{FileLimits, FilePolicy, FilePool, PlanFile, PoolLine};

use super::manifest::Scaler;
use super::query::Query;
use super::workload::{Workload, workload};
use super::{LintFacts, LintInput};
use crate::yaml::Node;

/// All files.
pub(super) struct Files<'a> {
    pub(super) plan: Option<&'a PlanFile>,
    pub(super) facts: LintFacts,
    workloads: Vec<Workload<'a>>,
}

/// What is known of one manifest.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) engine: Option<Reporter>,
    pub(super) version: Option<Version>,
    /// Whether a language model is served, as far as can be told.
    pub(super) llm: bool,
    pub(super) max_num_seqs: Option<f64>,
    pub(super) startup_p90_s: Option<f64>,
    pub(super) startup_p99_s: Option<f64>,
    pub(super) generation_p99_s: Option<f64>,
    pub(super) pool: Option<Pool<'a>>,
}

/// A pool of the plan.
#[derive(Clone, Copy)]
pub(super) struct Pool<'a> {
    pub(super) pool: &'a FilePool,
    pub(super) limits: Option<&'a FileLimits>,
    pub(super) policy: Option<&'a FilePolicy>,
    pub(super) line: Option<&'a PoolLine>,
}

impl<'a> Files<'a> {
    pub(super) fn new(input: &LintInput<'a>, nodes: &[&'a Node]) -> Self {
        let workloads = nodes.iter().filter_map(|node| workload(node)).collect();
        Self { plan: input.plan, facts: input.facts, workloads }
    }

    /// What something that scales has for its target.
    pub(super) fn of_scaler(&self, own: &Scaler<'_>) -> Known<'a> {
        let near = |other: &Workload<'_>| {
            other.namespace.is_none() || own.namespace.is_none() || other.namespace == own.namespace
        };
        let target = own.target.unwrap_or("");
        let served = self.workloads.iter().find(|other| other.name == target && near(other));
        let mut names = vec![own.name, target];
        names.extend(served.map(Workload::models).unwrap_or_default());
        let mut known = self.known(served, self.pool(own.node, &names));
        let metrics = own.triggers.iter().filter_map(|trigger| {
            let text = trigger.query.or(trigger.metric)?.text()?;
            Some(match Query::read(text) {
                Ok(query) => query.metrics().iter().map(|name| (*name).to_owned()).collect(),
                Err(_) => vec![text.to_owned()],
            })
        });
        let reporter =
            metrics.flatten().find_map(|name: String| plimsoll_fleet::metrics::reporter_of(&name));
        known.llm |=
            reporter.is_some() || own.kind == "LLMInferenceService" || own.kind == "PodAutoscaler";
        known
    }

    /// What something that serves has.
    pub(super) fn of_workload(&self, own: &Workload<'a>) -> Known<'a> {
        let mut names = vec![own.name];
        names.extend(own.models());
        self.known(Some(own), self.pool(own.node, &names))
    }

    /// What a name of a pool or a model stands for in the plan.
    pub(super) fn of_name(&self, node: &Node, names: &[&str]) -> Option<Pool<'a>> {
        self.pool(node, names)
    }

    /// The version of an engine that rules of a whole cluster are about: the one that all manifests agree on.
    pub(super) fn version_of(&self, reporter: Reporter) -> Option<Version> {
        if let Some((_, version)) = self.facts.engine.filter(|(own, _)| *own == reporter) {
            return Some(version);
        }
        let mut versions: Vec<Version> = self
            .workloads
            .iter()
            .filter_map(|own| own.engine)
            .filter(|(own, _)| *own == reporter)
            .filter_map(|(_, version)| version)
            .collect();
        if versions.is_empty() {
            let pools = self.plan.map(|plan| plan.pools.as_slice()).unwrap_or_default();
            let engines = pools.iter().filter_map(|pool| engine_of(&pool.engine));
            versions = engines.filter(|own| own.0 == reporter).map(|own| own.1).collect();
        }
        versions.sort();
        versions.dedup();
        if versions.len() == 1 { versions.pop() } else { None }
    }

    fn known(&self, served: Option<&Workload<'_>>, pool: Option<Pool<'a>>) -> Known<'a> {
        let written = served.and_then(|own| own.engine);
        // What was told of one engine says nothing of another that an image names.
        let told = self.facts.engine.filter(|own| written.is_none_or(|(name, _)| name == own.0));
        let planned = pool.and_then(|own| engine_of(&own.pool.engine));
        let engine =
            told.map(|own| own.0).or(written.map(|own| own.0)).or(planned.map(|own| own.0));
        let version = told
            .map(|own| own.1)
            .or(written.and_then(|own| own.1))
            .or_else(|| planned.filter(|own| Some(own.0) == engine).map(|own| own.1));
        let startup = pool.and_then(|own| own.line).map(|line| line.startup_p90_s);
        let drain = pool.and_then(|own| own.limits).and_then(|limits| limits.drain.value);
        Known {
            engine,
            version,
            llm: engine.is_some(),
            max_num_seqs: served.and_then(Workload::max_num_seqs),
            startup_p90_s: self.facts.startup_p90_s.or(startup),
            startup_p99_s: self.facts.startup_p99_s,
            generation_p99_s: self.facts.generation_p99_s.or(drain),
            pool,
        }
    }

    /// The pool that an annotation names, or that has one of the names, or whose model does; none where two could be meant.
    fn pool(&self, node: &Node, names: &[&str]) -> Option<Pool<'a>> {
        let plan = self.plan?;
        let annotations = node.find("metadata.annotations");
        let noted = annotations.and_then(|own| own.get("plimsoll.dev/pool")).and_then(Node::text);
        let one = |test: &dyn Fn(&FilePool) -> bool| -> Option<&'a FilePool> {
            let mut found = plan.pools.iter().filter(|pool| test(pool));
            let first = found.next()?;
            found.next().is_none().then_some(first)
        };
        let pool = match noted {
            Some(name) => one(&|pool| pool.name == name),
            None => {
                let named =
                    |own: &str| names.iter().any(|name| !name.is_empty() && same(name, own));
                one(&|pool| named(&pool.name)).or_else(|| one(&|pool| named(&pool.model)))
            }
        }?;
        Some(Pool {
            pool,
            limits: plan.limits_of(&pool.name),
            policy: plan.policy(&pool.name),
            line: plan.line(&pool.name),
        })
    }
}

/// Whether two names are the same but for a maker before it and capitals: `Qwen/Qwen3-8B` is `qwen3-8b`.
fn same(name: &str, own: &str) -> bool {
    let last = |text: &str| text.rsplit('/').next().unwrap_or("").to_lowercase();
    last(name) == last(own)
}

fn engine_of(text: &str) -> Option<(Reporter, Version)> {
    let (name, version) = text.split_once('@')?;
    Some((Reporter::named(name)?, version.parse().ok()?))
}
