//! Recordings that are made for tests: settings of a real server, and a course.

use iostrata_run::{
    StallCause, TransactionStall, WatchDevice, WatchDocument, WatchSample, WatchTarget,
};

/// Samples, one a second.
const SECONDS: u32 = 240;
const PAGES: u64 = 32_768;
const LIMIT: u64 = 84_216_915;

/// Settings without a finding: those of a sound MariaDB 11.8.
const MARIADB: [(&str, &str); 17] = [
    ("innodb_adaptive_flushing", "ON"),
    ("innodb_buffer_pool_size", "536870912"),
    ("innodb_data_file_buffering", "OFF"),
    ("innodb_data_file_write_through", "OFF"),
    ("innodb_doublewrite", "ON"),
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_flush_method", "O_DIRECT"),
    ("innodb_flush_neighbors", "0"),
    ("innodb_io_capacity", "1000"),
    ("innodb_io_capacity_max", "2000"),
    ("innodb_log_buffer_size", "16777216"),
    ("innodb_log_file_size", "104857600"),
    ("innodb_max_dirty_pages_pct", "90.000000"),
    ("innodb_max_dirty_pages_pct_lwm", "0.001000"),
    ("innodb_purge_threads", "4"),
    ("log_bin", "OFF"),
    ("sync_binlog", "0"),
];

/// A calm server on a good device: redo and pages flow, nothing waits.
pub(super) fn calm() -> WatchDocument {
    let settings = MARIADB.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let target = WatchTarget {
        name: "mysql://b@127.0.0.1:3395/tpcc".to_owned(),
        flavour: "mariadb".to_owned(),
        version: "11.8.9-MariaDB-4 from Debian".to_owned(),
        settings: settings.into(),
        ..WatchTarget::default()
    };
    let samples = (0..SECONDS).map(sample).collect();
    let duration_s = f64::from(SECONDS);
    WatchDocument { target, samples, duration_s, tps: Some(800.0), ..WatchDocument::default() }
}

/// The same on another server, with what its settings are there.
pub(super) fn on(flavour: &str, version: &str, settings: &[(&str, &str)]) -> WatchDocument {
    let mut document = calm();
    document.target.flavour = flavour.to_owned();
    document.target.version = version.to_owned();
    set(&mut document, settings);
    document
}

/// Other settings; an empty value takes one away.
pub(super) fn set(document: &mut WatchDocument, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        document.target.settings.remove(*name);
        if !value.is_empty() {
            document.target.settings.insert((*name).to_owned(), (*value).to_owned());
        }
    }
}

/// Another course.
pub(super) fn with(
    mut document: WatchDocument,
    change: impl Fn(usize, &mut WatchSample),
) -> WatchDocument {
    document.samples.iter_mut().enumerate().for_each(|(at, sample)| change(at, sample));
    document
}

/// A stall of this cause.
pub(super) fn stalled(mut document: WatchDocument, cause: StallCause) -> WatchDocument {
    let evidence = "made for a test".to_owned();
    document.stalls.push(TransactionStall {
        t_s: 60.0,
        length_s: 4.0,
        min_tps: 9.0,
        cause,
        evidence,
    });
    document
}

/// Redo that runs out: the age at its limit, and furious flushes.
pub(super) fn pressed(document: WatchDocument) -> WatchDocument {
    let pressed = with(document, |at, sample| {
        sample.checkpoint_age_pct = Some(if at % 20 < 4 { 99.0 } else { 80.0 });
        sample.furious_flushes = Some(at as u64 / 20);
    });
    stalled(pressed, StallCause::RedoFull)
}

/// A swing that is the same in every run, within 10 %.
fn swing(at: u32) -> f64 {
    let noise = (at.wrapping_mul(2_654_435_761) >> 16) & 0xff;
    0.9 + 0.2 * f64::from(noise) / 255.0
}

fn sample(at: u32) -> WatchSample {
    let is_first = at == 0;
    let rate = |value: f64| (!is_first).then_some(value);
    let age = 0.35 * LIMIT as f64 * swing(at + 7);
    let device = WatchDevice {
        name: "vda".to_owned(),
        reads_per_s: 300.0 * swing(at + 1),
        writes_per_s: 900.0 * swing(at + 2),
        flushes_per_s: Some(400.0),
        read_ms: Some(0.2 * swing(at + 3)),
        write_ms: Some(0.3),
        in_flight: 0.8,
    };
    WatchSample {
        t_s: f64::from(at),
        tps: rate(800.0 * swing(at)),
        checkpoint_age_bytes: Some(age as u64),
        checkpoint_age_limit_bytes: Some(LIMIT),
        checkpoint_age_pct: Some(100.0 * age / LIMIT as f64),
        redo_bytes_per_s: rate(4e6 * swing(at + 4)),
        redo_seconds_left: rate(14.0),
        dirty_pages: Some(6_000),
        dirty_pct: Some(100.0 * 6_000.0 / PAGES as f64),
        flushed_pages_per_s: rate(500.0 * swing(at + 5)),
        flush_adaptive_pages_per_s: rate(500.0 * swing(at + 5)),
        flush_lru_pages_per_s: rate(0.0),
        flush_sync_pages_per_s: rate(0.0),
        furious_flushes: Some(0),
        history_list_length: Some(1_000 + u64::from(at * 37 % 200)),
        purge_per_s: rate(800.0 * swing(at + 6)),
        pending_syncs: Some(u64::from(at.is_multiple_of(5))),
        device: (!is_first).then_some(device),
        ..WatchSample::default()
    }
}
