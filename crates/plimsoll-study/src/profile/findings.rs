//! What a reader must know, and what breaks a plan that is made from averages.

use super::arrivals::{WIDTHS, WINDOWS_MAX};
use super::gather::{Gathered, Part};
use super::result::{
    About, ClassProfile, Clients, Finding, PoissonTokens, SeasonVerdict, SilenceKind,
};
use super::series::SeriesProfile;
use super::{ProfileInput, Watch};

/// Facts of the log that its figures cannot be read without.
pub(super) fn warnings(
    gathered: &Gathered,
    whole: &Part,
    classes: &[ClassProfile],
    series: Option<&SeriesProfile>,
    input: &ProfileInput,
) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(class) = classes.first() {
        of_rows(gathered, whole, class, input, &mut all);
    }
    if let Some(series) = series {
        of_series(series, &mut all);
    }
    all
}

fn of_rows(
    gathered: &Gathered,
    whole: &Part,
    class: &ClassProfile,
    input: &ProfileInput,
    all: &mut Vec<String>,
) {
    let known = &class.known;
    if whole.known.at == 0 {
        let why = input.no_clock.as_deref().unwrap_or("rows have no time");
        all.push(format!(
            "{why}: nothing can be said of arrivals, bursts, queues or tokens in memory over time"
        ));
    } else if whole.known.at < whole.rows {
        all.push(format!(
            "{} of rows have a time; figures of arrivals are of those alone",
            percent(known.at)
        ));
    }
    if gathered.early > 0 {
        all.push(format!(
            "{} rows are stamped before the log's first arrival, and were counted without a time",
            whole_number(gathered.early as f64)
        ));
    }
    for (share, what) in [(known.prompt, "prompt"), (known.output, "output")] {
        if share < 1.0 {
            all.push(format!(
                "{} of rows say how long their {what} is; sums of {what} tokens are of those alone",
                percent(share)
            ));
        }
    }
    if known.cached < 1.0 {
        let said = if known.cached > 0.0 {
            format!("{} of rows say", percent(known.cached))
        } else {
            "no row says".to_owned()
        };
        all.push(format!(
            "{said} how much of the prompt was cached, so that fresh tokens are not given: prompt tokens are an upper bound of what was prefilled"
        ));
    }
    if gathered.weighted > 0 {
        all.push(format!(
            "{} rows stand for several requests or parts of one: sums are scaled up, but a sample hides bursts, and time between arrivals is that of the rows",
            whole_number(gathered.weighted as f64)
        ));
    }
    if gathered.summed {
        all.push(
            "a cluster handed back sums, not rows: percentiles of the time between arrivals are within 0.1 %, the tick of the clock was looked for in the first rows, and rank correlation, the prefill queue and tokens in memory were not worked out".to_owned(),
        );
    } else if gathered.times.bucketed().is_some() {
        all.push(
            "there are more rows than each arrival is kept of: percentiles of the time between arrivals are within 0.1 %, the tick of the clock was looked for in its first 200,000 rows, and the prefill queue was not worked out".to_owned(),
        );
    }
    if !gathered.summed && !gathered.pairs.exact() {
        all.push(format!(
            "rank correlation is of a sample of {} rows",
            whole_number(gathered.pairs.kept().len() as f64)
        ));
    }
    if let Some(watch) = gathered.times.last().map(|last_ns| Watch { last_ns }) {
        let missing: Vec<String> = WIDTHS
            .iter()
            .filter(|width| watch.complete(**width).is_none())
            .map(|width| duration(*width as f64))
            .collect();
        let (seconds, missing) = (watch.span_s(), missing.join(" and "));
        if !missing.is_empty() && seconds < WINDOWS_MAX as f64 {
            all.push(format!(
                "the log spans {}: too short for windows of {missing}, and nothing can be said of days or weeks",
                duration(seconds)
            ));
        } else if !missing.is_empty() {
            all.push(format!(
                "the log spans {}: windows of {missing} are too many to count; if it is not as long, a row has a wrong date",
                duration(seconds)
            ));
        }
    }
    let clipped = whole.measured.clipped + whole.modelled.clipped;
    if clipped > 0 {
        all.push(format!(
            "{} requests took longer than a day, and were counted in memory for a day",
            whole_number(clipped as f64)
        ));
    }
    let ends = &class.failures.share_by_end;
    let failed = ends.limited + ends.failed + ends.cancelled;
    if known.end <= 0.0 {
        all.push(
            "the log does not say how requests ended: those that failed or were refused may be missing, and demand is a lower bound".to_owned(),
        );
    } else if failed <= 0.0 && class.rows >= 1000 {
        all.push(format!(
            "none of {} rows failed or was refused: the log may hold survivors alone, and demand is a lower bound",
            whole_number(class.rows as f64)
        ));
    }
    if let Some(tick) = &class.tick {
        all.push(format!(
            "stamps lie on a tick of {:.3} s: windows shorter than {} and the time between arrivals say more of the clock than of the users",
            tick.seconds,
            duration((3.0 * tick.seconds).ceil())
        ));
    }
}

