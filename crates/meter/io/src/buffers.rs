//! The memory a worker's requests read into and write from, and the incompressible bytes in it.
//!
//! Invariant: one mapped region, aligned to 4096 bytes, filled with incompressible data; it lives
//! as long as any API that was started with it, so the kernel never writes into freed memory.
//! Contents are reached by copying only: the kernel may change a slot at any time while a request
//! on it is in flight, so no reference into the region is ever handed out.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::{io, ptr};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::IoError;

/// Alignment of every slot, and distance between the stamps of a block, in bytes.
const PAGE_BYTES: usize = 4096;
/// Size and alignment of a huge page, in bytes.
const HUGE_BYTES: usize = 2 << 20;

/// The pages of memory that a region is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Of the usual size, wherever the kernel finds them.
    Small,
    /// Huge ones, where the kernel has some.
    Huge,
}

/// One worker's request buffers: `slots` slots of `block_bytes` each.
#[derive(Debug)]
pub struct Buffers {
    region: Option<Arc<Region>>,
    slots: u32,
    block_bytes: u32,
    stride: usize,
}

#[derive(Debug)]
struct Region {
    /// Where its bytes lie: the mapping's start, or the first huge page in it.
    start: NonNull<c_void>,
    bytes: usize,
    mapped: NonNull<c_void>,
    mapped_bytes: usize,
}

// SAFETY: the region is plain memory that nothing else owns; all access is by raw copies.
unsafe impl Send for Region {}
// SAFETY: as above. Copies that race with the kernel or with each other may mix old and new data,
// which is what a request in flight means; no reference is ever formed.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a region. Its last huge page is mapped whole, so that it can be one.
    fn map(pages: Pages, bytes: usize) -> Result<Self, io::Error> {
        let mapped_bytes = match pages {
            Pages::Small => bytes,
            Pages::Huge => bytes.next_multiple_of(HUGE_BYTES) + HUGE_BYTES,
        };
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let none = || io::Error::from(io::ErrorKind::OutOfMemory);
        let mapped = NonNull::new(start).ok_or_else(none)?;
        let mut region = Self { start: mapped, bytes, mapped, mapped_bytes };
        if pages == Pages::Huge {
            let aside = start.align_offset(HUGE_BYTES);
            region.start = NonNull::new(start.wrapping_byte_add(aside)).ok_or_else(none)?;
            // SAFETY: advice on our own mapping. A refusal only means small pages.
            let _small_pages_do = unsafe { madvise(start, mapped_bytes, Advice::LinuxHugepage) };
        }
        Ok(region)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `Region::map`, and the last owner is going.
        let unmapped = unsafe { munmap(self.mapped.as_ptr(), self.mapped_bytes) };
        debug_assert!(unmapped.is_ok(), "unmapping our own region failed: {unmapped:?}");
    }
}

impl Buffers {
    /// Maps and fills `slots` slots of `block_bytes` bytes each in small pages, different for every
    /// seed.
    ///
    /// # Errors
    /// [`IoError::Memory`] when the region cannot be mapped.
    pub fn new(slots: u32, block_bytes: u32, seed: u64) -> Result<Self, IoError> {
        Self::in_pages(Pages::Small, slots, block_bytes, seed)
    }

    /// The same in pages of a kind.
    ///
    /// # Errors
    /// As [`Buffers::new`].
    pub fn in_pages(
        pages: Pages,
        slots: u32,
        block_bytes: u32,
        seed: u64,
    ) -> Result<Self, IoError> {
        assert!(slots > 0 && block_bytes > 0, "{slots} slots of {block_bytes} bytes");
        let stride = (block_bytes as usize).next_multiple_of(PAGE_BYTES);
        let bytes = stride * slots as usize;
        let region = Region::map(pages, bytes)
            .map_err(|source| IoError::Memory { bytes: bytes as u64, source })?;
        // SAFETY: the region was just mapped readable and writable and no other code has its
        // address.
        let content =
            unsafe { std::slice::from_raw_parts_mut(region.start.cast::<u8>().as_ptr(), bytes) };
        Noise::new(seed).fill(content);
        Ok(Self { region: Some(Arc::new(region)), slots, block_bytes, stride })
    }

    /// No memory at all, for an API that touches none.
    pub fn none() -> Self {
        Self { region: None, slots: 0, block_bytes: 0, stride: 0 }
    }

