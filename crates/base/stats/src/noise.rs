//! How far the mean of a noisy, autocorrelated series strays.
//!
//! Purpose: the variance of the mean of a series whose level does not change, and how well that
//! variance itself is known.
//! Method: nonoverlapping batch means. The batch length doubles until the batch means pass von
//! Neumann's test (lag-1 autocorrelation within one standard error of 0) or only [`BATCHES_MIN`]
//! batches would be left. What correlation remains is corrected as a first-order autoregression:
//! the variance is multiplied by `(1 + r) / (1 - r)`, with r freed of its bias (Marriott and Pope
//! 1954), as in Skart (Tafazzoli and Wilson 2011). The degrees of freedom are `k / (1 + (1 + r) /
//! (1 - r))` of `k` batches, between those of independent batches and those of a fully fitted
//! autoregression (`k / (1 + 2 (1 + r) / (1 - r))`), set by simulation. Where much correlation is
//! left, batches twice and four times as long are tried, too, and the widest interval counts. On
//! the side of a long tail the interval is wider than Student's t has it, by the inverse of Hall's
//! transformation (On the removal of skewness by transformation, Journal of the Royal Statistical
//! Society B 54, 1992).
//! Invariant: never claims more degrees of freedom than batches, nor less variance than independent
//! batches would have. It assumes that drifts and steps were taken out before.

use crate::student::t95;

/// Fewest batches that a batch length may leave.
pub(crate) const BATCHES_MIN: usize = 30;

/// Standard errors of a correlation, or of a skewness, from which on it is taken for one.
const CERTAIN_ERRORS: f64 = 2.0;
/// Fewest of longer batches.
const LONG_BATCHES_MIN: usize = 7;
/// Highest correlation that is corrected for; more means that there is hardly one batch.
const LAG1_MAX: f64 = 0.95;
/// Fewest degrees of freedom; with fewer an interval is meaningless.
const FREEDOM_MIN: f64 = 2.0;

/// What is known about the error of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanError {
    /// Variance of the mean of the whole series.
    pub(crate) variance: f64,
    /// Degrees of freedom of that variance.
    pub(crate) freedom: f64,
    /// Batches it was taken from.
    pub(crate) batches: usize,
    /// Slices in each batch.
    pub(crate) slices_per_batch: usize,
    /// Correlation left between neighbouring batches; 0 where none was measurable.
    pub(crate) lag1: f64,
    /// Skewness of the batches; 0 where chance may have made it.
    pub(crate) skewness: f64,
}

impl MeanError {
    /// Standard error of the mean.
    pub(crate) fn standard_error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Half widths of the 95 % interval, below the mean and above it: Student's t, and on the side
    /// of a long tail as much more as that moves the mean.
    pub(crate) fn half_widths(&self) -> [f64; 2] {
        let t = t95(self.freedom);
        // The skewness of the mean.
        let skew = self.skewness.abs() / (self.batches as f64).sqrt();
        let tail = match skew > 0.0 {
            true => 3.0 / skew * (1.0 - (1.0 - skew * t - skew * skew / 6.0).cbrt()),
            false => t,
        };
        let both = if self.skewness < 0.0 { [tail, t] } else { [t, tail] };
        both.map(|errors| errors * self.standard_error())
    }

    /// Variance per slice if slices were independent: the spectrum at frequency 0.
    pub(crate) fn long_run_variance(&self, slices: usize) -> f64 {
        self.variance * slices as f64
    }

    /// Independent batches that would carry as much.
    pub(crate) fn effective_batches(&self) -> f64 {
        self.batches as f64 * (1.0 - self.lag1) / (1.0 + self.lag1)
    }
}

/// The error of the mean of `residual`, the noise that is left of a series from which so many
/// parameters were taken: its mean, a line, steps. `None` below 2 values more than these.
pub(crate) fn mean_error(residual: &[f64], taken: usize) -> Option<MeanError> {
    if residual.len() < taken + 2 {
        return None;
    }
    let mut length = 1;
    loop {
        let batches = batch_means(residual, length);
        let moments = Moments::of(&batches, taken);
        let uncorrelated = moments.lag1_raw * (batches.len() as f64).sqrt() < 1.0;
        let error = moments.error(batches.len(), length);
        if uncorrelated {
            return Some(error);
        }
        if batches.len() / 2 < BATCHES_MIN {
            let is_slow = moments.lag1_raw * (batches.len() as f64).sqrt() > CERTAIN_ERRORS;
            let longer = is_slow.then(|| longer_batches(residual, taken, length));
            return Some(longer.into_iter().flatten().fold(error, wider));
        }
        length *= 2;
    }
}

/// Independent slices that would carry as much as these, taken for a first-order autoregression; as
/// many as there are where no correlation of neighbours shows.
pub(crate) fn independent_slices(residual: &[f64], taken: usize) -> f64 {
    let (moments, count) = (Moments::of(residual, taken), residual.len() as f64);
    match moments.lag1_raw * count.sqrt() > CERTAIN_ERRORS {
        true => count * (1.0 - moments.lag1) / (1.0 + moments.lag1),
        false => count,
    }
}

/// The errors that fewer and longer batches give, where those that are many enough still are
/// correlated: a first-order autoregression then makes too little of slower movement.
fn longer_batches(residual: &[f64], taken: usize, length: usize) -> Vec<MeanError> {
    let of = |length: usize| {
        let batches = batch_means(residual, length);
        let moments = Moments::of(&batches, taken);
        (batches.len() >= LONG_BATCHES_MIN.max(taken + 2))
            .then(|| moments.error(batches.len(), length))
    };
    [2 * length, 4 * length].into_iter().filter_map(of).collect()
}

