//! What a Prometheus is asked: PromQL, and rules that its own tool takes.

use std::process::Command;

use plimsoll_emit::target::{EmitSettings, Target};
use plimsoll_fleet::metrics::Reporter;
use serde_json::Value;

use super::{documents, emitted, file, plan, settings};

/// All texts under some names, wherever they are.
fn texts_under<'a>(document: &'a Value, names: &[&str], into: &mut Vec<&'a str>) {
    match document {
        Value::Object(parts) => {
            for (name, part) in parts {
                match part {
                    Value::String(text) if names.contains(&name.as_str()) => into.push(text),
                    part => texts_under(part, names, into),
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| texts_under(part, names, into)),
        _ => {}
    }
}

#[test]
fn every_question_is_promql() {
    let mut asked = 0;
    for engine in
        ["vllm@0.9", "vllm@0.11", "vllm@0.29", "sglang@0.5", "tensorrt-llm@1.3", "tgi@3.3"]
    {
        for gateway in [None, Some(Reporter::Dynamo), Some(Reporter::LlmD)] {
            let mut plan = plan();
            plan.pools[0].engine = engine.to_owned();
            plan.pools[0].model = "it's \"odd\" \\ <<model>>".to_owned();
            let settings = EmitSettings { gateway, ..settings() };
            for target in [Target::Keda, Target::Hpa, Target::Prometheus, Target::Grafana] {
                for file in emitted(target, &plan, &settings).files {
                    let mut all = documents(&file.name, &file.text);
                    if let Some(inner) = all[0]["data"]["config.yaml"].as_str() {
                        all = documents("inner.yaml", inner);
                    }
                    let mut queries = Vec::new();
                    texts_under(
                        &all[0],
                        &["query", "expr", "metricsQuery", "seriesQuery"],
                        &mut queries,
                    );
                    for query in queries.into_iter().filter(|query| *query != "prometheus") {
                        asked += 1;
                        if let Err(error) = plimsoll_fleet::promql::read(query) {
                            panic!("{}, {engine}: {error}\n{query}", file.name);
                        }
                    }
                }
            }
        }
    }
    assert!(asked > 500, "{asked}");
}

/// Prometheus' own tool finds nothing wrong with the rules, whatever the names.
#[test]
fn promtool_takes_the_rules() {
    let found = Command::new("promtool").arg("--version").output();
    if found.is_err() {
        assert!(std::env::var_os("CI").is_none(), "promtool is not installed, and CI must have it");
        println!("SKIPPED: promtool is not installed, so the rules were not checked with it");
        return;
    }
    let mut odd = plan();
    odd.pools[0].name = "it's \"quoted\": {{ .Labels }} #1".to_owned();
    odd.pools[0].model = "org/model:v1 \\ ünï".to_owned();
    odd.lines[0].pool.clone_from(&odd.pools[0].name);
    odd.limits[0].pool.clone_from(&odd.pools[0].name);
    for (which, plan) in [("plain", plan()), ("odd", odd)] {
        let text =
            file(&emitted(Target::PrometheusRules, &plan, &settings()), "prometheus-rules.yaml");
        let path =
            std::env::temp_dir().join(format!("plimsoll-emit-{which}-{}.yaml", std::process::id()));
        std::fs::write(&path, &text).expect("a file");
        let checked = Command::new("promtool").args(["check", "rules"]).arg(&path).output();
        std::fs::remove_file(&path).expect("a file");
        let checked = checked.expect("promtool");
        let said = String::from_utf8_lossy(&checked.stdout).into_owned()
            + &String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{said}\n{text}");
        assert!(said.contains("rules found"), "{said}");
    }
}
