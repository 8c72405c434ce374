//! What serves, and at which price.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use plimsoll_cost::{
    Expense, Place, PriceRow, PriceTag, Pricing, ProviderLimits, TokenTable, Usage, Work,
};
use plimsoll_fleet::{Catalog, TokenPrice};
use plimsoll_ledger::PlaceRule;
use plimsoll_perf::constants;
use plimsoll_scenario::sections::{Pool, PriceMode, Provider, Role};
use plimsoll_scenario::{Diagnostic, Loaded, Offer, offers, serves};
use plimsoll_study::{
    CommitmentAsked, HostedOffer, OtherCosts, PaidPool, PayingClass, Phase, PoolWorkInput,
    SimulateInput, Simulation, busiest_hours, output_reserved, pool_work, replicas_needed,
    reserve_within, served_lengths, simulate,
};

use crate::args::Global;
use crate::commands::performance::times;
use crate::commands::plan::{facts_of, places_of, reserve};
use crate::commands::{fit, fleet, today};
use crate::failure::Failure;

/// What serves the classes of a scenario.
pub(super) struct Served {
    /// The fleet of today and its classes at their median.
    pub(super) fleet: SimulateInput,
    /// Its pools, then its providers, each with its model.
    pub(super) places: Vec<(Place, Option<String>)>,
    /// Prices of its providers.
    pub(super) prices: Vec<PriceRow>,
    /// List prices of those whose prices are typed, to hold them against.
    pub(super) listed: Vec<PriceRow>,
    /// The same as offers for what pools serve.
    pub(super) offers: Vec<HostedOffer>,
    /// When the horizon begins.
    pub(super) start: Timestamp,
    pools: Vec<Own>,
    tags: Vec<Option<PriceTag>>,
    notes: Vec<String>,
}

/// A pool, and what it costs in every way that it may be paid.
struct Own {
    paid: PaidPool,
    now: u32,
    reserve: u32,
    /// What an hour of a replica costs reserved and on demand, where both are known.
    both: Option<(f64, f64)>,
}

