//! The storage itself: what each point would measure on it.

use std::collections::BTreeMap;

use iostrata_plan::{IoApi, IoSpec, OpKind, Point};
use iostrata_run::host::{CpuShares, Evidence, Iostat};
use iostrata_run::{OpFigures, Replicate, Series, StreamFigures};
use iostrata_stats::{Latencies, LatencyUs, Measured, Verdict, Verdicts};

use super::Random;

/// Seconds of a replicate.
const SECONDS: f64 = 0.5;
/// A made-up storage. The defaults are a sound flash drive.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Latency of a read at the device, in microseconds.
    pub read_us: f64,
    /// Latency of a write at the device, in microseconds.
    pub write_us: f64,
    /// What the kernel and the meter add to the device's latency, in microseconds.
    pub above_us: f64,
    /// What a processor that went idle adds to a request that is alone, in microseconds.
    pub idle_us: f64,
    /// Latency of a flush at the device, in microseconds.
    pub flush_us: f64,
    /// Requests that the device serves at the same time.
    pub channels: f64,
    /// Whether flushes of committers that wait together become one.
    pub shares_flushes: bool,
    /// Most requests per second that a limit lets through, waiting above the device.
    pub limit_iops: Option<f64>,
    /// Most requests per second that the volume takes, waiting in it.
    pub volume_iops: Option<f64>,
    /// Most writes per second that the volume takes, where that is another figure.
    pub writes_iops: Option<f64>,
    /// Most bytes per second that the volume takes.
    pub volume_bytes_per_s: Option<f64>,
    /// Most page writes per second in addition to commits and reads.
    pub pages_per_s_max: f64,
    /// Factor on the rate of single points.
    pub factor: BTreeMap<&'static str, f64>,
    /// Relative standard deviation of everything.
    pub noise: f64,
    /// What the hypervisor takes of the processors, in percent; one window in three loses up to as
    /// much of its rate.
    pub steal_pct: f64,
    /// After how many seconds of sustained writing the rate falls to a third.
    pub burst_s: Option<f64>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            read_us: 80.0,
            write_us: 25.0,
            flush_us: 30.0,
            above_us: 5.0,
            idle_us: 0.0,
            channels: 16.0,
            shares_flushes: true,
            limit_iops: None,
            volume_iops: None,
            writes_iops: None,
            volume_bytes_per_s: None,
            pages_per_s_max: 15_000.0,
            factor: BTreeMap::new(),
            noise: 0.02,
            steal_pct: 0.0,
            burst_s: None,
        }
    }
}

/// Rate and latency at the application of one kind of request.
#[derive(Clone, Copy, Debug)]
struct Speed {
    iops: f64,
    application_us: f64,
}

impl Disk {
    /// With a factor on the rate of one point.
    pub fn with(mut self, id: &'static str, factor: f64) -> Self {
        self.factor.insert(id, factor);
        self
    }

    /// One replicate.
    pub fn measure(
        &self,
        point: &Point,
        number: u32,
        random: &mut Random,
        verdicts: &Verdicts,
    ) -> Replicate {
        let wobble = (self.noise * random.normal()).exp();
        let names: Vec<&str> = point.streams.iter().map(|stream| stream.name.as_str()).collect();
        let mut streams = match names.as_slice() {
            [_] => vec![self.alone(point, wobble, random)],
            _ => self.beside_each_other(point, wobble),
        };
        let mut verdicts = verdicts.clone();
        if self.steal_pct > 0.0 {
            verdicts.add(Verdict::Steal);
            let lost = self.steal_pct / 100.0 * random.uniform();
            if random.uniform() < 1.0 / 3.0 {
                streams.iter_mut().for_each(|stream| slow_down(stream, 1.0 - lost));
            }
        }
        Replicate {
            point: point.clone(),
            replicate: number,
            started_s: 0.0,
            duration_s: SECONDS,
            evidence: Some(self.evidence(point, &streams)),
            streams,
            verdicts,
        }
    }

