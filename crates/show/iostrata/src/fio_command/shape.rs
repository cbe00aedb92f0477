//! Results in the shape of fio's JSON: every key that fio 3.33 writes for the same jobs, with its
//! type, with `job_start` of newer versions and `iostrata` in addition.
//!
//! Invariant: what a direction, a job or an engine does not have is zero, as fio has it. The other
//! forms of the output are made of this one alone.

use std::collections::BTreeMap;
use std::ops::Range;

use iostrata_load::{CloneDetail, RequestDetail, SteadyRates};
use iostrata_plan::fio::{FioPercentiles, FioPlan, FioReporting};
use iostrata_plan::{FileCall, IoApi, OpKind, Steady, SteadyLimit, SteadyOf, Stream, Words};
use iostrata_run::OpFigures;
use iostrata_stats::LatencyHistogram;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::measured::{DeviceUse, MeasuredStream, MeasuredWave};

/// Window of fio's own samples of bandwidth and requests, in seconds.
const SAMPLE_S: f64 = 0.5;
/// Shares above zero are at least this much in buckets of latency, in percent.
const LATENCY_PCT_MIN: f64 = 0.01;
/// The same in classes of depths and batches.
const DEPTH_PCT_MIN: f64 = 0.1;

/// Depths that classes begin with.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Batches that classes end with.
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Latencies that buckets end with, in each unit.
const LATENCIES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// An object whose names keep their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Entries<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder(std::marker::PhantomData))
    }
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FioShape {
    #[serde(rename = "fio version")]
    pub version: String,
    pub timestamp: i64,
    pub timestamp_ms: i64,
    pub time: String,
    #[serde(rename = "global options", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub global_options: BTreeMap<String, String>,
    pub jobs: Vec<JobShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_util: Vec<DiskShape>,
    /// What fio has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iostrata: Option<serde_json::Value>,
}

/// A clone, or those that are reported as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobShape {
    pub jobname: String,
    pub groupid: u32,
    /// In milliseconds since 1970; newer versions of fio have it.
    #[serde(default)]
    pub job_start: i64,
    pub error: i32,
    pub eta: u64,
    pub elapsed: u64,
    #[serde(rename = "job options")]
    pub options: BTreeMap<String, String>,
    /// Directions; absent where they are only in `mixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<DirectionShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<DirectionShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<DirectionShape>,
    /// All directions as one, where that is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed: Option<DirectionShape>,
    pub sync: SyncShape,
    pub job_runtime: u64,
    pub usr_cpu: f64,
    pub sys_cpu: f64,
    pub ctx: u64,
    pub majf: u64,
    pub minf: u64,
    pub iodepth_level: Entries<f64>,
    pub iodepth_submit: Entries<f64>,
    pub iodepth_complete: Entries<f64>,
    pub latency_ns: Entries<f64>,
    pub latency_us: Entries<f64>,
    pub latency_ms: Entries<f64>,
    pub latency_depth: u32,
    pub latency_target: u64,
    pub latency_percentile: f64,
    pub latency_window: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desc: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadystate: Option<SteadyShape>,
    /// What fio has not: its workloads with their intervals and verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iostrata: Option<serde_json::Value>,
    /// How many clones it stands for.
    #[serde(skip)]
    pub clones: u32,
}

impl JobShape {
    /// The directions that are reported, with their names.
    pub fn directions(&self) -> impl Iterator<Item = (&'static str, &DirectionShape)> {
        let named = [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
            ("mixed", &self.mixed),
        ];
        named.into_iter().filter_map(|(name, one)| Some((name, one.as_ref()?)))
    }
}

/// Requests of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionShape {
    pub io_bytes: u64,
    pub io_kbytes: u64,
    pub bw_bytes: u64,
    pub bw: u64,
    pub iops: f64,
    pub runtime: u64,
    pub total_ios: u64,
    pub short_ios: u64,
    pub drop_ios: u64,
    pub slat_ns: LatencyShape,
    pub clat_ns: LatencyShape,
    pub lat_ns: LatencyShape,
    pub bw_min: u64,
    pub bw_max: u64,
    pub bw_agg: f64,
    pub bw_mean: f64,
    pub bw_dev: f64,
    pub bw_samples: u64,
    pub iops_min: u64,
    pub iops_max: u64,
    pub iops_mean: f64,
    pub iops_stddev: f64,
    pub iops_samples: u64,
}

