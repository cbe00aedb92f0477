//! Rates over two samples, restarts, what is absent.

use crate::target::{FileTable, TargetError, Trouble};
use crate::watch::moment::OnHost;
use iostrata_run::host::{HeldBackShares, PressureShares, ThrottleEvidence};
use iostrata_run::{FIGURES, FileClass, FileIoSource, StallCause};
use proptest::prelude::*;

use super::*;

fn seen(at_s: f64, sample: TargetSample) -> TimedSample {
    TimedSample { at_s, sample: Ok(sample), sample_us: 250.0, on_host: OnHost::default() }
}

fn sample(second: u64) -> TargetSample {
    TargetSample {
        started_s: Some(1_000),
        transactions: Some(100 * second),
        checkpoint_age_bytes: Some(60),
        checkpoint_age_limit_bytes: Some(80),
        redo_end_bytes: Some(10 * second),
        pages_flushed: Some(300 * second),
        pages_flushed_adaptive: Some(200 * second),
        furious_flushes: Some(7 + second),
        dirty_pages: Some(25),
        pool_pages: Some(200),
        purged: Some(90 * second),
        pending_reads: Some(3),
        ..TargetSample::default()
    }
}

#[test]
fn rates_are_of_the_time_since_the_sample_before() {
    let mut watch = Watch::default();
    let first = watch.take(seen(0.0, sample(1))).sample;
    assert_eq!((first.tps, first.flushed_pages_per_s, first.redo_seconds_left), (None, None, None));
    assert_eq!((first.checkpoint_age_pct, first.dirty_pct), (Some(75.0), Some(12.5)));
    assert_eq!(first.furious_flushes, Some(0), "none since watching began");
    let second = watch.take(seen(2.0, sample(3))).sample;
    assert_eq!((second.tps, second.flushed_pages_per_s), (Some(100.0), Some(300.0)));
    assert_eq!(
        (second.flush_adaptive_pages_per_s, second.flush_lru_pages_per_s),
        (Some(200.0), None)
    );
    assert_eq!((second.redo_bytes_per_s, second.redo_seconds_left), (Some(10.0), Some(2.0)));
    assert_eq!((second.pages_written_per_txn, second.purge_per_s), (Some(3.0), Some(90.0)));
    assert_eq!((second.furious_flushes, second.sample_us), (Some(2), 250.0));
}

#[test]
fn a_restart_has_no_rates_and_is_told_once() {
    let mut watch = Watch::default();
    watch.take(seen(0.0, sample(50)));
    let gone = TargetError {
        trouble: Trouble::Gone,
        code: "2013".to_owned(),
        target: "t".to_owned(),
        text: "lost".to_owned(),
        fix: None,
    };
    let refused = TimedSample { sample: Err(gone), ..seen(1.0, sample(0)) };
    assert_eq!(watch.take(refused).sample.error.as_deref(), Some("t: lost"));
    let anew = TargetSample { started_s: Some(1_060), ..sample(60) };
    let after = watch.take(seen(2.0, anew)).sample;
    assert!(after.restarted && after.tps.is_none() && after.redo_bytes_per_s.is_none());
    assert_eq!(after.furious_flushes, Some(0));
    let next = watch.take(seen(3.0, TargetSample { started_s: Some(1_061), ..sample(61) })).sample;
    assert!(!next.restarted, "two clocks differ by a second");
    assert_eq!((next.tps, next.furious_flushes), (Some(100.0), Some(1)));
}

#[test]
fn a_page_that_was_not_published_anew_says_what_it_said() {
    let mut watch = Watch::default();
    let page = |us: u64, second| TargetSample { taken_us: Some(us), ..sample(second) };
    watch.take(seen(0.0, page(5_000_000, 1)));
    watch.take(seen(1.0, page(6_010_000, 2)));
    let again = watch.take(seen(2.0, page(6_010_000, 2))).sample;
    assert!((again.tps.unwrap() - 100.0 / 1.01).abs() < 1e-6, "{again:?}");
    assert_eq!((again.t_s, again.stalled), (2.0, false));
}

#[test]
fn what_is_not_told_is_absent() {
    let mut watch = Watch::default();
    watch.take(seen(0.0, TargetSample::default()));
    let said = watch.take(seen(1.0, TargetSample::default())).sample;
    let expected = WatchSample { t_s: 1.0, sample_us: 250.0, ..WatchSample::default() };
    assert_eq!(said, expected);
}

/// A sample with so many writes of the redo.
fn with_redo(second: u64, writes: u64) -> TargetSample {
    let mut table = FileTable::new(FileIoSource::PerformanceSchema);
    table.entry(FileClass::Redo).writes = Some(writes);
    TargetSample { files: Some(table), ..sample(second) }
}

