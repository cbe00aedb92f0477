//! Data files and doublewrite of the embedded engine.
//!
//! Purpose: pages on a [`Disk`](iostrata_io::disk::Disk), striped over data files, written so that
//! a crash leaves each page old or new and never torn. Invariant: [`Store::write`] returns when its
//! pages are durable in place; every byte of the data files was written before it is used; after a
//! failed write or sync nothing is written any more.
//! It caches no page, knows no redo (the caller has made that durable before) and has no thread.

mod data;
mod doublewrite;
pub mod layout;
mod read;
mod repair;
#[expect(clippy::module_inception, reason = "the store itself")]
mod store;
mod write;

pub use data::{CutFile, PageCopy, StoreSettings};
pub use read::ReadError;
pub use repair::Repair;
pub use store::Store;
