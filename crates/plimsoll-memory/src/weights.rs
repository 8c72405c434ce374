//! Weights per device, tensor by tensor.

use plimsoll_fleet::{Architecture, Mixer, Part, Role, Tensor};
use plimsoll_units::Bytes;

use crate::placement::{MemoryError, Placement};

/// How weights are stored. Embeddings, heads, norms, routers and vision towers stay in 16 bits in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Two bytes a number (also fp16).
    Bf16,
    /// One byte, one scale of four bytes a tensor.
    Fp8Tensor,
    /// One byte, one scale of four bytes an output channel.
    Fp8Channel,
    /// One byte, one scale of four bytes a block of 128 x 128.
    Fp8Block,
    /// One byte, one scale of four bytes an output channel.
    Int8,
    /// Four bits in groups of 128 inputs, each with a scale of two bytes and a zero of four bits (AWQ, GPTQ).
    Int4,
    /// Four bits in blocks of 64, each with a scale of four bytes (bitsandbytes, without double quantisation).
    Nf4,
    /// Four bits in blocks of 32 inputs, each with a scale of one byte; only experts, where there are any, whose inner
    /// width is padded to 256.
    Mxfp4,
    /// Four bits in blocks of 16 inputs, each with a scale of one byte; two scales of four bytes a tensor.
    Nvfp4,
}

/// What the fullest device holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// The embedding and the output head.
    pub vocabulary: Bytes,
    /// Attention, MLPs, norms: all layers but their experts.
    pub layers: Bytes,
    /// Routed experts.
    pub experts: Bytes,
    /// Extra prediction layers.
    pub draft: Bytes,
    /// The vision tower.
    pub vision: Bytes,
}

impl Weights {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.vocabulary + self.layers + self.experts + self.draft + self.vision
    }

    fn add(&mut self, tensor: &Tensor, bytes: Bytes) {
        let line = match (tensor.part, tensor.role) {
            (Part::Draft, _) => &mut self.draft,
            (Part::Vision, _) => &mut self.vision,
            (Part::Text, Role::Embedding | Role::Head) => &mut self.vocabulary,
            (Part::Text, Role::ExpertUp | Role::ExpertDown) => &mut self.experts,
            (Part::Text, _) => &mut self.layers,
        };
        *line += bytes;
    }
}

/// What the fullest device of a replica holds, the vision tower included; draft layers only `with_draft`.
pub fn weights(
    model: &Architecture,
    placement: &Placement,
    format: Format,
    with_draft: bool,
) -> Result<Weights, MemoryError> {
    placement.check(model)?;
    let has_experts = has_experts(model);
    let layers = model.layers.len() as u64;
    let last = placement.pipeline - 1;
    let mut stages = vec![
        Weights::default();
        usize::try_from(placement.pipeline).unwrap_or(usize::MAX).min(4096)
    ];
    for tensor in model.tensors.iter().filter(|t| with_draft || t.part != Part::Draft) {
        let stage = match (tensor.part, tensor.layer, tensor.role) {
            (Part::Text, Some(layer), _) => placement.stage_of(u64::from(layer), layers),
            (Part::Text, None, Role::Embedding) | (Part::Vision, _, _) => 0,
            // The final norm and the head come last, and so do layers that predict from them.
            _ => last,
        };
        let bytes = tensor_bytes(model, tensor, placement, format, has_experts)
            .ok_or(MemoryError::TooLarge)?;
        if let Some(stage) = stages.get_mut(usize::try_from(stage).unwrap_or(0)) {
            stage.add(tensor, Bytes::new(bytes));
        }
        // A tied head is the embedding, which the last stage needs too.
        let tied_copy =
            model.tied && last > 0 && tensor.part == Part::Text && tensor.role == Role::Embedding;
        if tied_copy && let Some(stage) = stages.last_mut() {
            stage.add(tensor, Bytes::new(bytes));
        }
    }
    Ok(stages.into_iter().max_by_key(|stage| stage.total()).unwrap_or_default())
}

/// What one device holds of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard<'a> {
    /// The whole.
    pub tensor: &'a Tensor,
    /// Its outputs here.
    pub rows: u64,
    /// Its inputs here.
    pub columns: u64,
    /// How many alike are here.
    pub copies: u64,
    /// What all of them occupy.
    pub bytes: Bytes,
    /// Whether the format quantises it; otherwise it stays in 16 bits.
    pub quantised: bool,
}

