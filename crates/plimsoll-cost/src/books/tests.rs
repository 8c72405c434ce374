//! Books close whatever was used and paid, and split as they say.

use proptest::prelude::*;

use super::*;
use crate::charge::{Devices, Expense};
use crate::usage::{Period, Place, Table, Tasks, TokenTable, Work};
use plimsoll_units::UsdPerToken;

const POOL: u32 = 0;
const RENTED: u32 = 1;
const UNKNOWN: u32 = 2;

const WORK: Work = Work {
    fresh_s: 1e-4,
    fresh_context_s: 1e-9,
    output_s: 5e-4,
    output_context_s: 1e-7,
    usd_per_s: 0.001,
};

fn prices() -> TokenTable {
    TokenTable {
        input: UsdPerToken::picos(3_000_000),
        cached_input: UsdPerToken::picos(300_000),
        cache_write: UsdPerToken::picos(3_000_000),
        output: UsdPerToken::picos(15_000_000),
        above: Vec::new(),
        batch: None,
    }
}

/// Rows of a log, summed as a scan of it would: value, place, hour, end, retry.
type Row = (u32, Option<u32>, u32, End, bool, Sums);

fn usage(hours: u32, values: &[Option<&str>], rows: &[Row]) -> Usage {
    let mut all = Table { values: vec![None], tasks: vec![Tasks::default()], ..Table::default() };
    let mut by = Table {
        values: values.iter().map(|v| v.map(str::to_owned)).collect(),
        tasks: vec![Tasks::default(); values.len()],
        ..Table::default()
    };
    for (value, place, hour, end, retry, sums) in rows {
        let key = Key { value: *value, place: *place, hour: *hour, end: *end, retry: *retry };
        by.cells.entry(key).or_default().add(sums);
        all.cells.entry(Key { value: 0, ..key }).or_default().add(sums);
    }
    Usage {
        period: Period { start_s: None, hours },
        places: vec![
            Place { name: "chat".to_owned(), pricing: Pricing::Devices(WORK) },
            Place { name: "rented".to_owned(), pricing: Pricing::Tokens(prices()) },
            Place { name: "unknown".to_owned(), pricing: Pricing::Unpriced },
        ],
        by: [(Dimension::Tenant, by)].into(),
        all,
        tasks: Tasks::default(),
        outcomes_unknown: 0,
        response_cached: 0,
        undated: 0,
        notes: Vec::new(),
    }
}

fn charge(expense: Expense, place: Option<u32>, micros: i64) -> Charge {
    Charge {
        name: expense.name().to_owned(),
        expense,
        place,
        usd: Usd::micros(micros),
        devices: None,
        price: None,
        invoiced: false,
    }
}

fn compute(micros: i64, replicas: &[f64], reserve: &[f64]) -> Charge {
    let devices = Devices {
        per_replica: 2.0,
        replicas: replicas.to_vec(),
        reserve: reserve.to_vec(),
        spare: Vec::new(),
        batch: None,
    };
    Charge { devices: Some(devices), ..charge(Expense::ComputeOnDemand, Some(POOL), micros) }
}

fn tokens(fresh: f64, output: f64) -> Sums {
    Sums { requests: 1.0, fresh, output, ..Sums::default() }
}

fn lines(books: &Books) -> Vec<(String, i64)> {
    books.lines.iter().map(|l| (l.name.clone(), l.usd.get_micros())).collect()
}

/// One replica, one hour, $1. Tenant a reads 9 million tokens (900 s), b writes 1.8 million (900 s); of the other half hour nothing is in reserve.
#[test]
fn an_hour_by_hand() {
    let rows = [
        (0, Some(POOL), 0, End::Ok, false, tokens(9e6, 0.0)),
        (1, Some(POOL), 0, End::Ok, false, tokens(0.0, 1.8e6)),
    ];
    let usage = usage(1, &[Some("a"), Some("b")], &rows);
    let books = books(&[compute(1_000_000, &[1.0], &[0.0])], &usage).unwrap();
    let expect = [
        ("compute_on_demand: prefill", 250_000),
        ("compute_on_demand: decode", 250_000),
        ("compute_on_demand: idle", 500_000),
    ];
    let expect: Vec<_> = expect.iter().map(|(name, usd)| ((*name).to_owned(), *usd)).collect();
    assert_eq!(lines(&books), expect);
    assert!(books.closes());
    assert_eq!(books.lines[2].device_hours, Some(1.0));
    let tenants = &books.by[&Dimension::Tenant];
    // One hour has no variance: headroom goes by work.
    assert_eq!(tenants.values[0].headroom, Usd::micros(250_000));
    assert_eq!(tenants.values[0].total, Usd::micros(500_000));
    assert_eq!(tenants.values[1].decode, Usd::micros(250_000));
    assert_eq!(books.marginal(), Usd::micros(500_000));
}

