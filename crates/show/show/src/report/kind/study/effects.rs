//! What each factor does: the contrasts behind the answers, main effects, interactions; and what
//! becomes of throughput along each axis.

use iostrata_run::{
    AxisKind, StudyAnswer, StudyAxis, StudyDocument, StudyEffect, StudyInteraction,
};
use iostrata_stats::{Conclusion, KNOWN_PCT_MAX, allowed_pct};

use super::levels::{
    axis_words, factor_words, is_workload, level_at, level_beside, level_words, listed,
};
use crate::report::cell::{
    Cell, Span, Text, Tone, count, empty, interval, optional, ranged, ratio, ratio_interval, text,
    verdicts,
};
use crate::report::chart::{Branch, Chart, Course, Line, Lines, Mark, Plot, Scale, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Table};
use crate::report::words;

/// The contrasts behind the answers; nothing where the study's text requests none.
pub(super) fn answers(study: &StudyDocument) -> Option<Blocks> {
    let ids = |points: &[String]| -> Cell {
        let one = |id: &String| [Span::Code(id.clone()), Span::Plain(" ".to_owned())];
        text(Text(points.iter().flat_map(one).collect()))
    };
    let is_contrast = |one: &&StudyAnswer| one.ratio.is_some() || one.difference.is_some();
    let mut table = Table::of(study.answers.iter().filter(is_contrast))
        .words("Question", |answer| text(&answer.asks).tip(&answer.text));
    if study.answers.iter().any(|answer| answer.ratio.is_some()) {
        table = table.numbers("Ratio", |answer| answer.ratio.map_or_else(empty, ratio));
    }
    if study.answers.iter().any(|answer| answer.difference.is_some()) {
        table = table.numbers("Difference", |answer| {
            optional(answer.difference.as_ref().map(|apart| apart.value), "")
        });
    }
    let table = table
        .numbers("95 % interval", |answer| match (&answer.difference, answer.ratio) {
            (Some(apart), _) => interval(apart.value, apart.ci95, ""),
            (None, Some(times)) => ratio_interval(times, answer.ratio_ci95),
            (None, None) => empty(),
        })
        .numbers("Pairs", |answer| {
            count(answer.difference.as_ref().map_or(answer.ratio_n, |apart| apart.n))
        })
        .words("Points above the line", |answer| ids(&answer.of))
        .words("Points below it", |answer| ids(&answer.over))
        .words("Cautions", |answer| verdicts(&answer.verdicts));
    if table.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    body.say(
        "Each answer compares points that the study names beforehand, replicate by replicate. \
         Above and below the line stand the same work but for what is asked.",
    );
    body.folded(On::FILES, "The contrasts as a table", table);
    Some(body)
}

/// Effects and interactions; nothing when none was taken.
pub(super) fn section(study: &StudyDocument) -> Option<Blocks> {
    if study.effects.is_empty() && study.interactions.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    if !study.effects.is_empty() {
        body.say(
            "Each ratio compares points that are equal in every other factor, replicate by \
             replicate. Whiskers are 95 % intervals, the broad band is the range over single pairs \
             of points. Grey: no measurable difference, \
             one that depends on another factor, or replicates that differ too much to say.",
        );
        let rows = study.effects.iter().map(|effect| branch(study, effect)).collect();
        let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
        let plot = Plot::Ratios(format!("ratio of {unit}, second level over first"), rows);
        body.chart(Chart::new("effects", "", plot));
        body.folded(On::ALL, "Effects as a table", Block::Table(table(study)));
    }
    if !study.interactions.is_empty() {
        body.title(On::FILES, "Where one factor depends on another");
        body.table(On::FILES, interactions(&study.interactions));
    }
    Some(body)
}

fn branch(study: &StudyDocument, effect: &StudyEffect) -> Branch {
    let factor = study.factors.iter().position(|factor| factor.factor == effect.factor);
    let finite = effect.ratio_min > 0.0 && effect.ratio_max.is_finite();
    let colour = match is_told(effect) {
        true => Colour::Line(factor.unwrap_or(0)),
        false => Colour::Grey,
    };
    Branch {
        title: title(effect),
        ratio: effect.ratio,
        ci95: effect.ratio_ci95.filter(|_| !is_range(effect)),
        range: finite.then_some([effect.ratio_min, effect.ratio_max]),
        colour,
        hover: hover(study, effect),
    }
}

fn title(effect: &StudyEffect) -> String {
    let level = |level: &str| level_beside(&effect.factor, level);
    let factor = factor_words(&effect.factor);
    format!("{factor}: {} \u{2192} {}", level(&effect.from), level(&effect.to))
}

