//! What answers a study's question as a picture: a few charts under the leading answer.
//!
//! Method: which chart an answer gets follows from what it is. Changes that were made one by one
//! are steps from the start to the whole; evenness is seen over time; figures over a factor of
//! three numbers or more are curves; all others are bars, one for each level. Answers about the
//! same thing share a chart. Invariant: nothing is chosen by the name of a study, and every figure
//! stands in the document.

use iostrata_plan::study::{Extent, FactorLevels, LevelAt, ThenMetric};
use iostrata_run::{AnswerFigure, AnswerSplit, StudyAnswer, StudyDocument, StudyPoint, refusal};
use iostrata_stats::Verdict;

use super::levels::{
    axis_words, describe, is_workload, level, level_beside, level_words, number, varying,
};
use super::{matrix, stability, then};
use crate::report::cell::Tone;
use crate::report::chart::{Bar, Chart, Course, Hover, Line, Lines, Plot, Step, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Panels, Picture, PicturePart, Style};
use crate::report::words;

/// Parts of a picture at most; the report has the rest.
const PARTS_MAX: usize = 4;
/// Lines of a chart at most.
const LINES_MAX: usize = 5;
/// Bars of a chart at most: with more only the levels in question have one.
const BARS_MAX: usize = 12;
/// Charts over time at most.
const COURSES_MAX: usize = 6;

/// A point with what an answer compares.
type Item<'a> = (&'a StudyPoint, &'a AnswerFigure);

/// How answers are seen best.
#[derive(PartialEq)]
enum Shape<'a> {
    Steps(&'a AnswerSplit),
    OverTime,
    Curve(&'a FactorLevels),
    Bars,
}

/// Answers that share a chart, with all that it shows.
struct SharedChart<'a> {
    shape: Shape<'a>,
    answers: Vec<&'a StudyAnswer>,
    items: Vec<Item<'a>>,
}

impl<'a> SharedChart<'a> {
    fn of(study: &'a StudyDocument, answer: &'a StudyAnswer) -> Option<Self> {
        let items = items(study, answer);
        let points: Vec<&StudyPoint> = items.iter().map(|item| item.0).collect();
        let is_uneven = answer.metric == ThenMetric::MinOverMean1s.name();
        let shape = match (&answer.split, axis(study, &points)) {
            (Some(split), _) => Shape::Steps(split),
            _ if is_uneven && points.iter().all(|one| one.transactions.is_some()) => {
                Shape::OverTime
            }
            (None, Some(axis)) => Shape::Curve(axis),
            (None, None) => Shape::Bars,
        };
        (items.len() > 1).then(|| Self { shape, answers: vec![answer], items })
    }

    fn points(&self) -> Vec<&'a StudyPoint> {
        self.items.iter().map(|item| item.0).collect()
    }

    /// Takes in another answer that is seen in the same way, as far as one chart can show both.
    fn join(&mut self, study: &'a StudyDocument, other: &Self) -> bool {
        let (first, second) = (self.answers[0], other.answers[0]);
        let has = |item: &Item<'a>| self.items.iter().any(|one| one.0.id == item.0.id);
        let mut both = self.items.clone();
        both.extend(other.items.iter().filter(|item| !has(item)).copied());
        let is_one = first.metric == second.metric
            && self.shape == other.shape
            && match self.shape {
                Shape::Steps(_) => false,
                Shape::OverTime => true,
                Shape::Curve(axis) => {
                    let points: Vec<&StudyPoint> = both.iter().map(|item| item.0).collect();
                    let free = free(study, &points, axis);
                    other.items.iter().any(has) && lines(&both, &free).len() <= LINES_MAX
                }
                // Another answer about the same points needs no bars of its own.
                Shape::Bars => first.factors == second.factors || other.items.iter().all(has),
            };
        if is_one {
            self.items = both;
            self.answers.extend(&other.answers);
        }
        is_one
    }
}

