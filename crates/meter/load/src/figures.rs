//! From what a window brought back to figures with intervals and verdicts.
//!
//! Invariant: counts, histograms, slices and processor time of one figure cover the same stretch of
//! the window: all of it, less the warm-up where the length was not fixed beforehand.

use std::ops::Range;

use iostrata_plan::{OpKind, PerKind};
use iostrata_run::host::OwnIo;
use iostrata_run::{Cpu, OpFigures, Series, StreamFigures, TransactionFigures};
use iostrata_stats::{
    Latencies, Measured, StoppingRule, Verdict, Verdicts, estimate, estimate_ratio,
    is_possible_in_window,
};

use crate::detail::{CloneDetail, StreamDetail};
use crate::outcome::{CloneOutcome, CpuOf, LoadFailure, StreamOutcome, WindowOutcome};
use crate::segment::Segment;
use crate::tally::{Slices, Tally};

/// Below this share of the configured depth, the depth was not reached.
const DEPTH_SHARE_MIN: f64 = 0.75;
/// Above this share of the workers' processor time the processor set the pace.
const CPU_SHARE_MAX: f64 = 0.9;
/// Above this share of it in user space the meter itself did.
const TOOL_SHARE_MAX: f64 = 0.5;
/// Points of a series for a short and slice length for a long window.
const SERIES_POINTS: f64 = 100.0;
const SERIES_WIDTH_S_MAX: f64 = 0.1;

/// An end that lies this near the edge of a slice, in seconds, is on it: rounding of ticks.
const EDGE_S: f64 = 5e-9;

/// What one window of a load brought: the figures of a replicate, and what its evidence and its end
/// have to be judged by.
#[derive(Clone, Debug, Default)]
pub struct WindowFigures {
    /// Length of the measured window after the cut, in seconds.
    pub duration_s: f64,
    /// Warm-up that was cut off, in seconds.
    pub warm_up_s: f64,
    /// One entry per stream.
    pub streams: Vec<StreamFigures>,
    /// Its details, likewise.
    pub details: Vec<StreamDetail>,
    /// The load's own requests to devices in the window, where known.
    pub own_io: Option<OwnIo>,
    /// Bytes written, counting those outside the window.
    pub written_bytes: u64,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Why it ended early.
    pub failure: Option<LoadFailure>,
}

impl WindowFigures {
    /// Computes the figures of a window.
    pub fn of(outcome: &WindowOutcome) -> Self {
        let cut = outcome.cut_slice;
        let counted: Vec<CountedPart<'_>> =
            outcome.streams.iter().map(|stream| CountedPart::new(stream, cut, outcome)).collect();
        let ended_s = counted.iter().map(|one| one.ended_s).fold(0.0, f64::max);
        Self {
            duration_s: (ended_s - cut as f64 * outcome.slice_s).max(0.0),
            warm_up_s: cut as f64 * outcome.slice_s,
            details: counted.iter().map(CountedPart::detail).collect(),
            streams: counted
                .into_iter()
                .map(CountedPart::figures)
                .map(|figures| without_burst(figures, outcome.failure.is_some()))
                .collect(),
            own_io: outcome.own_io,
            written_bytes: outcome.written_bytes,
            interrupted: outcome.interrupted,
            failure: outcome.failure.clone(),
        }
    }
}

/// A rate that fell because requests failed is no evidence of a burst allowance.
fn without_burst(mut figures: StreamFigures, has_failed: bool) -> StreamFigures {
    if has_failed {
        let of = |verdicts: &Verdicts| -> Verdicts {
            verdicts.iter().filter(|verdict| *verdict != Verdict::BurstLimited).collect()
        };
        figures.verdicts = of(&figures.verdicts);
        for (_, op) in figures.ops.iter_mut() {
            op.iops.verdicts = of(&op.iops.verdicts);
        }
        if let Some(total) = &mut figures.total {
            total.verdicts = of(&total.verdicts);
        }
    }
    figures
}

