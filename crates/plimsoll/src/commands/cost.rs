//! `cost`: what was paid, who used it, and what one success costs.

mod served;

use std::io::Write;
use std::path::Path;

use plimsoll_cost::{Bill, Dimension, Usage};
use plimsoll_ledger::{BillOptions, UsageInput, read_bill};
use plimsoll_report::{CostDocument, FocusHead, cost_json, cost_text, focus_csv};
use plimsoll_scenario::{Diagnostic, Loaded};
use plimsoll_study::{
    Cost, CostInput, ExpectedUsage, OtherCosts, charges, cost, expected_usage, focus_rows,
};

use self::served::{Served, catalogued, simulated};
use super::ledger::ledger_failure;
use super::pool::usage as misused;
use super::source::{Source, threads_of};
use super::{catalog_of, clock, either, fleet, planned, scenario, tell, today};
use crate::args::{CostArgs, Global};
use crate::failure::Failure;
use crate::{files, heading};

/// The level of intervals, where no scenario says another.
const LEVEL: f64 = 0.95;
/// The seed where none is given.
const SEED: u64 = 7;
/// Values that a dimension keeps apart at most.
const VALUES: usize = 1000;

pub(super) fn answer(
    args: &CostArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    if let Some(by) = &args.by
        && !Dimension::ALL.iter().any(|known| known.name() == by)
    {
        let known = Dimension::ALL.map(Dimension::name).join(", ");
        return Err(misused(
            format!("costs are not told apart by `{by}`"),
            format!("give one of {known}"),
        ));
    }
    let made = match args.source.as_slice() {
        [file] if file.extension().is_some_and(|kind| kind == "toml") => {
            of_scenario(args, file, global)?
        }
        _ => of_ledger(args, global)?,
    };
    let Made { cost, name, source, as_of, seed } = made;
    if let Some(by) = &args.by
        && !cost.by.contains_key(by.as_str())
    {
        let known: Vec<&str> = cost.by.keys().copied().collect();
        return Err(misused(
            format!("no row says its `{by}`"),
            match known.is_empty() {
                true => "leave `--by` out".to_owned(),
                false => format!("rows have: {}", known.join(", ")),
            },
        ));
    }
    if let Some(path) = &args.focus {
        let head = FocusHead {
            account: &name,
            start: cost.period.start.as_deref(),
            end: cost.period.end.as_deref(),
        };
        let rows = focus_rows(&cost);
        let text = focus_csv(&rows, &head).map_err(|error| {
            Failure::one(Diagnostic::about(
                "no-focus",
                path.display().to_string(),
                error.to_string(),
            ))
        })?;
        files::write_whole(path, &text)?;
        tell(global, err, &format!("wrote {} rows to {}", rows.len(), path.display()));
    }
    let document = CostDocument {
        name: &name,
        source: &source,
        as_of: &as_of,
        seed,
        by: args.by.as_deref(),
        cost: &cost,
    };
    Ok(either(global, || cost_json(&document, crate::VERSION), || cost_text(&document, heading())))
}

/// A study, and what it is of.
struct Made {
    cost: Cost,
    name: String,
    source: String,
    as_of: String,
    seed: u64,
}

/// What the classes of a scenario would cost, with the fleet of today.
fn of_scenario(args: &CostArgs, file: &Path, global: &Global) -> Result<Made, Failure> {
    let only_ledgers = [
        ("--scenario", args.scenario.is_some()),
        ("--where", !args.only.is_empty()),
        ("--from", args.from.is_some()),
        ("--to", args.until.is_some()),
    ];
    if let Some((option, _)) = only_ledgers.iter().find(|(_, given)| *given) {
        return Err(misused(
            format!("`{option}` is for a ledger, and {} is a scenario", file.display()),
            "leave it out, or give a ledger and the scenario by `--scenario`".to_owned(),
        ));
    }
    let loaded = planned(file, global)?;
    expected(&loaded, file, bill(args)?, global)
}

/// What the classes of a scenario would cost.
fn expected(
    loaded: &Loaded,
    file: &Path,
    bill: Option<Bill>,
    global: &Global,
) -> Result<Made, Failure> {
    let served = Served::new(loaded, file, global)?;
    let simulation = simulated(loaded, &served, global)?;
    let expected = ExpectedUsage {
        fleet: &served.fleet,
        places: served.places.clone(),
        classes: served.paying(loaded),
        simulation: simulation.as_ref(),
        start_s: Some(served.start.as_second()),
        seed: fleet::seed(loaded, global),
    };
    let (usage, tools) = expected_usage(&expected);
    let source = file.display().to_string();
    let spreads = served.spreads(loaded, global)?;
    concluded(bill, loaded, &served, usage, (Some(&tools), &spreads), source, global)
}

/// What a scenario costs with the fleet of today, for those who ask for more than that.
pub(super) fn of_loaded(loaded: &Loaded, file: &Path, global: &Global) -> Result<Cost, Failure> {
    Ok(expected(loaded, file, None, global)?.cost)
}

