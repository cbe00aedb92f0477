//! `iostrata io`: prepares the files, measures one point, prints and keeps it.

use std::path::{Path, PathBuf};

use iostrata_io::{FileSetPlan, Place};
use iostrata_linux::host::Root;
use iostrata_load::IoLoad;
use iostrata_plan::{
    Better, IoApi, IoSpec, Layer, Metric, MetricKind, OpKind, Point, Preparation, Stream,
};
use iostrata_run::{
    Event, IoDocument, Manifest, OpFigures, Replicate, RunKind, RunReader, RunResult, StreamFigures,
};
use iostrata_stats::units::{self, Size};
use iostrata_stats::{Verdict, repeat, time_for_precision};
use iostrata_study::{FileSetCache, Measurement, Meter, Pipeline, WantedFiles};

use crate::args::{Common, IoArgs};
use crate::display::Display;
use crate::exit_error::{ExitError, exit_error};
use crate::io_parts::{files_ending, in_memory, io_document, path_facts};
use crate::run_sink::RunSink;
use crate::signals::Interruption;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &IoArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let run = IoRun {
        name: "io",
        path: args.path.clone(),
        size: args.size,
        keep: args.keep,
        overwrite_contents: args.overwrite_contents,
        common: &args.common,
    };
    measure(args.spec()?, &run, interruption)
}

/// One workload on files, from options of our own or from fio's.
pub struct IoRun<'a> {
    /// What the run directory is named after.
    pub name: &'a str,
    /// A file, a directory or a device.
    pub path: PathBuf,
    /// The requested bytes.
    pub size: Option<u64>,
    /// Whether files that are made stay.
    pub keep: bool,
    /// Whether an existing file or device may be overwritten.
    pub overwrite_contents: bool,
    /// What every run takes.
    pub common: &'a Common,
}

/// Measures a workload, prints and keeps what came of it.
///
/// # Errors
/// With the exit codes of the contract.
pub fn measure(
    mut spec: IoSpec,
    args: &IoRun<'_>,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let display = Display::new(args.common.printing.quiet);
    let mut files = FileSetCache::default();
    let wanted = match spec.api {
        IoApi::Null => None,
        _ => Some(prepare(args, &mut spec, &mut files, &display, interruption)?),
    };
    if let Some(bound) = args.common.max_time {
        spec.runtime = spec.runtime.map(|runtime| runtime.min(bound));
        spec.point_time = spec.point_time.min(bound);
    }
    let facts = path_facts(&args.path);
    let mut sink = RunSink::begin(RunKind::Io, args.name, args.common.out.as_deref(), &display)?;
    sink.amend_host(facts.as_ref());
    let program = std::env::current_exe().ok();
    let meter = Meter::new(&Root::system(), facts.as_ref(), interruption.flag(), program);
    let mut pipeline = Pipeline::new(&mut sink, meter, files, interruption.flag());
    let (point, longest_s) = (point(&spec), spec.longest().as_secs_f64());
    let set = wanted.as_ref().and_then(|wanted| pipeline.files.get(wanted));
    let specs = set.map_or_else(Vec::new, |set| set.specs().to_vec());
    let load = IoLoad::new(&point.streams, vec![specs]);
    let share = |elapsed_s: f64| elapsed_s / longest_s;
    let measured = pipeline.measure(&point, 0, &load, &share, &point.title, &mut []);
    display.finish();
    let Measurement { mut replicate, interrupted, error, .. } = measured.map_err(exit_error)?;
    if let Some(set) = wanted.as_ref().and_then(|wanted| pipeline.files.get(wanted)) {
        replicate.verdicts.merge(&iostrata_study::extent_verdicts(set, &point));
    }
    pipeline.store(Event::Replicate(Box::new(replicate.clone()))).map_err(exit_error)?;
    let outcome = pipeline.finish(&[], interrupted).map_err(exit_error)?;
    let mut document = document(&replicate, &sink, error.is_none() && !interrupted);
    document.notes.extend(facts.as_ref().filter(|_| wanted.is_some()).and_then(in_memory));
    if !sink.keep(&document) {
        document.run = None;
    }
    sink.say_whether_kept();
    let result = RunResult::Io(Box::new(document));
    sink.print(&result, &outcome.events, args.common.printing.json)?;
    sink.end(match error {
        Some(error) => Err(exit_error(error)),
        None if interruption.is_set() => Err(ExitError::Interrupted(interruption.exit_code())),
        None => Ok(()),
    })
}

