//! What must hold of any log.

use std::collections::BTreeMap;

use plimsoll_stats::Seed;
use proptest::prelude::*;

use super::*;

fn input(classes: usize) -> ProfileInput {
    ProfileInput {
        classes: (0..classes).map(|i| format!("class {i}")).collect(),
        clients: vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
        clients_named: 2,
        clock: None,
        no_clock: None,
        reuse: None,
        series: None,
        seed: Seed::new(7),
        threads: 1,
    }
}

fn gathering(exact_rows: u64) -> Gathering {
    let pace =
        Pace { label: "a model".to_owned(), prefill_s: [0.01, 1e-4, 1e-9], output_token_s: 0.02 };
    Gathering { rows_expected: None, exact_rows, pace: Some(pace) }
}

fn gather<'a>(shape: &Gathering, rows: impl IntoIterator<Item = &'a Seen>) -> Gathered {
    let mut gathered = Gathered::new(shape);
    rows.into_iter().for_each(|row| gathered.push(row));
    gathered
}

fn row(at_s: f64, prompt: u32, output: u32) -> Seen {
    Seen {
        at_ns: Some((at_s * 1e9).round() as i64),
        prompt: Some(prompt),
        cached: None,
        output: Some(output),
        reasoning: None,
        max_tokens: None,
        weight: 1.0,
        class: 0,
        client: None,
        attempt: 1,
        end: End::Unknown,
        ttft_s: None,
        e2e_s: None,
    }
}

fn any_row() -> impl Strategy<Value = Seen> {
    let tokens = || prop::option::weighted(0.9, prop_oneof![0u32..50, 0u32..200_000]);
    let lengths = (tokens(), tokens(), tokens(), prop::option::of(0u32..4000));
    let times = (0i64..3_000_000_000_000, prop::option::of(0.0f64..90.0), 0.0f64..2.0);
    let rest = (0u32..3, prop::option::of(0u32..3), 0u16..4, 0usize..5, 1u32..4);
    (lengths, times, rest).prop_map(|(lengths, times, rest)| {
        let (prompt, cached, output, max_tokens) = lengths;
        let (at, e2e_s, ttft) = times;
        let (class, client, attempt, end, weight) = rest;
        let ends = [End::Ok, End::Limited, End::Failed, End::Cancelled, End::Unknown];
        Seen {
            at_ns: Some(at),
            prompt,
            cached: cached.zip(prompt).map(|(cached, prompt)| cached.min(prompt)),
            output,
            reasoning: None,
            max_tokens,
            weight: f64::from(weight),
            class,
            client,
            attempt,
            end: ends[end],
            ttft_s: e2e_s.map(|e2e| e2e.min(ttft)),
            e2e_s,
        }
    })
}

fn json(gathered: Gathered, threads: usize) -> String {
    let found = profile(gathered, &ProfileInput { threads, ..input(3) });
    serde_json::to_string_pretty(&found).expect("JSON")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(32)))]

    /// Stretches that are appended are as good as one, in whatever order the rows of each come, and on however many threads; where each
    /// arrival is kept, and where gaps are bucketed and pairs sampled.
    #[test]
    fn parts_make_the_whole(
        mut rows in prop::collection::vec(any_row(), 1..160),
        cuts in prop::collection::vec(0usize..160, 0..3),
        exact_rows in prop_oneof![Just(20u64), Just(1000)],
        turn in 0usize..160,
    ) {
        // Requests of one moment are served in the order they come in, so no two have one.
        rows.sort_by_key(|row| row.at_ns);
        rows.dedup_by_key(|row| row.at_ns);
        let shape = gathering(exact_rows);
        let whole = json(gather(&shape, &rows), 1);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows.len())).collect();
        cuts.extend([0, rows.len()]);
        cuts.sort_unstable();
        let mut joined = Gathered::new(&shape);
        for pair in cuts.windows(2) {
            let mut stretch = rows[pair[0]..pair[1]].to_vec();
            if !stretch.is_empty() {
                let turn = turn % stretch.len();
                stretch.rotate_left(turn);
                stretch.reverse();
            }
            joined.append(gather(&shape, &stretch));
        }
        prop_assert_eq!(&json(joined, 3), &whole);
        rows.reverse();
        prop_assert_eq!(&json(gather(&shape, &rows), 2), &whole);
    }
}

