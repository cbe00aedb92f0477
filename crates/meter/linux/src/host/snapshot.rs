//! Every counter of a scope at one moment: taken at the start and at the end of a window.

use std::collections::BTreeMap;
use std::time::Instant;

use iostrata_run::host::{DeviceCounters, DeviceDelta, Switches};

use crate::host::cpu::CpuTimes;
use crate::host::diskstats::{delta, device_counters, sum};
use crate::host::pressure::Pressure;
use crate::host::throttle::{GroupIo, ThrottleCounters};
use crate::host::usage::switches;
use crate::host::{Root, Scope};

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

    pub(crate) fn seconds_since(&self, before: &Self) -> f64 {
        self.at.saturating_duration_since(before.at).as_secs_f64()
    }

    /// What one device did since an earlier moment.
    pub(crate) fn device_since(&self, before: &Self, name: &str) -> Option<DeviceDelta> {
        let seconds = self.seconds_since(before);
        delta(before.devices.get(name)?, self.devices.get(name)?, seconds)
    }

    /// What several devices did together; absent when one of them cannot be asked.
    pub(crate) fn devices_since(&self, before: &Self, names: &[String]) -> Option<DeviceDelta> {
        let deltas: Option<Vec<DeviceCounters>> =
            names.iter().map(|name| Some(self.device_since(before, name)?.counters)).collect();
        Some(DeviceDelta { seconds: self.seconds_since(before), counters: sum(&deltas?)? })
    }

    /// The same as requests and bytes, for the limits of control groups.
    pub(crate) fn group_io_since(&self, before: &Self, name: &str) -> Option<GroupIo> {
        let delta = self.device_since(before, name)?;
        Some(GroupIo {
            reads: delta.counters.reads,
            writes: delta.counters.writes,
            read_bytes: delta.read_bytes(),
            written_bytes: delta.written_bytes(),
        })
    }
}
