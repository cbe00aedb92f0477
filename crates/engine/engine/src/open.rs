//! Making and opening an engine.
//!
//! Invariants: a mark is in each directory, durably, before the first file of ours there, and is
//! removed after the settings file is written; files are removed only where the mark is and the
//! settings file is not. So making one is finished by the settings file, which is written last; a
//! directory where that never happened and where we left our mark is started over, anything else
//! that is not empty is refused. Opening seals the redo, then applies it, then reads the tables.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_innodb::{Lsn, NO_PAGE, PageNo, Settings, TableId};
use iostrata_io::disk::{Aligned, Disk, DiskError, FileMode, FileName, RealDisk, WriteThrough};

use crate::check::{self, CheckReport};
use crate::counts::Common;
use crate::error::{EngineError, Failure, OpenError};
use crate::mtr::Mtr;
use crate::page::{PageKind, PageSize, PageView, Record};
use crate::pages::{CATALOGUE_ROOT, CATALOGUE_TABLE, FORMAT, MAGIC, Pages, SuperField, SuperPage};
use crate::parts::{Background, HeldDirectory, Parts, Threads};
use crate::pool::check_memory;
use crate::recovery::{self, Progress, RecoveryReport};
use crate::redo::layout::CONTROL_NAME;
use crate::redo::{Redo, RedoSettings, not_found};
use crate::reentry::{check_outside, is_looking};
use crate::settings_file::{self, name};
use crate::storage::{DiskSpill, Disks, VERSION_SEGMENT_BYTES, real_disk};
use crate::store::{Store, StoreSettings};
use crate::table_index::IndexDefinition;
use crate::tree::Tree;

/// How long an engine that is dropped writes pages, so that the next opening has less to apply.
const DROP_TIME_MAX: Duration = Duration::from_secs(1);

pub(crate) struct OpenedEngine {
    pub parts: Parts,
    /// Where its settings are kept.
    pub disk: Arc<dyn Disk>,
    pub threads: Threads,
    pub recovery: RecoveryReport,
    /// Nothing more is to be written when it goes.
    pub is_abandoned: AtomicBool,
}

