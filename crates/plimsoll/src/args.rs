//! What may be typed.

mod cluster;

use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use jiff::civil::Date;
use plimsoll_units::{Bytes, Factor, Fraction, Seconds, Tokens};
use plimsoll_workload::Quantity;

pub(crate) use self::cluster::{
    DoctorArgs, EmitArgs, GatewayArg, IngestLiveArgs, LintArgs, PrometheusArgs, WatchArgs,
    WorkloadArg,
};

/// The load line for LLM inference: how much load may this fleet carry, which resource runs out first,
/// and what does one success cost?
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version = crate::VERSION, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Clone, Args, Debug)]
pub(crate) struct Global {
    /// Print exactly one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The seed of every draw, instead of the scenario's
    #[arg(long, global = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The day that stands for today, so that the same input gives the same bytes
    #[arg(long, global = true, value_name = "DATE", value_parser = day)]
    pub(crate) as_of: Option<Date>,
    /// Threads to use; the answer does not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// No talk on stderr, only mistakes
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// A catalogue file or directory that extends or overrides the built-in one
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) catalog: Option<PathBuf>,
    /// What stands for the shell where there is none.
    #[arg(skip)]
    pub(crate) typed: Option<Typed>,
}

/// A scenario that was typed into a page instead of a file, and whoever waits for the answer.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    /// What it is called.
    pub(crate) name: String,
    /// What it says.
    pub(crate) text: String,
    /// The directory that it stands in, and names no file outside of.
    pub(crate) workspace: PathBuf,
    /// Whoever waits.
    pub(crate) work: plimsoll_web::Work,
}

/// What a review is asked for.
#[derive(Args, Clone, Debug)]
pub struct ReviewArgs {
    /// The scenario
    pub(crate) file: PathBuf,
    /// Write all of it as one page that needs nothing else, with charts
    #[arg(long, value_name = "OUT.html")]
    pub(crate) html: Option<PathBuf>,
    /// Write all of it as Markdown, for a pull request
    #[arg(long, value_name = "OUT.md")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the document that `--json` prints to this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Exit with 0 only where this fleet is READY and no cap on money is exceeded
    #[arg(long, value_name = "today|plan", num_args = 0..=1, require_equals = true, default_missing_value = "today")]
    pub(crate) gate: Option<GatedFleet>,
    /// Stop after so long, and say what was learnt
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) time_limit: Seconds,
}

/// The fleet that a gate looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GatedFleet {
    /// The one that runs
    Today,
    /// The planned one
    Plan,
}

