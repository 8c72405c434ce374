//! What one task asks for.

use plimsoll_stats::{Dist, DistError, Stream, Weighted};
use plimsoll_units::Tokens;

/// One request of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Seconds after the task began, not counting the time its requests take to be served.
    pub offset: f64,
    /// Prompt tokens, cached ones included.
    pub prompt: Tokens,
    /// Prompt tokens served from a prefix cache.
    pub cached: Tokens,
    /// Output tokens, of all samples together.
    pub output: Tokens,
    /// How many requests of its task came before it.
    pub turn: u32,
    /// Outputs generated for the one prompt.
    pub samples: u32,
}

impl Request {
    /// Fresh input: prompt tokens that must be computed.
    pub fn fresh(&self) -> Tokens {
        self.prompt.less(self.cached)
    }
}

/// What changes a class for a while: an event, a stress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Multiplies the rate of tasks.
    pub rate: f64,
    /// Multiplies prompt lengths.
    pub prompt: f64,
    /// Multiplies output lengths.
    pub output: f64,
    /// Multiplies cache hit rates, which stay at most one.
    pub cache_hit: f64,
}

impl Shift {
    /// Everything stays.
    pub const NONE: Self = Self { rate: 1.0, prompt: 1.0, output: 1.0, cache_hit: 1.0 };

    /// Both at once.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rate: self.rate * other.rate,
            prompt: self.prompt * other.prompt,
            output: self.output * other.output,
            cache_hit: self.cache_hit * other.cache_hit,
        }
    }
}

/// Joint lengths of prompt and output.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths(Joint);

#[derive(Clone, Debug, PartialEq)]
enum Joint {
    Independent {
        prompt: Dist,
        output: Dist,
    },
    /// With the cached share of the prompt, where the pair says it.
    Pairs {
        pairs: Vec<(f64, f64, Option<f64>)>,
        weights: Weighted,
    },
}

/// Lengths that occur together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Prompt tokens, cached ones included.
    pub prompt: Tokens,
    /// Prompt tokens served from a prefix cache; none where the call's hit rate says it.
    pub cached: Option<Tokens>,
    /// Output tokens.
    pub output: Tokens,
}

impl Pair {
    /// Lengths alone.
    pub fn of(prompt: Tokens, output: Tokens) -> Self {
        Self { prompt, cached: None, output }
    }
}

impl Lengths {
    /// Drawn independently.
    pub fn independent(prompt: Dist, output: Dist) -> Self {
        Self(Joint::Independent { prompt, output })
    }

    /// These pairs, each as often as its weight says: what occurs together stays together.
    pub fn pairs(pairs: Vec<Pair>, weights: Vec<f64>) -> Result<Self, DistError> {
        let weights = Weighted::of(pairs.len(), Some(weights))?;
        let pairs = pairs.iter().map(|pair| {
            let prompt = pair.prompt.get() as f64;
            let share = |cached: Tokens| (cached.get() as f64 / prompt.max(1.0)).clamp(0.0, 1.0);
            (prompt, pair.output.get() as f64, pair.cached.map(share))
        });
        Ok(Self(Joint::Pairs { pairs: pairs.collect(), weights }))
    }

    /// Prompt and output, and the cached share where a pair says it.
    fn draw(&self, stream: &mut Stream) -> (f64, f64, Option<f64>) {
        match &self.0 {
            Joint::Independent { prompt, output } => {
                (prompt.sample(stream), output.sample(stream), None)
            }
            Joint::Pairs { pairs, weights } => pairs[weights.sample(stream)],
        }
    }

    /// The share of prompt tokens that are cached, where a pair that does not say it has this one.
    fn mean_hit(&self, otherwise: f64) -> f64 {
        match &self.0 {
            Joint::Independent { .. } => otherwise,
            Joint::Pairs { pairs, weights } => {
                let prompt = weights.average(pairs.iter().map(|p| p.0));
                let cached = weights.average(pairs.iter().map(|p| p.0 * p.2.unwrap_or(otherwise)));
                if prompt > 0.0 { cached / prompt } else { otherwise }
            }
        }
    }

