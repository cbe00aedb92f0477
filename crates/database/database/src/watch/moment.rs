//! A sample with its times.

use crate::target::{TargetError, TargetSample};
use iostrata_run::host::{DeviceDelta, HeldBackShares, ThrottleEvidence};
use iostrata_run::{SampleSpan, WatchDevice, WatchSample};

/// A sample as it was taken.
#[derive(Clone, Debug)]
pub struct TimedSample {
    /// When it was requested, in seconds since watching began.
    pub at_s: f64,
    /// The target's sample, or its error.
    pub sample: Result<TargetSample, TargetError>,
    /// How long it took to answer, in microseconds.
    pub sample_us: f64,
    /// What its host did meanwhile.
    pub on_host: OnHost,
}

/// What was seen of a target's host since the sample before, where that is this one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OnHost {
    /// What the device below the data did, and how the kernel names it.
    pub device: Option<(String, DeviceDelta)>,
    /// Room on the file system below the data, in bytes.
    pub disk_free_bytes: Option<u64>,
    /// What its process waited for, and what held it back.
    pub held: HeldBackShares,
}

impl OnHost {
    /// Adds it to what the target reported.
    pub(crate) fn beside(self, sample: &mut WatchSample) {
        sample.device = self.device.map(|(name, delta)| WatchDevice::of(name, &delta));
        sample.disk_free_bytes = self.disk_free_bytes;
        sample.pressure = self.held.pressure;
        sample.pressure_group = self.held.pressure_group;
        sample.throttle = self.held.throttle;
        sample.cpu_stolen_pct = self.held.cpu_stolen_pct;
    }
}

/// A sample that was answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampleMoment {
    /// On the watcher's clock, in seconds.
    pub(crate) at_s: f64,
    pub(crate) sample: TargetSample,
    /// Share of the processor time that the hypervisor of its host took before it, in percent.
    pub(crate) stolen_pct: Option<f64>,
    /// What its processes waited for processors since the sample before.
    pub(crate) processors: ProcessorWaits,
}

/// How processors were withheld from a target, where it is on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessorWaits {
    /// Share of the time in which some of its tasks waited for one, in percent.
    pub(crate) pressure_pct: Option<f64>,
    /// Share of the quota's periods in which the quota ran out, in percent.
    pub(crate) throttled_pct: Option<f64>,
}

impl ProcessorWaits {
    /// Of what held a target back.
    pub(crate) fn of(held: &HeldBackShares) -> Self {
        let throttled = |throttle: &ThrottleEvidence| {
            let periods = throttle.cpu_periods.filter(|count| *count > 0)?;
            Some(100.0 * throttle.cpu_periods_throttled? as f64 / periods as f64)
        };
        let cpu = held.pressure.as_ref().and_then(|pressure| pressure.cpu.as_ref());
        Self {
            pressure_pct: cpu.map(|cpu| cpu.some_pct),
            throttled_pct: held.throttle.as_ref().and_then(throttled),
        }
    }
}

impl SampleMoment {
    /// When the target took it, in seconds on the clock of its samples.
    pub(crate) fn taken_s(&self) -> f64 {
        self.sample.taken_us.map_or(self.at_s, |us| us as f64 / 1e6)
    }

    /// The time since an earlier one.
    pub(crate) fn since<'a>(&'a self, before: &'a Self) -> SampleSpan<'a> {
        let seconds = self.taken_s() - before.taken_s();
        SampleSpan::between(&before.sample, &self.sample, seconds)
    }
}
