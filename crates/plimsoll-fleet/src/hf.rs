//! Any Hugging Face `config.json` as an [`Architecture`].
//!
//! A family is known by `model_type`; what it adds to a plain decoder (biases, extra norms, its own
//! names for a field) is written down where it differs. A type nobody here has heard of is read as a plain
//! decoder with whatever it names of experts, latents and windows, and a note says so.
//!
//! Shapes were checked against published checkpoints: the catalogue's test recounts each model.

mod fields;
mod mixer;
mod vision;

use plimsoll_units::Tokens;
use serde_json::{Map, Value};

use self::fields::{Fields, describe};
use crate::architecture::{
    Architecture, Attention, Layer, Mixer, Mlp, Part, Recurrent, Role, Tensor,
};

/// Why a configuration describes no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HfError {
    /// Not JSON at all.
    #[error("this is not JSON: {message} (line {line}, column {column})")]
    NotJson {
        /// What the JSON reader says.
        message: String,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// JSON, but not an object.
    #[error("a config.json is one JSON object; this is {0}")]
    NotAnObject(&'static str),
    /// A field that the shape depends on is not there.
    #[error("`{field}` is missing, and a `{family}` model needs it for {purpose}")]
    Missing {
        /// The field, with the other names it may have.
        field: String,
        /// The configuration's model type.
        family: String,
        /// What it decides.
        purpose: &'static str,
    },
    /// A field holds something else than it must.
    #[error("`{field}` must be {expected}; it is {found}")]
    WrongType {
        /// The field.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A number larger than any model has.
    #[error("`{field}` must be at most {limit}; it is {found}")]
    TooLarge {
        /// The field.
        field: String,
        /// The largest number taken seriously.
        limit: u64,
        /// What it is.
        found: u64,
    },
    /// Two fields contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

/// Reads the text of a `config.json`.
pub fn from_hf(text: &str) -> Result<Architecture, HfError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or("unreadable").to_owned();
        HfError::NotJson { message, line, column }
    })?;
    from_hf_value(&value)
}

/// Reads a configuration that is already JSON.
pub fn from_hf_value(value: &Value) -> Result<Architecture, HfError> {
    let Value::Object(top) = value else { return Err(HfError::NotAnObject(describe(value))) };
    let text = match top.get("text_config") {
        Some(Value::Object(inner)) => inner,
        None | Some(Value::Null) => top,
        Some(other) => {
            let (field, found) = ("text_config".to_owned(), describe(other).to_owned());
            return Err(HfError::WrongType { field, expected: "an object", found });
        }
    };
    let family = |map: &Map<String, Value>| {
        map.get("model_type").and_then(Value::as_str).unwrap_or("unknown").to_owned()
    };
    let fields = Fields { top, map: text, family: family(text), limit: DIMENSION_MAX };
    let mut builder = Builder::new(fields)?;
    builder.decoder()?;
    builder.draft()?;
    if let Some(Value::Object(vision)) = top.get("vision_config") {
        let hidden = builder.hidden;
        let fields = Fields { top, map: vision, family: family(top), limit: VISION_MAX };
        vision::tower(&mut builder, &fields, hidden)?;
    }
    builder.finish()
}

/// The largest width or count taken seriously: the product of any three stays inside 64 bits.
const DIMENSION_MAX: u64 = 1_000_000;
/// The same for a vision tower, where four are multiplied.
const VISION_MAX: u64 = 50_000;
const VOCABULARY_MAX: u64 = 10_000_000;
const CONTEXT_MAX: u64 = 1_000_000_000;
const LAYERS_MAX: u64 = 2_000;

/// Families whose attention is latent (MLA) on every layer.
const LATENT: [&str; 6] =
    ["deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe_lite"];
/// Families with a gated delta net on most layers and a doubled, gated query on the rest.
const DELTA: [&str; 3] = ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"];
/// Families read exactly; any other is read as a plain decoder.
const KNOWN: [&str; 34] = [
    "gptj",
    "llama",
    "mistral",
    "ministral3",
    "mixtral",
    "phi3",
    "qwen2",
    "qwen2_5_vl",
    "qwen3",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_5_text",
    "qwen3_5_moe_text",
    "gemma2",
    "gemma3_text",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "glm_moe_dsa",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "kimi_k2",
    "kimi_linear",
    "gpt_oss",
    "minimax_m2",
    "llama4_text",
    "mllama_text_model",
    "step3p5",
    "mimo_v2",
    "mimo_v2_flash",
    "nemotron_h",
    "falcon",
];

