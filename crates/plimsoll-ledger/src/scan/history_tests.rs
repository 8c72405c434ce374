//! What came over steps, of small ledgers worked by hand.

use std::num::NonZero;

use plimsoll_workload::{ClassHistory, Known, StepCount};

use super::history::{HistoryInput, HistoryScan};
use super::tests::{Scratch, input};
use crate::error::LedgerError;
use crate::row::SeriesRow;
use crate::store::{Batch, Disk, Ledger};

/// Ten o'clock on the first of March 2026.
const TEN: i64 = 1_772_359_200;

/// A row by when it came, after ten, and what is known of it.
fn row(name: &str, at: &str, more: &str) -> String {
    format!("{{\"request_id\":\"{name}\",\"ts_arrival\":\"2026-03-01T{at}Z\"{more}}}\n")
}

/// A row of a log that counts from its own start.
fn own(name: &str, second: f64) -> String {
    format!(
        "{{\"request_id\":\"{name}\",\"ts_arrival\":\"1970-01-01T00:{:02}:{:06.3}Z\",\"clock\":\"relative\",\"prompt_tokens\":100,\"output_tokens\":10}}\n",
        (second / 60.0) as u32,
        second % 60.0
    )
}

fn asked(step_s: u32, from_s: Option<i64>, until_s: Option<i64>) -> HistoryInput {
    HistoryInput { scan: input(&[], &[]), step_s: NonZero::new(step_s), from_s, until_s }
}

fn history(scratch: &Scratch, input: &HistoryInput) -> HistoryScan {
    scratch.ledger().history(input).expect("a history")
}

fn requests(class: &ClassHistory) -> Vec<f64> {
    class.steps.iter().map(|step| step.requests).collect()
}

fn known(sum: f64, of: f64) -> Known {
    Known { sum, of }
}

/// Two whole minutes between rows of which one is too early for its minute, and one leaves its minute too early.
fn morning() -> Scratch {
    let text = [
        row("early", "09:59:50", ",\"prompt_tokens\":9,\"output_tokens\":9"),
        // Refused, and answered when it was asked again.
        row("a", "10:00:05", ",\"attempt\":1,\"status\":\"limited\",\"prompt_tokens\":100"),
        row(
            "a",
            "10:00:07",
            ",\"attempt\":2,\"status\":\"ok\",\"prompt_tokens\":100,\"cache_read_tokens\":40,\"output_tokens\":10,\"queue_s\":0.5,\"ttft_s\":1,\"e2e_s\":4",
        ),
        row("b", "10:00:30", ",\"sample_weight\":3,\"prompt_tokens\":200,\"output_tokens\":20"),
        row(
            "c",
            "10:00:40",
            ",\"attempt\":1,\"status\":\"failed\",\"output_tokens\":1,\"e2e_s\":9",
        ),
        // Nobody says whether it was asked before.
        row("d", "10:01:10", ",\"status\":\"limited\",\"prompt_tokens\":50"),
        row(
            "e",
            "10:01:20",
            ",\"attempt\":1,\"status\":\"cancelled\",\"prompt_tokens\":70,\"output_tokens\":7,\"e2e_s\":2",
        ),
        row(
            "f",
            "10:01:30",
            ",\"status\":\"ok\",\"prompt_tokens\":30,\"output_tokens\":8,\"e2e_s\":5,\"queue_s\":6",
        ),
        row("late", "10:02:20", ",\"prompt_tokens\":9,\"output_tokens\":9"),
        row(
            "cached",
            "10:00:50",
            ",\"response_cached\":true,\"prompt_tokens\":9,\"output_tokens\":9",
        ),
        row("nothing", "10:00:51", ",\"sample_weight\":0,\"prompt_tokens\":9,\"output_tokens\":9"),
        "{\"request_id\":\"when\",\"prompt_tokens\":9,\"output_tokens\":9}\n".to_owned(),
    ];
    Scratch::of(&[&text.concat()])
}

