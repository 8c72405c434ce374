//! Any Hugging Face `config.json` as an [`Architecture`].
//!
//! A family is known by `model_type`; what it adds to a plain decoder (biases, extra norms, its own
//! names for a field) is written down where it differs. A type nobody here has heard of is read as a plain
//! decoder with whatever it names of experts, latents and windows, and a note says so.
//!
//! Shapes were checked against published checkpoints: the catalogue's test recounts each model.

mod vision;

use plimsoll_units::Tokens;
use serde_json::{Map, Value};

use crate::architecture::{
    Architecture, Attention, Indexer, Latent, Layer, Mixer, Mlp, Part, Recurrent, Role, Tensor,
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

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The largest width or count taken seriously: the product of any three stays inside 64 bits.
const DIMENSION_MAX: u64 = 1_000_000;
/// The same for a vision tower, where four are multiplied.
const VISION_MAX: u64 = 50_000;
const VOCABULARY_MAX: u64 = 10_000_000;
const CONTEXT_MAX: u64 = 1_000_000_000;
const LAYERS_MAX: u64 = 2_000;
const LIST_MAX: u64 = 10_000;

/// The fields of one configuration object, with errors that name them.
struct Fields<'a> {
    /// The whole file, for what some families keep only there.
    top: &'a Map<String, Value>,
    map: &'a Map<String, Value>,
    family: String,
    /// The largest number that may stand in a field.
    limit: u64,
}

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    /// A count; `None` when absent or null.
    fn number(&self, name: &str) -> Result<Option<u64>, HfError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64() {
            Some(n) if n <= self.limit => Ok(Some(n)),
            Some(n) => {
                Err(HfError::TooLarge { field: name.to_owned(), limit: self.limit, found: n })
            }
            None => Err(HfError::WrongType {
                field: name.to_owned(),
                expected: "a whole number, not negative",
                found: shortened(value),
            }),
        }
    }

    /// The same fields with another limit.
    fn up_to(&self, limit: u64) -> Fields<'_> {
        Fields { top: self.top, map: self.map, family: self.family.clone(), limit }
    }

    /// The first of several spellings that is there.
    fn any(&self, names: &[&str]) -> Result<Option<u64>, HfError> {
        for name in names {
            if let Some(n) = self.number(name)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// The same, required and above zero.
    fn need(&self, names: &[&str], purpose: &'static str) -> Result<u64, HfError> {
        match self.any(names)? {
            Some(0) => Err(HfError::WrongType {
                field: names[0].to_owned(),
                expected: "above zero",
                found: "0".to_owned(),
            }),
            Some(n) => Ok(n),
            None => Err(HfError::Missing {
                field: names.join("` or `"),
                family: self.family.clone(),
                purpose,
            }),
        }
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, HfError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(other) => Err(HfError::WrongType {
                field: name.to_owned(),
                expected: "true or false",
                found: shortened(other),
            }),
        }
    }

    fn is(&self, name: &str) -> Result<bool, HfError> {
        Ok(self.flag(name)?.unwrap_or(false))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// An array, of no more entries than anything here could need.
    fn list(&self, name: &str) -> Result<Option<&[Value]>, HfError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value {
            Value::Array(items) if items.len() as u64 <= LIST_MAX => Ok(Some(items)),
            Value::Array(items) => {
                let (field, found) = (format!("{name} (its length)"), items.len() as u64);
                Err(HfError::TooLarge { field, limit: LIST_MAX, found })
            }
            other => Err(HfError::WrongType {
                field: name.to_owned(),
                expected: "an array",
                found: describe(other).to_owned(),
            }),
        }
    }

    /// Whether a list of layer numbers holds this one.
    fn lists(&self, name: &str, number: u64) -> Result<bool, HfError> {
        Ok(self.list(name)?.is_some_and(|items| items.iter().any(|v| v.as_u64() == Some(number))))
    }

    /// An array of words or numbers as texts.
    fn words(&self, name: &str) -> Result<Option<Vec<String>>, HfError> {
        let word = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        Ok(self.list(name)?.map(|items| items.iter().map(word).collect()))
    }

    fn object(&self, name: &str) -> Result<Fields<'_>, HfError> {
        match self.get(name) {
            Some(Value::Object(map)) => {
                Ok(Fields { top: self.top, map, family: self.family.clone(), limit: self.limit })
            }
            _ => Err(HfError::Missing {
                field: name.to_owned(),
                family: self.family.clone(),
                purpose: "its layers",
            }),
        }
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 40 { text } else { describe(value).to_owned() }
}

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

    // ----- attention and its relatives

    fn mixer(&mut self, index: u64) -> Result<Mixer, HfError> {
        let family = self.family().to_owned();
        if LATENT.contains(&family.as_str()) {
            return self.latent(index);
        }
        if family == "kimi_linear" {
            let linear = self.fields.object("linear_attn_config")?;
            // This family counts its layers from one.
            if linear.lists("full_attn_layers", index + 1)? {
                return self.latent(index);
            }
            return self.kda();
        }
        if DELTA.contains(&family.as_str()) && !self.is_full_attention(index)? {
            return self.delta_net();
        }
        let known = KNOWN.contains(&family.as_str());
        if !known && self.fields.number("kv_lora_rank")?.is_some() {
            return self.latent(index);
        }
        self.attention(index)
    }

    /// What a list with one entry for each layer says of one of them; beyond the last layer nothing.
    fn of_layer(&self, name: &str, index: u64) -> Result<Option<&Value>, HfError> {
        let Some(items) = self.fields.list(name)? else { return Ok(None) };
        if (items.len() as u64) < self.layer_count {
            return Err(HfError::Inconsistent(format!(
                "`{name}` has {} entries for {} layers",
                items.len(),
                self.layer_count
            )));
        }
        Ok(items.get(usize::try_from(index).unwrap_or(usize::MAX)))
    }

    /// By `layer_types`, else by an interval.
    fn is_full_attention(&self, index: u64) -> Result<bool, HfError> {
        if self.fields.get("layer_types").is_some() {
            let kind = self.of_layer("layer_types", index)?.and_then(Value::as_str);
            return Ok(kind.is_none_or(|kind| kind == "full_attention"));
        }
        let interval =
            self.fields.need(&["layer_types", "full_attention_interval"], "which layers attend")?;
        Ok((index + 1).is_multiple_of(interval))
    }

    fn attention(&mut self, index: u64) -> Result<Mixer, HfError> {
        let family = self.family().to_owned();
        let h = self.hidden;
        let window = self.window(index)?;
        let sliding = window.is_some();
        let (mut heads, mut kv_names) = (
            self.fields.need(&["num_attention_heads", "n_head"], "attention")?,
            vec!["num_key_value_heads", "num_attention_groups", "num_kv_heads"],
        );
        let (mut head_dim, mut v_head_dim) = (None, None);
        if family.starts_with("mimo") {
            let prefix = if sliding { "swa_" } else { "" };
            let of = |name: &str| format!("{prefix}{name}");
            heads = self.fields.need(&[&of("num_attention_heads")], "attention")?;
            head_dim = self.fields.number(&of("head_dim"))?;
            v_head_dim = self.fields.number(&of("v_head_dim"))?;
            if sliding {
                kv_names = vec!["swa_num_key_value_heads"];
            }
        }
        let mut kv_heads = match self.fields.any(&kv_names)? {
            Some(0) => return Err(HfError::Inconsistent(format!("`{}` is 0", kv_names[0]))),
            Some(n) => n,
            None => heads,
        };
        if family == "step3p5" && sliding {
            let other = self.fields.object("attention_other_setting")?;
            heads = other.need(&["num_attention_heads"], "its sliding layers")?;
            kv_heads = other.need(&["num_attention_groups"], "its sliding layers")?;
        }
        let head_dim = match head_dim {
            Some(width) => width,
            None => self.head_width(heads)?,
        };
        let v_head_dim = v_head_dim.unwrap_or(head_dim);
        if !heads.is_multiple_of(kv_heads) {
            return Err(HfError::Inconsistent(format!(
                "{heads} attention heads do not divide into {kv_heads} key-value heads"
            )));
        }

        let flag = self.fields.is("attention_bias")?;
        let qkv_bias = flag || matches!(family.as_str(), "qwen2" | "qwen2_5_vl" | "gpt_oss");
        let o_bias = match family.as_str() {
            "gpt_oss" => true,
            "llama" | "qwen3" | "qwen3_moe" | "gemma3_text" | "llama4_text" => flag,
            _ => false,
        };
        let gate = if DELTA.contains(&family.as_str()) { 2 } else { 1 };
        self.linear("q_proj", Role::Query, gate * heads * head_dim, h, qkv_bias);
        self.linear("k_proj", Role::KeyValue, kv_heads * head_dim, h, qkv_bias);
        self.linear("v_proj", Role::KeyValue, kv_heads * v_head_dim, h, qkv_bias);
        self.linear("o_proj", Role::Output, h, heads * v_head_dim, o_bias);

        let cross =
            family == "mllama_text_model" && self.fields.lists("cross_attention_layers", index)?;
        let per_head_norm = match family.as_str() {
            "qwen3" | "qwen3_moe" | "gemma3_text" | "step3p5" => true,
            "glm4_moe" => self.fields.is("use_qk_norm")?,
            other => DELTA.contains(&other) || cross,
        };
        if per_head_norm {
            self.vector("q_norm,k_norm", 2 * head_dim);
        }
        match family.as_str() {
            "minimax_m2" => self.vector("q_norm,k_norm", (heads + kv_heads) * head_dim),
            "step3p5" => self.linear("g_proj", Role::Replicated, heads, h, false),
            "gpt_oss" => self.vector("sinks", heads),
            _ => {}
        }
        let sink =
            if sliding { "add_swa_attention_sink_bias" } else { "add_full_attention_sink_bias" };
        if self.fields.is(sink)? {
            self.vector("attention_sink_bias", heads);
        }
        let attention = Attention { heads, kv_heads, head_dim, v_head_dim, window };
        if cross {
            self.vector("cross_attn_gates", 2);
            return Ok(Mixer::Cross(attention));
        }
        Ok(Mixer::Attention(attention))
    }

    /// How far back this layer sees, by the spellings of each family.
    fn window(&self, index: u64) -> Result<Option<Tokens>, HfError> {
        let family = self.family();
        let sliding = self.fields.number("sliding_window")?.filter(|w| *w > 0).map(Tokens::new);
        if self.fields.get("layer_types").is_some() {
            let kind = self.of_layer("layer_types", index)?.and_then(Value::as_str);
            return match kind {
                Some("sliding_attention") if sliding.is_none() => Err(HfError::Missing {
                    field: "sliding_window".to_owned(),
                    family: family.to_owned(),
                    purpose: "its sliding layers",
                }),
                Some("sliding_attention") => Ok(sliding),
                Some("chunked_attention") => {
                    Ok(self.fields.number("attention_chunk_size")?.map(Tokens::new))
                }
                _ => Ok(None),
            };
        }
        if self.fields.get("hybrid_layer_pattern").is_some() {
            let slides =
                self.of_layer("hybrid_layer_pattern", index)?.and_then(Value::as_u64) == Some(1);
            return Ok(sliding.filter(|_| slides));
        }
        Ok(match family {
            "gemma2" => sliding.filter(|_| index.is_multiple_of(2)),
            "gemma3_text" => {
                let every = self.fields.number("sliding_window_pattern")?.unwrap_or(6).max(1);
                sliding.filter(|_| !(index + 1).is_multiple_of(every))
            }
            "llama4_text" => {
                let chunk = self.fields.number("attention_chunk_size")?.map(Tokens::new);
                chunk.filter(|_| !(index + 1).is_multiple_of(4))
            }
            "qwen2" | "qwen2_5_vl" | "qwen3" | "qwen3_moe" => {
                let first = self.fields.number("max_window_layers")?.unwrap_or(0);
                let used = self.fields.is("use_sliding_window")?;
                sliding.filter(|_| used && index >= first)
            }
            "mistral" | "mixtral" | "phi3" => sliding,
            // An unknown family is taken at its word, unless it says that the window is not used.
            family if !KNOWN.contains(&family) => {
                let used = self.fields.flag("use_sliding_window")?.unwrap_or(true);
                sliding.filter(|_| used)
            }
            _ => None,
        })
    }

    fn latent(&mut self, index: u64) -> Result<Mixer, HfError> {
        let h = self.hidden;
        let purpose = "latent attention";
        let heads = self.fields.need(&["num_attention_heads"], purpose)?;
        let kv_rank = self.fields.need(&["kv_lora_rank"], purpose)?;
        let rope_dim = self.fields.need(&["qk_rope_head_dim"], purpose)?;
        let nope_dim = self.fields.need(&["qk_nope_head_dim"], purpose)?;
        let v_dim = self.fields.need(&["v_head_dim"], purpose)?;
        let q_rank = self.fields.number("q_lora_rank")?.filter(|r| *r > 0);
        let bias = self.fields.is("attention_bias")?;
        match q_rank {
            Some(rank) => {
                self.linear("q_a_proj", Role::Replicated, rank, h, bias);
                self.vector("q_a_layernorm", rank);
                self.linear("q_b_proj", Role::Query, heads * (nope_dim + rope_dim), rank, false);
            }
            None => self.linear("q_proj", Role::Query, heads * (nope_dim + rope_dim), h, false),
        }
        self.linear("kv_a_proj", Role::Replicated, kv_rank + rope_dim, h, bias);
        self.vector("kv_a_layernorm", kv_rank);
        self.linear("kv_b_proj", Role::Query, heads * (nope_dim + v_dim), kv_rank, false);
        self.linear("o_proj", Role::Output, h, heads * v_dim, bias);
        let indexer = self.indexer(index, q_rank)?;
        Ok(Mixer::Latent(Latent { heads, q_rank, kv_rank, nope_dim, rope_dim, v_dim, indexer }))
    }

    fn indexer(&mut self, index: u64, q_rank: Option<u64>) -> Result<Option<Indexer>, HfError> {
        let Some(heads) = self.fields.number("index_n_heads")?.filter(|n| *n > 0) else {
            return Ok(None);
        };
        let kind = self.of_layer("indexer_types", index)?.and_then(Value::as_str);
        if kind == Some("shared") {
            return Ok(None);
        }
        let head_dim = self.fields.need(&["index_head_dim"], "sparse attention's indexer")?;
        let rank = q_rank.unwrap_or(self.hidden);
        self.linear("indexer.wq_b", Role::Replicated, heads * head_dim, rank, false);
        self.linear("indexer.wk", Role::Replicated, head_dim, self.hidden, false);
        self.vector("indexer.k_norm", 2 * head_dim);
        self.linear("indexer.weights_proj", Role::Replicated, heads, self.hidden, false);
        Ok(Some(Indexer { heads, head_dim }))
    }

    fn delta_net(&mut self) -> Result<Mixer, HfError> {
        let h = self.hidden;
        let purpose = "its linear attention";
        let key_heads = self.fields.need(&["linear_num_key_heads"], purpose)?;
        let value_heads = self.fields.need(&["linear_num_value_heads"], purpose)?;
        let key_dim = self.fields.need(&["linear_key_head_dim"], purpose)?;
        let value_dim = self.fields.need(&["linear_value_head_dim"], purpose)?;
        let kernel = self.fields.need(&["linear_conv_kernel_dim"], purpose)?;
        let (keys, values) = (key_heads * key_dim, value_heads * value_dim);
        self.linear("in_proj_qkvz", Role::Query, 2 * keys + 2 * values, h, false);
        self.linear("in_proj_ba", Role::Query, 2 * value_heads, h, false);
        self.push("conv1d", Role::Convolution, 2 * keys + values, kernel, (1, 1));
        self.vector("dt_bias,A_log", 2 * value_heads);
        self.vector("norm", value_dim);
        self.linear("out_proj", Role::Output, h, values, false);
        Ok(Mixer::Recurrent(Recurrent {
            kind: "gated-delta-net",
            state: value_heads * key_dim * value_dim,
            convolution: (2 * keys + values) * (kernel - 1),
        }))
    }

    fn kda(&mut self) -> Result<Mixer, HfError> {
        let h = self.hidden;
        let linear = self.fields.object("linear_attn_config")?;
        let purpose = "its linear attention";
        let heads = linear.need(&["num_heads"], purpose)?;
        let width = linear.need(&["head_dim"], purpose)?;
        let kernel = linear.need(&["short_conv_kernel_size"], purpose)?;
        let all = heads * width;
        self.linear("qkv_proj", Role::Query, 3 * all, h, false);
        self.push("qkv_conv1d", Role::Convolution, 3 * all, kernel, (1, 1));
        self.linear("f_a_proj,g_a_proj", Role::Replicated, 2 * width, h, false);
        self.linear("f_b_proj,g_b_proj", Role::Query, 2 * all, width, false);
        self.vector("dt_bias,A_log", all + heads);
        self.linear("b_proj", Role::Query, heads, h, false);
        self.vector("o_norm", width);
        self.linear("o_proj", Role::Output, h, all, false);
        Ok(Mixer::Recurrent(Recurrent {
            kind: "kda",
            state: heads * width * width,
            convolution: 3 * all * (kernel - 1),
        }))
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
        self.push("experts.gate_up", Role::Expert, 2 * intermediate, h, (count, per_token));
        self.push("experts.down", Role::Expert, h, intermediate, (count, per_token));
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
                self.push("experts.up", Role::Expert, intermediate, width, (count, per_token));
                self.push("experts.down", Role::Expert, width, intermediate, (count, per_token));
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
