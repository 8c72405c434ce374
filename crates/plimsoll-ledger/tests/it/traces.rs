//! Traces in every shape, and the rows and files that are none.

use std::io::Write as _;
use std::path::PathBuf;

use plimsoll_ledger::{Format, Rejects, Trace, TraceError, read_trace, trace_of_run};
use plimsoll_stats::Seed;
use plimsoll_study::{EngineRun, Origin, RunRequest, RunSetup, SharedPrefix};
use plimsoll_workload::Sharing;
use proptest::prelude::*;

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens
2024-01-31 23:59:59.9999999,700,20
2024-02-01 00:00:00.0000001,41,3
2024-02-01 00:00:02.5000000,1200,400";

const VIDUR: &str = "arrived_at,num_prefill_tokens,num_decode_tokens
0.0,700,20
0.25,41.0,3
10.5,1200,400
";

const SPLITWISE: &str =
    "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size
0,2,0,3.0,1,700,20
1,2,1,3.5,1,41,3
";

const BURST: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
7,Small,100,20,120,Conversation log
9,Large,0,0,0,Conversation log
30,Large,300,40,340,API log
31,Small,55,0,55,API log
40,Small,100,20,120,Conversation log
";

const BURST_SESSIONS: &str =
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19000000.5,ab-1,4,Small,100,20,120,Conversation log
19000002.0,,4,\"Large, new\",10,2,12,API log
19000004.0,ab-1,4,Small,150,20,170,Conversation log
";

const MOONCAKE: &str = r#"{"timestamp": 0, "input_length": 1300, "output_length": 20, "hash_ids": [40, 41, 42]}
{"timestamp": 1500, "input_length": 1024, "output_length": 3, "hash_ids": [40, 43]}

{"timestamp": 2000.5, "input_length": 10, "output_length": 1, "hash_ids": [18446744073709551615]}
"#;

const BAILIAN: &str = r#"{"chat_id": 1, "parent_chat_id": -1, "timestamp": 60.25, "input_length": 30, "output_length": 20, "type": "text", "turn": 1, "hash_ids": [5, 6]}
{"chat_id": 2, "parent_chat_id": -1, "timestamp": 61.0, "input_length": 16, "output_length": 20, "type": "search", "turn": 1, "hash_ids": [9]}
{"chat_id": 3, "parent_chat_id": 1, "timestamp": 62.25, "input_length": 70, "output_length": 20, "type": "text", "turn": 2, "hash_ids": [5, 6, 7]}
"#;

fn read(text: &str) -> (Trace, Rejects) {
    read_trace(text.as_bytes(), "log", Format::Auto).unwrap_or_else(|e| panic!("{e}"))
}

/// (at, prompt, output, class) of each request.
fn rows(trace: &Trace) -> Vec<(f64, u64, u64, &str)> {
    let class = |class: u16| trace.classes()[usize::from(class)].as_str();
    let requests = trace.requests().iter();
    requests.map(|r| (r.at, r.prompt.get(), r.output.get(), class(r.class))).collect()
}

#[test]
fn formats_are_told_by_their_first_line() {
    let check = |text: &str, expect: &[(f64, u64, u64, &str)], note: &str| {
        let (trace, _) = read(text);
        assert_eq!(rows(&trace), expect);
        assert_eq!(trace.notes()[0], note);
        assert!(trace.requests().iter().all(|r| r.cached.is_none()), "unknown is not zero");
    };
    let azure = [(0.0, 700, 20, "all"), (2e-7, 41, 3, "all"), (2.500_000_1, 1200, 400, "all")];
    check(AZURE, &azure, "log: 3 requests of Azure");
    check(
        VIDUR,
        &[(0.0, 700, 20, "all"), (0.25, 41, 3, "all"), (10.5, 1200, 400, "all")],
        "log: 3 requests of Vidur",
    );
    check(SPLITWISE, &[(0.0, 700, 20, "0"), (0.5, 41, 3, "1")], "log: 2 requests of SplitwiseSim");
    let (small, large) = ("Small, Conversation log", "Large, API log");
    check(
        BURST,
        &[(0.0, 100, 20, small), (23.0, 300, 40, large), (33.0, 100, 20, small)],
        "log: 3 requests of BurstGPT",
    );
    check(
        BURST_SESSIONS,
        &[(0.0, 100, 20, small), (1.5, 10, 2, "Large, new, API log"), (3.5, 150, 20, small)],
        "log: 3 requests of BurstGPT",
    );
    check(
        MOONCAKE,
        &[(0.0, 1300, 20, "all"), (1.5, 1024, 3, "all"), (2.0005, 10, 1, "all")],
        "log: 3 requests of Mooncake",
    );
    check(
        BAILIAN,
        &[(0.0, 30, 20, "text"), (0.75, 16, 20, "search"), (2.0, 70, 20, "text")],
        "log: 3 requests of Qwen-Bailian",
    );
}

