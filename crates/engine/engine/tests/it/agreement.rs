//! The engine on a disk held to a number of requests per second, compared with its model in virtual
//! time.
//!
//! The model's input about the load is counted (pages of the table, redo per transaction); its
//! throughput is not fitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_engine::{Background, Counter, Disks, Engine, Settings, Table};
use iostrata_io::disk::{MemDisk, PacedDisk};
use iostrata_sim::flush::{Demand, FlushDevice, FlushLoad, FlushPlan, PageAccess, run};
use iostrata_stats::stability;

use crate::common::chance::Chance;
use crate::common::is_soak;

/// Rows of the table, bytes of a value, rows that a transaction changes.
const ROWS: usize = 120_000;
const VALUE_BYTES: usize = 200;
const CHANGES: usize = 4;
/// Seconds that are compared, after those in which the redo fills.
const WARM_UP_S: usize = 8;
const SECONDS: usize = 14;
/// By how much throughputs may differ, as a share.
const TPS_OFF_MAX: f64 = 0.15;
/// The same where frames are short: the model writes one order at a time, and the engine frees
/// frames at the same time.
const TPS_OFF_MAX_FEW_FRAMES: f64 = 0.35;

/// What is compared.
#[derive(Clone, Copy, Debug)]
struct Case {
    policy: &'static str,
    redo: &'static str,
    users: u32,
    /// Requests per second of the disk.
    iops: u32,
    pool: &'static str,
    access: PageAccess,
}

impl Case {
    /// Every row is as likely as any other, and all are in memory.
    const fn new(policy: &'static str, redo: &'static str, users: u32, iops: u32) -> Self {
        Self { policy, redo, users, iops, pool: "256M", access: PageAccess::Uniform }
    }
}

/// `page-cleaner-57` and `steady` with 16 users were studied when faults of the model were fixed,
/// as were the two at its edge below; none of the other six chose anything in it.
const SHORT: [Case; 1] = [Case::new("adaptive", "4M", 16, 1500)];
const PAGE_CLEANERS: [Case; 3] = [
    Case::new("mariadb", "4M", 8, 1500),
    Case::new("page-cleaner-57", "8M", 32, 1500),
    Case::new("page-cleaner-84", "4M", 32, 800),
];
const OTHERS: [Case; 4] = [
    Case::new("steady", "4M", 16, 1500),
    Case::new("io-capacity", "8M", 16, 3000),
    Case::new("steady", "8M", 32, 800),
    Case::new("lsn-age", "4M", 32, 1500),
];
/// A few pages take most of the changes. Of this one only the throughput agrees: now and then the
/// engine writes a whole second's pages at once, which the model does once in minutes.
const SKEWED: [Case; 1] =
    [Case { access: PageAccess::Zipf(ZIPF), ..Case::new("page-cleaner-84", "4M", 16, 1500) }];
const ZIPF: f64 = 0.9;
/// Half of the data have a frame, so that most transactions wait for free ones. Only the throughput
/// is compared, roughly.
const FEW_FRAMES: [Case; 1] = [Case { pool: "16M", ..Case::new("steady", "8M", 16, 1500) }];
/// Whatever else the machine does takes from the engine and not from the model: it has this many
/// tries.
const TRIES: usize = 3;

/// What one side came to.
#[derive(Debug)]
struct Course {
    tps: f64,
    worst: f64,
}

impl Course {
    fn of(commits: &[f64]) -> Self {
        let tps = commits.iter().sum::<f64>() / commits.len() as f64;
        Self { tps, worst: stability(commits, 1.0).map_or(0.0, |even| even.min_over_mean_1s) }
    }
}

fn settings(case: Case) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in [
        ("policy", case.policy),
        ("redo_log_capacity", case.redo),
        ("page_size", "4K"),
        ("buffer_pool_size", case.pool),
        ("data_files", "1"),
        ("io_capacity", "200"),
        ("io_capacity_max", "2000"),
    ] {
        settings.set(name, value).unwrap();
    }
    settings
}

fn key(row: usize) -> [u8; 8] {
    (row as u64).to_be_bytes()
}

fn fill(engine: &Engine) {
    let table = engine.create_table("rows").unwrap();
    for first in (0..ROWS).step_by(200) {
        let mut batch = engine.batch();
        for row in first..(first + 200).min(ROWS) {
            batch.put(&table, &key(row), &[7; VALUE_BYTES]).unwrap();
        }
        batch.commit().unwrap();
    }
}

/// Which rows are changed.
#[derive(Clone, Copy, Debug)]
struct Rows {
    access: PageAccess,
    /// Pages that they lie on.
    pages: f64,
}

impl Rows {
    /// By rank of its page where some are more likely: as the model draws them, so that page `r`
    /// of `n` has the integral of `x^-power` from `r` to `r + 1`.
    fn draw(self, chance: &mut Chance) -> usize {
        let any = chance.below(ROWS);
        let PageAccess::Zipf(power) = self.access else { return any };
        let left = 1.0 - power;
        let share = chance.below(1 << 30) as f64 / f64::from(1 << 30);
        let rank = (1.0 + share * ((self.pages + 1.0).powf(left) - 1.0)).powf(1.0 / left);
        let each = ROWS as f64 / self.pages;
        let first = (rank.floor() - 1.0) * each;
        ((first + any as f64 % each) as usize).min(ROWS - 1)
    }
}

