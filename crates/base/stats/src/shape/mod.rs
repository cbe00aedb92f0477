//! The shape of a rate over time: does it hold, drift, wave, step or stall?
//!
//! Purpose: name what an average would hide, with its numbers, and take it out of the noise so that
//! the interval of the mean is that of the noise alone.
//! Method: stalls are found first and set aside. Then, greedily, whichever significant shape
//! explains most (a line, a change of level, a periodic wave) joins a common least-squares fit,
//! until nothing significant is left.
//! Invariant: white and moderately autocorrelated noise raises a false alarm in at most 2 % of
//! series. It judges one series alone and does not know what caused a shape.

#[cfg(test)]
mod detection;
mod drift;
mod stall;
mod step;
mod wave;

use serde::{Deserialize, Serialize};

use crate::least_squares::{Fit, fit};
use crate::noise::{Taken, mean};
use crate::{Verdict, Verdicts};

pub(crate) use stall::{find as find_stalls, median};

/// Lines, steps and harmonics taken out of one series at most.
const PARTS_MAX: usize = 12;
/// Size relative to the mean from which a shape makes a figure not steady.
const MATERIAL: f64 = 0.05;
/// A fall to below this share of the level before is a burst allowance running out.
const BURST_FALL: f64 = 0.8;
/// Share of the window that the higher level of a burst must have lasted.
const BURST_SHARE_MIN: f64 = 0.05;

/// One thing that a rate did beside being noisy. Levels and sizes are in the unit of the slices,
/// times are slice indexes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "shape")]
pub enum Shape {
    /// It rose or fell evenly.
    Drift {
        /// Change from the first slice to the last; negative when falling.
        change: f64,
    },
    /// It went up and down with a period.
    Wave {
        /// Slices per cycle.
        period_slices: f64,
        /// Half of the distance from trough to crest.
        amplitude: f64,
    },
    /// Its level changed at once and stayed.
    Step {
        /// First slice of the new level.
        at: usize,
        /// Mean level since the step before, or since the start.
        before: f64,
        /// Mean level until the next step, or to the end.
        after: f64,
    },
    /// It was near zero for a while.
    Stall {
        /// First slice of the stall.
        at: usize,
        /// How long it lasted.
        slices: usize,
    },
}

/// Everything that a rate did beside being noisy; no shapes means steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// Mean over the whole window, what sizes are compared with.
    pub level: f64,
    /// Slices in the window.
    pub slices: usize,
    /// The shapes found, stalls first, then the strongest first.
    pub shapes: Vec<Shape>,
}

impl Steadiness {
    /// Finds the shapes in a rate given as values per slice of equal width.
    pub fn of(slices: &[f64]) -> Self {
        decompose(slices, mean(slices)).steadiness
    }

    /// Whether no shape matters: each is below 5 % of the mean, and nothing stalled.
    pub fn is_steady(&self) -> bool {
        self.shapes.iter().all(|shape| self.relative_size(shape) < MATERIAL)
    }

    /// The size of a shape over the mean: change of a drift or step, amplitude of a wave; 1 for a
    /// stall. Infinite when the mean is 0.
    pub fn relative_size(&self, shape: &Shape) -> f64 {
        let size = match *shape {
            Shape::Drift { change } => change,
            Shape::Wave { amplitude, .. } => amplitude,
            Shape::Step { before, after, .. } => after - before,
            Shape::Stall { .. } => return 1.0,
        };
        if size == 0.0 { 0.0 } else { (size / self.level).abs() }
    }

    /// The step at which a burst allowance ran out: a level that held for at least 5 % of the
    /// window fell by 20 % or more and did not come back.
    pub fn burst(&self) -> Option<Shape> {
        let lasted = (self.slices as f64 * BURST_SHARE_MIN) as usize;
        let mut steps: Vec<Shape> = self
            .shapes
            .iter()
            .copied()
            .filter(|shape| matches!(shape, Shape::Step { .. }))
            .collect();
        steps.sort_by_key(Shape::at);
        steps.iter().enumerate().find_map(|(index, shape)| match *shape {
            Shape::Step { at, before, after } => {
                let stays = |later: &Shape| {
                    matches!(later, Shape::Step { after, .. } if *after < BURST_FALL * before)
                };
                let fell = after < BURST_FALL * before && before > 0.0;
                (fell && at >= lasted && steps[index..].iter().all(stays)).then_some(*shape)
            }
            _ => None,
        })
    }

