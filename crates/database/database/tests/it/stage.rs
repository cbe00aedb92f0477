//! A private server with a load on it, watched.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use iostrata_change::{
    CpuGroup, DeviceRef, Effect, GroupEffect, GroupVersion, IoGroup, Session, StateDir, System,
};
use iostrata_database::target::{
    Access, ColumnType, Op, OpId, Rows, Schema, SessionOptions, Target, TargetError, Value,
};
use iostrata_database::watch::{OnHost, TimedSample, Watch, WatchStep};
use iostrata_linux::host::{HeldBack, ProcessPlace, Root, TaskWaits};
use iostrata_plan::study::IoLimits;
use iostrata_run::{SessionWaits, StallCause, WatchSample};
use iostrata_server::private::{PrivateError, PrivatePlan, PrivateServer, ServerProgram};
use iostrata_server::{ServerAddress, ServerTarget};
use tempfile::TempDir;

/// The group of the server's limits.
const GROUP: &str = "watched";
/// From one sample to the next.
const EVERY: Duration = Duration::from_millis(250);
/// Of an even load, after each statement.
pub const PAUSE: Duration = Duration::from_millis(4);
/// How long a cause is named before watching for it ends.
const NAMED: Duration = Duration::from_secs(2);
/// Samples after a cause was planted until watching for it may end without it.
const SAMPLES_MIN: usize = 24;

pub fn is_long_form() -> bool {
    std::env::var_os("IOSTRATA_SOAK").is_some()
}

