//! Log ratios split into cells, replicates and noise.
//!
//! Purpose: the variances of a contrast's mean that each part would give.
//! Method: with `w = 1 / (cells * replicates in the cell)` the mean is the sum of `w * ratio`. Cell
//! and replicate effects are fitted together by least squares (alternating means, which converges
//! to the same), what is left is noise. On a full grid the variances are the mean squares of the
//! two-way analysis of variance over the number of ratios.
//! Invariant: sums run in the order of cells and replicates, so the order given changes nothing.

use std::collections::BTreeMap;

use super::Seen;

/// Rounds of alternating means at most; a grid with few holes needs fewer than 20.
const ROUNDS_MAX: usize = 200;

/// A ratio with the indexes of its cell and its replicate.
#[derive(Clone, Copy, Debug)]
struct IndexedRatio {
    cell: usize,
    replicate: usize,
    value: f64,
}

/// What a contrast is made from. Variances are those of its mean.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Mean of the means of the cells.
    pub(super) mean: f64,
    pub(super) cell_means: Vec<f64>,
    replicate_count: usize,
    /// Ratios in all.
    pub(super) ratios: usize,
    /// If cells are the units.
    pub(super) variance_cells: f64,
    /// If replicates are the units.
    pub(super) variance_replicates: f64,
    /// If every ratio is a unit, from the noise that is left.
    pub(super) variance_noise: f64,
    /// The part of `variance_replicates` that noise makes; all of `variance_noise` on a full grid.
    pub(super) variance_noise_replicates: f64,
    /// Degrees of freedom of the noise; 0 when nothing is left.
    pub(super) noise_freedom: f64,
    /// If every ratio is a unit, from all differences.
    pub(super) variance_pooled: f64,
    /// Half width that the figures' own intervals ask for at least.
    pub(super) half_width_min: f64,
}

impl Layout {
    /// `None` without ratios.
    pub(super) fn of(seen: &[Seen]) -> Option<Self> {
        if seen.is_empty() {
            return None;
        }
        let mut sorted = seen.to_vec();
        sorted.sort_by_key(|one| (one.cell, one.replicate));
        let cells = indexes(sorted.iter().map(|one| one.cell));
        let replicates = indexes(sorted.iter().map(|one| one.replicate));
        let entries: Vec<IndexedRatio> = sorted
            .iter()
            .map(|one| IndexedRatio {
                cell: cells[&one.cell],
                replicate: replicates[&one.replicate],
                value: one.value,
            })
            .collect();
        let per_cell = counts(&entries, cells.len(), |entry| entry.cell);
        let cell_means = means(&entries, &per_cell, |entry| entry.cell, |entry| entry.value);
        let weight = |cell: usize| 1.0 / (cells.len() as f64 * per_cell[cell]);
        let weights: Vec<f64> = entries.iter().map(|entry| weight(entry.cell)).collect();
        let squares = sorted.iter().zip(&weights).map(|(one, w)| one.square_min * w * w);
        let mut layout = Self {
            mean: cell_means.iter().sum::<f64>() / cells.len() as f64,
            cell_means,
            replicate_count: replicates.len(),
            ratios: entries.len(),
            variance_cells: 0.0,
            variance_replicates: 0.0,
            variance_noise: 0.0,
            variance_noise_replicates: 0.0,
            noise_freedom: 0.0,
            variance_pooled: 0.0,
            half_width_min: squares.sum::<f64>().sqrt(),
        };
        layout.set_variances(&entries, &weights);
        Some(layout)
    }

    pub(super) fn cells(&self) -> usize {
        self.cell_means.len()
    }

    pub(super) fn replicates(&self) -> usize {
        self.replicate_count
    }

