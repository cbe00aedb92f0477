//! The shape of a rate over time: does it hold, drift, swing, step or stall?
//!
//! Purpose: name what an average would hide, with its numbers, and take it out of the noise so that
//! the interval of the mean covers the noise alone.
//! Method: stalls are found first and set aside. Then, greedily, whichever significant shape
//! explains most (a line, a change of level) joins a common least-squares fit, until nothing
//! significant is left. A line is tested by Student's t against the long-run variance of what is
//! left when it is taken out, so that autocorrelation is not taken for a drift. Levels are found by
//! binary segmentation: in each segment between known steps the split with the largest likelihood
//! ratio of two levels against one (CUSUM scaled by its spread; Sen and Srivastava 1975). A slice
//! is near zero below a tenth of the median, and a run of such slices is a stall when noise alone
//! would hardly make it: with `p` the share of near-zero slices outside the run and `q` the chance
//! that one follows another there, a run of `L` is expected `n p q^(L-1)` times; a single slice
//! must besides lie far below the usual spread. A rate swings where the longest batch means that
//! leave thirty still go up and down together: a wave of few periods, or noise too slow for the
//! window. A wave of many periods is noise, and batch means see its correlation.
//! Invariant: white and moderately autocorrelated noise raises a false alarm in at most 2 % of
//! series. It judges one series alone and does not know what caused a shape.

#[cfg(test)]
mod detection;

use crate::noise::{BATCHES_MIN, batch_means, lag1, mean, mean_error};
use crate::student::is_beyond;
use crate::{Verdict, Verdicts};

/// Lines and steps taken out of one series at most.
const PARTS_MAX: usize = 12;
/// Size relative to the mean from which a shape makes a figure not steady.
const MATERIAL: f64 = 0.05;
/// A fall to below this share of the level before is a burst allowance running out.
const BURST_FALL: f64 = 0.8;
/// Share of the window that the higher level of a burst must have lasted.
const BURST_SHARE_MIN: f64 = 0.05;
/// Chance of a false alarm that the test for a line may have.
const LINE_ALPHA: f64 = 0.002;
/// Standard errors by which the correlation of batch means must lie above 0 in a swing.
const SWING_ERRORS: f64 = 4.0;

/// One deviation of a rate from a constant level, apart from noise. Levels and sizes are in the
/// unit of the slices, times are slice indexes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// It rose or fell evenly.
    Drift {
        /// Change from the first slice to the last; negative when falling.
        change: f64,
    },
    /// It went up and down, slowly for the window.
    Swing {
        /// Half of the distance from trough to crest, were it a sine.
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

/// Every deviation of a rate from a constant level, apart from noise; no shapes means steady.
#[derive(Clone, Debug, PartialEq)]
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

    /// The size of a shape over the mean; 1 for a stall. Infinite when the mean is 0.
    pub fn relative_size(&self, shape: &Shape) -> f64 {
        let size = match *shape {
            Shape::Drift { change } => change,
            Shape::Swing { amplitude } => amplitude,
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
            Shape::Drift { .. } | Shape::Swing { .. } => 0,
        }
    }
}

/// A series taken apart.
pub(crate) struct Decomposition {
    pub(crate) steadiness: Steadiness,
    /// What no shape explains, of mean 0 (about); stalls stay in it.
    pub(crate) noise: Vec<f64>,
    /// Parameters that were taken out with the shapes.
    pub(crate) taken: usize,
}

/// Takes a series apart; sizes are later compared with `level`.
pub(crate) fn decompose(slices: &[f64], level: f64) -> Decomposition {
    let stalls = find_stalls(slices);
    let mut alive = slices.to_vec();
    if !stalls.is_empty() {
        let usual = median(slices.to_vec());
        stalls.iter().for_each(|run| alive[run.at..run.at + run.slices].fill(usual));
    }
    let (model, fitted) = explain(&alive);
    let mut shapes: Vec<Shape> =
        stalls.iter().map(|run| Shape::Stall { at: run.at, slices: run.slices }).collect();
    shapes.extend(model.shapes(&alive, &fitted));
    shapes.extend(swing(&fitted.residual).map(|amplitude| Shape::Swing { amplitude }));
    let put_back = slices.iter().zip(&alive).map(|(was, put)| was - put);
    let noise = fitted.residual.iter().zip(put_back).map(|(left, back)| left + back).collect();
    let steadiness = Steadiness { level, slices: slices.len(), shapes };
    Decomposition { steadiness, noise, taken: model.taken() }
}

