use plimsoll_stats::Seed;
use plimsoll_study::{
    ClientShare, Clients, Clock, ClockTick, Correlation, End, Gathered, Gathering, Keyed, Pace,
    PrefixReuse, ProfileInput, ReuseLevels, Season, SeasonVerdict, Seasonality, Seen, SeriesClient,
    SeriesInput, SeriesWindow, SessionRates, SessionReuse, Silence, SilenceKind, Silences, profile,
};

use super::*;

const HEAD: ProfileHead<'_> = ProfileHead {
    source: "log.csv",
    format: Some("Azure"),
    classes_by: Some("route"),
    from: Some("2026-11-02 09:00 UTC"),
    to: Some("2026-11-02 09:04 UTC"),
    seed: 7,
};

fn input(classes: &[&str]) -> ProfileInput {
    ProfileInput {
        classes: classes.iter().map(|name| (*name).to_owned()).collect(),
        clients: vec!["ada".to_owned(), "bob".to_owned()],
        clients_named: 2,
        clock: Some(Clock { hour: 9, weekday: 0 }),
        no_clock: None,
        reuse: None,
        series: None,
        seed: Seed::new(7),
        threads: 1,
    }
}

fn of(rows: &[Seen], pace: Option<Pace>, input: &ProfileInput) -> Profile {
    let shape = Gathering { rows_expected: None, exact_rows: 1_000_000, pace };
    let mut gathered = Gathered::new(&shape);
    rows.iter().for_each(|row| gathered.push(row));
    profile(gathered, input)
}

/// Nothing but lengths.
fn bare(prompt: Option<u32>, output: Option<u32>) -> Seen {
    Seen {
        at_ns: None,
        prompt,
        cached: None,
        output,
        reasoning: None,
        max_tokens: None,
        weight: 1.0,
        class: 0,
        client: None,
        attempt: 0,
        end: End::Unknown,
        ttft_s: None,
        e2e_s: None,
    }
}

/// Four minutes of two classes, of which everything is known.
fn rows() -> Vec<Seen> {
    let mut rows = Vec::new();
    for i in 0..480u32 {
        let busy = i % 120 < 30;
        let at = f64::from(i) * 0.5 + if busy { 0.0 } else { f64::from(i * 7 % 11) * 0.03 };
        let prompt = if i % 40 == 0 { 12_000 } else { 300 + 37 * (i * i % 29) };
        let output = 15 + i * 13 % 160;
        rows.push(Seen {
            at_ns: Some((at * 1e9) as i64),
            prompt: Some(prompt),
            cached: Some(if i % 3 == 0 { 128 } else { 0 }),
            output: Some(if i % 97 == 0 { 0 } else { output }),
            reasoning: Some(output / 4),
            max_tokens: (i % 5 != 0).then_some(170),
            weight: 1.0,
            class: u32::from(i % 4 == 0),
            client: Some(u32::from(i % 3 == 0)),
            attempt: if i % 60 == 1 { 2 } else { 1 },
            end: if i % 97 == 0 { End::Failed } else { End::Ok },
            ttft_s: Some(0.2),
            e2e_s: Some(0.2 + f64::from(output) * 0.02),
        });
    }
    rows
}

fn narrow_enough(text: &str) -> &str {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    text
}

