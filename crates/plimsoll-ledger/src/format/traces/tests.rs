//! Every format on a small file of our own, worked by hand, and on the files that are published.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::page::Key;
use crate::row::Row;

/// A page whose relative clocks begin with the year 2026.
fn page(file: &str) -> Page {
    let start = 1_767_225_600_000_000_000;
    Page::new(Origin { source: "test".to_owned(), file: file.to_owned(), start, zoned: None })
}

/// Reads a file with the one format that claims it, or with the one given.
fn read(file: &str, text: &str, table: Option<&dyn Table>, json: Option<&dyn Json>) -> Page {
    let mut page = page(file);
    if file.ends_with(".json") || file.ends_with(".jsonl") {
        let records: Vec<&str> =
            if file.ends_with(".json") { vec![text] } else { text.lines().collect() };
        let first: Value = serde_json::from_str(records[0]).expect("JSON");
        let opened = json.is_none().then(|| {
            let claims: Vec<_> =
                TRACE_JSONS.iter().filter_map(|format| (format.open)(file, &first)).collect();
            assert_eq!(claims.len(), 1, "{file} is one format's");
            claims.into_iter().next().expect("one")
        });
        let reader = json.unwrap_or_else(|| opened.as_deref().expect("opened"));
        for (i, record) in records.into_iter().enumerate() {
            let value: Value = serde_json::from_str(record).expect("JSON");
            reader.record(i as u64 + 1, record, &value, &mut page);
        }
        return page;
    }
    let mut csv = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    assert!(csv.read_record(&mut record).expect("a table"));
    let columns: Vec<String> = record.iter().map(|name| name.trim().to_owned()).collect();
    let heading = Heading { file, columns: &columns };
    let opened = table.is_none().then(|| {
        let claims: Vec<_> =
            TRACE_TABLES.iter().filter_map(|format| (format.open)(&heading)).collect();
        assert_eq!(claims.len(), 1, "{file} is one format's");
        claims.into_iter().next().expect("one")
    });
    let reader = table.unwrap_or_else(|| opened.as_deref().expect("opened"));
    let mut line = 1;
    if reader.headless() {
        reader.record(&Record { line, fields: &record }, &mut page);
    }
    while csv.read_record(&mut record).expect("a table") {
        line += 1;
        reader.record(&Record { line, fields: &record }, &mut page);
    }
    page
}

/// Whatever is known of each row, as `column=value`; rejects with `!` before their line.
fn said(page: Page) -> Vec<String> {
    let mut said: Vec<String> =
        Row::of_columns(&page.requests.finish()).iter().map(|row| line_of(row.fields())).collect();
    said.extend(page.outcomes.iter().map(|row| line_of(row.fields())));
    said.extend(page.series.iter().map(|row| line_of(row.fields())));
    said.extend(page.rejects.iter().map(|reject| {
        let field = reject.field.as_deref().map_or(String::new(), |field| format!("`{field}` "));
        format!(
            "!{}: {field}{}",
            reject.line.expect("a line"),
            reject.reason.as_deref().expect("why")
        )
    }));
    said
}

fn line_of(fields: serde_json::Map<String, Value>) -> String {
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    };
    let mut known = Vec::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let value = shown(value);
        let made = name == "request_id"
            && value.len() == 16
            && value.bytes().all(|b| b.is_ascii_hexdigit());
        let first = name == "attempt" && value == "1";
        if !["source", "file", "line"].contains(&name.as_str()) && !made && !first {
            known.push(format!("{name}={value}"));
        }
    }
    format!("{}: {}", shown(&fields["line"]), known.join(" "))
}