/// The amplitude of what goes up and down slowly in the noise that is left of a series.
fn swing(noise: &[f64]) -> Option<f64> {
    let batches = batch_means(noise, (noise.len() / BATCHES_MIN).max(1));
    let count = batches.len() as f64;
    let is_slow = lag1(&batches) * count.sqrt() > SWING_ERRORS;
    let square: f64 = batches.iter().map(|batch| batch * batch).sum();
    is_slow.then(|| (2.0 * square / count).sqrt())
}

/// The model of a series, and its fit. A staircase looks like a line at first, so where one was
/// found, steps alone are tried too.
fn explain(alive: &[f64]) -> (Model, Fit) {
    let (model, fitted) = grow(alive, Model::default());
    if !model.drift {
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
        if !model.take_next(&fitted.residual) {
            break;
        }
        fitted = fit(alive, &model.columns(alive.len()));
    }
    (model, fitted)
}

/// What the fit holds so far.
#[derive(Default)]
struct Model {
    /// Leaves the line out of account.
    steps_only: bool,
    drift: bool,
    cuts: Vec<usize>,
}

impl Model {
    /// Bayes's information criterion (Schwarz 1978); a step counts for its place too.
    fn criterion(&self, fitted: &Fit) -> f64 {
        let slices = fitted.residual.len() as f64;
        let squares: f64 = fitted.residual.iter().map(|left| left * left).sum();
        let parameters = fitted.coefficients.len() + self.cuts.len();
        slices * (squares.max(f64::MIN_POSITIVE) / slices).ln() + parameters as f64 * slices.ln()
    }

    /// Mean, line and steps, which the fit takes out of the noise.
    fn taken(&self) -> usize {
        1 + usize::from(self.drift) + self.cuts.len()
    }

    /// Takes in what is significant and explains most of what is left; whether there is any.
    fn take_next(&mut self, left: &[f64]) -> bool {
        let taken = self.taken();
        let is_line_open = !self.drift && !self.steps_only;
        let line = is_line_open.then(|| line_explains(left, taken)).flatten();
        match (line, best_split(left, &self.cuts, taken)) {
            (Some(line), split) if split.is_none_or(|split| split.explained < line) => {
                self.drift = true;
            }
            (_, Some(split)) => {
                self.cuts.push(split.at);
                self.cuts.sort_unstable();
            }
            _ => match best_staircase(left, &self.cuts, taken) {
                Some(cuts) => self.cuts = cuts,
                None => return false,
            },
        }
        true
    }

    /// Columns of the fit: the mean, and with mean 0 the line and the steps.
    fn columns(&self, slices: usize) -> Vec<Vec<f64>> {
        let line = self.drift.then(|| line_column(slices));
        let steps = self.cuts.iter().map(|&at| step_column(slices, at));
        [vec![1.0; slices]].into_iter().chain(line).chain(steps).collect()
    }

    /// The shapes with their numbers.
    fn shapes(&self, alive: &[f64], fitted: &Fit) -> Vec<Shape> {
        let drift = self.drift.then(|| Shape::Drift { change: fitted.coefficients[1] });
        let edges: Vec<usize> =
            [0].into_iter().chain(self.cuts.iter().copied()).chain([alive.len()]).collect();
        let steps = edges.windows(3).map(|edge| Shape::Step {
            at: edge[1],
            before: mean(&alive[edge[0]..edge[1]]),
            after: mean(&alive[edge[1]..edge[2]]),
        });
        drift.into_iter().chain(steps).collect()
    }
}

/// Sum of squares that a line explains in a series of mean 0, if it is significant. So many
/// parameters were taken from the series before.
fn line_explains(series: &[f64], taken: usize) -> Option<f64> {
    let line = line_column(series.len());
    let square = dot(&line, &line);
    if square == 0.0 {
        return None;
    }
    let slope = dot(&line, series) / square;
    let left: Vec<f64> = series.iter().zip(&line).map(|(value, at)| value - slope * at).collect();
    let error = mean_error(&left, taken + 1)?;
    let slope_error = (error.long_run_variance(series.len()) / square).sqrt();
    is_beyond(slope / slope_error, LINE_ALPHA, error.freedom).then_some(slope * slope * square)
}

/// The line: one unit of rise over the whole window, mean 0.
fn line_column(slices: usize) -> Vec<f64> {
    (0..slices).map(|at| (at as f64 + 0.5) / slices as f64 - 0.5).collect()
}

