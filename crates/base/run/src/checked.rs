//! The border to every view: a figure that is impossible or meaningless is not shown as measured.
//!
//! Purpose: one check between what was measured and what anyone reads, whatever the form.
//! Invariants: a document is checked when it is made and when it is read back, before it reaches
//! the terminal, Markdown, HTML or JSON. Figures that cannot be are taken out and named, with the
//! sentences that quote them; figures whose interval is wider than they are stay, are named, and
//! views write `unknown` instead.

use iostrata_stats::Interval;

use crate::document::{Curve, CurvePoint, FindingKind, IoDocument, ProbeDocument, Rung};
use crate::reader::RunResult;
use crate::study_document::StudyDocument;
use crate::transaction_document::TransactionDocument;
use crate::unknown::{Refusal, Unknown, refusal, share_refusal};

/// What a figure is called, and its unit.
struct FigureName<'a> {
    name: &'a str,
    title: &'a str,
    unit: &'a str,
}

fn is_named(unknown: &[Unknown], name: &str) -> bool {
    unknown.iter().any(|one| one.name == name)
}

/// Names a figure that is refused, once, and returns whether it may stay.
fn stays(
    unknown: &mut Vec<Unknown>,
    FigureName { name, title, unit }: FigureName<'_>,
    refused: Option<Refusal>,
    ci95: Option<Interval>,
) -> bool {
    let Some(why) = refused else { return true };
    if !is_named(unknown, name) {
        unknown.push(Unknown::of(name, title, why, ci95, unit));
    }
    !why.is_impossible()
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

    /// Makes the document one that views may show.
    pub fn check(&mut self) {
        let unknown = &mut self.unknown;
        self.rungs.retain(|rung| {
            let named = FigureName { name: &rung.name, title: &rung.title, unit: &rung.unit };
            stays(unknown, named, refusal(rung.value, rung.value_ci95), rung.value_ci95)
        });
        self.curves.iter_mut().for_each(|curve| curve.check(unknown));
        self.curves.retain(|curve| curve.points.len() > 1);
        self.losses.retain(|loss| {
            let name = format!("loss from {} to {}", loss.from, loss.to);
            let named = FigureName { name: &name, title: &name, unit: "percent" };
            stays(unknown, named, share_refusal(loss.loss_pct, loss.loss_pct_ci95), None)
        });
        self.verifications.retain(|one| {
            let mut may_stay = |when: &str, value, ci95| {
                let name = format!("{} {when}", one.setting);
                let named = FigureName { name: &name, title: &name, unit: &one.unit };
                stays(unknown, named, refusal(value, ci95), ci95)
            };
            let before = may_stay("before", one.before, one.before_ci95);
            may_stay("after", one.after, one.after_ci95) && before
        });
        self.check_findings();
    }

    /// Takes out losses that cannot be, and advice that rests on nothing else.
    fn check_findings(&mut self) {
        let mut gone = Vec::new();
        self.findings.retain(|finding| {
            let effect = finding.effect_pct.filter(|_| finding.kind == FindingKind::Loss);
            let refused = effect.and_then(|pct| share_refusal(pct, finding.effect_pct_ci95));
            let title = format!("the effect of {}", finding.id);
            let named = FigureName { name: &finding.id, title: &title, unit: "percent" };
            let may_stay = stays(&mut self.unknown, named, refused, None);
            if !may_stay {
                gone.push(finding.id.clone());
            }
            may_stay
        });
        self.advice.retain_mut(|advice| {
            let had_reasons = !advice.why.is_empty();
            advice.why.retain(|id| !gone.contains(id));
            !had_reasons || !advice.why.is_empty()
        });
    }
}

impl Curve {
    /// Keeps the points that are known: a chart has no place for others.
    fn check(&mut self, unknown: &mut Vec<Unknown>) {
        let x_of = |point: Option<&CurvePoint>| point.map(|point| point.x);
        let knee = x_of(self.points.iter().find(|point| Some(point.x) == self.knee_x));
        let quoted = [x_of(self.points.first()), x_of(self.points.last()), knee];
        let Self { name, title, axis, unit, points, knee_x, text } = self;
        points.retain(|point| {
            let refused = refusal(point.value, point.value_ci95);
            if !is_named(unknown, &point.rung) {
                let name = format!("{name} at {}", point.x);
                let title = format!("{title}, at {axis} {}", point.x);
                let named = FigureName { name: &name, title: &title, unit };
                stays(unknown, named, refused, point.value_ci95);
            }
            refused.is_none()
        });
        let is_gone = |x: &f64| points.iter().all(|point| point.x != *x);
        *knee_x = knee_x.filter(|_| !knee.as_ref().is_some_and(is_gone));
        if quoted.iter().flatten().any(is_gone) {
            *text = "Not all of its points are known.".to_owned();
        }
    }
}

impl StudyDocument {
    /// Makes the document one that views may show.
    pub fn check(&mut self) {
        self.points.retain(|point| {
            let named = FigureName { name: &point.id, title: &point.title, unit: &point.unit };
            let refused = refusal(point.value, point.value_ci95);
            stays(&mut self.unknown, named, refused, point.value_ci95)
        });
    }
}

impl IoDocument {
    /// Makes the document one that views may show. Counts stay: that nothing completed is a fact,
    /// that the rate is 0 is not.
    pub fn check(&mut self) {
        for (kind, op) in self.ops.iter_mut() {
            let named = FigureName { name: kind.name(), title: kind.name(), unit: "/s" };
            let refused = refusal(op.iops, op.iops_ci95);
            if !stays(&mut self.unknown, named, refused, op.iops_ci95) {
                (op.iops_ci95, op.latency_us_mean_ci95) = (None, None);
            }
        }
    }
}

impl TransactionDocument {
    /// Makes the document one that views may show. Counts stay, as those of requests do.
    pub fn check(&mut self) {
        let named = FigureName { name: "tps", title: "transactions", unit: "/s" };
        if !stays(&mut self.unknown, named, refusal(self.tps, self.tps_ci95), self.tps_ci95) {
            (self.tps_ci95, self.nopm, self.stability) = (None, None, None);
            self.drift = None;
            if let Some(insert) = &mut self.insert {
                (insert.rows_per_s, insert.rows_per_s_ci95) = (None, None);
            }
        }
        self.levels.retain(|level| {
            let mut name = format!("level_{}", level.threads);
            let mut title = format!("transactions at {} threads", level.threads);
            if let Some(rate) = level.rate_per_s {
                name.push_str(&format!("_at_{rate:.0}"));
                title.push_str(&format!(" and {rate:.0} arrivals/s"));
            }
            let named = FigureName { name: &name, title: &title, unit: "/s" };
            stays(&mut self.unknown, named, refusal(level.tps, level.tps_ci95), level.tps_ci95)
        });
    }
}

impl RunResult {
    /// Makes the result one that views may show.
    pub fn check(&mut self) {
        match self {
            Self::Probe(document) => document.check(),
            Self::Io(document) => document.check(),
            Self::Study(document) => document.check(),
            Self::Fio(document) => {
                let jobs = document.waves.iter_mut().flat_map(|wave| &mut wave.jobs);
                jobs.for_each(|job| job.figures.check());
            }
            Self::Transactions(document) => document.check(),
            // Virtual time has no noise and no window in which nothing happened; rows are counted.
            Self::SimulateQueue(_) | Self::SimulateFlush(_) | Self::Prepare(_) => {}
            // Watched figures are the target's own, moment by moment.
            Self::Watch(_) => {}
        }
    }
}
