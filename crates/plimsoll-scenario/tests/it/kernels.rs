//! Every model of the catalogue on every device whose kernels were measured.

use plimsoll_fleet::Mixer;
use plimsoll_memory::{Format, Placement};
use plimsoll_perf::kernels::{KernelRecipe, KernelSource, KernelTables, Routing, built_in};
use plimsoll_perf::{Layout, Work};
use plimsoll_scenario::builtin;

/// The device as kernel tables call it.
const DEVICES: [(&str, &str); 8] = [
    ("a100_sxm", "A100-SXM-80GB"),
    ("b200_sxm", "B200-SXM"),
    ("b300_sxm", "B300-SXM"),
    ("gb200", "GB200"),
    ("h100_sxm", "H100-SXM"),
    ("h200_sxm", "H200-SXM"),
    ("l40s", "L40S"),
    ("rtx_pro_6000_server", "RTX-PRO-6000-BSE"),
];

/// Where all kernels of a step are in tables, a decode of one sequence takes no less than reading what it reads, more context and more sequences take no less, and prompts that are eight times as
/// long take longer.
#[test]
fn steps_of_the_catalogue() {
    let (catalog, file) = (builtin(), built_in().expect("a file"));
    let (mut made, mut none, mut scaled) = (0, 0, 0);
    for (device, name) in DEVICES {
        let accelerator = catalog.accelerator(name).unwrap_or_else(|_| panic!("no {name}"));
        let bandwidth = accelerator.bandwidth.get();
        for engine in ["vllm", "sglang", "trtllm"] {
            let tables = KernelTables::of(&file, device, engine).expect("tables");
            for model in &catalog.models {
                for (format, tensor) in
                    [(Format::Bf16, 1), (Format::Fp8Channel, 4), (Format::Nvfp4, 2)]
                {
                    let layout = Layout {
                        placement: Placement { tensor, ..Placement::single() },
                        format,
                        kv_element_bytes: 2,
                        attention_replicas: 1,
                        lora_rank: None,
                        graph_tokens: Some(512),
                    };
                    let recipe = KernelRecipe::of(
                        &model.architecture,
                        &layout,
                        Routing::Skewed,
                        &tables,
                        bandwidth,
                    );
                    let (Some(recipe), Ok(work)) = (recipe, Work::of(&model.architecture, &layout))
                    else {
                        none += 1;
                        continue;
                    };
                    made += 1;
                    scaled += usize::from(recipe.source == KernelSource::ScaledShape);
                    let which =
                        || format!("{} {format:?} x{tensor} on {device}, {engine}", model.name);
                    let one = recipe.decode_seconds(1.0, 1000.0);
                    let least = (work.weight_bytes_least() + 1000.0 * work.kv_bytes()) / bandwidth;
                    let windowed = model.architecture.layers.iter().any(|layer| {
                        matches!(&layer.mixer, Mixer::Attention(own) if own.window.is_some())
                    });
                    let least =
                        if windowed { work.weight_bytes_least() / bandwidth } else { least };
                    assert!(one >= 0.999_999 * least, "{}: {one} {least}", which());
                    assert!(one < 20.0 * least + 0.02, "{}: {one} {least}", which());
                    assert!(recipe.decode_seconds(1.0, 20_000.0) >= one, "{}", which());
                    let decodes = |n: f64| recipe.decode_attention_seconds(n, 4000.0);
                    assert!(decodes(64.0) >= 0.8 * decodes(32.0), "{}", which());
                    let (short, long) =
                        (recipe.prompt_seconds(1000.0), recipe.prompt_seconds(8000.0));
                    assert!(long > short, "{}: {short} {long}", which());
                }
            }
        }
    }
    // Latent attention, recurrent states, and formats that a device or an engine lacks have no recipe.
    assert!(made > 2000 && none > 1000 && scaled > 100, "{made} {none} {scaled}");
}
