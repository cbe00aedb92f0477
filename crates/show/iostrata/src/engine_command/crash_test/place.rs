//! Where the engine lies, and what a cut is there.
//!
//! Invariant: a directory is cut by killing alone; an emulated disk loses its power first, and has
//! it again before its files are read. All changes of the system go through one session and are
//! undone whatever happens.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iostrata_change::{
    Change, ChangeId, FilesystemKind, MakeFilesystem, Mount, Owner, Session, StateDir, System,
};
use iostrata_sim::emudisk::{Client, Fault, Power, ServeArguments, Store, Tear, changes, device};

use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// A fast disk that loses what was not flushed.
const MODEL: &str = "nvme-no-plp";
/// Its size.
const DISK_BYTES: u64 = 1 << 30;
/// How long its power may take to come back.
const POWER_PATIENCE: Duration = Duration::from_secs(20);

/// Where the engine lies.
pub trait CrashTarget {
    /// The engine's directory.
    fn directory(&self) -> PathBuf;
    /// Whether cuts are power cuts.
    fn is_power(&self) -> bool;
    /// Where its files are copied to from under a writer that stands still, which leaves what a
    /// kill at that moment would leave. None where a cut leaves less.
    fn copy(&self) -> Option<PathBuf>;
    /// What happens before the writer is killed.
    ///
    /// # Errors
    /// When it cannot be done.
    fn cut(&mut self, chance: u64) -> Result<(), ExitError>;
    /// What must happen before files are read.
    ///
    /// # Errors
    /// When it cannot be done.
    fn mend(&mut self) -> Result<(), ExitError>;
}

/// An ordinary directory.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }
}

impl CrashTarget for Directory {
    fn directory(&self) -> PathBuf {
        self.0.clone()
    }

    fn is_power(&self) -> bool {
        false
    }

    fn copy(&self) -> Option<PathBuf> {
        Some(self.0.with_extension("copy"))
    }

    fn cut(&mut self, _chance: u64) -> Result<(), ExitError> {
        Ok(())
    }

    fn mend(&mut self) -> Result<(), ExitError> {
        Ok(())
    }
}

/// Copies the files of a directory into a new one, in place of what was there.
///
/// # Errors
/// An error of the system.
pub fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A file system on an emulated disk.
pub struct EmulatedDisk {
    session: Session,
    client: Client,
    mount: Mount,
    mounted: Option<ChangeId>,
    at: PathBuf,
}

impl EmulatedDisk {
    /// Makes the disk and a file system on it, mounted at `at`.
    ///
    /// # Errors
    /// Why there can be none here.
    pub fn start(at: &Path, seed: u64, interruption: &Interruption) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("an emulated disk needs root".to_owned());
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let state = StateDir::of_user();
        let this = Owner::this();
        let served = state.path().join(format!("disk-{}-{}", this.pid, this.start_ticks));
        let disk = MODEL.parse().map_err(|error| format!("{MODEL}: {error}"))?;
        let arguments = ServeArguments {
            at: served.clone(),
            disk,
            size_bytes: DISK_BYTES,
            store: Store::Memory,
            store_limit_bytes: None,
            seed,
        };
        let machine = System::new().stopping_on(interruption.flag().clone());
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut session = Session::begin(&state, machine).map_err(|error| text(&error))?;
        let mut served_at = served;
        for change in changes(&program, &arguments, false).map_err(|error| text(&error))? {
            // The path comes back free of links, as the changes that follow must name it.
            let applied = session.apply(change).map_err(|error| text(&error))?;
            if let Change::FuseServer(server) = applied.change {
                served_at = server.at;
            }
        }
        let device = device(&served_at);
        let kind = FilesystemKind::Ext4;
        let (options, label) = (Vec::new(), None);
        let make = MakeFilesystem { device: device.clone(), kind, options, label };
        session.apply(make).map_err(|error| text(&error))?;
        let mount = Mount { device, at: at.to_owned(), kind, options: Vec::new() };
        let client = Client::at(&served_at);
        let mut disk = Self { session, client, mount, mounted: None, at: at.to_owned() };
        disk.mount().map_err(|error| error.to_string())?;
        Ok(disk)
    }

    fn mount(&mut self) -> Result<(), ExitError> {
        let applied = self.session.apply(self.mount.clone());
        let applied = applied.map_err(|error| ExitError::NotHere(error.to_string()))?;
        self.mounted = Some(applied.id);
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), ExitError> {
        let Some(mounted) = self.mounted.take() else { return Ok(()) };
        let undone = self.session.undo(mounted);
        undone.map(|_undone| ()).map_err(|error| ExitError::NotHere(error.to_string()))
    }

    /// Takes everything away.
    ///
    /// # Errors
    /// What could not be undone.
    pub fn stop(mut self) -> Result<(), ExitError> {
        let report = self.session.undo_all();
        if report.is_settled() {
            return Ok(());
        }
        let things: Vec<String> = report.things.iter().map(ToString::to_string).collect();
        Err(ExitError::NotHere(format!(
            "the emulated disk is not taken away in full: {}; run iostrata restore",
            things.join("; ")
        )))
    }
}

impl CrashTarget for EmulatedDisk {
    fn directory(&self) -> PathBuf {
        self.at.join("engine")
    }

    fn is_power(&self) -> bool {
        true
    }

    fn copy(&self) -> Option<PathBuf> {
        None
    }

    fn cut(&mut self, chance: u64) -> Result<(), ExitError> {
        let tear = match chance % 3 {
            0 => None,
            1 => Some(Tear::Sector),
            _ => Some(Tear::Block),
        };
        let cut = self.client.control(&Fault::PowerCut { tear, seed: Some(chance) });
        cut.map_err(|error| ExitError::NotHere(format!("the power cannot be cut: {error}")))
    }

    fn mend(&mut self) -> Result<(), ExitError> {
        self.unmount()?;
        let start = Instant::now();
        loop {
            let stats = self.client.stats();
            let stats = stats.map_err(|error| ExitError::NotHere(error.to_string()))?;
            if stats.power == Power::On {
                break;
            }
            if start.elapsed() > POWER_PATIENCE {
                return Err(ExitError::NotHere("the disk's power does not come back".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.mount()
    }
}
