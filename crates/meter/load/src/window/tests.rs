//! When a window may end, by clock and shared statistics alone: slow requests on virtual time.

use std::time::Duration;

use iostrata_plan::{IoApi, IoSpec};

use super::*;
use crate::clock::VirtualClock;
use crate::tally::{SliceTally, Tally};

/// What so many requests leave in a slice, of which each took this long.
fn tally(count: u64, latency_ms: u64) -> SliceTally {
    let service_ns = count * latency_ms * 1_000_000;
    let read = Tally { count, service_ns, ..Tally::default() };
    let mut tally = SliceTally::default();
    tally[OpKind::Read as usize] = read;
    tally
}

fn spec(point_time: Duration, slow: Option<Duration>) -> IoSpec {
    let mut spec = IoSpec::new("x");
    (spec.api, spec.depth, spec.size_bytes) = (IoApi::Null, 64, 1 << 30);
    (spec.point_time, spec.point_time_slow, spec.precision) = (point_time, slow, 0.5);
    spec
}

/// Milliseconds after which a window ends whose requests take so long, at a steady rate.
fn ends_after_ms(spec: IoSpec, latency_ms: u64) -> u64 {
    ends_with(spec, |_| tally(1, latency_ms))
}

fn ends_with(spec: IoSpec, tally: impl Fn(usize) -> SliceTally) -> u64 {
    let plans = [StreamPlan { name: "main".to_owned(), spec, files: Vec::new(), detail: false }];
    let clock = VirtualClock::default();
    let window = Window::new(&plans, clock_facts(), clock.clone(), false).unwrap();
    let Controller { shared, length, .. } = &window.controller;
    let ticks = shared.layout().slice_ticks;
    clock.advance(1);
    let start = clock.now();
    shared.post_start(start);
    shared.post_stop_after(u64::from(shared.layout().slices));
    let Length::Precise { rule, .. } = length else { unreachable!("no runtime was given") };
    let mut next_check = rule.next_check(0);
    for slice in 0.. {
        if clock.now() >= shared.stop() {
            break;
        }
        clock.advance(ticks);
        shared.post_slice(0, slice, &tally(slice));
        window.controller.look(start, &mut next_check, &mut None);
    }
    (shared.stop() - start) / 1_000_000
}

const POINT: Duration = Duration::from_millis(700);

#[test]
fn a_point_lasts_twenty_times_its_latency() {
    assert!((250..400).contains(&ends_after_ms(spec(POINT, None), 1)), "precise enough early");
    let slow = Some(Duration::from_secs(3));
    let ended = ends_after_ms(spec(POINT, slow), 64);
    assert!((1_280..1_700).contains(&ended), "20 times 64 ms are 1,280 ms, not {ended}");
    assert!((250..400).contains(&ends_after_ms(spec(POINT, slow), 1)), "no reason to wait");
    assert_eq!(ends_after_ms(spec(POINT, Some(Duration::from_secs(1))), 64), 1_000, "the bound");
    assert_eq!(ends_after_ms(spec(POINT, None), 64), 700, "the bound of all points");
}

#[test]
fn a_point_whose_rate_drifts_ends_as_planned_unless_it_is_slow() {
    let slow = Some(Duration::from_secs(3));
    let drifting =
        |latency_ms| ends_with(spec(POINT, slow), |slice| tally(1 + slice as u64 / 50, latency_ms));
    assert_eq!(drifting(30), 700);
    let ended = drifting(64);
    assert!((1_280..1_300).contains(&ended), "no longer than it must, not {ended}");
}