impl Served {
    pub(super) fn new(loaded: &Loaded, file: &Path, global: &Global) -> Result<Self, Failure> {
        let day = today(global, loaded);
        let scenario = &loaded.scenario;
        // What is expected to be paid is of the demand that is expected.
        let demand = loaded.demand_at(day, 0.5).map_err(Failure::one)?;
        let (pools, mut notes) = fleet::pools(loaded, file, None, global)?;
        let budgets =
            if scenario.pool.is_empty() { Vec::new() } else { fit::pools(loaded, global)? };
        let rows = constants(&loaded.catalog);
        let seed = fleet::seed(loaded, global);
        let (mut places, mut own, mut tags) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (i, simulated)) in (0u32..).zip(&pools) {
            let (pool, budget) = (&scenario.pool[*i], &budgets[*i]);
            let times = times(loaded, file, pool, budget, &rows)?;
            let there = places_of(loaded, pool, &simulated.life.regions);
            let facts = facts_of(loaded, pool, simulated, budget, &times.bands, &there);
            let mode = pool.price_mode.to_string();
            let price = there.first().and_then(|p| p.prices.iter().find(|own| own.mode == mode));
            let classes: Vec<_> =
                demand.classes.iter().filter(|class| serves(scenario, pool, &class.name)).collect();
            // A pool that only stages reach serves what there is.
            let all: Vec<_> = demand.classes.iter().collect();
            let lengths = served_lengths(&classes, seed).or_else(|| served_lengths(&all, seed));
            let usd_per_s = facts.replica_usd_per_hour.unwrap_or(0.0) / 3600.0;
            let work = lengths.map(|lengths| {
                pool_work(&PoolWorkInput {
                    steps: &times.steps,
                    rates: &times.rates,
                    budget,
                    phase: match pool.role {
                        Role::Both => Phase::Both,
                        Role::Prefill => Phase::Prefill,
                        Role::Decode => Phase::Decode,
                    },
                    lengths,
                    reserves_output: times.input.engine.name == "tensorrt-llm",
                    attention_replicas: pool.data_parallel.get(),
                    usd_per_s,
                })
            });
            let nothing = Work {
                fresh_s: 0.0,
                fresh_context_s: 0.0,
                output_s: 0.0,
                output_context_s: 0.0,
                usd_per_s,
            };
            let weights = work.map_or(nothing, |own| own.work);
            places.push((
                Place { name: pool.name.as_str().to_owned(), pricing: Pricing::Devices(weights) },
                Some(facts.model.clone()).filter(|model| !model.is_empty()),
            ));
            tags.push(None);
            let reserve = reserve_within(facts.now, &reserve(loaded, |_| true), facts.placed);
            own.push(Own {
                now: facts.now,
                reserve,
                both: both(loaded, pool, facts.parallelism.devices),
                paid: PaidPool {
                    place,
                    expense: expense(pool.price_mode),
                    node_usd_per_hour: facts.node_usd_per_hour,
                    node_devices: facts.node_devices,
                    replica_devices: facts.parallelism.devices,
                    replicas: Vec::new(),
                    reserve: Vec::new(),
                    batch: work.map(|own| own.batch),
                    source: price.map_or_else(String::new, |price| price.source.clone()),
                    as_of: price.and_then(|price| price.as_of.clone()),
                    age_days: price.and_then(|price| age(price.as_of.as_deref()?, day)),
                    region: there.first().and_then(|at| {
                        scenario.region.get(at.region).map(|region| region.name.as_str().to_owned())
                    }),
                },
            });
        }
        let (mut prices, mut listings, mut offers) = (Vec::new(), Vec::new(), Vec::new());
        for provider in &scenario.provider {
            let name = provider.name.as_str().to_owned();
            let listed = listed(&loaded.catalog, provider);
            let table = token_table(provider, listed);
            let typed = provider.input.is_some() || provider.output.is_some();
            let known = listed.filter(|_| !typed);
            tags.push(table.as_ref().map(|table| tag(table, known)));
            if let Some(table) = &table {
                let age =
                    if typed { Some(0) } else { listed.and_then(|p| age(&p.fact.as_of, day)) };
                prices.push(price_row(name.clone(), table, age));
                let before = listed.filter(|_| typed).map(listed_table);
                listings.extend(before.map(|table| price_row(name.clone(), &table, None)));
                offers.push((name.clone(), table.clone(), limits(provider)));
            }
            let pricing = table.map_or(Pricing::Unpriced, Pricing::Tokens);
            places.push((Place { name, pricing }, Some(provider.model.clone())));
        }
        let (hour, launch) = busiest_hours(&demand.classes).map_err(|error| {
            let diagnostic =
                Diagnostic::about("no-demand", loaded.source.name(), error.to_string());
            Failure::one(diagnostic.help("give a class a `rate`"))
        })?;
        let span = fleet::one_hour(launch.unwrap_or(hour), launch.is_some(), WARM_UP, SIMULATED);
        let (fleet, said) = fleet::input(loaded, &demand, (pools, Vec::new()), true, &span, global);
        notes.extend(demand.notes.iter().cloned().chain(said));
        // What a simulation leaves to a plan is no matter of costs.
        notes.retain(|note| {
            !note.contains("no plan has set it") && !note.starts_with("quotas leave")
        });
        let reserved_per_output = output_reserved(&fleet.classes, seed);
        let offers = offers.into_iter().map(|(name, table, limits)| HostedOffer {
            name,
            table,
            limits,
            reserved_per_output,
        });
        let offers = offers.collect();
        Ok(Self {
            fleet,
            places,
            prices,
            listed: listings,
            offers,
            start: demand.start,
            pools: own,
            tags,
            notes,
        })
    }

    /// Whose each class of the fleet is.
    pub(super) fn paying(&self, loaded: &Loaded) -> Vec<PayingClass> {
        let of = |name: &str| {
            let own = loaded.scenario.class.iter().find(|class| class.name.as_str() == name);
            own.map_or_else(PayingClass::default, |class| PayingClass {
                tenant: class.tenant.clone(),
                feature: class.feature.clone(),
                tier: Some(class.tier.to_string()),
                success_rate: class.success_rate.map(|share| share.get()),
            })
        };
        self.fleet.classes.iter().map(|simulated| of(&simulated.class.name)).collect()
    }

    /// Which rows of a ledger each place serves: those that name it as their route or model, else those of the classes that are sent to it.
    pub(super) fn rules(&self, loaded: &Loaded) -> Vec<PlaceRule> {
        let mut rules = Vec::new();
        let mut rule = |place: &Place, matches: &[(&str, String)]| {
            let matches =
                matches.iter().map(|(column, value)| ((*column).to_owned(), value.clone()));
            rules.push(PlaceRule { place: place.clone(), matches: matches.collect() });
        };
        // In the order of the places, so that they are numbered alike.
        for (place, _) in &self.places {
            rule(place, &[("route", place.name.clone())]);
        }
        let scenario = &loaded.scenario;
        for (place, model) in &self.places {
            if let Some(model) = model {
                let provider = scenario.provider.iter().find(|p| p.name.as_str() == place.name);
                match provider {
                    Some(own) => {
                        rule(place, &[("model", model.clone()), ("provider", own.provider.clone())])
                    }
                    None => rule(place, &[("model", model.clone())]),
                }
                rule(place, &[("model", model.clone())]);
            }
        }
        for class in scenario.class.iter().filter(|class| !class.matches.is_empty()) {
            let name = class.name.as_str();
            let simulated = self.fleet.classes.iter().find(|own| own.class.name == name);
            let first = simulated.and_then(|own| own.sent.routes.first()).map(|route| route.to);
            let place = first.and_then(|to| self.place_of(to));
            if let Some((place, _)) = place {
                let matches: Vec<(&str, String)> = class
                    .matches
                    .iter()
                    .map(|(column, value)| (column.as_str(), value.clone()))
                    .collect();
                rule(place, &matches);
            }
        }
        // Whoever is alone serves all of it.
        if let [(place, _)] = self.places.as_slice() {
            rule(place, &[]);
        }
        rules
    }

    fn place_of(&self, target: plimsoll_sim::Target) -> Option<&(Place, Option<String>)> {
        match target {
            plimsoll_sim::Target::Pool(pool) => self.places.get(pool),
            plimsoll_sim::Target::Provider(own) => self.places.get(self.fleet.pools.len() + own),
        }
    }

    /// Pools with the replicas of today, in every hour of a usage.
    pub(super) fn pools(&self, usage: &Usage) -> Vec<PaidPool> {
        let hours = usize::try_from(usage.period.hours).unwrap_or(0);
        let paid = self.pools.iter().map(|own| PaidPool {
            replicas: vec![own.now; hours],
            reserve: vec![own.reserve; hours],
            ..own.paid.clone()
        });
        paid.collect()
    }

    /// Pools that could be committed to. What hours may ask for is their usage times each of the spreads: one that is always 1 where it is known.
    pub(super) fn commitments(&self, usage: &Usage, spreads: &[Vec<f64>]) -> Vec<CommitmentAsked> {
        let mut asked = Vec::new();
        for own in &self.pools {
            let Some((reserved_usd_per_hour, on_demand_usd_per_hour)) = own.both else { continue };
            asked.push(CommitmentAsked {
                pool: self.places[own.paid.place as usize].0.name.clone(),
                replicas: replicas_needed(usage, own.paid.place, own.reserve, spreads),
                reserved_usd_per_hour,
                on_demand_usd_per_hour,
            });
        }
        asked
    }

    /// How much more or less may come in each hour than is likely, at evenly spread quantiles of what is not known.
    pub(super) fn spreads(
        &self,
        loaded: &Loaded,
        global: &Global,
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let day = today(global, loaded);
        let tokens = |level: f64| -> Result<Vec<f64>, Failure> {
            let demand = loaded.demand_at(day, level).map_err(Failure::one)?;
            let hours = demand.classes.iter().map(|class| class.hours.len()).max().unwrap_or(0);
            let of = |hour: usize| -> f64 {
                demand.classes.iter().map(|class| class.expected_tokens(hour, true)).sum()
            };
            Ok((0..hours).map(of).collect())
        };
        let likely = tokens(0.5)?;
        QUANTILES
            .iter()
            .map(|level| {
                let own = tokens(*level)?;
                let against = |(own, likely): (&f64, &f64)| {
                    if *likely > 0.0 { own / likely } else { 1.0 }
                };
                Ok(own.iter().zip(&likely).map(against).collect())
            })
            .collect()
    }

    /// What else is paid, and what the reader should know.
    pub(super) fn other(
        &self,
        loaded: &Loaded,
        usage: &Usage,
        tools: Option<&[f64]>,
    ) -> (OtherCosts, Vec<String>) {
        let scenario = &loaded.scenario;
        let mut notes = self.notes.clone();
        let dollars = |picos: u64| picos as f64 / 1e12;
        let mut hourly = Vec::new();
        if let Some(costs) = &scenario.costs {
            let all = [
                (Expense::Storage, costs.storage),
                (Expense::Network, costs.network),
                (Expense::Observability, costs.observability),
                (Expense::Evaluation, costs.evaluation),
                (Expense::Engineering, costs.engineering),
            ];
            hourly.extend(all.iter().filter_map(|(expense, price)| {
                Some((*expense, dollars(price.as_ref()?.get_picos())))
            }));
        }
        let priced = scenario.tool.iter().filter_map(|tool| Some((tool, tool.price?)));
        let mut own = Vec::new();
        for (tool, price) in priced {
            let name = tool.name.as_str();
            let at = self.fleet.tools.iter().position(|(known, _)| known == name);
            match (tools, at) {
                (Some(calls), Some(at)) => {
                    own.push((name.to_owned(), calls[at], dollars(price.get_picos())));
                }
                (None, _) => notes.push(format!(
                    "calls of tool `{name}` are not in a ledger: what they cost is not in the books"
                )),
                (Some(_), None) => {}
            }
        }
        let mut token_sources = self.tags.clone();
        token_sources.resize(usage.places.len(), None);
        let egress_usd_per_byte = scenario
            .costs
            .as_ref()
            .and_then(|costs| costs.egress)
            .map(|price| dollars(price.get_picos()));
        (OtherCosts { hourly, egress_usd_per_byte, tools: own, token_sources }, notes)
    }
}

