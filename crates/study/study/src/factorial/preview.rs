//! Every system change that a plan will make, for showing it beforehand.
//!
//! Invariant: what is shown is what the runner applies, from the same functions; each change once.

use iostrata_change::Change;
use iostrata_plan::study::StudyPlan;

use super::conditions;
use super::layout::{VolumeLayout, lay_out};
use super::{VolumePlace, probes};
use crate::StudyError;

/// The changes in the order in which they are made first: the volumes, then what is switched from
/// point to point, then what watching needs.
///
/// # Errors
/// When the plan names a setting that does not exist, or a disk cannot be served there.
pub fn changes_of(plan: &StudyPlan, place: &VolumePlace) -> Result<Vec<Change>, StudyError> {
    let layouts = lay_out(plan, place)?;
    let mut changes: Vec<Change> = Vec::new();
    let mut add = |change: Change| {
        if !changes.contains(&change) {
            changes.push(change);
        }
    };
    let members = layouts.iter().flat_map(|layout| &layout.members);
    members.flat_map(|member| member.changes.iter().cloned()).for_each(&mut add);
    for cell in &plan.cells {
        let layout = layouts.iter().find(|layout| layout.volume == cell.volume);
        let devices = layout.map(VolumeLayout::devices).unwrap_or_default();
        conditions::changes(&cell.conditions, &devices)?.into_iter().for_each(&mut add);
        if cell.conditions.drop_caches {
            add(Change::DropCaches);
        }
    }
    if plan.measuring.traced {
        probes::changes().into_iter().for_each(&mut add);
    }
    Ok(changes)
}
