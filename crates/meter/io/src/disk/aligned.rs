//! Memory that direct I/O can use.
//!
//! Invariant: the first byte is at a multiple of 4096; all bytes that were allocated are always
//! initialised, whatever part of them is in use.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const ALIGNMENT_BYTES: usize = 4096;

/// A block of bytes, aligned to 4096.
pub struct Aligned {
    start: NonNull<u8>,
    /// In use: at most `allocated`.
    bytes: usize,
    allocated: usize,
}

// SAFETY: it owns its memory alone, like a `Box<[u8]>`.
unsafe impl Send for Aligned {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// So many zero bytes.
    ///
    /// # Panics
    /// When `bytes` is 0.
    pub fn zeroed(bytes: usize) -> Self {
        assert!(bytes > 0, "an empty buffer can be neither read nor written");
        let layout = layout(bytes);
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, allocated: bytes }
    }

    /// A copy of these bytes.
    pub fn from_slice(from: &[u8]) -> Self {
        let mut copy = Self::zeroed(from.len());
        copy.copy_from_slice(from);
        copy
    }

    /// Uses the first `bytes` bytes from now on, so that a kept buffer can be read or written in
    /// part. Bytes that come into use again hold what they held when they went out of use.
    ///
    /// # Panics
    /// When `bytes` is 0 or more than [`allocated`](Self::allocated).
    #[inline]
    pub fn set_len(&mut self, bytes: usize) {
        let allocated = self.allocated;
        assert!((1..=allocated).contains(&bytes), "{bytes} bytes of {allocated} cannot be used");
        self.bytes = bytes;
    }

    /// The most bytes that can be used.
    #[inline]
    pub fn allocated(&self) -> usize {
        self.allocated
    }
}

fn layout(bytes: usize) -> Layout {
    match Layout::from_size_align(bytes, ALIGNMENT_BYTES) {
        Ok(layout) => layout,
        Err(_) => panic!("{bytes} bytes are more than memory can have"),
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with the same layout.
        unsafe { dealloc(self.start.as_ptr(), layout(self.allocated)) };
    }
}

impl Deref for Aligned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` is at most `allocated`: initialised bytes, owned by `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl fmt::Debug for Aligned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Aligned({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Aligned;

    #[test]
    fn it_is_aligned_and_owned() {
        let mut first = Aligned::zeroed(100);
        let copy = first.clone();
        first.fill(7);
        assert_eq!(first.as_ptr() as usize % 4096, 0);
        assert_eq!((&first[..], &copy[..]), (&[7; 100][..], &[0; 100][..]));
    }

    #[test]
    fn a_part_is_used_and_the_rest_kept() {
        let mut buffer = Aligned::from_slice(&[1, 2, 3, 4]);
        buffer.set_len(2);
        assert_eq!((&buffer[..], buffer.allocated()), (&[1, 2][..], 4));
        assert_eq!(buffer.clone().allocated(), 2, "a copy is of what is in use");
        buffer.set_len(4);
        assert_eq!(buffer[..], [1, 2, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "5 bytes of 4")]
    fn more_than_was_allocated_is_refused() {
        Aligned::zeroed(4).set_len(5);
    }

    #[test]
    #[should_panic(expected = "0 bytes of 4")]
    fn nothing_is_refused() {
        Aligned::zeroed(4).set_len(0);
    }
}
