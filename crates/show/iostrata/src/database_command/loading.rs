//! What `prepare` and `cleanup` of every workload share.

use std::path::Path;
use std::time::Instant;

use iostrata_run::{Event, PrepareDocument, RunKind};
use iostrata_stats::units;
use iostrata_target::{Schema, Target, TargetError};
use iostrata_workload::Loaded;

use super::opened::{Opened, Use, ending};
use crate::args::{Printing, TargetArgs};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::{ExitError, exit_error};
use crate::run_sink::RunSink;
use crate::signals::Interruption;

/// A `prepare`: of what, how much, and where.
pub struct Loading<'a> {
    /// The workload.
    pub workload: &'a str,
    /// How much of it, and of what.
    pub size: (u64, &'a str),
    /// Where.
    pub target: &'a TargetArgs,
    /// The run's directory, where one is wanted.
    pub out: Option<&'a Path>,
    /// How it is printed.
    pub printing: Printing,
}

impl Loading<'_> {
    /// Loads, keeps what that came to, and prints it.
    ///
    /// # Errors
    /// What loading said; what cannot be written.
    pub fn run(
        &self,
        interruption: &Interruption,
        load: impl FnOnce(&Display) -> Result<Loaded, ExitError>,
    ) -> Result<(), ExitError> {
        let display = Display::new(self.printing.quiet);
        let name = format!("{}-prepare", self.workload);
        let begin = |out| RunSink::begin(RunKind::Prepare, &name, Some(out), &display);
        let mut sink = self.out.map(begin).transpose()?;
        let started = Instant::now();
        let Loaded { rows, rows_before } = shown(&display, interruption, load)?;
        let duration_s = started.elapsed().as_secs_f64();
        let document = PrepareDocument {
            target: without_password(&self.target.target),
            workload: self.workload.to_owned(),
            size: self.size.0,
            size_unit: self.size.1.to_owned(),
            rows,
            rows_before,
            rows_per_s: rows as f64 / duration_s.max(f64::MIN_POSITIVE),
            duration_s,
        };
        if let Some(sink) = &mut sink {
            let finished = Event::Finished { at_s: duration_s, bytes_written: 0 };
            iostrata_study::Listener::store(sink, &finished).map_err(exit_error)?;
            sink.keep(&document);
        }
        match self.printing.json {
            true => print_json(&document),
            false => print_text(&text(&document)),
        }
    }
}

/// Loads tables for a run that follows, and keeps nothing of it.
///
/// # Errors
/// What loading said.
pub fn for_run(
    printing: Printing,
    interruption: &Interruption,
    load: impl FnOnce(&Display) -> Result<Loaded, ExitError>,
) -> Result<(), ExitError> {
    shown(&Display::new(printing.quiet), interruption, load).map(drop)
}

fn shown(
    display: &Display,
    interruption: &Interruption,
    load: impl FnOnce(&Display) -> Result<Loaded, ExitError>,
) -> Result<Loaded, ExitError> {
    let loaded = load(display);
    display.finish();
    loaded.map_err(|error| match interruption.is_set() {
        true => ExitError::Interrupted(interruption.exit_code()),
        false => error,
    })
}

/// Loads into a target that is opened for it. Tables that were there are of the storage engine that
/// was asked for, or refused, where `judged` names a table to judge by.
///
/// # Errors
/// What opening or loading said.
pub fn load_into(
    args: &TargetArgs,
    (schema, judged): (&Schema, Option<usize>),
    display: &Display,
    load: impl FnOnce(&dyn Target) -> Result<Loaded, TargetError>,
) -> Result<Loaded, ExitError> {
    let opened = Opened::open(args, schema, Use::Make, &|text| display.note(text))?;
    let mut loaded = load(opened.target()).map_err(ending);
    if let (Ok(Loaded { rows: 0, .. }), Some(table)) = (&loaded, judged) {
        let asked = args.storage_engine.as_deref();
        loaded = opened.storage_engine(asked, schema, table).and(loaded);
    }
    opened.close()?;
    loaded
}

/// Removes a workload's tables, and says whether there were any.
///
/// # Errors
/// What the target said.
pub fn cleanup(
    args: &TargetArgs,
    printing: Printing,
    schema: &Schema,
    remove: impl FnOnce(&dyn Target) -> Result<bool, TargetError>,
) -> Result<(), ExitError> {
    let opened = Opened::open(args, schema, Use::Write, &|_| ())?;
    let removed = remove(opened.target()).map_err(ending);
    opened.close()?;
    match (removed?, printing.json) {
        (removed, true) => print_json(&serde_json::json!({ "removed": removed })),
        (true, false) => print_text("The tables are removed.\n"),
        (false, false) => print_text("There was nothing to remove.\n"),
    }
}

fn text(document: &PrepareDocument) -> String {
    let PrepareDocument { size, size_unit, rows, rows_before, duration_s, .. } = document;
    if *rows == 0 && *size > 0 {
        return format!("{size} {size_unit} are there already.\n");
    }
    let before = match rows_before {
        0 => String::new(),
        before => format!(", {} were there", units::count(*before as f64)),
    };
    format!(
        "{size} {size_unit}: {} rows in {duration_s:.1} s, {} rows/s{before}\n",
        units::count(*rows as f64),
        units::count(document.rows_per_s),
    )
}

/// The target without a password.
pub fn without_password(target: &str) -> String {
    iostrata_run::scrubbed(&[target.to_owned()]).concat()
}