struct Builder<'a> {
    fields: Fields<'a>,
    hidden: u64,
    vocab: u64,
    layer_count: u64,
    part: Part,
    layer: Option<u32>,
    layers: Vec<Layer>,
    draft_layers: Vec<Layer>,
    tensors: Vec<Tensor>,
    notes: Vec<String>,
    tied: bool,
}

impl<'a> Builder<'a> {
    fn new(fields: Fields<'a>) -> Result<Self, HfError> {
        let hidden = fields.need(&["hidden_size", "n_embd"], "the width of every layer")?;
        let vocab = fields
            .up_to(VOCABULARY_MAX)
            .need(&["vocab_size"], "the embedding and the output head")?;
        let layer_count =
            match (fields.text("hybrid_override_pattern"), fields.words("layers_block_type")?) {
                (Some(pattern), _) => pattern.chars().count() as u64,
                (None, Some(blocks)) => blocks.len() as u64,
                (None, None) => {
                    fields.need(&["num_hidden_layers", "n_layer"], "the number of layers")?
                }
            };
        if layer_count > LAYERS_MAX {
            return Err(HfError::WrongType {
                field: "num_hidden_layers".to_owned(),
                expected: "at most 2,000",
                found: layer_count.to_string(),
            });
        }
        let family = fields.family.as_str();
        let ties_by_default =
            matches!(family, "gemma" | "gemma2" | "gemma3_text" | "falcon" | "cohere" | "cohere2");
        let tied = match fields.flag("tie_word_embeddings")? {
            Some(tied) => tied,
            None => match fields.top.get("tie_word_embeddings") {
                Some(Value::Bool(tied)) => *tied,
                _ => ties_by_default,
            },
        };
        let stated = fields.get("tie_word_embeddings").is_some()
            || fields.top.contains_key("tie_word_embeddings");
        let mut notes = Vec::new();
        if !KNOWN.contains(&family) {
            notes.push(format!(
                "`{family}` is not a family known here: read as a plain decoder with the fields it names"
            ));
            if !stated {
                let taken = if tied { "the embedding" } else { "a tensor of its own" };
                notes.push(format!(
                    "`tie_word_embeddings` is missing: the output head is taken to be {taken}"
                ));
            }
        }
        let (layers, draft_layers, tensors) = (Vec::new(), Vec::new(), Vec::new());
        let (part, layer) = (Part::Text, None);
        Ok(Self {
            fields,
            hidden,
            vocab,
            layer_count,
            part,
            layer,
            layers,
            draft_layers,
            tensors,
            notes,
            tied,
        })
    }

    fn family(&self) -> &str {
        &self.fields.family
    }

    fn finish(self) -> Result<Architecture, HfError> {
        let fits = |t: &Tensor| {
            t.rows.checked_mul(t.columns).and_then(|n| n.checked_mul(t.copies)).is_some()
        };
        if let Some(tensor) = self.tensors.iter().find(|t| !fits(t)) {
            return Err(HfError::Inconsistent(format!(
                "`{}` would hold {} x {} x {} numbers, more than any model",
                tensor.name, tensor.copies, tensor.rows, tensor.columns
            )));
        }
        let fields = &self.fields;
        let context = fields.up_to(CONTEXT_MAX).any(&[
            "max_position_embeddings",
            "n_positions",
            "model_max_length",
            "seq_length",
        ])?;
        let dtype = ["torch_dtype", "dtype"].iter().find_map(|name| {
            fields.text(name).or_else(|| fields.top.get(*name).and_then(Value::as_str))
        });
        let quantization =
            fields.get("quantization_config").or(fields.top.get("quantization_config"));
        let quantization = quantization.and_then(|q| q.get("quant_method")).and_then(Value::as_str);
        Ok(Architecture {
            family: fields.family.clone(),
            hidden_size: self.hidden,
            vocab_size: self.vocab,
            context_max: context.map(Tokens::new),
            dtype: dtype.map(str::to_owned),
            quantization: quantization.map(str::to_owned),
            layers: self.layers,
            draft_layers: self.draft_layers,
            tied: self.tied,
            tensors: self.tensors,
            notes: self.notes,
        })
    }

    // ----- tensors

