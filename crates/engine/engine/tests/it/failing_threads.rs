//! A failed sync or write of redo under many threads: every waiter gets the error, nothing is
//! acknowledged that is not durable, and the next opening finds everything acknowledged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_engine::{Background, EngineError};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{MemDisk, Tear, TraceDisk};

use crate::common::engine::{EngineStore, How, STILL, commit};
use crate::common::is_soak;
use crate::common::model::{Change, History, Tables, table_name};
use crate::common::plan::{Op, Step, of_thread, plan};
use crate::common::quiet::Watch;
use crate::common::record::Recording;
use crate::common::sweep::{Crash, Sweep};

const WRITERS: u64 = 4;

type Commits = Mutex<Vec<(u64, u64, Vec<Op>)>>;

/// The redo's n-th call of a kind, and every later one, fails.
fn failing(kind: CallKind, number: u64) -> MemDisk {
    let memory = MemDisk::new();
    let seen = AtomicU64::new(0);
    memory.before_each(move |call| {
        let is_meant = call.kind == kind && call.name.starts_with("redo-0");
        if is_meant && seen.fetch_add(1, Ordering::Relaxed) >= number {
            return Fault::Errno(5);
        }
        Fault::None
    });
    memory
}

/// Writes until it is stopped; the failure that stopped it.
fn write(
    store: &EngineStore,
    disk: &TraceDisk,
    thread: u64,
    commits: &Commits,
) -> Option<EngineError> {
    let steps = of_thread(thread as usize, plan(40 + thread, &STILL));
    for (number, step) in (thread << 32..).zip(steps) {
        let Step::Batch { ops, .. } = step else { continue };
        // The last lock is held across the commit, so that what is committed is also known.
        let ticket = {
            let mut commits = commits.lock().unwrap();
            match commit(&store.0, &ops) {
                Ok((ticket, count)) => {
                    commits.push((ticket.lsn(), number, ops[..count].to_vec()));
                    ticket
                }
                Err(error) => return Some(error),
            }
        };
        match ticket.wait() {
            Ok(()) => disk.ack(number),
            Err(error) => return Some(error),
        }
    }
    None
}

/// Whether it reports that the log failed, now or before.
fn is_of_the_log(error: &EngineError) -> bool {
    match error {
        EngineError::Poisoned { cause } => is_of_the_log(cause),
        EngineError::Io(failure) => failure.to_string().contains("the redo log"),
        _ => false,
    }
}

/// One run until the failure; false when the call was not reached.
fn run(kind: CallKind, number: u64) -> bool {
    let disk = TraceDisk::new(failing(kind, number));
    // So much redo that no thread is delayed.
    let how = How::with(&[("redo_log_capacity", "2M")]);
    let how = How { background: Background::Threads, ..how };
    let Ok(engine) = how.open(Arc::new(disk.clone())) else { return true };
    let store = EngineStore(engine);
    let mut history = History::new(Tables::new());
    for table in 0..STILL.tables {
        let id = (WRITERS << 32) + table as u64;
        history.push(id, Change::Create(table));
        if store.0.create_table(&table_name(table)).is_err() {
            return true;
        }
        disk.ack(id);
    }
    let commits = Mutex::new(Vec::new());
    let failures: Vec<_> = std::thread::scope(|scope| {
        let (store, disk, commits) = (&store, &disk, &commits);
        let writers = (0..WRITERS).map(|of| scope.spawn(move || write(store, disk, of, commits)));
        let writers: Vec<_> = writers.collect();
        writers.into_iter().filter_map(|writer| writer.join().expect("no panic")).collect()
    });
    for failure in &failures {
        assert!(is_of_the_log(failure), "{kind:?} {number}: {failure}");
    }
    if !failures.is_empty() {
        let again = store.0.create_table("another");
        assert!(matches!(again, Err(EngineError::Poisoned { .. })), "{:?}", again.err());
    }
    drop(store);
    let mut commits = commits.into_inner().unwrap();
    commits.sort_by_key(|(place, _, _)| *place);
    commits.into_iter().for_each(|(_, id, ops)| history.push(id, Change::Batch(ops)));
    let point = disk.points() - 1;
    let recording = Recording { seed: 0, disk, history, opened: 0 };
    let sweep = Sweep::<EngineStore>::new(&how, &STILL);
    for seed in [0, 1, 77] {
        let tear = Tear::Sectors(512);
        let crash = Crash { point, seed, tear, ending: None };
        let judged = sweep.one(&recording, crash, false);
        judged.unwrap_or_else(|what| panic!("{kind:?} {number}, seed {seed}: {what}"));
    }
    !failures.is_empty()
}

#[test]
fn a_failing_log_stops_every_writer() {
    let watch = Watch::new();
    let stride = if is_soak() { 1 } else { 9 };
    for kind in [CallKind::Sync, CallKind::Write] {
        let mut runs = 0;
        for number in (0..).step_by(stride) {
            watch.on(format!("{kind:?} {number} fails under threads"));
            if !run(kind, number) {
                break;
            }
            runs += 1;
        }
        assert!(runs > 3, "only {runs} runs");
    }
}
