//! From what already runs to a scenario that loads.

use std::path::Path;

use jiff::civil::date;
use plimsoll_emit::found::{Found, FoundError, FoundFile, found};
use plimsoll_scenario::{Source, builtin, parse};
use proptest::prelude::*;

fn file(name: &str) -> FoundFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/found").join(name);
    let text = std::fs::read_to_string(path).expect("a fixture");
    FoundFile { name: name.to_owned(), text }
}

fn typed(name: &str, text: &str) -> FoundFile {
    FoundFile { name: name.to_owned(), text: text.to_owned() }
}

/// Reads files. Whatever they say, the scenario loads once its questions are answered, and until then a check meets nothing but
/// the questions that need an answer.
fn read(files: &[FoundFile]) -> Found {
    let got = found(files, date(2026, 11, 16)).expect("a scenario");
    if let Err(mistakes) = parse(&Source::new("example", got.example.clone()), builtin()) {
        let said: Vec<String> = mistakes.iter().map(|m| m.render(false, 100)).collect();
        panic!("{}\n{}", said.join("\n"), got.example);
    }
    let needed: Vec<&str> =
        got.questions.iter().filter(|q| q.needed).map(|q| q.key.as_str()).collect();
    let mistakes = parse(&Source::new("scenario", got.scenario.clone()), builtin())
        .expect_err("nobody has said how much is asked for");
    for mistake in mistakes {
        let asked = needed.iter().any(|key| {
            let (table, last) = key.rsplit_once('.').expect("a path");
            let name = table.split_once('.').expect("a table and a name").1;
            // Prompt and output are one complaint, as are the two prices of a model.
            let words = match last {
                "prompt" | "output" => "how long its requests are",
                "rate" => "how often its tasks come",
                "input" => "nobody knows what",
                "model" => "which model it serves",
                "accelerator" => "`accelerator`",
                _ => "?",
            };
            mistake.message.contains(words)
                && (mistake.message.contains(&format!("`{name}`")) || last == "input")
        });
        assert!(asked, "{}\n{}", mistake.render(false, 100), got.scenario);
    }
    got
}

/// What was found under these keys.
fn check(files: &[&str], expect: &[(&str, &str, &str)]) -> Found {
    let files: Vec<FoundFile> = files.iter().map(|name| file(name)).collect();
    let got = read(&files);
    for (key, value, origin) in expect {
        let own = got.values.iter().find(|own| own.key == *key);
        let own = own.unwrap_or_else(|| panic!("no {key} in\n{}", got.scenario));
        assert_eq!((own.value.as_str(), own.origin.as_str()), (*value, *origin), "{key}");
    }
    got
}

