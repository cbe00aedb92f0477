//! What was run, on what and when: the same above and below every report.

use iostrata_run::{Manifest, ProbeHost, RunKind};

use crate::report::words;

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
    /// What the reader of the run has to say about its files.
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