/// Twenty requests, ten seconds apart, of 100 tokens and 10: everything can be worked out by hand.
#[test]
fn a_log_by_hand() {
    let rows: Vec<Seen> = (0..21).map(|i| row(f64::from(i) * 10.0, 100, 10)).collect();
    let found = profile(gather(&gathering(EXACT_ROWS), &rows), &input(1));
    let class = &found.classes[0];
    assert_eq!((class.name.as_str(), class.rows, class.span_s), ("all", 21, Some(200.0)));
    let windows = class.windows.get("10").unwrap().as_ref().unwrap();
    assert_eq!((windows.n_windows, windows.n_empty), (20, 0));
    assert_eq!((windows.requests.mean, windows.requests.std), (1.0, 0.0));
    assert_eq!(windows.prompt_tokens.unwrap().peak_to_mean, Some(1.0));
    assert_eq!(windows.fresh_tokens, None);
    let minutes = class.windows.get("60").unwrap().as_ref().unwrap();
    assert_eq!((minutes.n_windows, minutes.total_tokens.unwrap().max), (3, 660.0));
    assert_eq!(class.windows.get("300"), Some(&None));
    let gaps = class.inter_arrival.unwrap();
    assert_eq!((gaps.n, gaps.mean, gaps.max, gaps.exact), (20, 10.0, 10.0, true));
    assert_eq!(gaps.cv, Some(0.0));
    assert_eq!(class.correlation_prompt_output.unwrap().pearson, None);
    assert_eq!(class.kv_resident_context.unwrap().output_weighted_mean, Some(105.0));
    // Modelled: 0.01 + 100 * 1e-4 + 1e-5 s of prefill, then 0.2 s in which ten tokens grow.
    let modelled = class.resident_kv_tokens.modelled.as_ref().unwrap();
    let held = (100.0 * (0.02001 + 0.2) + 10.0 * 0.2 / 2.0) / 10.0;
    assert!((modelled.mean - held).abs() < 1e-6, "{modelled:?} {held}");
    assert_eq!(modelled.basis.as_deref(), Some("a model"));
    assert!(class.resident_kv_tokens.reason.as_deref().unwrap().starts_with("measured: no row"));
    assert_eq!(
        class.seasonality.as_ref().unwrap().hour_of_day.verdict,
        SeasonVerdict::NotEnoughHistory
    );
    assert!(
        found.warnings.iter().any(|w| w.contains("too short for windows of 5 min and 60 min")),
        "{:?}",
        found.warnings
    );
    assert!(
        found.warnings.iter().any(|w| w.contains("no row says how much of the prompt was cached"))
    );
}

/// Two clients that both fall silent for ten minutes were not counted; one alone may have been idle.
#[test]
fn gaps_in_the_collection() {
    let silent = |clients: u32| {
        let quiet = 3000..3600;
        let rows = (0..7200).filter(|second| !quiet.contains(second)).map(|second| Seen {
            client: Some(second % clients),
            ..row(f64::from(second) + 0.5, 100, 10)
        });
        let rows: Vec<Seen> = rows.collect();
        let found = profile(gather(&gathering(EXACT_ROWS), &rows), &input(1));
        found.classes[0].silences.clone().unwrap()
    };
    let two = silent(2);
    assert_eq!((two.count, two.collection_gaps, two.total_s), (1, 1, 600.0));
    assert_eq!((two.longest[0].start_s, two.longest[0].fell_silent), (3000.0, 2));
    assert_eq!(two.longest[0].expected_requests, 600.0);
    assert_eq!(silent(1).longest[0].kind, SilenceKind::CannotTell);
}

/// Hours that differ every day are found, and named by the clock.
#[test]
fn days_come_round() {
    let mut rows = Vec::new();
    for hour in 0..4 * 24 + 1 {
        let requests = if hour % 24 == 5 { 40 } else { 10 + hour * 7 % 5 };
        for i in 0..requests {
            rows.push(row(f64::from(hour) * 3600.0 + f64::from(i) * 80.0, 100, 10));
        }
    }
    let clock = Some(Clock { hour: 22, weekday: 6 });
    let found = profile(gather(&gathering(EXACT_ROWS), &rows), &ProfileInput { clock, ..input(1) });
    let day = &found.classes[0].seasonality.as_ref().unwrap().hour_of_day;
    assert_eq!((day.periods, day.verdict, day.by_the_clock), (4, SeasonVerdict::Shown, true));
    // Five hours after 22 o'clock.
    assert_eq!(day.mean_requests.as_ref().unwrap()[3], 40.0);
    let week = &found.classes[0].seasonality.as_ref().unwrap().day_of_week;
    assert_eq!((week.periods, week.verdict), (0, SeasonVerdict::NotEnoughHistory));
}

