//! Serving from mounting to unmounting.
//!
//! Invariant: when it returns nothing is mounted any more, and when the process ends in any way
//! requests fail instead of waiting.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use fuser::{BackgroundSession, Config, MountOption, Session};
use rustix::mount::{UnmountFlags, unmount};

use crate::drive::Drive;
use crate::emudisk::disk::{Disk, Failure, MakeDrive, Reply};
use crate::emudisk::error::ServeError;
use crate::emudisk::fault::Fault;
use crate::emudisk::filesystem::{ControlLine, FuseDisk, ToKernel, Wake, Watch};
use crate::emudisk::holder::is_held;
use crate::emudisk::options::{ServeOptions, disk_file};
use crate::emudisk::pace::run_timer;

/// Threads that take requests.
const THREADS: usize = 2;
/// What mount tables show as the device.
const SOURCE: &str = "iostrata-disk";
/// How long the end waits for programs that look at the disk in passing.
const END_WAIT: Duration = Duration::from_millis(500);
const END_LOOK: Duration = Duration::from_millis(5);

/// Serves a disk at the existing directory `at`, until it is unmounted or `stop` is raised; then it
/// unmounts itself. The calling process should do nothing else: its threads are made flushers of
/// dirty pages, and it has to end when this returns an error.
///
/// # Errors
/// What stands in the way, before anything is mounted; a loop device that holds the disk at the
/// end, or a thread that died.
pub fn serve(at: &Path, options: ServeOptions, stop: &AtomicBool) -> Result<(), ServeError> {
    let of = options.clone();
    let make_drive = move || {
        let drive = crate::model::drive;
        Ok(drive(&of.disk, of.size_bytes, of.measured.as_ref(), of.seed)?)
    };
    serve_drive(at, options, Box::new(make_drive), stop)
}

/// As [`serve`], with a drive of the caller's own; `make_drive` is called again after a power cut.
///
/// # Errors
/// As [`serve`].
pub fn serve_drive(
    at: &Path,
    options: ServeOptions,
    make_drive: Box<dyn Fn() -> Result<Box<dyn Drive>, ServeError> + Send + Sync>,
    stop: &AtomicBool,
) -> Result<(), ServeError> {
    options.check()?;
    let at = directory(at)?;
    // Its memory must not be freed through the disk that it serves. Not fatal without the right to
    // it: the kernel's own protection against a full memory remains.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    // Not fatal either: replies are later while others keep the processors busy, which is counted.
    let _ = crate::emudisk::priority::raise();
    let has_died = Arc::new(AtomicBool::new(false));
    let (disk, timer) = start(&options, make_drive, &has_died)?;
    let (sender, commands) = channel();
    let system = |what| move |source: io::Error| ServeError::System { what, source };
    let wake = Arc::new(Wake::new().map_err(system("making an event descriptor"))?);
    let served = FuseDisk {
        disk: disk.clone(),
        commands: Mutex::new(sender),
        wake: wake.clone(),
        has_died: has_died.clone(),
        since: SystemTime::now(),
        snapshots: Mutex::new(HashMap::new()),
        handles: AtomicU64::new(1),
    };
    let session = mount(served, &at)?;
    let control =
        ControlLoop { at: at.clone(), disk: disk.clone(), commands, wake, has_died, stop };
    let ran = control.run(|| session.guard.is_finished());
    let ended = end(session, &at);
    disk.pace().end();
    if ended.is_ok() {
        // It only ends early by a panic, which `keep` reported.
        let _ = timer.join();
    }
    ran.and(ended)
}

fn start(
    options: &ServeOptions,
    make_drive: MakeDrive,
    has_died: &Arc<AtomicBool>,
) -> Result<(Arc<Disk<ToKernel>>, JoinHandle<()>), ServeError> {
    let disk = Arc::new(Disk::new(options, make_drive)?);
    let (timed, has_died) = (disk.clone(), has_died.clone());
    let run = move || {
        let _watch = Watch(&has_died);
        run_timer(timed.pace(), |due| timed.send(due));
    };
    let timer = std::thread::Builder::new().name("timer".to_owned()).spawn(run);
    let what = "starting a thread";
    Ok((disk, timer.map_err(|source| ServeError::System { what, source })?))
}

