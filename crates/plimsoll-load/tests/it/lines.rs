//! Load lines of random fleets: more replicas never carry less, more load is never better kept, a stricter promise never needs fewer replicas, and the answer depends
//! on neither threads nor on what was asked before.

use plimsoll_fleet::from_hf;
use plimsoll_load::{
    ClassTarget, Effort, Load, LoadLine, LoadQuestion, LoadVerdict, Memo, SimulateInput,
    SimulatedPool, Spread,
};
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, RequestPath, StepModel, Term, Work};
use plimsoll_sim::{Good, Kv, Limits, PoolSpec, Routing};
use plimsoll_stats::{Burst, Dist, Process, Seed, Spacing};
use plimsoll_testkit::cases;
use plimsoll_workload::{Call, Hour, Lengths, Shift, Step, Task};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Llama-3.1-8B on a device like an H200.
fn pool(sequences: usize) -> SimulatedPool {
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
    for term in Term::ALL.into_iter().filter(|term| term.is_efficiency()) {
        terms[term as usize] = 0.8;
    }
    terms[Term::LayerSeconds as usize] = 30e-6;
    terms[Term::SequenceSeconds as usize] = 8e-6;
    terms[Term::AttentionRamp as usize] = 1000.0;
    let model = StepModel::new(&work, &Rates { sheet, terms, plain: [0.7, 0.8] }, 8192);
    let limits = Limits::new(sequences, 8192, Kv::new(20_000, 16));
    let path = RequestPath { request_seconds: 0.0, token_seconds: 0.0, servers: 1.0 };
    let mut life = PoolSpec::one(limits, model, path);
    life.routing = Routing::LeastOutstanding;
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

/// A fleet of one pool and one class.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    replicas: u32,
    sequences: usize,
    /// Calls a second.
    rate: f64,
    prompt: f64,
    output: f64,
    ttft_ms: u64,
    /// How many times as many come in bursts; none at one.
    burst: f64,
}

impl Case {
    fn fleet(&self) -> SimulateInput {
        let mut fleet =
            SimulateInput::known("chat", pool(self.sequences), 0.0, Seed::new(self.seed));
        fleet.pools[0].life.replicas = self.replicas;
        fleet.threads = 1;
        let own = &mut fleet.classes[0];
        let burst =
            (self.burst > 1.0).then(|| Burst::new(self.burst, 30.0, 300.0).expect("a burst"));
        own.class.process = Process::Flow { spacing: Spacing::Poisson, burst };
        let spread = |mean: f64| Dist::by_mean_cv(mean, 0.7).expect("lengths");
        let lengths = Lengths::independent(spread(self.prompt), spread(self.output));
        own.class.task = Task::steps(vec![Step::Call(Call::new(lengths, 0.0))]);
        own.class.hours = vec![Hour::new(self.rate, Shift::NONE)];
        own.sent.good = Good { ttft: Some(self.ttft_ms * 1_000_000_000), ..Good::default() };
        fleet
    }

    fn line(&self) -> LoadLine {
        asked(&self.fleet(), &Memo::default(), |load| load.line().expect("a line"))
    }
}

