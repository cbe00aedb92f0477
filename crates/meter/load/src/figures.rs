//! From what a window brought back to figures with intervals and verdicts.
//!
//! Invariant: counts, histograms, slices and processor time of one figure cover the same stretch of
//! the window: all of it, less the warm-up where the length was not fixed beforehand.

use iostrata_io::OpKind;
use iostrata_run::{Cpu, OpFigures, Series, StreamFigures};
use iostrata_spec::{IoApi, IoSpec, Pacing};
use iostrata_stats::{
    Estimate, LatencyHistogram, LatencyUs, Measured, StoppingRule, Verdict, Verdicts, choose_cut,
    estimate, estimate_ratio, is_possible_in_window,
};

use crate::board::{SliceTally, kind_index};
use crate::outcome::{Outcome, StreamOutcome, window_ns_min};
use crate::segment::{KindLatency, Segment};

/// Below this share of the depth asked for, the depth was not reached.
const DEPTH_SHARE_MIN: f64 = 0.75;
/// Above this share of the workers' processor time the processor set the pace.
const CPU_SHARE_MAX: f64 = 0.9;
/// Above this share of it in user space the meter itself did.
const TOOL_SHARE_MAX: f64 = 0.5;
/// Points of a series for a short and slice length for a long window.
const SERIES_POINTS: f64 = 100.0;
const SERIES_WIDTH_S_MAX: f64 = 0.1;
const SERIES_POINTS_MAX: usize = 3_000;

/// An end that lies this near the edge of a slice, in seconds, is on it: rounding of ticks.
const EDGE_S: f64 = 5e-9;

/// The figures of one window.
#[derive(Clone, Debug)]
pub struct WindowFigures {
    /// Length of the measured window after the cut, in seconds.
    pub duration_s: f64,
    /// Warm-up that was cut off, in seconds.
    pub warm_up_s: f64,
    /// One entry per stream.
    pub streams: Vec<StreamFigures>,
    /// The histograms behind them, in the same order.
    pub histograms: Vec<Histograms>,
}

/// The latencies of one stream: reads, writes, flushes.
#[derive(Clone, Debug, Default)]
pub struct Histograms {
    /// By [`kind_index`].
    pub kinds: [Option<KindLatency>; 3],
}

impl WindowFigures {
    /// Computes the figures of a window.
    pub fn of(outcome: &Outcome) -> Self {
        let cut = if outcome.exact { 0 } else { warm_up(&outcome.streams[0]) };
        let mut streams = Vec::new();
        let mut histograms = Vec::new();
        let mut ended_s = 0.0_f64;
        for stream in &outcome.streams {
            let kept = Kept::new(stream, cut, outcome);
            ended_s = ended_s.max(kept.ended_s);
            streams.push(kept.figures());
            histograms.push(Histograms { kinds: kept.segment.kinds });
        }
        Self {
            duration_s: (ended_s - cut as f64 * outcome.slice_s).max(0.0),
            warm_up_s: cut as f64 * outcome.slice_s,
            streams,
            histograms,
        }
    }
}

/// The slice before which the main stream was warming up.
fn warm_up(stream: &StreamOutcome) -> usize {
    let counts: Vec<f64> = stream
        .slices
        .iter()
        .map(|slice| slice.iter().map(|kind| kind.count as f64).sum())
        .collect();
    let candidates: Vec<usize> =
        stream.segments.iter().map(|segment| segment.first_slice).collect();
    choose_cut(&counts, &candidates)
}

/// The part of a stream's outcome that counts.
struct Kept<'a> {
    stream: &'a StreamOutcome,
    spec: &'a IoSpec,
    slices: &'a [SliceTally],
    slice_s: f64,
    /// The end of the stream, which may lie within the last slice, in seconds of the window.
    ended_s: f64,
    /// From the first slice to that end.
    duration_s: f64,
    /// The rule that may have ended the window early, which its intervals allow for.
    rule: Option<StoppingRule>,
    segment: Segment,
}

impl<'a> Kept<'a> {
    fn new(stream: &'a StreamOutcome, cut: usize, outcome: &Outcome) -> Self {
        let cut = cut.max(stream.counted_slice);
        let mut segment = Segment::default();
        for one in stream.segments.iter().filter(|segment| segment.first_slice >= cut) {
            segment.merge(one);
        }
        let slice_s = outcome.slice_s;
        let window_s = stream.slices.len() as f64 * slice_s;
        // The end of a stream that went on to the end of the window is an edge, but for rounding.
        let ended_s = if stream.ended_s > 0.0 { stream.ended_s.min(window_s) } else { window_s };
        let end =
            (((ended_s - EDGE_S) / slice_s).ceil().max(0.0) as usize).min(stream.slices.len());
        let slices = &stream.slices[cut.min(end)..end];
        let duration_s = (ended_s - cut as f64 * slice_s).max(0.0);
        let spec = &stream.plan.spec;
        let rule = (!outcome.exact).then(|| StoppingRule::new(spec.precision, 0));
        Self { stream, spec, slices, slice_s, ended_s, duration_s, rule, segment }
    }

