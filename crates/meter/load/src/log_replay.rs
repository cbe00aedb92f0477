//! Requests of a log, one after the other.
//!
//! Invariant: they come in the log's order, each no earlier than it was logged where the log's
//! moments count. The log is read before the window.

use std::io;
use std::vec::IntoIter;

use iostrata_io::OpKind;
use iostrata_plan::Replay;
use iostrata_plan::fio::{IoLog, LoggedOp, LoggedRequest};

use crate::generator::Request;

/// What is left of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogReplay {
    left: IntoIter<LoggedRequest>,
    /// Every request goes to the first file.
    is_redirected: bool,
    stalls: bool,
}

impl LogReplay {
    /// The requests of a log.
    ///
    /// # Errors
    /// It was read when the job was planned, and is gone or something else since.
    pub(crate) fn of(replay: &Replay) -> io::Result<Self> {
        let text = std::fs::read_to_string(&replay.log)?;
        let once = IoLog::parse(&text).map_err(io::Error::other)?.requests;
        let span_us = once.last().map_or(0, |last| last.at_us);
        let again = (0..u64::from(replay.loops.max(1))).flat_map(|number| {
            once.iter().map(move |one| LoggedRequest {
                at_us: one.at_us.saturating_add(number * span_us),
                ..*one
            })
        });
        let left = again.collect::<Vec<_>>().into_iter();
        Ok(Self { left, is_redirected: replay.is_redirected, stalls: replay.stalls })
    }

    /// When the next request is due, in nanoseconds; `None` where it may start at once.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let next = self.left.as_slice().first().filter(|_| self.stalls)?;
        Some(next.at_us.saturating_mul(1000))
    }

    /// The next request and its bytes.
    pub(crate) fn next_request(&mut self) -> Option<(Request, u32)> {
        let LoggedRequest { op, file, offset, len, .. } = self.left.next()?;
        let kind = match op {
            LoggedOp::Read => OpKind::Read,
            LoggedOp::Write => OpKind::Write,
            LoggedOp::Trim => OpKind::Trim,
            LoggedOp::Fsync | LoggedOp::Fdatasync => OpKind::Sync,
        };
        let file = if self.is_redirected { 0 } else { file };
        Some((Request { kind, file, offset }, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_gone_or_no_log_any_more_is_an_error() {
        let of = |log: &str| {
            LogReplay::of(&Replay {
                log: log.into(),
                is_redirected: false,
                loops: 1,
                flushes: false,
                is_fdatasync: false,
                stalls: true,
            })
        };
        assert_eq!(of("/nowhere/log").unwrap_err().kind(), io::ErrorKind::NotFound);
        let other = of(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        assert!(other.unwrap_err().to_string().contains("begins with no"));
    }
}
