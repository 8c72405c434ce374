//! The work of a step: bytes and operations of one device, from the model's shapes alone.

use plimsoll_fleet::{Accelerator, Architecture, Mixer, Mlp, Recurrent, Role};
use plimsoll_memory::{Format, MemoryError, Placement, shards};

use crate::rates::Term;
use crate::step::Batch;

/// What a step makes one device read and compute, whatever device it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Devices that share each layer.
    pub tensor: f64,
    /// Batches in flight, one in each pipeline stage.
    pub pipeline: f64,
    /// Copies of the attention that share the experts.
    pub attention_replicas: f64,
    /// Decoder layers, over all stages.
    pub layers: f64,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Matrices in the weights' format.
    pub quantised: Gemm,
    /// Matrices that stay in 16 bits.
    pub plain: Gemm,
    /// The output head, for tokens that are sampled.
    pub head: Gemm,
    /// Routed experts.
    pub experts: Option<Experts>,
    /// Attention, by kind of layer.
    pub attention: Vec<AttentionWork>,
    /// Layers with a recurrent state.
    pub recurrent_layers: f64,
    /// Recurrent state of one sequence, over all layers.
    pub state_bytes: f64,
    /// Sums over the group of devices that a token's way through the model takes.
    pub reductions: f64,
    /// The largest step that graphs were captured for; none where nothing is captured.
    pub graph_tokens: Option<f64>,
    /// What reading a cached token for a decode takes in a step with prompts, where one in a step of decodes alone takes one: more where one kernel
    /// serves both.
    pub mixed_kv: f64,
    /// Of the time that the matrices take for a token, the share which those beyond 2,048 of a step save: large products waste less.
    pub large_saves: f64,
    /// Numbers of a LoRA adapter that one sequence reads and multiplies, over all layers.
    pub adapter: Gemm,
}

/// Matrices that every token passes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gemm {
    /// Read once a step.
    pub bytes: f64,
    /// Operations of one token.
    pub flops: f64,
}

impl Gemm {
    fn add(&mut self, bytes: f64, flops: f64) {
        self.bytes += bytes;
        self.flops += flops;
    }
}

/// Routed experts, all layers alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experts {
    /// Layers that have them.
    pub layers: f64,
    /// Experts of a layer.
    pub count: f64,
    /// Experts of a layer on one device.
    pub local: f64,
    /// Experts a token is routed to.
    pub per_token: f64,
    /// Bytes of one expert of one layer on one device.
    pub bytes: f64,
    /// Operations of one token in one expert of one layer on one device.
    pub flops: f64,
    /// Devices that share the experts whole.
    pub group: f64,
}

/// Attention layers of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionWork {
    /// How many.
    pub layers: f64,
    /// Cached bytes of one token in one layer on one device.
    pub kv_bytes: f64,
    /// Operations of one query token and one cached token in prefill.
    pub prefill_flops: f64,
    /// The same while decoding.
    pub decode_flops: f64,
    /// How far back it sees.
    pub window: Option<f64>,
}

/// Tokens of a step up to which constants were fitted; larger ones are rare.
pub const LARGE_STEP: f64 = 2048.0;

/// What steps make one device do, whatever time it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Bytes read from its memory.
    pub bytes: f64,
    /// Operations.
    pub flops: f64,
}

/// How a replica is laid out, beyond its placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// How weights are shared.
    pub placement: Placement,
    /// How they are stored.
    pub format: Format,
    /// Bytes of a cached number.
    pub kv_element_bytes: u64,
    /// Copies of the attention, each with its own sequences, that share the experts.
    pub attention_replicas: u64,
    /// Rank of the adapters, where sequences use them.
    pub lora_rank: Option<u64>,
    /// The largest step that graphs were captured for; none where nothing is captured.
    pub graph_tokens: Option<u64>,
}

