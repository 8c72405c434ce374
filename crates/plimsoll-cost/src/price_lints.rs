//! Prices that look wrong. Catalogues are copied by hand and age; a price that is off by ten is found here, or on the bill.

use plimsoll_units::UsdPerToken;

/// The prices of a hosted model, and how old they are.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceRow {
    /// Who hosts what.
    pub name: String,
    /// A fresh prompt token.
    pub input: UsdPerToken,
    /// A generated token.
    pub output: UsdPerToken,
    /// A cached prompt token.
    pub cached_input: Option<UsdPerToken>,
    /// A prompt token that is written to a cache.
    pub cache_write: Option<UsdPerToken>,
    /// The first two in a batch queue.
    pub batch: Option<(UsdPerToken, UsdPerToken)>,
    /// A fresh prompt token that is served first.
    pub priority_input: Option<UsdPerToken>,
    /// Days since the price was read; none where nobody says when.
    pub age_days: Option<i64>,
}

/// A price that looks wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceLint {
    /// `output-ratio`, `cached-above-input`, `cache-write-free`, `batch-above-standard`, `priority-ratio`, `changed`, `old`, `undated`, `free`.
    pub code: &'static str,
    /// Whose price.
    pub name: String,
    /// What is wrong, with its numbers.
    pub message: String,
    /// What was found; a ratio, days or dollars for a million tokens.
    pub found: f64,
    /// What it is held against.
    pub against: f64,
}

/// A list price of an output token is one to ten times that of a fresh prompt token: the median of 77 hosted models is 5 (2026-08).
const OUTPUT_RATIO: (f64, f64) = (1.0, 10.0);
/// Being served first costs one to four times as much; twice is usual.
const PRIORITY_RATIO: (f64, f64) = (1.0, 4.0);
/// A price that changed by more than this since the table before is as likely a slip.
const CHANGED: f64 = 2.0;
/// List prices change a few times a year.
const OLD_DAYS: i64 = 90;

/// What looks wrong in a table of prices, row by row; `before` is an older table, of which rows with the same name are held against it.
pub fn price_lints(rows: &[PriceRow], before: &[PriceRow]) -> Vec<PriceLint> {
    let mut lints = Vec::new();
    for row in rows {
        let mut lint = |code: &'static str, message: String, found: f64, against: f64| {
            let message = format!("`{}`: {message}", row.name);
            lints.push(PriceLint { code, name: row.name.clone(), message, found, against });
        };
        let (input, output) = (mtok(row.input), mtok(row.output));
        if input <= 0.0 || output <= 0.0 {
            lint(
                "free",
                format!(
                    "${input}/Mtok in and ${output}/Mtok out: nobody serves for nothing; leave a price out that is not known"
                ),
                input.min(output),
                0.0,
            );
        } else if !within(output / input, OUTPUT_RATIO) {
            let ratio = output / input;
            let (low, high) = OUTPUT_RATIO;
            lint(
                "output-ratio",
                format!(
                    "output is {ratio:.1} times input (${output} against ${input}/Mtok), where {low} to {high} is usual"
                ),
                ratio,
                if ratio > high { high } else { low },
            );
        }
        if let Some(cached) = row.cached_input.map(mtok).filter(|cached| *cached > input) {
            lint(
                "cached-above-input",
                format!("a cached token costs ${cached}/Mtok, a fresh one ${input}"),
                cached,
                input,
            );
        }
        if row.cache_write.is_some_and(|write| write == UsdPerToken::ZERO) && input > 0.0 {
            lint(
                "cache-write-free",
                format!(
                    "writing to the cache is free, where a fresh token costs ${input}/Mtok: more likely not published"
                ),
                0.0,
                input,
            );
        }
        if let Some((batch_in, batch_out)) = row.batch {
            for (of, batch, standard) in
                [("input", mtok(batch_in), input), ("output", mtok(batch_out), output)]
            {
                if batch > standard {
                    lint(
                        "batch-above-standard",
                        format!(
                            "{of} in the batch queue costs ${batch}/Mtok, ${standard} outside of it"
                        ),
                        batch,
                        standard,
                    );
                }
            }
        }
        if let Some(priority) = row.priority_input.map(mtok).filter(|_| input > 0.0) {
            let (ratio, (low, high)) = (priority / input, PRIORITY_RATIO);
            if !within(ratio, PRIORITY_RATIO) {
                lint(
                    "priority-ratio",
                    format!(
                        "priority input is {ratio:.1} times input (${priority} against ${input}/Mtok), where {low} to {high} is usual"
                    ),
                    ratio,
                    if ratio > high { high } else { low },
                );
            }
        }
        if let Some(old) = before.iter().find(|old| old.name == row.name) {
            for (of, was, is) in
                [("input", mtok(old.input), input), ("output", mtok(old.output), output)]
            {
                if was > 0.0 && is > 0.0 && !within(is / was, (1.0 / CHANGED, CHANGED)) {
                    lint(
                        "changed",
                        format!(
                            "{of} was ${was}/Mtok and is ${is}: more than {CHANGED} times apart"
                        ),
                        is,
                        was,
                    );
                }
            }
        }
        match row.age_days {
            Some(days) if days > OLD_DAYS => {
                lint(
                    "old",
                    format!("the price is {days} days old; more than {OLD_DAYS} is old"),
                    days as f64,
                    OLD_DAYS as f64,
                );
            }
            Some(_) => {}
            None => lint(
                "undated",
                "nobody says when the price held".to_owned(),
                f64::NAN,
                OLD_DAYS as f64,
            ),
        }
    }
    lints
}

