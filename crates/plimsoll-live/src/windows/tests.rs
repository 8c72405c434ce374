use std::fmt::Write as _;

use insta::assert_snapshot;

use super::*;
use crate::Exposition;

/// A text of samples, a scrape every 15 s from zero on; what is not finite is not written.
#[derive(Default)]
struct Text(String);

impl Text {
    fn put(
        mut self,
        series: &str,
        minutes: std::ops::Range<i64>,
        value: impl Fn(f64) -> f64,
    ) -> Self {
        for at in (minutes.start * 60..minutes.end * 60).step_by(15) {
            let value = value(at as f64);
            if value.is_finite() {
                writeln!(self.0, "{series} {value} {at}").expect("a string grows");
            }
        }
        self
    }

    fn collect(&self, input: &CollectInput) -> Result<Collected, LiveError> {
        let text = format!("{}# EOF\n", self.0);
        let read = Exposition::read("m.om", text.as_bytes(), None).expect("read from memory");
        assert_eq!(read.bad(), &[]);
        collect(&read, input, &mut |_| {})
    }

    /// Demand by the minute: what it is based on, requests, prompt and fresh tokens.
    fn demand(&self, minutes: i64) -> String {
        let found = self.collect(&CollectInput::usual(0, minutes * 60)).expect("windows");
        let mut text = String::new();
        for row in &found.demand {
            let shown = |value: Option<f64>| value.map_or("?".to_owned(), |own| own.to_string());
            writeln!(
                text,
                "{} {} {} {} requests {} prompt {} fresh",
                row.start_s / 60,
                row.model,
                row.basis.name(),
                shown(row.requests),
                shown(row.prompt_tokens),
                shown(row.fresh_tokens),
            )
            .expect("a string grows");
        }
        write!(text, "{} gaps", found.gaps).expect("a string grows");
        text
    }
}

fn vllm(name: &str, pod: &str) -> String {
    format!("vllm:{name}{{model_name=\"a\",pod=\"{pod}\"}}")
}

/// A replica that serves two requests of 100 tokens a minute, from one minute to another.
fn steady(text: Text, pod: &str, minutes: std::ops::Range<i64>, before: f64) -> Text {
    let all = minutes.clone();
    text.put(&vllm("num_requests_running", pod), all.clone(), |_| 1.0)
        .put(&vllm("request_success_total", pod), all.clone(), |at| before + (at / 30.0).floor())
        .put(&vllm("prompt_tokens_total", pod), all, |at| 100.0 * (before + (at / 30.0).floor()))
}

