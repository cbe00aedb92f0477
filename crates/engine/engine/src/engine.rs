//! An open engine.
//!
//! Invariant: clones are the same engine. Closing takes a clean checkpoint; dropping the last
//! handle without closing stops the threads and leaves the rest to recovery. The directory stays
//! locked as long as a table, batch or ticket of an engine that was not closed is left.

use std::path::Path;
use std::sync::Arc;

use iostrata_knobs::{Counters, Settings};

use crate::background::Background;
use crate::batch::Batch;
use crate::check::{self, CheckReport};
use crate::disks::Disks;
use crate::error::EngineError;
use crate::open::{self, Opened};
use crate::parts::Parts;
use crate::recovery::{Progress, RecoveryReport};
use crate::status;
use crate::table::Table;

/// An open engine. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Opened>);

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Engine({:?})", self.0.parts.storage)
    }
}

impl Engine {
    /// Opens the engine in a directory, or makes one there if the directory is empty. What the
    /// last process left is recovered first.
    ///
    /// # Errors
    /// A directory that another process has, that holds something else, or whose data cannot be
    /// opened with these settings; what recovery said.
    pub fn open(directory: &Path, settings: Settings) -> Result<Self, EngineError> {
        open::directory(directory, settings, &mut |_| {}).map(|opened| Self(Arc::new(opened)))
    }

    /// As [`Engine::open`], and tells how recovery goes on.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with_progress(
        directory: &Path,
        settings: Settings,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Self, EngineError> {
        open::directory(directory, settings, progress).map(|opened| Self(Arc::new(opened)))
    }

    /// Settings for a machine that serves this engine: a quarter of its memory for pages, and 2 GiB
    /// of redo, which are written when the engine is made.
    pub fn server_settings() -> Settings {
        let memory = rustix::system::sysinfo();
        Settings::for_server(memory.totalram * u64::from(memory.mem_unit))
    }

    /// The settings that are kept with the data of a directory; none when there is no engine.
    ///
    /// # Errors
    /// A settings file that cannot be read.
    pub fn kept_settings(directory: &Path) -> Result<Option<Settings>, EngineError> {
        open::kept_settings(directory)
    }

    /// Opens or makes an engine on disks of the caller's choice.
    ///
    /// # Errors
    /// As [`Engine::open`]; nobody checks here whether another process has the disks.
    pub fn open_on(
        disks: Disks,
        settings: Settings,
        background: Background,
    ) -> Result<Self, EngineError> {
        open::disks(disks, settings, background, &mut |_| {}).map(|opened| Self(Arc::new(opened)))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Makes an empty table. Durable when it returns.
    ///
    /// # Errors
    /// [`EngineError::TableExists`], [`EngineError::TableName`], no space.
    pub fn create_table(&self, name: &str) -> Result<Table, EngineError> {
        self.parts().catalogue.create(name)
    }

    /// A table by name; it is made if it is not there, and is then durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::TableName`], no space.
    pub fn open_table(&self, name: &str) -> Result<Table, EngineError> {
        loop {
            if let Some(table) = self.table(name)? {
                return Ok(table);
            }
            match self.create_table(name) {
                // Another thread was faster; or it has dropped the table again meanwhile.
                Err(EngineError::TableExists { .. }) => {}
                made => return made,
            }
        }
    }

    /// A table by name, if it is there.
    ///
    /// # Errors
    /// None today; reading the catalogue may need the disk one day.
    pub fn table(&self, name: &str) -> Result<Option<Table>, EngineError> {
        Ok(self.parts().catalogue.get(name))
    }

    /// The names of all tables, sorted.
    ///
    /// # Errors
    /// As [`Engine::table`].
    pub fn tables(&self) -> Result<Vec<String>, EngineError> {
        Ok(self.parts().catalogue.names())
    }

    /// Drops a table and frees its pages. Handles on it that are left
    /// answer [`EngineError::TableDropped`]. Durable when it returns;
    /// pages that a crash leaves are freed at the next opening.
    ///
    /// # Errors
    /// [`EngineError::NoTable`], or what freeing said.
    pub fn drop_table(&self, name: &str) -> Result<(), EngineError> {
        self.parts().catalogue.drop_table(name)
    }

    /// An empty batch of changes.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.parts().pages))
    }

    /// Changes a setting while the engine runs, and keeps it with the data.
    ///
    /// # Errors
    /// An unknown setting, a value that it does not take, or one that cannot change now: nothing
    /// is changed then. When the settings file cannot be written the change is in force, but not
    /// kept.
    pub fn set(&self, name: &str, value: &str) -> Result<(), EngineError> {
        self.parts().set(name, value, &*self.0.disk)
    }

    /// The settings as they are.
    pub fn settings(&self) -> Settings {
        self.parts().storage.hot.all().clone()
    }

    /// All counters, under InnoDB's names.
    pub fn counters(&self) -> Counters {
        status::counters(&self.parts().storage)
    }

    /// What recovery found when the engine was opened.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.0.recovery
    }

    /// Does one round of background work, on a clock of the caller's in microseconds; gives when
    /// the next one is due. For engines opened with [`Background::Manual`].
    ///
    /// # Errors
    /// A poisoned engine, or the failure that poisons it.
    pub fn step(&self, now_us: u64) -> Result<u64, EngineError> {
        self.parts().cleaner.step(now_us)
    }

    /// Writes every dirty page and takes a checkpoint, so that recovery would have nothing to do.
    ///
    /// # Errors
    /// A poisoned engine, or the failure that poisons it.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.parts().flusher.sharp_checkpoint(false)
    }

    /// Verifies every structure. Nobody may write meanwhile.
    ///
    /// # Errors
    /// What reading said other than damage; damage is in the report.
    pub fn check(&self) -> Result<CheckReport, EngineError> {
        check::check(&self.parts().pages, &self.parts().catalogue)
    }

    /// Stops the threads and takes a clean checkpoint. Handles that are left are of no use.
    ///
    /// # Errors
    /// A poisoned engine, or the failure that poisons it: recovery will find everything
    /// acknowledged.
    pub fn close(self) -> Result<(), EngineError> {
        let Parts { storage, flusher, pages, .. } = self.parts();
        pages.admission.close();
        self.0.threads.stop();
        flusher.sharp_checkpoint(true)?;
        self.parts().forget_copies()?;
        self.0.threads.publish();
        storage.hold(Vec::new());
        Ok(())
    }
}
