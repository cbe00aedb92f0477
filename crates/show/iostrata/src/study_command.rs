//! `iostrata study`: naming, showing, running, resuming and comparing. A run announces, makes,
//! measures, puts back, concludes, reports.
//!
//! Invariant: whatever ends the run, the session's changes are undone before the command does, and
//! what could not be undone is named with the way to do it.

use std::path::{Path, PathBuf};

use iostrata_change::{
    How, Session, StateDir, System, Thing, UndoOutcome, UndoReport, plan as in_words, restore,
};
use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_linux::host::{Root, describe_host, describe_path};
use iostrata_plan::study::{
    Extent, MeasuringOverrides, StudyPlan, StudySpec, VolumeKind, cost, shipped, shipped_text,
};
use iostrata_run::host::ProfileDiff;
use iostrata_run::{
    Event, ProbeHost, RunKind, RunReader, RunResult, RunWriter, StudyDiffDocument, StudyDocument,
    StudyPoint,
};
use iostrata_show::report::PointDiff;
use iostrata_stats::units::{self, Size};
use iostrata_study::factorial::{self, StudyTask, VolumePlace};

use crate::args::{
    Common, DiffArgs, ListArgs, Printing, RunArgs, ShowArgs, StudyAction, StudyArgs, StudyPlace,
};
use crate::display::{Display, colour, print_json, print_text, width};
use crate::exit_error::{ExitError, exit_error};
use crate::restore_command;
use crate::run_sink::RunSink;
use crate::signals::Interruption;
use crate::study_database::{ServerPrograms, StudyDatabases};
use crate::study_show::{self, StudyListing, StudyOutline, list, show};

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &StudyArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        StudyAction::List(args) => list_shipped(args),
        StudyAction::Show(args) => show_study(args),
        StudyAction::Run(args) => run_study(args, interruption),
        StudyAction::Resume(args) => {
            resume_run(&args.run, &args.servers.servers, args.printing, interruption)
        }
        StudyAction::Diff(args) => diff(args),
    }
}

fn list_shipped(args: &ListArgs) -> Result<(), ExitError> {
    let listed = |(name, text): &(&str, &str)| {
        let spec = StudySpec::parse(text, name).map_err(usage)?;
        let of = |extent| {
            spec.plan(extent, None, &MeasuringOverrides::default()).map(|plan| cost(&plan))
        };
        Ok(StudyListing {
            quick: of(Extent::Quick).map_err(usage)?,
            full: of(Extent::Full).map_err(usage)?,
            name: spec.name,
            title: spec.title,
            question: spec.question,
        })
    };
    let studies = shipped().iter().map(listed).collect::<Result<Vec<_>, ExitError>>()?;
    if args.printing.json { print_json(&studies) } else { print_text(&list(&studies)) }
}

fn show_study(args: &ShowArgs) -> Result<(), ExitError> {
    let (spec, extent) = (load(&args.choice.study)?, args.choice.extent());
    let overrides = args.choice.overrides(&args.common);
    let plan = spec.plan(extent, args.choice.parts(), &overrides).map_err(usage)?;
    let changes = changes(&plan, &args.place)?;
    show_plan(&spec, &plan, &changes, args.choice.parts(), args.common.printing.json)
}

/// Prints a plan with what it costs and changes; `run --dry-run` ends here too.
fn show_plan(
    spec: &StudySpec,
    plan: &StudyPlan,
    changes: &[String],
    wanted: Option<&[String]>,
    json: bool,
) -> Result<(), ExitError> {
    let mut parts = spec.parts(plan.extent);
    parts.retain(|part| wanted.is_none_or(|wanted| wanted.contains(&part.name)));
    let exclusions = spec.exclusions(plan.extent);
    let cost = cost(plan);
    let shown = StudyOutline { plan, cost: &cost, changes, parts: &parts, exclusions: &exclusions };
    if json { print_json(&shown) } else { print_text(&show(&shown, width())) }
}

