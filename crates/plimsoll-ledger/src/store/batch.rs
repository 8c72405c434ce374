//! One batch on its way into the ledger.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use parquet::errors::ParquetError;
use parquet::schema::types::SchemaDescPtr;

use super::disk::{Disk, Page as DiskPage};
use super::manifest::{ClockSpan, Manifest, Part, REJECTS, Rejects, RequestPart, staged_rejects};
use super::{Ledger, Lock};
use crate::column::Columns;
use crate::column::read::each_batch;
use crate::column::write::Writer;
use crate::error::LedgerError;
use crate::row::{OutcomeRow, OutcomeRows, RejectRow, RejectRows, Row, SeriesRow, SeriesRows};

/// Days that are open at once; the least recently used is closed for another.
const OPEN_DAYS_MAX: usize = 32;
/// Rejects that are held in memory before they are written.
const REJECTS_HELD: usize = 1 << 14;
/// No more rows than this are expected, whatever the files' sizes.
const EXPECTED_MAX: usize = 50_000_000;
/// Keys that are held in memory before they are written.
const KEYS_HELD: usize = 1 << 16;
const DAY_NS: i64 = 86_400_000_000_000;

/// A batch. Nothing of it counts until [`Batch::commit`].
pub(crate) struct Batch {
    directory: PathBuf,
    disk: Disk,
    manifest: Manifest,
    number: u64,
    keys: Keys,
    /// Keys of this batch that are not written yet.
    new_keys: Vec<u128>,
    /// Those that are: the file, and how many.
    written_keys: Option<(DiskPage, u64)>,
    open: BTreeMap<String, Day>,
    used: u64,
    parts: u64,
    closed: Vec<RequestPart>,
    outcomes: Vec<OutcomeRow>,
    series: Vec<SeriesRow>,
    rejects: Vec<RejectRow>,
    /// Rejects that are written already: the file, and how many are in it.
    staged: Option<(Writer<DiskPage>, u64)>,
    _lock: Lock,
}

/// A day that is being written.
struct Day {
    writer: Writer<DiskPage>,
    part: RequestPart,
    path: PathBuf,
    used: u64,
}

/// Keys that are taken. It is only asked whether one is there, never in which order they are.
#[expect(clippy::disallowed_types, reason = "never iterated, so that its order cannot matter")]
type Keys = std::collections::HashSet<u128, std::hash::BuildHasherDefault<Spread>>;

/// Keys are hashes already.
#[derive(Default)]
struct Spread(u64);

impl std::hash::Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

