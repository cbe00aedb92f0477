//! The engines that take orders, each behind [`OrderStore`].

#[cfg(feature = "iostrata")]
mod iostrata;

use std::path::Path;

use crate::engines::Engine;
use crate::error::PeerError;
use crate::orders::store::OrderStore;
use crate::store::Setup;

/// Opens the store in this directory, making it when there is none.
///
/// # Errors
/// When the engine refuses or is not in this build.
pub fn open(engine: Engine, dir: &Path, setup: Setup) -> Result<Box<dyn OrderStore>, PeerError> {
    match engine {
        #[cfg(feature = "iostrata")]
        Engine::Iostrata => Ok(Box::new(iostrata::Iostrata::open(dir, setup)?)),
        _ => Err(PeerError::NotBuilt { engine: engine.name() }),
    }
}
