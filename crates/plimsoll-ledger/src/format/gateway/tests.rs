//! Logs that we wrote in the words of each source, and what is known of them.
//!
//! An expected row reads: seconds after nine o'clock, name and attempt, tokens (prompt, read, written, output, reasoning,
//! most; `?` where unknown) and how they are counted; then every other column that is known.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::alias::{ALIASES, Generation, Means, find};
use super::{GATEWAY_JSONS, GATEWAY_TABLES, failure};
use crate::format::traces::{TRACE_JSONS, TRACE_TABLES};
use crate::format::{Heading, Record};
use crate::page::{Origin, Page};
use crate::row::Row;

/// 2026-01-05, nine o'clock UTC.
const NINE: i64 = 1_767_603_600_000_000_000;

fn page() -> Page {
    let (source, file) = ("test".to_owned(), "golden".to_owned());
    Page::new(Origin { source, file, start: 0, zoned: None })
}

/// Reads a golden file the way the ledger will; its format, and what it left.
fn read(golden: &str) -> (&'static str, Page) {
    let path = format!("{}/tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut page = page();
    if golden.ends_with(".csv") {
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let columns: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
        let heading = Heading { file: golden, columns: &columns };
        let formats = GATEWAY_TABLES.iter().chain(TRACE_TABLES);
        let claims = formats.filter_map(|it| Some((it.name, (it.open)(&heading)?)));
        let [(name, reader)] = <[_; 1]>::try_from(claims.collect::<Vec<_>>())
            .unwrap_or_else(|claims| panic!("{golden}: {} formats claim it", claims.len()));
        for (fields, line) in table.records().zip(2..) {
            reader.record(&Record { line, fields: &fields.unwrap() }, &mut page);
        }
        return (name, page);
    }
    let records: Vec<(String, Result<Value, serde_json::Error>)> = if golden.ends_with(".jsonl") {
        text.lines().map(|line| (line.to_owned(), serde_json::from_str(line))).collect()
    } else {
        match serde_json::from_str(&text).unwrap() {
            Value::Array(list) => list.into_iter().map(|it| (it.to_string(), Ok(it))).collect(),
            document => vec![(text, Ok(document))],
        }
    };
    let first = records[0].1.as_ref().unwrap();
    let formats = GATEWAY_JSONS.iter().chain(TRACE_JSONS);
    let claims = formats.filter_map(|it| Some((it.name, (it.open)(golden, first)?)));
    let [(name, reader)] = <[_; 1]>::try_from(claims.collect::<Vec<_>>())
        .unwrap_or_else(|claims| panic!("{golden}: {} formats claim it", claims.len()));
    for ((text, value), line) in records.iter().zip(1..) {
        match value {
            Ok(value) => reader.record(line, text, value, &mut page),
            Err(_) => page.reject(line, text, &crate::page::Wrong::shape("is not JSON")),
        }
    }
    (name, page)
}

fn seconds(at: Option<i64>) -> String {
    at.map_or("?".to_owned(), |at| format!("{:+}", (at - NINE) as f64 / 1e9))
}

fn show(row: &Row) -> String {
    let tokens = [
        row.prompt_tokens,
        row.cache_read_tokens,
        row.cache_write_tokens,
        row.output_tokens,
        row.reasoning_tokens,
        row.max_tokens,
    ];
    let tokens: Vec<String> =
        tokens.iter().map(|it| it.map_or("?".to_owned(), |it| it.to_string())).collect();
    let name = row.request_id.as_deref().unwrap();
    let made = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut shown = format!(
        "{} {}#{} {} {}",
        seconds(row.ts_arrival),
        if made { "made" } else { name },
        // One that is not numbered has the key of a first.
        row.attempt.unwrap_or(1),
        tokens.join(" "),
        row.convention.as_deref().unwrap_or("?"),
    );
    let mut tell = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            shown += &format!(" {name}={value}");
        }
    };
    macro_rules! tell { ($($name:ident),+) => { $(tell(stringify!($name), row.$name.as_ref().map(|it| it.to_string()));)+ } }
    tell!(status, http_status, error, limit_dimension, finish_reason);
    tell!(queue_s, prefill_s, decode_s, ttft_s, e2e_s, stream, cost_usd, cost_source);
    tell!(response_cached, sample_weight, task_id, trace_id, session_id, route, route_version);
    tell!(provider, model, model_version, prompt_version, tenant, user, feature, tier, region);
    shown
}

