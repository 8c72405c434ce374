//! What all targets share: pools with their names and questions, and the file that is being written.

use plimsoll_fleet::metrics::Reporter;
use plimsoll_live::{PoolQueries, Selector, labels_of, pool_queries};
use plimsoll_study::{FileLimit, FileLimits, FilePolicy, FilePool, PlanFile, PoolLine};

use super::{EmitError, EmitInput, EmitSettings, Emitted, EmittedFile, Target};
use crate::manifest::{self, Item, map, map_of, quoted, text};

/// What rates are counted over: eight scrapes of 15 s, so that a missed one changes little.
pub(super) const WINDOW: &str = "2m";
/// What shares of calls are counted over.
pub(super) const SHARE_WINDOW: &str = "5m";
/// Digits of a number that was computed.
pub(super) const DIGITS: i32 = 4;
/// More than the error of a product, and less than anything that is counted.
const SLACK: f64 = 1e-9;
/// A name of Kubernetes has as many characters at most, less what is put before and after it.
const NAME_MOST: usize = 50;

/// A pool, with all that the plan says of it.
#[derive(Clone, Debug)]
pub(super) struct Pool<'a> {
    pub(super) pool: &'a FilePool,
    pub(super) line: Option<&'a PoolLine>,
    pub(super) limits: Option<&'a FileLimits>,
    pub(super) policy: Option<&'a FilePolicy>,
    /// In the cluster.
    pub(super) name: String,
    /// Of its model, as it is served.
    pub(super) served: String,
    /// Whose metrics it has; none where its engine is not known.
    pub(super) engine: Option<Selector>,
    pub(super) queries: Option<PoolQueries>,
}

/// A target that is being written.
pub(super) struct Emission<'a> {
    pub(super) plan: &'a PlanFile,
    pub(super) settings: &'a EmitSettings,
    pub(super) pools: Vec<Pool<'a>>,
    pub(super) out: Emitted,
    target: Target,
}

impl<'a> Emission<'a> {
    pub(super) fn new(target: Target, input: &EmitInput<'a>) -> Result<Self, EmitError> {
        let EmitInput { plan, settings } = *input;
        if !plan.feasible && !settings.even_if_infeasible {
            return Err(EmitError::Infeasible { plan: plan.name.clone() });
        }
        for pool in settings.names.keys().chain(settings.served.keys()) {
            if !plan.pools.iter().any(|own| own.name == *pool) {
                let known: Vec<String> =
                    plan.pools.iter().map(|own| format!("`{}`", own.name)).collect();
                return Err(EmitError::Pool { pool: pool.clone(), known: known.join(", ") });
            }
        }
        let pools = plan
            .pools
            .iter()
            .map(|pool| one(plan, settings, pool))
            .collect::<Result<Vec<_>, _>>()?;
        for (at, pool) in pools.iter().enumerate() {
            if let Some(other) = pools[..at].iter().find(|other| other.name == pool.name) {
                return Err(EmitError::SameName {
                    first: other.pool.name.clone(),
                    second: pool.pool.name.clone(),
                    name: pool.name.clone(),
                });
            }
        }
        let mut own = Self { plan, settings, pools, out: Emitted::default(), target };
        own.say_what_cannot_be_told_apart();
        Ok(own)
    }