/// A private server, and the sessions at work on it.
pub struct Stage {
    server: Option<PrivateServer>,
    session: Session<System>,
    /// What lifts the limits: files of the group and their texts.
    unlimited: Vec<(PathBuf, String)>,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// What happens on a stage in the middle of watching.
pub struct Then {
    /// Not before so many seconds.
    pub after_s: u64,
    /// And not before a sample is like this.
    pub is_ready: fn(&WatchSample) -> bool,
    /// What it is.
    pub act: Box<dyn FnOnce(&mut Stage)>,
}

impl Then {
    /// After some seconds.
    pub fn after(after_s: u64, act: impl FnOnce(&mut Stage) + 'static) -> Self {
        Self { after_s, is_ready: |_| true, act: Box::new(act) }
    }
}

impl Stage {
    /// Starts MariaDB with these options, and with bounds on its I/O. `None`, with a note, where
    /// that cannot be done.
    pub fn begin(test: &str, options: &[&str], limits: IoLimits) -> Option<Self> {
        match ServerProgram::find("mariadbd") {
            Ok(program) => Self::begin_on(program, test, options, limits),
            Err(PrivateError::Missing { .. }) => {
                eprintln!("skipped: {test}: mariadbd is not installed");
                None
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// The same with any program.
    pub fn begin_on(
        program: ServerProgram,
        test: &str,
        options: &[&str],
        limits: IoLimits,
    ) -> Option<Self> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // Short, because sockets are in it.
        let dir = TempDir::with_prefix("io-").unwrap();
        let state = StateDir::at(dir.path().join("state"));
        let mut session = Session::begin(&state, System::new()).unwrap();
        let mut plan = PrivatePlan::new(program, dir.path().canonicalize().unwrap().join("s"));
        let usual = ["--skip-log-bin"];
        let all = usual.iter().chain(options);
        plan.options = all.map(|option| (*option).to_owned()).collect();
        plan.first_statements = vec!["CREATE DATABASE IF NOT EXISTS shop".to_owned()];
        let plan = plan.on_shared_fresh_data().unwrap();
        let mut server = PrivateServer::prepare(&mut session, &plan).unwrap();
        let mut unlimited = Vec::new();
        if !limits.is_none() {
            let device = device_below(dir.path())?;
            let device = DeviceRef::Named { path: device, overwrite: false };
            let group = IoGroup { name: GROUP.to_owned(), device, limits };
            match session.apply(group) {
                Ok(applied) => unlimited = without_limits(&applied.effect),
                Err(error) => {
                    eprintln!("skipped: {test}: {error}");
                    return None;
                }
            }
        }
        server.run(&mut session, &[]).unwrap();
        let stop = Arc::default();
        let workers = Vec::new();
        let server = Some(server);
        Some(Self { server, session, unlimited, stop, workers, dir, _alone: alone })
    }

    /// Starts the server again, this time within its limits.
    pub fn limited(mut self) -> Self {
        let server = self.server.as_mut().unwrap();
        server.stop(&mut self.session).unwrap();
        server.enter(Some(GROUP));
        server.run(&mut self.session, &[]).unwrap();
        self
    }

    /// Bounds the requests that write, of a server within its limits, from now on.
    pub fn bound_writes(&self, per_s: u64) {
        for (file, none) in &self.unlimited {
            let bound = match none.strip_suffix(" 0") {
                Some(device) => format!("{device} {per_s}"),
                None => none.replace("wiops=max", &format!("wiops={per_s}")),
            };
            std::fs::write(file, bound).unwrap();
        }
    }

    /// Starts the server again in a group that may use so many thousandths of a processor, and
    /// gives the file of the quota.
    pub fn with_quota(mut self, milli_cpus: u64) -> Option<(Self, PathBuf)> {
        let group = CpuGroup { name: GROUP.to_owned(), milli_cpus };
        let applied = match self.session.apply(group) {
            Ok(applied) => applied,
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        let Effect::Group(made) = applied.effect else { panic!("no group") };
        let file = made.limits.keys().find(|file| file.contains("quota") || file.ends_with("max"));
        let quota = made.dir.join(file.unwrap());
        Some((self.limited(), quota))
    }

    /// Kills the server as a crash would.
    pub fn kill(&mut self) {
        self.server.as_ref().unwrap().kill(&self.session).unwrap();
    }

    pub fn target(&self) -> ServerTarget {
        let address = self.server.as_ref().unwrap().address().replacen("/?", "/shop?", 1);
        ServerTarget::open(address.parse::<ServerAddress>().unwrap(), None).unwrap()
    }

    /// Runs statements one after the other.
    pub fn order(&self, statements: &[&str]) {
        let mut worker = Worker::open(&self.target(), statements, true);
        (0..statements.len()).for_each(|at| worker.run(at, &[]));
    }

    /// Lets sessions run a statement with a random number up to `rows`, until the end, as fast as
    /// they can.
    pub fn load(&mut self, sessions: usize, sql: &str, rows: u64) {
        self.load_with(sessions, sql, rows, Duration::ZERO);
    }

    /// The same with a pause after each statement, which leaves the processors to others: an even
    /// load is enough to see that it stops.
    pub fn load_evenly(&mut self, sessions: usize, sql: &str, rows: u64) {
        self.load_with(sessions, sql, rows, PAUSE);
    }

    fn load_with(&mut self, sessions: usize, sql: &str, rows: u64, pause: Duration) {
        for n in 0..sessions {
            let (target, stop) = (self.target(), Arc::clone(&self.stop));
            let (sql, mut state) = (sql.to_owned(), n as u64 + 7);
            self.workers.push(thread::spawn(move || {
                let mut worker = Worker::open(&target, &[&sql], true);
                while !stop.load(Ordering::Relaxed) {
                    worker.run(0, &[Value::Int(random_id(&mut state, rows))]);
                    sleep(pause);
                }
            }));
        }
    }

    /// The same with a connection for each statement. Who is turned away tries again.
    pub fn connect_each_time(&mut self, sessions: usize, sql: &str, rows: u64) {
        for n in 0..sessions {
            let (target, stop) = (self.target(), Arc::clone(&self.stop));
            let (sql, mut state) = (sql.to_owned(), n as u64 + 7);
            self.workers.push(thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    match Worker::try_open(&target, &[&sql]) {
                        Ok(mut worker) => worker.run(0, &[Value::Int(random_id(&mut state, rows))]),
                        Err(_) => sleep(Duration::from_millis(20)),
                    }
                    sleep(PAUSE);
                }
            }));
        }
    }

    /// Lets sessions run transactions of ten reads and two updates of rows of `t`, with ids up to
    /// `rows`; all of them together so many per second where that is given.
    pub fn transact(&mut self, sessions: usize, rows: u64, per_s: Option<f64>) {
        let pause = per_s.map(|per_s| Duration::from_secs_f64(sessions as f64 / per_s));
        for n in 0..sessions {
            let (target, stop) = (self.target(), Arc::clone(&self.stop));
            self.workers.push(thread::spawn(move || {
                let statements =
                    ["SELECT v FROM t WHERE id = ?", "UPDATE t SET v = v + 1 WHERE id = ?"];
                let mut worker = Worker::open(&target, &statements, false);
                let (mut state, mut due) = (n as u64 + 7, Instant::now());
                while !stop.load(Ordering::Relaxed) {
                    worker.transact(&mut state, rows);
                    if let Some(pause) = pause {
                        // What was missed is not made up for.
                        due = (due + pause).max(Instant::now());
                        sleep(due - Instant::now());
                    }
                }
            }));
        }
    }

