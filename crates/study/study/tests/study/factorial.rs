//! A short study on loop devices, with real file systems; needs root.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_change::{Session, StateDir, System};
use iostrata_plan::study::{
    Cell, Conditions, Extent, FactorLevels, LevelAt, Measuring, QueueSetting, StudyPlan, Volume,
    VolumeKind,
};
use iostrata_plan::{IoSpec, Mix, TransactionSpec};
use iostrata_run::{Event, Replicate};
use iostrata_study::factorial::{
    self, DatabasePlace, Databases, StudiedDatabase, StudyTask, VolumePlace,
};
use iostrata_study::{Listener, StudyError};

/// Keeps nothing and counts what is stored; it can request an end after so many replicates.
struct Keeper<'a> {
    stored: usize,
    stop_after: usize,
    stop: &'a AtomicBool,
}

impl Listener for Keeper<'_> {
    fn progress(&mut self, _share: f64, _text: &str) {}

    fn store(&mut self, event: &Event) -> Result<(), StudyError> {
        self.stored += usize::from(matches!(event, Event::Replicate(_)));
        if self.stored == self.stop_after {
            self.stop.store(true, std::sync::atomic::Ordering::SeqCst);
        }
        Ok(())
    }
}

/// None of these studies runs transactions.
struct NoDatabases;

impl Databases<System> for NoDatabases {
    fn open(
        &mut self,
        _session: &mut Session,
        load: &TransactionSpec,
        _place: &DatabasePlace,
        _stop: &AtomicBool,
        _progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn StudiedDatabase<System>>, StudyError> {
        panic!("{} was asked for", load.workload)
    }

    fn forget(&mut self, _session: &mut Session, _dir: &Path) -> Result<(), StudyError> {
        Ok(())
    }
}

fn cell(kind: VolumeKind, jobs: u32, mix: Mix, scheduler: &str) -> Cell {
    let mut workload = IoSpec::new("");
    (workload.jobs, workload.mix, workload.direct) = (jobs, mix, true);
    workload.size_bytes = 32 << 20;
    let level = |factor: &str, level: &str| LevelAt { factor: factor.into(), level: level.into() };
    let rw = if mix == Mix::Read { "randread" } else { "randwrite" };
    let id = format!("{}_{rw}_w{jobs}_{}", kind.name(), scheduler.replace('-', "_"));
    Cell {
        title: id.clone(),
        id,
        parts: vec!["main".to_owned()],
        levels: vec![
            level("filesystem", kind.name()),
            level("rw", rw),
            level("workers", &jobs.to_string()),
            level("scheduler", scheduler),
        ],
        volume: Volume {
            kind,
            disk: None,
            bytes: None,
            count: 1,
            mkfs_options: Vec::new(),
            mount_options: if kind == VolumeKind::Raw { vec![] } else { vec!["noatime".into()] },
        },
        conditions: Conditions {
            queue: vec![QueueSetting { attribute: "scheduler".into(), value: scheduler.into() }],
            memory_limit_bytes: Some(512 << 20),
            ..Conditions::default()
        },
        workload,
        transactions: None,
        second: None,
        readers: None,
    }
}

fn plan(traced: bool) -> StudyPlan {
    let mut cells = Vec::new();
    for kind in [VolumeKind::Raw, VolumeKind::Ext4] {
        for mix in [Mix::Read, Mix::Write] {
            for jobs in [1, 4] {
                cells.push(cell(kind, jobs, mix, "mq-deadline"));
            }
        }
        cells.push(cell(kind, 1, Mix::Read, "none"));
    }
    let factor = |name: &str, levels: &[&str], is_axis| FactorLevels {
        factor: name.to_owned(),
        levels: levels.iter().map(|&level| level.to_owned()).collect(),
        is_axis,
    };
    StudyPlan {
        name: "short".into(),
        title: "short".into(),
        question: "does it run".into(),
        extent: Extent::Quick,
        factors: vec![
            factor("filesystem", &["raw", "ext4"], false),
            factor("rw", &["randread", "randwrite"], false),
            factor("workers", &["1", "4"], true),
            factor("scheduler", &["mq-deadline", "none"], false),
        ],
        cells,
        measuring: Measuring {
            replicates: 2,
            replicates_max: 3,
            point_time: Duration::from_millis(60),
            budget: Some(Duration::from_secs(60)),
            traced,
            ..Measuring::default()
        },
        answers: Vec::new(),
        then: None,
    }
}

fn run(plan: &StudyPlan, dir: &Path, done: &[Event], stop_after: usize) -> Vec<Event> {
    let state = StateDir::at(dir.join("state"));
    let mut session = Session::begin(&state, System::new()).unwrap();
    let stop = AtomicBool::new(false);
    let mut keeper = Keeper { stored: 0, stop_after, stop: &stop };
    let place = VolumePlace {
        dir: dir.to_owned(),
        device: None,
        overwrite_device: false,
        program: std::env::current_exe().unwrap(),
        memory_bytes: 1 << 30,
    };
    let task = StudyTask { plan, place, done };
    let outcome =
        factorial::run(&task, &mut session, &stop, &mut keeper, &mut NoDatabases).unwrap();
    assert_eq!(outcome.interrupted, keeper.stored >= stop_after);
    let report = session.undo_all();
    assert!(report.is_settled(), "{report:?}");
    outcome.events
}

fn may_change() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let has_loops = Path::new("/dev/loop-control").exists();
    if !is_root || !has_loops {
        eprintln!("skipped: loop devices need root and /dev/loop-control");
    }
    is_root && has_loops
}

