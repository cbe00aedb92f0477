//! A made-up course of targets, for tests and the example: MariaDB with 100 MB of redo on a volume
//! of 1,500 writes per second, which runs into its redo limit about every 48 seconds.
//!
//! Invariant: pure; the same at every call. The rates are those of a measured run, one each 4 s.

use iostrata_run::host::{
    CgroupVersion, DeviceNumber, IoLimit, LimitScope, LimitedRate, PressureShare, PressureShares,
    ThrottleEvidence,
};
use iostrata_run::{
    FileClass, FileClassIo, FileIo, FileIoSource, StallCause, WatchDevice, WatchSample, WatchTarget,
};

/// Transactions per second, each for 4 s.
const RATES: [f64; 12] =
    [638.0, 610.0, 620.0, 603.0, 558.0, 190.0, 3.0, 42.0, 287.0, 524.0, 666.0, 747.0];

const LIMIT: u64 = 84_216_915;
const PAGE: f64 = 16_384.0;

/// A server that stalls when its redo is full.
pub fn stalling() -> WatchTarget {
    WatchTarget {
        name: "mysql://b@127.0.0.1:3391/tpcc".to_owned(),
        flavour: "mariadb".to_owned(),
        version: "10.11.19-MariaDB".to_owned(),
        missing: vec!["pages flushed by sync flushing: MariaDB does not count them".to_owned()],
        ..WatchTarget::default()
    }
}

/// A server that runs evenly and reports little.
pub fn steady() -> WatchTarget {
    WatchTarget {
        name: "mysql://b@db2.example:3306/tpcc".to_owned(),
        flavour: "mysql".to_owned(),
        version: "5.6.24".to_owned(),
        missing: vec!["device: not on this host".to_owned()],
        ..WatchTarget::default()
    }
}

/// A target that goes away after a minute.
pub fn vanishing() -> WatchTarget {
    WatchTarget {
        name: "engine:/srv/iostrata/data".to_owned(),
        flavour: "engine".to_owned(),
        version: "0.1.0".to_owned(),
        ..WatchTarget::default()
    }
}

/// The sample of the stalling server after so many seconds.
pub fn stalling_at(second: u64) -> WatchSample {
    let place = second / 4 % RATES.len() as u64;
    let within = (second % 4) as f64 / 4.0;
    let (from, to) = (RATES[place as usize], RATES[(place as usize + 1) % RATES.len()]);
    // A little noise, so that it looks like a server.
    let noise = ((second * 7919 % 97) as f64 / 97.0 - 0.5) * 0.06;
    let tps = (from + (to - from) * within) * (1.0 + noise);
    let stalled = tps < 300.0;
    let phase = (second % 48) as f64 / 24.0;
    let pct =
        if phase < 1.0 { 45.0 + 54.7 * phase } else { (99.7 - 70.0 * (phase - 1.0)).max(45.0) };
    let pct = if stalled { 99.4 + noise * 10.0 } else { pct.min(99.0) };
    let age = (pct / 100.0 * LIMIT as f64) as u64;
    let redo = tps * 5_300.0;
    let sync = if stalled { 1_180.0 * (1.0 + noise) } else { 0.0 };
    let adaptive = if stalled { 140.0 } else { 60.0 + pct * 8.0 };
    let flushed = sync + adaptive + 45.0;
    let first = second == 0;
    let rate = |value: f64| (!first).then_some(value);
    WatchSample {
        t_s: second as f64,
        tps: rate(tps),
        checkpoint_age_bytes: Some(age),
        checkpoint_age_limit_bytes: Some(LIMIT),
        checkpoint_age_async_bytes: Some(73_695_607),
        checkpoint_age_sync_bytes: Some(78_959_579),
        checkpoint_age_pct: Some(pct),
        redo_bytes_per_s: rate(redo),
        redo_seconds_left: rate((LIMIT - age.min(LIMIT)) as f64 / redo),
        dirty_pages: Some((pct * 180.0) as u64),
        dirty_pct: Some(pct * 180.0 / 131_072.0 * 100.0),
        flushed_pages_per_s: rate(flushed),
        flush_adaptive_pages_per_s: rate(adaptive),
        flush_lru_pages_per_s: rate(45.0),
        flush_background_pages_per_s: rate(0.0),
        flush_sync_pages_per_s: rate(sync),
        furious_flushes: Some(second / 48 + u64::from(second % 48 >= 22)),
        pages_written_per_txn: rate(flushed / tps.max(1.0)),
        history_list_length: Some(1_200 + second % 48 * 90),
        purge_per_s: rate(tps * 0.9),
        pending_reads: Some(0),
        pending_writes: Some(if stalled { 64 } else { 2 }),
        pending_syncs: Some(1),
        row_locks_waiting: Some(if stalled { 3 } else { 0 }),
        sessions_running: Some(if stalled { 32 } else { 9 }),
        oldest_transaction_s: Some(second as f64),
        oldest_transaction_id: Some(41),
        device: Some(WatchDevice {
            name: "vda".to_owned(),
            reads_per_s: tps * 0.6,
            writes_per_s: (flushed + tps * 0.4).min(1_500.0),
            flushes_per_s: Some(tps * 0.5),
            read_ms: Some(if stalled { 9.2 } else { 0.61 }),
            write_ms: Some(if stalled { 42.3 } else { 0.84 }),
            in_flight: flushed * PAGE / 1e6,
        }),
        pressure: Some(pressure(stalled, noise)),
        cpu_stolen_pct: Some(2.0 * (1.0 + noise)),
        throttle: Some(throttle(flushed + tps * 0.4)),
        files: rate(0.0).map(|_| files(flushed, redo)),
        stalled,
        stall_cause: stalled.then_some(StallCause::RedoFull),
        stall_evidence: stalled
            .then(|| format!("checkpoint age at {pct:.1} % of its limit, {sync:.0} sync pages/s")),
        sample_us: 640.0,
        ..WatchSample::default()
    }
}

