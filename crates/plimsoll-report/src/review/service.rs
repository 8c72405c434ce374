//! What fleets do: the service curve, memory, the demand ahead, and the deciding windows.

use plimsoll_study::{FleetCurve, Review, ScalingPlan, ScalingThreshold};
use plimsoll_units::{Bytes, grouped};
use serde_json::json;

use super::stop;
use crate::chart::service::{
    ServiceCurve, curve_chart, fan_chart, latency_chart, memory_chart, windows_chart,
};
use crate::forecast::{level, number as amount, words};
use crate::html::points_table;
use crate::page::{Block, Section, Table};
use crate::plan::{dollars, number, share};

pub(super) fn curve(review: &Review) -> Option<Section> {
    if review.curves.is_empty() {
        return None;
    }
    let mut own = Section::new("curve", "Service curve");
    let curves: Vec<ServiceCurve<'_>> = review
        .curves
        .iter()
        .map(|own: &FleetCurve| ServiceCurve {
            fleet: own.fleet,
            planned: own.fleet == "planned",
            points: &own.points,
            knee_load: own.knee_load,
            line_load: own.line_load,
        })
        .collect();
    own.push(Block::Chart(Box::new(curve_chart("curve", &curves))));
    own.push(Block::Chart(Box::new(latency_chart("latency", &curves))));
    for curve in &review.curves {
        let replicas: Vec<String> =
            curve.replicas.iter().map(|own| format!("{} {}", own.replicas, own.pool)).collect();
        let caption = format!("{}: {}, {}", curve.fleet, replicas.join(", "), curve.at);
        let table = points_table(&caption, &curve.points, (curve.knee_load, curve.line_load));
        own.push(Block::Fold(
            format!("Points of the curve, {}", curve.fleet),
            vec![Block::Table(table)],
        ));
        if let Some(peak) = curve.peak_output_tokens_per_s {
            own.text(format!(
                "Peak of {}: {} output tokens/s at any price, UNSAFE: not to be planned with.",
                curve.fleet,
                grouped(peak.round().max(0.0) as u64)
            ));
        }
    }
    Some(own)
}

pub(super) fn memory(review: &Review) -> Option<Section> {
    if review.memory.is_empty() {
        return None;
    }
    let mut own = Section::new("memory", "Memory budget");
    own.push(Block::Chart(Box::new(memory_chart(&review.memory))));
    let columns =
        ["pool", "memory", ">devices", ">weights", ">KV", ">KV tokens", ">KV tokens, all now"];
    let mut table = Table::new(
        "Weights and KV are per device, KV tokens per replica and for the replicas of today",
        &columns,
    );
    for (i, fit) in review.memory.iter().enumerate() {
        let now = review.resident_kv_tokens_now.get(i);
        table.row(vec![
            fit.name.as_str().into(),
            if fit.fits { "fits" } else { "DOES NOT FIT" }.into(),
            fit.devices.to_string().into(),
            Bytes::new(fit.weights_bytes).to_string().into(),
            Bytes::new(fit.available_kv_bytes).to_string().into(),
            grouped(fit.kv_tokens).into(),
            now.map_or("-".to_owned(), |now| grouped(*now)).into(),
        ]);
    }
    own.table(table);
    own.table(performance(review));
    own.text("Floors are of a median request alone on a replica. A peak is that of a full replica, where requests wait without end: not a load to plan for. ±: half of such predictions were closer to what was measured.");
    Some(own)
}

fn performance(review: &Review) -> Table {
    let columns = ["pool", ">TTFT floor, ms", ">ITL floor, ms", ">peak, tok/s", "bound by", "from"];
    let mut table = Table::new("The best that one replica can do", &columns);
    for own in &review.performance {
        let latency = |seconds: Option<f64>, pct: f64| {
            seconds.map_or("-".to_owned(), |s| format!("{} ±{pct:.0}%", amount(s * 1e3)))
        };
        let peak = own.peak_output_tokens_per_s.or(own.peak_fresh_tokens_per_s);
        let of = if own.peak_output_tokens_per_s.is_some() { "" } else { " (prompt)" };
        let peak = peak.map_or("-".to_owned(), |peak| {
            format!("{}{of} ±{:.0}%", number(peak), own.peak_band.median_abs_pct)
        });
        table.row(vec![
            own.name.as_str().into(),
            latency(own.ttft_floor_s, own.ttft_band.median_abs_pct).into(),
            latency(own.itl_floor_s, own.itl_band.median_abs_pct).into(),
            peak.into(),
            own.peak_bound.into(),
            json!(own.itl_band.provenance).as_str().unwrap_or_default().into(),
        ]);
    }
    table
}