    fn mean(&self) -> (f64, f64) {
        match &self.0 {
            Joint::Independent { prompt, output } => (prompt.mean(), output.mean()),
            Joint::Pairs { pairs, weights } => (
                weights.average(pairs.iter().map(|p| p.0)),
                weights.average(pairs.iter().map(|p| p.1)),
            ),
        }
    }
}

/// One model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    lengths: Lengths,
    cache_hit: f64,
    share: f64,
    samples: f64,
    route: Option<u16>,
}

/// A part of the tasks with other lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    /// How many of the tasks.
    pub share: f64,
    /// Multiplies the prompt.
    pub prompt: f64,
    /// Multiplies the output.
    pub output: f64,
    /// Where its calls go, if not where the task's do: as in [`Call::to`].
    pub route: Option<u16>,
}

impl Variant {
    fn shift(&self) -> Shift {
        Shift { prompt: self.prompt, output: self.output, ..Shift::NONE }
    }
}

impl Call {
    /// A call of these lengths, this share of its prompt cached.
    pub fn new(lengths: Lengths, cache_hit: f64) -> Self {
        Self {
            lengths,
            cache_hit: cache_hit.clamp(0.0, 1.0),
            share: 1.0,
            samples: 1.0,
            route: None,
        }
    }

    /// Made only in this share of tasks.
    #[must_use]
    pub fn sometimes(mut self, share: f64) -> Self {
        self.share = share.clamp(0.0, 1.0);
        self
    }

    /// Served somewhere else than the rest of its task: a number that whoever serves it understands.
    #[must_use]
    pub fn to(mut self, route: Option<u16>) -> Self {
        self.route = route;
        self
    }

    /// Several outputs for the one prompt.
    #[must_use]
    pub fn samples(mut self, samples: u32) -> Self {
        self.samples = f64::from(samples);
        self
    }

    /// Prompt and output tokens of one call, one output of several samples, and the cached share of its prompt.
    fn draw(&self, shift: &Shift, stream: &mut Stream) -> (f64, f64, f64) {
        let (prompt, output, hit) = self.lengths.draw(stream);
        (prompt * shift.prompt, output * shift.output, hit.unwrap_or(self.cache_hit))
    }

    /// Their means.
    fn mean(&self, shift: &Shift) -> (f64, f64) {
        let (prompt, output) = self.lengths.mean();
        (prompt * shift.prompt, output * shift.output)
    }

    fn request(
        &self,
        offset: f64,
        turn: u32,
        (prompt, output, hit): (f64, f64, f64),
        shift: &Shift,
    ) -> Request {
        let hit = (hit * shift.cache_hit).clamp(0.0, 1.0);
        // A prompt has at least its first token, and the last token of a prompt is always computed.
        let prompt = (prompt.round() as u64).max(1);
        let cached = ((prompt as f64 * hit).round() as u64).min(prompt - 1);
        Request {
            offset,
            prompt: Tokens::new(prompt),
            cached: Tokens::new(cached),
            output: Tokens::new(((output * self.samples).round() as u64).max(1)),
            turn,
            samples: self.samples as u32,
        }
    }
}

/// A step of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A model call.
    Call(Call),
    /// A latency: retrieval, a safety check; in this share of tasks.
    Wait(Dist, f64),
    /// A tool, by a number that whoever serves it understands, and how long it takes where nobody waits for it; in this share of tasks.
    Tool(u16, Dist, f64),
}

/// A tool that is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Which, by a number that whoever serves it understands.
    pub number: u16,
    /// How long it takes where nobody waits for it.
    pub latency: Dist,
}

/// Something that a task does, as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drawn {
    /// It asks a model.
    Request {
        /// For what; its offset is from the beginning of the task, as long as nobody takes any time to answer.
        request: Request,
        /// Where, if not where its class does.
        route: Option<u16>,
        /// Whether it does so at the same time as it did the last.
        at_once: bool,
    },
    /// It calls a tool, which takes so many seconds where nobody waits for it.
    Tool(u16, f64),
    /// So many seconds pass.
    Wait(f64),
}

/// What one task asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    kind: Kind,
    variants: Vec<Variant>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Steps(Vec<Step>),
    Agent { call: Call, calls: Dist, growth: Dist, gap: Dist, fan_out: u32, tools: Vec<Tool> },
    Session { call: Call, turns: Dist, think: Dist },
}

