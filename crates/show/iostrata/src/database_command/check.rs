//! `tpcc check`.

use iostrata_run::{CheckDocument, ConditionDocument};
use iostrata_workload::tpcc::{self, CheckOutcome, CheckPlan, Dataset, Stage};

use super::opened::{Opened, ending};
use crate::args::TpccCheckArgs;
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say; a condition that does not hold is exit code 1.
pub fn run(args: &TpccCheckArgs) -> Result<(), ExitError> {
    let opened = Opened::open(&args.target, &tpcc::schema(), false)?;
    let checked = check(&opened, args.printing.quiet || args.printing.json);
    opened.close()?;
    let document = document(&checked?);
    match args.printing.json {
        true => print_json(&document)?,
        false => print_text(&text(&document))?,
    }
    let broken = document.conditions.iter().filter(|condition| !condition.ok).count();
    verdict(broken, "")
}

/// Checks an open target after a run, without a document of its own.
///
/// # Errors
/// What the target said; a condition that does not hold is exit code 1.
pub fn judge(opened: &Opened, is_quiet: bool) -> Result<(), ExitError> {
    let outcome = check(opened, is_quiet)?;
    let broken = outcome.conditions.iter().filter(|condition| condition.violations > 0);
    let told: Vec<&str> =
        broken.clone().flat_map(|condition| &condition.told).map(String::as_str).collect();
    verdict(broken.count(), &format!(": {}", told.join("; ")))
}

fn verdict(broken: usize, told: &str) -> Result<(), ExitError> {
    match broken {
        0 => Ok(()),
        n => Err(ExitError::Judged(format!("{n} of the twelve conditions do not hold{told}"))),
    }
}

fn check(opened: &Opened, is_quiet: bool) -> Result<CheckOutcome, ExitError> {
    let display = Display::new(is_quiet);
    let checked = check_all(opened, &display);
    display.finish();
    checked
}

fn check_all(opened: &Opened, display: &Display) -> Result<CheckOutcome, ExitError> {
    let dataset = Dataset::ready(opened.target()).map_err(ending)?;
    let plan =
        CheckPlan { warehouses: dataset.warehouses, is_fresh: dataset.stage == Stage::Loaded };
    let mut progress = |share| display.progress(share, "reading every row");
    tpcc::check(opened.target(), plan, &mut progress).map_err(ending)
}

fn document(outcome: &CheckOutcome) -> CheckDocument {
    let condition = |(condition, id): (&tpcc::Condition, u32)| {
        let ok = condition.violations == 0;
        let detail = match (ok, &condition.instead) {
            (true, None) => "holds".to_owned(),
            (true, Some(instead)) => format!("holds; {instead}"),
            (false, _) => {
                let told = condition.told.join("; ");
                format!("{} violations: {told}", condition.violations)
            }
        };
        ConditionDocument { id, ok, detail }
    };
    CheckDocument {
        ok: outcome.is_ok(),
        conditions: outcome.conditions.iter().zip(1..).map(condition).collect(),
        warehouses: outcome.warehouses as u64,
        rows: outcome.rows,
    }
}

fn text(document: &CheckDocument) -> String {
    let verdict = match document.conditions.iter().filter(|condition| !condition.ok).count() {
        0 => "All twelve conditions hold".to_owned(),
        1 => "One condition does not hold".to_owned(),
        n => format!("{n} conditions do not hold"),
    };
    let mut text =
        format!("{verdict}: {} warehouses, {} rows read.\n", document.warehouses, document.rows);
    for ConditionDocument { id, ok, detail } in &document.conditions {
        let mark = if *ok { "ok" } else { "NO" };
        text += &format!("  {id:>2}  {mark}  {detail}\n");
    }
    text
}
