//! The lines of a journal.
//!
//! Invariant: lines are only added, or all replaced by fewer that say the same; a change counts as
//! undone when its last line says so.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::effect::{Effect, How, Prior};
use crate::owner::Owner;
use crate::tokens::ChangeId;
use crate::variables::ServerSetting;

/// Version of the lines.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first.
    Journal { version: u32, owner: Owner },
    /// A change is about to be made.
    Intent { id: ChangeId, change: Change, before: Prior },
    /// Settings of a group that is in place are about to be adjusted.
    Adjusting { id: ChangeId, settings: Vec<ServerSetting> },
    /// It was made, or adjusted.
    Done { id: ChangeId, after: Effect },
    /// The journal belongs to this process from now on.
    HandedOver { to: Owner },
    /// It is about to be undone.
    Undoing { id: ChangeId },
    /// It is undone.
    Undone { id: ChangeId, how: How },
    /// Files to measure on are about to be made; they go with their process.
    Files { at_us: u64, paths: Vec<PathBuf> },
}

/// A change as the lines tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub(crate) id: ChangeId,
    pub(crate) change: Change,
    pub(crate) prior: Prior,
    /// Absent: it may or may not have happened.
    pub(crate) effect: Option<Effect>,
    /// What of a group was being set when nobody noted any more what came of it.
    pub(crate) adjusting: Vec<ServerSetting>,
    /// Undoing it had begun.
    pub(crate) was_undoing: bool,
}

impl JournalEntry {
    /// A change that is about to be made.
    pub(crate) fn intended(id: ChangeId, change: Change, prior: Prior) -> Self {
        Self { id, change, prior, effect: None, adjusting: Vec::new(), was_undoing: false }
    }

    /// The lines that tell it.
    pub(crate) fn records(&self) -> Vec<Record> {
        let Self { id, change, prior, .. } = self;
        let id = *id;
        let mut records =
            vec![Record::Intent { id, change: change.clone(), before: prior.clone() }];
        records.extend(self.effect.clone().map(|after| Record::Done { id, after }));
        if !self.adjusting.is_empty() {
            records.push(Record::Adjusting { id, settings: self.adjusting.clone() });
        }
        if self.was_undoing {
            records.push(Record::Undoing { id });
        }
        records
    }
}
