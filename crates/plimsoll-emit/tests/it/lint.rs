//! Published mistakes, written anew, each with the rule that catches it.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_emit::lint::{
    Edit, Lint, LintFacts, LintFile, LintInput, LintSeverity, MetricType, fixed, lint,
    manifest_queries, rules, sarif,
};
use plimsoll_emit::yaml::documents;
use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::PlanFile;
use proptest::prelude::*;
use serde_json::json;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lint")
}

fn text(name: &str) -> String {
    fs::read_to_string(fixtures().join(format!("{name}.yaml"))).expect(name)
}

const FACTS: LintFacts = LintFacts {
    engine: None,
    startup_p90_s: Some(176.0),
    startup_p99_s: Some(240.0),
    generation_p99_s: Some(90.0),
};

fn run(name: &str, text: &str) -> Lint {
    let files = [LintFile { name: format!("{name}.yaml"), text: text.to_owned() }];
    lint(&LintInput { files: &files, plan: None, facts: FACTS })
}

/// The rules that say something, each as often as it does.
fn caught(lint: &Lint) -> Vec<&'static str> {
    lint.findings.iter().map(|own| own.rule).collect()
}

/// Fixtures and the rules that catch them, in order of their lines.
const MISTAKES: &[(&str, &[&str])] = &[
    ("p95-average", &["L1"]),
    ("several-series", &["L2"]),
    ("kserve-series", &["L8", "L2"]),
    ("kserve-target-type", &["L8", "L14"]),
    ("idle-one", &["L5"]),
    ("above-bound", &["L8", "L6", "L13"]),
    ("raw-queue", &["L8", "L7"]),
    ("old-metric", &["L9", "L13"]),
    ("doubling", &["L8"]),
    ("metric-name", &["L10"]),
    ("cron-zero", &["L11"]),
    ("cron-same", &["L11"]),
    ("short-grace", &["L13"]),
    ("cooldown", &["L4"]),
    ("startup-probe", &["L13", "L8"]),
    ("null-is-zero", &["L3"]),
    ("two-triggers", &["L12", "L20"]),
    ("requests-and-duty", &["L22", "L8", "L15", "L16", "L21", "L25"]),
    ("alerts", &["L18", "L9", "L18", "L23"]),
    ("ratio-of-nothing", &["L21", "L19"]),
    ("clean", &[]),
];

#[test]
fn published_mistakes_are_caught() {
    let found: Vec<(&str, Vec<&str>)> =
        MISTAKES.iter().map(|(name, _)| (*name, caught(&run(name, &text(name))))).collect();
    let expect: Vec<(&str, Vec<&str>)> =
        MISTAKES.iter().map(|(name, rules)| (*name, rules.to_vec())).collect();
    assert_eq!(found, expect);
}

#[test]
fn nothing_is_said_of_what_is_right() {
    let found = run("clean", &text("clean"));
    assert_eq!((caught(&found), found.documents), (vec![], 3));
    assert_eq!(found.passed_over, []);
}

#[test]
fn every_fixture_is_checked() {
    let all = fs::read_dir(fixtures()).expect("fixtures").count();
    assert_eq!(all, MISTAKES.len());
    let numbers: Vec<String> = (0..rules().len()).map(|n| format!("L{n}")).collect();
    assert_eq!(rules().iter().map(|rule| rule.number).collect::<Vec<_>>(), numbers);
}

