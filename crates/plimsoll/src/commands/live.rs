//! A Prometheus and a plan, as `ingest`, `doctor` and `watch` ask them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::{Reporter, Signal};
use plimsoll_live::{
    Access, Answer, Answering, Labels, LiveError, PoolSource, Prometheus, Selector, Unanswered,
    labels_of, served_as,
};
use plimsoll_scenario::Diagnostic;
use plimsoll_study::{FilePool, PlanFile};

use crate::args::{GatewayArg, PrometheusArgs};
use crate::failure::Failure;
use crate::files;

/// The Prometheus that was named; nothing is asked of it yet.
pub(super) fn prometheus(args: &PrometheusArgs) -> Result<Prometheus, Failure> {
    let Some(url) = &args.prometheus else {
        let diagnostic = Diagnostic::about("usage", "command line", "no Prometheus is named");
        return Err(Failure::one(
            diagnostic.help("give its address, such as `--prometheus http://localhost:9090`"),
        ));
    };
    let bearer = match &args.prometheus_token_file {
        Some(path) => files::read_text(path)?.lines().next().map(|line| line.trim().to_owned()),
        None => std::env::var("PLIMSOLL_PROMETHEUS_TOKEN").ok(),
    };
    let access = Access {
        bearer: bearer.filter(|token| !token.is_empty()),
        timeout: Duration::from_secs_f64(args.query_timeout.get().clamp(0.01, 3600.0)),
        most_bytes: Access::MOST_BYTES,
    };
    Prometheus::new(url, access).map_err(|error| unanswered(&error))
}

/// Why a Prometheus did not answer.
pub(super) fn unanswered(error: &LiveError) -> Failure {
    let diagnostic = Diagnostic::about("no-prometheus", "--prometheus", error.to_string());
    Failure::one(diagnostic.help(error.help()))
}

/// A plan as it was written.
pub(super) fn plan_file(path: &Path) -> Result<PlanFile, Failure> {
    let name = path.display().to_string();
    let text = files::read_text(path)?;
    let wrong = |message: String, help: &str| {
        Failure::one(Diagnostic::about("not-a-plan", name.clone(), message).help(help))
    };
    let again = "write one with `plimsoll plan FILE --out plan.json`";
    let document: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("is not JSON: {error}"), again))?;
    match document["schema"].as_str() {
        Some("plimsoll/plan/v1" | "plimsoll/plan/v2") => {}
        Some(other) => return Err(wrong(format!("is a `{other}`, not a plan"), again)),
        None => return Err(wrong("is no document of ours".to_owned(), again)),
    }
    if document.get("lines").is_none() {
        let message =
            "has no `lines`: it was made before plans said what a replica does at its load line";
        return Err(wrong(
            message.to_owned(),
            "make it again with `plimsoll plan FILE --out plan.json`",
        ));
    }
    serde_json::from_value(document).map_err(|error| wrong(format!("is not whole: {error}"), again))
}

/// What a gateway is called.
pub(super) fn gateway(arg: Option<GatewayArg>) -> Option<Reporter> {
    arg.map(|arg| match arg {
        GatewayArg::Dynamo => Reporter::Dynamo,
        GatewayArg::LlmD => Reporter::LlmD,
    })
}

/// An engine such as `vllm@0.24`.
pub(super) fn engine(text: &str) -> Option<(Reporter, Option<Version>)> {
    let (name, version) = text.split_once('@').map_or((text, None), |(n, v)| (n, Some(v)));
    Some((Reporter::named(name)?, version.and_then(|version| version.parse().ok())))
}

/// Asks about this moment.
pub(super) struct Now<'a>(pub(super) &'a Prometheus);

impl Answering for Now<'_> {
    fn ask(&self, query: &str) -> Result<Vec<(Labels, Option<f64>)>, Unanswered> {
        match self.0.instant(query, None) {
            Ok(Answer::Vector(series)) => {
                Ok(series.into_iter().map(|(labels, sample)| (labels, sample.value)).collect())
            }
            Ok(Answer::Scalar(sample)) => Ok(vec![(BTreeMap::new(), sample.value)]),
            Ok(Answer::Matrix(_) | Answer::Text(_)) => Ok(Vec::new()),
            Err(error) => {
                // Nobody is there, or nobody answers in time: the next question would wait as long.
                let gone = matches!(
                    error,
                    LiveError::NoHost { .. }
                        | LiveError::Refused { .. }
                        | LiveError::TimedOut { .. }
                );
                Err(Unanswered { why: error.to_string(), gone })
            }
        }
    }
}

