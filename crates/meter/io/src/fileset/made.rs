//! File sets that iostrata makes itself.
//!
//! Invariant: nothing that exists and is not ours is touched; on any error everything made is
//! removed; a set counts as kept only when each of its files is complete and marked.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::FileSpec;
use crate::fileset::error::system;
use crate::fileset::fill::{self, Filling};
use crate::fileset::leftovers::{self, Leftover};
use crate::fileset::plan::directory_of;
use crate::fileset::{FileSet, FileSetError, FileSetPlan, Fill, Progress, marker, space};

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
    let complete = |path: &PathBuf| marker::is_complete(path, bytes, plan.fill);
    // An empty file has nothing to save; and its last user extended it.
    if plan.fill == Fill::Written && paths.iter().all(complete) {
        let specs = specs(paths, bytes);
        return Ok(FileSet {
            specs,
            writable: true,
            reused: true,
            filled_bytes: 0,
            temporary: Vec::new(),
        });
    }
    for path in &paths {
        if path.symlink_metadata().is_ok() && !marker::is_ours(path) {
            return Err(FileSetError::NotOurs { path: path.clone() });
        }
    }
    make(plan, paths, bytes, stop, progress)
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
    let total_bytes = bytes * paths.len() as u64;
    if plan.fill != Fill::Empty {
        space::check(&directory_of(&paths[0]), total_bytes)?;
    }
    let owner = leftovers::announce(&paths);
    // Owns what is made from the first file on, so that an early return removes it.
    let specs = specs(paths, bytes);
    let mut set =
        FileSet { specs, writable: true, reused: false, filled_bytes: 0, temporary: Vec::new() };
    let mut filling = Filling { plan, stop, progress, done_bytes: 0, total_bytes };
    for (number, spec) in set.specs.iter().enumerate() {
        let (file, leftover) = leftovers::create(&spec.path, owner.as_deref())
            .map_err(|source| system("create", &spec.path, source))?;
        set.temporary.push(leftover);
        fill::fill(&mut filling, spec, &file, number as u64)?;
        if plan.keep {
            marker::set(&spec.path, &file, bytes, plan.fill)
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
        marker::clear(path, &File::options().write(true).open(path)?)?;
        fs::remove_file(path)
    };
    remove().map_err(|source| system("remove", path, source))
}

fn sync_directory(directory: &Path) -> Result<(), FileSetError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|source| system("flush", directory, source))
}