/// Makes or opens the files, and gives the workload their size.
fn prepare(
    args: &IoRun<'_>,
    spec: &mut IoSpec,
    cache: &mut FileSetCache,
    display: &Display,
    interruption: &Interruption,
) -> Result<WantedFiles, ExitError> {
    let place = match args.name {
        // Numbers follow the name.
        "fileio" => Place::NewFile(args.path.clone()),
        _ => Place::find(&args.path).map_err(|error| ExitError::Usage(error.to_string()))?,
    };
    let exists = matches!(place, Place::ExistingFile(_) | Place::Device(_));
    let wanted = WantedFiles::data(FileSetPlan {
        files: spec.files,
        total_bytes: if exists { args.size } else { Some(spec.size_bytes) },
        block_bytes: spec.block_bytes,
        fill: iostrata_study::fill_of(spec.preparation),
        keep: args.keep,
        write: iostrata_load::open_mode(spec).write,
        overwrite_contents: args.overwrite_contents,
        seed: spec.seed,
        place,
    });
    let mut filling = |progress| display.filling(progress, "with random data");
    let files = cache
        .prepare(&wanted, interruption.flag(), &mut filling)
        .map_err(|error| files_ending(&error, interruption))?;
    if spec.direct && !files.takes_direct() {
        return Err(ExitError::NotHere(format!(
            "--direct 1: the file system of {} refuses direct I/O; use --direct=0",
            args.path.display()
        )));
    }
    spec.size_bytes = files.total_bytes();
    spec.check()?;
    Ok(wanted)
}