fn golden(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn check(file: &str, expect: &[&str]) {
    let page = read(file, &golden(file), None, None);
    let read = page.read;
    let said = said(page);
    assert_eq!(said, expect, "{file}");
    assert_eq!(read, expect.len() as u64, "{file}: every row is counted");
}

#[test]
fn azure_has_dates() {
    check(
        "azure.csv",
        &[
            "2: ts_arrival=2023-11-16T18:17:01.1234567Z clock=absolute prompt_tokens=4321 output_tokens=12",
            "3: ts_arrival=2023-11-16T18:17:04.0000001Z clock=absolute output_tokens=110",
            "4: ts_arrival=2023-11-16T18:17:05Z clock=absolute prompt_tokens=0 output_tokens=0",
            "!5: `TIMESTAMP` is `16 November`, which cannot be read",
            "!6: `TIMESTAMP` is `2023-11-16 18:17:06.5+00:00`: the first row of the file says otherwise whether times have a zone",
            "!7: `GeneratedTokens` is `-3`, below zero",
        ],
    );
    check(
        "azure_2024.csv",
        &[
            "2: ts_arrival=2024-05-10T00:00:00.250001Z clock=absolute prompt_tokens=800 output_tokens=5",
            "3: ts_arrival=2024-05-10T00:00:01Z clock=absolute prompt_tokens=900 output_tokens=6",
            "!4: `TIMESTAMP` is `2024-05-10 00:00:02`: the first row of the file says otherwise whether times have a zone",
        ],
    );
    check(
        "azure_images.csv",
        &[
            "2: ts_arrival=2024-10-15T00:00:00Z clock=absolute feature=text prompt_tokens=700 output_tokens=12",
            "3: ts_arrival=2024-10-15T00:00:00.25Z clock=absolute feature=images prompt_tokens=5200 output_tokens=40",
            "!4: `NumImages` is `one`, which cannot be read",
        ],
    );
}

#[test]
fn vidur_and_splitwise_count_seconds() {
    check(
        "vidur.csv",
        &[
            "2: ts_arrival=2026-01-01T00:00:00Z clock=absolute prompt_tokens=300 output_tokens=40",
            "3: ts_arrival=2026-01-01T00:00:04.125Z clock=absolute prompt_tokens=350 output_tokens=90",
            "!4: `arrived_at` is `-1`, below zero",
            "!5: `arrived_at` is `soon`, which cannot be read",
            "!6: `num_prefill_tokens` is `4294967296`, more than can be",
        ],
    );
    check(
        "vidur_lengths.csv",
        &["2: prompt_tokens=3000 output_tokens=50", "3: prompt_tokens=2000"],
    );
    check(
        "splitwise_sim.csv",
        &[
            "2: ts_arrival=2026-01-01T00:00:00Z clock=absolute feature=0 prompt_tokens=512 output_tokens=32",
            "3: ts_arrival=2026-01-01T00:00:00.5Z clock=absolute feature=7 prompt_tokens=1024 output_tokens=64",
        ],
    );
}

#[test]
fn burst_gpt_has_failures_and_sessions() {
    check(
        "burstgpt.csv",
        &[
            "2: ts_arrival=2026-01-01T00:00:07Z clock=absolute model=Small feature=Conversation log prompt_tokens=100 output_tokens=20 status=ok",
            "3: ts_arrival=2026-01-01T00:00:09Z clock=absolute model=Large feature=API log prompt_tokens=300 output_tokens=0 status=failed",
        ],
    );
    check(
        "burstgpt_sessions.csv",
        &[
            "2: session_id=ab-1 ts_arrival=2026-08-08T21:46:40.5Z clock=absolute model=Small feature=Conversation log prompt_tokens=100 output_tokens=20 status=ok",
            "3: ts_arrival=2026-08-08T21:46:42Z clock=absolute model=Large, new feature=API log prompt_tokens=10 output_tokens=2 status=ok",
            "4: session_id=ab-1 ts_arrival=2026-08-08T21:46:44Z clock=absolute model=Small feature=Conversation log prompt_tokens=150",
        ],
    );
}

#[test]
fn blis_has_tenants_and_times() {
    check(
        "blis_v2.csv",
        &[
            "2: ts_arrival=2026-01-01T00:00:00Z clock=absolute prompt_tokens=600 output_tokens=140 stream=true status=ok",
            "3: ts_arrival=2026-01-01T00:00:00.25Z clock=absolute prompt_tokens=10 output_tokens=20 reasoning_tokens=10 stream=true",
        ],
    );
    check(
        "blis_v3.csv",
        &[
            "2: request_id=uuid-1 session_id=s1 ts_arrival=2026-01-01T00:00:01Z clock=absolute model=m8b tenant=t1 user=c1 tier=critical prompt_tokens=500 output_tokens=10 ttft_s=0.25 e2e_s=1.0 stream=true status=ok finish_reason=stop",
            "3: request_id=uuid-2 session_id=s1 ts_arrival=2026-01-01T00:00:02.0005Z clock=absolute model=m8b model_version=lora-a tenant=t1 user=c1 tier=critical prompt_tokens=517 output_tokens=10 ttft_s=0.25 e2e_s=1.0 stream=false status=ok finish_reason=length",
            "4: request_id=uuid-3 ts_arrival=2026-01-01T00:00:03Z clock=absolute tenant=t2 user=c2 tier=batch prompt_tokens=50 output_tokens=0 stream=true status=limited http_status=429 error=HTTP 429: slow down, please",
            "5: request_id=uuid-4 ts_arrival=2026-01-01T00:00:04Z clock=absolute tenant=t2 user=c2 tier=batch prompt_tokens=50 output_tokens=7 ttft_s=0.5 e2e_s=1.0 stream=true status=cancelled error=deadline",
            "!6: `first_chunk_time_us` is before the request was sent",
            "!7: `streaming` is `maybe`, which cannot be read",
        ],
    );
}

#[test]
fn servegen_is_a_series() {
    check(
        "chunk-3-trace.csv",
        &[
            "1: class=chunk-3 start=2026-01-01T00:00:00Z clock=absolute window_s=600.0 requests=0.0",
            "2: class=chunk-3 start=2026-01-01T00:10:00Z clock=absolute window_s=600.0 requests=150.0 cv=1.5 family=Gamma parameter_1=0.4444444444444444 parameter_2=9.0",
            "3: class=chunk-3 start=2026-01-01T00:20:00Z clock=absolute window_s=600.0 requests=300.0 cv=1.0 family=Weibull parameter_1=1.0 parameter_2=2.0",
            "!4: `rate_req_per_s` is `-1`, below zero",
            "!5: `rate_req_per_s` is `nan`, which cannot be read",
        ],
    );
    check(
        "chunk-3-dataset.json",
        &[
            "1: class=chunk-3 start=2026-01-01T00:00:00Z clock=absolute window_s=21600.0 prompt_mean=175.0 output_mean=8.0 reason_share=0.25 prompt_lengths=[100, 200] prompt_shares=[0.25, 0.75] output_lengths=[8] output_shares=[1.0]",
            "1: class=chunk-3 start=2026-01-01T06:00:00Z clock=absolute window_s=21600.0",
            "!1: `input_tokens` is `0.5`, which cannot be read",
            "!1: `input_tokens` is `100`, which cannot be read",
        ],
    );
    assert_eq!(
        servegen::class("data/m-small/chunk-0-trace.csv.gz", "-trace.csv"),
        "data/m-small/chunk-0"
    );
}

#[test]
fn blocks_are_kept() {
    check(
        "mooncake.jsonl",
        &[
            "1: ts_arrival=2026-01-01T00:00:03Z clock=absolute prompt_tokens=1300 output_tokens=20 blocks=[40, 41, 42] block_tokens=512 block_scope=global",
            "2: session_id=7 ts_arrival=2026-01-01T00:00:06.0005Z clock=absolute prompt_tokens=10 output_tokens=1",
            "7: ts_arrival=2026-01-01T00:00:06.003Z clock=absolute prompt_tokens=600 output_tokens=0 blocks=[40, 18446744073709551615] block_tokens=512 block_scope=global",
            "!3: `hash_ids` names 2 blocks of 512 tokens in a prompt of 512",
            "!4: `timestamp` is missing",
            "!5: is no JSON object",
            "!6: `output_length` is `many`, which cannot be read",
        ],
    );
    check(
        "bailian.jsonl",
        &[
            "1: trace_id=11 session_id=11 ts_arrival=2026-01-01T00:01:01.25Z clock=absolute feature=text prompt_tokens=40 output_tokens=20 blocks=[501, 502, 7] block_tokens=16 block_scope=global",
            "2: trace_id=14 session_id=11 ts_arrival=2026-01-01T00:01:10.5Z clock=absolute feature=search prompt_tokens=60 output_tokens=8 blocks=[501, 502, 7, 9] block_tokens=16 block_scope=global",
        ],
    );
}

#[test]
fn sub_agents_are_flattened() {
    check(
        "agent.json",
        &[
            "1: request_id=trace_0001/0 session_id=trace_0001 ts_arrival=2026-01-01T00:00:00Z clock=session model=large prompt_tokens=200 output_tokens=25 ttft_s=0.5 e2e_s=2.5 finish_reason=tool_use blocks=[1, 2, 3, 4] block_tokens=64 block_scope=session",
            "1: request_id=trace_0001/1/0 session_id=trace_0001 ts_arrival=2026-01-01T00:00:10.5Z clock=session model=small tool_path=Explore prompt_tokens=70 output_tokens=5 e2e_s=1.25 finish_reason=tool_use blocks=[5, 6] block_tokens=64 block_scope=session",
            "1: request_id=trace_0001/1/1/0 session_id=trace_0001 ts_arrival=2026-01-01T00:00:12.25Z clock=session model=small tool_path=Explore/agent_002 prompt_tokens=64 output_tokens=0 blocks=[5] block_tokens=64 block_scope=session",
            "!1: `hash_ids` names 3 blocks of 64 tokens in a prompt of 128",
            "!1: `t` is missing",
            "!1: `requests` trace_0001/4 is no object",
        ],
    );
}

#[test]
fn our_own_columns_are_read() {
    check(
        "plimsoll.csv",
        &[
            "2: request_id=a ts_arrival=2026-03-01T10:00:00Z clock=absolute model=m tenant=acme prompt_tokens=100 cache_read_tokens=32 output_tokens=7 ttft_s=0.25 e2e_s=1.5 stream=true status=ok http_status=200 success=true blocks=[5, 6] block_tokens=64",
            "3: request_id=b ts_arrival=2026-03-01T10:00:00Z clock=absolute model=m prompt_tokens=100 output_tokens=0 status=cancelled http_status=499 success=false",
            "!4: `ts_arrival` is `2026-03-01 10:00:02`: the first row of the file says otherwise whether times have a zone",
            "!5: `cache_read_tokens` 132 cached tokens are more than the prompt's 100",
            "!6: `http_status` is `99999`, more than can be",
            "!7: `ttft_s` is `-1`, below zero",
            "!8: `blocks` names 3 blocks of 64 tokens in a prompt of 100",
        ],
    );
    // 64 bits of the hash of a name.
    let x = Key::new("block", "").text("x").finish() as u64;
    check(
        "plimsoll.jsonl",
        &[
            &format!(
                "1: request_id=a ts_arrival=2026-03-01T10:00:00.5Z clock=absolute prompt_tokens=100 output_tokens=7 stream=true cost_usd=0.002 blocks=[5, {x}] block_tokens=64"
            ),
            "2: request_id=b ts_arrival=2026-03-01T10:00:01Z clock=absolute feature=chat,beta output_tokens=7",
            "!3: `prompt_tokens` is `{\"n\":1}`, which cannot be read",
        ],
    );
    // Whatever a file can fill has its place, in the order of the columns.
    let filled: Vec<&str> = own::SLOTS.iter().map(|(name, _)| *name).collect();
    let columns = Row::COLUMNS.iter().map(|(name, _)| *name);
    let columns: Vec<&str> = columns.filter(|c| !["source", "file", "line"].contains(c)).collect();
    assert_eq!(filled, columns);
}

#[test]
fn outcomes_are_no_requests() {
    check(
        "outcomes.csv",
        &[
            "2: task_id=t-1 success=true value=12.5 label=resolved ts=2026-03-02T00:00:00Z",
            "3: task_id=t-2 success=false",
            "!4: `task_id` is missing",
            "!5: `success` is `perhaps`, which cannot be read",
        ],
    );
    check(
        "outcomes.jsonl",
        &[
            "1: task_id=17 success=true value=-3.0",
            "2: task_id=t-2 success=false label=refund ts=2026-03-02T00:00:00Z",
            "!3: `success` is missing",
        ],
    );
}

fn map(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(column, from)| ((*column).to_owned(), (*from).to_owned())).collect()
}

