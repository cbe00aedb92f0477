//! `iostrata io`: prepares the files, measures one point, prints and keeps it.

use iostrata_host::Root;
use iostrata_io::{FileSet, FileSetPlan, Place};
use iostrata_report::RunView;
use iostrata_run::{Event, IoDocument, RunKind, RunResult};
use iostrata_spec::{Better, IoApi, IoSpec, Layer, Metric, MetricKind, OpKind, Point, Stream};
use iostrata_study::{Measurement, Meter};
use iostrata_units as units;

use crate::args::IoArgs;
use crate::display::{Display, colour, print_json, print_text, width};
use crate::ending::{Ending, ending_of};
use crate::io_parts::{files_ending, io_document, note_host, path_facts};
use crate::kept::histogram_parts;
use crate::run_dir::RunDir;
use crate::signals::Interruption;
use crate::{io_history, io_notes};

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &IoArgs, interruption: &Interruption) -> Result<(), Ending> {
    let mut spec = args.spec()?;
    let display = Display::new(args.common.printing.quiet);
    let files = match spec.api {
        IoApi::Null => None,
        _ => Some(prepare(args, &spec, &display, interruption)?),
    };
    if let Some(files) = &files {
        spec.size_bytes = files.total_bytes();
        spec.check()?;
    }
    if let Some(bound) = args.common.max_time {
        spec.runtime = spec.runtime.map(|runtime| runtime.min(bound));
        spec.point_time = spec.point_time.min(bound);
    }
    let (root, facts) = (Root::system(), path_facts(&args.path));
    let mut run_dir = RunDir::begin(RunKind::Io, "io", args.common.out.as_deref())?;
    note_host(&mut run_dir, facts.as_ref(), &root);
    let mut meter =
        Meter::new(&root, facts.as_ref(), interruption.flag(), std::env::current_exe().ok());
    let point = point(&spec);
    let longest_s = spec.longest().as_secs_f64();
    let measured = meter.measure(&point, 0, &[files.as_ref()], &mut |elapsed_s| {
        display.progress(elapsed_s / longest_s, &point.title);
    });
    display.finish();
    let measurement = measured.map_err(ending_of)?;
    let ended = ending(&meter, &measurement, files.as_ref());
    let document = finish(&measurement, &ended, &mut run_dir, files.as_ref());
    if let Some(note) = &run_dir.note {
        display.note(note);
    }
    show(args, &document, &run_dir, &measurement)?;
    drop(files);
    match measurement.error {
        Some(error) => Err(ending_of(error)),
        None if interruption.is_set() => Err(Ending::Interrupted(interruption.exit_code())),
        None => run_dir.kept(),
    }
}

fn prepare(
    args: &IoArgs,
    spec: &IoSpec,
    display: &Display,
    interruption: &Interruption,
) -> Result<FileSet, Ending> {
    let place = Place::find(&args.path).map_err(|error| Ending::Usage(error.to_string()))?;
    let exists = matches!(place, Place::ExistingFile(_) | Place::Device(_));
    let plan = FileSetPlan {
        files: spec.files,
        total_bytes: if exists { args.size } else { Some(spec.size_bytes) },
        block_bytes: spec.block_bytes,
        fill: iostrata_study::fill_of(spec.preparation),
        keep: args.keep,
        write: iostrata_load::open_mode(spec).write,
        overwrite_contents: args.overwrite_contents,
        seed: spec.seed,
        place,
    };
    let files = FileSet::prepare(&plan, interruption.flag(), &mut |progress| {
        let share = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64;
        let total = units::bytes(progress.total_bytes as f64);
        display.progress(share, &format!("filling {total} with random data"));
    })
    .map_err(|error| files_ending(&error, interruption))?;
    if spec.direct && !files.takes_direct() {
        return Err(Ending::NotHere(format!(
            "--direct 1: the file system of {} refuses direct I/O; use --direct=0",
            args.path.display()
        )));
    }
    Ok(files)
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
    }
}

/// How the run ended, with every byte that was written: the filling and the requests.
fn ending(meter: &Meter<'_>, measurement: &Measurement, files: Option<&FileSet>) -> Event {
    let filled_bytes = files.map_or(0, FileSet::filled_bytes);
    let (at_s, bytes_written) = (meter.elapsed_s(), meter.written_bytes() + filled_bytes);
    if measurement.interrupted {
        Event::Interrupted { at_s, bytes_written }
    } else {
        Event::Finished { at_s, bytes_written }
    }
}

/// Keeps the replicate and makes the document.
fn finish(
    measurement: &Measurement,
    ended: &Event,
    run_dir: &mut RunDir,
    files: Option<&FileSet>,
) -> IoDocument {
    let mut replicate = measurement.replicate.clone();
    if let Some(files) = files {
        replicate.verdicts.merge(&iostrata_study::extent_verdicts(files, &replicate.point));
    }
    let stream = &replicate.streams[0];
    let mut document = io_document(stream, replicate.duration_s, &replicate.verdicts);
    document.run = run_dir.shown();
    io_history::add_repeats(&mut document, &replicate, run_dir);
    let whole = measurement.error.is_none() && !measurement.interrupted;
    let spec = &replicate.point.streams[0].spec;
    document.notes.extend(io_notes::notes(spec, stream, document.duration_s, whole));
    let Some(writer) = &mut run_dir.writer else { return document };
    let parts = histogram_parts(&replicate, &measurement.histograms);
    let kept = writer
        .append_replicate(&replicate, &parts)
        .and_then(|()| writer.append(ended))
        .and_then(|()| writer.write_result(&document));
    if let Err(error) = kept {
        run_dir.lose(error);
        document.run = None;
    }
    document
}

fn show(
    args: &IoArgs,
    document: &IoDocument,
    run_dir: &RunDir,
    measurement: &Measurement,
) -> Result<(), Ending> {
    if args.common.printing.json {
        return print_json(document);
    }
    let result = RunResult::Io(Box::new(document.clone()));
    let events = [Event::Replicate(Box::new(measurement.replicate.clone()))];
    let view =
        RunView { manifest: &run_dir.manifest, result: Some(&result), events: &events, notes: &[] };
    print_text(&iostrata_report::terminal(&view, width(), colour()))
}
