//! Steps worked by hand: literal numbers, with the arithmetic beside them.
//!
//! The device is an H200 as its datasheet has it, 4.8 TB/s and 989 Tflop/s in 16 bits, with every share of a peak at one and no overheads, so
//! that a time is bytes or operations divided by a peak.

use plimsoll_fleet::{Architecture, from_hf};
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{
    Batch, Datasheet, Host, Launch, Layout, Rates, RequestPath, StepLoad, StepModel, Term, Work,
    device, floor, kv_transfer_seconds, launch, step,
};

fn model(config: &str) -> Architecture {
    from_hf(config).unwrap_or_else(|e| panic!("{config}: {e}"))
}

const LLAMA_8B: &str = r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
    "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}"#;
const QWEN3_30B: &str = r#"{"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,
    "num_key_value_heads":4,"head_dim":128,"num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768,
    "intermediate_size":6144,"vocab_size":151936,"tie_word_embeddings":false}"#;
const QWEN3_600M: &str = r#"{"model_type":"qwen3","hidden_size":1024,"num_hidden_layers":28,"num_attention_heads":16,
    "num_key_value_heads":8,"head_dim":128,"intermediate_size":3072,"vocab_size":151936,"tie_word_embeddings":true}"#;
const DEEPSEEK: &str = r#"{"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,"num_attention_heads":128,
    "q_lora_rank":1536,"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,
    "intermediate_size":18432,"n_routed_experts":256,"num_experts_per_tok":8,"moe_intermediate_size":2048,
    "n_shared_experts":1,"first_k_dense_replace":3,"vocab_size":129280}"#;
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

fn layout(placement: Placement) -> Layout {
    Layout {
        placement,
        format: Format::Bf16,
        kv_element_bytes: 2,
        attention_replicas: 1,
        lora_rank: None,
        graph_tokens: Some(512),
    }
}

fn work(config: &str, placement: Placement) -> Work {
    Work::of(&model(config), &layout(placement)).expect("a placement that goes with the shape")
}

/// Everything at its peak, nothing on top.
fn ideal() -> Rates {
    let sheet = Datasheet { bandwidth: 4.8e12, peak: 989e12, peak_plain: 989e12, link: 450e9 };
    let terms = Term::ALL.map(|term| if term.is_efficiency() { 1.0 } else { 0.0 });
    Rates { sheet, terms, plain: [1.0, 1.0] }
}

#[track_caller]
fn check(seconds: f64, expected: f64) {
    assert!((seconds / expected - 1.0).abs() < 2e-6, "{seconds:e}, by hand {expected:e}");
}

// ----- dense

/// 16,060,522,496 bytes of weights, less an embedding of 128256 x 4096 x 2 = 1,050,673,152 that is looked up: 15,009,849,344 bytes at 4.8 TB/s
/// take 3.127052 ms. 1,000 tokens of context are 1,000 x 32 layers x 2 x 8 heads x 128 x 2 bytes = 131,072,000 bytes: 27.30667 us more.
#[test]
fn one_decode_reads_all_weights_once() {
    let llama = work(LLAMA_8B, Placement::single());
    assert_eq!(llama.weight_bytes().round() as u64, 15_009_849_344);
    assert_eq!(llama.kv_bytes().round() as u64, 131_072);
    let at = |decodes, context| step(&llama, &ideal(), &Batch::decode(decodes, context));
    check(at(1.0, 0.0).total(), 3.127_052e-3);
    check(at(1.0, 1000.0).kv, 27.306_67e-6);
    // Sixteen of them read the weights once, and sixteen contexts.
    check(at(16.0, 16_000.0).kv, 16.0 * 27.306_67e-6);
    assert!(at(16.0, 0.0).total() < 1.01 * at(1.0, 0.0).total());
}

