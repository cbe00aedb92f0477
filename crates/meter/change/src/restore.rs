//! Undoing many changes, and putting back what a killed process left changed, from its journal
//! alone; and which journals there are whose owner is gone, for a note and without touching
//! anything.
//!
//! Invariant: a journal whose owner lives is left alone, and one that is locked has a living owner;
//! everything may be repeated; one failure does not keep the rest from being put back; what is
//! still there after a reboot is checked, and what went with it is not.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::{ChangeError, JournalError};
use crate::journal::{Content, Journal, Record, StateDir, is_at, parse};
use crate::kind::settings::PlacedGroup;
use crate::kind::{self, Change, JournalEntry, ServerSettings};
use crate::measuring_files::LeftFile;
use crate::platform::Platform;
use crate::seen::{ChangeId, Owner};
use crate::undone::{How, Left, Undone};
use crate::variables::ServerToken;
use crate::{measuring_files, platform};

/// What a journal's state is after looking at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// Its owner lives; nothing was touched.
    InUse,
    /// Everything in it is settled; it is removed.
    Settled,
    /// Something could not be undone; it stays.
    Unsettled,
}

/// What was done about one journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalReport {
    /// Which.
    pub journal: PathBuf,
    /// Whose, where it is known.
    pub owner: Option<Owner>,
    /// How it ended.
    pub state: JournalState,
    /// The changes in it, in the order in which they were undone.
    pub things: Vec<Thing>,
    /// What is neither ours nor as before.
    pub left: Vec<Left>,
    /// Measuring files that were still there.
    #[serde(default)]
    pub files: Vec<LeftFile>,
    /// Lines that could not be read.
    pub damaged_lines: u32,
    /// Why the journal itself could not be worked with.
    pub error: Option<String>,
}

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// One per journal found.
    pub journals: Vec<JournalReport>,
    /// Why the one requested server did not answer, so that journals which name it by another
    /// address are not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_error: Option<String>,
    /// Other servers whose settings killed processes left changed, where one server was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_servers: Vec<String>,
}

impl RestoreReport {
    /// Whether nothing is left that should have been put back.
    pub fn is_settled(&self) -> bool {
        let is_left = |journal: &JournalReport| journal.state == JournalState::Unsettled;
        self.server_error.is_none() && !self.journals.iter().any(is_left)
    }
}

/// Undoes the changes of every journal whose owner is gone.
pub fn restore(state: &StateDir, platform: &dyn Platform) -> RestoreReport {
    let journals = state.journals().into_iter();
    let one = |path| one(state, platform, path, None);
    RestoreReport { journals: journals.filter_map(one).collect(), ..RestoreReport::default() }
}

/// Undoes the changes of the journals whose owner is gone and that concern one server. It is
/// reached by this address, whatever address the journals name it by, and contacted only when
/// settings of any server are in them.
pub fn restore_server(state: &StateDir, platform: &dyn Platform, address: &str) -> RestoreReport {
    let holds = |path: &PathBuf, is_meant: &dyn Fn(&JournalEntry) -> bool| {
        let content = fs::read(path).map(|bytes| parse(&bytes)).unwrap_or_default();
        content.entries.iter().any(is_meant)
    };
    let is_setting = |entry: &JournalEntry| matches!(entry.change, Change::ServerSettings(_));
    let mut journals = state.journals();
    journals.retain(|path| holds(path, &is_setting));
    if journals.is_empty() {
        return RestoreReport::default();
    }
    let (token, server_error) = match platform.servers_at().look(address, &[]) {
        Ok((token, _)) => (Some(token), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let target = OneServer { address, token };
    let (meant, others): (Vec<PathBuf>, Vec<PathBuf>) =
        journals.into_iter().partition(|path| holds(path, &|entry| target.is_of(entry)));
    let other_servers = others.iter().flat_map(|path| left_servers(platform, path)).collect();
    let one = |path| one(state, platform, path, Some(&target));
    let journals = meant.into_iter().filter_map(one).collect();
    RestoreReport { journals, server_error, other_servers }
}

/// The servers in the journal of a dead process.
fn left_servers(platform: &dyn Platform, path: &Path) -> Vec<String> {
    let entries = abandoned(platform, path).map(|content| content.entries).unwrap_or_default();
    let server = |entry: &JournalEntry| {
        let group = entry.of::<ServerSettings>()?;
        Some(format!("{}, changed by {}", group.prior.server, group.change.server))
    };
    entries.iter().filter_map(server).collect()
}

/// Removes the measuring files that processes left when they were killed, where their journals
/// hold nothing else. One report for each journal that was dealt with.
pub fn remove_left_files(state: &StateDir, platform: &dyn Platform) -> RestoreReport {
    let holds_only_files = |path: &PathBuf| {
        let content = fs::read(path).map(|bytes| parse(&bytes)).unwrap_or_default();
        !content.files.is_empty() && content.entries.is_empty() && content.damaged_lines == 0
    };
    let journals = state.journals().into_iter().filter(holds_only_files);
    let mut journals: Vec<JournalReport> =
        journals.filter_map(|path| one(state, platform, path, None)).collect();
    journals.retain(|journal| journal.state != JournalState::InUse);
    RestoreReport { journals, ..RestoreReport::default() }
}

/// The server whose settings are put back, and how it is reached.
pub(crate) struct OneServer<'a> {
    address: &'a str,
    /// Which it is; absent when it does not answer.
    token: Option<ServerToken>,
}

impl OneServer<'_> {
    fn is_of(&self, entry: &JournalEntry) -> bool {
        let Change::ServerSettings(group) = &entry.change else { return false };
        let is_on_its_data = match (&self.token, entry.of::<ServerSettings>()) {
            (Some(token), Some(group)) => token.is_on_data_of(&group.prior.server),
            _ => false,
        };
        // By the same address another server may answer by now, which settles nothing.
        is_on_its_data || place_of(&group.server) == place_of(self.address)
    }

    fn readdress(&self, entries: &mut [JournalEntry]) {
        for entry in entries.iter_mut().filter(|entry| self.is_of(entry)) {
            if let Change::ServerSettings(group) = &mut entry.change {
                self.address.clone_into(&mut group.server);
            }
        }
    }
}

