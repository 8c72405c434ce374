//! Tasks: their steps, one after the other, and what came of them.

use std::collections::VecDeque;

use crate::drive::Engine as _;
use crate::fleet::attempt::{CallState, Place};
use crate::fleet::report::{FleetWatch, ToolUse};
use crate::fleet::spec::{Judged, Target};
use crate::fleet::task::{Steps, Task, TaskEnd, TaskOutcome, TaskStep};
use crate::fleet::{Rank, Run, What};
use crate::request::Outcome;

/// A task that is under way.
#[derive(Debug)]
pub(super) struct TaskState {
    pub(super) class: u16,
    pub(super) session: u64,
    steps: Steps,
    /// What waits for it is about the step with this stamp.
    stamp: u32,
    /// Since when it is counted: the task, or its turn.
    began: u64,
    pub(super) deadline: u64,
    pub(super) leaves: u64,
    /// Its calls under way: the first, and others that were made with it.
    call: Option<u32>,
    more: Vec<u32>,
    pending: u32,
    /// When the last of them has come back.
    back: u64,
    /// Whether it is being counted: a conversation is only while somebody waits.
    counts: bool,
    ttft: Option<u64>,
    tpot: Option<u64>,
    largest_gap: u64,
    /// Whether its first calls are under way.
    first_step: bool,
    /// How long its calls have generated, and how many gaps between tokens that were.
    generating: u64,
    gaps: u64,
    waited: u64,
    /// The part of it that is of this step: of calls made at once, the longest.
    step_waited: u64,
    /// How long its keys and values took from a pool that reads to one that generates.
    pub(super) handing_over: u64,
    calls: u32,
    pub(super) attempts: u32,
    prompt: u64,
    cached: u64,
    output: u64,
    /// Its call of a tool under way.
    tool: Option<ToolCall>,
    /// How often that call was made before.
    tool_tries: u32,
    /// Whether its user left without having seen a token.
    unseen: bool,
    /// The pool that it was last sent to.
    pub(super) pool: Option<u16>,
}

impl TaskState {
    /// When nobody waits for it any more.
    fn patience(&self) -> u64 {
        if self.counts { self.deadline.min(self.leaves) } else { u64::MAX }
    }
}

/// A call of a tool under way.
#[derive(Clone, Copy, Debug)]
struct ToolCall {
    tool: u16,
    /// When it was made.
    at: u64,
    /// When it was accepted, and when it is done.
    inside: Option<(u64, u64)>,
}

/// A tool, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct ToolState {
    waiting: VecDeque<(u32, u32)>,
    inside: u64,
    /// When it accepts the next call.
    accepts: u64,
    wakes: bool,
    /// Outages that last.
    pub(super) out: u32,
}

impl<W: FleetWatch> Run<'_, '_, W> {
    /// A task begins.
    pub(super) fn begin(&mut self, task: Task) {
        let judged = self.spec.classes[task.class as usize].judged;
        let id = self.tasks.insert(TaskState {
            class: task.class,
            session: task.session,
            steps: task.steps,
            stamp: 0,
            began: self.now,
            deadline: u64::MAX,
            leaves: u64::MAX,
            call: None,
            more: Vec::new(),
            pending: 0,
            back: 0,
            counts: false,
            ttft: None,
            tpot: None,
            largest_gap: 0,
            first_step: true,
            generating: 0,
            gaps: 0,
            waited: 0,
            step_waited: 0,
            handing_over: 0,
            calls: 0,
            attempts: 0,
            prompt: 0,
            cached: 0,
            output: 0,
            tool: None,
            tool_tries: 0,
            unseen: false,
            pool: None,
        });
        if judged != Judged::EachTurn && task.whole {
            self.count_from_here(id);
        }
        self.next_step(id);
    }

    /// Somebody begins to wait.
    fn count_from_here(&mut self, task: u32) {
        let now = self.now;
        let Some(own) = self.tasks.get_mut(task) else { return };
        let class = &self.spec.classes[own.class as usize];
        own.counts = true;
        own.began = now;
        own.deadline = class.deadline.map_or(u64::MAX, |d| now.saturating_add(d));
        own.leaves = u64::MAX;
        if let Some((share, after)) = &class.leaves {
            let stream = &mut self.chance.leaving;
            let (leaves, seconds) = (stream.uniform() < *share, after.sample(stream));
            if leaves {
                own.leaves = now.saturating_add((seconds * 1e12).round().max(0.0) as u64);
            }
        }
        (own.ttft, own.tpot, own.largest_gap, own.waited) = (None, None, 0, 0);
        (own.calls, own.attempts, own.prompt, own.cached, own.output) = (0, 0, 0, 0, 0);
        own.handing_over = 0;
        self.watch.offered(own.class, now);
    }

