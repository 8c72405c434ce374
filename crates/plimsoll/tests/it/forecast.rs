//! `forecast` and `reconcile` as users type them, from logs to what came of a plan.

use crate::common::{Scratch, count, diagnostic, json, number, run, shared};
use plimsoll_stats::{Seed, Stream};
use serde_json::Value;

/// A Monday.
const START: i64 = 1_760_918_400;
const HOUR: i64 = 3600;
const MAP: &str = "ts_arrival=ts,request_id=id,attempt=try,route=route,prompt_tokens=prompt,cache_read_tokens=cached,output_tokens=output,http_status=code,ttft_s=ttft,e2e_s=e2e,task_id=id,success=ok,cost_usd=cost";

/// A log of two routes by the hour: chat with a day, agents with long prompts, mostly cached. One request in ten is refused at first and comes
/// back; `times` is the rate of an hour against the usual.
fn log(hours: usize, times: impl Fn(usize) -> f64) -> String {
    let mut stream = Seed::new(11).stream("log");
    let mut text = "ts,id,try,route,prompt,cached,output,code,ttft,e2e,ok,cost\n".to_owned();
    let mut number = 0;
    for hour in 0..hours {
        let day = 1.0 + 0.6 * ((hour as f64 - 14.0) / 24.0 * std::f64::consts::TAU).cos();
        for (route, mean, prompt, cached) in [("chat", 24.0, 900, 300), ("agent", 8.0, 6000, 4800)]
        {
            for _ in 0..poisson(mean * day * times(hour), &mut stream) {
                number += 1;
                let at = (START + seconds(hour)) * 1000
                    + i64::try_from(stream.index(3_590_000)).expect("an hour");
                let output = 50 + stream.index(200);
                let served = format!(
                    "{prompt},{cached},{output},200,0.4,{:.3},{},0.002",
                    0.4 + output as f64 * 0.02,
                    number % 5
                );
                if number % 10 == 0 {
                    text += &format!("{at},r{number},1,{route},{prompt},,,429,,,,\n");
                    text += &format!("{},r{number},2,{route},{}\n", at + 2000, ok(&served));
                } else {
                    text += &format!("{at},r{number},1,{route},{}\n", ok(&served));
                }
            }
        }
    }
    text
}

/// Seconds of so many hours.
fn seconds(hours: usize) -> i64 {
    i64::try_from(hours).expect("hours") * HOUR
}

/// Four of five succeed.
fn ok(served: &str) -> String {
    let mut fields: Vec<&str> = served.split(',').collect();
    fields[6] = if fields[6] == "0" { "0" } else { "1" };
    fields.join(",")
}

fn poisson(mean: f64, stream: &mut Stream) -> u32 {
    let (mut n, mut time) = (0, stream.exponential());
    while time < mean {
        n += 1;
        time += stream.exponential();
    }
    n
}

fn ledger(scratch: &Scratch, name: &str, log: &str) -> String {
    let file = scratch.file(&format!("{name}.csv"), log);
    let ledger = scratch.path(name);
    let (code, said) = run(&["ingest", &file, "--into", &ledger, "--map", MAP]);
    assert_eq!(code, 0, "{said}");
    ledger
}

fn moment(hour: usize) -> String {
    let seconds = START + seconds(hour);
    // Days of October and November 2025, which begin at its 20th.
    let day = (seconds - START) / 86_400;
    let (month, day) = if day < 12 { (10, 20 + day) } else { (11, day - 11) };
    format!("2025-{month:02}-{day:02}T{:02}:00:00Z", (seconds % 86_400) / HOUR)
}

fn series<'a>(document: &'a Value, class: &str, resource: &str) -> &'a Value {
    let all = document["series"].as_array().expect("series");
    all.iter()
        .find(|own| own["class"] == class && own["resource"] == resource)
        .unwrap_or_else(|| panic!("no {resource} of {class}"))
}

