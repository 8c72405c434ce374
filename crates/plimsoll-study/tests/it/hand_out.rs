//! A log made by the plain engine with a known host, taken apart and fitted again.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{
    Batch, Datasheet, Host, Layout, Rates, Selection, StepModel, Term, Work, launch,
};
use plimsoll_sim::{Given, Kv, Limits, PlainEngine, Wanted};
use plimsoll_study::{
    CalibrateInput, Calibration, EngineRun, Fit, Origin, PoolSteps, RunRequest, RunSetup, RunStep,
    calibrate,
};

const LLAMA_8B: &str = r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
    "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}"#;
const BLOCKS: u64 = 50_000;

fn limits() -> Limits {
    Limits::new(128, 2048, Kv::new(BLOCKS, 16))
}

/// Llama-3.1-8B in 16 bits on one H200, with a host like the one of our own logs.
fn pool() -> (PoolSteps, Rates) {
    let layout = Layout {
        placement: Placement::single(),
        format: Format::Bf16,
        kv_element_bytes: 2,
        attention_replicas: 1,
        lora_rank: None,
        graph_tokens: Some(256),
    };
    let work = Work::of(&from_hf(LLAMA_8B).expect("a configuration"), &layout).expect("it fits");
    let sheet = Datasheet { bandwidth: 4.8e12, peak: 989e12, peak_plain: 989e12, link: 450e9 };
    let terms = Term::ALL.map(|term| match term {
        Term::EagerSeconds => 6e-4,
        Term::PieceSeconds => 3.5e-4,
        Term::LaunchSeconds => 1.6e-3,
        Term::LaunchSequenceSeconds => 3e-5,
        Term::LayerSeconds => 2e-5,
        Term::PathSeconds => 1e-3,
        Term::AttentionRamp => 1000.0,
        Term::UnevenShare => 0.06,
        term if term.is_efficiency() => 0.7,
        _ => 1e-6,
    });
    let selection = Selection { terms: [0; Term::ALL.len()], plain: [0; 2] };
    let (kind, family, engine) = ("dense", Some("hopper"), "vllm".to_owned());
    let steps = PoolSteps { work, sheet, selection, kind, family, engine };
    (steps, Rates { sheet, terms, plain: [0.7, 0.7] })
}

/// What a client would have logged of requests that come now and then: prompts of 60 to 1,860 tokens among sequences that decode.
fn log(model: &StepModel, way: f64) -> EngineRun {
    let requests: Vec<RunRequest> = (0..60u64)
        .map(|i| RunRequest {
            at: 0.13 * i as f64 + 0.01 * (i * 7 % 11) as f64,
            prompt: 60 + 1800 * (i * 37 % 61) / 60,
            output: 40 + i * 29 % 90,
            cached: 0,
            prefix: None,
            kind: None,
            ttft: 0.0,
            e2e: 0.0,
            itl: Vec::new(),
        })
        .collect();
    let arrivals: Vec<u64> = requests.iter().map(|r| ((r.at + way) * 1e12) as u64).collect();
    let mut engine = PlainEngine::new(limits());
    let mut host = Host { free: 0u64, done: 0u64 };
    let mut under_way: Option<(Given, u64)> = None;
    let (mut next, mut steps) = (0, Vec::new());
    loop {
        while next < arrivals.len() && arrivals[next] <= host.free {
            let RunRequest { prompt, output, .. } = requests[next];
            engine.arrive(next as u64, Wanted::new(prompt, output)).expect("it fits");
            next += 1;
        }
        let step = engine.schedule();
        let end = step
            .as_ref()
            .map_or(0, |step| host.launch(model.device(&step.load), model.launch(&step.load)));
        match under_way.take() {
            Some((given, ends)) => {
                engine.release();
                steps.push(RunStep {
                    at: host.hand_out(ends) as f64 / 1e12,
                    running: engine.running() as u64,
                    waiting: engine.waiting() as u64,
                    kv: 0.0,
                    generated: given.tokens.len() as u64,
                    prompt: given.prompt,
                    preempted: 0,
                });
            }
            None if step.is_some() => {}
            None if next < arrivals.len() => {
                host.free = host.free.max(arrivals[next]);
                continue;
            }
            None => break,
        }
        under_way = step.map(|step| (engine.advance(&step), end));
    }
    EngineRun {
        origin: Origin { file: "made.jsonl".to_owned(), row: 1, tool: "the plain engine" },
        run: "made".to_owned(),
        setup: RunSetup {
            model: "llama-3.1-8b".to_owned(),
            accelerator: "H200-SXM".to_owned(),
            engine: "vllm".to_owned(),
            version: "0.24.0".to_owned(),
            weights: "bf16".to_owned(),
            kv_dtype: "bf16".to_owned(),
            tensor_parallel: 1,
            max_num_seqs: 128,
            max_num_batched_tokens: 2048,
            kv_tokens: BLOCKS * 16,
            block_size: 16,
            prefix_caching: false,
        },
        clients: None,
        promise: None,
        gaps: None,
        requests,
        steps,
    }
}

