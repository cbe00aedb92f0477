//! Makes redo durable in time when commits do not ask for it.

use crate::Lsn;

use crate::flush::FlushSample;

/// Remembers an end of the redo and since when it is not durable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedoSync {
    mark: Lsn,
    since_us: u64,
}

impl RedoSync {
    /// Whether redo is older than `flush_log_at_timeout` and not durable. Says so once for each
    /// time-out, also when the sync does not help.
    pub fn is_due(&mut self, now: &FlushSample<'_>) -> bool {
        if now.durable >= self.mark {
            self.mark = now.lsn;
            self.since_us = now.now_us;
            return false;
        }
        let waited_us = now.now_us.saturating_sub(self.since_us);
        let is_due = waited_us >= now.settings.flush_log_at_timeout_us;
        if is_due {
            self.since_us = now.now_us;
        }
        is_due
    }
}
