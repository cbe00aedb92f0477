//! XtraDB 5.1's first answer: the fuller the redo, the greater the share of `io_capacity`.
//!
//! Above 7/8 of the limit it does nothing, and leaves the rest to users.

use super::strategy::{Proposal, Strategy, Tick};

/// Steps of the age.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reflex;

impl Strategy for Reflex {
    fn skips_sleep_when_dirty(&self) -> bool {
        true
    }

    /// XtraDB 5.1 had the switch for the plugin's way of flushing, which it then ran instead.
    fn follows_adaptive_flushing(&self) -> bool {
        false
    }

    fn flush(&mut self, seen: &Tick<'_, '_>, _: u64) -> Option<Proposal> {
        let (age, most) = (seen.now.modified_age(), seen.ladder.wait_age);
        let want = if age > most - most / 8 {
            return None;
        } else if age > most - most / 4 {
            seen.pct(100)
        } else if age > most / 2 {
            seen.pct(10)
        } else {
            return None;
        };
        Some(Proposal {
            want,
            cap: Some(seen.pct(100)),
            until: seen.now.behind_all(),
            skips_sleep: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Lsn;

    use super::*;
    use crate::flush::{FlushSample, Ladder};

    #[test]
    fn the_share_rises_in_two_steps_and_ends_where_users_take_over() {
        let wanted = |age: u64| {
            let (lsn, oldest) = (Lsn(10_000), Some(Lsn(10_000 - age)));
            let now = FlushSample { lsn, oldest, ..FlushSample::default() };
            let ladder = Ladder { wait_age: 800, ..Ladder::default() };
            let seen = Tick { now: &now, ladder, io: 200 };
            Reflex.flush(&seen, 0).map_or(0, |batch| batch.want)
        };
        assert_eq!([400, 401, 600, 601, 700, 701].map(wanted), [0, 20, 20, 200, 200, 0]);
    }
}
