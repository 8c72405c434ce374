//! The step times of an 8B model.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepModel, Term, Work};

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