/// What is served, where, and to whom.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Scenarios of this directory can be opened, and name no file outside of it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Where to listen; other machines only reach an address of this one, and then a token is needed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7077")]
    pub(crate) listen: std::net::SocketAddr,
    /// A file whose first line is the token that is asked for; `PLIMSOLL_TOKEN` does the same
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// What may be asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The capacity review of a scenario: the main job
    Review(ReviewArgs),
    /// Validate a scenario: all mistakes at once, each with its line and a fix
    Check {
        /// The scenario
        file: PathBuf,
    },
    /// Print the effective scenario with the origin of every value
    Explain {
        /// The scenario
        file: PathBuf,
    },
    /// Write a commented scenario and a sample of a request log to start from
    Init {
        /// Where to write them; created if it is not there
        directory: PathBuf,
        /// Overwrite what is there
        #[arg(long)]
        force: bool,
        /// What runs already: Kubernetes manifests, command lines of engines, engine logs, LiteLLM or Envoy AI Gateway configurations. The
        /// scenario then has what they say, each value with its origin, and the rest as questions
        #[arg(long, value_name = "FILE", num_args = 1..)]
        from: Vec<PathBuf>,
    },
    /// Read request logs of any known format into a ledger: all of them, or nothing
    Ingest(Box<IngestArgs>),
    /// Characterise a workload: bursts, lengths, reuse, failures, and what would break a plan made from averages
    Profile(Box<ProfileArgs>),
    /// Forecast a demand: requests, tokens and KV memory with quantiles that hold, and how such forecasts did
    Forecast(Box<ForecastArgs>),
    /// Hold a forecast against what came: error, coverage, shortfall, the assumption that was most wrong, and what to assume next
    Reconcile(Box<ReconcileArgs>),
    /// Ask a ledger in SQL, read-only; needs a program that was built with the feature `sql`
    Query {
        /// The ledger
        ledger: PathBuf,
        /// One statement over the tables `requests`, `outcomes`, `series` and `rejects`
        sql: String,
        /// The most rows that are shown
        #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
        rows: u32,
    },
    /// Show one task across its attempts: routes, tokens, stages, tools, outcome, cost
    Trace {
        /// The ledger
        ledger: PathBuf,
        /// The task's name, or its trace's, its session's or a request's
        #[arg(long, value_name = "ID")]
        task: String,
    },
    /// The memory budget: what fits, for the pools of a scenario or for a model and a device
    Fit(Box<FitArgs>),
    /// Run an engine against the demand of a scenario, or against a measured run
    Simulate(Box<SimulateArgs>),
    /// Draw the service curve of a fleet: its knee, its load line, and what binds
    Curve(Box<CurveArgs>),
    /// Plan: how many replicas of what, with which reserve, where, behind which limits
    Plan(Box<PlanArgs>),
    /// Try stress scenarios: what breaks first, what moves the answer, what proposed changes relieve and create
    Stress(Box<StressArgs>),
    /// Open the books: what was paid, who used it, what one success costs, and what could be paid instead
    Cost(Box<CostArgs>),
    /// Fit a pool's step times to benchmark results or step logs, with the built-in model as prior
    Calibrate(Box<CalibrateArgs>),
    /// Hold our predictions against what real engines did
    Validate {
        /// Step logs, or cases in the format `plimsoll-kv-cases/1` (memory) or `plimsoll.perf_cases.v1` (latency
        /// and throughput); where absent, our own step logs of vLLM on an H200, which ship with the program
        file: Option<PathBuf>,
        /// For step logs: a calibration instead of the built-in step times
        #[arg(long, value_name = "FILE")]
        calibration: Option<PathBuf>,
    },
    /// Show what is built in, each fact with its source and date
    Catalog {
        /// What to show
        topic: CatalogTopic,
        /// One entry, by name or alias
        name: Option<String>,
        /// Show the model that a Hugging Face `config.json` describes
        #[arg(long, value_name = "FILE", conflicts_with = "name")]
        hf_config: Option<PathBuf>,
    },
    /// Write a plan as manifests, flags, limits, alerts and dashboards, each with the plan's id
    Emit(Box<EmitArgs>),
    /// Check manifests, rules and limits for mistakes that were made before, each with its proof and a fix
    Lint(Box<LintArgs>),
    /// Run the queries of manifests or of a plan: how many series, which value, how many replicas they ask for, whether they could have fired
    Doctor(Box<DoctorArgs>),
    /// Watch a fleet against its plan: headroom, drift, what is about to happen, and how many replicas it should have; advice only
    Watch(Box<WatchArgs>),
    /// Serve the studies as a web page and an HTTP API
    Serve(ServeArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write man pages
    Man {
        /// Where to write them; created if it is not there
        directory: PathBuf,
    },
}

/// What `fit` is asked about.
#[derive(Args, Debug)]
pub struct FitArgs {
    /// A scenario: every pool of it, with the contexts of its classes
    #[arg(conflicts_with_all = ["model", "hf_config", "accelerator"], required_unless_present = "accelerator")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    /// An engine's log: what it printed at start, beside what we say
    #[arg(long, value_name = "FILE", conflicts_with_all = ["compare", "file"])]
    pub(crate) engine_log: Option<PathBuf>,
    /// The same over group sizes or devices
    #[arg(long, value_name = "WHAT")]
    pub(crate) compare: Option<Compare>,
}

