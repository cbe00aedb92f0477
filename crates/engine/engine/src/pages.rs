//! Pages to read, to change, to take and to give back: what trees stand on.
//!
//! Invariant: whatever waits for the disk, for frames or for room in the redo is asked here, before
//! the first latch is taken.

use std::sync::Arc;

use iostrata_innodb::PageNo;

use crate::admission::{Admission, Room};
use crate::error::EngineError;
use crate::flusher::Flusher;
use crate::pool::Pin;
use crate::space::{MapBit, Reserved, Space};
use crate::storage::Storage;

/// The pages of an open engine.
#[derive(Debug)]
pub(crate) struct Pages {
    pub storage: Arc<Storage>,
    pub admission: Arc<Admission>,
    pub space: Space,
}

/// A page that is to come into use, and the bit that says so. It stays reserved as long as this is
/// there: until the frame that sets the bit is appended.
pub(crate) struct NewPage<'c> {
    pub reserved: Reserved<'c>,
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

    /// Pins a page, reading it if it is absent.
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

    /// The bit of a page, for who is about to free it.
    pub fn map_bit(&self, page: PageNo) -> Result<MapBit<'_>, EngineError> {
        let (map, bit) = self.space.place(page);
        Ok(MapBit { pin: self.pin(map)?, bit })
    }
}
