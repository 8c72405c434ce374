//! One check for each rule, worked by hand, and what holds for all of them.

use proptest::prelude::*;

use super::*;

fn at(tokens: u64, share_longer: f64) -> Option<ContextPoint> {
    Some(ContextPoint { tokens, share_longer })
}

fn class(name: &str, calls_per_s: f64, in_flight: f64) -> LimitedClass {
    LimitedClass {
        name: name.to_owned(),
        tenant: Some("acme".to_owned()),
        feature: Some("answers".to_owned()),
        prompt_tokens: Some(1000.0),
        fresh_tokens: Some(500.0),
        output_tokens: Some(200.0),
        output_p99_tokens: Some(900.0),
        calls_per_s: Some(calls_per_s),
        calls_per_day: Some(400_000.0),
        in_flight_mean: Some(in_flight),
        retry_attempts: Some(3),
        retry_budget: Some(0.5),
    }
}

/// Four replicas of which three carry 24 calls a second, in two classes.
fn input() -> LimitsInput {
    LimitsInput {
        pool: "chat".to_owned(),
        engine: EngineLimits {
            max_num_seqs: 256,
            max_num_batched_tokens: 8192,
            kv_tokens: 400_000,
            kv_block_tokens: 16,
            model_context_tokens: Some(131_072),
            max_model_len_tokens: None,
        },
        contexts: Contexts {
            p50: at(1100, 0.5),
            p99: at(3900, 0.01),
            p999: at(4500, 0.001),
            at_most: None,
            max: at(9000, 0.0),
        },
        line: ReplicaAtLine {
            calls_per_s: Some(10.0),
            fresh_tokens_per_s: Some(5000.0),
            prefill_tokens_per_s: Some(20_000.0),
            sequences_mean: Some(40.0),
            sequences_max: Some(80.0),
            kv_share_mean: Some(0.1),
            kv_share_max: Some(0.2),
            in_flight_mean: Some(45.0),
        },
        promises: Promises {
            ttft_budget_s: Some(1.5),
            ttft_floor_s: Some(0.1),
            tpot_budget_s: Some(0.05),
            e2e_p99_s: Some(30.0),
            generation_p99_s: Some(28.0),
            deadline_s: None,
        },
        startup_p90_s: Some(180.5),
        replicas: 4,
        replicas_fewest: 3,
        classes: vec![class("web", 18.0, 90.0), class("api", 6.0, 90.0)],
        margins: LimitMargins { sequences_share: 0.25, drain_share: 0.2, deadline_share: 0.2 },
    }
}

/// A limit of what was given, and what its sentence says.
fn check(limit: &Limit, value: f64, says: &str) {
    let own = limit.value.expect("a value");
    assert!((own - value).abs() < 1e-9 * value.abs().max(1.0), "{own} is not {value}");
    assert!(limit.why.contains(says), "{}", limit.why);
}

fn check_unknown(limit: &Limit, says: &str) {
    assert_eq!(limit.value, None, "{}", limit.why);
    assert!(limit.why.contains(says), "{}", limit.why);
}

#[test]
fn sequences_are_what_the_line_needs_with_a_margin() {
    check(&limits(&input()).max_num_seqs, 100.0, "80 ran at most");
    // 96 were simulated: nobody knows of more.
    let mut own = input();
    own.engine.max_num_seqs = 96;
    check(&limits(&own).max_num_seqs, 96.0, "not more than the 96");
    // 1,100 tokens are 69 blocks, 1,104 tokens: 60,000 hold 54 of them.
    own.engine.kv_tokens = 60_000;
    check(&limits(&own).max_num_seqs, 54.0, "54 contexts of 1,104");
    let flags = limits(&own).max_num_seqs.flags.expect("a flag");
    assert_eq!(flags.vllm, Some("--max-num-seqs"));
    assert_eq!(flags.sglang, Some("--max-running-requests"));
    assert_eq!(flags.tensorrt_llm, Some("max_batch_size"));
}

