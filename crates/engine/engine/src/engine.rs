//! An open engine.
//!
//! Invariant: clones are the same engine. Closing takes a clean checkpoint; dropping the last
//! handle without closing stops the threads, writes for a second at most what is dirty, and leaves
//! the rest to recovery. The directory stays locked as long as a table, index, batch or ticket of
//! an engine that was not closed is left.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use iostrata_innodb::{Counters, Settings};

use crate::batch::Batch;
use crate::check::{self, CheckReport};
use crate::commit::next_number;
use crate::error::{EngineError, TableError};
use crate::open::OpenedEngine;
use crate::parts::Parts;
use crate::recovery::RecoveryReport;
use crate::reentry::{check_not_looking, check_outside};
use crate::status;
use crate::table::{ReadView, Table};
use crate::ticket::Ticket;
use crate::transaction::{Transaction, TransactionOptions, run};

#[cfg(feature = "testing")]
use crate::safeguards::Safeguard;
#[cfg(feature = "testing")]
use crate::storage::Storage;

/// An open engine. Clones are the same engine. [`close`](Self::close) it, or drop its last handle:
/// that cannot return an error, writes dirty pages for a second at most, and leaves it to the next
/// opening to recover what is left; nothing that was durable is lost. One without threads
/// ([`Background::Manual`](crate::Background::Manual)) writes nothing when it is dropped.
#[derive(Clone)]
pub struct Engine(Arc<OpenedEngine>);

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Engine({:?})", self.0.parts.storage)
    }
}