    fn set_variances(&mut self, entries: &[IndexedRatio], weights: &[f64]) {
        let weight_squares = sum_of_squares(weights);
        let (cells, ratios) = (self.cells() as f64, entries.len() as f64);
        let around: f64 = self.cell_means.iter().map(|mean| (mean - self.mean).powi(2)).sum();
        self.variance_cells = around / (cells * (cells - 1.0).max(1.0));
        let all: f64 = entries.iter().map(|entry| (entry.value - self.mean).powi(2)).sum();
        self.variance_pooled = all / (ratios - 1.0).max(1.0) * weight_squares;

        let additive = Additive::fit(entries, self.cells(), self.replicate_count);
        let parameters = self.cells() + self.replicate_count - additive.parts;
        self.noise_freedom = entries.len().saturating_sub(parameters) as f64;
        let noise = additive.squares_left / self.noise_freedom.max(1.0);
        self.variance_noise = noise * weight_squares;

        let common = Common::of(entries, &self.cell_means, self.replicate_count);
        self.variance_replicates = common.factor * common.squares;
        self.variance_noise_replicates = common.factor * common.squares_of_noise * noise;
    }
}

/// What replicates have in common over cells, seen as `S[r]`: the weighted sum, over the cells of
/// replicate r, of the distance from the cell's mean. All three follow from the weights and from
/// where the holes are.
struct Common {
    /// Sum of the squares of S.
    squares: f64,
    /// What noise of variance 1 adds to it.
    squares_of_noise: f64,
    /// Variance of the contrast's mean per unit of `squares`, for effects common to a replicate.
    factor: f64,
}

impl Common {
    fn of(entries: &[IndexedRatio], cell_means: &[f64], replicates: usize) -> Self {
        let per_cell = counts(entries, cell_means.len(), |entry| entry.cell);
        let (mut sums, mut shares) = (vec![0.0; replicates], vec![0.0; replicates]);
        // How S[row] answers to an effect of replicate `column`.
        let mut answers = vec![vec![0.0; replicates]; replicates];
        let mut squares_of_noise = 0.0;
        for cell in entries.chunk_by(|one, other| one.cell == other.cell) {
            for entry in cell {
                let n = per_cell[entry.cell];
                let weight = 1.0 / (n * cell_means.len() as f64);
                shares[entry.replicate] += weight;
                sums[entry.replicate] += weight * (entry.value - cell_means[entry.cell]);
                squares_of_noise += weight * weight * (1.0 - 1.0 / n);
                answers[entry.replicate][entry.replicate] += weight;
                cell.iter().for_each(|other| {
                    answers[entry.replicate][other.replicate] -= weight / n;
                });
            }
        }
        let answer = sum_of_squares(answers.iter().flatten());
        let factor = if answer > 1e-12 { sum_of_squares(&shares) / answer } else { 0.0 };
        Self { squares: sum_of_squares(&sums), squares_of_noise, factor }
    }
}

fn sum_of_squares<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().map(|value| value * value).sum()
}

/// Cell effects and replicate effects fitted together.
struct Additive {
    /// Sum of squares that is left.
    squares_left: f64,
    /// Parts of the grid that no ratio links; 1 is a linked grid.
    parts: usize,
}

impl Additive {
    fn fit(entries: &[IndexedRatio], cells: usize, replicates: usize) -> Self {
        let per_cell = counts(entries, cells, |entry| entry.cell);
        let per_replicate = counts(entries, replicates, |entry| entry.replicate);
        let (mut of_cell, mut of_replicate) = (vec![0.0; cells], vec![0.0; replicates]);
        for _ in 0..ROUNDS_MAX {
            let left = |entry: &IndexedRatio| entry.value - of_replicate[entry.replicate];
            of_cell = means(entries, &per_cell, |entry| entry.cell, left);
            let left = |entry: &IndexedRatio| entry.value - of_cell[entry.cell];
            let next = means(entries, &per_replicate, |entry| entry.replicate, left);
            let moved = next.iter().zip(&of_replicate).map(|(a, b)| (a - b).abs());
            let is_settled = moved.fold(0.0, f64::max) < 1e-14;
            of_replicate = next;
            if is_settled {
                break;
            }
        }
        let left = |entry: &IndexedRatio| {
            entry.value - of_cell[entry.cell] - of_replicate[entry.replicate]
        };
        let squares_left = entries.iter().map(|entry| left(entry).powi(2)).sum();
        let parts = parts(entries, cells, replicates);
        Self { squares_left, parts }
    }
}