/// The part of a stream's outcome that counts.
struct CountedPart<'a> {
    stream: &'a StreamOutcome,
    slices: Slices,
    slice_s: f64,
    /// The end of the stream, which may lie within the last slice, in seconds of the window.
    ended_s: f64,
    /// From the first slice to that end.
    duration_s: f64,
    /// What is before the first slice.
    warm_up_s: f64,
    /// The rule that may have ended the window early, which its intervals allow for.
    rule: Option<StoppingRule>,
    segment: Segment,
}

impl<'a> CountedPart<'a> {
    fn new(stream: &'a StreamOutcome, cut: usize, outcome: &WindowOutcome) -> Self {
        let cut = cut.max(stream.counted_slice);
        let mut segment = Segment::default();
        for one in stream.segments.iter().filter(|segment| segment.first_slice >= cut) {
            segment.merge(one);
        }
        let (slice_s, len) = (outcome.slice_s, stream.slices.len);
        let window_s = len as f64 * slice_s;
        // The end of a stream that went on to the end of the window is an edge, but for rounding.
        let ended_s = if stream.ended_s > 0.0 { stream.ended_s.min(window_s) } else { window_s };
        let end = (((ended_s - EDGE_S) / slice_s).ceil().max(0.0) as usize).min(len);
        let slices = stream.slices.range(cut.min(end)..end);
        let duration_s = (ended_s - cut as f64 * slice_s).max(0.0);
        let rule = (!outcome.exact).then(|| StoppingRule::new(stream.asked.precision, 0));
        let warm_up_s = cut as f64 * slice_s;
        Self { stream, slices, slice_s, ended_s, duration_s, warm_up_s, rule, segment }
    }

    fn figures(mut self) -> StreamFigures {
        let bytes =
            OpKind::ALL.map(|kind| self.stream.moved_bytes(kind, &self.slices, [&self.segment]));
        let mut ops = PerKind::default();
        for (kind, of_kind) in std::mem::take(&mut self.segment.kinds).iter_mut() {
            let latencies = std::mem::take(&mut of_kind.latencies);
            ops.insert(kind, self.op(kind, latencies, bytes[kind as usize]));
        }
        let mut verdicts = self.stream.verdicts.clone();
        let total = self.total(&ops);
        match &total {
            // A type of transaction that is rare by its mix is no evidence against all of them.
            Some(total) if self.stream.asked.has_transactions => verdicts.merge(&total.verdicts),
            _ => ops.iter().for_each(|(_, op)| verdicts.merge(&op.iops.verdicts)),
        }
        let cpu = self.cpu(&ops);
        let service_ns: u64 = ops.kinds().map(|kind| self.slices.sum(kind).service_ns).sum();
        let depth_mean = service_ns as f64 * 1e-9 / self.duration_s.max(f64::MIN_POSITIVE);
        self.judge(&cpu, depth_mean, &mut verdicts);
        let transactions = TransactionFigures {
            warm_up_s: self.warm_up_s,
            ..std::mem::take(&mut self.segment.transactions)
        };
        let lateness = self.segment.lateness.as_ref();
        let mut figures = StreamFigures {
            name: self.stream.asked.name.clone(),
            total,
            series: self.series(),
            ops,
            duration_s: Some(self.duration_s),
            cpu,
            depth_mean,
            start_lateness_us_p99: lateness.and_then(|lateness| lateness.percentile_us(99.0)),
            errors: self.stream.failure.counts.clone(),
            transactions: self.stream.asked.has_transactions.then_some(transactions),
            notes: self.stream.notes.clone(),
            verdicts,
        };
        if has_failed(&figures) {
            withdraw_burst(&mut figures);
        }
        let most = self.stream.asked.in_flight_max;
        let withheld = withhold_impossible(&mut figures, most, self.duration_s);
        debug_assert!(!withheld, "{:?}", figures.notes);
        figures
    }

