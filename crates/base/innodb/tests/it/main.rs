//! The policy in a closed loop with a small engine in virtual time.

mod fluid;
mod history;
mod plan;
mod plant;

use iostrata_innodb::flush::AgeLimits;
use plan::Plan;
use plant::Plant;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Redo capacities from the smallest to the default, and the seconds in which the load fills each.
const REDOS: [(u64, f64); 5] =
    [(64 * KIB, 0.05), (MIB, 0.3), (32 * MIB, 3.0), (512 * MIB, 15.0), (2 * GIB, 40.0)];

/// Those redos; the largest, which takes the most virtual time, only in a long run.
fn redos() -> &'static [(u64, f64)] {
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some_and(|value| value == "1");
    if is_long { &REDOS } else { &REDOS[..4] }
}

/// A plant under load, which shows what happened since a moment.
struct Run {
    plant: Plant,
    name: String,
    rate: f64,
    fill_s: f64,
    since_us: u64,
}

impl Run {
    fn new(name: &str, plan: Plan, fill_s: f64) -> Run {
        let name = format!("{name}, {} KiB of redo", plan.capacity >> 10);
        let rate = plan.capacity as f64 / fill_s;
        let mut plant = Plant::new(plan);
        plant.offer(rate);
        Run { plant, name, rate, fill_s, since_us: 0 }
    }

    /// Lets the loop settle, then a while more that counts.
    fn settle(&mut self) -> &mut Run {
        self.plant.run(self.fill_s * 3.0 + 1.0);
        self.since_us = self.plant.now_us;
        self.plant.run(self.fill_s * 3.0 + 3.0);
        self.no_limit_was_passed();
        self
    }

    fn no_limit_was_passed(&self) {
        let (plan, seen) = (self.plant.plan, &self.plant.seen);
        let most = AgeLimits::of(plan.capacity).max_age + plan.redo_bytes;
        assert!(seen.age_max <= most, "{}: {} of {most}", self.name, seen.age_max);
    }

    /// The least commits in windows of a second, sliding by a tenth, over their mean.
    fn min_over_mean(&self) -> f64 {
        let (from, to) = ((self.since_us / 10_000) as usize, (self.plant.now_us / 10_000) as usize);
        let counts = |at: usize| self.plant.seen.commits.get(at).copied().unwrap_or(0);
        let counts: Vec<u32> = (from..to).map(counts).collect();
        let sums: Vec<u32> =
            counts.windows(100).step_by(10).map(|second| second.iter().sum()).collect();
        let mean = f64::from(sums.iter().sum::<u32>()) / sums.len() as f64;
        f64::from(sums.iter().copied().min().unwrap_or(0)) / mean
    }

    /// Least and greatest age of the oldest change, as shares of the async limit.
    fn band(&self) -> (f64, f64) {
        let async_age = AgeLimits::of(self.plant.plan.capacity).async_age as f64;
        let ages = self.plant.seen.ages.iter().filter(|(at, _)| *at >= self.since_us);
        ages.map(|(_, age)| *age as f64 / async_age)
            .fold((f64::MAX, 0.0), |(least, most), age| (least.min(age), most.max(age)))
    }

    /// Commits, or pages flushed, per second.
    fn per_s(&self, counts: &[u32]) -> f64 {
        let from = (self.since_us / 10_000) as usize;
        let sum: f64 = counts.iter().skip(from).map(|count| f64::from(*count)).sum();
        sum * 1e6 / (self.plant.now_us - self.since_us) as f64
    }

    /// Committed redo as a share of what was offered.
    fn admitted(&self) -> f64 {
        let bytes = self.per_s(&self.plant.seen.commits) * self.plant.plan.redo_bytes as f64;
        bytes / self.rate
    }

    fn steadier_than(&mut self, least: f64) -> &mut Run {
        let steadiness = self.min_over_mean();
        assert!(steadiness >= least, "{}: worst second over mean {steadiness}", self.name);
        self
    }

    fn within(&mut self, least: f64, most: f64) -> &mut Run {
        let (low, high) = self.band();
        assert!(low >= least && high <= most, "{}: age from {low} to {high}", self.name);
        self
    }
}

#[test]
fn a_load_that_the_device_can_bear_is_not_held_back() {
    for (capacity, fill_s) in REDOS {
        let mut run = Run::new("even load", Plan::on(capacity, fill_s), fill_s);
        let low = if capacity < MIB { 0.45 } else { 0.65 };
        run.settle().steadier_than(0.9).within(low, 0.99);
        assert!(run.admitted() > 0.97, "{}: {}", run.name, run.admitted());
        let seen = &run.plant.seen;
        assert_eq!((seen.furious, seen.waits), (0, 0), "{}", run.name);
    }
}