/// How logs are read that are in no ledger.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// For logs: columns of the ledger and the file's, as for `ingest`
    #[arg(long, value_name = "COLUMN=FIELD,…", value_delimiter = ',', value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// For logs: the format, instead of the detected one
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
}

/// What `profile` is asked for.
#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// A ledger, or logs of any format that `ingest` reads
    #[arg(required = true, value_name = "LEDGER|TRACE")]
    pub(crate) source: Vec<PathBuf>,
    /// Columns whose values make classes, such as `route,tenant`
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Write it as one page that needs nothing else, with charts
    #[arg(long, value_name = "OUT.html")]
    pub(crate) html: Option<PathBuf>,
    /// Put charts into the document, as a page draws them
    #[arg(long, hide = true)]
    pub(crate) charts: bool,
    /// A scenario whose classes say by `match` which rows are theirs; its first pool's step times say how long requests take
    #[arg(long, value_name = "FILE", conflicts_with = "by")]
    pub(crate) scenario: Option<PathBuf>,
    /// Only rows with these values, `*` standing for any text, such as `model=gpt-*,region=eu`
    #[arg(long = "where", value_name = "COLUMN=VALUE,…", value_delimiter = ',', value_parser = mapping)]
    pub(crate) only: Vec<(String, String)>,
    /// The most classes; the rarest are counted together
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) classes: u16,
    /// Write the classes as `[[class]]` tables of a scenario: the pairs of lengths that occur together, and the arrivals that fit best
    #[arg(long, value_name = "FILE", conflicts_with = "to_bench")]
    pub(crate) to_scenario: Option<PathBuf>,
    /// Write a load test with the real lengths, for this tool
    #[arg(long, value_name = "TOOL", requires = "out")]
    pub(crate) to_bench: Option<BenchTool>,
    /// The directory that `--to-bench` writes to; made where it is not there
    #[arg(long, value_name = "DIR", requires = "to_bench")]
    pub(crate) out: Option<PathBuf>,
    /// For a ledger that a Ballista cluster sees under the same path: let it do the sums, such as `df://scheduler:50050`; needs a
    /// program that was built with the feature `cluster`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What `forecast` is asked for.
#[derive(Args, Debug)]
pub struct ForecastArgs {
    /// A ledger, or logs of any format that `ingest` reads
    #[arg(required = true, value_name = "LEDGER|LOG")]
    pub(crate) source: Vec<PathBuf>,
    /// A scenario: its classes say by `match` which rows are theirs, its events what is known of the future, its study how far to look
    #[arg(long, value_name = "FILE", conflicts_with = "by")]
    pub(crate) scenario: Option<PathBuf>,
    /// Columns whose values make classes, such as `route,tenant`
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// The most classes, or clients of a series; the rest are counted together
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) classes: u16,
    /// Only rows with these values, `*` standing for any text, such as `model=gpt-*,region=eu`
    #[arg(long = "where", value_name = "COLUMN=VALUE,…", value_delimiter = ',', value_parser = mapping)]
    pub(crate) only: Vec<(String, String)>,
    /// For ledgers of counts: the series, where there are several; the largest by default
    #[arg(long, value_name = "NAME")]
    pub(crate) series: Option<String>,
    /// How long a step is; by default an hour, or less where the history is short
    #[arg(long, value_name = "TIME")]
    pub(crate) step: Option<Seconds>,
    /// How far to look; by default to the end of the scenario's study, or as far as an eighth of the history
    #[arg(long, value_name = "TIME")]
    pub(crate) horizon: Option<Seconds>,
    /// The quantile that is sized for, by which models are chosen; the scenario's `demand_quantile` by default, else 0.95
    #[arg(long, value_name = "SHARE")]
    pub(crate) quantile: Option<Fraction>,
    /// Only what came from here on
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<jiff::Timestamp>,
    /// Only what came before: as if it were forecast then
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<jiff::Timestamp>,
    /// Print the whole evidence: rolling origins, scores, coverage by quantile and lead time
    #[arg(long)]
    pub(crate) backtest: bool,
    /// What `reconcile` has learnt of earlier forecasts: its JSON document, or what its `--levels-out` wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) levels: Option<PathBuf>,
    /// Load lines to watch, such as `output_tokens=45000,requests=120` (each a second; `resident_kv_tokens` in tokens)
    #[arg(long, value_name = "RESOURCE=MOST,…", value_delimiter = ',', value_parser = line)]
    pub(crate) line: Vec<(Quantity, f64)>,
    /// Watch the load lines that `plimsoll curve --json` wrote to this file; `--line` overrides one
    #[arg(long, value_name = "FILE")]
    pub(crate) curve: Option<PathBuf>,
    /// How long a start takes, nine times in ten; by default that of the scenario's slowest pool
    #[arg(long, value_name = "TIME")]
    pub(crate) startup: Option<Seconds>,
    /// Write the forecast as a file that `reconcile` reads
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write a picture for each resource here, as SVG; made where it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// Write it as one page that needs nothing else, with charts
    #[arg(long, value_name = "OUT.html")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What `reconcile` is asked for.