/// Flushes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncShape {
    pub total_ios: u64,
    pub lat_ns: LatencyShape,
}

/// A distribution in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyShape {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stddev: f64,
    #[serde(rename = "N")]
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Entries<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<Entries<u64>>,
}

/// Whether the rate became steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyShape {
    /// The criterion, such as `iops:2.000000%`.
    pub ss: String,
    /// In seconds.
    pub duration: u64,
    pub attained: u8,
    pub criterion: String,
    pub max_deviation: f64,
    pub slope: f64,
    pub data: SteadyData,
}

/// The last seconds that were evaluated; zero where there were fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyData {
    pub bw_mean: u64,
    pub iops_mean: u64,
    pub iops: Vec<u64>,
    pub bw: Vec<u64>,
}

impl SteadyShape {
    /// `block_bytes` is the mean of all requests: bandwidth is judged by their number.
    fn of(steady: &Steady, rates: &SteadyRates, block_bytes: f64) -> Self {
        let (limit, sign) = match steady.limit {
            SteadyLimit::Pct(limit) => (limit, "%"),
            SteadyLimit::Plain(limit) => (limit, ""),
        };
        let is_bandwidth = matches!(steady.of, SteadyOf::Bandwidth | SteadyOf::BandwidthSlope);
        let unit = if is_bandwidth { block_bytes } else { 1.0 };
        let criterion = if sign == "%" { rates.criterion } else { rates.criterion * unit };
        let duration = steady.duration.as_secs();
        let seconds = |of: f64| -> Vec<u64> {
            let known = rates.requests.iter().map(|requests| (requests * of).round() as u64);
            known.chain(std::iter::repeat(0)).take(duration as usize).collect()
        };
        let mean = |all: &[u64]| all.iter().sum::<u64>() / duration.max(1);
        let (iops, bw) = (seconds(1.0), seconds(block_bytes));
        Self {
            ss: format!("{}:{limit:.6}{sign}", steady.of.name()),
            duration,
            attained: u8::from(rates.is_attained),
            criterion: format!("{criterion:.6}{sign}"),
            max_deviation: rounded(rates.deviation_max * unit),
            slope: rounded(rates.slope * unit),
            data: SteadyData { bw_mean: mean(&bw), iops_mean: mean(&iops), iops, bw },
        }
    }
}

/// What a device did meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskShape {
    pub name: String,
    pub read_ios: u64,
    pub write_ios: u64,
    pub read_merges: u64,
    pub write_merges: u64,
    pub read_ticks: u64,
    pub write_ticks: u64,
    pub in_queue: u64,
    pub util: f64,
}

/// What stands where fio names its version: the one whose forms these are, which programs that read
/// them look for, and who wrote them.
pub fn version() -> String {
    format!("fio-3.33-iostrata-{}", env!("CARGO_PKG_VERSION"))
}

/// The document of what was measured so far; `bins` adds the histograms of fio's json+.
pub fn document(plan: &FioPlan, waves: &[&MeasuredWave], bins: bool) -> FioShape {
    let now = jiff::Zoned::now();
    let mut jobs = Vec::new();
    for wave in waves {
        let streams = wave.streams(&plan.waves[wave.number]);
        let elapsed = (wave.replicate.started_s + wave.replicate.duration_s).ceil() as u64;
        for unit in reported(&streams) {
            jobs.extend(unit.shape(wave, elapsed, bins));
        }
    }
    share_bandwidth(&mut jobs);
    FioShape {
        version: version(),
        timestamp: now.timestamp().as_second(),
        timestamp_ms: now.timestamp().as_millisecond(),
        time: now.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        global_options: plan.global_options.clone(),
        jobs,
        disk_util: disks(waves),
        iostrata: None,
    }
}