    fn push(
        &mut self,
        name: &'static str,
        role: Role,
        rows: u64,
        columns: u64,
        copies: (u64, u64),
    ) {
        let (part, layer) = (self.part, self.layer);
        if rows > 0 && columns > 0 && copies.0 > 0 {
            let (copies, copies_active) = copies;
            self.tensors.push(Tensor {
                name,
                part,
                role,
                layer,
                rows,
                columns,
                copies,
                copies_active,
            });
        }
    }

    fn linear(&mut self, name: &'static str, role: Role, rows: u64, columns: u64, bias: bool) {
        self.push(name, role, rows, columns, (1, 1));
        if bias {
            self.vector(name, rows);
        }
    }

    fn vector(&mut self, name: &'static str, length: u64) {
        self.push(name, Role::Vector, length, 1, (1, 1));
    }

    fn gated(&mut self, name: &'static str, width: u64, bias: bool) {
        let h = self.hidden;
        self.linear(name, Role::Up, 2 * width, h, bias);
        self.linear(name, Role::Down, h, width, bias);
    }

    // ----- the decoder

    fn decoder(&mut self) -> Result<(), HfError> {
        let (h, vocab) = (self.hidden, self.vocab);
        // Mllama keeps eight more rows for image tokens.
        let rows = vocab + if self.family() == "mllama_text_model" { 8 } else { 0 };
        self.linear("embed_tokens", Role::Embedding, rows, h, false);
        let blocks = self.nemotron_blocks("hybrid_override_pattern", "layers_block_type")?;
        for index in 0..self.layer_count {
            self.layer = u32::try_from(index).ok();
            let layer = match (&blocks, self.family()) {
                (Some(blocks), _) => {
                    let block = blocks.get(index as usize).cloned().unwrap_or_default();
                    self.nemotron_block(&block)?
                }
                (None, "gptj") => self.gptj_layer()?,
                (None, "falcon") => self.falcon_layer()?,
                _ => self.plain_layer(index)?,
            };
            self.layers.push(layer);
        }
        self.layer = None;
        let layer_norm = matches!(self.family(), "gptj" | "falcon");
        self.vector("norm", if layer_norm { 2 * h } else { h });
        if !self.tied {
            let bias = self.family() == "gptj";
            self.linear("lm_head", Role::Head, vocab, h, bias);
        }
        Ok(())
    }

    fn plain_layer(&mut self, index: u64) -> Result<Layer, HfError> {
        let mixer = self.mixer(index)?;
        let mlp = self.mlp(index)?;
        let norms = if matches!(self.family(), "gemma2" | "gemma3_text" | "glm4") { 4 } else { 2 };
        self.vector("layernorms", norms * self.hidden);
        Ok(Layer { mixer, mlp })
    }

    fn gptj_layer(&mut self) -> Result<Layer, HfError> {
        let h = self.hidden;
        let heads = self.fields.need(&["n_head"], "attention")?;
        let head_dim = self.head_width(heads)?;
        let inner = self.fields.number("n_inner")?.unwrap_or(4 * h);
        self.linear("q_proj", Role::Query, h, h, false);
        self.linear("kv_proj", Role::KeyValue, 2 * h, h, false);
        self.linear("out_proj", Role::Output, h, h, false);
        self.linear("fc_in", Role::Up, inner, h, true);
        self.linear("fc_out", Role::Down, h, inner, true);
        self.vector("ln_1", 2 * h);
        let attention =
            Attention { heads, kv_heads: heads, head_dim, v_head_dim: head_dim, window: None };
        Ok(Layer { mixer: Mixer::Attention(attention), mlp: Mlp::Dense { intermediate: inner } })
    }

    fn falcon_layer(&mut self) -> Result<Layer, HfError> {
        let h = self.hidden;
        let heads = self.fields.need(&["num_attention_heads", "n_head"], "attention")?;
        let head_dim = self.head_width(heads)?;
        let new = self.fields.is("new_decoder_architecture")?;
        let kv_heads = match (new, self.fields.flag("multi_query")?.unwrap_or(true)) {
            (true, _) => self.fields.need(&["num_kv_heads"], "its KV cache")?,
            (false, true) => 1,
            (false, false) => heads,
        };
        let bias = self.fields.is("bias")?;
        let inner = self.fields.number("ffn_hidden_size")?.unwrap_or(4 * h);
        self.linear("query", Role::Query, heads * head_dim, h, bias);
        self.linear("key_value", Role::KeyValue, 2 * kv_heads * head_dim, h, bias);
        self.linear("dense", Role::Output, h, h, bias);
        self.linear("dense_h_to_4h", Role::Up, inner, h, bias);
        self.linear("dense_4h_to_h", Role::Down, h, inner, bias);
        self.vector("layernorms", if new { 4 * h } else { 2 * h });
        let attention = Attention { heads, kv_heads, head_dim, v_head_dim: head_dim, window: None };
        Ok(Layer { mixer: Mixer::Attention(attention), mlp: Mlp::Dense { intermediate: inner } })
    }