#[derive(Args, Debug)]
pub struct ReconcileArgs {
    /// What was forecast: a file of `plimsoll forecast --out` or its JSON document
    #[arg(required_unless_present = "history")]
    pub(crate) plan: Option<PathBuf>,
    /// A ledger, or logs of any format that `ingest` reads, of the time that was forecast
    #[arg(required_unless_present = "history", value_name = "LEDGER|LOG")]
    pub(crate) source: Vec<PathBuf>,
    /// Instead: how forecasts did over the weeks, from the documents in this directory that `--out` wrote
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "source"])]
    pub(crate) history: Option<PathBuf>,
    /// The scenario, for what its classes promise
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// What earlier reconciliations have learnt, as `--out` or `--levels-out` wrote it
    #[arg(long, value_name = "FILE")]
    pub(crate) levels: Option<PathBuf>,
    /// Write what was learnt, for `plimsoll forecast --levels`
    #[arg(long, value_name = "FILE")]
    pub(crate) levels_out: Option<PathBuf>,
    /// Write the document, for `--history`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write a picture for each resource here, band against what came, as SVG; made where it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// Write it as one page that needs nothing else, with charts
    #[arg(long, value_name = "OUT.html")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// A tool that tests with load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchTool {
    /// GuideLLM
    Guidellm,
    /// `vllm bench serve`
    Vllm,
    /// AIPerf
    Aiperf,
    /// A trace as Mooncake publishes it
    Mooncake,
}

/// What `ingest` is asked for.
#[derive(Args, Debug)]
pub struct IngestArgs {
    /// Files, directories, quoted patterns, or `-` for standard input; plain, gzip, zstd, or tar of those; with the feature
    /// `object-store` also `s3://`, `gs://`, `az://`, `http://`, `https://` and `file://`
    #[arg(required_unless_present_any = ["columns", "prometheus"])]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) live: IngestLiveArgs,
    /// The ledger, a directory; made where it is not there
    #[arg(long, value_name = "LEDGER", required_unless_present = "columns")]
    pub(crate) into: Option<PathBuf>,
    /// The name of the source instead of the format's; rows are the same where source, request and attempt are
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// The format, instead of the detected one
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// For any table, JSON lines or Parquet: columns of the ledger and the file's, such as
    /// `prompt_tokens=ctx,output_tokens=usage.gen,ts_arrival=t:ms,e2e_s=took:ms`
    #[arg(long, value_name = "COLUMN=FIELD,…", value_delimiter = ',', value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// When logs that count from their own start began, such as `2026-11-15T09:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) start: Option<jiff::Timestamp>,
    /// List the columns of the ledger, and the formats that are known
    #[arg(long)]
    pub(crate) columns: bool,
}

