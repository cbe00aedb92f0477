//! The row of a table in the catalogue.
//!
//! Invariant: what is written can be read; a field that changes what a table is and is not known
//! is refused.

use iostrata_innodb::{PageNo, TableId};

/// Bytes of a row's value before its fields: table u32, root u64.
pub(super) const ENTRY_BYTES: usize = 12;
/// Tags from here on may be passed over by a program that does not know them.
const TAG_OPTIONAL: u8 = 128;
/// A field of indexes: the length of the table's name u16, state u8.
const TAG_INDEX: u8 = 1;
const INDEX_BYTES: usize = 3;
/// A field of indexes whose function has a version: u32. Without it the version is 0.
const TAG_INDEX_VERSION: u8 = 2;
const INDEX_VERSION_BYTES: usize = 4;

/// What the row of a table says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: TableId,
    pub root: PageNo,
    pub index: Option<IndexField>,
    /// Fields of later programs, which are kept as they are: tag u8, length u16, bytes.
    pub fields: Vec<u8>,
}

/// What the row of an index says besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexField {
    /// So many bytes of its name are the table's; a dot is next, then the index's own.
    pub table_bytes: u16,
    /// It holds an entry for every row; otherwise it is being built.
    pub is_built: bool,
    /// Of the function that gives its secondary keys.
    pub version: u32,
}

impl Entry {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY_BYTES + self.fields.len());
        bytes.extend_from_slice(&self.id.0.to_le_bytes());
        bytes.extend_from_slice(&self.root.0.to_le_bytes());
        if let Some(index) = &self.index {
            bytes.push(TAG_INDEX);
            bytes.extend_from_slice(&(INDEX_BYTES as u16).to_le_bytes());
            bytes.extend_from_slice(&index.table_bytes.to_le_bytes());
            bytes.push(u8::from(index.is_built));
            if index.version != 0 {
                bytes.push(TAG_INDEX_VERSION);
                bytes.extend_from_slice(&(INDEX_VERSION_BYTES as u16).to_le_bytes());
                bytes.extend_from_slice(&index.version.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&self.fields);
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadEntry> {
        let (id, rest) = bytes.split_first_chunk::<4>().ok_or(BadEntry::Damaged)?;
        let (root, mut rest) = rest.split_first_chunk::<8>().ok_or(BadEntry::Damaged)?;
        let (mut index, mut version, mut fields) = (None, 0, Vec::new());
        while let Some((tag, more)) = rest.split_first() {
            let (len, more) = more.split_first_chunk::<2>().ok_or(BadEntry::Damaged)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (value, more) = more.split_at_checked(len).ok_or(BadEntry::Damaged)?;
            match (*tag, value) {
                (TAG_INDEX, [low, high, state @ (0 | 1)]) => {
                    let table_bytes = u16::from_le_bytes([*low, *high]);
                    index = Some(IndexField { table_bytes, is_built: *state == 1, version: 0 });
                }
                (TAG_INDEX_VERSION, bytes) if bytes.len() == INDEX_VERSION_BYTES => {
                    version = bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
                }
                (TAG_INDEX | TAG_INDEX_VERSION, _) => return Err(BadEntry::Damaged),
                (tag, _) if tag < TAG_OPTIONAL => return Err(BadEntry::Unknown { tag }),
                _ => fields.extend_from_slice(&rest[..rest.len() - more.len()]),
            }
            rest = more;
        }
        let index = match index {
            None if version != 0 => return Err(BadEntry::Damaged),
            index => index.map(|index| IndexField { version, ..index }),
        };
        let (id, root) = (u32::from_le_bytes(*id), u64::from_le_bytes(*root));
        Ok(Self { id: TableId(id), root: PageNo(root), index, fields })
    }
}

/// Why the row of a table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadEntry {
    Damaged,
    Unknown { tag: u8 },
}
