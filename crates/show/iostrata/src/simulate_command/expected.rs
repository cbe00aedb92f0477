//! What the advice of a recording is expected to change, by a model that is fitted to it.
//!
//! Method: as `simulate flush --from` fits it, on a device of the limit that the recording shows;
//! then pairs of runs with the settings as they were and as advised. Each pair has another seed,
//! and a load and a limit drawn from the intervals of what was recorded. Invariant: the same
//! recording gives the same figures, and the time that is simulated is bounded.

use std::collections::BTreeMap;

use iostrata_diagnose::{
    ModelBasis, expected_effect, judge_expected, modelled_advice, modelled_together, not_expected,
};
use iostrata_innodb::Settings;
use iostrata_plan::disk::DiskSpec;
use iostrata_run::{ExpectedEffect, FlushFigures, FlushRecording, WatchDocument};
use iostrata_sim::flush::{FitFreedom, FlushDevice, FlushPlan, RecordedWindow, fit, steady};
use iostrata_stats::{Measured, Random};

use super::flush::{assumptions, recorded_load};
use super::on_all_processors;
use super::recording::{Had, Recording, settings};

/// Pairs of runs with settings as they were and as advised.
const PAIRS: usize = 5;
/// Seed of the fit; the pairs have those after it.
const SEED: u64 = 1;
/// The disk that is modelled where a recording does not name its disk.
const DISK: &str = "nvme";
/// Half widths of 95 % intervals in standard errors.
const ERRORS: f64 = 1.96;
/// What a figure is not known better than by: beyond it the draws would be of another load.
const SPREAD_MAX: f64 = 0.3;
/// Longest recording that a model follows in full, in seconds.
const LENGTH_S_MAX: f64 = 3600.0;

/// Adds to a recording what its advice is expected to change.
pub fn expect(document: &mut WatchDocument) {
    let groups = modelled_advice(&document.advice);
    if groups.is_empty() {
        return;
    }
    let together = modelled_together(&document.advice);
    let model = Model::of(document);
    let effect = |settings: BTreeMap<String, String>| match &model {
        Ok(model) => model.effect(&document.target.settings, settings),
        Err(unfit) => not_expected(settings, &unfit.why),
    };
    let effects: Vec<ExpectedEffect> = groups.into_iter().map(effect).collect();
    let together = together.map(effect);
    document.expected_from = match model {
        Ok(model) => Some(model.from),
        Err(unfit) => unfit.from.map(|from| *from),
    };
    for one in &mut document.advice {
        let of_it = |effect: &&ExpectedEffect| effect.settings.contains_key(&one.setting);
        one.expected = effects.iter().find(of_it).cloned();
    }
    document.expected_together = together;
}

/// Why there is no model, and that which does not fit.
struct Unfit {
    why: String,
    from: Option<Box<FlushRecording>>,
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self { why, from: None }
    }
}

/// A model that does what was recorded.
struct Model {
    from: FlushRecording,
    basis: ModelBasis,
    window: RecordedWindow,
    plan: FlushPlan,
    /// The pairs' sides with the settings of the recording.
    before: Vec<FlushFigures>,
    /// Family and version of the target.
    flavour: String,
    version: String,
}

impl Model {
    fn of(document: &WatchDocument) -> Result<Self, Unfit> {
        let basis = ModelBasis::of(document);
        let basis = basis.ok_or_else(|| "the recording is too short".to_owned())?;
        let recording =
            Recording::of_watched(document, "this recording".to_owned(), (true, false))?;
        let mut window = recording.window;
        window.length_s = window.length_s.min(LENGTH_S_MAX);
        let load = recorded_load(&recording, None);
        let limit = basis.limit_iops.as_ref().map(|limit| limit.value.round());
        let plan = FlushPlan {
            device: device(&recording.settings, load.data_bytes, limit)?,
            settings: recording.settings.clone(),
            load,
            changes: Vec::new(),
            span_s: window.length_s.max(10.0),
            seed: SEED,
        };
        let free = FitFreedom { access: true, pages: true, time: true };
        let found = fit(&plan, &window, free).map_err(|error| error.to_string())?;
        let mut assumed = recording.assumed;
        let figures = &window.figures;
        assumed.extend(assumptions(None, &found.plan, figures, recording.data_bytes));
        let mut from = FlushRecording {
            run: recording.run,
            workload: recording.workload,
            target: recording.target,
            policy: recording.settings.policy.word().to_owned(),
            recorded: window.figures,
            modelled: found.modelled,
            assumed,
            fits: false,
            text: Vec::new(),
        };
        if let Err(why) = judge_expected(&mut from, &basis) {
            return Err(Unfit { why, from: Some(Box::new(from)) });
        }
        let (flavour, version) = (document.target.flavour.clone(), document.target.version.clone());
        let before = Vec::new();
        let mut model = Self { from, basis, window, plan: found.plan, before, flavour, version };
        match model.sides(&model.plan.settings) {
            Ok(before) => model.before = before,
            Err(why) => return Err(Unfit { why, from: Some(Box::new(model.from)) }),
        }
        Ok(model)
    }