const LEVELS: [&str; 6] = ["p50", "p80", "p90", "p95", "p975", "p99"];
const RESOURCES: [&str; 6] = [
    "requests",
    "prompt_tokens",
    "fresh_tokens",
    "output_tokens",
    "cached_share",
    "resident_kv_tokens",
];

/// Every number of a document is one.
fn sound(value: &Value) {
    match value {
        Value::Number(n) => assert!(n.as_f64().is_some_and(f64::is_finite), "{n}"),
        Value::Array(all) => all.iter().for_each(sound),
        Value::Object(all) => all.values().for_each(sound),
        _ => {}
    }
}

/// From a log to a forecast, and from there to what came of it, three weeks and two days later.
#[test]
fn a_forecast_and_what_came_of_it() {
    let scratch = Scratch::new("forecast-and-reconcile");
    let weeks = 21 * 24;
    let all = log(weeks + 48, |hour| if hour < weeks { 1.0 } else { 1.3 });
    let ledger = ledger(&scratch, "ledger", &all);
    let (plan, until) = (scratch.path("plan.json"), moment(weeks));
    let asked =
        ["forecast", &ledger, "--by", "route", "--until", &until, "--horizon", "48h", "--backtest"];
    let (code, found) = json(&[&asked[..], &["--out", &plan, "--threads", "1"]].concat());
    assert_eq!(code, 0, "{found:#}");
    sound(&found);
    assert_eq!(found["schema"], "plimsoll/forecast/v1");
    assert_eq!((&found["step_s"], &found["start"]), (&3600.into(), &until.as_str().into()));
    for class in ["all", "chat", "agent"] {
        for resource in RESOURCES {
            let own = series(&found, class, resource);
            let points = own["points"].as_array().expect("points");
            assert_eq!(points.len(), 48);
            for point in points {
                let values = LEVELS.map(|level| number(&point[level]));
                assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{point}");
                assert!(point["t"].is_string() && values[0] >= 0.0, "{point}");
            }
            assert!(own["model"].is_string() && own["unit"].is_string());
            let test = &own["backtest"];
            for figure in [
                "origins",
                "wape",
                "bias",
                "mase",
                "crps",
                "pinball",
                "pinball_naive",
                "pinball_mean",
                "width",
            ] {
                // What never changes has no step to be scaled by.
                let constant = resource == "cached_share" && class != "all" && figure == "mase";
                assert_eq!(
                    test[figure].is_number(),
                    !constant,
                    "{class} {resource} {figure}: {test:#}"
                );
            }
            for level in ["0.5", "0.8", "0.9", "0.95", "0.975", "0.99"] {
                assert!((0.0..=1.0).contains(&number(&test["coverage"][level])), "{test:#}");
            }
            assert!(number(&test["pinball"]) <= number(&test["pinball_naive"]) * (1.0 + 1e-8));
            assert!(number(&test["pinball"]) <= number(&test["pinball_mean"]) * (1.0 + 1e-8));
        }
    }
    assert!(count(&found["backtest"]["origins"]) >= 28);
    // What is refused was asked for, too: 32 requests an hour, where one in ten came twice.
    let requests: Vec<f64> = series(&found, "all", "requests")["points"]
        .as_array()
        .expect("points")
        .iter()
        .map(|point| number(&point["p50"]))
        .collect();
    let mean = requests.iter().sum::<f64>() / 48.0 * 3600.0;
    assert!((mean / 32.0 - 1.0).abs() < 0.1, "{mean}");
    let hit = number(&series(&found, "agent", "cached_share")["points"][0]["p50"]);
    assert!((hit - 0.8).abs() < 0.02, "{hit}");
    // The same on any number of threads, and as written.
    let (_, again) = json(&[&asked[..], &["--threads", "3"]].concat());
    assert_eq!(found, again);
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("written")).expect("JSON");
    assert_eq!(written, found);
    let (_, screen) = run(&asked);
    for said in ["Demand ahead", "Back-test", "sized for p95", "lead up to"] {
        assert!(screen.contains(said), "{screen}");
    }

    let (levels, document) = (scratch.path("levels.json"), scratch.path("history/first.json"));
    std::fs::create_dir_all(scratch.path("history")).expect("a directory");
    let pictures = scratch.path("pictures");
    let held = [
        "reconcile",
        &plan,
        &ledger,
        "--levels-out",
        &levels,
        "--out",
        &document,
        "--pictures",
        &pictures,
    ];
    let (code, came) = json(&held);
    assert_eq!(code, 0, "{came:#}");
    sound(&came);
    assert_eq!(came["schema"], "plimsoll/reconcile/v1");
    assert_eq!(came["plan"]["id"], found["id"]);
    for part in ["resources", "shortfall", "assumptions", "next"] {
        assert!(!came[part].is_null(), "{part}");
    }
    // Worked out from the log itself: first attempts by the hour, against the published quantiles.
    let mut counted = [0.0f64; 48];
    for line in all.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let hour = (fields[0].parse::<i64>().expect("a stamp") / 1000 - START - seconds(weeks))
            .div_euclid(HOUR);
        if let (Ok(hour), "1") = (usize::try_from(hour), fields[2]) {
            counted[hour] += 1.0 / 3600.0;
        }
    }
    // The last row of the log is not in the last twentieth of its hour by much: the hour may be left out as not whole.
    let steps = usize::try_from(count(&came["steps"])).expect("steps");
    assert!(steps >= 47);
    let error: f64 = counted[..steps].iter().zip(&requests).map(|(a, f)| (a - f).abs()).sum();
    let sum: f64 = counted[..steps].iter().sum();
    let own = came["resources"].as_array().expect("resources");
    let own =
        own.iter().find(|r| r["class"].is_null() && r["resource"] == "requests").expect("one");
    assert!((number(&own["wape"]) - error / sum).abs() < 1e-9, "{own:#}");
    let high = series(&found, "all", "requests")["points"].as_array().expect("points");
    let below = counted[..steps].iter().zip(high).filter(|(a, p)| **a <= number(&p["p95"])).count();
    let share = own["coverage"].as_array().expect("levels").iter().find(|c| c["level"] == 0.95);
    let share = number(&share.expect("0.95")["share"]);
    assert!((share - below as f64 / steps as f64).abs() < 1e-12, "{own:#}");
    // Three tenths more came than ever before: the rate is what was wrong, and it is told how much.
    let worst = &came["assumptions"][0];
    assert!(worst["name"].as_str().is_some_and(|name| name.starts_with("rate of")), "{worst}");
    assert!(number(&worst["ratio"]) > 1.15, "{worst}");
    let toml = came["next"]["toml"].as_str().expect("TOML");
    assert!(toml.contains("[[class]]") && toml.contains("success_rate = 0.8"), "{toml}");
    assert!(
        std::fs::read_to_string(scratch.path("pictures/reconcile-output_tokens.svg"))
            .expect("a picture")
            .starts_with("<svg")
    );

    // A forecast that was edited is held against what came all the same, and that is said.
    let mut edited = written.clone();
    edited["sizing_quantile"] = 0.9.into();
    let edited = scratch.file("edited.json", edited.to_string());
    let (_, told) = json(&["reconcile", &edited, &ledger]);
    assert!(told["warnings"].to_string().contains("its `id` does not fit"), "{}", told["warnings"]);
    assert!(!came["warnings"].to_string().contains("`id`"), "{}", came["warnings"]);

    // What was learnt is taken by the next forecast: bounds that were missed are wider.
    let (_, wiser) = json(&[&asked[..], &["--levels", &levels]].concat());
    let p95 = |document: &Value| number(&series(document, "all", "requests")["points"][5]["p95"]);
    assert!(p95(&wiser) > p95(&found), "{} is not above {}", p95(&wiser), p95(&found));
    let (_, same) = json(&[&asked[..], &["--levels", &document]].concat());
    assert_eq!(same["series"], wiser["series"], "the whole document serves as well");

    let (code, weeks) = json(&["reconcile", "--history", &scratch.path("history")]);
    assert_eq!((code, &weeks["schema"]), (0, &"plimsoll/accuracy/v1".into()), "{weeks:#}");
    let past = &weeks["reconciliations"][0]["resources"][0];
    assert_eq!(past["wape"], own["wape"], "{weeks:#}");
    let (_, screen) = run(&["reconcile", "--history", &scratch.path("history")]);
    assert!(screen.contains("rate of") && screen.contains("requests"), "{screen}");
}

