//! A small review, made by hand, in which every option is there once.

use std::collections::BTreeMap;

use plimsoll_cost::{Period, Usage, books};
use plimsoll_sim::Kv;
use plimsoll_study::*;

/// A name that would be markup, were it not escaped.
pub(super) const NAME: &str = "chat </script><b>launch</b> | *x*";

fn span(low: f64, high: f64) -> Option<Span> {
    Some(Span { low, high, level: 0.95, n: 8 })
}

pub(crate) fn review() -> Review {
    Review {
        name: NAME.to_owned(),
        as_of: "2026-11-15".to_owned(),
        start: "Mon 2026-11-16 00:00 UTC".to_owned(),
        seed: 7,
        demand_quantile: 0.95,
        baseline_from: "Tue 2026-11-17 14:00 UTC".to_owned(),
        launch_from: Some("Wed 2026-11-18 15:00 UTC".to_owned()),
        verdict: ReviewVerdict {
            today: Decision::NotReady,
            plan: Decision::Ready,
            over_caps: vec!["budget.monthly".to_owned()],
            because: vec!["over the cap `budget.monthly`".to_owned()],
            says: "Today's fleet carries 69% of the launch. `chat` runs out first: decode."
                .to_owned(),
        },
        demand: demand(),
        plan: Some(plan()),
        stress: Some(stress_result()),
        cost: Some(cost()),
        dear_classes: vec![DearClass {
            class: "chat".to_owned(),
            usd_per_success: 1.33,
            value_usd: 0.4,
        }],
        curves: vec![curve("today", 8, 1.0), curve("planned", 13, 1.6)],
        memory: vec![fit()],
        resident_kv_tokens_now: vec![3_200_000],
        performance: vec![performance()],
        ahead: ahead(),
        signals: vec![Watch {
            signal: "queue_wait".to_owned(),
            of: Some("chat".to_owned()),
            threshold: Some(2.5),
            unit: "s",
            metric: Some("vllm:request_queue_time_seconds".to_owned()),
            means: "requests wait before they are read".to_owned(),
            action: "add replicas, then shed batch".to_owned(),
        }],
        questions: vec![
            Answered {
                question: "What if twice as many come?",
                answer: "promises break at 1.2 times the planned demand".to_owned(),
                known: true,
            },
            Answered {
                question: "How good are the answers?",
                answer: "nobody has judged tasks: a ledger with outcomes would say".to_owned(),
                known: false,
            },
        ],
        method: Method {
            says: vec!["simulated step by step".to_owned()],
            validation: vec![Validated {
                pool: "chat".to_owned(),
                what: "gap between tokens",
                provenance: Provenance::Modeled,
                median_abs_pct: 6.0,
                p90_abs_pct: 17.0,
                cases: 1_204,
            }],
        },
        notes: vec!["spot devices may be taken away".to_owned()],
        assumptions: vec![
            Assumption {
                name: "class.chat.cache_hit".to_owned(),
                value: Some("0.4".to_owned()),
                provenance: Provenance::Supplied,
                source: "chat.toml:12".to_owned(),
                date: Some("2026-11-01".to_owned()),
                age_days: Some(14),
            },
            Assumption {
                name: "price".to_owned(),
                value: None,
                provenance: Provenance::Modeled,
                source: "<img src=x>".to_owned(),
                date: None,
                age_days: None,
            },
        ],
    }
}

fn demand() -> Demand {
    let level = |mean: f64| Level {
        mean_per_s: mean,
        p95_per_s: mean * 1.3,
        p95_interval: span(mean * 1.25, mean * 1.35),
        peak_per_s: mean * 1.8,
    };
    let row = |class: Option<&str>, resource, mean: f64| DemandRow {
        class: class.map(str::to_owned),
        resource,
        baseline: level(mean),
        launch: Some(level(mean * 1.7)),
    };
    Demand {
        pools: Vec::new(),
        window_s: 10.0,
        runs: 8,
        baseline_hour: BusyHour { index: 38, tasks_per_draw: 1 },
        launch_hour: Some(BusyHour { index: 63, tasks_per_draw: 1 }),
        rows: vec![
            row(None, Resource::Requests, 40.0),
            row(None, Resource::OutputTokens, 9_000.0),
            row(Some("chat"), Resource::FreshPromptTokens, 60_000.0),
        ],
    }
}

