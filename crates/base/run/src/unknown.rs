//! The border to every view: a figure that cannot be, or that says nothing, is not shown as
//! measured.
//!
//! Purpose: one check between what was measured and what anyone reads, whatever the form.
//! Invariants: a document is checked when it is made and when it is read back, before it reaches
//! the terminal, Markdown, HTML or JSON. Figures that cannot be are taken out and named; figures
//! whose interval is wider than they are stay, are named, and views write `unknown` instead.
//! It judges single figures. Whether a figure means what it seems to mean is said by its verdicts.

use iostrata_stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FindingKind, IoDocument, ProbeDocument, RunResult, Rung, StudyDocument};

/// Why a figure is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Not a number.
    NotFinite,
    /// No request completed in the measured window.
    NothingCompleted,
    /// A rate, time or cost below zero, by its value or its interval.
    BelowZero,
    /// The value lies outside its own interval.
    OutsideInterval,
    /// The 95 % interval is wider than the value.
    WiderThanValue,
    /// A share of less than nothing or of more than the whole.
    BeyondWhole,
}

impl Refusal {
    /// The reason in a few words, to stand behind `unknown:`.
    pub fn explain(self) -> &'static str {
        match self {
            Self::NotFinite => "no number came out",
            Self::NothingCompleted => "no request completed",
            Self::BelowZero => "it cannot be below zero",
            Self::OutsideInterval => "it lies outside its interval",
            Self::WiderThanValue => "its interval is wider than its value",
            Self::BeyondWhole => "it is no share of a whole",
        }
    }

    /// Whether the figure may not be kept at all.
    fn is_impossible(self) -> bool {
        self != Self::WiderThanValue
    }
}

/// A figure that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// The rung, point, operation or finding.
    pub name: String,
    /// One line for a reader.
    pub title: String,
    /// Why.
    pub why: Refusal,
    /// What it lies between with 95 %, where that is known.
    pub between: Option<Interval>,
    /// The unit of both ends.
    pub unit: String,
}

/// Why a rate, a time or a cost is not known; `None` when it is.
pub fn refusal(value: f64, ci95: Option<Interval>) -> Option<Refusal> {
    let ends = ci95.unwrap_or([value; 2]);
    if !value.is_finite() || ends.iter().any(|end| !end.is_finite()) {
        return Some(Refusal::NotFinite);
    }
    let [low, high] = ends;
    match () {
        () if value == 0.0 => Some(Refusal::NothingCompleted),
        () if value < 0.0 || low < 0.0 => Some(Refusal::BelowZero),
        () if value < low || value > high => Some(Refusal::OutsideInterval),
        () if high - low > value => Some(Refusal::WiderThanValue),
        () => None,
    }
}

/// Why a loss in percent is not known: it is a share of what there was.
pub fn share_refusal(pct: f64, ci95: Option<Interval>) -> Option<Refusal> {
    let ends = ci95.unwrap_or([pct; 2]);
    let all = [pct, ends[0], ends[1]];
    match () {
        () if !all.iter().all(|one| one.is_finite()) => Some(Refusal::NotFinite),
        () if !(0.0..=100.0).contains(&pct) || ends[1] > 100.0 => Some(Refusal::BeyondWhole),
        () if pct < ends[0] || pct > ends[1] => Some(Refusal::OutsideInterval),
        () => None,
    }
}

impl ProbeDocument {
    /// What is not known about a rung; `None` when its figure stands, or was never measured.
    pub fn unknown_of(&self, name: &str) -> Option<&Unknown> {
        self.unknown.iter().find(|one| one.name == name)
    }

    /// A rung whose figure is known.
    pub fn known(&self, name: &str) -> Option<&Rung> {
        let rung = self.rungs.iter().find(|rung| rung.name == name)?;
        self.unknown_of(name).is_none().then_some(rung)
    }

    /// The document as views may show it.
    #[must_use]
    pub fn checked(mut self) -> Self {
        let mut unknown = std::mem::take(&mut self.unknown);
        let mut add = |one: Unknown| {
            if unknown.iter().all(|known| known.name != one.name) {
                unknown.push(one);
            }
        };
        for rung in &self.rungs {
            if let Some(why) = refusal(rung.value, rung.value_ci95) {
                let between = rung.value_ci95;
                add(named(&rung.name, &rung.title, why, between, &rung.unit));
            }
        }
        let impossible = |value, ci95| refusal(value, ci95).is_some_and(|why| why.is_impossible());
        self.rungs.retain(|rung| !impossible(rung.value, rung.value_ci95));
        for curve in &mut self.curves {
            curve.points.retain(|point| refusal(point.value, point.value_ci95).is_none());
        }
        self.curves.retain(|curve| curve.points.len() > 1);
        for loss in &self.losses {
            if let Some(why) = share_refusal(loss.loss_pct, loss.loss_pct_ci95) {
                add(named(&format!("loss of {}", loss.to), &loss.text, why, None, "percent"));
            }
        }
        self.losses.retain(|loss| share_refusal(loss.loss_pct, loss.loss_pct_ci95).is_none());
        for finding in &mut self.findings {
            let effect = finding.effect_pct.filter(|_| finding.kind == FindingKind::Loss);
            let Some(pct) = effect else { continue };
            if let Some(why) = share_refusal(pct, finding.effect_pct_ci95) {
                add(named(&finding.id, &finding.text, why, None, "percent"));
                (finding.effect_pct, finding.effect_pct_ci95) = (None, None);
            }
        }
        self.verifications.retain(|one| {
            !impossible(one.before, one.before_ci95) && !impossible(one.after, one.after_ci95)
        });
        self.unknown = unknown;
        self
    }
}

