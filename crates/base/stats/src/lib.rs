//! Numbers that carry their errors.
//!
//! Purpose: turn what a worker recorded (latency histograms, counts per slice of time) into figures
//! with a 95 % interval, a sample count and the verdicts that say whether to trust them.
//! Invariant: pure. No clock, no file, no thread; the same input always gives the same figure.
//! It does not know what was measured, and it prints nothing. [`units`] parses and prints sizes and
//! durations for everything above.

mod axis;
mod combine;
mod compare;
mod contrast;
#[cfg(test)]
mod coverage;
mod drift;
mod effects;
mod estimate;
mod histogram;
mod knee;
mod little;
mod loss;
mod measured;
mod multiplicity;
mod noise;
mod pooled;
mod random;
mod rate_search;
mod repeat;
mod replicates;
mod shape;
#[cfg(test)]
mod simulate;
mod stability;
mod stopping;
mod student;
pub mod units;
mod verdict;
mod warmup;

pub use axis::{AXIS_MATERIAL_PCT, Axis, AxisKind, AxisPoint, Enough, axis};
pub use combine::{combine, combine_weighted, mean_of};
pub use compare::{
    Cells, CompareError, Comparison, Conclusion, Difference, FigurePair, KNOWN_PCT_MAX,
    MARGINS_PCT, PAIRS_MIN, allowed_pct, compare, difference, is_within_pct, paired,
    paired_by_number, paired_measured,
};
pub use drift::{Drift, drift};
pub use effects::{Effect, Effects, Interaction, LevelChange, MainEffect, Observation, effects};
pub use estimate::{estimate, estimate_ratio};
pub use histogram::{
    Bucket, HistogramDecodeError, HistogramEncodeError, Latencies, LatencyHistogram,
};
pub use knee::{Knee, knee};
pub use little::{in_flight, is_possible, is_possible_in_window};
pub use loss::loss_pct;
pub use measured::{Interval, LatencyUs, Measured};
pub use multiplicity::{ERROR_RATE, benjamini_hochberg, holm, holm_of_known};
pub use pooled::{MOMENTS_MIN, Percentile, pooled_percentiles, pooled_summary};
pub use random::{Random, split_mix};
pub use rate_search::RateSearch;
pub use repeat::{Repeat, repeat};
pub use replicates::{Need, more_needed, until_precise};
pub use shape::{Shape, Steadiness};
pub use stability::{
    DOWN_SHARE, LowSpell, SECOND_EVENTS_MIN, Stability, low_spells, stability, worst_of_seconds,
};
pub use stopping::{Stop, StoppingRule, time_for_precision};
pub use verdict::{Verdict, Verdicts};
pub use warmup::choose_cut;
