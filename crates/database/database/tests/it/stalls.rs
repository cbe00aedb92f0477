//! Three ways to stall a real server, and the cause that is named while it stalls.
//!
//! Each runs some seconds of an even load first, so that something is usual.

use iostrata_database::watch::WatchStep;
use iostrata_plan::study::IoLimits;
use iostrata_run::{StallCause, TransactionStall, WatchSample};

use crate::stage::{Stage, Then, Worker, is_long_form};

pub const TABLE: &str =
    "CREATE TABLE t (id INT PRIMARY KEY, v INT, pad VARCHAR(255)) ENGINE=InnoDB";
const UPDATE: &str = "UPDATE t SET v = v + 1 WHERE id = ?";

/// Long forms run so many times as long.
fn times() -> u64 {
    if is_long_form() { 6 } else { 1 }
}

fn writes(per_s: u64) -> IoLimits {
    IoLimits { write_iops: Some(per_s), ..IoLimits::default() }
}

pub fn fill(rows: u64) -> String {
    format!("INSERT INTO t SELECT seq, 0, REPEAT('x', 200) FROM seq_1_to_{rows}")
}

/// The stalls that were seen while they lasted.
pub fn stalls(all: &[WatchStep]) -> Vec<&TransactionStall> {
    all.iter().filter(|one| one.sample.stalled).filter_map(|one| one.stall.as_ref()).collect()
}

/// Whether a stall is of a machine whose processors others take, as the kernel's pressure shows.
fn is_of_the_machine(step: &WatchStep) -> bool {
    let is_named = step.stall.as_ref().is_some_and(|one| one.cause == StallCause::Processors);
    let pressure = step.sample.pressure.and_then(|pressure| pressure.cpu);
    is_named && pressure.is_some_and(|cpu| cpu.some_pct >= 50.0)
}

/// The cause was named while the target stalled, and no other one.
pub fn assert_named(all: &[WatchStep], cause: StallCause) {
    let course: Vec<String> = all
        .iter()
        .map(|one| {
            let sample = &one.sample;
            format!(
                "{:.1} s: {:?} tps, age {:?} %, running {:?}, {:?} {:?}",
                sample.t_s,
                sample.tps.map(f64::round),
                sample.checkpoint_age_pct.map(f64::round),
                sample.sessions_running,
                sample.stall_cause,
                sample.stall_evidence,
            )
        })
        .collect();
    let found = stalls(all);
    let named = found.iter().filter(|stall| stall.cause == cause).count();
    let planted = all.iter().filter(|one| one.sample.stalled && !is_of_the_machine(one));
    let others: Vec<StallCause> =
        planted.filter_map(|one| Some(one.stall.as_ref()?.cause)).collect();
    let is_alone = others.iter().all(|one| [cause, StallCause::Unknown].contains(one));
    assert!(named > 0 && is_alone, "{others:?}\n{}", course.join("\n"));
    let stall = found.last().unwrap();
    eprintln!("{cause}: at {:.1} s for {:.1} s: {}", stall.t_s, stall.length_s, stall.evidence);
}

#[test]
fn redo_that_runs_full_is_named() {
    let options = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-buffer-pool-size=256M",
        "--innodb-log-file-size=24M",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let Some(stage) = Stage::begin("redo_that_runs_full_is_named", &options, writes(150)) else {
        return;
    };
    stage.order(&[TABLE, &fill(200_000)]);
    let mut stage = stage.limited();
    stage.load(4, UPDATE, 200_000);
    let all = stage.watch_for(Some(StallCause::RedoFull), 60.max(24 * times()), None);
    assert_named(&all, StallCause::RedoFull);
}

/// While an old view stands, MariaDB 10.11 and 11.8 delay no statement, however long the history
/// is; they do as soon as purge has work again.
#[test]
fn purge_behind_an_old_view_is_named() {
    // Purge makes redo as well, and on a fast machine as much as would fill a small one.
    let options = [
        "--innodb-buffer-pool-size=128M",
        "--innodb-log-file-size=1G",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let none = IoLimits::default();
    let Some(mut stage) = Stage::begin("purge_behind_an_old_view_is_named", &options, none) else {
        return;
    };
    stage.order(&[TABLE, &fill(10_000)]);
    let mut old = Worker::open(&stage.target(), &["SELECT COUNT(*) FROM t"], false);
    old.begin();
    old.run(0, &[]);
    stage.load(4, UPDATE, 10_000);
    let hold_back = |stage: &mut Stage| {
        stage.order(&[
            "SET GLOBAL innodb_max_purge_lag_delay = 2000000",
            "SET GLOBAL innodb_max_purge_lag = 200",
        ]);
        drop(old);
    };
    // Long enough a history for the bound that is set then.
    let is_ready = |sample: &WatchSample| sample.history_list_length.is_some_and(|n| n > 2_000);
    let seconds = if is_long_form() { 96 } else { 60 };
    let then = Then { is_ready, ..Then::after(8, hold_back) };
    let all = stage.watch_for(Some(StallCause::Purge), seconds, Some(then));
    stage.order(&["SET GLOBAL innodb_max_purge_lag = 0"]);
    assert_named(&all, StallCause::Purge);
}

/// Readers that find no free frame wait for those that writers made dirty.
#[test]
fn too_small_a_pool_is_named() {
    let options = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-buffer-pool-size=16M",
        "--innodb-log-file-size=1G",
        "--innodb-flush-log-at-trx-commit=0",
    ];
    let test = "too_small_a_pool_is_named";
    let Some(stage) = Stage::begin(test, &options, writes(80)) else { return };
    stage.order(&[TABLE, &fill(200_000)]);
    let mut stage = stage.limited();
    stage.load(4, "SELECT v FROM t WHERE id = ?", 200_000);
    let wide = |stage: &mut Stage| stage.load(6, UPDATE, 200_000);
    let then = Then::after(8, wide);
    let all = stage.watch_for(Some(StallCause::FreePages), 20 * times(), Some(then));
    assert_named(&all, StallCause::FreePages);
}

#[test]
fn a_device_that_hardly_writes_is_named() {
    let options = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-buffer-pool-size=128M",
        "--innodb-log-file-size=1G",
        // What goes to the system's cache first is not held back by the group's limit.
        "--innodb-log-file-buffering=OFF",
        "--innodb-flush-log-at-trx-commit=1",
    ];
    let test = "a_device_that_hardly_writes_is_named";
    let Some(stage) = Stage::begin(test, &options, writes(100_000)) else { return };
    stage.order(&[TABLE, &fill(10_000)]);
    let mut stage = stage.limited();
    stage.load(4, UPDATE, 10_000);
    let then = Then::after(8, |stage| stage.bound_writes(2));
    let all = stage.watch_for(Some(StallCause::Device), 20 * times(), Some(then));
    assert_named(&all, StallCause::Device);
}
