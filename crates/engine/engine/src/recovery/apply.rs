//! Applying the redo, page by page, side by side.
//!
//! Invariant: the records of one page are applied in the order of the log by one thread; a frame
//! that the page has seen is passed over, by the page's LSN alone; a page that cannot be read is
//! believed to be new only when its records begin with one that needs nothing of before. Every page
//! with records is dirty afterwards: one that has seen them all may be in a cache alone, where a
//! failed sync left it for clean.

use std::collections::HashMap;
use std::sync::Mutex;

use iostrata_innodb::{Lsn, PageNo};

use crate::error::EngineError;
use crate::page::{PageEdit, PageView, Record};
use crate::pool::Pin;
use crate::recovery::{Clock, Phase};
use crate::redo::Scan;
use crate::storage::Storage;
use crate::sync::locked;

/// Records kept before they are applied, in bytes with what keeps account of them.
const ROUND_BYTES: usize = 192 << 20;
const APPLY_THREADS: usize = 2;
/// A round below so many pages is not worth a second thread.
const PAGES_WORTH_A_THREAD: usize = 64;

/// One record of a page: where its bytes are, and the frame it came in.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: Lsn,
    end: Lsn,
    at: u32,
    bytes: u32,
}

#[derive(Default)]
struct Round {
    bytes: Vec<u8>,
    /// With what keeps account of them.
    held_bytes: usize,
    pages: HashMap<PageNo, Vec<Piece>>,
}

/// Pages met so far, over all rounds: whether anything was applied to them.
#[derive(Default)]
struct Tally(Mutex<HashMap<PageNo, bool>>);

impl Tally {
    fn note(&self, page: PageNo, is_changed: bool) {
        let mut met = locked(&self.0);
        *met.entry(page).or_default() |= is_changed;
    }

    fn count(&self, is_changed: bool) -> u64 {
        let met = locked(&self.0);
        met.values().filter(|changed| **changed == is_changed).count() as u64
    }
}

/// Applies everything from the scan's checkpoint up to `upto`.
pub(crate) fn apply(
    storage: &Storage,
    mut scan: Scan,
    upto: Lsn,
    clock: &mut Clock<'_>,
) -> Result<(), EngineError> {
    clock.enter(Phase::Apply);
    let mut round = Round::default();
    let tally = Tally::default();
    while let Some(frame) = scan.next()? {
        if frame.end > upto {
            break;
        }
        clock.report.frames += 1;
        clock.report.records += round.take(frame.start, frame.end, frame.body)?;
        let end = frame.end;
        if round.held_bytes >= ROUND_BYTES {
            round.apply(storage, &tally)?;
            clock.applied(end);
        }
    }
    round.apply(storage, &tally)?;
    clock.applied(upto);
    clock.report.pages_changed = tally.count(true);
    clock.report.pages_current = tally.count(false);
    Ok(())
}

impl Round {
    /// Sorts a frame's records by page. Gives how many there are.
    fn take(&mut self, start: Lsn, end: Lsn, body: &[u8]) -> Result<u64, EngineError> {
        let (mut rest, mut records) = (body, 0);
        while !rest.is_empty() {
            let decoded = Record::decode(rest).map_err(|fault| EngineError::Broken {
                what: format!("the frame at {start} passes its checksum, but {fault}"),
            })?;
            let (page, _record, bytes) = decoded;
            let at = self.bytes.len() as u32;
            self.bytes.extend_from_slice(&rest[..bytes]);
            let piece = Piece { start, end, at, bytes: bytes as u32 };
            self.pages.entry(page).or_default().push(piece);
            self.held_bytes += bytes + size_of::<Piece>();
            rest = &rest[bytes..];
            records += 1;
        }
        Ok(records)
    }

    fn apply(&mut self, storage: &Storage, tally: &Tally) -> Result<(), EngineError> {
        let mut pages: Vec<(PageNo, Vec<Piece>)> = self.pages.drain().collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let threads = APPLY_THREADS.min(pages.len() / PAGES_WORTH_A_THREAD + 1);
        let bytes = &self.bytes;
        in_parallel(threads, |part| {
            let mine = pages.iter().skip(part).step_by(threads);
            mine.into_iter()
                .try_for_each(|(page, pieces)| apply_page(storage, *page, pieces, bytes, tally))
        })?;
        self.bytes.clear();
        self.held_bytes = 0;
        Ok(())
    }
}

fn apply_page(
    storage: &Storage,
    page: PageNo,
    pieces: &[Piece],
    bytes: &[u8],
    tally: &Tally,
) -> Result<(), EngineError> {
    let record = |piece: &Piece| {
        let encoded = &bytes[piece.at as usize..(piece.at + piece.bytes) as usize];
        match Record::decode(encoded) {
            Ok((_page, record, _bytes)) => record,
            Err(fault) => panic!("a record that was decoded before is {fault}"),
        }
    };
    let Some(first) = pieces.first() else { return Ok(()) };
    let mut held = pin(storage, page, record(first).starts_page())?.exclusive();
    let seen = PageView::new(&held).lsn();
    held.mark_dirty(first.start);
    let mut stamp = None;
    for piece in pieces.iter().filter(|piece| piece.end > seen) {
        if let Some(end) = stamp.filter(|end| *end != piece.end) {
            PageEdit::new(&mut held).set_lsn(end);
        }
        let applied = record(piece).apply(&mut PageEdit::new(&mut held), page);
        applied.map_err(|fault| {
            let problem = format!("the redo at {} does not fit it: {fault}", piece.start);
            EngineError::corrupt(page, problem)
        })?;
        stamp = Some(piece.end);
    }
    if let Some(end) = stamp {
        PageEdit::new(&mut held).set_lsn(end);
    }
    tally.note(page, stamp.is_some());
    Ok(())
}

/// The page, read or, when its records begin it anew and it is not readable, empty.
fn pin(storage: &Storage, page: PageNo, is_begun_anew: bool) -> Result<Pin<'_>, EngineError> {
    match storage.pool.pin(page) {
        Err(EngineError::Corrupt { .. }) if is_begun_anew => {
            let pin = storage.create(page)?;
            storage.store.ensure(page.0 + 1)?;
            Ok(pin)
        }
        Err(EngineError::Corrupt { problem, .. }) => {
            let problem = format!("{problem}, and the redo does not begin it anew");
            Err(EngineError::corrupt(page, problem))
        }
        read => read,
    }
}

/// Runs `work` for each part of so many, side by side; gives the first error.
fn in_parallel<E: Send>(
    parts: usize,
    work: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if parts <= 1 {
        return work(0);
    }
    let results: Vec<Result<(), E>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (1..parts).map(|part| scope.spawn(move || work(part))).collect();
        let mut results = vec![work(0)];
        for thread in threads {
            match thread.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.into_iter().collect()
}
