//! A step as the sum of its kernels: which of them a model runs on one device, at its own shapes and number format.

use plimsoll_fleet::{Architecture, Mixer, Mlp, Role};
use plimsoll_memory::{Format, shards};

use super::curve::KernelCurve;
use super::tables::{
    DecodeSurface, ExpertCurve, ExpertShape, HeadShape, KernelSource, KernelTables,
    PrefillAttention,
};
use crate::work::{Layout, Work};

/// The share of the bandwidth at which norms, activations and rotations read and write.
const ELEMENTWISE: f64 = 0.85;
/// Decode attention in an engine, with pages, against its time alone.
const ATTENTION: f64 = 1.03;
/// Prefill attention in an engine, with pages and earlier context, against its time alone.
const PREFILL_ATTENTION: f64 = 1.2;
/// Kernels alone keep clocks that a loaded device does not; where arithmetic decides a product takes so many times as long. By our H200 logs, bf16 and fp8.
const CLOCK: [f64; 2] = [1.07, 0.98];
/// Small kernels of a layer, in seconds: bf16, fp8 (whose quantisation is part of its products' rows), experts in bf16 or fp8, experts in mxfp4. By our H200 logs.
const SMALL_S: [f64; 4] = [8e-6, 2e-6, 15e-6, 12e-6];
/// What tables call tokens that choose experts as those of real weights do, and tokens that are dealt out so that every expert gets as many.
const SKEWED: &str = "power_law_1.01";
const BALANCED: &str = "balanced";
/// Choices an expert beyond which independent ones hit every expert.
const ALL_HIT: f64 = 4.0;
/// The largest step of decodes whose sampled tokens are padded.
const SAMPLED_PADDED: f64 = 512.0;

/// How tokens choose experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Routing {
    /// As with real weights: some experts more often than others.
    Skewed,
    /// Each on its own, all experts alike: random weights.
    Even,
}

/// Experts of a layer.
#[derive(Clone, Debug)]
struct RoutedExperts {
    skewed: ExpertCurve,
    /// Where tokens are dealt out evenly; which experts a few independent tokens hit is told from it.
    balanced: Option<ExpertCurve>,
    count: f64,
    per_token: f64,
}

impl RoutedExperts {
    fn seconds(&self, tokens: f64) -> f64 {
        match &self.balanced {
            Some(balanced) if tokens * self.per_token < ALL_HIT * self.count => {
                let missed = libm::pow(1.0 - self.per_token / self.count, tokens);
                let hit = self.count * (1.0 - missed);
                balanced.seconds((hit / self.per_token).max(1.0))
            }
            _ => self.skewed.seconds(tokens),
        }
    }
}

/// Layers that run the same kernels.
#[derive(Clone, Debug)]
struct LayerKernels {
    layers: f64,
    /// Products, each with its time at 16 tokens: what reading the matrix takes.
    products: Vec<(KernelCurve, f64, f64)>,
    experts: Option<RoutedExperts>,
    attention: DecodeSurface,
    prefill: PrefillAttention,
    window: Option<f64>,
    /// Bytes that a token's norms, activations and rotations read and write.
    elementwise_bytes: f64,
    small_s: f64,
    /// Sums over the devices that share the layer, and numbers of a token that each sends.
    reduce: Option<(KernelCurve, f64, f64)>,
}

/// The kernels of a model on one device.
#[derive(Clone, Debug)]
pub struct KernelRecipe {
    kinds: Vec<LayerKernels>,
    head: KernelCurve,
    bandwidth: f64,
    graph_tokens: Option<f64>,
    /// Bytes that any step reads, and those of a token of context: kernels timed alone may find them in a cache.
    least_bytes: [f64; 2],
    /// How the least sure of its times was come by.
    pub source: KernelSource,
}

