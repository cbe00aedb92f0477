//! `check`: what holds of a workload's tables.

use iostrata_run::{CheckDocument, ConditionDocument, TableCountDocument};
use iostrata_workload::{Condition, TableCount, Workload};

use crate::args::{CheckArgs, Printing};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;
use crate::test_database::{TestDatabase, Use, ending};

/// Runs `check`.
///
/// # Errors
/// As the contract's exit codes say; a condition that does not hold is exit code 1.
pub fn check(workload: &dyn Workload, args: &CheckArgs) -> Result<(), ExitError> {
    let opened = TestDatabase::open(&args.target, workload, Use::Read, &|_| ())?;
    let found = document(workload, &opened, args.printing.quiet || args.printing.json);
    opened.close().map_err(ending)?;
    told(&found?, args.printing)
}

/// Checks an open target after a run, without a document of its own: what is wrong is in the error.
///
/// # Errors
/// What the target said; a condition that does not hold is exit code 1.
pub fn judge(
    workload: &dyn Workload,
    opened: &TestDatabase,
    is_quiet: bool,
) -> Result<(), ExitError> {
    let document = document(workload, opened, is_quiet)?;
    if document.ok {
        return Ok(());
    }
    let rows = document.counts.iter().filter(|count| !count.ok);
    let rows = rows.map(|count| format!("{}: {}", count.table, count.detail));
    let found: Vec<String> =
        rows.chain(broken(&document).map(|broken| broken.detail.clone())).collect();
    Err(ExitError::Judged(format!("{}: {}", not_held(&document), found.join("; "))))
}

fn document(
    workload: &dyn Workload,
    opened: &TestDatabase,
    is_quiet: bool,
) -> Result<CheckDocument, ExitError> {
    let display = Display::new(is_quiet);
    let mut progress = |share| display.progress(share, workload.checking());
    let checked = workload.check(opened.target(), &mut progress);
    display.finish();
    let (checked, size) = checked.map_err(ending)?;
    Ok(CheckDocument {
        ok: checked.is_ok(),
        conditions: conditions(&checked.conditions),
        counts: checked.counts.iter().map(count).collect(),
        size,
        size_unit: workload.size().1.to_owned(),
        rows: checked.rows,
    })
}

fn told(document: &CheckDocument, printing: Printing) -> Result<(), ExitError> {
    match printing.json {
        true => print_json(document)?,
        false => print_text(&text(document))?,
    }
    document.ok.then_some(()).ok_or_else(|| ExitError::Judged(not_held(document)))
}

fn broken(document: &CheckDocument) -> impl Iterator<Item = &ConditionDocument> {
    document.conditions.iter().filter(|condition| !condition.ok)
}

/// What does not hold, in one line.
fn not_held(document: &CheckDocument) -> String {
    let tables: Vec<&str> = document
        .counts
        .iter()
        .filter(|count| !count.ok)
        .map(|count| count.table.as_str())
        .collect();
    let (broken, all) = (broken(document).count(), document.conditions.len());
    match (tables.is_empty(), broken) {
        (true, _) => format!("{broken} of the {all} conditions do not hold"),
        (false, 0) => format!("the number of rows is wrong in {}", tables.join(", ")),
        (false, _) => format!(
            "the number of rows is wrong in {}, and {broken} of the {all} conditions do not hold",
            tables.join(", ")
        ),
    }
}

fn count(count: &TableCount) -> TableCountDocument {
    let more = count.wrong - count.told.len() as u64;
    let more = if more > 0 { format!(", and in {more} more places") } else { String::new() };
    TableCountDocument {
        table: count.table.clone(),
        ok: count.is_ok(),
        rows: count.rows,
        expected: count.expected,
        detail: format!("{}{more}", count.told.join(", ")),
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
    let CheckDocument { conditions, counts, size, size_unit, rows, .. } = document;
    let held = match broken(document).count() {
        0 => format!("All {} conditions hold", conditions.len()),
        1 => "One condition does not hold".to_owned(),
        n => format!("{n} conditions do not hold"),
    };
    let verdict = match counts.iter().filter(|count| !count.ok).count() {
        0 => held,
        1 => format!("One table has a wrong number of rows. {held}"),
        n => format!("{n} tables have a wrong number of rows. {held}"),
    };
    let mut text = format!("{verdict}: {size} {size_unit}, {rows} rows read.\n");
    for TableCountDocument { table, rows, expected, detail, .. } in
        counts.iter().filter(|count| !count.ok)
    {
        text += &format!("      NO  {table}: {rows} rows, {expected} must be there: {detail}\n");
    }
    for ConditionDocument { id, ok, detail } in conditions {
        let mark = if *ok { "ok" } else { "NO" };
        text += &format!("  {id:>2}  {mark}  {detail}\n");
    }
    text
}
