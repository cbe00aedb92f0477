//! The least squares behind the scalability law.
//!
//! Method: with `f(N) = a + b u(N) + c v(N)`, where u and v are `N - 1` and `N (N - 1)` over their
//! largest, the law says `N / X = f`, so lambda, sigma and kappa are ratios of a, b and c. `a` is
//! stepped by its logarithm and so stays positive.
//! Invariant: f is positive at every sample, or there is no fit.

use crate::least_squares::fit;

/// Steps of Gauss-Newton at most; a good start needs about five.
const STEPS_MAX: usize = 60;
/// Halvings of one step at most.
const HALVINGS_MAX: usize = 40;
/// Least share that `a` must have of f at the lowest number of workers: below, one worker would do
/// more than 10,000 times its share there, and what it does is no longer known.
const SHARE_MIN: f64 = 1e-4;

/// One point of a throughput curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) workers: f64,
    pub(super) value: f64,
    /// Relative half width of its interval.
    pub(super) half_width: f64,
}

/// A fit of the law.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    pub(super) lambda: f64,
    pub(super) sigma: f64,
    pub(super) kappa: f64,
    /// Sum of the squared distances of the points' logarithms, in their own half widths.
    pub(super) squares: f64,
    /// Half widths of ln lambda, sigma and kappa that the samples' own half widths ask for; of all
    /// three parameters, also of those held at 0.
    pub(super) half_widths: [f64; 3],
}

/// The best fit with sigma and kappa at least 0; `None` when lambda is not determined.
pub(super) fn fit_bounded(samples: &[Sample]) -> Option<Fitted> {
    let problem = Problem::of(samples);
    let sets = [[true, true, true], [true, true, false], [true, false, true], [true, false, false]];
    let fits = sets.iter().filter_map(|&free| problem.solve(free));
    let allowed = fits.filter(|at| at[1] >= 0.0 && at[2] >= 0.0);
    let best =
        allowed.min_by(|one, other| problem.squares(one).total_cmp(&problem.squares(other)))?;
    // Only now: a fit that leaves lambda open must not make way for a worse one that does not.
    problem.is_determined(&best).then(|| problem.fitted(&best))?
}

/// The best fit without bounds; `None` when it breaks down.
pub(super) fn fit_free(samples: &[Sample]) -> Option<Fitted> {
    let problem = Problem::of(samples);
    let best = problem.solve([true; 3]).filter(|best| problem.is_determined(best))?;
    problem.fitted(&best)
}

/// Parameters `[ln a, b, c]`.
type Parameters = [f64; 3];

struct Problem {
    /// `[1, u, v]` of each sample.
    rows: Vec<[f64; 3]>,
    /// `N / X`, over its smallest.
    costs: Vec<f64>,
    half_widths: Vec<f64>,
    /// What u, v and the costs were divided by.
    scales: [f64; 3],
}

impl Problem {
    fn of(samples: &[Sample]) -> Self {
        let most = samples.iter().map(|sample| sample.workers).fold(1.0, f64::max);
        let cost = |sample: &Sample| sample.workers / sample.value;
        let least = samples.iter().map(cost).fold(f64::INFINITY, f64::min);
        let (u, v) = ((most - 1.0).max(1.0), (most * (most - 1.0)).max(1.0));
        let row = |sample: &Sample| {
            let more = sample.workers - 1.0;
            [1.0, more / u, sample.workers * more / v]
        };
        Self {
            rows: samples.iter().map(row).collect(),
            costs: samples.iter().map(|sample| cost(sample) / least).collect(),
            half_widths: samples.iter().map(|sample| sample.half_width).collect(),
            scales: [u, v, least],
        }
    }

    /// f at every sample; `None` when it is not positive somewhere.
    fn model(&self, at: &Parameters) -> Option<Vec<f64>> {
        let a = at[0].exp();
        let f = self.rows.iter().map(|row| a + at[1] * row[1] + at[2] * row[2]);
        f.map(|f| (f > 0.0 && f.is_finite()).then_some(f)).collect()
    }

    /// Weighted distances of the logarithms.
    fn residual(&self, model: &[f64]) -> Vec<f64> {
        let costs = self.costs.iter().zip(model).zip(&self.half_widths);
        costs.map(|((cost, f), half_width)| (cost / f).ln() / half_width).collect()
    }

    fn squares(&self, at: &Parameters) -> f64 {
        self.model(at).map_or(f64::INFINITY, |model| {
            self.residual(&model).iter().map(|left| left * left).sum()
        })
    }

    /// How the weighted logarithm of f answers to each parameter.
    fn columns(&self, at: &Parameters, model: &[f64]) -> [Vec<f64>; 3] {
        let a = at[0].exp();
        std::array::from_fn(|column| {
            let unit = if column == 0 { a } else { 1.0 };
            let rows = self.rows.iter().zip(model).zip(&self.half_widths);
            rows.map(|((row, f), half_width)| unit * row[column] / f / half_width).collect()
        })
    }

