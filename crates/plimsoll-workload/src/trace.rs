//! What was asked, in order of time, and the same at another scale.

use std::collections::BTreeMap;

use plimsoll_stats::Seed;
use plimsoll_units::Tokens;

/// Requests as they came, such as a log holds them.
///
/// They are in order of time and lie within `[0, span]`. What was done to them since they were read is written down in
/// [`Trace::notes`], so that no figure is taken for the log's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    requests: Vec<TraceRequest>,
    classes: Vec<String>,
    block_tokens: u64,
    span: f64,
    notes: Vec<String>,
}

/// One request of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRequest {
    /// When it came, in seconds from the beginning.
    pub at: f64,
    /// Prompt tokens, cached ones included; at least one.
    pub prompt: Tokens,
    /// Tokens that were generated; at least one.
    pub output: Tokens,
    /// Prompt tokens that were found in a cache, where the log says so.
    pub cached: Option<Tokens>,
    /// What it is counted with: an index into [`Trace::classes`].
    pub class: u16,
    /// The conversation it belongs to, where the log says so.
    pub session: Option<u64>,
    /// Names of its leading blocks, empty where unknown: two requests have in common what is named alike from the first
    /// block on. Below 2^63.
    pub content: Vec<u64>,
}

/// Whether copies of a trace have the same texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each copy has its own: more users with other documents.
    Own,
    /// All have the same: more users with the same documents.
    Same,
}

/// A clock that jumps: requests of a whole tick have the same stamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// From one jump to the next.
    pub seconds: f64,
    /// How many different stamps there are.
    pub stamps: usize,
}

/// Why there is no such trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TraceFault {
    /// A request that cannot be.
    #[error("request {index}: `{field}` {problem}")]
    Request {
        /// Counted from zero.
        index: usize,
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A factor or a moment that means nothing.
    #[error("{what} is {value}, but must be {must}")]
    Argument {
        /// What it is of.
        what: &'static str,
        /// As given.
        value: f64,
        /// What it must be.
        must: &'static str,
    },
    /// More requests than can be held.
    #[error("{count:.0} requests are too many: a trace has at most {REQUESTS_MAX}")]
    TooMany {
        /// How many there would be.
        count: f64,
    },
}

/// No trace has more requests than this: the names of its sessions and blocks, and the sums of its tokens, then fit.
const REQUESTS_MAX: usize = 1 << 28;

impl Trace {
    /// Requests in any order; they are sorted by time, equals as given, and time begins with the first of them.
    pub fn new(
        mut requests: Vec<TraceRequest>,
        classes: Vec<String>,
        block_tokens: u64,
    ) -> Result<Self, TraceFault> {
        if requests.len() > REQUESTS_MAX {
            return Err(TraceFault::TooMany { count: requests.len() as f64 });
        }
        for (index, request) in requests.iter().enumerate() {
            request
                .check(classes.len(), block_tokens)
                .map_err(|(field, problem)| TraceFault::Request { index, field, problem })?;
        }
        sort(&mut requests);
        let first = requests.first().map_or(0.0, |request| request.at);
        for request in &mut requests {
            request.at -= first;
        }
        let span = requests.last().map_or(0.0, |request| request.at);
        Ok(Self { requests, classes, block_tokens, span, notes: Vec::new() })
    }

    /// The requests, in order of time.
    pub fn requests(&self) -> &[TraceRequest] {
        &self.requests
    }

    /// What its classes are called.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Tokens of a named block; the last block of a prompt may be shorter.
    pub fn block_tokens(&self) -> u64 {
        self.block_tokens
    }

    /// How long was watched, in seconds: from the first request to the last, or what was cut out.
    pub fn span(&self) -> f64 {
        self.span
    }