/// A line that is changed by hand is seen: the residual is a sum of its own.
#[test]
fn a_broken_line_is_seen() {
    let rows = [(0, Some(POOL), 0, End::Ok, false, tokens(9e6, 0.0))];
    let mut books = books(&[compute(1_000_000, &[1.0], &[])], &usage(1, &[None], &rows)).unwrap();
    assert_eq!((books.residual(), books.closes()), (Usd::ZERO, true));
    books.lines[0].usd = books.lines[0].usd - Usd::micros(1);
    assert_eq!((books.residual(), books.closes()), (Usd::micros(1), false));
}

/// Tenant b comes when a comes; c comes at all hours. Replicas are bought for a and b, so they pay for what is idle: by covariance, c pays nothing.
#[test]
fn headroom_is_paid_by_who_causes_it() {
    let mut rows = vec![(0, Some(POOL), 0, End::Ok, false, tokens(9e6, 0.0))];
    rows.push((1, Some(POOL), 0, End::Ok, false, tokens(3e6, 0.0)));
    rows.extend((0..4).map(|hour| (2, Some(POOL), hour, End::Ok, false, tokens(1e6, 0.0))));
    let usage = usage(4, &[Some("a"), Some("b"), Some("c")], &rows);
    let books = books(&[compute(4_000_000, &[1.0; 4], &[0.0; 4])], &usage).unwrap();
    let tenants = &books.by[&Dimension::Tenant].values;
    let idle = books.of(Kind::Idle);
    assert_eq!(tenants[2].headroom, Usd::ZERO);
    assert_eq!(tenants[0].headroom.get_micros(), idle.get_micros() * 3 / 4);
    assert_eq!(tenants[0].headroom + tenants[1].headroom, idle);
}

/// What stands in reserve is idle time up to its replicas, and no more.
#[test]
fn reserve_is_part_of_what_is_idle() {
    let rows = [(0, Some(POOL), 0, End::Ok, false, tokens(18e6, 0.0))];
    for (reserve, expect) in [(1.0, 500_000), (2.0, 750_000), (0.25, 125_000)] {
        let usage = usage(1, &[None], &rows);
        let books = books(&[compute(1_000_000, &[2.0], &[reserve])], &usage).unwrap();
        assert_eq!(books.of(Kind::Reserve), Usd::micros(expect), "reserve {reserve}");
        assert_eq!(books.of(Kind::Allocated), Usd::micros(250_000));
    }
}

/// One replica of two devices on a node of eight: three quarters of the node are idle, and half of the rest.
#[test]
fn whole_nodes_have_spare_devices() {
    let rows = [(0, Some(POOL), 0, End::Ok, false, tokens(18e6, 0.0))];
    let mut charge = compute(1_000_000, &[1.0], &[]);
    charge.devices.as_mut().unwrap().spare = vec![3.0];
    assert_eq!(charge.device_hours(), Some(8.0));
    let books = books(&[charge], &usage(1, &[None], &rows)).unwrap();
    assert_eq!(books.of(Kind::Allocated), Usd::micros(125_000));
    assert_eq!(books.of(Kind::Idle), Usd::micros(875_000));
}

/// More work than time: all of the hour is used, and a note says so.
#[test]
fn work_is_no_more_than_there_was() {
    let rows = [
        (0, Some(POOL), 0, End::Ok, false, tokens(72e6, 0.0)),
        (1, Some(POOL), 0, End::Cancelled, true, tokens(72e6, 0.0)),
    ];
    let books =
        books(&[compute(1_000_000, &[1.0], &[])], &usage(1, &[None, Some("x")], &rows)).unwrap();
    assert_eq!(books.of(Kind::Idle), Usd::ZERO);
    assert_eq!(books.of(Kind::Failed), Usd::micros(500_000));
    assert!(books.notes[0].contains("scaled down"), "{:?}", books.notes);
    let x = &books.by[&Dimension::Tenant].values[1];
    assert_eq!((x.cancelled, x.retries), (Usd::micros(500_000), Usd::micros(500_000)));
}

