//! What the engine does per second here: sorted load, point reads, a scan, updates and commits.
//!
//! `cargo run --release -p iostrata-engine --example rates -- DIR [ROWS]`
//! Figures of one run without intervals: for a first look, not for comparisons.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use iostrata_engine::{Direction, Engine, EngineError, Table};

fn main() -> Result<(), EngineError> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!("say where: rates DIR [ROWS]");
        std::process::exit(2);
    };
    let rows = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(1_000_000);
    let mut settings = Engine::server_settings();
    settings.set("buffer_pool_size", "512M")?;
    for pair in arguments.filter_map(|text| text.into_string().ok()) {
        let (name, value) = pair.split_once('=').unwrap_or((&pair, ""));
        settings.set(name, value)?;
    }
    let engine = Engine::open(&directory, settings)?;
    let table = engine.create_table("rates")?;
    let start = Instant::now();
    table.bulk_load((0..rows).map(|row: u64| (row.to_be_bytes(), [row as u8; 24])))?;
    say("sorted load, rows", rows, start.elapsed());

    let start = Instant::now();
    let mut found = 0;
    let mut range = table.cursor(.., Direction::Forward);
    while range.next_row()?.is_some() {
        found += 1;
    }
    drop(range);
    say("scan, rows", found, start.elapsed());
    reads(&table, rows)?;
    for threads in [1, 4, 16] {
        commits(&engine, &table, rows, threads)?;
    }
    lazy_commits(&engine, &table, rows)?;
    engine.close()
}

fn reads(table: &Table, rows: u64) -> Result<(), EngineError> {
    let (start, mut random, reads) = (Instant::now(), 1_u64, 1_000_000);
    let (mut sum, mut value) = (0_u64, Vec::new());
    for _ in 0..reads {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = ((random >> 33) % rows).to_be_bytes();
        if table.get_into(&key, &mut value)? {
            sum += u64::from(value[0]);
        }
    }
    std::hint::black_box(sum);
    say("point reads", reads, start.elapsed());
    Ok(())
}

fn commits(engine: &Engine, table: &Table, rows: u64, threads: u64) -> Result<(), EngineError> {
    let start = Instant::now();
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || -> Result<u64, EngineError> {
                    let (mut random, mut done) = (thread + 7, 0);
                    while start.elapsed() < Duration::from_secs(2) {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let key = ((random >> 33) % rows).to_be_bytes();
                        let mut batch = engine.batch();
                        batch.put(table, &key, &random.to_le_bytes())?;
                        batch.commit()?;
                        done += 1;
                    }
                    Ok(done)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(Ok(0))).sum::<Result<u64, _>>()
    })?;
    say(&format!("durable commits, {threads} threads"), done, start.elapsed());
    Ok(())
}

fn lazy_commits(engine: &Engine, table: &Table, rows: u64) -> Result<(), EngineError> {
    let (start, mut random, commits) = (Instant::now(), 99_u64, 500_000);
    let mut last = None;
    for _ in 0..commits {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = ((random >> 33) % rows).to_be_bytes();
        let mut batch = engine.batch();
        batch.put(table, &key, &random.to_le_bytes())?;
        last = Some(batch.commit_async()?);
    }
    if let Some(ticket) = last {
        ticket.wait()?;
    }
    say("commits settled together", commits, start.elapsed());
    Ok(())
}

fn say(what: &str, count: u64, time: Duration) {
    let per_s = count as f64 / time.as_secs_f64();
    eprintln!("{what}: {count} in {:.2} s, {per_s:.0} per second", time.as_secs_f64());
}
