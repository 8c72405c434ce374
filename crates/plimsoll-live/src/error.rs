//! Why there is no answer.

use std::io;

/// Why a Prometheus or a file of metrics gave no answer. An answer that did not come is never taken for a zero.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// What was given is no address.
    #[error("`{url}` is no address of a Prometheus: {why}")]
    Url {
        /// As it was given, without credentials.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Its name is not known.
    #[error("{url}: there is no such host")]
    NoHost {
        /// Who was asked.
        url: String,
    },
    /// Nobody listens there.
    #[error("{url}: the connection was refused")]
    Refused {
        /// Who was asked.
        url: String,
    },
    /// It took too long.
    #[error("{url}: no answer within {after_s} s")]
    TimedOut {
        /// Who was asked.
        url: String,
        /// How long was waited.
        after_s: f64,
    },
    /// It answered that it will not, or cannot.
    #[error("{url}: HTTP status {status}{}", said(text))]
    Status {
        /// Who was asked.
        url: String,
        /// The status.
        status: u16,
        /// The beginning of what it said.
        text: String,
    },
    /// Somebody else answers there.
    #[error("{url}: this is no Prometheus: it answers with {found}")]
    NotPrometheus {
        /// Who was asked.
        url: String,
        /// What came instead.
        found: String,
    },
    /// The query is wrong, or was given up.
    #[error("{url}: {kind}: {text}; the query is `{query}`")]
    Query {
        /// Who was asked.
        url: String,
        /// What kind of error it says it is.
        kind: String,
        /// What it says.
        text: String,
        /// What was asked.
        query: String,
    },
    /// The answer is larger than is read.
    #[error("{url}: the answer is larger than {} MiB", most_bytes >> 20)]
    TooLarge {
        /// Who was asked.
        url: String,
        /// The most that is read.
        most_bytes: u64,
    },
    /// The connection broke.
    #[error("{url}: the connection broke")]
    Broken {
        /// Who was asked.
        url: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("{name}: cannot be read after line {line}")]
    Unreadable {
        /// The file as it was named.
        name: String,
        /// The last line that was read; zero before the first.
        line: u64,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing that an engine or a gateway reports.
    #[error("{name}: there are no metrics of an engine or a gateway that is known")]
    NoSignals {
        /// Who was asked.
        name: String,
    },
    /// More replicas than are read at once.
    #[error("{name}: {found} replicas report {metric}; at most {most} are read")]
    TooManyReplicas {
        /// Who was asked.
        name: String,
        /// What they report.
        metric: String,
        /// How many there are.
        found: usize,
        /// How many are read.
        most: usize,
    },
    /// Scraped too seldom for the windows that are asked for.
    #[error(
        "{name}: {metric} is scraped every {interval_s:.0} s; windows of {window_s} s cannot be counted"
    )]
    Coarse {
        /// Who was asked.
        name: String,
        /// What is scraped.
        metric: String,
        /// How often.
        interval_s: f64,
        /// What was asked for.
        window_s: u32,
    },
    /// A stretch of time without a window in it.
    #[error(
        "from {since_s} s to {until_s} s (since 1970) there is no whole window of {window_s} s"
    )]
    NoWindow {
        /// From then.
        since_s: i64,
        /// Until then.
        until_s: i64,
        /// How long a window is.
        window_s: u32,
    },
}

impl LiveError {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Url { .. } => "an address such as `http://prometheus.monitoring:9090`".to_owned(),
            Self::NoHost { .. } => "check the name; from outside of a cluster, `kubectl port-forward svc/prometheus 9090` makes it `http://127.0.0.1:9090`".to_owned(),
            Self::Refused { .. } => "check the port, and that Prometheus runs; `kubectl port-forward svc/prometheus 9090` makes it `http://127.0.0.1:9090`".to_owned(),
            Self::TimedOut { after_s, .. } => format!("wait longer with `--query-timeout {:.0}s`, or ask for less time or fewer series: `--since 1d`, `--match namespace=prod`", after_s * 4.0),
            Self::Status { status: 401 | 403, .. } => "it wants credentials: `--prometheus-token-file FILE`, or a URL with `user:password@`".to_owned(),
            Self::Status { status: 404, .. } => "the address may lack its path, such as `/prometheus` or `/api/prom`".to_owned(),
            Self::Status { status: 500.., .. } => "the server or a proxy before it is in trouble; try again, and ask for less time: `--since 1d`".to_owned(),
            Self::Status { .. } => "check the address with `curl URL/api/v1/status/buildinfo`".to_owned(),
            Self::NotPrometheus { .. } => "the address of the server itself is wanted, not of a dashboard or a login page before it; `curl URL/api/v1/status/buildinfo` answers in JSON".to_owned(),
            Self::Query { kind, .. } if kind == "timeout" || kind == "canceled" => "ask for less time or fewer series: `--since 1d`, `--match namespace=prod`".to_owned(),
            Self::Query { kind, .. } if kind == "execution" => "if it says that there are too many samples, ask for less: `--since 1d`, `--match namespace=prod`".to_owned(),
            Self::Query { .. } => "paste the query into the server's own page to see where it is wrong".to_owned(),
            Self::TooLarge { .. } => "ask for fewer series or less time: `--match namespace=prod`, `--model NAME`, `--since 1d`".to_owned(),
            Self::Broken { .. } => "try again; if it stays, a proxy between may cut long answers".to_owned(),
            Self::Unreadable { .. } => "check the file and whether it may be read".to_owned(),
            Self::NoSignals { .. } => "vLLM (`vllm:`), SGLang (`sglang:`, with `--enable-metrics`), TensorRT-LLM (`trtllm_`), TGI (`tgi_`), Dynamo (`dynamo_frontend_`) and llm-d (`llm_d_epp_`) are known; check that they are scraped, and that `--match` and the time fit them".to_owned(),
            Self::TooManyReplicas { .. } => "narrow it: `--match namespace=prod`, `--model NAME`".to_owned(),
            Self::Coarse { interval_s, .. } => {
                format!("ask for longer windows: `--window {:.0}s`", (2.0 * interval_s / 60.0).ceil() * 60.0)
            }
            Self::NoWindow { .. } => "ask for more time: `--since 1d`".to_owned(),
        }
    }
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
