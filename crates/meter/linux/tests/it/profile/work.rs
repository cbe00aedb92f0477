//! Work to be profiled: threads that write to one file, past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 4096;
/// O_DIRECT, as this architecture defines it.
const DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;

#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// A file of 16 MiB with every block written.
pub fn prefilled(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    for block in 0..BLOCKS {
        file.write_all_at(&[0x5a; BLOCK_BYTES], block * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;
    OpenOptions::new().read(true).write(true).custom_flags(DIRECT).open(path)
}

/// Writes random blocks of 4 KiB from so many threads for a while, and returns how many per second.
/// The time is taken, not assumed: on a busy machine a sleep ends late.
pub fn write_randomly(file: &File, threads: u64, time: Duration) -> f64 {
    let (is_over, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    let ready = Barrier::new(threads as usize + 1);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (is_over, writes, ready) = (&is_over, &writes, &ready);
            scope.spawn(move || {
                let block = Block([thread as u8; BLOCK_BYTES]);
                let mut state = thread * 2 + 1;
                ready.wait();
                while !is_over.load(Ordering::Relaxed) {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = (state >> 33) % BLOCKS * BLOCK_BYTES as u64;
                    file.write_all_at(&block.0, at).unwrap();
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        ready.wait();
        let (start, before) = (Instant::now(), writes.load(Ordering::Relaxed));
        std::thread::sleep(time);
        let (seconds, after) = (start.elapsed().as_secs_f64(), writes.load(Ordering::Relaxed));
        is_over.store(true, Ordering::Relaxed);
        (after - before) as f64 / seconds
    })
}
