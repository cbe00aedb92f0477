//! How well a model does what was recorded, and what that allows to conclude.

use iostrata_run::{FlushFigures, FlushRecording};
use iostrata_stats::units::{bytes, count, percent};

/// Beyond this share the model does something else than what was recorded.
const OFF_SHARE_MAX: f64 = 0.15;
/// Points of checkpoint age beyond which the model lives at another age, in percent.
const AGE_OFF_PCT_MAX: f64 = 15.0;

/// Of less than this share of the time stalls are said to be none, in percent.
const STALLED_PCT_MIN: f64 = 2.0;

/// A second with less than this share of the mean is a stall.
const STALLS_BELOW: f64 = 0.5;

/// What stands before everything else where the model does not fit.
pub(super) const MISFIT: &str =
    "The model does not do what was recorded: what it says of other settings is not to be trusted.";

/// Fills in the verdict and the sentences.
pub(crate) fn judge_model(from: &mut FlushRecording) {
    let (recorded, modelled) = (from.recorded, from.modelled);
    let misfit = misfit(&recorded, &modelled);
    from.fits = misfit.is_none();
    from.text = vec![
        format!("{} on {}, policy {}, from {}.", from.workload, from.target, from.policy, from.run),
        format!("Recorded: {}. The model of it: {}.", words(&recorded), words(&modelled)),
    ];
    if let Some(misfit) = misfit {
        from.text.push(format!("{MISFIT} {misfit} {FIX}"));
    } else if let Some(apart) = ages_apart(&recorded, &modelled) {
        from.text.push(format!(
            "The model does as much, but at a checkpoint age that is {apart:.0} points away: \
             compare policies with caution. {FIX}"
        ));
    } else {
        from.text.push("The model does what was recorded.".to_owned());
    }
    let assumed: Vec<String> =
        from.assumed.iter().map(|one| format!("{} taken as {}", one.what, one.taken_as)).collect();
    if !assumed.is_empty() {
        from.text.push(format!("Not in the recording: {}.", assumed.join("; ")));
    }
}

