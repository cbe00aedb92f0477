//! The lock under which inner pages change, and the path to a page under it.
//!
//! Invariant: the lock is held for moments: room in the redo is waited for before. What only turns
//! out under the lock, that a page is absent or that a new one is needed, is seen to after the lock
//! was let go, and the change begins again. A path is valid as long as the lock is held; each page
//! on it is pinned.

use iostrata_innodb::PageNo;

use crate::admission::{Haste, Pins, Room};
use crate::error::EngineError;
use crate::page::PageView;
use crate::pages::{MapBit, NewPage, Pages};
use crate::pool::Pin;
use crate::sync::locked;
use crate::tree::Tree;

/// Pages that a change of a tree's structure pins at once: a path through five levels, a new page,
/// a map, a neighbour.
const PINS: usize = 8;

pub(crate) enum Blocked {
    Absent(PageNo),
    NeedsPage,
    Failed(EngineError),
}

impl From<EngineError> for Blocked {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

pub(super) fn needed<'n, 'c>(new: Option<&'n NewPage<'c>>) -> Result<&'n NewPage<'c>, Blocked> {
    new.ok_or(Blocked::NeedsPage)
}

/// What a change of a tree's structure has to wait for.
pub(super) struct Promise<'c> {
    _pins: Option<Pins<'c>>,
    _room: Room<'c>,
}

impl<'c> Promise<'c> {
    /// Waits for the share of the frames and then for the room in the redo, as everywhere. Many
    /// trees may be changed at once: with what batches hold they must not take all frames.
    pub fn wait(pages: &'c Pages) -> Result<Self, EngineError> {
        let pins = pages.admission.pins(PINS);
        Ok(Self { _pins: pins, _room: pages.admit_structure()? })
    }

    /// As [`Promise::wait`] for a change that can be left out: none where it would have to wait.
    pub fn at_once(pages: &'c Pages, haste: Haste) -> Result<Option<Self>, EngineError> {
        let Some(pins) = pages.admission.try_pins(PINS) else { return Ok(None) };
        let bytes = pages.storage.structure_bytes();
        let room = pages.admission.try_admit(bytes, haste)?;
        Ok(room.map(|room| Self { _pins: Some(pins), _room: room }))
    }
}

/// An inner page on the path, and the slot that was taken there.
pub(super) struct Step<'c> {
    pub pin: Pin<'c>,
    pub slot: usize,
}

/// The path from the root to a page of one level.
pub(super) struct Path<'c> {
    pub steps: Vec<Step<'c>>,
    pub end: Pin<'c>,
}

pub(super) fn resident(pages: &Pages, page: PageNo) -> Result<Pin<'_>, Blocked> {
    pages.storage.pool.try_pin(page).ok_or(Blocked::Absent(page))
}

pub(super) fn resident_bit(pages: &Pages, page: PageNo) -> Result<MapBit<'_>, Blocked> {
    let (map, bit) = pages.space.place(page);
    Ok(MapBit { pin: resident(pages, map)?, bit })
}

impl Tree {
    /// Runs a change while nobody else changes inner pages, and again when it needed a page that
    /// was absent, or a new one. The caller holds no latch. It was promised room in the redo, which
    /// a drop waits for: so a change that finds the table there has the tree until it is over.
    pub(super) fn restructure<T>(
        &self,
        pages: &Pages,
        _promise: &Promise<'_>,
        mut change: impl FnMut(Option<&NewPage<'_>>) -> Result<T, Blocked>,
    ) -> Result<T, EngineError> {
        // Kept pinned until the change is over, or the pages of one path could evict each other.
        let mut loaded = Vec::new();
        let mut new = None;
        loop {
            let locked = locked(&self.structure);
            self.check_not_dropped()?;
            match change(new.as_ref()) {
                Ok(done) => return Ok(done),
                Err(Blocked::Failed(error)) => return Err(error),
                Err(Blocked::Absent(page)) => {
                    drop(locked);
                    if loaded.len() == PINS {
                        loaded.clear();
                    }
                    loaded.push(pages.pin(page)?);
                }
                Err(Blocked::NeedsPage) => {
                    drop(locked);
                    new = Some(pages.new_page()?);
                }
            }
        }
    }

    /// Goes to the page of `level` that is responsible for `key`. None when the tree is lower than
    /// that. Under the lock.
    pub(super) fn path<'c>(
        &self,
        pages: &'c Pages,
        key: &[u8],
        to_level: u8,
    ) -> Result<Option<Path<'c>>, Blocked> {
        let mut steps = Vec::new();
        let mut pin = resident(pages, self.root)?;
        let mut parent = None;
        loop {
            let node = pin.clone().shared();
            let view = PageView::new(&node);
            let level = self.check(node.page_no(), &view, parent)?;
            if level < to_level {
                return Ok(None);
            }
            if level == to_level {
                return Ok(Some(Path { steps, end: pin }));
            }
            let (slot, child) = view.child_for(key);
            drop(node);
            steps.push(Step { pin, slot });
            pin = resident(pages, child)?;
            parent = Some(level);
        }
    }
}