/// Attempts without counts take what others took, and belong to nobody; what a limit refused took nothing.
#[test]
fn blank_attempts_are_unallocated() {
    let blank = Sums { requests: 1.0, blank: 1.0, ..Sums::default() };
    let rows = [
        (0, Some(POOL), 0, End::Ok, false, tokens(9e6, 0.0)),
        (0, Some(POOL), 0, End::Failed, false, blank),
        (0, Some(POOL), 0, End::Limited, false, blank),
    ];
    // Of three attempts one is counted, and took a quarter of an hour.
    let books = books(&[compute(1_000_000, &[1.0], &[])], &usage(1, &[None], &rows)).unwrap();
    assert_eq!(books.of(Kind::Unallocated), Usd::micros(250_000));
    assert_eq!(books.by[&Dimension::Tenant].unallocated, Usd::micros(250_000));
    assert!(books.closes());
}

/// Two requests decode for 100 s in a batch of two, and read for 50 s each: half of the device's time was prefill, whatever the model says.
#[test]
fn measured_times_set_the_proportion() {
    let timed = Sums { prefill_s: 50.0, decode_s: 100.0, timed: 1.0, ..tokens(1e6, 1e6) };
    let rows = [(0, Some(POOL), 0, End::Ok, false, timed)];
    let usage = usage(1, &[None], &rows);
    let mut charge = compute(1_000_000, &[1.0], &[]);
    let modelled = books(std::slice::from_ref(&charge), &usage).unwrap();
    charge.devices.as_mut().unwrap().batch = Some(2.0);
    let measured = books(&[charge], &usage).unwrap();
    let prefill = |books: &Books| books.all.values[0].prefill;
    assert_eq!(modelled.of(Kind::Idle), measured.of(Kind::Idle));
    // 600 s of the hour were used, half of them to read: 300 of 3,600 s, where the odd micro-dollar goes.
    assert_eq!(prefill(&measured), Usd::micros(83_334));
    assert_eq!(prefill(&modelled), Usd::micros(27_778));
}

/// Tokens are paid by their meters; the invoice is what counts, and attempts without a price are in it.
#[test]
fn hosted_tokens_by_meter() {
    let usd = |usd: f64| Sums { token_usd: usd, cached: 1e6, ..tokens(1e6, 1e5) };
    let unpriced = Sums { requests: 1.0, token_unpriced: 1.0, ..Sums::default() };
    let rows = [
        (0, Some(RENTED), 0, End::Ok, false, usd(4.8)),
        (1, Some(RENTED), 0, End::Failed, false, unpriced),
    ];
    let usage = usage(1, &[Some("a"), Some("b")], &rows);
    let modelled = charge(Expense::ProviderTokens, Some(RENTED), 4_800_000);
    let books = |charge: Charge| books(&[charge], &usage).unwrap();
    let plain = books(modelled.clone());
    let micros = |books: &Books| books.lines.iter().map(|l| l.usd.get_micros()).collect::<Vec<_>>();
    assert_eq!(micros(&plain), [3_000_000, 300_000, 1_500_000]);
    let invoiced = books(Charge { usd: Usd::micros(9_600_000), invoiced: true, ..modelled });
    assert_eq!(micros(&invoiced), [3_000_000, 300_000, 1_500_000, 4_800_000]);
    assert_eq!(invoiced.of(Kind::Unallocated), Usd::micros(4_800_000));
}

