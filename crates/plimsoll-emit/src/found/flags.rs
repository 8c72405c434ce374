//! What the flags of engines mean in a scenario.

use serde_json::Value;

use super::draft::{Draft, Place, Said, clip};
use super::words::Word;

/// Flags that change nothing a scenario knows of.
const HARMLESS: &[&str] = &[
    "allow-credentials",
    "allowed-headers",
    "allowed-methods",
    "allowed-origins",
    "api-key",
    "api-server-count",
    "block-size",
    "chat-template",
    "chat-template-content-format",
    "disable-access-log-for-endpoints",
    "disable-custom-all-reduce",
    "disable-fastapi-docs",
    "disable-frontend-multiprocessing",
    "disable-log-requests",
    "disable-log-stats",
    "disable-uvicorn-access-log",
    "distributed-executor-backend",
    "dist-init-addr",
    "download-dir",
    "enable-auto-tool-choice",
    "enable-cache-report",
    "enable-log-requests",
    "enable-metrics",
    "enable-prompt-tokens-details",
    "enable-server-load-tracking",
    "generation-config",
    "guided-decoding-backend",
    "host",
    "load-format",
    "log-level",
    "log-requests",
    "mm-processor-kwargs",
    "node-rank",
    "port",
    "reasoning-parser",
    "response-role",
    "revision",
    "root-path",
    "router",
    "safetensors-load-strategy",
    "seed",
    "ssl-certfile",
    "ssl-keyfile",
    "structured-outputs-config",
    "tokenizer",
    "tokenizer-mode",
    "tool-call-parser",
    "trust-remote-code",
    "use-tqdm-on-load",
    "uvicorn-log-level",
    "watchdog-timeout",
];

/// Flags that several words may follow.
const SEVERAL: &[&str] = &[
    "api-key",
    "allowed-origins",
    "cuda-graph-bs",
    "cudagraph-capture-sizes",
    "lora-modules",
    "lora-paths",
    "middleware",
    "served-model-name",
];

/// Reads the arguments of an engine into a draft.
pub(super) fn arguments(words: &[Word], file: &str, draft: &mut Draft) {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text.as_str();
        if !is_flag(text) {
            // Redirections are the shell's own.
            if text.contains('>') || text.contains('<') && !text.contains("<|") {
                continue;
            }
            let place = Place::new(file, word.line, text);
            match draft.model {
                None => model(word, place, draft),
                Some(_) => draft.unread.push(place.to_string()),
            }
            continue;
        }
        let (name, mut value) = match text.split_once('=') {
            Some((name, value)) => (name, Some((value.to_owned(), word.open))),
            None => (text, None),
        };
        let plain = plain(name);
        if value.is_none() && !is_switch(&plain) {
            let next = words.get(at).filter(|next| !is_flag(&next.text) || is_number(&next.text));
            if let Some(next) = next {
                value = Some((next.text.clone(), next.open));
                at += 1;
            }
            let several = SEVERAL.contains(&plain.as_str());
            while let Some(next) = words.get(at).filter(|next| several && !is_flag(&next.text)) {
                at += 1;
                if plain == "served-model-name" {
                    draft.remarks.push(format!("it is also served as `{}`", clip(&next.text, 60)));
                } else if let Some((value, _)) = &mut value {
                    value.push(' ');
                    value.push_str(&next.text);
                }
            }
        }
        let said = match &value {
            Some((value, _)) => format!("{name} {}", hidden(&plain, value)),
            None => name.to_owned(),
        };
        let place = Place::new(file, word.line, &said);
        match value {
            Some((_, true)) if !HARMLESS.contains(&plain.as_str()) => {
                if matches!(plain.as_str(), "model" | "model-path") {
                    draft
                        .remarks
                        .push(format!("the model is a variable that is not set here: {place}"));
                } else {
                    draft.unread.push(format!("{place} (a variable that is not set here)"));
                }
            }
            value => {
                flag(&plain, value.as_ref().map(|(value, _)| value.as_str()), &place, draft);
            }
        }
    }
}

fn model(word: &Word, place: Place, draft: &mut Draft) {
    if word.open {
        draft.remarks.push(format!("the model is a variable that is not set here: {place}"));
    } else {
        draft.model = Some(Said::new(word.text.clone(), &place));
    }
}

fn is_flag(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// `--Max_Num-Seqs` is `max-num-seqs`.
fn plain(name: &str) -> String {
    name.trim_start_matches('-').to_lowercase().replace('_', "-")
}

fn is_switch(name: &str) -> bool {
    let fronts = ["enable-", "no-", "disable-", "skip-", "use-", "is-", "return-"];
    let names =
        ["trust-remote-code", "enforce-eager", "async-scheduling", "log-requests", "headless"];
    names.contains(&name) || fronts.iter().any(|front| name.starts_with(front))
}

/// A value as it may be shown: nobody's secrets are copied.
pub(super) fn hidden<'a>(name: &str, value: &'a str) -> &'a str {
    let secret = ["key", "secret", "password", "token", "credential"];
    let counted = name.contains("tokens");
    if !counted && secret.iter().any(|word| name.contains(word)) { "…" } else { value }
}

