//! The ledger is as it was before a batch, or as it is after it, whatever happens in between.

use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{IngestInput, Ingested, ingest, ingest_on};
use crate::column::foreign::tests::{Put, packed};
use crate::column::read::each_batch;
use crate::row::{OutcomeRow, RejectRow, Row, SeriesRow};
use crate::store::{Disk, Ledger, Step};
use crate::{IngestError, LedgerError};

/// A directory of its own, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn input(files: &[PathBuf], ledger: &Path) -> IngestInput {
    IngestInput {
        files: files.to_vec(),
        ledger: ledger.to_owned(),
        source: None,
        format: None,
        map: Vec::new(),
        start_ns: 0,
        find: None,
        threads: NonZero::new(2).expect("two"),
    }
}

/// Everything a ledger holds, row by row.
fn contents(directory: &Path) -> Vec<String> {
    let ledger = match Ledger::open(directory) {
        Ok(ledger) => ledger,
        Err(LedgerError::NoLedger { .. }) => return Vec::new(),
        Err(error) => panic!("the ledger must open: {error}"),
    };
    let mut rows = Vec::new();
    macro_rules! take {
        ($table:ty, $file:expr, $expect:expr) => {
            let before = rows.len();
            each_batch(
                &ledger.path($file),
                <$table>::schema(),
                |_| true,
                |batch| {
                    rows.extend(<$table>::of_columns(&batch).iter().map(|row| format!("{row:?}")));
                    Ok(())
                },
            )
            .expect("a file that the manifest names");
            let found = (rows.len() - before) as u64;
            assert_eq!(found, $expect, "{} has the rows its manifest says", $file);
        };
    }
    let manifest = ledger.manifest();
    for part in &manifest.requests {
        take!(Row, &part.file, part.rows);
    }
    for part in &manifest.outcomes {
        take!(OutcomeRow, &part.file, part.rows);
    }
    for part in &manifest.series {
        take!(SeriesRow, &part.file, part.rows);
    }
    if let Some(path) = ledger.rejects() {
        let file = path.strip_prefix(directory).expect("inside").display().to_string();
        take!(RejectRow, &file, manifest.rejects.as_ref().expect("rejects").rows);
    }
    rows.sort();
    rows
}

/// Two days, a row that is rejected, and outcomes.
fn two_batches(scratch: &Scratch) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    let first = scratch.file(
        "first.csv",
        &format!("{head}2026-11-14 23:59:59.0000000,100,10\n2026-11-15 00:00:01.0000000,200,-1\n"),
    );
    let second = scratch.file(
        "second.csv",
        &format!(
            "{head}2026-11-14 23:59:58.0000000,300,30\n2026-11-15 00:00:02.0000000,400,40\n2026-11-15 00:00:03.0000000,many,5\n"
        ),
    );
    let outcomes = scratch.file(
        "outcomes.jsonl",
        "{\"task_id\":\"t-1\",\"success\":true,\"ts\":\"2026-11-16T00:00:00Z\"}\n",
    );
    (vec![first], vec![second, outcomes])
}

/// What an ingest did, without names of files.
fn counts(done: &Ingested) -> [u64; 5] {
    [done.rows_in, done.rows_added, done.rejected, done.duplicates, done.passed_over]
}

#[test]
fn the_same_again_adds_nothing() {
    let scratch = Scratch::new();
    let (first, second) = two_batches(&scratch);
    let ledger = scratch.ledger();
    let run = |files: &[PathBuf]| ingest(&input(files, &ledger)).expect("ingested");
    assert_eq!(counts(&run(&first)), [2, 1, 1, 0, 0]);
    let before = contents(&ledger);
    assert_eq!(counts(&run(&first)), [2, 0, 1, 1, 0]);
    assert_eq!(contents(&ledger), before);
    assert_eq!(counts(&run(&second)), [4, 3, 1, 0, 0]);
    let after = contents(&ledger);
    assert_eq!(after.len(), before.len() + 4);
    assert_eq!(counts(&run(&second)), [4, 0, 1, 3, 0]);
    assert_eq!(contents(&ledger), after);
    // A log that grew brings what is new.
    let text = std::fs::read_to_string(&first[0]).expect("readable");
    std::fs::write(&first[0], text + "2026-11-15 00:00:09.0000000,7,7\n").expect("written");
    assert_eq!(counts(&run(&first)), [3, 1, 1, 1, 0]);
}

