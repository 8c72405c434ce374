//! What was paid, who used it, and what one success costs: the books of [`plimsoll_cost`], opened.

mod charges;
mod choices;
mod expected;
mod focus;
mod invoice;
mod result;
mod work;

use plimsoll_cost::{
    Bill, Charge, CostError, Dimension, End, Kind, Line, METHOD, PriceRow, PriceTag, Share, Tasks,
    Usage, books, per_success, price_lints, unit_costs_of_all,
};
use plimsoll_units::Usd;

pub use charges::{OtherCosts, PaidPool, charges};
pub use choices::{CommitmentAsked, HostedOffer, replicas_needed, reserve_within};
pub use expected::{ExpectedUsage, PayingClass, expected_usage, output_reserved};
pub use focus::{FocusRow, focus_rows};
pub use invoice::{BillCheck, GapLine};
pub use result::{
    BuyCost, CommitmentAdvice, Cost, CostBounds, CostFactors, CostLine, CostPerSuccess, CostPeriod,
    LimitFill, LinePrice, PriceWarning, SuccessBudget, UnitCost, ValueCost, WastedCost,
};
pub use work::{PoolWork, PoolWorkInput, pool_work, work_of};

/// What a cost study is made from.
#[derive(Clone, Debug)]
pub struct CostInput {
    /// What was used.
    pub usage: Usage,
    /// What it costs, by prices.
    pub charges: Vec<Charge>,
    /// What was invoiced; it is then what the books are of.
    pub bill: Option<Bill>,
    /// The beginning of the period and its end, as people write them.
    pub between: Option<(String, String)>,
    /// The level of intervals.
    pub level: f64,
    /// What may be spent on a success, and at which share of that a warning comes.
    pub per_success: Option<(Usd, f64)>,
    /// Prices of tokens that are used or offered.
    pub prices: Vec<PriceRow>,
    /// What an older table says of the same.
    pub prices_before: Vec<PriceRow>,
    /// Hosted models that could serve instead.
    pub offers: Vec<HostedOffer>,
    /// Pools that could be committed to.
    pub commitments: Vec<CommitmentAsked>,
    /// What the caller has to say.
    pub notes: Vec<String>,
}

/// Opens the books.
pub fn cost(input: CostInput) -> Result<Cost, CostError> {
    let (paid, bill) = match &input.bill {
        Some(bill) => {
            let (paid, check) = invoice::invoiced(&input.charges, bill, &input.usage);
            (paid, Some(check))
        }
        None => (input.charges.clone(), None),
    };
    let usage = &input.usage;
    let books = books(&paid, usage)?;
    let mut notes = input.notes.clone();
    notes.extend(usage.notes.iter().chain(&books.notes).cloned());
    let mut per = success(books.total, books.marginal(), &usage.tasks, input.level);
    if books.uncharged > 0.0 && per.usd.is_some() {
        // What is paid for them elsewhere comes on top, and nobody knows how much that is.
        per.at_least = true;
        per.interval = None;
        let missing = format!("at least: nothing was charged for {:.0} attempts", books.uncharged);
        per.why = Some(per.why.map_or(missing.clone(), |why| format!("{why}; {missing}")));
    }
    // Tokens that nothing was charged for are not cheap: what one of anything costs is not known then.
    let unit = unit_costs_of_all(&books.all).filter(|_| books.uncharged <= 0.0);
    let wasted = books.all.values.first().cloned().unwrap_or_default();
    let mut by_kind = std::collections::BTreeMap::new();
    for kind in [Kind::Allocated, Kind::Idle, Kind::Reserve, Kind::Failed, Kind::Unallocated] {
        by_kind.insert(kind.name(), books.of(kind).get_micros());
    }
    let name = |dimension: &Dimension| dimension.name();
    let by = books.by.iter().map(|(dimension, shares)| {
        let mut values: Vec<ValueCost> =
            shares.values.iter().map(|s| value(s, input.level)).collect();
        // Who pays most comes first; names decide where that is the same.
        values.sort_by(|a, b| b.microusd.cmp(&a.microusd).then_with(|| a.value.cmp(&b.value)));
        (name(dimension), values)
    });
    let lints = price_lints(&input.prices, &input.prices_before).into_iter();
    Ok(Cost {
        period: CostPeriod {
            start: input.between.as_ref().map(|(start, _)| start.clone()),
            end: input.between.as_ref().map(|(_, end)| end.clone()),
            hours: usage.period.hours,
        },
        method: METHOD,
        lines: books.lines.iter().map(|l| line(l, &paid, usage)).collect(),
        total_microusd: books.total.get_micros(),
        total_usd: usd(books.total),
        residual_microusd: books.residual().get_micros(),
        closes: books.closes(),
        by_kind,
        budget: input.per_success.map(|(cap, warn)| budget(cap, warn, &per)),
        cost_per_success: per,
        uncharged_attempts: books.uncharged,
        unit: UnitCost {
            request_usd: unit.and_then(|u| u.request_usd),
            fresh_usd_per_mtok: unit.and_then(|u| u.fresh_usd_per_mtok),
            cached_usd_per_mtok: unit.and_then(|u| u.cached_usd_per_mtok),
            prompt_usd_per_mtok: unit.and_then(|u| u.prompt_usd_per_mtok),
            output_usd_per_mtok: unit.and_then(|u| u.output_usd_per_mtok),
            overhead: unit.and_then(|u| u.overhead),
        },
        wasted: WastedCost {
            retries_usd: usd(wasted.retries),
            failed_usd: usd(wasted.failed),
            cancelled_usd: usd(wasted.cancelled),
            limited_usd: usd(wasted.limited),
        },
        by: by.collect(),
        misplaced_by_request_count: books
            .by
            .iter()
            .map(|(of, shares)| (name(of), shares.misplaced_by_request_count()))
            .collect(),
        unallocated_microusd: books
            .by
            .iter()
            .map(|(of, shares)| (name(of), shares.unallocated.get_micros()))
            .collect(),
        bill,
        build_or_buy: choices::build_or_buy(&input, &paid),
        commitment: input.commitments.iter().filter_map(choices::commitment).collect(),
        price_lints: lints
            .map(|lint| PriceWarning { code: lint.code, name: lint.name, message: lint.message })
            .collect(),
        notes,
        books,
        charges: paid,
        usage: input.usage,
    })
}

