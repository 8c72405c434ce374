//! What may be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::civil::Date;

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
#[derive(Args, Debug)]
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
}

/// What may be asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The capacity review of a scenario: the main job
    Review {
        /// The scenario
        file: PathBuf,
    },
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
    },
    /// Hold our predictions against what real engines logged
    Validate {
        /// Cases in the format `plimsoll-kv-cases/1`
        file: PathBuf,
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
