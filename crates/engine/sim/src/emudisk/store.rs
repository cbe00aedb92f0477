//! The contents of a disk: pages that were written, and zeros everywhere else.
//!
//! Invariant: a read sees what was written last; a write that is refused because the contents may
//! not grow has changed nothing. Durability is not here.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FsWord, Mode, OFlags, fallocate, fstatfs, fstatvfs, open};

use crate::emudisk::error::ServeError;
use crate::emudisk::options::Store;

/// Contents are kept in pieces of this size.
pub(crate) const PAGE_BYTES: u64 = 4096;
const PAGE: usize = PAGE_BYTES as usize;

/// Why a write did not happen.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The contents may not grow.
    Full,
    /// The file refused.
    Io,
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        if error.raw_os_error() == Some(libc::ENOSPC) { Self::Full } else { Self::Io }
    }
}

/// The contents of one disk.
#[derive(Debug)]
pub(crate) struct Contents {
    kind: StoreKind,
    limit_bytes: u64,
}

#[derive(Debug)]
enum StoreKind {
    Memory(Memory),
    Sparse(Sparse),
}

impl Contents {
    /// A disk of zeros.
    pub(crate) fn new(
        store: &Store,
        size_bytes: u64,
        limit_bytes: u64,
    ) -> Result<Self, ServeError> {
        let kind = match store {
            Store::Memory => StoreKind::Memory(Memory::new()),
            Store::File { dir } => StoreKind::Sparse(Sparse::new(dir, size_bytes)?),
        };
        Ok(Self { kind, limit_bytes })
    }

    pub(crate) fn set_limit(&mut self, limit_bytes: u64) {
        self.limit_bytes = limit_bytes;
    }

    /// Bytes that the contents take.
    pub(crate) fn bytes(&self) -> u64 {
        let pages = match &self.kind {
            StoreKind::Memory(memory) => memory.pages(),
            StoreKind::Sparse(sparse) => sparse.pages(),
        };
        pages * PAGE_BYTES
    }

    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.kind {
            StoreKind::Memory(memory) => {
                memory.read(at, into);
                Ok(())
            }
            StoreKind::Sparse(sparse) => sparse.read(at, into),
        }
    }

    /// Writes, as long as the contents may grow.
    pub(crate) fn write(&mut self, at: u64, from: &[u8]) -> Result<(), WriteError> {
        let missing = match &self.kind {
            StoreKind::Memory(memory) => memory.missing(at, from.len()),
            StoreKind::Sparse(sparse) => sparse.missing(at, from.len()),
        };
        if missing > 0 && self.bytes() + missing * PAGE_BYTES > self.limit_bytes {
            return Err(WriteError::Full);
        }
        Ok(self.put(at, from)?)
    }

    /// Writes back what was there before, whatever the limit.
    pub(crate) fn put(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        match &mut self.kind {
            StoreKind::Memory(memory) => {
                memory.write(at, from);
                Ok(())
            }
            StoreKind::Sparse(sparse) => sparse.write(at, from),
        }
    }

    /// Makes everything in the range zero and gives back what it took.
    pub(crate) fn zero(&mut self, range: Range<u64>) -> io::Result<()> {
        match &mut self.kind {
            StoreKind::Memory(memory) => {
                memory.zero(range);
                Ok(())
            }
            StoreKind::Sparse(sparse) => sparse.zero(range),
        }
    }
}

#[derive(Debug)]
struct Memory {
    pages: HashMap<u64, Box<[u8; PAGE]>>,
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

impl Memory {
    fn new() -> Self {
        Self { pages: HashMap::new() }
    }

    fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Pages that a write could add.
    fn missing(&self, at: u64, bytes: usize) -> u64 {
        parts(at, bytes as u64).filter(|part| !self.pages.contains_key(&part.page)).count() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        for part in parts(at, into.len() as u64) {
            let into = &mut into[part.of_range.clone()];
            match self.pages.get(&part.page) {
                Some(page) => into.copy_from_slice(&page[part.within.clone()]),
                None => into.fill(0),
            }
        }
    }

