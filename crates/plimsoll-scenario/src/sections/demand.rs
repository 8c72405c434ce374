//! Who asks for what.

use std::collections::BTreeMap;

use plimsoll_units::{Factor, Fraction, PerSecond, Seconds, Tokens, Usd, UsdPerCall};

use crate::profiles::profile_of;
use crate::read::{Node, Reader, Shape, Value, Whole, choice, table};
use crate::sections::Scenario;
use crate::values::{
    ClassName, Count, Hours, Moment, Name, Plain, Range, RegionName, Spread, TargetName, ToolName,
};

table! {
    /// A segment of demand: tasks that share a token shape, a route and an SLO.
    ///
    /// One task is one request, unless `stages`, `agent` or `sessions` make it several.
    pub struct Class = "class", check class_makes_sense, fallback profile_of {
        /// What tables and other keys call it.
        name: Name, required;
        /// A named starting point; keys written here override it. `plimsoll catalog profiles` lists them.
        profile: Profile, optional("every key is written here or has its own default");
        /// Tasks a second, averaged over the week.
        rate: PerSecond, optional("the ledger says it");
        /// How arrivals vary around the rate.
        arrivals: Spacing, default("'poisson'", "independent users; give a `cv` or a `burst` where logs show clustering");
        /// Standard deviation / mean of the gaps, for `gamma` and `weibull` arrivals.
        cv: Plain, optional("1, as for independent users");
        /// Episodes of a higher rate.
        burst: Burst, optional("no bursts beyond what the arrivals show");
        /// With `dumps` arrivals: everything since the last dump arrives at once, this often.
        every: Seconds, optional("only `dumps` need it");
        /// Twenty-four multipliers from midnight on; only their proportions count.
        by_hour: Hours, optional("the same rate all day");
        /// The rate on Saturday and Sunday, against weekdays.
        weekend: Factor, default("1.0", "no difference was shown");
        /// Prompt tokens of a request, cached ones included.
        prompt: Spread<Tokens>, optional("`pairs` or every stage says it");
        /// Output tokens of a request.
        output: Spread<Tokens>, optional("`pairs` or every stage says it");
        /// Prompt and output lengths that occur together, which keeps their dependence.
        pairs: Pair, list("prompt and output are drawn independently");
        /// The share of prompt tokens served from a prefix cache.
        cache_hit: Fraction, default("0.0", "a hit rate that nobody measured is none");
        /// Generated alternatives for one prompt.
        samples: Whole<1, 64>, default("1", "one answer is asked for");
        /// A conversation of several turns with a growing context.
        sessions: Sessions, optional("each task stands alone");
        /// One task that makes many calls with a growing context.
        agent: Agent, optional("one task is one call");
        /// Steps of one answer, in order.
        stages: Stage, list("the request is its only step");
        /// Parts of this class that are served differently.
        variants: Variant, list("all of it is served alike");
        /// What clients do when a request fails.
        retries: Retries, optional("clients do not retry");
        /// A task that takes longer is of no use.
        deadline: Seconds, optional("clients wait as long as it takes");
        /// Users who leave before the answer is complete.
        cancellation: Cancellation, optional("nobody leaves");
        /// What was sold.
        tier: Tier, default("'standard'", "nothing else was sold");
        /// Larger is served first where the engine has priorities.
        priority: Whole<0, 1000>, default("0", "all alike");
        /// What makes a task good.
        slo: Slo, default("{}", "every key of it has a default");
        /// The share of answered tasks that succeed, judged by their outcome.
        success_rate: Fraction, optional("unknown, so no cost per success is claimed");
        /// Who is billed.
        tenant: String, optional("one tenant");
        /// The product feature it belongs to.
        feature: String, optional("not told apart");
        /// What one success is worth.
        value: Usd, optional("not stated");
        /// Where its users are.
        region: RegionName, optional("the first region");
        /// Ledger columns and the values that rows of this class have.
        matches as "match": BTreeMap<String, String>, default("{}", "no ledger is read");
    }
}

