//! What serves the demand.

use std::collections::BTreeMap;

use plimsoll_units::{Bytes, BytesPerSecond, Factor, Fraction, Seconds, Tokens, UsdPerToken};

use crate::read::{Reader, Whole, choice, clip, table};
use crate::sections::Scenario;
use crate::values::{
    AcceleratorName, ClassName, Day, EngineName, InstanceName, ModelName, Name, Plain, PoolName,
    RegionName, ReplicaCount, Spread, TargetName,
};

choice! {
    /// What a pool was measured to carry.
    pub enum LineResource {
        /// Requests a second, in the mix that they came in.
        Requests = "requests",
        /// Prompt tokens a second that no cache holds.
        FreshPromptTokens = "fresh_prompt_tokens",
        /// Output tokens a second.
        OutputTokens = "output_tokens",
        /// KV tokens of running requests.
        ActiveKvTokens = "active_kv_tokens",
    }
}

table! {
    /// What a pool was measured to carry, such as by a load test: it takes the place of what is computed, and grows with the replicas.
    pub struct Line = "line", check line_makes_sense {
        /// The pool.
        pool: PoolName, required;
        /// Of what.
        resource: LineResource, required;
        /// How much of it all of these replicas carry with every promise kept; a second, where it comes and goes.
        carries: Plain, required;
        /// How many replicas it was measured on.
        replicas: Whole<1, 1_000_000>, required;
        /// Who measured it, and how.
        source: String, required;
        /// When.
        as_of: Day, optional("not said");
    }
}

fn line_makes_sense(line: &Line, reader: &mut Reader<'_>) {
    if line.carries.get() <= 0.0 {
        let diagnostic = reader
            .at_key("carries", "out-of-range", "a measured line carries more than nothing".to_owned())
            .label("not above 0")
            .help("write what was measured, such as `carries = 400`; a pool that carries nothing has no line");
        reader.report(diagnostic);
    }
}

table! {
    /// Which classes are served where.
    pub struct Route = "route", check route_makes_sense {
        /// The classes it is for.
        class: ClassName, list("all classes");
        /// The pool or provider that serves them.
        to: TargetName, required;
        /// How much of them.
        share: Fraction, default("1.0", "all of it");
        /// Where to go when that fails, in order.
        fallback: TargetName, list("a failure is a failure");
        /// How the mix moves in an incident.
        shift: Shift, optional("the mix stays");
    }
}

table! {
    /// A mix that moves when something goes wrong.
    pub struct Shift = "route.shift" {
        /// Where the traffic goes.
        to: TargetName, required;
        /// How much of it.
        share: Fraction, required;
    }
}

fn route_makes_sense(route: &Route, reader: &mut Reader<'_>) {
    if let Some(again) = route.fallback.iter().find(|name| **name == route.to) {
        let diagnostic = reader
            .at_key(
                "fallback",
                "contradiction",
                format!("the route to `{0}` falls back to `{0}`", again.as_str()),
            )
            .label("the place that has just failed")
            .help("name another pool or provider");
        reader.report(diagnostic);
    }
    let again = |(i, name): &(usize, &TargetName)| route.fallback[..*i].contains(name);
    if let Some((_, again)) = route.fallback.iter().enumerate().find(again) {
        let mut once: Vec<&str> = Vec::new();
        for name in route.fallback.iter().map(TargetName::as_str) {
            if !once.contains(&name) {
                once.push(name);
            }
        }
        let diagnostic = reader
            .at_key(
                "fallback",
                "contradiction",
                format!(
                    "the route to `{}` falls back to `{}` twice",
                    route.to.as_str(),
                    again.as_str()
                ),
            )
            .label("the second time it has already failed")
            .help(format!("write `fallback = [\"{}\"]`", once.join("\", \"")));
        reader.report(diagnostic);
    }
    if let Some(shift) = route.shift.as_ref().filter(|shift| shift.to == route.to) {
        let message = format!("the route to `{0}` shifts to `{0}`", shift.to.as_str());
        let diagnostic = reader
            .within("shift", |r| r.at_key("to", "contradiction", message))
            .label("where the traffic already goes")
            .help("name another pool or provider, or take `shift` out");
        reader.report(diagnostic);
    }
}

