//! What each engine decides, step by step, in days small enough to follow.
//!
//! The days of vLLM were also given to the engine's own scheduler (0.32.0, its other imports stubbed), which decided the same, step for step. Those of SGLang and
//! TensorRT-LLM follow from their sources as cited at each; SGLang's admissions were also given to its own `PrefillAdder` (0.5.23).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_sim::{
    Content, Kv, Limits, PlainEngine, Policy, Segment, Sglang, TensorRt, Vllm, Wanted,
};

/// Who comes at which step, with how long a prompt and output, and how long its client lets that be.
struct Comes {
    step: usize,
    name: char,
    prompt: u64,
    output: u64,
    limit: u64,
    rank: u32,
    /// Tokens that it begins with like every other that shares.
    shared: u64,
}

fn comes(step: usize, name: char, prompt: u64, output: u64) -> Comes {
    Comes { step, name, prompt, output, limit: output, rank: 0, shared: 0 }
}

/// One line a step: tokens of each in the step, in order of name; who was thrown out; who was let in; blocks left when it was decided, and when it was over.
fn decisions<P: Policy>(limits: Limits, policy: P, all: &[Comes], steps: usize) -> String {
    let mut engine = PlainEngine::with_policy(limits, policy);
    let mut names: BTreeMap<u64, char> = BTreeMap::new();
    let mut lines = String::new();
    let mut serial = 0;
    for step in 1..=steps {
        for one in all.iter().filter(|one| one.step == step) {
            let mut wanted = Wanted::new(one.prompt, one.output);
            wanted.limit = Some(one.limit);
            wanted.rank = one.rank;
            if one.shared > 0 {
                let shared = vec![Segment { id: 1, tokens: one.shared }];
                wanted.content = Some(Arc::new(Content { shared, own: None }));
            }
            names.insert(serial, one.name);
            engine.arrive(serial, wanted).expect("it can run");
            serial += 1;
        }
        let Some(decided) = engine.schedule() else {
            writeln!(lines, "{step:>2} idle").expect("a string takes all");
            continue;
        };
        let free = limits.kv.blocks - engine.blocks_used();
        let name = |id: &u64| names[id];
        let mut carried: Vec<String> =
            decided.scheduled.iter().map(|(id, n)| format!("{}{n}", name(id))).collect();
        carried.sort();
        let out: String = decided.preempted.iter().map(name).collect();
        let admitted: String = decided.admitted.iter().map(|(id, _)| name(id)).collect();
        let given = engine.finish(&decided);
        let mut done: Vec<char> = given.done.iter().map(name).collect();
        done.sort_unstable();
        let after = limits.kv.blocks - engine.blocks_used();
        let dash = |s: String| if s.is_empty() { "-".to_owned() } else { s };
        writeln!(
            lines,
            "{step:>2} {:<12} out {:<2} in {:<2} free {free:>2} done {:<3} free {after:>2}",
            carried.join(" "),
            dash(out),
            dash(admitted),
            dash(done.into_iter().collect()),
        )
        .expect("a string takes all");
    }
    lines
}

fn check(found: &str, expected: &str) {
    let trimmed = |text: &str| -> Vec<String> {
        text.lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|l| !l.is_empty())
            .collect()
    };
    assert_eq!(trimmed(found), trimmed(expected), "\n{found}");
}

/// Chunks (1 to 4), the youngest thrown out and nobody let in with it (6), a whole prompt that must fit and is not passed by (7 to 10, 12, 13), one that comes
/// back (11), a prefix found (14), no more than three at once (15, 16). `v1/core/sched/scheduler.py`, `v1/core/kv_cache_manager.py`.
#[test]
fn vllm_first_come_first_served() {
    let limits =
        Limits { prefix_cache: true, whole_prompts: true, ..Limits::new(3, 8, Kv::new(9, 4)) };
    let all = [
        Comes { shared: 8, ..comes(1, 'A', 9, 12) },
        comes(1, 'B', 6, 9),
        comes(2, 'C', 11, 4),
        Comes { shared: 8, ..comes(6, 'D', 12, 3) },
        comes(7, 'E', 5, 2),
        comes(14, 'F', 4, 2),
        comes(15, 'G', 3, 1),
    ];
    check(
        &decisions(limits, Vllm, &all, 18),
        "
         1 A8          out - in A  free 7 done -   free 7
         2 A1 B6 C1    out - in BC free 3 done -   free 3
         3 A1 B1 C6    out - in -  free 2 done -   free 2
         4 A1 B1 C4    out - in -  free 1 done -   free 1
         5 A1 B1 C1    out - in -  free 0 done -   free 0
         6 A1 B1       out C in -  free 2 done -   free 2
         7 A1 B1       out - in -  free 2 done -   free 2
         8 A1 B1       out - in -  free 2 done -   free 2
         9 A1 B1       out - in -  free 1 done -   free 1
        10 A1 B1       out - in -  free 0 done B   free 4
        11 A1 C7       out - in C  free 2 done -   free 2
        12 A1 C6       out - in -  free 0 done -   free 0
        13 A1 C1       out - in -  free 0 done AC  free 9
        14 D4 E4       out - in DE free 5 done -   free 5
        15 D1 E1 F4    out - in F  free 2 done -   free 2
        16 D1 E1 F1    out - in -  free 1 done DEF free 9
        17 G3          out - in G  free 8 done G   free 9
        18 idle
        ",
    );
}

