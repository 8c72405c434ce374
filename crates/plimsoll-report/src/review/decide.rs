//! What the meeting decides on: the verdict, the launch table, the plan, and what it costs.

use plimsoll_study::{BudgetPlan, DemandRow, Plan, PlannedPool, Resource, Review};
use plimsoll_units::grouped;

use super::{stop, verdict_cell};
use crate::chart::service::reserve_chart;
use crate::cost::dollars as cents;
use crate::page::{Block, Cell, Section, Table, Tone};
use crate::plan::{dollars, number, proof_text, sentence, share};
use crate::text::{plain_percent, shown_level};

pub(super) fn verdict(review: &Review) -> Section {
    let mut own = Section::new("verdict", "Verdict");
    own.push(Block::Lead(stop(&review.verdict.says)));
    own.text(format!("{}.", facts(review).join(" · ")));
    let answered = |yes: Option<bool>| match yes {
        Some(true) => Cell { text: "yes".to_owned(), tone: Tone::Good },
        Some(false) => Cell { text: "NO".to_owned(), tone: Tone::Bad },
        None => Cell::from("unknown"),
    };
    let mut table = Table::new("The answer in two words", &["question", "answer"]);
    table.row(vec![
        "Does the fleet of today carry the busiest hour with every promise kept?".into(),
        answered(review.verdict.today_holds),
    ]);
    table.row(vec![
        "Is there a fleet that does, and can be had?".into(),
        answered(review.verdict.plan_exists),
    ]);
    own.table(table);
    if !review.notes.is_empty() {
        let notes = Block::List(review.notes.iter().map(|note| stop(note)).collect());
        own.push(Block::Fold("To know before trusting a number".to_owned(), vec![notes]));
    }
    own
}

/// What the numbers are of.
pub(super) fn facts(review: &Review) -> Vec<String> {
    vec![
        format!("As of {}", review.as_of),
        format!("demand at its p{}", plain_percent(review.demand_quantile)),
        format!("seed {}", review.seed),
        format!("{} runs", review.demand.runs),
    ]
}

pub(super) fn launch(review: &Review) -> Section {
    let mut own = Section::new("launch", "What runs out first");
    let window = review.demand.window_s;
    own.text(match &review.launch_from {
        Some(from) => format!(
            "p95 over {window} s windows of the busiest hour: baseline from {}, launch from {from}.",
            review.baseline_from
        ),
        None => format!(
            "p95 over {window} s windows of the busiest hour, from {}; no event changes the demand within the horizon.",
            review.baseline_from
        ),
    });
    if let Some(plan) = &review.plan {
        own.table(launch_table(plan));
        if let Some(text) = first_to_run_out(plan) {
            own.text(text);
        }
        own.text(
            "A line moves one lever, the rest as in the baseline: more replicas do not move one that a single request reaches. `mix` moves all of it, at the launch, and decides. Under 15% is tight.",
        );
        if let Some(cliff) = plan.cliff {
            own.text(format!(
                "The planned fleet breaks its first promise at about {cliff:.1} times the planned demand."
            ));
        }
    }
    let demand = demand_table(review);
    // Without a plan the demand is the answer; beside one it is its ground.
    if review.plan.is_some() {
        own.push(Block::Fold("Demand, class by class".to_owned(), vec![Block::Table(demand)]));
    } else {
        own.table(demand);
    }
    own
}

fn launch_table(plan: &Plan) -> Table {
    let first = plan.first_to_run_out.as_ref();
    let columns = [
        "resource",
        ">baseline p95",
        ">launch p95",
        ">line today",
        "headroom today",
        ">line planned",
        "headroom planned",
        "runs out",
    ];
    let mut table =
        Table::new("The launch table: the fleet of today and the planned one", &columns);
    let maybe = |value: Option<f64>| Cell::from(value.map_or("-".to_owned(), number));
    let judged = |pct: Option<f64>, verdict| {
        let mut cell = verdict_cell(verdict);
        if let Some(pct) = pct {
            cell.text = format!("{pct:+.0}% {}", cell.text).trim_end().to_owned();
        }
        cell
    };
    for row in &plan.resources {
        let is_first = first.is_some_and(|first| first.resource == row.name);
        let when = match (is_first, &row.runs_out_at) {
            (true, Some(at)) => format!("first to run out, {at}"),
            (true, None) => "first to run out".to_owned(),
            (false, Some(at)) => format!("from {at}"),
            (false, None) => String::new(),
        };
        table.row(vec![
            format!("{}, {}", row.name.replace('_', " "), row.unit).into(),
            maybe(row.baseline_p95),
            maybe(row.launch_p95),
            maybe(row.load_line_now),
            judged(row.headroom_pct, Some(row.verdict)),
            maybe(row.load_line_planned),
            judged(row.headroom_planned_pct, row.verdict_planned),
            when.into(),
        ]);
    }
    table
}

