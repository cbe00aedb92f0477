//! What queries a target's activity.

use iostrata_run::{SessionWaits, StallSnapshot, StatementDigest, TargetSample};

use crate::target::error::TargetError;

/// Queries a target's activity, on a connection apart from the sessions.
pub trait Sampler: Send {
    /// How it is now.
    ///
    /// # Errors
    /// When the target does not answer. The next call tries again.
    fn sample(&mut self) -> Result<TargetSample, TargetError>;

    /// What sessions wait for at this moment, queried when the target stalls; nothing where it does
    /// not report it.
    fn session_waits(&mut self) -> Option<SessionWaits> {
        None
    }

    /// Its activity at this moment, queried once when it begins to stall; nothing where it does not
    /// report it. The caller adds the time and the stall.
    fn stall_snapshot(&mut self) -> Option<StallSnapshot> {
        None
    }

    /// The statements of the last snapshot with what ended since, and for how many seconds that is.
    fn statements_since(&mut self) -> Option<(Vec<StatementDigest>, f64)> {
        None
    }

    /// What the target does not report and why, in sentences that name the fix; as far as the
    /// samples so far have shown it.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}
