//! Settings that are read on hot paths, as atomics.
//!
//! Invariant: they say what the settings say, from the moment those were changed.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use iostrata_knobs::{FlushLogAt, Settings};

/// Copies of settings.
#[derive(Debug, Default)]
pub(crate) struct Live {
    flush_log_at_commit: AtomicU32,
    merge_threshold_pct: AtomicU32,
    fill_factor_pct: AtomicU32,
    read_ahead_threshold: AtomicU32,
    flush_neighbors: AtomicU32,
}

impl Live {
    /// Takes them over.
    pub fn follow(&self, settings: &Settings) {
        self.flush_log_at_commit.store(settings.flush_log_at_trx_commit as u32, Relaxed);
        self.merge_threshold_pct.store(settings.merge_threshold, Relaxed);
        self.fill_factor_pct.store(settings.fill_factor, Relaxed);
        self.read_ahead_threshold.store(settings.read_ahead_threshold, Relaxed);
        self.flush_neighbors.store(settings.flush_neighbors, Relaxed);
    }

    /// What a commit waits for.
    pub fn flush_log_at_commit(&self) -> FlushLogAt {
        let value = self.flush_log_at_commit.load(Relaxed);
        let known = FlushLogAt::ALL.iter().copied().find(|at| *at as u32 == value);
        known.unwrap_or(FlushLogAt::Commit)
    }

    /// Below this share of a page, in percent, it is joined with a neighbour.
    pub fn merge_threshold_pct(&self) -> usize {
        self.merge_threshold_pct.load(Relaxed) as usize
    }

    /// Share of a page that a sorted load fills, in percent.
    pub fn fill_factor_pct(&self) -> usize {
        self.fill_factor_pct.load(Relaxed) as usize
    }

    /// Which neighbours are written along: 0 none, 1 the dirty run around the page, 2 all dirty
    /// ones of its extent.
    pub fn flush_neighbors(&self) -> u32 {
        self.flush_neighbors.load(Relaxed)
    }

    /// Leaves read in order before the next ones are read ahead; 0 never.
    pub fn read_ahead_threshold(&self) -> u32 {
        self.read_ahead_threshold.load(Relaxed)
    }
}
