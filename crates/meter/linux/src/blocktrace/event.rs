//! One event of a trace, freed of how the kernel writes it, and how events are read from pages of
//! the ring buffer.

use std::collections::{HashMap, HashSet};

use crate::blocktrace::ring_buffer::{EventFormat, Field, Page, PageLayout};
use crate::blocktrace::tracepoint::{TraceScope, Tracepoint};

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
    /// A request was merged at the end of another one (block_rq_merge).
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
    /// Whether a device request does what the call requested.
    pub(crate) fn asks_for(self, kind: RequestKind) -> bool {
        matches!((self, kind), (Self::Read, RequestKind::Read) | (Self::Write, RequestKind::Write))
    }
}

// From pages of the ring buffer to events.
//
// Invariant: a record that is too short, of an unknown event or of a device out of scope is passed
// over; only the first kind is counted, because only that is odd.

/// io_uring's numbers of operations that move data.
const RING_READS: [u64; 3] = [1, 4, 22];
const RING_WRITES: [u64; 3] = [2, 5, 23];

/// Reads pages into events.
pub(crate) struct PageParser {
    layout: PageLayout,
    readers: HashMap<u16, EventReader>,
    scope: TraceScope,
    /// Threads of the scope's processes.
    threads: HashSet<u32>,
    /// What was read so far, in the order of the pages.
    pub(crate) events: Vec<TraceEvent>,
    /// Records that could not be read, and records lost between pages.
    pub(crate) odd: u64,
    pub(crate) lost: u64,
}

/// How records of one event are read.
struct EventReader {
    kind: Tracepoint,
    thread: Field,
    fields: Fields,
}

/// The fields that matter of one sort of event.
enum Fields {
    Block(BlockFields),
    Split { device: Field, sector: Field, at: Field },
    CallBegan { bytes: Option<Field> },
    CallEnded,
    RingSubmit { request: Field, operation: Field },
    RingComplete { request: Field },
}

/// The fields of an event about a bio or a request.
struct BlockFields {
    device: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    /// Who was running.
    comm: Option<Field>,
}

impl Fields {
    /// The error is the name of the field that the description lacks.
    fn of(kind: Tracepoint, format: &EventFormat) -> Result<Self, &'static str> {
        let need = |name: &'static str| format.field(name).cloned().ok_or(name);
        Ok(match kind {
            Tracepoint::Split => Self::Split {
                device: need("dev")?,
                sector: need("sector")?,
                at: need("new_sector")?,
            },
            Tracepoint::EnterRead | Tracepoint::EnterWrite => {
                Self::CallBegan { bytes: Some(need("count")?) }
            }
            Tracepoint::EnterVectorRead | Tracepoint::EnterVectorWrite => {
                Self::CallBegan { bytes: None }
            }
            Tracepoint::ExitRead | Tracepoint::ExitWrite => Self::CallEnded,
            Tracepoint::RingSubmit => {
                Self::RingSubmit { request: need("req")?, operation: need("opcode")? }
            }
            Tracepoint::RingComplete => Self::RingComplete { request: need("req")? },
            _ => Self::Block(BlockFields {
                device: need("dev")?,
                sector: need("sector")?,
                sectors: need("nr_sector")?,
                rwbs: need("rwbs")?,
                comm: format.field("comm").cloned(),
            }),
        })
    }
}

impl PageParser {
    pub(crate) fn new(layout: PageLayout, scope: TraceScope) -> Self {
        Self {
            layout,
            readers: HashMap::new(),
            scope,
            threads: HashSet::new(),
            events: Vec::new(),
            odd: 0,
            lost: 0,
        }
    }

