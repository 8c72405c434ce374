//! What must hold of a step's time, whatever the model, its placement, its format and the constants.

use plimsoll_fleet::{Architecture, from_hf};
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepLoad, StepModel, Term, Work, floor, step};
use proptest::prelude::*;
use proptest::sample::select;

/// A model of one of six families, by its shape.
#[derive(Clone, Debug)]
struct Shape {
    family: &'static str,
    layers: u64,
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    intermediate: u64,
    experts: u64,
    per_token: u64,
    window: u64,
    vocabulary: u64,
}

impl Shape {
    fn has_experts(&self) -> bool {
        matches!(self.family, "qwen3_moe" | "deepseek_v3" | "gpt_oss" | "qwen3_next")
    }

    fn model(&self) -> Architecture {
        let Self { layers, hidden, heads, kv_heads, head_dim, intermediate, experts, .. } = self;
        let (per_token, window, vocabulary) = (self.per_token, self.window, self.vocabulary);
        let common = format!(
            r#""model_type":"{}","hidden_size":{hidden},"num_hidden_layers":{layers},"num_attention_heads":{heads},
            "num_key_value_heads":{kv_heads},"head_dim":{head_dim},"intermediate_size":{intermediate},
            "vocab_size":{vocabulary},"tie_word_embeddings":false"#,
            self.family
        );
        let special = match self.family {
            "qwen3_moe" => format!(
                r#","num_experts":{experts},"num_experts_per_tok":{per_token},"moe_intermediate_size":{}"#,
                intermediate / 4
            ),
            "deepseek_v3" => format!(
                r#","q_lora_rank":1536,"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,
                "n_routed_experts":{experts},"num_experts_per_tok":{per_token},"moe_intermediate_size":{},
                "n_shared_experts":1,"first_k_dense_replace":1"#,
                intermediate / 4
            ),
            "gemma3_text" => format!(r#","sliding_window":{window},"sliding_window_pattern":6"#),
            "gpt_oss" => {
                let kinds = ["\"sliding_attention\"", "\"full_attention\""];
                let kinds: Vec<&str> = (0..*layers).map(|i| kinds[(i % 2) as usize]).collect();
                format!(
                    r#","num_local_experts":{experts},"num_experts_per_tok":{per_token},"sliding_window":{window},
                    "layer_types":[{}]"#,
                    kinds.join(",")
                )
            }
            "qwen3_next" => format!(
                r#","full_attention_interval":4,"linear_num_key_heads":16,"linear_num_value_heads":32,
                "linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,"num_experts":{experts},
                "num_experts_per_tok":{per_token},"moe_intermediate_size":512,"shared_expert_intermediate_size":512"#
            ),
            _ => String::new(),
        };
        let config = format!("{{{common}{special}}}");
        from_hf(&config).unwrap_or_else(|e| panic!("{config}: {e}"))
    }
}

/// A pool: what is run, on what, how fast.
#[derive(Clone, Debug)]
struct Pool {
    shape: Shape,
    layout: Layout,
    rates: Rates,
}

impl Pool {
    fn work(&self) -> Work {
        Work::of(&self.shape.model(), &self.layout).expect("a placement that goes with the shape")
    }

