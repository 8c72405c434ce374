//! A day that a large fleet published: DeepSeek's, in its day-6 disclosure of 24 hours, as it is widely quoted. Hours of its phases
//! close its books, and so does our attribution.

use plimsoll_cost::{
    Charge, Devices, End, Expense, Key, Kind, METHOD, Period, Place, Pricing, Sums, Table, Tasks,
    Usage, Work, books, unit_costs_of_all,
};
use plimsoll_units::Usd;

const INPUT: f64 = 608e9;
const HIT_RATE: f64 = 0.563;
const OUTPUT: f64 = 168e9;
/// Tokens a second of a prefill node, hits included, and of a decode node.
const PREFILL_RATE: f64 = 73_700.0;
const DECODE_RATE: f64 = 14_800.0;
/// Nodes of eight devices at $2 an hour.
const NODES: f64 = 226.75;

#[test]
fn phase_hours_close_a_published_day() {
    let fresh = INPUT * (1.0 - HIT_RATE);
    let work = Work {
        // A node's rate counts hits, which take no work.
        fresh_s: 1.0 / (PREFILL_RATE * (1.0 - HIT_RATE)),
        fresh_context_s: 0.0,
        output_s: 1.0 / DECODE_RATE,
        output_context_s: 0.0,
        usd_per_s: 16.0 / 3600.0,
    };
    let hour = Sums {
        requests: 1e6,
        fresh: fresh / 24.0,
        cached: INPUT * HIT_RATE / 24.0,
        output: OUTPUT / 24.0,
        ..Sums::default()
    };
    let cells = (0..24)
        .map(|h| (Key { value: 0, place: Some(0), hour: h, end: End::Ok, retry: false }, hour));
    let usage = Usage {
        period: Period { start_s: None, hours: 24 },
        places: vec![Place { name: "fleet".to_owned(), pricing: Pricing::Devices(work) }],
        by: [].into(),
        all: Table { values: vec![None], cells: cells.collect(), tasks: vec![Tasks::default()] },
        tasks: Tasks::default(),
        outcomes_unknown: 0,
        response_cached: 0,
        undated: 0,
        notes: Vec::new(),
    };
    let paid = NODES * 24.0 * 16.0;
    assert!((paid - 87_072.0).abs() < 1e-6);
    let charge = Charge {
        name: "nodes".to_owned(),
        expense: Expense::ComputeOnDemand,
        place: Some(0),
        usd: Usd::micros((paid * 1e6).round() as i64),
        devices: Some(Devices {
            per_replica: 8.0,
            replicas: vec![NODES; 24],
            reserve: Vec::new(),
            spare: Vec::new(),
            batch: None,
        }),
        price: None,
        invoiced: false,
    };
    // Hours of both phases, against hours of nodes: apart by less than a thousandth.
    let hours = 24.0 * hour.work_s(&work) / 3600.0;
    assert!((hours / (NODES * 24.0) - 1.0).abs() < 1e-3, "{hours}");
    let books = books(&[charge], &usage).unwrap();
    assert!(books.closes());
    assert_eq!(METHOD, "plimsoll-phase-seconds/1");
    assert!(books.of(Kind::Idle).get_micros() < 87_072_000, "a thousandth is not idle");
    let used = &books.all.values[0];
    let prefill = used.prefill.get_micros() as f64 / books.total.get_micros() as f64;
    assert!((prefill - 0.42).abs() < 0.005, "{prefill}");
    let unit = unit_costs_of_all(&books.all).unwrap();
    for (got, published) in [
        (unit.prompt_usd_per_mtok, 0.060),
        (unit.fresh_usd_per_mtok, 0.138),
        (unit.output_usd_per_mtok, 0.300),
    ] {
        assert!((got.unwrap() - published).abs() < 0.0006, "{got:?} {published}");
    }
}
