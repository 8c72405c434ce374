//! Logs, on this disk and elsewhere.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::IngestError;
use crate::unpack::{self, Content};

/// Finds the logs that a URL names.
pub type FindLogs = fn(&str) -> Result<Vec<RemoteLog>, IngestError>;

/// A log that is not on this disk.
pub struct RemoteLog {
    /// Its URL.
    pub name: String,
    /// Whether the user did not name it: then it may be something other than a log.
    pub searched: bool,
    /// Copies it to this disk.
    pub copy: Box<dyn Fn() -> io::Result<LocalCopy>>,
}

/// A copy on this disk, gone with this.
#[derive(Debug)]
pub struct LocalCopy(PathBuf);

impl LocalCopy {
    /// A copy without anything in it, and the file to write it to.
    pub fn new() -> io::Result<(Self, File)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-{}-{number}.object", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path)?;
        Ok((Self(path), file))
    }
}

impl Drop for LocalCopy {
    fn drop(&mut self) {
        // Whatever cannot be removed is in the system's own place for such things.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A log, wherever it is.
pub(crate) enum LogFile {
    /// On this disk, or standard input.
    Local {
        path: PathBuf,
        /// Whether it was found in a directory, and not named.
        searched: bool,
    },
    Remote(RemoteLog),
}

impl LogFile {
    /// How large it is, where that is known before it is read.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Local { path, .. } => Some(path.metadata().ok()?.len()),
            Self::Remote(_) => None,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Local { path, .. } => path.display().to_string(),
            Self::Remote(log) => log.name.clone(),
        }
    }

    /// Whether the user did not name it: then it may be something other than a log.
    pub(crate) fn searched(&self) -> bool {
        match self {
            Self::Local { searched, .. } => *searched,
            Self::Remote(log) => log.searched,
        }
    }

    /// Hands on what is in it, once or for each member of an archive.
    pub(crate) fn open(
        &self,
        each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        match self {
            Self::Local { path, .. } => unpack::open(path, each),
            Self::Remote(log) => {
                let copy = (log.copy)().map_err(|source| IngestError::Unreadable {
                    name: log.name.clone(),
                    line: 0,
                    source,
                })?;
                unpack::open_as(&copy.0, &log.name, each)
            }
        }
    }
}

/// The argument as a URL, where it is one of a store that could be known.
pub(crate) fn url_of(argument: &Path) -> Option<&str> {
    let text = argument.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    ["s3", "gs", "az", "http", "https", "file"].contains(&scheme).then_some(text)
}
