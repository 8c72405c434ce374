//! How requests were served, of small ledgers worked by hand.

use std::collections::BTreeMap;
use std::num::NonZero;

use super::service::{ClassService, ServiceInput, ServiceSlo};
use super::tests::{Scratch, input};
use super::{Classing, NamedClass};

/// Ten o'clock on the first of March 2026.
const TEN: i64 = 1_772_359_200;

fn row(name: &str, at: &str, more: &str) -> String {
    format!("{{\"request_id\":\"{name}\",\"ts_arrival\":\"2026-03-01T{at}Z\"{more}}}\n")
}

/// Classes by their models, each with what it was promised.
fn asked(classes: &[(&str, Option<ServiceSlo>)]) -> ServiceInput {
    let mut scan = input(&[], &[]);
    let named = classes.iter().map(|(model, _)| NamedClass {
        name: format!("class {model}"),
        columns: BTreeMap::from([("model".to_owned(), (*model).to_owned())]),
    });
    scan.classes = Classing::Named(named.collect());
    ServiceInput { scan, from_s: None, until_s: None, slo: classes.iter().map(|c| c.1).collect() }
}

fn service(scratch: &Scratch, input: &ServiceInput) -> Vec<ClassService> {
    scratch.ledger().service(input).expect("served")
}

/// Within what a sketch promises.
fn near(found: Option<f64>, expect: f64) {
    let found = found.expect("a quantile");
    assert!((found - expect).abs() <= 1e-3 * expect + 1e-6, "{found}, not {expect}");
}

/// What came of two classes: `m` is refused, asked again and answered; `n` fails, is cancelled, and stands for three.
fn morning() -> Scratch {
    let text = [
        row(
            "a",
            "10:00:00",
            ",\"model\":\"m\",\"attempt\":1,\"status\":\"limited\",\"prompt_tokens\":10,\"ttft_s\":90,\"e2e_s\":90",
        ),
        row(
            "a",
            "10:00:02",
            ",\"model\":\"m\",\"attempt\":2,\"status\":\"ok\",\"prompt_tokens\":10,\"output_tokens\":11,\"ttft_s\":0.5,\"e2e_s\":2.5,\"cost_usd\":0.25",
        ),
        row(
            "b",
            "10:00:10",
            ",\"model\":\"m\",\"prompt_tokens\":10,\"output_tokens\":1,\"ttft_s\":0.4,\"e2e_s\":0.4",
        ),
        row("c", "10:00:20", ",\"model\":\"m\",\"prompt_tokens\":10,\"output_tokens\":5"),
        row(
            "d",
            "10:01:00",
            ",\"model\":\"n\",\"attempt\":1,\"status\":\"failed\",\"prompt_tokens\":10,\"cost_usd\":0.125",
        ),
        row(
            "e",
            "10:01:10",
            ",\"model\":\"n\",\"status\":\"cancelled\",\"prompt_tokens\":10,\"ttft_s\":70",
        ),
        row(
            "f",
            "10:01:20",
            ",\"model\":\"n\",\"sample_weight\":3,\"status\":\"ok\",\"prompt_tokens\":10,\"output_tokens\":3,\"ttft_s\":1,\"e2e_s\":2,\"cost_usd\":1",
        ),
        row(
            "g",
            "10:01:30",
            ",\"model\":\"n\",\"response_cached\":true,\"prompt_tokens\":10,\"output_tokens\":3,\"ttft_s\":0.001,\"e2e_s\":0.001",
        ),
    ];
    Scratch::of(&[&text.concat()])
}

#[test]
fn served_as_worked_by_hand() {
    let slo = ServiceSlo { ttft_s: Some(0.45), tpot_s: Some(0.3), e2e_s: None };
    let found = service(&morning(), &asked(&[("m", Some(slo)), ("n", None)]));
    let names: Vec<&str> = found.iter().map(|class| class.class.as_str()).collect();
    assert_eq!(names, ["all", "class m", "class n"]);
    let counts = |class: &ClassService| {
        [class.requests, class.attempts, class.limited, class.failed, class.answered]
    };
    assert_eq!(counts(&found[1]), [3.0, 4.0, 1.0, 0.0, 3.0]);
    assert_eq!(counts(&found[2]), [5.0, 5.0, 0.0, 1.0, 3.0]);
    assert_eq!(counts(&found[0]), [8.0, 9.0, 1.0, 1.0, 6.0]);
    // Of 0.4 and 0.5 the first is the median; what was refused or cancelled does not count.
    near(found[1].ttft_p50_s, 0.4);
    near(found[1].ttft_p99_s, 0.5);
    // 2 s for the ten tokens after the first.
    near(found[1].itl_p95_s, 0.2);
    near(found[1].e2e_p95_s, 2.5);
    near(found[2].itl_p99_s, 0.5);
    // With 0.4, 0.5 and three times one second, the third of five is a second.
    near(found[0].ttft_p50_s, 1.0);
    // `a` came too late, `b` has no gap between tokens, and of `c` no time is known.
    assert_eq!((found[1].good, found[1].judged), (Some(1.0), 2.0));
    assert_eq!((found[2].good, found[2].judged), (None, 0.0));
    assert_eq!((found[0].good, found[0].judged), (Some(1.0), 2.0));
    assert_eq!((found[1].cost_usd, found[1].costed), (Some(0.25), 1.0));
    assert_eq!((found[2].cost_usd, found[2].costed), (Some(3.125), 4.0));
    assert_eq!((found[0].cost_usd, found[0].costed), (Some(3.375), 5.0));
    // Nobody names a task: `a` is one, with both of its attempts.
    let tasks: Vec<u64> = found.iter().map(|class| class.tasks).collect();
    assert_eq!(tasks, [6, 3, 3]);
    assert!(found.iter().all(|class| (class.resolved, class.succeeded) == (0, 0)));
}

