//! Files in memory: each request copies between a buffer and the mapped file.
//!
//! Invariant: the request runs inside `reap`, and lies within its file's mapping. A file is as long
//! as its mapping when the API starts; if it is cut off meanwhile the kernel ends the process. With
//! a write that promises durability its pages are written back before it completes.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::fs::{fstat, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::api::sync::{SingleRequest, discard, done};
use crate::{
    ApiConfig, Buffers, Caps, Completion, FileApi, IoError, Op, OpKind, OpenFiles, WriteThrough,
};

const NAME: &str = "mmap";
/// What msync takes multiples of, whatever the size of a page.
const SYNC_BYTES: usize = 64 << 10;

/// Copies from and to mapped files.
#[derive(Debug)]
pub struct MmapApi {
    files: OpenFiles,
    maps: Box<[MappedFile]>,
    buffers: Buffers,
    queued: SingleRequest,
    writes_through: bool,
    bound_to_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct MappedFile {
    start: NonNull<c_void>,
    bytes: usize,
    is_writable: bool,
}

impl FileApi for MmapApi {
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        if config.depth != 1 {
            let hint = ", or --ioengine io_uring";
            return Err(IoError::Depth { api: NAME, depth: config.depth, most: 1, hint });
        }
        let map = |file| {
            MappedFile::of(files.descriptor(file), files.bytes(file), files.mode().write)
                .map_err(|errno| IoError::System { api: NAME, call: "mmap", source: errno.into() })
        };
        let api = Self {
            files: files.clone(),
            maps: (0..files.count()).map(map).collect::<Result<_, _>>()?,
            buffers: buffers.share(),
            queued: SingleRequest::default(),
            writes_through: config.write_through != WriteThrough::None,
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

impl MmapApi {
    fn run(&self, op: &Op) -> Result<usize, Errno> {
        let map = &self.maps[op.file as usize];
        let at = (op.offset as usize).min(map.bytes);
        let len = (op.len as usize).min(map.bytes - at);
        let there = map.start.as_ptr().cast::<u8>().wrapping_add(at);
        match op.kind {
            OpKind::Read => {
                let slot = self.buffers.pointer(op.buffer, op.len);
                // SAFETY: `len` bytes at `there` lie within the mapping, and `pointer` checked that
                // the slot, which is no part of it, has as many.
                unsafe { ptr::copy_nonoverlapping(there, slot, len) };
            }
            OpKind::Write if !map.is_writable => return Err(Errno::BADF),
            OpKind::Write => {
                let slot = self.buffers.pointer(op.buffer, op.len);
                // SAFETY: as above, the other way.
                unsafe { ptr::copy_nonoverlapping(slot, there, len) };
                if self.writes_through {
                    map.write_back(at, len)?;
                }
            }
            // As in fio all of it, whatever the range; a flush moves nothing.
            OpKind::Sync => return map.write_back(0, map.bytes).map(|()| 0),
            OpKind::Trim => discard(self.files.descriptor(op.file), op)?,
        }
        Ok(len)
    }
}

impl MappedFile {
    fn of(file: BorrowedFd<'_>, bytes: u64, is_writable: bool) -> Result<Self, Errno> {
        // A file that requests extend has no pages yet. The length of a device is not to be had.
        let is_file = fstat(file).map(|stat| (stat.st_size as u64, stat.st_mode & libc::S_IFMT));
        if let Ok((size, libc::S_IFREG)) = is_file
            && size < bytes
        {
            ftruncate(file, bytes)?;
        }
        let bytes = usize::try_from(bytes).map_err(|_| Errno::FBIG)?;
        let write = if is_writable { ProtFlags::WRITE } else { ProtFlags::empty() };
        let protection = ProtFlags::READ | write;
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else refers to it.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes.max(1), protection, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start).ok_or(Errno::NOMEM)?;
        Ok(Self { start, bytes, is_writable })
    }

    /// Writes pages back and waits for it.
    fn write_back(&self, at: usize, len: usize) -> Result<(), Errno> {
        let first = at / SYNC_BYTES * SYNC_BYTES;
        let start = self.start.as_ptr().cast::<u8>().wrapping_add(first).cast();
        // SAFETY: the range lies within the mapping and begins with a page of it.
        unsafe { msync(start, at + len - first, MsyncFlags::SYNC) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped; no request refers to it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.bytes.max(1)) };
        debug_assert!(unmapped.is_ok(), "unmapping our own file failed: {unmapped:?}");
    }
}