impl Batch {
    /// Opens a ledger to add to it, or makes one; what a killed batch left behind is swept up.
    pub(crate) fn open(directory: &Path, disk: Disk) -> Result<Self, LedgerError> {
        if directory.is_dir() && !Ledger::is_at(directory) {
            may_become_a_ledger(directory)?;
        }
        disk.make_directory(directory)?;
        let lock = Lock::take(directory)?;
        let manifest = Manifest::read(directory)?.unwrap_or_else(Manifest::empty);
        sweep(directory, &manifest, &disk)?;
        let mut keys = Keys::default();
        keys.reserve(manifest.keys.iter().map(|part| part.rows as usize).sum());
        for part in &manifest.keys {
            read_keys(&directory.join(&part.file), part.rows, &mut keys)?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            disk,
            number: manifest.batch + 1,
            manifest,
            keys,
            new_keys: Vec::new(),
            written_keys: None,
            open: BTreeMap::new(),
            used: 0,
            parts: 0,
            closed: Vec::new(),
            outcomes: Vec::new(),
            series: Vec::new(),
            rejects: Vec::new(),
            staged: None,
            _lock: lock,
        })
    }

    /// Makes room for the keys of so many rows, as a guess.
    pub(crate) fn expect(&mut self, rows: u64) {
        // A guess that is far off must not take the machine's memory.
        self.keys.reserve(usize::try_from(rows).unwrap_or(usize::MAX).min(EXPECTED_MAX));
    }

    /// Takes a key, if nobody has it.
    fn is_new(&mut self, key: u128) -> bool {
        let new = self.keys.insert(key);
        if new {
            self.new_keys.push(key);
        }
        new
    }

    /// Adds requests and says how many are new.
    pub(crate) fn requests(
        &mut self,
        rows: &Columns,
        keys: &[u128],
        stamps: &[Option<i64>],
    ) -> Result<u64, LedgerError> {
        let new: Vec<bool> = keys.iter().map(|key| self.is_new(*key)).collect();
        if self.new_keys.len() >= KEYS_HELD {
            self.flush_keys()?;
        }
        let added = new.iter().filter(|new| **new).count();
        if added == 0 {
            return Ok(0);
        }
        let days: Vec<Option<i64>> =
            stamps.iter().map(|at| at.map(|at| at.div_euclid(DAY_NS))).collect();
        let mut present: Vec<Option<i64>> =
            days.iter().zip(&new).filter(|(_, new)| **new).map(|(day, _)| *day).collect();
        present.sort_unstable();
        present.dedup();
        for day in present {
            let all = added == rows.rows && days.iter().all(|of| *of == day);
            if all {
                self.write_day(&day_name(day), rows, stamps)?;
            } else {
                let keep = days.iter().zip(&new).map(|(of, new)| *new && *of == day);
                let keep: Vec<bool> = keep.collect();
                self.write_day(&day_name(day), &rows.filter(&keep), &pick(stamps, &keep))?;
            }
        }
        Ok(added as u64)
    }

    fn write_day(
        &mut self,
        name: &str,
        rows: &Columns,
        stamps: &[Option<i64>],
    ) -> Result<(), LedgerError> {
        if !self.open.contains_key(name) {
            if self.open.len() >= OPEN_DAYS_MAX {
                let oldest = self.open.iter().min_by_key(|(_, day)| day.used);
                if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                    self.close_day(&oldest)?;
                }
            }
            let file = format!("requests/day={name}/{:06}-{}.parquet", self.number, self.parts);
            self.parts += 1;
            let path = self.directory.join(&file);
            let writer = writer(&self.disk, &path, Row::schema())?;
            let part = RequestPart { file, day: name.to_owned(), rows: 0, clocks: Vec::new() };
            self.open.insert(name.to_owned(), Day { writer, part, path, used: 0 });
        }
        self.used += 1;
        let day = self.open.get_mut(name).expect("just opened");
        day.used = self.used;
        day.part.rows += rows.rows as u64;
        count_clocks(rows, stamps, &mut day.part.clocks);
        day.writer.write(rows).map_err(|source| unwritten(&day.path, source))
    }

    fn close_day(&mut self, name: &str) -> Result<(), LedgerError> {
        let Some(day) = self.open.remove(name) else { return Ok(()) };
        finish(&self.disk, &day.path, day.writer)?;
        self.closed.push(day.part);
        Ok(())
    }

    /// Adds how tasks ended and says how many of it is new.
    pub(crate) fn outcomes(&mut self, rows: Vec<(u128, OutcomeRow)>) -> u64 {
        let before = self.outcomes.len();
        for (key, row) in rows {
            if self.is_new(key) {
                self.outcomes.push(row);
            }
        }
        (self.outcomes.len() - before) as u64
    }

    /// Adds what was counted over windows and says how much of it is new.
    pub(crate) fn series(&mut self, rows: Vec<(u128, SeriesRow)>) -> u64 {
        let before = self.series.len();
        for (key, row) in rows {
            if self.is_new(key) {
                self.series.push(row);
            }
        }
        (self.series.len() - before) as u64
    }

    /// Keeps rows that could not be taken, unless they are kept already.
    pub(crate) fn rejects(&mut self, rows: Vec<(u128, RejectRow)>) -> Result<(), LedgerError> {
        for (key, row) in rows {
            if self.is_new(key) {
                self.rejects.push(row);
            }
        }
        if self.rejects.len() >= REJECTS_HELD { self.stage_rejects() } else { Ok(()) }
    }

    /// Makes the batch count, and says whether there was anything in it.
    pub(crate) fn commit(mut self) -> Result<bool, LedgerError> {
        let nothing = self.new_keys.is_empty() && self.written_keys.is_none();
        if nothing && self.manifest.batch > 0 {
            return Ok(false);
        }
        let open: Vec<String> = self.open.keys().cloned().collect();
        for name in open {
            self.close_day(&name)?;
        }
        let mut manifest = self.manifest.clone();
        manifest.batch = self.number;
        manifest.requests.append(&mut self.closed);
        manifest.requests.sort_by(|a, b| (&a.day, &a.file).cmp(&(&b.day, &b.file)));
        if !self.outcomes.is_empty() {
            let mut rows = OutcomeRows::new();
            self.outcomes.iter().for_each(|row| rows.push(row));
            manifest.outcomes.push(self.table("outcomes", OutcomeRow::schema(), &rows.finish())?);
        }
        if !self.series.is_empty() {
            let mut rows = SeriesRows::new();
            self.series.iter().for_each(|row| rows.push(row));
            manifest.series.push(self.table("series", SeriesRow::schema(), &rows.finish())?);
        }
        if !nothing {
            manifest.keys.push(self.write_keys()?);
        }
        if !self.rejects.is_empty() || self.staged.is_some() {
            manifest.rejects = Some(self.write_rejects()?);
        }
        manifest.commit(&self.directory, &self.disk)?;
        settle_rejects(&self.directory, &manifest, &self.disk)?;
        Ok(true)
    }

    fn table(
        &self,
        name: &str,
        schema: &SchemaDescPtr,
        rows: &Columns,
    ) -> Result<Part, LedgerError> {
        let file = format!("{name}/{:06}.parquet", self.number);
        let path = self.directory.join(&file);
        let mut writer = writer(&self.disk, &path, schema)?;
        writer.write(rows).map_err(|source| unwritten(&path, source))?;
        finish(&self.disk, &path, writer)?;
        Ok(Part { file, rows: rows.rows as u64 })
    }

    fn keys_file(&self) -> String {
        format!("keys/{:06}.keys", self.number)
    }

    fn flush_keys(&mut self) -> Result<(), LedgerError> {
        let path = self.directory.join(self.keys_file());
        if self.written_keys.is_none() {
            self.disk.make_directory(&self.directory.join("keys"))?;
            self.written_keys = Some((self.disk.create(&path)?, 0));
        }
        let bytes: Vec<u8> = self.new_keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        if let Some((page, rows)) = &mut self.written_keys {
            page.write_all(&bytes).map_err(|source| LedgerError::Disk {
                path: path.clone(),
                doing: "written",
                source,
            })?;
            *rows += self.new_keys.len() as u64;
        }
        self.new_keys.clear();
        Ok(())
    }

    fn write_keys(&mut self) -> Result<Part, LedgerError> {
        self.flush_keys()?;
        let (mut page, rows) = self.written_keys.take().expect("just written");
        page.sync()?;
        let file = self.keys_file();
        self.disk.sync_directory_of(&self.directory.join(&file))?;
        Ok(Part { file, rows })
    }

    /// Writes the rejects that are held. All rejects are in one file, so that there is one place to look: old ones are copied.
    fn stage_rejects(&mut self) -> Result<(), LedgerError> {
        let path = self.directory.join(staged_rejects(self.number));
        if self.staged.is_none() {
            let mut writer = writer(&self.disk, &path, RejectRow::schema())?;
            let old = self.directory.join(REJECTS);
            let mut rows = 0;
            // Whoever has looked at them may have removed them.
            if self.manifest.rejects.is_some() && old.is_file() {
                each_batch(
                    &old,
                    RejectRow::schema(),
                    |_| true,
                    |batch| {
                        rows += batch.rows as u64;
                        writer.write(&batch).map_err(|source| unwritten(&path, source))
                    },
                )?;
            }
            self.staged = Some((writer, rows));
        }
        let mut new = RejectRows::new();
        self.rejects.iter().for_each(|row| new.push(row));
        if let Some((writer, rows)) = &mut self.staged {
            *rows += self.rejects.len() as u64;
            writer.write(&new.finish()).map_err(|source| unwritten(&path, source))?;
        }
        self.rejects.clear();
        Ok(())
    }

    fn write_rejects(&mut self) -> Result<Rejects, LedgerError> {
        self.stage_rejects()?;
        let path = self.directory.join(staged_rejects(self.number));
        let (writer, rows) = self.staged.take().expect("just staged");
        finish(&self.disk, &path, writer)?;
        Ok(Rejects { batch: self.number, rows })
    }
}

