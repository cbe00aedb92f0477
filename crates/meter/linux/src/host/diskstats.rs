//! A device's counters, from `/proc/diskstats` and `/sys/block/X/stat`
//! (Documentation/admin-guide/iostats.rst of the kernel), what those below a path count from one
//! look to the next, and pauses of a whole device.
//!
//! Invariant: a look costs one small file per device. Devices that serve one file system together
//! are one.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostrata_run::DevicePause;
use iostrata_run::host::{DeviceCounters, DeviceDelta};

use crate::host::device::dir_of_name;
use crate::host::{HostError, Root, Scope, describe_path};

/// The counters of one device, by kernel name. Absent where it has none, and where the kernel was
/// not counting them.
pub fn device_counters(root: &Root, name: &str) -> Option<DeviceCounters> {
    let dir = dir_of_name(root, name);
    if let Some(dir) = &dir {
        if root.flag(dir.join("queue/iostats")) == Some(false) {
            return None;
        }
        if let Some(counters) = root.text(dir.join("stat")).and_then(|text| parse_stat(&text)) {
            return Some(counters);
        }
    }
    parse_diskstats(&root.text("/proc/diskstats")?).remove(name)
}

/// Parses `/proc/diskstats`: counters by kernel name.
pub fn parse_diskstats(text: &str) -> BTreeMap<String, DeviceCounters> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let _number: (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let name = words.next()?.to_owned();
            Some((name, parse_columns(words)?))
        })
        .collect()
}

/// Parses the text of one device's `stat` file.
pub fn parse_stat(text: &str) -> Option<DeviceCounters> {
    parse_columns(text.split_ascii_whitespace())
}

fn parse_columns<'a>(words: impl Iterator<Item = &'a str>) -> Option<DeviceCounters> {
    let mut columns = [None; 17];
    for (column, word) in columns.iter_mut().zip(words) {
        *column = Some(word.parse::<u64>().ok()?);
    }
    let [reads, reads_merged, sectors_read, read_ms, writes, rest @ ..] = columns;
    let [writes_merged, sectors_written, write_ms, in_flight, busy_ms, queue_ms, rest @ ..] = rest;
    let [discards, discards_merged, sectors_discarded, discard_ms, flushes, flush_ms] = rest;
    Some(DeviceCounters {
        reads: reads?,
        reads_merged: reads_merged?,
        sectors_read: sectors_read?,
        read_ms: read_ms?,
        writes: writes?,
        writes_merged: writes_merged?,
        sectors_written: sectors_written?,
        write_ms: write_ms?,
        in_flight: in_flight?,
        busy_ms: busy_ms?,
        queue_ms: queue_ms?,
        discards,
        discards_merged,
        sectors_discarded,
        discard_ms,
        flushes,
        flush_ms,
    })
}

/// What the device did between two readings that lie `seconds` apart. Absent when no time passed
/// or when the counters went back.
pub fn delta(before: &DeviceCounters, after: &DeviceCounters, seconds: f64) -> Option<DeviceDelta> {
    if !(seconds.is_finite() && seconds > 0.0) {
        return None;
    }
    let counters = before.zip(after, |before, after| after.checked_sub(before), passed_ms)?;
    Some(DeviceDelta { seconds, counters })
}

/// The counters of several devices that serve one file system together. Busy time is their mean,
/// as iostat has it for groups.
pub(crate) fn sum(all: &[DeviceCounters]) -> Option<DeviceCounters> {
    let sum = all.iter().copied().reduce(|sum, one| sum.plus(&one))?;
    let in_flight = all.iter().map(|one| one.in_flight).fold(0, u64::saturating_add);
    Some(DeviceCounters { in_flight, busy_ms: sum.busy_ms / all.len() as u64, ..sum })
}

/// The kernel keeps times in 32 bits, so that they start again at zero every 49.7 days of waiting.
/// A small step back is not that: the kernel's sums over processors may tremble.
fn passed_ms(before: u64, after: u64) -> u64 {
    const HALF: u64 = 1 << 31;
    match after.checked_sub(before) {
        Some(passed) => passed,
        None if (HALF..2 * HALF).contains(&before) && after < HALF => after + 2 * HALF - before,
        None => 0,
    }
}

