//! Ages against histograms whose answers are known.

use crate::Lsn;

use super::Ages;

/// Pages every 100 bytes of redo, ten to a bucket of 1000, from 1000 to 11000.
fn even() -> Vec<(Lsn, u32)> {
    (1..=10).map(|bucket| (Lsn(bucket * 1000), 10)).collect()
}

fn ages(buckets: &[(Lsn, u32)]) -> Ages<'_> {
    Ages { buckets, oldest: Lsn(1000), end: Lsn(11_000) }
}

#[test]
fn pages_before_an_lsn_are_counted_and_shared_within_a_bucket() {
    let buckets = even();
    for (until, pages) in [(0, 0.0), (1000, 0.0), (2000, 10.0), (2500, 15.0), (99_999, 100.0)] {
        assert!((ages(&buckets).pages_before(Lsn(until)) - pages).abs() < 1e-9, "{until}");
    }
    let one = [(Lsn(0), 100)];
    assert!((ages(&one).pages_before(Lsn(6000)) - 50.0).abs() < 1e-9);
    assert_eq!(ages(&[]).pages_before(Lsn(6000)), 0.0);
}

#[test]
fn the_end_of_some_pages_is_the_end_of_their_bucket() {
    let buckets = even();
    for (pages, end) in [(1.0, 2000), (10.0, 2000), (11.0, 3000), (1000.0, 11_000)] {
        assert_eq!(ages(&buckets).lsn_after(pages), Lsn(end), "{pages}");
    }
}

#[test]
fn at_the_set_point_pages_leave_as_fast_as_redo_comes() {
    let buckets = even();
    let late_us = 100_000.0;
    // 10,000 bytes of age at 1000 bytes per second, one page every 100 bytes: 10 pages per second.
    let held = ages(&buckets).rate_for(10_000.0, 1000.0, late_us, 0.5);
    assert!((held - 10.0).abs() < 1e-6, "{held}");
    let half = ages(&buckets).rate_for(20_000.0, 1000.0, late_us, 0.5);
    assert_eq!(half, 0.0, "nothing is older than half of what is held");
    let more = ages(&buckets).rate_for(15_000.0, 1000.0, late_us, 0.5);
    // 25 pages are older than 7500 bytes, and due in 7.5 s.
    assert!((more - 25.0 / 7.5).abs() < 1e-6, "{more}");
    let late = ages(&buckets).rate_for(9000.0, 1000.0, late_us, 0.5);
    assert!((late - 100.0).abs() < 1e-6, "10 pages are late: {late}");
}

#[test]
fn a_heap_of_pages_is_begun_early_instead_of_all_at_once() {
    let mut buckets = even();
    buckets[4].1 = 10_000;
    let rate = ages(&buckets).rate_for(10_000.0, 1000.0, 100_000.0, 0.5);
    // All 10,040 up to LSN 6000 are due in 5 s.
    assert!((rate - 10_040.0 / 5.0).abs() < 1e-6, "{rate}");
}
