//! Where a command's run goes: progress to the display, events to the run directory, at the end the
//! result and its report.
//!
//! Invariant: a directory that the user named must be writable; the default one is a convenience,
//! and a command goes on without it. One that fills up on the way loses no verdict: what was
//! measured is printed, and then what could not be written. Only a study ends where it cannot store
//! what it measures, because it would have to measure that again.

use std::path::{Path, PathBuf};

use iostrata_linux::host::{Root, describe_host};
use iostrata_run::host::PathFacts;
use iostrata_run::{
    Event, Manifest, ProbeHost, RunKind, RunReader, RunResult, RunWriteError, RunWriter, layout,
};
use iostrata_show::report::RunView;
use iostrata_study::{Listener, StudyError};
use serde::Serialize;

use crate::display::{Display, colour, print_json, print_text, width};
use crate::exit_error::ExitError;

/// The run of a command, kept or not.
pub struct RunSink<'a> {
    display: &'a Display,
    /// The writer, when there is a directory.
    writer: Option<RunWriter>,
    manifest: Manifest,
    /// Why there is no directory.
    note: Option<String>,
    /// Whether measuring goes on when an event cannot be stored.
    pub goes_on: bool,
    /// Why the directory could not be written to the end.
    lost: Option<String>,
}

impl<'a> RunSink<'a> {
    /// Begins a run named `name` in `out` or in the default place.
    ///
    /// # Errors
    /// When the named directory cannot be used.
    pub fn begin(
        kind: RunKind,
        name: &str,
        out: Option<&Path>,
        display: &'a Display,
    ) -> Result<Self, ExitError> {
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
        let now = jiff::Timestamp::now();
        let manifest = Manifest::new(kind, env!("CARGO_PKG_VERSION"), &arguments, now);
        let dir = out.map_or_else(|| default_dir(name), Path::to_owned);
        if out.is_some_and(|out| out.exists() && !out.is_dir()) {
            return Err(ExitError::Usage(format!(
                "--out {}: it is not a directory; name one that is new or empty",
                dir.display()
            )));
        }
        let (writer, note) = match RunWriter::create(&dir, &manifest) {
            Ok(writer) => (Some(writer), None),
            Err(error) if out.is_some() => {
                return Err(ExitError::Usage(format!("--out {}: {error}", dir.display())));
            }
            Err(error) => {
                let why = format!("The run is not kept: {error}, or choose a place with --out.");
                (None, Some(why))
            }
        };
        Ok(Self { display, writer, manifest, note, goes_on: true, lost: None })
    }

    /// A run that goes on in its directory.
    pub fn resumed(writer: RunWriter, manifest: Manifest, display: &'a Display) -> Self {
        let writer = Some(writer);
        Self { display, writer, manifest, note: None, goes_on: true, lost: None }
    }

    /// Prints why there is no directory.
    pub fn say_whether_kept(&self) {
        self.note.iter().for_each(|note| self.display.note(note));
    }

    /// Why there is no directory.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What is run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes down what became known of the run.
    ///
    /// # Errors
    /// When the directory cannot be written any more.
    pub fn amend(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), ExitError> {
        change(&mut self.manifest);
        let written = self.writer.as_ref().map_or(Ok(()), |one| one.write_manifest(&self.manifest));
        written.map_err(|error| ExitError::NotHere(error.to_string()))
    }

    /// Writes down the host, as far as it is known.
    pub fn amend_host(&mut self, path: Option<&PathFacts>) {
        let Some(path) = path.filter(|_| self.writer.is_some()) else { return };
        let host = ProbeHost { machine: describe_host(&Root::system()), path: path.clone() };
        if let Err(error) = self.amend(|manifest| manifest.host = Some(host)) {
            self.note = Some(error.to_string());
        }
    }

    /// The directory, when there is one.
    pub fn dir(&self) -> Option<&Path> {
        self.writer.as_ref().map(RunWriter::dir)
    }

    /// The directory as printed.
    pub fn shown(&self) -> Option<String> {
        Some(self.dir()?.display().to_string())
    }

    /// Where the report of this run will be, as printed; absent without a directory.
    pub fn report(&self) -> Option<String> {
        Some(self.dir()?.join(layout::REPORT).display().to_string())
    }

    /// Keeps the document. True when it is kept.
    pub fn keep(&mut self, document: &impl Serialize) -> bool {
        self.written(|writer| writer.write_result(document))
    }

    /// Keeps the document and writes the report. True when both are kept.
    pub fn keep_with_report(&mut self, document: &impl Serialize) -> bool {
        if !self.keep(document) {
            return false;
        }
        let Some(dir) = self.dir() else { return false };
        match RunReader::open(dir) {
            Ok(reader) => {
                let html = iostrata_show::report::render(&reader).html;
                self.written(|writer| writer.write_report(&html).map(drop))
            }
            Err(error) => self.lose(&error),
        }
    }

    /// Writes something, if there is a directory. True when it is written.
    fn written(&mut self, write: impl FnOnce(&mut RunWriter) -> Result<(), RunWriteError>) -> bool {
        match self.writer.as_mut().map(write) {
            None => false,
            Some(Ok(())) => true,
            Some(Err(error)) => self.lose(&error),
        }
    }

    /// Goes on without the directory: what was measured can still be printed. Always false: nothing
    /// was written.
    fn lose(&mut self, why: &dyn std::fmt::Display) -> bool {
        self.display.note(&format!("{why}; going on without the run directory"));
        self.writer = None;
        self.lost.get_or_insert(why.to_string());
        false
    }

    /// Prints the result: its document, or what the terminal view makes of the run.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub fn print(&self, result: &RunResult, events: &[Event], json: bool) -> Result<(), ExitError> {
        if json {
            return print_json(result);
        }
        let (manifest, result) = (&self.manifest, Some(result));
        let view = RunView { manifest, result, events, notes: &[] };
        print_text(&iostrata_show::report::terminal(&view, width(), colour()))
    }

    /// How the command ends, after everything is printed. A directory that was lost on the way is
    /// the failure of a command that has no other, and is printed with any other.
    ///
    /// # Errors
    /// How it ended, or what could not be written and what to do.
    pub fn end(&self, ended: Result<(), ExitError>) -> Result<(), ExitError> {
        let Some(why) = &self.lost else { return ended };
        let not_kept = format!(
            "the run was not saved: {why}; the output above is all there is (choose a place \
             with free space by --out)"
        );
        ended.inspect_err(|_| self.display.note(&not_kept))?;
        Err(ExitError::NotHere(not_kept))
    }
}

impl Listener for RunSink<'_> {
    fn progress(&mut self, share: f64, text: &str) {
        self.display.progress(share, text);
    }

    fn note(&mut self, text: &str) {
        self.display.note(text);
    }

    fn store(&mut self, event: &Event) -> Result<(), StudyError> {
        match self.writer.as_mut().map(|writer| writer.append(event)) {
            Some(Err(error)) if !self.goes_on => Err(error.into()),
            Some(Err(error)) => {
                self.lose(&error);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// `iostrata-runs/<time>-<name>`, with a number behind it when two runs begin in one second.
fn default_dir(name: &str) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    let first = PathBuf::from(format!("iostrata-runs/{now}-{name}"));
    let numbered = |number| PathBuf::from(format!("iostrata-runs/{now}-{name}-{number}"));
    if !first.exists() {
        return first;
    }
    (2..1000).map(numbered).find(|dir| !dir.exists()).unwrap_or(first)
}
