//! What should be known of points before they are used, as far as no model or hardware is needed to see it.

use plimsoll_study::{BenchPoint, Flag, Latency, Load};

/// Flags of all points of one file. Gaps between chunks that carry several tokens are taken out of their points.
pub(super) fn lint(points: &mut [BenchPoint]) -> Vec<Flag> {
    let mut flags = Vec::new();
    for point in points.iter_mut() {
        failures(point, &mut flags);
        lengths(point, &mut flags);
        hints(point, &mut flags);
        chunks(point, &mut flags);
        too_short(point, &mut flags);
    }
    flags.extend(lint_sweep(points));
    flags
}

/// Flags that only several points together raise, whatever files they come from: repeats that contradict each other or are the same point twice, and
/// gaps that fall as load rises.
pub fn lint_sweep(points: &[BenchPoint]) -> Vec<Flag> {
    let mut flags = Vec::new();
    repeats(points, &mut flags);
    falls(points, &mut flags);
    for (n, point) in points.iter().enumerate() {
        let same = |other: &&BenchPoint| {
            BenchPoint { origin: point.origin.clone(), ..(*other).clone() } == *point
        };
        if let Some(first) = points[..n].iter().find(same) {
            let message = format!(
                "the same point as row {} of {}: it is used once",
                first.origin.row, first.origin.file
            );
            flags.push(flag(point, "same-twice", true, "row", message));
        }
    }
    flags
}

fn flag(
    point: &BenchPoint,
    code: &'static str,
    rejects: bool,
    field: &str,
    message: String,
) -> Flag {
    Flag { code, rejects, origin: point.origin.clone(), field: field.to_owned(), message }
}

fn failures(point: &BenchPoint, flags: &mut Vec<Flag>) {
    let Some(failed) = point.failed.filter(|n| *n > 0) else { return };
    let all = failed.saturating_add(point.completed.unwrap_or(0));
    let share = failed as f64 / all as f64;
    let rejects = share > 0.1;
    let what =
        if rejects { ": the others ran under another load, so the point is left out" } else { "" };
    let message = format!("{failed} of {all} requests failed ({:.1}%){what}", share * 100.0);
    flags.push(flag(point, "failed-requests", rejects, "failed", message));
}

/// Lengths that were asked for, against those that were counted.
fn lengths(point: &BenchPoint, flags: &mut Vec<Flag>) {
    let asked = [
        ("prompt", point.prompt, ["input_len", "random_input_len", "isl", "prompt_tokens"]),
        ("output", point.output, ["output_len", "random_output_len", "osl", "output_tokens"]),
    ];
    for (field, length, names) in asked {
        let Some(length) = length else { continue };
        if !length.counted {
            let message = format!("{} tokens were asked for, none counted", length.mean);
            flags.push(flag(point, "lengths-nominal", false, field, message));
            continue;
        }
        let asked = names.iter().find_map(|name| says(point, name)?.parse::<f64>().ok());
        if let Some(asked) = asked.filter(|a| *a > 0.0 && (length.mean / a - 1.0).abs() > 0.1) {
            let message = format!(
                "the tool drew lengths: mean {:.1}, asked {asked}; the mean is taken",
                length.mean
            );
            flags.push(flag(point, "lengths-nominal", false, field, message));
        }
    }
}

/// What a file says of its setup that changes what its numbers mean.
fn hints(point: &BenchPoint, flags: &mut Vec<Flag>) {
    if let Some(accepted) = point.accepted_per_step.filter(|n| *n > 1.05) {
        let message = format!("{accepted:.2} tokens accepted a step: TPOT is no step time");
        flags.push(flag(point, "speculative-decoding", true, "accepted_per_step", message));
    }
    let replicas = [
        "decode_replicas",
        "replicas",
        "num_replicas",
        "dp",
        "dp_size",
        "data_parallel",
        "data_parallel_size",
    ];
    for name in replicas {
        let count = says(point, name).and_then(|value| value.parse::<f64>().ok());
        if let Some(count) = count.filter(|n| *n > 1.0) {
            let message = format!(
                "`{name}` is {count}: one load covers {count} replicas; where the load and throughput are those of one \
                 replica, set `{name}` to 1"
            );
            flags.push(flag(point, "several-replicas", true, name, message));
            break;
        }
    }
    let caching = [
        "prefix_caching",
        "enable_prefix_caching",
        "prefix_cache",
        "random_prefix_len",
        "prefix_tokens",
    ];
    let on = |name: &&str| {
        says(point, name).is_some_and(|v| {
            !["", "0", "false", "no", "off", "none"].contains(&v.to_lowercase().as_str())
        })
    };
    let said = caching.iter().copied().find(|name| on(name));
    let said = said.or_else(|| {
        (says(point, "disable_radix_cache") == Some("false")).then_some("disable_radix_cache")
    });
    let share = point.cached_share.filter(|share| *share > 0.0);
    let message = match (share, said) {
        (Some(share), _) => {
            format!("{:.1}% of prompt tokens came from a prefix cache", share * 100.0)
        }
        (None, Some(name)) => {
            format!("`{name}` is set: cached prefixes make TTFT better than a cold prompt's")
        }
        (None, None) => return,
    };
    flags.push(flag(point, "prefix-cache", false, said.unwrap_or("cached_share"), message));
}

fn chunks(point: &mut BenchPoint, flags: &mut Vec<Flag>) {
    let Some((itl, tpot)) = point.itl.mean.zip(point.tpot.mean) else { return };
    if (itl / tpot - 1.0).abs() > 0.25 {
        let message = format!(
            "gaps of {:.2} ms between chunks, {:.2} ms between tokens: a chunk is no token; only TPOT is taken",
            itl * 1e3,
            tpot * 1e3
        );
        flags.push(flag(point, "chunks-carry-several-tokens", false, "itl", message));
        point.itl = Latency::default();
    }
}

