//! How a finding is put together.
//!
//! Invariant: a statement has neither name nor kind of its own: the row of its rule gives them.
//! Only losses carry an effect; sizing facts and cautions have none, so that a reader who sorts by
//! effect sees what can be won back and nothing else.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_run::{Advice, Finding, FindingKind};
use iostrata_stats::Measured;
use serde_json::{Value, json};

/// What a rule found, before its row gives it a name and a kind.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    layer: Layer,
    text: String,
    n: u64,
    effect: Option<Measured>,
    kind: Option<FindingKind>,
    evidence: BTreeMap<String, Value>,
    /// What is to be set, where something is.
    pub advice: Vec<Advice>,
}

impl Statement {
    /// PointLog in so many replicates, samples or pairs; its size was not measured, or it has none.
    pub fn new(layer: Layer, n: u64, text: String) -> Self {
        let (evidence, advice) = (BTreeMap::new(), Vec::new());
        Self { layer, text, n, effect: None, kind: None, evidence, advice }
    }

    /// One whose size was measured, in percent.
    pub fn sized(layer: Layer, effect_pct: &Measured, text: String) -> Self {
        Self { effect: Some(effect_pct.clone()), ..Self::new(layer, effect_pct.n, text) }
    }

    /// Of another kind than its rule's findings mostly are.
    pub fn of_kind(self, kind: FindingKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// With what is to be set.
    pub fn advising(self, advice: impl IntoIterator<Item = Advice>) -> Self {
        Self { advice: advice.into_iter().collect(), ..self }
    }

    /// With a further figure: a count, a setting, anything that is no estimate.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    /// The same for a figure that is left out where it is missing.
    pub fn with_some<V: Into<Value>>(self, name: &str, value: Option<V>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With several figures.
    pub fn with_all(mut self, figures: impl IntoIterator<Item = (String, Value)>) -> Self {
        self.evidence.extend(figures);
        self
    }

    /// With an estimate, its interval and the number of samples behind it, where it is there.
    pub fn measured<'m>(self, name: &str, measured: impl Into<Option<&'m Measured>>) -> Self {
        let Some(measured) = measured.into() else { return self };
        self.with(name, measured.value)
            .with(&format!("{name}_ci95"), json!(measured.ci95))
            .with(&format!("{name}_n"), measured.n)
    }

    /// Its size in percent.
    pub fn effect_pct(&self) -> Option<f64> {
        self.effect.as_ref().map(|effect| effect.value)
    }

    /// The finding of a rule.
    pub fn named(self, id: &str, kind: FindingKind) -> Finding {
        Finding {
            effect_pct: self.effect_pct(),
            id: id.to_owned(),
            kind: self.kind.unwrap_or(kind),
            text: self.text,
            layer: self.layer,
            effect_pct_ci95: self.effect.and_then(|effect| effect.ci95),
            effect_pct_n: self.n,
            evidence: self.evidence,
        }
    }
}
