//! A rate averaged over time, whatever the spacing of its samples.

/// An average in which what lies `reach_us` back counts a third of what is new.
///
/// Each sample weighs `dt / (dt + reach)`: the exponential average in its implicit form, which
/// stays between the old value and the new one for every `dt`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    value: f64,
    weight: f64,
}

impl Average {
    /// Takes in `value`, which held for `dt_us`.
    pub fn take(&mut self, value: f64, dt_us: u64, reach_us: u64) {
        if dt_us == 0 {
            return;
        }
        let share = dt_us as f64 / (dt_us as f64 + reach_us as f64);
        // Until the first samples fill the reach, they count by how much of it they fill: the
        // average is then of what was seen, not of what was seen and of zeros before it.
        self.weight += (1.0 - self.weight) * share;
        self.value += (value - self.value) * share / self.weight;
    }

    /// The average; 0 before the first sample.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_value_is_known_at_once() {
        let mut average = Average::default();
        average.take(7.0, 0, 1000);
        assert_eq!(average.value(), 0.0);
        for _ in 0..5 {
            average.take(7.0, 10, 1000);
            assert!((average.value() - 7.0).abs() < 1e-9, "{average:?}");
        }
    }

    #[test]
    fn a_step_is_followed_within_a_few_reaches_at_any_spacing() {
        for spacing_us in [1, 10, 100, 1000, 5000] {
            let mut average = Average::default();
            average.take(1.0, 10_000, 1000);
            let mut passed_us = 0;
            while passed_us < 10_000 {
                average.take(2.0, spacing_us, 1000);
                assert!((1.0..=2.0).contains(&average.value()), "{average:?}");
                passed_us += spacing_us;
            }
            assert!(average.value() > 1.95, "{spacing_us}: {average:?}");
        }
    }
}
