//! The fast engine against its oracle: the same events, exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_fleet::from_hf;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::{Datasheet, Layout, Rates, StepModel, Term, Work};
use plimsoll_sim::{
    Arrival, Budget, Content, Ended, Engine, Gauges, Kv, Limits, Loop, Outcome, Pace, PlainReplica,
    Queue, Replica, Segment, Speculation, Stretch, Vllm, Wanted, Watch, drive,
};
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
    // A host that is sometimes slower than the device, and sequences whose lengths matter.
    for (term, value) in [
        (Term::LaunchSeconds, 6e-6),
        (Term::LaunchSequenceSeconds, 2e-6),
        (Term::PieceSeconds, 2e-5),
        (Term::UnevenShare, 0.1),
    ] {
        terms[term as usize] = value;
    }
    StepModel::new(&work, &Rates { sheet, terms, plain: [0.5, 0.5] }, budget)
}

/// Everything that is told of a run, in a form that does not depend on how it was cut into stretches.
#[derive(Debug, Default, PartialEq)]
struct Told {
    outcomes: Vec<Outcome>,
    gaps: BTreeMap<(u16, u64, Pace), u64>,
    sums: [u64; 8],
}

impl Watch for Told {
    fn gap(&mut self, class: u16, ps: u64, pace: Pace, count: u64) {
        *self.gaps.entry((class, ps, pace)).or_default() += count;
    }

    fn stretch(&mut self, s: &Stretch) {
        let all = [
            s.took,
            s.steps,
            s.prefill,
            s.pairs_doubled,
            s.decodes,
            s.context,
            s.preempted,
            s.tokens,
        ];
        self.sums.iter_mut().zip(all).for_each(|(sum, more)| *sum += more);
    }

    fn over(&mut self, outcome: &Outcome) {
        self.outcomes.push(*outcome);
    }
}

#[derive(Clone, Debug)]
struct Day {
    limits: Limits,
    window: bool,
    clients: Loop,
    arrivals: Vec<Arrival>,
    queue: Queue,
}

impl Day {
    fn told(&self, engine: &mut impl Engine) -> (Ended, Told) {
        self.told_until(engine, u64::MAX)
    }

    fn told_until(&self, engine: &mut impl Engine, until: u64) -> (Ended, Told) {
        let mut told = Told::default();
        let ended = drive(
            engine,
            self.clients,
            self.arrivals.iter().cloned(),
            self.queue,
            Budget { moves: 2_000_000, until },
            &mut told,
            &mut |_| true,
        );
        (ended, told)
    }
}

/// What one request is drawn from.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    prompt: u64,
    output: u64,
    cached: u64,
    after: u64,
    patience: Option<u64>,
    rank: u32,
    /// A family of prompts, how many of its segments this one begins with, and whether it goes on where the last of the family ended.
    family: u64,
    segments: usize,
    session: bool,
}

/// Which of an engine's features a day has.
#[derive(Clone, Copy, Debug)]
struct Features {
    cache: bool,
    windows: bool,
    speculation: bool,
    ranks: bool,
    patience: bool,
}

const ALL: Features =
    Features { cache: true, windows: true, speculation: true, ranks: true, patience: true };
const NONE: Features =
    Features { cache: false, windows: false, speculation: false, ranks: false, patience: false };

fn requests() -> impl Strategy<Value = Vec<Drawn>> {
    let one = (
        (1u64..120, 1u64..60, 0u64..40, prop_oneof![0u64..400_000_000, Just(0u64)]),
        prop::option::of(0u64..3_000_000_000),
        0u32..3,
        (0u64..3, 0usize..4, any::<bool>()),
    );
    let one =
        one.prop_map(
            |((prompt, output, cached, after), patience, rank, (family, segments, session))| {
                Drawn { prompt, output, cached, after, patience, rank, family, segments, session }
            },
        );
    prop::collection::vec(one, 1..40)
}

