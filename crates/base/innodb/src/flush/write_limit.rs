//! Whether what a policy wants to write is capped, and by what.
//!
//! Invariant: `io_capacity` belongs to the user. What is raised is raised beside it and belongs to
//! the policy: it begins again at nothing when the user changes the setting, or with a new policy.

use crate::FlushWriteLimit;

use crate::flush::FlushSample;

/// Meetings after which the cap rises, and by how much.
const MEETINGS: u32 = 10;
const RAISE: u64 = 100;

/// What may be written of `want` pages, under the policy's own cap and under `io` pages.
pub(crate) fn limited(limit: FlushWriteLimit, want: u64, own_cap: Option<u64>, io: u64) -> u64 {
    match limit {
        FlushWriteLimit::Policy => want.min(own_cap.unwrap_or(u64::MAX)),
        FlushWriteLimit::Capped | FlushWriteLimit::AutoRaised => want.min(io),
        FlushWriteLimit::Free => want,
    }
}

/// What the policy has raised.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Raised {
    /// The user's setting that it was raised beside.
    setting: u32,
    meetings: u32,
    raised: u64,
    /// The second of the last look.
    second: Option<u64>,
}

impl Raised {
    /// What is added to the cap.
    pub(crate) fn by(&self) -> u64 {
        self.raised
    }

    /// Takes in one look at the redo, of which one in each second counts, however often the policy
    /// is asked in it; gives what is added to the cap.
    pub(crate) fn look(&mut self, now: &FlushSample<'_>, capacity: u64) -> u64 {
        let settings = &now.settings;
        if settings.write_limit != FlushWriteLimit::AutoRaised
            || self.setting != settings.io_capacity
        {
            *self = Raised { setting: settings.io_capacity, ..Raised::default() };
        }
        let second = now.now_us / 1_000_000;
        let is_first = self.second.replace(second) != Some(second);
        if is_first
            && settings.write_limit == FlushWriteLimit::AutoRaised
            && now.modified_age() >= capacity - capacity / 4
        {
            self.meetings += 1;
            if self.meetings == MEETINGS {
                self.meetings = 0;
                self.raised = self.raised.saturating_add(RAISE);
            }
        }
        self.raised
    }
}

#[cfg(test)]
mod tests {
    use crate::Lsn;

    use super::*;
    use crate::flush::FlushSettings;

    #[test]
    fn the_limit_is_apart_from_the_policy() {
        let of = |limit| (limited(limit, 500, Some(200), 300), limited(limit, 500, None, 300));
        assert_eq!(of(FlushWriteLimit::Policy), (200, 500));
        assert_eq!(of(FlushWriteLimit::Capped), (300, 300));
        assert_eq!(of(FlushWriteLimit::Free), (500, 500));
    }

    #[test]
    fn ten_meetings_raise_by_a_hundred_and_a_new_setting_begins_again() {
        let mut now_us = 0;
        let mut look = |raised: &mut Raised, io_capacity: u32, age: u64| {
            now_us += 1_000_000;
            let settings = FlushSettings {
                io_capacity,
                write_limit: FlushWriteLimit::AutoRaised,
                ..FlushSettings::default()
            };
            let lsn = Lsn(10_000);
            let oldest = Some(Lsn(lsn.0 - age));
            let now = FlushSample { now_us, lsn, oldest, settings, ..FlushSample::default() };
            // Other looks in the same second say nothing new.
            raised.look(&now, 1000);
            raised.look(&FlushSample { now_us: now_us + 999_999, ..now }, 1000)
        };
        let mut raised = Raised::default();
        let seen: Vec<u64> = (0..20).map(|_| look(&mut raised, 200, 750)).collect();
        assert_eq!((seen[8], seen[9], seen[18], seen[19]), (0, 100, 100, 200));
        assert_eq!(look(&mut raised, 200, 749), 200, "it does not fall again");
        assert_eq!(look(&mut raised, 300, 100), 0, "the user has spoken");
    }
}
