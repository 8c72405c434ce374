//! What must hold between pools, routes, autoscaling and incidents.

use plimsoll_fleet::Catalog;

use crate::diagnostic::Diagnostic;
use crate::read::Reader;
use crate::sections::{
    Autoscaling, Class, Domain, IncidentKind, Pool, Region, Role, Route, Scenario, Survive,
};
use crate::values::AcceleratorName;

/// Everything that no table can see alone. What could not be read has been reported, and nothing is concluded from its
/// absence.
pub(super) fn fleet_holds_together(scenario: &Scenario, reader: &mut Reader<'_>) {
    if !["class", "pool", "provider", "route"].iter().all(|list| reader.is_complete(list)) {
        return;
    }
    routes_lead_somewhere(scenario, reader);
    someone_serves(scenario, reader);
    domains_fit(scenario, reader);
    autoscaling_has_room(scenario, reader);
    incidents_fit(scenario, reader);
    if reader.is_complete("region") {
        quotas_hold(scenario, reader);
        ways_lead_there(scenario, reader);
    }
}

/// Whether two names are of one device, by any of its aliases.
pub(crate) fn same_accelerator(
    catalog: &Catalog,
    one: &AcceleratorName,
    other: &AcceleratorName,
) -> bool {
    let of = |name: &AcceleratorName| catalog.accelerator(name.as_str()).ok().map(|a| &a.name);
    of(one).zip(of(other)).map_or(one.as_str() == other.as_str(), |(one, other)| one == other)
}

/// The regions that a pool is in: the first where none is named.
fn regions_of<'a>(scenario: &'a Scenario, pool: &Pool) -> Vec<&'a Region> {
    let named =
        |region: &&Region| pool.regions.iter().any(|own| own.as_str() == region.name.as_str());
    match pool.regions.is_empty() {
        true => scenario.region.first().into_iter().collect(),
        false => scenario.region.iter().filter(named).collect(),
    }
}

/// What runs has been allowed. Where one of a pool's regions states no quota of its device, nothing is known.
fn quotas_hold(scenario: &Scenario, reader: &mut Reader<'_>) {
    for pool in &scenario.pool {
        let regions = regions_of(scenario, pool);
        let quotas: Vec<Option<u64>> = regions
            .iter()
            .map(|region| {
                let own = region.accelerators.iter().filter(|own| {
                    same_accelerator(reader.catalog, &own.accelerator, &pool.accelerator)
                });
                own.map(|own| own.quota.get()).reduce(u64::saturating_add)
            })
            .collect();
        let Some(quotas) = quotas.into_iter().collect::<Option<Vec<u64>>>() else { continue };
        let devices = pool.tensor_parallel.get().saturating_mul(pool.pipeline_parallel.get());
        let most: u64 = quotas.iter().map(|quota| quota / devices).sum();
        let now = pool.replicas.now();
        if quotas.is_empty() || now <= most {
            continue;
        }
        let name = pool.name.as_str();
        let allowed = quotas.iter().fold(0, |sum: u64, quota| sum.saturating_add(*quota));
        let there: Vec<&str> = regions.iter().map(|region| region.name.as_str()).collect();
        let wants = now.saturating_mul(devices);
        let message = format!("pool `{name}` runs {now} replicas, and quotas allow {most}");
        let diagnostic = at_pool(reader, pool, "replicas", "contradiction", message)
            .label(format!(
                "{now} replicas of {devices} {}; {} has {allowed}",
                if devices == 1 { "device" } else { "devices" },
                there.join(" and ")
            ))
            .help(format!(
                "write `replicas = {most}`, or `quota = {wants}` under `accelerators` of region `{}`",
                there.first().copied().unwrap_or_default()
            ));
        reader.report(diagnostic);
    }
}

