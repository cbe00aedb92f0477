//! The master thread of InnoDB in MySQL 5.0 and 5.1, and Google's patch to it: nothing is flushed
//! for age. Users meet the limits of the redo with all that has gathered.

use super::strategy::{Proposal, Strategy, Tick};
use crate::flush::FlushSample;

/// Flushes for the share of dirty pages only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// Pages per second, where they are a constant; otherwise `io_capacity`.
    pub io: Option<u64>,
}

impl Strategy for Fixed {
    fn io(&self, now: &FlushSample<'_>) -> u64 {
        self.io.unwrap_or(u64::from(now.settings.io_capacity))
    }

    fn skips_sleep_when_dirty(&self) -> bool {
        true
    }

    fn flush(&mut self, _: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        None
    }
}