/// What the model does not do as it was recorded, in sentences; nothing where it fits.
pub(crate) fn misfit(recorded: &FlushFigures, modelled: &FlushFigures) -> Option<String> {
    let off = [
        ("transactions per second", Some(modelled.tps), Some(recorded.tps)),
        ("redo", modelled.redo_bytes_per_s, recorded.redo_bytes_per_s),
        ("pages dirtied", modelled.pages_dirtied_per_s, recorded.pages_dirtied_per_s),
    ]
    .into_iter()
    .filter_map(|(what, found, wanted)| {
        let off = found? / wanted.filter(|wanted| *wanted > 0.0)? - 1.0;
        let word = if off > 0.0 { "more" } else { "less" };
        let said = format!("{what}: {} {word}", percent(100.0 * off.abs()));
        (off.abs() > OFF_SHARE_MAX).then_some(said)
    })
    .collect::<Vec<String>>();
    let off = (!off.is_empty()).then(|| format!("Off by more than 15 %: {}.", off.join(", ")));
    let all = off.into_iter().chain(stalls_apart(recorded, modelled));
    let all: Vec<String> = all.chain(evenness_apart(recorded, modelled)).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// What mostly is wrong with a model.
const FIX: &str = "Tell simulate flush the disk with --device, its limit with --iops-limit, and \
                   whatever else was assumed.";

fn ages_apart(recorded: &FlushFigures, modelled: &FlushFigures) -> Option<f64> {
    let apart = modelled.checkpoint_age_pct_mean? - recorded.checkpoint_age_pct_mean?;
    Some(apart.abs()).filter(|apart| *apart > AGE_OFF_PCT_MAX)
}

/// Stalls for want of redo space of one of the two, which the other one does not know.
fn stalls_apart(recorded: &FlushFigures, modelled: &FlushFigures) -> Option<String> {
    let (seen, found) = (recorded.redo_stalled_pct?, modelled.redo_stalled_pct?);
    let [is_seen, is_found] = [seen, found].map(|pct| pct >= STALLED_PCT_MIN);
    // Bad seconds of which the recording does not know the cause are stalls, too.
    let is_uneven = recorded.min_over_mean_1s.is_some_and(|worst| worst < STALLS_BELOW);
    let is_seen = is_seen || (is_found && is_uneven);
    (is_seen != is_found).then(|| {
        format!(
            "It stalled for want of redo space for {} of the time, its model for {}.",
            percent(seen),
            percent(found)
        )
    })
}

/// Seconds below half of the mean of one of the two, which the other one does not have.
fn evenness_apart(recorded: &FlushFigures, modelled: &FlushFigures) -> Option<String> {
    let (seen, found) = (recorded.min_over_mean_1s?, modelled.min_over_mean_1s?);
    ((seen < STALLS_BELOW) != (found < STALLS_BELOW)).then(|| {
        format!("Its worst second had {seen:.2} of the mean, that of the model has {found:.2}.")
    })
}

fn words(figures: &FlushFigures) -> String {
    let mut all = vec![format!("{} transactions/s", count(figures.tps))];
    all.extend(figures.redo_bytes_per_s.map(|redo| format!("{}/s of redo", bytes(redo))));
    let dirtied = figures.pages_dirtied_per_s;
    all.extend(dirtied.map(|pages| format!("{} pages dirtied per second", count(pages))));
    let age = figures.checkpoint_age_pct_mean;
    all.extend(age.map(|age| format!("a mean checkpoint age of {} of the wall", percent(age))));
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use iostrata_run::FlushAssumption;

    use super::*;

    fn judged(change: impl Fn(&mut FlushFigures)) -> FlushRecording {
        let recorded = FlushFigures {
            tps: 800.0,
            redo_bytes_per_s: Some(4e6),
            pages_dirtied_per_s: Some(500.0),
            checkpoint_age_pct_mean: Some(60.0),
            redo_stalled_pct: Some(0.5),
            min_over_mean_1s: Some(0.9),
            ..FlushFigures::default()
        };
        let mut modelled = recorded;
        change(&mut modelled);
        let assumed = FlushAssumption { what: "redo".to_owned(), taken_as: "1G".to_owned() };
        let mut from = FlushRecording {
            run: "RUN".to_owned(),
            workload: "tpcc".to_owned(),
            target: "mariadb 11.8.9".to_owned(),
            policy: "mariadb".to_owned(),
            recorded,
            modelled,
            assumed: vec![assumed],
            fits: false,
            text: Vec::new(),
        };
        judge_model(&mut from);
        from
    }

    #[test]
    fn what_agrees_fits_and_names_what_was_assumed() {
        let from = judged(|model| model.tps = 890.0);
        assert!(from.fits);
        assert_eq!(from.text[0], "tpcc on mariadb 11.8.9, policy mariadb, from RUN.");
        assert_eq!(from.text[2], "The model does what was recorded.");
        assert_eq!(from.text[3], "Not in the recording: redo taken as 1G.");
    }

    #[test]
    fn what_is_off_by_more_than_15_percent_is_not_to_be_trusted() {
        let from = judged(|model| model.tps = 670.0);
        assert!(!from.fits && from.text[2].contains("not to be trusted"), "{:?}", from.text);
        assert!(from.text[2].contains("transactions per second: 16"), "{:?}", from.text);
        assert!(!judged(|model| model.pages_dirtied_per_s = Some(600.0)).fits);
        let stalls = judged(|model| model.redo_stalled_pct = Some(20.0));
        assert!(!stalls.fits && stalls.text[2].contains("its model for 20 %"), "{:?}", stalls.text);
        assert!(judged(|model| model.redo_stalled_pct = None).fits);
        let uneven = judged(|model| model.min_over_mean_1s = Some(0.3));
        assert!(
            !uneven.fits && uneven.text[2].contains("that of the model has 0.30"),
            "{uneven:?}"
        );
        assert!(judged(|model| model.min_over_mean_1s = Some(0.5)).fits);
        let apart = judged(|model| model.checkpoint_age_pct_mean = Some(20.0));
        assert!(apart.fits && apart.text[2].contains("40 points away"), "{:?}", apart.text);
        let unknown = judged(|model| model.checkpoint_age_pct_mean = None);
        assert!(unknown.fits && unknown.text[2].ends_with("what was recorded."));
    }
}