/// The factor that an effect without a ratio of its own depends on.
fn depends_on<'a>(study: &'a StudyDocument, effect: &StudyEffect) -> Option<&'a str> {
    let is_it = |factor: &str, from: &str, to: &str| {
        (factor, from, to) == (effect.factor.as_str(), effect.from.as_str(), effect.to.as_str())
    };
    let other = study.interactions.iter().find_map(|one| {
        let is_altered = is_it(&one.factor, &one.from, &one.to);
        let alters = is_it(&one.by, &one.by_from, &one.by_to);
        is_altered.then_some(one.by.as_str()).or_else(|| alters.then_some(one.factor.as_str()))
    });
    other.filter(|_| !effect.conclusion.is_difference())
}

fn conclusion(study: &StudyDocument, effect: &StudyEffect) -> String {
    match depends_on(study, effect) {
        Some(other) => format!("depends on {}", factor_words(other).to_lowercase()),
        None if is_range(effect) => single_points(effect),
        None if may_be_chance(effect) => {
            let compared = study.effects.len() + study.interactions.len();
            format!("may be chance, of {compared} comparisons")
        }
        None if is_undecided(effect) => "undecided".to_owned(),
        None => words::conclusion(effect.conclusion).to_owned(),
    }
}

/// Whether every point shows it, but by how much differs from one to the other.
pub(super) fn is_range(effect: &StudyEffect) -> bool {
    effect.is_everywhere && !effect.conclusion.is_difference()
}

/// `[0.14, 0.28] at single points`.
fn single_points(effect: &StudyEffect) -> String {
    let range = words::times_range([effect.ratio_min, effect.ratio_max], effect.ratio);
    format!("{range} at single points")
}

/// Whether it is known to be more, or to be less.
pub(super) fn is_told(effect: &StudyEffect) -> bool {
    effect.is_everywhere || effect.conclusion.is_difference()
}

/// Whether the replicates differ so much that any difference may hide among them.
pub(super) fn is_undecided(effect: &StudyEffect) -> bool {
    let allows = |ci95| allowed_pct(ci95) > KNOWN_PCT_MAX;
    effect.conclusion == Conclusion::NoMeasurableDifference && effect.ratio_ci95.is_some_and(allows)
}

/// Whether the interval alone shows a difference, but not among so many comparisons.
fn may_be_chance(effect: &StudyEffect) -> bool {
    let shows = effect.ratio_ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0);
    effect.conclusion == Conclusion::NoMeasurableDifference && shows
}

fn hover(study: &StudyDocument, effect: &StudyEffect) -> String {
    let mut lines = vec![
        title(effect),
        format!("{}  ({})", words::times(effect.ratio), words::exact(effect.ratio)),
        match effect.ratio_ci95 {
            Some(ci95) => format!("95 %: {}", words::times_range(ci95, effect.ratio)),
            None => "no interval".to_owned(),
        },
        format!("n = {}", effect.ratio_n),
        format!(
            "single pairs: {} to {}",
            words::times(effect.ratio_min),
            words::times(effect.ratio_max)
        ),
        conclusion(study, effect),
    ];
    if !effect.verdicts.is_sound() {
        lines.push(words::verdicts(&effect.verdicts));
    }
    lines.join("\n")
}

fn table(study: &StudyDocument) -> Table {
    let said = |one: &StudyEffect| text(conclusion(study, one));
    let pairs = |one: &StudyEffect| words::times_range([one.ratio_min, one.ratio_max], one.ratio);
    Table::of(&study.effects)
        .words("Factor", |one| text(title(one)))
        .numbers("Ratio", |one| ratio(one.ratio))
        .numbers("95 % interval", |one| match depends_on(study, one) {
            Some(_) => empty(),
            None if is_range(one) => empty(),
            None => ratio_interval(one.ratio, one.ratio_ci95),
        })
        .numbers("Pairs", |one| count(one.ratio_n))
        .numbers_on(On::FILES, "Single pairs", |one| text(pairs(one)))
        .words_on(On::FILES, "Conclusion", |one| said(one))
        .words_on(On::TERMINAL, "", |one| match one.conclusion.is_difference() {
            true => empty(),
            false => said(one),
        })
        .words_on(On::FILES, "What it says", |one| text(&one.text))
        .words("Cautions", |one| verdicts(&one.verdicts))
        .each(|one, row| {
            row.tone = if is_told(one) { Tone::Plain } else { Tone::Dim };
        })
        .into()
}

