//! What a target did with its files, by what they hold.
//!
//! Invariant: counted from the start of the target; what it does not tell is absent.

use iostrata_run::{FileClass, FileIoSource};

/// What was done on the files of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Reads.
    pub reads: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Time that reads took together, in nanoseconds.
    pub read_ns: Option<u64>,
    /// Writes.
    pub writes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
    /// Time that writes took together, in nanoseconds.
    pub write_ns: Option<u64>,
    /// Syncs.
    pub syncs: Option<u64>,
    /// Time that syncs took together, in nanoseconds.
    pub sync_ns: Option<u64>,
}

/// The classes that a target tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTable {
    /// Who counted.
    pub source: FileIoSource,
    classes: [Option<FileCounts>; FileClass::ALL.len()],
}

impl FileTable {
    /// Nothing is told yet.
    pub fn new(source: FileIoSource) -> Self {
        Self { source, ..Self::default() }
    }

    /// A class, where it is told.
    pub fn get(&self, class: FileClass) -> Option<&FileCounts> {
        self.classes.get(class as usize)?.as_ref()
    }

    /// The class, told from now on.
    pub fn entry(&mut self, class: FileClass) -> &mut FileCounts {
        self.classes[class as usize].get_or_insert_default()
    }

    /// The classes that are told.
    pub fn iter(&self) -> impl Iterator<Item = (FileClass, &FileCounts)> {
        FileClass::ALL.into_iter().filter_map(|class| Some((class, self.get(class)?)))
    }
}