/// A scenario that names a ledger is planned on the forecast's quantile, with lengths as they are now.
#[test]
fn a_scenario_is_planned_on_its_ledger() {
    let scratch = Scratch::new("forecast-study");
    let weeks = 21 * 24;
    ledger(&scratch, "ledger", &log(weeks, |_| 1.0));
    let scenario = format!(
        "[study]\nname = \"planned\"\nas_of = 2025-11-09\nstart = {}\nhorizon = \"1d\"\nledger = \"ledger\"\ndemand_quantile = 0.9\n\
         [[class]]\nname = \"chat\"\nmatch = {{ route = \"chat\" }}\nprompt = 1800\noutput = 150\ncache_hit = 0.5\n\
         [[class]]\nname = \"agent\"\nmatch = {{ route = \"agent\" }}\nprompt = 6000\noutput = 150\ncache_hit = 0.8\n\
         [[class]]\nname = \"typed\"\nmatch = {{ route = \"nobody\" }}\nrate = \"0.01/s\"\nprompt = 10\noutput = 10\n",
        moment(weeks)
    );
    let file = scratch.file("scenario.toml", &scenario);
    let (code, review) = json(&["review", &file]);
    assert_eq!(code, 0, "{review:#}");
    let forecast = ["forecast", &scratch.path("ledger"), "--scenario", &file];
    let (code, found) = json(&forecast);
    assert_eq!(code, 0, "{found:#}");
    let points = |class: &str, resource: &str| -> Vec<f64> {
        let points = series(&found, class, resource)["points"].as_array().expect("points").clone();
        points.iter().map(|point| number(&point["p90"])).collect()
    };
    let busiest = |class: &str| {
        let tokens = points(class, "output_tokens");
        (0..24).max_by(|a, b| tokens[*a].total_cmp(&tokens[*b])).expect("24 hours")
    };
    let rows = review["demand"]["rows"].as_array().expect("rows");
    let level = |class: &str, resource: &str| {
        let row = rows.iter().find(|row| row["class"] == class && row["resource"] == resource);
        number(&row.unwrap_or_else(|| panic!("no {resource} of {class}"))["baseline"]["mean_per_s"])
    };
    // Few requests an hour are drawn, so the mean of eight draws is off by chance: by a tenth, not by half.
    let hour = busiest("chat");
    let near = |own: f64, expect: f64| (own / expect - 1.0).abs() < 0.15;
    let requests = points("chat", "requests")[hour];
    assert!(near(level("chat", "requests"), requests), "{} {requests}", level("chat", "requests"));
    // Prompts are typed as 1,800 and are 900; outputs as 150 and are 150.
    let fresh = points("chat", "fresh_tokens")[hour];
    let own = level("chat", "fresh_prompt_tokens");
    assert!(near(own, fresh), "{own} {fresh}");
    assert!(near(level("typed", "requests"), 0.01));
    let notes = review["notes"].to_string();
    assert!(
        notes.contains("the p90 of a forecast")
            && notes.contains("nothing in the ledger is of class `typed`"),
        "{notes}"
    );
    // Who plans for one class of two is told what is left out; who says of none which rows are its own is not planned for.
    let head = format!(
        "[study]\nname = \"part\"\nas_of = 2025-11-09\nstart = {}\nhorizon = \"1d\"\nledger = \"ledger\"\n",
        moment(weeks)
    );
    let class = |name: &str, rest: &str| {
        format!("[[class]]\nname = \"{name}\"\nprompt = 900\noutput = 150\n{rest}")
    };
    let part = format!("{head}{}", class("chat", "match = { route = \"chat\" }\n"));
    let (_, part) = json(&["review", &scratch.file("part.toml", part)]);
    assert!(
        part["notes"].to_string().contains("are of no class of the scenario"),
        "{}",
        part["notes"]
    );
    let none = format!("{head}{}{}", class("a", ""), class("b", ""));
    let (code, none) = json(&["review", &scratch.file("none.toml", none)]);
    assert_eq!(code, 2, "{none:#}");
    assert!(diagnostic(&none).0.contains("no class says by `match`"), "{none:#}");
    // An event on top: twice the requests, as far as it is known.
    let launch = format!(
        "{scenario}[[event]]\nname = \"launch\"\nfrom = {}\nclass = [\"chat\"]\nrate = {{ low = 1.5, likely = 2.0, high = 3.0 }}\n",
        moment(weeks + 12)
    );
    let file = scratch.file("launch.toml", launch);
    let (_, launched) = json(&["forecast", &scratch.path("ledger"), "--scenario", &file]);
    let at = |document: &Value, hour: usize, level: &str| {
        number(&series(document, "chat", "requests")["points"][hour][level])
    };
    let times = at(&launched, 13, "p50") / at(&found, 13, "p50");
    // The middle of what is forecast times what is not known of it is not exactly the product of both middles.
    assert!((times - 2.0).abs() < 0.1, "{times}");
    assert!((at(&launched, 11, "p50") / at(&found, 11, "p50") - 1.0).abs() < 1e-9);
    let wide = |document: &Value| at(document, 13, "p95") / at(document, 13, "p50");
    assert!(wide(&launched) > wide(&found) * 1.05, "{} {}", wide(&launched), wide(&found));
    assert_eq!(launched["events"][0]["name"], "launch");
    assert_eq!(launched["scenario"]["file"], file.as_str());
}

