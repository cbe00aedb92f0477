//! Whether files hold what they should: extents that were never written make fast reads.

use iostrata_io::{FileSet, OpenMode};
use iostrata_spec::{Point, Preparation};
use iostrata_stats::{Verdict, Verdicts};

/// Verdicts on the extents of a file set: `sparse`, `unwritten_extents`. Silent for points whose
/// files are meant to be like that, and where the file system does not say.
pub fn extent_verdicts(files: &FileSet, point: &Point) -> Verdicts {
    let mut verdicts = Verdicts::none();
    let on_purpose =
        point.streams.iter().any(|stream| stream.spec.preparation != Preparation::Written);
    if on_purpose {
        return verdicts;
    }
    if let Ok(report) = files.open(OpenMode::default()).and_then(|open| open.extents()) {
        let found = [
            (report.hole_bytes, Verdict::Sparse),
            (report.unwritten_bytes, Verdict::UnwrittenExtents),
        ];
        for (_, verdict) in found.into_iter().filter(|(bytes, _)| *bytes > 0) {
            verdicts.add(verdict);
        }
    }
    verdicts
}
