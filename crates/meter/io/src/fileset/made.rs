//! File sets that iostrata makes itself: made, and filled with data that no storage can shrink.
//!
//! Invariant: nothing that exists and is not ours is touched; on any error everything made is
//! removed; a set counts as kept only when each of its files is complete and marked.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;

use crate::fileset::leftovers::Leftover;
use crate::fileset::plan::{directory_of, system};
use crate::fileset::{FileSet, FileSetError, FileSetPlan, Fill, Progress, leftovers, plan};
use crate::{
    ApiConfig, Buffers, Completion, FileApi, FileSpec, IoError, LibaioApi, Op, OpKind, OpenError,
    OpenFiles, OpenMode, OpenSync, Pages, SyncApi, UringApi,
};

/// Makes the files at `paths`, or uses a complete kept set again.
pub(super) fn prepare(
    plan: &FileSetPlan,
    paths: Vec<PathBuf>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<FileSet, FileSetError> {
    let Some(total) = plan.total_bytes else {
        return Err(FileSetError::SizeNeeded { path: paths[0].clone() });
    };
    let bytes = plan.bytes_each(total);
    let complete = |path: &PathBuf| leftovers::is_complete(path, bytes, plan.fill);
    // An empty file has nothing to save; and its last user extended it.
    if plan.fill == Fill::Written && paths.iter().all(complete) {
        let specs = specs(paths, bytes);
        return Ok(FileSet {
            specs,
            writable: true,
            reused: true,
            filled_bytes: 0,
            temporary: Vec::new(),
            keeps_made: None,
        });
    }
    for path in &paths {
        if path.symlink_metadata().is_ok() && !leftovers::is_ours(path) {
            return Err(FileSetError::NotOurs { path: path.clone() });
        }
    }
    if plan.fill == Fill::Grown && paths.iter().all(|path| path.exists()) {
        return grow(plan, paths, bytes);
    }
    make(plan, paths, bytes, stop, progress)
}

/// Takes files that are there as they are, and allocates what they lack.
fn grow(plan: &FileSetPlan, paths: Vec<PathBuf>, bytes: u64) -> Result<FileSet, FileSetError> {
    let specs = specs(paths, bytes);
    for spec in &specs {
        let file = extend(spec)?;
        if plan.keep {
            leftovers::set(&spec.path, &file, bytes, plan.fill)
                .map_err(|source| system("mark", &spec.path, source))?;
        }
    }
    Ok(FileSet {
        specs,
        writable: true,
        reused: true,
        filled_bytes: 0,
        temporary: Vec::new(),
        keeps_made: None,
    })
}

/// Allocates what a file that is there lacks of its bytes.
pub(super) fn extend(spec: &FileSpec) -> Result<File, FileSetError> {
    let opened = File::options().write(true).open(&spec.path);
    let file = opened.map_err(|source| system("open", &spec.path, source))?;
    allocate(spec, &file)
        .map_err(|source| FileSetError::NoFallocate { path: spec.path.clone(), source })?;
    Ok(file)
}

fn make(
    plan: &FileSetPlan,
    paths: Vec<PathBuf>,
    bytes: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<FileSet, FileSetError> {
    for path in paths.iter().filter(|path| path.exists()) {
        remove_ours(path)?;
    }
    if plan.fill == Fill::Absent {
        return Ok(FileSet {
            specs: specs(paths, bytes),
            writable: true,
            reused: false,
            filled_bytes: 0,
            temporary: Vec::new(),
            keeps_made: Some(plan.keep),
        });
    }
    let total_bytes = bytes * paths.len() as u64;
    if plan.fill != Fill::Empty {
        plan::check(&directory_of(&paths[0]), total_bytes)?;
    }
    let owner = leftovers::announce(&paths);
    // Owns what is made from the first file on, so that an early return removes it.
    let specs = specs(paths, bytes);
    let mut set = FileSet {
        specs,
        writable: true,
        reused: false,
        filled_bytes: 0,
        temporary: Vec::new(),
        keeps_made: None,
    };
    let mut filling = Filling { plan, stop, progress, done_bytes: 0, total_bytes };
    for (number, spec) in set.specs.iter().enumerate() {
        let (file, leftover) = leftovers::create(&spec.path, owner.as_deref())
            .map_err(|source| system("create", &spec.path, source))?;
        set.temporary.push(leftover);
        fill(&mut filling, spec, &file, number as u64)?;
        if plan.keep {
            leftovers::set(&spec.path, &file, bytes, plan.fill)
                .map_err(|source| system("mark", &spec.path, source))?;
        }
    }
    if plan.fill == Fill::Written {
        set.filled_bytes = total_bytes;
    }
    sync_directory(&directory_of(&set.specs[0].path))?;
    if plan.keep {
        set.temporary.drain(..).for_each(|file: Leftover| leftovers::keep(&file));
    }
    Ok(set)
}

fn specs(paths: Vec<PathBuf>, bytes: u64) -> Vec<FileSpec> {
    paths.into_iter().map(|path| FileSpec { path, bytes }).collect()
}

pub(super) fn remove_ours(path: &Path) -> Result<(), FileSetError> {
    let remove = || -> io::Result<()> {
        leftovers::clear(path, &File::options().write(true).open(path)?)?;
        fs::remove_file(path)
    };
    remove().map_err(|source| system("remove", path, source))
}

/// Marks a file that requests made as ours, or removes it. One that they did not make is left.
pub(super) fn settle_new(path: &Path, keeps: bool) {
    let Ok(file) = File::options().write(true).open(path) else { return };
    let _stays_without = match keeps {
        true => leftovers::set(path, &file, 0, Fill::Absent),
        false => fs::remove_file(path),
    };
}

fn sync_directory(directory: &Path) -> Result<(), FileSetError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|source| system("flush", directory, source))
}

