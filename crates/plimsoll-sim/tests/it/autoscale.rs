//! What the autoscaler decides, sync by sync, worked by hand from the sources that `docs/model.md` cites; then what must hold whatever it is told.

use plimsoll_sim::{
    Activation, Behaviour, Change, Controller, Decision, Metric, ScalePolicy, Scaling, Select,
    TargetKind, Why,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000_000;

/// One sync, or one poll: when, replicas, how many are ready, signals; then how many are wanted, how many it becomes, and why.
type Row = (u64, u32, u32, Vec<Metric>, u32, u32, Why);

/// Every sync of a script, in order, is decided as its row says.
fn check(scaling: &Scaling, rows: &[Row]) {
    follow(scaling, rows, |controller, now, row| controller.decide(now, row.1, row.2, &row.3));
}

/// The same for KEDA's polls.
fn check_polls(scaling: &Scaling, rows: &[Row]) {
    follow(scaling, rows, |controller, now, row| controller.poll(now, row.1, &row.3));
}

fn follow(
    scaling: &Scaling,
    rows: &[Row],
    mut step: impl FnMut(&mut Controller, u64, &Row) -> Decision,
) {
    let mut controller = Controller::new(scaling.clone());
    for row in rows {
        let &(seconds, _, _, _, wanted, replicas, why) = row;
        let found = step(&mut controller, seconds * SECOND, row);
        assert_eq!(found, Decision { replicas, wanted, why }, "at {seconds} s");
    }
}

/// Ten for each replica, over all of them.
fn total(value: f64) -> Vec<Metric> {
    vec![Metric::new(Some(value), 10.0, TargetKind::AverageValue)]
}

/// Half a second, whoever serves it.
fn latency(value: f64) -> Vec<Metric> {
    vec![Metric::new(Some(value), 0.5, TargetKind::Value)]
}

/// A total that could not be read.
fn unread() -> Vec<Metric> {
    vec![Metric::new(None, 10.0, TargetKind::AverageValue)]
}

fn policy(change: Change, seconds: u64) -> ScalePolicy {
    ScalePolicy { change, period: seconds * SECOND }
}

/// Any change at once, a tenth off tolerated.
fn free() -> Behaviour {
    limited(0, Select::Max, &[policy(Change::Replicas(1_000_000), 1)])
}

fn limited(window: u64, select: Select, policies: &[ScalePolicy]) -> Behaviour {
    let policies = policies.to_vec();
    Behaviour { tolerance: 0.1, stabilization: window * SECOND, policies, select }
}

fn scaling(min: u32, max: u32, up: Behaviour, down: Behaviour) -> Scaling {
    Scaling { min, max, up, down, activation: None }
}

/// KEDA's own: from none to some and back.
fn activated(min: u32, max: u32) -> Scaling {
    let activation =
        Activation { polling: 30 * SECOND, cooldown: 300 * SECOND, cooldown_initial: 0 };
    Scaling { activation: Some(activation), ..scaling(min, max, free(), free()) }
}

/// A sum is divided by the target, whatever there is now; how many are ready does not matter.
#[test]
fn an_average_asks_for_the_total_over_the_target() {
    let rows = [
        (0, 4, 4, total(45.0), 5, 5, Why::Moved),
        (15, 5, 4, total(45.0), 5, 5, Why::Tolerance),
        (30, 5, 4, total(101.0), 11, 11, Why::Moved),
        (45, 11, 4, total(20.0), 2, 2, Why::Moved),
        (60, 2, 2, total(20.0001), 2, 2, Why::Tolerance),
        (75, 2, 2, total(0.0), 0, 1, Why::Min),
        (90, 1, 1, total(30.0), 3, 3, Why::Moved),
    ];
    check(&scaling(1, 20, free(), free()), &rows);
}

/// Sums of fractions are whole thousandths by then: three tenths over a tenth are three, although 0.1 + 0.2 is more than 0.3.
#[test]
fn thousandths_are_whole() {
    let tenths = |value| vec![Metric::new(Some(value), 0.1, TargetKind::AverageValue)];
    let rows = [
        (0, 1, 1, tenths(0.1 + 0.2), 3, 3, Why::Moved),
        (15, 3, 3, tenths(0.7004), 7, 7, Why::Moved),
        (30, 7, 7, tenths(0.0004), 0, 1, Why::Min),
    ];
    check(&scaling(1, 20, free(), free()), &rows);
}

/// A value is a ratio, of the replicas that are ready: with few of them it asks for fewer than there are although it is too high, with none for none.
#[test]
fn a_value_asks_for_its_ratio_of_the_ready() {
    let rows = [
        (0, 10, 10, latency(0.45), 10, 10, Why::Tolerance),
        (15, 10, 10, latency(0.44), 9, 9, Why::Moved),
        (30, 9, 9, latency(0.75), 14, 14, Why::Moved),
        (45, 14, 9, latency(0.75), 14, 14, Why::Kept),
        (60, 14, 4, latency(0.75), 6, 6, Why::Moved),
        (75, 6, 0, latency(2.0), 0, 1, Why::Min),
        // Those that leave still count while they are ready.
        (90, 6, 14, latency(0.25), 7, 7, Why::Moved),
    ];
    check(&scaling(1, 20, free(), free()), &rows);
}

/// Ten replicas whose 95th percentile is 0.45 s, where 0.5 is asked for, are right. Taken for a sum, 0.45 over 0.5 is one replica.
#[test]
fn a_quantile_is_no_sum() {
    let sum = vec![Metric::new(Some(0.45), 0.5, TargetKind::AverageValue)];
    let scaling = scaling(1, 20, free(), free());
    check(&scaling, &[(0, 10, 10, latency(0.45), 10, 10, Why::Tolerance)]);
    check(&scaling, &[(0, 10, 10, sum, 1, 1, Why::Moved)]);
}

/// Exactly at the tolerance nothing is done, a thousandth further it is; up and down have their own.
#[test]
fn a_tolerance_includes_its_edges() {
    let rows = [
        (0, 10, 10, total(110.0), 10, 10, Why::Tolerance),
        (15, 10, 10, total(110.001), 12, 12, Why::Moved),
        (30, 10, 10, total(90.0), 10, 10, Why::Tolerance),
        (45, 10, 10, total(89.999), 9, 9, Why::Moved),
        (60, 10, 10, latency(0.55), 10, 10, Why::Tolerance),
        (75, 10, 10, latency(0.551), 12, 12, Why::Moved),
        // Out of tolerance, and yet as many: one and a half, rounded up.
        (90, 2, 2, total(15.0), 2, 2, Why::Kept),
    ];
    check(&scaling(1, 20, free(), free()), &rows);

    let up = Behaviour { tolerance: 0.0, ..free() };
    let down = Behaviour { tolerance: 0.5, ..free() };
    let rows = [
        (0, 10, 10, total(100.001), 11, 11, Why::Moved),
        (15, 10, 10, total(100.0), 10, 10, Why::Tolerance),
        (30, 10, 10, total(50.0), 10, 10, Why::Tolerance),
        (45, 10, 10, total(49.0), 5, 5, Why::Moved),
    ];
    check(&scaling(1, 20, up, down), &rows);
}

/// Removing waits for the highest recommendation of a minute; the number it began with is one, and one of exactly a minute ago is none.
#[test]
fn removing_waits_for_the_highest_of_the_window() {
    let down = limited(60, Select::Max, &[policy(Change::Percent(100), 15)]);
    let rows = [
        (0, 10, 10, total(30.0), 3, 10, Why::Stabilized),
        (30, 10, 10, total(70.0), 7, 10, Why::Stabilized),
        (45, 10, 10, total(30.0), 3, 10, Why::Stabilized),
        (60, 10, 10, total(30.0), 3, 7, Why::Stabilized),
        // What is wanted at once is had at once.
        (75, 7, 7, total(80.0), 8, 8, Why::Moved),
        (90, 8, 8, total(30.0), 3, 8, Why::Stabilized),
        (134, 8, 8, total(30.0), 3, 8, Why::Stabilized),
        (135, 8, 8, total(30.0), 3, 3, Why::Moved),
    ];
    check(&scaling(1, 20, free(), down), &rows);
}

/// Adding waits for the lowest, and a moment of nothing starts the wait again.
#[test]
fn adding_waits_for_the_lowest_of_the_window() {
    let up = limited(60, Select::Max, &[policy(Change::Percent(900), 15)]);
    let rows = [
        (0, 2, 2, total(80.0), 8, 2, Why::Stabilized),
        (30, 2, 2, total(50.0), 5, 2, Why::Stabilized),
        (60, 2, 2, total(80.0), 8, 5, Why::Stabilized),
        (75, 5, 5, total(80.0), 8, 5, Why::Stabilized),
        (90, 5, 5, total(80.0), 8, 8, Why::Moved),
        (105, 8, 8, total(60.0), 6, 6, Why::Moved),
        (120, 6, 6, total(90.0), 9, 6, Why::Stabilized),
        (164, 6, 6, total(90.0), 9, 6, Why::Stabilized),
        (165, 6, 6, total(90.0), 9, 9, Why::Moved),
    ];
    check(&scaling(1, 20, up, free()), &rows);
}

/// Each direction has its window, over the same recommendations.
#[test]
fn windows_differ_by_direction() {
    let up = limited(120, Select::Max, &[policy(Change::Percent(900), 15)]);
    let down = limited(60, Select::Max, &[policy(Change::Percent(100), 15)]);
    let rows = [
        (0, 6, 6, total(30.0), 3, 6, Why::Stabilized),
        (59, 6, 6, total(30.0), 3, 6, Why::Stabilized),
        (60, 6, 6, total(40.0), 4, 4, Why::Moved),
        (75, 4, 4, total(80.0), 8, 4, Why::Stabilized),
        (178, 4, 4, total(80.0), 8, 4, Why::Stabilized),
        (180, 4, 4, total(80.0), 8, 8, Why::Moved),
    ];
    check(&scaling(1, 20, up, down), &rows);
}

/// What a recommendation was before bounds is what is remembered: fifty wanted of at most ten hold ten.
#[test]
fn recommendations_know_no_bounds() {
    let down = limited(60, Select::Max, &[policy(Change::Percent(100), 15)]);
    let rows = [
        (0, 10, 10, total(500.0), 50, 10, Why::Max),
        (59, 10, 10, total(10.0), 1, 10, Why::Stabilized),
        (60, 10, 10, total(10.0), 1, 1, Why::Moved),
    ];
    check(&scaling(1, 10, free(), down), &rows);
}

/// Three more in three minutes, counted from those there were three minutes ago.
#[test]
fn policies_count_what_was_added_in_the_period() {
    let up = limited(0, Select::Max, &[policy(Change::Replicas(3), 180)]);
    let rows = [
        (0, 2, 2, total(40.0), 4, 4, Why::Moved),
        (15, 4, 4, total(200.0), 20, 5, Why::Policy),
        (30, 5, 5, total(200.0), 20, 5, Why::Policy),
        (179, 5, 5, total(200.0), 20, 5, Why::Policy),
        // Two of them are three minutes old.
        (180, 5, 5, total(200.0), 20, 7, Why::Policy),
        (195, 7, 7, total(200.0), 20, 8, Why::Policy),
        // One that is removed may be added again.
        (210, 8, 8, total(60.0), 6, 6, Why::Moved),
        (225, 6, 6, total(200.0), 20, 8, Why::Policy),
    ];
    check(&scaling(1, 20, up, free()), &rows);
}

/// Where policies and bounds allow as many, it is said to be the bounds.
#[test]
fn bounds_are_named_before_policies() {
    let two = limited(0, Select::Max, &[policy(Change::Replicas(2), 15)]);
    let rows = [
        (0, 8, 8, total(200.0), 20, 10, Why::Max),
        (15, 7, 7, total(200.0), 20, 9, Why::Policy),
        (30, 4, 4, total(10.0), 1, 2, Why::Min),
        (45, 5, 5, total(10.0), 1, 3, Why::Policy),
    ];
    check(&scaling(2, 10, two.clone(), two), &rows);
}

/// Two fewer a minute; what was added in that minute may go as well.
#[test]
fn policies_count_what_was_removed_in_the_period() {
    let down = limited(0, Select::Max, &[policy(Change::Replicas(2), 60)]);
    let rows = [
        (0, 10, 10, total(10.0), 1, 8, Why::Policy),
        (15, 8, 8, total(10.0), 1, 8, Why::Policy),
        (60, 8, 8, total(10.0), 1, 6, Why::Policy),
        (75, 6, 6, total(90.0), 9, 9, Why::Moved),
        (90, 9, 9, total(10.0), 1, 6, Why::Policy),
    ];
    check(&scaling(1, 20, free(), down), &rows);
}

/// Hundredths are of those when the period began. Adding is rounded up, removing leaves a rounded down number: each lets at least one through. Where a hundredth
/// has no exact fraction, rounding up may let one more through.
#[test]
fn hundredths_round_in_favour_of_change() {
    let tenth = [policy(Change::Percent(10), 60)];
    let up = limited(0, Select::Max, &tenth);
    let down = limited(0, Select::Max, &tenth);
    let rows = [
        (0, 5, 5, total(900.0), 90, 6, Why::Policy),
        (15, 6, 6, total(900.0), 90, 6, Why::Policy),
        (60, 6, 6, total(900.0), 90, 7, Why::Policy),
        (120, 20, 20, total(900.0), 90, 22, Why::Policy),
        (180, 100, 100, total(9000.0), 900, 111, Why::Policy),
        (240, 5, 5, total(10.0), 1, 4, Why::Policy),
        (300, 19, 19, total(10.0), 1, 17, Why::Policy),
        (360, 100, 100, total(10.0), 1, 90, Why::Policy),
    ];
    check(&scaling(1, 1000, up, down), &rows);
}

/// Of several policies the most generous or the least counts, in either direction; or none.
#[test]
fn one_of_the_policies_is_selected() {
    let both = [policy(Change::Percent(100), 15), policy(Change::Replicas(4), 15)];
    let with = |select| scaling(1, 100, limited(0, select, &both), limited(0, select, &both));
    let rows = [
        (0, 1, 1, total(900.0), 90, 5, Why::Policy),
        (15, 5, 5, total(900.0), 90, 10, Why::Policy),
        (30, 10, 10, total(900.0), 90, 20, Why::Policy),
        (45, 20, 20, total(10.0), 1, 1, Why::Moved),
    ];
    check(&with(Select::Max), &rows);
    let rows = [
        (0, 1, 1, total(900.0), 90, 2, Why::Policy),
        (15, 2, 2, total(900.0), 90, 4, Why::Policy),
        (30, 10, 10, total(900.0), 90, 14, Why::Policy),
        (45, 20, 20, total(10.0), 1, 16, Why::Policy),
    ];
    check(&with(Select::Min), &rows);
    // Bounds are held to all the same.
    let rows = [
        (0, 10, 10, total(900.0), 90, 10, Why::Policy),
        (15, 10, 10, total(10.0), 1, 10, Why::Policy),
        (30, 120, 120, total(10.0), 100, 100, Why::Max),
    ];
    check(&with(Select::Disabled), &rows);
}

/// Additions that adding itself looks back on no more are forgotten at the next one, although removing would look back further: of 2 and 3 within five minutes it
/// remembers 3, and takes eleven less three for what there was.
#[test]
fn a_later_addition_replaces_one_that_is_of_no_more_use() {
    let up = limited(0, Select::Max, &[policy(Change::Replicas(3), 60)]);
    let down = limited(0, Select::Max, &[policy(Change::Replicas(1), 300)]);
    let rows = [
        (0, 6, 6, total(80.0), 8, 8, Why::Moved),
        (90, 8, 8, total(200.0), 20, 11, Why::Policy),
        (105, 11, 11, total(10.0), 1, 7, Why::Policy),
    ];
    check(&scaling(1, 20, up.clone(), down.clone()), &rows);
    // Exactly a minute is not yet too old.
    let rows = [
        (0, 6, 6, total(80.0), 8, 8, Why::Moved),
        (60, 8, 8, total(200.0), 20, 11, Why::Policy),
        (75, 11, 11, total(10.0), 1, 5, Why::Policy),
    ];
    check(&scaling(1, 20, up.clone(), down.clone()), &rows);
    // Of several it is the last that goes: of 1, 2 and 3 it remembers 1 and 3.
    let rows = [
        (0, 6, 6, total(70.0), 7, 7, Why::Moved),
        (10, 7, 7, total(90.0), 9, 9, Why::Moved),
        (100, 9, 9, total(120.0), 12, 12, Why::Moved),
        (105, 12, 12, total(10.0), 1, 7, Why::Policy),
    ];
    check(&scaling(1, 20, up, down), &rows);
}

/// Without a value nothing happens, and nothing is remembered; with some of them missing it still adds.
#[test]
fn what_cannot_be_read_never_removes() {
    let some = |value| [total(value), unread()].concat();
    let rows = [
        (0, 5, 5, unread(), 5, 5, Why::Missing),
        (15, 5, 5, vec![], 5, 5, Why::Missing),
        (30, 5, 5, some(20.0), 5, 5, Why::Missing),
        (45, 5, 5, some(50.0), 5, 5, Why::Tolerance),
        (60, 5, 5, some(80.0), 8, 8, Why::Moved),
        (75, 8, 8, total(f64::NAN), 0, 1, Why::Min),
    ];
    check(&scaling(1, 20, free(), free()), &rows);

    // The fifth replica of the first sync holds for a minute; the gap after it does not.
    let down = limited(60, Select::Max, &[policy(Change::Percent(100), 15)]);
    let rows = [
        (0, 5, 5, unread(), 5, 5, Why::Missing),
        (59, 5, 5, unread(), 5, 5, Why::Missing),
        (60, 5, 5, total(20.0), 2, 2, Why::Moved),
    ];
    check(&scaling(1, 20, free(), down), &rows);
}

/// The most that any signal wants.
#[test]
fn the_highest_of_several_signals_counts() {
    let both = |sum, seconds| [total(sum), latency(seconds)].concat();
    let rows = [
        (0, 4, 4, both(60.0, 0.5), 6, 6, Why::Moved),
        (15, 6, 6, both(60.0, 1.0), 12, 12, Why::Moved),
        (30, 12, 12, both(60.0, 0.5), 12, 12, Why::Tolerance),
        (45, 12, 12, both(60.0, 0.3), 8, 8, Why::Moved),
    ];
    check(&scaling(1, 20, free(), free()), &rows);
}

/// A number by the calendar is a signal too: nineteen are near enough to twenty, and 22 are kept for them.
#[test]
fn floors_are_signals_and_tolerated() {
    let with = |sum, floor| [total(sum), vec![Metric::floor(floor)]].concat();
    let rows = [
        (0, 4, 4, with(40.0, 10), 10, 10, Why::Moved),
        (15, 10, 10, with(40.0, 10), 10, 10, Why::Tolerance),
        (30, 10, 10, with(140.0, 10), 14, 14, Why::Moved),
        (45, 14, 14, with(40.0, 0), 4, 4, Why::Moved),
        (60, 19, 19, with(40.0, 20), 19, 19, Why::Tolerance),
        (75, 18, 18, with(40.0, 20), 20, 20, Why::Moved),
        (90, 22, 22, with(40.0, 20), 22, 22, Why::Tolerance),
        (105, 23, 23, with(40.0, 20), 20, 20, Why::Moved),
    ];
    check(&scaling(1, 40, free(), free()), &rows);
}

/// Outside its bounds it is brought back at once, whatever signals, windows and policies say; inside it does not leave them.
#[test]
fn bounds_are_held() {
    let slow = limited(600, Select::Min, &[policy(Change::Replicas(1), 600)]);
    let rows = [(0, 1, 1, unread(), 3, 3, Why::Min), (15, 9, 9, unread(), 6, 6, Why::Max)];
    check(&scaling(3, 6, slow.clone(), slow), &rows);
    let rows = [
        (0, 4, 4, total(500.0), 50, 6, Why::Max),
        (15, 6, 6, total(10.0), 1, 3, Why::Min),
        (30, 3, 3, total(10.0), 1, 3, Why::Min),
        (45, 0, 0, total(50.0), 0, 0, Why::Stopped),
    ];
    check(&scaling(3, 6, free(), free()), &rows);
}

/// Without KEDA it goes to none by itself where it may, and comes back from there; not where somebody else has stopped it. Hundredths of none are none.
#[test]
fn none_are_asked_for_and_left_again() {
    let rows = [
        (0, 0, 0, total(50.0), 0, 0, Why::Stopped),
        (15, 2, 2, total(0.0), 0, 0, Why::Moved),
        (30, 0, 0, total(0.0), 0, 0, Why::Kept),
        (45, 0, 0, unread(), 0, 0, Why::Missing),
        (60, 0, 0, total(0.5), 1, 1, Why::Moved),
        (75, 1, 1, latency(0.0), 0, 0, Why::Moved),
        (90, 0, 0, latency(0.51), 2, 2, Why::Moved),
    ];
    check(&scaling(0, 20, free(), free()), &rows);
    let up = limited(0, Select::Max, &[policy(Change::Percent(100), 15)]);
    let rows =
        [(0, 1, 1, total(0.0), 0, 0, Why::Moved), (15, 0, 0, total(90.0), 9, 0, Why::Policy)];
    check(&scaling(0, 20, up, free()), &rows);
}

/// KEDA: any signal above its threshold brings the first replica; the last goes once none has been for longer than the cooldown, from whatever number.
#[test]
fn keda_goes_between_none_and_the_first() {
    let queue = |value| vec![Metric { activation: 5.0, ..total(value)[0] }];
    let rows = [
        (0, 0, 0, queue(0.0), 0, 0, Why::Kept),
        (30, 0, 0, queue(5.0), 0, 0, Why::Kept),
        (60, 0, 0, queue(5.1), 1, 1, Why::Activated),
        (90, 1, 0, queue(100.0), 1, 1, Why::Kept),
        (120, 10, 1, queue(0.0), 10, 10, Why::Cooling),
        (390, 10, 10, queue(0.0), 10, 10, Why::Cooling),
        (420, 10, 10, queue(0.0), 0, 0, Why::Deactivated),
        (450, 0, 0, unread(), 0, 0, Why::Missing),
        // A calendar counts as long as it asks for any.
        (480, 0, 0, [queue(0.0), vec![Metric::floor(2)]].concat(), 1, 1, Why::Activated),
        // One that cannot be read keeps it from going, and from counting as active.
        (510, 2, 2, [queue(9.0), unread()].concat(), 2, 2, Why::Missing),
        (900, 2, 2, [queue(0.0), unread()].concat(), 2, 2, Why::Missing),
        (930, 2, 2, [queue(0.0), vec![Metric::floor(0)]].concat(), 0, 0, Why::Deactivated),
    ];
    check_polls(&activated(0, 20), &rows);
    // What was never active goes at once; above a fewest it is that few that come first.
    let rows = [
        (0, 4, 4, total(0.0), 0, 0, Why::Deactivated),
        (30, 0, 0, total(1.0), 3, 3, Why::Activated),
    ];
    check_polls(&activated(3, 20), &rows);
    check_polls(&scaling(1, 20, free(), free()), &[(0, 4, 4, total(0.0), 4, 4, Why::Kept)]);
}

/// From the first replica on it is the autoscaler's, which never removes that one and does nothing while there is none.
#[test]
fn from_the_first_on_keda_leaves_it_to_the_autoscaler() {
    let rows = [
        (0, 0, 0, total(90.0), 0, 0, Why::Stopped),
        (15, 1, 0, total(90.0), 9, 9, Why::Moved),
        (30, 9, 9, total(0.0), 0, 1, Why::Min),
        (45, 1, 1, total(0.0), 0, 1, Why::Min),
    ];
    check(&activated(0, 20), &rows);
}

/// What KEDA does the policies do not see: back from ten by way of none, the autoscaler thinks that it has used up what it may add.
#[test]
fn policies_do_not_see_what_keda_does() {
    let up = limited(0, Select::Max, &[policy(Change::Replicas(9), 600)]);
    let mut controller = Controller::new(Scaling { up, ..activated(0, 20) });
    let mut decide = |seconds: u64, replicas: u32| {
        let decision = controller.decide(seconds * SECOND, replicas, replicas, &total(200.0));
        (decision.replicas, decision.why)
    };
    assert_eq!(decide(0, 1), (10, Why::Policy));
    assert_eq!(decide(400, 1), (1, Why::Policy));
    assert_eq!(decide(600, 1), (10, Why::Policy));
}

/// A behaviour with policies of one period, and how much they allow.
fn behaviour(period: u64) -> impl Strategy<Value = Behaviour> {
    let change =
        prop_oneof![(1u32..6).prop_map(Change::Replicas), (1u32..120).prop_map(Change::Percent)];
    let policies = prop::collection::vec(change.prop_map(move |c| policy(c, period)), 1..3);
    let select =
        prop_oneof![3 => Just(Select::Max), 3 => Just(Select::Min), 1 => Just(Select::Disabled)];
    (0u32..3, prop_oneof![Just(0u64), 1u64..400], policies, select).prop_map(
        |(tenths, window, policies, select)| Behaviour {
            tolerance: f64::from(tenths) / 10.0,
            ..limited(window, select, &policies)
        },
    )
}

fn scalings() -> impl Strategy<Value = Scaling> {
    let period = prop_oneof![Just(15u64), 1u64..300];
    let both = period.prop_flat_map(|period| (behaviour(period), behaviour(period)));
    (0u32..5, 0u32..30, both)
        .prop_map(|(min, more, (up, down))| scaling(min, (min + more).max(1), up, down))
}

/// Seconds since the sync before, hundredths of the replicas that are ready, and signals.
type Sync = (u64, u32, Vec<Metric>);

fn syncs() -> impl Strategy<Value = Vec<Sync>> {
    let value = prop_oneof![4 => (0u32..300).prop_map(|v| Some(f64::from(v))), 1 => Just(None)];
    let kind = prop_oneof![Just(TargetKind::AverageValue), Just(TargetKind::Value)];
    let metric = (value, prop_oneof![Just(10.0), 1.0..200.0], kind)
        .prop_map(|(value, target, kind)| Metric::new(value, target, kind));
    let apart = prop_oneof![3 => Just(15u64), 1 => 1u64..200];
    prop::collection::vec((apart, 0u32..=100, prop::collection::vec(metric, 1..3)), 1..80)
}

/// A sync as it happened.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    at: u64,
    before: u32,
    missing: bool,
    decision: Decision,
}