/// The number of tokens that kernels see: steps up to the largest captured one are padded to the next captured size, 1, 2, 4, then every 8 up to 256 and every 16 beyond.
fn padded(tokens: f64, most: Option<f64>) -> f64 {
    let Some(most) = most.filter(|most| tokens <= *most) else { return tokens };
    let size = match tokens {
        t if t <= 2.0 => t.ceil().max(1.0),
        t if t <= 4.0 => 4.0,
        t if t <= 256.0 => 8.0 * (t / 8.0).ceil(),
        t => 16.0 * (t / 16.0).ceil(),
    };
    size.min(most)
}

/// What tables call a number format: of products, and of experts.
fn names(format: Format) -> Option<(&'static str, &'static str)> {
    match format {
        Format::Bf16 => Some(("bfloat16", "bfloat16")),
        // Rows of block-scaled products are timed with the host's launches; those of experts are sound, and the other kind is a slow backend on Hopper.
        Format::Fp8Tensor | Format::Fp8Channel | Format::Fp8Block => Some(("fp8", "fp8_block")),
        Format::Mxfp4 => Some(("bfloat16", "w4a16_mxfp4")),
        Format::Nvfp4 => Some(("nvfp4", "nvfp4")),
        Format::Int8 | Format::Int4 | Format::Nf4 => None,
    }
}

