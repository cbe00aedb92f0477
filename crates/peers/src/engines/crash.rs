//! Our engine left as a crash would leave it, and opened again.
//!
//! Invariants: between the checkpoint and the end no page is flushed, so that the redo is all there
//! is of the changes; what is read for recovery is not in the page cache; what was acknowledged is
//! looked for afterwards. A page that was flushed after all shows in [`Round::pages_current`].

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use iostrata_engine::{Counter, Engine, Phase, RecoveryReport, Settings, Table};
use rustix::fs::Advice;
use serde::Serialize;

use crate::error::PeerError;
use crate::keys::Numbers;
use crate::plan::Recovery;

const NAME: &str = "iostrata";
const TABLE: &str = "rows";
/// Rows of this size that a bulk load puts on a page of 16 KiB.
const ROWS_PER_PAGE: u64 = 65;
/// Bytes of a value.
const VALUE_BYTES: usize = 230;
/// Updates of one batch.
const BATCH_ROWS: usize = 20;
/// Last updates that are looked for.
const CHECKED_UPDATES: usize = 2_000;

/// One update: the row and the byte that its value repeats.
type Update = (u64, u8);

/// One crash and what opening took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Redo that was applied, in bytes.
    pub redo_bytes: u64,
    /// Records in it.
    pub records: u64,
    /// Pages that it changed.
    pub pages_changed: u64,
    /// Pages that were on the disk already; 0 when none was flushed before the crash.
    pub pages_current: u64,
    /// Seconds of looking for torn pages.
    pub repair_s: f64,
    /// Seconds of reading the redo to its end and sealing that.
    pub seal_s: f64,
    /// Seconds of applying it.
    pub apply_s: f64,
    /// Seconds of reading the tables.
    pub tables_s: f64,
    /// Seconds of freeing what dropped tables had.
    pub reclaim_s: f64,
    /// Seconds until the engine was open.
    pub total_s: f64,
}

/// Loads the pages, writes the redo, drops the engine without closing it, opens it, and takes the
/// time. `seed` distinguishes this round from the others.
///
/// # Errors
/// When the engine refuses, an acknowledged update is missing, or a signal came.
pub fn round(dir: &Path, plan: Recovery, seed: u64, stop: &AtomicBool) -> Result<Round, PeerError> {
    let settings = settings(plan).map_err(PeerError::of(NAME, "set up recovery"))?;
    let last = write(dir, settings.clone(), plan, seed, stop)?;
    forget(dir)?;
    let mut times: Vec<(Phase, f64)> = Vec::new();
    let start = Instant::now();
    let options = Engine::options().settings(settings).progress(|progress| {
        if times.last().is_none_or(|(phase, _)| *phase != progress.phase) {
            times.push((progress.phase, start.elapsed().as_secs_f64()));
        }
    });
    let engine = options.open(dir).map_err(PeerError::of(NAME, "recover"))?;
    let total_s = start.elapsed().as_secs_f64();
    check(&engine, &last)?;
    let round = of(engine.recovery(), &times, total_s);
    engine.close().map_err(PeerError::of(NAME, "close"))?;
    Ok(round)
}

/// Room for all pages and all redo, and nothing that flushes pages by itself.
fn settings(plan: Recovery) -> Result<Settings, iostrata_engine::EngineError> {
    let (pool_bytes, redo_bytes) = (1_536_u64 << 20, plan.redo_bytes.saturating_mul(4));
    let mut settings = Settings::default();
    for (name, value) in [
        ("buffer_pool_size", pool_bytes.to_string().as_str()),
        ("redo_log_capacity", redo_bytes.to_string().as_str()),
        ("adaptive_flushing", "OFF"),
        ("max_dirty_pages_pct", "99"),
        ("idle_flush_pct", "0"),
        ("flush_log_at_trx_commit", "0"),
    ] {
        settings.set(name, value)?;
    }
    Ok(settings)
}

fn write(
    dir: &Path,
    settings: Settings,
    plan: Recovery,
    seed: u64,
    stop: &AtomicBool,
) -> Result<VecDeque<Update>, PeerError> {
    let engine = Engine::open(dir, settings).map_err(PeerError::of(NAME, "open"))?;
    let table = engine.create_table(TABLE).map_err(PeerError::of(NAME, "make the table"))?;
    let rows = plan.pages * ROWS_PER_PAGE;
    table
        .bulk_load((0..rows).map(|row| (row.to_be_bytes(), [0; VALUE_BYTES])))
        .map_err(PeerError::of(NAME, "load"))?;
    engine.checkpoint().map_err(PeerError::of(NAME, "checkpoint"))?;
    let from = engine.counters()[Counter::LsnCurrent];
    let (mut numbers, mut last) = (Numbers::new(seed), VecDeque::new());
    while engine.counters()[Counter::LsnCurrent] - from < plan.redo_bytes {
        if stop.load(Ordering::Relaxed) {
            return Err(PeerError::Interrupted);
        }
        let updates: Vec<Update> =
            (0..BATCH_ROWS).map(|_| (numbers.below(rows), numbers.draw() as u8)).collect();
        // Not waited for: a later commit that is durable covers this one.
        put(&engine, &table, &updates, false)?;
        last.extend(updates);
        last.drain(..last.len().saturating_sub(CHECKED_UPDATES));
    }
    engine
        .set("flush_log_at_trx_commit", "1")
        .map_err(PeerError::of(NAME, "ask for durable commits"))?;
    let end = (0, numbers.draw() as u8);
    put(&engine, &table, &[end], true)?;
    last.push_back(end);
    // What is dirty is lost, as in a crash.
    drop(table);
    engine.abandon();
    Ok(last)
}