/// What an answer compares, in the order of the study.
fn items<'a>(study: &'a StudyDocument, answer: &'a StudyAnswer) -> Vec<Item<'a>> {
    let metric = ThenMetric::NAMED.iter().find(|(name, ..)| *name == answer.metric);
    let may_be_zero = metric.is_some_and(|(_, metric, _)| metric.is_by_difference());
    // What is not known is never drawn.
    let is_known = |one: &&AnswerFigure| {
        let known = refusal(one.value, one.value_ci95).is_none();
        one.value.is_finite() && (may_be_zero || known)
    };
    let of = |point: &'a StudyPoint| {
        let figure = answer.figures.iter().find(|one| one.point == point.id);
        figure.filter(is_known).map(|figure| (point, figure))
    };
    study.points.iter().filter_map(of).collect()
}

/// The factor of three numbers or more that most of its levels are there of.
fn axis<'a>(study: &'a StudyDocument, points: &[&StudyPoint]) -> Option<&'a FactorLevels> {
    let there = |factor: &FactorLevels| {
        let is_there = |one: &&String| {
            number(&factor.factor, one).is_some()
                && points
                    .iter()
                    .any(|point| level(&point.levels, &factor.factor) == Some(one.as_str()))
        };
        factor.levels.iter().filter(is_there).count()
    };
    let curves = study.factors.iter().filter(|factor| factor.is_curve());
    let curves = curves.map(|factor| (there(factor), factor));
    let longest = curves.filter(|(count, _)| *count >= FactorLevels::CURVE_MIN);
    longest.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, factor)| factor)
}

/// The factors besides the axis in which points differ.
fn free<'a>(
    study: &'a StudyDocument,
    points: &[&StudyPoint],
    axis: &FactorLevels,
) -> Vec<&'a FactorLevels> {
    let mut free = varying(study, points);
    free.retain(|factor| factor.factor != axis.factor);
    free
}

/// The picture; nothing where no figure is known. `when` is when it was measured.
pub(in crate::report::kind) fn picture(study: &StudyDocument, when: &str) -> Option<Picture> {
    let parts = parts(study);
    let says = study.headline.first().unwrap_or(&study.title);
    // A picture has no type for names.
    let says = says.replace('`', "");
    (!parts.is_empty()).then(|| Picture { says, parts, notes: notes(study, when) })
}

/// The section of the page.
pub(super) fn section(study: &StudyDocument) -> Option<Blocks> {
    if study.answers.iter().all(|answer| answer.figures.is_empty()) {
        return None;
    }
    let mut body = Blocks::new();
    for part in parts(study) {
        body.title(On::PAGE, part.title);
        if !part.common.is_empty() {
            body.add(On::PAGE, Block::Text(Style::Note(Tone::Plain), part.common.into()));
        }
        let (legend, mut charts) = (Vec::new(), part.charts);
        if charts.len() == 1 {
            charts.drain(..).for_each(|chart| {
                body.chart(chart);
            });
        } else {
            body.add(On::PAGE, Block::Panels(Panels { legend, charts, has_switch: false }));
        }
        if !part.figures.is_empty() {
            let figures = part.figures.into_iter().map(Into::into).collect();
            body.add(On::PAGE, Block::List(figures));
        }
    }
    (!body.0.is_empty()).then_some(body)
}

