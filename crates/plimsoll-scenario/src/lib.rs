//! The user's file: its keys, defaults, spans and diagnostics, and catalogue files beside it.
//!
//! **Owns** how a scenario is written: every key with its documentation and the reason of its default,
//! where each value was written, what is wrong with it and what to write instead. **Refuses** to compute
//! anything: it hands over plain values.
//!
//! A document is walked once. Each table declares its keys in one place (`sections`), and reading,
//! `explain`, the JSON Schema and the reference all follow from that declaration.
//!
//! ```
//! use plimsoll_scenario::{Source, builtin, parse};
//!
//! let text = "[[class]]\nname = 'chat'\nprofile = 'chat'\nrate = '40 req/s'\ncache_hitt = 0.5\n";
//! let mistakes = parse(&Source::new("chat.toml", text), builtin()).unwrap_err();
//! assert_eq!(mistakes[0].message, "class `chat` has no key `cache_hitt`");
//! assert_eq!(mistakes[0].help.as_deref(), Some("did you mean `cache_hit`?"));
//! assert_eq!(mistakes[0].position(), Some((5, 1)));
//! ```

mod catalog;
mod demand;
mod diagnostic;
mod fit;
mod prices;
mod profiles;
mod read;
mod reference;
mod resolve;
mod schema;
pub mod sections;
mod simulate;
mod source;
mod stresses;
mod values;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use plimsoll_fleet::{Architecture, Catalog, Fact, Model, from_hf};
use toml::de::{DeTable, DeValue};

pub use catalog::{builtin, load_catalog, parse_catalog};
pub use demand::{Demand, horizon, lower_demand};
pub use diagnostic::Diagnostic;
pub use fit::{fp8_of, no_format, pool_fit, serves};
pub use prices::{Offer, offers};
pub use profiles::{Profile, profiles};
pub use read::{Entry, Origin, Whole};
pub use reference::scenario_reference;
pub use schema::json_schema;
pub use sections::Scenario;
pub use simulate::{
    SimulatedFleet, SimulatedSpan, SimulatedTimes, class_targets, hand_over, is_reached,
    simulated_fleet, simulated_pool, startup_kept_p90, startup_p90,
};
pub use source::Source;
pub use stresses::{condition, proposed_classes, stresses, uncertain};
pub use values::{
    AcceleratorName, ClassName, Count, Day, Effect, EngineName, Expression, Hours, InstanceName,
    ModelName, Moment, Name, Plain, PoolName, Range, RegionName, ReplicaCount, Replicas,
    ServiceName, Span, Spread, TargetName, ToolName, UtcOffset, in_reach,
};

use read::{Names, Node, Reader, Value};

/// A scenario that holds together.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub scenario: Scenario,
    /// Every value with its origin.
    pub entries: Vec<Entry>,
    /// The catalogue it was read with.
    pub catalog: Arc<Catalog>,
    /// Models of pools that bring their own `config.json`, by pool.
    pub architectures: BTreeMap<String, Architecture>,
    /// The text it was read from.
    pub source: Source,
    /// What the ledger of the study lets expect; none where there is no ledger, or it has not been asked.
    pub outlook: Option<Foresight>,
}

/// What a ledger lets expect.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// The demand ahead.
    pub outlook: plimsoll_workload::Outlook,
    /// What should be known of it.
    pub notes: Vec<String>,
}

impl Loaded {
    /// The demand of the scenario, `today` standing for today: what its ledger lets expect, where it was asked.
    pub fn demand(&self, today: jiff::civil::Date) -> Result<Demand, Diagnostic> {
        self.demand_at(today, self.scenario.study.demand_quantile.get())
    }

    /// The same at another quantile of what is not known.
    pub fn demand_at(&self, today: jiff::civil::Date, level: f64) -> Result<Demand, Diagnostic> {
        let outlook = self.outlook.as_ref().map(|own| &own.outlook);
        let mut demand = lower_demand(&self.scenario, outlook, today, level)?;
        demand.notes.extend(self.outlook.iter().flat_map(|own| own.notes.iter().cloned()));
        Ok(demand)
    }
}

impl Loaded {
    /// The demand at a quantile for at least so many hours after the last event of the horizon begins; none where a ledger says what comes, which knows no further.
    pub fn demand_beyond(
        &self,
        today: jiff::civil::Date,
        level: f64,
        beyond: usize,
    ) -> Result<Option<Demand>, Diagnostic> {
        match self.outlook {
            Some(_) => Ok(None),
            None => demand::lower_beyond(&self.scenario, today, level, beyond).map(Some),
        }
    }
}

/// No scenario that a person wrote is larger.
const FILE_MAX: u64 = 16 << 20;

