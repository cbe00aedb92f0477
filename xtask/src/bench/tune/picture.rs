//! The picture of throughput over time, untuned above tuned.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::judge::TuneRow;
use super::kept::Kept;
use super::scenario::Side;

/// Draws the best runs, untuned above tuned.
///
/// # Errors
/// When a run has no recording, or the program refuses.
pub fn draw(kept: &Kept, iostrata: &Path, rows: &[TuneRow], picture: &Path) -> Result<()> {
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