/// Shares of the routes of one class.
pub(super) fn routes_add_up(scenario: &Scenario, reader: &mut Reader<'_>) {
    if scenario.route.is_empty() || !reader.is_complete("route") {
        return;
    }
    let mut shares: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (i, route) in scenario.route.iter().enumerate() {
        let named: Vec<&str> = route.class.iter().map(ClassName::as_str).collect();
        let all = scenario.class.iter().map(|c| c.name.as_str());
        for class in all.filter(|class| named.is_empty() || named.contains(class)) {
            let entry = shares.entry(class).or_insert((0.0, i));
            *entry = (entry.0 + route.share.get(), i);
        }
    }
    for class in &scenario.class {
        let name = class.name.as_str();
        let (share, last) = shares.get(name).copied().unwrap_or((0.0, 0));
        let (message, label) = if share == 0.0 {
            (
                format!("no route takes class `{name}`"),
                "routes are given, but none for it".to_owned(),
            )
        } else if share > 1.0 + 1e-9 {
            (
                format!("the routes of class `{name}` take {share:.4} of it"),
                "the share that is too much".to_owned(),
            )
        } else if share < 1.0 - 1e-9 {
            (
                format!("the routes of class `{name}` take only {share:.4} of it"),
                "the rest goes nowhere".to_owned(),
            )
        } else {
            continue;
        };
        let diagnostic = reader
            .within("route", |r| {
                r.within(last.to_string(), |r| r.at_key("share", "contradiction", message))
            })
            .label(label)
            .help(format!("let the shares of the routes for `{name}` add up to 1"));
        reader.report(diagnostic);
    }
}

choice! {
    /// How weights are stored.
    pub enum Dtype {
        /// 16 bits.
        Bf16 = "bf16",
        /// 16 bits.
        Fp16 = "fp16",
        /// 8 bits, floating.
        Fp8 = "fp8",
        /// 8 bits, whole.
        Int8 = "int8",
        /// 4 bits, whole (AWQ, GPTQ).
        Int4 = "int4",
        /// 4 bits, micro-scaled.
        Mxfp4 = "mxfp4",
        /// 4 bits, NVIDIA's.
        Nvfp4 = "nvfp4",
    }
}

choice! {
    /// How the KV cache is stored.
    pub enum KvDtype {
        /// As the weights compute.
        Auto = "auto",
        /// 16 bits.
        Bf16 = "bf16",
        /// 16 bits.
        Fp16 = "fp16",
        /// 8 bits, floating.
        Fp8 = "fp8",
        /// 8 bits, whole.
        Int8 = "int8",
        /// 4 bits, NVIDIA's.
        Nvfp4 = "nvfp4",
    }
}

choice! {
    /// Which phases a pool serves.
    pub enum Role {
        /// Both.
        Both = "both",
        /// Prompts only; hands its KV to a decode pool.
        Prefill = "prefill",
        /// Outputs only.
        Decode = "decode",
    }
}

choice! {
    /// What fails together.
    pub enum Domain {
        /// A replica's own devices.
        Replica = "replica",
        /// A node.
        Node = "node",
        /// A rack.
        Rack = "rack",
        /// A zone.
        Zone = "zone",
    }
}

choice! {
    /// How devices are paid for.
    pub enum PriceMode {
        /// By the hour, without commitment.
        OnDemand = "on-demand",
        /// With a commitment.
        Reserved = "reserved",
        /// Reclaimable.
        Spot = "spot",
        /// Bought.
        Owned = "owned",
    }
}

choice! {
    /// How requests are spread over replicas.
    pub enum Router {
        /// One after the other.
        RoundRobin = "round-robin",
        /// At random.
        Random = "random",
        /// To the one with the fewest requests in flight.
        LeastOutstanding = "least-outstanding",
        /// To the one with the most free KV.
        LeastKv = "least-kv",
        /// To the one that has the prefix.
        PrefixAffinity = "prefix-affinity",
        /// A session stays where it began.
        Session = "session",
    }
}

