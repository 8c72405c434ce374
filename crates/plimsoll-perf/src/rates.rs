//! How fast devices and engines do the work: the constants, and which of them a pool uses.

use plimsoll_fleet::Accelerator;
use plimsoll_memory::Format;

use crate::work::peak_of;

/// What a constant multiplies. Efficiencies are shares of a datasheet peak; times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// Matrix products: share of the arithmetic peak.
    GemmFlops,
    /// Matrix products: share of the memory bandwidth.
    GemmBytes,
    /// Routed experts: share of the arithmetic peak.
    ExpertFlops,
    /// Routed experts: share of the memory bandwidth.
    ExpertBytes,
    /// Prefill attention: share of the 16-bit arithmetic peak on long prompts.
    AttentionFlops,
    /// Prefill attention: tokens of context that each prompt token seems to have on top.
    AttentionRamp,
    /// Cached keys and values: share of the memory bandwidth.
    KvBytes,
    /// A sum over a group of devices: what it takes before the first byte, for two devices.
    ReduceSeconds,
    /// A sum over a group of devices: share of the link.
    ReduceBytes,
    /// Each layer, whatever it holds.
    LayerSeconds,
    /// Each layer of routed experts, on top.
    ExpertLayerSeconds,
    /// Each layer with a recurrent state, on top.
    RecurrentLayerSeconds,
    /// Each step.
    StepSeconds,
    /// Each sequence of a step.
    SequenceSeconds,
    /// Each prompt token of a step, layer by layer: what is neither a matrix product nor attention.
    TokenSeconds,
    /// Each layer of a step that is launched kernel by kernel, on the host: it carries more tokens than graphs were captured for.
    EagerSeconds,
    /// Each layer of a step whose graphs are launched in pieces, on the host: it carries prompt tokens, but few.
    PieceSeconds,
    /// A request before it reaches the engine: HTTP, tokeniser, queues between processes.
    PathSeconds,
    /// Each generated token, in the process that sends it to the client.
    PathTokenSeconds,
    /// Clients of a closed loop that start together stay together: the share of the others' prompts that half of them wait for.
    WaveShare,
    /// Each step, on the host of an asynchronous engine: deciding what it carries, its inputs, its bookkeeping. Hidden while the device is busy.
    LaunchSeconds,
    /// Each sequence of a step, on the same host.
    LaunchSequenceSeconds,
    /// Sequences of a decode step that are shorter than the longest: the share of a cached token that each token they lack still takes.
    UnevenShare,
}