impl StudyDocument {
    /// What is not known about a point.
    pub fn unknown_of(&self, id: &str) -> Option<&Unknown> {
        self.unknown.iter().find(|one| one.name == id)
    }

    /// The document as views may show it.
    #[must_use]
    pub fn checked(mut self) -> Self {
        for point in &self.points {
            let known = self.unknown.iter().any(|one| one.name == point.id);
            if let Some(why) = refusal(point.value, point.value_ci95).filter(|_| !known) {
                let between = point.value_ci95;
                self.unknown.push(named(&point.id, &point.title, why, between, &point.unit));
            }
        }
        self.points.retain(|point| {
            refusal(point.value, point.value_ci95).is_none_or(|why| !why.is_impossible())
        });
        self
    }
}

impl IoDocument {
    /// What is not known about a kind of operation, by its name.
    pub fn unknown_of(&self, op: &str) -> Option<&Unknown> {
        self.unknown.iter().find(|one| one.name == op)
    }

    /// The document as views may show it. Counts stay: that nothing completed is a fact, that the
    /// rate is 0 is not.
    #[must_use]
    pub fn checked(mut self) -> Self {
        for (kind, op) in self.ops.iter_mut() {
            let name = kind.name();
            let Some(why) = refusal(op.iops, op.iops_ci95) else { continue };
            if self.unknown.iter().all(|one| one.name != name) {
                self.unknown.push(named(name, name, why, op.iops_ci95, "/s"));
            }
            if why.is_impossible() {
                (op.iops_ci95, op.latency_us_mean_ci95) = (None, None);
            }
        }
        self
    }
}

impl RunResult {
    /// The result as views may show it.
    #[must_use]
    pub fn checked(self) -> Self {
        match self {
            Self::Probe(document) => Self::Probe(Box::new(document.checked())),
            Self::Io(document) => Self::Io(Box::new(document.checked())),
            Self::Study(document) => Self::Study(Box::new(document.checked())),
            Self::Fio(mut document) => {
                for job in document.waves.iter_mut().flat_map(|wave| &mut wave.jobs) {
                    job.figures = job.figures.clone().checked();
                }
                Self::Fio(document)
            }
            // Virtual time has no noise and no window in which nothing happened.
            Self::SimulateQueue(document) => Self::SimulateQueue(document),
        }
    }
}

fn named(name: &str, title: &str, why: Refusal, between: Option<Interval>, unit: &str) -> Unknown {
    let between = between.filter(|_| why == Refusal::WiderThanValue);
    let (name, title, unit) = (name.to_owned(), title.to_owned(), unit.to_owned());
    Unknown { name, title, why, between, unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_has_a_reason() {
        for (value, ci95, expected) in [
            (100.0, Some([90.0, 110.0]), None),
            (100.0, None, None),
            (0.0, Some([0.0, 0.0]), Some(Refusal::NothingCompleted)),
            (f64::NAN, None, Some(Refusal::NotFinite)),
            (5.0, Some([1.0, f64::INFINITY]), Some(Refusal::NotFinite)),
            (993.0, Some([-1511.0, 3497.0]), Some(Refusal::BelowZero)),
            (-3.0, None, Some(Refusal::BelowZero)),
            (5.0, Some([6.0, 7.0]), Some(Refusal::OutsideInterval)),
            (100.0, Some([40.0, 160.0]), Some(Refusal::WiderThanValue)),
        ] {
            assert_eq!(refusal(value, ci95), expected, "{value} {ci95:?}");
        }
    }

    #[test]
    fn a_loss_is_a_share() {
        assert_eq!(share_refusal(62.0, Some([55.0, 68.0])), None);
        assert_eq!(share_refusal(15_898.0, None), Some(Refusal::BeyondWhole));
        assert_eq!(share_refusal(-4.0, None), Some(Refusal::BeyondWhole));
        assert_eq!(share_refusal(80.0, Some([70.0, 141.0])), Some(Refusal::BeyondWhole));
    }
}