/// From where the users of a class are a way leads to each pool that it goes to first.
fn ways_lead_there(scenario: &Scenario, reader: &mut Reader<'_>) {
    let mut told: Vec<(&str, &str)> = Vec::new();
    for class in &scenario.class {
        let named =
            |r: &&Region| class.region.as_ref().is_some_and(|c| c.as_str() == r.name.as_str());
        let Some(home) = scenario.region.iter().find(named).or(scenario.region.first()) else {
            continue;
        };
        let bound = class.tenant.as_ref().and_then(|tenant| {
            scenario.region.iter().find(|region| region.residency.contains(tenant))
        });
        for target in first_targets(scenario, class) {
            let Some(pool) = scenario.pool.iter().find(|p| p.name.as_str() == target) else {
                continue;
            };
            let there: Vec<&str> =
                regions_of(scenario, pool).iter().map(|r| r.name.as_str()).collect();
            let from = home.name.as_str();
            let reached = |to: &&str| *to == from || home.latency_to.contains_key(*to);
            // What must stay elsewhere is not sent there at all.
            let kept = bound.is_some_and(|own| there.iter().any(|to| *to != own.name.as_str()));
            let Some(to) = there.first().filter(|_| !kept && !there.iter().any(reached)) else {
                continue;
            };
            if told.contains(&(from, to)) {
                continue;
            }
            told.push((from, to));
            let message = format!(
                "no way leads from region `{from}`, where the users of class `{}` are, to region `{to}`, where pool `{target}` is",
                class.name.as_str()
            );
            let diagnostic = reader
                .within("region", |r| {
                    r.within(from, |r| r.at_key("latency_to", "contradiction", message))
                })
                .label(format!("does not name {}", there.join(" or ")))
                .help(format!(
                    "write `latency_to = {{ {to} = \"80ms\" }}` with what a probe measures, or give the pool `regions = [\"{from}\"]`"
                ));
            reader.report(diagnostic);
        }
    }
}

/// Where a class goes before anything is wrong.
fn first_targets<'a>(scenario: &'a Scenario, class: &'a Class) -> Vec<&'a str> {
    let concerns = |route: &&Route| {
        let named = route.class.iter().any(|c| c.as_str() == class.name.as_str());
        route.share.get() > 0.0 && (route.class.is_empty() || named)
    };
    let mut targets: Vec<&str> =
        scenario.route.iter().filter(concerns).map(|route| route.to.as_str()).collect();
    if scenario.route.is_empty() {
        let pool = scenario.pool.first().map(|pool| pool.name.as_str());
        targets.extend(pool);
    }
    targets.extend(class.stages.iter().filter_map(|s| s.route.as_ref()).map(|t| t.as_str()));
    targets.extend(class.variants.iter().filter_map(|v| v.route.as_ref()).map(|t| t.as_str()));
    targets
}

/// A mistake at a key of a pool.
fn at_pool(
    reader: &mut Reader<'_>,
    pool: &Pool,
    key: &str,
    code: &'static str,
    message: String,
) -> Diagnostic {
    reader.within("pool", |r| r.within(pool.name.as_str(), |r| r.at_key(key, code, message)))
}

/// The most replicas that a pool may have: what runs, or what its written `plan` allows where something may add to it.
fn replicas_most(scenario: &Scenario, pool: &Pool, reader: &mut Reader<'_>) -> u64 {
    let (now, (_, most)) = (pool.replicas.now(), pool.replicas.plan());
    let planned = has_plan(pool, reader);
    let moved = scenario.autoscaling.as_ref().is_some_and(|a| moves(a, pool));
    if planned || moved || now == 0 { now.max(most) } else { now }
}

fn has_plan(pool: &Pool, reader: &mut Reader<'_>) -> bool {
    reader.within("pool", |r| r.within(pool.name.as_str(), |r| r.wrote("replicas.plan")))
}

/// Whether autoscaling changes a pool's replicas.
fn moves(autoscaling: &Autoscaling, pool: &Pool) -> bool {
    let (fewest, most) = pool.replicas.plan();
    let named = autoscaling.pools.iter().any(|name| name.as_str() == pool.name.as_str());
    fewest < most && (autoscaling.pools.is_empty() || named)
}

/// A request needs a pool that reads prompts, and may not come back to where it failed.
fn routes_lead_somewhere(scenario: &Scenario, reader: &mut Reader<'_>) {
    let pool_of = |name: &str| scenario.pool.iter().find(|pool| pool.name.as_str() == name);
    for (i, route) in scenario.route.iter().enumerate() {
        let shift = route.shift.iter().map(|shift| ("shift", &shift.to));
        let fallback = route.fallback.iter().map(|target| ("fallback", target));
        for (key, target) in [("to", &route.to)].into_iter().chain(fallback).chain(shift) {
            let Some(pool) = pool_of(target.as_str()) else { continue };
            let name = pool.name.as_str();
            let decode = pool.disaggregation.as_ref().map(|d| d.decode.as_str());
            let (message, label, help) = if pool.role == Role::Decode {
                let prefill = scenario
                    .pool
                    .iter()
                    .find(|p| p.disaggregation.as_ref().is_some_and(|d| d.decode.as_str() == name));
                let help = match prefill {
                    Some(prefill) => {
                        format!("name `{}`, which hands its KV to `{name}`", prefill.name.as_str())
                    }
                    None => format!("take `role = \"decode\"` out of pool `{name}`"),
                };
                (
                    format!("pool `{name}` only decodes, so no request can go there"),
                    "reads no prompts".to_owned(),
                    help,
                )
            } else if key != "to" && decode == Some(route.to.as_str()) {
                (
                    format!(
                        "pool `{name}` hands its KV to `{}`, which has just failed",
                        route.to.as_str()
                    ),
                    format!("leads back to `{}`", route.to.as_str()),
                    "name a pool that does not need it, or a provider".to_owned(),
                )
            } else {
                continue;
            };
            let diagnostic = reader
                .within("route", |r| {
                    r.within(i.to_string(), |r| r.at_key(key, "contradiction", message))
                })
                .label(label)
                .help(help);
            reader.report(diagnostic);
        }
    }
}

