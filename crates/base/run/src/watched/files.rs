//! What a target did with its files, by what they hold.
//!
//! Invariant: counted from the start of the target; what it does not report is absent.

use crate::file_io::{FileClass, FileIoSource};

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

/// Requests of one kind on the files of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOpCounts {
    /// `read`, `write` or `sync`.
    pub op: &'static str,
    /// How many.
    pub requests: Option<u64>,
    /// Their bytes; syncs have none.
    pub bytes: Option<u64>,
    /// Time that they took together, in nanoseconds.
    pub ns: Option<u64>,
}

impl FileCounts {
    /// Reads, writes and syncs.
    pub fn ops(&self) -> [FileOpCounts; 3] {
        let of = |op, requests, bytes, ns| FileOpCounts { op, requests, bytes, ns };
        [
            of("read", self.reads, self.read_bytes, self.read_ns),
            of("write", self.writes, self.written_bytes, self.write_ns),
            of("sync", self.syncs, None, self.sync_ns),
        ]
    }

    /// By how much each count grew since an earlier time; one that went back did not.
    pub fn since(&self, before: &Self) -> Self {
        self.zip(before, |now, before| now?.checked_sub(before?))
    }

    /// Adds other counts; what only one of both has is kept.
    pub fn add(&mut self, more: &Self) {
        *self = self.zip(more, |one, other| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        });
    }

    fn zip(&self, other: &Self, of: fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        Self {
            reads: of(self.reads, other.reads),
            read_bytes: of(self.read_bytes, other.read_bytes),
            read_ns: of(self.read_ns, other.read_ns),
            writes: of(self.writes, other.writes),
            written_bytes: of(self.written_bytes, other.written_bytes),
            write_ns: of(self.write_ns, other.write_ns),
            syncs: of(self.syncs, other.syncs),
            sync_ns: of(self.sync_ns, other.sync_ns),
        }
    }
}

/// The classes that a target distinguishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTable {
    /// Who counted.
    pub source: FileIoSource,
    classes: [Option<FileCounts>; FileClass::ALL.len()],
}

impl FileTable {
    /// No class is reported yet.
    pub fn new(source: FileIoSource) -> Self {
        Self { source, ..Self::default() }
    }

    /// A class, where it is reported.
    pub fn get(&self, class: FileClass) -> Option<&FileCounts> {
        self.classes.get(class as usize)?.as_ref()
    }

    /// The class, reported from now on.
    pub fn entry(&mut self, class: FileClass) -> &mut FileCounts {
        self.classes[class as usize].get_or_insert_default()
    }

    /// The classes that are reported.
    pub fn iter(&self) -> impl Iterator<Item = (FileClass, &FileCounts)> {
        FileClass::ALL.into_iter().filter_map(|class| Some((class, self.get(class)?)))
    }

    /// By how much the classes grew since an earlier time; nothing where others counted, or no
    /// class is reported by both.
    pub fn since(&self, before: &Self) -> Option<Self> {
        let mut grown = Self::new(self.source);
        for (class, now) in self.iter() {
            if let Some(before) = before.get(class) {
                *grown.entry(class) = now.since(before);
            }
        }
        let is_told = grown.iter().next().is_some();
        (self.source == before.source && is_told).then_some(grown)
    }

    /// Adds the counts of another table.
    pub fn add(&mut self, more: &Self) {
        for (class, counts) in more.iter() {
            self.entry(class).add(counts);
        }
    }
}
