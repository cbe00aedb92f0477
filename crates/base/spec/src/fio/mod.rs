//! fio's job files: read into a plan of our own workloads.
//!
//! Purpose: people have job files; [`parse`] says what each line of them comes to here. Invariant:
//! pure, since files, variables and processors come through [`Environment`]; any bytes give a plan
//! or a [`FioError`]; an option that is accepted changes the plan or is warned of. It prepares no
//! file and measures nothing.

mod arithmetic;
pub mod catalogue;
mod environment;
mod error;
mod expand;
mod job;
mod lines;
mod places;
mod plan;
mod reports;
mod requests;
mod settings;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod tests;
mod times;
mod value;

pub use environment::{Environment, Machine};
pub use error::{FioError, FioWarning, Origin};
pub use plan::{FioJob, FioLogs, FioPlan, FioStream, FioWave};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use catalogue::OptionEffect;
use job::{Builder, shown, warning};
use lines::{Assignment, Section};
use settings::{Settings, refusal};

/// Reads job files. Those of one file run before those of the next. With `only`, only the sections
/// of these names are jobs.
///
/// # Errors
/// The first thing that cannot be run: file, line, option, reason, fix.
pub fn parse(
    files: &[PathBuf],
    only: &[String],
    environment: &dyn Environment,
) -> Result<FioPlan, FioError> {
    let mut planner = Planner::new(environment);
    let all: Vec<Vec<Section>> =
        files.iter().map(|file| lines::read(file, environment)).collect::<Result<_, _>>()?;
    check_sections(files, only, &all)?;
    for sections in &all {
        if !planner.plan.waves.is_empty() {
            planner.begin_wave();
        }
        planner.file(sections, only)?;
    }
    planner.finish(files)
}

/// Refuses the name of a section that no file has.
fn check_sections(
    files: &[PathBuf],
    only: &[String],
    all: &[Vec<Section>],
) -> Result<(), FioError> {
    let jobs = all.iter().flatten().filter(|section| !section.is_global());
    let names: BTreeSet<&str> = jobs.map(|section| section.name.as_str()).collect();
    let Some(missing) = only.iter().find(|name| !names.contains(name.as_str())) else {
        return Ok(());
    };
    let names: Vec<&str> = names.into_iter().collect();
    let why = match names.as_slice() {
        [] => "there is no such section, and no other; write one such as [job]".to_owned(),
        [name] => format!("there is no such section; the only one is {name}"),
        names => format!("there is no such section; there are {}", names.join(", ")),
    };
    let origin = Origin { file: Arc::new(files.first().cloned().unwrap_or_default()), line: 0 };
    Err(FioError { origin, what: format!("--section {missing}"), why })
}

struct Planner<'a> {
    environment: &'a dyn Environment,
    plan: FioPlan,
    group: u32,
    jobs_in_group: u32,
    streams: u64,
    /// Options that some job used, and those that none did, by place.
    used: BTreeSet<OptionPlace>,
    unused: BTreeMap<OptionPlace, Assignment>,
}