#[test]
fn a_deployment_its_scaler_and_its_log_are_one_pool() {
    let got = check(
        &["chat-deploy.yaml", "chat-scaler.yaml", "chat-pod.log"],
        &[
            (
                "pool.chat.model",
                "\"Qwen/Qwen3-32B\"",
                "chat-deploy.yaml:34 `--model Qwen/Qwen3-32B`",
            ),
            (
                "pool.chat.accelerator",
                "\"H100-SXM\"",
                "chat-deploy.yaml:24 `nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3`",
            ),
            (
                "pool.chat.instance",
                "\"p5.48xlarge\"",
                "chat-deploy.yaml:25 `node.kubernetes.io/instance-type: p5.48xlarge`",
            ),
            ("pool.chat.engine", "\"vllm@0.24\"", "chat-pod.log:1 `vLLM API server version`"),
            ("pool.chat.tensor_parallel", "2", "chat-deploy.yaml:37 `--tensor-parallel-size 2`"),
            // The log holds where it says otherwise.
            ("pool.chat.max_num_seqs", "512", "chat-pod.log:2 `max_num_seqs=512`"),
            ("pool.chat.max_model_len", "32768", "chat-pod.log:2 `max_model_len=32768`"),
            (
                "pool.chat.memory_utilization",
                "0.9",
                "chat-deploy.yaml:42 `--gpu-memory-utilization 0.9`",
            ),
            (
                "pool.chat.drain",
                "\"120s\"",
                "chat-deploy.yaml:22 `terminationGracePeriodSeconds: 120`",
            ),
            (
                "pool.chat.regions",
                "[\"us-east-1\"]",
                "chat-deploy.yaml:26 `topology.kubernetes.io/region: us-east-1`",
            ),
            (
                "autoscaling.signal",
                "\"in-flight\"",
                "chat-scaler.yaml:21 `sum(vllm:num_requests_running{model_name=\"chat\"}) + sum(vllm:num_requ…`",
            ),
            ("autoscaling.target", "38", "chat-scaler.yaml:22 `target: 38`"),
            (
                "autoscaling.down_stabilization",
                "\"900s\"",
                "chat-scaler.yaml:16 `stabilizationWindowSeconds: 900`",
            ),
        ],
    );
    let value =
        |key: &str| got.values.iter().find(|own| own.key == key).map(|own| own.value.clone());
    assert_eq!(value("pool.chat.replicas").as_deref(), Some("{ now = 6, plan = [4, 14] }"));
    assert_eq!(
        value("pool.chat.startup").as_deref(),
        Some("{ weights = \"41.3s\", compile = \"48.2s\", warm_up = \"31.5s\" }")
    );
    let clash = got.warnings.iter().find(|line| line.contains("`max_num_seqs`")).expect("told");
    assert!(
        clash.contains("256 at chat-deploy.yaml:38") && clash.contains("512 at chat-pod.log:2"),
        "{clash}"
    );
    for words in
        ["--some-new-flag 7", "VLLM_ATTENTION_BACKEND=FLASHINFER", "295,728 tokens", "trigger cron"]
    {
        assert!(got.scenario.contains(words), "{words}\n{}", got.scenario);
    }
    assert!(!got.scenario.contains("not-for-anybody"), "a secret is not copied");
    assert!(got.passed_over[0].contains("Service chat"), "{:?}", got.passed_over);
}

#[test]
fn an_sglang_set_of_one_text() {
    let got = check(
        &["sglang-set.yaml"],
        &[
            (
                "pool.reasoner.model",
                "\"deepseek-ai/DeepSeek-R1\"",
                "sglang-set.yaml:24 `--model-path deepseek-ai/DeepSeek-R1`",
            ),
            (
                "pool.reasoner.engine",
                "\"sglang@0.5.3\"",
                "sglang-set.yaml:16 `lmsysorg/sglang:v0.5.3-cu126`",
            ),
            (
                "pool.reasoner.accelerator",
                "\"H200-SXM\"",
                "sglang-set.yaml:13 `cloud.google.com/gke-accelerator: nvidia-h200-141gb`",
            ),
            ("pool.reasoner.replicas", "2", "sglang-set.yaml:5 `replicas: 2`"),
            // Eight copies of the attention share the eight devices.
            ("pool.reasoner.tensor_parallel", "1", "sglang-set.yaml:24 `--enable-dp-attention`"),
            ("pool.reasoner.data_parallel", "8", "sglang-set.yaml:24 `--dp 8`"),
            (
                "pool.reasoner.max_num_seqs",
                "1024",
                "sglang-set.yaml:25 `--max-running-requests 1024`",
            ),
            ("pool.reasoner.kv_dtype", "\"fp8\"", "sglang-set.yaml:28 `--kv-cache-dtype fp8_e4m3`"),
            ("pool.reasoner.prefix_caching", "false", "sglang-set.yaml:26 `--disable-radix-cache`"),
        ],
    );
    let guess = got.questions.iter().find(|q| q.key == "pool.reasoner.speculation").expect("asked");
    assert_eq!(guess.example, "speculation = { tokens = 4, accept_length = 3 }");
    assert_eq!(got.warnings, Vec::<String>::new());
}