/// The error that makes the wider interval; batches stay those that were many enough.
fn wider(many: MeanError, long: MeanError) -> MeanError {
    let width = |error: &MeanError| t95(error.freedom) * error.standard_error();
    if width(&long) <= width(&many) {
        return many;
    }
    MeanError { variance: long.variance, freedom: long.freedom, ..many }
}

/// Means of consecutive batches; slices that fill no batch at the end are left out.
pub(crate) fn batch_means(series: &[f64], length: usize) -> Vec<f64> {
    series.chunks_exact(length).map(mean).collect()
}

/// Arithmetic mean; 0 of nothing.
pub(crate) fn mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len().max(1) as f64
}

/// Correlation of neighbours, as computed from the values; 0 where they are all the same.
pub(crate) fn lag1(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Variance, lag-1 autocorrelation and skewness of batch means.
struct Moments {
    /// Batches less the parameters taken from them.
    independent: f64,
    /// Unbiased under independence.
    variance: f64,
    /// As computed from the batches.
    lag1_raw: f64,
    /// Freed of its bias, from 0 to [`LAG1_MAX`].
    lag1: f64,
    /// 0 within two standard errors of it.
    skewness: f64,
}

impl Moments {
    /// Of batch means from which so many parameters were taken.
    fn of(batches: &[f64], parameters: usize) -> Self {
        let (count, centre) = (batches.len() as f64, mean(batches));
        let sum = |power| batches.iter().map(|value| (value - centre).powi(power)).sum::<f64>();
        let squares = sum(2);
        let skewness = sum(3) / count / (squares / count).powf(1.5);
        let is_skewed = skewness.abs() > CERTAIN_ERRORS * (6.0 / count).sqrt();
        let lag1_raw = lag1(batches);
        let taken = parameters as f64;
        let bias = (taken + (taken + 2.0) * lag1_raw.max(0.0)) / count;
        let independent = (count - taken).max(1.0);
        let lag1 = (lag1_raw + bias).clamp(0.0, LAG1_MAX);
        let skewness = if is_skewed { skewness } else { 0.0 };
        Self { independent, variance: squares / independent, lag1_raw, lag1, skewness }
    }

    fn error(&self, batches: usize, slices_per_batch: usize) -> MeanError {
        let inflation = (1.0 + self.lag1) / (1.0 - self.lag1);
        let count = batches as f64;
        let freedom = if self.lag1 > 0.0 { count / (1.0 + inflation) } else { self.independent };
        MeanError {
            variance: self.variance / count * inflation,
            freedom: freedom.clamp(FREEDOM_MIN.min(self.independent), self.independent),
            batches,
            slices_per_batch,
            lag1: self.lag1,
            skewness: self.skewness,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::simulate::autocorrelated;

    /// Median of the variance of the mean over the true one, in 400 series.
    fn variance_ratio(rho: f64, slices: usize) -> f64 {
        let mut rng = Random::new(7);
        let truth = (1.0 + rho) / (1.0 - rho) / slices as f64;
        let mut ratios: Vec<f64> = (0..400)
            .map(|_| {
                let series = autocorrelated(&mut rng, slices, rho);
                mean_error(&series, 1).unwrap().variance / truth
            })
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios[200]
    }

    #[test]
    fn the_variance_of_the_mean_is_right_under_autocorrelation() {
        for (rho, slices) in [(0.0, 300), (0.5, 300), (0.8, 300), (0.5, 4_000), (0.9, 4_000)] {
            let ratio = variance_ratio(rho, slices);
            assert!((0.9..1.15).contains(&ratio), "rho {rho}, {slices} slices: {ratio}");
        }
    }

    #[test]
    fn correlated_batches_count_for_less() {
        let series = autocorrelated(&mut Random::new(8), 300, 0.95);
        let error = mean_error(&series, 1).unwrap();
        assert!(error.batches >= BATCHES_MIN && error.lag1 > 0.2);
        assert!(error.effective_batches() < 20.0 && error.freedom < error.batches as f64);
    }

    #[test]
    fn slices_count_as_a_first_order_autoregression() {
        let mut rng = Random::new(10);
        for (rho, expected) in [(0.0, 2_000.0), (0.5, 667.0), (0.9, 105.0)] {
            let found = independent_slices(&autocorrelated(&mut rng, 2_000, rho), 1);
            assert!((found / expected - 1.0).abs() < 0.15, "rho {rho}: {found}");
        }
    }

    #[test]
    fn a_long_tail_widens_the_interval_on_its_side() {
        let mut rng = Random::new(11);
        let above: Vec<f64> = (0..400).map(|_| rng.exponential().powi(2)).collect();
        let below: Vec<f64> = above.iter().map(|value| -value).collect();
        let even = autocorrelated(&mut rng, 400, 0.0);
        let of = |series: &[f64]| mean_error(series, 1).unwrap().half_widths();
        let ([low, high], [mirrored_low, mirrored_high]) = (of(&above), of(&below));
        assert!(1.2 * low < high && (mirrored_low, mirrored_high) == (high, low), "{low} {high}");
        let [low, high] = of(&even);
        assert_eq!(low, high, "chance alone makes a little of it");
    }

    #[test]
    fn parameters_taken_out_widen_the_error() {
        let series = autocorrelated(&mut Random::new(9), 60, 0.0);
        let (less, more) = (mean_error(&series, 1).unwrap(), mean_error(&series, 7).unwrap());
        assert!(more.variance > less.variance && more.freedom < less.freedom);
    }

    #[test]
    fn too_short_a_series_has_no_error() {
        assert_eq!(mean_error(&[1.0, 2.0], 1), None);
        assert!(mean_error(&[1.0, 2.0, 4.0], 1).is_some());
    }
}
