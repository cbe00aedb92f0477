//! What the device can write at most.
//!
//! Method: when a quarter more is requested than once before and no more is written, the request is
//! not raised further. After a time it is tried again.

/// How much more has to be requested to learn from it, and how much more has to be written then.
const ASKED_MORE: f64 = 1.25;
const WRITTEN_MORE: f64 = 1.06;
/// What is written then is less than this share of what was requested.
const SHORT: f64 = 0.8;
/// For so long it has to be so, and so long it is believed, in microseconds.
const SEEN_US: u64 = 10_000_000;
const BELIEVED_US: u64 = 60_000_000;
/// Ratio of what is requested to what was written, so that a device that became faster shows it.
const SLACK: f64 = 1.1;

/// Finds the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceLimit {
    /// What was requested and what was written of it.
    anchor: Option<(f64, f64)>,
    above_since_us: Option<u64>,
    limit: Option<(f64, u64)>,
}

impl DeviceLimit {
    /// Takes in what is requested and what is written, both in pages per second.
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

    /// Starts over: what was written meanwhile is not what was requested.
    pub fn look_anew(&mut self) {
        (self.anchor, self.above_since_us) = (None, None);
    }

    /// The limit, in pages per second, while one is believed.
    pub fn pages_per_s(&self) -> Option<f64> {
        self.limit.map(|(pages, _)| pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after requesting more and more of a device that writes at most so much.
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

    #[test]
    fn a_server_with_little_to_write_tells_nothing_of_its_device() {
        let mut device = DeviceLimit::default();
        for at in 0..200 {
            device.take(at * 1_000_000, 300.0 * 1.02_f64.powi(at as i32), 300.0, 10.0);
        }
        assert_eq!(device.pages_per_s(), None);
    }
}