    /// What should be known of it: what its reader found, and what was done to it since.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds something that should be known of it.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Requests of each class, in the order of [`Trace::classes`].
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.classes.len()];
        for request in &self.requests {
            counts[usize::from(request.class)] += 1;
        }
        counts
    }

    /// Requests a second over the span; none where it has no length.
    pub fn rate(&self) -> Option<f64> {
        (self.span > 0.0).then(|| self.len() as f64 / self.span)
    }

    /// All prompt tokens, cached ones included.
    pub fn prompt_tokens(&self) -> Tokens {
        self.requests.iter().map(|request| request.prompt).sum()
    }

    /// All generated tokens.
    pub fn output_tokens(&self) -> Tokens {
        self.requests.iter().map(|request| request.output).sum()
    }

    /// The requests from one moment until before another; time begins with the first moment.
    ///
    /// A moment past the end is the end, and the last request lies before it: windows that meet hold every request once.
    pub fn window(&self, from: f64, to: f64) -> Result<Self, TraceFault> {
        if !(from >= 0.0 && from.is_finite()) {
            let must = "a moment from zero on";
            return Err(TraceFault::Argument { what: "the window's beginning", value: from, must });
        }
        // `to` may be infinite, but not NaN.
        if to.is_nan() || to <= from {
            let must = "after its beginning";
            return Err(TraceFault::Argument { what: "the window's end", value: to, must });
        }
        let inside = |request: &&TraceRequest| (from..to).contains(&request.at);
        let mut requests: Vec<TraceRequest> =
            self.requests.iter().filter(inside).cloned().collect();
        for request in &mut requests {
            request.at -= from;
        }
        let end = to.min(self.span);
        let note = format!("cut from {from} s to {end} s");
        Ok(self.with(requests, (end - from).max(0.0), note))
    }

    /// Keeps each session, and each request that is in none, with this probability. A session is kept whole.
    ///
    /// With the same seed, what a smaller share keeps is kept by a larger one, too.
    pub fn thin(&self, share: f64, seed: Seed) -> Result<Self, TraceFault> {
        if !(0.0..=1.0).contains(&share) {
            let must = "a share from 0 to 1";
            return Err(TraceFault::Argument { what: "the part to keep", value: share, must });
        }
        let requests = self.kept(share, seed).cloned().collect();
        let note = format!("thinned to {share} of its sessions and requests, seed {}", seed.get());
        Ok(self.with(requests, self.span, note))
    }

    /// This many copies on top of each other, the last of them thinned where the number is not whole.
    ///
    /// The first copy stays as it is. Each further one is shifted by its own time, and what passes the end comes at the
    /// beginning, so that bursts of one copy do not meet those of another, but all have the hour's length. A copy's users are its
    /// own: its sessions get other names, and so does the part of a session that came round to the beginning.
    /// The copies of a smaller number are among those of a larger one.
    pub fn superpose(&self, times: f64, sharing: Sharing, seed: Seed) -> Result<Self, TraceFault> {
        positive("the number of copies", times)?;
        let count = times * self.len() as f64;
        if count > REQUESTS_MAX as f64 {
            return Err(TraceFault::TooMany { count });
        }
        let names = Names::of(self);
        let mut offsets = seed.stream("trace offsets");
        let mut requests = Vec::with_capacity(count as usize);
        // Copies of nothing are nothing, however many.
        let whole = if self.is_empty() { 0 } else { times.floor() as u64 };
        for copy in 0..=whole {
            let offset = if copy == 0 { 0.0 } else { offsets.uniform() * self.span };
            let share = (times - copy as f64).min(1.0);
            for request in self.kept(share, seed) {
                requests.push(names.copy(request, copy, offset, self.span, sharing));
            }
        }
        sort(&mut requests);
        let texts = match sharing {
            Sharing::Own => "each with its own texts",
            Sharing::Same => "all with the same texts",
        };
        let note = format!("{times} copies superposed, {texts}, seed {}", seed.get());
        Ok(self.with(requests, self.span, note))
    }

    /// The same traffic from more users or fewer: thinned below one, superposed above.
    pub fn scale(&self, factor: f64, sharing: Sharing, seed: Seed) -> Result<Self, TraceFault> {
        positive("the scale", factor)?;
        if factor <= 1.0 { self.thin(factor, seed) } else { self.superpose(factor, sharing, seed) }
    }

    /// The same requests in less time: every distance is divided by the factor.
    ///
    /// This is no larger audience: bursts get steeper and users think faster. [`Trace::scale`] is what growth looks like.
    pub fn squeeze(&self, factor: f64) -> Result<Self, TraceFault> {
        positive("the factor of time", factor)?;
        if !(self.span / factor).is_finite() {
            let must = "large enough to leave a time";
            return Err(TraceFault::Argument { what: "the factor of time", value: factor, must });
        }
        let mut requests = self.requests.clone();
        for request in &mut requests {
            request.at /= factor;
        }
        Ok(self.with(requests, self.span / factor, format!("time divided by {factor}")))
    }

    /// The tick of its clock, where its stamps are a tenth of a second apart or more. See [`Tick::of`].
    pub fn tick(&self) -> Option<Tick> {
        let times: Vec<f64> = self.requests.iter().map(|request| request.at).collect();
        Tick::of(&times)
    }

    /// Requests of a tick at moments of their own, uniform until the next tick, in the order they had. None without a tick.
    pub fn spread_ticks(&self, seed: Seed) -> Option<(Self, Tick)> {
        let tick = self.tick()?;
        let mut stream = seed.stream("trace ticks");
        let times: Vec<f64> = self.requests.iter().map(|request| request.at).collect();
        let stamps = stamps(&times);
        let mut requests = self.requests.clone();
        for (i, (stamp, first)) in stamps.iter().enumerate() {
            let next = stamps.get(i + 1);
            let end = next.map_or(requests.len(), |next| next.1);
            let width = next.map_or(tick.seconds, |next| tick.seconds.min(next.0 - stamp));
            let mut moments: Vec<f64> = (*first..end).map(|_| stream.uniform() * width).collect();
            moments.sort_by(f64::total_cmp);
            for (request, moment) in requests[*first..end].iter_mut().zip(moments) {
                request.at = stamp + moment;
            }
        }
        let note = format!(
            "stamps lie on a tick of {:.3} s; requests spread within it, seed {}",
            tick.seconds,
            seed.get()
        );
        Some((self.with(requests, self.span + tick.seconds, note), tick))
    }

    /// What is left when each session, and each request without one, stays with this probability.
    fn kept(&self, share: f64, seed: Seed) -> impl Iterator<Item = &TraceRequest> {
        let mut stream = seed.stream("trace thinning");
        let mut sessions: BTreeMap<u64, bool> = BTreeMap::new();
        self.requests.iter().filter(move |request| match request.session {
            Some(session) => *sessions.entry(session).or_insert_with(|| stream.uniform() < share),
            None => stream.uniform() < share,
        })
    }

    /// Other requests of the same trace.
    fn with(&self, requests: Vec<TraceRequest>, span: f64, note: String) -> Self {
        let (classes, notes) = (self.classes.clone(), self.notes.clone());
        Self { requests, classes, block_tokens: self.block_tokens, span, notes }.noted(note)
    }
}