/// Chance of a false alarm at one split; a series has some twenty splits that differ much.
const STEP_ALPHA: f64 = 0.000_1;
/// Steps that are looked for together when none shows alone.
const TOGETHER_MAX: usize = 4;
/// Fewest standard errors that each of them must measure.
const TOGETHER_ERRORS: f64 = 6.0;
/// Share of the sum of squares that they must explain.
const TOGETHER_EXPLAIN: f64 = 0.4;
/// A level must last this many slices at least.
const LEVEL_SLICES_MIN: usize = 6;
/// And this share of the window.
const LEVEL_SHARE_MIN: f64 = 0.03;

/// A split that would be a new step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    /// First slice of the new level.
    at: usize,
    /// Sum of squares it explains.
    explained: f64,
}

/// The best significant split of a series in addition to the cuts known already (sorted).
fn best_split(series: &[f64], cuts: &[usize], taken: usize) -> Option<Split> {
    let best = strongest_split(series, cuts)?;
    let mut edges = cuts.to_vec();
    edges.push(best.at);
    edges.sort_unstable();
    let error = mean_error(&less_levels(series, &edges), taken + 1)?;
    let t = (best.explained / error.long_run_variance(series.len())).sqrt();
    is_beyond(t, STEP_ALPHA, error.freedom).then_some(best)
}

/// New cuts that only show together: with one step of a staircase or one edge of a long dip taken
/// out, the rest still looks like slow noise and hides it. They must explain much of the series and
/// every one must be far beyond the noise that is left.
fn best_staircase(series: &[f64], cuts: &[usize], taken: usize) -> Option<Vec<usize>> {
    let total: f64 = series.iter().map(|value| value * value).sum();
    let (mut edges, mut left) = (cuts.to_vec(), series.to_vec());
    for more in 1..=TOGETHER_MAX {
        edges.push(strongest_split(&left, &edges)?.at);
        edges.sort_unstable();
        left = less_levels(series, &edges);
        let unexplained: f64 = left.iter().map(|value| value * value).sum();
        if more < 2 || unexplained > (1.0 - TOGETHER_EXPLAIN) * total {
            continue;
        }
        let error = mean_error(&left, taken + more)?;
        let t = smallest_edge(series, &edges, error.long_run_variance(series.len()));
        if t > TOGETHER_ERRORS && is_beyond(t, STEP_ALPHA, error.freedom) {
            return Some(edges);
        }
    }
    None
}

/// The split that explains most, of all segments between the cuts.
fn strongest_split(series: &[f64], cuts: &[usize]) -> Option<Split> {
    let shortest = LEVEL_SLICES_MIN.max((series.len() as f64 * LEVEL_SHARE_MIN) as usize);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([series.len()]);
    starts
        .zip(ends)
        .filter_map(|(start, end)| split_segment(series, start, end, shortest))
        .max_by(|a, b| a.explained.total_cmp(&b.explained))
}

/// The smallest of the edges in standard errors, `variance` being that of a slice.
fn smallest_edge(series: &[f64], edges: &[usize], variance: f64) -> f64 {
    let all: Vec<usize> =
        [0].into_iter().chain(edges.iter().copied()).chain([series.len()]).collect();
    let size = |edge: &[usize]| {
        let (before, after) = (&series[edge[0]..edge[1]], &series[edge[1]..edge[2]]);
        let spread = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
        (mean(after) - mean(before)).abs() / (variance * spread).sqrt()
    };
    all.windows(3).map(size).fold(f64::INFINITY, f64::min)
}

/// The series less the mean level of each segment between the edges.
fn less_levels(series: &[f64], edges: &[usize]) -> Vec<f64> {
    let ends = edges.iter().copied().chain([series.len()]);
    let mut left = Vec::with_capacity(series.len());
    for end in ends {
        let segment = &series[left.len()..end];
        let level = mean(segment);
        left.extend(segment.iter().map(|value| value - level));
    }
    left
}

/// The split of `start..end` that explains most, each part at least `shortest` long.
fn split_segment(series: &[f64], start: usize, end: usize, shortest: usize) -> Option<Split> {
    let segment = &series[start..end];
    if segment.len() < 2 * shortest {
        return None;
    }
    let (centre, total) = (mean(segment), segment.len() as f64);
    let (mut sum, mut best) = (0.0, Split { at: start, explained: 0.0 });
    for (index, value) in segment.iter().enumerate().take(segment.len() - shortest) {
        sum += value - centre;
        let before = index + 1;
        let explained = sum * sum * total / (before as f64 * (total - before as f64));
        if before >= shortest && explained > best.explained {
            best = Split { at: start + before, explained };
        }
    }
    (best.explained > 0.0).then_some(best)
}

