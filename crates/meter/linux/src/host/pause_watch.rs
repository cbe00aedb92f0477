//! Pauses of a whole device: stretches in which requests were in flight and none was answered,
//! within measured windows and between them.
//!
//! Invariant: a look costs one small file per device. A pause is told by many looks; where they
//! came late, since the processors were taken away, nothing is told. A stretch at whose end nothing
//! but a flush was answered is that flush.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostrata_run::DevicePause;
use iostrata_run::host::DeviceCounters;

use crate::host::diskstats::{device_counters, sum};
use crate::host::{Root, Scope};

/// From one look to the next.
const EVERY: Duration = Duration::from_millis(10);
/// A look that came later than this was not watching, in seconds.
const LATE_S: f64 = 0.5;
/// Share of a pause that may lie between two looks.
const GAP_SHARE_MAX: f64 = 0.5;
/// Shortest pause, in seconds.
const PAUSE_S_MIN: f64 = 0.1;
/// Answers that were due in it at least, at the rate of the second before.
const DUE_MIN: f64 = 8.0;
/// The time over which that rate is taken, in seconds.
const RATE_S: f64 = 1.0;
/// Pauses that are kept.
const PAUSES_MAX: usize = 1_000;

/// Watches the devices below a path until it is dropped or asked.
#[derive(Debug)]
pub struct PauseWatch {
    stop: Arc<AtomicBool>,
    watching: Option<JoinHandle<PauseTrack>>,
}

impl PauseWatch {
    /// Watches from now on; times are seconds since `began`.
    pub fn start(root: &Root, scope: &Scope, began: Instant) -> Self {
        let (root, names) = (root.clone(), scope.tops.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let watch = move || {
            let mut track = PauseTrack::default();
            while !stopped.load(Ordering::Relaxed) {
                let counted: Option<Vec<DeviceCounters>> =
                    names.iter().map(|name| device_counters(&root, name)).collect();
                let Some(now) = counted.as_deref().and_then(sum) else { break };
                track.look(began.elapsed().as_secs_f64(), &now);
                std::thread::sleep(EVERY);
            }
            track
        };
        let name = "pause-watch".to_owned();
        Self { stop, watching: std::thread::Builder::new().name(name).spawn(watch).ok() }
    }

    /// The pauses, and for how many seconds they were watched for.
    pub fn finish(mut self) -> (f64, Vec<DevicePause>) {
        self.stop.store(true, Ordering::Relaxed);
        let watched = self.watching.take().and_then(|watching| watching.join().ok());
        watched.map_or((0.0, Vec::new()), |track| (track.watched_s, track.pauses))
    }
}

impl Drop for PauseWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What the looks so far tell.
#[derive(Debug, Default)]
struct PauseTrack {
    /// When the last look was, and what had been answered.
    last: Option<(f64, Answered)>,
    /// The first of the looks since something was answered, where all of them saw requests in
    /// flight.
    silent_from_s: Option<f64>,
    /// The longest time between two of these looks.
    gap_s: f64,
    /// Looks with their answers over the last second before the silence.
    recent: VecDeque<(f64, u64)>,
    watched_s: f64,
    pauses: Vec<DevicePause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answered {
    requests: u64,
    flushes: u64,
}

impl PauseTrack {
    fn look(&mut self, at_s: f64, counters: &DeviceCounters) {
        let flushes = counters.flushes.unwrap_or(0);
        let now = Answered { requests: counters.reads + counters.writes, flushes };
        let Some((last_s, last)) = self.last.replace((at_s, now)) else { return };
        let gap_s = at_s - last_s;
        if gap_s > LATE_S {
            self.silent_from_s = None;
            self.recent.clear();
            return;
        }
        self.watched_s += gap_s;
        if now == last {
            let is_first = self.silent_from_s.is_none();
            self.gap_s = if is_first { gap_s } else { self.gap_s.max(gap_s) };
            self.silent_from_s = match counters.in_flight {
                0 => None,
                _ => self.silent_from_s.or(Some(last_s)),
            };
            return;
        }
        let is_flush = now.flushes > last.flushes && now.requests <= last.requests + 1;
        if let Some(from_s) = self.silent_from_s.take()
            && !is_flush
        {
            self.keep(from_s, last_s);
        }
        self.recent.push_back((at_s, now.requests));
        while self.recent.front().is_some_and(|(first_s, _)| at_s - first_s > RATE_S) {
            self.recent.pop_front();
        }
    }

    fn keep(&mut self, from_s: f64, to_s: f64) {
        let lasts_s = to_s - from_s;
        let per_s = match (self.recent.front(), self.recent.back()) {
            (Some((first_s, first)), Some((last_s, last))) if last_s > first_s => {
                (last - first) as f64 / (last_s - first_s)
            }
            _ => 0.0,
        };
        let is_seen = self.gap_s <= GAP_SHARE_MAX * lasts_s;
        let is_pause = is_seen && lasts_s >= PAUSE_S_MIN && per_s * lasts_s >= DUE_MIN;
        if is_pause && self.pauses.len() < PAUSES_MAX {
            self.pauses.push(DevicePause { at_s: from_s, lasts_s });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(reads: u64, in_flight: u64, flushes: u64) -> DeviceCounters {
        DeviceCounters { reads, in_flight, flushes: Some(flushes), ..DeviceCounters::default() }
    }

    /// Looks each 10 ms at a device that answers 1,000 times per second but between these moments.
    fn watched(silent: [f64; 2], in_flight: u64, flushed: bool, late: bool) -> Vec<DevicePause> {
        let (mut track, mut reads) = (PauseTrack::default(), 0);
        for at in 0..300 {
            let at_s = f64::from(at) / 100.0;
            let is_silent = (silent[0]..silent[1]).contains(&at_s);
            if late && is_silent && at_s < silent[1] - 0.1 {
                continue;
            }
            let is_flush = flushed && (silent[1]..silent[1] + 0.01).contains(&at_s);
            reads += if is_silent || is_flush { 0 } else { 10 };
            let flushes = u64::from(flushed && at_s >= silent[1]);
            track.look(at_s, &counters(reads, if is_silent { in_flight } else { 1 }, flushes));
        }
        track.pauses
    }

    #[test]
    fn a_silence_with_requests_in_flight_is_a_pause() {
        let pauses = watched([1.5, 1.9], 1, false, false);
        assert_eq!(pauses.len(), 1);
        let DevicePause { at_s, lasts_s } = pauses[0];
        assert!((at_s - 1.49).abs() < 0.02 && (lasts_s - 0.4).abs() < 0.02, "{pauses:?}");
        assert!(watched([1.5, 1.9], 0, false, false).is_empty(), "nothing was asked for");
        assert!(watched([1.5, 1.55], 1, false, false).is_empty(), "too short");
        assert!(watched([1.5, 1.9], 1, true, false).is_empty(), "a flush took that long");
        assert!(watched([1.5, 1.9], 1, false, true).is_empty(), "nobody looked");
    }
}