    fn seconds(&self, load: &StepLoad) -> f64 {
        step(&self.work(), &self.rates, &load.batch()).total()
    }
}

const FAMILIES: [&str; 6] =
    ["llama", "qwen3_moe", "deepseek_v3", "gemma3_text", "gpt_oss", "qwen3_next"];

prop_compose! {
    fn shapes()(
        family in select(&FAMILIES[..]), layers in 4u64..64, hidden in 4u64..64, log_heads in 3u32..7, log_groups in 0u32..7,
        head_dim in select(vec![64u64, 128]), intermediate in 2u64..80, log_experts in 3u32..9, per_token in 1u64..9,
        window in select(vec![128u64, 512, 1024, 4096]), vocabulary in 100u64..4000,
    ) -> Shape {
        Shape {
            family,
            layers,
            hidden: hidden * 128,
            heads: 1 << log_heads,
            kv_heads: 1 << log_heads.saturating_sub(log_groups),
            head_dim,
            intermediate: intermediate * 256,
            experts: 1 << log_experts,
            per_token,
            window,
            vocabulary: vocabulary * 64,
        }
    }
}

fn layouts(shape: &Shape) -> impl Strategy<Value = Layout> + use<> {
    let experts = shape.has_experts();
    let formats = select(vec![
        Format::Bf16,
        Format::Fp8Tensor,
        Format::Fp8Channel,
        Format::Fp8Block,
        Format::Int4,
        Format::Mxfp4,
        Format::Nvfp4,
    ]);
    let graphs = prop_oneof![Just(None), (1u64..1024).prop_map(Some)];
    let adapters = prop_oneof![3 => Just(None), 1 => (4u64..129).prop_map(Some)];
    (0u32..4, 0u32..3, any::<bool>(), 0u32..3, formats, 1u64..3, adapters, graphs).prop_map(
        move |(log_tensor, log_pipeline, spread, log_copies, format, element, lora_rank, graph)| {
            let tensor = 1 << log_tensor;
            // Copies of the attention share the experts; whoever has none has one copy.
            let copies = if experts && spread { (1 << log_copies).min(8 / tensor) } else { 1 };
            Layout {
                placement: Placement {
                    tensor,
                    pipeline: 1 << log_pipeline,
                    expert: if experts && spread { tensor * copies } else { 1 },
                    context: 1,
                },
                format,
                kv_element_bytes: element,
                attention_replicas: copies,
                lora_rank,
                graph_tokens: graph,
            }
        },
    )
}

/// Shares of a peak, now and then all of it.
fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(1.0), 4 => 0.05f64..1.0]
}

/// Overheads from none to a tenth of a millisecond.
fn overheads() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 4 => (-7.0f64..-4.0).prop_map(|x| 10f64.powf(x))]
}

fn rates() -> impl Strategy<Value = Rates> {
    let sheet = (1e12f64..8e12, 1e14f64..2.5e15, select(vec![1.0f64, 2.0, 4.0]), 6e10f64..9e11)
        .prop_map(|(bandwidth, peak_plain, faster, link)| Datasheet {
            bandwidth,
            peak: peak_plain * faster,
            peak_plain,
            link,
        });
    let terms = Term::ALL.map(|term| match term {
        term if term.is_efficiency() => shares().boxed(),
        Term::AttentionRamp => (0.0f64..2000.0).boxed(),
        Term::TokenSeconds => (0.0f64..2e-8).boxed(),
        Term::WaveShare => (0.0f64..1.0).boxed(),
        _ => overheads().boxed(),
    });
    (sheet, terms, shares(), shares()).prop_map(|(sheet, terms, flops, bytes)| {
        let mut rates = Rates { sheet, terms, plain: [flops, bytes] };
        // A step that is launched kernel by kernel keeps the host busier than one launched in pieces.
        let eager = rates.get(Term::EagerSeconds) + rates.get(Term::PieceSeconds);
        rates.terms[Term::EagerSeconds as usize] = eager;
        rates
    })
}

fn pools() -> impl Strategy<Value = Pool> {
    let laid_out = shapes().prop_flat_map(|shape| (layouts(&shape), Just(shape)));
    (laid_out, rates()).prop_map(|((layout, shape), rates)| Pool { shape, layout, rates })
}

/// The token budget of all of these: tables end here.
const TOKENS_MOST: u64 = 8192;

