//! The border to every view: a figure that cannot be, or that says nothing, is not shown as
//! measured.
//!
//! Purpose: one check between what was measured and what anyone reads, whatever the form.
//! Invariants: a document is checked when it is made and when it is read back, before it reaches
//! the terminal, Markdown, HTML or JSON. Figures that cannot be are taken out and named; figures
//! whose interval is wider than they are stay, are named, and views write `unknown` instead.

use crate::document::{FindingKind, IoDocument, ProbeDocument, Rung};
use crate::reader::RunResult;
use crate::study_document::StudyDocument;
use crate::unknown::{Unknown, refusal, share_refusal};

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
                add(Unknown::of(&rung.name, &rung.title, why, between, &rung.unit));
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
                add(Unknown::of(&format!("loss of {}", loss.to), &loss.text, why, None, "percent"));
            }
        }
        self.losses.retain(|loss| share_refusal(loss.loss_pct, loss.loss_pct_ci95).is_none());
        for finding in &mut self.findings {
            let effect = finding.effect_pct.filter(|_| finding.kind == FindingKind::Loss);
            let Some(pct) = effect else { continue };
            if let Some(why) = share_refusal(pct, finding.effect_pct_ci95) {
                add(Unknown::of(&finding.id, &finding.text, why, None, "percent"));
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
    /// The document as views may show it.
    #[must_use]
    pub fn checked(mut self) -> Self {
        for point in &self.points {
            let known = self.unknown.iter().any(|one| one.name == point.id);
            if let Some(why) = refusal(point.value, point.value_ci95).filter(|_| !known) {
                let between = point.value_ci95;
                self.unknown.push(Unknown::of(&point.id, &point.title, why, between, &point.unit));
            }
        }
        self.points.retain(|point| {
            refusal(point.value, point.value_ci95).is_none_or(|why| !why.is_impossible())
        });
        self
    }
}

impl IoDocument {
    /// The document as views may show it. Counts stay: that nothing completed is a fact, that the
    /// rate is 0 is not.
    #[must_use]
    pub fn checked(mut self) -> Self {
        for (kind, op) in self.ops.iter_mut() {
            let name = kind.name();
            let Some(why) = refusal(op.iops, op.iops_ci95) else { continue };
            if self.unknown.iter().all(|one| one.name != name) {
                self.unknown.push(Unknown::of(name, name, why, op.iops_ci95, "/s"));
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
