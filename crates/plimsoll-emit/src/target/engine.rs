//! Flags of engines: what a replica lets in, as its own command line says it.

use std::fmt::Write as _;

use plimsoll_fleet::Version;
use plimsoll_fleet::metrics::Reporter;
use plimsoll_study::{FileFlags, FileLimit, FileLimits};

use super::pool::{Emission, Pool, whole};
use crate::manifest::{Item, comment, map_of, number};

/// A flag with its value and why.
struct Flag {
    name: String,
    /// None where the flag itself says it all.
    value: Option<String>,
    why: String,
}

pub(super) fn emit(own: &mut Emission<'_>, reporter: Reporter) {
    let mut any = false;
    for pool in own.pools.clone() {
        if pool.engine.as_ref().is_none_or(|engine| engine.reporter != reporter) {
            continue;
        }
        any = true;
        let flags = flags(own, &pool, reporter);
        say_grace(own, &pool);
        if reporter == Reporter::TensorRtLlm {
            let parts = flags
                .into_iter()
                .filter_map(|flag| Some((flag.name, number(flag.value?).because(flag.why))));
            let document: Item = map_of(parts.collect());
            let how = ["For `trtllm-serve --extra_llm_api_options FILE`.".to_owned()];
            own.file_with(format!("tensorrt-llm-{}.yaml", pool.name), &how, &[document]);
        } else {
            let text = args(own, &pool, reporter, &flags);
            own.raw_file(format!("{reporter}-{}.args", pool.name), text);
        }
    }
    if !any {
        own.note(format!("no pool of this plan runs on {reporter}"));
    }
}

fn args(own: &Emission<'_>, pool: &Pool<'_>, reporter: Reporter, flags: &[Flag]) -> String {
    let mut text = String::new();
    for line in own.header() {
        comment(&mut text, &line, 0);
    }
    let command = match reporter {
        Reporter::Sglang => "python -m sglang.launch_server",
        _ => "vllm serve MODEL",
    };
    comment(&mut text, &format!("Pool {}, {}.", pool.pool.name, pool.pool.engine), 0);
    let file = format!("{reporter}-{}.args", pool.name);
    comment(&mut text, &format!("Use: grep -v '^#' {file} | xargs {command}"), 0);
    for flag in flags {
        comment(&mut text, &flag.why, 0);
        let _ = match &flag.value {
            Some(value) => writeln!(text, "{}={}", flag.name, shell(value)),
            None => writeln!(text, "{}", flag.name),
        };
    }
    text
}

