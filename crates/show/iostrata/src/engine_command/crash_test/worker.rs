//! The writer: a process that is killed.
//!
//! Invariant: a commit is said on stdout after its ticket was waited for, in one write of its own,
//! before the next one of that thread begins.

use std::io::Write;

use iostrata_engine::{Engine, EngineError, Isolation, Table, Ticket, Transaction};

use super::oracle::{THREADS, changes};
use crate::args::CrashWorkerArgs;
use crate::engine_command::ending;
use crate::exit_error::ExitError;

/// The table with the number of each thread's last commit.
pub const MARKS: &str = "marks";
/// The table with everybody's rows.
pub const ROWS: &str = "rows";

/// One in so many transactions is preceded by one that is rolled back.
const ROLLED_BACK_OF: u64 = 4;

/// Writes until something ends it.
///
/// # Errors
/// What the engine says.
pub fn run(args: &CrashWorkerArgs) -> Result<(), ExitError> {
    let kept = Engine::kept_settings(&args.common.dir).map_err(ending)?;
    let settings =
        kept.ok_or_else(|| ExitError::Usage("there is no engine to write to".to_owned()))?;
    let engine = Engine::open(&args.common.dir, settings).map_err(ending)?;
    let (Some(marks), Some(rows)) =
        (engine.table(MARKS).map_err(ending)?, engine.table(ROWS).map_err(ending)?)
    else {
        return Err(ExitError::Usage("the tables of the test are not there".to_owned()));
    };
    let (engine, marks, rows) = (&engine, &marks, &rows);
    let ended = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || write(engine, (marks, rows), args.seed, thread)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for result in ended {
        match result {
            Ok(written) => written.map_err(ending)?,
            Err(_panic) => return Err(ExitError::Bug("a writing thread panicked".to_owned())),
        }
    }
    Ok(())
}

/// Commits of one thread, half of the threads by batches and half by transactions.
fn write(
    engine: &Engine,
    (marks, rows): (&Table, &Table),
    seed: u64,
    thread: u8,
) -> Result<(), EngineError> {
    let mut commit = last(marks, thread)?;
    loop {
        commit += 1;
        let ticket = if thread.is_multiple_of(2) {
            by_batch(engine, (marks, rows), seed, (thread, commit))?
        } else {
            by_transaction(engine, (marks, rows), seed, (thread, commit))?
        };
        ticket.wait()?;
        let line = format!("{thread} {commit}\n");
        // Who reads this is gone: so is the reason to go on.
        if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
            return Ok(());
        }
    }
}

fn by_batch(
    engine: &Engine,
    (marks, rows): (&Table, &Table),
    seed: u64,
    (thread, commit): (u8, u64),
) -> Result<Ticket, EngineError> {
    let mut batch = engine.batch();
    for change in changes(seed, thread, commit) {
        match &change.value {
            Some(value) => batch.put(rows, &change.key, value)?,
            None => batch.delete(rows, &change.key)?,
        }
    }
    batch.put(marks, &[thread], &commit.to_le_bytes())?;
    batch.commit()
}

/// Writes besides what must not be there afterwards: behind a savepoint, and in a transaction that
/// is not committed.
fn by_transaction(
    engine: &Engine,
    (marks, rows): (&Table, &Table),
    seed: u64,
    (thread, commit): (u8, u64),
) -> Result<Ticket, EngineError> {
    let spoil = |t: &mut Transaction| {
        let wrong = changes(seed, thread, commit + 1);
        wrong.into_iter().try_for_each(|change| t.put(rows, &change.key, b"rolled back"))
    };
    if commit.is_multiple_of(ROLLED_BACK_OF) {
        spoil(&mut engine.begin(Isolation::default())?)?;
    }
    let change = |t: &mut Transaction| {
        // A snapshot of its own keeps old versions for the others.
        t.get(marks, &[thread])?;
        for change in changes(seed, thread, commit) {
            match &change.value {
                Some(value) => t.put(rows, &change.key, value)?,
                None => {
                    let _was_there = t.delete(rows, &change.key)?;
                }
            }
        }
        let savepoint = t.savepoint();
        spoil(t)?;
        t.rollback_to(savepoint)?;
        t.put(marks, &[thread], &commit.to_le_bytes())
    };
    engine.transact(Isolation::default(), change).map(|(_nothing, ticket)| ticket)
}

/// The number of a thread's last commit.
pub fn last(marks: &Table, thread: u8) -> Result<u64, EngineError> {
    let mark = marks.get(&[thread])?.map(|value| value.first_chunk::<8>().copied());
    Ok(mark.flatten().map_or(0, u64::from_le_bytes))
}