/// One that asks for room is thrown out itself (5), and comes back to its own blocks (9).
#[test]
fn vllm_finds_its_own_blocks_again() {
    let limits =
        Limits { prefix_cache: true, whole_prompts: true, ..Limits::new(3, 8, Kv::new(10, 4)) };
    let all = [
        Comes { shared: 8, ..comes(1, 'A', 10, 7) },
        comes(1, 'B', 6, 8),
        comes(2, 'C', 13, 3),
        Comes { shared: 8, ..comes(5, 'D', 12, 3) },
        comes(6, 'E', 5, 2),
    ];
    check(
        &decisions(limits, Vllm, &all, 12),
        "
         1 A8          out - in A  free 8 done -  free 8
         2 A2 B6       out - in B  free 5 done -  free 5
         3 A1 B1 C6    out - in C  free 3 done -  free 3
         4 A1 B1 C6    out - in -  free 2 done -  free 2
         5 A1 B1       out C in -  free 3 done -  free 3
         6 A1 B1       out - in -  free 3 done -  free 3
         7 A1 B1       out - in -  free 3 done -  free 3
         8 A1 B1       out - in -  free 3 done A  free 7
         9 B1 C5       out - in C  free 2 done B  free 6
        10 C1 D4 E3    out - in DE free 2 done -  free 2
        11 C1 D1 E2    out - in -  free 0 done C  free 4
        12 D1 E1       out - in -  free 4 done DE free 10
        ",
    );
}

/// The last by rank goes although it had its token of the step (4), which is given back; it comes again when the others are through (11).
#[test]
fn vllm_by_rank() {
    let limits = Limits { whole_prompts: true, ..Limits::new(4, 8, Kv::new(6, 4)) };
    let all = [
        Comes { rank: 5, ..comes(1, 'A', 6, 9) },
        comes(2, 'B', 7, 9),
        Comes { rank: 1, ..comes(3, 'C', 3, 6) },
    ];
    check(
        &decisions(limits, Vllm, &all, 14),
        "
         1 A6          out - in A  free 4 done -  free 4
         2 A1 B7       out - in B  free 2 done -  free 2
         3 A1 B1 C3    out - in C  free 1 done -  free 1
         4 B1 C1       out A in -  free 2 done -  free 2
         5 B1 C1       out - in -  free 1 done -  free 1
         6 B1 C1       out - in -  free 1 done -  free 1
         7 B1 C1       out - in -  free 1 done -  free 1
         8 B1 C1       out - in -  free 0 done C  free 2
         9 B1          out - in -  free 2 done -  free 2
        10 B1          out - in -  free 2 done B  free 6
        11 A8          out - in A  free 4 done -  free 4
        12 A1          out - in -  free 3 done -  free 3
        13 A1          out - in -  free 3 done -  free 3
        14 A1          out - in -  free 3 done -  free 3
        ",
    );
}

