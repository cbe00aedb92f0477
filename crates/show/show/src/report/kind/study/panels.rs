//! Points as small multiples: which factor is the axis, which ones make lines, which ones panels.
//!
//! Method: what lies between the device and the requests (file system, method, mount options) makes
//! lines, as long as they can be told apart; the workload (requests, block size) and every further
//! factor make panels. Invariant: a point is in a panel with its own levels, and nowhere twice for
//! the same axis.

use std::collections::{BTreeMap, BTreeSet};

use iostrata_plan::study::FactorLevels;
use iostrata_run::{StudyDocument, StudyPoint};

use super::levels::{is_workload, number, place, varying};
use super::naming::Naming;

/// Most lines of a panel.
const LINES_MAX: usize = 6;
/// Most panels that are shown openly when there are others of the same kind.
const OPEN_MAX: usize = 6;
/// Most rows of a panel without an axis.
const ROWS_MAX: usize = 12;
/// How a line looks, the same in every panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Its levels in words.
    pub(super) label: String,
    /// Which colour: the level of the first factor of the lines.
    pub(super) colour: usize,
    /// Which dash: the levels of the others.
    pub(super) dash: usize,
}

/// One line of a panel, or one group of its rows.
pub(super) struct PanelLine<'a> {
    /// Index into the looks.
    pub(super) look: usize,
    /// The points by rising level, with the level as a number; 0 without an axis.
    pub(super) points: Vec<(f64, &'a StudyPoint)>,
}

/// One panel.
pub(super) struct Panel<'a> {
    /// The levels that its points share, in words; empty where there is one panel only.
    pub(super) title: String,
    /// Its lines in the order of the looks.
    pub(super) lines: Vec<PanelLine<'a>>,
}

impl<'a> Panel<'a> {
    /// Its points, line by line.
    pub(super) fn points(&self) -> impl Iterator<Item = &'a StudyPoint> + '_ {
        self.lines.iter().flat_map(|line| line.points.iter().map(|(_, point)| *point))
    }
}

/// Panels that share an axis.
pub(super) struct Panels<'a> {
    /// The axis; absent for points that lie on none.
    pub(super) axis: Option<&'a FactorLevels>,
    /// How the lines look.
    pub(super) looks: Vec<Look>,
    /// The panels to be shown at once.
    pub(super) shown: Vec<Panel<'a>>,
    /// Panels of further levels of another axis.
    pub(super) folded: Vec<Panel<'a>>,
    /// What titles and lines leave out, since most points have it.
    pub(super) usual: Option<String>,
}

impl<'a> Panels<'a> {
    /// Every panel.
    pub(super) fn all(&self) -> impl Iterator<Item = &Panel<'a>> {
        self.shown.iter().chain(&self.folded)
    }
}

/// Every set of panels: one per axis, the axis with most points first, then the points that lie on
/// none.
pub(super) fn all_panels(study: &StudyDocument) -> Vec<Panels<'_>> {
    let axes = axes(study);
    let mut all = Vec::new();
    let mut rest: Vec<&StudyPoint> = study.points.iter().collect();
    for axis in &axes {
        let points = along(study, axis);
        rest.retain(|point| !points.iter().any(|one| one.id == point.id));
        if !points.is_empty() {
            all.push(panels(study, &points, Some(axis), &axes));
        }
    }
    all.sort_by_key(|one| {
        std::cmp::Reverse(one.all().map(|panel| panel.points().count()).sum::<usize>())
    });
    if !rest.is_empty() {
        all.push(panels(study, &rest, None, &axes));
    }
    all
}

/// The axes that the document speaks of, those of the workload aside; without any, factors of at
/// least three numbers.
fn axes(study: &StudyDocument) -> Vec<&FactorLevels> {
    let spoken_of = |factor: &&FactorLevels| {
        let of_load = !is_workload(&factor.factor);
        let has_curves = study.axes.iter().any(|axis| axis.factor == factor.factor);
        of_load && has_curves && factor.levels.len() > 1
    };
    let found: Vec<&FactorLevels> = study.factors.iter().filter(spoken_of).collect();
    if !found.is_empty() {
        return found;
    }
    study.factors.iter().filter(|factor| factor.is_curve()).collect()
}

/// A point's levels of every factor but one.
fn others(study: &StudyDocument, point: &StudyPoint, axis: &FactorLevels) -> Vec<usize> {
    let others = study.factors.iter().filter(|factor| factor.factor != axis.factor);
    others.map(|factor| place(point, factor)).collect()
}

/// The points that differ from another one in nothing but this axis.
fn along<'a>(study: &'a StudyDocument, axis: &FactorLevels) -> Vec<&'a StudyPoint> {
    let on_it = |point: &&StudyPoint| x_of(point, axis).is_some();
    let mut levels: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
    for point in study.points.iter().filter(on_it) {
        levels.entry(others(study, point, axis)).or_default().insert(place(point, axis));
    }
    let has_neighbours = |point: &&StudyPoint| {
        levels.get(&others(study, point, axis)).is_some_and(|levels| levels.len() > 1)
    };
    study.points.iter().filter(on_it).filter(has_neighbours).collect()
}

fn x_of(point: &StudyPoint, axis: &FactorLevels) -> Option<f64> {
    let level = super::levels::level(&point.levels, &axis.factor)?;
    number(&axis.factor, level)
}