    /// The linear fit of the costs, by the parameters that are free.
    fn start(&self, free: [bool; 3]) -> Parameters {
        let weights: Vec<f64> =
            self.costs.iter().zip(&self.half_widths).map(|(cost, h)| 1.0 / cost / h).collect();
        let scaled = |values: &dyn Fn(usize) -> f64| -> Vec<f64> {
            weights.iter().enumerate().map(|(at, weight)| weight * values(at)).collect()
        };
        let used: Vec<usize> = (0..3).filter(|&column| free[column]).collect();
        let columns: Vec<Vec<f64>> =
            used.iter().map(|&column| scaled(&|at| self.rows[at][column])).collect();
        let found = fit(&scaled(&|at| self.costs[at]), &columns).coefficients;
        let mut parameters = [0.0; 3];
        used.iter().zip(found).for_each(|(&column, value)| parameters[column] = value);
        let is_usable = parameters[0] > 0.0;
        parameters[0] = parameters[0].ln();
        // The costs are at least 1, so a of 1 alone is a start that always works.
        if is_usable && self.model(&parameters).is_some() { parameters } else { [0.0; 3] }
    }

    /// Gauss-Newton with halved steps, by the parameters that are free.
    fn solve(&self, free: [bool; 3]) -> Option<Parameters> {
        let used: Vec<usize> = (0..3).filter(|&column| free[column]).collect();
        let mut at = self.start(free);
        let mut squares = self.squares(&at);
        for _ in 0..STEPS_MAX {
            let model = self.model(&at)?;
            let columns = self.columns(&at, &model);
            let columns: Vec<Vec<f64>> = used.iter().map(|&at| columns[at].clone()).collect();
            let step = fit(&self.residual(&model), &columns).coefficients;
            let moved = |share: f64| {
                let mut next = at;
                used.iter().zip(&step).for_each(|(&column, by)| next[column] += share * by);
                next
            };
            let shares = (0..HALVINGS_MAX).map(|halvings| 0.5f64.powi(halvings as i32));
            let better = shares.map(moved).find(|next| self.squares(next) < squares);
            let Some(next) = better else { break };
            let gained = squares - self.squares(&next);
            (at, squares) = (next, squares - gained);
            if gained <= 1e-14 * squares {
                break;
            }
        }
        Some(at)
    }

    /// Whether the points say what one worker does. Samples begin with the fewest workers.
    fn is_determined(&self, at: &Parameters) -> bool {
        let lowest = self.model(at).and_then(|model| model.first().copied());
        lowest.is_some_and(|lowest| at[0].exp() >= SHARE_MIN * lowest)
    }

    /// The law's own parameters and their half widths.
    fn fitted(&self, at: &Parameters) -> Option<Fitted> {
        let [u, v, least] = self.scales;
        let a = at[0].exp();
        let columns = self.columns(at, &self.model(at)?);
        let covariance = inverse(&columns)?;
        // Of ln lambda = -ln a, sigma = b / a / u, kappa = c / a / v.
        let gradients = [
            [-1.0, 0.0, 0.0],
            [-at[1] / a / u, 1.0 / a / u, 0.0],
            [-at[2] / a / v, 0.0, 1.0 / a / v],
        ];
        let half_widths = gradients.map(|gradient| {
            let row = |i: usize| (0..3).map(|j| covariance[i][j] * gradient[j]).sum::<f64>();
            (0..3).map(|i| gradient[i] * row(i)).sum::<f64>().max(0.0).sqrt()
        });
        Some(Fitted {
            lambda: 1.0 / (a * least),
            sigma: at[1] / a / u,
            kappa: at[2] / a / v,
            squares: self.squares(at),
            half_widths,
        })
    }
}

/// The inverse of the normal matrix of three columns, by cofactors; `None` when it has none. The
/// columns are brought to length 1 first, so that the determinant says how dependent they are.
fn inverse(columns: &[Vec<f64>; 3]) -> Option<[[f64; 3]; 3]> {
    let dot = |i: usize, j: usize| -> f64 {
        columns[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum()
    };
    let lengths: [f64; 3] = std::array::from_fn(|i| dot(i, i).sqrt());
    let m: [[f64; 3]; 3] =
        std::array::from_fn(|i| std::array::from_fn(|j| dot(i, j) / lengths[i] / lengths[j]));
    let cofactor = |i: usize, j: usize| {
        let (rows, columns) = ([(i + 1) % 3, (i + 2) % 3], [(j + 1) % 3, (j + 2) % 3]);
        m[rows[0]][columns[0]] * m[rows[1]][columns[1]]
            - m[rows[0]][columns[1]] * m[rows[1]][columns[0]]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * cofactor(0, j)).sum();
    (determinant > 1e-14).then(|| {
        std::array::from_fn(|i| {
            std::array::from_fn(|j| cofactor(j, i) / determinant / lengths[i] / lengths[j])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverts_a_normal_matrix() {
        let columns =
            [vec![1.0, 1.0, 1.0, 1.0], vec![0.0, 1.0, 2.0, 5.0], vec![1.0, 0.0, 3.0, 9.0]];
        let found = inverse(&columns).unwrap();
        let dot = |i: usize, j: usize| -> f64 {
            columns[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum()
        };
        for (i, j) in (0..9).map(|at| (at / 3, at % 3)) {
            let one: f64 = found.iter().enumerate().map(|(k, row)| dot(i, k) * row[j]).sum();
            assert!((one - f64::from(u8::from(i == j))).abs() < 1e-9, "{i} {j}: {one}");
        }
        assert_eq!(inverse(&[vec![1.0, 1.0], vec![2.0, 2.0], vec![0.0, 1.0]]), None);
    }
}
