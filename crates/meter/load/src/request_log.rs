//! The log of a worker's requests for fio's `write_iolog`, in its version 3.
//!
//! Invariant: lines are whole and in the order in which requests started, also where several
//! workers append to one log. Its memory is there before the window; it is written when that is
//! full, as fio does it, and at the end. It reads no clock.

use std::fs::File;
use std::io::{self, Write};

use iostrata_io::{OpKind, SyncKind};
use iostrata_plan::fio::LOG_HEAD;
use iostrata_plan::{IoSpec, Sharing};

use crate::generator::Request;

/// Bytes of the log that are in memory at a time.
const HELD_BYTES: usize = 1 << 20;

/// The longest line: a path, three numbers and a word.
const LINE_BYTES_MAX: usize = 8 << 10;

/// The log of one worker.
#[derive(Debug)]
pub(crate) struct RequestLogWriter {
    file: File,
    /// The worker's files, as they are named in the log.
    names: Box<[String]>,
    flush: &'static str,
    text: Vec<u8>,
    /// What went wrong first.
    error: Option<io::Error>,
}

impl RequestLogWriter {
    /// The log of job `job` of a stream, with its files; `None` where requests are not logged.
    ///
    /// # Errors
    /// When the log cannot be opened.
    pub(crate) fn begin(spec: &IoSpec, job: u32, flush: SyncKind) -> io::Result<Option<Self>> {
        let Some(log) = &spec.variation.request_log else { return Ok(None) };
        let count = spec.files as usize;
        let first = match spec.variation.sharing {
            Sharing::Own => job as usize * count,
            Sharing::Parts | Sharing::Whole => 0,
        };
        let own = log.files.iter().skip(first);
        let mut writer = Self {
            file: File::options().append(true).create(true).open(&log.path)?,
            names: own.take(count).map(|file| file.display().to_string()).collect(),
            flush: match flush {
                SyncKind::Fsync => "sync",
                SyncKind::Fdatasync => "datasync",
                SyncKind::Range(_) => "sync_file_range",
            },
            text: Vec::with_capacity(HELD_BYTES),
            error: None,
        };
        let _never_fails = writeln!(writer.text, "{LOG_HEAD}");
        ["add", "open"].into_iter().for_each(|what| writer.note_files(0, what));
        Ok(Some(writer))
    }

    /// Takes note of a request that starts.
    #[inline(never)]
    pub(crate) fn note(&mut self, at_us: u64, request: Request, len: u32) {
        let Request { kind, file, offset } = request;
        let what = match kind {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::Sync => self.flush,
        };
        self.make_room();
        let name = self.names.get(file as usize).map_or("", String::as_str);
        let _never_fails = writeln!(self.text, "{at_us} {name} {what} {offset} {len}");
    }

    /// Closes the files of the log, and it.
    ///
    /// # Errors
    /// When the log could not be written, now or before.
    pub(crate) fn end(mut self, at_us: u64) -> io::Result<()> {
        self.note_files(at_us, "close");
        self.write();
        self.error.map_or(Ok(()), Err)
    }

    fn note_files(&mut self, at_us: u64, what: &str) {
        for file in 0..self.names.len() {
            self.make_room();
            let _never_fails = writeln!(self.text, "{at_us} {} {what}", self.names[file]);
        }
    }

    /// Room for one more line.
    fn make_room(&mut self) {
        if self.text.len() + LINE_BYTES_MAX > HELD_BYTES {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.error.is_none() {
            self.error = self.file.write_all(&self.text).err();
        }
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::RequestLog;
    use iostrata_plan::fio::IoLog;

    #[test]
    fn what_is_logged_is_what_is_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut spec = IoSpec::new("x");
        (spec.files, spec.variation.sharing) = (2, Sharing::Own);
        let files = ["a.0.0", "a.0.1", "a.1.0", "a.1.1"].map(Into::into).to_vec();
        spec.variation.request_log = Some(RequestLog { path: path.clone(), files });
        // More than is held at a time.
        let requests = 60_000;
        for job in 0..2 {
            let log = RequestLogWriter::begin(&spec, job, SyncKind::Fdatasync).unwrap();
            let mut log = log.unwrap();
            for at in 0..requests {
                let kind = [OpKind::Read, OpKind::Write, OpKind::Sync][at as usize % 3];
                let len = if kind == OpKind::Sync { 0 } else { 512 };
                log.note(at, Request { kind, file: at as u32 % 2, offset: at * 512 }, len);
            }
            log.end(requests).unwrap();
        }
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("fio version 3 iolog\n0 a.0.0 add\n0 a.0.1 add\n0 a.0.0 open\n"));
        assert!(text.contains("\n2 a.0.0 datasync 1024 0\n") && text.ends_with(" a.1.1 close\n"));
        let log = IoLog::parse(&text).unwrap();
        assert_eq!(log.files, ["a.0.0", "a.0.1", "a.1.0", "a.1.1"]);
        assert_eq!(log.requests.len() as u64, 2 * requests);
        assert_eq!(log.bytes(), 2 * requests / 3 * 2 * 512);
    }
}