/// The one point of this command.
fn point(spec: &IoSpec) -> Point {
    let op = if spec.mix.reads() { OpKind::Read } else { OpKind::Write };
    let unit = if op == OpKind::Read { "reads/s" } else { "writes/s" };
    let in_flight = spec.jobs * spec.depth;
    let title = format!(
        "{} {}, {}{}, {in_flight} in flight",
        units::bytes(f64::from(spec.block_bytes)),
        if op == OpKind::Read { "reads" } else { "writes" },
        spec.api.name(),
        if spec.direct { ", direct" } else { "" },
    );
    Point {
        id: "io".to_owned(),
        title,
        layer: Layer::FileApi,
        streams: vec![Stream { name: "main".to_owned(), spec: spec.clone() }],
        metric: Metric {
            stream: 0,
            op,
            kind: MetricKind::Iops,
            unit: unit.to_owned(),
            better: Better::Higher,
        },
        curve: None,
        block: "io".to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

/// The document of the replicate. `whole` is false when it was interrupted or failed.
fn document(replicate: &Replicate, sink: &RunSink<'_>, whole: bool) -> IoDocument {
    let stream = &replicate.streams[0];
    let mut document = io_document(stream, replicate.duration_s, &replicate.verdicts);
    document.run = sink.shown();
    add_repeats(&mut document, replicate, sink);
    let spec = &replicate.point.streams[0].spec;
    document.notes.extend(notes(spec, stream, document.duration_s, whole));
    document
}

/// Older runs predict too little of the next hour.
const AGE_S_MAX: f64 = 86_400.0;
/// More earlier runs than this make no difference.
const RUNS_MAX: usize = 30;
/// Directories that are read; a larger collection is not for this.
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
    let same = run.events().iter().filter_map(Event::replicate).any(|replicate| {
        let streams = &replicate.point.streams;
        streams.first().is_some_and(|stream| is_same(&stream.spec, spec))
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

/// A window that is shorter than requested by less than this has not ended early.
const SHORTER_S: f64 = 0.05;

/// All notes on the one stream of the command. `whole` is false when it was interrupted or failed.
pub fn notes(spec: &IoSpec, stream: &StreamFigures, duration_s: f64, whole: bool) -> Vec<String> {
    let early = ended_early(spec, stream, duration_s).filter(|_| whole);
    early.into_iter().chain(longer(spec, stream, duration_s)).collect()
}

/// Why the window is shorter than `--runtime`.
fn ended_early(spec: &IoSpec, stream: &StreamFigures, duration_s: f64) -> Option<String> {
    let asked_s = spec.runtime?.as_secs_f64();
    if duration_s + SHORTER_S.max(0.01 * asked_s) >= asked_s {
        return None;
    }
    let written: u64 = stream.ops[OpKind::Write].as_ref().map_or(0, |op| op.bytes);
    let why = match spec.write_bytes_max {
        Some(most)
            if written + u64::from(spec.block_bytes) * spec.in_flight_max() as u64 >= most =>
        {
            format!("--max-write {} was used up", Size(most))
        }
        _ if spec.preparation != Preparation::Written && spec.mix.writes() => format!(
            "every block of --size {} was written once; use a larger --size, or --prepare written",
            Size(spec.size_bytes)
        ),
        _ => return None,
    };
    let (ended, asked) = (units::seconds(duration_s), units::seconds(asked_s));
    Some(format!("it ended after {ended} of --runtime {asked}: {why}"))
}

/// How long to measure for figures without `too_few_samples`, and for the requested precision.
fn longer(spec: &IoSpec, stream: &StreamFigures, duration_s: f64) -> Option<String> {
    let needs = |(_, op): (OpKind, &OpFigures)| needed_s(op, spec.precision, duration_s);
    let needed_s = stream.ops.iter().filter_map(needs).reduce(f64::max)?;
    let precision = units::percent(spec.precision * 100.0);
    let option = if spec.runtime.is_some() { "--runtime" } else { "--point-time" };
    Some(match needed_s {
        s if s.is_finite() => format!(
            "for an interval within {precision} measure about {}: {option} {}s",
            units::seconds(s),
            s.ceil()
        ),
        _ => format!(
            "too few requests completed to estimate the time needed; try {option} {}s",
            (10.0 * duration_s).ceil()
        ),
    })
}

/// Seconds that this kind of request needs; `None` when it has them.
fn needed_s(op: &OpFigures, precision: f64, duration_s: f64) -> Option<f64> {
    let doubted = op.iops.verdicts.has(Verdict::TooFewSamples);
    let wide = op.iops.relative_half_width();
    if !doubted && wide <= precision {
        return None;
    }
    let for_width_s = time_for_precision(duration_s, wide, precision);
    // Too few, however narrow it looks: at least twice as much.
    Some(if doubted { for_width_s.max(2.0 * duration_s) } else { for_width_s })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iostrata_plan::Mix;
    use iostrata_stats::{Latencies, LatencyUs, Measured, Verdicts};

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

    fn stream(rate: f64, half_width: f64, verdicts: Verdicts) -> StreamFigures {
        let factor = (half_width / rate).exp();
        let iops = Measured::new(rate, [rate / factor, rate * factor], 30, verdicts);
        let op = OpFigures {
            ios: 1000,
            bytes: 4096 * 1000,
            latency_mean_us: iops.clone(),
            iops,
            latency_us: LatencyUs::default(),
            response_mean_us: None,
            response_us: None,
            latencies: Latencies::default(),
        };
        StreamFigures {
            name: "main".to_owned(),
            ops: [(OpKind::Write, op)].into_iter().collect(),
            ..StreamFigures::default()
        }
    }

    fn spec(runtime_s: u64) -> IoSpec {
        let mut spec = IoSpec::new("x");
        (spec.mix, spec.runtime) = (Mix::Write, Some(Duration::from_secs(runtime_s)));
        (spec.size_bytes, spec.preparation) = (64 << 20, Preparation::Empty);
        spec
    }

    #[test]
    fn a_size_that_ends_the_runtime_is_named() {
        let sound = stream(1000.0, 10.0, Verdicts::none());
        let found = notes(&spec(10), &sound, 1.2, true);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("it ended after 1.2 s of --runtime 10 s: "), "{found:?}");
        assert!(found[0].contains("--size 64M"), "{found:?}");
        assert_eq!(notes(&spec(10), &sound, 1.2, false), Vec::<String>::new(), "it was stopped");
        assert_eq!(notes(&spec(10), &sound, 9.98, true), Vec::<String>::new());
        let mut bounded = spec(10);
        bounded.write_bytes_max = Some(4096 * 1000);
        let found = notes(&bounded, &sound, 1.2, true);
        assert!(found[0].contains("--max-write 4000K was used up"), "{found:?}");
    }

    #[test]
    fn what_is_not_precise_says_how_long_it_needs() {
        let doubted = Verdicts::from_iter([Verdict::TooFewSamples]);
        // Five times the width needs 25 times the time, less a little.
        let wide = notes(&spec(2), &stream(1000.0, 149.9, Verdicts::none()), 2.0, true);
        assert_eq!(wide, ["for an interval within 3.0 % measure about 49.9 s: --runtime 50s"]);
        let narrow = notes(&spec(2), &stream(1000.0, 10.0, doubted.clone()), 2.0, true);
        assert_eq!(narrow, ["for an interval within 3.0 % measure about 4 s: --runtime 4s"]);
        let mut none = stream(1000.0, 10.0, doubted);
        if let Some(op) = none.ops.get_mut(OpKind::Write) {
            op.iops = Measured::without_interval(0.0, 0, Verdicts::none());
        }
        assert!(notes(&spec(2), &none, 2.0, true)[0].contains("try --runtime 20s"));
    }
}
