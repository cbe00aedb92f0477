//! Requests of a log, one after the other.
//!
//! Invariant: they come in the log's order, each no earlier than it was logged where the log's
//! moments count. The log is read before the window.

use std::vec::IntoIter;

use iostrata_io::OpKind;
use iostrata_spec::Replay;
use iostrata_spec::fio::{IoLog, LoggedOp, LoggedRequest};

use crate::generator::Request;

/// What is left of a log.
#[derive(Clone, Debug)]
pub(crate) struct Replayed {
    left: IntoIter<LoggedRequest>,
    /// Every request goes to the first file.
    is_redirected: bool,
    stalls: bool,
}

impl Replayed {
    /// The requests of a log; none when it cannot be read any more.
    pub(crate) fn of(replay: &Replay) -> Self {
        let text = std::fs::read_to_string(&replay.log).unwrap_or_default();
        let log = IoLog::parse(&text).unwrap_or_default();
        let once = log.requests;
        let span_us = once.last().map_or(0, |last| last.at_us);
        let again = (0..u64::from(replay.loops.max(1))).flat_map(|number| {
            once.iter().map(move |one| LoggedRequest {
                at_us: one.at_us.saturating_add(number * span_us),
                ..*one
            })
        });
        let left = again.collect::<Vec<_>>().into_iter();
        Self { left, is_redirected: replay.is_redirected, stalls: replay.stalls }
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
