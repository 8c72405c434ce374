//! `cargo run --release -p tools --bin constants`: fits the built-in step-time constants to the published measurements.
//!
//! The prior of each constant comes from kernel timings where there are any (`kernel_efficiency.json`), from a typed-in guess otherwise;
//! then all of them are fitted at once to the end-to-end cases (`cases.json`) and to our own step logs. Each (architecture, accelerator) group is
//! also predicted by a fit that has not seen it: those errors are the bands. Neither file is part of the repository: the result is. `--quick`
//! fits and prints, and writes nothing.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool prints what it finds")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_perf::{Constant, Fitted, Parameter, StepLoad, Term, bounded_least_squares, step};
use plimsoll_stats::quantile;
use plimsoll_study::{
    Load, Metric, PerformanceCase, PerformanceInputs, PoolSteps, Prepared, Target, prepare, replay,
};
use serde_json::Value;

/// Nothing was ever timed above this share of a datasheet's peak.
const MOST: f64 = 0.97;

/// What is believed of a constant before the cases are looked at.
struct Prior {
    constant: Constant,
    /// How many kernel timings stand behind it.
    kernels: u64,
    /// The standard deviation of its logarithm.
    sd: f64,
}

/// A number to be predicted, and the constants it rests on.
struct Item<'a> {
    case: &'a PerformanceCase,
    target: Target,
    prepared: Prepared,
    uses: Vec<usize>,
}

/// The steps of one kind in one of our own runs, all together.
struct OwnSteps {
    model: String,
    accelerator: String,
    pool: PoolSteps,
    loads: Vec<StepLoad>,
    seconds: f64,
    uses: Vec<usize>,
}

impl OwnSteps {
    fn error(&self, values: &[f64]) -> f64 {
        let rates = self.pool.rates(values);
        let time = |load: &StepLoad| step(&self.pool.work, &rates, &load.batch()).total();
        self.loads.iter().map(time).sum::<f64>() / self.seconds - 1.0
    }
}

impl Item<'_> {
    fn error(&self, values: &[f64]) -> f64 {
        self.prepared.predicted(&self.target, values) / self.target.measured - 1.0
    }

    fn residual(&self, values: &[f64]) -> f64 {
        // How well a case can be known: repeats of one configuration differ by some 2%, engines by 19%; a first token under load is
        // mostly queueing, and often nobody says whether a mean or a median was published.
        let batch = matches!(self.case.inputs.load, Load::StaticBatch(_));
        let sd = if self.target.metric == Metric::Ttft && !batch { 0.6 } else { 0.15 };
        (self.prepared.predicted(&self.target, values) / self.target.measured).ln() / sd
    }

    fn group(&self) -> String {
        format!("{}|{}", self.case.inputs.arch, self.case.inputs.accelerator)
    }

    fn kind(&self) -> &'static str {
        self.prepared.pool.kind
    }
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match constants(&root, std::env::args().any(|argument| argument == "--quick")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("constants: {message}");
            ExitCode::FAILURE
        }
    }
}