/// Asserts the format of a golden file, its rows, its outcomes, what was passed over and what was rejected.
fn check(golden: &str, format: &str, expect: &[&str]) {
    let (name, page) = read(golden);
    let mut lines: Vec<String> = Vec::new();
    let rows = Row::of_columns(&page.requests.finish());
    for row in &rows {
        assert_eq!(row.clock.as_deref(), row.ts_arrival.map(|_| "absolute"));
        lines.push(show(row));
    }
    for it in &page.outcomes {
        let task = it.task_id.as_deref().unwrap_or("?");
        let label = it.label.as_deref().unwrap_or("?");
        let known = |text: Option<String>| text.unwrap_or("?".to_owned());
        let (success, value) =
            (known(it.success.map(|it| it.to_string())), known(it.value.map(|it| it.to_string())));
        lines.push(format!("outcome {} {task} {label} {success} {value}", seconds(it.ts)));
    }
    lines.extend(page.others.iter().map(|(what, count)| format!("other {count} {what}")));
    for it in &page.rejects {
        let (field, reason) = (it.field.as_deref().unwrap_or(""), it.reason.as_deref().unwrap());
        lines.push(format!("reject {} `{field}` {reason}", it.line.unwrap()));
    }
    assert_eq!(name, format, "{golden}");
    let rest: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (have, want) in rest.iter().zip(expect) {
        assert_eq!(have, want, "{golden}");
    }
    assert_eq!(rest.len(), expect.len(), "{golden}: {rest:#?}");
    let read = rows.len() + page.outcomes.len() + page.rejects.len();
    let others: u64 = page.others.values().sum();
    assert_eq!(page.read, read as u64 + others, "{golden}");
}

#[test]
fn otel_of_three_generations() {
    const A: &str = "5b8aa5a2d2c872e8321cf37308d69df2";
    check(
        "otel.json",
        "otel",
        &[
            &format!(
                "+0.5 resp-2#1 ? ? ? ? ? ? ? status=limited http_status=429 error=rate_limit_exceeded limit_dimension=tokens e2e_s=0.25 task_id=conv-1 trace_id={A} session_id=conv-1 provider=openai model=atlas-large feature=planner region=eu-west-1"
            ),
            &format!(
                "+1.75 resp-2#2 1200 1024 0 300 100 2000 inclusive status=ok finish_reason=stop ttft_s=0.5 e2e_s=2 stream=true sample_weight=4 task_id=conv-1 trace_id={A} session_id=conv-1 route=api.example.com provider=openai model=atlas-large model_version=atlas-large-2026-01 feature=planner tier=default region=eu-west-1"
            ),
            "+20.25 b1#1 50 ? ? 7 ? ? inclusive status=ok e2e_s=1 task_id=trace-b trace_id=trace-b provider=openai model=atlas-mini region=eu-west-1",
            "+30 c1#1 80 0 64 9 ? ? inclusive status=ok e2e_s=1 task_id=trace-c trace_id=trace-c provider=openai model=atlas-mini region=eu-west-1",
            "+40 d1#1 4512 4000 500 30 ? ? exclusive status=ok e2e_s=2 task_id=trace-d trace_id=trace-d provider=anthropic model=claude-x region=eu-west-1",
            "outcome +10 conv-1 resolved true 0.9",
            "other 1 execute_tool search",
            "other 1 span around another call",
            "other 2 span of another kind",
            "reject 1 `gen_ai.usage.input_tokens` is `-4`, below zero",
        ],
    );
    check(
        "otel_lines.jsonl",
        "otel",
        &[
            "+0 s1#1 512 ? ? ? ? ? inclusive status=ok e2e_s=0.25 task_id=t1 trace_id=t1 model=embed-1",
            "outcome +1 t1 relevance false ?",
            "other 1 log record of another kind",
            "reject 3 `start_time_unix_nano` is `soon`, which cannot be read",
        ],
    );
    check(
        "otel_flat.jsonl",
        "otel",
        &[
            "+0 0x01#1 90 ? ? 20 ? ? inclusive status=ok e2e_s=1.5 task_id=0xabc1 trace_id=0xabc1 provider=openai model=atlas-mini region=eu-west-1",
            "+2 02#1 ? ? ? ? ? ? ? status=cancelled error=CancelledError e2e_s=0.125 task_id=abc2 trace_id=abc2 model=atlas-mini",
            "other 1 span of another kind",
            "reject 3 `end_time` is 1 s before the beginning",
            "reject 5 `` is neither a span nor a document of spans",
        ],
    );
}