/// The parts, with the leading answer's first.
fn parts(study: &StudyDocument) -> Vec<PicturePart> {
    let mut parts = Vec::new();
    // An answer that quotes a finding has no points: of response times the curve shows it.
    if study.answers.first().is_some_and(|answer| answer.metric.is_empty()) {
        let charts = then::responses(study, "answer-response");
        let title = "Response time from the scheduled start".to_owned();
        let (common, figures) = (String::new(), Vec::new());
        if !charts.is_empty() {
            parts.push(PicturePart { title, common, charts, figures });
        }
    }
    let mut all: Vec<SharedChart<'_>> = Vec::new();
    for answer in &study.answers {
        let Some(shown) = SharedChart::of(study, answer) else { continue };
        if !all.iter_mut().any(|one| one.join(study, &shown)) {
            all.push(shown);
        }
    }
    let chains: Vec<Chain<'_>> = all.iter().filter_map(|one| Chain::of(study, one)).collect();
    let is_in_chain = |answer: &&StudyAnswer| {
        chains.iter().any(|chain| chain.answers().any(|one| std::ptr::eq(one, *answer)))
    };
    let first = study.answers.first();
    for shown in &all {
        let chain = chains.iter().find(|chain| std::ptr::eq(chain.split, shown.answers[0]));
        // What is a step of a whole needs no chart of its own.
        if chain.is_none() && shown.answers.iter().all(is_in_chain) {
            continue;
        }
        let mut part = shown.part(study, parts.len(), chain);
        let leads = |one: &StudyAnswer| first.is_some_and(|first| std::ptr::eq(one, first));
        let has_lead = match chain {
            Some(chain) => chain.answers().any(leads),
            None => shown.answers.iter().any(|one| leads(one)),
        };
        part.charts.retain(|chart| !is_empty(chart));
        let at = if has_lead { 0 } else { parts.len() };
        if !part.charts.is_empty() {
            parts.insert(at, part);
        }
    }
    parts.truncate(PARTS_MAX);
    if parts.is_empty() { without_answers(study) } else { parts }
}

fn is_empty(chart: &Chart) -> bool {
    match &chart.plot {
        Plot::Bars(_, bars) => bars.is_empty(),
        Plot::Lines(lines) => lines.lines.is_empty(),
        Plot::Steps(steps) => steps.is_empty(),
        Plot::Ratios(..) | Plot::Shares(..) => true,
    }
}

/// Of a study without an answer to be drawn the first panels of its matrix; where no figure is
/// known there either, what its transactions did over time.
fn without_answers(study: &StudyDocument) -> Vec<PicturePart> {
    let figures = Vec::new();
    let sets = matrix::all_panels(study);
    let set = sets.iter().find(|set| !matrix::is_given(study, set));
    let charts = set.map(|set| matrix::picture(study, set).charts).unwrap_or_default();
    if let Some(set) = set.filter(|_| !charts.is_empty()) {
        let common = set.usual.clone().unwrap_or_default();
        return vec![PicturePart { title: matrix::name(study, set), common, charts, figures }];
    }
    let points: Vec<&StudyPoint> = study.points.iter().collect();
    let (mut charts, usual) = stability::courses(study, &points, "answer");
    charts.truncate(COURSES_MAX);
    let title = metric_words(ThenMetric::MinOverMean1s.name());
    let part = PicturePart { title, common: usual.unwrap_or_default(), charts, figures };
    Some(part).filter(|part| !part.charts.is_empty()).into_iter().collect()
}