#[test]
fn a_step_has_the_budget_that_was_simulated() {
    // 8,192 tokens take 0.41 s; 0.05 s are 1,000 tokens, three times 256.
    check(&limits(&input()).max_num_batched_tokens, 8192.0, "768 would keep the promise");
    let mut own = input();
    own.promises.tpot_budget_s = Some(0.5);
    check(&limits(&own).max_num_batched_tokens, 8192.0, "within the 0.5 s promised");
    own.engine.max_num_batched_tokens = 64;
    check(&limits(&own).max_num_batched_tokens, 100.0, "as simulated");
}

#[test]
fn contexts_are_as_long_as_nearly_all_need() {
    let found = limits(&input());
    check(&found.max_model_len, 5120.0, "refuses 0.1% of calls at most");
    assert_eq!(found.refused_share, Some(0.001));
    assert!(found.max_model_len.why.contains("the model itself would take 131,072"));
    let rows =
        [(1, 16), (16, 16), (17, 32), (4096, 4096), (4097, 5120), (7169, 8192), (8193, 10_240)];
    for (tokens, up) in rows {
        assert_eq!(step_up(tokens, 16), up, "of {tokens}");
    }
    // Nobody is longer than what is accepted.
    let mut own = input();
    own.contexts.max = at(5000, 0.0);
    assert_eq!(limits(&own).refused_share, Some(0.0));
    // The model ends before the step does.
    own.engine.model_context_tokens = Some(4096);
    check(&limits(&own).max_model_len, 4096.0, "that the model takes");
    assert_eq!(limits(&own).refused_share, Some(0.01));
    own.engine.kv_tokens = 1000;
    check(&limits(&own).max_model_len, 1000.0, "cache of a replica holds");
    assert_eq!(limits(&own).refused_share, None);
}

#[test]
fn queues_hold_what_is_read_in_time() {
    let found = limits(&input());
    check(&found.queue_tokens, 30_000.0, "1.5 s to the first token x 20,000 prompt tokens/s");
    // 5,000 tokens/s in 10 calls/s are 500 each.
    check(&found.queue_requests, 60.0, "500 fresh tokens of a call");
    assert_eq!(found.queue_tokens.flags.and_then(|f| f.vllm_since), Some("0.29"));
    check(&found.queue_age, 1.4, "less the 0.1 s");
    let mut own = input();
    own.promises.ttft_floor_s = Some(2.0);
    check_unknown(&limits(&own).queue_age, "nothing is left of the 1.5 s");
    // A prompt that is longer than the queue may wait alone.
    own.line.fresh_tokens_per_s = Some(1e6);
    check(&limits(&own).queue_requests, 1.0, "30,000 tokens");
}

#[test]
fn a_cache_keeps_room_for_what_grows() {
    // 40,000 tokens of 40 sequences are 1,000 each, which grow by 200.
    check(&limits(&input()).kv_ceiling, 1000.0 / 1200.0, "holds 1,000 tokens and grows by 200");
    // Twenty times as many tokens in as many sequences, so that the line itself is above.
    let mut own = input();
    own.line.kv_share_mean = Some(0.9);
    own.line.sequences_mean = Some(720.0);
    own.classes.iter_mut().for_each(|c| c.output_tokens = Some(500.0));
    check(&limits(&own).kv_ceiling, 0.9, "the load line itself is served at 0.9");
}

#[test]
fn a_burst_is_what_queues_and_spare_replicas_take() {
    // 4 x 30,000 in queues, 1 x 5,000 x 180.5 read meanwhile.
    check(&limits(&input()).burst, 120_000.0 + 902_500.0, "1 replicas beyond the fewest");
}

#[test]
fn times_are_what_was_promised_and_what_is_taken() {
    let found = limits(&input());
    check(&found.request_ttl, 1.5, "promised to the first token");
    check(&found.no_endpoint_ttl, 181.0, "within 181 s");
    check(&found.deadline, 36.0, "99 calls in 100 take 30 s");
    check(&found.drain, 34.0, "99 generations in 100 take 28 s");
    let mut own = input();
    own.promises.deadline_s = Some(20.0);
    check(&limits(&own).deadline, 20.0, "some are cut off");
    own.promises.deadline_s = Some(60.0);
    check(&limits(&own).deadline, 60.0, "as asked for");
}