fn change_rows(engine: &Engine, table: &Table, rows: Rows, seed: u64, is_over: &AtomicBool) {
    let mut chance = Chance::new(seed);
    while !is_over.load(Ordering::Relaxed) {
        let mut batch = engine.batch();
        for _ in 0..CHANGES {
            // Random bytes, so that every change is logged whole.
            let mut value = [0; VALUE_BYTES];
            value.iter_mut().for_each(|byte| *byte = chance.below(256) as u8);
            batch.put(table, &key(rows.draw(&mut chance)), &value).unwrap();
        }
        batch.commit().unwrap();
    }
}

/// The engine's course, its pages of data and its redo per transaction.
fn measured(case: Case) -> (Course, f64, f64) {
    let disk = MemDisk::new();
    let threads = Background::Threads;
    let engine = Engine::open_on(Disks::one(disk.clone()), settings(case), threads).unwrap();
    fill(&engine);
    let pages = engine.check().unwrap().pages_used as f64;
    engine.close().unwrap();
    let paced = PacedDisk::new(Arc::new(disk), case.iops);
    let engine = Engine::open_on(Disks::one(paced), settings(case), threads).unwrap();
    let table = engine.open_table("rows").unwrap();
    // Every leaf for which there is a frame is in the pool before the clock runs.
    assert_eq!(table.iter().count(), ROWS);
    let is_over = AtomicBool::new(false);
    let count = |counter: Counter| engine.counters()[counter] as f64;
    let begun = count(Counter::LsnCurrent);
    let rows = Rows { access: case.access, pages };
    let commits_begun = count(Counter::Commits);
    let mut commits = Vec::new();
    std::thread::scope(|scope| {
        for user in 0..case.users {
            let (engine, table, is_over) = (&engine, &table, &is_over);
            scope.spawn(move || change_rows(engine, table, rows, u64::from(user) + 1, is_over));
        }
        let mut last = commits_begun;
        for _ in 0..WARM_UP_S + SECONDS {
            std::thread::sleep(Duration::from_secs(1));
            let now = count(Counter::Commits);
            commits.push(now - last);
            last = now;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let redo = count(Counter::LsnCurrent) - begun;
    let redo_per_txn = redo / (count(Counter::Commits) - commits_begun);
    (Course::of(&commits[WARM_UP_S..]), pages, redo_per_txn)
}

fn modelled(case: Case, pages: f64, redo_bytes_per_txn: f64) -> Course {
    let settings = settings(case);
    let data_bytes = pages as u64 * u64::from(settings.page_size);
    let load = FlushLoad {
        demand: Demand::Users(case.users),
        pages_per_txn: CHANGES as f64,
        redo_bytes_per_txn,
        data_bytes,
        access: case.access,
        cpu_us_per_txn: 50.0,
        processors: 2,
    };
    let disk = "nvme".parse().unwrap();
    let sizes = (u64::from(settings.page_size), data_bytes);
    let device = FlushDevice::new(&disk, None, Some(f64::from(case.iops)), sizes, 1).unwrap();
    let span_s = (WARM_UP_S + SECONDS) as f64;
    let plan = FlushPlan { settings, device, load, changes: Vec::new(), span_s, seed: 1 };
    let outcome = run(&plan).unwrap();
    let seconds = outcome.seconds.iter().skip(WARM_UP_S);
    Course::of(&seconds.map(|second| second.commits).collect::<Vec<f64>>())
}

/// Both throughputs, and whether both stall.
fn check(cases: &[Case]) {
    check_that(cases, |off, same_verdict| off.abs() <= TPS_OFF_MAX && same_verdict);
}

fn check_that(cases: &[Case], agrees: impl Fn(f64, bool) -> bool) {
    for &case in cases {
        let mut tries = (0..TRIES).map(|_| compared(case));
        assert!(tries.any(|(off, same_verdict)| agrees(off, same_verdict)), "{case:?}: see above");
    }
}

/// By how much the model's throughput is off, and whether both agree on stalls.
fn compared(case: Case) -> (f64, bool) {
    let (real, pages, redo_per_txn) = measured(case);
    let model = modelled(case, pages, redo_per_txn);
    let off = model.tps / real.tps - 1.0;
    eprintln!(
        "{case:?}: engine {:.0}/s, worst second {:.2}; model {:.0}/s, {:.2} ({:+.1} %)",
        real.tps,
        real.worst,
        model.tps,
        model.worst,
        100.0 * off,
    );
    (off, (model.worst < 0.5) == (real.worst < 0.5))
}

#[test]
fn the_model_says_what_the_engine_does_on_a_slow_device() {
    check(&SHORT);
}

#[test]
fn the_model_says_what_the_engine_does_under_policies_of_page_cleaners() {
    match is_soak() {
        true => check(&PAGE_CLEANERS),
        false => eprintln!("skipped: a minute of real time; IOSTRATA_SOAK=1 runs it"),
    }
}

#[test]
fn the_model_says_what_the_engine_does_at_other_limits() {
    match is_soak() {
        true => check(&OTHERS),
        false => eprintln!("skipped: a minute of real time; IOSTRATA_SOAK=1 runs it"),
    }
}

#[test]
fn the_model_says_what_the_engine_does_where_some_pages_are_changed_more_often() {
    match is_soak() {
        true => check_that(&SKEWED, |off, _| off.abs() <= TPS_OFF_MAX),
        false => eprintln!("skipped: half a minute of real time; IOSTRATA_SOAK=1 runs it"),
    }
}

#[test]
fn the_model_says_what_the_engine_does_where_frames_are_short() {
    match is_soak() {
        true => check_that(&FEW_FRAMES, |off, _| off.abs() <= TPS_OFF_MAX_FEW_FRAMES),
        false => eprintln!("skipped: half a minute of real time; IOSTRATA_SOAK=1 runs it"),
    }
}