#[test]
fn little_more_is_written_than_must_be() {
    for &(capacity, fill_s) in redos() {
        let mut run = Run::new("even load", Plan::on(capacity, fill_s), fill_s);
        run.settle();
        let (flushed, least) = (run.plant.seen.flushed_pages, run.plant.seen.least_pages);
        run.plant.run(fill_s * 4.0);
        let more = run.plant.seen.flushed_pages - flushed;
        let must = run.plant.seen.least_pages - least;
        let share = more as f64 / must as f64;
        // The set-point alone is 1 / 0.85 of what the async limit would need.
        assert!(share < 1.0 / 0.85 + 0.15, "{}: {share} times", run.name);
    }
}

#[test]
fn a_load_that_changes_is_followed() {
    for (capacity, fill_s) in [REDOS[0], REDOS[1], REDOS[2], REDOS[4]] {
        let mut run = Run::new("steps", Plan::on(capacity, fill_s), fill_s);
        run.settle();
        for share in [0.3, 1.5, 0.7] {
            run.plant.offer(run.rate * share);
            run.fill_s = fill_s / share;
            let low = if capacity < MIB { 0.45 } else { 0.65 };
            run.settle().steadier_than(0.85).within(low, 1.0);
            assert!(run.admitted() > 0.97 * share, "{} to {share}", run.name);
        }
        let seen = &run.plant.seen;
        assert_eq!((seen.furious, seen.waits), (0, 0), "{}", run.name);
    }
}

#[test]
fn a_load_beyond_the_device_is_slowed_down_smoothly() {
    for &(capacity, fill_s) in redos() {
        let mut run = Run::new("slow device", Plan::on(capacity, fill_s), fill_s);
        run.settle();
        let needed = run.per_s(&run.plant.seen.flushed);
        run.plant.device(needed * 0.5);
        run.fill_s *= 2.0;
        let high = if capacity < MIB { 1.25 } else { 1.16 };
        run.settle().steadier_than(0.8).within(0.5, high);
        let admitted = run.admitted();
        assert!((0.4..0.65).contains(&admitted), "{}: {admitted}", run.name);
        assert_eq!(run.plant.seen.waits, 0, "{}", run.name);
        // And the device comes back.
        run.plant.device(needed * 3.0);
        run.fill_s = fill_s;
        run.settle().steadier_than(0.9).within(0.5, 0.99);
        assert!(run.admitted() > 0.97, "{}: {}", run.name, run.admitted());
    }
}

#[test]
fn the_ceiling_is_kept_and_slows_the_load_down() {
    for (capacity, fill_s) in [(32 * MIB, 3.0), (512 * MIB, 20.0)] {
        let mut run = Run::new("ceiling", Plan::on(capacity, fill_s), fill_s);
        run.settle();
        let needed = run.per_s(&run.plant.seen.flushed);
        run.plant.plan.settings.io_capacity_max = (needed * 0.5) as u32;
        // Where flushing may go beyond it, no thread is slowed down.
        run.settle().steadier_than(0.8).within(0.5, 1.12);
        assert!(run.admitted() > 0.97, "{}: {}", run.name, run.admitted());
        run.plant.plan.settings.flush_sync = false;
        run.fill_s *= 2.0;
        run.settle().steadier_than(0.8).within(0.5, 1.12);
        let flushed = run.per_s(&run.plant.seen.flushed);
        assert!(flushed < needed * 0.57, "{}: {flushed} of {needed}", run.name);
        assert_eq!(run.plant.seen.furious, 0, "{}", run.name);
    }
}

#[test]
fn one_giant_bucket_of_ages_is_enough() {
    for &(capacity, fill_s) in redos() {
        let plan = Plan { bucket_bytes: capacity * 1000, ..Plan::on(capacity, fill_s) };
        let mut run = Run::new("one bucket", plan, fill_s);
        run.settle().steadier_than(0.85).within(0.3, 1.02);
        assert_eq!(run.plant.seen.waits, 0, "{}", run.name);
    }
}

#[test]
fn many_threads_with_large_changes_pass_no_limit_of_the_smallest_redo() {
    for seed in 1..20 {
        let plan = Plan {
            threads: 64,
            redo_bytes: 4096,
            population: 60,
            frames: 64,
            seed,
            ..Plan::on(64 * KIB, 0.005)
        };
        let mut run = Run::new("crowd", plan, 0.005);
        run.plant.device(5000.0);
        run.plant.run(2.0);
        run.no_limit_was_passed();
        let commits: u32 = run.plant.seen.commits.iter().sum();
        assert!(commits > 1000, "{}: {commits} commits", run.name);
    }
}

#[test]
fn free_frames_are_supplied_while_redo_is_held() {
    let plan = Plan { misses: 2, ..Plan::on(32 * MIB, 3.0) };
    let mut run = Run::new("misses", plan, 3.0);
    run.settle().steadier_than(0.9).within(0.0, 0.95);
    assert_eq!(run.plant.seen.waits, 0, "{}", run.name);
    assert_eq!(run.plant.seen.frame_waits, 0, "{}", run.name);
}