/// Sets the share that each has of the bandwidth of its group, direction by direction.
fn share_bandwidth(jobs: &mut [JobShape]) {
    let directions: [fn(&mut JobShape) -> &mut Option<DirectionShape>; 4] =
        [|job| &mut job.read, |job| &mut job.write, |job| &mut job.trim, |job| &mut job.mixed];
    for direction in directions {
        let mut groups: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for job in jobs.iter_mut() {
            let (bytes, runtime) = groups.entry(job.groupid).or_default();
            let Some(one) = direction(job) else { continue };
            *bytes += one.io_bytes;
            *runtime = (*runtime).max(one.runtime);
        }
        for job in jobs.iter_mut() {
            let (bytes, runtime) = groups.get(&job.groupid).copied().unwrap_or_default();
            if let Some(one) = direction(job)
                && bytes > 0
            {
                let whole = bytes as f64 / 1.024 / runtime.max(1) as f64;
                one.bw_agg = rounded((100.0 * one.bw_mean / whole).min(100.0));
            }
        }
    }
}

/// Streams that are reported as one.
struct Unit<'a>(Vec<MeasuredStream<'a>>);

/// Streams of jobs with group_reporting by group; all others one by one.
fn reported<'a>(streams: &[MeasuredStream<'a>]) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    for stream in streams {
        if !stream.job.group_reporting {
            units.push(Unit(vec![*stream]));
            continue;
        }
        let at = *groups.entry(stream.job.group).or_insert_with(|| {
            units.push(Unit(Vec::new()));
            units.len() - 1
        });
        units[at].0.push(*stream);
    }
    units
}

impl<'a> Unit<'a> {
    fn shape(&self, wave: &MeasuredWave, elapsed: u64, bins: bool) -> Option<JobShape> {
        let first = self.0.first()?;
        let errno = self.0.iter().flat_map(|one| &one.figures.errors).map(|error| error.errno);
        let requests = self.requests();
        let spread = Spread { percentiles: &first.job.percentiles, bins };
        let (of, target) = (first.job.percentiles_of, first.job.latency_target);
        let op = |kinds: &[OpKind]| self.direction(kinds, spread, of);
        let service = self.service(&[OpKind::Sync]);
        let unified = first.job.unified;
        let [read, write, trim] =
            OpKind::DIRECTIONS.map(|kind| (unified != FioReporting::Mixed).then(|| op(&[kind])));
        let mixed = (unified != FioReporting::None).then(|| op(&OpKind::DIRECTIONS));
        let ios = self.ios();
        let depths = |counts: &[u64]| shares(&DEPTHS, counts, ios, DEPTH_PCT_MIN);
        let batches = |counts: &[u64; 7]| {
            // The null engine has neither.
            let is_null = first.stream.spec.api == IoApi::Null;
            let counts = if is_null { &[0; 7] } else { counts };
            shares(&BATCHES, counts, counts.iter().sum(), DEPTH_PCT_MIN)
        };
        let buckets = LatencyBuckets::of(&self.completions(&requests), ios);
        let runtime_ms = self.runtime_s() * 1000.0;
        let cpu = |of: fn(&iostrata_run::Cpu) -> f64| {
            let seconds: f64 = self.0.iter().map(|one| of(&one.figures.cpu)).sum();
            rounded(100_000.0 * seconds / runtime_ms.max(f64::MIN_POSITIVE))
        };
        let used = |of: fn(&iostrata_load::ThreadUse) -> u64| -> u64 {
            self.0.iter().map(|one| of(&one.detail.used)).sum()
        };
        Some(JobShape {
            jobname: first.job.name.clone(),
            groupid: first.job.group,
            job_start: wave.began_ms,
            error: errno.max().unwrap_or(0),
            eta: 0,
            elapsed,
            options: first.job.options.clone(),
            read,
            write,
            trim,
            mixed,
            sync: SyncShape {
                total_ios: service.count(),
                lat_ns: latency(&service, spread.when(of.clat || of.lat)),
            },
            job_runtime: runtime_ms.round() as u64,
            usr_cpu: cpu(|cpu| cpu.user_s),
            sys_cpu: cpu(|cpu| cpu.sys_s),
            ctx: used(|used| used.context_switches),
            majf: used(|used| used.major_faults),
            minf: used(|used| used.minor_faults),
            iodepth_level: depths(&requests.depths),
            iodepth_submit: batches(&requests.submissions),
            iodepth_complete: batches(&requests.completions),
            latency_ns: buckets.ns,
            latency_us: buckets.us,
            latency_ms: buckets.ms,
            latency_depth: first.depth(wave),
            latency_target: target.map_or(0, |target| target.latency.as_nanos() as u64),
            latency_percentile: target.map_or(100.0, |target| target.percentile),
            latency_window: target.map_or(0, |target| target.window.as_micros() as u64),
            desc: first.job.description.clone(),
            steadystate: self.steady(),
            iostrata: Some(self.ours(wave)),
            clones: self.0.iter().map(|one| one.stream.spec.jobs).sum(),
        })
    }

