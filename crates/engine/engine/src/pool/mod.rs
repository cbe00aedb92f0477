//! The buffer pool of the embedded engine: pages in memory, who holds them, which are dirty.
//!
//! Purpose: frames in one allocation, a flat page table, pins and latches, replacement, and dirty
//! pages in buckets of the redo. Invariants: a hit takes no lock; a pinned page stays in its frame;
//! the bytes of a page are reached only under its latch; a dirty page is never evicted; the
//! [`Pool::oldest`] LSN never exceeds that of a page which is dirty or being written; whoever waits
//! for a page ends with it or with a typed error. What it deliberately does not do: it writes
//! nothing, has no thread and no clock, looks at no byte of a page but its LSN, and does not guess
//! what to read ahead. The caller holds no latch when it asks for a page that may be absent.

mod border;
mod dirty;
mod evict;
mod flushing;
mod frames;
mod guard;
mod latch;
mod links;
mod load;
mod parking;
#[expect(clippy::module_inception, reason = "the pool itself")]
mod pool;
mod queues;
mod read_copies;
mod table;
mod waiting;
mod word;

pub use border::{PageSource, PoolSettings, Supply, Wanted};
pub use flushing::{Flight, Flushing};
pub(crate) use frames::{bring_near, check_memory};
pub use guard::{Exclusive, Pin, Shared};
pub use pool::Pool;
pub use read_copies::ReadCopy;
