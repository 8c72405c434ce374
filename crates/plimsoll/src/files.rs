//! Files that are there whole or not at all.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use plimsoll_scenario::Diagnostic;

use crate::failure::Failure;

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("cannot be read: {error}");
    Failure::one(Diagnostic::about("unreadable-file", path.display().to_string(), message))
}

/// Reads a text, compressed with gzip or not.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    unpack(path, fs::read(path).map_err(|e| unreadable(path, &e))?)
}

/// Bytes as text, unpacked where they are packed: their first two say so, not the file's name.
pub(crate) fn unpack(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(bytes).map_err(|e| unreadable(path, &e.utf8_error()));
    }
    let mut text = String::new();
    // A gigabyte of text is no benchmark result, but may be a bomb.
    let mut unpacked = flate2::read::MultiGzDecoder::new(bytes.as_slice()).take(1 << 30);
    unpacked.read_to_string(&mut text).map_err(|e| unreadable(path, &e))?;
    Ok(text)
}

/// Writes beside the target and renames, so that an interrupt leaves no half of it.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        // The failure that is reported is the first one.
        let _ = fs::remove_file(&beside);
        unwritable(path, &error)
    })
}

/// A file that grows beside its target and takes its place when it is finished; an interrupt leaves nothing.
pub(crate) struct Growing {
    file: std::io::BufWriter<fs::File>,
    beside: std::path::PathBuf,
    path: std::path::PathBuf,
}

impl Growing {
    /// Begins it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        // A device, a pipe or a directory must not be replaced.
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(unwritable(path, &"it is there and is no file"));
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let file = fs::File::create(&beside).map_err(|e| unwritable(path, &e))?;
        Ok(Self { file: std::io::BufWriter::new(file), beside, path: path.to_owned() })
    }

    /// It is whole.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.file
            .flush()
            .and_then(|()| fs::rename(&self.beside, &self.path))
            .map_err(|e| unwritable(&self.path, &e))
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        // Where it was finished there is nothing left beside it.
        let _ = fs::remove_file(&self.beside);
    }
}

impl std::io::Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// What could not be written, and why.
pub(crate) fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("cannot be written: {error}");
    Failure::one(Diagnostic::about("unwritable-file", path.display().to_string(), message))
}

/// A directory, created where it is not there.
pub(crate) fn directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| {
        Failure::one(Diagnostic::about(
            "unwritable-file",
            path.display().to_string(),
            format!("cannot be created: {error}"),
        ))
    })
}
