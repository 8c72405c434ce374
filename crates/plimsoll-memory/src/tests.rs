//! Budgets worked by hand: literal integers, with the arithmetic beside them.

use plimsoll_fleet::{Architecture, from_hf};
use plimsoll_units::{Bytes, Fraction, Tokens};
use proptest::prelude::*;

use super::*;

fn model(config: &str) -> Architecture {
    from_hf(config).unwrap_or_else(|e| panic!("{config}: {e}"))
}

const LLAMA_8B: &str = r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
    "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}"#;
const LLAMA_70B: &str = r#"{"model_type":"llama","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,
    "num_key_value_heads":8,"intermediate_size":28672,"vocab_size":128256}"#;
const QWEN3_30B: &str = r#"{"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,
    "num_key_value_heads":4,"head_dim":128,"num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768,
    "intermediate_size":6144,"vocab_size":151936,"tie_word_embeddings":false}"#;
const QWEN3_600M: &str = r#"{"model_type":"qwen3","hidden_size":1024,"num_hidden_layers":28,"num_attention_heads":16,
    "num_key_value_heads":8,"head_dim":128,"intermediate_size":3072,"vocab_size":151936,"tie_word_embeddings":true}"#;
const DEEPSEEK: &str = r#"{"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,"num_attention_heads":128,
    "q_lora_rank":1536,"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,
    "intermediate_size":18432,"n_routed_experts":256,"num_experts_per_tok":8,"moe_intermediate_size":2048,
    "n_shared_experts":1,"first_k_dense_replace":3,"vocab_size":129280}"#;
const GEMMA_27B: &str = r#"{"model_type":"gemma3_text","hidden_size":5376,"num_hidden_layers":62,"num_attention_heads":32,
    "num_key_value_heads":16,"head_dim":128,"intermediate_size":21504,"vocab_size":262208,"sliding_window":1024,
    "sliding_window_pattern":6}"#;
const GPT_OSS_20B: &str = r#"{"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":24,"num_attention_heads":64,
    "num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"vocab_size":201088,"num_local_experts":32,
    "num_experts_per_tok":4,"sliding_window":128,"layer_types":["sliding_attention","full_attention",
    "sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention",
    "sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention",
    "sliding_attention","full_attention","sliding_attention","full_attention","sliding_attention","full_attention",
    "sliding_attention","full_attention","sliding_attention","full_attention"]}"#;
const QWEN3_NEXT: &str = r#"{"model_type":"qwen3_next","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":16,
    "num_key_value_heads":2,"head_dim":256,"full_attention_interval":4,"linear_num_key_heads":16,
    "linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,
    "num_experts":512,"num_experts_per_tok":10,"moe_intermediate_size":512,"shared_expert_intermediate_size":512,
    "intermediate_size":5120,"vocab_size":151936,"tie_word_embeddings":false}"#;

fn bytes(config: &str, placement: Placement, format: Format) -> u64 {
    weights(&model(config), &placement, format, false).unwrap().total().get()
}

/// (bytes of a block of 16 tokens in 16 bits, groups)
fn block(config: &str, placement: Placement) -> (u64, usize) {
    let layout = KvLayout::of(&model(config), &placement, 2, Tokens::new(16), None).unwrap();
    (layout.block_bytes().get(), layout.groups().len())
}

// ----- GQA

/// 8,030,261,248 parameters x 2. On two devices: the vocabulary 2 x 128256 x 4096 x 2 / 2 = 1,050,673,152, a layer's
/// linears (4096x4096x2 + 1024x4096x2 + 3x14336x4096 = 218,103,808 numbers) x 2 / 2, and its norms whole, 8192 x 2;
/// the final norm 4096 x 2: 1,050,673,152 + 32 x (218,103,808 + 16,384) + 8,192 = 8,030,527,488.
#[test]
fn llama_8b() {
    assert_eq!(bytes(LLAMA_8B, Placement::single(), Format::Bf16), 16_060_522_496);
    assert_eq!(bytes(LLAMA_8B, Placement::tensor(2), Format::Bf16), 8_030_527_488);
    // 32 layers x 2 x 8 heads x 128 x 2 bytes = 131,072 a token.
    assert_eq!(block(LLAMA_8B, Placement::single()), (16 * 131_072, 1));
    assert_eq!(block(LLAMA_8B, Placement::tensor(2)), (16 * 65_536, 1));
    // Eight heads on sixteen devices: each keeps one, replicated, as on eight.
    assert_eq!(block(LLAMA_8B, Placement::tensor(8)), (16 * 16_384, 1));
    assert_eq!(block(LLAMA_8B, Placement::tensor(16)), (16 * 16_384, 1));
}

