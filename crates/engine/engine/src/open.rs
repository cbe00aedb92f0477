//! Making and opening an engine.
//!
//! Invariant: making one is finished by the settings file, which is written last; a directory where
//! that never happened and where we left our mark is begun anew, anything else that is not empty is
//! refused. Opening seals the redo, then applies it, then reads the tables.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::page::{PageSize, PageView};
use crate::pool::check_memory;
use crate::redo::layout::CONTROL_NAME;
use crate::redo::{Redo, RedoSettings, not_found};
use crate::store::{Store, StoreSettings};
use iostrata_innodb::{PageNo, Settings};
use iostrata_io::disk::{Aligned, Disk, DiskError, RealDisk, WriteThrough};

use crate::background::{Background, HeldDirectory, Threads};
use crate::check::{self, CheckReport};
use crate::counts::Common;
use crate::error::{EngineError, Failure, OpenError};
use crate::pages::SuperPage;
use crate::parts::Parts;
use crate::recovery::{self, Progress, RecoveryReport};
use crate::reentry::{check_outside, is_looking};
use crate::storage::{DiskSpill, Disks, VERSION_SEGMENT_BYTES, real_disk};
use crate::table_index::IndexDefinition;
use crate::{create, settings_file};

/// How long an engine that is dropped writes pages, so that the next opening has less to apply.
const DROP_TIME_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Opened {
    pub parts: Parts,
    /// Where its settings are kept.
    pub disk: Arc<dyn Disk>,
    pub threads: Threads,
    pub recovery: RecoveryReport,
    /// Nothing more is to be written when it goes.
    pub is_abandoned: AtomicBool,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.threads.were_started() {
            return;
        }
        self.threads.stop();
        let Parts { storage, flusher, pages, .. } = &self.parts;
        let is_wanted = !self.is_abandoned.load(Ordering::Relaxed)
            && !std::thread::panicking()
            && !is_looking()
            && check_outside(storage).is_ok()
            && pages.admission.check_open().is_ok();
        if is_wanted {
            // What it fails at is left to recovery.
            let _left = flusher.checkpoint_within(DROP_TIME_MAX);
            self.threads.publish();
        }
    }
}

pub(crate) fn directory(
    directory: &Path,
    (settings, indexes): (Settings, Vec<IndexDefinition>),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    check_settings(&settings)?;
    look(directory, &settings)?;
    let is_made = make_directory(directory)?;
    let opened = in_directory(directory, (settings, indexes), progress);
    if is_made && opened.is_err() {
        remove_directory(directory);
    }
    opened
}

fn in_directory(
    directory: &Path,
    (settings, indexes): (Settings, Vec<IndexDefinition>),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    let plan = settings.flush_plan();
    let data = real_disk(directory, &settings, plan.data, WriteThrough::PerWrite)?;
    let lock = data.lock(&settings_file::lock_name()).map_err(locked)?;
    let redo_directory = settings.redo_directory.as_deref().unwrap_or(directory);
    // All redo files are written alike, so the flag of opening says it for them.
    let by_flag =
        if plan.redo.write_through { WriteThrough::OpenFlag } else { WriteThrough::PerWrite };
    let redo = real_disk(redo_directory, &settings, plan.redo, by_flag)?;
    let is_elsewhere =
        std::fs::canonicalize(redo_directory).ok() != std::fs::canonicalize(directory).ok();
    let redo_lock = is_elsewhere.then(|| redo.lock(&settings_file::lock_name())).transpose();
    let redo_lock = redo_lock.map_err(locked)?;
    let disks = Disks { data: Arc::new(data), redo: Arc::new(redo) };
    let mut opened = disks_opened(disks, (settings, indexes), new_identity(), progress)?;
    let locks = std::iter::once(lock).chain(redo_lock).collect();
    let place = HeldDirectory { locks, directory: directory.to_owned() };
    opened.threads.start(&opened.parts, Some(place))?;
    Ok(opened)
}