fn class_makes_sense(class: &Class, reader: &mut Reader<'_>) {
    let shaped = !class.pairs.is_empty() || (class.prompt.is_some() && class.output.is_some());
    let stages_shaped = !class.stages.is_empty()
        && class
            .stages
            .iter()
            .all(|s| s.latency.is_some() || s.tool.is_some() || s.prompt.is_some());
    let tried = reader.wrote("prompt") && class.prompt.is_none()
        || reader.wrote("output") && class.output.is_none()
        || reader.wrote("pairs") && class.pairs.is_empty()
        || reader.wrote("stages") && class.stages.is_empty();
    if !shaped && !stages_shaped && !tried {
        let missing = if class.prompt.is_none() { "prompt" } else { "output" };
        let diagnostic = reader
            .at_key(
                missing,
                "missing-key",
                format!("class `{}` does not say how long its requests are", class.name.as_str()),
            )
            .label(format!("`{missing}` is missing, and neither `pairs` nor every stage gives it"))
            .help(format!("add `{missing} = {{ p50 = 900, p95 = 4200 }}` or `profile = \"chat\"`"));
        reader.report(diagnostic);
    }
    let calls_none = |s: &Stage| {
        s.prompt.is_none() && (s.latency.is_some() || s.tool.is_some()) || s.share.get() == 0.0
    };
    if !class.stages.is_empty() && class.stages.iter().all(calls_none) {
        let diagnostic = reader
            .at_key(
                "stages",
                "contradiction",
                format!("no stage of class `{}` calls a model", class.name.as_str()),
            )
            .label("latencies and tools only")
            .help("add a stage such as `{ name = \"answer\", prompt = 900, output = 200 }`");
        reader.report(diagnostic);
    }
    if !class.pairs.is_empty() && reader.wrote("prompt") {
        let diagnostic = reader
            .at_key(
                "prompt",
                "contradiction",
                "`pairs` already says how long prompts and outputs are",
            )
            .label("given twice")
            .help("take out `prompt` and `output`, or `pairs`");
        reader.report(diagnostic);
    }
    if !class.pairs.is_empty() && class.pairs.iter().all(|pair| pair.weight.get() == 0.0) {
        let diagnostic = reader
            .at_key(
                "pairs",
                "impossible-distribution",
                "every pair of lengths has weight 0, so none can be drawn",
            )
            .label("no weight above 0")
            .help("write `weight = 1` or leave it out");
        reader.report(diagnostic);
    }
    match (class.arrivals, class.every) {
        (Spacing::Dumps, None) if !reader.wrote("every") => {
            let diagnostic = reader
                .at_key(
                    "arrivals",
                    "missing-key",
                    "`dumps` need `every`, the time between two of them",
                )
                .label("how often?")
                .help("add `every = \"15m\"`");
            reader.report(diagnostic);
        }
        (Spacing::Dumps, Some(every)) if every.get() < 1.0 => {
            let diagnostic = reader
                .at_key("every", "out-of-range", format!("dumps every {every} are a stream"))
                .label("less than 1 s")
                .help("write `every = \"15m\"`, or another kind of `arrivals`");
            reader.report(diagnostic);
        }
        _ => {}
    }
    if let Some(cv) = class.cv.filter(|cv| !(0.01..=100.0).contains(&cv.get())) {
        let diagnostic = reader
            .at_key(
                "cv",
                "out-of-range",
                format!("`cv` must be between 0.01 and 100; it is {}", cv.get()),
            )
            .label("outside what gaps between arrivals show")
            .help("write `cv = 2.0`; production traces lie between 1 and 4");
        reader.report(diagnostic);
    }
    if class.agent.is_some() && class.sessions.is_some() {
        let diagnostic = reader
            .at_key("sessions", "contradiction", "a class is an agent or a conversation, not both")
            .label("`agent` is given too")
            .help("split it into two classes");
        reader.report(diagnostic);
    }
    let share: f64 = class.variants.iter().map(|v| v.share.get()).sum();
    if share > 1.0 + 1e-9 {
        let diagnostic = reader
            .at_key(
                "variants",
                "contradiction",
                format!("the variants take {share:.4} of the class, more than all of it"),
            )
            .label(format!("shares add up to {share:.4}"))
            .help(
                "let the shares add up to at most 1; what they leave is served as the class says",
            );
        reader.report(diagnostic);
    }
    let timeout = class.retries.as_ref().and_then(|retries| retries.timeout);
    if let (Some(deadline), Some(timeout)) = (class.deadline, timeout)
        && timeout > deadline
    {
        let message = format!("an attempt may take {timeout}, but the task ends at {deadline}");
        let diagnostic = reader
            .within("retries", |r| r.at_key("timeout", "contradiction", message))
            .label("longer than `deadline`: no attempt is ever given up for a second one")
            .help(format!("write `timeout = \"{deadline}\"` or less, or take it out"));
        reader.report(diagnostic);
    }
    if let (Some(deadline), Some(ttft)) = (class.deadline, class.slo.ttft)
        && deadline < ttft
    {
        let diagnostic = reader
            .at_key(
                "deadline",
                "contradiction",
                format!(
                    "the deadline of {deadline} comes before the allowed first token at {ttft}"
                ),
            )
            .label("shorter than `slo.ttft`")
            .help(format!(
                "write `deadline = \"{}s\"` or more, or a shorter `slo.ttft`",
                (ttft.get() * 10.0).ceil()
            ));
        reader.report(diagnostic);
    }
}

