//! What advice is expected to change: which of it a model of flushing covers, what the recording
//! holds about the device, and figures from pairs of runs of the model.
//!
//! Invariant: pure, and nothing is simulated here. A figure that the model does not do as it was
//! recorded is not stated; nothing is stated that depends on a device whose limit is not known.

use std::collections::BTreeMap;

use iostrata_run::{
    Advice, ExpectedEffect, ExpectedFigure, FlushFigures, FlushRecording, WatchDocument,
};
use iostrata_stats::units::count;
use iostrata_stats::{Measured, Verdicts, mean_of, paired};

use super::flushing::BUSY_IN_FLIGHT;
use super::recording::Recording;
use super::trial::WatchTrial;
use crate::simulate::{judge_model, misfit};

/// Settings of flushing that the model follows, by their names without a prefix.
const MODELLED: [&str; 10] = [
    "adaptive_flushing",
    "adaptive_flushing_lwm",
    "doublewrite",
    "flush_neighbors",
    "io_capacity",
    "io_capacity_max",
    "log_file_size",
    "max_dirty_pages_pct",
    "max_dirty_pages_pct_lwm",
    "redo_log_capacity",
];
/// Fewest samples of a busy device from which its limit is known.
const BUSY_SAMPLES_MIN: usize = 5;
/// By how much of it a limit may differ between deep and shallow queues.
const LEVEL_SHARE_MAX: f64 = 0.3;
/// By how much of it a limit may swing from sample to sample.
const SWING_SHARE_MAX: f64 = 0.25;
/// Beyond this share a figure of the model is another one than was recorded.
const OFF_SHARE_MAX: f64 = 0.15;
/// The same for the worst second over the mean, which is a share itself.
const WORST_OFF_MAX: f64 = 0.2;
/// Factor over the most pages per second that were recorded beyond which nothing is predicted for
/// the device.
const BEYOND_SEEN: f64 = 1.1;

/// Settings by name with their values.
type Settings = BTreeMap<String, String>;