    /// Learns one event; the error is the name of the field that its description lacks.
    pub(crate) fn learn(
        &mut self,
        kind: Tracepoint,
        format: &EventFormat,
    ) -> Result<(), &'static str> {
        let thread = format.field("common_pid").cloned().ok_or("common_pid")?;
        let fields = Fields::of(kind, format)?;
        self.readers.insert(format.id, EventReader { kind, thread, fields });
        Ok(())
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.layout.page_bytes
    }

    pub(crate) fn threads(&mut self) -> &mut HashSet<u32> {
        &mut self.threads
    }

    pub(crate) fn scope(&self) -> &TraceScope {
        &self.scope
    }

    /// Forgets what was read.
    pub(crate) fn reset(&mut self) {
        self.events.clear();
        (self.odd, self.lost) = (0, 0);
    }

    /// Reads one page. Events of one processor come in the order of time.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let Some(page) = Page::new(&self.layout, bytes) else {
            self.odd += 1;
            return;
        };
        self.lost = self.lost.saturating_add(page.lost);
        for record in page {
            let id = record.payload.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
            let Some(reader) = id.and_then(|id| self.readers.get(&id)) else { continue };
            match reader.event(record.payload, &self.scope) {
                Some(ParsedEvent::Event(tid, kind)) if self.counts(tid, &kind) => {
                    self.events.push(TraceEvent { ns: record.ns, tid, kind });
                }
                Some(_) => {}
                None => self.odd += 1,
            }
        }
    }

    /// Whether an event is of a thread that matters. Block events count whatever thread was
    /// running.
    fn counts(&self, tid: u32, kind: &EventKind) -> bool {
        // A completion entry may be posted by any thread; its request shows whose it is.
        let is_own = matches!(
            kind,
            EventKind::CallBegan { .. }
                | EventKind::CallEnded { .. }
                | EventKind::RingSubmitted { .. }
        );
        !is_own || self.scope.processes.is_empty() || self.threads.contains(&tid)
    }
}

/// What a record turned out to be.
enum ParsedEvent {
    Event(u32, EventKind),
    /// Another device, or nothing that is followed.
    OutOfScope,
}

impl EventReader {
    /// `None` where the record is too short.
    fn event(&self, record: &[u8], scope: &TraceScope) -> Option<ParsedEvent> {
        let tid = self.thread.number(record)? as u32;
        let kind = match &self.fields {
            Fields::Block(fields) => match self.block(fields, record, scope)? {
                Some(kind) => kind,
                None => return Some(ParsedEvent::OutOfScope),
            },
            Fields::Split { device, sector, at } => match scope.index(device.number(record)?) {
                Some(device) => EventKind::Split {
                    device,
                    sector: sector.number(record)?,
                    at: at.number(record)?,
                },
                None => return Some(ParsedEvent::OutOfScope),
            },
            Fields::CallBegan { bytes } => EventKind::CallBegan {
                kind: self.direction(),
                bytes: bytes.as_ref().and_then(|bytes| bytes.number(record)),
            },
            Fields::CallEnded => EventKind::CallEnded { kind: self.direction() },
            Fields::RingSubmit { request, operation } => EventKind::RingSubmitted {
                request: request.number(record)?,
                kind: match operation.number(record)? {
                    number if RING_READS.contains(&number) => CallKind::Read,
                    number if RING_WRITES.contains(&number) => CallKind::Write,
                    _ => CallKind::Other,
                },
            },
            Fields::RingComplete { request } => {
                EventKind::RingCompleted { request: request.number(record)? }
            }
        };
        Some(ParsedEvent::Event(tid, kind))
    }

    fn direction(&self) -> CallKind {
        match self.kind {
            Tracepoint::EnterRead | Tracepoint::EnterVectorRead | Tracepoint::ExitRead => {
                CallKind::Read
            }
            Tracepoint::EnterWrite | Tracepoint::EnterVectorWrite | Tracepoint::ExitWrite => {
                CallKind::Write
            }
            _ => CallKind::Other,
        }
    }