impl KernelRecipe {
    /// The kernels of a model laid out like this; none where any of them is in no table: latent attention and recurrent states, adapters, contexts and layers that devices share.
    pub fn of(
        model: &Architecture,
        layout: &Layout,
        routing: Routing,
        tables: &KernelTables<'_>,
        bandwidth: f64,
    ) -> Option<Self> {
        let placement = layout.placement;
        let shared = placement.pipeline > 1 || placement.context > 1;
        if shared || layout.attention_replicas > 1 || layout.lora_rank.is_some() {
            return None;
        }
        let (products, experts) = names(layout.format)?;
        let kv = if layout.kv_element_bytes == 1 { "fp8" } else { "bfloat16" };
        let mut source = KernelSource::Sampled;
        let shards = shards(model, &placement, layout.format).ok()?;
        let mut kinds: Vec<(Vec<Shape>, LayerKernels)> = Vec::new();
        for (i, layer) in model.layers.iter().enumerate() {
            let Mixer::Attention(attention) = &layer.mixer else { return None };
            if attention.v_head_dim != attention.head_dim {
                return None;
            }
            // Matrices of a layer with the same input are one product: queries, keys and values; gate and up.
            let mut shapes: Vec<Shape> = Vec::new();
            let own = shards.iter().filter(|shard| shard.tensor.layer == u32::try_from(i).ok());
            for shard in own {
                let Some(place) = place(shard.tensor.role) else { continue };
                let rows = shard.rows * shard.copies;
                let known = shapes.iter_mut().find(|shape| shape.place == place);
                match known {
                    Some(known) => known.rows += rows,
                    None => shapes.push(Shape {
                        place,
                        rows,
                        columns: shard.columns,
                        quantised: shard.quantised,
                    }),
                }
            }
            let window = attention.window.map(|window| window.get());
            shapes.push(Shape {
                place: Place::Attention,
                rows: window.unwrap_or(0),
                columns: attention.heads,
                quantised: false,
            });
            if let Some((_, known)) = kinds.iter_mut().find(|(known, _)| *known == shapes) {
                known.layers += 1.0;
                continue;
            }
            let tensor = placement.tensor;
            let heads = HeadShape {
                heads: (attention.heads / tensor).max(1),
                kv_heads: attention.kv_heads.div_ceil(tensor),
                width: attention.head_dim,
                window,
            };
            let surface = tables.decode_attention(kv, &heads)?;
            let prefill = tables.prefill_attention(kv, &heads)?;
            source = source.max(surface.source).max(prefill.source);
            let mut curves = Vec::new();
            for shape in shapes.iter().filter(|shape| shape.place != Place::Attention) {
                let format = if shape.quantised { products } else { "bfloat16" };
                let (curve, own) = tables.gemm(format, shape.rows, shape.columns)?;
                source = source.max(own);
                let clock = CLOCK[usize::from(format != "bfloat16")];
                curves.push((curve.clone(), curve.seconds(16.0), clock));
            }
            let hidden = model.hidden_size as f64;
            let (qkv, keys) = (
                ((heads.heads + 2 * heads.kv_heads) * heads.width) as f64,
                (heads.kv_heads * heads.width) as f64,
            );
            let (routed, inner, small) = match layer.mlp {
                Mlp::Experts { count, per_token, intermediate, .. } => {
                    let groups = placement.expert.max(1);
                    let shape = ExpertShape {
                        hidden: model.hidden_size,
                        intermediate: intermediate / if groups > 1 { 1 } else { tensor },
                        chosen: per_token,
                        experts: count,
                        tensor: if groups > 1 { 1 } else { tensor },
                        groups,
                    };
                    // Tables name the whole shape, and say beside it how devices share it.
                    let whole = ExpertShape { intermediate, ..shape };
                    let skewed = tables.experts(experts, &whole, SKEWED)?;
                    let balanced = match routing {
                        Routing::Skewed => None,
                        Routing::Even => Some(tables.experts(experts, &whole, BALANCED)?),
                    };
                    source = source.max(skewed.source);
                    let small = if experts == "w4a16_mxfp4" { SMALL_S[3] } else { SMALL_S[2] };
                    let (count, per_token) = (count as f64, per_token as f64);
                    let routed = RoutedExperts { skewed, balanced, count, per_token };
                    (Some(routed), 2.0 * hidden, small)
                }
                Mlp::Dense { intermediate } => {
                    let small = SMALL_S[usize::from(products != "bfloat16")];
                    (None, 3.0 * (intermediate / tensor) as f64, small)
                }
                Mlp::None => (None, 0.0, SMALL_S[usize::from(products != "bfloat16")]),
            };
            let reduce = match tensor.max(placement.expert) {
                0 | 1 => None,
                gpus => Some((tables.all_reduce(gpus)?, 2.0, hidden)),
            };
            kinds.push((
                shapes,
                LayerKernels {
                    layers: 1.0,
                    products: curves,
                    experts: routed,
                    attention: surface,
                    prefill,
                    window: window.map(|window| window as f64),
                    elementwise_bytes: 2.0 * (8.0 * hidden + 2.0 * qkv + 2.0 * keys + inner),
                    small_s: small,
                    reduce,
                },
            ));
        }
        let work = Work::of(model, layout).ok()?;
        let vocabulary = model.vocab_size.div_ceil(placement.tensor);
        let (head, own) = tables.gemm("bfloat16", vocabulary, model.hidden_size)?;
        Some(Self {
            kinds: kinds.into_iter().map(|(_, kind)| kind).collect(),
            head,
            bandwidth,
            graph_tokens: layout.graph_tokens.map(|tokens| tokens as f64),
            least_bytes: [work.weight_bytes_least(), work.kv_bytes()],
            source: source.max(own),
        })
    }

    /// Seconds of all that every token passes, attention apart: products, experts, what lies between them, and sums over devices.
    pub fn tokens_seconds(&self, tokens: f64) -> f64 {
        let seen = padded(tokens, self.graph_tokens);
        let layer = |kind: &LayerKernels| {
            let products: f64 = kind
                .products
                .iter()
                .map(|(curve, at_16, clock)| {
                    let seconds = curve.seconds(seen);
                    let computes = (1.6 * (1.0 - at_16 / seconds)).clamp(0.0, 1.0);
                    seconds * (1.0 + (clock - 1.0) * computes)
                })
                .sum();
            let experts = kind.experts.as_ref().map_or(0.0, |experts| experts.seconds(seen));
            let between = kind.elementwise_bytes * seen / (ELEMENTWISE * self.bandwidth);
            let sums = kind
                .reduce
                .as_ref()
                .map_or(0.0, |(curve, times, numbers)| times * curve.seconds(numbers * seen));
            kind.layers * (products + experts + between + kind.small_s + sums)
        };
        self.kinds.iter().map(layer).sum()
    }