fn reach(carries: f64, covers: f64) -> Reach {
    Reach { carries: Some(carries), covers: Some(covers), ..Reach::default() }
}

fn row(resource: &'static str, demand: f64, covers: f64, verdict: RowVerdict) -> TableRow {
    let of = |covers: f64| reach(demand * covers, covers);
    TableRow {
        resource,
        unit: "1/s",
        provenance: "modeled",
        source: None,
        baseline: Some(demand / 1.7),
        launch: Some(demand),
        today: of(covers),
        planned: of(covers * 2.0),
        planned_with_loss: Some(of(covers * 1.8)),
        verdict_today: verdict,
        verdict_planned: RowVerdict::Ok,
        is_cause: verdict == RowVerdict::Shortfall,
        runs_out_at: (verdict == RowVerdict::Shortfall)
            .then(|| "Wed 2026-11-18 15:00 UTC".to_owned()),
    }
}

fn table() -> LaunchTable {
    let lost = Reach { carries: None, ..reach(0.0, 1.24) };
    LaunchTable {
        has_event: true,
        fleet: FleetLine {
            today: Reach { carries: None, ..reach(0.0, 0.69) },
            verdict_today: LoadVerdict::Fails,
            planned: Reach { carries: None, ..reach(0.0, 1.38) },
            verdict_planned: LoadVerdict::Carried,
            planned_with_loss: Some(lost),
            loss: Some("a node of chat".to_owned()),
        },
        pools: vec![
            PoolBlock {
                pool: "chat".to_owned(),
                replicas_now: 8,
                replicas_planned: 13,
                devices_per_replica: 2,
                idle: false,
                runs_out_first: true,
                cause: Some(Cause::Decode),
                first_signal: Some("tpot".to_owned()),
                loss: Some("a node of chat".to_owned()),
                rows: vec![
                    row("requests", 88.4, 0.69, RowVerdict::Shortfall),
                    row("output_tokens", 1_234_567.0, 0.69, RowVerdict::Shortfall),
                    row("active_kv_tokens", 2_456_000.0, 0.9, RowVerdict::MemoryRisk),
                    row("sequences", 61.0, 9.4, RowVerdict::Ok),
                ],
            },
            PoolBlock {
                pool: "spare".to_owned(),
                replicas_now: 1,
                replicas_planned: 1,
                devices_per_replica: 1,
                idle: true,
                runs_out_first: false,
                cause: None,
                first_signal: None,
                loss: None,
                rows: Vec::new(),
            },
        ],
        shared: vec![
            SharedRow {
                name: "budget.monthly".to_owned(),
                unit: "USD a month".to_owned(),
                planned: Some(44_123.0),
                limit: 40_000.0,
                reach: reach(40_000.0, 0.907),
                verdict: RowVerdict::OverCap,
                trips_at: Some("Sat 2026-12-12 08:00 UTC".to_owned()),
            },
            SharedRow {
                name: "provider.a provider with a very long name.rpm".to_owned(),
                unit: "requests a minute".to_owned(),
                planned: Some(0.0),
                limit: 5_000.0,
                reach: Reach { carries: None, covers: None, beyond: true, at_least: Some(10.0) },
                verdict: RowVerdict::Idle,
                trips_at: None,
            },
        ],
        runs_out_first: Some(RunsOutFirst {
            of: Some("chat".to_owned()),
            cause: Some(Cause::Decode),
            first_signal: Some("tpot".to_owned()),
            covers: Some(0.69),
            at: Some("Wed 2026-11-18 15:00 UTC".to_owned()),
            hour: Some(63),
        }),
    }
}