table! {
    /// Replicas of one model on one accelerator with one engine configuration.
    pub struct Pool = "pool", check pool_makes_sense {
        /// What routes and tables call it.
        name: Name, required;
        /// The model, by name or Hugging Face id.
        model: ModelName, optional("`hf_config` describes it");
        /// A `config.json` for a model the catalogue does not know.
        hf_config: String, optional("the catalogue describes the model");
        /// The device.
        accelerator: AcceleratorName, required;
        /// The node it is rented in.
        instance: InstanceName, optional("any node that holds the accelerator");
        /// The engine, with its version: `vllm@0.24`.
        engine: EngineName, default("'vllm'", "the newest version in the catalogue of the most used engine");
        /// Devices that share each layer.
        tensor_parallel: Whole<1, 1024>, default("1", "the model is taken to fit one device");
        /// Groups of devices that share the layers.
        pipeline_parallel: Whole<1, 256>, default("1", "no pipeline");
        /// Devices that share the experts.
        expert_parallel: Whole<1, 4096>, default("1", "experts are split as layers are");
        /// Copies of the attention with shared experts.
        data_parallel: Whole<1, 4096>, default("1", "no attention data parallelism");
        /// Devices that share a context while decoding.
        context_parallel: Whole<1, 256>, default("1", "no context parallelism");
        /// How weights are stored.
        weights: Dtype, optional("as the model is published");
        /// How the KV cache is stored.
        kv_dtype: KvDtype, default("'auto'", "the engines' own default");
        /// Replicas today, and how many a plan may use; autoscaling moves within the same limits.
        replicas: ReplicaCount, default("{ now = 1 }", "one replica runs; a plan may use what it needs");
        /// Largest running batch of a replica.
        max_num_seqs: Whole<1, 1_000_000>, optional("the engine's default for the device");
        /// Token budget of a step.
        max_num_batched_tokens: Tokens, optional("the engine's default for the device");
        /// Longest context that is accepted.
        max_model_len: Tokens, optional("the model's own maximum");
        /// The fraction of device memory the engine may use.
        memory_utilization: Fraction, optional("the engine's default");
        /// Memory that nobody may use.
        memory_margin: Bytes, default("'0GiB'", "the engine's own fraction already leaves room");
        /// Whether prefixes are cached.
        prefix_caching: bool, optional("the engine's default");
        /// Adapters served beside the model.
        lora: Lora, optional("no adapters");
        /// Several tokens guessed a step.
        speculation: Speculation, optional("one token a step");
        /// Which phases it serves.
        role: Role, default("'both'", "prefill and decode share devices unless split");
        /// Where a prefill pool hands its KV.
        disaggregation: Disaggregation, optional("nothing is handed over");
        /// How requests are spread over replicas.
        router: Router, default("'least-outstanding'", "the usual default of gateways that know their backends");
        /// The age of what the router knows of its replicas.
        router_staleness: Seconds, default("'0s'", "a gateway counts the requests that it sent itself; one that scrapes its backends knows less");
        /// With `prefix-affinity`: requests in flight by which the replica that has the prefix may be ahead of the least loaded one before it is passed over.
        affinity_slack: Whole<0, 1_000_000>, default("64", "SGLang's cache-aware router gives way above this (`balance_abs_threshold`)");
        /// Bounds of the waiting line.
        queue: Queue, optional("the line is not bounded");
        /// A file written by `plimsoll calibrate`.
        calibration: String, optional("the built-in step-time model");
        /// How long a new replica takes to be ready.
        startup: Startup, default("{}", "measured figures of others, see each phase");
        /// The time that a replica which is taken away has to finish what it runs.
        drain: Seconds, default("'30s'", "the default grace period of a Kubernetes pod; longer answers are cut off");
        /// What fails together.
        failure_domain: Domain, default("'node'", "a node's devices share power, host and driver");
        /// Failure domains that its replicas are spread over, as evenly as they go.
        domains: Whole<1, 100_000>, optional("as many as the replicas fill");
        /// Time between failures of one domain.
        time_between_failures: Seconds, default("'1000h'", "an order of magnitude seen on large clusters; measure your own");
        /// Time to repair one.
        time_to_repair: Seconds, default("'1h'", "a node is replaced, not mended");
        /// A pool whose devices it would share.
        shares_devices_with: PoolName, optional("its devices are its own");
        /// Where its replicas run.
        regions: RegionName, list("the first region");
        /// What else a plan may choose for it.
        candidates: Candidates, optional("the plan keeps what is written, and says what else would do");
        /// How its devices are paid for.
        price_mode: PriceMode, default("'on-demand'", "no commitment was stated");
        /// How often its devices are reclaimed.
        spot: Spot, optional("nobody reclaims its devices");
    }
}

