//! Stretches of a file, turned into pages on several threads and handed on in order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{IngestError, LedgerError};
use crate::page::{Origin, Page};

/// Stretches that wait for a thread, and pages that wait for the writer.
const WAITING_MAX: usize = 4;

/// Takes pages in the order of the file.
pub(super) type Sink<'a> = dyn FnMut(Page) -> Result<(), LedgerError> + Send + 'a;

/// Where the reader leaves its stretches; false once nobody wants more.
pub(super) type Put<'a, S> = &'a mut dyn FnMut(S) -> bool;

/// `read` cuts the file into stretches on this thread, `parse` turns each into a page on others, `sink` gets them in order.
///
/// Whether moments have a zone is settled by the first stretch, and the others are told.
pub(super) fn feed<S: Send>(
    origin: &Origin,
    threads: NonZero<usize>,
    read: impl FnOnce(Put<'_, S>) -> Result<(), IngestError>,
    parse: impl Fn(S, &mut Page) + Sync,
    sink: &mut Sink<'_>,
) -> Result<(), IngestError> {
    let (to_parse, stretches) = sync_channel::<(u64, S)>(WAITING_MAX);
    let (to_write, pages) = sync_channel::<(u64, Page)>(WAITING_MAX);
    let stretches = Mutex::new(stretches);
    let zoned = OnceLock::new();
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            let to_write = to_write.clone();
            let (stretches, zoned, parse) = (&stretches, &zoned, &parse);
            scope.spawn(move || work(stretches, &to_write, origin, zoned, parse));
        }
        drop(to_write);
        let writer = scope.spawn(move || write(pages, sink));
        let mut index = 0;
        let read = read(&mut |stretch| {
            index += 1;
            to_parse.send((index - 1, stretch)).is_ok()
        });
        drop(to_parse);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A full disk is the cause of what the reader could not get rid of, never the other way round.
        written?;
        read
    })
}

fn work<S>(
    stretches: &Mutex<Receiver<(u64, S)>>,
    to_write: &SyncSender<(u64, Page)>,
    origin: &Origin,
    zoned: &OnceLock<Option<bool>>,
    parse: &(impl Fn(S, &mut Page) + Sync),
) {
    loop {
        let next = stretches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((index, stretch)) = next else { return };
        let mut page = Page::new(origin.clone());
        if index > 0 {
            page.origin.zoned = *zoned.wait();
        }
        // Whatever becomes of the first stretch, the others must not wait for it without end.
        let settled = (index == 0).then_some(Settled(zoned));
        parse(stretch, &mut page);
        if let Some(settled) = settled {
            settled.0.get_or_init(|| page.origin.zoned);
        }
        if to_write.send((index, page)).is_err() {
            return;
        }
    }
}

/// Settles that nothing is known of zones, unless it was settled before.
struct Settled<'a>(&'a OnceLock<Option<bool>>);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.0.get_or_init(|| None);
    }
}

fn write(pages: Receiver<(u64, Page)>, sink: &mut Sink<'_>) -> Result<(), LedgerError> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    for (index, page) in pages {
        early.insert(index, page);
        while let Some(page) = early.remove(&next) {
            next += 1;
            sink(page)?;
        }
    }
    Ok(())
}
