//! Programmes of the size that people have: the gap is small, and nothing is broken.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "helpers of tests")]

use crate::support;
use plimsoll_plan::{Effort, Outcome, check, relaxed, solve};
use plimsoll_testkit::sized;

const EFFORT: Effort = Effort { lps: 20, tries: 20_000, gap: 0.0 };

/// The gap of an answer that keeps every promise.
fn gap(seed: u64, loss: bool, scale: f64) -> f64 {
    let programme = support::large(seed, loss, scale);
    let outcome = solve(&programme, EFFORT).unwrap();
    let Outcome::Found(answer) = outcome else { panic!("seed {seed}: {outcome:?}") };
    assert_eq!(check(&programme, &answer), [], "seed {seed}");
    let nodes: u64 = answer.rented.iter().map(|r| r.nodes).sum();
    println!(
        "seed {seed}, {} ways, {nodes} nodes: {}, bound {}, gap {:.2}%, {:?}",
        programme.ways.len(),
        answer.cost,
        answer.bound,
        100.0 * answer.gap,
        answer.work
    );
    answer.gap
}

#[test]
fn six_accelerators_four_regions_three_modes_eight_pools() {
    let all = [(1, false, 1.0), (2, true, 1.0), (3, false, 0.5), (5, true, 1.2), (6, true, 2.0)];
    for (seed, loss, scale) in all.into_iter().take(sized(2, 5)) {
        let gap = gap(seed, loss, scale);
        assert!(gap <= 0.05, "seed {seed}: {gap}");
    }
}

/// The fewer nodes, the more each of them weighs, and the relaxation knows halves.
#[test]
fn small_fleets_leave_wider_gaps() {
    for (seed, loss, scale, most) in [(4, true, 0.7, 0.07), (7, false, 0.2, 0.12)] {
        let gap = gap(seed, loss, scale);
        assert!(gap <= most, "seed {seed}: {gap}");
    }
}

#[test]
fn the_same_programme_gives_the_same_answer() {
    let programme = support::large(8, true, 1.0);
    let effort = Effort { lps: 10, tries: 500, gap: 0.0 };
    assert_eq!(solve(&programme, effort), solve(&programme, effort));
}

/// Quotas for a third of it: what to ask for is named, and is enough.
#[test]
fn what_a_large_programme_lacks() {
    let programme = support::large(1, false, 4.0);
    let effort = Effort { lps: 8, tries: 0, gap: 0.0 };
    let Outcome::Infeasible(why) = solve(&programme, effort).unwrap() else { panic!("it fits") };
    for relaxation in &why.together {
        println!("{relaxation}");
    }
    println!("alone: {:?}, {:?}", why.alone, why.work);
    assert!(why.proven && why.confirmed && !why.together.is_empty());
    let outcome = solve(&relaxed(&programme, &why.together), effort).unwrap();
    assert!(matches!(outcome, Outcome::Found(_)));
}