impl SharedChart<'_> {
    fn part(&self, study: &StudyDocument, n: usize, chain: Option<&Chain<'_>>) -> PicturePart {
        let points = self.points();
        let name = format!("answer-{n}");
        let answer = self.answers[0];
        let mut title = metric_words(&answer.metric);
        let mut figures: Vec<String> =
            self.answers.iter().filter_map(|one| figures(study, self, one)).collect();
        let charts = match &self.shape {
            Shape::Steps(_) => match chain {
                Some(chain) => {
                    figures.clear();
                    vec![chain.chart(&name)]
                }
                None => Vec::new(),
            },
            Shape::OverTime => {
                let asked: Vec<&StudyPoint> = self.asked().iter().map(|item| item.0).collect();
                let of = if points.len() > COURSES_MAX { asked } else { points.clone() };
                let (mut charts, usual) = stability::courses(study, &of, &name);
                figures.extend(usual);
                if charts.len() > COURSES_MAX {
                    charts.truncate(COURSES_MAX);
                    figures.push("The report has the other points.".to_owned());
                }
                charts
            }
            Shape::Curve(axis) => {
                title = format!("{title} over {}", axis_words(&axis.factor));
                self.curves(study, axis, &name)
            }
            Shape::Bars => vec![self.bars(study, &name)],
        };
        figures.extend(self.not_known(study));
        PicturePart { title, common: common(study, &points), charts, figures }
    }

    /// How many points are not drawn, since their figures are not known.
    fn not_known(&self, study: &StudyDocument) -> Option<String> {
        let is_measured = |id: &String| study.points.iter().any(|point| point.id == *id);
        let figures = self.answers.iter().flat_map(|answer| &answer.figures);
        let mut all: Vec<&String> = figures.map(|figure| &figure.point).collect();
        all.retain(|id| is_measured(id));
        all.sort();
        all.dedup();
        let missing = all.len().saturating_sub(self.items.len());
        (missing > 0).then(|| {
            let of = words::counted(all.len(), "point");
            format!("Not drawn: {missing} of {of}, whose intervals are wider than their figures.")
        })
    }

    /// The items of points that the answers set against each other.
    fn asked(&self) -> Vec<Item<'_>> {
        let is_asked = |item: &&Item<'_>| {
            let sides = self.answers.iter().flat_map(|one| one.of.iter().chain(&one.over));
            sides.into_iter().any(|id| *id == item.0.id)
        };
        self.items.iter().filter(is_asked).copied().collect()
    }

    /// A bar for each level; levels of other factors make groups.
    fn bars(&self, study: &StudyDocument, name: &str) -> Chart {
        let items = if self.items.len() > BARS_MAX { self.asked() } else { self.items.clone() };
        let points: Vec<&StudyPoint> = items.iter().map(|item| item.0).collect();
        let differ = varying(study, &points);
        let is_set = |factor: &&&FactorLevels| self.answers[0].factors.contains(&factor.factor);
        let (mut set, others): (Vec<&FactorLevels>, Vec<&FactorLevels>) =
            differ.into_iter().partition(|factor| is_set(&factor));
        if set.is_empty() {
            set = study.factors.iter().filter(|factor| is_set(&factor)).collect();
        }
        let mut bars: Vec<(usize, Bar)> = Vec::new();
        let mut groups: Vec<String> = Vec::new();
        let mut titles: Vec<String> = Vec::new();
        for (point, figure) in &items {
            let own = describe(&point.levels, &others);
            let title = row_title(&point.levels, &set);
            let place = |all: &mut Vec<String>, one: &String| {
                all.iter().position(|known| known == one).unwrap_or_else(|| {
                    all.push(one.clone());
                    all.len() - 1
                })
            };
            let (at, colour) = (place(&mut groups, &own), place(&mut titles, &title));
            let hover = hover(point, figure, &self.answers[0].unit);
            let bar = Bar::of(&Hover { title: &title, ..hover }, Colour::Line(colour));
            bars.push((at, Bar { group: own, ..bar }));
        }
        bars.sort_by_key(|(at, _)| *at);
        // Bars of a single level set nothing against each other.
        if titles.len() < 2 {
            bars.clear();
        }
        let bars = bars.into_iter().map(|(_, bar)| bar).collect();
        Chart::new(name, "", Plot::Bars(unit_words(&self.answers[0].unit).to_owned(), bars))
    }

    /// Curves over the axis: a line for each other combination of levels, a chart for each workload
    /// where there are too many lines.
    fn curves(&self, study: &StudyDocument, axis: &FactorLevels, name: &str) -> Vec<Chart> {
        let points = self.points();
        let mut by_line = free(study, &points, axis);
        let mut by_chart: Vec<&FactorLevels> = Vec::new();
        while lines(&self.items, &by_line).len() > LINES_MAX && by_line.len() > 1 {
            let workload = by_line.iter().position(|factor| is_workload(&factor.factor));
            by_chart.push(by_line.remove(workload.unwrap_or(by_line.len() - 1)));
        }
        let unit = unit_words(&self.answers[0].unit);
        let known = lines(&self.items, &by_line);
        let colour = |name: &str| known.iter().position(|(one, _)| one == name).unwrap_or(0);
        let chart = |(n, (title, items)): (usize, (String, Vec<Item<'_>>))| {
            let line = |(name, items): (String, Vec<Item<'_>>)| {
                let mark = |(point, figure): &Item<'_>| {
                    let x = number(&axis.factor, level(&point.levels, &axis.factor)?)?;
                    Some(hover(point, figure, &self.answers[0].unit).mark(x))
                };
                let mut marks: Vec<_> = items.iter().filter_map(mark).collect();
                marks.sort_by(|a, b| a.x.total_cmp(&b.x));
                let stroke = solid(Colour::Line(colour(&name)));
                Line { name, stroke, course: Course::Points(marks), marked: None }
            };
            let found = lines(&items, &by_line).into_iter().map(line).collect();
            let plot = Lines::new(axis_words(&axis.factor), unit, found);
            Chart::new(format!("{name}-{n}"), words::capital(&title), Plot::Lines(plot))
        };
        lines(&self.items, &by_chart).into_iter().enumerate().map(chart).collect()
    }
}

