//! Recovery: from what a crash left to an open engine.
//!
//! Phases, in order: torn pages are repaired from the doublewrite files; the redo's end is found
//! and sealed off, durably; the redo is applied; tables are read; what dropped tables left is
//! freed. Invariant: nothing is written to a data file that the durable redo does not tell of, and
//! no checkpoint moves before everything is applied; so recovery may itself be cut off anywhere and
//! begins anew with the same result. It never sleeps.

use std::time::{Duration, Instant};

use iostrata_innodb::{Lsn, PageNo};

use crate::catalogue::Catalogue;
use crate::error::EngineError;
use crate::page::PageView;
use crate::pages::Pages;
use crate::store::Repair;
use crate::super_page::SuperPage;

mod apply;

pub(crate) use apply::apply;

/// Reads what is known by name, and frees what dropped tables left. Gives what page 0 says.
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
        let problem = format!("it tells of another database than the settings: {front:?}");
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
