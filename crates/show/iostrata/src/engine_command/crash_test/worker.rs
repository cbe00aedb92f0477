//! The writer: a process that is killed.
//!
//! Invariant: a commit is said on stdout after its ticket was waited for, in one write of its own,
//! before the next one of that thread begins.

use std::io::Write;

use iostrata_engine::{Engine, EngineError, Table};

use super::oracle::{THREADS, changes};
use crate::args::CrashWorkerArgs;
use crate::engine_command::ending;
use crate::exit_error::ExitError;

/// The table with the number of each thread's last commit.
pub const MARKS: &str = "marks";
/// The table with everybody's rows.
pub const ROWS: &str = "rows";

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

fn write(
    engine: &Engine,
    (marks, rows): (&Table, &Table),
    seed: u64,
    thread: u8,
) -> Result<(), EngineError> {
    let mut commit = last(marks, thread)?;
    loop {
        commit += 1;
        let mut batch = engine.batch();
        for change in changes(seed, thread, commit) {
            match &change.value {
                Some(value) => batch.put(rows, &change.key, value)?,
                None => batch.delete(rows, &change.key)?,
            }
        }
        batch.put(marks, &[thread], &commit.to_le_bytes())?;
        batch.commit()?.wait()?;
        let line = format!("{thread} {commit}\n");
        // Who reads this is gone: so is the reason to go on.
        if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
            return Ok(());
        }
    }
}

/// The number of a thread's last commit.
pub fn last(marks: &Table, thread: u8) -> Result<u64, EngineError> {
    let mark = marks.get(&[thread])?.map(|value| value.first_chunk::<8>().copied());
    Ok(mark.flatten().map_or(0, u64::from_le_bytes))
}
