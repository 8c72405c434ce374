//! What a log says of a demand: how it comes, how long it is, what it shares, and what of it breaks a plan that is made from averages.
//!
//! A log is gathered row by row ([`Gathered::push`]), stretch by stretch ([`Gathered::append`]), and profiled once. Definitions
//! are those of the figures that the profile is tested against: windows begin with the log's first arrival, the one that holds its last is left out, empty
//! ones count; percentiles are linear between order statistics (type 7 of Hyndman and Fan); variances are of the population; a
//! request's tokens are booked where it arrives. Every class is watched as long as the whole log, so that their windows line up.

mod arrivals;
mod findings;

mod gather;
mod lengths;
mod levels;
mod model;
mod pace;
mod points;
mod queue;
mod result;
mod reuse;
mod season;
mod series;
#[cfg(test)]
mod tests;

use plimsoll_stats::{Seed, in_order};

pub(crate) use findings::{duration, length, percent, short};
pub use gather::{
    ClientSum, EXACT_ROWS, End, GapSums, Gathered, Gathering, JointSum, Kin, Pace, SecondSum, Seen,
    Sums, TotalSum,
};
pub use levels::Levels;
pub use model::{ArrivalModel, BurstModel, GapModel, ModelDispersion, arrival_model};
pub use pace::{PaceInput, pool_pace};
pub use points::{JointLengths, JointPoint, JointPoints};
pub use result::{
    About, Autocorrelations, Budget, Bursts, ClassProfile, ClientShare, Clients, ClockTick,
    Correlation, DemandShape, EndShares, ExponentialFit, Failures, Finding, Fits, InterArrival,
    JointBin, Keyed, Known, Lengths, LognormalFit, ParetoFit, PoissonComparison, PoissonRequests,
    PoissonTokens, PrefillQueue, PrefixReuse, Profile, QueueCapacities, QueueWait, QueueWaits,
    ResidentContext, ResidentLevels, ResidentTokens, ReuseLevels, Season, SeasonVerdict,
    Seasonality, SessionRates, SessionReuse, ShapeFit, Silence, SilenceKind, Silences,
    WindowLevels, Windows,
};
pub use reuse::{ReuseInput, ReuseRequest, prefix_reuse};
pub use series::{
    ClientConcentration, ClientCv, MeanLevels, RatioLevels, SeriesClient, SeriesGaps, SeriesInput,
    SeriesProfile, SeriesSeasonality, SeriesWindow, series_profile,
};

use arrivals::Watch;
use gather::{Arrival, Of, Part};

/// What a profile needs besides the rows.
#[derive(Clone, Debug)]
pub struct ProfileInput {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// How many clients are named.
    pub clients_named: usize,
    /// Where the users' clock stood at the first arrival, where that is known.
    pub clock: Option<Clock>,
    /// Why rows have no time, where they have none, such as "each session has its own clock".
    pub no_clock: Option<String>,
    /// What prompts share, where the log names their blocks.
    pub reuse: Option<PrefixReuse>,
    /// Rates by client and window, where the log holds those.
    pub series: Option<SeriesInput>,
    /// For what is drawn by chance: independent arrivals before the prefill server, and turned days.
    pub seed: Seed,
    /// Threads to use; the result does not depend on it.
    pub threads: usize,
}

/// A moment by the users' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Hour of the day, from 0 to 23.
    pub hour: u8,
    /// Day of the week, from 0 for Monday to 6.
    pub weekday: u8,
}

/// The name of all rows together.
const ALL: &str = "all";

