//! How fast free frames are taken.

use crate::flush::average::Average;

/// Frames taken from the free ones per second, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameDemand {
    last: Option<(u64, u64)>,
    average: Average,
}

impl FrameDemand {
    /// Takes in the free frames at a time, and how many became free since the last time.
    pub fn observe(&mut self, now_us: u64, free_frames: u64, freed: u64, reach_us: u64) {
        if let Some((last_us, last_free)) = self.last {
            let dt_us = now_us.saturating_sub(last_us);
            let taken = last_free.saturating_add(freed).saturating_sub(free_frames);
            if dt_us == 0 {
                return;
            }
            self.average.take(taken as f64 * 1e6 / dt_us as f64, dt_us, reach_us);
        }
        self.last = Some((now_us, free_frames));
    }

    /// Frames per second.
    #[must_use]
    pub fn frames_per_s(&self) -> f64 {
        self.average.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_and_is_gone_was_taken() {
        let mut demand = FrameDemand::default();
        for at in 0..10 {
            demand.observe(at * 1000, 64, 5, 1000);
        }
        assert!((demand.frames_per_s() - 5000.0).abs() < 1.0, "{demand:?}");
    }
}
