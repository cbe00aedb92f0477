//! What of a sample rests on the samples before it: counts that a server tells in parts or in other
//! units, and its start.
//!
//! Invariant: pure; no count goes back.

use iostrata_database::target::TargetSample;

use super::furious_count::FuriousCount;
use super::purge_count::PurgeCount;
use super::start_time::StartTime;
use super::told::Told;
use super::transaction_count::{TransactionCount, TransactionCounters};
use crate::flavour::ServerVersion;

/// Counts from one sample to the next.
#[derive(Debug, Default)]
pub(crate) struct SampleCounts {
    start: StartTime,
    transactions: TransactionCount,
    purge: PurgeCount,
    furious: FuriousCount,
}

impl SampleCounts {
    /// What a server said, as a sample. `own` is what asking added to `Handler_commit`.
    pub(crate) fn sample(
        &mut self,
        told: &Told,
        version: &ServerVersion,
        own: u64,
    ) -> TargetSample {
        let sample = told.sample(version);
        let clock = told.now_s.zip(told.status("Uptime"));
        let age = sample.checkpoint_age_bytes.zip(sample.checkpoint_age_async_bytes);
        TargetSample {
            started_s: clock.map(|(now_s, up_s)| self.start.of(now_s, up_s, told.took_s)),
            transactions: self.transactions.count(TransactionCounters::of(told), own),
            purged: self.purge.count(told.kept_commits(), told.history_beside_metrics()),
            furious_flushes: self
                .furious
                .count(told.furious_batches(), age.is_some_and(|(age, from)| age >= from)),
            ..sample
        }
    }
}
