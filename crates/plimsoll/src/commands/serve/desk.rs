//! The desk behind the page: every question is a command, asked without a shell.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser as _;
use plimsoll_report::{review_html, review_json, what_if_chart, what_if_json};
use plimsoll_study::{Review, WhatIfBase, WhatIfLevers};
use plimsoll_web::{
    Asked, Basis, Desk, Levers, Outcome, Problem, Refused, ScenarioName, Study, Work,
};
use serde_json::Value;

use crate::args::{Cli, Global, Typed};
use crate::commands::plan::fingerprint;
use crate::commands::{answer, planned, review, stress, what_if};
use crate::failure::Failure;

/// Scenarios that come with the program.
const EXAMPLES: [(&str, &str); 10] = [
    ("launch-week.toml", include_str!("../../../../../examples/launch-week.toml")),
    ("support-bot.toml", include_str!("../../../../../examples/support-bot.toml")),
    ("two-regions.toml", include_str!("../../../../../examples/two-regions.toml")),
    ("long-context.toml", include_str!("../../../../../examples/long-context.toml")),
    ("measured-lines.toml", include_str!("../../../../../examples/measured-lines.toml")),
    ("disaggregated.toml", include_str!("../../../../../examples/disaggregated.toml")),
    ("provider-limits.toml", include_str!("../../../../../examples/provider-limits.toml")),
    ("bursty-ceiling.toml", include_str!("../../../../../examples/bursty-ceiling.toml")),
    ("metastable.toml", include_str!("../../../../../examples/metastable.toml")),
    ("qwen3-32b-question.toml", include_str!("../../../../../examples/qwen3-32b-question.toml")),
];
/// Scenarios whose what-ifs are remembered: those of a few people at work.
const BASES: usize = 16;
/// Reviews that are remembered: who has read one downloads it next.
const REVIEWS: usize = 4;
/// The largest scenario of the workspace that is offered.
const SCENARIO_MAX: u64 = 1 << 20;

/// Where no file has a name of its own: no path has this in it.
const NO_FILE: (&str, &str) = ("\0", "");

/// Answers with what the commands do.
pub(super) struct Commands {
    workspace: PathBuf,
    global: Global,
    bases: Kept<WhatIfBase>,
    reviews: Kept<Review>,
}

impl Commands {
    pub(super) fn new(workspace: PathBuf, global: &Global) -> Self {
        Self {
            workspace,
            global: Global { json: true, quiet: true, ..global.clone() },
            bases: Kept::new(BASES),
            reviews: Kept::new(REVIEWS),
        }
    }

    /// What a shell would have set.
    fn global(&self, asked: &Asked, work: &Work) -> Global {
        let typed = Typed {
            name: asked.name.clone(),
            text: asked.text.clone(),
            workspace: self.workspace.clone(),
            work: work.clone(),
        };
        Global { typed: Some(typed), ..self.global.clone() }
    }

    /// Where a scenario would be, were it a file: what it names is looked for beside it. What it is called is whatever somebody sent, and leads nowhere.
    fn file(&self) -> PathBuf {
        self.workspace.join("scenario.toml")
    }

    /// What somebody is told of a file: not where it lies on this machine.
    fn told(&self, text: &str, path: &str, name: &str) -> String {
        let workspace = format!("{}{}", self.workspace.display(), std::path::MAIN_SEPARATOR);
        text.replace(path, name).replace(&workspace, "")
    }

    /// Why there is no answer, with the names that somebody gave.
    fn refused(&self, failure: Failure, (path, name): (&str, &str), work: &Work) -> Refused {
        if !work.go_on() {
            return Refused::Stopped;
        }
        let problems = failure.diagnostics();
        let told = |text: &str| self.told(text, path, name);
        let problems = problems.iter().map(problem).map(|own| Problem {
            file: told(&own.file),
            message: told(&own.message),
            help: own.help.as_deref().map(told),
            ..own
        });
        Refused::Input(problems.collect())
    }

    /// What all what-ifs of a scenario have in common. The first to ask looks; who asks meanwhile looks, too, and finds the same.
    fn base(&self, asked: &Asked, work: &Work) -> Result<Arc<WhatIfBase>, Failure> {
        let key = key(asked);
        if let Some(base) = self.bases.get(&key) {
            return Ok(base);
        }
        let (global, file) = (self.global(asked, work), self.file());
        let loaded = planned(&file, &global)?;
        let base = Arc::new(what_if::base(&loaded, &file, &global, &|| work.go_on())?);
        if work.go_on() {
            self.bases.put(key, Arc::clone(&base));
        }
        Ok(base)
    }

