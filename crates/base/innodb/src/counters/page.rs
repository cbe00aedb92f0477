//! The status page: all counters in fixed bytes, which a reader may meet half written.
//!
//! Little endian: 0 magic | 8 version u32 | 12 process u32 | 16 hash of the table u64 |
//! 24 sequence u64 | 32 Unix time in microseconds u64 | 40 values u64 each | zeros |
//! 4080 crc32c of bytes 0..4080 u32 | 4084 zero u32 | 4088 sequence again u64.
//! Names are not in the page: the hash says whether the reader has the writer's table.

use super::{COUNTERS, Counter, Counters};

/// Bytes of a status page.
pub const STATUS_BYTES: usize = 4096;

const MAGIC: [u8; 8] = *b"IOSTATUS";
const VERSION: u32 = 1;
const VALUES_AT: usize = 40;
const CRC_AT: usize = STATUS_BYTES - 16;
const SEQUENCE_END_AT: usize = STATUS_BYTES - 8;

const _: () = assert!(VALUES_AT + Counter::COUNT * 8 <= CRC_AT, "the status page is too small");

/// A hash over the names of all counters in their order (FNV-1a).
pub const TABLE_HASH: u64 = table_hash();

const fn table_hash() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut row = 0;
    while row < COUNTERS.len() {
        let name = COUNTERS[row].name.as_bytes();
        let mut at = 0;
        while at <= name.len() {
            // The end of a name counts too, so that moving a letter to the next one is seen.
            let byte = if at < name.len() { name[at] } else { 0 };
            hash = (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        row += 1;
    }
    hash
}

/// What a status page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusPage {
    /// Grows with every publication.
    pub sequence: u64,
    /// The process that holds the engine.
    pub process_id: u32,
    /// When it was published, in microseconds of Unix time.
    pub unix_us: u64,
    /// The counters.
    pub counters: Counters,
}

/// Why bytes are not a status page that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusFault {
    /// Too few bytes.
    #[error("a status page has {STATUS_BYTES} bytes; found {found}")]
    Short {
        /// How many there are.
        found: usize,
    },
    /// Something else, or nothing published yet.
    #[error("no status page; none was published here yet, or the file is another one")]
    Magic,
    /// Another version's layout.
    #[error("the status page has version {found}; this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// Another version's counters.
    #[error(
        "the status page lists other counters (table {found:016x}, here {TABLE_HASH:016x}); read it with the version that runs the engine"
    )]
    Table {
        /// The hash of the writer's table.
        found: u64,
    },
    /// The writer was at work meanwhile: read again.
    #[error("the status page was being written; read it again")]
    Torn,
}

impl StatusPage {
    /// Writes the page.
    pub fn encode(&self, out: &mut [u8; STATUS_BYTES]) {
        out.fill(0);
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.process_id.to_le_bytes());
        out[16..24].copy_from_slice(&TABLE_HASH.to_le_bytes());
        out[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        out[32..40].copy_from_slice(&self.unix_us.to_le_bytes());
        let cells = out[VALUES_AT..CRC_AT].chunks_exact_mut(8);
        for (cell, value) in cells.zip(self.counters.values()) {
            cell.copy_from_slice(&value.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[..CRC_AT]);
        out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        out[SEQUENCE_END_AT..].copy_from_slice(&self.sequence.to_le_bytes());
    }

    /// Reads a page. On `Torn` the reader reads again.
    ///
    /// # Errors
    /// Bytes that are no status page, one of another version, or one that was being written.
    pub fn decode(bytes: &[u8]) -> Result<StatusPage, StatusFault> {
        let page: &[u8; STATUS_BYTES] = bytes
            .get(..STATUS_BYTES)
            .and_then(|page| page.try_into().ok())
            .ok_or(StatusFault::Short { found: bytes.len() })?;
        if page[..8] != MAGIC {
            return Err(StatusFault::Magic);
        }
        let version = u32_at(page, 8);
        if version != VERSION {
            return Err(StatusFault::Version { found: version });
        }
        let sequence = u64_at(page, 24);
        let is_whole = sequence == u64_at(page, SEQUENCE_END_AT)
            && u32_at(page, CRC_AT) == crc32c::crc32c(&page[..CRC_AT]);
        if !is_whole {
            return Err(StatusFault::Torn);
        }
        let table = u64_at(page, 16);
        if table != TABLE_HASH {
            return Err(StatusFault::Table { found: table });
        }
        let values = std::array::from_fn(|at| u64_at(page, VALUES_AT + at * 8));
        let counters = Counters::new(values);
        let (process_id, unix_us) = (u32_at(page, 12), u64_at(page, 32));
        Ok(StatusPage { sequence, process_id, unix_us, counters })
    }
}

fn u64_at(page: &[u8; STATUS_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| page[at + byte]))
}

fn u32_at(page: &[u8; STATUS_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| page[at + byte]))
}