#[test]
fn gateways_let_each_class_have_its_part() {
    let found = limits(&input());
    let web = &found.classes[0];
    // Three quarters of 40 calls/s.
    check(&web.rpm, 1800.0, "75% of the 40 calls/s");
    // 1,800 calls of 1,200 tokens, less half of the 180 in flight.
    check(&web.tpm, 1800.0 * 1200.0 - 90.0 * 1200.0, "90 calls in flight");
    // Half of 4 x (100 + 60).
    check(&web.concurrency, 320.0, "50% of the 640 calls");
    // 40 calls/s carry 24 and two thirds of them again, of which clients want half.
    check(&web.retry_budget, 0.5, "clients allow themselves 50%");
    let tenant = &found.tenants[0];
    assert_eq!(tenant.tenant, "acme");
    check(&tenant.rpm, 2400.0, "`web` 1,800 + `api` 600");
    check(&tenant.concurrency, 640.0, "`api` 320");
}

#[test]
fn calls_that_take_a_minute_are_limited_by_their_number_alone() {
    let mut own = input();
    own.line.in_flight_mean = Some(600.0);
    let found = limits(&own);
    check_unknown(&found.classes[1].tpm, "limit calls at once instead");
    check_unknown(&found.tenants[0].tpm, "class `api` has none");
}

#[test]
fn retries_stay_within_the_line() {
    let mut own = input();
    own.classes.iter_mut().for_each(|c| c.retry_budget = None);
    check(&limits(&own).classes[0].retry_budget, 40.0 / 24.0 - 1.0, "leaves 66.7%");
    // No room at all is an answer, and not unknown.
    own.line.calls_per_s = Some(6.0);
    check(&limits(&own).classes[0].retry_budget, 0.0, "leaves 0%");
    own.line.calls_per_s = Some(1000.0);
    check(&limits(&own).classes[0].retry_budget, 2.0, "at most 2 retries");
    own.classes[0].retry_attempts = Some(1);
    check_unknown(&limits(&own).classes[0].retry_budget, "do not come again");
}

#[test]
fn features_have_a_day_of_tokens() {
    let found = limits(&input());
    let [answers] = found.features.as_slice() else { panic!("one feature") };
    assert_eq!(answers.feature.as_deref(), Some("answers"));
    assert_eq!(answers.calls_per_day, Some(800_000.0));
    assert_eq!(answers.prompt_tokens_per_day, Some(8e8));
    assert_eq!(answers.fresh_tokens_per_day, Some(4e8));
    assert_eq!(answers.output_tokens_per_day, Some(1.6e8));
    let mut own = input();
    own.classes[1].calls_per_day = None;
    let found = limits(&own);
    assert_eq!(found.features[0].output_tokens_per_day, None);
    assert!(found.features[0].why.contains("`api`"));
}

/// Full steps are what a queue sees; all that carry prompts where there are too few of them.
#[test]
fn prompts_are_read_as_fast_as_full_steps_do() {
    use plimsoll_load::Record as _;
    let step = |prefill: u64, decodes: u64, ms: u64| plimsoll_sim::Stretch {
        took: ms * 1_000_000_000,
        steps: 1,
        prefill,
        decodes,
        ..plimsoll_sim::Stretch::default()
    };
    let mut pace = PrefillPace::new("chat", 1000);
    assert_eq!(pace.tokens_per_s(), None);
    // Who only generates, and who is somebody else's, does not count.
    pace.stretch("chat", 0, &step(0, 50, 10));
    pace.stretch("other", 0, &step(1000, 0, 10));
    assert_eq!(pace.tokens_per_s(), None);
    pace.stretch("chat", 0, &step(100, 50, 20));
    assert_eq!(pace.tokens_per_s(), Some(5000.0));
    (0..40).for_each(|_| pace.stretch("chat", 0, &step(950, 50, 50)));
    assert_eq!(pace.tokens_per_s(), Some(19_000.0));
}

/// Every limit of a pool.
fn all(found: &PoolLimits) -> Vec<&Limit> {
    let own = [
        &found.max_num_seqs,
        &found.max_num_batched_tokens,
        &found.max_model_len,
        &found.queue_tokens,
        &found.queue_requests,
        &found.queue_age,
        &found.kv_ceiling,
        &found.burst,
        &found.request_ttl,
        &found.no_endpoint_ttl,
        &found.deadline,
        &found.drain,
    ];
    let classes =
        found.classes.iter().flat_map(|c| [&c.rpm, &c.tpm, &c.concurrency, &c.retry_budget]);
    let tenants = found.tenants.iter().flat_map(|t| [&t.rpm, &t.tpm, &t.concurrency]);
    own.into_iter().chain(classes).chain(tenants).collect()
}

