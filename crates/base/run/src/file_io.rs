//! What a server does with its files, by what they hold.

use serde::{Deserialize, Serialize};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileClass {
    /// Tables and indexes.
    Data,
    /// The redo log.
    Redo,
    /// Copies of pages that are written before the pages themselves.
    Doublewrite,
    /// Old row versions.
    Undo,
    /// What is gone with the statement or the session: sorts, joins, temporary tables.
    Temporary,
    /// The binary log and its index.
    Binlog,
    /// All others.
    Other,
}

impl FileClass {
    /// Every class.
    pub const ALL: [Self; 7] = [
        Self::Data,
        Self::Redo,
        Self::Doublewrite,
        Self::Undo,
        Self::Temporary,
        Self::Binlog,
        Self::Other,
    ];

    /// As documents spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Redo => "redo",
            Self::Doublewrite => "doublewrite",
            Self::Undo => "undo",
            Self::Temporary => "temporary",
            Self::Binlog => "binlog",
            Self::Other => "other",
        }
    }
}

/// Who counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileIoSource {
    /// The server's `performance_schema`: its calls on files.
    PerformanceSchema,
    /// InnoDB's status: pages of the pool, the redo log, the doublewrite.
    #[default]
    InnodbStatus,
}

/// What was done on the files of each class since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileIo {
    /// Who counted.
    pub source: FileIoSource,
    /// The classes that are reported, in the order of [`FileClass`].
    pub classes: Vec<FileClassIo>,
}

impl FileIo {
    /// A class, where it is reported.
    pub fn class(&self, class: FileClass) -> Option<&FileClassIo> {
        self.classes.iter().find(|one| one.class == class)
    }
}

/// What was done on the files of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileClassIo {
    /// Which.
    pub class: FileClass,
    /// Reads per second.
    pub reads_per_s: Option<f64>,
    /// Bytes read per second.
    pub read_bytes_per_s: Option<f64>,
    /// Mean time of a read, in milliseconds.
    pub read_ms: Option<f64>,
    /// Writes per second.
    pub writes_per_s: Option<f64>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<f64>,
    /// Mean time of a write, in milliseconds.
    pub write_ms: Option<f64>,
    /// Syncs per second; of `performance_schema` with opens, closes and the like.
    pub syncs_per_s: Option<f64>,
    /// Mean time of one, in milliseconds.
    pub sync_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_documents() {
        for class in FileClass::ALL {
            let text = serde_json::to_string(&class).unwrap();
            assert_eq!(text, format!("\"{}\"", class.word()));
        }
    }
}