#[test]
fn everything_is_known() {
    let pace =
        Pace { label: "H100, vLLM".to_owned(), prefill_s: [0.01, 5e-5, 0.0], output_token_s: 0.02 };
    let mut profile = of(&rows(), Some(pace), &input(&["chat", "code"]));
    let level = |hit: f64| ReuseLevels {
        stream_block_hit_rate: hit,
        prefix_block_hit_rate: hit,
        prefix_token_hit_rate: hit,
        requests_fully_cached: 3,
    };
    let class = &mut profile.classes[0];
    class.prefix_reuse = Some(PrefixReuse {
        block_tokens: 512,
        total_blocks: 2000,
        unique_blocks: 1500,
        total_prompt_tokens: 1_000_000,
        infinite: level(0.36),
        lru: Keyed(vec![("100".to_owned(), level(0.05)), ("1000".to_owned(), level(0.21))]),
        sessions: Some(SessionReuse {
            sessions: 12,
            session_token_hit_rate: SessionRates { mean: 0.9, p5: 0.5, p50: 0.95 },
            uncached_prompt_tokens: 1000,
            prompt_to_output_ratio_raw: Some(305.0),
            prompt_to_output_ratio_uncached: None,
        }),
    });
    class.silences = Some(Silences {
        count: 2,
        total_s: 95.0,
        share_of_time: 0.05,
        collection_gaps: 1,
        longest: vec![Silence {
            start_s: 60.0,
            length_s: 80.0,
            expected_requests: 160.0,
            fell_silent: 2,
            kind: SilenceKind::CollectionGap,
        }],
    });
    let season = |verdict, parts: usize, eta2| Season {
        periods: 4,
        eta2,
        p_value: eta2.map(|_| 0.002),
        permutations: 999,
        verdict,
        mean_requests: Some((0..parts).map(|i| 1.0 + (i % 5) as f64).collect()),
        by_the_clock: true,
        peak_to_trough: Some(5.0),
    };
    class.seasonality = Some(Seasonality {
        hour_of_day: season(SeasonVerdict::Shown, 24, Some(0.57)),
        day_of_week: season(SeasonVerdict::NotShown, 7, Some(0.1)),
    });
    let text = profile_text(&profile, &HEAD, Heading::Plain);
    insta::assert_snapshot!(narrow_enough(&text), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        all
        480 rows over 4 min · 2.00 requests/s · 2,200 prompt tok/s · 187 output tok/s

        over time, 59 stretches of 4 s, each bar from zero to the fullest:
          requests/s   ███████████████████████████████████████████████████████████ 2.00 to 2.00
          prompt tok/s ▇▄▃▂▃█▃▂▃▄▇▃▄▃▂█▄▃▂▄█▂▃▄▃▇▃▄▃▃█▃▂▃▄█▂▃▄▃█▄▃▂▃█▃▂▄▄▇▃▄▃▂█▄▃▃ 1,007 to 4,940
          output tok/s ▄▇▇▅▇▇▆▇▆▅█▆▅█▅▇█▅▆█▄▇▇▅▆▇▆▇▆▅█▆▆█▅▇█▅▆█▄▇▇▅▇▇▆▇▆▅█▆▆█▅▇█▅▆ 117 to 249

        window                   mean/s  p95/s   p99/s   max/s  peak/mean  dispersion
        1 s          requests      2.00   2.00    2.00    2.00       1.00           0
        239 windows  prompt tok   2,198  3,505  13,211  13,336       6.07       2,878
                     fresh tok    2,112  3,492  13,174  13,336       6.31       2,997
                     output tok     186    319     333     335       1.80        36.0
        10 s         requests      2.00   2.00    2.00    2.00       1.00           0
        23 windows   prompt tok   2,226  2,956   2,958   2,958       1.33       1,589
                     fresh tok    2,140  2,867   2,868   2,868       1.34       1,651
                     output tok     186    212     213     213       1.15        13.6
        60 s         requests      2.00   2.00    2.00    2.00       1.00           0
        3 windows    prompt tok   2,194  2,203   2,203   2,203       1.00        2.89
                     fresh tok    2,109  2,117   2,118   2,118       1.00        3.01
                     output tok     185    188     188     188       1.02        2.09
        windows: none of 300 s, 1 h: fewer than two are complete

        tokens   mean  median    p95     p99     max  of a token  top 1%  top 10%
        prompt  1,099     781  1,336  12,000  12,000       3,971   11.4%    36.3%
        output   93.4    93.0    166     173     174         117    1.9%    17.8%
        both    1,192     924  1,456  12,095  12,135       3,833   10.6%    34.3%
        reasoning: 24.9% of output tokens
        prompt and output: correlation -0.06 (Pearson), -0.01 (ranks), -0.04 (logarithms)
        prompts: nearest family lognormal, KS distance 0.180, rejected at 5% (above 0.0621)
        outputs: nearest family weibull, KS distance 0.0688, rejected at 5% (above 0.0624)
        (of a token: the mean length of what a token is in; top: share of tokens in the longest requests)

          prompt tokens  requests                        tokens
             256 to 511     23.5%  ███████████▋            8.7%  ████
           512 to 1,023     33.3%  ████████████████▍      20.5%  █████████▌
         1,024 to 2,047     40.6%  ████████████████████   43.5%  ████████████████████
        8,192 to 16,383      2.5%  █▎                     27.3%  ████████████▋

        output tokens  requests                        tokens
                    0      1.0%  ▌                       0.0%
              8 to 15      0.4%  ▎                       0.1%  ▏
             16 to 31     10.0%  █████                   2.5%  █▏
             32 to 63     20.0%  ██████████▏            10.2%  ████▍
            64 to 127     39.6%  ████████████████████   40.4%  █████████████████▎
           128 to 255     29.0%  ██████████████▋        46.8%  ████████████████████

        time between arrivals: mean 501 ms, CV 0.276, median 500 ms, p95 710 ms, p99 710 ms, longest 770 ms,
          0 of no time
          gaps above zero: nearest family weibull, KS distance 0.269, rejected at 5% (above 0.0621)
        bursts: none: no windows of 10 s with more than 50,661 prompt tokens
        silences: 2 spells, 95 s together, 5.0% of the time, 1 of them gaps in the collection; the longest
          80 s after 60 s, where 160 requests were to be expected: a gap in the collection

        tokens, p99          as logged  Poisson, mean length  times  above  Poisson, same lengths  times
        1 s          prompt     13,211                 6,593   2.00   5.0%                 14,672  0.900
        1 s          output        333                   559  0.597   0.0%                    616  0.541
        10 s         prompt     29,577                34,506  0.857   0.0%                 50,661  0.584
        10 s         output      2,130                 2,883  0.739   0.0%                  3,048  0.699
        60 s         prompt    132,183               160,167  0.825   0.0%                192,127  0.688
        60 s         output     11,298                13,527  0.835   0.0%                 13,967  0.809

        one prefill server                      as logged  Poisson, same lengths  Poisson, mean length
        loaded to 30%: p99 wait, s                   1.16                   1.56                 0.279
        loaded to 50%: p99 wait, s                   2.26                   3.90                 0.804
        loaded to 70%: p99 wait, s                   3.44                   7.82                  2.09
        loaded to 80%: p99 wait, s                   3.98                   13.2                  3.44
        loaded to 90%: p99 wait, s                   4.53                   20.4                  6.59
        size for p99 wait of 500 ms, over mean       5.60                   7.77                  2.47
        size for p99 wait of 1 s, over mean          3.70                   4.72                  1.83
        size for p99 wait of 5 s, over mean          1.03                   1.77                  1.16

        context while decoding: 1,100 tokens on average, 0.960 times the mean prompt and half the mean
          output (1,146)
        resident KV tokens, measured: mean 4,620, p95 7,386, p99 7,588, most 7,627 over 23 windows of 10 s
        resident KV tokens, modelled: mean 4,599, p95 7,649, p99 7,846, most 7,883 over 23 windows of 10 s,
          by H100, vLLM

        prefix reuse: blocks of 512 tokens, 1,500 of 2,000 different
        cache blocks   tokens  of prompt tokens                        of blocks  whole prompts
                 100   51,200              5.0%  █                          5.0%              3
               1,000  512,000             21.0%  ████▎                     21.0%              3
                 all      any             36.0%  ███████▎                  36.0%              3
        within sessions: 12 of them; of a session's prompt tokens 90.0% repeat (mean), 95.0% at the median,
          50.0% at p5; prompt to output 305 raw, unknown without repeats

        hour of the day: shown: explains 57.0% of how they differ (p = 0.00200 over 999 turned periods); the
          fullest has 5.00 times the emptiest; from midnight ▂▄▅▇█▂▄▅▇█▂▄▅▇█▂▄▅▇█▂▄▅▇
        day of the week: not shown: explains 10.0% of how they differ (p = 0.00200 over 999 turned periods)

        ends: 99.0% answered, 1.0% failed; of those that say it 1.0% did not succeed, 0.0% by a limit
        tried again: 8 tasks, 1.7% of all; by attempts: 464 took 1, 8 took 2
        without output: 5 rows

        clients: 2; half of the tokens are of 1, half of the requests of 1
          largest  of tokens  of requests  requests  prompt tok  output tok
          ada          66.7%        66.7%       320     351,882      29,848
          bob          33.3%        33.3%       160     175,571      14,987

        longest request: 12,135 tokens, 1.00 times the 99.9th percentile; 0 rows beyond ten times the 99th;
          the longest 1% hold 6.4% of tokens; 96 rows set no limit to their output, 12 ran into theirs

        chat
        360 rows over 4 min · 1.50 requests/s · 1,229 prompt tok/s · 141 output tok/s
        over time, 59 stretches of 4 s, each bar from zero to the fullest:
          requests/s   ███████████████████████████████████████████████████████████ 1.50 to 1.50
          prompt tok/s ▆█▆▄▇█▇▅▇█▅▅█▇▄▇█▅▅█▇▅▇█▇▄▆█▆▆█▆▄▇█▇▅▇█▅▅█▇▄▇█▅▅█▇▅▇█▇▄▆█▆▆ 709 to 1,662
          output tok/s ▅▆█▄▆▇▅▇▇▅█▆▄▇▆▇█▅▇█▅▆█▄▄▇▅▇▇▅█▆▆▇▆▇▇▅▇█▅▆█▄▆▇▅▇▇▅█▆▆▇▆▇█▅▇ 88.5 to 197
        window                  mean/s  p95/s  p99/s  max/s  peak/mean  dispersion
        10 s        requests      1.50   1.50   1.50   1.50       1.00           0
        23 windows  prompt tok   1,232  1,449  1,455  1,456       1.18         118
                    fresh tok    1,168  1,385  1,391  1,392       1.19         125
                    output tok     140    163    164    164       1.17        18.3
        60 s        requests      1.50   1.50   1.50   1.50       1.00           0
        3 windows   prompt tok   1,223  1,232  1,233  1,233       1.01        4.75
                    fresh tok    1,159  1,168  1,169  1,169       1.01        5.02
                    output tok     138    142    142    143       1.03        5.39
        tokens  mean  median    p95    p99    max  of a token  top 1%  top 10%
        prompt   819     781  1,336  1,336  1,336         955    1.8%    15.9%
        output  93.9    93.5    166    173    174         117    2.1%    17.8%
        both     913     904  1,390  1,475  1,505       1,036    1.8%    15.4%
        reasoning: 25.0% of output tokens
        prompt and output: correlation -0.04 (Pearson), -0.04 (ranks), -0.05 (logarithms)
        prompts: nearest family weibull, KS distance 0.165, rejected at 5% (above 0.0717)
        outputs: nearest family weibull, KS distance 0.0710, not rejected at 5% (above 0.0720)
        time between arrivals: mean 666 ms, CV 0.404, median 710 ms, p95 1.09 s, p99 1.09 s, longest 1.09 s,
          0 of no time
          gaps above zero: nearest family gamma, KS distance 0.191, rejected at 5% (above 0.0718)
        bursts: none: no windows of 10 s with more than 20,989 prompt tokens
        ends: 99.2% answered, 0.8% failed; of those that say it 0.8% did not succeed, 0.0% by a limit
        tried again: 8 tasks, 2.3% of all; by attempts: 344 took 1, 8 took 2
        without output: 3 rows

        code
        120 rows over 4 min · 0.500 requests/s · 971 prompt tok/s · 46.1 output tok/s
        over time, 59 stretches of 4 s, each bar from zero to the fullest:
          requests/s   ███████████████████████████████████████████████████████████ 0.500 to 0.500
          prompt tok/s █▂▂▁▂█▁▁▁▁█▁▂▂▁█▂▂▁▁█▁▁▂▁█▂▂▁▁█▂▁▂▁█▁▁▁▂█▂▂▁▁█▂▁▁▂█▁▂▁▁█▂▁▁ 224 to 3,334
          output tok/s ▂█▅▇█▅▆█▅▆▇▄▅▇▄▅▆▃▅▆▃█▅▇█▅▆█▅▆▇▄▅▇▄▅▆▃▅▆▃█▅▇█▅▆█▂▆▇▄▅▇▄▅▆▃▅ 11.8 to 72.5
        window                  mean/s  p95/s  p99/s  max/s  peak/mean  dispersion
        10 s        requests     0.500  0.500  0.500  0.500       1.00           0
        23 windows  prompt tok     995  1,683  1,690  1,690       1.70       3,505
                    fresh tok      973  1,657  1,664  1,664       1.71       3,583
                    output tok    46.2   61.5   61.5   61.5       1.33        12.2
        60 s        requests     0.500  0.500  0.500  0.500       1.00           0
        3 windows   prompt tok     971    976    977    977       1.01        1.16
                    fresh tok      950    955    955    955       1.01        1.19
                    output tok    47.1   48.1   48.2   48.2       1.02        1.24
        tokens   mean  median     p95     p99     max  of a token  top 1%  top 10%
        prompt  1,939     892  12,000  12,000  12,000       7,791   10.3%    61.9%
        output   92.0    91.0     163     171     171         116    3.1%    17.9%
        both    2,031     979  12,057  12,135  12,135       7,601   10.0%    59.4%
        reasoning: 24.4% of output tokens
        prompt and output: correlation -0.11 (Pearson), 0.06 (ranks), -0.04 (logarithms)
        prompts: nearest family pareto, KS distance 0.195, rejected at 5% (above 0.124)
        outputs: nearest family weibull, KS distance 0.0809, not rejected at 5% (above 0.125)
        time between arrivals: mean 2 s, CV 0.0721, median 2 s, p95 2.18 s, p99 2.18 s, longest 2.24 s, 0 of
          no time
          gaps above zero: nearest family weibull, KS distance 0.237, rejected at 5% (above 0.125)
        bursts: none: no windows of 10 s with more than 38,804 prompt tokens
        ends: 98.3% answered, 1.7% failed; of those that say it 1.7% did not succeed, 0.0% by a limit
        tried again: 0 tasks, 0.0% of all; by attempts: 120 took 1
        without output: 2 rows

        What averages do not say:
        - the mean prompt is 1,099 tokens, the median 781, but a token is in one of 3,971 on average, 3.61
          times the mean; the longest 10 % hold 36 % of prompt tokens
        - 1 % of requests did not succeed, 0 % were refused for a limit of rate; 8 tasks were tried again:
          demand is what was asked, not what was answered
        - the longest request has 12,135 tokens, 1 times the 99.9th percentile; 0 rows exceed ten times the
          99th, and 20 % set no limit to their output: whoever may send any context may take everyone's
          memory
        - chat: 0.8 % of requests did not succeed, 0 % were refused for a limit of rate; 8 tasks were tried
          again: demand is what was asked, not what was answered
        - chat: the longest request has 1,505 tokens, 1 times the 99.9th percentile; 0 rows exceed ten times
          the 99th, and 20 % set no limit to their output: whoever may send any context may take everyone's
          memory
        - code: the mean prompt is 1,939 tokens, the median 892, but a token is in one of 7,791 on average,
          4.02 times the mean; the longest 10 % hold 62 % of prompt tokens
        - code: a sequence that is decoding holds 1,800 tokens on average, 0.91 times the mean prompt and
          half the mean output (1,985): prompts and outputs are not independent, so size each class on its
          own
        - code: 1.7 % of requests did not succeed, 0 % were refused for a limit of rate; 0 tasks were tried
          again: demand is what was asked, not what was answered
        - code: the longest request has 12,135 tokens, 1 times the 99.9th percentile; 0 rows exceed ten
          times the 99th, and 20 % set no limit to their output: whoever may send any context may take
          everyone's memory

        To know before trusting a number:
        - the log spans 4 min: too short for windows of 5 min and 60 min, and nothing can be said of days or
          weeks
        "#);
}

#[test]
fn nothing_but_prompts_is_known() {
    let all: Vec<Seen> = (1..40).map(|i| bare(Some(i * 10), None)).collect();
    let mut input = input(&[]);
    input.no_clock = Some("each session has its own clock".to_owned());
    let profile = of(&all, None, &input);
    let head = ProfileHead { format: None, classes_by: None, from: None, to: None, ..HEAD };
    let text = profile_text(&profile, &head, Heading::Plain);
    insta::assert_snapshot!(narrow_enough(&text), @r#"
        log.csv
        no dates · seed 7

        all
        39 rows without a common clock

        windows: unknown: rows have no common clock
        fresh prompt tokens: unknown: no row says how much of the prompt was cached

        tokens  mean  median  p95  p99  max  of a token  top 1%  top 10%
        prompt   200     200  371  386  390         263    5.0%    19.2%
        output lengths: unknown: no row says them
        prompts: nearest family weibull, KS distance 0.0898, not rejected at 5% (above 0.218)
        (of a token: the mean length of what a token is in; top: share of tokens in the longest requests)

        time between arrivals: unknown: rows have no common clock

        prefill queue: not worked out: rows have no common clock

        resident KV tokens: unknown: rows have no common clock

        prefix reuse: unknown: the log does not name the blocks of prompts

        hours and days: unknown: rows have no common clock

        ends: unknown: the log does not say how requests ended
        tried again: unknown: the log does not number attempts

        clients: unknown: no row says who asked

        longest request: 390 tokens, 1.00 times the 99.9th percentile; 0 rows beyond ten times the 99th; the
          longest 1% hold 5.0% of tokens; whether outputs have a limit is unknown

        What averages do not say:
        - no failed, refused or cancelled request is logged: whoever was turned away is missing, and demand
          is a lower bound

        To know before trusting a number:
        - each session has its own clock: nothing can be said of arrivals, bursts, queues or tokens in
          memory over time
        - 0 % of rows say how long their output is; sums of output tokens are of those alone
        - no row says how much of the prompt was cached, so that fresh tokens are not given: prompt tokens
          are an upper bound of what was prefilled
        - the log does not say how requests ended: those that failed or were refused may be missing, and
          demand is a lower bound
        "#);
}

/// Arrivals alone, all at once, and an empty log.
#[test]
fn less_than_that() {
    let at = |seconds: i64| Seen { at_ns: Some(seconds * 1_000_000_000), ..bare(None, None) };
    let profile = of(&[at(0), at(0), at(30)], None, &input(&[]));
    let bold = profile_text(&profile, &HEAD, Heading::Bold);
    assert!(bold.starts_with("\x1b[1mlog.csv\x1b[0m\n"), "{bold}");
    insta::assert_snapshot!(profile_text(&profile, &HEAD, Heading::Plain), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        all
        3 rows over 30 s · 0.100 requests/s · prompt tok/s unknown · output tok/s unknown

        over time, 30 stretches of 1 s, each bar from zero to the fullest:
          requests/s   █····························· 0 to 2.00

        window                mean/s  p95/s  p99/s  max/s  peak/mean  dispersion
        1 s         requests  0.0667      0   1.42   2.00       30.0        1.93
        30 windows
        29 empty
        10 s        requests  0.0667  0.180  0.196  0.200       3.00        1.33
        3 windows
        2 empty
        windows: none of 60 s, 300 s, 1 h: fewer than two are complete
        fresh prompt tokens: unknown: no row says how much of the prompt was cached

        prompt lengths: unknown: no row says them
        output lengths: unknown: no row says them
        (of a token: the mean length of what a token is in; top: share of tokens in the longest requests)

        time between arrivals: mean 15 s, CV 1.00, median 15 s, p95 28.5 s, p99 29.7 s, longest 30 s, 1 of
          no time
          gaps above zero: nearest family exponential, KS distance 0.632, not rejected at 5% (above 1.36)
        silences: none that the rate around them makes improbable

        prefill queue: not worked out: fewer than 100 requests

        resident KV tokens: unknown: no row says how long it took, and no step-time model was given to say
          it instead

        prefix reuse: unknown: the log does not name the blocks of prompts

        hour of the day: not enough history: 0 whole periods
        day of the week: not enough history: 0 whole periods

        ends: unknown: the log does not say how requests ended
        tried again: unknown: the log does not number attempts

        clients: unknown: no row says who asked

        longest request: unknown: no row says how long it is

        What averages do not say:
        - no failed, refused or cancelled request is logged: whoever was turned away is missing, and demand
          is a lower bound

        To know before trusting a number:
        - 0 % of rows say how long their prompt is; sums of prompt tokens are of those alone
        - 0 % of rows say how long their output is; sums of output tokens are of those alone
        - no row says how much of the prompt was cached, so that fresh tokens are not given: prompt tokens
          are an upper bound of what was prefilled
        - the log spans 30 s: too short for windows of 60 s and 5 min and 60 min, and nothing can be said
          of days or weeks
        - the log does not say how requests ended: those that failed or were refused may be missing, and
          demand is a lower bound
        "#);
    let profile = of(&[at(0), at(0)], None, &input(&[]));
    insta::assert_snapshot!(profile_text(&profile, &HEAD, Heading::Plain), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        all
        2 rows over 0 s · requests/s unknown · prompt tok/s unknown · output tok/s unknown

        windows: none of 1 s, 10 s, 60 s, 300 s, 1 h: fewer than two are complete
        fresh prompt tokens: unknown: no row says how much of the prompt was cached

        prompt lengths: unknown: no row says them
        output lengths: unknown: no row says them
        (of a token: the mean length of what a token is in; top: share of tokens in the longest requests)

        time between arrivals: mean 0 s, CV unknown: all come at once, median 0 s, p95 0 s, p99 0 s, longest
          0 s, 1 of no time

        prefill queue: not worked out: fewer than 100 requests

        resident KV tokens: unknown: the log is shorter than two windows of 10 s

        prefix reuse: unknown: the log does not name the blocks of prompts

        hour of the day: not enough history: 0 whole periods
        day of the week: not enough history: 0 whole periods

        ends: unknown: the log does not say how requests ended
        tried again: unknown: the log does not number attempts

        clients: unknown: no row says who asked

        longest request: unknown: no row says how long it is

        What averages do not say:
        - no failed, refused or cancelled request is logged: whoever was turned away is missing, and demand
          is a lower bound

        To know before trusting a number:
        - 0 % of rows say how long their prompt is; sums of prompt tokens are of those alone
        - 0 % of rows say how long their output is; sums of output tokens are of those alone
        - no row says how much of the prompt was cached, so that fresh tokens are not given: prompt tokens
          are an upper bound of what was prefilled
        - the log spans 0 s: too short for windows of 1 s and 10 s and 60 s and 5 min and 60 min, and
          nothing can be said of days or weeks
        - the log does not say how requests ended: those that failed or were refused may be missing, and
          demand is a lower bound
        "#);
    let profile = of(&[], None, &input(&[]));
    insta::assert_snapshot!(profile_text(&profile, &HEAD, Heading::Plain), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        no rows
        "#);
}

/// Branches that small logs do not reach by themselves.
#[test]
fn what_is_half_known() {
    let mut sample = rows();
    sample.truncate(60);
    sample.iter_mut().for_each(|row| {
        row.class = 0;
        row.weight = 2.0;
    });
    sample[0].cached = None;
    sample[1].client = None;
    sample[2].end = End::Limited;
    sample[3].e2e_s = None;
    sample[4].end = End::Cancelled;
    sample[5].end = End::Unknown;
    let mut profile = of(&sample, None, &input(&[]));
    let class = &mut profile.classes[0];
    if let Some(gaps) = &mut class.inter_arrival {
        (gaps.cv, gaps.exact, gaps.relative_error) = (None, false, 0.001);
    }
    class.tick = Some(ClockTick { seconds: 3.0, stamps: 20, rows: 60 });
    class.correlation_prompt_output = Some(Correlation {
        pearson: None,
        spearman: None,
        pearson_log: None,
        rows: 40,
        exact: false,
    });
    class.clients = Some(Clients {
        count: 900,
        half_of_tokens_from: 2,
        half_of_requests_from: 6,
        top: vec![ClientShare {
            name: "ada".to_owned(),
            requests: 10.0,
            prompt_tokens: 1000.0,
            output_tokens: 20.0,
            share_of_requests: 0.4,
            share_of_tokens: 0.000_4,
        }],
    });
    class.silences = Some(Silences {
        count: 1,
        total_s: 80.0,
        share_of_time: 0.05,
        collection_gaps: 0,
        longest: vec![Silence {
            start_s: 60.0,
            length_s: 80.0,
            expected_requests: 160.0,
            fell_silent: 1,
            kind: SilenceKind::CannotTell,
        }],
    });
    if let Some(seasons) = &mut class.seasonality {
        seasons.day_of_week.verdict = SeasonVerdict::Shown;
        seasons.day_of_week.mean_requests = Some(vec![1.0, 2.0, 3.0]);
        seasons.day_of_week.by_the_clock = false;
    }
    let text = profile_text(&profile, &HEAD, Heading::Plain);
    insta::assert_snapshot!(narrow_enough(&text), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        all
        60 rows that stand for 120 requests over 29.7 s · 4.04 requests/s · 4,804 prompt tok/s · 370 output
          tok/s

        over time, 29 stretches of 1 s, each bar from zero to the fullest:
          requests/s   █████████████████████████████ 4.00 to 4.00
          prompt tok/s █▁▂▁▂▁▂▂▂▁▂▁▂▁▁▁▁▂▁▂█▂▂▂▂▁▂▁▁ 1,274 to 26,672
          output tok/s ▁▃▄▅▇█▅▃▄▅▆█▅▂▄▅▆▇▅▂▃▅▆▇█▂▃▅▆ 56.0 to 662

        window                  mean/s   p95/s   p99/s   max/s  peak/mean  dispersion
        1 s         requests      4.00    4.00    4.00    4.00       1.00           0
        29 windows  prompt tok   4,873  16,824  26,113  26,672       5.47       6,785
                    output tok     360     600     646     662       1.84        67.6
        10 s        requests      4.00    4.00    4.00    4.00       1.00           0
        2 windows   prompt tok   4,331   5,584   5,695   5,723       1.32       4,474
                    output tok     353     375     377     378       1.07        18.4
        windows: none of 60 s, 300 s, 1 h: fewer than two are complete
        fresh prompt tokens: unknown: 98.3% of rows say how much of the prompt was cached

        tokens   mean  median    p95     p99     max  of a token  top 1%  top 10%
        prompt  1,188     837  1,336  12,000  12,000       4,673   16.8%    41.2%
        output   91.6    91.5    163     172     172         115    3.1%    18.0%
        both    1,280     933  1,471  12,045  12,055       4,482   15.7%    38.9%
        reasoning: 24.7% of output tokens
        prompt and output: correlation unknown (Pearson), unknown (ranks), unknown (logarithms); one of them
          never varies; ranks and logarithms are of a sample of 40 rows
        prompts: nearest family lognormal, KS distance 0.197, rejected at 5% (above 0.124)
        outputs: nearest family weibull, KS distance 0.0768, not rejected at 5% (above 0.125)
        (of a token: the mean length of what a token is in; top: share of tokens in the longest requests)

          prompt tokens  requests                        tokens
             256 to 511     23.3%  ███████████▋            7.8%  ███▉
           512 to 1,023     33.3%  ████████████████▋      19.0%  █████████▋
         1,024 to 2,047     40.0%  ████████████████████   39.6%  ████████████████████
        8,192 to 16,383      3.3%  █▋                     33.7%  █████████████████

        output tokens  requests                        tokens
                    0      1.7%  ▉                       0.0%
             16 to 31     10.0%  █████                   2.6%  █▏
             32 to 63     20.0%  ██████████             10.4%  ████▌
            64 to 127     40.0%  ████████████████████   41.1%  █████████████████▉
           128 to 255     28.3%  ██████████████▏        46.0%  ████████████████████

        time between arrivals: mean 503 ms, CV unknown: all come at once, median 500 ms, p95 710 ms, p99
          710 ms, longest 710 ms, 0 of no time (percentiles within 0.1%)
          gaps above zero: nearest family lognormal, KS distance 0.264, rejected at 5% (above 0.177)
        clock: stamps are 3 s apart, 20 of them for 60 rows
        bursts: none: no windows of 10 s with more than 89,316 prompt tokens
        silences: 1 spell, 80 s together, 5.0% of the time, 0 of them gaps in the collection; the longest
          80 s after 60 s, where 160 requests were to be expected: idle or not collected, which cannot be
          told

        tokens, p99          as logged  Poisson, mean length  times  above  Poisson, same lengths  times
        1 s          prompt     26,113                10,964   2.38   6.9%                 19,465   1.34
        1 s          output        646                   811  0.797   0.0%                    930  0.695
        10 s         prompt     56,952                59,551  0.956   0.0%                 89,316  0.638
        10 s         output      3,775                 4,847  0.779   0.0%                  5,263  0.717

        prefill queue: not worked out: fewer than 100 requests

        context while decoding: 998 tokens on average, 0.808 times the mean prompt and half the mean output
          (1,234)
        resident KV tokens, measured: mean 7,053, p95 7,313, p99 7,336, most 7,342 over 2 windows of 10 s,
          of 98.3% of rows
        resident KV tokens, modelled: unknown: no step-time model was given

        prefix reuse: unknown: the log does not name the blocks of prompts

        hour of the day: not enough history: 0 whole periods
        day of the week: shown: explains an unknown share of how they differ (p = unknown over 0 turned
          periods); from the log's beginning ▃▆█

        ends: 93.3% answered, 1.7% refused for a limit of rate, 1.7% failed, 1.7% cancelled, 1.7% unknown;
          of those that say it 5.1% did not succeed, 1.7% by a limit
        tried again: 2 tasks, 1.7% of all; by attempts: 116 took 1, 2 took 2
        without output: 2 rows

        clients: 900, told by 98.3% of rows; half of the tokens are of 2, half of the requests of 6
          largest  of tokens  of requests  requests  prompt tok  output tok
          ada          <0.1%        40.0%        10       1,000          20

        longest request: 12,055 tokens, 1.00 times the 99.9th percentile; 0 rows beyond ten times the 99th;
          the longest 1% hold 15.7% of tokens; 12 rows set no limit to their output, 2 ran into theirs

        What averages do not say:
        - the mean prompt is 1,188 tokens, the median 836, but a token is in one of 4,673 on average, 3.93
          times the mean; the longest 10 % hold 41 % of prompt tokens
        - a sequence that is decoding holds 998 tokens on average, 0.81 times the mean prompt and half the
          mean output (1,234): prompts and outputs are not independent, so size each class on its own
        - 5.1 % of requests did not succeed, 1.7 % were refused for a limit of rate; 2 tasks were tried
          again: demand is what was asked, not what was answered
        - the longest request has 12,055 tokens, 1 times the 99.9th percentile; 0 rows exceed ten times the
          99th, and 20 % set no limit to their output: whoever may send any context may take everyone's
          memory

        To know before trusting a number:
        - 98 % of rows say how much of the prompt was cached, so that fresh tokens are not given:
          prompt tokens are an upper bound of what was prefilled
        - 60 rows stand for several requests or parts of one: sums are scaled up, but a sample hides bursts,
          and time between arrivals is that of the rows
        - the log spans 29.7 s: too short for windows of 60 s and 5 min and 60 min, and nothing can be said
          of days or weeks
        "#);
}

fn series(lengths: bool) -> SeriesInput {
    let client = |name: &str, rate: f64| SeriesClient {
        name: name.to_owned(),
        windows: (0..24 * 6 * 8)
            .map(|i| SeriesWindow {
                start_s: i * 600,
                requests_per_s: if (20..22).contains(&i) {
                    0.0
                } else {
                    rate * (1.0 + (i / 6 % 24) as f64)
                },
                cv: lengths.then_some(2.0),
                prompt_mean: lengths.then_some(800.0 + i as f64),
                output_mean: lengths.then_some(90.0),
                reason_ratio: lengths.then_some(0.25),
            })
            .collect(),
    };
    SeriesInput {
        name: "m-small".to_owned(),
        window_s: 600,
        clients: vec![client("a", 1.0), client("b", 0.1)],
        starts_at_midnight: true,
        seed: Seed::new(7),
    }
}

#[test]
fn rates_by_client() {
    let mut input = input(&[]);
    input.series = Some(series(true));
    let text = profile_text(&of(&[], None, &input), &HEAD, Heading::Plain);
    insta::assert_snapshot!(narrow_enough(&text), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        m-small
        2 clients · 1,152 windows of 10 min, 8 days together · 13.7 requests/s

                                mean  median     p95     p99     max  peak/mean  windows
        requests/s, 10 min      13.7    13.8    25.3    26.4    26.4       1.92    1,152
        requests/s, 1 h         13.7    13.8    25.3    26.4    26.4       1.92      192
        prompt tok/s, 10 min  19,223  17,958  41,832  48,380  51,506       2.68    1,152
        output tok/s, 10 min   1,237   1,238   2,277   2,376   2,376       1.92    1,152

        gaps: 2 windows in which all clients are at zero at once, 0.2% of them, the first after 3.33 h;
          without them 13.8 requests/s
        hour of the day: shown: explains 100.0% of how they differ (p = 0.00100 over 999 turned periods);
          the fullest has 24.0 times the emptiest; from midnight ▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇███
        day of the week: not enough history: 1 whole period
        mean hours from second zero on: ▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇███, the fullest 24.0 times the emptiest
        mean days from the first on: ███████
        windows go with those before them by: 0.96 after 10 min, 0.77 after 60 min, -0.08 after 6 h, -0.47
          after 12 h, 0.87 after 24 h, 0.13 after 7 days
        a window over the one before: 1.00 at p1, 1.50 at p99, 2.00 at most
        clients: half of the requests are of 1 of 2; the largest has 90.9%, the largest ten 100.0%
        time between a client's requests: CV 2.00 as a request sees it, 2.00 at the median, 2.00 at p95;
          above 1 in 100.0% of clients' windows
        lengths: known of 100.0% of requests, 2 of 2 clients
          mean prompt 1,399 tokens; of a window 859 (p5) to 1,894 (p95)
          mean output 90.0 tokens; of a window 90.0 (p5) to 90.0 (p95)
          reasoning 25.0% of outputs

        What averages do not say:
        - the fullest 10 min holds 26.4 requests a second, 1.92 times the mean of 13.7
        - the mean prompt of a window drifts from 859 tokens (p5) to 1,894 (p95), 2.2 times: requests times
          a constant length miss that
        - half of all requests come from 1 of 2 clients, 91 % from the largest: one customer's batch job is
          the forecast's error
        - as a request sees it, the time between requests of its client has a CV of 2, not the 1 of Poisson
          arrivals
        - the hour of the day explains 100 % of how hours differ (p = 0.001): a plan by the mean hour is
          short in the fullest

        To know before trusting a number:
        - m-small holds rates by client and window of 10 min, and no requests: nothing can be said of single
          requests
        - all 2 clients are at zero at once in 2 windows of 10 min: gaps in the collection, not idle users;
          treat them as missing
        "#);
    let mut short = series(false);
    short.clients[0].windows.truncate(3);
    short.clients.truncate(1);
    short.window_s = 700;
    input.series = Some(short);
    let text = profile_text(&of(&[], None, &input), &HEAD, Heading::Plain);
    insta::assert_snapshot!(narrow_enough(&text), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        m-small
        1 client · 2 windows of 11.7 min, 23.3 min together · 1.50 requests/s

                              mean  median   p95   p99   max  peak/mean  windows
        requests/s, 11.7 min  1.50    1.50  1.95  1.99  2.00       1.33        2
        hours: unknown: windows do not make whole hours

        gaps: none: there is no window in which all clients are at zero
        hours and days: unknown: there is no whole hour
        windows go with those before them by: -0.50 after 11.7 min
        a window over the one before: 0.500 at p1, 0.500 at p99, 0.500 at most
        clients: half of the requests are of 1 of 1; the largest has 100.0%, the largest ten 100.0%
        time between a client's requests: unknown: no window says it
        lengths: unknown: no window says them

        What averages do not say:
        - the fullest 11.7 min holds 2 requests a second, 1.33 times the mean of 1.5
        - half of all requests come from 1 of 1 clients, 100 % from the largest: one customer's batch job is
          the forecast's error

        To know before trusting a number:
        - m-small holds rates by client and window of 11.7 min, and no requests: nothing can be said of
          single requests
        - lengths are known of 0 % of requests; figures of tokens are of those alone
        "#);
    input.series = Some(SeriesInput { clients: Vec::new(), ..series(false) });
    let text = profile_text(&of(&[], None, &input), &HEAD, Heading::Plain);
    insta::assert_snapshot!(narrow_enough(&text), @r#"
        log.csv
        Azure · 2026-11-02 09:00 UTC to 2026-11-02 09:04 UTC · classes by route · seed 7

        m-small
        0 clients · 0 windows of 10 min, 0 s together · 0 requests/s

                            mean  median  p95  p99  max  peak/mean  windows
        requests/s, 10 min     0       0    0    0    0          -        0
        hours: unknown: windows do not make whole hours

        gaps: none: there is no window in which all clients are at zero
        hours and days: unknown: there is no whole hour
        clients: unknown: no client has a request
        time between a client's requests: unknown: no window says it
        lengths: unknown: no window says them

        To know before trusting a number:
        - m-small holds rates by client and window of 10 min, and no requests: nothing can be said of single
          requests
        - lengths are known of 0 % of requests; figures of tokens are of those alone
        "#);
}

/// The schema comes first, then what was profiled, then the profile.
#[test]
fn the_document() {
    let value = profile_json(&of(&rows(), None, &input(&["chat", "code"])), &HEAD, "0.1.0");
    let object = value.as_object().unwrap();
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "schema",
            "version",
            "source",
            "format",
            "classes_by",
            "from",
            "to",
            "seed",
            "classes",
            "series",
            "warnings",
            "findings"
        ]
    );
    assert_eq!(value["schema"], "plimsoll/profile/v1");
    assert_eq!(value["classes"][0]["name"], "all");
    assert_eq!(value["classes"][0]["shape"]["stretch_s"], 4);
    assert!(value["classes"][1]["prefix_reuse"].is_null());
}

/// Windows are missing because the log is too short for them, or too long.
#[test]
fn windows_that_are_missing() {
    let at = |seconds: i64| Seen { at_ns: Some(seconds * 1_000_000_000), ..bare(Some(1), Some(1)) };
    let check = |seconds: i64, expect: &[&str]| {
        let found = of(&[at(0), at(1), at(seconds)], None, &input(&[]));
        let text = profile_text(&found, &HEAD, Heading::Plain);
        let said: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("windows: ")).collect();
        assert_eq!(said, expect);
    };
    check(30, &["none of 60 s, 300 s, 1 h: fewer than two are complete"]);
    check(200_000_000, &["none of 1 s, 10 s: too many to count"]);
}

/// What is left of a difference is no share below zero.
#[test]
fn no_share_is_below_zero() {
    for share in [-0.0, -1e-17, 0.0] {
        assert_eq!([words::percent(share), words::narrow(share)], ["0.0%", "0.0%"]);
    }
}

#[test]
fn the_page() {
    let profile = of(&rows(), None, &input(&["<b>chat</b>", "code"]));
    let page = crate::profile_html(&profile, &HEAD, "0.1.0");
    let own = page.replace(crate::CHART_SCRIPT, "");
    assert_eq!(own.matches("<h1").count(), 1);
    assert!(!own.contains("<b>") && own.contains("&lt;b&gt;chat"));
    for id in ["shape-0", "windows-0", "lengths-0", "joint-0", "lengths-1"] {
        let (_, rest) = own.split_once(&format!("id=\"chart-{id}\"")).expect(id);
        let (_, alt) = rest.split_once("role=\"img\" aria-label=\"").expect("a sentence");
        assert!(!alt.starts_with('"'), "{id}");
    }
    let mut input = input(&[]);
    input.series = Some(series(true));
    let page = crate::profile_html(&of(&[], None, &input), &HEAD, "0.1.0");
    assert!(page.contains("Rates of m-small") && page.contains("chart-hours"));
}
