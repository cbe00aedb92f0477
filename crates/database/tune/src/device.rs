//! What the device can write at most.
//!
//! Method: a server that writes exactly what it is told, and has for seconds written clearly less,
//! waits for its device: it is told little more than it wrote. Of others it is known only how much
//! more they write when they are told more: when a fourth more is asked for than once before and no
//! more is written, more is not asked for. After a time it is tried again.

use iostrata_flush::Average;

/// How much more has to be asked for to learn from it, and how much more has to come of it.
const ASKED_MORE: f64 = 1.25;
const WRITTEN_MORE: f64 = 1.06;
/// What is written then is less than this share of what was asked for.
const SHORT: f64 = 0.8;
/// For so long it has to be so, and so long it is believed, in microseconds.
const SEEN_US: u64 = 10_000_000;
const BELIEVED_US: u64 = 60_000_000;
/// What is asked for over what was written, so that a device that became faster shows it.
const SLACK: f64 = 1.1;

/// What an exact server was told is averaged as what it wrote is, and the limit over a longer time,
/// in microseconds.
const TOLD_REACH_US: u64 = 5_000_000;
const LIMIT_REACH_US: u64 = 15_000_000;
/// It has to be short, or to write this share of what it was told, for so long.
const FOLLOWS: f64 = 0.95;
const TURNS_US: u64 = 6_000_000;
/// What it is told over what it wrote: a pass that is longer than the second delays the next one.
const SLACK_EXACT: f64 = 1.2;

/// Finds the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceLimit {
    /// What was asked for and what was written of it.
    anchor: Option<(f64, f64)>,
    above_since_us: Option<u64>,
    limit: Option<(f64, u64)>,
    /// Of a server that writes exactly what it is told.
    told: Average,
    written: Average,
    turns_since_us: Option<u64>,
}

impl DeviceLimit {
    /// Takes in what a server was told to write that writes exactly that, and what it wrote, both
    /// in pages per second; `dt_us` is the time since the last step.
    pub fn take_exact(&mut self, (now_us, dt_us): (u64, u64), told: f64, written: f64, dirty: f64) {
        self.told.take(told, dt_us, TOLD_REACH_US);
        self.written.take(written, dt_us, LIMIT_REACH_US);
        let share = written / self.told.value().max(1.0);
        let turns = match self.limit {
            None => share < SHORT && dirty > 2.0 * told,
            Some(_) => share > FOLLOWS || dirty < told,
        };
        let since_us = match turns {
            true => *self.turns_since_us.get_or_insert(now_us),
            false => now_us,
        };
        let is_limited = match now_us.saturating_sub(since_us) < TURNS_US {
            true => self.limit.is_some(),
            false => self.limit.is_none(),
        };
        if !turns || is_limited != self.limit.is_some() {
            self.turns_since_us = None;
        }
        self.limit = is_limited.then(|| (self.written.value() * SLACK_EXACT, u64::MAX));
    }

    /// Takes in what is asked for and what is written, both in pages per second.
    pub fn take(&mut self, now_us: u64, asked: f64, written: f64, dirty_pages: f64) {
        self.limit = self.limit.filter(|(_, until_us)| now_us < *until_us);
        let Some((was_asked, was_written)) = self.anchor else {
            self.anchor = Some((asked, written));
            return;
        };
        if asked < was_asked * 0.8 || dirty_pages < asked {
            (self.anchor, self.above_since_us) = (Some((asked, written)), None);
            return;
        }
        if asked < was_asked * ASKED_MORE {
            self.above_since_us = None;
            return;
        }
        let since_us = *self.above_since_us.get_or_insert(now_us);
        if now_us.saturating_sub(since_us) < SEEN_US {
            return;
        }
        if written < was_written * WRITTEN_MORE && written < asked * SHORT {
            self.limit = Some((written * SLACK, now_us + BELIEVED_US));
        }
        (self.anchor, self.above_since_us) = (Some((asked, written)), None);
    }

    /// The limit, in pages per second, while one is believed.
    pub fn pages_per_s(&self) -> Option<f64> {
        self.limit.map(|(pages, _)| pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after asking for more and more of a device that writes so much at most.
    fn after(most: f64, seconds: u64) -> Option<f64> {
        let mut device = DeviceLimit::default();
        for at in 0..seconds {
            let asked = 300.0 * 1.02_f64.powi(at as i32);
            device.take(at * 1_000_000, asked, asked.min(most), 1e6);
        }
        device.pages_per_s()
    }

    #[test]
    fn a_device_that_follows_has_no_limit() {
        assert_eq!(after(1e9, 200), None);
    }

    #[test]
    fn one_that_does_not_is_known_and_tried_again() {
        let limit = after(600.0, 90).unwrap();
        assert!((limit - 660.0).abs() < 1.0, "{limit}");
        let mut device = DeviceLimit { limit: Some((600.0, 5)), ..DeviceLimit::default() };
        device.take(6, 100.0, 100.0, 1e6);
        assert_eq!(device.pages_per_s(), None);
    }

    /// An exact server that is told more and more, up to a most, and writes what its device does.
    fn told(device: &mut DeviceLimit, seconds: std::ops::Range<u64>, most: f64, of_device: f64) {
        for at in seconds {
            let told = (300.0 * 1.1_f64.powi(at as i32)).min(most);
            let told = device.pages_per_s().map_or(told, |limit| limit.min(told));
            device.take_exact((at * 1_000_000, 1_000_000), told, told.min(of_device), 1e6);
        }
    }

    #[test]
    fn an_exact_server_is_told_little_more_than_its_device_writes_until_that_is_faster() {
        let mut device = DeviceLimit::default();
        told(&mut device, 0..120, 2000.0, 1e9);
        assert_eq!(device.pages_per_s(), None, "a ramp that is followed is no limit");
        told(&mut device, 120..200, 2000.0, 600.0);
        let limit = device.pages_per_s().unwrap();
        assert!((700.0..760.0).contains(&limit), "{limit}");
        told(&mut device, 200..400, 2000.0, 1e9);
        assert_eq!(device.pages_per_s(), None, "a device that became faster is used");
    }

    #[test]
    fn an_exact_server_with_little_to_write_tells_nothing_of_its_device() {
        let mut device = DeviceLimit::default();
        for at in 0..100 {
            device.take_exact((at * 1_000_000, 1_000_000), 1000.0, 300.0, 500.0);
        }
        assert_eq!(device.pages_per_s(), None);
    }

    #[test]
    fn a_server_with_little_to_write_tells_nothing_of_its_device() {
        let mut device = DeviceLimit::default();
        for at in 0..200 {
            device.take(at * 1_000_000, 300.0 * 1.02_f64.powi(at as i32), 300.0, 10.0);
        }
        assert_eq!(device.pages_per_s(), None);
    }
}
