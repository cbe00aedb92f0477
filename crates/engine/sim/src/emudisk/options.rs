//! What is served: which disk, how large, and where its contents live; the argument vector of the
//! process that serves it; and the two changes of the system that make it a block device.
//!
//! Invariants: options that pass [`ServeOptions::check`] describe a disk that can be served as far
//! as its numbers go; errors of the machine come when it is served. The vector is built and parsed
//! here and nowhere else: what is built parses back to the same, and the directory at which the
//! disk is served comes last, because the process is found again by it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use iostrata_change::{Change, DeviceRef, FuseServer, Loop};
use iostrata_plan::disk::{DiskModel, DiskSpec};

use crate::emudisk::client;
use crate::emudisk::error::ServeError;
use crate::model::MeasuredDisk;

/// Smallest disk.
pub const SIZE_BYTES_MIN: u64 = 1 << 20;
/// The size of a disk is a multiple of this.
pub const SIZE_BYTES_STEP: u64 = 4096;

/// Where the contents of a disk live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the memory of the server; pages that hold only zeros take none.
    Memory,
    /// In a sparse file without a name, so that nothing is left of a server that was killed.
    File {
        /// A directory of a file system that has room.
        dir: PathBuf,
    },
}

/// One disk to serve.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeOptions {
    /// The model.
    pub disk: DiskSpec,
    /// Its size: at least [`SIZE_BYTES_MIN`], a multiple of [`SIZE_BYTES_STEP`].
    pub size_bytes: u64,
    /// Where its contents live.
    pub store: Store,
    /// Most bytes that the contents may take; a write beyond fails with ENOSPC. Absent: the size.
    pub store_limit_bytes: Option<u64>,
    /// Seed of everything random: rotation, injected errors, what a power cut leaves.
    pub seed: u64,
    /// What was measured, for a disk of a probe.
    pub measured: Option<MeasuredDisk>,
}

impl ServeOptions {
    /// Whether the numbers describe a disk.
    ///
    /// # Errors
    /// The size is too small or not a multiple of a page.
    pub fn check(&self) -> Result<(), ServeError> {
        let bytes = self.size_bytes;
        if bytes < SIZE_BYTES_MIN {
            return Err(ServeError::Small { bytes });
        }
        if !bytes.is_multiple_of(SIZE_BYTES_STEP) {
            return Err(ServeError::Uneven { bytes });
        }
        Ok(())
    }
}

/// The file with the contents of the disk that is served at `at`.
pub fn disk_file(at: &Path) -> PathBuf {
    at.join(client::DISK)
}

/// The words with which a vector starts: a hidden command of the program.
pub const COMMAND: [&str; 2] = ["disk", "serve"];

/// The arguments of the process that serves a disk. What a probe measured is not in it: the process
/// reads the file that the disk names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeArguments {
    /// The directory at which it is served.
    pub at: PathBuf,
    /// The disk.
    pub disk: DiskSpec,
    /// Its size.
    pub size_bytes: u64,
    /// Where its contents live.
    pub store: Store,
    /// Most bytes that the contents may take.
    pub store_limit_bytes: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
}

/// Why a vector is none of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// A path that cannot be an argument.
    #[error("the path `{}` is not UTF-8 or not reachable; use another directory", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// An option is missing.
    #[error("`{name}` is missing; `iostrata disk serve` is started by `iostrata disk start`")]
    Missing {
        /// The option.
        name: &'static str,
    },
    /// An option that does not exist or is there twice.
    #[error("`{found}` is not an option of `iostrata disk serve` or is there twice")]
    Unknown {
        /// The word.
        found: String,
    },
    /// A value that does not parse.
    #[error("`{found}` is not a value of `{name}`: {why}")]
    Value {
        /// The option.
        name: &'static str,
        /// The text.
        found: String,
        /// What is wrong with it.
        why: String,
    },
}

const AT: &str = "AT";
const DISK: &str = "--disk";
const SIZE: &str = "--size";
const STORE_DIR: &str = "--store-dir";
const STORE_LIMIT: &str = "--store-limit";
const SEED: &str = "--seed";
const NAMES: [&str; 5] = [DISK, SIZE, STORE_DIR, STORE_LIMIT, SEED];

impl ServeArguments {
    /// The vector without the directory, which follows it; [`COMMAND`] first. Paths are made
    /// absolute, because the process works in `/`.
    ///
    /// # Errors
    /// A path that is not UTF-8, or is relative to a directory that is gone.
    pub fn to_vector(&self) -> Result<Vec<String>, ArgumentsError> {
        let mut vector: Vec<String> = COMMAND.map(str::to_owned).to_vec();
        let mut option = |name: &str, value: String| vector.extend([name.to_owned(), value]);
        let mut disk = self.disk.clone();
        if let DiskModel::Probe(file) = &mut disk.model {
            *file = text(file)?.into();
        }
        option(DISK, disk.to_string());
        option(SIZE, self.size_bytes.to_string());
        if let Store::File { dir } = &self.store {
            option(STORE_DIR, text(dir)?);
        }
        if let Some(limit) = self.store_limit_bytes {
            option(STORE_LIMIT, limit.to_string());
        }
        option(SEED, self.seed.to_string());
        Ok(vector)
    }

