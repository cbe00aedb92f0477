//! Heads of keys and the prefix that is left out of them.
//!
//! Purpose: keys of one page often begin alike (a warehouse, a district), so that their first
//! bytes tell nothing; heads therefore begin behind what all keys share. Invariant: the shared
//! prefix is a beginning of every key but an empty one, and every head is taken behind it. It is
//! as long as possible after a page was packed, and only gets shorter between.

use crate::page::edit::PageEdit;
use crate::page::fields::put;
use crate::page::layout::{HEADER_BYTES, SLOT_AT_HEAD, SLOT_BYTES};
use crate::page::row::head_of;
use crate::page::view::PageView;

impl<'a> PageView<'a> {
    /// The last key that is not empty; keys ascend, so that only slot 0 can have an empty one.
    #[inline]
    fn last_key(&self) -> Option<&'a [u8]> {
        let last = self.count().checked_sub(1)?;
        Some(self.key(last)).filter(|key| !key.is_empty())
    }

    /// Bytes that all keys but an empty one share.
    fn shared_len(&self) -> usize {
        let Some(last) = self.last_key() else { return 0 };
        let first = if self.key(0).is_empty() { self.key(1) } else { self.key(0) };
        same_len(first, last)
    }
}

impl PageEdit<'_> {
    /// Shortens the shared prefix to what a new key has of it, before the key's slot is made.
    #[inline]
    pub(crate) fn admit_key(&mut self, key: &[u8]) {
        if key.is_empty() {
            return;
        }
        let view = self.view();
        let Some(last) = view.last_key() else {
            self.set_prefix_len(key.len());
            return;
        };
        let old = view.prefix_len();
        let new = same_len(last.get(..old).unwrap_or(last), key);
        if new < old {
            self.set_prefix_len(new);
            self.write_heads();
        }
    }

    /// Takes the longest prefix and every head anew.
    pub(crate) fn refresh_heads(&mut self) {
        self.set_prefix_len(self.view().shared_len());
        self.write_heads();
    }

    fn write_heads(&mut self) {
        let skip = self.view().prefix_len();
        for slot in 0..self.count() {
            let head = head_of(self.key(slot), skip);
            let at = HEADER_BYTES + slot * SLOT_BYTES + SLOT_AT_HEAD;
            put(self.bytes_mut(), at, &head.to_le_bytes());
        }
    }
}

/// Bytes at the beginning that two keys share.
#[inline]
fn same_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
