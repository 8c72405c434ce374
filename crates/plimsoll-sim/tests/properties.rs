//! What must hold of an engine, whatever it is asked and however it is limited.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepLoad, StepModel, Term, Work};
use plimsoll_sim::{Arrivals, Ask, Limits, PlainEngine, Wanted, serve};
use proptest::prelude::*;

/// Limits from starved to roomy.
fn limits() -> impl Strategy<Value = Limits> {
    (1usize..12, prop_oneof![1u64..20, 1u64..400], 4u64..80, 1u64..20).prop_map(
        |(max_num_seqs, max_num_batched_tokens, blocks, block_tokens)| Limits {
            max_num_seqs,
            max_num_batched_tokens,
            blocks,
            block_tokens,
        },
    )
}

/// Requests that can run within the limits, and how many steps the next one waits for the one before.
fn asks() -> impl Strategy<Value = Vec<(Ask, usize)>> {
    let one = (1u64..80, 1u64..30, 0u64..100, prop_oneof![Just(0usize), 0usize..9]);
    prop::collection::vec(one, 1..25).prop_map(|all| {
        let ask = |(id, (prompt, output, cached, gap))| (Ask { id, prompt, output, cached }, gap);
        all.into_iter().enumerate().map(ask).collect()
    })
}

/// A request as a bystander sees it, who knows what was asked and what was given, and nothing of the engine's own books.
#[derive(Clone, Copy, Default)]
struct Seen {
    given: u64,
    first_at: Option<usize>,
    done: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Requests are conserved: every one that is accepted is answered exactly once with exactly the tokens it asked for. Blocks in use never exceed all, never
    /// fall short of what running sequences need, and are none at the end. No step exceeds its token budget or the running batch. The
    /// engine is never idle with work waiting. First tokens come in the order of arrival.
    #[test]
    fn an_engine_keeps_its_books(limits in limits(), asks in asks()) {
        let mut engine = PlainEngine::new(limits);
        let mut seen = vec![Seen::default(); asks.len()];
        let mut accepted = vec![false; asks.len()];
        let mut coming = asks.iter().peekable();
        let (mut steps, mut due, mut in_engine) = (0usize, 0usize, 0usize);
        loop {
            while let Some((ask, gap)) = coming.peek() && due + gap <= steps {
                let need = (ask.prompt + ask.output - 1).div_ceil(limits.block_tokens);
                let answer = engine.arrive(*ask);
                prop_assert_eq!(answer.is_ok(), need <= limits.blocks);
                accepted[ask.id] = answer.is_ok();
                in_engine += usize::from(answer.is_ok());
                due += gap;
                coming.next();
            }
            prop_assert_eq!(engine.waiting() + engine.running(), in_engine);
            let Some(step) = engine.schedule() else {
                prop_assert_eq!(in_engine, 0, "idle with {} waiting and {} running", engine.waiting(), engine.running());
                match coming.peek() {
                    None => break,
                    Some((_, gap)) => steps = due + gap,
                }
                continue;
            };
            steps += 1;
            prop_assert!(steps < 100_000, "it does not end");
            let StepLoad { prefill, pairs_doubled, prompts, decodes, context, .. } = step.load;
            prop_assert!(prefill + decodes > 0 && prefill + decodes <= limits.max_num_batched_tokens);
            prop_assert!(prompts + decodes <= limits.max_num_seqs as u64);
            prop_assert!(engine.running() <= limits.max_num_seqs);
            prop_assert!(prompts <= prefill);
            // A prompt token sees itself and what is before it: no pairs without tokens, and each at least half.
            prop_assert!(pairs_doubled >= prefill && (prefill > 0 || pairs_doubled == 0));
            prop_assert!(context >= decodes);
            // Each running sequence holds a block at least, and nothing holds more than there is.
            let used = engine.blocks_used();
            prop_assert!(used <= limits.blocks && used >= engine.running() as u64);
            // Whoever is computed has its context in memory.
            prop_assert!(used * limits.block_tokens >= context + prefill);
            let given = engine.finish(&step);
            prop_assert!(given.tokens.len() as u64 >= decodes, "a decode gave no token");
            prop_assert!(given.tokens.len() as u64 <= decodes + prompts);
            for id in &given.tokens {
                prop_assert!(!seen[*id].done, "{id} got a token after its last");
                seen[*id].given += 1;
            }
            for id in &given.first {
                prop_assert!(seen[*id].first_at.is_none() && seen[*id].given == 1);
                seen[*id].first_at = Some(steps);
            }
            for id in &given.done {
                prop_assert!(!seen[*id].done, "{id} is done twice");
                prop_assert_eq!(seen[*id].given, asks[*id].0.output);
                seen[*id].done = true;
                in_engine -= 1;
            }
        }
        prop_assert_eq!(engine.blocks_used(), 0);
        for (own, ok) in seen.iter().zip(&accepted) {
            prop_assert_eq!(own.done, *ok);
        }
        let firsts: Vec<usize> = seen.iter().filter_map(|own| own.first_at).collect();
        prop_assert!(firsts.is_sorted(), "first tokens out of order: {firsts:?}");
    }