/// Demand must come from somewhere, and in numbers that a study can carry.
pub(super) fn classes_have_demand(scenario: &Scenario, reader: &mut Reader<'_>) {
    for class in &scenario.class {
        let name = class.name.as_str();
        let tried = reader.within("class", |r| r.within(name, |r| r.wrote("rate")));
        if class.rate.is_none() && scenario.study.ledger.is_none() && !tried {
            let message = format!("class `{name}` does not say how often its tasks come");
            let diagnostic = reader
                .within("class", |r| r.within(name, |r| r.at_key("rate", "missing-key", message)))
                .label("`rate` is missing, and the study names no ledger")
                .help("add `rate = \"40/s\"`");
            reader.report(diagnostic);
        }
    }
    let join = "join those that share a token shape and an SLO";
    let split = "try them in scenarios of their own";
    for (key, count, most, help) in [
        ("class", scenario.class.len(), 500, join),
        ("event", scenario.event.len(), 200, join),
        ("incident", scenario.incident.len(), 200, split),
    ] {
        if count > most {
            let diagnostic = reader
                .at_root(
                    key,
                    "too-many",
                    format!("{count} of `{key}` are more than the {most} a study carries"),
                )
                .label("the first of them")
                .help(help);
            reader.report(diagnostic);
        }
    }
}

choice! {
    /// How gaps between arrivals vary.
    pub enum Spacing {
        /// Independent users.
        Poisson = "poisson",
        /// Gamma gaps of a given `cv`.
        Gamma = "gamma",
        /// Weibull gaps of a given `cv`.
        Weibull = "weibull",
        /// Everything since the last dump, at once.
        Dumps = "dumps",
    }
}

choice! {
    /// What was sold.
    pub enum Tier {
        /// Paid for low latency.
        Premium = "premium",
        /// The normal offer.
        Standard = "standard",
        /// When there is room.
        Batch = "batch",
        /// Nothing was promised.
        Free = "free",
    }
}

