//! Observing the host around one measured point.
//!
//! Invariant: the caller arms, starts, stops and takes, in this order; between start and stop only
//! the sampling thread runs. What is measured never sees the observer.

use std::time::Duration;

use iostrata_run::host::{Evidence, ForeignIo, Iostat, NamedIostat, OwnIo};

use crate::host::foreign::{foreign_io, own_at_bottom};
use crate::host::judge::{cache_verdicts, cpu_verdicts, throttle_verdicts};
use crate::host::processes::ProcessCounters;
use crate::host::sampler::{CounterSample, Sampler};
use crate::host::series::series;
use crate::host::snapshot::Snapshot;
use crate::host::usage::switches_between;
use crate::host::{HostError, Root, Scope};
use iostrata_stats::Verdict;

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
    /// traffic is judged against it; without, nothing is said about foreign I/O and caching.
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
    Armed(Armed),
    Started(Armed, Box<Snapshot>),
    Stopped(Box<WatchWindow>),
}

struct Armed {
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
        self.state = WatchState::Armed(Armed { scope: scope.clone(), sampler, processes });
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
                let Armed { scope, processes, .. } = armed;
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
