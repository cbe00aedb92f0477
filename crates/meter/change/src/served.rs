//! Disks that a program serves: listing them, and stopping one that was left behind.
//!
//! Invariant: looking touches neither a device nor a file that a server may have to answer for;
//! what is mounted or open is not stopped, and nothing of it is touched; a disk of a run belongs to
//! that run.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::{ChangeError, JournalError, system};
use crate::journal::{Content, Journal, StateDir, parse};
use crate::kind::{self, Change, FuseServer, JournalEntry, Loop, file, serving};
use crate::platform::{self, Platform};
use crate::restore::{self, JournalReport, JournalState};
use crate::seen::{Answer, DeviceState, Owner};
use crate::server::served_file;

/// Waits of [`Platform::pause`] for a device to be closed: about half a second.
const OPENER_TRIES: u32 = 10;

/// A loop device over a file that a program serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedDisk {
    /// Its node, as `/dev/loop3`.
    pub device: PathBuf,
    /// Where the file is served.
    pub at: PathBuf,
    /// By which program.
    pub program: PathBuf,
    /// With which arguments, without the place.
    pub arguments: Vec<String>,
    /// By which process.
    pub process: Owner,
    /// Whose it is: the server's own, or that of the run that started it.
    pub owner: Owner,
    /// Whether the server lives; of a dead one only the device is left.
    pub is_served: bool,
    /// The device's counters when it was attached, as `/sys/block/loop3/stat` had them.
    pub stat: String,
    journal: PathBuf,
}

impl ServedDisk {
    /// Whether its starter left it behind, so that it may be stopped on its own.
    pub fn is_left_behind(&self) -> bool {
        self.owner == self.process
    }
}

/// Why a disk was not stopped.
#[derive(Debug, Error)]
pub enum StopError {
    /// It is in use.
    #[error("{} is in use: {by}; {fix}", .device.display())]
    InUse {
        /// Its node.
        device: PathBuf,
        /// For what, or by whom.
        by: String,
        /// What would help.
        fix: String,
    },
    /// It belongs to a run.
    #[error(
        "{} belongs to a run that is going on (process {}); it goes when that ends",
        .device.display(), .owner.pid
    )]
    OfARun {
        /// Its node.
        device: PathBuf,
        /// The run.
        owner: Owner,
    },
    /// The server cannot be ended, or the device cannot be inspected.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The journal cannot be worked with.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Every disk that is served, or the server of which was killed, in the order of the devices.
pub fn served_disks(state: &StateDir, platform: &dyn Platform) -> Vec<ServedDisk> {
    let mut found: Vec<ServedDisk> =
        state.journals().into_iter().flat_map(|path| in_journal(platform, path)).collect();
    found.sort_by_key(|disk| (disk.device.as_os_str().len(), disk.device.clone()));
    found
}

fn in_journal(platform: &dyn Platform, journal: PathBuf) -> Vec<ServedDisk> {
    let Ok(bytes) = fs::read(&journal) else { return Vec::new() };
    let Content { owner: Some(owner), entries, .. } = parse(&bytes) else { return Vec::new() };
    let disk = |server: &JournalEntry| disk(platform, &journal, &owner, server, &entries);
    entries.iter().filter_map(disk).collect()
}

fn disk(
    platform: &dyn Platform,
    journal: &Path,
    owner: &Owner,
    server: &JournalEntry,
    entries: &[JournalEntry],
) -> Option<ServedDisk> {
    let server = server.of::<FuseServer>()?;
    let (FuseServer { at, program, arguments, .. }, process) =
        (server.change, &server.effect?.process);
    let file = served_file(at);
    let is_over = |entry: &&JournalEntry| is_over(&entry.change, &file);
    let above = entries.iter().find(is_over)?.of::<Loop>()?;
    let stat = above.effect.map_or_else(String::new, |effect| effect.stat.clone());
    // By what it is over: its number may have changed hands.
    let found = file::find_loops(platform, &above.prior.backing, above.effect).ok()?;
    let attached = found.into_iter().next()?;
    Some(ServedDisk {
        device: attached.path(),
        at: at.clone(),
        program: program.clone(),
        arguments: arguments.clone(),
        process: process.clone(),
        owner: owner.clone(),
        is_served: platform.is_alive(process),
        stat,
        journal: journal.to_owned(),
    })
}