#[test]
fn engines() {
    check(
        "vllm_spans.jsonl",
        "otel",
        &[
            "+0 cmpl-1#1 700 ? ? 64 ? 256 inclusive status=ok queue_s=0.125 prefill_s=0.125 decode_s=1.75 ttft_s=0.25 e2e_s=2 task_id=t1 trace_id=t1 route=vllm-chat provider=vllm",
            "+3 cmpl-2#1 700 ? ? 64 ? ? inclusive status=ok prefill_s=0.125 decode_s=1.75 ttft_s=0.25 e2e_s=2 task_id=t2 trace_id=t2 route=vllm-chat provider=vllm",
            "reject 3 `gen_ai.latency.time_in_queue` is 5000000000000: too long for the span, in seconds or in nanoseconds",
        ],
    );
    check(
        "sglang_spans.jsonl",
        "otel",
        &[
            "+0 3f2a91c0d4#1 1500 1024 ? 120 ? 512 inclusive status=ok finish_reason=stop prefill_s=0.25 decode_s=2.5 ttft_s=0.5 e2e_s=3 task_id=9 trace_id=9 route=sglang provider=sglang model=atlas-large model_version=atlas-large",
            "+4 77aa001122#1 40 0 ? 3 ? ? inclusive status=cancelled finish_reason=abort e2e_s=0.5 task_id=9 trace_id=9 route=sglang provider=sglang",
            "other 2 span of another kind",
        ],
    );
}

