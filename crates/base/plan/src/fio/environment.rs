//! What a job file can refer to outside itself.
//!
//! Invariant: the parser learns about files, environment and machine from here only, so that it
//! stays pure and is tested without any of them.

use std::path::{Path, PathBuf};

/// Files, environment and machine as a job file sees them.
pub trait Environment {
    /// The content of a job file or of one that it includes.
    ///
    /// # Errors
    /// In words, when it cannot be read.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Bytes of an existing file or device; `None` when there is none.
    ///
    /// # Errors
    /// In words, when there is one or may be one, and its size cannot be read.
    fn bytes_of(&self, path: &Path) -> Result<Option<u64>, String>;

    /// Whether a path can only belong to a device, and none exists.
    fn lacks_device(&self, path: &Path) -> bool;

    /// Whether a path is a directory.
    fn is_directory(&self, path: &Path) -> bool;

    /// The files below a directory, however deep; symbolic links are none.
    ///
    /// # Errors
    /// In words, when a directory cannot be read.
    fn files_below(&self, directory: &Path) -> Result<Vec<PathBuf>, String>;

    /// The values of `$pagesize`, `$mb_memory` and `$ncpus`.
    fn machine(&self) -> Machine;

    /// A seed that is not the same each time, for `randrepeat=0`.
    fn fresh_seed(&self) -> u64;
}

/// The machine as job files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// Megabytes of memory.
    pub memory_mb: u64,
    /// Processors.
    pub cpus: u64,
}
