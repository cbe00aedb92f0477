//! What a target did with its files between two times that it told it.
//!
//! Invariant: no rate is below zero; a class that one of both does not tell has none.

use iostrata_run::{FileClass, FileClassIo, FileIo};
use iostrata_target::{FileCounts, FileTable};

/// A table, and when it was told, in seconds on the clock of the target's samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToldFiles {
    pub(crate) at_s: f64,
    pub(crate) table: FileTable,
}

impl ToldFiles {
    /// What was done since an earlier time; nothing where others counted, or no time passed.
    pub(crate) fn since(&self, before: &Self) -> Option<FileIo> {
        let seconds = self.at_s - before.at_s;
        let is_comparable = self.table.source == before.table.source && seconds > 0.0;
        let of = |(class, after): (FileClass, &FileCounts)| {
            let before = before.table.get(class)?;
            Some(Between { before, after, seconds }.class(class))
        };
        let classes: Vec<FileClassIo> = self.table.iter().filter_map(of).collect();
        let io = FileIo { source: self.table.source, classes };
        (is_comparable && !io.classes.is_empty()).then_some(io)
    }
}

type CountField = fn(&FileCounts) -> Option<u64>;

struct Between<'a> {
    before: &'a FileCounts,
    after: &'a FileCounts,
    seconds: f64,
}

impl Between<'_> {
    fn grown(&self, field: CountField) -> Option<f64> {
        Some(field(self.after)?.checked_sub(field(self.before)?)? as f64)
    }

    fn per_s(&self, field: CountField) -> Option<f64> {
        Some(self.grown(field)? / self.seconds)
    }

    fn mean_ms(&self, ns: CountField, count: CountField) -> Option<f64> {
        let count = self.grown(count).filter(|count| *count > 0.0)?;
        Some(self.grown(ns)? / count / 1e6)
    }

    fn class(&self, class: FileClass) -> FileClassIo {
        FileClassIo {
            class,
            reads_per_s: self.per_s(|one| one.reads),
            read_bytes_per_s: self.per_s(|one| one.read_bytes),
            read_ms: self.mean_ms(|one| one.read_ns, |one| one.reads),
            writes_per_s: self.per_s(|one| one.writes),
            write_bytes_per_s: self.per_s(|one| one.written_bytes),
            write_ms: self.mean_ms(|one| one.write_ns, |one| one.writes),
            syncs_per_s: self.per_s(|one| one.syncs),
            sync_ms: self.mean_ms(|one| one.sync_ns, |one| one.syncs),
        }
    }
}

#[cfg(test)]
mod tests {
    use iostrata_run::FileIoSource;

    use super::*;

    fn told(at_s: f64, source: FileIoSource, counts: FileCounts) -> ToldFiles {
        let mut table = FileTable::new(source);
        *table.entry(FileClass::Redo) = counts;
        ToldFiles { at_s, table }
    }

    const BEFORE: FileCounts = FileCounts {
        reads: Some(5),
        read_bytes: None,
        read_ns: Some(0),
        writes: Some(10),
        written_bytes: Some(1_000),
        write_ns: Some(4_000_000),
        syncs: Some(9),
        sync_ns: None,
    };

    #[test]
    fn rates_and_means_worked_out_by_hand() {
        let source = FileIoSource::PerformanceSchema;
        let after = FileCounts {
            writes: Some(14),
            written_bytes: Some(9_000),
            write_ns: Some(12_000_000),
            syncs: Some(8),
            ..BEFORE
        };
        let before = told(1.0, source, BEFORE);
        let io = told(3.0, source, after).since(&before).unwrap();
        let redo = io.class(FileClass::Redo).unwrap();
        assert_eq!((redo.writes_per_s, redo.write_bytes_per_s), (Some(2.0), Some(4_000.0)));
        assert_eq!(redo.write_ms, Some(2.0));
        assert_eq!((redo.reads_per_s, redo.read_ms), (Some(0.0), None), "no read has no time");
        assert_eq!(redo.read_bytes_per_s, None, "what is not told is not 0");
        assert_eq!((redo.syncs_per_s, redo.sync_ms), (None, None), "a count that went back");
        assert_eq!(io.class(FileClass::Data), None);
    }

    #[test]
    fn counts_of_others_and_of_the_same_moment_are_not_compared() {
        let before = told(1.0, FileIoSource::InnodbStatus, BEFORE);
        assert_eq!(told(2.0, FileIoSource::PerformanceSchema, BEFORE).since(&before), None);
        assert_eq!(told(1.0, FileIoSource::InnodbStatus, BEFORE).since(&before), None);
    }
}