#[test]
fn columns_can_be_mapped() {
    let table = |text: &str, pairs: &[(&str, &str)]| {
        let columns: Vec<String> =
            text.lines().next().expect("a heading").split(',').map(str::to_owned).collect();
        let heading = Heading { file: "log.csv", columns: &columns };
        let reader = mapped_table(&heading, &map(pairs))?;
        Ok::<_, String>(said(read("log.csv", text, Some(&*reader), None)))
    };
    let text = "when,ctx,gen,took:ms,model\n1500,100,7,250,m\nlate,100,7,250,m\n1600,x,7,250,m\n";
    let pairs = [("ts_arrival", "when:ms"), ("prompt_tokens", "ctx"), ("output_tokens", "gen")];
    let expect = [
        "2: ts_arrival=2026-01-01T00:00:01.5Z clock=absolute model=m prompt_tokens=100 output_tokens=7",
        "!3: `when` is `late`, which cannot be read",
        "!4: `ctx` is `x`, which cannot be read",
    ];
    assert_eq!(table(text, &pairs).expect("a reader"), expect);
    // A colon may be part of a name, and a unit may follow it.
    let took = |from: &str| {
        let pairs = [("ts_arrival", "when:us"), ("e2e_s", from)];
        table(text, &pairs).expect("a reader")[0].clone()
    };
    assert_eq!(
        took("took:ms"),
        "2: ts_arrival=2026-01-01T00:00:00.0015Z clock=absolute model=m e2e_s=250.0"
    );
    assert_eq!(
        took("took:ms:ms"),
        "2: ts_arrival=2026-01-01T00:00:00.0015Z clock=absolute model=m e2e_s=0.25"
    );

    let says = |pairs: &[(&str, &str)], message: &str| {
        let error = table(text, pairs).expect_err("no reader");
        assert!(error.starts_with(message), "{error}");
    };
    says(
        &[("promt_tokens", "ctx")],
        "the ledger has no column `promt_tokens`, but `prompt_tokens`; its columns are: request_id, attempt, ",
    );
    says(&[("zzz", "ctx")], "the ledger has no column `zzz`; its columns are: request_id");
    says(&[("line", "ctx")], "`line` is not read from a file");
    says(
        &[("prompt_tokens", "ctxt")],
        "the file has no column `ctxt`, but `ctx`; it has: when, ctx, gen, took:ms, model",
    );
    says(&[("prompt_tokens", "ctx:ms")], "`prompt_tokens` is no time");
    says(
        &[("prompt_tokens", "ctx"), ("prompt_tokens", "gen")],
        "`prompt_tokens` is both `ctx` and `gen`",
    );
    says(&[("prompt_tokens", "")], "`prompt_tokens=` names no column");

    let pairs = [
        ("ts_arrival", "at"),
        ("prompt_tokens", "usage.prompt"),
        ("output_tokens", "attributes.gen_ai.out"),
        ("finish_reason", "choices.0.finish"),
        ("e2e_s", "took:ms"),
    ];
    let reader = mapped_json(&map(&pairs)).expect("a reader");
    let text = r#"{"at": "2026-03-01T10:00:00Z", "usage": {"prompt": 12}, "attributes": {"gen_ai.out": "3"}, "choices": [{"finish": "stop"}], "took": 1500, "model": "m"}
{"at": "2026-03-01T10:00:01Z", "usage": {"prompt": []}, "choices": []}
{"at": "2026-03-01T10:00:02Z", "usage": {"prompt": 1.5}}"#;
    assert_eq!(
        said(read("log.jsonl", text, None, Some(&*reader))),
        [
            "1: ts_arrival=2026-03-01T10:00:00Z clock=absolute model=m prompt_tokens=12 output_tokens=3 e2e_s=1.5 finish_reason=stop",
            "2: ts_arrival=2026-03-01T10:00:01Z clock=absolute",
            "!3: `usage.prompt` is `1.5`, which cannot be read",
        ]
    );
}