pub(super) fn ahead(review: &Review) -> Option<Section> {
    let ahead = &review.ahead;
    if ahead.resources.iter().all(|own| own.bands.is_empty()) {
        return None;
    }
    let mut own = Section::new("ahead", "The demand ahead");
    own.text(format!(
        "From {}, hour by hour, as the {} has it. Load lines are an hour's mean: windows peak as high above it as those of the busiest hour do.",
        ahead.start, ahead.from
    ));
    let mut table = Table::new(
        "The fullest hour at each level, against the load lines",
        &["resource", "unit", "level", ">fullest hour", ">line today", ">line planned"],
    );
    for (i, resource) in ahead.resources.iter().enumerate() {
        // The first stands beside the verdict.
        if let Some(chart) = fan_chart(ahead, resource).filter(|_| i > 0) {
            own.push(Block::Chart(Box::new(chart)));
        }
        for band in &resource.bands {
            let most = band.per_s.iter().copied().max_by(f64::total_cmp);
            let maybe = |value: Option<f64>| value.map_or("-".to_owned(), amount);
            table.row(vec![
                words(resource.name).into(),
                resource.unit.into(),
                format!("p{}", level(band.level)).into(),
                maybe(most).into(),
                maybe(resource.load_line_now).into(),
                maybe(resource.load_line_planned).into(),
            ]);
        }
    }
    own.table(table);
    Some(own)
}

pub(super) fn windows(review: &Review) -> Option<Section> {
    Some(scaling_section(&review.plan.as_ref()?.scaling, false))
}

/// How replicas follow the demand, and what that comes to where it rises most; `why` each threshold is what it is.
pub(crate) fn scaling_section(scaling: &ScalingPlan, why: bool) -> Section {
    let mut own = Section::new("windows", "Scaling, and its deciding windows simulated");
    own.text(stop(&scaling.why));
    let signal = |threshold: &ScalingThreshold| {
        json!(threshold.signal).as_str().unwrap_or_default().replace('_', " ")
    };
    let policies = scaling.policies.iter().map(|policy| {
        let above = policy.thresholds.iter().filter_map(|threshold| {
            Some(format!("{} {} {}", signal(threshold), number(threshold.value?), threshold.unit))
        });
        let above: Vec<String> = above.map(|text| text.trim_end().to_owned()).collect();
        format!(
            "{}: {} to {} replicas; up {} every {:.0} s, down {} every {:.0} s after {:.0} s of calm; more above {}.",
            policy.pool,
            policy.min_replicas,
            policy.max_replicas,
            policy.up.replicas,
            policy.up.period_s,
            policy.down.replicas,
            policy.down.period_s,
            policy.down.stabilisation_s,
            above.join(", ")
        )
    });
    own.list(policies.collect());
    if why {
        let mut table = Table::new(
            "Thresholds, and where each comes from",
            &["pool", "signal", ">above", "unit", "because"],
        );
        for policy in &scaling.policies {
            for threshold in &policy.thresholds {
                table.row(vec![
                    policy.pool.as_str().into(),
                    signal(threshold).into(),
                    threshold.value.map_or("-".to_owned(), number).into(),
                    threshold.unit.into(),
                    threshold.why.as_str().into(),
                ]);
            }
        }
        own.table(table);
    }
    let floors = scaling.windows.iter().map(|pool| {
        let each = pool.windows.iter().map(|window| {
            let usd = window.usd.map_or(String::new(), |usd| format!(" ({})", dollars(usd)));
            format!("{} for {} h: {}{usd}", window.from, window.hours, window.floor)
        });
        format!("{} at least: {}.", pool.pool, each.collect::<Vec<_>>().join("; "))
    });
    own.list(floors.collect());
    if let Some(check) = &scaling.check {
        if !check.policy.series.is_empty() {
            own.push(Block::Chart(Box::new(windows_chart(check))));
        }
        let often =
            if check.runs == 1 { "once".to_owned() } else { format!("{} times", check.runs) };
        let mut table = Table::new(
            &format!(
                "The steepest rise, {:.0} min, simulated {often} each way",
                check.seconds / 60.0
            ),
            &["replicas", ">replica hours", ">cost", ">good", ">minutes missed", ">turns a day"],
        );
        let ways = [
            ("all planned, always", &check.static_plan),
            ("this policy", &check.policy),
            ("perfect foresight", &check.oracle),
        ];
        for (name, way) in ways {
            table.row(vec![
                name.into(),
                format!("{:.1}", way.replica_hours).into(),
                way.cost_usd.map_or("-".to_owned(), dollars).into(),
                share(way.attainment).into(),
                format!("{:.1} of {:.1}", way.slo_minutes_missed, way.slo_minutes).into(),
                format!("{:.1}", way.flips_per_day).into(),
            ]);
        }
        own.table(table);
        let regret = check.regret.iter().map(|regret| {
            let of = match json!(regret.of).as_str() {
                Some("static") => "A fixed fleet",
                _ => "The policy",
            };
            let from = match json!(regret.from).as_str() {
                Some("simulation") => "simulated",
                _ => "over the rest of the horizon by the service curve",
            };
            let more = regret
                .cost_usd
                .map_or(format!("{:+.1} replica hours", regret.replica_hours), |usd| {
                    format!("{}{}", if usd < 0.0 { "-" } else { "+" }, dollars(usd.abs()))
                });
            format!(
                "{of} against perfect foresight, {from}: {more}, {:+.1} minutes missed.",
                regret.slo_minutes
            )
        });
        own.list(regret.collect());
        own.list(check.notes.iter().map(|note| stop(note)).collect());
    }
    let ceilings = scaling.ceilings.iter().map(|ceiling| {
        stop(&format!(
            "{}: the ceiling is the failure, not the controller: {}",
            ceiling.pool, ceiling.why
        ))
    });
    own.list(ceilings.collect());
    own
}
