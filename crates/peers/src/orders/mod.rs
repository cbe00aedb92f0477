//! Orders: a load of the shape of TPC-C, for the engine and every peer that has transactions with
//! a synced log.
//!
//! Invariants: every engine of a table gets the same rows and the same kind of orders; what a
//! window acknowledged is read back from the reopened files before its figure counts.

pub mod engines;
pub mod figures;
pub mod rows;
pub mod store;
pub mod text;
pub mod transaction;
pub mod work;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::counters::Counters;
use crate::drive::{Course, Drive, SLICE, Window, Work};
use crate::engines::Engine;
use crate::error::PeerError;
use crate::keys::Numbers;
use crate::rounds;
use crate::scratch::{Scratch, allocated_bytes};
use crate::store::Setup;
use figures::{OrdersTable, Sample, WayTable};
use rows::{LINES, RowKey, Scale, word};
use store::{OrderStore, RowError};
use transaction::NewOrder;
use work::{Placing, Session, Shared, Stocktaking};

/// Threads that place orders.
const THREADS: usize = 2;
/// Commits of each thread that may be unsettled, where that is the way.
const UNSETTLED: usize = 8;

/// How orders are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Two threads have eight commits each in flight; a peer, which has no tickets, gets as many
    /// threads as that makes commits.
    Tickets,
    /// Two threads wait for every commit.
    Blocking,
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tickets, Self::Blocking];

    /// Threads, and commits of each that may be unsettled.
    fn sizes(self, engine: Engine) -> (usize, usize) {
        match self {
            Self::Blocking => (THREADS, 0),
            Self::Tickets if engine == Engine::Iostrata => (THREADS, UNSETTLED),
            Self::Tickets => (THREADS * UNSETTLED, 0),
        }
    }
}

/// What is done in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Orders(Way),
    /// One thread or two read rows of the stock, or change them.
    Stock {
        threads: usize,
        is_writing: bool,
    },
}

/// The sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrdersPlan {
    /// What is loaded.
    pub scale: Scale,
    /// Memory of the engine, in bytes.
    pub cache_bytes: u64,
    /// Each measured window.
    pub window: Duration,
    /// The window of the soak; none where only the short ones are asked for.
    pub soak: Option<Duration>,
    /// Rounds of every engine.
    pub rounds: usize,
}

/// Where, and where to report.
pub struct OrdersBench<'a> {
    /// Sizes.
    pub plan: OrdersPlan,
    /// Where the files are.
    pub scratch: &'a Scratch,
    /// Set when a signal came.
    pub stop: &'a AtomicBool,
    /// Hears of progress.
    pub note: &'a mut dyn FnMut(&str),
}

