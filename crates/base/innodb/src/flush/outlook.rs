//! What a policy makes of the device and of its caps, for whoever looks on.
//!
//! Invariant: nothing is decided by it; it is what the last `next` went by.

/// Which bound held the last order of pages back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// None: all that was wanted was ordered.
    #[default]
    Nothing = 0,
    /// `io_capacity`, with what was raised.
    IoCapacity = 1,
    /// `io_capacity_max`, with what was raised.
    IoCapacityMax = 2,
    /// What the device was seen to write.
    Device = 3,
}

/// What a policy goes by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Pages per second that it counts on: what the device was seen to write, or its cap. 0 where
    /// nothing caps it, or it does not know yet.
    pub pages_per_s: u64,
    /// Pages per second that `flush_write_limit = auto-raised` has added.
    pub raised_pages_per_s: u64,
    /// What held it back.
    pub bound: Bound,
}

impl Outlook {
    /// Under a cap of `cap` pages per second, `u64::MAX` for none, of a policy that wants `want`.
    pub(crate) fn capped(cap: u64, raised: u64, want: u64, bound: Bound) -> Outlook {
        Outlook {
            pages_per_s: if cap == u64::MAX { 0 } else { cap },
            raised_pages_per_s: raised,
            bound: if want > cap { bound } else { Bound::Nothing },
        }
    }
}
