//! How two threads compare with one here: point reads and settled updates, beside arithmetic and
//! dependent loads from memory, which tell what the machine itself gives at that moment.
//!
//! `cargo run --release -p iostrata-engine --example scaling -- DIR [ROUNDS]`
//! Windows of all kinds take turns. A round counts when two threads did at least 1.9 times the
//! arithmetic and 1.9 times the loads of one in it; the medians of those rounds are printed, with
//! their quartiles.

use std::collections::VecDeque;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iostrata_engine::{Engine, EngineError, Isolation, Table};

const WINDOW: Duration = Duration::from_millis(150);
const ROWS: u64 = 1_000_000;
/// 256 MiB: more than any processor caches.
const MEMORY_WORDS: usize = 32 << 20;
/// Commits of a thread that wait to become durable; with few of them the disk sets the rate.
const UNSETTLED: usize = 128;
/// What the machine has to give for a round to count.
const OWN_SCALING: f64 = 1.9;

type Failure = Box<dyn std::error::Error + Send + Sync>;
/// Works until it is told to stop; gives how much it did.
type Work<'a> = dyn Fn(&AtomicBool, u64) -> Result<u64, Failure> + Sync + 'a;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!("say where: scaling DIR [ROUNDS]");
        std::process::exit(2);
    };
    let rounds: usize = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(20);
    let mut settings = Engine::server_settings();
    settings.set("buffer_pool_size", "512M")?;
    let engine = Engine::open(&directory, settings)?;
    let table = engine.create_table("rows")?;
    table.bulk_load((0..ROWS).map(|row: u64| (row.to_be_bytes(), [row as u8; 100])))?;

    let memory: Vec<u64> = (0..MEMORY_WORDS as u64).collect();
    let arithmetic = |stop: &AtomicBool, seed| Ok(arithmetic(stop, seed));
    let loads = |stop: &AtomicBool, seed| Ok(loads(&memory, stop, seed));
    let reads = |stop: &AtomicBool, seed| Ok(reads(&table, stop, seed)?);
    let updates = |stop: &AtomicBool, seed| updates(&engine, &table, stop, seed);
    let kinds: [(&str, &Work<'_>); 4] = [
        ("arithmetic", &arithmetic),
        ("memory loads", &loads),
        ("point reads", &reads),
        ("settled updates", &updates),
    ];
    let mut measured = vec![Vec::new(); kinds.len()];
    for _ in 0..rounds {
        let rates = kinds.iter().map(|(_, work)| Ok((rate(*work, 1)?, rate(*work, 2)?)));
        let round = rates.collect::<Result<Vec<(f64, f64)>, Failure>>()?;
        if round[..2].iter().all(|(one, two)| two / one >= OWN_SCALING) {
            measured.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
        }
    }
    eprintln!("{} of {rounds} rounds count", measured[0].len());
    for ((name, _), rates) in kinds.into_iter().zip(measured) {
        say(name, rates);
    }
    engine.close()?;
    Ok(())
}

fn say(name: &str, mut rates: Vec<(f64, f64)>) {
    if rates.is_empty() {
        return;
    }
    rates.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let at = |quarter: usize| rates[(rates.len() - 1) * quarter / 4];
    let ratio = |quarter| at(quarter).1 / at(quarter).0;
    let ((one, two), [low, middle, high]) = (at(2), [1, 2, 3].map(ratio));
    eprintln!(
        "{name:<16} {one:>12.0}/s by one, {two:>12.0}/s by two: {middle:.2} ({low:.2} to {high:.2})"
    );
}

fn rate(work: &Work<'_>, threads: u64) -> Result<f64, Failure> {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let worker = |thread| {
            let (stop, done) = (&stop, &done);
            scope.spawn(move || {
                done.fetch_add(work(stop, 77 + thread)?, Ordering::Relaxed);
                Ok::<(), Failure>(())
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        std::thread::sleep(WINDOW);
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    Ok(done.into_inner() as f64 / start.elapsed().as_secs_f64())
}

/// The next number of xorshift.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

fn arithmetic(stop: &AtomicBool, seed: u64) -> u64 {
    let (mut random, mut done) = (seed, 0);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..100 {
            black_box(next(&mut random));
        }
        done += 100;
    }
    done
}

fn loads(memory: &[u64], stop: &AtomicBool, seed: u64) -> u64 {
    let (mut random, mut done) = (seed, 0);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..100 {
            random ^= memory[next(&mut random) as usize % memory.len()];
        }
        done += 100;
    }
    black_box(random);
    done
}

fn reads(table: &Table, stop: &AtomicBool, seed: u64) -> Result<u64, EngineError> {
    let (mut random, mut done, mut value) = (seed, 0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let key = (next(&mut random) % ROWS).to_be_bytes();
        assert!(table.get_into(&key, &mut value)?, "every row is there");
        done += 1;
    }
    Ok(done)
}

fn updates(engine: &Engine, table: &Table, stop: &AtomicBool, seed: u64) -> Result<u64, Failure> {
    let (mut random, mut done) = (seed, 0);
    let mut tickets = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        let drawn = next(&mut random);
        let mut transaction = engine.begin(Isolation::RepeatableRead)?;
        transaction.put(table, &(drawn % ROWS).to_be_bytes(), &[drawn as u8; 100])?;
        tickets.push_back(transaction.commit_async()?);
        while let Some(ticket) = tickets.front() {
            if tickets.len() > UNSETTLED {
                ticket.wait()?;
            } else if !ticket.try_wait()? {
                break;
            }
            tickets.pop_front();
            done += 1;
        }
    }
    Ok(done)
}
