//! A study for a terminal: headline, then and now, one line per effect, the matrix with the shape of
//! each curve, what was not possible.

use iostrata_run::{StudyDocument, StudyEffect, ThenRow};
use iostrata_stats::Conclusion;

use super::matrix::matrix;
use crate::RunView;
use crate::study::{axis_words, factor_words, level_words};
use crate::text::paper::{Paper, clean, cut, cut_middle, pad, right};
use crate::words;

/// Columns of a printed figure, of half an interval, of a ratio.
const FIGURE: usize = 18;
const SPREAD: usize = 9;
const TIMES: usize = 8;
/// Rows of what is not available.
const UNAVAILABLE: usize = 5;

/// The lines below the origin.
pub(crate) fn lines(view: &RunView<'_>, study: &StudyDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, sentence) in study.headline.iter().enumerate() {
        let wrapped = paper.wrapped(sentence, 0);
        lines.extend(wrapped.into_iter().map(|line| if n == 0 { paper.bold(&line) } else { line }));
    }
    for part in
        [then(study, paper), effects(study, paper), matrix(study, paper), missing(view, paper)]
    {
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
    let text = paper.width.saturating_sub(2 + 2 * FIGURE + SPREAD + TIMES);
    let head = format!(
        "  {}{}{}{}{}",
        pad("", text),
        right("then", FIGURE),
        right("now", FIGURE),
        pad(" 95 %", SPREAD),
        right("times", TIMES)
    );
    let mut lines = vec![paper.bold("Then and now"), paper.dim(head.trim_end())];
    lines.extend(study.then.iter().map(|row| then_line(row, text, paper)));
    lines
}

/// `  ext4, random writes, 4K, 4 writers   12 K to 14 K IOPS   15.3 K IOPS +- 2.1 %   1.18x`
fn then_line(row: &ThenRow, width: usize, paper: &Paper) -> String {
    let printed = row.then.map(|low| words::printed(low, row.then_high, &row.unit));
    let now = row.now.map(|now| words::value(now, &row.unit));
    let half = row.now.and_then(|now| words::half_width(now, row.now_ci95));
    let spread = half.map_or(String::new(), |half| format!(" {} {half}", paper.plus_minus()));
    let mark = if row.verdicts.is_sound() { "" } else { "*" };
    let times = row.times.filter(|times| times.is_finite()).map(words::times);
    format!(
        "  {}{}{}{}{}{}",
        pad(&cut_middle(&clean(&row.text), width.saturating_sub(1)), width),
        right(&clean(&printed.unwrap_or_default()), FIGURE),
        paper.bold(&right(&clean(&now.unwrap_or_default()), FIGURE)),
        paper.dim(&pad(&spread, SPREAD)),
        right(&times.unwrap_or_default(), TIMES),
        paper.warn(mark),
    )
    .trim_end()
    .to_owned()
}

fn effects(study: &StudyDocument, paper: &Paper) -> Vec<String> {
    if study.effects.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![paper.bold("What each factor does, all else equal")];
    lines.extend(study.effects.iter().map(|effect| effect_line(effect, paper)));
    lines
}

/// `  file system: raw device to ext4                    0.412x [0.389, 0.437]  n = 54`
fn effect_line(effect: &StudyEffect, paper: &Paper) -> String {
    let title = format!(
        "{}: {} to {}",
        axis_words(&effect.factor),
        level_words(&effect.factor, &effect.from),
        level_words(&effect.factor, &effect.to)
    );
    let width = paper.width.saturating_sub(2 + TIMES + 1 + 17 + 3 + 24).max(20);
    let range = effect.ratio_ci95.map_or("no interval".to_owned(), words::times_range);
    let follows = match effect.conclusion {
        Conclusion::NoMeasurableDifference => "no measurable difference".to_owned(),
        Conclusion::TooFewPairs => "too few pairs".to_owned(),
        Conclusion::Higher | Conclusion::Lower => format!("n = {}", effect.ratio_n),
    };
    let line = format!(
        "  {}{} {} {follows}",
        pad(&cut_middle(&clean(&title), width.saturating_sub(1)), width),
        right(&words::times(effect.ratio), TIMES),
        pad(&range, 17),
    );
    let measured = matches!(effect.conclusion, Conclusion::Higher | Conclusion::Lower);
    if measured { line } else { paper.dim(&line) }
}

fn missing(view: &RunView<'_>, paper: &Paper) -> Vec<String> {
    let all = view.unavailable();
    let line = |text: String| paper.dim(&cut(&clean(&text), paper.width));
    let mut lines: Vec<String> = all
        .iter()
        .take(UNAVAILABLE)
        .map(|one| line(format!("Not measured: {}: {}", one.what, one.why)))
        .collect();
    if all.len() > UNAVAILABLE {
        lines
            .push(line(format!("and {} more that could not be measured", all.len() - UNAVAILABLE)));
    }
    lines
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
        text.push_str(&format!("; cautions: {}", words::verdicts(&study.verdicts)));
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
