//! What each factor does: main effects as a forest, the same as a table, and interactions.

use iostrata_run::{StudyDocument, StudyEffect, StudyInteraction};
use iostrata_stats::Conclusion;
use maud::{Markup, html};

use super::header::is_measured;
use crate::chart::{Branch, Charts, GREY, forest, line_colour};
use crate::html::parts::{self, cell, number, table, text};
use crate::study::{factor_words, level_words};
use crate::words;

/// Effects and interactions; nothing when none was taken.
pub(crate) fn section(study: &StudyDocument, charts: &mut Charts) -> Option<Markup> {
    if study.effects.is_empty() && study.interactions.is_empty() {
        return None;
    }
    Some(html! {
        @if !study.effects.is_empty() {
            p.say {
                "Each ratio compares points that are equal in every other factor, replicate by "
                "replicate. Whiskers are 95 % intervals, the broad band is the range over single "
                "pairs of points. Grey: no measurable difference."
            }
            (branches(study, charts))
            details data-print { summary { "Effects as a table" } (effects(&study.effects)) }
        }
        @if !study.interactions.is_empty() {
            h3 { "Where one factor depends on another" }
            (interactions(&study.interactions))
        }
    })
}

fn branches(study: &StudyDocument, charts: &mut Charts) -> Markup {
    let rows: Vec<Branch> = study.effects.iter().map(|effect| branch(study, effect)).collect();
    let chart = forest("effects", "ratio of IOPS, second level over first", &rows);
    parts::figure(charts, &chart, "", "")
}

fn branch(study: &StudyDocument, effect: &StudyEffect) -> Branch {
    let factor = study.factors.iter().position(|factor| factor.factor == effect.factor);
    let is_measured = is_measured(effect.conclusion);
    let finite = effect.ratio_min > 0.0 && effect.ratio_max.is_finite();
    Branch {
        title: title(effect),
        ratio: effect.ratio,
        ci95: effect.ratio_ci95,
        range: finite.then_some([effect.ratio_min, effect.ratio_max]),
        colour: if is_measured { line_colour(factor.unwrap_or(0)) } else { GREY },
        hover: hover(effect),
    }
}

fn title(effect: &StudyEffect) -> String {
    format!(
        "{}: {} \u{2192} {}",
        factor_words(&effect.factor),
        level_words(&effect.factor, &effect.from),
        level_words(&effect.factor, &effect.to)
    )
}

fn hover(effect: &StudyEffect) -> String {
    let mut lines = vec![
        crate::chart::plain(&title(effect)),
        format!("<b>{}</b>  ({})", words::times(effect.ratio), words::exact(effect.ratio)),
        match effect.ratio_ci95 {
            Some(ci95) => format!("95 %: {}", words::times_range(ci95)),
            None => "no interval".to_owned(),
        },
        format!("n = {}", effect.ratio_n),
        format!(
            "single pairs: {} to {}",
            words::times(effect.ratio_min),
            words::times(effect.ratio_max)
        ),
        conclusion(effect.conclusion).to_owned(),
    ];
    if !effect.verdicts.is_sound() {
        lines.push(words::verdicts(&effect.verdicts));
    }
    lines.join("<br>")
}

/// What follows from a comparison, in words.
pub(super) fn conclusion(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Higher => "more",
        Conclusion::Lower => "less",
        Conclusion::NoMeasurableDifference => "no measurable difference",
        Conclusion::TooFewPairs => "too few pairs",
    }
}

fn effects(all: &[StudyEffect]) -> Markup {
    let columns = [
        text("Factor"),
        number("Ratio"),
        number("95 % interval"),
        number("Pairs"),
        number("Single pairs"),
        text("What it says"),
        text("Cautions"),
    ];
    let row = |effect: &StudyEffect| {
        vec![
            cell(title(effect)),
            html! { b { (words::times(effect.ratio)) } },
            ratio_interval(effect.ratio_ci95),
            cell(effect.ratio_n.to_string()),
            cell(words::times_range([effect.ratio_min, effect.ratio_max])),
            html! { span.muted[!is_measured(effect.conclusion)] { (effect.text) } },
            parts::verdicts(&effect.verdicts),
        ]
    };
    table(&columns, all.iter().map(row).collect())
}

fn ratio_interval(ci95: Option<iostrata_stats::Interval>) -> Markup {
    cell(ci95.map_or("none".to_owned(), words::times_range))
}

fn interactions(all: &[StudyInteraction]) -> Markup {
    let columns = [
        text("Effect"),
        text("Depends on"),
        number("Ratio of the effects"),
        number("95 % interval"),
        number("n"),
        text("What it says"),
    ];
    let row = |one: &StudyInteraction| {
        let words_of = |level: &str| level_words(&one.factor, level);
        let by = |level: &str| level_words(&one.by, level);
        vec![
            cell(format!("{} \u{2192} {}", words_of(&one.from), words_of(&one.to))),
            cell(format!("{} \u{2192} {}", by(&one.by_from), by(&one.by_to))),
            html! { b { (words::times(one.ratio)) } },
            ratio_interval(one.ratio_ci95),
            cell(one.ratio_n.to_string()),
            html! { span { (one.text) @if !is_measured(one.conclusion) {
                " " span.muted { "(" (conclusion(one.conclusion)) ")" }
            } } },
        ]
    };
    table(&columns, all.iter().map(row).collect())
}