/// Seconds of the busiest hour that are simulated, to see what fails, and those before.
const SIMULATED: f64 = 300.0;
const WARM_UP: f64 = 60.0;
/// Independent runs of them.
const RUNS: u32 = 2;

/// What becomes of attempts in the busiest hour.
pub(super) fn simulated(
    loaded: &Loaded,
    served: &Served,
    global: &Global,
) -> Result<Option<Simulation>, Failure> {
    let mut input = served.fleet.clone();
    input.runs = RUNS;
    input.threads = fleet::threads(global);
    // Somebody whom a fleet cannot serve is not waited for.
    input.work_off = Some(SIMULATED);
    let result = simulate(&input, None, &|| true);
    result.map(Some).map_err(|error| {
        Failure::one(Diagnostic::about("no-simulation", loaded.source.name(), error.to_string()))
    })
}

/// What a replica's devices cost reserved and on demand in a pool's first region.
fn both(loaded: &Loaded, pool: &Pool, devices: u64) -> Option<(f64, f64)> {
    let named = pool.regions.first().map(|own| own.as_str());
    let mut regions = loaded.scenario.region.iter();
    let region = regions.find(|own| named.is_none_or(|named| own.name.as_str() == named));
    let instance = pool.instance.as_ref().map(|instance| instance.as_str());
    let all =
        offers(&loaded.scenario, &loaded.catalog, pool.accelerator.as_str(), instance, region);
    let price = |mode: PriceMode| {
        let offer: &Offer = all.iter().find(|offer| offer.mode == mode)?;
        Some(offer.device_hour() * devices as f64)
    };
    price(PriceMode::Reserved).zip(price(PriceMode::OnDemand))
}

