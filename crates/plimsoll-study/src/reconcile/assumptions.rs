//! What was assumed against the truth, and by how much the answer moves.

use plimsoll_workload::Quantity;

use super::result::AssumptionCheck;
use super::service::{find, processed_per_request};
use super::{Overlap, Subject, ratio};

/// What is known of a class on either side.
pub(super) struct Values<'a> {
    pub(super) name: Option<&'a str>,
    /// None where all classes together are one.
    pub(super) key: Option<&'a str>,
    /// Requests a second.
    pub(super) rate: Sides,
    pub(super) prompt: Sides,
    pub(super) output: Sides,
    pub(super) cached: Sides,
    /// Processed ones for each request: what a limit refuses is no work.
    pub(super) attempts: Sides,
}

/// A value as it was assumed and as it came.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    pub(super) assumed: Option<f64>,
    pub(super) actual: Option<f64>,
}

impl Sides {
    fn both(self) -> Option<(f64, f64)> {
        self.assumed.zip(self.actual)
    }

    /// What nobody assumed is taken as it came.
    fn taken(self, otherwise: f64) -> f64 {
        self.assumed.or(self.actual).unwrap_or(otherwise)
    }
}

/// What the tokens of a class are the product of.
#[derive(Clone, Copy)]
struct Factors {
    rate: f64,
    prompt: f64,
    output: f64,
    cached: f64,
    attempts: f64,
}

/// Tokens a second that are to be processed.
fn answer(classes: &[Factors]) -> f64 {
    let own = |of: &Factors| of.rate * of.attempts * (of.prompt * (1.0 - of.cached) + of.output);
    classes.iter().map(own).sum()
}

