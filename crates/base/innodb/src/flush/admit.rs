//! What a committing thread does before it changes anything, and how long writers are held back for
//! each row so that purge keeps up.

use crate::{Lsn, MaxPurgeLagVersion};

/// What a thread does before its next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Go on.
    Go,
    /// Wait this long, then call `decide_delayed`.
    Delay {
        /// Microseconds.
        us: u64,
    },
    /// Wait this long behind those that came before, then check again: the redo is ahead of its
    /// pace.
    Paced {
        /// Microseconds.
        us: u64,
    },
    /// Flush by itself, as the engines of history let their users do, then go on.
    FlushSelf {
        /// Pages whose oldest change is before this LSN.
        until: Lsn,
        /// Whether it continues only when they are written; otherwise it leaves the work to another
        /// thread that is already doing it.
        wait: bool,
    },
    /// Wake the cleaner, then go on.
    WakeCleaner,
    /// Wait until the cleaner has written all changes before this LSN, then go on.
    WaitOldest(Lsn),
    /// Take a checkpoint unless another thread is doing so, then go on.
    TakeCheckpoint,
    /// Wait until the checkpoint has reached an LSN, then check again.
    WaitCheckpoint {
        /// The LSN.
        lsn: Lsn,
        /// What it does for that.
        work: UserWork,
    },
}

/// What threads do by themselves that have to wait for room in the redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserWork {
    /// Nothing: the cleaner does everything.
    Nothing = 0,
    /// They take checkpoints.
    Checkpoints = 1,
    /// They flush and take checkpoints.
    FlushAndCheckpoints = 2,
}

/// Words of an admission rule.
pub const ADMIT_WORDS: usize = 12;

/// When threads go on, are slowed down or wait, as plain words that atomics can publish.
///
/// Words read one by one while they are being replaced may be of two rules: every mixture decides
/// something sound, since a policy keeps `wait_age` at or below the redo's limit in each of its
/// rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmitRule {
    /// Checkpoint age from which threads are delayed, in bytes; `u64::MAX` for never.
    pub delay_age: u64,
    /// Checkpoint age at which threads wait for a checkpoint, in bytes.
    pub wait_age: u64,
    /// Scale of the delays, in microseconds: the delay halfway between the two.
    pub span_us: u64,
    /// Age of the oldest change from which a thread flushes without waiting, or wakes the cleaner
    /// where threads do not flush; `u64::MAX` for never.
    pub flush_age: u64,
    /// Age of the oldest change from which it waits for flushing; `u64::MAX` for never.
    pub flush_wait_age: u64,
    /// How many times the excess over `flush_wait_age` it waits for.
    pub wait_excess: u64,
    /// Checkpoint age from which a thread takes a checkpoint; `u64::MAX` for never.
    pub checkpoint_age: u64,
    /// What threads do by themselves.
    pub work: UserWork,
    /// Which redo may be made by when.
    pub pace: RedoPace,
}

/// A line that the end of the redo keeps to: threads that are ahead of it wait until it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoPace {
    /// Where the redo may end...
    pub lsn: Lsn,
    /// ... at this time, on the cleaner's clock, in microseconds.
    pub at_us: u64,
    /// Redo per second from then on, in bytes; `u64::MAX` for as much as anyone likes.
    pub bytes_per_s: u64,
    /// Time is cut into steps so long, in microseconds; what may be made in one may be made at its
    /// beginning. Threads that wait go on together then, and their commits share a sync.
    pub step_us: u64,
}

impl RedoPace {
    /// No line.
    pub const FREE: RedoPace =
        RedoPace { lsn: Lsn(0), at_us: 0, bytes_per_s: u64::MAX, step_us: 1 };

