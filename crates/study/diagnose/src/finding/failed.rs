//! Storage that failed or filled up while it was measured.
//!
//! Invariant: a fact of the run, there as soon as one request failed. Nothing is concluded about
//! changes beside it.

use iostrata_run::{Finding, Unavailable, UnavailableCause};
use iostrata_spec::Layer;

use super::FindingId;
use super::statement::{WithEvidence, caution};
use crate::case::Case;

pub(super) fn storage_failed(case: &Case<'_, '_>) -> Option<Finding> {
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
    let found = caution(FindingId::StorageFailed, layer, 1, text);
    Some(
        found.with("during", failed.what.clone()).with("kernel_lines", failed.kernel_lines.clone()),
    )
}
