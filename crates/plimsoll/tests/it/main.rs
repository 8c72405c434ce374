//! The program, as a shell and a browser use it.

mod browser;
mod calibrate;
mod cli;
mod cluster;
mod common;
mod cost;
mod curve;
mod forecast;
mod ledger;
mod load_line;
mod manifests;
mod oracle;
mod plan;
mod plan_holds;
mod plan_refuses;
mod profile;
#[cfg(all(feature = "sql", feature = "cluster", feature = "object-store"))]
mod query;
mod random_plans;
mod reference_stats;
mod references;
mod replay;
mod review;
mod review_pages;
mod same_answer;
mod serve;
mod serve_browser;
mod serve_load;
mod server;
mod simulate;
mod stress;
mod what_if;
