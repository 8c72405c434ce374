//! The books, opened: what a bill changes, what could be paid instead, and what leaves as JSON.

use plimsoll_cost::{
    Bill, BillLine, ChargeKind, Expense, Key, Period, Place, Pricing, ProviderLimits, Sums, Table,
    TokenTable, Work,
};
use plimsoll_units::UsdPerToken;
use serde_json::json;

use super::*;

const START: i64 = 1_800_000_000;

/// One pool that is half busy for ten hours, for two tenants: a reads, b writes. Of eight tasks five succeeded, two failed.
fn usage() -> Usage {
    let work = Work {
        fresh_s: 1e-4,
        fresh_context_s: 0.0,
        output_s: 1e-3,
        output_context_s: 0.0,
        usd_per_s: 0.001,
    };
    let tasks = Tasks {
        tasks: 8,
        attempts: 10,
        succeeded: 5,
        failed: 2,
        usd: 8.0,
        usd_squared: 9.0,
        usd_succeeded: 5.0,
    };
    let (mut all, mut by) =
        (Table { values: vec![None], tasks: vec![tasks], ..Table::default() }, Table::default());
    by.values = vec![Some("a".to_owned()), Some("b".to_owned())];
    by.tasks = vec![Tasks::default(); 2];
    for hour in 0..10 {
        for (value, fresh, output) in [(0, 9e6, 0.0), (1, 0.0, 9e5)] {
            let key = Key { value, place: Some(0), hour, end: End::Ok, retry: false };
            let sums = Sums { requests: 100.0, fresh, output, ..Sums::default() };
            by.cells.entry(key).or_default().add(&sums);
            all.cells.entry(Key { value: 0, ..key }).or_default().add(&sums);
        }
    }
    Usage {
        period: Period { start_s: Some(START), hours: 10 },
        places: vec![Place { name: "chat".to_owned(), pricing: Pricing::Devices(work) }],
        by: [(Dimension::Tenant, by)].into(),
        all,
        tasks,
        outcomes_unknown: 0,
        response_cached: 0,
        undated: 0,
        notes: Vec::new(),
    }
}

fn pool() -> PaidPool {
    PaidPool {
        place: 0,
        expense: Expense::ComputeOnDemand,
        node_usd_per_hour: Some(16.0),
        node_devices: 8,
        replica_devices: 8,
        replicas: vec![1; 10],
        reserve: vec![0; 10],
        batch: None,
        source: "list".to_owned(),
        as_of: Some("2026-08-01".to_owned()),
        age_days: Some(106),
        region: Some("us-east-1".to_owned()),
    }
}

fn input() -> CostInput {
    let usage = usage();
    let other = OtherCosts { hourly: vec![(Expense::Storage, 0.5)], ..OtherCosts::default() };
    let (charges, notes) = charges(&usage, &[pool()], &other);
    CostInput {
        usage,
        charges,
        bill: None,
        between: None,
        level: 0.95,
        per_success: None,
        prices: Vec::new(),
        prices_before: Vec::new(),
        offers: Vec::new(),
        commitments: Vec::new(),
        notes,
    }
}

fn bill_line(kind: ChargeKind, usd: i64, hours: Option<f64>) -> BillLine {
    BillLine {
        kind,
        service: "compute".to_owned(),
        description: "p5.48xlarge".to_owned(),
        resource: None,
        region: None,
        pricing: None,
        account: None,
        from_s: START,
        until_s: START + 36_000,
        billed: Usd::micros(usd),
        effective: Usd::micros(usd),
        list: None,
        quantity: hours.map(|n| (n, "Hours".to_owned())),
        line: 2,
    }
}

fn bill(lines: Vec<BillLine>) -> Bill {
    Bill {
        format: "focus 1.2".to_owned(),
        currency: "USD".to_owned(),
        usd_per_unit: 1.0,
        lines,
        rejects: Vec::new(),
        notes: Vec::new(),
    }
}

/// $160 of nodes and $5 of storage; half of the time is idle, and both tenants took as many seconds.
#[test]
fn by_hand() {
    let cost = cost(input()).unwrap();
    assert_eq!((cost.total_microusd, cost.residual_microusd, cost.closes), (165_000_000, 0, true));
    let lines: Vec<_> = cost.lines.iter().map(|l| (l.name.as_str(), l.kind, l.microusd)).collect();
    assert_eq!(
        lines,
        [
            ("pool chat: prefill", "allocated", 40_000_000),
            ("pool chat: decode", "allocated", 40_000_000),
            ("pool chat: idle", "idle", 80_000_000),
            ("storage", "allocated", 5_000_000),
        ]
    );
    assert_eq!(cost.lines[0].device_hours, Some(20.0));
    let price = cost.lines[0].price.as_ref().unwrap();
    assert_eq!((price.usd_per_unit, price.as_of.as_deref()), (Some(2.0), Some("2026-08-01")));
    let per = &cost.cost_per_success;
    assert_eq!((per.usd, per.marginal_usd, per.unresolved), (Some(33.0), Some(16.0), 1));
    assert_eq!(per.bounds.unwrap().low_usd, 27.5);
    let tenants = &cost.by["tenant"];
    assert_eq!(tenants.iter().map(|t| t.microusd).sum::<i64>(), 165_000_000);
    assert_eq!(tenants[0].headroom_usd, 40.0);
    assert_eq!(cost.misplaced_by_request_count["tenant"], 0.0);
    let json = json!(cost);
    assert_eq!(json["lines"][2]["kind"], "idle");
    assert_eq!(json["cost_per_success"]["factors"]["attempts_per_task"], json!(1.25));
    assert!(json.get("books").is_none() && json.get("usage").is_none());
}

