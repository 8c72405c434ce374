//! Hard times: what a fleet does in each, what moves the answer, and what proposed changes relieve and create.
//!
//! A stress changes the demand, the fleet or its surroundings, and the same tasks are simulated again, on the fleet of today and on the planned one. Everything is compared
//! with the reference: the busiest hour, with events where there are any. Methods are in `docs/stress.md`.

mod changes;
mod hard;
mod result;
mod shapes;
mod tornado;
mod trigger;

use plimsoll_stats::in_order;
use plimsoll_workload::Shift;

pub use self::changes::{Proposed, ProposedPool};
use self::hard::{Field, Fleets};
pub use self::result::{
    Breaks, ChangeSide, FailureShape, Guard, Moved, OfFleets, PressureChange, StressResult,
    Stressed, StressedAttainment, StressedCost, StressedResource, Tornado, TornadoBar, TornadoEnd,
};
pub use self::shapes::NO_RECOVERY;
pub use self::tornado::{Lever, Uncertain};
pub use self::trigger::{Comparison, Condition};
use crate::context::Context;
use crate::plan::{Carried, PlanInput, UnitOfLoss, carried};
use plimsoll_load::{Memo, StudyError};

/// What is tried, and on what.
pub struct StressInput<'a> {
    /// The fleet, its demand and its prices.
    pub plan: PlanInput<'a>,
    /// Hard times, in the order they are told.
    pub stresses: Vec<Stress>,
    /// What may be otherwise.
    pub uncertain: Vec<Uncertain>,
    /// What somebody proposes.
    pub changes: Vec<Proposed>,
    /// The share of answered tasks of each class that succeed, where that is known.
    pub success: Vec<Option<f64>>,
    /// What a call of each tool costs, in dollars.
    pub tool_usd: Vec<f64>,
    /// Where each class's hit rate comes from, where it has one.
    pub hits_from: Vec<Option<String>>,
}

/// The hour that a stress is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StressHour {
    /// The busiest without events.
    Baseline,
    /// The busiest of all.
    Peak,
    /// The busiest that an event changes.
    Launch,
}

/// A hard time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stress {
    /// What tables call it.
    pub name: String,
    /// What happens, in a sentence.
    pub about: String,
    /// Who looks after it.
    pub owner: Option<String>,
    /// When.
    pub hour: StressHour,
    /// The classes that it changes, by their places; all of them where it names none.
    pub classes: Option<Vec<usize>>,
    /// The share of their tasks that it changes.
    pub share: f64,
    /// What becomes of their rate, lengths and hits.
    pub shift: Shift,
    /// The share of their calls that come a second time.
    pub failure: f64,
    /// Multiplies the time that replicas take to start.
    pub startup: f64,
    /// Multiplies prices.
    pub price: f64,
    /// Multiplies what providers allow.
    pub limits: f64,
    /// The share of what goes elsewhere that goes to the strongest model: the pool whose replicas cost most.
    pub to_strongest: f64,
    /// What is lost at the peak, of every pool.
    pub lose: UnitOfLoss,
    /// Whether it stands for the loss of another region where there is only one: as much comes again.
    pub inherits: bool,
}

impl Stress {
    /// Nothing happens.
    pub fn none(name: &str, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            owner: None,
            hour: StressHour::Peak,
            classes: None,
            share: 1.0,
            shift: Shift::NONE,
            failure: 0.0,
            startup: 1.0,
            price: 1.0,
            limits: 1.0,
            to_strongest: 0.0,
            lose: UnitOfLoss::Nothing,
            inherits: false,
        }
    }

    /// Whether it changes one of the classes.
    fn concerns(&self, class: usize) -> bool {
        self.classes.as_ref().is_none_or(|own| own.contains(&class))
    }
}

/// Tries everything. `go_on` is asked now and then; once it says no, what was learnt is said.
pub fn stress(
    mut input: StressInput<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<StressResult, StudyError> {
    // Ways that are only told are a plan's business.
    input.plan.candidates.retain(|candidate| candidate.may_choose);
    let memo = Memo::default();
    let context = Context { memo: &memo, go_on };
    let carried = carried(&mut input.plan, context)?;
    tried(&input, &carried, context)
}

/// Tries everything on a fleet that was found.
pub(crate) fn tried(
    input: &StressInput<'_>,
    carried: &Carried,
    context: Context<'_>,
) -> Result<StressResult, StudyError> {
    let fleets = Fleets::of(input, carried);
    let field = Field { input, carried, fleets: &fleets, context };
    let reference = Stress::none("reference", "the busiest hour");
    let mut subjects = vec![field.subject(&reference)];
    subjects.extend(input.stresses.iter().map(|stress| field.subject(stress)));
    let trials = field.trials(&subjects)?;
    let base = &trials[0];
    let stressed: Vec<Stressed> = input
        .stresses
        .iter()
        .zip(subjects.iter().zip(&trials).skip(1))
        .map(|(stress, (subject, trial))| field.stressed(stress, subject, trial, base))
        .collect();
    let failure_shapes = shapes::shapes(&field, &stressed, (base, &subjects[0].peaks))?;
    let tornado = tornado::tornado(&field)?;
    let changes = changes::changes(&field, base)?;
    let mut notes: Vec<String> = Vec::new();
    if !carried.obstacles.is_empty() {
        notes.push(format!(
            "no fleet carries the demand as it is asked for ({}): the planned one is the nearest to it",
            carried.obstacles[0].what
        ));
    }
    if !(context.go_on)() {
        notes.push(
            "the time was up before everything was tried: no number here is finished".to_owned(),
        );
    }
    Ok(StressResult {
        at: (input.plan.label)(carried.asked.hour),
        pools: fleets.named(&input.plan),
        scenarios: stressed,
        failure_shapes,
        tornado,
        changes,
        notes,
    })
}

/// Looks at several things side by side, each on one thread.
fn side_by_side<T: Send>(
    threads: usize,
    count: usize,
    look: impl Fn(usize) -> Result<T, StudyError> + Sync,
) -> Result<Vec<T>, StudyError> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    in_order(threads, count, |i| look(i as usize)).into_iter().collect()
}