/// A model on a device: what is absent is the engine's default.
#[derive(Args, Clone, Debug)]
pub struct PoolArgs {
    /// The model, by name or Hugging Face id
    #[arg(long, value_name = "NAME", conflicts_with = "hf_config")]
    pub(crate) model: Option<String>,
    /// The model's `config.json`
    #[arg(long, value_name = "FILE")]
    pub(crate) hf_config: Option<PathBuf>,
    /// The device
    #[arg(long, value_name = "NAME")]
    pub(crate) accelerator: Option<String>,
    /// The engine, with its version
    #[arg(long, value_name = "NAME@VERSION", default_value = "vllm")]
    pub(crate) engine: String,
    /// Devices that share each layer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) tensor_parallel: u64,
    /// Groups of devices that share the layers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) pipeline_parallel: u64,
    /// Devices that share the experts whole
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) expert_parallel: u64,
    /// Devices that share a context while decoding
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) context_parallel: u64,
    /// How weights are stored; as the model is published by default
    #[arg(long, value_name = "FORMAT")]
    pub(crate) weights: Option<WeightFormat>,
    /// How the KV cache is stored
    #[arg(long, value_name = "DTYPE", default_value = "auto")]
    pub(crate) kv_dtype: KvFormat,
    /// Longest accepted context; the model's own by default
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_model_len: Option<Tokens>,
    /// Largest running batch; the engine's default for the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) max_num_seqs: Option<u64>,
    /// Token budget of a step; the engine's default for the device
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_num_batched_tokens: Option<Tokens>,
    /// Tokens in a KV block; the engine's default
    #[arg(long, value_name = "TOKENS")]
    pub(crate) block_size: Option<Tokens>,
    /// The fraction of device memory the engine may use; its own default
    #[arg(long, value_name = "SHARE")]
    pub(crate) memory_utilization: Option<Fraction>,
    /// The device's total memory, where it is known better than by the catalogue
    #[arg(long, value_name = "BYTES")]
    pub(crate) device_memory: Option<Bytes>,
    /// Adapters served at once and their rank
    #[arg(long, value_name = "N:RANK", value_parser = adapters)]
    pub(crate) lora: Option<(u64, u64)>,
    /// No graphs are captured
    #[arg(long)]
    pub(crate) enforce_eager: bool,
    /// Tokens guessed a step by the model's extra prediction layers, which are loaded for it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) speculative_tokens: Option<u64>,
}

impl PoolArgs {
    /// As if nothing had been typed: every option at its default.
    pub(crate) fn bare() -> Self {
        let command = Self::augment_args(clap::Command::new("pool"));
        let matches = command.get_matches_from(["pool"]);
        // No option is required, so there is nothing to miss.
        Self::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// What `calibrate` is asked for.
#[derive(Args, Debug)]
pub struct CalibrateArgs {
    /// Results of benchmarks, or step logs; `.gz` is fine
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Only the runs of step logs whose names match one of these, such as `closed-*,prefill-*`
    #[arg(long, value_name = "GLOB,GLOB", value_delimiter = ',')]
    pub(crate) runs: Vec<String>,
    /// Where to write the calibration, for a pool's `calibration` key
    #[arg(long, value_name = "FILE")]
    pub(crate) into: PathBuf,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
}

/// What `simulate` is asked for.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// A scenario, whose fleet is run against its demand or a trace; or step logs
    pub(crate) file: PathBuf,
    /// For step logs: the run whose requests are served again
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pool", "hour", "runs"])]
    pub(crate) run: Option<String>,
    /// For step logs: a calibration instead of the built-in step times
    #[arg(long, value_name = "FILE", requires = "run")]
    pub(crate) calibration: Option<PathBuf>,
    /// Only this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// The hour: the busiest with events, the busiest without, its number from the start of the horizon, several
    /// in a row, or all of the horizon
    #[arg(long, value_name = "launch|baseline|N|N..M|all", value_parser = hour)]
    pub(crate) hour: Option<SimulatedHour>,
    /// Multiplies the rates of all classes
    #[arg(long, value_name = "FACTOR", default_value = "1", conflicts_with_all = ["run", "replay"])]
    pub(crate) load: Factor,
    /// Nothing fails or is reclaimed by chance; incidents of the scenario still happen
    #[arg(long)]
    pub(crate) no_failures: bool,
    /// Requests of a ledger or a trace instead of the classes' own: Mooncake, Azure, Vidur, Splitwise, BurstGPT, BLIS and
    /// others, plain or gzip; or step logs with `--replay-run`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "hour"])]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trace_args: TraceArgs,
    /// How long requests come, after the warm-up
    #[arg(long, value_name = "TIME", default_value = "1h", conflicts_with = "replay")]
    pub(crate) duration: Seconds,
    /// How long they come before they count
    #[arg(long, value_name = "TIME", default_value = "5m", conflicts_with = "replay")]
    pub(crate) warm_up: Seconds,
    /// Independent runs; the scenario's by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// Every request with its times into a CSV file
    #[arg(long, value_name = "FILE")]
    pub(crate) outcomes: Option<PathBuf>,
    /// Utilisation over time, in windows of the study's length
    #[arg(long)]
    pub(crate) timeline: bool,
    /// Steps and requests of the first run as a trace for Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Stop after so long and say what was learnt
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) time_limit: Seconds,
}

