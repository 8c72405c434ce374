//! `emit`: a plan as files that clusters and gateways read.

use std::io::Write;

use plimsoll_emit::target::{EmitInput, EmitSettings, EmittedFile, Target, Workload, emit};
use plimsoll_scenario::Diagnostic;
use serde_json::{Value, json};

use super::live::{gateway, plan_file};
use super::{either, tell};
use crate::args::{EmitArgs, Global, WorkloadArg};
use crate::failure::Failure;
use crate::files;

/// Writes the files, or says them.
pub(super) fn answer(
    args: &EmitArgs,
    global: &Global,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let plan = plan_file(&args.plan)?;
    let targets = targets(&args.target)?;
    let of_pools = args.matches.iter().filter_map(|(label, value)| {
        label.split_once(':').map(|(pool, _)| (pool.to_owned(), value.clone()))
    });
    let of_pools: Vec<(String, String)> = of_pools.collect();
    for (option, pairs) in
        [("--name", &args.names), ("--served", &args.served), ("--match", &of_pools)]
    {
        if let Some((pool, _)) =
            pairs.iter().find(|(pool, _)| !plan.pools.iter().any(|own| own.name == *pool))
        {
            let pools: Vec<&str> = plan.pools.iter().map(|own| own.name.as_str()).collect();
            let message = format!("`{option} {pool}=…` names no pool of the plan");
            return Err(usage(&message, &format!("its pools are {}", pools.join(", "))));
        }
    }
    let settings = EmitSettings {
        plan_file: args.plan.display().to_string(),
        namespace: args.namespace.clone(),
        prometheus: args.prometheus.clone(),
        gateway: gateway(args.gateway),
        names: args.names.iter().cloned().collect(),
        served: args.served.iter().cloned().collect(),
        labels: args.matches.clone(),
        workload: match args.workload {
            WorkloadArg::Deployment => Workload::Deployment,
            WorkloadArg::StatefulSet => Workload::StatefulSet,
            WorkloadArg::LeaderWorkerSet => Workload::LeaderWorkerSet,
            WorkloadArg::Dynamo => Workload::DynamoGraphDeploymentScalingAdapter,
        },
        rule_labels: args.rule_labels.iter().cloned().collect(),
        timezone: args.timezone.clone(),
        watch: args.watch.clone(),
        even_if_infeasible: args.even_if_infeasible,
    };
    let input = EmitInput { plan: &plan, settings: &settings };
    let (mut all, mut notes): (Vec<EmittedFile>, Vec<String>) = (Vec::new(), Vec::new());
    for target in targets {
        let made = emit(target, &input).map_err(|error| {
            Failure::one(Diagnostic::about(
                "not-emitted",
                args.plan.display().to_string(),
                error.to_string(),
            ))
        })?;
        all.extend(made.files);
        notes.extend(made.notes.into_iter().map(|note| format!("{}: {note}", target.name())));
    }
    for note in &notes {
        if !global.json {
            tell(global, err, &format!("note: {note}"));
        }
    }
    if let Some(directory) = &args.out {
        files::directory(directory)?;
        for file in &all {
            files::write_whole(&directory.join(&file.name), &file.text)?;
        }
    }
    let names = || -> Vec<Value> {
        let of = |file: &EmittedFile| match &args.out {
            Some(directory) => json!({ "name": directory.join(&file.name).display().to_string() }),
            None => json!({ "name": file.name, "text": file.text }),
        };
        all.iter().map(of).collect()
    };
    Ok(either(
        global,
        || json!({ "schema": "plimsoll/emit/v1", "plan": plan.id, "files": names(), "notes": notes }),
        || match &args.out {
            Some(directory) => all
                .iter()
                .map(|file| format!("{}\n", directory.join(&file.name).display()))
                .collect(),
            None => joined(&all),
        },
    ))
}

/// One after the other, so that YAML of several can be piped to `kubectl`; what is no YAML says its name.
fn joined(all: &[EmittedFile]) -> String {
    if let [only] = all {
        return only.text.clone();
    }
    let mut out = String::new();
    for file in all {
        if file.name.ends_with(".yaml") {
            if !file.text.starts_with("---") {
                out.push_str("---\n");
            }
        } else {
            out.push_str(&format!("# {}\n", file.name));
        }
        out.push_str(&file.text);
    }
    out
}

fn targets(names: &[String]) -> Result<Vec<Target>, Failure> {
    let mut all = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(Target::ALL.to_vec());
        }
        let Some(target) = Target::named(name) else {
            let known: Vec<&str> = Target::ALL.iter().map(|own| own.name()).collect();
            let message = format!("`{name}` is no target");
            return Err(usage(&message, &format!("there are {}, and `all`", known.join(", "))));
        };
        if !all.contains(&target) {
            all.push(target);
        }
    }
    Ok(all)
}

fn usage(message: &str, help: &str) -> Failure {
    Failure::one(Diagnostic::about("usage", "command line", message).help(help))
}