/// Items by their levels of some factors, each combination with its name.
fn lines<'a>(items: &[Item<'a>], factors: &[&FactorLevels]) -> Vec<(String, Vec<Item<'a>>)> {
    let mut all: Vec<(String, Vec<Item<'a>>)> = Vec::new();
    for item in items {
        let name = describe(&item.0.levels, factors);
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, items)) => items.push(*item),
            None => all.push((name, vec![*item])),
        }
    }
    all
}

fn hover<'a>(point: &'a StudyPoint, figure: &AnswerFigure, unit: &'a str) -> Hover<'a> {
    Hover {
        title: &point.title,
        value: figure.value,
        unit,
        ci95: figure.value_ci95,
        n: figure.value_n,
        verdicts: None,
    }
}

/// The levels that a bar is of: of a single factor without its name, which all of them share.
fn row_title(levels: &[LevelAt], set: &[&FactorLevels]) -> String {
    match set {
        [only] => {
            let of = |level: &str| level_beside(&only.factor, level);
            level(levels, &only.factor).map_or_else(String::new, of)
        }
        several => describe(levels, several),
    }
}

/// The levels that all points have of factors that the study varies.
fn common(study: &StudyDocument, points: &[&StudyPoint]) -> String {
    let differ = varying(study, points);
    let is_common = |factor: &&FactorLevels| {
        let is_other = differ.iter().all(|one| one.factor != factor.factor);
        factor.levels.len() > 1 && is_other
    };
    let factors: Vec<&FactorLevels> = study.factors.iter().filter(is_common).collect();
    let fullest = points.iter().max_by_key(|point| point.levels.len());
    fullest.map_or_else(String::new, |point| describe(&point.levels, &factors))
}