/// What a request's prompt has of the requests before it in its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Nothing: each is its own.
    Nothing,
    /// Begins with the prompt before it.
    Prompts,
    /// Begins with the prompt before it, and what was answered.
    PromptsAndOutputs,
}

/// No task makes more requests than this.
const REQUESTS_MAX: u64 = 10_000;

impl Task {
    /// The steps of one answer, in order; a plain request is one step.
    pub fn steps(steps: Vec<Step>) -> Self {
        Self::of(Kind::Steps(steps))
    }

    /// Calls whose context grows by `growth` tokens from one to the next, `gap` seconds apart.
    pub fn agent(call: Call, calls: Dist, growth: Dist, gap: Dist) -> Self {
        let (fan_out, tools) = (1, Vec::new());
        Self::of(Kind::Agent { call, calls, growth, gap, fan_out, tools })
    }

    /// An agent that makes several calls at once, and goes on when all are answered.
    #[must_use]
    pub fn fan_out(mut self, times: u32) -> Self {
        if let Kind::Agent { fan_out, .. } = &mut self.kind {
            *fan_out = times.max(1);
        }
        self
    }

    /// An agent that uses these tools one after the other where it would pause.
    #[must_use]
    pub fn with_tools(mut self, uses: Vec<Tool>) -> Self {
        if let Kind::Agent { tools, .. } = &mut self.kind {
            *tools = uses;
        }
        self
    }

    /// Turns of a conversation, each with all that was said before, `think` seconds apart.
    pub fn session(call: Call, turns: Dist, think: Dist) -> Self {
        Self::of(Kind::Session { call, turns, think })
    }

    fn of(kind: Kind) -> Self {
        Self { kind, variants: Vec::new() }
    }

    /// Parts of the tasks with other lengths; what they leave is as the calls say.
    #[must_use]
    pub fn variants(mut self, variants: Vec<Variant>) -> Self {
        self.variants = variants;
        self
    }

    /// The same with this share of every prompt cached, whatever was said of it.
    #[must_use]
    pub fn with_cache_hit(mut self, hit: f64) -> Self {
        self.each_call(|call| {
            call.cache_hit = hit.clamp(0.0, 1.0);
            if let Joint::Pairs { pairs, .. } = &mut call.lengths.0 {
                pairs.iter_mut().for_each(|pair| pair.2 = None);
            }
        });
        self
    }

    /// The same with every length at its mean: what somebody plans with who knows nothing but averages.
    #[must_use]
    pub fn at_means(mut self) -> Self {
        let level = |dist: &mut Dist| {
            if let Ok(mean) = Dist::constant(dist.mean()) {
                *dist = mean;
            }
        };
        self.each_call(|call| {
            let (prompt, output) = call.lengths.mean();
            let hit = call.lengths.mean_hit(call.cache_hit);
            if let (Ok(prompt), Ok(output)) = (Dist::constant(prompt), Dist::constant(output)) {
                (call.lengths, call.cache_hit) = (Lengths::independent(prompt, output), hit);
            }
        });
        match &mut self.kind {
            Kind::Steps(_) => {}
            Kind::Agent { calls, growth, .. } => {
                level(calls);
                level(growth);
            }
            Kind::Session { turns, .. } => level(turns),
        }
        self
    }

    fn each_call(&mut self, mut change: impl FnMut(&mut Call)) {
        match &mut self.kind {
            Kind::Steps(steps) => {
                for step in steps {
                    if let Step::Call(call) = step {
                        change(call);
                    }
                }
            }
            Kind::Agent { call, .. } | Kind::Session { call, .. } => change(call),
        }
    }

    /// The variant of one task, on top of what changes all of them, and where it goes.
    fn vary(&self, shift: &Shift, stream: &mut Stream) -> (Shift, Option<u16>) {
        if self.variants.is_empty() {
            return (*shift, None);
        }
        let mut left = stream.uniform();
        for variant in &self.variants {
            if left < variant.share {
                return (shift.and(variant.shift()), variant.route);
            }
            left -= variant.share;
        }
        (*shift, None)
    }

    /// Draws one task and hands over its requests in order.
    pub fn draw(&self, shift: &Shift, stream: &mut Stream, mut each: impl FnMut(Request)) {
        self.draw_steps(shift, stream, |drawn| {
            if let Drawn::Request { request, .. } = drawn {
                each(request);
            }
        });
    }

