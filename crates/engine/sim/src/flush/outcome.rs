//! What came of a plan.

use iostrata_stats::LatencyHistogram;

/// What happened in one second of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlushSecond {
    /// Transactions that became durable.
    pub commits: f64,
    /// Pages written.
    pub flushed_pages: f64,
    /// Redo made.
    pub redo_bytes: f64,
    /// The greatest checkpoint age in it, in bytes.
    pub checkpoint_age: u64,
    /// Dirty pages at its end.
    pub dirty_pages: f64,
    /// Transactions that purge has before it, at its end.
    pub history: f64,
}

/// What came of a plan.
#[derive(Clone, Debug)]
pub struct FlushOutcome {
    /// Every second.
    pub seconds: Vec<FlushSecond>,
    /// From asking to write until the redo was durable.
    pub commit_waits: LatencyHistogram,
    /// Times that flushing became furious: a page cleaner went beyond its cap because redo ran
    /// out, or a user had to flush.
    pub furious_flushes: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Checkpoint age at which the engine stops everybody, and the one at which this policy does.
    pub max_age: u64,
    /// The policy's wall, in bytes of checkpoint age.
    pub wall_age: u64,
    /// Bytes of the redo that shares are taken of.
    pub capacity: u64,
    /// The greatest checkpoint age.
    pub age_max: u64,
    /// Time that users were slowed down by the policy's rule, and stopped, as shares of their time.
    pub delayed_share: f64,
    /// The same for stopped ones.
    pub stopped_share: f64,
    /// Pages that became dirty, were written, and are left.
    pub dirtied_pages: f64,
    /// Pages written.
    pub written_pages: f64,
    /// Pages dirty or being written at the end.
    pub left_pages: f64,
    /// Redo at the end, from 0.
    pub redo_bytes: f64,
    /// Write requests of the device: page writes, copies, redo, checkpoints.
    pub write_requests: f64,
    /// Read requests of the device.
    pub read_requests: f64,
}