    /// The slices that the stream filled to their end.
    fn full_slices(&self) -> &[SliceTally] {
        let cut_short = self.slices.len() as f64 * self.slice_s - self.duration_s;
        let full = self.slices.len() - usize::from(cut_short > EDGE_S);
        &self.slices[..full]
    }

    fn figures(&self) -> StreamFigures {
        let [read, write, sync] =
            [OpKind::Read, OpKind::Write, OpKind::Sync].map(|kind| self.op(kind));
        let mut verdicts = self.stream.verdicts.clone();
        for op in [&read, &write, &sync].into_iter().flatten() {
            verdicts.merge(&op.iops.verdicts);
        }
        let cpu = self.cpu([&read, &write, &sync]);
        let service_ns: u64 = self.slices.iter().flatten().map(|kind| kind.service_ns).sum();
        let depth_mean = service_ns as f64 * 1e-9 / self.duration_s.max(f64::MIN_POSITIVE);
        self.judge(&cpu, depth_mean, &mut verdicts);
        let mut figures = StreamFigures {
            name: self.stream.plan.name.clone(),
            read,
            write,
            sync,
            total: self.total(),
            duration_s: Some(self.duration_s),
            cpu,
            depth_mean,
            start_lateness_us_p99: self
                .segment
                .lateness
                .as_ref()
                .and_then(|lateness| lateness.percentile_us(99.0)),
            errors: self.stream.failure.counts.clone(),
            notes: self.stream.notes.clone(),
            series: self.series(),
            verdicts,
        };
        let withheld =
            withhold_impossible(&mut figures, self.spec.in_flight_max(), self.duration_s);
        debug_assert!(!withheld, "{:?}", figures.notes);
        figures
    }

    fn op(&self, kind: OpKind) -> Option<OpFigures> {
        let index = kind_index(kind);
        let latency = self.segment.kinds[index].as_ref()?;
        let column = |of: fn(&crate::board::Tally) -> u64| -> Vec<f64> {
            self.slices.iter().map(|slice| of(&slice[index]) as f64).collect()
        };
        let counts = column(|tally| tally.count);
        let ios: u64 = self.slices.iter().map(|slice| slice[index].count).sum();
        assert_eq!(ios, latency.service.count(), "slices and histogram of {kind:?} disagree");
        let bytes = if kind == OpKind::Sync {
            0
        } else if self.spec.variation.is_plain_loop() {
            ios * u64::from(self.spec.block_bytes)
        } else {
            self.segment.bytes[index]
        };
        // Of requests that are slow for the window, or of none at all, too few are independent.
        let least_ns = window_ns_min(self.slices).unwrap_or(f64::INFINITY);
        let is_short = ios == 0 || self.duration_s * 1e9 < least_ns;
        let doubted = |mut measured: Measured| {
            if is_short {
                measured.verdicts.add(Verdict::TooFewSamples);
            }
            measured
        };
        let rate = match ios {
            0 => Measured::without_interval(0.0, 0, Verdicts::none()),
            _ => self.rate(|slice| slice[index].count),
        };
        let mean = |sums: Vec<f64>| doubted(figure(estimate_ratio(&sums, &counts), 1e-3));
        Some(OpFigures {
            ios,
            bytes,
            iops: doubted(rate),
            latency_mean_us: mean(column(|tally| tally.service_ns)),
            latency_us: summary(&latency.service),
            response_mean_us: latency
                .response
                .as_ref()
                .map(|_| mean(column(|tally| tally.response_ns))),
            response_us: latency.response.as_ref().map(summary),
        })
    }

    /// Reads and writes together. Slices are summed before the interval is made: what one kind
    /// gains at the other's cost is no noise of the total.
    fn total(&self) -> Option<Measured> {
        let moved = [OpKind::Read, OpKind::Write].map(kind_index);
        if moved.iter().all(|kind| self.segment.kinds[*kind].is_none()) {
            return None;
        }
        Some(self.rate(|slice| moved.map(|kind| slice[kind].count).iter().sum()))
    }

    /// What is counted per second: all of it over all of the time, with the interval that the full
    /// slices give.
    fn rate(&self, count: impl Fn(&SliceTally) -> u64) -> Measured {
        let full = self.full_slices();
        let counts: Vec<f64> = full.iter().map(|slice| count(slice) as f64).collect();
        let estimate = match &self.rule {
            Some(rule) => rule.estimate(&counts),
            None => estimate(&counts),
        };
        if full.len() == self.slices.len() {
            return figure(estimate, 1.0 / self.slice_s);
        }
        let all: u64 = self.slices.iter().map(count).sum();
        let value = all as f64 / self.duration_s.max(f64::MIN_POSITIVE);
        match estimate.map(|estimate| estimate.measured()) {
            Some(measured) if measured.value > 0.0 => {
                figure_of(measured.scaled(value / measured.value))
            }
            _ => Measured::without_interval(value, 0, Verdicts::none()),
        }
    }

