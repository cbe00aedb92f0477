//! The files of a wave of jobs.
//!
//! Invariant: a file that several jobs name is made once, as large as the largest needs and written
//! if any of them reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iostrata_io::{FileSet, FileSetPlan, Fill, Place};
use iostrata_plan::fio::{FioStream, FioWave};
use iostrata_plan::{FileCall, IoApi};
use iostrata_study::{FileSetCache, WantedFiles, fill_of};

use crate::display::Display;
use crate::exit_error::ExitError;
use crate::io_parts::files_ending;
use crate::signals::Interruption;

/// What the jobs of a wave together want of one file.
#[derive(Clone, Copy, Debug)]
struct FileDemand {
    bytes: u64,
    fill: Fill,
    write: bool,
    direct: bool,
    keep: bool,
    seed: u64,
    /// What an existing file holds is what is to be read.
    as_it_is: bool,
}

/// The files of a wave: what each path is made like, in the cache that they are made in.
pub struct WaveFiles(BTreeMap<PathBuf, WantedFiles>);

impl WaveFiles {
    /// Makes, fills or finds the files of a wave.
    ///
    /// # Errors
    /// With the exit codes of the contract.
    pub fn prepare(
        wave: &FioWave,
        overwrite_contents: bool,
        cache: &mut FileSetCache,
        display: &Display,
        interruption: &Interruption,
    ) -> Result<Self, ExitError> {
        let mut files = BTreeMap::new();
        for (path, wanted) in wanted(wave) {
            let asked = asked(&path, wanted, overwrite_contents)?;
            let mut filling =
                |progress| display.filling(progress, &format!("of {}", path.display()));
            let set = cache
                .prepare(&asked, interruption.flag(), &mut filling)
                .map_err(|error| in_job_words(files_ending(&error, interruption)))?;
            if wanted.direct && !set.takes_direct() {
                let path = path.display();
                let text = format!("direct=1: the file system of {path} refuses it; use direct=0");
                return Err(ExitError::NotHere(text));
            }
            files.insert(path, asked);
        }
        Ok(Self(files))
    }

    /// The files of one stream; `None` when it touches none.
    pub fn of(&self, stream: &FioStream, cache: &FileSetCache) -> Option<FileSet> {
        let wanted = stream.paths.iter().filter_map(|path| self.0.get(path));
        let sets = wanted.filter_map(|wanted| cache.get(wanted));
        (stream.spec.api != IoApi::Null).then(|| FileSet::joined(sets))
    }
}

fn wanted(wave: &FioWave) -> BTreeMap<PathBuf, FileDemand> {
    let mut all: BTreeMap<PathBuf, FileDemand> = BTreeMap::new();
    for job in &wave.jobs {
        for stream in job.streams.iter().filter(|stream| stream.spec.api != IoApi::Null) {
            let spec = &stream.spec;
            let one = FileDemand {
                bytes: spec.variation.offset_bytes.saturating_add(spec.file_bytes()),
                fill: match spec.variation.call {
                    Some(FileCall::Create) => Fill::Absent,
                    _ if spec.variation.appends => Fill::Grown,
                    _ => fill_of(spec.preparation),
                },
                write: iostrata_load::open_mode(spec).write,
                direct: spec.direct,
                keep: !job.unlink,
                seed: spec.seed,
                as_it_is: spec.variation.verify.is_some() && !spec.mix.writes(),
            };
            for path in &stream.paths {
                let entry = all.entry(path.clone()).or_insert(one);
                *entry = FileDemand {
                    bytes: entry.bytes.max(one.bytes),
                    fill: fuller(entry.fill, one.fill),
                    write: entry.write || one.write,
                    direct: entry.direct || one.direct,
                    keep: entry.keep && one.keep,
                    seed: entry.seed,
                    as_it_is: entry.as_it_is && one.as_it_is,
                };
            }
        }
    }
    all
}

fn fuller(one: Fill, other: Fill) -> Fill {
    match (one, other) {
        (Fill::Grown, _) | (_, Fill::Grown) => Fill::Grown,
        (Fill::Written, _) | (_, Fill::Written) => Fill::Written,
        (Fill::Fallocated, _) | (_, Fill::Fallocated) => Fill::Fallocated,
        (Fill::Empty, _) | (_, Fill::Empty) => Fill::Empty,
        (Fill::Absent, Fill::Absent) => Fill::Absent,
    }
}

fn asked(
    path: &Path,
    wanted: FileDemand,
    overwrite_contents: bool,
) -> Result<WantedFiles, ExitError> {
    make_directories(path)?;
    let place =
        Place::find(path).map_err(|error| in_job_words(ExitError::Usage(error.to_string())))?;
    if let Place::Directory(path) = &place {
        let path = path.display();
        let text = format!("filename={path}: this is a directory; use directory={path}");
        return Err(ExitError::Usage(text));
    }
    let is_there = matches!(place, Place::ExistingFile(_));
    let total_bytes = Some(wanted.bytes).filter(|_| !(wanted.as_it_is && is_there));
    Ok(WantedFiles::data(FileSetPlan {
        total_bytes,
        fill: wanted.fill,
        keep: wanted.keep,
        write: wanted.write,
        overwrite_contents,
        seed: wanted.seed,
        ..FileSetPlan::new(place, wanted.bytes, 1)
    }))
}

/// Makes the directories in the name of a file, as fio does; the directory of `directory=` exists.
fn make_directories(path: &Path) -> Result<(), ExitError> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    std::fs::create_dir_all(parent).map_err(|error| {
        let (path, parent) = (path.display(), parent.display());
        ExitError::NotHere(format!("filename={path}: {parent} cannot be made: {error}"))
    })
}

/// The same message in the words of job files.
fn in_job_words(ending: ExitError) -> ExitError {
    let words = |text: String| text.replace("--path", "filename").replace("--size", "size");
    match ending {
        ExitError::Usage(text) => ExitError::Usage(words(text)),
        ExitError::NotHere(text) => ExitError::NotHere(words(text)),
        other => other,
    }
}