#[test]
fn what_prompts_share_is_kept() {
    let (trace, _) = read(MOONCAKE);
    let content: Vec<&[u64]> = trace.requests().iter().map(|r| r.content.as_slice()).collect();
    assert_eq!(content, [&[0, 1, 2][..], &[0, 3], &[4]]);
    assert_eq!(trace.block_tokens(), 512);
    let (trace, _) = read(BAILIAN);
    let sessions: Vec<_> = trace.requests().iter().map(|r| r.session).collect();
    assert_eq!(sessions, [Some(0), Some(1), Some(0)]);
    assert_eq!(trace.block_tokens(), 16);
    let (trace, _) = read(BURST_SESSIONS);
    let sessions: Vec<_> = trace.requests().iter().map(|r| r.session).collect();
    assert_eq!(sessions, [Some(0), None, Some(0)]);
    assert!(trace.notes().contains(&"not read: `Elapsed time`, `Total tokens`".to_owned()));
}

/// Packed, with a mark at the beginning, with other line ends, without a last one.
#[test]
fn dress_does_not_matter() {
    let (plain, _) = read(AZURE);
    for text in [format!("\u{feff}{AZURE}"), AZURE.replace('\n', "\r\n"), format!("\n{AZURE}\n\n")]
    {
        assert_eq!(read(&text).0, plain);
    }
    let pack = |text: &str| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).expect("packed");
        gz.finish().expect("packed")
    };
    let packed = pack(AZURE);
    let name = |bytes: &[u8]| read_trace(bytes, "log", Format::Auto);
    assert_eq!(name(&packed).expect("a trace").0, plain);
    // Two packed files one after the other are one.
    let (heading, rest) = AZURE.split_at(AZURE.find('\n').expect("a heading") + 1);
    assert_eq!(name(&[pack(heading), pack(rest)].concat()).expect("a trace").0, plain);
    let cut = name(&packed[..packed.len() - 12]).expect_err("cut short");
    assert!(matches!(cut, TraceError::Unreadable { .. }), "{cut}");
    assert!(cut.help().is_some());
}