/// 0 before the step, 1 from it on, less its mean.
fn step_column(slices: usize, at: usize) -> Vec<f64> {
    let share = (slices - at) as f64 / slices as f64;
    (0..slices).map(|slice| if slice < at { -share } else { 1.0 - share }).collect()
}

/// A slice below this share of the median is near zero.
const NEAR_ZERO: f64 = 0.1;
/// Expected number of such runs by chance above which a run is no stall.
const BY_CHANCE_MAX: f64 = 0.005;
/// Distance below the median, in robust standard deviations, that a single slice must have.
const SINGLE_DISTANCE: f64 = 6.0;

/// A run of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) at: usize,
    pub(crate) slices: usize,
}

/// Every stall, in order; none when the series is not positive on the whole.
pub(crate) fn find_stalls(slices: &[f64]) -> Vec<Run> {
    if slices.len() < 8 {
        return Vec::new();
    }
    let centre = median(slices.to_vec());
    if centre <= 0.0 {
        return Vec::new();
    }
    let near_zero: Vec<bool> = slices.iter().map(|&value| value < NEAR_ZERO * centre).collect();
    let runs = runs(&near_zero);
    if runs.is_empty() {
        return runs;
    }
    let spread = 1.4826 * median(slices.iter().map(|value| (value - centre).abs()).collect());
    if centre * (1.0 - NEAR_ZERO) > SINGLE_DISTANCE * spread {
        return runs;
    }
    let improbable =
        |run: &&Run| run.slices > 1 && by_chance(&runs, **run, slices.len()) < BY_CHANCE_MAX;
    runs.iter().filter(improbable).copied().collect()
}

/// Maximal runs of near-zero slices.
fn runs(near_zero: &[bool]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, _) in near_zero.iter().enumerate().filter(|(_, low)| **low) {
        match runs.last_mut() {
            Some(run) if run.at + run.slices == at => run.slices += 1,
            _ => runs.push(Run { at, slices: 1 }),
        }
    }
    runs
}

/// How many runs at least as long as `run` chance would make, judged by the other runs.
fn by_chance(runs: &[Run], run: Run, slices: usize) -> f64 {
    let others = runs.iter().filter(|other| **other != run);
    let (count, low) = others.fold((0, 0), |(n, sum), other| (n + 1, sum + other.slices));
    let usual = (slices - run.slices) as f64;
    let share = (low as f64 + 0.5) / (usual + 1.0);
    let follows = (low as f64 - f64::from(count) + 0.5) / (low as f64 + 1.0);
    usual * share * follows.max(share).powi(run.slices as i32 - 1)
}

/// The middle value; 0 of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// A least-squares fit: one coefficient per column, and what is left of the series.
struct Fit {
    coefficients: Vec<f64>,
    residual: Vec<f64>,
}

/// Fits `series` by `columns`, each as long as the series, by the normal equations. A column that
/// depends on the others gets the coefficient 0.
fn fit(series: &[f64], columns: &[Vec<f64>]) -> Fit {
    let size = columns.len();
    let mut normal: Vec<Vec<f64>> = columns
        .iter()
        .map(|row| {
            columns.iter().map(|column| dot(row, column)).chain([dot(row, series)]).collect()
        })
        .collect();
    for pivot in 0..size {
        eliminate(&mut normal, pivot);
    }
    let coefficients: Vec<f64> = (0..size)
        .map(|row| if normal[row][row] == 0.0 { 0.0 } else { normal[row][size] / normal[row][row] })
        .collect();
    let mut residual = series.to_vec();
    for (coefficient, column) in coefficients.iter().zip(columns) {
        residual.iter_mut().zip(column).for_each(|(left, value)| *left -= coefficient * value);
    }
    Fit { coefficients, residual }
}

/// Clears the pivot's column in every other row. The matrix is positive semidefinite, so the
/// diagonal serves as pivot; one that rounding left of a dependent column is set to 0.
fn eliminate(normal: &mut [Vec<f64>], pivot: usize) {
    let row = normal[pivot].clone();
    let largest = row.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    if row[pivot] <= 1e-10 * largest {
        normal.iter_mut().for_each(|other| other[pivot] = 0.0);
        return;
    }
    for (at, other) in normal.iter_mut().enumerate() {
        let factor = other[pivot] / row[pivot];
        if at != pivot && factor != 0.0 {
            other.iter_mut().zip(&row).for_each(|(value, above)| *value -= factor * above);
        }
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}
