//! Where the server listens, who may ask, and how much at once.

use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

/// A shorter token could be guessed by trying.
pub const TOKEN_MIN: usize = 16;

/// Where the server listens and who may ask.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    pub(crate) charts: Charts,
    pub(crate) limits: Limits,
}

/// What charts are shown with, as whoever draws them has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charts {
    /// Their style.
    pub style: &'static str,
    /// The script that shows values where a chart is pointed at.
    pub script: &'static str,
}

/// Why a server would not be safe to start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Everybody who reaches the address could use it.
    #[error("{address} can be reached from other machines, so a token is needed")]
    TokenMissing {
        /// Where it would listen.
        address: SocketAddr,
    },
    /// It could be guessed.
    #[error("the token has {characters} characters, which can be guessed; it needs {TOKEN_MIN}")]
    TokenShort {
        /// How many it has.
        characters: usize,
    },
    /// It would have to be quoted in an address or a cookie.
    #[error("the token has {character:?}; use letters, digits, `-`, `.`, `_` and `~`")]
    TokenCharacter {
        /// The first that does not do.
        character: char,
    },
}

impl Config {
    /// To listen at `address`, which is the address that was bound, so that its port is the one browsers name. `charts` is what charts are shown with.
    ///
    /// A token is needed where other machines reach the address, and asked for wherever there is one.
    pub fn new(
        address: SocketAddr,
        token: Option<String>,
        charts: Charts,
    ) -> Result<Self, ConfigError> {
        match &token {
            None if !address.ip().is_loopback() => {
                return Err(ConfigError::TokenMissing { address });
            }
            None => {}
            Some(token) => {
                let plain = |c: &char| c.is_ascii_alphanumeric() || "-._~".contains(*c);
                if let Some(character) = token.chars().find(|c| !plain(c)) {
                    return Err(ConfigError::TokenCharacter { character });
                }
                if token.len() < TOKEN_MIN {
                    return Err(ConfigError::TokenShort { characters: token.len() });
                }
            }
        }
        Ok(Self { address, token, charts, limits: Limits::default() })
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How much at once.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// How much at once, how large and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A question with its scenario: the largest example has 10 kB, and a hundred classes fit into 100 kB.
    pub body_bytes: usize,
    /// Questions that are being read at once: with their size, this bounds the memory that clients can fill before anybody has looked at what they sent.
    pub bodies: usize,
    /// A log to profile. It goes to a file as it comes, so this bounds disk and not memory.
    pub upload_bytes: u64,
    /// Uploaded logs that are on disk at once, those of waiting jobs included.
    pub uploads: usize,
    /// For the body of a question to arrive.
    pub body_time: Duration,
    /// For a log to arrive.
    pub upload_time: Duration,
    /// What-ifs that are computed at once: one a core, because more would only slow each other down.
    pub what_ifs: usize,
    /// What-ifs that wait: two for each that is computed, those of a page with two scenarios. Under load everybody who is answered has stood in this line, so it is as long as
    /// a second's work: longer waits are worse than a prompt no.
    pub what_ifs_waiting: usize,
    /// For a what-if, waiting included: people have moved on by then.
    pub what_if_time: Duration,
    /// Jobs that are computed at once: studies use several cores themselves.
    pub jobs: usize,
    /// Jobs that wait.
    pub jobs_waiting: usize,
    /// For a job, once it runs. The slowest example takes a few seconds.
    pub job_time: Duration,
    /// Finished jobs that are kept for their results.
    pub kept: usize,
    /// How long they are kept: enough to come back from a meeting's coffee.
    pub kept_time: Duration,
    /// Their results together; a review with its charts has about 0.3 MB.
    pub kept_bytes: usize,
    /// Open connections. A browser holds six.
    pub connections: usize,
    /// How long a connection may stay open while next to nothing moves on it. Longer than a what-if takes, or its client would be cut off.
    pub idle_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            body_bytes: 1 << 20,
            bodies: 64,
            upload_bytes: 256 << 20,
            uploads: 4,
            body_time: Duration::from_secs(10),
            upload_time: Duration::from_secs(600),
            what_ifs: cores,
            what_ifs_waiting: 2 * cores,
            what_if_time: Duration::from_secs(10),
            jobs: 2,
            jobs_waiting: 8,
            job_time: Duration::from_secs(120),
            kept: 32,
            kept_time: Duration::from_secs(600),
            kept_bytes: 64 << 20,
            connections: 512,
            idle_time: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Charts, Config, ConfigError};

    #[test]
    fn an_address_that_others_reach_needs_a_token_that_nobody_guesses() {
        let check = |address: &str, token: Option<&str>| {
            let token = token.map(str::to_owned);
            Config::new(address.parse().unwrap(), token, Charts::default()).map(|_| ()).err()
        };
        let open = "192.0.2.1:80".parse().unwrap();
        assert_eq!(check("127.0.0.1:80", None), None);
        assert_eq!(check("[::1]:80", None), None);
        assert_eq!(check("192.0.2.1:80", None), Some(ConfigError::TokenMissing { address: open }));
        assert_eq!(check("192.0.2.1:80", Some("0123456789abcdef")), None);
        assert_eq!(
            check("192.0.2.1:80", Some("0123456789abcde")),
            Some(ConfigError::TokenShort { characters: 15 })
        );
        assert_eq!(
            check("127.0.0.1:80", Some("0123456789abcde;")),
            Some(ConfigError::TokenCharacter { character: ';' })
        );
        let all_of_them = check("[::]:80", None);
        assert!(matches!(all_of_them, Some(ConfigError::TokenMissing { .. })), "{all_of_them:?}");
    }
}