impl Engine {
    pub(crate) fn new(opened: OpenedEngine) -> Self {
        Self(Arc::new(opened))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Makes an empty table. Durable when it returns.
    ///
    /// # Errors
    /// [`TableError::Exists`], [`TableError::Name`], no space.
    pub fn create_table(&self, name: &str) -> Result<Table, EngineError> {
        self.parts().catalogue.create(name)
    }

    /// A table by name; it is made if it is not there, and is then durable when this returns.
    ///
    /// # Errors
    /// [`TableError::Name`], no space.
    pub fn open_table(&self, name: &str) -> Result<Table, EngineError> {
        loop {
            if let Some(table) = self.table(name)? {
                return Ok(table);
            }
            match self.create_table(name) {
                // Another thread was faster; or it has dropped the table again meanwhile.
                Err(EngineError::Table(TableError::Exists { .. })) => {}
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

    /// Makes an index that was named at opening ([`OpenOptions::late_index`]), from the rows that
    /// are there; nothing when it is there already. Durable when it returns. The entries are held
    /// in memory meanwhile, and the table cannot be written: a transaction or a handle of before
    /// that writes to it is refused ([`TableError::IndexMade`]). Open the table again.
    ///
    /// ```
    /// # use iostrata_engine::{Background, Disks, Engine, Isolation};
    /// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
    /// let by_country = |_city: &[u8], country: &[u8], key: &mut Vec<u8>| {
    ///     key.extend_from_slice(country);
    ///     true
    /// };
    /// let options = Engine::options().late_index("cities", "country", by_country);
    /// # let engine = options.open_on(disks, Background::Manual)?;
    /// let cities = engine.create_table("cities")?;
    /// cities.bulk_load([(b"Bergen", b"Norway"), (b"Malmoe", b"Sweden")])?;
    /// engine.make_index("cities", "country")?;
    /// let cities = engine.open_table("cities")?;
    /// let country = cities.index("country").expect("it was made");
    /// let mut t = engine.begin(Isolation::default())?;
    /// assert_eq!(t.index_get(&country, b"Norway")?, [&b"Bergen"[..]]);
    /// # Ok::<(), iostrata_engine::EngineError>(())
    /// ```
    ///
    /// [`OpenOptions::late_index`]: crate::OpenOptions::late_index
    ///
    /// # Errors
    /// [`TableError::NotFound`], [`TableError::IndexUnknown`] for one that was not named, a
    /// secondary key that is too long, no space.
    pub fn make_index(&self, table: &str, index: &str) -> Result<(), EngineError> {
        self.parts().catalogue.make_late_index(table, index)
    }

    /// Drops a table and frees its pages. Handles on it that are left
    /// answer [`TableError::Dropped`]. Durable when it returns;
    /// pages that a crash leaves are freed at the next opening.
    ///
    /// # Errors
    /// [`TableError::NotFound`], or the error of freeing.
    pub fn drop_table(&self, name: &str) -> Result<(), EngineError> {
        self.parts().catalogue.drop_table(name)
    }

    /// An empty batch of changes.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.parts().pages))
    }

    /// All tables as they are committed now, to be read by any number of threads at once.
    ///
    /// # Errors
    /// A closed engine.
    pub fn read_view(&self) -> Result<ReadView, EngineError> {
        ReadView::open(&self.parts().pages, next_number())
    }

    /// Changes a setting while the engine runs. All settings as they are then are kept with the
    /// data, and an opening by [`Engine::options`] begins with them.
    ///
    /// # Errors
    /// An unknown setting, a value that it does not take, or one that cannot change now: nothing
    /// is changed then, nor by a poisoned engine. When the settings file cannot be written the
    /// change is in force, but not kept.
    pub fn set(&self, name: &str, value: &str) -> Result<(), EngineError> {
        self.parts().set(name, value, &*self.0.disk)
    }

    /// The settings as they are.
    pub fn settings(&self) -> Settings {
        Settings::clone(&self.parts().storage.settings.load())
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
    /// A poisoned engine, or the failure that poisons it; old versions that could not be read,
    /// which a later step tries again.
    pub fn step(&self, now_us: u64) -> Result<u64, EngineError> {
        check_not_looking(&self.parts().storage)?;
        // Old versions that cannot be read keep no page from being written.
        let purged = self.parts().purger.step();
        let due_us = self.parts().cleaner.step(now_us, false)?;
        purged.map(|_| due_us)
    }

    /// Writes every dirty page and takes a checkpoint, so that recovery would have nothing to do.
    ///
    /// # Errors
    /// A poisoned engine, or the failure that poisons it.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        check_not_looking(&self.parts().storage)?;
        self.parts().flusher.sharp_checkpoint(false)
    }

    /// Takes a safeguard away from this engine and its clones, for good.
    #[cfg(feature = "testing")]
    pub fn remove_safeguard(&self, safeguard: Safeguard) {
        let Storage { safeguards, versions, .. } = &*self.parts().storage;
        safeguards.remove(versions, safeguard);
    }

    /// Verifies every structure. Writes, and making or dropping a table, wait until it is over, and
    /// so does purge.
    ///
    /// # Errors
    /// An error of reading other than damage; damage is in the report.
    pub fn check(&self) -> Result<CheckReport, EngineError> {
        check::check(&self.parts().pages, &self.parts().catalogue)
    }

    /// Closes the engine, also for its clones: waits for the commits under way, stops the threads,
    /// takes a clean checkpoint and lets go of the directory. Tables, batches and clones that are
    /// left can read what is in memory, and nothing else: the rest is refused as closed.
    ///
    /// # Errors
    /// [`RequestError::Closed`](crate::RequestError::Closed) when a clone closed it; a poisoned
    /// engine, or the failure that poisons it: recovery will find everything acknowledged.
    pub fn close(self) -> Result<(), EngineError> {
        let Parts { storage, flusher, pages, purger, .. } = self.parts();
        check_outside(storage)?;
        // A change of a setting writes to the directories, and may have begun before.
        let _kept = self.parts().keep_settings();
        pages.admission.check_open()?;
        self.0.threads.stop();
        // What a snapshot that is still open may see, and what purge failed at, stays, and is
        // looked for at the next opening.
        let _left = purger.drain();
        let is_kept = self.parts().keep_front().is_ok();
        pages.admission.close()?;
        flusher.sharp_checkpoint(is_kept && !purger.has_history())?;
        self.parts().forget_copies()?;
        self.0.threads.publish();
        storage.let_go();
        Ok(())
    }

    /// Drops this handle, and lets nothing more be written when the last one goes: the next opening
    /// finds the files as a crash of the process leaves them. For programs that test or measure
    /// their recovery.
    pub fn abandon(self) {
        self.0.is_abandoned.store(true, Ordering::Relaxed);
    }
}

impl Engine {
    /// Begins a transaction. It ends by [`Transaction::commit`]; one that is dropped is rolled
    /// back.
    ///
    /// # Errors
    /// A closed or poisoned engine.
    pub fn begin(
        &self,
        options: impl Into<TransactionOptions>,
    ) -> Result<Transaction, EngineError> {
        Transaction::begin(&self.parts().pages, options.into(), &[])
    }

    /// Runs `body` in a transaction and commits it; after a deadlock or a conflict runs it again,
    /// with the rows locked from the beginning where the tries before ended. An error of `body`
    /// rolls back. What was written survives a crash when this returns, as after
    /// [`Transaction::commit`].
    ///
    /// # Errors
    /// The error of `body`, of beginning or of committing.
    pub fn transact<R, E: From<EngineError>>(
        &self,
        options: impl Into<TransactionOptions>,
        body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<R, E> {
        let (result, ticket) = self.transact_async(options, body)?;
        ticket.wait()?;
        Ok(result)
    }

    /// As [`transact`](Self::transact), and leaves it to the ticket to wait until that is durable.
    ///
    /// # Errors
    /// The error of `body`, of beginning or of committing.
    pub fn transact_async<R, E: From<EngineError>>(
        &self,
        options: impl Into<TransactionOptions>,
        body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<(R, Ticket), E> {
        run(&self.parts().pages, options.into(), body, Transaction::commit_async)
    }
}

/// The ends of an engine's life: what opening holds, what closing ends, and the text of errors.
#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use iostrata_innodb::{PageNo, PolicyName};
    use iostrata_io::disk::{Disk, MemDisk};

    use crate::catalogue::Catalogue;
    use crate::recovery::{self, Clock};
    use crate::redo::layout::CONTROL_NAME;
    use crate::tests::{open, put_all, small};
    use crate::{
        Background, Disks, Engine, EngineError, OpenError, Phase, Progress, RequestError, Settings,
        settings_file,
    };

    #[test]
    fn no_page_is_latched_while_what_dropped_tables_left_is_freed() {
        let engine = open(&MemDisk::new());
        put_all(&engine, &engine.create_table("t").unwrap(), &[b"k"]);
        let parts = engine.parts();
        // As after a crash between the two steps of dropping it.
        let rows = parts.catalogue.itself();
        let row = rows.get(b"t").unwrap().unwrap();
        let mut batch = engine.batch();
        batch.delete(&rows, b"t").unwrap();
        batch.put(&rows, &[0, 1], &row).unwrap();
        batch.commit().unwrap();
        let mut was_free = None;
        let mut tell = |progress: &Progress| {
            if progress.phase == Phase::Reclaim {
                was_free = Some(parts.pages.pin(PageNo(0)).unwrap().try_exclusive().is_ok());
            }
        };
        let catalogue = Catalogue::new(Arc::clone(&parts.pages));
        recovery::tables(&parts.pages, &catalogue, &mut Clock::start(&mut tell)).unwrap();
        assert_eq!(was_free, Some(true));
    }

    #[test]
    fn closing_waits_for_who_changes_a_setting() {
        let engine = open(&MemDisk::new());
        let changing = engine.parts().keep_settings();
        let other = engine.clone();
        let (closed, is_closed) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || closed.send(other.close()).unwrap());
            assert!(is_closed.recv_timeout(Duration::from_millis(50)).is_err(), "closed too early");
            drop(changing);
            is_closed.recv().unwrap().unwrap();
        });
        let refused = engine.set("io_capacity", "200");
        assert!(matches!(refused, Err(EngineError::Request(RequestError::Closed))), "{refused:?}");
    }

    /// The moment after an engine's threads ended and before their waiters did.
    #[test]
    fn a_waiter_for_the_cleaner_goes_on_by_itself_when_the_engine_stops() {
        for policy in PolicyName::ALL {
            let (ends, has_ended) = channel();
            // Not joined: one that hangs must not keep the test from saying so.
            std::thread::spawn(move || {
                let settings = Settings { policy: *policy, ..small() };
                let disks = Disks::one(MemDisk::new());
                let engine = Engine::open_on(disks, settings, Background::Manual).unwrap();
                let table = engine.create_table("t").unwrap();
                // The policy decides where writers wait.
                engine.step(10_000).unwrap();
                let signal = &engine.parts().storage.signal;
                signal.set_threads(true);
                signal.stop();
                // Several times the redo, and more pages than there are frames.
                for row in 0..600_u32 {
                    let mut batch = engine.batch();
                    batch.put(&table, &row.to_be_bytes(), &[row as u8; 900]).unwrap();
                    batch.commit().unwrap();
                }
                ends.send(()).unwrap();
            });
            let ended = has_ended.recv_timeout(Duration::from_secs(20));
            assert!(ended.is_ok(), "a writer waits for ever under {policy}");
        }
    }

    #[test]
    fn a_closed_engine_reads_nothing_from_the_disk() {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        for row in 0..200_u8 {
            let mut batch = engine.batch();
            batch.put(&table, &[row], &[row; 1900]).unwrap();
            batch.commit().unwrap();
        }
        engine.clone().close().unwrap();
        let mut refused = 0;
        for row in 0..200_u8 {
            match table.get(&[row]) {
                Ok(value) => assert_eq!(value, Some(vec![row; 1900])),
                Err(EngineError::Request(RequestError::Closed)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused > 0, "more rows than frames");
        let check = engine.check();
        assert!(matches!(check, Err(EngineError::Request(RequestError::Closed))), "{check:?}");
    }

    #[test]
    fn a_full_disk_and_a_missing_log_are_named_as_such() {
        let disk = MemDisk::new();
        let engine = open(&disk);
        disk.set_capacity(Some(0));
        let full = engine.set("redo_log_capacity", "64M");
        assert!(matches!(full, Err(EngineError::NoSpace { .. })), "{full:?}");
        disk.set_capacity(None);
        engine.close().unwrap();
        disk.remove(&settings_file::name(CONTROL_NAME)).unwrap();
        let missing = Engine::open_on(Disks::one(disk), small(), Background::Manual);
        assert!(matches!(missing, Err(EngineError::Open(OpenError::Damaged(_)))), "{missing:?}");
    }
}
