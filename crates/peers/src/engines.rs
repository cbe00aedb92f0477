//! The engines that are compared, each behind [`Store`].

mod fjall;
#[cfg(feature = "iostrata")]
mod iostrata;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use crate::error::PeerError;
use crate::store::{Setup, Store};

/// One engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The engine of this repository.
    Iostrata,
    /// redb: copy-on-write B-tree.
    Redb,
    /// fjall: log-structured merge tree.
    Fjall,
    /// SQLite: B-tree with a write-ahead log.
    Sqlite,
    /// RocksDB: log-structured merge tree.
    Rocksdb,
}

impl Engine {
    /// All, ours first.
    pub const ALL: [Self; 5] =
        [Self::Iostrata, Self::Redb, Self::Fjall, Self::Sqlite, Self::Rocksdb];

    /// As it is written on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iostrata => "iostrata",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
            Self::Sqlite => "sqlite",
            Self::Rocksdb => "rocksdb",
        }
    }

    /// Whether this build has it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Iostrata => cfg!(feature = "iostrata"),
            Self::Rocksdb => cfg!(feature = "rocksdb"),
            Self::Redb | Self::Fjall | Self::Sqlite => true,
        }
    }

    /// Every engine that this build has.
    pub fn built() -> Vec<Self> {
        Self::ALL.into_iter().filter(|engine| engine.is_built()).collect()
    }

    /// Opens the store in this directory, making it when there is none.
    ///
    /// # Errors
    /// When the engine refuses or is not in this build.
    pub fn open(self, dir: &Path, setup: Setup) -> Result<Box<dyn Store>, PeerError> {
        match self {
            #[cfg(feature = "iostrata")]
            Self::Iostrata => Ok(Box::new(iostrata::Iostrata::open(dir, setup)?)),
            Self::Redb => Ok(Box::new(redb::Redb::open(dir, setup)?)),
            Self::Fjall => Ok(Box::new(fjall::Fjall::open(dir, setup)?)),
            Self::Sqlite => Ok(Box::new(sqlite::Sqlite::open(dir, setup)?)),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => Ok(Box::new(rocksdb::Rocksdb::open(dir, setup)?)),
            #[allow(
                unreachable_patterns,
                reason = "which engines are built is a matter of features"
            )]
            _ => Err(PeerError::NotBuilt { engine: self.name() }),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("no engine is named {name}; there are {}", names()))
    }
}

/// The version of a package that this program was built with, from its lock file.
fn locked_version(package: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let named = format!("name = \"{package}\"\nversion = \"");
    let rest = lock.split_once(&named).map(|(_, rest)| rest);
    let version = rest.and_then(|rest| rest.split_once('"')).map(|(version, _)| version);
    version.unwrap_or("of unknown version").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse(), Ok(engine));
        }
        assert!("mysql".parse::<Engine>().unwrap_err().contains("redb, fjall"));
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(locked_version("redb").starts_with("4."));
        assert_eq!(locked_version("no-such-package"), "of unknown version");
    }
}