    /// `not_steady` and `burst_limited`, as far as they apply.
    pub fn verdicts(&self) -> Verdicts {
        let not_steady = (!self.is_steady()).then_some(Verdict::NotSteady);
        let burst = self.burst().map(|_| Verdict::BurstLimited);
        not_steady.into_iter().chain(burst).collect()
    }
}

impl Shape {
    /// The slice where it begins; 0 for what spans the window.
    pub fn at(&self) -> usize {
        match *self {
            Shape::Step { at, .. } | Shape::Stall { at, .. } => at,
            Shape::Drift { .. } | Shape::Wave { .. } => 0,
        }
    }
}

/// A series taken apart.
pub(crate) struct Decomposed {
    pub(crate) steadiness: Steadiness,
    /// What no shape explains, of mean 0 (about); stalls stay in it.
    pub(crate) noise: Vec<f64>,
    /// What was taken out with the shapes.
    pub(crate) taken: Taken,
    /// By how much waves cut off in mid-cycle lift the mean of the window above their own mean.
    pub(crate) cut_wave: f64,
}

/// What the fit holds so far.
#[derive(Default)]
struct Model {
    /// Leaves lines and waves out of account.
    steps_only: bool,
    drift: bool,
    cuts: Vec<usize>,
    waves: Vec<wave::Wave>,
}

/// What may join the model next, and the sum of squares it explains.
enum Candidate {
    Drift,
    Cut(usize),
    /// All cuts, the known ones included.
    Staircase(Vec<usize>),
    Line(wave::Line),
}

/// Takes a series apart; sizes are later compared with `level`.
pub(crate) fn decompose(slices: &[f64], level: f64) -> Decomposed {
    let stalls = stall::find(slices);
    let mut alive = slices.to_vec();
    if !stalls.is_empty() {
        let usual = median(slices.to_vec());
        stalls.iter().for_each(|run| alive[run.at..run.at + run.slices].fill(usual));
    }
    let (model, fitted) = explain(&alive);
    let mut shapes: Vec<Shape> =
        stalls.iter().map(|run| Shape::Stall { at: run.at, slices: run.slices }).collect();
    shapes.extend(model.shapes(&alive, &fitted));
    let cut_wave = mean(&alive) - fitted.coefficients[0];
    let mut noise = fitted.residual;
    noise
        .iter_mut()
        .zip(slices.iter().zip(&alive))
        .for_each(|(left, (was, put))| *left += was - put);
    let steadiness = Steadiness { level, slices: slices.len(), shapes };
    Decomposed { steadiness, noise, taken: model.taken(), cut_wave }
}

/// The model of a series, and its fit. A staircase looks like a line at first and a long dip like a
/// wave, so where one of these was found, steps alone are tried too.
fn explain(alive: &[f64]) -> (Model, Fit) {
    let (model, fitted) = grow(alive, Model::default());
    if !model.drift && model.waves.is_empty() {
        return (model, fitted);
    }
    let (staircase, steps) = grow(alive, Model { steps_only: true, ..Model::default() });
    if staircase.criterion(&steps) < model.criterion(&fitted) {
        return (staircase, steps);
    }
    (model, fitted)
}

/// Lets a model take in whatever is significant, the strongest first.
fn grow(alive: &[f64], mut model: Model) -> (Model, Fit) {
    let mut fitted = fit(alive, &model.columns(alive.len()));
    for _ in 0..PARTS_MAX {
        let Some(candidate) = model.next(&fitted.residual) else { break };
        if !model.add(candidate, alive.len()) {
            break;
        }
        fitted = fit(alive, &model.columns(alive.len()));
    }
    (model, fitted)
}