/// Dollars, as results print them.
fn usd(amount: Usd) -> f64 {
    amount.get_micros() as f64 / 1e6
}

fn success(total: Usd, marginal: Usd, tasks: &Tasks, level: f64) -> CostPerSuccess {
    let own = per_success(total, marginal, tasks, level);
    CostPerSuccess {
        usd: own.usd,
        interval: own.interval.map(Into::into),
        bounds: own.bounds.map(|(low_usd, high_usd)| CostBounds { low_usd, high_usd }),
        factors: own.factors.map(|f| CostFactors {
            cost_per_attempt_usd: f.cost_per_attempt_usd,
            attempts_per_task: f.attempts_per_task,
            success_rate: f.success_rate,
        }),
        marginal_usd: own.marginal_usd,
        tasks: tasks.tasks,
        succeeded: tasks.succeeded,
        unresolved: tasks.unresolved(),
        at_least: false,
        why: own.why,
    }
}

fn line(line: &Line, charges: &[Charge], usage: &Usage) -> CostLine {
    let charge = line.charge.and_then(|i| charges.get(i));
    CostLine {
        name: line.name.clone(),
        kind: line.kind.name(),
        line: line.expense.name(),
        place: line.place.and_then(|i| charges::place(usage, i)).map(|place| place.name.clone()),
        phase: line.phase.map(|phase| phase.name()),
        end: line.end.map(ended),
        usd: usd(line.usd),
        microusd: line.usd.get_micros(),
        device_hours: line.device_hours,
        invoiced: charge.is_some_and(|charge| charge.invoiced),
        price: charge.and_then(|charge| charge.price.as_ref()).map(price),
        why: line.why.clone(),
    }
}

fn price(tag: &PriceTag) -> LinePrice {
    LinePrice {
        usd_per_unit: tag.unit.map(|(usd, _)| usd),
        unit: tag.unit.map(|(_, unit)| unit),
        source: tag.source.clone(),
        as_of: tag.as_of.clone(),
        region: tag.region.clone(),
    }
}

/// As ledgers call it.
const fn ended(end: End) -> &'static str {
    match end {
        End::Ok => "ok",
        End::Limited => "limited",
        End::Failed => "failed",
        End::Cancelled => "cancelled",
        End::Unknown => "unknown",
    }
}

fn value(share: &Share, level: f64) -> ValueCost {
    let per = per_success(share.total, share.direct(), &share.tasks, level);
    let (total, by_count) = (usd(share.total), usd(share.by_request_count));
    ValueCost {
        value: share.value.clone(),
        requests: share.used.requests,
        tasks: share.tasks.tasks,
        successes: share.tasks.succeeded,
        usd: total,
        microusd: share.total.get_micros(),
        prefill_usd: usd(share.prefill),
        cached_usd: usd(share.cached),
        decode_usd: usd(share.decode),
        kv_usd: usd(share.kv),
        other_usd: usd(share.other),
        failed_usd: usd(share.failed),
        cancelled_usd: usd(share.cancelled),
        limited_usd: usd(share.limited),
        headroom_usd: usd(share.headroom),
        shared_usd: usd(share.shared),
        retries_usd: usd(share.retries),
        by_request_count_usd: by_count,
        request_count_factor: (total > 0.0).then(|| by_count / total),
        by_weighted_tokens_usd: usd(share.by_weighted_tokens),
        cost_per_success_usd: per.usd,
        cost_per_success_interval: per.interval.map(Into::into),
    }
}

fn budget(cap: Usd, warn_at: f64, per: &CostPerSuccess) -> SuccessBudget {
    let cap_usd = usd(cap);
    let (verdict, says) = match per.usd {
        None => (
            "unknown",
            format!("one success may cost ${cap_usd}, and nobody can say what it costs"),
        ),
        Some(own) if own > cap_usd => {
            ("over", format!("one success costs ${own:.6}, {:.2} times what it may", own / cap_usd))
        }
        Some(own) if per.at_least => {
            ("unknown", format!("one success costs at least ${own:.6}, and may cost ${cap_usd}"))
        }
        Some(own) if own > cap_usd * warn_at => (
            "near",
            format!("one success costs ${own:.6}, {:.0}% of what it may", own / cap_usd * 100.0),
        ),
        Some(own) => (
            "within",
            format!("one success costs ${own:.6}, {:.0}% of what it may", own / cap_usd * 100.0),
        ),
    };
    SuccessBudget { per_success_usd: cap_usd, usd: per.usd, verdict, says }
}

#[cfg(test)]
mod tests;