#[test]
fn nothing_known_is_nothing_said() {
    for none in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
        let line = ReplicaAtLine {
            calls_per_s: none,
            fresh_tokens_per_s: none,
            prefill_tokens_per_s: none,
            sequences_mean: none,
            sequences_max: none,
            kv_share_mean: none,
            kv_share_max: none,
            in_flight_mean: none,
        };
        let promises = Promises {
            ttft_budget_s: none,
            ttft_floor_s: none,
            tpot_budget_s: none,
            e2e_p99_s: none,
            generation_p99_s: none,
            deadline_s: none,
        };
        let nobody = LimitedClass {
            prompt_tokens: none,
            fresh_tokens: none,
            output_tokens: none,
            output_p99_tokens: none,
            calls_per_s: none,
            calls_per_day: none,
            in_flight_mean: none,
            retry_attempts: none.map(|_| 0),
            retry_budget: none,
            ..class("web", 1.0, 1.0)
        };
        let own = LimitsInput {
            pool: String::new(),
            engine: EngineLimits {
                max_num_seqs: 0,
                max_num_batched_tokens: 0,
                kv_tokens: 0,
                kv_block_tokens: 0,
                model_context_tokens: Some(0),
                max_model_len_tokens: Some(0),
            },
            contexts: Contexts::default(),
            line,
            promises,
            startup_p90_s: none,
            replicas: 0,
            replicas_fewest: 9,
            classes: vec![nobody],
            margins: LimitMargins {
                sequences_share: f64::NAN,
                drain_share: -1.0,
                deadline_share: f64::INFINITY,
            },
        };
        let found = limits(&own);
        for limit in all(&found) {
            assert_eq!(limit.value, None, "{none:?}: {}", limit.why);
            assert!(limit.why.len() > 10);
        }
        assert_eq!(found.refused_share, None);
    }
}

fn some() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![1 => Just(None), 1 => Just(Some(0.0)), 6 => (1e-3..1e6f64).prop_map(Some)]
}

prop_compose! {
    fn inputs()(
        n in proptest::collection::vec(some(), 16),
        classes in proptest::collection::vec((some(), some(), some(), 0u32..5), 0..5),
        lengths in (1u64..200_000, 1u64..5, 1u64..5),
        engine in (0u64..2000, 0u64..20_000, 0u64..2_000_000, 0u64..300),
        model in proptest::option::of(0u64..300_000),
        replicas in (0u32..50, 0u32..50),
    ) -> LimitsInput {
        let share = |n: Option<f64>| n.map(|n| n / 1e6);
        LimitsInput {
            pool: "pool".to_owned(),
            engine: EngineLimits {
                max_num_seqs: engine.0,
                max_num_batched_tokens: engine.1,
                kv_tokens: engine.2,
                kv_block_tokens: engine.3,
                model_context_tokens: model,
                max_model_len_tokens: None,
            },
            contexts: Contexts {
                p50: at(lengths.0, 0.5),
                p99: at(lengths.0 * lengths.1, 0.01),
                p999: at(lengths.0 * lengths.1 * lengths.2, 0.001),
                at_most: None,
                max: None,
            },
            line: ReplicaAtLine {
                calls_per_s: n[0],
                fresh_tokens_per_s: n[1],
                prefill_tokens_per_s: n[2],
                sequences_mean: n[3],
                sequences_max: n[4],
                kv_share_mean: share(n[5]),
                kv_share_max: share(n[6]),
                in_flight_mean: n[7],
            },
            promises: Promises {
                ttft_budget_s: n[8],
                ttft_floor_s: n[9],
                tpot_budget_s: n[10],
                e2e_p99_s: n[11],
                generation_p99_s: n[12],
                deadline_s: n[13],
            },
            startup_p90_s: n[14],
            replicas: replicas.0,
            replicas_fewest: replicas.1,
            classes: classes
                .iter()
                .map(|(calls, in_flight, tokens, attempts)| LimitedClass {
                    calls_per_s: *calls,
                    in_flight_mean: *in_flight,
                    prompt_tokens: *tokens,
                    retry_attempts: Some(*attempts),
                    ..class("class", 1.0, 1.0)
                })
                .collect(),
            margins: LimitMargins { sequences_share: 0.2, drain_share: 0.2, deadline_share: 0.2 },
        }
    }
}

