//! One open file of a real disk, and the writes to it that the kernel does not tear.
//!
//! Invariant: a read or write continues until all of it is done; a call that a signal cut short is
//! repeated. It does not handle directories.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, StatxFlags, fstat, statx};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};

use crate::disk::real::{RealOptions, WriteThrough};
use crate::disk::{DiskError, Durability, Facts, FileName};
use crate::open::{self, alignment};

/// Parts of one call at most: the system's limit.
const PARTS_MAX: usize = libc::UIO_MAXIOV as usize;

/// An open file.
pub(super) struct OpenFile {
    pub(super) descriptor: OwnedFd,
    pub(super) name: FileName,
    pub(super) facts: Facts,
    /// The file was opened with O_DSYNC.
    always_through: bool,
    /// Which writes are to be whole or not there after a crash.
    atomic: Option<AtomicLimits>,
}

/// What failed, with the errors that have a name of their own.
pub(super) fn failed(doing: &'static str, name: &str, errno: Errno) -> DiskError {
    let name = name.to_owned();
    match errno {
        Errno::NOENT => DiskError::NotFound { name },
        Errno::EXIST => DiskError::Exists { name },
        errno => DiskError::System { doing, name, errno: errno.raw_os_error() },
    }
}

impl OpenFile {
    pub(super) fn new(
        descriptor: OwnedFd,
        name: FileName,
        is_direct: bool,
        options: RealOptions,
    ) -> Self {
        let asked = options.atomic && is_direct;
        let atomic = if asked { AtomicLimits::of(descriptor.as_fd()) } else { None };
        let mut facts = facts(descriptor.as_fd(), is_direct);
        facts.atomic_write_bytes = atomic.map_or(0, AtomicLimits::max_bytes);
        let always_through = options.write_through == WriteThrough::OpenFlag;
        Self { descriptor, name, facts, always_through, atomic }
    }

    /// Whether the file takes requests at this place.
    pub(super) fn check_alignment(&self, at: u64, bytes: u64) -> Result<(), DiskError> {
        self.facts.check_alignment(&self.name, at, bytes)
    }

    pub(super) fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> DiskError {
        move |errno| failed(doing, self.name.as_str(), errno)
    }

    pub(super) fn len(&self) -> Result<u64, DiskError> {
        let stat = fstat(&self.descriptor).map_err(self.failed("ask for the length of"))?;
        Ok(stat.st_size as u64)
    }

    fn past_end(&self, at: u64, bytes: u64) -> Result<(), DiskError> {
        let (name, file_bytes) = (self.name.to_string(), self.len()?);
        Err(DiskError::PastEnd { name, at, bytes, file_bytes })
    }

    /// Reads all of `into` from `at` on, of which the first `moved` bytes are there already.
    pub(super) fn read(&self, at: u64, into: &mut [u8], moved: usize) -> Result<(), DiskError> {
        let bytes = into.len();
        let some = |moved| pread(&self.descriptor, &mut into[moved..], at + moved as u64);
        match whole(moved, bytes, some).map_err(self.failed("read"))? {
            true => Ok(()),
            false => self.past_end(at, bytes as u64),
        }
    }

    /// Writes all of `from` at `at`, of which the first `moved` bytes are written already.
    pub(super) fn write(
        &self,
        at: u64,
        from: &[u8],
        d: Durability,
        moved: usize,
    ) -> Result<(), DiskError> {
        let some = |moved| {
            let (rest, at) = (&from[moved..], at + moved as u64);
            match self.write_flags(at, rest.len(), d) {
                0 => pwrite(&self.descriptor, rest, at),
                flags => {
                    let flags = ReadWriteFlags::from_bits_retain(flags as u32);
                    pwritev2(&self.descriptor, &[IoSlice::new(rest)], at, flags)
                }
            }
        };
        match whole(moved, from.len(), some).map_err(self.failed("write"))? {
            true => Ok(()),
            false => Err(self.failed("write")(Errno::NOSPC)),
        }
    }

    /// Writes all of `parts` behind one another from `at` on. The kernel does not accept a gathered
    /// write as atomic (whole or absent after a crash), so none requests it.
    pub(super) fn write_parts(
        &self,
        at: u64,
        parts: &[&[u8]],
        d: Durability,
    ) -> Result<(), DiskError> {
        let flags = ReadWriteFlags::from_bits_retain(self.through_flag(d) as u32);
        let some = |moved| {
            let rest = parts_from(parts, moved);
            pwritev2(&self.descriptor, &rest, at + moved as u64, flags)
        };
        let bytes = parts.iter().map(|part| part.len()).sum();
        match whole(0, bytes, some).map_err(self.failed("write"))? {
            true => Ok(()),
            false => Err(self.failed("write")(Errno::NOSPC)),
        }
    }

    fn through_flag(&self, d: Durability) -> i32 {
        match d {
            Durability::WriteThrough if !self.always_through => libc::RWF_DSYNC,
            _ => 0,
        }
    }

