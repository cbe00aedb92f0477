//! How long our engine takes to open after a crash. No peer is compared: none has a comparable
//! redo.
//!
//! Invariant: every round has data of its own and is measured once.

use std::sync::atomic::AtomicBool;

use iostrata_stats::units::count;
use iostrata_stats::{Measured, Verdicts, combine};
use serde::Serialize;

use crate::engines::crash::Round;
use crate::error::PeerError;
use crate::plan::{RECOVERY, Recovery};
use crate::scratch::Scratch;
use crate::table;

/// Bytes of a mebibyte.
const MIB: f64 = 1_048_576.0;

/// All rounds.
#[derive(Clone, Debug, Serialize)]
pub struct RecoveryTable {
    /// `recovery`.
    pub workload: &'static str,
    /// The emulated disk below; absent on a real one.
    pub disk: Option<String>,
    /// Redo that was asked for, in bytes.
    pub redo_bytes: u64,
    /// Pages that were asked for.
    pub pages: u64,
    /// One entry per crash.
    pub rounds: Vec<Round>,
    /// Seconds until the engine was open, all rounds.
    pub total_s: Measured,
}

impl RecoveryTable {
    /// Puts the rounds together; `None` without any.
    pub fn new(plan: Recovery, rounds: Vec<Round>) -> Option<Self> {
        let each: Vec<Measured> = rounds
            .iter()
            .map(|round| Measured::without_interval(round.total_s, 1, Verdicts::none()))
            .collect();
        let Recovery { redo_bytes, pages, .. } = plan;
        let total_s = combine(&each)?;
        Some(Self { workload: RECOVERY, disk: None, redo_bytes, pages, rounds, total_s })
    }
}

/// Makes and times every round.
///
/// # Errors
/// When the engine refuses or is not in this build, its data is wrong, or a signal came.
pub fn run(
    plan: Recovery,
    scratch: &Scratch,
    stop: &AtomicBool,
    note: &mut dyn FnMut(&str),
) -> Result<Option<RecoveryTable>, PeerError> {
    let mut rounds = Vec::new();
    for at in 0..plan.rounds {
        let dir = scratch.sub(&format!("{RECOVERY}-{at}"))?;
        #[cfg(feature = "iostrata")]
        let round = crate::engines::crash::round(&dir, plan, 1 + at as u64, stop)?;
        #[cfg(not(feature = "iostrata"))]
        let round = absent(stop)?;
        std::fs::remove_dir_all(&dir).map_err(PeerError::files("remove", &dir))?;
        note(&format!("{RECOVERY} iostrata    open after {:.2} s", round.total_s));
        rounds.push(round);
    }
    Ok(RecoveryTable::new(plan, rounds))
}

#[cfg(not(feature = "iostrata"))]
fn absent(_: &AtomicBool) -> Result<Round, PeerError> {
    Err(PeerError::NotBuilt { engine: "iostrata" })
}

/// The table with its head and notes.
pub fn text(found: &RecoveryTable) -> String {
    let (mib, pages) = (found.redo_bytes as f64 / MIB, found.pages);
    let what = format!("our engine opened after a crash, {mib:.0} MiB of redo over {pages} pages");
    let mut text = table::head(found.workload, found.disk.as_deref(), &what);
    text += "pages of 16 KiB, none of them flushed, files not in the page cache\n\n";
    let heads = [
        "round",
        "redo MiB",
        "records",
        "pages",
        "repair s",
        "seal s",
        "apply s",
        "tables s",
        "reclaim s",
        "open after s",
        "",
    ];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    cells.extend(found.rounds.iter().enumerate().map(|(at, round)| row(at, round)));
    text += &table::aligned(&cells);
    let Measured { value, ci95, n, .. } = &found.total_s;
    let worst = found.rounds.iter().map(|round| round.total_s).fold(0.0, f64::max);
    let interval = ci95
        .map_or(String::new(), |[low, high]| format!(" [{:.2}, {high:.2}], n = {n}", low.max(0.0)));
    text += &format!("open after {value:.2} s{interval}; the slowest after {worst:.2} s\n\n");
    text += "- no peers: none has a comparable redo\n";
    if found.rounds.iter().any(|round| round.pages_current > 0) {
        text += "- some pages were flushed before the crash: less was applied than was asked for\n";
    }
    if found.rounds.iter().any(|round| round.pages_changed < found.pages) {
        text += "- the redo changed fewer pages than were asked for\n";
    }
    text
}

fn row(at: usize, round: &Round) -> Vec<String> {
    let seconds = |seconds: f64| format!("{seconds:.2}");
    vec![
        (at + 1).to_string(),
        format!("{:.0}", round.redo_bytes as f64 / MIB),
        count(round.records as f64),
        round.pages_changed.to_string(),
        seconds(round.repair_s),
        seconds(round.seal_s),
        seconds(round.apply_s),
        seconds(round.tables_s),
        seconds(round.reclaim_s),
        seconds(round.total_s),
        String::new(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(total_s: f64) -> Round {
        Round {
            redo_bytes: 1 << 30,
            records: 4_000_000,
            pages_changed: 50_000,
            pages_current: 0,
            repair_s: 0.01,
            seal_s: 0.5,
            apply_s: total_s - 0.6,
            tables_s: 0.0,
            reclaim_s: 0.0,
            total_s,
        }
    }

    #[test]
    fn the_table_tells_every_round_and_the_slowest() {
        let plan = Recovery { redo_bytes: 1 << 30, pages: 50_000, rounds: 3 };
        let mut table = RecoveryTable::new(plan, [4.0, 5.0, 4.5].map(round).to_vec()).unwrap();
        let found = text(&table);
        assert!(found.starts_with("== recovery: "), "{found}");
        assert!(found.contains("open after 4.50 s [3.41, 5.93], n = 3"), "{found}");
        assert!(found.contains("the slowest after 5.00 s"), "{found}");
        assert_eq!(found.matches("50000  ").count(), 3, "{found}");
        assert!(!found.contains("flushed before") && !found.contains("fewer"), "{found}");
        table.rounds[1].pages_current = 7;
        table.rounds[0].pages_changed = 49_000;
        table.disk = Some("nvme".to_owned());
        let found = text(&table);
        assert!(found.starts_with("== recovery, emulated disk nvme: "), "{found}");
        assert!(found.contains("flushed before") && found.contains("fewer pages"), "{found}");
        assert!(RecoveryTable::new(plan, Vec::new()).is_none());
    }
}
