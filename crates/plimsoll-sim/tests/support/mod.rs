//! A conversation's worth of requests on an 8B model, the same every time.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepModel, Term, Work};
use plimsoll_sim::{
    Arrival, Budget, Kv, Limits, Loop, Outcome, Queue, Replica, Steps, Wanted, Watch, drive,
};

pub const BUDGET: u64 = 8192;

/// Llama-3.1-8B in 16 bits on a device like an H200, with overheads of an asynchronous vLLM.
pub fn model() -> StepModel {
    let llama = from_hf(
        r#"{ "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072 }"#,
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
    StepModel::new(&work, &Rates { sheet, terms, plain: [0.7, 0.8] }, BUDGET)
}

/// Exponential lengths, 1,155 tokens in and 211 out on average, at Poisson arrivals of 22 a second: near what one replica carries.
pub fn conversation(count: usize) -> impl Iterator<Item = Arrival> + Clone {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move |mean: f64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // A logarithm that is the same on every machine.
        -libm::log(1.0 - (state >> 11) as f64 / (1u64 << 53) as f64) * mean
    };
    let mut at = 0.0;
    (0..count).map(move |_| {
        at += draw(1.0 / 22.0);
        let (prompt, output) = (draw(1155.0) as u64 + 1, draw(211.0) as u64 + 1);
        Arrival::new((at * 1e12) as u64, Wanted::new(prompt, output))
    })
}

/// A number that changes when any event does.
struct Hash(u64);

impl Hash {
    fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Watch for Hash {
    fn gap(&mut self, _: u16, ps: u64, count: u64) {
        self.mix(ps ^ count);
    }

    fn over(&mut self, outcome: &Outcome) {
        self.mix(outcome.first.unwrap_or_default());
        self.mix(outcome.done);
    }
}

/// The day at so many sequences, and a number that changes when any event does.
pub fn run(
    model: &StepModel,
    max_num_seqs: usize,
    arrivals: impl Iterator<Item = Arrival>,
) -> (Steps, u64) {
    let kv = Kv::new(56_000, 16);
    let limits = Limits { asynchronous: true, ..Limits::new(max_num_seqs, BUDGET, kv) };
    let mut replica = Replica::new(limits, model);
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    let ended = drive(
        &mut replica,
        Loop::Open,
        arrivals,
        Queue::default(),
        Budget::NONE,
        &mut hash,
        &mut |_| true,
    );
    assert!(ended.complete, "all are served");
    (replica.steps(), hash.0)
}