    /// Draws one task and hands over what it does, in order.
    pub fn draw_steps(&self, shift: &Shift, stream: &mut Stream, mut each: impl FnMut(Drawn)) {
        let (shift, variant) = &self.vary(shift, stream);
        let mut offset = 0.0;
        let request = |request: Request, call: &Call, at_once: bool| Drawn::Request {
            request,
            route: variant.or(call.route),
            at_once,
        };
        match &self.kind {
            Kind::Steps(steps) => {
                for (turn, step) in (0..).zip(steps) {
                    match step {
                        Step::Wait(latency, share) | Step::Tool(_, latency, share) => {
                            if *share >= 1.0 || stream.uniform() < *share {
                                let seconds = latency.sample(stream);
                                offset += seconds;
                                each(match step {
                                    Step::Tool(tool, ..) => Drawn::Tool(*tool, seconds),
                                    _ => Drawn::Wait(seconds),
                                });
                            }
                        }
                        Step::Call(call) => {
                            if call.share < 1.0 && stream.uniform() >= call.share {
                                continue;
                            }
                            let drawn = call.draw(shift, stream);
                            let made = call.request(offset, turn, drawn, shift);
                            each(request(made, call, false));
                        }
                    }
                }
            }
            Kind::Agent { call, calls, growth, gap, fan_out, tools } => {
                // The first prompt and the first output occur together; further calls bring their own output.
                let (mut context, mut output, hit) = call.draw(shift, stream);
                let steps = whole(calls.sample(stream)).div_ceil(u64::from(*fan_out));
                let mut turn = 0;
                for i in 0..steps {
                    for k in 0..*fan_out {
                        if i > 0 || k > 0 {
                            output = call.draw(shift, stream).1;
                        }
                        let made = call.request(offset, turn, (context, output, hit), shift);
                        each(request(made, call, k > 0));
                        turn += 1;
                    }
                    context += growth.sample(stream) * shift.prompt;
                    let pause = gap.sample(stream);
                    let last = i + 1 == steps;
                    if tools.is_empty() {
                        offset += pause;
                        if !last {
                            each(Drawn::Wait(pause));
                        }
                    }
                    for tool in tools.iter().filter(|_| !last) {
                        let seconds = tool.latency.sample(stream);
                        offset += seconds;
                        each(Drawn::Tool(tool.number, seconds));
                    }
                }
            }
            Kind::Session { call, turns, think } => {
                let mut context = 0.0;
                let turns = whole(turns.sample(stream));
                for (turn, i) in (0..).zip(0..turns) {
                    let (prompt, output, hit) = call.draw(shift, stream);
                    context += prompt;
                    let made = call.request(offset, turn, (context, output, hit), shift);
                    each(request(made, call, false));
                    context += output;
                    let pause = think.sample(stream);
                    offset += pause;
                    if i + 1 < turns {
                        each(Drawn::Wait(pause));
                    }
                }
            }
        }
    }

    /// Where calls go that do not go where their class does, each as often as it is said.
    pub fn routes(&self) -> Vec<u16> {
        let calls: Vec<&Call> = match &self.kind {
            Kind::Steps(steps) => steps
                .iter()
                .filter_map(|step| match step {
                    Step::Call(call) => Some(call),
                    Step::Wait(..) | Step::Tool(..) => None,
                })
                .collect(),
            Kind::Agent { call, .. } | Kind::Session { call, .. } => vec![call],
        };
        let variants = self.variants.iter().filter_map(|variant| variant.route);
        calls.into_iter().filter_map(|call| call.route).chain(variants).collect()
    }

    /// The tools that its tasks use.
    pub fn tools(&self) -> Vec<u16> {
        match &self.kind {
            Kind::Steps(steps) => steps
                .iter()
                .filter_map(|step| match step {
                    Step::Tool(tool, ..) => Some(*tool),
                    Step::Call(_) | Step::Wait(..) => None,
                })
                .collect(),
            Kind::Agent { tools, .. } => tools.iter().map(|tool| tool.number).collect(),
            Kind::Session { .. } => Vec::new(),
        }
    }

    /// Whether a task is one request, sent at once.
    pub fn is_one_request(&self) -> bool {
        matches!(&self.kind, Kind::Steps(steps) if matches!(steps[..], [Step::Call(_)]))
    }

