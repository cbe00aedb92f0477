//! Files of lines: appended whole, read as they grow.
//!
//! Invariants: a line is written by one call and is durable when [`Lines::append`] returns; a line
//! without its newline was cut off by a kill and does not count.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{RunReadError, RunWriteError};

/// A file of lines, open at its end.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    /// Opens a file for appending, creates it when it is missing, and cuts off a torn last line.
    pub(crate) fn open(path: PathBuf) -> Result<Self, RunWriteError> {
        let opened = OpenOptions::new().create(true).append(true).read(true).open(&path);
        let file = opened.map_err(failed("open", &path))?;
        let bytes = std::fs::read(&path).map_err(failed("read", &path))?;
        let whole = whole_lines(&bytes).0.len();
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failed("shorten", &path))?;
        }
        Ok(Self { path, file })
    }

    /// Whether nothing was written yet.
    pub(crate) fn is_empty(&self) -> Result<bool, RunWriteError> {
        Ok(self.file.metadata().map_err(failed("look at", &self.path))?.len() == 0)
    }

    /// Appends lines, which must end in a newline, and makes them durable.
    pub(crate) fn append(&mut self, lines: &str) -> Result<(), RunWriteError> {
        assert!(lines.ends_with('\n'), "only whole lines are appended");
        self.file.write_all(lines.as_bytes()).map_err(failed("write", &self.path))?;
        self.file.sync_data().map_err(failed("flush", &self.path))
    }
}

/// A file of lines that is read while it grows. A missing file is empty.
#[derive(Clone, Debug)]
pub(crate) struct GrowingFile {
    pub(crate) path: PathBuf,
    read_bytes: u64,
    read_lines: usize,
    /// Whether a line without its end follows the last one read.
    pub(crate) is_torn: bool,
}

impl GrowingFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read_bytes: 0, read_lines: 0, is_torn: false }
    }

    /// The whole lines that were not read yet, each with its number from 1, as `parse` makes of
    /// them. A line that is damaged is an error, every time.
    pub(crate) fn read<T>(
        &mut self,
        mut parse: impl FnMut(usize, &str) -> Result<T, RunReadError>,
    ) -> Result<Vec<T>, RunReadError> {
        let bytes = read_from(&self.path, self.read_bytes)
            .map_err(|source| RunReadError::Io { path: self.path.clone(), source })?;
        let (whole, torn) = whole_lines(&bytes);
        let mut parsed = Vec::new();
        for (number, line) in (self.read_lines + 1..).zip(whole.split_inclusive(|&b| b == b'\n')) {
            let Ok(text) = std::str::from_utf8(line) else {
                let (path, reason) = (self.path.clone(), "it is not UTF-8".to_owned());
                return Err(RunReadError::Damaged { path, line: number, reason });
            };
            parsed.push(parse(number, text)?);
        }
        self.read_bytes += whole.len() as u64;
        self.read_lines += parsed.len();
        self.is_torn = torn;
        Ok(parsed)
    }
}

fn read_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        opened => opened?,
    };
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn whole_lines(bytes: &[u8]) -> (&[u8], bool) {
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    (&bytes[..end], end < bytes.len())
}

/// Replaces a file as a whole: after a crash there is the old one or the new one.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<(), RunWriteError> {
    let new = unfinished(path);
    let mut file = File::create(&new).map_err(failed("create", &new))?;
    file.write_all(contents).map_err(failed("write", &new))?;
    file.sync_data().map_err(failed("flush", &new))?;
    std::fs::rename(&new, path).map_err(failed("rename", &new))?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Replaces a file by a value as JSON.
pub(crate) fn replace_json(
    path: &Path,
    what: &'static str,
    value: &impl Serialize,
) -> Result<(), RunWriteError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|source| RunWriteError::Json { what, source })?;
    text.push('\n');
    replace(path, text.as_bytes())
}

/// The name that a file has until it is complete.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), RunWriteError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed("flush", dir))
}

/// The error of something refused.
pub(crate) fn failed(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> RunWriteError + use<> {
    let path = path.to_owned();
    move |source| RunWriteError::Io { doing, path, source }
}
