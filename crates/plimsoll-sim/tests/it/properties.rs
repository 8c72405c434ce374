//! What must hold of an engine, whatever it is asked and however it is limited.

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepLoad, StepModel, Term, Work};
use plimsoll_sim::{
    Arrival, Budget, Kv, Limits, Loop, Outcome, PlainEngine, PlainReplica, Queue, Vllm, Wanted,
    Watch, drive,
};
use proptest::prelude::*;

/// Limits from starved to roomy.
fn limits() -> impl Strategy<Value = Limits> {
    (1usize..12, prop_oneof![1u64..20, 1u64..400], 4u64..80, 1u64..20).prop_map(
        |(max_num_seqs, max_num_batched_tokens, blocks, block_tokens)| {
            Limits::new(max_num_seqs, max_num_batched_tokens, Kv::new(blocks, block_tokens))
        },
    )
}

/// A request and its length, which the engine does not tell.
#[derive(Clone, Debug)]
struct Ask {
    id: u64,
    prompt: u64,
    output: u64,
    cached: u64,
}

impl Ask {
    fn wanted(&self) -> Wanted {
        Wanted { cached: self.cached, ..Wanted::new(self.prompt, self.output) }
    }
}

/// Requests that can run within the limits, and how many steps the next one waits for the one before.
fn asks() -> impl Strategy<Value = Vec<(Ask, usize)>> {
    let one = (1u64..80, 1u64..30, 0u64..100, prop_oneof![Just(0usize), 0usize..9]);
    prop::collection::vec(one, 1..25).prop_map(|all| {
        let ask = |(id, (prompt, output, cached, gap))| (Ask { id, prompt, output, cached }, gap);
        (0..).zip(all).map(ask).collect()
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
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(2_000)))]

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
                let need = (ask.prompt + ask.output - 1).div_ceil(limits.kv.block_tokens);
                let answer = engine.arrive(ask.id, ask.wanted());
                prop_assert_eq!(answer.is_ok(), need <= limits.kv.blocks);
                accepted[ask.id as usize] = answer.is_ok();
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
            let StepLoad { prefill, pairs_doubled, prompts, decodes, context, drafts, longest } = step.load;
            prop_assert!(longest <= context && longest * decodes >= context);
            prop_assert_eq!(drafts, 0);
            prop_assert!(prefill + decodes > 0 && prefill + decodes <= limits.max_num_batched_tokens);
            prop_assert!(prompts + decodes <= limits.max_num_seqs as u64);
            prop_assert!(engine.running() <= limits.max_num_seqs);
            prop_assert!(prompts <= prefill);
            // A prompt token sees itself and what is before it: no pairs without tokens, and each at least half.
            prop_assert!(pairs_doubled >= prefill && (prefill > 0 || pairs_doubled == 0));
            prop_assert!(context >= decodes);
            // Each running sequence holds a block at least, and nothing holds more than there is.
            let used = engine.blocks_used();
            prop_assert!(used <= limits.kv.blocks && used >= engine.running() as u64);
            // Whoever is computed has its context in memory.
            prop_assert!(used * limits.kv.block_tokens >= context + prefill);
            let given = engine.finish(&step);
            prop_assert!(given.tokens.len() as u64 >= decodes, "a decode gave no token");
            prop_assert!(given.tokens.len() as u64 <= decodes + prompts);
            for (id, tokens) in &given.tokens {
                let seen = &mut seen[*id as usize];
                prop_assert!(!seen.done && *tokens == 1, "{id} got a token after its last");
                seen.given += 1;
            }
            for id in &given.first {
                let seen = &mut seen[*id as usize];
                prop_assert!(seen.first_at.is_none() && seen.given == 1);
                seen.first_at = Some(steps);
            }
            for id in &given.done {
                let seen = &mut seen[*id as usize];
                prop_assert!(!seen.done, "{id} is done twice");
                prop_assert_eq!(seen.given, asks[*id as usize].0.output);
                seen.done = true;
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
        let limits = Limits::new(max_num_seqs, max_num_seqs as u64 + slack, Kv::new(10_000, 4));
        let mut engine = PlainEngine::new(limits);
        let mut given = vec![0u64; asks.len()];
        for (ask, _) in &asks {
            engine.arrive(ask.id, ask.wanted()).expect("there is room");
        }
        let mut read = 0;
        while let Some(step) = engine.schedule() {
            let running = asks.iter().filter(|(ask, _)| given[ask.id as usize] > 0 && given[ask.id as usize] < ask.output);
            let (decodes, context) = running.fold((0, 0), |(n, sum), (ask, _)| (n + 1, sum + ask.prompt + given[ask.id as usize]));
            prop_assert_eq!((step.load.decodes, step.load.context), (decodes, context));
            prop_assert!(step.preempted.is_empty());
            if step.load.prefill == 0 {
                // Blocks, too: each sequence in use rounds up for itself.
                let running = asks.iter().filter(|(ask, _)| given[ask.id as usize] > 0 && given[ask.id as usize] < ask.output);
                let blocks: u64 = running.map(|(ask, _)| (ask.prompt + given[ask.id as usize]).div_ceil(4)).sum();
                prop_assert_eq!(engine.blocks_used(), blocks);
            }
            read += step.load.prefill;
            for (id, _) in engine.finish(&step).tokens {
                given[id as usize] += 1;
            }
        }
        let fresh: u64 = asks.iter().map(|(ask, _)| ask.prompt - ask.cached.min(ask.prompt - 1)).sum();
        prop_assert_eq!(read, fresh);
    }

    /// Cutting prompts into parts does not change how many pairs they have: p x p / 2 for a prompt of p, however small the budget.
    #[test]
    fn pairs_do_not_depend_on_the_cut(prompts in prop::collection::vec(1u64..300, 1..8), budget in 1u64..200) {
        let limits = Limits::new(4, budget, Kv::new(10_000, 16));
        let mut engine = PlainEngine::new(limits);
        for (id, prompt) in (0..).zip(&prompts) {
            engine.arrive(id, Wanted::new(*prompt, 1)).expect("there is room");
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
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(1_000)))]

    /// Every request is served in order: it comes, gets its first token, gets its last; a first token takes at least a step of one token, and every further one
    /// another. In an open loop it comes when it comes; in a closed loop never more are under way than there are clients.
    #[test]
    fn served_in_order(
        limits in limits(), lengths in prop::collection::vec((1u64..40, 1u64..20), 1..30),
        gaps in prop::collection::vec(0u64..2_000_000_000, 30), clients in prop_oneof![Just(None), (1usize..10).prop_map(Some)],
    ) {
        let block = limits.kv.block_tokens;
        let limits = Limits { kv: Kv::new(60, block), ..limits };
        let model = model();
        let instants: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).take(lengths.len()).collect();
        let lengths: Vec<(u64, u64)> = lengths.into_iter().map(|(p, o)| (p.min(30 * block), o.min(30 * block))).collect();
        let arrivals = instants.iter().zip(&lengths).map(|(at, (prompt, output))| Arrival::new(*at, Wanted::new(*prompt, *output)));
        let mut served = Served(Vec::new());
        let mut engine = PlainReplica::new(limits, Vllm, &model);
        let ended = drive(&mut engine, clients.map_or(Loop::Open, Loop::Closed), arrivals, Queue::default(), Budget::NONE, &mut served, &mut |_| true);
        let mut served = served.0;
        prop_assert!(ended.complete && ended.unfinished == 0);
        prop_assert_eq!(served.len(), lengths.len());
        served.sort_by_key(|own| own.serial);
        let mut least = StepLoad::default();
        least.add_decode(1);
        let least = model.step(&least);
        for (i, (own, (_, output))) in served.iter().zip(&lengths).enumerate() {
            let (scheduled, first) = (own.scheduled.expect("it ran"), own.first.expect("it ran"));
            prop_assert!(scheduled >= own.arrived && first >= scheduled + least && own.done >= first + (output - 1) * least, "{own:?}");
            match clients {
                None => prop_assert_eq!(own.arrived, instants[i]),
                Some(clients) => {
                    let under_way = served[..=i].iter().filter(|other| other.done > own.arrived).count();
                    prop_assert!(under_way <= clients, "{under_way} under way with {clients} clients");
                }
            }
        }
        let firsts: Vec<Option<u64>> = served.iter().map(|own| own.first).collect();
        prop_assert!(firsts.is_sorted(), "first tokens out of order");
    }
}

/// Outcomes as they come.
struct Served(Vec<Outcome>);

impl Watch for Served {
    fn over(&mut self, outcome: &Outcome) {
        self.0.push(*outcome);
    }
}