/// Who failed, who came again, and who asks.
#[test]
fn ends_and_clients() {
    let end = |end: End, attempt: u16, client: u32| Seen {
        end,
        attempt,
        client: Some(client),
        ..row(f64::from(attempt), 100, if end == End::Ok { 10 } else { 0 })
    };
    let rows = [
        end(End::Ok, 1, 0),
        end(End::Limited, 1, 1),
        end(End::Limited, 2, 1),
        end(End::Ok, 3, 1),
        end(End::Failed, 1, 2),
        end(End::Ok, 2, 2),
        end(End::Ok, 1, 1),
        end(End::Cancelled, 1, 0),
    ];
    let found = profile(gather(&gathering(EXACT_ROWS), &rows), &input(1));
    let failures = &found.classes[0].failures;
    assert_eq!((failures.limited_share, failures.failed_share), (Some(0.25), Some(0.5)));
    assert_eq!((failures.retried_tasks, failures.zero_outputs), (2.0, 4.0));
    // Five tasks: three of one attempt, one of two, one of three.
    let tasks: Vec<(&str, f64)> = failures.tasks_by_attempts.iter().map(|(k, n)| (k, *n)).collect();
    assert_eq!(tasks, [("1", 3.0), ("2", 1.0), ("3", 1.0)]);
    let clients = found.classes[0].clients.as_ref().unwrap();
    assert_eq!((clients.count, clients.half_of_requests_from), (3, 1));
    assert_eq!((clients.top.len(), clients.top[0].name.as_str()), (2, "b"));
    assert_eq!(clients.top[0].share_of_requests, 0.5);
}

/// An attempt without a number is not the first: nothing is said of tasks that were tried again.
#[test]
fn attempts_without_a_number() {
    let rows: Vec<Seen> =
        (0..10).map(|i| Seen { attempt: 0, ..row(f64::from(i), 100, 10) }).collect();
    let failures = |rows: &[Seen]| {
        let found = profile(gather(&gathering(EXACT_ROWS), rows), &input(1));
        found.classes[0].failures.clone()
    };
    let unknown = failures(&rows);
    assert_eq!((unknown.retried_share, unknown.tasks_by_attempts.iter().count()), (None, 0));
    // Those that say it are enough.
    let mut rows = rows;
    rows.extend([row(10.0, 1, 1), Seen { attempt: 2, ..row(11.0, 1, 1) }, row(12.0, 1, 1)]);
    assert_eq!(failures(&rows).retried_share, Some(0.5));
    // Weights whose sum is not exact leave nothing that would be known of ends.
    let dust = [0.1, 0.2, 0.3].map(|weight| Seen { weight, ..row(weight, 1, 1) });
    assert_eq!(failures(&dust).failed_share, None);
}

/// Without a common clock nothing is said of time, and the warning says why; a row from before the beginning has none.
#[test]
fn no_clock() {
    let rows =
        [Seen { at_ns: None, ..row(0.0, 100, 10) }, Seen { at_ns: Some(-5), ..row(0.0, 1, 1) }];
    let why = Some("each session has its own clock".to_owned());
    let found =
        profile(gather(&gathering(EXACT_ROWS), &rows), &ProfileInput { no_clock: why, ..input(1) });
    let class = &found.classes[0];
    assert!(class.span_s.is_none() && class.inter_arrival.is_none() && class.bursts.is_none());
    assert!(class.windows.iter().all(|(_, windows)| windows.is_none()));
    assert!(class.prefill_queue.reason.is_some());
    assert!(
        found.warnings[0].starts_with("each session has its own clock"),
        "{:?}",
        found.warnings
    );
    assert!(found.warnings[1].starts_with("1 rows are stamped before"), "{:?}", found.warnings);
}