fn asked<R>(fleet: &SimulateInput, memo: &Memo, ask: impl FnOnce(&Load<'_>) -> R) -> R {
    let targets = [ClassTarget { attainment: 0.95, tails: Vec::new() }];
    let question = LoadQuestion { fleet, targets: &targets, hour: 0, events: false, lost: &[] };
    // Enough for lines that two steps of the grid tell apart, and few enough for a test.
    let effort =
        Effort { calls_per_load: 12_000, calls_elsewhere: 12_000, calls: 96_000, ..Effort::USUAL };
    ask(&Load::of(&question, memo, &|| true).with(effort))
}

fn case() -> impl Strategy<Value = Case> {
    let lengths = (100.0f64..3000.0, 20.0f64..300.0);
    let shape = (1u32..4, 4usize..33, 1.0f64..12.0);
    (0u64..1 << 32, shape, lengths, 300u64..3000, prop_oneof![Just(1.0), 2.0f64..5.0]).prop_map(
        |(seed, (replicas, sequences, rate), (prompt, output), ttft_ms, burst)| Case {
            seed,
            replicas,
            sequences,
            rate,
            prompt,
            output,
            ttft_ms,
            burst,
        },
    )
}

/// A load that holds, or the lightest that was tried.
fn holds(line: &LoadLine) -> f64 {
    line.holds.unwrap_or(0.0)
}

/// Two steps of the grid: runs of other fleets are other runs.
const STEPS: f64 = 1.04 * 1.04 + 1e-9;

/// Verdicts are wrong a few times in a hundred, so the cases are the same in each run; `PROPTEST_RNG_SEED` draws others.
fn config() -> ProptestConfig {
    let config = ProptestConfig::with_cases(cases(16));
    match config.rng_seed {
        RngSeed::Random => ProptestConfig { rng_seed: RngSeed::Fixed(40), ..config },
        RngSeed::Fixed(_) => config,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_line_of_a_random_fleet(case in case()) {
        holds_together(case)?;
    }
}

/// What must be true of any fleet.
fn holds_together(case: Case) -> Result<(), TestCaseError> {
    let line = case.line();
    let fleet = case.fleet();

    // Neither threads nor what was asked before change it.
    let threaded = SimulateInput { threads: 4, ..fleet.clone() };
    prop_assert_eq!(
        &asked(&threaded, &Memo::default(), |load| load.line().expect("a line")),
        &line
    );
    let memo = Memo::default();
    asked(&fleet, &memo, |load| load.least(0, (1, 8), None).expect("a number"));
    prop_assert_eq!(&asked(&fleet, &memo, |load| load.line().expect("a line")), &line);
    prop_assert_eq!(memo.count().repeated, 0);

    // More load is never better kept.
    if let Some(holds) = line.holds.filter(|_| !line.beyond) {
        let at =
            |load: f64| asked(&fleet, &Memo::default(), |own| own.at(load).expect("an outcome"));
        prop_assert_ne!(at(holds / (STEPS * STEPS)).verdict, LoadVerdict::Fails);
        let fails = line.fails.expect("a load that is too much");
        prop_assert_ne!(at(fails * STEPS * STEPS).verdict, LoadVerdict::Carried);
    }

    // More replicas never carry less.
    let more = Case { replicas: case.replicas + 1, ..case }.line();
    prop_assert!(
        more.beyond || holds(&more) * STEPS >= holds(&line),
        "{:?} {:?}",
        more.holds,
        line.holds
    );

    // A stricter promise never carries more.
    let strict = Case { ttft_ms: case.ttft_ms / 2, ..case }.line();
    prop_assert!(
        line.beyond || holds(&strict) <= holds(&line) * STEPS,
        "{:?} {:?}",
        strict.holds,
        line.holds
    );
    Ok(())
}

/// Six sequences and a first token within 2.1 s: a load that is a few per cent too much misses nothing for the first minute. Runs of six seconds called 3.24 times the demand carried.
#[test]
fn a_backlog_needs_time_to_break_a_promise() {
    let case = Case {
        seed: 2_204_625_067,
        replicas: 1,
        sequences: 6,
        rate: 10.129,
        prompt: 1000.5,
        output: 20.0,
        ttft_ms: 2119,
        burst: 1.0,
    };
    holds_together(case).expect("a line");
    assert!(holds(&case.line()) < 2.8);
}

/// A load at which three in four tasks miss says nothing of how misses clump: taken for single misses, a quiet minute at a load that misses three times what it may was called carried.
#[test]
fn saturated_loads_do_not_teach_clumps() {
    let case = Case {
        seed: 2_674_258_346,
        replicas: 1,
        sequences: 16,
        rate: 6.9755,
        prompt: 2950.3,
        output: 199.67,
        ttft_ms: 554,
        burst: 1.0,
    };
    holds_together(case).expect("a line");
}
