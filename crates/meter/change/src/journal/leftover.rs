//! Journals whose owner is gone, for a note and without touching anything.
//!
//! Invariant: it only looks. A journal that is locked has a living owner and is none of these.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

use super::{Content, JournalEntry, is_at, parse};
use crate::change::Change;
use crate::measuring_files::{self, LeftFile};
use crate::owner::Owner;
use crate::state::StateDir;

/// A journal with changes that nobody undid, or with files that nobody removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The journal.
    pub path: PathBuf,
    /// Whose it was, where the first line can be read.
    pub owner: Option<Owner>,
    /// The changes in words, oldest first.
    pub changes: Vec<String>,
    /// Measuring files that are still there.
    pub files: Vec<LeftFile>,
}

/// The journals of dead processes with something to put back, or with measuring files to remove.
pub fn leftovers(state: &StateDir) -> Vec<Leftover> {
    state.journals().into_iter().filter_map(leftover).collect()
}

fn leftover(path: PathBuf) -> Option<Leftover> {
    let file = File::open(&path).ok()?;
    // A shared lock is enough to see that nobody holds the other one; closing gives it back.
    let is_free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    if !is_at(&file, &path) {
        return None;
    }
    let content = parse(&fs::read(&path).ok()?);
    if !is_free && !is_held_for_nobody(&content) {
        return None;
    }
    let lasting = content.entries.iter().filter(|entry| entry.change.is_lasting());
    let changes: Vec<String> = lasting.map(|entry| entry.change.describe()).collect();
    let files = measuring_files::left(&content);
    let is_left = !changes.is_empty() || !files.is_empty() || content.damaged_lines > 0;
    is_left.then_some(Leftover { path, owner: content.owner, changes, files })
}

/// Whether a server holds the journal of a process that died before it left the server behind.
fn is_held_for_nobody(content: &Content) -> bool {
    let holds = |entry: &JournalEntry| {
        matches!(entry.change, Change::FuseServer { holds_journal: true, .. })
    };
    let is_dead = content.owner.as_ref().is_some_and(|owner| !owner.is_alive());
    is_dead && content.entries.iter().any(holds)
}
