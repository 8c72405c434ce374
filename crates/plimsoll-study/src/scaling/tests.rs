//! Policies worked by hand, and a small fleet that follows them.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, RequestPath, StepModel, Term, Work};
use plimsoll_sim::{Good, Kv, Limits, Phase, Routing, Signal, StartupSpec};
use plimsoll_stats::{Dist, Process, Seed, Spacing};
use plimsoll_workload::{Call, Hour, Lengths, Shift, Step, Task};

use super::*;
use plimsoll_load::Spell;
use plimsoll_load::Spread;
use plimsoll_load::{SimulateInput, SimulatedPool, Source};

/// A replica carries 1,000 fresh tokens a second with ten calls in flight, and takes two minutes to start.
fn input(calls_per_s: Vec<f64>) -> ScalingInput {
    ScalingInput {
        pool: "chat".to_owned(),
        fresh_tokens_per_s: Some(1000.0),
        in_flight: Some(10.0),
        queue_requests: Some(20.0),
        ttft_budget_s: Some(2.0),
        kv_ceiling_share: Some(0.8),
        shares: ThresholdShares { demand: 0.8, queue: 0.5, ttft: 0.75 },
        min_replicas: 2,
        max_replicas: 40,
        floors: Vec::new(),
        startup_p90_s: Some(120.0),
        drain_s: Some(300.0),
        classes: vec![ClassHours {
            name: "chat".to_owned(),
            calls_per_s,
            fresh_tokens: Some(100.0),
            in_flight_s: Some(0.5),
        }],
        ramp_s: 3600.0,
        sync_period_s: 15.0,
        scrape_delay_s: 15.0,
        tolerance_most: 0.1,
    }
}

#[test]
fn demand_is_looked_at_first() {
    use ScalingSignal as S;
    let policy = scaling_policy(&input(vec![100.0, 100.0]));
    let order: Vec<S> = policy.thresholds.iter().map(|t| t.signal).collect();
    assert_eq!(order, [S::FreshTokens, S::InFlight, S::QueueDepth, S::TtftP90, S::Kv]);
    let values = [800.0, 8.0, 10.0, 1.5, 0.8];
    for (threshold, value) in policy.thresholds.iter().zip(values) {
        assert_eq!(threshold.value, Some(value), "{}", threshold.why);
        // A sum is shared by replicas; a latency or a share is not.
        let sum = !matches!(threshold.signal, S::TtftP90 | S::Kv);
        assert_eq!(threshold.kind == ThresholdKind::AverageValue, sum);
    }
    assert!(policy.thresholds[0].why.starts_with("80% of 1,000 fresh prompt tokens/s/replica"));
    // 10,000 tokens/s are ten replicas' worth; fifty calls in flight five.
    assert_eq!(policy.leading, Some(S::FreshTokens));
    let mut own = input(vec![100.0]);
    own.classes[0].in_flight_s = Some(2.0);
    assert_eq!(scaling_policy(&own).leading, Some(S::InFlight));
    // What is not known is not a threshold of zero.
    own.fresh_tokens_per_s = None;
    own.in_flight = Some(0.0);
    let policy = scaling_policy(&own);
    assert_eq!(policy.threshold(S::FreshTokens), None);
    assert!(policy.thresholds[1].why.ends_with("is not known"));
    assert_eq!(policy.leading, Some(S::QueueDepth));
    assert_eq!(policy.notes.len(), 1);
}

#[test]
fn replicas_are_added_as_fast_as_demand_rises_while_one_starts() {
    // Ten replicas' worth to forty in an hour: a thirtieth of that in two minutes, of which each may carry 0.8.
    let policy = scaling_policy(&input(vec![100.0, 400.0, 100.0]));
    assert_eq!((policy.up.replicas, policy.up.period_s), (2, 120.0));
    assert_eq!(policy.up.stabilisation_s, 0.0);
    // All at once where demand steps, as far as there may be so many.
    let mut own = input(vec![100.0, 300.0]);
    own.ramp_s = 0.0;
    assert_eq!(scaling_policy(&own).up.replicas, 25);
    own.max_replicas = 10;
    assert_eq!(scaling_policy(&own).up.replicas, 10);
    // A floor is not held back either.
    let mut own = input(vec![100.0, 100.0]);
    own.floors = vec![FloorWindow { from_hour: 1, until_hour: 2, replicas: 7 }];
    assert_eq!(scaling_policy(&own).up.replicas, 5);
    own.startup_p90_s = Some(1e5);
    assert_eq!(scaling_policy(&own).up.period_s, 1800.0);
}