    /// With room for everything, a step's context is what a recount from outside gives: each sequence that has its first token and not its last decodes and sees
    /// its prompt and what it was given; each prompt token is read once, cached ones never, the last one always.
    #[test]
    fn loads_equal_a_recount(asks in asks(), max_num_seqs in 1usize..12, slack in 0u64..100) {
        // A budget that holds every decode, and blocks that never run out: nobody is thrown out, nobody waits for a turn.
        let limits = Limits { max_num_seqs, max_num_batched_tokens: max_num_seqs as u64 + slack, blocks: 10_000, block_tokens: 4 };
        let mut engine = PlainEngine::new(limits);
        let mut given = vec![0u64; asks.len()];
        for (ask, _) in &asks {
            engine.arrive(*ask).expect("there is room");
        }
        let mut read = 0;
        while let Some(step) = engine.schedule() {
            let running = asks.iter().filter(|(ask, _)| given[ask.id] > 0 && given[ask.id] < ask.output);
            let (decodes, context) = running.fold((0, 0), |(n, sum), (ask, _)| (n + 1, sum + ask.prompt + given[ask.id]));
            prop_assert_eq!((step.load.decodes, step.load.context), (decodes, context));
            prop_assert!(step.preempted.is_empty());
            if step.load.prefill == 0 {
                // Blocks, too: each sequence in use rounds up for itself.
                let running = asks.iter().filter(|(ask, _)| given[ask.id] > 0 && given[ask.id] < ask.output);
                let blocks: u64 = running.map(|(ask, _)| (ask.prompt + given[ask.id]).div_ceil(4)).sum();
                prop_assert_eq!(engine.blocks_used(), blocks);
            }
            read += step.load.prefill;
            for id in engine.finish(&step).tokens {
                given[id] += 1;
            }
        }
        let fresh: u64 = asks.iter().map(|(ask, _)| ask.prompt - ask.cached.min(ask.prompt - 1)).sum();
        prop_assert_eq!(read, fresh);
    }

    /// Cutting prompts into parts does not change how many pairs they have: p x p / 2 for a prompt of p, however small the budget.
    #[test]
    fn pairs_do_not_depend_on_the_cut(prompts in prop::collection::vec(1u64..300, 1..8), budget in 1u64..200) {
        let limits = Limits { max_num_seqs: 4, max_num_batched_tokens: budget, blocks: 10_000, block_tokens: 16 };
        let mut engine = PlainEngine::new(limits);
        for (id, prompt) in prompts.iter().enumerate() {
            engine.arrive(Ask { id, prompt: *prompt, output: 1, cached: 0 }).expect("there is room");
        }
        let mut pairs_doubled = 0;
        while let Some(step) = engine.schedule() {
            pairs_doubled += step.load.pairs_doubled;
            engine.finish(&step);
        }
        prop_assert_eq!(pairs_doubled, prompts.iter().map(|p| p * p).sum::<u64>());
    }
}

/// A small dense model on a fast device.
fn model() -> StepModel {
    let config = r#"{"model_type":"llama","hidden_size":1024,"num_hidden_layers":8,"num_attention_heads":16,
        "num_key_value_heads":4,"intermediate_size":4096,"vocab_size":32000}"#;
    let layout = Layout {
        placement: Placement::single(),
        format: Format::Bf16,
        kv_element_bytes: 2,
        attention_replicas: 1,
        lora_rank: None,
        graph_tokens: Some(64),
    };
    let work = Work::of(&from_hf(config).expect("a configuration"), &layout).expect("it fits");
    let sheet = Datasheet { bandwidth: 4.8e12, peak: 989e12, peak_plain: 989e12, link: 450e9 };
    let terms = Term::ALL.map(|term| if term.is_efficiency() { 0.7 } else { 1e-6 });
    StepModel::new(&work, &Rates { sheet, terms, plain: [0.7, 0.7] }, 512)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Every request is served in order: it comes, gets its first token, gets its last; a first token takes at least a step of one token, and every further one
    /// another. In an open loop it comes when it comes; in a closed loop never more are under way than there are clients.
    #[test]
    fn served_in_order(
        limits in limits(), lengths in prop::collection::vec((1u64..40, 1u64..20), 1..30),
        gaps in prop::collection::vec(0u64..2_000_000_000, 30), clients in prop_oneof![Just(None), (1usize..10).prop_map(Some)],
        asynchronous in any::<bool>(),
    ) {
        let limits = Limits { blocks: 60, ..limits };
        let model = model();
        let instants: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).take(lengths.len()).collect();
        let arrivals = clients.map_or_else(|| Arrivals::Open(instants.clone()), Arrivals::Closed);
        let lengths: Vec<(u64, u64)> = lengths.into_iter().map(|(p, o)| (p.min(30 * limits.block_tokens), o.min(30 * limits.block_tokens))).collect();
        let served = serve(limits, asynchronous, &model, &arrivals, &wanted(&lengths), &mut |_, _, _| {}).expect("all fit");
        prop_assert_eq!(served.len(), lengths.len());
        let mut least = StepLoad::default();
        least.add_decode(1);
        let least = model.step(&least);
        for (i, (own, (_, output))) in served.iter().zip(&lengths).enumerate() {
            prop_assert!(own.first >= own.arrived + least && own.done >= own.first + (output - 1) * least, "{own:?}");
            match clients {
                None => prop_assert_eq!(own.arrived, instants[i]),
                Some(clients) => {
                    let under_way = served[..=i].iter().filter(|other| other.done > own.arrived).count();
                    prop_assert!(under_way <= clients, "{under_way} under way with {clients} clients");
                }
            }
        }
        let firsts: Vec<u64> = served.iter().map(|own| own.first).collect();
        prop_assert!(firsts.is_sorted(), "first tokens out of order");
    }
}

fn wanted(lengths: &[(u64, u64)]) -> Vec<Wanted> {
    lengths
        .iter()
        .map(|(prompt, output)| Wanted { prompt: *prompt, output: *output, cached: 0 })
        .collect()
}