// Writing a new file full, fast, with data that no storage can shrink.
//
// Invariant: when it returns, every byte is written and flushed, or nothing is claimed.
// It neither creates nor removes files.

const CHUNK_BYTES: u32 = 1 << 20;
const DEPTH: u32 = 8;
/// A chunk that takes no longer lets one more be in flight: on a slow device few are left to wait
/// for when filling is stopped.
const QUICK: Duration = Duration::from_millis(200);
/// Progress is reported at least this often.
const LOOK_NS: u64 = 200_000_000;
/// Buffered writes are flushed after this many chunks: memory takes them faster than any device.
const FLUSH_CHUNKS: u64 = 16;

/// The filling of one set.
struct Filling<'a> {
    pub(super) plan: &'a FileSetPlan,
    pub(super) stop: &'a AtomicBool,
    pub(super) progress: &'a mut dyn FnMut(Progress),
    pub(super) done_bytes: u64,
    pub(super) total_bytes: u64,
}

/// Gives a new, empty file its size and content; `number` distinguishes the files of a set.
fn fill(
    filling: &mut Filling<'_>,
    spec: &FileSpec,
    file: &File,
    number: u64,
) -> Result<(), FileSetError> {
    match filling.plan.fill {
        Fill::Empty | Fill::Absent => Ok(()),
        Fill::Fallocated | Fill::Grown => allocate(spec, file)
            .map_err(|source| FileSetError::NoFallocate { path: spec.path.clone(), source }),
        Fill::Written => {
            match allocate(spec, file) {
                // Without allocation ahead the writes extend the file, which is only slower.
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                Err(error) => return Err(system("allocate", &spec.path, error)),
            }
            write_all(filling, spec, file, number)?;
            file.sync_all().map_err(|source| system("flush", &spec.path, source))?;
            // What was written buffered must not stay in the page cache and answer reads.
            let _only_advice = fadvise(file.as_fd(), 0, None, Advice::DontNeed);
            Ok(())
        }
    }
}

fn allocate(spec: &FileSpec, file: &File) -> io::Result<()> {
    loop {
        match fallocate(file.as_fd(), FallocateFlags::empty(), 0, spec.bytes) {
            Err(Errno::INTR) => {}
            allocated => return allocated.map_err(io::Error::from),
        }
    }
}