impl Tick {
    /// The tick of a clock that stamped these moments, in seconds and in order, where its stamps are a tenth of a second apart or more.
    ///
    /// Such a clock fakes bursts: whoever came within a tick seems to have come at once. A tick is known by distances between stamps
    /// that are multiples of it to within a hundredth, while requests share stamps; whole seconds and minutes by the stamps themselves.
    pub fn of(times: &[f64]) -> Option<Self> {
        let stamps = stamps(times);
        if stamps.len() < STAMPS_MIN {
            return None;
        }
        let found = |seconds| Some(Self { seconds, stamps: stamps.len() });
        let mut gaps: Vec<f64> = stamps.windows(2).map(|w| w[1].0 - w[0].0).collect();
        gaps.sort_by(f64::total_cmp);
        let median = gaps[gaps.len() / 2];
        let fits = |tick: &f64| {
            let on = gaps.iter().filter(|gap| off(**gap, *tick) <= tick / 100.0).count();
            *tick >= TICK_MIN && on as f64 >= 0.95 * gaps.len() as f64
        };
        // Where requests are few, most ticks pass without one.
        let shared = times.len() as f64 >= 1.2 * stamps.len() as f64;
        let jumps = (1..=4).map(|n| median / f64::from(n)).find(fits);
        if let Some(tick) = jumps.filter(|_| shared) {
            // The median is one of the distances; their mean is nearer to the tick.
            let one = gaps.iter().filter(|gap| (*gap / tick - 1.0).abs() <= 0.01);
            let (sum, n) = one.fold((0.0, 0.0), |(sum, n), gap| (sum + gap, n + 1.0));
            return found(if n > 0.0 { sum / n } else { tick });
        }
        let whole = |unit: &f64| times.iter().all(|at| off(*at, *unit) < 1e-6);
        [60.0, 1.0].into_iter().find(whole).and_then(found)
    }
}

/// Different stamps, each with the index of its first moment. What lies closer than the clock trembles is one.
fn stamps(times: &[f64]) -> Vec<(f64, usize)> {
    let mut stamps: Vec<(f64, usize)> = Vec::new();
    for (i, at) in times.iter().enumerate() {
        if stamps.last().is_none_or(|(stamp, _)| at - stamp > TREMBLE) {
            stamps.push((*at, i));
        }
    }
    stamps
}