    /// What settings change, where `had` are those of the recording.
    fn effect(
        &self,
        had: &BTreeMap<String, String>,
        advised: BTreeMap<String, String>,
    ) -> ExpectedEffect {
        let mut all = had.clone();
        all.extend(advised.iter().map(|(name, value)| (name.clone(), value.clone())));
        let target =
            Had { flavour: &self.flavour, version: &self.version, settings: &all, turns: false };
        let after = settings(&target, &mut Vec::new());
        if after == self.plan.settings {
            let why = "they change nothing in the model, which has no rotating disk";
            return not_expected(advised, why);
        }
        match self.sides(&after) {
            Ok(after) => {
                let pairs = self.before.iter().zip(&after).map(|(before, after)| [*before, *after]);
                let pairs: Vec<[FlushFigures; 2]> = pairs.collect();
                expected_effect(advised, &self.from, &self.basis, &pairs)
            }
            Err(why) => not_expected(advised, &why),
        }
    }

    /// One side of all pairs: runs with these settings, on all processors.
    fn sides(&self, settings: &Settings) -> Result<Vec<FlushFigures>, String> {
        let side = |at: usize| self.side(at as u64, settings);
        on_all_processors(PAIRS, &|| false, side, |_, _| {})
            .into_iter()
            .map(|(_, side)| side)
            .collect()
    }