fn constants(root: &Path, quick: bool) -> Result<(), String> {
    let shared: PathBuf =
        std::env::var("PLIMSOLL_SHARED").map_or_else(|_| root.join("../shared"), Into::into);
    let read = |name: &str| {
        let path = shared.join("data/perf").join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let kernels: Value =
        serde_json::from_str(&read("kernel_efficiency.json")?).map_err(|e| e.to_string())?;
    let cases =
        plimsoll_evidence::performance_cases(&read("cases.json")?).map_err(|e| e.to_string())?;
    let mut priors = priors(&kernels);
    let mut items = items(&cases, &priors)?;
    // A constant that neither kernels nor at least three cases speak of is left to the row that stands for all.
    let counted = counts(&items, priors.len());
    let general = |p: &Prior| {
        p.constant.family.is_none() && p.constant.engine.is_none() && p.constant.dtype.is_none()
    };
    let kept: Vec<bool> =
        priors.iter().zip(&counted).map(|(p, n)| general(p) || p.kernels > 0 || *n >= 3).collect();
    let mut keep = kept.iter();
    priors.retain(|_| *keep.next().unwrap_or(&true));
    items = self::items(&cases, &priors)?;

    let own = own_steps(&shared, &priors)?;
    let fitted = fit(&priors, &items, &own.iter().collect::<Vec<_>>(), None, 40);
    let errors: Vec<f64> = own.iter().map(|o| 100.0 * o.error(&fitted.values).abs()).collect();
    println!(
        "our own runs: {} kinds of step, median {:.1}%, p90 {:.1}%",
        own.len(),
        quantile(&errors, 0.5).unwrap_or(f64::NAN),
        quantile(&errors, 0.9).unwrap_or(f64::NAN)
    );
    println!("{} constants, {} numbers, {} rounds", priors.len(), items.len(), fitted.rounds);
    table(&items, &|item| item.error(&fitted.values));
    if let Ok(path) = std::env::var("CONSTANTS_DUMP") {
        dump(&items, &fitted.values, &path)?;
    }
    if quick {
        return Ok(());
    }
    // What a reader should expect is the error on what a fit has not seen.
    let groups: BTreeSet<String> = items.iter().map(Item::group).collect();
    let groups: Vec<String> = groups.into_iter().collect();
    let without = |group: &String| -> Result<(String, Vec<f64>), String> {
        let mut left = self::items(&cases, &priors)?;
        left.retain(|item| item.group() != *group);
        let (arch, device) = group.split_once('|').unwrap_or_default();
        let others: Vec<&OwnSteps> =
            own.iter().filter(|o| o.accelerator != device || !same_shape(&o.model, arch)).collect();
        // From the priors, as if the group had never been seen; sixteen rounds come within a percent of the end.
        Ok((group.clone(), fit(&priors, &left, &others, None, 16).values))
    };
    let halves = groups.split_at(groups.len() / 2);
    let half = |groups: &[String]| groups.iter().map(&without).collect::<Result<Vec<_>, _>>();
    let apart: BTreeMap<String, Vec<f64>> = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(halves.1));
        let mut all = half(halves.0)?;
        all.extend(other.join().map_err(|_| "a fit panicked".to_owned())??);
        Ok::<_, String>(all.into_iter().collect())
    })?;
    let unseen = |item: &Item<'_>| item.error(&apart[&item.group()]);
    println!("each (architecture, accelerator) group predicted by a fit that has not seen it");
    table(&items, &unseen);
    let path = root.join("crates/plimsoll-scenario/catalog/step_time.toml");
    std::fs::write(path, toml(&priors, &items, &fitted, &unseen)).map_err(|e| e.to_string())
}

fn items<'a>(cases: &'a [PerformanceCase], priors: &[Prior]) -> Result<Vec<Item<'a>>, String> {
    let rows: Vec<Constant> = priors.iter().map(|p| p.constant.clone()).collect();
    let catalog = plimsoll_scenario::builtin();
    let mut items = Vec::new();
    for case in cases {
        let targets: Vec<Target> = case.targets().into_iter().filter(|t| t.scored).collect();
        if targets.is_empty() {
            continue;
        }
        let Ok(prepared) = prepare(&case.inputs, catalog, &rows) else { continue };
        let uses = prepared.rows();
        for target in targets {
            items.push(Item { case, target, prepared: prepared.clone(), uses: uses.clone() });
        }
    }
    // What one or two cases say of a constant is as likely their own fault: it stays where kernels put it.
    let counted = counts(&items, priors.len());
    for item in &mut items {
        item.uses.retain(|row| counted[*row] >= 3);
    }
    Ok(items)
}

