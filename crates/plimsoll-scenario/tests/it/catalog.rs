//! The built-in catalogue says what its sources say.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use plimsoll_fleet::{Engine, MemoryRule, Mixer, Part, from_hf};
use plimsoll_perf::context_bytes;
use plimsoll_scenario::{Source, builtin, parse_catalog, profiles};

/// Within 0.5% of the published count, each of them, from its shapes alone.
#[test]
fn parameters_are_recounted() {
    let catalog = builtin();
    let mut misses = Vec::new();
    let mut counted = 0;
    for model in &catalog.models {
        let Some(published) = model.parameters_published else { continue };
        counted += 1;
        // Published counts of multimodal models and of models with draft layers say what they include.
        let note = model.parameters_note.as_deref().unwrap_or_default();
        let parts = note
            .strip_prefix("counts ")
            .and_then(|n| n.split([' ', ',', ';', '.']).next())
            .unwrap_or("text");
        let count: u64 = parts
            .split('+')
            .map(|part| match part {
                "text" => model.architecture.parameters(Part::Text),
                "mtp" => model.architecture.parameters(Part::Draft),
                "vision" => model.architecture.parameters(Part::Vision),
                other => panic!("{}: `{other}` is no part of a model", model.name),
            })
            .sum();
        let off = count as f64 / published as f64 - 1.0;
        if off.abs() > 0.005 {
            misses.push(format!(
                "{}: {count} from shapes, {published} published ({:+.3}%)",
                model.name,
                off * 100.0
            ));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    assert!(
        catalog.models.len() >= 35 && counted >= 35,
        "{} models, {counted} recounted",
        catalog.models.len()
    );
}

/// Every number was read in a source, or the entry says which one was not.
#[test]
fn unverified_models_say_so() {
    for model in &builtin().models {
        assert!(
            model.verified || model.fact.note.is_some(),
            "{} is unverified without a note",
            model.name
        );
        assert!(
            model.architecture.notes.is_empty(),
            "{}: {:?}",
            model.name,
            model.architecture.notes
        );
    }
}

#[test]
fn names_lead_to_one_entry() {
    let catalog = builtin();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut claim = |name: &str, owner: &str| {
        if let Some(other) = seen.insert(name.to_lowercase(), owner.to_owned()) {
            assert_eq!(other, owner, "`{name}` names two entries");
        }
    };
    for model in &catalog.models {
        claim(&model.name, &model.name);
        model.aliases.iter().for_each(|alias| claim(alias, &model.name));
        assert_eq!(model.name, model.name.to_lowercase());
    }
    for accelerator in &catalog.accelerators {
        claim(&accelerator.name, &accelerator.name);
        accelerator.aliases.iter().for_each(|alias| claim(alias, &accelerator.name));
    }
    for (alias, name) in [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("LLAMA-3-70B", "llama-3.1-70b"),
        ("deepseek-v3-671b", "deepseek-v3"),
        ("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"),
    ] {
        assert_eq!(catalog.model(alias).unwrap().name, name);
    }
    for (alias, name) in [
        ("h100", "H100-SXM"),
        ("A100-80G", "A100-SXM-80GB"),
        ("mi300x", "MI300X"),
        ("l40s", "L40S"),
    ] {
        assert_eq!(catalog.accelerator(alias).unwrap().name, name);
    }
    let unknown = catalog.model("llama-3.1-9b").unwrap_err();
    assert_eq!(unknown.nearest[0], "llama-3.1-8b");
}

#[test]
fn references_inside_the_catalogue_hold() {
    let catalog = builtin();
    for instance in &catalog.instances {
        let accelerator = catalog
            .accelerator(&instance.accelerator)
            .unwrap_or_else(|e| panic!("{}: {e}", instance.name));
        assert_eq!(accelerator.name, instance.accelerator, "{} names an alias", instance.name);
    }
    for price in &catalog.node_prices {
        catalog
            .instance(&price.instance)
            .unwrap_or_else(|e| panic!("{} in {}: {e}", price.instance, price.region));
        if let Some(spot) = price.spot {
            assert!(
                spot <= price.on_demand,
                "{} in {}: spot is dearer",
                price.instance,
                price.region
            );
        }
    }
    for price in &catalog.token_prices {
        assert!(price.output >= price.input, "{}: output is cheaper than input", price.model);
        assert!(
            price.cached_input.is_none_or(|c| c <= price.input),
            "{}: cached is dearer",
            price.model
        );
    }
    assert!(
        catalog.accelerators.len() >= 30
            && catalog.instances.len() >= 20
            && catalog.node_prices.len() >= 20
    );
}

/// Figures known from elsewhere than the catalogue's own file.
#[test]
fn well_known_figures() {
    let catalog = builtin();
    let h100 = catalog.accelerator("H100-SXM").unwrap();
    assert!((h100.bandwidth.get() - 3.35e12).abs() < 1e9);
    assert_eq!(h100.interconnect.devices, Some(8));
    let deepseek = catalog.model("deepseek-r1").unwrap();
    assert!(deepseek.architecture.layers.iter().all(|l| matches!(l.mixer, Mixer::Latent(_))));
    // 37 billion active parameters, as published.
    let active = deepseek.architecture.parameters_active() as f64 / 1e9;
    assert!((36.0..39.0).contains(&active), "{active}");
    let gemma = &catalog.model("gemma-3-27b").unwrap().architecture;
    let sliding = gemma
        .layers
        .iter()
        .filter(|l| matches!(&l.mixer, Mixer::Attention(a) if a.window.is_some()))
        .count();
    // 52 of 62 layers see a window of 1,024 tokens (5 local to 1 global).
    assert_eq!((sliding, gemma.layers.len()), (52, 62));
    let oss = &catalog.model("gpt-oss-120b").unwrap().architecture;
    let sliding = oss
        .layers
        .iter()
        .filter(|l| matches!(&l.mixer, Mixer::Attention(a) if a.window.is_some()))
        .count();
    assert_eq!((sliding, oss.layers.len()), (18, 36));
}

#[test]
fn engines_change_with_their_version() {
    let catalog = builtin();
    let fraction = |name: &str| catalog.engine(name).unwrap().memory_fraction.get();
    assert_eq!(fraction("vllm@0.19"), 0.90);
    assert_eq!(fraction("vllm@0.24"), 0.92);
    assert_eq!(catalog.engine("vllm@0.19").unwrap().graphs_in_budget, Some(false));
    assert_eq!(catalog.engine("vllm@0.24").unwrap().graphs_in_budget, Some(true));
    assert_eq!(catalog.engine("vllm").unwrap().since.to_string(), "0.29");
    assert_eq!(catalog.engine("sglang").unwrap().memory_rule, MemoryRule::StaticFraction);
    assert_eq!(catalog.engine("tensorrt-llm").unwrap().memory_rule, MemoryRule::OfFree);
    let vllm = catalog.engine("vllm@0.24").unwrap();
    for (device, seqs, tokens) in
        [("H100-SXM", 1024, 8192), ("A100-SXM-80GB", 256, 2048), ("L4", 256, 2048)]
    {
        let device = catalog.accelerator(device).unwrap();
        assert_eq!(
            Engine::default_for(&vllm.max_num_seqs, device, 1),
            Some(seqs),
            "{}",
            device.name
        );
        assert_eq!(
            Engine::default_for(&vllm.max_num_batched_tokens, device, 1),
            Some(tokens),
            "{}",
            device.name
        );
    }
    assert_eq!(catalog.engine("vllm@0.1").unwrap_err().nearest, ["vllm@0.4"]);
    assert_eq!(catalog.engine("vlm").unwrap_err().nearest, ["vllm"]);
}

#[test]
fn the_promised_profiles_are_there() {
    let names: Vec<&str> = profiles().iter().map(|p| p.name).collect();
    for wanted in [
        "chat",
        "inline-completion",
        "coding-agent",
        "rag",
        "document-pipeline",
        "summariser",
        "voice",
        "batch",
    ] {
        assert!(names.contains(&wanted), "{wanted}");
    }
}

#[test]
fn a_users_catalogue_extends_and_overrides() {
    let text = r#"
        [[accelerator]]
        name = "H100-SXM"
        vendor = "nvidia"
        memory = "64GiB"
        bandwidth = "3TB/s"
        source = "our own lab"
        as_of = 2026-11-01
        [[model]]
        name = "house-8b"
        source = "our own training"
        as_of = 2026-11-01
        config = { model_type = "llama", hidden_size = 4096, num_hidden_layers = 32, num_attention_heads = 32, intermediate_size = 14336, vocab_size = 128256 }
    "#;
    let mut catalog = plimsoll_fleet::Catalog::clone(builtin());
    let models = catalog.models.len();
    catalog.extend(parse_catalog(&Source::new("mine.toml", text)).unwrap());
    assert_eq!(catalog.accelerator("H100-SXM").unwrap().memory.to_string(), "64 GiB");
    assert_eq!(catalog.models.len(), models + 1);
    assert_eq!(catalog.model("house-8b").unwrap().architecture.layers.len(), 32);

    let broken =
        "[[model]]\nname = 'x'\nsource = 's'\nas_of = 2026-11-01\nconfig = { hidden_size = 8 }\n";
    let mistakes = parse_catalog(&Source::new("mine.toml", broken)).unwrap_err();
    assert!(mistakes[0].message.contains("`vocab_size` is missing"), "{}", mistakes[0].message);
    assert_eq!(mistakes[0].position(), Some((5, 10)));
}

/// Every architecture that the published measurements use is known by its key, or is named here with the reason.
#[test]
fn architectures_of_the_measurements_are_known() {
    const LEFT_OUT: [&str; 0] = [];
    let Some(shared) = shared() else { return };
    let read = |file: &str| -> serde_json::Value {
        let text =
            std::fs::read_to_string(shared.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"))
    };
    let mut missing = Vec::new();
    let (cases, kv) = (read("data/perf/cases.json"), read("data/kv_cases.json"));
    let keys = |value: &serde_json::Value, key: &str| -> Vec<String> {
        let cases = value["cases"].as_array().expect("a list of cases");
        let mut keys: Vec<String> =
            cases.iter().filter_map(|c| c[key].as_str().map(str::to_owned)).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    for arch in keys(&cases, "arch").into_iter().chain(keys(&kv, "arch_key")) {
        if builtin().model(&arch).is_err() && !LEFT_OUT.contains(&arch.as_str()) {
            missing.push(arch);
        }
    }
    for gpu in keys(&cases, "gpu") {
        if builtin().accelerator(&gpu).is_err() {
            missing.push(gpu);
        }
    }
    assert!(missing.is_empty(), "not in the catalogue: {}", missing.join(", "));
}

/// `../shared`, where measurements lie that are not ours to ship.
fn shared() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("PLIMSOLL_SHARED").map_or(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    // Past the test harness, which would hide it: a skipped test must be seen.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: no measurements at {} (set PLIMSOLL_SHARED)",
        path.display()
    );
    None
}

/// A config.json that nobody has catalogued is a model too.
#[test]
fn any_config_becomes_a_model() {
    let config = r#"{
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 5120, "head_dim": 128,
        "num_hidden_layers": 56, "num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 16384,
        "vocab_size": 32768, "max_position_embeddings": 32768, "sliding_window": null, "tie_word_embeddings": false
    }"#;
    let model = from_hf(config).unwrap();
    // By hand: embedding and head 2*32768*5120; per layer q,o 2*48*128*5120, k,v 2*8*128*5120, MLP 3*16384*5120,
    // norms 2*5120; final norm 5120.
    let layer: u64 = 2 * 48 * 128 * 5120 + 2 * 8 * 128 * 5120 + 3 * 16_384 * 5120 + 2 * 5120;
    assert_eq!(model.parameters(Part::Text), 2 * 32_768 * 5120 + 56 * layer + 5120);
}

/// What is handed over of a context, each number once. Llama: 80 layers x 2 x 8 heads x 128 numbers x 2 bytes. A latent has 512 + 64 numbers in each of 61 layers.
/// gpt-oss: 36 layers x 2 x 8 heads x 64 numbers, every other of which looks at 128 tokens only.
#[test]
fn a_context_by_hand() {
    let of = |name: &str, element: u64| {
        let model = builtin().model(name).expect("it is in the catalogue");
        let bytes = context_bytes(&model.architecture, element);
        (bytes.token, bytes.windows, bytes.state)
    };
    assert_eq!(of("llama-3.3-70b", 2), (327_680.0, Vec::new(), 0.0));
    assert_eq!(of("llama-3.3-70b", 1), (163_840.0, Vec::new(), 0.0));
    assert_eq!(of("deepseek-v3", 2), (70_272.0, Vec::new(), 0.0));
    assert_eq!(of("gpt-oss-120b", 2), (36_864.0, vec![(128, 36_864.0)], 0.0));
}
