//! Flash behind NVMe: the parameters of an enterprise drive and of a client drive.
//!
//! The model is [`Flash`](super::flash::Flash); `docs/disks.md` has the sources and the reasoning.

use super::flash::{FlashParameters, Wear, WriteCache};

impl FlashParameters {
    /// The Intel SSD DC P4500 of 2.0 TB: capacitors keep what its cache holds.
    ///
    /// Programming follows from 1.05 GB/s of sequential writes over 48 dies:
    /// `48 * 4096 B / 1.05 GB/s - 3.5 ms / 1024`.
    pub fn p4500() -> Self {
        Self {
            queue_depth: 1023,
            dies: 48,
            read_command_ns: 2_040,
            write_command_ns: 2_040,
            read_overhead_ns: 19_680,
            write_overhead_ns: 16_680,
            read_page_ns: 62_000,
            program_page_ns: 183_830,
            erase_ns: 3_500_000,
            block_pages: 1024,
            link_read_bytes_per_s: 3_200_000_000,
            link_write_bytes_per_s: 3_200_000_000,
            cache_pages: 1024,
            cache: WriteCache::Protected,
            flush_ns: 18_000,
            through_ns: 0,
            reserve_pages: 48 * 512,
            random_write_iops: 38_000.0,
            sequential_write_bytes_per_s: 1.05e9,
            wear: Wear::Used,
        }
    }

    /// The Samsung 970 EVO Plus of 1 TB: nothing keeps what its cache holds.
    ///
    /// The reserve is its TurboWrite region of 42 GB, written as single-level cells:
    /// `32 * 4096 B / 3.3 GB/s` a page.
    pub fn evo_970_plus() -> Self {
        Self {
            queue_depth: 1023,
            dies: 32,
            read_command_ns: 1_660,
            write_command_ns: 1_810,
            read_overhead_ns: 8_800,
            write_overhead_ns: 13_690,
            read_page_ns: 41_000,
            program_page_ns: 39_720,
            erase_ns: 3_500_000,
            block_pages: 1024,
            link_read_bytes_per_s: 3_500_000_000,
            link_write_bytes_per_s: 3_500_000_000,
            cache_pages: 4096,
            cache: WriteCache::Volatile,
            flush_ns: 1_000_000,
            through_ns: 1_000_000,
            reserve_pages: 42_000_000_000 / 4096,
            random_write_iops: 40_000.0,
            sequential_write_bytes_per_s: 1.7e9,
            wear: Wear::Used,
        }
    }
}
