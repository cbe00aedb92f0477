//! Requests that never reached the device although they were meant to.

use iostrata_plan::{Layer, Point};
use iostrata_run::host::DirectIoBehaviour;
use iostrata_stats::{PAIRS_MIN, Verdict};

use crate::case::Case;
use crate::disturbed::carries;
use crate::observed::{PointLog, Which};
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const DIRECT_IO_IGNORED: &str = "direct_io_ignored";

/// Whether every stream of a point bypasses the page cache.
fn is_direct(seen: &PointLog<'_>) -> bool {
    !seen.point.streams.is_empty() && seen.point.streams.iter().all(|stream| stream.spec.direct)
}

/// The direct point that carries a verdict most often, if it does in most of its replicates.
fn carrier(case: &Case<'_, '_>, verdict: Verdict) -> Vec<Point> {
    let often = |seen: &&PointLog<'_>| {
        let carrying = seen.replicates.iter().filter(|one| carries(one, verdict)).count();
        is_direct(seen) && carrying * 2 > seen.replicates.len()
    };
    case.log.points().iter().find(often).map(|seen| seen.point.clone()).into_iter().collect()
}

/// How many confirming replicates carry the verdict, if most do.
fn confirmed(case: &Case<'_, '_>, which: Which, verdict: Verdict) -> Option<(String, u64)> {
    let Which::Confirming(id) = which else { return None };
    case.log.confirm_ids(id)?.iter().find_map(|point| {
        let again = case.log.replicates(point, which);
        let carrying = again.iter().filter(|(_, one)| carries(one, verdict)).count();
        (again.len() >= PAIRS_MIN && carrying * 2 > again.len())
            .then(|| ((*point).to_owned(), carrying as u64))
    })
}

pub(crate) fn direct_ignored_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    carrier(case, Verdict::DirectIgnored)
}

pub(crate) fn direct_ignored(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let facts = &case.host.path.direct_io;
    let because = facts.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    if facts.behaviour == DirectIoBehaviour::Refused {
        let text = format!(
            "The file system refuses O_DIRECT{because}: every request goes through the page cache."
        );
        return Some(Statement::new(Layer::Filesystem, 0, text).with("behaviour", "refused"));
    }
    let seen = confirmed(case, which, Verdict::DirectIgnored);
    let (point, n) = match (seen, facts.behaviour) {
        (Some((point, n)), _) => (Some(point), n),
        (None, DirectIoBehaviour::Ignored) => (None, 0),
        (None, _) => return None,
    };
    let text = format!(
        "The file system accepts O_DIRECT and does not do it{because}: requests go through the \
         page cache, and what is written is not on the device before it is flushed."
    );
    let found = Statement::new(Layer::Filesystem, n, text);
    Some(found.with("behaviour", "ignored").with_some("point", point))
}

pub(crate) fn cached_confirming(case: &Case<'_, '_>) -> Vec<Point> {
    if carrier(case, Verdict::DirectIgnored).is_empty() {
        carrier(case, Verdict::Cached)
    } else {
        Vec::new()
    }
}

pub(crate) fn cached(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let (point, n) = confirmed(case, which, Verdict::Cached)?;
    let text = "The page cache answered reads that were meant for the device: their figures are \
                those of memory."
        .to_owned();
    Some(Statement::new(Layer::Filesystem, n, text).with("point", point))
}
