//! `check`: what holds of a workload's tables.

use iostrata_run::{CheckDocument, ConditionDocument};
use iostrata_workload::tpcc::{self, CheckOutcome, CheckPlan, Dataset, Stage};
use iostrata_workload::{Checked, Condition};

use super::opened::{Opened, ending};
use crate::args::{CheckArgs, Printing};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;

/// Runs `tpcc check`.
///
/// # Errors
/// As the contract's exit codes say; a condition that does not hold is exit code 1.
pub fn tpcc(args: &CheckArgs) -> Result<(), ExitError> {
    let opened = Opened::open(&args.target, &tpcc::schema(), false)?;
    let checked = check(&opened, args.printing.quiet || args.printing.json);
    opened.close()?;
    told(&document(&checked?), args.printing)
}

/// Checks an open target after a run of TPC-C, without a document of its own.
///
/// # Errors
/// What the target said; a condition that does not hold is exit code 1.
pub fn judge(opened: &Opened, is_quiet: bool) -> Result<(), ExitError> {
    verdict(&document(&check(opened, is_quiet)?))
}

/// Prints what a check found.
///
/// # Errors
/// A condition that does not hold is exit code 1.
pub fn told(document: &CheckDocument, printing: Printing) -> Result<(), ExitError> {
    match printing.json {
        true => print_json(document)?,
        false => print_text(&text(document))?,
    }
    let broken = broken(document).count();
    (broken == 0).then_some(()).ok_or_else(|| ExitError::Judged(not_held(document, broken)))
}

/// Judges a check after a run: what is wrong is in the error.
///
/// # Errors
/// A condition that does not hold is exit code 1.
pub fn verdict(document: &CheckDocument) -> Result<(), ExitError> {
    let found: Vec<&str> = broken(document).map(|condition| condition.detail.as_str()).collect();
    match found.is_empty() {
        true => Ok(()),
        false => Err(ExitError::Judged(format!(
            "{}: {}",
            not_held(document, found.len()),
            found.join("; ")
        ))),
    }
}

fn broken(document: &CheckDocument) -> impl Iterator<Item = &ConditionDocument> {
    document.conditions.iter().filter(|condition| !condition.ok)
}

fn not_held(document: &CheckDocument, broken: usize) -> String {
    format!("{broken} of the {} conditions do not hold", document.conditions.len())
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
    CheckDocument {
        ok: outcome.is_ok(),
        conditions: conditions(&outcome.conditions),
        size: outcome.warehouses as u64,
        size_unit: "warehouses".to_owned(),
        rows: outcome.rows,
    }
}

/// The document of a check of so many of something.
pub fn document_of(checked: &Checked, size: u64, size_unit: &str) -> CheckDocument {
    CheckDocument {
        ok: checked.is_ok(),
        conditions: conditions(&checked.conditions),
        size,
        size_unit: size_unit.to_owned(),
        rows: checked.rows,
    }
}

fn conditions(all: &[Condition]) -> Vec<ConditionDocument> {
    let condition = |(condition, id): (&Condition, u32)| {
        let ok = condition.violations == 0;
        let found = match (ok, &condition.instead) {
            (true, None) => "holds".to_owned(),
            (true, Some(instead)) => format!("holds; {instead}"),
            (false, _) => {
                let told = condition.told.join("; ");
                format!("{} violations: {told}", condition.violations)
            }
        };
        let detail = match condition.says.as_str() {
            "" => found,
            says => format!("{says}: {found}"),
        };
        ConditionDocument { id, ok, detail }
    };
    all.iter().zip(1..).map(condition).collect()
}

fn text(document: &CheckDocument) -> String {
    let CheckDocument { conditions, size, size_unit, rows, .. } = document;
    let verdict = match broken(document).count() {
        0 => format!("All {} conditions hold", conditions.len()),
        1 => "One condition does not hold".to_owned(),
        n => format!("{n} conditions do not hold"),
    };
    let mut text = format!("{verdict}: {size} {size_unit}, {rows} rows read.\n");
    for ConditionDocument { id, ok, detail } in conditions {
        let mark = if *ok { "ok" } else { "NO" };
        text += &format!("  {id:>2}  {mark}  {detail}\n");
    }
    text
}
