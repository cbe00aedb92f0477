//! `iostrata engine`: check, stats, crash-test.
//!
//! Invariant: an engine that another process has is left alone, but for its status page.

mod crash_test;

use std::path::Path;

use iostrata_engine::{
    CheckReport, Engine, EngineError, OpenError, Phase, Progress, RecoveryReport, RequestError,
    Settings, read_status,
};
use iostrata_run::{
    EngineCheckDocument, EngineCounter, EngineProblem, EngineRecovery, EngineStatsDocument,
    EngineTable,
};
use iostrata_stats::units;

use crate::args::{EngineAction, EngineArgs, EngineCommon};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &EngineArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        EngineAction::Check(common) => check(common),
        EngineAction::Stats(common) => stats(common),
        EngineAction::CrashTest(args) => crash_test::run(args, interruption),
        EngineAction::CrashWorker(args) => crash_test::worker(args),
    }
}

/// The settings kept in a directory that must hold an engine.
fn kept(dir: &Path) -> Result<Settings, ExitError> {
    let kept = if dir.is_dir() { Engine::kept_settings(dir).map_err(ending)? } else { None };
    match kept {
        Some(settings) => Ok(settings),
        None => Err(ExitError::Usage(format!(
            "{} contains no engine; name the directory of one",
            dir.display()
        ))),
    }
}

fn ending(error: EngineError) -> ExitError {
    match error {
        EngineError::Request(RequestError::Setting(_) | RequestError::SettingRange { .. })
        | EngineError::Open(OpenError::NotOurs { .. }) => ExitError::Usage(error.to_string()),
        EngineError::Broken { .. } => ExitError::Bug(error.to_string()),
        error => ExitError::NotHere(error.to_string()),
    }
}

/// Problems that are printed as text.
const PROBLEMS_SHOWN: usize = 20;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract; damage is exit code 1.
fn check(common: &EngineCommon) -> Result<(), ExitError> {
    let settings = kept(&common.dir)?;
    let display = Display::new(common.printing.quiet || common.printing.json);
    let options = Engine::options().settings(settings).progress(|progress| {
        display.progress(share(progress), words(progress.phase));
    });
    let (report, recovery) = options.check(&common.dir).map_err(ending)?;
    display.finish();
    let document = check_document(common, &report, &recovery.clone().unwrap_or_default());
    match common.printing.json {
        true => print_json(&document)?,
        false => print_text(&check_text(&document, &report, recovery.is_some()))?,
    }
    match report.problems_total {
        0 => Ok(()),
        n => Err(ExitError::Judged(format!("{n} problems in {}", common.dir.display()))),
    }
}

fn share(progress: &Progress) -> f64 {
    match progress.total_bytes {
        0 => 0.0,
        total => progress.done_bytes as f64 / total as f64,
    }
}

fn words(phase: Phase) -> &'static str {
    match phase {
        Phase::Repair => "repairing torn pages",
        Phase::Seal => "finding the end of the redo",
        Phase::Apply => "applying the redo",
        Phase::Tables => "reading the tables",
        Phase::Reclaim => "freeing pages of dropped tables",
        Phase::Done => "verifying every structure",
    }
}

fn check_document(
    common: &EngineCommon,
    report: &CheckReport,
    recovery: &RecoveryReport,
) -> EngineCheckDocument {
    let tables = report.tables.iter().map(|table| EngineTable {
        name: table.name.clone(),
        pages: table.pages,
        rows: table.rows,
        used_bytes: table.used_bytes,
        levels: table.levels,
    });
    let problems = report.problems.iter();
    EngineCheckDocument {
        directory: common.dir.display().to_string(),
        ok: report.is_clean(),
        pages_total: report.pages_total,
        pages_used: report.pages_used,
        tables: tables.collect(),
        problems_total: report.problems_total,
        problems: problems
            .map(|problem| EngineProblem { page: problem.page, what: problem.what.clone() })
            .collect(),
        recovery: EngineRecovery {
            was_clean: recovery.was_clean,
            redo_bytes: recovery.end_lsn.saturating_sub(recovery.checkpoint_lsn),
            frames: recovery.frames,
            records: recovery.records,
            pages_changed: recovery.pages_changed,
            pages_restored: recovery.pages_restored,
            took_s: recovery.took.as_secs_f64(),
        },
    }
}

fn check_text(document: &EngineCheckDocument, report: &CheckReport, was_opened: bool) -> String {
    let recovery = &document.recovery;
    let redo = units::bytes(recovery.redo_bytes as f64);
    let mut text = match recovery.was_clean {
        _ if !was_opened => "It cannot be opened: each page was verified by itself.\n".to_owned(),
        true => "It was closed cleanly.\n".to_owned(),
        false => format!(
            "Recovered: {redo} of redo, {} records, {} pages changed, {} torn pages restored, in \
             {:.2} s\n",
            recovery.records, recovery.pages_changed, recovery.pages_restored, recovery.took_s
        ),
    };
    text += &format!("{} of {} pages in use\n", document.pages_used, document.pages_total);
    for (table, found) in document.tables.iter().zip(&report.tables) {
        if found.levels == 0 && found.lost_pages > 0 {
            text += &format!("  {}: its root cannot be read; its rows are unknown\n", table.name);
            continue;
        }
        let least = if found.lost_pages > 0 { "at least " } else { "" };
        let used = units::bytes(table.used_bytes as f64);
        text += &format!(
            "  {}: {least}{} rows, {used} in {} pages, {} levels\n",
            table.name, table.rows, table.pages, table.levels
        );
    }
    for problem in document.problems.iter().take(PROBLEMS_SHOWN) {
        text += &format!("page {}: {}\n", problem.page, problem.what);
    }
    let hidden = document.problems_total.saturating_sub(PROBLEMS_SHOWN as u64);
    if hidden > 0 {
        text += &format!("and {hidden} more\n");
    }
    if document.ok {
        text += "Every structure is as it should be.\n";
    }
    text
}

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
fn stats(common: &EngineCommon) -> Result<(), ExitError> {
    kept(&common.dir)?;
    let page = read_status(&common.dir).map_err(ending)?;
    let counters = page.counters.iter().map(|(row, value)| EngineCounter {
        name: row.name.to_owned(),
        unit: row.unit.to_string(),
        value,
    });
    let document = EngineStatsDocument {
        directory: common.dir.display().to_string(),
        pid: page.process_id,
        is_running: is_running(page.process_id),
        published_unix_s: page.unix_us as f64 / 1e6,
        counters: counters.collect(),
    };
    match common.printing.json {
        true => print_json(&document),
        false => print_text(&stats_text(&document)),
    }
}

/// Whether the process that published is still there.
fn is_running(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// When the page was published, in this machine's time zone.
fn published(unix_s: f64) -> String {
    match jiff::Timestamp::from_millisecond((unix_s * 1e3) as i64) {
        Ok(at) => {
            let here = at.to_zoned(jiff::tz::TimeZone::system());
            format!("at {}", here.strftime("%Y-%m-%d %H:%M:%S %Z"))
        }
        Err(_) => "at a time that is no date".to_owned(),
    }
}

fn stats_text(document: &EngineStatsDocument) -> String {
    let state = if document.is_running { "which runs" } else { "which has ended" };
    let mut text = format!(
        "Published by process {}, {state}, {}\n",
        document.pid,
        published(document.published_unix_s)
    );
    let widest = document.counters.iter().map(|counter| counter.name.len()).max().unwrap_or(0);
    for counter in &document.counters {
        text += &format!("{:widest$}  {:>16} {}\n", counter.name, counter.value, counter.unit);
    }
    text
}