    /// Ends the sessions at work.
    pub fn rest(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.workers.drain(..).for_each(|worker| worker.join().unwrap());
        self.stop.store(false, Ordering::Relaxed);
    }

    /// What holds the server back.
    fn held(&self) -> HeldBack {
        let settings = self.target().facts().unwrap().settings;
        let path = |wanted: &str| {
            let found = settings.iter().find(|(name, _)| *name == wanted);
            PathBuf::from(&found.unwrap().1)
        };
        let (dir, file) = (path("datadir"), "ibdata1".to_owned());
        let place = ProcessPlace { dir: dir.clone(), file, pid_file: Some(path("pid_file")) };
        let find = move || place.process(&Root::system());
        HeldBack::of(&Root::system(), &dir, Box::new(find)).unwrap()
    }

    /// Watches for so long; what is done on the way is done after some seconds.
    pub fn watch(&mut self, seconds: u64, then: Option<Then>) -> Vec<WatchStep> {
        self.watch_for(None, seconds, then)
    }

    /// The same, and ends early when this cause of a stall was named for two seconds; in the long
    /// form it does not. With a cause only what comes after the act is given: before it a stall
    /// comes from a busy machine.
    pub fn watch_for(
        &mut self,
        cause: Option<StallCause>,
        seconds: u64,
        mut then: Option<Then>,
    ) -> Vec<WatchStep> {
        let (mut sampler, mut watch) =
            (self.target().sampler().unwrap().unwrap(), Watch::default());
        let mut held = self.held();
        let (began, mut all) = (Instant::now(), Vec::<WatchStep>::new());
        let names = |one: &&WatchStep| one.sample.stalled && one.sample.stall_cause == cause;
        let is_long = is_long_form() || cause.is_none();
        // A server without a processor answers seldom: a stall cannot be seen in two samples.
        let time = |all: &[WatchStep]| match cause.is_some() && all.len() < SAMPLES_MIN {
            true => Duration::from_secs(3 * seconds),
            false => Duration::from_secs(seconds),
        };
        while began.elapsed() < time(&all)
            && (is_long || EVERY * (all.iter().filter(names).count() as u32) < NAMED)
        {
            let is_due = |then: &mut Then| {
                let is_late = began.elapsed() >= Duration::from_secs(then.after_s);
                is_late && all.last().is_some_and(|last| (then.is_ready)(&last.sample))
            };
            if let Some(then) = then.take_if(is_due) {
                (then.act)(self);
                if cause.is_some() {
                    all.clear();
                }
            }
            let at_s = began.elapsed().as_secs_f64();
            let sample = sampler.sample();
            let sample_us = (began.elapsed().as_secs_f64() - at_s) * 1e6;
            let on_host = OnHost { held: held.since_last(), ..OnHost::default() };
            let mut watched = watch.take(TimedSample { at_s, sample, sample_us, on_host });
            if watch.needs_session_waits()
                && let Some(waits) = sampler.session_waits()
            {
                let tasks = held.tasks_waiting(Duration::from_millis(200)).unwrap_or_default();
                let TaskWaits { processor, waited_pct, uninterruptible } = tasks;
                let waits = SessionWaits {
                    processor,
                    processor_waited_pct: waited_pct,
                    uninterruptible,
                    ..waits
                };
                watch.explain(&mut watched, waits);
            }
            if watch.needs_snapshot(&watched) {
                watch.keep_snapshot(&mut watched, sampler.stall_snapshot().unwrap());
            } else if watch.needs_statements(&watched)
                && let Some(statements) = sampler.statements_since()
            {
                watch.keep_statements(&mut watched, statements);
            }
            all.push(watched);
            sleep(EVERY);
        }
        all
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What waits in the throttle would hold up the sessions and the end of the server.
        for (file, text) in &self.unlimited {
            let lifted = std::fs::write(file, text);
            assert!(lifted.is_ok() || thread::panicking(), "{}: {lifted:?}", file.display());
        }
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.workers.drain(..).map(JoinHandle::join).all(|one| one.is_ok());
        let removed = self.server.take().map(|server| server.remove(&mut self.session));
        let is_removed = removed.is_none_or(|removed| removed.is_ok());
        assert!((ended && is_removed) || thread::panicking(), "{:?}", self.dir.path());
    }
}

/// What lifts the limits of a group.
fn without_limits(effect: &Effect) -> Vec<(PathBuf, String)> {
    let Effect::Group(GroupEffect { version, dir, limits }) = effect else { panic!("{effect:?}") };
    let none = |(file, text): (&String, &String)| {
        let device = text.split(' ').next().unwrap();
        let none = match version {
            GroupVersion::V1 => "0",
            GroupVersion::V2 => "rbps=max wbps=max riops=max wiops=max",
        };
        (dir.join(file), format!("{device} {none}"))
    };
    limits.iter().map(none).collect()
}

/// A number from 1 to `rows`.
fn random_id(state: &mut u64, rows: u64) -> i64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    1 + ((*state >> 33) % rows) as i64
}

