//! The writer: a process that is killed.
//!
//! Invariant: a commit is said on stdout after its ticket was waited for, in one write of its own,
//! before the next one of that thread begins.

use std::io::Write;

use iostrata_engine::{Engine, EngineError, Isolation, RequestError, Table, Ticket, Transaction};
use iostrata_innodb::PolicyName;

use super::oracle::{Load, THREADS};
use crate::args::CrashWorkerArgs;
use crate::engine_command::ending;
use crate::exit_error::ExitError;

/// The table with the number of each thread's last commit.
pub const MARKS: &str = "marks";
/// The table with everybody's rows.
pub const ROWS: &str = "rows";

/// One in so many transactions is preceded by one that is rolled back.
const ROLLED_BACK_OF: u64 = 4;

/// The table that comes and goes, and its index.
const PASSING: &str = "passing";
const BY_VALUE: &str = "by_value";
/// Rows of it.
const PASSING_ROWS: u32 = 300;
/// The engine is closed under the others' load after so many of those tables.
const CLOSED_AFTER: u32 = 5;
/// What is changed while everybody writes, the policy besides; not what a power cut may go by.
const LIVE: [(&str, [&str; 2]); 6] = [
    ("redo_log_capacity", ["8M", "4M"]),
    ("io_capacity", ["100", "4000"]),
    ("merge_threshold", ["1", "50"]),
    ("flush_neighbors", ["1", "0"]),
    ("purge_batch_size", ["1", "300"]),
    ("fill_factor", ["70", "100"]),
];

/// Writes until something ends it. From time to time it closes the engine under its own load and
/// opens it again.
///
/// # Errors
/// What the engine says.
pub fn run(args: &CrashWorkerArgs) -> Result<(), ExitError> {
    loop {
        let kept = Engine::kept_settings(&args.common.dir).map_err(ending)?;
        let settings =
            kept.ok_or_else(|| ExitError::Usage("there is no engine to write to".to_owned()))?;
        let load = Load { seed: args.seed, page_size: u64::from(settings.page_size) };
        let by_value = |_key: &[u8], value: &[u8], secondary: &mut Vec<u8>| {
            secondary.extend(value.first());
            true
        };
        let options = Engine::options().settings(settings).late_index(PASSING, BY_VALUE, by_value);
        let engine = options.open(&args.common.dir).map_err(ending)?;
        if !run_open(&engine, load)? {
            return Ok(());
        }
    }
}

/// Whether it ended by being closed.
fn run_open(engine: &Engine, load: Load) -> Result<bool, ExitError> {
    let (Some(marks), Some(rows)) =
        (engine.table(MARKS).map_err(ending)?, engine.table(ROWS).map_err(ending)?)
    else {
        return Err(ExitError::Usage("the tables of the test are not there".to_owned()));
    };
    let (marks, rows) = (&marks, &rows);
    let ended = std::thread::scope(|scope| {
        let mut threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || write(engine, (marks, rows), load, thread)))
            .collect();
        threads.push(scope.spawn(move || pass(engine)));
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let mut is_closed = false;
    for result in ended {
        match result {
            Ok(Err(EngineError::Request(RequestError::Closed))) => is_closed = true,
            Ok(written) => written.map_err(ending)?,
            Err(_panic) => return Err(ExitError::Bug("a writing thread panicked".to_owned())),
        }
    }
    Ok(is_closed)
}

/// Makes and drops a table with an index, checks everything, and changes settings, until it closes
/// the engine.
fn pass(engine: &Engine) -> Result<(), EngineError> {
    let policies = PolicyName::ALL;
    for round in 0..CLOSED_AFTER {
        let at = round as usize;
        let (name, values) = LIVE[at % LIVE.len()];
        engine.set(name, values[at / LIVE.len() % 2])?;
        engine.set("policy", policies[at % policies.len()].word())?;
        let table = engine.open_table(PASSING)?;
        if table.iter().next().is_none() {
            table.bulk_load((0..PASSING_ROWS).map(|row| (row.to_be_bytes(), row.to_le_bytes())))?;
        }
        engine.make_index(PASSING, BY_VALUE)?;
        let report = engine.check()?;
        if let Some(problem) = report.problems.first() {
            return Err(EngineError::Broken { what: format!("a check beside writers: {problem}") });
        }
        engine.drop_table(PASSING)?;
    }
    engine.clone().close()?;
    Err(RequestError::Closed.into())
}

/// Commits of one thread, half of the threads by batches and half by transactions.
fn write(
    engine: &Engine,
    (marks, rows): (&Table, &Table),
    load: Load,
    thread: u8,
) -> Result<(), EngineError> {
    let mut commit = last(marks, thread)?;
    loop {
        commit += 1;
        let ticket = if thread.is_multiple_of(2) {
            by_batch(engine, (marks, rows), load, (thread, commit))?
        } else {
            by_transaction(engine, (marks, rows), load, (thread, commit))?
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
    load: Load,
    (thread, commit): (u8, u64),
) -> Result<Ticket, EngineError> {
    let mut batch = engine.batch();
    for change in load.changes(thread, commit) {
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
    load: Load,
    (thread, commit): (u8, u64),
) -> Result<Ticket, EngineError> {
    let spoil = |t: &mut Transaction| {
        let wrong = load.changes(thread, commit + 1);
        wrong.into_iter().try_for_each(|change| t.put(rows, &change.key, b"rolled back"))
    };
    if commit.is_multiple_of(ROLLED_BACK_OF) {
        spoil(&mut engine.begin(Isolation::default())?)?;
    }
    let change = |t: &mut Transaction| {
        // A snapshot of its own keeps old versions for the others.
        t.get(marks, &[thread])?;
        for change in load.changes(thread, commit) {
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
