//! Engines of every kind.

use plimsoll_perf::StepModel;

use crate::drive::{Engine, Gauges, Moved, Watch};
use crate::fast::{Replica, Steps};
use crate::limits::{Limits, TooLong};
use crate::policy::{Sglang, TensorRt};
use crate::request::Wanted;
use crate::serve::PlainReplica;

/// Whose decisions an engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// vLLM's.
    Vllm,
    /// SGLang's.
    Sglang,
    /// TensorRT-LLM's.
    TensorRt,
}

/// An engine of some kind.
pub enum AnyEngine<'a> {
    /// vLLM.
    Vllm(Box<Replica<'a>>),
    /// SGLang.
    Sglang(Box<PlainReplica<'a, Sglang>>),
    /// TensorRT-LLM.
    TensorRt(Box<PlainReplica<'a, TensorRt>>),
}

/// The same for each of them.
macro_rules! each {
    ($self:ident, $engine:ident => $does:expr) => {
        match $self {
            AnyEngine::Vllm($engine) => $does,
            AnyEngine::Sglang($engine) => $does,
            AnyEngine::TensorRt($engine) => $does,
        }
    };
}

impl<'a> AnyEngine<'a> {
    /// An idle one.
    pub fn new(kind: EngineKind, limits: Limits, model: &'a StepModel) -> Self {
        match kind {
            EngineKind::Vllm => Self::Vllm(Box::new(Replica::new(limits, model))),
            EngineKind::Sglang => {
                Self::Sglang(Box::new(PlainReplica::new(limits, Sglang::default(), model)))
            }
            EngineKind::TensorRt => {
                Self::TensorRt(Box::new(PlainReplica::new(limits, TensorRt::NoEvict, model)))
            }
        }
    }

    /// From here on its steps take other times.
    pub fn set_model(&mut self, model: &'a StepModel) {
        each!(self, engine => engine.set_model(model));
    }

    /// Steps that were leapt over.
    pub fn steps(&self) -> Steps {
        match self {
            Self::Vllm(engine) => engine.steps(),
            _ => Steps::default(),
        }
    }
}

impl Engine for AnyEngine<'_> {
    fn arrive(&mut self, at: u64, serial: u64, wanted: Wanted) -> Result<(), TooLong> {
        each!(self, engine => engine.arrive(at, serial, wanted))
    }

    fn cancel(&mut self, now: u64, serial: u64, watch: &mut impl Watch) -> bool {
        each!(self, engine => engine.cancel(now, serial, watch))
    }

    fn go(&mut self, now: u64, until: u64, watch: &mut impl Watch) -> Option<Moved> {
        each!(self, engine => engine.go(now, until, watch))
    }

    fn quiet(&mut self, now: u64) -> Option<u64> {
        each!(self, engine => engine.quiet(now))
    }

    fn step(&mut self, now: u64, watch: &mut impl Watch) -> Option<Moved> {
        each!(self, engine => engine.step(now, watch))
    }

    fn lose(&mut self, now: u64, watch: &mut impl Watch) {
        each!(self, engine => engine.lose(now, watch));
    }

    fn gauges(&self) -> Gauges {
        each!(self, engine => engine.gauges())
    }

    fn has_begun(&self, serial: u64) -> bool {
        each!(self, engine => engine.has_begun(serial))
    }

    fn first_waiting(&self) -> Option<u64> {
        each!(self, engine => engine.first_waiting())
    }

    fn finds(&self, wanted: &Wanted) -> u64 {
        each!(self, engine => engine.finds(wanted))
    }
}
