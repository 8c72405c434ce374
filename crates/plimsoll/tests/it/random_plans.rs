//! Plans of random scenarios: bursts, dumps, events, pools without demand, classes without a promise, pairs of prefill and decode, and providers among them.

use plimsoll_stats::{Seed, Stream};
use plimsoll_testkit::sized;
use serde_json::{Value, json};

use crate::common::number;
use crate::common::plans::{holds_together, list, planned};

/// Draws parts of a scenario.
struct Draw(Stream);

impl Draw {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.uniform()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[(self.0.uniform() * of.len() as f64) as usize % of.len()]
    }

    fn maybe(&mut self, chance: f64) -> bool {
        self.0.uniform() < chance
    }
}

/// A scenario; `load` multiplies its rates.
fn scenario(seed: u64, load: f64) -> String {
    let mut draw = Draw(Seed::new(seed).stream("random scenario"));
    let mut text = "[study]\nname = \"random\"\nas_of = 2026-11-15\nhorizon = \"1d\"\n".to_owned();
    let shape = draw.one(&["one", "two", "pair", "provider"]);
    let classes = if draw.maybe(0.5) { 2 } else { 1 };
    for i in 0..classes {
        let rate = draw.between(1.0, 8.0) * load;
        let (prompt, output) = (draw.between(200.0, 3000.0), draw.between(10.0, 200.0));
        text += &format!(
            "\n[[class]]\nname = \"c{i}\"\nrate = \"{rate:.3} req/s\"\nprompt = {{ mean = {prompt:.0}, cv = 0.8, max = 12000 }}\noutput = {{ mean = {output:.0}, cv = 0.8, max = 2000 }}\n"
        );
        // A class without a promise is promised answers.
        text += draw.one(&[
            "slo = { ttft = \"2s\", tpot = \"80ms\" }\n",
            "slo = { e2e = \"40s\", attainment = 0.95 }\n",
            "slo = { ttft = \"4s\" }\n",
            "",
        ]);
        if draw.maybe(0.3) {
            text += "burst = { times = 3, lasts = \"60s\", every = \"10m\" }\n";
        }
    }
    if draw.maybe(0.3) {
        let rate = 0.02 * load;
        text += &format!(
            "\n[[class]]\nname = \"dump\"\nprofile = \"document-pipeline\"\nrate = \"{rate:.4} req/s\"\n"
        );
    }
    if draw.maybe(0.5) {
        text += "\n[[event]]\nname = \"launch\"\nfrom = 2026-11-16T09:00:00Z\nrate = { low = 1.5, likely = 2.0, high = 3.0 }\n";
    }
    let pool = |name: &str, more: &str| {
        format!(
            "\n[[pool]]\nname = \"{name}\"\nmodel = \"llama-3.1-8b\"\naccelerator = \"H100-SXM\"\nmax_model_len = 32768\nreplicas = {{ now = 1, plan = [1, 40] }}\n{more}"
        )
    };
    text += &match shape {
        "pair" => format!(
            "\n[[route]]\nto = \"prefill\"\n{}{}",
            pool(
                "prefill",
                "role = \"prefill\"\ndisaggregation = { decode = \"decode\", link = \"400Gbit/s\" }\n"
            ),
            pool("decode", "role = \"decode\"\n")
        ),
        // Nothing comes to the second.
        "two" => format!("\n[[route]]\nto = \"main\"\n{}{}", pool("main", ""), pool("spare", "")),
        "provider" => format!(
            "\n[[route]]\nto = \"main\"\nfallback = [\"hosted\"]\n{}\n[[provider]]\nname = \"hosted\"\nprovider = \"openai\"\nmodel = \"gpt-4.1\"\nrpm = 500\ntpm = 2_000_000\n",
            pool("main", "")
        ),
        _ => pool("main", ""),
    };
    text
}

/// A feasible plan covers its demand with a loss that it survives, no computed row is short while the mix holds, the row of the cause carries no more than the load line, and half as much
/// demand again never costs less. Sixteen seeds passed on 2026-11-20; six take a minute.
#[test]
fn random_plans_hold_together() {
    let mut feasible = 0;
    for seed in 0..sized(1, 6) {
        let plan = |load: f64| -> Value {
            let text = scenario(seed, load);
            let (code, plan) = planned(&format!("random-{seed}-{load}"), &text, &[]);
            assert!(code == 0 || code == 1, "{seed}: {plan:#}\n{text}");
            assert_eq!(code == 0, plan["feasible"] == true, "{seed}");
            holds_together(&plan);
            crate::review::check(&json!({ "plan": plan }));
            for block in list(&plan["table"], "pools") {
                let rows = list(block, "rows");
                let covers = |row: &Value| row["today"]["covers"].as_f64();
                let Some(line) = rows.first().and_then(covers) else { continue };
                for row in rows.iter().filter(|row| row["is_cause"] == true) {
                    assert!(covers(row).is_some_and(|own| own <= line + 1e-9), "{seed}: {row}");
                }
            }
            plan
        };
        let (less, more) = (plan(1.0), plan(1.5));
        if less["feasible"] == true && more["feasible"] == true {
            feasible += 1;
            let usd = |plan: &Value| number(&plan["budget"]["usd_per_month"]);
            assert!(
                usd(&more) >= usd(&less) * (1.0 - 1e-9),
                "{seed}: {} {}",
                usd(&less),
                usd(&more)
            );
        }
    }
    assert!(feasible >= sized(0, 2), "{feasible} pairs to compare");
}
