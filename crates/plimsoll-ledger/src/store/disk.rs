//! The few things that are done to a disk, each of which can fail, or be the last thing that happens.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::LedgerError;

/// Something that is done to a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    MakeDirectory(PathBuf),
    Create(PathBuf),
    Write(PathBuf),
    Sync(PathBuf),
    SyncDirectory(PathBuf),
    Rename(PathBuf),
    Remove(PathBuf),
}

type Watch = dyn Fn(&Step) -> io::Result<()> + Send + Sync;

/// A disk. A test may look over its shoulder, and let any step fail.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    watch: Option<Arc<Watch>>,
    /// Whether what is written need not last.
    fleeting: bool,
}

impl Disk {
    #[cfg(test)]
    pub(crate) fn watched(watch: impl Fn(&Step) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { watch: Some(Arc::new(watch)), fleeting: false }
    }

    /// A disk for what is thrown away at once: nothing is synced.
    pub(crate) fn fleeting() -> Self {
        Self { watch: None, fleeting: true }
    }

    fn step(&self, step: impl FnOnce() -> Step) -> io::Result<()> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch(&step()))
    }

    /// Makes a directory and those above it, where they are not there, so that they last.
    pub(crate) fn make_directory(&self, path: &Path) -> Result<(), LedgerError> {
        if path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.make_directory(parent)?;
        }
        self.step(|| Step::MakeDirectory(path.to_owned()))
            .and_then(|()| match std::fs::create_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            })
            .map_err(failed(path, "made"))?;
        self.sync_directory_of(path)
    }

    /// Makes a file that must not be there yet.
    pub(crate) fn create(&self, path: &Path) -> Result<Page, LedgerError> {
        let file =
            self.step(|| Step::Create(path.to_owned())).and_then(|()| File::create_new(path));
        let file = file.map_err(failed(path, "created"))?;
        Ok(Page { disk: self.clone(), path: path.to_owned(), file })
    }

    /// Writes a whole file, and sees to it that it lasts.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), LedgerError> {
        let mut page = self.create(path)?;
        page.write_all(bytes).map_err(failed(path, "written"))?;
        page.sync()
    }

    /// Sees to it that the names in the directory of a file last.
    pub(crate) fn sync_directory_of(&self, path: &Path) -> Result<(), LedgerError> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if self.fleeting {
            return Ok(());
        }
        self.step(|| Step::SyncDirectory(directory.to_owned()))
            .and_then(|()| File::open(directory)?.sync_all())
            .map_err(failed(directory, "synced"))
    }

    /// Gives a file another's name, and sees to it that it lasts.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), LedgerError> {
        self.step(|| Step::Rename(to.to_owned()))
            .and_then(|()| std::fs::rename(from, to))
            .map_err(failed(to, "put in its place"))?;
        self.sync_directory_of(to)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), LedgerError> {
        self.step(|| Step::Remove(path.to_owned()))
            .and_then(|()| std::fs::remove_file(path))
            .map_err(failed(path, "removed"))
    }
}

/// A file that is being written.
pub(crate) struct Page {
    disk: Disk,
    path: PathBuf,
    file: File,
}

impl Page {
    /// Sees to it that what was written lasts.
    pub(crate) fn sync(&mut self) -> Result<(), LedgerError> {
        if self.disk.fleeting {
            return Ok(());
        }
        self.disk
            .step(|| Step::Sync(self.path.clone()))
            .and_then(|()| self.file.sync_all())
            .map_err(failed(&self.path, "synced"))
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.step(|| Step::Write(self.path.clone()))?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn failed<'a>(path: &'a Path, doing: &'static str) -> impl FnOnce(io::Error) -> LedgerError + 'a {
    move |source| LedgerError::Disk { path: path.to_owned(), doing, source }
}