    /// Its workloads as our own document has them.
    fn ours(&self, wave: &MeasuredWave) -> serde_json::Value {
        let workloads = self.0.iter().map(|one| one.document(wave));
        serde_json::json!({ "workloads": workloads.collect::<Vec<_>>() })
    }

    /// Its requests in detail, all of its streams together.
    fn requests(&self) -> RequestDetail {
        let mut all = RequestDetail::default();
        self.0.iter().for_each(|one| all.merge(&one.detail.requests));
        all
    }

    /// Its clones, each with whether its mix has reads.
    fn clones(&self) -> impl Iterator<Item = (&'a CloneDetail, bool)> {
        let with = |one: &MeasuredStream<'a>| {
            let reads = one.stream.spec.mix.reads();
            one.detail.clones.iter().map(move |clone| (clone, reads))
        };
        self.0.iter().flat_map(with)
    }

    /// How long its clones ran, added up, in seconds.
    fn runtime_s(&self) -> f64 {
        let clones: f64 = self.clones().map(|(clone, _)| clone.duration_s).sum();
        let streams = self.0.iter().filter_map(|one| one.figures.duration_s);
        if clones > 0.0 { clones } else { streams.sum() }
    }

    fn ops(&self, kinds: &[OpKind]) -> impl Iterator<Item = &'a OpFigures> {
        let of_kind = |kind: &OpKind| {
            let kind = *kind;
            self.0.iter().filter_map(move |one| one.figures.ops[kind].as_ref())
        };
        kinds.iter().flat_map(of_kind)
    }

    /// How long each clone made requests of a kind, as fio has it: what is read back to be verified
    /// comes behind the writes.
    fn parts_s(&self, kind: OpKind) -> impl Iterator<Item = f64> {
        let of_kind = self.0.iter().filter(move |one| one.figures.ops[kind].is_some());
        of_kind.flat_map(move |one| {
            let clones = one.detail.clones.iter().map(move |clone| {
                let part_s = clone.part_s(kind, one.stream.spec.mix.reads());
                part_s.end - part_s.start
            });
            let whole_s = one.figures.duration_s.filter(|_| one.detail.clones.is_empty());
            clones.chain(whole_s)
        })
    }

    fn service(&self, kinds: &[OpKind]) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        self.ops(kinds).for_each(|op| all.merge(&op.latencies.service));
        all
    }

    /// From the submission to the completion, where these are apart; else the whole.
    fn completion(&self, requests: &RequestDetail, kind: OpKind) -> LatencyHistogram {
        match &requests.completion[kind] {
            Some(completion) if self.is_apart() => completion.clone(),
            _ => self.service(&[kind]),
        }
    }

    /// Whether it became steady, of clones that are judged as one; where several jobs are reported
    /// as one, of the first that requests it.
    fn steady(&self) -> Option<SteadyShape> {
        let (ios, bytes): (u64, u64) = self
            .ops(&OpKind::DIRECTIONS)
            .fold((0, 0), |(ios, bytes), op| (ios + op.ios, bytes + op.bytes));
        let block_bytes = bytes as f64 / ios.max(1) as f64;
        self.0.iter().find_map(|one| {
            let steady = one.stream.spec.variation.steady.as_ref()?;
            Some(SteadyShape::of(steady, one.detail.steady.as_ref()?, block_bytes))
        })
    }

    /// Requests of all directions, or calls for files.
    fn ios(&self) -> u64 {
        self.ops(&OpKind::DIRECTIONS).map(|op| op.ios).sum()
    }

    /// Bytes that count as a request, where requests are calls for files as a whole. As in fio,
    /// only `clat_ns` is of the calls.
    fn counted_bytes(&self) -> Option<u32> {
        self.0.first().and_then(|one| one.job.counted_bytes)
    }

    fn is_apart(&self) -> bool {
        self.0.iter().all(|one| matches!(one.stream.spec.api, IoApi::Libaio | IoApi::IoUring))
    }

    fn completions(&self, requests: &RequestDetail) -> LatencyHistogram {
        if self.counted_bytes().is_some() {
            return LatencyHistogram::default();
        }
        self.completions_of(requests, &OpKind::DIRECTIONS)
    }

    fn completions_of(&self, requests: &RequestDetail, kinds: &[OpKind]) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        kinds.iter().for_each(|kind| all.merge(&self.completion(requests, *kind)));
        all
    }

    fn submissions_of(&self, requests: &RequestDetail, kinds: &[OpKind]) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        let submissions = kinds.iter().filter_map(|kind| requests.submission[*kind].as_ref());
        submissions.filter(|_| self.is_apart()).for_each(|one| all.merge(one));
        all
    }

    fn direction(
        &self,
        kinds: &[OpKind],
        spread: Spread<'_>,
        percentiles_of: FioPercentiles,
    ) -> DirectionShape {
        let (ios, bytes) =
            self.ops(kinds).fold((0, 0), |(ios, bytes), op| (ios + op.ios, bytes + op.bytes));
        if ios == 0 {
            return DirectionShape::default();
        }
        let parts_s = kinds.iter().flat_map(|kind| self.parts_s(*kind));
        let duration_s = parts_s.fold(0.0, f64::max);
        let seconds = duration_s.max(f64::MIN_POSITIVE);
        let requests = self.requests();
        let submission = self.submissions_of(&requests, kinds);
        let service = self.service(kinds);
        let counted_bytes = self.counted_bytes();
        let calls = ios;
        let ios = counted_bytes.map_or(ios, |block| bytes / u64::from(block.max(1)));
        let rates = match counted_bytes {
            Some(_) => Samples::default(),
            None => Samples::of(self, kinds, ios as f64 / seconds),
        };
        let whole = if counted_bytes.is_some() { LatencyHistogram::default() } else { service };
        let block_kib = bytes as f64 / calls as f64 / 1024.0;
        DirectionShape {
            io_bytes: bytes,
            io_kbytes: bytes / 1024,
            bw_bytes: (bytes as f64 / seconds).round() as u64,
            bw: (bytes as f64 / 1024.0 / seconds).round() as u64,
            iops: rounded(ios as f64 / seconds),
            runtime: (duration_s * 1000.0).round() as u64,
            total_ios: ios,
            short_ios: 0,
            drop_ios: 0,
            slat_ns: latency(&submission, spread.when(percentiles_of.slat)),
            clat_ns: latency(
                &self.completions_of(&requests, kinds),
                spread.when(percentiles_of.clat),
            ),
            lat_ns: latency(&whole, spread.when(percentiles_of.lat)),
            bw_min: (rates.min * block_kib).round() as u64,
            bw_max: (rates.max * block_kib).round() as u64,
            bw_agg: 0.0,
            bw_mean: rounded(rates.mean * block_kib),
            bw_dev: rounded(rates.stddev() * block_kib),
            bw_samples: rates.count,
            iops_min: rates.min.round() as u64,
            iops_max: rates.max.round() as u64,
            iops_mean: rounded(rates.mean),
            iops_stddev: rounded(rates.stddev()),
            iops_samples: rates.count,
        }
    }
}

