//! What is shown: a run, how its parts are found, and what was run, on what and when: the same
//! above and below every report.
//!
//! Invariant: selects and orders, never computes a figure.

use iostrata_plan::Point;
use iostrata_run::{Event, Manifest, ProbeHost, Replicate, RunKind, RunReader, RunResult};

use crate::report::words;

/// A run to be shown: what the run directory holds, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// What was run.
    pub manifest: &'a Manifest,
    /// What the command printed; absent when the run was stopped before its end.
    pub result: Option<&'a RunResult>,
    /// What happened, series included.
    pub events: &'a [Event],
    /// Notes of the reader about the files.
    pub notes: &'a [String],
}

impl<'a> RunView<'a> {
    /// The view of a run directory.
    pub fn of(run: &'a RunReader) -> Self {
        Self {
            manifest: run.manifest(),
            result: run.result(),
            events: run.events(),
            notes: run.notes(),
        }
    }

    /// The words around a report; the machine is the document's, or that at the start.
    pub(crate) fn head(&self, host: Option<&ProbeHost>, study: Option<&str>) -> Head {
        Head::of(self.manifest, host.or(self.manifest.host.as_ref()), study, self.notes)
    }

    /// Every finished replicate, in the order of the run.
    pub(crate) fn replicates(&self) -> impl Iterator<Item = &'a Replicate> + use<'a> {
        self.events.iter().filter_map(Event::replicate)
    }

    /// The measured points in the order of the run, each with its replicates.
    pub(crate) fn measured(&self) -> Vec<(&'a Point, Vec<&'a Replicate>)> {
        let mut points: Vec<(&Point, Vec<&Replicate>)> = Vec::new();
        for replicate in self.replicates() {
            match points.iter_mut().find(|(point, _)| point.id == replicate.point.id) {
                Some((_, replicates)) => replicates.push(replicate),
                None => points.push((&replicate.point, vec![replicate])),
            }
        }
        points
    }

    /// A point by its id, measured or only planned.
    pub(crate) fn point(&self, id: &str) -> Option<&'a Point> {
        let planned = self.manifest.plan.iter().flatten();
        planned.chain(self.replicates().map(|replicate| &replicate.point)).find(|p| p.id == id)
    }
}

/// The words around a report.
pub(crate) struct Head {
    /// `iostrata probe`.
    pub(crate) command: String,
    /// The study's name.
    pub(crate) study: Option<String>,
    /// The measured path.
    pub(crate) place: Option<String>,
    /// File system, device.
    pub(crate) about: Vec<String>,
    pub(crate) processors: Option<String>,
    pub(crate) kernel: Option<String>,
    pub(crate) started: String,
    pub(crate) version: String,
    /// Which version made it when.
    pub(crate) made: String,
    pub(crate) command_line: String,
    /// Notes of the reader of the run about its files.
    pub(crate) notes: Vec<String>,
}

impl Head {
    pub(crate) fn of(
        manifest: &Manifest,
        host: Option<&ProbeHost>,
        study: Option<&str>,
        notes: &[String],
    ) -> Self {
        let mut about = Vec::new();
        if let Some(host) = host {
            about.extend(host.path.file_system.clone());
            about.extend(host.path.devices.first().map(|device| device.name.clone()));
        }
        let machine = host.map(|host| &host.machine);
        let cpus = machine.and_then(|machine| machine.cpus);
        let kernel = machine.and_then(|machine| machine.kernel.as_ref());
        let version = manifest.program_version.clone();
        Self {
            command: format!("iostrata {}", command(manifest.kind)),
            study: study.map(str::to_owned),
            place: host.map(|host| host.path.path.clone()),
            about,
            processors: cpus.map(|cpus| words::counted(cpus as usize, "processor")),
            kernel: kernel.map(|kernel| format!("Linux {kernel}")),
            started: manifest.started_at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
            made: format!("iostrata {version}, started {}.", manifest.started_at),
            version,
            command_line: format!("iostrata {}", manifest.arguments.join(" ")),
            notes: notes.to_vec(),
        }
    }

    /// What was measured where no path of this machine was.
    pub(crate) fn with_place(self, target: &str) -> Self {
        Self { place: self.place.or_else(|| Some(target.to_owned())), ..self }
    }

    /// The name of the page in tabs and bookmarks.
    pub(crate) fn title(&self) -> String {
        match self.study.as_ref().or(self.place.as_ref()) {
            Some(name) => format!("{}: {name}", self.command),
            None => self.command.clone(),
        }
    }

    /// What follows the command in the first line of a terminal: the place, else the arguments.
    pub(crate) fn subject(&self) -> String {
        let mut parts: Vec<String> = self.study.clone().into_iter().collect();
        match &self.place {
            Some(place) => {
                parts.push(place.clone());
                parts.extend(self.about.iter().chain(&self.kernel).cloned());
            }
            None => parts.extend(self.command_line.strip_prefix(&self.command).map(str::to_owned)),
        }
        parts.join(", ").trim().to_owned()
    }
}

/// The command that made a run.
fn command(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Probe => "probe",
        RunKind::Io => "io",
        RunKind::Study => "study",
        RunKind::Fio => "fio",
        RunKind::SimulateQueue => "simulate queue",
        RunKind::SimulateFlush => "simulate flush",
        RunKind::Prepare => "prepare",
        RunKind::Tpcc => "tpcc",
        RunKind::Oltp => "oltp",
        RunKind::Stress => "stress",
        RunKind::Insert => "insert",
        RunKind::Watch => "watch",
        RunKind::Tune => "tune",
        RunKind::Unknown => "run",
    }
}