fn plan() -> Plan {
    let reserve = |name, replicas, why: &str| ReserveLine {
        name,
        replicas,
        why: why.to_owned(),
        usd_per_month: Some(f64::from(replicas) * 4_700.0),
    };
    let parallelism =
        Parallelism { tensor: 2, pipeline: 1, expert: 1, data: 1, context: 1, devices: 2 };
    Plan {
        feasible: true,
        infeasible_because: vec![Obstacle {
            kind: "lead_time",
            what: "devices take 30 days and are needed in 3".to_owned(),
            relax: "order today".to_owned(),
        }],
        sized_for: "Wed 2026-11-18 15:00 UTC".to_owned(),
        pools: vec![PlannedPool {
            name: "chat".to_owned(),
            model: "llama-3.3-70b".to_owned(),
            accelerator: "h100-80g".to_owned(),
            engine: "vllm".to_owned(),
            weights: "fp8".to_owned(),
            parallelism,
            replicas: Replicas {
                now: 8,
                steady: 8,
                failure: 2,
                rollout: 1,
                canary: 0,
                maintenance: 0,
                warm: 1,
                forecast: 1,
                cold_cache: 0,
                total: 13,
            },
            interval: span(8.0, 10.0),
            if_steps_differ: span(8.0, 11.0),
            devices: 26,
            nodes: 4,
            proof: Some(Proof {
                n: 9,
                attainment: Some(0.992),
                interval: span(0.991, 0.993),
                n_minus_1: 8,
                attainment_minus_1: Some(0.981),
                interval_minus_1: span(0.978, 0.984),
                breaks_by: Some("ttft".to_owned()),
                proven: true,
                seconds: 600.0,
            }),
            reserve: vec![
                reserve("steady", 8, "what the median needs"),
                reserve("failure", 2, "a node of two replicas may be lost"),
                reserve("rollout", 1, "one at a time"),
                reserve("canary", 0, "none asked for"),
                reserve("warm", 1, "a start takes 4 min"),
                reserve("forecast", 1, "p95 of the demand"),
            ],
            one_replica_carries: Some(0.12),
            carries: Some(1.4),
            binds: Some("memory_bandwidth".to_owned()),
            first_signal: Some("ttft".to_owned()),
            tiny: false,
        }],
        fleet: Some(Fleet {
            placements: Vec::new(),
            nodes: vec![Nodes {
                region: "eu-west".to_owned(),
                accelerator: "h100-80g".to_owned(),
                instance: Some("p5.48xlarge".to_owned()),
                price_mode: "on_demand".to_owned(),
                nodes: 4,
                devices_per_node: 8,
                devices_idle: 6,
                node_usd_per_hour: Some(21.0),
                usd_per_hour: Some(84.0),
                price_source: Some("list".to_owned()),
                price_as_of: Some("2026-10-01".to_owned()),
            }],
            usd_per_hour: Some(84.0),
            bound_usd_per_hour: Some(83.0),
            gap: Some(0.012),
            solver: "highs",
            linear_programmes: 3,
            dominated: 1,
        }),
        table: table(),
        lines: Vec::new(),
        limits: Vec::new(),
        scaling: ScalingPlan {
            advised: true,
            why: "demand at its peak is four times that of the night".to_owned(),
            policies: Vec::new(),
            windows: Vec::new(),
            ceilings: Vec::new(),
            check: Some(check()),
        },
        budget: BudgetPlan {
            peak_usd_per_hour: Some(84.0),
            follows: true,
            usd_per_month: Some(44_123.0),
            interval: span(39_000.0, 44_123.0),
            today_usd_per_month: Some(27_100.0),
            static_usd_per_month: Some(61_320.0),
            by_hour: Vec::new(),
            caps: vec![
                Cap {
                    name: "budget.monthly".to_owned(),
                    limit: 40_000.0,
                    unit: "$",
                    peak: Some(44_123.0),
                    trips_at: Some("Sat 2026-12-12 08:00 UTC".to_owned()),
                    trips_hour: Some(632),
                    warns_at: Some("Tue 2026-12-08 08:00 UTC".to_owned()),
                    before_capacity: Some(false),
                    why: "all hours of the month".to_owned(),
                },
                Cap {
                    name: "budget.hourly".to_owned(),
                    limit: 200.0,
                    unit: "$/h",
                    peak: Some(84.0),
                    trips_at: None,
                    trips_hour: None,
                    warns_at: None,
                    before_capacity: None,
                    why: "the busiest hour".to_owned(),
                },
            ],
            orders: vec![Order {
                accelerator: "h100-80g".to_owned(),
                region: "eu-west".to_owned(),
                devices: 10,
                needed_at: "Wed 2026-11-18 15:00 UTC".to_owned(),
                lead_time_s: 2_592_000.0,
                order_by: "Mon 2026-10-19 15:00 UTC".to_owned(),
                too_late: true,
            }],
            startup: Vec::new(),
            notes: Vec::new(),
        },
        alternatives: vec![Alternative {
            pool: "chat".to_owned(),
            kind: "weights",
            what: "weights = \"bf16\"".to_owned(),
            accelerator: "h100-80g".to_owned(),
            parallelism,
            carry: Some(14),
            replicas: Some(19),
            devices: Some(38),
            nodes: Some(5),
            usd_per_hour: Some(105.0),
            usd_per_month: Some(76_650.0),
            against_plan: Some(1.25),
            chosen: false,
            rejected: Some("costs 1.25 times as much".to_owned()),
            from: "simulation",
        }],
        floors: Vec::new(),
        losses: vec![Loss {
            name: "one node".to_owned(),
            attainment_before: Some(0.998),
            attainment_after: Some(0.991),
            verdict: LoadVerdict::Carried,
            kept_before: true,
            meets: true,
            fails_by: None,
        }],
        notes: vec!["the launch is a guess of marketing's".to_owned()],
    }
}

