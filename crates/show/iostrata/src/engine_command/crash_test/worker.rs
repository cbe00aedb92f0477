//! The writer: a process that is killed.
//!
//! Invariant: a commit is printed on stdout after its ticket was waited for, in one write of its
//! own, before the next one of that thread begins. It acknowledges those before it, too.

use std::io::Write;
use std::time::{Duration, Instant};

use iostrata_engine::{
    Direction, Engine, EngineError, Isolation, RequestError, Table, Ticket, Transaction,
    TransactionError,
};
use iostrata_innodb::{CATALOGUE, Setting, ValueKind, When};
use iostrata_stats::Random;

use super::oracle::{HOT_THREADS, Load, THREADS};
use crate::args::CrashWorkerArgs;
use crate::engine_command::ending;
use crate::exit_error::ExitError;

/// The table with the number of each thread's last commit.
pub const MARKS: &str = "marks";
/// The table with the rows of all workers.
pub const ROWS: &str = "rows";

/// The line of a close under load begins with it; the seconds that it took follow.
pub const CLOSED: &str = "closed";

/// A thread waits for one in so many commits, and prints it; on contended rows for fewer, so that
/// threads meet more often.
const WAITED_OF: u64 = 16;
const WAITED_OF_HOT: u64 = 128;
/// One in so many transactions is preceded by one that is rolled back.
const ROLLED_BACK_OF: u64 = 4;

/// Redo that is seldom short.
const ROOMY: &str = "32M";

/// The table that comes and goes, and its index.
const PASSING: &str = "passing";
const BY_VALUE: &str = "by_value";
/// Rows of it.
const PASSING_ROWS: u32 = 300;
/// A writer that is killed closes the engine under its own load after so many such tables.
const CLOSED_AFTER: u32 = 5;
/// Writes until something ends it. From time to time it closes the engine under its own load and
/// opens it again; with `close_after_ms` it ends with the first such close.
///
/// # Errors
/// An error of the engine.
pub fn run(args: &CrashWorkerArgs) -> Result<(), ExitError> {
    let close_at = args.close_after_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
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
        if !run_open(&engine, load, close_at)? || close_at.is_some() {
            return Ok(());
        }
    }
}