proptest! {
    /// A limit is a number above zero, but for retries where there is no room; what is not known says why.
    #[test]
    fn limits_are_numbers(own in inputs()) {
        let found = limits(&own);
        for limit in all(&found) {
            let zero = limit.unit == "retries/first attempt";
            let is = |n: f64| n.is_finite() && (n > 0.0 || (zero && n >= 0.0));
            prop_assert!(limit.value.is_none_or(is), "{limit:?}");
            prop_assert!(limit.why.len() > 10);
        }
    }

    /// No context is longer than the model takes, or than a cache holds, and the share that is refused is a share.
    #[test]
    fn contexts_stay_within_the_model(own in inputs()) {
        let found = limits(&own);
        if let Some(value) = found.max_model_len.value {
            let model = own.engine.model_context_tokens.filter(|n| *n > 0);
            prop_assert!(model.is_none_or(|model| value <= model as f64));
            prop_assert!(own.engine.kv_tokens == 0 || value <= own.engine.kv_tokens as f64);
        }
        prop_assert!(found.refused_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }

    /// Classes together have no more in flight than the pool has room for, and no more calls than its load line.
    #[test]
    fn classes_share_what_there_is(own in inputs()) {
        let found = limits(&own);
        let sum = |of: fn(&ClassLimits) -> &Limit| found.classes.iter().filter_map(|c| of(c).value).sum::<f64>();
        let room = found.max_num_seqs.value.unwrap_or(0.0) + found.queue_requests.value.unwrap_or(0.0);
        prop_assert!(sum(|c| &c.concurrency) <= room * f64::from(own.replicas) + 1e-6);
        let line = own.line.calls_per_s.unwrap_or(0.0) * f64::from(own.replicas);
        prop_assert!(sum(|c| &c.rpm) <= 60.0 * line * (1.0 + 1e-9));
    }

    /// Retries of everybody, within their budgets, stay at the load line.
    #[test]
    fn retries_of_all_stay_within_the_line(own in inputs()) {
        let found = limits(&own);
        let line = own.line.calls_per_s.unwrap_or(0.0) * f64::from(own.replicas);
        let calls = own.classes.iter().map(|c| c.calls_per_s.unwrap_or(0.0));
        let demand: f64 = calls.clone().sum();
        let retries = calls.zip(&found.classes).map(|(calls, c)| calls * c.retry_budget.value.unwrap_or(0.0));
        let all = demand + retries.sum::<f64>();
        prop_assert!(all <= line.max(demand) * (1.0 + 1e-9), "{all} > {line}");
    }

    /// Twice the rate, twice the queue; twice the promise, twice the queue; a longer start, no smaller a burst.
    #[test]
    fn queues_are_proportional(own in inputs()) {
        let found = limits(&own);
        let mut faster = own.clone();
        faster.line.prefill_tokens_per_s = own.line.prefill_tokens_per_s.map(|n| 2.0 * n);
        let mut later = own.clone();
        later.promises.ttft_budget_s = own.promises.ttft_budget_s.map(|n| 2.0 * n);
        for other in [limits(&faster), limits(&later)] {
            let pair = found.queue_tokens.value.zip(other.queue_tokens.value);
            prop_assert!(pair.is_none_or(|(one, two)| (two - 2.0 * one).abs() <= 2.0));
            prop_assert_eq!(found.queue_tokens.value.is_some(), other.queue_tokens.value.is_some());
        }
        let mut slower = own.clone();
        slower.startup_p90_s = own.startup_p90_s.map(|n| 2.0 * n);
        let pair = found.burst.value.zip(limits(&slower).burst.value);
        prop_assert!(pair.is_none_or(|(one, two)| two >= one));
    }
}