/// The advice that a model of flushing covers: what follows from one finding is set together.
pub fn modelled_advice(advice: &[Advice]) -> Vec<Settings> {
    let mut groups: Vec<(Option<&String>, Settings)> = Vec::new();
    for one in advice.iter().filter(|one| is_modelled(&one.setting)) {
        let (name, value) = (one.setting.clone(), one.value.clone());
        match groups.iter_mut().find(|(why, _)| *why == one.why.first()) {
            Some((_, group)) => {
                group.insert(name, value);
            }
            None => groups.push((one.why.first(), [(name, value)].into())),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// All of it that `--verify` would try, where that is not a single group.
pub fn modelled_together(advice: &[Advice]) -> Option<Settings> {
    let tried = WatchTrial::of(advice).settings.into_iter();
    let all: Settings = tried.filter(|(name, _)| is_modelled(name)).collect();
    (!all.is_empty() && !modelled_advice(advice).contains(&all)).then_some(all)
}

fn is_modelled(setting: &str) -> bool {
    MODELLED.contains(&setting.strip_prefix("innodb_").unwrap_or(setting))
}

/// What a recording holds in addition to the figures that a model is fitted to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelBasis {
    /// Requests per second, reads or writes, that the target's control group lets through, or that
    /// the device did with enough to do; nothing where neither is known.
    pub limit_iops: Option<Measured>,
    /// Whether it is the limit of a control group.
    pub is_limit_set: bool,
    /// Transactions per second.
    pub tps: Option<Measured>,
    /// Pages that became dirty, per second.
    pub pages_dirtied_per_s: Option<Measured>,
}

impl ModelBasis {
    /// Of a recording that is long enough to conclude from.
    pub fn of(document: &WatchDocument) -> Option<Self> {
        let recording = Some(Recording::of(document)).filter(Recording::is_long_enough)?;
        let set = set_limit(&recording);
        Some(Self {
            is_limit_set: set.is_some(),
            limit_iops: set.or_else(|| limit(&recording)),
            tps: recording.mean(|sample| sample.tps),
            pages_dirtied_per_s: recording.pages_dirtied_per_s(),
        })
    }
}

/// The writes per second that a control group lets through, which are held back before the device
/// counts them; nothing where that changed meanwhile.
fn set_limit(recording: &Recording<'_>) -> Option<Measured> {
    let all = recording.series(|sample| sample.throttle.as_ref()?.io_limit.as_ref()?.write_iops);
    let limit = *all.first().filter(|limit| **limit > 0)?;
    let value = limit as f64;
    let is_one = all.iter().all(|one| *one == limit);
    is_one.then(|| Measured::new(value, [value, value], all.len() as u64, Verdicts::none()))
}

/// What a device does that has enough to do: about as much with a deep queue as with a shallow one,
/// and no less than in other samples. Where it is not so, a queue came and went within the samples,
/// or it held requests of another process.
fn limit(recording: &Recording<'_>) -> Option<Measured> {
    let all = recording.series(|sample| {
        let device = sample.device.as_ref()?;
        Some((device.in_flight, device.writes_per_s.max(device.reads_per_s)))
    });
    let (mut busy, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(in_flight, _)| *in_flight >= BUSY_IN_FLIGHT);
    if busy.len() < BUSY_SAMPLES_MIN {
        return None;
    }
    busy.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rates: Vec<f64> = busy.into_iter().map(|(_, rate)| rate).collect();
    let limit = mean_of(&rates)?;
    let of = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let half = rates.len() / 2;
    let deeper = of(&rates[half..]) - of(&rates[..half]);
    let most = others.into_iter().map(|(_, rate)| rate).fold(0.0, f64::max);
    let spread = of(&rates.iter().map(|rate| (rate - limit.value).powi(2)).collect::<Vec<f64>>());
    let is_level = deeper.abs() <= LEVEL_SHARE_MAX * limit.value
        && spread.sqrt() <= SWING_SHARE_MAX * limit.value
        && most <= (1.0 + SWING_SHARE_MAX) * limit.value;
    is_level.then_some(limit).filter(|limit| limit.value >= 1.0)
}

/// Fills in how well a model does its recording; `Err` why nothing is expected of it.
///
/// # Errors
/// A model that does something else than was recorded.
pub fn judge_expected(from: &mut FlushRecording, basis: &ModelBasis) -> Result<(), String> {
    judge_model(from);
    let device = match &basis.limit_iops {
        Some(limit) if basis.is_limit_set => format!(
            "Its control group lets {} writes per second through, which is taken as the limit of \
             the device, of reads as well.",
            count(limit.value),
        ),
        Some(limit) => format!(
            "The device did {} requests per second in the {} samples in which it had four or more \
             in flight, which is taken as its limit.",
            count(limit.value),
            limit.n,
        ),
        None => {
            "The recording does not show the limit of the device: that takes five samples with \
             four requests in flight or more, and about as many done, however many were in flight."
                .to_owned()
        }
    };
    from.text.push(device);
    let Some(misfit) = misfit(&from.recorded, &from.modelled) else { return Ok(()) };
    let device = match basis.limit_iops {
        Some(_) => "",
        None => " The limit of the device is not known.",
    };
    Err(format!("the model does not do what was recorded. {misfit}{device}"))
}

/// Of settings of which nothing is expected, and why.
pub fn not_expected(settings: Settings, why: &str) -> ExpectedEffect {
    let text = vec![format!("Nothing is expected: {}.", why.trim_end_matches('.'))];
    ExpectedEffect { settings, text, ..ExpectedEffect::default() }
}

/// What settings change from pair to pair of runs of a model.
pub fn expected_effect(
    settings: Settings,
    from: &FlushRecording,
    basis: &ModelBasis,
    pairs: &[[FlushFigures; 2]],
) -> ExpectedEffect {
    let (seen, found) = (&from.recorded, &from.modelled);
    if let (None, Some(why)) = (&basis.limit_iops, beyond_seen(seen, pairs)) {
        return not_expected(settings, &why);
    }
    let mut text = Vec::new();
    let mut left_out = |what: &str, seen: Option<f64>, found: Option<f64>| {
        let told = seen.zip(found).map_or("it was not recorded".to_owned(), |(seen, found)| {
            format!("{seen:.2} was recorded, and the model has {found:.2}")
        });
        text.push(format!("Not stated: {what}, since {told}."));
    };
    let worst = [seen, found].map(|of| of.min_over_mean_1s);
    let is_alike = matches!(worst, [Some(a), Some(b)] if (a - b).abs() <= WORST_OFF_MAX);
    let min_over_mean_1s = is_alike.then(|| points(pairs, |one| one.min_over_mean_1s)).flatten();
    if min_over_mean_1s.is_none() {
        left_out("the worst second over the mean", worst[0], worst[1]);
    }
    let pages = [seen, found].map(|of| of.pages_written_per_txn);
    let is_alike = matches!(pages, [Some(a), Some(b)] if (b / a - 1.0).abs() <= OFF_SHARE_MAX);
    let pages_written_per_txn =
        is_alike.then(|| ratio(pairs, |one| one.pages_written_per_txn)).flatten();
    if pages_written_per_txn.is_none() {
        left_out("pages written per transaction", pages[0], pages[1]);
    }
    let tps = ratio(pairs, |one| Some(one.tps));
    let figures = [
        (&tps, "transactions/s"),
        (&min_over_mean_1s, "the worst second over the mean"),
        (&pages_written_per_txn, "pages written per transaction"),
    ];
    let words = |(figure, what): (&Option<ExpectedFigure>, &str)| {
        let ExpectedFigure { before, after, .. } = figure.as_ref()?;
        Some(format!("{what} from {} to {}", count(before.value), count(after.value)))
    };
    let words: Vec<String> = figures.into_iter().filter_map(words).collect();
    if !words.is_empty() {
        text.insert(0, format!("In the model: {}.", words.join(", ")));
    }
    text.push(stands_on(from, basis, pairs.len()));
    ExpectedEffect { settings, tps, min_over_mean_1s, pages_written_per_txn, text }
}

fn stands_on(from: &FlushRecording, basis: &ModelBasis, pairs: usize) -> String {
    let device = match &basis.limit_iops {
        Some(limit) => format!("a device of {} requests per second", count(limit.value)),
        None => "a device whose limit plays no part".to_owned(),
    };
    format!(
        "{pairs} pairs of runs of the model of {}, fitted to this recording, on {device}.",
        from.policy
    )
}

/// Why nothing can be predicted on a device whose limit is not known: it would have to do more than
/// was seen.
fn beyond_seen(seen: &FlushFigures, pairs: &[[FlushFigures; 2]]) -> Option<String> {
    let Some(told) = seen.flushed_pages_per_s_max else {
        return Some("the limit of the device is not known, nor what was written".to_owned());
    };
    let asked = pairs.iter().filter_map(|[_, after]| after.flushed_pages_per_s_max);
    let asked = asked.fold(0.0, f64::max);
    (asked > BEYOND_SEEN * told).then(|| {
        format!(
            "the limit of the device is not known, and up to {} pages would be written in a \
             second, where {} were seen at most",
            count(asked),
            count(told)
        )
    })
}

type Figure = fn(&FlushFigures) -> Option<f64>;

fn sides(pairs: &[[FlushFigures; 2]], of: Figure) -> Option<[Vec<f64>; 2]> {
    let side = |at: usize| pairs.iter().map(|pair| of(&pair[at])).collect::<Option<Vec<f64>>>();
    Some([side(0)?, side(1)?])
}

/// A figure that changes by a share.
fn ratio(pairs: &[[FlushFigures; 2]], of: Figure) -> Option<ExpectedFigure> {
    let [before, after] = sides(pairs, of)?;
    let change_pct = paired(&before, &after).ok()?.change_pct_of_one_more();
    change_pct.ci95?;
    Some(ExpectedFigure { before: mean_of(&before)?, after: mean_of(&after)?, change_pct })
}

/// A figure that is a share, and may be 0: by how many percentage points it changes.
fn points(pairs: &[[FlushFigures; 2]], of: Figure) -> Option<ExpectedFigure> {
    let [before, after] = sides(pairs, of)?;
    let changes: Vec<f64> = before.iter().zip(&after).map(|(a, b)| 100.0 * (b - a)).collect();
    let mean = mean_of(&changes)?;
    // The interval of one further pair, as for shares.
    let wider = (mean.n as f64 + 1.0).sqrt();
    let ci95 = Some(mean.ci95?.map(|end| mean.value + wider * (end - mean.value)));
    let change_pct = Measured { ci95, ..mean };
    Some(ExpectedFigure { before: mean_of(&before)?, after: mean_of(&after)?, change_pct })
}
