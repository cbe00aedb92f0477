//! What commits wait for: the log buffer, and the syncs of two logs.

use iostrata_plan::Layer;
use iostrata_run::{FindingKind, Risk, StallCause};
use iostrata_stats::units::{bytes, count, percent, seconds, times};

use super::evidence::{Evidence, finding};
use super::recording::{Recording, is_on};
use super::{Concluded, advised};
use crate::server_setting::Family;

const BUFFER: &str = "log_buffer_small";
const BINLOG: &str = "binlog_synced_per_commit";
const MIB: f64 = 1_048_576.0;
/// Bounds of an advised log buffer.
const BUFFER_BYTES: [f64; 2] = [64.0 * MIB, 1024.0 * MIB];
/// Share of the samples in which a sync is in flight.
const SYNCING_SHARE_MIN: f64 = 0.5;

/// Commits waited until the log buffer was written.
pub(super) fn log_buffer(recording: &Recording<'_>) -> Option<Concluded> {
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
    let mut evidence = Evidence::default()
        .with("log_buffer_bytes", size)
        .with("log_buffer_stalls", stalls)
        .with("log_buffer_stalled_s", stalled_s)
        .with("holds_s", holds);
    if let Some(redo) = &redo {
        evidence = evidence.measured("redo_bytes_per_s", redo);
    }
    let wanted = (4.0 * size).clamp(BUFFER_BYTES[0], BUFFER_BYTES[1]);
    let why = (BUFFER, text.clone(), Risk::None);
    let advice = (wanted > size)
        .then(|| advised::set(recording, "log_buffer_size", wanted as u64, why))
        .flatten();
    let n = redo.map_or(0, |redo| redo.n);
    let finding = finding(BUFFER, FindingKind::Loss, Layer::Engine, text, (n, evidence));
    Some(Concluded { finding, advice: advice.into_iter().collect() })
}

/// Two logs are synced for each group of commits, and syncs are what is waited for.
pub(super) fn binlog(recording: &Recording<'_>) -> Option<Concluded> {
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
    let mut evidence = Evidence::default()
        .with("share_syncing", syncing)
        .with("device_stalls", stalls)
        .with("device_stalled_s", stalled_s)
        .with("sync_binlog", synced);
    let n = tps.as_ref().map_or(0, |tps| tps.n);
    for (name, one) in [("device_flushes_per_s", &flushes), ("tps", &tps)] {
        if let Some(one) = one {
            evidence = evidence.measured(name, one);
        }
    }
    let kind = FindingKind::Sizing;
    Some(Concluded::only(finding(BINLOG, kind, Layer::Transactions, text, (n, evidence))))
}