/// What runs out first, when, and what shows it.
pub(super) fn first_to_run_out(plan: &Plan) -> Option<String> {
    let first = plan.first_to_run_out.as_ref()?;
    let name = first.resource.replace('_', " ");
    let mut text = format!("First to run out: {name}");
    if let Some(pct) = first.headroom_pct {
        text.push_str(&format!(", headroom {pct:+.0}%"));
    }
    match &first.at {
        Some(at) => text.push_str(&format!(", from {at}")),
        None => text.push_str(", not within the horizon"),
    }
    if let Some(signal) = &first.first_signal {
        text.push_str(&format!("; the first signal of it is {signal}"));
    }
    if let Some(of) = &first.of {
        text.push_str(&format!(" at `{of}`"));
    }
    if let Some(binds) = &first.binds {
        text.push_str(&format!(", {} binding", binds.replace('_', " ")));
    }
    Some(format!("{text}."))
}

fn demand_table(review: &Review) -> Table {
    let launch = review.launch_from.is_some();
    let mut columns = vec!["class", "resource", ">baseline p95"];
    if launch {
        columns.push(">launch p95");
    }
    let mut table =
        Table::new("Demand of the busiest hours; ± is an interval over the runs", &columns);
    for row in &review.demand.rows {
        let row: &DemandRow = row;
        let name = match row.resource {
            Resource::Requests => "requests/s",
            Resource::FreshPromptTokens => "fresh prompt tok/s",
            Resource::OutputTokens => "output tok/s",
        };
        let class = row.class.clone().unwrap_or_else(|| "all classes".to_owned());
        let mut cells: Vec<Cell> =
            vec![class.into(), name.into(), shown_level(&row.baseline).into()];
        if launch {
            cells.push(row.launch.as_ref().map_or("-".to_owned(), shown_level).into());
        }
        table.row(cells);
    }
    table
}

pub(super) fn plan(review: &Review) -> Option<Section> {
    let plan = review.plan.as_ref()?;
    let mut own = Section::new("plan", "The plan and its reserve");
    own.text(format!(
        "{} Sized for {}.",
        if plan.feasible { "It can be had, and keeps every promise." } else { "NOT FEASIBLE." },
        plan.sized_for
    ));
    own.list(
        plan.infeasible_because
            .iter()
            .map(|o| stop(&format!("{}: {}; {}", o.kind.replace('_', " "), o.what, o.relax)))
            .collect(),
    );
    if !plan.floors.is_empty() {
        own.text("What is shown keeps promises a quarter above what can be kept.");
    }
    own.table(pools_table(plan));
    for (i, pool) in plan.pools.iter().enumerate() {
        pool_blocks(&mut own, i, pool);
    }
    own.table(nodes_table(plan));
    if let Some(fleet) = &plan.fleet
        && let (Some(gap), Some(bound)) = (fleet.gap, fleet.bound_usd_per_hour)
    {
        own.text(format!(
            "No fleet of these can cost less than {}/h: within {:.1}% of the best.",
            dollars(bound),
            gap * 100.0
        ));
    }
    let losses = plan.losses.iter().map(|loss| {
        format!(
            "Losing {} at the peak: good tasks {} → {}, {}.",
            loss.name,
            share(loss.attainment_before),
            share(loss.attainment_after),
            match (loss.kept_before, loss.meets) {
                (_, true) => "every promise is kept",
                (true, false) => "promises are broken",
                (false, false) => "promises are broken, as they are before",
            }
        )
    });
    own.list(losses.collect());
    own.list(plan.notes.iter().map(|note| stop(note)).collect());
    if let Some(fold) = alternatives(plan) {
        own.push(fold);
    }
    if let Some(fold) = limits(plan) {
        own.push(fold);
    }
    Some(own)
}

