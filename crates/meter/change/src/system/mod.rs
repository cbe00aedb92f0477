//! The machine itself, and its files.
//!
//! Invariants: each call does one thing; what to do is decided above. Programs that it runs die
//! with this process; only servers outlive it. File systems are mounted through the calls that give
//! a reason (fsopen(2)); nothing is attached to the tree before the file system took every option.

mod block_device;
mod server;

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use iostrata_io::{
    FileSet, FileSetError, FileSetPlan, FileSpec, Fill, Mount, OpenFiles, OpenMode, Place, Progress,
};
use rustix::fs::{CWD, major, minor};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_remount,
    move_mount,
};

use crate::error::{ChangeError, system};
use crate::names::Prewrite;
use crate::platform::{MountRequest, Platform, Refusal, RunError};
use crate::seen::{Answer, DeviceState, FileToken, LoopDevice, Owner, PathEntry, SeenKind};
use crate::server::{Ending, Greeting, ServerCommand, Tie};
use crate::variables::{NoServers, Servers};

pub use server::{BoundCommand, end_with_starter, spawn_for_life};

/// How long [`Platform::pause`] waits.
const PAUSE: Duration = Duration::from_millis(50);

type Tell = dyn Fn(Progress) + Send + Sync;

/// The machine that this runs on.
#[derive(Clone, Default)]
pub struct System {
    stop: Arc<AtomicBool>,
    tell: Option<Arc<Tell>>,
    started: Arc<server::StartedServers>,
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

    /// Reports the progress of the filling of a file.
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
        write_cell(cell, text)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(dir)?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort();
        Ok(names)
    }

    fn look(&self, path: &Path) -> io::Result<Option<PathEntry>> {
        look(path)
    }

    fn real(&self, path: &Path) -> PathBuf {
        real(path)
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
        make(path, bytes, prewrite, &self.stop, &mut tell)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        remove(path)
    }

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        remove_tree(dir)
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
        // A device that does not answer is at least not mounted, which is checked first.
        server::within(move || block_device::in_use(&device)).unwrap_or(Ok(None))
    }

    fn openers(&self, device: &Path) -> Vec<String> {
        server::openers(device)
    }

    fn writers(&self, file: &Path) -> Vec<String> {
        server::writers(file)
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

/// With the file system's message, where it has one.
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

// Files of the system and backing files, and which ranges of one are written, by its extents.
//
// Invariant: a cell is written by one call, never created or truncated; a backing file is made by
// [`FileSet`], which makes only what is not there. Looking at extents alters nothing.

/// Sizes of backing files are a multiple of this, so that direct I/O fits.
const BLOCK_BYTES: u32 = 4096;

fn write_cell(cell: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).open(cell)?;
    file.write_all(text.as_bytes())
}

fn look(path: &Path) -> io::Result<Option<PathEntry>> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => Ok(None),
                _ => Err(error),
            };
        }
    };
    let kind = match meta.file_type() {
        kind if kind.is_file() => SeenKind::File,
        kind if kind.is_dir() => SeenKind::Directory,
        kind if kind.is_block_device() => SeenKind::BlockDevice,
        _ => SeenKind::Other,
    };
    let born = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let is_mine = meta.uid() == rustix::process::geteuid().as_raw();
    Ok(Some(PathEntry {
        kind,
        device: (major(meta.dev()), minor(meta.dev())),
        inode: meta.ino(),
        number: (major(meta.rdev()), minor(meta.rdev())),
        bytes: meta.len(),
        is_private: is_mine && meta.permissions().mode() & 0o077 == 0,
        born_us: born.map(|born| born.as_micros() as u64),
    }))
}

/// Links followed as far as the path exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let Ok(real) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

fn make(
    path: &Path,
    bytes: u64,
    prewrite: Prewrite,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), ChangeError> {
    let fill = match prewrite {
        Prewrite::All => Fill::Written,
        Prewrite::None => Fill::Fallocated,
    };
    // Checked before, and checked again when it is made: this must not take over a kept file.
    let place = match Place::find(path)? {
        place @ Place::NewFile(_) => place,
        _ => return Err(FileSetError::NotOurs { path: path.to_owned() }.into()),
    };
    // Kept, because the journal and not the set decides when it goes.
    let plan = FileSetPlan { fill, keep: true, ..FileSetPlan::new(place, bytes, BLOCK_BYTES) };
    let files = FileSet::prepare(&plan, stop, tell)?;
    if prewrite == Prewrite::None {
        return Ok(());
    }
    let look = |source| system("look at the extents of", path, source);
    let opened = files.open(OpenMode::default()).map_err(|e| look(io::Error::other(e)))?;
    let found = opened.extents().map_err(|e| look(io::Error::other(e)))?;
    match found.hole_bytes + found.unwritten_bytes {
        0 => Ok(()),
        missing => Err(ChangeError::unavailable(
            format!("a file in {} that is written in place", path.display()),
            format!("{missing} bytes of it are not, though they were written and flushed"),
            "choose a directory on ext4 or XFS",
        )),
    }
}

/// Removes a backing file and its mark file, where the file system has no room for marks.
fn remove(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mark = path.with_file_name(format!(".{name}.iostrata"));
    let _mostly_absent = fs::remove_file(mark);
    fs::remove_file(path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Removes a directory with all that is in it.
fn remove_tree(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)?;
    File::open(dir.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Bytes of the ranges (offset and length, in bytes) of a file that were never written: holes and
/// unwritten extents. A load through a loop device that touched only these ranges is sound at 0.
/// Ranges that overlap count once.
///
/// # Errors
/// The kernel's error.
pub fn touched_unwritten_bytes(backing: &Path, ranges: &[(u64, u64)]) -> io::Result<u64> {
    let mut total = 0;
    for (start, end) in joined(ranges) {
        total += unwritten_before(backing, end)? - unwritten_before(backing, start)?;
    }
    Ok(total)
}

/// Unwritten bytes of the first `bytes` bytes.
fn unwritten_before(backing: &Path, bytes: u64) -> io::Result<u64> {
    let spec = FileSpec { path: backing.to_owned(), bytes };
    let files = OpenFiles::open(&[spec], OpenMode::default()).map_err(io::Error::other)?;
    let found = files.extents().map_err(io::Error::other)?;
    Ok(found.hole_bytes + found.unwritten_bytes)
}

/// The ranges as starts and ends, sorted, none touching another.
fn joined(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted: Vec<(u64, u64)> = ranges
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|&(start, bytes)| (start, start.saturating_add(bytes)))
        .collect();
    sorted.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in sorted {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn only_touched_and_unwritten_bytes_count() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[7; 65536], 65536).unwrap();
        file.sync_all().unwrap();
        let count = |ranges: &[(u64, u64)]| touched_unwritten_bytes(&path, ranges).unwrap();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[(65536, 65536)]), 0);
        assert_eq!(count(&[(65536, 4096), (131_072, 8192), (131_072, 4096)]), 8192);
        assert_eq!(count(&[(0, 1 << 20)]), (1 << 20) - 65536);
    }

    #[test]
    fn ranges_are_joined() {
        assert_eq!(joined(&[(8, 4), (0, 4), (4, 4), (20, 0)]), [(0, 12)]);
        assert_eq!(joined(&[(0, 10), (2, 3), (11, 1)]), [(0, 10), (11, 12)]);
    }
}
