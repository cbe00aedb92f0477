//! `iostrata fio`: job files and command lines read, shown, run, and their results in our form or
//! in fio's.
//!
//! Invariant: a front end and nothing more: it makes points of our specs and measures them as
//! `iostrata io` measures its one.

mod dry_run;
mod environment;
mod files;
mod help;
mod latency_target;
mod logs;
mod measured;
mod normal;
mod output;
mod shape;
mod status;
mod terse;

use std::path::PathBuf;
use std::time::Duration;

use iostrata_io::FileSet;
use iostrata_linux::host::Root;
use iostrata_load::{Interim, IoLoad};
use iostrata_plan::fio::{
    FioErrors, FioPlan, FioRequest, FioStream, FioWarning, FioWave, command_line, parse,
};
use iostrata_plan::{IoApi, IoSpec, Point};
use iostrata_run::{Event, FioDocument, Replicate, RunKind, RunResult};
use iostrata_show::report::RunView;
use iostrata_stats::Verdicts;
use iostrata_study::{FileSetCache, Listener, Measurement, Meter, Pipeline};

use crate::args::{Common, Eta, FioArgs, OutputFormat, own_options};
use crate::display::{Display, colour, print_json, print_text, width};
use crate::exit_error::{ExitError, exit_error};
use crate::io_parts::in_memory;
use crate::run_sink::RunSink;
use crate::signals::Interruption;

use environment::ThisProcess;
use files::WaveFiles;
use measured::MeasuredWave;
use output::Output;
use status::{Status, facts_by_device};

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &FioArgs, interruption: &Interruption) -> Result<(), ExitError> {
    if args.version {
        return print_text(&format!("{}\n", shape::version()));
    }
    if let Some(option) = &args.cmdhelp {
        return print_text(&help::of_option(option)?);
    }
    if let Some(engine) = &args.enghelp {
        return print_text(&help::of_engine(engine)?);
    }
    let mut display = Display::new(args.common.printing.quiet);
    if args.eta == Eta::Never {
        display = display.without_progress();
    }
    let request = request(args);
    let refused = |errors: FioErrors| ExitError::Usage(errors.to_string());
    if args.showcmd {
        return print_text(&command_line(&request, &ThisProcess).map_err(refused)?);
    }
    let mut plan = parse(&request, &ThisProcess).map_err(refused)?;
    bound_waves(&mut plan, &args.common)?;
    if args.dry_run {
        return match args.common.printing.json || args.output_format.contains(&OutputFormat::Json) {
            true => print_json(&plan),
            false => print_text(&dry_run::text(&plan, width())),
        };
    }
    logs::check_request_logs(&plan)?;
    for warning in &plan.warnings {
        display.note(&format!("warning: {warning}"));
    }
    let mut runner = Runner::begin(args, &plan, &display, interruption)?;
    let ended = runner.all();
    display.finish();
    runner.conclude(ended)
}

fn request(args: &FioArgs) -> FioRequest {
    FioRequest {
        files: args.files.clone(),
        arguments: args.job_option.clone(),
        only: args.section.clone(),
        skip_unsupported: args.skip_unsupported,
        plans_only: args.dry_run,
        own_options: own_options(),
    }
}

/// Applies the bounds of the command line: `--max-time` is shared among the waves, `--point-time`
/// holds for each, and with `--precision` a wave ends when its first stream is precise.
fn bound_waves(plan: &mut FioPlan, asked: &Common) -> Result<(), ExitError> {
    let of_whole = asked.max_time.map(|time| time / plan.waves.len().max(1) as u32);
    if let Some(most) = of_whole.into_iter().chain(asked.point_time).min() {
        for spec in specs(plan) {
            let before = spec.variation.start_delay + spec.variation.ramp_time;
            let left = most.saturating_sub(before).max(Duration::from_millis(1));
            spec.runtime = spec.runtime.map(|runtime| runtime.min(left));
        }
    }
    if let Some(precision) = asked.precision {
        for spec in specs(plan) {
            spec.point_time = spec.runtime.take().unwrap_or(spec.point_time);
            spec.precision = precision;
            spec.check().map_err(|error| ExitError::Usage(error.to_string()))?;
        }
    }
    Ok(())
}

fn specs(plan: &mut FioPlan) -> impl Iterator<Item = &mut IoSpec> {
    let jobs = plan.waves.iter_mut().flat_map(|wave| &mut wave.jobs);
    jobs.flat_map(|job| &mut job.streams).map(|stream| &mut stream.spec)
}

