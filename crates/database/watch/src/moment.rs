//! A sample with its times.

use iostrata_run::WatchDevice;
use iostrata_target::{TargetError, TargetSample};

/// A sample as it was taken.
#[derive(Clone, Debug)]
pub struct TimedSample {
    /// When it was asked for, in seconds since watching began.
    pub at_s: f64,
    /// What the target said.
    pub sample: Result<TargetSample, TargetError>,
    /// How long it took to answer, in microseconds.
    pub sample_us: f64,
    /// What the device below did since the sample before.
    pub device: Option<WatchDevice>,
}

/// A sample that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleMoment {
    /// On the watcher's clock, in seconds.
    pub(crate) at_s: f64,
    pub(crate) sample: TargetSample,
}

impl SampleMoment {
    /// When the target took it, in seconds on the clock of its samples.
    pub(crate) fn taken_s(&self) -> f64 {
        self.sample.taken_us.map_or(self.at_s, |us| us as f64 / 1e6)
    }
}