#[test]
fn replicas_leave_when_demand_would_have_come_back() {
    // Four replicas' worth up and down an hour: one in a quarter of an hour.
    let policy = scaling_policy(&input(vec![100.0, 140.0, 100.0, 140.0]));
    assert_eq!(policy.demand_holds_s, Some(900.0));
    assert_eq!((policy.down.replicas, policy.down.period_s), (1, 300.0));
    assert_eq!(policy.down.stabilisation_s, 900.0);
    assert!(policy.autocorrelation_1h.is_some_and(|r| r < 0.0));
    // Not before one would be back.
    let policy = scaling_policy(&input(vec![0.0, 1000.0, 0.0, 1000.0]));
    assert_eq!(policy.demand_holds_s, Some(36.0));
    assert_eq!(policy.down.stabilisation_s, 120.0);
    // Half a replica's worth an hour on end: one in two hours, and Kubernetes waits for one at most.
    let policy = scaling_policy(&input((0..24).map(|h| 5.0 * f64::from(h)).collect()));
    assert_eq!(policy.demand_holds_s, Some(7200.0));
    assert_eq!(policy.down.stabilisation_s, 3600.0);
    assert!(policy.autocorrelation_1h.is_some_and(|r| r > 0.8));
    let policy = scaling_policy(&input(vec![100.0; 24]));
    assert_eq!((policy.demand_holds_s, policy.autocorrelation_1h), (None, None));
}

#[test]
fn one_replica_is_never_tolerated() {
    let policy = scaling_policy(&input(vec![100.0]));
    assert_eq!(policy.tolerance_share, 0.024);
    let own = ScalingInput { max_replicas: 4, ..input(vec![100.0]) };
    assert_eq!(scaling_policy(&own).tolerance_share, 0.1);
}

#[test]
fn hostile_numbers_make_a_policy_all_the_same() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        let own = ScalingInput {
            pool: String::new(),
            fresh_tokens_per_s: Some(bad),
            in_flight: Some(bad),
            queue_requests: Some(bad),
            ttft_budget_s: Some(bad),
            kv_ceiling_share: Some(bad),
            shares: ThresholdShares { demand: bad, queue: bad, ttft: bad },
            min_replicas: 3,
            max_replicas: 0,
            floors: vec![FloorWindow { from_hour: 5, until_hour: 0, replicas: u32::MAX }],
            startup_p90_s: Some(bad),
            drain_s: Some(bad),
            classes: vec![ClassHours {
                name: String::new(),
                calls_per_s: vec![bad, 1.0, bad],
                fresh_tokens: Some(bad),
                in_flight_s: Some(bad),
            }],
            ramp_s: bad,
            sync_period_s: bad,
            scrape_delay_s: bad,
            tolerance_most: bad,
        };
        let policy = scaling_policy(&own);
        assert!(policy.tolerance_share.is_finite() && policy.up.period_s.is_finite());
        assert!(policy.max_replicas >= policy.min_replicas);
        for threshold in &policy.thresholds {
            if let Some(spec) = policy.spec(threshold.signal, Vec::new()) {
                // It asserts that it is in order.
                plimsoll_sim::Controller::new(spec.scaling);
            }
        }
    }
}

#[test]
fn a_policy_is_what_the_simulator_follows() {
    let policy = scaling_policy(&input(vec![100.0, 400.0, 100.0]));
    let spec = policy.spec(ScalingSignal::InFlight, vec![(0, 3)]).expect("a threshold");
    assert_eq!((spec.scaling.min, spec.scaling.max), (2, 40));
    assert_eq!((spec.signal, spec.target), (Signal::InFlight, 8.0));
    assert_eq!(spec.kind, TargetKind::AverageValue);
    assert_eq!(spec.scaling.up.policies[0].change, Change::Replicas(2));
    assert_eq!(spec.scaling.up.policies[0].period, 120_000_000_000_000);
    assert_eq!(spec.scaling.down.policies[0].change, Change::Replicas(1));
    assert_eq!(spec.floors, [(0, 3)]);
    assert_eq!(spec.scaling.activation, None);
}

