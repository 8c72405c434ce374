//! The studies in a web page and an HTTP API.
//!
//! **Owns** routes, jobs and their progress, limits, and the page. **Refuses** logic that the command line lacks: whatever is asked goes to a [`Desk`], which the binary
//! implements with what its commands do.
//!
//! Whoever plans capacity for others should keep to a load line, too. Everything that arrives is therefore bounded ([`Limits`]): what does not fit into a short line is turned
//! away at once with 429 and a `Retry-After`, work that nobody waits for is stopped, and a mistake of ours costs one answer and not the server.
//!
//! [`app`] is a router that needs no socket:
//!
//! ```
//! # use plimsoll_web::{Charts, Config, ConfigError};
//! // Loopback needs no token; every other address does.
//! assert!(Config::new(([127, 0, 0, 1], 7070).into(), None, Charts::default()).is_ok());
//! let refused = Config::new(([0, 0, 0, 0], 7070).into(), None, Charts::default()).unwrap_err();
//! assert_eq!(refused, ConfigError::TokenMissing { address: ([0, 0, 0, 0], 7070).into() });
//! ```

mod api;
mod app;
mod ask;
mod assets;
mod board;
mod config;
mod desk;
mod failure;
mod guard;
mod jobs;
mod levers;
mod line;
mod metrics;
mod routes;
pub mod scaler;
mod serve;
mod upload;

pub use app::{app, openapi};
pub use board::{Board, board_app, document, serve_board};
pub use config::{Charts, Config, ConfigError, Limits, TOKEN_MIN};
pub use desk::{Asked, Basis, Desk, Levers, Outcome, Problem, Refused, ScenarioName, Study, Work};
pub use serve::serve;
