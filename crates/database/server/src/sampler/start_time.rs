//! When a server started, told the same from sample to sample until it is another start.
//!
//! A server tells how long it is up and, in a later statement, what time it is. The difference is
//! late by as long as lay between them, which in a stall is long; so an answer says between which
//! times the start lies, and only one that lies elsewhere is another. Invariant: pure.

/// So much lies between whole seconds that were rounded one way and the other.
const ROUNDED_S: u64 = 2;

/// The start that is known.
#[derive(Clone, Copy, Debug)]
struct Start {
    told_s: u64,
    earliest_s: u64,
    latest_s: u64,
}

/// Tells starts apart.
#[derive(Debug, Default)]
pub(crate) struct StartTime {
    known: Option<Start>,
}

impl StartTime {
    /// The start in seconds since 1970, from the server's time, how long it is up, and how long it
    /// took to tell both.
    pub(crate) fn of(&mut self, now_s: u64, uptime_s: u64, took_s: u64) -> u64 {
        let latest_s = now_s.saturating_sub(uptime_s);
        let earliest_s = latest_s.saturating_sub(took_s);
        let is_same = |start: &Start| {
            earliest_s <= start.latest_s + ROUNDED_S && start.earliest_s <= latest_s + ROUNDED_S
        };
        let start = match self.known.filter(is_same) {
            Some(start) => Start {
                told_s: start.told_s,
                earliest_s: start.earliest_s.max(earliest_s),
                latest_s: start.latest_s.min(latest_s),
            },
            None => Start { told_s: self.told_apart(latest_s), earliest_s, latest_s },
        };
        self.known = Some(start);
        start.told_s
    }

    /// Those who compare two samples take starts that lie this close for one.
    fn told_apart(&self, start_s: u64) -> u64 {
        let before = self.known.map(|start| start.told_s);
        let near = before.filter(|before| before.abs_diff(start_s) <= ROUNDED_S);
        near.map_or(start_s, |before| before + ROUNDED_S + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_is_no_other_start() {
        let mut start = StartTime::default();
        assert_eq!(start.of(10_000, 9_000, 0), 1_000);
        // Asked at 10,001 and answered 20 s later; then fast again, off by a second.
        assert_eq!(start.of(10_021, 9_001, 20), 1_000);
        assert_eq!(start.of(10_023, 9_022, 0), 1_000);
        // The first answer may be the slow one.
        let mut start = StartTime::default();
        assert_eq!(start.of(10_020, 9_000, 20), 1_020);
        assert_eq!(start.of(10_021, 9_021, 0), 1_020);
    }

    #[test]
    fn another_start_is_told_however_slow_the_answers_are() {
        let mut start = StartTime::default();
        assert_eq!(start.of(10_000, 9_000, 0), 1_000);
        assert_eq!(start.of(10_010, 3, 0), 10_007);
        assert_eq!(start.of(10_012, 5, 1), 10_007);
        // Up again since 10,030, asked at 10,033, answered at 10,043.
        assert_eq!(start.of(10_043, 3, 10), 10_040);
        // What the slow answers of one start left open is narrowed by the fast ones.
        assert_eq!(start.of(10_044, 14, 0), 10_040);
        assert_eq!(start.of(10_050, 12, 0), 10_043, "three seconds from the one before");
    }
}