#[test]
fn counts_worked_by_hand() {
    let found = history(&morning(), &asked(60, None, None));
    let own = &found.history;
    assert_eq!((own.start_s, own.step_s, own.absolute, own.len()), (TEN, 60, true, 2));
    assert_eq!((found.dropped, found.refused_without_attempt, found.timeless), (2, 1, 1));
    let first = StepCount {
        // `a` once, three of `b`, and `c`.
        requests: 5.0,
        attempts: 6.0,
        limited: 1.0,
        failed: 1.0,
        // 100 of `a`, though it was refused, and 3 times 200.
        prompt_tokens: known(700.0, 4.0),
        cached_tokens: known(40.0, 100.0),
        output_tokens: known(70.0, 4.0),
        // 100 for 3.5 s, and half of 10 for 3 s.
        kv_token_s: known(365.0, 1.0),
    };
    let second = StepCount {
        requests: 3.0,
        attempts: 3.0,
        limited: 1.0,
        failed: 0.0,
        prompt_tokens: known(150.0, 3.0),
        cached_tokens: known(0.0, 0.0),
        output_tokens: known(8.0, 1.0),
        // The queue is longer than all of it, which holds no prompt; half of 8 for 5 s.
        kv_token_s: known(20.0, 1.0),
    };
    assert_eq!(own.classes, [ClassHistory { name: "all".to_owned(), steps: vec![first, second] }]);
    let notes = &found.notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("1 requests were served by a cache of whole answers"));
    assert!(notes[1].starts_with("1 rows have a sample weight of zero"));
}

/// What lies on the inner side of a cut is whole, where there are rows beyond it; a step that it goes through is not.
#[test]
fn cuts() {
    let scratch = morning();
    let check =
        |from: Option<i64>, until: Option<i64>, start: i64, expect: &[f64], dropped: u64| {
            let cut = |at: Option<i64>| at.map(|at| TEN + at);
            let found = history(&scratch, &asked(60, cut(from), cut(until)));
            assert_eq!(requests(&found.history.classes[0]), expect, "{from:?} {until:?}");
            assert_eq!(found.dropped, dropped, "{from:?} {until:?}");
            assert_eq!(found.history.start_s, TEN + start, "{from:?} {until:?}");
        };
    check(None, None, 0, &[5.0, 3.0], 2);
    check(Some(0), Some(120), 0, &[5.0, 3.0], 0);
    check(Some(0), Some(60), 0, &[5.0], 0);
    check(Some(60), None, 60, &[3.0], 1);
    // `a`, asked again, and `b` and `c` are in the minute that is cut.
    check(Some(6), None, 60, &[3.0], 4);
    check(None, Some(75), 0, &[5.0], 2);
    // The cut is beyond the last row, and makes nothing whole.
    check(None, Some(180), 0, &[5.0, 3.0], 2);
    check(Some(-60), None, 0, &[5.0, 3.0], 2);
    check(Some(61), Some(119), 120, &[], 3);
    check(Some(600), None, 600, &[], 0);
}

/// Rows may come a twentieth of a step after the edge, or leave as much of it out.
#[test]
fn edges_of_a_log() {
    let check = |first: &str, last: &str, expect: &[f64]| {
        let tokens = ",\"prompt_tokens\":1,\"output_tokens\":1";
        let text = [("a", first), ("b", "10:01:30"), ("c", last)];
        let text: String = text.iter().map(|(name, at)| row(name, at, tokens)).collect();
        let found = history(&Scratch::of(&[&text]), &asked(60, None, None));
        assert_eq!(requests(&found.history.classes[0]), expect, "{first} {last}");
        assert_eq!(found.dropped as f64, 3.0 - expect.iter().sum::<f64>(), "{first} {last}");
    };
    check("10:00:03", "10:02:57", &[1.0, 1.0, 1.0]);
    check("10:00:03.001", "10:02:57", &[1.0, 1.0]);
    check("10:00:03", "10:02:56.999", &[1.0, 1.0]);
    check("10:00:30", "10:02:30", &[1.0]);
    check("10:01:29", "10:01:31", &[]);
}

/// A log's own clock begins with its first row, and only its end may be within a step.
#[test]
fn a_log_without_a_date() {
    let text = [own("a", 25.0), own("b", 84.9), own("c", 85.0), own("d", 200.0), own("e", 206.0)];
    let scratch = Scratch::of(&[&text.concat()]);
    let check = |input: &HistoryInput, start: i64, expect: &[f64], dropped: u64| {
        let found = history(&scratch, input);
        assert_eq!((found.history.start_s, found.history.absolute), (start, false));
        assert_eq!(requests(&found.history.classes[0]), expect);
        assert_eq!(found.dropped, dropped);
    };
    // Three minutes and a second after the first.
    check(&asked(60, None, None), 0, &[2.0, 1.0, 1.0], 1);
    check(&asked(60, Some(60), Some(120)), 60, &[1.0], 0);
    check(&asked(120, None, None), 0, &[3.0], 2);
    // 181 s end within a twentieth of 190.
    check(&asked(190, None, None), 0, &[5.0], 0);
}