    /// What the volume lets through of requests of this size, where it is capped.
    fn cap_iops(&self, bytes: u32) -> Option<f64> {
        let of_bytes = self.volume_bytes_per_s.map(|most| most / f64::from(bytes));
        self.volume_iops.into_iter().chain(of_bytes).reduce(f64::min)
    }

    fn closed(&self, op: OpKind, spec: &IoSpec, factor: f64) -> Speed {
        let writes = op == OpKind::Write;
        let service_us = if writes { self.write_us } else { self.read_us };
        let in_flight = f64::from(spec.jobs * spec.depth);
        let device_us = service_us * (in_flight / self.channels).max(1.0);
        let idle_us = if in_flight == 1.0 { self.idle_us } else { 0.0 };
        let free = in_flight / (device_us + self.above_us + idle_us) * 1e6 * factor;
        let of_writes = self.writes_iops.filter(|_| writes);
        let held = [self.limit_iops, self.cap_iops(spec.block_bytes), of_writes];
        let iops = held.into_iter().flatten().fold(free, f64::min);
        Speed { iops, application_us: in_flight / iops * 1e6 }
    }

    fn alone(&self, point: &Point, wobble: f64, random: &mut Random) -> StreamFigures {
        let spec = &point.streams[0].spec;
        let factor = self.factor.get(point.id.as_str()).copied().unwrap_or(1.0) * wobble;
        let mut stream = empty(&point.streams[0].name);
        if spec.api == IoApi::Null {
            stream.ops.insert(OpKind::Read, op(2e7, 0.05));
            return stream;
        }
        if point.id == "flush_empty" {
            stream
                .ops
                .insert(OpKind::Sync, op(1e6 / self.flush_us * factor, self.flush_us / factor));
            return stream;
        }
        if point.metric.unit == "commits/s" {
            return self.commit(point, factor);
        }
        if spec.mix.reads() {
            let speed = self.closed(OpKind::Read, spec, factor);
            stream.ops.insert(OpKind::Read, op(speed.iops, speed.application_us));
        }
        if spec.mix.writes() {
            let speed = self.closed(OpKind::Write, spec, factor);
            stream.ops.insert(OpKind::Write, op(speed.iops, speed.application_us));
            if point.id == "sustained_16k" {
                stream.series = self.sustained(speed.iops, random);
            }
        }
        stream
    }

    fn commit(&self, point: &Point, factor: f64) -> StreamFigures {
        let spec = &point.streams[0].spec;
        let committers = f64::from(spec.jobs);
        let flush_us = if spec.flush.is_some() { self.flush_us } else { self.flush_us * 0.8 };
        let write_us = self.write_us + self.above_us;
        let together = if self.shares_flushes { committers } else { 1.0 };
        let iops = together / (write_us + flush_us) * 1e6 * factor;
        let whole_us = committers / iops * 1e6;
        let mut stream = empty("log");
        if spec.flush.is_some() {
            stream.ops.insert(OpKind::Write, op(iops, write_us));
            stream.ops.insert(OpKind::Sync, op(iops, (whole_us - write_us).max(1.0)));
        } else {
            stream.ops.insert(OpKind::Write, op(iops, whole_us));
        }
        stream
    }

    fn beside_each_other(&self, point: &Point, wobble: f64) -> Vec<StreamFigures> {
        let asked = |name: &str| {
            point
                .streams
                .iter()
                .find(|stream| stream.name == name)
                .map(|stream| stream.spec.pacing.rates().sum())
        };
        let pages = asked("pages").unwrap_or(0.0);
        let done = pages.min(self.pages_per_s_max);
        let crowded = if pages > self.pages_per_s_max { 400.0 } else { 1.0 };
        let slow = (1.0 + done / self.pages_per_s_max) * wobble * crowded;
        let one = |stream: &iostrata_plan::Stream| {
            let mut figures = empty(&stream.name);
            let rate = asked(&stream.name).unwrap_or(0.0);
            match stream.name.as_str() {
                "redo" => {
                    let commit_us = (self.write_us + self.flush_us) * slow;
                    figures.ops.insert(OpKind::Write, op(rate, self.write_us));
                    figures.ops.insert(OpKind::Sync, op(rate, commit_us));
                }
                "readers" => figures.ops.insert(OpKind::Read, op(rate, self.read_us * slow)),
                "pages" => figures.ops.insert(OpKind::Write, op(done, self.write_us * slow)),
                _ => figures.ops.insert(OpKind::Write, op(rate * done / pages.max(1.0), 100.0)),
            }
            figures
        };
        point.streams.iter().map(one).collect()
    }