/// How many parts of the grid hang together.
fn parts(entries: &[IndexedRatio], cells: usize, replicates: usize) -> usize {
    let mut label: Vec<usize> = (0..cells + replicates).collect();
    for entry in entries {
        let (one, other) = (label[entry.cell], label[cells + entry.replicate]);
        label.iter_mut().filter(|at| **at == other).for_each(|at| *at = one);
    }
    label.sort_unstable();
    label.dedup();
    label.len()
}

/// The index of each different key, in order.
fn indexes<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut found: BTreeMap<K, usize> = keys.map(|key| (key, 0)).collect();
    found.values_mut().enumerate().for_each(|(at, index)| *index = at);
    found
}

fn counts(
    entries: &[IndexedRatio],
    groups: usize,
    group: impl Fn(&IndexedRatio) -> usize,
) -> Vec<f64> {
    let mut found = vec![0.0; groups];
    entries.iter().for_each(|entry| found[group(entry)] += 1.0);
    found
}

/// Mean of something in each group.
fn means(
    entries: &[IndexedRatio],
    counts: &[f64],
    group: impl Fn(&IndexedRatio) -> usize,
    value: impl Fn(&IndexedRatio) -> f64,
) -> Vec<f64> {
    let mut sums = vec![0.0; counts.len()];
    entries.iter().for_each(|entry| sums[group(entry)] += value(entry));
    sums.iter().zip(counts).map(|(sum, count)| sum / count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[(usize, u32, f64)]) -> Vec<Seen> {
        let one = |&(cell, replicate, value)| Seen { cell, replicate, value, square_min: 0.0 };
        values.iter().map(one).collect()
    }

    #[test]
    fn a_full_grid_gives_the_mean_squares_of_the_books() {
        // Cells at 0 and 4, replicates at 0 and 2, and +-1 that neither explains.
        let grid = seen(&[(0, 0, 1.0), (0, 1, 1.0), (1, 0, 3.0), (1, 1, 7.0)]);
        let found = Layout::of(&grid).unwrap();
        assert_eq!((found.mean, found.noise_freedom), (3.0, 1.0));
        for (got, square) in [
            (found.variance_cells, 16.0),
            (found.variance_replicates, 4.0),
            (found.variance_noise, 4.0),
            (found.variance_noise_replicates, 4.0),
            (found.variance_pooled, 24.0 / 3.0),
        ] {
            assert!((got - square / 4.0).abs() < 1e-12, "{got} for {square} / 4: {found:?}");
        }
    }

    #[test]
    fn holes_leave_an_additive_grid_without_noise() {
        let value = |cell: usize, replicate: u32| cell as f64 + 3.0 * f64::from(replicate * 2 % 3);
        let mut grid: Vec<(usize, u32, f64)> = (0..5)
            .flat_map(|cell| (0..4).map(move |at| (cell, at, value(cell, at))))
            .filter(|&(cell, at, _)| !(cell + at as usize).is_multiple_of(4))
            .collect();
        let found = Layout::of(&seen(&grid)).unwrap();
        assert!(found.variance_noise < 1e-20, "{found:?}");
        assert_eq!(found.noise_freedom, grid.len() as f64 - 8.0);
        grid.reverse();
        assert_eq!(Layout::of(&seen(&grid)).unwrap().mean, found.mean);
    }

    #[test]
    fn parts_that_nothing_links_have_no_noise_to_tell() {
        let found = Layout::of(&seen(&[(0, 0, 1.0), (1, 1, 2.0), (2, 2, 4.0)])).unwrap();
        assert_eq!((found.noise_freedom, found.cells(), found.replicates()), (0.0, 3, 3));
    }
}