fn replicates(events: &[Event]) -> Vec<&Replicate> {
    let of = |event: &'_ Event| matches!(event, Event::Replicate(_));
    events
        .iter()
        .filter(|event| of(event))
        .filter_map(|event| match event {
            Event::Replicate(one) if one.point.block == "main" => Some(&**one),
            _ => None,
        })
        .collect()
}

/// Groups and trace buffers are named after the process, so two studies of one process take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Volumes lie on a real disk: loop devices do direct I/O on their backing files.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

#[test]
fn a_study_measures_every_point_and_leaves_nothing_behind() {
    if !may_change() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = scratch();
    let plan = plan(true);
    let events = run(&plan, dir.path(), &[], usize::MAX);
    let unavailable: Vec<&Event> =
        events.iter().filter(|event| matches!(event, Event::Unavailable(_))).collect();
    let mut count: BTreeMap<&str, u32> = BTreeMap::new();
    for replicate in replicates(&events) {
        *count.entry(&replicate.point.id).or_default() += 1;
        assert!(replicate.streams[0].total.is_some());
        assert!(replicate.evidence.is_some());
        let seed = replicate.point.streams[0].spec.seed;
        assert_eq!(seed, 1 + u64::from(replicate.replicate), "replicates draw anew");
    }
    let traced = |event: &&Event| matches!(event, Event::Traced(_));
    let measured_last = events.iter().rposition(|event| matches!(event, Event::Replicate(_)));
    let traced_first = events.iter().position(|event| traced(&event));
    assert!(
        traced_first.is_none_or(|first| Some(first) > measured_last),
        "nothing is measured while tracepoints are enabled"
    );
    assert_eq!(events.iter().filter(traced).count(), plan.cells.len(), "{unavailable:?}");
    let wanted: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(count.keys().copied().collect::<BTreeSet<_>>(), wanted, "{unavailable:?}");
    assert!(count.values().all(|&count| (2..=3).contains(&count)), "{count:?}");
    let changed = |text: &str| {
        events.iter().any(|event| matches!(event, Event::Changed(one) if one.text.contains(text)))
    };
    assert!(changed("mkfs") || changed("ext4"), "system changes are told");
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
    let left: Vec<_> = names.iter().filter(|name| name.file_name() != "state").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_stopped_study_goes_on_where_it_was() {
    if !may_change() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = scratch();
    let plan = plan(false);
    let first = run(&plan, dir.path(), &[], 14 + 5);
    let had = replicates(&first).len();
    assert!(had >= 5, "{had}");
    let all = run(&plan, dir.path(), &first, usize::MAX);
    let mut seen = BTreeSet::new();
    for replicate in replicates(&all) {
        let key = (replicate.point.id.clone(), replicate.replicate);
        assert!(seen.insert(key.clone()), "{key:?} was measured twice");
    }
    assert!(seen.len() >= plan.cells.len() * 2);
    assert_eq!(replicates(&all)[..had], replicates(&first)[..]);
}