fn pool_makes_sense(pool: &Pool, reader: &mut Reader<'_>) {
    let name = pool.name.as_str();
    if let Some(other) = &pool.shares_devices_with {
        let diagnostic = reader
            .at_key(
                "shares_devices_with",
                "not-simulated",
                format!("two models on one device are not simulated: `{name}` beside `{}`", other.as_str()),
            )
            .label("their steps would take turns, and how is not known")
            .help("give each pool devices of its own, or a fraction of a device as an accelerator of a catalogue of yours (`--catalog`)");
        reader.report(diagnostic);
    }
    if pool.model.is_none()
        && pool.hf_config.is_none()
        && !reader.wrote("model")
        && !reader.wrote("hf_config")
    {
        let diagnostic = reader
            .at_key(
                "model",
                "missing-key",
                format!("pool `{name}` does not say which model it serves"),
            )
            .label("neither `model` nor `hf_config`")
            .help("add `model = \"llama-3.1-8b\"`; `plimsoll catalog models` lists them");
        reader.report(diagnostic);
    }
    let accelerator = reader.catalog.accelerator(pool.accelerator.as_str()).ok();
    let group = pool.tensor_parallel.get();
    if let Some(devices) = accelerator.and_then(|a| a.interconnect.devices)
        && group > u64::from(devices)
    {
        let device = pool.accelerator.as_str();
        let diagnostic = reader
            .at_key("tensor_parallel", "impossible-group", format!("a tensor-parallel group of {group} does not fit the {devices} devices that reach each other on {device}"))
            .label(format!("at most {devices}"))
            .help(format!("write `tensor_parallel = {devices}` and `pipeline_parallel = {}`", group.div_ceil(u64::from(devices))));
        reader.report(diagnostic);
    }
    if let Some(instance) =
        pool.instance.as_ref().and_then(|i| reader.catalog.instance(i.as_str()).ok())
    {
        let wanted = accelerator.map(|a| a.name.as_str()).unwrap_or_default();
        if instance.accelerator != wanted {
            let held = &instance.accelerator;
            let diagnostic = reader
                .at_key(
                    "instance",
                    "contradiction",
                    format!("`{}` holds {held}, not {wanted}", instance.name),
                )
                .label(format!("a node of {held}"))
                .help(format!("write `accelerator = \"{held}\"`, or leave `instance` out"));
            reader.report(diagnostic);
        } else if group > u64::from(instance.count) {
            let count = instance.count;
            let diagnostic = reader
                .at_key(
                    "tensor_parallel",
                    "impossible-group",
                    format!("a tensor-parallel group of {group} cannot straddle nodes of {count}"),
                )
                .label(format!("`{}` holds {count}", instance.name))
                .help(format!("write `tensor_parallel = {count}`, or another `instance`"));
            reader.report(diagnostic);
        }
    }
    if let Some(decode) = pool.disaggregation.as_ref().map(|d| &d.decode)
        && decode.as_str() == name
    {
        let diagnostic = reader
            .at_key(
                "disaggregation",
                "contradiction",
                format!("pool `{name}` hands its KV to itself"),
            )
            .label("the pool that prefills")
            .help("name the pool that decodes");
        reader.report(diagnostic);
    }
    if pool.role == Role::Prefill
        && pool.disaggregation.is_none()
        && !reader.wrote("disaggregation")
    {
        let diagnostic = reader
            .at_key(
                "role",
                "missing-key",
                format!("prefill pool `{name}` does not say where its KV goes"),
            )
            .label("`disaggregation` is missing")
            .help("add `disaggregation = { decode = \"…\", link = \"50GB/s\" }`");
        reader.report(diagnostic);
    }
    for (key, zero) in [
        ("max_num_batched_tokens", pool.max_num_batched_tokens == Some(Tokens::ZERO)),
        ("max_model_len", pool.max_model_len == Some(Tokens::ZERO)),
        ("memory_utilization", pool.memory_utilization == Some(Fraction::ZERO)),
        ("time_between_failures", pool.time_between_failures == Seconds::ZERO),
    ] {
        if zero {
            let diagnostic = reader
                .at_key(key, "out-of-range", format!("`{key}` of 0 leaves nothing to serve with"))
                .label("must be above 0")
                .help(format!("leave `{key}` out for its default"));
            reader.report(diagnostic);
        }
    }
    let model = pool.model.as_ref().and_then(|m| reader.catalog.model(m.as_str()).ok());
    if let (Some(asked), Some(most)) =
        (pool.max_model_len, model.and_then(|m| m.architecture.context_max))
        && asked > most
    {
        let diagnostic = reader
            .at_key(
                "max_model_len",
                "out-of-range",
                format!(
                    "a context of {asked} tokens is longer than the {most} the model was made for"
                ),
            )
            .label(format!("at most {most}"))
            .help(format!("write `max_model_len = {}`", most.get()));
        reader.report(diagnostic);
    }
}