    /// Whether threads wait in line.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.bytes_per_s == u64::MAX
    }

    /// How long the leader that syncs redo waits for the commits of the same step, in microseconds.
    #[must_use]
    pub fn gather_us(&self) -> u64 {
        self.step_us / GATHER_SHARE
    }

    /// Where the line is at a time.
    #[must_use]
    pub fn line_at(&self, now_us: u64) -> Lsn {
        let us = u128::from(now_us.saturating_sub(self.at_us));
        let bytes = u128::from(self.bytes_per_s) * us / 1_000_000;
        Lsn(self.lsn.0.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)))
    }

    /// How long a thread waits that is about to append redo at `lsn`, in microseconds.
    #[must_use]
    pub fn wait_us(&self, now_us: u64, lsn: Lsn) -> u64 {
        if self.is_free() {
            return 0;
        }
        let step_us = self.step_us.max(1);
        let end_us = (now_us - now_us % step_us).saturating_add(step_us);
        if lsn <= self.line_at(end_us) {
            return 0;
        }
        let bytes = lsn.0.saturating_sub(self.lsn.0) as f64;
        let after_us = bytes * 1e6 / self.bytes_per_s.max(1) as f64;
        let at_us = self.at_us.saturating_add(after_us as u64);
        let wait_us = (at_us - at_us % step_us).saturating_sub(now_us);
        wait_us.clamp(1, DELAY_US_MAX as u64)
    }
}

/// Commits of a step are gathered for this share of it.
const GATHER_SHARE: u64 = 4;

/// No delay is longer, in microseconds.
const DELAY_US_MAX: f64 = 1_000_000.0;

impl AdmitRule {
    /// All threads continue until `wait_age`, then wait.
    #[must_use]
    pub fn wall(wait_age: u64) -> AdmitRule {
        AdmitRule {
            delay_age: u64::MAX,
            wait_age,
            span_us: 0,
            flush_age: u64::MAX,
            flush_wait_age: u64::MAX,
            wait_excess: 1,
            checkpoint_age: u64::MAX,
            work: UserWork::Nothing,
            pace: RedoPace::FREE,
        }
    }

    /// What a thread does that is about to append redo at `lsn`. `oldest` is the oldest change of a
    /// dirty page, or `lsn` when none is dirty. Threads keep to the [pace](AdmitRule::pace) before.
    #[inline]
    #[must_use]
    pub fn decide(&self, lsn: Lsn, checkpoint: Lsn, oldest: Lsn) -> Admit {
        let age = lsn.0.saturating_sub(checkpoint.0);
        let modified = lsn.0.saturating_sub(oldest.0);
        let is_young = age < self.delay_age && age < self.wait_age && age < self.checkpoint_age;
        if is_young && modified < self.flush_age && modified < self.flush_wait_age {
            return Admit::Go;
        }
        self.hold_back(lsn, age, modified)
    }

    /// The age at which threads first wait for pages to be written.
    #[must_use]
    pub fn first_wait_age(&self) -> u64 {
        self.wait_age.min(self.flush_wait_age)
    }

    /// Whether the decision depends on the age of the oldest change.
    #[inline]
    #[must_use]
    pub fn looks_at_oldest(&self) -> bool {
        self.flush_age != u64::MAX || self.flush_wait_age != u64::MAX
    }

    /// What a thread does after its delay: it continues, but never past `wait_age`, where many that
    /// were delayed together would otherwise arrive together.
    #[must_use]
    pub fn decide_delayed(&self, lsn: Lsn, checkpoint: Lsn) -> Admit {
        AdmitRule::wall(self.wait_age).decide(lsn, checkpoint, lsn)
    }

    #[cold]
    fn hold_back(&self, lsn: Lsn, age: u64, modified: u64) -> Admit {
        if age >= self.wait_age {
            // The least progress that lets one thread go on: waiting for more would let all of
            // them wait for all of the flushing, and then start together.
            let lsn = Lsn((lsn.0 - self.wait_age).saturating_add(1));
            return Admit::WaitCheckpoint { lsn, work: self.work };
        }
        let flushes = self.work == UserWork::FlushAndCheckpoints;
        if modified >= self.flush_wait_age {
            let excess = (modified - self.flush_wait_age).saturating_mul(self.wait_excess);
            let until = after(lsn, modified, excess);
            let wait = true;
            return if flushes {
                Admit::FlushSelf { until, wait }
            } else {
                Admit::WaitOldest(until)
            };
        }
        if modified >= self.flush_age {
            let until = after(lsn, modified, modified - self.flush_age);
            let wait = false;
            return if flushes { Admit::FlushSelf { until, wait } } else { Admit::WakeCleaner };
        }
        if age >= self.checkpoint_age {
            return Admit::TakeCheckpoint;
        }
        match self.delay_us(age) {
            0 => Admit::Go,
            us => Admit::Delay { us },
        }
    }