impl Work {
    /// The work of a model laid out like this.
    pub fn of(model: &Architecture, layout: &Layout) -> Result<Self, MemoryError> {
        let Layout { placement, format, kv_element_bytes, .. } = *layout;
        let tensor = placement.tensor as f64;
        let mut work = Self {
            tensor,
            pipeline: placement.pipeline as f64,
            attention_replicas: layout.attention_replicas.max(1) as f64,
            layers: model.layers.len() as f64,
            hidden: model.hidden_size as f64,
            quantised: Gemm::default(),
            plain: Gemm::default(),
            head: Gemm::default(),
            experts: experts(model, &placement),
            attention: Vec::new(),
            recurrent_layers: 0.0,
            state_bytes: 0.0,
            reductions: 0.0,
            graph_tokens: layout.graph_tokens.map(|n| n as f64),
            mixed_kv: 1.0,
            large_saves: 0.0,
            adapter: Gemm::default(),
        };
        for shard in shards(model, &placement, format)? {
            let numbers = shard.rows as f64 * shard.columns as f64 * shard.copies as f64;
            let (bytes, flops) = (shard.bytes.get() as f64, 2.0 * numbers);
            match shard.tensor.role {
                Role::Head => work.head.add(bytes, flops),
                Role::Embedding if model.tied => work.head.add(bytes, flops),
                // Rows of an embedding are looked up, not read whole.
                Role::Embedding | Role::Vision => {}
                Role::ExpertUp | Role::ExpertDown => {
                    if let Some(experts) = &mut work.experts {
                        let share = experts.layers * experts.local;
                        experts.bytes += bytes / share;
                        experts.flops += flops / share;
                    }
                }
                _ if shard.quantised => work.quantised.add(bytes, flops),
                _ => work.plain.add(bytes, flops),
            }
            let adapted = matches!(
                shard.tensor.role,
                Role::Query | Role::KeyValue | Role::Output | Role::Up | Role::Down
            );
            if let Some(rank) = layout.lora_rank.filter(|_| adapted) {
                let ends = (shard.rows + shard.columns) as f64 * rank as f64;
                work.adapter.add(2.0 * ends, 2.0 * ends);
            }
        }
        for layer in &model.layers {
            work.mixer(&layer.mixer, tensor, placement.context as f64, kv_element_bytes as f64);
            let mlp = !matches!(layer.mlp, Mlp::None);
            let mixer = !matches!(layer.mixer, Mixer::None);
            // A sum after the mixer and one after the MLP; attention copies do not sum theirs.
            let mixed = mixer && placement.tensor > 1;
            let summed = mlp && (placement.tensor > 1 || placement.expert > 1);
            work.reductions += f64::from(u8::from(mixed)) + f64::from(u8::from(summed));
        }
        Ok(work)
    }

    fn mixer(&mut self, mixer: &Mixer, tensor: f64, context: f64, element: f64) {
        if let Mixer::Recurrent(r) = mixer {
            self.state_bytes += state_bytes(r) / tensor;
            self.recurrent_layers += 1.0;
        }
        let Some(kind) = attention(mixer, tensor, context, element) else { return };
        let same = |k: &AttentionWork| AttentionWork { layers: kind.layers, ..*k } == kind;
        match self.attention.iter_mut().find(|k| same(k)) {
            Some(known) => known.layers += 1.0,
            None => self.attention.push(kind),
        }
    }

    /// Pipeline stages and attention copies that have something to do: a sequence is in one of them at a time.
    pub fn spread(&self, sequences: f64) -> (f64, f64) {
        let copies = self.attention_replicas.min(sequences).max(1.0);
        (self.pipeline.min(sequences / copies).max(1.0), copies)
    }

    /// What so many steps make one device do, that carry these tokens and contexts together; experts are hit as in steps that are all alike.
    pub fn traffic(&self, steps: f64, batch: &Batch) -> Traffic {
        let copies = self.pipeline * self.attention_replicas;
        let tokens = batch.prefill + batch.decodes;
        let sampled = batch.decodes + batch.prompts.min(batch.prefill);
        let mut traffic = Traffic {
            bytes: steps * (self.quantised.bytes + self.plain.bytes + self.head.bytes),
            flops: tokens / copies * (self.quantised.flops + self.plain.flops)
                + sampled / copies * self.head.flops,
        };
        if let Some(e) = &self.experts {
            let each = (tokens / steps.max(1.0)).max(1.0);
            traffic.bytes += steps * e.layers * e.local * e.share_hit(each) * e.bytes;
            traffic.flops += e.layers * tokens * e.per_token * e.local / e.count * e.flops;
        }
        for a in &self.attention {
            let seen = a.window.map_or(batch.context, |w| batch.context.min(w * batch.decodes));
            let pairs = a.window.map_or(batch.pairs, |w| batch.pairs.min(w * batch.prefill));
            traffic.bytes += a.layers * a.kv_bytes * seen / copies;
            traffic.flops += a.layers * (pairs * a.prefill_flops + seen * a.decode_flops) / copies;
        }
        traffic
    }

    /// Whether its steps depend on a constant at all.
    pub fn uses(&self, term: Term) -> bool {
        match term {
            Term::ExpertFlops | Term::ExpertBytes | Term::ExpertLayerSeconds => {
                self.experts.is_some()
            }
            Term::RecurrentLayerSeconds => self.recurrent_layers > 0.0,
            Term::ReduceSeconds | Term::ReduceBytes => self.reductions > 0.0,
            Term::AttentionFlops | Term::AttentionRamp | Term::KvBytes => {
                !self.attention.is_empty()
            }
            _ => true,
        }
    }