/// What one device of a tensor-parallel group holds of every text tensor, over all pipeline stages.
pub fn shards<'a>(
    model: &'a Architecture,
    placement: &Placement,
    format: Format,
) -> Result<Vec<Shard<'a>>, MemoryError> {
    placement.check(model)?;
    let has_experts = has_experts(model);
    let text = model.tensors.iter().filter(|t| t.part == Part::Text);
    text.map(|tensor| {
        let (rows, columns, copies) =
            shard(model, tensor, placement).ok_or(MemoryError::TooLarge)?;
        let bytes = tensor_bytes(model, tensor, placement, format, has_experts);
        let bytes = Bytes::new(bytes.ok_or(MemoryError::TooLarge)?);
        let quantised = is_quantised(format, tensor.role, has_experts);
        Ok(Shard { tensor, rows, columns, copies, bytes, quantised })
    })
    .collect()
}

fn has_experts(model: &Architecture) -> bool {
    model.tensors.iter().any(|t| matches!(t.role, Role::ExpertUp | Role::ExpertDown))
}

fn is_quantised(format: Format, role: Role, has_experts: bool) -> bool {
    match (format, role) {
        (Format::Bf16, _) => false,
        (Format::Mxfp4, role) if has_experts => matches!(role, Role::ExpertUp | Role::ExpertDown),
        (
            _,
            Role::Query
            | Role::KeyValue
            | Role::Output
            | Role::Replicated
            | Role::Up
            | Role::Down
            | Role::ExpertUp
            | Role::ExpertDown,
        ) => true,
        _ => false,
    }
}

fn tensor_bytes(
    model: &Architecture,
    tensor: &Tensor,
    placement: &Placement,
    format: Format,
    has_experts: bool,
) -> Option<u64> {
    let (mut rows, mut columns, copies) = shard(model, tensor, placement)?;
    if !is_quantised(format, tensor.role, has_experts) {
        return rows.checked_mul(columns)?.checked_mul(2)?.checked_mul(copies);
    }
    if format == Format::Mxfp4 {
        // The inner width, gate and up beside each other, is padded after it was split.
        match tensor.role {
            Role::ExpertUp => rows = rows.checked_next_multiple_of(512)?,
            Role::ExpertDown => columns = columns.checked_next_multiple_of(256)?,
            _ => {}
        }
    }
    let numbers = rows.checked_mul(columns)?;
    let half = numbers.div_ceil(2);
    let blocks = |size: u64| rows.checked_mul(columns.div_ceil(size));
    let one = match format {
        Format::Bf16 => numbers.checked_mul(2)?,
        Format::Fp8Tensor => numbers.checked_add(4)?,
        Format::Fp8Channel | Format::Int8 => numbers.checked_add(rows.checked_mul(4)?)?,
        Format::Fp8Block => numbers
            .checked_add(rows.div_ceil(128).checked_mul(columns.div_ceil(128))?.checked_mul(4)?)?,
        Format::Int4 => {
            let groups = blocks(128)?;
            half.checked_add(groups.checked_mul(2)?)?.checked_add(groups.div_ceil(2))?
        }
        Format::Nf4 => half.checked_add(numbers.div_ceil(64).checked_mul(4)?)?,
        Format::Mxfp4 => half.checked_add(blocks(32)?)?,
        Format::Nvfp4 => half.checked_add(blocks(16)?)?.checked_add(8)?,
    };
    one.checked_mul(copies)
}

/// Rows, columns and copies of a tensor on one device; what does not divide is rounded up.
fn shard(model: &Architecture, tensor: &Tensor, placement: &Placement) -> Option<(u64, u64, u64)> {
    let Placement { tensor: devices, expert, .. } = *placement;
    let (rows, columns, copies) = (tensor.rows, tensor.columns, tensor.copies);
    Some(match tensor.role {
        // Engines pad the vocabulary to 64 rows before they share it.
        Role::Embedding | Role::Head => {
            (rows.checked_next_multiple_of(64)?.div_ceil(devices), columns, copies)
        }
        Role::Query | Role::Up | Role::Convolution => (rows.div_ceil(devices), columns, copies),
        Role::KeyValue => {
            let heads = kv_heads(model, tensor).unwrap_or(devices);
            // Beyond their number heads are replicated, not split.
            (rows.div_ceil(devices.min(heads)), columns, copies)
        }
        Role::Output | Role::Down => (rows, columns.div_ceil(devices), copies),
        Role::ExpertUp | Role::ExpertDown if expert > 1 => (rows, columns, copies.div_ceil(expert)),
        // Split inside, along the inner width.
        Role::ExpertUp => (rows.div_ceil(devices), columns, copies),
        Role::ExpertDown => (rows, columns.div_ceil(devices), copies),
        Role::Router | Role::Replicated | Role::Vector | Role::Vision => (rows, columns, copies),
    })
}

fn kv_heads(model: &Architecture, tensor: &Tensor) -> Option<u64> {
    let layers = if tensor.part == Part::Draft { &model.draft_layers } else { &model.layers };
    match &layers.get(tensor.layer? as usize)?.mixer {
        Mixer::Attention(a) | Mixer::Cross(a) => Some(a.kv_heads),
        _ => None,
    }
}
