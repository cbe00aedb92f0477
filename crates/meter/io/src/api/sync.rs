//! pread, pwrite, fsync and fdatasync: one request at a time.
//!
//! Invariant: the request runs inside `reap`, so that a loop that stamps before `submit` and after
//! `reap` sees the whole of it. A short transfer is continued until it is complete or the file
//! ends. It never waits with a timeout: a system call that started runs to its end.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{
    FallocateFlags, Mode, OFlags, fallocate, fdatasync, fsync, ftruncate, open, stat, unlink,
};
use rustix::io::Errno;

use crate::{
    ApiConfig, Buffers, Caps, Completion, FileApi, FileCall, IoError, Op, OpKind, OpenFiles,
    SyncKind, WriteThrough,
};

/// The one request that an API of system calls has in flight.
#[derive(Debug, Default)]
pub(super) struct SingleRequest(Option<Op>);

impl SingleRequest {
    #[inline]
    pub(super) fn queue(&mut self, op: Op) {
        assert!(self.0.is_none(), "more than 1 request in flight");
        self.0 = Some(op);
    }

    #[inline]
    pub(super) fn count(&self) -> u32 {
        u32::from(self.0.is_some())
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Op> {
        self.0.take()
    }
}

/// How a request ended, as the kernel's asynchronous APIs report it.
#[inline]
pub(super) fn done(op: &Op, result: Result<usize, Errno>) -> Completion {
    let result = result.map_or_else(|errno| -errno.raw_os_error(), |moved| moved as i32);
    Completion { tag: op.tag, kind: op.kind, result }
}

/// Runs each request by the classic system calls.
#[derive(Debug)]
pub struct SyncApi {
    files: OpenFiles,
    buffers: Buffers,
    queued: SingleRequest,
    sync_kind: SyncKind,
    write_flags: i32,
    call: Option<FileCall>,
    bound_to_thread: PhantomData<*const ()>,
}

impl FileApi for SyncApi {
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        if config.depth != 1 {
            let hint = ", or --ioengine io_uring";
            return Err(IoError::Depth { api: "sync", depth: config.depth, most: 1, hint });
        }
        let write_flags = match config.write_through {
            WriteThrough::None => 0,
            WriteThrough::Dsync => libc::RWF_DSYNC,
            WriteThrough::Sync => libc::RWF_SYNC,
        };
        let api = Self {
            files: files.clone(),
            buffers: buffers.share(),
            queued: SingleRequest::default(),
            sync_kind: config.sync_kind,
            write_flags,
            call: config.call,
            bound_to_thread: PhantomData,
        };
        Ok((api, Caps::default()))
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        self.queued.queue(op);
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, IoError> {
        Ok(self.queued.count())
    }

    #[inline]
    fn reap(
        &mut self,
        _min: u32,
        _wait_at_most: Option<u64>,
        mut on: impl FnMut(Completion),
    ) -> Result<u32, IoError> {
        let Some(op) = self.queued.take() else { return Ok(0) };
        on(done(&op, self.run(&op)));
        Ok(1)
    }
}

impl SyncApi {
    fn run(&self, op: &Op) -> Result<usize, Errno> {
        if let (Some(call), false) = (self.call, op.kind == OpKind::Sync) {
            return self.call(call, op).map(|()| op.len as usize);
        }
        let file = self.files.descriptor(op.file);
        match op.kind {
            OpKind::Read => self.read(file, op),
            OpKind::Write => self.write(file, op),
            OpKind::Sync => flush(file, self.sync_kind, (op.offset, op.len)).map(|()| 0),
            OpKind::Trim => discard(file, op).map(|()| op.len as usize),
        }
    }

    fn call(&self, call: FileCall, op: &Op) -> Result<(), Errno> {
        match call {
            FileCall::Create => {
                let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
                open(self.files.path(op.file), flags, Mode::RUSR | Mode::WUSR).map(drop)
            }
            FileCall::Stat => stat(self.files.path(op.file)).map(drop),
            FileCall::Delete => unlink(self.files.path(op.file)),
            FileCall::Allocate => allocate(self.files.descriptor(op.file), op),
            FileCall::Truncate if op.kind == OpKind::Write => {
                ftruncate(self.files.descriptor(op.file), op.offset)
            }
            FileCall::Truncate => Err(Errno::INVAL),
        }
    }