    fn op(&self, kind: OpKind, mut latencies: Latencies, bytes: u64) -> OpFigures {
        let tallies = self.slices.kinds[kind].as_deref().unwrap_or_default();
        latencies.service.note_slices(&slowest_ns(tallies, |tally| tally.service_ns));
        if let Some(response) = &mut latencies.response {
            response.note_slices(&slowest_ns(tallies, |tally| tally.response_ns));
        }
        let column = |of: fn(&Tally) -> u64| -> Vec<f64> {
            tallies.iter().map(|tally| of(tally) as f64).collect()
        };
        let counts = column(|tally| tally.count);
        let ios = self.slices.sum(kind).count;
        assert_eq!(ios, latencies.service.count(), "slices and histogram of {kind:?} disagree");
        // Of requests that are slow for the window, or of none at all, too few are independent.
        let least_ns = self.slices.window_ns_min().unwrap_or(f64::INFINITY);
        let is_short = ios == 0 || self.duration_s * 1e9 < least_ns;
        let doubted = |mut measured: Measured| {
            if is_short {
                measured.verdicts.add(Verdict::TooFewSamples);
            }
            measured
        };
        let rate = match ios {
            0 => Measured::without_interval(0.0, 0, Verdicts::none()),
            _ => self.rate(|one| one == kind, self.part_s(kind)),
        };
        let mean = |sums: Vec<f64>| doubted(figure(estimate_ratio(&sums, &counts), 1e-3));
        let response = latencies.response.as_ref();
        OpFigures {
            ios,
            bytes,
            iops: doubted(rate),
            latency_mean_us: mean(column(|tally| tally.service_ns)),
            latency_us: latencies.service.summary().unwrap_or_default(),
            response_mean_us: response.map(|_| mean(column(|tally| tally.response_ns))),
            response_us: response.map(|response| response.summary().unwrap_or_default()),
            latencies,
        }
    }

    /// Everything but flushes together. Slices are summed before the interval is made: what one
    /// kind gains at the other's cost is no noise of the total.
    fn total(&self, ops: &PerKind<OpFigures>) -> Option<Measured> {
        ops.kinds().any(is_in_total).then(|| self.rate(is_in_total, 0.0..self.duration_s))
    }

    /// What is counted per second: all of it over the part of the time that it belongs to, with the
    /// interval that the slices give which lie in that part whole.
    fn rate(&self, is_counted: impl Fn(OpKind) -> bool, part_s: Range<f64>) -> Measured {
        let counts = self.slices.counts(is_counted);
        let first = ((part_s.start - EDGE_S) / self.slice_s).ceil().max(0.0) as usize;
        let end = (((part_s.end + EDGE_S) / self.slice_s) as usize).min(counts.len());
        let full = counts.get(first..end).unwrap_or_default();
        let estimate = match &self.rule {
            Some(rule) => rule.estimate(full),
            None => estimate(full),
        };
        if full.len() == counts.len() {
            return figure(estimate, 1.0 / self.slice_s);
        }
        let seconds = (part_s.end - part_s.start).max(f64::MIN_POSITIVE);
        let value = counts.iter().sum::<f64>() / seconds;
        match estimate {
            Some(measured) if measured.value > 0.0 => {
                figure_of(measured.scaled(value / measured.value))
            }
            _ => Measured::without_interval(value, 0, Verdicts::none()),
        }
    }

    /// The part of the time that requests of a kind belong to, in seconds from the first slice.
    fn part_s(&self, kind: OpKind) -> Range<f64> {
        let parts = self.stream.clones.iter().filter(|clone| clone.reads_back_s.is_some());
        let parts =
            parts.map(|clone| self.clone_times(clone).part_s(kind, self.stream.asked.reads));
        let both =
            |one: Range<f64>, two: Range<f64>| one.start.min(two.start)..one.end.max(two.end);
        parts.reduce(both).unwrap_or(0.0..self.duration_s)
    }