// ----- quantised, tensor parallel

/// fp8 with a scale an output channel, on two devices. A layer, one device: numbers (8192x8192/2 x 2 + 2 x 1024x8192/2 +
/// 3 x 28672x8192/2) = 427,819,008 of one byte; rows with a scale: q 4096, k and v 512 each, o 8192, gate and up 28672, down 8192
/// = 50,176 x 4 = 200,704; norms 16384 x 2 = 32,768. 80 layers: 80 x 428,052,480 = 34,244,198,400. Vocabulary
/// 2 x 128256 x 8192 / 2 x 2 = 2,101,346,304; final norm 16,384. In GiB 33.85; the engine printed 33.88.
#[test]
fn llama_70b_in_fp8_on_two() {
    assert_eq!(
        bytes(LLAMA_70B, Placement::tensor(2), Format::Fp8Channel),
        34_244_198_400 + 2_101_346_304 + 16_384
    );
}

// ----- MoE

/// A layer: attention 2048x4096x2 + 2 x 512x2048 = 18,874,368; head norms 256; router 128x2048 = 262,144; norms 4,096;
/// experts 128 x 3x768x2048 = 603,979,776. 48 layers; vocabulary 2 x 151936 x 2048 = 622,329,856; final norm 2,048.
/// In all 30,532,122,624, x 2 bytes. The engine printed 56.88 GiB for 61,064,245,248 bytes = 56.87 GiB.
#[test]
fn qwen3_30b_a3b() {
    assert_eq!(bytes(QWEN3_30B, Placement::single(), Format::Bf16), 61_064_245_248);
    // Four devices that share experts whole: 32 each, 48 x 603,979,776 x 2 / 4 = 14,495,514,624.
    let placement = Placement { tensor: 4, expert: 4, ..Placement::single() };
    let spread = weights(&model(QWEN3_30B), &placement, Format::Bf16, false).unwrap();
    assert_eq!(spread.experts.get(), 14_495_514_624);
    // Split inside instead: the same bytes.
    let split = weights(&model(QWEN3_30B), &Placement::tensor(4), Format::Bf16, false).unwrap();
    assert_eq!(split.experts.get(), 14_495_514_624);
    // Four heads on eight devices keep one each: 48 x 2 x 1 x 128 x 2 = 24,576 a token, not 12,288.
    assert_eq!(block(QWEN3_30B, Placement::tensor(8)).0, 16 * 24_576);
}

// ----- tied embeddings

/// 596,049,920 parameters, the embedding counted once; on two pipeline stages both ends need it. The first stage:
/// embedding 151936 x 1024 x 2 = 311,164,928; 14 layers of 15,730,944 numbers (attention 2 x 2048x1024 + 2 x 1024x1024 =
/// 6,291,456; MLP 3 x 3072x1024 = 9,437,184; norms 2048 + 256) x 2 = 440,466,432. The last one has the final norm too: + 2,048.
#[test]
fn qwen3_600m_tied() {
    assert_eq!(bytes(QWEN3_600M, Placement::single(), Format::Bf16), 596_049_920 * 2);
    let two = Placement { pipeline: 2, ..Placement::single() };
    assert_eq!(bytes(QWEN3_600M, two, Format::Bf16), 311_164_928 + 440_466_432 + 2_048);
    // 14 layers x 2 x 8 x 128 x 2 = 57,344 a token on a stage.
    assert_eq!(block(QWEN3_600M, two), (16 * 57_344, 1));
}

// ----- MLA