/// A directory with other things in it is not made into a ledger: only what a killed batch may have left.
fn may_become_a_ledger(directory: &Path) -> Result<(), LedgerError> {
    let mut found = Vec::new();
    files_under(directory, &mut found)?;
    let strange = found.iter().filter_map(|path| path.strip_prefix(directory).ok());
    match strange.into_iter().find(|path| !is_ours(path)) {
        None => Ok(()),
        Some(path) => Err(LedgerError::Occupied {
            path: directory.to_owned(),
            by: path.display().to_string(),
        }),
    }
}

/// Whether a file, named from the ledger on, is one that a batch writes. Nothing else is ever removed.
fn is_ours(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let number = |text: &str| text.len() >= 6 && text.bytes().all(|b| b.is_ascii_digit());
    let parquet = |name: &str| name.strip_suffix(".parquet").is_some_and(number);
    match parts.as_slice() {
        ["lock" | "manifest.json.next"] => true,
        [name] => name.strip_prefix("rejects-").is_some_and(parquet),
        ["outcomes" | "series", name] => parquet(name),
        ["keys", name] => name.strip_suffix(".keys").is_some_and(number),
        ["requests", day, name] => {
            let part = name.strip_suffix(".parquet").and_then(|name| name.split_once('-'));
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            day.starts_with("day=") && part.is_some_and(|(batch, n)| number(batch) && digits(n))
        }
        _ => false,
    }
}