fn check() -> ScalingCheck {
    let way = |way, hours: f64, dip: f64| ScalingWay {
        way,
        replica_hours: hours,
        cost_usd: Some(hours * 6.5),
        worst_class: Some("chat".to_owned()),
        attainment: Some(0.99),
        attainment_target: Some(0.99),
        slo_minutes_missed: dip * 60.0,
        slo_minutes: 120.0,
        flips_per_day: 3.0,
        complete: true,
        pools: Vec::new(),
        series: (0..24)
            .map(|i| WayPoint {
                from_s: f64::from(i) * 300.0,
                offered_per_s: 20.0 + f64::from(i * i) * 0.1,
                good: (i != 3).then_some(1.0 - dip * (f64::from(i) / 24.0)),
                replicas: hours / 2.0 + f64::from(i / 4),
                waiting: dip * 40.0 * f64::from(i),
            })
            .collect(),
    };
    ScalingCheck {
        seed: 7,
        seconds: 7_200.0,
        runs: 4,
        window_s: 300.0,
        signals: Vec::new(),
        static_plan: way(WayKind::Static, 26.0, 0.0),
        policy: way(WayKind::Policy, 18.0, 0.05),
        oracle: way(WayKind::Oracle, 16.0, 0.01),
        regret: Vec::new(),
        rest: None,
        ceilings: Vec::new(),
        notes: vec!["replicas start in 4 min, nine times in ten".to_owned()],
    }
}

