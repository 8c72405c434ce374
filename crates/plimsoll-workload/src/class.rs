//! A segment of demand over time.

use plimsoll_stats::Process;

use crate::task::{Shift, Task};

/// Tasks that share a shape, a route and an SLO, over the hours of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What tables call it.
    pub name: String,
    /// How arrivals vary around their rate.
    pub process: Process,
    /// What one of its tasks asks for.
    pub task: Task,
    /// Its rate in each hour of the horizon, and what events do to it there.
    pub hours: Vec<Hour>,
}

/// One hour of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hour {
    /// Tasks a second without events.
    pub rate: f64,
    /// How its lengths differ from those of the class, events or not: what a forecast says of them.
    pub drift: Shift,
    /// What events change in it.
    pub shift: Shift,
}

impl Hour {
    /// An hour with the lengths of its class.
    pub fn new(rate: f64, shift: Shift) -> Self {
        Self { rate, drift: Shift::NONE, shift }
    }

    /// What changes it, with events or without.
    pub fn changed(&self, with_events: bool) -> Shift {
        if with_events { self.drift.and(self.shift) } else { self.drift }
    }
}

impl Class {
    /// Expected fresh and output tokens a second in an hour: what makes one hour busier than another.
    /// Lengths are scaled in the mean, so this ranks hours; it does not size them.
    pub fn expected_tokens(&self, hour: usize, with_events: bool) -> f64 {
        let Some(hour) = self.hours.get(hour) else { return 0.0 };
        let shift = hour.changed(with_events);
        hour.rate * shift.rate * self.task.expected_tokens(&shift)
    }
}