fn panels<'a>(
    study: &'a StudyDocument,
    points: &[&'a StudyPoint],
    axis: Option<&'a FactorLevels>,
    axes: &[&FactorLevels],
) -> Panels<'a> {
    let is = |one: &FactorLevels, other: &FactorLevels| one.factor == other.factor;
    let free: Vec<&FactorLevels> = varying(study, points)
        .into_iter()
        .filter(|factor| !axis.is_some_and(|axis| is(axis, factor)))
        .collect();
    let lines_max = if axis.is_some() { LINES_MAX } else { ROWS_MAX };
    let by_line = line_factors(points, &free, axes, lines_max);
    let by_panel: Vec<&FactorLevels> =
        free.into_iter().filter(|factor| !by_line.iter().any(|line| is(line, factor))).collect();
    let levels: Vec<_> = points.iter().map(|point| point.levels.as_slice()).collect();
    let naming = [&by_line, &by_panel].map(|factors| Naming::of(&levels, factors));
    let looks = looks(points, &by_line, &naming[0]);
    let mut grouped: BTreeMap<Vec<usize>, Vec<&StudyPoint>> = BTreeMap::new();
    for point in points {
        grouped.entry(places(point, &by_panel)).or_default().push(point);
    }
    let usual = usual_places(points, &by_panel, axes);
    let (mut shown, mut folded) = (Vec::new(), Vec::new());
    let many = grouped.len() > OPEN_MAX;
    for (key, points) in grouped {
        let panel = panel(&points, axis, &by_line, &naming[1], &looks);
        let is_usual =
            key.iter().zip(&usual).all(|(place, usual)| usual.is_none_or(|u| u == *place));
        if many && !is_usual { folded.push(panel) } else { shown.push(panel) }
    }
    let looks = looks.into_iter().map(|(_, look)| look).collect();
    let usual: Vec<String> = naming.iter().filter_map(Naming::says).collect();
    let usual = (!usual.is_empty()).then(|| usual.join(" "));
    Panels { axis, looks, shown, folded, usual }
}

fn places(point: &StudyPoint, factors: &[&FactorLevels]) -> Vec<usize> {
    factors.iter().map(|factor| place(point, factor)).collect()
}

/// The factors that make lines: those of the system first, until there are too many lines.
fn line_factors<'a>(
    points: &[&StudyPoint],
    free: &[&'a FactorLevels],
    axes: &[&FactorLevels],
    most: usize,
) -> Vec<&'a FactorLevels> {
    let of_system = |factor: &&&FactorLevels| {
        let name = factor.factor.as_str();
        !is_workload(name) && !axes.iter().any(|axis| axis.factor == name)
    };
    let mut lines: Vec<&FactorLevels> = Vec::new();
    for factor in free.iter().filter(of_system) {
        let mut tried = lines.clone();
        tried.push(factor);
        let mut combinations: Vec<Vec<usize>> =
            points.iter().map(|point| places(point, &tried)).collect();
        combinations.sort();
        combinations.dedup();
        if combinations.len() <= most {
            lines = tried;
        }
    }
    lines
}

/// The combinations that make lines, each with its look.
fn looks(
    points: &[&StudyPoint],
    by_line: &[&FactorLevels],
    naming: &Naming<'_>,
) -> Vec<(Vec<usize>, Look)> {
    let mut found: BTreeMap<Vec<usize>, &StudyPoint> = BTreeMap::new();
    for point in points {
        found.entry(places(point, by_line)).or_insert(point);
    }
    let mut tails: Vec<Vec<usize>> = found.keys().map(|key| tail(key)).collect();
    tails.sort();
    tails.dedup();
    let look = |(key, point): (Vec<usize>, &StudyPoint)| {
        let label = naming.name(&point.levels);
        let label = if label.is_empty() { "all".to_owned() } else { label };
        let colour = key.first().copied().unwrap_or(0);
        let dash = tails.iter().position(|one| *one == tail(&key)).unwrap_or(0);
        (key, Look { label, colour, dash })
    };
    found.into_iter().map(look).collect()
}

fn tail(key: &[usize]) -> Vec<usize> {
    key.iter().skip(1).copied().collect()
}

/// Of every other axis the level that most points have: where it differs, a panel is folded.
fn usual_places(
    points: &[&StudyPoint],
    by_panel: &[&FactorLevels],
    axes: &[&FactorLevels],
) -> Vec<Option<usize>> {
    let usual = |factor: &&FactorLevels| {
        axes.iter().find(|axis| axis.factor == factor.factor)?;
        let mut count: BTreeMap<usize, usize> = BTreeMap::new();
        for point in points {
            *count.entry(place(point, factor)).or_default() += 1;
        }
        count
            .into_iter()
            .max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place)))
            .map(|most| most.0)
    };
    by_panel.iter().map(usual).collect()
}

fn panel<'a>(
    points: &[&'a StudyPoint],
    axis: Option<&FactorLevels>,
    by_line: &[&FactorLevels],
    by_panel: &Naming<'_>,
    looks: &[(Vec<usize>, Look)],
) -> Panel<'a> {
    let mut lines = Vec::new();
    for (look, (key, _)) in looks.iter().enumerate() {
        let mut on: Vec<(f64, &StudyPoint)> = points
            .iter()
            .filter(|point| places(point, by_line) == *key)
            .map(|point| (axis.and_then(|axis| x_of(point, axis)).unwrap_or(0.0), *point))
            .collect();
        on.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !on.is_empty() {
            lines.push(PanelLine { look, points: on });
        }
    }
    // A raw device has no files: the title takes them from a point that has.
    let fullest = points.iter().max_by_key(|point| point.levels.len());
    let title = fullest.map_or(String::new(), |point| by_panel.name(&point.levels));
    Panel { title, lines }
}