/// Quoted for a shell, where that is needed.
fn shell(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

fn flags(own: &mut Emission<'_>, pool: &Pool<'_>, reporter: Reporter) -> Vec<Flag> {
    let mut out = Vec::new();
    let mut add = |name: &str, value: Option<String>, why: &str| {
        out.push(Flag { name: name.to_owned(), value, why: why.to_owned() });
    };
    if reporter != Reporter::TensorRtLlm {
        add(
            "--served-model-name",
            Some(pool.served.clone()),
            "the name that rules and autoscalers ask for",
        );
    }
    let split = &pool.pool.parallelism;
    let devices = "devices of a replica, as planned";
    let parts: [(u64, &str, &str, &str); 3] = [
        (split.tensor, "--tensor-parallel-size", "--tp-size", "tensor_parallel_size"),
        (split.pipeline, "--pipeline-parallel-size", "--pp-size", "pipeline_parallel_size"),
        (split.data, "--data-parallel-size", "--dp-size", ""),
    ];
    for (value, vllm, sglang, tensorrt) in parts {
        let name = match reporter {
            Reporter::Sglang => sglang,
            Reporter::TensorRtLlm => tensorrt,
            _ => vllm,
        };
        if !name.is_empty() && (value > 1 || vllm == "--tensor-parallel-size") {
            add(name, Some(value.to_string()), devices);
        }
    }
    if split.expert > 1 {
        let why = "devices that experts are split over, as planned";
        match reporter {
            Reporter::Sglang => add("--ep-size", Some(split.expert.to_string()), why),
            Reporter::TensorRtLlm => {
                add("moe_expert_parallel_size", Some(split.expert.to_string()), why);
            }
            _ => {
                add("--enable-expert-parallel", None, "experts are split over devices, as planned")
            }
        }
    }
    if reporter == Reporter::Sglang {
        add("--enable-metrics", None, "without it there is nothing to scale or alert on");
    }
    let Some(limits) = pool.limits else {
        own.note(format!("`{}`: the plan has no limits for it", pool.pool.name));
        return out;
    };
    let version = pool.engine.as_ref().and_then(|engine| engine.version);
    for (what, limit) in named(limits) {
        let Some(flags) = &limit.flags else { continue };
        match flag_of(flags, reporter, version) {
            Ok(None) => {}
            Ok(Some(name)) => match whole(limit) {
                Some((value, why)) => out.push(Flag {
                    name: name.to_owned(),
                    value: Some(value.to_string()),
                    why: format!("{}: {why}", limit.unit),
                }),
                None => own.note(format!(
                    "`{}`: {name} is left out, because the plan does not know {what}: {}",
                    pool.pool.name, limit.why
                )),
            },
            Err(why) => own.note(format!("`{}`: {why}", pool.pool.name)),
        }
    }
    out
}

fn named(limits: &FileLimits) -> [(&'static str, &FileLimit); 6] {
    [
        ("sequences at once", &limits.max_num_seqs),
        ("tokens of a step", &limits.max_num_batched_tokens),
        ("the longest context", &limits.max_model_len),
        ("tokens that may wait", &limits.queue_tokens),
        ("calls that may wait", &limits.queue_requests),
        ("how long a replica needs to finish", &limits.drain),
    ]
}

/// What an engine of a version calls a limit; an error where it does not have it yet, because an engine does not start with a flag that it does not know.
fn flag_of(
    flags: &FileFlags,
    reporter: Reporter,
    version: Option<Version>,
) -> Result<Option<&str>, String> {
    match reporter {
        Reporter::Sglang => Ok(flags.sglang.as_deref()),
        Reporter::TensorRtLlm => Ok(flags.tensorrt_llm.as_deref()),
        _ => {
            let Some(name) = flags.vllm.as_deref() else { return Ok(None) };
            let since = flags.vllm_since.as_deref();
            match (since.and_then(|text| text.parse::<Version>().ok()), version) {
                (Some(since), Some(version)) if version < since => Err(format!(
                    "{name} is left out: vLLM has it since {since}, and {version} is planned"
                )),
                (Some(since), None) => Err(format!(
                    "{name} is left out: vLLM has it since {since}, and the plan names no version"
                )),
                _ => Ok(Some(name)),
            }
        }
    }
}

fn say_grace(own: &mut Emission<'_>, pool: &Pool<'_>) {
    if let Some((drain, why)) = pool.limits.and_then(|limits| whole(&limits.drain)) {
        own.note(format!(
            "`{}`: a pod's terminationGracePeriodSeconds must be more than its preStop and {drain} s together: {why}",
            pool.pool.name
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_get_back_what_was_meant() {
        for (value, expected) in
            [("chat-70b", "chat-70b"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''")]
        {
            assert_eq!(shell(value), expected);
        }
    }

    #[test]
    fn a_flag_is_written_only_where_the_version_has_it() {
        let flags = FileFlags {
            vllm: Some("--max-num-queued-tokens".to_owned()),
            vllm_since: Some("0.29".to_owned()),
            sglang: None,
            tensorrt_llm: None,
        };
        let at = |version: Option<&str>| {
            flag_of(&flags, Reporter::Vllm, version.and_then(|text| text.parse().ok()))
        };
        assert_eq!(at(Some("0.29")), Ok(Some("--max-num-queued-tokens")));
        assert!(at(Some("0.24")).is_err_and(|why| why.contains("since 0.29")));
        assert!(at(None).is_err());
        assert_eq!(flag_of(&flags, Reporter::Sglang, None), Ok(None));
    }
}