/// Cases that rest on each constant.
fn counts(items: &[Item<'_>], rows: usize) -> Vec<usize> {
    let mut seen = vec![BTreeSet::new(); rows];
    for item in items {
        for &row in &item.uses {
            seen[row].insert(&item.case.id);
        }
    }
    seen.iter().map(BTreeSet::len).collect()
}

fn fit(
    priors: &[Prior],
    items: &[Item<'_>],
    own: &[&OwnSteps],
    from: Option<&[f64]>,
    rounds: usize,
) -> Fitted {
    let parameters: Vec<Parameter> = priors
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let (value, share) = (p.constant.value, p.constant.term.is_efficiency());
            // The host's time counts only where it is the longer one: begun low, a fit would never notice it.
            let host = matches!(p.constant.term, Term::EagerSeconds | Term::PieceSeconds);
            let (least, most) = match p.constant.term {
                _ if share => (0.02, MOST),
                // Longer than this is a queue, not a way.
                Term::PathSeconds => (1e-3, 0.08),
                _ => (value / 30.0, value * 30.0),
            };
            Parameter {
                prior: value,
                prior_sd: p.sd,
                start: from.map_or(if host { 3.0 * value } else { value }, |f| f[i]),
                least,
                most,
            }
        })
        .collect();
    let uses: Vec<Vec<usize>> =
        items.iter().map(|i| &i.uses).chain(own.iter().map(|o| &o.uses)).cloned().collect();
    bounded_least_squares(&parameters, 1.0, rounds, &uses, &|row, values| match items.get(row) {
        Some(item) => item.residual(values),
        // Measured by ourselves, step by step.
        None => own[row - items.len()].error(values).ln_1p() / 0.05,
    })
}

/// Whether two names are of models with the same layers, whatever they are called.
fn same_shape(one: &str, other: &str) -> bool {
    let shape = |name: &str| plimsoll_scenario::builtin().model(name).ok().map(|m| &m.architecture);
    match (shape(one), shape(other)) {
        (Some(a), Some(b)) => a.layers == b.layers && a.hidden_size == b.hidden_size,
        _ => false,
    }
}

/// Our own runs of a real engine, taken apart by the plain engine: decode steps and steps with prompts of each.
fn own_steps(shared: &Path, priors: &[Prior]) -> Result<Vec<OwnSteps>, String> {
    let rows: Vec<Constant> = priors.iter().map(|p| p.constant.clone()).collect();
    let catalog = plimsoll_scenario::builtin();
    let mut found = Vec::new();
    for name in ["llama31_8b", "llama31_8b_b8192", "llama31_8b_kv64k", "qwen3_30b_a3b"] {
        let path = shared.join(format!("data/vllm_h200/{name}.jsonl.gz"));
        let file = std::fs::File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).map_err(|e| e.to_string())?;
        let results = plimsoll_evidence::results(name, &text).map_err(|e| format!("{e:?}"))?;
        for run in &results.runs {
            let s = &run.setup;
            let inputs = PerformanceInputs {
                engine: s.engine.clone(),
                version: Some(s.version.clone()),
                model: s.model.clone(),
                arch: s.model.clone(),
                precision: Some(s.weights.clone()),
                kv_precision: Some(s.kv_dtype.clone()),
                accelerator: s.accelerator.clone(),
                devices: 1,
                tensor: Some(s.tensor_parallel),
                pipeline: 1,
                expert: 1,
                attention_replicas: 1,
                prompt: Some(1.0),
                output: Some(2.0),
                load: Load::StaticBatch(1.0),
                saturated: false,
                requests: None,
                workload: "own".to_owned(),
            };
            let mut prepared = prepare(&inputs, catalog, &rows)?;
            prepared.pool.work.graph_tokens = Some((2.0 * s.max_num_seqs as f64).min(512.0));
            let uses = prepared.rows();
            let replayed = replay(run);
            for prompts in [false, true] {
                let kind = replayed
                    .stretches
                    .iter()
                    .filter(|s| s.loads.iter().any(|l| l.prefill > 0) == prompts);
                let (mut loads, mut seconds) = (Vec::new(), 0.0);
                for stretch in kind {
                    loads.extend(&stretch.loads);
                    // The way in is not a step's.
                    seconds += stretch.seconds - stretch.noticed;
                }
                // A handful of steps is mostly the client's jitter.
                if loads.len() >= 5 {
                    found.push(OwnSteps {
                        model: s.model.clone(),
                        accelerator: s.accelerator.clone(),
                        pool: prepared.pool.clone(),
                        loads,
                        seconds,
                        uses: uses.clone(),
                    });
                }
            }
        }
    }
    Ok(found)
}