fn stress_result() -> StressResult {
    let verdict =
        |share: f64| Some(if share >= 0.99 { LoadVerdict::Carried } else { LoadVerdict::Fails });
    let hard = |name: &str, now: f64, planned: f64| Stressed {
        name: name.to_owned(),
        about: "more comes than was thought".to_owned(),
        not_applicable: None,
        resources: Vec::new(),
        attainment: StressedAttainment {
            now: Some(now),
            planned: Some(planned),
            now_interval: span(now - 0.02, now + 0.01),
            planned_interval: span(planned - 0.01, planned + 0.005),
            target: Some(0.99),
            class: Some("chat".to_owned()),
            verdict_now: verdict(now),
            verdict_planned: verdict(planned),
        },
        carries: OfFleets { name: name.to_owned(), now: Some(0.7), planned: Some(1.2) },
        first_to_break: OfFleets {
            name: name.to_owned(),
            now: Some(Breaks {
                resource: Some("memory_bandwidth".to_owned()),
                of: Some("chat".to_owned()),
                signal: Some("ttft".to_owned()),
                broken: true,
            }),
            planned: Some(Breaks {
                resource: None,
                of: None,
                signal: Some("tpot".to_owned()),
                broken: false,
            }),
        },
        cost: StressedCost {
            now_usd_per_hour: Some(52.0),
            planned_usd_per_hour: Some(84.0),
            variable_usd_per_hour: Some(0.0),
            now_usd_per_success: Some(0.004),
            planned_usd_per_success: Some(0.006),
            why: None,
        },
        relieved: Vec::new(),
        worsened: Vec::new(),
        owner: Some("capacity".to_owned()),
    };
    let mut never = hard("provider outage", 0.0, 0.0);
    never.not_applicable = Some("no class uses a provider".to_owned());
    let end = |replicas, attainment| TornadoEnd {
        replicas,
        by_pool: vec![replicas],
        usd_per_month: Some(f64::from(replicas) * 4_700.0),
        variable_usd_per_month: Some(0.0),
        attainment: Some(attainment),
    };
    let bar = |name: &str, better: u32, worse: u32| TornadoBar {
        name: name.to_owned(),
        better: "0.6".to_owned(),
        likely: "0.4".to_owned(),
        worse: "0.1".to_owned(),
        source: "assumed".to_owned(),
        at_better: end(better, 0.999),
        at_worse: end(worse, 0.93),
        swing_replicas: i64::from(worse) - i64::from(better),
        swing_usd_per_month: Some(28_200.0),
        swing_attainment: Some(0.069),
        changes_decision: true,
        worth_usd_per_month: Some(2_400.0),
        measure: "profile a day of the gateway's log".to_owned(),
    };
    let side = |replicas, usd| ChangeSide {
        replicas: vec![replicas],
        attainment: Some(0.992),
        ttft_p95_ms: Some(812.0),
        tpot_p95_ms: Some(41.0),
        usd_per_hour: Some(usd),
        usd_per_success: Some(0.005),
    };
    let moved = |resource: &str| Moved {
        resource: resource.to_owned(),
        of: Some("chat".to_owned()),
        unit: "share used".to_owned(),
        from: 0.8,
        to: 0.5,
    };
    let guard = |expression: &str| Guard {
        expression: expression.to_owned(),
        stated: true,
        holds: Some(true),
        evidence: "812 ms is below".to_owned(),
    };
    StressResult {
        at: "Wed 2026-11-18 15:00 UTC".to_owned(),
        pools: vec![OfFleets { name: "chat".to_owned(), now: 8, planned: 13 }],
        scenarios: vec![hard("launch x2", 0.61, 0.97), hard("cold caches", 0.93, 0.993), never],
        failure_shapes: vec![
            FailureShape {
                name: "retry storm",
                pass: Some(false),
                pass_now: Some(false),
                evidence: "12% of attempts come again".to_owned(),
            },
            FailureShape {
                name: "cold start",
                pass: Some(true),
                pass_now: None,
                evidence: "4 min of demand fit in the queue".to_owned(),
            },
        ],
        tornado: Tornado {
            base: Some(end(13, 0.992)),
            best: Some(end(9, 0.999)),
            worst: Some(end(21, 0.8)),
            bars: vec![bar("cache hits", 11, 17), bar("output length", 12, 15)],
            measure_next: vec!["cache hits: profile a day of the gateway's log".to_owned()],
            basis: "three points",
        },
        changes: vec![PressureChange {
            name: "shorter system prompt".to_owned(),
            not_applicable: None,
            owner: Some("product".to_owned()),
            before: Some(side(9, 84.0)),
            after: Some(side(8, 75.0)),
            relieved: vec![moved("memory_bandwidth")],
            created: vec![moved("queue")],
            saving_per_success_pct: Some(4.2),
            why: Some("success is as before".to_owned()),
            guardrail: Some(guard("ttft_p95 < 1 s")),
            rollback: Some(guard("success < 0.9")),
            tasks_to_tell: Some(12_000),
        }],
        notes: vec!["short looks on common seeds".to_owned()],
    }
}

