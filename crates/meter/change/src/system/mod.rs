//! The machine itself.
//!
//! Invariants: each call does one thing; what to do is decided above. Programs that it runs die
//! with this process; only servers outlive it. File systems are mounted through the calls that give
//! a reason (fsopen(2)); nothing is attached to the tree before the file system took every option.

mod block_device;
mod files;
mod server;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use iostrata_io::{Mount, Progress};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_remount,
    move_mount,
};

use crate::change::Prewrite;
use crate::error::ChangeError;
use crate::owner::Owner;
use crate::platform::{MountRequest, Platform, Refusal, RunError};
use crate::seen::{Answer, DeviceState, FileToken, LoopDevice, Seen};
use crate::server::{Ending, Greeting, ServerCommand, Tie};
use crate::variables::{NoServers, Servers};
pub use files::touched_unwritten_bytes;
pub use server::{BoundCommand, end_with_starter, spawn_for_life};

/// How long [`Platform::pause`] waits.
const PAUSE: Duration = Duration::from_millis(50);

type Tell = dyn Fn(Progress) + Send + Sync;

/// The machine that this runs on.
#[derive(Clone, Default)]
pub struct System {
    stop: Arc<AtomicBool>,
    tell: Option<Arc<Tell>>,
    started: Arc<server::Started>,
    servers: Option<Arc<dyn Servers + Send + Sync>>,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").finish_non_exhaustive()
    }
}

impl System {
    /// The machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops filling files when the flag is raised.
    #[must_use]
    pub fn stopping_on(mut self, flag: Arc<AtomicBool>) -> Self {
        self.stop = flag;
        self
    }

    /// Reaches database servers through this client.
    #[must_use]
    pub fn with_servers(mut self, servers: impl Servers + Send + Sync + 'static) -> Self {
        self.servers = Some(Arc::new(servers));
        self
    }

    /// Tells how far the filling of a file has come.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(tell));
        self
    }
}

impl Platform for System {
    fn read(&self, cell: &Path) -> io::Result<String> {
        Ok(fs::read_to_string(cell)?.trim().to_owned())
    }

    fn write(&self, cell: &Path, text: &str) -> io::Result<()> {
        files::write_cell(cell, text)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(dir)?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort();
        Ok(names)
    }

    fn look(&self, path: &Path) -> io::Result<Option<Seen>> {
        files::look(path)
    }

    fn real(&self, path: &Path) -> PathBuf {
        files::real(path)
    }

    fn disk_of(&self, device: &Path) -> io::Result<String> {
        block_device::disk_of(device)
    }

    fn state(&self, device: &Path) -> io::Result<DeviceState> {
        block_device::state(device)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn make_file(&self, path: &Path, bytes: u64, prewrite: Prewrite) -> Result<(), ChangeError> {
        let mut tell = |progress| {
            if let Some(tell) = &self.tell {
                tell(progress);
            }
        };
        files::make(path, bytes, prewrite, &self.stop, &mut tell)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        files::remove(path)
    }

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        files::remove_tree(dir)
    }

    fn loops_over(&self, file: &FileToken) -> io::Result<Vec<LoopDevice>> {
        block_device::over(file)
    }

    fn attach(
        &self,
        backing: &FileToken,
        direct: bool,
        block_bytes: Option<u32>,
    ) -> io::Result<LoopDevice> {
        block_device::attach(backing, direct, block_bytes)
    }

    fn detach(&self, device: &LoopDevice) -> io::Result<()> {
        block_device::detach(device)
    }

    fn mounts(&self) -> io::Result<Vec<Mount>> {
        iostrata_io::mounts()
    }

    fn mount(&self, request: &MountRequest) -> Result<(), Refusal> {
        mount(request)
    }

    fn remount(&self, at: &Path, options: &[String]) -> Result<(), Refusal> {
        let mounts = self.mounts().unwrap_or_default();
        let now = mounts.into_iter().rev().find(|mount| mount.at == at);
        remount(at, now.map(|now| now.options).unwrap_or_default(), options)
    }

    fn unmount(&self, at: &Path, lazily: bool) -> io::Result<()> {
        unmount(at, lazily)
    }

    fn run(&self, program: &str, arguments: &[String]) -> Result<(), RunError> {
        server::run(program, arguments)
    }

    fn start(&self, server: &ServerCommand, tie: Tie<'_>) -> Result<Owner, RunError> {
        self.started.start(server, tie)
    }

    fn greeting(&self, socket: &Path) -> Greeting {
        server::greeting(socket)
    }

    fn said(&self, process: &Owner) -> Option<String> {
        self.started.said(process)
    }

    fn servers(&self, server: &ServerCommand) -> io::Result<Vec<Owner>> {
        server::find(server)
    }

    fn end(&self, process: &Owner, how: Ending) -> io::Result<()> {
        server::end(process, how)
    }

    fn ask(&self, file: &Path) -> Answer {
        server::ask(file)
    }

    fn in_use(&self, device: &Path) -> io::Result<Option<DeviceState>> {
        let device = device.to_owned();
        // A device that does not answer is at least not mounted, which is asked first.
        server::within(move || block_device::in_use(&device)).unwrap_or(Ok(None))
    }

    fn openers(&self, device: &Path) -> Vec<String> {
        server::openers(device)
    }

