//! Where everything lies: data files and doublewrite files, byte by byte.
//!
//! Invariant: pure; all integers little endian; the assertions below hold the numbers together.
//!
//! Data: page p lies in file p % N at (p / N) * page size; file i is `data-NN`, NN being i in two
//! digits.
//!
//! A doublewrite file (`doublewrite-0` to `doublewrite-3`):
//!
//! ```text
//! 0                 4096                        4096 + H                      + page size
//! | identity         | batch header, H bytes     | copy 0        | copy 1      | ..
//!
//! identity      0 magic [8] | 8 version u32 | 12 page bytes u32 | 16 data files u32 | 20 crc u32
//! batch header  0 magic [8] | 8 sequence u64 | 16 settled u64 | 24 kind u32 | 28 count u32
//!               | 32 header bytes H u32 | 36 zero [24] | 60 crc u32 | 64 entries
//! entry         0 page u64 | 8 lsn u64 | 16 crc u32 | 20 zero [4]
//! ```
//!
//! The identity is written by creation, into the second file last of all: it means that all files
//! are there. The header and the copies are one contiguous write. H is the space of the entries of
//! a full batch, in whole blocks of 4096 bytes. The header's crc covers its first 60 bytes and the
//! entries.

use iostrata_innodb::PageNo;
use iostrata_io::disk::{DiskError, FileName};

use crate::error::EngineError;

pub const DATA_FILES_MAX: u32 = 64;
/// Most pages by which a file grows at a time.
pub const EXTEND_PAGES_MAX: u32 = 65536;
/// Most pages of a doublewrite batch.
pub const DOUBLEWRITE_PAGES_MAX: u32 = 512;
pub const DOUBLEWRITE_FILES: usize = 4;
/// Form of the doublewrite files.
pub const VERSION: u32 = 2;

/// Header and identity are in whole blocks of so many bytes, so that direct I/O takes them.
pub const BLOCK_BYTES: usize = 4096;
pub const IDENTITY_MAGIC: [u8; 8] = *b"iostrdbl";
pub const BATCH_MAGIC: [u8; 8] = *b"iostrbat";
pub const BATCH_AT: u64 = BLOCK_BYTES as u64;

/// Offsets within the identity.
pub mod identity {
    /// Version, u32.
    pub const VERSION: usize = 8;
    /// Page size in bytes, u32.
    pub const PAGE_BYTES: usize = 12;
    /// Data files, u32.
    pub const DATA_FILES: usize = 16;
    /// crc32c of what lies before, u32.
    pub const CRC: usize = 20;
}

/// Offsets within the batch header.
pub mod batch {
    /// Number of the batch, u64.
    pub const SEQUENCE: usize = 8;
    /// Every batch below this number was durable in place when this one was written, u64.
    pub const SETTLED: usize = 16;
    /// 0 empty, 1 copies, 2 entries only, u32.
    pub const KIND: usize = 24;
    /// Entries, u32.
    pub const COUNT: usize = 28;
    /// Bytes of the header, u32: the first copy follows.
    pub const HEADER_BYTES: usize = 32;
    /// crc32c of the bytes before it and of the entries, u32.
    pub const CRC: usize = 60;
    /// Entries begin.
    pub const ENTRIES: usize = 64;
}

/// Offsets within an entry.
pub mod entry {
    /// Page number, u64.
    pub const PAGE: usize = 0;
    /// The page's LSN, u64.
    pub const LSN: usize = 8;
    /// The page's checksum, u32.
    pub const CRC: usize = 16;
    pub const BYTES: usize = 24;
}

/// Bytes of the header of batches of up to so many pages.
pub const fn header_bytes(pages: u32) -> usize {
    (batch::ENTRIES + pages as usize * entry::BYTES).next_multiple_of(BLOCK_BYTES)
}

pub const fn doublewrite_file_bytes(pages: u32, page_bytes: usize) -> u64 {
    BATCH_AT + (header_bytes(pages) + pages as usize * page_bytes) as u64
}

const _: () = assert!(identity::CRC + 4 <= BLOCK_BYTES);
const _: () = assert!(identity::DATA_FILES + 4 == identity::CRC);
const _: () = assert!(batch::CRC + 4 == batch::ENTRIES);
const _: () = assert!(batch::HEADER_BYTES + 4 <= batch::CRC);
const _: () = assert!(entry::CRC + 4 <= entry::BYTES && entry::BYTES.is_multiple_of(8));
const _: () = assert!(header_bytes(128) == BLOCK_BYTES);
const _: () = assert!(header_bytes(168) == BLOCK_BYTES && header_bytes(169) == 2 * BLOCK_BYTES);
const _: () = assert!(header_bytes(DOUBLEWRITE_PAGES_MAX) <= 4 * BLOCK_BYTES);

/// Where a page lies: file, and page within the file.
#[inline]
pub(crate) const fn place(page: PageNo, data_files: u32) -> (usize, u64) {
    let files = data_files as u64;
    ((page.0 % files) as usize, page.0 / files)
}

pub(crate) fn data_name(file: u32) -> Result<FileName, DiskError> {
    FileName::new(format!("data-{file:02}"))
}

pub(crate) fn doublewrite_name(file: usize) -> Result<FileName, DiskError> {
    FileName::new(format!("doublewrite-{file}"))
}

pub(crate) fn no_room(file: &str, file_pages: u64, wanted_pages: u64) -> EngineError {
    EngineError::full(format!(
        "no room on the disk: {file} cannot grow from {file_pages} to {wanted_pages} pages; free \
         some space"
    ))
}

/// The error of a file that no store of this version made.
pub(crate) fn not_a_store(file: &str, found: &str) -> EngineError {
    EngineError::damaged(format!("{file} is no file of a store of this version: it holds {found}"))
}
