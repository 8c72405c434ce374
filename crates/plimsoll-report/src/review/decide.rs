//! What the meeting decides on: the verdict, the launch table, the plan, and what it costs.

use plimsoll_study::{
    BudgetPlan, Decision, DemandRow, Limit, Plan, PlannedPool, ReserveLine, Resource, Review,
};
use plimsoll_units::grouped;

use super::stop;
use crate::chart::service::{fan_chart, reserve_chart};
use crate::cost::dollars as cents;
use crate::launch::{by_requests, demand_word, percent, plan_sentence, tables};
use crate::page::{Block, Cell, Section, Table, Tile, Tone};
use crate::plan::{count, dollars, exact, named_limits, number, proof_text, sentence, share};
use crate::text::{plain_percent, shown_level};

pub(super) fn verdict(review: &Review) -> Section {
    let mut own = Section::new("verdict", "Verdict");
    for (i, line) in headline(review).into_iter().enumerate() {
        own.push(if i == 0 { Block::Lead(line) } else { Block::Text(line) });
    }
    own.text(format!("{}.", facts(review).join(" · ")));
    if let Some(plan) = &review.plan {
        own.push(Block::Tiles(tiles(review, plan)));
    }
    // The demand that runs into the line first.
    let ahead = &review.ahead;
    if let Some(chart) = ahead.resources.first().and_then(|own| fan_chart(ahead, own)) {
        own.push(Block::Chart(Box::new(chart)));
    }
    if !review.notes.is_empty() {
        let notes = Block::List(review.notes.iter().map(|note| stop(note)).collect());
        own.push(Block::Fold("To know before trusting a number".to_owned(), vec![notes]));
    }
    own
}

/// The answer in three numbers: what is carried, what that takes, and what it costs.
fn tiles(review: &Review, plan: &Plan) -> Vec<Tile> {
    let verdict = &review.verdict;
    let table = &plan.table;
    let word = |decision: Decision| Cell {
        text: decision.word().to_owned(),
        tone: match decision {
            Decision::Ready => Tone::Good,
            Decision::NotReady => Tone::Bad,
            Decision::TooClose => Tone::Tight,
            Decision::Unknown => Tone::Plain,
        },
    };
    let blocks = || table.pools.iter().filter(|block| !block.idle);
    let mut all = vec![Tile {
        title: format!("Share of the {} that today's fleet carries", demand_word(table)),
        number: percent(&table.fleet.today),
        word: word(verdict.today),
        bars: blocks()
            .filter_map(|block| {
                let reach = &block.rows.first()?.today;
                let share = if reach.beyond { 1.0 } else { reach.covers? };
                Some((block.pool.clone(), share, percent(reach)))
            })
            .collect(),
        note: "Step-time error is not included.".to_owned(),
    }];
    if !plan.pools.is_empty() {
        let sum = |of: &dyn Fn(&PlannedPool) -> u64| plan.pools.iter().map(of).sum::<u64>();
        let (now, total) = (sum(&|p| p.replicas.now.into()), sum(&|p| p.replicas.total.into()));
        let gpus = sum(&|p| u64::from(p.replicas.now) * p.parallelism.devices);
        let carry = sum(&|p| (p.replicas.steady + p.replicas.forecast).into());
        all.push(Tile {
            title: "Replicas planned, and had".to_owned(),
            number: format!("{} planned, {} had", grouped(total), grouped(now)),
            word: word(verdict.plan),
            bars: blocks()
                .map(|block| {
                    let (now, planned) = (block.replicas_now, block.replicas_planned);
                    let share = f64::from(now) / f64::from(planned.max(1));
                    (block.pool.clone(), share, format!("{now} of {planned}"))
                })
                .collect(),
            note: format!(
                "{} GPUs, not {}. {} of {} replicas are reserve.",
                grouped(sum(&|p| p.devices)),
                grouped(gpus),
                grouped(total.saturating_sub(carry)),
                grouped(total)
            ),
        });
    }
    let over = match (verdict.over_caps.is_empty(), plan.budget.usd_per_month) {
        (false, _) => Cell { text: "OVER CAP".to_owned(), tone: Tone::Tight },
        (true, Some(_)) => Cell::from(""),
        (true, None) => Cell::from("a price is missing"),
    };
    let caps = table.shared.iter().filter(|row| row.name.starts_with("budget."));
    all.push(Tile {
        title: "Cost of the plan".to_owned(),
        number: plan
            .budget
            .usd_per_month
            .map_or("?".to_owned(), |usd| format!("{} a month", dollars(usd))),
        word: over,
        bars: caps
            .filter_map(|row| {
                let name = if row.name == "budget.hourly" { "an hour" } else { "a month" };
                let cap = format!("{} cap", dollars(row.limit));
                Some((name.to_owned(), row.planned? / row.limit.max(1e-9), cap))
            })
            .collect(),
        note: plan
            .budget
            .today_usd_per_month
            .map_or(String::new(), |usd| format!("Today: {} a month.", dollars(usd))),
    });
    all
}