fn run_study(args: &RunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let (spec, extent) = (load(&args.choice.study)?, args.choice.extent());
    let overrides = args.choice.overrides(&args.common);
    let plan = spec.plan(extent, args.choice.parts(), &overrides).map_err(usage)?;
    let changes = changes(&plan, &args.place)?;
    if args.dry_run {
        return show_plan(&spec, &plan, &changes, args.choice.parts(), args.common.printing.json);
    }
    let plan = watched(plan, args.no_profile, args.no_trace);
    run_plan(plan, &args.place, &args.servers.servers, &args.common, interruption)
}

/// Leaves out what is not wanted in addition to the figures.
fn watched(mut plan: StudyPlan, no_profile: bool, no_trace: bool) -> StudyPlan {
    if no_profile {
        plan.measuring.profile_hz = 0;
    }
    plan.measuring.traced &= !no_trace;
    plan
}

/// Where the volumes of a run are made, below its directory.
const VOLUMES: &str = "volumes";

/// Every system change of a plan, in words, with the present values.
///
/// # Errors
/// When the plan names a setting that does not exist, or the options contradict each other.
pub fn changes(plan: &StudyPlan, place: &StudyPlace) -> Result<Vec<String>, ExitError> {
    let shown = place.dir.clone().unwrap_or_else(|| PathBuf::from("RUN").join(VOLUMES));
    let place = place_of(plan, place, shown)?;
    let changes =
        factorial::changes_of(plan, &place).map_err(|error| ExitError::Usage(error.to_string()))?;
    Ok(in_words(&changes))
}

/// Runs a study from its beginning.
///
/// # Errors
/// With the exit codes of the contract.
fn run_plan(
    plan: StudyPlan,
    place: &StudyPlace,
    servers: &[String],
    common: &Common,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    needs_root(&plan)?;
    let databases = StudyDatabases::new(ServerPrograms::named(servers)?);
    let display = Display::new(common.printing.quiet);
    // The options must be valid before a run directory is made.
    place_of(&plan, place, PathBuf::new())?;
    let out = common.out.as_deref();
    let mut sink = RunSink::begin(RunKind::Study, &plan.name, out, &display)?;
    let dir = match (&place.dir, sink.dir()) {
        (Some(dir), _) => dir.clone(),
        (None, Some(run)) => run.join(VOLUMES),
        (None, None) => {
            let why = sink.note().unwrap_or_default();
            return Err(ExitError::NotHere(format!(
                "the study has no place for its volumes: {why}"
            )));
        }
    };
    let host = begin(&mut sink, &plan, &dir, place.device.as_ref())?;
    let place = place_of(&plan, place, absolute(&dir)?)?;
    display.note(&announced(&plan, &place, &host)?);
    let task = StudyTask { plan: &plan, place, done: &[] };
    go_on(&task, host, databases, sink, common.printing.json, &display, interruption)
}

/// Goes on with a study that was killed or interrupted.
///
/// # Errors
/// With the exit codes of the contract.
fn resume_run(
    run: &Path,
    servers: &[String],
    printing: Printing,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let bad = |why: String| ExitError::Usage(format!("study resume {}: {why}", run.display()));
    let mut reader = RunReader::open(run).map_err(|error| bad(error.to_string()))?;
    reader.read_histograms().map_err(|error| bad(error.to_string()))?;
    let manifest = reader.manifest().clone();
    let databases = StudyDatabases::new(ServerPrograms::named(servers)?);
    let (Some(plan), Some(host)) = (manifest.study.clone(), manifest.host.clone()) else {
        return Err(bad("this run is no study; name the run directory of one".to_owned()));
    };
    if reader.events().iter().any(|event| matches!(event, Event::Finished { .. })) {
        return Err(bad("the study is finished; see its report".to_owned()));
    }
    needs_root(&plan)?;
    let display = Display::new(printing.quiet);
    let restored = restore(&StateDir::of_user(), &restore_command::system());
    if restored.journals.iter().any(|journal| !journal.things.is_empty()) {
        display.note("The changes of the killed run are undone; continuing.");
    }
    let writer =
        RunWriter::resume(run, &manifest).map_err(|error| ExitError::NotHere(error.to_string()))?;
    let place = VolumePlace {
        dir: PathBuf::from(&host.path.path),
        device: manifest.study_device.clone(),
        overwrite_device: manifest.study_device.is_some(),
        program: program()?,
        memory_bytes: memory_for_disks(),
    };
    std::fs::create_dir_all(&place.dir)
        .map_err(|error| ExitError::NotHere(format!("{}: {error}", place.dir.display())))?;
    let sink = RunSink::resumed(writer, manifest, &display);
    let done = reader.events().to_vec();
    let task = StudyTask { plan: &plan, place, done: &done };
    go_on(&task, host, databases, sink, printing.json, &display, interruption)
}

