//! `iostrata engine check`.

use iostrata_engine::{CheckReport, Engine, Phase, Progress, RecoveryReport};
use iostrata_run::{EngineCheckDocument, EngineProblem, EngineRecovery, EngineTable};
use iostrata_stats::units;

use super::{ending, kept};
use crate::args::EngineCommon;
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;

/// Problems that are printed as text.
const PROBLEMS_SHOWN: usize = 20;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say; damage is exit code 1.
pub fn run(common: &EngineCommon) -> Result<(), ExitError> {
    let settings = kept(&common.dir)?;
    let display = Display::new(common.printing.quiet || common.printing.json);
    let options = Engine::options().settings(settings).progress(|progress| {
        display.progress(share(progress), words(progress.phase));
    });
    let (report, recovery) = options.check(&common.dir).map_err(ending)?;
    display.finish();
    let document = document(common, &report, &recovery.clone().unwrap_or_default());
    match common.printing.json {
        true => print_json(&document)?,
        false => print_text(&text(&document, &report, recovery.is_some()))?,
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

fn document(
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

fn text(document: &EngineCheckDocument, report: &CheckReport, was_opened: bool) -> String {
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
            text += &format!("  {}: its root cannot be read; its rows are not known\n", table.name);
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