fn cost() -> Cost {
    let usage = Usage {
        period: Period { start_s: None, hours: 168 },
        places: Vec::new(),
        by: BTreeMap::new(),
        all: plimsoll_cost::Table::default(),
        tasks: plimsoll_cost::Tasks::default(),
        outcomes_unknown: 0,
        response_cached: 0,
        undated: 0,
        notes: Vec::new(),
    };
    let line = |name: &str, kind, microusd: i64| CostLine {
        name: name.to_owned(),
        kind,
        line: "devices",
        place: Some("chat".to_owned()),
        phase: Some("decode"),
        end: Some("failed"),
        usd: microusd as f64 / 1e6,
        microusd,
        device_hours: Some(120.0),
        invoiced: false,
        price: Some(LinePrice {
            usd_per_unit: Some(2.6),
            unit: Some("device-hour"),
            source: "list".to_owned(),
            as_of: Some("2026-10-01".to_owned()),
            region: Some("eu-west".to_owned()),
        }),
        why: "by seconds of work".to_owned(),
    };
    Cost {
        period: CostPeriod {
            start: Some("2026-11-16".to_owned()),
            end: Some("2026-11-23".to_owned()),
            hours: 168,
        },
        method: "work",
        lines: vec![
            line("chat, decode", "allocated", 6_200_000_000),
            line("chat, prefill", "allocated", 2_100_000_000),
            line("chat, idle", "idle", 1_700_000_000),
            line("credit", "unallocated", -100_000_000),
        ],
        total_microusd: 9_900_000_000,
        total_usd: 9_900.0,
        residual_microusd: 0,
        closes: true,
        by_kind: BTreeMap::from([
            ("allocated", 8_300_000_000),
            ("idle", 1_700_000_000),
            ("unallocated", -100_000_000),
        ]),
        cost_per_success: CostPerSuccess {
            usd: Some(0.0061),
            interval: span(0.0060, 0.0063),
            bounds: Some(CostBounds { low_usd: 0.0058, high_usd: 0.0065 }),
            factors: Some(CostFactors {
                cost_per_attempt_usd: 0.0051,
                attempts_per_task: 1.04,
                success_rate: 0.87,
            }),
            marginal_usd: Some(0.0049),
            tasks: 1_900_000,
            succeeded: 1_600_000,
            unresolved: 40_000,
            at_least: false,
            why: Some("outcomes are of the ledger".to_owned()),
        },
        uncharged_attempts: 0.0,
        unit: UnitCost {
            request_usd: Some(0.0051),
            fresh_usd_per_mtok: Some(0.4),
            cached_usd_per_mtok: None,
            prompt_usd_per_mtok: Some(0.3),
            output_usd_per_mtok: Some(2.2),
            overhead: Some(0.2),
        },
        wasted: WastedCost {
            retries_usd: 12.0,
            failed_usd: 8.0,
            cancelled_usd: 2.0,
            limited_usd: 0.0,
        },
        by: BTreeMap::new(),
        misplaced_by_request_count: BTreeMap::new(),
        unallocated_microusd: BTreeMap::new(),
        bill: None,
        build_or_buy: Vec::new(),
        commitment: Vec::new(),
        budget: Some(SuccessBudget {
            per_success_usd: 0.01,
            usd: Some(0.0061),
            verdict: "within",
            says: "$0.0061 of $0.01".to_owned(),
        }),
        price_lints: Vec::new(),
        notes: Vec::new(),
        books: books(&[], &usage).expect("no charges can be summed"),
        charges: Vec::new(),
        usage,
    }
}