fn go_on(
    task: &StudyTask<'_>,
    host: ProbeHost,
    mut databases: StudyDatabases,
    mut sink: RunSink<'_>,
    json: bool,
    display: &Display,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let mut session = Session::begin(&StateDir::of_user(), System::new())
        .map_err(|error| ExitError::NotHere(error.to_string()))?;
    // What is not stored would have to be measured again.
    sink.goes_on = false;
    let stop = interruption.flag();
    let outcome = factorial::run(task, &mut session, stop, &mut sink, &mut databases);
    sink.goes_on = true;
    display.progress(1.0, "putting everything back");
    let undone = session.undo_all();
    display.finish();
    // Only if it is empty: whatever else lies there is not ours.
    let _kept_if_not_empty = std::fs::remove_dir(&task.place.dir);
    tell_undone(&undone, display);
    let outcome = match outcome {
        Err(_) if interruption.is_set() => {
            return Err(ExitError::Interrupted(interruption.exit_code()));
        }
        outcome => outcome.map_err(exit_error)?,
    };
    let mut document =
        summarise_study(host, task.plan, &outcome.events, ProbeEnd::of(&outcome.events));
    document.report = sink.report();
    if !sink.keep_with_report(&document) {
        document.report = None;
    }
    let is_empty = document.points.is_empty();
    let headline = document.headline.join(" ");
    sink.print(&RunResult::Study(Box::new(document)), &outcome.events, json)?;
    sink.end(if !undone.is_settled() {
        let why = "not everything could be put back; run iostrata restore";
        Err(ExitError::NotHere(why.to_owned()))
    } else if outcome.interrupted {
        Err(ExitError::Interrupted(interruption.exit_code()))
    } else if is_empty {
        Err(ExitError::NotHere(headline))
    } else {
        Ok(())
    })
}

/// Loop devices, file systems and settings need root; a plain directory does not.
fn needs_root(plan: &StudyPlan) -> Result<(), ExitError> {
    let changes = plan
        .cells
        .iter()
        .any(|cell| cell.volume.kind != VolumeKind::Here || cell.conditions != Default::default());
    if !changes || rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(ExitError::NotHere(format!(
        "study {} makes volumes and changes settings, which needs root: run it with sudo, or write \
         a study with filesystem = \"here\", which measures a directory as it is",
        plan.name
    )))
}

fn place_of(plan: &StudyPlan, place: &StudyPlace, dir: PathBuf) -> Result<VolumePlace, ExitError> {
    if let (Some(named), Some(device)) = (&place.overwrite_contents, &place.device)
        && named != device
    {
        return Err(ExitError::Usage(format!(
            "--overwrite-contents {}: names another device than --device {}; name the same one",
            named.display(),
            device.display()
        )));
    }
    if let Some(dir) = place.dir.as_ref().filter(|dir| dir.exists() && !dir.is_dir()) {
        let dir = dir.display();
        return Err(ExitError::Usage(format!("--dir {dir}: it is not a directory; name another")));
    }
    if let Some(device) = &place.device {
        is_block_device(device)?;
        has_no_disks(plan, device)?;
    }
    Ok(VolumePlace {
        dir,
        device: place.device.clone(),
        overwrite_device: place.overwrite_contents.is_some(),
        program: program()?,
        memory_bytes: memory_for_disks(),
    })
}