/// The devices that requests for a path arrive at.
#[derive(Debug)]
pub struct DevicesBelow {
    root: Root,
    names: Vec<String>,
    last: Option<(Instant, DeviceCounters)>,
}

impl DevicesBelow {
    /// Those of a path; nothing where it lies on none, or where the kernel does not count.
    ///
    /// # Errors
    /// As [`describe_path`].
    pub fn of(root: &Root, path: &Path) -> Result<Option<Self>, HostError> {
        let names = Scope::of(root, &describe_path(root, path)?).tops;
        let mut below = Self { root: root.clone(), names, last: None };
        below.last = below.look();
        Ok(below.last.is_some().then_some(below))
    }

    /// Their names, as the kernel has them.
    pub fn name(&self) -> String {
        self.names.join("+")
    }

    /// What they did since the last look; nothing where one of them cannot be read any more.
    pub fn since_last(&mut self) -> Option<DeviceDelta> {
        let now = self.look()?;
        let (from, before) = self.last.replace(now)?;
        delta(&before, &now.1, now.0.saturating_duration_since(from).as_secs_f64())
    }

    fn look(&self) -> Option<(Instant, DeviceCounters)> {
        let at = Instant::now();
        let counted = self.names.iter().map(|name| device_counters(&self.root, name));
        let all: Vec<DeviceCounters> = counted.collect::<Option<_>>()?;
        Some((at, sum(&all)?))
    }
}

// Pauses of a whole device: stretches in which requests were in flight and none was answered,
// within measured windows and between them.
//
// Invariant: a look costs one small file per device. A pause is found by many looks; where they
// came late, since the processors were taken away, none is reported. A stretch at whose end nothing
// but a flush was answered is that flush.

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

/// Watches the devices below a path until it is dropped or read.
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