impl Term {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::GemmFlops,
        Self::GemmBytes,
        Self::ExpertFlops,
        Self::ExpertBytes,
        Self::AttentionFlops,
        Self::AttentionRamp,
        Self::KvBytes,
        Self::ReduceSeconds,
        Self::ReduceBytes,
        Self::LayerSeconds,
        Self::ExpertLayerSeconds,
        Self::RecurrentLayerSeconds,
        Self::StepSeconds,
        Self::SequenceSeconds,
        Self::TokenSeconds,
        Self::EagerSeconds,
        Self::PieceSeconds,
        Self::PathSeconds,
        Self::PathTokenSeconds,
        Self::WaveShare,
        Self::LaunchSeconds,
        Self::LaunchSequenceSeconds,
        Self::UnevenShare,
    ];

    /// As files and tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GemmFlops => "gemm_flops",
            Self::GemmBytes => "gemm_bytes",
            Self::ExpertFlops => "expert_flops",
            Self::ExpertBytes => "expert_bytes",
            Self::AttentionFlops => "attention_flops",
            Self::AttentionRamp => "attention_ramp",
            Self::KvBytes => "kv_bytes",
            Self::ReduceSeconds => "reduce_seconds",
            Self::ReduceBytes => "reduce_bytes",
            Self::LayerSeconds => "layer_seconds",
            Self::ExpertLayerSeconds => "expert_layer_seconds",
            Self::RecurrentLayerSeconds => "recurrent_layer_seconds",
            Self::StepSeconds => "step_seconds",
            Self::SequenceSeconds => "sequence_seconds",
            Self::TokenSeconds => "token_seconds",
            Self::EagerSeconds => "eager_seconds",
            Self::PieceSeconds => "piece_seconds",
            Self::PathSeconds => "path_seconds",
            Self::PathTokenSeconds => "path_token_seconds",
            Self::WaveShare => "wave_share",
            Self::LaunchSeconds => "launch_seconds",
            Self::LaunchSequenceSeconds => "launch_sequence_seconds",
            Self::UnevenShare => "uneven_share",
        }
    }

    /// The unit its value is in.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::AttentionRamp => "tokens",
            Self::WaveShare | Self::UnevenShare => "share",
            _ if self.is_efficiency() => "of peak",
            _ => "s",
        }
    }

    /// Whether it is a share of a peak, which physics keeps at one or below.
    pub const fn is_efficiency(self) -> bool {
        matches!(
            self,
            Self::GemmFlops
                | Self::GemmBytes
                | Self::ExpertFlops
                | Self::ExpertBytes
                | Self::AttentionFlops
                | Self::KvBytes
                | Self::ReduceBytes
        )
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// A number format as constants are keyed by it.
pub fn dtype(format: Format) -> &'static str {
    match format {
        Format::Bf16 => "bf16",
        Format::Fp8Tensor | Format::Fp8Channel | Format::Fp8Block | Format::Int8 => "fp8",
        Format::Int4 | Format::Nf4 => "int4",
        Format::Mxfp4 => "mxfp4",
        Format::Nvfp4 => "nvfp4",
    }
}

/// Devices that share kernels and constants; none where nothing of the kind was measured.
pub fn family(accelerator: &Accelerator) -> Option<&'static str> {
    Some(match accelerator.architecture.as_str() {
        "sm_80" | "sm_86" | "sm_87" => "ampere",
        "sm_89" => "ada",
        "sm_90" => "hopper",
        "sm_100" | "sm_103" => "blackwell",
        "sm_120" | "sm_121" => "blackwell-pcie",
        "gfx942" | "gfx950" => "cdna3",
        _ => return None,
    })
}

/// The datasheet of a device, in bytes and operations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datasheet {
    /// Memory bandwidth.
    pub bandwidth: f64,
    /// Peak in the weights' format.
    pub peak: f64,
    /// Peak in 16 bits.
    pub peak_plain: f64,
    /// The link to the other devices of a group, one direction.
    pub link: f64,
}

impl Datasheet {
    /// Of a device that computes in this format; none where it has no 16-bit peak.
    pub fn of(accelerator: &Accelerator, format: Format) -> Option<Self> {
        // Without a figure a fourth generation x16 slot is assumed, the slowest link of current servers.
        let link = accelerator.interconnect.bandwidth.map_or(32e9, |b| b.get());
        Some(Self {
            bandwidth: accelerator.bandwidth.get(),
            peak: peak_of(accelerator, format)?,
            peak_plain: peak_of(accelerator, Format::Bf16)?,
            link,
        })
    }
}

/// The constants of one pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The device's peaks.
    pub sheet: Datasheet,
    /// By term.
    pub terms: [f64; Term::ALL.len()],
    /// 16-bit matrices beside quantised ones: shares of the arithmetic peak and of the bandwidth.
    pub plain: [f64; 2],
}

impl Rates {
    /// One constant.
    #[inline]
    pub fn get(&self, term: Term) -> f64 {
        self.terms[term as usize]
    }

    /// Sets a constant; a share of a peak stays at one or below. Matrices in 16 bits beside quantised ones are moved by the same factor.
    pub fn set(&mut self, term: Term, value: f64) {
        let value = if term.is_efficiency() { value.min(1.0) } else { value };
        let factor = value / self.get(term);
        match term {
            Term::GemmFlops => self.plain[0] = (self.plain[0] * factor).min(1.0),
            Term::GemmBytes => self.plain[1] = (self.plain[1] * factor).min(1.0),
            _ => {}
        }
        self.terms[term as usize] = value;
    }
}