/// Each class has at least one place to go where something runs, or may come to run.
fn someone_serves(scenario: &Scenario, reader: &mut Reader<'_>) {
    let mut empty: Vec<&str> = Vec::new();
    for pool in &scenario.pool {
        let moved = scenario.autoscaling.as_ref().is_some_and(|a| moves(a, pool));
        if pool.replicas.now() == 0 && !moved && !has_plan(pool, reader) {
            empty.push(pool.name.as_str());
        }
    }
    // A prefill pool serves nothing without the pool that decodes.
    let idle = |name: &str| {
        let pool = scenario.pool.iter().find(|pool| pool.name.as_str() == name)?;
        let decode = pool.disaggregation.as_ref().map(|d| d.decode.as_str());
        [Some(name), decode].into_iter().flatten().find_map(|name| {
            let at = empty.iter().position(|other| *other == name)?;
            Some(empty[at])
        })
    };
    let mut told: Vec<&str> = Vec::new();
    for class in &scenario.class {
        let targets = targets(scenario, class);
        let Some(first) = targets.first().and_then(|target| idle(target)) else { continue };
        if !targets.iter().all(|target| idle(target).is_some()) || told.contains(&first) {
            continue;
        }
        told.push(first);
        let Some(pool) = scenario.pool.iter().find(|pool| pool.name.as_str() == first) else {
            continue;
        };
        let message = format!(
            "class `{}` has nowhere to go: pool `{first}` has 0 replicas, and nothing adds any",
            class.name.as_str()
        );
        let diagnostic = at_pool(reader, pool, "replicas", "nothing-serves", message)
            .label("no `plan`, no `[autoscaling]`, and no other route or fallback that runs")
            .help("write `replicas = 1`, or `replicas = { now = 0, plan = [1, 8] }` to have a plan made");
        reader.report(diagnostic);
    }
}

/// Everywhere that a class may go.
fn targets<'a>(scenario: &'a Scenario, class: &'a Class) -> Vec<&'a str> {
    let concerns = |route: &&Route| {
        route.class.is_empty() || route.class.iter().any(|c| c.as_str() == class.name.as_str())
    };
    let mut targets: Vec<&str> = Vec::new();
    for route in scenario.route.iter().filter(concerns) {
        targets.push(route.to.as_str());
        targets.extend(route.fallback.iter().map(|target| target.as_str()));
        targets.extend(route.shift.iter().map(|shift| shift.to.as_str()));
    }
    if scenario.route.is_empty() {
        let pool = scenario.pool.first().map(|pool| pool.name.as_str());
        targets.extend(pool.or(scenario.provider.first().map(|p| p.name.as_str())));
    }
    targets.extend(class.stages.iter().filter_map(|s| s.route.as_ref()).map(|t| t.as_str()));
    targets.extend(class.variants.iter().filter_map(|v| v.route.as_ref()).map(|t| t.as_str()));
    targets
}

/// Failure domains hold at least one replica each, and not all of them may be given up.
fn domains_fit(scenario: &Scenario, reader: &mut Reader<'_>) {
    let reliability = &scenario.study.reliability;
    let asked = reader.within("study", |r| r.within("reliability", |r| r.wrote("survive")));
    for pool in &scenario.pool {
        let Some(domains) = pool.domains else { continue };
        let (name, domains) = (pool.name.as_str(), domains.get());
        let most = replicas_most(scenario, pool, reader);
        if domains > most {
            let message = format!(
                "pool `{name}` has {most} replicas, which cannot fill {domains} failure domains"
            );
            let diagnostic = at_pool(reader, pool, "domains", "contradiction", message)
                .label(format!("more than its {most} replicas"))
                .help(format!("write `domains = {most}`, or `replicas = {domains}`"));
            reader.report(diagnostic);
            continue;
        }
        let same = matches!(
            (pool.failure_domain, reliability.survive),
            (Domain::Replica, Survive::Replica)
                | (Domain::Node, Survive::Node)
                | (Domain::Zone, Survive::Zone)
        );
        let (lost, what) = (reliability.count.get(), reliability.survive);
        let alone = scenario.pool.len() == 1 && scenario.provider.is_empty();
        if asked && same && alone && lost >= domains {
            let message =
                format!("losing {lost} of the {domains} {what}s of pool `{name}` leaves nothing");
            let diagnostic = at_pool(reader, pool, "domains", "contradiction", message)
                .label(format!(
                    "`study.reliability` asks to survive {lost}, and nothing else serves"
                ))
                .help(format!(
                    "write `domains = {}`, or `survive = \"nothing\"` under `[study.reliability]`",
                    lost + 1
                ));
            reader.report(diagnostic);
        }
    }
}

