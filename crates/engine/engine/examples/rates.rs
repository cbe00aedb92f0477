//! What the engine does per second here: point reads, scans, batches of one and of ten rows, and
//! durable commits of several threads. On tmpfs a sync costs nothing.
//!
//! `cargo run --release -p iostrata-engine --example rates -- DIR [ROWS] [NAME=VALUE]...`
//! `rates DIR [ROWS] [NAME=VALUE]... against=OTHER [rounds=N] [only=TEXT]`
//! The figures of one run have no intervals: they are a first look. To compare two builds, keep the
//! other one's `rates` and name it: short windows of both take turns, and the medians of their
//! ratios are printed with their quartiles.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use iostrata_engine::{Direction, Engine, Isolation, Settings, Table};

/// How long one window is.
const WINDOW: Duration = Duration::from_millis(100);
/// A window is repeated, but not more often, when others had more of the machine.
const OTHERS_TICKS: i64 = 1;
const WINDOWS_MAX: u32 = 20;
const VALUE_BYTES: usize = 100;
/// Rows of a wide batch.
const WIDE: u64 = 10;

/// What a work comes to.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[allow(dead_code)] // in the test
fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!(
            "say where: rates DIR [ROWS] [NAME=VALUE]... [against=OTHER [rounds=N] [only=TEXT]]"
        );
        std::process::exit(2);
    };
    let (mut rows, mut other, mut rounds, mut takes_turns) = (1_000_000, None, 20, false);
    let mut settings = Engine::server_settings();
    settings.set("buffer_pool_size", "512M")?;
    let (mut kept, mut only) = (Vec::new(), String::new());
    for word in arguments {
        match word.split_once('=') {
            None if word == "turns" => takes_turns = true,
            Some(("against", path)) => other = Some(PathBuf::from(path)),
            Some(("only", text)) => only = text.to_owned(),
            Some(("rounds", number)) => rounds = number.parse()?,
            setting => {
                match setting {
                    None => rows = word.parse()?,
                    Some((name, value)) => settings.set(name, value)?,
                }
                kept.push(word);
            }
        }
    }
    if let Some(other) = other {
        let this = std::env::current_exe()?;
        let programs = [other.as_path(), this.as_path()];
        return compare(&directory, &kept, programs, (rounds, &only)).map(drop);
    }
    let bench = Bench::open(&directory, rows, settings, WINDOW)?;
    if takes_turns {
        bench.take_turns(stdin().lock(), stdout().lock())?;
    } else {
        for (work, name) in WORKS.iter().enumerate() {
            eprintln!("{name:<30} {:>12.0} per second", bench.window(work)?);
        }
    }
    Ok(bench.engine.close()?)
}

/// A build that waits for its turn.
struct Build {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Build {
    fn start(program: &Path, place: &Path, words: &[String]) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.arg(place).arg("turns").args(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("a build has no output")?);
        Ok(Self { child, answers })
    }