#[test]
fn promises() {
    let check =
        |ttft_s: Option<f64>, tpot_s: Option<f64>, e2e_s: Option<f64>, expect: (f64, f64)| {
            let slo = ServiceSlo { ttft_s, tpot_s, e2e_s };
            let found = service(&morning(), &asked(&[("m", Some(slo))]));
            assert_eq!((found[1].good, found[1].judged), (Some(expect.0), expect.1), "{slo:?}");
            assert_eq!((found[2].class.as_str(), found[2].good), ("other", None));
        };
    check(Some(0.5), None, None, (2.0, 2.0));
    check(Some(0.3), None, None, (0.0, 2.0));
    check(None, Some(0.1), None, (1.0, 2.0));
    check(None, Some(0.2), None, (2.0, 2.0));
    check(None, None, Some(1.0), (1.0, 2.0));
    // Nothing was promised, which everybody got.
    check(None, None, None, (3.0, 3.0));
    // Promises are by the order of all classes, of which the first has no rows.
    let slo = |ttft_s: f64| Some(ServiceSlo { ttft_s: Some(ttft_s), tpot_s: None, e2e_s: None });
    let found = service(&morning(), &asked(&[("x", slo(0.0)), ("m", slo(0.4)), ("n", slo(2.0))]));
    let good: Vec<Option<f64>> = found.iter().map(|class| class.good).collect();
    assert_eq!(good, [Some(4.0), Some(1.0), Some(3.0)]);
}

#[test]
fn only_what_came_then() {
    let scratch = morning();
    let check = |from: Option<i64>, until: Option<i64>, expect: [f64; 3]| {
        let (from_s, until_s) = (from.map(|at| TEN + at), until.map(|at| TEN + at));
        let input = ServiceInput { from_s, until_s, ..asked(&[("m", None), ("n", None)]) };
        let found = service(&scratch, &input);
        let attempts: Vec<f64> = found.iter().map(|class| class.attempts).collect();
        assert_eq!(attempts, expect, "{from:?} {until:?}");
    };
    check(None, None, [9.0, 4.0, 5.0]);
    check(Some(60), None, [5.0, 0.0, 5.0]);
    check(Some(2), Some(20), [2.0, 2.0, 0.0]);
    let quiet = ServiceInput { from_s: Some(TEN + 600), ..asked(&[("m", None)]) };
    let found = service(&scratch, &quiet);
    assert_eq!((found[0].ttft_p50_s, found[0].cost_usd, found[0].tasks), (None, None, 0));
}

/// A task is resolved by what was found out last, else by what its rows say last; one of two classes is one.
#[test]
fn tasks_and_how_they_ended() {
    let row = |name: &str, at: &str, model: &str, more: &str| {
        row(
            name,
            at,
            &format!(",\"model\":\"{model}\",\"prompt_tokens\":1,\"output_tokens\":1{more}"),
        )
    };
    let text = [
        row("a", "10:00:00", "m", ",\"task_id\":\"t1\",\"success\":false"),
        row("b", "10:00:01", "n", ",\"task_id\":\"t1\",\"success\":true"),
        row("c", "10:00:02", "m", ",\"task_id\":\"t2\",\"success\":true"),
        row("d", "10:00:03", "m", ",\"task_id\":\"t3\""),
        // Two attempts of a request without a task, the second of which succeeds; and a request of which nothing is known.
        row("e", "10:00:04", "n", ",\"attempt\":1,\"success\":false"),
        row("e", "10:00:05", "n", ",\"attempt\":2,\"success\":true"),
        row("f", "10:00:06", "n", ""),
    ];
    let outcomes = "task_id,success,ts\nt2,true,2026-03-02T00:00:00Z\nt2,false,2026-03-03T00:00:00Z\nt9,true,2026-03-03T00:00:00Z\n";
    let scratch = Scratch::named(&[("log.jsonl", &text.concat()), ("later.csv", outcomes)]);
    let mut input = asked(&[("m", None), ("n", None)]);
    for threads in [1, 7] {
        input.scan.threads = NonZero::new(threads).expect("some");
        let found = service(&scratch, &input);
        let ends: Vec<(u64, u64, u64)> =
            found.iter().map(|class| (class.tasks, class.resolved, class.succeeded)).collect();
        // All: t1 and `e` succeeded, t2 did not, and of t3 and `f` nobody knows. In `m`, t1 is what its row there says.
        assert_eq!(ends, [(5, 3, 2), (3, 2, 0), (3, 2, 2)]);
    }
}

/// Ten times of each tenth of a second, on several days, which are stretches of their own.
#[test]
fn quantiles_over_stretches() {
    let mut text = String::new();
    for i in 0..100u32 {
        let (day, ttft) = (1 + i % 9, f64::from(1 + i % 10) / 10.0);
        text += &format!(
            "{{\"request_id\":\"{i}\",\"ts_arrival\":\"2026-03-{day:02}T10:00:00Z\",\"prompt_tokens\":1,\"output_tokens\":2,\"ttft_s\":{ttft},\"e2e_s\":{}}}\n",
            3.0 * ttft
        );
    }
    let scratch = Scratch::of(&[&text]);
    let mut input = asked(&[("*", None)]);
    let on = |input: &ServiceInput| service(&scratch, input)[0].clone();
    let one = on(&input);
    input.scan.threads = NonZero::new(7).expect("seven");
    assert_eq!(one, on(&input));
    near(one.ttft_p50_s, 0.5);
    near(one.ttft_p95_s, 1.0);
    near(one.itl_p95_s, 2.0);
    near(one.e2e_p95_s, 3.0);
}
