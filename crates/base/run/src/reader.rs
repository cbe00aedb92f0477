//! Reads a run directory, complete or not.
//!
//! Invariants: what older versions wrote stays readable; a line that a kill cut off is left out and
//! named in the notes; damage anywhere else is an error with file and line. It writes nothing.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lines::GrowingFile;
use crate::series::{self, SeriesLine, SeriesMap};
use crate::{
    Event, FioDocument, FlushDocument, FormatVersion, IoDocument, Manifest, PrepareDocument,
    ProbeDocument, QueueDocument, RunKind, RunReadError, StudyDocument, TransactionDocument,
    WatchDocument, histograms, layout,
};

/// What the command printed at its end. In JSON the document itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunResult {
    /// Of `iostrata probe`.
    Probe(Box<ProbeDocument>),
    /// Of `iostrata io`.
    Io(Box<IoDocument>),
    /// Of `iostrata fio`.
    Fio(Box<FioDocument>),
    /// Of `iostrata study run`.
    Study(Box<StudyDocument>),
    /// Of `iostrata simulate queue`.
    SimulateQueue(Box<QueueDocument>),
    /// Of `iostrata simulate flush`.
    SimulateFlush(Box<FlushDocument>),
    /// Of `prepare`.
    Prepare(Box<PrepareDocument>),
    /// Of `run` of every workload of transactions.
    Transactions(Box<TransactionDocument>),
    /// Of `iostrata watch` and `iostrata tune`.
    Watch(Box<WatchDocument>),
}

/// A run as it was kept, or as far as it has come.
#[derive(Clone, Debug)]
pub struct RunReader {
    dir: PathBuf,
    manifest: Manifest,
    events: Vec<Event>,
    result: Option<RunResult>,
    notes: Vec<String>,
    event_lines: GrowingFile,
    series_lines: GrowingFile,
    /// Series whose events were not written yet.
    series: SeriesMap,
    /// Events of a newer version, left out.
    unknown: usize,
}

/// A run in a directory of runs, of which only the manifest was read.
#[derive(Clone, Debug)]
pub struct FoundRun {
    /// Where it is.
    pub dir: PathBuf,
    /// What was run.
    pub manifest: Manifest,
}

/// As much of a manifest as every version has.
#[derive(Deserialize)]
struct AnyManifest {
    format_version: FormatVersion,
    #[serde(default)]
    program_version: String,
}

impl RunReader {
    /// Reads a run, with the series put back into its events.
    ///
    /// # Errors
    /// When it is not a run, is in a newer format, or is damaged.
    pub fn open(dir: &Path) -> Result<Self, RunReadError> {
        let mut reader = Self {
            dir: dir.to_owned(),
            manifest: read_manifest(dir)?,
            events: Vec::new(),
            result: None,
            notes: Vec::new(),
            event_lines: GrowingFile::new(dir.join(layout::EVENTS)),
            series_lines: GrowingFile::new(dir.join(layout::SERIES)),
            series: SeriesMap::new(),
            unknown: 0,
        };
        reader.follow()?;
        Ok(reader)
    }

    /// Reads what was written since it was opened or followed last: the events that are new, with
    /// their series, and what became known of the run. What is being written at the moment comes
    /// the next time.
    ///
    /// # Errors
    /// When what is new is damaged.
    pub fn follow(&mut self) -> Result<&[Event], RunReadError> {
        self.manifest = read_manifest(&self.dir)?;
        let path = self.event_lines.path.clone();
        let is_newer = self.manifest.format_version.minor > FormatVersion::CURRENT.minor;
        let read = self.event_lines.read(|number, line| match from_json(&path, number, line) {
            Ok(event) => Ok(Some(event)),
            Err(_) if is_newer => Ok(None),
            Err(error) => Err(error),
        })?;
        // An event is written after what belongs to it, so that its series are there now.
        let path = self.series_lines.path.clone();
        let lines = self
            .series_lines
            .read(|number, line| Ok((number, from_json::<SeriesLine>(&path, number, line)?)))?;
        self.series
            .extend(lines.into_iter().map(|(number, line)| (line.key.clone(), (number, line))));
        let known = self.events.len();
        self.unknown += read.iter().filter(|event| event.is_none()).count();
        self.events.extend(read.into_iter().flatten());
        for event in &mut self.events[known..] {
            let Event::Replicate(replicate) = event else { continue };
            series::put_back(replicate, &self.series).map_err(|damage| RunReadError::Damaged {
                path: path.clone(),
                line: damage.line,
                reason: damage.reason,
            })?;
        }
        let mut done = BTreeSet::new();
        for event in &self.events[known..] {
            if let Event::Replicate(one) = event {
                done.insert((one.point.id.as_str(), one.replicate));
            }
        }
        self.series.retain(|key, _| !done.contains(&key.replicate()));
        if self.result.is_none() {
            self.result = read_result(&self.dir, &self.manifest)?;
        }
        self.note();
        Ok(&self.events[known..])
    }