/// Rows without a clock in common make no steps, which is said.
#[test]
fn no_clock() {
    let text = "{\"request_id\":\"a\",\"prompt_tokens\":9,\"output_tokens\":9}\n";
    let found = history(&Scratch::of(&[text]), &asked(60, None, None));
    assert_eq!((found.history.len(), found.timeless, found.dropped), (0, 1, 0));
    assert_eq!(found.history.classes.len(), 1);
    assert_eq!(found.notes, ["there are no steps: the log does not say when requests came"]);
}

/// The longest step that leaves 96 whole ones.
#[test]
fn steps_by_themselves() {
    let check = |last: &str, step_s: u32, steps: usize| {
        let text = [("a", "01T00:00:00"), ("b", last)].map(|(name, at)| {
            format!("{{\"request_id\":\"{name}\",\"ts_arrival\":\"2026-03-{at}Z\",\"prompt_tokens\":1,\"output_tokens\":1}}\n")
        });
        let found = history(&Scratch::of(&[&text.concat()]), &asked(0, None, None));
        assert_eq!((found.history.step_s, found.history.len()), (step_s, steps), "{last}");
    };
    check("04T23:59:59", 3600, 96);
    check("04T22:59:59", 900, 4 * 95);
    check("01T23:59:59", 900, 96);
    check("01T16:09:59", 600, 97);
    check("01T08:04:59", 300, 97);
    check("01T07:54:59", 60, 475);
    check("01T00:09:59", 60, 10);
}

#[test]
fn too_many_steps() {
    let text = [("a", "01-01"), ("b", "03-05")].map(|(name, day)| {
        format!("{{\"request_id\":\"{name}\",\"ts_arrival\":\"2026-{day}T00:00:00Z\",\"prompt_tokens\":1,\"output_tokens\":1}}\n")
    });
    let scratch = Scratch::of(&[&text.concat()]);
    let error = scratch.ledger().history(&asked(1, None, None)).expect_err("63 days of seconds");
    assert_eq!(
        error.to_string(),
        "5443200 steps of 1 s for each of 1 classes are more than 5000000 counts"
    );
    assert_eq!(
        error.help().expect("help"),
        "take a longer `--step`, such as 2 s, or fewer classes"
    );
    assert_eq!(history(&scratch, &asked(2, None, None)).history.len(), 2_721_600);
}

/// Classes are those of the ledger, whether or not they have rows in the range; filters and weights hold.
#[test]
fn classes_and_filters() {
    let more = |model: &str, weight: f64| {
        format!(
            ",\"model\":\"{model}\",\"sample_weight\":{weight},\"prompt_tokens\":10,\"output_tokens\":4"
        )
    };
    let text = [
        row("a", "10:00:00", &more("m", 1.0)),
        row("b", "10:00:30", &more("n", 2.5)),
        row("c", "10:01:10", &more("m", 1.0)),
        row("d", "10:01:58", &more("m", 0.25)),
    ];
    let scratch = Scratch::of(&[&text.concat()]);
    let check = |from: Option<i64>, only: &[(&str, &str)], expect: &[(&str, &[f64])]| {
        let scan = input(&["model"], only);
        let asked = HistoryInput { scan, ..asked(60, from, None) };
        let found = history(&scratch, &asked);
        let own: Vec<(&str, Vec<f64>)> =
            found.history.classes.iter().map(|c| (c.name.as_str(), requests(c))).collect();
        let expect: Vec<(&str, Vec<f64>)> = expect.iter().map(|(n, r)| (*n, r.to_vec())).collect();
        assert_eq!(own, expect, "{from:?} {only:?}");
    };
    check(None, &[], &[("m", &[1.0, 1.25]), ("n", &[2.5, 0.0])]);
    check(Some(TEN + 60), &[], &[("m", &[1.25]), ("n", &[0.0])]);
    check(None, &[("model", "m")], &[("m", &[1.0, 1.25])]);
    // A single moment is no minute.
    check(None, &[("model", "n")], &[("n", &[])]);
}