/// Hosts and socket of an address, without user and database.
fn place_of(address: &str) -> (&str, Option<&str>) {
    let (place, parameters) = address.split_once('?').unwrap_or((address, ""));
    let place = place.split_once("://").map_or(place, |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, rest)| rest);
    let hosts = place.split_once('/').map_or(place, |(hosts, _)| hosts);
    (hosts, parameters.split('&').find_map(|one| one.strip_prefix("socket=")))
}

/// `None` when the journal went away meanwhile.
fn one(
    state: &StateDir,
    platform: &dyn Platform,
    path: PathBuf,
    target: Option<&OneServer<'_>>,
) -> Option<JournalReport> {
    let mut report = unreported(path.clone());
    let worked = match take(state, platform, &path) {
        Ok(Some(journal)) => put_back(platform, journal, target, &mut report),
        Ok(None) => {
            report.owner = parse(&fs::read(&path).ok()?).owner;
            Ok(())
        }
        Err(error) => Err(error),
    };
    if let Err(error) = worked {
        report.state = JournalState::Unsettled;
        report.error = Some(error.to_string());
    }
    Some(report)
}

/// A report of a journal to which nothing was done yet.
pub(crate) fn unreported(journal: PathBuf) -> JournalReport {
    JournalReport {
        journal,
        owner: None,
        state: JournalState::InUse,
        things: Vec::new(),
        left: Vec::new(),
        files: Vec::new(),
        damaged_lines: 0,
        error: None,
    }
}

/// Takes a journal, with patience for a dead owner: a child that it was starting when it was killed
/// holds the lock for a moment longer.
fn take(
    state: &StateDir,
    platform: &dyn Platform,
    path: &Path,
) -> Result<Option<Journal>, JournalError> {
    let mut taken = Journal::take(state, path)?;
    for _ in 0..platform::TRIES {
        if taken.is_some() {
            break;
        }
        let Some(content) = abandoned(platform, path) else { break };
        // A server that was started but never left behind keeps the lock of a dead process.
        let _fails_with_the_journal = kind::serving::end_holders(platform, &content.entries);
        platform.pause();
        taken = Journal::take(state, path)?;
    }
    Ok(taken)
}

/// What a journal holds whose owner is dead.
fn abandoned(platform: &dyn Platform, path: &Path) -> Option<Content> {
    let content = || Some(parse(&fs::read(path).ok()?));
    let owner = content()?.owner?;
    if platform.is_alive(&owner) {
        return None;
    }
    // It may have handed the journal over just before its end.
    content().filter(|content| content.owner.as_ref() == Some(&owner))
}

