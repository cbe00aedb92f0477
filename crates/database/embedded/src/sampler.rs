//! What the engine reports about itself, and its activity, from its counters: of an engine in this
//! process, or of one that another process holds, by the status page that it publishes.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use iostrata_database::target::{
    FileCounts, FileTable, OldestTransaction, Sampler, TargetError, TargetFacts, TargetSample,
    Trouble,
};
use iostrata_engine::{Engine, FlushLogAt, Settings, read_status};
use iostrata_innodb::{CATALOGUE, Counter, Counters, FlushMethod, SettingError};
use iostrata_run::{FileClass, FileIoSource, ResourceUse, TransactionDurability};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::error::told;

/// A page that is older was left by an engine that has ended, in microseconds: one is published
/// every second. Where its process is not seen, which may be hidden from this one, less is enough.
const STALE_US: u64 = 5_000_000;
const STALE_UNSEEN_US: u64 = 1_500_000;

/// Reads the counters of an engine.
pub(crate) struct CounterSampler {
    engine: Engine,
}

impl CounterSampler {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine }
    }
}

impl Sampler for CounterSampler {
    fn sample(&mut self) -> Result<TargetSample, TargetError> {
        let all = self.engine.counters();
        let started_s = unix_us().map(|us| (us / 1_000_000).saturating_sub(all[Counter::Uptime]));
        Ok(TargetSample { started_s, ..sample_of(&all, &self.engine.settings()) })
    }
}

/// Microseconds since 1970; nothing on a machine whose clock stands before that.
fn unix_us() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}

/// The sample of all counters, without the times.
fn sample_of(all: &Counters, settings: &Settings) -> TargetSample {
    // A delay of 0 leaves the limit without effect.
    let holds_back = settings.max_purge_lag > 0 && settings.max_purge_lag_delay > 0;
    TargetSample {
        checkpoint_age_bytes: Some(all[Counter::CheckpointAge]),
        checkpoint_age_limit_bytes: Some(all[Counter::CheckpointMaxAge]),
        checkpoint_age_async_bytes: Some(all[Counter::LogMaxModifiedAgeAsync]),
        checkpoint_age_sync_bytes: Some(all[Counter::LogMaxModifiedAgeSync]),
        redo_capacity_bytes: Some(settings.redo_log_capacity),
        redo_end_bytes: Some(all[Counter::LsnCurrent]),
        redo_durable_bytes: Some(all[Counter::LsnFlushed]),
        redo_flushes: Some(all[Counter::LogFlushes]),
        redo_flush_us: Some(all[Counter::LogFlushTimeNs] / 1000),
        redo_waits: Some(all[Counter::AdmitWaits]),
        log_buffer_waits: Some(all[Counter::LogWaits]),
        free_page_waits: Some(all[Counter::BufferPoolWaitFree]),
        dirty_pages: Some(all[Counter::BufferPoolPagesDirty]),
        pages_flushed: Some(all[Counter::BufferPoolPagesFlushed]),
        pages_flushed_adaptive: Some(all[Counter::BufferFlushAdaptiveTotalPages]),
        pages_flushed_lru: Some(all[Counter::BufferLruBatchFlushTotalPages]),
        pages_flushed_background: Some(all[Counter::BufferFlushBackgroundTotalPages]),
        pages_flushed_for_redo: Some(all[Counter::BufferFlushSyncTotalPages]),
        furious_flushes: Some(all[Counter::BufferFlushSync]),
        pool_pages: Some(all[Counter::BufferPoolPagesTotal]),
        history_list_length: Some(all[Counter::HistoryListLength]),
        history_list_limit: holds_back.then_some(settings.max_purge_lag.into()),
        purged: Some(all[Counter::TrxPurged]),
        pending_reads: Some(all[Counter::DataPendingReads]),
        pending_writes: Some(all[Counter::DataPendingWrites]),
        transactions: Some(all[Counter::Commits] + all[Counter::TrxRollbacks]),
        row_locks_waiting: Some(all[Counter::RowLockCurrentWaits]),
        oldest_transaction: Some(OldestTransaction {
            age_s: all[Counter::OldestSnapshotAge],
            id: Some(all[Counter::OldestSnapshotTrx]).filter(|id| *id > 0),
        }),
        files: Some(files_of(all, settings)),
        ..TargetSample::default()
    }
}

/// What it did with its files.
fn files_of(all: &Counters, settings: &Settings) -> FileTable {
    let bytes = |pages: Counter| Some(all[pages] * u64::from(settings.page_size));
    let mut table = FileTable::new(FileIoSource::InnodbStatus);
    *table.entry(FileClass::Data) = FileCounts {
        reads: Some(all[Counter::PagesRead]),
        read_bytes: bytes(Counter::PagesRead),
        writes: Some(all[Counter::PagesWritten]),
        written_bytes: bytes(Counter::PagesWritten),
        ..FileCounts::default()
    };
    *table.entry(FileClass::Redo) = FileCounts {
        writes: Some(all[Counter::LogWrites]),
        written_bytes: Some(all[Counter::OsLogWritten]),
        syncs: Some(all[Counter::OsLogFsyncs]),
        ..FileCounts::default()
    };
    *table.entry(FileClass::Doublewrite) = FileCounts {
        writes: Some(all[Counter::DblwrWrites]),
        written_bytes: bytes(Counter::DblwrPagesWritten),
        ..FileCounts::default()
    };
    table
}

/// Reads the status page of an engine that another process holds. The engine is not touched.
#[derive(Debug)]
pub struct PublishedSampler {
    directory: PathBuf,
    name: String,
    settings: Settings,
}