fn pools_table(plan: &Plan) -> Table {
    let columns = [
        "pool",
        "model",
        "a replica",
        ">now",
        ">carry",
        ">interval",
        ">reserve",
        ">planned",
        ">devices",
        ">nodes",
    ];
    let mut table = Table::new("Replicas of each pool", &columns);
    for pool in &plan.pools {
        let carry = pool.replicas.steady + pool.replicas.forecast;
        let range =
            pool.interval.map_or("-".to_owned(), |s| format!("{:.0} to {:.0}", s.low, s.high));
        table.row(vec![
            pool.name.as_str().into(),
            pool.model.as_str().into(),
            format!("{} x {}", pool.parallelism.devices, pool.accelerator).into(),
            pool.replicas.now.to_string().into(),
            carry.to_string().into(),
            range.into(),
            format!("+{}", pool.replicas.total - carry).into(),
            pool.replicas.total.to_string().into(),
            grouped(pool.devices).into(),
            grouped(pool.nodes).into(),
        ]);
    }
    table
}

fn pool_blocks(own: &mut Section, i: usize, pool: &PlannedPool) {
    own.push(Block::Heading(format!("{}: {} replicas", pool.name, pool.replicas.total)));
    own.push(Block::Chart(Box::new(reserve_chart(i, pool))));
    let mut table = Table::new(
        &format!("{}: replicas, line by line", pool.name),
        &["line", ">replicas", ">kept a month", "because"],
    );
    for line in &pool.reserve {
        table.row(vec![
            line.name.replace('_', " ").into(),
            line.replicas.to_string().into(),
            line.usd_per_month.map_or("-".to_owned(), dollars).into(),
            line.why.as_str().into(),
        ]);
    }
    own.table(table);
    if let Some(proof) = &pool.proof {
        own.text(format!("{}.", sentence(&proof_text(proof))));
    }
    if let (Some(binds), Some(signal)) = (&pool.binds, &pool.first_signal) {
        let binds = binds.replace('_', " ");
        own.text(format!("With too few {binds} binds, and {signal} shows it first."));
    }
    if let Some(span) = pool.if_steps_differ.filter(|span| span.high > span.low) {
        own.text(format!(
            "Step times are predictions: were they off by as much as half of such are, {:.0} to {:.0} would carry it.",
            span.low, span.high
        ));
    }
}

fn nodes_table(plan: &Plan) -> Table {
    let columns =
        ["region", "node", "instance", "paid", ">nodes", ">idle devices", ">cost", "price of"];
    let mut table = Table::new("Nodes at the peak", &columns);
    for node in plan.fleet.iter().flat_map(|fleet| &fleet.nodes) {
        let cost =
            node.usd_per_hour.map_or("unknown".to_owned(), |usd| format!("{}/h", dollars(usd)));
        table.row(vec![
            node.region.as_str().into(),
            format!("{} x {}", node.devices_per_node, node.accelerator).into(),
            node.instance.as_deref().unwrap_or("-").into(),
            node.price_mode.as_str().into(),
            grouped(node.nodes).into(),
            grouped(node.devices_idle).into(),
            cost.into(),
            node.price_as_of.as_deref().unwrap_or("-").into(),
        ]);
    }
    table
}

fn alternatives(plan: &Plan) -> Option<Block> {
    if plan.alternatives.is_empty() {
        return None;
    }
    let mut table = Table::new(
        "What else would do, and why it was not chosen",
        &["pool", "with", ">replicas", ">cost", "why not"],
    );
    for own in &plan.alternatives {
        let why = match (&own.rejected, own.chosen) {
            (_, true) => "chosen",
            (Some(why), false) => why,
            (None, false) => "",
        };
        table.row(vec![
            own.pool.as_str().into(),
            own.what.as_str().into(),
            own.replicas.map_or("-".to_owned(), |n| n.to_string()).into(),
            own.usd_per_hour.map_or("-".to_owned(), |usd| format!("{}/h", dollars(usd))).into(),
            why.into(),
        ]);
    }
    Some(Block::Fold("What else would do".to_owned(), vec![Block::Table(table)]))
}

fn limits(plan: &Plan) -> Option<Block> {
    if plan.limits.is_empty() {
        return None;
    }
    let mut table = Table::new(
        "What each pool lets in, and where the limit comes from",
        &["pool", "limit", ">value", "unit", "because"],
    );
    for own in &plan.limits {
        for (name, limit) in crate::plan::named_limits(own) {
            table.row(vec![
                own.pool.as_str().into(),
                name.into(),
                limit.value.map_or("-".to_owned(), crate::plan::exact).into(),
                limit.unit.into(),
                limit.why.as_str().into(),
            ]);
        }
    }
    Some(Block::Fold("Limits of engines and gateways".to_owned(), vec![Block::Table(table)]))
}

