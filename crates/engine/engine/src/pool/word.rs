//! One entry of the page table: everything about a page's residence in 64 bits.
//!
//! Invariant: a page has pins only while it is resident; while it is busy (being loaded, or
//! leaving) only the one who made it busy ends that, and nobody else changes more than the mark of
//! waiters. What it does not do: no atomics; it is the arithmetic of a plain number.

use std::fmt;

const STATE: u64 = 0b11;
const ABSENT: u64 = 0;
const BUSY: u64 = 1;
const RESIDENT: u64 = 2;
const USES_SHIFT: u32 = 2;
const USES: u64 = 0b11 << USES_SHIFT;
/// Somebody waits for the end of the busy state.
pub const WAITED: u64 = 1 << 4;
const UNREAD: u64 = 1 << 5;
const PINS_SHIFT: u32 = 8;
pub const PIN: u64 = 1 << PINS_SHIFT;
const PINS: u64 = 0xff_ffff << PINS_SHIFT;
const HIGH_SHIFT: u32 = 32;
/// More pins on one page than threads and guards can ever hold.
const PINS_MAX: u32 = 0x7f_ffff;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// Not resident; `stamp` says when it was evicted (0: never).
    pub fn absent(stamp: u32) -> Self {
        Self(ABSENT | u64::from(stamp) << HIGH_SHIFT)
    }

    /// Being loaded or leaving, at present nobody waits.
    pub fn busy() -> Self {
        Self(BUSY)
    }

    /// In this frame, with so many pins and nothing known of its use.
    pub fn resident(frame: u32, pins: u32) -> Self {
        Self(RESIDENT | u64::from(pins) << PINS_SHIFT | u64::from(frame) << HIGH_SHIFT)
    }

    #[inline]
    pub fn is_absent(self) -> bool {
        self.0 & STATE == ABSENT
    }

    #[inline]
    pub fn is_busy(self) -> bool {
        self.0 & STATE == BUSY
    }

    #[inline]
    pub fn is_resident(self) -> bool {
        self.0 & STATE == RESIDENT
    }

    pub fn is_waited_for(self) -> bool {
        self.0 & WAITED != 0
    }

    #[inline]
    pub fn frame(self) -> u32 {
        (self.0 >> HIGH_SHIFT) as u32
    }

    /// Of an absent page: when it was evicted.
    pub fn stamp(self) -> u32 {
        (self.0 >> HIGH_SHIFT) as u32
    }

    #[inline]
    pub fn pins(self) -> u32 {
        ((self.0 & PINS) >> PINS_SHIFT) as u32
    }

    /// How often it proved to be used again, up to 3.
    #[inline]
    pub fn uses(self) -> u32 {
        ((self.0 & USES) >> USES_SHIFT) as u32
    }

    /// Read ahead and not used yet.
    #[inline]
    pub fn is_unread(self) -> bool {
        self.0 & UNREAD != 0
    }

    /// Whether the count of uses can grow.
    #[inline]
    pub fn is_used_most(self) -> bool {
        self.0 & USES == USES
    }

    #[inline]
    pub fn pinned(self) -> Self {
        assert!(
            self.pins() < PINS_MAX,
            "pins of one page without end: a guard is leaked in a loop"
        );
        Self(self.0 + PIN)
    }

    #[inline]
    pub fn used(self) -> Self {
        if self.is_used_most() { self } else { Self(self.0 + (1 << USES_SHIFT)) }
    }

    pub fn used_less(self) -> Self {
        if self.uses() == 0 { self } else { Self(self.0 - (1 << USES_SHIFT)) }
    }

    pub fn unused(self) -> Self {
        Self(self.0 & !USES)
    }

    #[inline]
    pub fn with_unread(self, unread: bool) -> Self {
        Self(if unread { self.0 | UNREAD } else { self.0 & !UNREAD })
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = ["absent", "busy", "resident", "?"][(self.0 & STATE) as usize];
        let (pins, uses, high) = (self.pins(), self.uses(), self.frame());
        write!(out, "{state} pins {pins} uses {uses} high {high} flags {:x}", self.0 & 0xf0)
    }
}

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn parts_do_not_touch_each_other() {
        let mut word = Word::resident(u32::MAX, 1).with_unread(true);
        for _ in 0..9 {
            word = word.used().pinned();
        }
        assert_eq!((word.frame(), word.pins(), word.uses()), (u32::MAX, 10, 3));
        assert!(word.is_unread() && word.is_resident() && !word.is_waited_for());
        word = word.used_less().with_unread(false);
        assert_eq!((word.frame(), word.pins(), word.uses()), (u32::MAX, 10, 2));
        assert_eq!(word.unused().uses(), 0);
        assert!(!word.is_unread() && word.is_resident());
        assert!(Word::absent(7).is_absent() && Word::busy().is_busy());
        assert_eq!(Word::absent(7).stamp(), 7);
        assert!(Word(0).is_absent());
    }
}