#[test]
fn rows_that_are_wrong_are_counted() {
    let check = |text: &str, expect: &[&str]| {
        let (trace, rejects) = read(text);
        let said: Vec<String> = rejects.rows().iter().map(ToString::to_string).collect();
        assert_eq!(said, expect);
        assert_eq!(trace.len() + rejects.len(), usize::try_from(rejects.read()).expect("few"));
        assert_eq!(trace.notes().iter().any(|note| note.contains("rejected")), !expect.is_empty());
    };
    check(AZURE, &[]);
    check(
        BURST,
        &[
            "line 3: `Response tokens` is zero: the request failed",
            "line 5: `Response tokens` is zero: the request failed",
        ],
    );
    check(
        &format!(
            "{VIDUR}11.0,12\n-1,5,5\n12,-5,5\n13,5,4294967296\n14,5,0\n15,0,5\n16,,5\n1e12,5,5\nsoon,5,5\n17,5.5,5\n"
        ),
        &[
            "line 5: has 2 fields, not 3",
            "line 6: `arrived_at` is `-1`, below zero",
            "line 7: `num_prefill_tokens` is `-5`, below zero",
            "line 8: `num_decode_tokens` is `4294967296`, more than can be",
            "line 9: `num_decode_tokens` is zero: nothing to serve",
            "line 10: `num_prefill_tokens` is zero: nothing to serve",
            "line 11: `num_prefill_tokens` is missing",
            "line 12: `arrived_at` is `1e12`, more than can be",
            "line 13: `arrived_at` is `soon`, which cannot be read",
            "line 14: `num_prefill_tokens` is `5.5`, which cannot be read",
        ],
    );
    let bad = r#"{"input_length": 5, "output_length": 1}
[1]
{"timestamp": 1, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 1, "input_length": 512, "output_length": 1, "hash_ids": [1.5]}
{"timestamp": 1, "input_length": 512, "output_length": {}}
{"timestamp": 1, "input_len"#;
    check(
        &format!("{MOONCAKE}{bad}"),
        &[
            "line 5: `timestamp` is missing",
            "line 6: is no JSON object",
            "line 7: `hash_ids` names 2 blocks of 512 tokens in a prompt of 512",
            "line 8: `hash_ids` is `1.5`, which cannot be read",
            "line 9: `output_length` is `{}`, which cannot be read",
            "line 10: is not JSON: EOF while parsing a string at line 1 column 27",
        ],
    );
    let rejects = read(BURST).1;
    let reasons: Vec<_> = rejects.reasons().iter().map(|(first, n)| (first.line, *n)).collect();
    assert_eq!(reasons, [(3, 2)]);
}

#[test]
fn unsorted_stamps_are_sorted_and_noted() {
    let (trace, rejects) = read(&format!("{VIDUR}1.0,5,5\n2.0,6,5\n"));
    assert!(rejects.is_empty());
    let prompts: Vec<u64> = trace.requests().iter().map(|r| r.prompt.get()).collect();
    assert_eq!(prompts, [700, 41, 5, 6, 1200]);
    let note = "2 rows were stamped before a row above them; sorted by time";
    assert!(trace.notes().contains(&note.to_owned()), "{:?}", trace.notes());
}

#[test]
fn files_that_are_no_traces_are_named() {
    let check = |bytes: &[u8], format: Format, message: &str, help: &str| {
        let error = read_trace(bytes, "log", format).expect_err("no trace");
        assert_eq!(error.to_string(), message);
        assert!(error.help().unwrap_or_default().contains(help), "{:?}", error.help());
    };
    let auto = Format::Auto;
    check(b"", auto, "log: is empty", "");
    check(b" \n\n", auto, "log: is empty", "");
    let begins = "log: no trace of requests: it is text that begins with `a,b`";
    check(b"a,b\n1,2\n", auto, begins, "Mooncake");
    let keys = "log: no trace of requests: it is JSON lines of `a`, `b`";
    check(b"{\"a\":1,\"b\":2}\n", auto, keys, "Mooncake");
    let pretty = "log: no trace of requests: it is JSON that is not one object a line";
    check(b"{\n\"a\": 1}\n", auto, pretty, "Mooncake");
    let bytes = "log: no trace of requests: it is bytes that are no text";
    check(b"\xff\xfe\x00", auto, bytes, "Mooncake");
    let lengths =
        "log: no trace of requests: it is lengths without arrivals: it has no column `arrived_at`";
    check(
        b"num_prefill_tokens,num_decode_tokens,pd_ratio\n5,5,1\n",
        auto,
        lengths,
        "when requests came",
    );
    let run = "log: no trace of requests: it is step logs of an engine";
    check(
        b"{\"schema\":\"plimsoll-engine-run/1\"}\n",
        auto,
        run,
        "plimsoll simulate log --run NAME",
    );
    let column = "log: a trace of Azure has the column `TIMESTAMP`; this file has `arrived_at,num_prefill_tokens,num_decode_tokens`";
    check(VIDUR.as_bytes(), Format::Azure, column, "leave the format out");
    let table = "log: no trace of requests: it is a table, and Mooncake writes JSON lines";
    check(VIDUR.as_bytes(), Format::Mooncake, table, "");
    let json = "log: no trace of requests: it is JSON lines, and Vidur writes tables";
    check(MOONCAKE.as_bytes(), Format::Vidur, json, "");
    let heading = AZURE.lines().next().expect("a heading").as_bytes();
    check(heading, auto, "log: none of its 0 rows is a request", "");
    let none = "log: none of its 1 rows is a request, such as line 2: has 1 fields, not 3";
    check(b"TIMESTAMP,ContextTokens,GeneratedTokens\nx\n", auto, none, "");
    let zstd = "log: no trace of requests: it is packed with zstd, which must be unpacked before";
    check(b"\x28\xb5\x2f\xfd\x00", auto, zstd, "");
}

/// An endless line is given up on, not held.
#[test]
fn no_line_is_endless() {
    let endless = std::io::repeat(b'7');
    let error = read_trace(endless, "log", Format::Auto).expect_err("no trace");
    assert_eq!(error.to_string(), "log: line 1 is longer than 16 MiB, which no row of a log is");
}

/// Two prompts of one group of 40 tokens: two whole blocks of 16 in common, and nothing with the third.
#[test]
fn a_measured_run_is_a_trace() {
    let request = |at: f64, group: Option<u64>| RunRequest {
        at,
        prompt: 100,
        output: 8,
        cached: 32,
        prefix: group.map(|group| SharedPrefix { group, tokens: 40 }),
        kind: None,
        ttft: 0.1,
        e2e: 0.2,
        itl: Vec::new(),
    };
    let run = EngineRun {
        origin: Origin { file: "log.jsonl".to_owned(), row: 2, tool: "plimsoll engine run" },
        run: "closed".to_owned(),
        setup: RunSetup {
            model: String::new(),
            accelerator: String::new(),
            engine: String::new(),
            version: String::new(),
            weights: String::new(),
            kv_dtype: String::new(),
            tensor_parallel: 1,
            max_num_seqs: 128,
            max_num_batched_tokens: 2048,
            kv_tokens: 65_536,
            block_size: 16,
            prefix_caching: true,
        },
        clients: Some(2),
        promise: None,
        gaps: None,
        requests: vec![
            request(1.0, Some(9)),
            request(2.0, Some(9)),
            request(3.0, Some(4)),
            request(3.5, None),
        ],
        steps: Vec::new(),
    };
    let trace = trace_of_run(&run).expect("a trace");
    assert_eq!((trace.len(), trace.span(), trace.block_tokens()), (4, 2.5, 16));
    let of = |i: usize| &trace.requests()[i].content;
    assert_eq!((of(0).len(), of(0) == of(1), of(3).len()), (2, true, 0));
    assert!(of(0).iter().all(|block| !of(2).contains(block)));
    assert_eq!(trace.requests()[0].cached.map(|c| c.get()), Some(32));
    assert!(trace.notes()[1].starts_with("a closed loop of 2 clients"), "{:?}", trace.notes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(400)))]

    /// Any bytes get an answer, and so does a known file with a piece of it replaced by others.
    #[test]
    fn strangers_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..40), which in 0usize..7, at in 0.0f64..1.0, format in 0usize..3) {
        let known = [AZURE, VIDUR, SPLITWISE, BURST, BURST_SESSIONS, MOONCAKE, BAILIAN][which].as_bytes();
        let cut = (at * known.len() as f64) as usize;
        let rest = (cut + bytes.len()).min(known.len());
        let spoilt = [&known[..cut], &bytes, &known[rest..]].concat();
        let format = [Format::Auto, Format::Mooncake, Format::BurstGpt][format];
        for bytes in [bytes.as_slice(), &spoilt] {
            match read_trace(bytes, "log", format) {
                Ok((trace, rejects)) => prop_assert_eq!(trace.len() as u64 + rejects.len() as u64, rejects.read()),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// Rows, span and sums of four public traces, as their reference has them.
#[test]
fn public_traces_have_their_figures() {
    let Some(stats) = shared("reference_stats.json") else { return };
    let stats: serde_json::Value = serde_json::from_slice(&stats).expect("JSON");
    for (name, tick) in [
        ("azure_2023_code", None),
        ("azure_2023_conv", None),
        ("mooncake_conversation", Some(3.0)),
        ("mooncake_synthetic", None),
        ("mooncake_arxiv_first1000", Some(3.053)),
    ] {
        let figures = &stats["traces"][name];
        let Some(bytes) = shared(figures["file"].as_str().expect("a file")) else { return };
        let (trace, rejects) = read_trace(bytes.as_slice(), name, Format::Auto).expect(name);
        assert!(rejects.is_empty(), "{name}: {:?}", rejects.reasons());
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        assert_eq!(trace.len() as f64, number(&figures["rows"]), "{name}: rows");
        assert_eq!(trace.span(), number(&figures["span_s"]), "{name}: span");
        assert_eq!(trace.prompt_tokens().get() as f64, number(&figures["prompt"]["sum"]), "{name}");
        assert_eq!(trace.output_tokens().get() as f64, number(&figures["output"]["sum"]), "{name}");
        let found = trace.tick().map(|t| (t.seconds * 1e3).round() / 1e3);
        assert_eq!(found, tick, "{name}: tick");
        assert_eq!(trace.notes().iter().any(|n| n.contains("tick")), tick.is_some());
    }
}

/// The coefficient of variation of distances falls from 3.0 to 1.0 when ticks are spread: the bursts were the clock's.
#[test]
fn spread_ticks_are_poisson() {
    let Some(bytes) = shared("mooncake_conversation_trace.first75pct.jsonl.gz") else { return };
    let (trace, _) = read_trace(bytes.as_slice(), "mooncake", Format::Auto).expect("a trace");
    let cv = |trace: &Trace| {
        let gaps: Vec<f64> = trace.requests().windows(2).map(|w| w[1].at - w[0].at).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n).sqrt() / mean
    };
    assert!((cv(&trace) - 2.988).abs() < 1e-3, "{}", cv(&trace));
    let (spread, _) = trace.spread_ticks(Seed::new(7)).expect("a tick");
    assert!((cv(&spread) - 1.01).abs() < 0.03, "{}", cv(&spread));
    // Twice the users share nothing with each other: as many texts again.
    let distinct = |trace: &Trace| {
        let blocks = trace.requests().iter().flat_map(|r| r.content.iter().copied());
        blocks.collect::<std::collections::BTreeSet<u64>>().len()
    };
    assert_eq!(distinct(&spread), 138_395);
    let twice = spread.scale(2.0, Sharing::Own, Seed::new(7)).expect("a scale");
    assert_eq!((twice.len(), distinct(&twice)), (2 * 8_777, 2 * 138_395));
}

/// The same requests in another format give the same trace, to the microsecond it keeps.
#[test]
fn vidur_is_azure() {
    for which in ["code", "conv"] {
        let azure = format!("AzureLLMInferenceTrace_{which}.first75pct.csv.gz");
        let vidur = format!("vidur_splitwise_{which}.first75pct.csv.gz");
        let (Some(azure), Some(vidur)) = (shared(&azure), shared(&vidur)) else { return };
        let read = |bytes: &[u8]| read_trace(bytes, which, Format::Auto).expect("a trace").0;
        let (azure, vidur) = (read(&azure), read(&vidur));
        assert_eq!(azure.len(), vidur.len());
        for (a, b) in azure.requests().iter().zip(vidur.requests()) {
            assert_eq!((a.prompt, a.output), (b.prompt, b.output));
            assert!((a.at - b.at).abs() < 1e-6, "{a:?} {b:?}");
        }
    }
}

/// First rows of files that have failures, and sessions.
#[test]
fn burst_gpt_keeps_its_failures() {
    for (file, rows, failed, sessions) in
        [("BurstGPT_1.first43rows.csv", 43, 4, false), ("BurstGPT_3.first58rows.csv", 58, 0, true)]
    {
        let Some(bytes) = shared(file) else { return };
        let (trace, rejects) = read_trace(bytes.as_slice(), file, Format::Auto).expect("a trace");
        assert_eq!((rejects.read(), rejects.len()), (rows, failed), "{:?}", rejects.reasons());
        assert_eq!(trace.requests().iter().any(|r| r.session.is_some()), sessions);
        assert_eq!(trace.tick().map(|tick| tick.seconds), Some(1.0));
    }
    // Lengths without arrivals are no trace.
    let file = "vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv.gz";
    let Some(bytes) = shared(file) else { return };
    let error = read_trace(bytes.as_slice(), file, Format::Auto).expect_err("no trace");
    assert!(error.to_string().contains("lengths without arrivals"), "{error}");
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

/// What has a clock is replayed, whatever it is written in.
#[test]
fn every_format_with_a_clock_is_replayed() {
    let check = |file: &str, note: &str, expect: &[(f64, u64, u64, &str)]| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
        let text = std::fs::read_to_string(path).expect(file);
        // A session is one document, and a line of a log.
        let text = if file.ends_with(".json") { text.replace('\n', " ") } else { text };
        let (trace, _) = read_trace(text.as_bytes(), file, Format::Auto).expect(file);
        assert_eq!(rows(&trace), expect, "{file}");
        assert_eq!(trace.notes()[0], format!("{file}: {} requests of {note}", expect.len()));
        trace
    };
    let images = [(0.0, 700, 12, "text"), (0.25, 5200, 40, "images")];
    check("azure_images.csv", "Azure", &images);
    let (first, last) = ("m8b, critical", "batch");
    let blis = [(0.0, 500, 10, first), (1.0005, 517, 10, first), (3.0, 50, 7, last)];
    let trace = check("blis_v3.csv", "BLIS", &blis);
    assert_eq!(trace.requests()[1].session, trace.requests()[0].session);
    let agent = [(0.0, 200, 25, "large"), (10.5, 70, 5, "small")];
    let trace = check("agent.json", "kv-cache-tester", &agent);
    assert_eq!(trace.block_tokens(), 64);
    let note = "times count from the start of a session: nothing says when sessions came";
    assert!(trace.notes().contains(&note.to_owned()), "{:?}", trace.notes());
    let trace = check("plimsoll.csv", "Plimsoll", &[(0.0, 100, 7, "m")]);
    assert_eq!(trace.requests()[0].cached.map(|cached| cached.get()), Some(32));
    assert_eq!(trace.requests()[0].content, [0, 1]);
    check("plimsoll.jsonl", "Plimsoll", &[(0.0, 100, 7, "all")]);
}