/// The directory, absolute and without links, so that it is found in mount tables.
fn directory(at: &Path) -> Result<PathBuf, ServeError> {
    let refused = |found: String| ServeError::Directory { at: at.to_owned(), found };
    let absolute = at.canonicalize().map_err(|error| refused(error.to_string()))?;
    if !absolute.is_dir() {
        return Err(refused("it is a file".to_owned()));
    }
    Ok(absolute)
}

fn mount(served: FuseDisk, at: &Path) -> Result<BackgroundSession, ServeError> {
    let failed = |source| ServeError::mounting(at, source);
    // Without it the mount would be tried again through a program that may not be there.
    std::fs::File::options().read(true).write(true).open("/dev/fuse").map_err(failed)?;
    let mut config = Config::default();
    let source = MountOption::FSName(SOURCE.to_owned());
    config.mount_options = vec![source, MountOption::NoDev, MountOption::NoSuid];
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    Session::new(served, at, &config).and_then(Session::spawn).map_err(failed)
}

/// Unmounts, if that was not done; hides the mount when the disk is still open.
fn end(session: BackgroundSession, at: &Path) -> Result<(), ServeError> {
    let until = Instant::now() + END_WAIT;
    while !session.guard.is_finished() {
        match unmount(at, UnmountFlags::empty()) {
            Err(rustix::io::Errno::BUSY) if Instant::now() < until => {}
            Err(rustix::io::Errno::BUSY) => {
                // New openers find an empty directory; the end of the process fails the rest.
                let _ = unmount(at, UnmountFlags::DETACH);
                std::mem::forget(session);
                return Err(ServeError::Held { at: at.to_owned() });
            }
            _ if Instant::now() >= until => {
                std::mem::forget(session);
                return Err(ServeError::Held { at: at.to_owned() });
            }
            _ => {}
        }
        std::thread::sleep(END_LOOK);
    }
    let joined = session.join();
    joined.map_err(|source| ServeError::System { what: "serving through /dev/fuse", source })
}

// The control loop: commands of `control`, the power coming back, the end.
//
// Invariant: the power comes back by itself only when the block device is not in use, so that a
// file system of before a cut cannot write after it.

/// How often it looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks whether the device is let go, while there is no power.
const LOOK_POWER: Duration = Duration::from_millis(1);

/// What runs besides requests.
pub(crate) struct ControlLoop<'a> {
    pub(crate) at: PathBuf,
    pub(crate) disk: Arc<Disk<ToKernel>>,
    pub(crate) commands: Receiver<ControlLine>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) has_died: Arc<AtomicBool>,
    pub(crate) stop: &'a AtomicBool,
}

impl ControlLoop<'_> {
    /// Returns when it was unmounted (`is_over` returns true) or is to stop.
    pub(crate) fn run(&self, is_over: impl Fn() -> bool) -> Result<(), ServeError> {
        while !is_over() && !self.stop.load(Ordering::Acquire) {
            if self.has_died.load(Ordering::Acquire) {
                return Err(ServeError::Died { at: self.at.clone() });
            }
            while let Ok(command) = self.commands.try_recv() {
                self.carry_out(command)?;
            }
            let is_on = self.disk.is_on();
            if !is_on && !is_held(&disk_file(&self.at)) {
                self.disk.power_on()?;
            }
            self.wake.wait(if is_on { LOOK } else { LOOK_POWER });
        }
        Ok(())
    }

    fn carry_out(&self, command: ControlLine) -> Result<(), ServeError> {
        match command.fault {
            Fault::Eio(range) => self.disk.errors.set_range(range),
            Fault::EioRate(per_million) => self.disk.errors.set_rate(per_million),
            Fault::Slow(ms) => self.disk.pace().set_slow(u64::from(ms) * 1_000_000),
            Fault::Stall(stall) => self.disk.pace().set_stall(stall),
            Fault::StoreLimit(bytes) => self.disk.set_store_limit(bytes),
            Fault::PowerOn => self.disk.power_on()?,
            Fault::PowerCut { tear, seed } => {
                if let Err(source) = self.disk.power_off(tear, seed) {
                    command.reply.failed(Failure::Io);
                    let what = "taking back what a power cut loses";
                    return Err(ServeError::System { what, source });
                }
                if !is_held(&disk_file(&self.at)) {
                    self.disk.power_on()?;
                }
            }
        }
        command.reply.done(&[]);
        Ok(())
    }
}