    /// Parses what follows [`COMMAND`], the directory last.
    ///
    /// # Errors
    /// A word that is unknown, missing or does not parse.
    pub fn parse<S: AsRef<OsStr>>(words: &[S]) -> Result<Self, ArgumentsError> {
        let mut values: [Option<&OsStr>; NAMES.len()] = [None; NAMES.len()];
        let Some((at, options)) = words.split_last() else {
            return Err(ArgumentsError::Missing { name: AT });
        };
        let mut options = options.iter().map(AsRef::as_ref);
        while let Some(word) = options.next() {
            let unknown = || ArgumentsError::Unknown { found: word.to_string_lossy().into_owned() };
            let index = NAMES.iter().position(|name| word == OsStr::new(name));
            let index = index.ok_or_else(unknown)?;
            if values[index].is_some() {
                return Err(unknown());
            }
            let missing = ArgumentsError::Missing { name: NAMES[index] };
            values[index] = Some(options.next().ok_or(missing)?);
        }
        let [disk, size, dir, limit, seed] = values;
        Ok(Self {
            at: at.as_ref().into(),
            disk: value(DISK, needed(DISK, disk)?)?,
            size_bytes: value(SIZE, needed(SIZE, size)?)?,
            store: dir.map_or(Store::Memory, |dir| Store::File { dir: dir.into() }),
            store_limit_bytes: limit.map(|limit| value(STORE_LIMIT, limit)).transpose()?,
            seed: value(SEED, needed(SEED, seed)?)?,
        })
    }
}

/// The absolute path as text.
pub(crate) fn text(path: &Path) -> Result<String, ArgumentsError> {
    let refused = || ArgumentsError::Path { path: path.to_owned() };
    let absolute = std::path::absolute(path).map_err(|_| refused())?;
    absolute.to_str().map(str::to_owned).ok_or_else(refused)
}

fn needed<'a>(name: &'static str, value: Option<&'a OsStr>) -> Result<&'a OsStr, ArgumentsError> {
    value.ok_or(ArgumentsError::Missing { name })
}

fn value<T>(name: &'static str, text: &OsStr) -> Result<T, ArgumentsError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let found = text.to_string_lossy().into_owned();
    found.parse().map_err(|why: T::Err| ArgumentsError::Value { name, found, why: why.to_string() })
}

/// Sectors of a served disk as the block layer sees them.
const BLOCK_BYTES: u32 = 512;

/// What to apply, in this order, so that `arguments` are served by `program` and there is a block
/// device over it. `holds_journal` as in [`FuseServer`].
///
/// # Errors
/// A path that cannot be an argument of a program.
pub fn changes(
    program: &Path,
    arguments: &ServeArguments,
    holds_journal: bool,
) -> Result<[Change; 2], ArgumentsError> {
    let at = text(&arguments.at)?;
    let backing = disk_file(Path::new(&at));
    let server = FuseServer {
        at: at.into(),
        program: text(program)?.into(),
        arguments: arguments.to_vector()?,
        holds_journal,
    };
    let over = Loop { backing, direct: true, block_bytes: Some(BLOCK_BYTES) };
    Ok([server.into(), over.into()])
}

/// The block device of the disk that is served at `at`, once both changes are in place.
pub fn device(at: &Path) -> DeviceRef {
    DeviceRef::Loop { backing: disk_file(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> ServeArguments {
        ServeArguments {
            at: "/run/a place".into(),
            disk: "hdd-15k,queue=1".parse().unwrap(),
            size_bytes: 2 << 30,
            store: Store::Memory,
            store_limit_bytes: None,
            seed: 7,
        }
    }

    #[test]
    fn what_is_built_parses_back() {
        let more = ServeArguments {
            store: Store::File { dir: "/var/tmp".into() },
            store_limit_bytes: Some(1 << 20),
            disk: "probe:/tmp/a b.json".parse().unwrap(),
            ..arguments()
        };
        for one in [arguments(), more] {
            let mut vector = one.to_vector().unwrap();
            assert_eq!(vector[..2], COMMAND);
            vector.push(one.at.to_str().unwrap().to_owned());
            assert_eq!(ServeArguments::parse(&vector[2..]), Ok(one));
        }
    }

    #[test]
    fn paths_are_made_absolute() {
        let store = Store::File { dir: "here".into() };
        let vector = ServeArguments { store, ..arguments() }.to_vector().unwrap();
        let here = std::env::current_dir().unwrap().join("here");
        assert!(vector.contains(&here.to_str().unwrap().to_owned()), "{vector:?}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |words: &[&str]| ServeArguments::parse(words).unwrap_err().to_string();
        assert!(said(&[]).contains("`AT` is missing"));
        assert!(said(&["/a"]).contains("`--disk` is missing"));
        assert!(said(&["--size", "/a"]).contains("`--size` is missing"));
        assert!(said(&["--fast", "1", "/a"]).contains("`--fast` is not an option"));
        assert!(said(&["--size", "1", "--size", "2", "/a"]).contains("twice"));
        let wrong = ["--disk", "floppy", "--size", "1", "--seed", "0", "/a"];
        assert!(said(&wrong).contains("`floppy` is not a value of `--disk`"));
    }
}
