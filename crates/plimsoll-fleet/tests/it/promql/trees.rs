//! What is read is what was written: trees, as text and back.

use plimsoll_fleet::promql::{
    Aggregate, AggregateOp, At, Binary, BinaryOp, Call, Expr, Group, Labels, MatchOp, Matcher,
    Selector, Sign, Subquery, Time, ValueType, read,
};
use proptest::prelude::*;

/// What a call of a function looks like, to be filled with other arguments.
fn call(written: &str, args: Vec<Expr>) -> Expr {
    let Ok(Expr::Call(Call { function, .. })) = read(written) else { panic!("{written}") };
    Expr::Call(Call { function, args })
}

fn labels() -> impl Strategy<Value = Vec<String>> {
    let label = prop_oneof![Just("pod".to_owned()), Just("by".to_owned()), ".{1,4}"];
    prop::collection::vec(label, 0..3)
}

fn time() -> impl Strategy<Value = Time> {
    let at = prop_oneof![
        3 => Just(None),
        1 => (-5_000_000_i64..5_000_000).prop_map(|ms| Some(At::Time(ms))),
        1 => prop_oneof![Just(Some(At::Start)), Just(Some(At::End))],
    ];
    (prop_oneof![Just(0), -100_000_000_i64..100_000_000], at)
        .prop_map(|(offset, at)| Time { offset, at })
}

fn selector() -> impl Strategy<Value = Selector> {
    let matcher = prop_oneof![
        ("[a-z]{1,3}", ".{0,4}").prop_map(|(label, value)| (label, MatchOp::Equal, value)),
        (".{0,3}", "\\PC{0,4}").prop_map(|(label, value)| (label, MatchOp::NotEqual, value)),
        ("[a-z]{1,3}", "(a|b){0,1}").prop_map(|(label, value)| (label, MatchOp::Regex, value)),
        ("[a-z]{1,3}", "[a-z]{0,3}").prop_map(|(label, value)| (label, MatchOp::NotRegex, value)),
    ];
    let matcher = matcher.prop_map(|(label, op, value)| Matcher { label, op, value });
    ("[a-z:_][a-z0-9:_]{6,8}", prop::collection::vec(matcher, 0..3), time())
        .prop_map(|(name, matchers, time)| Selector { name: Some(name), matchers, time })
}

/// An expression that may stand beside any operator.
fn enclosed(expr: Expr) -> Expr {
    match expr {
        Expr::Binary(_) | Expr::Unary(..) => Expr::Paren(Box::new(expr)),
        Expr::Number(value) if value.is_sign_negative() => Expr::Paren(Box::new(expr)),
        expr => expr,
    }
}

fn number() -> impl Strategy<Value = Expr> {
    prop_oneof![any::<f64>(), (-9_i32..9).prop_map(f64::from)]
        .prop_filter("equal to itself", |value| !value.is_nan())
        .prop_map(Expr::Number)
}

fn binary((op, left, right): (BinaryOp, Expr, Expr), more: Modifiers) -> Expr {
    let (returns_bool, matching, group) = more;
    let (left, right) = (enclosed(left), enclosed(right));
    let vectors = [&left, &right].map(|side| side.value_type() == ValueType::Vector);
    let op = if vectors != [true, true] && op.is_for_sets() { BinaryOp::Add } else { op };
    let matching = matching.filter(|_| vectors == [true, true]);
    let grouped = matching.is_some() && !op.is_for_sets();
    let shared = |taken: &[String]| match &matching {
        Some(Labels::Only(on)) => taken.iter().any(|label| on.contains(label)),
        _ => false,
    };
    let group = group.filter(|group| {
        let (Group::Left(taken) | Group::Right(taken)) = group;
        grouped && !shared(taken)
    });
    let returns_bool = op.compares() && (returns_bool || vectors == [false, false]);
    Expr::Binary(Box::new(Binary { op, left, right, returns_bool, matching, group }))
}

type Modifiers = (bool, Option<Labels>, Option<Group>);

fn modifiers() -> impl Strategy<Value = Modifiers> {
    let matching = prop_oneof![labels().prop_map(Labels::Only), labels().prop_map(Labels::Except)];
    let group = prop_oneof![labels().prop_map(Group::Left), labels().prop_map(Group::Right)];
    (any::<bool>(), prop::option::of(matching), prop::option::of(group))
}

/// Trees of instant vectors that a query can be.
fn vector() -> impl Strategy<Value = Expr> {
    let range = (selector(), 1_i64..10_000_000_000)
        .prop_map(|(selector, range)| call("rate(a[5m])", vec![Expr::Range(selector, range)]));
    let leaf = prop_oneof![selector().prop_map(Expr::Selector), range];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let grouping =
            prop_oneof![labels().prop_map(Labels::Only), labels().prop_map(Labels::Except)];
        let aggregate = (
            prop::sample::select(AggregateOp::ALL),
            inner.clone(),
            (number(), ".{0,5}"),
            prop::option::of(grouping),
        )
            .prop_map(|(op, expr, (number, text), grouping)| {
                let param = match op {
                    AggregateOp::CountValues => Some(Expr::Text(text)),
                    AggregateOp::Topk
                    | AggregateOp::Bottomk
                    | AggregateOp::Quantile
                    | AggregateOp::Limitk
                    | AggregateOp::LimitRatio => Some(number),
                    _ => None,
                };
                Expr::Aggregate(Box::new(Aggregate { op, param, expr, grouping }))
            });
        let subquery =
            (inner.clone(), 1_i64..1_000_000_000, prop::option::of(1_i64..1_000_000), time())
                .prop_map(|(expr, range, step, time)| {
                    let expr = enclosed(expr);
                    let subquery = Expr::Subquery(Box::new(Subquery { expr, range, step, time }));
                    call("max_over_time(a[5m])", vec![subquery])
                });
        let sides = (prop::sample::select(BinaryOp::ALL), inner.clone(), inner.clone());
        let scaled = (prop::sample::select(BinaryOp::ALL), inner.clone(), number());
        prop_oneof![
            (sides, modifiers()).prop_map(|(sides, more)| binary(sides, more)),
            (scaled, modifiers()).prop_map(|(sides, more)| binary(sides, more)),
            aggregate,
            subquery,
            inner.clone().prop_map(|expr| call("abs(a)", vec![expr])),
            (inner.clone(), number())
                .prop_map(|(expr, number)| call("clamp_min(a, 1)", vec![expr, number])),
            inner.clone().prop_map(|expr| Expr::Unary(Sign::Minus, Box::new(enclosed(expr)))),
            inner.prop_map(|expr| Expr::Paren(Box::new(expr))),
        ]
    })
}

proptest! {
    /// A tree that is printed is read as the same tree.
    #[test]
    fn printed_trees_are_read_again(tree in vector()) {
        let text = tree.to_string();
        prop_assert_eq!(read(&text), Ok(tree), "{}", text);
    }

    /// No text makes it panic, and what it takes it takes again once printed.
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![
        ".{0,40}",
        "(a|sum|by|on|offset|rate|group_left|5m|0x1|1e|'x|\"\\\\|#|\n|@|[({\\[\\]})=!~<>+*/^,:.-]| ){0,30}",
    ]) {
        match read(&text) {
            Ok(tree) => {
                let printed = tree.to_string();
                let again = read(&printed).map(|tree| tree.to_string());
                prop_assert_eq!(again, Ok(printed), "{}", text);
            }
            Err(error) => prop_assert!(error.at <= text.chars().count(), "{}: {}", text, error.at),
        }
    }
}