fn of_series(series: &SeriesProfile, all: &mut Vec<String>) {
    all.push(format!(
        "{} holds rates by client and window of {}, and no requests: nothing can be said of single requests",
        series.name,
        duration(series.window_s as f64)
    ));
    if series.gaps.windows > 0 {
        all.push(format!(
            "all {} clients are at zero at once in {} windows of {}: gaps in the collection, not idle users; treat them as missing",
            series.clients,
            series.gaps.windows,
            duration(series.window_s as f64)
        ));
    }
    let known = series.share_of_requests_with_length_data;
    if known < 0.999 {
        all.push(format!(
            "lengths are known of {} of requests; figures of tokens are of those alone",
            percent(known)
        ));
    }
}

/// What breaks a plan that is made from averages, class by class.
pub(super) fn findings(classes: &[ClassProfile], series: Option<&SeriesProfile>) -> Vec<Finding> {
    let mut all = Vec::new();
    for class in classes {
        let mut found = Found { class: &class.name, all: &mut all };
        bursts(class, &mut found);
        queue(class, &mut found);
        peaks(class, &mut found);
        lengths(class, &mut found);
        context(class, &mut found);
        rest(class, &mut found);
    }
    if let Some(series) = series {
        let mut found = Found { class: "all", all: &mut all };
        of_clients_and_windows(series, &mut found);
    }
    all
}

/// Findings of a class on their way.
struct Found<'a> {
    class: &'a str,
    all: &'a mut Vec<Finding>,
}

impl Found<'_> {
    fn add(&mut self, about: About, factor: Option<f64>, window_s: Option<u64>, sentence: String) {
        let sentence =
            if self.class == "all" { sentence } else { format!("{}: {sentence}", self.class) };
        let class = self.class.to_owned();
        self.all.push(Finding { class, about, factor, window_s, sentence });
    }
}

/// Less than this is not worth a sentence.
const WORTH: f64 = 1.1;

fn bursts(class: &ClassProfile, found: &mut Found<'_>) {
    // On a clock that ticks, shorter windows measure the clock.
    let least = class.tick.as_ref().map_or(0.0, |tick| 3.0 * tick.seconds);
    for (key, comparison) in class.poisson_comparison.iter() {
        let (Ok(width), Some(comparison)) = (key.parse::<u64>(), comparison) else { continue };
        if ![10, 60].contains(&width) || (width as f64) < least {
            continue;
        }
        let kinds = [("prompt", &comparison.prompt_tokens), ("output", &comparison.output_tokens)];
        for (what, tokens) in kinds {
            let Some(tokens) = tokens else { continue };
            let Some(factor) = tokens.actual_over_poisson_fixed.filter(|f| *f >= WORTH) else {
                continue;
            };
            found.add(About::Bursts, Some(factor), Some(width), burst(what, width, factor, tokens));
        }
    }
    if let Some(bursts) = class.bursts.as_ref().filter(|bursts| bursts.share_of_time >= 0.02)
        && let Some(longest) = bursts.length_s_max
    {
        found.add(
            About::Bursts,
            Some(bursts.share_of_tokens / bursts.share_of_time),
            Some(bursts.window_s),
            format!(
                "{} bursts hold {} of prompt tokens in {} of the time; the longest lasts {}",
                whole_number(bursts.count as f64),
                percent(bursts.share_of_tokens),
                percent(bursts.share_of_time),
                duration(longest)
            ),
        );
    }
}

fn burst(what: &str, width: u64, factor: f64, tokens: &PoissonTokens) -> String {
    let rest = match tokens.actual_over_compound {
        Some(left) if left >= WORTH => format!(
            "; with the logged lengths it is still {} times ({}): the rest is in how requests arrive",
            short(left),
            whole_number(tokens.compound_poisson_empirical_length_p99)
        ),
        Some(_) => format!(
            "; the logged lengths account for it ({})",
            whole_number(tokens.compound_poisson_empirical_length_p99)
        ),
        None => String::new(),
    };
    format!(
        "p99 of {what} tokens per {} is {}: {} times what Poisson arrivals with the mean length predict ({}){rest}",
        duration(width as f64),
        whole_number(tokens.actual_p99),
        short(factor),
        whole_number(tokens.poisson_fixed_mean_length_p99)
    )
}

