//! Conditions that a monitor watches, held against what a simulation shows.

use std::collections::BTreeMap;

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Less.
    Below,
    /// Not more.
    AtMost,
    /// More.
    Above,
    /// Not less.
    AtLeast,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A metric against a number.
    Compare(String, Comparison, f64),
    /// Both.
    Both(Box<Condition>, Box<Condition>),
    /// One of them.
    Either(Box<Condition>, Box<Condition>),
    /// Something that a monitor understands and a simulation does not.
    Beyond(String),
}

impl Condition {
    /// Whether it is true of these metrics, with the numbers compared; or why that cannot be told.
    pub(super) fn holds(&self, metrics: &BTreeMap<String, f64>) -> Result<(bool, String), String> {
        match self {
            Self::Compare(metric, how, value) => {
                let Some(seen) = metrics.get(metric) else {
                    return Err(format!("`{metric}` is nothing that a simulation shows"));
                };
                let (holds, sign) = match how {
                    Comparison::Below => (seen < value, "<"),
                    Comparison::AtMost => (seen <= value, "<="),
                    Comparison::Above => (seen > value, ">"),
                    Comparison::AtLeast => (seen >= value, ">="),
                };
                let not = if holds { "" } else { "not " };
                Ok((holds, format!("{metric} is {seen:.4}, {not}{sign} {value}")))
            }
            Self::Both(a, b) => {
                let (a, b) = (a.holds(metrics)?, b.holds(metrics)?);
                Ok((a.0 && b.0, format!("{}; {}", a.1, b.1)))
            }
            Self::Either(a, b) => {
                let (a, b) = (a.holds(metrics)?, b.holds(metrics)?);
                Ok((a.0 || b.0, format!("{}; {}", a.1, b.1)))
            }
            Self::Beyond(what) => Err(format!("{what} is for a monitor to evaluate")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_held_against_numbers() {
        let metrics = BTreeMap::from([("a".to_owned(), 0.5), ("b".to_owned(), 2.0)]);
        let compare = |name: &str, how, value| Condition::Compare(name.to_owned(), how, value);
        let check = |condition: Condition, expect: Result<bool, &str>| {
            let found = condition.holds(&metrics);
            let found = found.as_ref().map(|(holds, _)| *holds).map_err(String::as_str);
            assert_eq!(found, expect, "{condition:?}");
        };
        check(compare("a", Comparison::Below, 0.6), Ok(true));
        check(compare("a", Comparison::Below, 0.5), Ok(false));
        check(compare("a", Comparison::AtMost, 0.5), Ok(true));
        check(compare("b", Comparison::Above, 2.0), Ok(false));
        check(compare("b", Comparison::AtLeast, 2.0), Ok(true));
        let (yes, no) =
            (compare("a", Comparison::Below, 1.0), compare("b", Comparison::Below, 1.0));
        check(Condition::Both(Box::new(yes.clone()), Box::new(no.clone())), Ok(false));
        check(Condition::Either(Box::new(yes), Box::new(no)), Ok(true));
        let unknown = Err("`c` is nothing that a simulation shows");
        check(compare("c", Comparison::Below, 1.0), unknown);
    }
}
