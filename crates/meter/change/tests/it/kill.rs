//! Runs that are killed at random moments, and restored.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use iostrata_change::{
    BackingFile, Change, ChangeError, CpuGroup, DeviceRef, EnterGroup, FilesystemKind, IoGroup,
    Loop, MakeFilesystem, MemoryGroup, Mount, Prewrite, Queue, QueueAttribute, Remount, Session,
    StateDir, Sysctl, System, VmSetting, end_with_starter, leftovers, restore,
};
use iostrata_plan::study::IoLimits;
use rustix::process::Signal;

use crate::machine::{MIB, Place, has};

/// Where the child works; absent in the parent.
const PLACE: &str = "IOSTRATA_TEST_CHURN";

/// Small numbers from a seed (xorshift64).
struct Random(u64);

impl Random {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Self(now.as_nanos() as u64 | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// The program that is killed: makes and undoes changes until then.
#[test]
fn churn() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let place = PathBuf::from(place);
    let mut random = Random::new();
    loop {
        let state = StateDir::at(place.join("state"));
        let mut session = Session::begin(&state, System::new()).unwrap();
        round(&mut session, &place, &mut random);
        let report = session.undo_all();
        assert!(report.is_settled(), "{report:?}");
    }
}

/// Some changes in an order that makes sense, others thrown in, some undone in between.
fn round(session: &mut Session, place: &Path, random: &mut Random) {
    let backing = place.join("disk");
    let device = DeviceRef::Loop { backing: backing.clone() };
    let kinds: Vec<FilesystemKind> =
        [FilesystemKind::Ext4, FilesystemKind::Ext4, FilesystemKind::Xfs]
            .into_iter()
            .filter(|kind| has(kind.program()))
            .collect();
    let kind = random.one(&kinds);
    // XFS takes no small devices.
    let bytes = if kind == FilesystemKind::Xfs { 320 * MIB } else { 64 * MIB };
    let prewrite = match kind {
        FilesystemKind::Ext4 => random.one(&[Prewrite::All, Prewrite::None]),
        _ => Prewrite::None,
    };
    let label = None;
    let at = place.join("deep/mnt");
    let spine: [Change; 5] = [
        BackingFile { path: backing.clone(), bytes, prewrite }.into(),
        Loop { backing, direct: true, block_bytes: None }.into(),
        MakeFilesystem { device: device.clone(), kind, options: vec![], label }.into(),
        Mount { device: device.clone(), at: at.clone(), kind, options: vec![] }.into(),
        Remount { at, options: vec!["noatime".to_owned()] }.into(),
    ];
    for change in spine {
        make(session, change);
        for _ in 0..random.below(4) {
            let change = thrown_in(&device, random);
            let applied = make(session, change);
            if random.below(3) == 0
                && let Some(id) = applied
            {
                session.undo(id).unwrap();
            }
        }
    }
}

fn thrown_in(device: &DeviceRef, random: &mut Random) -> Change {
    let name = "churn".to_owned();
    match random.below(7) {
        0 | 1 => {
            let attribute = random.one(&[QueueAttribute::Scheduler, QueueAttribute::NrRequests]);
            let value = match attribute {
                QueueAttribute::Scheduler => random.one(&["mq-deadline", "bfq", "kyber", "none"]),
                _ => random.one(&["40", "100", "100000"]),
            };
            Queue { device: device.clone(), attribute, value: value.to_owned() }.into()
        }
        2 => {
            let which = random.one(&[VmSetting::DirtyBytes, VmSetting::DirtyBackgroundBytes]);
            Sysctl { which, value: (200 + random.below(100)) * MIB }.into()
        }
        3 => MemoryGroup { name, limit_bytes: 2048 * MIB }.into(),
        4 => {
            let limits = IoLimits { write_iops: Some(10_000), ..IoLimits::default() };
            IoGroup { name, device: device.clone(), limits }.into()
        }
        5 => CpuGroup { name, milli_cpus: 1_500 }.into(),
        _ => EnterGroup { name }.into(),
    }
}

/// What is not there or stands in the way is no failure here: order is random.
fn make(session: &mut Session, change: Change) -> Option<iostrata_change::ChangeId> {
    match session.apply(change) {
        Ok(applied) => Some(applied.id),
        Err(ChangeError::Unavailable { .. } | ChangeError::Taken { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn start(place: &Place) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "kill::churn", "--nocapture"]).env(PLACE, place.path(""));
    child.stdout(Stdio::null()).stderr(Stdio::piped());
    end_with_starter(&mut child, Signal::KILL).spawn().unwrap()
}

#[test]
fn a_killed_run_is_restored() {
    let Some(place) = Place::new("a_killed_run_is_restored") else { return };
    let kills = if std::env::var_os("IOSTRATA_SOAK").is_some() { 100 } else { 8 };
    let before = place.snapshot();
    let mut random = Random::new();
    let mut in_place = 0;
    for kill in 0..kills {
        let mut child = start(&place);
        place.await_lines(2 + random.below(18) as usize);
        std::thread::sleep(Duration::from_millis(random.below(30)));
        // By its own handle, so that no other process is hit.
        child.kill().unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_none(), "it ended by itself before kill {kill}: {said}");
        in_place += usize::from(!leftovers(&place.state()).is_empty());
        let journal = place.journals();
        let report = restore(&place.state(), &System::new());
        assert!(report.is_settled(), "kill {kill}: {report:#?}\n{journal}");
        let left: Vec<_> = report.journals.iter().flat_map(|one| &one.left).collect();
        assert!(left.is_empty(), "kill {kill}: {left:?}\n{journal}");
        assert!(place.journals().is_empty());
        before.assert_same(&place.snapshot(), &format!("kill {kill}\n{journal}\n{report:#?}"));
        assert!(restore(&place.state(), &System::new()).journals.is_empty(), "it is idempotent");
    }
    eprintln!("{in_place} of {kills} kills hit a run with changes in place");
    assert!(in_place * 2 >= kills, "too few kills hit a run with changes in place");
}