    fn clone_times(&self, clone: &CloneOutcome) -> CloneDetail {
        let cut_s = self.warm_up_s;
        let ended_s =
            if clone.ended_s > 0.0 { clone.ended_s.min(self.ended_s) } else { self.ended_s };
        CloneDetail {
            duration_s: (ended_s - cut_s).max(0.0),
            reads_back_s: clone.reads_back_s.map(|at_s| (at_s.min(ended_s) - cut_s).max(0.0)),
            ..CloneDetail::default()
        }
    }

    fn cpu(&self, ops: &PerKind<OpFigures>) -> Cpu {
        let count = |is_counted: fn(OpKind) -> bool| -> u64 {
            ops.iter().filter(|(kind, _)| is_counted(*kind)).map(|(_, op)| op.ios).sum()
        };
        let ios =
            Some(count(is_in_total)).filter(|ios| *ios > 0).unwrap_or_else(|| count(|_| true));
        // Spinning for the schedule is work of the pacer, not of the requests.
        let user_s = (self.segment.cpu.user_s - self.segment.pacing_ns as f64 * 1e-9).max(0.0);
        let sys_s = self.segment.cpu.sys_s;
        let ns_per_io = (ios > 0).then(|| (user_s + sys_s) * 1e9 / ios as f64);
        Cpu { user_s, sys_s, ns_per_io }
    }

    fn judge(&self, cpu: &Cpu, depth_mean: f64, verdicts: &mut Verdicts) {
        let asked = &self.stream.asked;
        if asked.cpu_of == CpuOf::Figure || self.slices.len == 0 {
            return;
        }
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let capacity_s = self.duration_s * f64::from(asked.workers.min(cpus));
        if asked.cpu_of == CpuOf::Meter && cpu.user_s > TOOL_SHARE_MAX * capacity_s {
            verdicts.add(Verdict::ToolLimited);
        }
        if cpu.user_s + cpu.sys_s > CPU_SHARE_MAX * capacity_s {
            verdicts.add(Verdict::CpuLimited);
        }
        if asked.holds_depth && depth_mean < DEPTH_SHARE_MIN * asked.in_flight_max {
            verdicts.add(Verdict::DepthNotReached);
        }
    }

    /// What fio's forms of the output show in addition to the figures.
    fn detail(&self) -> StreamDetail {
        let group = self.group();
        let cut = (self.warm_up_s / self.slice_s).round() as usize;
        let of_clone = |clone: &CloneOutcome| {
            let end = (cut + self.slices.len).min(clone.covered);
            let (kinds, slices) = (self.slices.kinds.kinds(), cut.min(end)..end);
            CloneDetail {
                width_s: group as f64 * self.slice_s,
                series: clone.shared.grouped(clone.worker, kinds, slices, group),
                ..self.clone_times(clone)
            }
        };
        StreamDetail {
            requests: self.segment.detail.as_deref().cloned().unwrap_or_default(),
            used: self.segment.cpu,
            steady: self.stream.steady.clone(),
            clones: self.stream.clones.iter().map(of_clone).collect(),
        }
    }

    /// Slices in one point of a series.
    fn group(&self) -> usize {
        let wanted_s = (self.duration_s / SERIES_POINTS).min(SERIES_WIDTH_S_MAX);
        ((wanted_s / self.slice_s).round() as usize)
            .max(1)
            .max(self.slices.len.div_ceil(self.stream.asked.series_points_max))
    }

    fn series(&self) -> Series {
        let group = self.group();
        let groups = self.slices.len / group;
        let sums = self.slices.grouped(group);
        let latency = |at: usize| {
            let mut all = Tally::default();
            sums.iter().for_each(|(_, tallies)| all.add(tallies[at]));
            (all.service_ns as f64 / all.count.max(1) as f64 * 1e-3) as f32
        };
        let count = |tally: &Tally| u32::try_from(tally.count).unwrap_or(u32::MAX);
        Series {
            width_s: group as f64 * self.slice_s,
            counts: sums.map(|_, tallies| tallies.iter().map(count).collect()),
            latency_mean_us: (0..groups).map(latency).collect(),
        }
    }
}