/// Every golden file is of one format of its own kind; `read` asserts it. And every format has one.
#[test]
fn every_format_has_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut claimed = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("golden files") {
        let file = entry.expect("an entry").file_name().into_string().expect("a name");
        let text = golden(&file);
        if file.ends_with("csv") {
            let columns: Vec<String> =
                text.lines().next().expect("a heading").split(',').map(str::to_owned).collect();
            let heading = Heading { file: &file, columns: &columns };
            let names = TRACE_TABLES.iter().filter(|f| (f.open)(&heading).is_some());
            claimed.extend(names.map(|format| format.about));
        } else {
            let first =
                if file.ends_with("json") { &text } else { text.lines().next().expect("one") };
            let first: Value = serde_json::from_str(first).expect("JSON");
            let names = TRACE_JSONS.iter().filter(|f| (f.open)(&file, &first).is_some());
            claimed.extend(names.map(|format| format.about));
        }
    }
    let formats = TRACE_TABLES.iter().map(|f| f.about).chain(TRACE_JSONS.iter().map(|f| f.about));
    assert!(formats.clone().all(|about| claimed.contains(about)), "{claimed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(300)))]

    /// Whatever the fields of a record are, it is counted, and nothing else.
    #[test]
    fn strange_records_are_counted(fields in prop::collection::vec("(-?[0-9]{0,20}(\\.[0-9]{0,12})?|.{0,12}|2024-[0-9]{2}-[0-9]{2} [0-9:.Z+]{0,20}|\\[[0-9,]*\\])", 60)) {
        for file in ["azure.csv", "azure_images.csv", "vidur.csv", "splitwise_sim.csv", "burstgpt_sessions.csv", "blis_v3.csv", "chunk-3-trace.csv", "plimsoll.csv", "outcomes.csv"] {
            let text = golden(file);
            let columns: Vec<String> =
                text.lines().next().expect("a heading").split(',').map(str::to_owned).collect();
            let heading = Heading { file, columns: &columns };
            let mut page = page(file);
            for format in TRACE_TABLES {
                let Some(reader) = (format.open)(&heading) else { continue };
                for shift in 0..8 {
                    let fields = fields.iter().cycle().skip(shift * 7).take(columns.len());
                    let record = csv::StringRecord::from_iter(fields);
                    reader.record(&Record { line: 2, fields: &record }, &mut page);
                }
                prop_assert_eq!(page.read, 8);
            }
        }
    }

    /// A value of a known document is replaced by another: whatever comes of it, nothing breaks.
    #[test]
    fn strange_json_is_answered(strange in json(), at in 0usize..40) {
        for file in ["mooncake.jsonl", "bailian.jsonl", "agent.json", "chunk-3-dataset.json", "plimsoll.jsonl", "outcomes.jsonl"] {
            let text = golden(file);
            let first = if file.ends_with("json") { &text } else { text.lines().next().expect("one") };
            let first: Value = serde_json::from_str(first).expect("JSON");
            let mut spoilt = first.clone();
            replace(&mut spoilt, &mut { at }, &strange);
            for format in TRACE_JSONS {
                let mut page = page(file);
                for opened in [&first, &spoilt, &strange] {
                    if let Some(reader) = (format.open)(file, opened) {
                        reader.record(1, "text", &spoilt, &mut page);
                        reader.record(2, "text", &strange, &mut page);
                    }
                }
                let pairs = map(&[("ts_arrival", "a:ms"), ("prompt_tokens", "a.b"), ("blocks", "b.0")]);
                let mapped = mapped_json(&pairs).expect("a reader");
                mapped.record(3, "text", &strange, &mut page);
                let kept = page.requests.len() + page.series.len() + page.outcomes.len();
                prop_assert_eq!(page.read as usize, kept + page.rejects.len());
            }
        }
    }
}

