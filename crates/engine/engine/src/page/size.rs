//! The size of pages and what fits one.
//!
//! Purpose: the one size all pages of a database have, and the limits of a row that follow from
//! it. Invariant: two rows within the limits always fit an empty page, so that every full page can
//! be split and every part of a split takes the row it was split for.

use std::fmt;

use iostrata_innodb::Settings;
use thiserror::Error;

use crate::page::layout::{
    CELL_HEADER_BYTES, HEADER_BYTES, PAGE_BYTES_MAX, PAGE_BYTES_MIN, SLOT_BYTES, VERSION_BYTES,
    cell_bytes,
};

/// Bytes of a page: a power of two from 4 KiB to 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "page size {bytes} is not a power of two from {PAGE_BYTES_MIN} to {PAGE_BYTES_MAX}; \
     use 4096, 8192, 16384, 32768 or 65536"
)]
pub struct PageSizeError {
    pub bytes: u64,
}

/// A row that no page of this size holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RowTooLarge {
    /// The key alone is too long.
    #[error("a key of {bytes} bytes is longer than the {bytes_max} a page allows; shorten it")]
    Key {
        /// Bytes of the key.
        bytes: usize,
        /// Most bytes of a key.
        bytes_max: usize,
    },
    /// Key and value together are too long.
    #[error(
        "a row of {bytes} bytes (key and value) is longer than the {bytes_max} a page allows; \
         split it or create the database with larger pages"
    )]
    Row {
        /// Bytes of key and value together.
        bytes: usize,
        /// Most bytes of key and value together.
        bytes_max: usize,
    },
}

impl PageSize {
    pub fn of_settings(settings: &Settings) -> Self {
        match Self::new(settings.page_size) {
            Ok(size) => size,
            Err(error) => panic!("settings were checked, yet {error}"),
        }
    }

    pub const MIN: Self = Self(PAGE_BYTES_MIN as u32);
    /// 16 KiB, what a database has when nothing else is asked for.
    pub const DEFAULT: Self = Self(16 << 10);
    pub const ALL: [Self; 5] =
        [Self(4 << 10), Self(8 << 10), Self(16 << 10), Self(32 << 10), Self(64 << 10)];

    pub const fn new(bytes: u32) -> Result<Self, PageSizeError> {
        if is_page_bytes(bytes as usize) {
            Ok(Self(bytes))
        } else {
            Err(PageSizeError { bytes: bytes as u64 })
        }
    }

    /// The size of a buffer that holds one page, if it can.
    pub const fn of(bytes: usize) -> Option<Self> {
        if is_page_bytes(bytes) { Some(Self(bytes as u32)) } else { None }
    }

    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub const fn body_bytes(self) -> usize {
        self.bytes() - HEADER_BYTES
    }

    /// Longest key in bytes: an eighth of the page, so that an inner page has at least six
    /// children.
    #[inline]
    pub const fn key_bytes_max(self) -> usize {
        self.bytes() / 8
    }

    /// Longest cell in bytes: half of what an empty page has room for.
    #[inline]
    pub const fn cell_bytes_max(self) -> usize {
        self.body_bytes() / 2 - SLOT_BYTES
    }

    /// Most bytes of key and value together, a version included.
    #[inline]
    pub const fn row_bytes_max(self) -> usize {
        self.cell_bytes_max() - CELL_HEADER_BYTES
    }

    /// Whether a new row can come in: one that has room for a version as well.
    pub const fn check_new_row(self, key_len: usize, value_len: usize) -> Result<(), RowTooLarge> {
        match self.check_row(key_len, value_len.saturating_add(VERSION_BYTES)) {
            Err(RowTooLarge::Row { .. }) => Err(RowTooLarge::Row {
                bytes: key_len.saturating_add(value_len),
                bytes_max: self.row_bytes_max() - VERSION_BYTES,
            }),
            checked => checked,
        }
    }

    /// Whether a row with a key and a value of so many bytes can be held at all.
    #[inline]
    pub const fn check_row(self, key_len: usize, value_len: usize) -> Result<(), RowTooLarge> {
        if key_len > self.key_bytes_max() {
            return Err(RowTooLarge::Key { bytes: key_len, bytes_max: self.key_bytes_max() });
        }
        if cell_bytes(key_len, value_len) > self.cell_bytes_max() {
            let bytes = key_len.saturating_add(value_len);
            return Err(RowTooLarge::Row { bytes, bytes_max: self.row_bytes_max() });
        }
        Ok(())
    }

    /// Pages that one Space page keeps account of: one bit for each.
    #[inline]
    pub const fn space_bits(self) -> u32 {
        (self.body_bytes() * 8) as u32
    }
}

#[inline]
pub(crate) const fn is_page_bytes(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX
}

impl Default for PageSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_from_4_to_64_kib_are_sizes() {
        for size in PageSize::ALL {
            assert_eq!(PageSize::new(size.bytes() as u32), Ok(size));
            assert_eq!(PageSize::of(size.bytes()), Some(size));
        }
        for bytes in [0, 1, 2048, 4095, 4097, 12288, 131_072] {
            assert_eq!(PageSize::new(bytes), Err(PageSizeError { bytes: u64::from(bytes) }));
            assert_eq!(PageSize::of(bytes as usize), None);
        }
    }

    #[test]
    fn the_limits_of_a_row_are_exact() {
        for size in PageSize::ALL {
            let (key, row) = (size.key_bytes_max(), size.row_bytes_max());
            assert_eq!(size.check_row(key, row - key), Ok(()));
            assert_eq!(size.check_row(0, row), Ok(()));
            let error = size.check_row(key + 1, 0);
            assert_eq!(error, Err(RowTooLarge::Key { bytes: key + 1, bytes_max: key }));
            let error = size.check_row(1, row);
            assert_eq!(error, Err(RowTooLarge::Row { bytes: row + 1, bytes_max: row }));
            let new = row - VERSION_BYTES;
            assert_eq!(size.check_new_row(1, new - 1), Ok(()));
            let error = size.check_new_row(1, new);
            assert_eq!(error, Err(RowTooLarge::Row { bytes: new + 1, bytes_max: new }));
            assert!(size.check_new_row(1, usize::MAX).is_err());
            assert!(size.check_row(usize::MAX, usize::MAX).is_err());
            assert!(size.check_row(1, usize::MAX).is_err());
        }
    }

    #[test]
    fn two_largest_cells_fit_a_page() {
        for size in PageSize::ALL {
            let two = 2 * (size.cell_bytes_max() + SLOT_BYTES);
            assert!(two <= size.body_bytes() && two + 2 > size.body_bytes());
        }
    }
}
