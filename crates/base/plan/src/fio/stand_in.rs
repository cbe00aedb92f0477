//! A environment for tests: files in memory, a small machine, no disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::environment::{Environment, Machine};

/// Files and variables that exist only here.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    files: BTreeMap<PathBuf, Vec<u8>>,
    variables: BTreeMap<String, String>,
    /// Nothing is known of what lies behind a closed door.
    sizes: BTreeMap<PathBuf, Option<u64>>,
    missing: Vec<PathBuf>,
}

impl Desk {
    pub(super) fn with_file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }

    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// A directory that is not there; all others are.
    pub(super) fn without_directory(mut self, path: &str) -> Self {
        self.missing.push(path.into());
        self
    }

    /// A data file or device of a size.
    pub(super) fn with_hidden(mut self, path: &str) -> Self {
        self.sizes.insert(path.into(), None);
        self
    }

    pub(super) fn with_data(mut self, path: &str, bytes: u64) -> Self {
        self.sizes.insert(path.into(), Some(bytes));
        self
    }
}

impl Environment for Desk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        self.files.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn bytes_of(&self, path: &Path) -> Result<Option<u64>, String> {
        let found = self.sizes.get(path);
        found.map(|bytes| bytes.ok_or_else(|| "Permission denied".to_owned())).transpose()
    }

    fn lacks_device(&self, path: &Path) -> bool {
        path.starts_with("/dev") && !self.sizes.contains_key(path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        !self.missing.iter().any(|missing| missing == path)
    }

    fn files_below(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        if !self.is_directory(directory) {
            return Err("No such file or directory".to_owned());
        }
        Ok(self.sizes.keys().filter(|path| path.starts_with(directory)).cloned().collect())
    }

    fn machine(&self) -> Machine {
        Machine { page_bytes: 4096, memory_mb: 1000, cpus: 2 }
    }

    fn fresh_seed(&self) -> u64 {
        4711
    }
}
