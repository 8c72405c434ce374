//! Bills of a few lines, each worked by hand.

use std::io::Write as _;

use plimsoll_cost::ChargeKind;

use super::*;

const FOCUS: &str = include_str!("../../tests/bills/focus.csv");
const CUR: &str = include_str!("../../tests/bills/aws_cur.csv");
const CUR_2: &str = include_str!("../../tests/bills/aws_cur_2.csv");
/// Midnight before the first of March 2026.
const MARCH: i64 = 1_772_323_200;

fn read(text: &str) -> Result<Bill, BillError> {
    read_bill(text.as_bytes(), "bill.csv", &BillOptions::default())
}

/// The kind of each line, how it was bought, and what it comes to: billed and effective, in millionths.
fn check_lines(text: &str, expect: &[(ChargeKind, Option<&str>, i64, i64)]) -> Bill {
    let bill = read(text).expect("a bill");
    let own: Vec<(ChargeKind, Option<&str>, i64, i64)> = bill
        .lines
        .iter()
        .map(|line| {
            let (billed, effective) = (line.billed.get_micros(), line.effective.get_micros());
            (line.kind, line.pricing.as_deref(), billed, effective)
        })
        .collect();
    assert_eq!(own, expect);
    assert_eq!(bill.rejects, []);
    bill
}

#[test]
fn focus() {
    use ChargeKind::{Commitment, Compute, Credit, Network, Tax, Tokens};
    let bill = check_lines(
        FOCUS,
        &[
            (Compute, Some("on demand"), 98_320_000, 98_320_000),
            (Compute, Some("reserved"), 0, 61_250_000),
            (Commitment, Some("reserved"), 0, 3_750_000),
            (Commitment, Some("reserved"), 65_000_000, 0),
            // A half goes up.
            (Tokens, Some("on demand"), 13, 13),
            (Network, Some("on demand"), 4_500_000, 4_500_000),
            (Credit, None, -10_000_000, -10_000_000),
            (Credit, Some("on demand"), -2_500_000, -2_500_000),
            (Tax, None, 12_070_000, 12_070_000),
        ],
    );
    // An hour on demand and the next by the plan are no overlap; nor is a day of links over it.
    assert_eq!(bill.notes, Vec::<String>::new());
    assert_eq!(
        (bill.format.as_str(), bill.currency.as_str(), bill.usd_per_unit),
        ("focus 1.2", "USD", 1.0)
    );
    let first = &bill.lines[0];
    assert_eq!(
        *first,
        BillLine {
            kind: Compute,
            service: "Machines".to_owned(),
            description: "8 GPU machine, by the hour".to_owned(),
            resource: Some("gpu-1".to_owned()),
            region: Some("us-east".to_owned()),
            pricing: Some("on demand".to_owned()),
            account: Some("team-a".to_owned()),
            from_s: MARCH,
            until_s: MARCH + 3600,
            billed: Usd::micros(98_320_000),
            effective: Usd::micros(98_320_000),
            list: Some(Usd::micros(98_320_000)),
            quantity: Some((1.0, "Hours".to_owned())),
            line: 2,
        }
    );
    assert_eq!(
        (bill.lines[6].resource.as_ref(), bill.lines[6].list, bill.lines[6].account.as_deref()),
        (None, None, Some("org-1"))
    );
    // What is given back has no quantity that could be used.
    assert_eq!(bill.lines[7].quantity, None);
}

#[test]
fn versions_of_focus() {
    let check = |column: &str, expect: &str| {
        let text = FOCUS.replacen("InvoiceId", column, 1).replacen("SkuMeter", "x_Meter", 1);
        assert_eq!(read(&text).expect("a bill").format, expect);
    };
    check("x_Invoice", "focus 1.0");
    check("CommitmentDiscountQuantity", "focus 1.1");
    check("invoiceid", "focus 1.2");
    check("AllocatedMethodId", "focus 1.3");
}