#[test]
fn a_group_of_two_nodes() {
    let got = check(
        &["two-nodes-lws.yaml"],
        &[
            ("pool.big.tensor_parallel", "8", "two-nodes-lws.yaml:17 `--tensor-parallel-size 8`"),
            (
                "pool.big.pipeline_parallel",
                "2",
                "two-nodes-lws.yaml:17 `--pipeline-parallel-size 2`",
            ),
            (
                "pool.big.instance",
                "\"a3-ultragpu-8g\"",
                "two-nodes-lws.yaml:11 `node.kubernetes.io/instance-type: a3-ultragpu-8g`",
            ),
        ],
    );
    assert_eq!(got.warnings, Vec::<String>::new());
    assert!(got.questions.iter().any(|q| q.key == "pool.big.engine"), "the tag says no version");
}

#[test]
fn both_objects_of_kserve() {
    let got = check(
        &["kserve.yaml"],
        &[
            (
                "pool.summaries.model",
                "\"meta-llama/Llama-3.1-8B-Instruct\"",
                "kserve.yaml:11 `storageUri: hf://meta-llama/Llama-3.1-8B-Instruct`",
            ),
            ("pool.summaries.weights", "\"bf16\"", "kserve.yaml:12 `--dtype bfloat16`"),
            ("pool.split-prefill.role", "\"prefill\"", "kserve.yaml:27 `prefill`"),
            (
                "pool.split-prefill.disaggregation",
                "{ decode = \"split\" }",
                "kserve.yaml:27 `prefill`",
            ),
            ("pool.split.max_num_seqs", "128", "kserve.yaml:25 `--max-num-seqs 128`"),
            ("pool.split.expert_parallel", "2", "kserve.yaml:21 `expert: true`"),
        ],
    );
    let value =
        |key: &str| got.values.iter().find(|own| own.key == key).map(|own| own.value.as_str());
    assert_eq!(value("pool.summaries.replicas"), Some("{ now = 1, plan = [1, 5] }"));
    assert_eq!(value("pool.split-prefill.max_num_batched_tokens"), Some("16384"));
    assert!(!got.warnings.iter().any(|line| line.contains("devices")), "{:?}", got.warnings);
    // What only decodes is reached through the pool that prefills for it.
    assert_eq!(value("route.split-prefill.to"), Some("\"split-prefill\""));
    assert_eq!(value("class.split.name"), None);
}