/// 61 layers x (512 + 64) x 2 bytes = 70,272 a token, on every one of 16 devices; eight that share the context have an
/// eighth: 61 x 144 = 8,784.
#[test]
fn deepseek_keeps_its_latent_whole() {
    assert_eq!(block(DEEPSEEK, Placement::tensor(16)), (16 * 70_272, 1));
    let shared = Placement { tensor: 8, context: 8, ..Placement::single() };
    assert_eq!(block(DEEPSEEK, shared).0, 16 * 8_784);
    // 671,026,419,200 numbers; experts 58 layers x 256 x 3 x 2048 x 7168 = 653,908,770,816 of them.
    let whole = weights(&model(DEEPSEEK), &Placement::single(), Format::Bf16, false).unwrap();
    assert_eq!(whole.total().get(), 2 * 671_026_419_200);
    assert_eq!(whole.experts.get(), 2 * 653_908_770_816);
}

// ----- sliding windows

/// 10 full and 52 sliding layers: groups of 10, one full and six sliding, the last of these with 2 layers and 8 of padding.
/// A layer's token: 2 x 16 x 128 x 2 = 8,192; a block 10 x 16 x 8,192 = 1,310,720. 109.86 GiB hold 89,997 blocks (the engine
/// logged 89,994 for a figure rounded to 0.01 GiB). A request of 4,096 tokens with a budget of 8,192 needs 256 of the full
/// group and min(1023 + 8192, 4096) / 16 + 1 = 257 of each sliding one: 256 + 6 x 257 = 1,798; 89,994 / 1,798 = 50.05.
#[test]
fn gemma_27b_is_padded() {
    let layout =
        KvLayout::of(&model(GEMMA_27B), &Placement::single(), 2, Tokens::new(16), None).unwrap();
    assert_eq!(layout.block_bytes().get(), 1_310_720);
    let sizes: Vec<u64> = layout.groups().iter().map(|g| g.layers).collect();
    assert_eq!(sizes, [10, 10, 10, 10, 10, 10, 2]);
    assert_eq!(layout.blocks(Bytes::new(117_961_276_784)), 89_997);
    assert_eq!(layout.blocks_of(Tokens::new(4096), Tokens::new(8192)), 1_798);
    assert_eq!(
        layout.sequences_that_fit(
            Bytes::new(89_994 * 1_310_720),
            Tokens::new(4096),
            Tokens::new(8192)
        ),
        Some(50)
    );
}

/// 12 full and 12 sliding layers: two groups of 12. A layer's token: 2 x 8 x 64 x 2 = 2,048; a block 12 x 16 x 2,048 = 393,216.
/// Weights in MXFP4: an expert's gate and up 5,760 rows, padded to 6,144, x 2,880: 8,847,360 bytes and a scale for each 32
/// inputs, 6,144 x 90 = 552,960; down 2,880 x 2,880 padded to 3,072 columns: 4,423,680 + 2,880 x 96 = 276,480. Together
/// 14,100,480 an expert, x 32 x 24 = 10,829,168,640. The engine printed 13.47 GiB of weights in all.
#[test]
fn gpt_oss_20b() {
    assert_eq!(block(GPT_OSS_20B, Placement::single()), (393_216, 2));
    let stored = weights(&model(GPT_OSS_20B), &Placement::single(), Format::Mxfp4, false).unwrap();
    assert_eq!(stored.experts.get(), 10_829_168_640);
    let gib = stored.total().as_gib();
    assert!((gib - 13.47).abs() < 0.1, "{gib}");
}

// ----- hybrid: recurrent and full

/// 12 full layers, a token of 2 x 2 x 256 x 2 = 2,048 each; 36 recurrent ones whose state does not grow: 32 x 128 x 128 x 4 +
/// (2 x 2048 + 4096) x 3 x 2 = 2,097,152 + 49,152 = 2,146,304, x 36 = 77,266,944 a sequence.
#[test]
fn qwen3_next_keeps_a_state() {
    let layout =
        KvLayout::of(&model(QWEN3_NEXT), &Placement::single(), 2, Tokens::new(16), None).unwrap();
    assert_eq!(layout.block_bytes().get(), 12 * 16 * 2_048);
    assert_eq!(layout.state_bytes().get(), 77_266_944);
}

// ----- budgets

fn setup(model: &Architecture) -> Setup<'_> {
    Setup {
        model,
        placement: Placement::single(),
        format: Format::Bf16,
        kv_element_bytes: 2,
        block_tokens: Tokens::new(16),
        device: Bytes::new(150_000_000_000),
        bookkeeping: Bookkeeping::VllmV1,
        fraction: Fraction::new(0.9).unwrap(),
        graphs_in_budget: true,
        eager: false,
        max_model_len: Tokens::new(32_768),
        max_num_seqs: 128,
        max_num_batched_tokens: Tokens::new(2048),
        lora: None,
        margin: Bytes::ZERO,
        printed: Printed::Blocks,
        speculation: None,
        prefix_caching: false,
        sampler_tenths: 386,
    }
}

