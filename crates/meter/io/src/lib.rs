//! File APIs, file sets and the disk a storage engine stands on.
//!
//! Purpose: the only place that issues I/O. A [`FileApi`] carries a worker's requests to files, a
//! [`FileSet`] makes and guards the files, and a [`Disk`](disk::Disk) is what a storage engine
//! stands on. Invariant: nothing here allocates, locks or reads a clock per request, and no file
//! that was not made here is ever written without leave. It does not pace, count or time anything,
//! and it prints nothing.

pub mod api;
mod buffers;
pub mod disk;
mod error;
mod extents;
pub mod fileset;
#[cfg(any(test, feature = "testing"))]
mod memory_files;
mod mounts;
mod op;
mod open;

pub use api::libaio::LibaioApi;
#[cfg(any(test, feature = "testing"))]
pub use api::memory::MemoryApi;
pub use api::mmap::MmapApi;
pub use api::null::NullApi;
pub use api::sync::SyncApi;
pub use api::uring::UringApi;
pub use api::{ApiConfig, Caps, FileApi, Refusal, WriteThrough, submission_batch};
pub use buffers::{Buffers, Pages};
pub use error::{IoError, OpenError};
pub use extents::{ExtentReport, Residency};
pub use fileset::leftovers::{
    FileRecord, abandoned_bytes, record_files, remove_abandoned, remove_leftovers,
};
pub use fileset::{FileSet, FileSetError, FileSetPlan, Fill, Place, Progress, names_a_device};
#[cfg(any(test, feature = "testing"))]
pub use memory_files::{Fate, MemoryFiles};
pub use mounts::{Mount, mounts, parse_mounts};
pub use op::{Completion, FileCall, Op, OpKind, SyncKind};
pub use open::{Alignment, FileSpec, OpenFiles, OpenMode, OpenSync};
