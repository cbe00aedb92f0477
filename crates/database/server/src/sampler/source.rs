//! Where each field of a sample comes from, on every flavour and version.
//!
//! Invariant: one row per field, and exactly what the rows name is queried. Status comes first,
//! then metrics, then the monitor's text; of each the first that a server reports. What is computed
//! of several has a row for what is queried, and no field.

use iostrata_database::target::TargetSample;

use super::monitor_text::MonitorText;
use super::status_reply::{COMMITS, HISTORY, KEPT_COMMITS, SYNC_BATCHES, StatusReply};

type SetField = fn(&mut TargetSample) -> &mut Option<u64>;

/// Where a field comes from.
#[derive(Clone, Copy)]
pub(crate) struct FieldSource {
    field: Option<SetField>,
    /// By the names of versions.
    pub(crate) status: &'static [&'static str],
    /// The same; one that is off is not reported.
    pub(crate) metrics: &'static [&'static str],
    text: Option<fn(&MonitorText) -> Option<u64>>,
    /// The figure that is missing without it; empty where that is none.
    pub(crate) figure: &'static str,
}

impl FieldSource {
    const NONE: Self = Self { field: None, status: &[], metrics: &[], text: None, figure: "" };

    const fn status(field: SetField, status: &'static [&'static str]) -> Self {
        Self { field: Some(field), status, ..Self::NONE }
    }

    const fn metric(
        field: SetField,
        metrics: &'static [&'static str],
        figure: &'static str,
    ) -> Self {
        Self { field: Some(field), metrics, figure, ..Self::NONE }
    }

    const fn or_metric(self, metrics: &'static [&'static str], figure: &'static str) -> Self {
        Self { metrics, figure, ..self }
    }

    const fn or_text(self, text: fn(&MonitorText) -> Option<u64>) -> Self {
        Self { text: Some(text), ..self }
    }

    /// What is queried and is no field by itself.
    const fn computed(
        status: &'static [&'static str],
        metrics: &'static [&'static str],
        figure: &'static str,
    ) -> Self {
        Self { status, metrics, figure, ..Self::NONE }
    }

    /// Whether only a metric has it, given the status variables that this server has.
    pub(crate) fn is_only_metric(&self, is_shown: &impl Fn(&str) -> bool) -> bool {
        let is_asked_by_itself = self.field.is_some() || self.status.is_empty();
        let is_in_status = self.status.iter().any(|name| is_shown(name));
        !self.metrics.is_empty() && is_asked_by_itself && self.text.is_none() && !is_in_status
    }

    /// Whether status has it.
    pub(crate) fn is_in_status(&self, told: &StatusReply) -> bool {
        self.status.iter().any(|name| told.status.contains_key(*name))
    }

    /// Whether a metric that is on has it.
    pub(crate) fn is_in_metrics(&self, told: &StatusReply) -> bool {
        self.metrics.iter().any(|name| told.metrics.contains_key(*name))
    }

    /// Whether the monitor's text has it.
    pub(crate) fn is_in_text(&self, told: &StatusReply) -> bool {
        self.text.is_some_and(|text| text(&told.text).is_some())
    }

    /// Sets its field from a server's reply.
    pub(crate) fn set(&self, told: &StatusReply, sample: &mut TargetSample) {
        let Some(field) = self.field else { return };
        let in_status = || self.status.iter().find_map(|name| told.status(name));
        let in_metrics = || self.metrics.iter().find_map(|name| told.metric(name));
        let in_text = || self.text.and_then(|text| text(&told.text));
        *field(sample) = in_status().or_else(in_metrics).or_else(in_text);
    }
}

