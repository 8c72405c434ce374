//! What an engine's own log says of the pool that wrote it.

use plimsoll_evidence::engine_log;

use super::draft::{Draft, Engine, Gathered, Place, Said, Source};
use super::flags::{flag, hidden};

/// Words that only engines write.
const MARKS: &[(&str, Engine)] = &[
    ("non-default args:", Engine::Vllm),
    ("vLLM API server version", Engine::Vllm),
    ("LLM engine (v", Engine::Vllm),
    ("GPU KV cache size:", Engine::Vllm),
    ("server_args=ServerArgs(", Engine::Sglang),
    ("KV Cache is allocated. #tokens:", Engine::Sglang),
    ("max_total_num_tokens=", Engine::Sglang),
];

/// Whether a text is the log of an engine.
pub(super) fn is_log(text: &str) -> bool {
    text.lines().any(|line| MARKS.iter().any(|(mark, _)| line.contains(mark)))
}

/// The pool that wrote a log.
pub(super) fn read(file: &str, text: &str, gathered: &mut Gathered) {
    let mut draft = Draft::new(Source::Log, "log", "", Place::new(file, 1, ""));
    for (i, line) in text.lines().enumerate() {
        let at = |words: &str| Place::new(file, i + 1, words);
        if draft.engine.is_none()
            && let Some((mark, engine)) = MARKS.iter().find(|(mark, _)| line.contains(mark))
        {
            draft.engine = Some(Said::new(*engine, &at(mark)));
        }
        arguments(line, &at, &mut draft);
        version(line, &at, &mut draft);
        startup(line, &at, &mut draft);
        if let Some(device) = after(line, "device_name=") {
            let name = device.split([',', ']', '.', ')']).next().unwrap_or_default();
            let name = name.replace('_', " ");
            draft.accelerator.get_or_insert_with(|| Said::new(name.trim().to_owned(), &at(&name)));
        }
        if let Some(tokens) = engine_log(line).kv_tokens {
            draft.remarks.push(format!(
                "the engine found room for {tokens} tokens of KV ({}); compare with `plimsoll fit`",
                at("").short()
            ));
        }
        if let Some(times) = after(line, "Maximum concurrency for ") {
            draft.remarks.push(format!(
                "that is for {} ({})",
                super::draft::clip(times, 60),
                at("").short()
            ));
        }
    }
    for refusal in engine_log(text).refusals {
        gathered.warnings.push(format!("{file}: the engine ran out or refused: {refusal}"));
    }
    gathered.pools.push(draft);
}

/// `{'model': 'a/b', 'tensor_parallel_size': 2}` and `model='a/b', tensor_parallel_size=2`.
fn arguments(line: &str, at: &dyn Fn(&str) -> Place, draft: &mut Draft) {
    let own = line.find("max_total_num_tokens=").map(|at| &line[at..]);
    // All that an engine was told, and what it made of it.
    let (list, separator, all) = if let Some(list) = after(line, "non-default args:") {
        (list, ':', true)
    } else if let Some(list) = after(line, "server_args=ServerArgs(") {
        (list, '=', false)
    } else if let Some(list) = after(line, "with config:") {
        (list, '=', false)
    } else if let Some(list) = own {
        (list, '=', false)
    } else {
        return;
    };
    for (name, value) in pairs(list, separator) {
        let plain = name.replace('_', "-");
        // What only says the default of another default is left out.
        if matches!(value.as_str(), "" | "None" | "{}" | "[]") {
            continue;
        }
        let plain = if plain == "context-len" { "context-length" } else { plain.as_str() };
        let place = at(&format!("{name}={}", hidden(plain, &value)));
        if all {
            flag(plain, Some(&value), &place, draft);
            continue;
        }
        // Of everything that an engine prints of itself, only what has a key is of use.
        let mut tried = Draft::default();
        flag(plain, Some(&value), &place, &mut tried);
        if !tried.unread.is_empty() || !tried.harmless.is_empty() {
            continue;
        }
        let is_default = match plain {
            "data-parallel-size"
            | "pipeline-parallel-size"
            | "expert-parallel-size"
            | "dp-size"
            | "pp-size"
            | "ep-size"
            | "decode-context-parallel-size"
            | "dcp-size" => value == "1",
            "kv-cache-dtype"
            | "dtype"
            | "schedule-policy"
            | "chunked-prefill-size"
            | "max-loras-per-batch"
            | "max-lora-rank" => true,
            "enable-dp-attention" | "disable-radix-cache" | "enable-lora" => value == "False",
            _ => false,
        };
        let stays = plain == "kv-cache-dtype" && value != "auto"
            || plain == "chunked-prefill-size" && value != "-1";
        if !is_default || stays {
            flag(plain, Some(&value), &place, draft);
        }
    }
    draft.remarks.retain(|remark| !remark.starts_with("the model is a variable"));
}

/// The pairs of a list as Python prints it. What lies in brackets or quotes is part of a value.
fn pairs(list: &str, separator: char) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut parts: Vec<String> = vec![String::new()];
    let (mut depth, mut quote) = (0usize, None);
    for c in list.trim_start().trim_start_matches('{').chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('[' | '(' | '{', None) => depth += 1,
            (']' | ')' | '}', None) if depth == 0 => break,
            (']' | ')' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    for part in parts {
        let Some((name, value)) = part.split_once(separator) else { continue };
        let bare = |text: &str| text.trim().trim_matches(['\'', '"']).to_owned();
        let name = bare(name);
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            found.push((name, bare(value)));
        }
    }
    found
}

fn version(line: &str, at: &dyn Fn(&str) -> Place, draft: &mut Draft) {
    for mark in
        ["vLLM API server version", "LLM engine (v", "sglang version", "TensorRT-LLM version:"]
    {
        let Some(rest) = after(line, mark) else { continue };
        let version: String = rest
            .trim_start_matches([':', ' ', 'v'])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '.')
            .collect();
        if version.starts_with(|c: char| c.is_ascii_digit()) {
            draft.version = Some(Said::new(version, &at(mark)));
        }
    }
}

fn startup(line: &str, at: &dyn Fn(&str) -> Place, draft: &mut Draft) {
    let rows = [
        ("weights", "Loading weights took", ""),
        ("weights", "Model loading took", "and"),
        ("compile", "torch.compile takes", ""),
        ("compile", "torch.compile took", ""),
        ("warm_up", "warmup model) took", ""),
        ("warm_up", "Capture cuda graph end. Time elapsed:", ""),
    ];
    for (phase, mark, then) in rows {
        let Some(rest) = after(line, mark) else { continue };
        let rest = if then.is_empty() { Some(rest) } else { after(rest, then) };
        let Some(seconds) = rest.and_then(seconds) else { continue };
        let said = Said::new(seconds, &at(mark));
        // Of several ranks the slowest decides when a replica is ready.
        match draft.startup.get(phase) {
            Some(own) if own.value >= seconds => {}
            _ => {
                draft.startup.insert(phase, said);
            }
        }
    }
}

/// `12.3 s`, `12 secs` or `12.3 seconds` at the front.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let unit = text[end..].trim_start();
    let number = text[..end].parse::<f64>().ok()?;
    (unit.starts_with('s') && (0.0..1e6).contains(&number)).then_some(number)
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.find(mark).map(|at| line[at + mark.len()..].trim_start())
}
