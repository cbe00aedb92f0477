//! Recovery: from what a crash left to an open engine.
//!
//! Phases, in order: torn pages are repaired from the doublewrite files; the redo's end is found
//! and sealed off, durably; the redo is applied; tables are read; what dropped tables left is
//! freed. Invariant: nothing is written to a data file that is not in the durable redo, and no
//! checkpoint moves before everything is applied; so recovery may itself be cut off anywhere and
//! starts over with the same result. It never sleeps.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use iostrata_innodb::{Lsn, PageNo};

use crate::catalogue::Catalogue;
use crate::error::EngineError;
use crate::page::{PageEdit, PageView, Record};
use crate::pages::{Pages, SuperPage};
use crate::pool::Pin;
use crate::redo::Scan;
use crate::storage::Storage;
use crate::store::Repair;
use crate::sync::locked;

/// Reads what is known by name, and frees what dropped tables left. Returns the content of page 0.
pub(crate) fn tables(
    pages: &Pages,
    catalogue: &Catalogue,
    clock: &mut Clock<'_>,
) -> Result<SuperPage, EngineError> {
    clock.enter(Phase::Tables);
    let front = {
        let page = pages.pin(PageNo(0))?.shared();
        SuperPage::read(&PageView::new(&page))?
    };
    let settings = pages.storage.settings.load();
    let is_ours = front.page_bytes == settings.page_size
        && front.data_files == settings.data_files
        && front.catalogue_root == catalogue.tree.root.0;
    if !is_ours {
        let problem = format!("it belongs to another database than the settings: {front:?}");
        return Err(EngineError::corrupt(PageNo(0), problem));
    }
    pages.space.set_maps(front.maps);
    catalogue.read(front.next_table)?;
    if catalogue.has_dropped() {
        clock.enter(Phase::Reclaim);
        catalogue.reclaim()?;
    }
    clock.enter(Phase::Done);
    Ok(front)
}

/// The phases of recovery, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Doublewrite copies are put over torn pages.
    Repair,
    /// The redo is read to its end, which is sealed off.
    Seal,
    /// The redo is applied to the pages.
    Apply,
    /// The tables are read.
    Tables,
    /// Pages of dropped tables are freed.
    Reclaim,
    /// The engine is open.
    Done,
}

/// How far recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The phase that goes on.
    pub phase: Phase,
    /// Bytes of redo applied.
    pub done_bytes: u64,
    /// Bytes of redo to apply.
    pub total_bytes: u64,
}

/// What recovery found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The engine was closed cleanly before.
    pub was_clean: bool,
    /// Where the redo began to count.
    pub checkpoint_lsn: u64,
    /// Where it ended.
    pub end_lsn: u64,
    /// Frames read.
    pub frames: u64,
    /// Records read.
    pub records: u64,
    /// Pages that records were applied to.
    pub pages_changed: u64,
    /// Pages that were newer than all of their records.
    pub pages_current: u64,
    /// Torn pages restored from the doublewrite files.
    pub pages_restored: u64,
    /// How long it took in all.
    pub took: Duration,
}

/// Follows recovery through its phases.
pub(crate) struct Clock<'p> {
    start: Instant,
    progress: Progress,
    report_progress: &'p mut dyn FnMut(&Progress),
    pub report: RecoveryReport,
}

impl<'p> Clock<'p> {
    /// Recovery begins.
    pub fn start(report_progress: &'p mut dyn FnMut(&Progress)) -> Self {
        let progress = Progress { phase: Phase::Repair, done_bytes: 0, total_bytes: 0 };
        report_progress(&progress);
        let report = RecoveryReport::default();
        Self { start: Instant::now(), progress, report_progress, report }
    }

    /// The next phase.
    pub fn enter(&mut self, phase: Phase) {
        self.progress.phase = phase;
        (self.report_progress)(&self.progress);
    }

    /// Torn pages are repaired.
    pub fn repaired(&mut self, repair: &Repair) {
        self.report.pages_restored = repair.restored.len() as u64;
        self.enter(Phase::Seal);
    }

    /// The end of the redo is known.
    pub fn sealed(&mut self, from: Lsn, end: Lsn, was_clean: bool) {
        self.report.was_clean = was_clean;
        self.report.checkpoint_lsn = from.0;
        self.report.end_lsn = end.0;
        self.progress.total_bytes = end.since(from);
    }

    /// So much of the redo is applied.
    pub fn applied(&mut self, upto: Lsn) {
        self.progress.done_bytes = upto.0.saturating_sub(self.report.checkpoint_lsn);
        (self.report_progress)(&self.progress);
    }

    /// What recovery found.
    pub fn report(mut self) -> RecoveryReport {
        self.report.took = self.start.elapsed();
        self.report
    }
}

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

/// The page: read, or empty when its records start it over and it is not readable.
fn pin(storage: &Storage, page: PageNo, is_begun_anew: bool) -> Result<Pin<'_>, EngineError> {
    match storage.pool.pin(page) {
        Err(EngineError::Corrupt { .. }) if is_begun_anew => {
            let pin = storage.create(page)?;
            storage.store.ensure(page.0 + 1)?;
            Ok(pin)
        }
        Err(EngineError::Corrupt { problem, .. }) => {
            let problem = format!("{problem}, and the redo does not start it over");
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