#[test]
fn litellm() {
    let r1 = "+0 r1#3 1200 1024 ? 300 100 ? inclusive status=ok ttft_s=0.5 e2e_s=2 cost_usd=0.0125 cost_source=litellm response_cached=false task_id=sess-1 session_id=sess-1 route=dep-7 provider=azure model=atlas-large model_version=azure/atlas-large-2026-01 tenant=team-red user=u-9 feature=checkout tier=priority";
    let r2 = "+3 r2#1 80 ? ? 8 ? ? inclusive status=ok e2e_s=1 cost_usd=0.0125 cost_source=litellm response_cached=false task_id=sess-1 session_id=sess-1 route=dep-7 provider=azure model=atlas-large model_version=azure/atlas-large-2026-01 tenant=team-red user=svc";
    let r7 = "+13 r7#1 ? ? ? ? ? ? ? status=limited http_status=429 error=RateLimitError limit_dimension=tokens e2e_s=0.25 cost_usd=0 cost_source=litellm response_cached=false task_id=sess-1 session_id=sess-1 route=dep-7 provider=azure model=atlas-large model_version=azure/atlas-large-2026-01 tenant=team-red user=svc";
    let claude = |head: &str, provider: &str| {
        format!(
            "{head} status=ok e2e_s=1 cost_usd=0.0125 cost_source=litellm response_cached=false task_id=sess-1 session_id=sess-1 route=dep-7 provider={provider} model=atlas-large model_version=claude-x tenant=team-red user=svc"
        )
    };
    check(
        "litellm_spend.jsonl",
        "litellm",
        &[
            r1,
            r2,
            "+5 r3#1 80 0 0 8 ? ? inclusive status=ok e2e_s=1 cost_usd=0 cost_source=litellm response_cached=true task_id=sess-1 session_id=sess-1 route=dep-7 provider=azure model=atlas-large model_version=azure/atlas-large-2026-01 tenant=team-red user=svc",
            &claude("+7 r4#1 4512 4000 500 30 ? ? exclusive", "anthropic"),
            &claude("+9 r5#1 4512 4000 500 30 ? ? exclusive", "anthropic"),
            &claude("+11 r6#1 4512 4000 500 30 ? ? inclusive", "bedrock"),
            r7,
            "other 1 call of an MCP tool",
            "reject 8 `spend` is `-1`, below zero",
        ],
    );
    check("litellm_spend.csv", "litellm", &[r1, r2, r7, "reject 5 `spend` is `-1`, below zero"]);
    check(
        "litellm_payload.json",
        "litellm",
        &[
            "+0 p1#1 90 0 ? 40 ? 64 inclusive status=ok ttft_s=0.25 e2e_s=2.5 stream=true cost_usd=0.0005 cost_source=litellm response_cached=false task_id=tr-1 trace_id=tr-1 route=dep-3 provider=openai model=mini model_version=atlas-mini tenant=team-blue user=u-1 feature=chat",
            "+3 p2#1 ? ? ? ? ? 64 ? status=failed http_status=500 error=InternalServerError e2e_s=0.125 stream=true cost_usd=0 cost_source=litellm response_cached=false task_id=tr-1 trace_id=tr-1 route=dep-3 provider=openai model=mini model_version=atlas-mini tenant=team-blue user=u-1 feature=chat",
            "reject 3 `startTime` is `when`, which cannot be read",
        ],
    );
}

#[test]
fn langfuse() {
    let row = |head: &str, how: &str, model: &str| {
        format!(
            "{head} {how} cost_source=langfuse task_id=tr-1 trace_id=tr-1 route=production route_version=v3 model={model} model_version={model} prompt_version=support:4 user=u-9 feature=helpdesk"
        )
    };
    let streamed = "status=ok ttft_s=0.5 e2e_s=2 cost_usd=0.01";
    let whole = "status=ok e2e_s=2 cost_usd=0.01";
    check(
        "langfuse.json",
        "langfuse",
        &[
            &row("+0 o1#1 1200 1024 ? 300 100 2000 exclusive", streamed, "atlas-large"),
            &row("+0 o2#1 80 ? ? 8 ? 2000 inclusive", whole, "atlas-large"),
            &row("+0 o3#1 80 0 ? 8 ? 2000 exclusive", whole, "atlas-large"),
            &row("+0 o4#1 4512 4000 500 30 ? 2000 exclusive", streamed, "claude-x"),
            &row("+0 o5#1 4512 4000 500 30 ? 2000 inclusive", streamed, "claude-x"),
            &row(
                "+0 o6#1 ? ? ? ? ? 2000 ?",
                "status=limited http_status=429 error=Error code: 429 - tokens per min exceeded limit_dimension=tokens e2e_s=0.25 cost_usd=0",
                "atlas-large",
            ),
            "outcome +3600 tr-1 resolved true 1",
            "outcome +7200 tr-1 tone ? ?",
            "outcome +7200 tr-1 quality ? 0.75",
            "other 1 observation of type TOOL",
            "reject 7 `usageDetails.input` is `many`, which cannot be read",
        ],
    );
    check(
        "langfuse.csv",
        "langfuse",
        &[
            "+0 o1#1 1200 1024 ? 300 ? ? exclusive status=ok ttft_s=0.5 e2e_s=2 cost_usd=0.01 cost_source=langfuse task_id=tr-1 trace_id=tr-1 model=atlas-large model_version=atlas-large",
            "+3 o2#1 512 ? ? ? ? ? inclusive status=ok e2e_s=0.25 task_id=tr-1 trace_id=tr-1 model=embed-1 model_version=embed-1",
            "other 1 observation of type SPAN",
            "reject 5 `start_time` is `2026-01-05T09:00:04Z`: the first row of the file says otherwise whether times have a zone",
        ],
    );
}