#[test]
fn without_a_queue_demand_is_what_was_carried() {
    // The last scrape is a quarter of a minute before the end: what came after it is not known.
    let text = steady(Text::default(), "x", 0..4, 7.0);
    assert_snapshot!(text.demand(4), @"
    0 a carried 2 requests 200 prompt ? fresh
    1 a carried 2 requests 200 prompt ? fresh
    2 a carried 2 requests 200 prompt ? fresh
    3 a carried 1 requests 100 prompt ? fresh
    0 gaps
    ");
}

#[test]
fn a_queue_that_grows_is_demand() {
    let text = steady(Text::default(), "x", 0..4, 7.0)
        .put(&vllm("num_requests_waiting", "x"), 0..4, |at| (at / 60.0).floor())
        .put(&vllm("prompt_tokens_cached_total", "x"), 0..4, |at| 25.0 * (at / 30.0).floor());
    assert_snapshot!(text.demand(3), @"
    0 a carried_and_queued 3 requests 300 prompt 225 fresh
    1 a carried_and_queued 3 requests 300 prompt 225 fresh
    2 a carried_and_queued 3 requests 300 prompt 225 fresh
    0 gaps
    ");
}

#[test]
fn what_a_gateway_offers_comes_first() {
    let gateway = "llm_d_epp_request_total{model_name=\"a\",pod=\"epp\"}";
    let tokens = "llm_d_epp_request_input_tokens_sum{model_name=\"a\",pod=\"epp\"}";
    // It is scraped for three minutes only.
    let text = steady(Text::default(), "x", 0..6, 0.0).put(gateway, 0..3, |at| at).put(
        tokens,
        0..3,
        |at| 100.0 * at,
    );
    assert_snapshot!(text.demand(5), @"
    0 a offered 60 requests 6000 prompt ? fresh
    1 a offered 60 requests 6000 prompt ? fresh
    2 a offered 45 requests 4500 prompt ? fresh
    3 a carried 2 requests 200 prompt ? fresh
    4 a carried 2 requests 200 prompt ? fresh
    0 gaps
    ");
}

/// A replica that comes counts from its first scrape, one that goes to its last, and one that is away for a while makes gaps.
#[test]
fn replicas_come_and_go() {
    let text = steady(Text::default(), "x", 0..9, 0.0);
    let text = steady(text, "y", 2..5, 1000.0);
    assert_snapshot!(text.demand(8), @"
    0 a carried 2 requests 200 prompt ? fresh
    1 a carried 2 requests 200 prompt ? fresh
    2 a carried 4 requests 400 prompt ? fresh
    3 a carried 4 requests 400 prompt ? fresh
    4 a carried 3 requests 300 prompt ? fresh
    5 a carried 2 requests 200 prompt ? fresh
    6 a carried 2 requests 200 prompt ? fresh
    7 a carried 2 requests 200 prompt ? fresh
    0 gaps
    ");
    let text = steady(text, "y", 7..9, 1000.0);
    assert_snapshot!(text.demand(8), @"
    0 a carried 2 requests 200 prompt ? fresh
    1 a carried 2 requests 200 prompt ? fresh
    2 a carried 4 requests 400 prompt ? fresh
    3 a carried 4 requests 400 prompt ? fresh
    4 a carried 3 requests 300 prompt ? fresh
    7 a carried 4 requests 400 prompt ? fresh
    2 gaps
    ");
}

/// A counter that is higher at the end of a window than at its beginning may have been reset all the same.
#[test]
fn a_reset_between_two_edges_is_seen() {
    let series = vllm("generation_tokens_total", "x");
    let text = steady(Text::default(), "x", 0..4, 0.0)
        .put(&series, 0..4, |at| if at < 90.0 { at } else { (at - 90.0) * 10.0 });
    let found = text.collect(&CollectInput::usual(0, 180)).expect("windows");
    let output: Vec<_> = found.demand.iter().map(|row| row.output_tokens).collect();
    // 60 to 75, and from zero to 300 within the half minute after.
    assert_eq!(output, [Some(60.0), Some(15.0 + 300.0), Some(600.0)]);
}

/// Both spellings at once are one counter, and where one ends the other goes on.
#[test]
fn two_spellings_are_never_added() {
    let counter = |at: f64| 100.0 + at;
    let text = steady(Text::default(), "x", 0..6, 0.0)
        .put(&vllm("generation_tokens_total", "x"), 0..4, counter)
        .put("vllm_generation_tokens_total{model_name=\"a\",pod=\"x\"}", 2..6, counter);
    let found = text.collect(&CollectInput::usual(0, 300)).expect("windows");
    let output: Vec<_> = found.demand.iter().map(|row| row.output_tokens).collect();
    // The last scrape of the first spelling is a quarter of a minute before an edge, and the next window has what came after it.
    assert_eq!(output, [60.0, 60.0, 60.0, 45.0, 75.0].map(Some));
}

/// An engine that makes its counters with the first request has served nothing before.
#[test]
fn a_replica_without_counters_is_idle() {
    let sglang = |name: &str, pod: &str| format!("sglang:{name}{{model_name=\"a\",pod=\"{pod}\"}}");
    let text = Text::default()
        .put(&sglang("num_running_reqs", "x"), 0..5, |_| 1.0)
        .put(&sglang("num_running_reqs", "y"), 0..5, |_| 0.0)
        .put(&sglang("num_requests_total", "x"), 0..5, |at| at)
        .put(&sglang("prompt_tokens_total", "x"), 0..5, |at| 10.0 * at)
        .put(&sglang("num_requests_total", "y"), 0..5, |at| if at < 130.0 { f64::NAN } else { 5.0 })
        .put(
            &sglang("prompt_tokens_total", "y"),
            0..5,
            |at| if at < 130.0 { f64::NAN } else { 50.0 },
        );
    assert_snapshot!(text.demand(4), @"
    0 a carried 60 requests 600 prompt ? fresh
    1 a carried 60 requests 600 prompt ? fresh
    2 a carried 65 requests 650 prompt ? fresh
    3 a carried 60 requests 600 prompt ? fresh
    0 gaps
    ");
}

#[test]
fn what_cannot_be_counted_is_said() {
    let error = |text: &Text, input: &CollectInput| {
        let error = text.collect(input).expect_err("no windows");
        format!("{error}\nhelp: {}", error.help())
    };
    let text = steady(Text::default(), "x", 0..60, 0.0);
    let short = CollectInput { window_s: 10, ..CollectInput::usual(0, 600) };
    assert_snapshot!(error(&text, &short), @"
    m.om: vllm:num_requests_running is scraped every 15 s; windows of 10 s cannot be counted
    help: ask for longer windows: `--window 60s`
    ");
    assert_snapshot!(error(&text, &CollectInput::usual(30, 100)), @"
    from 30 s to 100 s (since 1970) there is no whole window of 60 s
    help: ask for more time: `--since 1d`
    ");
    let nothing = Text::default().put("up", 0..5, |_| 1.0);
    assert!(
        error(&nothing, &CollectInput::usual(0, 300)).starts_with("m.om: there are no metrics")
    );
    let many = (0..2_001).fold(Text::default(), |text, pod| {
        text.put(&vllm("num_requests_running", &pod.to_string()), 0..2, |_| 1.0)
    });
    assert_snapshot!(error(&many, &CollectInput::usual(0, 60)), @"
    m.om: 2001 replicas report vllm:num_requests_running; at most 2000 are read
    help: narrow it: `--match namespace=prod`, `--model NAME`
    ");
    let narrow = CollectInput {
        matches: vec![Matcher::Is("pod".to_owned(), "7".to_owned())],
        ..CollectInput::usual(0, 60)
    };
    assert_eq!(many.collect(&narrow).expect("one of them").replicas.len(), 1);
}
