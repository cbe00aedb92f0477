//! Devices of several kinds, and how many pages are in flight on them.

use super::*;
use crate::flush::LanesUse;

/// A device that takes `most_per_s` requests, each of which takes `alone_us` by itself; redo
/// writes stand behind the pages in flight.
fn settled(most_per_s: f64, alone_us: f64, wanted_per_s: f64) -> (u32, f64) {
    settled_on(|_| most_per_s, alone_us, wanted_per_s)
}

/// The same, where what the device takes depends on the pages in flight.
fn settled_on(most_per_s: impl Fn(f64) -> f64, alone_us: f64, wanted_per_s: f64) -> (u32, f64) {
    let (mut depth, mut pages, mut redo_us, mut per_s) = (Depth::default(), 0.0, 0.0, 0.0);
    for look in 1..3000_u64 {
        let in_flight = f64::from(depth.pages());
        let wait_us = (in_flight * 1e6 / most_per_s(in_flight)).max(alone_us);
        per_s = (in_flight * 1e6 / wait_us).min(wanted_per_s);
        let is_full = per_s < wanted_per_s;
        pages += per_s * 0.1;
        redo_us += 20.0 * if is_full { wait_us + alone_us } else { alone_us };
        let now = FlushSample {
            now_us: look * 100_000,
            list_flushed: pages as u64,
            redo_writes: look * 20,
            redo_write_us: redo_us as u64,
            lanes: LanesUse { list_pages: u32::from(is_full), cold_frames: 0 },
            ..FlushSample::default()
        };
        depth.observe(&now, wanted_per_s, 0.0);
    }
    (depth.pages(), per_s)
}

#[test]
fn a_limited_volume_gets_few_and_all_that_it_takes() {
    let (pages, per_s) = settled(1500.0, 200.0, 1e6);
    assert!((1..=4).contains(&pages), "{pages}");
    assert!(per_s > 1400.0, "{per_s}");
}

#[test]
fn a_fast_drive_gets_as_many_as_it_needs() {
    let (pages, per_s) = settled(400_000.0, 80.0, 1e9);
    assert!(per_s > 300_000.0, "{pages} in flight: {per_s}");
}

#[test]
fn a_disk_that_chooses_the_nearest_request_gets_enough_to_choose_from() {
    // 205 writes per second one by one, 412 with 32 in flight, as a disk of 15,000 turns.
    let disk = |in_flight: f64| 205.0 * in_flight.min(32.0).powf(0.2);
    let (pages, per_s) = settled_on(disk, 1000.0, 1000.0);
    assert!(pages >= 16, "{pages}");
    assert!(per_s > 350.0, "{pages} in flight: {per_s}");
}

#[test]
fn what_keeps_up_is_left_alone() {
    let (pages, _) = settled(400_000.0, 80.0, 50_000.0);
    assert_eq!(pages, FIRST as u32);
}

/// What `settled_on` does, look by look, for redo writes that take `redo_us` at a look.
fn rate_after(looks: u64, per_s: f64, redo_us: impl Fn(u64) -> f64) -> f64 {
    let (mut depth, mut redo_total_us, mut pages) = (Depth::default(), 0.0, 0.0);
    for look in 1..=looks {
        pages += per_s * 0.1;
        redo_total_us += 20.0 * redo_us(look);
        let now = FlushSample {
            now_us: look * 100_000,
            list_flushed: pages as u64,
            redo_writes: look * 20,
            redo_write_us: redo_total_us as u64,
            lanes: LanesUse { list_pages: 1, cold_frames: 0 },
            ..FlushSample::default()
        };
        // As many as are wanted are written: no step up is ever tried.
        depth.observe(&now, per_s, 0.0);
    }
    depth.write_pace().pages_per_s
}

#[test]
fn redo_that_waits_beyond_the_pages_in_flight_asks_for_a_rate() {
    let waits = |us: f64| move |look: u64| if look < 10 { 500.0 } else { us };
    let rate = rate_after(100, 1000.0, waits(5000.0));
    assert!(rate < 1000.0, "{rate}: behind one page of a millisecond it waits for five");
    let rate = rate_after(100, 200.0, waits(6000.0));
    assert!(rate.is_infinite(), "{rate}: it waits for the page of 5 ms before it");
}

/// The rate of a volume that takes 1,000 pages per second, before and after redo writes take 5 ms
/// each for two seconds and a half whatever the rate, with so many of them at a look that stand
/// still.
fn rates_around_slow_redo(stalled_at_a_look: u64) -> (f64, f64) {
    let (mut depth, mut pages, mut before) = (Depth::default(), 0.0, 0.0);
    let (mut redo_us, mut stalled) = (0, 0);
    for look in 1..=425_u64 {
        let asked = depth.write_pace().pages_per_s;
        let is_slow = look > 400;
        let is_too_high = look > 10 && asked > 1000.0;
        before = if is_slow { before } else { asked };
        pages += asked.min(1000.0) * 0.1;
        redo_us += 20 * if is_slow || is_too_high { 5_000 } else { 500 };
        stalled += if is_slow { stalled_at_a_look } else { u64::from(is_too_high) };
        let now = FlushSample {
            now_us: look * 100_000,
            list_flushed: pages as u64,
            redo_writes: look * 20,
            redo_write_us: redo_us,
            stalled_redo_writes: stalled,
            lanes: LanesUse { list_pages: 1, cold_frames: 0 },
            ..FlushSample::default()
        };
        depth.observe(&now, 1e6, 0.0);
    }
    (before, depth.write_pace().pages_per_s)
}

#[test]
fn a_rate_that_was_good_for_long_is_lowered_only_where_redo_stands_still() {
    let (before, after) = rates_around_slow_redo(0);
    assert!((900.0..=1000.0).contains(&before), "{before}");
    assert!(after >= before, "{before} to {after}: the processors are late, not the volume");
    let (before, after) = rates_around_slow_redo(1);
    assert!(after < 0.95 * before, "{before} to {after}");
}

#[test]
fn looks_at_little_to_write_judge_no_step_up() {
    let (mut depth, mut pages) = (Depth::default(), 0);
    for look in 1..200_u64 {
        let is_busy = look > 30;
        pages += match look {
            ..=30 => 64,
            31 => 130,
            _ => 150,
        };
        let now = FlushSample {
            now_us: look * 100_000,
            list_flushed: pages,
            lanes: LanesUse { list_pages: u32::from(is_busy), cold_frames: 0 },
            ..FlushSample::default()
        };
        depth.observe(&now, 1e6, 0.0);
        assert!(depth.pages() <= 16, "{depth:?}: 1500 pages per second, whatever the depth");
    }
    assert!(depth.is_limited, "{depth:?}");
    assert!(depth.pages() <= FIRST as u32, "{depth:?}");
}

#[test]
fn a_limited_volume_that_once_let_more_through_is_told_soon() {
    let (mut depth, mut pages, mut look) = (Depth::default(), 0, 0);
    while !(depth.is_limited && depth.pages() <= FIRST as u32) {
        look += 1;
        // Four in flight are 1,200 pages per second at first, and 1,500 later, as any more are.
        pages += if depth.pages() <= 4 && look < 10 { 120 } else { 150 };
        let now = FlushSample {
            now_us: look * 100_000,
            list_flushed: pages,
            lanes: LanesUse { list_pages: 1, cold_frames: 0 },
            ..FlushSample::default()
        };
        depth.observe(&now, 1e6, 0.0);
        assert!(look < 15, "{depth:?}");
    }
}
