//! Room that is short, and storage that filled up or failed while it was measured.

use iostrata_plan::Layer;
use iostrata_run::{Unavailable, UnavailableCause};
use iostrata_stats::units::bytes;

use crate::case::Case;
use crate::statement::Statement;

/// The name of storage that failed in the catalogue.
pub(crate) const STORAGE_FAILED: &str = "storage_failed";
const GIB: u64 = 1 << 30;
/// Less than this share of the file system is little, in percent, unless it is a lot in itself.
const FREE_PCT_MIN: f64 = 10.0;
/// Free room from which on no share is little: logs and temporary tables of a large server fit.
const FREE_BYTES_PLENTY: u64 = 50 * GIB;
/// Less than this is little for a database wherever half of the file system is already used.
const FREE_BYTES_MIN: u64 = GIB;

pub(crate) fn nearly_full(case: &Case<'_, '_>) -> Option<Statement> {
    let path = &case.host.path;
    let (free, total) = (path.free_bytes?, path.total_bytes.filter(|total| *total > 0)?);
    let free_pct = free as f64 / total as f64 * 100.0;
    let small_share = free_pct < FREE_PCT_MIN && free < FREE_BYTES_PLENTY;
    let small_rest = free < FREE_BYTES_MIN && free_pct < 50.0;
    if !small_share && !small_rest {
        return None;
    }
    let measured = if small_rest {
        " The files measured here had to be small, so that caches below may have answered part of \
         it, and what is free lies in pieces."
    } else {
        ""
    };
    let text = format!(
        "The file system is nearly full: {} of {} are free.{measured} A server stops when its redo \
         log, binary log or temporary tables find no room.",
        bytes(free as f64),
        bytes(total as f64)
    );
    Some(
        Statement::new(Layer::Filesystem, 0, text)
            .with("free_bytes", free)
            .with("total_bytes", total),
    )
}

/// A fact of the run, there as soon as one request failed; no conclusion is drawn from other
/// changes then.
pub(crate) fn storage_failed(case: &Case<'_, '_>) -> Option<Statement> {
    let failed: &Unavailable = case.log.unavailable().iter().find(|one| one.ended_it())?;
    let (layer, what) = match failed.cause {
        UnavailableCause::NoRoom => (Layer::Filesystem, "The file system filled up"),
        _ => (Layer::Device, "The storage failed"),
    };
    let kernel = match failed.kernel_lines.as_slice() {
        [] => String::new(),
        lines => format!(" The kernel: {}.", lines.join("; ")),
    };
    let text = format!("{what} while it was measured: {}.{kernel}", failed.why);
    let found = Statement::new(layer, 1, text);
    Some(
        found.with("during", failed.what.clone()).with("kernel_lines", failed.kernel_lines.clone()),
    )
}