/// Rates are of the rows that have a time: the others did not come within the span, as far as anybody knows.
#[test]
fn rates_are_of_timed_rows() {
    let check = |rows: &[Seen], expect: [Option<f64>; 3]| {
        let found = profile(gather(&gathering(EXACT_ROWS), rows), &input(1));
        let class = &found.classes[0];
        let rates =
            [class.mean_rps_rows_over_span, class.prompt_tokens_per_s, class.output_tokens_per_s];
        assert_eq!(rates, expect);
    };
    let timed = [row(0.0, 100, 10), Seen { weight: 2.5, ..row(10.0, 100, 10) }];
    let rates = [Some(0.35), Some(35.0), Some(3.5)];
    check(&timed, rates);
    let timeless = Seen { at_ns: None, weight: 1000.0, ..row(0.0, 5000, 500) };
    check(&[timed[0], timed[1], timeless], rates);
    // What only the others say is not known of those in the span.
    let silent = timed.map(|row| Seen { output: None, ..row });
    check(&[silent[0], silent[1], timeless], [Some(0.35), Some(35.0), None]);
    let empty = timed.map(|row| Seen { output: Some(0), ..row });
    check(&empty, [Some(0.35), Some(35.0), Some(0.0)]);
}

/// A row that stands for no request changes nothing; one that stands for very many can be profiled.
#[test]
fn weights_of_any_size() {
    let rows: Vec<Seen> = (0..30)
        .map(|i| Seen { e2e_s: Some(5.0), client: Some(0), ..row(f64::from(i), 100, 10) })
        .collect();
    let shape = gathering(EXACT_ROWS);
    let alone = json(gather(&shape, &rows), 1);
    let none = Seen { weight: 0.0, class: 2, client: Some(2), ..row(1e6, 7, 7) };
    assert_eq!(json(gather(&shape, rows.iter().chain([&none])), 1), alone);
    for weight in [1e12, 1e18, 1e100] {
        let rows: Vec<Seen> = rows.iter().map(|row| Seen { weight, ..*row }).collect();
        let found = profile(gather(&shape, &rows), &input(1));
        let class = &found.classes[0];
        assert!((class.requests / (30.0 * weight) - 1.0).abs() < 1e-9, "{}", class.requests);
        assert!(class.resident_kv_tokens.measured.as_ref().unwrap().max > 1e9);
    }
}

/// A stamp far in the future does not take all memory.
#[test]
fn a_wrong_date() {
    let rows = [row(0.0, 1, 1), row(1.0, 1, 1), row(2e9, 1, 1)];
    let found = profile(gather(&gathering(EXACT_ROWS), &rows), &input(1));
    assert!(found.classes[0].windows.get("1").unwrap().is_none());
    assert!(found.warnings.iter().any(|w| w.contains("wrong date")), "{:?}", found.warnings);
}

