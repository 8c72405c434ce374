//! Catalogue files: the built-in one, and those of users, which extend or override it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plimsoll_fleet::{
    Accelerator, Architecture, Catalog, Condition, Engine, Fact, Instance, Interconnect,
    MemoryRule, Model, NodePrice, Peak, PrintedTokens, Reserve, StepBand, StepConstant, TokenPrice,
    Version, from_hf_value, nearest,
};
use plimsoll_perf::Term;
use plimsoll_units::{
    Bytes, BytesPerSecond, Fraction, OpsPerSecond, Tokens, UsdPerHour, UsdPerToken, Watts,
};
use toml::de::DeValue;

use crate::diagnostic::Diagnostic;
use crate::read::{Node, Reader, Shape, Value, Whole, choice, table};
use crate::source::Source;
use crate::values::{Day, Name};

/// The catalogue that ships with the program.
pub fn builtin() -> &'static Arc<Catalog> {
    static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();
    CATALOG.get_or_init(|| {
        let mut all = Catalog::empty();
        let files = [
            ("accelerators.toml", include_str!("../catalog/accelerators.toml")),
            ("instances.toml", include_str!("../catalog/instances.toml")),
            ("engines.toml", include_str!("../catalog/engines.toml")),
            ("models.toml", include_str!("../catalog/models.toml")),
            ("prices.toml", include_str!("../catalog/prices.toml")),
            ("step_time.toml", include_str!("../catalog/step_time.toml")),
        ];
        for (name, text) in files {
            match parse_catalog(&Source::new(format!("catalogue/{name}"), text)) {
                Ok(part) => all.extend(part),
                Err(errors) => {
                    let text: Vec<String> = errors.iter().map(|e| e.render(false, 100)).collect();
                    panic!("the built-in catalogue is wrong:\n{}", text.join("\n"));
                }
            }
        }
        Arc::new(all)
    })
}