/// How slow the slowest request of each slice is, in nanoseconds: as if all that the slice has more
/// than its requests usually take were of one. Of one request it is exact, and a stall stands out.
fn slowest_ns(tallies: &[Tally], sum: fn(&Tally) -> u64) -> Vec<u64> {
    let mut means: Vec<u64> =
        tallies.iter().filter(|one| one.count > 0).map(|one| sum(one) / one.count).collect();
    means.sort_unstable();
    let usual_ns = means.get(means.len() / 2).copied().unwrap_or(0);
    let slowest = |one: &Tally| {
        let others_ns = one.count.saturating_sub(1).saturating_mul(usual_ns);
        sum(one).saturating_sub(others_ns).max(sum(one) / one.count.max(1))
    };
    tallies.iter().map(slowest).collect()
}

/// Whether operations of a kind are part of a stream's total: flushes only make others durable.
fn is_in_total(kind: OpKind) -> bool {
    kind != OpKind::Sync
}

/// Takes back the figures of a stream whose rate and latency cannot both be true: a defect of the
/// meter, which must not mislead a reader. Returns whether it had to.
fn withhold_impossible(figures: &mut StreamFigures, in_flight_max: f64, window_s: f64) -> bool {
    let slowest_us = figures.ops.iter().map(|(_, op)| op.latency_us.max).fold(0.0, f64::max);
    let depth_mean = figures.depth_mean;
    if is_possible_in_window(depth_mean, in_flight_max, slowest_us, window_s) {
        return false;
    }
    (figures.ops, figures.total) = (PerKind::default(), None);
    figures.notes.push(format!(
        "figures withheld: rate times latency is {depth_mean:.1} requests in flight, and at most \
         {in_flight_max} were; this is a defect of the program, please report it"
    ));
    true
}

/// An estimate per slice as a figure; what is counted is never negative, so neither is its
/// interval.
fn figure(estimate: Option<Measured>, factor: f64) -> Measured {
    let Some(estimate) = estimate else {
        return Measured::without_interval(0.0, 0, Verdicts::none());
    };
    figure_of(estimate.scaled(factor))
}

fn figure_of(mut measured: Measured) -> Measured {
    if let Some([low, _]) = &mut measured.ci95 {
        *low = low.max(0.0);
    }
    measured
}

/// Share of all that was tried that must have failed for a fall of the rate to be its doing. A few
/// deadlocks are how databases are.
const FAILED_SHARE_MIN: f64 = 0.01;

/// Whether requests failed that may be what made the rate fall.
fn has_failed(figures: &StreamFigures) -> bool {
    let failed: u64 = figures.transactions.iter().flat_map(|all| all.errors.values()).sum();
    let done: u64 = figures.ops.iter().map(|(_, op)| op.ios).sum();
    let share = failed as f64 / (failed + done).max(1) as f64;
    !figures.errors.is_empty() || share >= FAILED_SHARE_MIN
}

/// A rate that fell where requests failed is no allowance that ran out.
fn withdraw_burst(figures: &mut StreamFigures) {
    let without = |verdicts: &mut Verdicts| {
        *verdicts = verdicts.iter().filter(|one| *one != Verdict::BurstLimited).collect();
    };
    without(&mut figures.verdicts);
    figures.total.iter_mut().for_each(|total| without(&mut total.verdicts));
    for (_, op) in figures.ops.iter_mut() {
        without(&mut op.iops.verdicts);
        without(&mut op.latency_mean_us.verdicts);
    }
}

/// Figures of windows on virtual time: what is doubted, what is withheld.
#[cfg(test)]
mod tests {
    use iostrata_plan::Mix;

    use super::*;
    use crate::job::asked;
    use crate::loop_tests::{on_memory, small};