fn curve(fleet: &'static str, replicas: u32, line: f64) -> FleetCurve {
    let point = |load: f64| {
        let offered = 40.0 * load;
        let good = if load <= line {
            offered * 0.995
        } else {
            offered * 0.995 / (1.0 + 4.0 * (load - line))
        };
        CurvePoint {
            load,
            offered_per_s: offered,
            achieved_per_s: offered.min(40.0 * line * 1.2),
            goodput_per_s: good,
            goodput_per_device: Some(good / 26.0),
            attainment: Some(good / offered),
            attainment_interval: None,
            errors: if load > line { 0.04 } else { 0.0 },
            queue_mean: (load - line).max(0.0) * 90.0,
            busy: (load / line).min(1.0),
            kv: (0.6 * load / line).min(1.0),
            output_tokens_per_s: offered * 220.0,
            ttft_p95_ms: Some(300.0 + (load - line).max(0.0) * 9_000.0),
            tpot_p95_ms: Some(30.0 + 12.0 * load),
            verdict: Some(if load > line { Verdict::Overloaded } else { Verdict::Stable }),
            meets: load <= line,
            sure: true,
            fails_by: (load > line).then(|| "ttft".to_owned()),
        }
    };
    FleetCurve {
        fleet,
        replicas: vec![OfPool { pool: "chat".to_owned(), replicas }],
        at: "Wed 2026-11-18 15:00 UTC".to_owned(),
        points: [0.2, 0.5, 0.8, line, line + 0.2, line + 0.6].map(point).to_vec(),
        knee_load: Some(line),
        line_load: Some(line * 0.95),
        peak_output_tokens_per_s: Some(21_000.0),
    }
}

fn fit() -> Fit {
    const GIB: i64 = 1 << 30;
    let line =
        |name, gib: i64| BudgetLine { name, bytes: gib * GIB, provenance: Provenance::Modeled };
    Fit {
        name: "chat".to_owned(),
        fits: true,
        devices: 2,
        device_bytes: 80 << 30,
        weights_bytes: 35 << 30,
        kv_bytes_per_token: 163_840,
        available_kv_bytes: 30 << 30,
        kv_tokens: 400_000,
        printed_kv_tokens: 400_000,
        max_concurrency_at_max_len: 12.2,
        missing_bytes: 0,
        state_bytes_per_sequence: 0,
        max_model_len_tokens: 32_768,
        kv: Kv::new(25_000, 16),
        prefix_caching: true,
        max_num_seqs: 256,
        max_num_batched_tokens: 8_192,
        memory_fraction: 0.9,
        tokens_per_gib: 6_500,
        budget: vec![
            line("vocabulary", 2),
            line("layers", 33),
            line("activation", 4),
            line("libraries", 1),
            line("graphs", 2),
            line("kv cache", 30),
            line("left to others", 8),
        ],
        contexts: Vec::new(),
        would_fit: Vec::new(),
        observed: Vec::new(),
    }
}

fn performance() -> PoolPerformance {
    let band = |pct: f64| Band {
        median_abs_pct: pct,
        p90_abs_pct: pct * 3.0,
        n: 400,
        measured_on: "published runs".to_owned(),
        provenance: Provenance::Modeled,
    };
    PoolPerformance {
        name: "chat".to_owned(),
        phase: Phase::Both,
        itl_floor_s: Some(0.0183),
        ttft_floor_s: Some(0.143),
        peak_output_tokens_per_s: Some(3_120.0),
        peak_fresh_tokens_per_s: Some(9_200.0),
        peak_requests_per_s: 11.0,
        peak_decoding: Some(180.0),
        peak_bound: "kv",
        path_output_tokens_per_s: 40_000.0,
        kv_transfer_s: None,
        itl_band: band(6.0),
        ttft_band: band(9.0),
        peak_band: band(8.0),
        region: None,
        notes: Vec::new(),
    }
}

fn ahead() -> Ahead {
    let day = |level: f64, times: f64| AheadBand {
        level,
        per_s: (0..168)
            .map(|hour| {
                let wave = (f64::from(hour % 24) / 24.0 * std::f64::consts::TAU - 2.2).sin();
                let event = if (60..72).contains(&hour) { 1.7 } else { 1.0 };
                (24.0 + 14.0 * wave) * times * event
            })
            .collect(),
    };
    Ahead {
        from: "scenario",
        start: "Mon 2026-11-16 00:00 UTC".to_owned(),
        step_s: 3600,
        events: vec![(60, 72)],
        resources: vec![AheadResource {
            name: "requests",
            unit: "requests/s",
            bands: vec![day(0.5, 1.0), day(0.8, 1.1), day(0.95, 1.2)],
            load_line_now: Some(48.0),
            load_line_planned: Some(82.0),
        }],
    }
}