pub(crate) fn put_back(
    platform: &dyn Platform,
    mut journal: Journal,
    target: Option<&OneServer<'_>>,
    report: &mut JournalReport,
) -> Result<(), JournalError> {
    let content = journal.content()?;
    report.files = measuring_files::remove(&content);
    let Content { owner, mut entries, damaged_lines, .. } = content;
    report.damaged_lines = damaged_lines;
    if let Some(target) = target {
        target.readdress(&mut entries);
    }
    let same_boot = |owner: &Owner| owner.boot_id == platform.owner().boot_id;
    let rebooted = owner.as_ref().is_some_and(|owner| !same_boot(owner));
    report.owner = owner;
    if rebooted {
        report.things = gone_with_the_boot(platform, &mut journal, &mut entries)?;
    }
    let undone = all(platform, &mut journal, &mut entries);
    report.things.extend(undone.things);
    report.left = undone.left;
    let stays = report.files.iter().any(|file| file.error.is_some());
    // An unreadable line may hold a change; it stays for a program that can read it.
    if stays || !entries.is_empty() || damaged_lines > 0 {
        report.state = JournalState::Unsettled;
        return Ok(());
    }
    report.state = JournalState::Settled;
    journal.remove()
}

/// Settles what no reboot survives; files and directories stay to be removed.
fn gone_with_the_boot(
    platform: &dyn Platform,
    journal: &mut Journal,
    entries: &mut Vec<JournalEntry>,
) -> Result<Vec<Thing>, JournalError> {
    let mut things = Vec::new();
    // The innermost directories come last.
    let went = |entry: &mut JournalEntry| !entry.change.outlives_boot();
    let mut gone: Vec<JournalEntry> = entries.extract_if(.., went).collect();
    gone.reverse();
    for entry in gone {
        // What is mounted there now was mounted by others since.
        let _not_empty_or_gone = kind::filesystem::remove_dirs(platform, kind::made_dirs(&entry));
        journal.append(&Record::Undone { id: entry.id, how: How::AsBefore })?;
        let (id, change) = (entry.id, entry.change.describe());
        let outcome = UndoOutcome::Undone(How::AsBefore);
        things.push(Thing { id, change, outcome, by_hand: Vec::new() });
    }
    Ok(things)
}

/// A journal with changes that were not undone, or with files that were not removed.
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
    // A shared lock is enough to see that no process holds the other one; closing gives it back.
    let is_free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    if !is_at(&file, &path) {
        return None;
    }
    let content = parse(&fs::read(&path).ok()?);
    if !is_free && !is_held_for_an_ended_run(&content) {
        return None;
    }
    let lasting = content.entries.iter().filter(|entry| entry.change.is_lasting());
    let changes: Vec<String> = lasting.map(|entry| entry.change.describe()).collect();
    let files = measuring_files::left(&content);
    let is_left = !changes.is_empty() || !files.is_empty() || content.damaged_lines > 0;
    is_left.then_some(Leftover { path, owner: content.owner, changes, files })
}

/// Whether a server holds the journal of a process that died before it left the server behind.
fn is_held_for_an_ended_run(content: &Content) -> bool {
    let is_dead = content.owner.as_ref().is_some_and(|owner| !owner.is_alive());
    is_dead && content.entries.iter().any(kind::serving::holds_journal)
}

// Undoing many changes: in reverse order, past failures, each journaled.
//
// Invariant: what stands on something that could not be undone waits with it, and is named; after
// everything that could be done was done, the rest is still in the journal. Settings of a server
// go back also where it can be written no more: undone once more they are found as before.

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
    /// The statements by which a person does what could not be done, if any.
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
        for undo_one in left {
            if self.left.iter().all(|other| other.thing != undo_one.thing) {
                self.left.push(undo_one);
            }
        }
    }
}

/// Undoes one change, with its lines in the journal; `next` is undone right after it.
pub(crate) fn undo_one(
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

/// Whether a change may be undone though the journal cannot record that.
fn may_go_unnoted(entry: &JournalEntry, error: JournalError) -> Result<(), JournalError> {
    if entry.change.may_go_unnoted() { Ok(()) } else { Err(error) }
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
        let above = stuck.iter().find(|other| kind::stands_on(&other.change, &entry.change));
        let undone = match above {
            Some(above) => Err(ChangeError::DependedOn {
                what: entry.change.describe(),
                by: above.change.describe(),
            }),
            None => undo_one(platform, journal, &mut entry, entries),
        };
        let outcome = match undone {
            Ok(undone) => {
                report.leave(undone.left);
                UndoOutcome::Undone(undone.how)
            }
            Err(error) => UndoOutcome::Failed(error.to_string()),
        };
        let is_stuck = matches!(outcome, UndoOutcome::Failed(_));
        let group = PlacedGroup::of(platform, &entry).filter(|_| is_stuck);
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