/// Whether the settings go together, and memory can have the pool: asked before anything is made.
fn check_settings(settings: &Settings) -> Result<(), EngineError> {
    settings.check()?;
    check_memory(PageSize::of_settings(settings), settings.frames())
}

/// Finds what speaks against opening before anything is made: what is refused is left as it was.
fn look(directory: &Path, settings: &Settings) -> Result<(), EngineError> {
    let elsewhere = settings.redo_directory.as_deref();
    let redo = elsewhere.map(|path| RealDisk::new(path, false)).transpose()?;
    let data = directory.exists().then(|| RealDisk::new(directory, false)).transpose()?;
    let of_redo = redo.as_ref().zip(elsewhere);
    let of_data = data.as_ref().map(|disk| (disk, directory));
    if let Some(data) = &data
        && settings_file::exists(data)?
    {
        settings.check_reopen(&settings_file::read(data)?)?;
        let control = settings_file::name(CONTROL_NAME);
        return match redo.as_ref().unwrap_or(data).list()?.contains(&control) {
            true => Ok(()),
            false => Err(not_found()),
        };
    }
    for (disk, path) in of_data.into_iter().chain(of_redo) {
        create::leftovers(disk, &path.display().to_string())?;
    }
    Ok(())
}

/// Makes the directory if only the last part of its path is missing; whether it did.
fn make_directory(directory: &Path) -> Result<bool, EngineError> {
    if directory.exists() {
        return Ok(false);
    }
    std::fs::create_dir(directory).map_err(|error| {
        EngineError::system(
            "make the engine's directory",
            format!("{}: {error}", directory.display()),
        )
    })?;
    Ok(true)
}

/// Removes a directory that was made for an engine which could not be made. One with files of an
/// engine stays.
fn remove_directory(directory: &Path) {
    let Ok(disk) = RealDisk::new(directory, false) else { return };
    let lock = settings_file::lock_name();
    if disk.list().is_ok_and(|files| files.iter().all(|file| *file == lock)) {
        // What cannot be removed is an empty directory, which a later opening takes.
        let _left_with_the_directory = disk.remove(&lock);
        let _left = std::fs::remove_dir(directory);
    }
}

/// The settings beside the data of a directory, if there is an engine.
pub(crate) fn kept_settings(directory: &Path) -> Result<Option<Settings>, EngineError> {
    if !directory.exists() {
        return Ok(None);
    }
    kept_on(&RealDisk::new(directory, false)?)
}

/// The settings beside the data on a disk, if there is an engine.
pub(crate) fn kept_on(disk: &dyn Disk) -> Result<Option<Settings>, EngineError> {
    if settings_file::exists(disk)? { settings_file::read(disk).map(Some) } else { Ok(None) }
}

/// A number that no other engine has.
fn new_identity() -> u64 {
    RandomState::new().hash_one(std::process::id()).max(1)
}

/// Sees to it that data and redo are of one engine, before anything of either is changed. Where one
/// does not say it, as those of earlier programs, the other is believed; where neither does they
/// are `new`. Both are told so at the next clean close.
fn identify(store: &Store, redo: &Redo, new: u64) -> Result<(), EngineError> {
    let mut page = Aligned::zeroed(store.page_size().bytes());
    // Page 0 may be damaged, or in the redo alone: what it says is looked at again later.
    let front = store.read(PageNo(0), &mut page).ok();
    let front = front.and_then(|()| SuperPage::read(&PageView::new(&page)).ok());
    let (data, of_redo) = (front.map_or(0, |front| front.identity), redo.identity());
    match (data, of_redo) {
        (0, 0) => redo.set_identity(new),
        (0, _) => {}
        (data, 0) => redo.set_identity(data),
        (data, redo) if data == redo => {}
        (data, redo) => return Err(OpenError::OtherRedo { data, redo }.into()),
    }
    Ok(())
}

