//! `doctor`: the queries of manifests and of a plan, tried on a Prometheus.

use plimsoll_emit::doctor::{Asked, Diagnosis, Verdict, examine};
use plimsoll_emit::lint::{ManifestQuery, MetricType, manifest_queries};
use plimsoll_emit::yaml::At;
use plimsoll_live::{LiveError, Prometheus, Selector, pool_queries, quiet_is_zero};
use plimsoll_scenario::Diagnostic;
use plimsoll_study::PlanFile;
use serde_json::json;

use super::either;
use super::live::{Now, Told, engine, gateway, plan_file, prometheus, source, unanswered};
use super::watch::now_s;
use crate::args::{DoctorArgs, Global};
use crate::failure::Failure;
use crate::files;

/// What was found, and whether nothing is broken.
pub(super) fn answer(args: &DoctorArgs, global: &Global) -> Result<(String, bool), Failure> {
    if args.manifests.is_empty() && args.plan.is_none() {
        let diagnostic = Diagnostic::about("usage", "command line", "there is nothing to examine");
        return Err(Failure::one(
            diagnostic.help("give manifests, or a plan with `--plan plan.json`"),
        ));
    }
    let mut asked = Vec::new();
    for path in &args.manifests {
        let name = path.display().to_string();
        let text = files::read_text(path)?;
        let found = manifest_queries(&text).map_err(|error| {
            let message = format!("line {}: {error}", error.line);
            Failure::one(
                Diagnostic::about("bad-yaml", name.clone(), message)
                    .help("`plimsoll lint` says more"),
            )
        })?;
        asked.extend(found.into_iter().map(|query| Asked {
            origin: format!("{name}:{}", query.at.line),
            query,
            replicas: None,
        }));
    }
    let prometheus = prometheus(&args.prometheus)?;
    let version = match prometheus.build_info() {
        Ok(version) => version,
        // What only speaks like a Prometheus may not say which it is.
        Err(LiveError::Status { status: 404, .. }) => "of unknown version".to_owned(),
        Err(error) => return Err(unanswered(&error)),
    };
    if let Some(path) = &args.plan {
        asked.extend(of_plan(&plan_file(path)?, &prometheus, args)?);
    }
    if asked.is_empty() {
        let files: Vec<String> =
            args.manifests.iter().map(|path| path.display().to_string()).collect();
        let diagnostic = Diagnostic::about(
            "no-queries",
            files.join(", "),
            "has no query that a Prometheus answers",
        );
        return Err(Failure::one(
            diagnostic.help(
                "ScaledObjects, HPAs with external metrics, rules and InferenceServices have",
            ),
        ));
    }
    let now = now_s();
    let found: Vec<Diagnosis> =
        asked.iter().map(|own| examine(&prometheus, own, now, args.since.get())).collect();
    let healthy = found.iter().all(|own| own.verdict != Verdict::Error);
    let name = prometheus.name().to_owned();
    Ok((
        either(
            global,
            || json!({ "schema": "plimsoll/doctor/v1", "prometheus": name, "prometheus_version": version, "healthy": healthy, "queries": found }),
            || text(&found, &name, &version),
        ),
        healthy,
    ))
}

/// The signals that a plan scales on, as its manifests would ask for them.
fn of_plan(
    plan: &PlanFile,
    prometheus: &Prometheus,
    args: &DoctorArgs,
) -> Result<Vec<Asked>, Failure> {
    let told = Told {
        gateway: gateway(args.gateway),
        served: args.served.clone(),
        labels: args.prometheus.matches.clone(),
        window_s: 120.0,
    };
    told.check(plan)?;
    let mut all = Vec::new();
    for pool in &plan.pools {
        let Some(policy) = plan.policy(&pool.name) else { continue };
        let found = source(plan, pool, &Now(prometheus), &told);
        let (own, _) = found.map_err(|error| {
            Failure::one(Diagnostic::about("not-seen", "--plan", error).help("`--served POOL=NAME` says under which name a model is served, `--match LABEL=VALUE` where"))
        })?;
        let version = engine(&pool.engine).and_then(|(_, version)| version);
        let selector = |reporter| Selector { version, ..own.selector(reporter) };
        let mut queries =
            pool_queries(&selector(own.engine), own.gateway.map(selector).as_ref(), "2m");
        queries.ttft_p90 = queries.ttft_p90.as_deref().map(quiet_is_zero);
        let replicas = queries
            .replicas
            .as_ref()
            .and_then(|query| prometheus.instant(query, None).ok()?.single());
        for threshold in &policy.thresholds {
            let query = match threshold.signal.as_str() {
                "fresh_tokens" => &queries.fresh_tokens,
                "in_flight" => &queries.in_flight,
                "queue_depth" => &queries.waiting,
                "ttft_p90" => &queries.ttft_p90,
                "kv" => &queries.kv_share,
                _ => &None,
            };
            let Some(query) = query else { continue };
            let average = threshold.kind == "average_value";
            all.push(Asked {
                origin: format!("plan {}", plan.id),
                query: ManifestQuery {
                    kind: "plan".to_owned(),
                    name: own.pool.clone(),
                    trigger: Some(threshold.signal.clone()),
                    query: query.clone(),
                    target: threshold.value,
                    metric_type: Some(if average {
                        MetricType::AverageValue
                    } else {
                        MetricType::Value
                    }),
                    ignore_null: Some(false),
                    min_replicas: Some(f64::from(policy.min_replicas)),
                    max_replicas: Some(f64::from(policy.max_replicas)),
                    alert: None,
                    at: At::default(),
                },
                replicas,
            });
        }
    }
    Ok(all)
}

fn text(found: &[Diagnosis], name: &str, version: &str) -> String {
    let mut out = format!("{name} · Prometheus {version}\n");
    for own in found {
        let mark = match own.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "WARNING",
            Verdict::Error => "ERROR",
        };
        out.push_str(&format!("\n{mark}  {}  ({})\n  {}\n", own.name, own.origin, own.query));
        let number = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{}", digits(value)))
        };
        let series = own.series.map_or_else(|| "-".to_owned(), |series| series.to_string());
        out.push_str(&format!("  series {series} · value {}", number(own.value)));
        if own.target.is_some() {
            out.push_str(&format!(" · target {}", number(own.target)));
        }
        if let Some(replicas) = own.implied_replicas {
            let noun = if replicas == 1.0 { "replica" } else { "replicas" };
            out.push_str(&format!(" · asks for {replicas} {noun} now"));
        }
        out.push('\n');
        for says in &own.says {
            out.push_str(&format!("  - {says}\n"));
        }
    }
    let count = |verdict| found.iter().filter(|own| own.verdict == verdict).count();
    out.push_str(&format!(
        "\n{} queries: {} broken, {} to look at, {} fine\n",
        found.len(),
        count(Verdict::Error),
        count(Verdict::Warning),
        count(Verdict::Ok)
    ));
    out
}

/// Four digits.
fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
