//! Finding a key in a page.
//!
//! Invariant: keys ascend as byte strings. Heads are compared first: a search reads the slots
//! alone until one or few candidates are left. On a damaged page the answer is arbitrary, but at
//! most the count.

use std::cmp::Ordering;

use crate::ids::PageNo;
use crate::row::{Place, head_of, slot_head, slot_key_len};
use crate::view::PageView;

impl PageView<'_> {
    /// The slot with this key, or the slot where it would go.
    ///
    /// # Errors
    /// Where an Insert of the key belongs.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let slots = self.slots();
        // An empty key comes first and has no part in the shared prefix.
        let first = usize::from(slots.first().is_some_and(|slot| slot_key_len(slot) == 0));
        if key.is_empty() {
            return if first == 1 { Ok(0) } else { Err(0) };
        }
        let Some(last) = slots.get(first..).and_then(<[_]>::last) else { return Err(first) };
        let skip = self.prefix_len();
        match self.beside_prefix(key, skip, Place::from_bytes(last)) {
            Ordering::Less => return Err(first),
            Ordering::Greater => return Err(slots.len()),
            Ordering::Equal => {}
        }
        let head = head_of(key, skip);
        let low = first + slots[first..].partition_point(|slot| slot_head(slot) < head);
        let same = slots[low..].iter().take_while(|slot| slot_head(slot) == head).take(2).count();
        match same {
            0 => Err(low),
            1 => match self.key_from(&slots[low], skip).cmp(&key[skip..]) {
                Ordering::Less => Err(low + 1),
                Ordering::Equal => Ok(low),
                Ordering::Greater => Err(low),
            },
            _ => self.find_among_equals(low, head, &key[skip..], skip),
        }
    }

    /// How a key compares with the prefix that all keys share; equal when it begins with it.
    #[inline]
    fn beside_prefix(&self, key: &[u8], skip: usize, of: Place) -> Ordering {
        let prefix = of.key_in(self.bytes()).and_then(|key| key.get(..skip)).unwrap_or_default();
        match key.get(..skip) {
            Some(start) => start.cmp(prefix),
            // Shorter than the prefix: less even when it is its beginning.
            None => key.cmp(prefix).then(Ordering::Less),
        }
    }

    /// The key of a slot behind the shared prefix.
    #[inline]
    fn key_from(&self, slot: &[u8; 8], skip: usize) -> &[u8] {
        let key = Place::from_bytes(slot).key_in(self.bytes());
        key.and_then(|key| key.get(skip..)).unwrap_or_default()
    }

    /// The search among several slots, from `low` on, with the head that the key has.
    fn find_among_equals(
        &self,
        low: usize,
        head: u32,
        rest: &[u8],
        skip: usize,
    ) -> Result<usize, usize> {
        let slots = &self.slots()[low..];
        let equals = &slots[..slots.partition_point(|slot| slot_head(slot) == head)];
        let found = equals.binary_search_by(|slot| self.key_from(slot, skip).cmp(rest));
        found.map(|at| low + at).map_err(|at| low + at)
    }

    /// In an inner page: the slot whose child holds this key, and that child. Slot 0 counts as
    /// less than every key. `(0, NO_PAGE)` when the page is empty.
    #[inline]
    #[must_use]
    pub fn child_for(&self, key: &[u8]) -> (usize, PageNo) {
        let slot = match self.find(key) {
            Ok(slot) => slot,
            Err(next) => next.saturating_sub(1),
        };
        if slot < self.count() { (slot, self.child(slot)) } else { (0, crate::NO_PAGE) }
    }
}

/// The shortest beginning of `above` that is greater than `below`: what an inner page needs to
/// tell two neighbouring pages apart. All of `above` when it is not greater.
#[inline]
#[must_use]
pub fn shortest_separator<'k>(below: &[u8], above: &'k [u8]) -> &'k [u8] {
    let same = below.iter().zip(above).take_while(|(one, other)| one == other).count();
    above.get(..=same).unwrap_or(above)
}
