//! Making and opening an engine.
//!
//! Invariant: making one is finished by the settings file, which is written last; a directory where
//! that never happened and where we left our mark is begun anew, anything else that is not empty is
//! refused. Opening seals the redo, then applies it, then reads the tables.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use iostrata_flush::{AdmitRule, Steady};
use iostrata_io::disk::{BatchKind, Disk, RealDisk, RealOptions, WriteThrough};
use iostrata_knobs::{IoMethod, Settings};
use iostrata_page::{Lsn, PageSize};
use iostrata_pool::{Pool, PoolSettings};
use iostrata_redo::layout::CONTROL_NAME;
use iostrata_redo::{Redo, RedoError};
use iostrata_store::{FilePlan, Store};

use crate::admission::Admission;
use crate::background::{Place, Threads};
use crate::bell::Bell;
use crate::catalogue::Catalogue;
use crate::cleaner::Cleaner;
use crate::core::Core;
use crate::counts::Counts;
use crate::create;
use crate::error::EngineError;
use crate::help::FrameSupply;
use crate::kept;
use crate::live::Live;
use crate::plan;
use crate::poison::Poison;
use crate::recovery::{self, Progress, RecoveryReport};
use crate::source::StoreSource;
use crate::space::Space;

/// The disks of an engine: clones of one, or two.
#[derive(Clone)]
pub struct Disks {
    /// Data, doublewrite and settings.
    pub data: Arc<dyn Disk>,
    /// The redo log.
    pub redo: Arc<dyn Disk>,
}

impl Disks {
    /// Everything on one disk.
    pub fn one(disk: impl Disk + Clone + 'static) -> Self {
        Self { data: Arc::new(disk.clone()), redo: Arc::new(disk) }
    }
}

/// Who does the work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine.
    Threads,
    /// Whoever calls [`Engine::step`](crate::Engine::step), and whoever needs it to be done.
    Manual,
}

/// An engine that was opened.
pub(crate) struct Opened {
    pub core: Arc<Core>,
    pub threads: Threads,
    pub keeper: Keeper,
    pub recovery: RecoveryReport,
}

/// Where changed settings are kept.
pub(crate) struct Keeper {
    disk: Arc<dyn Disk>,
    /// Held while they are written.
    writing: Mutex<()>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Keeper")
    }
}

impl Keeper {
    /// Writes the settings beside the data, as they are when it is this caller's turn: who writes
    /// last writes the newest.
    pub fn keep(&self, core: &Core) -> Result<(), EngineError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        kept::write(&*self.disk, &core.settings())
    }
}

/// Opens the engine of a directory.
pub(crate) fn directory(
    directory: &Path,
    settings: Settings,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    settings.check()?;
    look(directory, &settings)?;
    make_directory(directory)?;
    let plan = plan::of(&settings);
    let data = real_disk(directory, &settings, plan.data, WriteThrough::PerWrite)?;
    let lock = data.lock(&kept::lock_name()).map_err(EngineError::Locked)?;
    let redo_directory = settings.redo_directory.as_deref().unwrap_or(directory);
    // All redo files are written alike, so the flag of opening says it for them.
    let by_flag =
        if plan.redo.write_through { WriteThrough::OpenFlag } else { WriteThrough::PerWrite };
    let redo = real_disk(redo_directory, &settings, plan.redo, by_flag)?;
    let is_elsewhere =
        std::fs::canonicalize(redo_directory).ok() != std::fs::canonicalize(directory).ok();
    let redo_lock = is_elsewhere.then(|| redo.lock(&kept::lock_name())).transpose();
    let redo_lock = redo_lock.map_err(EngineError::Locked)?;
    let disks = Disks { data: Arc::new(data), redo: Arc::new(redo) };
    let mut opened = disks_opened(disks, settings, progress)?;
    let locks = std::iter::once(lock).chain(redo_lock).collect();
    let place = Place { locks, directory: directory.to_owned() };
    opened.threads.start(&opened.core, Some(place))?;
    Ok(opened)
}

/// Finds what speaks against opening before anything is made: what is refused is left as it was.
fn look(directory: &Path, settings: &Settings) -> Result<(), EngineError> {
    let elsewhere = settings.redo_directory.as_deref();
    let redo = elsewhere.map(|path| RealDisk::new(path, false)).transpose()?;
    let data = directory.exists().then(|| RealDisk::new(directory, false)).transpose()?;
    let of_redo = redo.as_ref().zip(elsewhere);
    let of_data = data.as_ref().map(|disk| (disk, directory));
    if let Some(data) = &data
        && kept::exists(data)?
    {
        settings.check_reopen(&kept::read(data)?)?;
        let control = kept::name(CONTROL_NAME);
        return match redo.as_ref().unwrap_or(data).list()?.contains(&control) {
            true => Ok(()),
            false => Err(EngineError::Redo(RedoError::NotFound { file: CONTROL_NAME })),
        };
    }
    for (disk, path) in of_data.into_iter().chain(of_redo) {
        create::leftovers(disk, &path.display().to_string())?;
    }
    Ok(())
}

