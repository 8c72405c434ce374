//! A fixed sequence of steps, for the benchmark and for the test that its answers stay the same.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepLoad, StepModel, Term, Work};

/// What the decode steps, the mixed steps and the decode pieces hash to.
pub const ANSWERS: [u64; 3] =
    [6_623_819_450_222_776_639, 5_154_729_345_122_725_017, 14_737_236_178_285_599_951];

/// A mixture with windows on two devices, in four bits: every term has a part in its steps.
pub fn model() -> StepModel {
    let kinds: Vec<&str> =
        (0..24).map(|i| ["\"sliding_attention\"", "\"full_attention\""][i % 2]).collect();
    let config = format!(
        r#"{{"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":24,"num_attention_heads":64,
        "num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"vocab_size":201088,"num_local_experts":32,
        "num_experts_per_tok":4,"sliding_window":128,"layer_types":[{}]}}"#,
        kinds.join(",")
    );
    let layout = Layout {
        placement: Placement::tensor(2),
        format: Format::Mxfp4,
        kv_element_bytes: 2,
        attention_replicas: 1,
        lora_rank: None,
        graph_tokens: Some(512),
    };
    let work = Work::of(&from_hf(&config).expect("a configuration"), &layout).expect("it fits");
    let sheet = Datasheet { bandwidth: 4.8e12, peak: 989e12, peak_plain: 989e12, link: 450e9 };
    let terms = Term::ALL.map(|term| match term {
        term if term.is_efficiency() => 0.6,
        Term::AttentionRamp => 900.0,
        Term::TokenSeconds => 5e-9,
        Term::EagerSeconds => 4e-4,
        Term::PieceSeconds => 3e-4,
        _ => 8e-6,
    });
    StepModel::new(&work, &Rates { sheet, terms, plain: [0.7, 0.7] }, 8192)
}

/// Steps of decodes, or of decodes and a part of a prompt. The generator is Knuth's MMIX, so that nothing else can change them.
pub fn loads(count: usize, mixed: bool) -> Vec<StepLoad> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    (0..count)
        .map(|_| {
            let decodes = 1 + below(512);
            let context = decodes * (1 + below(4000));
            let mut load = StepLoad { decodes, context, ..StepLoad::default() };
            if mixed {
                load.add_chunk(1 + below(4096), below(8192));
            }
            load
        })
        .collect()
}

/// FNV-1a over whole numbers.
pub fn hash(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0xCBF2_9CE4_8422_2325, |h, n| (h ^ n).wrapping_mul(0x0100_0000_01B3))
}

/// All three answers, over a thousand steps each.
pub fn answers(model: &StepModel) -> [u64; 3] {
    let pieces = loads(1000, false).into_iter().flat_map(|load| {
        let piece = model.decode_piece(load.decodes, load.context, 0);
        [piece.base, piece.slope, piece.until]
    });
    [
        hash(loads(1000, false).iter().map(|load| model.step(load))),
        hash(loads(1000, true).iter().map(|load| model.step(load))),
        hash(pieces),
    ]
}