#[test]
fn a_quiet_engine_becomes_clean_and_stays_so() {
    let mut run = Run::new("quiet", Plan::on(32 * MIB, 3.0), 3.0);
    run.settle();
    run.plant.offer(0.0);
    run.plant.run(10.0);
    assert_eq!(run.plant.dirty_pages(), 0);
    assert_eq!(run.plant.checkpoint(), run.plant.lsn);
    let looks = run.plant.seen.looks;
    run.plant.run(100.0);
    assert!(run.plant.seen.looks - looks <= 101, "a quiet engine is left alone");
}

#[test]
fn the_same_seed_gives_the_same_decisions() {
    let decisions = |seed| {
        let plan = Plan { seed, misses: 3, ..Plan::on(MIB, 0.3) };
        let mut run = Run::new("same", plan, 0.3);
        run.settle();
        run.plant.seen.decisions
    };
    assert_eq!(decisions(7), decisions(7));
    assert_ne!(decisions(7), decisions(8));
}

/// A load over time.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// From the one to the other, step by step.
    Ramp,
    /// The one, and for short times the other.
    Burst,
    /// Anything between the two.
    Noise,
    /// The one, then twice as much.
    Doubled,
}

const SHAPES: [Shape; 4] = [Shape::Ramp, Shape::Burst, Shape::Noise, Shape::Doubled];

/// Steps of a shape.
const SHAPE_STEPS: usize = 48;

/// How long one lasts: a quarter of the time in which the full load fills the redo, or a little.
fn step_s(fill_s: f64) -> f64 {
    (fill_s / 4.0).max(0.1)
}

impl Shape {
    /// Shares of the full load; `noise` are shares between `low` and `high`.
    fn course(self, low: f64, high: f64, noise: &[f64]) -> Vec<f64> {
        let at = |step: usize| match self {
            Shape::Ramp => low + (high - low) * step as f64 / SHAPE_STEPS as f64,
            Shape::Burst if step % 16 < 2 => high,
            Shape::Burst => low,
            Shape::Noise => low + (high - low) * noise[step],
            Shape::Doubled if step < SHAPE_STEPS / 2 => low,
            Shape::Doubled => 2.0 * low,
        };
        (0..SHAPE_STEPS).map(at).collect()
    }
}

fn cases() -> ProptestConfig {
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some_and(|value| value == "1");
    ProptestConfig::with_cases(if is_long { 400 } else { 24 })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_load_that_the_device_bears_is_never_stopped_whatever_its_course(
        shape in prop::sample::select(SHAPES.to_vec()),
        (capacity, fill_s) in prop::sample::select(REDOS[..3].to_vec()),
        low in 0.2_f64..0.9,
        high in 0.9_f64..1.8,
        noise in prop::collection::vec(0.0_f64..1.0, SHAPE_STEPS),
        seed in 1_u64..1_000_000,
    ) {
        let plan = Plan { seed, ..Plan::on(capacity, fill_s) };
        let mut run = Run::new(&format!("{shape:?} of {low} and {high}"), plan, fill_s);
        let course = shape.course(low, high, &noise);
        run.plant.offer(run.rate * course[0]);
        run.plant.run(fill_s * 3.0 + 1.0);
        let (mut offered, begun) = (0.0, run.plant.lsn);
        for share in course {
            run.plant.offer(run.rate * share);
            run.plant.run(step_s(fill_s));
            offered += run.rate * share * step_s(fill_s);
        }
        run.no_limit_was_passed();
        prop_assert_eq!(run.plant.seen.waits, 0, "{}", &run.name);
        let admitted = run.plant.lsn.since(begun) as f64 / offered;
        prop_assert!(admitted > 0.95, "{}: {} of the load", &run.name, admitted);
    }

    #[test]
    fn a_load_beyond_the_device_is_held_back_without_a_stop_whatever_its_course(
        shape in prop::sample::select(SHAPES.to_vec()),
        (capacity, fill_s) in prop::sample::select(REDOS[1..3].to_vec()),
        low in 0.5_f64..1.0,
        high in 1.0_f64..2.0,
        device in 0.4_f64..0.8,
        noise in prop::collection::vec(0.0_f64..1.0, SHAPE_STEPS),
        seed in 1_u64..1_000_000,
    ) {
        let plan = Plan { seed, ..Plan::on(capacity, fill_s) };
        let mut run = Run::new(&format!("{shape:?} of {low} and {high}"), plan, fill_s);
        run.settle();
        // So much of what the full load needs.
        let needed = run.per_s(&run.plant.seen.flushed);
        run.plant.device(needed * device);
        for share in shape.course(low, high, &noise) {
            run.plant.offer(run.rate * share);
            run.plant.run(step_s(fill_s));
        }
        run.no_limit_was_passed();
        prop_assert_eq!(run.plant.seen.waits, 0, "{} on {} of the need", &run.name, device);
    }
}
