use plimsoll_forecast::{ActualSeries, Actuals, Forecast};
use plimsoll_study::{
    ClassMix, Curve, CurveBinding, CurveMark, MemoCount, NextValues, Peak, Reconciliation,
};
use plimsoll_workload::{Outlook, Quantity};
use serde_json::json;

use super::*;
use crate::{CurveDocument, ForecastFile, LoadTestPoint, ReconcileDocument};

/// A page, checked for what every page keeps.
fn own(page: &str) -> String {
    assert!(page.len() < 60_000, "{}", page.len());
    let own = page.replace(crate::CHART_SCRIPT, "");
    assert_eq!(own.matches("<h1").count(), 1);
    assert!(!own.contains("<b>") && !own.contains("https://") && !own.contains("http://"));
    own
}

/// The drawing of a chart of a page.
fn chart<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("id=\"chart-{id}\"")).expect(id);
    rest.split_once("</figure>").expect("it ends").0
}

/// The places and values of a series in it.
fn drawn<'a>(chart: &'a str, name: &str) -> (&'a str, &'a str) {
    let (_, rest) = chart.split_once(&format!("data-name=\"{name}\" data-at=\"")).expect(name);
    let (at, rest) = rest.split_once("\" data-says=\"").expect("values");
    (at, rest.split('"').next().expect("their end"))
}

fn file() -> ForecastFile {
    let point = |hour: i64, p50: f64| {
        json!({ "t": format!("2026-11-16T{hour:02}:00:00Z"), "p50": p50, "p80": p50 * 1.1, "p90": p50 * 1.2,
                "p95": p50 * 1.3, "p975": p50 * 1.4, "p99": p50 * 1.5 })
    };
    let value = json!({
        "schema": "plimsoll/forecast/v1", "version": "0.1.0", "id": "f1", "as_of": "2026-11-15",
        "source": "<b>ledger</b>", "scenario": null,
        "classes": { "columns": [], "most": 8, "named": [], "only": [], "series": null },
        "clock": "utc", "step_s": 3600, "start": "2026-11-16T00:00:00Z", "until": "2026-11-16T02:00:00Z",
        "sizing_quantile": 0.95, "seed": 7,
        "history": { "from": "2026-11-15T00:00:00Z", "to": "2026-11-16T00:00:00Z", "steps": 24, "missing": 1, "gaps": [] },
        "series": [{ "class": "all", "resource": "requests", "unit": "requests/s", "model": "mean", "instead": null,
                     "season_day": null, "season_week": null, "residuals": [], "points": [point(0, 10.0), point(1, 12.0)] }],
        "events": [], "outliers": [], "basis": [], "warnings": ["<b>short</b> history"],
    });
    serde_json::from_value(value).expect("a forecast")
}

#[test]
fn a_forecast_shows_its_fan() {
    let (file, forecast) = (
        file(),
        Forecast {
            outlook: Outlook { start_s: 0, step_s: 3600, absolute: true, classes: Vec::new() },
            series: Vec::new(),
            steps: 24,
            missing: 1,
            from_s: 0,
            gaps: Vec::new(),
            outliers: Vec::new(),
            applied: Vec::new(),
            warnings: Vec::new(),
        },
    );
    let page = own(&forecast_html(&file, &forecast));
    assert!(page.contains("sized for p95") && page.contains("&lt;b&gt;short"));
    let came = forecast::placed(&file.start, 3600, -1, &[9.0]);
    let fan = forecast::fan(&file, &file.series[0], ("what came", &came));
    assert!(fan.alt.contains("15.6 at p95"), "{}", fan.alt);
    // 2026-11-15 23:00 UTC is where the chart begins.
    let html = fan.html().into_string();
    assert!(html.contains("data-time=\"\" data-low=\"1794783600\""), "{html}");
    assert_eq!(drawn(&html, "what came"), ("0", "9.00"));
    assert_eq!(drawn(&html, "median"), ("60 120", "10.0;12.0"));
    assert_eq!(drawn(&html, "up to p99").1, "10.0 to 15.0;12.0 to 18.0");
}

