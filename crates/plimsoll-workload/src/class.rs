//! A segment of demand over time.

use plimsoll_stats::Process;

use crate::task::{Shift, Task};

/// Tasks that share a shape, a route and an SLO, over the hours of a study.
#[derive(Clone, Debug)]
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
    /// What events change in it.
    pub shift: Shift,
}

impl Class {
    /// Expected fresh and output tokens a second in an hour: what makes one hour busier than another.
    /// Lengths are scaled in the mean, so this ranks hours; it does not size them.
    pub fn expected_tokens(&self, hour: usize, with_events: bool) -> f64 {
        let Some(hour) = self.hours.get(hour) else { return 0.0 };
        let shift = if with_events { hour.shift } else { Shift::NONE };
        hour.rate * shift.rate * self.task.expected_tokens(&shift)
    }
}
