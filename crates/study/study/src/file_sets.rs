//! File sets: made when first needed, used again by whatever does the same work, recreated for what
//! uses them up; and whether files hold what they should.
//!
//! Invariant: one set per role, so that a log never shares a file with data. Sets are removed with
//! the cache, unless their plan keeps them.

use std::sync::atomic::AtomicBool;

use iostrata_io::{
    ExtentReport, FileSet, FileSetError, FileSetPlan, FileSpec, Fill, OpenMode, Place, Progress,
};
use iostrata_plan::{IoApi, Point, Preparation, Stream};
use iostrata_stats::{Verdict, Verdicts};

/// What files are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Pages, or whatever a single workload touches.
    Data,
    /// A redo log.
    Log,
    /// Copies of pages on their way.
    Doublewrite,
}

/// Files that something wants. Equal wants share a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFiles {
    /// What for.
    pub role: FileRole,
    /// How they are made.
    pub plan: FileSetPlan,
}

impl WantedFiles {
    /// Files for data.
    pub fn data(plan: FileSetPlan) -> Self {
        Self { role: FileRole::Data, plan }
    }

    /// What a stream of a point wants in its directory; `None` when it touches no file. Streams of
    /// different blocks and seeds share files, which are a multiple of a page.
    pub(crate) fn of(stream: &Stream) -> Option<Self> {
        let spec = &stream.spec;
        let role = match stream.name.as_str() {
            "redo" | "log" => FileRole::Log,
            "doublewrite" => FileRole::Doublewrite,
            _ => FileRole::Data,
        };
        let place = Place::Directory(spec.path.clone());
        let plan = FileSetPlan {
            files: spec.files,
            fill: fill_of(spec.preparation),
            ..FileSetPlan::new(place, spec.size_bytes, BLOCK_BYTES)
        };
        (spec.api != IoApi::Null).then_some(Self { role, plan })
    }

    /// Whether requests use them up: what they write is no longer as it was prepared.
    pub(crate) fn is_used_up(&self) -> bool {
        self.plan.fill != Fill::Written
    }
}

const BLOCK_BYTES: u32 = 4096;

/// What a file set must be filled with for a workload's preparation.
pub fn fill_of(preparation: Preparation) -> Fill {
    match preparation {
        Preparation::Written => Fill::Written,
        Preparation::Fallocated => Fill::Fallocated,
        Preparation::Empty => Fill::Empty,
    }
}

/// The file sets at hand.
#[derive(Debug, Default)]
pub struct FileSetCache {
    sets: Vec<(WantedFiles, FileSet)>,
    filled_bytes: u64,
}

impl FileSetCache {
    /// Makes a set, unless it is there. One that requests use up is made afresh each time.
    ///
    /// # Errors
    /// As [`FileSet::prepare`]; `Stopped` after a signal.
    pub fn prepare(
        &mut self,
        wanted: &WantedFiles,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<&FileSet, FileSetError> {
        if wanted.is_used_up() {
            self.sets.retain(|(other, _)| other != wanted);
        }
        let at = match self.sets.iter().position(|(other, _)| other == wanted) {
            Some(at) => at,
            None => {
                let set = FileSet::prepare(&wanted.plan, stop, progress)?;
                self.filled_bytes += set.filled_bytes();
                self.sets.push((wanted.clone(), set));
                self.sets.len() - 1
            }
        };
        Ok(&self.sets[at].1)
    }

    /// A set, if it is there.
    pub fn get(&self, wanted: &WantedFiles) -> Option<&FileSet> {
        self.sets.iter().find(|(other, _)| other == wanted).map(|(_, set)| set)
    }

    /// The files of each stream of a point; none for one that touches none, or that were not
    /// prepared.
    pub(crate) fn files(&self, streams: &[Stream]) -> Vec<Vec<FileSpec>> {
        let set = |stream: &Stream| self.get(&WantedFiles::of(stream)?);
        let specs = |stream: &Stream| set(stream).map_or_else(Vec::new, |set| set.specs().to_vec());
        streams.iter().map(specs).collect()
    }

    /// Removes every set that requests have used up.
    pub(crate) fn drop_used_up(&mut self) {
        self.sets.retain(|(wanted, _)| !wanted.is_used_up());
    }

    /// Removes every set.
    pub fn clear(&mut self) {
        self.sets.clear();
    }

    /// Bytes that filling wrote so far.
    pub fn filled_bytes(&self) -> u64 {
        self.filled_bytes
    }
}

// Whether files hold what they should: extents that were never written make fast reads.

/// Verdicts on the extents of a file set: `sparse`, `unwritten_extents`. Silent for points whose
/// files are meant to be like that, and where the file system does not report it.
pub fn extent_verdicts(files: &FileSet, point: &Point) -> Verdicts {
    let on_purpose =
        point.streams.iter().any(|stream| stream.spec.preparation != Preparation::Written);
    if on_purpose {
        return Verdicts::none();
    }
    let report = files.open(OpenMode::default()).and_then(|open| open.extents());
    report.map_or(Verdicts::none(), |report| verdicts(&report))
}

fn verdicts(report: &ExtentReport) -> Verdicts {
    let found =
        [(report.hole_bytes, Verdict::Sparse), (report.unwritten_bytes, Verdict::UnwrittenExtents)];
    found.into_iter().filter(|(bytes, _)| *bytes > 0).map(|(_, verdict)| verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_and_unwritten_extents_have_a_verdict_each() {
        let of = |unwritten_bytes: u64, hole_bytes: u64| {
            let report = ExtentReport { unwritten_bytes, hole_bytes, ..ExtentReport::default() };
            verdicts(&report).iter().collect::<Vec<_>>()
        };
        assert_eq!(of(0, 0), []);
        assert_eq!(of(0, 4096), [Verdict::Sparse]);
        assert_eq!(of(4096, 0), [Verdict::UnwrittenExtents]);
        assert_eq!(of(1, 1).len(), 2);
    }
}