#[test]
fn helicone() {
    let row = |head: &str, how: &str, who: &str| {
        format!(
            "{head} {how} task_id=sess-1 session_id=sess-1 route=https://api.example.com/v1/chat/completions {who} tenant=org-1 user=u-9 feature=checkout"
        )
    };
    let fine = "status=ok http_status=200 ttft_s=0.5 e2e_s=2 cost_usd=0.0125 cost_source=helicone response_cached=false";
    let whole = "status=ok http_status=200 e2e_s=2 cost_usd=0.0125 cost_source=helicone response_cached=false";
    let atlas = "provider=OPENAI model=atlas-large model_version=atlas-large";
    let limited = "status=limited http_status=429 e2e_s=0.12 cost_usd=0 cost_source=helicone response_cached=false";
    let left = "status=cancelled ttft_s=0.5 e2e_s=2 cost_usd=0.0125 cost_source=helicone response_cached=false";
    let hit = "status=ok http_status=200 e2e_s=0.003 cost_usd=0 cost_source=helicone response_cached=true";
    let h1 = &row("+0 h1#1 1200 1024 0 300 ? ? inclusive", fine, atlas);
    let h2 = &row("+0 h2#1 1200 ? ? 300 ? ? inclusive", whole, atlas);
    let h5 = &row("+0 h5#1 ? ? ? ? ? ? ?", limited, atlas);
    let claude = "provider=ANTHROPIC model=claude-x model_version=claude-x";
    check(
        "helicone.jsonl",
        "helicone",
        &[
            h1,
            h2,
            &row("+0 h3#1 1200 1024 0 300 100 ? exclusive", fine, atlas),
            &row("+0 h4#1 8900 4000 500 300 ? ? exclusive", fine, claude),
            h5,
            &row("+0 h6#1 1200 0 0 7 ? ? inclusive", left, atlas),
            &row("+0 h7#1 ? ? ? ? ? ? ?", hit, atlas),
            "outcome +0 sess-1 accuracy ? 92",
            "reject 8 `prompt_tokens` is `12.5`, which cannot be read",
        ],
    );
    check(
        "helicone.csv",
        "helicone",
        &[
            h1,
            h2,
            h5,
            "outcome +0 sess-1 accuracy ? 92",
            "reject 5 `prompt_tokens` is `12.5`, which cannot be read",
        ],
    );
    check(
        "helicone_api.json",
        "helicone",
        &[
            "+0 h1#1 1200 ? ? 300 ? ? inclusive status=ok http_status=200 ttft_s=0.5 e2e_s=2 cost_usd=0.0125 cost_source=helicone task_id=sess-1 session_id=sess-1 provider=OPENAI model=atlas-large model_version=atlas-large-2026-01",
        ],
    );
}

#[test]
fn envoy() {
    let row = |head: &str, how: &str, task: &str, models: &str| {
        format!(
            "{head} {how}{task} route=httproute/default/atlas/rule/0 provider=openai-east {models}"
        )
    };
    let fine = "status=ok http_status=200 e2e_s=2";
    let task = " task_id=sess-1 session_id=sess-1";
    let atlas = "model=atlas-large model_version=atlas-large-2026-01";
    check(
        "envoy.jsonl",
        "envoy",
        &[
            &row("+0 e1#2 1200 1024 ? 300 100 ? inclusive", fine, task, atlas),
            &row("+0 e2#1 1200 ? ? 300 ? ? inclusive", fine, "", atlas),
            &row("+0 e3#1 1200 0 ? 300 ? ? inclusive", fine, task, atlas),
            &row("+0 e4#1 4012 4000 ? 300 ? ? exclusive", fine, task, "model=claude-x"),
            &row(
                "+0 e5#1 ? ? ? ? ? ? ?",
                "status=limited http_status=429 error=RL e2e_s=0.003",
                task,
                "model=atlas-large",
            ),
            &row("+0 e6#1 ? ? ? ? ? ? ?", "status=cancelled error=DC e2e_s=2", task, atlas),
            "other 1 request without a model",
            "reject 7 `duration` is `long`, which cannot be read",
        ],
    );
}