    fn sustained(&self, iops: f64, random: &mut Random) -> Series {
        let slice = |at: usize| {
            let fallen = self.burst_s.is_some_and(|burst_s| at as f64 * 0.1 >= burst_s);
            let level = if fallen { iops / 3.0 } else { iops };
            (level * 0.1 * (1.0 + 0.02 * random.normal())) as u32
        };
        let counts = [(OpKind::Write, (0..120).map(slice).collect())].into_iter().collect();
        Series { width_s: 0.1, counts, ..Series::default() }
    }

    fn evidence(&self, point: &Point, streams: &[StreamFigures]) -> Evidence {
        let spec = &point.streams[0].spec;
        let in_flight = f64::from(spec.jobs * spec.depth);
        let rate = |op: OpKind| {
            streams
                .iter()
                .filter_map(|one| one.ops[op].as_ref())
                .map(|one| one.iops.value)
                .sum::<f64>()
        };
        let capped_us = self.cap_iops(spec.block_bytes).map(|cap| in_flight / cap * 1e6);
        let await_ms = |us: f64, limit: Option<f64>| {
            let queued = if limit.is_some() { 1.0 } else { (in_flight / self.channels).max(1.0) };
            Some((us * queued).max(capped_us.unwrap_or(0.0)) / 1000.0)
        };
        let device = Iostat {
            reads_per_s: rate(OpKind::Read),
            read_await_ms: await_ms(self.read_us, self.limit_iops),
            writes_per_s: rate(OpKind::Write),
            write_await_ms: await_ms(self.write_us, self.limit_iops),
            flushes_per_s: Some(rate(OpKind::Sync)),
            flush_await_ms: Some(self.flush_us / 1000.0),
            ..Iostat::default()
        };
        let (steal_pct, idle_pct) = (self.steal_pct, 90.0 - self.steal_pct);
        let cpu = CpuShares { idle_pct, user_pct: 10.0, steal_pct, ..CpuShares::default() };
        let (device, cpu) = (Some(device), Some(cpu));
        Evidence { seconds: SECONDS, device, cpu, ..Evidence::default() }
    }
}

/// Does the same at a share of the rate.
fn slow_down(stream: &mut StreamFigures, share: f64) {
    for (_, one) in stream.ops.iter_mut() {
        *one = op(one.iops.value * share, one.latency_us.mean / share);
    }
}

fn empty(name: &str) -> StreamFigures {
    let name = name.to_owned();
    StreamFigures { name, total: None, duration_s: None, ..super::study::stream(1.0) }
}

fn op(iops: f64, mean_us: f64) -> OpFigures {
    let near =
        |value: f64| Measured::new(value, [value * 0.99, value * 1.01], 30, Verdicts::none());
    let latency = LatencyUs {
        mean: mean_us,
        p50: mean_us * 0.9,
        p95: mean_us * 1.6,
        p99: mean_us * 2.0,
        p99_9: mean_us * 3.0,
        max: mean_us * 10.0,
    };
    OpFigures {
        ios: (iops * SECONDS) as u64,
        bytes: (iops * SECONDS) as u64 * 4096,
        iops: near(iops),
        latency_mean_us: near(mean_us),
        latency_us: latency,
        response_mean_us: Some(near(mean_us)),
        response_us: Some(latency),
        latencies: Latencies::default(),
    }
}