/// Days are stretches of their own, and weights are such that the order of sums shows.
#[test]
fn any_number_of_threads() {
    let mut text = String::new();
    for i in 0..600u32 {
        let (day, hour, minute) = (1 + i % 20, i / 25, i % 60);
        let weight = 0.1 + f64::from(i % 7) / 3.0;
        text += &format!(
            "{{\"request_id\":\"{i}\",\"ts_arrival\":\"2026-03-{day:02}T{hour:02}:{minute:02}:00Z\",\"sample_weight\":{weight},\"prompt_tokens\":{i},\"output_tokens\":10,\"e2e_s\":0.3,\"model\":\"m{}\"}}\n",
            i % 3
        );
    }
    let scratch = Scratch::of(&[&text]);
    let on = |threads: usize| {
        let mut scan = input(&["model"], &[]);
        scan.threads = NonZero::new(threads).expect("some");
        history(&scratch, &HistoryInput { scan, ..asked(3600, None, None) })
    };
    let one = on(1);
    assert_eq!(one, on(7));
    let steps = one.history.classes.iter().flat_map(|class| &class.steps);
    // 600 times 0.1, and 85 rounds of 0 to 6 thirds with five more.
    let sum: f64 = steps.map(|step| step.requests).sum();
    let expect = 60.0 + (85.0 * 21.0 + 10.0) / 3.0;
    assert!((sum - expect).abs() < 1e-9, "{sum}, not {expect}");
    assert_eq!(one.dropped, 0);
}

/// Three clients over an hour and a half, in windows of ten minutes; of the third no length is known.
fn clients() -> Scratch {
    let rates = |rate: [f64; 9]| {
        let rows = rate.iter().enumerate();
        rows.map(|(i, rate)| format!("{},{rate},1.0,Gamma,1.0,1.0\n", 600 * i)).collect::<String>()
    };
    let lengths = |prompt: u32, output: u32| {
        format!(
            "{{\"0\": {{\"input_tokens\": \"{{{prompt}: 1.0}}\", \"output_tokens\": \"{{{output}: 1.0}}\"}}}}"
        )
    };
    Scratch::named(&[
        ("chunk-0-trace.csv", &rates([0.0, 0.5, 1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0])),
        ("chunk-0-dataset.json", &lengths(100, 50)),
        ("chunk-1-trace.csv", &rates([0.5; 9])),
        ("chunk-1-dataset.json", &lengths(1000, 500)),
        ("chunk-2-trace.csv", &rates([0.25; 9])),
    ])
}

/// 0.5 requests a second are 300 in a window.
#[test]
fn series_over_steps() {
    let scratch = clients();
    let name = |client: u32| scratch.path().join(format!("chunk-{client}")).display().to_string();
    let check = |step_s: u32, keep: usize, expect: &[(String, &[f64])], dropped: u64| {
        let found = scratch.ledger().series_history(NonZero::new(step_s), keep).expect("histories");
        assert_eq!(found.len(), 1);
        let (group, found) = &found[0];
        assert_eq!(*group, scratch.path().display().to_string());
        let own: Vec<(String, Vec<f64>)> =
            found.history.classes.iter().map(|c| (c.name.clone(), requests(c))).collect();
        let expect: Vec<(String, Vec<f64>)> =
            expect.iter().map(|(n, r)| (n.clone(), r.to_vec())).collect();
        assert_eq!(own, expect, "{step_s} {keep}");
        assert_eq!((found.history.start_s, found.history.absolute), (0, false));
        assert_eq!((found.dropped, found.timeless), (dropped, 0));
    };
    let other = "other clients".to_owned();
    // Of 2700 requests of 1500 tokens, 1800 of 150, and 1350 of the mean of those, the first and the last make 95%.
    let (large, unknown): (&[f64], &[f64]) = (&[900.0; 3], &[450.0; 3]);
    check(
        1800,
        9,
        &[(name(1), large), (name(2), unknown), (other.clone(), &[900.0, 300.0, 600.0])],
        0,
    );
    check(1800, 1, &[(name(1), large), (other.clone(), &[1350.0, 750.0, 1050.0])], 0);
    check(1800, 0, &[(other.clone(), &[2250.0, 1650.0, 1950.0])], 0);
    // The second hour is not all there: of six windows the clients have 1200, 1800 and 900, and three of each are left over.
    check(3600, 0, &[(other.clone(), &[3900.0])], 9);
    // 96 steps there are not: those of a window.
    check(0, 0, &[(other, &[450.0, 750.0, 1050.0, 450.0, 750.0, 450.0, 1050.0, 450.0, 450.0])], 0);
}