/// Fewer stamps than this show no tick.
const STAMPS_MIN: usize = 10;
/// Shorter ticks hide within a step of an engine.
const TICK_MIN: f64 = 0.1;
/// How far stamps of one tick may lie apart.
const TREMBLE: f64 = 0.005;

/// How far a distance is from a multiple of a tick.
fn off(gap: f64, tick: f64) -> f64 {
    (gap - (gap / tick).round() * tick).abs()
}

fn sort(requests: &mut [TraceRequest]) {
    requests.sort_by(|a, b| a.at.total_cmp(&b.at));
}

fn positive(what: &'static str, value: f64) -> Result<(), TraceFault> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(TraceFault::Argument { what, value, must: "a number above zero" })
}

impl TraceRequest {
    fn check(&self, classes: usize, block_tokens: u64) -> Result<(), (&'static str, String)> {
        let (prompt, output) = (self.prompt.get(), self.output.get());
        // Not NaN, and thirty thousand years are enough.
        if !(-1e12..=1e12).contains(&self.at) {
            return Err(("at", format!("is {}, which is no moment", self.at)));
        }
        for (field, tokens) in [("prompt", prompt), ("output", output)] {
            if tokens == 0 || tokens > u64::from(u32::MAX) {
                return Err((field, format!("is {tokens}, not from 1 to {}", u32::MAX)));
            }
        }
        if let Some(cached) = self.cached.filter(|cached| *cached > self.prompt) {
            return Err((
                "cached",
                format!("is {}, more than the prompt of {prompt}", cached.get()),
            ));
        }
        if usize::from(self.class) >= classes {
            return Err(("class", format!("is {} of {classes} classes", self.class)));
        }
        let blocks = self.content.len() as u64;
        if blocks > 0 && (block_tokens == 0 || blocks > prompt.div_ceil(block_tokens)) {
            let problem =
                format!("names {blocks} blocks of {block_tokens} in a prompt of {prompt}");
            return Err(("content", problem));
        }
        if let Some(name) = self.content.iter().find(|name| **name >= 1 << 63) {
            return Err(("content", format!("has the name {name}, not below 2^63")));
        }
        Ok(())
    }
}

/// Sessions and blocks of a trace, counted in the order they appear: a copy's names are those of the first, so many on.
struct Names {
    sessions: BTreeMap<u64, u64>,
    blocks: BTreeMap<u64, u64>,
}

impl Names {
    fn of(trace: &Trace) -> Self {
        let mut names = Self { sessions: BTreeMap::new(), blocks: BTreeMap::new() };
        let number = |map: &mut BTreeMap<u64, u64>, name: u64| {
            let next = map.len() as u64;
            map.entry(name).or_insert(next);
        };
        for request in &trace.requests {
            request.session.iter().for_each(|session| number(&mut names.sessions, *session));
            request.content.iter().for_each(|block| number(&mut names.blocks, *block));
        }
        names
    }

