//! Filling a named block device, so that its requests find written blocks.
//!
//! Invariant: only devices that the session may overwrite come here; blocks are incompressible and
//! durable on return.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_io::Progress;
use iostrata_stats::Random;

const CHUNK_BYTES: usize = 1 << 20;

/// Writes the first `bytes` of a device. A signal ends it early.
///
/// # Errors
/// When somebody else holds the device, or it is smaller, or a write fails.
pub(super) fn fill_device(
    device: &Path,
    bytes: u64,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<()> {
    // Exclusively: the kernel refuses while the device is mounted or part of another.
    let excl = rustix::fs::OFlags::EXCL.bits() as i32;
    let mut file = OpenOptions::new().write(true).custom_flags(excl).open(device)?;
    let mut random = Random::of_stream(seed, 0);
    let mut chunk = vec![0_u8; CHUNK_BYTES];
    let mut done_bytes = 0;
    while done_bytes < bytes && !stop.load(Ordering::Relaxed) {
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.bits().to_le_bytes());
        }
        let now = (bytes - done_bytes).min(CHUNK_BYTES as u64) as usize;
        file.write_all(&chunk[..now])?;
        done_bytes += now as u64;
        progress(Progress { done_bytes, total_bytes: bytes });
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_up_to_the_end_is_written_and_none_after_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = (5 << 20) + 4096;
        file.as_file().set_len(bytes + 4096).unwrap();
        let never = AtomicBool::new(false);
        fill_device(file.path(), bytes, 7, &never, &mut |_| ()).unwrap();
        let found = std::fs::read(file.path()).unwrap();
        let (filled, rest) = found.split_at(bytes as usize);
        assert!(filled.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
        assert!(rest.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_signal_ends_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stopped = AtomicBool::new(true);
        fill_device(file.path(), 1 << 30, 7, &stopped, &mut |_| ()).unwrap();
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }
}
