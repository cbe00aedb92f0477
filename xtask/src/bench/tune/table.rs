//! The table of `bench tune`: how flat, how fast, at what cost in pages; and its picture.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Side;
use super::figures::{SETTLING_S, TunePart, TuneRow};
use super::kept::RunStore;

/// Prints the table in Markdown.
///
/// # Errors
/// None; as its sibling.
pub fn print(rows: &[TuneRow]) -> Result<()> {
    for line in lines(rows) {
        println!("{line}");
    }
    Ok(())
}

const HEAD: [&str; 11] = [
    "server, scenario",
    "side",
    "transactions/s",
    "over whole cycles",
    "worst 2 s over the mean",
    "in random order",
    "pages/transaction",
    "flat after, s",
    "changes",
    "stolen, s",
    "reached",
];

fn lines(rows: &[TuneRow]) -> Vec<String> {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let mut lines = vec![line(&HEAD.map(str::to_owned)), line(&HEAD.map(|_| "---".to_owned()))];
    lines.extend(rows.iter().map(|row| line(&cells(row))));
    if rows.iter().any(|row| row.figures.parts.len() > 1) {
        lines.push(String::new());
        lines.push(format!(
            "Where something changes in the middle, the part before it stands first. The part \
             behind it begins {SETTLING_S} s after the change."
        ));
    }
    lines
}

fn cells(row: &TuneRow) -> [String; 11] {
    let parts = |of: &dyn Fn(&TunePart) -> String| {
        row.figures.parts.iter().map(of).collect::<Vec<_>>().join(" / ")
    };
    let is_tuned = row.key.side == Side::Tuned;
    let reached = match (&row.misses, row.key.side) {
        (None, _) => String::new(),
        (Some(misses), _) if misses.is_empty() => "yes".to_owned(),
        (Some(misses), Side::Fixed) => format!("fails: {}", misses.join(", ")),
        (Some(misses), _) => format!("no: {}", misses.join(", ")),
    };
    let (server, scenario) = (&row.key.server, row.key.scenario.title);
    let time = format!("{} s, best of {}", row.times.seconds, row.runs);
    let cycles =
        |part: &TunePart| part.tps_of_cycles.map_or("-".to_owned(), |tps| format!("{tps:.0}"));
    let random = |part: &TunePart| match part.worst_2s_in_random_order {
        Some([median, low, high]) => format!("{median:.2} ({low:.2} to {high:.2})"),
        None => "-".to_owned(),
    };
    let pages = row.figures.pages_per_txn;
    [
        format!("{server}, {scenario}"),
        format!("{} ({time})", row.key.side.name()),
        parts(&|part| format!("{:.0}", part.tps)),
        parts(&cycles),
        parts(&|part| format!("{:.2}", part.worst_2s)),
        parts(&random),
        pages.map_or("n/a".to_owned(), |pages| format!("{pages:.2}")),
        if is_tuned { parts(&|part| part.flat_after_s.to_string()) } else { String::new() },
        if is_tuned { row.figures.changes.to_string() } else { String::new() },
        parts(&|part| part.stolen_s.to_string()),
        reached,
    ]
}

/// The same as one document.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn print_json(rows: &[TuneRow]) -> Result<()> {
    let rows: Vec<Value> = rows.iter().map(json_of).collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}

fn json_of(row: &TuneRow) -> Value {
    let part = |part: &TunePart| {
        json!({
            "tps": part.tps,
            "tps_of_cycles": part.tps_of_cycles,
            "worst_2s_over_mean": part.worst_2s,
            "worst_2s_over_mean_in_random_order": part.worst_2s_in_random_order,
            "flat_after_s": part.flat_after_s,
            "stolen_s": part.stolen_s,
        })
    };
    json!({
        "server": row.key.server,
        "scenario": row.key.scenario.name,
        "side": row.key.side.name(),
        "runs": row.runs,
        "warm_up_s": row.times.warm_up_s,
        "seconds": row.times.seconds,
        "parts": row.figures.parts.iter().map(part).collect::<Vec<_>>(),
        "pages_written_per_txn": row.figures.pages_per_txn,
        "changes": row.figures.changes,
        "misses": row.misses,
    })
}

// The picture of throughput over time, untuned above tuned.

/// Draws the best runs, untuned above tuned.
///
/// # Errors
/// When a run has no recording, or the program refuses.
pub fn draw(kept: &RunStore, iostrata: &Path, rows: &[TuneRow], picture: &Path) -> Result<()> {
    let dir = kept.picture();
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    let servers = rows.iter().map(|row| &row.key.server);
    let is_one = servers.clone().all(|one| Some(one) == servers.clone().next());
    let mut command = Command::new(iostrata);
    command.current_dir(&dir).arg("report");
    for pair in rows_of_pairs(rows).chunks(2) {
        for side in [0, 1] {
            for row in pair.iter().map(|pair| pair[side]) {
                let server = if is_one { "" } else { &row.key.server };
                let comma = if is_one { "" } else { ", " };
                let title = row.key.scenario.title;
                let name = format!("{server}{comma}{title}, {}", row.key.side.name());
                let recording = kept.recording_at(&row.key);
                std::os::unix::fs::symlink(&recording, dir.join(&name))?;
                command.arg(&name);
            }
        }
    }
    let output = command.args(["--format", "svg"]).output().context("cannot run iostrata")?;
    if !output.status.success() {
        bail!("iostrata report: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    fs::write(picture, output.stdout).with_context(|| picture.display().to_string())
}

/// Untuned rows with their tuned ones.
fn rows_of_pairs(rows: &[TuneRow]) -> Vec<[&TuneRow; 2]> {
    let is_of = |row: &&TuneRow, other: &TuneRow, side: Side| {
        let (a, b) = (&row.key, &other.key);
        a.side == side && a.server == b.server && a.scenario == b.scenario
    };
    let untuned = rows.iter().filter(|row| row.key.side == Side::Untuned);
    let pair = |row| Some([row, rows.iter().find(|one| is_of(one, row, Side::Tuned))?]);
    untuned.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figures;
    use super::super::kept::{RunKey, RunTimes};
    use super::*;
    use crate::bench::tune;

    #[test]
    fn a_line_says_each_part_and_what_is_missed() {
        let part = |tps| TunePart {
            tps,
            tps_of_cycles: None,
            worst_2s: 0.7,
            worst_2s_in_random_order: Some([0.81, 0.77, 0.84]),
            flat_after_s: 9,
            stolen_s: 2,
        };
        let row = TuneRow {
            key: RunKey {
                server: "mariadb-10.11".to_owned(),
                scenario: tune::scenarios_named(&["doubled".to_owned()]).unwrap()[0],
                side: Side::Tuned,
                round: 2,
            },
            times: RunTimes { warm_up_s: 60, seconds: 300 },
            figures: Figures {
                parts: vec![part(420.4), part(390.0)],
                pages_per_txn: Some(1.456),
                changes: 31,
            },
            runs: 2,
            misses: Some(vec!["worst 2 s 0.70".to_owned()]),
        };
        let all = lines(&[row]);
        let expected = "| mariadb-10.11, 8 threads, then 16 | tuned (300 s, best of 2) | 420 / 390 \
                        | - / - | 0.70 / 0.70 | 0.81 (0.77 to 0.84) / 0.81 (0.77 to 0.84) | 1.46 | 9 / 9 \
                        | 31 | 2 / 2 | no: worst 2 s 0.70 |";
        assert_eq!(all[2], expected);
        assert_eq!(all[0].matches('|').count(), all[2].matches('|').count());
        assert!(all.last().unwrap().contains("30 s after the change"));
    }
}
