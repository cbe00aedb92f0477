//! A study for a terminal: headline, then and now, one line per effect, the matrix with the shape
//! of each curve, what was not possible.

use iostrata_run::{StudyDocument, StudyEffect, ThenRow};
use iostrata_stats::{Conclusion, Verdict};

use super::matrix::matrix;
use super::response;
use crate::RunView;
use crate::study::{axis_words, factor_words, level_words};
use crate::text::paper::{Paper, clean, cut, pad, right, wrapped_to};
use crate::text::verdict::missing;
use crate::words;

/// Columns of a printed figure, of half an interval, of a ratio.
const FIGURE: usize = 18;
const SPREAD: usize = 9;
const TIMES: usize = 8;
/// Columns of the interval of a ratio, of what follows from it.
const RANGE: usize = 17;
const FOLLOWS: usize = 24;
/// Fewest columns for a name beside its figures.
const NAME_MIN: usize = 24;

/// The lines below the origin.
pub(crate) fn lines(view: &RunView<'_>, study: &StudyDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, sentence) in study.headline.iter().enumerate() {
        let wrapped = paper.wrapped(sentence, 0);
        lines.extend(wrapped.into_iter().map(|line| if n == 0 { paper.bold(&line) } else { line }));
    }
    let parts = [
        response::lines(study, paper),
        then(study, paper),
        effects(study, paper),
        matrix(study, paper),
        missing(view, paper),
    ];
    for part in parts {
        if !part.is_empty() {
            lines.push(String::new());
            lines.extend(part);
        }
    }
    lines.push(String::new());
    lines.extend(foot(study, paper));
    lines
}

fn then(study: &StudyDocument, paper: &Paper) -> Vec<String> {
    if study.then.is_empty() {
        return Vec::new();
    }
    let columns = 2 * FIGURE + SPREAD + TIMES;
    let room = room(paper, columns);
    let head = format!(
        "{}{}{}{}",
        right("then", FIGURE),
        right("now", FIGURE),
        pad(" 95 %", SPREAD),
        right("times", TIMES)
    );
    let mut lines = vec![
        paper.bold("Then and now"),
        paper.dim(&format!("  {}{head}", pad("", room.unwrap_or(0)))),
    ];
    for row in &study.then {
        lines.extend(named(&row.text, room, &then_figures(row, paper), paper));
    }
    lines
}

/// Columns left for names beside so many columns of figures; none where names need a line of their
/// own.
fn room(paper: &Paper, columns: usize) -> Option<usize> {
    let left = paper.width.saturating_sub(2 + columns + 1);
    (left >= NAME_MIN).then_some(left)
}

/// A name with its figures behind it; a name that is longer than its room takes several lines.
fn named(name: &str, room: Option<usize>, figures: &str, paper: &Paper) -> Vec<String> {
    let width = room.unwrap_or(paper.width - 2);
    let mut lines = wrapped_to(name, width.saturating_sub(1));
    match (room, lines.pop()) {
        (Some(room), last) => lines.push(pad(&last.unwrap_or_default(), room) + figures),
        (None, last) => lines.extend(last.into_iter().chain([figures.to_owned()])),
    }
    lines.into_iter().map(|line| format!("  {line}").trim_end().to_owned()).collect()
}

/// `12 K to 14 K IOPS   15.3 K IOPS +- 2.1 %   1.18x`
fn then_figures(row: &ThenRow, paper: &Paper) -> String {
    let printed = row.then.map(|low| words::printed(low, row.then_high, &row.unit));
    // The unit stands beside today's figure.
    let unit = format!(" {}", row.unit);
    let bare = printed.as_ref().and_then(|text| text.strip_suffix(&unit).map(str::to_owned));
    let printed = bare.filter(|_| row.now.is_some()).or(printed);
    let now = row.now.map(|now| words::shown(now, row.now_ci95, &row.unit));
    let (now, half) = now.map_or((None, None), |now| (Some(now.text), now.half));
    let spread = half.map_or(String::new(), |half| format!(" {} {half}", paper.plus_minus()));
    let mark = if row.verdicts.is_sound() { "" } else { "*" };
    let times = row.times.filter(|times| times.is_finite()).map(words::times);
    let figure =
        |text: Option<String>| right(&cut(&clean(&text.unwrap_or_default()), FIGURE - 1), FIGURE);
    format!(
        "{}{}{}{}{}",
        figure(printed),
        paper.bold(&figure(now)),
        paper.dim(&pad(&spread, SPREAD)),
        right(&times.unwrap_or_default(), TIMES),
        paper.warn(mark),
    )
}

fn effects(study: &StudyDocument, paper: &Paper) -> Vec<String> {
    if study.effects.is_empty() {
        return Vec::new();
    }
    let room = room(paper, TIMES + 1 + RANGE + 1 + FOLLOWS);
    let mut lines = vec![paper.bold("What each factor does, all else equal")];
    for effect in &study.effects {
        let title = format!(
            "{}: {} to {}",
            axis_words(&effect.factor),
            level_words(&effect.factor, &effect.from),
            level_words(&effect.factor, &effect.to)
        );
        let measured = matches!(effect.conclusion, Conclusion::Higher | Conclusion::Lower);
        let found = named(&title, room, &effect_figures(effect), paper);
        lines.extend(found.into_iter().map(|line| if measured { line } else { paper.dim(&line) }));
    }
    lines
}

/// `0.412x [0.389, 0.437]    n = 54`
fn effect_figures(effect: &StudyEffect) -> String {
    let range = effect.ratio_ci95.map_or("no interval".to_owned(), words::times_range);
    let follows = match effect.conclusion {
        Conclusion::NoMeasurableDifference => "no measurable difference".to_owned(),
        Conclusion::TooFewPairs => "too few pairs".to_owned(),
        Conclusion::Higher | Conclusion::Lower => format!("n = {}", effect.ratio_n),
    };
    format!("{} {} {follows}", right(&words::times(effect.ratio), TIMES), pad(&range, RANGE))
}

fn foot(study: &StudyDocument, paper: &Paper) -> Vec<String> {
    let mut text = format!(
        "{} points over {} in {} (at a fixed 60 s each: {}), {} of them within {} {}, {} written",
        study.points.len(),
        factors(study),
        words::value(study.duration_s, "s"),
        words::value(study.fixed_minute_s, "s"),
        words::value(study.precise_pct, "percent"),
        paper.plus_minus(),
        words::value(study.precision * 100.0, "percent"),
        words::value(study.bytes_written as f64, "bytes"),
    );
    if study.replicates_dropped > 0 {
        text.push_str(&format!("; {} replicates dropped for the budget", study.replicates_dropped));
    }
    if study.interrupted {
        text = format!("Stopped before its end; {text}");
    }
    if !study.verdicts.is_sound() {
        let why: Vec<&str> = study.verdicts.iter().map(Verdict::explain).collect();
        text.push_str(&format!(". Of most points: {}", why.join("; ")));
    }
    let mut lines: Vec<String> =
        paper.wrapped(&text, 0).iter().map(|line| paper.dim(line)).collect();
    if let Some(report) = &study.report {
        lines.push(format!("{} {}", paper.bold("Report:"), clean(report)));
    }
    lines
}

fn factors(study: &StudyDocument) -> String {
    let names: Vec<String> = study
        .factors
        .iter()
        .filter(|factor| factor.levels.len() > 1)
        .map(|factor| factor_words(&factor.factor).to_lowercase())
        .collect();
    if names.is_empty() { "no factor".to_owned() } else { names.join(", ") }
}