type OptionPlace = (PathBuf, u32, &'static str);

fn place(assignment: &Assignment) -> OptionPlace {
    let origin = &assignment.origin;
    (origin.file.as_ref().clone(), origin.line, assignment.entry.name)
}

impl<'a> Planner<'a> {
    fn new(environment: &'a dyn Environment) -> Self {
        let plan =
            FioPlan { waves: Vec::new(), warnings: Vec::new(), global_options: BTreeMap::new() };
        Self {
            environment,
            plan,
            group: 0,
            jobs_in_group: 0,
            streams: 0,
            used: BTreeSet::new(),
            unused: BTreeMap::new(),
        }
    }

    fn begin_wave(&mut self) {
        self.plan.waves.push(FioWave::default());
        self.begin_group();
    }

    fn begin_group(&mut self) {
        if self.jobs_in_group > 0 {
            self.group += 1;
            self.jobs_in_group = 0;
        }
    }

    fn file(&mut self, sections: &[Section], only: &[String]) -> Result<(), FioError> {
        let mut globals = Settings::default();
        for section in sections {
            for assignment in &section.assignments {
                self.judge(assignment)?;
            }
            if section.is_global() {
                globals.add(section);
            } else if only.is_empty() || only.contains(&section.name) {
                let mut settings = globals.clone();
                settings.add(section);
                self.job(section, &settings)?;
            }
        }
        self.plan.global_options = shown(globals.all());
        Ok(())
    }

    /// Refuses or warns of an option by what the catalogue says of it.
    fn judge(&mut self, assignment: &Assignment) -> Result<(), FioError> {
        let entry = assignment.entry;
        if entry.neutral.contains(&assignment.value.as_str()) {
            return Ok(());
        }
        match entry.effect {
            OptionEffect::Changes(_) => Ok(()),
            OptionEffect::Warned(why) => {
                self.warn(warning(assignment, why));
                Ok(())
            }
            OptionEffect::Refused(why) => Err(refusal(assignment, error::Why::new(why))),
        }
    }

    fn warn(&mut self, warning: FioWarning) {
        if !self.plan.warnings.contains(&warning) {
            self.plan.warnings.push(warning);
        }
    }

    fn job(&mut self, section: &Section, settings: &Settings) -> Result<(), FioError> {
        let stonewall = settings.value("stonewall", value::switch)?.unwrap_or(false);
        let new_group = settings.value("new_group", value::switch)?.unwrap_or(false);
        let first = self.plan.waves.last().is_none_or(|wave| wave.jobs.is_empty());
        if self.plan.waves.is_empty() || (stonewall && !first) {
            self.begin_wave();
        } else if new_group {
            self.begin_group();
        }
        let mut builder = Builder {
            settings,
            section,
            environment: self.environment,
            streams_before: self.streams,
            group: self.group,
            warnings: Vec::new(),
        };
        let mut job = builder.build()?;
        let warnings = std::mem::take(&mut builder.warnings);
        warnings.into_iter().for_each(|warning| self.warn(warning));
        self.jobs_in_group += 1;
        self.streams += job.streams.iter().map(|stream| u64::from(stream.spec.jobs)).sum::<u64>();
        self.note_use(settings);
        if let Some(wave) = self.plan.waves.last_mut() {
            let taken: BTreeSet<String> =
                wave.jobs.iter().flat_map(|job| &job.streams).map(|one| one.name.clone()).collect();
            for stream in &mut job.streams {
                make_unique(&mut stream.name, &taken);
            }
            wave.jobs.push(job);
        }
        Ok(())
    }

    fn note_use(&mut self, settings: &Settings) {
        let unused: BTreeMap<OptionPlace, &Assignment> =
            settings.unused().map(|one| (place(one), one)).collect();
        for assignment in settings.all() {
            let place = place(assignment);
            match unused.get(&place) {
                Some(assignment) => {
                    self.unused.insert(place, (*assignment).clone());
                }
                None => {
                    self.used.insert(place);
                }
            }
        }
    }

    fn finish(mut self, files: &[PathBuf]) -> Result<FioPlan, FioError> {
        self.plan.waves.retain(|wave| !wave.jobs.is_empty());
        if self.plan.waves.is_empty() {
            let file = files.first().cloned().unwrap_or_default();
            let why = "there is no job in it; write a section such as [job]".to_owned();
            let origin = Origin { file: Arc::new(file), line: 0 };
            return Err(FioError { origin, what: "job file".to_owned(), why });
        }
        for (place, assignment) in std::mem::take(&mut self.unused) {
            let says_default = assignment.entry.neutral.contains(&assignment.value.as_str());
            if matches!(assignment.entry.effect, OptionEffect::Changes(_))
                && !says_default
                && !self.used.contains(&place)
            {
                self.warn(warning(&assignment, without_effect(assignment.entry.name)));
            }
        }
        Ok(self.plan)
    }
}

/// Gives a stream a name that no other has and that files can be tagged with.
fn make_unique(name: &mut String, taken: &BTreeSet<String>) {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let first: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    *name = first.clone();
    let mut number = 2;
    while taken.contains(name) {
        *name = format!("{first}-{number}");
        number += 1;
    }
}

/// Why an option that changes things changes nothing in the job it stands in.
fn without_effect(name: &str) -> &'static str {
    match name {
        "iodepth" | "iodepth_low" | "iodepth_batch_complete_min" => {
            "ignored: a sync engine has one request in flight"
        }
        "fsync" | "fdatasync" | "sync" | "end_fsync" | "fallocate" | "overwrite" => {
            "ignored: the job does not only write, or does not write at all"
        }
        "rwmixread" | "rwmixwrite" => "ignored: reads and writes are not mixed",
        "time_based" => "ignored: there is no runtime",
        "rate_process" => "ignored: there is no rate",
        "random_distribution" | "norandommap" => "ignored: offsets are not drawn",
        "bs" | "bsrange" => "ignored: block sizes are given in more detail",
        "nrfiles" | "filename_format" => "ignored: files are named",
        "file_service_type" => "ignored: there is one file",
        "loops" => "ignored: the job runs for its runtime",
        _ => "ignored: nothing in this job depends on it",
    }
}
