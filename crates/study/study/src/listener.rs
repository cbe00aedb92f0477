//! Who hears how a run goes, and where its events go.
//!
//! Invariant: an event is stored before whatever comes after it begins.

use iostrata_load::Histograms;
use iostrata_run::{Event, Replicate};

use crate::StudyError;

/// What a run tells while it goes, and where its events go.
pub trait Listener {
    /// How far it has come: a share from 0 to 1, and what is being done.
    fn progress(&mut self, share: f64, text: &str);
    /// Says something that a reader shall see whatever the display does.
    fn note(&mut self, _text: &str) {}
    /// Stores an event that is not a replicate.
    ///
    /// # Errors
    /// When the run directory cannot be written.
    fn store(&mut self, event: &Event) -> Result<(), StudyError>;
    /// Stores a replicate with its histograms.
    ///
    /// # Errors
    /// When the run directory cannot be written.
    fn store_replicate(
        &mut self,
        replicate: &Replicate,
        histograms: &[Histograms],
    ) -> Result<(), StudyError>;
}
