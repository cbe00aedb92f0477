//! Two profiles against each other: which layers and functions gained or lost share.
//!
//! Method: each share is a proportion of its profile's samples; the interval of the difference is
//! Newcombe's hybrid score interval (Newcombe 1998, Statistics in Medicine 17:873-890, method 10),
//! which holds for shares near 0 and for few samples. Samples are taken as independent; at 99 Hz
//! they are, unless phases of the load last long. Each interval holds with 95 % by itself: of many
//! rows without a true difference, one in twenty is marked. Pure.

use std::collections::{BTreeMap, BTreeSet};

use iostrata_stats::Interval;
use serde::{Deserialize, Serialize};

use super::{KernelLayer, Profile};

/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// The second profile against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileDiff {
    /// Samples of the first.
    pub samples_a: u64,
    /// Samples of the second.
    pub samples_b: u64,
    /// Every layer that one of them has, the largest difference first.
    pub layers: Vec<LayerDiff>,
    /// Every symbol that one of them lists, the largest difference first.
    pub symbols: Vec<SymbolDiff>,
    /// What limits the comparison; one sentence each.
    pub notes: Vec<String>,
}

/// One layer in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerDiff {
    /// The layer.
    pub layer: KernelLayer,
    /// Its shares.
    pub share: ShareDiff,
}

/// One symbol in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SymbolDiff {
    /// Function; `user` for a program.
    pub symbol: String,
    /// `[kernel]`, a kernel module, or a program.
    pub module: String,
    /// Its layer.
    pub layer: KernelLayer,
    /// Its shares.
    pub share: ShareDiff,
}

/// Two shares of all samples and their difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareDiff {
    /// Samples in the first profile.
    pub count_a: u64,
    /// Samples in the second profile.
    pub count_b: u64,
    /// Share in the first, in percent.
    pub pct_a: f64,
    /// Share in the second, in percent.
    pub pct_b: f64,
    /// `pct_b - pct_a`, in percentage points.
    pub points: f64,
    /// The 95 % interval of `points`.
    pub points_ci95: Interval,
    /// Whether the interval leaves out 0.
    pub is_significant: bool,
}

impl ShareDiff {
    /// From `count` of `all` samples in each. A count above its total, which only a damaged
    /// profile has, is taken as the total.
    pub fn of(count_a: u64, all_a: u64, count_b: u64, all_b: u64) -> Self {
        let (count_a, count_b) = (count_a.min(all_a), count_b.min(all_b));
        let share = |count: u64, all: u64| if all == 0 { 0.0 } else { count as f64 / all as f64 };
        let (a, b) = (share(count_a, all_a), share(count_b, all_b));
        let ([low_a, high_a], [low_b, high_b]) = (wilson(a, all_a), wilson(b, all_b));
        let difference = b - a;
        let low = difference - ((b - low_b).powi(2) + (high_a - a).powi(2)).sqrt();
        let high = difference + ((high_b - b).powi(2) + (a - low_a).powi(2)).sqrt();
        Self {
            count_a,
            count_b,
            pct_a: 100.0 * a,
            pct_b: 100.0 * b,
            points: 100.0 * difference,
            points_ci95: [100.0 * low, 100.0 * high],
            is_significant: low > 0.0 || high < 0.0,
        }
    }
}

/// Wilson's score interval of a proportion; everything is possible without samples.
fn wilson(share: f64, all: u64) -> Interval {
    if all == 0 {
        return [0.0, 1.0];
    }
    let n = all as f64;
    let centre = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    // Rounding must not push a bound past the share it belongs to.
    [((centre - spread) / scale).clamp(0.0, share), ((centre + spread) / scale).clamp(share, 1.0)]
}

