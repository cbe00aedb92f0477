//! Metrics as Prometheus sees them.

mod contrib;
mod promtool;
mod served;

use iostrata_database::target::{FileCounts, FileTable, TargetSample};
use iostrata_database::watch::{OnHost, TimedSample, Watch, WatchStep};
use iostrata_run::host::{DeviceCounters, DeviceDelta};
use iostrata_run::{FileClass, FileIoSource, WatchSample};
use iostrata_show::metrics::Board;
use iostrata_show::screen::made_up;

/// Counters of a target after so many seconds.
fn counted(second: u64) -> TargetSample {
    let mut files = FileTable::new(FileIoSource::InnodbStatus);
    let writes = Some(second * 90);
    *files.entry(FileClass::Redo) = FileCounts { writes, ..FileCounts::default() };
    TargetSample {
        transactions: Some(second * 400),
        redo_end_bytes: Some(second * 2_000_000),
        pages_flushed: Some(second * 600),
        pages_flushed_adaptive: Some(second * 500),
        pages_flushed_for_redo: Some(second * 100),
        furious_flushes: Some(second / 40),
        purged: Some(second * 390),
        files: Some(files),
        ..TargetSample::default()
    }
}

/// What its device did in a second.
fn on_host() -> OnHost {
    let counters = DeviceCounters {
        reads: 20,
        writes: 700,
        flushes: Some(400),
        read_ms: 8,
        write_ms: 900,
        ..DeviceCounters::default()
    };
    let delta = DeviceDelta { seconds: 1.0, counters };
    OnHost { device: Some(("vda".to_owned(), delta)), ..OnHost::default() }
}

/// The metrics of three made-up targets after a hundred seconds, two of which stalled or vanished.
fn board() -> Board {
    let mut board = Board::new(&[made_up::stalling(), made_up::steady(), made_up::vanishing()]);
    let mut watches = [Watch::default(), Watch::default(), Watch::default()];
    for second in 0..100 {
        let samples: [WatchSample; 3] = [
            made_up::stalling_at(second),
            made_up::steady_at(second),
            made_up::vanishing_at(second),
        ];
        for (at, (sample, watch)) in samples.into_iter().zip(&mut watches).enumerate() {
            let watched = watch.take(TimedSample {
                at_s: second as f64,
                sample: Ok(counted(second)),
                sample_us: 640.0,
                on_host: on_host(),
            });
            board.take(at, &WatchStep { sample, ..watched });
        }
    }
    board
}

/// Whether a program is installed; prints it where it is not.
fn is_installed(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: no {program} (apt-get install prometheus)");
    }
    found
}
