//! Studies and plans as a terminal shows them.
//!
//! Invariant: plain data in, text out; nothing is looked up and nothing is computed but sums that a
//! plan's cost already holds.

use iostrata_plan::study::{Cell, FactorLevels, PartOutline, PlanCost, StudyPlan};
use iostrata_show::report::wrapped;
use iostrata_stats::units;
use serde::Serialize;

/// Points shown at either end of a plan.
const POINTS_SHOWN: usize = 4;
/// Columns of a row's name.
const NAME: usize = 16;

/// One study of the list.
#[derive(Debug, Serialize)]
pub struct StudyListing {
    /// Its name.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it wants to know.
    pub question: String,
    /// What its quick extent costs.
    pub quick: PlanCost,
    /// What its full extent costs.
    pub full: PlanCost,
}

/// A study's plan with what it costs and changes.
#[derive(Debug, Serialize)]
pub struct StudyOutline<'a> {
    /// The plan.
    #[serde(flatten)]
    pub plan: &'a StudyPlan,
    /// What it costs.
    pub cost: &'a PlanCost,
    /// Every system change, in words and in order.
    pub changes: &'a [String],
    /// The parts.
    #[serde(skip)]
    pub parts: &'a [PartOutline],
    /// What is left out, in words.
    #[serde(skip)]
    pub exclusions: &'a [String],
}

/// The shipped studies as a table.
pub fn list(studies: &[StudyListing]) -> String {
    let mut text = String::new();
    let column = 2 + studies.iter().map(|study| study.name.len()).max().unwrap_or(0);
    for study in studies {
        text.push_str(&format!("{:<column$}{}\n", study.name, study.title));
        for (name, cost) in [("quick", &study.quick), ("full", &study.full)] {
            text.push_str(&format!("{:column$}{name:<6}{}\n", "", brief(cost)));
        }
    }
    text.push_str("\niostrata study show NAME shows one; docs/studies.md teaches writing one.\n");
    text
}

fn brief(cost: &PlanCost) -> String {
    format!(
        "{} points, {} (at a fixed minute per point {})",
        cost.points,
        takes(cost),
        time(cost.fixed_minute_s)
    )
}

/// A plan, its cost, and what it changes.
pub fn show(shown: &StudyOutline<'_>, width: usize) -> String {
    let plan = shown.plan;
    let mut text = format!("{}: {}\n", plan.name, plan.title);
    for line in wrapped(plan.question.split_whitespace(), width) {
        text.push_str(&format!("{line}\n"));
    }
    section(&mut text, "Factors", plan.factors.iter().map(levels), width);
    section(&mut text, "Parts", shown.parts.iter().map(part), width);
    let exclusions = shown.exclusions.iter().map(|rule| (String::new(), rule.clone()));
    section(&mut text, "Left out", exclusions, width);
    section(&mut text, "Measuring", measuring(shown).into_iter(), width);
    section(&mut text, "Cost", cost(shown.cost).into_iter(), width);
    let changes = shown.changes.iter().map(|change| (String::new(), change.clone()));
    section(&mut text, "System changes, all put back at the end", changes, width);
    section(&mut text, "Points", points(&plan.cells).into_iter(), width);
    if let Some(then) = &plan.then {
        let rows = [
            (then.source.clone(), format!("{} printed figures", then.figures.len())),
            (String::new(), then.machine.clone()),
        ];
        section(
            &mut text,
            "Then",
            rows.map(|(a, b)| (String::new(), join(&a, &b))).into_iter(),
            width,
        );
    }
    text
}

fn join(a: &str, b: &str) -> String {
    if a.is_empty() { b.to_owned() } else { format!("{a}: {b}") }
}

/// A heading with its rows, left out where there are none. Names stand in a column; a row whose
/// name is too long for it stands below its name.
fn section(
    text: &mut String,
    heading: &str,
    rows: impl Iterator<Item = (String, String)>,
    width: usize,
) {
    let rows: Vec<(String, String)> = rows.collect();
    if rows.is_empty() {
        return;
    }
    text.push_str(&format!("\n{heading}\n"));
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let column = if longest == 0 { 0 } else { longest.clamp(NAME, width * 2 / 5) + 2 };
    for (name, row) in rows {
        let is_long = name.chars().count() + 2 > column;
        let indent = if name.is_empty() { 2 } else { 2 + column };
        if !name.is_empty() && is_long {
            text.push_str(&format!("  {name}\n"));
        }
        for (number, line) in
            wrapped(row.split_whitespace(), width.saturating_sub(indent)).iter().enumerate()
        {
            let label = if number == 0 && !is_long { name.as_str() } else { "" };
            text.push_str(&format!("  {label:<pad$}{line}\n", pad = indent - 2));
        }
    }
}

