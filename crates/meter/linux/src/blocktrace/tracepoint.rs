//! The kernel's events that are read, what each is for, and the memory that they need.
//!
//! Invariant: an event that is required carries a segment's border; without it nothing can be said.

use std::path::Path;

use crate::blocktrace::TraceError;

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

/// Bytes that the events of one request take in the kernel's buffer: at most 9 events of 72.
const BYTES_PER_REQUEST: f64 = 9.0 * 72.0;
/// Smallest and largest buffer of one processor, in KiB.
const BUFFER_KIB: (u64, u64) = (1 << 10, 64 << 10);

/// The events to enable in the instance, as `system:event`: those of the wanted ones that this
/// kernel has. `tracefs` is where the tracing file system is mounted.
///
/// # Errors
/// [`TraceError::NoTracefs`], [`TraceError::Denied`], and [`TraceError::NoEvents`] when one is
/// missing without which nothing can be said.
pub fn events(tracefs: &Path) -> Result<Vec<String>, TraceError> {
    let all = tracefs.join("events");
    match std::fs::read_dir(&all) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(TraceError::Denied { path: all });
        }
        Err(_) => return Err(TraceError::NoTracefs { path: tracefs.to_owned() }),
        Ok(_) => {}
    }
    let is_there = |known: &&Known| tracefs.join(known.directory()).is_dir();
    let names = |known: Vec<&Known>| known.iter().map(|known| known.full_name()).collect();
    let (found, missing): (Vec<&Known>, Vec<&Known>) = KNOWN.iter().partition(is_there);
    let missing: Vec<&Known> = missing.into_iter().filter(|known| known.is_required).collect();
    if missing.is_empty() {
        Ok(names(found))
    } else {
        Err(TraceError::NoEvents { events: names(missing) })
    }
}

/// Size of the buffer of each processor, in KiB, that holds a window of so many requests. One
/// processor may have to hold all of them.
pub fn buffer_kib(requests_per_s: f64, seconds: f64) -> u64 {
    let wanted_kib = requests_per_s * seconds * BYTES_PER_REQUEST * 1.25 / 1024.0;
    // Casts saturate, and not-a-number becomes 0.
    (wanted_kib.ceil() as u64).clamp(BUFFER_KIB.0, BUFFER_KIB.1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_not_asked_for() {
        let tracefs = tempfile::tempdir().unwrap();
        assert!(matches!(events(tracefs.path()), Err(TraceError::NoTracefs { .. })));
        for known in KNOWN.iter().filter(|known| known.is_of_device()) {
            fs::create_dir_all(tracefs.path().join(known.directory())).unwrap();
        }
        let found = events(tracefs.path()).unwrap();
        assert!(found.contains(&"block:block_rq_issue".to_owned()));
        assert!(!found.iter().any(|name| name.starts_with("io_uring")));
        fs::remove_dir(tracefs.path().join("events/block/block_rq_merge")).unwrap();
        assert_eq!(events(tracefs.path()).unwrap().len(), found.len() - 1);
        fs::remove_dir(tracefs.path().join("events/block/block_rq_issue")).unwrap();
        let Err(TraceError::NoEvents { events }) = events(tracefs.path()) else { panic!() };
        assert_eq!(events, ["block:block_rq_issue"]);
    }

    #[test]
    fn buffers_grow_with_the_window_within_bounds() {
        assert_eq!(buffer_kib(10.0, 0.3), 1 << 10);
        assert_eq!(buffer_kib(1e9, 10.0), 64 << 10);
        assert_eq!(buffer_kib(f64::NAN, 1.0), 1 << 10);
        let kib = buffer_kib(100_000.0, 0.3);
        assert!((20 << 10..=32 << 10).contains(&kib), "{kib}");
    }
}