    /// The delay at a checkpoint age: 0 at `delay_age`, without a step, and without bound towards
    /// `wait_age`.
    ///
    /// With `x` the share of the way between the two it is `span_us * x / (1 - x)`. The line is the
    /// gentlest slope that begins at 0: what frees redo comes and goes, and a steeper one would
    /// hand every swing of it on to the threads. The policy sets the scale so that threads settle
    /// well inside.
    #[must_use]
    pub fn delay_us(&self, age: u64) -> u64 {
        let width = self.wait_age.saturating_sub(self.delay_age);
        let into = age.saturating_sub(self.delay_age).min(width);
        if into == 0 {
            return 0;
        }
        let share = into as f64 / width as f64;
        let delay_us = self.span_us as f64 * share / (1.0 - share);
        delay_us.min(DELAY_US_MAX) as u64
    }

    /// As words to publish.
    #[must_use]
    pub fn to_words(&self) -> [u64; ADMIT_WORDS] {
        [
            self.delay_age,
            self.wait_age,
            self.span_us,
            self.flush_age,
            self.flush_wait_age,
            self.wait_excess,
            self.checkpoint_age,
            self.work as u64,
            self.pace.lsn.0,
            self.pace.at_us,
            self.pace.bytes_per_s,
            self.pace.step_us,
        ]
    }

    /// From published words.
    #[must_use]
    pub fn from_words(words: [u64; ADMIT_WORDS]) -> AdmitRule {
        let [delay_age, wait_age, span_us, flush_age, flush_wait_age, rest @ ..] = words;
        let [wait_excess, checkpoint_age, work, lsn, at_us, bytes_per_s, step_us] = rest;
        let pace = RedoPace { lsn: Lsn(lsn), at_us, bytes_per_s, step_us };
        let work = match work {
            0 => UserWork::Nothing,
            1 => UserWork::Checkpoints,
            _ => UserWork::FlushAndCheckpoints,
        };
        let rule = AdmitRule { delay_age, span_us, ..AdmitRule::wall(wait_age) };
        AdmitRule { flush_age, flush_wait_age, wait_excess, checkpoint_age, work, pace, ..rule }
    }
}

/// The LSN up to which the oldest `bytes` of redo are of no page any more; never beyond the end.
fn after(lsn: Lsn, modified: u64, bytes: u64) -> Lsn {
    Lsn((lsn.0 - modified).saturating_add(bytes).saturating_add(1).min(lsn.0))
}

// How long writers are held back for each row, so that purge keeps up: `max_purge_lag`.

/// How far purge is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Commits that are not purged.
    pub history: u64,
    /// `max_purge_lag`; 0 for no delay.
    pub max_lag: u64,
    /// `max_purge_lag_delay`, in microseconds; 0 keeps the delay off from 5.6 on.
    pub max_delay_us: u64,
    /// Whether a snapshot holds purge back.
    pub is_blocked: bool,
    /// What the purge threads have in hand at most.
    pub in_hand: u64,
}

/// The longest delay of 5.5, in microseconds: 32 bits of them.
const LONGEST_US: u64 = 4_294_967_295;

impl Lag {
    /// The delay for each row written by the rule of a version, in microseconds.
    ///
    /// The ratio is a 32-bit float and the result is truncated, as in the original.
    #[must_use]
    pub fn delay_us(self, version: MaxPurgeLagVersion) -> u64 {
        let ratio = self.history as f32 / self.max_lag as f32;
        if self.max_lag == 0 || ratio <= 1.0 {
            return 0;
        }
        let from = |begin: f64| ((f64::from(ratio) - begin) * 10_000.0) as u64;
        match version {
            MaxPurgeLagVersion::Mysql55 if self.is_blocked => 0,
            MaxPurgeLagVersion::Mysql55 => from(0.5).min(LONGEST_US),
            MaxPurgeLagVersion::Mysql56 => from(0.5).min(self.max_delay_us),
            MaxPurgeLagVersion::Mysql80 => from(0.9995).min(self.max_delay_us),
            MaxPurgeLagVersion::Mysql84 if self.history <= self.in_hand => 0,
            MaxPurgeLagVersion::Mysql84 => from(0.9995).min(self.max_delay_us),
        }
    }
}