fn levels(factor: &FactorLevels) -> (String, String) {
    (factor.factor.clone(), factor.levels.join(", "))
}

fn part(part: &PartOutline) -> (String, String) {
    let factors: Vec<String> = part
        .factors
        .iter()
        .map(|factor| format!("{} {}", factor.factor, factor.levels.join("/")))
        .collect();
    (part.name.clone(), format!("{} points: {}", part.points, factors.join(", ")))
}

fn measuring(shown: &StudyOutline<'_>) -> Vec<(String, String)> {
    let (measuring, cost) = (&shown.plan.measuring, shown.cost);
    let row = |name: &str, text: String| (name.to_owned(), text);
    let mut rows = vec![
        row("points", cost.points.to_string()),
        row("replicates", replicates(cost)),
        row("windows", units::seconds(cost.window_s)),
        row(
            "precise enough",
            format!("interval within {}", units::percent(measuring.precision * 100.0)),
        ),
    ];
    if let Some(budget) = measuring.budget {
        let text = format!(
            "{}; replicates are dropped to keep it, points are not",
            time(budget.as_secs_f64())
        );
        rows.push(row("budget", text));
    }
    rows.push(row("seed", measuring.seed.to_string()));
    rows
}

fn replicates(cost: &PlanCost) -> String {
    let asked = f64::from(cost.replicates_asked);
    if cost.replicates > asked {
        return format!(
            "{asked} of every point, {:.0} on average if it is not precise before",
            cost.replicates
        );
    }
    if cost.replicates == asked {
        return format!("{asked} of every point");
    }
    format!("{:.1} of every point on average: the budget has no room for {asked}", cost.replicates)
}

fn cost(cost: &PlanCost) -> Vec<(String, String)> {
    let row = |name: &str, text: String| (name.to_owned(), text);
    vec![
        row(
            "time",
            format!(
                "{}, {} of it for the volumes ({}) and their files",
                takes(cost),
                time(cost.preparation_s),
                cost.volumes
            ),
        ),
        row("at 60 s a point", time(cost.fixed_minute_s)),
        row("files", format!("{} written to make them", units::bytes(cost.prepared_bytes as f64))),
        row(
            "measuring",
            format!(
                "writes at most {}, on a device of up to 2 GiB/s and 300 K requests/s",
                units::bytes(cost.written_bytes_max as f64)
            ),
        ),
    ]
}

fn points(cells: &[Cell]) -> Vec<(String, String)> {
    let row = |cell: &Cell| (cell.id.clone(), cell.title.clone());
    if cells.len() <= 2 * POINTS_SHOWN {
        return cells.iter().map(row).collect();
    }
    let between = format!("... {} more ...", cells.len() - 2 * POINTS_SHOWN);
    let first = cells[..POINTS_SHOWN].iter().map(row);
    let last = cells[cells.len() - POINTS_SHOWN..].iter().map(row);
    first.chain([(String::new(), between)]).chain(last).collect()
}

/// A time in seconds as a reader plans with it.
/// How long a plan takes: `about 5.2 min`, `about 5.2 min, at most 8.0 min`.
pub fn takes(cost: &PlanCost) -> String {
    let about = format!("about {}", time(cost.duration_s));
    let most = time(cost.duration_s_max);
    if most == time(cost.duration_s) { about } else { format!("{about}, at most {most}") }
}

fn time(seconds: f64) -> String {
    match seconds {
        5400.0.. => format!("{:.1} h", seconds / 3600.0),
        600.0.. => format!("{:.0} min", seconds / 60.0),
        120.0.. => format!("{:.1} min", seconds / 60.0),
        _ => units::seconds(seconds.round()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::study::{Extent, MeasuringOverrides, StudySpec, cost, shipped_text};

    #[test]
    fn a_plan_shows_factors_parts_cost_changes_and_points() {
        let spec = StudySpec::parse(shipped_text("smoke").unwrap(), "smoke.toml").unwrap();
        let plan = spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap();
        let shown = StudyOutline {
            plan: &plan,
            cost: &cost(&plan),
            changes: &["make a loop device".to_owned()],
            parts: &spec.parts(Extent::Quick),
            exclusions: &["filesystem raw with method fsync".to_owned()],
        };
        let text = show(&shown, 80);
        for part in [
            "smoke: A few seconds",
            "filesystem        raw, ext4",
            "main              8 points",
            "  filesystem raw with method fsync",
            "at 60 s a point   8.0 min",
            "  make a loop device",
            "raw device, random reads, 1 worker",
            "ext4_randwrite_w4",
        ] {
            assert!(text.contains(part), "`{part}` is missing in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["cells"].as_array().map(Vec::len), Some(8));
        assert_eq!(json["cost"]["points"], 8);
    }
}