#[test]
fn files_are_of_the_time_since_they_were_told_and_stay_until_then() {
    let mut watch = Watch::default();
    let mut writes_per_s = |at_s, sample| {
        let files = watch.take(seen(at_s, sample)).sample.files?;
        files.class(FileClass::Redo)?.writes_per_s
    };
    assert_eq!(writes_per_s(0.0, with_redo(0, 10)), None);
    assert_eq!(writes_per_s(1.0, with_redo(1, 14)), Some(4.0));
    assert_eq!(writes_per_s(2.0, sample(2)), Some(4.0), "it was not asked this time");
    assert_eq!(writes_per_s(5.0, with_redo(5, 22)), Some(2.0), "over four seconds");
    let anew =
        |second, writes| TargetSample { started_s: Some(2_000), ..with_redo(second, writes) };
    assert_eq!(writes_per_s(6.0, anew(6, 30)), None, "another server");
    assert_eq!(writes_per_s(7.0, anew(7, 31)), Some(1.0));
}

#[test]
fn what_the_host_did_stands_beside_answers_and_failures() {
    let held = HeldBackShares {
        pressure: Some(PressureShares::default()),
        pressure_group: Some("/db".to_owned()),
        throttle: Some(ThrottleEvidence::default()),
        cpu_stolen_pct: Some(4.0),
    };
    let on_host = OnHost { held, ..OnHost::default() };
    let mut watch = Watch::default();
    let gone = TargetError::not_ready("t", "2013", "lost".to_owned(), "none");
    for sample in [Ok(sample(1)), Err(gone)] {
        let seen =
            TimedSample { sample, on_host: on_host.clone(), ..seen(1.0, TargetSample::default()) };
        let said = watch.take(seen).sample;
        assert_eq!(said.pressure_group.as_deref(), Some("/db"));
        assert!(said.pressure.is_some() && said.throttle.is_some());
        assert_eq!(said.cpu_stolen_pct, Some(4.0));
    }
}

proptest! {
    #[test]
    fn no_rate_is_below_zero(all in prop::collection::vec(
        (prop::array::uniform8(prop::option::of(any::<u64>())), 0.0..100.0f64), 2..30,
    )) {
        let mut watch = Watch::default();
        for (of, at_s) in all {
            let sample = TargetSample {
                started_s: of[0],
                transactions: of[1],
                redo_end_bytes: of[2],
                pages_flushed: of[3],
                furious_flushes: of[4].map(|count| count >> 1),
                purged: of[5],
                checkpoint_age_bytes: of[6],
                checkpoint_age_limit_bytes: of[7],
                ..TargetSample::default()
            };
            let said = watch.take(seen(at_s, sample)).sample;
            for rate in [said.tps, said.redo_bytes_per_s, said.flushed_pages_per_s,
                said.purge_per_s, said.redo_seconds_left, said.pages_written_per_txn] {
                prop_assert!(rate.is_none_or(|rate| rate >= 0.0), "{said:?}");
            }
        }
    }
}

/// By how much the counter of a figure grew since watching began.
fn total(watched: &WatchStep, name: &str) -> Option<u64> {
    watched.totals.count(FIGURES.iter().position(|one| one.name == name).unwrap())
}

#[test]
fn totals_are_what_the_counters_grew_by() {
    let mut watch = Watch::default();
    let first = watch.take(seen(0.0, sample(1)));
    assert_eq!(total(&first, "tps"), None, "it did not grow yet");
    watch.take(seen(1.0, sample(3)));
    let gone = TargetError::not_ready("t", "2013", "lost".to_owned(), "none");
    watch.take(TimedSample { sample: Err(gone), ..seen(2.0, sample(0)) });
    let last = watch.take(seen(4.0, sample(7)));
    assert_eq!((total(&last, "tps"), total(&last, "flush_lru_pages_per_s")), (Some(600), None));
    assert_eq!((last.totals.samples, last.totals.errors), (4, 1));
    // What it did before a restart stays, and its new counts are added.
    let anew = |second| TargetSample { started_s: Some(1_060), ..sample(second) };
    watch.take(seen(5.0, anew(0)));
    let last = watch.take(seen(6.0, anew(1)));
    assert_eq!((total(&last, "tps"), total(&last, "furious_flushes")), (Some(700), Some(7)));
}

#[test]
fn a_stall_is_counted_with_its_time() {
    let mut totals = Totals::default();
    let mut take = |t_s, stall_cause: Option<StallCause>, stalled| {
        totals.count_sample(&WatchSample { t_s, stalled, stall_cause, ..WatchSample::default() });
    };
    take(0.0, None, false);
    take(1.0, None, true);
    take(2.5, Some(StallCause::RedoFull), true);
    take(3.0, None, false);
    take(4.0, Some(StallCause::RedoFull), true);
    let seconds = |of| StallCause::ALL.iter().position(|(one, _)| *one == of).unwrap();
    assert_eq!(totals.stalls, 2);
    let [unknown, full] = [StallCause::Unknown, StallCause::RedoFull].map(seconds);
    assert_eq!((totals.stalled_s[unknown], totals.stalled_s[full]), (1.0, 2.5));
}

