//! What the engine says of itself.

use std::path::Path;

use iostrata_database::target::TargetFacts;
use iostrata_engine::{Counter, Engine, FlushLogAt, Settings};
use iostrata_innodb::{CATALOGUE, FlushMethod, SettingError};
use iostrata_run::{ResourceUse, TransactionDurability};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// The facts of an open engine.
///
/// # Errors
/// None, as long as the catalogue knows its own names.
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

/// Bytes of the data files in a directory; none where they cannot be looked at.
pub(crate) fn data_bytes(directory: &Path) -> Option<u64> {
    let is_data = |name: &str| name.starts_with("data-");
    let files = std::fs::read_dir(directory).ok()?.flatten();
    let data = files.filter(|file| file.file_name().to_str().is_some_and(is_data));
    let sizes: Vec<u64> =
        data.map(|file| Some(file.metadata().ok()?.len())).collect::<Option<_>>()?;
    (!sizes.is_empty()).then(|| sizes.iter().sum())
}