    fn cpu(&self, ops: [&Option<OpFigures>; 3]) -> Cpu {
        let count = |op: &Option<OpFigures>| op.as_ref().map_or(0, |op| op.ios);
        let moved = count(ops[0]) + count(ops[1]);
        let ios = if moved > 0 { moved } else { count(ops[2]) };
        // Spinning for the schedule is work of the pacer, not of the requests.
        let user_s = (self.segment.cpu.user_s - self.segment.pacing_ns as f64 * 1e-9).max(0.0);
        let sys_s = self.segment.cpu.sys_s;
        let ns_per_io = (ios > 0).then(|| (user_s + sys_s) * 1e9 / ios as f64);
        Cpu { user_s, sys_s, ns_per_io }
    }

    fn judge(&self, cpu: &Cpu, depth_mean: f64, verdicts: &mut Verdicts) {
        if self.spec.api == IoApi::Null || self.slices.is_empty() {
            return;
        }
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let capacity_s = self.duration_s * f64::from(self.spec.jobs.min(cpus));
        if cpu.user_s > TOOL_SHARE_MAX * capacity_s {
            verdicts.add(Verdict::ToolLimited);
        }
        if cpu.user_s + cpu.sys_s > CPU_SHARE_MAX * capacity_s {
            verdicts.add(Verdict::CpuLimited);
        }
        let asked = self.spec.in_flight_max();
        let closed = self.spec.pacing == Pacing::Closed && self.spec.flush.is_none();
        if closed && self.spec.depth > 1 && depth_mean < DEPTH_SHARE_MIN * asked {
            verdicts.add(Verdict::DepthNotReached);
        }
    }

    fn series(&self) -> Series {
        let wanted_s = (self.duration_s / SERIES_POINTS).min(SERIES_WIDTH_S_MAX);
        let group = ((wanted_s / self.slice_s).round() as usize)
            .max(1)
            .max(self.slices.len().div_ceil(SERIES_POINTS_MAX));
        // A last, shorter group would look like a drop, so it is left out.
        let groups: Vec<&[SliceTally]> = self.slices.chunks_exact(group).collect();
        let column = |kind: OpKind| {
            if self.segment.kinds[kind_index(kind)].is_none() {
                return Vec::new();
            }
            let count = |slices: &&[SliceTally]| {
                slices.iter().map(|slice| slice[kind_index(kind)].count).sum::<u64>()
            };
            groups.iter().map(count).map(|count| u32::try_from(count).unwrap_or(u32::MAX)).collect()
        };
        let latency = |slices: &&[SliceTally]| {
            let all = slices.iter().flatten();
            let (count, ns) =
                all.fold((0, 0), |sum, kind| (sum.0 + kind.count, sum.1 + kind.service_ns));
            if count == 0 { 0.0 } else { (ns as f64 / count as f64 * 1e-3) as f32 }
        };
        Series {
            width_s: group as f64 * self.slice_s,
            reads: column(OpKind::Read),
            writes: column(OpKind::Write),
            syncs: column(OpKind::Sync),
            latency_mean_us: groups.iter().map(latency).collect(),
        }
    }
}

/// Takes back the figures of a stream whose rate and latency cannot both be true: a defect of the
/// meter, which a reader must not be led astray by. Says whether it had to.
fn withhold_impossible(figures: &mut StreamFigures, in_flight_max: f64, window_s: f64) -> bool {
    let ops = [&figures.read, &figures.write, &figures.sync];
    let slowest_us = ops.into_iter().flatten().map(|op| op.latency_us.max).fold(0.0, f64::max);
    let depth_mean = figures.depth_mean;
    if is_possible_in_window(depth_mean, in_flight_max, slowest_us, window_s) {
        return false;
    }
    (figures.read, figures.write, figures.sync, figures.total) = (None, None, None, None);
    figures.notes.push(format!(
        "figures withheld: rate times latency is {depth_mean:.1} requests in flight, and at most \
         {in_flight_max} were; this is a defect of the program, please report it"
    ));
    true
}

/// An estimate per slice as a figure; what is counted is never negative, so neither is its
/// interval.
fn figure(estimate: Option<Estimate>, factor: f64) -> Measured {
    let Some(estimate) = estimate else {
        return Measured::without_interval(0.0, 0, Verdicts::none());
    };
    figure_of(estimate.measured().scaled(factor))
}

fn figure_of(mut measured: Measured) -> Measured {
    if let Some([low, _]) = &mut measured.ci95 {
        *low = low.max(0.0);
    }
    measured
}

fn summary(histogram: &LatencyHistogram) -> LatencyUs {
    histogram.summary().unwrap_or_default()
}

#[cfg(test)]
mod tests;
