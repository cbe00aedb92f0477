//! What a committing thread does before it changes anything.

use iostrata_page::Lsn;

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
    /// Flush by itself, as the engines of history let their users do, then go on.
    FlushSelf {
        /// Pages whose oldest change is before this LSN.
        until: Lsn,
        /// Whether to go on only when they are written.
        wait: bool,
    },
    /// Wait until the checkpoint has reached this LSN, then ask again.
    WaitCheckpoint(Lsn),
}

/// Words of an admission rule.
pub const ADMIT_WORDS: usize = 5;

/// When threads go on, are slowed down or wait, as plain words that atomics can publish.
///
/// Words read one by one while they are being replaced may be of two rules: every mixture decides
/// something sound, since a policy keeps `wait_age` at the redo's limit in each of its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmitRule {
    /// Checkpoint age from which threads are delayed, in bytes; `u64::MAX` for never.
    pub delay_age: u64,
    /// Checkpoint age at which threads wait for a checkpoint, in bytes.
    pub wait_age: u64,
    /// Scale of the delays, in microseconds: the delay halfway between the two.
    pub span_us: u64,
    /// Age of the oldest change from which a thread flushes itself; `u64::MAX` for never.
    pub flush_self_age: u64,
    /// Age of the oldest change from which it waits for that; `u64::MAX` for never.
    pub flush_wait_age: u64,
}

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
            flush_self_age: u64::MAX,
            flush_wait_age: u64::MAX,
        }
    }

    /// What a thread does that is about to append redo at `lsn`. `oldest` is the oldest change of a
    /// dirty page, or `lsn` when none is dirty.
    #[inline]
    #[must_use]
    pub fn decide(&self, lsn: Lsn, checkpoint: Lsn, oldest: Lsn) -> Admit {
        let age = lsn.0.saturating_sub(checkpoint.0);
        let modified = lsn.0.saturating_sub(oldest.0);
        if age < self.delay_age && age < self.wait_age && modified < self.flush_self_age {
            return Admit::Go;
        }
        self.hold_back(lsn, age, modified)
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
            return Admit::WaitCheckpoint(Lsn(lsn.0 - self.wait_age + 1));
        }
        if modified >= self.flush_self_age {
            let excess = modified - self.flush_self_age;
            let until = Lsn(lsn.0 - modified + excess + 1);
            return Admit::FlushSelf { until, wait: modified >= self.flush_wait_age };
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
        [self.delay_age, self.wait_age, self.span_us, self.flush_self_age, self.flush_wait_age]
    }

    /// From published words.
    #[must_use]
    pub fn from_words(words: [u64; ADMIT_WORDS]) -> AdmitRule {
        let [delay_age, wait_age, span_us, flush_self_age, flush_wait_age] = words;
        AdmitRule { delay_age, wait_age, span_us, flush_self_age, flush_wait_age }
    }
}

#[cfg(test)]
mod tests;