    /// Bytes of all weights that a step of many tokens reads on one device.
    pub fn weight_bytes(&self) -> f64 {
        let experts = self.experts.map_or(0.0, |e| e.layers * e.local * e.bytes);
        self.quantised.bytes + self.plain.bytes + self.head.bytes + experts
    }

    /// Bytes that a step of one token reads at least: of the experts only those it is routed to.
    pub fn weight_bytes_least(&self) -> f64 {
        self.weight_bytes_at(1.0)
    }

    /// Bytes of weights that a step of so many tokens is expected to read on the fullest device.
    pub fn weight_bytes_at(&self, tokens: f64) -> f64 {
        let experts =
            self.experts.map_or(0.0, |e| e.layers * e.local * e.share_hit(tokens) * e.bytes);
        self.quantised.bytes + self.plain.bytes + self.head.bytes + experts
    }

    /// Cached bytes of one context token on one device, where no window ends.
    pub fn kv_bytes(&self) -> f64 {
        self.attention.iter().map(|a| a.layers * a.kv_bytes).sum()
    }
}

/// The attention of one layer, on one of so many devices.
pub(crate) fn attention(
    mixer: &Mixer,
    tensor: f64,
    context: f64,
    element: f64,
) -> Option<AttentionWork> {
    match mixer {
        Mixer::Attention(a) | Mixer::Cross(a) => {
            let heads = (a.heads as f64 / tensor).max(1.0);
            let kv_heads = (a.kv_heads as f64 / tensor).ceil();
            let width = (a.head_dim + a.v_head_dim) as f64;
            let pair = 2.0 * heads * width;
            Some(AttentionWork {
                layers: 1.0,
                kv_bytes: kv_heads * width * element / context,
                prefill_flops: pair,
                decode_flops: pair / context,
                window: a.window.map(|w| w.get() as f64),
            })
        }
        Mixer::Latent(l) => {
            let heads = (l.heads as f64 / tensor).max(1.0);
            let latent = (l.kv_rank + l.rope_dim) as f64;
            let index = l.indexer.as_ref().map_or(0.0, |i| i.head_dim as f64);
            Some(AttentionWork {
                layers: 1.0,
                kv_bytes: (latent + index) * element / context,
                prefill_flops: 2.0 * heads * (l.nope_dim + l.rope_dim + l.v_dim) as f64,
                // Decoding works on the latent itself, for every head.
                decode_flops: 2.0 * heads * (latent + l.kv_rank as f64) / context,
                window: None,
            })
        }
        Mixer::Recurrent(_) | Mixer::None => None,
    }
}

/// The recurrent state of one sequence in one layer.
pub(crate) fn state_bytes(r: &Recurrent) -> f64 {
    r.state as f64 * 4.0 + r.convolution as f64 * 2.0
}

impl Experts {
    /// Share of a device's experts that so many tokens hit, were they routed evenly.
    pub fn share_hit(&self, tokens: f64) -> f64 {
        let miss = 1.0 - (self.per_token / self.count).min(1.0);
        1.0 - libm::pow(miss, tokens)
    }
}

fn experts(model: &Architecture, placement: &Placement) -> Option<Experts> {
    let mut found: Option<Experts> = None;
    for layer in &model.layers {
        if let Mlp::Experts { count, per_token, .. } = layer.mlp {
            let local = count.div_ceil(placement.expert.max(1)) as f64;
            let group = placement.expert as f64;
            let (count, per_token) = (count as f64, per_token as f64);
            let (bytes, flops) = (0.0, 0.0);
            let kind = Experts { layers: 0.0, count, local, per_token, bytes, flops, group };
            found.get_or_insert(kind).layers += 1.0;
        }
    }
    found
}

/// The arithmetic peak of a format on a device: formats that a device does not compute in are expanded to 16 bits first.
pub fn peak_of(accelerator: &Accelerator, format: Format) -> Option<f64> {
    let peak =
        |name: &str| accelerator.peaks.iter().find(|p| p.format == name).map(|p| p.rate.get());
    let plain = peak("bf16").or_else(|| peak("fp16"));
    match format {
        Format::Bf16 | Format::Int4 | Format::Nf4 => plain,
        Format::Fp8Tensor | Format::Fp8Channel | Format::Fp8Block => peak("fp8").or(plain),
        Format::Int8 => peak("int8").or(plain),
        // Activations stay in eight bits where the device has a four-bit unit, in sixteen otherwise.
        Format::Mxfp4 => peak("fp4").and(peak("fp8")).or(plain),
        Format::Nvfp4 => peak("fp4").or(plain),
    }
}
