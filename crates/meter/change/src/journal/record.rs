//! The lines of a journal.
//!
//! Invariant: lines are only added; a change counts as undone when its last line says so.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::effect::{Effect, How, Prior};
use crate::owner::Owner;
use crate::tokens::ChangeId;

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
    /// It was made.
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
    /// Undoing it had begun.
    pub(crate) was_undoing: bool,
}