/// Any JSON, with the keys that readers ask for.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(.{0,8}|\\{[0-9.:, ]*\\}|[0-9.e-]{0,9})".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let key = "(a|b|t|in|out|0|requests|type|hash_ids|input_tokens|block_tokens)";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Replaces the value that many steps from the root.
fn replace(value: &mut Value, at: &mut usize, strange: &Value) {
    if *at == 0 {
        *value = strange.clone();
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, strange)),
        Value::Object(object) => object.values_mut().for_each(|item| replace(item, at, strange)),
        _ => {}
    }
}

/// Rows, sums, sessions, clients and windows of every published file that lies beside us.
#[test]
fn public_files_have_their_rows() {
    let Some(stats) = shared("reference_stats.json") else { return };
    let stats: Value = serde_json::from_slice(&stats).expect("JSON");
    let unpacked = |file: &str| {
        let bytes = shared(file).expect("it was there");
        let mut text = String::new();
        let read = if file.ends_with(".gz") {
            flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)
        } else {
            bytes.as_slice().read_to_string(&mut text)
        };
        read.expect(file);
        text
    };
    let request_files = [
        ("AzureLLMInferenceTrace_code.first75pct.csv.gz", "azure_2023_code", 7_717),
        ("AzureLLMInferenceTrace_conv.first75pct.csv.gz", "azure_2023_conv", 15_460),
        ("vidur_splitwise_code.first75pct.csv.gz", "azure_2023_code", 7_717),
        ("vidur_splitwise_conv.first75pct.csv.gz", "azure_2023_conv", 15_460),
        (
            "vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv.gz",
            "vidur_arxiv_summarization",
            28_257,
        ),
        ("mooncake_conversation_trace.first75pct.jsonl.gz", "mooncake_conversation", 8_777),
        ("mooncake_synthetic_trace.first75pct.jsonl.gz", "mooncake_synthetic", 2_947),
        ("mooncake_arxiv_trace.first1000.jsonl.gz", "mooncake_arxiv_first1000", 1_000),
        ("BurstGPT_1.first43rows.csv", "", 43),
        ("BurstGPT_3.first58rows.csv", "", 58),
    ];
    for (file, figures, rows) in request_files {
        let page = read(file.trim_end_matches(".gz"), &unpacked(file), None, None);
        assert_eq!((page.requests.len(), page.rejects.len()), (rows, 0), "{file}");
        let figures = &stats["traces"][figures];
        let requests = Row::of_columns(&page.requests.finish());
        let sum = |of: fn(&Row) -> Option<u32>| -> f64 {
            requests.iter().filter_map(of).map(f64::from).sum()
        };
        if figures.is_object() {
            assert_eq!(figures["rows"], rows, "{file}");
            assert_eq!(figures["prompt"]["sum"], sum(|row| row.prompt_tokens), "{file}");
            assert_eq!(figures["output"]["sum"], sum(|row| row.output_tokens), "{file}");
        }
        let with = |has: fn(&Row) -> bool| requests.iter().filter(|row| has(row)).count();
        let clocked = if file.contains("arxiv_summ") { 0 } else { rows };
        assert_eq!(with(|row| row.ts_arrival.is_some() && row.clock.is_some()), clocked, "{file}");
        let failed = if file.starts_with("BurstGPT_1") { 4 } else { 0 };
        assert_eq!(with(|row| row.status.as_deref() == Some("failed")), failed, "{file}");
    }
}