/// Makes the directory if only the last part of its path is missing.
fn make_directory(directory: &Path) -> Result<(), EngineError> {
    if directory.exists() {
        return Ok(());
    }
    std::fs::create_dir(directory).map_err(|error| EngineError::System {
        doing: "make the engine's directory",
        problem: format!("{}: {error}", directory.display()),
    })
}

/// The settings beside the data of a directory, if there is an engine.
pub(crate) fn kept_settings(directory: &Path) -> Result<Option<Settings>, EngineError> {
    if !directory.exists() {
        return Ok(None);
    }
    let disk = RealDisk::new(directory, false)?;
    if kept::exists(&disk)? { kept::read(&disk).map(Some) } else { Ok(None) }
}

/// Opens the engine of disks.
pub(crate) fn disks(
    disks: Disks,
    settings: Settings,
    background: Background,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    let mut opened = disks_opened(disks, settings, progress)?;
    if background == Background::Threads {
        opened.threads.start(&opened.core, None)?;
    }
    Ok(opened)
}

fn real_disk(
    directory: &Path,
    settings: &Settings,
    plan: FilePlan,
    write_through: WriteThrough,
) -> Result<RealDisk, EngineError> {
    let batch = match settings.io_method {
        IoMethod::Sync => BatchKind::Sync,
        IoMethod::Libaio => BatchKind::Libaio,
        IoMethod::IoUring => BatchKind::IoUring,
    };
    let direct = plan.direct;
    // Where the device promises not to tear pages, the store leaves the doublewrite copy out.
    let options =
        RealOptions { direct, write_through, batch, atomic: direct, ..RealOptions::default() };
    Ok(RealDisk::with(directory, options)?)
}

fn disks_opened(
    disks: Disks,
    settings: Settings,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Opened, EngineError> {
    settings.check()?;
    let is_new = !kept::exists(&*disks.data)?;
    if is_new {
        create::files(&disks, &settings)?;
    } else {
        settings.check_reopen(&kept::read(&*disks.data)?)?;
        // A process that was killed may have named the settings in a cache only.
        disks.data.sync_dir()?;
        create::finish(&disks)?;
    }
    let keeper = Keeper { disk: Arc::clone(&disks.data), writing: Mutex::default() };
    let mut clock = recovery::Clock::start(progress);
    let store = Arc::new(Store::open(Arc::clone(&disks.data), &plan::store(&settings))?);
    let repair = store.repair()?;
    clock.repaired(&repair);
    let redo_settings = plan::redo(&settings);
    let (redo, scan) = Redo::open(Arc::clone(&disks.redo), redo_settings.clone())?;
    let (from, was_clean) = (scan.checkpoint(), scan.clean());
    let end = redo.start(scan)?;
    clock.sealed(from, end, was_clean);
    let core = assemble(settings, store, redo)?;
    if is_new {
        create::first_pages(&core)?;
        keeper.keep(&core)?;
        create::finish(&disks)?;
    } else {
        let (_reader, scan) = Redo::open(Arc::clone(&disks.redo), redo_settings)?;
        recovery::apply(&core, scan, end, &mut clock)?;
    }
    core.allow_checkpoints();
    recovery::tables(&core, &mut clock)?;
    let threads = Threads::none();
    Ok(Opened { core, threads, keeper, recovery: clock.report() })
}

/// Puts the parts together.
fn assemble(settings: Settings, store: Arc<Store>, redo: Redo) -> Result<Arc<Core>, EngineError> {
    let page_size = page_size(&settings);
    let supply = Arc::new(FrameSupply::default());
    let source = Arc::new(StoreSource(Arc::clone(&store)));
    let mut pool_settings = PoolSettings::new(page_size, settings.frames() as usize);
    pool_settings.old_pct = settings.old_blocks_pct;
    pool_settings.bucket_bytes = (redo.limits().capacity / 256).max(1);
    let pool = Pool::new(pool_settings, source, Arc::clone(&supply) as Arc<_>);
    let live = Live::default();
    live.follow(&settings);
    let admission = Admission::new(AdmitRule::wall(redo.limits().max_age));
    let core = Arc::new(Core {
        page_size,
        admission,
        redo,
        store,
        pool,
        space: Space::new(page_size, 1),
        catalogue: Catalogue::new(),
        poison: Poison::default(),
        counts: Counts::default(),
        bell: Bell::default(),
        live,
        data_files: u64::from(settings.data_files),
        settings: RwLock::new(settings),
        setting: Mutex::new(()),
        cleaner: Mutex::new(Cleaner::new(Box::new(Steady::default()))),
        holds_checkpoints: true.into(),
        opened: std::time::Instant::now(),
        directories: Mutex::default(),
    });
    supply.belongs_to(Arc::downgrade(&core));
    Ok(core)
}

/// The page size of checked settings.
pub(crate) fn page_size(settings: &Settings) -> PageSize {
    match PageSize::new(settings.page_size) {
        Ok(size) => size,
        Err(error) => panic!("settings were checked, yet {error}"),
    }
}

/// Where the log of a new engine begins.
pub(crate) const FIRST_LSN: Lsn = Lsn(8192);