/// A script followed by a fleet that does what it is told.
fn obey(scaling: &Scaling, start: u32, syncs: &[Sync]) -> Vec<Seen> {
    let mut controller = Controller::new(scaling.clone());
    let (mut at, mut before) = (0, start);
    let mut seen = Vec::new();
    for (apart, hundredths, metrics) in syncs {
        at += apart;
        let decision = controller.decide(at * SECOND, before, before * hundredths / 100, metrics);
        let missing = metrics.iter().any(|m| m.value.is_none());
        seen.push(Seen { at, before, missing, decision });
        before = decision.replicas;
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(plimsoll_testkit::cases(2_000)))]

    /// Whatever there was, afterwards there are as many as bounds allow, or none where it was stopped. What cannot be read removes nothing that bounds allow. Why it
    /// is so is what happened, and the same script is decided alike.
    #[test]
    fn bounds_hold(scaling in scalings(), start in 0u32..40, syncs in syncs()) {
        let seen = obey(&scaling, start, &syncs);
        prop_assert_eq!(&seen, &obey(&scaling, start, &syncs));
        for Seen { before, missing, decision: Decision { replicas, wanted, why }, .. } in seen {
            if why == Why::Stopped {
                prop_assert_eq!((before, replicas), (0, 0));
            } else {
                prop_assert!((scaling.min..=scaling.max).contains(&replicas));
            }
            prop_assert!(!missing || replicas >= before.min(scaling.max));
            match why {
                Why::Moved => prop_assert!(replicas == wanted && replicas != before),
                Why::Kept | Why::Tolerance => prop_assert!(replicas == wanted && replicas == before),
                Why::Missing | Why::Stopped => prop_assert_eq!(replicas, before),
                Why::Stabilized | Why::Policy => prop_assert_ne!(replicas, wanted),
                Why::Min => prop_assert_eq!(replicas, scaling.min),
                Why::Max => prop_assert_eq!(replicas, scaling.max),
                Why::Activated | Why::Deactivated | Why::Cooling => unreachable!(),
            }
        }
    }

    /// Nothing is removed below a recommendation of the time that removing waits, nothing added above one of the time that adding waits, except to come back within
    /// bounds.
    #[test]
    fn recent_recommendations_hold(scaling in scalings(), start in 1u32..40, syncs in syncs()) {
        let mut recommended = Vec::new();
        for Seen { at, before, decision, .. } in obey(&scaling, start, &syncs) {
            if recommended.is_empty() {
                recommended.push((at, before));
            }
            let outside = !(scaling.min..=scaling.max).contains(&before);
            if outside || matches!(decision.why, Why::Missing | Why::Stopped) {
                continue;
            }
            recommended.push((at, decision.wanted));
            let within = |window: u64| {
                let now = recommended.last().into_iter();
                let recent = recommended.iter().filter(move |r| (at - r.0) * SECOND < window);
                now.chain(recent).map(|r| r.1)
            };
            let highest = within(scaling.down.stabilization).max().unwrap_or(0);
            let lowest = within(scaling.up.stabilization).min().unwrap_or(u32::MAX);
            prop_assert!(decision.replicas >= highest.min(before));
            prop_assert!(decision.replicas <= lowest.max(before));
        }
    }

    /// Within a period, counted back from any change, no more was added or removed than the selected policy allows of what there was when it began, except to come
    /// back within bounds.
    #[test]
    fn policies_hold(scaling in scalings(), start in 1u32..40, syncs in syncs()) {
        let seen = obey(&scaling, start, &syncs);
        for (i, Seen { at, before, decision, .. }) in seen.iter().enumerate() {
            let (before, then) = (*before, decision.replicas);
            if then == before || !(scaling.min..=scaling.max).contains(&before) {
                continue;
            }
            let behaviour = if then > before { &scaling.up } else { &scaling.down };
            let allowed = behaviour.policies.iter().map(|policy| {
                let began = seen[..i].iter().find(|s| (at - s.at) * SECOND < policy.period);
                let began = f64::from(began.map_or(before, |s| s.before));
                let share = |n: u32| f64::from(n) / 100.0;
                match (policy.change, then > before) {
                    (Change::Replicas(n), true) => began + f64::from(n),
                    (Change::Percent(n), true) => (began * (1.0 + share(n))).ceil(),
                    (Change::Replicas(n), false) => began - f64::from(n),
                    (Change::Percent(n), false) => (began * (1.0 - share(n))).trunc(),
                }
            });
            let largest = match behaviour.select {
                Select::Disabled => None,
                select if (select == Select::Max) == (then > before) => allowed.reduce(f64::max),
                _ => allowed.reduce(f64::min),
            };
            let limit = largest.expect("nothing changes where it is disabled");
            let held =
                if then > before { f64::from(then) <= limit } else { f64::from(then) >= limit };
            prop_assert!(held, "{then} of {before}, where {limit} are allowed");
        }
    }

    /// Free to move, it has what the calendar asks for, or so few less that the tolerance covers them.
    #[test]
    fn floors_hold(floor in 0u32..60, start in 1u32..40, sum in 0u32..600, max in 1u32..60) {
        let mut controller = Controller::new(scaling(1, max, free(), free()));
        let metrics = [total(f64::from(sum)), vec![Metric::floor(floor)]].concat();
        let decision = controller.decide(0, start, start, &metrics);
        let least = f64::from(floor) / 1.1 - 1e-9;
        prop_assert!(decision.replicas == max || f64::from(decision.replicas) >= least);
    }
}