/// Reads a catalogue file, or every `.toml` file of a directory in the order of their names.
pub fn load_catalog(path: &Path) -> Result<Catalog, Vec<Diagnostic>> {
    let unreadable = |path: &Path, error: std::io::Error| {
        vec![Diagnostic::about(
            "unreadable-file",
            path.display().to_string(),
            format!("cannot be read: {error}"),
        )]
    };
    let mut files: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|e| unreadable(path, e))? {
            let file = entry.map_err(|e| unreadable(path, e))?.path();
            if file.extension().is_some_and(|e| e == "toml") {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut all = Catalog::empty();
    let mut errors = Vec::new();
    for file in files {
        match crate::read_source(&file)
            .map_err(|e| vec![e])
            .and_then(|source| parse_catalog(&source))
        {
            Ok(part) => all.extend(part),
            Err(more) => errors.extend(more),
        }
    }
    if errors.is_empty() { Ok(all) } else { Err(errors) }
}

/// Reads a catalogue from a text.
pub fn parse_catalog(source: &Source) -> Result<Catalog, Vec<Diagnostic>> {
    let document = crate::parse_toml(source)?;
    let empty = Catalog::empty();
    let mut reader = Reader::without_origins(source.clone(), &empty);
    let value = DeValue::Table(document);
    let node = Node { value: &value, span: 0..source.text().len(), key: "catalogue".to_owned() };
    let file = CatalogFile::read(&node, &mut reader);
    match file {
        Some(file) if reader.diagnostics.is_empty() => Ok(file.lower()),
        _ => Err(crate::sorted(reader.diagnostics)),
    }
}

table! {
    /// A catalogue: facts about models, hardware, engines and prices, each with source and date.
    pub struct CatalogFile = "catalogue" {
        /// Models by their Hugging Face configuration.
        model: ModelEntry, list("no models");
        /// Devices.
        accelerator: AcceleratorEntry, list("no accelerators");
        /// Nodes.
        instance: InstanceEntry, list("no instances");
        /// Engine defaults by version.
        engine: EngineEntry, list("no engines");
        /// Node prices.
        price: PriceEntry, list("no prices");
        /// Hosted token prices.
        token_price: TokenPriceEntry, list("no token prices");
        /// Constants of the step-time model.
        constant: ConstantEntry, list("no constants");
        /// How far the step-time model was off.
        band: BandEntry, list("no bands");
    }
}

impl CatalogFile {
    fn lower(self) -> Catalog {
        Catalog {
            models: self.model.into_iter().map(ModelEntry::lower).collect(),
            accelerators: self.accelerator.into_iter().map(AcceleratorEntry::lower).collect(),
            instances: self.instance.into_iter().map(InstanceEntry::lower).collect(),
            engines: self.engine.into_iter().map(EngineEntry::lower).collect(),
            node_prices: self.price.into_iter().map(PriceEntry::lower).collect(),
            token_prices: self.token_price.into_iter().map(TokenPriceEntry::lower).collect(),
            step_constants: self.constant.into_iter().map(ConstantEntry::lower).collect(),
            step_bands: self.band.into_iter().map(BandEntry::lower).collect(),
        }
    }
}

fn fact(source: String, as_of: Day, note: Option<String>) -> Fact {
    Fact { source, as_of: as_of.date().to_string(), note }
}

table! {
    /// A model.
    pub struct ModelEntry = "model" {
        /// Lower-case, such as `llama-3.1-8b`.
        name: ModelId, required;
        /// As its makers write it.
        title: String, optional("the name");
        /// Hugging Face ids and other names.
        aliases: String, list("no other names");
        /// The keys of its `config.json`.
        config: HfConfig, required;
        /// The published parameter count.
        parameters: Whole<1, 100_000_000_000_000>, optional("not published");
        /// Where it was published.
        parameters_source: String, optional("not published");
        /// Which parts it counts.
        parameters_note: String, optional("the text decoder");
        /// Whether every number was read in a source.
        verified: bool, default("true", "you have looked at the configuration");
        /// Where the configuration was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

impl ModelEntry {
    fn lower(self) -> Model {
        Model {
            title: self.title.unwrap_or_else(|| self.name.0.clone()),
            name: self.name.0,
            aliases: self.aliases,
            architecture: self.config.0,
            parameters_published: self.parameters.map(Whole::get),
            parameters_source: self.parameters_source,
            parameters_note: self.parameters_note,
            verified: self.verified,
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

/// A model's own name: dots and dashes are common in it.
#[derive(Clone, Debug)]
pub struct ModelId(String);

impl Value for ModelId {
    fn shape() -> Shape {
        Shape::Text { noun: "name" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(node, reader)?;
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if !text.is_empty() && text.len() <= 100 && text.chars().all(fine) {
            return Some(Self(text));
        }
        let diagnostic = reader
            .error("bad-name", node, "a model's name is made of letters, digits and - _ . /")
            .label("not a usable name")
            .help("write `name = \"my-model-8b\"`");
        reader.report(diagnostic);
        None
    }
}

/// A Hugging Face configuration, written as TOML.
#[derive(Clone, Debug)]
pub struct HfConfig(Architecture);

impl Value for HfConfig {
    fn shape() -> Shape {
        Shape::Map(Box::new(Shape::Any))
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        if !node.value.is_table() {
            return reader.wrong_type(
                node,
                "the keys of a config.json",
                "{ model_type = \"llama\", … }",
            );
        }
        match from_hf_value(&to_json(node.value)) {
            Ok(architecture) => Some(Self(architecture)),
            Err(error) => {
                let diagnostic = reader
                    .error("bad-config", node, error.to_string())
                    .label("this configuration describes no model")
                    .help("take the keys over from the model's `config.json`");
                reader.report(diagnostic);
                None
            }
        }
    }
}

fn to_json(value: &DeValue<'_>) -> serde_json::Value {
    use serde_json::Value as Json;
    match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Boolean(b) => Json::from(*b),
        DeValue::Datetime(d) => Json::from(d.to_string()),
        DeValue::Integer(n) => {
            i64::from_str_radix(n.as_str(), n.radix()).map_or(Json::Null, Json::from)
        }
        DeValue::Float(x) => x.as_str().parse::<f64>().map_or(Json::Null, Json::from),
        DeValue::Array(items) => items.iter().map(|i| to_json(i.get_ref())).collect(),
        DeValue::Table(table) => Json::Object(
            table.iter().map(|(k, v)| (k.get_ref().to_string(), to_json(v.get_ref()))).collect(),
        ),
    }
}

table! {
    /// A device.
    pub struct AcceleratorEntry = "accelerator" {
        /// Such as `H100-SXM`.
        name: Name, required;
        /// Other names, in any case.
        aliases: String, list("no other names");
        /// Who makes it.
        vendor: String, required;
        /// The vendor's name of its generation.
        architecture: String, default("'unknown'", "not stated");
        /// As marketed.
        memory: Bytes, required;
        /// What the driver or framework reports as total.
        memory_reported: Bytes, optional("as marketed");
        /// Where that was reported.
        memory_reported_source: String, optional("not reported");
        /// Device memory bandwidth.
        bandwidth: BytesPerSecond, required;
        /// Dense peak.
        peak_bf16: OpsPerSecond, optional("not supported");
        /// Dense peak.
        peak_fp16: OpsPerSecond, optional("as bf16");
        /// Dense peak.
        peak_fp8: OpsPerSecond, optional("not supported");
        /// Dense peak.
        peak_int8: OpsPerSecond, optional("not supported");
        /// Dense peak.
        peak_fp4: OpsPerSecond, optional("not supported");
        /// The link between devices.
        interconnect: String, default("'PCIe'", "no faster link was stated");
        /// Per device, one direction.
        interconnect_bandwidth: BytesPerSecond, optional("unknown");
        /// Devices that reach each other over it.
        interconnect_devices: Whole<1, 100_000>, optional("unknown");
        /// The host link.
        pcie: String, optional("unknown");
        /// The board's limit.
        power: Watts, optional("unknown");
        /// `read`, or `verified` when checked against a second source.
        confidence: String, default("'read'", "you have read it");
        /// Where it was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

impl AcceleratorEntry {
    fn lower(self) -> Accelerator {
        let peaks = [
            ("bf16", self.peak_bf16),
            ("fp16", self.peak_fp16),
            ("fp8", self.peak_fp8),
            ("int8", self.peak_int8),
            ("fp4", self.peak_fp4),
        ];
        Accelerator {
            name: self.name.as_str().to_owned(),
            aliases: self.aliases,
            vendor: self.vendor,
            architecture: self.architecture,
            memory: self.memory,
            memory_reported: self.memory_reported,
            memory_reported_source: self.memory_reported_source,
            bandwidth: self.bandwidth,
            peaks: peaks
                .into_iter()
                .filter_map(|(format, rate)| Some(Peak { format, rate: rate? }))
                .collect(),
            interconnect: Interconnect {
                name: self.interconnect,
                bandwidth: self.interconnect_bandwidth,
                devices: self.interconnect_devices.map(Whole::get_u32),
            },
            pcie: self.pcie,
            power: self.power,
            confidence: self.confidence,
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

table! {
    /// A node as it is rented or bought.
    pub struct InstanceEntry = "instance" {
        /// Such as `p5.48xlarge`.
        name: String, required;
        /// Whose.
        cloud: String, required;
        /// The device's name.
        accelerator: String, required;
        /// How many of them.
        count: Whole<1, 10_000>, required;
        /// Where it was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

impl InstanceEntry {
    fn lower(self) -> Instance {
        Instance {
            name: self.name,
            cloud: self.cloud,
            accelerator: self.accelerator,
            count: self.count.get_u32(),
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

choice! {
    /// How an engine budgets memory.
    pub enum Rule {
        /// A fraction of the total.
        OfTotal = "of-total",
        /// A static fraction for weights and KV.
        StaticFraction = "static-fraction",
        /// A fraction of what is left.
        OfFree = "of-free",
    }
}

choice! {
    /// What an engine's printed token count means.
    pub enum Printed {
        /// Blocks times block size.
        Blocks = "blocks",
        /// Over layer groups.
        BlocksOverGroups = "blocks-over-groups",
        /// Concurrency times context.
        ConcurrencyTimesContext = "concurrency-times-context",
    }
}

table! {
    /// An engine's defaults from one version on.
    pub struct EngineEntry = "engine" {
        /// `vllm`, `sglang` or `tensorrt-llm`.
        engine: String, required;
        /// The first version this describes.
        since: VersionText, required;
        /// How it budgets memory.
        memory_rule: Rule, required;
        /// The fraction by default.
        memory_fraction: Fraction, required;
        /// Other fractions by device and group.
        memory_fraction_by_devices: FractionWhen, list("one fraction for all");
        /// What the fraction is computed from.
        memory_reserve: ReserveWhen, list("the fraction is fixed");
        /// Whether graphs are inside the budget.
        graphs_in_budget: bool, optional("unknown");
        /// The largest batch with graphs.
        graph_max_seqs: When, list("unknown");
        /// Tokens in a KV block.
        block_tokens: Tokens, optional("unknown");
        /// Whether prefixes are cached.
        prefix_caching: bool, optional("unknown");
        /// Whether prompts are split over steps.
        chunked_prefill: bool, optional("unknown");
        /// Above this context they are anyway.
        chunked_prefill_above_context: Tokens, optional("never");
        /// Largest running batch.
        max_num_seqs: When, list("unknown");
        /// Token budget of a step.
        max_num_batched_tokens: When, list("unknown");
        /// Whether it is raised to the context.
        batched_tokens_at_least_context: bool, default("false", "only old versions do");
        /// Order of the waiting line.
        scheduling: String, default("'fcfs'", "all known engines do");
        /// Whether scheduling overlaps with the step.
        async_scheduling: bool, optional("unknown");
        /// What the printed token count means.
        printed_tokens: Printed, optional("unknown");
        /// Bytes the profile's sampler takes for each sequence and vocabulary entry.
        sampler_bytes: crate::values::Plain, optional("it profiles no sampler");
        /// Flags by which it refuses work.
        admission_flags: String, list("none");
        /// Where it was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

/// A version.
#[derive(Clone, Copy, Debug)]
pub struct VersionText(Version);

impl Value for VersionText {
    fn shape() -> Shape {
        Shape::Text { noun: "0.24" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(node, reader)?;
        match text.parse() {
            Ok(version) => Some(Self(version)),
            Err(error) => {
                let error: plimsoll_fleet::VersionError = error;
                let diagnostic = reader
                    .error("bad-version", node, error.to_string())
                    .help(format!("write `{} = \"0.24\"`", node.key));
                reader.report(diagnostic);
                None
            }
        }
    }
}

macro_rules! conditional {
    ($(#[doc = $doc:literal])* $name:ident = $title:literal { $(#[doc = $value_doc:literal])* value: $type:ty }) => {
        table! {
            $(#[doc = $doc])*
            pub struct $name = $title {
                $(#[doc = $value_doc])*
                value: $type, required;
                /// On devices with at least this memory.
                memory_at_least: Bytes, optional("any memory");
                /// On devices with at most this memory.
                memory_at_most: Bytes, optional("any memory");
                /// On devices with less memory than this.
                memory_below: Bytes, optional("any memory");
                /// In groups of at least this many devices.
                devices_at_least: Whole<1, 100_000>, optional("any group");
                /// In tensor-parallel groups smaller than this.
                tensor_parallel_below: Whole<1, 100_000>, optional("any group");
                /// On devices whose name holds one of these.
                only: String, list("any device");
                /// Not on devices whose name holds one of these.
                except: String, list("any device");
            }
        }

        impl $name {
            fn condition(&self) -> Condition {
                Condition {
                    memory_at_least: self.memory_at_least,
                    memory_at_most: self.memory_at_most,
                    memory_below: self.memory_below,
                    devices_at_least: self.devices_at_least.map(Whole::get),
                    tensor_parallel_below: self.tensor_parallel_below.map(Whole::get),
                    only: self.only.clone(),
                    except: self.except.clone(),
                }
            }
        }
    };
}

conditional! {
    /// A default that depends on the device: the first that matches holds.
    When = "engine default" {
        /// The default.
        value: Whole<1, 1_000_000_000>
    }
}

conditional! {
    /// A fraction that depends on the device and the group.
    FractionWhen = "memory_fraction_by_devices" {
        /// The fraction.
        value: Fraction
    }
}

table! {
    /// A reserve that depends on the device.
    pub struct ReserveWhen = "memory_reserve" {
        /// On devices with less memory than this.
        memory_below: Bytes, optional("any memory");
        /// Always.
        base: Bytes, required;
        /// For each device of the group.
        per_device: Bytes, default("'0B'", "nothing per device");
        /// For each token of a prefill chunk.
        per_chunk_token: Bytes, default("'0B'", "nothing per token");
        /// For each sequence with graphs.
        per_graph_seq: Bytes, default("'0B'", "nothing per sequence");
        /// Not less than this.
        at_least: Bytes, default("'0B'", "no floor");
    }
}

impl EngineEntry {
    fn lower(self) -> Engine {
        let defaults = |list: &[When]| {
            list.iter()
                .map(|w| plimsoll_fleet::DeviceDefault {
                    when: w.condition(),
                    value: w.value.get(),
                })
                .collect()
        };
        Engine {
            name: self.engine,
            since: self.since.0,
            memory_rule: match self.memory_rule {
                Rule::OfTotal => MemoryRule::OfTotal,
                Rule::StaticFraction => MemoryRule::StaticFraction,
                Rule::OfFree => MemoryRule::OfFree,
            },
            memory_fraction: self.memory_fraction,
            memory_fraction_by_devices: self
                .memory_fraction_by_devices
                .iter()
                .map(|f| (f.condition(), f.value))
                .collect(),
            memory_reserve: self.memory_reserve.iter().map(ReserveWhen::lower).collect(),
            graphs_in_budget: self.graphs_in_budget,
            graph_max_seqs: defaults(&self.graph_max_seqs),
            block_tokens: self.block_tokens,
            prefix_caching: self.prefix_caching,
            chunked_prefill: self.chunked_prefill,
            chunked_prefill_above_context: self.chunked_prefill_above_context,
            max_num_seqs: defaults(&self.max_num_seqs),
            max_num_batched_tokens: defaults(&self.max_num_batched_tokens),
            batched_tokens_at_least_context: self.batched_tokens_at_least_context,
            scheduling: self.scheduling,
            async_scheduling: self.async_scheduling,
            printed_tokens: self.printed_tokens.map(|p| match p {
                Printed::Blocks => PrintedTokens::Blocks,
                Printed::BlocksOverGroups => PrintedTokens::BlocksOverGroups,
                Printed::ConcurrencyTimesContext => PrintedTokens::ConcurrencyTimesContext,
            }),
            sampler_bytes: self.sampler_bytes.map(crate::values::Plain::get),
            admission_flags: self.admission_flags,
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

impl ReserveWhen {
    fn lower(&self) -> (Condition, Reserve) {
        let when = Condition {
            memory_at_least: None,
            memory_at_most: None,
            memory_below: self.memory_below,
            devices_at_least: None,
            tensor_parallel_below: None,
            only: Vec::new(),
            except: Vec::new(),
        };
        let reserve = Reserve {
            base: self.base,
            per_device: self.per_device,
            per_chunk_token: self.per_chunk_token,
            per_graph_seq: self.per_graph_seq,
            at_least: self.at_least,
        };
        (when, reserve)
    }
}

table! {
    /// The price of a node in a region.
    pub struct PriceEntry = "price" {
        /// The instance's name.
        instance: String, required;
        /// As the cloud calls it.
        region: String, required;
        /// Without commitment.
        on_demand: UsdPerHour, required;
        /// Reclaimable.
        spot: UsdPerHour, optional("not published");
        /// With a commitment.
        reserved: UsdPerHour, optional("not published");
        /// Where it was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

impl PriceEntry {
    fn lower(self) -> NodePrice {
        NodePrice {
            instance: self.instance,
            region: self.region,
            on_demand: self.on_demand,
            spot: self.spot,
            reserved: self.reserved,
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

table! {
    /// The price of a hosted model's tokens.
    pub struct TokenPriceEntry = "token_price" {
        /// Who hosts it.
        provider: String, required;
        /// As the provider calls it.
        model: String, required;
        /// A prompt token that was not cached.
        input: UsdPerToken, required;
        /// A cached prompt token.
        cached_input: UsdPerToken, optional("as any other");
        /// A generated token.
        output: UsdPerToken, required;
        /// In a batch queue.
        batch_input: UsdPerToken, optional("no batch price");
        /// In a batch queue.
        batch_output: UsdPerToken, optional("no batch price");
        /// Where it was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

impl TokenPriceEntry {
    fn lower(self) -> TokenPrice {
        TokenPrice {
            provider: self.provider,
            model: self.model,
            input: self.input,
            cached_input: self.cached_input,
            output: self.output,
            batch_input: self.batch_input,
            batch_output: self.batch_output,
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

table! {
    /// A constant of the step-time model; a key that is absent stands for all.
    pub struct ConstantEntry = "constant" {
        /// What it multiplies.
        term: TermName, required;
        /// The device family, such as `hopper`.
        family: String, optional("all");
        /// The engine.
        engine: String, optional("all");
        /// The number format, such as `fp8`.
        dtype: String, optional("all");
        /// Its value: a share of the datasheet's peak, or seconds.
        value: Positive, required;
        /// What it was before end-to-end measurements were looked at.
        prior: Positive, optional("not known");
        /// One standard deviation of it, in percent.
        spread_pct: crate::values::Plain, optional("not known");
        /// Kernel timings behind it.
        kernels: Whole<0, 1_000_000_000>, default("0", "nobody timed a kernel for it");
        /// End-to-end measurements behind it.
        cases: Whole<0, 1_000_000_000>, default("0", "no measurement speaks of it");
        /// How much of it they decided, 0 to 1.
        informed: Fraction, optional("not known");
        /// Where it was read.
        source: String, required;
        /// When.
        as_of: Day, required;
        /// What to know about it.
        note: String, optional("nothing");
    }
}

impl ConstantEntry {
    fn lower(self) -> StepConstant {
        StepConstant {
            term: self.term.0.name().to_owned(),
            family: self.family,
            engine: self.engine,
            dtype: self.dtype,
            // No device is faster than its datasheet.
            value: if self.term.0.is_efficiency() { self.value.0.min(1.0) } else { self.value.0 },
            prior: self.prior.map(|p| p.0),
            spread_pct: self.spread_pct.map(|s| s.get()),
            kernels: self.kernels.get(),
            cases: self.cases.get(),
            informed: self.informed.map(|i| i.get()),
            fact: fact(self.source, self.as_of, self.note),
        }
    }
}

/// The name of a term.
#[derive(Clone, Copy, Debug)]
pub struct TermName(Term);

impl Value for TermName {
    fn shape() -> Shape {
        Shape::Text { noun: "gemm_bytes" }
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(node, reader)?;
        let term = Term::named(&text);
        if term.is_none() {
            let close = nearest(&text, Term::ALL.map(Term::name));
            let likely = close.first().map_or("gemm_bytes", String::as_str);
            let diagnostic = reader
                .error("unknown-term", node, format!("`{text}` is no term of the step-time model"))
                .help(format!("write `{} = \"{likely}\"`", node.key));
            reader.report(diagnostic);
        }
        term.map(Self)
    }
}

/// A finite number above zero.
#[derive(Clone, Copy, Debug)]
pub struct Positive(f64);

impl Value for Positive {
    fn shape() -> Shape {
        crate::values::Plain::shape()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let value = crate::values::Plain::read(node, reader)?.get();
        if value <= 0.0 {
            let message = format!("`{}` must be above zero", node.key);
            let diagnostic = reader.error("out-of-range", node, message);
            let diagnostic = diagnostic.help(format!("write `{} = 0.8`", node.key));
            reader.report(diagnostic);
            return None;
        }
        Some(Self(value))
    }
}

table! {
    /// How far predicted gaps between tokens were off, over published measurements.
    pub struct BandEntry = "band" {
        /// `dense`, `moe` or `attention-dp`.
        kind: String, required;
        /// The device family.
        family: String, optional("all");
        /// The engine.
        engine: String, optional("all");
        /// Half of the predictions were closer than this.
        median_abs_pct: crate::values::Plain, required;
        /// Nine in ten were closer than this.
        p90_abs_pct: crate::values::Plain, required;
        /// How many there were.
        cases: Whole<1, 1_000_000_000>, required;
        /// Pairs of a model and a device among them.
        groups: Whole<1, 1_000_000>, optional("not known");
    }
}

impl BandEntry {
    fn lower(self) -> StepBand {
        StepBand {
            kind: self.kind,
            family: self.family,
            engine: self.engine,
            median_abs_pct: self.median_abs_pct.get(),
            p90_abs_pct: self.p90_abs_pct.get(),
            cases: self.cases.get(),
            groups: self.groups.map(|n| n.get()),
        }
    }
}