    /// Whether nobody waits for a task any more, which is then over.
    fn given_up(&mut self, task: u32) -> bool {
        let Some(own) = self.tasks.get(task) else { return true };
        let gone = self.now >= own.patience();
        if gone {
            let end = if self.now >= own.leaves { TaskEnd::Left } else { TaskEnd::TooLate };
            self.task_fails(task, end);
        }
        gone
    }

    /// The next step of a task.
    fn next_step(&mut self, task: u32) {
        if self.given_up(task) {
            return;
        }
        let (now, until) = (self.now, self.counted.1);
        let Some(own) = self.tasks.get_mut(task) else { return };
        let class = &self.spec.classes[own.class as usize];
        let step = match &mut own.steps {
            Steps::One(_) => {
                let Steps::One(wanted) =
                    std::mem::replace(&mut own.steps, Steps::Many(VecDeque::new()))
                else {
                    return;
                };
                // What most tasks are: nothing to be put into a list.
                if class.judged == Judged::EachTurn {
                    self.count_from_here(task);
                }
                self.calls_begin(task, 1);
                self.call(task, wanted, None);
                return;
            }
            Steps::Many(steps) => steps.pop_front(),
        };
        match step {
            None => self.task_over(task, TaskEnd::Completed),
            Some(TaskStep::Wait(time)) => {
                // Turns that come when nobody looks any more are not waited for.
                if class.judged == Judged::EachTurn && now.saturating_add(time) >= until {
                    self.tasks.remove(task);
                    return;
                }
                self.goes_on_at(task, now.saturating_add(time));
            }
            Some(TaskStep::Tool(tool)) => self.call_tool(task, tool),
            Some(TaskStep::Calls(calls)) => {
                if class.judged == Judged::EachTurn {
                    self.count_from_here(task);
                }
                self.calls_begin(task, calls.len() as u32);
                if calls.is_empty() {
                    self.step_over(task);
                    return;
                }
                for call in calls {
                    // One that failed at once has ended the task.
                    if self.tasks.get(task).is_none_or(|own| own.pending == 0) {
                        return;
                    }
                    self.call(task, call.wanted, call.route);
                }
            }
        }
    }

    fn calls_begin(&mut self, task: u32, count: u32) {
        let now = self.now;
        let Some(own) = self.tasks.get_mut(task) else { return };
        own.pending = count;
        own.back = now;
        own.call = None;
        own.more.clear();
        own.step_waited = 0;
        own.first_step = own.calls == 0;
        // An answer is judged by its last call.
        if self.spec.classes[own.class as usize].judged == Judged::Answer {
            (own.ttft, own.tpot, own.largest_gap) = (None, None, 0);
        }
    }

    fn call(&mut self, task: u32, wanted: crate::request::Wanted, fixed: Option<Target>) {
        let Some(class) = self.tasks.get(task).map(|own| own.class) else { return };
        let call = self.make_call(task, class, wanted, fixed);
        if let Some(own) = self.tasks.get_mut(task) {
            own.calls += 1;
            if own.call.is_none() {
                own.call = Some(call);
            } else {
                own.more.push(call);
            }
        }
        self.send(call);
    }

    fn goes_on_at(&mut self, task: u32, at: u64) {
        let stamp = self.stamp();
        let Some(own) = self.tasks.get_mut(task) else { return };
        own.stamp = stamp;
        let at = at.min(own.patience());
        self.at(at, Rank::Client, What::GoOn(task, stamp));
    }

    /// A step of a task is over, or nobody waits for it any more.
    pub(super) fn task_goes_on(&mut self, task: u32, stamp: u32) {
        if self.tasks.get(task).is_some_and(|own| own.stamp == stamp) && !self.given_up(task) {
            self.step_over(task);
        }
    }

    fn step_over(&mut self, task: u32) {
        let Some(own) = self.tasks.get(task) else { return };
        if own.counts && self.spec.classes[own.class as usize].judged == Judged::EachTurn {
            self.tell(task, TaskEnd::Completed);
        }
        self.next_step(task);
    }

