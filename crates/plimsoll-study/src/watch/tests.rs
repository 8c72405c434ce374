use serde_json::json;

use super::*;

/// One pool: a replica carries 1,000 fresh prompt tokens/s at its line and is steered to 900; starts take 600 s.
fn plan() -> PlanFile {
    let limit = |value: f64| json!({ "value": value, "unit": "", "why": "" });
    let none = || limit(1.0);
    let threshold = |signal: &str, role: &str, kind: &str, value: f64| json!({ "signal": signal, "role": role, "kind": kind, "value": value, "unit": "x/replica", "why": "" });
    let behaviour = |replicas: u32, stabilisation: f64| json!({ "replicas": replicas, "period_s": 600.0, "stabilisation_s": stabilisation, "why": "" });
    let levels = |value: f64| json!({ "p50": vec![value; 48], "planned": vec![2.0 * value; 48] });
    let plan = json!({
        "schema": "plimsoll/plan/v1", "id": "p1", "name": "n", "as_of": "2026-11-15",
        "attainment": 0.99, "feasible": true,
        "pools": [{
            "name": "chat", "model": "m", "accelerator": "a", "engine": "vllm@0.24", "weights": "bf16",
            "parallelism": { "tensor": 1, "pipeline": 1, "expert": 1, "data": 1, "context": 1, "devices": 1 },
            "replicas": { "now": 4, "steady": 4, "failure": 1, "rollout": 1, "canary": 0, "maintenance": 0, "warm": 1, "forecast": 1, "cold_cache": 0, "total": 8 },
            "devices": 8, "binds": null
        }],
        "fleet": null,
        "lines": [{
            "pool": "chat", "calls_per_s": 2.0, "fresh_tokens_per_s": 1000.0, "output_tokens_per_s": 400.0,
            "in_flight": 20.0, "kv_share_max": 0.8, "kv_tokens": 100_000, "max_num_seqs": 64,
            "ttft_s": 1.0, "tpot_s": 0.05, "e2e_s": null, "startup_p90_s": 600.0,
            "classes": [{ "class": "c", "share": 1.0, "calls_per_s": 6.0, "prompt_tokens": 1000.0, "fresh_tokens": 500.0, "output_tokens": 200.0 }]
        }],
        "limits": [{
            "pool": "chat", "max_num_seqs": none(), "max_num_batched_tokens": none(), "max_model_len": none(),
            "queue_tokens": none(), "queue_requests": none(), "queue_age": none(), "kv_ceiling": limit(0.8),
            "request_ttl": none(), "no_endpoint_ttl": none(), "deadline": none(), "drain": none(),
            "classes": [], "tenants": []
        }],
        "scaling": { "advised": true, "why": "", "policies": [{
            "pool": "chat",
            "thresholds": [
                threshold("fresh_tokens", "demand", "average_value", 900.0),
                threshold("in_flight", "demand", "average_value", 18.0),
                threshold("queue_depth", "guard", "average_value", 5.0),
                threshold("ttft_p90", "guard", "value", 0.8),
            ],
            "leading": "fresh_tokens", "demand_share": 0.9, "min_replicas": 2, "max_replicas": 8,
            "floors": [
                { "from_hour": 0, "until_hour": 10, "replicas": 2 },
                { "from_hour": 10, "until_hour": 20, "replicas": 6 },
            ],
            "floors_lead_s": 600.0, "up": behaviour(2, 0.0), "down": behaviour(1, 1800.0),
            "tolerance_share": 0.05, "sync_period_s": 15.0
        }] },
        "forecast": { "quantile": 0.95, "start": "2026-11-16T00:00:00Z", "step_s": 3600, "classes": [
            { "name": "c", "requests_per_s": levels(3.0), "fresh_tokens_per_s": levels(1500.0), "output_tokens_per_s": levels(600.0) },
        ] },
    });
    serde_json::from_value(plan).expect("a plan")
}

fn watcher() -> Watcher {
    Watcher::new(plan(), 0.0, 60.0)
}

/// What four replicas report that carry 2,700 fresh prompt tokens/s.
fn usual() -> PoolSighting {
    PoolSighting {
        pool: "chat".to_owned(),
        replicas: Some(4.0),
        requests: Some(5.4),
        prompt_tokens: Some(5400.0),
        fresh_tokens: Some(2700.0),
        output_tokens: Some(1080.0),
        in_flight: Some(40.0),
        waiting: Some(0.0),
        kv_share: Some(0.4),
        ttft_p90_s: Some(0.3),
        ..PoolSighting::default()
    }
}

