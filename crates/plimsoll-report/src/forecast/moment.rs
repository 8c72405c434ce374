//! A time as documents write it: of the world, or from the start of a log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A time: a moment of the world, or seconds from the start of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Moment {
    /// Such as `2026-11-15T09:00:00Z`.
    World(String),
    /// Seconds from the start of the log.
    Log(i64),
}

/// Seconds from 1970, or from the start of a log, as a document writes them.
pub(crate) fn moment(seconds: i64, absolute: bool) -> Moment {
    match jiff::Timestamp::from_second(seconds) {
        Ok(at) if absolute => Moment::World(at.to_string()),
        _ => Moment::Log(seconds),
    }
}

impl Moment {
    /// Seconds from 1970, or from the start of a log.
    pub fn at(seconds: i64, absolute: bool) -> Self {
        moment(seconds, absolute)
    }

    /// The way back; or what is wrong with it.
    pub(crate) fn seconds(&self, absolute: bool) -> Result<i64, String> {
        match self {
            Self::World(text) if absolute => {
                let at: jiff::Timestamp =
                    text.parse().map_err(|_| format!("has `{text}`, which is no moment"))?;
                Ok(at.as_second())
            }
            Self::Log(seconds) if !absolute => Ok(*seconds),
            other => Err(format!("has the time {other}, which is not of its clock")),
        }
    }

    /// As a table shows it: day and time, without the year where it is of the world.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::World(text) => text.parse::<jiff::Timestamp>().map_or_else(
                |_| text.clone(),
                |at| at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a %m-%d %H:%M").to_string(),
            ),
            Self::Log(seconds) => {
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                format!("{hours}:{minutes:02} h")
            }
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World(text) => f.write_str(text),
            Self::Log(seconds) => write!(f, "{seconds} s"),
        }
    }
}
