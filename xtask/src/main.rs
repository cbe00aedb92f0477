//! `cargo xtask`: the chores of this repository.
//!
//! Purpose: one place for what a developer and the continuous integration run, so that both run the
//! same thing.
//! Invariant: nothing here is part of the program; no crate depends on it.
//! It does not measure anything itself: the benchmarks drive `iostrata` and fio as programs.
#![allow(clippy::print_stdout, reason = "a chore prints what it does")]
#![cfg_attr(not(feature = "bench"), allow(dead_code, reason = "what only benchmarks use"))]

mod args;
#[cfg(feature = "bench")]
mod bench;
mod check;
mod gallery;
mod servers;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::test::reaper;

const HELP: &str = "\
cargo xtask <chore>

  check [--changed [BASE]]
                      format, lints, tidy and the unit tests: before every commit; with --changed
                      the unit tests that can see the change
  test [--install] [--package NAME | --changed [BASE]]
                      the whole suite, the tests of one package, or those that can see what differs
                      from BASE (where main was left, if none is named); --install adds missing
                      Debian packages (needs root) and fetches a MySQL server
  soak [--install]    the whole suite with the long forms of its tests
  tidy                the rules of the house that the compiler does not know
  bench null          cost of one operation: iostrata against fio, null engine
  bench disk          IOPS and overhead: emulated disks against their models in virtual time
  bench parity        IOPS and CPU per I/O on a disk: iostrata against fio
  bench peers         the embedded engine against redb, fjall, SQLite and RocksDB
  bench sysbench      rate and CPU of OLTP workloads on a private MariaDB: iostrata against
                      sysbench
  bench tpcc          TPC-C on the embedded engine, on SQLite and RocksDB, and on a private
                      MariaDB in its own words and in sysbench-tpcc's
  bench suite         the suite, and which of its tests are new or slower than the kept times;
                      --keep keeps the new ones
  bench tune          private servers whose redo runs out, with iostrata tune and without
  gallery [RUN ...]   keeps runs of studies for the gallery and makes its entries and pictures from
                      those that are kept
  servers install | start | stop | list | programs --dir DIR [--port N] [--only NAME]
                      five servers of MySQL and MariaDB to test on; list prints what
                      IOSTRATA_TEST_SERVERS takes, programs what IOSTRATA_TEST_PROGRAMS does

Options of bench: --pairs N, --runtime SECONDS; of parity also --dir DIR, --size SIZE;
of disk --runtime SECONDS, --disks LIST (in quotes, by blanks); of peers see bench peers --help;
of sysbench --members LIST, --threads LIST, --table-size N, --dir DIR, --program FILE (instead of
the release build);
of tpcc --rounds N, --seconds N (of a window), --threads LIST (tried by each side, for
--step-seconds N each), --warehouses N, --sides LIST, --dir DIR, --json;
of tune --scenario LIST, --server LIST, --side LIST (untuned, tuned, fixed), --rounds N,
--warm-up N, --seconds N, --keep DIR (ended runs, which are not measured again), --table (of what
is kept, nothing is measured), --svg FILE, --dir DIR, --tune WORDS (for the tuner),
--program FILE (instead of the release build), --json.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        Some((first, rest)) if first == reaper::WORD => reaper::run(rest).map(ExitCode::from),
        _ => run(words).map(|is_fine| ExitCode::from(u8::from(!is_fine))),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}

/// Runs this program again, built with the benchmarks: what they need is not built for the chores
/// of every day.
#[cfg(not(feature = "bench"))]
fn with_benchmarks(args: Args) -> Result<bool> {
    let mut cargo = workspace::cargo(&workspace::root());
    cargo.args(["run", "--quiet", "--package", "xtask", "--", "bench"]).args(args.rest());
    Ok(cargo.status()?.success())
}

/// Runs one chore; false when what it judges is not in order.
fn run(words: Vec<String>) -> Result<bool> {
    let mut args = Args::new(words);
    match args.word().as_deref() {
        Some("check") => check::run(args),
        Some("test") => test::run(args, test::Length::of_environment()),
        Some("soak") => test::run(args, test::Length::Soak),
        Some("tidy") => args.finish().and_then(|()| tidy::run()),
        #[cfg(feature = "bench")]
        Some("bench") => bench::run(args),
        #[cfg(not(feature = "bench"))]
        Some("bench") => with_benchmarks(args),
        Some("gallery") => gallery::run(args),
        Some("servers") => servers::run(args),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(true)
        }
        Some(other) => bail!("no chore is named {other}\n\n{HELP}"),
        None => bail!("name a chore\n\n{HELP}"),
    }
}