fn of(budget: &Budget, name: &str) -> i64 {
    budget.lines.iter().find(|l| l.name == name).map_or(0, |l| l.bytes)
}

/// Llama 8B on 150,000,000,000 bytes at 0.9 = 135,000,000,000. Weights 16,060,522,496. Sampler 38.6 x 128 x 128,256 =
/// 633,687,244 (more than 2,048 tokens x 110,592). Libraries 133 MiB = 139,460,608. Graphs 235 MiB + 256 x 720 KiB = 246,415,360 +
/// 188,743,680 = 435,159,040. KV 135,000,000,000 - 16,060,522,496 - 633,687,244 - 139,460,608 - 435,159,040 = 117,731,170,612,
/// in blocks of 2,097,152: 56,138, so 898,208 tokens. 15,000,000,000 stay outside the budget.
#[test]
fn a_budget_by_hand() {
    let model = model(LLAMA_8B);
    let budget = budget(&setup(&model)).unwrap();
    assert_eq!(of(&budget, "activation"), 633_687_244);
    assert_eq!(of(&budget, "libraries"), 139_460_608);
    assert_eq!(of(&budget, "graphs"), 435_159_040);
    // 56,138 blocks of 2,097,152; what is left does not fill one.
    assert_eq!(budget.kv.get(), 117_731_170_612);
    assert_eq!(of(&budget, "kv cache"), 56_138 * 2_097_152);
    assert_eq!(of(&budget, "fragmentation"), 117_731_170_612 - 56_138 * 2_097_152);
    assert_eq!(of(&budget, "left to others"), 15_000_000_000);
    assert_eq!(budget.kv_tokens.get(), 898_208);
    assert!(budget.fits());
}

/// Eight architectures on the same device and limits: 135,000,000,000 bytes, less weights (worked out above or below), activation,
/// libraries 139,460,608, graphs 435,159,040, and collectives of 450,887,680 on two devices (430 MiB) or 4,340,973,568 on sixteen (430 + 14 x 265
/// MiB). Activation is the sampler in all of them, 38.6 x 128 x vocabulary: 2,048 tokens of a forward pass need less.
///
/// - DeepSeek in fp8 blocks on 16: a layer's attention 1536x7168 + 1536x1536 + 576x7168 + 2048x512 + 7168x1024 bytes with a scale of four bytes for
///   each 128 x 128 and norms 2 x (2048 + 14336); three dense MLPs 3 x 1152x7168; 58 mixtures of 257 experts 3 x 128x7168 with a router of
///   256x7168 in 16 bits; vocabulary 2 x 8080x7168 x 2.
/// - Gemma: a layer 2 x 4096x5376 + 2 x 2048x5376 + 256 + 3 x 21504x5376 + 4 x 5376 numbers, 62 of them, the embedding of 262208x5376 once.
/// - gpt-oss: experts as above; a layer's rest 2 x 4096x2880 + 2 x 512x2880, biases, sinks 64, router 32x2881, expert biases 32 x 8640.
/// - Qwen3-Next on two: attention of one KV head each, twelve times; the recurrent layers, experts and shared experts halved, routers whole.
///
/// KV tokens: whole blocks of 16 tokens for the first five. Gemma: 60,357 blocks over 2,048 + 6 x 193 a sequence; gpt-oss: 302,616 over 2,048 + 137;
/// Qwen3-Next: blocks of 12 x 1,056 x 1,024 bytes over 32 + 3; each times 32,768 tokens.
#[test]
fn eight_budgets_by_hand() {
    let eight: [(&str, u64, Format, u64, u64, u64, u64); 8] = [
        (LLAMA_8B, 1, Format::Bf16, 16_060_522_496, 633_687_244, 117_731_170_612, 898_208),
        (LLAMA_70B, 2, Format::Fp8Channel, 36_345_561_088, 633_687_244, 96_995_244_340, 592_000),
        (QWEN3_30B, 1, Format::Bf16, 61_064_245_248, 750_685_388, 72_610_449_716, 738_624),
        (QWEN3_600M, 1, Format::Bf16, 1_192_099_840, 750_685_388, 132_482_595_124, 1_155_152),
        (DEEPSEEK, 16, Format::Fp8Block, 43_139_352_512, 638_746_624, 86_306_176_576, 1_228_160),
        (GEMMA_27B, 1, Format::Bf16, 54_018_692_608, 1_295_517_286, 79_111_170_458, 616_898),
        (GPT_OSS_20B, 1, Format::Mxfp4, 14_438_087_808, 993_535_590, 118_993_756_954, 4_538_270),
        (QWEN3_NEXT, 2, Format::Bf16, 79_725_032_960, 750_685_388, 53_498_774_324, 3_859_134),
    ];
    for (config, tensor, format, weight, activation, kv, tokens) in eight {
        let model = model(config);
        let budget =
            budget(&Setup { placement: Placement::tensor(tensor), format, ..setup(&model) })
                .unwrap();
        let name = &model.family;
        assert_eq!(budget.weights.total().get(), weight, "{name}: weights");
        assert_eq!(of(&budget, "activation").unsigned_abs(), activation, "{name}: activation");
        assert_eq!(budget.kv.get(), kv, "{name}: KV");
        assert_eq!(budget.kv_tokens.get(), tokens, "{name}: tokens");
    }
}