/// A disk on which the step of this number is the last thing that happens.
fn dies_at(step: usize, steps: &Arc<AtomicUsize>) -> Disk {
    let steps = Arc::clone(steps);
    Disk::watched(move |_: &Step| {
        if steps.fetch_add(1, Ordering::SeqCst) >= step {
            return Err(io::Error::other("the power is gone"));
        }
        Ok(())
    })
}

/// Fail points at every creation, write, sync, rename and removal: whichever is the last, the ledger is whole, and the next
/// ingest brings what is missing and nothing twice.
#[test]
fn a_batch_counts_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let (first, second) = two_batches(&scratch);
    let model = scratch.0.join("model");
    ingest(&input(&first, &model)).expect("ingested");
    let before = contents(&model);
    ingest(&input(&second, &model)).expect("ingested");
    let after = contents(&model);
    assert_ne!(before, after);
    let (mut seen_before, mut seen_after) = (0, 0);
    for step in 0.. {
        let ledger = scratch.0.join(format!("ledger-{step}"));
        ingest(&input(&first, &ledger)).expect("ingested");
        let steps = Arc::new(AtomicUsize::new(0));
        let died = ingest_on(&input(&second, &ledger), dies_at(step, &steps));
        let found = contents(&ledger);
        assert!(found == before || found == after, "half a batch after step {step}");
        if died.is_ok() {
            assert_eq!(found, after);
            break;
        }
        seen_before += usize::from(found == before);
        seen_after += usize::from(found == after);
        ingest(&input(&second, &ledger)).expect("what died leaves nothing in the way");
        assert_eq!(contents(&ledger), after, "the next ingest completes it, after step {step}");
        assert!(ingest(&input(&second, &ledger)).expect("again").rows_added == 0);
        std::fs::remove_dir_all(&ledger).expect("removed");
    }
    assert!(seen_before >= 20, "only {seen_before} steps come before the manifest is in its place");
    assert!(seen_after >= 1, "no step comes after the manifest is in its place");
}

/// The very first batch, too: a ledger that was never there is no ledger.
#[test]
fn the_first_batch_counts_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let (first, _) = two_batches(&scratch);
    let model = scratch.0.join("model");
    ingest(&input(&first, &model)).expect("ingested");
    let after = contents(&model);
    for step in 0.. {
        let ledger = scratch.0.join(format!("ledger-{step}"));
        let steps = Arc::new(AtomicUsize::new(0));
        let died = ingest_on(&input(&first, &ledger), dies_at(step, &steps));
        let found = contents(&ledger);
        assert!(found.is_empty() || found == after, "half a batch after step {step}");
        if died.is_ok() {
            break;
        }
        ingest(&input(&first, &ledger)).expect("what died leaves nothing in the way");
        assert_eq!(contents(&ledger), after);
    }
}

/// A disk that is full at any write: the user is told, and the ledger is as it was.
#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    let scratch = Scratch::new();
    let (first, second) = two_batches(&scratch);
    let ledger = scratch.ledger();
    ingest(&input(&first, &ledger)).expect("ingested");
    let before = contents(&ledger);
    for full_at in 0.. {
        let writes = AtomicUsize::new(0);
        let disk = Disk::watched(move |step| {
            let writing = matches!(step, Step::Write(_));
            if writing && writes.fetch_add(1, Ordering::SeqCst) == full_at {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Ok(())
        });
        match ingest_on(&input(&second, &ledger), disk) {
            Ok(_) => {
                assert!(full_at > 5, "only {full_at} writes");
                break;
            }
            Err(error) => {
                let help = error.help().unwrap_or_else(|| panic!("no help for {error:?}"));
                assert!(help.contains("make room"), "{error}: {help}");
                assert_eq!(contents(&ledger), before);
            }
        }
    }
}

