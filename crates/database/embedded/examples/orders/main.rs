//! Orders in the shape of TPC-C: what a session costs over calling the engine directly.
//!
//! `cargo run --release -p iostrata-embedded --example orders -- DIR [ROUNDS] [SECONDS]`
//! Loads four warehouses into an empty directory, twice, and lets both ways take turns (A B B A):
//! two threads, eight unsettled commits each; the sessions of a thread take turns, too. One
//! transaction has 34 operations on rows, 18 of which write. Processor time is that of the threads
//! that run transactions; the difference is given with its 95 % interval over the pairs.

#![allow(clippy::print_stdout)]

mod direct;
mod draw;
mod tables;
mod through;

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iostrata_database::target::{Schema, SessionOptions, Target};
use iostrata_embedded::EmbeddedTarget;
use iostrata_engine::Table;
use rustix::time::{ClockId, clock_gettime};

use direct::Direct;
use draw::Draw;
use tables::{Filler, TABLES, schema};
use through::{Through, lines, ops};

const THREADS: u64 = 2;
const SESSIONS: usize = 4;
const UNSETTLED: usize = 8;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("say where: orders DIR [ROUNDS] [SECONDS]");
        std::process::exit(2);
    };
    let rounds = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let window = Duration::from_secs(arguments.next().map_or(Ok(3), |text| text.parse())?);
    let schema = Arc::new(schema());
    let settings = [("buffer_pool_size", "2G"), ("redo_log_capacity", "1G")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let target = EmbeddedTarget::open(Path::new(&directory), &schema, &settings)?;
    for first in [0, TABLES] {
        load(&target, &schema, first)?;
    }
    let copies = of_direct(&target, &schema)?;
    target.engine().checkpoint()?;
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let mut pair = [(0.0, 0.0); 2];
        for way in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            pair[way] = if way == 0 {
                run(window, round, &|seed, until| direct(&target, &copies, seed, until))?
            } else {
                run(window, round, &|seed, until| through(&target, &schema, seed, until))?
            };
        }
        for (name, (rate, cpu_us)) in ["directly", "by sessions"].iter().zip(pair) {
            println!("{name:12} {rate:8.0} transactions/s {cpu_us:6.2} us of CPU each");
        }
        ratios.push((pair[1].1 / pair[0].1).ln());
    }
    let (percent, half) = difference(&ratios);
    println!("sessions: {percent:+.1} % CPU per transaction, +- {half:.1} %");
    drop(copies);
    target.close()?;
    Ok(())
}

/// Loads nine tables, two at a time, and makes their late indexes.
fn load(target: &EmbeddedTarget, schema: &Arc<Schema>, first: usize) -> Result<(), Failed> {
    let start = Instant::now();
    // The longest first.
    let mut open = [0, 1, 4, 3, 5, 7, 2, 8, 6].map(|table| first + table).to_vec();
    for table in &open {
        target.create(schema, *table)?;
    }
    let next = std::sync::Mutex::new(&mut open);
    let work = || -> Result<u64, Failed> {
        let mut rows = 0;
        loop {
            let Some(table) = next.lock().ok().and_then(|mut open| open.pop()) else {
                return Ok(rows);
            };
            let mut filler = Filler::new(table % TABLES);
            rows += target.load(schema, table, None, &mut |rows| filler.fill(schema, rows))?;
        }
    };
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "it panicked")?)
            .sum::<Result<u64, Failed>>()
    })?;
    let loaded = start.elapsed();
    target.finish(schema)?;
    println!(
        "{rows} rows loaded in {:.2} s, indexes in {:.2} s",
        loaded.as_secs_f64(),
        (start.elapsed() - loaded).as_secs_f64()
    );
    Ok(())
}

/// The tables that direct calls use: the same rows, with the same indexes.
fn of_direct(target: &EmbeddedTarget, schema: &Schema) -> Result<Vec<Table>, Failed> {
    let open =
        |table: &iostrata_database::target::Table| Ok(target.engine().open_table(&table.name)?);
    schema.tables[TABLES..].iter().map(open).collect()
}

/// What one thread does until the time is over; gives what was settled.
type Work<'w> = dyn Fn(u64, Instant) -> Result<u64, Failed> + Sync + 'w;

/// Transactions per second, and microseconds of processor time of each.
fn run(window: Duration, round: u64, work: &Work<'_>) -> Result<(f64, f64), Failed> {
    let start = Instant::now();
    let until = start + window;
    let timed = |seed: u64| -> Result<(u64, f64), Failed> {
        let before = cpu_us();
        let settled = work(seed, until)?;
        Ok((settled, cpu_us() - before))
    };
    let done = std::thread::scope(|scope| {
        let begin = |thread| scope.spawn(move || timed(round * THREADS + thread + 1));
        let threads: Vec<_> = (0..THREADS).map(begin).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "it panicked")?);
        joined.collect::<Result<Vec<_>, Failed>>()
    })?;
    let settled = done.iter().map(|(settled, _)| *settled).sum::<u64>() as f64;
    let cpu: f64 = done.iter().map(|(_, cpu_us)| *cpu_us).sum();
    Ok((settled / start.elapsed().as_secs_f64(), cpu / settled))
}

/// The mean of logarithms of ratios in percent, and half of its 95 % interval.
fn difference(ratios: &[f64]) -> (f64, f64) {
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let half = 2.1 * (squares / (count - 1.0).max(1.0) / count).sqrt();
    (100.0 * mean.exp_m1(), 100.0 * half.exp_m1())
}

/// Processor time of this thread.
fn cpu_us() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

fn direct(
    target: &EmbeddedTarget,
    tables: &[Table],
    seed: u64,
    until: Instant,
) -> Result<u64, Failed> {
    let (tickets, value, key) = (VecDeque::new(), Vec::new(), Vec::new());
    let mut direct = Direct { engine: target.engine(), tables, tickets, value, key, seen: 0 };
    let (mut draw, mut settled) = (Draw::new(seed), 0);
    while Instant::now() < until {
        direct.transact(&draw.next())?;
        settled += direct.settle(UNSETTLED)?;
    }
    settled += direct.settle(0)?;
    std::hint::black_box(direct.seen);
    Ok(settled)
}

fn through(
    target: &EmbeddedTarget,
    schema: &Arc<Schema>,
    seed: u64,
    until: Instant,
) -> Result<u64, Failed> {
    let all: Vec<_> = ops().into_iter().chain([lines()]).collect();
    let options = SessionOptions { ops: all.into(), ..SessionOptions::default() };
    let mut sessions = Vec::new();
    for _session in 0..SESSIONS {
        let session = target.session(schema, &options)?;
        let (tickets, out) = (VecDeque::new(), Default::default());
        sessions.push(Through { session, tickets, out, seen: 0 });
    }
    let (mut draw, mut settled) = (Draw::new(seed), 0);
    while Instant::now() < until {
        for session in &mut sessions {
            session.transact(&draw.next())?;
            settled += session.settle(UNSETTLED / SESSIONS)?;
        }
    }
    for session in &mut sessions {
        settled += session.settle(0)?;
        std::hint::black_box(session.seen);
    }
    Ok(settled)
}