/// How long its tasks wait: for the volume, most of all while it stalls.
fn pressure(stalled: bool, noise: f64) -> PressureShares {
    let share = |pct: f64| {
        let us = pct * 10_000.0;
        let (some_us, full_us) = (us as u64, Some((us * 0.6) as u64));
        let full_pct = Some(pct * 0.6);
        Some(PressureShare { some_pct: pct, full_pct, some_us, full_us, ..Default::default() })
    };
    let io = share(if stalled { 92.0 } else { 31.0 } * (1.0 + noise));
    PressureShares { io, cpu: share(4.0 * (1.0 + noise)), memory: share(0.0) }
}

/// How near so many writes per second come to the limit of its control group.
fn throttle(writes_per_s: f64) -> ThrottleEvidence {
    ThrottleEvidence {
        io_limit_used_pct: Some((writes_per_s / 15.0).min(100.0)),
        io_limit: Some(limit()),
        io_limit_rate: Some(LimitedRate::Writes),
        ..ThrottleEvidence::default()
    }
}

fn limit() -> IoLimit {
    IoLimit {
        cgroup: "/db".to_owned(),
        version: CgroupVersion::V2,
        scope: LimitScope::Process,
        device: "vda".to_owned(),
        device_number: DeviceNumber { major: 254, minor: 0 },
        read_bytes_per_s: None,
        write_bytes_per_s: None,
        read_iops: Some(1_500),
        write_iops: Some(1_500),
    }
}

/// What it does with its files, as InnoDB's status reports it.
fn files(pages_per_s: f64, redo_bytes_per_s: f64) -> FileIo {
    let one = |class, writes_per_s, write_bytes_per_s| FileClassIo {
        class,
        reads_per_s: None,
        read_bytes_per_s: None,
        read_ms: None,
        writes_per_s: Some(writes_per_s),
        write_bytes_per_s: Some(write_bytes_per_s),
        write_ms: None,
        syncs_per_s: None,
        sync_ms: None,
    };
    let classes = vec![
        one(FileClass::Data, pages_per_s, pages_per_s * PAGE),
        one(FileClass::Redo, redo_bytes_per_s / 4_096.0, redo_bytes_per_s),
        one(FileClass::Doublewrite, pages_per_s / 64.0, pages_per_s * PAGE),
    ];
    FileIo { source: FileIoSource::InnodbStatus, classes }
}

/// The sample of the steady server after so many seconds.
pub fn steady_at(second: u64) -> WatchSample {
    let noise = (second * 6151 % 89) as f64 / 89.0 - 0.5;
    let rate = |value: f64| (second > 0).then_some(value);
    WatchSample {
        t_s: second as f64,
        tps: rate(412.0 * (1.0 + noise * 0.1)),
        checkpoint_age_bytes: Some(51_000_000),
        checkpoint_age_limit_bytes: Some(78_959_579),
        checkpoint_age_async_bytes: Some(73_695_607),
        checkpoint_age_pct: Some(64.6 + noise),
        redo_bytes_per_s: rate(2_200_000.0),
        redo_seconds_left: rate(12.7),
        dirty_pages: Some(9_100),
        dirty_pct: Some(27.8),
        flushed_pages_per_s: rate(610.0),
        history_list_length: Some(420),
        pending_reads: Some(0),
        pending_writes: Some(1),
        sample_us: 900.0,
        ..WatchSample::default()
    }
}

/// The sample of the target that goes away.
pub fn vanishing_at(second: u64) -> WatchSample {
    if second < 60 {
        return WatchSample { checkpoint_age_pct: Some(22.0), ..steady_at(second) };
    }
    WatchSample {
        t_s: second as f64,
        error: Some("no status page: no process holds the engine".to_owned()),
        ..WatchSample::default()
    }
}
