//! Where a command keeps its run, and how it begins one.
//!
//! Invariant: a directory that the user named must be writable; the default one is a convenience,
//! and a command goes on without it. One that fills up on the way loses no verdict: it is printed,
//! and then what could not be written.

use std::path::{Path, PathBuf};

use iostrata_run::{Manifest, RunKind, RunReader, RunWriter};
use serde::Serialize;

use crate::ending::Ending;

/// The run directory of a command, or why there is none.
pub struct RunDir {
    /// The writer, when there is a directory.
    pub writer: Option<RunWriter>,
    /// The manifest as it was written first.
    pub manifest: Manifest,
    /// Why there is no directory.
    pub note: Option<String>,
    /// Why the directory could not be written to the end.
    lost: Option<String>,
}

impl RunDir {
    /// Begins a run named `name` in `out` or in the default place.
    ///
    /// # Errors
    /// When the named directory cannot be used.
    pub fn begin(kind: RunKind, name: &str, out: Option<&Path>) -> Result<Self, Ending> {
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
        let now = jiff::Timestamp::now();
        let manifest = Manifest::new(kind, env!("CARGO_PKG_VERSION"), &arguments, now);
        let dir = out.map_or_else(|| default_dir(name), Path::to_owned);
        if out.is_some_and(|out| out.exists() && !out.is_dir()) {
            return Err(Ending::Usage(format!(
                "--out {}: it is not a directory; name one that is new or empty",
                dir.display()
            )));
        }
        match RunWriter::create(&dir, &manifest) {
            Ok(writer) => Ok(Self { writer: Some(writer), manifest, note: None, lost: None }),
            Err(error) if out.is_some() => {
                Err(Ending::Usage(format!("--out {}: {error}", dir.display())))
            }
            Err(error) => {
                let note = format!("The run is not kept: {error}, or choose a place with --out.");
                Ok(Self { writer: None, manifest, note: Some(note), lost: None })
            }
        }
    }

    /// A run that goes on in its directory.
    pub fn resumed(writer: RunWriter, manifest: Manifest) -> Self {
        Self { writer: Some(writer), manifest, note: None, lost: None }
    }

    /// Writes the manifest again, with what became known.
    ///
    /// # Errors
    /// When the directory cannot be written any more.
    pub fn rewrite_manifest(&self) -> Result<(), Ending> {
        match &self.writer {
            Some(writer) => writer
                .write_manifest(&self.manifest)
                .map_err(|error| Ending::NotHere(error.to_string())),
            None => Ok(()),
        }
    }

    /// Where the report of this run will be, as printed; absent without a directory.
    pub fn report(&self) -> Option<String> {
        let dir = self.writer.as_ref()?.dir();
        Some(dir.join(iostrata_run::layout::REPORT).display().to_string())
    }

    /// Keeps the document and writes the report.
    ///
    /// # Errors
    /// When the directory cannot be written or read any more.
    pub fn keep(&self, document: &impl Serialize) -> Result<(), Ending> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let not_kept = |error: &dyn std::fmt::Display| Ending::NotHere(error.to_string());
        writer.write_result(document).map_err(|error| not_kept(&error))?;
        let reader = RunReader::open(writer.dir()).map_err(|error| not_kept(&error))?;
        let html = iostrata_report::render(&reader).html;
        writer.write_report(&html).map_err(|error| not_kept(&error))?;
        Ok(())
    }

    /// Goes on without the directory: what was measured can still be printed.
    pub fn lose(&mut self, why: impl std::fmt::Display) {
        self.writer = None;
        self.lost.get_or_insert(why.to_string());
    }

    /// Fails when the directory was lost on the way, which is said after everything is printed.
    ///
    /// # Errors
    /// What could not be written, and what to do.
    pub fn kept(&self) -> Result<(), Ending> {
        self.lost.as_ref().map_or(Ok(()), |why| {
            Err(Ending::NotHere(format!(
                "the run was not kept: {why}; what is printed above is all there is (choose a \
                 place with room by --out)"
            )))
        })
    }

    /// The directory as printed.
    pub fn shown(&self) -> Option<String> {
        self.writer.as_ref().map(|writer| writer.dir().display().to_string())
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
