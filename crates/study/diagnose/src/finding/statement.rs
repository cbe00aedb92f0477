//! How a finding is put together.
//!
//! Invariant: only losses carry an effect; sizing facts and cautions have none, so that a reader
//! who sorts by effect sees what can be won back and nothing else.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_run::{Finding, FindingKind};
use iostrata_stats::Interval;
use serde_json::Value;

use super::FindingId;

/// The size of a loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    /// In percent.
    pub pct: f64,
    /// 95 % interval.
    pub ci95: Option<Interval>,
    /// Pairs behind it.
    pub n: u64,
}

/// A loss with its effect.
pub(crate) fn loss(id: FindingId, layer: Layer, effect: Effect, text: String) -> Finding {
    Finding {
        effect_pct: Some(effect.pct),
        effect_pct_ci95: effect.ci95,
        effect_pct_n: effect.n,
        ..bare(id, FindingKind::Loss, layer, text)
    }
}

/// A loss that is certain and whose size was not measured, seen in `n` replicates.
pub(crate) fn loss_of_unknown_size(id: FindingId, layer: Layer, n: u64, text: String) -> Finding {
    Finding { effect_pct_n: n, ..bare(id, FindingKind::Loss, layer, text) }
}

/// A fact that a setting has to match, from `n` replicates.
pub(crate) fn sizing(id: FindingId, layer: Layer, n: u64, text: String) -> Finding {
    Finding { effect_pct_n: n, ..bare(id, FindingKind::Sizing, layer, text) }
}

/// Something that makes the figures less certain, seen in `n` replicates.
pub(crate) fn caution(id: FindingId, layer: Layer, n: u64, text: String) -> Finding {
    Finding { effect_pct_n: n, ..bare(id, FindingKind::Caution, layer, text) }
}

fn bare(id: FindingId, kind: FindingKind, layer: Layer, text: String) -> Finding {
    Finding {
        id: id.name().to_owned(),
        kind,
        text,
        layer,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: 0,
        evidence: BTreeMap::new(),
    }
}

/// Adds figures to a finding by name.
pub(crate) trait WithEvidence {
    /// The finding with these figures beside it; absent ones are left out.
    fn with<V: Into<Value>>(self, name: &str, value: V) -> Self;
    /// The same for a figure that may be missing.
    fn with_some<V: Into<Value>>(self, name: &str, value: Option<V>) -> Self;
}

impl WithEvidence for Finding {
    fn with<V: Into<Value>>(mut self, name: &str, value: V) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    fn with_some<V: Into<Value>>(self, name: &str, value: Option<V>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}
