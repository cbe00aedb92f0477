//! Factorial studies: volumes are made, points measured in random interleaved order, everything put
//! back.
//!
//! Purpose: run a [`StudyPlan`](iostrata_plan::study::StudyPlan) within its budget. Invariants:
//! every change of the system goes through the session's journal; every finished replicate is
//! stored before the next begins, so that a killed study goes on where it was; what is not possible
//! here is a result with its reason. It draws no conclusion: `diagnose` does.

mod bench;
mod calibrate;
mod ceiling;
mod conditions;
mod database;
mod emulated;
mod layout;
mod pace;
mod probes;
mod rounds;
mod second;
mod transactions;
mod volume;

use std::path::PathBuf;

use iostrata_change::{Change, DropCaches};
use iostrata_plan::study::StudyPlan;
use iostrata_run::Event;

use crate::StudyError;

pub use database::{DatabasePlace, Databases, StudiedDatabase};
pub use layout::{VolumeLayout, filled_bytes, lay_out, space_bytes};
pub use rounds::run;

/// Where a study makes its volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePlace {
    /// The directory of the backing files and mount points.
    pub dir: PathBuf,
    /// A block device to be used instead of backing files.
    pub device: Option<PathBuf>,
    /// Whether the user named that very device to be overwritten, whatever it holds.
    pub overwrite_device: bool,
    /// This program: it runs the processes of workers and serves emulated disks.
    pub program: PathBuf,
    /// Bytes of memory that emulated disks may fill in all; what is beyond lies in files of `dir`.
    pub memory_bytes: u64,
}

/// A study to be run or to be gone on with.
#[derive(Clone, Debug)]
pub struct StudyTask<'a> {
    /// What is measured.
    pub plan: &'a StudyPlan,
    /// Where its volumes are made.
    pub place: VolumePlace,
    /// What an earlier part of the same run stored.
    pub done: &'a [Event],
}

/// The changes in the order in which they are made first: the volumes, then what is switched from
/// point to point, then what watching needs.
///
/// # Errors
/// When the plan names a setting that does not exist, or a disk cannot be served there.
pub fn changes_of(plan: &StudyPlan, place: &VolumePlace) -> Result<Vec<Change>, StudyError> {
    let layouts = lay_out(plan, place)?;
    let mut changes: Vec<Change> = Vec::new();
    let mut add = |change: Change| {
        if !changes.contains(&change) {
            changes.push(change);
        }
    };
    let members = layouts.iter().flat_map(|layout| &layout.members);
    members.flat_map(|member| member.changes.iter().cloned()).for_each(&mut add);
    for cell in &plan.cells {
        let layout = layouts.iter().find(|layout| layout.volume == cell.volume);
        let devices = layout.map(VolumeLayout::devices).unwrap_or_default();
        conditions::changes(&cell.conditions, &devices)?.into_iter().for_each(&mut add);
        if cell.conditions.drop_caches {
            add(DropCaches.into());
        }
    }
    if plan.measuring.traced {
        probes::changes().into_iter().for_each(&mut add);
    }
    Ok(changes)
}