impl PublishedSampler {
    /// The engine in a directory.
    ///
    /// # Errors
    /// No engine is there, or no process holds it.
    pub fn open(directory: &Path) -> Result<Self, TargetError> {
        let name = format!("engine:{}", directory.display());
        let kept = match directory.is_dir() {
            true => Engine::kept_settings(directory)
                .map_err(|error| told(error, &name, "read the engine's settings"))?,
            false => None,
        };
        let Some(settings) = kept else {
            let text = format!("{} contains no engine", directory.display());
            let fix = "name the directory of an engine; `iostrata tpcc prepare` makes one";
            return Err(TargetError::not_ready(&name, "missing", text, fix));
        };
        let mut sampler = Self { directory: directory.to_owned(), name, settings };
        sampler.sample()?;
        Ok(sampler)
    }

    /// What the engine is. Settings are those that are kept with its data; a process may have
    /// opened it with others.
    pub fn facts(&self) -> TargetFacts {
        let value = |name: &str| Some((name.to_owned(), self.settings.get(name).ok()?));
        TargetFacts {
            name: self.name.clone(),
            flavour: "engine".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: CATALOGUE.iter().filter_map(|setting| value(setting.name)).collect(),
            ..TargetFacts::default()
        }
    }

    fn gone(&self, text: String) -> TargetError {
        let fix = "run a workload on it, for example `iostrata tpcc run --target engine:DIR`";
        TargetError {
            trouble: Trouble::Gone,
            code: "not_running".to_owned(),
            target: self.name.clone(),
            text,
            fix: Some(fix.to_owned()),
        }
    }
}

impl Sampler for PublishedSampler {
    fn sample(&mut self) -> Result<TargetSample, TargetError> {
        let Ok(page) = read_status(&self.directory) else {
            return Err(self.gone("no process has published its counters here".to_owned()));
        };
        let age_us = unix_us().map_or(0, |now| now.saturating_sub(page.unix_us));
        let is_seen = Path::new("/proc").join(page.process_id.to_string()).exists();
        if age_us > if is_seen { STALE_US } else { STALE_UNSEEN_US } {
            return Err(self.gone(format!(
                "no process holds this engine: process {} published its counters {} s ago and \
                 nothing since",
                page.process_id,
                age_us / 1_000_000
            )));
        }
        let all = &page.counters;
        let started_s = (page.unix_us / 1_000_000).saturating_sub(all[Counter::Uptime]);
        let sample = sample_of(all, &self.settings);
        Ok(TargetSample { started_s: Some(started_s), taken_us: Some(page.unix_us), ..sample })
    }
}

// What the engine reports about itself.

/// The facts of an open engine.
///
/// # Errors
/// None, as long as the catalogue has its own names.
pub(crate) fn facts(
    engine: &Engine,
    name: &str,
    takes_direct: bool,
) -> Result<TargetFacts, SettingError> {
    let settings = engine.settings();
    let value = |name: &'static str| Ok((name.to_owned(), settings.get(name)?));
    let listed = CATALOGUE.iter().map(|setting| value(setting.name));
    Ok(TargetFacts {
        name: name.to_owned(),
        flavour: "engine".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        durability: durability(&settings, takes_direct),
        settings: listed.collect::<Result<_, SettingError>>()?,
    })
}

fn durability(settings: &Settings, takes_direct: bool) -> TransactionDurability {
    let method = settings.flush_method;
    let is_direct =
        matches!(method, FlushMethod::Direct | FlushMethod::DirectNoFsync | FlushMethod::AllDirect);
    let flush_method = match is_direct && !takes_direct {
        true => format!("{method}, but buffered: the file system takes no direct I/O"),
        false => method.to_string(),
    };
    TransactionDurability {
        flush_log_at_commit: Some(match settings.flush_log_at_trx_commit {
            FlushLogAt::Timeout => 0,
            FlushLogAt::Commit => 1,
            FlushLogAt::Written => 2,
        }),
        doublewrite: Some(settings.doublewrite.to_string()),
        flush_method: Some(flush_method),
        binlog: Some(false),
        sync_binlog: None,
    }
}

/// What the engine has used since it was opened; its threads are this process's.
pub(crate) fn used(engine: &Engine) -> ResourceUse {
    let counters = engine.counters();
    let count = |counter: Counter| Some(counters[counter] as f64);
    let page_bytes = f64::from(engine.settings().page_size);
    let pages = |counter| count(counter).map(|pages| pages * page_bytes / 16_384.0);
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    ResourceUse {
        redo_bytes: count(Counter::OsLogWritten),
        redo_syncs: count(Counter::OsLogFsyncs),
        redo_and_data_syncs: None,
        binlog_syncs: Some(0.0),
        page_writes: pages(Counter::PagesWritten),
        doublewrite_pages: pages(Counter::DblwrPagesWritten),
        page_reads: pages(Counter::PagesRead),
        cpu_us: Some(cpu.tv_sec as f64 * 1e6 + cpu.tv_nsec as f64 / 1e3),
    }
}

/// Whether the file system of a directory opens this file of it for direct I/O. One that cannot be
/// opened at all speaks against nothing.
pub(crate) fn takes_direct(directory: &Path, file: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let opened = openat(CWD, directory.join(file), flags, Mode::empty());
    !matches!(opened, Err(Errno::INVAL))
}

/// Bytes of the data files in a directory; none where they cannot be read.
pub(crate) fn data_bytes(directory: &Path) -> Option<u64> {
    let is_data = |name: &str| name.starts_with("data-");
    let files = std::fs::read_dir(directory).ok()?.flatten();
    let data = files.filter(|file| file.file_name().to_str().is_some_and(is_data));
    let sizes: Vec<u64> =
        data.map(|file| Some(file.metadata().ok()?.len())).collect::<Option<_>>()?;
    (!sizes.is_empty()).then(|| sizes.iter().sum())
}