/// What nobody is charged for is a line without money, and devices of no pool are unallocated.
#[test]
fn what_nobody_can_price_says_so() {
    let rows = [
        (0, None, 0, End::Ok, false, tokens(1e6, 1e5)),
        (0, Some(UNKNOWN), 0, End::Ok, false, tokens(1e6, 1e5)),
    ];
    let devices = charge(Expense::ComputeSpot, None, 7);
    let books = books(&[devices], &usage(1, &[None], &rows)).unwrap();
    assert_eq!(books.of(Kind::Unallocated), Usd::micros(7));
    let whys: Vec<&str> = books.lines.iter().map(|l| l.why.as_str()).collect();
    assert!(whys[0].contains("no pool"), "{whys:?}");
    assert!(whys[1].contains("nothing was charged for 1 attempts"), "{whys:?}");
    assert_eq!(whys.len(), 3);
    assert!(books.closes());
}

/// Storage follows what else was paid; a credit does too, and is the only line below zero.
#[test]
fn shared_lines_follow_the_rest() {
    let rows = [
        (0, Some(POOL), 0, End::Ok, false, tokens(27e6, 0.0)),
        (1, Some(POOL), 0, End::Ok, false, tokens(9e6, 0.0)),
    ];
    let charges = [
        charge(Expense::Storage, None, 100),
        compute(1_000_000, &[1.0], &[]),
        charge(Expense::Other, Some(POOL), -400),
    ];
    let books = books(&charges, &usage(1, &[Some("a"), Some("b")], &rows)).unwrap();
    assert_eq!(books.total, Usd::micros(999_700));
    let tenants = &books.by[&Dimension::Tenant].values;
    assert_eq!(tenants[0].shared, Usd::micros(75 - 300));
    assert_eq!(books.lines.iter().filter(|l| l.usd < Usd::ZERO).count(), 1);
    assert_eq!(books.lines.last().unwrap().expense, Expense::Credit);
    assert!(books.closes());
}

#[test]
fn too_much_is_refused() {
    let charges = [charge(Expense::Tax, None, i64::MAX), charge(Expense::Tax, None, 1)];
    assert_eq!(books(&charges, &usage(1, &[None], &[])), Err(CostError::TooMuch));
}

fn sums() -> impl Strategy<Value = Sums> {
    let tokens = || prop_oneof![Just(0.0), 1.0..1e7f64];
    (tokens(), tokens(), tokens(), 0u32..4, any::<bool>()).prop_map(
        |(fresh, cached, output, blank, timed)| Sums {
            requests: 4.0,
            fresh,
            cached,
            output,
            fresh_context: fresh * 500.0,
            output_context: output * 1000.0,
            prefill_s: if timed { fresh * 1e-4 } else { 0.0 },
            decode_s: if timed { output * 1e-2 } else { 0.0 },
            timed: if timed { 4.0 } else { 0.0 },
            token_usd: fresh * 3e-6 + cached * 3e-7 + output * 15e-6,
            logged_usd: fresh * 1e-6,
            blank: f64::from(blank),
            token_unpriced: f64::from(blank),
            ..Sums::default()
        },
    )
}

fn rows(values: u32) -> impl Strategy<Value = Vec<Row>> {
    let end = prop_oneof![
        Just(End::Ok),
        Just(End::Limited),
        Just(End::Failed),
        Just(End::Cancelled),
        Just(End::Unknown)
    ];
    let place = prop_oneof![3 => Just(Some(POOL)), 2 => Just(Some(RENTED)), 1 => Just(Some(UNKNOWN)), 1 => Just(None)];
    let row = (0..values, place, 0u32..6, end, any::<bool>(), sums());
    prop::collection::vec(row, 0..40)
}

fn charges() -> impl Strategy<Value = Vec<Charge>> {
    use Expense::{
        ComputeOwned, ComputeReserved, Credit, Egress, ProviderTokens, Storage, Tax, Tools,
    };
    let money = || 0i64..1_000_000_000_000;
    let devices = (
        money(),
        prop::collection::vec(0.0..20.0f64, 0..8),
        prop::collection::vec(0.0..9.0f64, 0..8),
        any::<bool>(),
    );
    let devices = devices.prop_map(|(micros, replicas, reserve, batch)| {
        let mut charge = compute(micros, &replicas, &reserve);
        charge.devices.as_mut().expect("a compute charge has devices").batch =
            batch.then_some(16.0);
        charge
    });
    let expense = prop::sample::select(vec![
        ComputeOwned,
        ComputeReserved,
        Egress,
        ProviderTokens,
        Storage,
        Tax,
        Tools,
    ]);
    let place = prop_oneof![Just(None), Just(Some(POOL)), Just(Some(RENTED)), Just(Some(UNKNOWN))];
    let plain =
        (expense, place, money(), any::<bool>()).prop_map(|(expense, place, micros, invoiced)| {
            Charge { invoiced, ..charge(expense, place, micros) }
        });
    let credit = money().prop_map(|micros| charge(Credit, None, -micros));
    prop::collection::vec(prop_oneof![2 => devices, 4 => plain, 1 => credit], 0..8)
}

