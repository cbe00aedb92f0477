//! Files, environment and machine for the parser of job files.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iostrata_linux::host::{Root, describe_host};
use iostrata_plan::fio::{Environment, Machine};

/// A job file or a log that is larger is none.
const JOB_FILE_BYTES_MAX: u64 = 64 << 20;
const PAGE_BYTES: u64 = 4096;
/// The kind of the entry of a program's start-up vector that holds the size of a page.
const AT_PAGESZ: u64 = 6;

/// This machine.
pub struct ThisProcess;

impl Environment for ThisProcess {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let file: Box<dyn Read> = match path == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(File::open(path).map_err(|error| error.to_string())?),
        };
        file.take(JOB_FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        if bytes.len() as u64 > JOB_FILE_BYTES_MAX {
            return Err("it has more than 64 MiB; is it a job file?".to_owned());
        }
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn bytes_of(&self, path: &Path) -> Result<Option<u64>, String> {
        let in_words = |error: std::io::Error| error.to_string();
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(in_words(error)),
        };
        if meta.file_type().is_block_device() {
            // The end of a device is its size.
            let end = File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0)));
            return end.map(Some).map_err(in_words);
        }
        Ok(meta.is_file().then_some(meta.len()))
    }

    fn lacks_device(&self, path: &Path) -> bool {
        iostrata_io::names_a_device(path) && !path.exists()
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn files_below(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        let in_words = |error: std::io::Error| error.to_string();
        let (mut files, mut directories) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).map_err(in_words)? {
                let entry = entry.map_err(in_words)?;
                let kind = entry.file_type().map_err(in_words)?;
                if kind.is_dir() {
                    directories.push(entry.path());
                } else if kind.is_file() || kind.is_block_device() {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        Ok(files)
    }

    fn machine(&self) -> Machine {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        let memory_bytes = describe_host(&Root::system()).memory_bytes.unwrap_or(0);
        Machine { page_bytes: page_bytes(), memory_mb: memory_bytes >> 20, cpus }
    }

    fn fresh_seed(&self) -> u64 {
        // The standard library draws this from the kernel.
        RandomState::new().build_hasher().finish()
    }
}

fn page_bytes() -> u64 {
    let Ok(vector) = std::fs::read("/proc/self/auxv") else { return PAGE_BYTES };
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    vector
        .chunks_exact(16)
        .find(|entry| word(&entry[..8]) == Some(AT_PAGESZ))
        .and_then(|entry| word(&entry[8..]))
        .unwrap_or(PAGE_BYTES)
}