    fn reviewed(&self, asked: &Asked, work: &Work) -> Result<Arc<Review>, Failure> {
        let key = key(asked);
        if let Some(review) = self.reviews.get(&key) {
            return Ok(review);
        }
        let (global, file) = (self.global(asked, work), self.file());
        let loaded = planned(&file, &global)?;
        let made = review::made(&loaded, &file, &global, &|done| work.at(done), &|| work.go_on())?;
        let made = Arc::new(made);
        if work.go_on() {
            self.reviews.put(key, Arc::clone(&made));
        }
        Ok(made)
    }

    /// A command about a file, as a shell would type it; the file is called `name`.
    fn command(
        &self,
        asked: Option<&Asked>,
        words: &[&str],
        (path, name): (&Path, &str),
        work: &Work,
    ) -> Outcome {
        // Where a path is no text, nothing can be typed.
        let path = path.to_str().ok_or_else(|| {
            let message = "lies where no command can name it: its path is no text".to_owned();
            let (code, file) = ("unreadable-file".to_owned(), name.to_owned());
            Refused::Input(vec![Problem {
                code,
                message,
                file,
                line: None,
                column: None,
                help: None,
            }])
        })?;
        let typed = [&["plimsoll", "--json", "--quiet"], words, &["--", path]].concat();
        let refused = |failure: Failure| self.refused(failure, (path, name), work);
        let mut cli =
            Cli::try_parse_from(typed).map_err(|error| refused(Failure::usage(&error)))?;
        cli.global = match asked {
            Some(asked) => self.global(asked, work),
            None => self.global.clone(),
        };
        let said = answer(&cli, &mut std::io::sink()).map_err(refused)?;
        let mut document = document(&said.text, work)?;
        for key in ["file", "source"] {
            if let Some(said) = document.get_mut(key).filter(|said| *said == path) {
                *said = name.into();
            }
        }
        Ok(document)
    }
}

/// What a command printed.
fn document(text: &str, work: &Work) -> Outcome {
    if !work.go_on() {
        return Err(Refused::Stopped);
    }
    // Whoever prints something else with `--json` has a bug, which the server catches and tells.
    Ok(serde_json::from_str(text)
        .unwrap_or_else(|error| unreachable!("a command printed no document: {error}")))
}

fn key(asked: &Asked) -> String {
    fingerprint(&format!("{}\n{}", asked.name, asked.text))
}

fn problem(own: &plimsoll_scenario::Diagnostic) -> Problem {
    let (line, column) = own.position().map_or((None, None), |(line, column)| {
        (u64::try_from(line).ok(), u64::try_from(column).ok())
    });
    Problem {
        code: own.code.to_owned(),
        message: own.message.clone(),
        file: own.file().unwrap_or_default().to_owned(),
        line,
        column,
        help: own.help.clone(),
    }
}

fn moved(levers: &Levers) -> WhatIfLevers {
    WhatIfLevers {
        demand: levers.demand,
        prompt: levers.prompt,
        output: levers.output,
        cache_hit: levers.cache_hit,
        replicas: levers.replicas,
        startup: levers.startup,
        lost: levers.lost,
    }
}

impl Desk for Commands {
    fn version(&self) -> &str {
        crate::VERSION
    }

