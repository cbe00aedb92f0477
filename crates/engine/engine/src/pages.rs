//! Pages to read, to change, to take and to give back: what trees stand on. One bit for each marks
//! which are in use, in map pages among the pages themselves.
//!
//! Invariant: whatever waits for the disk, for frames or for room in the redo is requested here,
//! before the first latch is taken. A page is given out once: it is reserved in memory before
//! anything is latched, its bit is set by the mini-transaction that first uses it, and the
//! reservation ends after that. Map page `k` covers the pages from `k` times its bits on and lies
//! at the second of them. Freeing is clearing the bit only; what a free page holds means nothing.
//! Page 0 holds what must be known before anything else can be found: its fields lie at fixed
//! offsets of the body and change by logged records only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use iostrata_innodb::{NO_PAGE, PageNo, TableId};

use crate::admission::{Admission, Room};
use crate::error::{EngineError, OpenError};
use crate::flusher::Flusher;
use crate::mtr::{Mtr, PageHandle};
use crate::page::{PageKind, PageSize, PageView, Record};
use crate::pool::Pin;
use crate::storage::Storage;
use crate::sync::locked;

#[derive(Debug)]
pub(crate) struct Pages {
    pub storage: Arc<Storage>,
    pub admission: Arc<Admission>,
    pub space: Space,
}

/// A page that is to come into use, and its bit. It stays reserved as long as this is there: until
/// the frame that sets the bit is appended.
pub(crate) struct NewPage<'c> {
    pub reserved: ReservedPage<'c>,
    pub pin: Pin<'c>,
    pub bit: MapBit<'c>,
}

impl Pages {
    /// Pages of which the first map alone is known to exist.
    pub fn new(flusher: &Arc<Flusher>) -> Self {
        let storage = Arc::clone(&flusher.storage);
        let space = Space::new(storage.page_size, 1);
        Self { storage, admission: Arc::new(Admission::new(Arc::clone(flusher))), space }
    }

    #[inline]
    pub fn pin(&self, page: PageNo) -> Result<Pin<'_>, EngineError> {
        self.storage.pin(page)
    }

    /// Waits until a change of a tree's structure may be appended.
    pub fn admit_structure(&self) -> Result<Room<'_>, EngineError> {
        self.admission.admit(self.storage.structure_bytes())
    }

    /// A page that is free, for a caller that was promised room in the redo.
    pub fn new_page(&self) -> Result<NewPage<'_>, EngineError> {
        let reserved = self.space.reserve(&self.storage)?;
        let pin = self.storage.create(reserved.page)?;
        let bit = self.map_bit(reserved.page)?;
        Ok(NewPage { reserved, pin, bit })
    }

    /// The bit of a page that is about to be freed.
    pub fn map_bit(&self, page: PageNo) -> Result<MapBit<'_>, EngineError> {
        let (map, bit) = self.space.place(page);
        Ok(MapBit { pin: self.pin(map)?, bit })
    }
}

#[derive(Debug, Default)]
struct State {
    /// No page below is free, as far as is known.
    hint: u64,
    maps: u64,
    reserved: BTreeSet<u64>,
}

#[derive(Debug)]
pub(crate) struct Space {
    bits: u64,
    /// Taken last of all, also under latches; nothing is waited for while it is held.
    state: Mutex<State>,
    /// Held while a map page is added: only by those that need that very page.
    adding: Mutex<()>,
}

/// A free page that no other thread will take. Its bit is still to be set.
pub(crate) struct ReservedPage<'s> {
    space: &'s Space,
    pub page: PageNo,
}

impl Drop for ReservedPage<'_> {
    fn drop(&mut self) {
        let mut state = locked(&self.space.state);
        state.reserved.remove(&self.page.0);
        // It may not have been used after all.
        state.hint = state.hint.min(self.page.0);
    }
}

impl Space {
    pub fn new(page_size: PageSize, maps: u64) -> Self {
        let state = Mutex::new(State { maps, ..State::default() });
        Self { bits: u64::from(page_size.space_bits()), state, adding: Mutex::default() }
    }

    pub fn maps(&self) -> u64 {
        locked(&self.state).maps
    }

    /// Sets how many exist, once the super page could be read.
    pub fn set_maps(&self, maps: u64) {
        locked(&self.state).maps = maps;
    }

