//! What is emitted of a whole plan: valid, the plan's own numbers, the same bytes each time.

mod questions;
mod written;

use std::collections::BTreeMap;

use plimsoll_emit::target::{EmitError, EmitInput, EmitSettings, Emitted, Target, Workload, emit};
use plimsoll_emit::yaml;
use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::PlanFile;
use proptest::prelude::*;
use serde_json::Value;

fn plan() -> PlanFile {
    serde_json::from_str(include_str!("../fixtures/plan.json")).expect("a plan")
}

fn settings() -> EmitSettings {
    EmitSettings {
        namespace: Some("serving".to_owned()),
        rule_labels: BTreeMap::from([("release".to_owned(), "kube-prometheus-stack".to_owned())]),
        watch: Some("http://plimsoll.monitoring:8080".to_owned()),
        ..EmitSettings::default()
    }
}

fn emitted(target: Target, plan: &PlanFile, settings: &EmitSettings) -> Emitted {
    emit(target, &EmitInput { plan, settings }).expect("files")
}

fn file(emitted: &Emitted, name: &str) -> String {
    let found = emitted.files.iter().find(|file| file.name == name);
    let names: Vec<&str> = emitted.files.iter().map(|file| file.name.as_str()).collect();
    found.unwrap_or_else(|| panic!("{name} is none of {names:?}")).text.clone()
}