const NAMES: [Option<&str>; 4] = [Some("b"), Some("a"), None, Some("c")];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(1_000)) })]
    /// Whatever was used and paid: nothing is missing of the total nor of a dimension, nothing is below zero but a credit, and values of a
    /// line sum to the line.
    #[test]
    fn books_close(charges in charges(), rows in rows(4)) {
        let usage = usage(5, &NAMES, &rows);
        let books = books(&charges, &usage).unwrap();
        prop_assert_eq!(books.total, charges.iter().map(|c| c.usd).sum());
        prop_assert_eq!(books.residual(), Usd::ZERO);
        prop_assert!(books.closes());
        for line in &books.lines {
            prop_assert!(line.usd >= Usd::ZERO || line.expense == Expense::Credit, "{:?}", line);
        }
        for shares in books.by.values() {
            for (line, parts) in books.lines.iter().zip(&shares.split) {
                prop_assert!(parts.is_empty() || parts.iter().copied().sum::<Usd>() == line.usd);
            }
            for share in &shares.values {
                let parts = [share.prefill, share.cached, share.decode, share.kv, share.other, share.failed, share.cancelled, share.limited, share.headroom];
                prop_assert!(parts.iter().all(|usd| *usd >= Usd::ZERO));
                prop_assert_eq!(parts.into_iter().sum::<Usd>() + share.shared, share.total);
                prop_assert!(share.retries <= share.total - share.headroom - share.shared + Usd::micros(20));
            }
        }
    }

    /// Nobody's bill depends on the order in which values were seen.
    #[test]
    fn order_is_nothing(charges in charges(), rows in rows(4)) {
        let turned: Vec<Row> = rows.iter().map(|r| (3 - r.0, r.1, r.2, r.3, r.4, r.5)).collect();
        let names: Vec<_> = NAMES.iter().rev().copied().collect();
        let one = books(&charges, &usage(5, &NAMES, &rows)).unwrap();
        let other = books(&charges, &usage(5, &names, &turned)).unwrap();
        prop_assert_eq!(&one.lines, &other.lines);
        let mut back = other.by[&Dimension::Tenant].values.clone();
        back.reverse();
        prop_assert_eq!(&one.by[&Dimension::Tenant].values, &back);
    }

    /// Attribution is additive: a tenant that is told apart as two pays as much in sum, to a micro-dollar for each of the two and each line.
    /// (Shares of headroom are cut at zero, which is not additive: here no line is idle.)
    #[test]
    fn a_tenant_in_two_pays_the_same(rows in rows(2), apart in prop::collection::vec(any::<bool>(), 40), micros in 0i64..1_000_000_000) {
        let charges = [
            charge(Expense::ComputeOnDemand, Some(POOL), micros),
            charge(Expense::ProviderTokens, Some(RENTED), micros / 3),
            charge(Expense::Tools, None, micros / 7),
        ];
        let split: Vec<Row> = rows.iter().zip(&apart).map(|(r, apart)| {
            (if r.0 == 1 && *apart { 2 } else { r.0 }, r.1, r.2, r.3, r.4, r.5)
        }).collect();
        let whole = books(&charges, &usage(6, &[Some("a"), Some("b")], &rows)).unwrap();
        let parts = books(&charges, &usage(6, &[Some("a"), Some("b"), Some("b2")], &split)).unwrap();
        prop_assert_eq!(&whole.lines, &parts.lines);
        let (whole, parts) = (&whole.by[&Dimension::Tenant].values, &parts.by[&Dimension::Tenant].values);
        let apart = (whole[1].total - parts[1].total - parts[2].total).get_micros().unsigned_abs();
        prop_assert!(apart <= 2 * 40, "{apart}");
    }
}