    fn copy(
        &self,
        request: &TraceRequest,
        copy: u64,
        offset: f64,
        span: f64,
        sharing: Sharing,
    ) -> TraceRequest {
        let shifted = request.at + offset;
        let round = offset > 0.0 && shifted >= span;
        let sessions = self.sessions.len() as u64;
        // Twice as many names for each copy: half of them for what came round to the beginning.
        let session = request
            .session
            .map(|session| self.sessions[&session] + sessions * (2 * copy + u64::from(round)));
        let content = match sharing {
            Sharing::Same => request.content.clone(),
            Sharing::Own => {
                let first = self.blocks.len() as u64 * copy;
                request.content.iter().map(|block| self.blocks[block] + first).collect()
            }
        };
        let at = if round { shifted - span } else { shifted };
        TraceRequest { at, session, content, ..request.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(at: f64) -> TraceRequest {
        TraceRequest {
            at,
            prompt: Tokens::new(1000),
            output: Tokens::new(10),
            cached: None,
            class: 0,
            session: None,
            content: Vec::new(),
        }
    }

    fn trace(requests: Vec<TraceRequest>) -> Trace {
        Trace::new(requests, vec!["all".to_owned()], 512).unwrap()
    }

    /// `n` requests a second apart, every `turns` of them a session whose prompts begin alike.
    fn sessions(n: u64, turns: u64) -> Trace {
        trace(
            (0..n)
                .map(|i| TraceRequest {
                    session: Some(i % n.div_ceil(turns)),
                    content: vec![7, 100 + i % n.div_ceil(turns)],
                    ..request(i as f64 + 0.25 * (i % 3) as f64)
                })
                .collect(),
        )
    }

    fn blocks(requests: &[TraceRequest]) -> std::collections::BTreeSet<u64> {
        requests.iter().flat_map(|r| r.content.iter().copied()).collect()
    }

    #[test]
    fn time_begins_with_the_first() {
        let trace = trace([12.5, 10.0, 14.0].map(request).to_vec());
        let at: Vec<f64> = trace.requests().iter().map(|r| r.at).collect();
        assert_eq!(at, [0.0, 2.5, 4.0]);
        assert_eq!((trace.span(), trace.rate()), (4.0, Some(0.75)));
        assert_eq!((trace.prompt_tokens().get(), trace.output_tokens().get()), (3000, 30));
        assert_eq!((trace.counts(), trace.len()), (vec![3], 3));
        let one = super::tests::trace(vec![request(3.0)]);
        assert_eq!((one.span(), one.rate()), (0.0, None));
        assert!(super::tests::trace(Vec::new()).is_empty());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let check = |request: TraceRequest, message: &str| {
            let fault = Trace::new(vec![request], vec!["all".to_owned()], 512).unwrap_err();
            assert_eq!(fault.to_string(), message);
        };
        let new = request(0.0);
        check(request(f64::NAN), "request 0: `at` is NaN, which is no moment");
        let none = TraceRequest { prompt: Tokens::ZERO, ..new.clone() };
        check(none, "request 0: `prompt` is 0, not from 1 to 4294967295");
        let huge = TraceRequest { output: Tokens::new(1 << 32), ..new.clone() };
        check(huge, "request 0: `output` is 4294967296, not from 1 to 4294967295");
        let cached = TraceRequest { cached: Some(Tokens::new(1001)), ..new.clone() };
        check(cached, "request 0: `cached` is 1001, more than the prompt of 1000");
        check(TraceRequest { class: 1, ..new.clone() }, "request 0: `class` is 1 of 1 classes");
        let long = TraceRequest { content: vec![1, 2, 3], ..new.clone() };
        check(long, "request 0: `content` names 3 blocks of 512 in a prompt of 1000");
        let name = TraceRequest { content: vec![u64::MAX], ..new };
        check(name, "request 0: `content` has the name 18446744073709551615, not below 2^63");
    }

    #[test]
    fn arguments_must_mean_something() {
        let trace = sessions(10, 2);
        let seed = Seed::new(1);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(trace.superpose(bad, Sharing::Own, seed).is_err(), "{bad}");
            assert!(trace.scale(bad, Sharing::Own, seed).is_err(), "{bad}");
            assert!(trace.squeeze(bad).is_err(), "{bad}");
        }
        let fault = trace.thin(1.5, seed).unwrap_err().to_string();
        assert_eq!(fault, "the part to keep is 1.5, but must be a share from 0 to 1");
        assert!(trace.window(5.0, 5.0).is_err() && trace.window(-1.0, 5.0).is_err());
        assert!(trace.window(0.0, f64::NAN).is_err());
        assert!(trace.squeeze(f64::MIN_POSITIVE).is_err());
        let fault = trace.superpose(1e9, Sharing::Own, seed).unwrap_err();
        assert_eq!(fault, TraceFault::TooMany { count: 1e10 });
        assert!(super::tests::trace(Vec::new()).superpose(1e9, Sharing::Own, seed).is_ok());
    }

    /// Windows of ten seconds out of 0, 1.25, 2.5, 3, 4.25, ...: what lies in them, from their beginning.
    #[test]
    fn a_window_has_its_own_clock() {
        let trace = sessions(100, 4);
        let window = trace.window(10.0, 20.0).unwrap();
        assert_eq!((window.len(), window.span()), (10, 10.0));
        assert_eq!(window.requests()[0].at, 0.25);
        assert_eq!(window.notes(), ["cut from 10 s to 20 s"]);
        let rest = trace.window(90.0, f64::INFINITY).unwrap();
        assert_eq!((rest.len(), rest.span()), (10, 9.0));
        let none = trace.window(1000.0, 2000.0).unwrap();
        assert_eq!((none.len(), none.span(), none.rate()), (0, 0.0, None));
    }

    /// One stays as it is, names and all but the order they are counted in; two and a half are two whole ones and part of a third.
    #[test]
    fn copies_are_shifted_and_renamed() {
        let trace = sessions(1000, 4);
        let seed = Seed::new(5);
        let one = trace.superpose(1.0, Sharing::Same, seed).unwrap();
        assert_eq!(one.requests(), trace.requests());
        let many = trace.superpose(2.5, Sharing::Own, seed).unwrap();
        assert_eq!(many.span(), trace.span());
        // 250 sessions of four are kept with one half: 500 requests, five standard errors of 32.
        assert!((2340..=2660).contains(&many.len()), "{}", many.len());
        // 251 texts in a trace, and none of a copy in another.
        assert_eq!(blocks(many.requests()).iter().filter(|b| **b < 251).count(), 251);
        assert!((502..=753).contains(&blocks(many.requests()).len()));
        let same = trace.superpose(2.5, Sharing::Same, seed).unwrap();
        assert_eq!(blocks(same.requests()), blocks(trace.requests()));
        assert_eq!(same.len(), many.len());
        assert_eq!(many.notes(), ["2.5 copies superposed, each with its own texts, seed 5"]);
        // More load has all that less load had.
        let more = trace.superpose(3.0, Sharing::Own, seed).unwrap();
        let key = |r: &TraceRequest| (r.at.to_bits(), r.session);
        let all: std::collections::BTreeSet<_> = more.requests().iter().map(key).collect();
        assert_eq!(all.len(), 3000);
        assert!(many.requests().iter().all(|r| all.contains(&key(r))));
    }

    /// Ticks of three seconds that tremble by a millisecond, as a public trace of conversations has them.
    #[test]
    fn a_tick_is_found_and_spread() {
        let mut stream = Seed::new(9).stream("tremble");
        let mut requests = Vec::new();
        for tick in 0..400 {
            let tremble = [0.0, -0.001, 0.001, 0.003][stream.index(4)];
            requests
                .extend((0..stream.index(20)).map(|_| request(f64::from(tick) * 3.0 + tremble)));
        }
        let ticking = trace(requests);
        let tick = ticking.tick().unwrap();
        assert!((tick.seconds - 3.0).abs() < 1e-3, "{tick:?}");
        let (spread, same) = ticking.spread_ticks(Seed::new(1)).unwrap();
        assert_eq!(same, tick);
        assert_eq!(spread.len(), ticking.len());
        assert!(spread.requests().is_sorted_by(|a, b| a.at <= b.at));
        for (before, after) in ticking.requests().iter().zip(spread.requests()) {
            assert!((-0.005..3.004).contains(&(after.at - before.at)), "{before:?} {after:?}");
        }
        assert_eq!(spread.tick(), None);
        assert!(spread.notes()[0].starts_with("stamps lie on a tick of 3.000 s"), "{spread:?}");
    }

    #[test]
    fn a_clock_without_ticks_is_left_alone() {
        let check = |seconds: &dyn Fn(f64) -> f64, expect: Option<f64>| {
            let mut stream = Seed::new(3).stream("gaps");
            let mut at = 0.0;
            let moments = (0..2000).map(|_| {
                at += stream.exponential() * 5.0;
                request(seconds(at))
            });
            let trace = trace(moments.collect());
            assert_eq!(trace.tick().map(|tick| tick.seconds), expect);
            assert_eq!(trace.spread_ticks(Seed::new(1)).is_some(), expect.is_some());
        };
        check(&|at| at, None);
        check(&|at| (at * 1000.0).round() / 1000.0, None);
        check(&f64::floor, Some(1.0));
        check(&|at| (at / 60.0).floor() * 60.0, Some(60.0));
        // A steady pace is no tick: nobody shares a stamp.
        let steady = trace((0..100).map(|i| request(f64::from(i) * 0.7)).collect());
        assert_eq!(steady.tick(), None);
    }

    prop_compose! {
        fn any_trace()(moments in prop::collection::vec((0.0f64..1000.0, 0u64..40), 1..200)) -> Trace {
            trace(moments.into_iter().map(|(at, session)| TraceRequest {
                session: (session < 20).then_some(session),
                content: vec![1 << 40, session],
                ..request(at)
            }).collect())
        }
    }

    proptest! {
        /// Thinning keeps the order, whole sessions, and about its share; a larger share keeps what a smaller one does.
        #[test]
        fn thinning(n in 1u64..3000, turns in 1u64..4, share in 0.0f64..=1.0, seed in any::<u64>()) {
            let trace = sessions(n, turns);
            let thin = trace.thin(share, Seed::new(seed)).unwrap();
            let at: Vec<u64> = thin.requests().iter().map(|r| r.at.to_bits()).collect();
            let mut all = trace.requests().iter().map(|r| r.at.to_bits());
            prop_assert!(at.iter().all(|at| all.any(|other| other == *at)), "order");
            let kept: std::collections::BTreeSet<_> = thin.requests().iter().map(|r| r.session).collect();
            let whole = trace.requests().iter().filter(|r| kept.contains(&r.session)).count();
            prop_assert_eq!(whole, thin.len());
            // Six standard errors, and a session more for few of them.
            let error = 6.0 * (turns as f64 * n as f64 * share * (1.0 - share)).sqrt() + turns as f64 * 3.0;
            prop_assert!((thin.len() as f64 - share * n as f64).abs() <= error, "{} of {n} at {share}", thin.len());
            let more = trace.thin(share + (1.0 - share) / 2.0, Seed::new(seed)).unwrap();
            let more: std::collections::BTreeSet<_> = more.requests().iter().map(|r| r.session).collect();
            prop_assert!(kept.is_subset(&more));
        }

        /// Whole copies multiply counts and tokens, keep the span, and have no block or session in common.
        #[test]
        fn superposing(trace in any_trace(), times in 1u32..6, seed in any::<u64>()) {
            let many = trace.superpose(f64::from(times), Sharing::Own, Seed::new(seed)).unwrap();
            let times = times as usize;
            prop_assert_eq!(many.len(), times * trace.len());
            prop_assert_eq!(many.prompt_tokens().get(), times as u64 * trace.prompt_tokens().get());
            prop_assert_eq!(many.span(), trace.span());
            prop_assert!(many.requests().iter().all(|r| (0.0..=trace.span()).contains(&r.at)));
            prop_assert!(many.requests().is_sorted_by(|a, b| a.at <= b.at));
            prop_assert_eq!(blocks(many.requests()).len(), times * blocks(trace.requests()).len());
            // A copy's texts are numbered apart, so the number tells the copy; its sessions likewise.
            let own = blocks(trace.requests()).len() as u64;
            let names: std::collections::BTreeSet<_> = trace.requests().iter().filter_map(|r| r.session).collect();
            for request in many.requests() {
                let copies: std::collections::BTreeSet<u64> = request.content.iter().map(|b| b / own).collect();
                prop_assert_eq!(copies.len(), 1);
                if let Some(session) = request.session {
                    prop_assert!(copies.contains(&(session / (2 * names.len() as u64))));
                }
            }
        }

        /// Windows that meet hold every request once, and their spans add up.
        #[test]
        fn windows(trace in any_trace(), cut in 0.001f64..1000.0) {
            let before = trace.window(0.0, cut).unwrap();
            let after = trace.window(cut, f64::INFINITY).unwrap();
            prop_assert_eq!(before.len() + after.len(), trace.len());
            prop_assert_eq!(before.prompt_tokens() + after.prompt_tokens(), trace.prompt_tokens());
            prop_assert!((before.span() + after.span() - trace.span()).abs() < 1e-9);
            for part in [before, after] {
                prop_assert!(part.requests().iter().all(|r| (0.0..=part.span()).contains(&r.at)));
            }
        }

        /// Squeezing keeps requests and divides the span; scaling is one of the two that are not squeezing.
        #[test]
        fn squeezing_and_scaling(trace in any_trace(), factor in 0.01f64..10.0, seed in any::<u64>()) {
            let tight = trace.squeeze(factor).unwrap();
            prop_assert_eq!(tight.len(), trace.len());
            prop_assert!((tight.span() * factor - trace.span()).abs() <= 1e-9 * trace.span());
            let seed = Seed::new(seed);
            let scaled = trace.scale(factor, Sharing::Own, seed).unwrap();
            let other = if factor <= 1.0 {
                trace.thin(factor, seed)
            } else {
                trace.superpose(factor, Sharing::Own, seed)
            };
            prop_assert_eq!(scaled, other.unwrap());
        }
    }
}