/// The disk that a directory lies on.
fn device_below(dir: &std::path::Path) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let dir = dir.canonicalize().unwrap();
    let of = |line: &str| {
        let mut words = line.split(' ');
        let (source, at) = (PathBuf::from(words.next()?), PathBuf::from(words.next()?));
        dir.starts_with(&at).then_some((at.as_os_str().len(), source))
    };
    let (_, source) = mounts.lines().filter_map(of).max_by_key(|(len, _)| *len)?;
    let known = source.starts_with("/dev").then_some(source);
    if known.is_none() {
        eprintln!("skipped: {} does not lie on a block device", dir.display());
    }
    known
}

/// A session that runs statements, each a transaction of its own or in one that stays open.
pub struct Worker {
    session: Box<dyn iostrata_database::target::Session>,
    out: Rows,
}

impl Worker {
    pub fn open(target: &ServerTarget, statements: &[&str], autocommit: bool) -> Self {
        Self::open_with(target, statements, autocommit).unwrap()
    }

    /// Where the server may turn it away.
    pub fn try_open(target: &ServerTarget, statements: &[&str]) -> Result<Self, TargetError> {
        Self::open_with(target, statements, true)
    }

    fn open_with(
        target: &ServerTarget,
        statements: &[&str],
        autocommit: bool,
    ) -> Result<Self, TargetError> {
        let op = |sql: &&str| {
            let gives =
                if sql.starts_with("SELECT") { vec![ColumnType::Int { bytes: 8 }] } else { vec![] };
            let access = Access::Statement { sql: (*sql).to_owned(), gives };
            Op { name: "statement", table: 0, access }
        };
        let ops = statements.iter().map(op).collect::<Vec<_>>();
        // Not every statement can be prepared.
        let as_text = autocommit && !statements.iter().any(|sql| sql.contains('?'));
        let options =
            SessionOptions { ops: ops.into(), autocommit, as_text, ..SessionOptions::default() };
        let session = target.session(&Arc::new(Schema::default()), &options)?;
        Ok(Self { session, out: Rows::new(1) })
    }

    pub fn begin(&mut self) {
        self.session.begin().unwrap();
    }

    /// Ten times the first statement and twice the second, in one transaction.
    fn transact(&mut self, state: &mut u64, rows: u64) {
        self.begin();
        for _ in 0..10 {
            self.run(0, &[Value::Int(random_id(state, rows))]);
        }
        // In the order of their ids, so that no two transactions wait for each other.
        let mut ids = [random_id(state, rows), random_id(state, rows)];
        ids.sort_unstable();
        ids.iter().for_each(|id| self.run(1, &[Value::Int(*id)]));
        let ticket = self.session.commit().unwrap();
        self.session.settle(ticket, true).unwrap();
    }

    /// Whether it could.
    pub fn try_run(&mut self, at: usize, args: &[Value<'_>]) -> bool {
        self.session.run(OpId(at), args, &mut self.out).is_ok()
    }

    pub fn run(&mut self, at: usize, args: &[Value<'_>]) {
        let mut tries = 0;
        while let Err(error) = self.session.run(OpId(at), args, &mut self.out) {
            tries += 1;
            assert!(
                tries < 100 && error.trouble == iostrata_database::target::Trouble::Retry,
                "{error}"
            );
        }
    }
}
