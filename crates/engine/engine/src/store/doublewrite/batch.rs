//! The header of a doublewrite batch, as bytes.
//!
//! Invariant: pure. What `write` wrote, `read` finds; of anything else it finds nothing, and it
//! reads nothing outside.

use crate::store::layout::{BATCH_MAGIC, DOUBLEWRITE_PAGES_MAX, batch, entry, header_bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// Nothing: no page may be restored.
    Empty,
    /// A copy of every page.
    Copies,
    /// Numbers and checksums alone.
    EntriesOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchEntry {
    pub(crate) page: u64,
    pub(crate) lsn: u64,
    pub(crate) crc: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundBatch {
    pub(crate) sequence: u64,
    pub(crate) settled: u64,
    pub(crate) kind: BatchKind,
    pub(crate) header_bytes: usize,
    pub(crate) entries: Vec<BatchEntry>,
}

impl BatchKind {
    const fn code(self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::Copies => 1,
            Self::EntriesOnly => 2,
        }
    }
}

/// Number and the limit of settled batches.
pub(crate) type Numbers = (u64, u64);

/// Writes a header over all of `into`.
pub(crate) fn write(
    into: &mut [u8],
    (sequence, settled): Numbers,
    kind: BatchKind,
    entries: impl Iterator<Item = BatchEntry> + Clone,
) {
    let count = entries.clone().count();
    let end = batch::ENTRIES + count * entry::BYTES;
    assert!(end <= into.len(), "{count} entries do not fit into {} bytes", into.len());
    into[..batch::ENTRIES].fill(0);
    into[end..].fill(0);
    into[..8].copy_from_slice(&BATCH_MAGIC);
    put_u64(into, batch::SEQUENCE, sequence);
    put_u64(into, batch::SETTLED, settled);
    put_u32(into, batch::KIND, kind.code());
    put_u32(into, batch::COUNT, count as u32);
    put_u32(into, batch::HEADER_BYTES, into.len() as u32);
    for (of, at) in entries.zip((batch::ENTRIES..).step_by(entry::BYTES)) {
        put_u64(into, at + entry::PAGE, of.page);
        put_u64(into, at + entry::LSN, of.lsn);
        put_u32(into, at + entry::CRC, of.crc);
        put_u32(into, at + entry::CRC + 4, 0);
    }
    let crc = crc(into, end);
    put_u32(into, batch::CRC, crc);
}

/// Bytes of the header that begins with this block, if one does.
pub(crate) fn length(first_block: &[u8]) -> Option<usize> {
    let bytes = get_u32(first_block, batch::HEADER_BYTES)? as usize;
    let most = header_bytes(DOUBLEWRITE_PAGES_MAX);
    let whole = bytes.is_multiple_of(header_bytes(1)) && (1..=most).contains(&bytes);
    (whole && first_block.starts_with(&BATCH_MAGIC)).then_some(bytes)
}

/// The header in these bytes, if all of it is good.
pub(crate) fn read(from: &[u8]) -> Option<FoundBatch> {
    if length(from)? != from.len() {
        return None;
    }
    let count = get_u32(from, batch::COUNT)? as usize;
    let end = batch::ENTRIES + count.checked_mul(entry::BYTES)?;
    if end > from.len() || get_u32(from, batch::CRC)? != crc(from, end) {
        return None;
    }
    let kind = match get_u32(from, batch::KIND)? {
        0 => BatchKind::Empty,
        1 => BatchKind::Copies,
        2 => BatchKind::EntriesOnly,
        _ => return None,
    };
    let entries = (batch::ENTRIES..end).step_by(entry::BYTES).map(|at| {
        Some(BatchEntry {
            page: get_u64(from, at + entry::PAGE)?,
            lsn: get_u64(from, at + entry::LSN)?,
            crc: get_u32(from, at + entry::CRC)?,
        })
    });
    Some(FoundBatch {
        sequence: get_u64(from, batch::SEQUENCE)?,
        settled: get_u64(from, batch::SETTLED)?,
        kind,
        header_bytes: from.len(),
        entries: entries.collect::<Option<_>>()?,
    })
}

fn crc(header: &[u8], end: usize) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..batch::CRC]), &header[batch::ENTRIES..end])
}

pub(crate) fn put_u32(into: &mut [u8], at: usize, value: u32) {
    into[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(into: &mut [u8], at: usize, value: u64) {
    into[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn get_u32(from: &[u8], at: usize) -> Option<u32> {
    from.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn get_u64(from: &[u8], at: usize) -> Option<u64> {
    from.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BatchEntry, BatchKind, FoundBatch, length, read, write};
    use crate::store::layout::header_bytes;

    fn entry() -> impl Strategy<Value = BatchEntry> {
        any::<(u64, u64, u32)>().prop_map(|(page, lsn, crc)| BatchEntry { page, lsn, crc })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_found_and_any_change_is_seen(
            entries in prop::collection::vec(entry(), 0..200),
            numbers in any::<(u64, u64)>(),
            damage in any::<(prop::sample::Index, u8)>(),
        ) {
            let mut bytes = vec![0xAA; header_bytes(200)];
            write(&mut bytes, numbers, BatchKind::Copies, entries.iter().copied());
            let (sequence, settled) = numbers;
            let header_bytes = bytes.len();
            prop_assert_eq!(length(&bytes[..4096]), Some(header_bytes));
            let found = read(&bytes);
            let used = 64 + entries.len() * 24;
            let kind = BatchKind::Copies;
            let wanted = FoundBatch { sequence, settled, kind, header_bytes, entries };
            prop_assert_eq!(found, Some(wanted));
            bytes[damage.0.index(used)] ^= damage.1.max(1);
            prop_assert_eq!(read(&bytes), None);
        }

        #[test]
        fn garbage_is_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(read(&bytes), None);
            prop_assert_eq!(length(&bytes), None);
        }
    }
}