/// 2,048 tokens through 6,979,588,096 numbers (all but embedding and head) are 2 x 2048 x 6,979,588,096 = 2.858839e13 operations, 28.90636 ms at
/// 989 Tflop/s; reading them takes 2.908162 ms, a tenth. The cube root of the sum of cubes: 28.90636 x (1 + 0.100606^3)^(1/3) = 28.91617 ms. The
/// head, for the last token alone, is read in 1,050,673,152 / 4.8e12 = 218.8902 us. Attention: 2048^2 / 2 = 2,097,152 pairs x 32 layers
/// x 2 x 32 heads x (128 + 128) = 16,384 operations = 1.099512e12, 1.111741 ms.
#[test]
fn a_prompt_is_arithmetic() {
    let llama = work(LLAMA_8B, Placement::single());
    let parts = step(&llama, &ideal(), &Batch::chunk(2048.0, 0.0));
    check(parts.gemm, 28.916_17e-3 + 218.890_2e-6);
    check(parts.prefill_attention, 1.111_741e-3);
    assert_eq!((parts.experts, parts.kv, parts.collectives, parts.overhead), (0.0, 0.0, 0.0, 0.0));
    // The second half of a prompt of 2,048 sees the first: 1024 x (1024 + 512) pairs, three quarters of all.
    let half = step(&llama, &ideal(), &Batch::chunk(1024.0, 1024.0));
    check(half.prefill_attention, 0.75 * 1.111_741e-3);
}

/// What physics asks for: weights without the embedding, 15,009,849,344 bytes, and the context, once: 3.127052 ms + 27.30667 us.
#[test]
fn the_floor() {
    let llama = work(LLAMA_8B, Placement::single());
    check(floor(&llama, &ideal(), &Batch::decode(1.0, 1000.0)), 3.154_359e-3);
    // A chunk that is not sampled needs no head: 218.8902 us less, and no context.
    let part = Batch { prefill: 1.0, ..Batch::default() };
    check(floor(&llama, &ideal(), &part), 2.908_162e-3);
}

/// A tied head is the embedding, and read for every token: all 596,049,920 numbers.
#[test]
fn a_tied_embedding_is_the_head() {
    let qwen = work(QWEN3_600M, Placement::single());
    assert_eq!(qwen.weight_bytes().round() as u64, 2 * 596_049_920);
    assert_eq!(qwen.head.bytes.round() as u64, 151_936 * 1024 * 2);
}

/// The same decode in whole picoseconds: 15,009,849,344 / 4.8 = 3,127,051,947 ps of weights, of which arithmetic at the knee hides all but some 100;
/// a token of context is 131,072 / 4.8 = 27,306.7 ps, rounded up.
#[test]
fn in_picoseconds() {
    let llama = work(LLAMA_8B, Placement::single());
    let model = StepModel::new(&llama, &ideal(), 8192);
    let piece = model.decode_piece(1, 1, 0);
    assert_eq!((piece.slope, piece.until), (27_307, u64::MAX));
    assert!((3_127_051_947..3_127_052_080).contains(&piece.base), "{}", piece.base);
    let load = StepLoad { decodes: 1, context: 1000, ..StepLoad::default() };
    assert_eq!(model.step(&load), piece.base + 27_307_000);
}

// ----- experts

/// A layer outside its experts: 18,874,368 + 256 + 262,144 + 4,096 = 19,140,864 numbers; 48 of them, the final norm of 2,048 and the head of
/// 151936 x 2048: 2,459,856,896 bytes. An expert: 3 x 768 x 2048 x 2 = 9,437,184. One token is routed to 8 of 128 in each layer:
/// 48 x 8 x 9,437,184 = 3,623,878,656 bytes more. Ten tokens miss one with (120/128)^10 = 0.524460: they hit 60.8691 of 128, 27.57276 GB.
#[test]
fn experts_hit() {
    let qwen = work(QWEN3_30B, Placement::single());
    let experts = qwen.experts.unwrap();
    assert_eq!((experts.count, experts.local, experts.layers), (128.0, 128.0, 48.0));
    assert_eq!(experts.bytes.round() as u64, 9_437_184);
    check(qwen.weight_bytes_least(), (2_459_856_896u64 + 3_623_878_656) as f64);
    check(experts.share_hit(10.0) * 128.0, 60.869_06);
    check(qwen.weight_bytes_at(10.0), 2_459_856_896.0 + 27.572_761e9);
    check(qwen.weight_bytes(), 61_064_245_248.0 - 622_329_856.0);
    // In time: 27.57276 GB at 4.8 TB/s.
    check(step(&qwen, &ideal(), &Batch::decode(10.0, 0.0)).experts, 5.744_325e-3);
    // Four devices with 32 experts each read a quarter.
    let four = work(QWEN3_30B, Placement { tensor: 4, expert: 4, ..Placement::single() });
    assert_eq!(four.experts.unwrap().local, 32.0);
    check(step(&four, &ideal(), &Batch::decode(10.0, 0.0)).experts, 5.744_325e-3 / 4.0);
}