impl ProfileDiff {
    /// Compares two profiles. A symbol that one of them does not list counts there as its listed
    /// stacks show it.
    pub fn of(a: &Profile, b: &Profile) -> Self {
        let mut layers: Vec<LayerDiff> = layer_counts(a, b)
            .into_iter()
            .map(|(layer, [in_a, in_b])| LayerDiff {
                layer,
                share: ShareDiff::of(in_a, a.samples, in_b, b.samples),
            })
            .collect();
        layers.sort_by(|one, two| by_size(&one.share, &two.share));
        let mut symbols = symbol_diffs(a, b);
        symbols.sort_by(|one, two| by_size(&one.share, &two.share));
        let (samples_a, samples_b) = (a.samples, b.samples);
        Self { samples_a, samples_b, layers, symbols, notes: notes(a, b) }
    }
}

fn by_size(one: &ShareDiff, two: &ShareDiff) -> std::cmp::Ordering {
    two.points.abs().total_cmp(&one.points.abs())
}

fn layer_counts(a: &Profile, b: &Profile) -> BTreeMap<KernelLayer, [u64; 2]> {
    let mut counts: BTreeMap<KernelLayer, [u64; 2]> = BTreeMap::new();
    for (side, profile) in [a, b].into_iter().enumerate() {
        for row in &profile.layers {
            counts.entry(row.layer).or_default()[side] += row.samples;
        }
    }
    counts
}

fn symbol_diffs(a: &Profile, b: &Profile) -> Vec<SymbolDiff> {
    let mut counts: BTreeMap<(String, String), (KernelLayer, [u64; 2])> = BTreeMap::new();
    for (side, profile) in [a, b].into_iter().enumerate() {
        for row in profile.symbols_of_stacks() {
            let entry = counts.entry((row.symbol, row.module)).or_insert((row.layer, [0; 2]));
            entry.1[side] += row.samples;
        }
    }
    let listed: BTreeSet<(&str, &str)> = a
        .symbols
        .iter()
        .chain(&b.symbols)
        .map(|row| (row.symbol.as_str(), row.module.as_str()))
        .collect();
    counts
        .into_iter()
        .filter(|((symbol, module), _)| listed.contains(&(symbol.as_str(), module.as_str())))
        .map(|((symbol, module), (layer, [in_a, in_b]))| {
            let share = ShareDiff::of(in_a, a.samples, in_b, b.samples);
            SymbolDiff { symbol, module, layer, share }
        })
        .collect()
}