table! {
    /// What a plan may choose for a pool, beside what is written. An empty list keeps what is written.
    pub struct Candidates = "pool.candidates" {
        /// Other devices.
        accelerators: AcceleratorName, list("the pool's own");
        /// Other sizes of a group.
        tensor_parallel: Whole<1, 1024>, list("the pool's own");
        /// Other formats of the weights. Whether answers are as good is not judged here.
        weights: Dtype, list("the pool's own");
        /// Other numbers of sequences at once.
        max_num_seqs: Whole<1, 1_000_000>, list("the pool's own");
        /// Other tokens of a step.
        max_num_batched_tokens: Tokens, list("the pool's own");
        /// Other ways to pay.
        price_modes: PriceMode, list("the pool's own");
    }
}

table! {
    /// Adapters served beside the model.
    pub struct Lora = "pool.lora" {
        /// How many are loaded at once.
        adapters: Whole<1, 10_000>, required;
        /// Their rank.
        rank: Whole<1, 4096>, default("16", "the usual rank");
    }
}

table! {
    /// Several tokens guessed a step, and how many of them hold.
    pub struct Speculation = "pool.speculation" {
        /// Tokens guessed a step.
        tokens: Whole<1, 64>, required;
        /// Tokens that a step yields on average, the certain one included.
        accept_length: Factor, required;
    }
}

table! {
    /// Prefill on one pool, decode on another.
    pub struct Disaggregation = "pool.disaggregation" {
        /// The pool that decodes.
        decode: PoolName, required;
        /// The link that carries KV between them, shared by all replicas.
        link: BytesPerSecond, default("'50GB/s'", "one 400 Gbit/s port");
    }
}

table! {
    /// Bounds of a waiting line.
    pub struct Queue = "pool.queue" {
        /// Requests that may wait.
        requests: Whole<0, 10_000_000>, optional("as many as come");
        /// Prompt tokens that may wait.
        tokens: Tokens, optional("as many as come");
    }
}

table! {
    /// Devices that their owner may take back.
    pub struct Spot = "pool.spot", check spot_makes_sense {
        /// The mean time between two reclaims of one replica.
        reclaimed_every: Seconds, required;
        /// The warning before a reclaim.
        notice: Seconds, default("'30s'", "Azure and Google Cloud give 30 s, AWS two minutes: the shorter one is assumed");
    }
}

fn spot_makes_sense(spot: &Spot, reader: &mut Reader<'_>) {
    if spot.reclaimed_every == Seconds::ZERO {
        let diagnostic = reader
            .at_key(
                "reclaimed_every",
                "out-of-range",
                "replicas that are reclaimed every 0 s never serve",
            )
            .label("must be above 0")
            .help("write `reclaimed_every = \"24h\"`, or take `spot` out");
        reader.report(diagnostic);
    }
}