/// A pool that is to be moved has somewhere to move.
fn autoscaling_has_room(scenario: &Scenario, reader: &mut Reader<'_>) {
    let Some(autoscaling) = &scenario.autoscaling else { return };
    for named in &autoscaling.pools {
        let Some(pool) = scenario.pool.iter().find(|p| p.name.as_str() == named.as_str()) else {
            continue;
        };
        let (fewest, most) = pool.replicas.plan();
        if fewest < most {
            continue;
        }
        let name = pool.name.as_str();
        let message = format!("pool `{name}` has {most} replicas at least and at most");
        let diagnostic = reader
            .within("autoscaling", |r| r.at_key("pools", "contradiction", message))
            .label("nothing to move")
            .help(format!(
                "give pool `{name}` a wider `plan`, such as `plan = [{fewest}, {}]`",
                most * 2
            ));
        reader.report(diagnostic);
    }
}

/// What is lost must have been there.
fn incidents_fit(scenario: &Scenario, reader: &mut Reader<'_>) {
    for incident in &scenario.incident {
        let hit: Vec<&Pool> = scenario
            .pool
            .iter()
            .filter(|p| incident.pool.as_ref().is_none_or(|name| name.as_str() == p.name.as_str()))
            .collect();
        let name = incident.name.as_str();
        let what = match incident.kind {
            IncidentKind::ReplicaLoss | IncidentKind::Reclaim => "replicas",
            IncidentKind::NodeLoss => "nodes",
            IncidentKind::ZoneLoss => "zones",
            _ => continue,
        };
        let mut most = 0;
        for pool in &hit {
            most = most.max(units_most(scenario, pool, incident.kind, reader));
        }
        let count = incident.count.get();
        if count > most && !hit.is_empty() {
            let whose = match hit.as_slice() {
                [pool] => format!("pool `{}` has", pool.name.as_str()),
                _ => "the largest pool has".to_owned(),
            };
            let message =
                format!("incident `{name}` takes {count} {what}, and {whose} {most} at most");
            let diagnostic = reader
                .within("incident", |r| {
                    r.within(name, |r| r.at_key("count", "contradiction", message))
                })
                .label(format!("more than {most}"))
                .help(format!("write `count = {}`", most.max(1)));
            reader.report(diagnostic);
        }
        let (Some(region), [pool]) = (&incident.region, hit.as_slice()) else { continue };
        let first = scenario.region.first().map(|region| region.name.as_str());
        let own: Vec<&str> = match pool.regions.as_slice() {
            [] => first.into_iter().collect(),
            regions => regions.iter().map(|region| region.as_str()).collect(),
        };
        if !own.contains(&region.as_str()) {
            let message = format!(
                "pool `{}` has no replica in region `{}`",
                pool.name.as_str(),
                region.as_str()
            );
            let diagnostic = reader
                .within("incident", |r| {
                    r.within(name, |r| r.at_key("region", "contradiction", message))
                })
                .label(format!("it runs in {}", own.join(", ")))
                .help(format!("write `region = \"{}\"`", own.first().copied().unwrap_or_default()));
            reader.report(diagnostic);
        }
    }
}

/// The most replicas, nodes or zones that a pool may fill. A node holds at least one device, and a replica is in one zone.
fn units_most(
    scenario: &Scenario,
    pool: &Pool,
    kind: IncidentKind,
    reader: &mut Reader<'_>,
) -> u64 {
    let replicas = replicas_most(scenario, pool, reader);
    let domains = |kind| {
        let domains = pool.domains.filter(|_| pool.failure_domain == kind)?;
        Some(domains.get())
    };
    match kind {
        IncidentKind::NodeLoss => {
            let devices = pool.tensor_parallel.get()
                * pool.pipeline_parallel.get()
                * pool.data_parallel.get()
                * pool.context_parallel.get();
            domains(Domain::Node).unwrap_or(replicas.saturating_mul(devices))
        }
        // Zones are those of each region.
        IncidentKind::ZoneLoss => domains(Domain::Zone).map_or(replicas, |zones| {
            zones.saturating_mul(pool.regions.len().max(1) as u64).min(replicas)
        }),
        _ => replicas,
    }
}
