//! Runs a plan on a store over a recording disk, and keeps what was acknowledged when.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use iostrata_io::disk::{MemDisk, TraceDisk};

use crate::common::model::{Change, History, Tables, table_name};
use crate::common::plan::{Op, Shape, Step, of_thread, plan};
use crate::common::store::Store;

/// A recorded run.
pub struct Recording {
    pub seed: u64,
    pub disk: TraceDisk,
    pub history: History,
    /// The point at which the store was made and open.
    pub opened: usize,
}

/// Runs the plan of a seed on an empty disk, from the creation to the close.
pub fn record<S: Store>(seed: u64, shape: &Shape, how: &S::How) -> Result<Recording, String> {
    record_after::<S>(seed, shape, how, || {})
}

/// As [`record`]; `opened` is called once the store is open.
pub fn record_after<S: Store>(
    seed: u64,
    shape: &Shape,
    how: &S::How,
    opened: impl FnOnce(),
) -> Result<Recording, String> {
    let disk = TraceDisk::new(MemDisk::new());
    let store = S::open(Arc::new(disk.clone()), how)?;
    opened();
    let opened = disk.points() - 1;
    let mut run = Run::new(&store, &disk, Tables::new());
    run.all(&plan(seed, shape))?;
    let history = run.history;
    store.close()?;
    Ok(Recording { seed, disk, history, opened })
}

/// Changes of runs that go on have numbers from here on.
const GONE_ON: u64 = 1 << 48;

/// One thread's work on a store, with its history.
pub struct Run<'a, S: Store> {
    store: &'a S,
    disk: &'a TraceDisk,
    pub history: History,
    waiting: VecDeque<(u64, S::Ticket)>,
    next: u64,
    now_us: u64,
}

impl<'a, S: Store> Run<'a, S> {
    /// A run on a store that holds `base`.
    pub fn new(store: &'a S, disk: &'a TraceDisk, base: Tables) -> Self {
        Self::behind(store, disk, History::new(base), 0)
    }

    /// A run on a store that holds the rows of a history, and goes on with it.
    pub fn going_on(store: &'a S, disk: &'a TraceDisk, history: History) -> Self {
        // Each number, also of a run after this one, is its place.
        let next = GONE_ON + history.len() as u64;
        Self::behind(store, disk, history, next)
    }

    fn behind(store: &'a S, disk: &'a TraceDisk, history: History, next: u64) -> Self {
        Self { store, disk, history, waiting: VecDeque::new(), next, now_us: 0 }
    }

    /// Every step of a plan, in order.
    pub fn all(&mut self, steps: &[Step]) -> Result<(), String> {
        for (number, step) in steps.iter().enumerate() {
            let in_step = |error| format!("step {number}, {}: {error}", named(step));
            self.step(step).map_err(in_step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Create(table) => {
                let create = |store: &S, name: &str| store.create_table(name);
                self.define(Change::Create(*table), *table, create)
            }
            Step::Drop(table) => {
                let drop = |store: &S, name: &str| store.drop_table(name);
                self.define(Change::Drop(*table), *table, drop)
            }
            Step::Batch { ops, is_awaited } => self.batch(ops, *is_awaited),
            Step::WaitAll => self.wait_all(),
            Step::Checkpoint => self.store.checkpoint(),
            Step::Set(name, value) => self.store.set(name, value),
            Step::Background(steps) => {
                for _ in 0..*steps {
                    self.now_us += 10_000;
                    self.store.step(self.now_us)?;
                }
                Ok(())
            }
            Step::Scan { table, is_backward } => {
                self.store.scan(&table_name(*table), *is_backward).map(|_rows| ())
            }
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Creates or drops a table, which is durable at once.
    fn define(
        &mut self,
        change: Change,
        table: usize,
        work: impl Fn(&S, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        let id = self.fresh();
        self.history.push(id, change);
        work(self.store, &table_name(table))?;
        self.disk.ack(id);
        Ok(())
    }

    fn batch(&mut self, ops: &[Op], is_awaited: bool) -> Result<(), String> {
        let id = self.fresh();
        let (ticket, count) = self.store.commit(ops)?;
        self.history.push(id, Change::Batch(ops[..count].to_vec()));
        self.waiting.push_back((id, ticket));
        if is_awaited { self.wait_all() } else { Ok(()) }
    }

    /// The newest first, as another session would: it must make the older ones durable, too.
    fn wait_all(&mut self) -> Result<(), String> {
        while let Some((id, ticket)) = self.waiting.pop_back() {
            self.store.wait(ticket)?;
            self.disk.ack(id);
        }
        Ok(())
    }
}

fn named(step: &Step) -> String {
    match step {
        Step::Batch { ops, .. } => format!("a batch of {}", ops.len()),
        other => format!("{other:?}"),
    }
}

/// Runs one plan per thread on keys of its own; the tickets give the order.
pub fn record_threads<S: Store>(
    seed: u64,
    threads: usize,
    shape: &Shape,
    how: &S::How,
) -> Result<Recording, String> {
    let disk = TraceDisk::new(MemDisk::new());
    let store = S::open(Arc::new(disk.clone()), how)?;
    let opened = disk.points() - 1;
    let mut history = History::new(Tables::new());
    for table in 0..shape.tables {
        history.push(table as u64, Change::Create(table));
        store.create_table(&table_name(table))?;
        disk.ack(table as u64);
    }
    let commits = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let run = |thread: usize| {
            let steps = of_thread(thread, plan(seed * 100 + thread as u64, shape));
            let first_id = (thread as u64 + 1) << 32;
            let (store, disk, commits) = (&store, &disk, &commits);
            scope.spawn(move || one_thread(store, disk, first_id, &steps, commits))
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        let joined = running.into_iter().map(|thread| thread.join().expect("a writer panicked"));
        joined.collect::<Result<(), String>>()
    })?;
    let mut commits = commits.into_inner().expect("no writer panicked");
    commits.sort_by_key(|(place, _, _)| *place);
    for (_place, id, ops) in commits {
        history.push(id, Change::Batch(ops));
    }
    store.close()?;
    Ok(Recording { seed, disk, history, opened })
}

type Commits = Mutex<Vec<(u64, u64, Vec<Op>)>>;

fn one_thread<S: Store>(
    store: &S,
    disk: &TraceDisk,
    first_id: u64,
    steps: &[Step],
    commits: &Commits,
) -> Result<(), String> {
    let mut waiting = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let is_awaited = match step {
            Step::Batch { ops, is_awaited } => {
                let (ticket, count) = store.commit(ops)?;
                let id = first_id + number as u64;
                let commit = (S::place(&ticket), id, ops[..count].to_vec());
                commits.lock().expect("no writer panicked").push(commit);
                waiting.push((id, ticket));
                *is_awaited
            }
            Step::Scan { table, is_backward } => {
                store.scan(&table_name(*table), *is_backward)?;
                false
            }
            Step::Checkpoint => {
                store.checkpoint()?;
                false
            }
            Step::Set(name, value) => {
                store.set(name, value)?;
                false
            }
            Step::WaitAll => true,
            _ => false,
        };
        if is_awaited {
            for (id, ticket) in waiting.drain(..) {
                store.wait(ticket)?;
                disk.ack(id);
            }
        }
    }
    Ok(())
}