/// Sums of rows as a cluster would take them.
fn sums(rows: &[Seen]) -> Sums {
    fn count<K: Ord>(keys: impl Iterator<Item = (u32, u64, K)>) -> Vec<(Kin, K)> {
        let mut counts: BTreeMap<(u32, u64, K), u64> = BTreeMap::new();
        keys.for_each(|key| *counts.entry(key).or_default() += 1);
        let kin = |class, weight, rows| Kin { class, weight: weight as f64, rows };
        counts.into_iter().map(|((class, w, key), rows)| (kin(class, w, rows), key)).collect()
    }
    fn gaps(rows: &[&Seen]) -> Option<GapSums> {
        let mut times: Vec<i64> = rows.iter().filter_map(|row| row.at_ns).collect();
        times.sort_unstable();
        let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        gaps.iter().for_each(|gap| *counts.entry(GapSums::kept(*gap)).or_default() += 1);
        Some(GapSums {
            first_ns: *times.first()?,
            last_ns: *times.last()?,
            squares: gaps.iter().map(|gap| (*gap as u128).pow(2)).sum(),
            max_ns: gaps.iter().copied().max().unwrap_or(0),
            gaps: counts.into_iter().collect(),
        })
    }
    let kin = |row: &Seen| (row.class, row.weight as u64);
    let keyed = |key: fn(&Seen) -> Option<u64>| {
        count(rows.iter().filter_map(|row| key(row).map(|key| (kin(row).0, kin(row).1, key))))
    };
    let short =
        |counts: Vec<(Kin, u64)>| counts.into_iter().map(|(kin, n)| (kin, n as u32)).collect();
    let of = |a: Option<u32>| u64::from(a.unwrap_or(0));
    let mut all = Sums {
        last_ns: rows.iter().filter_map(|row| row.at_ns).max(),
        attempts: keyed(|row| (row.attempt > 0).then_some(u64::from(row.attempt)))
            .into_iter()
            .map(|(kin, attempt)| (kin, attempt as u16))
            .collect(),
        prompts: short(keyed(|row| row.prompt.map(u64::from))),
        outputs: short(keyed(|row| row.output.map(u64::from))),
        totals_of_tokens: keyed(|row| Some(u64::from(row.prompt?) + u64::from(row.output?))),
        gaps: gaps(&rows.iter().collect::<Vec<_>>()),
        head: {
            let mut head: Vec<i64> = rows.iter().filter_map(|row| row.at_ns).collect();
            head.sort_unstable();
            head
        },
        ..Sums::default()
    };
    for class in 0..3 {
        let own: Vec<&Seen> = rows.iter().filter(|row| row.class == class).collect();
        all.class_gaps.extend(gaps(&own).map(|gaps| (class, gaps)));
    }
    for row in rows {
        let one = Kin { class: row.class, weight: row.weight, rows: 1 };
        let is = |known: bool| u64::from(known);
        let both = row.prompt.zip(row.output).map(|(p, o)| (u128::from(p), u128::from(o)));
        let told = row.output.and(row.reasoning);
        all.totals.push(TotalSum {
            kin: one,
            at: is(row.at_ns.is_some()),
            prompt: is(row.prompt.is_some()),
            cached: is(row.cached.is_some()),
            output: is(row.output.is_some()),
            reasoning: is(row.reasoning.is_some()),
            max_tokens: is(row.max_tokens.is_some()),
            client: is(row.client.is_some()),
            ttft: is(row.ttft_s.is_some()),
            e2e: is(row.e2e_s.is_some()),
            ends: vec![(row.end, 1)],
            reasoning_tokens: of(told),
            reasoning_of: of(told.and(row.output)),
            at_limit: is(row.output.zip(row.max_tokens).is_some_and(|(o, most)| o >= most)),
            moments: both.map_or([0; 6], |(p, o)| [1, p, o, p * p, o * o, p * o]),
        });
        if let (Some(prompt), Some(output)) = (row.prompt, row.output) {
            all.joint.push(JointSum {
                kin: one,
                prompt_bits: u32::BITS - prompt.leading_zeros(),
                output_bits: u32::BITS - output.leading_zeros(),
                prompt: u64::from(prompt),
                output: u64::from(output),
            });
        }
        if let Some(at) = row.at_ns {
            all.seconds.push(SecondSum {
                kin: one,
                second: at as u64 / 1_000_000_000,
                prompt: of(row.prompt),
                fresh: of(row.prompt) - of(row.cached),
                output: of(row.output),
            });
        }
        if let Some(client) = row.client {
            let (weight, prompt, output) = (row.weight, of(row.prompt), of(row.output));
            all.clients.push(ClientSum { client, weight, rows: 1, prompt, output });
        }
    }
    all
}

/// A profile without what takes rows.
fn without_rows(gathered: Gathered) -> serde_json::Value {
    let mut found = serde_json::to_value(profile(gathered, &input(3))).expect("JSON");
    for class in found["classes"].as_array_mut().expect("classes") {
        for key in ["resident_kv_tokens", "prefill_queue"] {
            class[key].take();
        }
        for key in ["spearman", "pearson_log", "rows", "exact"] {
            class["correlation_prompt_output"][key].take();
        }
    }
    found["warnings"].take();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(32)))]

    /// Sums are as good as rows, but for what takes rows.
    #[test]
    fn sums_make_the_same_profile(rows in prop::collection::vec(any_row(), 1..160)) {
        let shape = Gathering { pace: None, ..gathering(0) };
        let mut expect = gather(&shape, &rows);
        expect.seal();
        let mut got = Gathered::of_sums(sums(&rows));
        for row in &rows {
            if let (Some(at), Some(client)) = (row.at_ns, row.client) {
                let minute = at as u64 / 60_000_000_000;
                if got.minutes_in_doubt().iter().any(|minutes| minutes.contains(&minute)) {
                    got.was_there(minute, client);
                }
            }
        }
        prop_assert_eq!(without_rows(got), without_rows(expect));
    }
}