    pub fn bits(&self) -> u64 {
        self.bits
    }

    pub fn map_page(&self, map: u64) -> PageNo {
        PageNo(map * self.bits + 1)
    }

    pub fn place(&self, page: PageNo) -> (PageNo, u32) {
        (self.map_page(page.0 / self.bits), (page.0 % self.bits) as u32)
    }

    /// Finds a free page and keeps it for the caller, which holds no latch. Files grow as needed.
    pub fn reserve(&self, storage: &Storage) -> Result<ReservedPage<'_>, EngineError> {
        loop {
            let Some(map) = self.map_with_free_pages() else {
                self.add_map(storage)?;
                continue;
            };
            // Latched before the lock is taken: a page that is read keeps no other thread waiting.
            let latched = storage.pin(self.map_page(map))?.shared();
            let Some(reserved) = self.take(map, &PageView::new(&latched)) else { continue };
            drop(latched);
            storage.store.ensure(reserved.page.0 + 1)?;
            return Ok(reserved);
        }
    }

    /// The first map that may have free pages, if there is one.
    fn map_with_free_pages(&self) -> Option<u64> {
        let state = locked(&self.state);
        let map = state.hint / self.bits;
        (map < state.maps).then_some(map)
    }

    /// Takes a free page of a map. None when it has none, or when the search has moved elsewhere.
    fn take(&self, map: u64, view: &PageView<'_>) -> Option<ReservedPage<'_>> {
        let mut state = locked(&self.state);
        let first = map * self.bits;
        if state.hint / self.bits != map {
            return None;
        }
        let mut from = (state.hint - first) as u32;
        while let Some(bit) = view.first_clear(from) {
            let free = first + u64::from(bit);
            if state.reserved.insert(free) {
                state.hint = free + 1;
                return Some(ReservedPage { space: self, page: PageNo(free) });
            }
            from = bit + 1;
        }
        state.hint = first + self.bits;
        None
    }

    fn add_map(&self, storage: &Storage) -> Result<(), EngineError> {
        let _alone = locked(&self.adding);
        if self.map_with_free_pages().is_some() {
            return Ok(());
        }
        let map = self.maps();
        let no = self.map_page(map);
        storage.store.ensure(no.0 + 1)?;
        let (front, new) = (storage.pin(PageNo(0))?, storage.create(no)?);
        let mut mtr = Mtr::begin(storage);
        let front = mtr.latch(front);
        let new = mtr.latch(new);
        self.format_map(&mut mtr, new)?;
        mtr.change(front, &SuperField::Maps.set(&(map + 1).to_le_bytes()))?;
        mtr.commit();
        self.set_maps(map + 1);
        Ok(())
    }

    /// Makes a page a map page on which it is itself in use.
    pub fn format_map(&self, mtr: &mut Mtr<'_>, map: PageHandle) -> Result<(), EngineError> {
        let (left, right) = (NO_PAGE, NO_PAGE);
        let kind = PageKind::Space;
        mtr.change(map, &Record::Init { kind, level: 0, table: TableId(0), left, right })?;
        mtr.change(map, &Record::SetBits { from: 1, count: 1, set: true })
    }

    /// Lets these pages be given out again: call it after the frame that freed them.
    pub fn freed(&self, page: PageNo) {
        let mut state = locked(&self.state);
        state.hint = state.hint.min(page.0);
    }
}

/// A map page that is pinned before latching, so that one bit can be changed.
#[derive(Clone)]
pub(crate) struct MapBit<'c> {
    pub pin: Pin<'c>,
    pub bit: u32,
}

impl<'c> MapBit<'c> {
    /// Sets or clears it, as the last page that the mini-transaction latches.
    pub fn change(self, mtr: &mut Mtr<'c>, set: bool) -> Result<(), EngineError> {
        let map = mtr.latch(self.pin);
        mtr.change(map, &Record::SetBits { from: self.bit, count: 1, set })
    }
}

/// Marks the pages as ours: "iostrata".
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
    /// u64: the engine that the pages belong to, as in its redo; 0 in data of a program that did
    /// not keep it.
    Identity,
}

/// Where purge's walk over the leaves goes on when the engine is opened again: it takes the tables
/// from the largest number down, each in the order of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalkPlace {
    pub table: TableId,
    /// The last key that it checked there.
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
    front: PageHandle,
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
