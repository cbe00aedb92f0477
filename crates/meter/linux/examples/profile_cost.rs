//! What a profile costs: random direct writes of 4 KiB with and without the profiler.
//!
//! `cargo run --release -p iostrata-linux --example profile_cost -- ARGUMENTS`, which are
//! `DIR PAIRS THREADS MS [off-cpu]`.
//!
//! Windows of MS milliseconds (1000) alternate (without, with, with, without ...). The profiler is
//! open all the time and records only in its own windows. The ratio of each pair counts, so that a
//! drift of the device cancels. With `off-cpu` the waits are traced too. Run it on an idle machine;
//! on a busy one `nice -n -20` narrows the interval.
#![allow(clippy::unwrap_used, reason = "the work is shared with the tests")]

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use iostrata_linux::profile::{ProfileOptions, Profiler};
use iostrata_stats::paired;

#[path = "../tests/it/profile/work.rs"]
mod work;

const TARGET_PCT: f64 = 2.0;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let pairs: usize = arguments.get(1).map_or(Ok(24), |text| text.parse())?;
    let threads: u64 = arguments.get(2).map_or(Ok(16), |text| text.parse())?;
    let window = Duration::from_millis(arguments.get(3).map_or(Ok(1000), |text| text.parse())?);
    let off_cpu = arguments.get(4).is_some_and(|text| text == "off-cpu");
    let dir = tempfile::tempdir_in(dir)?;
    let file = work::prefilled(&dir.path().join("file"))?;
    let mut profiler = Profiler::open(&ProfileOptions { off_cpu, ..ProfileOptions::default() })?;
    work::write_randomly(&file, threads, window);
    let (mut without, mut with, mut samples, mut lost) = (Vec::new(), Vec::new(), 0, 0);
    for pair in 0..pairs {
        for second in [false, true] {
            if second == (pair % 2 == 0) {
                profiler.start()?;
                with.push(work::write_randomly(&file, threads, window));
                profiler.stop()?;
                let profile = profiler.take()?;
                samples += profile.samples;
                lost += profile.lost + profile.off_cpu.map_or(0, |waits| waits.lost);
            } else {
                without.push(work::write_randomly(&file, threads, window));
            }
        }
    }
    let found = paired(&without, &with)?;
    let change = found.change_pct();
    let [low, high] = change.ci95.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let is_small = found.differs_by_less_than(TARGET_PCT);
    write!(
        std::io::stdout(),
        "threads {threads}, pairs {pairs}, window {window:?}, waits traced: {off_cpu}\n\
         writes/s without {:.0}, with {:.0}\n\
         change {:+.2} % (95 % interval {low:+.2} to {high:+.2})\n\
         samples {samples}, lost {lost}\n\
         known to change it by less than {TARGET_PCT} %: {is_small}\n",
        mean(&without),
        mean(&with),
        change.value,
    )?;
    Ok(())
}
