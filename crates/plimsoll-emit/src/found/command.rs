//! Which engine a command starts, and with which arguments.

use super::draft::{Draft, Engine, Gathered, Place, Said, Source, last_part};
use super::flags::{arguments, variable};
use super::words::{Variables, Word, commands};

/// Commands lie in each other at most this deep: `docker run … bash -c "sh -c …"`.
const DEPTH_MOST: usize = 4;

/// Pools from the command lines of a text; whether there were any.
pub(super) fn text(file: &str, text: &str, gathered: &mut Gathered) -> bool {
    let mut known = Variables::new();
    let before = gathered.pools.len();
    for words in commands(text, 1, &mut known) {
        let Some(first) = words.first() else { continue };
        let place = Place::new(file, first.line, "");
        let mut draft = Draft::new(Source::Command, "command", "", place);
        if command(&words, file, &mut draft, &mut known, 0) {
            for (name, value) in &known {
                let place = draft.place.clone();
                variable(name, Some(value), &place, &mut draft);
            }
            gathered.pools.push(draft);
        }
    }
    gathered.pools.len() > before
}

/// Reads the command that starts an engine, wherever it is in these words; whether there is one.
pub(super) fn command(
    words: &[Word],
    file: &str,
    draft: &mut Draft,
    known: &mut Variables,
    depth: usize,
) -> bool {
    if depth > DEPTH_MOST {
        return false;
    }
    for (i, word) in words.iter().enumerate() {
        let next = words.get(i + 1).map(|word| word.text.as_str()).unwrap_or_default();
        let rest = |skip: usize| words.get(i + skip..).unwrap_or_default();
        let started = match (last_part(&word.text), next) {
            ("vllm" | "sglang", "serve") => {
                let engine =
                    if word.text.ends_with("vllm") { Engine::Vllm } else { Engine::Sglang };
                Some((engine, rest(2)))
            }
            ("trtllm-serve", "serve") => Some((Engine::TensorRtLlm, rest(2))),
            ("trtllm-serve", _) => Some((Engine::TensorRtLlm, rest(1))),
            ("-m", module) => module_engine(module).map(|engine| (engine, rest(2))),
            ("sh" | "bash" | "ash" | "zsh", flag)
                if flag.starts_with('-') && flag.ends_with('c') =>
            {
                let Some(script) = words.get(i + 2) else { return false };
                return commands(&script.text, script.line, known)
                    .iter()
                    .any(|inner| command(inner, file, draft, known, depth + 1));
            }
            ("docker" | "podman" | "nerdctl", "run") => {
                return container(rest(2), file, draft, known, depth);
            }
            _ => None,
        };
        if let Some((engine, rest)) = started {
            let place = Place::new(file, word.line, &format!("{} {next}", word.text));
            draft.engine = Some(Said::new(engine, &place));
            arguments(rest, file, draft);
            return true;
        }
    }
    false
}

fn module_engine(module: &str) -> Option<Engine> {
    match module {
        "sglang.launch_server" | "dynamo.sglang" => Some(Engine::Sglang),
        "dynamo.vllm" => Some(Engine::Vllm),
        "dynamo.trtllm" | "tensorrt_llm.commands.serve" => Some(Engine::TensorRtLlm),
        _ if module.starts_with("vllm.entrypoints") => Some(Engine::Vllm),
        _ => None,
    }
}

/// What follows `docker run`.
fn container(
    words: &[Word],
    file: &str,
    draft: &mut Draft,
    known: &mut Variables,
    depth: usize,
) -> bool {
    let switches = ["-d", "-i", "-t", "-it", "-dit", "-ti", "-P"];
    let long =
        ["--rm", "--init", "--privileged", "--detach", "--interactive", "--tty", "--read-only"];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if !word.text.starts_with('-') {
            let place = Place::new(file, word.line, &word.text);
            let own = image(&word.text, &place, draft);
            let rest = words.get(at..).unwrap_or_default();
            return with_image(own, rest, &place, file, draft, known, depth + 1);
        }
        let (name, value) = match word.text.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None if switches.contains(&word.text.as_str())
                || long.contains(&word.text.as_str()) =>
            {
                continue;
            }
            None => {
                at += 1;
                (word.text.as_str(), words.get(at - 1).map(|w| w.text.clone()).unwrap_or_default())
            }
        };
        let place = Place::new(file, word.line, &format!("{name} {value}"));
        match name {
            "--gpus" => {
                let listed = value.trim_matches(['"', '\'']).strip_prefix("device=");
                let count =
                    listed.map(|list| list.split(',').count() as u64).or(value.parse().ok());
                draft.devices = count.map(|count| Said::new(count, &place));
            }
            "-e" | "--env" => {
                if let Some((name, value)) = value.split_once('=') {
                    known.insert(name.to_owned(), value.to_owned());
                }
            }
            "--name" => draft.name = value,
            _ => {}
        }
    }
    false
}