fn open_for_filling(spec: &FileSpec) -> Result<OpenFiles, FileSetError> {
    let direct = spec.bytes.is_multiple_of(4096);
    let mode = OpenMode { direct, write: true, sync: OpenSync::None };
    let specs = std::slice::from_ref(spec);
    let opened = match OpenFiles::open(specs, mode) {
        Err(OpenError::DirectRefused { .. }) => {
            OpenFiles::open(specs, OpenMode { direct: false, ..mode })
        }
        opened => opened,
    };
    opened.map_err(|error| match error {
        OpenError::System { path, source } => FileSetError::System { doing: "open", path, source },
        OpenError::DirectRefused { path } => {
            let source = io::Error::from_raw_os_error(libc::EINVAL);
            FileSetError::System { doing: "open", path, source }
        }
    })
}

/// By the fastest API that works here; buffered writes gain nothing from depth.
fn write_all(
    filling: &mut Filling<'_>,
    spec: &FileSpec,
    file: &File,
    number: u64,
) -> Result<(), FileSetError> {
    let files = open_for_filling(spec)?;
    let seed = filling.plan.seed.wrapping_add(number);
    let depth = if files.mode().direct { DEPTH } else { 1 };
    let buffers = Buffers::in_pages(Pages::Huge, depth, CHUNK_BYTES, seed);
    let buffers = buffers.map_err(|error| failed(spec, error))?;
    let config = ApiConfig { depth, ..ApiConfig::default() };
    if depth > 1 {
        if let Ok((api, _caps)) = UringApi::start(&config, &files, &buffers) {
            return write_by(filling, spec, api, buffers, depth, None);
        }
        if let Ok((api, _caps)) = LibaioApi::start(&config, &files, &buffers) {
            return write_by(filling, spec, api, buffers, depth, None);
        }
    }
    let (api, _caps) = SyncApi::start(&ApiConfig::default(), &files, &buffers)
        .map_err(|error| failed(spec, error))?;
    let buffered = (!files.mode().direct).then_some(file);
    write_by(filling, spec, api, buffers, 1, buffered)
}

fn write_by<A: FileApi>(
    filling: &mut Filling<'_>,
    spec: &FileSpec,
    mut api: A,
    mut buffers: Buffers,
    depth: u32,
    file: Option<&File>,
) -> Result<(), FileSetError> {
    let mut free: Vec<u32> = (0..depth).collect();
    let mut lens = vec![0; depth as usize];
    let (mut next, mut written) = (0, 0);
    let (mut ahead, mut unflushed) = (1, 0);
    while written < spec.bytes {
        if filling.stop.load(Ordering::Relaxed) {
            return Err(FileSetError::Stopped { path: spec.path.clone() });
        }
        let began = Instant::now();
        while next < spec.bytes && depth - (free.len() as u32) < ahead {
            let Some(tag) = free.pop() else { break };
            let len = (spec.bytes - next).min(u64::from(CHUNK_BYTES)) as u32;
            lens[tag as usize] = len;
            buffers.stamp(tag, filling.plan.seed, next);
            api.queue(Op { kind: OpKind::Write, file: 0, offset: next, len, buffer: tag, tag });
            next += u64::from(len);
        }
        let mut wrong = None;
        let mut moved = 0;
        let on = |done: Completion| {
            free.push(done.tag);
            moved += u64::from(lens[done.tag as usize]);
            if done.result != lens[done.tag as usize] as i32 {
                wrong = Some(done.result);
            }
        };
        api.reap(1, Some(LOOK_NS), on).map_err(|error| failed(spec, error))?;
        if moved > 0 && began.elapsed() < QUICK {
            ahead = (ahead + 1).min(depth);
        }
        if let Some(result) = wrong {
            // A write is cut short where room ends.
            let errno = if result < 0 { -result } else { libc::ENOSPC };
            return Err(system("fill", &spec.path, io::Error::from_raw_os_error(errno)));
        }
        written += moved;
        unflushed += moved;
        if let Some(file) = file
            && unflushed >= FLUSH_CHUNKS * u64::from(CHUNK_BYTES)
        {
            file.sync_data().map_err(|source| system("flush", &spec.path, source))?;
            unflushed = 0;
        }
        filling.done_bytes += moved;
        let (done_bytes, total_bytes) = (filling.done_bytes, filling.total_bytes);
        (filling.progress)(Progress { done_bytes, total_bytes });
    }
    Ok(())
}

fn failed(spec: &FileSpec, error: IoError) -> FileSetError {
    system("fill", &spec.path, io::Error::other(error))
}
