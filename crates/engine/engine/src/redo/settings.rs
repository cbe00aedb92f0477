//! What the log is told.
//!
//! It has no defaults: the engine's settings have them.

use iostrata_innodb::{Settings, SyncRule};

/// How written redo becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedoSync {
    /// fsync after each group of writes.
    Fsync,
    /// fdatasync after each group of writes.
    Fdatasync,
    /// Each write is durable when it returns; nothing is synced.
    WriteThrough,
    /// Nothing is durable. For tests, and for `flush_method` nosync.
    None,
}

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedoSettings {
    /// Bytes that the segment files take together, at least 65536.
    pub capacity_bytes: u64,
    /// Bytes of each of the two buffers; at least 65536 are taken.
    pub log_buffer_bytes: u64,
    /// Block of writes, in bytes: a power of two from 512 to 16384. Every write is whole blocks.
    pub write_ahead_bytes: u32,
    /// How written redo becomes durable.
    pub sync: RedoSync,
}

impl RedoSettings {
    /// What checked settings of an engine say of its log.
    pub fn of(settings: &Settings) -> Self {
        let plan = settings.flush_plan().redo;
        let sync = match (plan.write_through, plan.sync, settings.use_fdatasync) {
            (true, ..) => RedoSync::WriteThrough,
            (false, SyncRule::GrowthOnly, _) => RedoSync::None,
            (false, _, true) => RedoSync::Fdatasync,
            (false, _, false) => RedoSync::Fsync,
        };
        Self {
            capacity_bytes: settings.redo_log_capacity,
            log_buffer_bytes: settings.log_buffer_size,
            write_ahead_bytes: settings.log_write_ahead_size,
            sync,
        }
    }
}
