//! The engines that are compared, each behind [`Store`].

#[cfg(feature = "iostrata")]
pub(crate) mod crash;
mod fjall;
#[cfg(feature = "iostrata")]
pub(crate) mod iostrata;
mod redb;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocksdb;
pub(crate) mod sqlite;

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
    /// redb with this program's group commit lent to it.
    #[serde(rename = "redb+group")]
    RedbGroup,
    /// fjall: log-structured merge tree.
    Fjall,
    /// fjall with this program's group commit lent to it.
    #[serde(rename = "fjall+group")]
    FjallGroup,
    /// SQLite: B-tree with a write-ahead log.
    Sqlite,
    /// RocksDB: log-structured merge tree.
    Rocksdb,
}

impl Engine {
    /// All, ours first.
    pub const ALL: [Self; 7] = [
        Self::Iostrata,
        Self::Redb,
        Self::RedbGroup,
        Self::Fjall,
        Self::FjallGroup,
        Self::Sqlite,
        Self::Rocksdb,
    ];

    /// As it is written on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iostrata => "iostrata",
            Self::Redb => "redb",
            Self::RedbGroup => "redb+group",
            Self::Fjall => "fjall",
            Self::FjallGroup => "fjall+group",
            Self::Sqlite => "sqlite",
            Self::Rocksdb => "rocksdb",
        }
    }

    /// Whether this build has it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Iostrata => cfg!(feature = "iostrata"),
            Self::Rocksdb => cfg!(feature = "rocksdb"),
            _ => true,
        }
    }

    /// Whether it commits through this program's own grouping, which it does not have itself.
    pub fn is_lent_grouping(self) -> bool {
        self.as_it_comes() != self
    }

    /// The same engine without anything lent to it.
    pub fn as_it_comes(self) -> Self {
        match self {
            Self::RedbGroup => Self::Redb,
            Self::FjallGroup => Self::Fjall,
            other => other,
        }
    }

    /// The same engine with this program's grouping, where it can be lent to it.
    pub fn with_grouping(self) -> Self {
        match self {
            Self::Redb => Self::RedbGroup,
            Self::Fjall => Self::FjallGroup,
            other => other,
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
            Self::Redb | Self::RedbGroup => {
                Ok(Box::new(redb::Redb::open(dir, setup, self.is_lent_grouping())?))
            }
            Self::Fjall | Self::FjallGroup => {
                Ok(Box::new(fjall::Fjall::open(dir, setup, self.is_lent_grouping())?))
            }
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
        assert!("mysql".parse::<Engine>().unwrap_err().contains("redb+group, fjall"));
    }

    #[test]
    fn every_form_of_an_engine_leads_to_the_other() {
        let lent: Vec<Engine> =
            Engine::ALL.into_iter().filter(|engine| engine.is_lent_grouping()).collect();
        assert_eq!(lent, [Engine::RedbGroup, Engine::FjallGroup]);
        for engine in lent {
            assert!(!engine.as_it_comes().is_lent_grouping());
            assert_eq!(engine.as_it_comes().with_grouping(), engine);
            assert_eq!(engine.name(), format!("{}+group", engine.as_it_comes()));
        }
        assert_eq!(Engine::Sqlite.with_grouping(), Engine::Sqlite);
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(locked_version("redb").starts_with("4."));
        assert_eq!(locked_version("no-such-package"), "of unknown version");
    }
}