/// The documents of a file, whatever its format; flags have none.
fn documents(name: &str, text: &str) -> Vec<Value> {
    if name.ends_with(".yaml") {
        let read = yaml::documents(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        read.iter().map(yaml::Node::to_json).collect()
    } else if name.ends_with(".jsonl") {
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    } else if name.ends_with(".json") {
        vec![serde_json::from_str(text).expect("JSON")]
    } else {
        Vec::new()
    }
}

/// Which schema a document must follow.
fn schema_of(name: &str, document: &Value) -> String {
    match document["kind"].as_str() {
        Some(kind) => kind.to_ascii_lowercase(),
        None if name.ends_with(".jsonl") => "litellm-team".to_owned(),
        None => [
            "grafana",
            "plimsoll.auto.tfvars",
            "litellm",
            "dynamo",
            "tensorrt-llm",
            "prometheus-rules",
        ]
        .into_iter()
        .find(|own| name.starts_with(own))
        .map(|own| match own {
            "plimsoll.auto.tfvars" => "tfvars".to_owned(),
            "dynamo" => "dynamo-planner".to_owned(),
            own => own.to_owned(),
        })
        .unwrap_or_else(|| panic!("no schema for {name}")),
    }
}

fn validate(schema: &str, document: &Value) -> Result<(), String> {
    let path = format!("{}/schemas/{schema}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    jsonschema::meta::validate(&schema).map_err(|error| format!("{path}: {error}"))?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let wrong: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[test]
fn every_document_is_valid_and_comes_out_the_same_again() {
    let (mut plan, settings) = (plan(), settings());
    let mut files = 0;
    let mut seen = Vec::new();
    for engine in ["sglang@0.5.17", "tensorrt-llm@1.3"] {
        plan.pools[1].engine = engine.to_owned();
        for target in Target::ALL {
            let first = emitted(target, &plan, &settings);
            assert_eq!(first, emitted(target, &plan, &settings), "{}", target.name());
            for file in &first.files {
                files += 1;
                for document in documents(&file.name, &file.text) {
                    let schema = schema_of(&file.name, &document);
                    if let Err(wrong) = validate(&schema, &document) {
                        panic!("{}: {wrong}\n{}", file.name, file.text);
                    }
                    seen.push(schema);
                }
                let says_its_plan = file.text.contains(&plan.id);
                assert!(says_its_plan, "{}", file.name);
                if !file.name.contains(".json") {
                    assert!(file.text.starts_with("# Plan 5eed0123456789ab (Support and agents, week 47), as of 2026-11-15.\n# Made by: plimsoll emit plan.json --target "), "{}", file.text);
                }
            }
        }
    }
    assert!(files > 30, "{files}");
    // The rules in the adapter's file are a document in a document.
    let hpa = emitted(Target::Hpa, &plan, &settings);
    let map = &documents("a.yaml", &file(&hpa, "hpa-prometheus-adapter.yaml"))[0];
    let inner = map["data"]["config.yaml"].as_str().expect("a file");
    validate("prometheus-adapter", &documents("a.yaml", inner)[0]).expect("valid");
    // No schema is left that nothing is held against.
    seen.push("prometheus-adapter".to_owned());
    for entry in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas")).expect("schemas")
    {
        let name = entry.expect("a file").file_name().into_string().expect("text");
        let name = name.trim_end_matches(".json").to_owned();
        assert!(seen.contains(&name), "nothing is held against {name}");
    }
}

#[test]
fn a_schema_refuses_what_the_cluster_would() {
    let text = file(&emitted(Target::Keda, &plan(), &settings()), "keda-chat.yaml");
    let good = documents("keda-chat.yaml", &text).remove(0);
    validate("scaledobject", &good).expect("valid");
    let up = "/spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp";
    let rows: [(&str, Value); 4] = [
        ("/spec/triggers/0/metadata/threshold", Value::from(5200)),
        (&format!("{up}/policies/0/periodSeconds"), Value::from(1801)),
        (&format!("{up}/stabilizationWindowSeconds"), Value::from(3601)),
        ("/spec/triggers/6/metadata/desiredReplicas", Value::from("0")),
    ];
    for (path, value) in rows {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
        assert!(validate("scaledobject", &bad).is_err(), "{path}");
    }
}

/// Numbers in files, each as the plan has it or rounded the way its comment says.
#[test]
fn numbers_are_the_plans() {
    let (plan, settings) = (plan(), settings());
    let rows: [(Target, &str, usize, &str, Value); 24] = [
        (Target::Keda, "keda-chat.yaml", 0, "/spec/minReplicaCount", 4.into()),
        (Target::Keda, "keda-chat.yaml", 0, "/spec/maxReplicaCount", 11.into()),
        // Steady 6 and forecast 2.
        (Target::Keda, "keda-chat.yaml", 0, "/spec/fallback/replicas", 8.into()),
        // 5200.119 and 38.347, rounded down.
        (Target::Keda, "keda-chat.yaml", 0, "/spec/triggers/0/metadata/threshold", "5200".into()),
        (Target::Keda, "keda-chat.yaml", 0, "/spec/triggers/1/metadata/threshold", "38.34".into()),
        (Target::Keda, "keda-chat.yaml", 0, "/spec/triggers/0/metricType", "AverageValue".into()),
        (Target::Keda, "keda-chat.yaml", 0, "/spec/triggers/3/metricType", "Value".into()),
        (Target::Keda, "keda-chat.yaml", 0, "/spec/triggers/4/metricType", "Value".into()),
        // 176.4 s is 3 minutes before 8:00.
        (
            Target::Keda,
            "keda-chat.yaml",
            0,
            "/spec/triggers/6/metadata/start",
            "57 7 * * 1-5".into(),
        ),
        (Target::Keda, "keda-chat.yaml", 0, "/spec/triggers/6/metadata/end", "0 20 * * 1-5".into()),
        // Sunday at 16:00 until Monday at 5:00, 2,250.2 s earlier.
        (
            Target::Keda,
            "keda-agent.yaml",
            0,
            "/spec/triggers/6/metadata/start",
            "22 15 * * 0".into(),
        ),
        (Target::Keda, "keda-agent.yaml", 0, "/spec/triggers/6/metadata/end", "0 5 * * 1".into()),
        (Target::Hpa, "hpa-chat.yaml", 0, "/spec/metrics/3/external/target/value", "1.6".into()),
        (
            Target::LiteLlm,
            "litellm-config.yaml",
            0,
            "/model_list/1/litellm_params/tpm",
            7_281_000.into(),
        ),
        (
            Target::LiteLlm,
            "litellm-config.yaml",
            0,
            "/model_list/1/litellm_params/max_parallel_requests",
            420.into(),
        ),
        (Target::LiteLlm, "litellm-teams.jsonl", 0, "/model_rpm_limit/llama-3.3-70b", 1584.into()),
        (
            Target::EnvoyAiGateway,
            "envoy-ai-gateway-chat.yaml",
            0,
            "/spec/perModelQuotas/0/quota/defaultBucket/limit",
            4_912_000.into(),
        ),
        (Target::Gie, "gie-chat-epp-config.yaml", 0, "/flowControl/defaultRequestTTL", "2s".into()),
        (
            Target::Gie,
            "gie-chat-epp-config.yaml",
            0,
            "/plugins/0/parameters/kvCacheUtilThreshold",
            0.8641.into(),
        ),
        (
            Target::Dynamo,
            "dynamo-agent.yaml",
            0,
            "/spec/features/planner/max_gpu_budget",
            88.into(),
        ),
        (Target::Dynamo, "dynamo-agent.yaml", 0, "/spec/features/planner/itl_ms", 60.into()),
        (Target::Aibrix, "aibrix-chat.yaml", 0, "/spec/schedules/0/startTime", "07:57".into()),
        // 4 of 11 replicas of 2 devices are 8 devices, one node of 8.
        (
            Target::Terraform,
            "plimsoll.auto.tfvars.json",
            0,
            "/plimsoll_node_pools/us-east~1H100-SXM~1on-demand/nodes_min",
            1.into(),
        ),
        // What is committed to is paid for anyway.
        (
            Target::Terraform,
            "plimsoll.auto.tfvars.json",
            0,
            "/plimsoll_node_pools/us-east~1H200-SXM~1reserved-1y/nodes_min",
            11.into(),
        ),
    ];
    for (target, name, document, path, expected) in rows {
        let text = file(&emitted(target, &plan, &settings), name);
        let found = documents(name, &text)[document].pointer(path).cloned();
        assert_eq!(found, Some(expected), "{name} {path}\n{text}");
    }
}

#[test]
fn what_cannot_be_written_as_planned_is_said() {
    let (plan, settings) = (plan(), settings());
    let rows = [
        (
            Target::Keda,
            "`agent`: the period on the way up is 2251 s in the plan; Kubernetes takes 1800 s at most",
        ),
        (Target::Keda, "`agent`: the stabilisation window on the way down is 4100 s in the plan"),
        (
            Target::Keda,
            "`agent`: kv is left out: a full cache is 2.1% above its threshold of 0.9785, and nothing is done within 6.6%",
        ),
        (Target::Hpa, "a HorizontalPodAutoscaler has no calendar"),
        (
            Target::Prometheus,
            "has no edge at the 2 s promised to the first token; 2.5 s is the next",
        ),
        (
            Target::Vllm,
            "--max-num-queued-tokens is left out: vLLM has it since 0.29, and 0.24 is planned",
        ),
        (
            Target::Vllm,
            "terminationGracePeriodSeconds must be more than its preStop and 61 s together",
        ),
        (Target::TensorRtLlm, "no pool of this plan runs on tensorrt-llm"),
        (Target::Gie, "a plan knows no priorities"),
    ];
    for (target, said) in rows {
        let notes = emitted(target, &plan, &settings).notes;
        assert!(notes.iter().any(|note| note.contains(said)), "{said}\n{notes:#?}");
    }
}

#[test]
fn a_plan_that_does_not_hold_is_not_written() {
    let mut plan = plan();
    plan.feasible = false;
    let mut settings = settings();
    for target in Target::ALL {
        let error =
            emit(target, &EmitInput { plan: &plan, settings: &settings }).expect_err("no files");
        assert!(error.to_string().contains("does not hold"), "{error}");
    }
    settings.even_if_infeasible = true;
    let text = file(&emitted(Target::Keda, &plan, &settings), "keda-chat.yaml");
    assert!(text.contains("# The plan does not hold: this is not to be applied.\n"), "{text}");
}

#[test]
fn where_nothing_moves_no_autoscaler_is_written() {
    let mut plan = plan();
    plan.pools[0].tiny = true;
    let found = emitted(Target::Keda, &plan, &settings());
    assert_eq!(found.files.iter().map(|file| &file.name).collect::<Vec<_>>(), ["keda-agent.yaml"]);
    plan.scaling.advised = false;
    plan.scaling.why = "the demand needs as many replicas in every hour".to_owned();
    for target in [Target::Keda, Target::Hpa, Target::Aibrix] {
        let found = emitted(target, &plan, &settings());
        assert!(found.files.is_empty());
        assert!(found.notes[0].contains("as many replicas in every hour"), "{:?}", found.notes);
    }
}

#[test]
fn names_that_a_cluster_refuses_are_refused_here() {
    let plan = plan();
    let with = |pool: &str, name: &str| EmitSettings {
        names: BTreeMap::from([(pool.to_owned(), name.to_owned())]),
        ..EmitSettings::default()
    };
    let error = |settings: EmitSettings| {
        emit(Target::Keda, &EmitInput { plan: &plan, settings: &settings }).expect_err("refused")
    };
    assert!(
        matches!(error(with("chat", "Chat_70B")), EmitError::Name { nearest, .. } if nearest == "chat-70b")
    );
    assert!(matches!(error(with("chat", "agent")), EmitError::SameName { .. }));
    assert!(matches!(error(with("chatt", "chat")), EmitError::Pool { .. }));
}

#[test]
fn a_gateway_and_another_kind_of_workload_are_used() {
    let settings = EmitSettings {
        gateway: Some(Reporter::Dynamo),
        workload: Workload::LeaderWorkerSet,
        served: BTreeMap::from([("chat".to_owned(), "support-chat".to_owned())]),
        ..EmitSettings::default()
    };
    let text = file(&emitted(Target::Keda, &plan(), &settings), "keda-chat.yaml");
    let document = &documents("a.yaml", &text)[0];
    assert_eq!(document["spec"]["scaleTargetRef"]["apiVersion"], "leaderworkerset.x-k8s.io/v1");
    assert_eq!(
        document["spec"]["triggers"][0]["metadata"]["query"],
        r#"sum(rate(dynamo_frontend_input_sequence_tokens_sum{model="support-chat"}[2m])) - (sum(rate(dynamo_frontend_cached_tokens_sum{model="support-chat"}[2m])) or vector(0))"#
    );
}

#[test]
fn what_is_not_known_or_cannot_be_reached_is_left_out() {
    let mut plan = plan();
    plan.scaling.policies[0].thresholds[4].value = Some(1.0);
    plan.scaling.policies[0].thresholds[1].value = None;
    plan.pools[1].engine = "mystery@1".to_owned();
    let found = emitted(Target::Keda, &plan, &settings());
    assert_eq!(found.files.len(), 1);
    let said = [
        "`chat`: kv is left out: its threshold is 1, and a share never exceeds one",
        "`chat`: in_flight is left out: the plan has no threshold for it",
        "`agent`: the metrics of `mystery@1` are not known",
    ];
    for said in said {
        assert!(
            found.notes.iter().any(|note| note.starts_with(said)),
            "{said}\n{:#?}",
            found.notes
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(48)))]
    /// Whatever pools and models are called, files read back, say the same names and are valid.
    #[test]
    fn any_name_reads_back(pool in any::<String>(), model in ".+", tenant in ".+", class in any::<String>()) {
        let mut plan = plan();
        prop_assume!(plan.pools[1].name != pool);
        plan.pools[0].name.clone_from(&pool);
        plan.pools[0].model.clone_from(&model);
        plan.lines[0].pool.clone_from(&pool);
        plan.limits[0].pool.clone_from(&pool);
        plan.limits[0].classes[0].class = class;
        plan.limits[0].tenants[0].tenant = tenant;
        plan.scaling.policies[0].pool.clone_from(&pool);
        let mut settings = settings();
        settings.names = BTreeMap::from([(pool.clone(), "chat".to_owned())]);
        for target in Target::ALL {
            for file in emitted(target, &plan, &settings).files {
                for document in documents(&file.name, &file.text) {
                    if let Err(wrong) = validate(&schema_of(&file.name, &document), &document) {
                        return Err(TestCaseError::fail(format!("{}: {wrong}\n{}", file.name, file.text)));
                    }
                    if file.name.contains("-chat") {
                        let named = document.pointer("/metadata/annotations/plimsoll.dev~1pool");
                        if let Some(named) = named {
                            prop_assert_eq!(named, &Value::from(pool.clone()));
                        }
                    }
                    if target == Target::LiteLlm && file.name.ends_with(".yaml") {
                        prop_assert_eq!(&document["model_list"][0]["model_name"], &Value::from(model.clone()));
                    }
                }
            }
        }
    }
}
