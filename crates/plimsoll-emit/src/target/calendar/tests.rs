use plimsoll_study::PlanFile;

use super::*;
use crate::target::{EmitInput, EmitSettings, Target};

/// A plan whose first pool has these floors, and at least four replicas.
fn plan(start: &str, floors: &[(usize, usize, u32)], lead_s: f64) -> PlanFile {
    let mut plan: PlanFile =
        serde_json::from_str(include_str!("../../../tests/fixtures/plan.json")).expect("a plan");
    plan.forecast.start = start.to_owned();
    let policy = &mut plan.scaling.policies[0];
    policy.floors_lead_s = lead_s;
    policy.floors = floors
        .iter()
        .map(|&(from_hour, until_hour, replicas)| plimsoll_study::FileFloor {
            from_hour,
            until_hour,
            replicas,
        })
        .collect();
    plan
}

/// Monday, 2026-11-16, where nothing else is said.
fn check(floors: &[(usize, usize, u32)], lead_s: f64, expected: &[(&str, &str, u32)]) {
    check_from("2026-11-16T00:00:00Z", floors, lead_s, expected);
}

fn check_from(
    start: &str,
    floors: &[(usize, usize, u32)],
    lead_s: f64,
    expected: &[(&str, &str, u32)],
) {
    let plan = plan(start, floors, lead_s);
    let settings = EmitSettings::default();
    let input = EmitInput { plan: &plan, settings: &settings };
    let mut own = Emission::new(Target::Keda, &input).expect("pools");
    let pool = own.pools[0].clone();
    let found = crons(&mut own, &pool, &plan.scaling.policies[0]).expect("crons");
    let found: Vec<(&str, &str, u32)> =
        found.iter().map(|own| (own.start.as_str(), own.end.as_str(), own.replicas)).collect();
    assert_eq!(found, expected, "{floors:?}");
}

#[test]
fn floors_become_crons() {
    // The fewest replicas need none, and days that are alike share one.
    check(&[(0, 8, 4), (8, 20, 9), (20, 168, 4)], 0.0, &[("0 8 * * 1", "0 20 * * 1", 9)]);
    check(
        &[(0, 8, 4), (8, 20, 9), (20, 32, 4), (32, 44, 9), (44, 56, 4), (56, 68, 9), (68, 168, 4)],
        170.0,
        &[("57 7 * * 1-3", "0 20 * * 1-3", 9)],
    );
    // A night goes into the next day, and a lead into the day before.
    check(&[(0, 22, 4), (22, 30, 6), (30, 168, 4)], 0.0, &[("0 22 * * 1", "0 6 * * 2", 6)]);
    check(&[(0, 24, 4), (24, 30, 6), (30, 168, 4)], 61.0, &[("58 23 * * 1", "0 6 * * 2", 6)]);
    // Several days are one pair, and floors that meet and are equal are one.
    check(
        &[(0, 33, 4), (33, 50, 11), (50, 116, 11), (116, 168, 8)],
        1250.2,
        &[("39 8 * * 2", "0 20 * * 5", 11), ("39 19 * * 5", "0 0 * * 1", 8)],
    );
    // The end of a week meets its beginning.
    check(&[(0, 5, 8), (5, 160, 4), (160, 168, 8)], 0.0, &[("0 16 * * 0", "0 5 * * 1", 8)]);
    // A whole week has two halves, because a start that is an end is never active.
    check(
        &[(0, 168, 7)],
        60.0,
        &[("59 23 * * 0", "59 11 * * 4", 7), ("59 11 * * 4", "59 23 * * 0", 7)],
    );
    check(&[(0, 168, 4)], 60.0, &[]);
    // More than a week goes by the date.
    check(&[(0, 200, 4), (200, 210, 6), (210, 336, 4)], 0.0, &[("0 8 24 11 *", "0 18 24 11 *", 6)]);
    check_from(
        "2026-12-31T12:00:00Z",
        &[(0, 10, 4), (10, 14, 6), (14, 200, 4)],
        0.0,
        &[("0 22 31 12 *", "0 2 1 1 *", 6)],
    );
}

#[test]
fn a_start_is_never_an_end() {
    for hours in 1..=168 {
        for lead in [0.0, 30.0, 1250.0, 86_400.0] {
            let plan = plan("2026-11-16T00:00:00Z", &[(0, hours, 9), (hours, 168, 4)], lead);
            let settings = EmitSettings::default();
            let input = EmitInput { plan: &plan, settings: &settings };
            let mut own = Emission::new(Target::Keda, &input).expect("pools");
            let pool = own.pools[0].clone();
            for cron in crons(&mut own, &pool, &plan.scaling.policies[0]).expect("crons") {
                assert_ne!(cron.start, cron.end, "{hours} h, {lead} s");
            }
        }
    }
}

#[test]
fn days_do_not_overlap() {
    let plan =
        plan("2026-11-16T00:00:00Z", &[(0, 33, 4), (33, 58, 11), (58, 70, 8), (70, 168, 4)], 600.0);
    let settings = EmitSettings::default();
    let input = EmitInput { plan: &plan, settings: &settings };
    let mut own = Emission::new(Target::Aibrix, &input).expect("pools");
    let pool = own.pools[0].clone();
    let found = day_windows(&mut own, &pool, &plan.scaling.policies[0]).expect("windows");
    let said: Vec<(Vec<usize>, usize, usize, u32)> =
        found.into_iter().map(|own| (own.days, own.start, own.end, own.replicas)).collect();
    assert_eq!(
        said,
        [
            (vec![1], 8 * 60 + 50, 24 * 60, 11),
            (vec![2], 0, 10 * 60, 11),
            (vec![2], 10 * 60, 22 * 60, 8)
        ]
    );
}

#[test]
fn what_is_no_time_is_said() {
    let plan = plan("tomorrow", &[(0, 8, 9)], 0.0);
    let mut settings = EmitSettings::default();
    let input = EmitInput { plan: &plan, settings: &settings };
    let found = crate::target::emit(Target::Keda, &input);
    assert_eq!(found, Err(EmitError::Start { start: "tomorrow".to_owned() }));
    settings.timezone = "Mars/Olympus".to_owned();
    let input = EmitInput { plan: &plan, settings: &settings };
    let found = crate::target::emit(Target::Keda, &input);
    assert_eq!(found, Err(EmitError::Timezone { name: "Mars/Olympus".to_owned() }));
}