/// Requests per second in windows of half a second. fio samples each clone by itself; of clones
/// that are reported as one, it adds up least, largest and mean.
#[derive(Default)]
struct Samples {
    min: f64,
    max: f64,
    mean: f64,
    squares: f64,
    count: u64,
}

impl Samples {
    fn of(unit: &Unit<'_>, kinds: &[OpKind], rate: f64) -> Self {
        let mut sum = Self::default();
        for (clone, reads) in unit.clones() {
            let parts_s = kinds.iter().map(|kind| clone.part_s(*kind, reads));
            let both =
                |one: Range<f64>, two: Range<f64>| one.start.min(two.start)..one.end.max(two.end);
            let samples = samples(clone, parts_s.reduce(both).unwrap_or_default(), kinds);
            let n = samples.len() as f64;
            if samples.is_empty() {
                continue;
            }
            let mean = samples.iter().sum::<f64>() / n;
            sum.min += samples.iter().copied().fold(f64::INFINITY, f64::min);
            sum.max += samples.iter().copied().fold(0.0, f64::max);
            sum.mean += mean;
            sum.squares += samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
            sum.count += samples.len() as u64;
        }
        if sum.count == 0 {
            // What is shorter than a window is one sample.
            return Self { min: rate, max: rate, mean: rate, squares: 0.0, count: 1 };
        }
        sum
    }

