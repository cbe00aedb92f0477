//! What is known of a wave while it runs: its figures so far, and what its device did.

use std::time::Instant;

use iostrata_linux::host::{Root, delta, device_counters};
use iostrata_load::WindowFigures;
use iostrata_plan::Point;
use iostrata_run::Replicate;
use iostrata_run::host::{DeviceCounters, Evidence, PathFacts};
use iostrata_stats::Verdicts;

use super::measured::MeasuredWave;

/// A wave that runs.
pub struct Status<'a> {
    number: usize,
    point: &'a Point,
    started_s: f64,
    /// When it began, in milliseconds since 1970.
    pub began_ms: i64,
    /// The device, its counters at the beginning, and when that was.
    device: Option<(String, DeviceCounters, Instant)>,
}

impl<'a> Status<'a> {
    /// One that begins now, so many seconds after the first.
    pub fn begin(
        number: usize,
        point: &'a Point,
        facts: Option<&PathFacts>,
        started_s: f64,
    ) -> Self {
        let device = facts.and_then(|facts| facts.devices.first()).and_then(|device| {
            let counters = device_counters(&Root::system(), &device.name)?;
            Some((device.name.clone(), counters, Instant::now()))
        });
        let began_ms = jiff::Timestamp::now().as_millisecond();
        Self { number, point, started_s, began_ms, device }
    }

    /// It with the figures so far.
    pub fn wave(&self, figures: WindowFigures) -> MeasuredWave {
        MeasuredWave {
            number: self.number,
            began_ms: self.began_ms,
            replicate: Replicate {
                point: self.point.clone(),
                replicate: 0,
                started_s: self.started_s,
                duration_s: figures.duration_s,
                streams: figures.streams,
                evidence: self.evidence(),
                verdicts: Verdicts::none(),
            },
            details: figures.details,
        }
    }

    fn evidence(&self) -> Option<Evidence> {
        let (name, before, since) = self.device.as_ref()?;
        let now = device_counters(&Root::system(), name)?;
        let seconds = since.elapsed().as_secs_f64();
        Some(Evidence {
            seconds,
            device_name: Some(name.clone()),
            device_delta: delta(before, &now, seconds),
            ..Evidence::default()
        })
    }
}
