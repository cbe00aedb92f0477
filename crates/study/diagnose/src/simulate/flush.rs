//! What simulated policies come to: a sentence for each, and the verdict.
//!
//! How well a model does what was recorded, and what that allows to conclude.

use iostrata_run::{FlushDocument, FlushEvenness, FlushFigures, FlushPolicyRun, FlushRecording};
use iostrata_stats::units::{bytes, count, percent, times};

/// Fills in the sentences.
pub fn conclude_flush(document: &mut FlushDocument) {
    for policy in &mut document.policies {
        policy.text = sentence(policy);
    }
    document.headline = headline(document);
    if let Some(from) = &mut document.from {
        judge_model(from);
        if !from.fits {
            document.headline.insert(0, MISFIT.to_owned());
        }
    }
}

fn sentence(policy: &FlushPolicyRun) -> String {
    let worst = worst_second(policy);
    let wall = format!("its wall at {:.0} % of the redo", policy.wall_pct);
    let end = format!("{:.1} pages written per transaction", policy.pages_written_per_txn);
    match policy.evenness {
        FlushEvenness::Stalls => format!(
            "Stalls: {} for {:.0} s in all, {:.0} s at the longest{worst}. Users are stopped for {:.0} \
             % of their time ({wall}); {end}.",
            times(policy.stalls),
            policy.stalled_s,
            policy.longest_stall_s,
            policy.stopped_pct,
        ),
        FlushEvenness::AtTheWall => format!(
            "Lives at its wall: users are stopped for {:.0} % of their time ({wall}), \
             evenly{worst}; {end}.",
            policy.stopped_pct,
        ),
        FlushEvenness::Even => format!(
            "Holds: the age goes up to {:.0} % of the redo, {wall}{worst}; users are slowed down \
             for {:.0} % of their time; {end}.",
            policy.checkpoint_age_pct_max, policy.delayed_pct,
        ),
    }
}

/// What its worst second has, where one can be judged.
fn worst_second(policy: &FlushPolicyRun) -> String {
    policy.worst_second().map_or_else(String::new, |worst| {
        format!("; the worst second has {:.0} % of the mean", 100.0 * worst)
    })
}

/// Who stalls, who lives at the wall, who holds.
fn headline(document: &FlushDocument) -> Vec<String> {
    let of = |evenness: FlushEvenness| -> Vec<&FlushPolicyRun> {
        document.policies.iter().filter(|policy| policy.evenness == evenness).collect()
    };
    let mut all = Vec::new();
    let stalls = of(FlushEvenness::Stalls);
    if let Some(longest) =
        stalls.iter().max_by(|a, b| a.longest_stall_s.total_cmp(&b.longest_stall_s))
    {
        all.push(format!(
            "{} of {} policies stall, {} for {:.0} s at a time.",
            stalls.len(),
            document.policies.len(),
            longest.name,
            longest.longest_stall_s,
        ));
        all.push(format!("Stalls: {}.", names(&stalls)));
    }
    let walled = of(FlushEvenness::AtTheWall);
    if !walled.is_empty() {
        all.push(format!("At the wall all the time, though evenly: {}.", names(&walled)));
    }
    let even = of(FlushEvenness::Even);
    if !even.is_empty() {
        let each = |policy: &&FlushPolicyRun| {
            let worst = policy
                .worst_second()
                .map_or_else(String::new, |worst| format!(", worst second {:.0} %", 100.0 * worst));
            let digits = if policy.tps_mean < 10.0 { 2 } else { 0 };
            format!("{} ({:.digits$}/s{worst})", policy.name, policy.tps_mean)
        };
        let each: Vec<String> = even.iter().map(each).collect();
        all.push(format!("No stalls: {}.", each.join(", ")));
    }
    if let Some(turn) = document.turns.first() {
        let s = turn.t_s;
        all.push(format!(
            "The span has a change at {s} s: {}; figures are of both parts.",
            turn.text
        ));
    }
    if document.policies.is_empty() {
        all.push("Nothing was simulated.".to_owned());
    }
    all
}

fn names(policies: &[&FlushPolicyRun]) -> String {
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    names.join(", ")
}