#[test]
fn one_writer_at_a_time() {
    let scratch = Scratch::new();
    let (first, second) = two_batches(&scratch);
    let ledger = scratch.ledger();
    ingest(&input(&first, &ledger)).expect("ingested");
    let held = crate::store::Batch::open(&ledger, Disk::default()).expect("opened");
    let error = ingest(&input(&second, &ledger)).expect_err("somebody writes");
    assert!(matches!(error, IngestError::Ledger(LedgerError::Locked { .. })), "{error}");
    drop(held);
    ingest(&input(&second, &ledger)).expect("nobody writes");
}

/// Bad files get a clear error that names them, and the ledger is as it was.
#[test]
fn bad_files_change_nothing() {
    let scratch = Scratch::new();
    let (first, _) = two_batches(&scratch);
    let ledger = scratch.ledger();
    ingest(&input(&first, &ledger)).expect("ingested");
    let before = contents(&ledger);
    let good = Ledger::open(&ledger).expect("a ledger").manifest().requests[0].file.clone();
    let mut parquet = std::fs::read(ledger.join(good)).expect("readable");
    let middle = parquet.len() / 2;
    parquet[middle..].fill(0);
    std::fs::write(scratch.0.join("damaged.parquet"), &parquet).expect("written");
    std::fs::write(scratch.0.join("cut.csv.gz"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1])
        .expect("written");
    std::fs::write(scratch.0.join("binary.csv"), [0xff, 0xfe, 0, 1]).expect("written");
    let files = [
        ("damaged.parquet", "Parquet that cannot be read"),
        ("cut.csv.gz", "cannot be read"),
        ("binary.csv", "bytes that are no text"),
    ];
    for (name, says) in files {
        let error = ingest(&input(&[scratch.0.join(name)], &ledger)).expect_err(name);
        assert!(error.to_string().contains(says), "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(contents(&ledger), before, "{name}");
    }
    let texts = [
        ("empty.csv", String::new(), "is empty"),
        ("strange.csv", "a,b\n1,2\n".to_owned(), "a table of `a,b`"),
        ("strange.jsonl", "{\"a\":1}\n".to_owned(), "JSON of `a`"),
        (
            "open.json",
            "[{\"timestamp\":0,\"input_length\":1,\"output_length\":1},".to_owned(),
            "cannot be read",
        ),
    ];
    for (name, text, says) in texts {
        let file = scratch.file(name, &text);
        let error = ingest(&input(&[file], &ledger)).expect_err(name);
        assert!(error.to_string().contains(says), "{name}: {error}");
        assert_eq!(contents(&ledger), before, "{name}");
    }
}

/// Bad rows are rejected with their line, and the good ones around them are kept.
#[test]
fn bad_rows_are_rejected_and_the_others_kept() {
    let scratch = Scratch::new();
    let long = "x".repeat(1_000_000);
    let text = format!(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n\
         2026-11-14 10:00:00.0000000,100,10\n\
         2026-11-14 10:00:01.0000000,100\n\
         2026-11-14T10:00:02Z,100,10\n\
         {long},100,10\n\
         2026-11-14 09:00:00.0000000,100,10\n\
         \n\
         2026-11-14 10:00:03.0000000,100,10,9\n"
    );
    let file = scratch.file("mixed.csv", &text);
    let done = ingest(&input(&[file], &scratch.ledger())).expect("ingested");
    assert_eq!(counts(&done), [6, 2, 4, 0, 0]);
    assert_eq!(done.files[0].backwards, 1);
    let reasons: Vec<String> =
        done.files[0].reasons.iter().map(|r| format!("{}: {}", r.line, r.reason)).collect();
    assert_eq!(reasons[0], "3: has 2 fields, not 3");
    assert!(
        reasons.iter().any(|r| r.starts_with("4: ") && r.contains("have a zone")),
        "{reasons:?}"
    );
    assert!(reasons.iter().any(|r| r.starts_with("5: ") && r.len() < 200), "{reasons:?}");
    let total: u64 = done.files[0].reasons.iter().map(|reason| reason.rows).sum();
    assert_eq!(total, done.rejected);
}

/// Packed in any way, the same rows.
#[test]
fn packing_changes_nothing() {
    let scratch = Scratch::new();
    let (first, _) = two_batches(&scratch);
    let text = std::fs::read(&first[0]).expect("readable");
    let plain = scratch.0.join("plain");
    ingest(&input(&first, &plain)).expect("ingested");
    let nameless = |directory: &Path| -> Vec<String> {
        let rows = contents(directory);
        let strip = |row: String| row.split("file: Some(").next().unwrap_or_default().to_owned();
        rows.into_iter().map(strip).collect()
    };
    let expect = nameless(&plain);
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut packed, bytes).expect("packed");
        packed.finish().expect("packed")
    };
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append_data(&mut header, "logs/first.csv", text.as_slice()).expect("packed");
    let archive = archive.into_inner().expect("packed");
    let packed = [
        ("first.csv.gz", gzip(&text)),
        ("first.csv.zst", zstd::encode_all(text.as_slice(), 3).expect("packed")),
        ("first.tar", archive.clone()),
        ("first.tar.gz", gzip(&archive)),
    ];
    for (name, bytes) in packed {
        let file = scratch.0.join(name);
        std::fs::write(&file, bytes).expect("written");
        let ledger = scratch.0.join(format!("of-{name}"));
        ingest(&input(&[file], &ledger)).expect(name);
        assert_eq!(nameless(&ledger), expect, "{name}");
    }
}