fn queue(class: &ClassProfile, found: &mut Found<'_>) {
    let Some(waits) = class.prefill_queue.wait_s_by_utilisation.get("0.7") else { return };
    let (trace, poisson) = (waits.trace.p99, waits.poisson_same_lengths.p99);
    if poisson <= 0.0 || trace < 1.5 * poisson {
        return;
    }
    let sizes = class.prefill_queue.capacity_over_mean_for_p99_wait_le_s.get("1.0");
    let size = sizes.map_or_else(String::new, |sizes| {
        format!(
            "; to wait at most 1 s at p99 takes {} times the mean demand, under Poisson {}",
            short(sizes.trace),
            short(sizes.poisson_same_lengths)
        )
    });
    found.add(
        About::Queue,
        Some(trace / poisson),
        None,
        format!(
            "one prefill server loaded to 70 % on average waits {} s at p99, where Poisson arrivals with the same lengths wait {} s{size}",
            short(trace),
            short(poisson)
        ),
    );
}

fn peaks(class: &ClassProfile, found: &mut Found<'_>) {
    let Some(Some(windows)) = class.windows.get("60") else { return };
    let (Some(prompt), Some(output)) = (&windows.prompt_tokens, &windows.output_tokens) else {
        return;
    };
    let peaks = (windows.requests.peak_to_mean, prompt.peak_to_mean, output.peak_to_mean);
    let (Some(requests), Some(prompt), Some(output)) = peaks else { return };
    let furthest = [prompt / requests, output / requests]
        .into_iter()
        .max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
        .unwrap_or(1.0);
    if furthest.max(1.0 / furthest) < WORTH {
        return;
    }
    found.add(
        About::Peaks,
        Some(furthest),
        Some(60),
        format!(
            "over 60 s the peak is {} times the mean in requests, {} in prompt tokens and {} in output tokens: none of them stands for the others",
            short(requests),
            short(prompt),
            short(output)
        ),
    );
}

fn lengths(class: &ClassProfile, found: &mut Found<'_>) {
    for (what, lengths) in [("prompt", &class.prompt), ("output", &class.output)] {
        let Some(lengths) = lengths else { continue };
        let Some(biased) = lengths.size_biased_mean.filter(|_| lengths.mean > 0.0) else {
            continue;
        };
        let factor = biased / lengths.mean;
        if factor < 1.5 {
            continue;
        }
        let held = lengths.top10pct_share_of_tokens.unwrap_or(0.0);
        found.add(
            About::Lengths,
            Some(factor),
            None,
            format!(
                "the mean {what} is {} tokens, the median {}, but a token is in one of {} on average, {} times the mean; the longest 10 % hold {} of {what} tokens",
                length(lengths.mean),
                length(lengths.p50),
                length(biased),
                short(factor),
                percent(held)
            ),
        );
    }
}

fn context(class: &ClassProfile, found: &mut Found<'_>) {
    let Some(context) = &class.kv_resident_context else { return };
    let (Some(weighted), Some(ratio)) = (context.output_weighted_mean, context.ratio) else {
        return;
    };
    if ratio.max(1.0 / ratio) < WORTH {
        return;
    }
    found.add(
        About::Context,
        Some(ratio),
        None,
        format!(
            "a sequence that is decoding holds {} tokens on average, {} times the mean prompt and half the mean output ({}): prompts and outputs are not independent, so size each class on its own",
            length(weighted),
            short(ratio),
            length(context.naive_mean_prompt_plus_half_mean_output)
        ),
    );
}

