//! fio's job files and command lines: read into a plan of our own workloads.
//!
//! Purpose: people have job files and lines to paste; [`parse`] turns each option into a part of
//! the plan.
//! Invariant: pure, since files, variables and processors come through [`Environment`]; any bytes
//! give a plan or [`FioErrors`], which name all that cannot be run; an option that is accepted
//! changes the plan or is warned of. It prepares no file and measures nothing.

mod arithmetic;
pub mod catalogue;
mod command_line;
mod durability;
mod engines;
mod environment;
mod error;
mod expand;
mod iolog;
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
mod verify;

pub use command_line::{FioArgument, split};
pub use engines::engines;
pub use environment::{Environment, Machine};
pub use error::{FioError, FioErrors, FioWarning, Origin};
pub use iolog::{IoLog, LOG_HEAD, LoggedOp, LoggedRequest};
pub use plan::{
    FioJob, FioLogs, FioPercentiles, FioPlan, FioReporting, FioStream, FioWave, LatencyTarget,
};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use catalogue::OptionEffect;
use command_line::LineOptions;
use job::{Builder, shown, warning};
use lines::{Assignment, Section};
use settings::Settings;

/// What is to be planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioRequest {
    /// Job files. The jobs of one run before those of the next.
    pub files: Vec<PathBuf>,
    /// Options of the command line.
    pub arguments: Vec<FioArgument>,
    /// Only the sections of these names are jobs, if there are any.
    pub only: Vec<String>,
    /// Jobs that cannot be run are left out, with warnings, as long as one is left.
    pub skip_unsupported: bool,
    /// Nothing will be run: devices that are not there are planned with a warning.
    pub plans_only: bool,
    /// Names of the program's own options: a misspelt one is compared with them, too.
    pub own_options: Vec<String>,
}

/// Reads job files and the options of a command line.
///
/// # Errors
/// All that cannot be run: file and line or argument, option, reason, fix.
pub fn parse(request: &FioRequest, environment: &dyn Environment) -> Result<FioPlan, FioErrors> {
    let mut planner = Planner::new(environment, request);
    let (line, files) = read(request, environment, &mut planner.refused);
    let LineOptions { sections, refused, warnings, read_only } = line;
    planner.refused.extend(refused);
    warnings.into_iter().for_each(|warning| planner.warn(warning));
    planner.read_only = read_only;
    planner.refused.extend(missing_sections(request, &sections, &files));
    let defaults = planner.sections(Settings::default(), &sections, &request.only);
    for (number, sections) in files.iter().enumerate() {
        if number > 0 && !planner.plan.waves.is_empty() {
            planner.begin_wave();
        }
        planner.sections(defaults.clone(), sections, &request.only);
    }
    planner.finish(request)
}

/// The equivalent command line, as `fio --showcmd` prints it: a line for each file.
///
/// # Errors
/// What is no option.
pub fn command_line(
    request: &FioRequest,
    environment: &dyn Environment,
) -> Result<String, FioErrors> {
    let mut refused = Vec::new();
    let (line, files) = read(request, environment, &mut refused);
    refused.extend(line.refused);
    refused.extend(files.iter().flatten().flat_map(|section| section.unread.iter().cloned()));
    if !refused.is_empty() {
        return Err(FioErrors(refused));
    }
    let own = (!line.sections.is_empty()).then_some(&line.sections);
    Ok(own.into_iter().chain(&files).map(|one| command_line::shown(one) + "\n").collect())
}

fn read(
    request: &FioRequest,
    environment: &dyn Environment,
    refused: &mut Vec<FioError>,
) -> (LineOptions, Vec<Vec<Section>>) {
    let line = command_line::read(&request.arguments, &request.own_options);
    let files = request.files.iter().map(|file| lines::read(file, environment, refused)).collect();
    (line, files)
}

/// Refuses the name of a section that is nowhere.
fn missing_sections(
    request: &FioRequest,
    line: &[Section],
    files: &[Vec<Section>],
) -> Option<FioError> {
    let jobs = line.iter().chain(files.iter().flatten()).filter(|section| !section.is_global());
    let names: BTreeSet<&str> = jobs.map(|section| section.name.as_str()).collect();
    let missing = request.only.iter().find(|name| !names.contains(name.as_str()))?;
    let names: Vec<&str> = names.into_iter().collect();
    let why = match names.as_slice() {
        [] => "there is no such section, and no other; write one such as [job]".to_owned(),
        [name] => format!("there is no such section; the only one is {name}"),
        names => format!("there is no such section; there are {}", names.join(", ")),
    };
    Some(FioError { origin: whole(request), what: format!("--section {missing}"), why })
}

