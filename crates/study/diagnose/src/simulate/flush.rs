//! What simulated policies come to: a sentence for each, and the verdict.

use iostrata_run::{FlushDocument, FlushEvenness, FlushPolicyRun};
use iostrata_stats::units::times;

use super::flush_recording::{MISFIT, judge_model};

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
    let worst = 100.0 * policy.min_over_mean_1s;
    let wall = format!("its wall at {:.0} % of the redo", policy.wall_pct);
    let end = format!("{:.1} pages written per transaction", policy.pages_written_per_txn);
    match policy.evenness {
        FlushEvenness::Stalls => format!(
            "Stalls: {} for {:.0} s in all, {:.0} s at the longest; the worst second has {worst:.0} \
             % of the mean. Users are stopped for {:.0} % of their time ({wall}); {end}.",
            times(policy.stalls),
            policy.stalled_s,
            policy.longest_stall_s,
            policy.stopped_pct,
        ),
        FlushEvenness::AtTheWall => format!(
            "Lives at its wall: users are stopped for {:.0} % of their time ({wall}), evenly: the \
             worst second has {worst:.0} % of the mean; {end}.",
            policy.stopped_pct,
        ),
        FlushEvenness::Even => format!(
            "Holds: the age goes up to {:.0} % of the redo, {wall}; the worst second has \
             {worst:.0} % of the mean, users are slowed down for {:.0} % of their time; {end}.",
            policy.checkpoint_age_pct_max, policy.delayed_pct,
        ),
    }
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
            let worst = 100.0 * policy.min_over_mean_1s;
            format!("{} ({:.0}/s, worst second {worst:.0} %)", policy.name, policy.tps_mean)
        };
        let each: Vec<String> = even.iter().map(each).collect();
        all.push(format!("Nobody is stopped under {}.", each.join(", ")));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iostrata_run::FlushSeries;
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
                "Nobody is stopped under steady (400/s, worst second 25 %).",
            ]
        );
    }
}