prop_compose! {
    /// Steps of decodes, of parts of prompts, and of both, within the budget.
    fn loads()(
        decodes in prop_oneof![Just(0u64), 1u64..8, 1u64..1024], context in 0u64..20_000,
        chunks in prop::collection::vec((1u64..2048, 0u64..30_000), 0..4),
    ) -> StepLoad {
        let mut load = StepLoad::default();
        for (tokens, before) in chunks {
            load.add_chunk(tokens, before);
        }
        for i in 0..decodes {
            load.add_decode(1 + (context + i) % 20_000);
        }
        if load.prefill + load.decodes == 0 {
            load.add_decode(context);
        }
        load
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(512)))]

    /// No step is faster than reading what it must read at full bandwidth, nor than computing what it must compute at the full
    /// peak; neither in closed form nor in picoseconds, where every rounding is upwards.
    #[test]
    fn never_below_physics(pool in pools(), loads in prop::collection::vec(loads(), 8)) {
        let work = pool.work();
        let model = StepModel::new(&work, &pool.rates, TOKENS_MOST);
        for load in &loads {
            let least = floor(&work, &pool.rates, &load.batch());
            let closed = step(&work, &pool.rates, &load.batch()).total();
            prop_assert!(closed >= least * (1.0 - 1e-12), "{closed} s, but physics asks for {least} s: {load:?}");
            let whole = model.step(load);
            prop_assert!(whole as f64 >= least * 1e12 * (1.0 - 1e-12), "{whole} ps, but physics asks for {least} s: {load:?}");
        }
    }

    /// More work never takes less time: more prompt tokens, longer ones, more sequences, longer contexts.
    #[test]
    fn more_work_takes_longer(pool in pools(), load in loads(), more in 1u64..600, before in 0u64..5000) {
        let work = pool.work();
        let model = StepModel::new(&work, &pool.rates, TOKENS_MOST);
        let mut chunk = load;
        chunk.add_chunk(more, before);
        let mut sequence = load;
        sequence.add_decode(before);
        let wider = StepLoad { prefill: load.prefill + more, prompts: load.prompts.max(1), ..load };
        let longer = StepLoad { pairs_doubled: load.pairs_doubled + more, ..load };
        let deeper = StepLoad { context: load.context + more, ..load };
        let now = step(&work, &pool.rates, &load.batch()).total();
        let whole = model.step(&load);
        let before_sequences = load.decodes + load.prompts;
        // One more sequence where stages or copies stand idle spreads the rest: then there is no more work for the busiest.
        let idle = (load.decodes + load.prompts) < (work.pipeline * work.attention_replicas) as u64;
        for (what, load) in [
            ("another prompt", chunk), ("another sequence", sequence), ("more prompt tokens", wider),
            ("more pairs", longer), ("more context", deeper),
        ] {
            if idle && load.decodes + load.prompts > before_sequences {
                continue;
            }
            let then = step(&work, &pool.rates, &load.batch()).total();
            prop_assert!(then >= now * (1.0 - 1e-12), "{what}: {now} s becomes {then} s");
            let whole_then = model.step(&load);
            prop_assert!(whole_then >= whole, "{what}: {whole} ps becomes {whole_then} ps");
        }
    }

    /// A larger model is never faster: more layers, a wider residual stream, wider MLPs, a larger vocabulary.
    #[test]
    fn larger_models_take_longer(pool in pools(), load in loads(), more in 1u64..5) {
        let now = pool.seconds(&load);
        let shape = &pool.shape;
        for (what, shape) in [
            ("layers", Shape { layers: shape.layers + more, ..shape.clone() }),
            ("hidden", Shape { hidden: shape.hidden + 128 * more, ..shape.clone() }),
            ("intermediate", Shape { intermediate: shape.intermediate + 256 * more, ..shape.clone() }),
            ("vocabulary", Shape { vocabulary: shape.vocabulary + 64 * more, ..shape.clone() }),
        ] {
            let then = Pool { shape, ..pool.clone() }.seconds(&load);
            prop_assert!(then >= now * (1.0 - 1e-12), "{what}: {now} s becomes {then} s");
        }
    }

    /// Twice the devices in a tensor-parallel group are at most twice as fast.
    #[test]
    fn tensor_parallelism_is_never_superlinear(mut pool in pools(), load in loads(), log_tensor in 0u32..3) {
        pool.layout.attention_replicas = 1;
        let spread = pool.layout.placement.expert > 1;
        let mut on = |tensor: u64| {
            pool.layout.placement.tensor = tensor;
            pool.layout.placement.expert = if spread { tensor } else { 1 };
            pool.seconds(&load)
        };
        let (one, two) = (on(1 << log_tensor), on(2 << log_tensor));
        prop_assert!(two >= one / 2.0 * (1.0 - 1e-12), "{one} s becomes {two} s");
    }

    /// A slower device is never faster: half the bandwidth, half of either peak, half the link, half of any share of a peak, twice any overhead.
    #[test]
    fn slower_devices_take_longer(pool in pools(), load in loads()) {
        let work = pool.work();
        let now = step(&work, &pool.rates, &load.batch()).total();
        let sheet = pool.rates.sheet;
        let sheets = [
            Datasheet { bandwidth: sheet.bandwidth / 2.0, ..sheet },
            Datasheet { peak: sheet.peak / 2.0, ..sheet },
            Datasheet { peak_plain: sheet.peak_plain / 2.0, ..sheet },
            Datasheet { link: sheet.link / 2.0, ..sheet },
        ];
        let mut slower = Vec::new();
        for sheet in sheets {
            let mut rates = pool.rates;
            rates.sheet = sheet;
            slower.push(rates);
        }
        for term in Term::ALL {
            let mut rates = pool.rates;
            rates.terms[term as usize] *= if term.is_efficiency() { 0.5 } else { 2.0 };
            slower.push(rates);
        }
        for (i, rates) in slower.iter().enumerate() {
            let then = step(&work, rates, &load.batch()).total();
            prop_assert!(then >= now * (1.0 - 1e-12), "change {i}: {now} s becomes {then} s");
        }
    }

    /// The tables say what the closed form says: never less than one part in a thousand below it, never above it by more than half a
    /// percent and what rounding coefficients up may add, which is a picosecond for each token, there or lacking, and each kind of attention, a
    /// femtosecond for each half pair, and one for each table.
    #[test]
    fn tables_agree_with_the_closed_form(pool in pools(), loads in prop::collection::vec(loads(), 8)) {
        let work = pool.work();
        let model = StepModel::new(&work, &pool.rates, TOKENS_MOST);
        let kinds = work.attention.len() as f64;
        for load in loads.iter().filter(|l| l.prefill + l.decodes <= TOKENS_MOST) {
            let closed = step(&work, &pool.rates, &load.batch()).total() * 1e12;
            let whole = model.step(load) as f64;
            let rounded = 3.0 + load.prefill as f64
                + kinds * (1.0 + (load.context + load.uneven()) as f64 + load.pairs_doubled as f64 / 1000.0);
            let exact = load.prefill + load.decodes <= 1024;
            let share = if exact { 1e-9 } else { 0.005 };
            let below = if exact { 1e-9 } else { 0.001 };
            prop_assert!(whole <= closed * (1.0 + share) + rounded, "{whole} ps for {closed} ps: {load:?}");
            prop_assert!(whole >= closed * (1.0 - below), "{whole} ps for {closed} ps: {load:?}");
        }
    }

    /// A piece of a decode step's time is that time, at its beginning, at its end and between; and it ends no earlier than it is asked for.
    #[test]
    fn pieces_are_the_steps_themselves(
        pool in pools(), decodes in prop_oneof![1u64..8, 1u64..2048], context in 0u64..10_000_000, inside in 0.0f64..1.0,
    ) {
        let work = pool.work();
        let model = StepModel::new(&work, &pool.rates, TOKENS_MOST);
        let at = |context| model.step(&StepLoad { decodes, context, ..StepLoad::default() });
        let edge = decodes * pool.shape.window;
        let mut asked = vec![0, 1, context, edge.saturating_sub(1), edge, edge + 1];
        // Where the host's time ends, too.
        asked.extend(asked.clone().into_iter().map(|c| model.decode_piece(decodes, c, 0).until.min(1 << 40)));
        asked.extend(asked.clone().into_iter().map(|c| c + 1));
        for from in asked {
            let piece = model.decode_piece(decodes, from, 0);
            prop_assert!(piece.until >= from, "{piece:?} ends before {from}");
            prop_assert_eq!(piece.at(from), at(from), "at {}: {:?}", from, piece);
            let last = piece.until.min(from + (1 << 32));
            for other in [last, from + ((last - from) as f64 * inside) as u64, (from + 1).min(last)] {
                prop_assert_eq!(piece.at(other), at(other), "from {} at {}: {:?}", from, other, piece);
            }
        }
    }

    /// A decode step's time has at most four pieces in context: full and windowed attention make two, the host's time splits at most each.
    /// Each begins no lower than the last one ended, and no slope is negative.
    #[test]
    fn decode_time_has_few_pieces(pool in pools(), decodes in 1u64..2048) {
        let work = pool.work();
        let model = StepModel::new(&work, &pool.rates, TOKENS_MOST);
        let (mut context, mut pieces, mut last) = (0, 0, 0);
        loop {
            let piece = model.decode_piece(decodes, context, 0);
            prop_assert!(piece.at(context) >= last, "it falls at {context}");
            pieces += 1;
            prop_assert!(pieces <= 4, "more than four pieces");
            if piece.until == u64::MAX {
                break;
            }
            last = piece.at(piece.until);
            context = piece.until + 1;
        }
    }
}
