//! Contents that are verified: the header of a block, and what was written where.
//!
//! Invariant: a block verifies only if it is whole, was written for the place it is read from, and
//! is the last that this worker wrote there. Unlike the rest of the loop it allocates: a record of
//! each block. It reads no clock.

use std::collections::BTreeMap;
use std::collections::btree_map::IntoIter;
use std::io;

use iostrata_io::{Buffers, OpKind, OpenFiles};
use iostrata_plan::{IoSpec, Verify};

use crate::generator::Request;
use crate::recorder::Flight;

/// The error number of a request whose contents are not those that were written.
pub const CONTENT_ERRNO: i32 = libc::EILSEQ;

/// Begins every block: magic, offset, number, length, checksum.
const HEAD_BYTES: usize = 32;
const MAGIC: u64 = 0x696f_7374_7261_7461;
/// The bits of a number below those of its worker.
const WORKER_SHIFT: u32 = 48;

/// Where a block lies: file and offset.
type BlockPlace = (u32, u64);

/// One worker's record of contents.
#[derive(Debug)]
pub(crate) struct Verification {
    reads_back: bool,
    /// What every block repeats; empty where it has a seal.
    pattern: Vec<u8>,
    /// Whether whatever is read has to verify,
    checks_all: bool,
    /// or nothing has to.
    checks_none: bool,
    worker: u64,
    count: u64,
    /// Length and number of each block that was written last.
    written: BTreeMap<BlockPlace, (u32, u64)>,
    reading: Option<IntoIter<BlockPlace, (u32, u64)>>,
    expected: BTreeMap<BlockPlace, u64>,
    scratch: Vec<u8>,
    files: OpenFiles,
}

impl Verification {
    /// What worker `number` of a stream needs; `None` where nothing is verified.
    pub(crate) fn of(spec: &IoSpec, number: u32, files: &OpenFiles) -> Option<Self> {
        let Verify { reads_back, pattern, is_unchecked, .. } = spec.variation.verify.clone()?;
        Some(Self {
            reads_back: reads_back && spec.mix.writes(),
            pattern,
            checks_all: !spec.mix.writes(),
            checks_none: is_unchecked,
            worker: u64::from(number) + 1,
            count: 0,
            written: BTreeMap::new(),
            reading: None,
            expected: BTreeMap::new(),
            scratch: vec![0; spec.block_bytes_most() as usize],
            files: files.clone(),
        })
    }

    /// Seals a block that is about to be written.
    #[cold]
    pub(crate) fn seal(&mut self, buffers: &mut Buffers, slot: u32, request: Request, len: u32) {
        self.count += 1;
        let number = self.worker << WORKER_SHIFT | self.count;
        if self.reads_back {
            self.record(request, len, number);
        }
        let block = &mut self.scratch[..len as usize];
        if !self.pattern.is_empty() {
            repeat(&self.pattern, block);
            buffers.copy_in(slot, block);
            return;
        }
        buffers.copy_out(slot, block);
        block[..8].copy_from_slice(&MAGIC.to_le_bytes());
        block[8..16].copy_from_slice(&request.offset.to_le_bytes());
        block[16..24].copy_from_slice(&number.to_le_bytes());
        block[24..28].copy_from_slice(&len.to_le_bytes());
        let sum = checksum(block);
        block[28..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        buffers.copy_in(slot, &self.scratch[..HEAD_BYTES]);
    }

    /// Of blocks that a later one overwrites in part nothing is left to verify.
    fn record(&mut self, Request { file, offset, .. }: Request, len: u32, number: u64) {
        let end = offset + u64::from(len);
        let before = self.written.range((file, 0)..(file, offset)).next_back();
        let before = before.filter(|((_, at), (len, _))| at + u64::from(*len) > offset);
        let first = before.map_or((file, offset), |(place, _)| *place);
        let covered: Vec<BlockPlace> =
            self.written.range(first..(file, end)).map(|(place, _)| *place).collect();
        for place in covered {
            self.written.remove(&place);
        }
        self.written.insert((file, offset), (len, number));
    }

    /// Whether anything to read back is not being read yet.
    pub(crate) fn has_unread(&self) -> bool {
        self.reading.is_none() && !self.written.is_empty()
    }

    /// Begins to read back: as in fio from the device, not from what is left in memory.
    ///
    /// # Errors
    /// The files cannot be flushed.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.files.sync()?;
        self.files.drop_cached();
        let written = std::mem::take(&mut self.written);
        self.expected = written.iter().map(|(place, (_, number))| (*place, *number)).collect();
        self.reading = Some(written.into_iter());
        Ok(())
    }

    /// Ends to read back: what is written from now on is read back by itself.
    pub(crate) fn end(&mut self) {
        self.reading = None;
        self.expected.clear();
    }

    /// Whether blocks are being read back.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// The next block to read back.
    pub(crate) fn next_read(&mut self) -> Option<(Request, u32)> {
        let ((file, offset), (len, _)) = self.reading.as_mut()?.next()?;
        Some((Request { kind: OpKind::Read, file, offset }, len))
    }

    /// Whether what was read is what was written, as far as that has to be so now.
    #[cold]
    pub(crate) fn holds(&mut self, buffers: &Buffers, slot: u32, flight: &Flight) -> bool {
        if self.checks_none || (!self.checks_all && !self.is_reading()) {
            return true;
        }
        let block = &mut self.scratch[..flight.len as usize];
        buffers.copy_out(slot, block);
        if !self.pattern.is_empty() {
            return block.chunks(self.pattern.len()).all(|part| self.pattern.starts_with(part));
        }
        let number = word(block, 16);
        let is_sealed = word(block, 0) == MAGIC
            && word(block, 8) == flight.offset
            && block[24..28] == flight.len.to_le_bytes()
            && block[28..HEAD_BYTES] == checksum(block).to_le_bytes();
        // Another job of the same file may have written it since.
        let is_last = self
            .expected
            .get(&(flight.file, flight.offset))
            .is_none_or(|expected| *expected == number || number >> WORKER_SHIFT != self.worker);
        is_sealed && is_last
    }
}

