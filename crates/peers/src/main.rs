//! `iostrata-peers`: prints how the embedded engine compares with redb, fjall, SQLite and RocksDB.
#![allow(clippy::print_stdout, reason = "a program prints its tables")]

mod options;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Parser;
use iostrata_peers::bench::Bench;
use iostrata_peers::emulated::Disk;
use iostrata_peers::figures::Table;
use iostrata_peers::orders::figures::{OrdersTable, SoakTable};
use iostrata_peers::orders::{self, OrdersBench};
use iostrata_peers::plan::Choice;
use iostrata_peers::recovery::{self, RecoveryTable};
use iostrata_peers::scratch::Scratch;
use iostrata_peers::table;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use options::{Command, Options, TpccOptions};

/// One entry of the JSON document.
#[derive(Serialize)]
#[serde(untagged)]
enum DocumentEntry {
    Compared(Table),
    Recovery(RecoveryTable),
    Orders(OrdersTable),
    Soak(Box<SoakTable>),
}

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
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("cannot listen for signals")?;
    }
    if let Some(Command::Tpcc(options)) = &options.command {
        return tpcc(options, &stop);
    }
    let choice = options.choice()?;
    let scratch = Scratch::make(&options.dir)?;
    let entries = match &options.emulated {
        None => measure(options, &choice, &scratch, &stop)?,
        Some(model) => {
            let disk = Disk::start(&options.iostrata, model, scratch.sub("disk")?)?;
            let entries = Scratch::make(disk.dir())
                .map_err(Into::into)
                .and_then(|scratch| measure(options, &choice, &scratch, &stop));
            let ended = disk.end();
            let entries = entries?;
            ended?;
            entries
        }
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&entries)?);
    }
    Ok(())
}

/// Runs TPC-C on one peer, whose files stay.
fn tpcc(options: &TpccOptions, stop: &AtomicBool) -> Result<()> {
    let target = iostrata_peers::tpcc::open(options.engine, &options.dir)?;
    let document = iostrata_peers::tpcc::run(&*target, &options.plan(), stop)?;
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}

/// Runs all that was chosen in this directory, and prints each table when it is there.
fn measure(
    options: &Options,
    choice: &Choice,
    scratch: &Scratch,
    stop: &AtomicBool,
) -> Result<Vec<DocumentEntry>> {
    let is_direct = scratch.is_direct_possible();
    let mut note = |line: &str| eprintln!("{line}");
    let print = |text: String| {
        if !options.json {
            println!("{text}");
        }
    };
    let mut entries = Vec::new();
    for mut plan in choice.plans() {
        plan.is_direct &= is_direct;
        let engines = choice.engines_of(plan.workload);
        let mut bench = Bench { scratch, engines: &engines, stop, note: &mut note };
        let mut found = bench.run(&plan)?;
        found.disk.clone_from(&options.emulated);
        if entries.is_empty() {
            print(format!("engines: {}\n", table::versions(&found)));
        }
        print(table::text(&found));
        entries.push(DocumentEntry::Compared(found));
    }
    if let Some(plan) = choice.recovery()
        && let Some(mut found) = recovery::run(plan, scratch, stop, &mut note)?
    {
        found.disk.clone_from(&options.emulated);
        print(recovery::text(&found));
        entries.push(DocumentEntry::Recovery(found));
    }
    let plan = choice.orders();
    let mut bench = OrdersBench { plan, scratch, stop, note: &mut note };
    if choice.is_ordering {
        let mut found = bench.run(&choice.engines)?;
        found.disk.clone_from(&options.emulated);
        print(orders::text::text(&found));
        entries.push(DocumentEntry::Orders(found));
    }
    if let Some(length) = plan.soak {
        let mut found = bench.soak(length)?;
        found.disk.clone_from(&options.emulated);
        print(orders::text::soak(&found));
        entries.push(DocumentEntry::Soak(Box::new(found)));
    }
    Ok(entries)
}