/// llm-d's bursty benchmark: 15, 2, 10, 15, 5 and 2 calls a second where a replica carries two, and four replicas at most.
#[test]
fn a_ceiling_is_told_from_a_controller() {
    let need: Vec<u32> = [15u32, 2, 10, 15, 5, 2].map(|rate| rate.div_ceil(2)).into();
    let hours: Vec<usize> = (0..6).collect();
    let short = ceiling_short("qwen", &need, &hours, 4).expect("it is short");
    assert_eq!((short.needed_replicas, short.ceiling_short_replicas), (8, 4));
    assert_eq!(short.first_hour, 0);
    assert!(short.why.contains("4 are missing"));
    assert_eq!(ceiling_short("qwen", &need, &hours, 8), None);
    // What happens outside the stretch is none of its business.
    assert_eq!(ceiling_short("qwen", &need, &[1, 4], 4), None);
}

/// Llama-3.1-8B on a device like an H200, eight sequences at once: some six calls a second of 500 tokens in and 200 out.
fn pool(startup: f64) -> SimulatedPool {
    let llama = from_hf(
        r#"{ "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256 }"#,
    )
    .expect("a model");
    let layout = Layout {
        placement: Placement::single(),
        format: Format::Bf16,
        kv_element_bytes: 2,
        attention_replicas: 1,
        lora_rank: None,
        graph_tokens: Some(512),
    };
    let work = Work::of(&llama, &layout).expect("work");
    let sheet = Datasheet { bandwidth: 4.8e12, peak: 989e12, peak_plain: 989e12, link: 450e9 };
    let mut terms = [0.0; Term::ALL.len()];
    for term in Term::ALL.into_iter().filter(|t| t.is_efficiency()) {
        terms[term as usize] = 0.8;
    }
    terms[Term::LayerSeconds as usize] = 30e-6;
    terms[Term::SequenceSeconds as usize] = 8e-6;
    terms[Term::AttentionRamp as usize] = 1000.0;
    let model = StepModel::new(&work, &Rates { sheet, terms, plain: [0.7, 0.8] }, 8192);
    let limits = Limits::new(8, 8192, Kv::new(20_000, 16));
    let path = RequestPath { request_seconds: 0.0, token_seconds: 0.0, servers: 1.0 };
    let mut life = plimsoll_sim::PoolSpec::one(limits, model, path);
    life.routing = Routing::LeastOutstanding;
    life.drain = 60_000_000_000_000;
    let seconds = Dist::constant(startup).expect("a time");
    let phases = vec![Phase { seconds, done: 0.0, seconds_when_done: None }];
    life.startup = StartupSpec { phases, beyond: None };
    SimulatedPool {
        name: "chat".to_owned(),
        devices: 1,
        work,
        bandwidth: 4.8e12,
        peak: 989e12,
        spread: Spread::default(),
        life,
    }
}

/// What a replica carries, in calls a second.
const LINE: f64 = 4.0;

/// Ten minutes of each of some hours, of which the first five only warm up.
fn check_input(rates: &[f64], startup: f64, max: u32) -> ScalingCheckInput {
    let mut fleet = SimulateInput::known("chat", pool(startup), 0.0, Seed::new(7));
    let lengths = Lengths::independent(
        Dist::constant(500.0).expect("a length"),
        Dist::constant(200.0).expect("a length"),
    );
    let own = &mut fleet.classes[0];
    own.class.process = Process::Flow { spacing: Spacing::Poisson, burst: None };
    own.class.task = Task::steps(vec![Step::Call(Call::new(lengths, 0.0))]);
    own.class.hours = rates.iter().map(|rate| Hour::new(*rate, Shift::NONE)).collect();
    let second = 1_000_000_000_000;
    own.sent.good = Good { ttft: Some(second), e2e: Some(5 * second), ..Good::default() };
    let spell = |hour: usize| Spell { until: 600.0 * (hour as f64 + 1.0), hour, events: true };
    fleet.source = Source::Classes((0..rates.len()).map(spell).collect());
    (fleet.warm_up, fleet.seconds) = (300.0, 600.0 * rates.len() as f64 - 300.0);
    fleet.work_off = Some(60.0);
    let need: Vec<u32> = rates.iter().map(|rate| (rate / LINE).ceil() as u32).collect();
    let planned = need.iter().copied().max().unwrap_or(1) + 1;
    let policy = scaling_policy(&ScalingInput {
        fresh_tokens_per_s: Some(LINE * 500.0),
        in_flight: None,
        min_replicas: 1,
        max_replicas: max,
        startup_p90_s: Some(startup),
        drain_s: Some(30.0),
        classes: vec![ClassHours {
            name: "chat".to_owned(),
            calls_per_s: rates.to_vec(),
            fresh_tokens: Some(500.0),
            in_flight_s: None,
        }],
        ramp_s: 0.0,
        ..input(Vec::new())
    });
    let pool = PoolCheck {
        policy: Some(policy),
        planned_replicas: planned,
        need_by_hour: need,
        price_usd_per_replica_hour: Some(3.0),
    };
    ScalingCheckInput { fleet, pools: vec![pool], targets: vec![0.95], window_s: 60.0 }
}