impl OrdersBench<'_> {
    /// Loads every engine, runs all rounds in both ways, removes the files.
    ///
    /// # Errors
    /// When an engine fails, its data is wrong, or a signal came.
    pub fn run(&mut self, engines: &[Engine]) -> Result<OrdersTable, PeerError> {
        let mut dirs = Vec::new();
        for &engine in engines {
            dirs.push((engine, self.load(engine)?));
        }
        let mut ways = Vec::new();
        for (at, way) in Way::ALL.into_iter().enumerate() {
            let mut table = WayTable::new(way, engines);
            for round in 0..self.plan.rounds {
                for index in rounds::order(&(0..dirs.len()).collect::<Vec<_>>(), round) {
                    let (engine, dir) = &dirs[index];
                    let number = 1 + at * self.plan.rounds + round;
                    let sample = self.take(*engine, dir, Doing::Orders(way), number)?;
                    (self.note)(&text::line(way, *engine, &sample));
                    table.add(index, sample);
                }
            }
            ways.push(table);
        }
        for (_, dir) in dirs {
            std::fs::remove_dir_all(&dir).map_err(PeerError::files("remove", &dir))?;
        }
        Ok(OrdersTable { disk: None, ways })
    }

    /// Runs our engine for a long time, then compares one thread with two.
    ///
    /// # Errors
    /// As [`OrdersBench::run`].
    pub fn soak(&mut self, length: Duration) -> Result<figures::SoakTable, PeerError> {
        let engine = Engine::Iostrata;
        let dir = self.load(engine)?;
        let plan = self.plan;
        self.plan.window = length;
        let soak = self.take(engine, &dir, Doing::Orders(Way::Tickets), 1)?;
        self.plan = plan;
        let mut scaling = figures::Scaling::default();
        let mut number = 1;
        for round in 0..plan.rounds {
            for is_writing in [false, true] {
                for threads in rounds::order(&[1, 2], round) {
                    number += 1;
                    let doing = Doing::Stock { threads, is_writing };
                    let sample = self.take(engine, &dir, doing, number)?;
                    (self.note)(&text::stock_line(threads, is_writing, &sample));
                    scaling.add(is_writing, threads, sample.rate);
                }
            }
        }
        std::fs::remove_dir_all(&dir).map_err(PeerError::files("remove", &dir))?;
        Ok(figures::SoakTable { disk: None, soak, scaling })
    }

    fn setup(&self) -> Setup {
        Setup { cache_bytes: self.plan.cache_bytes, writers: THREADS, is_direct: false }
    }

    fn load(&mut self, engine: Engine) -> Result<PathBuf, PeerError> {
        self.interrupted()?;
        let dir = self.scratch.sub(&format!("orders-{engine}"))?;
        let start = Instant::now();
        let store = engines::open(engine, &dir, self.setup())?;
        store.load(self.plan.scale)?;
        store.close()?;
        let (seconds, mib) = (start.elapsed().as_secs_f64(), allocated_bytes(&dir) >> 20);
        (self.note)(&format!("orders   {engine:<11} loaded in {seconds:.1} s, {mib} MiB"));
        Ok(dir)
    }

    /// One window.
    fn take(
        &self,
        engine: Engine,
        dir: &Path,
        doing: Doing,
        number: usize,
    ) -> Result<Sample, PeerError> {
        self.interrupted()?;
        let store = engines::open(engine, dir, self.setup())?;
        let shared = Shared::default();
        let mut watch = figures::WindowWatch::default();
        let course = self.measure((engine, &*store), (doing, number), &shared, &mut watch)?;
        watch.end(&*store);
        store.close()?;
        let retries = shared.retries.load(Ordering::Relaxed);
        self.check(engine, dir, &work::placed(shared))?;
        Ok(Sample::of(&course, retries, watch))
    }

    fn measure(
        &self,
        (engine, store): (Engine, &dyn OrderStore),
        (doing, number): (Doing, usize),
        shared: &Shared,
        watch: &mut figures::WindowWatch,
    ) -> Result<Course, PeerError> {
        let (threads, unsettled) = match doing {
            Doing::Orders(way) => way.sizes(engine),
            Doing::Stock { threads, is_writing } => (threads, if is_writing { 64 } else { 0 }),
        };
        let scale = self.plan.scale;
        let begin = |thread: usize| -> Result<Box<dyn Work + '_>, PeerError> {
            let seed = (number * 1_024 + thread) as u64;
            let session = Session { engine, thread: store.thread()?, unsettled, shared };
            Ok(match doing {
                Doing::Orders(_) => Box::new(Placing::new(session, scale, seed)),
                Doing::Stock { is_writing, .. } => {
                    let numbers = Numbers::new(Numbers::new(seed).draw());
                    Box::new(Stocktaking { session, scale, numbers, is_writing })
                }
            })
        };
        let counters = Counters::of(self.scratch.dir());
        let warmup = self.plan.window.min(Duration::from_secs(2));
        let window = Window { warmup, length: self.plan.window };
        let drive = Drive { threads, window, counters: &counters, stop: self.stop };
        drive.run(&begin, &mut |since| {
            watch.look(store, (since.as_nanos() / SLICE.as_nanos()) as usize, window.slices());
        })
    }

    /// Looks for the orders that were acknowledged last, with all their lines.
    fn check(
        &self,
        engine: Engine,
        dir: &Path,
        placed: &[(NewOrder, u32)],
    ) -> Result<(), PeerError> {
        if placed.is_empty() {
            return Ok(());
        }
        let store = engines::open(engine, dir, self.setup())?;
        let mut missing = None;
        let seen = store.thread()?.transact(&mut |rows| {
            for (order, number) in placed {
                let mut expect = |key: RowKey, words: [u32; 2]| {
                    let mut found = [0; 2];
                    let seen = &mut |value: &[u8]| found = [word(value, 0), word(value, 1)];
                    if !rows.get(&key, seen)? || found != words {
                        missing = Some(format!("{key:x?}: {found:?} in place of {words:?}"));
                    }
                    Ok::<(), RowError>(())
                };
                let place = order.place;
                expect(RowKey::order(place, *number), [order.customer, order.items[0]])?;
                for (line, item) in (0..LINES).zip(order.items) {
                    expect(RowKey::line(place, *number, line), [item, 5])?;
                }
                expect(RowKey::history(order.payment), [order.payer, *number])?;
            }
            Ok(())
        });
        store.close()?;
        match (seen, missing) {
            (Ok(()), None) => Ok(()),
            (Err(RowError::Failed(error)), _) => Err(error),
            (seen, missing) => {
                let found = format!("an acknowledged order is not there: {missing:?} {seen:?}");
                Err(PeerError::WrongData { engine: engine.name(), found })
            }
        }
    }

    fn interrupted(&self) -> Result<(), PeerError> {
        if self.stop.load(Ordering::SeqCst) { Err(PeerError::Interrupted) } else { Ok(()) }
    }
}