/// Before 0.20 graphs are captured outside the budget: the same bytes more for KV, taken from what is left.
#[test]
fn graphs_outside_the_budget() {
    let model = model(LLAMA_8B);
    let old = budget(&Setup { graphs_in_budget: false, ..setup(&model) }).unwrap();
    assert_eq!(old.kv.get(), 117_731_170_612 + 435_159_040);
    assert_eq!(of(&old, "left to others"), 15_000_000_000 - 435_159_040);
}

/// SGLang takes its fraction of what is free at start (150,000,000,000 - 410 MiB = 149,570,083,840): 0.9 x that = 134,613,075,456,
/// less the weights. TensorRT-LLM takes it of what is left after loading and the step's forward pass
/// (2,048 x 110,592 = 226,492,416).
#[test]
fn the_other_two_rules() {
    let model = model(LLAMA_8B);
    let sglang =
        budget(&Setup { bookkeeping: Bookkeeping::Sglang, sampler_tenths: 0, ..setup(&model) })
            .unwrap();
    assert_eq!(sglang.kv.get(), 134_613_075_456 - 16_060_522_496);
    let tensorrt =
        budget(&Setup { bookkeeping: Bookkeeping::TensorRt, sampler_tenths: 0, ..setup(&model) })
            .unwrap();
    let left: f64 =
        150_000_000_000.0 - 16_060_522_496.0 - 226_492_416.0 - 139_460_608.0 - 435_159_040.0;
    assert_eq!(tensorrt.kv.get(), (left * 0.9).ceil() as u64);
}

/// Our own runs of vLLM 0.24 on an H200 (139.81 GiB reported, fraction 0.9, 32,768 tokens of context), 2026-11-15: the KV tokens
/// the engine printed, within 1%.
#[test]
fn our_own_h200() {
    for (config, seqs, step, printed) in [
        (LLAMA_8B, 128, 2048, 897_680.0),
        (LLAMA_8B, 256, 8192, 896_912.0),
        (QWEN3_30B, 128, 2048, 740_592.0),
    ] {
        let model = model(config);
        let device = Bytes::new((139.81 * (1u64 << 30) as f64) as u64);
        let run = Setup {
            device,
            max_num_seqs: seqs,
            max_num_batched_tokens: Tokens::new(step),
            ..setup(&model)
        };
        let predicted = budget(&run).unwrap().printed_tokens.get() as f64;
        assert!((predicted / printed - 1.0).abs() < 0.01, "{predicted} for {printed}");
    }
}

