//! Writes a run directory, as the run goes.
//!
//! Invariants: an event is durable before anything later is written, and what belongs to it
//! (series, histograms) before the event, so the event is the mark that a replicate is complete.
//! Nothing outside the directory is touched.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::histograms;
use crate::lines::{self, Lines, failed};
use crate::{Event, Manifest, Replicate, RunWriteError, layout, series};

/// A run directory that is being written.
#[derive(Debug)]
pub struct RunWriter {
    dir: PathBuf,
    events: Lines,
    histograms: Lines,
    series: Lines,
}

impl RunWriter {
    /// Starts a run in a new or empty directory, or in place of an older run.
    ///
    /// # Errors
    /// [`RunWriteError::NotARun`] when the directory holds anything else; nothing is touched then.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, RunWriteError> {
        std::fs::create_dir_all(dir).map_err(failed("create", dir))?;
        if !is_empty(dir)? {
            if !dir.join(layout::MANIFEST).is_file() {
                return Err(RunWriteError::NotARun { dir: dir.to_owned() });
            }
            clear(dir)?;
        }
        lines::replace_json(&dir.join(layout::MANIFEST), "the manifest", manifest)?;
        Self::start(dir, manifest)
    }

    /// Continues a run that was stopped: lines that were cut off are removed, later ones follow.
    ///
    /// # Errors
    /// [`RunWriteError::NotARun`] when there is no run.
    pub fn resume(dir: &Path, manifest: &Manifest) -> Result<Self, RunWriteError> {
        if !dir.join(layout::MANIFEST).is_file() {
            return Err(RunWriteError::NotARun { dir: dir.to_owned() });
        }
        Self::start(dir, manifest)
    }

    fn start(dir: &Path, manifest: &Manifest) -> Result<Self, RunWriteError> {
        let mut run = Self {
            dir: dir.to_owned(),
            events: Lines::open(dir.join(layout::EVENTS))?,
            histograms: Lines::open(dir.join(layout::HISTOGRAMS))?,
            series: Lines::open(dir.join(layout::SERIES))?,
        };
        if run.histograms.is_empty()? {
            run.histograms.append(&histograms::head(manifest.started_at))?;
        }
        Ok(run)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Replaces the manifest: the host or the plan became known.
    ///
    /// # Errors
    /// When it cannot be written; the old one is then still there.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RunWriteError> {
        lines::replace_json(&self.dir.join(layout::MANIFEST), "the manifest", manifest)
    }

    /// Appends an event, a replicate with its series and histograms; all of it is durable on
    /// return.
    ///
    /// # Errors
    /// When something cannot be written, or a name cannot tag a histogram.
    pub fn append(&mut self, event: &Event) -> Result<(), RunWriteError> {
        match event {
            Event::Replicate(replicate) => self.append_replicate(replicate),
            other => self.events.append(&json_line("an event", other)?),
        }
    }

    fn append_replicate(&mut self, replicate: &Replicate) -> Result<(), RunWriteError> {
        let mut bare = replicate.clone();
        let columns = series::take_out(&mut bare);
        let columns: Result<String, _> =
            columns.iter().map(|line| json_line("a series", line)).collect();
        let histograms = histograms::lines(replicate)?;
        append_some(&mut self.series, &columns?)?;
        append_some(&mut self.histograms, &histograms)?;
        self.events.append(&json_line("a replicate", &Event::Replicate(Box::new(bare)))?)
    }

    /// Writes `result.json`, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_result(&self, document: &impl Serialize) -> Result<(), RunWriteError> {
        lines::replace_json(&self.dir.join(layout::RESULT), "the result", document)
    }

    /// Writes `report.html`, whole or not at all, and returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_report(&self, html: &str) -> Result<PathBuf, RunWriteError> {
        let path = self.dir.join(layout::REPORT);
        lines::replace(&path, html.as_bytes())?;
        Ok(path)
    }
}

fn append_some(file: &mut Lines, lines: &str) -> Result<(), RunWriteError> {
    if lines.is_empty() { Ok(()) } else { file.append(lines) }
}

fn json_line(what: &'static str, value: &impl Serialize) -> Result<String, RunWriteError> {
    let line =
        serde_json::to_string(value).map_err(|source| RunWriteError::Json { what, source })?;
    Ok(line + "\n")
}

/// Whether nothing is there but what a kill left before the manifest had its name.
fn is_empty(dir: &Path) -> Result<bool, RunWriteError> {
    let unfinished = lines::unfinished(&dir.join(layout::MANIFEST));
    for entry in std::fs::read_dir(dir).map_err(failed("list", dir))? {
        if entry.map_err(failed("list", dir))?.path() != unfinished {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the files of an older run, the manifest last, and nothing else.
fn clear(dir: &Path) -> Result<(), RunWriteError> {
    for name in layout::ALL.iter().rev() {
        let path = dir.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &path)(error));
            }
            _ => {}
        }
    }
    lines::sync_dir(dir)
}