    /// Seconds of the output head for tokens that are sampled.
    pub fn head_seconds(&self, sampled: f64) -> f64 {
        if sampled <= 0.0 {
            return 0.0;
        }
        self.head.seconds(padded(sampled, Some(SAMPLED_PADDED)))
    }

    /// Seconds of attention for sequences that decode, each with as much context.
    pub fn decode_attention_seconds(&self, sequences: f64, context: f64) -> f64 {
        let layer = |kind: &LayerKernels| {
            let surface = &kind.attention;
            let row = surface.row(sequences);
            let knots = &surface.contexts;
            let above = knots.partition_point(|knot| *knot < context).clamp(1, knots.len() - 1);
            let (a, b) = (above - 1, above);
            let slope = (row[b] - row[a]) / (knots[b] - knots[a]);
            kind.layers * ATTENTION * (row[a] + slope * (context - knots[a])).max(0.0)
        };
        self.kinds.iter().map(layer).sum()
    }

    /// Seconds of attention for prompt tokens that see so many pairs together.
    pub fn prefill_attention_seconds(&self, tokens: f64, pairs: f64) -> f64 {
        if tokens <= 0.0 {
            return 0.0;
        }
        let layer = |kind: &LayerKernels| {
            let pairs = kind.window.map_or(pairs, |window| pairs.min(window * tokens));
            let PrefillAttention { step, token, pair, .. } = kind.prefill;
            kind.layers * PREFILL_ATTENTION * (step + token * tokens + pair * pairs)
        };
        self.kinds.iter().map(layer).sum()
    }

    /// Seconds of a step that reads one prompt, on the device.
    pub fn prompt_seconds(&self, tokens: f64) -> f64 {
        let kernels = self.tokens_seconds(tokens)
            + self.head_seconds(1.0)
            + self.prefill_attention_seconds(tokens, tokens * tokens / 2.0);
        kernels.max(self.least_seconds(0.0))
    }

    /// What reading takes at the bandwidth of the device: no step is faster.
    fn least_seconds(&self, context: f64) -> f64 {
        let [weights, token] = self.least_bytes;
        (weights + token * context) / self.bandwidth
    }

    /// Seconds of a step of decodes alone, on the device.
    pub fn decode_seconds(&self, sequences: f64, context: f64) -> f64 {
        let kernels = self.tokens_seconds(sequences)
            + self.head_seconds(sequences)
            + self.decode_attention_seconds(sequences, context);
        // Layers with a window see no more than that.
        let windowed = self.kinds.iter().any(|kind| kind.window.is_some());
        let read = if windowed { 0.0 } else { sequences * context };
        kernels.max(self.least_seconds(read))
    }
}

/// A product of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Qkv,
    Output,
    Up,
    Down,
    Router,
    Attention,
}

/// Its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    place: Place,
    rows: u64,
    columns: u64,
    quantised: bool,
}

