//! Whether the contents of a disk have room where they are to live.
//!
//! Invariant: it only looks; the contents take room as they are written, so this can only say what
//! is certain not to fit.

use std::path::{Path, PathBuf};

use iostrata_linux::host::{Root, describe_host};
use iostrata_sim::emudisk::Store;
use iostrata_stats::units;

use crate::args::StartArgs;
use crate::exit_error::ExitError;

/// Where the contents are to live: the word `memory`, or a directory.
///
/// # Errors
/// When there is no such directory, or not the room for what may be written.
pub fn store(args: &StartArgs) -> Result<Store, ExitError> {
    let most = args.store_limit.map_or(args.size, |limit| limit.min(args.size));
    if args.store == Path::new("memory") {
        let host = describe_host(&Root::system());
        if let Some(available) = host.memory_available_bytes {
            fits(most, available, "of memory are available now", "--store DIR on a disk")?;
        }
        return Ok(Store::Memory);
    }
    let dir = directory(&args.store)?;
    let stat = rustix::fs::statvfs(&dir)
        .map_err(|error| ExitError::Usage(format!("--store {}: {error}", dir.display())))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    fits(most, free, &format!("are free in {}", dir.display()), "--store another directory")?;
    Ok(Store::File { dir })
}

fn fits(most: u64, there: u64, place: &str, other: &str) -> Result<(), ExitError> {
    if most <= there {
        return Ok(());
    }
    let (most, there) = (units::bytes(most as f64), units::bytes(there as f64));
    Err(ExitError::Usage(format!(
        "the disk may come to hold {most}, and {there} {place}; take a smaller --size, {other}, or \
         --store-limit SIZE for a disk that is never filled"
    )))
}

fn directory(dir: &Path) -> Result<PathBuf, ExitError> {
    let bad = |why: &str| {
        ExitError::Usage(format!("--store {}: {why}; name memory or a directory", dir.display()))
    };
    let real = std::fs::canonicalize(dir).map_err(|error| bad(&error.to_string()))?;
    if !real.is_dir() {
        return Err(bad("it is not a directory"));
    }
    Ok(real)
}