/// What `curve` is asked for.
#[derive(Args, Debug)]
pub struct CurveArgs {
    /// A scenario
    pub(crate) file: PathBuf,
    /// Only this pool
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// The hour whose mix is scaled: the busiest with events, the busiest without, or its number
    #[arg(long, value_name = "launch|baseline|N", value_parser = hour)]
    pub(crate) hour: Option<SimulatedHour>,
    /// Points to draw in all, loads that were tried to find the load line included
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(3..=200))]
    pub(crate) points: u64,
    /// Results of a load test, to be held against the curve
    #[arg(long, value_name = "FILE")]
    pub(crate) load_test: Option<PathBuf>,
    /// Write it as one page that needs nothing else, with charts
    #[arg(long, value_name = "OUT.html")]
    pub(crate) html: Option<PathBuf>,
    /// What if: the busiest hour with other demand, lengths, hits, replicas, starts or losses, such as
    /// `demand=2,prompt=1.5,output=1,cache_hit=0,replicas=1.5,startup=2,lost=1`
    #[arg(long, value_name = "LEVER=VALUE,…", value_delimiter = ',', value_parser = lever, conflicts_with_all = ["pool", "hour", "load_test", "html"])]
    pub(crate) what_if: Vec<(String, f64)>,
    /// Stop after so long and say what was learnt
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) time_limit: Seconds,
}

/// What `plan` is asked for.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// A scenario
    pub(crate) file: PathBuf,
    /// Write the plan to this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// A plan made before: every number that has changed is explained
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Say where each limit and threshold comes from
    #[arg(long)]
    pub(crate) why: bool,
    /// Exit with 1 also where the plan exceeds a cap on money
    #[arg(long)]
    pub(crate) gate: bool,
    /// Simulate the windows that decide, or every hour
    #[arg(long, value_name = "deciding|full", default_value = "deciding")]
    pub(crate) horizon: PlanHorizon,
    /// Stop after so long and say what was learnt
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) time_limit: Seconds,
}

/// What `stress` is asked for.
#[derive(Args, Debug)]
pub struct StressArgs {
    /// A scenario
    pub(crate) file: PathBuf,
    /// Show the resource table of each stress
    #[arg(long)]
    pub(crate) resources: bool,
    /// Write it as one page that needs nothing else, with charts
    #[arg(long, value_name = "OUT.html")]
    pub(crate) html: Option<PathBuf>,
    /// Exit with 0 only where the planned fleet holds in every stress scenario that applies
    #[arg(long)]
    pub(crate) gate: bool,
    /// Stop after so long and say what was learnt
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) time_limit: Seconds,
}

/// What of the horizon a plan simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PlanHorizon {
    /// The busiest hours, the ramp into them and losses at the peak; the rest is read from the service curve
    Deciding,
    /// Every hour
    Full,
}