    fn head_width(&self, heads: u64) -> Result<u64, HfError> {
        if let Some(width) = self.fields.number("head_dim")?.filter(|d| *d > 0) {
            return Ok(width);
        }
        if !self.hidden.is_multiple_of(heads) {
            return Err(HfError::Inconsistent(format!(
                "`head_dim` is missing, and `hidden_size` {} does not divide into {heads} heads",
                self.hidden
            )));
        }
        Ok(self.hidden / heads)
    }

    // ----- MLPs

    fn mlp(&mut self, index: u64) -> Result<Mlp, HfError> {
        let family = self.family().to_owned();
        let count = self.fields.any(&[
            "n_routed_experts",
            "num_experts",
            "num_local_experts",
            "moe_num_experts",
        ])?;
        let Some(count) = count.filter(|n| *n > 0) else {
            return self.dense(&["intermediate_size", "n_inner", "ffn_hidden_size"]);
        };
        let routed = match family.as_str() {
            "llama4_text" => {
                let step = self.fields.number("interleave_moe_layer_step")?.unwrap_or(1).max(1);
                (index + 1).is_multiple_of(step)
            }
            "step3p5" => {
                let list = self.fields.text("moe_layers_enum").unwrap_or_default();
                list.split(',').any(|layer| layer.trim() == index.to_string())
            }
            _ => {
                let first_dense = self.fields.number("first_k_dense_replace")?.unwrap_or(0);
                let step = self.fields.number("decoder_sparse_step")?.unwrap_or(1).max(1);
                match self.fields.get("moe_layer_freq") {
                    Some(Value::Array(_)) => {
                        self.of_layer("moe_layer_freq", index)?.is_some_and(|v| {
                            v.as_u64().is_some_and(|n| n > 0) || v == &Value::Bool(true)
                        })
                    }
                    _ => {
                        index >= first_dense
                            && (index + 1).is_multiple_of(step)
                            && !self.fields.lists("mlp_only_layers", index)?
                    }
                }
            }
        };
        if !routed {
            return self.dense(&["intermediate_size_mlp", "intermediate_size"]);
        }
        self.experts(count)
    }

    fn dense(&mut self, names: &[&str]) -> Result<Mlp, HfError> {
        let intermediate = self.fields.need(names, "its MLP")?;
        let bias = self.fields.is("mlp_bias")?;
        self.gated("mlp", intermediate, bias);
        Ok(Mlp::Dense { intermediate })
    }

    fn experts(&mut self, count: u64) -> Result<Mlp, HfError> {
        let family = self.family().to_owned();
        let h = self.hidden;
        let purpose = "its experts";
        let per_token = self
            .fields
            .need(&["num_experts_per_tok", "num_experts_per_token", "moe_top_k"], purpose)?;
        if per_token > count {
            return Err(HfError::Inconsistent(format!(
                "each token is routed to {per_token} of only {count} experts"
            )));
        }
        let intermediate = match family.as_str() {
            // Here `intermediate_size` is the expert's.
            "mixtral" | "minimax_m2" | "gpt_oss" | "llama4_text" => {
                self.fields.need(&["intermediate_size"], purpose)?
            }
            _ => self.fields.need(&["moe_intermediate_size", "intermediate_size"], purpose)?,
        };
        self.linear("router", Role::Router, count, h, family == "gpt_oss");
        let corrected = matches!(family.as_str(), "minimax_m2" | "step3p5")
            || matches!(
                family.as_str(),
                "deepseek_v3" | "deepseek_v32" | "kimi_k2" | "kimi_linear"
            )
            || family.starts_with("glm")
            || family.starts_with("mimo");
        if corrected {
            self.vector("e_score_correction_bias", count);
        }
        self.push("experts.gate_up", Role::ExpertUp, 2 * intermediate, h, (count, per_token));
        self.push("experts.down", Role::ExpertDown, h, intermediate, (count, per_token));
        if family == "gpt_oss" {
            self.vector("experts.bias", count * (2 * intermediate + h));
        }
        let shared = match family.as_str() {
            "llama4_text" => intermediate,
            _ => match self.fields.any(&["shared_expert_intermediate_size", "share_expert_dim"])? {
                Some(width) => width,
                None => {
                    self.fields.any(&["n_shared_experts", "num_shared_experts"])?.unwrap_or(0)
                        * intermediate
                }
            },
        };
        if shared > 0 {
            self.gated("shared_expert", shared, false);
            if family.starts_with("qwen") {
                self.linear("shared_expert_gate", Role::Router, 1, h, false);
            }
        }
        Ok(Mlp::Experts { count, per_token, intermediate, shared })
    }