#[test]
fn a_container_under_the_desk() {
    let got = check(
        &["run.sh"],
        &[
            ("pool.desk.engine", "\"vllm@0.20\"", "run.sh:6 `vllm/vllm-openai:v0.20.0`"),
            ("pool.desk.tensor_parallel", "2", "run.sh:7 `-tp 2`"),
            ("pool.desk.prefix_caching", "false", "run.sh:7 `--no-enable-prefix-caching`"),
            ("pool.desk.lora", "{ adapters = 4, rank = 16 }", "run.sh:7 `--max-loras 4`"),
            ("pool.desk.weights", "\"int4\"", "run.sh:8 `--quantization awq`"),
        ],
    );
    let asked: Vec<&str> =
        got.questions.iter().filter(|q| q.needed).map(|q| q.key.as_str()).collect();
    assert_eq!(
        asked,
        [
            "class.desk.rate",
            "class.desk.prompt",
            "class.desk.output",
            "pool.desk.model",
            "pool.desk.accelerator"
        ]
    );
    let model = got.questions.iter().find(|q| q.key == "pool.desk.model").expect("asked");
    assert!(model.question.contains("`/models/acme-llm-13b` (run.sh:7)"), "{}", model.question);
    insta::assert_snapshot!(got.scenario, @r#"
# A scenario of Plimsoll, from run.sh.
# Each line says where it was found. Lines after `# ?` are what no file says: take the `#` away and put in your own numbers.
#   plimsoll check scenario.toml       what is still missing
#   plimsoll review scenario.toml      the answer

[study]
name = "From run.sh"
as_of = 2026-11-16                    # the day that stands for today

[[class]]
name = "desk"                         # run.sh:4
# ? How many tasks a second, averaged over the week?
# rate = "5 req/s"
# ? How long are prompts, in tokens, cached ones included? Median and tail, not the mean.
# prompt = { p50 = 1024, p95 = 3072 }
# ? How long are answers, in tokens?
# output = { p50 = 256, p95 = 512 }
# ? Which share of prompt tokens is served from the prefix cache, as measured? None is assumed.
# cache_hit = "30%"
# ? What makes an answer good? Without it, only that it comes.
# slo = { ttft = "1s", tpot = "50ms" }

[[pool]]
name = "desk"                         # run.sh:4
# ? The catalogue does not know `/models/acme-llm-13b` (run.sh:7). Which model is it?
# model = "llama-3.1-8b"
# hf_config = "config.json"    # or its own configuration, for a model that the catalogue does not know
# ? Which device does it run on? No file says it.
# accelerator = "H100-SXM"
engine = "vllm@0.20"                  # run.sh:6 `vllm/vllm-openai:v0.20.0`
tensor_parallel = 2                   # run.sh:7 `-tp 2`
weights = "int4"                      # run.sh:8 `--quantization awq`
# ? How many replicas run? One is assumed.
# replicas = 1
max_num_batched_tokens = 8192         # run.sh:8 `--max-num-batched-tokens 8192`
prefix_caching = false                # run.sh:7 `--no-enable-prefix-caching`
lora = { adapters = 4, rank = 16 }    # run.sh:7 `--max-loras 4`
# ? It guesses tokens (run.sh:8 `--speculative-config {"method": "ngram", "num_speculative_tokens": 5}`). How many does a step yield on average, the certain one included?
# speculation = { tokens = 5, accept_length = 3.5 }
# Not understood here, or without a key; none of it is in this scenario:
#   run.sh:4 `VLLM_USE_V1=1`

# ? Where does it run? Prices differ from region to region.
# [[region]]
# name = "us-east-1"

# ? What may it cost a month? No cap is checked otherwise.
# [budget]
# monthly = "$50,000"
"#);
}

#[test]
fn logs_alone() {
    check(
        &["chat-pod.log"],
        &[
            ("pool.chat.model", "\"Qwen/Qwen3-32B\"", "chat-pod.log:2 `model=Qwen/Qwen3-32B`"),
            ("pool.chat.max_num_seqs", "512", "chat-pod.log:2 `max_num_seqs=512`"),
        ],
    );
    let got = check(
        &["sglang.log"],
        &[
            ("pool.Qwen3-8B.memory_utilization", "0.88", "sglang.log:1 `mem_fraction_static=0.88`"),
            ("pool.Qwen3-8B.max_num_seqs", "2048", "sglang.log:5 `max_running_requests=2048`"),
            ("pool.Qwen3-8B.max_model_len", "40960", "sglang.log:5 `context_len=40960`"),
            (
                "pool.Qwen3-8B.startup",
                "{ warm_up = \"12.5s\" }",
                "sglang.log:4 `Capture cuda graph end. Time elapsed:`",
            ),
        ],
    );
    assert!(got.scenario.contains("444,500 tokens"));
}

#[test]
fn a_proxy_with_two_hosted_models_and_one_of_its_own() {
    let expect = [
        ("provider.smart.provider", "\"openai\"", "litellm.yaml:3 `model: openai/gpt-4.1`"),
        ("provider.smart.tpm", "2000000", "litellm.yaml:3 `tpm: 2000000`"),
        ("provider.quick.rpm", "400", "litellm.yaml:7 `rpm: 400`"),
        ("route.house.share", "0.75", "litellm.yaml:9 `model: hosted_vllm/chat`"),
        ("route.quick.fallback", "[\"smart\"]", "litellm.yaml:4 `model_name: quick`"),
    ];
    let got = check(&["litellm.yaml"], &expect);
    let asked = |key: &str| got.questions.iter().any(|q| q.key == key && q.needed);
    assert!(asked("provider.quick.input") && asked("pool.chat.model"), "{}", got.scenario);
    assert!(!asked("provider.smart.input"), "the catalogue knows its price");
    // With the manifest beside it, the proxy's backend is the deployment.
    let both = check(&["litellm.yaml", "chat-deploy.yaml"], &expect);
    assert!(!both.questions.iter().any(|q| q.key == "pool.chat.model"));
    assert_eq!(both.scenario.matches("[[pool]]").count(), 1);
}

#[test]
fn an_ai_gateway_of_envoy() {
    let got = check(
        &["envoy.yaml"],
        &[
            ("provider.gpt-4o-mini.provider", "\"openai\"", "envoy.yaml:7 `backendRef openai`"),
            ("provider.gpt-4o-mini.tpm", "1000000", "envoy.yaml:46 `limit: 60000000 per 1h`"),
            ("pool.llama-3-1-70b.model", "\"llama-3.1-70b\"", "envoy.yaml:10 `backendRef llama`"),
            ("route.llama-3-1-70b.share", "0.9", "envoy.yaml:10 `backendRef llama`"),
        ],
    );
    assert!(
        got.passed_over.iter().any(|line| line.contains("Zeppelin lz")),
        "{:?}",
        got.passed_over
    );
    assert!(got.warnings.iter().any(|line| line.contains("`nobody`")), "{:?}", got.warnings);
    assert!(got.scenario.contains("fallback = ["), "{}", got.scenario);
}

#[test]
fn workers_of_a_dynamo_graph() {
    let got = check(
        &["dynamo.yaml"],
        &[
            (
                "pool.PrefillWorker.disaggregation",
                "{ decode = \"DecodeWorker\" }",
                "dynamo.yaml:10 `subComponentType: prefill`",
            ),
            ("pool.DecodeWorker.replicas", "3", "dynamo.yaml:21 `replicas: 3`"),
        ],
    );
    assert!(
        got.passed_over.iter().any(|line| line.contains("service Frontend")),
        "{:?}",
        got.passed_over
    );
}

#[test]
fn what_cannot_hold_is_left_out_with_the_reason() {
    let got = read(&[typed("run.sh", "vllm serve Qwen/Qwen3-8B -tp 16 --max-model-len 900000")]);
    assert!(!got.values.iter().any(|own| own.key.ends_with("max_model_len")));
    assert!(got.scenario.contains("# max_model_len = 900000"), "{}", got.scenario);
    assert!(got.warnings.iter().any(|line| line.contains("900000")), "{:?}", got.warnings);
}

#[test]
fn devices_that_are_asked_for_and_not_used_are_told() {
    let FoundFile { text, .. } = file("chat-deploy.yaml");
    let got = read(&[typed("d.yaml", &text.replace("nvidia.com/gpu: 2}", "nvidia.com/gpu: 8}"))]);
    insta::assert_snapshot!(got.warnings.join("\n"), @r#"pool `chat`: a replica asks for 8 devices (d.yaml:54 `nvidia.com/gpu: 8`) and uses 2 (d.yaml:37 `--tensor-parallel-size 2`)"#);
}

#[test]
fn what_is_of_no_use_is_said() {
    let of = |text: &str| found(&[typed("f", text)], date(2026, 11, 16)).expect_err("nothing");
    let helm = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: {{ .Values.n }}\n";
    insta::assert_snapshot!(of(helm), @r#"nothing in this file starts an engine or names a hosted model (f:4 `replicas: {{ .Values.n }}` is a Helm template; render it first: `helm template NAME CHART > rendered.yaml`); give manifests of vLLM, SGLang or TensorRT-LLM, their command lines or logs, or the configuration of LiteLLM or Envoy AI Gateway"#);
    insta::assert_snapshot!(of("kind: Deployment\nspec: [1,\nb: 2\n"), @r#"f:3:1: this is not YAML: invalid indentation in flow construct"#);
    insta::assert_snapshot!(of("kind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{image: 'nginx:1'}]}}}\n"), @r#"nothing in this file starts an engine or names a hosted model (f:1 `Deployment web` starts no engine that is known here (vLLM, SGLang, TensorRT-LLM)); give manifests of vLLM, SGLang or TensorRT-LLM, their command lines or logs, or the configuration of LiteLLM or Envoy AI Gateway"#);
    insta::assert_snapshot!(of("Dear diary"), @r#"nothing in this file starts an engine or names a hosted model (f holds no manifest, no command that starts an engine, and no line of an engine's log); give manifests of vLLM, SGLang or TensorRT-LLM, their command lines or logs, or the configuration of LiteLLM or Envoy AI Gateway"#);
}

#[test]
fn an_autoscaler_of_kubernetes() {
    let scaler = "---\nkind: HorizontalPodAutoscaler\nmetadata: {name: chat}\nspec:\n  scaleTargetRef: {kind: Deployment, name: chat}\n  maxReplicas: 5\n  metrics:\n  - {type: Resource, resource: {name: cpu}}\n  - {type: Pods, pods: {metric: {name: vllm_kv_cache_usage_perc}, target: {averageValue: 80}}}\n";
    let deploy = file("chat-deploy.yaml");
    let got = read(&[deploy, typed("hpa.yaml", scaler)]);
    let value =
        |key: &str| got.values.iter().find(|own| own.key == key).map(|own| own.value.as_str());
    // Six run, and the autoscaler allows five.
    assert_eq!(value("pool.chat.replicas"), Some("{ now = 5, plan = [1, 5] }"));
    assert!(
        got.warnings.iter().any(|line| line.contains("lies outside 1 to 5")),
        "{:?}",
        got.warnings
    );
    assert_eq!(value("autoscaling.signal"), Some("\"kv\""));
    assert_eq!(value("autoscaling.target"), Some("0.8"));
    assert_eq!(value("autoscaling.down_percent"), Some("100"), "what Kubernetes does unasked");
    for words in ["metric Resource", "does not add up over them"] {
        assert!(got.scenario.contains(words), "{words}\n{}", got.scenario);
    }
}

/// One command each: what it says of its pool, in the keys of a scenario.
#[test]
fn flags_of_each_engine() {
    let check = |command: &str, expect: &[(&str, &str)]| {
        let got = read(&[typed("run.sh", command)]);
        let own = got.values.iter().filter(|own| own.key.starts_with("pool."));
        let own: Vec<(&str, &str)> = own
            .map(|own| (own.key.rsplit('.').next().expect("a key"), own.value.as_str()))
            .filter(|(key, _)| !matches!(*key, "name" | "model"))
            .collect();
        assert_eq!(own, expect, "{command}");
    };
    check(
        "trtllm-serve Qwen/Qwen3-32B --tp_size 4 --max_batch_size 128 --max_num_tokens 8192 --max_seq_len 16384 --kv_cache_free_gpu_memory_fraction 0.85",
        &[
            ("tensor_parallel", "4"),
            ("max_num_seqs", "128"),
            ("max_num_batched_tokens", "8192"),
            ("max_model_len", "16384"),
            ("memory_utilization", "0.85"),
        ],
    );
    check(
        "vllm serve Qwen/Qwen3-30B-A3B-FP8 -tp=2 --data-parallel-size 4 --enable-expert-parallel --kv-cache-dtype fp8 --max-num-queued-reqs 64 --shutdown-timeout 45",
        &[
            ("tensor_parallel", "2"),
            ("data_parallel", "4"),
            ("expert_parallel", "8"),
            ("weights", "\"fp8\""),
            ("kv_dtype", "\"fp8\""),
            ("queue", "{ requests = 64 }"),
            ("drain", "\"45s\""),
        ],
    );
    // Without shared experts, SGLang's copies are whole replicas.
    check(
        "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --dp 2 --max-queued-requests 9",
        &[("replicas", "2"), ("queue", "{ requests = 9 }")],
    );
    check(
        "vllm serve Qwen/Qwen3-8B --max-num-seqs 0 --gpu-memory-utilization 90 --kv-cache-dtype odd --max-model-len auto",
        &[],
    );
}

#[test]
fn nobody_s_secrets_are_copied() {
    for text in [
        "HF_TOKEN=s3cret vllm serve Qwen/Qwen3-8B --api-key s3cret s3cret --hf-token s3cret",
        "docker run -e VLLM_API_KEY=s3cret vllm/vllm-openai:v0.24.0 --model Qwen/Qwen3-8B --ssl-keyfile-password=s3cret",
        "non-default args: {'model': 'Qwen/Qwen3-8B', 'api_key': ['s3cret'], 'hf_token': 's3cret'}",
        "model_list:\n- {model_name: a, litellm_params: {model: openai/gpt-4.1, api_key: s3cret}}\ngeneral_settings: {master_key: s3cret}\n",
    ] {
        let got = read(&[typed("any", text)]);
        assert!(!format!("{got:?}").contains("s3cret"), "{}", got.scenario);
    }
}

#[test]
fn pods_that_are_one_replica_together() {
    let text = file("sglang-set.yaml")
        .text
        .replace("--tp 8 --dp 8 --enable-dp-attention", "--tp 16 --nnodes 2 --tp 16");
    let got = read(&[typed("s.yaml", &text)]);
    let replicas =
        got.values.iter().find(|own| own.key == "pool.reasoner.replicas").expect("there");
    assert_eq!(replicas.value, "1");
    // Sixteen devices do not reach each other on this one, so that the group is left out with the reason.
    assert!(got.scenario.contains("# tensor_parallel = 16"), "{}", got.scenario);
    assert!(
        got.warnings.iter().any(|line| line.contains("2 pods, 2 to a replica")),
        "{:?}",
        got.warnings
    );
}

/// Pieces of the formats, in any order: what strangers hand us is rarely what we expect.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("vllm serve ".to_owned()),
        Just("docker run -e X=$X vllm/vllm-openai:v0.24.0 ".to_owned()),
        Just("--max-model-len ".to_owned()),
        Just("--served-model-name=".to_owned()),
        Just("kind: Deployment\n".to_owned()),
        Just("kind: ScaledObject\nspec: {triggers: [{type: prometheus}]}\n".to_owned()),
        Just("---\n".to_owned()),
        Just("model_list: [{model_name: ä, litellm_params: {model: hosted_vllm/b}}]\n".to_owned()),
        Just("non-default args: {'model': 'x', ".to_owned()),
        Just("server_args=ServerArgs(tp_size=3, model_path='ü".to_owned()),
        Just("\\\n".to_owned()),
        Just("${A:-'".to_owned()),
        "\\PC{0,12}",
        "[ \\t\\n\"'{}$0-9a-zK=,:-]{0,16}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(256)) })]

    /// Any text is read without a panic, and what comes of it loads.
    #[test]
    fn any_text_is_read(pieces in proptest::collection::vec(piece(), 0..12)) {
        let text = pieces.concat();
        if let Ok(got) = found(&[typed("any", &text)], date(2026, 11, 16)) {
            let loaded = parse(&Source::new("example", got.example.clone()), builtin());
            prop_assert!(loaded.is_ok(), "{:?}\n{}", loaded.err(), got.example);
        }
    }
}

const ALL: &[&str] = &[
    "chat-deploy.yaml",
    "chat-scaler.yaml",
    "chat-pod.log",
    "sglang-set.yaml",
    "two-nodes-lws.yaml",
    "kserve.yaml",
    "run.sh",
    "sglang.log",
    "litellm.yaml",
    "envoy.yaml",
    "dynamo.yaml",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(256)) })]

    /// Any files beside each other, with a stretch of one of them torn out or written twice: what comes of them loads.
    #[test]
    fn any_files_are_read_together(
        names in proptest::sample::subsequence(ALL, 1..4),
        from in 0.0f64..1.0,
        length in 0usize..60,
        twice in any::<bool>(),
    ) {
        let mut files: Vec<FoundFile> = names.iter().map(|name| file(name)).collect();
        let text: Vec<char> = files[0].text.chars().collect();
        let start = (from * text.len() as f64) as usize;
        let end = (start + length).min(text.len());
        let front = if twice { end } else { start };
        let back = if twice { start } else { end };
        files[0].text = text[..front].iter().chain(&text[back..]).collect();
        if let Ok(got) = found(&files, date(2026, 11, 16)) {
            let loaded = parse(&Source::new("example", got.example.clone()), builtin());
            prop_assert!(loaded.is_ok(), "{:?}\n{}", loaded.err(), got.example);
        }
    }
}

/// Every error of this room names the file.
#[test]
fn errors_point_at_lines() {
    let error = found(&[typed("d.yaml", "kind: X\na: [1,\nb: 2\n")], date(2026, 11, 16));
    assert!(matches!(error, Err(FoundError::NotYaml { line: 2.., .. })), "{error:?}");
}
