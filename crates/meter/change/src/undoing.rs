//! Undoing many changes: in reverse order, past failures, each journaled.
//!
//! Invariant: what stands on something that could not be undone waits with it, and is named; after
//! everything that could be done was done, the rest is still in the journal. Settings of a server
//! go back also where it can be written no more: undone once more they are found as before.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::effect::{How, Left, Undone};
use crate::error::{ChangeError, JournalError};
use crate::journal::{Journal, JournalEntry, Record};
use crate::kind::settings::Placed;
use crate::platform::Platform;
use crate::seen::ChangeId;
use crate::{change, kind};

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoOutcome {
    /// It is settled.
    Undone(How),
    /// It could not be undone and stays in the journal; why.
    Failed(String),
}

/// One change with what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    /// Its number.
    pub id: ChangeId,
    /// The change in words.
    pub change: String,
    /// What became of it.
    pub outcome: UndoOutcome,
    /// The statements by which a person does what could not be done, where there are such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_hand: Vec<String>,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, outcome, .. } = self;
        match outcome {
            UndoOutcome::Undone(How::PutBack) => write!(f, "undone: {change}"),
            UndoOutcome::Undone(How::AsBefore) => write!(f, "nothing to undo: {change}"),
            UndoOutcome::Undone(How::WhenUnused) => {
                write!(f, "undone as soon as its last user ends: {change}")
            }
            UndoOutcome::Undone(How::LeftAlone) => {
                write!(f, "left, it is not ours any more: {change}")
            }
            UndoOutcome::Failed(why) => write!(f, "not undone: {change}: {why}"),
        }
    }
}

/// What became of all changes of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoReport {
    /// The changes, in the order in which they were undone.
    pub things: Vec<Thing>,
    /// What is neither ours nor as before, each thing once.
    pub left: Vec<Left>,
}

impl UndoReport {
    /// Whether everything is settled.
    pub fn is_settled(&self) -> bool {
        !self.things.iter().any(|thing| matches!(thing.outcome, UndoOutcome::Failed(_)))
    }

    fn leave(&mut self, left: Vec<Left>) {
        for one in left {
            if self.left.iter().all(|other| other.thing != one.thing) {
                self.left.push(one);
            }
        }
    }
}

/// Undoes one change, with its lines in the journal; `next` is undone right after it.
pub(crate) fn one(
    platform: &dyn Platform,
    journal: &mut Journal,
    entry: &mut JournalEntry,
    next: &[JournalEntry],
) -> Result<Undone, ChangeError> {
    if !entry.was_undoing {
        let noted = journal.append(&Record::Undoing { id: entry.id });
        noted.or_else(|error| may_go_unnoted(entry, error))?;
        // Only what an earlier, broken-off undoing left counts as such.
        let undone = kind::undo(platform, entry, next);
        entry.was_undoing = true;
        return settle(journal, entry, undone?);
    }
    let undone = kind::undo(platform, entry, next)?;
    settle(journal, entry, undone)
}

fn settle(
    journal: &mut Journal,
    entry: &JournalEntry,
    undone: Undone,
) -> Result<Undone, ChangeError> {
    let noted = journal.append(&Record::Undone { id: entry.id, how: undone.how });
    noted.or_else(|error| may_go_unnoted(entry, error))?;
    Ok(undone)
}

/// Whether a change may be undone though the journal cannot tell it.
fn may_go_unnoted(entry: &JournalEntry, error: JournalError) -> Result<(), JournalError> {
    match entry.change {
        Change::ServerSettings { .. } => Ok(()),
        _ => Err(error),
    }
}

/// Undoes all of them, the last first; what is left in `entries` could not be undone.
pub(crate) fn all(
    platform: &dyn Platform,
    journal: &mut Journal,
    entries: &mut Vec<JournalEntry>,
) -> UndoReport {
    let mut report = UndoReport::default();
    // A server that cannot be ended fails again, and is reported, when its own turn comes.
    let _tried = kind::serving::end_stuck(platform, entries);
    let mut stuck: Vec<JournalEntry> = Vec::new();
    while let Some(mut entry) = entries.pop() {
        let above = stuck.iter().find(|other| change::stands_on(&other.change, &entry.change));
        let undone = match above {
            Some(above) => Err(ChangeError::DependedOn {
                what: entry.change.describe(),
                by: above.change.describe(),
            }),
            None => one(platform, journal, &mut entry, entries),
        };
        let outcome = match undone {
            Ok(undone) => {
                report.leave(undone.left);
                UndoOutcome::Undone(undone.how)
            }
            Err(error) => UndoOutcome::Failed(error.to_string()),
        };
        let is_stuck = matches!(outcome, UndoOutcome::Failed(_));
        let group = Placed::of(platform, &entry).filter(|_| is_stuck);
        let by_hand = group.map(|group| group.by_hand()).unwrap_or_default();
        let (id, change) = (entry.id, entry.change.describe());
        report.things.push(Thing { id, change, outcome, by_hand });
        if is_stuck {
            stuck.push(entry);
        }
    }
    stuck.reverse();
    *entries = stuck;
    report
}
