//! The kernel's events that are read, and what each is for.
//!
//! Invariant: an event that is required carries a segment's border; without it nothing can be said.

/// One kernel event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracepoint {
    BioQueue,
    BackMerge,
    FrontMerge,
    Split,
    GetRequest,
    Insert,
    Issue,
    Requeue,
    RequestMerge,
    Complete,
    EnterRead,
    EnterWrite,
    EnterVectorRead,
    EnterVectorWrite,
    ExitRead,
    ExitWrite,
    RingSubmit,
    RingComplete,
}

/// An event with its name.
pub(crate) struct Known {
    pub(crate) kind: Tracepoint,
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
}

impl Known {
    /// As in the kernel's `available_events`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }

    /// Its directory below the tracing file system or an instance.
    pub(crate) fn directory(&self) -> String {
        format!("events/{}/{}", self.system, self.name)
    }

    /// Whether the thread that it happens in is the caller. A completion entry may be posted by
    /// another one.
    pub(crate) fn is_of_caller(&self) -> bool {
        !self.is_of_device() && self.kind != Tracepoint::RingComplete
    }

    /// Whether it names a block device.
    pub(crate) fn is_of_device(&self) -> bool {
        self.system == "block"
    }
}

const fn block(kind: Tracepoint, name: &'static str, is_required: bool) -> Known {
    Known { kind, system: "block", name, is_required }
}

const fn call(kind: Tracepoint, name: &'static str) -> Known {
    Known { kind, system: "syscalls", name, is_required: false }
}

const fn ring(kind: Tracepoint, name: &'static str) -> Known {
    Known { kind, system: "io_uring", name, is_required: false }
}

/// Every event that is read.
pub(crate) const KNOWN: &[Known] = &[
    block(Tracepoint::BioQueue, "block_bio_queue", true),
    block(Tracepoint::BackMerge, "block_bio_backmerge", true),
    block(Tracepoint::FrontMerge, "block_bio_frontmerge", true),
    block(Tracepoint::Split, "block_split", true),
    block(Tracepoint::GetRequest, "block_getrq", true),
    block(Tracepoint::Insert, "block_rq_insert", true),
    block(Tracepoint::Issue, "block_rq_issue", true),
    block(Tracepoint::Requeue, "block_rq_requeue", true),
    block(Tracepoint::Complete, "block_rq_complete", true),
    // Since Linux 5.11.
    block(Tracepoint::RequestMerge, "block_rq_merge", false),
    call(Tracepoint::EnterRead, "sys_enter_pread64"),
    call(Tracepoint::EnterWrite, "sys_enter_pwrite64"),
    call(Tracepoint::EnterVectorRead, "sys_enter_preadv2"),
    call(Tracepoint::EnterVectorWrite, "sys_enter_pwritev2"),
    call(Tracepoint::ExitRead, "sys_exit_pread64"),
    call(Tracepoint::ExitWrite, "sys_exit_pwrite64"),
    call(Tracepoint::ExitRead, "sys_exit_preadv2"),
    call(Tracepoint::ExitWrite, "sys_exit_pwritev2"),
    ring(Tracepoint::RingSubmit, "io_uring_submit_req"),
    ring(Tracepoint::RingComplete, "io_uring_complete"),
];
