//! Questions to a Prometheus, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::ToSocketAddrs as _;
use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::Uri;

use crate::answer::{Answer, Found, Labels, Reply, Series};
use crate::error::LiveError;

/// How a Prometheus is asked.
#[derive(Clone, Debug)]
pub struct Access {
    /// Sent as `Authorization: Bearer`, where there is one.
    pub bearer: Option<String>,
    /// How long one question may take.
    pub timeout: Duration,
    /// The most bytes of one answer, unpacked.
    pub most_bytes: u64,
}

impl Access {
    /// How long a question may take unless somebody says otherwise: long enough for a day of a large fleet.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// The most bytes of an answer unless somebody says otherwise: half a million samples of series with many labels.
    pub const MOST_BYTES: u64 = 64 << 20;
}

/// The most points of a series that are asked for at once: a Prometheus refuses more than 11,000.
const PIECE_POINTS: u64 = 10_000;
/// A longer question is sent as a form: proxies cut long addresses.
const ADDRESS_MAX: usize = 1_500;
/// What is kept of a page that is no answer.
const SAID_MAX: usize = 120;

/// A Prometheus, or what speaks like one.
#[derive(Debug)]
pub struct Prometheus {
    /// What stands before `/api/v1`. Credentials included: never shown.
    base: String,
    /// What is shown.
    name: String,
    access: Access,
    agent: ureq::Agent,
    warnings: Mutex<BTreeSet<String>>,
}

/// What a metric is, as its reporter says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Metadata {
    /// `counter`, `gauge`, `histogram`, `summary` or `unknown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it means.
    #[serde(default)]
    pub help: String,
}