fn notes(a: &Profile, b: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if a.clock != b.clock {
        notes.push(format!(
            "one profile was driven by {}, the other by {}: shares differ for that alone",
            a.clock, b.clock
        ));
    }
    if a.stacks_rest_samples + b.stacks_rest_samples > 0 {
        notes.push(
            "not every stack was kept: a symbol listed in one profile only may have a few samples \
             more in the other"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{FoldedStack, LayerShare, SymbolShare};

    #[track_caller]
    fn close(found: &ShareDiff, points: f64, low: f64, high: f64) {
        let near = |one: f64, two: f64| (one - two).abs() < 0.006;
        let [found_low, found_high] = found.points_ci95;
        let agree = near(found.points, points) && near(found_low, low) && near(found_high, high);
        assert!(agree, "{found:?}");
    }

    #[test]
    fn the_intervals_are_those_of_the_paper() {
        // Newcombe 1998, table II, method 10: p1 - p2 of 56/70 and 48/80, 9/10 and 3/10, 6/7 and
        // 2/7, 5/56 and 0/29, 10/10 and 0/10.
        close(&ShareDiff::of(48, 80, 56, 70), 20.0, 5.24, 33.39);
        close(&ShareDiff::of(3, 10, 9, 10), 60.0, 17.05, 80.90);
        close(&ShareDiff::of(2, 7, 6, 7), 57.14, 5.82, 80.62);
        close(&ShareDiff::of(0, 29, 5, 56), 8.93, -3.81, 19.26);
        close(&ShareDiff::of(0, 10, 10, 10), 100.0, 60.75, 100.0);
    }

    #[test]
    fn nothing_is_known_from_no_samples() {
        let none = ShareDiff::of(0, 0, 5, 10);
        assert!(!none.is_significant, "{none:?}");
        assert!(!ShareDiff::of(0, 0, 0, 0).is_significant);
    }

    /// A profile with these samples per symbol, listing the first `listed` of them.
    fn profile(rows: &[(&str, KernelLayer, u64)], listed: usize) -> Profile {
        let mut profile = Profile { clock: "cpu-clock".to_owned(), ..Profile::default() };
        for &(symbol, layer, samples) in rows {
            let (module, frames) =
                ("[kernel]".to_owned(), vec!["user".to_owned(), symbol.to_owned()]);
            profile.samples += samples;
            profile.layers.push(LayerShare { layer, samples, pct: 0.0, taken_in: vec![] });
            profile.stacks.push(FoldedStack { frames, layer, samples });
            let symbol = symbol.to_owned();
            profile.symbols.push(SymbolShare { symbol, module, layer, samples, pct: 0.0 });
        }
        profile.symbols.truncate(listed);
        profile
    }

    /// The two XFS tables of 2012: 4 writers, then 16.
    #[test]
    fn a_spin_lock_stands_out() {
        let rest = |all: u64, listed: u64| ("rest", KernelLayer::Other, all - listed);
        let four = profile(
            &[
                ("__ticket_spin_lock", KernelLayer::Lock, 2_217),
                ("intel_idle", KernelLayer::Idle, 2_105),
                rest(28_400, 4_322),
            ],
            3,
        );
        let sixteen = profile(
            &[
                ("__ticket_spin_lock", KernelLayer::Lock, 96_576),
                ("intel_idle", KernelLayer::Idle, 17_935),
                ("find_busiest_group", KernelLayer::TaskSwitch, 5_182),
                rest(170_000, 119_693),
            ],
            4,
        );
        let diff = ProfileDiff::of(&four, &sixteen);
        assert_eq!(diff.symbols[1].symbol, "__ticket_spin_lock");
        let lock = diff.symbols[1].share;
        assert!(lock.is_significant && (lock.points - 49.0).abs() < 0.1, "{lock:?}");
        assert_eq!(diff.layers.iter().map(|row| row.layer).nth(1), Some(KernelLayer::Lock));
        let only_b = diff.symbols.iter().find(|row| row.symbol == "find_busiest_group").unwrap();
        assert_eq!((only_b.share.count_a, only_b.share.count_b), (0, 5_182));
        assert!(diff.notes.is_empty(), "{:?}", diff.notes);
    }

    #[test]
    fn equal_profiles_differ_in_nothing() {
        let rows = [("a", KernelLayer::Vfs, 50), ("b", KernelLayer::Block, 50)];
        let diff = ProfileDiff::of(&profile(&rows, 2), &profile(&rows, 2));
        assert!(diff.layers.iter().all(|row| !row.share.is_significant && row.share.points == 0.0));
        assert!(diff.symbols.iter().all(|row| !row.share.is_significant));
    }

    #[test]
    fn a_symbol_past_one_list_counts_as_its_stacks_show() {
        let rows = [("a", KernelLayer::Vfs, 60), ("b", KernelLayer::Block, 40)];
        let diff = ProfileDiff::of(&profile(&rows, 1), &profile(&rows, 2));
        let row = diff.symbols.iter().find(|row| row.symbol == "b").unwrap();
        assert_eq!((row.share.count_a, row.share.count_b), (40, 40));
    }

    #[test]
    fn other_clocks_are_named() {
        let mut other = profile(&[("a", KernelLayer::Vfs, 1)], 1);
        other.clock = "cycles".to_owned();
        other.stacks_rest_samples = 1;
        let diff = ProfileDiff::of(&profile(&[("a", KernelLayer::Vfs, 1)], 1), &other);
        assert_eq!(diff.notes.len(), 2, "{:?}", diff.notes);
    }
}
