//! The fast engine against its oracle: the same events, exactly.

use std::collections::BTreeMap;

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepModel, Term, Work};
use plimsoll_sim::{Arrivals, Limits, Wanted, serve, serve_fast};
use proptest::prelude::*;

/// A small model with a window, so that step times have pieces.
fn model(window: bool, budget: u64) -> StepModel {
    let sliding = if window {
        r#""sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"],"#
    } else {
        ""
    };
    let family = if window { "gemma3_text" } else { "llama" };
    let config = format!(
        r#"{{ "model_type": "{family}", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 64, {sliding}
        "num_key_value_heads": 4, "intermediate_size": 1024, "vocab_size": 1000, "max_position_embeddings": 8192 }}"#
    );
    let shape = from_hf(&config).expect("a model");
    let layout = Layout {
        placement: Placement::single(),
        format: Format::Bf16,
        kv_element_bytes: 2,
        attention_replicas: 1,
        lora_rank: None,
        graph_tokens: Some(64),
    };
    let work = Work::of(&shape, &layout).expect("work");
    let sheet = Datasheet { bandwidth: 1e12, peak: 1e14, peak_plain: 1e14, link: 1e11 };
    let mut terms = [1e-6; Term::ALL.len()];
    for term in Term::ALL.into_iter().filter(|t| t.is_efficiency()) {
        terms[term as usize] = 0.5;
    }
    // The fast engine knows neither a host that hands tokens out late nor which sequence is the longest.
    for term in [
        Term::EagerSeconds,
        Term::PieceSeconds,
        Term::StepSeconds,
        Term::LaunchSeconds,
        Term::LaunchSequenceSeconds,
        Term::UnevenShare,
    ] {
        terms[term as usize] = 0.0;
    }
    StepModel::new(&work, &Rates { sheet, terms, plain: [0.5, 0.5] }, budget)
}

#[derive(Clone, Debug)]
struct Day {
    limits: Limits,
    asynchronous: bool,
    window: bool,
    arrivals: Arrivals,
    wanted: Vec<Wanted>,
}

fn days() -> impl Strategy<Value = Day> {
    let requests = prop::collection::vec((1u64..120, 1u64..60, 0u64..40, 0u64..400_000_000), 1..40);
    (
        requests,
        1usize..12,
        8u64..200,
        10u64..400,
        prop::sample::select(vec![1u64, 4, 16]),
        any::<bool>(),
        any::<bool>(),
        prop::option::of(1usize..12),
    )
        .prop_map(
            |(
                requests,
                max_num_seqs,
                budget,
                blocks,
                block_tokens,
                asynchronous,
                window,
                clients,
            )| {
                let mut at = 0;
                let mut times = Vec::new();
                let mut wanted = Vec::new();
                for (prompt, output, cached, after) in requests {
                    at += after;
                    times.push(at);
                    wanted.push(Wanted { prompt, output, cached });
                }
                let limits =
                    Limits { max_num_seqs, max_num_batched_tokens: budget, blocks, block_tokens };
                let arrivals = clients.map_or(Arrivals::Open(times), Arrivals::Closed);
                Day { limits, asynchronous, window, arrivals, wanted }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

    /// Wherever the fast engine answers, every request has its first and its last token at the same picosecond as in the plain one, and every gap
    /// between tokens is the same for as many sequences; and both refuse the same requests.
    #[test]
    fn the_same_events(day in days()) {
        let model = model(day.window, day.limits.max_num_batched_tokens);
        let mut gaps: BTreeMap<u64, u64> = BTreeMap::new();
        let fast = serve_fast(day.limits, day.asynchronous, &model, &day.arrivals, &day.wanted, &mut |gap, n| *gaps.entry(gap).or_default() += n);
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        let plain = serve(day.limits, day.asynchronous, &model, &day.arrivals, &day.wanted, &mut |_, gap, _| *expected.entry(gap).or_default() += 1);
        match (fast, plain) {
            (Ok(Some((fast, steps))), Ok(plain)) => {
                prop_assert_eq!(fast, plain);
                prop_assert_eq!(gaps, expected);
                prop_assert!(steps.leapt <= steps.total);
            }
            (Ok(None), _) => {}
            (Err(a), Err(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert!(false, "{a:?} is not {b:?}"),
        }
    }
}

/// It does answer, and it does leap: a busy day of the kind it is made for has most of its steps leapt over, and none given up.
#[test]
fn most_steps_are_leapt_over() {
    let limits =
        Limits { max_num_seqs: 64, max_num_batched_tokens: 512, blocks: 100_000, block_tokens: 16 };
    let model = model(true, 512);
    let wanted: Vec<Wanted> = (0..500u64)
        .map(|i| Wanted { prompt: 50 + i * 37 % 100, output: 100 + i * 53 % 200, cached: 0 })
        .collect();
    let arrivals = Arrivals::Open((0..500u64).map(|i| i * 3_000_000_000).collect());
    for asynchronous in [false, true] {
        let (fast, steps) =
            serve_fast(limits, asynchronous, &model, &arrivals, &wanted, &mut |_, _| {})
                .expect("all fit")
                .expect("nothing is thrown out");
        assert!(steps.leapt * 10 > steps.total * 8, "{steps:?}");
        let plain = serve(limits, asynchronous, &model, &arrivals, &wanted, &mut |_, _, _| {})
            .expect("all fit");
        assert_eq!(fast, plain);
    }
}
