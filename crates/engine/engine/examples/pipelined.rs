//! What it brings to keep several commits in flight: sessions that go on working and poll now and
//! then which of their tickets are settled.
//!
//! `cargo run --release -p iostrata-engine --example pipelined -- DIR [OUTSTANDING [SESSIONS
//! [WORK_US]]]`
//! Figures of one run without intervals: for a first look, not for comparisons.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use iostrata_engine::{Counter, Engine, EngineError, Table, Ticket};

const PUTS: u64 = 18;

/// What each session does.
pub struct Load {
    /// Rows of the table.
    pub rows: u64,
    /// Commits in flight.
    pub outstanding: usize,
    /// Processor time in addition to the batch, as a program around the engine would take it.
    pub work: Duration,
    /// How long it runs.
    pub lasts: Duration,
}

#[allow(dead_code)] // in the test
fn main() -> Result<(), EngineError> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("say where: pipelined DIR [OUTSTANDING [SESSIONS [WORK_US]]]");
        std::process::exit(2);
    };
    let mut number = |or: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (outstanding, sessions) = (number(8) as usize, number(2));
    let work = Duration::from_micros(number(40));
    let load = Load { rows: 200_000, outstanding, work, lasts: Duration::from_secs(2) };
    let engine = Engine::open(Path::new(&directory), Engine::server_settings())?;
    measure(&engine, &load, sessions)?;
    engine.close()
}

/// Gives how long each commit took until its session saw it settled.
pub fn measure(engine: &Engine, load: &Load, sessions: u64) -> Result<Vec<Duration>, EngineError> {
    let table = engine.open_table("rows")?;
    if table.get(&0_u64.to_be_bytes())?.is_none() {
        table.bulk_load((0..load.rows).map(|row| (row.to_be_bytes(), [row as u8; 24])))?;
    }
    engine.checkpoint()?;
    let syncs = || engine.counters()[Counter::OsLogFsyncs];
    let (syncs_before, start, cpu) = (syncs(), Instant::now(), cpu_us());
    let mut times = std::thread::scope(|scope| {
        let run = |session| load.run(engine, &table, session);
        let workers: Vec<_> =
            (0..sessions).map(|session| scope.spawn(move || run(session))).collect();
        let ends = workers.into_iter().map(|worker| match worker.join() {
            Ok(times) => times,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.collect::<Result<Vec<_>, _>>()
    })?
    .concat();
    let (cpu, seconds) = (cpu_us() - cpu, start.elapsed().as_secs_f64());
    times.sort_unstable();
    let (count, total) = (times.len().max(1) as f64, times.iter().sum::<Duration>());
    eprintln!(
        "{sessions} sessions, {} outstanding: {:.0} commits/s, {:.1} us of CPU each, {:.3} syncs \
         each; durable after {:.0} us, p99 {:.0} us",
        load.outstanding,
        count / seconds,
        cpu / count,
        (syncs() - syncs_before) as f64 / count,
        total.as_secs_f64() * 1e6 / count,
        times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6),
    );
    Ok(times)
}

impl Load {
    fn run(
        &self,
        engine: &Engine,
        table: &Table,
        session: u64,
    ) -> Result<Vec<Duration>, EngineError> {
        let (start, mut random, mut times) = (Instant::now(), session + 7, Vec::new());
        let mut waiting: VecDeque<(Instant, Ticket)> = VecDeque::new();
        while start.elapsed() < self.lasts {
            let working = cpu_of_thread();
            while cpu_of_thread() - working < self.work {
                std::hint::spin_loop();
            }
            let mut batch = engine.batch();
            for _ in 0..PUTS {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let key = ((random >> 33) % self.rows).to_be_bytes();
                batch.put(table, &key, &random.to_le_bytes())?;
            }
            waiting.push_back((Instant::now(), batch.commit_async()?));
            Self::look(&mut waiting, &mut times, self.outstanding)?;
        }
        Self::look(&mut waiting, &mut times, 1)?;
        Ok(times)
    }

    /// Takes away what is settled; waits only where so many are outstanding.
    fn look(
        waiting: &mut VecDeque<(Instant, Ticket)>,
        times: &mut Vec<Duration>,
        outstanding: usize,
    ) -> Result<(), EngineError> {
        while let Some((since, ticket)) = waiting.front() {
            if waiting.len() >= outstanding {
                ticket.wait()?;
            } else if !ticket.try_wait()? {
                return Ok(());
            }
            times.push(since.elapsed());
            waiting.pop_front();
        }
        Ok(())
    }
}

fn clock(id: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn cpu_of_thread() -> Duration {
    clock(rustix::time::ClockId::ThreadCPUTime)
}

/// Processor time of this process, in microseconds.
fn cpu_us() -> f64 {
    clock(rustix::time::ClockId::ProcessCPUTime).as_secs_f64() * 1e6
}