    // ----- Nemotron-H: one block a layer

    fn nemotron_blocks(&self, pattern: &str, list: &str) -> Result<Option<Vec<String>>, HfError> {
        if let Some(pattern) = self.fields.text(pattern) {
            return Ok(Some(pattern.chars().map(|c| c.to_string()).collect()));
        }
        self.fields.words(list)
    }

    fn nemotron_block(&mut self, kind: &str) -> Result<Layer, HfError> {
        let h = self.hidden;
        self.vector("block.norm", h);
        match kind {
            "M" | "mamba" => {
                let purpose = "its Mamba layers";
                let heads = self.fields.need(&["mamba_num_heads"], purpose)?;
                let head_dim = self.fields.need(&["mamba_head_dim"], purpose)?;
                let groups = self.fields.need(&["n_groups"], purpose)?;
                let state = self.fields.need(&["ssm_state_size"], purpose)?;
                let kernel = self.fields.need(&["conv_kernel"], purpose)?;
                let bias = self.fields.is("use_bias")?;
                let inner = heads * head_dim;
                let conv = inner + 2 * groups * state;
                self.linear("in_proj", Role::Query, inner + conv + heads, h, bias);
                self.push("conv1d", Role::Convolution, conv, kernel, (1, 1));
                if self.fields.flag("use_conv_bias")?.unwrap_or(true) {
                    self.vector("conv1d", conv);
                }
                self.vector("A_log,D,dt_bias", 3 * heads);
                self.vector("norm", inner);
                self.linear("out_proj", Role::Output, h, inner, bias);
                let recurrent = Recurrent {
                    kind: "mamba2",
                    state: inner * state,
                    convolution: conv * (kernel - 1),
                };
                Ok(Layer { mixer: Mixer::Recurrent(recurrent), mlp: Mlp::None })
            }
            "*" | "attention" => {
                let mixer = self.attention(0)?;
                Ok(Layer { mixer, mlp: Mlp::None })
            }
            "-" | "mlp" => {
                let intermediate = self.fields.need(&["intermediate_size"], "its MLP")?;
                let bias = self.fields.is("mlp_bias")?;
                self.linear("up_proj", Role::Up, intermediate, h, bias);
                self.linear("down_proj", Role::Down, h, intermediate, bias);
                Ok(Layer { mixer: Mixer::None, mlp: Mlp::Dense { intermediate } })
            }
            "E" | "moe" => {
                let purpose = "its experts";
                let count = self.fields.need(&["n_routed_experts"], purpose)?;
                let per_token = self.fields.need(&["num_experts_per_tok"], purpose)?;
                let intermediate = self.fields.need(&["moe_intermediate_size"], purpose)?;
                let shared =
                    self.fields.number("moe_shared_expert_intermediate_size")?.unwrap_or(0);
                let latent = self.fields.number("moe_latent_size")?.filter(|w| *w > 0);
                let width = latent.unwrap_or(h);
                self.linear("router", Role::Router, count, h, false);
                self.vector("e_score_correction_bias", count);
                self.push("experts.up", Role::ExpertUp, intermediate, width, (count, per_token));
                self.push(
                    "experts.down",
                    Role::ExpertDown,
                    width,
                    intermediate,
                    (count, per_token),
                );
                self.linear("shared.up_proj", Role::Up, shared, h, false);
                self.linear("shared.down_proj", Role::Down, h, shared, false);
                if let Some(width) = latent {
                    self.linear("fc1_latent_proj", Role::Replicated, width, h, false);
                    self.linear("fc2_latent_proj", Role::Replicated, h, width, false);
                }
                Ok(Layer {
                    mixer: Mixer::None,
                    mlp: Mlp::Experts { count, per_token, intermediate, shared },
                })
            }
            other => Err(HfError::Inconsistent(format!(
                "`{other}` is no kind of block: M (mamba), * (attention), - (MLP) or E (experts)"
            ))),
        }
    }