/// Beyond this share the model does something else than what was recorded.
const OFF_SHARE_MAX: f64 = 0.15;
/// Points of checkpoint age beyond which the model lives at another age, in percent.
const AGE_OFF_PCT_MAX: f64 = 15.0;

/// Stalls of less than this share of the time are reported as none, in percent.
const STALLED_PCT_MIN: f64 = 2.0;

/// A second with less than this share of the mean is a stall.
const STALLS_BELOW: f64 = 0.5;

/// What stands before everything else where the model does not fit.
pub(super) const MISFIT: &str =
    "The model does not fit the recording: its figures for other settings are not to be trusted.";

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
const FIX: &str = "Give simulate flush the disk with --device, its limit with --iops-limit, and \
                   whatever else was assumed.";

fn ages_apart(recorded: &FlushFigures, modelled: &FlushFigures) -> Option<f64> {
    let apart = modelled.checkpoint_age_pct_mean? - recorded.checkpoint_age_pct_mean?;
    Some(apart.abs()).filter(|apart| *apart > AGE_OFF_PCT_MAX)
}

/// Stalls for lack of redo space of one of the two, which the other one does not have.
fn stalls_apart(recorded: &FlushFigures, modelled: &FlushFigures) -> Option<String> {
    let (seen, found) = (recorded.redo_stalled_pct?, modelled.redo_stalled_pct?);
    let [is_seen, is_found] = [seen, found].map(|pct| pct >= STALLED_PCT_MIN);
    // Bad seconds of which the recording does not know the cause are stalls, too.
    let is_uneven = recorded.min_over_mean_1s.is_some_and(|worst| worst < STALLS_BELOW);
    let is_seen = is_seen || (is_found && is_uneven);
    (is_seen != is_found).then(|| {
        format!(
            "It stalled for lack of redo space for {} of the time, its model for {}.",
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
    use std::collections::BTreeMap;

    use iostrata_run::{FlushAssumption, FlushSeries};
    use iostrata_stats::{LatencyUs, Verdicts};

    use super::*;

    fn policy(name: &str, evenness: FlushEvenness) -> FlushPolicyRun {
        FlushPolicyRun {
            name: name.to_owned(),
            tps_mean: 400.0,
            tps_mean_ci95: None,
            tps_mean_n: 1,
            min_over_mean_1s: 0.25,
            stalled_s: 40.0,
            stalls: 8,
            longest_stall_s: 7.0,
            evenness,
            furious_flushes: 3,
            commit_wait_us: LatencyUs::default(),
            pages_written_per_txn: 2.5,
            write_requests_per_txn: 3.0,
            redo_bytes_per_s: 1e6,
            wall_pct: 84.0,
            checkpoint_age_pct_max: 77.0,
            delayed_pct: 30.0,
            stopped_pct: 12.0,
            checkpoints: 9,
            text: String::new(),
            series: FlushSeries::default(),
            verdicts: Verdicts::none(),
        }
    }

    #[test]
    fn each_has_its_sentence_and_the_headline_names_them_all() {
        let policies = vec![
            policy("adaptive", FlushEvenness::Stalls),
            policy("mariadb", FlushEvenness::AtTheWall),
            policy("steady", FlushEvenness::Even),
        ];
        let mut document = FlushDocument {
            title: String::new(),
            headline: Vec::new(),
            device: String::new(),
            load: String::new(),
            settings: BTreeMap::new(),
            from: None,
            turns: Vec::new(),
            policies,
            span_s: 3600.0,
            warm_up_s: 360.0,
            seed: 1,
            method: BTreeMap::new(),
            limits: Vec::new(),
            unavailable: Vec::new(),
            duration_s: 0.0,
            interrupted: false,
            verdicts: Verdicts::none(),
            report: None,
        };
        conclude_flush(&mut document);
        let begins = ["Stalls: 8 times", "Lives at its wall", "Holds: the age goes up to 77 %"];
        for (policy, begin) in document.policies.iter().zip(begins) {
            assert!(policy.text.starts_with(begin), "{}", policy.text);
        }
        assert_eq!(
            document.headline,
            [
                "1 of 3 policies stall, adaptive for 7 s at a time.",
                "Stalls: adaptive.",
                "At the wall all the time, though evenly: mariadb.",
                "No stalls: steady (400/s, worst second 25 %).",
            ]
        );
    }

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
