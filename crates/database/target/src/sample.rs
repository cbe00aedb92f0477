//! Who asks a target what goes on in it.

use iostrata_run::{SessionWaits, TargetSample};

use crate::error::TargetError;

/// Asks a target what goes on in it, beside the sessions.
pub trait Sampler: Send {
    /// How it is now.
    ///
    /// # Errors
    /// When the target does not answer. The next call tries again.
    fn sample(&mut self) -> Result<TargetSample, TargetError>;

    /// What sessions wait for at this moment, asked when the target stalls; nothing where it does not
    /// tell.
    fn session_waits(&mut self) -> Option<SessionWaits> {
        None
    }

    /// What the target does not tell and why, in sentences that name the fix; as far as the samples
    /// so far have shown it.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}