/// A container: its own words start the engine, or what the image starts by itself takes them as arguments.
pub(super) fn with_image(
    own: Option<Engine>,
    words: &[Word],
    place: &Place,
    file: &str,
    draft: &mut Draft,
    known: &mut Variables,
    depth: usize,
) -> bool {
    if command(words, file, draft, known, depth) {
        return true;
    }
    // A shell or a script that we do not see into starts something, but not what the image would.
    let other = words.first().is_some_and(|first| {
        let first = first.text.as_str();
        matches!(last_part(first), "sh" | "bash" | "python" | "python3" | "sleep" | "tail")
            || first.ends_with(".sh")
    });
    let Some(engine) = own.filter(|_| !other) else { return false };
    draft.engine = Some(Said::new(engine, place));
    arguments(words, file, draft);
    true
}

/// The engine of an image. Its version goes into the draft where the tag is the engine's own.
pub(super) fn image(text: &str, place: &Place, draft: &mut Draft) -> Option<Engine> {
    let text = text.split('@').next().unwrap_or_default().to_lowercase();
    let last = last_part(&text);
    let (last, tag) = last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
    let path = text.rsplit_once('/').map_or("", |(path, _)| path);
    // Releases of Dynamo, llm-d and KServe carry an engine, under numbers of their own.
    let foreign = ["dynamo", "llm-d", "kserve"].iter().any(|word| text.contains(word));
    let engine = if last.contains("tensorrt-llm")
        || last.contains("tensorrtllm")
        || path.ends_with("tensorrt-llm")
    {
        Engine::TensorRtLlm
    } else if last.contains("sglang") {
        Engine::Sglang
    } else if last.contains("vllm") || last.starts_with("llm-d") || last == "huggingfaceserver" {
        Engine::Vllm
    } else {
        return None;
    };
    if let Some(tag) = tag.filter(|tag| {
        !foreign && tag.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit())
    }) {
        draft.version = Some(Said::new(tag.to_owned(), place));
    }
    Some(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_tell_engine_and_version() {
        for (text, engine, version) in [
            ("vllm/vllm-openai:v0.24.1", Some(Engine::Vllm), Some("v0.24.1")),
            ("reg:5000/vllm/vllm-openai:v0.9.0@sha256:ab", Some(Engine::Vllm), Some("v0.9.0")),
            ("vllm/vllm-openai:latest", Some(Engine::Vllm), None),
            ("reg:5000/vllm-openai", Some(Engine::Vllm), None),
            ("lmsysorg/sglang:v0.5.3-cu126", Some(Engine::Sglang), Some("v0.5.3-cu126")),
            ("nvcr.io/nvidia/tensorrt-llm/release:1.0.0", Some(Engine::TensorRtLlm), Some("1.0.0")),
            ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.6.0", Some(Engine::Vllm), None),
            ("ghcr.io/llm-d/llm-d-cuda:v0.3.0", Some(Engine::Vllm), None),
            ("nginx:1.27", None, None),
        ] {
            let mut draft = Draft::default();
            assert_eq!(image(text, &Place::default(), &mut draft), engine, "{text}");
            assert_eq!(draft.version.map(|said| said.value).as_deref(), version, "{text}");
        }
    }

    #[test]
    fn commands_are_found_in_each_other() {
        for (line, model) in [
            ("vllm serve Qwen/Qwen3-32B --port 8000", "Qwen/Qwen3-32B"),
            ("/usr/bin/python3 -m vllm.entrypoints.openai.api_server --model a/b", "a/b"),
            ("bash -lc 'cd /x && exec vllm serve a/b -tp 2'", "a/b"),
            (
                "docker run -d --gpus all -v ~/.cache/vllm:/srv/vllm vllm/vllm-openai:v0.24.0 --model=a/b",
                "a/b",
            ),
            ("mpirun -n 8 trtllm-llmapi-launch trtllm-serve a/b --tp_size 8", "a/b"),
            ("CUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server --model-path a/b", "a/b"),
        ] {
            let mut gathered = Gathered::default();
            assert!(text("run.sh", line, &mut gathered), "{line}");
            let got = gathered.pools[0].model.as_ref().expect("a model");
            assert_eq!(got.value, model, "{line}");
        }
        for line in
            ["docker ps", "vllm --help", "echo hello", "docker run vllm/vllm-openai sleep 9"]
        {
            assert!(!text("run.sh", line, &mut Gathered::default()), "{line}");
        }
    }
}
