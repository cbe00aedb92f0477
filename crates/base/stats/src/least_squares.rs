//! Linear least squares with few columns.
//!
//! Purpose: fit a series by a handful of columns together, by the normal equations.
//! Invariant: a column that depends on the others gets the coefficient 0; nothing divides by 0.

/// A fit: one coefficient per column, and what is left of the series.
pub(crate) struct Fit {
    pub(crate) coefficients: Vec<f64>,
    pub(crate) residual: Vec<f64>,
}

/// Fits `series` by `columns`, each as long as the series.
pub(crate) fn fit(series: &[f64], columns: &[Vec<f64>]) -> Fit {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_coefficients_of_a_mix() {
        let one = vec![1.0; 50];
        let line: Vec<f64> = (0..50).map(f64::from).collect();
        let wave: Vec<f64> = line.iter().map(|at| (at * 0.7).sin()).collect();
        let mix: Vec<f64> =
            (0..50).map(|at| 3.0 * one[at] - 0.5 * line[at] + 2.0 * wave[at]).collect();
        let found = fit(&mix, &[one, line, wave]);
        for (got, want) in found.coefficients.iter().zip([3.0, -0.5, 2.0]) {
            assert!((got - want).abs() < 1e-9, "{got} for {want}");
        }
        assert!(found.residual.iter().all(|left| left.abs() < 1e-9));
    }

    #[test]
    fn a_dependent_column_adds_nothing() {
        let one = vec![1.0; 10];
        let found = fit(&[4.0; 10], &[one.clone(), one]);
        assert!(found.coefficients.iter().all(|value| value.is_finite()));
        assert!(found.residual.iter().all(|left| left.abs() < 1e-9));
    }
}