fn table(items: &[Item<'_>], error: &dyn Fn(&Item<'_>) -> f64) {
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for item in items {
        let load = match item.case.inputs.load {
            Load::Concurrency(_) => "closed",
            Load::Rate(_) => "open",
            Load::AllAtOnce => "all at once",
            Load::StaticBatch(_) => "static",
        };
        let name = format!("{:?} {} {load}", item.target.metric, item.kind());
        groups.entry(name).or_default().push(100.0 * error(item));
    }
    for (name, errors) in groups {
        let absolute: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        let at = |of: &[f64], p: f64| quantile(of, p).unwrap_or(f64::NAN);
        println!(
            "  {name:36} n {:4}  median {:5.1}%  p90 {:6.1}%  bias {:+6.1}%",
            errors.len(),
            at(&absolute, 0.5),
            at(&absolute, 0.9),
            at(&errors, 0.5)
        );
    }
}

/// Every number with its prediction, for whoever wants to look for patterns.
fn dump(items: &[Item<'_>], values: &[f64], path: &str) -> Result<(), String> {
    let mut out = String::new();
    for item in items {
        let (c, state) = (&item.case.inputs, item.prepared.predict(values));
        let _ = writeln!(
            out,
            "{:?}\t{}\t{}\t{}\t{}\t{}\t{}\ttp{} pp{} ep{} dp{}\t{:?}\t{:.0}/{:.0}\t{:.5}\t{:+.1}%\t{state:?}\t{}",
            item.target.metric,
            item.case.id,
            item.case.source,
            c.engine,
            c.arch,
            c.accelerator,
            c.precision.as_deref().unwrap_or("?"),
            c.tensor.unwrap_or(0),
            c.pipeline,
            c.expert,
            c.attention_replicas,
            c.load,
            c.prompt.unwrap_or(0.0),
            c.output.unwrap_or(0.0),
            item.target.measured,
            100.0 * item.error(values),
            item.case.tags.join(","),
        );
    }
    std::fs::write(path, out).map_err(|e| e.to_string())
}

/// The catalogue's file.
fn toml(
    priors: &[Prior],
    items: &[Item<'_>],
    fitted: &Fitted,
    unseen: &dyn Fn(&Item<'_>) -> f64,
) -> String {
    let mut out = String::from(
        "# Step-time constants, written by `cargo run --release -p tools --bin constants`. Efficiencies are shares of the datasheet's peak; a row without a key\n\
         # stands for all that have none of their own. prior: from kernel timings, or a guess where `kernels` is 0. spread_pct: one standard\n\
         # deviation of the fitted value. informed: how much of it the cases decided, 0 to 1.\n",
    );
    let source = "ai-dynamo/aiconfigurator@095f58a5 kernel timings; published end-to-end measurements (docs/validation.md)";
    for (i, prior) in priors.iter().enumerate() {
        let c = &prior.constant;
        let cases: BTreeSet<&String> =
            items.iter().filter(|item| item.uses.contains(&i)).map(|item| &item.case.id).collect();
        let _ = writeln!(out, "\n[[constant]]\nterm = \"{}\"", c.term.name());
        for (key, value) in [("family", &c.family), ("engine", &c.engine), ("dtype", &c.dtype)] {
            if let Some(value) = value {
                let _ = writeln!(out, "{key} = \"{value}\"");
            }
        }
        let spread = 100.0 * fitted.sd[i].exp_m1();
        let _ = writeln!(
            out,
            "value = {:.4e}\nprior = {:.4e}\nspread_pct = {spread:.1}",
            fitted.values[i], c.value
        );
        let _ = writeln!(
            out,
            "kernels = {}\ncases = {}\ninformed = {:.2}",
            prior.kernels,
            cases.len(),
            fitted.informed[i]
        );
        let source = match c.term {
            Term::LaunchSeconds | Term::LaunchSequenceSeconds | Term::UnevenShare => {
                "our own step logs of vLLM 0.24 on an H200 (validation/vllm_h200, docs/model.md)"
            }
            _ => source,
        };
        let _ = writeln!(out, "source = \"{source}\"\nas_of = \"2026-11-15\"");
        if c.term.is_efficiency() && fitted.values[i] >= MOST {
            let _ = writeln!(
                out,
                "note = \"at its upper bound: the cases ask for more than a device was ever timed at\""
            );
        }
    }
    // Errors, and the groups they are of.
    type Seen = (Vec<f64>, BTreeSet<String>);
    let mut bands: BTreeMap<(&str, &str, &str), Seen> = BTreeMap::new();
    for item in items {
        let batch = matches!(item.case.inputs.load, Load::StaticBatch(_));
        let kind = match item.target.metric {
            Metric::Tpot => item.kind(),
            Metric::OutputRate => "throughput",
            Metric::Ttft if batch => "prefill",
            Metric::Ttft => continue,
        };
        let family = item.prepared.pool.family.unwrap_or("");
        let engine = item.prepared.pool.engine.as_str();
        let keys = [(kind, family, engine), (kind, family, ""), (kind, "", "")];
        let keyed = item.target.metric == Metric::Tpot;
        for key in if keyed { &keys[..] } else { &keys[2..] } {
            let band = bands.entry(*key).or_default();
            band.0.push(100.0 * unseen(item).abs());
            band.1.insert(item.group());
        }
    }
    // One model on one device says nothing of the next.
    let enough =
        |(errors, groups): &(Vec<f64>, BTreeSet<String>)| errors.len() >= 10 && groups.len() >= 3;
    for ((kind, family, engine), (errors, groups)) in bands.iter().filter(|(_, b)| enough(b)) {
        let at = |p: f64| quantile(errors, p).unwrap_or(f64::NAN);
        let _ = writeln!(out, "\n[[band]]\nkind = \"{kind}\"");
        for (key, value) in [("family", family), ("engine", engine)] {
            if !value.is_empty() {
                let _ = writeln!(out, "{key} = \"{value}\"");
            }
        }
        let _ = writeln!(
            out,
            "median_abs_pct = {:.1}\np90_abs_pct = {:.1}\ncases = {}\ngroups = {}",
            at(0.5),
            at(0.9),
            errors.len(),
            groups.len()
        );
    }
    out
}

/// Kernel timings by family and format, and guesses for what kernels do not show.
fn priors(kernels: &Value) -> Vec<Prior> {
    let mut list = Vec::new();
    let table = |name: &str| kernels[name].as_array().cloned().unwrap_or_default();
    let number = |row: &Value, key: &str| row[key].as_f64();
    let mut pooled: BTreeMap<(Term, &str, &str), (Vec<f64>, u64)> = BTreeMap::new();
    let mut note = |term: Term,
                    family: &'static str,
                    dtype: &'static str,
                    value: Option<f64>,
                    n: Option<f64>| {
        if let (Some(value), Some(n)) = (value, n) {
            let entry = pooled.entry((term, family, dtype)).or_default();
            entry.0.push(value);
            entry.1 += n as u64;
        }
    };
    for row in table("gemm_constant_efficiency_fit") {
        let (Some(family), Some(dtype)) = (family_of(&row["system"]), dtype_of(&row["dtype"]))
        else {
            continue;
        };
        // Host-bound collection, not a property of the kernel.
        if row["dtype"] == "fp8_block" && row["engine"] == "vllm" {
            continue;
        }
        note(Term::GemmFlops, family, dtype, number(&row, "flops_eff"), number(&row, "n"));
        note(
            Term::GemmBytes,
            family,
            dtype,
            number(&row, "bw_eff").map(|e| e.min(0.95)),
            number(&row, "n"),
        );
    }
    for row in table("moe_roofline") {
        let (Some(family), Some(dtype)) = (family_of(&row["sys"]), dtype_of(&row["moe_dtype"]))
        else {
            continue;
        };
        if row["distribution"] != "power_law_1.01" {
            continue;
        }
        // Memory decides at 64 tokens, arithmetic at 16,384.
        let term = match row["b"].as_str() {
            Some("64") => Term::ExpertBytes,
            Some("16384") => Term::ExpertFlops,
            _ => continue,
        };
        note(
            term,
            family,
            dtype,
            number(&row, "roofline_p50").map(|e| e.min(0.95)),
            number(&row, "n"),
        );
    }
    for row in table("decode_attention_bandwidth") {
        let (Some(family), Some(dtype)) = (family_of(&row["system"]), dtype_of(&row["kv"])) else {
            continue;
        };
        if row["kv_mb"] == "1-4GB" {
            note(
                Term::KvBytes,
                family,
                dtype,
                number(&row, "bw_p50").map(|e| e.min(0.95)),
                number(&row, "n"),
            );
        }
    }
    // 1/share = 1/limit + 2 ramp/(limit length), from two lengths.
    let mut shares: BTreeMap<(String, String), BTreeMap<u64, (f64, f64)>> = BTreeMap::new();
    for row in table("prefill_attention_flops") {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let (true, Ok(length)) = (text("attn") == "bfloat16", text("isl").parse()) else {
            continue;
        };
        if let (Some(share), Some(n)) = (number(&row, "fl_p50"), number(&row, "n")) {
            shares.entry((text("system"), text("engine"))).or_default().insert(length, (share, n));
        }
    }
    for ((system, _), by_length) in &shares {
        let Some(family) = family_of(&Value::String(system.clone())) else { continue };
        if let (Some((short, n)), Some((long, _))) = (by_length.get(&2048), by_length.get(&16384)) {
            let slope = (1.0 / short - 1.0 / long) / (1.0 / 2048.0 - 1.0 / 16384.0);
            let limit = 1.0 / (1.0 / long - slope / 16384.0);
            note(Term::AttentionFlops, family, "", Some(limit.clamp(0.1, 0.95)), Some(*n));
            note(Term::AttentionRamp, family, "", Some((slope * limit / 2.0).max(50.0)), Some(*n));
        }
    }
    for row in table("allreduce_us") {
        let Some(family) = family_of(&row["system"]) else { continue };
        let engine = row["engine"].as_str().unwrap_or_default();
        if engine.starts_with("nccl") {
            continue;
        }
        let link = plimsoll_scenario::builtin()
            .accelerators
            .iter()
            .find(|a| plimsoll_perf::family(a) == Some(family));
        let link = link.and_then(|a| a.interconnect.bandwidth).map(|b| b.get());
        if row["n"] == 2 {
            note(
                Term::ReduceSeconds,
                family,
                "",
                number(&row, "16KiB").map(|us| us / 1e6),
                Some(1.0),
            );
        }
        if row["n"] == 8 {
            let share = number(&row, "busbw_GBs@256MiB")
                .zip(link)
                .map(|(bus, link)| (bus * 1e9 / link).clamp(0.02, 0.95));
            note(Term::ReduceBytes, family, "", share, Some(1.0));
        }
    }
    let key = |s: &str| (!s.is_empty()).then(|| s.to_owned());
    let mut add = |term: Term,
                   family: &str,
                   engine: &str,
                   dtype: &str,
                   value: f64,
                   kernels: u64| {
        let constant =
            Constant { term, family: key(family), engine: key(engine), dtype: key(dtype), value };
        list.push(Prior { constant, kernels, sd: belief(term) });
    };
    for ((term, family, dtype), (values, n)) in &pooled {
        // Alike wherever they were timed: 5 to 6 microseconds, 270 to 400 tokens.
        let shared = matches!(term, Term::ReduceSeconds | Term::AttentionRamp);
        if shared && !matches!(*family, "hopper" | "blackwell") {
            continue;
        }
        let dtype = match (term, *family, *dtype) {
            // Timed within 1% of what stands for all.
            (Term::AttentionFlops, "ada", _) => continue,
            // Timed alike: one row.
            (Term::GemmBytes, "blackwell-pcie", "fp8") => continue,
            (Term::GemmBytes, "blackwell-pcie", "bf16") => "",
            (_, _, dtype) => dtype,
        };
        add(*term, family, "", dtype, quantile(values, 0.5).unwrap_or(0.5), *n);
    }
    // What no kernel timing speaks of: a row where there may be cases, from the nearest that was timed.
    let nearest = [
        (Term::GemmBytes, "cdna3", "bf16", 0.7),
        (Term::GemmBytes, "cdna3", "fp8", 0.65),
        (Term::ExpertBytes, "cdna3", "fp8", 0.5),
        (Term::ExpertFlops, "ada", "fp8", 0.3),
        (Term::ExpertBytes, "ada", "fp8", 0.6),
        (Term::ExpertFlops, "blackwell-pcie", "nvfp4", 0.3),
        (Term::ExpertBytes, "blackwell-pcie", "nvfp4", 0.6),
        (Term::KvBytes, "blackwell-pcie", "fp8", 0.8),
        (Term::ReduceBytes, "cdna3", "", 0.6),
    ];
    for (term, family, dtype, value) in nearest {
        if !pooled.contains_key(&(term, family, dtype)) {
            add(term, family, "", dtype, value, 0);
        }
    }
    for (engine, layer) in
        [("vllm", 35e-6), ("vllm-sync", 45e-6), ("sglang", 40e-6), ("tensorrt-llm", 30e-6)]
    {
        for family in ["hopper", "blackwell"] {
            add(Term::LayerSeconds, family, engine, "", layer, 0);
        }
        if engine == "vllm-sync" {
            add(Term::SequenceSeconds, "", engine, "", 10e-6, 0);
            continue;
        }
        add(Term::ExpertLayerSeconds, "", engine, "", 20e-6, 0);
        add(Term::SequenceSeconds, "", engine, "", 10e-6, 0);
        add(Term::PathSeconds, "", engine, "", 20e-3, 0);
    }
    add(Term::PieceSeconds, "", "tensorrt-llm", "", 150e-6, 0);
    for family in ["ampere", "ada", "cdna3", "blackwell-pcie"] {
        add(Term::LayerSeconds, family, "", "", 40e-6, 0);
    }
    add(Term::ExpertLayerSeconds, "cdna3", "", "", 20e-6, 0);
    // For all the rest: somewhat below what was timed anywhere.
    for (term, value) in [
        (Term::GemmFlops, 0.45),
        (Term::GemmBytes, 0.60),
        (Term::ExpertFlops, 0.25),
        (Term::ExpertBytes, 0.50),
        (Term::AttentionFlops, 0.45),
        (Term::AttentionRamp, 350.0),
        (Term::KvBytes, 0.70),
        (Term::ReduceSeconds, 6e-6),
        (Term::ReduceBytes, 0.50),
        (Term::LayerSeconds, 50e-6),
        (Term::ExpertLayerSeconds, 30e-6),
        (Term::RecurrentLayerSeconds, 30e-6),
        (Term::StepSeconds, 300e-6),
        (Term::SequenceSeconds, 20e-6),
        (Term::TokenSeconds, 15e-9),
        (Term::EagerSeconds, 200e-6),
        (Term::PieceSeconds, 120e-6),
        (Term::PathSeconds, 30e-3),
        // 45.9 us a token: fitted by the authors of inference-sim to 15 runs of vLLM on H100.
        (Term::PathTokenSeconds, 45.9e-6),
        (Term::WaveShare, 0.3),
        // Our own step logs of vLLM 0.24 on an H200: what tokens wait for after a step that was launched kernel by kernel, 2.5 ms with 4 sequences
        // and 4.0 ms with 50. No published mean speaks of it.
        (Term::LaunchSeconds, 2.2e-3),
        (Term::LaunchSequenceSeconds, 33e-6),
        // The same logs: 1.8 ns a token that a sequence lacks to the longest, where one that is there takes 31.
        (Term::UnevenShare, 0.06),
    ] {
        add(term, "", "", "", value, 0);
    }
    list
}

/// How far from its prior a constant may move without surprise.
fn belief(term: Term) -> f64 {
    match term {
        Term::GemmFlops | Term::GemmBytes | Term::KvBytes | Term::AttentionFlops => 0.07,
        Term::ExpertFlops | Term::ExpertBytes => 0.5,
        Term::AttentionRamp => 0.3,
        Term::ReduceSeconds | Term::ReduceBytes => 0.3,
        _ => 0.8,
    }
}

fn family_of(system: &Value) -> Option<&'static str> {
    Some(match system.as_str()? {
        "a100_sxm" => "ampere",
        "h100_sxm" | "h200_sxm" => "hopper",
        "b200_sxm" | "gb200" | "b300_sxm" | "gb300" => "blackwell",
        "l40s" => "ada",
        "rtx_pro_6000_server" => "blackwell-pcie",
        _ => return None,
    })
}

fn dtype_of(name: &Value) -> Option<&'static str> {
    Some(match name.as_str()? {
        "bfloat16" => "bf16",
        "fp8" | "fp8_block" => "fp8",
        "nvfp4" => "nvfp4",
        "int4_wo" => "int4",
        "w4a16_mxfp4" | "w4a8_mxfp4_mxfp8" => "mxfp4",
        _ => return None,
    })
}