pub(super) fn cost(review: &Review) -> Option<Section> {
    let budget = review.plan.as_ref().map(|plan| &plan.budget);
    if budget.is_none() && review.cost.is_none() {
        return None;
    }
    let mut own = Section::new("cost", "What it costs");
    if let Some(cost) = &review.cost {
        let per = &cost.cost_per_success;
        own.text(success(review).unwrap_or_else(|| "One success: unknown.".to_owned()));
        if let Some(f) = per.factors {
            own.text(format!(
                "That is {} an attempt × {:.3} attempts a task / {:.2}% succeed.",
                cents(f.cost_per_attempt_usd),
                f.attempts_per_task,
                f.success_rate * 100.0
            ));
        }
        if let Some(bounds) = per.bounds {
            own.text(format!(
                "From {} to {}, as {} unresolved tasks may turn out.",
                cents(bounds.low_usd),
                cents(bounds.high_usd),
                grouped(per.unresolved)
            ));
        }
        if let Some(why) = &per.why {
            own.text(stop(why));
        }
        if let Some(budget) = &cost.budget {
            own.text(stop(&format!("{}: {}", budget.verdict.to_uppercase(), budget.says)));
        }
    }
    if let Some(budget) = budget {
        own.text(month(budget));
        own.table(caps_table(budget));
        let orders = budget.orders.iter().map(|order| {
            format!(
                "Order {} {} in {} by {}: needed {}, {:.0} days ahead{}.",
                order.devices,
                order.accelerator,
                order.region,
                order.order_by,
                order.needed_at,
                order.lead_time_s / 86_400.0,
                if order.too_late { ", which has passed" } else { "" }
            )
        });
        let orders: Vec<String> = orders.collect();
        own.list(orders);
        own.list(budget.startup.iter().map(|price| stop(&price.says)).collect());
        own.list(budget.notes.iter().map(|note| stop(note)).collect());
    }
    Some(own)
}

/// What one success costs, where that is known.
pub(super) fn success(review: &Review) -> Option<String> {
    let per = &review.cost.as_ref()?.cost_per_success;
    let least = if per.at_least { "at least " } else { "" };
    let mut text = format!("One success: {least}{}", cents(per.usd?));
    if let Some(span) = per.interval {
        text.push_str(&format!(
            " ({} to {} at {:.0}%, {} tasks)",
            cents(span.low),
            cents(span.high),
            span.level * 100.0,
            grouped(span.n as u64)
        ));
    }
    if let Some(usd) = per.marginal_usd {
        text.push_str(&format!(
            "; {} without idle time, reserve and what is paid anyway",
            cents(usd)
        ));
    }
    Some(format!("{text}."))
}

/// What a month costs.
pub(super) fn month(budget: &BudgetPlan) -> String {
    let (Some(usd), Some(fixed)) = (budget.usd_per_month, budget.static_usd_per_month) else {
        return "A month: unknown, because a price is missing.".to_owned();
    };
    let span = budget.interval.map_or(String::new(), |span| {
        format!(" ({} to {})", dollars(span.low), dollars(span.high))
    });
    let how = if budget.follows {
        format!(
            ", with the floors of the calendar; {} were the peak's fleet kept all the time",
            dollars(fixed)
        )
    } else {
        String::new()
    };
    format!("A month: {}{span}{how}.", dollars(usd))
}

fn caps_table(budget: &BudgetPlan) -> Table {
    let columns =
        ["cap", ">limit", ">asked for at most", "unit", "trips", "against capacity", "counted"];
    let mut table = Table::new("Caps, and the one that trips", &columns);
    for cap in &budget.caps {
        let trips = match (&cap.trips_at, cap.peak) {
            (Some(at), _) => Cell { text: format!("TRIPS {at}"), tone: Tone::Bad },
            (None, Some(_)) => Cell { text: "holds".to_owned(), tone: Tone::Good },
            (None, None) => Cell::from("unknown"),
        };
        let order = match (&cap.trips_at, cap.before_capacity) {
            (Some(_), Some(true)) => "before the replicas of today are too few",
            (Some(_), _) => "after the replicas of today are too few",
            (None, _) => "",
        };
        table.row(vec![
            cap.name.as_str().into(),
            number(cap.limit).into(),
            cap.peak.map_or("-".to_owned(), number).into(),
            cap.unit.into(),
            trips,
            order.into(),
            cap.why.as_str().into(),
        ]);
    }
    table
}
