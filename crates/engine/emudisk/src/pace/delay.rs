//! Answers that wait for longer than the model says.

use std::collections::BTreeMap;

use super::Due;

/// They, by the moment at which they are due.
#[derive(Debug)]
pub(super) struct Delayed<A> {
    /// The second number tells those of the same moment apart.
    waiting: BTreeMap<(u64, u64), A>,
    count: u64,
}

impl<A> Delayed<A> {
    pub(super) fn new() -> Self {
        Self { waiting: BTreeMap::new(), count: 0 }
    }

    pub(super) fn push(&mut self, due: Due<A>) {
        self.waiting.insert((due.at_ns, self.count), due.answer);
        self.count += 1;
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// Appends those that are due.
    pub(super) fn take(&mut self, now_ns: u64, due: &mut Vec<Due<A>>) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now_ns
        {
            let ((at_ns, _), answer) = first.remove_entry();
            due.push(Due { answer, at_ns });
        }
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = A> + use<A> {
        std::mem::take(&mut self.waiting).into_values()
    }
}