fn told(name: &str) -> String {
    let found = run(name, &text(name));
    let lines = found.findings.iter().map(|own| {
        format!(
            "{}:{}:{} {} {}\n  {}",
            own.file,
            own.line,
            own.column,
            own.rule,
            own.message,
            own.fix.as_deref().unwrap_or("-")
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn messages_have_their_numbers() {
    insta::assert_snapshot!(told("p95-average"), @r#"
    p95-average.yaml:22:9 L1 this is a latency, and AverageValue divides it by the replicas: 10 replicas at 0.45 ask for ceil(0.45 / 0.5) = 1
      metricType: Value
    "#);
    insta::assert_snapshot!(told("above-bound"), @r#"
    above-bound.yaml:6:3 L8 replicas are added every 15 s, and nine starts in ten take up to 176 s: the default doubles the replicas each time
      behavior:
      scaleUp:
        policies: [{type: Pods, value: 2, periodSeconds: 176}]
    above-bound.yaml:16:18 L6 a replica runs 48 sequences at most, so 60 is never exceeded
      "38"
    above-bound.yaml:25:7 L13 a pod has 30 s (the default) to end, and 99 generations in 100 take up to 90 s
      terminationGracePeriodSeconds: 100
    "#);
    insta::assert_snapshot!(told("doubling"), @r#"
    doubling.yaml:7:46 L8 replicas are added every 0 s, and nine starts in ten take up to 176 s: 2, 4, 8, 16 replicas while the first ones load
      autoscaling.aibrix.ai/scale-up-cooldown-window: "176s"
    "#);
    insta::assert_snapshot!(told("startup-probe"), @r"
    startup-probe.yaml:8:7 L13 a pod has 30 s (the default) to end, and 99 generations in 100 take up to 90 s
      terminationGracePeriodSeconds: 100
    startup-probe.yaml:11:23 L8 `startupProbe` kills a pod after 160 s, and 99 starts in 100 take up to 240 s
      startupProbe:
      periodSeconds: 5
      failureThreshold: 58
    ");
    insta::assert_snapshot!(told("alerts"), @r#"
    alerts.yaml:9:13 L18 `vllm:time_to_first_token_seconds` has no bucket `le="2.0"`: the next ones are 1 s and 2.5 s
      le="2.5"
    alerts.yaml:11:13 L9 `vllm:time_per_output_token_seconds_bucket` was removed from vllm in 0.15.0
      vllm:inter_token_latency_seconds_bucket
    alerts.yaml:11:13 L18 0.12 s lies between the buckets of 0.1 s and 0.15 s of `vllm:time_per_output_token_seconds`: the quantile is a guess there
      0.15
    alerts.yaml:15:13 L23 this PromQL cannot be read: `(` is not closed, at character 4
      -
    "#);
}

/// Rows of a trigger and what is said of it, on a manifest that is otherwise right.
fn said(query: &str, metric_type: &str, threshold: &str, facts: LintFacts) -> Vec<&'static str> {
    let text = format!(
        "kind: ScaledObject\nspec:\n  minReplicaCount: 2\n  fallback: {{}}\n  advanced: {{horizontalPodAutoscalerConfig: {{behavior: {{scaleUp: {{policies: [{{type: Pods, value: 2, periodSeconds: 1800}}]}}}}}}}}\n  triggers:\n  - type: prometheus\n    metricType: {metric_type}\n    metadata:\n      query: |\n        {query}\n      threshold: '{threshold}'\n      ignoreNullValues: 'false'\n"
    );
    let files = [LintFile { name: "a.yaml".to_owned(), text }];
    caught(&lint(&LintInput { files: &files, plan: None, facts }))
}

#[test]
fn triggers_one_by_one() {
    let vllm = |version: &str| LintFacts {
        engine: Some((Reporter::Vllm, version.parse().expect("a version"))),
        ..FACTS
    };
    let average = |query: &str, threshold: &str| said(query, "AverageValue", threshold, FACTS);
    let value = |query: &str, threshold: &str| said(query, "Value", threshold, FACTS);
    assert_eq!(average("sum(vllm:kv_cache_usage_perc)", "0.8"), [""; 0]);
    assert_eq!(average("max(vllm:kv_cache_usage_perc)", "0.8"), ["L1"]);
    assert_eq!(value("max(vllm:kv_cache_usage_perc)", "0.8"), [""; 0]);
    // A share that is written as a percentage, and one that is within what is tolerated.
    assert_eq!(value("max(vllm:kv_cache_usage_perc)", "80"), ["L6"]);
    assert_eq!(value("max(vllm:kv_cache_usage_perc)", "0.95"), ["L6"]);
    assert_eq!(value("100 * max(vllm:kv_cache_usage_perc)", "80"), [""; 0]);
    assert_eq!(average("avg(vllm:num_requests_waiting)", "12"), ["L1"]);
    assert_eq!(average("sum(rate(vllm:request_success_total[1m]))", "12"), ["L15"]);
    assert_eq!(value("avg(DCGM_FI_DEV_GPU_UTIL)", "80"), ["L16"]);
    assert_eq!(average("sum(rate(vllm:prompt_tokens[1m]))", "5000"), ["L9"]);
    assert_eq!(average("sum(vllm:num_request_waiting)", "12"), ["L9"]);
    assert_eq!(average("sum(vllm:num_requests_waiting", "12"), ["L23"]);
    assert_eq!(average("sum by (pod) (vllm:num_requests_waiting)", "12"), ["L2"]);
    assert_eq!(average("scalar(sum(vllm:num_requests_running))", "12"), ["L2"]);
    assert_eq!(average("vector(12)", "12"), [""; 0]);
    let fresh = r#"sum(rate(vllm:prompt_tokens_by_source_total{source="local_compute"}[2m]))"#;
    assert_eq!(said(fresh, "AverageValue", "5200", vllm("0.15.2")), ["L9"]);
    assert_eq!(said(fresh, "AverageValue", "5200", vllm("0.16")), [""; 0]);
    let old = "sum(vllm:gpu_cache_usage_perc)";
    assert_eq!(said(old, "AverageValue", "0.5", vllm("0.11")), [""; 0]);
    assert_eq!(said(old, "AverageValue", "0.5", vllm("0.12")), ["L9"]);
    let quantile =
        "histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[2m])))";
    assert_eq!(value(quantile, "2.5"), [""; 0]);
    assert_eq!(value(quantile, "2"), ["L18"]);
}

/// A plan of one pool: 23 replicas at most, 14 at least, 3.8 calls in flight for each.
fn plan() -> PlanFile {
    let limit = |value: f64| json!({"value": value, "unit": "of them", "why": "so"});
    let up = json!({"replicas": 1, "period_s": 60.0, "stabilisation_s": 0.0, "why": "so"});
    let level = |signal: &str, value: f64| json!({"signal": signal, "role": "demand", "kind": "average_value", "value": value, "unit": "calls/replica", "why": "so"});
    let plan = json!({
        "schema": "plimsoll/plan/v1", "id": "a", "name": "a", "as_of": "2026-11-16",
        "attainment": 0.99, "feasible": true, "fleet": null,
        "pools": [{
            "name": "edits", "model": "qwen3-8b", "accelerator": "h100", "engine": "vllm@0.24",
            "weights": "fp8", "devices": 23, "binds": null,
            "parallelism": {"tensor": 1, "pipeline": 1, "expert": 1, "data": 1, "context": 1, "devices": 1},
            "replicas": {"now": 8, "steady": 9, "failure": 8, "rollout": 1, "canary": 0, "maintenance": 0, "warm": 1, "forecast": 4, "cold_cache": 0, "total": 23},
        }],
        "lines": [{
            "pool": "edits", "calls_per_s": 9.0, "fresh_tokens_per_s": 5200.0,
            "output_tokens_per_s": 900.0, "in_flight": 4.2, "kv_share_max": 0.7,
            "kv_tokens": 400_000, "max_num_seqs": 64, "ttft_s": 0.5, "tpot_s": null,
            "e2e_s": null, "startup_p90_s": 1250.0, "classes": [],
        }],
        "limits": [{
            "pool": "edits", "max_num_seqs": limit(15.0), "max_num_batched_tokens": limit(8192.0),
            "max_model_len": limit(12288.0), "queue_tokens": limit(33288.0),
            "queue_requests": limit(19.0), "queue_age": limit(0.4), "kv_ceiling": limit(0.9),
            "request_ttl": limit(1.0), "no_endpoint_ttl": limit(1.0), "deadline": limit(12.0),
            "drain": limit(9.0), "tenants": [],
            "classes": [{"class": "inline", "tenant": null, "feature": null, "rpm": limit(600.0), "tpm": limit(90_000.0), "concurrency": limit(80.0)}],
        }],
        "scaling": {"advised": true, "why": "so", "policies": [{
            "pool": "edits", "leading": null, "demand_share": 0.9, "min_replicas": 14,
            "max_replicas": 23, "floors": [], "floors_lead_s": 1250.0, "up": up, "down": up,
            "tolerance_share": 0.04, "sync_period_s": 15.0,
            "thresholds": [level("in_flight", 3.8), level("queue_depth", 9.5)],
        }]},
        "forecast": {"quantile": 0.95, "start": "2026-11-16", "step_s": 3600, "classes": []},
    });
    serde_json::from_value(plan).expect("a plan")
}

#[test]
fn a_plan_is_held_against_manifests() {
    let scaled = "kind: ScaledObject\nmetadata: {name: x, annotations: {plimsoll.dev/pool: edits}}\nspec:\n  minReplicaCount: 2\n  maxReplicaCount: 8\n  fallback: {}\n  triggers:\n  - type: prometheus\n    metadata:\n      query: sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)\n      threshold: '20'\n      ignoreNullValues: 'false'\n";
    let served = "kind: Deployment\nmetadata: {name: y}\nspec:\n  template:\n    spec:\n      containers:\n      - image: vllm/vllm-openai:latest\n        command: [sh, -c, 'vllm serve Qwen/Qwen3-8B --max_num_seqs=256']\n";
    let gate = "model_list:\n- model_name: qwen3-8b\n  litellm_params: {tpm: 50000, rpm: 100, max_parallel_requests: 80}\n- model_name: qwen3-8b\n  litellm_params: {tpm: 50000}\n";
    let quota = "kind: QuotaPolicy\nspec:\n  perModelQuotas:\n  - modelName: edits\n    quota: {defaultBucket: {limit: 10000000, duration: 1h}}\n";
    let files = [scaled, served, gate, quota].map(|text| LintFile {
        name: text.lines().next().expect("a line").to_owned(),
        text: text.to_owned(),
    });
    let plan = plan();
    let facts = LintFacts::default();
    let found = lint(&LintInput { files: &files, plan: Some(&plan), facts });
    let lines =
        found.findings.iter().map(|own| format!("{} {} {}", own.line, own.rule, own.message));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    8 L17 256 sequences at once, and the plan's limit for pool `edits` is 15
    5 L17 `edits` may ask for 166667 tokens/min, and the plan's limit for pool `edits` is 90000
    4 L8 replicas are added every 15 s, and nine starts in ten take up to 1250 s: the default doubles the replicas each time
    4 L24 2 replicas at least, and the plan's floor for pool `edits` is 14
    5 L24 8 replicas at most, and the plan needs 23 of pool `edits`
    11 L17 20 is above the plan's 3.8 calls/replica for pool `edits`
    3 L17 `tpm` of `qwen3-8b` is 100000 tokens/min, and the plan's limit for pool `edits` is 90000
    ");
}

/// What is fixed parses, and has none of the findings that were fixed.
fn fix(text: &str) -> String {
    let before = run("a", text);
    let edits: Vec<&Edit> = before.findings.iter().filter_map(|own| own.edit.as_ref()).collect();
    let after = fixed(text, &edits);
    documents(&after).expect("still YAML");
    let left = run("a", &after);
    assert!(left.findings.iter().all(|own| own.edit.is_none()), "{after}\n{:#?}", left.findings);
    after
}

fn changed(name: &str) -> Vec<String> {
    let before = text(name);
    let after = fix(&before);
    let new = after.lines().filter(|line| !before.contains(*line)).map(str::to_owned);
    let old = before.lines().filter(|line| !after.contains(*line)).map(|line| format!("-{line}"));
    old.chain(new).collect()
}

#[test]
fn safe_fixes() {
    assert_eq!(changed("p95-average"), ["    metricType: Value"]);
    assert_eq!(
        changed("several-series"),
        [
            "-      query: vllm:num_requests_waiting{model_name=\"quay\"}  # no sum",
            "      query: sum(vllm:num_requests_waiting{model_name=\"quay\"})  # no sum"
        ]
    );
    assert_eq!(changed("idle-one"), ["-        idleReplicaCount: 1"]);
    assert_eq!(changed("cooldown"), ["-  cooldownPeriod: 360"]);
    assert_eq!(changed("metric-name"), ["-      metricName: mast_in_flight"]);
    assert_eq!(changed("null-is-zero"), ["      ignoreNullValues: \"false\""]);
    assert_eq!(
        changed("old-metric"),
        ["-    targetMetric: gpu_cache_usage_perc", "    targetMetric: kv_cache_usage_perc"]
    );
}

#[test]
fn what_is_shared_or_in_braces_is_left_alone() {
    let flow = "{kind: ScaledObject, spec: {minReplicaCount: 1, cooldownPeriod: 3, fallback: {}, triggers: [{type: prometheus, metadata: {query: 'sum(vllm:gpu_cache_usage_perc)', threshold: 1}}]}}";
    let after = fix(flow);
    assert_eq!(after, flow.replace("gpu_cache", "kv_cache"));
    let shared =
        "kind: ScaledObject\nx-a: &a\n  cooldownPeriod: 3\n  minReplicaCount: 1\nspec: *a\n";
    let found = run("a", shared);
    assert_eq!(caught(&found), ["L4"]);
    assert_eq!((found.findings[0].line, &found.findings[0].edit), (5, &None));
}

#[test]
fn a_cooldown_on_the_way_to_none_is_right() {
    let text = text("cooldown").replace("  cooldown", "  idleReplicaCount: 0\n  cooldown");
    assert_eq!(caught(&run("a", &text)), [""; 0]);
}

#[test]
fn windows_line_ends_and_quotes() {
    let text = "kind: ScaledObject\r\nspec:\r\n  fallback: {}\r\n  triggers:\r\n  - metadata:\r\n      query: 'max(vllm:gpu_cache_usage_perc)' # vllm:gpu_cache_usage_perc\r\n      ignoreNullValues: \"true\" # why\r\n      threshold: 0.8\r\n    metricType: 'AverageValue'\r\n    type: prometheus\r\n";
    let after = fix(text);
    assert!(after.contains("query: 'max(vllm:kv_cache_usage_perc)' # vllm:gpu"), "{after}");
    assert!(after.contains("ignoreNullValues: \"false\" # why\r\n"), "{after}");
    assert!(after.contains("metricType: 'Value'\r\n"), "{after}");
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_goes_on() {
    let file = |name: &str, text: &str| LintFile { name: name.to_owned(), text: text.to_owned() };
    let files = [
        file("a.yaml", "spec: [1,\nb: 2\n"),
        file("b.yaml", ""),
        file("c.yaml", "kind: Widget\nspec: {}\n"),
        file("d.yaml", "kind: ScaledObject\nspec:\n  max: {{ .Values.max }}\n"),
        file("e.yaml", &text("cooldown")),
    ];
    let found = lint(&LintInput { files: &files, plan: None, facts: FACTS });
    assert_eq!(caught(&found), ["L0", "L4"]);
    assert_eq!(found.count(LintSeverity::Error), 1);
    let passed: Vec<(&str, &str)> =
        found.passed_over.iter().map(|own| (own.file.as_str(), own.kind.as_str())).collect();
    assert_eq!(passed, [("d.yaml", "template"), ("c.yaml", "Widget")]);
}

#[test]
fn queries_are_read_for_others() {
    let all = manifest_queries(&text("p95-average")).expect("YAML");
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].target, all[0].metric_type), (Some(0.5), Some(MetricType::AverageValue)));
    assert_eq!((all[0].min_replicas, all[0].max_replicas), (Some(1.0), Some(10.0)));
    assert!(all[0].query.starts_with("histogram_quantile(0.95,"));
    let all = manifest_queries(&text("alerts")).expect("YAML");
    assert_eq!(all.len(), 3);
    assert_eq!(all[1].alert, Some(("SlowTokens".to_owned(), Some("5m".to_owned()))));
    assert_eq!(all[0].trigger.as_deref(), Some("crow:ttft_good:ratio"));
}

#[test]
fn sarif_has_rules_places_and_fixes() {
    let found = run("p95-average", &text("p95-average"));
    let sarif = sarif(&found, "0.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(run["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(rules().len()));
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "L1");
    assert_eq!(result["level"], "error");
    let index = usize::try_from(result["ruleIndex"].as_u64().expect("a number")).expect("small");
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "L1");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "p95-average.yaml");
    let change = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], "metricType: Value\n    ");
}

/// Lines of a manifest that has most of what is edited, any of which may be missing.
const LINES: &[&str] = &[
    "kind: ScaledObject",
    "x: &x",
    "  cooldownPeriod: 1",
    "spec:",
    "  <<: *x",
    "  cooldownPeriod: 3 # slow",
    "  minReplicaCount: 1",
    "  idleReplicaCount: \"2\"",
    "  fallback: {replicas: 1,",
    "    failureThreshold: 3}",
    "  triggers:",
    "  - type: prometheus",
    "    metricType: AverageValue",
    "    metadata:",
    "      metricName: 'it''s'",
    "      query: |",
    "        vllm:gpu_cache_usage_perc{ü='ö'}",
    "      threshold: '0.8'",
    "  - metadata:",
    "      ? query",
    "      : vllm:num_requests_waiting",
    "    type: prometheus",
    "  - {type: prometheus, metadata: {query: vllm:num_requests_running}}",
    "  - type: prometheus",
    "    metadata: &m",
    "      query: \"avg(vllm:kv_cache_usage_perc{a='b'})\" # vllm:kv_cache_usage_perc",
    "  - {type: prometheus, metadata: *m}",
    "---",
    "kind: PodAutoscaler",
    "spec: {metricsSources: [{targetMetric: gpu_cache_usage_perc}]}",
];

proptest! {
    #[test]
    fn any_text_is_survived(text in ".{0,200}", query in "[a-z(){}\\[\\]\"'=~,.:0-9 *+/-]{0,60}") {
        run("a", &text);
        run("a", &format!("kind: ScaledObject\nspec:\n  triggers:\n  - type: prometheus\n    metadata:\n      query: |\n        {query}\n      threshold: 1\n"));
    }

    #[test]
    fn what_is_fixed_is_still_yaml(
        lines in prop::sample::subsequence(LINES.to_vec(), 3 * LINES.len() / 4..=LINES.len()),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let text = lines.join(end) + end;
        let found = run("a", &text);
        let edits: Vec<&Edit> = found.findings.iter().filter_map(|own| own.edit.as_ref()).collect();
        let after = fixed(&text, &edits);
        if documents(&text).is_ok() {
            prop_assert!(documents(&after).is_ok(), "{text}\n=>\n{after}");
            let left = run("a", &after);
            prop_assert!(left.findings.iter().all(|own| own.edit.is_none()), "{text}\n=>\n{after}");
        }
    }
}