fn see(watcher: &mut Watcher, at_s: f64, own: PoolSighting) -> PoolAdvice {
    watcher.see(&Sighting { at_s, pools: vec![own] });
    watcher.advice(at_s).pools.remove(0)
}

#[test]
fn replicas_follow_what_is_asked_for() {
    let mut watcher = watcher();
    let advice = see(&mut watcher, 0.0, usual());
    // 2,700 / 900 = 3, and 40 / 18 asks for 3, too.
    assert_eq!((advice.replicas, advice.desired_replicas), (Some(4), Some(3)));
    let fresh = &advice.resources[0];
    assert_eq!((fresh.resource, fresh.now, fresh.line), ("fresh_tokens", 2700.0, Some(4000.0)));
    assert!((fresh.headroom_ratio.expect("a line") - 0.325).abs() < 1e-12);
    // More comes: followed at once.
    let more = PoolSighting { fresh_tokens: Some(4600.0), ..usual() };
    let advice = see(&mut watcher, 60.0, more);
    assert_eq!(advice.desired_replicas, Some(6), "{}", advice.why);
    assert!(advice.resources[0].headroom_ratio.expect("a line") < 0.0);
    // Less comes: held for half an hour, then followed.
    let advice = see(&mut watcher, 120.0, usual());
    assert_eq!(advice.desired_replicas, Some(6));
    assert!(advice.why.starts_with("held"), "{}", advice.why);
    for look in 5..63 {
        see(&mut watcher, f64::from(look) * 30.0, usual());
    }
    let advice = see(&mut watcher, 60.0 + 1830.0, usual());
    assert_eq!(advice.desired_replicas, Some(3), "{}", advice.why);
}

#[test]
fn what_is_not_seen_is_no_zero() {
    let mut watcher = watcher();
    assert_eq!(watcher.advice(0.0).pools[0].desired_replicas, None);
    see(&mut watcher, 0.0, PoolSighting { fresh_tokens: Some(5000.0), ..usual() });
    let nothing = PoolSighting {
        pool: "chat".to_owned(),
        trouble: vec!["refused".to_owned()],
        ..PoolSighting::default()
    };
    for hours in 1..9 {
        let advice = see(&mut watcher, f64::from(hours) * 3600.0, nothing.clone());
        assert_eq!(advice.desired_replicas, Some(6), "{}", advice.why);
        assert_eq!(advice.age_s, Some(f64::from(hours) * 3600.0));
        assert!(advice.stale && advice.trouble == ["refused"]);
    }
}

#[test]
fn replicas_that_stop_reporting_lower_nothing() {
    let mut watcher = watcher();
    let own = PoolSighting { fresh_tokens: Some(3500.0), ..usual() };
    assert_eq!(see(&mut watcher, 0.0, own).desired_replicas, Some(4));
    // Three of four are not scraped any more: a quarter of the truth is seen, over and over.
    for minute in 1..9 {
        let own = PoolSighting {
            replicas: Some(1.0),
            fresh_tokens: Some(875.0),
            in_flight: Some(10.0),
            ..usual()
        };
        let advice = see(&mut watcher, f64::from(minute) * 60.0, own);
        assert_eq!(advice.desired_replicas, Some(4), "{}", advice.why);
    }
}

#[test]
fn the_calendar_comes_a_start_early() {
    let mut watcher = watcher();
    let at = 10.0 * 3600.0;
    assert_eq!(see(&mut watcher, at - 601.0, usual()).desired_replicas, Some(3));
    let advice = see(&mut watcher, at - 599.0, usual());
    assert_eq!(advice.desired_replicas, Some(6), "{}", advice.why);
    assert!(advice.why.starts_with("calendar"), "{}", advice.why);
    // Even where nothing is seen any more.
    assert_eq!(watcher.advice(at + 3600.0).pools[0].desired_replicas, Some(6));
}

