//! The redo log of the embedded engine.
//!
//! Purpose: a stream of frames, each a mini-transaction's records, that survives a crash up to
//! where it was made durable; its buffer, its segment files, group commit, checkpoints, and the
//! scan after a crash.
//! Invariant: what the scan yields is a prefix of what was appended, and holds everything that
//! `make_durable` promised; a frame left behind the end by a crash never becomes valid again; after
//! a failed write or sync nothing succeeds.
//! It knows no page and no record: a frame's body is bytes.

mod capacity;
mod checkpoint;
mod control;
mod create;
mod file;
mod frame;
mod geometry;
mod group_commit;
pub mod layout;
mod open;
#[expect(clippy::module_inception, reason = "the redo itself")]
mod redo;
mod requests;
mod scan;
mod segments;
mod serve;
mod write;

pub use file::{RedoSettings, RedoSync};
pub use redo::{Appended, Redo};
pub use scan::{Frame, Scan};
pub(crate) use segments::not_found;