    /// The window of a disk that answers all requests in flight after so many nanoseconds.
    fn outcome(depth: u32, slices: u32, latency_ns: u64) -> WindowOutcome {
        let mut spec = small(Mix::Read);
        spec.depth = depth;
        let passes = move |number| if number % u64::from(depth) == 0 { latency_ns } else { 0 };
        let (job, _, shared) = on_memory(spec.clone(), slices, passes);
        let slices = shared.slices(&[0], &[OpKind::Read], slices as usize);
        let mut stream = StreamOutcome::new(asked("main", &spec), slices);
        stream.add_segments(job.segments);
        WindowOutcome {
            streams: vec![stream],
            slice_s: 1e-3,
            exact: true,
            cut_slice: 0,
            interrupted: false,
            own_io: None,
            written_bytes: 0,
            failure: None,
        }
    }

    fn main_stream(outcome: &WindowOutcome) -> StreamFigures {
        WindowFigures::of(outcome).streams.remove(0)
    }

    #[test]
    fn a_window_shorter_than_twenty_latencies_says_so() {
        for (slices, is_short) in [(250, true), (1_200, true), (1_400, false)] {
            let stream = main_stream(&outcome(32, slices, 64_000_000));
            let read = stream.ops[OpKind::Read].as_ref().unwrap();
            assert!((read.latency_us.mean / 64_000.0 - 1.0).abs() < 0.01, "{:?}", read.latency_us);
            for figure in [&read.iops, &read.latency_mean_us] {
                assert_eq!(figure.verdicts.has(Verdict::TooFewSamples), is_short, "{slices}");
            }
        }
    }

    #[test]
    fn a_window_without_a_completion_has_no_rate() {
        let stream = main_stream(&outcome(4, 50, 1_000_000_000));
        let read = stream.ops[OpKind::Read].as_ref().unwrap();
        assert_eq!(read.ios, 0);
        assert!(read.iops.verdicts.has(Verdict::TooFewSamples));
        assert_eq!((read.iops.ci95, read.iops.n), (None, 0), "how few they are is unknown");
    }

    #[test]
    fn rate_times_latency_is_what_was_in_flight() {
        for depth in [1, 8] {
            let stream = main_stream(&outcome(depth, 400, 400_000));
            let read = stream.ops[OpKind::Read].as_ref().unwrap();
            let product = read.iops.value * read.latency_us.mean * 1e-6;
            assert!((product / f64::from(depth) - 1.0).abs() < 0.02, "{product} of {depth}");
            assert!((product - stream.depth_mean).abs() < 1e-6);
        }
    }

    #[test]
    fn figures_that_contradict_each_other_are_withheld() {
        let mut stream = main_stream(&outcome(8, 400, 400_000));
        let kept = stream.clone();
        assert!(!withhold_impossible(&mut stream, 8.0, 0.4));
        assert_eq!(stream, kept);
        assert!(withhold_impossible(&mut stream, 1.0, 0.4), "8 in flight where one may be");
        assert!(stream.ops.is_empty() && stream.total.is_none());
        assert!(
            stream.notes[0].contains("8.0 requests in flight, and at most 1"),
            "{:?}",
            stream.notes
        );
    }

    #[test]
    fn a_rate_that_fell_where_requests_failed_is_no_burst() {
        let fallen = || {
            let mut stream = main_stream(&outcome(8, 400, 400_000));
            stream.verdicts.add(Verdict::BurstLimited);
            stream.verdicts.add(Verdict::NotSteady);
            stream.ops.get_mut(OpKind::Read).unwrap().iops.verdicts.add(Verdict::BurstLimited);
            stream
        };
        let with_errors = |errors: u64| {
            let mut stream = fallen();
            let errors = [("no_space".to_owned(), errors)].into_iter().collect();
            stream.transactions = Some(TransactionFigures { errors, ..Default::default() });
            stream
        };
        let mut full = with_errors(5_000);
        assert!(has_failed(&full) && !has_failed(&with_errors(1)) && !has_failed(&fallen()));
        withdraw_burst(&mut full);
        assert!(!full.verdicts.has(Verdict::BurstLimited) && full.verdicts.has(Verdict::NotSteady));
        assert!(!full.ops[OpKind::Read].as_ref().unwrap().iops.verdicts.has(Verdict::BurstLimited));
    }
}
