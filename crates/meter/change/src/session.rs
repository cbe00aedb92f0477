//! Changes of one process, from the first to the last undone.
//!
//! Invariant: each change goes intent, act, read back, done, and so does each adjustment of one; a
//! change that fails halfway is undone at once; dropping the session undoes what is in place, also
//! when a panic does it. It decides nothing about what to change.
//!
//! Invariants: a change is counted before its intent is written and until it is undone; once ending
//! has begun no change is counted any more, so the count can only fall. Of two processes that begin
//! at once with one setting of a server at most one goes on: each writes down what it is about to
//! do before it looks for others the last time, so at least one of them sees the other. Processes
//! of users that keep their journals elsewhere are not seen.

use std::fs;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{ChangeError, JournalError};
use crate::journal::{Journal, Record, StateDir, parse};
use crate::kind::settings::PlacedGroup;
use crate::kind::{
    self, Change, Effect, JournalEntry, ServerEffect, ServerSettings, SettingsEffect,
    SettingsPrior, Site,
};
use crate::platform::Platform;
use crate::restore::{self, UndoReport};
use crate::seen::{ChangeId, DeviceRef, Owner};
use crate::system::System;
use crate::undone::{How, Undone};
use crate::variables::ServerSetting;

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChange {
    /// Its number, by which it is undone.
    pub id: ChangeId,
    /// The change, with absolute paths.
    pub change: Change,
    /// What the kernel really took.
    pub effect: Effect,
}

impl AppliedChange {
    /// The requested value and the one that the kernel or server took, where it is one value.
    pub fn asked_and_took(&self) -> Option<(&str, &str)> {
        kind::asked_and_took(&self.change, &self.effect)
    }
}

/// Changes in place, with their journal. The journal begins with the first change and is removed
/// with the last one undone.
#[derive(Debug)]
pub struct Session<W: Platform = System> {
    platform: W,
    state: StateDir,
    journal: Option<Journal>,
    active: Vec<JournalEntry>,
    last_id: u32,
}

impl<W: Platform> Session<W> {
    /// A session without changes. Nothing is written yet.
    ///
    /// # Errors
    /// None today; the state directory is made with the first change.
    pub fn begin(state: &StateDir, platform: W) -> Result<Self, ChangeError> {
        let state = state.clone();
        Ok(Self { platform, state, journal: None, active: Vec::new(), last_id: 0 })
    }

    /// The machine.
    pub fn platform(&self) -> &W {
        &self.platform
    }

    /// The changes in place, oldest first.
    pub fn in_place(&self) -> impl Iterator<Item = (ChangeId, &Change)> {
        self.active.iter().map(|entry| (entry.id, &entry.change))
    }

    /// The change in one line, with the present value.
    pub fn describe(&self, change: &Change) -> String {
        crate::describe::line(&self.platform, change)
    }

    /// Makes one change.
    ///
    /// # Errors
    /// [`ChangeError::Unavailable`] when this kernel or machine does not have it,
    /// [`ChangeError::Refused`] and [`ChangeError::Taken`] when it must not be done; others as
    /// their texts state. What was done until then is undone.
    pub fn apply(&mut self, change: impl Into<Change>) -> Result<AppliedChange, ChangeError> {
        let change = change.into().located(|path| self.platform.real(path));
        if !begin_change() {
            return Err(ChangeError::Ending);
        }
        let before = self.active.len();
        let applied = self.make(change);
        // One that failed may be stuck halfway and then still counts.
        if self.active.len() == before {
            end_changes(1);
        }
        applied
    }