#[test]
fn usage_objects() {
    check(
        "usage_openai.jsonl",
        "usage",
        &[
            "+0 chatcmpl-1#1 1200 1024 ? 300 100 ? inclusive status=ok finish_reason=stop model=atlas-mini-2026-01 model_version=atlas-mini-2026-01 tier=default",
            "+1 chatcmpl-2#1 80 ? ? 8 ? ? inclusive status=ok finish_reason=length model=served model_version=served",
            "+2 resp_3#1 80 0 ? 8 0 ? inclusive status=ok model=atlas-large model_version=atlas-large",
            "+3 chatcmpl-4#1 10 ? ? 2 ? ? inclusive status=ok http_status=200 finish_reason=stop model=atlas-mini model_version=atlas-mini",
            "+4 chatcmpl-5#1 4012 4000 ? 30 ? ? exclusive status=ok model=claude-x model_version=claude-x",
            "+5 made#1 ? ? ? ? ? ? ? status=limited http_status=429 error=rate_limit_exceeded limit_dimension=requests e2e_s=0.04 model=atlas-mini model_version=atlas-mini",
            "reject 7 `prompt_tokens` is `5000000000`, more than can be",
            "reject 8 `usage` is missing",
            "reject 9 `` is not JSON",
        ],
    );
    check(
        "usage_anthropic.jsonl",
        "usage",
        &[
            "+0 msg_1#1 4512 4000 500 30 20 ? exclusive status=ok finish_reason=end_turn ttft_s=0.5 e2e_s=2 model=claude-x model_version=claude-x feature=review tier=standard",
            "? msg_2#1 12 ? ? 30 ? ? exclusive status=ok finish_reason=max_tokens model=claude-x model_version=claude-x",
            "+2 msg_3#1 19 0 7 30 ? ? exclusive status=ok model=claude-x model_version=claude-x",
            "+3 bed-4#1 4512 4000 500 30 ? ? exclusive status=ok finish_reason=end_turn e2e_s=0.9 model=anthropic.claude-x",
            "reject 5 `inputTokens` is `x`, which cannot be read",
        ],
    );
}

#[test]
fn aliases_are_told_apart_by_generation() {
    let names: std::collections::BTreeSet<&str> = ALIASES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names.len(), ALIASES.len(), "a name means one thing");
    for means in [Means::Provider, Means::Prompt, Means::Output] {
        let of = |(_, meaning, generation): &&(&str, Means, Generation)| {
            *meaning == means && *generation > Generation::First
        };
        assert!(ALIASES.iter().any(|alias| of(&alias)), "{means:?} has been renamed");
    }
    let both = json!({"gen_ai.usage.prompt_tokens": 1, "gen_ai": {"usage": {"input_tokens": 2}}});
    assert_eq!(find(&both, Means::Prompt), Some(("gen_ai.usage.input_tokens", &json!(2))));
    let old = json!({"gen_ai.usage.prompt_tokens": 1, "gen_ai.usage.input_tokens": null});
    assert_eq!(find(&old, Means::Prompt), Some(("gen_ai.usage.prompt_tokens", &json!(1))));
}

#[test]
fn failures_are_told_apart() {
    let check = |error: &str, expect: &str| assert_eq!(failure(error), expect, "{error}");
    check("429", "limited");
    check("RateLimitError", "limited");
    check("rate_limit_exceeded", "limited");
    check("ThrottlingException", "limited");
    check("asyncio.CancelledError", "cancelled");
    check("timeout", "failed");
    check("500", "failed");
}