/// Our document's fields about the run as a whole.
fn beside(document: &FioDocument) -> serde_json::Value {
    serde_json::json!({
        "bytes_written": document.bytes_written,
        "run": document.run,
        "verdicts": document.verdicts,
        "warnings": document.warnings,
    })
}

/// One window at a depth that may be too large; nothing of it is kept.
fn try_depth(
    pipeline: &mut Pipeline<'_>,
    point: &Point,
    sets: &[Option<FileSet>],
) -> Result<Replicate, ExitError> {
    let specs = |set: &Option<FileSet>| set.as_ref().map(|set| set.specs().to_vec());
    let specs = sets.iter().map(|set| specs(set).unwrap_or_default()).collect();
    let load = IoLoad::new(&point.streams, specs);
    let measured = pipeline.measure(point, 0, &load, &|_| 0.0, &point.title, &mut []);
    let Measurement { replicate, error, .. } = measured.map_err(exit_error)?;
    error.map_or(Ok(replicate), |error| Err(exit_error(error)))
}

struct Runner<'a> {
    args: &'a FioArgs,
    plan: &'a FioPlan,
    display: &'a Display,
    interruption: &'a Interruption,
    sink: RunSink<'a>,
    output: Output,
    waves: Vec<MeasuredWave>,
    /// Those of the plan, and of where its files lie.
    warnings: Vec<FioWarning>,
    bytes_written: u64,
    elapsed_s: f64,
}

impl<'a> Runner<'a> {
    fn begin(
        args: &'a FioArgs,
        plan: &'a FioPlan,
        display: &'a Display,
        interruption: &'a Interruption,
    ) -> Result<Self, ExitError> {
        let out = args.common.out.as_deref();
        let mut sink = RunSink::begin(RunKind::Fio, "fio", out, display)?;
        let points = plan.waves.iter().enumerate().map(|(at, wave)| measured::point(at, wave));
        sink.amend(|manifest| manifest.plan = Some(points.collect()))?;
        let output = Output::begin(args)?;
        let waves = Vec::new();
        Ok(Self {
            args,
            plan,
            display,
            interruption,
            sink,
            output,
            waves,
            warnings: plan.warnings.clone(),
            bytes_written: 0,
            elapsed_s: 0.0,
        })
    }

    /// Runs wave after wave, until one fails or a signal comes. As with fio, later waves run
    /// whether jobs missed a rate or not.
    fn all(&mut self) -> Result<(), ExitError> {
        let mut judged = Vec::new();
        for (at, wave) in self.plan.waves.iter().enumerate() {
            match self.wave(at, wave) {
                Err(ExitError::Judged(why)) => judged.push(why),
                ended => ended?,
            }
            if self.interruption.is_set() {
                return Err(ExitError::Interrupted(self.interruption.exit_code()));
            }
        }
        match judged.is_empty() {
            true => Ok(()),
            false => Err(ExitError::Judged(judged.join("\n"))),
        }
    }

