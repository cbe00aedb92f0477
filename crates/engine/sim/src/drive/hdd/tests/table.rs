//! Figures for the documentation: `IOSTRATA_SOAK=1 cargo test -p iostrata-sim table --
//! --nocapture`.

use super::super::{HDD_7K2, HDD_10K, HDD_15K};
use super::*;

#[test]
fn iops_of_every_disk() {
    if std::env::var_os("IOSTRATA_SOAK").is_none() {
        eprintln!("skipped: the table of figures is printed with IOSTRATA_SOAK=1");
        return;
    }
    eprintln!("disk, queue, write cache: random 4 KiB reads at depth 1 8 32 128, writes the same");
    for base in [HDD_7K2, HDD_10K, HDD_15K] {
        for queue_depth in [1, 32, 128] {
            for write_cache in [false, true] {
                let parameters = HddParameters { queue_depth, write_cache, ..base };
                let reads = [1, 8, 32, 128].map(Load::random_read);
                let writes = [1, 8, 32, 128].map(Load::random_write);
                let row: Vec<String> = reads
                    .iter()
                    .chain(&writes)
                    .map(|load| format!("{:5.0}", outcome(parameters, load, 100.0).iops.value))
                    .collect();
                eprintln!("{} {queue_depth:3} {write_cache:5} {}", base.name, row.join(" "));
            }
        }
    }
}
