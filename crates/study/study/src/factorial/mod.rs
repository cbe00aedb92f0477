//! Factorial studies: volumes are made, points measured in random interleaved order, everything put
//! back.
//!
//! Purpose: run a [`StudyPlan`](iostrata_plan::study::StudyPlan) within its budget. Invariants:
//! every change of the system goes through the session's journal; every finished replicate is
//! stored before the next begins, so that a killed study goes on where it was; what is not possible
//! here is a result with its reason. It draws no conclusion: `diagnose` does.

mod batch;
mod bench;
mod calibrate;
mod ceiling;
mod conditions;
mod database;
mod emulated;
mod fill;
mod layout;
mod order;
mod pace;
mod path_scope;
mod point;
mod preview;
mod probes;
mod readers;
mod rounds;
mod second;
mod transactions;
mod volume;

pub use database::{DatabasePlace, Databases, StudiedDatabase};
pub use layout::{VolumeLayout, filled_bytes, lay_out, space_bytes};
pub use preview::changes_of;
pub use rounds::run;

use std::path::PathBuf;

use iostrata_plan::study::StudyPlan;
use iostrata_run::Event;

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
