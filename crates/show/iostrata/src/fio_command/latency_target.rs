//! The largest depth at which a job keeps a latency: fio's `latency_target`.
//!
//! Invariant: each depth is tried in a window of its own, and only the found one is reported. A
//! depth of 1 is measured whether it keeps the latency or not.

use std::time::Duration;

use iostrata_plan::IoSpec;
use iostrata_plan::fio::{FioJob, FioWarning, FioWave, LatencyTarget};
use iostrata_run::{Replicate, StreamFigures};

use crate::exit_error::ExitError;

/// What is known of the depth of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depths {
    /// Kept the latency, or 0.
    kept: u32,
    /// Missed it, or one above the requested depth.
    missed: u32,
    /// To be tried next.
    next: u32,
}

impl Depths {
    /// As fio, begins at the requested depth.
    fn of(asked: u32) -> Self {
        Self { kept: 0, missed: asked + 1, next: asked }
    }

    /// Takes note of whether the tried depth kept the latency.
    fn tried(&mut self, is_kept: bool) {
        match is_kept {
            true => self.kept = self.next,
            false => self.missed = self.next,
        }
        self.next = self.kept + (self.missed - self.kept) / 2;
    }

    fn is_found(self) -> bool {
        self.missed - self.kept <= 1 || self.missed <= 2
    }

    fn found(self) -> u32 {
        self.kept.max(1)
    }
}

/// Gives each job of a wave that has a latency to keep the depth that keeps it; `measure` runs a
/// wave in one window. Returns what was found.
pub fn search(
    wave: &mut FioWave,
    mut measure: impl FnMut(&FioWave) -> Result<Replicate, ExitError>,
) -> Result<Vec<FioWarning>, ExitError> {
    let window = wave.jobs.iter().filter_map(|job| Some(job.latency_target?.window)).max();
    let Some(window) = window else { return Ok(Vec::new()) };
    let asked: Vec<u32> = wave.jobs.iter().map(depth).collect();
    let mut depths: Vec<Depths> = asked.iter().map(|asked| Depths::of(*asked)).collect();
    let is_open =
        |job: &FioJob, depths: &Depths| job.latency_target.is_some() && !depths.is_found();
    while wave.jobs.iter().zip(&depths).any(|(job, depths)| is_open(job, depths)) {
        let mut trial = wave.clone();
        for stream in trial.jobs.iter_mut().flat_map(|job| &mut job.streams) {
            // What is only tried is neither logged nor judged.
            let variation = &mut stream.spec.variation;
            (variation.request_log, variation.minimum_rates) = (None, None);
        }
        for (job, depths) in trial.jobs.iter_mut().zip(&depths) {
            set(job, depths, Some(window));
        }
        let replicate = measure(&trial)?;
        let mut figures = replicate.streams.iter();
        for (job, depths) in wave.jobs.iter().zip(&mut depths) {
            let its: Vec<&StreamFigures> = figures.by_ref().take(job.streams.len()).collect();
            if let Some(target) = job.latency_target.filter(|_| !depths.is_found()) {
                depths.tried(its.iter().all(|figures| is_kept(figures, target)));
            }
        }
    }
    for (job, depths) in wave.jobs.iter_mut().zip(&depths) {
        let goes_on = job.latency_target.is_none_or(|target| target.goes_on);
        set(job, depths, Some(window).filter(|_| !goes_on));
    }
    let both = wave.jobs.iter().zip(depths.iter().zip(&asked));
    Ok(both.filter_map(|(job, (depths, asked))| note(job, *depths, *asked)).collect())
}

fn depth(job: &FioJob) -> u32 {
    job.streams.first().map_or(1, |stream| stream.spec.depth)
}

fn set(job: &mut FioJob, depths: &Depths, window: Option<Duration>) {
    let depth = if depths.is_found() { depths.found() } else { depths.next.max(1) };
    let has_target = job.latency_target.is_some();
    for stream in &mut job.streams {
        let spec: &mut IoSpec = &mut stream.spec;
        if has_target {
            spec.depth = depth;
            spec.variation.reap_min = spec.variation.reap_min.min(depth);
        }
        spec.runtime = window.map_or(spec.runtime, |window| {
            Some(spec.runtime.map_or(window, |runtime| runtime.min(window)))
        });
    }
}

/// Whether so many of all requests kept the latency.
fn is_kept(figures: &StreamFigures, target: LatencyTarget) -> bool {
    let most_us = target.latency.as_secs_f64() * 1e6;
    figures.ops.iter().all(|(_, op)| {
        let latency_us = op.latencies.service.percentile_us(target.percentile);
        latency_us.is_none_or(|latency_us| latency_us <= most_us)
    })
}

fn note(job: &FioJob, depths: Depths, asked: u32) -> Option<FioWarning> {
    let target = job.latency_target?;
    let what = match depths.kept {
        0 => "no depth keeps it; measured at depth 1".to_owned(),
        kept => format!("kept up to depth {kept} of {asked}, which is measured"),
    };
    let option = format!("[{}] latency_target={}us", job.name, target.latency.as_micros());
    Some(FioWarning { file: std::path::PathBuf::new(), line: 0, option, text: what })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth that is found where up to `keeps` all are kept, and how many were tried.
    fn found(asked: u32, keeps: u32) -> (u32, u32) {
        let mut depths = Depths::of(asked);
        let mut tries = 0;
        while !depths.is_found() {
            tries += 1;
            depths.tried(depths.next <= keeps);
        }
        (depths.found(), tries)
    }

    #[test]
    fn the_largest_depth_that_keeps_the_latency_is_found_by_halves() {
        for asked in 1..70 {
            for keeps in 0..=asked {
                let (depth, tries) = found(asked, keeps);
                assert_eq!(depth, keeps.max(1), "{asked} {keeps}");
                assert!(tries <= 8, "{asked} {keeps}: {tries}");
            }
        }
        assert_eq!(found(64, 64), (64, 1));
    }
}
