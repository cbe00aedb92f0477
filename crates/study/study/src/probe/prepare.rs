//! Before the first point: what kind of place the directory is and what it allows, and the read
//! set, filled within the time of a probe.
//!
//! Invariant: whatever cannot be had is named once, with the fix, and the probe goes on without it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostrata_io::{FileSetError, OpenMode, Progress};
use iostrata_linux::host::{Root, quiet_check};
use iostrata_load::{IoLoad, Load, LoadFailure, NoObserver, Surroundings};
use iostrata_plan::{IoApi, IoSpec, Stream};
use iostrata_run::Unavailable;
use iostrata_run::host::{PathFacts, PathKind};

use super::budget::{Announcement, LEAST_BYTES, ProbeOptions, Shape};
use crate::{FileSetCache, StudyError, WantedFiles};

const BLOCK_BYTES: u32 = 4096;

/// What the directory allows, after the read set was made.
#[derive(Debug)]
pub(super) struct PreparedFiles {
    /// What every point has in common; `None` where nothing can be measured.
    pub shape: Option<Shape>,
    /// What cannot be had, each with the fix.
    pub unavailable: Vec<Unavailable>,
    /// How fast files are filled.
    pub fill_bytes_per_s: f64,
}

/// Makes the read set and finds out what works on it.
pub(super) fn prepare(
    options: &ProbeOptions,
    announcement: &Announcement,
    cache: &mut FileSetCache,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<PreparedFiles, StudyError> {
    let mut unavailable = Vec::new();
    let mut spec = IoSpec::new(&options.dir);
    spec.size_bytes = announcement.read_bytes;
    let mut stream = Stream { name: "data".to_owned(), spec };
    let time_max = announcement.usual_time();
    let began = Instant::now();
    let clock = || began.elapsed();
    let (read_bytes, fill_bytes_per_s) =
        match fill_read_set(cache, &mut stream, time_max, &clock, stop, progress)? {
            ReadSet::Filled { bytes, bytes_per_s } => (bytes, bytes_per_s),
            ReadSet::TooSlow { written_bytes, seconds } => {
                unavailable.push(too_slow(written_bytes, seconds));
                return Ok(PreparedFiles { shape: None, unavailable, fill_bytes_per_s: 0.0 });
            }
        };
    let write_bytes =
        write_bytes(announcement.write_bytes, fill_bytes_per_s, announcement.sets(), time_max);
    let set = WantedFiles::of(&stream).and_then(|wanted| cache.get(&wanted));
    let direct = set.is_some_and(|set| set.takes_direct());
    if !direct {
        let why = "the file system refuses O_DIRECT";
        let fix = "measure a directory on ext4, xfs or another disk file system".to_owned();
        unavailable.push(Unavailable::impossible("direct I/O", why, Some(fix)));
    }
    let block_bytes = set
        .filter(|_| direct)
        .and_then(|set| set.open(OpenMode { direct, ..OpenMode::default() }).ok())
        .map_or(BLOCK_BYTES, |open| open.alignment().offset_bytes.max(BLOCK_BYTES));
    let mut apis = vec![IoApi::Sync];
    for api in [IoApi::Libaio, IoApi::IoUring] {
        let files = set.map(|set| set.specs().to_vec()).unwrap_or_default();
        match try_api(&stream, files, api, direct, block_bytes, stop) {
            Ok(()) => apis.push(api),
            Err(error) => {
                unavailable.push(Unavailable::impossible(api.name(), error.to_string(), None));
            }
        }
    }
    let shape = Shape {
        dir: options.dir.clone(),
        direct,
        writes: !options.read_only,
        deep_api: apis.last().copied().unwrap_or(IoApi::Sync),
        apis,
        read_bytes,
        write_bytes,
        log_bytes: announcement.log_bytes.min(write_bytes),
        block_bytes,
        time_factor: 1.0,
        point_write_bytes_max: announcement.point_write_bytes_max,
        point_time_max: options.point_time.unwrap_or(Duration::from_secs(30)),
        precision: options.precision,
        lasting: options.lasting,
    };
    Ok(PreparedFiles { shape: Some(shape), unavailable, fill_bytes_per_s })
}

fn too_slow(written_bytes: u64, seconds: f64) -> Unavailable {
    let why = format!(
        "filling the files took too long: {} in {}",
        iostrata_stats::units::bytes(written_bytes as f64),
        iostrata_stats::units::seconds(seconds)
    );
    Unavailable::left_out("every rung", why, "--max-time, or measure while nothing else runs")
}

/// Reads for a few milliseconds through an API.
fn try_api(
    stream: &Stream,
    files: Vec<iostrata_io::FileSpec>,
    api: IoApi,
    direct: bool,
    block_bytes: u32,
    interrupted: &AtomicBool,
) -> Result<(), StudyError> {
    let mut stream = stream.clone();
    let spec = &mut stream.spec;
    (spec.api, spec.direct, spec.depth, spec.block_bytes) = (api, direct, 2, block_bytes);
    spec.runtime = Some(Duration::from_millis(5));
    let load = IoLoad::new(&[stream], vec![files]);
    let figures = load.run(&Surroundings { interrupted, program: None }, &mut NoObserver)?;
    match figures.failure {
        Some(LoadFailure::Request { request, .. }) => {
            Err(StudyError::request(&request, "the read set".to_owned()))
        }
        _ => Ok(()),
    }
}

// Filling files within the time of a probe.
//
// Invariant: filling counts in the budget. A read set that would take too long is given up early
// and made smaller; where even the smallest takes too long, that is reported and nothing is
// measured.

const MIB: u64 = 1 << 20;
/// Share of the whole time in which the read set must be filled.
const READ_SHARE: f64 = 0.25;
/// Share of the whole time in which all sets that are written to must be filled.
const WRITE_SHARE: f64 = 0.25;
/// After this long, how long the rest will take is predicted from the rate so far.
const PREDICT_AFTER: Duration = Duration::from_secs(2);
/// A smaller set is planned to take this share of the time that it may take.
const SMALLER_SHARE: f64 = 0.5;

/// The time since some moment.
pub(super) type Clock<'a> = &'a dyn Fn() -> Duration;

/// What filling the read set brought.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ReadSet {
    /// It is there.
    Filled {
        /// Its size.
        bytes: u64,
        /// How fast it was filled.
        bytes_per_s: f64,
    },
    /// Not even the smallest set could be filled in time.
    TooSlow {
        /// Bytes that were written.
        written_bytes: u64,
        /// In how many seconds.
        seconds: f64,
    },
}

