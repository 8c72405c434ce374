//! What a user sees for each mistake. Each row is a scenario; its snapshot is the message as printed.

use plimsoll_scenario::{Source, builtin, parse};

/// The rest of a scenario that is fine, so that each row holds one mistake.
const CLASS: &str = "[[class]]\nname = \"chat\"\nprofile = \"chat\"\nrate = \"40 req/s\"\n";
const POOL: &str = "[[pool]]\nname = \"a\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\"\n";
const OTHER: &str =
    "[[pool]]\nname = \"b\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\"\n";

fn check(name: &str, text: &str) {
    let mistakes = match parse(&Source::new("chat.toml", text), builtin()) {
        Ok(_) => panic!("{name}: no mistake was found in\n{text}"),
        Err(mistakes) => mistakes,
    };
    let codes: Vec<&str> = mistakes.iter().map(|m| m.code).collect();
    assert!(codes.contains(&name.split("__").next().unwrap_or(name)), "{name}: {codes:?}");
    let shown: Vec<String> = mistakes.iter().map(|m| m.render(false, 100)).collect();
    insta::assert_snapshot!(name, shown.join("\n"));
}

#[test]
fn every_mistake_has_its_message() {
    let class = |keys: &str| format!("{CLASS}{keys}");
    let pool = |keys: &str| format!("{CLASS}{POOL}{keys}");
    let scale = |keys: &str| format!("{CLASS}{POOL}[autoscaling]\n{keys}");
    let incident =
        |keys: &str| format!("{CLASS}{POOL}[[incident]]\nname = \"bad hour\"\nat = \"1h\"\n{keys}");
    let rows: &[(&str, String)] = &[
        ("syntax", format!("{CLASS}cache_hit = fifty\n")),
        ("syntax__several", "[study\nname = \"x\"\n[[class]]\nname = chat\n".to_owned()),
        ("empty-scenario", "# nothing but a comment\n".to_owned()),
        ("missing-key__no-class", "[study]\nname = \"x\"\n".to_owned()),
        ("missing-key__name", "[[class]]\nprofile = \"chat\"\nrate = \"1/s\"\n".to_owned()),
        ("missing-key__rate", "[[class]]\nname = \"chat\"\nprofile = \"chat\"\n".to_owned()),
        ("missing-key__shape", "[[class]]\nname = \"chat\"\nrate = \"1/s\"\nprompt = 900\n".to_owned()),
        ("missing-key__dumps", class("arrivals = \"dumps\"\n")),
        ("missing-key__model", format!("{CLASS}[[pool]]\nname = \"a\"\naccelerator = \"h100\"\n")),
        ("missing-key__prefill", pool("role = \"prefill\"\n")),
        ("missing-key__half-stage", class("stages = [{ name = \"answer\", prompt = 900 }]\n")),
        ("unknown-key", class("cache_hitt = 0.5\n")),
        ("unknown-key__far", class("colour = \"red\"\n")),
        ("unknown-key__table", format!("{CLASS}[[pools]]\nname = \"a\"\n")),
        ("unknown-key__nested", class("slo = { ttft_95 = \"1s\" }\n")),
        ("wrong-type__text", class("tenant = 7\n")),
        ("wrong-type__table", class("slo = \"fast\"\n")),
        ("wrong-type__list", format!("{CLASS}[pool]\nname = \"a\"\n")),
        ("wrong-type__boolean", pool("prefix_caching = \"yes\"\n")),
        ("wrong-type__integer", pool("tensor_parallel = 1.5\n")),
        ("wrong-type__quantity", class("deadline = [\"1s\"]\n")),
        ("wrong-type__date", format!("{CLASS}[[event]]\nname = \"e\"\nfrom = 7\n")),
        ("bad-quantity__no-unit", class("deadline = 30\n")),
        ("bad-quantity__wrong-unit", class("deadline = \"30GB\"\n")),
        ("bad-quantity__rate", "[[class]]\nname = \"chat\"\nprofile = \"chat\"\nrate = 40\n".to_owned()),
        ("bad-quantity__percent", class("cache_hit = 55\n")),
        ("bad-quantity__over-one", class("cache_hit = \"140%\"\n")),
        ("bad-quantity__negative", class("deadline = \"-3s\"\n")),
        ("bad-quantity__nan", class("cache_hit = nan\n")),
        ("bad-quantity__inf", class("weekend = inf\n")),
        ("bad-quantity__money", format!("{CLASS}[budget]\nmonthly = \"5000\"\n")),
        ("bad-quantity__huge", class("samples = 1\nprompt = 99999999999999999999\n")),
        ("impossible-distribution__order", class("prompt = { p50 = 4200, p95 = 900 }\n")),
        ("impossible-distribution__one-quantile", class("prompt = { p50 = 4200 }\n")),
        ("impossible-distribution__zero", class("prompt = { p50 = 0, p95 = 10 }\n")),
        ("impossible-distribution__weights", class("prompt = { values = [1, 2], weights = [1] }\n")),
        ("impossible-distribution__limits", class("prompt = { p50 = 10, p95 = 20, min = 30, max = 5 }\n")),
        ("impossible-distribution__pairs", "[[class]]\nname = \"a\"\nrate = \"1/s\"\npairs = [{ prompt = 1, output = 1, weight = 0 }]\n".to_owned()),
        ("impossible-burst", class("burst = { times = 20, lasts = \"1m\", every = \"10m\" }\n")),
        ("out-of-range__integer", pool("tensor_parallel = 0\n")),
        ("out-of-range__quantile", format!("[study]\ndemand_quantile = 1.0\n{CLASS}")),
        ("out-of-range__horizon", format!("[study]\nhorizon = \"10m\"\n{CLASS}")),
        ("out-of-range__far-horizon", format!("[study]\nhorizon = \"5000d\"\n{CLASS}")),
        ("out-of-range__window", format!("[study]\nwindow = \"1ms\"\n{CLASS}")),
        ("out-of-range__cv", class("cv = 0\n")),
        ("out-of-range__every", class("arrivals = \"dumps\"\nevery = \"1ms\"\n")),
        ("out-of-range__count", class("agent = { calls = 1e9 }\n")),
        ("out-of-range__burst", class("burst = { times = 1.5, lasts = \"1ns\", every = \"2ns\" }\n")),
        ("out-of-range__confidence", format!("[study]\nconfidence = 0.99999999\n{CLASS}")),
        ("bad-date__far", format!("[study]\nas_of = 9999-12-31\n{CLASS}")),
        ("bad-quantity__likely-unit", format!("[study]\nhorizon = 7\n{CLASS}")),
        ("bad-quantity__slip", class("cache_hit = 1.5\n")),
        ("bad-quantity__bits", pool("[[pool]]
name = \"b\"
model = \"llama-3.1-8b\"
accelerator = \"h100\"
disaggregation = { decode = \"a\", link = \"400Gb/s\" }
")),
        ("missing-key__price", format!("{CLASS}[[provider]]\nname = \"h\"\nprovider = \"openai\"\nmodel = \"gtp-4o\"\n")),
        ("missing-key__empty-class", "class = []\n[study]\nname = \"x\"\n".to_owned()),
        ("contradiction__quota", pool("replicas = 8\ntensor_parallel = 2\n[[region]]\nname = \"east\"\naccelerators = [{ accelerator = \"h100\", quota = 9 }]\n")),
        ("contradiction__no-way", format!("{CLASS}region = \"west\"\n{POOL}[[region]]\nname = \"east\"\n[[region]]\nname = \"west\"\n")),
        ("contradiction__schedule", scale("schedule = [{ pool = \"a\", from_hour = 6, to_hour = 6, replicas = 5 }]\n")),
        ("dangling-name__latency", format!("{CLASS}[[region]]\nname = \"east\"\nlatency_to = {{ wset = \"1ms\" }}\n[[region]]\nname = \"west\"\n")),
        ("contradiction__decode", pool("disaggregation = { decode = \"a\" }\n")),
        ("contradiction__no-call", class("stages = [{ name = \"s\", latency = \"1s\" }]\n")),
        ("too-many", (0..501).map(|i| format!("[[class]]\nname = \"c{i}\"\nprofile = \"chat\"\nrate = \"1/s\"\n")).collect()),
        ("out-of-range__slo", class("slo = { ttft = \"0s\" }\n")),
        ("out-of-range__pool-zero", pool("max_model_len = 0\n")),
        ("out-of-range__context", pool("max_model_len = 999999\n")),
        ("out-of-range__plan", pool("replicas = { now = 1, plan = [0, 0] }\n")),
        ("bad-range__plan", pool("replicas = { now = 1, plan = [8, 4] }\n")),
        ("bad-range__event", format!("{CLASS}[[event]]\nname = \"e\"\nfrom = 2026-11-17\nrate = {{ low = 3, likely = 2, high = 4 }}\n")),
        ("bad-hours", class("by_hour = [1, 2, 3]\n")),
        ("bad-date", format!("{CLASS}[[event]]\nname = \"e\"\nfrom = \"next tuesday\"\n")),
        ("bad-offset", format!("[study]\nutc_offset = \"Europe/Berlin\"\n{CLASS}")),
        ("bad-name", "[[class]]\nname = \"what?!\"\nprofile = \"chat\"\nrate = \"1/s\"\n".to_owned()),
        ("unknown-word", class("tier = \"premum\"\n")),
        ("unknown-word__profile", "[[class]]\nname = \"a\"\nprofile = \"chatt\"\nrate = \"1/s\"\nprompt = 1\noutput = 1\n".to_owned()),
        ("unknown-name__model", format!("{CLASS}[[pool]]\nname = \"a\"\nmodel = \"lama-3.1-8b\"\naccelerator = \"h100\"\n")),
        ("unknown-name__accelerator", format!("{CLASS}[[pool]]\nname = \"a\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"h1000\"\n")),
        ("unknown-name__engine", pool("engine = \"vllm@0.1\"\n")),
        ("dangling-name__route", format!("{CLASS}{POOL}[[route]]\nto = \"b\"\n")),
        ("dangling-name__class", format!("{CLASS}[[event]]\nname = \"e\"\nfrom = 2026-11-17\nclass = [\"chta\"]\n")),
        ("dangling-name__none", class("stages = [{ name = \"s\", tool = \"search\" }]\n")),
        ("duplicate-name", format!("{CLASS}{CLASS}")),
        ("impossible-group", pool("tensor_parallel = 16\n")),
        ("impossible-group__instance", pool("instance = \"p5.4xlarge\"\ntensor_parallel = 4\n")),
        ("contradiction__instance", pool("instance = \"p5en.48xlarge\"\n")),
        ("contradiction__event", format!("{CLASS}[[event]]\nname = \"e\"\nfrom = 2026-11-17\nto = 2026-11-16\n")),
        ("contradiction__slo", class("slo = { ttft_p95 = \"2s\", ttft_p99 = \"1s\" }\n")),
        ("contradiction__deadline", class("deadline = \"100ms\"\n")),
        ("contradiction__pairs", "[[class]]\nname = \"a\"\nrate = \"1/s\"\nprompt = 9\noutput = 9\npairs = [{ prompt = 1, output = 1 }]\n".to_owned()),
        ("contradiction__cached", "[[class]]\nname = \"a\"\nrate = \"1/s\"\npairs = [{ prompt = 10, cached = 11, output = 1 }]\n".to_owned()),
        ("contradiction__agent", class("agent = { calls = 3 }\nsessions = { turns = 3 }\n")),
        ("contradiction__variants", class("variants = [{ name = \"a\", share = 0.7 }, { name = \"b\", share = 0.7 }]\n")),
        ("contradiction__stage", class("stages = [{ name = \"s\", latency = \"1s\", prompt = 1, output = 1 }]\n")),
        ("contradiction__share", format!("{CLASS}{POOL}[[route]]\nto = \"a\"\nshare = 0.5\n")),
        ("contradiction__over-share", format!("{CLASS}{POOL}[[route]]\nto = \"a\"\n[[route]]\nto = \"a\"\nshare = 0.5\n")),
        ("contradiction__fallback", format!("{CLASS}{POOL}[[route]]\nto = \"a\"\nfallback = [\"a\"]\n")),
        ("contradiction__price", format!("{CLASS}[[prices.node]]\non_demand = \"$3/h\"\n")),
        // Whole fleets.
        ("nothing-serves", pool("replicas = 0\n")),
        ("nothing-serves__fallback", format!("{CLASS}{POOL}replicas = 0\n{OTHER}replicas = 0\n[[route]]\nto = \"b\"\nfallback = [\"a\"]\n")),
        ("nothing-serves__decode", format!("{CLASS}{POOL}role = \"prefill\"\ndisaggregation = {{ decode = \"b\" }}\n{OTHER}role = \"decode\"\nreplicas = 0\n")),
        ("not-simulated", format!("{CLASS}{POOL}shares_devices_with = \"b\"\n{OTHER}")),
        ("contradiction__fallback-twice", format!("{CLASS}{POOL}{OTHER}[[route]]\nto = \"a\"\nfallback = [\"b\", \"b\"]\n")),
        ("contradiction__shift", format!("{CLASS}{POOL}[[route]]\nto = \"a\"\nshift = {{ to = \"a\", share = 0.5 }}\n")),
        ("contradiction__to-decode", format!("{CLASS}{POOL}role = \"prefill\"\ndisaggregation = {{ decode = \"b\" }}\n{OTHER}role = \"decode\"\n[[route]]\nto = \"b\"\n")),
        ("contradiction__fallback-back", format!("{CLASS}{POOL}role = \"prefill\"\ndisaggregation = {{ decode = \"b\" }}\n{OTHER}[[route]]\nto = \"b\"\nfallback = [\"a\"]\n")),
        ("contradiction__backoff", class("retries = { attempts = 5, backoff = \"0s\" }\n")),
        ("contradiction__backoff-max", class("retries = { backoff = \"30s\" }\n")),
        ("contradiction__timeout", class("deadline = \"30s\"\nretries = { timeout = \"60s\" }\n")),
        ("out-of-range__timeout", class("retries = { timeout = \"0s\" }\n")),
        ("out-of-range__fan-out", class("agent = { calls = 3, fan_out = 0 }\n")),
        ("contradiction__domains", pool("replicas = 2\ndomains = 3\n")),
        ("contradiction__survive", format!("[study.reliability]\nsurvive = \"zone\"\n{CLASS}{POOL}replicas = 4\nfailure_domain = \"zone\"\ndomains = 1\n")),
        ("out-of-range__spot", pool("spot = { reclaimed_every = \"0s\" }\n")),
        ("missing-key__spot", pool("spot = { notice = \"30s\" }\n")),
        ("out-of-range__slow", pool("startup = { slow_factor = 0 }\n")),
        ("contradiction__average-latency", scale("signal = \"ttft-p90\"\ntarget = 0.5\ntarget_kind = \"average-value\"\n")),
        ("contradiction__average-share", scale("signal = \"kv\"\ntarget = 0.8\ntarget_kind = \"average-value\"\n")),
        ("contradiction__cooldown", scale("cooldown = \"60s\"\n")),
        ("contradiction__no-room", format!("{CLASS}{POOL}replicas = {{ now = 4, plan = [4, 4] }}\n[autoscaling]\npools = [\"a\"]\n")),
        ("out-of-range__period", scale("up_period = \"0s\"\n")),
        ("out-of-range__target", scale("target = 0\n")),
        ("out-of-range__forecast", scale("forecast = { lead = \"10m\", tasks_per_replica = 0 }\n")),
        ("unknown-word__controller", scale("controller = \"kedda\"\n")),
        ("missing-key__surge", incident("kind = \"surge\"\n")),
        ("missing-key__region-loss", incident("kind = \"region-loss\"\n[[region]]\nname = \"east\"\n")),
        ("missing-key__outage", incident("kind = \"outage\"\n[[tool]]\nname = \"search\"\nlatency = \"1s\"\n")),
        ("contradiction__incident-load", incident("kind = \"replica-loss\"\nload = 3\n")),
        ("contradiction__incident-pool", incident("kind = \"surge\"\nlasts = \"10m\"\npool = \"a\"\n")),
        ("contradiction__incident-lasts", incident("kind = \"upgrade\"\nlasts = \"10m\"\n")),
        ("contradiction__incident-count", incident("kind = \"replica-loss\"\ncount = 2\n")),
        ("contradiction__incident-zones", format!("{CLASS}{POOL}replicas = 6\nfailure_domain = \"zone\"\ndomains = 3\n[[incident]]\nname = \"i\"\nat = \"1h\"\nkind = \"zone-loss\"\npool = \"a\"\ncount = 4\n")),
        ("contradiction__incident-region", format!("{CLASS}{POOL}[[region]]\nname = \"east\"\n[[region]]\nname = \"west\"\n[[incident]]\nname = \"i\"\nat = \"1h\"\nkind = \"node-loss\"\npool = \"a\"\nregion = \"west\"\n")),
        ("out-of-range__incident", incident("kind = \"surge\"\nlasts = \"0s\"\n")),
        ("dangling-name__incident", incident("kind = \"outage\"\ntarget = \"serch\"\n[[tool]]\nname = \"search\"\nlatency = \"1s\"\n")),
        ("too-many__incidents", (0..201).fold(pool(""), |text, i| format!("{text}[[incident]]\nname = \"i{i}\"\nat = \"1h\"\nkind = \"cache-loss\"\n"))),
    ];
    for (name, text) in rows {
        check(name, text);
    }
}

/// One file, many mistakes: all of them, in the order of the file.
#[test]
fn all_mistakes_at_once() {
    let text = "\
[study]
name = \"Launch\"
horizonn = \"7d\"
demand_quantile = 95

[[class]]
name = \"chat\"
rate = \"40\"
prompt = { p50 = 4200, p95 = 900 }
output = 200
cache_hit = \"120%\"

[[pool]]
name = \"main\"
model = \"llama-3.1-80b\"
accelerator = \"H100\"
tensor_parallel = 16

[[route]]
class = [\"chatt\"]
to = \"mian\"
";
    let mistakes = parse(&Source::new("launch.toml", text), builtin()).unwrap_err();
    let lines: Vec<(usize, &str)> =
        mistakes.iter().map(|m| (m.position().unwrap().0, m.code)).collect();
    assert_eq!(
        lines,
        [
            (3, "unknown-key"),
            (4, "bad-quantity"),
            (8, "bad-quantity"),
            (9, "impossible-distribution"),
            (11, "bad-quantity"),
            (15, "unknown-name"),
            (17, "impossible-group"),
            (20, "dangling-name"),
            (21, "dangling-name"),
        ]
    );
}

/// A value that cannot be read hides no contradiction between the others.
#[test]
fn one_mistake_does_not_hide_another() {
    let text = "\
[[class]]
name = \"a\"
profile = \"chat\"
rate = \"1/s\"
priority = 5000
cv = 500
agent = { calls = 3 }
sessions = { turns = 3 }

[[event]]
name = \"e\"
kind = \"lunch\"
from = 2026-11-17
to = 2026-11-16

[[route]]
to = \"nowhere\"
";
    let mistakes = parse(&Source::new("two.toml", text), builtin()).unwrap_err();
    let lines: Vec<(usize, &str)> =
        mistakes.iter().map(|m| (m.position().unwrap().0, m.code)).collect();
    assert_eq!(
        lines,
        [
            (5, "out-of-range"),
            (6, "out-of-range"),
            (8, "contradiction"),
            (12, "unknown-word"),
            (14, "contradiction"),
            (17, "dangling-name"),
        ]
    );
}

/// Deep nesting, control characters, a huge key: an answer, never a panic or a hang.
#[test]
fn hostile_files_get_an_answer() {
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let tables: String = (0..5000).map(|i| format!("[a{i}.b.c]\n")).collect();
    let long_key = format!("{} = 1\n", "k".repeat(1_000_000));
    let long_name = format!("[[class]]\nname = \"{}\"\n", "n".repeat(1_000_000));
    for text in [
        deep,
        tables,
        long_key,
        long_name,
        "\0\u{1}\u{2}".to_owned(),
        "=".repeat(100_000),
        "[[[[".to_owned(),
    ] {
        let mistakes = parse(&Source::new("hostile.toml", text), builtin()).unwrap_err();
        assert!(!mistakes.is_empty());
        let shown: usize = mistakes.iter().take(50).map(|m| m.render(false, 100).len()).sum();
        assert!(shown < 100_000, "a message as long as the file");
    }
}

/// What looks like a mistake and is none: nothing runs today, but something will, or something else does.
#[test]
fn fleets_that_can_serve_are_fine() {
    let hosted = "[[provider]]\nname = \"h\"\nprovider = \"openai\"\nmodel = \"gpt-4o\"\n";
    let rows: &[(&str, String)] = &[
        ("a plan fills it", format!("{POOL}replicas = {{ now = 0, plan = [1, 8] }}\n")),
        (
            "autoscaling fills it",
            format!(
                "{POOL}replicas = 0\n[autoscaling]\ncontroller = \"keda\"\ncooldown = \"60s\"\n"
            ),
        ),
        (
            "a fallback serves",
            format!("{POOL}replicas = 0\n{hosted}[[route]]\nto = \"a\"\nfallback = [\"h\"]\n"),
        ),
        ("a route serves", format!("{POOL}replicas = 0\n{OTHER}[[route]]\nto = \"b\"\n")),
        (
            "prefill as a fallback",
            format!(
                "{POOL}{OTHER}role = \"prefill\"\ndisaggregation = {{ decode = \"a\" }}\n{hosted}[[route]]\nto = \"h\"\nfallback = [\"b\"]\n"
            ),
        ),
        (
            "domains that a plan fills",
            format!("{POOL}replicas = {{ now = 2, plan = [2, 9] }}\ndomains = 3\n"),
        ),
        (
            "a loss that a plan allows",
            format!(
                "{POOL}replicas = {{ now = 2, plan = [2, 9] }}\n[[incident]]\nname = \"i\"\nat = \"1h\"\nkind = \"replica-loss\"\ncount = 3\n"
            ),
        ),
        (
            "a budget instead of a pause",
            format!("retries = {{ backoff = \"0s\", budget = \"10%\" }}\n{POOL}"),
        ),
        (
            "one attempt needs no pause",
            format!("retries = {{ attempts = 1, backoff = \"0s\", timeout = \"5s\" }}\n{POOL}"),
        ),
        (
            "a latency as it is",
            format!(
                "{POOL}[autoscaling]\nsignal = \"ttft-p90\"\ntarget = 0.5\ntarget_kind = \"value\"\n"
            ),
        ),
        (
            "every kind of incident",
            [
                "kind = \"replica-loss\"",
                "kind = \"node-loss\"\npool = \"a\"\nlasts = \"20m\"",
                "kind = \"zone-loss\"",
                "kind = \"region-loss\"\nregion = \"east\"",
                "kind = \"reclaim\"\ncount = 2",
                "kind = \"upgrade\"\nbatch = 2",
                "kind = \"cache-loss\"\npool = \"a\"",
                "kind = \"outage\"\ntarget = \"h\"\nlasts = \"5m\"",
                "kind = \"surge\"\nlasts = \"10m\"\nload = 3\nclass = [\"chat\"]",
            ]
            .iter()
            .enumerate()
            .fold(
                format!("{POOL}replicas = 4\n{hosted}[[region]]\nname = \"east\"\n"),
                |text, (i, keys)| {
                    format!("{text}[[incident]]\nname = \"i{i}\"\nat = \"1h\"\n{keys}\n")
                },
            ),
        ),
    ];
    for (name, text) in rows {
        let text = format!("{CLASS}{text}");
        if let Err(mistakes) = parse(&Source::new("fine.toml", text), builtin()) {
            panic!("{name}: {}", mistakes[0].render(false, 100));
        }
    }
}

/// A target is divided by the replicas only where the signal adds up over them.
#[test]
fn the_target_follows_the_signal() {
    for (signal, kind) in [
        ("queue-depth", "average-value"),
        ("in-flight", "average-value"),
        ("fresh-tokens", "average-value"),
        ("queue-age", "value"),
        ("ttft-p90", "value"),
        ("goodput", "value"),
        ("kv", "value"),
    ] {
        let text = format!("{CLASS}{POOL}[autoscaling]\nsignal = \"{signal}\"\n");
        let loaded = parse(&Source::new("scale.toml", text), builtin()).unwrap();
        let autoscaling = loaded.scenario.autoscaling.unwrap();
        assert_eq!(autoscaling.target_kind().to_string(), kind, "{signal}");
    }
}
