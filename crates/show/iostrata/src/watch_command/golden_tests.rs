//! What a fixed sequence of samples looks like in every view: lines, JSON, metrics, report.
//!
//! `UPDATE_TEXTS=1` rewrites the expected texts.

use std::fs;
use std::path::Path;

use iostrata_database::target::{
    FileCounts, FileTable, OldestTransaction, TargetError, TargetSample, Trouble,
};
use iostrata_database::watch::{OnHost, TimedSample, Watch, WatchRecord, WatchStep};
use iostrata_run::host::{
    CgroupVersion, DeviceCounters, DeviceDelta, DeviceNumber, HeldBackShares, IoLimit, LimitScope,
    LimitedRate, PressureShare, PressureShares, ThrottleEvidence,
};
use iostrata_run::{FileClass, FileIoSource, Manifest, RunKind, RunResult, WatchTarget};
use iostrata_show::metrics::Board;
use iostrata_show::report::{RunView, html, markdown};

use super::lines::LineLayout;
use super::stream::TargetUpdate;

const BEGAN_S: u64 = 1_700_000_000;

/// A server at one second of its load. Every count is a multiple of `work`.
fn told(work: u64, waits: u64) -> TargetSample {
    TargetSample {
        started_s: Some(BEGAN_S),
        checkpoint_age_bytes: Some(48_000_000 + work * 100_000),
        checkpoint_age_limit_bytes: Some(80_000_000),
        checkpoint_age_async_bytes: Some(70_000_000),
        checkpoint_age_sync_bytes: Some(75_000_000),
        redo_capacity_bytes: Some(100_000_000),
        redo_end_bytes: Some(900_000_000 + work * 2_000_000),
        redo_durable_bytes: Some(900_000_000 + work * 2_000_000),
        redo_waits: Some(waits),
        log_buffer_waits: Some(0),
        free_page_waits: Some(0),
        dirty_pages: Some(2_000 + work),
        pages_flushed: Some(5_000 + work * 512),
        pages_flushed_adaptive: Some(3_000 + work * 256),
        pages_flushed_lru: Some(700 + work * 128),
        pages_flushed_background: Some(300 + work * 64),
        pages_flushed_for_redo: Some(900 + work * 32),
        furious_flushes: Some(40 + waits / 8),
        pool_pages: Some(16_000),
        history_list_length: Some(1_000 + work),
        purged: Some(4_000 + work * 96),
        pending_reads: Some(1),
        pending_writes: Some(2),
        pending_syncs: Some(3),
        transactions: Some(10_000 + work * 400),
        row_locks_waiting: Some(4),
        sessions_running: Some(12),
        oldest_transaction: Some(OldestTransaction { age_s: 5 + work, id: Some(77) }),
        files: Some(files(work)),
        ..TargetSample::default()
    }
}

fn files(work: u64) -> FileTable {
    let counts = |scale: u64| FileCounts {
        reads: Some(scale * work),
        read_bytes: Some(scale * work * 16_384),
        read_ns: Some(scale * work * 500_000),
        writes: Some(2 * scale * work),
        written_bytes: Some(2 * scale * work * 65_536),
        write_ns: Some(scale * work * 250_000),
        syncs: Some(scale * work),
        sync_ns: Some(scale * work * 4_000_000),
    };
    let mut table = FileTable::new(FileIoSource::PerformanceSchema);
    for (class, scale) in FileClass::ALL.into_iter().zip([64, 32, 16, 8, 4, 2, 1]) {
        *table.entry(class) = counts(scale);
    }
    table
}

/// What its host did meanwhile.
fn on_host(seconds: u64) -> OnHost {
    let share = |some_us: u64| PressureShare {
        some_pct: some_us as f64 / 1e4,
        full_pct: Some(some_us as f64 / 2e4),
        some_us,
        full_us: Some(some_us / 2),
        ..PressureShare::default()
    };
    let limit = IoLimit {
        cgroup: "/db".to_owned(),
        version: CgroupVersion::V2,
        scope: LimitScope::Process,
        device: "vda".to_owned(),
        device_number: DeviceNumber { major: 254, minor: 0 },
        read_bytes_per_s: None,
        write_bytes_per_s: None,
        read_iops: None,
        write_iops: Some(1_500),
    };
    let held = HeldBackShares {
        pressure: Some(PressureShares {
            io: Some(share(250_000)),
            cpu: Some(share(125_000)),
            memory: Some(share(0)),
        }),
        pressure_group: Some("/db".to_owned()),
        throttle: Some(ThrottleEvidence {
            cpu_periods: Some(10),
            cpu_periods_throttled: Some(4),
            cpu_throttled_us: Some(62_500),
            io_limit_used_pct: Some(93.75),
            io_limit: Some(limit),
            io_limit_rate: Some(LimitedRate::Writes),
        }),
        cpu_stolen_pct: Some(6.25),
    };
    let counters = DeviceCounters {
        reads: 128 * seconds,
        writes: 512 * seconds,
        flushes: Some(64 * seconds),
        read_ms: 64 * seconds,
        write_ms: 1_024 * seconds,
        queue_ms: 1_250 * seconds,
        ..DeviceCounters::default()
    };
    let delta = DeviceDelta { seconds: seconds as f64, counters };
    OnHost { device: Some(("vda".to_owned(), delta)), held, ..OnHost::default() }
}

