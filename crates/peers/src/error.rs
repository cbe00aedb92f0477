//! What can go wrong, with the engine and what it was doing.

use std::path::PathBuf;

use thiserror::Error;

/// Why a measurement could not be made or must not be believed.
#[derive(Debug, Error)]
pub enum PeerError {
    /// An engine refused.
    #[error("{engine}: cannot {doing}: {source}")]
    Engine {
        /// Which engine.
        engine: &'static str,
        /// What it was asked for.
        doing: &'static str,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An engine lost or altered data.
    #[error("{engine}: wrong data: {found}")]
    WrongData {
        /// Which engine.
        engine: &'static str,
        /// What was found.
        found: String,
    },
    /// An engine that this build does not have.
    #[error("{engine} is not in this build; build with --features {engine}")]
    NotBuilt {
        /// Which engine.
        engine: &'static str,
    },
    /// The file system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Files {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An emulated disk could not be made or taken away.
    #[error("{0}")]
    Disk(String),
    /// A worker thread ended by a panic.
    #[error("a worker thread panicked")]
    Panicked,
    /// A signal asked to end.
    #[error("interrupted")]
    Interrupted,
}

impl PeerError {
    /// For `map_err`: an engine's own error with what it was doing.
    pub fn of<E>(engine: &'static str, doing: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Engine { engine, doing, source: source.into() }
    }

    /// For `map_err`: an error of the file system.
    pub fn files(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Files { doing, path: path.into(), source }
    }
}
