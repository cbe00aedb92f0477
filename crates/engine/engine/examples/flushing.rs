//! How flushing holds under random updates: a line each second, and what it cost.
//!
//! `cargo run --release -p iostrata-engine --example flushing -- DIR [NAME=VALUE ...]`
//!
//! `seconds`, `threads`, `more_threads` (which begin with the last third of the seconds), `rows`
//! (of 200 bytes), `batch` (updates of a commit), `rate` (commits per second of all threads; 0 for
//! as fast as it goes) and any setting of the engine. The first third of the seconds is not
//! counted. `then` takes effect when the last third begins: `then=COMMAND` runs a command in a
//! shell, such as one that halves the limit of the volume; `then.NAME=VALUE` sets a live setting. A
//! second counts as stalled when it is below half of their mean. Figures of one run without
//! intervals: for a first look.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iostrata_engine::{Counter, Counters, Engine, EngineError, Settings, Table};

/// Bytes of a row.
const ROW_BYTES: usize = 200;

/// What is done, and what came of it.
struct Load {
    engine: Engine,
    table: Table,
    rows: u64,
    batch: u64,
    threads: u64,
    more_threads: u64,
    rate: f64,
    start: Instant,
    /// How long one is.
    second: Duration,
    is_over: AtomicBool,
    commits: AtomicU64,
}

#[allow(dead_code)] // in the test
fn main() -> Result<(), EngineError> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("say where: flushing DIR [NAME=VALUE ...]");
        std::process::exit(2);
    };
    print_times(flushing(Path::new(&directory), arguments, Duration::from_secs(1))?);
    Ok(())
}

/// What happens at the beginning of the last third.
#[derive(Default)]
struct Then {
    command: Option<String>,
    settings: Vec<(String, String)>,
}

/// Gives the times of the commits that count, in microseconds.
pub fn flushing(
    directory: &Path,
    arguments: impl Iterator<Item = String>,
    second: Duration,
) -> Result<Vec<u32>, EngineError> {
    let mut numbers: BTreeMap<&str, f64> =
        [("seconds", 12.0), ("threads", 4.0), ("rows", 1e6), ("batch", 1.0), ("rate", 0.0)].into();
    numbers.insert("more_threads", 0.0);
    let (mut settings, mut then) = (Settings::default(), Then::default());
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
        match (numbers.get_mut(name), value.parse(), name.strip_prefix("then.")) {
            (Some(number), Ok(value), _) => *number = value,
            (_, _, Some(name)) => then.settings.push((name.to_owned(), value.to_owned())),
            _ if name == "then" => then.command = Some(value.to_owned()),
            _ => settings.set(name, value)?,
        }
    }
    let engine = Engine::open(directory, settings)?;
    let table = engine.open_table("rows")?;
    let rows = numbers["rows"] as u64;
    if table.get(&(rows - 1).to_be_bytes())?.is_none() {
        table.bulk_load((0..rows).map(|row| (row.to_be_bytes(), [row as u8; ROW_BYTES])))?;
        engine.checkpoint()?;
    }
    // What fits is in the pool before the load begins.
    let mut range = table.cursor(.., iostrata_engine::Direction::Forward);
    while range.next_row()?.is_some() {}
    drop(range);
    let load = Load {
        engine,
        table,
        rows,
        batch: numbers["batch"] as u64,
        threads: numbers["threads"] as u64,
        more_threads: numbers["more_threads"] as u64,
        rate: numbers["rate"],
        start: Instant::now(),
        second,
        is_over: AtomicBool::new(false),
        commits: AtomicU64::new(0),
    };
    let times = run(&load, numbers["seconds"] as u32, &then)?;
    load.engine.clone().close()?;
    Ok(times)
}

/// Runs the load and prints its seconds; gives the times of the commits that count.
fn run(load: &Load, seconds: u32, then: &Then) -> Result<Vec<u32>, EngineError> {
    let third = seconds / 3;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..load.threads + load.more_threads)
            .map(|thread| scope.spawn(move || load.work(thread, load.second * third)))
            .collect();
        let watched = watch(load, seconds, then);
        load.is_over.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(of_worker) => times.append(&mut of_worker?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        watched.map(|()| times)
    })
}

