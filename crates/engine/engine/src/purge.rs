//! Purge: tombstones that no snapshot needs any more go from the leaves.
//!
//! Invariant: a tombstone goes only when every snapshot, now and later, is at or above the commit
//! that left it, and only if it is still what that commit left. What a crash leaves is found by one
//! walk over the leaves, which leaves alone what was deleted since the opening, and goes on at the
//! next one when the engine is closed before its end. It is a state machine: `step` does one piece
//! of work.

use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use iostrata_innodb::TableId;
use iostrata_innodb::flush::Lag;

use crate::catalogue::Catalogue;
use crate::commit::{Committer, commit};
use crate::cursor::TreeCursor;
use crate::error::{EngineError, Failure, RequestError, TableError};
use crate::pages::{Pages, WalkPlace};
use crate::sync::locked;
use crate::tree::Tree;
use crate::tree::descend::Direction;
use crate::version::PurgeItem;
use crate::write_set::WriteSet;

/// Rows looked at in one step of the walk over the leaves.
const WALK_ROWS: usize = 2_000;

#[derive(Debug, Default)]
struct Walk {
    /// Tables to be walked, the next one last.
    tables: Vec<Arc<Tree>>,
    /// The last key of the current table that was looked at.
    last: Option<Vec<u8>>,
    /// The newest commit of an earlier process. Every snapshot is at or above it.
    until: u64,
}

#[derive(Debug)]
pub(crate) struct Purger {
    pages: Arc<Pages>,
    catalogue: Arc<Catalogue>,
    walk: Mutex<Walk>,
}

impl Purger {
    pub fn new(pages: Arc<Pages>, catalogue: Arc<Catalogue>) -> Self {
        Self { pages, catalogue, walk: Mutex::default() }
    }

    /// Looks for tombstones in all tables, in the steps to come: a crash has left some. Nobody has
    /// written yet.
    pub fn walk_all(&self) {
        self.begin_walk(u32::MAX, None);
    }

    /// Goes on with a walk that an earlier process had begun. Nobody has written yet.
    pub fn walk_from(&self, place: WalkPlace) {
        self.begin_walk(place.table.0, place.last.map(|last| (place.table, last)));
    }

    fn begin_walk(&self, highest: u32, last: Option<(TableId, Vec<u8>)>) {
        let mut tables = self.catalogue.trees().live;
        tables.retain(|tree| tree.id.0 <= highest);
        tables.sort_unstable_by_key(|tree| tree.id);
        let first = tables.last().map(|tree| tree.id);
        // The table may have been dropped since.
        let last = last.filter(|(table, _)| first == Some(*table)).map(|(_, key)| key);
        let until = self.pages.storage.versions.registry.now();
        *self.lock_walk() = Walk { tables, last, until };
    }

    pub fn walk_place(&self) -> Option<WalkPlace> {
        let walk = self.lock_walk();
        walk.tables.last().map(|tree| WalkPlace { table: tree.id, last: walk.last.clone() })
    }

    /// Whether the old versions of some commits are still to be purged.
    pub fn has_history(&self) -> bool {
        self.pages.storage.versions.stats().history > 0
    }

