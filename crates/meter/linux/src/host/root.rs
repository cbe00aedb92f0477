//! Where `/proc`, `/sys` and the rest are read from: the machine, or a directory that stands in.
//!
//! Invariant: every read is bounded in size, and a missing or unreadable file is simply absent.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::host::{HostError, Location};

/// No file of `/proc` or `/sys` that is read here is larger than this, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The root directory that every reader starts from.
#[derive(Clone, Debug)]
pub struct Root {
    dir: PathBuf,
    /// Answers that stand in for the file system calls; used before them.
    placed: BTreeMap<PathBuf, Location>,
}

impl Root {
    /// The machine itself.
    pub fn system() -> Self {
        Self::at("/")
    }

    /// A directory that stands in for `/`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), placed: BTreeMap::new() }
    }

    /// Says what the file system calls shall answer for `path` and everything below it.
    #[must_use]
    pub fn placing(mut self, path: impl Into<PathBuf>, location: Location) -> Self {
        self.placed.insert(path.into(), location);
        self
    }

    /// Where `path` really lies. `..` does not lead out of the root.
    pub(crate) fn real(&self, path: impl AsRef<Path>) -> PathBuf {
        let mut real = self.dir.clone();
        for part in path.as_ref().components() {
            match part {
                Component::Normal(name) => real.push(name),
                Component::ParentDir if real != self.dir => {
                    real.pop();
                }
                _ => {}
            }
        }
        real
    }

    /// The text of a file; absent when it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let file = File::open(self.real(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text of a file without surrounding blanks; absent when nothing is left.
    pub(crate) fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let word = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// A file that holds one number.
    pub(crate) fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.word(path)?.parse().ok()
    }

    /// A file that holds 0 or another number.
    pub(crate) fn flag(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.number::<i64>(path).map(|number| number != 0)
    }

    /// Whether something is there.
    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.real(path).exists()
    }

    /// The names in a directory, sorted; empty when it cannot be read.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.real(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The path without symbolic links, as seen from the root.
    pub(crate) fn resolved(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let real = fs::canonicalize(self.real(path)).ok()?;
        let dir = fs::canonicalize(&self.dir).ok()?;
        Some(Path::new("/").join(real.strip_prefix(dir).ok()?))
    }

    /// What the file system calls say about `path`, or about the nearest directory above it when
    /// only its last part is missing.
    pub(crate) fn locate(&self, path: &Path) -> Result<Location, HostError> {
        if let Some(location) = self.placed_above(path) {
            return Ok(Location { path: path.to_owned(), ..location.clone() });
        }
        if self.dir == Path::new("/") {
            return Location::of(path);
        }
        Ok(Location { path: path.to_owned(), ..Location::of(&self.real(path))? })
    }

    fn placed_above(&self, path: &Path) -> Option<&Location> {
        path.ancestors().find_map(|above| self.placed.get(above))
    }
}
