//! Latencies of one point must add up: a request ends after its first token, and lasts as long as its tokens
//! take. Where they do not by a factor of about a thousand, one is in another unit than its name says.

use plimsoll_study::{BenchPoint, Latency, Load};

use super::row::Row;

/// No engine makes a token in less, in seconds: launching one kernel takes a tenth of it.
const STEP_LEAST: f64 = 50e-6;

pub(super) fn check(row: &mut Row<'_>, point: &BenchPoint) {
    let same = |a: &Latency, b: &Latency| a.mean.zip(b.mean).or(a.p50.zip(b.p50));
    let decode = point.tpot.mean.zip(point.output).map(|(t, o)| t * (o.mean - 1.0).max(0.0));
    if let Some((e2e, ttft)) = same(&point.e2e, &point.ttft)
        && e2e < ttft * 0.999
    {
        let ratio = (ttft + decode.unwrap_or(0.0)) / e2e;
        return clash(row, "e2e", "ttft", ratio, "a request cannot end before its first token");
    }
    if let Some(tpot) = point.tpot.centre().filter(|tpot| *tpot < STEP_LEAST) {
        let why = format!("no engine makes a token in {:.1} µs", tpot * 1e6);
        return clash(row, "tpot", "tpot", 1e3, &why);
    }
    let (Some(tpot), Some(output), Some(decode)) = (point.tpot.mean, point.output, decode) else {
        return;
    };
    let ttft = point.ttft.mean.unwrap_or(0.0);
    if let Some(e2e) = point.e2e.mean {
        if e2e < 0.5 * decode {
            let why = format!("{:.0} tokens take {decode:.3} s", output.mean);
            return clash(row, "e2e", "tpot", decode / e2e, &why);
        }
        let rest = e2e - ttft;
        if decode > 0.0 && rest > 100.0 * decode {
            let why = format!("{:.0} tokens take {decode:.3} s of {rest:.1} s", output.mean);
            return clash(row, "tpot", "e2e", rest / decode, &why);
        }
        let first = e2e - decode;
        if ttft > 0.0 && first > 0.2 * e2e && first > 200.0 * ttft {
            let why = format!("{first:.2} s are left for the first token");
            return clash(row, "ttft", "e2e", first / ttft, &why);
        }
    }
    if ttft > 0.0 && ttft < tpot / 50.0 {
        return clash(row, "ttft", "tpot", tpot / ttft, "a first token takes a whole step");
    }
    little(row, point, ttft + decode);
}

/// Clients over requests per second is what a request lasts, whatever the file says of its latency.
fn little(row: &mut Row<'_>, point: &BenchPoint, adds_up: f64) {
    let Load::Concurrency(clients) = point.load else { return };
    let Some(rate) = point.requests_per_s else { return };
    let in_flight = point.completed.map_or(clients, |n| clients.min(n as f64));
    let (lasts, latency) = (in_flight / rate, point.e2e.mean.unwrap_or(adds_up));
    let ratio = lasts / latency;
    if latency > 0.0 && !(0.01..=100.0).contains(&ratio) {
        let name = if point.e2e.mean.is_some() { "e2e" } else { "tpot" };
        let why = format!(
            "by its latencies a request lasts {latency:.3} s, by {in_flight} in flight at {rate:.3} requests/s it lasts {lasts:.3} s: latencies, lengths or load are not what they say"
        );
        clash(row, name, name, ratio, &why);
    }
}

/// Two fields that exclude each other, the first by `ratio` too small.
fn clash(row: &mut Row<'_>, small: &'static str, other: &'static str, ratio: f64, why: &str) {
    let seen = |name: &str| row.seen.get(name).cloned();
    let (Some(small), other) = (seen(small), seen(other).filter(|_| small != other)) else {
        return row.wrong(small, format!("cannot be: {why}"));
    };
    let beside = other.map_or_else(String::new, |o| format!(", but `{}` is {}", o.field, o.raw));
    let looks = match (ratio, small.per_second) {
        (200.0..=5000.0, 1e3) => "; it looks like seconds in a field of milliseconds",
        (2e-4..=5e-3, 1.0) => "; it looks like milliseconds in a field of seconds",
        _ => "",
    };
    row.wrong(&small.field, format!("is {}{beside}: {why}{looks}", small.raw));
}