/// What the log says.
pub fn profile(mut gathered: Gathered, input: &ProfileInput) -> Profile {
    gathered.seal();
    gathered.pairs.sort();
    let watch = gathered.times.last().map(|last_ns| Watch { last_ns });
    let mut there = (0..gathered.parts.len()).filter(|i| gathered.parts[*i].rows > 0);
    let several = there.clone().count() > 1;
    // One class is all rows.
    let joined = several.then(|| gathered.whole());
    let empty = Part::default();
    let whole = match (&joined, there.next()) {
        (Some(joined), _) => joined,
        (None, Some(only)) => &gathered.parts[only],
        (None, None) => &empty,
    };
    // All rows first, then each class that has some.
    let mut asked: Vec<Option<usize>> = Vec::new();
    if whole.rows > 0 {
        asked.push(None);
    }
    if several {
        let own = 0..gathered.parts.len();
        asked.extend(own.filter(|i| gathered.parts[*i].rows > 0).map(Some));
    }
    let one = |class: &Option<usize>| {
        let part = class.map_or(whole, |i| &gathered.parts[i]);
        class_profile(&gathered, part, *class, watch, input)
    };
    let count = u32::try_from(asked.len()).unwrap_or(u32::MAX);
    let classes = in_order(input.threads, count, |i| one(&asked[i as usize]));
    let series = input.series.as_ref().map(series_profile);
    let warnings = findings::warnings(&gathered, whole, &classes, series.as_ref(), input);
    let findings = findings::findings(&classes, series.as_ref());
    Profile { classes, series, warnings, findings }
}

