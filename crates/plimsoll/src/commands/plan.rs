//! `plan`: how many replicas of what, with which reserve, where, behind which limits.

pub(super) mod candidates;

use std::io::Write;
use std::path::Path;

use plimsoll_fleet::Catalog;
use plimsoll_perf::constants;
use plimsoll_report::{PlanDocument, changes, plan_json, plan_text};
use plimsoll_scenario::sections::{
    Line, LineResource, Pool, PriceMode, Provider, Scenario, Survive,
};
use plimsoll_scenario::{
    Diagnostic, Loaded, Offer, Origin, class_targets, offers, startup_kept_p90, startup_p90,
};
use plimsoll_sim::HandOver;
use plimsoll_study::{
    Assumption, Autoscaler, Bands, Candidate, Caps, ClassLabels, Fit, MeasuredLine, Parallelism,
    PlaceFacts, Placed, Plan, PlanInput, PoolFacts, PoolRouting, PriceFacts, ReserveAsked,
    RowVerdict, SimulatedPool, TokenPrices, UnitOfLoss, expected, plan, pool_routing,
};
use serde_json::{Value, json};

use self::candidates::{apart_of, candidate, candidates_of};
use super::simulate::Stop;
use super::{assumption, either, fit, fleet, planned, tell, today};
use crate::args::{Global, PlanArgs, PlanHorizon};
use crate::failure::Failure;
use crate::{files, heading};

