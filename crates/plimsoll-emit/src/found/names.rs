//! What files call a model, a device or an engine, in the words of the catalogue.

use plimsoll_fleet::{Catalog, Version};

use super::draft::last_part;

/// A model of the catalogue.
pub(super) struct Known {
    /// What to write: the name as it was given where the catalogue knows it so.
    pub write: String,
    /// Whether the catalogue knows exactly this name.
    pub exact: bool,
    /// How the weights of this publication are stored, where the name says so.
    pub weights: Option<&'static str>,
    /// Whether the catalogue's own publication is quantized.
    pub quantized: bool,
}

/// The model that a name or path stands for, or the nearest names.
pub(super) fn model(catalog: &Catalog, raw: &str) -> Result<Known, Vec<String>> {
    let weights = weights_in(raw);
    let known = |write: &str, exact: bool| {
        let model = catalog.model(write).ok()?;
        let write = if exact { write.to_owned() } else { model.name.clone() };
        Some(Known { write, exact, weights, quantized: model.architecture.quantization.is_some() })
    };
    let bare = repository(raw);
    if let Some(known) = known(&bare, true) {
        return Ok(known);
    }
    let last = last_part(&bare);
    let same = |name: &str| last_part(name).eq_ignore_ascii_case(last);
    let by_last = catalog
        .models
        .iter()
        .find(|model| same(&model.name) || model.aliases.iter().any(|alias| same(alias)));
    if let Some(model) = by_last
        && let Some(known) = known(&model.name, false)
    {
        return Ok(known);
    }
    // Publications by others mostly add how they are stored, or what they were trained for, to a known name.
    let mut shorter = last.to_lowercase();
    while let Some((front, _)) = shorter.rsplit_once(['-', '_']) {
        let front = front.to_owned();
        if !front.contains(|c: char| c.is_ascii_digit()) {
            break;
        }
        let model = catalog.models.iter().find(|model| {
            let names = std::iter::once(&model.name).chain(&model.aliases);
            names.into_iter().any(|name| last_part(name).eq_ignore_ascii_case(&front))
        });
        if let Some(known) = model.and_then(|model| known(&model.name, false)) {
            return Ok(known);
        }
        shorter = front;
    }
    let near =
        |name: &str| catalog.model(name).err().map(|error| error.nearest).unwrap_or_default();
    let nearest = near(last);
    Err(if nearest.is_empty() { near(&bare) } else { nearest })
}

/// `hf://Qwen/Qwen3-32B:main` and a cache directory are `Qwen/Qwen3-32B`.
fn repository(raw: &str) -> String {
    if let Some(cached) = raw.split('/').find_map(|part| part.strip_prefix("models--")) {
        return cached.replace("--", "/");
    }
    let bare = match raw.split_once("://") {
        Some(("hf", id)) => id.split(['@', ':']).next().unwrap_or(id),
        Some((_, path)) => path,
        None => raw,
    };
    bare.trim_matches('/').to_owned()
}

fn weights_in(raw: &str) -> Option<&'static str> {
    let lower = raw.to_lowercase();
    let rows = [
        ("nvfp4", "nvfp4"),
        ("mxfp4", "mxfp4"),
        ("fp8", "fp8"),
        ("w8a8", "int8"),
        ("int8", "int8"),
        ("w4a16", "int4"),
        ("int4", "int4"),
        ("awq", "int4"),
        ("gptq", "int4"),
        ("4bit", "int4"),
    ];
    rows.iter().find(|(mark, _)| lower.contains(mark)).map(|(_, weights)| *weights)
}

/// The device that a label of a node stands for.
pub(super) fn accelerator<'a>(catalog: &'a Catalog, label: &str) -> Option<&'a str> {
    // What clouds call their nodes, where that differs from what the driver says.
    let rows = [
        ("nvidia-tesla-a100", "A100-SXM-40GB"),
        ("nvidia-h100-mega-80gb", "H100-SXM"),
        ("nvidia-rtx-pro-6000", "RTX-PRO-6000-BSE"),
        ("h100_nvlink_80gb", "H100-SXM"),
        ("a100_nvlink_80gb", "A100-SXM-80GB"),
        ("a100_nvlink", "A100-SXM-40GB"),
    ];
    let lower = label.to_lowercase();
    if lower.contains("mig-") {
        return None;
    }
    let lower = lower.trim_end_matches("-shared");
    let named = rows.iter().find(|(name, _)| *name == lower).map_or(lower, |(_, name)| name);
    let shape = |text: &str| -> String {
        let text: String =
            text.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        let text =
            text.strip_prefix("nvidia").or(text.strip_prefix("amdinstinct")).unwrap_or(&text);
        text.strip_prefix("tesla").or(text.strip_prefix("geforce")).unwrap_or(text).to_owned()
    };
    let wanted = shape(named);
    catalog
        .accelerators
        .iter()
        .find(|own| {
            shape(&own.name) == wanted || own.aliases.iter().any(|alias| shape(alias) == wanted)
        })
        .map(|own| own.name.as_str())
}

