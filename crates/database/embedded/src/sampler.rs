//! What goes on in the engine, from its counters.

use iostrata_engine::Engine;
use iostrata_settings::Counter;
use iostrata_target::{Sampler, TargetError, TargetSample};

/// Reads the counters of an engine.
pub(crate) struct CounterSampler {
    engine: Engine,
}

impl CounterSampler {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine }
    }
}

impl Sampler for CounterSampler {
    fn sample(&mut self) -> Result<TargetSample, TargetError> {
        let all = self.engine.counters();
        let settings = self.engine.settings();
        // A delay of 0 leaves the limit without effect.
        let holds_back = settings.max_purge_lag > 0 && settings.max_purge_lag_delay > 0;
        Ok(TargetSample {
            checkpoint_age_bytes: Some(all[Counter::CheckpointAge]),
            checkpoint_age_limit_bytes: Some(all[Counter::CheckpointMaxAge]),
            redo_capacity_bytes: Some(settings.redo_log_capacity),
            redo_end_bytes: Some(all[Counter::LsnCurrent]),
            redo_durable_bytes: Some(all[Counter::LsnFlushed]),
            redo_flushes: Some(all[Counter::LogFlushes]),
            redo_flush_us: Some(all[Counter::LogFlushTimeNs] / 1000),
            redo_waits: Some(all[Counter::AdmitWaits]),
            log_buffer_waits: Some(all[Counter::LogWaits]),
            free_page_waits: Some(all[Counter::BufferPoolWaitFree]),
            dirty_pages: Some(all[Counter::BufferPoolPagesDirty]),
            pages_flushed: Some(all[Counter::BufferPoolPagesFlushed]),
            pages_flushed_for_redo: Some(all[Counter::BufferFlushSyncTotalPages]),
            furious_flushes: Some(all[Counter::BufferFlushSync]),
            pool_pages: Some(all[Counter::BufferPoolPagesTotal]),
            history_list_length: Some(all[Counter::HistoryListLength]),
            history_list_limit: holds_back.then_some(settings.max_purge_lag.into()),
            pending_reads: Some(all[Counter::DataPendingReads]),
            pending_writes: Some(all[Counter::DataPendingWrites]),
            row_locks_waiting: Some(all[Counter::RowLockCurrentWaits]),
            ..TargetSample::default()
        })
    }
}
