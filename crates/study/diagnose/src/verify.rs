//! Advice tried out inside the probe's own files: which points to run before and after, and their
//! results.
//!
//! Invariant: only what needs no root and no server: the file API, the number of files, the sync
//! method. A trial is confirmed when the paired interval lies on the better side.

use iostrata_plan::{Better, Point, rung};
use iostrata_run::{Event, ProbeHost, Replicate, Verification};
use iostrata_stats::{Comparison, Conclusion, Measured, combine, paired_measured};

use crate::advice::advise;
use crate::case::Case;
use crate::figure::metric_of;
use crate::observed::{EventIndex, Which};
use crate::rules::findings_of;

/// Start of the ids of points that only try out advice.
const TRIAL: &str = "verify_";

/// One piece of advice that can be tried.
struct Trial {
    /// Short name in the ids of its points.
    key: &'static str,
    /// The setting that is advised.
    setting: &'static str,
    /// The point that stands for the setting before.
    before: &'static str,
    /// The point that stands for it afterwards; `#` stands for the advised value.
    after: &'static str,
    /// What was done, in words.
    text: &'static str,
}

const TRIALS: &[Trial] = &[
    Trial {
        key: "files",
        setting: "number of data files",
        before: rung::WRITE_16K_FILES_1,
        after: "write_16k_files_#",
        text: "the same writers on one file, then on as many as advised",
    },
    Trial {
        key: "fdatasync",
        setting: "innodb_use_fdatasync",
        before: rung::COMMIT_FSYNC,
        after: rung::COMMIT_FDATASYNC,
        text: "commits made durable by fsync, then by fdatasync",
    },
    Trial {
        key: "write_through",
        setting: "innodb_log_file_write_through",
        before: rung::COMMIT_FDATASYNC,
        after: rung::COMMIT_DSYNC,
        text: "commits made durable by fdatasync, then by O_DSYNC",
    },
];

/// Whether a point only tries out advice.
pub(crate) fn is_trial(id: &str) -> bool {
    id.starts_with(TRIAL)
}

fn id(trial: &Trial, side: &str) -> String {
    format!("{TRIAL}{}_{side}", trial.key)
}

/// Groups of points that try out the advice of a run: each group is measured interleaved, at least
/// three replicates.
pub fn verify_points(host: &ProbeHost, events: &[Event]) -> Vec<Vec<Point>> {
    let log = EventIndex::of(events);
    let advice = advise(&findings_of(&Case { log: &log, host }), host);
    TRIALS
        .iter()
        .filter_map(|trial| {
            let advised = advice.iter().find(|advice| advice.setting == trial.setting)?;
            let after = trial.after.replace('#', &advised.value);
            let copy = |known: &str, side: &str| {
                let mut point = log.seen(known)?.point.clone();
                point.id = id(trial, side);
                point.block = format!("{TRIAL}{}", trial.key);
                point.title = format!("{side} {}: {}", trial.setting, point.title);
                point.curve = None;
                Some(point)
            };
            Some(vec![copy(trial.before, "before")?, copy(&after, "after")?])
        })
        .collect()
}

/// The results of a run's trials.
pub(crate) fn verifications_of(log: &EventIndex<'_>) -> Vec<Verification> {
    TRIALS.iter().filter_map(|trial| verification(log, trial)).collect()
}

fn verification(log: &EventIndex<'_>, trial: &Trial) -> Option<Verification> {
    let (before_id, after_id) = (id(trial, "before"), id(trial, "after"));
    let side = |id: &str| log.replicates(id, Which::All);
    let (befores, afters) = (side(&before_id), side(&after_id));
    let pairs: Vec<(Measured, Measured)> = befores
        .iter()
        .filter_map(|(number, before)| {
            let after: &Replicate = afters.iter().find(|(other, _)| other == number)?.1;
            Some((metric_of(before)?, metric_of(after)?))
        })
        .collect();
    let metric = &befores.first()?.1.point.metric;
    let (first, second): (Vec<Measured>, Vec<Measured>) = pairs.into_iter().unzip();
    let (before, after) = (combine(&first)?, combine(&second)?);
    let better = match metric.better {
        Better::Higher => Conclusion::Higher,
        Better::Lower => Conclusion::Lower,
    };
    let found = paired_measured(&first, &second).ok();
    let (setting, text) = (trial.setting.to_owned(), trial.text.to_owned());
    Some(verified(setting, text, &metric.unit, [before, after], found, better))
}

/// What became of a setting: the figure before and after it, and their comparison.
pub(crate) fn verified(
    setting: String,
    text: String,
    unit: &str,
    [before, after]: [Measured; 2],
    found: Option<Comparison>,
    better: Conclusion,
) -> Verification {
    let effect_pct = found.as_ref().map(Comparison::change_pct);
    Verification {
        setting,
        text,
        before: before.value,
        before_ci95: before.ci95,
        before_n: before.n,
        after: after.value,
        after_ci95: after.ci95,
        after_n: after.n,
        unit: unit.to_owned(),
        effect_pct: effect_pct.as_ref().map(|effect| effect.value),
        effect_pct_ci95: effect_pct.as_ref().and_then(|effect| effect.ci95),
        effect_pct_n: effect_pct.as_ref().map_or(0, |effect| effect.n),
        confirmed: found.is_some_and(|found| found.conclusion == better),
    }
}