/// A named device takes the place of every disk, so none can be emulated in addition.
fn has_no_disks(plan: &StudyPlan, device: &Path) -> Result<(), ExitError> {
    match plan.cells.iter().find_map(|cell| cell.volume.disk.as_ref()) {
        None => Ok(()),
        Some(disk) => Err(ExitError::Usage(format!(
            "--device {}: study {} emulates disks ({disk}), which need no device; leave --device \
             away, or set disk = \"none\" in the study",
            device.display(),
            plan.name
        ))),
    }
}

/// This program: it runs worker processes and serves emulated disks.
fn program() -> Result<PathBuf, ExitError> {
    std::env::current_exe()
        .map_err(|error| ExitError::NotHere(format!("this program does not find itself: {error}")))
}

/// Emulated disks may fill a quarter of the memory that is available.
fn memory_for_disks() -> u64 {
    describe_host(&Root::system()).memory_available_bytes.unwrap_or(0) / 4
}

fn is_block_device(device: &Path) -> Result<(), ExitError> {
    let bad = |why: String| {
        let fix = "name a block device, for example from lsblk";
        ExitError::Usage(format!("--device {}: {why}; {fix}", device.display()))
    };
    let found = std::fs::metadata(device).map_err(|error| bad(error.to_string()))?;
    match std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type()) {
        true => Ok(()),
        false => Err(bad("not a block device".to_owned())),
    }
}

fn absolute(dir: &Path) -> Result<PathBuf, ExitError> {
    std::fs::canonicalize(dir)
        .map_err(|error| ExitError::Usage(format!("{}: {error}; name a directory", dir.display())))
}

/// Makes the place of the volumes and writes down what is known before the first point.
fn begin(
    sink: &mut RunSink<'_>,
    plan: &StudyPlan,
    dir: &Path,
    device: Option<&PathBuf>,
) -> Result<ProbeHost, ExitError> {
    let root = Root::system();
    std::fs::create_dir_all(dir)
        .map_err(|error| ExitError::NotHere(format!("{}: {error}", dir.display())))?;
    let dir = absolute(dir)?;
    let path = describe_path(&root, &dir)
        .map_err(|error| ExitError::NotHere(format!("{}: {error}", dir.display())))?;
    let host = ProbeHost { machine: describe_host(&root), path };
    sink.amend(|manifest| {
        manifest.host = Some(host.clone());
        manifest.study = Some(Box::new(plan.clone()));
        manifest.study_device = device.cloned();
    })?;
    Ok(host)
}

/// What it will make and write and for how long, printed before it begins.
fn announced(plan: &StudyPlan, place: &VolumePlace, host: &ProbeHost) -> Result<String, ExitError> {
    let layouts = factorial::lay_out(plan, place).map_err(exit_error)?;
    let names: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
    let device = host.path.devices.first().map_or("unknown", |device| device.name.as_str());
    let cost = cost(plan);
    let space = factorial::space_bytes(&layouts);
    let filled = units::bytes(factorial::filled_bytes(&layouts) as f64);
    let in_dir = place.dir.display();
    let on = match &place.device {
        Some(device) => format!("on {}, whose contents are lost", device.display()),
        None if space == 0 => format!("as disks in memory, mounted in {in_dir}"),
        None => format!("as loop files in {in_dir} ({} on {device})", units::bytes(space as f64)),
    };
    Ok(format!(
        "Study {}: {} points on {} {on}; writes {filled} before it measures, takes {}. \
         Everything is put back at the end; Ctrl-C is safe.",
        plan.name,
        plan.cells.len(),
        names.join(", "),
        study_show::takes(&cost),
    ))
}

fn tell_undone(report: &UndoReport, display: &Display) {
    let told = |thing: &&Thing| {
        !matches!(thing.outcome, UndoOutcome::Undone(How::PutBack | How::AsBefore))
    };
    for thing in report.things.iter().filter(told) {
        display.note(&thing.to_string());
    }
    for left in &report.left {
        display.note(&left.to_string());
    }
}