fn budget() -> Fit {
    Fit {
        name: "made".to_owned(),
        fits: true,
        devices: 1,
        device_bytes: 0,
        weights_bytes: 0,
        kv_bytes_per_token: 131_072,
        available_kv_bytes: 0,
        kv_tokens: BLOCKS * 16,
        printed_kv_tokens: 0,
        max_concurrency_at_max_len: 1.0,
        missing_bytes: 0,
        state_bytes_per_sequence: 0,
        max_model_len_tokens: 32_768,
        kv: Kv::new(BLOCKS, 16),
        prefix_caching: false,
        max_num_seqs: 128,
        max_num_batched_tokens: 2048,
        memory_fraction: 0.9,
        tokens_per_gib: 0,
        budget: Vec::new(),
        contexts: Vec::new(),
        would_fit: Vec::new(),
        observed: Vec::new(),
    }
}

fn fitted(prior: impl Fn(&mut Rates)) -> (Rates, Calibration) {
    let (pool, truth) = pool();
    let model = StepModel::new(&pool.work, &truth, 2048);
    let run = log(&model, truth.get(Term::PathSeconds));
    let mut believed = truth;
    prior(&mut believed);
    let budget = budget();
    let input = CalibrateInput {
        known_as: vec!["llama-3.1-8b".to_owned()],
        pool: &pool,
        prior: believed,
        budget: &budget,
        reserves_output: false,
        points: &[],
        runs: std::slice::from_ref(&run),
        held_out: &[],
        flags: Vec::new(),
        level: 0.9,
    };
    (truth, calibrate(&input).expect("a fit"))
}

/// With the true constants nothing is left to explain: every step is found again, and every output is where the log has it.
#[test]
fn a_made_log_is_taken_apart_exactly() {
    let (_, calibration) = fitted(|_| {});
    assert_eq!(calibration.points[0].lost_steps, 0);
    for group in &calibration.fitted {
        assert!(group.n > 10 || group.name.contains("idleness"), "{group:?}");
        assert!(group.p90_abs_pct < 0.1, "{group:?}");
    }
    let spread = &calibration.spread;
    for (name, differences) in [("decodes", &spread.decodes_s), ("launch", &spread.launch_s)] {
        assert!(!differences.is_empty(), "{name}");
        assert!(differences.iter().all(|d| d.abs() < 5e-5), "{name}: {differences:?}");
    }
}

/// A prior that takes the host for a third faster, and its own work for twice as long, comes back to the truth: the outputs that waited for it say so.
#[test]
fn the_host_is_found_from_late_tokens() {
    let (truth, calibration) = fitted(|prior| {
        prior.set(Term::EagerSeconds, 4e-4);
        prior.set(Term::LaunchSeconds, 3.2e-3);
    });
    let (pool, _) = pool();
    for prompt in [100.0, 1000.0] {
        let batch = Batch::decode(4.0, 4000.0).and(Batch::chunk(prompt, 0.0));
        let whole = |rates: &Rates| launch(&pool.work, rates, &batch).whole;
        let (found, real) = (whole(&calibration.rates), whole(&truth));
        assert!((found / real - 1.0).abs() < 0.03, "{prompt} tokens: {found} s for {real} s");
    }
}