/// Draft layers are weights and cache only where they are loaded. Qwen3-Next's one: attention like the other twelve. A layer's
/// state of 2,146,304 bytes fills 1,048 tokens of 2,048, rounded up to 1,056: blocks of 12 (13) layers x 1,056 x 2,048.
#[test]
fn draft_layers_count_when_loaded() {
    let model = model(QWEN3_NEXT);
    let without = budget(&setup(&model)).unwrap();
    let with = budget(&Setup { speculation: Some(1), ..setup(&model) }).unwrap();
    assert_eq!(
        (of(&without, "draft layers"), without.layout.block_bytes().get()),
        (0, 12 * 1_056 * 2_048)
    );
    assert!(of(&with, "draft layers") > 0);
    assert_eq!(with.layout.block_bytes().get(), 13 * 1_056 * 2_048);
    // Three groups of recurrent layers, one block each a sequence, beside 32,768 / 1,056 = 32 of the full group.
    assert_eq!(without.layout.blocks_of(Tokens::new(32_768), Tokens::new(2048)), 35);
}

/// A hybrid as an engine logged it (vLLM of mid 2026): 16 full and one draft layer in a group of 17, 48 recurrent ones in three more,
/// fp8 KV of 2 x 4 x 256 = 2,048 bytes a token, blocks of 1,600 tokens: 17 x 1,600 x 2,048 = 55,705,600 bytes, 936 of them in
/// 48.6 GiB. A request of 262,144 tokens takes 164 and 3 x (1 + 1 copy for prefixes + 2 guessed) = 12: 936 / 176 = 5.318, and
/// 5.318 x 262,144 = 1,394,129 tokens, as printed.
#[test]
fn a_hybrid_as_logged() {
    let config = r#"{"model_type":"qwen3_5_text","hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":24,
        "num_key_value_heads":4,"head_dim":256,"intermediate_size":17408,"vocab_size":248320,"full_attention_interval":4,
        "linear_num_key_heads":16,"linear_num_value_heads":48,"linear_key_head_dim":128,"linear_value_head_dim":128,
        "linear_conv_kernel_dim":4,"mtp_num_hidden_layers":1}"#;
    let mut model = model(config);
    model.layers.append(&mut model.draft_layers);
    let layout = KvLayout::of(&model, &Placement::single(), 1, Tokens::new(1600), Some(4)).unwrap();
    assert_eq!((layout.block_bytes().get(), layout.groups().len()), (55_705_600, 4));
    let blocks = layout.blocks(Bytes::new(52_183_852_646));
    let need = layout.blocks_of(Tokens::new(262_144), Tokens::new(65_536));
    assert_eq!((blocks, need), (936, 176));
    assert_eq!((blocks as f64 / need as f64 * 262_144.0) as u64, 1_394_129);
}

/// A 70B in 16 bits does not fit 79.18 GiB: nothing for KV, and the bar still sums.
#[test]
fn what_does_not_fit_says_how_much_is_missing() {
    let model = model(LLAMA_70B);
    let device = Bytes::new(85_018_877_788);
    let budget = budget(&Setup { device, ..setup(&model) }).unwrap();
    assert!(!budget.fits() && budget.kv == Bytes::ZERO && budget.missing > Bytes::gib(50));
    assert_eq!(budget.lines.iter().map(|l| l.bytes).sum::<i64>(), 85_018_877_788);
    assert!(of(&budget, "missing") < 0);
}

/// Whatever a configuration says, bytes are counted or refused: the fuzzers' corpus, as a plain test.
#[test]
fn strange_configurations_do_not_overflow() {
    let directory =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/hf_config");
    let mut counted = 0;
    for entry in std::fs::read_dir(directory).expect("the corpus") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("readable");
        let Ok(model) = from_hf(&text) else { continue };
        for placement in
            [Placement::single(), Placement { tensor: 4, pipeline: 2, expert: 2, context: 2 }]
        {
            for format in [
                Format::Bf16,
                Format::Fp8Block,
                Format::Int4,
                Format::Nf4,
                Format::Mxfp4,
                Format::Nvfp4,
            ] {
                counted += u32::from(weights(&model, &placement, format, false).is_ok());
            }
            for state_blocks in [None, Some(4)] {
                if let Ok(layout) =
                    KvLayout::of(&model, &placement, 2, Tokens::new(16), state_blocks)
                {
                    assert!(
                        layout.blocks_of(Tokens::new(u64::MAX), Tokens::new(u64::MAX)) > 0
                            || layout.groups().is_empty()
                    );
                }
            }
        }
    }
    assert!(counted > 10, "{counted}");
}

