//! Parts of what servers reported under load, and their meaning.

use super::super::monitor_text::MonitorText;
use super::super::source::{status_names, with_metrics};
use super::super::status_reply::Numbers;
use super::*;

fn named(all: &[(&str, u64)]) -> Numbers {
    all.iter().map(|(name, number)| (name.to_string(), *number)).collect()
}

fn version(text: &str) -> ServerVersion {
    ServerVersion::recognise(text, "MySQL")
}

#[test]
fn mariadb_tells_age_and_limit_itself() {
    let status = named(&[
        ("Innodb_checkpoint_age", 21_939_692),
        ("Innodb_checkpoint_max_age", 84_216_915),
        ("Innodb_lsn_current", 50_438_218),
        ("Innodb_lsn_flushed", 50_435_847),
        ("Innodb_history_list_length", 1_622),
        ("Innodb_data_pending_reads", 0),
        ("Innodb_data_pending_writes", 2),
        ("Innodb_data_pending_fsyncs", 1),
        ("Threads_running", 9),
    ]);
    let variables = named(&[("innodb_log_file_size", 104_857_600)]);
    let told = StatusReply { status, variables, ..StatusReply::default() };
    assert!(!told.needs_text());
    let found = told.sample(&version("11.4.5-MariaDB"));
    assert_eq!(found.checkpoint_age_bytes, Some(21_939_692));
    assert_eq!(found.checkpoint_age_limit_bytes, Some(84_216_915));
    assert_eq!(found.checkpoint_age_async_bytes, Some(73_689_801));
    assert_eq!(found.redo_capacity_bytes, Some(104_857_600));
    assert_eq!(
        (found.redo_end_bytes, found.redo_durable_bytes),
        (Some(50_438_218), Some(50_435_847))
    );
    assert_eq!((found.history_list_length, found.pending_ios()), (Some(1_622), Some(3)));
    assert_eq!(found.sessions_running, Some(8), "the sampler runs too");
    let variables = named(&[("event_scheduler", 1)]);
    let scheduled = StatusReply { variables, ..told.clone() }.sample(&version("11.4.5-MariaDB"));
    assert_eq!(scheduled.sessions_running, Some(7), "and the event scheduler");
    assert_eq!(found.pages_flushed_for_redo, None, "a metric that is off is absent");
}

#[test]
fn mysql_9_7_tells_positions_and_capacity() {
    let status = named(&[
        ("Innodb_redo_log_current_lsn", 72_792_654),
        ("Innodb_redo_log_checkpoint_lsn", 54_242_766),
        ("Innodb_redo_log_flushed_to_disk_lsn", 72_789_657),
        ("Innodb_redo_log_capacity_resized", 104_857_600),
        // One sync, of the redo.
        ("Innodb_data_pending_fsyncs", 1),
        ("Innodb_os_log_pending_fsyncs", 1),
    ]);
    let metrics = named(&[("trx_rseg_history_len", 1_024)]);
    let told = StatusReply { status, metrics, ..StatusReply::default() };
    assert!(!told.needs_text());
    let found = told.sample(&version("9.7.4"));
    assert_eq!(found.checkpoint_age_bytes, Some(18_549_888));
    let limit = found.checkpoint_age_limit_bytes.unwrap();
    assert!(limit.abs_diff(87_086_592) < 10_000, "{limit}");
    assert_eq!(found.redo_durable_bytes, Some(72_789_657));
    assert_eq!(found.pending_syncs, Some(1), "not counted twice");
    assert_eq!(found.history_list_length, Some(1_024));
}

#[test]
fn mysql_5_6_tells_by_text_or_by_metrics() {
    let variables = named(&[
        ("innodb_log_file_size", 52_428_800),
        ("innodb_log_files_in_group", 2),
        ("innodb_thread_concurrency", 0),
    ]);
    let lsn = "Log sequence number 59013201\nLog flushed up to   59010603\n\
               Last checkpoint at  20035667\nHistory list length 3553\n";
    let mut told = StatusReply { variables, ..StatusReply::default() };
    assert!(told.needs_text());
    told.text = MonitorText::parse(lsn);
    let found = told.sample(&version("5.6.24"));
    assert_eq!(found.checkpoint_age_bytes, Some(38_977_534));
    assert_eq!(found.checkpoint_age_limit_bytes, Some(78_959_579));
    assert_eq!(found.history_list_length, Some(3_553));
    told.text = MonitorText::default();
    told.metrics =
        named(&[("log_lsn_checkpoint_age", 55_329_929), ("log_lsn_current", 75_365_596)]);
    assert!(!told.needs_text());
    let found = told.sample(&version("5.6.24"));
    assert_eq!(found.checkpoint_age_bytes, Some(55_329_929));
    assert_eq!(found.redo_end_bytes, Some(75_365_596));
}

#[test]
fn writers_are_held_back_only_with_a_delay() {
    let of = |lag, delay| {
        let variables =
            named(&[("innodb_max_purge_lag", lag), ("innodb_max_purge_lag_delay", delay)]);
        StatusReply { variables, ..StatusReply::default() }
            .sample(&version("9.7.4"))
            .history_list_limit
    };
    assert_eq!((of(1_000, 0), of(0, 500), of(1_000, 500)), (None, None, Some(1_000)));
}

#[test]
fn everything_that_is_read_is_asked_for() {
    let asked = status_names().map(|name| (name.to_owned(), 7)).collect();
    let metrics = with_metrics().flat_map(|one| one.metrics).map(|name| ((*name).to_owned(), 7));
    let told = StatusReply { status: asked, metrics: metrics.collect(), ..StatusReply::default() };
    let found = told.sample(&version("10.11.19-MariaDB"));
    for (field, what) in [
        (found.pages_flushed, "flushed"),
        (found.pages_flushed_adaptive, "adaptive"),
        (found.pages_flushed_lru, "lru"),
        (found.pages_flushed_background, "background"),
        (found.pages_flushed_for_redo, "sync"),
        (told.furious_batches(), "furious"),
        (told.kept_commits(), "purge"),
        (found.dirty_pages, "dirty"),
        (found.pool_pages, "pool"),
        (found.redo_end_bytes, "end"),
        (found.redo_waits, "redo waits"),
        (found.checkpoint_age_bytes, "age"),
        (found.log_buffer_waits, "log buffer"),
        (found.free_page_waits, "free pages"),
        (found.history_list_length, "history"),
        (found.row_locks_waiting, "locks"),
    ] {
        assert_eq!(field, Some(7), "{what}");
    }
    assert_eq!(told.ended(), Some(28));
}

#[test]
fn what_a_server_lacks_is_absent() {
    let told = StatusReply::default();
    assert_eq!(told.sample(&version("5.6.24")), TargetSample::default());
    assert_eq!(told.ended(), None);
    let status = named(&[("Innodb_log_waits", 3), ("Innodb_buffer_pool_wait_free", 0)]);
    let old = StatusReply { status, ..StatusReply::default() }.sample(&version("5.6.24"));
    assert_eq!((old.log_buffer_waits, old.free_page_waits), (Some(3), Some(0)));
    assert_eq!((old.checkpoint_age_bytes, old.pending_ios()), (None, None));
}
