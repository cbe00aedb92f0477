//! The only crate that alters the system: plan, journal, apply, put back.
//!
//! Purpose: a [`Session`] applies [`Change`]s and undoes them; [`restore`] does the undoing for a
//! process that was killed, from its journal alone; [`MeasuringFiles`] keeps the same kind of
//! journal of the files that are measured on. Invariant: nothing is altered before the
//! intent, with what was there before, is durable; things are found again by token (a loop device
//! by its backing file), never by number; what is neither ours nor as before is left and reported.
//! It measures nothing, decides nothing about what to change, and prints nothing.

mod describe;
mod error;
mod journal;
mod kind;
mod measuring_files;
mod names;
mod platform;
mod restore;
mod seen;
mod served;
mod server;
mod session;
mod system;
mod undone;
mod variables;

#[cfg(test)]
mod tests;

pub use describe::plan;
pub use error::{ChangeError, JournalError};
pub use journal::StateDir;
pub use kind::settings::variable_literal;
pub use kind::tracing::write_instance;
pub use kind::*;
pub use measuring_files::{LeftFile, MeasuringFiles};
pub use names::{FilesystemKind, Prewrite, QueueAttribute, VmSetting};
pub use platform::{MountRequest, Platform, Refusal, RunError};
pub use restore::{
    JournalReport, JournalState, Leftover, RestoreReport, Thing, UndoOutcome, UndoReport,
    leftovers, remove_left_files, restore, restore_server,
};
pub use seen::{
    Answer, ChangeId, DeviceRef, DeviceState, FileToken, LoopDevice, Owner, PathEntry, SeenKind,
};
pub use served::{ServedDisk, StopError, served_disks, stop_served};
pub use server::{Ending, Greeting, RunAs, ServerCommand, Tie};
pub use session::{AppliedChange, Session, changes_in_place, wait_until_undone};
pub use system::{BoundCommand, System, end_with_starter, spawn_for_life, touched_unwritten_bytes};
pub use undone::{How, Left, Undone};
pub use variables::{
    EVENT, NO_EVENT, NoServers, ServerError, ServerSetting, ServerToken, ServerValues, Servers,
};