// ----- MLA

/// 61 layers x (512 + 64) x 2 = 70,272 bytes a token on every device, 14.64 ns. On one device all 128 heads multiply with it:
/// 61 x 2 x 128 x (576 + 512) = 16,990,208 operations, 17.17918 ns, which is longer; on eight, sixteen heads take 2.147 ns and reading decides.
#[test]
fn a_latent_is_read_by_every_head() {
    for (tensor, nanoseconds) in [(1, 17.179_18), (8, 14.64)] {
        let deepseek = work(DEEPSEEK, Placement::tensor(tensor));
        assert_eq!(deepseek.kv_bytes().round() as u64, 70_272);
        check(step(&deepseek, &ideal(), &Batch::decode(1.0, 1000.0)).kv, nanoseconds * 1e-6);
    }
}

// ----- windows

/// 12 full and 12 sliding layers of 2 x 8 x 64 x 2 = 2,048 bytes a token. 100 tokens of context: 24 x 100 x 2,048 = 4,915,200 bytes, 1.024 us.
/// 1,000: 12 x 1,000 x 2,048 + 12 x 128 x 2,048 = 27,721,728 bytes, 5.77536 us. Two sequences have two windows.
#[test]
fn a_window_caps_what_is_read() {
    let oss = work(GPT_OSS_20B, Placement::single());
    let kv = |decodes, context| step(&oss, &ideal(), &Batch::decode(decodes, context)).kv;
    check(kv(1.0, 100.0), 1.024e-6);
    check(kv(1.0, 1000.0), 5.775_36e-6);
    check(kv(2.0, 2000.0), 2.0 * 5.775_36e-6);
    // In picoseconds the slope halves past the edge: 12 x 2,048 / 4.8 = 5,120 ps.
    let model = StepModel::new(&oss, &ideal(), 8192);
    let (before, after) = (model.decode_piece(2, 256, 0), model.decode_piece(2, 257, 0));
    assert_eq!((before.slope, before.until), (10_240, 256));
    assert_eq!((after.slope, after.until), (5_120, u64::MAX));
    // Prefill sees no further than the window either: 1,000 x 128 pairs where all would be 500,000.
    let prefill = step(&oss, &ideal(), &Batch::chunk(1000.0, 0.0)).prefill_attention;
    // A pair: 2 x 64 x (64 + 64) = 16,384 operations; 12 layers x (500,000 + 128,000) pairs.
    check(prefill, 12.0 * 628_000.0 * 16_384.0 / 989e12);
}

/// 36 recurrent layers keep 77,266,944 bytes a sequence, read and written: 2 x 77,266,944 / 4.8e12 = 32.19456 us for each sequence, at any context.
#[test]
fn a_state_is_read_and_written() {
    let next = work(QWEN3_NEXT, Placement::single());
    assert_eq!(next.state_bytes.round() as u64, 77_266_944);
    let kv = |decodes, context| step(&next, &ideal(), &Batch::decode(decodes, context)).kv;
    check(kv(1.0, 0.0), 32.194_56e-6);
    check(kv(3.0, 0.0), 3.0 * 32.194_56e-6);
}