#[test]
fn what_cannot_be_spread_is_refused() {
    let refused = |config: &str, placement: Placement| {
        weights(&model(config), &placement, Format::Bf16, false).unwrap_err()
    };
    assert_eq!(
        refused(LLAMA_8B, Placement::tensor(3)).to_string(),
        "32 attention heads do not divide among 3 devices"
    );
    let stages = Placement { pipeline: 33, ..Placement::single() };
    assert_eq!(refused(LLAMA_8B, stages).to_string(), "32 layers do not fill 33 pipeline stages");
    let experts = Placement { expert: 3, ..Placement::single() };
    assert_eq!(
        refused(QWEN3_30B, experts).to_string(),
        "128 experts do not divide among 3 devices"
    );
    assert_eq!(
        refused(LLAMA_8B, Placement::tensor(0)).to_string(),
        "a degree of parallelism is at least 1"
    );
}

proptest! {
    /// Whatever the setup, the lines sum to the device, and longer contexts, larger batches or a smaller fraction never leave
    /// more for KV.
    #[test]
    fn budgets_sum(gib in 1u64..300, share in 0.05f64..1.0, seqs in 1u64..2048, step in 1u64..32_768, log_tensor in 0u32..4,
                   rule in 0usize..4, graphs: bool, eager: bool, margin in 0u64..4) {
        let rules = [Bookkeeping::VllmV0, Bookkeeping::VllmV1, Bookkeeping::Sglang, Bookkeeping::TensorRt];
        for config in [LLAMA_8B, QWEN3_30B, GEMMA_27B, QWEN3_NEXT] {
            let model = model(config);
            let base = Setup {
                device: Bytes::gib(gib),
                fraction: Fraction::new(share).unwrap(),
                max_num_seqs: seqs,
                max_num_batched_tokens: Tokens::new(step),
                placement: Placement::tensor(1 << log_tensor),
                bookkeeping: rules[rule],
                graphs_in_budget: graphs,
                eager,
                margin: Bytes::gib(margin),
                ..setup(&model)
            };
            let now = budget(&base).unwrap();
            prop_assert_eq!(now.lines.iter().map(|l| l.bytes).sum::<i64>(), Bytes::gib(gib).get().cast_signed());
            prop_assert!(now.kv.get() <= Bytes::gib(gib).get());
            let more = budget(&Setup { max_num_seqs: seqs + 1, ..base.clone() }).unwrap();
            prop_assert!(more.kv <= now.kv);
            let wider = budget(&Setup { max_num_batched_tokens: Tokens::new(step + 100), ..base.clone() }).unwrap();
            prop_assert!(wider.kv <= now.kv);
            let longer = budget(&Setup { max_model_len: Tokens::new(65_536), ..base.clone() }).unwrap();
            prop_assert!(longer.concurrency_at_max_len <= now.concurrency_at_max_len);
        }
    }

    /// More devices never hold more each; fewer bits never take more; a longer context never needs fewer blocks.
    #[test]
    fn monotone(log_tensor in 0u32..5, context in 1u64..200_000, step in 1u64..20_000) {
        let tensor = 1u64 << log_tensor;
        for config in [LLAMA_8B, LLAMA_70B, QWEN3_30B, GEMMA_27B, DEEPSEEK] {
            let model = model(config);
            let on = |n: u64, format| weights(&model, &Placement::tensor(n), format, false).unwrap().total();
            prop_assert!(on(tensor * 2, Format::Bf16) <= on(tensor, Format::Bf16));
            for format in [Format::Fp8Tensor, Format::Fp8Channel, Format::Fp8Block, Format::Int8] {
                prop_assert!(on(tensor, format) < on(tensor, Format::Bf16));
            }
            for format in [Format::Int4, Format::Nf4, Format::Nvfp4] {
                prop_assert!(on(tensor, format) < on(tensor, Format::Fp8Channel));
            }
            let layout = KvLayout::of(&model, &Placement::tensor(tensor), 2, Tokens::new(16), None).unwrap();
            let need = |c: u64| layout.blocks_of(Tokens::new(c), Tokens::new(step));
            prop_assert!(need(context) <= need(context + 1));
            // Nothing that fits takes more than there is.
            let available = Bytes::gib(20);
            if let Some(n) = layout.sequences_that_fit(available, Tokens::new(context), Tokens::new(step)) {
                prop_assert!(n.saturating_mul(need(context)).saturating_mul(layout.block_bytes().get()) <= available.get());
            }
        }
    }
}