#[test]
fn series_know_their_lengths() {
    let scratch = clients();
    let found = scratch.ledger().series_history(NonZero::new(5400), 1).expect("histories");
    let classes = &found[0].1.history.classes;
    let large = StepCount {
        requests: 2700.0,
        attempts: 2700.0,
        prompt_tokens: known(2_700_000.0, 2700.0),
        output_tokens: known(1_350_000.0, 2700.0),
        ..StepCount::default()
    };
    // 1800 of 100 and 50, and 1350 of which no length is known.
    let others = StepCount {
        requests: 3150.0,
        attempts: 3150.0,
        prompt_tokens: known(180_000.0, 1800.0),
        output_tokens: known(90_000.0, 1800.0),
        ..StepCount::default()
    };
    assert_eq!(classes[0].steps, [large]);
    assert_eq!(classes[1].steps, [others]);
    assert_eq!(found[0].1.notes, ["2 of 3 clients are counted together as `other clients`"]);
}

#[test]
fn steps_are_whole_windows() {
    let scratch = clients();
    let error = scratch.ledger().series_history(NonZero::new(900), 9).expect_err("one and a half");
    assert!(matches!(error, LedgerError::Windows { step_s: 900, window_s: 600, .. }), "{error}");
    assert_eq!(
        error.help().expect("help"),
        "take a `--step` that is a multiple of it, such as 1200 s"
    );
}

/// Windows with a date fall on the hours of the clock, and hours that are not all there are left out.
#[test]
fn series_with_a_date() {
    let scratch = Scratch::of(&[&row("a", "10:00:00", ",\"prompt_tokens\":1,\"output_tokens\":1")]);
    let directory = scratch.path().join("dated");
    let window = |clock: &str, start_s: i64, requests: f64| SeriesRow {
        class: Some("client".to_owned()),
        start: Some(start_s * 1_000_000_000),
        clock: Some(clock.to_owned()),
        window_s: Some(600.0),
        requests: Some(requests),
        ..SeriesRow::default()
    };
    // From half past nine to ten past eleven, and one that nobody knows the day of.
    let mut rows: Vec<(u128, SeriesRow)> = (0..10u32)
        .map(|i| {
            let start_s = TEN - 1800 + 600 * i64::from(i);
            (u128::from(i), window("absolute", start_s, f64::from(1 << i)))
        })
        .collect();
    rows.push((10, window("relative", 0, 1e6)));
    let mut batch = Batch::open(&directory, Disk::default()).expect("a batch");
    assert_eq!(batch.series(rows), 11);
    batch.commit().expect("written");
    let ledger = Ledger::open(&directory).expect("a ledger");
    let check = |step_s: u32, start_s: i64, expect: &[f64], dropped: u64| {
        let found = ledger.series_history(NonZero::new(step_s), 9).expect("histories");
        let (group, found) = &found[0];
        assert_eq!((group.as_str(), found.history.absolute), ("series", true));
        assert_eq!(found.history.start_s, start_s);
        assert_eq!(found.history.classes[0].name, "client");
        assert_eq!(requests(&found.history.classes[0]), expect);
        assert_eq!((found.dropped, found.timeless), (dropped, 1));
    };
    check(3600, TEN, &[504.0], 4);
    check(1200, TEN - 1200, &[6.0, 24.0, 96.0, 384.0], 2);
    check(600, TEN - 1800, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0], 0);
}

/// A window of a minute that somebody measured, so many minutes after ten.
fn measured(class: &str, minute: i64, requests: f64) -> SeriesRow {
    SeriesRow {
        class: Some(class.to_owned()),
        start: Some((TEN + 60 * minute) * 1_000_000_000),
        window_s: Some(60.0),
        basis: Some("carried".to_owned()),
        requests: Some(requests),
        prompt_tokens: Some(100.0 * requests),
        cached_tokens: (minute % 2 == 0).then_some(40.0 * requests),
        fresh_tokens: (minute % 2 == 1).then_some(60.0 * requests),
        output_tokens: Some(10.0 * requests),
        errors: Some(1.0),
        ..SeriesRow::default()
    }
}