    fn turn(&mut self, work: usize) -> Outcome<f64> {
        let words = self.child.stdin.as_mut().ok_or("a build has no input")?;
        writeln!(words, "{work}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim().parse()?)
    }

    fn end(mut self) -> Outcome<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

/// Lets windows of two builds take turns, each beginning as often as the other. Gives the median of
/// the ratios for each work that was chosen.
pub fn compare(
    directory: &Path,
    words: &[String],
    programs: [&Path; 2],
    (rounds, only): (usize, &str),
) -> Outcome<Vec<f64>> {
    let places = ["other", "this"].map(|name| directory.join(name));
    std::fs::create_dir_all(directory)?;
    let mut other = Build::start(programs[0], &places[0], words)?;
    let mut this = Build::start(programs[1], &places[1], words)?;
    let mut rates = vec![Vec::new(); WORKS.len()];
    for round in 0..rounds {
        let chosen = rates.iter_mut().enumerate().filter(|(work, _)| WORKS[*work].contains(only));
        for (work, found) in chosen {
            if round % 2 == 0 {
                let before = other.turn(work)?;
                found.push((before, this.turn(work)?));
            } else {
                let after = this.turn(work)?;
                found.push((other.turn(work)?, after));
            }
        }
    }
    other.end()?;
    this.end()?;
    places.iter().try_for_each(std::fs::remove_dir_all)?;
    eprintln!("{:<30} {:>10} {:>10}  ratio (quartiles)", "per second", "other", "this");
    let mut ratios = Vec::new();
    for (name, found) in WORKS.iter().zip(&rates).filter(|(_, found)| !found.is_empty()) {
        let [low, ratio, high] = [1, 2, 3].map(|at| quartile(found, at, |(a, b)| b / a));
        let [other, this] = [quartile(found, 2, |one| one.0), quartile(found, 2, |one| one.1)];
        eprintln!("{name:<30} {other:>10.0} {this:>10.0}  {ratio:.3} ({low:.3} to {high:.3})");
        ratios.push(ratio);
    }
    Ok(ratios)
}

fn quartile(of: &[(f64, f64)], at: usize, value: impl Fn((f64, f64)) -> f64) -> f64 {
    let mut all: Vec<f64> = of.iter().map(|one| value(*one)).collect();
    all.sort_by(f64::total_cmp);
    all[(all.len() - 1) * at / 4]
}

/// The names of the works.
pub const WORKS: [&str; 13] = [
    "random point reads",
    "point reads of one row",
    "rows of a scan",
    "batches of 1 random row",
    "batches of 10 random rows",
    "batches of 10 neighbours",
    "modifying transactions",
    "durable commits, 1 thread",
    "durable commits, 2 threads",
    "durable commits, 4 threads",
    "durable commits, 8 threads",
    "durable commits, 16 threads",
    "point reads, 2 threads",
];

/// A table of sorted rows.
pub struct Bench {
    /// The engine that works.
    pub engine: Engine,
    table: Table,
    rows: u64,
    seeds: AtomicU64,
    lasts: Duration,
}

impl Bench {
    /// Makes it, for windows that last so long.
    pub fn open(directory: &Path, rows: u64, settings: Settings, lasts: Duration) -> Outcome<Self> {
        let engine = Engine::open(directory, settings)?;
        let table = engine.create_table("rates")?;
        table.bulk_load((0..rows).map(|row: u64| (row.to_be_bytes(), [row as u8; VALUE_BYTES])))?;
        Ok(Self { engine, table, rows, seeds: AtomicU64::new(1), lasts })
    }

    /// Prints the rate of one window for each line that is read.
    pub fn take_turns(&self, asked: impl BufRead, mut answers: impl Write) -> Outcome<()> {
        for line in asked.lines() {
            writeln!(answers, "{}", self.undisturbed_window(line?.parse()?)?)?;
            answers.flush()?;
        }
        Ok(())
    }

    /// As [`Bench::window`], again and again while others have a part of the machine.
    fn undisturbed_window(&self, work: usize) -> Outcome<f64> {
        for _ in 0..WINDOWS_MAX {
            let before = others_ticks()?;
            let rate = self.window(work)?;
            if others_ticks()? - before <= OTHERS_TICKS {
                return Ok(rate);
            }
        }
        eprintln!("others had a part of the machine all the time: {}", WORKS[work]);
        self.window(work)
    }

    /// One window of one of the works; gives its rate per second.
    pub fn window(&self, work: usize) -> Outcome<f64> {
        match work {
            0 => self.reads(self.rows),
            1 => self.reads(1),
            2 => self.scan(),
            3 => self.batches(1, false),
            4 => self.batches(WIDE, false),
            5 => self.batches(WIDE, true),
            6 => self.transactions(),
            12 => side_by_side(2, || self.reads(self.rows)),
            _ => self.commits(1 << (work - 7)),
        }
    }

    /// Another one for each window and thread.
    fn seed(&self) -> u64 {
        self.seeds.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn reads(&self, among: u64) -> Outcome<f64> {
        let (mut random, mut value) = (self.seed(), Vec::new());
        self.rate(500, || {
            let key = (next(&mut random) % among).to_be_bytes();
            black_box(self.table.get_into(&key, &mut value)?);
            Ok(())
        })
    }

    fn scan(&self) -> Outcome<f64> {
        let mut cursor = self.table.cursor(.., Direction::Forward);
        self.rate(5000, || {
            if cursor.next_row()?.is_none() {
                cursor = self.table.cursor(.., Direction::Forward);
            }
            Ok(())
        })
    }

    /// Batches of some rows, neighbours or anywhere; they are settled together.
    fn batches(&self, rows_of_one: u64, are_neighbours: bool) -> Outcome<f64> {
        let (mut random, mut last) = (self.seed(), None);
        let rate = self.rate(50, || {
            let first = next(&mut random) % (self.rows - rows_of_one);
            let mut batch = self.engine.batch();
            for row in 0..rows_of_one {
                let drawn = next(&mut random);
                let key = if are_neighbours { first + row } else { drawn % self.rows };
                batch.put(&self.table, &key.to_be_bytes(), &[drawn as u8; VALUE_BYTES])?;
            }
            last = Some(batch.commit_async()?);
            Ok(())
        });
        last.map_or(Ok(()), |ticket| ticket.wait())?;
        rate
    }

    fn transactions(&self) -> Outcome<f64> {
        let (mut random, mut last) = (self.seed(), None);
        let rate = self.rate(50, || {
            let key = (next(&mut random) % self.rows).to_be_bytes();
            let mut transaction = self.engine.begin(Isolation::RepeatableRead)?;
            transaction.modify(&self.table, &key, |value| value[0] = value[0].wrapping_add(1))?;
            last = Some(transaction.commit_async()?);
            Ok(())
        });
        last.map_or(Ok(()), |ticket| ticket.wait())?;
        rate
    }

    /// Commits of several threads, each of which waits until its own is durable.
    fn commits(&self, threads: u64) -> Outcome<f64> {
        let worker = || {
            let mut random = self.seed();
            self.rate(1, || {
                let drawn = next(&mut random);
                let mut batch = self.engine.batch();
                let key = (drawn % self.rows).to_be_bytes();
                batch.put(&self.table, &key, &[drawn as u8; VALUE_BYTES])?;
                Ok(batch.commit()?)
            })
        };
        side_by_side(threads, worker)
    }

    /// How often something is done per second, with `at_once` calls between two readings of the
    /// clock.
    fn rate(&self, at_once: u64, mut once: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < self.lasts {
            (0..at_once).try_for_each(|_| once())?;
            done += at_once;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }
}

/// The rates of several threads together.
fn side_by_side(threads: u64, worker: impl Fn() -> Outcome<f64> + Sync) -> Outcome<f64> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(&worker)).collect();
        workers.into_iter().map(|one| one.join().map_err(|_| "a panic")?).sum()
    })
}

/// Hundredths of a second for which processors worked for other processes than this one.
fn others_ticks() -> Outcome<i64> {
    let numbers = |text: &str| -> Vec<i64> {
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let all = std::fs::read_to_string("/proc/stat")?;
    let all = numbers(all.lines().next().ok_or("/proc/stat is empty")?);
    let own = std::fs::read_to_string("/proc/self/stat")?;
    let own = numbers(own.rsplit_once(')').ok_or("/proc/self/stat has no name")?.1);
    // user, nice, system and, behind idle and iowait, interrupts and what the host took; utime and
    // stime are the tenth and eleventh numbers behind the state.
    let busy: i64 = all[..3].iter().chain(&all[5..8]).sum();
    Ok(busy - own[10] - own[11])
}

/// The next number of xorshift.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}
