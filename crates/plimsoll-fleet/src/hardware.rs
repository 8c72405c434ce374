//! Devices and the nodes they are bought in.

use plimsoll_units::{Bytes, BytesPerSecond, OpsPerSecond, Watts};

use crate::fact::Fact;

/// One kind of device.
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    /// Such as `H100-SXM`.
    pub name: String,
    /// Other names, matched in any case.
    pub aliases: Vec<String>,
    /// Who makes it.
    pub vendor: String,
    /// The vendor's name of its generation, such as `sm_90`.
    pub architecture: String,
    /// As marketed.
    pub memory: Bytes,
    /// The total that the driver or framework reports, which is what engines budget from.
    pub memory_reported: Option<Bytes>,
    /// Where that was reported.
    pub memory_reported_source: Option<String>,
    /// Device memory bandwidth.
    pub bandwidth: BytesPerSecond,
    /// Dense arithmetic peaks by number format; a format that is absent is not supported.
    pub peaks: Vec<Peak>,
    /// How devices of one domain reach each other.
    pub interconnect: Interconnect,
    /// The host link, such as `Gen5 x16`.
    pub pcie: Option<String>,
    /// The board's power limit.
    pub power: Option<Watts>,
    /// How the figures were obtained: `read` or `verified`.
    pub confidence: String,
    /// Source and date.
    pub fact: Fact,
}

impl Accelerator {
    /// The memory engines budget from: what is reported where that is known, otherwise what is marketed.
    pub fn memory_total(&self) -> Bytes {
        self.memory_reported.unwrap_or(self.memory)
    }
}

/// A dense arithmetic peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Peak {
    /// `bf16`, `fp16`, `fp8`, `int8` or `fp4`.
    pub format: &'static str,
    /// Without sparsity.
    pub rate: OpsPerSecond,
}

/// The link between devices of one scale-up domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Interconnect {
    /// Such as `NVLink 4`.
    pub name: String,
    /// Per device, one direction.
    pub bandwidth: Option<BytesPerSecond>,
    /// Devices in a domain: a tensor-parallel group stays inside one.
    pub devices: Option<u32>,
}

/// A node as it is rented or bought.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Such as `p5.48xlarge`.
    pub name: String,
    /// Whose; `owned` for hardware one buys.
    pub cloud: String,
    /// The accelerator's name.
    pub accelerator: String,
    /// How many of them.
    pub count: u32,
    /// Source and date.
    pub fact: Fact,
}