    fn make(&mut self, change: Change) -> Result<AppliedChange, ChangeError> {
        let site = Site { platform: &self.platform, active: &self.active, journal: None };
        let prior = kind::prior(&change, &site)?;
        let mut entry = JournalEntry::intended(ChangeId(self.last_id + 1), change, prior);
        let own = self.journal.as_ref().map(Journal::path);
        refuse_taken(&self.platform, &self.state, own, &entry)?;
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(Journal::begin(&self.state, &self.platform.owner())?),
        };
        self.last_id += 1;
        let id = entry.id;
        journal.append(&Record::intent(&entry))?;
        // Once more: now others see the intent.
        if let Err(taken) = refuse_taken(&self.platform, &self.state, Some(journal.path()), &entry)
        {
            journal.append(&Record::Undone { id, how: How::AsBefore })?;
            return Err(taken);
        }
        let site =
            Site { journal: Some(journal.lock()), platform: &self.platform, active: &self.active };
        let acted = kind::apply(&entry.change, &site, &entry.prior);
        let noted = acted.and_then(|after| {
            journal.append(&Record::Done { id, after: after.clone() })?;
            Ok(after)
        });
        match noted {
            Ok(effect) => {
                entry.effect = Some(effect.clone());
                let change = entry.change.clone();
                self.active.push(entry);
                Ok(AppliedChange { id, change, effect })
            }
            Err(error) => {
                if restore::undo_one(&self.platform, journal, &mut entry, &[]).is_err() {
                    self.active.push(entry);
                }
                Err(error)
            }
        }
    }

    /// Changes settings of a group that is in place, as often as it is called; the effect is what
    /// the server made of them. What has the value already is not set.
    ///
    /// # Errors
    /// [`ChangeError::Restarted`] when the server is not the one any more on which the group was
    /// applied, and [`ChangeError::SetByOther`] when one of these settings was changed by another
    /// client meanwhile: nothing was set then. Of others, some may be set. The group stays in
    /// place, and undoing it puts everything back.
    pub fn adjust(
        &mut self,
        id: ChangeId,
        wanted: &[ServerSetting],
    ) -> Result<Effect, ChangeError> {
        if is_ending() {
            return Err(ChangeError::Ending);
        }
        let at = self.active.iter().position(|entry| entry.id == id);
        let (Some(at), Some(journal)) = (at, &mut self.journal) else {
            return Err(ChangeError::NotInPlace { id });
        };
        let entry = &mut self.active[at];
        let group = PlacedGroup::of(&self.platform, entry);
        let group = group.ok_or_else(|| ChangeError::Damaged { what: entry.change.describe() })?;
        let (before, steps) = group.before(wanted)?;
        if let ([], Some(effect)) = (steps.as_slice(), &entry.effect) {
            return Ok(effect.clone());
        }
        journal.append(&Record::Adjusting { id, settings: steps.clone() })?;
        let noted = group.set(&before, &steps).and_then(|(took, set)| {
            let effect = Effect::from(SettingsEffect { asked: wanted.to_vec(), took });
            journal.append(&Record::Done { id, after: effect.clone() })?;
            Ok((effect, set))
        });
        let (effect, set) = match noted {
            Ok(noted) => noted,
            Err(error) => {
                entry.adjusting.extend(steps);
                return Err(error);
            }
        };
        entry.adjusting.clear();
        entry.effect = Some(effect.clone());
        set?;
        if !self.active.iter().any(kind::serving::holds_journal) {
            // The long one is as good; the next adjustment tries again.
            let _stays_long = journal.shorten(&self.platform.owner(), &self.active);
        }
        Ok(effect)
    }

    /// The statements by which a person puts back a group of settings that is in place, whatever
    /// they are by then; none for another change.
    pub fn by_hand(&self, id: ChangeId) -> Vec<String> {
        let entry = self.active.iter().find(|entry| entry.id == id);
        let group = entry.and_then(|entry| PlacedGroup::of(&self.platform, entry));
        group.map(|group| group.by_hand_all()).unwrap_or_default()
    }

    /// Whether what a device holds may be lost, as for making a file system on it: never while it
    /// is in use, and only if it is empty, over a file of this session, or named to be overwritten.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] with what was found, and others when it cannot be inspected.
    pub fn may_overwrite(&self, device: &DeviceRef) -> Result<(), ChangeError> {
        kind::filesystem::may_overwrite(&self.platform, device, &self.active)
    }

    /// Undoes one change.
    ///
    /// # Errors
    /// [`ChangeError::DependedOn`] while a later change stands on it; [`ChangeError::NotInPlace`]
    /// when it is undone already. On others it stays in place and may be tried again.
    pub fn undo(&mut self, id: ChangeId) -> Result<Undone, ChangeError> {
        let at = self.active.iter().position(|entry| entry.id == id);
        let (Some(at), Some(journal)) = (at, &mut self.journal) else {
            return Err(ChangeError::NotInPlace { id });
        };
        kind::serving::end_stuck(&self.platform, &self.active)?;
        let (earlier, later) = self.active.split_at_mut(at + 1);
        let entry = &mut earlier[at];
        if let Some(above) =
            later.iter().find(|above| kind::stands_on(&above.change, &entry.change))
        {
            let (what, by) = (entry.change.describe(), above.change.describe());
            return Err(ChangeError::DependedOn { what, by });
        }
        let undone = restore::undo_one(&self.platform, journal, entry, &[])?;
        self.active.remove(at);
        end_changes(1);
        // A journal that stays contains nothing, or what the next restore finds as before.
        let _stays_empty = self.close_when_empty();
        Ok(undone)
    }

    /// Undoes everything, the last first, and continues after failures. What could not be undone
    /// stays in place and in the journal.
    pub fn undo_all(&mut self) -> UndoReport {
        let before = self.active.len();
        let report = match &mut self.journal {
            Some(journal) => restore::all(&self.platform, journal, &mut self.active),
            None => UndoReport::default(),
        };
        end_changes((before - self.active.len()) as u32);
        // An empty journal that stays is removed by the next restore.
        let _stays_empty = self.close_when_empty();
        report
    }

    /// Leaves everything in place behind, to the server of this session that holds the journal:
    /// the journal counts as in use as long as that server lives, and is left over afterwards.
    ///
    /// # Errors
    /// When no such server exists, or the journal cannot be written: everything is undone.
    pub fn hand_over(mut self) -> Result<Owner, ChangeError> {
        let mut servers = self.active.iter().filter_map(kind::serving::holder);
        let server = servers.next().and_then(|server| server.effect);
        let (Some(ServerEffect { process, .. }), Some(journal)) = (server, &mut self.journal)
        else {
            return Err(ChangeError::unavailable(
                "to leave these changes behind",
                "no server of this session holds its journal",
                "start one that does first",
            ));
        };
        let process = process.clone();
        journal.append(&Record::HandedOver { to: process.clone() })?;
        // From here on they are not ours to undo; closing the file leaves the server its lock.
        end_changes(self.active.len() as u32);
        self.active.clear();
        self.journal = None;
        Ok(process)
    }

    /// Lets the journal be written no more, as on a disk that has become read-only.
    #[cfg(test)]
    pub(crate) fn stop_noting(&mut self) {
        self.journal.iter_mut().for_each(Journal::stop_noting);
    }

    fn close_when_empty(&mut self) -> Result<(), JournalError> {
        match self.journal.take() {
            Some(journal) if self.active.is_empty() => journal.remove(),
            journal => {
                self.journal = journal;
                Ok(())
            }
        }
    }
}