impl Prometheus {
    /// One at an address; a path before `/api/v1`, and `user:password@`, are kept. Nothing is asked yet.
    pub fn new(url: &str, access: Access) -> Result<Self, LiveError> {
        let wrong =
            |why: &str| LiveError::Url { url: without_credentials(url), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error| wrong(&format!("{error}")))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) =
            (uri.scheme_str(), uri.authority())
        else {
            return Err(wrong("it begins with neither `http://` nor `https://`"));
        };
        let path = uri.path().trim_end_matches('/').trim_end_matches("/api/v1");
        let base = format!("{scheme}://{authority}{}", path.trim_end_matches('/'));
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(access.timeout))
            .http_status_as_error(false)
            .user_agent("plimsoll")
            .build();
        let name = without_credentials(&base);
        let agent = config.new_agent();
        Ok(Self { base, name, access, agent, warnings: Mutex::default() })
    }

    /// Its address, without credentials.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The most bytes of one answer.
    pub fn most_bytes(&self) -> u64 {
        self.access.most_bytes
    }

    /// What it warned of so far, each once.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().map(|own| own.iter().cloned().collect()).unwrap_or_default()
    }

    /// What a query gives at a time, in seconds since 1970; now where there is none.
    pub fn instant(&self, query: &str, at: Option<f64>) -> Result<Answer, LiveError> {
        let mut form = vec![("query", query.to_owned()), self.patience()];
        form.extend(at.map(|at| ("time", seconds(at))));
        let found: Found = self.ask("api/v1/query", &form)?;
        found.result.answer().ok_or_else(|| self.another_shape())
    }

    /// What a query gives from `start` to `end`, both included, each `step`; in seconds since 1970.
    ///
    /// Ranges of more points than a Prometheus gives at once are asked in pieces, and joined.
    pub fn range(
        &self,
        query: &str,
        start: f64,
        end: f64,
        step: f64,
    ) -> Result<Vec<Series>, LiveError> {
        let points = ((end - start) / step + 1e-6).floor().max(0.0) as u64 + 1;
        let mut joined: BTreeMap<Labels, Series> = BTreeMap::new();
        let mut from = 0;
        while from < points {
            let to = (from + PIECE_POINTS).min(points);
            let at = |point: u64| seconds(start + point as f64 * step);
            let form = [
                ("query", query.to_owned()),
                ("start", at(from)),
                ("end", at(to - 1)),
                ("step", seconds(step)),
                self.patience(),
            ];
            let found: Found = self.ask("api/v1/query_range", &form)?;
            for piece in found.result.matrix().ok_or_else(|| self.another_shape())? {
                match joined.get_mut(&piece.labels) {
                    Some(series) => series.samples.extend(piece.samples),
                    None => {
                        joined.insert(piece.labels.clone(), piece);
                    }
                }
            }
            from = to;
        }
        Ok(joined.into_values().collect())
    }

    /// How many series a selector has at a time.
    pub fn series_count(&self, selector: &str, at: Option<f64>) -> Result<u64, LiveError> {
        let answer = self.instant(&format!("count({selector})"), at)?;
        Ok(answer.single().unwrap_or(0.0) as u64)
    }

    /// The values that a label has, of series that match and have samples from `start` to `end`, in seconds since 1970.
    pub fn label_values(
        &self,
        label: &str,
        matches: Option<&str>,
        span: Option<(f64, f64)>,
    ) -> Result<Vec<String>, LiveError> {
        let mut form: Vec<_> = matches.map(|own| ("match[]", own.to_owned())).into_iter().collect();
        if let Some((start, end)) = span {
            form.extend([("start", seconds(start)), ("end", seconds(end))]);
        }
        self.ask(&format!("api/v1/label/{label}/values"), &form)
    }

    /// The names of metrics, of series that match and have samples from `start` to `end`.
    pub fn metric_names(
        &self,
        matches: Option<&str>,
        span: Option<(f64, f64)>,
    ) -> Result<BTreeSet<String>, LiveError> {
        Ok(self.label_values("__name__", matches, span)?.into_iter().collect())
    }

    /// What metrics are, as far as targets that are scraped now say so.
    pub fn metadata(&self) -> Result<BTreeMap<String, Vec<Metadata>>, LiveError> {
        self.ask("api/v1/metadata", &[])
    }

    /// Its version.
    pub fn build_info(&self) -> Result<String, LiveError> {
        #[derive(Deserialize)]
        struct Build {
            version: String,
        }
        self.ask::<Build>("api/v1/status/buildinfo", &[]).map(|build| build.version)
    }

    /// Whether it answers questions; one that is there and starts up says no.
    pub fn ready(&self) -> Result<bool, LiveError> {
        let request = self.agent.get(self.address("-/ready").as_str());
        let status =
            self.with_bearer(request).call().map_err(|error| self.failed(error))?.status().as_u16();
        match status {
            200..300 => Ok(true),
            503 => Ok(false),
            status => {
                Err(LiveError::Status { url: self.name.clone(), status, text: String::new() })
            }
        }
    }

    /// The server is told how long we wait, so that it does not work on for nobody.
    fn patience(&self) -> (&'static str, String) {
        ("timeout", format!("{}ms", self.access.timeout.as_millis()))
    }

    fn address(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        form: &[(&str, String)],
    ) -> Result<T, LiveError> {
        let address = self.address(path);
        let pairs = form.iter().map(|(key, value)| (*key, value.as_str()));
        let asked: usize = form.iter().map(|(key, value)| key.len() + 2 + escaped(value)).sum();
        let response = if address.len() + asked <= ADDRESS_MAX {
            self.with_bearer(self.agent.get(address)).query_pairs(pairs).call()
        } else {
            self.with_bearer(self.agent.post(address)).send_form(pairs)
        };
        let response = response.map_err(|error| self.failed(error))?;
        let status = response.status().as_u16();
        let body = response.into_body().into_with_config().limit(self.access.most_bytes);
        let body = body.read_to_vec().map_err(|error| self.failed(error))?;
        self.read(status, &body, form)
    }

    fn with_bearer<T>(&self, request: ureq::RequestBuilder<T>) -> ureq::RequestBuilder<T> {
        match &self.access.bearer {
            Some(bearer) => request.header("Authorization", format!("Bearer {bearer}")),
            None => request,
        }
    }

    /// What an answer says; one of any status may be Prometheus' own.
    fn read<T: DeserializeOwned>(
        &self,
        status: u16,
        body: &[u8],
        form: &[(&str, String)],
    ) -> Result<T, LiveError> {
        let url = self.name.clone();
        let parsed = serde_json::from_slice::<Reply<T>>(body);
        match parsed {
            Ok(reply) if reply.status == "error" => {
                let query = form.iter().find(|(key, _)| *key == "query");
                Err(LiveError::Query {
                    url,
                    kind: reply.error_type.unwrap_or_else(|| "error".to_owned()),
                    text: reply.error.unwrap_or_default(),
                    query: query.map(|(_, query)| query.clone()).unwrap_or_default(),
                })
            }
            Ok(Reply { status: success, data: Some(data), warnings, .. })
                if success == "success" =>
            {
                if let Ok(mut own) = self.warnings.lock() {
                    own.extend(warnings);
                }
                Ok(data)
            }
            _ if !(200..300).contains(&status) => {
                Err(LiveError::Status { url, status, text: beginning(body) })
            }
            Ok(_) => Err(self.another_shape()),
            Err(error) => {
                let text = beginning(body);
                let found = if text.starts_with('<') {
                    "a page of HTML".to_owned()
                } else if text.starts_with(['{', '[']) {
                    format!("JSON of another shape ({error})")
                } else if text.is_empty() {
                    "nothing".to_owned()
                } else {
                    format!("`{text}`")
                };
                Err(LiveError::NotPrometheus { url, found })
            }
        }
    }

    fn has_host(&self) -> bool {
        let uri: Uri = self.base.parse().unwrap_or_default();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        (host, port).to_socket_addrs().is_ok_and(|mut found| found.next().is_some())
    }

    fn another_shape(&self) -> LiveError {
        let found = "JSON of another shape".to_owned();
        LiveError::NotPrometheus { url: self.name.clone(), found }
    }

    fn failed(&self, error: ureq::Error) -> LiveError {
        let url = self.name.clone();
        match error {
            ureq::Error::HostNotFound => LiveError::NoHost { url },
            ureq::Error::Timeout(_) => {
                LiveError::TimedOut { url, after_s: self.access.timeout.as_secs_f64() }
            }
            ureq::Error::BodyExceedsLimit(most_bytes) => LiveError::TooLarge { url, most_bytes },
            ureq::Error::ConnectionFailed => LiveError::Refused { url },
            ureq::Error::Io(source) if source.kind() == io::ErrorKind::ConnectionRefused => {
                LiveError::Refused { url }
            }
            ureq::Error::Io(source) if source.kind() == io::ErrorKind::TimedOut => {
                LiveError::TimedOut { url, after_s: self.access.timeout.as_secs_f64() }
            }
            // Systems have no kind for it, so that the name is looked up once more.
            ureq::Error::Io(_) if !self.has_host() => LiveError::NoHost { url },
            ureq::Error::Io(source) => LiveError::Broken { url, source },
            ureq::Error::Protocol(error) => {
                LiveError::NotPrometheus { url, found: format!("what is no HTTP ({error})") }
            }
            other => LiveError::Broken { url, source: io::Error::other(other.to_string()) },
        }
    }
}

/// Seconds as a Prometheus reads them, to the millisecond.
fn seconds(value: f64) -> String {
    format!("{value:.3}")
}

/// How long a text is in an address, where all but letters and digits takes three characters.
fn escaped(text: &str) -> usize {
    text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { 1 } else { 3 }).sum()
}

/// The beginning of a page, in one line.
fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SAID_MAX)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(SAID_MAX).collect()
}

/// An address as it may be shown.
pub fn without_credentials(url: &str) -> String {
    if let Ok(uri) = url.parse::<Uri>()
        && let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority())
    {
        let (_, place) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
        return format!("{scheme}://{place}{}", uri.path().trim_end_matches('/'));
    }
    // What is no address may hold them all the same.
    url.rsplit('@').next().unwrap_or(url).to_owned()
}
