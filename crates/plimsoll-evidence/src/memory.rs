//! Logged KV-cache capacities.

use plimsoll_fleet::{Architecture, from_hf_value};
use plimsoll_study::{MemoryCase, MemoryInputs, MemoryObserved};
use plimsoll_units::{Bytes, Fraction, Tokens};
use serde_json::{Map, Value, json};

use crate::EvidenceError;
use crate::case::Case;

/// The cases of a file in the format `plimsoll-kv-cases/1`.
pub fn memory_cases(text: &str) -> Result<Vec<MemoryCase>, EvidenceError> {
    memory_cases_of(&serde_json::from_str(text).map_err(not_json)?)
}

pub(crate) fn memory_cases_of(document: &Value) -> Result<Vec<MemoryCase>, EvidenceError> {
    let schema = document.get("meta").and_then(|m| m.get("schema")).and_then(Value::as_str);
    if schema != Some("plimsoll-kv-cases/1") {
        return Err(EvidenceError::WrongKind("its `meta.schema` is not `plimsoll-kv-cases/1`"));
    }
    let Some(cases) = document.get("cases").and_then(Value::as_array) else {
        return Err(EvidenceError::WrongKind("it has no list `cases`"));
    };
    cases.iter().enumerate().map(|(index, case)| Case::of(index, case)?.memory()).collect()
}

pub(crate) fn not_json(error: serde_json::Error) -> EvidenceError {
    EvidenceError::NotJson {
        message: error.to_string().split(" at line ").next().unwrap_or("unreadable").to_owned(),
        line: error.line(),
        column: error.column(),
    }
}

impl Case<'_> {
    fn text(&self, field: &str) -> Result<String, EvidenceError> {
        let value = self.get(field).ok_or_else(|| self.wrong(field, "is missing"))?;
        value.as_str().map(str::to_owned).ok_or_else(|| self.wrong(field, "must be text"))
    }

    fn whole(&self, field: &str) -> Result<Option<u64>, EvidenceError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_u64().filter(|n| *n <= 1_000_000_000);
        number.map(Some).ok_or_else(|| self.wrong(field, "must be a whole number up to 10^9"))
    }

    fn number(&self, field: &str) -> Result<Option<f64>, EvidenceError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_f64().filter(|x| x.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(field, "must be a finite number"))
    }

    fn gib(&self, field: &str) -> Result<Option<Bytes>, EvidenceError> {
        let Some(gib) = self.number(field)? else { return Ok(None) };
        if !(0.0..=100_000.0).contains(&gib) {
            return Err(self.wrong(field, format!("must be an amount of GiB; it is {gib}")));
        }
        Ok(Some(Bytes::new((gib * (1u64 << 30) as f64).round() as u64)))
    }

    fn memory(self) -> Result<MemoryCase, EvidenceError> {
        let device =
            self.gib("gpu_total_gib")?.ok_or_else(|| self.wrong("gpu_total_gib", "is missing"))?;
        let fraction = self
            .number("memory_knob.value")?
            .ok_or_else(|| self.wrong("memory_knob.value", "is missing"))?;
        let fraction = Fraction::new(fraction).ok_or_else(|| {
            self.wrong("memory_knob.value", format!("must be a share; it is {fraction}"))
        })?;
        let tokens = |field: &str| self.whole(field).map(|n| n.map(Tokens::new));
        let degree = |field: &str| self.whole(field).map(|n| n.unwrap_or(1));
        let inputs = MemoryInputs {
            engine: self.text("engine")?,
            version: self.text("engine_version")?,
            generation: self.text("engine_generation")?,
            model: self.text("model")?,
            arch: self.text("arch_key")?,
            architecture: architecture(self.get("architecture")),
            weights: self.text("weights_quant")?,
            kv_dtype: self.text("kv_dtype")?,
            accelerator: self.text("gpu")?,
            device,
            tensor: degree("tp")?,
            pipeline: degree("pp")?,
            context: degree("dcp")?,
            expert_parallel: self.get("expert_parallel").and_then(Value::as_bool).unwrap_or(false),
            fraction,
            max_model_len: tokens("max_model_len")?,
            max_num_batched_tokens: tokens("max_num_batched_tokens")?,
            max_num_seqs: self.whole("max_num_seqs")?,
            eager: self.get("enforce_eager").and_then(Value::as_bool).unwrap_or(false),
            block_tokens: tokens("block_size")?,
            speculation: self.get("other_flags").and_then(Value::as_str).and_then(guessed_tokens),
        };
        let refused = self.get("use").and_then(Value::as_str) == Some("infeasible");
        let kv_bytes = if refused { None } else { self.gib("observed.kv_gib_per_gpu")? };
        Ok(MemoryCase {
            id: self.text("id")?,
            scored: self.get("score").and_then(Value::as_bool).unwrap_or(false),
            inputs,
            observed: MemoryObserved {
                kv_bytes,
                kv_tokens: tokens("observed.kv_tokens")?,
                refused,
            },
            counts_concurrency: self
                .get("token_semantics")
                .and_then(Value::as_str)
                .is_some_and(|s| s.starts_with("max_concurrency") || s.starts_with("num_blocks//")),
        })
    }
}