/// Admission: without steps, never past the wall, sound whatever the words are.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: AdmitRule = AdmitRule {
        delay_age: 700,
        wait_age: 900,
        span_us: 1000,
        flush_age: u64::MAX,
        flush_wait_age: u64::MAX,
        wait_excess: 1,
        checkpoint_age: u64::MAX,
        work: UserWork::Nothing,
        pace: RedoPace::FREE,
    };

    /// What a committing thread does at a checkpoint age.
    fn at(age: u64) -> Admit {
        RULE.decide(Lsn(5000), Lsn(5000 - age), Lsn(5000))
    }

    #[test]
    fn nothing_is_delayed_below_the_limit_and_nothing_passes_the_wall() {
        assert_eq!((at(0), at(699), at(700)), (Admit::Go, Admit::Go, Admit::Go));
        assert_eq!(at(800), Admit::Delay { us: 1000 });
        assert!(matches!(at(899), Admit::Delay { .. }));
        assert_eq!(at(900), Admit::WaitCheckpoint { lsn: Lsn(4101), work: UserWork::Nothing });
        let reached = RULE.decide(Lsn(5000), Lsn(4101), Lsn(5000));
        assert!(
            matches!(reached, Admit::Delay { .. }),
            "what was waited for is enough: {reached:?}"
        );
    }

    #[test]
    fn delays_grow_without_a_step() {
        let delays: Vec<u64> = (700..900).map(|age| RULE.delay_us(age)).collect();
        assert!(delays.is_sorted(), "{delays:?}");
        assert!(delays[1] <= 10, "the first is a small one: {}", delays[1]);
        assert!(delays[199] > 100_000, "the last is a long one: {}", delays[199]);
    }

    #[test]
    fn one_who_was_delayed_goes_on_below_the_wall_only() {
        let after = |age: u64| RULE.decide_delayed(Lsn(5000), Lsn(5000 - age));
        assert_eq!((after(100), after(899)), (Admit::Go, Admit::Go));
        assert!(matches!(after(900), Admit::WaitCheckpoint { .. }));
    }

    #[test]
    fn threads_of_history_flush_by_themselves() {
        let work = UserWork::FlushAndCheckpoints;
        let (flush_age, flush_wait_age, wait_excess) = (600, 650, 2);
        let rule =
            AdmitRule { flush_age, flush_wait_age, wait_excess, work, ..AdmitRule::wall(900) };
        let told = |rule: AdmitRule, modified: u64| {
            rule.decide(Lsn(5000), Lsn(5000), Lsn(5000 - modified))
        };
        assert_eq!(told(rule, 599), Admit::Go);
        let until = Lsn(4390 + 10 + 1);
        assert_eq!(told(rule, 610), Admit::FlushSelf { until, wait: false }, "the excess");
        let until = Lsn(4340 + 2 * 10 + 1);
        assert_eq!(told(rule, 660), Admit::FlushSelf { until, wait: true }, "twice the excess");
        let rule = AdmitRule { work: UserWork::Checkpoints, wait_excess: 1, ..rule };
        assert_eq!(told(rule, 610), Admit::WakeCleaner);
        assert_eq!(told(rule, 660), Admit::WaitOldest(Lsn(4340 + 10 + 1)));
        let rule = AdmitRule { checkpoint_age: 700, ..AdmitRule::wall(900) };
        let told = |age: u64| rule.decide(Lsn(5000), Lsn(5000 - age), Lsn(5000));
        assert_eq!((told(699), told(700)), (Admit::Go, Admit::TakeCheckpoint));
        assert!(matches!(told(900), Admit::WaitCheckpoint { .. }));
    }

    proptest! {
        #[test]
        fn any_words_decide_something_sound(
            words in any::<[u64; ADMIT_WORDS]>(),
            lsn in any::<u64>(),
            checkpoint in any::<u64>(),
            oldest in any::<u64>(),
        ) {
            let rule = AdmitRule::from_words(words);
            prop_assert_eq!(AdmitRule::from_words(rule.to_words()), rule);
            let age = lsn.saturating_sub(checkpoint);
            match rule.decide(Lsn(lsn), Lsn(checkpoint), Lsn(oldest)) {
                Admit::FlushSelf { until, .. } | Admit::WaitOldest(until) => {
                    prop_assert!(age < rule.wait_age && until.0 <= lsn);
                }
                Admit::Go | Admit::WakeCleaner | Admit::TakeCheckpoint => {
                    prop_assert!(age < rule.wait_age);
                }
                Admit::Delay { us } => {
                    prop_assert!(age < rule.wait_age);
                    prop_assert!(age >= rule.delay_age);
                    prop_assert!(us <= 1_000_000);
                }
                Admit::WaitCheckpoint { lsn: reached, .. } => {
                    prop_assert!(age >= rule.wait_age && reached.0 <= lsn.saturating_add(1));
                }
                Admit::Paced { .. } => prop_assert!(false, "the pace is asked before"),
            }
            prop_assert!(rule.pace.wait_us(checkpoint, Lsn(lsn)) <= 1_000_000);
        }
    }

    #[test]
    fn who_is_ahead_of_the_pace_waits_until_it_is_there() {
        // 1,000 bytes per second from LSN 5,000 on.
        let pace = RedoPace { lsn: Lsn(5000), at_us: 7_000_000, bytes_per_s: 1000, step_us: 1 };
        let wait_us = |now_us, lsn| pace.wait_us(now_us, Lsn(lsn));
        assert_eq!(wait_us(7_000_000, 5000), 0);
        assert_eq!(wait_us(7_000_000, 5100), 100_000);
        assert_eq!(wait_us(7_060_000, 5100), 40_000);
        assert_eq!(wait_us(7_100_000, 5100), 0);
        assert_eq!(wait_us(0, 5100), 1_000_000, "a clock that lags behind");
        assert_eq!(wait_us(u64::MAX, 1 << 50), 0);
        let rule = AdmitRule { pace, ..AdmitRule::wall(u64::MAX) };
        assert_eq!(AdmitRule::from_words(rule.to_words()), rule);
        assert_eq!(RedoPace::FREE.wait_us(0, Lsn(u64::MAX)), 0);
    }

    #[test]
    fn those_whom_the_pace_lets_go_in_one_step_go_at_its_beginning() {
        let pace =
            RedoPace { lsn: Lsn(5000), at_us: 7_000_000, bytes_per_s: 1000, step_us: 50_000 };
        let wait_us = |now_us, lsn| pace.wait_us(now_us, Lsn(lsn));
        assert_eq!((wait_us(7_000_000, 5050), wait_us(7_000_000, 5051)), (0, 50_000));
        assert_eq!((wait_us(7_010_000, 5051), wait_us(7_010_000, 5099)), (40_000, 40_000));
        assert_eq!((wait_us(7_050_000, 5051), wait_us(7_050_000, 5099)), (0, 0));
        assert_eq!((wait_us(7_050_000, 5100), wait_us(7_050_000, 5101)), (0, 50_000));
        assert_eq!(pace.gather_us(), 50_000 / 4);
    }
}

