//! Advice of a recording tried out on the server: which settings, and what came of them.
//!
//! Invariant: pure. Only settings are tried that a server takes while it runs, that need no memory,
//! and that show within a window; the rest is named with the reason.

use iostrata_run::{Advice, Unavailable, Verification, WatchDocument};
use iostrata_stats::{Conclusion, mean_of, paired};

use super::advised::DYNAMIC;
use crate::verify::verified;

/// Why some settings are not tried although a server takes them while it runs, by a part of their
/// names.
const NOT_TRIED: [(&str, &str); 3] = [
    ("buffer_pool_size", "it needs memory, and a pool takes long to fill"),
    ("log_file_size", "a redo of another size shows only once it was full, and stops writers"),
    ("redo_log_capacity", "a redo of another size shows only once it was full, and stops writers"),
];

/// What is to be tried: settings with their values, and what is not, with the reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchTrial {
    /// Names and values.
    pub settings: Vec<(String, String)>,
    /// Advice that is not tried.
    pub left_out: Vec<Unavailable>,
}

impl WatchTrial {
    /// Of the advice of a recording.
    pub fn of(advice: &[Advice]) -> Self {
        let mut trial = Self::default();
        for one in advice {
            match refusal(one) {
                None => trial.settings.push((one.setting.clone(), one.value.clone())),
                Some((why, fix)) => {
                    let fix = Some(fix.to_owned());
                    trial.left_out.push(Unavailable::impossible(&one.setting, why, fix));
                }
            }
        }
        trial
    }

    /// The settings in words: `innodb_io_capacity = 2000, innodb_io_capacity_max = 4000`.
    pub fn words(&self) -> String {
        let one = |(name, value): &(String, String)| format!("{name} = {value}");
        self.settings.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// What came of it: windows before and after, in pairs. Nothing without a pair.
    pub fn verifications(
        &self,
        before: &[WatchDocument],
        after: &[WatchDocument],
    ) -> Vec<Verification> {
        FIGURES.iter().filter_map(|figure| self.verification(figure, before, after)).collect()
    }

    fn verification(
        &self,
        figure: &TrialFigure,
        before: &[WatchDocument],
        after: &[WatchDocument],
    ) -> Option<Verification> {
        let pairs = before.iter().zip(after);
        let pairs: Option<Vec<(f64, f64)>> = pairs
            .map(|(before, after)| Some(((figure.of)(before)?, (figure.of)(after)?)))
            .collect();
        let (first, second): (Vec<f64>, Vec<f64>) = pairs?.into_iter().unzip();
        let found = paired(&first, &second).ok();
        let both = [mean_of(&first)?, mean_of(&second)?];
        let setting = self.settings.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
        let text = format!("{}: {}", figure.text, self.words());
        Some(verified(setting, text, figure.unit, both, found, figure.better))
    }
}

/// A figure of a window.
struct TrialFigure {
    text: &'static str,
    unit: &'static str,
    better: Conclusion,
    of: fn(&WatchDocument) -> Option<f64>,
}

const FIGURES: [TrialFigure; 3] = [
    TrialFigure {
        text: "throughput",
        unit: "transactions/s",
        better: Conclusion::Higher,
        of: |window| window.tps,
    },
    TrialFigure {
        text: "throughput of the slowest sample of each window",
        unit: "transactions/s",
        better: Conclusion::Higher,
        // The first sample has the rates of the time before.
        of: |window| window.samples.iter().skip(1).filter_map(|one| one.tps).reduce(f64::min),
    },
    TrialFigure {
        text: "pages written per transaction",
        unit: "pages",
        better: Conclusion::Lower,
        of: |window| window.pages_written_per_txn,
    },
];

/// Why advice is not tried, and what to do.
fn refusal(advice: &Advice) -> Option<(&'static str, &'static str)> {
    if advice.value.is_empty() {
        return Some(("it ends what a client does", "run it yourself where you mean it"));
    }
    if !advice.where_.starts_with(DYNAMIC) {
        return Some(("the server takes it at its start only", "set it for the next restart"));
    }
    let known = NOT_TRIED.iter().find(|(name, _)| advice.setting.ends_with(name));
    known.map(|(_, why)| (*why, "set it at a quiet time, and watch again"))
}

#[cfg(test)]
mod tests {
    use iostrata_run::{Risk, WatchSample};

