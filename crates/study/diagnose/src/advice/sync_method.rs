//! How the server opens, writes and flushes its files.
//!
//! O_DIRECT is InnoDB's default on Linux and right wherever it is honoured: nothing is said then.

use iostrata_run::host::PathKind;
use iostrata_run::{Advice, ProbeHost};
use iostrata_stats::units::{count, percent};

use super::{Found, SettingPlace, line};
use crate::finding::cache::DIRECT_IO_IGNORED;
use crate::pair::{DSYNC_BEATS_FDATASYNC, FSYNC_JOURNAL_COST};
use iostrata_plan::rung;

/// The mount option that keeps data out of the journal.
const DATA_JOURNAL: &str = "data=journal";

fn journals_data(host: &ProbeHost) -> bool {
    host.path.mount_options.iter().any(|option| option == DATA_JOURNAL)
}

/// The journal for metadata alone: direct I/O is then done.
pub(super) fn data_journal(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = DIRECT_IO_IGNORED;
    found.get(id).filter(|_| journals_data(host))?;
    let text = format!(
        "{DATA_JOURNAL} writes every page twice and through the page cache. data=ordered, the \
         default, journals metadata alone and lets direct I/O through; the server's doublewrite \
         protects pages in either case. It takes a mount, not a remount."
    );
    let undo = format!("mount with {DATA_JOURNAL} again");
    Some(line("data", "ordered", SettingPlace::MountOption, &[id], text, &undo))
}

/// Nothing is said of places in memory, where a mount option brings direct I/O back, or of ZFS,
/// whose own cache answers either way. MariaDB 11.0 and later has a switch of its own for it.
pub(super) fn flush_method(found: &Found<'_>, host: &ProbeHost) -> Vec<Advice> {
    let id = DIRECT_IO_IGNORED;
    let is_zfs = host.path.file_system.as_deref() == Some("zfs");
    if host.path.kind == PathKind::Tmpfs || journals_data(host) || is_zfs {
        return Vec::new();
    }
    let text = match found.word(id, "behaviour") {
        None => return Vec::new(),
        Some("refused") => "O_DIRECT is refused here; say so instead of relying on the fallback.",
        Some(_) => {
            "O_DIRECT is accepted and not done here. With O_DIRECT some servers do not flush the \
             doublewrite file, because direct writes need none of the page cache's flushing; with \
             fsync they do."
        }
    };
    let one = |setting: &str, value: &str, undo: &str| {
        line(setting, value, SettingPlace::MyCnf, &[id], text.to_owned(), undo)
    };
    vec![
        one("innodb_flush_method", "fsync", "innodb_flush_method=O_DIRECT"),
        one("innodb_data_file_buffering", "ON", "SET GLOBAL innodb_data_file_buffering=OFF"),
    ]
}

pub(super) fn fdatasync(found: &Found<'_>) -> Option<Advice> {
    let id = FSYNC_JOURNAL_COST;
    let pair = (found.word(id, "from")?, found.word(id, "to")?);
    if pair != (rung::COMMIT_FDATASYNC, rung::COMMIT_FSYNC) {
        return None;
    }
    let (slow, fast) = (found.number(id, "to_value")?, found.number(id, "from_value")?);
    let text = format!(
        "fdatasync makes {} commits per second durable, fsync {}. It keeps everything that is \
         needed to read the data back. MariaDB calls fdatasync anyway.",
        count(fast),
        count(slow)
    );
    let undo = "SET GLOBAL innodb_use_fdatasync=OFF";
    Some(line("innodb_use_fdatasync", "ON", SettingPlace::MyCnf, &[id], text, undo))
}

/// Share of the commits of 16 committers by fdatasync that O_DSYNC must make, too.
const AS_GOOD: f64 = 0.95;

/// Only where group commit does not lose what one committer gains.
pub(super) fn write_through(found: &Found<'_>) -> Option<Advice> {
    let id = DSYNC_BEATS_FDATASYNC;
    let loss = found.get(id)?.effect_pct?;
    let (dsync, fdatasync) =
        (found.number(id, "dsync_of_16")?, found.number(id, "fdatasync_of_16")?);
    if dsync < AS_GOOD * fdatasync {
        return None;
    }
    let text = format!(
        "With one committer O_DSYNC is durable in one trip to the device; fdatasync loses {} \
         against it. 16 committers make {} commits/s by O_DSYNC and {} by fdatasync. Group commit \
         shares a sync: compare under your load before you keep it.",
        percent(loss),
        count(dsync),
        count(fdatasync)
    );
    let undo = "innodb_log_file_write_through=OFF";
    Some(line("innodb_log_file_write_through", "ON", SettingPlace::MyCnf, &[id], text, undo))
}