#[test]
fn public_clients_have_their_windows() {
    let Some(stats) = shared("reference_stats.json") else { return };
    let stats: Value = serde_json::from_slice(&stats).expect("JSON");
    for (which, name) in [
        ("m-small", "servegen_language_m_small"),
        ("m-large", "servegen_language_m_large"),
        ("deepseek-r1", "servegen_reason_deepseek_r1"),
    ] {
        let Some(bytes) = shared(&format!("servegen_{which}.first75pct.tar.gz")) else { return };
        let figures = &stats["traces"][name];
        // Rates by window and lengths by block, of each client.
        let (mut clients, mut with_lengths, mut active) = (0, 0, 0);
        let (mut requests, mut known, mut prompts, mut outputs, mut reasons) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        let mut rates = std::collections::BTreeMap::new();
        let mut lengths = std::collections::BTreeMap::new();
        each_file(flate2::read::GzDecoder::new(bytes.as_slice()), |file, text| {
            let page = read(file, text, None, None);
            assert!(page.rejects.is_empty(), "{file}: {:?}", page.rejects);
            let class = page.series[0].class.clone().expect("a class");
            let kind = if file.ends_with("csv") { &mut rates } else { &mut lengths };
            assert!(kind.insert(class, page.series).is_none(), "{file}");
        });
        for (class, windows) in &rates {
            clients += 1;
            assert_eq!(figures["windows"], windows.len(), "{class}");
            let blocks: &[_] = lengths.get(class).map_or(&[], Vec::as_slice);
            with_lengths += u32::from(blocks.iter().any(|block| block.prompt_mean.is_some()));
            for window in windows {
                let count = window.requests.expect("a count");
                active += u32::from(count > 0.0);
                assert_eq!(window.cv.is_some() && window.family.is_some(), count > 0.0, "{class}");
                requests += count;
                let within = |block: &&crate::row::SeriesRow| {
                    let since = window.start.expect("a start") - block.start.expect("a start");
                    (0..21_600_000_000_000).contains(&since)
                };
                let Some(block) = blocks.iter().find(within) else { continue };
                if let (Some(prompt), Some(output)) = (block.prompt_mean, block.output_mean) {
                    known += count;
                    prompts += count * prompt;
                    outputs += count * output;
                    reasons += count * block.reason_share.unwrap_or(0.0);
                }
            }
        }
        assert_eq!(figures["clients"], clients, "{which}");
        assert_eq!(figures["active_client_windows"], active, "{which}");
        assert_eq!(figures["clients_with_length_data"], with_lengths, "{which}");
        let near = |figure: &Value, found: f64| {
            let figure = figure.as_f64().expect("a figure");
            assert!(
                (found - figure).abs() <= 1e-8 * figure.abs(),
                "{which}: {found}, not {figure}"
            );
        };
        let seconds = figures["windows"].as_f64().expect("windows") * 600.0;
        near(&figures["rate_rps"]["mean"], requests / seconds);
        if with_lengths > 0 {
            near(&figures["share_of_requests_with_length_data"], known / requests);
            near(&figures["mean_input_tokens"], prompts / known);
            near(&figures["mean_output_tokens"], outputs / known);
        }
        if which == "deepseek-r1" {
            near(&figures["mean_reason_ratio"], reasons / known);
        }
    }
}

