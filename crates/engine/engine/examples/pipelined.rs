//! What it brings to keep several commits in flight: sessions that go on working and ask now and
//! then which of their tickets are settled.
//!
//! `cargo run --release -p iostrata-engine --example pipelined -- DIR [OUTSTANDING [SESSIONS]]`
//! Figures of one run without intervals: for a first look, not for comparisons.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use iostrata_engine::{Counter, Engine, EngineError, Table, Ticket};

const LASTS: Duration = Duration::from_secs(3);
const ROWS: u64 = 200_000;
const PUTS: u64 = 18;

fn main() -> Result<(), EngineError> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!("say where: pipelined DIR [OUTSTANDING [SESSIONS]]");
        std::process::exit(2);
    };
    let mut number =
        |or| arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(or);
    let (outstanding, sessions) = (number(8), number(2) as u64);
    let engine = Engine::open(&directory, Engine::server_settings())?;
    let table = engine.open_table("rows")?;
    if table.get(&0_u64.to_be_bytes())?.is_none() {
        table.bulk_load((0..ROWS).map(|row| (row.to_be_bytes(), [row as u8; 24])))?;
    }
    engine.checkpoint()?;
    let (before, start, cpu) = (engine.counters(), Instant::now(), cpu_us());
    let mut times = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..sessions)
            .map(|session| {
                scope.spawn({
                    let (engine, table) = (&engine, &table);
                    move || work(engine, table, session, outstanding)
                })
            })
            .collect();
        let ends = workers.into_iter().map(|worker| worker.join().unwrap_or(Ok(Vec::new())));
        ends.collect::<Result<Vec<_>, _>>()
    })?
    .concat();
    let (cpu, seconds) = (cpu_us() - cpu, start.elapsed().as_secs_f64());
    let syncs = engine.counters()[Counter::OsLogFsyncs] - before[Counter::OsLogFsyncs];
    times.sort_unstable();
    let (count, mean) = (times.len() as f64, times.iter().sum::<Duration>() / times.len() as u32);
    eprintln!(
        "{sessions} sessions, {outstanding:2} outstanding: {:.0} commits/s, {:.1} us of CPU each, \
         {:.3} syncs each; durable after {mean:.0?}, p99 {:.0?}",
        count / seconds,
        cpu / count,
        syncs as f64 / count,
        times[times.len() * 99 / 100],
    );
    engine.close()
}

/// One session; gives how long each commit took from `commit` to the session's seeing it settled.
fn work(
    engine: &Engine,
    table: &Table,
    session: u64,
    outstanding: usize,
) -> Result<Vec<Duration>, EngineError> {
    let (start, mut random, mut times) = (Instant::now(), session + 7, Vec::new());
    let mut waiting: VecDeque<(Instant, Ticket)> = VecDeque::new();
    while start.elapsed() < LASTS {
        let mut batch = engine.batch();
        for _ in 0..PUTS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            batch.put(table, &((random >> 33) % ROWS).to_be_bytes(), &random.to_le_bytes())?;
        }
        waiting.push_back((Instant::now(), batch.commit()?));
        while let Some((since, ticket)) = waiting.front() {
            if waiting.len() >= outstanding {
                ticket.wait()?;
            } else if !ticket.try_wait()? {
                break;
            }
            times.push(since.elapsed());
            waiting.pop_front();
        }
    }
    Ok(times)
}

/// Processor time of this process, in microseconds.
fn cpu_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
