//! What is seen on the host of a real server within the limits of a control group.

use iostrata_database::watch::WatchStep;
use iostrata_plan::study::IoLimits;
use iostrata_run::{FileClass, FileIoSource, WatchSample};

use crate::stage::{Stage, Then};
use crate::stalls::{TABLE, fill};

const WRITES_PER_S: u64 = 60;
const UPDATE: &str = "UPDATE t SET v = v + 1 WHERE id = ?";

/// The figures that the samples have.
fn told(all: &[WatchStep], figure: fn(&WatchSample) -> Option<f64>) -> Vec<f64> {
    all.iter().filter_map(|one| figure(&one.sample)).collect()
}

fn largest(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(0.0, f64::max)
}

#[test]
fn pressure_rises_and_throttle_is_told_where_a_group_limits_the_server() {
    let test = "pressure_rises_and_throttle_is_told_where_a_group_limits_the_server";
    let options = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-buffer-pool-size=128M",
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=1",
        "--performance-schema=ON",
    ];
    let limits = IoLimits { write_iops: Some(WRITES_PER_S), ..IoLimits::default() };
    let Some(stage) = Stage::begin(test, &options, limits) else { return };
    stage.order(&[TABLE, &fill(10_000)]);
    let mut stage = stage.limited();
    let work = Then::after(5, |stage| stage.load(8, UPDATE, 10_000));
    let all = stage.watch(14, Some(work));
    let (idle, busy): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.sample.t_s < 5.0);

    let used = |one: &WatchSample| one.throttle.as_ref()?.io_limit_used_pct;
    let at_work = largest(&told(&busy, used));
    eprintln!("limit used: idle {:.0} %, at work {at_work:.0} %", largest(&told(&idle, used)));
    // The limit is kept over longer times than one sample.
    assert!(at_work > 50.0, "{at_work}");
    let limit = busy.iter().find_map(|one| one.sample.throttle.as_ref()?.io_limit.clone()).unwrap();
    assert_eq!(limit.write_iops, Some(WRITES_PER_S));

    let waited = |one: &WatchSample| Some(one.pressure?.io?.some_pct);
    let (before, after) = (told(&idle, waited), told(&busy, waited));
    if after.is_empty() {
        eprintln!("skipped: the kernel reports no pressure");
    } else {
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        eprintln!("I/O pressure: idle {:.0} %, at work {:.0} %", mean(&before), mean(&after));
        assert!(mean(&after) > 25.0, "eight sessions wait for {WRITES_PER_S} writes per second");
        // Of the whole machine it is others' as well.
        let is_own = busy.iter().any(|one| one.sample.pressure_group.is_some());
        assert!(!is_own || mean(&after) > 2.0 * mean(&before), "{before:?} {after:?}");
    }

    let files = busy.iter().filter_map(|one| one.sample.files.as_ref());
    let redo = files.clone().filter_map(|files| files.class(FileClass::Redo)?.write_bytes_per_s);
    assert!(redo.fold(0.0, f64::max) > 0.0, "commits write redo");
    assert!(files.clone().all(|files| files.source == FileIoSource::PerformanceSchema));
    assert!(files.clone().any(|files| files.class(FileClass::Other).is_some()));
}
