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
use super::parallel::on_all_processors;
use super::recorded_settings::{Had, settings};
use super::recording::Recording;

/// Pairs of runs with settings as they were and as advised.
const PAIRS: usize = 5;
/// Seed of the fit; the pairs have those after it.
const SEED: u64 = 1;
/// The disk that is modelled where a recording does not say which it was.
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
            let why = "to the model, which knows no disk that turns, they are what they were";
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
