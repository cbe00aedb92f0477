//! Whether files hold what they should: extents that were never written make fast reads.

use iostrata_io::{ExtentReport, FileSet, OpenMode};
use iostrata_plan::{Point, Preparation};
use iostrata_stats::{Verdict, Verdicts};

/// Verdicts on the extents of a file set: `sparse`, `unwritten_extents`. Silent for points whose
/// files are meant to be like that, and where the file system does not say.
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