/// What is covered costs what the plan comes to, and of the plan's own fee only what nobody used is left.
#[test]
fn a_report_of_aws() {
    use ChargeKind::{Commitment, Compute, Credit, Observability, Tax, Tokens};
    let bill = check_lines(
        CUR,
        &[
            (Compute, Some("on demand"), 1_250_000, 1_250_000),
            (Compute, Some("spot"), 500_000, 500_000),
            (Compute, Some("reserved"), 0, 750_000),
            (Commitment, Some("reserved"), 372_000_000, 1_750_000),
            (Compute, Some("reserved"), 1_250_000, 900_000),
            (Commitment, None, -1_250_000, 0),
            (Commitment, None, 1_000_000, 100_000),
            (Tokens, Some("on demand"), 6_000, 6_000),
            (Observability, Some("on demand"), 1_500_000, 1_500_000),
            (Credit, None, -125_000, -125_000),
            (Tax, None, 350_000, 350_000),
        ],
    );
    assert_eq!((bill.format.as_str(), bill.notes.len()), ("aws-cur", 0));
    assert_eq!(bill.lines[0].service, "Amazon Elastic Compute Cloud");
    assert_eq!(bill.lines[7].quantity, Some((2000.0, "1K tokens".to_owned())));
}

/// A report without the columns that spread plans: they count as they were billed, all of them, and that is said.
#[test]
fn a_report_that_spreads_nothing() {
    use ChargeKind::{Commitment, Compute, Storage};
    let bill = check_lines(
        CUR_2,
        &[
            (Compute, Some("on demand"), 1_250_000, 1_250_000),
            (Compute, Some("reserved"), 1_250_000, 1_250_000),
            (Commitment, None, -1_250_000, -1_250_000),
            (Storage, Some("on demand"), 8_000_000, 8_000_000),
        ],
    );
    assert_eq!((bill.format.as_str(), bill.lines[3].until_s), ("aws-cur-2", MARCH + 31 * 86_400));
    assert_eq!(
        bill.notes,
        [
            "2 lines do not say what they come to once commitments are spread over their use: they count as they were billed"
        ]
    );
}

/// The same in a gzip, and with a mark of its encoding.
#[test]
fn packed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(FOCUS.as_bytes()).expect("packed");
    let packed = gzip.finish().expect("packed");
    let plain = read(FOCUS).expect("a bill");
    assert_eq!(read_bill(&packed, "bill.csv.gz", &BillOptions::default()).expect("a bill"), plain);
    assert_eq!(read(&format!("\u{feff}{FOCUS}")).expect("a bill"), plain);
}

/// A table of few columns: the rows follow its heading.
fn small(rows: &[&str]) -> String {
    let mut text = "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ServiceName,ResourceId,ConsumedQuantity,ConsumedUnit,ChargeDescription\n".to_owned();
    rows.iter().for_each(|row| text += &format!("{row}\n"));
    text
}

const DAY: &str = "2026-03-01,2026-03-02";

#[test]
fn lines_that_are_not_taken() {
    let good = format!("1,USD,Usage,{DAY},Compute,a,1,Hours,hour");
    let check = |row: &str, expect: &str| {
        let bill = read(&small(&[&good, &row.replace("DAY", DAY)])).expect("a bill");
        assert_eq!(bill.lines.len(), 1, "{row}");
        assert_eq!(bill.rejects, [(3, expect.to_owned())], "{row}");
        let sum = if expect.contains("$2.50") {
            ("1 of them say an amount", "$2.50")
        } else {
            ("0 of them", "$0.00")
        };
        let note = bill.notes.iter().find(|note| note.starts_with("1 of 2 lines are in no sum"));
        assert!(note.is_some_and(|note| note.contains(sum.0) && note.ends_with(sum.1)), "{note:?}");
    };
    check(
        "2.5,USD,Usage,DAY,Compute,b,-1,Hours,hour",
        "`ConsumedQuantity` is `-1`, below zero; its $2.50 are in no sum",
    );
    check(
        "2.5,USD,Usage,DAY,Compute,b,many,Hours,hour",
        "`ConsumedQuantity` is `many`, which is no number; its $2.50 are in no sum",
    );
    check(
        "2.5,USD,Rent,DAY,Compute,b,1,Hours,hour",
        "`ChargeCategory` is `Rent`, which is none of Usage, Purchase, Tax, Credit and Adjustment; its $2.50 are in no sum",
    );
    check(
        "2.5,USD,,DAY,Compute,b,1,Hours,hour",
        "`ChargeCategory` is missing; its $2.50 are in no sum",
    );
    check(
        "2.5,,Usage,DAY,Compute,b,1,Hours,hour",
        "it does not say its currency; its $2.50 are in no sum",
    );
    check(
        "2.5,USD,Usage,soon,2026-03-02,Compute,b,1,Hours,hour",
        "the beginning of what it is for is `soon`, which cannot be read; its $2.50 are in no sum",
    );
    check(
        "2.5,USD,Usage,2026-03-02,2026-03-01,Compute,b,1,Hours,hour",
        "it is for a time that ends (2026-03-01) before it begins (2026-03-02); its $2.50 are in no sum",
    );
    check(
        "a lot,USD,Usage,DAY,Compute,b,1,Hours,hour",
        "`BilledCost` is `a lot`, which is no number",
    );
    check(
        "1e300,USD,Usage,DAY,Compute,b,1,Hours,hour",
        "`BilledCost` is `1e300`, more than can be",
    );
    check(",USD,Usage,DAY,Compute,b,1,Hours,hour", "`BilledCost` is missing");
    check("2.5,USD,Usage,DAY", "it has 5 fields, and the heading 10");
}