// ----- several devices

/// 100 tokens on four devices: each of 64 sums (two a layer) moves 100 x 4096 x 2 bytes x 2 x 3/4 = 1,228,800 bytes over a device's link; 64 of them
/// are 78,643,200 bytes at 450 GB/s, 174.7627 us. With 8 us before the first byte of two devices, four take 8 x (0.7 + 0.3 x 2) = 10.4 us: 665.6 us more.
#[test]
fn sums_over_four_devices() {
    let llama = work(LLAMA_8B, Placement::tensor(4));
    assert_eq!(llama.reductions, 64.0);
    let mut rates = ideal();
    check(step(&llama, &rates, &Batch::decode(100.0, 0.0)).collectives, 174.762_7e-6);
    rates.terms[Term::ReduceSeconds as usize] = 8e-6;
    check(step(&llama, &rates, &Batch::decode(100.0, 0.0)).collectives, 174.762_7e-6 + 665.6e-6);
    let alone = work(LLAMA_8B, Placement::single());
    assert_eq!(step(&alone, &rates, &Batch::decode(100.0, 0.0)).collectives, 0.0);
}

/// Two stages each carry half of the sequences, and a token passes both: eight sequences of 1,000 tokens read the weights once, 3.127 ms in all, and
/// four contexts, 4 x 27.30667 us.
#[test]
fn stages_share_the_sequences() {
    let two = work(LLAMA_8B, Placement { pipeline: 2, ..Placement::single() });
    let parts = step(&two, &ideal(), &Batch::decode(8.0, 8000.0));
    check(parts.kv, 4.0 * 27.306_67e-6);
    assert!(parts.gemm > 3.127e-3 && parts.gemm < 3.128e-3, "{}", parts.gemm);
}

// ----- adapters

/// Rank 16 on every linear layer, gate and up as one matrix: (4096 + 4096) x 2 + (1024 + 4096) x 2 + (28672 + 4096) + (14336 + 4096) = 77,824 ends a
/// layer, x 16 x 32 layers = 39,845,888 numbers, 79,691,776 bytes: 16.60245 us for each sequence, and 79,691,776 operations a token, 80.57814 ns. A prompt
/// of 2,048 reads them once.
#[test]
fn every_sequence_reads_its_adapter() {
    let plain = work(LLAMA_8B, Placement::single());
    let asked = Layout { lora_rank: Some(16), ..layout(Placement::single()) };
    let adapted = Work::of(&model(LLAMA_8B), &asked).unwrap();
    let more = |batch: &Batch| {
        step(&adapted, &ideal(), batch).total() - step(&plain, &ideal(), batch).total()
    };
    check(more(&Batch::decode(1.0, 0.0)), 16.602_453e-6 + 80.578_14e-9);
    check(more(&Batch::decode(8.0, 0.0)), 8.0 * (16.602_453e-6 + 80.578_14e-9));
    check(more(&Batch::chunk(2048.0, 0.0)), 16.602_453e-6 + 2048.0 * 80.578_14e-9);
}

// ----- the host

/// With 51 us a step and 400 us (490 us) a layer on the host, a step of few (many) prompt tokens takes at least 51 + 32 x 400 = 12,851 us
/// (15,731 us), as long as the device needs less; decodes alone are one graph. Without graphs decodes take the same 15,731 us.
#[test]
fn the_host_is_a_bound() {
    let mut rates = ideal();
    rates.terms[Term::StepSeconds as usize] = 51e-6;
    rates.terms[Term::PieceSeconds as usize] = 400e-6;
    rates.terms[Term::EagerSeconds as usize] = 490e-6;
    let llama = work(LLAMA_8B, Placement::single());
    let total = |work: &Work, batch: Batch| step(work, &rates, &batch).total();
    check(total(&llama, Batch::chunk(512.0, 0.0)), 12_851e-6);
    check(total(&llama, Batch::chunk(513.0, 0.0)), 15_731e-6);
    check(total(&llama, Batch::decode(1.0, 0.0)), 3.127_052e-3 + 51e-6);
    let eager = Layout { graph_tokens: None, ..layout(Placement::single()) };
    let eager = Work::of(&model(LLAMA_8B), &eager).unwrap();
    check(total(&eager, Batch::decode(1.0, 0.0)), 15_731e-6);
    // 2,048 tokens keep the device busy for 30.247 ms: the host is not seen.
    check(total(&llama, Batch::chunk(2048.0, 0.0)), 30.246_801e-3 + 51e-6);
}

