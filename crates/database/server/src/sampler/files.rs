//! What a server did with its files, by class: from performance_schema, else from status.
//!
//! Invariant: pure. InnoDB's status counts pages of the pool, whatever file they lie in, so that
//! undo and temporary tables are in the class of the data there. What performance_schema lacks is
//! taken from status: the redo of MariaDB, and a doublewrite within the system tablespace (MariaDB,
//! MySQL before 8.0.20), which is part of the data for performance_schema.

use iostrata_database::target::{FileCounts, FileTable};
use iostrata_run::{FileClass, FileIoSource};

use super::file_event::INSTRUMENTS;
use super::status_reply::StatusReply;

/// What the files of an instrument hold.
fn class_of(name: &str) -> FileClass {
    let name = name.strip_prefix(INSTRUMENTS).unwrap_or(name);
    match name {
        "innodb/innodb_data_file" => FileClass::Data,
        "innodb/innodb_log_file" => FileClass::Redo,
        "innodb/innodb_dblwr_file" => FileClass::Doublewrite,
        "innodb/innodb_temp_file" | "sql/io_cache" | "sql/hash_join" | "mysys/io_cache" => {
            FileClass::Temporary
        }
        other if other.starts_with("sql/binlog") => FileClass::Binlog,
        _ => FileClass::Other,
    }
}

impl StatusReply {
    /// What it did with its files; nothing where it was not queried this time.
    pub(crate) fn files(&self) -> Option<FileTable> {
        let is_asked = self.has_performance_schema() && !self.are_files_refused;
        let events = if is_asked { self.file_events.as_deref()? } else { &[] };
        // It may be on with all instruments of files off.
        let source = match events {
            [] => FileIoSource::InnodbStatus,
            _ => FileIoSource::PerformanceSchema,
        };
        let mut table = FileTable::new(source);
        for event in events {
            table.entry(class_of(&event.name)).add(&event.counts);
        }
        for (class, counts) in self.status_files() {
            if table.get(class).is_none() {
                *table.entry(class) = counts;
            }
        }
        (table != FileTable::new(source)).then_some(table)
    }

    /// Whether the server has it, and has it switched on.
    pub(crate) fn has_performance_schema(&self) -> bool {
        self.variable("performance_schema") == Some(1)
    }

    fn status_files(&self) -> impl Iterator<Item = (FileClass, FileCounts)> {
        let innodb = |name: &str| self.status(&format!("Innodb_{name}"));
        let bytes = |name: &str| Some(innodb(name)?.saturating_mul(innodb("page_size")?));
        let data = FileCounts {
            reads: innodb("pages_read"),
            read_bytes: bytes("pages_read"),
            writes: innodb("pages_written"),
            written_bytes: bytes("pages_written"),
            ..FileCounts::default()
        };
        let redo = FileCounts {
            writes: innodb("log_writes"),
            written_bytes: innodb("os_log_written"),
            syncs: innodb("os_log_fsyncs"),
            ..FileCounts::default()
        };
        let doublewrite = FileCounts {
            writes: innodb("dblwr_writes"),
            written_bytes: bytes("dblwr_pages_written"),
            ..FileCounts::default()
        };
        let all = [
            (FileClass::Data, data),
            (FileClass::Redo, redo),
            (FileClass::Doublewrite, doublewrite),
        ];
        all.into_iter().filter(|(_, counts)| *counts != FileCounts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::file_event::FileEvent;
    use super::*;

    fn event(name: &str, numbers: [u64; 8]) -> FileEvent {
        let numbers = numbers.map(Some);
        FileEvent::of(format!("{INSTRUMENTS}{name}"), !name.ends_with("index"), &numbers)
    }

    fn told(status: &[(&str, u64)], events: Option<Vec<FileEvent>>) -> StatusReply {
        let status = status.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        let variables = [("performance_schema".to_owned(), u64::from(events.is_some()))];
        StatusReply {
            status,
            variables: variables.into(),
            file_events: events,
            ..StatusReply::default()
        }
    }

    const STATUS: [(&str, u64); 7] = [
        ("Innodb_page_size", 16_384),
        ("Innodb_pages_read", 3),
        ("Innodb_pages_written", 4),
        ("Innodb_os_log_written", 5_000),
        ("Innodb_log_writes", 6),
        ("Innodb_dblwr_pages_written", 2),
        ("Innodb_dblwr_writes", 1),
    ];

    #[test]
    fn instruments_are_summed_up_by_class() {
        let events = vec![
            event("innodb/innodb_data_file", [1, 10, 1_000, 2, 20, 2_000, 3, 3_000]),
            event("sql/binlog", [0, 0, 0, 5, 50, 5_000, 1, 1_000]),
            event("sql/binlog_index", [0, 0, 0, 1, 10, 0, 1, 0]),
            event("sql/ERRMSG", [7, 70, 7_000, 0, 0, 0, 0, 0]),
        ];
        let table = told(&STATUS, Some(events)).files().unwrap();
        assert_eq!(table.source, FileIoSource::PerformanceSchema);
        let classes: Vec<FileClass> = table.iter().map(|(class, _)| class).collect();
        use FileClass::{Binlog, Data, Doublewrite, Other, Redo};
        assert_eq!(classes, [Data, Redo, Doublewrite, Binlog, Other], "nothing reports the others");
        let data = table.get(Data).unwrap();
        assert_eq!((data.reads, data.written_bytes, data.sync_ns), (Some(1), Some(20), Some(3)));
        let binlog = table.get(Binlog).unwrap();
        assert_eq!((binlog.writes, binlog.written_bytes), (Some(6), Some(60)));
        assert_eq!(binlog.write_ns, Some(5), "one that is not timed has no time");
        assert_eq!(table.get(Doublewrite).unwrap().written_bytes, Some(32_768), "from status");
    }

    #[test]
    fn without_performance_schema_status_tells_three_classes() {
        let table = told(&STATUS, None).files().unwrap();
        assert_eq!(told(&STATUS, Some(Vec::new())).files(), Some(table), "all instruments are off");
        assert_eq!(table.source, FileIoSource::InnodbStatus);
        let classes: Vec<FileClass> = table.iter().map(|(class, _)| class).collect();
        assert_eq!(classes, [FileClass::Data, FileClass::Redo, FileClass::Doublewrite]);
        let data = table.get(FileClass::Data).unwrap();
        assert_eq!((data.read_bytes, data.written_bytes), (Some(49_152), Some(65_536)));
        assert_eq!((data.syncs, data.write_ns), (None, None));
        let redo = table.get(FileClass::Redo).unwrap();
        assert_eq!((redo.writes, redo.syncs), (Some(6), None), "MariaDB counts no syncs of it");
        assert_eq!(told(&[], None).files(), None);
    }

    #[test]
    fn who_may_not_read_it_is_told_status_and_who_was_not_asked_nothing() {
        let mut told = told(&STATUS, Some(Vec::new()));
        told.file_events = None;
        assert_eq!(told.files(), None);
        told.are_files_refused = true;
        assert_eq!(told.files().unwrap().source, FileIoSource::InnodbStatus);
    }
}