/// Every source.
pub(crate) const SOURCES: &[FieldSource] = &[
    FieldSource::computed(
        &["Innodb_checkpoint_age", "Innodb_redo_log_checkpoint_lsn"],
        &["log_lsn_checkpoint_age"],
        "checkpoint_age_bytes",
    )
    .or_text(MonitorText::age),
    FieldSource::status(
        |one| &mut one.redo_end_bytes,
        &["Innodb_lsn_current", "Innodb_redo_log_current_lsn"],
    )
    .or_metric(&["log_lsn_current"], "redo_bytes_per_s")
    .or_text(|text| text.lsn),
    FieldSource::status(
        |one| &mut one.redo_durable_bytes,
        &["Innodb_lsn_flushed", "Innodb_redo_log_flushed_to_disk_lsn"],
    )
    .or_metric(&["log_lsn_last_flush"], "durable redo")
    .or_text(|text| text.flushed_lsn),
    FieldSource::computed(
        &["Innodb_checkpoint_max_age"],
        &["log_max_modified_age_sync"],
        "checkpoint_age_limit_bytes",
    ),
    FieldSource::computed(&[], &["log_max_modified_age_async"], ""),
    FieldSource::status(|one| &mut one.history_list_length, &["Innodb_history_list_length"])
        .or_metric(&[HISTORY], "history_list_length")
        .or_text(|text| text.history),
    FieldSource::status(|one| &mut one.pages_flushed, &["Innodb_buffer_pool_pages_flushed"]),
    FieldSource::metric(
        |one| &mut one.pages_flushed_adaptive,
        &["buffer_flush_adaptive_total_pages"],
        "flush_adaptive_pages_per_s",
    ),
    // MariaDB writes it in small letters, Percona Server does not.
    FieldSource::status(
        |one| &mut one.pages_flushed_lru,
        &["Innodb_buffer_pool_pages_lru_flushed", "Innodb_buffer_pool_pages_LRU_flushed"],
    )
    .or_metric(
        &["buffer_LRU_batch_flush_total_pages", "buffer_LRU_batch_total_pages"],
        "flush_lru_pages_per_s",
    ),
    FieldSource::metric(
        |one| &mut one.pages_flushed_background,
        &["buffer_flush_background_total_pages"],
        "flush_background_pages_per_s",
    ),
    FieldSource::metric(
        |one| &mut one.pages_flushed_for_redo,
        &["buffer_flush_sync_total_pages"],
        "flush_sync_pages_per_s",
    ),
    FieldSource::computed(&[], &[SYNC_BATCHES], "furious_flushes"),
    FieldSource::computed(&[], &[KEPT_COMMITS], "purge_per_s"),
    FieldSource::computed(&[], &[COMMITS[0]], ""),
    FieldSource::computed(&[], &[COMMITS[1]], ""),
    FieldSource::computed(&[], &[COMMITS[2]], ""),
    FieldSource::metric(|one| &mut one.redo_waits, &["log_on_file_space_waits"], ""),
    FieldSource::status(|one| &mut one.log_buffer_waits, &["Innodb_log_waits"]),
    FieldSource::status(|one| &mut one.free_page_waits, &["Innodb_buffer_pool_wait_free"]),
    FieldSource::status(|one| &mut one.dirty_pages, &["Innodb_buffer_pool_pages_dirty"]),
    FieldSource::status(|one| &mut one.pool_pages, &["Innodb_buffer_pool_pages_total"]),
    FieldSource::status(|one| &mut one.pending_reads, &["Innodb_data_pending_reads"]),
    FieldSource::status(|one| &mut one.pending_writes, &["Innodb_data_pending_writes"]),
    // MySQL counts those of the redo here too, and once more by themselves.
    FieldSource::status(|one| &mut one.pending_syncs, &["Innodb_data_pending_fsyncs"]),
    FieldSource::status(|one| &mut one.connections, &["Threads_connected"]),
    FieldSource::status(|one| &mut one.connections_refused, &["Connection_errors_max_connections"]),
    FieldSource::status(|one| &mut one.flow_control_paused_ns, &["wsrep_flow_control_paused_ns"]),
    FieldSource::status(
        |one| &mut one.semi_sync_waiting,
        &["Rpl_semi_sync_source_wait_sessions", "Rpl_semi_sync_master_wait_sessions"],
    ),
    FieldSource::status(|one| &mut one.selects, &["Com_select"]),
    FieldSource::status(|one| &mut one.pool_requests, &["Innodb_buffer_pool_read_requests"]),
    FieldSource::status(|one| &mut one.pool_reads, &["Innodb_buffer_pool_reads"]),
    FieldSource::status(|one| &mut one.temporary_tables_on_disk, &["Created_tmp_disk_tables"]),
    // On by default where status does not have it.
    FieldSource::status(|one| &mut one.deadlocks, &["Innodb_deadlocks"])
        .or_metric(&["lock_deadlocks"], ""),
    FieldSource::status(|one| &mut one.binlog_commits, &["Binlog_commits"]),
    FieldSource::status(|one| &mut one.binlog_groups, &["Binlog_group_commits"]),
    FieldSource::status(|one| &mut one.row_locks_waiting, &["Innodb_row_lock_current_waits"]),
    FieldSource::computed(
        &[
            "Innodb_redo_log_capacity_resized",
            "Innodb_page_size",
            "Innodb_pages_read",
            "Innodb_pages_written",
            "Innodb_log_writes",
            "Innodb_os_log_written",
            "Innodb_os_log_fsyncs",
            "Innodb_dblwr_writes",
            "Innodb_dblwr_pages_written",
            "Com_commit",
            "Com_rollback",
            "Com_xa_commit",
            "Com_xa_rollback",
            "Com_insert",
            "Com_insert_select",
            "Com_update",
            "Com_update_multi",
            "Com_delete",
            "Com_delete_multi",
            "Com_replace",
            "Com_replace_select",
            "Com_load",
            "Handler_commit",
            "Handler_prepare",
            "Innodb_rows_updated",
            "Innodb_rows_deleted",
            "Innodb_max_trx_id",
            "Threads_running",
            "Uptime",
        ],
        &[],
        "",
    ),
];

/// The status variables that are queried; each flavour returns what it has.
pub(crate) fn status_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().flat_map(|source| source.status).copied()
}

/// The sources that have metrics.
pub(crate) fn with_metrics() -> impl Iterator<Item = &'static FieldSource> {
    SOURCES.iter().filter(|source| !source.metrics.is_empty())
}