/// The same line twice is once too often; the same machine twice over is only strange.
#[test]
fn lines_that_lie_over_each_other() {
    let line = |cost: &str, from: &str, until: &str, resource: &str| {
        format!(
            "{cost},USD,Usage,2026-03-01T{from}:00Z,2026-03-01T{until}:00Z,Compute,{resource},1,Hours,hour"
        )
    };
    let check = |rows: &[String], rejects: &[(u64, &str)], notes: &[&str]| {
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let bill = read(&small(&rows)).expect("a bill");
        let own: Vec<(u64, &str)> =
            bill.rejects.iter().map(|(n, why)| (*n, why.as_str())).collect();
        assert_eq!(own, rejects);
        let said: Vec<&String> =
            bill.notes.iter().filter(|note| !note.contains("once commitments")).collect();
        assert_eq!(said, notes);
    };
    let first = line("1", "00:00", "01:00", "a");
    check(
        &[first.clone(), line("2", "01:00", "02:00", "a"), format!("{first} ")],
        &[(4, "it is line 2 once more, word for word; its $1.00 are in no sum")],
        &["1 of 3 lines are in no sum; 1 of them say an amount, together $1.00"],
    );
    // Half an hour of it, by a line that stands before.
    check(
        &[line("2", "00:30", "02:00", "a"), first.clone(), line("4", "00:00", "01:00", "b")],
        &[],
        &[
            "lines 2 and 3 both charge `hour` of `a` for 1800 s of the same time: $2.00 and $1.00, and both count",
        ],
    );
    // Without a resource nobody knows whether it is the same.
    check(&[line("1", "00:00", "01:00", ""), line("2", "00:00", "01:00", "")], &[], &[]);
    let many: Vec<String> = (0..9).map(|n| line(&format!("{n}"), "00:00", "01:00", "a")).collect();
    let bill = read(&small(&many.iter().map(String::as_str).collect::<Vec<_>>())).expect("a bill");
    assert!(bill.notes.contains(
        &"3 more lines charge what another does for the same time, and all count".to_owned()
    ));
    assert_eq!(bill.lines.iter().map(|line| line.billed).sum::<Usd>(), Usd::micros(36_000_000));
}

#[test]
fn currencies() {
    let row =
        |currency: &str| format!("100.5,{currency},Usage,{DAY},Compute,{currency},1,Hours,hour");
    let options = |rate: f64| BillOptions { usd_per: BTreeMap::from([("EUR".to_owned(), rate)]) };
    let bill =
        read_bill(small(&[&row("EUR")]).as_bytes(), "bill.csv", &options(1.08)).expect("a bill");
    assert_eq!((bill.currency.as_str(), bill.usd_per_unit), ("EUR", 1.08));
    assert_eq!(bill.lines[0].billed, Usd::micros(108_540_000));
    let check = |rows: &[&str], options: &BillOptions, expect: &str, help: &str| {
        let error = read_bill(small(rows).as_bytes(), "bill.csv", options).expect_err("no bill");
        assert_eq!((error.to_string().as_str(), error.help().as_deref()), (expect, Some(help)));
    };
    check(
        &[&row("EUR")],
        &BillOptions::default(),
        "bill.csv: is in EUR, and nobody says what one EUR is in dollars",
        "pass the rate of the invoice, such as `--usd-per EUR=1.08`",
    );
    check(
        &[&row("EUR")],
        &options(0.0),
        "bill.csv: is in EUR, and 0 dollars for one EUR is no rate",
        "a rate is a number above zero, such as `--usd-per EUR=1.08`",
    );
    check(
        &[&row("USD"), &row("USD"), &row("EUR")],
        &options(1.08),
        "bill.csv: line 2 is in USD, line 4 in EUR: amounts cannot be added",
        "split it by currency, and give each part by itself",
    );
}

