//! What `watch` and `tune` do with every sample: combine it with figures of the target's host,
//! where that is this one, keep it, and show it to Prometheus.
//!
//! Invariant: what is kept is so at once, so that a kill loses nothing of it; memory and directory
//! stay bounded, however long it lasts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iostrata_database::target::{Sampler, SessionWaits, TargetFacts};
use iostrata_database::watch::{OnHost, TimedSample, Watch, WatchRecord, WatchStep};
use iostrata_engine::read_status;
use iostrata_linux::host::{DevicesBelow, FindProcess, HeldBack, ProcessPlace, Root, TaskWaits};
use iostrata_run::{Event, TunedSetting, WatchDocument, WatchTarget};
use iostrata_show::metrics::{Board, MetricsServer};
use iostrata_study::{Listener, StudyError};

use crate::display::Display;
use crate::exit_error::ExitError;

/// A target with its host.
#[derive(Default)]
pub struct ObservedTarget {
    watch: Watch,
    host: TargetHost,
    /// What it is, as far as it is known.
    pub target: WatchTarget,
}

impl ObservedTarget {
    /// A target that was not sampled yet.
    pub fn new(target: WatchTarget, host: TargetHost) -> Self {
        Self { watch: Watch::default(), host, target }
    }

    /// Takes in a sample, with what its host did since the one before.
    pub fn take(&mut self, asked: TimedSample) -> WatchStep {
        self.watch.take(TimedSample { on_host: self.host.since_last(), ..asked })
    }

    /// Queries what sessions wait for where the target begins to stall, and adds it to the sample.
    pub fn explain(&mut self, watched: &mut WatchStep, sampler: &mut dyn Sampler) {
        if !self.watch.needs_session_waits() {
            return;
        }
        let waits = sampler.session_waits();
        let tasks = self.host.tasks_waiting();
        if waits.is_none() && tasks.is_none() {
            return;
        }
        let TaskWaits { processor, waited_pct, uninterruptible } = tasks.unwrap_or_default();
        let waits = SessionWaits {
            processor,
            processor_waited_pct: waited_pct,
            uninterruptible,
            ..waits.unwrap_or_default()
        };
        self.watch.explain(watched, waits);
    }

    /// Queries what goes on where the target begins to stall, and how statements went on once it no
    /// longer does.
    pub fn look_at_stall(&mut self, watched: &mut WatchStep, sampler: &mut dyn Sampler) {
        if self.watch.needs_snapshot(watched) {
            let began = Instant::now();
            if let Some(mut snapshot) = sampler.stall_snapshot() {
                snapshot.took_us = began.elapsed().as_secs_f64() * 1e6;
                self.watch.keep_snapshot(watched, snapshot);
            }
        } else if self.watch.needs_statements(watched)
            && let Some(statements) = sampler.statements_since()
        {
            self.watch.keep_statements(watched, statements);
        }
    }

    /// What its host does not report, and why.
    pub fn missing_of_host(&self) -> Vec<String> {
        self.host.missing()
    }
}

/// Keeps what is watched of one target.
pub struct Recorder<'a> {
    keeper: Option<&'a mut (dyn Listener + Send)>,
    record: WatchRecord,
}

impl<'a> Recorder<'a> {
    /// Keeps in memory, and in a directory where there is one.
    pub fn new(keeper: Option<&'a mut (dyn Listener + Send)>) -> Self {
        Self { keeper, record: WatchRecord::default() }
    }

    /// Keeps what is watched.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn begin(&mut self, target: &WatchTarget) -> Result<(), StudyError> {
        let event = Event::Watching(Box::new(target.clone()));
        self.keeper.as_mut().map_or(Ok(()), |keeper| keeper.store(&event))
    }

    /// Keeps a sample.
    pub fn take(&mut self, watched: &WatchStep) {
        if self.record.add(watched) || watched.stall.is_some() {
            self.keep(&watched.event());
        }
    }

    /// Keeps a change of a setting.
    pub fn changed(&mut self, one: TunedSetting) {
        if self.record.changed(one.clone()) {
            self.keep(&Event::Tuned(one));
        }
    }

    /// How many settings were changed.
    pub fn changes(&self) -> u64 {
        self.record.changes()
    }

    /// Everything that was kept.
    pub fn document(&self, target: WatchTarget) -> WatchDocument {
        self.record.document(target)
    }

    fn keep(&mut self, event: &Event) {
        if let Some(keeper) = &mut self.keeper {
            // A directory that cannot be written any more is reported at the end.
            let _is_lost = keeper.store(event);
        }
    }
}

