//! The journal entry of one change, untyped and with the types of its kind.
//!
//! Invariant: an [`Entry`] is there only where what was noted before a change is of its kind.

use super::{Change, Effect, Kind, Member, Prior};
use crate::error::ChangeError;
use crate::seen::ChangeId;
use crate::variables::ServerSetting;

/// A change as its lines record it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub(crate) id: ChangeId,
    pub(crate) change: Change,
    pub(crate) prior: Prior,
    /// Absent: it may or may not have happened.
    pub(crate) effect: Option<Effect>,
    /// Settings of a group whose adjustment was journaled, but not its result.
    pub(crate) adjusting: Vec<ServerSetting>,
    /// Undoing it had begun.
    pub(crate) was_undoing: bool,
}

impl JournalEntry {
    /// A change that is about to be made.
    pub(crate) fn intended(id: ChangeId, change: Change, prior: Prior) -> Self {
        Self { id, change, prior, effect: None, adjusting: Vec::new(), was_undoing: false }
    }

    /// It as one of kind `K`; `None` where it is of another kind, or damaged.
    pub(crate) fn of<K: Kind>(&self) -> Option<Entry<'_, K>> {
        Entry::of(K::of(&self.change)?, self, &[]).ok()
    }
}

/// A change of kind `K` as its lines record it.
pub(crate) struct Entry<'a, K: Kind> {
    pub(crate) change: &'a K,
    pub(crate) prior: &'a K::Prior,
    /// Absent: it may or may not have happened.
    pub(crate) effect: Option<&'a K::Effect>,
    /// Settings of a group whose adjustment was journaled, but not its result.
    pub(crate) adjusting: &'a [ServerSetting],
    /// Undoing it had begun before.
    pub(crate) was_undoing: bool,
    /// What is undone right after it.
    pub(crate) next: &'a [JournalEntry],
}

impl<'a, K: Kind> Entry<'a, K> {
    pub(super) fn of(
        change: &'a K,
        entry: &'a JournalEntry,
        next: &'a [JournalEntry],
    ) -> Result<Self, ChangeError> {
        let JournalEntry { effect, adjusting, was_undoing, .. } = entry;
        Ok(Self {
            change,
            prior: prior_of(change, &entry.prior)?,
            effect: effect.as_ref().and_then(K::Effect::of),
            adjusting,
            was_undoing: *was_undoing,
            next,
        })
    }
}

/// What was noted before this change.
pub(super) fn prior_of<'a, K: Kind>(
    change: &K,
    prior: &'a Prior,
) -> Result<&'a K::Prior, ChangeError> {
    K::Prior::of(prior).ok_or_else(|| ChangeError::Damaged { what: change.describe() })
}
