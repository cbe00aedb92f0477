//! One event of a trace, freed of how the kernel writes it.

/// Something that happened to a request or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When, in nanoseconds of the trace's clock.
    pub ns: u64,
    /// The thread that was running; for completions whichever was interrupted.
    pub tid: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A bio arrived at the queue (block_bio_queue).
    BioQueued {
        /// The bio.
        span: Span,
        /// Whether a kernel worker brought it.
        by_worker: bool,
    },
    /// A queued bio joined the request that ends where it begins (block_bio_backmerge).
    BackMerged(Span),
    /// A queued bio joined the request that begins where it ends (block_bio_frontmerge).
    FrontMerged(Span),
    /// A queued bio was cut in two (block_split).
    Split {
        /// Index of the traced device.
        device: u8,
        /// Where the bio begins.
        sector: u64,
        /// Where the second half begins.
        at: u64,
    },
    /// A queued bio got a request of its own (block_getrq).
    Got(Span),
    /// A request entered the scheduler (block_rq_insert).
    Inserted(Span),
    /// A request went to the driver (block_rq_issue).
    Issued(Span),
    /// The driver handed a request back (block_rq_requeue).
    Requeued(Span),
    /// A request joined the one that ends where it begins (block_rq_merge).
    RequestMerged(Span),
    /// A request, or the first part of one, is done (block_rq_complete).
    Completed(Span),
    /// A system call for I/O began.
    CallBegan {
        /// Direction.
        kind: CallKind,
        /// Its length in bytes, where the call carries it.
        bytes: Option<u64>,
    },
    /// The thread's system call for I/O returned.
    CallEnded {
        /// Direction.
        kind: CallKind,
    },
    /// An io_uring request begins (io_uring_submit_req).
    RingSubmitted {
        /// The kernel's name for it, reused after completion.
        request: u64,
        /// Direction.
        kind: CallKind,
    },
    /// An io_uring completion entry was posted (io_uring_complete).
    RingCompleted {
        /// The kernel's name for it.
        request: u64,
    },
}

/// A range of sectors on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index of the traced device.
    pub device: u8,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// What is done with it.
    pub kind: RequestKind,
    /// Whether someone waits for it, as the kernel marks it. Write-back is not waited for.
    pub is_sync: bool,
}

impl Span {
    /// First sector after it.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes the device's cache, and nothing else.
    Flush,
    /// Writes after flushing, as journals do: its time in the queue holds a flush.
    FlushWrite,
    /// Discards, zone commands and the like.
    Other,
}

impl RequestKind {
    /// From the letters of the kernel's `rwbs` (function blk_fill_rwbs).
    pub(crate) fn of(rwbs: &[u8]) -> Self {
        match rwbs {
            [b'F', b'F', ..] => Self::Flush,
            [b'F', b'W', ..] => Self::FlushWrite,
            [b'R', ..] => Self::Read,
            [b'W', ..] => Self::Write,
            _ => Self::Other,
        }
    }
}

/// What a call of the application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Anything else.
    Other,
}

impl CallKind {
    /// Whether a device request does what the call asked for.
    pub(crate) fn asks_for(self, kind: RequestKind) -> bool {
        matches!((self, kind), (Self::Read, RequestKind::Read) | (Self::Write, RequestKind::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_what_a_request_does() {
        let kinds: [(&[u8], RequestKind); 9] = [
            (b"RS", RequestKind::Read),
            (b"RA", RequestKind::Read),
            (b"WSM", RequestKind::Write),
            (b"WFS", RequestKind::Write),
            (b"FF", RequestKind::Flush),
            (b"FWS", RequestKind::FlushWrite),
            (b"FWFSM", RequestKind::FlushWrite),
            (b"DS", RequestKind::Other),
            (b"", RequestKind::Other),
        ];
        for (letters, kind) in kinds {
            assert_eq!(RequestKind::of(letters), kind, "{}", String::from_utf8_lossy(letters));
        }
    }
}
