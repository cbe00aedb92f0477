//! What a page is for.

/// The kind of a page, as its header holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Unused.
    Free = 0,
    /// A tree node above the leaves: keys and children.
    Inner = 1,
    /// A tree node at the bottom: keys and values.
    Leaf = 2,
    /// A map of which pages are in use, one bit each.
    Space = 3,
    /// Page 0: where everything begins.
    Super = 4,
}

impl PageKind {
    /// The kind with this number, if there is one.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Free),
            1 => Some(Self::Inner),
            2 => Some(Self::Leaf),
            3 => Some(Self::Space),
            4 => Some(Self::Super),
            _ => None,
        }
    }

    /// Whether the page holds slots and cells.
    #[inline]
    pub const fn is_slotted(self) -> bool {
        matches!(self, Self::Inner | Self::Leaf)
    }

    /// Whether a page of this kind can stand on this level: leaves on 0, inner pages above, the
    /// others on 0.
    #[inline]
    pub const fn allows_level(self, level: u8) -> bool {
        matches!(self, Self::Inner) == (level > 0)
    }
}