    /// One side of a pair: both have the same load on the same device.
    fn side(&self, at: u64, settings: &Settings) -> Result<FlushFigures, String> {
        let seed = SEED + 1 + at;
        let mut random = Random::of_stream(seed, 1);
        let mut factor = |of: &Option<Measured>| {
            let spread = of.as_ref().map_or(0.0, |one| one.relative_half_width() / ERRORS);
            (random.normal() * spread.min(SPREAD_MAX)).exp()
        };
        let ModelBasis { limit_iops, tps, pages_dirtied_per_s, .. } = &self.basis;
        let (pace, pages, limit) = (factor(tps), factor(pages_dirtied_per_s), factor(limit_iops));
        let mut plan = FlushPlan { seed, settings: settings.clone(), ..self.plan.clone() };
        plan.load.cpu_us_per_txn = (plan.load.cpu_us_per_txn / pace).clamp(1.0, 1e7);
        plan.load.pages_per_txn = (plan.load.pages_per_txn * pages).clamp(0.01, 10_000.0);
        if let Some(iops) = plan.device.iops_limit() {
            plan.device = device(settings, plan.load.data_bytes, Some(iops * limit))?;
        }
        match steady(&plan, &self.window) {
            Ok(Some(figures)) => Ok(figures),
            Ok(None) => Err("the redo takes more than an hour to fill".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The disk that is modelled, held to so many requests each way.
pub(super) fn device(
    settings: &Settings,
    data_bytes: u64,
    limit: Option<f64>,
) -> Result<FlushDevice, String> {
    let disk = DISK.parse::<DiskSpec>().map_err(|error| error.to_string())?;
    let sizes = (u64::from(settings.page_size), data_bytes);
    FlushDevice::new(&disk, None, limit, sizes, SEED).map_err(|error| error.to_string())
}

/// A server that is known is recorded, and what its advice is expected to change is compared with
/// what it does change.
#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use iostrata_diagnose::diagnose_watch;
    use iostrata_innodb::{PolicyName, Settings};
    use iostrata_run::{
        ExpectedEffect, StallCause, TransactionStall, WatchDevice, WatchDocument, WatchSample,
        WatchTarget,
    };
    use iostrata_sim::flush::{
        Demand, FlushLoad, FlushOutcome, FlushPlan, FlushSecond, PageAccess, RecordedWindow, run,
        steady,
    };

    use super::{device, expect};

    /// Requests per second that the volume is held to.
    const LIMIT: f64 = 600.0;
    const SECONDS: usize = 240;
    const AWAKE: (&str, &str) = ("max_dirty_pages_pct_lwm", "0.001");

    /// A MariaDB whose page cleaner sleeps until its small redo is nearly full.
    fn known(lwm: &str) -> FlushPlan {
        let mut settings = Settings { policy: PolicyName::Mariadb, ..Settings::default() };
        for (name, value) in [
            ("redo_log_capacity", "64M"),
            ("buffer_pool_size", "2G"),
            ("io_capacity", "200"),
            ("io_capacity_max", "2000"),
            (AWAKE.0, lwm),
        ] {
            settings.set(name, value).unwrap();
        }
        let load = FlushLoad {
            demand: Demand::Users(16),
            pages_per_txn: 2.0,
            redo_bytes_per_txn: 6000.0,
            data_bytes: 4 << 30,
            access: PageAccess::Zipf(0.8),
            cpu_us_per_txn: 20_000.0,
            processors: 16,
        };
        let device = device(&settings, load.data_bytes, Some(LIMIT)).unwrap();
        FlushPlan { settings, device, load, changes: Vec::new(), span_s: 600.0, seed: 40 }
    }

    /// What `watch` keeps of the model's seconds after the first `from`.
    fn recorded(outcome: &FlushOutcome, from: usize) -> WatchDocument {
        let seconds = &outcome.seconds[from..from + SECONDS];
        let mean = seconds.iter().map(|second| second.commits).sum::<f64>() / SECONDS as f64;
        let pages = seconds.iter().map(|second| second.flushed_pages).sum::<f64>() / SECONDS as f64;
        let sample = |(at, second): (usize, &FlushSecond)| WatchSample {
            t_s: at as f64,
            tps: (at > 0).then_some(second.commits),
            checkpoint_age_bytes: Some(second.checkpoint_age),
            checkpoint_age_limit_bytes: Some(outcome.wall_age),
            checkpoint_age_pct: Some(
                100.0 * second.checkpoint_age as f64 / outcome.wall_age as f64,
            ),
            redo_bytes_per_s: (at > 0).then_some(second.redo_bytes),
            dirty_pages: Some(second.dirty_pages as u64),
            flushed_pages_per_s: (at > 0).then_some(second.flushed_pages),
            sessions_running: Some(16),
            device: Some(WatchDevice {
                name: "vdb".to_owned(),
                writes_per_s: LIMIT,
                in_flight: if second.flushed_pages > 200.0 { 12.0 } else { 0.5 },
                ..WatchDevice::default()
            }),
            ..WatchSample::default()
        };
        let stalls = seconds.iter().enumerate().filter(|(_, one)| one.commits < mean / 2.0);
        let stalls = stalls.map(|(at, second)| TransactionStall {
            t_s: at as f64,
            length_s: 1.0,
            min_tps: second.commits,
            cause: StallCause::RedoFull,
            evidence: String::new(),
        });
        let settings = [
            ("innodb_log_file_size", "67108864"),
            ("innodb_buffer_pool_size", "2147483648"),
            ("innodb_io_capacity", "200"),
            ("innodb_io_capacity_max", "2000"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("innodb_max_dirty_pages_pct_lwm", "0.000000"),
            ("innodb_flush_neighbors", "1"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ages = seconds.iter().map(|second| second.checkpoint_age).max().unwrap();
        WatchDocument {
            target: WatchTarget {
                flavour: "mariadb".to_owned(),
                version: "10.11.19-MariaDB".to_owned(),
                settings: settings.into(),
                ..WatchTarget::default()
            },
            duration_s: SECONDS as f64,
            samples: seconds.iter().enumerate().map(sample).collect(),
            stalls: stalls.collect(),
            checkpoint_age_pct_max: Some(100.0 * ages as f64 / outcome.wall_age as f64),
            tps: Some(mean),
            pages_written_per_txn: Some(pages / mean),
            ..WatchDocument::default()
        }
    }

    fn concluded(mut document: WatchDocument) -> WatchDocument {
        (document.findings, document.advice) = diagnose_watch(&document);
        expect(&mut document);
        document
    }

    /// What is expected of the advice for one setting.
    fn expected<'a>(document: &'a WatchDocument, setting: &str) -> &'a ExpectedEffect {
        let advised = document.advice.iter().find(|one| one.setting == setting);
        let advised = advised.unwrap_or_else(|| panic!("{setting}: {:?}", document.advice));
        advised.expected.as_ref().unwrap_or_else(|| panic!("{advised:?}"))
    }

    /// A server whose cleaner sleeps. The model takes seconds for it, so it runs once.
    fn sleeping() -> WatchDocument {
        static SLEEPING: LazyLock<WatchDocument> =
            LazyLock::new(|| recorded(&run(&known("0")).unwrap(), 300));
        SLEEPING.clone()
    }

    #[test]
    fn a_cleaner_that_is_woken_is_expected_to_do_what_it_does() {
        let document = concluded(sleeping());
        let from = document.expected_from.as_ref().unwrap();
        assert!(from.fits, "{:?}", from.text);
        let effect = expected(&document, "innodb_max_dirty_pages_pct_lwm");
        let window = RecordedWindow { figures: from.recorded, ..RecordedWindow::default() };
        let window = RecordedWindow { length_s: SECONDS as f64, ..window };
        let truth = |lwm| steady(&known(lwm), &window).unwrap().unwrap();
        let (before, after) = (truth("0"), truth(AWAKE.1));
        let tps = effect.tps.as_ref().unwrap();
        let change = 100.0 * (after.tps / before.tps - 1.0);
        // A model that fits may be off by 15 %.
        let is_near = (tps.change_pct.value - change).abs() < 15.0;
        assert!(is_near && (tps.change_pct.value < 0.0) == (change < 0.0), "{change} {effect:?}");
        let worst = effect.min_over_mean_1s.as_ref().unwrap();
        let [low, _] = worst.change_pct.ci95.unwrap();
        assert!(low > 0.0, "its worst second becomes better: {effect:?}");
        let change = 100.0 * (after.min_over_mean_1s.unwrap() - before.min_over_mean_1s.unwrap());
        assert!((worst.change_pct.value - change).abs() < 20.0, "{change} {effect:?}");
        let pages = effect.pages_written_per_txn.as_ref().unwrap();
        assert_eq!(pages.change_pct.n, 5);
        assert!(
            effect.text.iter().any(|text| text.contains("600 requests per second")),
            "{effect:?}"
        );
        // The same recording gives the same figures.
        if std::env::var_os("IOSTRATA_SOAK").is_some() {
            assert_eq!(document.advice, concluded(sleeping()).advice);
        }
    }

    #[test]
    fn of_a_recording_that_does_not_fit_nothing_is_expected_and_it_says_why() {
        let mut slow = sleeping();
        for device in slow.samples.iter_mut().filter_map(|sample| sample.device.as_mut()) {
            device.writes_per_s = 150.0;
        }
        let slow = concluded(slow);
        let effect = expected(&slow, "innodb_max_dirty_pages_pct_lwm");
        assert!(!effect.is_known(), "{effect:?}");
        assert!(effect.text[0].contains("the model does not do what was recorded"), "{effect:?}");
        assert!(!slow.expected_from.as_ref().unwrap().fits);
        // A device of which nothing is known has no limit, so that its model never stalls.
        let mut blind = sleeping();
        blind.samples.iter_mut().for_each(|sample| sample.device = None);
        let blind = concluded(blind);
        let effect = expected(&blind, "innodb_max_dirty_pages_pct_lwm");
        assert!(!effect.is_known(), "{effect:?}");
        assert!(effect.text[0].contains("The limit of the device is not known"), "{effect:?}");
        // No load can be fitted, either, where the target does not report its transactions.
        let mut silent = sleeping();
        silent.tps = None;
        let silent = concluded(silent);
        let effect = expected(&silent, "innodb_max_dirty_pages_pct_lwm");
        assert!(effect.text[0].contains("it contains no transactions"), "{effect:?}");
        assert_eq!(silent.expected_from, None);
    }

    #[test]
    fn of_a_quiet_recording_nothing_is_expected() {
        let mut quiet = sleeping();
        quiet.stalls.clear();
        for sample in &mut quiet.samples {
            sample.checkpoint_age_pct = Some(15.0);
        }
        let quiet = concluded(quiet);
        assert!(quiet.advice.is_empty(), "{:?}", quiet.advice);
        assert_eq!((quiet.expected_from, quiet.expected_together), (None, None));
    }
}
