//! Files as users have them: plain, packed, in archives, in directories, behind a pattern, or on standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Archives within archives go no deeper than this.
const DEPTH_MAX: usize = 4;
/// A zstd window of at most 2 GiB, which `--long=31` needs.
const WINDOW_LOG_MAX: u32 = 31;

/// What a file holds, once unpacked.
pub(crate) enum Content<'a> {
    /// Text, to be read as it comes.
    Text(Box<dyn BufRead + 'a>),
    /// Parquet, which is read from its end.
    Parquet(Columnar),
}

/// A Parquet file, on disk or in memory.
pub(crate) enum Columnar {
    File(File),
    Memory(Bytes),
}

/// The files that an argument names, in a fixed order. `-` is standard input.
///
/// A directory stands for everything in it; what is hidden is passed over.
pub(crate) fn files_of(argument: &Path) -> io::Result<Vec<PathBuf>> {
    let named = argument.to_str().unwrap_or_default();
    if named == "-" {
        return Ok(vec![argument.to_owned()]);
    }
    if argument.is_dir() {
        let mut found = Vec::new();
        walk(argument, &mut found)?;
        return Ok(found);
    }
    if argument.exists() || !named.contains(['*', '?', '[']) {
        return Ok(vec![argument.to_owned()]);
    }
    let invalid = |error: glob::PatternError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut found = Vec::new();
    for path in glob::glob(named).map_err(invalid)? {
        let path = path.map_err(io::Error::from)?;
        if path.is_dir() {
            walk(&path, &mut found)?;
        } else {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no file matches the pattern"));
    }
    Ok(found)
}

/// Files under a directory, in a fixed order. Links to directories, what is hidden, what is no file, and ledgers within it are
/// passed over.
fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    for path in entries {
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        if std::fs::symlink_metadata(&path)?.is_dir() {
            if !crate::Ledger::is_at(&path) {
                walk(&path, found)?;
            }
        } else if path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Opens a file and hands on what is in it: once, or once for each member of an archive. The first bytes say how it is packed,
/// not its name.
pub(crate) fn open<E: From<Unpacking>>(
    path: &Path,
    each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let name = path.display().to_string();
    if name == "-" {
        return stream("-", Box::new(io::stdin().lock()), 0, each);
    }
    open_as(path, &name, each)
}

/// The same of a file that goes by another name.
pub(crate) fn open_as<E: From<Unpacking>>(
    path: &Path,
    name: &str,
    each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |source| E::from(Unpacking { name: name.to_owned(), source });
    let mut file = File::open(path).map_err(failed)?;
    let regular = file.metadata().map_err(failed)?.is_file();
    let mut head = Vec::new();
    (&mut file).take(4).read_to_end(&mut head).map_err(failed)?;
    if head == b"PAR1" && regular {
        let file = File::open(path).map_err(failed)?;
        return each(name, Content::Parquet(Columnar::File(file)));
    }
    // A pipe cannot be opened again: what was read of it goes before the rest.
    stream(name, Box::new(Cursor::new(head).chain(file)), 0, each)
}

/// The same of bytes that are there already.
pub(crate) fn open_bytes<E: From<Unpacking>>(
    name: &str,
    bytes: &[u8],
    each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), E>,
) -> Result<(), E> {
    stream(name, Box::new(bytes), 0, each)
}

/// A file that could not be opened or unpacked.
#[derive(Debug)]
pub(crate) struct Unpacking {
    pub(crate) name: String,
    pub(crate) source: io::Error,
}

fn stream<E: From<Unpacking>>(
    name: &str,
    input: Box<dyn Read + '_>,
    depth: usize,
    each: &mut dyn FnMut(&str, Content<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |source| E::from(Unpacking { name: name.to_owned(), source });
    let mut input = input;
    let mut head = Vec::new();
    input.by_ref().take(TAR_HEAD).read_to_end(&mut head).map_err(failed)?;
    let packed = Packed::of(&head);
    if packed != Packed::Plain && depth == DEPTH_MAX {
        let deep = io::Error::other("archives within archives go four deep at most");
        return Err(failed(deep));
    }
    let whole = Cursor::new(head).chain(input);
    match packed {
        Packed::Plain => {
            each(name, Content::Text(Box::new(BufReader::with_capacity(1 << 18, whole))))
        }
        Packed::Gzip => {
            let plain = flate2::read::MultiGzDecoder::new(whole);
            stream(name, Box::new(plain), depth + 1, each)
        }
        Packed::Zstd => {
            let mut plain = zstd::Decoder::new(whole).map_err(failed)?;
            plain.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
            stream(name, Box::new(plain), depth + 1, each)
        }
        Packed::Tar => {
            let mut archive = tar::Archive::new(whole);
            for entry in archive.entries().map_err(failed)? {
                let entry = entry.map_err(failed)?;
                if !entry.header().entry_type().is_file() {
                    continue;
                }
                let member = entry.path().map_err(failed)?.display().to_string();
                stream(&format!("{name}:{member}"), Box::new(entry), depth + 1, each)?;
            }
            Ok(())
        }
        Packed::Parquet => {
            let mut bytes = Vec::new();
            let mut whole = whole;
            whole.read_to_end(&mut bytes).map_err(failed)?;
            each(name, Content::Parquet(Columnar::Memory(Bytes::from(bytes))))
        }
        Packed::Zip => Err(failed(io::Error::other("zip archives must be unpacked before"))),
    }
}

/// How much of a file shows how it is packed.
const TAR_HEAD: u64 = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packed {
    Plain,
    Gzip,
    Zstd,
    Tar,
    Zip,
    Parquet,
}

impl Packed {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            _ if head.get(257..262) == Some(b"ustar") => Self::Tar,
            _ => Self::Plain,
        }
    }
}