/// What is told of where pools report.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) gateway: Option<Reporter>,
    pub(super) served: Vec<(String, String)>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) window_s: f64,
}

impl Told {
    /// Names of pools are those of the plan.
    pub(super) fn check(&self, plan: &PlanFile) -> Result<(), Failure> {
        let known = |pool: &str| plan.pools.iter().any(|own| own.name == pool);
        let served = self.served.iter().map(|(pool, _)| ("--served", pool.as_str()));
        let matched = self.labels.iter().filter_map(|(label, _)| label.split_once(':'));
        let matched = matched.map(|(pool, _)| ("--match", pool));
        let Some((option, pool)) = served.chain(matched).find(|(_, pool)| !known(pool)) else {
            return Ok(());
        };
        let pools: Vec<&str> = plan.pools.iter().map(|own| own.name.as_str()).collect();
        let message = format!("`{option} {pool}…` names no pool of the plan");
        let diagnostic = Diagnostic::about("usage", "command line", message);
        Err(Failure::one(diagnostic.help(format!("its pools are {}", pools.join(", ")))))
    }
}

impl Told {
    /// Another pool whose series are the same as this one's, as far as is told: what is read of either would be counted as both.
    fn alike<'a>(&self, plan: &'a PlanFile, pool: &FilePool) -> Option<&'a FilePool> {
        let key = |own: &FilePool| {
            let served = self.served.iter().find(|(name, _)| *name == own.name);
            let model = served.map_or(&own.model, |(_, model)| model).clone();
            (
                engine(&own.engine).map(|(reporter, _)| reporter),
                model,
                labels_of(&self.labels, &own.name),
            )
        };
        plan.pools.iter().find(|other| other.name != pool.name && key(other) == key(pool))
    }
}

/// Where a pool of a plan reports, and what was taken for granted to find it. A model that goes by a name that nobody reports is an error that lists those who do.
pub(super) fn source(
    plan: &PlanFile,
    pool: &FilePool,
    prometheus: &dyn Answering,
    told: &Told,
) -> Result<(PoolSource, Option<String>), String> {
    let Some((reporter, _)) = engine(&pool.engine) else {
        return Err(format!(
            "pool `{}` runs `{}`, whose metrics are not known",
            pool.name, pool.engine
        ));
    };
    if let Some(other) = told.alike(plan, pool) {
        return Err(format!(
            "pools `{}` and `{}` run the same engine and model, so what they report cannot be told apart: say whose series are whose, such as `--match {}:namespace=NAME`",
            pool.name, other.name, pool.name
        ));
    }
    let labels = labels_of(&told.labels, &pool.name);
    let own = told.served.iter().find(|(own, _)| *own == pool.name).map(|(_, model)| model.clone());
    let (model, note) = match own {
        Some(model) => (Some(model), None),
        None => {
            let known = models(prometheus, reporter, &labels)?;
            let model = served_as(&pool.model, &known, plan.pools.len() == 1);
            if model.is_none() && !known.is_empty() {
                return Err(format!(
                    "`{}` is served under another name; engines report {}: say which with `--served POOL=NAME`",
                    pool.model,
                    known.join(", ")
                ));
            }
            let note = model.as_ref().filter(|model| **model != pool.model).map(|model| {
                format!(
                    "pool `{}` is taken to serve `{}` as `{model}`; `--served {}=NAME` says otherwise",
                    pool.name, pool.model, pool.name
                )
            });
            (model, note)
        }
    };
    let source = PoolSource {
        pool: pool.name.clone(),
        engine: reporter,
        gateway: told.gateway,
        model,
        labels,
        window: format!("{}s", told.window_s.round().max(1.0)),
    };
    Ok((source, note))
}

/// The models that engines report.
fn models(
    prometheus: &dyn Answering,
    reporter: Reporter,
    labels: &[(String, String)],
) -> Result<Vec<String>, String> {
    let Some(label) = reporter.model_label() else { return Ok(Vec::new()) };
    let selector = Selector { reporter, version: None, model: None, labels: labels.to_vec() };
    let Some(metric) = selector.metric(Signal::Running) else { return Ok(Vec::new()) };
    let found = prometheus.ask(&format!("group by ({label}) ({})", selector.of(metric, "")));
    let found = found.map_err(|error| error.why)?;
    let mut models: Vec<String> =
        found.into_iter().filter_map(|(labels, _)| labels.get(label).cloned()).collect();
    models.sort();
    if models.is_empty() {
        return Err(format!("nobody reports `{}`: is {reporter} scraped?", metric.name));
    }
    Ok(models)
}
