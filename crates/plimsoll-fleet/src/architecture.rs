//! The shape of a model: what its layers are made of, and every tensor in it.

use plimsoll_units::Tokens;

/// A decoder-only language model's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Architecture {
    /// The `model_type` of its configuration.
    pub family: String,
    /// Width of the residual stream.
    pub hidden_size: u64,
    /// Rows of the output head.
    pub vocab_size: u64,
    /// The decoder's layers, first to last.
    pub layers: Vec<Layer>,
    /// Layers that predict further tokens (MTP), outside the decoder.
    pub draft_layers: Vec<Layer>,
    /// Whether the output head is the embedding.
    pub tied: bool,
    /// The longest context it was made for, where its configuration says so.
    pub context_max: Option<Tokens>,
    /// The number format its configuration names.
    pub dtype: Option<String>,
    /// The quantisation its weights are published in, where its configuration says so.
    pub quantization: Option<String>,
    /// Every tensor, grouped where several are alike.
    pub tensors: Vec<Tensor>,
    /// What was assumed because the configuration does not say it.
    pub notes: Vec<String>,
}

impl Architecture {
    /// Parameters of one part.
    pub fn parameters(&self, part: Part) -> u64 {
        let of_part = self.tensors.iter().filter(|t| t.part == part);
        of_part.fold(0, |sum: u64, t| sum.saturating_add(t.elements()))
    }

    /// Text parameters that one token passes through: all but the experts it is not routed to.
    pub fn parameters_active(&self) -> u64 {
        self.tensors.iter().filter(|t| t.part == Part::Text).fold(0u64, |sum, t| {
            let elements = t.elements();
            let active = match (t.role, t.copies, t.copies_active) {
                (Role::ExpertUp | Role::ExpertDown, copies, active) if copies > 0 => {
                    elements / copies * active
                }
                _ => elements,
            };
            sum.saturating_add(active)
        })
    }
}

/// One layer: something that mixes tokens, something that works on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// How tokens see each other.
    pub mixer: Mixer,
    /// What is done to each.
    pub mlp: Mlp,
}

/// How a layer mixes tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mixer {
    /// Softmax attention with its own keys and values: MHA, GQA, MQA.
    Attention(Attention),
    /// Attention over a compressed latent (MLA).
    Latent(Latent),
    /// Attention to another modality's tokens: nothing per text token is kept.
    Cross(Attention),
    /// A recurrent state of fixed size: Mamba, gated delta net, KDA.
    Recurrent(Recurrent),
    /// None: this layer is an MLP only.
    None,
}

/// Softmax attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Width of a query or key head.
    pub head_dim: u64,
    /// Width of a value head.
    pub v_head_dim: u64,
    /// How far back it sees: a sliding window or chunk.
    pub window: Option<Tokens>,
}

/// Multi-head latent attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latent {
    /// Query heads.
    pub heads: u64,
    /// Rank of the query compression, where there is one.
    pub q_rank: Option<u64>,
    /// Width of the cached latent.
    pub kv_rank: u64,
    /// Part of a head without position.
    pub nope_dim: u64,
    /// Part of a head with position, cached once for all heads.
    pub rope_dim: u64,
    /// Width of a value head.
    pub v_dim: u64,
    /// Sparse attention's own cached keys.
    pub indexer: Option<Indexer>,
}

/// The selector of sparse latent attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexer {
    /// Heads.
    pub heads: u64,
    /// Width of the one key cached per token.
    pub head_dim: u64,
}

/// A recurrent state, in elements per sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrent {
    /// `mamba2`, `gated-delta-net` or `kda`.
    pub kind: &'static str,
    /// The state proper.
    pub state: u64,
    /// The tail of its convolution.
    pub convolution: u64,
}

/// What a layer does to each token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mlp {
    /// One MLP for all.
    Dense {
        /// Inner width.
        intermediate: u64,
    },
    /// A few of many experts.
    Experts {
        /// How many there are.
        count: u64,
        /// How many each token is routed to.
        per_token: u64,
        /// Inner width of one.
        intermediate: u64,
        /// Inner width of what every token passes as well.
        shared: u64,
    },
    /// None: this layer is a mixer only.
    None,
}

/// Which part of a checkpoint a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The language model.
    Text,
    /// Its extra prediction layers.
    Draft,
    /// The vision tower and its projector.
    Vision,
}

/// What a tensor is for, which decides how formats store it and how devices share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Token embedding.
    Embedding,
    /// Output head.
    Head,
    /// Query projections: split by heads.
    Query,
    /// Key and value projections: split by heads, replicated beyond them.
    KeyValue,
    /// Attention output.
    Output,
    /// Compressions and other small projections, on every device.
    Replicated,
    /// Into an MLP: gate and up.
    Up,
    /// Out of an MLP.
    Down,
    /// Into routed experts: the inner width is in the rows.
    ExpertUp,
    /// Out of routed experts: the inner width is in the columns.
    ExpertDown,
    /// Chooses experts.
    Router,
    /// Norms, biases, sinks, decays: vectors.
    Vector,
    /// Depthwise convolutions.
    Convolution,
    /// Anything of a vision tower.
    Vision,
}

/// `copies` equal tensors of `rows` x `columns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// What it is called in a checkpoint, more or less.
    pub name: &'static str,
    /// Which part it belongs to.
    pub part: Part,
    /// What it is for.
    pub role: Role,
    /// The layer, counted within its part.
    pub layer: Option<u32>,
    /// Outputs.
    pub rows: u64,
    /// Inputs.
    pub columns: u64,
    /// How many alike.
    pub copies: u64,
    /// How many of them one token uses.
    pub copies_active: u64,
}

impl Tensor {
    /// Numbers in it; the constructor has checked that they fit.
    pub fn elements(&self) -> u64 {
        self.rows.saturating_mul(self.columns).saturating_mul(self.copies)
    }
}
