//! The thread that samples devices, processors and pressure while a point runs, and its samples as
//! columns over time.
//!
//! Invariant: after it is armed it allocates nothing: files are open, buffers and the list of
//! samples are reserved. It sleeps between samples and costs one short wake-up each.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostrata_run::host::{DeviceCounters, DeviceSeries, Iostat};

use crate::host::cpu::CpuTimes;
use crate::host::device::dir_of_name;
use crate::host::diskstats::{delta, parse_stat, sum};
use crate::host::pressure::PressureTotals;
use crate::host::{HostError, Root, Scope};

/// Devices that are sampled together at most; a file system on more has no series.
const DEVICES_MAX: usize = 16;

/// Sampling faster would disturb what is measured, and the kernel's times have this resolution.
const PERIOD_MIN: Duration = Duration::from_millis(1);

/// Counters at one moment, as few as a series needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CounterSample {
    /// Time since the start of the window, in seconds.
    pub(crate) t_s: f64,
    pub(crate) device: Option<DeviceCounters>,
    pub(crate) cpu: Option<CpuTimes>,
    pub(crate) io_stall_us: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running { since: Instant },
    Ended,
}

struct Shared {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Shared {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, phase: Phase) {
        *self.phase() = phase;
        self.changed.notify_all();
    }
}

/// A sampling thread, waiting or running. Dropping it ends the thread.
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Thinning<CounterSample>>>,
}

