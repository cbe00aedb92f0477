//! `cargo xtask bench`: iostrata beside fio and sysbench, emulated disks beside their models, and
//! the embedded engine beside its peers, as pairs on the same machine in the same minutes; a server
//! tuned and untuned; and whether intervals hold what they should.
//!
//! Purpose: show that the meter costs less than what it measures, and that it measures the same.
//! Invariant: the two sides alternate (A B B A ...), so that a drift of the machine cancels within
//! pairs; a difference is stated only with its 95 % interval.
//! It judges no machine: it prints and returns success when every run could be made.

mod coverage;
mod disk;
mod fio;
mod iostrata;
mod null;
mod pairs;
mod parity;
mod peers;
mod repeat;
mod suite;
mod sysbench;
mod tpcc;
mod tpcc_table;
mod tune;

use anyhow::{Result, bail};

use crate::args::Args;

/// Runs the benchmark that is named.
///
/// # Errors
/// When it is unknown, or fio or iostrata fails.
pub fn run(mut args: Args) -> Result<bool> {
    match args.word().as_deref() {
        Some("coverage") => coverage::run(args)?,
        Some("disk") => disk::run(args)?,
        Some("null") => null::run(args)?,
        Some("parity") => parity::run(args)?,
        Some("peers") => peers::run(args)?,
        Some("repeat") => repeat::run(args)?,
        Some("suite") => suite::run(args)?,
        Some("sysbench") => sysbench::run(args)?,
        Some("tpcc") => tpcc::run(args)?,
        Some("tune") => tune::run(args)?,
        Some(other) => {
            bail!(
                "no benchmark is named {other}; there are coverage, disk, null, parity, peers, \
                 repeat, suite, sysbench, tpcc and tune"
            )
        }
        None => bail!(
            "name a benchmark: coverage, disk, null, parity, peers, repeat, suite, sysbench, tpcc \
             or tune"
        ),
    }
    Ok(true)
}