fn put(
    engine: &Engine,
    table: &Table,
    updates: &[Update],
    is_awaited: bool,
) -> Result<(), PeerError> {
    let written = (|| {
        let mut batch = engine.batch();
        for (row, byte) in updates {
            batch.put(table, &row.to_be_bytes(), &[*byte; VALUE_BYTES])?;
        }
        if is_awaited { batch.commit() } else { batch.commit_async().map(drop) }
    })();
    written.map_err(PeerError::of(NAME, "commit"))
}

/// Writes the files back and drops them from the page cache.
fn forget(dir: &Path) -> Result<(), PeerError> {
    let entries = std::fs::read_dir(dir).map_err(PeerError::files("list", dir))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            forget(&path)?;
            continue;
        }
        let file = std::fs::File::open(&path).map_err(PeerError::files("open", &path))?;
        file.sync_all().map_err(PeerError::files("sync", &path))?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|error| PeerError::files("drop from the page cache", &path)(error.into()))?;
    }
    Ok(())
}

fn check(engine: &Engine, last: &VecDeque<Update>) -> Result<(), PeerError> {
    let table = engine.table(TABLE).map_err(PeerError::of(NAME, "open the table"))?;
    let wrong = |found: String| PeerError::WrongData { engine: NAME, found };
    let table = table.ok_or_else(|| wrong("the table is not there after recovery".to_owned()))?;
    let newest: HashMap<u64, u8> = last.iter().copied().collect();
    for (row, byte) in newest {
        let found = table.get(&row.to_be_bytes()).map_err(PeerError::of(NAME, "read"))?;
        if found.as_deref() != Some(&[byte; VALUE_BYTES][..]) {
            return Err(wrong(format!("row {row} is not there as it was last acknowledged")));
        }
    }
    Ok(())
}

/// A phase lasts until the next one begins, the last one until the engine is open.
fn of(report: &RecoveryReport, times: &[(Phase, f64)], total_s: f64) -> Round {
    let lasted = |of: Phase| {
        let ends = times.iter().skip(1).map(|(_, begun)| *begun).chain([total_s]);
        let each = times.iter().zip(ends).filter(|((phase, _), _)| *phase == of);
        each.map(|((_, begun), end)| end - begun).fold(0.0, |sum, one| sum + one)
    };
    Round {
        redo_bytes: report.end_lsn - report.checkpoint_lsn,
        records: report.records,
        pages_changed: report.pages_changed,
        pages_current: report.pages_current,
        repair_s: lasted(Phase::Repair),
        seal_s: lasted(Phase::Seal),
        apply_s: lasted(Phase::Apply),
        tables_s: lasted(Phase::Tables),
        reclaim_s: lasted(Phase::Reclaim),
        total_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_lasts_until_the_next_begins() {
        let times =
            [(Phase::Repair, 0.0), (Phase::Seal, 1.0), (Phase::Apply, 3.0), (Phase::Done, 7.0)];
        let round = of(&RecoveryReport::default(), &times, 7.5);
        assert_eq!((round.repair_s, round.seal_s, round.apply_s), (1.0, 2.0, 4.0));
        assert_eq!((round.tables_s, round.total_s), (0.0, 7.5));
    }

    #[test]
    fn what_was_acknowledged_is_there_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Recovery { redo_bytes: 4 << 20, pages: 200, rounds: 1 };
        let stop = AtomicBool::new(false);
        let found = round(dir.path(), plan, 1, &stop).unwrap();
        assert!(found.redo_bytes >= plan.redo_bytes, "{found:?}");
        assert!(found.pages_changed >= plan.pages, "{found:?}");
        assert_eq!(found.pages_current, 0, "a page was flushed: {found:?}");
        assert!(found.total_s > 0.0 && found.apply_s <= found.total_s, "{found:?}");
        let dir = tempfile::tempdir().unwrap();
        stop.store(true, Ordering::SeqCst);
        assert!(matches!(round(dir.path(), plan, 1, &stop), Err(PeerError::Interrupted)));
    }

    #[test]
    fn a_lost_update_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path(), Settings::default()).unwrap();
        let table = engine.create_table(TABLE).unwrap();
        put(&engine, &table, &[(3, 1), (4, 1)], true).unwrap();
        assert!(check(&engine, &VecDeque::from([(3, 9), (3, 1), (4, 1)])).is_ok());
        assert!(check(&engine, &VecDeque::from([(3, 9)])).is_err());
        assert!(check(&engine, &VecDeque::from([(5, 1)])).is_err());
        drop(table);
        engine.close().unwrap();
    }
}