table! {
    /// How long a new replica takes to be ready: a sum of phases, some of which a cache shortens.
    pub struct Startup = "pool.startup", check startup_makes_sense {
        /// A node is found, booted and has its drivers.
        node: Spread<Seconds>, default("{ p50 = '180s', p90 = '300s' }", "2 to 5 minutes stated as typical (vllm issue 41893, 2026-05)");
        /// The container image is on the node.
        image: Spread<Seconds>, default("{ p50 = '240s', p90 = '540s' }", "214 s to 600 s measured for 15 to 20 GB images (llm-d PR 1902, bentoml.com 2025-04)");
        /// The process is up: container, imports, driver context, collectives.
        process: Spread<Seconds>, default("{ p50 = '30s', p90 = '150s' }", "72 s in all for a cached start of our own on an H200; 150 s reported (talos-argocd PR 1848)");
        /// Weights are in device memory.
        weights: Spread<Seconds>, default("{ p50 = '60s', p90 = '240s' }", "0.25 to 1 GB/s from network disks for some 60 GB (Run:ai blog, vllm issue 44881)");
        /// Kernels are compiled.
        compile: Spread<Seconds>, default("{ p50 = '70s', p90 = '170s' }", "43 s to 166 s measured without a saved cache (vllm issue 44881, our own H200 run)");
        /// Memory is profiled, graphs are captured, the first requests are slow.
        warm_up: Spread<Seconds>, default("{ p50 = '45s', p90 = '210s' }", "60 s to 221 s measured (vllm issues 19824, 44881)");
        /// The share of starts that find a node ready, and skip `node`.
        node_ready: Fraction, default("0.0", "a cold start is assumed; a warm pool of nodes has to be paid for");
        /// The share of starts that find the image on the node, and skip `image`.
        image_cached: Fraction, default("0.0", "a cold start is assumed; a new node has pulled nothing yet");
        /// The share of starts that find the weights on the node, and take `weights_from_cache` instead of `weights`.
        weights_cached: Fraction, default("0.0", "a cold start is assumed; a new node holds no weights yet");
        /// Weights are in device memory, where the node already held them.
        weights_from_cache: Spread<Seconds>, default("{ p50 = '10s', p90 = '20s' }", "10 s from a hot page cache for a 70B in FP8 (vllm issue 19824), 18 s for 21.8 GiB (vllm issue 44881)");
        /// The share of starts that find compiled kernels, and skip `compile`.
        compile_cached: Fraction, default("0.0", "a cold start is assumed; the cache has to be kept beyond the container");
        /// How long a replica that is ready runs at less than its full speed.
        slow_for: Seconds, default("'60s'", "first requests take 30 s to 60 s longer (vllm issue 19824)");
        /// Its speed in that time, against its full speed.
        slow_factor: Fraction, default("0.7", "58.5 of 83.3 tokens/s right after a start (model-serving-minefield issue 37), 43 of 69 (dflash issue 135)");
    }
}

fn startup_makes_sense(startup: &Startup, reader: &mut Reader<'_>) {
    if startup.slow_factor == Fraction::ZERO && startup.slow_for > Seconds::ZERO {
        let diagnostic = reader
            .at_key(
                "slow_factor",
                "out-of-range",
                format!("a replica that does nothing for {} is not ready", startup.slow_for),
            )
            .label("must be above 0")
            .help("write `slow_factor = 0.7`, or put the time into `warm_up`");
        reader.report(diagnostic);
    }
}

table! {
    /// Where devices may be had.
    pub struct Region = "region", check region_makes_sense {
        /// What pools and classes call it.
        name: Name, required;
        /// As price tables call it.
        price_region: String, optional("the name above");
        /// Devices by kind.
        accelerators: RegionAccelerator, list("no quota is checked");
        /// Tenants whose data must stay here.
        residency: String, list("data may go anywhere");
        /// The way from this region's users to its own pools.
        latency: Seconds, default("'0s'", "users are near; give what a probe measures");
        /// The way to other regions.
        latency_to: BTreeMap<String, Seconds>, default("{}", "no other region is reached");
    }
}

