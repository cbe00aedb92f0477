//! What is simulated: the redo, the load, the device.

use iostrata_innodb::flush::FlushSettings;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub capacity: u64,
    pub threads: usize,
    /// Redo of one transaction, in bytes.
    pub redo_bytes: u64,
    /// Pages that one transaction dirties.
    pub touches: usize,
    /// Pages there are; three quarters of the touches go to a tenth of them.
    pub population: u64,
    pub frames: u64,
    pub device_pages_per_s: f64,
    /// Time of a batch apart from its pages: syncs and the checkpoint.
    pub batch_us: u64,
    pub bucket_bytes: u64,
    /// One touch in so many takes a free frame; 0 for none.
    pub misses: u64,
    pub settings: FlushSettings,
    pub seed: u64,
}

impl Plan {
    /// A load on a redo of this capacity that fills it in `fill_s` and needs a third of the device.
    pub fn on(capacity: u64, fill_s: f64) -> Plan {
        let redo_bytes = (capacity / 4000).clamp(160, 64 << 10);
        let txns_per_s = capacity as f64 / fill_s / redo_bytes as f64;
        let population = (capacity / 4096 / 2).clamp(40, 40_000);
        Plan {
            capacity,
            threads: 4,
            redo_bytes,
            touches: 4,
            population,
            frames: population * 2,
            device_pages_per_s: (txns_per_s * 4.0).max(100.0),
            batch_us: 300,
            bucket_bytes: (capacity / 256).max(4096),
            misses: 0,
            settings: FlushSettings::default(),
            seed: 1,
        }
    }
}