/// Whether it ended by being closed.
fn run_open(engine: &Engine, load: Load, close_at: Option<Instant>) -> Result<bool, ExitError> {
    let (Some(marks), Some(rows)) =
        (engine.table(MARKS).map_err(ending)?, engine.table(ROWS).map_err(ending)?)
    else {
        return Err(ExitError::Usage("the tables of the test are missing".to_owned()));
    };
    let commits: u64 = (0..THREADS)
        .map(|thread| last(&marks, thread))
        .sum::<Result<u64, EngineError>>()
        .map_err(ending)?;
    // Each writer goes another way, every other one without changes apart from its commits, and
    // with room to do more of them.
    let mut random = Random::of_stream(load.seed, commits);
    let is_alone = random.below(2) == 0;
    if is_alone {
        engine.set("redo_log_capacity", ROOMY).map_err(ending)?;
    }
    let (marks, rows) = (&marks, &rows);
    let ended = std::thread::scope(|scope| {
        let mut threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || write(engine, (marks, rows), load, thread)))
            .collect();
        let closed_after = close_at.is_none().then_some(CLOSED_AFTER);
        if !is_alone {
            threads.push(scope.spawn(move || pass(engine, random, closed_after)));
        }
        if let Some(at) = close_at {
            threads.push(scope.spawn(move || {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                close(engine)
            }));
        }
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

/// Makes and drops a table with an index, checks everything, and changes settings; closes the
/// engine after so many rounds.
fn pass(engine: &Engine, mut random: Random, closed_after: Option<u32>) -> Result<(), EngineError> {
    for round in 0.. {
        if closed_after == Some(round) {
            break;
        }
        set_one(engine, &mut random)?;
        let table = engine.open_table(PASSING)?;
        if table.iter().next().is_none() {
            table.bulk_load((0..PASSING_ROWS).map(|row| (row.to_be_bytes(), row.to_le_bytes())))?;
        }
        index(engine, &table)?;
        set_one(engine, &mut random)?;
        let report = engine.check()?;
        if let Some(problem) = report.problems.first() {
            let what = format!("a check concurrent with writers: {problem}");
            return Err(EngineError::Broken { what });
        }
        engine.drop_table(PASSING)?;
    }
    close(engine)
}

/// Makes the index of a table. A view from before must not see it empty.
fn index(engine: &Engine, table: &Table) -> Result<(), EngineError> {
    let is_new = table.index(BY_VALUE).is_none();
    let view = engine.read_view()?;
    engine.make_index(PASSING, BY_VALUE)?;
    let table = engine.open_table(PASSING)?;
    let Some(index) = table.index(BY_VALUE).filter(|_| is_new) else { return Ok(()) };
    match view.index_cursor(&index, .., Direction::Forward) {
        Err(EngineError::Transaction(TransactionError::DefinitionChanged { .. })) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(EngineError::Broken { what: "a view reads a younger index".to_owned() }),
    }
}

/// Closes the engine for the others, too.
fn close(engine: &Engine) -> Result<(), EngineError> {
    let start = Instant::now();
    engine.clone().close()?;
    say(&format!("{CLOSED} {}\n", start.elapsed().as_secs_f64()));
    Err(RequestError::Closed.into())
}

/// Changes a live setting, if the value goes with the others.
fn set_one(engine: &Engine, random: &mut Random) -> Result<(), EngineError> {
    let (name, value) = draw(random);
    match engine.set(name, &value) {
        Err(EngineError::Request(RequestError::Setting(_) | RequestError::SettingRange { .. })) => {
            Ok(())
        }
        set => set,
    }
}

/// One line for the test; whether there is still one to read it.
fn say(line: &str) -> bool {
    std::io::stdout().lock().write_all(line.as_bytes()).is_ok()
}

/// Commits of one thread, half of the threads by batches and half by transactions.
fn write(
    engine: &Engine,
    (marks, rows): (&Table, &Table),
    load: Load,
    thread: u8,
) -> Result<(), EngineError> {
    let mut commit = last(marks, thread)?;
    let waited_of = if thread < HOT_THREADS { WAITED_OF_HOT } else { WAITED_OF };
    loop {
        commit += 1;
        let tables = (marks, rows);
        let ticket = loop {
            let committed = match thread.is_multiple_of(2) {
                true => by_batch(engine, tables, load, (thread, commit)),
                false => by_transaction(engine, tables, load, (thread, commit)),
            };
            // Nothing was kept of it then.
            if !committed.as_ref().is_err_and(is_of_others) {
                break committed?;
            }
        };
        if !commit.is_multiple_of(waited_of) {
            continue;
        }
        ticket.wait()?;
        if !say(&format!("{thread} {commit}\n")) {
            return Ok(());
        }
    }
}

/// Whether another transaction held a row for too long, or waits for this one.
fn is_of_others(error: &EngineError) -> bool {
    use TransactionError::{Deadlock, LockTimeout};
    matches!(error, EngineError::Transaction(Deadlock { .. } | LockTimeout { .. }))
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
    batch.commit_async()
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
        let spoiled = spoil(&mut engine.begin(Isolation::default())?);
        spoiled.or_else(|error| if is_of_others(&error) { Ok(()) } else { Err(error) })?;
    }
    let change = |t: &mut Transaction| {
        if thread >= HOT_THREADS {
            // A snapshot keeps old versions, of the others too: what they delete leaves a
            // tombstone.
            t.get(marks, &[thread])?;
        }
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
    engine.transact_async(Isolation::default(), change).map(|(_nothing, ticket)| ticket)
}

/// The number of a thread's last commit.
pub fn last(marks: &Table, thread: u8) -> Result<u64, EngineError> {
    let mark = marks.get(&[thread])?.map(|value| value.first_chunk::<8>().copied());
    Ok(mark.flatten().map_or(0, u64::from_le_bytes))
}

/// Settings under some of whose values a crash loses what was acknowledged.
const UNSAFE: [&str; 2] = ["flush_log_at_trx_commit", "doublewrite"];
/// Sizes drawn: with fewer bytes of redo the largest rows find no frame, more takes long to make.
const BYTES_MIN: u64 = 1 << 20;
const BYTES_MAX: u64 = 16 << 20;
/// What is drawn of counts goes up to so many times their default, and this much beyond.
const TIMES_DEFAULT: u64 = 4;
const BEYOND: u64 = 100;

/// A live setting and a value for it.
pub fn draw(random: &mut Random) -> (&'static str, String) {
    let live: Vec<&Setting> = drawn().collect();
    let setting = live[random.below(live.len() as u64) as usize];
    (setting.name, value(setting, random))
}

fn drawn() -> impl Iterator<Item = &'static Setting> {
    CATALOGUE.iter().filter(|setting| setting.when == When::Live && !UNSAFE.contains(&setting.name))
}

/// Least, most or default, or one between.
fn value(setting: &Setting, random: &mut Random) -> String {
    let mut between = |min: u64, max: u64| match random.below(3) {
        0 => min,
        1 => max,
        _ => min + random.below(max - min + 1),
    };
    match setting.kind {
        ValueKind::Size { .. } => between(BYTES_MIN, BYTES_MAX).to_string(),
        ValueKind::Count { min, max } => {
            let usual: u64 = setting.default.parse().unwrap_or(min);
            between(min, max.min(usual * TIMES_DEFAULT + BEYOND)).to_string()
        }
        ValueKind::Percent { min, max } => match between(0, 100) {
            0 => min.to_string(),
            share => (min + (max - min) * share as f64 / 100.0).to_string(),
        },
        ValueKind::Switch => ["OFF", "ON"][between(0, 1) as usize].to_owned(),
        ValueKind::Choice(words) => words[between(0, words.len() as u64 - 1) as usize].to_owned(),
        ValueKind::Directory => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use iostrata_innodb::{PolicyName, Settings};

    use super::*;

    #[test]
    fn every_live_setting_takes_all_kinds_of_its_values() {
        let (mut random, mut seen) = (Random::new(1), BTreeMap::<_, BTreeSet<String>>::new());
        let mut refused = 0;
        for _ in 0..20_000 {
            let (name, value) = draw(&mut random);
            let mut settings = Settings::default();
            settings.set(name, &value).unwrap();
            refused += u64::from(settings.check().is_err());
            seen.entry(name).or_default().insert(value);
        }
        assert!(refused < 2_000, "{refused} of 20,000 do not go with the defaults");
        let live = CATALOGUE.iter().filter(|setting| setting.when == When::Live);
        let names: BTreeSet<_> = live.map(|setting| setting.name).collect();
        assert!(UNSAFE.iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(seen.len() + UNSAFE.len(), names.len(), "{names:?}");
        assert_eq!(seen["policy"].len(), PolicyName::ALL.len());
        assert!(seen.values().all(|values| values.len() > 1), "{seen:?}");
    }
}
