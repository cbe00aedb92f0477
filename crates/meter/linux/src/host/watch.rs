//! Observing the host around one measured point, and who uses a device while nothing is measured.
//!
//! Invariant: the caller arms, starts, stops and takes, in this order; between start and stop only
//! the sampling thread runs. What is measured never sees the observer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use iostrata_run::host::{
    DeviceCounters, DeviceDelta, Evidence, ForeignIo, Iostat, NamedIostat, OwnIo, PathFacts,
    QuietCheck, Switches,
};
use iostrata_stats::Verdict;

use crate::host::cgroup::{GroupIo, ThrottleCounters};
use crate::host::cpu::{CpuTimes, switches, switches_between};
use crate::host::diskstats::{delta, device_counters, sum};
use crate::host::judge::{
    FLOOR_BYTES_PER_S, FLOOR_REQUESTS_PER_S, cache_verdicts, cpu_verdicts, foreign_io,
    own_at_bottom, throttle_verdicts,
};
use crate::host::pressure::Pressure;
use crate::host::processes::ProcessCounters;
use crate::host::sampler::{CounterSample, Sampler, series};
use crate::host::{HostError, Root, Scope};

/// Something that watches the host while a point runs.
pub trait Observer {
    /// Prepares to watch `scope`: opens, reserves, starts what will sample.
    ///
    /// # Errors
    /// When the sampling thread cannot be started. Arming again forgets what was observed.
    fn arm(&mut self, scope: &Scope) -> Result<(), HostError>;

    /// The measured window begins now.
    ///
    /// # Errors
    /// [`HostError::OutOfOrder`] unless just armed.
    fn start(&mut self) -> Result<(), HostError>;

    /// The measured window has ended.
    ///
    /// # Errors
    /// [`HostError::OutOfOrder`] unless started.
    fn stop(&mut self) -> Result<(), HostError>;

    /// Hands over what was observed. With `own`, what the caller issued in the window, the device's
    /// traffic is judged against it; without, foreign I/O and caching are not judged.
    ///
    /// # Errors
    /// [`HostError::OutOfOrder`] unless stopped.
    fn take(&mut self, own: Option<&OwnIo>) -> Result<Evidence, HostError>;
}

/// How the host is watched.
#[derive(Clone, Copy, Debug)]
pub struct ObserverOptions {
    /// Time between two samples of the series.
    pub period: Duration,
    /// Most samples kept; when reached, resolution is halved.
    pub samples_max: usize,
}

impl Default for ObserverOptions {
    /// Every 100 ms, two minutes at full resolution.
    fn default() -> Self {
        Self { period: Duration::from_millis(100), samples_max: 1201 }
    }
}

/// Sees nothing: the stand-in where nothing shall be observed. Its evidence is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlindObserver;

impl Observer for BlindObserver {
    fn arm(&mut self, _scope: &Scope) -> Result<(), HostError> {
        Ok(())
    }