    fn wave(&mut self, at: usize, wave: &FioWave) -> Result<(), ExitError> {
        let (overwrite, mut cache) = (self.args.overwrite_contents, FileSetCache::default());
        let (display, interruption) = (self.display, self.interruption);
        let files = WaveFiles::prepare(wave, overwrite, &mut cache, display, interruption)?;
        let streams: Vec<&FioStream> = wave.jobs.iter().flat_map(|job| &job.streams).collect();
        let sets: Vec<Option<FileSet>> =
            streams.iter().map(|stream| files.of(stream, &cache)).collect();
        let on_files = || streams.iter().filter(|stream| stream.spec.api != IoApi::Null);
        let all_facts = facts_by_device(on_files().map(|stream| stream.spec.path.as_path()));
        let facts = all_facts.first();
        if let (Some(stream), Some(text)) = (on_files().next(), facts.and_then(in_memory)) {
            self.warn_of_files(stream, text);
        }
        if at == 0 {
            self.output.header(self.plan)?;
            self.sink.amend_host(facts);
        }
        if wave.jobs.iter().all(|job| job.create_only) {
            self.bytes_written += cache.filled_bytes();
            let point = measured::point(at, wave);
            let status = Status::begin(at, &point, &all_facts, self.elapsed_s);
            let (began_ms, devices) = (status.began_ms, status.devices());
            self.waves.push(MeasuredWave::of_none(point, (at, began_ms), self.elapsed_s, devices));
            return Ok(());
        }
        let program = std::env::current_exe().ok();
        let meter = Meter::new(&Root::system(), facts, interruption.flag(), program);
        let mut pipeline = Pipeline::new(&mut self.sink, meter, cache, interruption.flag());
        pipeline.before_s = self.elapsed_s;
        let mut wave = wave.clone();
        let notes = latency_target::search(&mut wave, |trial| {
            try_depth(&mut pipeline, &measured::point(at, trial), &sets)
        })?;
        let point = measured::point(at, &wave);
        let longest_s =
            streams.iter().map(|one| one.spec.longest().as_secs_f64()).fold(0.0, f64::max);
        let specs = |set: &Option<FileSet>| set.as_ref().map(|set| set.specs().to_vec());
        let specs = sets.iter().map(|set| specs(set).unwrap_or_default()).collect();
        let status = Status::begin(at, &point, &all_facts, self.elapsed_s);
        let on = |figures| self.output.status(self.plan, &self.waves, status.wave(figures));
        let every = self.args.status_interval.filter(|_| self.output.is_fios());
        let interim = every.map(|every| Interim { every, on: &on });
        let load = IoLoad::new(&point.streams, specs).in_detail().with_interim(interim);
        let share = |elapsed_s: f64| elapsed_s / longest_s;
        let measured = pipeline.measure(&point, 0, &load, &share, &point.title, &mut []);
        self.bytes_written += pipeline.written_bytes();
        self.elapsed_s = pipeline.elapsed_s();
        notes.iter().for_each(|note| display.note(&format!("warning: {note}")));
        self.warnings.extend(notes);
        let Measurement { mut replicate, error, details, .. } = measured.map_err(exit_error)?;
        for set in sets.iter().flatten() {
            replicate.verdicts.merge(&iostrata_study::extent_verdicts(set, &point));
        }
        pipeline.store(Event::Replicate(Box::new(replicate.clone()))).map_err(exit_error)?;
        let began_ms = status.began_ms;
        let devices = status.devices();
        self.waves.push(MeasuredWave { number: at, began_ms, replicate, details, devices });
        error.map_or(Ok(()), |error| Err(exit_error(error)))
    }

    fn warn_of_files(&mut self, stream: &FioStream, text: String) {
        let option = stream.spec.path.display().to_string();
        let warning = FioWarning { file: PathBuf::new(), line: 0, option, text };
        if !self.warnings.contains(&warning) {
            self.display.note(&format!("warning: {warning}"));
            self.warnings.push(warning);
        }
    }

    fn document(&self) -> FioDocument {
        let mut verdicts = Verdicts::none();
        self.waves.iter().for_each(|wave| verdicts.merge(&wave.replicate.verdicts));
        let waves = self.waves.iter().filter(|wave| wave.replicate.duration_s > 0.0);
        FioDocument {
            waves: waves.map(|wave| wave.document(&self.plan.waves[wave.number])).collect(),
            warnings: self.warnings.clone(),
            bytes_written: self.bytes_written,
            run: self.sink.shown(),
            verdicts,
        }
    }

    /// Keeps and prints what was measured, also when not all of it was.
    fn conclude(mut self, ended: Result<(), ExitError>) -> Result<(), ExitError> {
        if self.waves.is_empty() && ended.is_err() {
            return ended;
        }
        let mut document = self.document();
        let (at_s, bytes_written) = (self.elapsed_s, self.bytes_written);
        let event = match ended {
            Ok(()) | Err(ExitError::Judged(_)) => Event::Finished { at_s, bytes_written },
            Err(_) => Event::Interrupted { at_s, bytes_written },
        };
        self.sink.store(&event).map_err(exit_error)?;
        if !self.sink.keep(&document) {
            document.run = None;
        }
        self.sink.say_whether_kept();
        let logged = logs::write(self.plan, &self.waves);
        if self.output.is_fios() {
            let waves: Vec<&MeasuredWave> = self.waves.iter().collect();
            self.output.results(self.plan, &waves, Some(beside(&document)))?;
        } else {
            self.output.json(&document)?;
        }
        if self.output.has_table() {
            let result = RunResult::Fio(Box::new(document));
            let view = RunView {
                manifest: self.sink.manifest(),
                result: Some(&result),
                events: &[],
                notes: &[],
            };
            let ours = iostrata_show::report::terminal(&view, width(), colour());
            self.output.text(&format!("\n{ours}"))?;
        }
        if let (Err(_), Err(why)) = (&ended, &logged) {
            self.display.note(&why.to_string());
        }
        self.sink.end(ended.and(logged))
    }
}