/// Fills the read set, smaller than requested where that would take too long.
///
/// # Errors
/// As the file set's, `Stopped` after a signal included.
fn fill_read_set(
    cache: &mut FileSetCache,
    stream: &mut Stream,
    time_max: Duration,
    clock: Clock<'_>,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReadSet, FileSetError> {
    let allowed = time_max.mul_f64(READ_SHARE);
    let began = clock();
    let mut written_bytes = 0;
    loop {
        // All tries together keep the time.
        let left = allowed.saturating_sub(clock() - began);
        let mut pace = Pace::new(left, clock, interrupted);
        let prepared = pace.prepare(cache, std::slice::from_ref(stream), progress);
        written_bytes += pace.done_bytes;
        let seconds = pace.elapsed().as_secs_f64().max(1e-6);
        match prepared {
            Ok(()) => {
                let bytes = stream.spec.size_bytes;
                return Ok(ReadSet::Filled { bytes, bytes_per_s: bytes as f64 / seconds });
            }
            Err(FileSetError::Stopped { .. }) if pace.gave_up => {}
            Err(error) => return Err(error),
        }
        let left = allowed.saturating_sub(clock() - began);
        let smaller = smaller_bytes(pace.done_bytes, seconds, left.as_secs_f64());
        if smaller < LEAST_BYTES / 4 || smaller >= stream.spec.size_bytes {
            let seconds = (clock() - began).as_secs_f64();
            return Ok(ReadSet::TooSlow { written_bytes, seconds });
        }
        stream.spec.size_bytes = smaller;
    }
}

/// A set that can be filled well within the time at the rate so far, in whole MiB.
fn smaller_bytes(done_bytes: u64, seconds: f64, allowed_s: f64) -> u64 {
    let rate = done_bytes as f64 / seconds;
    (rate * allowed_s * SMALLER_SHARE) as u64 / MIB * MIB
}

/// Size of each set that is written to, so that filling `sets` of them keeps its share of the
/// time: at most what was announced.
pub(super) fn write_bytes(announced: u64, bytes_per_s: f64, sets: f64, time_max: Duration) -> u64 {
    let within = bytes_per_s * time_max.as_secs_f64() * WRITE_SHARE / sets;
    announced.min((within as u64 / MIB * MIB).max(LEAST_BYTES / 4))
}