fn too_short(point: &BenchPoint, flags: &mut Vec<Flag>) {
    if let Some(completed) = point.completed.filter(|n| *n < 20) {
        let message = format!("{completed} requests: warm-up weighs in every number");
        flags.push(flag(point, "too-short", false, "completed", message));
        return;
    }
    let several = match point.load {
        Load::Concurrency(clients) => clients > 1.0,
        Load::Rate(_) => true,
        Load::AllAtOnce | Load::StaticBatch(_) => false,
    };
    let decode = point.tpot.mean.zip(point.output).map(|(tpot, output)| tpot * (output.mean - 1.0));
    let added = || Some(point.ttft.mean? + decode?);
    let Some((duration, e2e)) = point.duration_s.zip(point.e2e.mean.or_else(added)) else { return };
    if several && duration < 3.0 * e2e {
        let message = format!(
            "{duration:.1} s of load, a request lasts {e2e:.1} s: filling up and draining weigh in"
        );
        flags.push(flag(point, "too-short", false, "duration_s", message));
    }
}

/// The same load and lengths twice, with another answer.
fn repeats(points: &[BenchPoint], flags: &mut Vec<Flag>) {
    for (i, point) in points.iter().enumerate() {
        let Some(tpot) = point.tpot.centre() else { continue };
        let others = points.iter().enumerate().filter(|(j, other)| *j != i && alike(point, other));
        let off =
            others.filter(|(_, other)| same_load(point.load, other.load)).find_map(|(_, other)| {
                let theirs = other.tpot.centre()?;
                (tpot.max(theirs) > 1.3 * tpot.min(theirs)).then_some((other, theirs))
            });
        if let Some((other, theirs)) = off {
            let message = format!(
                "TPOT of {:.2} ms, and {:.2} ms in row {} under the same load and lengths",
                tpot * 1e3,
                theirs * 1e3,
                other.origin.row
            );
            flags.push(flag(point, "contradictory-repeats", false, "tpot", message));
        }
    }
}

/// A step does not get faster as more requests share it: where TPOT falls, a run inside the sweep failed.
fn falls(points: &[BenchPoint], flags: &mut Vec<Flag>) {
    let mut sorted: Vec<(f64, f64, &BenchPoint)> = points
        .iter()
        .filter_map(|point| match point.load {
            Load::Concurrency(load) | Load::Rate(load) => Some((load, point.tpot.centre()?, point)),
            Load::AllAtOnce | Load::StaticBatch(_) => None,
        })
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    while !sorted.is_empty() {
        let (first, rest): (Vec<_>, Vec<_>) = {
            let head = sorted[0].2;
            sorted.into_iter().partition(|(_, _, p)| alike(head, p) && same_kind(head.load, p.load))
        };
        sweep(first, flags);
        sorted = rest;
    }
}

/// One sweep, by load: suspects are taken out until what is left rises.
fn sweep(mut points: Vec<(f64, f64, &BenchPoint)>, flags: &mut Vec<Flag>) {
    loop {
        let mut fall = None;
        let mut peak = 0;
        for j in 1..points.len() {
            if points[j].0 > points[peak].0 && points[j].1 < 0.6 * points[peak].1 {
                fall = Some((peak, j));
                break;
            }
            if points[j].1 > points[peak].1 {
                peak = j;
            }
        }
        let Some((peak, low)) = fall else { return };
        // A peak above both its neighbours is the odd one out; at the edge, the next two must agree against it.
        let above = |i: Option<usize>| {
            i.and_then(|i| points.get(i)).is_some_and(|p| points[peak].1 > 1.6 * p.1)
        };
        let before = if peak == 0 { Some(2) } else { Some(peak - 1) };
        let suspect = if above(Some(peak + 1)) && above(before) { peak } else { low };
        let ((load, tpot, point), other) =
            (points[suspect], points[if suspect == peak { low } else { peak }]);
        let message = format!(
            "TPOT of {:.2} ms at a load of {load}, but {:.2} ms at {}: it cannot fall so as load rises; the run is \
             left out",
            tpot * 1e3,
            other.1 * 1e3,
            other.0
        );
        flags.push(flag(point, "tpot-falls", true, "tpot", message));
        points.remove(suspect);
    }
}

fn says<'a>(point: &'a BenchPoint, name: &str) -> Option<&'a str> {
    point.says.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The same setup and, within a tenth, the same lengths.
fn alike(a: &BenchPoint, b: &BenchPoint) -> bool {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() <= 0.1;
    let lengths = [(a.prompt, b.prompt), (a.output, b.output)].into_iter().all(|pair| match pair {
        (Some(a), Some(b)) => near(a.mean, b.mean),
        (a, b) => a.is_none() && b.is_none(),
    });
    // The cap of an open loop and what a tool calls a run go with the load.
    let load = ["max_concurrency", "label", "tag"];
    let setup = |(key, _): &&(String, String)| !load.contains(&key.as_str());
    lengths && a.says.iter().filter(setup).eq(b.says.iter().filter(setup))
}

fn same_kind(a: Load, b: Load) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

fn same_load(a: Load, b: Load) -> bool {
    match (a, b) {
        (Load::Concurrency(a), Load::Concurrency(b)) | (Load::Rate(a), Load::Rate(b)) => {
            (a / b - 1.0).abs() < 1e-6
        }
        (Load::AllAtOnce, Load::AllAtOnce) => true,
        _ => false,
    }
}