/// A line that demand is about to cross is warned of, with how such warnings did.
#[test]
fn a_load_line_is_watched() {
    let scratch = Scratch::new("forecast-line");
    // Two days at six a minute, and up by a tenth every ten minutes at the end.
    let mut text = "ts,id,try,route,prompt,cached,output,code,ttft,e2e,ok,cost\n".to_owned();
    let mut n = 0;
    for minute in 0..2880i64 {
        let rate = 6.0 * 1.1f64.powf((minute - 2840).max(0) as f64 / 10.0);
        for i in 0..rate.round() as i64 {
            n += 1;
            let at = (START + minute * 60) * 1000 + i * 2000;
            text += &format!("{at},r{n},1,chat,100,0,10,200,0.1,0.5,1,0.001\n");
        }
    }
    let ledger = ledger(&scratch, "ledger", &text);
    let (code, found) = json(&[
        "forecast",
        &ledger,
        "--line",
        "requests=0.165,output_tokens=900",
        "--startup",
        "10m",
    ]);
    assert_eq!(code, 0, "{found:#}");
    let watched = found["inflections"].as_array().expect("both");
    assert_eq!(watched.len(), 2);
    let crosses = number(&watched[0]["crosses_in_s"]);
    assert!((600.0..=1800.0).contains(&crosses), "{}", watched[0]);
    assert!(watched[1]["crosses_in_s"].is_null(), "{}", watched[1]);
    let (_, screen) = run(&[
        "forecast",
        &ledger,
        "--line",
        "requests=0.165,output_tokens=900",
        "--startup",
        "10m",
    ]);
    assert!(screen.contains("WARNING: requests may cross its load line"), "{screen}");
    // Lines of a curve are watched, too, and one that is typed is taken instead.
    let curve = "{\"schema\": \"plimsoll/curve/v1\", \"load_lines\": [{\"resource\": \"requests\", \"load_line\": 7.5}, {\"resource\": \"fresh_prompt_tokens\", \"load_line\": 90}, {\"resource\": \"mix\", \"load_line\": null}]}";
    let curve = scratch.file("curve.json", curve);
    let (_, found) = json(&["forecast", &ledger, "--curve", &curve, "--line", "requests=0.165"]);
    let lines: Vec<(&Value, f64)> = found["inflections"]
        .as_array()
        .expect("both")
        .iter()
        .map(|own| (&own["resource"], number(&own["line"])))
        .collect();
    assert_eq!(lines, [(&"requests".into(), 0.165), (&"fresh_tokens".into(), 90.0)]);
    assert!(found["warnings"].to_string().contains("nobody says how long a start takes"));
    // What is assumed then is what a scenario assumes of a pool that does not say it, either.
    let startup = |document: &Value| number(&document["inflections"][0]["startup_p90_s"]);
    let bot = "examples/support-bot.toml";
    let (_, of_pool) =
        json(&["forecast", &ledger, "--line", "requests=9", "--scenario", bot, "--horizon", "1h"]);
    let (own, assumed) = (startup(&of_pool), startup(&found));
    assert!((assumed / own - 1.0).abs() < 0.05, "{assumed} {own}");
    let (code, wrong) = run(&["forecast", &ledger, "--line", "tokens=5"]);
    assert_eq!((code, wrong.as_str()), (2, ""));
}