/// The answer: today's fleet, what it rests on, and the plan.
pub(super) fn headline(review: &Review) -> Vec<String> {
    let verdict = &review.verdict;
    let at = review.plan.as_ref().map_or(String::new(), |plan| format!(" for {}", plan.sized_for));
    let mut lines = vec![format!("{}{at}. {}", verdict.today.word(), stop(&verdict.says))];
    if let Some(plan) = &review.plan {
        lines.push(plan_sentence(plan, verdict.plan));
    }
    lines
}

/// Rows beside the verdicts: what, of today's fleet, of the planned one.
pub(super) fn summary(plan: &Plan) -> Vec<[String; 3]> {
    let table = &plan.table;
    let mut rows = vec![[
        format!("share of the {} carried", demand_word(table)),
        percent(&table.fleet.today),
        percent(&table.fleet.planned),
    ]];
    if !plan.pools.is_empty() {
        let sum = |of: &dyn Fn(&PlannedPool) -> u64| plan.pools.iter().map(of).sum::<u64>();
        let now = sum(&|pool| u64::from(pool.replicas.now));
        let planned = sum(&|pool| u64::from(pool.replicas.total));
        rows.push(["replicas".to_owned(), grouped(now), grouped(planned)]);
        let now = sum(&|pool| u64::from(pool.replicas.now) * pool.parallelism.devices);
        rows.push(["GPUs".to_owned(), grouped(now), grouped(sum(&|pool| pool.devices))]);
    }
    let unknown = || "?".to_owned();
    rows.push([
        "cost a month".to_owned(),
        plan.budget.today_usd_per_month.map_or_else(unknown, dollars),
        plan.budget.usd_per_month.map_or_else(unknown, dollars),
    ]);
    rows
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
    let mut own = Section::new("launch", "The launch table");
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
        for table in tables(plan) {
            own.table(table);
        }
        own.text(
            "A pool carries a multiple of the launch's own mix: the largest load at which it, by itself, keeps every promise. Prompt and output tokens are what it could do of each with all of that time; the row of the cause is the load line itself. Under 15% of headroom is tight.",
        );
        if let Some(text) = by_requests(review) {
            own.text(text);
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
    review.plan.as_ref().map(|plan| plan_section(plan, true))
}

/// The fleet that a plan proposes, line by line; `why` each limit is what it is.
pub(crate) fn plan_section(plan: &Plan, why: bool) -> Section {
    let mut own = Section::new("plan", "The plan and its reserve");
    own.text(feasible(plan));
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
    if let Some(fleet) = plan.fleet.as_ref().filter(|fleet| !fleet.nodes.is_empty())
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
    if let Some(fold) = limits(plan, why) {
        own.push(fold);
    }
    own
}

/// Whether there is a plan, and what it takes.
pub(crate) fn feasible(plan: &Plan) -> String {
    let sum = |of: &dyn Fn(&PlannedPool) -> u64| plan.pools.iter().map(of).sum::<u64>();
    let nodes = plan.fleet.as_ref().map(|fleet| fleet.nodes.iter().map(|n| n.nodes).sum::<u64>());
    let nodes = nodes.unwrap_or_else(|| sum(&|pool| pool.nodes));
    let mut text = match plan.feasible {
        true => "FEASIBLE: ".to_owned(),
        false => "NOT FEASIBLE: ".to_owned(),
    };
    text.push_str(&match plan.pools.is_empty() {
        true => "hosted models alone".to_owned(),
        false => format!(
            "{}, {}, {}",
            count(sum(&|pool| pool.replicas.total.into()), "replica", "replicas"),
            count(sum(&|pool| pool.devices), "device", "devices"),
            count(nodes, "node", "nodes")
        ),
    });
    if let Some(usd) = plan.budget.peak_usd_per_hour {
        text.push_str(&format!(", {}/h at the peak", dollars(usd)));
    }
    if let Some(usd) = plan.budget.usd_per_month {
        text.push_str(&format!(", {} a month{}", dollars(usd), span_of(&plan.budget)));
    }
    text
}

/// Between what a month lies.
fn span_of(budget: &BudgetPlan) -> String {
    let differ = budget.interval.filter(|span| dollars(span.low) != dollars(span.high));
    differ
        .map_or(String::new(), |span| format!(" ({} to {})", dollars(span.low), dollars(span.high)))
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
    own.push(Block::Chart(Box::new(reserve_chart(i, pool))));
    let mut table = Table::new(
        &format!("{}: {} replicas, line by line", pool.name, pool.replicas.total),
        &["line", ">replicas", ">kept a month", "because"],
    );
    let is_kept = |line: &&ReserveLine| line.replicas > 0 || line.name == "steady";
    for line in pool.reserve.iter().filter(is_kept) {
        table.row(vec![
            line.name.replace('_', " ").into(),
            line.replicas.to_string().into(),
            line.usd_per_month.map_or("-".to_owned(), dollars).into(),
            line.why.as_str().into(),
        ]);
    }
    own.table(table);
    let none = pool.reserve.iter().filter(|line| !is_kept(line));
    let none: Vec<String> = none.map(|line| line.name.replace('_', " ")).collect();
    if !none.is_empty() {
        own.text(format!("None for {}.", none.join(", ")));
    }
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
        "Alternatives, and why each was rejected",
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
    Some(Block::Fold("Alternatives".to_owned(), vec![Block::Table(table)]))
}

fn limits(plan: &Plan, why: bool) -> Option<Block> {
    if plan.limits.is_empty() {
        return None;
    }
    let mut columns = vec!["pool", "limit", ">value", "unit", "vLLM"];
    columns.extend(why.then_some("because"));
    let mut table = Table::new("What each pool lets in", &columns);
    for own in &plan.limits {
        let all = named_limits(own);
        for (name, limit) in all.iter().filter(|(_, limit)| why || limit.value.is_some()) {
            let flag = limit.flags.and_then(|flags| flags.vllm).unwrap_or_default();
            let mut cells: Vec<Cell> = vec![
                own.pool.as_str().into(),
                (*name).into(),
                limit.value.map_or("-".to_owned(), exact).into(),
                limit.unit.into(),
                flag.into(),
            ];
            cells.extend(why.then(|| limit.why.as_str().into()));
            table.row(cells);
        }
    }
    let columns =
        ["pool", "class", "tenant", ">requests/min", ">tokens/min", ">at once", ">retries"];
    let mut classes = Table::new("What each class may send", &columns);
    for own in &plan.limits {
        for class in &own.classes {
            let of =
                |limit: &Limit| limit.value.map_or("-".to_owned(), |n| grouped(n.floor() as u64));
            let retries = class.retry_budget.value;
            classes.row(vec![
                own.pool.as_str().into(),
                class.class.as_str().into(),
                class.tenant.as_deref().unwrap_or("-").into(),
                of(&class.rpm).into(),
                of(&class.tpm).into(),
                of(&class.concurrency).into(),
                retries.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0)).into(),
            ]);
        }
    }
    let mut blocks = vec![Block::Table(table)];
    if !classes.rows.is_empty() {
        blocks.push(Block::Table(classes));
    }
    Some(Block::Fold("Limits of engines and gateways".to_owned(), blocks))
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
        budget_blocks(&mut own, budget);
    }
    Some(own)
}

/// What a month costs, the caps, and what must be ordered when.
pub(crate) fn budget_blocks(own: &mut Section, budget: &BudgetPlan) {
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
    let span = span_of(budget);
    let how = if budget.follows {
        format!(
            " with replicas by the calendar; {} if the planned fleet ran all month",
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