/// The ratio or difference of an answer with its sides: `ext4 over raw device: 0.311x [0.3, 0.32]`.
fn figures(study: &StudyDocument, shown: &SharedChart<'_>, answer: &StudyAnswer) -> Option<String> {
    let side = |ids: &[String]| -> Vec<&StudyPoint> {
        study.points.iter().filter(|point| ids.contains(&point.id)).collect()
    };
    let (of, over) = (side(&answer.of), side(&answer.over));
    if of.is_empty() || over.is_empty() {
        return None;
    }
    // What one side shares and the other has not.
    let own = |side: &[&StudyPoint], other: &[&StudyPoint]| {
        let is_shared =
            |all: &[&StudyPoint], at: &LevelAt| all.iter().all(|point| point.levels.contains(at));
        let levels = side[0].levels.iter().filter(|at| answer.factors.contains(&at.factor));
        let own = levels.filter(|at| is_shared(side, at) && !is_shared(other, at));
        own.map(|at| level_words(&at.factor, &at.level)).collect::<Vec<_>>().join(", ")
    };
    let both: Vec<&StudyPoint> = of.iter().chain(&over).copied().collect();
    let here = varying(study, &both);
    let whole = varying(study, &shown.points());
    let apart: Vec<&FactorLevels> = whole
        .into_iter()
        .filter(|factor| here.iter().all(|one| one.factor != factor.factor))
        .collect();
    let place = describe(&both[0].levels, &apart);
    let place = if place.is_empty() { place } else { format!("{place}: ") };
    let open = if answer.is_known { "" } else { ", undecided" };
    let figure = match (answer.ratio, &answer.difference) {
        (Some(ratio), _) => {
            let range =
                answer.ratio_ci95.map(|ends| format!(" {}", words::times_range(ends, ratio)));
            format!("{}{}", words::times(ratio), range.unwrap_or_default())
        }
        (None, Some(apart)) => {
            let ends = apart.ci95.map(|ends| format!(" {}", words::range(ends, apart.value, "")));
            format!("{} apart{}", words::value(apart.value, ""), ends.unwrap_or_default())
        }
        (None, None) => return None,
    };
    let [of, over] = [own(&of, &over), own(&over, &of)];
    Some(match of.is_empty() || over.is_empty() {
        true => format!("{}: {figure}{open}", answer.asks),
        false => format!("{place}{of} over {over}: {figure}{open}"),
    })
}

/// A whole in steps: from the points below its line to those above it.
struct Chain<'a> {
    /// The answer that is split.
    split: &'a StudyAnswer,
    /// What leads to the points below its line, and the whole with it.
    before: Option<[&'a StudyAnswer; 2]>,
    parts: &'a AnswerSplit,
    /// Both ends in words, with their figures.
    ends: [String; 2],
    first: String,
}

impl<'a> Chain<'a> {
    fn of(study: &'a StudyDocument, shown: &SharedChart<'a>) -> Option<Self> {
        let Shape::Steps(parts) = shown.shape else { return None };
        let split = shown.answers[0];
        let is_alike = |one: &&StudyAnswer| one.metric == split.metric && one.ratio.is_some();
        let alike = || study.answers.iter().filter(is_alike);
        let mut before = None;
        for first in alike().filter(|one| one.of == split.over) {
            let whole = alike().find(|one| one.of == split.of && one.over == first.over);
            before = before.or(whole.map(|whole| [first, whole]));
        }
        let base = before.map_or(&split.over, |[first, _]| &first.over);
        let end = |ids: &[String]| {
            let point = study.points.iter().find(|point| ids.contains(&point.id))?;
            let figure = split.figures.iter().find(|figure| figure.point == point.id)?;
            let differ: Vec<&FactorLevels> = study
                .factors
                .iter()
                .filter(|factor| split.factors.contains(&factor.factor))
                .collect();
            let value = words::value(figure.value, &split.unit);
            Some(format!("{}: {value}", row_title(&point.levels, &differ)))
        };
        let ends = [end(base)?, end(&split.of)?];
        let first = end(&split.over)?.split(": ").next().unwrap_or_default().to_owned();
        Some(Self { split, before, parts, ends, first })
    }

    fn answers(&self) -> impl Iterator<Item = &'a StudyAnswer> {
        std::iter::once(self.split).chain(self.before.into_iter().flatten())
    }

    fn chart(&self, name: &str) -> Chart {
        let mut at = 1.0;
        let mut steps = Vec::new();
        let mut add = |title: &str, ratio: f64, ci95: Option<[f64; 2]>, colour: Option<Colour>| {
            let from = at;
            at *= ratio;
            let gains = if ratio >= 1.0 { Colour::Line(1) } else { Colour::Line(2) };
            steps.push(step(title, [from, at], ratio, ci95, colour.unwrap_or(gains)));
        };
        if let Some([first, _]) = self.before
            && let Some(ratio) = first.ratio
        {
            add(&self.first, ratio, first.ratio_ci95, None);
        }
        for effect in &self.parts.effects {
            add(&effect.name, effect.ratio, effect.ratio_ci95, None);
        }
        add(
            "all together over their product",
            self.parts.rest,
            self.parts.rest_ci95,
            Some(Colour::Grey),
        );
        let whole = self.before.map_or(self.split, |[_, whole]| whole);
        if let Some(ratio) = whole.ratio {
            let [from, to] = &self.ends;
            let title = format!("from {from} to {to}");
            steps.push(step(&title, [1.0, ratio], ratio, whole.ratio_ci95, Colour::Line(0)));
        }
        Chart::new(name, "", Plot::Steps(steps))
    }
}

