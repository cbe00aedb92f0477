//! The top of a study's page: the answer, what matters most, how sure it is.

use iostrata_run::{AxisKind, StudyDocument, StudyEffect};
use iostrata_spec::study::Extent;
use iostrata_stats::{Conclusion, Verdict};
use maud::{Markup, html};

use crate::html::summary::counted;
use crate::study::{is_workload, level_words};
use crate::words;

/// Verdict sentences and a strip of three.
pub(crate) fn header(study: &StudyDocument) -> Markup {
    let mut sentences = study.headline.iter();
    html! {
        h1 { (sentences.next().unwrap_or(&study.title)) }
        @for sentence in sentences { p.lead { (sentence) } }
        p.note.question {
            @if !study.headline.is_empty() { b { (study.title) ". " } }
            (study.question)
        }
        div.strip { (largest(study)) (along(study)) (how_sure(study)) }
    }
}

fn largest(study: &StudyDocument) -> Markup {
    let size = |effect: &StudyEffect| effect.ratio.ln().abs();
    let measured = study.effects.iter().filter(|effect| is_measured(effect.conclusion));
    // What is asked of the system matters of course; what the system does with it is the question.
    let most = measured.max_by(|a, b| {
        let system = |effect: &StudyEffect| !is_workload(&effect.factor);
        system(a).cmp(&system(b)).then(size(a).total_cmp(&size(b)))
    });
    html! {
        div {
            h2 { "What matters most" }
            @match most {
                Some(effect) => {
                    p.big { (words::times(effect.ratio)) }
                    p {
                        (level_words(&effect.factor, &effect.from)) " \u{2192} "
                        (level_words(&effect.factor, &effect.to))
                        @if let Some(ci95) = effect.ratio_ci95 {
                            ", 95 % " (words::times_range(ci95))
                        }
                        ", n = " (effect.ratio_n) ". "
                        a href="#effects" { "All effects" }
                    }
                }
                None if study.effects.is_empty() => {
                    p.big { "No effect was taken" }
                    p { "No two points differ in one factor only, or too few were measured." }
                }
                None => {
                    p.big { "No measurable difference" }
                    p {
                        "No factor makes one, all else equal. How large one could still be is "
                        "said beside " a href="#effects" { "each effect" } "."
                    }
                }
            }
        }
    }
}

/// Whether a comparison found a difference.
pub(super) fn is_measured(conclusion: Conclusion) -> bool {
    matches!(conclusion, Conclusion::Higher | Conclusion::Lower)
}

fn along(study: &StudyDocument) -> Markup {
    const KINDS: [AxisKind; 6] = [
        AxisKind::Collapse,
        AxisKind::NoMeasurableDifference,
        AxisKind::Flat,
        AxisKind::Saturating,
        AxisKind::Scaling,
        AxisKind::NotClear,
    ];
    // What becomes of larger requests is no question of scaling.
    let all = study.axes.iter().filter(|axis| !is_workload(&axis.factor));
    let kinds_of: Vec<AxisKind> = all.map(|axis| axis.kind).collect();
    let count = |kind: AxisKind| kinds_of.iter().filter(|one| **one == kind).count();
    let mut kinds = KINDS.into_iter().map(|kind| (count(kind), kind)).filter(|(n, _)| *n > 0);
    html! {
        div {
            h2 { "Along the axes" }
            @match kinds.next() {
                None => {
                    p.big { "No axis" }
                    p { "No factor has several numbers as levels, all else equal." }
                }
                Some((n, kind)) => {
                    p.big { (n) " of " (counted(kinds_of.len(), "curve")) ": " (words::axis_kind(kind)) }
                    p {
                        @for (n, kind) in kinds { (words::axis_kind(kind)) ": " (n) ". " }
                        a href="#axes" { "All curves" }
                    }
                }
            }
        }
    }
}

fn how_sure(study: &StudyDocument) -> Markup {
    let doubtful = study.points.iter().filter(|point| !point.verdicts.is_sound()).count();
    let replicates: u32 = study.points.iter().map(|point| point.replicates).sum();
    let precision = words::value(study.precision * 100.0, "percent");
    let extent = match study.extent {
        Extent::Quick => "quick",
        Extent::Full => "full",
    };
    html! {
        div {
            h2 { "How sure" }
            @if study.interrupted {
                p.big.warn { "Stopped before its end" }
            } @else {
                p.big { (words::value(study.precise_pct, "percent")) " within \u{b1} " (precision) }
            }
            p {
                (counted(study.points.len(), "point")) ", "
                (counted(replicates as usize, "replicate")) ", " (extent) ", "
                @if doubtful > 0 { (doubtful) " with a caution of their own, " }
                (words::value(study.duration_s, "s")) " instead of "
                (words::value(study.fixed_minute_s, "s")) " at a fixed minute each, "
                (words::value(study.bytes_written as f64, "bytes")) " written. Intervals are 95 %."
            }
            @if !study.verdicts.is_sound() {
                p.warn {
                    "Of most points: "
                    (study.verdicts.iter().map(Verdict::explain).collect::<Vec<_>>().join("; ")) "."
                }
            }
        }
    }
}
