//! Who asks a target what goes on in it.

use iostrata_run::{SessionWaits, StallSnapshot, StatementDigest, TargetSample};

use crate::target::error::TargetError;

/// Asks a target what goes on in it, beside the sessions.
pub trait Sampler: Send {
    /// How it is now.
    ///
    /// # Errors
    /// When the target does not answer. The next call tries again.
    fn sample(&mut self) -> Result<TargetSample, TargetError>;

    /// What sessions wait for at this moment, asked when the target stalls; nothing where it does
    /// not tell.
    fn session_waits(&mut self) -> Option<SessionWaits> {
        None
    }

    /// What goes on in it at this moment, asked once when it begins to stall; nothing where it does
    /// not tell. When and of which stall it is, who asks says.
    fn stall_snapshot(&mut self) -> Option<StallSnapshot> {
        None
    }

    /// The statements of the last snapshot with what ended since, and for how many seconds that is.
    fn statements_since(&mut self) -> Option<(Vec<StatementDigest>, f64)> {
        None
    }

    /// What the target does not tell and why, in sentences that name the fix; as far as the samples
    /// so far have shown it.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}
