//! The frames: one allocation for all pages, and the only way to their bytes.
//!
//! Invariant: the bytes of a frame are reached only through a `SharedLatch` or an `ExclusiveLatch`
//! of that frame, so they are never written while another thread reads them. The allocation is
//! neither moved nor freed while a frame can be borrowed. What it does not do: it does not record
//! which page a frame holds.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{Advice, madvise};

use crate::error::EngineError;
use crate::page::PageSize;
use crate::pool::latch::Latch;

pub const NEVER: u64 = u64::MAX;

/// Frames lie this much further apart than pages are long: the headers of all pages would otherwise
/// fall into one set of the processor's cache. No device reads or writes in place, so frames need
/// not lie at whole pages.
const SHIFT_BYTES: usize = LINE_BYTES;
const LINE_BYTES: usize = 64;
/// Lines that a search of a page reads at first: the header and the first slots.
const SEARCHED_LINES: usize = 18;

/// Allocations from this size on use huge pages: less than that is a test's or a small program's,
/// for which steps of a huge page are too large.
const HUGE_FROM_BYTES: usize = 16 << 20;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One frame. Everything a hit touches lies in one cache line.
#[repr(align(64))]
pub struct Frame {
    latch: Latch,
    bytes: NonNull<[u8]>,
    /// The page in it, while it is resident or leaving.
    pub page: AtomicU64,
    /// Since when it is dirty, or `NEVER`. Changes only under the lock of the dirty set.
    pub dirty_at: AtomicU64,
    /// Whether it is dirty or being written, in bits of `dirty`. Changes only under that lock.
    pub held: AtomicU32,
    /// Another number whenever the page's place in its tree or the frame's page changes.
    pub page_version: AtomicU32,
    /// When, in pages that came into the pool, its use began.
    pub since: AtomicU32,
    pub index: u32,
}

// SAFETY: the pointer leads to memory that `Frames` owns and keeps as long as any `&Frame` can
// live; it is followed only under the latch, so no thread writes while another reads.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

impl Frame {
    /// Another number after every exclusive hold.
    #[inline]
    pub fn version(&self) -> u64 {
        self.latch.version()
    }

    /// The same; none while the latch is held exclusively.
    #[inline]
    pub fn version_at_rest(&self) -> Option<u64> {
        self.latch.version_at_rest()
    }

    #[inline]
    pub fn have_readers_met(&self) -> bool {
        self.latch.have_readers_met()
    }

    #[cfg(test)]
    pub fn note_meeting(&self) {
        self.latch.note_meeting();
    }

    pub fn forget_meeting(&self) {
        self.latch.forget_meeting();
    }
}

/// Checks that memory has room for so many frames and all that belongs to them.
pub fn check_memory(page_size: PageSize, count: u64) -> Result<(), EngineError> {
    let each = (page_size.bytes() + SHIFT_BYTES + size_of::<Frame>()) as u64;
    let bytes = count.saturating_mul(each);
    let has = rustix::system::sysinfo();
    let has = (has.totalram + has.totalswap).saturating_mul(has.mem_unit.into());
    // Allocated and given back: a limit may lie below what the machine has.
    let is_given = || Vec::<u8>::new().try_reserve_exact(bytes as usize).is_ok();
    if count < u64::from(u32::MAX / 2) && bytes <= has && is_given() {
        return Ok(());
    }
    Err(EngineError::range("buffer_pool_size", bytes, "less than the memory of this machine"))
}

pub struct Frames {
    frames: Box<[Frame]>,
    /// Address of the first page's bytes, and how far apart pages lie.
    first: usize,
    stride: usize,
    /// Owned, never accessed here: the frames point into it.
    _memory: Vec<u8>,
}

impl Frames {
    /// So many zeroed frames.
    ///
    /// # Panics
    /// When there is none, or more than fit memory.
    pub fn new(page_size: PageSize, count: usize) -> Self {
        let page_bytes = page_size.bytes();
        let stride = page_bytes + SHIFT_BYTES;
        let bytes = count.checked_mul(stride).and_then(|bytes| bytes.checked_add(LINE_BYTES));
        assert!(count > 0 && count < u32::MAX as usize / 2, "{count} frames cannot be numbered");
        let Some(bytes) = bytes else { panic!("{count} frames are more than memory can have") };
        // Zeros from the system: memory is taken only as frames are first used.
        let mut memory = vec![0_u8; bytes];
        if bytes >= HUGE_FROM_BYTES {
            ask_huge_pages(&mut memory);
        }
        let to_line = memory.as_ptr().align_offset(LINE_BYTES);
        assert!(to_line < LINE_BYTES, "bytes can be aligned");
        let start = memory.as_mut_ptr();
        let first = start.addr() + to_line;
        let frame = |index: usize| {
            // SAFETY: `index` is below `count`, so that the frame lies in the allocation, which
            // has a line to spare for the alignment.
            let first = unsafe { start.add(to_line + index * stride) };
            let bytes = std::ptr::slice_from_raw_parts_mut(first, page_bytes);
            // SAFETY: derived from a reference, so it is not null.
            let bytes = unsafe { NonNull::new_unchecked(bytes) };
            Frame {
                latch: Latch::default(),
                bytes,
                page: AtomicU64::new(0),
                dirty_at: AtomicU64::new(NEVER),
                held: AtomicU32::new(0),
                page_version: AtomicU32::new(0),
                since: AtomicU32::new(0),
                index: index as u32,
            }
        };
        let frames = (0..count).map(frame).collect();
        Self { frames, first, stride, _memory: memory }
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Brings what a search of the page in a frame reads first nearer to the processor, all of it
    /// at once: each line takes as long as a whole search of a page that is in the cache.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        let page = self.first + index as usize * self.stride;
        (0..SEARCHED_LINES).for_each(|line| prefetch(page + line * LINE_BYTES));
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }
}