fn target() -> WatchTarget {
    WatchTarget {
        name: "mysql://m@db:3306".to_owned(),
        flavour: "mariadb".to_owned(),
        version: "11.8.9-MariaDB".to_owned(),
        ..WatchTarget::default()
    }
}

/// Steady work, a stall, an answer that fails, counters that are switched off and go back, files
/// that are not queried, a restart.
fn sequence() -> Vec<TimedSample> {
    let one = |at_s: u32, sample| TimedSample {
        at_s: f64::from(at_s),
        sample,
        sample_us: 500.0 + f64::from(at_s),
        on_host: match at_s {
            0 => OnHost::default(),
            14 => on_host(2),
            _ => on_host(1),
        },
    };
    let mut all: Vec<TimedSample> = (0..8).map(|at| one(at, Ok(told(u64::from(at), 0)))).collect();
    all.push(one(8, Ok(told(7, 16))));
    all.push(one(9, Ok(told(7, 32))));
    all.push(one(10, Ok(TargetSample { files: None, ..told(8, 32) })));
    let gone = TargetError {
        trouble: Trouble::Gone,
        code: "2013".to_owned(),
        target: "mysql://m@db:3306".to_owned(),
        text: "the connection was lost".to_owned(),
        fix: None,
    };
    all.push(one(11, Err(gone)));
    all.push(one(12, Ok(told(10, 32))));
    let off = TargetSample { pages_flushed_adaptive: None, purged: Some(4), ..told(12, 32) };
    all.push(one(14, Ok(off)));
    all.push(one(15, Ok(told(13, 32))));
    let anew = |work| TargetSample { started_s: Some(BEGAN_S + 900), ..told(work, 0) };
    all.push(one(16, Ok(anew(0))));
    all.push(one(17, Ok(anew(1))));
    all
}

fn taken() -> Vec<WatchStep> {
    let mut watch = Watch::default();
    sequence().into_iter().map(|one| watch.take(one)).collect()
}

/// Compares with the kept text, or writes it.
fn check(name: &str, found: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/show/iostrata/tests/golden").join(name);
    if std::env::var_os("UPDATE_TEXTS").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    for (at, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {}", at + 1, path.display());
    }
    assert_eq!(found.len(), expected.len(), "{}", path.display());
}

#[test]
fn lines_are_as_they_were() {
    let layout = LineLayout::of(&[target()]);
    let mut text = layout.header();
    for (at, watched) in taken().into_iter().enumerate() {
        text += &layout.line(&TargetUpdate { target: 0, watched, is_first: at == 0 });
    }
    check("watch-lines.txt", &text);
}

#[test]
fn documents_are_as_they_were() {
    let line = |watched: &WatchStep| {
        // By name: the order of keys is nothing that a reader goes by.
        serde_json::to_value(&watched.sample).unwrap().to_string() + "\n"
    };
    check("watch-samples.jsonl", &taken().iter().map(line).collect::<String>());
}

#[test]
fn metrics_are_as_they_were() {
    let mut board = Board::new(&[target()]);
    let mut text = String::new();
    for (at, watched) in taken().iter().enumerate() {
        board.take(0, watched);
        if [1, 9, 11, 16].contains(&at) {
            let all = board.text();
            // The order of series is nothing that Prometheus goes by.
            let mut lines: Vec<&str> = all.lines().collect();
            lines.sort_unstable();
            text += &format!("after {} samples:\n{}\n", at + 1, lines.join("\n"));
        }
    }
    check("watch-metrics.txt", &text);
}

#[test]
fn the_report_is_as_it_was() {
    let mut record = WatchRecord::default();
    taken().iter().for_each(|one| {
        record.add(one);
    });
    let document = super::concluded(record.document(target()));
    let began = "2026-01-02T03:04:05Z".parse().unwrap();
    let arguments = ["watch".to_owned(), target().name];
    let manifest = Manifest::new(RunKind::Watch, "0.1.0", &arguments, began);
    let result = RunResult::Watch(Box::new(document));
    let view = RunView { manifest: &manifest, result: Some(&result), events: &[], notes: &[] };
    let page = html(&view);
    let from = page.find("id=\"course\"").unwrap();
    let length = page[from..].find("</section>").unwrap();
    let charts = page[from..from + length].replace("><", ">\n<");
    check("watch-report.txt", &format!("{}\n{charts}\n", markdown(&view)));
}