    fn servers_at(&self) -> &dyn Servers {
        match &self.servers {
            Some(servers) => servers.as_ref(),
            None => &NoServers,
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn sync(&self) {
        rustix::fs::sync();
    }

    fn owner(&self) -> Owner {
        Owner::this()
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        owner.is_alive()
    }

    fn now_us(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_micros() as u64
    }

    fn pause(&self) {
        std::thread::sleep(PAUSE);
    }
}

/// Longest message of the kernel, in bytes.
const MESSAGE_BYTES: usize = 1024;

/// Options that belong to the mount and not to the file system.
const OF_THE_MOUNT: &[(&str, MountAttrFlags)] = &[
    ("nosuid", MountAttrFlags::MOUNT_ATTR_NOSUID),
    ("nodev", MountAttrFlags::MOUNT_ATTR_NODEV),
    ("noexec", MountAttrFlags::MOUNT_ATTR_NOEXEC),
    ("noatime", MountAttrFlags::MOUNT_ATTR_NOATIME),
    ("nodiratime", MountAttrFlags::MOUNT_ATTR_NODIRATIME),
    ("strictatime", MountAttrFlags::MOUNT_ATTR_STRICTATIME),
    ("relatime", MountAttrFlags::empty()),
    ("atime", MountAttrFlags::empty()),
    ("diratime", MountAttrFlags::empty()),
    ("suid", MountAttrFlags::empty()),
    ("dev", MountAttrFlags::empty()),
    ("exec", MountAttrFlags::empty()),
    ("defaults", MountAttrFlags::empty()),
];

fn mount(request: &MountRequest) -> Result<(), Refusal> {
    let context = match fsopen(request.kind, FsOpenFlags::FSOPEN_CLOEXEC) {
        Err(Errno::NODEV) => {
            let said = format!("this kernel has no {}", request.kind);
            return Err(Refusal { said, source: Errno::NODEV.into() });
        }
        opened => opened.map_err(plain)?,
    };
    let context = context.as_fd();
    let told = |errno| refusal(context, errno);
    fsconfig_set_string(context, "source", &request.source).map_err(told)?;
    let mut attributes = MountAttrFlags::empty();
    for option in &request.options {
        match OF_THE_MOUNT.iter().find(|(name, _)| name == option) {
            Some((_, flag)) => attributes |= *flag,
            None => set(context, option).map_err(|errno| {
                let Refusal { said, source } = refusal(context, errno);
                Refusal { said: format!("{option}: {said}"), source }
            })?,
        }
        if option == "ro" {
            attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        }
    }
    fsconfig_create(context).map_err(told)?;
    let mounted = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(told)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(mounted.as_fd(), c"", CWD, &request.at, flags).map_err(plain)
}

fn set(context: BorrowedFd<'_>, option: &str) -> Result<(), Errno> {
    match option.split_once('=') {
        Some((name, value)) => fsconfig_set_string(context, name, value),
        None => fsconfig_set_flag(context, option),
    }
}

fn plain(errno: Errno) -> Refusal {
    let source = io::Error::from(errno);
    Refusal { said: source.to_string(), source }
}

/// With what the file system said, where it said something.
fn refusal(context: BorrowedFd<'_>, errno: Errno) -> Refusal {
    let mut said = Vec::new();
    let mut message = [0; MESSAGE_BYTES];
    while let Ok(bytes) = rustix::io::read(context, &mut message) {
        let text = String::from_utf8_lossy(&message[..bytes]).into_owned();
        // A letter for the weight and a blank come first.
        said.push(text.get(2..).unwrap_or(&text).trim().to_owned());
        if bytes == 0 || said.len() > 8 {
            break;
        }
    }
    match said.is_empty() {
        true => plain(errno),
        false => Refusal { said: said.join("; "), source: errno.into() },
    }
}

/// Options of mount(2) that are flags, and those that take a flag away.
const FLAGS: &[(&str, &str, MountFlags)] = &[
    ("ro", "rw", MountFlags::RDONLY),
    ("nosuid", "suid", MountFlags::NOSUID),
    ("nodev", "dev", MountFlags::NODEV),
    ("noexec", "exec", MountFlags::NOEXEC),
    ("noatime", "atime", MountFlags::NOATIME),
    ("nodiratime", "diratime", MountFlags::NODIRATIME),
    ("relatime", "norelatime", MountFlags::RELATIME),
    ("strictatime", "nostrictatime", MountFlags::STRICTATIME),
    ("sync", "async", MountFlags::SYNCHRONOUS),
    ("lazytime", "nolazytime", MountFlags::LAZYTIME),
];
/// Of these only one holds.
const TIMES: MountFlags =
    MountFlags::NOATIME.union(MountFlags::RELATIME).union(MountFlags::STRICTATIME);

fn remount(at: &Path, now: Vec<String>, options: &[String]) -> Result<(), Refusal> {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in now.iter().chain(options) {
        let on = FLAGS.iter().find(|(on, _, _)| on == option);
        let off = FLAGS.iter().find(|(_, off, _)| off == option);
        match (on, off) {
            (Some((_, _, flag)), _) if TIMES.contains(*flag) => {
                flags = flags.difference(TIMES).union(*flag);
            }
            (Some((_, _, flag)), _) => flags |= *flag,
            (_, Some((_, _, flag))) => flags = flags.difference(*flag),
            _ if options.contains(option) => data.push(option.as_str()),
            _ => {}
        }
    }
    let data = std::ffi::CString::new(data.join(",")).map_err(|_| plain(Errno::INVAL))?;
    mount_remount(at, flags, &*data).map_err(plain)
}

fn unmount(at: &Path, lazily: bool) -> io::Result<()> {
    let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    Ok(rustix::mount::unmount(at, flags | UnmountFlags::NOFOLLOW)?)
}