/// The series that are published: never worse than naive or mean at what is sized for, covered as promised, and not by being wide.
#[test]
fn published_series_are_covered() {
    let of = [
        ("servegen_m-small.first75pct.tar.gz", &["requests", "prompt_tokens", "output_tokens"][..]),
        ("servegen_m-large.first75pct.tar.gz", &["requests"]),
        ("servegen_deepseek-r1.first75pct.tar.gz", &["requests", "prompt_tokens", "output_tokens"]),
    ];
    let (mut covered, mut points, mut widths) = (0.0, 0.0, Vec::new());
    for (file, resources) in of {
        let Some(path) = shared(file) else { return };
        let (code, found) = json(&["forecast", &path, "--backtest"]);
        assert_eq!(code, 0, "{file}");
        sound(&found);
        for resource in resources {
            let test = &found["backtest"]["by_resource"][resource];
            let [own, naive, mean] =
                ["pinball", "pinball_naive", "pinball_mean"].map(|key| number(&test[key]));
            assert!(own <= naive.min(mean), "{file} {resource}: {own} {naive} {mean}");
            covered += number(&test["coverage"]["0.95"]) * number(&test["points"]);
            points += number(&test["points"]);
            widths.push(number(&test["width"]) / number(&test["width_ideal"]));
        }
        assert!(
            found["warnings"].to_string().contains("less than two weeks"),
            "{}",
            found["warnings"]
        );
    }
    widths.sort_by(f64::total_cmp);
    let (share, width) = (covered / points, widths[widths.len() / 2]);
    assert!(share >= 0.93, "{share}");
    assert!(width <= 1.5, "{width}");
}