pub(super) fn values<'a>(overlap: &Overlap<'a>, subjects: &[Subject<'a>]) -> Vec<Values<'a>> {
    subjects.iter().map(|subject| of_class(overlap, subject)).collect()
}

fn of_class<'a>(overlap: &Overlap<'a>, subject: &Subject<'a>) -> Values<'a> {
    let key = subject.key;
    let (outlook, actual) = (overlap.input.outlook, overlap.input.actual);
    let requests = Quantity::Requests;
    let said = |of: Quantity| -> ByStep {
        let said = overlap.said(key, of).into_iter();
        said.map(|said| said.map(|said| said.0[0])).collect()
    };
    let came = |of: Quantity| -> ByStep { overlap.came(key, of) };
    let ones = vec![Some(1.0); overlap.steps];
    let (said_requests, came_requests) = (said(requests), came(requests));
    let mut rate = sides((&said_requests, &ones), (&came_requests, &ones));
    // A class that the outlook does not name was assumed not to be there.
    if key.is_some() && outlook.series(key, requests).is_none() {
        rate.assumed = Some(0.0);
    }
    let quotient = |top: Quantity, bottom: Quantity| {
        sides((&said(top), &said(bottom)), (&came(top), &came(bottom)))
    };
    // Where the share is not known, all tokens are taken for fresh, and that is no share that somebody assumed or saw.
    let share = Quantity::CachedShare;
    let fresh = quotient(Quantity::FreshTokens, Quantity::PromptTokens);
    let rest = |fresh: f64| (1.0 - fresh).clamp(0.0, 1.0);
    let cached = Sides {
        assumed: fresh.assumed.filter(|_| outlook.series(key, share).is_some()).map(rest),
        actual: fresh.actual.filter(|_| actual.series(key, share).is_some()).map(rest),
    };
    let attempts = |class: Option<&str>| {
        let of = |services| find(services, class).and_then(processed_per_request);
        of(overlap.input.before).zip(of(overlap.input.after))
    };
    let (assumed, actual) =
        subject.name.and_then(|_| attempts(subject.name)).or(attempts(None)).unzip();
    Values {
        name: subject.name,
        key,
        rate,
        prompt: quotient(Quantity::PromptTokens, requests),
        output: quotient(Quantity::OutputTokens, requests),
        cached,
        attempts: Sides { assumed, actual },
    }
}

/// Something by step; none where it is not known.
type ByStep = Vec<Option<f64>>;

/// Quotients of sums on either side: over the steps that both know, or that the one knows which knows any.
fn sides(said: (&ByStep, &ByStep), came: (&ByStep, &ByStep)) -> Sides {
    let both = |(top, bottom): (&ByStep, &ByStep)| -> Vec<Option<(f64, f64)>> {
        top.iter().zip(bottom).map(|(top, bottom)| top.zip(*bottom)).collect()
    };
    let (said, came) = (both(said), both(came));
    let quotient = |own: &[Option<(f64, f64)>], other: &[Option<(f64, f64)>]| {
        let alone = other.iter().all(Option::is_none);
        let counted = own.iter().zip(other).filter(|(_, other)| alone || other.is_some());
        let known = counted.filter_map(|(own, _)| *own);
        let (top, bottom) = known.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
        ratio(top, bottom)
    };
    Sides { assumed: quotient(&said, &came), actual: quotient(&came, &said) }
}

pub(super) fn checks(
    overlap: &Overlap<'_>,
    values: &[Values<'_>],
    distance: Option<f64>,
) -> Vec<AssumptionCheck> {
    let assumed: Vec<Factors> = values
        .iter()
        .map(|own| Factors {
            rate: own.rate.taken(0.0),
            prompt: own.prompt.taken(0.0),
            output: own.output.taken(0.0),
            cached: own.cached.taken(0.0),
            attempts: own.attempts.taken(1.0),
        })
        .collect();
    let before = answer(&assumed);
    let age_s = overlap.at_s(overlap.steps).saturating_sub(overlap.input.outlook.start_s);
    let check =
        |name: String, class: Option<&str>, (was, is): (f64, f64), unit, put: &[Factors]| {
            AssumptionCheck {
                name,
                class: class.map(str::to_owned),
                assumed: was,
                actual: is,
                unit,
                ratio: ratio(is, was),
                moves: ratio(answer(put), before).map(|times| 100.0 * (times - 1.0)),
                age_s,
            }
        };
    let mut all = Vec::new();
    for (i, own) in values.iter().enumerate() {
        let one = |what: &str, sides: Sides, unit, put: fn(&mut Factors, f64)| {
            let (was, is) = sides.both()?;
            let mut right = assumed.clone();
            put(&mut right[i], is);
            let name = own.name.map_or_else(|| what.to_owned(), |name| format!("{what} of {name}"));
            Some(check(name, own.name, (was, is), unit, &right))
        };
        all.extend(one("rate", own.rate, "requests/s", |of, is| of.rate = is));
        all.extend(one("mean prompt", own.prompt, "tokens", |of, is| of.prompt = is));
        all.extend(one("mean output", own.output, "tokens", |of, is| of.output = is));
        all.extend(one("cached share", own.cached, "share", |of, is| of.cached = is));
    }
    if let Some(distance) = distance.filter(|_| values.len() > 1) {
        let came: f64 = values.iter().filter_map(|own| own.rate.actual).sum();
        let total: f64 = assumed.iter().map(|own| own.rate).sum();
        let right: Option<Vec<Factors>> = values
            .iter()
            .zip(&assumed)
            .map(|(own, of)| {
                let share = ratio(own.rate.actual.unwrap_or(0.0), came)?;
                Some(Factors { rate: total * share, ..*of })
            })
            .collect();
        all.extend(right.map(|right| {
            check("class mix".to_owned(), None, (0.0, distance), "share of requests", &right)
        }));
    }
    let overall = |services| find(services, None).and_then(processed_per_request);
    if let Some(both) = overall(overlap.input.before).zip(overall(overlap.input.after)) {
        let right: Vec<Factors> = values
            .iter()
            .zip(&assumed)
            .map(|(own, of)| Factors {
                attempts: own.attempts.actual.unwrap_or(of.attempts),
                ..*of
            })
            .collect();
        let name = "processed attempts per request".to_owned();
        all.push(check(name, None, both, "attempts/request", &right));
    }
    let far = |check: &AssumptionCheck| check.moves.map_or(-1.0, f64::abs);
    all.sort_by(|a, b| far(b).total_cmp(&far(a)));
    all
}
