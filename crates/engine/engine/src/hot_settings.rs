//! The settings of an open engine; those that are read on hot paths as atomics.
//!
//! Invariant: the atomics say what the settings say, from the moment those were changed.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use iostrata_innodb::{FlushLogAt, Settings};

/// The settings in force.
#[derive(Debug)]
pub(crate) struct HotSettings {
    all: RwLock<Settings>,
    flush_log_at_commit: AtomicU32,
    merge_threshold_pct: AtomicU32,
    fill_factor_pct: AtomicU32,
    read_ahead_threshold: AtomicU32,
    flush_neighbors: AtomicU32,
    lock_wait_timeout_s: AtomicU32,
    purge_batch_size: AtomicU32,
}

impl HotSettings {
    /// The settings that the engine is opened with.
    pub fn new(settings: Settings) -> Self {
        let zero = || AtomicU32::new(0);
        let hot = Self {
            all: RwLock::default(),
            flush_log_at_commit: zero(),
            merge_threshold_pct: zero(),
            fill_factor_pct: zero(),
            read_ahead_threshold: zero(),
            flush_neighbors: zero(),
            lock_wait_timeout_s: zero(),
            purge_batch_size: zero(),
        };
        hot.replace(settings);
        hot
    }

    /// From now on these.
    pub fn replace(&self, settings: Settings) {
        self.flush_log_at_commit.store(settings.flush_log_at_trx_commit as u32, Relaxed);
        self.merge_threshold_pct.store(settings.merge_threshold, Relaxed);
        self.fill_factor_pct.store(settings.fill_factor, Relaxed);
        self.read_ahead_threshold.store(settings.read_ahead_threshold, Relaxed);
        self.flush_neighbors.store(settings.flush_neighbors, Relaxed);
        self.lock_wait_timeout_s.store(settings.lock_wait_timeout, Relaxed);
        self.purge_batch_size.store(settings.purge_batch_size, Relaxed);
        *self.all.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// All of them, for a moment.
    pub fn all(&self) -> RwLockReadGuard<'_, Settings> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
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

    /// How long a transaction waits for a row lock.
    pub fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(self.lock_wait_timeout_s.load(Relaxed).into())
    }

    /// Tombstones that purge takes at once.
    pub fn purge_batch_size(&self) -> usize {
        self.purge_batch_size.load(Relaxed) as usize
    }

    /// Leaves read in order before the next ones are read ahead; 0 never.
    pub fn read_ahead_threshold(&self) -> u32 {
        self.read_ahead_threshold.load(Relaxed)
    }
}