/// What cannot be forecast or held against anything is said, and how to mend it.
#[test]
fn bad_input_is_told() {
    let scratch = Scratch::new("forecast-bad");
    let told = |arguments: &[&str]| {
        let (code, failure) = json(arguments);
        assert_eq!(code, 2, "{failure:#}");
        let (message, help) = diagnostic(&failure);
        format!("{message} | {help}")
    };
    let head = "ts,id,try,route,prompt,cached,output,code,ttft,e2e,ok,cost\n";
    let row = |at: i64, id: &str| format!("{at},{id},1,chat,100,0,10,200,0.1,0.5,1,0.001\n");
    // One row: there is no whole step, and that is said.
    let one = ledger(&scratch, "one", &format!("{head}{}", row(START * 1000, "a")));
    let said = told(&["forecast", &one]);
    assert!(said.contains("no whole step") && said.contains("--step"), "{said}");
    // The same every minute: a result, with its warning, and no number that is none.
    let mut constant = head.to_owned();
    (0..600).for_each(|i| constant += &row((START + i * 60) * 1000, &format!("r{i}")));
    let constant = ledger(&scratch, "constant", &constant);
    let (code, found) = json(&["forecast", &constant, "--backtest"]);
    assert_eq!(code, 0, "{found:#}");
    sound(&found);
    let p50 = number(&series(&found, "all", "requests")["points"][0]["p50"]);
    assert!((p50 * 60.0 - 1.0).abs() < 0.05, "{p50}");
    // Unsorted and doubled rows are the same rows.
    let mut mixed: Vec<String> =
        (0..600).map(|i| row((START + i * 60) * 1000, &format!("r{i}"))).collect();
    mixed.reverse();
    mixed.push(mixed[5].clone());
    let mixed = ledger(&scratch, "mixed", &format!("{head}{}", mixed.concat()));
    let (_, same) = json(&["forecast", &mixed, "--backtest"]);
    assert_eq!(same["series"], found["series"]);
    for (arguments, expected) in [
        (vec!["forecast", &constant, "--step", "1s"], "not between 10 s and a day"),
        (vec!["forecast", &constant, "--horizon", "0s"], "0 steps"),
        (vec!["forecast", &constant, "--quantile", "0.2"], "not sized for"),
        (vec!["forecast", &constant, "--by", "routes"], "no column of text"),
        (vec!["forecast", &constant, "--until", "2020-01-01T00:00:00Z"], "no whole step"),
    ] {
        let said = told(&arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    // Plans that are none, or are of another time.
    let plan = scratch.path("plan.json");
    let (code, _) = json(&["forecast", &constant, "--out", &plan]);
    assert_eq!(code, 0);
    let text = std::fs::read_to_string(&plan).expect("written");
    let said = told(&["reconcile", &plan, &constant]);
    assert!(said.contains("ingest the logs of the time that was forecast"), "{said}");
    let edited = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        scratch.file(name, text.replacen(from, to, 1))
    };
    for (file, expected) in [
        (
            edited("schema.json", "plimsoll/forecast/v1", "plimsoll/forecast/v9"),
            "plimsoll/forecast/v9",
        ),
        (edited("resource.json", "\"resource\": \"requests\"", "\"resource\": \"calls\""), "calls"),
        (edited("point.json", "\"p50\": ", "\"p50\": 9e9, \"was\": "), "do not rise"),
        (scratch.file("half.json", &text[..text.len() / 2]), "is no JSON"),
        (scratch.file("other.json", "{\"schema\": \"plimsoll/review/v1\"}"), "plimsoll/review/v1"),
    ] {
        let said = told(&["reconcile", &file, &constant]);
        assert!(said.contains(expected), "{file}: {said}");
    }
    let said = told(&["forecast", &constant, "--levels", &plan]);
    assert!(said.contains("not what `plimsoll reconcile` writes"), "{said}");
    let said = told(&["reconcile", "--history", &scratch.path("constant")]);
    assert!(said.contains("no document"), "{said}");
    // Made by another version: held all the same, and said.
    let mut later = log(10 * 24, |_| 1.0);
    later.push_str("");
    let ledger = ledger(&scratch, "later", &later);
    let cut = moment(8 * 24);
    let (code, _) = json(&["forecast", &ledger, "--until", &cut, "--out", &plan]);
    assert_eq!(code, 0);
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("written")).expect("JSON");
    document["version"] = "0.0.1".into();
    let old = scratch.file("old.json", document.to_string());
    let (code, came) = json(&["reconcile", &old, &ledger]);
    assert_eq!(code, 0, "{came:#}");
    assert!(came["warnings"].to_string().contains("made by version 0.0.1"), "{}", came["warnings"]);
}