    // ----- extra prediction layers

    fn draft(&mut self) -> Result<(), HfError> {
        let family = self.family().to_owned();
        let named =
            self.fields.any(&["num_nextn_predict_layers", "mtp_num_hidden_layers"])?.unwrap_or(0);
        // These two ship them without saying so in their configuration.
        let count = match family.as_str() {
            "qwen3_next" => 1,
            "mimo_v2" | "mimo_v2_flash" => 3,
            _ => named,
        };
        if count > 16 {
            return Err(HfError::WrongType {
                field: "num_nextn_predict_layers".to_owned(),
                expected: "at most 16",
                found: count.to_string(),
            });
        }
        self.part = Part::Draft;
        let (h, vocab, beyond) = (self.hidden, self.vocab, self.layer_count);
        for index in 0..count {
            self.layer = u32::try_from(index).ok();
            let layer = match family.as_str() {
                "nemotron_h" => {
                    self.linear("eh_proj", Role::Replicated, h, 2 * h, false);
                    self.vector("norms", 3 * h);
                    let blocks = self
                        .nemotron_blocks("mtp_hybrid_override_pattern", "mtp_layers_block_type")?;
                    let mut layer = Layer { mixer: Mixer::None, mlp: Mlp::None };
                    for block in blocks.unwrap_or_default() {
                        let Layer { mixer, mlp } = self.nemotron_block(&block)?;
                        if mixer != Mixer::None {
                            layer.mixer = mixer;
                        }
                        if mlp != Mlp::None {
                            layer.mlp = mlp;
                        }
                    }
                    layer
                }
                "step3p5" | "mimo_v2" | "mimo_v2_flash" => {
                    let sliding = self.last_sliding_layer();
                    let mixer = self.attention(sliding.unwrap_or(beyond))?;
                    let intermediate = self.fields.need(&["intermediate_size"], "its MLP")?;
                    self.gated("mlp", intermediate, false);
                    self.vector("norms", 5 * h);
                    self.linear("eh_proj", Role::Replicated, h, 2 * h, false);
                    if family == "step3p5" {
                        self.linear("shared_head", Role::Head, vocab, h, false);
                    }
                    Layer { mixer, mlp: Mlp::Dense { intermediate } }
                }
                family if DELTA.contains(&family) => {
                    let mixer = self.attention(beyond)?;
                    let mlp = self.mlp(beyond.saturating_sub(1))?;
                    self.vector("norms", 5 * h);
                    self.linear("fc", Role::Replicated, h, 2 * h, false);
                    Layer { mixer, mlp }
                }
                family => {
                    let mixer = self.mixer(beyond)?;
                    let mlp = self.mlp(beyond)?;
                    self.vector("norms", 5 * h);
                    self.linear("eh_proj", Role::Replicated, h, 2 * h, false);
                    // All but GLM-5 store the embedding and head again.
                    if family != "glm_moe_dsa" {
                        self.linear("embed_tokens", Role::Embedding, vocab, h, false);
                        self.linear("shared_head", Role::Head, vocab, h, false);
                    }
                    Layer { mixer, mlp }
                }
            };
            self.draft_layers.push(layer);
        }
        self.layer = None;
        Ok(())
    }

