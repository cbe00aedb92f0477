//! Windows on the real clock.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_load::{NoObserver, StreamPlan, Surroundings, WindowFigures, WindowOutcome, measure};
use iostrata_plan::{Flow, IoApi, IoSpec, Mix, OpKind};

fn run(spec: IoSpec) -> (WindowOutcome, WindowFigures) {
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let plan = StreamPlan { name: "main".to_owned(), spec, files: Vec::new(), detail: false };
    let outcome = measure(&[plan], &surroundings, &mut NoObserver).unwrap();
    let figures = WindowFigures::of(&outcome);
    (outcome, figures)
}

fn null(jobs: u32, depth: u32) -> IoSpec {
    let mut spec = IoSpec::new("null");
    (spec.api, spec.jobs, spec.depth) = (IoApi::Null, jobs, depth);
    spec.size_bytes = 100 << 30;
    spec.runtime = Some(Duration::from_millis(300));
    spec
}

#[test]
fn a_window_is_exact_and_its_figures_agree_with_each_other() {
    let _turn = crate::one_at_a_time();
    for (jobs, depth) in [(1, 1), (3, 8)] {
        let mut spec = null(jobs, depth);
        spec.mix = Mix::Both { read_pct: 70 };
        let (_, figures) = run(spec);
        assert!((figures.duration_s - 0.3).abs() < 1e-4, "{}", figures.duration_s);
        let stream = &figures.streams[0];
        let (read, write) = (
            stream.ops[OpKind::Read].as_ref().unwrap(),
            stream.ops[OpKind::Write].as_ref().unwrap(),
        );
        assert!(stream.ops[OpKind::Sync].is_none());
        for op in [read, write] {
            let iops = op.ios as f64 / figures.duration_s;
            assert!((op.iops.value / iops - 1.0).abs() < 1e-9);
            let [low, high] = op.iops.ci95.unwrap();
            assert!(low <= iops && iops <= high);
        }
        let total = stream.total.as_ref().unwrap();
        let both = (read.ios + write.ios) as f64 / figures.duration_s;
        assert!((total.value / both - 1.0).abs() < 1e-9, "{total:?} is not {both}");
        assert!(total.ci95.is_some_and(|[low, high]| low <= both && both <= high));
        let share = read.ios as f64 / (read.ios + write.ios) as f64;
        assert!((0.69..0.71).contains(&share), "{share}");
    }
}

#[test]
fn jobs_of_a_flow_make_requests_as_their_weights_are() {
    let _turn = crate::one_at_a_time();
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let plans = [1, 4].map(|weight| {
        let mut spec = null(1, 1);
        spec.variation.flow = Some(Flow { id: 7, weight, wait: Duration::ZERO });
        StreamPlan { name: format!("weight{weight}"), spec, files: Vec::new(), detail: false }
    });
    let outcome = measure(&plans, &surroundings, &mut NoObserver).unwrap();
    let figures = WindowFigures::of(&outcome);
    let [light, heavy] =
        [0, 1].map(|at: usize| figures.streams[at].ops[OpKind::Read].as_ref().unwrap().ios as f64);
    assert!((3.9..4.1).contains(&(heavy / light)), "{heavy} and {light}");
}

#[test]
fn an_unmet_precision_ends_a_window_at_its_limit() {
    let _turn = crate::one_at_a_time();
    let mut spec = null(1, 1);
    (spec.runtime, spec.precision) = (None, 1e-9);
    spec.point_time = Duration::from_millis(500);
    let (_, figures) = run(spec);
    assert!(figures.duration_s + figures.warm_up_s > 0.499, "{}", figures.duration_s);
}
