//! What a scan says of small ledgers.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_stats::Seed;
use plimsoll_study::{Profile, ProfileInput, profile};

use super::*;
use crate::ingest::{IngestInput, ingest};

/// A ledger of its own, gone at the end.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// One of these files, each of JSON lines of our own columns.
    pub(super) fn of(files: &[&str]) -> Self {
        let names: Vec<String> = (0..files.len()).map(|i| format!("{i}.jsonl")).collect();
        let files = names.iter().zip(files).map(|(name, text)| (name.as_str(), *text));
        Self::named(&files.collect::<Vec<_>>())
    }

    /// One of files with these names.
    pub(super) fn named(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-scan-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        let scratch = Self(path);
        let files = files.iter().map(|(name, text)| {
            let file = scratch.0.join(name);
            std::fs::write(&file, text).expect("written");
            file
        });
        let done = ingest(&IngestInput {
            files: files.collect(),
            ledger: scratch.0.join("ledger"),
            source: None,
            format: None,
            map: Vec::new(),
            start_ns: 0,
            find: None,
            threads: NonZero::<usize>::MIN,
        });
        assert_eq!(done.expect("ingested").rejected, 0);
        scratch
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn ledger(&self) -> Ledger {
        Ledger::open(&self.0.join("ledger")).expect("a ledger")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A row of the log: its name, when it came, and what else is known of it.
fn row(name: &str, at: &str, more: &str) -> String {
    format!(
        "{{\"request_id\":\"{name}\",\"ts_arrival\":{at},\"prompt_tokens\":100,\"output_tokens\":10{more}}}\n"
    )
}

pub(super) fn input(by: &[&str], only: &[(&str, &str)]) -> ScanInput {
    ScanInput {
        classes: Classing::Columns { names: by.iter().map(|c| (*c).to_owned()).collect(), most: 3 },
        only: only.iter().map(|(c, v)| ((*c).to_owned(), (*v).to_owned())).collect(),
        pace: None,
        cache_blocks: Vec::new(),
        threads: NonZero::new(2).expect("two"),
    }
}

fn profiled(scanned: &Scanned) -> Profile {
    let input = ProfileInput {
        classes: scanned.classes.clone(),
        clients: scanned.clients.clone(),
        clients_named: 2,
        clock: scanned.clock,
        no_clock: scanned.no_clock.clone(),
        reuse: None,
        series: None,
        seed: Seed::new(7),
        threads: 1,
    };
    profile(scanned.gathered.clone(), &input)
}

/// What a cache of whole answers served, and what stands for no request, is no demand: it sets neither the first arrival nor a class.
#[test]
fn what_is_no_demand_is_not_surveyed() {
    for (left_out, note) in [
        (",\"response_cached\":true", "cache of whole answers"),
        (",\"sample_weight\":0", "sample weight of zero"),
    ] {
        let at = |second: u32| format!("\"2026-03-01T10:00:{second:02}Z\"");
        let text = [
            row("a", &at(0), &format!(",\"model\":\"cached\"{left_out}")),
            row("b", &at(10), ",\"model\":\"m\""),
            row("c", &at(30), ",\"model\":\"m\",\"response_cached\":false,\"sample_weight\":1"),
        ];
        let scratch = Scratch::of(&[&text.concat()]);
        for by in [&["model"][..], &[]] {
            let scanned = scratch.ledger().scan(&input(by, &[])).expect("scanned");
            assert_eq!(scanned.classes, [if by.is_empty() { "all" } else { "m" }]);
            assert_eq!(scanned.first_ns, Some(1_772_359_210_000_000_000));
            assert!(scanned.notes.iter().any(|n| n.contains(note)), "{:?}", scanned.notes);
            let all = &profiled(&scanned).classes[0];
            assert_eq!((all.rows, all.span_s), (2, Some(20.0)));
        }
        let asked = scratch.ledger().asked(&input(&[], &[])).expect("asked");
        assert_eq!(asked.iter().map(|a| a.at_s).collect::<Vec<_>>(), [Some(0.0), Some(20.0)]);
    }
}

/// Tasks are settled now and then; what comes of it is as if they were after every stretch.
#[test]
fn tasks_settle_to_the_same() {
    let (mut counts, mut plain) = (Counts::default(), BTreeMap::new());
    for stretch in 0..40u64 {
        let mut more = Counts::default();
        for i in 0..stretch * 7 % 31 {
            let task = (stretch * 13 + i * 5) % 97;
            let said = [None, Some(true), Some(false)][((stretch + i) % 3) as usize];
            more.tasks.push((task, said));
            let known: &mut Option<bool> = plain.entry(task).or_default();
            *known = said.or(*known);
        }
        more.settle();
        counts.add(more);
        assert!(counts.tasks.len() <= 2 * plain.len(), "no more than twice the tasks");
    }
    counts.settle();
    assert_eq!(counts.tasks, plain.into_iter().collect::<Vec<_>>());
}

/// The clock is that of the rows that are kept, and notes are of those alone.
#[test]
fn a_filter_reaches_a_logs_own_clock() {
    let text = [
        row("a", "\"2026-03-01T10:00:00Z\"", ",\"model\":\"dated\""),
        row("b", "\"1970-01-01T00:00:05Z\"", ",\"model\":\"own\",\"clock\":\"relative\""),
        row("c", "\"1970-01-01T00:00:15Z\"", ",\"model\":\"own\",\"clock\":\"relative\""),
        row("d", "\"1970-01-01T00:00:07Z\"", ",\"model\":\"agent\",\"clock\":\"session\""),
    ];
    let scratch = Scratch::of(&[&text.concat()]);
    let check = |only: &[(&str, &str)], span: Option<f64>, dated: bool, notes: usize| {
        let scanned = scratch.ledger().scan(&input(&[], only)).expect("scanned");
        let profile = profiled(&scanned);
        assert_eq!(profile.classes[0].span_s, span, "{only:?}");
        assert_eq!(scanned.clock.is_some(), dated, "{only:?}");
        assert_eq!(scanned.notes.len(), notes, "{only:?}: {:?}", scanned.notes);
        assert_eq!(scanned.no_clock.is_some(), span.is_none(), "{only:?}");
    };
    check(&[], Some(0.0), true, 2);
    check(&[("model", "dated")], Some(0.0), true, 0);
    check(&[("model", "own")], Some(10.0), false, 0);
    check(&[("model", "agent")], None, false, 1);
    let asked = scratch.ledger().asked(&input(&[], &[("model", "own")])).expect("asked");
    assert_eq!(asked.iter().map(|a| a.at_s).collect::<Vec<_>>(), [Some(0.0), Some(10.0)]);
}

/// Logs that count from their own start lie over each other, which is said.
#[test]
fn logs_that_lie_over_each_other() {
    let own = |name: &str, more: &str| {
        row(name, "\"1970-01-01T00:00:05Z\"", &format!(",\"clock\":\"relative\"{more}"))
    };
    let check = |files: &[&str], only: &[(&str, &str)], expect: bool| {
        let scanned = Scratch::of(files).ledger().scan(&input(&[], only)).expect("scanned");
        let said = scanned.notes.iter().any(|note| note.contains("rows are of 2 files"));
        assert_eq!(said, expect, "{only:?}: {:?}", scanned.notes);
    };
    let (a, b) = (own("a", ",\"model\":\"m\""), own("b", ""));
    check(&[&a, &b], &[], true);
    check(&[&a, &b], &[("model", "m")], false);
    check(&[&a, &b], &[("file", "*0.jsonl")], false);
    check(&[&(a.clone() + &b)], &[], false);
    // Dated rows have one clock, whatever file they are of.
    let dated = |name: &str| row(name, "\"2026-03-01T10:00:00Z\"", "");
    check(&[&dated("a"), &dated("b")], &[], false);
}

/// Classes are told apart by their values, and what they are called tells them apart, too.
#[test]
fn classes_that_look_alike() {
    let check = |by: &[&str], rows: &[(&str, &str, u32)], expect: &[(&str, u64)]| {
        let mut text = String::new();
        for (i, (tenant, model, times)) in rows.iter().enumerate() {
            for n in 0..*times {
                let at = format!("\"2026-03-01T10:0{i}:{n:02}Z\"");
                let more = format!(",\"tenant\":{tenant},\"model\":{model}");
                text += &row(&format!("{i}-{n}"), &at, &more);
            }
        }
        let scanned = Scratch::of(&[&text]).ledger().scan(&input(by, &[])).expect("scanned");
        let found = profiled(&scanned);
        let own: Vec<(&str, u64)> =
            found.classes[1..].iter().map(|class| (class.name.as_str(), class.rows)).collect();
        assert_eq!(own, expect);
    };
    let two = &["tenant", "model"];
    check(
        two,
        &[("\"a, b\"", "\"c\"", 3), ("\"a\"", "\"b, c\"", 2), ("\"d\"", "\"e\"", 1)],
        &[("\"a, b\", \"c\"", 3), ("\"a\", \"b, c\"", 2), ("d, e", 1)],
    );
    // Of more than three the rarest are one, and nobody's name is that of the rest, or of all.
    check(
        &["tenant"],
        &[
            ("\"other\"", "\"m\"", 4),
            ("\"all\"", "\"m\"", 3),
            ("\"x\"", "\"m\"", 2),
            ("null", "\"m\"", 1),
        ],
        &[("\"other\"", 4), ("\"all\"", 3), ("other", 3)],
    );
    check(
        &["tenant"],
        &[("\"(unknown)\"", "\"m\"", 2), ("null", "\"m\"", 1)],
        &[("\"(unknown)\"", 2), ("(unknown)", 1)],
    );
}

/// A scenario may call a class what the rest would be called.
#[test]
fn a_named_class_is_not_the_rest() {
    let at = "\"2026-03-01T10:00:00Z\"";
    let text = row("a", at, ",\"model\":\"m\"") + &row("b", at, ",\"model\":\"n\"");
    let scratch = Scratch::of(&[&text]);
    let check = |name: &str, expect: [&str; 2]| {
        let columns = BTreeMap::from([("model".to_owned(), "m".to_owned())]);
        let named = NamedClass { name: name.to_owned(), columns };
        let input = ScanInput { classes: Classing::Named(vec![named]), ..input(&[], &[]) };
        let scanned = scratch.ledger().scan(&input).expect("scanned");
        assert_eq!(scanned.classes, expect);
        assert_eq!(profiled(&scanned).classes.len(), 3);
    };
    check("big", ["big", "other"]);
    check("other", ["other", "other (of no class)"]);
}

/// Whoever asks for rows one by one is told that some stand for several; so is whoever serves them again.
#[test]
fn rows_that_stand_for_several() {
    let at = |second: u32| format!("\"2026-03-01T10:00:{second:02}Z\"");
    let text = [
        row("a", &at(0), ""),
        row("b", &at(1), ",\"sample_weight\":1"),
        row("c", &at(2), ",\"sample_weight\":20"),
        row("d", &at(3), ",\"sample_weight\":0"),
    ];
    let scratch = Scratch::of(&[&text.concat()]);
    let asked = scratch.ledger().asked(&input(&[], &[])).expect("asked");
    assert_eq!(asked.iter().map(|row| row.weight).collect::<Vec<_>>(), [1.0, 1.0, 20.0]);
    let (trace, rejects) = crate::trace_of_ledger(&scratch.ledger()).expect("a trace");
    assert_eq!((trace.len(), rejects.len()), (3, 1));
    let note = "1 requests stand for several by their sample weight, but come once each: the load is not what it was";
    assert!(trace.notes().contains(&note.to_owned()), "{:?}", trace.notes());
}
