//! The directory of one run: made, measured, removed.
//!
//! Invariant: nothing is written outside of it, and it is removed when the run ends in whichever
//! way, but for a kill that cannot be caught.

use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::PeerError;

/// Bytes of a block in `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// `DIR/iostrata-peers-<process>`, removed on drop.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// Makes it under `parent`.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn make(parent: &Path) -> Result<Self, PeerError> {
        let dir = parent.join(format!("iostrata-peers-{}", std::process::id()));
        fs::create_dir_all(parent).map_err(PeerError::files("make", parent))?;
        fs::create_dir(&dir).map_err(PeerError::files("make", &dir))?;
        Ok(Self { dir })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes a directory in it.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn sub(&self, name: &str) -> Result<PathBuf, PeerError> {
        let dir = self.dir.join(name);
        fs::create_dir(&dir).map_err(PeerError::files("make", &dir))?;
        Ok(dir)
    }

    /// Whether files here can be opened past the page cache.
    pub fn is_direct_possible(&self) -> bool {
        let path = self.dir.join("direct");
        let mut options = fs::OpenOptions::new();
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let opened =
            options.write(true).create(true).truncate(true).custom_flags(flags).open(&path);
        let _ = fs::remove_file(&path);
        opened.is_ok()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Bytes that all files under a directory take on their file system. Files that vanish meanwhile
/// do not count.
pub fn allocated_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => allocated_bytes(&entry.path()),
            Ok(data) => data.blocks() * BLOCK_BYTES,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_afterwards_and_its_files_are_counted() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        let sub = scratch.sub("a").unwrap();
        fs::write(sub.join("file"), vec![1; 100_000]).unwrap();
        let file = fs::File::open(sub.join("file")).unwrap();
        file.sync_all().unwrap();
        assert!((100_000..200_000).contains(&allocated_bytes(scratch.dir())));
        assert!(scratch.sub("a").is_err());
        let dir = scratch.dir().to_owned();
        drop(scratch);
        assert!(!dir.exists());
        assert_eq!(allocated_bytes(&dir), 0);
    }
}
