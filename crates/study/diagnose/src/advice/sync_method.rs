//! How the server opens, writes and flushes its files.
//!
//! O_DIRECT is InnoDB's default on Linux and right wherever it is honoured: nothing is said then.

use iostrata_run::host::PathKind;
use iostrata_run::{Advice, ProbeHost};
use iostrata_units::{count, percent};

use super::{Found, SettingPlace, line};
use crate::finding::FindingId;
use iostrata_spec::rung;

/// The mount option that keeps data out of the journal.
const DATA_JOURNAL: &str = "data=journal";

fn journals_data(host: &ProbeHost) -> bool {
    host.path.mount_options.iter().any(|option| option == DATA_JOURNAL)
}

/// The journal for metadata alone: direct I/O is then done.
pub(super) fn data_journal(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = FindingId::DirectIoIgnored;
    found.get(id).filter(|_| journals_data(host))?;
    let text = format!(
        "{DATA_JOURNAL} writes every page twice and through the page cache. data=ordered, the \
         default, journals metadata alone and lets direct I/O through; the server's doublewrite \
         protects pages in either case. It takes a mount, not a remount."
    );
    let undo = format!("mount with {DATA_JOURNAL} again");
    Some(line("data", "ordered", SettingPlace::MountOption, &[id], text, &undo))
}

/// Nothing is said of places in memory, or where a mount option brings direct I/O back.
pub(super) fn flush_method(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = FindingId::DirectIoIgnored;
    if host.path.kind == PathKind::Tmpfs || journals_data(host) {
        return None;
    }
    let text = match found.word(id, "behaviour")? {
        "refused" => "O_DIRECT is refused here; say so instead of relying on the fallback.",
        _ => {
            "O_DIRECT is accepted and not done here. With O_DIRECT some servers do not flush the \
             doublewrite file, because direct writes need none of the page cache's flushing; with \
             fsync they do."
        }
    };
    let undo = "innodb_flush_method=O_DIRECT";
    Some(line("innodb_flush_method", "fsync", SettingPlace::MyCnf, &[id], text.to_owned(), undo))
}

pub(super) fn fdatasync(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::FsyncJournalCost;
    let pair = (found.word(id, "from")?, found.word(id, "to")?);
    if pair != (rung::COMMIT_FDATASYNC, rung::COMMIT_FSYNC) {
        return None;
    }
    let (slow, fast) = (found.number(id, "to_value")?, found.number(id, "from_value")?);
    let text = format!(
        "fdatasync makes {} commits per second durable, fsync {}. It keeps everything that is \
         needed to read the data back (MySQL 8.0.26 and later; the default from 8.4 on).",
        count(fast),
        count(slow)
    );
    let undo = "SET GLOBAL innodb_use_fdatasync=OFF";
    Some(line("innodb_use_fdatasync", "ON", SettingPlace::MyCnf, &[id], text, undo))
}

pub(super) fn write_through(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::DsyncBeatsFdatasync;
    let loss = found.get(id)?.effect_pct?;
    let text = format!(
        "O_DSYNC makes commits durable in one trip to the device; fdatasync loses {} against it. \
         MariaDB 11.0 and later can do that for the redo log alone.",
        percent(loss)
    );
    let undo = "innodb_log_file_write_through=OFF";
    Some(line("innodb_log_file_write_through", "ON", SettingPlace::MariaDbCnf, &[id], text, undo))
}

pub(super) fn native_aio(found: &Found<'_>) -> Option<Advice> {
    let id = FindingId::ApiOverhead;
    let pair = (found.word(id, "from")?, found.word(id, "to")?);
    if pair != (rung::READ_16K_SYNC_16, rung::READ_16K_LIBAIO_16) {
        return None;
    }
    let loss = found.get(id)?.effect_pct?;
    let text = format!(
        "libaio loses {} against as many threads that read one after the other: submitting blocks \
         here.",
        percent(loss)
    );
    let undo = "innodb_use_native_aio=ON";
    Some(line("innodb_use_native_aio", "OFF", SettingPlace::MyCnf, &[id], text, undo))
}