#[test]
fn a_queue_that_grows_is_demand() {
    let mut watcher = watcher();
    for minute in 0..=5 {
        // 60 more calls wait each minute: one a second, of 500 fresh tokens each.
        let waiting = Some(f64::from(minute) * 60.0);
        see(&mut watcher, f64::from(minute) * 60.0, PoolSighting { waiting, ..usual() });
    }
    let advice = &watcher.advice(300.0).pools[0];
    assert!((advice.resources[0].now - 3200.0).abs() < 1e-9, "{}", advice.resources[0].now);
    // 300 calls wait and 5 may: sixty replicas would share them; no more than two are added at once.
    let queue = advice.asks.iter().find(|ask| ask.signal == "queue_depth").expect("asks");
    assert_eq!(queue.replicas, 6);
    // A gateway has counted them already.
    let mut offered = self::watcher();
    for minute in 0..=5 {
        let waiting = Some(f64::from(minute) * 60.0);
        let own = PoolSighting { waiting, offered: true, ..usual() };
        see(&mut offered, f64::from(minute) * 60.0, own);
    }
    assert_eq!(offered.advice(300.0).pools[0].resources[0].now, 2700.0);
}

#[test]
fn bounds_of_the_plan_are_kept_and_said() {
    let mut watcher = watcher();
    let own = PoolSighting { fresh_tokens: Some(20_000.0), ..usual() };
    let advice = see(&mut watcher, 0.0, own);
    assert_eq!(advice.desired_replicas, Some(8));
    assert!(advice.why.contains("23 would be needed"), "{}", advice.why);
}