    fn say_what_cannot_be_told_apart(&mut self) {
        let asks = matches!(
            self.target,
            Target::Keda
                | Target::Hpa
                | Target::Prometheus
                | Target::PrometheusRules
                | Target::Grafana
        );
        let mut said = Vec::new();
        for (at, pool) in self.pools.iter().enumerate().filter(|_| asks) {
            let same = self.pools[..at].iter().find(|other| {
                let whose = |own: &Pool<'_>| {
                    own.engine.as_ref().map(|own| (own.reporter, own.labels.clone()))
                };
                other.served == pool.served && whose(other) == whose(pool)
            });
            let written =
                self.plan.scaling.advised || !matches!(self.target, Target::Keda | Target::Hpa);
            if written && !self.settings.served.contains_key(&pool.pool.name) {
                said.push(format!(
                    "`{}`: queries look for the model under the plan's name, `{}`; where engines report another, such as a Hugging Face id, say so with `--served {}=NAME`: `plimsoll doctor` shows whether they find anything",
                    pool.pool.name, pool.served, pool.pool.name
                ));
            }
            if let Some(other) = same {
                said.push(format!(
                    "pools `{}` and `{}` serve one name, `{}`: their metrics cannot be told apart, and each is counted as both; serve one under another name (`--served`), or say whose series are whose (`--match {}:LABEL=VALUE`)",
                    other.pool.name, pool.pool.name, pool.served, pool.pool.name
                ));
            }
        }
        self.out.notes.extend(said);
    }

    /// What a file says of itself.
    pub(super) fn header(&self) -> Vec<String> {
        let plan = self.plan;
        let mut lines = vec![
            format!("Plan {} ({}), as of {}.", plan.id, plan.name, plan.as_of),
            format!(
                "Made by: plimsoll emit {} --target {}",
                self.settings.plan_file,
                self.target.name()
            ),
        ];
        if !plan.feasible {
            lines.push("The plan does not hold: this is not to be applied.".to_owned());
        }
        lines
    }

    /// A YAML file of these documents.
    pub(super) fn file(&mut self, name: String, documents: &[Item]) {
        self.file_with(name, &[], documents);
    }

    /// The same with more lines at its head.
    pub(super) fn file_with(&mut self, name: String, more: &[String], documents: &[Item]) {
        let mut header = self.header();
        header.extend_from_slice(more);
        let text = manifest::file(&header, documents);
        self.out.files.push(EmittedFile { name, text });
    }

    pub(super) fn raw_file(&mut self, name: String, text: String) {
        self.out.files.push(EmittedFile { name, text });
    }

    /// Says something once.
    pub(super) fn note(&mut self, said: impl Into<String>) {
        let said = said.into();
        if !self.out.notes.contains(&said) {
            self.out.notes.push(said);
        }
    }

    /// An object's name, place and plan; `pool` is none where it is about all of them.
    pub(super) fn metadata(&self, name: &str, pool: Option<&Pool<'_>>) -> Item {
        self.metadata_with(name, pool, Vec::new())
    }

    /// The same with more annotations.
    pub(super) fn metadata_with(
        &self,
        name: &str,
        pool: Option<&Pool<'_>>,
        more: Vec<(String, Item)>,
    ) -> Item {
        let mut annotations = vec![("plimsoll.dev/plan".to_owned(), quoted(&self.plan.id))];
        if let Some(pool) = pool {
            annotations.push(("plimsoll.dev/pool".to_owned(), quoted(&pool.pool.name)));
        }
        annotations.extend(more);
        map([("name", text(name))])
            .with_some("namespace", self.settings.namespace.as_deref().map(text))
            .with("annotations", map_of(annotations))
    }

    /// The pools that an autoscaler may move; a note for each of the others.
    pub(super) fn scaled(&mut self) -> Vec<(Pool<'a>, &'a FilePolicy)> {
        if !self.plan.scaling.advised {
            let why = self.plan.scaling.why.clone();
            self.note(format!("no autoscaler is advised, so none is written: {why}"));
            return Vec::new();
        }
        let mut moved = Vec::new();
        for pool in self.pools.clone() {
            let name = &pool.pool.name;
            match pool.policy {
                _ if pool.pool.tiny => self.note(format!(
                    "`{name}`: one replica has little to do, so an autoscaler has nothing to move"
                )),
                None => self.note(format!("`{name}`: the plan has no policy for it")),
                Some(policy) if policy.min_replicas >= policy.max_replicas => self.note(format!(
                    "`{name}`: {} replicas at least and {} at most leave an autoscaler nothing to move",
                    policy.min_replicas, policy.max_replicas
                )),
                Some(policy) => moved.push((pool, policy)),
            }
        }
        moved
    }

    /// What is said of a pool whose engine reports nothing that is known.
    pub(super) fn note_unknown_engine(&mut self, pool: &Pool<'_>) {
        self.note(format!(
            "`{}`: the metrics of `{}` are not known, so nothing can be asked about it",
            pool.pool.name, pool.pool.engine
        ));
    }
}

fn one<'a>(
    plan: &'a PlanFile,
    settings: &EmitSettings,
    pool: &'a FilePool,
) -> Result<Pool<'a>, EmitError> {
    let name = match settings.names.get(&pool.name) {
        Some(name) if is_name(name) => name.clone(),
        Some(name) => {
            return Err(EmitError::Name {
                pool: pool.name.clone(),
                name: name.clone(),
                nearest: slug(name),
            });
        }
        None => slug(&pool.name),
    };
    let served = settings.served.get(&pool.name).unwrap_or(&pool.model).clone();
    let (engine, version) = pool.engine.split_once('@').unwrap_or((&pool.engine, ""));
    let selector = |reporter, version: &str| Selector {
        reporter,
        version: version.parse().ok(),
        model: Some(served.clone()),
        // A gateway stands elsewhere: only the model tells its series.
        labels: if reporter.is_gateway() {
            Vec::new()
        } else {
            labels_of(&settings.labels, &pool.name)
        },
    };
    let engine = Reporter::named(engine).map(|reporter| selector(reporter, version));
    let gateway =
        settings.gateway.filter(|own| own.is_gateway()).map(|reporter| selector(reporter, ""));
    let queries = engine.as_ref().map(|own| pool_queries(own, gateway.as_ref(), WINDOW));
    Ok(Pool {
        pool,
        line: plan.line(&pool.name),
        limits: plan.limits_of(&pool.name),
        policy: plan.policy(&pool.name),
        name,
        served,
        engine,
        queries,
    })
}

/// A name that Kubernetes takes, as near to another as may be.
pub(super) fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() => out.push(c),
            _ if out.ends_with('-') || out.is_empty() => {}
            _ => out.push('-'),
        }
    }
    out.truncate(NAME_MOST);
    let out = out.trim_end_matches('-');
    if out.is_empty() { "pool".to_owned() } else { out.to_owned() }
}

fn is_name(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 63
        && name.starts_with(edge)
        && name.ends_with(edge)
        && name.chars().all(|c| edge(c) || c == '-')
}

/// A whole number of a limit, rounded down, and why; none where it is not known.
pub(super) fn whole(limit: &FileLimit) -> Option<(u64, &str)> {
    let value = limit.value.filter(|value| value.is_finite() && *value >= 0.0)?;
    Some((whole_down(value), &limit.why))
}

/// Whole, rounded down.
pub(super) fn whole_down(value: f64) -> u64 {
    format!("{:.0}", (value.max(0.0) + SLACK).floor()).parse().unwrap_or(0)
}

/// Whole, rounded up: seconds of a period, which are safer when they are longer.
pub(super) fn whole_up(value: f64) -> u64 {
    format!("{:.0}", (value - SLACK).max(0.0).ceil()).parse().unwrap_or(0)
}

/// A text as PromQL quotes it.
pub(super) fn promql_text(value: &str) -> String {
    serde_json::Value::String(value.to_owned()).to_string()
}