/// Reads a scenario file, with its own catalogue and `extra` on top of the built-in one.
pub fn load(path: &Path, extra: Option<&Path>) -> Result<Loaded, Vec<Diagnostic>> {
    let source = read_source(path).map_err(|d| vec![d])?;
    let directory = path.parent().unwrap_or(Path::new(""));
    resolved(&source, directory, None, extra)
}

/// Reads a scenario that somebody typed, as if it lay in a directory. No file that it names may lie outside of that.
pub fn load_typed(
    name: &str,
    text: &str,
    directory: &Path,
    extra: Option<&Path>,
) -> Result<Loaded, Vec<Diagnostic>> {
    resolved(&Source::new(name, text), directory, Some(directory), extra)
}

fn resolved(
    source: &Source,
    directory: &Path,
    within: Option<&Path>,
    extra: Option<&Path>,
) -> Result<Loaded, Vec<Diagnostic>> {
    let mut catalog = Arc::clone(builtin());
    let own = parse_toml(source)?;
    let own = own.get("study").and_then(|s| s.get_ref().as_table()).and_then(|s| s.get("catalog"));
    let own = own.and_then(|c| c.get_ref().as_str());
    if let (Some(root), Some(file)) = (within, own) {
        kept_within(root, "study.catalog", file, source.name()).map_err(|d| vec![d])?;
    }
    let own = own.map(|file| directory.join(file));
    for file in own.iter().map(|p| p.as_path()).chain(extra) {
        Arc::make_mut(&mut catalog).extend(load_catalog(file)?);
    }
    let mut loaded = parse(source, &catalog)?;
    if let Some(root) = within {
        let outside = named_files(&loaded)
            .into_iter()
            .filter_map(|(key, file)| kept_within(root, &key, file, source.name()).err());
        let outside: Vec<Diagnostic> = outside.collect();
        if !outside.is_empty() {
            return Err(outside);
        }
    }
    let mut errors = missing_files(&loaded, directory);
    for pool in &loaded.scenario.pool {
        let Some(file) = &pool.hf_config else { continue };
        let name = pool.name.as_str();
        let config = read_source(&directory.join(file)).and_then(|config| {
            from_hf(config.text()).map_err(|error| {
                Diagnostic::about("bad-config", config.name(), error.to_string())
                    .help(format!("pool `{name}` names this file as its `hf_config`"))
            })
        });
        match config {
            Ok(architecture) => {
                loaded.architectures.insert(name.to_owned(), architecture);
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(loaded) } else { Err(errors) }
}

/// Whether a file that a scenario names lies within a directory, links followed. Nothing is said of what lies outside, not even whether it is there.
fn kept_within(root: &Path, key: &str, file: &str, name: &str) -> Result<(), Diagnostic> {
    use std::path::Component;
    let mut depth = 0i32;
    let inside = Path::new(file).components().all(|part| {
        depth += match part {
            Component::Normal(_) => 1,
            Component::CurDir => 0,
            Component::ParentDir => -1,
            Component::RootDir | Component::Prefix(_) => i32::MIN / 2,
        };
        depth >= 0
    });
    let followed = || {
        let Ok(real) = root.join(file).canonicalize() else { return true };
        root.canonicalize().is_ok_and(|root| real.starts_with(root))
    };
    if inside && followed() {
        return Ok(());
    }
    let message = format!("`{key}` names a file outside the workspace, `{file}`");
    Err(Diagnostic::about("outside-workspace", name, message)
        .help("put the file into the workspace directory, and name it by its path within that"))
}

/// Files that a scenario names, each with its key.
fn named_files(loaded: &Loaded) -> Vec<(String, &String)> {
    let study = loaded.scenario.study.ledger.iter().map(|file| ("study.ledger".to_owned(), file));
    let pools = loaded.scenario.pool.iter().flat_map(|pool| {
        let key = |what: &str| format!("pool.{}.{what}", pool.name.as_str());
        let files = [("calibration", &pool.calibration), ("hf_config", &pool.hf_config)];
        files.map(|(what, file)| file.as_ref().map(|file| (key(what), file))).into_iter().flatten()
    });
    study.chain(pools).collect()
}

/// Files that a scenario names and that are not there.
fn missing_files(loaded: &Loaded, directory: &Path) -> Vec<Diagnostic> {
    let ledger = loaded.scenario.study.ledger.iter().map(|file| ("study.ledger".to_owned(), file));
    let pools = loaded.scenario.pool.iter().filter_map(|pool| {
        Some((format!("pool.{}.calibration", pool.name.as_str()), pool.calibration.as_ref()?))
    });
    ledger
        .chain(pools)
        .filter(|(_, file)| !directory.join(file).exists())
        .map(|(key, file)| {
            Diagnostic::about(
                "unreadable-file",
                directory.join(file).display().to_string(),
                "is not there",
            )
            .help(format!("`{key}` names it; paths are relative to the scenario"))
        })
        .collect()
}

/// The model that a `config.json` describes, named after its directory or file.
pub fn model_from_hf_file(path: &Path) -> Result<Model, Diagnostic> {
    let config = read_source(path)?;
    let architecture = from_hf(config.text())
        .map_err(|error| Diagnostic::about("bad-config", config.name(), error.to_string()))?;
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match path.parent().and_then(Path::file_name) {
        Some(directory) if stem == "config" => directory.to_string_lossy().into_owned(),
        _ => stem,
    };
    let fact = Fact { source: config.name().to_owned(), as_of: "as given".to_owned(), note: None };
    Ok(Model {
        title: name.clone(),
        name,
        aliases: Vec::new(),
        architecture,
        parameters_published: None,
        parameters_source: None,
        parameters_note: None,
        verified: true,
        fact,
    })
}

/// Reads a scenario from a text.
pub fn parse(source: &Source, catalog: &Arc<Catalog>) -> Result<Loaded, Vec<Diagnostic>> {
    let document = parse_toml(source)?;
    if document.is_empty() {
        let diagnostic =
            Diagnostic::about("empty-scenario", source.name(), "the file says nothing")
                .help("`plimsoll init DIR` writes a commented scenario to start from");
        return Err(vec![diagnostic]);
    }
    let mut reader = Reader::new(source.clone(), catalog);
    reader.names = names(&document);
    let has_demand = document
        .get("class")
        .is_some_and(|c| c.get_ref().as_array().is_none_or(|list| !list.is_empty()));
    let value = DeValue::Table(document);
    let node = Node { value: &value, span: 0..source.text().len(), key: "scenario".to_owned() };
    let scenario = Scenario::read(&node, &mut reader);
    if !has_demand {
        let diagnostic = Diagnostic::about("missing-key", source.name(), "no `[[class]]` says what is asked of the fleet")
            .help("add `[[class]]` with `name = \"chat\"`, `profile = \"chat\"` and `rate = \"40 req/s\"`");
        reader.report(diagnostic);
    }
    match scenario {
        Some(scenario) if reader.diagnostics.is_empty() => {
            let mut entries = reader.entries;
            resolve::resolve(&scenario, catalog, &mut entries);
            Ok(Loaded {
                scenario,
                entries,
                catalog: Arc::clone(catalog),
                architectures: BTreeMap::new(),
                source: source.clone(),
                outlook: None,
            })
        }
        _ => Err(sorted(reader.diagnostics)),
    }
}

/// Reads a text file, refusing what cannot be one.
pub(crate) fn read_source(path: &Path) -> Result<Source, Diagnostic> {
    let name = path.display().to_string();
    let about = |code, message: String| Diagnostic::about(code, name.clone(), message);
    let unreadable = |e: std::io::Error| about("unreadable-file", format!("cannot be read: {e}"));
    if path.is_dir() {
        return Err(about("unreadable-file", "is a directory, not a file".to_owned()));
    }
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.by_ref().take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(about(
            "file-too-large",
            format!("holds more than the {} MiB that are read", FILE_MAX >> 20),
        )
        .help("requests belong in a ledger: `study.ledger = \"…\"`"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid].iter().filter(|b| **b == b'\n').count() + 1;
            Err(about(
                "not-text",
                format!("is not UTF-8 text: byte {valid} on line {line} cannot be read"),
            )
            .help("save the file as UTF-8"))
        }
    }
}

/// The document, or every syntax error in it.
pub(crate) fn parse_toml(source: &Source) -> Result<DeTable<'_>, Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(source.text());
    if errors.is_empty() {
        return Ok(document.into_inner());
    }
    // One broken line makes the parser stumble on the next ones: the first few say it all.
    let diagnostics = errors
        .iter()
        .take(10)
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            Diagnostic::at("syntax", source, span, format!("this is not TOML: {}", error.message()))
                .help("text needs quotes, tables look like `[study]`, lists of tables like `[[class]]`")
        })
        .collect();
    Err(sorted(diagnostics))
}

/// The names that tables give themselves, whatever else is wrong with them.
fn names(document: &DeTable<'_>) -> Names {
    let mut names = Names::new();
    for kind in ["class", "pool", "provider", "tool", "region"] {
        let tables = document.get(kind).and_then(|v| v.get_ref().as_array());
        let found = tables.into_iter().flat_map(|list| list.iter()).filter_map(|item| {
            item.get_ref().as_table()?.get("name")?.get_ref().as_str().map(str::to_owned)
        });
        names.insert(kind, found.collect());
    }
    names
}

/// In the order of the file.
pub(crate) fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|d| d.at.as_ref().map_or(usize::MAX, |(_, span)| span.start));
    diagnostics
}

#[cfg(test)]
mod tests;