impl Drop for OpenedEngine {
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
) -> Result<OpenedEngine, EngineError> {
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
) -> Result<OpenedEngine, EngineError> {
    let plan = settings.flush_plan();
    let data = real_disk(directory, &settings, plan.data, WriteThrough::PerWrite)?;
    let lock = data.lock(&settings_file::lock_name()).map_err(locked)?;
    let redo_directory = settings.redo_directory.as_deref().unwrap_or(directory);
    // All redo files are written alike, so the flag of opening gives it for them.
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

/// Whether the settings go together, and memory can hold the pool: checked before anything is made.
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
        leftovers(disk, &path.display().to_string())?;
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

/// The settings stored with the data of a directory, if it contains an engine.
pub(crate) fn kept_settings(directory: &Path) -> Result<Option<Settings>, EngineError> {
    if !directory.exists() {
        return Ok(None);
    }
    kept_on(&RealDisk::new(directory, false)?)
}

/// The settings stored with the data on a disk, if it contains an engine.
pub(crate) fn kept_on(disk: &dyn Disk) -> Result<Option<Settings>, EngineError> {
    if settings_file::exists(disk)? { settings_file::read(disk).map(Some) } else { Ok(None) }
}

/// A number that no other engine has.
fn new_identity() -> u64 {
    RandomState::new().hash_one(std::process::id()).max(1)
}

/// Makes sure that data and redo belong to one engine, before either is changed. If one lacks the
/// identifier, as those of earlier programs do, the other's counts; if both lack it, it is `new`.
/// The next clean close writes it to both.
fn identify(store: &Store, redo: &Redo, new: u64) -> Result<(), EngineError> {
    let mut page = Aligned::zeroed(store.page_size().bytes());
    // Page 0 may be damaged, or in the redo alone: its content is checked again later.
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
) -> Result<OpenedEngine, EngineError> {
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
) -> Result<OpenedEngine, EngineError> {
    check_settings(&settings)?;
    if settings_file::exists(&*disks.data)? {
        return files_opened(disks, false, (settings, indexes), identity, progress);
    }
    clear_leftovers(&disks)?;
    let made = check_room(&disks, &settings).and_then(|()| {
        files_opened(disks.clone(), true, (settings.clone(), indexes), identity, progress)
    });
    made.map_err(|error| {
        if undo_creation(&disks).is_err() || !error.is_full() {
            return error;
        }
        // Someone else may have taken the room meanwhile.
        check_room(&disks, &settings).err().unwrap_or(error)
    })
}

fn files_opened(
    disks: Disks,
    is_new: bool,
    (settings, indexes): (Settings, Vec<IndexDefinition>),
    identity: u64,
    progress: &mut dyn FnMut(&Progress),
) -> Result<OpenedEngine, EngineError> {
    if is_new {
        create_files(&disks, &settings)?;
    } else {
        settings.check_reopen(&settings_file::read(&*disks.data)?)?;
        // A process that was killed may have named the settings in a cache only.
        disks.data.sync_dir()?;
        finish_creation(&disks)?;
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
        first_pages(&parts.pages, &settings)?;
        settings_file::write(&*disks.data, &settings)?;
        finish_creation(&disks)?;
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
    Ok(OpenedEngine { parts, disk: disks.data, threads, recovery: clock.report(), is_abandoned })
}

fn locked(error: DiskError) -> EngineError {
    OpenError::Locked(Failure::new(error)).into()
}

/// Where the log of a new engine begins.
pub(crate) const FIRST_LSN: Lsn = Lsn(8192);

const MARK: &str = "engine.creating";
const OURS: [&str; 4] = ["data-", "doublewrite-", "redo-", "engine."];
/// What may be there before: it holds no data.
const HARMLESS: [&str; 2] = ["engine.lock", "engine.status"];

/// Makes all files, once the disks are empty.
fn create_files(disks: &Disks, settings: &Settings) -> Result<(), EngineError> {
    for disk in [&disks.data, &disks.redo] {
        let mark = disk.open(&name(MARK), FileMode::Create)?;
        disk.close(mark);
        disk.sync_dir()?;
    }
    let stored = Store::create(std::sync::Arc::clone(&disks.data), &StoreSettings::of(settings));
    stored?;
    Redo::create(std::sync::Arc::clone(&disks.redo), &RedoSettings::of(settings), FIRST_LSN)?;
    Ok(())
}

/// Refuses disks without the room that the files take. Two that have the same room are taken for
/// one.
fn check_room(disks: &Disks, settings: &Settings) -> Result<(), EngineError> {
    let kept = settings_file::content(settings).len() as u64;
    let data = Store::bytes_to_make(&StoreSettings::of(settings)) + kept;
    let redo = Redo::bytes_to_make(&RedoSettings::of(settings))?;
    let (of_data, of_redo) = (disks.data.free_bytes(), disks.redo.free_bytes());
    let all = if of_data == of_redo { data + redo } else { data };
    for (needed_bytes, free) in [(all, of_data), (redo, of_redo)] {
        if let Some(free_bytes) = free.filter(|free| *free < needed_bytes) {
            return Err(OpenError::NoRoom { needed_bytes, free_bytes }.into());
        }
    }
    Ok(())
}

/// Removes everything that a making which failed has left. An engine that is there stays.
fn undo_creation(disks: &Disks) -> Result<(), EngineError> {
    if settings_file::exists(&*disks.data)? {
        return Ok(());
    }
    clear_leftovers(disks)?;
    finish_creation(disks)
}

/// Removes what a making that was cut off has left, but for its marks.
fn clear_leftovers(disks: &Disks) -> Result<(), EngineError> {
    for disk in [&disks.data, &disks.redo] {
        let leftovers = leftovers(&**disk, "the directory")?;
        for file in &leftovers {
            disk.remove(file)?;
        }
        if !leftovers.is_empty() {
            disk.sync_dir()?;
        }
    }
    Ok(())
}

/// The files that a making which was cut off has left in a directory without an engine. Each
/// directory must carry the mark itself: the redo of another engine is none of ours.
fn leftovers(disk: &dyn Disk, directory: &str) -> Result<Vec<FileName>, EngineError> {
    let mut files = disk.list()?;
    let is_marked = files.contains(&name(MARK));
    files.retain(|file| {
        let text = file.as_str();
        let may_stay = HARMLESS.contains(&text) || (is_marked && text == MARK);
        !may_stay
    });
    let is_ours = |file: &FileName| OURS.iter().any(|start| file.as_str().starts_with(start));
    match files.iter().find(|file| !(is_marked && is_ours(file))) {
        None => Ok(files),
        Some(file) => {
            let (directory, found) = (directory.to_owned(), file.to_string());
            Err(EngineError::Open(OpenError::NotOurs { directory, found }))
        }
    }
}

/// The pages that every engine has, durably in the redo.
fn first_pages(pages: &Pages, settings: &Settings) -> Result<(), EngineError> {
    let (storage, space) = (&*pages.storage, &pages.space);
    storage.store.ensure(CATALOGUE_ROOT.0 + 1)?;
    let _room = pages.admit_structure()?;
    let pins = [PageNo(0), space.map_page(0), CATALOGUE_ROOT].map(|page| storage.create(page));
    let [front, map, root] = pins;
    let (front, map, root) = (front?, map?, root?);
    let mut mtr = Mtr::begin(storage);
    let (front, root, map) = (mtr.latch(front), mtr.latch(root), mtr.latch(map));
    let (left, right) = (NO_PAGE, NO_PAGE);
    let kind = PageKind::Super;
    mtr.change(front, &Record::Init { kind, level: 0, table: TableId(0), left, right })?;
    mtr.change(front, &SuperField::Magic.set(&MAGIC.to_le_bytes()))?;
    mtr.change(front, &SuperField::Format.set(&FORMAT.to_le_bytes()))?;
    mtr.change(front, &SuperField::PageBytes.set(&settings.page_size.to_le_bytes()))?;
    mtr.change(front, &SuperField::DataFiles.set(&settings.data_files.to_le_bytes()))?;
    let identity = storage.redo.identity();
    mtr.change(front, &SuperField::Identity.set(&identity.to_le_bytes()))?;
    let next_table = CATALOGUE_TABLE.0 + 1;
    mtr.change(front, &SuperField::NextTable.set(&next_table.to_le_bytes()))?;
    mtr.change(front, &SuperField::Maps.set(&1_u64.to_le_bytes()))?;
    mtr.change(front, &SuperField::CatalogueRoot.set(&CATALOGUE_ROOT.0.to_le_bytes()))?;
    space.format_map(&mut mtr, map)?;
    mtr.change(map, &Record::SetBits { from: 0, count: 1, set: true })?;
    mtr.change(map, &Record::SetBits { from: CATALOGUE_ROOT.0 as u32, count: 1, set: true })?;
    mtr.change(root, &Tree::empty_root(CATALOGUE_TABLE))?;
    let end = mtr.commit();
    storage.redo.make_durable(end)
}

/// Removes the marks, once the settings file is there: the mark of the data last, so that an
/// opening that was cut off here goes on.
fn finish_creation(disks: &Disks) -> Result<(), EngineError> {
    for disk in [&disks.redo, &disks.data] {
        if disk.list()?.contains(&name(MARK)) {
            disk.remove(&name(MARK))?;
            disk.sync_dir()?;
        }
    }
    Ok(())
}