/// Reads one flag, its name without dashes. What is not understood is kept as such.
pub(super) fn flag(name: &str, value: Option<&str>, place: &Place, draft: &mut Draft) {
    let text = value.map(str::trim).unwrap_or_default();
    let count = text.parse::<u64>().ok().filter(|count| *count > 0);
    let understood = match name {
        "model" | "model-path" | "model-tag" => {
            if !text.is_empty() {
                draft.model = Some(Said::new(text.to_owned(), place));
            }
            !text.is_empty()
        }
        "served-model-name" => {
            let first = text.trim_start_matches(['[', '\'', '"']);
            let first = first.split(['\'', '"', ',', ']']).next().unwrap_or_default();
            if !first.is_empty() {
                draft.served = Some(Said::new(first.to_owned(), place));
            }
            !first.is_empty()
        }
        "tensor-parallel-size" | "tp" | "tp-size" => put(draft, "tensor_parallel", count, place),
        "pipeline-parallel-size" | "pp" | "pp-size" => {
            put(draft, "pipeline_parallel", count, place)
        }
        "data-parallel-size" | "dp" | "dp-size" => put(draft, "data_parallel", count, place),
        "expert-parallel-size" | "ep" | "ep-size" | "moe-expert-parallel-size" => {
            put(draft, "expert_parallel", count, place)
        }
        "decode-context-parallel-size" | "dcp" | "dcp-size" => {
            put(draft, "context_parallel", count, place)
        }
        "enable-expert-parallel" => {
            if is_on(text) {
                draft.experts_everywhere = Some(place.clone());
            }
            true
        }
        "enable-dp-attention" => {
            if is_on(text) {
                draft.attention_copies = Some(place.clone());
            }
            true
        }
        "nnodes" => {
            draft.spread = count.filter(|count| *count > 1).map(|count| Said::new(count, place));
            count.is_some()
        }
        "max-num-seqs" | "max-running-requests" | "max-batch-size" => {
            put(draft, "max_num_seqs", count, place)
        }
        "max-num-batched-tokens" | "max-num-tokens" => {
            put(draft, "max_num_batched_tokens", tokens(text), place)
        }
        "chunked-prefill-size" if text == "-1" => {
            draft.remarks.push(format!(
                "prompts are not split over steps: {place}; a scenario has no key for that"
            ));
            true
        }
        "chunked-prefill-size" => put(draft, "max_num_batched_tokens", tokens(text), place),
        "max-model-len" | "context-length" | "max-seq-len" => {
            // `auto` and -1 leave the choice to the engine.
            matches!(text, "auto" | "-1") || put(draft, "max_model_len", tokens(text), place)
        }
        "gpu-memory-utilization"
        | "mem-fraction-static"
        | "kv-cache-free-gpu-memory-fraction"
        | "free-gpu-memory-fraction" => {
            let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
            put(draft, "memory_utilization", share, place)
        }
        "kv-cache-dtype" => match kv_dtype(text) {
            Some(kv) => {
                draft.set("kv_dtype", quoted(kv), place);
                true
            }
            None => false,
        },
        "quantization" | "q" => match weights(text) {
            Some(weights) => {
                draft.set("weights", quoted(weights), place);
                true
            }
            None => text == "None",
        },
        "dtype" => {
            draft.dtype = Some(Said::new(text.trim_start_matches("torch.").to_owned(), place));
            matches!(text.trim_start_matches("torch."), "auto" | "half" | "float16" | "bfloat16")
        }
        "enable-prefix-caching" => {
            draft.set("prefix_caching", is_on(text).to_string(), place);
            true
        }
        "no-enable-prefix-caching" => {
            draft.set("prefix_caching", "false", place);
            true
        }
        "disable-radix-cache" => {
            if is_on(text) {
                draft.set("prefix_caching", "false", place);
            }
            true
        }
        "enable-chunked-prefill" if is_on(text) => true,
        "enable-chunked-prefill" | "no-enable-chunked-prefill" => {
            draft.remarks.push(format!(
                "prompts are not split over steps: {place}; a scenario has no key for that"
            ));
            true
        }
        "scheduling-policy" | "schedule-policy" => {
            if text != "fcfs" {
                draft.remarks.push(format!("the waiting line is ordered: {place}; `priority` of a class says which is served first"));
            }
            true
        }
        "speculative-config" => {
            let json: Option<Value> = serde_json::from_str(&text.replace('\'', "\"")).ok();
            let tokens = json.as_ref().and_then(|json| json.get("num_speculative_tokens"));
            draft.speculation = Some(Said::new(tokens.and_then(Value::as_u64), place));
            true
        }
        "num-speculative-tokens" | "speculative-num-draft-tokens" => {
            draft.speculation = Some(Said::new(count, place));
            true
        }
        "speculative-algorithm" | "speculative-model" => {
            draft.speculation.get_or_insert_with(|| Said::new(None, place));
            true
        }
        "enable-lora" => {
            if is_on(text) {
                draft.lora.get_or_insert_with(|| Said::new((1, 16), place));
            }
            true
        }
        "max-loras" | "max-loras-per-batch" => match count {
            Some(count) => {
                let rank = draft.lora.as_ref().map_or(16, |own| own.value.1);
                draft.lora = Some(Said::new((count, rank), place));
                true
            }
            None => false,
        },
        "max-lora-rank" => match count {
            Some(rank) => {
                let adapters = draft.lora.as_ref().map_or(1, |own| own.value.0);
                draft.lora = Some(Said::new((adapters, rank), place));
                true
            }
            None => false,
        },
        "max-num-queued-reqs" | "max-queued-requests" => {
            draft.queue.0 = count.map(|count| Said::new(count, place));
            count.is_some()
        }
        "max-num-queued-tokens" => {
            draft.queue.1 = count.map(|count| Said::new(count, place));
            count.is_some()
        }
        "shutdown-timeout" => match text.parse::<f64>().ok().filter(|s| (0.0..1e6).contains(s)) {
            Some(seconds) => {
                draft.set("drain", quoted(&format!("{seconds}s")), place);
                true
            }
            None => false,
        },
        "disaggregation-mode" => match text {
            "prefill" | "decode" => {
                draft.role = Some(Said::new(text.to_owned(), place));
                true
            }
            _ => text == "null",
        },
        "is-prefill-worker" | "is-decode-worker" => {
            let role = if name.contains("prefill") { "prefill" } else { "decode" };
            draft.role = Some(Said::new(role.to_owned(), place));
            true
        }
        _ if HARMLESS.contains(&name) => {
            let name = format!("--{name}");
            if !draft.harmless.contains(&name) {
                draft.harmless.push(name);
            }
            true
        }
        _ => false,
    };
    if !understood {
        draft.unread.push(place.to_string());
    }
}