    /// What each request of a task has of the ones before it.
    pub fn growth(&self) -> Growth {
        match self.kind {
            Kind::Steps(_) => Growth::Nothing,
            Kind::Agent { .. } => Growth::Prompts,
            Kind::Session { .. } => Growth::PromptsAndOutputs,
        }
    }

    /// Requests of a task, on average.
    pub fn mean_requests(&self) -> f64 {
        match &self.kind {
            Kind::Steps(steps) => steps
                .iter()
                .map(|step| match step {
                    Step::Call(call) => call.share,
                    Step::Wait(..) | Step::Tool(..) => 0.0,
                })
                .sum(),
            // Calls come in steps of as many as are made at once, the last one full.
            Kind::Agent { calls, fan_out, .. } => {
                let each = f64::from(*fan_out);
                calls.mean().max(each) + (each - 1.0) / 2.0
            }
            Kind::Session { turns, .. } => turns.mean().max(1.0),
        }
    }

    /// Fresh and output tokens of a task, about: the mean of each length times the mean of each count.
    pub fn expected_tokens(&self, shift: &Shift) -> f64 {
        let (fresh, output) = self.expected(shift);
        fresh + output
    }

    /// Fresh tokens of a task, about, and output tokens.
    pub fn expected(&self, shift: &Shift) -> (f64, f64) {
        let rest = 1.0 - self.variants.iter().map(|v| v.share).sum::<f64>();
        let (fresh, output) = self.expected_of(shift);
        self.variants.iter().fold((rest * fresh, rest * output), |(fresh, output), v| {
            let own = self.expected_of(&shift.and(v.shift()));
            (fresh + v.share * own.0, output + v.share * own.1)
        })
    }

    fn expected_of(&self, shift: &Shift) -> (f64, f64) {
        let tokens = |call: &Call, times: f64, prompt: f64, output: f64| {
            let hit = call.lengths.mean_hit(call.cache_hit);
            let fresh = 1.0 - (hit * shift.cache_hit).clamp(0.0, 1.0);
            (times * prompt * fresh, times * output * call.samples)
        };
        match &self.kind {
            Kind::Steps(steps) => {
                steps.iter().fold((0.0, 0.0), |(fresh, output), step| match step {
                    Step::Call(call) => {
                        let (prompt, out) = call.mean(shift);
                        let own = tokens(call, call.share, prompt, out);
                        (fresh + own.0, output + own.1)
                    }
                    Step::Wait(..) | Step::Tool(..) => (fresh, output),
                })
            }
            Kind::Agent { call, calls, growth, fan_out, .. } => {
                let (prompt, output) = call.mean(shift);
                let n = calls.mean().max(1.0);
                let steps = (n / f64::from(*fan_out)).max(1.0);
                let grown = prompt + growth.mean() * shift.prompt * (steps - 1.0) / 2.0;
                tokens(call, n, grown, output)
            }
            Kind::Session { call, turns, .. } => {
                let (prompt, output) = call.mean(shift);
                let n = turns.mean().max(1.0);
                tokens(call, n, prompt + (prompt + output) * (n - 1.0) / 2.0, output)
            }
        }
    }
}

