//! Numbers that name things.
//!
//! Purpose: page numbers, log positions and table numbers that cannot be mistaken for each other.
//! Invariant: plain numbers; arithmetic saturates, so that damaged input cannot panic.

use std::fmt;

/// A page of the data files, counted from 0. Page 0 is the Super page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNo(pub u64);

/// As a link: no page. Nothing ever links to the Super page.
pub const NO_PAGE: PageNo = PageNo(0);

impl PageNo {
    /// Whether this is [`NO_PAGE`].
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == NO_PAGE.0
    }

    /// The page a link points to, if any.
    #[inline]
    #[must_use]
    pub const fn linked(self) -> Option<Self> {
        if self.is_none() { None } else { Some(self) }
    }

    /// The page `pages` further.
    #[inline]
    #[must_use]
    pub const fn plus(self, pages: u64) -> Self {
        Self(self.0.saturating_add(pages))
    }

    /// The next page.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }
}

impl fmt::Display for PageNo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A position in the redo log, in bytes from its beginning. 0 is before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The position `bytes` further.
    #[inline]
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// Bytes from `earlier` to here; 0 when `earlier` is not earlier.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A table. 0 belongs to no table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl fmt::Display for TableId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_links_are_optional() {
        assert_eq!(PageNo(u64::MAX).next(), PageNo(u64::MAX));
        assert_eq!(PageNo(3).plus(4).linked(), Some(PageNo(7)));
        assert_eq!(NO_PAGE.linked(), None);
        assert_eq!(Lsn(10).since(Lsn(4)), 6);
        assert_eq!(Lsn(4).since(Lsn(10)), 0);
        assert_eq!(Lsn(u64::MAX).plus(1), Lsn(u64::MAX));
        assert_eq!(format!("{:>3} {} {}", PageNo(7), Lsn(8), TableId(9)), "  7 8 9");
    }
}