    /// Notes what could not be read.
    fn note(&mut self) {
        self.notes.clear();
        if self.event_lines.is_torn {
            let name = layout::EVENTS;
            self.notes.push(format!("the last line of {name} was cut off and is left out"));
        }
        if self.unknown > 0 {
            self.notes.push(format!("{} events of a newer version are left out", self.unknown));
        }
        if self.result.is_none() {
            self.notes.push("the run has no result: it was stopped before its end".to_owned());
        }
    }

    /// The runs in a directory, the newest first, of at most so many entries. Nothing but their
    /// manifests is read; what is no run is passed over.
    pub fn list(dir: &Path, entries_max: usize) -> Vec<FoundRun> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let found = |entry: std::fs::DirEntry| {
            let dir = entry.path();
            Some(FoundRun { manifest: read_manifest(&dir).ok()?, dir })
        };
        let mut runs: Vec<FoundRun> = entries.take(entries_max).filter_map(found).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.manifest.started_at));
        runs
    }

    /// Puts the latency histograms back into the figures of the events.
    ///
    /// # Errors
    /// When their file is damaged.
    pub fn read_histograms(&mut self) -> Result<(), RunReadError> {
        let path = self.dir.join(layout::HISTOGRAMS);
        let histograms = histograms::read(&mut GrowingFile::new(path))?;
        for event in &mut self.events {
            if let Event::Replicate(replicate) = event {
                histograms::put_back(replicate, &histograms);
            }
        }
        Ok(())
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What the command printed at its end; absent when it did not reach it.
    pub fn result(&self) -> Option<&RunResult> {
        self.result.as_ref()
    }

    /// What could not be read, in words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn read_manifest(dir: &Path) -> Result<Manifest, RunReadError> {
    let path = dir.join(layout::MANIFEST);
    let text = std::fs::read_to_string(&path).map_err(|source| {
        let found = match source.kind() {
            ErrorKind::NotADirectory => "it is a file",
            ErrorKind::NotFound if !dir.exists() => "there is nothing of that name",
            ErrorKind::NotFound => "it has no run.json",
            _ => return RunReadError::Io { path: path.clone(), source },
        };
        RunReadError::NotARun { dir: dir.to_owned(), found }
    })?;
    let any: AnyManifest = from_json(&path, 1, &text)?;
    let FormatVersion { major, minor } = any.format_version;
    if major > FormatVersion::CURRENT.major {
        let (dir, program_version) = (dir.to_owned(), any.program_version);
        return Err(RunReadError::Newer { dir, major, minor, program_version });
    }
    from_json(&path, 1, &text)
}

fn read_result(dir: &Path, manifest: &Manifest) -> Result<Option<RunResult>, RunReadError> {
    let path = dir.join(layout::RESULT);
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|source| RunReadError::Io { path: path.clone(), source })?;
    let mut result = match manifest.kind {
        RunKind::Probe => RunResult::Probe(from_json(&path, 1, &text)?),
        RunKind::Io => RunResult::Io(from_json(&path, 1, &text)?),
        RunKind::Fio => RunResult::Fio(from_json(&path, 1, &text)?),
        RunKind::Study => RunResult::Study(from_json(&path, 1, &text)?),
        RunKind::SimulateQueue => RunResult::SimulateQueue(from_json(&path, 1, &text)?),
        RunKind::SimulateFlush => RunResult::SimulateFlush(from_json(&path, 1, &text)?),
        RunKind::Prepare => RunResult::Prepare(from_json(&path, 1, &text)?),
        RunKind::Tpcc | RunKind::Oltp | RunKind::Stress | RunKind::Insert => {
            RunResult::Transactions(from_json(&path, 1, &text)?)
        }
        RunKind::Watch | RunKind::Tune => RunResult::Watch(from_json(&path, 1, &text)?),
        RunKind::Unknown => return Ok(None),
    };
    result.check();
    Ok(Some(result))
}

/// Parses JSON that begins at a line (from 1) of a file.
fn from_json<T: DeserializeOwned>(path: &Path, line: usize, text: &str) -> Result<T, RunReadError> {
    serde_json::from_str(text).map_err(|error| RunReadError::Damaged {
        path: path.to_owned(),
        line: line + error.line().saturating_sub(1),
        reason: error.to_string(),
    })
}
