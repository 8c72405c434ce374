//! Demand: classes of tasks, the requests a task makes, and how they change.
//!
//! **Owns** what is asked of a fleet: [`Class`], [`Task`], [`Request`], [`Shift`], and what was: [`Trace`]. **Refuses**
//! hardware, files and SQL: nothing here knows what serves a request, or where its numbers were written.
//!
//! A task is what a user wants done and what success is counted by. It may be one request, the stages of
//! one answer, the turns of a conversation, or the calls of an agent whose context grows. `prompt` always
//! includes cached tokens; fresh input is the rest.
//!
//! ```
//! use plimsoll_stats::{Dist, Seed};
//! use plimsoll_workload::{Call, Lengths, Shift, Step, Task};
//!
//! let lengths = Lengths::independent(Dist::constant(900.0)?, Dist::constant(60.0)?);
//! let task = Task::steps(vec![Step::Call(Call::new(lengths, 0.5))]);
//! let mut requests = Vec::new();
//! task.draw(&Shift::NONE, &mut Seed::new(7).stream("example"), |request| requests.push(request));
//! assert_eq!(requests[0].prompt.get(), 900);
//! assert_eq!(requests[0].fresh().get(), 450);
//! # Ok::<(), plimsoll_stats::DistError>(())
//! ```

mod class;
mod history;
mod outlook;
mod task;
mod trace;

pub use class::{Class, Hour};
pub use history::{ClassHistory, History, Known, StepCount};
pub use outlook::{Change, ClassOutlook, Outlook, Quantiles, Quantity, ThreePoint};
pub use task::{Call, Drawn, Growth, Lengths, Pair, Request, Shift, Step, Task, Tool, Variant};
pub use trace::{Sharing, Tick, Trace, TraceFault, TraceRequest};