/// The plan, and whether it can be had.
pub(super) fn answer(
    args: &PlanArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<(String, bool), Failure> {
    let loaded = planned(&args.file, global)?;
    let stop = Stop::new(args.time_limit.get(), global);
    // What cannot be read is said before seconds are spent.
    let other = args.against.as_ref().map(|path| other_plan(path)).transpose()?;
    let gathered = Gathered::new(&loaded, &args.file, global)?;
    let mut result = gathered.plan(&loaded, args.horizon, global, &|| stop.go_on())?;
    result.notes.extend(stop.notes());
    tell(global, err, &format!("planned in {:.2} s", stop.seconds()));
    let study = &loaded.scenario.study;
    let day = today(global, &loaded);
    let assumptions: Vec<Assumption> =
        loaded.entries.iter().filter_map(|entry| assumption(entry, day)).collect();
    let from = if loaded.outlook.is_some() { "ledger" } else { "scenario" };
    let expected = expected(
        &gathered.demand.classes,
        &gathered.median.classes,
        study.demand_quantile.get(),
        from,
        gathered.demand.start.to_string(),
    );
    let as_of = today(global, &loaded).to_string();
    let seed = fleet::seed(&loaded, global).get();
    let scenario_hash = fingerprint(loaded.source.text());
    // Whatever it was made from, another plan has another name.
    let told = json!([result, expected, assumptions, as_of, seed, crate::VERSION]).to_string();
    let id = fingerprint(&told);
    let name = args.file.display().to_string();
    let mut document = PlanDocument {
        name: &study.name,
        file: &name,
        id: &id,
        scenario_hash: &scenario_hash,
        as_of: &as_of,
        seed,
        attainment: study.attainment.get(),
        window_s: study.window.get(),
        plan: &result,
        expected: &expected,
        assumptions: &assumptions,
        against: None,
        why: args.why,
    };
    let changed = other.map(|other| changes(&other, &plan_json(&document, crate::VERSION)));
    document.against = changed.as_deref();
    if let Some(path) = &args.out {
        let text = format!("{:#}\n", plan_json(&document, crate::VERSION));
        files::write_whole(path, &text)?;
    }
    let text =
        either(global, || plan_json(&document, crate::VERSION), || plan_text(&document, heading()));
    let over = result.table.shared.iter().any(|row| row.verdict == RowVerdict::OverCap);
    Ok((text, result.feasible && !(args.gate && over)))
}

/// A plan made before.
fn other_plan(path: &Path) -> Result<Value, Failure> {
    let name = path.display().to_string();
    let about = |message: String| {
        Failure::one(
            Diagnostic::about("bad-plan", name.clone(), message)
                .help("give a file that `plimsoll plan FILE --out plan.json` wrote"),
        )
    };
    let document: Value = serde_json::from_str(&files::read_text(path)?)
        .map_err(|error| about(format!("is not JSON: {error}")))?;
    match document.get("schema").and_then(Value::as_str) {
        Some("plimsoll/plan/v1" | "plimsoll/plan/v2") => Ok(document),
        Some(other) => Err(about(format!("is a `{other}`, and no plan"))),
        None => Err(about("says no schema".to_owned())),
    }
}

/// Sixteen digits that differ where texts do.
pub(super) fn fingerprint(text: &str) -> String {
    format!("{:016x}", twox_hash::XxHash3_128::oneshot(text.as_bytes()) >> 64)
}

fn failed(loaded: &Loaded, error: &dyn std::fmt::Display) -> Failure {
    Failure::one(Diagnostic::about("no-plan", loaded.source.name(), error.to_string()))
}

/// Hours of a month and of a week: the dearest month after an event begins may begin on any day.
const MONTH_HOURS: usize = 730 + 168;

/// What a plan is made from, as far as files say it.
pub(super) struct Gathered {
    pub(super) demand: plimsoll_scenario::Demand,
    median: plimsoll_scenario::Demand,
    /// The demand at the planned quantile and at the median for a month after the last event begins.
    month: Option<[Vec<plimsoll_workload::Class>; 2]>,
    pools: Vec<(usize, SimulatedPool)>,
    facts: Vec<PoolFacts>,
    places: Vec<PlaceFacts>,
    candidates: Vec<Candidate>,
    /// How each pool would hand over, were its prompts read elsewhere.
    apart: Vec<Option<HandOver>>,
    notes: Vec<String>,
}

impl Gathered {
    pub(super) fn new(loaded: &Loaded, file: &Path, global: &Global) -> Result<Self, Failure> {
        let day = today(global, loaded);
        let demand = loaded.demand(day).map_err(Failure::one)?;
        let median = loaded.demand_at(day, 0.5).map_err(Failure::one)?;
        let beyond =
            |level: f64| loaded.demand_beyond(day, level, MONTH_HOURS).map_err(Failure::one);
        let planned = beyond(loaded.scenario.study.demand_quantile.get())?;
        let month =
            planned.zip(beyond(0.5)?).map(|(planned, median)| [planned.classes, median.classes]);
        let (pools, notes) = fleet::pools(loaded, file, None, global)?;
        let none = loaded.scenario.pool.is_empty();
        let budgets = if none { Vec::new() } else { fit::pools(loaded, global)? };
        let rows = constants(&loaded.catalog);
        let (mut facts, mut places) = (Vec::new(), Vec::new());
        let (mut candidates, mut apart) = (Vec::new(), Vec::new());
        let add = |places: &mut Vec<PlaceFacts>, own: Vec<PlaceFacts>| {
            for place in own {
                let known = |other: &PlaceFacts| {
                    let modes = |place: &PlaceFacts| -> Vec<String> {
                        place.prices.iter().map(|price| price.mode.clone()).collect()
                    };
                    (other.region, &other.accelerator, &other.instance, modes(other))
                        == (place.region, &place.accelerator, &place.instance, modes(&place))
                };
                if !places.iter().any(known) {
                    places.push(place);
                }
            }
        };
        for (i, simulated) in &pools {
            let pool = &loaded.scenario.pool[*i];
            let (_, bands, _) = fleet::simulated(loaded, file, pool, &budgets[*i], &rows)?;
            let own = places_of(loaded, pool, &simulated.life.regions);
            facts.push(facts_of(loaded, pool, simulated, &budgets[*i], &bands, &own));
            add(&mut places, own);
            for other in candidates_of(loaded, pool) {
                let at = facts.len() - 1;
                let (candidate, own) =
                    candidate(loaded, file, at, (&facts[at], simulated), other, &rows)?;
                add(&mut places, own);
                candidates.push(candidate);
            }
            apart.push(apart_of(loaded, pool));
        }
        Ok(Self { demand, median, month, pools, facts, places, candidates, apart, notes })
    }

    fn plan(
        &self,
        loaded: &Loaded,
        horizon: PlanHorizon,
        global: &Global,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Plan, Failure> {
        let (mut result, notes) = self.ask(loaded, horizon, global, |input, notes| {
            Ok((plan(input, go_on).map_err(|e| failed(loaded, &e))?, notes))
        })?;
        result.notes.extend(notes);
        if loaded.scenario.budget.as_ref().is_some_and(|budget| budget.per_success.is_some()) {
            let note = "what one success costs is not in a plan: `plimsoll cost` holds it against `budget.per_success`";
            result.notes.push(note.to_owned());
        }
        Ok(result)
    }

    /// Asks something of all that a plan is made from; with it comes what the reader should know.
    pub(super) fn ask<R>(
        &self,
        loaded: &Loaded,
        horizon: PlanHorizon,
        global: &Global,
        question: impl FnOnce(PlanInput<'_>, Vec<String>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.asked(loaded)?;
        let routing = self.routing(loaded, global);
        let counted = super::counted(
            loaded,
            &self.demand,
            routing,
            loaded.scenario.study.runs.get_u32(),
            global,
        )?;
        self.ask_of(loaded, horizon, global, &counted, question)
    }

    /// What of each class comes to each pool.
    pub(super) fn routing(&self, loaded: &Loaded, global: &Global) -> Vec<PoolRouting> {
        let span = fleet::one_hour(0, false, 60.0, 600.0);
        let pools = (self.pools.clone(), Vec::new());
        pool_routing(&fleet::input(loaded, &self.demand, pools, true, &span, global).0)
    }

    /// Whether anybody asks for anything.
    fn asked(&self, loaded: &Loaded) -> Result<(), Failure> {
        if self
            .demand
            .classes
            .iter()
            .all(|c| c.hours.iter().all(|h| h.rate * h.changed(true).rate <= 0.0))
        {
            let message =
                "nobody asks for anything within the horizon, so there is nothing to plan";
            return Err(Failure::one(
                Diagnostic::about("no-demand", loaded.source.name(), message)
                    .help("give a class a `rate` above 0"),
            ));
        }
        Ok(())
    }

    /// The same where the demand of the busiest hours has been counted.
    pub(super) fn ask_of<R>(
        &self,
        loaded: &Loaded,
        horizon: PlanHorizon,
        global: &Global,
        counted: &plimsoll_study::Demand,
        question: impl FnOnce(PlanInput<'_>, Vec<String>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let scenario = &loaded.scenario;
        let baseline_hour = counted.baseline_hour.index;
        let launch_hour = counted.launch_hour.map(|hour| hour.index);
        let span = fleet::one_hour(
            launch_hour.unwrap_or(baseline_hour),
            launch_hour.is_some(),
            60.0,
            600.0,
        );
        let of = |demand| {
            let pools = (self.pools.clone(), Vec::new());
            fleet::input(loaded, demand, pools, true, &span, global)
        };
        let (fleet, notes) = of(&self.demand);
        let targets = class_targets(scenario, &fleet.classes);
        let labels: Vec<(String, ClassLabels)> = fleet
            .classes
            .iter()
            .map(|simulated| {
                let own = scenario.class.iter().find(|c| c.name.as_str() == simulated.class.name);
                let tier = own.map_or_else(String::new, |class| class.tier.to_string());
                let labels = own.map_or_else(ClassLabels::default, |class| ClassLabels {
                    tenant: class.tenant.clone(),
                    feature: class.feature.clone(),
                });
                (tier, labels)
            })
            .collect();
        let label = |hour: usize| self.demand.hour_label(hour);
        let before = |hour: usize, hours: f64| self.demand.label_before(hour, hours as i64);
        let lost = |peak: &plimsoll_study::SimulateInput| super::curve::lost(scenario, peak);
        let caps = scenario.budget.as_ref();
        let usd = |micros: i64| micros as f64 / 1e6;
        let as_of = today(global, loaded).to_zoned(jiff::tz::TimeZone::UTC);
        let until = as_of.map_or(0.0, |now| {
            self.demand.start.duration_since(now.timestamp()).as_secs_f64() / 3600.0
        });
        let input = PlanInput {
            targets,
            median: of(&self.median).0.classes,
            demand_quantile: scenario.study.demand_quantile.get(),
            demand: counted,
            classes: &self.demand.classes,
            month: self.month.clone(),
            baseline_hour,
            launch_hour,
            pools: self.facts.clone(),
            places: self.places.clone(),
            candidates: self.candidates.clone(),
            apart: self.apart.clone(),
            lines: lines(scenario),
            tiers: labels.iter().map(|(tier, _)| tier.clone()).collect(),
            labels: labels.into_iter().map(|(_, labels)| labels).collect(),
            autoscaler: autoscaler(scenario),
            every_hour: horizon == PlanHorizon::Full,
            reserve: reserve(loaded, |_| true),
            reserve_if_tiny: reserve(loaded, |path| {
                loaded.entries.iter().any(|entry| {
                    entry.path == path && !matches!(entry.origin, Origin::Default { .. })
                })
            }),
            spot_share_most: scenario.study.reserve.spot.get(),
            caps: Caps {
                monthly_usd: caps.and_then(|caps| caps.monthly).map(|usd_| usd(usd_.get_micros())),
                hourly_usd: caps
                    .and_then(|caps| caps.hourly)
                    .map(|usd| usd.get_picos() as f64 / 1e12),
                warn_at: caps.map_or(1.0, |caps| caps.warn_at.get()),
            },
            token_prices: scenario
                .provider
                .iter()
                .map(|p| token_prices(&loaded.catalog, p))
                .collect(),
            lost: &lost,
            hours_until_start: until,
            label: &label,
            before: &before,
            fleet,
        };
        // What a simulation of today's fleet leaves to a plan is here.
        let of_today = |note: &String| {
            !note.contains("no plan has set it") && !note.starts_with("quotas leave pool")
        };
        let said = self.demand.notes.iter().chain(&self.notes).cloned().chain(notes);
        question(input, said.filter(of_today).collect())
    }
}

/// What pools were measured to carry.
fn lines(scenario: &Scenario) -> Vec<MeasuredLine> {
    let of = |line: &Line| {
        let pool =
            scenario.pool.iter().position(|pool| pool.name.as_str() == line.pool.as_str())?;
        let as_of = line.as_of.map_or(String::new(), |day| format!(", {}", day.date()));
        Some(MeasuredLine {
            pool,
            resource: match line.resource {
                LineResource::Requests => "requests",
                LineResource::FreshPromptTokens => "fresh_prompt_tokens",
                LineResource::OutputTokens => "output_tokens",
                LineResource::ActiveKvTokens => "active_kv_tokens",
            },
            carries: line.carries.get(),
            replicas: line.replicas.get_u32(),
            source: format!("{}{as_of}", line.source),
        })
    };
    scenario.line.iter().filter_map(of).collect()
}

/// What is asked to be kept in reserve, as far as a key counts.
pub(super) fn reserve(loaded: &Loaded, counts: impl Fn(&str) -> bool) -> ReserveAsked {
    let study = &loaded.scenario.study;
    let n = study.reliability.count.get_u32();
    let whole = |path: &str, n: u32| if counts(path) { n } else { 0 };
    ReserveAsked {
        lost: match study.reliability.survive {
            _ if n == 0 || !counts("study.reliability.survive") => UnitOfLoss::Nothing,
            Survive::Nothing => UnitOfLoss::Nothing,
            Survive::Replica => UnitOfLoss::Replicas(n),
            Survive::Node => UnitOfLoss::Nodes(n),
            Survive::Zone => UnitOfLoss::Zones(n),
            Survive::Region => UnitOfLoss::Region,
        },
        rollout: whole("study.reserve.rollout", study.reserve.rollout.get_u32()),
        canary: whole("study.reserve.canary", study.reserve.canary.get_u32()),
        maintenance_nodes: whole("study.reserve.maintenance", study.reserve.maintenance.get_u32()),
        cold_cache: if counts("study.reserve.cold_cache") {
            study.reserve.cold_cache.get()
        } else {
            0.0
        },
    }
}

/// How a pool may be paid.
fn modes_of(pool: &Pool) -> Vec<PriceMode> {
    let mut modes = vec![pool.price_mode];
    modes.extend(pool.candidates.iter().flat_map(|c| c.price_modes.iter().copied()));
    modes.dedup();
    modes
}

/// What may be had of a pool's device in each of its regions.
pub(super) fn places_of(loaded: &Loaded, pool: &Pool, regions: &[usize]) -> Vec<PlaceFacts> {
    let (scenario, catalog) = (&loaded.scenario, &loaded.catalog);
    let device = catalog.accelerator(pool.accelerator.as_str());
    let device = device.map_or(pool.accelerator.as_str(), |a| a.name.as_str());
    let instance = pool.instance.as_ref().map(|i| i.as_str());
    regions
        .iter()
        .map(|at| {
            let region = scenario.region.get(*at);
            let offers = offers(scenario, catalog, device, instance, region);
            let modes = modes_of(pool);
            let own: Vec<&Offer> = offers.iter().filter(|o| modes.contains(&o.mode)).collect();
            let quota = region.into_iter().flat_map(|r| &r.accelerators).find(|own| {
                let name = catalog.accelerator(own.accelerator.as_str());
                name.map_or(own.accelerator.as_str(), |a| a.name.as_str()) == device
            });
            let named = instance.and_then(|i| catalog.instance(i).ok()).map(|i| u64::from(i.count));
            let node = own.first().map(|o| u64::from(o.devices)).or(named).unwrap_or(NODE_DEVICES);
            PlaceFacts {
                region: *at,
                accelerator: device.to_owned(),
                node_devices: node,
                instance: own
                    .first()
                    .and_then(|o| o.instance.clone())
                    .or(instance.map(str::to_owned)),
                quota_devices: quota.map(|q| q.quota.get()),
                free_devices: quota.and_then(|q| q.available).map(|n| n.get()),
                lead_time_s: quota.map_or(0.0, |q| q.lead_time.get()),
                // Nodes of one place are of one kind.
                prices: own
                    .iter()
                    .filter(|o| u64::from(o.devices) == node)
                    .map(|o| PriceFacts {
                        mode: o.mode.to_string(),
                        node_hour: o.node_hour,
                        source: o.source.clone(),
                        as_of: o.as_of.clone(),
                    })
                    .collect(),
            }
        })
        .collect()
}

/// What the tokens of a provider cost: its own prices, or the catalogue's.
fn token_prices(catalog: &Catalog, provider: &Provider) -> Option<TokenPrices> {
    let listed = catalog
        .token_prices
        .iter()
        .find(|p| p.provider.eq_ignore_ascii_case(&provider.provider) && p.model == provider.model);
    let usd = |price: plimsoll_units::UsdPerToken| price.get_picos() as f64 / 1e12;
    let input = provider.input.or(listed.map(|p| p.input)).map(usd)?;
    let output = provider.output.or(listed.map(|p| p.output)).map(usd)?;
    let cached = provider.cached_input.or(listed.and_then(|p| p.cached_input)).map(usd);
    Some(TokenPrices { input, cached: cached.unwrap_or(input), output })
}

/// The longest context that a pool's model takes.
fn context_max(loaded: &Loaded, pool: &Pool) -> Option<u64> {
    let named = pool.model.as_ref().and_then(|m| loaded.catalog.model(m.as_str()).ok());
    let own = loaded.architectures.get(pool.name.as_str());
    let model = own.or(named.map(|model| &model.architecture))?;
    model.context_max.map(|tokens| tokens.get())
}

/// The autoscaler of the scenario, or what Kubernetes does by itself.
fn autoscaler(scenario: &Scenario) -> Autoscaler {
    let own = scenario.autoscaling.as_ref();
    Autoscaler {
        sync_period_s: own.map_or(15.0, |own| own.period.get()),
        scrape_delay_s: own.map_or(15.0, |own| own.scrape_delay.get()),
        tolerance: own.map_or(0.1, |own| own.tolerance.get()),
    }
}

/// Devices of a node where nothing says it: those of most servers.
const NODE_DEVICES: u64 = 8;

pub(super) fn facts_of(
    loaded: &Loaded,
    pool: &Pool,
    simulated: &SimulatedPool,
    budget: &Fit,
    bands: &Bands,
    places: &[PlaceFacts],
) -> PoolFacts {
    let (fewest, most) = pool.replicas.plan();
    let whole = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let accelerator = loaded.catalog.accelerator(pool.accelerator.as_str());
    let name = |named: Option<&str>, file: &Option<String>| {
        named.map_or_else(|| file.clone().unwrap_or_default(), str::to_owned)
    };
    let node_devices = places.first().map_or(NODE_DEVICES, |place| place.node_devices);
    // Where it is in several regions, what it costs in them on average.
    let mode = pool.price_mode.to_string();
    let prices = places.iter().map(|place| {
        let price = place.prices.iter().find(|price| price.mode == mode)?;
        Some(price.node_hour.get_picos() as f64 / 1e12)
    });
    let prices: Option<Vec<f64>> = prices.collect();
    let node_usd = prices.filter(|p| !p.is_empty()).map(|p| p.iter().sum::<f64>() / p.len() as f64);
    PoolFacts {
        model: name(pool.model.as_ref().map(|m| m.as_str()), &pool.hf_config),
        accelerator: accelerator
            .map_or_else(|_| pool.accelerator.as_str().to_owned(), |a| a.name.clone()),
        engine: pool.engine.as_str().to_owned(),
        weights: pool.weights.map_or_else(|| "as published".to_owned(), |w| w.to_string()),
        parallelism: Parallelism {
            tensor: pool.tensor_parallel.get(),
            pipeline: pool.pipeline_parallel.get(),
            expert: pool.expert_parallel.get(),
            data: pool.data_parallel.get(),
            context: pool.context_parallel.get(),
            devices: budget.devices,
        },
        now: whole(pool.replicas.now()),
        fewest: whole(fewest),
        most: whole(most),
        startup_p90_s: startup_p90(pool),
        startup_cached_p90_s: startup_kept_p90(pool),
        placed: Placed {
            per_node: simulated.life.per_node,
            zones: simulated.life.zones,
            regions: whole(simulated.life.regions.len() as u64),
        },
        regions: simulated.life.regions.clone(),
        node_devices: whole(node_devices),
        model_context_tokens: context_max(loaded, pool),
        band_pct: Some(bands.peak.median_abs_pct),
        price_modes: modes_of(pool).iter().map(ToString::to_string).collect(),
        owned: pool.price_mode == PriceMode::Owned,
        node_usd_per_hour: node_usd,
        replica_usd_per_hour: node_usd.map(|usd| usd / node_devices as f64 * budget.devices as f64),
    }
}
