//! Speaks to a disk that is served: what arrived, and what shall go wrong.
//!
//! Invariant: it only opens the files `stats` and `control` of the directory; a dead server is an
//! error, not a wait.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::emudisk::error::ClientError;
use crate::emudisk::fault::Fault;
use crate::emudisk::files::{CONTROL, STATS};
use crate::emudisk::stats::DiskStats;

/// A disk that is served at a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    at: PathBuf,
}

impl Client {
    /// Of the disk that is served at this directory.
    pub fn at(at: &Path) -> Self {
        Self { at: at.to_owned() }
    }

    /// What arrived so far.
    ///
    /// # Errors
    /// Nothing is served there, or by another version.
    pub fn stats(&self) -> Result<DiskStats, ClientError> {
        let text = fs::read_to_string(self.at.join(STATS))
            .map_err(|source| ClientError::NotServed { at: self.at.clone(), source })?;
        serde_json::from_str(&text).map_err(|error| ClientError::Statistics {
            at: self.at.clone(),
            found: error.to_string(),
        })
    }

    /// Lets something go wrong. Returns when it is so: after a power cut, when everything that was
    /// in flight has failed.
    ///
    /// # Errors
    /// Nothing is served there, or the server refuses.
    pub fn control(&self, fault: &Fault) -> Result<(), ClientError> {
        let opened = fs::File::options().write(true).open(self.at.join(CONTROL));
        let mut file =
            opened.map_err(|source| ClientError::NotServed { at: self.at.clone(), source })?;
        let command = fault.to_string();
        match file.write(command.as_bytes()) {
            Ok(bytes) if bytes == command.len() => Ok(()),
            Ok(_) => {
                let source = io::Error::from(io::ErrorKind::WriteZero);
                Err(ClientError::Refused { at: self.at.clone(), command, source })
            }
            Err(source) => Err(ClientError::Refused { at: self.at.clone(), command, source }),
        }
    }
}