    fn scenarios(&self) -> Vec<ScenarioName> {
        let examples = EXAMPLES.iter().map(|(name, text)| ScenarioName {
            name: (*name).to_owned(),
            title: title(text).unwrap_or_else(|| (*name).to_owned()),
            example: true,
        });
        let mut own: Vec<ScenarioName> = std::fs::read_dir(&self.workspace)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let text = self.of_workspace(&name)?;
                // Other files end in `.toml`, too.
                text.contains("[[class]]").then(|| ScenarioName {
                    title: title(&text).unwrap_or_else(|| name.clone()),
                    name,
                    example: false,
                })
            })
            .collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        let shadowed = |example: &ScenarioName| own.iter().all(|other| other.name != example.name);
        examples.filter(shadowed).chain(own.iter().cloned()).collect()
    }

    fn scenario(&self, name: &str) -> Option<String> {
        let example = || EXAMPLES.iter().find(|(own, _)| *own == name);
        self.of_workspace(name).or_else(|| example().map(|(_, text)| (*text).to_owned()))
    }

    fn check(&self, scenario: &Asked) -> Vec<Problem> {
        let global = self.global(scenario, &Work::default());
        match crate::commands::scenario(&self.file(), &global) {
            Ok(_) => Vec::new(),
            Err(failure) => match self.refused(failure, NO_FILE, &Work::default()) {
                Refused::Input(problems) => problems,
                Refused::Stopped => Vec::new(),
            },
        }
    }

    fn what_if(&self, scenario: &Asked, levers: &Levers, basis: Basis, work: &Work) -> Outcome {
        let refused = |failure: Failure| self.refused(failure, NO_FILE, work);
        let mut base = self.base(scenario, work).map_err(refused)?;
        let go_on = || work.go_on();
        let failed =
            |error: plimsoll_study::StudyError| refused(stress::no_answer(&scenario.name, &error));
        let levers = moved(levers);
        let result = match basis {
            Basis::Approximate => base.approximate(&levers, &go_on).map_err(failed)?,
            Basis::Simulated => {
                let mut unmoved = None;
                if !base.is_anchored() {
                    // From now on what is said at once is held against this.
                    let own = Arc::make_mut(&mut base);
                    unmoved = Some(own.anchor(&go_on).map_err(failed)?);
                    if work.go_on() {
                        self.bases.put(key(scenario), Arc::clone(&base));
                    }
                }
                match unmoved.filter(|_| levers == WhatIfLevers::NONE) {
                    Some(unmoved) => unmoved,
                    None => base.simulated(&levers, &go_on).map_err(failed)?,
                }
            }
        };
        if !work.go_on() {
            return Err(Refused::Stopped);
        }
        let mut document = what_if_json(&result, crate::VERSION);
        if let Some(document) = document.as_object_mut() {
            document.insert("chart".to_owned(), what_if_chart(&result).json());
        }
        Ok(document)
    }

    fn study(&self, kind: Study, scenario: &Asked, work: &Work) -> Outcome {
        let word = match kind {
            Study::Review => {
                let refused = |failure: Failure| self.refused(failure, NO_FILE, work);
                let made = self.reviewed(scenario, work).map_err(refused)?;
                return match work.go_on() {
                    true => Ok(review_json(&made, crate::VERSION)),
                    false => Err(Refused::Stopped),
                };
            }
            Study::Fit => "fit",
            Study::Curve => "curve",
            Study::Plan => "plan",
            Study::Stress => "stress",
            Study::Cost => "cost",
        };
        let file = self.file();
        self.command(Some(scenario), &[word], (&file, &scenario.name), work)
    }

    fn review_html(&self, scenario: &Asked, work: &Work) -> Result<String, Refused> {
        let refused = |failure: Failure| self.refused(failure, NO_FILE, work);
        let made = self.reviewed(scenario, work).map_err(refused)?;
        match work.go_on() {
            true => Ok(review_html(&made, crate::VERSION)),
            false => Err(Refused::Stopped),
        }
    }

    fn profile(&self, log: &Path, name: &str, work: &Work) -> Outcome {
        let mut document = self.command(None, &["profile", "--charts"], (log, name), work)?;
        document["source"] = Value::String(name.to_owned());
        Ok(document)
    }
}

impl Commands {
    /// A scenario of the workspace, by its plain name.
    fn of_workspace(&self, name: &str) -> Option<String> {
        let plain = Path::new(name).components().count() == 1 && name.ends_with(".toml");
        let path = self.workspace.join(name);
        let real = path.canonicalize().ok().filter(|_| plain)?;
        let small = std::fs::metadata(&real).ok()?;
        let kept =
            real.starts_with(&self.workspace) && small.is_file() && small.len() <= SCENARIO_MAX;
        kept.then(|| std::fs::read_to_string(real).ok()).flatten()
    }
}

/// The study's name, as far as it is written plainly.
fn title(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.trim_start().starts_with("name = "))?;
    let title = line.split_once('=')?.1.trim().trim_matches('"');
    Some(title.to_owned())
}

/// The latest of what was computed, by what it was computed from.
struct Kept<T> {
    most: usize,
    all: Mutex<VecDeque<(String, Arc<T>)>>,
}

impl<T> Kept<T> {
    fn new(most: usize) -> Self {
        Self { most, all: Mutex::new(VecDeque::new()) }
    }

    fn get(&self, key: &str) -> Option<Arc<T>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(own, _)| own == key).map(|(_, value)| Arc::clone(value))
    }

    fn put(&self, key: String, value: Arc<T>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(own, _)| *own != key);
        all.push_back((key, value));
        if all.len() > self.most {
            all.pop_front();
        }
    }
}
