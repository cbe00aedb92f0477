//! Rates over two samples, restarts, what is absent.

use iostrata_target::{TargetError, Trouble};
use proptest::prelude::*;

use super::*;

fn seen(at_s: f64, sample: TargetSample) -> TimedSample {
    TimedSample { at_s, sample: Ok(sample), sample_us: 250.0, device: None }
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