    fn write(&mut self, at: u64, from: &[u8]) {
        for part in parts(at, from.len() as u64) {
            let from = &from[part.of_range.clone()];
            if !is_zero(from) {
                let page = self.pages.entry(part.page).or_insert_with(|| Box::new([0; PAGE]));
                page[part.within.clone()].copy_from_slice(from);
            } else if part.is_whole() {
                self.pages.remove(&part.page);
            } else if let Some(page) = self.pages.get_mut(&part.page) {
                page[part.within.clone()].fill(0);
                if is_zero(&page[..]) {
                    self.pages.remove(&part.page);
                }
            }
        }
    }

    fn zero(&mut self, range: Range<u64>) {
        let whole = range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES;
        if whole.is_empty() {
            return self.write(range.start, &vec![0; (range.end - range.start) as usize]);
        }
        let before = whole.start * PAGE_BYTES - range.start;
        let after = range.end - whole.end * PAGE_BYTES;
        self.write(range.start, &vec![0; before as usize]);
        self.write(whole.end * PAGE_BYTES, &vec![0; after as usize]);
        if whole.end - whole.start > self.pages() {
            self.pages.retain(|page, _| !whole.contains(page));
        } else {
            for page in whole {
                self.pages.remove(&page);
            }
        }
    }
}

/// The part of a range that lies in one page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PagePart {
    /// Which page.
    pub page: u64,
    /// Bytes within the page.
    pub within: Range<usize>,
    /// Bytes within the whole range.
    pub of_range: Range<usize>,
}

impl PagePart {
    /// Whether it is the whole page.
    fn is_whole(&self) -> bool {
        self.within.len() as u64 == PAGE_BYTES
    }
}

/// Parts of `bytes` bytes from `at`, in order.
fn parts(at: u64, bytes: u64) -> impl Iterator<Item = PagePart> {
    let end = at + bytes;
    let mut next = at;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let page = next / PAGE_BYTES;
            let from = next;
            let to = end.min((page + 1) * PAGE_BYTES);
            next = to;
            let first = page * PAGE_BYTES;
            PagePart {
                page,
                within: (from - first) as usize..(to - first) as usize,
                of_range: (from - at) as usize..(to - at) as usize,
            }
        })
    })
}

/// Of tmpfs, as statfs(2) shows it.
const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// Least room that the file system must have.
const ROOM_BYTES_MIN: u64 = 1 << 20;

#[derive(Debug)]
struct Sparse {
    file: File,
    written: HashSet<u64>,
}

impl Sparse {
    fn new(dir: &Path, size_bytes: u64) -> Result<Self, ServeError> {
        let refused = |found: String, fix| ServeError::Store { dir: dir.to_owned(), found, fix };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = open(dir, flags, mode).map(File::from).map_err(|error| {
            refused(error.to_string(), "take an existing directory on ext4, XFS or btrfs")
        })?;
        let looked =
            |error: rustix::io::Errno| refused(error.to_string(), "take another directory");
        if fstatfs(&file).map_err(looked)?.f_type == TMPFS_MAGIC {
            let fix = "keep the contents in memory, or take a directory on a disk";
            return Err(refused("it is in memory (tmpfs)".to_owned(), fix));
        }
        let room = fstatvfs(&file).map_err(looked)?;
        let room_bytes = room.f_bavail * room.f_frsize;
        if room_bytes < ROOM_BYTES_MIN {
            let found = format!("its file system has {room_bytes} bytes left");
            return Err(refused(found, "make room, or take another directory"));
        }
        let sized = file.set_len(size_bytes);
        sized.map_err(|error| refused(error.to_string(), "take a smaller disk"))?;
        Ok(Self { file, written: HashSet::new() })
    }

    fn pages(&self) -> u64 {
        self.written.len() as u64
    }

