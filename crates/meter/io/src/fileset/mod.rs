//! The files that a workload runs on: made, filled, guarded and removed.
//!
//! Invariant: a file that was not made by iostrata is only read unless its owner gave leave, and a
//! mounted or held device is never written. Whatever is made here, or by requests in its place, is
//! removed when the set is dropped, unless it is to be kept and is complete.
//! It does not open files for the load ([`OpenFiles`](crate::OpenFiles) does) and measures nothing.

mod held;
pub mod leftovers;
mod made;
mod plan;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

pub use plan::{FileSetError, FileSetPlan, Fill, Place, Progress, names_a_device};

use crate::{FileSpec, OpenError, OpenFiles, OpenMode, OpenSync};

/// Prepared files. Dropping it removes those that were made for it and are not to be kept.
#[derive(Debug)]
pub struct FileSet {
    specs: Vec<FileSpec>,
    writable: bool,
    reused: bool,
    filled_bytes: u64,
    temporary: Vec<leftovers::Leftover>,
    /// Whether files that requests make are kept, where they make them.
    keeps_made: Option<bool>,
}

impl FileSet {
    /// Makes, fills or finds the files of a plan.
    ///
    /// `stop` is checked after every block that is filled; `progress` is called about as often.
    ///
    /// # Errors
    /// [`FileSetError`] names the path, what was found and the fix. Everything made until then is
    /// removed.
    pub fn prepare(
        plan: &FileSetPlan,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, FileSetError> {
        plan.check()?;
        match &plan.place {
            Place::NewFile(path) => made::prepare(plan, plan.new_paths(path), stop, progress),
            Place::Directory(path) => made::prepare(plan, plan.own_paths(path), stop, progress),
            Place::ExistingFile(path) if plan.total_bytes.is_some() && leftovers::is_ours(path) => {
                made::prepare(plan, plan.new_paths(path), stop, progress)
            }
            Place::ExistingFile(path) | Place::Device(path) => held::prepare(plan, path),
        }
    }

    /// Removes kept files at these paths; gives how many were there. Others stay.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_kept(paths: &[PathBuf]) -> Result<usize, FileSetError> {
        let kept: Vec<&PathBuf> = paths.iter().filter(|path| leftovers::is_ours(path)).collect();
        kept.iter().try_for_each(|path| made::remove_ours(path))?;
        Ok(kept.len())
    }

    /// The files of several sets as one that owns none of them: the sets must outlive it.
    pub fn joined<'a>(sets: impl IntoIterator<Item = &'a FileSet>) -> Self {
        let mut joined = Self {
            specs: Vec::new(),
            writable: true,
            reused: true,
            filled_bytes: 0,
            temporary: Vec::new(),
            keeps_made: None,
        };
        for set in sets {
            joined.specs.extend_from_slice(&set.specs);
            joined.writable &= set.writable;
            joined.reused &= set.reused;
        }
        joined
    }

    /// The files and the bytes of each that may be touched.
    pub fn specs(&self) -> &[FileSpec] {
        &self.specs
    }

    /// All bytes that may be touched.
    pub fn total_bytes(&self) -> u64 {
        self.specs.iter().map(|spec| spec.bytes).sum()
    }

    /// Whether the files may be written.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Bytes that preparing it wrote.
    pub fn filled_bytes(&self) -> u64 {
        self.filled_bytes
    }

    /// Whether a kept set was used again without filling it.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// Opens the files for a worker, or for several: clones share the descriptors.
    ///
    /// # Errors
    /// As [`OpenFiles::open`].
    ///
    /// # Panics
    /// When `mode` writes to files that may only be read: `prepare` was called for less.
    pub fn open(&self, mode: OpenMode) -> Result<OpenFiles, OpenError> {
        assert!(self.writable || !mode.write, "these files may only be read");
        OpenFiles::open(&self.specs, mode)
    }

    /// Whether the files take direct I/O.
    pub fn takes_direct(&self) -> bool {
        let mode = OpenMode { direct: true, write: false, sync: OpenSync::None };
        !matches!(self.open(mode), Err(OpenError::DirectRefused { .. }))
    }
}

impl Drop for FileSet {
    fn drop(&mut self) {
        for file in &self.temporary {
            leftovers::remove(file);
        }
        if let Some(keeps) = self.keeps_made {
            self.specs.iter().for_each(|spec| made::settle_new(&spec.path, keeps));
        }
    }
}