/// Removes what batches wrote and no manifest names, and puts the rejects of the last batch in their place.
fn sweep(directory: &Path, manifest: &Manifest, disk: &Disk) -> Result<(), LedgerError> {
    settle_rejects(directory, manifest, disk)?;
    let mut found = Vec::new();
    files_under(directory, &mut found)?;
    let counts: std::collections::BTreeSet<PathBuf> =
        manifest.files().map(|file| directory.join(file)).collect();
    for path in found.iter().filter(|path| !counts.contains(*path)) {
        let own = path.strip_prefix(directory).is_ok_and(is_ours);
        if own && !path.ends_with("lock") {
            disk.remove(path)?;
        }
    }
    Ok(())
}

fn settle_rejects(directory: &Path, manifest: &Manifest, disk: &Disk) -> Result<(), LedgerError> {
    let Some(rejects) = &manifest.rejects else { return Ok(()) };
    let staged = directory.join(staged_rejects(rejects.batch));
    if staged.is_file() {
        disk.rename(&staged, &directory.join(REJECTS))?;
    }
    Ok(())
}

fn files_under(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), LedgerError> {
    if !directory.is_dir() {
        return Ok(());
    }
    let failed = |source| LedgerError::Disk { path: directory.to_owned(), doing: "read", source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            files_under(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn read_keys(path: &Path, rows: u64, keys: &mut Keys) -> Result<(), LedgerError> {
    let bytes = std::fs::read(path).map_err(|source| LedgerError::Disk {
        path: path.to_owned(),
        doing: "read",
        source,
    })?;
    let (whole, rest) = bytes.as_chunks::<16>();
    if whole.len() as u64 != rows || !rest.is_empty() {
        let problem = format!("has {} bytes, not {} of {rows} keys", bytes.len(), rows * 16);
        return Err(LedgerError::damaged(path, problem));
    }
    keys.extend(whole.iter().map(|key| u128::from_le_bytes(*key)));
    Ok(())
}

fn writer(
    disk: &Disk,
    path: &Path,
    schema: &SchemaDescPtr,
) -> Result<Writer<DiskPage>, LedgerError> {
    if let Some(parent) = path.parent() {
        disk.make_directory(parent)?;
    }
    let page = disk.create(path)?;
    Writer::new(page, schema).map_err(|source| unwritten(path, source))
}

fn finish(disk: &Disk, path: &Path, mut writer: Writer<DiskPage>) -> Result<(), LedgerError> {
    writer.finish().map_err(|source| unwritten(path, source))?.sync()?;
    disk.sync_directory_of(path)
}

/// The cause of a failed write, as the system says it where it does.
fn unwritten(path: &Path, source: ParquetError) -> LedgerError {
    let source = match source {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(cause) => std::io::Error::other(cause),
        },
        other => std::io::Error::other(other),
    };
    LedgerError::Disk { path: path.to_owned(), doing: "written", source }
}

/// What the day of a partition is called.
fn day_name(day: Option<i64>) -> String {
    let Some(day) = day else { return "unknown".to_owned() };
    let date = SignedDuration::try_from_hours(day * 24)
        .and_then(|since| Timestamp::UNIX_EPOCH.checked_add(since).ok())
        .map(|at| Date::from(jiff::tz::Offset::UTC.to_datetime(at)));
    date.map_or_else(|| "unknown".to_owned(), |date| date.to_string())
}

fn pick(stamps: &[Option<i64>], keep: &[bool]) -> Vec<Option<i64>> {
    stamps.iter().zip(keep).filter(|(_, keep)| **keep).map(|(at, _)| *at).collect()
}

fn count_clocks(rows: &Columns, stamps: &[Option<i64>], clocks: &mut Vec<ClockSpan>) {
    let names = rows.get("clock").and_then(|column| column.texts());
    let names = names.into_iter().flatten().chain(std::iter::repeat(None));
    for (at, name) in stamps.iter().zip(names) {
        let Some(at) = *at else { continue };
        let name = name.unwrap_or("absolute");
        match clocks.iter_mut().find(|span| span.clock == name) {
            Some(span) => {
                span.rows += 1;
                span.first_ns = span.first_ns.min(at);
                span.last_ns = span.last_ns.max(at);
            }
            None => {
                let clock = name.to_owned();
                clocks.push(ClockSpan { clock, rows: 1, first_ns: at, last_ns: at });
            }
        }
    }
}
