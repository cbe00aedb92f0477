//! Scheduled starts on the real clock.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_load::{NoObserver, StreamPlan, Surroundings, WindowFigures, measure};
use iostrata_plan::{IoApi, IoSpec, OpKind, Pacing, RateProcess};

#[test]
fn start_lateness_on_the_wall_clock_is_reported() {
    let _turn = crate::one_at_a_time();
    for rate_iops in [100.0, 10_000.0, 200_000.0] {
        let mut spec = IoSpec::new("null");
        spec.api = IoApi::Null;
        spec.pacing = Pacing::Open { rate_iops, process: RateProcess::Poisson };
        spec.runtime = Some(Duration::from_millis(600));
        let interrupted = AtomicBool::new(false);
        let surroundings = Surroundings { interrupted: &interrupted, program: None };
        let plan = StreamPlan { name: "main".to_owned(), spec, files: Vec::new(), detail: false };
        let outcome = measure(&[plan], &surroundings, &mut NoObserver).unwrap();
        let figures = WindowFigures::of(&outcome);
        let stream = &figures.streams[0];
        let late_us = stream.start_lateness_us_p99.unwrap();
        let read = stream.ops[OpKind::Read].as_ref().unwrap();
        eprintln!("{rate_iops} per second: start lateness p99 {late_us:.1} us");
        // Poisson counts scatter by their square root; what is late is done later, not left out,
        // unless the window ends before.
        let expected = rate_iops * 0.6;
        let scatter = 6.0 * expected.sqrt() + expected * 0.02;
        let late = rate_iops * 2.0 * late_us / 1e6;
        let asked = expected - scatter - late..expected + scatter;
        assert!(asked.contains(&(read.ios as f64)), "{} of {expected}", read.ios);
    }
}