fn region_makes_sense(region: &Region, reader: &mut Reader<'_>) {
    let known = reader.names.get("region").cloned().unwrap_or_default();
    for other in region.latency_to.keys().filter(|other| !known.contains(other)) {
        let near = plimsoll_fleet::nearest(other, known.iter().map(String::as_str));
        let help = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add it as a `[[region]]`, or take it out".to_owned(),
        };
        let diagnostic = reader
            .at_key(
                "latency_to",
                "dangling-name",
                format!("no region of this scenario is called `{}`", clip(other)),
            )
            .label("refers to nothing")
            .help(help);
        reader.report(diagnostic);
    }
}

table! {
    /// How many devices of a kind a region has for us, and how long more take.
    pub struct RegionAccelerator = "region.accelerators" {
        /// The device.
        accelerator: AcceleratorName, required;
        /// As many may be used.
        quota: Whole<0, 10_000_000>, required;
        /// As many are free right now.
        available: Whole<0, 10_000_000>, optional("the whole quota");
        /// How long more of them take to come.
        lead_time: Seconds, default("'0s'", "within the quota they come when asked for");
    }
}

table! {
    /// A hosted model that is paid by the token, under limits.
    pub struct Provider = "provider", check provider_has_a_price {
        /// What routes call it.
        name: Name, required;
        /// Whose service it is, as the catalogue's token prices call it.
        provider: String, required;
        /// As the provider calls it.
        model: String, required;
        /// A prompt token that was not cached.
        input: UsdPerToken, optional("the catalogue's list price");
        /// A cached prompt token.
        cached_input: UsdPerToken, optional("the catalogue's list price");
        /// A generated token.
        output: UsdPerToken, optional("the catalogue's list price");
        /// Requests a minute.
        rpm: Whole<1, 1_000_000_000>, optional("no such limit");
        /// Tokens a minute, in and out together.
        tpm: Whole<1, 1_000_000_000_000>, optional("no such limit");
        /// Input tokens a minute.
        itpm: Whole<1, 1_000_000_000_000>, optional("no such limit");
        /// Output tokens a minute.
        otpm: Whole<1, 1_000_000_000_000>, optional("no such limit");
        /// Requests in flight.
        concurrency: Whole<1, 1_000_000>, optional("no such limit");
        /// Whether cached tokens count against the limits.
        counts_cached: bool, default("true", "most providers count them; Anthropic and Groq do not");
        /// Whether `max_tokens` is reserved when a request is admitted.
        reserves_max_tokens: bool, default("true", "OpenAI, Azure and Bedrock do");
        /// Its first token.
        ttft: Spread<Seconds>, default("{ p50 = '600ms', p95 = '2s' }", "an order of magnitude; measure your own");
        /// Its gaps between tokens.
        tpot: Spread<Seconds>, default("{ p50 = '15ms', p95 = '40ms' }", "an order of magnitude; measure your own");
        /// The share of its answers that fail for no fault of ours.
        failure: Fraction, default("0.0", "no failures were measured");
    }
}

fn provider_has_a_price(provider: &Provider, reader: &mut Reader<'_>) {
    let listed =
        reader.catalog.token_prices.iter().any(|p| {
            p.provider.eq_ignore_ascii_case(&provider.provider) && p.model == provider.model
        });
    let given = |key: &str, price: Option<UsdPerToken>| price.is_some() || reader.wrote(key);
    if listed || (given("input", provider.input) && given("output", provider.output)) {
        return;
    }
    let prices = reader.catalog.token_prices.iter();
    let same = prices
        .filter(|p| p.provider.eq_ignore_ascii_case(&provider.provider))
        .map(|p| p.model.as_str());
    let near = plimsoll_fleet::nearest(&provider.model, same);
    let help = match near.first() {
        Some(near) => format!("write `model = \"{near}\"`, or give `input` and `output` yourself"),
        None => "add `input = \"$3/Mtok\"` and `output = \"$15/Mtok\"`; `plimsoll catalog prices` lists what is known".to_owned(),
    };
    let message = format!(
        "nobody knows what `{}` costs at `{}`",
        clip(&provider.model),
        clip(&provider.provider)
    );
    let diagnostic = reader
        .at_key("model", "missing-key", message)
        .label("no list price, and none is given")
        .help(help);
    reader.report(diagnostic);
}