impl<W: Platform> Drop for Session<W> {
    fn drop(&mut self) {
        let _in_the_journal = self.undo_all();
        // The journal has them; this process will not undo them any more.
        end_changes(self.active.len() as u32);
    }
}

struct ActiveChanges {
    count: u32,
    ending: bool,
}

static COUNTED: Mutex<ActiveChanges> = Mutex::new(ActiveChanges { count: 0, ending: false });
static FEWER: Condvar = Condvar::new();

fn counted() -> MutexGuard<'static, ActiveChanges> {
    COUNTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts one change, unless the program is ending.
fn begin_change() -> bool {
    let mut counted = counted();
    if !counted.ending {
        counted.count += 1;
    }
    !counted.ending
}

/// Whether the program is ending, so that nothing may be changed any more.
pub(crate) fn is_ending() -> bool {
    counted().ending
}

/// Changes that are undone, or that their session gave up.
fn end_changes(changes: u32) {
    let mut counted = counted();
    counted.count = counted.count.saturating_sub(changes);
    FEWER.notify_all();
}

/// How many changes of the system this process has in place.
pub fn changes_in_place() -> u32 {
    counted().count
}

/// Lets no further change begin and waits until all that are in place are undone, by the threads
/// that hold their sessions. For the thread that ends the program at once: it must not before this
/// returns.
pub fn wait_until_undone() {
    let mut counted = counted();
    counted.ending = true;
    while counted.count > 0 {
        counted = FEWER.wait(counted).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Refuses settings of a server when the journal of another process has one of them, or one that
/// moves with them. `own` is the journal of the caller.
fn refuse_taken(
    platform: &dyn Platform,
    state: &StateDir,
    own: Option<&Path>,
    intended: &JournalEntry,
) -> Result<(), ChangeError> {
    let Some(group) = intended.of::<ServerSettings>() else { return Ok(()) };
    for path in state.journals().iter().filter(|path| Some(path.as_path()) != own) {
        let content = fs::read(path).map(|bytes| parse(&bytes)).unwrap_or_default();
        let mut groups = content.entries.iter().filter_map(JournalEntry::of::<ServerSettings>);
        let Some(other) = groups.find(|other| has_one(other.prior, group.prior)) else { continue };
        let server = group.change.server.clone();
        let (found, fix) = holder(platform, content.owner.as_ref(), other.change);
        return Err(ChangeError::SettingsTaken { server, found, fix });
    }
    Ok(())
}

/// Whether a group has one of the settings of another, on the same server.
fn has_one(group: &SettingsPrior, wanted: &SettingsPrior) -> bool {
    let has = |name| wanted.values.contains_key(name);
    group.server.is(&wanted.server) && group.values.keys().any(has)
}

/// Who has them, and what would help.
fn holder(
    platform: &dyn Platform,
    who: Option<&Owner>,
    group: &ServerSettings,
) -> (String, String) {
    let names = group.names().join(", ");
    let who_text = who.map_or_else(|| "a process".to_owned(), |who| format!("process {}", who.pid));
    match who.filter(|who| platform.is_alive(who)) {
        Some(_) => (format!("{who_text} adjusts {names}"), "end it first".to_owned()),
        None => (
            format!("{who_text} was killed and has left {names} changed"),
            "run iostrata restore first".to_owned(),
        ),
    }
}
