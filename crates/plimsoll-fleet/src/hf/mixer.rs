//! How layers mix tokens: attention and its relatives.

use plimsoll_units::Tokens;
use serde_json::Value;

use super::{Builder, DELTA, HfError, KNOWN, LATENT};
use crate::architecture::{Attention, Indexer, Latent, Mixer, Recurrent, Role};

impl Builder<'_> {
    pub(super) fn mixer(&mut self, index: u64) -> Result<Mixer, HfError> {
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
    pub(super) fn of_layer(&self, name: &str, index: u64) -> Result<Option<&Value>, HfError> {
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

    pub(super) fn attention(&mut self, index: u64) -> Result<Mixer, HfError> {
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
}