fn rest(class: &ClassProfile, found: &mut Found<'_>) {
    if let (Some(tick), Some(gaps)) = (&class.tick, &class.inter_arrival) {
        found.add(
            About::Tick,
            gaps.cv,
            None,
            format!(
                "stamps lie on a tick of {:.3} s ({} of them for {} rows): a CV of {} between arrivals is the clock's, not the users'",
                tick.seconds,
                whole_number(tick.stamps as f64),
                whole_number(tick.rows as f64),
                gaps.cv.map_or_else(|| "nothing".to_owned(), short)
            ),
        );
    }
    // A fifth of them, or one, that makes far more than its share.
    let first = |clients: &&Clients| clients.top.first().map_or(0.0, |top| top.share_of_tokens);
    let few = |clients: &&Clients| 5 * clients.half_of_tokens_from <= clients.count;
    let found_few =
        |clients: &&Clients| clients.count >= 3 && (few(clients) || first(clients) >= 0.25);
    if let Some(clients) = class.clients.as_ref().filter(found_few) {
        let first = first(&clients);
        found.add(
            About::Clients,
            Some(first),
            None,
            format!(
                "half of all tokens come from {} of {} clients, {} from the largest: one customer's batch job is the forecast's error",
                clients.half_of_tokens_from,
                whole_number(clients.count as f64),
                percent(first)
            ),
        );
    }
    if let Some(reuse) = class.prefix_reuse.as_ref() {
        let hit = reuse.infinite.prefix_token_hit_rate;
        if hit >= 0.05 {
            let small = reuse.lru.0.first().map_or_else(String::new, |(blocks, level)| {
                format!(
                    "; a cache of {} blocks finds {}",
                    whole_number(blocks.parse().unwrap_or(0.0)),
                    percent(level.prefix_token_hit_rate)
                )
            });
            found.add(
                About::Reuse,
                Some(1.0 / (1.0 - hit).max(1e-9)),
                None,
                format!(
                    "{} of prompt tokens repeat the beginning of an earlier prompt: sizing on raw prompt tokens overstates prefill {} times with a cache that forgets nothing{small}",
                    percent(hit),
                    short(1.0 / (1.0 - hit).max(1e-9))
                ),
            );
        }
    }
    let failures = &class.failures;
    if let Some(failed) = failures.failed_share.filter(|share| *share >= 0.001) {
        let limited = failures.limited_share.unwrap_or(0.0);
        found.add(
            About::Failures,
            Some(failed),
            None,
            format!(
                "{} of requests did not succeed, {} were refused for a limit of rate; {} tasks were tried again: demand is what was asked, not what was answered",
                percent(failed),
                percent(limited),
                whole_number(failures.retried_tasks)
            ),
        );
    }
    let ends = &failures.share_by_end;
    if class.name == "all" && ends.limited + ends.failed + ends.cancelled <= 0.0 {
        found.add(
            About::Failures,
            None,
            None,
            "no failed, refused or cancelled request is logged: whoever was turned away is missing, and demand is a lower bound".to_owned(),
        );
    }
    if let Some(silences) = class.silences.as_ref().filter(|silences| silences.count > 0) {
        let longest = silences
            .longest
            .iter()
            .max_by(|a, b| a.length_s.total_cmp(&b.length_s))
            .map_or(0.0, |silence| silence.length_s);
        let gaps = silences.longest.iter().any(|s| s.kind == SilenceKind::CollectionGap);
        let kind = if gaps {
            format!(
                "{} of them look like gaps in the collection, which are missing and not idle",
                silences.collection_gaps
            )
        } else {
            "whether users were idle or nobody counted cannot be told".to_owned()
        };
        found.add(
            About::Silences,
            Some(silences.share_of_time),
            None,
            format!(
                "{} spells without a request that the rate around them makes improbable, {} of the time, the longest {}: {kind}",
                silences.count,
                percent(silences.share_of_time),
                duration(longest)
            ),
        );
    }
    if let Some(season) = class.seasonality.as_ref().map(|seasons| &seasons.hour_of_day)
        && let (Some(eta2), Some(p)) = (season.eta2, season.p_value)
    {
        found.add(
            About::Seasonality,
            Some(eta2),
            Some(3600),
            season_sentence(season.verdict, eta2, p),
        );
    }
    if let Some(budget) = &class.budget {
        let unbounded = budget.rows_without_max_tokens as f64 / class.rows.max(1) as f64;
        let far = budget.max_over_p99_9.filter(|ratio| *ratio >= 3.0);
        if far.is_some() || (unbounded > 0.0 && unbounded < 1.0) {
            found.add(
                About::Budget,
                far,
                None,
                format!(
                    "the longest request has {} tokens, {} times the 99.9th percentile; {} rows exceed ten times the 99th, and {} set no limit to their output: whoever may send any context may take everyone's memory",
                    whole_number(budget.max),
                    budget.max_over_p99_9.map_or_else(|| "many".to_owned(), short),
                    whole_number(budget.rows_beyond_10x_p99),
                    percent(unbounded)
                ),
            );
        }
    }
}