/// A case's own description of its model.
fn architecture(described: Option<&Value>) -> Result<Architecture, String> {
    let Some(Value::Object(fields)) = described else {
        return Err("the case describes no architecture".to_owned());
    };
    from_hf_value(&Value::Object(as_config(fields.clone()))).map_err(|e| e.to_string())
}

/// A case's architecture in the words of a `config.json`.
fn as_config(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(moe)) = fields.remove("moe") {
        let words = [("experts_per_tok", "num_experts_per_tok")];
        for (key, value) in moe {
            let key = words
                .iter()
                .find(|(from, _)| *from == key)
                .map_or(key.clone(), |(_, to)| (*to).to_owned());
            fields.insert(key, value);
        }
    }
    let count = |fields: &Map<String, Value>, key: &str| {
        fields.get(key).and_then(Value::as_u64).unwrap_or(0)
    };
    // What no model has is left to the reader of configurations to refuse, before a list is made of it.
    let layers = count(&fields, "num_hidden_layers");
    if layers > 10_000 {
        return fields;
    }
    if let Some(mtp) = fields.remove("mtp_layers") {
        fields.insert("mtp_num_hidden_layers".into(), mtp);
    }
    match fields.get("attention").and_then(Value::as_str) {
        Some("mla") => {
            // Every published latent model has heads of 128 beside the rotary part.
            fields.insert("model_type".into(), json!("deepseek_v3"));
            fields.entry("qk_nope_head_dim").or_insert(json!(128));
            fields.entry("v_head_dim").or_insert(json!(128));
        }
        Some("sliding") => {
            let full = count(&fields, "full_attention_layers").max(1);
            let every = (layers / full).max(1);
            let kind = |i: u64| {
                if (i + 1).is_multiple_of(every) && (i + 1) / every <= full {
                    "full_attention"
                } else {
                    "sliding_attention"
                }
            };
            fields.insert("layer_types".into(), (0..layers).map(kind).collect());
        }
        Some("hybrid_gdn") => {
            fields.insert("model_type".into(), json!("qwen3_5_text"));
            let full = count(&fields, "full_attention_layers").max(1);
            fields.insert("full_attention_interval".into(), json!((layers / full).max(1)));
            if let Some(Value::Object(linear)) = fields.remove("linear") {
                for (from, to) in [
                    ("num_k_heads", "linear_num_key_heads"),
                    ("num_v_heads", "linear_num_value_heads"),
                    ("k_head_dim", "linear_key_head_dim"),
                    ("v_head_dim", "linear_value_head_dim"),
                    ("conv_kernel", "linear_conv_kernel_dim"),
                ] {
                    fields.insert(to.into(), linear.get(from).cloned().unwrap_or(Value::Null));
                }
            }
        }
        _ => {}
    }
    fields
}

/// The number after `num_speculative_tokens`, written as a flag or as JSON; at most 64.
fn guessed_tokens(flags: &str) -> Option<u64> {
    let after = flags.split("num_speculative_tokens").nth(1)?;
    let after = after.trim_start_matches(['=', ':', '"', '\'', ' ']);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|n| (1..=64).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(more: &str) -> String {
        format!(
            r#"{{"meta":{{"schema":"plimsoll-kv-cases/1"}},"cases":[{{"id":"a","engine":"vllm","engine_version":"0.11.0",
            "engine_generation":"V1","model":"m","arch_key":"m","weights_quant":"bf16","kv_dtype":"bf16","gpu":"H100-80GB",
            "gpu_total_gib":79.18,"tp":1,"pp":1,"dcp":1,"memory_knob":{{"value":0.9}},"block_size":16,
            "observed":{{"kv_gib_per_gpu":51.38}},"token_semantics":"blocks*block_size","score":true{more}}}]}}"#
        )
    }

    #[test]
    fn a_case_keeps_inputs_and_answers_apart() {
        let cases = memory_cases(&case("")).unwrap();
        assert_eq!(cases[0].inputs.device.to_string(), "79.18 GiB");
        assert_eq!(cases[0].observed.kv_bytes.unwrap().to_string(), "51.38 GiB");
        assert!(
            cases[0].scored && !cases[0].observed.refused && cases[0].inputs.max_num_seqs.is_none()
        );
    }

    #[test]
    fn mistakes_name_the_case_and_the_field() {
        let message = |text: &str| memory_cases(text).unwrap_err().to_string();
        assert_eq!(
            message("{"),
            "this is not JSON: EOF while parsing an object (line 1, column 1)"
        );
        assert_eq!(
            message("[]"),
            "this is no file of validation cases: its `meta.schema` is not `plimsoll-kv-cases/1`"
        );
        assert_eq!(
            message(&case(r#","max_num_seqs":-1"#)),
            "case 0 (a): `max_num_seqs` must be a whole number up to 10^9"
        );
        assert_eq!(
            message(&case("").replace("0.9}", "9}")),
            "case 0 (a): `memory_knob.value` must be a share; it is 9"
        );
        assert_eq!(
            message(&case("").replace(r#""engine":"vllm","#, "")),
            "case 0 (a): `engine` is missing"
        );
    }
}