    fn start(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    fn stop(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    fn take(&mut self, _own: Option<&OwnIo>) -> Result<Evidence, HostError> {
        Ok(Evidence::default())
    }
}

/// Watches a root's counters.
pub struct HostObserver {
    root: Root,
    options: ObserverOptions,
    state: WatchState,
}

enum WatchState {
    Idle,
    Armed(WindowMeters),
    Started(WindowMeters, Box<Snapshot>),
    Stopped(Box<WatchWindow>),
}

struct WindowMeters {
    scope: Scope,
    sampler: Sampler,
    processes: ProcessCounters,
}

struct WatchWindow {
    scope: Scope,
    samples: Vec<CounterSample>,
    processes: ProcessCounters,
    before: Snapshot,
    after: Snapshot,
}

impl HostObserver {
    /// An observer of the machine, or of the directory that stands in for it.
    pub fn new(root: Root, options: ObserverOptions) -> Self {
        Self { root, options, state: WatchState::Idle }
    }

    /// Takes the state out; the error for a step in the wrong order puts it back.
    fn take_state(&mut self) -> WatchState {
        std::mem::replace(&mut self.state, WatchState::Idle)
    }

    fn refuse<T>(&mut self, asked: &'static str, state: WatchState) -> Result<T, HostError> {
        let name = match &state {
            WatchState::Idle => "idle",
            WatchState::Armed(_) => "armed",
            WatchState::Started(..) => "started",
            WatchState::Stopped(_) => "stopped",
        };
        self.state = state;
        Err(HostError::OutOfOrder { asked, state: name })
    }
}

impl Observer for HostObserver {
    fn arm(&mut self, scope: &Scope) -> Result<(), HostError> {
        self.state = WatchState::Idle;
        let options = self.options;
        let sampler = Sampler::arm(&self.root, scope, options.period, options.samples_max)?;
        let processes = ProcessCounters::read(&self.root, std::process::id());
        self.state = WatchState::Armed(WindowMeters { scope: scope.clone(), sampler, processes });
        Ok(())
    }

    fn start(&mut self) -> Result<(), HostError> {
        match self.take_state() {
            WatchState::Armed(armed) => {
                let before = Snapshot::take(&self.root, &armed.scope);
                armed.sampler.start(before.at);
                self.state = WatchState::Started(armed, Box::new(before));
                Ok(())
            }
            other => self.refuse("start", other),
        }
    }

    fn stop(&mut self) -> Result<(), HostError> {
        match self.take_state() {
            WatchState::Started(mut armed, before) => {
                let after = Snapshot::take(&self.root, &armed.scope);
                let samples = armed.sampler.stop();
                let WindowMeters { scope, processes, .. } = armed;
                let window = WatchWindow { scope, samples, processes, before: *before, after };
                self.state = WatchState::Stopped(Box::new(window));
                Ok(())
            }
            other => self.refuse("stop", other),
        }
    }

    fn take(&mut self, own: Option<&OwnIo>) -> Result<Evidence, HostError> {
        match self.take_state() {
            WatchState::Stopped(window) => Ok(window.evidence(&self.root, own)),
            other => self.refuse("take", other),
        }
    }
}

impl WatchWindow {
    fn evidence(&self, root: &Root, own: Option<&OwnIo>) -> Evidence {
        let Self { scope, before, after, .. } = self;
        let seconds = after.seconds_since(before);
        let delta = after.devices_since(before, &scope.tops);
        let mut evidence = Evidence {
            seconds,
            device_name: scope.top_name(),
            device: delta.as_ref().map(Iostat::of),
            device_delta: delta,
            layers: self.layers(),
            device_series: series(&self.samples),
            cpu: after.cpu.zip(before.cpu).and_then(|(after, before)| after.shares_since(&before)),
            pressure: after.pressure.shares_since(&before.pressure, seconds),
            switches: before
                .switches
                .zip(after.switches)
                .map(|(before, after)| switches_between(before, after)),
            throttle: after.throttle.since(&before.throttle, &scope.limits, seconds, |device| {
                after.group_io_since(before, device)
            }),
            ..Evidence::default()
        };
        for name in &scope.uncounted {
            evidence.notes.push(format!("the kernel does not count I/O of {name} (iostats is 0)"));
        }
        cpu_verdicts(evidence.cpu.as_ref(), &mut evidence.verdicts);
        throttle_verdicts(evidence.throttle.as_ref(), &mut evidence.verdicts);
        if let (Some(own), Some(delta)) = (own, &delta) {
            cache_verdicts(own, delta, &mut evidence.verdicts);
        }
        evidence.foreign = own.and_then(|own| self.foreign(root, own));
        if evidence.foreign.as_ref().is_some_and(|foreign| foreign.raised) {
            evidence.verdicts.add(Verdict::ForeignIo);
        }
        evidence
    }

    fn layers(&self) -> Vec<NamedIostat> {
        let column = |name: &String| {
            let delta = self.after.device_since(&self.before, name)?;
            Some(NamedIostat { name: name.clone(), iostat: Iostat::of(&delta) })
        };
        self.scope.devices.iter().filter_map(column).collect()
    }

    /// Judged where requests arrive; and at the disks too, which others may use past the top
    /// (another logical volume of the same group), where the number of copies is known.
    fn foreign(&self, root: &Root, own: &OwnIo) -> Option<ForeignIo> {
        let Self { scope, before, after, .. } = self;
        let top = after.devices_since(before, &scope.tops)?;
        let mut foreign = foreign_io(own, &top, &scope.flush_cost);
        if let (false, Some(copies)) = (foreign.raised, scope.copies) {
            let below = own_at_bottom(own, copies);
            let mut cost = scope.flush_cost;
            cost.bytes = (cost.bytes as f64 * copies) as u64;
            cost.requests = (cost.requests as f64 * copies) as u64;
            let bottom = after.devices_since(before, &scope.bottoms);
            if let Some(at_bottom) = bottom.map(|bottom| foreign_io(&below, &bottom, &cost))
                && at_bottom.raised
            {
                foreign = at_bottom;
            }
        }
        if foreign.raised {
            let own_pid = std::process::id();
            let processes = ProcessCounters::read(root, own_pid);
            let seconds = after.seconds_since(before);
            foreign.processes = processes.since(root, &self.processes, own_pid, seconds);
        }
        Some(foreign)
    }
}

/// Counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) at: Instant,
    pub(crate) devices: BTreeMap<String, DeviceCounters>,
    pub(crate) cpu: Option<CpuTimes>,
    pub(crate) pressure: Pressure,
    pub(crate) switches: Option<Switches>,
    pub(crate) throttle: ThrottleCounters,
}

impl Snapshot {
    /// Reads all counters of a scope. The devices come last and the moment just before them, so
    /// that the elapsed time fits their counters best.
    pub(crate) fn take(root: &Root, scope: &Scope) -> Self {
        let throttle = ThrottleCounters::read(root, scope.cpu_group.as_ref(), &scope.limits);
        let pressure = Pressure::read(root);
        let cpu = root.text("/proc/stat").and_then(|text| CpuTimes::parse(&text));
        let switches = switches();
        let at = Instant::now();
        let counted = |name: &String| Some((name.clone(), device_counters(root, name)?));
        let devices = scope.devices.iter().filter_map(counted).collect();
        Self { at, devices, cpu, pressure, switches, throttle }
    }