/// The bill has a quarter more hours at half the price, taxes, a credit, and something that nobody priced: books are of the bill, and the gap is told
/// line by line.
#[test]
fn a_bill_is_the_truth() {
    let mut asked = input();
    let mut half = bill_line(ChargeKind::Other, 4_000_000, None);
    // Half of it is for hours before.
    half.from_s = START - 36_000;
    asked.bill = Some(bill(vec![
        bill_line(ChargeKind::Compute, 100_000_000, Some(100.0)),
        bill_line(ChargeKind::Tax, 7_000_000, None),
        bill_line(ChargeKind::Credit, -3_000_000, None),
        half,
    ]));
    let cost = cost(asked).unwrap();
    assert_eq!(cost.total_microusd, 100_000_000 + 7_000_000 - 3_000_000 + 2_000_000 + 5_000_000);
    assert!(cost.closes);
    let bill = cost.bill.unwrap();
    assert_eq!(bill.gap_microusd, cost.total_microusd - 165_000_000);
    let gap: Vec<_> = bill.gap.iter().map(|g| (g.kind, g.line, g.microusd)).collect();
    assert_eq!(
        gap,
        [
            ("hours", "compute_on_demand", 40_000_000),
            ("price", "compute_on_demand", -100_000_000),
            ("tax", "tax", 7_000_000),
            ("credit", "credit", -3_000_000),
            ("only_in_bill", "other", 2_000_000),
        ]
    );
    assert_eq!(bill.gap.iter().map(|g| g.microusd).sum::<i64>(), bill.gap_microusd);
    assert!(
        bill.notes.iter().any(|n| n.contains("`storage` is not on the bill")),
        "{:?}",
        bill.notes
    );
    assert!(bill.notes.iter().any(|n| n.contains("$2.00 of the bill")), "{:?}", bill.notes);
    assert_eq!(cost.lines.iter().filter(|l| l.microusd < 0).count(), 1);
}

/// Reserved hours on the bill pay for what was priced on demand, and count as hours once: half is idle still.
#[test]
fn a_bill_in_another_mode() {
    let mut asked = input();
    let reserved = BillLine {
        pricing: Some("Committed".to_owned()),
        ..bill_line(ChargeKind::Compute, 60_000_000, None)
    };
    let spot = BillLine {
        pricing: Some("Spot".to_owned()),
        ..bill_line(ChargeKind::Compute, 20_000_000, None)
    };
    asked.bill = Some(bill(vec![reserved, spot]));
    let cost = cost(asked).unwrap();
    assert_eq!(cost.by_kind["idle"], 40_000_000);
    assert_eq!(cost.total_microusd, 85_000_000);
    let gap: i64 = cost.bill.as_ref().unwrap().gap.iter().map(|g| g.microusd).sum();
    assert_eq!(gap, cost.bill.unwrap().gap_microusd);
}

#[test]
fn choices() {
    let mut asked = input();
    let price = |usd: f64| UsdPerToken::picos((usd * 1e6) as u64);
    let table = TokenTable {
        input: price(0.5),
        cached_input: price(0.05),
        cache_write: price(0.5),
        output: price(2.0),
        above: Vec::new(),
        batch: None,
    };
    let limits = ProviderLimits {
        otpm: Some(20_000),
        reserves_max_tokens: true,
        ..ProviderLimits::default()
    };
    asked.offers =
        vec![HostedOffer { name: "hosted".to_owned(), table, limits, reserved_per_output: 2.0 }];
    asked.commitments = vec![CommitmentAsked {
        pool: "chat".to_owned(),
        replicas: vec![1.0, 1.0, 1.0, 4.0],
        reserved_usd_per_hour: 8.0,
        on_demand_usd_per_hour: 16.0,
    }];
    asked.per_success = Some((Usd::micros(30_000_000), 0.8));
    let cost = cost(asked).unwrap();
    let bought = &cost.build_or_buy[0];
    // 90 M in at $0.50 and 9 M out at $2: $63 for ten hours, against $160.
    assert!((bought.bought_usd_per_month - 63.0 * 73.0).abs() < 1e-6);
    assert_eq!((bought.cheaper, bought.utilisation), ("buy", 0.5));
    assert_eq!(bought.break_even_utilisation, None);
    assert_eq!((bought.limits[0].peak, bought.limits[0].hours_over), (30_000.0, 10));
    assert!(bought.says.contains("until 2.5 times"), "{}", bought.says);
    let advice = &cost.commitment[0];
    assert_eq!(advice.replicas, 1);
    assert!((advice.usd_per_month - 730.0 * (8.0 + 0.25 * 3.0 * 16.0)).abs() < 1e-6);
    assert_eq!(cost.budget.unwrap().verdict, "over");
}

#[test]
fn nobody_knows_the_price() {
    let usage = usage();
    let unknown = PaidPool { node_usd_per_hour: None, ..pool() };
    let (made, notes) = charges(&usage, &[unknown], &OtherCosts::default());
    assert!(made.is_empty());
    assert!(notes[0].contains("nobody knows what the nodes of `chat` cost"), "{notes:?}");
    let cost = cost(CostInput { charges: made, usage, ..input() }).unwrap();
    assert_eq!((cost.total_microusd, cost.closes), (0, true));
    assert_eq!((cost.lines[0].kind, cost.lines.len()), ("unallocated", 1));
}