/// A profile's name.
#[derive(Clone, Debug)]
pub struct Profile(&'static str);

impl Profile {
    /// As written.
    pub fn as_str(&self) -> &str {
        self.0
    }
}

impl Value for Profile {
    fn shape() -> Shape {
        Shape::Choice(crate::profiles::names())
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        crate::read::word(node, reader, crate::profiles::names()).map(Self)
    }
}

table! {
    /// Episodes of a higher rate; between them the rate is lower, so that the average holds.
    pub struct Burst = "class.burst", check burst_makes_sense {
        /// The rate in an episode, against the average.
        times: Plain, required;
        /// How long an episode lasts on average.
        lasts: Seconds, required;
        /// The time from one episode to the next, on average.
        every: Seconds, required;
    }
}

fn burst_makes_sense(burst: &Burst, reader: &mut Reader<'_>) {
    let (times, lasts, every) = (burst.times.get(), burst.lasts.get(), burst.every.get());
    if lasts < 1.0 {
        let diagnostic = reader
            .at_key("lasts", "out-of-range", format!("episodes of {} are no bursts", burst.lasts))
            .label("less than 1 s")
            .help(
                "write `lasts = \"30s\"`, or describe shorter clustering with `arrivals` and `cv`",
            );
        reader.report(diagnostic);
        return;
    }
    if let Err(error) = plimsoll_stats::Burst::new(times, lasts, every) {
        let most = if lasts > 0.0 && every > lasts { every / lasts } else { 2.0 };
        let diagnostic = reader
            .at_key("times", "impossible-burst", error.to_string())
            .label(format!("{} long, every {}", burst.lasts, burst.every))
            .help(format!(
                "with these times `times` may be from 1 to {}",
                (most * 10.0).floor() / 10.0
            ));
        reader.report(diagnostic);
    }
}

table! {
    /// One pair of lengths that occur together.
    pub struct Pair = "class.pairs", check pair_makes_sense {
        /// Prompt tokens, cached ones included.
        prompt: Tokens, required;
        /// Prompt tokens served from a prefix cache.
        cached: Tokens, optional("`cache_hit` of the class says it");
        /// Output tokens.
        output: Tokens, required;
        /// How often, against the other pairs.
        weight: Plain, default("1.0", "all pairs alike");
    }
}

fn pair_makes_sense(pair: &Pair, reader: &mut Reader<'_>) {
    if let Some(cached) = pair.cached.filter(|cached| *cached > pair.prompt) {
        let diagnostic = reader
            .at_key(
                "cached",
                "contradiction",
                format!("{cached} cached are more than the whole prompt of {}", pair.prompt),
            )
            .label("`prompt` includes what is cached")
            .help(format!("write `cached = {}` or less", pair.prompt.get()));
        reader.report(diagnostic);
    }
}

table! {
    /// A conversation: each turn carries what was said before.
    pub struct Sessions = "class.sessions" {
        /// Turns in a conversation.
        turns: Spread<Count>, required;
        /// The pause before a next turn.
        think: Spread<Seconds>, default("{ p50 = '30s', p95 = '180s' }", "reading an answer takes that long");
    }
}

table! {
    /// One task, many calls, a context that grows from call to call.
    pub struct Agent = "class.agent" {
        /// Calls in a task.
        calls: Spread<Count>, required;
        /// Calls that each step makes at once; the next step waits for all of them.
        fan_out: Whole<1, 64>, default("1", "one call after the other");
        /// Tokens that each call adds to the context of the next.
        growth: Spread<Tokens>, default("0", "the context does not grow");
        /// The pause between two calls, while tools run.
        gap: Spread<Seconds>, default("{ p50 = '2s', p95 = '20s' }", "tools and sandboxes take that long");
        /// Tools that each call uses.
        tools: ToolName, list("no tool is modelled");
    }
}

table! {
    /// One step of an answer: a model call, a tool, or a fixed latency.
    pub struct Stage = "class.stages", check stage_makes_sense {
        /// What it does.
        name: Name, required;
        /// A fixed latency: retrieval, a safety check.
        latency: Spread<Seconds>, optional("it is a model call or a tool");
        /// A tool that is called.
        tool: ToolName, optional("it is a model call or a latency");
        /// Prompt tokens of its model call.
        prompt: Spread<Tokens>, optional("the class's own");
        /// Output tokens of its model call.
        output: Spread<Tokens>, optional("the class's own");
        /// The share of its prompt served from a prefix cache.
        cache_hit: Fraction, optional("the class's own");
        /// The pool or provider that serves it.
        route: TargetName, optional("where the class goes");
        /// How often it runs.
        share: Fraction, default("1.0", "always");
    }
}

fn stage_makes_sense(stage: &Stage, reader: &mut Reader<'_>) {
    let kinds = [
        ("latency", stage.latency.is_some()),
        ("tool", stage.tool.is_some()),
        ("prompt", stage.prompt.is_some()),
    ];
    let given: Vec<&str> = kinds.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
    if given.len() > 1 {
        let diagnostic = reader
            .at_key(
                given[1],
                "contradiction",
                format!(
                    "stage `{}` is one thing: a latency, a tool or a model call",
                    stage.name.as_str()
                ),
            )
            .label(format!("`{}` is given too", given[0]))
            .help("split it into two stages");
        reader.report(diagnostic);
    }
    if stage.prompt.is_some() != stage.output.is_some()
        && !(reader.wrote("prompt") && reader.wrote("output"))
    {
        let missing = if stage.prompt.is_none() { "prompt" } else { "output" };
        let diagnostic = reader
            .at_key(
                missing,
                "missing-key",
                format!("stage `{}` is a model call with half a shape", stage.name.as_str()),
            )
            .label(format!("`{missing}` is missing"))
            .help(format!("add `{missing} = {{ p50 = 900, p95 = 4200 }}`"));
        reader.report(diagnostic);
    }
}

table! {
    /// A part of a class that is served differently.
    pub struct Variant = "class.variants" {
        /// What tables call it.
        name: Name, required;
        /// How much of the class it is.
        share: Fraction, required;
        /// Its prompt length, against the class's.
        prompt: Factor, default("1.0", "as the class");
        /// Its output length, against the class's.
        output: Factor, default("1.0", "as the class");
        /// The pool or provider that serves it.
        route: TargetName, optional("where the class goes");
    }
}

table! {
    /// What clients do when a request fails, is refused or times out.
    pub struct Retries = "class.retries", check retries_make_sense {
        /// Attempts in all, the first one included.
        attempts: Whole<1, 20>, default("3", "the default of most SDKs");
        /// The pause before the second attempt; it doubles from then on.
        backoff: Seconds, default("'500ms'", "the default of most SDKs");
        /// No pause is longer than this.
        backoff_max: Seconds, default("'8s'", "the cap of the OpenAI and Anthropic SDKs (`MAX_RETRY_DELAY`)");
        /// The share of each pause that is random.
        jitter: Fraction, default("1.0", "full jitter, the default of most SDKs");
        /// Retries allowed, against first attempts.
        budget: Fraction, optional("no budget: every failure is retried");
        /// An attempt that takes longer is given up and tried again.
        timeout: Seconds, optional("only the deadline ends an attempt");
    }
}

fn retries_make_sense(retries: &Retries, reader: &mut Reader<'_>) {
    let attempts = retries.attempts.get();
    if attempts > 1 && retries.backoff == Seconds::ZERO && retries.budget.is_none() {
        let diagnostic = reader
            .at_key(
                "backoff",
                "contradiction",
                format!(
                    "without a pause or a budget, a failure comes back at once, up to {} times",
                    attempts - 1
                ),
            )
            .label("jitter spreads a pause, and there is none")
            .help("write `backoff = \"500ms\"`, or `budget = \"10%\"`");
        reader.report(diagnostic);
    }
    let (first, most) = (retries.backoff, retries.backoff_max);
    if first > most {
        let diagnostic = reader
            .at_key(
                if reader.wrote("backoff_max") { "backoff_max" } else { "backoff" },
                "contradiction",
                format!("the first pause of {first} is longer than the longest, {most}"),
            )
            .label(format!("`backoff` is {first}, `backoff_max` is {most}"))
            .help(format!("write `backoff_max = \"{first}\"` or more"));
        reader.report(diagnostic);
    }
    if retries.timeout == Some(Seconds::ZERO) {
        let diagnostic = reader
            .at_key("timeout", "out-of-range", "a timeout of 0 s gives up before any answer")
            .label("must be above 0")
            .help("write `timeout = \"30s\"`, or take it out");
        reader.report(diagnostic);
    }
}

table! {
    /// Users who leave before the answer is complete.
    pub struct Cancellation = "class.cancellation" {
        /// How many of them.
        share: Fraction, required;
        /// When they leave, after asking.
        after: Spread<Seconds>, required;
    }
}

table! {
    /// What makes a task good: its own thresholds, and tails of the population.
    pub struct Slo = "class.slo", check slo_makes_sense {
        /// Its first token comes within this.
        ttft: Seconds, optional("not asked for");
        /// Its mean gap between tokens is at most this.
        tpot: Seconds, optional("not asked for");
        /// It is complete within this.
        e2e: Seconds, optional("not asked for");
        /// Its largest gap between tokens is at most this.
        gap: Seconds, optional("not asked for");
        /// The median first token.
        ttft_p50: Seconds, optional("not asked for");
        /// 95 in 100 first tokens.
        ttft_p95: Seconds, optional("not asked for");
        /// 99 in 100 first tokens.
        ttft_p99: Seconds, optional("not asked for");
        /// 95 in 100 gaps between tokens.
        itl_p95: Seconds, optional("not asked for");
        /// 99 in 100 gaps between tokens.
        itl_p99: Seconds, optional("not asked for");
        /// 95 in 100 mean gaps.
        tpot_p95: Seconds, optional("not asked for");
        /// 95 in 100 tasks.
        e2e_p95: Seconds, optional("not asked for");
        /// 99 in 100 tasks.
        e2e_p99: Seconds, optional("not asked for");
        /// The share of this class's tasks that must be good.
        attainment: Fraction, optional("the study's");
    }
}

fn slo_makes_sense(slo: &Slo, reader: &mut Reader<'_>) {
    let pairs = [
        ("ttft_p50", slo.ttft_p50, "ttft_p95", slo.ttft_p95),
        ("ttft_p95", slo.ttft_p95, "ttft_p99", slo.ttft_p99),
        ("itl_p95", slo.itl_p95, "itl_p99", slo.itl_p99),
        ("e2e_p95", slo.e2e_p95, "e2e_p99", slo.e2e_p99),
        ("ttft", slo.ttft, "e2e", slo.e2e),
        ("tpot", slo.tpot, "gap", slo.gap),
    ];
    for (low, a, high, b) in pairs {
        if let (Some(a), Some(b)) = (a, b)
            && a > b
        {
            let diagnostic = reader
                .at_key(high, "contradiction", format!("`{high}` of {b} is below `{low}` of {a}"))
                .label(format!("must be at least {a}"))
                .help(format!("write `{high} = \"{a}\"` or more"));
            reader.report(diagnostic);
        }
    }
    let thresholds = [
        ("ttft", slo.ttft),
        ("tpot", slo.tpot),
        ("e2e", slo.e2e),
        ("gap", slo.gap),
        ("ttft_p50", slo.ttft_p50),
        ("ttft_p95", slo.ttft_p95),
        ("ttft_p99", slo.ttft_p99),
        ("itl_p95", slo.itl_p95),
        ("itl_p99", slo.itl_p99),
        ("tpot_p95", slo.tpot_p95),
        ("e2e_p95", slo.e2e_p95),
        ("e2e_p99", slo.e2e_p99),
    ];
    for (key, threshold) in thresholds {
        if threshold == Some(Seconds::ZERO) {
            let diagnostic = reader
                .at_key(key, "out-of-range", format!("`{key}` of 0 s can never be met"))
                .label("no time at all")
                .help(format!("write `{key} = \"400ms\"`, or take it out"));
            reader.report(diagnostic);
        }
    }
}

choice! {
    /// What kind of change it is.
    pub enum EventKind {
        /// A new feature or product.
        Launch = "launch",
        /// Days that differ from others.
        Holiday = "holiday",
        /// Traffic that moves from elsewhere.
        Migration = "migration",
        /// More of the same.
        Growth = "growth",
        /// Something goes wrong.
        Incident = "incident",
    }
}

table! {
    /// What will change the demand, when, and by how much.
    pub struct Event = "event", check event_makes_sense {
        /// What tables call it.
        name: Name, required;
        /// What kind of change it is.
        kind: EventKind, default("'launch'", "most events worth planning for are launches");
        /// When it begins.
        from: Moment, required;
        /// When it ends.
        to: Moment, optional("it stays");
        /// The classes it changes.
        class: ClassName, list("all classes");
        /// Multiplies the rate.
        rate: Range, default("1.0", "the rate stays");
        /// Multiplies prompt lengths.
        prompt: Range, default("1.0", "prompts stay");
        /// Multiplies output lengths.
        output: Range, default("1.0", "outputs stay");
        /// Multiplies the cache hit rate.
        cache_hit: Range, default("1.0", "the hit rate stays");
    }
}

fn event_makes_sense(event: &Event, reader: &mut Reader<'_>) {
    if let Some(to) = event.to
        && to <= event.from
    {
        let diagnostic = reader
            .at_key(
                "to",
                "contradiction",
                format!(
                    "event `{}` ends at {} before it begins at {}",
                    event.name.as_str(),
                    to.timestamp(),
                    event.from.timestamp()
                ),
            )
            .label("not after `from`")
            .help("let `to` be later than `from`, or leave it out");
        reader.report(diagnostic);
    }
}

table! {
    /// What tasks call besides models: it can be what binds.
    pub struct Tool = "tool" {
        /// What classes call it.
        name: Name, required;
        /// How long a call takes.
        latency: Spread<Seconds>, required;
        /// Calls it handles at once.
        concurrency: Whole<1, 1_000_000>, optional("as many as come");
        /// Calls it accepts.
        rate_limit: PerSecond, optional("no limit");
        /// The share of calls that fail.
        failure: Fraction, default("0.0", "no failures were measured");
        /// What a call costs.
        price: UsdPerCall, optional("nothing is charged for it");
    }
}