/// Brings bytes that are about to be read nearer to the processor, without waiting for them.
#[inline]
pub fn bring_near(bytes: &[u8]) {
    (0..bytes.len()).step_by(LINE_BYTES).for_each(|at| prefetch(bytes[at..].as_ptr().addr()));
}

/// Prefetches the cache line at an address.
#[inline]
fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing that the program sees, and does not fail at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _there_is_no_stable_hint = address;
}

/// Requests huge pages where whole ones fit: random reads of a large pool then miss less in the
/// processor's TLB. What lies before and behind them stays as it is, and so does all of it where
/// the system refuses.
fn ask_huge_pages(memory: &mut [u8]) {
    let before = memory.as_ptr().align_offset(HUGE_PAGE_BYTES).min(memory.len());
    let inside = &mut memory[before..];
    let bytes = inside.len() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    let start = inside.as_mut_ptr().cast();
    // SAFETY: the range lies in memory that is borrowed alone here, and the advice changes how it
    // is mapped, never what it holds.
    let _refused = bytes > 0 && unsafe { madvise(start, bytes, Advice::LinuxHugepage) }.is_err();
}

pub struct SharedLatch<'p>(&'p Frame);

impl<'p> SharedLatch<'p> {
    #[inline]
    pub fn new(frame: &'p Frame) -> Self {
        frame.latch.shared();
        Self(frame)
    }

    #[inline]
    pub fn try_new(frame: &'p Frame) -> Option<Self> {
        frame.latch.try_shared().then(|| Self(frame))
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory lives as long as the borrowed frame; all of it is initialised; `self`
        // holds the latch shared, so no thread writes as long as the slice lives.
        unsafe { self.0.bytes.as_ref() }
    }
}

impl Drop for SharedLatch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.latch.unlatch_shared();
    }
}

pub struct ExclusiveLatch<'p>(&'p Frame);

impl<'p> ExclusiveLatch<'p> {
    #[inline]
    pub fn new(frame: &'p Frame) -> Self {
        frame.latch.exclusive();
        Self(frame)
    }

    #[inline]
    pub fn try_new(frame: &'p Frame) -> Option<Self> {
        frame.latch.try_exclusive().then(|| Self(frame))
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as for a shared hold; the only possible writer is borrowed.
        unsafe { self.0.bytes.as_ref() }
    }

    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory lives as long as the borrowed frame; all of it is initialised; `self`
        // is alone with it and borrowed alone, and frames do not overlap.
        unsafe { &mut *self.0.bytes.as_ptr() }
    }
}

impl Drop for ExclusiveLatch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.latch.unlatch_exclusive();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_apart_and_latched() {
        let frames = Frames::new(PageSize::new(4096).unwrap(), 3);
        assert_eq!(size_of::<Frame>(), 64);
        let starts = |index| frames.get(index).bytes.as_ptr().cast::<u8>().addr();
        assert!((0..3).all(|index| starts(index) % 64 == 0));
        assert_eq!(starts(2) - starts(1), 4096 + SHIFT_BYTES);
        let mut middle = ExclusiveLatch::new(frames.get(1));
        middle.bytes_mut().fill(7);
        assert!(SharedLatch::try_new(frames.get(1)).is_none());
        drop(middle);
        let (one, two) = (SharedLatch::new(frames.get(1)), SharedLatch::new(frames.get(1)));
        assert!(ExclusiveLatch::try_new(frames.get(1)).is_none());
        assert!(one.bytes().iter().chain(two.bytes()).all(|byte| *byte == 7));
        for other in [0, 2] {
            assert!(SharedLatch::new(frames.get(other)).bytes().iter().all(|byte| *byte == 0));
        }
    }

    /// Bytes of this process that were advised to be huge, by `VmFlags` of its mappings.
    fn advised_bytes(of: &Frames) -> u64 {
        let at = of.get(of.len() as u32 / 2).bytes.as_ptr().cast::<u8>().addr() as u64;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut range, mut found) = (0..0, 0);
        for line in maps.lines() {
            let first = line.split(' ').next().unwrap();
            if let Some((from, to)) = first.split_once('-') {
                let hex = |text| u64::from_str_radix(text, 16).unwrap_or(0);
                range = hex(from)..hex(to);
            }
            if range.contains(&at) && line.starts_with("VmFlags:") && line.contains(" hg") {
                found = range.end - range.start;
            }
        }
        found
    }

    #[test]
    fn only_a_large_pool_asks_for_huge_pages() {
        let page = PageSize::new(4096).unwrap();
        let small = Frames::new(page, 2000);
        assert_eq!(advised_bytes(&small), 0);
        let large = Frames::new(page, 8000);
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("skipped: this system has no transparent huge pages");
            return;
        }
        assert!(advised_bytes(&large) >= 7000 * 4096);
        ExclusiveLatch::new(large.get(7999)).bytes_mut().fill(3);
        assert!(SharedLatch::new(large.get(7998)).bytes().iter().all(|byte| *byte == 0));
    }
}