/// A file that every data directory of InnoDB holds, and that a server keeps open.
const SYSTEM_FILE: &str = "ibdata1";

/// How long is looked whether its tasks wait for processors, while it stalls.
const TASKS_LOOK: Duration = Duration::from_millis(200);

/// The host of a target; empty where it is another one.
#[derive(Default)]
pub struct TargetHost {
    is_here: bool,
    data: PathBuf,
    device: Option<DevicesBelow>,
    held: Option<HeldBack>,
}

impl TargetHost {
    /// Of a server; `is_local`: whether its address is of this host.
    pub fn of_server(facts: &TargetFacts, is_local: bool) -> Self {
        let setting = |wanted: &str| {
            let found = facts.settings.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| PathBuf::from(value))
        };
        // A server in a container of its own may have the address of this host.
        let data_dir = setting("datadir").filter(|dir| dir.join(SYSTEM_FILE).exists());
        data_dir.filter(|_| is_local).map_or_else(Self::default, |dir| {
            let (file, pid_file) = (SYSTEM_FILE.to_owned(), setting("pid_file"));
            let place = ProcessPlace { dir: dir.clone(), file, pid_file };
            Self::at(&dir, Box::new(move || place.process(&Root::system())))
        })
    }

    /// Of an engine, which another process on this host holds.
    pub fn of_engine(dir: &Path) -> Self {
        let of = dir.to_owned();
        let find = move || Some(read_status(&of).ok()?.process_id);
        Self::at(dir, Box::new(find))
    }

    fn at(data: &Path, find: FindProcess) -> Self {
        let root = Root::system();
        let device = DevicesBelow::of(&root, data).ok().flatten();
        Self {
            is_here: true,
            data: data.to_owned(),
            device,
            held: HeldBack::of(&root, data, find).ok(),
        }
    }

    /// What happened there since the last call.
    pub fn since_last(&mut self) -> OnHost {
        OnHost {
            device: self
                .device
                .as_mut()
                .and_then(|below| Some((below.name(), below.since_last()?))),
            // A file system that does not answer would hold up the samples; it does the server too.
            disk_free_bytes: self
                .is_here
                .then(|| rustix::fs::statvfs(&self.data).ok())
                .flatten()
                .map(|found| found.f_bavail * found.f_frsize),
            held: self.held.as_mut().map(HeldBack::since_last).unwrap_or_default(),
        }
    }

    /// What tasks of its process wait for; looking takes a moment.
    pub fn tasks_waiting(&self) -> Option<TaskWaits> {
        self.held.as_ref()?.tasks_waiting(TASKS_LOOK)
    }

    /// What is not reported of it, and why.
    pub fn missing(&self) -> Vec<String> {
        if !self.is_here {
            let text = "the data does not lie on this host, or is hidden from this user";
            return vec![format!("device, pressure, throttle: {text}")];
        }
        let mut out = Vec::new();
        if self.device.is_none() {
            let text = "device: the data does not lie on a counted device of this host";
            out.push(text.to_owned());
        }
        out.extend(self.held.iter().flat_map(HeldBack::missing));
        out
    }
}

/// Answers until it is dropped.
pub struct Export {
    /// The samples that are exported; who takes them puts them there.
    pub board: Arc<Mutex<Board>>,
    server: MetricsServer,
}

impl Export {
    /// Listens, before anything else is done; it has no targets yet.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn listen(address: SocketAddr) -> Result<Self, ExitError> {
        let board = Arc::new(Mutex::new(Board::new(&[])));
        let read = Arc::clone(&board);
        let text = move || locked(&read).text();
        let server = MetricsServer::start(address, Arc::new(text))
            .map_err(|error| ExitError::NotHere(format!("--metrics-addr: {error}")))?;
        Ok(Self { board, server })
    }

    /// Exports these targets from now on, and prints where.
    pub fn begin(&self, targets: &[WatchTarget], display: &Display) {
        *self.board() = Board::new(targets);
        let address = self.server.address();
        display.note(&format!("Metrics for Prometheus at http://{address}/metrics"));
    }

    /// The exported figures, to be added to.
    pub fn board(&self) -> MutexGuard<'_, Board> {
        locked(&self.board)
    }
}

fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
