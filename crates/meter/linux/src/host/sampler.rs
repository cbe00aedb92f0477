//! The thread that samples devices, processors and pressure while a point runs.
//!
//! Invariant: after it is armed it allocates nothing: files are open, buffers and the list of
//! samples are reserved. It sleeps between samples and costs one short wake-up each.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostrata_run::host::DeviceCounters;

use crate::host::cpu::CpuTimes;
use crate::host::diskstats::{parse_stat, sum};
use crate::host::pressure::PressureTotals;
use crate::host::sysfs::dir_of_name;
use crate::host::thinning::Thinning;
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

/// Reads a file of `/proc` or `/sys` anew from its beginning, as much as fits.
fn again<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = file.read_at(buffer, 0).ok()?;
    let bytes = buffer.get(..length)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(e) => std::str::from_utf8(bytes.get(..e.valid_up_to())?).ok(),
    }
}