/// What the looks so far show.
#[derive(Debug, Default)]
struct PauseTrack {
    /// When the last look was, and what had been answered.
    last: Option<(f64, CompletionCounts)>,
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
struct CompletionCounts {
    requests: u64,
    flushes: u64,
}

impl PauseTrack {
    fn look(&mut self, at_s: f64, counters: &DeviceCounters) {
        let flushes = counters.flushes.unwrap_or(0);
        let now = CompletionCounts { requests: counters.reads + counters.writes, flushes };
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
    use proptest::prelude::*;

    use iostrata_run::host::Iostat;

    use super::*;

    const NEW: &str = " 254 0 vda 46679 7083 2918034 10719 27291 13741 2509024 4667 3 4940 16088 8435 45 709400 651 3920 49";

    #[test]
    fn every_column_has_its_place() {
        let counters = parse_diskstats(NEW)["vda"];
        let expected = DeviceCounters {
            reads: 46679,
            reads_merged: 7083,
            sectors_read: 2_918_034,
            read_ms: 10719,
            writes: 27291,
            writes_merged: 13741,
            sectors_written: 2_509_024,
            write_ms: 4667,
            in_flight: 3,
            busy_ms: 4940,
            queue_ms: 16088,
            discards: Some(8435),
            discards_merged: Some(45),
            sectors_discarded: Some(709_400),
            discard_ms: Some(651),
            flushes: Some(3920),
            flush_ms: Some(49),
        };
        assert_eq!(counters, expected);
        assert_eq!(parse_stat(NEW.split_once("vda").unwrap().1), Some(expected));
    }

    #[test]
    fn older_kernels_lack_columns() {
        let old = parse_stat("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((old.queue_ms, old.discards, old.flushes), (11, None, None));
        let discards = parse_stat("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").unwrap();
        assert_eq!((discards.discard_ms, discards.flushes), (Some(15), None));
        assert_eq!(parse_stat("1 2 3 4"), None);
        assert_eq!(parse_stat("1 2 3 4 5 6 7 8 9 10 x"), None);
    }

    #[test]
    fn times_wrap_and_counts_do_not() {
        assert_eq!(passed_ms(u64::from(u32::MAX) - 9, 20), 30);
        assert_eq!(passed_ms(100, 97), 0);
        let before = DeviceCounters { reads: 10, ..DeviceCounters::default() };
        let after = DeviceCounters { reads: 9, ..DeviceCounters::default() };
        assert_eq!(delta(&before, &after, 1.0), None);
        assert_eq!(delta(&before, &before, 0.0), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}", numbers in "[0-9 \nvda]{0,300}") {
            parse_diskstats(&text);
            parse_diskstats(&numbers);
            parse_stat(&numbers);
        }

        #[test]
        fn any_two_readings_are_survived(
            a in proptest::array::uniform17(any::<u64>()),
            b in proptest::array::uniform17(any::<u64>()),
        ) {
            let text = |numbers: [u64; 17]| numbers.map(|n| n.to_string()).join(" ");
            let (a, b) = (parse_stat(&text(a)).unwrap(), parse_stat(&text(b)).unwrap());
            if let Some(delta) = delta(&a, &b, 0.5) {
                iostrata_run::host::Iostat::of(&delta);
            }
        }
    }

    #[test]
    fn the_device_below_this_directory_is_looked_at() {
        let root = Root::system();
        let Some(mut below) = DevicesBelow::of(&root, Path::new(".")).unwrap() else {
            eprintln!("skipped: no counted device lies below this directory");
            return;
        };
        assert!(!below.name().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let delta = below.since_last().unwrap();
        assert!(delta.seconds > 0.0, "{delta:?}");
    }

    #[test]
    fn what_lies_on_no_device_has_none() {
        let root = Root::system();
        assert!(DevicesBelow::of(&root, Path::new("/proc")).unwrap().is_none());
        assert!(DevicesBelow::of(&root, Path::new("/no/such/place")).is_err());
    }

    fn columns(before: &str, after: &str, seconds: f64) -> Iostat {
        let (before, after) = (parse_stat(before).unwrap(), parse_stat(after).unwrap());
        Iostat::of(&delta(&before, &after, seconds).unwrap())
    }

    /// Worked out by hand: over 2 s, 400 reads (100 merged, 6400 sectors, 200 ms), 1000 writes
    /// (3000 merged, 32000 sectors, 2500 ms), 10 discards (30 merged, 2048 sectors, 5 ms),
    /// 50 flushes (100 ms), 1.5 s busy, 2.8 s of queue.
    #[test]
    fn against_values_worked_out_by_hand() {
        let io = columns(
            "1000 10 8000 500 2000 20 16000 900 0 5000 9000 7 1 100 3 11 40",
            "1400 110 14400 700 3000 3020 48000 3400 4 6500 11800 17 31 2148 8 61 140",
            2.0,
        );
        let expected = Iostat {
            reads_per_s: 200.0,
            read_kib_per_s: 1600.0,
            reads_merged_per_s: 50.0,
            reads_merged_pct: Some(20.0),
            read_await_ms: Some(0.5),
            read_size_kib: Some(8.0),
            writes_per_s: 500.0,
            write_kib_per_s: 8000.0,
            writes_merged_per_s: 1500.0,
            writes_merged_pct: Some(75.0),
            write_await_ms: Some(2.5),
            write_size_kib: Some(16.0),
            discards_per_s: Some(5.0),
            discard_kib_per_s: Some(512.0),
            discards_merged_per_s: Some(15.0),
            discards_merged_pct: Some(75.0),
            discard_await_ms: Some(0.5),
            discard_size_kib: Some(102.4),
            flushes_per_s: Some(25.0),
            flush_await_ms: Some(2.0),
            queue_size: 1.4,
            util_pct: 75.0,
        };
        assert_eq!(io, expected);
    }

    #[test]
    fn nothing_done_has_no_mean() {
        let line = "1 1 1 1 1 1 1 1 0 1 1";
        let io = columns(line, line, 1.0);
        assert_eq!((io.read_await_ms, io.write_size_kib, io.reads_merged_pct), (None, None, None));
        assert_eq!((io.reads_per_s, io.queue_size, io.util_pct), (0.0, 0.0, 0.0));
        assert_eq!((io.discards_per_s, io.flushes_per_s, io.flush_await_ms), (None, None, None));
    }

    #[test]
    fn merges_without_completions() {
        let io = columns("0 0 0 0 0 0 0 0 0 0 0", "0 5 0 0 0 0 0 0 0 0 0", 1.0);
        assert_eq!(io.reads_merged_pct, Some(100.0));
        assert_eq!(io.read_await_ms, None);
    }
}

#[cfg(test)]
mod pause_watch_tests {
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
        assert!(watched([1.5, 1.9], 1, false, true).is_empty(), "no looks");
    }
}
