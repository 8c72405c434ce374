//! Vision towers: only their tensors matter, since they hold memory beside the language model.

use super::fields::Fields;
use super::{Builder, HfError};
use crate::architecture::{Part, Role};

/// How a tower's blocks are built.
struct Blocks {
    width: u64,
    inner: u64,
    count: u64,
    attention_bias: bool,
    mlp_bias: bool,
    gated: bool,
    /// LayerNorm has a bias, RMSNorm none.
    layer_norm: bool,
}

impl Blocks {
    /// The usual: biases everywhere, two layers in the MLP, LayerNorm.
    fn plain(width: u64, inner: u64, count: u64) -> Self {
        Self {
            width,
            inner,
            count,
            attention_bias: true,
            mlp_bias: true,
            gated: false,
            layer_norm: true,
        }
    }
}

/// Adds the tower of a multimodal configuration; a family not known here adds a note instead.
pub(super) fn tower(
    builder: &mut Builder<'_>,
    vision: &Fields<'_>,
    text_width: u64,
) -> Result<(), HfError> {
    let start = builder.tensors.len();
    builder.part = Part::Vision;
    builder.layer = None;
    let purpose = "its vision tower";
    let need = |name: &str| vision.need(&[name], purpose);
    match vision.family.as_str() {
        "gemma3" => {
            let (width, patch) = (need("hidden_size")?, need("patch_size")?);
            let side = need("image_size")? / patch;
            linear(builder, "patch", width, need("num_channels")? * patch * patch, true);
            linear(builder, "position", side * side, width, false);
            let (inner, count) = (need("intermediate_size")?, need("num_hidden_layers")?);
            blocks(builder, &Blocks::plain(width, inner, count));
            linear(builder, "post_layernorm", 2 * width, 1, false);
            linear(builder, "projector", width, text_width, false);
            linear(builder, "projector_norm", width, 1, false);
        }
        "qwen3_5" | "qwen3_5_moe" => {
            let (width, patch) = (need("hidden_size")?, need("patch_size")?);
            let merged = width * need("spatial_merge_size")?.pow(2);
            linear(
                builder,
                "patch",
                width,
                need("in_channels")? * need("temporal_patch_size")? * patch * patch,
                true,
            );
            linear(builder, "position", need("num_position_embeddings")?, width, false);
            let (inner, count) = (need("intermediate_size")?, need("depth")?);
            blocks(builder, &Blocks::plain(width, inner, count));
            linear(builder, "merger_norm", 2 * width, 1, false);
            linear(builder, "merger_fc1", merged, merged, true);
            linear(builder, "merger_fc2", need("out_hidden_size")?, merged, true);
        }
        "qwen2_5_vl" => {
            let (width, patch) = (need("hidden_size")?, need("patch_size")?);
            let merged = width * need("spatial_merge_size")?.pow(2);
            linear(
                builder,
                "patch",
                width,
                need("in_chans")? * need("temporal_patch_size")? * patch * patch,
                false,
            );
            let (inner, count) = (need("intermediate_size")?, need("depth")?);
            blocks(
                builder,
                &Blocks { gated: true, layer_norm: false, ..Blocks::plain(width, inner, count) },
            );
            linear(builder, "merger_norm", width, 1, false);
            linear(builder, "merger_fc1", merged, merged, true);
            linear(builder, "merger_fc2", need("out_hidden_size")?, merged, true);
        }
        "mistral3" => {
            let (width, patch) = (need("hidden_size")?, need("patch_size")?);
            let top = Fields {
                top: vision.top,
                map: vision.top,
                family: vision.family.clone(),
                limit: vision.limit,
            };
            let merge = top.need(&["spatial_merge_size"], purpose)?.pow(2);
            linear(builder, "patch", width, need("num_channels")? * patch * patch, false);
            linear(builder, "ln_pre", width, 1, false);
            let (inner, count) = (need("intermediate_size")?, need("num_hidden_layers")?);
            blocks(
                builder,
                &Blocks {
                    width,
                    inner,
                    count,
                    attention_bias: false,
                    mlp_bias: false,
                    gated: true,
                    layer_norm: false,
                },
            );
            linear(builder, "projector_norm", width, 1, false);
            linear(builder, "patch_merger", width, width * merge, false);
            linear(builder, "projector_1", text_width, width, false);
            linear(builder, "projector_2", text_width, text_width, false);
        }
        "llama4" => {
            let (width, patch) = (need("hidden_size")?, need("patch_size")?);
            let side = need("image_size")? / patch;
            let inner = need("intermediate_size")?;
            linear(builder, "patch", width, need("num_channels")? * patch * patch, false);
            linear(builder, "class,position", side * side + 2, width, false);
            linear(builder, "pre,post_norm", 4 * width, 1, false);
            let count = need("num_hidden_layers")?;
            blocks(builder, &Blocks::plain(width, inner, count));
            let output = need("projector_output_dim")?;
            linear(builder, "adapter_fc1", need("projector_input_dim")?, inner, false);
            linear(builder, "adapter_fc2", output, output, false);
            linear(builder, "projector", text_width, need("vision_output_dim")?, false);
        }
        "mllama" => {
            let (width, patch) = (need("hidden_size")?, need("patch_size")?);
            let patches = (need("image_size")? / patch).pow(2) + 1;
            let ratios = vision.words("supported_aspect_ratios")?.map_or(8, |r| r.len() as u64) + 1;
            let tiles = need("max_num_tiles")?;
            let globals = need("num_global_layers")?;
            linear(builder, "patch", width, need("num_channels")? * patch * patch, false);
            linear(builder, "class", width, 1, false);
            linear(builder, "position", patches + ratios * tiles * patches, width, false);
            linear(builder, "tile_position", 2 * ratios * tiles, width, false);
            // One gate for the positions, one for each of two tile embeddings, two for each global block.
            linear(builder, "gates", 3 + 2 * globals, 1, false);
            linear(builder, "pre,post_norm", 4 * width, 1, false);
            let count = need("num_hidden_layers")? + globals;
            let inner = need("intermediate_size")?;
            blocks(
                builder,
                &Blocks {
                    width,
                    inner,
                    count,
                    attention_bias: false,
                    mlp_bias: true,
                    gated: false,
                    layer_norm: true,
                },
            );
            linear(builder, "projector", text_width, need("vision_output_dim")?, true);
        }
        "kimi_k25" => {
            let width = need("vt_hidden_size")?;
            let kernel = vision.words("merge_kernel_size")?.unwrap_or_default();
            let side =
                |i: usize| kernel.get(i).and_then(|n| n.parse::<u64>().ok()).filter(|n| *n <= 64);
            let (Some(rows), Some(columns)) = (side(0), side(1)) else {
                return Err(HfError::WrongType {
                    field: "merge_kernel_size".to_owned(),
                    expected: "two numbers up to 64",
                    found: kernel.join(", "),
                });
            };
            let merge = rows * columns;
            let merged = width * merge;
            linear(builder, "patch", width, 3 * need("patch_size")?.pow(2), true);
            linear(
                builder,
                "position",
                need("init_pos_emb_height")? * need("init_pos_emb_width")?,
                width,
                false,
            );
            let (inner, count) = (need("vt_intermediate_size")?, need("vt_num_hidden_layers")?);
            blocks(builder, &Blocks::plain(width, inner, count));
            linear(builder, "final_layernorm", 2 * width, 1, false);
            linear(builder, "projector_norm", 2 * need("mm_hidden_size")?, 1, false);
            linear(builder, "projector_in", merged, merged, true);
            linear(builder, "projector_out", text_width, merged, true);
        }
        other => builder
            .notes
            .push(format!("the vision tower of `{other}` is not known here and not counted")),
    }
    // Image sizes are squared above: a tower of more than 10^13 numbers is a typing mistake.
    let huge = |t: &crate::Tensor| t.elements() > 10_000_000_000_000;
    if builder.tensors[start..].iter().any(huge) {
        return Err(HfError::Inconsistent(
            "the vision tower would be larger than any model".to_owned(),
        ));
    }
    Ok(())
}

fn linear(builder: &mut Builder<'_>, name: &'static str, rows: u64, columns: u64, bias: bool) {
    builder.push(name, Role::Vision, rows, columns, (1, 1));
    if bias {
        builder.push(name, Role::Vision, rows, 1, (1, 1));
    }
}

fn blocks(builder: &mut Builder<'_>, b: &Blocks) {
    let mut add =
        |name, rows, columns| builder.push(name, Role::Vision, rows, columns, (b.count, b.count));
    add("qkv", 3 * b.width, b.width);
    add("proj", b.width, b.width);
    if b.attention_bias {
        add("attention_bias", 4 * b.width, 1);
    }
    let ups = if b.gated { 2 } else { 1 };
    add("mlp_up", ups * b.inner, b.width);
    add("mlp_down", b.width, b.inner);
    if b.mlp_bias {
        add("mlp_bias", ups * b.inner + b.width, 1);
    }
    add("norms", if b.layer_norm { 4 * b.width } else { 2 * b.width }, 1);
}
