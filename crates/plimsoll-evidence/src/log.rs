//! What an engine says of its memory when it starts.

use plimsoll_units::{Bytes, Tokens};

/// The start-up lines of an engine's log that concern memory, per device; the last of each kind counts, and of several ranks
/// the one with the least KV, because it decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineLog {
    /// Weights.
    pub weights: Option<Bytes>,
    /// The peak of the profile run.
    pub activation: Option<Bytes>,
    /// Libraries and collectives.
    pub libraries: Option<Bytes>,
    /// Captured graphs.
    pub graphs: Option<Bytes>,
    /// Memory for KV.
    pub kv: Option<Bytes>,
    /// Tokens for KV, as printed.
    pub kv_tokens: Option<Tokens>,
    /// Lines in which the engine refuses or runs out.
    pub refusals: Vec<String>,
}

impl EngineLog {
    fn refuse(&mut self, line: &str) {
        if self.refusals.len() < 10 {
            self.refusals.push(line.trim().chars().take(200).collect());
        }
    }

    /// Whether any line was understood.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a log; lines that say nothing of memory are passed over.
pub fn engine_log(text: &str) -> EngineLog {
    let mut log = EngineLog::default();
    for line in text.lines() {
        let amount = |phrase: &str| after(line, phrase).and_then(gib);
        // Wording of vLLM before and after 0.11, and of SGLang.
        for phrase in
            ["model weights take", "Model loading took", "Loading model weights took", "mem usage="]
        {
            log.weights = amount(phrase).or(log.weights);
        }
        log.libraries = amount("non_torch_memory takes").or(log.libraries);
        log.activation = amount("activation peak memory takes").or(log.activation);
        if line.contains("Graph capturing finished") {
            log.graphs = amount("took").or(log.graphs);
        }
        for phrase in ["Available KV cache memory:", "reserved for KV Cache is"] {
            log.kv = least(log.kv, amount(phrase));
            // Less than nothing is a refusal, whatever the next line says.
            if after(line, phrase).is_some_and(|rest| rest.starts_with('-')) {
                log.refuse(line);
            }
        }
        if let (Some(k), Some(v)) = (amount("K size:"), amount("V size:")) {
            log.kv = least(log.kv, Some(k + v));
        }
        for phrase in ["KV cache size:", "#tokens:"] {
            log.kv_tokens = least(log.kv_tokens, after(line, phrase).and_then(count));
        }
        let refusal = [
            "out of memory",
            "no available memory for the cache blocks",
            "larger than the maximum number of tokens",
            "larger than the available kv cache memory",
            "is less than desired gpu memory utilization",
        ];
        let lower = line.to_lowercase();
        if refusal.iter().any(|words| lower.contains(words)) {
            log.refuse(line);
        }
    }
    log
}

fn least<T: Ord>(old: Option<T>, new: Option<T>) -> Option<T> {
    match (old, new) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What follows the last occurrence of a phrase.
fn after<'a>(line: &'a str, phrase: &str) -> Option<&'a str> {
    let at = line.rfind(phrase)?;
    Some(line[at + phrase.len()..].trim_start())
}

/// The digits at the front, separators left out, and what follows them.
fn number(text: &str) -> Option<(String, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches(['.', ',']).replace(',', "");
    (!digits.is_empty()).then(|| (digits, &text[end..]))
}

fn count(text: &str) -> Option<Tokens> {
    number(text)?.0.parse::<u64>().ok().map(Tokens::new)
}

/// `GB` in these logs is GiB.
fn gib(text: &str) -> Option<Bytes> {
    let (digits, unit) = number(text)?;
    let unit = unit.trim_start();
    if !(unit.starts_with("GiB") || unit.starts_with("GB")) {
        return None;
    }
    format!("{digits}GiB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: [&str; 6]) {
        let log = engine_log(text);
        let show = |b: Option<Bytes>| b.map_or_else(|| "-".to_owned(), |b| b.to_string());
        let tokens = log.kv_tokens.map_or_else(|| "-".to_owned(), |t| t.to_string());
        let got = [
            show(log.weights),
            show(log.activation),
            show(log.libraries),
            show(log.graphs),
            show(log.kv),
            tokens,
        ];
        assert_eq!(got, expect);
    }

    /// Written by us in the wording of the engines.
    #[test]
    fn engines_are_understood() {
        check(
            "INFO model weights take 15.50GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.25GiB; the rest of the memory reserved for KV Cache is 50.00GiB.",
            ["15.5 GiB", "1.25 GiB", "102.4 MiB", "-", "50 GiB", "-"],
        );
        check(
            "(EngineCore) Model loading took 15.0 GiB memory and 3.1 seconds\n(Worker_TP0) Available KV cache memory: 109.58 GiB\n(Worker_TP1) Available KV cache memory: 109.25 GiB\nGPU KV cache size: 897,680 tokens\nGraph capturing finished in 9 secs, took 0.50 GiB",
            ["15 GiB", "-", "-", "512 MiB", "109.2 GiB", "897,680"],
        );
        check(
            "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.50 GB, mem usage=15.25 GB.\nKV Cache is allocated. #tokens: 444500, K size: 27.00 GB, V size: 27.00 GB",
            ["15.25 GiB", "-", "-", "-", "54 GiB", "444,500"],
        );
        let refused =
            engine_log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB");
        assert_eq!(refused.refusals.len(), 1);
        let negative = engine_log("Available KV cache memory: -1.44 GiB");
        assert_eq!((negative.kv, negative.refusals.len()), (None, 1));
        assert!(engine_log("GET /health 200\n\u{fffd} took 5 GiB of patience").is_empty());
    }
}