    fn read(&self, file: BorrowedFd<'_>, op: &Op) -> Result<usize, Errno> {
        let slot = self.buffers.pointer(op.buffer, op.len);
        let len = op.len as usize;
        let mut moved = 0;
        while moved < len {
            let (to, at) = (slot.wrapping_add(moved), op.offset as i64 + moved as i64);
            // SAFETY: `pointer` checked that the slot has `len` bytes, and `moved` is below `len`.
            let read = unsafe { libc::pread64(file.as_raw_fd(), to.cast(), len - moved, at) };
            match answer(read) {
                Ok(0) => break,
                Ok(bytes) => moved += bytes,
                Err(Errno::INTR) => {}
                // After a short direct read the rest is not aligned: what was read is the answer.
                Err(Errno::INVAL) if moved > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(moved)
    }

    fn write(&self, file: BorrowedFd<'_>, op: &Op) -> Result<usize, Errno> {
        let slot = self.buffers.pointer(op.buffer, op.len);
        let len = op.len as usize;
        let mut moved = 0;
        while moved < len {
            let (from, at) = (slot.wrapping_add(moved), op.offset as i64 + moved as i64);
            match self.write_once(file, from, len - moved, at) {
                Ok(0) => break,
                Ok(bytes) => moved += bytes,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(moved)
    }

    fn write_once(
        &self,
        file: BorrowedFd<'_>,
        from: *mut u8,
        len: usize,
        at: i64,
    ) -> Result<usize, Errno> {
        let file = file.as_raw_fd();
        if self.write_flags == 0 {
            // SAFETY: the caller checked that `len` bytes at `from` lie within a slot.
            return answer(unsafe { libc::pwrite64(file, from.cast(), len, at) });
        }
        let part = libc::iovec { iov_base: from.cast(), iov_len: len };
        // SAFETY: as above, with one part that lives through the call.
        answer(unsafe { libc::pwritev2(file, &part, 1, at, self.write_flags) })
    }
}

/// The bytes or the errno of a system call that has just returned.
fn answer(returned: isize) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_negative| {
        let errno = std::io::Error::last_os_error().raw_os_error();
        Errno::from_raw_os_error(errno.unwrap_or(libc::EIO))
    })
}

fn allocate(file: BorrowedFd<'_>, op: &Op) -> Result<(), Errno> {
    let len = u64::from(op.len);
    match op.kind {
        OpKind::Write => fallocate(file, FallocateFlags::empty(), op.offset, len),
        OpKind::Trim => discard(file, op),
        _ => fallocate(file, FallocateFlags::KEEP_SIZE, op.offset, len),
    }
}

/// The ioctl that discards blocks of a device.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Discards a range: blocks of a device, or of a file those that lie wholly within the range.
pub(crate) fn discard(file: BorrowedFd<'_>, op: &Op) -> Result<(), Errno> {
    let range = [op.offset, u64::from(op.len)];
    // SAFETY: the kernel reads two numbers, which live through the call.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    match answer(returned as isize) {
        Ok(_) => Ok(()),
        // It is no device.
        Err(Errno::NOTTY) => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(file, flags, op.offset, u64::from(op.len))
        }
        Err(errno) => Err(errno),
    }
}

/// Flushes one file, or a range of it (first byte, bytes), again when a signal interrupts.
pub(crate) fn flush(
    file: BorrowedFd<'_>,
    kind: SyncKind,
    (offset, len): (u64, u32),
) -> Result<(), Errno> {
    loop {
        let flushed = match kind {
            SyncKind::Fsync => fsync(file),
            SyncKind::Fdatasync => fdatasync(file),
            SyncKind::Range(flags) => {
                let (at, len) = (offset as i64, i64::from(len));
                // SAFETY: the call takes four numbers.
                let returned = unsafe { libc::sync_file_range(file.as_raw_fd(), at, len, flags) };
                answer(returned as isize).map(drop)
            }
        };
        if flushed != Err(Errno::INTR) {
            return flushed;
        }
    }
}