    /// A call of a task was answered.
    pub(super) fn call_answered(&mut self, call: u32, of: &CallState, outcome: &Outcome) {
        let Some(own) = self.tasks.get_mut(of.task) else { return };
        if own.call == Some(call) {
            own.call = None;
        } else {
            own.more.retain(|other| *other != call);
        }
        let judged = self.spec.classes[own.class as usize].judged;
        if let Some(first) = outcome.first {
            let seen = first.saturating_add(of.way).saturating_sub(own.began);
            // Of an agent only what it does first: it is judged by its first calls.
            if judged != Judged::FirstCall || own.first_step {
                own.ttft = Some(own.ttft.map_or(seen, |before| before.max(seen)));
            }
            if outcome.output > 1 {
                let (took, gaps) = (outcome.done - first, outcome.output - 1);
                if judged == Judged::FirstCall {
                    (own.generating, own.gaps) = (own.generating + took, own.gaps + gaps);
                    own.tpot = Some(own.generating / own.gaps);
                } else {
                    own.tpot = Some(own.tpot.map_or(took / gaps, |before| before.max(took / gaps)));
                }
            }
        }
        own.largest_gap = own.largest_gap.max(outcome.largest_gap);
        let waited = outcome.scheduled.map_or(0, |at| at.saturating_sub(outcome.arrived));
        own.waited += waited.saturating_sub(own.step_waited);
        own.step_waited = own.step_waited.max(waited);
        own.prompt += outcome.prompt;
        own.cached += outcome.cached;
        own.output += outcome.output;
        own.back = own.back.max(outcome.done.saturating_add(of.way));
        own.pending -= 1;
        if own.pending == 0 {
            let (task, back) = (of.task, own.back);
            if back > self.now {
                self.goes_on_at(task, back);
            } else {
                self.step_over(task);
            }
        }
    }

    /// A task comes to nothing: its calls are let go.
    pub(super) fn task_fails(&mut self, task: u32, end: TaskEnd) {
        let Some(own) = self.tasks.get_mut(task) else { return };
        own.pending = 0;
        let (class, tool) = (own.class, own.tool.take());
        let (call, more) = (own.call.take(), std::mem::take(&mut own.more));
        if end == TaskEnd::Left {
            let seen = own.ttft.is_some();
            let seen = seen || call.iter().chain(&more).any(|call| self.has_begun(*call));
            if let Some(own) = self.tasks.get_mut(task) {
                own.unseen = !seen;
            }
        }
        for call in call.into_iter().chain(more) {
            self.let_go(call);
            self.calls.remove(call);
        }
        if let Some(own) = tool {
            self.tell_tool(class, own, false, true);
        }
        self.task_over(task, end);
    }

    /// Whether a call has had its first token.
    fn has_begun(&self, call: u32) -> bool {
        match self.calls.get(call).map(|own| own.place) {
            Some(Place::Engine(site, serial)) => self.sites[site as usize].engine.has_begun(serial),
            Some(Place::Provider { at, ttft, .. }) => self.now >= at.saturating_add(ttft),
            _ => false,
        }
    }

    fn task_over(&mut self, task: u32, end: TaskEnd) {
        self.tell(task, end);
        self.tasks.remove(task);
    }

    /// Tells what came of a task, or of its turn.
    fn tell(&mut self, task: u32, end: TaskEnd) {
        let now = self.now;
        let Some(own) = self.tasks.get_mut(task) else { return };
        if !std::mem::take(&mut own.counts) {
            return;
        }
        // A token that was on its way back when its client gave up was not seen.
        own.ttft = own.ttft.filter(|ttft| *ttft <= now - own.began);
        let class = &self.spec.classes[own.class as usize];
        let bounds = class.good;
        let (waited, overdue) = (now - own.began, std::mem::take(&mut own.unseen));
        let past = |most: Option<u64>| most.is_some_and(|most| waited > most);
        let overdue = end == TaskEnd::Left && (overdue && past(bounds.ttft) || past(bounds.e2e));
        let meets = |value: Option<u64>, most: Option<u64>| match (value, most) {
            (Some(value), Some(most)) => value <= most,
            _ => true,
        };
        let good = end == TaskEnd::Completed
            && meets(own.ttft, bounds.ttft)
            && meets(own.tpot, bounds.tpot)
            && meets(Some(now - own.began), bounds.e2e)
            && meets(Some(own.largest_gap), bounds.gap);
        let outcome = TaskOutcome {
            class: own.class,
            end,
            began: own.began,
            ended: now,
            ttft: own.ttft,
            tpot: own.tpot,
            largest_gap: own.largest_gap,
            waited: own.waited,
            handing_over: own.handing_over,
            calls: own.calls,
            attempts: own.attempts,
            prompt: own.prompt,
            cached: own.cached,
            output: own.output,
            good,
            overdue,
        };
        let pool = own.pool;
        self.watch.task(&outcome);
        // Whoever left of their own accord says nothing of the pool.
        if let Some(pool) = pool.filter(|_| end != TaskEnd::Left) {
            self.pools[pool as usize].saw_task(now, good);
        }
    }