/// A drawn count: at least one, never endless.
fn whole(x: f64) -> u64 {
    (x.round() as u64).clamp(1, REQUESTS_MAX)
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::Seed;
    use proptest::prelude::*;

    use super::*;

    fn constant(x: f64) -> Dist {
        Dist::constant(x).unwrap()
    }

    fn call(prompt: f64, output: f64, hit: f64) -> Call {
        Call::new(Lengths::independent(constant(prompt), constant(output)), hit)
    }

    fn pair(prompt: u64, output: u64) -> Pair {
        Pair::of(Tokens::new(prompt), Tokens::new(output))
    }

    /// (offset, prompt, cached, output) of one task.
    fn requests(task: &Task, shift: &Shift) -> Vec<(f64, u64, u64, u64)> {
        let mut all = Vec::new();
        task.draw(shift, &mut Seed::new(1).stream("task"), |r| {
            all.push((r.offset, r.prompt.get(), r.cached.get(), r.output.get()));
        });
        all
    }

    /// Ten calls of 2k tokens and a context that grows: 2,000, 4,000, ... 20,000; with reuse of 90% the fresh
    /// input is a tenth of 110,000.
    #[test]
    fn an_agent_grows_its_context() {
        let task =
            Task::agent(call(2000.0, 100.0, 0.9), constant(10.0), constant(2000.0), constant(5.0));
        let all = requests(&task, &Shift::NONE);
        assert_eq!(all.len(), 10);
        assert_eq!(all[0], (0.0, 2000, 1800, 100));
        assert_eq!(all[9], (45.0, 20_000, 18_000, 100));
        let fresh: u64 = all.iter().map(|r| r.1 - r.2).sum();
        assert_eq!(fresh, 11_000);
        assert!((task.expected_tokens(&Shift::NONE) - 12_000.0).abs() < 1e-6);
        assert_eq!(task.mean_requests(), 10.0);
    }

    /// Turn 3 carries both earlier questions and answers: 100 + 50 + 100 + 50 + 100.
    #[test]
    fn a_conversation_carries_what_was_said() {
        let task = Task::session(call(100.0, 50.0, 0.0), constant(3.0), constant(30.0));
        assert_eq!(
            requests(&task, &Shift::NONE),
            [(0.0, 100, 0, 50), (30.0, 250, 0, 50), (60.0, 400, 0, 50)]
        );
    }

    #[test]
    fn stages_wait_and_are_skipped() {
        let task = Task::steps(vec![
            Step::Call(call(500.0, 40.0, 0.0)),
            Step::Wait(constant(0.2), 1.0),
            Step::Wait(constant(100.0), 0.0),
            Step::Call(call(4000.0, 300.0, 0.5)),
            Step::Call(call(1.0, 1.0, 0.0).sometimes(0.0)),
        ]);
        assert_eq!(requests(&task, &Shift::NONE), [(0.0, 500, 0, 40), (0.2, 4000, 2000, 300)]);
    }

    /// Prompts double and the hit rate collapses to a tenth: 1,000 at 60% becomes 2,000 at 6%.
    #[test]
    fn a_shift_changes_lengths_and_hits() {
        let task = Task::steps(vec![Step::Call(call(1000.0, 60.0, 0.6).samples(2))]);
        let shift = Shift { rate: 3.0, prompt: 2.0, output: 0.5, cache_hit: 0.1 };
        assert_eq!(requests(&task, &shift), [(0.0, 2000, 120, 60)]);
        assert_eq!(shift.and(shift).rate, 9.0);
    }

    /// Four alternatives cost four outputs, but only one of them is carried into the next turn.
    #[test]
    fn samples_are_not_context() {
        let task = Task::session(call(100.0, 50.0, 0.0).samples(4), constant(2.0), constant(1.0));
        assert_eq!(requests(&task, &Shift::NONE), [(0.0, 100, 0, 200), (1.0, 250, 0, 200)]);
    }

    /// An agent's first call keeps its pair together; a variant holds for the whole task.
    #[test]
    fn an_agent_keeps_pairs_and_variants() {
        let pairs = vec![pair(10, 1000), pair(1000, 10)];
        let call = Call::new(Lengths::pairs(pairs, vec![1.0, 1.0]).unwrap(), 0.0);
        let variants = vec![Variant { share: 0.5, prompt: 10.0, output: 1.0, route: None }];
        let task =
            Task::agent(call, constant(3.0), constant(0.0), constant(1.0)).variants(variants);
        let mut stream = Seed::new(3).stream("agent");
        for _ in 0..200 {
            let mut all = Vec::new();
            task.draw(&Shift::NONE, &mut stream, |r| all.push((r.prompt.get(), r.output.get())));
            assert!(matches!(all[0], (10 | 100, 1000) | (1000 | 10_000, 10)), "{all:?}");
            assert!(all.iter().all(|r| r.0 == all[0].0), "{all:?}");
        }
    }

    #[test]
    fn pairs_stay_together_and_variants_take_their_share() {
        let pairs = vec![pair(10, 1000), pair(1000, 10)];
        let lengths = Lengths::pairs(pairs, vec![1.0, 1.0]).unwrap();
        let variants = vec![Variant { share: 0.25, prompt: 10.0, output: 1.0, route: None }];
        let task = Task::steps(vec![Step::Call(Call::new(lengths, 0.0))]).variants(variants);
        let mut stream = Seed::new(2).stream("pairs");
        let mut large = 0;
        for _ in 0..4000 {
            task.draw(&Shift::NONE, &mut stream, |r| {
                let (prompt, output) = (r.prompt.get(), r.output.get());
                assert!(
                    matches!((prompt, output), (10 | 100, 1000) | (1000 | 10_000, 10)),
                    "{r:?}"
                );
                large += u32::from(prompt == 100 || prompt == 10_000);
            });
        }
        // A quarter of 4,000, five standard errors of 27.
        assert!((865..=1135).contains(&large), "{large}");
    }

    /// A pair that says what is cached says it for itself; another has the call's share. A shift scales both.
    #[test]
    fn a_pair_says_what_is_cached() {
        let told = Pair { cached: Some(Tokens::new(750)), ..pair(1000, 10) };
        let lengths = Lengths::pairs(vec![told, pair(200, 50)], vec![1.0, 1.0]).unwrap();
        let task = Task::steps(vec![Step::Call(Call::new(lengths, 0.5))]);
        let mut stream = Seed::new(4).stream("cached");
        for (factor, told, other) in [(1.0, 750, 100), (0.4, 300, 40)] {
            let shift = Shift { cache_hit: factor, ..Shift::NONE };
            for _ in 0..50 {
                task.draw(&shift, &mut stream, |r| {
                    let expected = if r.prompt.get() == 1000 { told } else { other };
                    assert_eq!(r.cached.get(), expected);
                });
            }
        }
        // (250 + 100) / 2 fresh and (10 + 50) / 2 output tokens.
        let (fresh, output) = task.expected(&Shift::NONE);
        assert!((fresh - 175.0).abs() < 1e-9 && (output - 30.0).abs() < 1e-9, "{fresh} {output}");
    }

    /// Five calls, two at once: three steps, the last one full, and a tool between them that takes the place of the pause.
    #[test]
    fn an_agent_makes_a_tree_of_calls() {
        let tool = Tool { number: 3, latency: constant(2.0) };
        let agent = Task::agent(
            call(100.0, 10.0, 0.0).to(Some(7)),
            constant(5.0),
            constant(50.0),
            constant(9.0),
        )
        .fan_out(2)
        .with_tools(vec![tool]);
        let mut all = Vec::new();
        agent.draw_steps(&Shift::NONE, &mut Seed::new(1).stream("tree"), |drawn| {
            all.push(match drawn {
                Drawn::Request { request, route, at_once } => {
                    assert_eq!(route, Some(7));
                    (request.offset, request.prompt.get(), request.turn, at_once)
                }
                Drawn::Tool(number, seconds) => (seconds, 0, u32::from(number), false),
                Drawn::Wait(_) => panic!("a tool takes its place"),
            });
        });
        let tool = (2.0, 0, 3, false);
        assert_eq!(
            all,
            [
                (0.0, 100, 0, false),
                (0.0, 100, 1, true),
                tool,
                (2.0, 150, 2, false),
                (2.0, 150, 3, true),
                tool,
                (4.0, 200, 4, false),
                (4.0, 200, 5, true),
            ]
        );
        assert_eq!(agent.mean_requests(), 5.5);
    }

    proptest! {
        /// Cached tokens never exceed the prompt, every request asks for something, offsets do not fall.
        #[test]
        fn requests_are_sound(prompt in 0.0f64..1e7, output in 0.0f64..1e6, hit in 0.0f64..1.0, factor in 0.0f64..10.0, calls in 0.0f64..30.0) {
            let shift = Shift { rate: 1.0, prompt: factor, output: factor, cache_hit: factor };
            let tasks = [
                Task::steps(vec![Step::Call(call(prompt, output, hit))]),
                Task::agent(call(prompt, output, hit), constant(calls), constant(prompt), constant(1.0)),
                Task::session(call(prompt, output, hit), constant(calls), constant(1.0)),
            ];
            for task in tasks {
                let all = requests(&task, &shift);
                prop_assert!(!all.is_empty());
                prop_assert!(all.iter().all(|(_, p, c, o)| c < p && *o > 0));
                prop_assert!(all.windows(2).all(|w| w[0].0 <= w[1].0));
            }
        }
    }
}