/// What the rows of a ledger cost.
fn of_ledger(args: &CostArgs, global: &Global) -> Result<Made, Failure> {
    let source = Source::open(&args.source, Some(&args.log), global)?;
    let names: Vec<String> = args.source.iter().map(|file| file.display().to_string()).collect();
    let name = names.join(", ");
    let loaded = args.scenario.as_deref().map(|file| scenario(file, global)).transpose()?;
    let served = match (&loaded, &args.scenario) {
        (Some(loaded), Some(file)) => Some(Served::new(loaded, file, global)?),
        _ => None,
    };
    let catalog = catalog_of(global)?;
    let as_of =
        loaded.as_ref().map_or_else(|| global.as_of.unwrap_or_else(clock), |l| today(global, l));
    let (mut rules, prices, tags) = catalogued(&catalog, as_of);
    if let (Some(served), Some(loaded)) = (&served, &loaded) {
        // What a scenario names comes first.
        let own = served.rules(loaded);
        rules.splice(0..0, own);
    }
    let input = UsageInput {
        places: rules,
        only: args.only.clone(),
        from_s: args.from.map(|at| at.as_second()),
        until_s: args.until.map(|at| at.as_second()),
        values_most: VALUES,
        threads: threads_of(global),
    };
    let mut usage = source.ledger().usage(&input).map_err(|error| ledger_failure(&error))?;
    usage.notes.extend(source.warnings());
    if let (Some(served), Some(loaded)) = (&served, &loaded) {
        let mut made = concluded(bill(args)?, loaded, served, usage, (None, &[]), name, global)?;
        made.name.clone_from(&loaded.scenario.study.name);
        return Ok(made);
    }
    let sources = usage.places.iter().map(|place| tags.get(&place.name).cloned());
    let other = OtherCosts { token_sources: sources.collect(), ..OtherCosts::default() };
    let (paid, notes) = charges(&usage, &[], &other);
    let used = |name: &str| used(&usage, name);
    let input = CostInput {
        bill: bill(args)?,
        between: between(&usage),
        level: LEVEL,
        per_success: None,
        prices: prices.into_iter().filter(|row| used(&row.name)).collect(),
        prices_before: Vec::new(),
        offers: Vec::new(),
        commitments: Vec::new(),
        notes,
        charges: paid,
        usage,
    };
    let cost = cost(input).map_err(|error| failed(&name, &error))?;
    Ok(Made {
        cost,
        source: name.clone(),
        name,
        as_of: as_of.to_string(),
        seed: global.seed.unwrap_or(SEED),
    })
}

/// The study of a usage that a scenario has prices for.
fn concluded(
    bill: Option<Bill>,
    loaded: &Loaded,
    served: &Served,
    usage: Usage,
    (tools, spreads): (Option<&[f64]>, &[Vec<f64>]),
    source: String,
    global: &Global,
) -> Result<Made, Failure> {
    let budget = loaded.scenario.budget.as_ref();
    let (pools, commitments) = (served.pools(&usage), served.commitments(&usage, spreads));
    let (other, mut notes) = served.other(loaded, &usage, tools);
    let (paid, said) = charges(&usage, &pools, &other);
    notes.extend(said);
    let input = CostInput {
        bill,
        between: between(&usage),
        level: loaded.scenario.study.confidence.get(),
        per_success: budget.and_then(|own| Some((own.per_success?, own.warn_at.get()))),
        prices: served.prices.clone(),
        prices_before: served.listed.clone(),
        offers: served.offers.clone(),
        commitments,
        notes,
        charges: paid,
        usage,
    };
    let cost = cost(input).map_err(|error| failed(&source, &error))?;
    Ok(Made {
        cost,
        name: loaded.scenario.study.name.clone(),
        source,
        as_of: today(global, loaded).to_string(),
        seed: fleet::seed(loaded, global).get(),
    })
}

/// Whether anybody went to a place.
fn used(usage: &Usage, name: &str) -> bool {
    let place = (0u32..).zip(&usage.places).find(|(_, place)| place.name == name);
    place.is_some_and(|(i, _)| usage.all.cells.keys().any(|key| key.place == Some(i)))
}

fn bill(args: &CostArgs) -> Result<Option<Bill>, Failure> {
    let Some(path) = &args.bill else { return Ok(None) };
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let message = format!("cannot be read: {error}");
        Failure::one(Diagnostic::about("unreadable-file", name.clone(), message))
    })?;
    let options = BillOptions { usd_per: args.usd_per.iter().cloned().collect() };
    read_bill(&bytes, &name, &options).map(Some).map_err(|error| {
        let diagnostic = Diagnostic::about("bad-bill", name.clone(), error.to_string());
        Failure::one(match error.help() {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        })
    })
}

fn between(usage: &Usage) -> Option<(String, String)> {
    let start = usage.period.start_s?;
    let at = |second: i64| jiff::Timestamp::from_second(second).ok().map(|at| at.to_string());
    Some((at(start)?, at(start + i64::from(usage.period.hours) * 3600)?))
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::one(Diagnostic::about("no-books", name.to_owned(), error.to_string()))
}
