//! Page 0: what must be known before anything else can be found.
//!
//! Invariant: its fields lie at fixed offsets of the body and change by logged records only.

use iostrata_innodb::{PageNo, TableId};

use crate::error::{EngineError, OpenError};
use crate::mtr::{Held, Mtr};
use crate::page::{PageView, Record};

/// Says that the pages are ours: "iostrata".
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"iostrata");
/// The table of tables.
pub(crate) const CATALOGUE_TABLE: TableId = TableId(1);
/// Where its root lies: behind the super page and the first map page.
pub(crate) const CATALOGUE_ROOT: PageNo = PageNo(2);
/// The version of the page formats.
pub(crate) const FORMAT: u32 = 1;

/// A field of the body, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuperField {
    /// u64: [`MAGIC`].
    Magic,
    /// u32: [`FORMAT`].
    Format,
    /// u32: page size in bytes.
    PageBytes,
    /// u32: number of data files.
    DataFiles,
    /// u32: number of the next table; 0 in data of a program that did not keep it.
    NextTable,
    /// u64: map pages that exist.
    Maps,
    /// u64: root of the tree of tables.
    CatalogueRoot,
    /// u32: where the walk of purge goes on, [`WalkPlace`]; 0 when none is due.
    WalkTable,
    /// u32: bytes of the key behind which it goes on.
    WalkKeyBytes,
    WalkKey,
    /// u64: pages that the data files had when the engine was last closed; 0 in data of a program
    /// that did not keep it.
    DataPages,
    /// u64: the engine that the pages are of, as its redo says it, too; 0 in data of a program that
    /// did not keep it.
    Identity,
}

/// Where purge's walk over the leaves goes on when the engine is opened again: it takes the tables
/// from the largest number down, each in the order of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalkPlace {
    pub table: TableId,
    /// The last key that it looked at there.
    pub last: Option<Vec<u8>>,
}

impl SuperField {
    pub const fn offset(self) -> usize {
        match self {
            Self::Magic => 0,
            Self::Format => 8,
            Self::PageBytes => 12,
            Self::DataFiles => 16,
            Self::NextTable => 20,
            Self::Maps => 24,
            Self::CatalogueRoot => 32,
            Self::WalkTable => 40,
            Self::WalkKeyBytes => 44,
            Self::DataPages => 48,
            Self::Identity => 56,
            Self::WalkKey => 64,
        }
    }

    pub fn set(self, bytes: &[u8]) -> Record<'_> {
        Record::SetSuper { at: self.offset(), bytes }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuperPage {
    pub page_bytes: u32,
    pub data_files: u32,
    pub next_table: u32,
    pub maps: u64,
    pub catalogue_root: u64,
    pub walk: Option<WalkPlace>,
    pub data_pages: u64,
    pub identity: u64,
}

impl SuperPage {
    pub fn read(page: &PageView<'_>) -> Result<Self, EngineError> {
        let body = page.body();
        let magic = number64(body, SuperField::Magic);
        let format = number32(body, SuperField::Format);
        if magic != MAGIC {
            let problem = format!("its magic is {magic:#x} where {MAGIC:#x} should be");
            return Err(EngineError::Corrupt { page: 0, problem });
        }
        if format != FORMAT {
            return Err(EngineError::Open(OpenError::Format {
                found: format.to_string(),
                known: FORMAT,
            }));
        }
        Ok(Self {
            page_bytes: number32(body, SuperField::PageBytes),
            data_files: number32(body, SuperField::DataFiles),
            next_table: number32(body, SuperField::NextTable),
            maps: number64(body, SuperField::Maps),
            catalogue_root: number64(body, SuperField::CatalogueRoot),
            walk: read_walk(body)?,
            data_pages: number64(body, SuperField::DataPages),
            identity: number64(body, SuperField::Identity),
        })
    }
}

/// None where none is due, and in data of a program that did not keep it.
fn read_walk(body: &[u8]) -> Result<Option<WalkPlace>, EngineError> {
    let table = TableId(number32(body, SuperField::WalkTable));
    if table.0 == 0 {
        return Ok(None);
    }
    let bytes = number32(body, SuperField::WalkKeyBytes) as usize;
    let key = body[SuperField::WalkKey.offset()..].get(..bytes).ok_or_else(|| {
        let problem = format!("the key of a walk cannot have {bytes} bytes");
        EngineError::Corrupt { page: 0, problem }
    })?;
    let last = (!key.is_empty()).then(|| key.to_vec());
    Ok(Some(WalkPlace { table, last }))
}

pub(crate) fn set_walk(
    mtr: &mut Mtr<'_>,
    front: Held,
    place: Option<&WalkPlace>,
) -> Result<(), EngineError> {
    let table = place.map_or(0, |place| place.table.0);
    let key = place.and_then(|place| place.last.as_deref()).unwrap_or_default();
    mtr.change(front, &SuperField::WalkTable.set(&table.to_le_bytes()))?;
    mtr.change(front, &SuperField::WalkKeyBytes.set(&(key.len() as u32).to_le_bytes()))?;
    if key.is_empty() { Ok(()) } else { mtr.change(front, &SuperField::WalkKey.set(key)) }
}

fn number64(body: &[u8], field: SuperField) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&body[field.offset()..field.offset() + 8]);
    u64::from_le_bytes(bytes)
}

fn number32(body: &[u8], field: SuperField) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&body[field.offset()..field.offset() + 4]);
    u32::from_le_bytes(bytes)
}