    fn stddev(&self) -> f64 {
        (self.squares / self.count.saturating_sub(1).max(1) as f64).sqrt()
    }
}

/// The rates of one clone in windows of half a second of the part of its time that requests of
/// these kinds belong to, or of its series where that is wider.
fn samples(clone: &CloneDetail, part_s: Range<f64>, kinds: &[OpKind]) -> Vec<f64> {
    let width_s = clone.width_s.max(1e-9);
    let group = ((SAMPLE_S / width_s).round() as usize).max(1);
    let seconds = group as f64 * width_s;
    let series = || kinds.iter().filter_map(|kind| clone.series[*kind].as_deref());
    let len = series().map(<[_]>::len).max().unwrap_or(0);
    let at = |second: f64| ((second / width_s + 1e-6) as usize).min(len);
    let count = |at: usize| series().filter_map(|one| one.get(at)).map(|one| one.count).sum();
    let counts: Vec<u64> = (at(part_s.start)..at(part_s.end)).map(count).collect();
    let rate = |counts: &[u64]| counts.iter().sum::<u64>() as f64 / seconds;
    counts.chunks_exact(group).map(rate).collect()
}

/// Counts as percent of a whole, by the names of their classes.
fn shares<N: AsRef<str>>(names: &[N], counts: &[u64], whole: u64, least_pct: f64) -> Entries<f64> {
    let share = |count: u64| share(count, whole, least_pct);
    let entry = |(name, one): (&N, &u64)| (name.as_ref().to_owned(), share(*one));
    Entries(names.iter().zip(counts).map(entry).collect())
}

fn share(count: u64, whole: u64, least_pct: f64) -> f64 {
    match count {
        0 => 0.0,
        count => rounded((100.0 * count as f64 / whole.max(1) as f64).max(least_pct)),
    }
}

/// Shares of latencies in fio's buckets.
struct LatencyBuckets {
    ns: Entries<f64>,
    us: Entries<f64>,
    ms: Entries<f64>,
}