/// Prompts before decodes (6, 8, 11), the reserve refuses (3, 6, 9), the gate stays shut until somebody leaves (4, 5, 7, 10), whoever has written least goes
/// (26) and finds its prompt again (27). `srt/managers/schedule_policy.py`, `srt/managers/schedule_batch.py`.
#[test]
fn sglang_prompts_first() {
    let limits = Limits { prefix_cache: true, ..Limits::new(4, 8, Kv::new(44, 1)) };
    let limit = |limit, one| Comes { limit, ..one };
    let all = [
        limit(6, comes(1, 'A', 11, 3)),
        limit(6, comes(2, 'B', 8, 4)),
        limit(8, comes(2, 'C', 6, 4)),
        limit(18, comes(3, 'D', 8, 18)),
        limit(16, comes(5, 'E', 6, 16)),
    ];
    check(
        &decisions(limits, Sglang::new(1.0, 2), &all, 29),
        "
         1 A8       out - in A free 36 done -  free 36
         2 A3 B5    out - in B free 28 done -  free 28
         3 B3       out - in - free 25 done -  free 25
         4 A1 B1    out - in - free 23 done -  free 23
         5 A1 B1    out - in - free 21 done A  free 34
         6 C6       out - in C free 28 done -  free 28
         7 B1 C1    out - in - free 26 done B  free 37
         8 D8       out - in D free 29 done -  free 29
         9 C1 D1    out - in - free 27 done -  free 27
        10 C1 D1    out - in - free 25 done C  free 34
        11 E6       out - in E free 28 done -  free 28
        12 D1 E1    out - in - free 26 done -  free 26
        13 D1 E1    out - in - free 24 done -  free 24
        14 D1 E1    out - in - free 22 done -  free 22
        15 D1 E1    out - in - free 20 done -  free 20
        16 D1 E1    out - in - free 18 done -  free 18
        17 D1 E1    out - in - free 16 done -  free 16
        18 D1 E1    out - in - free 14 done -  free 14
        19 D1 E1    out - in - free 12 done -  free 12
        20 D1 E1    out - in - free 10 done -  free 10
        21 D1 E1    out - in - free  8 done -  free  8
        22 D1 E1    out - in - free  6 done -  free  6
        23 D1 E1    out - in - free  4 done -  free  4
        24 D1 E1    out - in - free  2 done -  free  2
        25 D1 E1    out - in - free  0 done -  free  0
        26 D1       out E in - free 19 done D  free 44
        27 E8       out - in E free 30 done -  free 30
        28 E7       out - in - free 23 done E  free 44
        29 idle
        ",
    );
}

/// Room for all that may be written is asked for (2 to 6, 9), nobody passes the one that waits, blocks of a whole prompt are taken at once, parts are whole
/// blocks (7, 10), nobody is ever thrown out. `batch_manager/capacityScheduler.cpp`, `microBatchScheduler.cpp`.
#[test]
fn tensorrt_without_eviction() {
    let limits = Limits::new(4, 8, Kv::new(12, 4));
    let limit = |limit, one| Comes { limit, ..one };
    let all = [
        limit(8, comes(1, 'A', 10, 8)),
        limit(14, comes(1, 'B', 6, 5)),
        limit(10, comes(2, 'C', 9, 4)),
        limit(2, comes(3, 'D', 4, 2)),
        limit(3, comes(9, 'E', 14, 3)),
    ];
    check(
        &decisions(limits, TensorRt::NoEvict, &all, 15),
        "
         1 A8          out - in A free 9 done - free 9
         2 A2 B6       out - in B free 7 done - free 7
         3 A1 B1       out - in - free 7 done - free 7
         4 A1 B1       out - in - free 7 done - free 7
         5 A1 B1       out - in - free 5 done - free 5
         6 A1 B1       out - in - free 5 done B free 8
         7 A1 C4       out - in C free 5 done - free 5
         8 A1 C5       out - in - free 5 done - free 5
         9 A1 C1 D4    out - in D free 3 done A free 8
        10 C1 D1 E4    out - in E free 3 done D free 5
        11 C1 E4       out - in - free 5 done C free 8
        12 E6          out - in - free 8 done - free 8
        13 E1          out - in - free 8 done - free 8
        14 E1          out - in - free 8 done E free 12
        15 idle
        ",
    );
}

/// The last is paused when blocks run out (4), or whoever asks for them (8), and reads all of its past again (9, 10).
#[test]
fn tensorrt_to_the_utmost() {
    let limits = Limits::new(4, 12, Kv::new(7, 4));
    let all = [comes(1, 'A', 6, 8), comes(1, 'B', 7, 7), comes(2, 'C', 5, 6), comes(4, 'D', 9, 3)];
    check(
        &decisions(limits, TensorRt::MaxUtilization, &all, 14),
        "
         1 A6 B4       out - in AB free 3 done -  free 3
         2 A1 B3 C5    out - in C  free 1 done -  free 1
         3 A1 B1 C1    out - in -  free 1 done -  free 1
         4 A1 B1       out C in -  free 1 done -  free 1
         5 A1 B1       out - in -  free 1 done -  free 1
         6 A1 B1       out - in -  free 1 done -  free 1
         7 A1 B1       out - in -  free 1 done -  free 1
         8 A1          out B in -  free 3 done A  free 7
         9 B12         out - in B  free 3 done -  free 3
        10 B1 C7       out - in C  free 1 done B  free 5
        11 C1 D9       out - in D  free 2 done -  free 2
        12 C1 D1       out - in -  free 1 done -  free 1
        13 C1 D1       out - in -  free 1 done CD free 7
        14 idle
        ",
    );
}