fn checked(input: &ScalingCheckInput) -> ScalingCheck {
    check_scaling(input, &|| true).expect("a check")
}

/// The steepest rise, and the first of several.
#[test]
fn a_stretch_is_cut_around_the_steepest_rise() {
    let spells = |need: &[u32]| ramp_spells(need, 600.0, 900.0, true);
    let [before, after] = spells(&[2, 3, 9, 12, 2, 8]).expect("it rises");
    assert_eq!((before.hour, before.until), (1, 600.0));
    assert_eq!((after.hour, after.until, after.events), (2, 1500.0, true));
    assert_eq!(spells(&[5, 5, 4]), None);
    assert_eq!(spells(&[]), None);
}

/// Who knows what comes takes as many replica-hours as hours need, and no more than a plan that covers them all; and keeps its promises.
#[test]
fn who_knows_what_comes_pays_least() {
    let input = check_input(&[6.0, 24.0, 6.0], 120.0, 10);
    let check = checked(&input);
    let (fixed, oracle) = (&check.static_plan, &check.oracle);
    assert!(oracle.replica_hours < fixed.replica_hours);
    assert!(oracle.cost_usd < fixed.cost_usd);
    // Two replicas for 15 min and six for ten, of which each is there five seconds early and leaves when it is done.
    let least = 2.0 * 0.25 + 6.0 / 6.0;
    assert!((least..least + 0.05).contains(&oracle.replica_hours), "{}", oracle.replica_hours);
    assert!((fixed.replica_hours - 7.0 * 25.0 / 60.0).abs() < 1e-9);
    assert_eq!(fixed.cost_usd, Some(3.0 * fixed.replica_hours));
    assert_eq!((fixed.slo_minutes_missed, oracle.slo_minutes_missed), (0.0, 0.0));
    assert_eq!((fixed.flips_per_day, fixed.slo_minutes), (0.0, 25.0));
    assert_eq!(oracle.pools[0].replicas_max, 6);
    // A policy that only sees demand once it has come is late, and dearer than who knew.
    let policy = &check.policy;
    assert!(policy.slo_minutes_missed > 0.0 && policy.slo_minutes_missed < 10.0);
    assert!(policy.replica_hours > oracle.replica_hours);
    assert!(policy.attainment < oracle.attainment);
    let [of_static, of_policy, ..] = check.regret.as_slice() else { panic!("two regrets") };
    assert_eq!((of_static.of, of_policy.of), (WayKind::Static, WayKind::Policy));
    assert_eq!(of_policy.slo_minutes, policy.slo_minutes_missed);
    assert_eq!(of_static.replica_hours, fixed.replica_hours - oracle.replica_hours);
    assert!(check.ceilings.is_empty());
}

/// Whatever comes, no plan that covers it takes fewer replica-hours than who knows, nor misses fewer minutes by them.
#[test]
fn no_plan_that_covers_all_is_cheaper_than_knowing() {
    for rates in [[6.0, 24.0], [24.0, 6.0], [6.0, 6.0], [0.0, 12.0]] {
        let check = checked(&check_input(&rates, 60.0, 10));
        let (fixed, oracle) = (&check.static_plan, &check.oracle);
        assert!(oracle.replica_hours <= fixed.replica_hours, "{rates:?}");
        assert!(oracle.cost_usd <= fixed.cost_usd, "{rates:?}");
        assert!(check.regret[0].replica_hours >= 0.0, "{rates:?}");
    }
}

/// The calendar, early by as long as a start takes, keeps the promise that following demand breaks.
#[test]
fn a_floor_has_its_replicas_ready_in_time() {
    let mut input = check_input(&[6.0, 24.0, 6.0], 120.0, 10);
    let without = checked(&input).policy;
    let policy = input.pools[0].policy.as_mut().expect("a policy");
    policy.floors = vec![FloorWindow { from_hour: 1, until_hour: 2, replicas: 6 }];
    let with = checked(&input).policy;
    assert!(with.slo_minutes_missed < without.slo_minutes_missed);
    assert_eq!(with.slo_minutes_missed, 0.0);
}