#[test]
fn drift_is_of_lengths_hits_and_not_of_rates() {
    let mut watcher = watcher();
    let drift = see(&mut watcher, 0.0, usual()).drift;
    let said: Vec<(&str, f64, f64, bool)> = drift
        .iter()
        .map(|d| (d.assumption, d.planned, (d.now * 1e9).round() / 1e9, d.beyond))
        .collect();
    assert_eq!(
        said,
        [
            ("prompt_length", 1000.0, 1000.0, false),
            ("output_length", 200.0, 200.0, false),
            ("cache_hit", 0.5, 0.5, false)
        ]
    );
    let own = PoolSighting { fresh_tokens: Some(4320.0), output_tokens: Some(1620.0), ..usual() };
    let drift = see(&mut watcher, 60.0, own).drift;
    assert_eq!(drift.iter().map(|d| d.beyond).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_rise_is_warned_of_before_the_line() {
    let mut watcher = watcher();
    let now = 8.0 * 3600.0;
    // Six hours at 2,000 with some unrest, and an hour in which it grows to 3,500: the line of four replicas is at 4,000.
    let history: Vec<(f64, f64)> = (0..7 * 60)
        .map(|minute| {
            let unrest = 40.0 * f64::from((minute * 7919) % 13 - 6) / 6.0;
            let rise = f64::from((minute - 360).max(0)) * 25.0;
            (now - f64::from(7 * 60 - minute) * 60.0, 2000.0 + unrest + rise)
        })
        .collect();
    watcher.remember("chat", &history);
    let own = PoolSighting { fresh_tokens: Some(3500.0), offered: true, ..usual() };
    let advice = see(&mut watcher, now, own);
    let found = advice.inflection.expect("enough history");
    let crosses = found.crosses_in_s.expect("it is about to cross");
    assert!((600..=2400).contains(&crosses), "{crosses}");
    // What comes is asked for while there is time to start it.
    let ahead = advice.asks.iter().find(|ask| ask.signal == "ahead").expect("asks");
    assert!(ahead.replicas >= 5, "{ahead:?}");
    assert!(advice.desired_replicas >= Some(5));
    // The same load without a rise warns of nothing.
    let mut calm = self::watcher();
    let flat: Vec<(f64, f64)> = history.iter().map(|(at, _)| (*at, 2000.0)).collect();
    calm.remember("chat", &flat);
    let own = PoolSighting { fresh_tokens: Some(2000.0), offered: true, ..usual() };
    let found = see(&mut calm, now, own).inflection.expect("enough history");
    assert_eq!(found.crosses_in_s, None);
}

#[test]
fn the_fullest_replica_comes_first() {
    let mut watcher = watcher();
    let replica = |name: &str, fresh: f64, kv: f64| ReplicaSighting {
        replica: name.to_owned(),
        fresh_tokens: Some(fresh),
        output_tokens: None,
        in_flight: Some(5.0),
        kv_share: Some(kv),
    };
    let each = vec![replica("a", 600.0, 0.2), replica("b", 100.0, 0.9), replica("c", 1100.0, 0.1)];
    let each = see(&mut watcher, 0.0, PoolSighting { each, ..usual() }).each;
    let said: Vec<(&str, &str)> = each.iter().map(|r| (r.replica.as_str(), r.resource)).collect();
    assert_eq!(said, [("b", "kv"), ("c", "fresh_tokens"), ("a", "fresh_tokens")]);
}

#[test]
fn the_forecast_of_the_hour_is_at_hand() {
    let forecast = watcher().advice(5.5 * 3600.0).pools.remove(0).forecast;
    assert_eq!(forecast[1].resource, "fresh_tokens");
    assert_eq!(
        (forecast[1].p50, forecast[1].planned, forecast[1].quantile),
        (1500.0, 3000.0, 0.95)
    );
    // Beyond its end there is none.
    assert_eq!(watcher().advice(49.0 * 3600.0).pools[0].forecast, []);
}

#[test]
fn a_signal_that_is_lost_lowers_nothing() {
    let mut watcher = watcher();
    let busy = PoolSighting { fresh_tokens: Some(5300.0), ..usual() };
    assert_eq!(see(&mut watcher, 0.0, busy).desired_replicas, Some(6));
    // Counters are gone and gauges are there, for hours: whoever restarts has no rates, whoever renames them neither.
    for hours in 1..6 {
        let own = PoolSighting { fresh_tokens: None, in_flight: Some(3.0), ..usual() };
        let advice = see(&mut watcher, f64::from(hours) * 3600.0, own);
        assert_eq!(advice.desired_replicas, Some(6), "{}", advice.why);
        assert_eq!(advice.age_s, Some(f64::from(hours) * 3600.0));
        assert!(
            advice.stale && advice.trouble[0].contains("not answered any more"),
            "{:?}",
            advice.trouble
        );
    }
    // It answers again: followed after the quiet while that the plan asks for.
    let quiet = || PoolSighting { in_flight: Some(3.0), ..usual() };
    see(&mut watcher, 21_600.0, quiet());
    for minute in 1..40 {
        see(&mut watcher, 21_600.0 + f64::from(minute) * 60.0, quiet());
    }
    assert_eq!(watcher.advice(21_600.0 + 2340.0).pools[0].desired_replicas, Some(3));
}

#[test]
fn time_in_which_nothing_is_seen_is_no_quiet_time() {
    let mut watcher = watcher();
    let busy = PoolSighting { fresh_tokens: Some(5300.0), ..usual() };
    see(&mut watcher, 0.0, busy);
    assert_eq!(see(&mut watcher, 60.0, usual()).desired_replicas, Some(6));
    // Blind for two hours: held as it was.
    assert_eq!(watcher.advice(7200.0).pools[0].desired_replicas, Some(6));
    // The first look afterwards sees one replica of four.
    let one = PoolSighting {
        replicas: Some(1.0),
        fresh_tokens: Some(600.0),
        in_flight: Some(9.0),
        ..usual()
    };
    let advice = see(&mut watcher, 7300.0, one);
    assert_eq!(advice.desired_replicas, Some(6), "{}", advice.why);
}

#[test]
fn a_gateway_that_falls_silent_lowers_nothing() {
    let mut watcher = watcher();
    let offered =
        PoolSighting { fresh_tokens: Some(5300.0), offered: true, gateways: Some(2.0), ..usual() };
    assert_eq!(see(&mut watcher, 0.0, offered.clone()).desired_replicas, Some(6));
    // Half of it, for a while; then only what is served, for hours.
    let half = PoolSighting { fresh_tokens: Some(2650.0), gateways: Some(1.0), ..offered };
    assert_eq!(see(&mut watcher, 60.0, half).desired_replicas, Some(6));
    for hours in 1..5 {
        let advice = see(&mut watcher, f64::from(hours) * 3600.0, usual());
        assert_eq!(advice.desired_replicas, Some(6), "{}", advice.why);
    }
}

#[test]
fn a_plan_that_is_over_says_so() {
    let mut watcher = watcher();
    let over = see(&mut watcher, 48.0 * 3600.0, usual());
    assert!(over.trouble[0].contains("are over"), "{:?}", over.trouble);
    assert_eq!(see(&mut watcher, 47.9 * 3600.0, usual()).trouble, [] as [String; 0]);
}
