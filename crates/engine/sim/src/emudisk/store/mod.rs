//! The contents of a disk: pages that were written, and zeros everywhere else.
//!
//! Invariant: a read sees what was written last; a write that is refused because the contents may
//! not grow has changed nothing. Durability is not here.

mod memory;
mod pages;
mod sparse;

use std::io;
use std::ops::Range;

use memory::Memory;
use sparse::Sparse;

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
}
