//! A place for a test, and what the machine looks like.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iostrata_change::{
    BackingFile, DeviceRef, Loop, Prewrite, QueueAttribute, Session, StateDir, System,
};
use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;

/// Tests that change the machine go one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A directory on the disk of the build, with the state of its sessions.
pub struct Place {
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    /// `None`, with the reason printed, where nothing can be changed.
    pub fn new(test: &str) -> Option<Self> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: {test}: changing the machine needs root");
            return None;
        }
        if !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: {test}: there are no loop devices");
            return None;
        }
        let dir = TempDir::with_prefix_in("change-", env!("CARGO_TARGET_TMPDIR")).unwrap();
        Some(Self { dir, _alone: alone })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    pub fn state(&self) -> StateDir {
        StateDir::at(self.path("state"))
    }

    pub fn session(&self) -> Session {
        Session::begin(&self.state(), System::new()).unwrap()
    }

    /// All lines of all journals.
    pub fn journals(&self) -> String {
        let entries = fs::read_dir(self.path("state")).into_iter().flatten().flatten();
        entries.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default()).collect()
    }

    /// Waits until the journals of a child have so many lines: a clock that a slow machine does
    /// not shift.
    pub fn await_lines(&self, lines: usize) {
        let has_them = |_| {
            std::thread::sleep(Duration::from_millis(1));
            self.journals().lines().count() >= lines
        };
        assert!((0..60_000).any(has_them), "no journal of {lines} lines: {}", self.journals());
    }

    /// What this place's things and the shared settings look like now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.dir.path())
    }
}

/// What must be as before.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    files: Vec<PathBuf>,
    /// Mounts below the place, or of a loop device over one of its files.
    mounts: Vec<String>,
    /// Loop devices over files of the place.
    loops: Vec<String>,
    /// Queues of loop devices that are not in use.
    free_queues: BTreeMap<String, Vec<(&'static str, String)>>,
    groups: Vec<PathBuf>,
    vm: Vec<(String, String)>,
}

impl Snapshot {
    fn take(place: &Path) -> Self {
        let place = fs::canonicalize(place).unwrap();
        let text = place.to_string_lossy().into_owned();
        let names = || fs::read_dir("/sys/block").unwrap().flatten();
        let disks: Vec<String> =
            names().map(|entry| entry.file_name().into_string().unwrap()).collect();
        let loops: Vec<String> =
            disks.iter().filter(|disk| disk.starts_with("loop")).cloned().collect();
        let backing = |disk: &String| cell(disk, "loop/backing_file");
        let ours = |disk: &&String| backing(disk).is_some_and(|path| path.starts_with(&text));
        let free = loops.iter().filter(|disk| backing(disk).is_none());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let vm = fs::read_dir("/proc/sys/vm").unwrap().flatten();
        Self {
            files: files(&place),
            mounts: mounts.lines().filter(|line| line.contains(&text)).map(str::to_owned).collect(),
            loops: loops.iter().filter(ours).cloned().collect(),
            free_queues: free.map(|disk| (disk.clone(), queue(disk))).collect(),
            groups: groups(),
            vm: vm
                .map(|entry| entry.path())
                .filter(|path| path.to_string_lossy().contains("/dirty_"))
                .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
                .collect(),
        }
    }

    pub fn loops_are_gone(&self) -> bool {
        self.loops.is_empty()
    }

    /// Panics when something differs. Loop devices that others took or gave back meanwhile are
    /// not compared.
    pub fn assert_same(&self, later: &Self, what: &str) {
        let kept = |queues: &BTreeMap<String, _>, name: &String| queues.contains_key(name);
        for (name, queue) in &self.free_queues {
            if kept(&later.free_queues, name) {
                assert_eq!(queue, &later.free_queues[name], "queue of {name} after {what}");
            }
        }
        let rest = |one: &Self| {
            (
                one.files.clone(),
                one.mounts.clone(),
                one.loops.clone(),
                one.groups.clone(),
                one.vm.clone(),
            )
        };
        assert_eq!(rest(self), rest(later), "after {what}");
    }
}

fn cell(disk: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new("/sys/block").join(disk).join(name)).ok()?;
    Some(text.trim().to_owned())
}

pub fn queue(disk: &str) -> Vec<(&'static str, String)> {
    let value = |one: QueueAttribute| cell(disk, &format!("queue/{}", one.name()));
    QueueAttribute::ALL
        .into_iter()
        .map(|one| (one.name(), value(one).unwrap_or_default()))
        .collect()
}

/// Everything below a directory but journals' own directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() && entry.file_name() != "state" {
            found.extend(files(&path));
        }
        if entry.file_name() != "state" {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Names of the groups that these tests make; other runs of the program have others.
const GROUPS: [&str; 2] = ["-churn", "-small"];

/// Groups of these tests, of any tree.
fn groups() -> Vec<PathBuf> {
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("iostrata-") && GROUPS.iter().any(|own| name.ends_with(own)) {
                    found.push(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// A file of the place and the loop device over it.
pub fn disk(place: &Place, name: &str, mib: u64) -> (BackingFile, Loop, DeviceRef) {
    let path = place.path(name);
    let file = BackingFile { path: path.clone(), bytes: mib * MIB, prewrite: Prewrite::All };
    let attach = Loop { backing: path.clone(), direct: true, block_bytes: None };
    (file, attach, DeviceRef::Loop { backing: path })
}

pub fn has(program: &str) -> bool {
    Command::new(program).arg("-V").output().is_ok()
}