/// Stops a disk that was left behind: detaches it, ends its server, removes what was made for it.
///
/// # Errors
/// As in [`StopError`]; nothing of a disk in use is touched.
pub fn stop_served(
    state: &StateDir,
    platform: &dyn Platform,
    disk: &ServedDisk,
) -> Result<JournalReport, StopError> {
    if !disk.is_left_behind() && platform.is_alive(&disk.owner) {
        let (device, owner) = (disk.device.clone(), disk.owner.clone());
        return Err(StopError::OfARun { device, owner });
    }
    let answer = platform.ask(&served_file(&disk.at));
    refuse_mounted(platform, disk, answer)?;
    if matches!(answer, Answer::There(_)) {
        refuse_open(platform, &disk.device)?;
        // While its server still answers, so that the kernel has no errors to report.
        detach(platform, disk)?;
    }
    if answer == Answer::Stuck {
        // Processes that have it open wait for this.
        serving::force(platform, &disk.process)?;
    }
    if platform.is_alive(&disk.process) {
        serving::end(platform, &disk.process)?;
    }
    let mut report = restore::unreported(disk.journal.clone());
    for _ in 0..platform::TRIES {
        if let Some(journal) = Journal::take(state, &disk.journal)? {
            restore::put_back(platform, journal, None, &mut report)?;
            return Ok(report);
        }
        if !disk.journal.exists() {
            // Another process was faster.
            report.state = JournalState::Settled;
            return Ok(report);
        }
        platform.pause();
    }
    Ok(report)
}

fn is_over(change: &Change, file: &Path) -> bool {
    matches!(change, Change::Loop(over) if over.backing == file)
}

/// Undoes the loop device ahead of the rest, which finds it done.
fn detach(platform: &dyn Platform, disk: &ServedDisk) -> Result<(), ChangeError> {
    let bytes = fs::read(&disk.journal).unwrap_or_default();
    let file = served_file(&disk.at);
    let is_over = |entry: &&JournalEntry| is_over(&entry.change, &file);
    match parse(&bytes).entries.iter().find(is_over) {
        Some(entry) => kind::undo(platform, entry, &[]).map(drop),
        None => Ok(()),
    }
}

/// What is mounted or held stays, also when its server is gone: only its user can let go of it.
fn refuse_mounted(
    platform: &dyn Platform,
    disk: &ServedDisk,
    answer: Answer,
) -> Result<(), StopError> {
    let used = platform.in_use(&disk.device);
    let used = used.map_err(|source| system("look at", &disk.device, source))?;
    let (by, first) = match used {
        Some(DeviceState::Mounted(by)) => (by, "unmount it first (umount)"),
        Some(state) => (state.to_string(), "take that off it first"),
        None => return Ok(()),
    };
    let fix = match answer {
        Answer::There(_) => format!("{first}, then stop it"),
        Answer::Stuck => format!(
            "its server does not answer, so end that (kill -9 {}), {first}, then run iostrata \
             restore",
            disk.process.pid
        ),
        _ => format!("its server is gone, so {first}, then run iostrata restore"),
    };
    Err(StopError::InUse { device: disk.device.clone(), by, fix })
}

/// What others have open stays as well; some programs look at every device for a moment.
fn refuse_open(platform: &dyn Platform, device: &Path) -> Result<(), StopError> {
    let mut openers = platform.openers(device);
    for _ in 0..OPENER_TRIES {
        if openers.is_empty() {
            return Ok(());
        }
        platform.pause();
        openers = platform.openers(device);
    }
    let by = format!("{} has it open", openers.join(", "));
    let fix = "end that first, then stop it".to_owned();
    Err(StopError::InUse { device: device.to_owned(), by, fix })
}
