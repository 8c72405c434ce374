//! Step logs of an engine, `plimsoll-engine-run/1`: one run a line.

use plimsoll_study::{EngineRun, RunRequest, RunSetup, RunStep, SharedPrefix};
use serde_json::Value;

use super::row::{Bound, CLIENTS, Row, SECONDS, SHARE, TOKENS};
use super::{Read, Tool};

pub(super) const TOOL: Tool = Tool {
    name: "plimsoll engine run",
    knows: |value| value.get("schema").and_then(Value::as_str) == Some("plimsoll-engine-run/1"),
    within: None,
    read: Read::Run(read),
};

/// Moments and gaps: zero is the beginning, or less than the clock shows.
const MOMENT: Bound = Bound { zero: true, most: SECONDS.most };
const COUNT: Bound = Bound { zero: true, most: TOKENS.most };

fn read(row: &mut Row<'_>) -> Option<EngineRun> {
    let run = word(row, "run");
    let setup = setup(row);
    let clients = match row.text("meta/kind") {
        Some("closed") => need(row, "meta/concurrency", &CLIENTS),
        Some("open") => None,
        _ => {
            row.wrong("meta/kind", "must be `closed` or `open`");
            None
        }
    };
    let mut requests = each(row, "requests", request);
    if let Some(requests) = &mut requests {
        prefixes(row, requests);
        kinds(row, requests);
    }
    let steps = each(row, "steps", step);
    if let Some(steps) = &steps
        && let Some(i) = (1..steps.len()).find(|i| steps[*i].at < steps[i - 1].at)
    {
        let problem =
            format!("is {}, before the step above it at {}", steps[i].at, steps[i - 1].at);
        row.wrong(&format!("steps/{i}/t"), problem);
    }
    let gaps = gaps(row);
    let promise = row.get("meta/promise").is_some().then(|| {
        let [ttft, tpot] =
            ["ttft", "tpot"].map(|key| row.need(&format!("meta/promise/{key}"), &SECONDS));
        ttft.zip(tpot)
    });
    let origin = row.origin.clone();
    Some(EngineRun {
        origin,
        gaps,
        run: run?,
        setup: setup?,
        clients,
        promise: promise.flatten(),
        requests: requests?,
        steps: steps?,
    })
}

fn setup(row: &mut Row<'_>) -> Option<RunSetup> {
    let mut text = |key: &str| word(row, &format!("setup/{key}"));
    let [model, accelerator, engine] = ["model", "accelerator", "engine"].map(&mut text);
    let [version, weights, kv_dtype] = ["version", "weights", "kv_dtype"].map(&mut text);
    let mut whole = |key: &str| need(row, &format!("setup/{key}"), &TOKENS);
    let [tensor_parallel, max_num_seqs] = ["tensor_parallel", "max_num_seqs"].map(&mut whole);
    let [max_num_batched_tokens, kv_tokens, block_size] =
        ["max_num_batched_tokens", "kv_tokens", "block_size"].map(&mut whole);
    let prefix_caching = row.get("setup/prefix_caching").and_then(Value::as_bool);
    if prefix_caching.is_none() {
        row.wrong("setup/prefix_caching", "must be true or false");
    }
    Some(RunSetup {
        model: model?,
        accelerator: accelerator?,
        engine: engine?,
        version: version?,
        weights: weights?,
        kv_dtype: kv_dtype?,
        tensor_parallel: tensor_parallel?,
        max_num_seqs: max_num_seqs?,
        max_num_batched_tokens: max_num_batched_tokens?,
        kv_tokens: kv_tokens?,
        block_size: block_size?,
        prefix_caching: prefix_caching?,
    })
}

