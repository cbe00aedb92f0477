//! The rule that writers read while the cleaner replaces it.
//!
//! Invariant: nobody reads words of two rules, and nobody who reads takes a lock.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use iostrata_innodb::flush::{ADMIT_WORDS, AdmitRule};

#[derive(Debug)]
pub(crate) struct PublishedRule {
    /// Odd while the words are being replaced.
    version: AtomicU64,
    words: [AtomicU64; ADMIT_WORDS],
}

impl PublishedRule {
    pub fn new(rule: AdmitRule) -> Self {
        Self { version: AtomicU64::new(0), words: rule.to_words().map(AtomicU64::new) }
    }

    /// The caller keeps other writers out. `stored` is called after each word.
    pub fn replace(&self, rule: AdmitRule, mut stored: impl FnMut()) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(rule.to_words()) {
            word.store(value, Ordering::Relaxed);
            stored();
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The rule; none while it is being replaced.
    #[inline]
    fn try_read(&self) -> Option<AdmitRule> {
        let version = self.version.load(Ordering::Acquire);
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        is_whole.then(|| AdmitRule::from_words(words))
    }

    #[inline]
    pub fn read(&self) -> AdmitRule {
        loop {
            if let Some(rule) = self.try_read() {
                return rule;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_is_read_between_two() {
        let rule = PublishedRule::new(AdmitRule::wall(1));
        let mut words = 0;
        rule.replace(AdmitRule::wall(2), || {
            assert_eq!(rule.try_read(), None);
            words += 1;
        });
        assert_eq!((rule.try_read(), words), (Some(AdmitRule::wall(2)), ADMIT_WORDS));
    }
}