fn class_profile(
    gathered: &Gathered,
    part: &Part,
    class: Option<usize>,
    watch: Option<Watch>,
    input: &ProfileInput,
) -> ClassProfile {
    let name = class.map_or_else(
        || ALL.to_owned(),
        |i| input.classes.get(i).cloned().unwrap_or_else(|| format!("class {i}")),
    );
    let watch = watch.filter(|_| part.known.at > 0);
    let span_s = watch.map(Watch::span_s);
    let over_span = |amount: f64| span_s.filter(|span| *span > 0.0).map(|span| amount / span);
    // A row without a time is not of the span, so that it counts for no rate.
    let timed = part.seconds.total();
    let tokens_over_span = |of: Of, known: u64| {
        let tokens = timed[of as usize];
        // Where only rows without a time say it, those of the span do not.
        let said = known > 0 && (tokens > 0.0 || part.known.at == part.rows);
        over_span(tokens).filter(|_| said)
    };
    let own = |arrival: &&Arrival| class.is_none_or(|i| arrival.class as usize == i);
    let mut arrivals = gathered.times.exact().map(|all| all.iter().filter(own));
    let times: Option<Vec<i64>> =
        arrivals.clone().map(|own| own.map(|arrival| arrival.at).collect());
    let gaps = match (&times, gathered.times.bucketed()) {
        (Some(times), _) => arrivals::inter_arrival(times),
        (None, Some(bucketed)) => {
            let own = class.map_or(Some(&bucketed.all), |i| bucketed.classes.get(&(i as u32)));
            own.and_then(arrivals::inter_arrival_bucketed)
        }
        (None, None) => None,
    };
    let (inter_arrival, inter_arrival_fit) = gaps.unzip();
    let head = match (&times, gathered.times.bucketed()) {
        (Some(times), _) => times.get(..times.len().min(gather::HEAD)),
        (None, Some(bucketed)) => class.is_none().then_some(bucketed.head.as_slice()),
        (None, None) => None,
    };
    let tick = head.and_then(arrivals::tick);
    let silences = watch.filter(|_| class.is_none()).and_then(|watch| {
        arrivals::silences(&part.seconds, &gathered.presence, watch, tick.as_ref())
    });
    let by_window = arrivals::by_window(part, watch);
    drop(times);
    let queued = arrivals.as_mut().map(|own| own as &mut dyn Iterator<Item = &Arrival>);
    let prefill_queue = prefill_queue(queued, span_s, gathered.summed, input.seed);
    let mut pairs =
        gathered.pairs.kept().iter().filter(|pair| class.is_none_or(|i| pair.class as usize == i));
    let basis = gathered.shape.pace.as_ref().map(|pace| pace.label.as_str());
    ClassProfile {
        name,
        rows: part.rows,
        requests: part.weight,
        span_s,
        mean_rps_rows_over_span: over_span(timed[Of::Requests as usize]),
        prompt_tokens_per_s: tokens_over_span(Of::Prompt, part.known.prompt),
        output_tokens_per_s: tokens_over_span(Of::Output, part.known.output),
        shape: arrivals::shape(part, watch),
        windows: by_window.windows,
        prompt: lengths::lengths(&part.prompt),
        output: lengths::lengths(&part.output),
        total: lengths::lengths(&part.total),
        zero_prompt_rows: part.prompt.zeros(),
        zero_output_rows: part.output.zeros(),
        reasoning_share_of_output: ratio(part.reasoning, part.reasoning_of),
        inter_arrival,
        inter_arrival_fit: inter_arrival_fit.flatten(),
        prompt_fit: lengths::fits(lengths::values(&part.prompt), 0.0),
        output_fit: lengths::fits(lengths::values(&part.output), 0.0),
        autocorrelation: by_window.autocorrelation,
        correlation_prompt_output: lengths::correlation(
            &part.moments,
            &mut pairs,
            gathered.pairs.exact() && !gathered.summed,
        ),
        kv_resident_context: lengths::resident_context(&part.moments),
        resident_kv_tokens: resident(part, watch, basis, gathered.summed),
        poisson_comparison: by_window.poisson,
        prefix_reuse: input.reuse.clone().filter(|_| class.is_none()),
        bursts: by_window.bursts,
        tick,
        silences,
        seasonality: watch.and_then(|watch| seasonality(part, watch, input)),
        failures: failures(part),
        clients: class.is_none().then(|| clients(gathered, input)).flatten(),
        budget: lengths::budget(
            &part.total,
            &part.prompt,
            part.rows - part.known.max_tokens,
            part.at_limit,
        ),
        prefill_queue,
        joint: lengths::joint(&part.joint),
        known: known(part),
    }
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

/// Why what takes rows is not known of sums.
const SUMMED: &str = "a cluster handed back sums, not rows";

fn resident(
    part: &Part,
    watch: Option<Watch>,
    basis: Option<&str>,
    summed: bool,
) -> ResidentTokens {
    let measured = arrivals::resident(&part.measured, part.rows, watch, None);
    let modelled = arrivals::resident(&part.modelled, part.rows, watch, basis);
    let short = watch.is_some_and(|watch| watch.complete(gather::WINDOW_S).is_none());
    let reason = match (&measured, &modelled) {
        (Some(_), Some(_)) => None,
        _ if watch.is_none() => Some("rows have no common clock".to_owned()),
        _ if summed => Some(SUMMED.to_owned()),
        _ if short => Some("the log is shorter than two windows of 10 s".to_owned()),
        (None, None) => Some(
            "no row says how long it took, and no step-time model was given to say it instead"
                .to_owned(),
        ),
        (None, Some(_)) => Some("measured: no row says how long it took".to_owned()),
        (Some(_), None) => Some("modelled: no step-time model was given".to_owned()),
    };
    ResidentTokens { measured, modelled, reason }
}

fn seasonality(part: &Part, watch: Watch, input: &ProfileInput) -> Option<Seasonality> {
    let hours = watch.complete(3600).unwrap_or(0);
    let sums: Vec<Option<f64>> =
        part.seconds.windows(3600, hours, Of::Requests).into_iter().map(Some).collect();
    let clock = input.clock;
    let hour = season::Period {
        length: 24,
        phase: clock.map_or(0, |clock| usize::from(clock.hour)),
        known: clock.is_some(),
    };
    let hour_of_day = season::test(&sums, hour, input.seed, "hour of day");
    // Days begin at midnight where the clock is known, and else with the log.
    let days: Vec<Option<f64>> = season::means_of_runs(&sums, 24, hour.phase)
        .into_iter()
        .map(|mean| mean.map(|mean| mean * 24.0))
        .collect();
    let skipped = usize::from(hour.phase > 0);
    let day = season::Period {
        length: 7,
        phase: clock.map_or(0, |clock| (usize::from(clock.weekday) + skipped) % 7),
        known: clock.is_some(),
    };
    let day_of_week = season::test(&days, day, input.seed, "day of week");
    Some(Seasonality { hour_of_day, day_of_week })
}

fn failures(part: &Part) -> Failures {
    let [ok, limited, failed, cancelled, unknown] = part.ends;
    // Not all less the unknown: the difference of weights that are no whole numbers may be anything near zero.
    let told = ok + limited + failed + cancelled;
    let share = |amount: f64| if part.weight > 0.0 { amount / part.weight } else { 0.0 };
    // Where no row numbers its attempt, nobody knows whether it was the first.
    let tasks = part.attempts.first().copied().unwrap_or(0.0);
    let retried = part.attempts.get(1).copied().unwrap_or(0.0);
    // A task of exactly so many attempts has the last of them, and not the next. A log that begins in the middle of a task has more later ones.
    let by_attempts = part.attempts.iter().enumerate().map(|(i, tried)| {
        let again = part.attempts.get(i + 1).copied().unwrap_or(0.0);
        ((i + 1).to_string(), (tried - again).max(0.0))
    });
    Failures {
        share_by_end: EndShares {
            ok: share(ok),
            limited: share(limited),
            failed: share(failed),
            cancelled: share(cancelled),
            unknown: share(unknown),
        },
        limited_share: ratio(limited, told),
        failed_share: ratio(limited + failed + cancelled, told),
        retried_tasks: retried,
        retried_share: ratio(retried, tasks),
        tasks_by_attempts: Keyed(by_attempts.collect()),
        zero_outputs: part.output.zeros(),
    }
}

fn clients(gathered: &Gathered, input: &ProfileInput) -> Option<Clients> {
    let mut there: Vec<(usize, &gather::ClientSums)> =
        gathered.clients.iter().enumerate().filter(|(_, sums)| sums.requests > 0.0).collect();
    let tokens = |sums: &gather::ClientSums| sums.prompt + sums.output;
    let all: f64 = there.iter().map(|(_, sums)| tokens(sums)).sum();
    let requests: f64 = there.iter().map(|(_, sums)| sums.requests).sum();
    there.sort_by(|a, b| tokens(b.1).total_cmp(&tokens(a.1)).then(a.0.cmp(&b.0)));
    let mut counts: Vec<f64> = there.iter().map(|(_, sums)| sums.requests).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let by_tokens: Vec<f64> = there.iter().map(|(_, sums)| tokens(sums)).collect();
    let top = there.iter().take(input.clients_named).map(|(i, sums)| ClientShare {
        name: input.clients.get(*i).cloned().unwrap_or_else(|| format!("client {i}")),
        requests: sums.requests,
        prompt_tokens: sums.prompt,
        output_tokens: sums.output,
        share_of_requests: ratio(sums.requests, requests).unwrap_or(0.0),
        share_of_tokens: ratio(tokens(sums), all).unwrap_or(0.0),
    });
    (!there.is_empty()).then(|| Clients {
        count: there.len() as u64,
        half_of_tokens_from: half_from(&by_tokens),
        half_of_requests_from: half_from(&counts),
        top: top.collect(),
    })
}

/// How many, from the largest on, make half.
fn half_from(descending: &[f64]) -> u64 {
    let half = descending.iter().sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reached = descending.iter().position(|amount| {
        sum += amount;
        sum >= half
    });
    reached.map_or(0, |i| i as u64 + 1)
}

fn prefill_queue(
    arrivals: Option<&mut dyn Iterator<Item = &Arrival>>,
    span_s: Option<f64>,
    summed: bool,
    seed: Seed,
) -> PrefillQueue {
    let (Some(arrivals), Some(span)) = (arrivals, span_s) else {
        return queue::refused(match span_s {
            None => "rows have no common clock",
            Some(_) if summed => SUMMED,
            Some(_) => "more rows than each arrival is kept of",
        });
    };
    let most = queue::ROWS_MAX;
    let rows: Vec<(i64, u32)> =
        arrivals.take(most + 1).map(|arrival| (arrival.at, arrival.prompt)).collect();
    if rows.len() > most {
        return queue::refused(&format!("more than {most} requests"));
    }
    queue::prefill_queue(&rows, span, seed)
}

fn known(part: &Part) -> Known {
    let share = |rows: u64| if part.rows > 0 { rows as f64 / part.rows as f64 } else { 0.0 };
    let known = &part.known;
    Known {
        at: share(known.at),
        prompt: share(known.prompt),
        cached: share(known.cached),
        output: share(known.output),
        reasoning: share(known.reasoning),
        max_tokens: share(known.max_tokens),
        client: share(known.client),
        end: share(known.end),
        ttft: share(known.ttft),
        e2e: share(known.e2e),
    }
}
