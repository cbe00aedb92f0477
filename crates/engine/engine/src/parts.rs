//! The parts of an open engine, put together: everything but its threads.

use std::sync::{Arc, Mutex, MutexGuard};

use iostrata_innodb::{PageNo, Settings};
use iostrata_io::disk::Disk;

use crate::catalogue::Catalogue;
use crate::cleaner::Cleaner;
use crate::counts::Common;
use crate::error::EngineError;
use crate::flusher::{Flusher, FrameSupply};
use crate::mtr::Mtr;
use crate::pages::{Pages, SuperField, SuperPage, set_walk};
use crate::purge::Purger;
use crate::redo::Redo;
use crate::reentry::check_outside;
use crate::settings_file;
use crate::storage::Storage;
use crate::store::Store;
use crate::sync::locked;
use crate::version::SpillFile;

/// The parts of one engine, from the lowest to the highest.
#[derive(Debug)]
pub(crate) struct Parts {
    pub storage: Arc<Storage>,
    pub flusher: Arc<Flusher>,
    pub pages: Arc<Pages>,
    pub cleaner: Arc<Cleaner>,
    pub catalogue: Arc<Catalogue>,
    pub purger: Arc<Purger>,
    /// Held while a setting is changed and kept, and while the engine is closed.
    changing: Mutex<()>,
}

impl Parts {
    /// An engine whose redo is still to be applied and whose tables are still to be read.
    pub fn assemble(
        settings: Settings,
        files: (Store, Redo),
        common: Common,
        spill: Box<dyn SpillFile>,
    ) -> Self {
        let policy = iostrata_innodb::flush::policy(settings.policy);
        let supply = Arc::new(FrameSupply::default());
        let storage =
            Storage::new(settings, files, common, Some(spill), Arc::clone(&supply) as Arc<_>);
        let storage = Arc::new(storage);
        let flusher = Arc::new(Flusher::new(Arc::clone(&storage)));
        supply.is_met_by(&flusher);
        let pages = Arc::new(Pages::new(&flusher));
        let admission = Arc::clone(&pages.admission);
        let catalogue = Arc::new(Catalogue::new(Arc::clone(&pages)));
        let purger = Arc::new(Purger::new(Arc::clone(&pages), Arc::clone(&catalogue)));
        let of_cleaner = Arc::clone(&purger);
        let purge = Box::new(move || of_cleaner.step());
        let cleaner = Arc::new(Cleaner::new(Arc::clone(&flusher), (admission, purge), policy));
        let changing = Mutex::default();
        Self { storage, flusher, pages, cleaner, catalogue, purger, changing }
    }

    /// Keeps out who changes a setting.
    pub fn keep_settings(&self) -> MutexGuard<'_, ()> {
        locked(&self.changing)
    }

    /// Changes a setting and everything that follows it, and keeps it on the disk.
    pub fn set(&self, name: &str, value: &str, disk: &dyn Disk) -> Result<(), EngineError> {
        check_outside(&self.storage)?;
        // One at a time; the cleaner goes on reading the old ones, because a change may wait for
        // it.
        let _alone = self.keep_settings();
        let admission = &self.pages.admission;
        admission.check_open()?;
        let Storage { redo, store, pool, settings, poison, .. } = &*self.storage;
        poison.check()?;
        let old = settings.load_full();
        let mut new = Settings::clone(&old);
        new.set_live(name, value)?;
        if new.redo_log_capacity != old.redo_log_capacity {
            let set = || redo.set_capacity(new.redo_log_capacity);
            // What was promised room in the larger log must be appended before it shrinks.
            let shrinks = redo.would_shrink(new.redo_log_capacity)?;
            if shrinks { admission.paused(set) } else { set() }?;
        }
        if new.doublewrite != old.doublewrite {
            store.set_doublewrite(new.doublewrite)?;
        }
        if new.policy != old.policy {
            self.cleaner.set_policy(iostrata_innodb::flush::policy(new.policy));
        }
        pool.queues.set_old_pct(new.old_blocks_pct);
        settings.store(Arc::new(new.clone()));
        // What was waited for may have failed: then nothing more is written.
        poison.check()?;
        settings_file::write(disk, &new)
    }

    /// Writes down where the walk of purge stands, how many pages there are and which engine's they
    /// are, if page 0 does not say so already.
    pub fn keep_front(&self) -> Result<(), EngineError> {
        let (place, pages) = (self.purger.walk_place(), self.storage.store.pages());
        let _room = self.pages.admit_structure()?;
        let pin = self.pages.pin(PageNo(0))?;
        let mut mtr = Mtr::begin(&self.storage);
        let front = mtr.latch(pin);
        let kept = SuperPage::read(&mtr.page(front))?;
        if kept.walk != place {
            set_walk(&mut mtr, front, place.as_ref())?;
        }
        if kept.identity == 0 {
            let identity = self.storage.redo.identity();
            mtr.change(front, &SuperField::Identity.set(&identity.to_le_bytes()))?;
        }
        // Never fewer: what was cut off stays known until the files are as long again.
        if kept.data_pages < pages {
            mtr.change(front, &SuperField::DataPages.set(&pages.to_le_bytes()))?;
        }
        mtr.commit();
        Ok(())
    }

    /// Lets the doublewrite copies go, now that every page is durable in its place: the next
    /// opening then reads none, and what is damaged until then is not covered up by an old copy.
    pub fn forget_copies(&self) -> Result<(), EngineError> {
        let store = &self.storage.store;
        store.set_doublewrite(store.doublewrite())
    }
}