fn days(features: Features) -> impl Strategy<Value = Day> {
    let limits = (
        1usize..12,
        8u64..200,
        10u64..400,
        prop::sample::select(vec![1u64, 4, 16]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        (1u64..3, 0u64..3, 1u64..70, 0u64..3, any::<bool>()),
        prop::option::of((1u64..5, 1000u64..4000)),
    );
    let rest = (any::<bool>(), prop::option::of(1usize..12), prop::option::of(0u64..10));
    (requests(), limits, rest).prop_map(move |(requests, limits, rest)| {
        let (
            max_num_seqs,
            budget,
            blocks,
            block_tokens,
            asynchronous,
            prefix_cache,
            whole,
            kv,
            guesses,
        ) = limits;
        let (window, clients, most) = rest;
        let (full, sliding, width, state, plain) = kv;
        let mut limits = Limits::new(max_num_seqs, budget, Kv::new(blocks, block_tokens));
        if features.windows && !plain {
            limits.kv = Kv { blocks, block_tokens, full, sliding, window: width, state };
        }
        limits.asynchronous = asynchronous;
        limits.whole_prompts = whole;
        limits.prefix_cache = features.cache && prefix_cache;
        if features.speculation {
            limits.speculation = guesses.map(|(drafts, accept)| Speculation {
                drafts,
                accept_thousandths: accept.min(1000 * (1 + drafts)),
            });
        }
        let mut at = 0;
        // What each family has said so far: sessions go on from there.
        let mut said: Vec<Vec<Segment>> = (0..3)
            .map(|f| {
                (0..3).map(|i| Segment { id: f * 10 + i, tokens: 7 + 9 * f + 5 * i }).collect()
            })
            .collect();
        let mut arrivals = Vec::new();
        for (i, drawn) in requests.iter().enumerate() {
            at += drawn.after;
            let mut wanted = Wanted::new(drawn.prompt, drawn.output);
            wanted.cached = drawn.cached;
            wanted.class = (i % 3) as u16;
            if features.ranks {
                wanted.rank = drawn.rank;
            }
            if features.cache && drawn.segments > 0 {
                let family = &mut said[drawn.family as usize];
                let begins =
                    if drawn.session { family.len() } else { drawn.segments.min(family.len()) };
                let mut shared: Vec<Segment> = family[..begins].to_vec();
                let before: u64 = shared.iter().map(|s| s.tokens).sum();
                // A prompt may end where the common part ends, and has a token of its own otherwise.
                let own = if drawn.prompt % 4 == 0 { 0 } else { drawn.prompt };
                wanted.prompt = (before + own).max(1);
                if before == 0 {
                    shared.clear();
                }
                let name = 1000 + i as u64;
                if drawn.session && family.len() < 6 {
                    family.push(Segment { id: name, tokens: own + drawn.output });
                    wanted.content = Some(Arc::new(Content { shared, own: Some(name) }));
                } else {
                    wanted.content = Some(Arc::new(Content { shared, own: None }));
                }
            }
            let gives_up = drawn.patience.filter(|_| features.patience).map(|p| at + p);
            arrivals.push(Arrival { at, sent: at - drawn.cached.min(at), wanted, gives_up });
        }
        let clients = clients.map_or(Loop::Open, Loop::Closed);
        Day {
            limits,
            window,
            clients,
            arrivals,
            queue: Queue {
                requests: most.filter(|_| features.patience),
                // Sometimes tokens are what is bounded, too.
                tokens: most
                    .filter(|most| features.patience && most % 2 == 1)
                    .map(|most| most * 40),
            },
        }
    })
}

/// Every request ends in the same way at the same picosecond, with as many tokens, cached tokens and preemptions; every gap between tokens is the same for as
/// many sequences; steps carry as much; and what cannot run is refused by both.
fn same_events(day: &Day) -> Result<(), TestCaseError> {
    let model = model(day.window, day.limits.max_num_batched_tokens);
    let (ended, plain) = day.told(&mut PlainReplica::new(day.limits, Vllm, &model));
    let mut replica = Replica::new(day.limits, &model);
    let (fast_ended, fast) = day.told(&mut replica);
    prop_assert!(ended.complete, "it does not end: {ended:?}");
    prop_assert_eq!(&fast.outcomes, &plain.outcomes);
    prop_assert_eq!(&fast, &plain);
    prop_assert_eq!(fast_ended, ended);
    let idle = Gauges { seats: day.limits.max_num_seqs as u64, ..Gauges::default() };
    prop_assert_eq!(replica.gauges(), idle);
    prop_assert_eq!(replica.steps().total, fast.sums[1]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(4_000)) })]

    #[test]
    fn same_events_plainly(day in days(NONE)) {
        same_events(&day)?;
    }

    #[test]
    fn same_events_with_ranks(day in days(Features { ranks: true, ..NONE })) {
        same_events(&day)?;
    }

    #[test]
    fn same_events_with_clients_that_go(day in days(Features { patience: true, ..NONE })) {
        same_events(&day)?;
    }

    #[test]
    fn same_events_with_a_prefix_cache(day in days(Features { cache: true, ..NONE })) {
        same_events(&day)?;
    }

    #[test]
    fn same_events_with_windows(day in days(Features { windows: true, ..NONE })) {
        same_events(&day)?;
    }

    #[test]
    fn same_events_with_guesses(day in days(Features { speculation: true, ..NONE })) {
        same_events(&day)?;
    }

    #[test]
    fn same_events_with_everything(day in days(ALL)) {
        same_events(&day)?;
    }

    /// Whatever an engine has when it is lost is told in the same way: tokens that were under way are nobody's.
    #[test]
    fn the_same_is_lost(day in days(ALL), until in 0u64..3_000_000_000) {
        let model = model(day.window, day.limits.max_num_batched_tokens);
        let mut replica = Replica::new(day.limits, &model);
        let mut plain = PlainReplica::new(day.limits, Vllm, &model);
        let (ended, mut told) = day.told_until(&mut plain, until);
        let (fast_ended, mut fast) = day.told_until(&mut replica, until);
        prop_assert_eq!(fast_ended, ended);
        replica.lose(ended.now, &mut fast);
        plain.lose(ended.now, &mut told);
        prop_assert_eq!(fast.outcomes, told.outcomes);
    }
}