#[test]
fn a_reconciliation_shows_what_came_within_the_forecast() {
    let file = file();
    let result = Reconciliation {
        steps: 2,
        step_s: 3600,
        missing: 0,
        from_s: 1_794_787_200,
        until_s: 1_794_794_400,
        absolute: true,
        sizing: 0.95,
        confidence: 0.95,
        seed: 7,
        resources: Vec::new(),
        mix: ClassMix { classes: Vec::new(), distance: None },
        shortfall: Vec::new(),
        before_from_s: None,
        before_until_s: None,
        after_from_s: None,
        after_until_s: None,
        service: Vec::new(),
        cost_change: None,
        assumptions: Vec::new(),
        next: NextValues {
            classes: Vec::new(),
            toml: "rate = \"<b>\"".to_owned(),
            levels: Vec::new(),
        },
        verdict: vec!["Too low.".to_owned()],
    };
    let document = ReconcileDocument {
        version: "0.1.0",
        as_of: "2026-11-17".to_owned(),
        plan: &file,
        plan_file: "forecast.json".to_owned(),
        source: "ledger".to_owned(),
        result: &result,
        notes: &[],
    };
    // An hour before the forecast begins, two within, one after.
    let values = vec![8.0, 11.0, f64::NAN, 14.0];
    let series = vec![ActualSeries { class: None, quantity: Quantity::Requests, values }];
    let start: jiff::Timestamp = "2026-11-15T23:00:00Z".parse().expect("a moment");
    let actual = Actuals { start_s: start.as_second(), step_s: 3600, steps: 4, series };
    let page = own(&reconcile_html(&document, &actual));
    assert_eq!(drawn(chart(&page, "fan-requests"), "what came"), ("0 60", "11.0;"));
    assert!(page.contains("Too low.") && page.contains("rate = &quot;&lt;b&gt;"));
}

#[test]
fn a_curve_shows_its_lines_and_a_load_test() {
    let review = crate::review::sample();
    let points = review.curves[0].points.clone();
    let mark = |load: f64| CurveMark {
        load,
        offered_per_s: 40.0 * load,
        goodput_per_s: 39.0 * load,
        fails_at_load: Some(load + 0.1),
        sure: true,
        interval: None,
    };
    let curve = Curve {
        seed: 7,
        calls: 120_000.0,
        simulated: MemoCount::default(),
        warm_up_s: 10.0,
        calls_per_task: 1.0,
        resident_kv_tokens: 1e6,
        points,
        knee: Some(mark(1.0)),
        load_line: Some(mark(0.8)),
        load_lines: Vec::new(),
        binding: CurveBinding::default(),
        peak_throughput: Some(Peak {
            load: 1.2,
            achieved_per_s: 44.0,
            output_tokens_per_s: 21_000.0,
            attainment: Some(0.4),
            safe: false,
        }),
        notes: vec!["a <b>note</b>".to_owned()],
    };
    let tested = [LoadTestPoint {
        origin: "bench.json".to_owned(),
        offered_per_s: 20.0,
        achieved_per_s: Some(19.5),
        predicted_per_s: Some(19.9),
        ttft_mean_ms: Some(210.0),
        keeps: Some(true),
    }];
    let document = CurveDocument {
        name: "<b>chat</b>",
        file: "chat.toml",
        from: "Wed 15:00".to_owned(),
        step_times: "modelled",
        result: &curve,
        load_test: &tested,
        measured_line: None,
    };
    let page = own(&curve_html(&document, "0.1.0"));
    assert!(page.contains("may be loaded to 32.00 tasks/s") && page.contains("UNSAFE"));
    let curve_chart = chart(&page, "curve");
    let words: Vec<&str> = curve_chart
        .split("<text class=\"label ")
        .skip(1)
        .filter_map(|rest| rest.split_once('>')?.1.split('<').next())
        .collect();
    assert_eq!(words, ["knee", "demand", "load line, this fleet"]);
    assert_eq!(drawn(chart(&page, "load-test"), "measured"), ("20", "19.5"));
}
