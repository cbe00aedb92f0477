//! Cautions that most points share are said once, of the whole run.
//!
//! Why: a mark on every figure marks none. What stays beside a figure tells it from the others. The
//! run directory and the Markdown keep every caution of every figure.

use iostrata_run::{RunResult, StudyDocument};
use iostrata_stats::Verdicts;

/// A study whose figures carry only cautions that the whole run does not.
pub(crate) fn shared_once(study: &StudyDocument) -> RunResult {
    let mut study = study.clone();
    let shared = study.verdicts.clone();
    let own = |verdicts: &mut Verdicts| {
        *verdicts = verdicts.iter().filter(|verdict| !shared.has(*verdict)).collect();
    };
    study.points.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.effects.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.answers.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.then.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.queue_changes.iter_mut().for_each(|one| own(&mut one.verdicts));
    RunResult::Study(Box::new(study))
}
