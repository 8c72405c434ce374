//! Levers as they were sent, against what they may be.

use serde_json::{Map, Value, json};

use crate::failure::problem;
use crate::{Levers, Problem};

/// A lever: what it is called, from where to where it goes, and where it is kept.
struct Lever {
    name: &'static str,
    low: f64,
    high: f64,
    set: fn(&mut Levers, f64),
}

const LEVERS: [Lever; 7] = [
    Lever { name: "demand", low: 0.05, high: 20.0, set: |l, v| l.demand = v },
    Lever { name: "prompt", low: 0.05, high: 20.0, set: |l, v| l.prompt = v },
    Lever { name: "output", low: 0.05, high: 20.0, set: |l, v| l.output = v },
    Lever { name: "cache_hit", low: 0.0, high: 1.0, set: |l, v| l.cache_hit = v },
    Lever { name: "replicas", low: 0.05, high: 20.0, set: |l, v| l.replicas = v },
    Lever { name: "startup", low: 0.0, high: 20.0, set: |l, v| l.startup = v },
    // Whole and at most 64, so nothing is lost on the way.
    Lever { name: "lost", low: 0.0, high: 64.0, set: |l, v| l.lost = v as u32 },
];

/// Adds to the schemas of levers how far they go and where they are where nobody moves them.
pub(crate) fn bound(schemas: &mut Value) {
    let unmoved = json!(Levers::default());
    for Lever { name, low, high, .. } in LEVERS {
        let schema = &mut schemas[name];
        schema["minimum"] = json!(low);
        schema["maximum"] = json!(high);
        schema["default"] = unmoved[name].clone();
    }
}

/// The levers, or everything that is wrong with them: which one, and how far it goes.
pub(crate) fn read(sent: &Map<String, Value>) -> Result<Levers, Vec<Problem>> {
    let mut levers = Levers::default();
    let mut problems = Vec::new();
    for (key, value) in sent {
        let Some(lever) = LEVERS.iter().find(|lever| lever.name == key) else {
            let known: Vec<&str> = LEVERS.iter().map(|lever| lever.name).collect();
            let mut wrong = problem("unknown-lever", format!("there is no lever `{key}`"));
            wrong.help = Some(format!("levers are {}", known.join(", ")));
            problems.push(wrong);
            continue;
        };
        let whole = lever.name == "lost";
        let fits = value.as_f64().filter(|v| {
            (lever.low..=lever.high).contains(v) && (!whole || v.fract().abs() < f64::EPSILON)
        });
        match fits {
            Some(v) => (lever.set)(&mut levers, v),
            None => {
                let kind = if whole { "a whole number" } else { "a number" };
                problems.push(problem(
                    "lever-range",
                    format!(
                        "`levers.{}` must be {kind} from {} to {}, and is {}",
                        lever.name,
                        lever.low,
                        lever.high,
                        shown(value)
                    ),
                ));
            }
        }
    }
    if problems.is_empty() { Ok(levers) } else { Err(problems) }
}

/// A value as it was sent, or what it is where it is long.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;
    use crate::Levers;

    fn check(sent: serde_json::Value, expect: Result<Levers, Vec<&str>>) {
        let got = read(sent.as_object().unwrap())
            .map_err(|problems| problems.into_iter().map(|p| p.message).collect::<Vec<_>>());
        let expect = expect.map_err(|e| e.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(got, expect, "{sent}");
    }

    #[test]
    fn levers_are_taken_within_their_ranges_and_all_mistakes_are_told_at_once() {
        check(json!({}), Ok(Levers::default()));
        check(
            json!({ "demand": 20, "cache_hit": 0, "lost": 64 }),
            Ok(Levers { demand: 20.0, cache_hit: 0.0, lost: 64, ..Levers::default() }),
        );
        check(
            json!({ "demand": 20.1, "cache_hit": -0.1, "lost": 1.5, "startup": "2", "tide": 1 }),
            Err(vec![
                "`levers.demand` must be a number from 0.05 to 20, and is 20.1",
                "`levers.cache_hit` must be a number from 0 to 1, and is -0.1",
                "`levers.lost` must be a whole number from 0 to 64, and is 1.5",
                "`levers.startup` must be a number from 0 to 20, and is a text",
                "there is no lever `tide`",
            ]),
        );
    }
}