    /// Pages that a write could add.
    fn missing(&self, at: u64, bytes: usize) -> u64 {
        parts(at, bytes as u64).filter(|part| !self.written.contains(&part.page)).count() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        if self.missing(at, into.len()) == 0 {
            return self.file.read_exact_at(into, at);
        }
        for part in parts(at, into.len() as u64) {
            let into = &mut into[part.of_range.clone()];
            if self.written.contains(&part.page) {
                self.file.read_exact_at(into, at + part.of_range.start as u64)?;
            } else {
                into.fill(0);
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        let is_hole = self.missing(at, from.len()) == parts(at, from.len() as u64).count() as u64;
        if is_hole && from.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.file.write_all_at(from, at)?;
        self.written.extend(parts(at, from.len() as u64).map(|part| part.page));
        Ok(())
    }

    fn zero(&mut self, range: Range<u64>) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, range.start, range.end - range.start)?;
        let whole = range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES;
        self.written.retain(|page| !whole.contains(page));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 1 << 20;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, usize, u8),
        Zero(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = 0..SIZE - 20_000;
        prop_oneof![
            3 => (at.clone(), 1..20_000_usize, 0..4_u8)
                .prop_map(|(at, n, b)| Step::Write(at, n, b)),
            1 => (at, 1..20_000_u64).prop_map(|(at, n)| Step::Zero(at, n)),
        ]
    }

    fn stores() -> [Contents; 2] {
        let dir = std::env::current_dir().unwrap();
        [Store::Memory, Store::File { dir }].map(|store| Contents::new(&store, SIZE, SIZE).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn it_holds_what_was_written(steps in proptest::collection::vec(step(), 1..40)) {
            for mut contents in stores() {
                let mut plain = vec![0; SIZE as usize];
                for step in &steps {
                    match *step {
                        Step::Write(at, n, byte) => {
                            contents.write(at, &vec![byte; n]).unwrap();
                            plain[at as usize..at as usize + n].fill(byte);
                        }
                        Step::Zero(at, n) => {
                            contents.zero(at..at + n).unwrap();
                            plain[at as usize..(at + n) as usize].fill(0);
                        }
                    }
                }
                let mut read = vec![1; SIZE as usize];
                contents.read(0, &mut read).unwrap();
                prop_assert!(read == plain);
                let used = plain.chunks(PAGE).filter(|page| page.iter().any(|b| *b != 0)).count();
                prop_assert!(contents.bytes() >= used as u64 * PAGE_BYTES);
            }
        }
    }

    #[test]
    fn it_takes_no_room_for_zeros() {
        for mut contents in stores() {
            contents.write(0, &[0; 3 * PAGE]).unwrap();
            assert_eq!(contents.bytes(), 0, "{:?}", contents.kind);
            contents.write(PAGE_BYTES - 1, &[7; 2]).unwrap();
            assert_eq!(contents.bytes(), 2 * PAGE_BYTES);
            contents.zero(0..SIZE).unwrap();
            assert_eq!(contents.bytes(), 0);
        }
    }

    #[test]
    fn it_does_not_grow_beyond_its_limit() {
        for mut contents in stores() {
            contents.set_limit(2 * PAGE_BYTES);
            contents.write(0, &[1; 2 * PAGE]).unwrap();
            assert!(matches!(contents.write(8192, &[2; 512]), Err(WriteError::Full)));
            assert!(matches!(contents.write(4096, &[2; 2 * PAGE]), Err(WriteError::Full)));
            contents.write(4096, &[3; PAGE]).unwrap();
            let mut read = [0; 3 * PAGE];
            contents.read(0, &mut read).unwrap();
            assert_eq!([read[0], read[4096], read[8192]], [1, 3, 0]);
        }
    }

    #[test]
    fn ranges_are_cut_at_pages() {
        let cut: Vec<PagePart> = parts(4000, 4300).collect();
        assert_eq!(
            cut,
            [
                PagePart { page: 0, within: 4000..4096, of_range: 0..96 },
                PagePart { page: 1, within: 0..4096, of_range: 96..4192 },
                PagePart { page: 2, within: 0..108, of_range: 4192..4300 },
            ]
        );
        assert!(!cut[0].is_whole() && cut[1].is_whole());
        assert_eq!(parts(5, 0).count(), 0);
    }
}
