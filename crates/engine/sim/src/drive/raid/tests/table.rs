//! Figures for the documentation.

use super::*;

/// Figures for the documentation: `IOSTRATA_SOAK=1 cargo test -p iostrata-sim iops_of_every --
/// --nocapture`.
#[test]
fn iops_of_every_array() {
    if std::env::var_os("IOSTRATA_SOAK").is_none() {
        eprintln!("skipped: the table of figures is printed with IOSTRATA_SOAK=1");
        return;
    }
    let row = |drive: &dyn Fn() -> Box<dyn Drive>, warm_up_s: f64| {
        let reads = [1, 8, 32, 128].map(Load::random_read);
        let writes = [1, 8, 32, 128].map(Load::random_write);
        let all = reads.iter().map(|load| (load, 1.0));
        let all = all.chain(writes.iter().map(|load| (load, warm_up_s)));
        let found = all.map(|(load, warm_up_s)| {
            format!("{:6.0}", outcome(&mut *drive(), load, warm_up_s, 20.0).iops.value)
        });
        found.collect::<Vec<_>>().join(" ")
    };
    eprintln!("array: random 4 KiB reads at depth 1 8 32 128, writes the same");
    for queue_depth in [1, 32, 128] {
        let mut parameters = RAID1_15K;
        parameters.disk.queue_depth = queue_depth;
        let cached = row(&|| Box::new(plain(parameters)), 5.0);
        parameters.disk.write_cache = false;
        let through = row(&|| Box::new(plain(parameters)), 5.0);
        eprintln!("RAID 1, queue {queue_depth}, cache on:  {cached}");
        eprintln!("RAID 1, queue {queue_depth}, cache off: {through}");
        for spindles in [2, 8] {
            let parameters = RaidParameters { spindles, ..parameters };
            let found = row(&|| Box::new(protected(parameters, BATTERY_512M)), 100.0);
            eprintln!("RAID 10 of {spindles}, queue {queue_depth}, battery: {found}");
        }
    }
}