fn interactions(all: &[StudyInteraction]) -> Table {
    let step = |factor: &str, from: &str, to: &str| {
        text(format!("{} \u{2192} {}", level_words(factor, from), level_words(factor, to)))
    };
    Table::of(all)
        .words("Effect", |one| step(&one.factor, &one.from, &one.to))
        .words("Depends on", |one| step(&one.by, &one.by_from, &one.by_to))
        .numbers("Ratio of the effects", |one| ratio(one.ratio))
        .numbers("95 % interval", |one| ratio_interval(one.ratio, one.ratio_ci95))
        .numbers("n", |one| count(one.ratio_n))
        .words("Conclusion", |one| text(words::conclusion(one.conclusion)))
        .words("What it says", |one| text(&one.text))
        .into()
}

/// Curves that are listed openly, all of them.
const ROWS_OPEN: usize = 12;

/// Every curve; nothing without an axis.
pub(super) fn axes_section(study: &StudyDocument) -> Option<Blocks> {
    if study.axes.is_empty() {
        return None;
    }
    // Axes of load first; what becomes of larger requests is no question of scaling.
    let mut all: Vec<&StudyAxis> = study.axes.iter().collect();
    all.sort_by_key(|axis| is_workload(&axis.factor));
    let mut body = Blocks::new();
    let drawn = all.iter().enumerate().filter_map(|(n, axis)| {
        let name = format!("{}: {}", axis_title(axis), words::axis_kind(axis.kind));
        Some((name, vec![axis_chart(n, study, axis)?]))
    });
    let drawn: Vec<(String, Vec<Chart>)> = drawn.collect();
    if !drawn.is_empty() {
        body.add(On::PAGE, Block::Choice("curve", drawn));
    }
    if all.len() <= ROWS_OPEN {
        body.table(On::FILES, axis_rows(study, &all));
    } else {
        let has_fallen =
            |axis: &&StudyAxis| axis.kind == AxisKind::Collapse && !is_workload(&axis.factor);
        let fallen: Vec<&StudyAxis> = all.iter().copied().filter(has_fallen).collect();
        if !fallen.is_empty() {
            body.title(On::PAGE, "Where more does less").table(On::PAGE, axis_rows(study, &fallen));
        }
        body.folded(
            On::FILES,
            format!("All {} curves as a table", all.len()),
            Block::Table(axis_rows(study, &all)),
        );
    }
    Some(body)
}

fn axis_chart(n: usize, study: &StudyDocument, axis: &StudyAxis) -> Option<Chart> {
    let found = axis.points.iter().zip(&axis.x).filter_map(|(id, x)| {
        let point = study.points.iter().find(|point| point.id == *id)?;
        Some(super::matrix::hover(point)?.mark(*x))
    });
    let marks: Vec<Mark> = found.collect();
    if marks.is_empty() {
        return None;
    }
    let line =
        |colour, course| Line { name: String::new(), stroke: solid(colour), course, marked: None };
    let lines = vec![line(Colour::Line(0), Course::Points(marks))];
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let lines = Lines::new(axis_words(&axis.factor), unit, lines).panel(Scale::Linear);
    Some(Chart::new(format!("axis-{n}"), "", Plot::Lines(lines)))
}

fn axis_title(axis: &StudyAxis) -> String {
    let fixed = listed(&axis.levels);
    let over = axis_words(&axis.factor);
    if fixed.is_empty() { format!("over {over}") } else { format!("{fixed} over {over}") }
}

fn axis_kind(kind: AxisKind) -> Cell {
    let tag = |tone| text(Text(vec![Span::Tag(tone, words::axis_kind(kind).to_owned())]));
    match kind {
        AxisKind::Collapse => tag(Tone::Warn),
        AxisKind::Scaling => tag(Tone::Good),
        AxisKind::NotClear | AxisKind::NoMeasurableDifference => {
            text(words::axis_kind(kind)).toned(Tone::Dim)
        }
        AxisKind::Flat | AxisKind::Saturating => tag(Tone::Plain),
    }
}

fn axis_rows(study: &StudyDocument, axes: &[&StudyAxis]) -> Table {
    let level = |axis: &StudyAxis, x: Option<f64>| {
        let words = |x| level_words(&axis.factor, &level_at(study, &axis.factor, x));
        x.map_or_else(empty, |x| text(words(x)))
    };
    let percent: fn(f64) -> String = |pct| words::value(pct, "percent");
    let change = |axis: &StudyAxis| Some(ranged(axis.change_pct?, axis.change_pct_ci95, percent));
    Table::of(axes)
        .words("Curve", |axis| text(axis_title(axis)))
        .words("Shape", |axis| axis_kind(axis.kind))
        .numbers("From", |axis| level(axis, axis.at))
        .numbers("Change to the end", |axis| change(axis).unwrap_or_default())
        .numbers("Enough", |axis| level(axis, axis.enough))
        .words("What it says", |axis| text(&axis.text))
        .into()
}