/// Captured decodes of 5 ms on the device and 2 ms on the host (1 ms before the device starts), then a step with prompts of 14 ms that takes the host 20 ms.
///
/// The third step ends at 16 ms; the host is free at 11 ms, launches the prompts until 31 ms and hands the third step's tokens out 15 ms late. The prompts
/// are done when launched, at 31 ms; the decodes after them are launched by 33 ms, when the prompts' tokens are seen, 2 ms after the last ones. They start
/// at 32 ms and are seen at 37 ms.
#[test]
fn a_long_launch_holds_up_tokens() {
    let graph = Launch { before: 1u64, whole: 2 };
    let mut host = Host { free: 0, done: 0 };
    let first = host.launch(5, graph);
    let second = host.launch(5, graph);
    assert_eq!((first, second, host.hand_out(first)), (6, 11, 6));
    let third = host.launch(5, graph);
    assert_eq!((third, host.hand_out(second)), (16, 11));
    let prompts = host.launch(14, Launch { before: 1, whole: 20 });
    assert!(host.holds_up(third));
    assert_eq!((prompts, host.hand_out(third)), (31, 31));
    let fifth = host.launch(5, graph);
    assert_eq!((fifth, host.hand_out(prompts)), (37, 33));
    let sixth = host.launch(5, graph);
    assert!(!host.holds_up(fifth));
    assert_eq!((sixth, host.hand_out(fifth)), (42, 37));
    // Prompts that keep the device busy for longer than the host: nobody waits for it.
    let mut host = Host { free: 0, done: 0 };
    let long = Launch { before: 1, whole: 20 };
    let (first, second) = (host.launch(50, long), host.launch(50, long));
    assert_eq!((first, host.hand_out(first), second), (51, 51, 101));
}

/// With 1 ms a step and 10 us a sequence, the host takes 1.04 ms for four decodes, 0.52 ms of it before the device starts, and 32 x 400 us more for prompts launched in
/// pieces; at 100 us a sequence 1,000 decodes would take it 101 ms, and are hidden by the device. The tables say the same.
#[test]
fn the_host_by_load() {
    let mut rates = ideal();
    rates.terms[Term::PieceSeconds as usize] = 400e-6;
    rates.terms[Term::LaunchSeconds as usize] = 1e-3;
    rates.terms[Term::LaunchSequenceSeconds as usize] = 10e-6;
    let mut llama = work(LLAMA_8B, Placement::single());
    let four = launch(&llama, &rates, &Batch::decode(4.0, 1000.0));
    check(four.before, 0.52e-3);
    check(four.whole, 1.04e-3);
    let prompts = Batch::decode(4.0, 1000.0).and(Batch::chunk(100.0, 0.0));
    check(launch(&llama, &rates, &prompts).whole, 1.05e-3 + 12.8e-3);
    let model = StepModel::new(&llama, &rates, 2048);
    let load = StepLoad { decodes: 4, context: 1000, ..StepLoad::default() };
    assert_eq!(model.launch(&load), Launch { before: 520_000_000, whole: 1_040_000_000 });
    llama.graph_tokens = Some(1024.0);
    rates.terms[Term::LaunchSequenceSeconds as usize] = 100e-6;
    let hidden = launch(&llama, &rates, &Batch::decode(1000.0, 1e6)).whole;
    check(hidden, device(&llama, &rates, &Batch::decode(1000.0, 0.0)).total());
    let load = StepLoad { decodes: 1000, context: 1_000_000, ..StepLoad::default() };
    let model = StepModel::new(&llama, &rates, 2048);
    check(model.launch(&load).whole as f64 / 1e12, hidden);
}

