//! What a committing thread does before it changes anything.

use crate::Lsn;

/// What a thread does before its next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Go on.
    Go,
    /// Wait this long, then ask `decide_delayed`.
    Delay {
        /// Microseconds.
        us: u64,
    },
    /// Wait this long behind those who came before, then ask again: the redo is ahead of its pace.
    Paced {
        /// Microseconds.
        us: u64,
    },
    /// Flush by itself, as the engines of history let their users do, then go on.
    FlushSelf {
        /// Pages whose oldest change is before this LSN.
        until: Lsn,
        /// Whether it goes on only when they are written; otherwise it leaves the work to another
        /// thread that is already doing it.
        wait: bool,
    },
    /// Wake the cleaner, then go on.
    WakeCleaner,
    /// Wait until the cleaner has written all changes before this LSN, then go on.
    WaitOldest(Lsn),
    /// Take a checkpoint unless another thread is doing so, then go on.
    TakeCheckpoint,
    /// Wait until the checkpoint has reached an LSN, then ask again.
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

    /// Whether there is a line.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.bytes_per_s == u64::MAX
    }

    /// How long one who syncs redo waits for the commits of the same step, in microseconds.
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
    /// Everyone goes on until `wait_age`, then waits.
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

    /// Whether the age of the oldest change has a say.
    #[inline]
    #[must_use]
    pub fn looks_at_oldest(&self) -> bool {
        self.flush_age != u64::MAX || self.flush_wait_age != u64::MAX
    }

    /// What a thread does that has had its delay: it goes on, but never past `wait_age`, where many
    /// that were delayed together would otherwise arrive together.
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

#[cfg(test)]
mod tests;