    use super::*;

    fn advice(setting: &str, value: &str, where_: &str) -> Advice {
        Advice {
            versions: None,
            source: None,
            setting: setting.to_owned(),
            value: value.to_owned(),
            default: None,
            where_: where_.to_owned(),
            why: Vec::new(),
            text: String::new(),
            risk: Risk::None,
            undo: String::new(),
            expected: None,
        }
    }

    #[test]
    fn only_what_shows_at_once_and_asks_for_nothing_is_tried() {
        let set = |name: &str| format!("SET GLOBAL {name} = 1; to keep it, in my.cnf");
        let trial = WatchTrial::of(&[
            advice("innodb_io_capacity", "2000", &set("innodb_io_capacity")),
            advice("innodb_buffer_pool_size", "1", &set("innodb_buffer_pool_size")),
            advice("innodb_redo_log_capacity", "1", &set("innodb_redo_log_capacity")),
            advice("innodb_purge_threads", "8", "innodb_purge_threads = 8 in my.cnf [mysqld]"),
            advice("KILL 41", "", "SQL"),
        ]);
        assert_eq!(trial.words(), "innodb_io_capacity = 2000");
        let left: Vec<&str> = trial.left_out.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(
            left,
            [
                "innodb_buffer_pool_size",
                "innodb_redo_log_capacity",
                "innodb_purge_threads",
                "KILL 41"
            ]
        );
    }

    fn window(tps: f64, pages: Option<f64>) -> WatchDocument {
        let sample = |tps: f64| WatchSample { tps: Some(tps), ..WatchSample::default() };
        WatchDocument {
            // What was before the window is lower than all in it.
            samples: vec![sample(1.0), sample(tps), sample(tps / 2.0)],
            tps: Some(tps),
            pages_written_per_txn: pages,
            ..WatchDocument::default()
        }
    }

    #[test]
    fn the_effect_is_that_of_pairs_and_confirmed_on_its_better_side() {
        let settings = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        let trial = WatchTrial { settings, left_out: Vec::new() };
        // The load drifts by more than the settings do.
        let before = [100.0, 200.0, 300.0, 400.0].map(|tps| window(tps, Some(2.0)));
        let after = [111.0, 219.0, 331.0, 439.0].map(|tps| window(tps, Some(2.4)));
        let found = trial.verifications(&before, &after);
        let [tps, slowest, pages] = &found[..] else { panic!("{found:?}") };
        assert_eq!((tps.setting.as_str(), tps.effect_pct_n, tps.before), ("a, b", 4, 250.0));
        assert!((tps.effect_pct.unwrap() - 10.0).abs() < 0.5 && tps.confirmed, "{tps:?}");
        let [low, high] = tps.effect_pct_ci95.unwrap();
        assert!(low > 8.0 && high < 12.0, "{tps:?}");
        assert!((slowest.before - 125.0).abs() < 1e-9 && slowest.confirmed, "{slowest:?}");
        assert!((pages.effect_pct.unwrap() - 20.0).abs() < 1e-9 && !pages.confirmed, "{pages:?}");
        // What a target does not report is no figure; what stood still has no effect in percent.
        let unknown = [window(100.0, None), window(100.0, None)];
        assert_eq!(trial.verifications(&unknown, &unknown).len(), 2);
        let stood = [window(0.0, None), window(0.0, None)];
        assert_eq!(trial.verifications(&stood, &stood)[0].effect_pct, None);
        assert_eq!(trial.verifications(&[], &[]), Vec::new());
    }
}
