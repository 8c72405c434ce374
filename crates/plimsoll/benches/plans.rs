//! Every plan simulated for hours on seeds that it has not seen. `cargo bench -p plimsoll --bench plans [NAME]` runs the cases whose names contain that.

#![expect(clippy::print_stdout, reason = "what was measured is printed")]

#[path = "../tests/it/common/mod.rs"]
mod common;
#[path = "../tests/it/oracle.rs"]
mod oracle;

fn main() {
    let wanted = std::env::args().skip(1).find(|own| !own.starts_with("--")).unwrap_or_default();
    let mut wrong = 0;
    println!("| case | planned | said | missed/allowed | fewer | missed/allowed |");
    println!("|---|---|---|---|---|---|");
    for case in oracle::all().into_iter().filter(|case| case.name.contains(&wanted)) {
        let row = oracle::hold(&case, case.hours());
        let held = oracle::holds(&row);
        wrong += usize::from(!held);
        println!(
            "| {}{} | {} | {} to {} | {:.2} | {} | {:.2} |",
            case.name,
            if held { "" } else { " **wrong**" },
            row.n,
            row.low,
            row.high,
            row.with_n,
            row.fewer,
            row.with_fewer
        );
    }
    assert_eq!(wrong, 0, "plans that do not hold, or are generous");
}