/// Stops filling when a signal came or the time for it is over.
pub(super) struct Pace<'a> {
    clock: Clock<'a>,
    began: Duration,
    allowed: Duration,
    interrupted: &'a AtomicBool,
    /// Bytes written so far.
    done_bytes: u64,
    /// Whether time ended it, and no signal.
    gave_up: bool,
    /// Whether the rate so far may end it early.
    predicts: bool,
}

impl<'a> Pace<'a> {
    /// Filling that may be given up early, when it will take too long at the rate so far.
    fn new(allowed: Duration, clock: Clock<'a>, interrupted: &'a AtomicBool) -> Self {
        Self { predicts: true, ..Self::until(allowed, clock, interrupted) }
    }

    /// Filling that ends with the time.
    pub(super) fn until(allowed: Duration, clock: Clock<'a>, interrupted: &'a AtomicBool) -> Self {
        Self {
            clock,
            began: clock(),
            allowed,
            interrupted,
            done_bytes: 0,
            gave_up: false,
            predicts: false,
        }
    }

    fn elapsed(&self) -> Duration {
        (self.clock)() - self.began
    }

    /// Prepares the sets of these streams.
    ///
    /// # Errors
    /// As the cache's; `Stopped` where the time was over.
    pub(super) fn prepare(
        &mut self,
        cache: &mut FileSetCache,
        streams: &[Stream],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), FileSetError> {
        let stop = AtomicBool::new(self.interrupted.load(Ordering::Relaxed));
        let mut look = |filled: Progress| {
            progress(filled);
            self.done_bytes = filled.done_bytes;
            let late = is_late((self.clock)() - self.began, filled, self.allowed, self.predicts);
            self.gave_up |= late;
            if late || self.interrupted.load(Ordering::Relaxed) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        for wanted in streams.iter().filter_map(WantedFiles::of) {
            cache.prepare(&wanted, &stop, &mut look)?;
        }
        Ok(())
    }
}

/// Whether filling takes longer than it may, or will at the rate so far.
fn is_late(elapsed: Duration, filled: Progress, allowed: Duration, predicts: bool) -> bool {
    if filled.done_bytes >= filled.total_bytes {
        return false;
    }
    let share = filled.done_bytes.max(1) as f64 / filled.total_bytes as f64;
    let whole_s = elapsed.as_secs_f64() / share;
    elapsed > allowed || (predicts && elapsed >= PREDICT_AFTER && whole_s > allowed.as_secs_f64())
}

// What kind of place the directory is, and what that means for the figures.

/// How long the device is watched for others.
const WATCHED: Duration = Duration::from_millis(600);

/// Which other processes use the device now, as the end of a sentence; `None` where it is quiet.
pub(super) fn others(path: &PathFacts) -> Option<String> {
    let check = quiet_check(&Root::system(), path, WATCHED).filter(|check| !check.quiet)?;
    let names: Vec<String> =
        check.processes.iter().take(3).map(|one| format!("{} ({})", one.comm, one.pid)).collect();
    let who = if names.is_empty() { "something else".to_owned() } else { names.join(", ") };
    Some(format!("; {who} uses {} at the same time", check.device))
}

/// Names of the devices below, as the kernel's log has them.
pub(super) fn devices(path: &PathFacts) -> Vec<String> {
    path.block_stack.iter().map(|layer| layer.name.clone()).collect()
}

/// What cannot be seen or trusted in a place like this, each with the reason and the way out.
pub(super) fn limits_of(path: &PathFacts) -> Vec<Unavailable> {
    let mut limits = Vec::new();
    let mut say = |what: &str, why: String, fix: Option<&str>| {
        limits.push(Unavailable::impossible(what, why, fix.map(str::to_owned)));
    };
    match &path.kind {
        PathKind::Tmpfs => say(
            "device rungs",
            "the directory lies in memory (tmpfs): there is no device below it, and nothing here \
             survives a power cut"
                .to_owned(),
            Some("measure a directory on a disk"),
        ),
        PathKind::Network { protocol } => say(
            "device counters",
            format!(
                "the directory is served {}: what the device does is not visible from here",
                protocol.words()
            ),
            Some("run the probe on the machine that holds the disks as well, and compare"),
        ),
        PathKind::Overlay { upper, .. } => say(
            "plain file system rungs",
            format!(
                "the directory is an overlay; writes go to {}",
                upper.as_deref().unwrap_or("an upper directory that is not visible from here")
            ),
            Some("a database keeps its data on a volume of its own: measure that one"),
        ),
        PathKind::Unknown => {
            say("device counters", "what lies under the directory is not known".to_owned(), None)
        }
        PathKind::Disk | PathKind::BlockDevice if path.devices.is_empty() => {
            say(
                "device counters",
                "no block device was found under the directory".to_owned(),
                None,
            );
        }
        PathKind::Disk | PathKind::BlockDevice => {}
    }
    limits
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn late(elapsed_s: u64, done_bytes: u64, predicts: bool) -> bool {
        let filled = Progress { done_bytes, total_bytes: GIB };
        let allowed = Duration::from_secs(22);
        is_late(Duration::from_secs(elapsed_s), filled, allowed, predicts)
    }

    #[test]
    fn a_slow_storage_is_seen_before_the_time_is_over() {
        assert!(!late(1, 30 * MIB, true), "too early to tell");
        assert!(late(2, 60 * MIB, true), "34 s are more than 22 s");
        assert!(!late(2, 60 * MIB, false));
        assert!(!late(2, 120 * MIB, true));
        assert!(late(23, 1000 * MIB, false));
        assert!(!late(23, GIB, true), "it is done");
    }

    #[test]
    fn sets_shrink_to_what_the_rate_allows() {
        assert_eq!(smaller_bytes(60 * MIB, 2.0, 22.0), 330 * MIB);
        assert_eq!(smaller_bytes(MIB, 5.0, 22.0), 2 * MIB);
        let of = |mib_per_s: u64| {
            write_bytes(256 * MIB, (mib_per_s * MIB) as f64, 5.0, Duration::from_secs(100))
        };
        assert_eq!((of(1000), of(30), of(1)), (256 * MIB, 150 * MIB, 16 * MIB));
    }

    /// Fills 64 MiB on a storage of so many bytes per second; what came of it, how many files are
    /// left and how large they are together.
    fn filled(
        interrupted: bool,
        time_max: Duration,
        bytes_per_s: u64,
    ) -> (Result<ReadSet, FileSetError>, usize, u64) {
        let dir = tempfile::tempdir().unwrap();
        let mut spec = iostrata_plan::IoSpec::new(dir.path());
        spec.size_bytes = 64 * MIB;
        let mut stream = Stream { name: "data".to_owned(), spec };
        let mut cache = FileSetCache::default();
        let stop = AtomicBool::new(interrupted);
        let (now, before) = (Cell::new(Duration::ZERO), Cell::new(0));
        let mut each = |filled: Progress| {
            let done_bytes = filled.done_bytes.saturating_sub(before.replace(filled.done_bytes));
            let took = Duration::from_secs_f64(done_bytes as f64 / bytes_per_s as f64);
            now.set(now.get() + took);
        };
        let filled =
            fill_read_set(&mut cache, &mut stream, time_max, &|| now.get(), &stop, &mut each);
        let files = std::fs::read_dir(dir.path()).unwrap().map(|one| one.unwrap());
        let sizes: Vec<u64> = files.map(|one| one.metadata().unwrap().len()).collect();
        (filled, sizes.len(), sizes.iter().sum())
    }

    #[test]
    fn a_signal_ends_it_and_is_not_taken_for_slowness() {
        let (filled, ..) = filled(true, Duration::from_secs(100), GIB);
        assert!(matches!(filled, Err(FileSetError::Stopped { .. })), "{filled:?}");
    }

    #[test]
    fn a_set_that_is_too_slow_even_when_small_is_given_up_and_removed() {
        let (filled, left, _) = filled(false, Duration::from_secs(40), MIB);
        assert!(matches!(filled, Ok(ReadSet::TooSlow { .. })), "{filled:?}");
        assert_eq!(left, 0);
    }

    #[test]
    fn a_set_that_is_too_slow_is_made_smaller_within_the_same_time() {
        // 6 MiB/s need 10.7 s of 10. That is known after 2 s or with the first report after them,
        // and half of what is left then is for the smaller set.
        let (filled, _, left_bytes) = filled(false, Duration::from_secs(40), 6 * MIB);
        let Ok(ReadSet::Filled { bytes, .. }) = filled else { panic!("{filled:?}") };
        assert!((16 * MIB..=24 * MIB).contains(&bytes), "{bytes}");
        assert_eq!(left_bytes, bytes);
    }
}