/// The product that a tensor is part of; experts and norms are none.
fn place(role: Role) -> Option<Place> {
    match role {
        Role::Query | Role::KeyValue => Some(Place::Qkv),
        Role::Output => Some(Place::Output),
        Role::Up => Some(Place::Up),
        Role::Down => Some(Place::Down),
        Role::Router => Some(Place::Router),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_fleet::from_hf;
    use plimsoll_memory::Placement;

    use super::*;
    use crate::kernels::built_in;

    const QWEN3_32B: &str = r#"{ "model_type": "qwen3", "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936 }"#;
    const QWEN3_30B_A3B: &str = r#"{ "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
        "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": true, "vocab_size": 151936 }"#;
    const LLAMA_8B: &str = r#"{ "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256 }"#;

    fn recipe(model: &str, format: Format, tensor: u64, graph_tokens: u64) -> KernelRecipe {
        let model = from_hf(model).expect("a model");
        let file = built_in().expect("a file");
        let tables = KernelTables::of(&file, "h200_sxm", "vllm").expect("tables");
        let layout = Layout {
            placement: Placement { tensor, ..Placement::single() },
            format,
            kv_element_bytes: 2,
            attention_replicas: 1,
            lora_rank: None,
            graph_tokens: Some(graph_tokens),
        };
        KernelRecipe::of(&model, &layout, Routing::Even, &tables, 4.8e12).expect("a recipe")
    }

    #[test]
    fn captured_sizes() {
        for (tokens, size) in
            [(1.0, 1.0), (3.0, 4.0), (5.0, 8.0), (17.0, 24.0), (256.0, 256.0), (257.0, 257.0)]
        {
            assert!((padded(tokens, Some(256.0)) - size).abs() < 1e-9, "{tokens}");
        }
        assert!((padded(257.0, Some(512.0)) - 272.0).abs() < 1e-9);
        assert!((padded(17.0, None) - 17.0).abs() < 1e-9);
    }

    /// Decode steps of Qwen3-32B in fp8 on our H200 (vLLM 0.24.0, 2026-11-16, medians in milliseconds, contexts of 48 to 88 tokens), jumps between 16 and 17 and between 64 and 65 sequences
    /// among them. Nothing is fitted to this model's decodes but the small kernels of a layer.
    #[test]
    fn decodes_of_a_dense_model_in_fp8() {
        let recipe = recipe(QWEN3_32B, Format::Fp8Channel, 1, 256);
        let measured = [
            (16.0, 11.6),
            (17.0, 15.2),
            (33.0, 13.4),
            (48.0, 13.0),
            (64.0, 13.1),
            (65.0, 16.2),
            (128.0, 15.9),
        ];
        let mut off: Vec<f64> = Vec::new();
        for (sequences, ms) in measured {
            let is = recipe.decode_seconds(sequences, 68.0) * 1e3;
            off.push((is / ms - 1.0).abs());
            assert!((is / ms - 1.0).abs() < 0.06, "{sequences} sequences: {is} for {ms}");
        }
        off.sort_by(f64::total_cmp);
        assert!(off[off.len() / 2] < 0.03, "{off:?}");
    }

    /// How far steps of decodes are off, by sequences, context and measured milliseconds: each, and the one in the middle.
    fn off(recipe: &KernelRecipe, measured: &[(f64, f64, f64)]) -> (f64, f64) {
        let mut off: Vec<f64> = measured
            .iter()
            .map(|(sequences, context, ms)| {
                (recipe.decode_seconds(*sequences, *context) * 1e3 / ms - 1.0).abs()
            })
            .collect();
        off.sort_by(f64::total_cmp);
        (off[off.len() / 2], off[off.len() - 1])
    }

    /// Single prompts of the same: milliseconds to the first token, of which 1.3 are the way in and 2.2 the host's own work. The device decides here; shorter prompts wait for the host's launches.
    #[test]
    fn prompts_of_a_dense_model_in_fp8() {
        let recipe = recipe(QWEN3_32B, Format::Fp8Channel, 1, 256);
        for (tokens, ms) in [(800.0, 76.0), (1024.0, 63.0), (1056.0, 90.0), (2048.0, 118.0)] {
            let is = recipe.prompt_seconds(tokens) * 1e3 + 3.5;
            assert!((is / ms - 1.0).abs() < 0.04, "{tokens} tokens: {is} for {ms}");
        }
    }

    /// Decode steps of Llama-3.1-8B in bf16 in closed loops on our third H200 (2026-11-18): medians of gaps, some of which have prompts of others beside them.
    #[test]
    fn decodes_of_a_dense_model_in_bf16() {
        let measured = [
            (1.0, 576.0, 4.88),
            (16.0, 576.0, 5.26),
            (64.0, 576.0, 6.60),
            (16.0, 2112.0, 6.00),
            (64.0, 2112.0, 9.53),
        ];
        let (middle, most) = off(&recipe(LLAMA_8B, Format::Bf16, 1, 256), &measured);
        assert!(middle < 0.035 && most < 0.08, "{middle} {most}");
    }

    /// Decode steps of Qwen3-30B-A3B in bf16 with random weights on our second H200 (2026-11-16): each token chooses its experts by itself.
    #[test]
    fn decodes_of_a_mixture() {
        let measured = [
            (1.0, 4.24),
            (2.0, 5.07),
            (4.0, 6.54),
            (8.0, 9.25),
            (12.0, 11.79),
            (16.0, 12.54),
            (17.0, 14.23),
            (24.0, 14.35),
            (32.0, 15.67),
            (48.0, 17.22),
            (64.0, 17.87),
            (96.0, 18.06),
        ];
        let measured = measured.map(|(sequences, ms)| (sequences, 68.0, ms));
        let (middle, most) = off(&recipe(QWEN3_30B_A3B, Format::Bf16, 1, 256), &measured);
        assert!(middle < 0.035 && most < 0.08, "{middle} {most}");
    }

    /// The whole is never faster than reading the weights once, and products of a large step take what arithmetic takes.
    #[test]
    fn physics() {
        for (model, format, bytes, flops) in [
            (LLAMA_8B, Format::Bf16, 15.0e9, 2.0 * 7.0e9 / 989e12),
            (QWEN3_32B, Format::Fp8Channel, 31.2e9, 2.0 * 31.0e9 / 1979e12),
        ] {
            let recipe = recipe(model, format, 1, 512);
            let one = recipe.decode_seconds(1.0, 100.0);
            assert!(one > bytes / 4.8e12 && one < 1.9 * bytes / 4.8e12, "{one}");
            let large = recipe.tokens_seconds(8192.0) / 8192.0;
            assert!(large > flops && large < 2.5 * flops, "{large} {flops}");
        }
    }

    #[test]
    fn mixtures_and_shared_layers() {
        let mixture = recipe(QWEN3_30B_A3B, Format::Bf16, 1, 512);
        assert_eq!(mixture.source, KernelSource::BetweenShapes);
        // One token reads eight of 128 experts; many read all.
        let (one, many) =
            (mixture.decode_seconds(1.0, 100.0), mixture.decode_seconds(256.0, 100.0));
        assert!(one > 1.5e-3 && one < 8e-3, "{one}");
        assert!(many > 57e9 / 4.8e12 && many < 30e-3, "{many}");
        // Two devices are faster than one, and less than twice as fast: they wait for each other.
        let (alone, two) = (
            recipe(QWEN3_32B, Format::Fp8Channel, 1, 512),
            recipe(QWEN3_32B, Format::Fp8Channel, 2, 512),
        );
        let ratio = alone.decode_seconds(32.0, 1000.0) / two.decode_seconds(32.0, 1000.0);
        assert!((1.2..2.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_no_table_has_is_none() {
        let model = from_hf(LLAMA_8B).expect("a model");
        let file = built_in().expect("a file");
        let tables = KernelTables::of(&file, "h200_sxm", "vllm").expect("tables");
        let layout = Layout {
            placement: Placement::single(),
            format: Format::Int8,
            kv_element_bytes: 2,
            attention_replicas: 1,
            lora_rank: None,
            graph_tokens: None,
        };
        assert!(KernelRecipe::of(&model, &layout, Routing::Skewed, &tables, 4.8e12).is_none());
        let adapters = Layout { format: Format::Bf16, lora_rank: Some(16), ..layout };
        assert!(KernelRecipe::of(&model, &adapters, Routing::Skewed, &tables, 4.8e12).is_none());
    }
}