/// `vllm` and `v0.24.1` as `vllm@0.24`: as short as the catalogue's rows allow. None where no row is that old.
pub(super) fn engine(catalog: &Catalog, name: &str, version: &str) -> Option<String> {
    let version: Version = version.parse().ok()?;
    let full = format!("{name}@{version}");
    let row = catalog.engine(&full).ok()?;
    let text = version.to_string();
    let mut numbers = text.split('.');
    let short = format!("{name}@{}.{}", numbers.next()?, numbers.next()?);
    let same = catalog.engine(&short).is_ok_and(|other| other.since == row.since);
    Some(if same { short } else { full })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_scenario::builtin;

    #[test]
    fn models_are_known_by_id_path_and_publication() {
        for (raw, expect) in [
            ("Qwen/Qwen3-32B", Some(("Qwen/Qwen3-32B", None))),
            ("Qwen/Qwen3-32B-FP8", Some(("Qwen/Qwen3-32B-FP8", Some("fp8")))),
            (
                "hf://meta-llama/Llama-3.1-70B-Instruct",
                Some(("meta-llama/Llama-3.1-70B-Instruct", None)),
            ),
            ("/models/Qwen3-32B/", Some(("qwen3-32b", None))),
            ("s3://bucket/weights/Llama-3.1-8B-Instruct", Some(("llama-3.1-8b", None))),
            ("Qwen/Qwen3-32B-AWQ", Some(("qwen3-32b", Some("int4")))),
            ("/hub/models--Qwen--Qwen3-8B/snapshots/ab12", Some(("Qwen/Qwen3-8B", None))),
            ("/mnt/models/our-own", None),
            ("", None),
        ] {
            let got = model(builtin(), raw).ok().map(|known| (known.write, known.weights));
            assert_eq!(got.as_ref().map(|(name, w)| (name.as_str(), *w)), expect, "{raw}");
        }
        let nearest = model(builtin(), "acme/qwen3-33b").err().unwrap_or_default();
        assert!(nearest.contains(&"qwen3-32b".to_owned()), "{nearest:?}");
    }

    #[test]
    fn devices_are_known_by_the_labels_of_nodes() {
        for (label, expect) in [
            ("nvidia-h100-80gb", Some("H100-SXM")),
            ("NVIDIA-H100-80GB-HBM3", Some("H100-SXM")),
            ("nvidia-h200-141gb", Some("H200-SXM")),
            ("NVIDIA-A100-SXM4-80GB", Some("A100-SXM-80GB")),
            ("nvidia-tesla-a100", Some("A100-SXM-40GB")),
            ("nvidia-tesla-t4", Some("T4")),
            ("nvidia-l4", Some("L4")),
            ("NVIDIA-L40S-SHARED", Some("L40S")),
            ("NVIDIA H200", Some("H200-SXM")),
            ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", None),
            ("tpu-nobody-knows", None),
        ] {
            assert_eq!(accelerator(builtin(), label), expect, "{label}");
        }
    }

    #[test]
    fn versions_are_as_short_as_the_catalogue_allows() {
        for (name, version, expect) in [
            ("vllm", "v0.24.1", Some("vllm@0.24")),
            ("vllm", "0.8.5", Some("vllm@0.8.5")),
            ("sglang", "v0.5.20-cu130", Some("sglang@0.5.20")),
            ("tensorrt-llm", "1.0.0", Some("tensorrt-llm@1.0")),
            ("vllm", "0.1.0", None),
            ("vllm", "latest", None),
        ] {
            assert_eq!(engine(builtin(), name, version).as_deref(), expect, "{name} {version}");
        }
    }
}
