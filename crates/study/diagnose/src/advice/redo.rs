//! Redo sizes over write rates: a disk has no redo rate, the load has.
//!
//! A log should hold half an hour of redo, so that pages are written once for many changes, and its
//! dirty pages must be flushable in a time that a planned restart can wait.

use iostrata_run::{Finding, RedoRow};

use super::Found;
use crate::finding::sizing::FLUSH_CAPACITY;
use crate::withheld::is_withheld;

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_024.0 * MIB;
/// Redo per second of a small, a usual, a busy and an extreme server.
const RATES_MIB_PER_S: [f64; 4] = [1.0, 5.0, 20.0, 100.0];
/// How much redo the log should hold, in seconds.
pub(crate) const HOLDS_S: f64 = 1_800.0;
/// Bounds of a sensible log: below, every burst stalls; above, MySQL takes no larger one. MariaDB
/// names no bound.
pub(crate) const CAPACITY_BYTES: [f64; 2] = [0.25 * GIB, 512.0 * GIB];
/// The largest that MySQL took before 8.0.34.
pub(crate) const CAPACITY_BYTES_MAX_OLD: f64 = 128.0 * GIB;
/// Redo per page that it leaves dirty. OLTP makes a few hundred bytes per change and changes a page
/// several times before it is flushed; insert loads make more per page and drain faster.
const REDO_BYTES_PER_DIRTY_PAGE: f64 = 4_096.0;

/// Bytes rounded to what a person would write: quarters of a GiB, then whole ones.
pub(crate) fn whole(bytes: f64) -> f64 {
    let step = if bytes < 4.0 * GIB { GIB / 4.0 } else { GIB };
    (bytes / step).round().max(1.0) * step
}

/// The table for the measured flush capacity; empty where none was measured.
pub fn redo_table(findings: &[Finding]) -> Vec<RedoRow> {
    let found = Found { findings };
    let pages_per_s = found.number(FLUSH_CAPACITY, "pages_per_s");
    let Some(pages_per_s) = pages_per_s.filter(|&pages| pages > 0.0 && !is_withheld(findings))
    else {
        return Vec::new();
    };
    RATES_MIB_PER_S
        .iter()
        .map(|mib| {
            let rate = mib * MIB;
            let capacity = (rate * HOLDS_S).clamp(CAPACITY_BYTES[0], CAPACITY_BYTES[1]);
            RedoRow {
                redo_bytes_per_s: rate,
                redo_capacity_bytes: capacity as u64,
                drain_s: capacity / REDO_BYTES_PER_DIRTY_PAGE / pages_per_s,
            }
        })
        .collect()
}