fn step(
    title: &str,
    [from, to]: [f64; 2],
    ratio: f64,
    ci95: Option<[f64; 2]>,
    colour: Colour,
) -> Step {
    let shown = words::times(ratio);
    let spread = ci95.map_or_else(String::new, |ends| words::times_range(ends, ratio));
    let hover = format!("{title}\n{shown}  ({})\n95 %: {spread}", words::exact(ratio));
    let ci95 = ci95.map(|ends| ends.map(|end| from * end));
    Step { title: words::capital(title), from, to, ci95, colour, shown, spread, hover }
}

/// A metric in a reader's words.
fn metric_words(metric: &str) -> String {
    match metric {
        "iops" => "Requests per second".to_owned(),
        "tps" => "Transactions per second".to_owned(),
        "min_over_mean_1s" => "Transactions per second, over time".to_owned(),
        "stalled_pct" => "Share of the time below half the mean rate".to_owned(),
        "stalls_per_min" => "Stalls per minute".to_owned(),
        "latency_mean_us" => "Mean latency".to_owned(),
        "response_mean_us" => "Mean response time".to_owned(),
        "latency_p99_9_us" => "99.9 % of the transactions within".to_owned(),
        "cpu_us_per_transaction" => "Processor time of a transaction".to_owned(),
        "device_write_bytes_per_transaction" => "Bytes written for a transaction".to_owned(),
        "reader_latency_mean_us" => "Mean latency of a reader".to_owned(),
        other => {
            let name = ["_us", "_ms", "_pct"].iter().find_map(|unit| other.strip_suffix(unit));
            words::title(name.unwrap_or(other))
        }
    }
}

/// The unit of an axis: times have theirs at every figure.
fn unit_words(unit: &str) -> &str {
    match unit {
        "percent" => "%",
        "us" => "time",
        other => other,
    }
}

/// How it was measured, and what speaks against most of it.
fn notes(study: &StudyDocument, when: &str) -> Vec<String> {
    let span = |of: &dyn Fn(&StudyPoint) -> f64, unit: &str| {
        let all = study.points.iter().map(of);
        let ends =
            all.fold([f64::INFINITY, 0.0_f64], |[low, high], one| [low.min(one), high.max(one)]);
        let [low, high] = ends.map(|end| words::value(end, unit));
        if low == high { low } else { format!("{low} to {high}") }
    };
    let replicates = span(&|point| f64::from(point.replicates), "");
    let window = span(&|point| point.measured_s / f64::from(point.replicates.max(1)), "s");
    let extent = match study.extent {
        Extent::Quick => "quick",
        Extent::Full => "full",
    };
    let measured = format!(
        "{} with {replicates} windows of {window} each, {extent}, in {}. Whiskers and brackets: \
         95 % intervals.",
        words::counted(study.points.len(), "point"),
        words::value(study.duration_s, "s"),
    );
    let machine = &study.host.machine;
    let mut about: Vec<String> = vec![when.to_owned()];
    about.extend(machine.cpus.map(|cpus| words::counted(cpus as usize, "processor")));
    about.extend(machine.cpu_model.clone());
    about.extend(machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    about.retain(|one| !one.is_empty());
    let mut notes = vec![measured, format!("{}.", about.join(", "))];
    if !study.verdicts.is_sound() {
        let why: Vec<&str> = study.verdicts.iter().map(Verdict::explain).collect();
        notes.push(format!("Of most points: {}.", why.join("; ")));
    }
    notes
}
