//! fio's logs of requests, as `write_iolog` makes them: version 2, with waits, and version 3, with
//! moments.
//!
//! Invariant: any text gives a log or an error with a line; the requests of a log are in its order,
//! and each names one of its files. Where several jobs wrote to one log, each wrote its own header
//! and counted time from 0: as with fio they are replayed one after the other. It reads no file and
//! does not depend on jobs.

use super::error::Why;

/// What a log begins with that fio and we write.
pub const LOG_HEAD: &str = "fio version 3 iolog";

const REQUESTS_MAX: usize = 4_000_000;

/// What a logged request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOp {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It discards.
    Trim,
    /// It is an fsync.
    Fsync,
    /// It is an fdatasync.
    Fdatasync,
}

/// One request of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// When it began, in microseconds from the begin of the log.
    pub at_us: u64,
    /// What it does.
    pub op: LoggedOp,
    /// Index of its file.
    pub file: u32,
    /// Offset in it.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub len: u32,
}

/// A log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoLog {
    /// Names of its files, as they were logged.
    pub files: Vec<String>,
    /// Its requests.
    pub requests: Vec<LoggedRequest>,
}

impl IoLog {
    /// Reads a log.
    ///
    /// # Errors
    /// In words, with the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().zip(1_u32..);
        let version = match lines.next().map(|(line, _)| line.trim()) {
            Some("fio version 2 iolog") => 2,
            Some(LOG_HEAD) => 3,
            _ => return Err("it begins with no `fio version 2 iolog` or 3".to_owned()),
        };
        let mut reader = LogReader { log: Self::default(), now_us: 0, stamp_us: 0, version };
        let head = format!("fio version {version} iolog");
        let is_request = |line: &str| !line.is_empty() && line != head;
        for (line, number) in lines.filter(|(line, _)| is_request(line.trim())) {
            reader.line(line).map_err(|why| format!("line {number}: {}", why.0))?;
        }
        match reader.log.requests.is_empty() {
            true => Err("it has no request".to_owned()),
            false => Ok(reader.log),
        }
    }

    /// The first byte behind all requests of any file.
    pub fn end_bytes(&self) -> u64 {
        let ends = self.requests.iter().map(|one| one.offset.saturating_add(u64::from(one.len)));
        ends.max().unwrap_or(0)
    }

    /// Bytes of all requests.
    pub fn bytes(&self) -> u64 {
        self.requests.iter().map(|one| u64::from(one.len)).sum()
    }

    /// Whether any request is one of these.
    pub fn has(&self, ops: &[LoggedOp]) -> bool {
        self.requests.iter().any(|one| ops.contains(&one.op))
    }
}

struct LogReader {
    log: IoLog,
    now_us: u64,
    /// The moment of the last line of version 3.
    stamp_us: u64,
    version: u32,
}

impl LogReader {
    fn line(&mut self, line: &str) -> Result<(), Why> {
        let mut words = line.split_whitespace();
        let number = |word: Option<&str>| {
            let number = word.and_then(|word| word.parse::<u64>().ok());
            number.ok_or_else(|| Why::new("a number is missing or is none"))
        };
        if self.version == 3 {
            let stamp_us = number(words.next())?;
            // An earlier one is of another job, which counted from 0 again.
            self.now_us = self.now_us.saturating_add(stamp_us.saturating_sub(self.stamp_us));
            self.stamp_us = stamp_us;
        }
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err(Why::new("write FILE ACTION, with OFFSET LENGTH for a request"));
        };
        let op = match action {
            "add" | "open" | "close" => {
                self.file(file);
                return Ok(());
            }
            "wait" => {
                self.now_us = self.now_us.saturating_add(number(words.next())?);
                return Ok(());
            }
            "read" => LoggedOp::Read,
            "write" => LoggedOp::Write,
            "trim" => LoggedOp::Trim,
            "sync" => LoggedOp::Fsync,
            "datasync" => LoggedOp::Fdatasync,
            _ => return Err(Why::new(format!("`{action}` is no action of a request"))),
        };
        let (offset, len) = (number(words.next())?, number(words.next())?);
        let is_flush = matches!(op, LoggedOp::Fsync | LoggedOp::Fdatasync);
        let (offset, len) = if is_flush { (0, 0) } else { (offset, len) };
        let len = u32::try_from(len).map_err(|_| Why::new("the request is too long"))?;
        if (len == 0 && !is_flush) || self.log.requests.len() >= REQUESTS_MAX {
            return Err(Why::new("the request is empty, or one too many"));
        }
        let file = self.file(file);
        self.log.requests.push(LoggedRequest { at_us: self.now_us, op, file, offset, len });
        Ok(())
    }

    fn file(&mut self, name: &str) -> u32 {
        let known = self.log.files.iter().position(|file| file == name);
        known.unwrap_or_else(|| {
            self.log.files.push(name.to_owned());
            self.log.files.len() - 1
        }) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(u64, LoggedOp, u32, u64, u32)> {
        let log = IoLog::parse(text).unwrap_or_else(|why| panic!("{why}"));
        log.requests.iter().map(|one| (one.at_us, one.op, one.file, one.offset, one.len)).collect()
    }

    #[test]
    fn waits_of_version_2_and_moments_of_version_3() {
        let two = "fio version 2 iolog\n/a add\n/b add\n/a open\n/a read 0 4096\n/b wait 250 0\n\
                   /b write 8192 512\n/b sync 0 0\n/a close\n";
        let expected = [
            (0, LoggedOp::Read, 0, 0, 4096),
            (250, LoggedOp::Write, 1, 8192, 512),
            (250, LoggedOp::Fsync, 1, 0, 0),
        ];
        assert_eq!(shown(two), expected);
        let three = "fio version 3 iolog\n10 f add\n20 f read 0 4096\n35 f datasync 0 0\n\
                     90 f trim 4096 4096\n";
        let expected = [
            (20, LoggedOp::Read, 0, 0, 4096),
            (35, LoggedOp::Fdatasync, 0, 0, 0),
            (90, LoggedOp::Trim, 0, 4096, 4096),
        ];
        assert_eq!(shown(three), expected);
    }

    #[test]
    fn what_several_jobs_wrote_comes_one_behind_the_other() {
        let log = "fio version 3 iolog\n10 a add\n20 a read 0 4096\n50 a read 4096 4096\n\
                   fio version 3 iolog\n5 b add\n30 b write 0 512\n";
        let expected = [
            (20, LoggedOp::Read, 0, 0, 4096),
            (50, LoggedOp::Read, 0, 4096, 4096),
            (75, LoggedOp::Write, 1, 0, 512),
        ];
        assert_eq!(shown(log), expected);
    }

    #[test]
    fn what_is_no_log_says_where() {
        for (text, expected) in [
            ("", "it begins with no"),
            ("fio version 2 iolog\n", "it has no request"),
            ("fio version 2 iolog\nf read 0\n", "line 2: a number is missing"),
            ("fio version 2 iolog\nf add\nf jump 0 1\n", "line 3: `jump` is no action"),
            ("fio version 3 iolog\nf read 0 1\n", "line 2: a number is missing"),
            ("fio version 2 iolog\nf read 0 0\n", "line 2: the request is empty"),
        ] {
            let error = IoLog::parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
