//! The disk as a file system for the kernel, and how its control loop is woken.
//!
//! Invariants: every request of the kernel is answered exactly once; a thread that panics is
//! noticed and ends the server. A wake that comes before the wait is not lost.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::emudisk::client::{Node, TTL};
use crate::emudisk::disk::{Disk, Failure, Reply};
use crate::emudisk::fault::Fault;

/// Largest request that the kernel sends.
const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Requests that the kernel sends at a time; more than any disk of a loop device has.
const BACKGROUND_MAX: u16 = 1024;
/// Longest line that `control` takes.
const LINE_BYTES_MAX: usize = 512;

/// How an answer goes to the kernel.
pub(crate) enum ToKernel {
    Data(ReplyData),
    Written(ReplyWrite, u32),
    Nothing(ReplyEmpty),
}

impl Reply for ToKernel {
    fn done(self, read: &[u8]) {
        match self {
            Self::Data(reply) => reply.data(read),
            Self::Written(reply, bytes) => reply.written(bytes),
            Self::Nothing(reply) => reply.ok(),
        }
    }

    fn failed(self, why: Failure) {
        let error = match why {
            Failure::Io => Errno::EIO,
            Failure::Full => Errno::ENOSPC,
        };
        match self {
            Self::Data(reply) => reply.error(error),
            Self::Written(reply, _) => reply.error(error),
            Self::Nothing(reply) => reply.error(error),
        }
    }
}

/// A line of `control`, to be carried out and answered by the control loop.
pub(crate) struct ControlLine {
    pub(crate) fault: Fault,
    pub(crate) reply: ToKernel,
}

/// Marks that a thread died, when it is dropped during a panic.
pub(crate) struct Watch<'a>(pub(crate) &'a AtomicBool);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

pub(crate) struct FuseDisk {
    pub(crate) disk: Arc<Disk<ToKernel>>,
    /// Lines of `control`, and how their reader is woken.
    pub(crate) commands: Mutex<Sender<ControlLine>>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) has_died: Arc<AtomicBool>,
    pub(crate) since: SystemTime,
    /// What readers of `stats` see, as it was when they opened it.
    pub(crate) snapshots: Mutex<HashMap<u64, Vec<u8>>>,
    pub(crate) handles: AtomicU64,
}

impl FuseDisk {
    fn snapshot(&self) -> u64 {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        let mut text = serde_json::to_vec_pretty(&self.disk.stats()).unwrap_or_default();
        text.push(b'\n');
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.insert(handle, text);
        handle
    }

    fn command(&self, data: &[u8], reply: ReplyWrite) {
        let line = std::str::from_utf8(data).ok().filter(|line| line.len() <= LINE_BYTES_MAX);
        let Some(Ok(fault)) = line.map(str::parse::<Fault>) else {
            return reply.error(Errno::EINVAL);
        };
        let command = ControlLine { fault, reply: ToKernel::Written(reply, data.len() as u32) };
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a thread to carry it out the command is dropped, which answers EIO.
        if commands.send(command).is_ok() {
            self.wake.wake();
        }
    }

    fn attributes(&self, node: Node) -> fuser::FileAttr {
        node.attributes(self.disk.size_bytes(), self.since)
    }
}

impl Filesystem for FuseDisk {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Older kernels lack some of it and serve at a lower depth.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_congestion_threshold(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match Node::named(name).filter(|_| parent == INodeNo::ROOT) {
            Some(node) => reply.entry(&TTL, &self.attributes(node), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Node::of(ino) {
            Some(node) => reply.attr(&TTL, &self.attributes(node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // Writing to `control` with `>` truncates it, and every write sets times; a disk has the
        // size that it has.
        match Node::of(ino) {
            Some(Node::Disk) if size.is_some_and(|size| size != self.disk.size_bytes()) => {
                reply.error(Errno::EPERM);
            }
            Some(node) => reply.attr(&TTL, &self.attributes(node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        for (index, node) in (1..).zip(Node::FILES).skip(from as usize) {
            if reply.add(node.number(), index, node.kind(), node.name()) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let _watch = Watch(&self.has_died);
        // Everything goes by the page cache: the disk takes as long as the model computes.
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        match Node::of(ino) {
            Some(Node::Stats) => reply.opened(FileHandle(self.snapshot()), flags),
            Some(_) => reply.opened(FileHandle(0), flags),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if Node::of(ino) == Some(Node::Stats) {
            let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            snapshots.remove(&handle.0);
        }
        reply.ok();
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let _watch = Watch(&self.has_died);
        match Node::of(ino) {
            Some(Node::Disk) => self.disk.read(offset, size, ToKernel::Data(reply)),
            Some(Node::Stats) => {
                let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
                let text = snapshots.get(&handle.0).map_or(&[][..], Vec::as_slice);
                let from = text.len().min(offset as usize);
                let to = text.len().min(from + size as usize);
                reply.data(&text[from..to]);
            }
            _ => reply.error(Errno::EINVAL),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let _watch = Watch(&self.has_died);
        match Node::of(ino) {
            Some(Node::Disk) => {
                let bytes = data.len() as u32;
                self.disk.write(offset, data, ToKernel::Written(reply, bytes));
            }
            Some(Node::Control) => self.command(data, reply),
            _ => reply.error(Errno::EINVAL),
        }
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let _watch = Watch(&self.has_died);
        match Node::of(ino) {
            Some(Node::Disk) => self.disk.flush(ToKernel::Nothing(reply)),
            _ => reply.ok(),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let _watch = Watch(&self.has_died);
        let zeroes = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        match Node::of(ino) {
            Some(Node::Disk) if mode & zeroes != 0 => {
                let range = offset..offset.saturating_add(length);
                self.disk.discard(range, ToKernel::Nothing(reply));
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The block size is what a loop device discards at a time.
        let stats = self.disk.stats();
        let blocks = stats.size_bytes / 4096;
        let free = blocks.saturating_sub(stats.store_bytes / 4096);
        reply.statfs(blocks, free, free, 4, 0, 4096, 255, 4096);
    }
}

/// What it can be woken by.
#[derive(Debug)]
pub(crate) struct Wake {
    event: OwnedFd,
    /// Signals every mount and unmount; absent where it cannot be opened.
    mounts: Option<File>,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, mounts: File::open("/proc/self/mountinfo").ok() })
    }

    /// Ends the wait that is, or the next one.
    pub(crate) fn wake(&self) {
        // A counter that is full has woken it already.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Waits for [`Wake::wake`], for a mount or unmount, or for so long.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut on = vec![PollFd::new(&self.event, PollFlags::IN)];
        on.extend(self.mounts.iter().map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
        let at_most =
            Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        // A signal ends it early, which does no harm.
        let _ = poll(&mut on, Some(&at_most));
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }
}
