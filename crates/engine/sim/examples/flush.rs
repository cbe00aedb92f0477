//! Prints what an hour under each policy comes to, and the time that simulating it takes.
//!
//! `cargo run --release -p iostrata-sim --example flush -- 1500 1G`

#![allow(clippy::print_stdout)]

use std::time::Instant;

use iostrata_innodb::{PolicyName, Settings};
use iostrata_sim::flush::{Demand, FlushDevice, FlushLoad, FlushPlan, PageAccess, run};
use iostrata_stats::stability;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| words.get(at).map_or(default.to_owned(), Clone::clone);
    let (limit, disk) = (word(0, "1500").parse::<f64>()?, word(2, "nvme").parse()?);
    let users = word(3, "32").parse()?;
    let mut settings = Settings::default();
    let given = [("redo_log_capacity", word(1, "1G")), ("buffer_pool_size", "12G".to_owned())];
    for (name, value) in given {
        settings.set(name, &value)?;
    }
    settings.set("io_capacity", &word(4, "200"))?;
    settings.set("io_capacity_max", &word(5, "2000"))?;
    let load = FlushLoad {
        demand: Demand::Users(users),
        pages_per_txn: word(7, "6").parse()?,
        redo_bytes_per_txn: 5000.0,
        data_bytes: word(6, "8192").parse::<u64>()? << 20,
        access: PageAccess::Zipf(word(8, "0.9").parse()?),
        cpu_us_per_txn: 500.0,
        processors: 4,
    };
    let sizes = (u64::from(settings.page_size), load.data_bytes);
    let limit = (limit > 0.0).then_some(limit);
    let device = FlushDevice::new(&disk, None, limit, sizes, 1)?;
    for &name in PolicyName::ALL {
        let settings = Settings { policy: name, ..settings.clone() };
        let (device, changes) = (device.clone(), Vec::new());
        let plan = FlushPlan { settings, device, load, changes, span_s: 3600.0, seed: 1 };
        let begun = Instant::now();
        let outcome = run(&plan)?;
        let took = begun.elapsed();
        let tps: Vec<f64> = outcome.seconds.iter().skip(360).map(|one| one.commits).collect();
        let mean = tps.iter().sum::<f64>() / tps.len() as f64;
        let even = stability(&tps, 1.0);
        let waits = outcome.commit_waits.summary();
        println!(
            "{:24} tps {mean:8.1} worst {:.3} below half {:5.0} s furious {:5} p99.9 {:9.1} ms \
             pages/txn {:.2} age {:.2} of {:.2} redo {:.1} MB/s stopped {:.3} in {took:.2?}",
            name.word(),
            even.map_or(0.0, |even| even.min_over_mean_1s),
            even.map_or(0.0, |even| even.longest_below_half_s),
            outcome.furious_flushes,
            waits.map_or(0.0, |waits| waits.p99_9 / 1e3),
            outcome.written_pages / outcome.seconds.iter().map(|one| one.commits).sum::<f64>(),
            outcome.age_max as f64 / outcome.capacity as f64,
            outcome.wall_age as f64 / outcome.capacity as f64,
            outcome.redo_bytes / 3.6e9,
            outcome.stopped_share,
        );
    }
    Ok(())
}
