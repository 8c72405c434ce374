//! Which of the files speak of the same pool.

use std::collections::BTreeMap;

use plimsoll_fleet::Catalog;

use super::draft::{Draft, Gathered, Said, Source, last_part};
use super::names;

/// Joins drafts of one pool. Returns the place in the list that each name of a gateway stands for.
pub(super) fn pools(gathered: &mut Gathered, catalog: &Catalog) -> BTreeMap<String, usize> {
    let drafts = std::mem::take(&mut gathered.pools);
    let mut pools: Vec<Draft> = Vec::new();
    let mut named = BTreeMap::new();
    for wanted in [Source::Manifest, Source::Command, Source::Log, Source::Gateway] {
        for draft in drafts.iter().filter(|draft| draft.source == wanted).cloned() {
            let gateway = (wanted == Source::Gateway).then(|| draft.name.clone());
            let at = same(&pools, &draft, catalog, gathered);
            let at = match at {
                Some(at) => {
                    pools[at].merge(draft, &mut gathered.warnings);
                    at
                }
                None => {
                    pools.push(draft);
                    pools.len() - 1
                }
            };
            if let Some(name) = gateway {
                named.insert(name, at);
            }
        }
    }
    gathered.pools = pools;
    named
}

/// The pool that a draft speaks of, among those that are known.
fn same(
    pools: &[Draft],
    draft: &Draft,
    catalog: &Catalog,
    gathered: &mut Gathered,
) -> Option<usize> {
    let position = |is: &dyn Fn(&Draft) -> bool| pools.iter().position(is);
    match draft.source {
        // Two objects are two pools, even of one model; the same object may be in two files.
        Source::Manifest => position(&|own| own.kind == draft.kind && own.name == draft.name),
        Source::Command => {
            let other =
                |own: &Draft| own.place.file != draft.place.file && same_model(own, draft, catalog);
            let mut found = (0..pools.len()).filter(|at| other(&pools[*at]));
            found.next().filter(|_| found.next().is_none())
        }
        Source::Log => {
            let found: Vec<usize> = match draft.model {
                Some(_) => {
                    (0..pools.len()).filter(|at| same_model(&pools[*at], draft, catalog)).collect()
                }
                None if pools.len() == 1 => vec![0],
                None => Vec::new(),
            };
            if draft.model.is_none() && pools.len() > 1 {
                gathered.warnings.push(format!(
                    "{}: the log does not say its model, so nobody knows which of {} pools wrote it",
                    draft.place.file,
                    pools.len()
                ));
            }
            let best = found.iter().copied().min_by_key(|at| differences(&pools[*at], draft))?;
            if found.len() > 1 {
                gathered.warnings.push(format!(
                    "{}: {} pools serve this model; the log is taken for that of `{}`, which it contradicts least",
                    draft.place.file,
                    found.len(),
                    pools[best].title()
                ));
            }
            Some(best)
        }
        Source::Gateway => {
            let host = draft.host.as_deref().and_then(|host| host.split('.').next());
            let selected = |own: &Draft| {
                let labels = host.and_then(|host| gathered.selectors.get(host));
                labels.is_some_and(|labels| {
                    !labels.is_empty()
                        && labels.iter().all(|(key, value)| own.labels.get(key) == Some(value))
                })
            };
            let asked = draft.served.as_ref().map(|said| said.value.as_str());
            let known = |own: &Draft| own.source != Source::Gateway;
            let called = |own: &Draft| {
                let served = own.served.as_ref().map(|said| said.value.as_str());
                served.is_some() && served == asked
            };
            position(&|own| known(own) && selected(own))
                .or_else(|| position(&|own| known(own) && host.is_some_and(|h| h == own.name)))
                .or_else(|| position(&|own| known(own) && called(own)))
                .or_else(|| position(&|own| known(own) && same_model(own, draft, catalog)))
        }
    }
}

fn differences(own: &Draft, other: &Draft) -> usize {
    let differs = |(key, said): (&&'static str, &Said)| {
        own.keys.get(*key).is_some_and(|mine| mine.value != said.value)
    };
    other.keys.iter().filter(|pair| differs(*pair)).count()
}

/// Whether two drafts serve one model, by whatever name each knows it.
pub(super) fn same_model(one: &Draft, other: &Draft, catalog: &Catalog) -> bool {
    let (Some(a), Some(b)) = (&one.model, &other.model) else { return false };
    let (a, b) = (a.value.as_str(), b.value.as_str());
    if a.eq_ignore_ascii_case(b) || last_part(a).eq_ignore_ascii_case(last_part(b)) {
        return true;
    }
    let of = |raw: &str| {
        let known = names::model(catalog, raw).ok()?;
        Some((catalog.model(&known.write).ok()?.name.clone(), known.weights))
    };
    of(a).zip(of(b)).is_some_and(|(a, b)| a == b)
}

/// Gives pools the limits of their autoscalers. Returns, for each autoscaler, the pool that it moves.
pub(super) fn scalers(gathered: &mut Gathered) -> Vec<Option<usize>> {
    let mut moved = Vec::new();
    for scaler in &gathered.scalers {
        let (kind, name) = (&scaler.target.0, scaler.target.1.as_str());
        let whose = |own: &Draft| {
            own.source >= Source::Manifest
                && (own.name == name || name.strip_suffix("-predictor") == Some(&own.name))
        };
        let at = gathered
            .pools
            .iter()
            .position(|own| own.kind == *kind && whose(own))
            .or_else(|| gathered.pools.iter().position(whose));
        moved.push(at);
        let Some(at) = at else {
            gathered.passed_over.push(format!(
                "{} moves {kind} `{name}`, which is in none of these files",
                scaler.place
            ));
            continue;
        };
        let (Some(least), Some(most)) = (&scaler.least, &scaler.most) else {
            gathered
                .warnings
                .push(format!("{} does not say how many replicas at most", scaler.place));
            continue;
        };
        if least.value > most.value {
            gathered.warnings.push(format!(
                "{} is more than {}; neither is taken over",
                least.place, most.place
            ));
            continue;
        }
        let range = (least.value, most.value);
        gathered.pools[at].range = Some(Said::new(range, &most.place));
    }
    moved
}