const fn expense(mode: PriceMode) -> Expense {
    match mode {
        PriceMode::OnDemand => Expense::ComputeOnDemand,
        PriceMode::Reserved => Expense::ComputeReserved,
        PriceMode::Spot => Expense::ComputeSpot,
        PriceMode::Owned => Expense::ComputeOwned,
    }
}

fn listed<'a>(catalog: &'a Catalog, provider: &Provider) -> Option<&'a TokenPrice> {
    let mut all = catalog.token_prices.iter();
    all.find(|p| p.provider.eq_ignore_ascii_case(&provider.provider) && p.model == provider.model)
}

/// What the tokens of a provider cost: its own prices, or the catalogue's.
fn token_table(provider: &Provider, listed: Option<&TokenPrice>) -> Option<TokenTable> {
    let input = provider.input.or(listed.map(|p| p.input))?;
    let output = provider.output.or(listed.map(|p| p.output))?;
    let cached = provider.cached_input.or(listed.and_then(|p| p.cached_input)).unwrap_or(input);
    let own = provider.input.is_some() || provider.output.is_some();
    let batch = listed.filter(|_| !own).and_then(batch_of);
    Some(TokenTable {
        input,
        cached_input: cached,
        cache_write: input,
        output,
        above: Vec::new(),
        batch,
    })
}

