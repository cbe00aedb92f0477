//! A server's reply, as a sample of any target.
//!
//! Invariant: pure. What it did not report is absent.

use iostrata_database::target::TargetSample;

use super::limits::age_limits;
use super::source::SOURCES;
use super::status_reply::StatusReply;
use crate::flavour::ServerVersion;

impl StatusReply {
    /// The resulting sample, without what rests on earlier ones.
    pub(crate) fn sample(&self, version: &ServerVersion) -> TargetSample {
        let limits = age_limits(self, version);
        let mut sample = TargetSample {
            taken_us: self.taken_us,
            checkpoint_age_bytes: self.age().or_else(|| self.text.age()),
            checkpoint_age_limit_bytes: limits.limit,
            checkpoint_age_async_bytes: limits.flush_all,
            checkpoint_age_sync_bytes: limits.flush_first,
            redo_capacity_bytes: limits.capacity,
            history_list_limit: self.history_limit(),
            sessions_running: self.sessions_running(),
            oldest_transaction: self.oldest_transaction,
            connections_limit: self.variable("max_connections"),
            inserts: self.statements(&[
                "insert",
                "insert_select",
                "replace",
                "replace_select",
                "load",
            ]),
            updates: self.statements(&["update", "update_multi"]),
            deletes: self.statements(&["delete", "delete_multi"]),
            replica_lag_s: self.replication.lag_s,
            replica_transactions: self.replication.transactions,
            files: self.files(),
            ..TargetSample::default()
        };
        for source in SOURCES {
            source.set(self, &mut sample);
        }
        sample
    }
}

#[cfg(test)]
mod tests;
