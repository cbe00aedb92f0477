//! A value alone on its cache line, so that threads with different ones do not disturb each other.

use std::ops::Deref;

/// A value alone on its cache line.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