    fn last_sliding_layer(&self) -> Option<u64> {
        let slides =
            |layer: &Layer| matches!(&layer.mixer, Mixer::Attention(a) if a.window.is_some());
        self.layers.iter().rposition(slides).map(|i| i as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &str, expect: &str) {
        assert_eq!(from_hf(config).expect_err(config).to_string(), expect);
    }

    #[test]
    fn a_broken_config_names_its_field() {
        check("", "this is not JSON: EOF while parsing a value (line 1, column 0)");
        check("[]", "a config.json is one JSON object; this is an array");
        check(
            "{}",
            "`hidden_size` or `n_embd` is missing, and a `unknown` model needs it for the width of every layer",
        );
        check(
            r#"{"model_type":"llama","hidden_size":64,"vocab_size":100,"num_hidden_layers":2,"num_attention_heads":4}"#,
            "`intermediate_size` or `n_inner` or `ffn_hidden_size` is missing, and a `llama` model needs it for its MLP",
        );
        check(
            r#"{"hidden_size":"4096"}"#,
            "`hidden_size` must be a whole number, not negative; it is \"4096\"",
        );
        check(
            r#"{"hidden_size":-4}"#,
            "`hidden_size` must be a whole number, not negative; it is -4",
        );
        check(r#"{"hidden_size":0}"#, "`hidden_size` must be above zero; it is 0");
        check(
            r#"{"hidden_size":8,"vocab_size":8,"num_hidden_layers":9999999}"#,
            "`num_hidden_layers` must be at most 1000000; it is 9999999",
        );
        check(
            r#"{"hidden_size":100,"vocab_size":8,"num_hidden_layers":1,"num_attention_heads":3}"#,
            "`head_dim` is missing, and `hidden_size` 100 does not divide into 3 heads",
        );
        check(
            r#"{"model_type":"deepseek_v3","hidden_size":64,"vocab_size":100,"num_hidden_layers":2,"num_attention_heads":4}"#,
            "`kv_lora_rank` is missing, and a `deepseek_v3` model needs it for latent attention",
        );
        check(
            r#"{"model_type":"mixtral","hidden_size":64,"vocab_size":100,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":9,"num_local_experts":2,"num_experts_per_tok":3}"#,
            "each token is routed to 3 of only 2 experts",
        );
    }

    #[test]
    fn lists_must_cover_the_layers() {
        let config = |more: &str| {
            format!(
                r#"{{"model_type":"brand_new","hidden_size":8,"vocab_size":10,"num_hidden_layers":4,
                "num_attention_heads":4,"intermediate_size":4,{more}}}"#
            )
        };
        check(
            &config(r#""layer_types":["full_attention"]"#),
            "`layer_types` has 1 entries for 4 layers",
        );
        check(&config(r#""num_key_value_heads":0"#), "`num_key_value_heads` is 0");
        check(&config(r#""text_config":[1]"#), "`text_config` must be an object; it is an array");
        let windows = |more: &str| {
            let model = from_hf(&config(more)).unwrap();
            let sliding = |l: &Layer| matches!(&l.mixer, Mixer::Attention(a) if a.window.is_some());
            model.layers.iter().filter(|l| sliding(l)).count()
        };
        assert_eq!(windows(r#""sliding_window":4096"#), 4);
        assert_eq!(windows(r#""sliding_window":4096,"use_sliding_window":false"#), 0);
        assert_eq!(windows(r#""head_dim":2"#), 0);
    }

    /// A two-layer decoder small enough to count by hand.
    #[test]
    fn a_tiny_llama_is_counted_by_hand() {
        let tiny = r#"{"model_type":"llama","hidden_size":8,"vocab_size":10,"num_hidden_layers":2,
            "num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":16,"tie_word_embeddings":true}"#;
        let model = from_hf(tiny).unwrap();
        // Embedding 10*8 = 80. Per layer: q 8*8, k 4*8, v 4*8, o 8*8 = 192; MLP 3*16*8 = 384; norms 16.
        // Two layers 2*592 = 1184; final norm 8.
        assert_eq!(model.parameters(Part::Text), 80 + 1184 + 8);
        assert_eq!(model.parameters_active(), 80 + 1184 + 8);
        assert!(model.notes.is_empty());
    }

    #[test]
    fn an_unknown_family_is_read_plainly_and_says_so() {
        let config = r#"{"model_type":"brand_new","hidden_size":8,"vocab_size":10,"num_hidden_layers":2,
            "num_attention_heads":4,"num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":4}"#;
        let model = from_hf(config).unwrap();
        assert_eq!(
            model.notes[..1],
            [
                "`brand_new` is not a family known here: read as a plain decoder with the fields it names"
            ]
        );
        assert_eq!(
            model.layers[0].mlp,
            Mlp::Experts { count: 4, per_token: 2, intermediate: 4, shared: 0 }
        );
        // Half of the experts' 2 layers * 4 experts * 3*4*8 numbers are idle.
        assert_eq!(model.parameters(Part::Text) - model.parameters_active(), 2 * 2 * 3 * 4 * 8);
    }
}
