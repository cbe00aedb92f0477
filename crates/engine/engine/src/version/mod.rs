//! Versions of rows: the clock that numbers commits, the snapshots that read, and the log of what
//! commits replaced.
//!
//! Purpose: a commit takes its number with [`Registry::tick`] while it holds the latches of all its
//! leaves, asks [`Registry::is_any_below`], and keeps what it replaces through a [`Keeper`]. A
//! [`Snapshot`] sees numbers at or below its own and follows pointers to what was there before.
//! Purge takes the keys of deleted rows when nobody can need them any more.
//! Invariants: a version that a registered snapshot may read is never dropped; a key to purge is
//! handed out only when every snapshot that is or will be registered is at or above its number;
//! no file is touched while a lock is held that a commit takes.
//! What it deliberately does not do: it knows neither pages nor latches, has no thread, and nothing
//! of it survives a restart.
//!
//! # Why no snapshot is missed
//! Opening a snapshot is (1) a read of the clock, (2) storing it in a slot as a lower bound, (3) a
//! second read of the clock: the snapshot's number. A commit is (a) the tick that gives V, (b) a
//! look at all slots. All of these are sequentially consistent, so they have one order. A snapshot
//! below V read the clock in (3) before (a); it stored its slot in (2) before that; so (b) sees the
//! slot, with a value at or below the snapshot's number, or the snapshot is closed already. One
//! whose (2) comes after (b) reads the clock in (3) after (a), and is at or above V.
//!
//! [`Registry::oldest`] reads the clock first and then looks at the slots, and gives the least of
//! all. A snapshot whose (3) came before that read of the clock is seen by the same argument; any
//! other is at or above what was read.
//!
//! The number of slots in use only grows. It is raised before the new slot is stored to, and read
//! after the tick, so the argument holds for it, too.
//!
//! # Why a reader finds what it needs
//! A snapshot S follows a pointer only from a cell with a number V above S. The record behind it
//! carries V as the number that replaced it. Purge passes, and drops, only records whose number is
//! at or below `oldest`, which is at or below S. So as long as S is registered the record stays,
//! and so does its place in the spill file: a slot is reused only after its segment was dropped,
//! when nobody can be reading from it.

mod log;
#[cfg(all(test, feature = "model"))]
mod model_tests;
mod purge;
mod registry;
mod segment;
mod shard;
mod versions;

pub use purge::{PurgeBatch, PurgeItem};
pub use registry::{OldestSnapshot, Registry, Snapshot};
pub use segment::SpillFile;
pub use shard::Keeper;
pub use versions::{VersionSettings, VersionStats, Versions};