    /// The RWF_ flags of a write.
    pub(super) fn write_flags(&self, at: u64, bytes: usize, d: Durability) -> i32 {
        let through = self.through_flag(d);
        match self.atomic {
            Some(limits) if limits.take(at, bytes) => through | libc::RWF_ATOMIC,
            _ => through,
        }
    }
}

fn facts(file: BorrowedFd<'_>, direct: bool) -> Facts {
    let physical = open::attribute(file, "physical_block_size");
    Facts {
        block_bytes: if direct { alignment(file).offset_bytes } else { 1 },
        physical_block_bytes: physical.and_then(|text| text.parse().ok()).unwrap_or(4096),
        direct,
        // The kernel promises it only to writes that request it.
        atomic_write_bytes: 0,
    }
}

/// What one call takes of the parts, of which the first `moved` bytes are written.
fn parts_from<'p>(parts: &[&'p [u8]], mut moved: usize) -> Vec<IoSlice<'p>> {
    let mut rest = Vec::with_capacity(parts.len().min(PARTS_MAX));
    for part in parts {
        let done = moved.min(part.len());
        moved -= done;
        if done < part.len() && rest.len() < PARTS_MAX {
            rest.push(IoSlice::new(&part[done..]));
        }
    }
    rest
}

/// Moves `bytes` bytes from `moved` on by calls that may move fewer. False when nothing moves any
/// more.
fn whole(
    mut moved: usize,
    bytes: usize,
    mut some: impl FnMut(usize) -> Result<usize, Errno>,
) -> Result<bool, Errno> {
    while moved < bytes {
        match some(moved) {
            Ok(0) => return Ok(false),
            Ok(more) => moved += more,
            Err(Errno::INTR) => {}
            // The rest after the end of the file is not aligned.
            Err(Errno::INVAL) if moved > 0 => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

// Writes that the kernel does not tear (RWF_ATOMIC, Linux 6.11; ext4 and XFS from 6.13 on).
//
// Invariant: a write carries the flag only when the kernel takes it that way: direct, its length a
// power of two within the limits of the file, at a multiple of its length. Only what the kernel
// reports for this very file counts.

/// STATX_WRITE_ATOMIC of include/uapi/linux/stat.h, which rustix does not name.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// The lengths of writes that a crash leaves whole, in bytes; both are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AtomicLimits {
    min_bytes: u32,
    max_bytes: u32,
}

impl AtomicLimits {
    /// What the kernel reports about a file that was opened for direct I/O.
    pub(super) fn of(file: BorrowedFd<'_>) -> Option<Self> {
        let stat = statx(file, c"", AtFlags::EMPTY_PATH, WRITE_ATOMIC).ok()?;
        let (min, max) = (stat.stx_atomic_write_unit_min, stat.stx_atomic_write_unit_max);
        Self::from_statx(stat.stx_mask, min, max)
    }

    /// What the fields of a statx mean: nothing when the mask does not vouch for them, when they
    /// are 0 (the file system supports the field, the device has no value) or out of order.
    fn from_statx(mask: u32, min_bytes: u32, max_bytes: u32) -> Option<Self> {
        let answered = mask & WRITE_ATOMIC.bits() != 0;
        let powers = min_bytes.is_power_of_two() && max_bytes.is_power_of_two();
        (answered && powers && min_bytes <= max_bytes).then_some(Self { min_bytes, max_bytes })
    }

    fn max_bytes(self) -> u32 {
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
    fn the_rest_of_the_parts_begins_where_the_last_call_ended() {
        let parts: [&[u8]; 3] = [&[1, 2], &[3, 4, 5], &[6]];
        let rest = |moved| {
            let slices = parts_from(&parts, moved);
            slices.iter().map(|slice| slice.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(rest(0), [vec![1, 2], vec![3, 4, 5], vec![6]]);
        assert_eq!(rest(2), [vec![3, 4, 5], vec![6]]);
        assert_eq!(rest(4), [vec![5], vec![6]]);
        let many = vec![&[7_u8][..]; PARTS_MAX + 5];
        assert_eq!((parts_from(&many, 0).len(), parts_from(&many, 10).len()), (1024, 1019));
    }

    #[test]
    fn short_and_interrupted_calls_go_on() {
        let mut answers = [Ok(3), Err(Errno::INTR), Ok(2), Ok(4)].into_iter();
        let mut asked = Vec::new();
        let all = whole(1, 10, |moved| {
            asked.push(moved);
            answers.next().unwrap()
        });
        assert_eq!((all, asked), (Ok(true), vec![1, 4, 4, 6]));
        assert_eq!(whole(0, 10, |_| Ok(0)), Ok(false));
        assert_eq!(whole(512, 1024, |_| Err(Errno::INVAL)), Ok(false));
        assert_eq!(whole(0, 1024, |_| Err(Errno::INVAL)), Err(Errno::INVAL));
        assert_eq!(whole(0, 10, |_| Err(Errno::IO)), Err(Errno::IO));
    }
}

#[cfg(test)]
mod atomic_tests {
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