    /// A second owner of the same memory, for an API.
    pub(crate) fn share(&self) -> Self {
        Self { region: self.region.clone(), ..*self }
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Usable bytes of each slot.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Makes a slot's content unlike any other: writes `value` and `block` at the head of every
    /// 4096 bytes, so that storage that looks for equal pages finds none. Two stores per 4096
    /// bytes; slots under 16 bytes are left alone.
    #[inline]
    pub fn stamp(&mut self, slot: u32, value: u64, block: u64) {
        if self.block_bytes < 16 {
            return;
        }
        let mut at = 0;
        while at + 16 <= self.block_bytes as usize {
            let page = self.pointer(slot, self.block_bytes).wrapping_add(at).cast::<u64>();
            // SAFETY: `pointer` checked that the slot exists; `at + 16` lies within its block,
            // and slots are aligned to 4096 bytes.
            unsafe {
                page.write_volatile(value);
                page.add(1).write_volatile(block);
            }
            at += PAGE_BYTES;
        }
    }

    /// Copies the start of a slot out.
    ///
    /// # Panics
    /// When the slot does not exist or `into` is larger than a block.
    pub fn copy_out(&self, slot: u32, into: &mut [u8]) {
        let from = self.pointer(slot, into.len() as u32);
        // SAFETY: `pointer` checked the slot and the length; `into` is not part of the region.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies bytes to the start of a slot.
    ///
    /// # Panics
    /// When the slot does not exist or `from` is larger than a block.
    pub fn copy_in(&mut self, slot: u32, from: &[u8]) {
        self.write_slot(slot, from);
    }

    /// The same for a holder of a shared clone, such as an API that stands in for the kernel.
    pub(crate) fn write_slot(&self, slot: u32, from: &[u8]) {
        let to = self.pointer(slot, from.len() as u32);
        // SAFETY: `pointer` checked the slot and the length; `from` is not part of the region.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// Where `len` bytes of a slot lie.
    ///
    /// # Panics
    /// When the slot does not exist or `len` is larger than a block: a bug of the caller that must
    /// not become a stray write.
    #[inline]
    pub(crate) fn pointer(&self, slot: u32, len: u32) -> *mut u8 {
        assert!(slot < self.slots && len <= self.block_bytes, "slot {slot}, {len} bytes");
        match &self.region {
            Some(region) => {
                region.start.as_ptr().cast::<u8>().wrapping_add(slot as usize * self.stride)
            }
            None => ptr::null_mut(),
        }
    }

    /// The whole region, for registration with the kernel; absent when there is no memory.
    pub(crate) fn region(&self) -> Option<(*mut u8, usize)> {
        self.region.as_ref().map(|region| (region.start.as_ptr().cast::<u8>(), region.bytes))
    }
}

// Incompressible bytes from a seed.
//
// Invariant: the same seed gives the same bytes; no two 64-byte lines of one stream are alike in
// practice, so that neither compression nor deduplication finds anything.
// Not a source of randomness for offsets or secrets.

/// Xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
pub(crate) struct Noise(u64);

impl Noise {
    /// A stream for a seed; every seed, 0 included, is good.
    pub(crate) fn new(seed: u64) -> Self {
        // One splitmix step spreads small seeds over all bits; xorshift's state must not be 0.
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((state ^ (state >> 31)) | 1)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Fills `bytes`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_ne_bytes());
        }
        let last = self.next().to_ne_bytes();
        for (to, from) in words.into_remainder().iter_mut().zip(last) {
            *to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffers, HUGE_BYTES, Pages};

    #[test]
    fn slots_are_aligned_filled_and_different() {
        let buffers = Buffers::new(3, 512, 1).unwrap();
        let mut contents = Vec::new();
        for slot in 0..3 {
            assert_eq!(buffers.pointer(slot, 512) as usize % 4096, 0);
            let mut content = vec![0; 512];
            buffers.copy_out(slot, &mut content);
            contents.push(content);
        }
        assert_ne!(contents[0], contents[1]);
        assert_ne!(contents[1], contents[2]);
        assert!(contents[0].iter().filter(|byte| **byte == 0).count() < 20);
    }

    #[test]
    fn a_stamp_changes_every_page_of_the_slot_only() {
        let mut buffers = Buffers::new(2, 16384, 1).unwrap();
        let mut neighbour = vec![0; 16384];
        buffers.copy_out(1, &mut neighbour);
        buffers.stamp(0, 7, 9);
        let mut content = vec![0; 16384];
        buffers.copy_out(0, &mut content);
        for page in content.chunks(4096) {
            assert_eq!(page[..8], 7u64.to_ne_bytes());
            assert_eq!(page[8..16], 9u64.to_ne_bytes());
        }
        let mut after = vec![0; 16384];
        buffers.copy_out(1, &mut after);
        assert_eq!(neighbour, after);
    }

    #[test]
    fn a_single_megabyte_can_be_one_huge_page() {
        let buffers = Buffers::in_pages(Pages::Huge, 1, 1 << 20, 1).unwrap();
        assert_eq!(buffers.pointer(0, 1) as usize % HUGE_BYTES, 0);
        let mut content = vec![0; 1 << 20];
        buffers.copy_out(0, &mut content);
        assert!(content.iter().filter(|byte| **byte == 0).count() < 10_000, "it is filled");
    }

    #[test]
    #[should_panic(expected = "slot 2")]
    fn a_slot_that_is_not_there_is_refused() {
        Buffers::new(2, 512, 1).unwrap().pointer(2, 1);
    }
}

#[cfg(test)]
mod noise_tests {
    use std::collections::HashSet;

    use super::Noise;

    #[test]
    fn seeds_differ_and_repeat() {
        let mut first = [0; 100];
        let mut again = [0; 100];
        let mut other = [0; 100];
        Noise::new(0).fill(&mut first);
        Noise::new(0).fill(&mut again);
        Noise::new(1).fill(&mut other);
        assert_eq!(first, again);
        assert_ne!(first, other);
    }

    #[test]
    fn words_do_not_repeat() {
        let mut noise = Noise::new(7);
        let words: HashSet<u64> = (0..10_000).map(|_| noise.next()).collect();
        assert_eq!(words.len(), 10_000);
    }
}
