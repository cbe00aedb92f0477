//! Findings of recordings, and the figures behind them.
//!
//! Invariant: an estimated figure comes with its interval and the number of samples behind it.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_run::{Finding, FindingKind};
use iostrata_stats::Measured;
use serde_json::{Value, json};

use super::recording::RedoPressure;

/// Figures by name, with their unit in the name.
#[derive(Default)]
pub(super) struct Evidence(BTreeMap<String, Value>);

impl Evidence {
    /// A count, a setting or another figure that is no estimate.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// An estimate.
    pub fn measured(self, name: &str, measured: &Measured) -> Self {
        self.with(name, measured.value)
            .with(&format!("{name}_ci95"), json!(measured.ci95))
            .with(&format!("{name}_n"), measured.n)
    }

    /// What speaks for redo space that ran out.
    pub fn pressure(self, pressure: &RedoPressure) -> Self {
        self.with("redo_stalls", pressure.stalls)
            .with("redo_stalled_s", pressure.stalled_s)
            .with("furious_flushes", pressure.furious_flushes)
            .with("checkpoint_age_pct_p95", json!(pressure.age_pct_p95))
    }
}

/// A finding; `n` samples are behind it.
pub(super) fn finding(
    id: &str,
    kind: FindingKind,
    layer: Layer,
    text: String,
    (n, Evidence(evidence)): (u64, Evidence),
) -> Finding {
    Finding {
        id: id.to_owned(),
        kind,
        text,
        layer,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: n,
        evidence,
    }
}

/// `3 stalls for want of redo space (12 s)`, or what else speaks for it.
pub(super) fn pressure_words(pressure: &RedoPressure) -> String {
    let RedoPressure { stalls, stalled_s, furious_flushes, age_pct_p95 } = pressure;
    if *stalls > 0 {
        let seconds = iostrata_stats::units::seconds(*stalled_s);
        return format!("it stalled {} for want of redo space ({seconds})", times(*stalls));
    }
    if *furious_flushes > 0 {
        return format!("pages were written at any price {}", times(*furious_flushes));
    }
    let age = age_pct_p95.unwrap_or_default();
    format!("the checkpoint age reached {} of its limit", iostrata_stats::units::percent(age))
}

fn times(count: u64) -> String {
    iostrata_stats::units::times(count)
}
