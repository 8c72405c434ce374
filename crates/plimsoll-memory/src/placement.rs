//! How one replica is spread over devices.

use plimsoll_fleet::{Architecture, Mixer};

/// Devices of one replica and what they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Devices that share each layer.
    pub tensor: u64,
    /// Groups of devices that share the layers.
    pub pipeline: u64,
    /// Devices that share the experts whole; one leaves experts split as layers are.
    pub expert: u64,
    /// Devices that share a context while decoding.
    pub context: u64,
}

/// Why a model cannot be spread like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Heads come whole.
    #[error("{heads} attention heads do not divide among {tensor} devices")]
    Heads {
        /// How many heads.
        heads: u64,
        /// How many devices.
        tensor: u64,
    },
    /// A stage holds at least one layer.
    #[error("{layers} layers do not fill {pipeline} pipeline stages")]
    Stages {
        /// How many layers.
        layers: u64,
        /// How many stages.
        pipeline: u64,
    },
    /// Experts come whole.
    #[error("{experts} experts do not divide among {expert} devices")]
    Experts {
        /// How many experts.
        experts: u64,
        /// How many devices.
        expert: u64,
    },
    /// Key-value heads are split evenly or replicated evenly.
    #[error(
        "{heads} key-value heads neither divide among {tensor} devices nor are divided by them"
    )]
    KvHeads {
        /// How many heads.
        heads: u64,
        /// How many devices.
        tensor: u64,
    },
    /// Devices that share a context are part of the tensor-parallel group.
    #[error("{context} devices cannot share a context within a group of {tensor}")]
    Context {
        /// How many share it.
        context: u64,
        /// How many there are.
        tensor: u64,
    },
    /// The group that shares experts is the tensor-parallel group, or several of them.
    #[error("experts shared by {expert} devices do not go with groups of {tensor}")]
    ExpertGroup {
        /// How many share them.
        expert: u64,
        /// How many there are.
        tensor: u64,
    },
    /// There is nothing to share.
    #[error("the model has no experts to share among {expert} devices")]
    NoExperts {
        /// How many.
        expert: u64,
    },
    /// A degree of zero.
    #[error("a degree of parallelism is at least 1")]
    Zero,
    /// A number past 64 bits.
    #[error("the model is larger than 2^64 bytes")]
    TooLarge,
}

impl Placement {
    /// One device.
    pub const fn single() -> Self {
        Self { tensor: 1, pipeline: 1, expert: 1, context: 1 }
    }

    /// A tensor-parallel group.
    pub const fn tensor(tensor: u64) -> Self {
        Self { tensor, pipeline: 1, expert: 1, context: 1 }
    }

    /// Whether the model can be spread like this.
    pub fn check(&self, model: &Architecture) -> Result<(), MemoryError> {
        let Self { tensor, pipeline, expert, context } = *self;
        if tensor == 0 || pipeline == 0 || expert == 0 || context == 0 {
            return Err(MemoryError::Zero);
        }
        for layer in model.layers.iter().chain(&model.draft_layers) {
            let heads = match &layer.mixer {
                Mixer::Attention(a) | Mixer::Cross(a) => a.heads,
                Mixer::Latent(l) => l.heads,
                Mixer::Recurrent(_) | Mixer::None => continue,
            };
            if !heads.is_multiple_of(tensor) {
                return Err(MemoryError::Heads { heads, tensor });
            }
        }
        if !tensor.is_multiple_of(context) {
            return Err(MemoryError::Context { context, tensor });
        }
        for layer in &model.layers {
            if let Mixer::Attention(a) = &layer.mixer
                && !a.kv_heads.is_multiple_of(tensor)
                && !tensor.is_multiple_of(a.kv_heads)
            {
                return Err(MemoryError::KvHeads { heads: a.kv_heads, tensor });
            }
        }
        let experts =
            model.layers.iter().any(|l| matches!(l.mlp, plimsoll_fleet::Mlp::Experts { .. }));
        if expert > 1 && !experts {
            return Err(MemoryError::NoExperts { expert });
        }
        // One degree for all: an engine's expert group is its tensor group, times its attention replicas.
        if expert > 1 && !expert.is_multiple_of(tensor) {
            return Err(MemoryError::ExpertGroup { expert, tensor });
        }
        let layers = model.layers.len() as u64;
        if layers < pipeline {
            return Err(MemoryError::Stages { layers, pipeline });
        }
        for layer in &model.layers {
            if let plimsoll_fleet::Mlp::Experts { count, .. } = layer.mlp
                && !count.is_multiple_of(expert)
            {
                return Err(MemoryError::Experts { experts: count, expert });
            }
        }
        Ok(())
    }

    /// The stage that holds a layer: stages take consecutive layers, the first ones one more where they do not
    /// divide evenly.
    pub fn stage_of(&self, layer: u64, layers: u64) -> u64 {
        let (each, more) = (layers / self.pipeline, layers % self.pipeline);
        let boundary = more * (each + 1);
        match layer {
            _ if layer < boundary => layer / (each + 1),
            _ if each > 0 => more + (layer - boundary) / each,
            _ => self.pipeline - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 layers on 4 stages: 3, 3, 2, 2.
    #[test]
    fn stages_are_filled_from_the_front() {
        let placement = Placement { pipeline: 4, ..Placement::single() };
        let stages: Vec<u64> = (0..10).map(|layer| placement.stage_of(layer, 10)).collect();
        assert_eq!(stages, [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
    }
}