    /// Outer `None`: too short; inner `None`: out of scope.
    fn block(
        &self,
        fields: &BlockFields,
        record: &[u8],
        scope: &TraceScope,
    ) -> Option<Option<EventKind>> {
        let Some(device) = scope.index(fields.device.number(record)?) else { return Some(None) };
        let letters = fields.rwbs.text(record)?;
        let comm = fields.comm.as_ref().and_then(|comm| comm.text(record));
        let span = Span {
            device,
            sector: fields.sector.number(record)?,
            sectors: fields.sectors.number(record)? as u32,
            kind: RequestKind::of(letters),
            is_sync: letters.contains(&b'S'),
        };
        Some(Some(match self.kind {
            Tracepoint::BioQueue => EventKind::BioQueued {
                span,
                by_worker: comm.is_some_and(|comm| comm.starts_with(b"kworker/")),
            },
            Tracepoint::BackMerge => EventKind::BackMerged(span),
            Tracepoint::FrontMerge => EventKind::FrontMerged(span),
            Tracepoint::GetRequest => EventKind::Got(span),
            Tracepoint::Insert => EventKind::Inserted(span),
            Tracepoint::Issue => EventKind::Issued(span),
            Tracepoint::Requeue => EventKind::Requeued(span),
            Tracepoint::RequestMerge => EventKind::RequestMerged(span),
            Tracepoint::Complete => EventKind::Completed(span),
            _ => return Some(None),
        }))
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

#[cfg(test)]
mod parser_tests {
    use super::*;
    use crate::blocktrace::ring_buffer::HEADER_PAGE;
    use crate::blocktrace::ring_buffer::tests::{page, record};
    use crate::blocktrace::tracepoint::TracedDevice;

    const ISSUE: &str = "ID: 300\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:38;\tsize:16;\tsigned:0;\n";

    fn parser(kind: Tracepoint) -> PageParser {
        let number = "7:3".parse().unwrap();
        let device = TracedDevice { name: "loop3".to_owned(), number, partitions: Vec::new() };
        let scope = TraceScope { devices: vec![device], ..TraceScope::default() };
        let mut parser = PageParser::new(PageLayout::parse(HEADER_PAGE).unwrap(), scope);
        parser.learn(kind, &EventFormat::parse(ISSUE).unwrap()).unwrap();
        parser
    }

    fn payload(device: u32, comm: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 56];
        bytes[..2].copy_from_slice(&300_u16.to_ne_bytes());
        bytes[4..8].copy_from_slice(&42_u32.to_ne_bytes());
        bytes[8..12].copy_from_slice(&device.to_ne_bytes());
        bytes[16..24].copy_from_slice(&64_u64.to_ne_bytes());
        bytes[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        bytes[28..30].copy_from_slice(b"WS");
        bytes[38..38 + comm.len()].copy_from_slice(comm);
        bytes
    }

    #[test]
    fn records_of_the_device_become_events() {
        let mut parser = parser(Tracepoint::BioQueue);
        let mut data = record(5, &payload((7 << 20) | 3, b"kworker/0:1"));
        data.extend(record(5, &payload((7 << 20) | 4, b"other device")));
        data.extend(record(5, &payload((7 << 20) | 3, b"writer")));
        data.extend(record(5, &300_u32.to_ne_bytes()));
        data.extend(record(5, &301_u32.to_ne_bytes()));
        parser.read(&page(100, 0, &data));
        parser.read(&[1, 2, 3]);
        let kind = RequestKind::Write;
        let span = Span { device: 0, sector: 64, sectors: 8, kind, is_sync: true };
        let event = |ns, by_worker| TraceEvent {
            ns,
            tid: 42,
            kind: EventKind::BioQueued { span, by_worker },
        };
        assert_eq!(parser.events, [event(105, true), event(115, false)]);
        assert_eq!((parser.odd, parser.lost), (2, 0));
    }

    #[test]
    fn a_missing_field_is_named() {
        let format = EventFormat::parse(&ISSUE.replace("nr_sector", "length")).unwrap();
        assert_eq!(parser(Tracepoint::Issue).learn(Tracepoint::Issue, &format), Err("nr_sector"));
    }

    proptest::proptest! {
        #[test]
        fn any_page_is_survived(bytes: Vec<u8>, cut in 0_usize..60) {
            let mut parser = parser(Tracepoint::Issue);
            let mut data = record(1, &payload((7 << 20) | 3, b"x"));
            data.truncate(cut);
            data.extend(bytes);
            data.truncate(4000);
            parser.read(&page(1, 0, &data));
            proptest::prop_assert!(parser.events.len() <= data.len());
        }
    }
}