/// The first file as a whole, or the command line.
fn whole(request: &FioRequest) -> Origin {
    request.files.first().map_or(Origin::Argument { number: 0 }, |file| Origin::whole(file.clone()))
}

struct Planner<'a> {
    environment: &'a dyn Environment,
    skip_unsupported: bool,
    plans_only: bool,
    has_globals: bool,
    read_only: Option<Origin>,
    plan: FioPlan,
    refused: Vec<FioError>,
    /// Why jobs were left out.
    skipped: Vec<FioError>,
    group: u32,
    jobs_in_group: u32,
    streams: u64,
    /// Options that some job used, and those that none did, by place.
    used: BTreeSet<OptionPlace>,
    unused: BTreeMap<OptionPlace, Assignment>,
}

type OptionPlace = (Option<PathBuf>, u32, &'static str);

fn place(assignment: &Assignment) -> OptionPlace {
    let (file, number) = assignment.origin.order();
    (file, number, assignment.entry.name)
}

impl<'a> Planner<'a> {
    fn new(environment: &'a dyn Environment, request: &FioRequest) -> Self {
        let plan =
            FioPlan { waves: Vec::new(), warnings: Vec::new(), global_options: BTreeMap::new() };
        Self {
            environment,
            skip_unsupported: request.skip_unsupported,
            plans_only: request.plans_only,
            has_globals: false,
            read_only: None,
            plan,
            refused: Vec::new(),
            skipped: Vec::new(),
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

    /// Plans the jobs of some sections; returns what their global ones add to `globals`.
    fn sections(
        &mut self,
        mut globals: Settings,
        sections: &[Section],
        only: &[String],
    ) -> Settings {
        for section in sections {
            section.assignments.iter().for_each(|one| self.warn_of(one));
            if section.is_global() {
                self.has_globals |= matches!(section.origin, Origin::File { .. });
                globals.add(section);
            } else if only.is_empty() || only.contains(&section.name) {
                let mut settings = globals.clone();
                settings.add(section);
                self.job(section, &settings);
            }
        }
        self.plan.global_options = shown(globals.all());
        globals
    }

    /// Warns of an option that is ignored by the catalogue.
    fn warn_of(&mut self, assignment: &Assignment) {
        if let OptionEffect::Warned(why) = assignment.entry.effect
            && !assignment.entry.is_neutral(&assignment.value)
        {
            self.warn(warning(assignment, why));
        }
        if times::TIMES.contains(&assignment.entry.name)
            && let Some(short) = value::short_unit(&assignment.value)
        {
            let text = format!("fio takes it for microseconds; write {short} for it, as here");
            self.warn(warning(assignment, text));
        }
        let names = ["filename", "directory", "name", "description"];
        if value::is_product(&assignment.value) && !names.contains(&assignment.entry.name) {
            let text = "as in fio, what is behind the number is not read; put it in parentheses";
            self.warn(warning(assignment, text));
        }
    }

    fn warn(&mut self, warning: FioWarning) {
        if !self.plan.warnings.contains(&warning) {
            self.plan.warnings.push(warning);
        }
    }

    fn job(&mut self, section: &Section, settings: &Settings) {
        let waits = self.waits(settings);
        let stonewall = settings.switch("stonewall").unwrap_or(false);
        let new_group = settings.switch("new_group").unwrap_or(false);
        let first = self.plan.waves.last().is_none_or(|wave| wave.jobs.is_empty());
        if self.plan.waves.is_empty() || (stonewall && !first) {
            self.begin_wave();
        } else if waits {
            self.plan.waves.push(FioWave::default());
        } else if new_group {
            self.begin_group();
        }
        let mut builder = Builder {
            settings,
            section,
            environment: self.environment,
            plans_only: self.plans_only,
            streams_before: self.streams,
            group: self.group,
            warnings: Vec::new(),
        };
        let job = builder.build();
        let warnings = std::mem::take(&mut builder.warnings);
        if let (Some(job), Some(origin)) = (&job, &self.read_only)
            && job.streams.iter().any(|stream| stream.spec.changes_files())
        {
            let why = format!("[{}] writes; leave the job out", section.name);
            let (origin, what) = (origin.clone(), "readonly".to_owned());
            settings.refuse_as(FioError { origin, what, why });
        }
        let refusals = settings.refusals();
        match job {
            Some(job) if refusals.is_empty() => {
                let notes = settings.notes();
                warnings.into_iter().chain(notes).for_each(|warning| self.warn(warning));
                self.note_use(settings);
                self.add(job);
            }
            _ => self.leave_out(section, refusals),
        }
    }

    /// Whether a job waits for one that runs in the present wave.
    fn waits(&mut self, settings: &Settings) -> bool {
        let Some(assignment) = settings.get("wait_for") else { return false };
        let mut named = self
            .plan
            .waves
            .iter()
            .map(|wave| wave.jobs.iter().any(|job| job.name == assignment.value));
        let now = named.next_back().unwrap_or(false);
        if !now && !named.any(|is_there| is_there) {
            let why = "no job before it has this name; name one of those above";
            settings.refuse(assignment, error::Why::new(why));
        }
        now
    }

    fn leave_out(&mut self, section: &Section, refusals: Vec<FioError>) {
        for error in refusals {
            if self.skip_unsupported {
                let text = format!("[{}] is left out: {}", section.name, error.why);
                self.warn(FioWarning::at(&error.origin, error.what.clone(), text));
            }
            let refused = if self.skip_unsupported { &mut self.skipped } else { &mut self.refused };
            if !refused.contains(&error) {
                refused.push(error);
            }
        }
    }

    fn add(&mut self, mut job: FioJob) {
        // Jobs that only make their files never run together with others.
        let is_alike = |other: &FioJob| other.create_only == job.create_only;
        if !self.plan.waves.last().is_some_and(|wave| wave.jobs.iter().all(is_alike)) {
            self.plan.waves.push(FioWave::default());
        }
        self.jobs_in_group += 1;
        self.streams += job.streams.iter().map(|stream| u64::from(stream.spec.jobs)).sum::<u64>();
        if let Some(wave) = self.plan.waves.last_mut() {
            let taken: BTreeSet<String> =
                wave.jobs.iter().flat_map(|job| &job.streams).map(|one| one.name.clone()).collect();
            for stream in &mut job.streams {
                make_unique(&mut stream.name, &taken);
            }
            wave.jobs.push(job);
        }
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

    fn finish(mut self, request: &FioRequest) -> Result<FioPlan, FioErrors> {
        self.plan.waves.retain(|wave| !wave.jobs.is_empty());
        if self.plan.waves.is_empty() {
            self.refused.append(&mut self.skipped);
        }
        if !self.refused.is_empty() {
            return Err(FioErrors(self.refused));
        }
        if self.plan.waves.is_empty() {
            let nothing = no_job(request);
            // As with fio, a file of defaults only can be shown.
            if !(self.plans_only && self.has_globals) {
                return Err(nothing.into());
            }
            self.warn(FioWarning::at(&nothing.origin, nothing.what, nothing.why));
        }
        for (place, assignment) in std::mem::take(&mut self.unused) {
            if matches!(assignment.entry.effect, OptionEffect::Changes(_))
                && !assignment.entry.is_neutral(&assignment.value)
                && !self.used.contains(&place)
            {
                self.warn(warning(&assignment, without_effect(assignment.entry.name)));
            }
        }
        Ok(self.plan)
    }
}

fn no_job(request: &FioRequest) -> FioError {
    let (what, why) = match (request.files.is_empty(), request.arguments.is_empty()) {
        (false, _) => ("job file", "there is no job in it; write a section such as [job]"),
        (true, true) => {
            let why = "name a job file, or begin a job with --name, as in iostrata fio --name=a \
                       --size=64m --rw=randread";
            ("there is no job", why)
        }
        (true, false) => {
            let why = "options before --name are defaults of jobs; begin one with --name=NAME";
            ("there is no job", why)
        }
    };
    FioError { origin: whole(request), what: what.to_owned(), why: why.to_owned() }
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

/// Why an option that usually has an effect has none in its job.
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
        "latency_window" | "latency_percentile" | "latency_run" => {
            "ignored: there is no latency_target"
        }
        "verify_pattern" => "ignored: blocks hold incompressible data and a seal",
        "cpus_allowed_policy" => "ignored: no processors are named",
        "serialize_overlap" => "ignored: nothing overlaps",
        "replay_redirect" | "replay_no_stall" => "ignored: there is no log to replay",
        "write_iolog" => "ignored: requests that are replayed are not logged again",
        "do_verify" => "ignored: nothing is verified",
        "offset_align" => "ignored: no offset is a share of a file",
        "rate_process" => "ignored: there is no rate",
        "rate_cycle" => "ignored: there is no rate_min",
        "exitall_on_error" => "ignored: a failed request always ends the other jobs",
        "random_distribution" | "norandommap" | "ba" | "percentage_random" => {
            "ignored: offsets are not drawn"
        }
        "bs" | "bsrange" => "ignored: block sizes are given in more detail",
        "nrfiles" | "filename_format" => "ignored: files are named",
        "file_service_type" => "ignored: there is one file",
        "loops" => "ignored: the job runs for its runtime",
        _ => "ignored: nothing in this job depends on it",
    }
}