#[test]
fn files_that_are_no_bill() {
    let check = |bytes: &[u8], expect: &str, help: Option<&str>| {
        let error = read_bill(bytes, "bill.csv", &BillOptions::default()).expect_err("no bill");
        assert_eq!((error.to_string().as_str(), error.help().as_deref()), (expect, help));
    };
    let formats =
        Some("export it as CSV in FOCUS (1.0 to 1.3), or as an AWS cost and usage report");
    check(b"", "bill.csv: has no line", None);
    check(small(&[]).as_bytes(), "bill.csv: has no line", None);
    check(
        b"when,what,how much\n1,2,3\n",
        "bill.csv: is no bill that is known: it is a table of `when`, `what`, `how much`",
        formats,
    );
    check(b"PAR1 and more", "bill.csv: is no bill that is known: it is a Parquet file", formats);
    check(b"\xff\xfe,1\n", "bill.csv: is no bill that is known: it is no text of columns", formats);
    check(
        b"BilledCost,ChargeCategory\n1,Usage\n",
        "bill.csv: a bill of focus 1.0 has the column `BillingCurrency`, and this one has not",
        Some("export it again, with `BillingCurrency`"),
    );
    check(
        b"lineItem/UnblendedCost,lineItem/CurrencyCode\n1,USD\n",
        "bill.csv: a bill of aws-cur has the column `lineItem/LineItemType`, and this one has not",
        Some("export it again, with `lineItem/LineItemType`"),
    );
    check(
        small(&["x,USD,Usage,2026-03-01,2026-03-02,Compute,a,1,Hours,hour"]).as_bytes(),
        "bill.csv: none of its 1 lines can be understood, such as line 2: `BilledCost` is `x`, which is no number",
        Some("mend the first, and see whether others have the same"),
    );
    check(
        &[0x1f, 0x8b, 8, 0],
        "bill.csv: cannot be read",
        Some("if it is packed, it may be cut short: copy it again"),
    );
}

/// Lines are counted as an editor counts them, though a field goes over several.
#[test]
fn lines_as_an_editor_counts_them() {
    let text = small(&[
        &format!("1,USD,Usage,{DAY},Compute,a,1,Hours,\"an\nhour\""),
        &format!("1,USD,Usage,{DAY},Compute,b,1,Hours,hour"),
        &format!("1,USD,Usage,{DAY},Compute,c,-1,Hours,hour"),
    ]);
    let bill = read(&text).expect("a bill");
    let lines: Vec<u64> = bill.lines.iter().map(|line| line.line).collect();
    assert_eq!((lines, bill.rejects[0].0), (vec![2, 4], 5));
}

proptest::proptest! {
    /// Nothing is lost: whatever a line is, it is taken or rejected, and what amounts come to is in one of both.
    #[test]
    fn every_amount_is_somewhere(
        rows in proptest::collection::vec(
            (-5_000_000i64..5_000_000, proptest::sample::select(&["Usage", "Tax", "Credit", "Purchase", "Odd"][..]), -2i32..3, 0u32..3),
            1..30,
        ),
    ) {
        let text: Vec<String> = rows
            .iter()
            .map(|(micros, category, quantity, resource)| {
                let sign = if *micros < 0 { "-" } else { "" };
                let (whole, part) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
                format!("{sign}{whole}.{part:06},USD,{category},{DAY},Compute,{resource},{quantity},Hours,hour")
            })
            .collect();
        let expect: i64 = rows.iter().map(|(micros, ..)| micros).sum();
        match read(&small(&text.iter().map(String::as_str).collect::<Vec<_>>())) {
            Ok(bill) => {
                proptest::prop_assert_eq!(bill.lines.len() + bill.rejects.len(), rows.len());
                let taken = bill.lines.iter().map(|line| line.billed).sum::<Usd>();
                let rest = Usd::micros(expect) - taken;
                let note = format!("together {rest}");
                let said = bill.notes.iter().any(|own| own.ends_with(&note));
                proptest::prop_assert!(said || bill.rejects.is_empty() && rest == Usd::ZERO);
            }
            Err(error) => {
                let all = matches!(error, BillError::Nothing { lines, .. } if lines == rows.len());
                proptest::prop_assert!(all, "{}", error);
            }
        }
    }
}