fn request(row: &mut Row<'_>, at: &str) -> Option<RunRequest> {
    let mut whole = |key: &str, bound: &Bound| need(row, &format!("{at}/{key}"), bound);
    let (prompt, output) = (whole("prompt", &TOKENS)?, whole("output", &TOKENS)?);
    let cached = whole("cached", &COUNT)?;
    let mut time = |key: &str, bound: &Bound| row.need(&format!("{at}/{key}"), bound);
    let (sent, ttft, e2e) = (time("t", &MOMENT)?, time("ttft", &SECONDS)?, time("e2e", &SECONDS)?);
    if cached > prompt {
        row.wrong(
            &format!("{at}/cached"),
            format!("is {cached}, more than the prompt of {prompt}"),
        );
    }
    if e2e < ttft {
        row.wrong(&format!("{at}/e2e"), format!("is {e2e}, before the first token at {ttft}"));
    }
    let path = format!("{at}/itl_ms");
    // Reduced logs leave the gaps of single requests out.
    let none = Vec::new();
    let gaps = match (row.get(&path), row.list(&path)) {
        (None, _) => &none,
        (Some(_), Some(gaps)) => gaps,
        (Some(_), None) => {
            row.wrong(&path, "must be a list");
            return None;
        }
    };
    if gaps.len() as u64 >= output {
        let problem = format!("has {} gaps between {output} tokens", gaps.len());
        row.wrong(&path, problem);
    }
    let bound = Bound { zero: true, most: SECONDS.most * 1e3 };
    let gaps = gaps.iter().map(|gap| Some(row.check(&path, gap, &bound)? / 1e3));
    Some(RunRequest {
        at: sent,
        prompt,
        output,
        cached,
        prefix: None,
        kind: None,
        ttft,
        e2e,
        itl: gaps.collect::<Option<_>>()?,
    })
}

/// Percentiles of gaps, which reduced logs give instead of each.
fn gaps(row: &mut Row<'_>) -> Option<[f64; 3]> {
    row.get("meta/gaps_ms")?;
    let bound = Bound { zero: true, most: SECONDS.most * 1e3 };
    let mut at = |p: &str| row.need(&format!("meta/gaps_ms/{p}"), &bound).map(|ms| ms / 1e3);
    let all = [at("p50"), at("p95"), at("p99")];
    let [Some(p50), Some(p95), Some(p99)] = all else { return None };
    Some([p50, p95, p99])
}

/// Which group of prompts with a common beginning each request was picked from, where the run says so.
fn prefixes(row: &mut Row<'_>, requests: &mut [RunRequest]) {
    let Some(picked) = row.list("meta/pick").map(Vec::len) else { return };
    if picked != requests.len() {
        row.wrong("meta/pick", format!("names {picked} groups for {} requests", requests.len()));
        return;
    }
    let Some(tokens) = need(row, "meta/prefix_len", &TOKENS) else { return };
    for (i, request) in requests.iter_mut().enumerate() {
        let group = need(row, &format!("meta/pick/{i}"), &COUNT);
        request.prefix =
            group.map(|group| SharedPrefix { group, tokens: tokens.min(request.prompt) });
    }
}

/// What kind each request is of, where the run mixes several.
fn kinds(row: &mut Row<'_>, requests: &mut [RunRequest]) {
    let Some(named) = row.list("meta/kinds").map(Vec::len) else { return };
    if named != requests.len() {
        row.wrong("meta/kinds", format!("names {named} kinds for {} requests", requests.len()));
        return;
    }
    for (i, request) in requests.iter_mut().enumerate() {
        request.kind = word(row, &format!("meta/kinds/{i}"));
    }
}

fn step(row: &mut Row<'_>, at: &str) -> Option<RunStep> {
    let when = row.need(&format!("{at}/t"), &MOMENT)?;
    let kv = row.need(&format!("{at}/kv"), &SHARE)?;
    let mut whole = |key: &str| need(row, &format!("{at}/{key}"), &COUNT);
    Some(RunStep {
        at: when,
        running: whole("running")?,
        waiting: whole("waiting")?,
        kv,
        generated: whole("gen")?,
        prompt: whole("prompt")?,
        preempted: whole("preempt")?,
    })
}

/// Every item of a list that must hold one; a mistake in one does not hide those in the next.
fn each<T>(
    row: &mut Row<'_>,
    key: &str,
    read: fn(&mut Row<'_>, &str) -> Option<T>,
) -> Option<Vec<T>> {
    let count = row.list(key).map_or(0, Vec::len);
    if count == 0 {
        row.wrong(key, "must be a list that is not empty");
        return None;
    }
    let items: Vec<Option<T>> = (0..count).map(|i| read(row, &format!("{key}/{i}"))).collect();
    items.into_iter().collect()
}

fn need(row: &mut Row<'_>, path: &str, bound: &Bound) -> Option<u64> {
    if row.get(path).is_none() {
        row.wrong(path, "is missing");
    }
    row.whole(path, bound)
}

fn word(row: &mut Row<'_>, path: &str) -> Option<String> {
    let text = row.text(path).map(str::to_owned);
    if text.is_none() {
        row.wrong(path, "must be text");
    }
    text
}