fn repeat(pattern: &[u8], block: &mut [u8]) {
    for part in block.chunks_mut(pattern.len()) {
        let len = part.len();
        part.copy_from_slice(&pattern[..len]);
    }
}

fn word(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Over everything but the checksum itself.
fn checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..28]), &block[HEAD_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_io::{FileSpec, OpenMode};
    use iostrata_plan::Mix;

    fn spec(mix: Mix) -> IoSpec {
        let mut spec = IoSpec::new("x");
        spec.mix = mix;
        spec.variation.verify = Some(Verify { reads_back: true, ..Verify::default() });
        spec
    }

    fn request(offset: u64) -> Request {
        Request { kind: OpKind::Write, file: 0, offset }
    }

    fn flight(offset: u64) -> Flight {
        Flight { offset, len: 4096, ..Flight::default() }
    }

    #[test]
    fn a_block_holds_at_its_place_with_its_content_and_as_the_last_one() {
        let mut writer =
            Verification::of(&spec(Mix::Write), 0, &OpenFiles::null(1, 1 << 20)).unwrap();
        let mut reader =
            Verification::of(&spec(Mix::Read), 1, &OpenFiles::null(1, 1 << 20)).unwrap();
        let mut buffers = Buffers::new(2, 4096, 1).unwrap();
        assert!(!reader.holds(&buffers, 0, &flight(0)), "nothing has sealed it");
        writer.seal(&mut buffers, 0, request(8192), 4096);
        assert!(reader.holds(&buffers, 0, &flight(8192)));
        assert!(!reader.holds(&buffers, 0, &flight(0)), "it belongs elsewhere");
        writer.seal(&mut buffers, 1, request(8192), 4096);
        assert!(writer.holds(&buffers, 0, &flight(8192)), "it is not reading back yet");
        writer.begin().unwrap();
        assert_eq!(writer.next_read().map(|(one, len)| (one.offset, len)), Some((8192, 4096)));
        assert!(writer.holds(&buffers, 1, &flight(8192)));
        assert!(!writer.holds(&buffers, 0, &flight(8192)), "it was written before the last one");
        assert!(writer.next_read().is_none());
        let mut content = vec![0; 4096];
        buffers.copy_out(1, &mut content);
        content[4095] ^= 1;
        buffers.copy_in(1, &content);
        assert!(!reader.holds(&buffers, 1, &flight(8192)), "its last byte is another");
        writer.end();
        assert!(!writer.is_reading() && !writer.has_unread());
        writer.seal(&mut buffers, 1, request(8192), 4096);
        assert!(writer.has_unread(), "the next loop is read back, too");
    }

    #[test]
    fn a_pattern_fills_a_block_and_is_all_there_is_to_verify() {
        let mut spec = spec(Mix::Read);
        spec.variation.verify = Some(Verify { pattern: b"abc".to_vec(), ..Verify::default() });
        let mut verification = Verification::of(&spec, 0, &OpenFiles::null(1, 1 << 20)).unwrap();
        let mut buffers = Buffers::new(1, 4096, 1).unwrap();
        assert!(!verification.holds(&buffers, 0, &flight(0)));
        verification.seal(&mut buffers, 0, request(0), 4096);
        let mut content = vec![0; 4096];
        buffers.copy_out(0, &mut content);
        assert!(content.starts_with(b"abcabcab") && content.ends_with(b"abca"));
        assert!(verification.holds(&buffers, 0, &flight(0)));
        content[4095] = b'b';
        buffers.copy_in(0, &content);
        assert!(!verification.holds(&buffers, 0, &flight(0)));
        spec.variation.verify = Some(Verify { is_unchecked: true, ..Verify::default() });
        let mut unchecked = Verification::of(&spec, 0, &OpenFiles::null(1, 1 << 20)).unwrap();
        assert!(unchecked.holds(&buffers, 0, &flight(0)), "nothing looks at it");
    }

    #[test]
    fn what_is_read_back_is_not_in_memory() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let mode = OpenMode { write: true, ..OpenMode::default() };
        let files = OpenFiles::open(&[FileSpec { path, bytes: 1 << 20 }], mode).unwrap();
        if files.residency().unwrap().cached_bytes == 0 {
            eprintln!("skipped: this file system does not report its pages in memory");
            return;
        }
        let mut writer = Verification::of(&spec(Mix::Write), 0, &files).unwrap();
        writer.begin().unwrap();
        assert_eq!(files.residency().unwrap().cached_bytes, 0);
    }

    #[test]
    fn of_blocks_that_overlap_the_last_one_is_left() {
        let mut writer =
            Verification::of(&spec(Mix::Write), 0, &OpenFiles::null(1, 1 << 20)).unwrap();
        let mut buffers = Buffers::new(1, 4096, 1).unwrap();
        for offset in [0, 4096, 8192, 2048, 20_480] {
            writer.seal(&mut buffers, 0, request(offset), 4096);
        }
        assert!(writer.has_unread());
        writer.begin().unwrap();
        let left: Vec<u64> =
            std::iter::from_fn(|| writer.next_read()).map(|(one, _)| one.offset).collect();
        assert_eq!(left, [2048, 8192, 20_480]);
    }
}