/// A policy that may not have what is needed is told so, and no start however fast would help it.
#[test]
fn a_policy_that_can_never_reach_is_told() {
    let check = checked(&check_input(&[6.0, 24.0], 1.0, 3));
    let [short] = check.ceilings.as_slice() else { panic!("one is short") };
    assert_eq!((short.pool.as_str(), short.first_hour), ("chat", 1));
    assert_eq!((short.needed_replicas, short.ceiling_short_replicas), (6, 3));
    assert!(check.policy.slo_minutes_missed > 5.0);
    assert!(check.policy.pools[0].decisions_at_most > 0);
    assert_eq!(check.oracle.slo_minutes_missed, 0.0);
}

/// A policy that wants more than the plan has says so.
#[test]
fn a_policy_beyond_the_plan_is_told() {
    let told = |input: &ScalingCheckInput| {
        let says = |note: &String| note.contains("the plan has 7, its reserve included");
        checked(input).notes.iter().any(says)
    };
    // Six at 0.8 are eight.
    let mut input = check_input(&[6.0, 24.0], 1.0, 10);
    assert!(told(&input));
    input.pools[0].policy.as_mut().expect("a policy").max_replicas = 7;
    assert!(!told(&input));
}

/// The slower a start, the more minutes are missed.
#[test]
fn slow_starts_miss_more_minutes() {
    let missed = [1.0, 60.0, 180.0, 400.0].map(|startup| {
        let check = checked(&check_input(&[6.0, 24.0], startup, 10));
        check.policy.slo_minutes_missed
    });
    assert!(missed.is_sorted(), "{missed:?}");
    assert!(missed[3] > missed[0] + 3.0, "{missed:?}");
}

#[test]
fn threads_change_nothing() {
    let mut input = check_input(&[6.0, 24.0, 6.0], 60.0, 10);
    for runs in [1, 3] {
        input.fleet.runs = runs;
        let [one, two] = [1, 2].map(|threads| {
            input.fleet.threads = threads;
            checked(&input)
        });
        assert_eq!(one, two);
    }
}

/// Hours that were not simulated are told by what the curve says they need.
#[test]
fn the_rest_is_told_by_the_curve() {
    let mut input = check_input(&[6.0, 24.0], 60.0, 4);
    // Two hours more, of which one needs more than there may be.
    input.pools[0].need_by_hour = vec![2, 6, 3, 5];
    let policy = input.pools[0].policy.as_mut().expect("a policy");
    policy.demand_share = 1.0;
    policy.floors = vec![FloorWindow { from_hour: 3, until_hour: 4, replicas: 4 }];
    (policy.down.period_s, policy.down.stabilisation_s) = (60.0, 600.0);
    policy.floors_lead_s = 60.0;
    let check = checked(&input);
    let rest = check.rest.as_ref().expect("hours are left");
    assert_eq!(rest.from, Basis::ServiceCurve);
    // Five minutes of the first hour count, and ten of the second.
    let (first, second) = (55.0 / 60.0, 50.0 / 60.0);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    close(rest.hours, first + second + 2.0);
    close(rest.static_plan.replica_hours, 7.0 * rest.hours);
    close(rest.static_plan.slo_minutes_missed, 0.0);
    close(rest.oracle.replica_hours, 2.0 * first + 6.0 * second + 8.0);
    close(rest.floors.replica_hours, first + second + 5.0);
    close(rest.floors.slo_minutes_missed, 60.0 * rest.hours);
    // Two come in the second hour and one in the fourth; one leaves in the third.
    let moves = (2.0 * 60.0 * second + 600.0 + 60.0) / 3600.0;
    close(rest.policy.replica_hours, 2.0 * first + 4.0 * second + 7.0 + moves);
    close(rest.policy.slo_minutes_missed, 60.0 * (second + 1.0));
    let [.., of_static, of_policy] = check.regret.as_slice() else { panic!("four regrets") };
    assert_eq!((of_static.from, of_policy.from), (Basis::ServiceCurve, Basis::ServiceCurve));
    close(of_static.cost_usd.expect("a price"), 3.0 * of_static.replica_hours);
    // Without a price there is no cost, and not none.
    input.pools[0].price_usd_per_replica_hour = None;
    let check = checked(&input);
    assert_eq!((check.policy.cost_usd, check.regret[2].cost_usd), (None, None));
}

#[test]
fn a_policy_says_how_often_it_changes_its_mind() {
    let input = check_input(&[6.0, 24.0, 6.0], 30.0, 10);
    let check = checked(&input);
    let policy = input.pools[0].policy.clone().expect("a policy").checked(&check);
    assert_eq!(policy.expected_flips_per_day, Some(check.policy.flips_per_day));
}
