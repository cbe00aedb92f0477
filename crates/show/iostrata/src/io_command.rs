//! `iostrata io`: prepares the files, measures one point, prints and keeps it.

use std::path::PathBuf;

use iostrata_io::{FileSetPlan, Place};
use iostrata_linux::host::Root;
use iostrata_load::IoLoad;
use iostrata_plan::{Better, IoApi, IoSpec, Layer, Metric, MetricKind, OpKind, Point, Stream};
use iostrata_run::{Event, IoDocument, Replicate, RunKind, RunResult};
use iostrata_stats::units;
use iostrata_study::{FileSetCache, Measurement, Meter, Pipeline, WantedFiles};

use crate::args::{Common, IoArgs};
use crate::display::Display;
use crate::exit_error::{ExitError, exit_error};
use crate::io_parts::{files_ending, in_memory, io_document, path_facts};
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use crate::{io_history, io_notes};

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
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

/// One workload on files, whoever words it.
pub struct IoRun<'a> {
    /// What the run directory is named after.
    pub name: &'a str,
    /// A file, a directory or a device.
    pub path: PathBuf,
    /// Bytes that were asked for.
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
/// As the contract's exit codes say.
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
    io_history::add_repeats(&mut document, replicate, sink);
    let spec = &replicate.point.streams[0].spec;
    document.notes.extend(io_notes::notes(spec, stream, document.duration_s, whole));
    document
}