    fn lock_walk(&self) -> MutexGuard<'_, Walk> {
        locked(&self.walk)
    }

    /// Purges what is due, in one batch. False when there was nothing to do.
    pub fn step(&self) -> Result<bool, EngineError> {
        Ok(self.purge_due()?.is_some() || self.walk_step()?)
    }

    /// Gives the commits that are done with; none when there was nothing to do.
    fn purge_due(&self) -> Result<Option<u64>, EngineError> {
        let storage = &self.pages.storage;
        storage.poison.check()?;
        self.spill();
        let most = storage.settings.load().purge_batch_size as usize;
        let taken = storage.safeguards.take_purge(&storage.versions, most);
        let batch = taken.map_err(|error| EngineError::Io(Failure::new(error)))?;
        let commits = (!batch.is_empty()).then_some(batch.commits);
        if let Err(error) = self.purge(&batch.items) {
            storage.versions.put_back(batch);
            return Err(error);
        }
        storage.versions.finish_purge(batch);
        self.set_delay(commits.is_none());
        Ok(commits)
    }

    /// Writes old versions to their file as long as there are too many in memory. What cannot be
    /// written stays there.
    pub fn spill(&self) {
        while self.pages.storage.versions.log.spill_step().unwrap_or(false) {}
    }

    /// Purges what is due, as far as it was there at the beginning: others may go on writing. The
    /// walk is left where it stands.
    pub fn drain(&self) -> Result<(), EngineError> {
        let mut left = self.pages.storage.versions.stats().history;
        while left > 0 {
            let Some(commits) = self.purge_due()? else { break };
            left = left.saturating_sub(commits);
        }
        Ok(())
    }

    /// `is_blocked` says that a snapshot keeps what is in the history.
    fn set_delay(&self, is_blocked: bool) {
        let storage = &self.pages.storage;
        let delay_us = {
            let settings = storage.settings.load();
            let threads = u64::from(settings.purge_threads.max(1));
            let max_lag = u64::from(settings.max_purge_lag);
            let lag = Lag {
                // Counted only where somebody asks.
                history: if max_lag == 0 { 0 } else { storage.versions.stats().history },
                max_lag,
                max_delay_us: u64::from(settings.max_purge_lag_delay),
                is_blocked,
                in_hand: threads * u64::from(settings.purge_batch_size),
            };
            lag.delay_us(settings.max_purge_lag_version)
        };
        storage.purge_lag_us.store(delay_us, Ordering::Relaxed);
    }

    /// Takes tombstones away, table by table in the order of keys.
    fn purge(&self, items: &[PurgeItem]) -> Result<(), EngineError> {
        let mut sorted: Vec<&PurgeItem> = items.iter().collect();
        // Of several tombstones of a row the newest can be what the leaf holds.
        sorted.sort_by(|a, b| (a.table, &a.key, a.number).cmp(&(b.table, &b.key, b.number)));
        for of_table in sorted.chunk_by(|a, b| a.table == b.table) {
            let Some(tree) = self.catalogue.tree(TableId(of_table[0].table)) else { continue };
            let rows: Vec<(&[u8], u64)> =
                of_table.iter().map(|item| (item.key.as_slice(), item.number)).collect();
            self.purge_rows(&tree, &rows)?;
        }
        Ok(())
    }

    fn purge_rows(&self, tree: &Arc<Tree>, rows: &[(&[u8], u64)]) -> Result<(), EngineError> {
        let mut writes = WriteSet::default();
        let number = writes.number_of(tree)?;
        for (key, version) in rows {
            writes.purge(number, key, *version);
        }
        match commit(&self.pages, &mut writes, Committer::Purge) {
            Ok(_end) => Ok(()),
            Err(EngineError::Table(TableError::Dropped)) => Ok(()),
            Err(EngineError::Request(
                RequestError::BatchTooLarge { .. } | RequestError::BatchTooWide { .. },
            )) if rows.len() > 1 => {
                let (some, others) = rows.split_at(rows.len() / 2);
                self.purge_rows(tree, some)?;
                self.purge_rows(tree, others)
            }
            Err(error) => Err(error),
        }
    }

    /// One step of the walk over the leaves. False when it is over.
    fn walk_step(&self) -> Result<bool, EngineError> {
        // One thread walks: it reads pages, and others would have to wait for that.
        let Ok(mut walk) = self.walk.try_lock() else { return Ok(false) };
        let Some(tree) = walk.tables.last().cloned() else { return Ok(false) };
        let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
        let from = walk.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (from, Bound::Unbounded);
        let mut cells = TreeCursor::new(&self.pages, &tree, range, (Direction::Forward, 0));
        let mut looked_at = 0;
        let last = loop {
            let cell = match cells.next_cell() {
                Ok(Some(cell)) => cell,
                Ok(None) | Err(EngineError::Table(TableError::Dropped)) => break None,
                Err(error) => return Err(error),
            };
            // Of one that was left since, purge is told by the version log when it is due.
            let is_left = |number| cell.is_tombstone() && number <= walk.until;
            if let Some(version) = cell.version().filter(|version| is_left(version.number)) {
                found.push((cell.key.to_vec(), version.number));
            }
            looked_at += 1;
            if looked_at == WALK_ROWS {
                break Some(cell.key.to_vec());
            }
        };
        let rows: Vec<(&[u8], u64)> =
            found.iter().map(|(key, number)| (key.as_slice(), *number)).collect();
        if !rows.is_empty() {
            // When it fails these rows are looked at again.
            self.purge_rows(&tree, &rows)?;
        }
        if last.is_none() {
            walk.tables.pop();
        }
        walk.last = last;
        Ok(true)
    }
}