    /// A task calls a tool.
    fn call_tool(&mut self, task: u32, tool: u16) {
        let (now, stamp) = (self.now, self.stamp());
        let Some(own) = self.tasks.get_mut(task) else { return };
        (own.stamp, own.tool) = (stamp, Some(ToolCall { tool, at: now, inside: None }));
        let until = own.patience();
        if self.tools[tool as usize].out > 0 {
            self.tool_over(tool, task, true);
            return;
        }
        if until < u64::MAX {
            self.at(until, Rank::Client, What::GoOn(task, stamp));
        }
        self.tools[tool as usize].waiting.push_back((task, stamp));
        self.tool_accepts_more(tool);
    }

    pub(super) fn tool_accepts(&mut self, tool: u16) {
        self.tools[tool as usize].wakes = false;
        self.tool_accepts_more(tool);
    }

    fn tool_accepts_more(&mut self, tool: u16) {
        let (now, spec) = (self.now, &self.spec.tools[tool as usize]);
        loop {
            let state = &mut self.tools[tool as usize];
            // Whoever has gone since takes nobody's turn.
            let tasks = &self.tasks;
            let gone =
                |(task, stamp): &(u32, u32)| tasks.get(*task).is_none_or(|own| own.stamp != *stamp);
            while state.waiting.front().is_some_and(gone) {
                state.waiting.pop_front();
            }
            if state.waiting.is_empty() || spec.at_once.is_some_and(|most| state.inside >= most) {
                return;
            }
            if let Some(between) = spec.between {
                if now < state.accepts {
                    let at = state.accepts;
                    if !std::mem::replace(&mut state.wakes, true) {
                        self.at(at, Rank::Client, What::ToolAccepts(tool));
                    }
                    return;
                }
                state.accepts = now.saturating_add(between);
            }
            let Some((task, stamp)) = state.waiting.pop_front() else { return };
            let Some(own) = self.tasks.get_mut(task) else { continue };
            state.inside += 1;
            let seconds = spec.latency.sample(&mut self.chance.tools);
            let at = now.saturating_add((seconds * 1e12).round().max(0.0) as u64);
            if let Some(call) = &mut own.tool {
                call.inside = Some((now, at));
            }
            self.at(at, Rank::Client, What::ToolDone(tool, task, stamp));
        }
    }

    pub(super) fn tool_done(&mut self, tool: u16, task: u32, stamp: u32) {
        self.tools[tool as usize].inside -= 1;
        let spec = &self.spec.tools[tool as usize];
        if self.tasks.get(task).is_some_and(|own| own.stamp == stamp) {
            let fails = spec.failure > 0.0 && self.chance.tools.uniform() < spec.failure;
            self.tool_over(tool, task, fails || self.tools[tool as usize].out > 0);
        }
        self.tool_accepts_more(tool);
    }

    /// A tool answers nobody from here on: whoever waits for it waits no more.
    pub(super) fn tool_is_out(&mut self, tool: usize) {
        self.tools[tool].out += 1;
        for (task, stamp) in std::mem::take(&mut self.tools[tool].waiting) {
            if self.tasks.get(task).is_some_and(|own| own.stamp == stamp) {
                self.tool_over(tool as u16, task, true);
            }
        }
    }

    /// Tells of a call of a tool: one that nobody accepted has waited until now.
    fn tell_tool(&mut self, class: u16, call: ToolCall, failed: bool, given_up: bool) {
        let ToolCall { tool, at, inside } = call;
        let (accepted, done) = inside.unwrap_or((self.now, self.now));
        let (waited, took) = (accepted - at, done - accepted);
        let used = ToolUse { class, at, waited, took, failed, given_up };
        self.watch.tool(tool as usize, &used);
    }

    fn tool_over(&mut self, tool: u16, task: u32, failed: bool) {
        let now = self.now;
        let Some(own) = self.tasks.get_mut(task) else { return };
        let class = own.class;
        if let Some(call) = own.tool.take() {
            self.tell_tool(class, call, failed, false);
        }
        let Some(own) = self.tasks.get_mut(task) else { return };
        let tries = std::mem::take(&mut own.tool_tries) + 1;
        if !failed {
            self.next_step(task);
            return;
        }
        // It is called again as a model would be.
        let Some(pause) = self.pause(class as usize, tries) else {
            self.task_fails(task, TaskEnd::ToolFailed);
            return;
        };
        self.spend(class as usize);
        let Some(own) = self.tasks.get_mut(task) else { return };
        own.tool_tries = tries;
        if let Steps::Many(steps) = &mut own.steps {
            steps.push_front(TaskStep::Tool(tool));
        }
        self.goes_on_at(task, now.saturating_add(pause));
    }
}