#[test]
fn what_the_host_did_adds_up_while_nobody_answers_too() {
    use iostrata_run::host::{DeviceCounters, DeviceDelta, PressureShare};
    let io = PressureShare { some_us: 250_000, full_us: Some(100_000), ..Default::default() };
    let counters = DeviceCounters {
        writes: 2_000,
        write_ms: 4_000,
        flushes: Some(3),
        ..DeviceCounters::default()
    };
    let throttle = ThrottleEvidence { cpu_throttled_us: Some(30_000), ..Default::default() };
    let on_host = OnHost {
        device: Some(("vda".to_owned(), DeviceDelta { seconds: 2.0, counters })),
        held: HeldBackShares {
            pressure: Some(PressureShares { io: Some(io), ..Default::default() }),
            throttle: Some(throttle),
            ..HeldBackShares::default()
        },
        ..OnHost::default()
    };
    let mut watch = Watch::default();
    let gone = TargetError::not_ready("t", "2013", "lost".to_owned(), "none");
    watch.take(TimedSample { on_host: on_host.clone(), ..seen(0.0, sample(1)) });
    let said = watch.take(TimedSample { on_host, sample: Err(gone), ..seen(2.0, sample(2)) });
    let device = said.sample.device.unwrap();
    assert_eq!((device.writes_per_s, device.write_ms), (1_000.0, Some(2.0)));
    let total = &said.totals.devices["vda"];
    assert_eq!((total.writes, total.write_ms, total.flushes), (4_000, 8_000, Some(6)));
    assert_eq!(said.totals.pressure_us.get(&("io", "full")), Some(&200_000));
    assert_eq!(
        said.totals.pressure_us.get(&("cpu", "some")),
        None,
        "what is not reported is not 0"
    );
    assert_eq!(said.totals.throttled_us, Some(60_000));
}

#[test]
fn a_stall_is_looked_at_when_it_begins_and_its_statements_at_its_end() {
    let mut watch = Watch::default();
    let mut asked = Vec::new();
    // Two stalls of which the second lasts longer, and a steady load around them.
    let is_stalled = |second: u64| (20..23).contains(&second) || (40..60).contains(&second);
    let mut total = 0;
    for second in 0..70_u64 {
        total += if is_stalled(second) { 1 } else { 500 };
        let now = TargetSample {
            transactions: Some(total),
            sessions_running: Some(8),
            ..TargetSample::default()
        };
        let mut watched = watch.take(seen(second as f64, now));
        if watch.needs_snapshot(&watched) {
            watch.keep_snapshot(&mut watched, StallSnapshot::default());
            asked.push((second, "snapshot"));
        } else if watch.needs_statements(&watched) {
            watch.keep_statements(&mut watched, (Vec::new(), 2.0));
            asked.push((second, "statements"));
        }
        let kept = watched.snapshot.map(|one| (one.stall_t_s, one.statements_s.is_some()));
        let is_asked = asked.last().is_some_and(|(at, _)| *at == second);
        assert_eq!(kept.is_some(), is_asked, "{second}: {kept:?}");
    }
    let of = |at, what| (at, what);
    assert_eq!(
        asked,
        [
            of(20, "snapshot"),
            of(23, "statements"),
            of(40, "snapshot"),
            of(49, "statements"),
            of(60, "statements"),
        ]
    );
}

#[test]
fn a_stall_is_looked_at_again_once_its_cause_shows() {
    let asked = |waits: [SessionWaits; 2]| {
        let (mut watch, mut total, mut asked) = (Watch::default(), 0, Vec::new());
        for second in 0..40_u64 {
            total += if second < 20 { 500 } else { 1 };
            let now = TargetSample {
                transactions: Some(total),
                sessions_running: Some(8),
                ..TargetSample::default()
            };
            let mut watched = watch.take(seen(second as f64, now));
            if watch.needs_session_waits() {
                watch.explain(&mut watched, waits[usize::from(second >= 25)]);
            }
            if watch.needs_snapshot(&watched) {
                watch.keep_snapshot(&mut watched, StallSnapshot::default());
                asked.push(second);
            }
        }
        asked
    };
    let (nothing, locked) =
        (SessionWaits::default(), SessionWaits { metadata_lock: 8, ..SessionWaits::default() });
    assert_eq!(asked([nothing, locked]), [20, 25]);
    assert_eq!(asked([locked, locked]), [20]);
    assert_eq!(asked([nothing, nothing]), [20]);
}