fn watch(load: &Load, seconds: u32, then: &Then) -> Result<(), EngineError> {
    let third = seconds / 3;
    let (mut before, mut done, mut counted) = (load.engine.counters(), 0, Vec::new());
    let mut first = before.clone();
    for second in 1..=seconds {
        let until = load.start + load.second * second;
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        let (now, commits) = (load.engine.counters(), load.commits.load(Ordering::Relaxed));
        print_second(second, commits - done, &now, &before);
        counted.push(commits - done);
        if second == third || second == 2 * third || second == seconds {
            if second > third {
                print_all(&counted, &now, &first);
            }
            (first, counted) = (now.clone(), Vec::new());
        }
        if second == 2 * third {
            then.begin(&load.engine)?;
        }
        (before, done) = (now, commits);
    }
    Ok(())
}

impl Then {
    /// Sets, begins the command and goes on.
    fn begin(&self, engine: &Engine) -> Result<(), EngineError> {
        self.settings.iter().try_for_each(|(name, value)| engine.set(name, value))?;
        let Some(command) = &self.command else { return Ok(()) };
        if let Err(error) = std::process::Command::new("sh").args(["-c", command]).spawn() {
            eprintln!("cannot run '{command}': {error}");
        }
        Ok(())
    }
}

impl Load {
    fn work(&self, thread: u64, third: Duration) -> Result<Vec<u32>, EngineError> {
        if thread >= self.threads {
            std::thread::sleep(third * 2);
        }
        let (mut random, mut times, mut turn) = (thread * 7919 + 1, Vec::new(), 0_u64);
        let mut row = [0; ROW_BYTES];
        while !self.is_over.load(Ordering::Relaxed) {
            let mut due = Instant::now();
            if self.rate > 0.0 {
                let at = (turn * self.threads + thread) as f64 / self.rate;
                due = self.start + Duration::from_secs_f64(at);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            let mut batch = self.engine.batch();
            for _ in 0..self.batch {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Every byte changes, so that the redo of an update holds the whole row.
                row.fill((random >> 20) as u8);
                row[..8].copy_from_slice(&random.to_le_bytes());
                batch.put(&self.table, &((random >> 33) % self.rows).to_be_bytes(), &row)?;
            }
            batch.commit()?;
            turn += 1;
            self.commits.fetch_add(1, Ordering::Relaxed);
            if self.start.elapsed() > third {
                times.push(due.elapsed().as_micros() as u32);
            }
        }
        Ok(times)
    }
}

fn print_second(second: u32, commits: u64, now: &Counters, before: &Counters) {
    let delta = |counter| now[counter] - before[counter];
    let age = now[Counter::CheckpointAge] as f64;
    eprintln!(
        "{second:4} s {commits:7} commits/s, age {:5.1} % of the wall, dirty {:7}, flushed/s list \
         {:6} cold {:6}, delayed {:6} waited {:5}, free {:5}",
        100.0 * age / now[Counter::CheckpointMaxAge].max(1) as f64,
        now[Counter::BufferPoolPagesDirty],
        delta(Counter::BufferPoolPagesFlushed) - delta(Counter::BufferLruBatchFlushTotalPages),
        delta(Counter::BufferLruBatchFlushTotalPages),
        delta(Counter::AdmitDelays),
        delta(Counter::AdmitWaits) + delta(Counter::BufferPoolWaitFree),
        now[Counter::BufferPoolPagesFree],
    );
}

fn print_all(counted: &[u64], now: &Counters, before: &Counters) {
    let delta = |counter| (now[counter] - before[counter]) as f64;
    let mean = counted.iter().sum::<u64>() as f64 / counted.len().max(1) as f64;
    let worst = counted.iter().copied().min().unwrap_or(0) as f64;
    let (commits, seconds) = (mean * counted.len() as f64, counted.len() as f64);
    let stalled = counted.iter().filter(|commits| **commits as f64 * 2.0 < mean).count();
    eprintln!(
        "{mean:.0} commits/s, worst second {:.2} of it, stalled {:.0} %; for each: {:.0} bytes of \
         redo, {:.2} reads, {:.2} pages written, {:.3} log syncs; furious flushes {}, cleaner {:.2} \
         processors, {:.1} us for a decision",
        worst / mean,
        100.0 * stalled as f64 / seconds,
        delta(Counter::LsnCurrent) / commits,
        delta(Counter::BufferPoolReads) / commits,
        delta(Counter::PagesWritten) / commits,
        delta(Counter::OsLogFsyncs) / commits,
        delta(Counter::BufferFlushSync),
        delta(Counter::CpuNsCleaner) / 1e9 / seconds,
        delta(Counter::PolicyDecisionNs) / delta(Counter::PolicyDecisions).max(1.0) / 1e3,
    );
}

fn print_times(mut times: Vec<u32>) {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0);
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0 - 1e-9].map(at);
    eprintln!("commits in us: p50 {p50}, p99 {p99}, p99.9 {p999}, max {max}");
}