impl Model {
    /// Bayes's information criterion (Schwarz 1978); a step counts for its place too.
    fn criterion(&self, fitted: &Fit) -> f64 {
        let slices = fitted.residual.len() as f64;
        let squares: f64 = fitted.residual.iter().map(|left| left * left).sum();
        let parameters = fitted.coefficients.len() + self.cuts.len();
        slices * (squares.max(f64::MIN_POSITIVE) / slices).ln() + parameters as f64 * slices.ln()
    }

    /// What the fit takes out of the noise.
    fn taken(&self) -> Taken {
        Taken {
            slow: self.slow_parameters(),
            frequencies: self.waves.iter().flat_map(wave::Wave::frequencies).collect(),
        }
    }

    /// Mean, line and steps.
    fn slow_parameters(&self) -> usize {
        1 + usize::from(self.drift) + self.cuts.len()
    }

    /// The significant candidate that explains most of what is left.
    fn next(&self, left: &[f64]) -> Option<Candidate> {
        let taken = self.taken();
        let drift =
            if self.drift || self.steps_only { None } else { drift::explained(left, &taken) };
        let split = step::best_split(left, &self.cuts, &taken);
        let line = if self.steps_only { None } else { wave::find(left) };
        let candidates = [
            drift.map(|explained| (explained, Candidate::Drift)),
            split.map(|split| (split.explained, Candidate::Cut(split.at))),
            line.map(|line| (line.explained, Candidate::Line(line))),
        ];
        let best = candidates.into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, candidate)| candidate)
            .or_else(|| step::best_staircase(left, &self.cuts, &taken).map(Candidate::Staircase))
    }

    /// Takes a candidate in; whether that changed the model.
    fn add(&mut self, candidate: Candidate, slices: usize) -> bool {
        match candidate {
            Candidate::Drift => self.drift = true,
            Candidate::Staircase(cuts) => self.cuts = cuts,
            Candidate::Line(line) => {
                if self.waves.iter_mut().any(|wave| wave.take_in(&line, slices)) {
                    return true;
                }
                let new = wave::Wave::new(&line);
                if self.waves.iter().any(|wave| wave.is_near(&new, slices)) {
                    return false;
                }
                self.waves.push(new);
            }
            Candidate::Cut(at) => {
                self.cuts.push(at);
                self.cuts.sort_unstable();
            }
        }
        true
    }

    /// Columns of the fit: the mean, the line, the steps, the waves. All but the first and the
    /// waves have mean 0, so that the first coefficient is the mean without cut waves.
    fn columns(&self, slices: usize) -> Vec<Vec<f64>> {
        let mut columns = vec![vec![1.0; slices]];
        if self.drift {
            columns.push(drift::column(slices));
        }
        columns.extend(self.cuts.iter().map(|&at| step::column(slices, at)));
        columns.extend(self.waves.iter().flat_map(|wave| wave.columns(slices)));
        columns
    }

    /// The shapes with their numbers.
    fn shapes(&self, alive: &[f64], fitted: &Fit) -> Vec<Shape> {
        let mut shapes = Vec::new();
        if self.drift {
            shapes.push(Shape::Drift { change: fitted.coefficients[1] });
        }
        let edges: Vec<usize> =
            [0].into_iter().chain(self.cuts.iter().copied()).chain([alive.len()]).collect();
        shapes.extend(edges.windows(3).map(|edge| Shape::Step {
            at: edge[1],
            before: mean(&alive[edge[0]..edge[1]]),
            after: mean(&alive[edge[1]..edge[2]]),
        }));
        let mut first = self.slow_parameters();
        for wave in &self.waves {
            let coefficients = &fitted.coefficients[first..first + wave.width()];
            first += wave.width();
            let amplitude = wave.amplitude(coefficients);
            shapes.push(Shape::Wave { period_slices: wave.period_slices(), amplitude });
        }
        shapes
    }
}
