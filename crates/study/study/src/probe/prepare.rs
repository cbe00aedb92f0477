//! Before the first point: the read set, and what the directory allows.
//!
//! Invariant: whatever cannot be had is named once, with the fix, and the probe goes on without it.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use iostrata_io::{OpenMode, Progress};
use iostrata_load::{IoLoad, Load, LoadFailure, NoObserver, Surroundings};
use iostrata_plan::{IoApi, IoSpec, Stream};
use iostrata_run::Unavailable;

use super::budget::Announcement;
use super::filling::{ReadSet, fill_read_set, write_bytes};
use super::shape::{ProbeOptions, Shape};
use crate::{FileSetCache, StudyError, WantedFiles};

const BLOCK_BYTES: u32 = 4096;

/// What the directory allows, after the read set was made.
#[derive(Debug)]
pub(super) struct Prepared {
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
) -> Result<Prepared, StudyError> {
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
                return Ok(Prepared { shape: None, unavailable, fill_bytes_per_s: 0.0 });
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
    Ok(Prepared { shape: Some(shape), unavailable, fill_bytes_per_s })
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