/// Windows that are measured and not there are unknown, what replicas did is no demand, and the same is not kept twice.
#[test]
fn measured_series_have_gaps() {
    let scratch = Scratch::of(&[&row("a", "10:00:00", ",\"prompt_tokens\":1,\"output_tokens\":1")]);
    let directory = scratch.path().join("measured");
    let mut rows = Vec::new();
    for minute in 0..40i64 {
        // Half of the second step, and all of the third.
        if !(15..30).contains(&minute) {
            rows.push(measured("org/chat", minute, 6.0));
        }
        rows.push(measured("org/code", minute, 1.0));
        for replica in ["x", "y"] {
            let own = measured("org/chat", minute, 3.0);
            rows.push(SeriesRow { replica: Some(replica.to_owned()), basis: None, ..own });
        }
    }
    // A model that came later was not there before: nothing of it is missing.
    rows.extend((35..40).map(|minute| measured("late", minute, 2.0)));
    let lengths = SeriesRow {
        class: Some("org/chat".to_owned()),
        start: Some(TEN * 1_000_000_000),
        window_s: Some(86_400.0),
        marginal: Some(true),
        prompt_lengths: Some(vec![1000]),
        prompt_shares: Some(vec![1.0]),
        ..SeriesRow::default()
    };
    rows.push(lengths);
    let all = rows.len() as u64;
    let done = crate::record_series(&directory, "prometheus", rows.clone()).expect("recorded");
    assert_eq!((done.rows_in, done.rows_added, done.duplicates), (all, all, 0));
    let again = crate::record_series(&directory, "prometheus", rows).expect("recorded");
    assert_eq!((again.rows_added, again.series_added, again.duplicates), (0, 0, all));

    let ledger = Ledger::open(&directory).expect("a ledger");
    let found = ledger.series_history(NonZero::new(600), 9).expect("histories");
    assert_eq!(found.len(), 1, "models of one source are one series, whatever is in their names");
    let (group, found) = &found[0];
    assert_eq!((group.as_str(), found.history.start_s), ("prometheus", TEN));
    let class = |name: &str| {
        let mut all = found.history.classes.iter();
        all.find(|class| class.name == name).expect("a class")
    };
    // Half of a step is taken to be like the other half; what a replica did is in its model already.
    assert_eq!(requests(class("org/chat")), [60.0, 60.0, 0.0, 60.0]);
    let step = class("org/chat").steps[1];
    assert_eq!((step.prompt_tokens.sum, step.prompt_tokens.mean()), (6000.0, Some(100.0)));
    assert_eq!((step.output_tokens.sum, step.failed), (600.0, 10.0));
    // Counted or not, 40 of 100 tokens were cached.
    assert_eq!(step.cached_tokens, Known { sum: 2400.0, of: 6000.0 });
    let others = found.history.classes.iter().filter(|own| own.name != "org/chat");
    let others: f64 = others.flat_map(requests).sum();
    assert_eq!(others, 40.0 + 10.0);
    assert_eq!(
        found.notes.iter().filter(|note| note.starts_with("`org/chat`")).collect::<Vec<_>>(),
        [
            "`org/chat` has no window in 1 of 4 steps of 600 s: they are gaps, and are zero here; a forecast takes them for missing where all classes are silent"
        ]
    );
    let series = ledger.series(plimsoll_stats::Seed::new(1)).expect("a series");
    let chat = series[0].clients.iter().find(|own| own.name == "org/chat").expect("a client");
    assert_eq!(chat.windows.len(), 25);
    assert_eq!(
        (chat.windows[0].prompt_mean, chat.windows[0].output_mean),
        (Some(100.0), Some(10.0))
    );
}

/// What was written before there were replicas is read as demand of nobody in particular.
#[test]
fn older_series_are_read() {
    let mut rows = crate::row::SeriesRows::new();
    rows.push(&measured("chat", 0, 6.0));
    let mut batch = rows.finish();
    let old = ["class", "start", "window_s", "requests"];
    batch.columns.retain(|(name, _)| old.contains(&name.as_str()));
    let read = SeriesRow::of_columns(&batch);
    assert_eq!(
        (read[0].requests, &read[0].replica, read[0].fresh_tokens),
        (Some(6.0), &None, None)
    );
}
