//! Finding a key in a page.
//!
//! Invariant: keys ascend as byte strings. Heads are compared first: a search reads the slots
//! alone until one or few candidates are left. On a damaged page the answer is arbitrary, but at
//! most the count.

use std::cmp::Ordering;

use iostrata_innodb::PageNo;

use crate::page::layout::SLOT_BYTES;
use crate::page::view::{PageView, SlotEntry, head_of, slot_head, slot_key_len};

impl PageView<'_> {
    /// The slot with this key, or the slot where it would go.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.find_near(self.near(key), key)
    }

    /// The first half of [`find`](Self::find), which reads no cell: the first slot whose head is
    /// not less than the key's, or the count.
    #[inline]
    pub fn near(&self, key: &[u8]) -> usize {
        let slots = self.slots();
        let first = self.first_with_key();
        first + lower_bound(slots.get(first..).unwrap_or_default(), head_of(key, self.prefix_len()))
    }

    /// An empty key comes first and has no part in the shared prefix.
    #[inline]
    fn first_with_key(&self) -> usize {
        usize::from(self.slots().first().is_some_and(|slot| slot_key_len(slot) == 0))
    }

    /// The second half of [`find`](Self::find), `near` being the answer of the first.
    #[inline]
    pub fn find_near(&self, low: usize, key: &[u8]) -> Result<usize, usize> {
        let slots = self.slots();
        let first = self.first_with_key();
        if key.is_empty() {
            return if first == 1 { Ok(0) } else { Err(0) };
        }
        if slots.len() == first {
            return Err(first);
        }
        let skip = self.prefix_len();
        let head = head_of(key, skip);
        // One cell must be read in any case: the head says nothing when the prefix differs.
        let near = &slots[low.min(slots.len() - 1)];
        let near_key = SlotEntry::from_bytes(near).key_in(self.bytes()).unwrap_or_default();
        if near_key == key {
            return Ok(low.min(slots.len() - 1));
        }
        match beside_prefix(key, near_key, skip) {
            Ordering::Less => Err(first),
            Ordering::Greater => Err(slots.len()),
            Ordering::Equal if low < slots.len() && slot_head(near) == head => {
                self.find_among_equals(low, head, key)
            }
            Ordering::Equal => Err(low),
        }
    }

    /// The beginning of the cell that [`find_near`](Self::find_near) reads, at most so many bytes.
    #[inline]
    pub fn near_cell(&self, near: usize, bytes: usize) -> &[u8] {
        let slots = self.slots();
        let entry = slots.get(near).or(slots.last()).map(SlotEntry::from_bytes);
        let rest = entry.and_then(|entry| self.bytes().get(entry.cell..)).unwrap_or_default();
        &rest[..rest.len().min(bytes)]
    }

    /// The search from the first slot on that has the key's head.
    fn find_among_equals(&self, low: usize, head: u32, key: &[u8]) -> Result<usize, usize> {
        let slots = &self.slots()[low..];
        let equals = slots.iter().take_while(|slot| slot_head(slot) == head).take(2).count();
        let equals = if equals < 2 {
            &slots[..equals]
        } else {
            &slots[..slots.partition_point(|slot| slot_head(slot) == head)]
        };
        let key_of = |slot| SlotEntry::from_bytes(slot).key_in(self.bytes()).unwrap_or_default();
        let found = equals.binary_search_by(|slot| key_of(slot).cmp(key));
        found.map(|at| low + at).map_err(|at| low + at)
    }

    /// In an inner page: the slot whose child holds this key, and that child. Slot 0 counts as
    /// less than every key. `(0, NO_PAGE)` when the page is empty.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> (usize, PageNo) {
        let slot = match self.find(key) {
            Ok(slot) => slot,
            Err(next) => next.saturating_sub(1),
        };
        if slot < self.count() { (slot, self.child(slot)) } else { (0, iostrata_innodb::NO_PAGE) }
    }
}

/// Slots that one round of a search divides its range by.
const PARTS: usize = 8;
/// So many slots are counted through instead of divided further.
const COUNTED_MAX: usize = 16;

/// The first slot whose head is not less. Each round reads slots that do not depend on each other,
/// so that a page that is not in the processor's cache costs two or three waits and not one for
/// every halving.
#[inline]
fn lower_bound(slots: &[[u8; SLOT_BYTES]], head: u32) -> usize {
    let mut base = 0;
    let mut rest = slots;
    while rest.len() > COUNTED_MAX {
        let step = rest.len() / PARTS;
        let below = |part: usize| usize::from(slot_head(&rest[part * step]) < head);
        let part: usize = (1..PARTS).map(below).sum();
        let end = if part + 1 == PARTS { rest.len() } else { (part + 1) * step };
        rest = &rest[part * step..end];
        base += part * step;
    }
    base + rest.iter().map(|slot| usize::from(slot_head(slot) < head)).sum::<usize>()
}

/// How a key compares with the prefix that all keys share, `of` being one of them; equal when it
/// begins with it.
#[inline]
fn beside_prefix(key: &[u8], of: &[u8], skip: usize) -> Ordering {
    let prefix = of.get(..skip).unwrap_or_default();
    match key.get(..skip) {
        Some(start) => start.cmp(prefix),
        // Shorter than the prefix: less when it is its beginning.
        None => key.cmp(prefix),
    }
}

/// The shortest beginning of `above` that is greater than `below`: what an inner page needs to
/// tell two neighbouring pages apart. All of `above` when it is not greater.
#[inline]
pub fn shortest_separator<'k>(below: &[u8], above: &'k [u8]) -> &'k [u8] {
    let same = below.iter().zip(above).take_while(|(one, other)| one == other).count();
    above.get(..=same).unwrap_or(above)
}
