//! Disks, block queues and page caches in virtual time.
//!
//! Purpose: what a device with given parameters would do with given requests, in a fraction of the
//! time that the device would take. [`emudisk`] serves the same models in real time.
//! Invariant: pure and seeded but for [`emudisk`], which nothing else here uses: no clock, no file,
//! no thread; the same calls give the same moments. It names no workload of a database and prints
//! nothing.

pub mod bench;
pub mod cache;
pub mod drive;
pub mod emudisk;
pub mod flush;
pub mod insert;
pub mod iostat;
pub mod model;
pub mod queue;

/// How many cases of a property are tried, in the usual form of the tests and in the long one.
#[cfg(test)]
fn cases(usual: u32, long: u32) -> proptest::test_runner::Config {
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some();
    proptest::test_runner::Config::with_cases(if is_long { long } else { usual })
}
