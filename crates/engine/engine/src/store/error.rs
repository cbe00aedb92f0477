//! What can go wrong in a store.
//!
//! Invariant: each error names the thing, what was found and what helps; errors are plain data, so
//! that a first cause can be told to everyone who comes later.

use std::sync::Arc;

use iostrata_innodb::PageNo;
use iostrata_io::disk::DiskError;
use thiserror::Error;

use crate::page::PageFault;

/// Why a store could not be made, opened, repaired, grown or written.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoreError {
    /// A setting out of its range.
    #[error("{name} = {value}: use 1 to {max}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u32,
        /// The largest allowed.
        max: u32,
    },
    /// The store was created with other settings.
    #[error("{file} was made with {name} = {found}, not {wanted}: open it with {found}")]
    Mismatch {
        /// The file that says so.
        file: String,
        /// The setting.
        name: &'static str,
        /// What the store has.
        found: u32,
        /// What was asked for.
        wanted: u32,
    },
    /// A file that no store of this version made.
    #[error("{file} is no file of a store of this version: it holds {found}")]
    NotAStore {
        /// The file.
        file: String,
        /// What was found instead.
        found: &'static str,
    },
    /// The disk has no room for more pages. Nothing that was there has changed, and the store is
    /// usable.
    #[error(
        "no room on the disk: {file} cannot grow from {file_pages} to {wanted_pages} pages; \
         free some space"
    )]
    NoSpace {
        /// The file.
        file: String,
        /// Pages it has.
        file_pages: u64,
        /// Pages it was to have.
        wanted_pages: u64,
    },
    /// A page that the store does not have.
    #[error("page {page} lies beyond the end: the store has {pages} pages; grow it first")]
    BeyondEnd {
        /// The page.
        page: PageNo,
        /// Pages of the store.
        pages: u64,
    },
    /// A write before the repair that every opening needs.
    #[error("the store was opened but not repaired: repair it before writing")]
    NotRepaired,
    /// A call on the disk failed. If it was a write or a sync, the store is poisoned with it.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An earlier write or sync failed: what the files hold is not known any more.
    #[error("the store takes no more writes since: {cause}; open it anew")]
    Poisoned {
        /// The first failure.
        cause: Arc<StoreError>,
    },
}

/// Why a page could not be read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReadError {
    /// A page that the store does not have.
    #[error("page {page} lies beyond the end: the store has {pages} pages")]
    BeyondEnd {
        /// The page.
        page: PageNo,
        /// Pages of the store.
        pages: u64,
    },
    /// All bytes are zero: the page was never written.
    #[error("page {page} was never written")]
    Zero {
        /// The page.
        page: PageNo,
    },
    /// The bytes are not those of a page of that number.
    #[error("{fault}")]
    Torn {
        /// The page.
        page: PageNo,
        /// What is wrong with it.
        fault: PageFault,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
