//! Reads a run directory, complete or not.
//!
//! Invariants: what older versions wrote stays readable; a line that a kill cut off is left out and
//! named in the notes; damage anywhere else is an error with file and line. It writes nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::histograms::{self, KeptHistogram};
use crate::series::{self, SeriesLine, SeriesMap};
use crate::{
    Event, FioDocument, FormatVersion, IoDocument, Manifest, ProbeDocument, QueueDocument, RunKind,
    RunReadError, StudyDocument, layout, lines,
};

/// What the command printed at its end.
#[derive(Clone, Debug, PartialEq)]
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
}

/// A run as it was kept.
#[derive(Clone, Debug)]
pub struct RunReader {
    dir: PathBuf,
    manifest: Manifest,
    events: Vec<Event>,
    result: Option<RunResult>,
    notes: Vec<String>,
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
        let manifest = read_manifest(dir)?;
        let newer_minor = manifest.format_version.minor > FormatVersion::CURRENT.minor;
        let mut notes = Vec::new();
        let events = read_events(dir, newer_minor, &mut notes)?;
        let result = read_result(dir, &manifest)?;
        if result.is_none() {
            notes.push("the run has no result: it was stopped before its end".to_owned());
        }
        Ok(Self { dir: dir.to_owned(), manifest, events, result, notes })
    }

    /// What was run, without reading what was measured.
    ///
    /// # Errors
    /// As [`RunReader::open`].
    pub fn manifest_of(dir: &Path) -> Result<Manifest, RunReadError> {
        read_manifest(dir)
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

    /// The latency histograms, read when asked for.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn histograms(&self) -> Result<Vec<KeptHistogram>, RunReadError> {
        let path = self.dir.join(layout::HISTOGRAMS);
        let (text, _) = lines::read(&path)?;
        histograms::parse(&path, &text)
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
    let any: AnyManifest = from_json(&path, 0, &text)?;
    let FormatVersion { major, minor } = any.format_version;
    if major > FormatVersion::CURRENT.major {
        let (dir, program_version) = (dir.to_owned(), any.program_version);
        return Err(RunReadError::Newer { dir, major, minor, program_version });
    }
    from_json(&path, 0, &text)
}

fn read_events(
    dir: &Path,
    newer_minor: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Event>, RunReadError> {
    let series = read_series(dir)?;
    let path = dir.join(layout::EVENTS);
    let (text, torn) = lines::read(&path)?;
    let mut events = Vec::new();
    let mut unknown = 0;
    for (number, line) in text.lines().enumerate() {
        match from_json::<Event>(&path, number, line) {
            Ok(event) => events.push(event),
            Err(_) if newer_minor => unknown += 1,
            Err(error) => return Err(error),
        }
    }
    for event in &mut events {
        if let Event::Replicate(replicate) = event {
            series::put_back(replicate, &series).map_err(|damage| RunReadError::Damaged {
                path: dir.join(layout::SERIES),
                line: damage.line,
                reason: damage.reason,
            })?;
        }
    }
    if torn {
        notes.push(format!("the last line of {} was cut off and is left out", layout::EVENTS));
    }
    if unknown > 0 {
        notes.push(format!("{unknown} events of a newer version are left out"));
    }
    Ok(events)
}

fn read_series(dir: &Path) -> Result<SeriesMap, RunReadError> {
    let path = dir.join(layout::SERIES);
    let (text, _) = lines::read(&path)?;
    let mut map = SeriesMap::new();
    for (number, line) in text.lines().enumerate() {
        let line: SeriesLine = from_json(&path, number, line)?;
        map.insert(line.key.clone(), (number + 1, line));
    }
    Ok(map)
}

fn read_result(dir: &Path, manifest: &Manifest) -> Result<Option<RunResult>, RunReadError> {
    let path = dir.join(layout::RESULT);
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|source| RunReadError::Io { path: path.clone(), source })?;
    let result = match manifest.kind {
        RunKind::Probe => Some(RunResult::Probe(Box::new(from_json(&path, 0, &text)?))),
        RunKind::Io => Some(RunResult::Io(Box::new(from_json(&path, 0, &text)?))),
        RunKind::Fio => Some(RunResult::Fio(Box::new(from_json(&path, 0, &text)?))),
        RunKind::Study => Some(RunResult::Study(Box::new(from_json(&path, 0, &text)?))),
        RunKind::SimulateQueue => {
            Some(RunResult::SimulateQueue(Box::new(from_json(&path, 0, &text)?)))
        }
        RunKind::Unknown => None,
    };
    Ok(result.map(RunResult::checked))
}

/// Parses JSON that begins at a line (from 0) of a file.
fn from_json<T: DeserializeOwned>(path: &Path, line: usize, text: &str) -> Result<T, RunReadError> {
    serde_json::from_str(text).map_err(|error| RunReadError::Damaged {
        path: path.to_owned(),
        line: line + error.line().max(1),
        reason: error.to_string(),
    })
}