/// It does leap: a busy day of the kind it is made for has most of its steps leapt over.
#[test]
fn most_steps_are_leapt_over() {
    let model = model(true, 512);
    let arrivals: Vec<Arrival> = (0..500u64)
        .map(|i| {
            Arrival::new(i * 3_000_000_000, Wanted::new(50 + i * 37 % 100, 100 + i * 53 % 200))
        })
        .collect();
    for asynchronous in [false, true] {
        let limits = Limits { asynchronous, ..Limits::new(64, 512, Kv::new(100_000, 16)) };
        let mut replica = Replica::new(limits, &model);
        let day = Day {
            limits,
            window: true,
            clients: Loop::Open,
            arrivals: arrivals.clone(),
            queue: Queue::default(),
        };
        day.told(&mut replica);
        let steps = replica.steps();
        assert!(steps.leapt * 10 > steps.total * 8, "{steps:?}");
    }
}

/// A prompt that is read while another with the same content leaves: taking blocks for it evicts that content, and only then is its own named. Found by chance.
#[test]
fn content_that_is_evicted_while_it_is_read() {
    type Row = (u64, u32, u64, u64, &'static [(u64, u64)], Option<u64>);
    let rows: [Row; 14] = [
        (0, 0, 90, 36, &[(20, 25), (21, 30), (22, 35)], Some(1000)),
        (0, 0, 134, 48, &[(0, 7), (1, 12), (2, 17)], Some(1001)),
        (0, 0, 182, 11, &[(0, 7), (1, 12), (2, 17), (1001, 146)], Some(1002)),
        (209959018, 0, 126, 10, &[(20, 25), (21, 30), (22, 35), (1000, 36)], Some(1003)),
        (568752697, 0, 282, 16, &[(0, 7), (1, 12), (2, 17), (1001, 146), (1002, 11)], Some(1004)),
        (568752697, 1, 93, 27, &[(0, 7), (1, 12)], None),
        (795848331, 2, 13, 2, &[(0, 7)], None),
        (
            1033060553,
            2,
            309,
            12,
            &[(0, 7), (1, 12), (2, 17), (1001, 146), (1002, 11), (1004, 105)],
            None,
        ),
        (1033060553, 0, 33, 37, &[], None),
        (1362084954, 1, 24, 3, &[], None),
        (1459215591, 2, 1, 1, &[], None),
        (1642385529, 2, 1, 1, &[], None),
        (1642385529, 0, 105, 8, &[], None),
        (1642385529, 1, 187, 14, &[(20, 25), (21, 30), (22, 35)], None),
    ];
    let mut limits = Limits::new(5, 105, Kv::new(33, 16));
    limits.prefix_cache = true;
    limits.speculation = Some(Speculation { drafts: 1, accept_thousandths: 1231 });
    let arrivals = rows.map(|(at, rank, prompt, output, shared, own)| {
        let shared =
            shared.iter().map(|(id, tokens)| Segment { id: *id, tokens: *tokens }).collect();
        let content = Some(Arc::new(Content { shared, own }));
        Arrival::new(at, Wanted { content, rank, ..Wanted::new(prompt, output) })
    });
    let (clients, queue) = (Loop::Open, Queue::default());
    let day = Day { limits, window: false, clients, arrivals: arrivals.to_vec(), queue };
    same_events(&day).expect("the same events");
}