impl LatencyBuckets {
    fn of(completions: &LatencyHistogram, ios: u64) -> Self {
        let unit = |ns: u64| LATENCIES.map(|end| end * ns);
        let mut ends: Vec<u64> = [unit(1), unit(1_000), unit(1_000_000)].concat();
        ends.push(2_000_000_000);
        let mut counts = vec![0_u64; ends.len() + 1];
        for bucket in completions.iter_buckets() {
            let middle_ns = middle_ns(bucket.low_us, bucket.high_us);
            counts[ends.partition_point(|end| *end <= middle_ns)] += bucket.count;
        }
        let mut names: Vec<String> = LATENCIES.map(|end| end.to_string()).to_vec();
        let (ns, rest) = counts.split_at(LATENCIES.len());
        let (us, ms) = rest.split_at(LATENCIES.len());
        let ns = shares(&names, ns, ios, LATENCY_PCT_MIN);
        let us = shares(&names, us, ios, LATENCY_PCT_MIN);
        names.extend(["2000".to_owned(), ">=2000".to_owned()]);
        let ms = shares(&names, ms, ios, LATENCY_PCT_MIN);
        Self { ns, us, ms }
    }
}

fn middle_ns(low_us: f64, high_us: f64) -> u64 {
    ((low_us + high_us) / 2.0 * 1000.0) as u64
}

/// As many decimals as fio prints.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// What is shown of a distribution in addition to its moments.
#[derive(Clone, Copy)]
struct Spread<'a> {
    percentiles: &'a [f64],
    bins: bool,
}

impl Spread<'_> {
    fn when(self, is_shown: bool) -> Option<Self> {
        is_shown.then_some(self)
    }
}

/// A distribution in nanoseconds.
fn latency(histogram: &LatencyHistogram, spread: Option<Spread<'_>>) -> LatencyShape {
    let Some(summary) = histogram.summary() else { return LatencyShape::default() };
    let ns = |us: f64| (us * 1000.0).round() as u64;
    let least = histogram.iter_buckets().next().map_or(0.0, |bucket| bucket.low_us);
    let percentile = |p: &f64| Some((format!("{p:.6}"), ns(histogram.percentile_us(*p)?)));
    let bin = |bucket: iostrata_stats::Bucket| {
        (middle_ns(bucket.low_us, bucket.high_us).to_string(), bucket.count)
    };
    LatencyShape {
        min: ns(least),
        max: ns(summary.max),
        mean: rounded(summary.mean * 1000.0),
        stddev: rounded(histogram.stddev_us().unwrap_or(0.0) * 1000.0),
        count: histogram.count(),
        percentile: spread
            .map(|spread| Entries(spread.percentiles.iter().filter_map(percentile).collect())),
        bins: spread
            .filter(|spread| spread.bins)
            .map(|_| Entries(histogram.iter_buckets().map(bin).collect())),
    }
}

/// What devices did in all waves, from their own counters, in the order of the files.
fn disks(waves: &[&MeasuredWave]) -> Vec<DiskShape> {
    let mut disks: Vec<(DiskShape, f64, f64)> = Vec::new();
    // As in fio, what makes files has no device.
    let makes_files = |stream: &Stream| stream.spec.variation.call == Some(FileCall::Create);
    let with_devices =
        waves.iter().filter(|wave| !wave.replicate.point.streams.iter().all(makes_files));
    for DeviceUse { name, delta } in with_devices.flat_map(|wave| &wave.devices) {
        let counters = delta.counters;
        let known = disks.iter().position(|(disk, ..)| disk.name == *name);
        let at = known.unwrap_or_else(|| {
            disks.push((DiskShape { name: name.clone(), ..DiskShape::default() }, 0.0, 0.0));
            disks.len() - 1
        });
        let (disk, busy_ms, seconds) = &mut disks[at];
        disk.read_ios += counters.reads;
        disk.write_ios += counters.writes;
        disk.read_merges += counters.reads_merged;
        disk.write_merges += counters.writes_merged;
        disk.read_ticks += counters.read_ms;
        disk.write_ticks += counters.write_ms;
        disk.in_queue += counters.queue_ms;
        *busy_ms += counters.busy_ms as f64;
        *seconds += delta.seconds;
        disk.util = rounded((*busy_ms / 10.0 / seconds.max(f64::MIN_POSITIVE)).min(100.0));
    }
    disks.into_iter().map(|(disk, ..)| disk).collect()
}
