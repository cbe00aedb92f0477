//! What a file system takes of the raw device, point by point.
//!
//! Invariant: a pair of points does identical work and differs in the file system alone, replicates
//! are paired, and a loss counts only where its whole interval lies beyond the threshold.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_plan::study::{Cell, LevelAt, StudyPlan, VolumeKind};
use iostrata_stats::{Measured, paired_by_number};
use serde_json::json;

use super::axis::place;
use super::points::{figures, without};
use crate::observed::PointLog;
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const FILESYSTEM_LOSS: &str = "filesystem_loss";
/// Losses below this are how file systems are, in percent.
const LOSS_PCT_MIN: f64 = 5.0;
/// The factor that names the layer.
const FILESYSTEM: &str = "filesystem";

/// One pair of points with what the file system takes.
struct Pair<'a> {
    levels: &'a [LevelAt],
    point: &'a str,
    loss_pct: Measured,
    is_loss: bool,
}

/// One finding per file system that takes something at some point.
pub(crate) fn layer_losses(
    plan: &StudyPlan,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Vec<Statement> {
    let mut kinds: Vec<VolumeKind> = Vec::new();
    for cell in &plan.cells {
        let kind = cell.volume.kind;
        if !matches!(kind, VolumeKind::Raw | VolumeKind::Here) && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.into_iter().filter_map(|kind| layer_loss(plan, kind, seen)).collect()
}

fn layer_loss(
    plan: &StudyPlan,
    kind: VolumeKind,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Option<Statement> {
    let raw = plan.cells.iter().filter(|cell| cell.volume.kind == VolumeKind::Raw);
    let pairs: Vec<Pair<'_>> =
        raw.filter_map(|raw| pair(raw, counterpart(plan, raw, kind)?, seen)).collect();
    let mut losing: Vec<&Pair<'_>> = pairs.iter().filter(|pair| pair.is_loss).collect();
    losing.sort_by(|a, b| b.loss_pct.value.total_cmp(&a.loss_pct.value));
    let worst = losing.first()?;
    let [low, high] = worst.loss_pct.ci95?;
    let others = without(worst.levels, FILESYSTEM);
    let text = format!(
        "{} does measurably less than the raw device at {} of {} points of equal work; most at \
         {}: {:.1} % less (95 % {low:.1} to {high:.1} %)",
        kind.name(),
        losing.len(),
        pairs.len(),
        place(&others),
        worst.loss_pct.value
    );
    let named = |pair: &&Pair<'_>| (format!("{}_loss_pct", pair.point), json!(pair.loss_pct.value));
    let said = Statement::sized(Layer::Filesystem, &worst.loss_pct, text);
    Some(said.with_all(losing.iter().map(named)))
}

/// The cell that does the same on a file system of default making: of several, the first.
fn counterpart<'a>(plan: &'a StudyPlan, raw: &Cell, kind: VolumeKind) -> Option<&'a Cell> {
    let same = |cell: &&Cell| {
        if cell.transactions.is_some() {
            return false;
        }
        let mut own = cell.workload.clone();
        // One file is the file system's form of one device.
        own.files = raw.workload.files;
        cell.volume.kind == kind
            && cell.volume.disk == raw.volume.disk
            && cell.volume.count == raw.volume.count
            && cell.workload.files == 1
            && own == raw.workload
            && cell.conditions == raw.conditions
    };
    plan.cells.iter().find(same)
}

fn pair<'a>(
    raw: &'a Cell,
    other: &'a Cell,
    seen: &BTreeMap<&str, PointLog<'_>>,
) -> Option<Pair<'a>> {
    let by_number = |cell: &Cell| -> Option<BTreeMap<u32, Measured>> {
        Some(figures(seen.get(cell.id.as_str())?).into_iter().collect())
    };
    let found = paired_by_number(&by_number(raw)?, &by_number(other)?).ok()?;
    let loss_pct = found.loss_pct();
    let is_beyond = loss_pct.ci95.is_some_and(|[low, _]| low > LOSS_PCT_MIN);
    let is_loss = found.is_significant() && is_beyond;
    Some(Pair { levels: &other.levels, point: &other.id, loss_pct, is_loss })
}
