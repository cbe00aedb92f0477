//! Writes that the kernel does not tear (RWF_ATOMIC, Linux 6.11; ext4 and XFS from 6.13 on).
//!
//! Invariant: a write carries the flag only when the kernel takes it that way: direct, its length a
//! power of two within the limits of the file, at a multiple of its length. Nothing is believed
//! that the kernel did not say for this very file.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// STATX_WRITE_ATOMIC of include/uapi/linux/stat.h, which rustix does not name.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// The lengths of writes that a crash leaves whole, in bytes; both are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtomicLimits {
    min_bytes: u32,
    max_bytes: u32,
}

impl AtomicLimits {
    /// What the kernel says about a file that was opened for direct I/O.
    pub(super) fn of(file: BorrowedFd<'_>) -> Option<Self> {
        let stat = statx(file, c"", AtFlags::EMPTY_PATH, WRITE_ATOMIC).ok()?;
        let (min, max) = (stat.stx_atomic_write_unit_min, stat.stx_atomic_write_unit_max);
        Self::from_statx(stat.stx_mask, min, max)
    }

    /// What the fields of a statx mean: nothing when the mask does not vouch for them, when they
    /// are 0 (the file system knows the question, the device has no answer) or out of order.
    fn from_statx(mask: u32, min_bytes: u32, max_bytes: u32) -> Option<Self> {
        let answered = mask & WRITE_ATOMIC.bits() != 0;
        let powers = min_bytes.is_power_of_two() && max_bytes.is_power_of_two();
        (answered && powers && min_bytes <= max_bytes).then_some(Self { min_bytes, max_bytes })
    }

    pub(super) fn max_bytes(self) -> u32 {
        self.max_bytes
    }

    /// Whether the kernel takes this write as one that it does not tear.
    pub(super) fn take(self, at: u64, bytes: usize) -> bool {
        let within = (self.min_bytes as usize..=self.max_bytes as usize).contains(&bytes);
        within && bytes.is_power_of_two() && at.is_multiple_of(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_vouches_for_counts() {
        let asked = WRITE_ATOMIC.bits();
        let limits = AtomicLimits { min_bytes: 4096, max_bytes: 16384 };
        assert_eq!(AtomicLimits::from_statx(asked | 0x7ff, 4096, 16384), Some(limits));
        assert_eq!(AtomicLimits::from_statx(0x7ff, 4096, 16384), None, "not answered");
        assert_eq!(AtomicLimits::from_statx(asked, 0, 0), None, "the device has none");
        assert_eq!(AtomicLimits::from_statx(asked, 16384, 4096), None);
        assert_eq!(AtomicLimits::from_statx(asked, 4096, 12288), None);
    }

    #[test]
    fn a_write_must_be_in_its_place() {
        let limits = AtomicLimits { min_bytes: 4096, max_bytes: 16384 };
        for (at, bytes) in [(0, 4096), (4096, 4096), (16384, 16384), (24576, 8192)] {
            assert!(limits.take(at, bytes), "{bytes} at {at}");
        }
        for (at, bytes) in [(0, 2048), (0, 32768), (4096, 8192), (0, 12288), (8192, 16384)] {
            assert!(!limits.take(at, bytes), "{bytes} at {at}");
        }
    }
}
