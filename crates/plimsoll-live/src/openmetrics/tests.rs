use std::fmt::Write as _;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::Sample;

fn read(text: &str) -> Exposition {
    Exposition::read("metrics.txt", text.as_bytes(), None).expect("read from memory")
}

fn shown(text: &str) -> String {
    let read = read(text);
    let mut shown = String::new();
    for Series { labels, samples } in read.series() {
        let samples: Vec<String> =
            samples.iter().map(|own| format!("{}={:?}", own.at_ms, own.value)).collect();
        writeln!(shown, "{labels:?} {}", samples.join(" ")).expect("a string grows");
    }
    for BadLine { line, reason, .. } in read.bad() {
        writeln!(shown, "line {line} {reason}").expect("a string grows");
    }
    for note in read.notes() {
        writeln!(shown, "note: {note}").expect("a string grows");
    }
    shown
}

#[test]
fn openmetrics_counts_seconds() {
    let text = "# TYPE vllm:prompt_tokens counter\n\
        # HELP vllm:prompt_tokens Prompt \\\"tokens\\\".\n\
        vllm:prompt_tokens_total{model_name=\"a\\\"b\\\\c\\nd\",engine=\"0\"} 12 1700000000.25\n\
        vllm:prompt_tokens_total{engine=\"0\", model_name=\"a\\\"b\\\\c\\nd\",} 1.5e1 1700000015.25\n\
        ttft_bucket{le=\"0.5\"} 3 1700000000 # {trace_id=\"a } b\"} 0.4 1700000000.1\n\
        gauge NaN 1700000000\n\
        # EOF\n\
        late 1 1700000000\n";
    assert_snapshot!(shown(text), @r#"
    {"__name__": "gauge"} 1700000000000=None
    {"__name__": "ttft_bucket", "le": "0.5"} 1700000000000=Some(3.0)
    {"__name__": "vllm:prompt_tokens_total", "engine": "0", "model_name": "a\"b\\c\nd"} 1700000000250=Some(12.0) 1700000015250=Some(15.0)
    line 8 comes after `# EOF`
    "#);
    let read = read(text);
    let family = &read.families()["vllm:prompt_tokens"];
    assert_eq!((family.kind.as_str(), family.help.as_str()), ("counter", "Prompt \"tokens\"."));
}

#[test]
fn the_older_format_counts_milliseconds() {
    assert_snapshot!(shown("up{job=\"x\"} 1 1700000000250\nup{job=\"x\"} 0 1700000000000\n"), @r#"{"__name__": "up", "job": "x"} 1700000000000=Some(0.0) 1700000000250=Some(1.0)"#);
    // Seconds without an end are a file that was cut off.
    assert_snapshot!(shown("up 1 1700000000\n"), @r#"
    {"__name__": "up"} 1700000000000=Some(1.0)
    note: metrics.txt: times are in seconds, but the file does not end with `# EOF`: it may be cut off
    "#);
}

#[test]
fn bad_lines_are_told_with_their_numbers() {
    let text = "up 1\nup{a=\"1\" 1 5\n{} 1 5\n9up 1 5\nup{a=\"1\",a=\"2\"} 1 5\nup{a=1} 1 5\nup\nup one 5\nup 1 soon\nup 1 5 6\nup{a=\"1\"b=\"2\"} 1 5\n# TYPE up\n\u{e9} 1 5\nup 2 5\n# EOF";
    assert_snapshot!(shown(text), @r#"
    {"__name__": "up"} 5000=Some(2.0)
    line 1 has no time
    line 2 has labels without an end
    line 3 `` is no name of a metric
    line 4 `9up` is no name of a metric
    line 5 has the label `a` twice
    line 6 has a label without quotes
    line 7 has no value
    line 8 `one` is no number
    line 9 `soon` is no time
    line 10 `6` follows its time
    line 11 has labels without a comma between them
    line 12 `# TYPE` has a name and a kind
    line 13 begins with no name
    "#);
    let now = Exposition::read("metrics.txt", "up 1\n".as_bytes(), Some(7)).expect("in memory");
    assert_eq!(now.span_ms(), Some((7, 7)));
}

#[test]
fn a_line_without_an_end_is_not_held() {
    let text = format!("up{{a=\"{}\"}} 1 5\nup 1 5\n# EOF\n", "x".repeat(3 << 20));
    let read = read(&text);
    assert_eq!((read.lines(), read.bad_lines(), read.series().len()), (3, 1, 1));
}

fn series() -> impl Strategy<Value = Vec<Series>> {
    let labels = prop::collection::btree_map(
        "[a-z_][a-z0-9_]{0,4}",
        "\\PC{1,6}|[\\\\\"\n,{}#= ]{1,4}",
        0..3,
    );
    let value = prop::option::of(-1e12..1e12f64);
    let samples = prop::collection::btree_map(0i64..4_000_000_000_000, value, 1..4);
    let one =
        ("[a-z_:][a-z0-9_:]{0,6}", labels, samples).prop_map(|(name, mut labels, samples)| {
            labels.insert("__name__".to_owned(), name);
            let sample = |(at_ms, value)| Sample { at_ms, value };
            (labels, samples.into_iter().map(sample).collect())
        });
    prop::collection::btree_map(0..9u8, one, 0..5).prop_map(|all| {
        let all: BTreeMap<Labels, Vec<Sample>> = all.into_values().collect();
        let mut all: Vec<Series> =
            all.into_iter().map(|(labels, samples)| Series { labels, samples }).collect();
        let name = |own: &Series| own.labels["__name__"].clone();
        all.sort_by_key(|own| (name(own), own.labels.clone()));
        all
    })
}

proptest! {
    /// What is written is read back, whatever labels hold.
    #[test]
    fn written_and_read_back(series in series()) {
        let mut text = Vec::new();
        encode(&mut text, &BTreeMap::new(), &series).expect("written to memory");
        let read = Exposition::read("m", text.as_slice(), None).expect("read from memory");
        prop_assert_eq!(read.bad(), &[]);
        let mut found = read.series();
        found.sort_by_key(|own| (own.labels["__name__"].clone(), own.labels.clone()));
        prop_assert_eq!(found, series);
    }

    /// No text makes it panic, and every line that is no comment is a sample or a bad line.
    #[test]
    fn any_text_is_read(text in "([a-z{}=\"\\\\,# 0-9.\n]|\\PC){0,80}") {
        let read = Exposition::read("m", text.as_bytes(), Some(0)).expect("read from memory");
        prop_assert!(read.bad_lines() <= read.lines());
    }

    /// Nor do any bytes.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Exposition::read("m", bytes.as_slice(), Some(0)).is_ok());
    }
}
