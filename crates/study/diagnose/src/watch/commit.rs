//! What commits wait for: the log buffer, and the syncs of two logs.

use iostrata_plan::Layer;
use iostrata_run::{Risk, StallCause};
use iostrata_stats::units::{bytes, count, percent, seconds, times};

use super::advised;
use super::recording::{Recording, is_on};
use crate::server_setting::Family;
use crate::statement::Statement;

const MIB: f64 = 1_048_576.0;
/// Bounds of an advised log buffer.
const BUFFER_BYTES: [f64; 2] = [64.0 * MIB, 1024.0 * MIB];
/// Share of the samples in which a sync is in flight.
const SYNCING_SHARE_MIN: f64 = 0.5;

/// Commits waited until the log buffer was written.
pub(crate) fn log_buffer(recording: &Recording<'_>) -> Option<Statement> {
    let (stalls, stalled_s) = recording.stalls(StallCause::LogBuffer);
    let size = recording.number("log_buffer_size").filter(|size| *size > 0.0)?;
    if stalls == 0 {
        return None;
    }
    let redo = recording.mean(|sample| sample.redo_bytes_per_s);
    let holds = redo.as_ref().filter(|redo| redo.value > 0.0).map(|redo| size / redo.value);
    let text = format!(
        "The log buffer of {} was full and stalled commits {} ({}){}.",
        bytes(size),
        times(stalls),
        seconds(stalled_s),
        holds.map(|s| format!("; it holds {} of redo", seconds(s))).unwrap_or_default(),
    );
    let wanted = (4.0 * size).clamp(BUFFER_BYTES[0], BUFFER_BYTES[1]);
    let why = (text.clone(), Risk::None);
    let advice = (wanted > size)
        .then(|| advised::set(recording, "log_buffer_size", wanted as u64, why))
        .flatten();
    let said = Statement::new(Layer::Engine, redo.as_ref().map_or(0, |redo| redo.n), text)
        .with("log_buffer_bytes", size)
        .with("log_buffer_stalls", stalls)
        .with("log_buffer_stalled_s", stalled_s)
        .with("holds_s", holds)
        .measured("redo_bytes_per_s", redo.as_ref());
    Some(said.advising(advice))
}

/// Two logs are synced for each group of commits, and syncs are what is waited for.
pub(crate) fn binlog(recording: &Recording<'_>) -> Option<Statement> {
    let is_logged = is_on(recording.variable("log_bin")?)?;
    let synced: f64 = recording.variable("sync_binlog")?.parse().ok()?;
    let commits = recording.number("flush_log_at_trx_commit")?;
    if !is_logged || synced != 1.0 || commits != 1.0 {
        return None;
    }
    let syncing = recording.share(|sample| Some(sample.pending_syncs? > 0))?;
    let (stalls, stalled_s) = recording.stalls(StallCause::Device);
    if syncing < SYNCING_SHARE_MIN && stalls == 0 {
        return None;
    }
    let flushes = recording.mean(|sample| sample.device.as_ref()?.flushes_per_s);
    let tps = recording.mean(|sample| sample.tps);
    let text = format!(
        "Each group of commits syncs the binary log and the redo log, and a sync was in flight in \
         {} of the samples{}. Both syncs keep what was committed. Larger groups share them: \
         {}. Leaving the binary log off (skip_log_bin) ends replication and point-in-time recovery.",
        percent(100.0 * syncing),
        flushes
            .as_ref()
            .map(|rate| format!(" ({} flushes of the device per second)", count(rate.value)))
            .unwrap_or_default(),
        match recording.family {
            Family::MariaDb => "binlog_commit_wait_count and binlog_commit_wait_usec",
            _ => "binlog_group_commit_sync_delay",
        },
    );
    let said = Statement::new(Layer::Transactions, tps.as_ref().map_or(0, |tps| tps.n), text)
        .with("share_syncing", syncing)
        .with("device_stalls", stalls)
        .with("device_stalled_s", stalled_s)
        .with("sync_binlog", synced)
        .measured("device_flushes_per_s", flushes.as_ref())
        .measured("tps", tps.as_ref());
    Some(said)
}