/// The same bytes on any number of threads.
#[test]
fn threads_change_nothing() {
    let scratch = Scratch::new();
    let mut text = "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned();
    for i in 0..40_000u32 {
        let (day, second) = (14 + i / 20_000, i % 60);
        text += &format!(
            "2026-11-{day} 10:{:02}:{second:02}.0000000,{},{}\n",
            i / 700 % 60,
            i % 5000,
            i % 77
        );
    }
    let file = scratch.file("log.csv", &text);
    let bytes = |threads: usize| {
        let ledger = scratch.0.join(format!("with-{threads}"));
        let asked = IngestInput {
            threads: NonZero::new(threads).expect("some"),
            ..input(std::slice::from_ref(&file), &ledger)
        };
        ingest(&asked).expect("ingested");
        let opened = Ledger::open(&ledger).expect("a ledger");
        let files: Vec<String> = opened.manifest().files().map(str::to_owned).collect();
        files.iter().map(|f| std::fs::read(ledger.join(f)).expect("readable")).collect::<Vec<_>>()
    };
    let one = bytes(1);
    assert!(one.len() >= 3);
    assert_eq!(one, bytes(4));
}

/// A quote opens only where a field begins; lines that do not make a record together stand for themselves. Nothing is swallowed.
#[test]
fn stray_quotes_swallow_nothing() {
    let check = |name: &str, text: &str, expect: [u64; 5]| {
        let scratch = Scratch::new();
        let file = scratch.file("log.csv", &format!("feature,prompt_tokens,output_tokens\n{text}"));
        let done = ingest(&input(&[file], &scratch.ledger())).expect(name);
        assert_eq!(counts(&done), expect, "{name}: {:?}", done.files[0].reasons);
    };
    check("an inch", "15\" tv,1,2\nb,3,4\n17\" tv,5,6\nd,7,8\n", [4, 4, 0, 0, 0]);
    check("a quote that never closes", "a,1,2\n\"b,3,4\nc,5,6\nd,7,8\n", [4, 4, 0, 0, 0]);
    check("a field of two lines", "\"a\nb\",1,2\n\"c \"\"d\"\"\",3,4\n", [2, 2, 0, 0, 0]);
    check("a comma within", "\"a,b\",1,2\n", [1, 1, 0, 0, 0]);
    let many = "x,1,2\n".repeat(100_000);
    check("a quote before many lines", &format!("\"a,1,2\n{many}"), [100_001, 100_001, 0, 0, 0]);
}