/// Verifies page by page what is in a directory that cannot be opened for a damaged page.
pub(crate) fn check_pages(
    directory: &Path,
    settings: &Settings,
    damaged: (u64, String),
) -> Result<CheckReport, EngineError> {
    let plan = settings.flush_plan();
    let data = real_disk(directory, settings, plan.data, WriteThrough::PerWrite)?;
    let _lock = data.lock(&settings_file::lock_name()).map_err(locked)?;
    let store = Store::open(Arc::new(data), &StoreSettings::of(settings), &Common::default())?;
    check::check_pages(&store, damaged)
}

pub(crate) fn disks(
    disks: Disks,
    plan: (Settings, Vec<IndexDefinition>),
    background: Background,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    // What is recorded in a proof must come again.
    let identity = if cfg!(any(test, feature = "testing")) { 1 } else { new_identity() };
    let mut opened = disks_opened(disks, plan, identity, progress)?;
    if background == Background::Threads {
        opened.threads.start(&opened.parts, None)?;
    }
    Ok(opened)
}

fn disks_opened(
    disks: Disks,
    (settings, indexes): (Settings, Vec<IndexDefinition>),
    identity: u64,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    check_settings(&settings)?;
    if settings_file::exists(&*disks.data)? {
        return files_opened(disks, false, (settings, indexes), identity, progress);
    }
    create::clear(&disks)?;
    let made = create::check_room(&disks, &settings).and_then(|()| {
        files_opened(disks.clone(), true, (settings.clone(), indexes), identity, progress)
    });
    made.map_err(|error| {
        if create::undo(&disks).is_err() || !error.is_full() {
            return error;
        }
        // Someone else may have taken the room meanwhile.
        create::check_room(&disks, &settings).err().unwrap_or(error)
    })
}

fn files_opened(
    disks: Disks,
    is_new: bool,
    (settings, indexes): (Settings, Vec<IndexDefinition>),
    identity: u64,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    if is_new {
        create::files(&disks, &settings)?;
    } else {
        settings.check_reopen(&settings_file::read(&*disks.data)?)?;
        // A process that was killed may have named the settings in a cache only.
        disks.data.sync_dir()?;
        create::finish(&disks)?;
    }
    let mut clock = recovery::Clock::start(progress);
    let common = Common::default();
    let store = Store::open(Arc::clone(&disks.data), &StoreSettings::of(&settings), &common)?;
    let redo_settings = RedoSettings::of(&settings);
    let (redo, scan) = Redo::open(Arc::clone(&disks.redo), redo_settings.clone(), common.clone())?;
    identify(&store, &redo, identity)?;
    let repair = store.repair()?;
    clock.repaired(&repair);
    let (from, was_clean) = (scan.checkpoint(), scan.clean());
    let end = redo.start(scan)?;
    clock.sealed(from, end, was_clean);
    let spill = Box::new(DiskSpill::new(Arc::clone(&disks.data), VERSION_SEGMENT_BYTES)?);
    let parts = Parts::assemble(settings.clone(), (store, redo), common, spill);
    if is_new {
        create::first_pages(&parts.pages, &settings)?;
        settings_file::write(&*disks.data, &settings)?;
        create::finish(&disks)?;
    } else {
        let (_reader, scan) =
            Redo::open(Arc::clone(&disks.redo), redo_settings, Common::default())?;
        recovery::apply(&parts.storage, scan, end, &mut clock)?;
    }
    parts.flusher.allow_checkpoints();
    let front = recovery::tables(&parts.pages, &parts.catalogue, &mut clock)?;
    parts.catalogue.join_indexes(indexes)?;
    match front.walk {
        _ if is_new => {}
        _ if !was_clean => parts.purger.walk_all(),
        Some(place) => parts.purger.walk_from(place),
        None => {}
    }
    let (threads, is_abandoned) = (Threads::none(), AtomicBool::new(false));
    Ok(Opened { parts, disk: disks.data, threads, recovery: clock.report(), is_abandoned })
}

fn locked(error: DiskError) -> EngineError {
    OpenError::Locked(Failure::new(error)).into()
}