/// Keys that readers look for, so that arbitrary objects get past the doors.
fn key() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "resourceSpans",
        "scopeSpans",
        "spans",
        "attributes",
        "key",
        "value",
        "intValue",
        "arrayValue",
        "values",
        "events",
        "name",
        "traceId",
        "spanId",
        "parentSpanId",
        "status",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "gen_ai",
        "usage",
        "metadata",
        "request_id",
        "spend",
        "startTime",
        "endTime",
        "completionStartTime",
        "prompt_tokens",
        "completion_tokens",
        "type",
        "usageDetails",
        "input",
        "output",
        "total",
        "cache_read_input_tokens",
        "data",
        "scores",
        "request_created_at",
        "latency",
        "cost",
        "start_time",
        "response_code",
        "duration",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.latency.e2e",
        "input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "traceState",
        "model",
        "error",
        "timestamp",
    ];
    prop_oneof![8 => prop::sample::select(KNOWN).prop_map(str::to_owned), 1 => "[a-z.]{0,6}"]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..5000u32).prop_map(Value::from),
        Just(json!("GENERATION")),
        Just(json!("2026-01-05T09:00:00Z")),
        Just(json!("ot=th:ffffffffffffff")),
        Just(json!(1_767_603_600_000_000_000u64)),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 96, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A record that every format would take for its own.
fn whole() -> Value {
    json!({
        "resourceSpans": [], "attributes": {}, "traceId": "t", "type": "GENERATION", "spend": 0,
        "request_id": "r", "startTime": 0, "request_created_at": 0, "prompt_tokens": 0,
        "start_time": 0, "response_code": 0, "gen_ai.x": 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(600)))]

    /// No record makes a reader panic, and each leaves something or nothing, but never more than it read.
    #[test]
    fn nothing_panics(value in anything()) {
        let text = value.to_string();
        let openers = [
            whole(),
            json!({"traceId": "t", "type": "GENERATION"}),
            json!({"usage": {"prompt_tokens": 1}}),
            value.clone(),
        ];
        for first in &openers {
            for format in GATEWAY_JSONS {
                if let Some(reader) = (format.open)("x", first) {
                    let mut page = page();
                    reader.record(1, &text, &value, &mut page);
                    let others: u64 = page.others.values().sum();
                    let kept = page.requests.len() + page.outcomes.len() + page.rejects.len();
                    prop_assert_eq!(page.read, kept as u64 + others);
                }
            }
        }
    }

    /// Nor does a table.
    #[test]
    fn no_table_panics(fields in prop::collection::vec("\\PC{0,16}", 6)) {
        let names = ["request_id", "spend", "startTime", "metadata", "prompt_tokens", "endTime"];
        let columns: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let heading = Heading { file: "x.csv", columns: &columns };
        let record = csv::StringRecord::from(fields);
        for format in GATEWAY_TABLES {
            if let Some(reader) = (format.open)(&heading) {
                reader.record(&Record { line: 2, fields: &record }, &mut page());
            }
        }
    }
}

/// Nesting as deep as the parser allows.
#[test]
fn deep_nesting_is_no_trouble() {
    let deep = format!("{}1{}", r#"{"arrayValue":{"values":["#.repeat(40), "]}}".repeat(40));
    let value: Value = serde_json::from_str(&deep).unwrap();
    let span = json!({"traceId": "t", "spanId": "s", "startTimeUnixNano": "1767603600000000000",
        "attributes": [{"key": "gen_ai.usage.input_tokens", "value": value}]});
    let reader = (GATEWAY_JSONS[0].open)("x", &span).unwrap();
    let mut page = page();
    reader.record(1, "", &span, &mut page);
    assert_eq!(page.rejects[0].field.as_deref(), Some("gen_ai.usage.input_tokens"));
    let nested = Value::String("[".repeat(5000));
    assert_eq!(*super::inside(&nested), nested);
}