/// Rows without names differ by all they say, not by how they begin.
#[test]
fn nameless_records_differ_by_all_they_say() {
    let scratch = Scratch::new();
    let record = |tokens: u32| {
        format!(
            "{{\"model\":\"a-model-with-a-name-that-is-longer-than-sixty-characters-by-far\",\"ts_arrival\":\"2026-11-15T10:00:00Z\",\"prompt_tokens\":{tokens},\"output_tokens\":5}}"
        )
    };
    let first = scratch.file("first.json", &format!("[{}]", record(1)));
    let second = scratch.file("second.json", &format!("[{}]", record(2)));
    let done = ingest(&input(&[first, second], &scratch.ledger())).expect("ingested");
    assert_eq!(counts(&done), [2, 2, 0, 0, 0]);
}

/// Only what a batch writes is ever removed, and a directory with anything else in it is no ledger.
#[test]
fn nobody_elses_files_are_touched() {
    let scratch = Scratch::new();
    let (first, _) = two_batches(&scratch);
    for strange in ["requests/a.jsonl", "keys/notes.txt", "rejects-old.csv", "series/1.parquet"] {
        let ledger = scratch.0.join(strange.replace('/', "-"));
        let theirs = ledger.join(strange);
        std::fs::create_dir_all(theirs.parent().expect("a parent")).expect("made");
        std::fs::write(&theirs, "theirs").expect("written");
        let error = ingest(&input(&first, &ledger)).expect_err(strange);
        assert!(matches!(error, IngestError::Ledger(LedgerError::Occupied { .. })), "{error}");
        assert!(theirs.is_file(), "{strange}");
    }
    // What somebody puts into a ledger stays there.
    let ledger = scratch.ledger();
    ingest(&input(&first, &ledger)).expect("ingested");
    let theirs = ledger.join("requests/notes.txt");
    std::fs::write(&theirs, "theirs").expect("written");
    ingest(&input(&first, &ledger)).expect("ingested");
    assert!(theirs.is_file());
    // Rejects may be removed; the next ones are kept.
    std::fs::remove_file(ledger.join("rejects.parquet")).expect("removed");
    let bad = scratch
        .file("bad.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-11-15 00:00:00,x,1\n");
    ingest(&input(&[bad], &ledger)).expect("ingested");
    assert!(ledger.join("rejects.parquet").is_file());
}

/// Parquet of others: packed as others pack, with moments in a zone of any name.
#[test]
fn parquet_of_others_is_read() {
    use parquet::basic::Compression;
    let scratch = Scratch::new();
    let at = 1_790_000_000_000_000;
    for (name, packing) in [
        ("snappy", Compression::SNAPPY),
        ("lz4", Compression::LZ4_RAW),
        ("gzip", Compression::GZIP(parquet::basic::GzipLevel::default())),
        ("zstd", Compression::ZSTD(parquet::basic::ZstdLevel::default())),
    ] {
        let path = scratch.0.join(format!("{name}.parquet"));
        let schema = "message log {
            optional int64 when (TIMESTAMP(MICROS, true));
            required int64 in;
            required int64 out;
            optional binary who (UTF8);
        }";
        let columns = [
            Put::Longs(&[at, at + 1], &[1, 1, 0], &[]),
            Put::Longs(&[10, -1, 30], &[], &[]),
            Put::Longs(&[1, 2, 3], &[], &[]),
            Put::Bytes(&[b"a", b"c"], &[1, 0, 1], &[]),
        ];
        std::fs::write(&path, packed(schema, &columns, packing)).expect("written");
        let ledger = scratch.0.join(format!("of-{name}"));
        let map = [
            ("ts_arrival", "when"),
            ("prompt_tokens", "in"),
            ("output_tokens", "out"),
            ("tenant", "who"),
        ];
        let map = map.map(|(column, field)| (column.to_owned(), field.to_owned())).to_vec();
        let done = ingest(&IngestInput { map, ..input(&[path], &ledger) }).expect(name);
        assert_eq!(counts(&done), [3, 2, 1, 0, 0], "{name}: {:?}", done.files[0].reasons);
        let opened = Ledger::open(&ledger).expect("a ledger");
        let mut stamps = Vec::new();
        opened
            .each_row(["ts_arrival"].into_iter(), |row| stamps.push(row.ts_arrival))
            .expect("rows");
        assert!(stamps.contains(&Some(at * 1000)), "{stamps:?}");
    }
}