fn season_sentence(verdict: SeasonVerdict, eta2: f64, p: f64) -> String {
    let by =
        format!("the hour of the day explains {} of how hours differ (p = {p:.3})", percent(eta2));
    match verdict {
        SeasonVerdict::Shown => format!("{by}: a plan by the mean hour is short in the fullest"),
        _ => format!("{by}, which chance does as well: do not forecast from the time of day"),
    }
}

fn of_clients_and_windows(series: &SeriesProfile, found: &mut Found<'_>) {
    let rate = &series.rate_rps.levels;
    if let Some(peak) = rate.peak_to_mean.filter(|peak| *peak >= WORTH) {
        found.add(
            About::Peaks,
            Some(peak),
            Some(series.window_s),
            format!(
                "the fullest {} holds {} requests a second, {} times the mean of {}",
                duration(series.window_s as f64),
                short(rate.max),
                short(peak),
                short(rate.mean)
            ),
        );
    }
    let means = [
        ("prompt", &series.window_mean_input_tokens),
        ("output", &series.window_mean_output_tokens),
    ];
    for (what, mean) in means {
        let Some(mean) = mean.filter(|mean| mean.p5 > 0.0 && mean.p95 / mean.p5 >= 1.5) else {
            continue;
        };
        found.add(
            About::Lengths,
            Some(mean.p95 / mean.p5),
            Some(series.window_s),
            format!(
                "the mean {what} of a window drifts from {} tokens (p5) to {} (p95), {} times: requests times a constant length miss that",
                length(mean.p5),
                length(mean.p95),
                short(mean.p95 / mean.p5)
            ),
        );
    }
    if let Some(share) = &series.client_share_of_requests {
        found.add(
            About::Clients,
            Some(share.top1),
            None,
            format!(
                "half of all requests come from {} of {} clients, {} from the largest: one customer's batch job is the forecast's error",
                share.half_of_requests_from_n_clients,
                series.clients,
                percent(share.top1)
            ),
        );
    }
    if let Some(cv) = series.client_window_cv.as_ref().filter(|cv| cv.request_weighted_mean >= 1.2)
    {
        found.add(
            About::Bursts,
            Some(cv.request_weighted_mean),
            Some(series.window_s),
            format!(
                "as a request sees it, the time between requests of its client has a CV of {}, not the 1 of Poisson arrivals",
                short(cv.request_weighted_mean)
            ),
        );
    }
    if let Some(season) = series.seasonality.as_ref().map(|seasons| &seasons.hour_of_day)
        && let (Some(eta2), Some(p)) = (season.eta2, season.p_value)
    {
        found.add(
            About::Seasonality,
            Some(eta2),
            Some(3600),
            season_sentence(season.verdict, eta2, p),
        );
    }
}

/// A length in tokens, in as many digits as it has earned.
pub(crate) fn length(tokens: f64) -> String {
    if tokens < 100.0 { short(tokens) } else { whole_number(tokens) }
}

/// Two digits after the point below ten, one below a hundred, none above.
pub(crate) fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => return whole_number(value),
    };
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() { "0".to_owned() } else { text.to_owned() }
}

pub(crate) fn percent(share: f64) -> String {
    let percent = if share <= 0.0 { 0.0 } else { 100.0 * share };
    if percent > 0.0 && percent < 0.1 {
        "less than 0.1 %".to_owned()
    } else if percent < 100.0 && percent > 99.9 {
        "more than 99.9 %".to_owned()
    } else if percent < 10.0 {
        format!("{} %", short((percent * 10.0).round() / 10.0))
    } else {
        format!("{percent:.0} %")
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{} s", short(seconds)),
        _ if seconds < 7200.0 => format!("{} min", short(seconds / 60.0)),
        _ if seconds < 2.0 * 86_400.0 => format!("{} h", short(seconds / 3600.0)),
        _ => format!("{} days", short(seconds / 86_400.0)),
    }
}

/// Rounded, with a comma after every three digits.
fn whole_number(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(whole_number(338_793.8), "338,794");
        assert_eq!(whole_number(999.4), "999");
        assert_eq!(whole_number(-1000.0), "-1,000");
        assert_eq!(
            (short(3.871), short(12.0), short(0.0)),
            ("3.87".into(), "12".into(), "0".into())
        );
        assert_eq!((percent(0.268), percent(0.0004)), ("27 %".into(), "less than 0.1 %".into()));
        assert_eq!((duration(10.0), duration(3600.0)), ("10 s".into(), "60 min".into()));
    }
}
