//! Free frames: how many should be ready.

use crate::flush::{Finished, FlushSample, FrameDemand};

/// Free frames cover the demand of this long, in microseconds: a batch that writes cold pages.
const COVERED_US: f64 = 50_000.0;

/// How far the average of the demand reaches back, in microseconds.
const REACH_US: u64 = 200_000;

/// More frames are freed when fewer than this share of the wanted ones is left.
const REFILL_SHARE: f64 = 0.75;

/// Frames freed in one action at most, so that redo is looked at in between.
const FRAMES_MAX: f64 = 4096.0;

/// Watches the free frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Supply {
    demand: FrameDemand,
}

impl Supply {
    /// Takes in a sample and what the last action freed.
    pub fn observe(&mut self, now: &FlushSample<'_>, last: Finished) {
        self.demand.observe(now.now_us, now.free_frames, u64::from(last.freed), REACH_US);
    }

    /// Frames to free now, when they are short.
    pub fn wanted(&self, now: &FlushSample<'_>) -> Option<u32> {
        let most = now.free_frames_most() as f64;
        let depth = f64::from(now.settings.lru_scan_depth);
        let covered = self.demand.frames_per_s() * COVERED_US / 1e6;
        let target = depth.max(covered).min(most);
        let free = now.free_frames as f64 + f64::from(now.lanes.cold_frames);
        let is_short = free < target * REFILL_SHARE;
        is_short.then(|| (target - free).clamp(1.0, FRAMES_MAX) as u32)
    }
}
