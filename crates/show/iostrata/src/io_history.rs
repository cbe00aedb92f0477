//! What earlier runs of the same workload say about the next one.
//!
//! Invariant: only runs count that measured the same requests on the same path and host within the
//! last day, and that are kept beside this one. It reads; runs that it cannot read are passed over.

use std::path::Path;

use iostrata_plan::IoSpec;
use iostrata_run::{Event, IoDocument, Manifest, Replicate, RunKind, RunReader, RunResult};
use iostrata_stats::repeat;

use crate::run_sink::RunSink;

/// Runs that are older tell too little of the next hour.
const AGE_S_MAX: f64 = 86_400.0;
/// More earlier runs than this make no difference.
const RUNS_MAX: usize = 30;
/// Directories that are looked at; a larger collection is not for this.
const DIRS_MAX: usize = 500;

/// Adds to each rate what the same command is expected to measure next.
pub fn add_repeats(document: &mut IoDocument, replicate: &Replicate, sink: &RunSink<'_>) {
    let stream = &replicate.streams[0];
    let spec = &replicate.point.streams[0].spec;
    let earlier = sink.dir().map_or_else(Vec::new, |dir| earlier(dir, sink.manifest(), spec));
    for (kind, into) in document.ops.iter_mut() {
        let Some(op) = &stream.ops[kind] else { continue };
        let slices: Vec<f64> =
            stream.series.of(kind).iter().map(|count| f64::from(*count)).collect();
        let values: Vec<f64> =
            earlier.iter().filter_map(|one| Some(one.ops[kind].as_ref()?.iops)).collect();
        if let Some(found) = repeat(&op.iops, &slices, &values) {
            into.iops_repeat_ci95 = Some(found.ci95);
            into.iops_repeat_n = found.earlier_runs;
        }
    }
}

/// Results of earlier runs of the same workload, the oldest first.
fn earlier(dir: &Path, manifest: &Manifest, spec: &IoSpec) -> Vec<IoDocument> {
    let Some(beside) = dir.parent() else { return Vec::new() };
    let beside = if beside.as_os_str().is_empty() { Path::new(".") } else { beside };
    let runs = RunReader::list(beside, DIRS_MAX).into_iter();
    let runs = runs.filter(|run| run.dir != dir && is_comparable(&run.manifest, manifest));
    let results = runs.filter_map(|run| result_of(&run.dir, spec));
    let mut results: Vec<IoDocument> = results.take(RUNS_MAX).collect();
    results.reverse();
    results
}

/// Whether a run is of this host, of the last day, and of the same kind.
fn is_comparable(other: &Manifest, this: &Manifest) -> bool {
    let age_s = this.started_at.duration_since(other.started_at).as_secs_f64();
    let machine = |manifest: &Manifest| {
        let host = manifest.host.as_ref()?;
        let machine = &host.machine;
        Some((machine.kernel.clone(), machine.cpu_model.clone(), machine.cpus))
    };
    other.kind == RunKind::Io
        && (0.0..=AGE_S_MAX).contains(&age_s)
        && machine(other) == machine(this)
}

/// The result of a run, if it measured the same requests to its end.
fn result_of(dir: &Path, spec: &IoSpec) -> Option<IoDocument> {
    let run = RunReader::open(dir).ok()?;
    let same = run.events().iter().any(|event| match event {
        Event::Replicate(replicate) => {
            let streams = &replicate.point.streams;
            streams.first().is_some_and(|stream| is_same(&stream.spec, spec))
        }
        _ => false,
    });
    match run.result() {
        Some(RunResult::Io(document)) if same => Some((**document).clone()),
        _ => None,
    }
}

/// Whether two workloads make the same requests. How long they run, how precise they are to be and
/// which random numbers they draw does not count.
fn is_same(one: &IoSpec, other: &IoSpec) -> bool {
    let like_other = IoSpec {
        seed: other.seed,
        runtime: other.runtime,
        point_time: other.point_time,
        point_time_slow: other.point_time_slow,
        precision: other.precision,
        ..one.clone()
    };
    like_other == *other
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_same_requests_are_the_same_workload() {
        let one = IoSpec::new("f");
        let mut other = one.clone();
        (other.seed, other.runtime) = (77, Some(Duration::from_secs(4)));
        assert!(is_same(&one, &other));
        other.depth = 2;
        assert!(!is_same(&one, &other));
        assert!(!is_same(&one, &IoSpec::new("g")));
    }
}