fn batch_of(price: &TokenPrice) -> Option<Box<TokenTable>> {
    let (input, output) = price.batch_input.zip(price.batch_output)?;
    let cached_input = price.cached_input.map_or(input, |cached| cached.min(input));
    Some(Box::new(TokenTable {
        input,
        cached_input,
        cache_write: input,
        output,
        above: Vec::new(),
        batch: None,
    }))
}

/// Where the prices of a table are from: the catalogue, or the scenario. Each meter has its own, so they are told in words.
fn tag(table: &TokenTable, listed: Option<&TokenPrice>) -> PriceTag {
    let source = listed.map_or("the scenario", |price| price.fact.source.as_str());
    PriceTag {
        unit: None,
        source: format!(
            "{} in, {} cached, {} out: {source}",
            table.input, table.cached_input, table.output
        ),
        as_of: listed.map(|price| price.fact.as_of.clone()),
        region: None,
    }
}

/// Quantiles that stand for what may come, each as likely as the others.
const QUANTILES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

fn limits(provider: &Provider) -> ProviderLimits {
    ProviderLimits {
        rpm: provider.rpm.map(|n| n.get()),
        tpm: provider.tpm.map(|n| n.get()),
        itpm: provider.itpm.map(|n| n.get()),
        otpm: provider.otpm.map(|n| n.get()),
        counts_cached: provider.counts_cached,
        reserves_max_tokens: provider.reserves_max_tokens,
    }
}

/// The list price of a hosted model.
fn listed_table(price: &TokenPrice) -> TokenTable {
    TokenTable {
        input: price.input,
        cached_input: price.cached_input.unwrap_or(price.input),
        cache_write: price.input,
        output: price.output,
        above: Vec::new(),
        batch: batch_of(price),
    }
}

fn price_row(name: String, table: &TokenTable, age_days: Option<i64>) -> PriceRow {
    PriceRow {
        name,
        input: table.input,
        output: table.output,
        cached_input: Some(table.cached_input),
        cache_write: None,
        batch: table.batch.as_ref().map(|batch| (batch.input, batch.output)),
        priority_input: None,
        age_days,
    }
}

/// Hosted models that the catalogue has prices of, as rules for a ledger; their prices, and where these are from.
pub(super) fn catalogued(
    catalog: &Catalog,
    day: Date,
) -> (Vec<PlaceRule>, Vec<PriceRow>, BTreeMap<String, PriceTag>) {
    let (mut rules, mut rows, mut tags) = (Vec::new(), Vec::new(), BTreeMap::new());
    for price in &catalog.token_prices {
        let name = format!("{}/{}", price.provider, price.model);
        let table = listed_table(price);
        rows.push(price_row(name.clone(), &table, age(&price.fact.as_of, day)));
        tags.insert(name.clone(), tag(&table, Some(price)));
        let place = Place { name, pricing: Pricing::Tokens(table) };
        let matches = [("model".to_owned(), price.model.clone())].into();
        rules.push(PlaceRule { place, matches });
    }
    (rules, rows, tags)
}

/// Days between two days.
fn age(as_of: &str, day: Date) -> Option<i64> {
    let then: Date = as_of.parse().ok()?;
    Some(i64::from((day - then).get_days()))
}