/// What is not read is named, with a way out.
#[test]
fn brotli_is_named() {
    let scratch = Scratch::new();
    let path = scratch.0.join("log.parquet");
    let schema = "message log { required int64 in; }";
    let columns = [Put::Longs(&[10], &[], &[])];
    let mut bytes = packed(schema, &columns, parquet::basic::Compression::UNCOMPRESSED);
    // The metadata of the column has the path (field 3, a list of one text) before the codec (field 4, an i32 as a zigzag number):
    // UNCOMPRESSED is 0, BROTLI is 4.
    let path_and_codec = [0x19, 0x18, 2, b'i', b'n', 0x15];
    let place = bytes.windows(6).rposition(|found| found == path_and_codec).expect("a path");
    assert_eq!(bytes[place + 6], 0);
    bytes[place + 6] = 8;
    std::fs::write(&path, bytes).expect("written");
    let map = vec![("prompt_tokens".to_owned(), "in".to_owned())];
    let error = ingest(&IngestInput { map, ..input(&[path], &scratch.ledger()) });
    let error = error.expect_err("packed with Brotli").to_string();
    assert!(error.contains("column `in` is packed with Brotli"), "{error}");
    assert!(error.contains("write it again with zstd"), "{error}");
}

/// What a log does not say stays unknown: the number of an attempt, too.
#[test]
fn unknown_attempts_stay_unknown() {
    let scratch = Scratch::new();
    let (first, _) = two_batches(&scratch);
    let ledger = scratch.ledger();
    ingest(&input(&first, &ledger)).expect("ingested");
    let mut attempts = Vec::new();
    let opened = Ledger::open(&ledger).expect("a ledger");
    opened.each_row(["attempt"].into_iter(), |row| attempts.push(row.attempt)).expect("rows");
    assert_eq!(attempts, [None]);
}

/// A unit says what a number counts; whether it counts from 1970 or from the log's own start is told by its size.
#[test]
fn units_of_mapped_times() {
    let scratch = Scratch::new();
    let file = scratch.file("log.csv", "t,p,o\n1790000000500,1,2\n");
    let late = scratch.file("late.csv", "t,p,o\n1500,1,2\n");
    let map = [("ts_arrival", "t:ms"), ("prompt_tokens", "p"), ("output_tokens", "o")];
    let map = map.map(|(column, field)| (column.to_owned(), field.to_owned())).to_vec();
    let ledger = scratch.ledger();
    ingest(&IngestInput { map, ..input(&[file, late], &ledger) }).expect("ingested");
    let mut found = Vec::new();
    let opened = Ledger::open(&ledger).expect("a ledger");
    let columns = ["ts_arrival", "clock"].into_iter();
    opened.each_row(columns, |row| found.push((row.clock, row.ts_arrival))).expect("rows");
    found.sort();
    let expect = [("absolute", 1_790_000_000_500_000_000), ("relative", 1_500_000_000)];
    assert_eq!(found, expect.map(|(clock, at)| (Some(clock.to_owned()), Some(at))));
}