#[cfg(test)]
mod purge_delay_tests {
    use super::*;

    fn lag(history: u64, max_lag: u64) -> Lag {
        Lag { history, max_lag, max_delay_us: 1_000_000, is_blocked: false, in_hand: 300 }
    }

    fn delays(lag: Lag) -> Vec<u64> {
        MaxPurgeLagVersion::ALL.iter().map(|version| lag.delay_us(*version)).collect()
    }

    #[test]
    fn the_delay_is_that_of_each_version() {
        assert_eq!(delays(lag(600_000, 400_000)), [10_000, 10_000, 5_004, 5_004], "cut off");
        assert_eq!(delays(lag(400_040, 400_000)), [5_001, 5_001, 6, 6], "the step of 5 ms");
        assert_eq!(delays(lag(2_000, 1_000)), [15_000, 15_000, 10_005, 10_005]);
        assert_eq!(delays(lag(1_000, 1_000)), [0; 4], "up to the limit");
        assert_eq!(delays(lag(1_000_000, 0)), [0; 4], "no limit");
    }

    #[test]
    fn caps_blocks_and_what_is_in_hand_are_each_versions_own() {
        let capped = Lag { max_delay_us: 500, ..lag(2_000, 1_000) };
        assert_eq!(delays(capped), [15_000, 500, 500, 500]);
        let off = Lag { max_delay_us: 0, ..lag(2_000, 1_000) };
        assert_eq!(delays(off), [15_000, 0, 0, 0], "a cap of 0 keeps it off");
        let blocked = Lag { is_blocked: true, ..lag(2_000, 1_000) };
        assert_eq!(delays(blocked), [0, 15_000, 10_005, 10_005]);
        let in_hand = Lag { in_hand: 4_000, ..lag(2_000, 1_000) };
        assert_eq!(delays(in_hand), [15_000, 15_000, 10_005, 0]);
    }
}