/// What `cost` is asked for.
#[derive(Args, Debug)]
pub struct CostArgs {
    /// A ledger, logs of any format that `ingest` reads, or a scenario (`.toml`) for what its classes would cost
    #[arg(required = true, value_name = "LEDGER|FILE")]
    pub(crate) source: Vec<PathBuf>,
    /// For a ledger: the scenario whose pools and providers served it, with their prices
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// What was invoiced, as FOCUS or AWS CUR in CSV: the books are then of the bill
    #[arg(long, value_name = "FILE")]
    pub(crate) bill: Option<PathBuf>,
    /// The column that the screen tells costs apart by; the document has all of them
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,
    /// Only what came from here on
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<jiff::Timestamp>,
    /// Only what came before
    #[arg(long = "to", value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<jiff::Timestamp>,
    /// Only rows with these values, `*` standing for any text, such as `model=gpt-*,region=eu`
    #[arg(long = "where", value_name = "COLUMN=VALUE,…", value_delimiter = ',', value_parser = mapping)]
    pub(crate) only: Vec<(String, String)>,
    /// Write the lines by tenant as a FOCUS 1.3 table
    #[arg(long, value_name = "OUT.csv")]
    pub(crate) focus: Option<PathBuf>,
    /// Dollars for one unit of the bill's currency, such as `EUR=1.08`
    #[arg(long, value_name = "CURRENCY=USD,…", value_delimiter = ',', value_parser = rate)]
    pub(crate) usd_per: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// How a trace is read and changed before it is replayed.
#[derive(Args, Clone, Debug)]
pub struct TraceArgs {
    /// The run of step logs that is replayed
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub(crate) replay_run: Option<String>,
    /// The class of its requests, where the trace has no classes of these names
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub(crate) class: Option<String>,
    /// Only from here on, from its first request
    #[arg(long, value_name = "TIME", requires = "replay")]
    pub(crate) from: Option<Seconds>,
    /// Only until here
    #[arg(long, value_name = "TIME", requires = "replay")]
    pub(crate) to: Option<Seconds>,
    /// So many times as many requests: fewer by leaving some out, more by laying shifted copies over it
    #[arg(long, value_name = "FACTOR", requires = "replay")]
    pub(crate) scale: Option<Factor>,
    /// Copies that `--scale` adds have the same prompts, not others like them
    #[arg(long, requires = "scale")]
    pub(crate) same_prompts: bool,
    /// Divides the time between requests, which also squeezes its bursts
    #[arg(long, value_name = "FACTOR", requires = "replay")]
    pub(crate) squeeze: Option<Factor>,
    /// Requests that share a coarse time stamp are spread over its tick
    #[arg(long, requires = "replay")]
    pub(crate) spread_ticks: bool,
}

/// Which hour is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedHour {
    /// The busiest that an event changes.
    Launch,
    /// The busiest without events.
    Baseline,
    /// By its number.
    Number(usize),
    /// From one until before another.
    From(usize, usize),
    /// All of the horizon.
    All,
}

fn hour(text: &str) -> Result<SimulatedHour, String> {
    match text {
        "launch" => Ok(SimulatedHour::Launch),
        "baseline" => Ok(SimulatedHour::Baseline),
        "all" => Ok(SimulatedHour::All),
        number => {
            let wrong =
                "write `launch`, `baseline`, `all`, the number of an hour, or two as `8..20`";
            let parsed = match number.split_once("..") {
                Some((first, last)) => {
                    let (first, last) = (first.parse(), last.parse());
                    first
                        .ok()
                        .zip(last.ok())
                        .filter(|(first, last)| first < last)
                        .map(|(a, b)| SimulatedHour::From(a, b))
                }
                None => number.parse().ok().map(SimulatedHour::Number),
            };
            parsed.ok_or_else(|| wrong.to_owned())
        }
    }
}

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeightFormat {
    /// 16 bits
    Bf16,
    /// 16 bits
    Fp16,
    /// 8 bits, a scale an output channel
    Fp8,
    /// 8 bits, a scale a tensor
    Fp8Tensor,
    /// 8 bits, a scale a block of 128 x 128
    Fp8Block,
    /// 8 bits, whole
    Int8,
    /// 4 bits in groups of 128
    Int4,
    /// 4 bits of bitsandbytes
    Nf4,
    /// 4 bits, micro-scaled
    Mxfp4,
    /// 4 bits, NVIDIA's
    Nvfp4,
}