fn put(draft: &mut Draft, key: &'static str, value: Option<impl ToString>, place: &Place) -> bool {
    let Some(value) = value else { return false };
    draft.set(key, value.to_string(), place);
    true
}

fn is_on(text: &str) -> bool {
    !matches!(text, "False" | "false" | "0")
}

/// `32768`, `32k` (thousands) or `32K` (1024s), as vLLM reads them.
fn tokens(text: &str) -> Option<u64> {
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[end.len()..] {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        _ => return None,
    };
    let count = end.parse::<f64>().ok()? * unit;
    // More than any model reads, and exact in a float.
    (1.0..1e12).contains(&count).then_some(count as u64)
}

fn kv_dtype(text: &str) -> Option<&'static str> {
    Some(match text {
        "auto" => "auto",
        "bfloat16" | "bf16" => "bf16",
        "float16" | "fp16" | "half" => "fp16",
        "nvfp4" => "nvfp4",
        _ if text.starts_with("fp8") => "fp8",
        _ if text.starts_with("int8") => "int8",
        _ => return None,
    })
}

/// How weights are stored, by an engine's word for the method.
pub(super) fn weights(text: &str) -> Option<&'static str> {
    Some(match text {
        "fp8" | "w8a8_fp8" | "fbgemm_fp8" | "ptpc_fp8" | "modelopt" | "modelopt_fp8" => "fp8",
        "w8a8_int8" | "int8" | "experts_int8" => "int8",
        "awq" | "awq_marlin" | "gptq" | "gptq_marlin" | "moe_wna16" | "bitsandbytes" | "int4" => {
            "int4"
        }
        "mxfp4" => "mxfp4",
        "nvfp4" | "modelopt_fp4" => "nvfp4",
        _ => return None,
    })
}

/// A TOML string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// An environment variable of an engine that no flag stands for.
pub(super) fn variable(name: &str, value: Option<&str>, place: &Place, draft: &mut Draft) {
    let fronts = ["VLLM_", "SGLANG_", "TRTLLM_", "TLLM_"];
    if fronts.iter().any(|front| name.starts_with(front)) {
        let lower = name.to_lowercase();
        let value = value.map_or("…", |value| hidden(&lower, value));
        draft.unread.push(place.saying(&format!("{name}={}", clip(value, 40))).to_string());
    }
}