/// Ids that a refusal lists.
const IDS_LISTED: usize = 12;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
fn diff(args: &DiffArgs) -> Result<(), ExitError> {
    let a = point(&args.a, args.run.as_deref())?;
    let b = point(&args.b, args.run.as_deref())?;
    let profiles = a.profile.as_ref().zip(b.profile.as_ref());
    let profile = profiles.map(|(a, b)| ProfileDiff::of(a, b));
    if args.printing.json {
        return print_json(&StudyDiffDocument { a, b, profile });
    }
    let diff = PointDiff { a: (&args.a, &a), b: (&args.b, &b), profile: profile.as_ref() };
    print_text(&iostrata_show::report::point_diff_terminal(&diff, width(), colour()))
}

/// A point: its id where the run is named apart, else `RUN:POINT`.
fn point(name: &str, run: Option<&Path>) -> Result<StudyPoint, ExitError> {
    let bad = |why: String| ExitError::Usage(format!("study diff {name}: {why}"));
    let (run, id) = match (run, name.rsplit_once(':')) {
        (Some(run), _) => (run.to_owned(), name),
        (None, Some((run, id))) => (PathBuf::from(run), id),
        (None, None) => {
            return Err(bad("no run is named; write RUN:POINT, or add --run RUN".to_owned()));
        }
    };
    let document = document(&run).map_err(bad)?;
    let found = document.points.iter().position(|point| point.id == id);
    match found {
        Some(at) => Ok(document.points.into_iter().nth(at).unwrap_or_else(|| {
            panic!("point {at} was just found");
        })),
        None => {
            let ids: Vec<&str> =
                document.points.iter().take(IDS_LISTED).map(|point| point.id.as_str()).collect();
            let more = document.points.len().saturating_sub(ids.len());
            let and = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(bad(format!("the run has no such point; it has {}{and}", ids.join(", "))))
        }
    }
}

/// The document of a finished run, or one from the events of a partial run.
fn document(run: &Path) -> Result<StudyDocument, String> {
    let mut reader = RunReader::open(run).map_err(|error| error.to_string())?;
    if let Some(RunResult::Study(document)) = reader.result() {
        return Ok(document.as_ref().clone());
    }
    reader.read_histograms().map_err(|error| error.to_string())?;
    let manifest = reader.manifest();
    let (Some(plan), Some(host)) = (&manifest.study, &manifest.host) else {
        return Err("the run is no study; name the run directory of one".to_owned());
    };
    Ok(summarise_study(host.clone(), plan, reader.events(), ProbeEnd::of(reader.events())))
}

/// A study's text is not larger than this, in bytes.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// The study with this name, or in this file.
///
/// # Errors
/// When there is none, it cannot be read, or its text is wrong: with file, line and column.
pub fn load(study: &str) -> Result<StudySpec, ExitError> {
    if let Some(text) = shipped_text(study) {
        return StudySpec::parse(text, &format!("{study}.toml")).map_err(usage);
    }
    let path = Path::new(study);
    if !path.exists() {
        let names: Vec<&str> = shipped().iter().map(|(name, _)| *name).collect();
        return Err(ExitError::Usage(format!(
            "study {study}: no such file and no shipped study of that name; the shipped ones are {}",
            names.join(", ")
        )));
    }
    let unreadable = |error: &dyn std::fmt::Display| {
        ExitError::Usage(format!("study {study}: cannot be read: {error}; give a .toml file"))
    };
    let found = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !found.is_file() {
        return Err(unreadable(&"it is not a file"));
    }
    if found.len() > TEXT_BYTES_MAX {
        let most = Size(TEXT_BYTES_MAX);
        return Err(unreadable(&format!("it has {}, and a study at most {most}", found.len())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    StudySpec::parse(&text, study).map_err(usage)
}

/// A text or a choice that is wrong is bad input.
pub fn usage(error: iostrata_plan::study::StudyTextError) -> ExitError {
    ExitError::Usage(error.to_string())
}