/// How the KV cache is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KvFormat {
    /// As the engines do by default: 16 bits
    Auto,
    /// 16 bits
    Bf16,
    /// 16 bits
    Fp16,
    /// 8 bits
    Fp8,
    /// 8 bits, whole
    Int8,
}

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compare {
    /// Tensor parallelism from 1 up to the devices that reach each other
    Tp,
    /// Every accelerator of the catalogue
    Accelerators,
}

fn adapters(text: &str) -> Result<(u64, u64), String> {
    let (count, rank) = text.split_once(':').ok_or("write it as N:RANK, such as 4:16")?;
    let number = |part: &str| part.parse::<u64>().ok().filter(|n| (1..=100_000).contains(n));
    number(count).zip(number(rank)).ok_or_else(|| "both must be whole numbers from 1".to_owned())
}

/// What the catalogue is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogTopic {
    /// Models and their shapes
    Models,
    /// Devices, their links and nodes
    Accelerators,
    /// Serving engines and their defaults by version
    Engines,
    /// Node and token prices
    Prices,
    /// Workload profiles for classes
    Profiles,
    /// Measured kernel times by device, engine and number format
    Kernels,
}

/// A day that a study can be about.
fn day(text: &str) -> Result<Date, String> {
    let day: Date = text.parse().map_err(|_| "not a day such as 2026-11-17".to_owned())?;
    if plimsoll_scenario::in_reach(day) {
        Ok(day)
    } else {
        Err("not a day of these centuries".to_owned())
    }
}

/// A column of the ledger and a field of a file.
fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, field)) if !column.trim().is_empty() && !field.trim().is_empty() => {
            Ok((column.trim().to_owned(), field.trim().to_owned()))
        }
        _ => Err("not a column and a field such as `prompt_tokens=ctx`".to_owned()),
    }
}

/// A resource and the most of it.
fn line(text: &str) -> Result<(Quantity, f64), String> {
    let known = || Quantity::ALL.map(Quantity::name).join(", ");
    let (name, most) = text.split_once('=').ok_or("not such as `output_tokens=45000`")?;
    let quantity = Quantity::of_name(name.trim())
        .ok_or_else(|| format!("`{}` is none of {}", name.trim(), known()))?;
    if quantity == Quantity::CachedShare {
        return Err("a share has no load line".to_owned());
    }
    let most: f64 = most.trim().parse().map_err(|_| "the most is no number".to_owned())?;
    if most.is_finite() && most > 0.0 {
        Ok((quantity, most))
    } else {
        Err("the most must be above 0".to_owned())
    }
}

/// A currency, and what one unit of it is in dollars.
fn rate(text: &str) -> Result<(String, f64), String> {
    let wrong = || "not a currency and its rate such as `EUR=1.08`".to_owned();
    let (currency, usd) = text.split_once('=').ok_or_else(wrong)?;
    let usd: f64 = usd.trim().parse().map_err(|_| wrong())?;
    match usd.is_finite() && usd > 0.0 && !currency.trim().is_empty() {
        true => Ok((currency.trim().to_uppercase(), usd)),
        false => Err(wrong()),
    }
}

/// A moment, with its zone.
fn instant(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| "not a moment with its zone, such as 2026-11-15T09:00:00Z".to_owned())
}

/// A lever and where it is moved to.
fn lever(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("write `LEVER=VALUE`, such as `demand=2`")?;
    let value = value.trim().parse().map_err(|_| format!("`{value}` is no number"))?;
    Ok((name.trim().to_owned(), value))
}