/// Dollars for a million.
fn mtok(price: UsdPerToken) -> f64 {
    price.get_picos() as f64 / 1e6
}

/// Ends included, and whatever a ratio of rounded prices misses them by.
fn within(x: f64, (low, high): (f64, f64)) -> bool {
    x >= low * (1.0 - 1e-9) && x <= high * (1.0 + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, input: f64, output: f64) -> PriceRow {
        PriceRow {
            name: name.to_owned(),
            input: price(input),
            output: price(output),
            cached_input: None,
            cache_write: None,
            batch: None,
            priority_input: None,
            age_days: Some(10),
        }
    }

    fn price(usd_per_mtok: f64) -> UsdPerToken {
        UsdPerToken::picos((usd_per_mtok * 1e6).round() as u64)
    }

    #[track_caller]
    fn check(row: PriceRow, expect: &[&str]) {
        let codes: Vec<&str> = price_lints(&[row], &[]).iter().map(|lint| lint.code).collect();
        assert_eq!(codes, expect);
    }

    #[test]
    fn rows() {
        check(row("usual", 3.0, 15.0), &[]);
        check(row("ends", 1.0, 10.0), &[]);
        check(row("embeds", 1.0, 1.0), &[]);
        // An open model of which the output price has slipped a digit.
        check(row("thirty times", 0.2, 6.0), &["output-ratio"]);
        check(row("upside down", 3.0, 1.0), &["output-ratio"]);
        // A small model that is served first at the price of a large one.
        check(
            PriceRow { priority_input: Some(price(2.5)), ..row("first", 0.05, 0.4) },
            &["priority-ratio"],
        );
        check(
            PriceRow { cache_write: Some(price(0.0)), ..row("write", 0.4, 0.9) },
            &["cache-write-free"],
        );
        check(
            PriceRow { cached_input: Some(price(3.1)), ..row("cached", 3.0, 15.0) },
            &["cached-above-input"],
        );
        check(
            PriceRow { batch: Some((price(4.0), price(7.5))), ..row("batch", 3.0, 15.0) },
            &["batch-above-standard"],
        );
        check(PriceRow { age_days: Some(91), ..row("old", 3.0, 15.0) }, &["old"]);
        check(PriceRow { age_days: None, ..row("whenever", 3.0, 15.0) }, &["undated"]);
        check(row("free", 0.0, 0.0), &["free"]);
    }

    #[test]
    fn against_the_table_before() {
        let before = [row("a", 3.0, 15.0), row("b", 3.0, 15.0)];
        let lints = price_lints(
            &[row("a", 6.1, 15.0), row("b", 6.0, 30.0), row("new", 9.0, 45.0)],
            &before,
        );
        assert_eq!(lints.len(), 1);
        assert_eq!(lints[0].message, "`a`: input was $3/Mtok and is $6.1: more than 2 times apart");
        assert_eq!((lints[0].found, lints[0].against), (6.1, 3.0));
    }
}