    fn seconds_since(&self, before: &Self) -> f64 {
        self.at.saturating_duration_since(before.at).as_secs_f64()
    }

    /// What one device did since an earlier moment.
    fn device_since(&self, before: &Self, name: &str) -> Option<DeviceDelta> {
        let seconds = self.seconds_since(before);
        delta(before.devices.get(name)?, self.devices.get(name)?, seconds)
    }

    /// What several devices did together; absent when one of them cannot be read.
    fn devices_since(&self, before: &Self, names: &[String]) -> Option<DeviceDelta> {
        let deltas: Option<Vec<DeviceCounters>> =
            names.iter().map(|name| Some(self.device_since(before, name)?.counters)).collect();
        Some(DeviceDelta { seconds: self.seconds_since(before), counters: sum(&deltas?)? })
    }

    /// The same as requests and bytes, for the limits of control groups.
    fn group_io_since(&self, before: &Self, name: &str) -> Option<GroupIo> {
        let delta = self.device_since(before, name)?;
        Some(GroupIo {
            reads: delta.counters.reads,
            writes: delta.counters.writes,
            read_bytes: delta.read_bytes(),
            written_bytes: delta.written_bytes(),
        })
    }
}

/// Watches the disks below a path for `duration` and reports the busiest one. It is quiet when it
/// did at most 1 MiB/s and 50 requests/s. Absent when the path has no device.
///
/// The calling thread sleeps meanwhile; this process and its children are not named.
pub fn quiet_check(root: &Root, facts: &PathFacts, duration: Duration) -> Option<QuietCheck> {
    let scope = Scope::of(root, facts);
    let own_pid = std::process::id();
    let processes_before = ProcessCounters::read(root, own_pid);
    let before = Snapshot::take(root, &scope);
    std::thread::sleep(duration);
    let after = Snapshot::take(root, &scope);
    let processes = ProcessCounters::read(root, own_pid);
    let seconds = after.seconds_since(&before);
    let column = |name: &String| {
        let io = after.device_since(&before, name).map(|delta| Iostat::of(&delta));
        (name.clone(), io)
    };
    let (device, io) = scope
        .bottoms
        .iter()
        .map(column)
        .max_by(|(_, a), (_, b)| traffic(a.as_ref()).total_cmp(&traffic(b.as_ref())))?;
    Some(QuietCheck {
        device,
        seconds,
        quiet: io.as_ref().is_none_or(is_quiet),
        iostat: io,
        processes: processes.since(root, &processes_before, own_pid, seconds),
        processes_hidden: processes.hidden,
    })
}

/// How busy, relative to what passes as quiet; 1 is the limit.
fn traffic(io: Option<&Iostat>) -> f64 {
    let Some(io) = io else { return -1.0 };
    let bytes = (io.read_kib_per_s + io.write_kib_per_s) * 1024.0;
    let requests = io.reads_per_s + io.writes_per_s;
    f64::max(bytes / FLOOR_BYTES_PER_S, requests / FLOOR_REQUESTS_PER_S)
}

fn is_quiet(io: &Iostat) -> bool {
    traffic(Some(io)) <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_or_requests_break_the_quiet() {
        let io = |requests, kib| Iostat {
            reads_per_s: requests,
            write_kib_per_s: kib,
            ..Iostat::default()
        };
        assert!(is_quiet(&io(40.0, 900.0)));
        assert!(!is_quiet(&io(60.0, 0.0)));
        assert!(!is_quiet(&io(1.0, 2000.0)));
    }
}
