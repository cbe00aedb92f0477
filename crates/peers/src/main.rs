//! `iostrata-peers`: prints how the embedded engine compares with redb, fjall, SQLite and RocksDB.
#![allow(clippy::print_stdout, reason = "a program prints its tables")]

mod options;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Parser;
use iostrata_peers::bench::Bench;
use iostrata_peers::figures::Table;
use iostrata_peers::scratch::Scratch;
use iostrata_peers::table;
use signal_hook::consts::{SIGINT, SIGTERM};

use options::Options;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iostrata-peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what was asked for; the second signal ends at once.
fn run(options: &Options) -> Result<()> {
    let choice = options.choice()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("cannot listen for signals")?;
    }
    let scratch = Scratch::make(&options.dir)?;
    let is_direct = scratch.is_direct_possible();
    let mut tables: Vec<Table> = Vec::new();
    for mut plan in choice.plans() {
        plan.is_direct &= is_direct;
        let mut note = |line: &str| eprintln!("{line}");
        let mut bench =
            Bench { scratch: &scratch, engines: &choice.engines, stop: &stop, note: &mut note };
        let found = bench.run(&plan)?;
        if !options.json {
            if tables.is_empty() {
                println!("engines: {}\n", table::versions(&found));
            }
            println!("{}", table::text(&found));
        }
        tables.push(found);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&tables)?);
    }
    Ok(())
}