#[test]
fn public_sessions_have_their_requests() {
    let Some(stats) = shared("reference_stats.json") else { return };
    let Some(bytes) = shared("kv_cache_tester_sessions_0001-0554.tar.zst") else { return };
    let stats: Value = serde_json::from_slice(&stats).expect("JSON");
    let figures = &stats["traces"]["kv_cache_tester_sessions"];
    let mut unpacked = zstd::Decoder::new(bytes.as_slice()).expect("packed with zstd");
    unpacked.window_log_max(27).expect("a window");
    let (mut sessions, mut requests, mut prompt, mut output, mut ttft, mut e2e) =
        (0, 0, 0u64, 0u64, 0, 0.0);
    each_file(unpacked, |file, text| {
        let page = read(file, text, None, None);
        assert!(page.rejects.is_empty(), "{file}: {:?}", page.rejects);
        sessions += 1;
        requests += page.requests.len();
        for row in Row::of_columns(&page.requests.finish()) {
            prompt += row.prompt_tokens.map_or(0, u64::from);
            output += row.output_tokens.map_or(0, u64::from);
            ttft += usize::from(row.ttft_s.is_some());
            e2e += row.e2e_s.unwrap_or(0.0);
        }
    });
    assert_eq!(
        (figures["sessions"].as_u64(), figures["requests"].as_u64()),
        (Some(sessions), Some(requests as u64))
    );
    assert_eq!(figures["prompt"]["sum"], prompt as f64);
    assert_eq!(figures["output"]["sum"], output as f64);
    assert_eq!(figures["n_ttft"], ttft);
    assert!((e2e - figures["api_time_s"]["sum"].as_f64().expect("a sum")).abs() < 1e-3, "{e2e}");
}

fn each_file(archive: impl Read, mut file: impl FnMut(&str, &str)) {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        if !text.is_empty() {
            file(&path, &text);
        }
    }
}

/// `../shared`, where traces lie that are not ours to ship.
fn shared(name: &str) -> Option<Vec<u8>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    if !root.is_dir() {
        // Past the test harness, which would hide it: a skipped test must be seen.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no {name} at {} (set PLIMSOLL_SHARED)",
            root.display()
        );
        return None;
    }
    let path = root.join("data/traces").join(name);
    Some(std::fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}")))
}