impl Sampler {
    /// Opens what will be sampled and starts the thread, which waits.
    pub(crate) fn arm(
        root: &Root,
        scope: &Scope,
        period: Duration,
        samples_max: usize,
    ) -> Result<Self, HostError> {
        let period = period.max(PERIOD_MIN);
        let sources = Sources::open(root, scope);
        let samples = Thinning::with_capacity(samples_max);
        let shared =
            Arc::new(Shared { phase: Mutex::new(Phase::Waiting), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .stack_size(128 << 10)
            .spawn(move || run(&of_thread, &sources, samples, period))
            .map_err(HostError::NoThread)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(crate) fn start(&self, since: Instant) {
        self.shared.change(Phase::Running { since });
    }

    /// Ends the thread and hands over its samples; none when the thread broke.
    pub(crate) fn stop(&mut self) -> Vec<CounterSample> {
        self.shared.change(Phase::Ended);
        let samples = self.thread.take().and_then(|thread| thread.join().ok());
        samples.map(|samples| samples.kept().to_vec()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(
    shared: &Shared,
    sources: &Sources,
    mut samples: Thinning<CounterSample>,
    period: Duration,
) -> Thinning<CounterSample> {
    let mut phase = shared.phase();
    let mut due = None;
    loop {
        let since = match *phase {
            Phase::Ended => return samples,
            Phase::Waiting => {
                phase = shared.changed.wait(phase).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            Phase::Running { since } => since,
        };
        let next = *due.get_or_insert(since);
        let wait = next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            let woken = shared.changed.wait_timeout(phase, wait);
            phase = woken.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        drop(phase);
        samples.offer(sources.sample(since));
        due = Some(next_due(next, period));
        phase = shared.phase();
    }
}

/// The next moment on the grid; moments that were missed are left out, not made up for.
fn next_due(last: Instant, period: Duration) -> Instant {
    let late = last.elapsed().as_nanos() / period.as_nanos();
    last + period.saturating_mul(u32::try_from(late + 1).unwrap_or(u32::MAX))
}

struct Sources {
    devices: Vec<File>,
    stat: Option<File>,
    pressure: Option<File>,
}

impl Sources {
    fn open(root: &Root, scope: &Scope) -> Self {
        let open = |path: &Path| File::open(root.real(path)).ok();
        let devices: Option<Vec<File>> =
            scope.tops.iter().map(|name| open(&dir_of_name(root, name)?.join("stat"))).collect();
        let counted = scope.tops.iter().all(|name| !scope.uncounted.contains(name));
        Self {
            devices: devices
                .filter(|devices| counted && devices.len() <= DEVICES_MAX)
                .unwrap_or_default(),
            stat: open(Path::new("/proc/stat")),
            pressure: open(Path::new("/proc/pressure/io")),
        }
    }

    fn sample(&self, since: Instant) -> CounterSample {
        // The first line of /proc/stat and the whole of the other files fit.
        let mut buffer = [0; 1024];
        let cpu = self.stat.as_ref().and_then(|file| CpuTimes::parse(again(file, &mut buffer)?));
        let pressure = self
            .pressure
            .as_ref()
            .and_then(|file| PressureTotals::parse(again(file, &mut buffer)?));
        let t_s = since.elapsed().as_secs_f64();
        let mut devices = [DeviceCounters::default(); DEVICES_MAX];
        let mut known = 0;
        for (file, counters) in std::iter::zip(&self.devices, &mut devices) {
            if let Some(found) = again(file, &mut buffer).and_then(parse_stat) {
                *counters = found;
                known += 1;
            }
        }
        let device = (known == self.devices.len()).then(|| sum(&devices[..known])).flatten();
        CounterSample { t_s, device, cpu, io_stall_us: pressure.map(|totals| totals.some.total_us) }
    }
}

/// Reads a file of `/proc` or `/sys` again from its beginning, as much as fits.
fn again<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = file.read_at(buffer, 0).ok()?;
    let bytes = buffer.get(..length)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(e) => std::str::from_utf8(bytes.get(..e.valid_up_to())?).ok(),
    }
}

// Samples in bounded memory: when it is full, every second one is dropped and from then on only
// every second one is kept.
//
// Invariant: memory is reserved once; the first sample stays; kept samples are evenly spaced.

/// A bounded list that halves its resolution when full.
#[derive(Debug)]
struct Thinning<T> {
    kept: Vec<T>,
    capacity: usize,
    /// One of this many samples is kept.
    stride: u64,
    offered: u64,
}

impl<T: Copy> Thinning<T> {
    /// Room for `capacity` samples, of which at least two are granted.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(2);
        Self { kept: Vec::with_capacity(capacity), capacity, stride: 1, offered: 0 }
    }

    pub(crate) fn offer(&mut self, sample: T) {
        let due = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !due {
            return;
        }
        if self.kept.len() == self.capacity {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
            // With an odd capacity the sample at hand falls between two kept ones.
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.kept.push(sample);
    }

    pub(crate) fn kept(&self) -> &[T] {
        &self.kept
    }
}

/// One row per pair of neighbouring samples; absent with fewer than two samples.
pub(crate) fn series(samples: &[CounterSample]) -> Option<DeviceSeries> {
    let mut series = DeviceSeries::default();
    for pair in samples.windows(2) {
        if let [before, after] = pair {
            add_row(&mut series, before, after);
        }
    }
    (!series.t_s.is_empty()).then_some(series)
}

fn add_row(series: &mut DeviceSeries, before: &CounterSample, after: &CounterSample) {
    let seconds = after.t_s - before.t_s;
    if seconds <= 0.0 {
        return;
    }
    series.t_s.push(after.t_s);
    let io = before
        .device
        .zip(after.device)
        .and_then(|(before, after)| delta(&before, &after, seconds))
        .map(|delta| Iostat::of(&delta));
    series.reads_per_s.push(io.map(|io| io.reads_per_s));
    series.read_bytes_per_s.push(io.map(|io| io.read_kib_per_s * 1024.0));
    series.read_await_ms.push(io.and_then(|io| io.read_await_ms));
    series.writes_per_s.push(io.map(|io| io.writes_per_s));
    series.write_bytes_per_s.push(io.map(|io| io.write_kib_per_s * 1024.0));
    series.write_await_ms.push(io.and_then(|io| io.write_await_ms));
    series.flushes_per_s.push(io.and_then(|io| io.flushes_per_s));
    series.flush_await_ms.push(io.and_then(|io| io.flush_await_ms));
    series.queue_size.push(io.map(|io| io.queue_size));
    series.util_pct.push(io.map(|io| io.util_pct));
    let cpu = before.cpu.zip(after.cpu).and_then(|(before, after)| after.shares_since(&before));
    series.cpu_busy_pct.push(cpu.map(|cpu| cpu.busy_pct()));
    series.cpu_iowait_pct.push(cpu.map(|cpu| cpu.iowait_pct));
    series.cpu_steal_pct.push(cpu.map(|cpu| cpu.steal_pct));
    let stalled = before
        .io_stall_us
        .zip(after.io_stall_us)
        .map(|(before, after)| after.saturating_sub(before) as f64 / seconds / 10_000.0);
    series.io_pressure_pct.push(stalled);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_differences() {
        let sample = |t_s: f64, reads: u64, user: u64, stall: u64| CounterSample {
            t_s,
            device: Some(DeviceCounters {
                reads,
                sectors_read: reads * 8,
                read_ms: reads / 2,
                ..DeviceCounters::default()
            }),
            cpu: Some(CpuTimes([user, 0, 0, 100 - user, 0, 0, 0, 0])),
            io_stall_us: Some(stall),
        };
        let samples =
            [sample(0.0, 0, 0, 0), sample(0.5, 100, 10, 50_000), sample(1.0, 100, 10, 50_000)];
        let series = series(&samples).unwrap();
        assert_eq!(series.t_s, [0.5, 1.0]);
        assert_eq!(series.reads_per_s, [Some(200.0), Some(0.0)]);
        assert_eq!(series.read_bytes_per_s, [Some(819_200.0), Some(0.0)]);
        assert_eq!(series.read_await_ms, [Some(0.5), None]);
        assert_eq!(series.io_pressure_pct, [Some(10.0), Some(0.0)]);
        assert_eq!(series.cpu_busy_pct, [Some(100.0), None]);
        assert_eq!(series.flushes_per_s, [None, None]);
    }

    #[test]
    fn one_sample_is_no_series() {
        assert_eq!(series(&[CounterSample::default()]), None);
        assert_eq!(series(&[CounterSample::default(), CounterSample::default()]), None);
    }
}

#[cfg(test)]
mod thinning_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_are_kept_while_there_is_room() {
        let mut list = Thinning::with_capacity(4);
        (0..4).for_each(|n| list.offer(n));
        assert_eq!(list.kept(), [0, 1, 2, 3]);
        list.offer(4);
        assert_eq!(list.kept(), [0, 2, 4]);
        (5..9).for_each(|n| list.offer(n));
        assert_eq!(list.kept(), [0, 4, 8]);
    }

    proptest! {
        #[test]
        fn spacing_is_even_and_memory_bounded(capacity in 0usize..20, count in 1u64..2000) {
            let mut list = Thinning::with_capacity(capacity);
            let room = list.kept.capacity();
            (0..count).for_each(|n| list.offer(n));
            prop_assert_eq!(list.kept.capacity(), room);
            prop_assert!(list.kept().len() <= capacity.max(2));
            prop_assert_eq!(list.kept()[0], 0);
            prop_assert!(list.kept().windows(2).all(|pair| pair[1] - pair[0] == list.stride));
            prop_assert!(count - list.kept().last().unwrap() <= list.stride);
        }
    }
}
