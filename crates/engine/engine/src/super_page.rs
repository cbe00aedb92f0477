//! Page 0: what must be known before anything else can be found.
//!
//! Invariant: its fields lie at fixed offsets of the body and change by logged records only.

use iostrata_page::{PageNo, PageView, Record, TableId};

use crate::error::{EngineError, OpenError};

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
}

impl SuperField {
    /// Offset in the body of the page, in bytes.
    pub const fn offset(self) -> usize {
        match self {
            Self::Magic => 0,
            Self::Format => 8,
            Self::PageBytes => 12,
            Self::DataFiles => 16,
            Self::NextTable => 20,
            Self::Maps => 24,
            Self::CatalogueRoot => 32,
        }
    }

    /// The record that sets it.
    pub fn set(self, bytes: &[u8]) -> Record<'_> {
        Record::SetSuper { at: self.offset(), bytes }
    }
}

/// What page 0 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SuperPage {
    pub page_bytes: u32,
    pub data_files: u32,
    pub next_table: u32,
    pub maps: u64,
    pub catalogue_root: u64,
}

impl SuperPage {
    /// Reads the fields.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when it is no super page, [`OpenError::Format`] for another
    /// version.
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
        })
    }
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