/// Two sequences of 1,000 and 3,000 tokens lack 2,000 to be alike: at a share of 0.06 they take as long as 4,120 tokens, 27.30667 us a thousand. With a prompt beside
/// them nobody waits for the longest, but the kernel may be another: 1.37 x 4,000.
#[test]
fn uneven_sequences_take_longer() {
    let mut rates = ideal();
    rates.terms[Term::UnevenShare as usize] = 0.06;
    let mut llama = work(LLAMA_8B, Placement::single());
    let mut load = StepLoad::default();
    load.add_decode(1000);
    load.add_decode(3000);
    check(device(&llama, &rates, &load.batch()).kv, 4.12 * 27.306_67e-6);
    let model = StepModel::new(&llama, &rates, 2048);
    let alike = StepLoad { longest: 0, ..load };
    let more = model.device(&load) - model.device(&alike);
    // 1,638.4 ps a token that is lacking, rounded up.
    assert_eq!(more, 2000 * 1639);
    load.add_chunk(100, 0);
    check(device(&llama, &rates, &load.batch()).kv, 4.0 * 27.306_67e-6);
    llama.mixed_kv = 1.37;
    check(device(&llama, &rates, &load.batch()).kv, 1.37 * 4.0 * 27.306_67e-6);
    let more = StepModel::new(&llama, &rates, 2048).device(&load) - model.device(&load);
    // 37,410.2 ps a token instead of 27,306.7, both rounded up.
    assert_eq!(more, 4000 * (37_411 - 27_307));
}

// ----- around the steps

/// 10,000 tokens of 131,072 bytes at 50 GB/s take 26.2144 ms, after 1 ms; each of two stages sends its half. A hybrid's 77,266,944 bytes of state go with
/// 12 layers x 2,048 bytes a token: (245,760,000 + 77,266,944) / 50e9 = 6.460539 ms, over two stages half of that. Copies of the attention do not help: a
/// context lies in one of them.
#[test]
fn handing_a_context_over() {
    let two = Placement { pipeline: 2, ..Placement::single() };
    let seconds = |config, placement, latency| {
        kv_transfer_seconds(&work(config, placement), 10_000.0, 50e9, latency)
    };
    check(seconds(LLAMA_8B, Placement::single(), 1e-3), 27.214_4e-3);
    check(seconds(LLAMA_8B, two, 1e-3), 14.107_2e-3);
    check(seconds(QWEN3_NEXT, Placement::single(), 0.0), 6.460_539e-3);
    check(seconds(QWEN3_NEXT, two, 0.0), 6.460_539e-3 / 2.0);
    let copies =
        Layout { attention_replicas: 8, ..layout(Placement { expert: 8, ..Placement::single() }) };
    let copies = Work::of(&model(DEEPSEEK), &copies).unwrap();
    // 10,000 x 70,272 / 50e9.
    check(kv_transfer_seconds(&copies, 10_000.0, 50e9, 0.0), 14.054_4e-3);
}

/// 45.9 us of a server's process a token: 21,786.5 tokens a second each. Four of them are half used by 43,573 tokens a second.
#[test]
fn the_way_out_has_a_capacity() {
    let mut rates = ideal();
    rates.terms[Term::PathSeconds as usize] = 27e-3;
    rates.terms[Term::PathTokenSeconds as usize] = 45.9e-6;
    let one = RequestPath::of(&rates, 1.0);
    assert_eq!((one.request_seconds, one.servers), (27e-3, 1.0));
    check(one.tokens_per_second(), 21_786.49);
    let four = RequestPath::of(&rates, 4.0);
    check(four.tokens_per_second(), 87_145.97);
    check(four.utilisation(43_572.985), 0.5);
    // Nobody serves with less than one process.
    assert_eq!(RequestPath::of(&rates, 0.0), one);
}
