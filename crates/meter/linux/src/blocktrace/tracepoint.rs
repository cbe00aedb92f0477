//! What is traced: the kernel's events that are read, what each is for, and the memory that they
//! need; devices and whose calls; and what can go wrong while tracing, each with its fix.
//!
//! Invariant: an event that is required carries a segment's border; without it no result is
//! possible.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_run::host::{BlockLayer, DeviceNumber, LayerKind, PathFacts};

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
pub(crate) struct NamedEvent {
    pub(crate) kind: Tracepoint,
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
}

impl NamedEvent {
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

const fn block(kind: Tracepoint, name: &'static str, is_required: bool) -> NamedEvent {
    NamedEvent { kind, system: "block", name, is_required }
}

const fn call(kind: Tracepoint, name: &'static str) -> NamedEvent {
    NamedEvent { kind, system: "syscalls", name, is_required: false }
}

const fn ring(kind: Tracepoint, name: &'static str) -> NamedEvent {
    NamedEvent { kind, system: "io_uring", name, is_required: false }
}

/// Every event that is read.
pub(crate) const KNOWN: &[NamedEvent] = &[
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

/// The events to enable in the instance, as `system:event`: the wanted ones that this kernel has.
/// `tracefs` is where the tracing file system is mounted.
///
/// # Errors
/// [`TraceError::NoTracefs`], [`TraceError::Denied`], and [`TraceError::NoEvents`] when a required
/// one is missing.
pub fn events(tracefs: &Path) -> Result<Vec<String>, TraceError> {
    let all = tracefs.join("events");
    match std::fs::read_dir(&all) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(TraceError::Denied { path: all });
        }
        Err(_) => return Err(TraceError::NoTracefs { path: tracefs.to_owned() }),
        Ok(_) => {}
    }
    let is_there = |known: &&NamedEvent| tracefs.join(known.directory()).is_dir();
    let names = |known: Vec<&NamedEvent>| known.iter().map(|known| known.full_name()).collect();
    let (found, missing): (Vec<&NamedEvent>, Vec<&NamedEvent>) = KNOWN.iter().partition(is_there);
    let missing: Vec<&NamedEvent> = missing.into_iter().filter(|known| known.is_required).collect();
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

// What to trace: devices and whose calls.

/// What to trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceScope {
    /// The devices whose requests count: the topmost ones with a request queue of their own.
    pub devices: Vec<TracedDevice>,
    /// Processes whose calls count. Empty: calls of any process that the devices serve; then
    /// waiting for a limit is not distinguished from the file system.
    pub processes: Vec<u32>,
    /// Whether a control group limits the I/O of those processes on those devices. Only then is
    /// waiting for a limit distinguished from the file system.
    pub is_limited: bool,
}

/// One device with a request queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedDevice {
    /// Kernel name.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Numbers of its partitions that are in use: bios carry the partition's number, requests the
    /// disk's, and both count sectors from the start of the disk.
    pub partitions: Vec<DeviceNumber>,
}

impl TraceScope {
    /// The devices that serve a path, for the calls of `processes`.
    ///
    /// Devices without requests of their own (partitions, logical volumes, software RAID, caches)
    /// are passed through to the ones below, down to a disk or a loop device.
    pub fn of(facts: &PathFacts, processes: Vec<u32>) -> Self {
        let devices = devices(&facts.block_stack);
        Self { devices, processes, is_limited: !facts.limits.is_empty() }
    }

    /// Names of the devices, as the result carries them.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        names.join("+")
    }

    /// The index of the device that a number of the kernel's trace stands for.
    pub(crate) fn index(&self, traced_number: u64) -> Option<u8> {
        let is_it = |number: &DeviceNumber| u64::from(kernel_number(*number)) == traced_number;
        let at = self
            .devices
            .iter()
            .position(|device| is_it(&device.number) || device.partitions.iter().any(is_it))?;
        u8::try_from(at).ok()
    }

    /// A filter expression that these devices pass.
    pub(crate) fn device_filter(&self) -> String {
        let numbers = self
            .devices
            .iter()
            .flat_map(|device| std::iter::once(device.number).chain(device.partitions.clone()));
        let tests: Vec<String> =
            numbers.map(|number| format!("dev == {}", kernel_number(number))).collect();
        tests.join(" || ")
    }
}

fn devices(stack: &[BlockLayer]) -> Vec<TracedDevice> {
    let mut devices: Vec<TracedDevice> = Vec::new();
    let mut open: Vec<(&BlockLayer, Option<DeviceNumber>)> =
        stack.iter().filter(|layer| layer.depth == 0).map(|layer| (layer, None)).collect();
    // A stack has no circles; the bound only keeps odd facts from running on.
    for _ in 0..stack.len() * 4 {
        let Some((layer, partition)) = open.pop() else { break };
        let has_requests = matches!(layer.kind, LayerKind::Disk | LayerKind::Loop { .. });
        if let (true, Some(number)) = (has_requests, layer.device_number) {
            add(&mut devices, &layer.name, number, partition);
        } else {
            let is_partition = matches!(layer.kind, LayerKind::Partition { .. });
            let partition = layer.device_number.filter(|_| is_partition);
            let below = stack.iter().filter(|lower| layer.below.contains(&lower.name));
            open.extend(below.map(|lower| (lower, partition)));
        }
    }
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    devices
}

fn add(
    devices: &mut Vec<TracedDevice>,
    name: &str,
    number: DeviceNumber,
    partition: Option<DeviceNumber>,
) {
    let at = devices.iter().position(|device| device.number == number).unwrap_or_else(|| {
        devices.push(TracedDevice { name: name.to_owned(), number, partitions: Vec::new() });
        devices.len() - 1
    });
    if let (Some(device), Some(partition)) = (devices.get_mut(at), partition)
        && !device.partitions.contains(&partition)
    {
        device.partitions.push(partition);
    }
}

/// The kernel's own form of a device number, which differs from the form in user space.
fn kernel_number(number: DeviceNumber) -> u32 {
    (number.major << 20) | (number.minor & 0xf_ffff)
}

// What can go wrong while tracing, each with its fix.

/// Why latency by layer could not be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No tracing file system is mounted at this place.
    #[error(
        "{} is not a tracing file system; mount one: mount -t tracefs tracefs /sys/kernel/tracing",
        path.display()
    )]
    NoTracefs {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The trace instance is not there.
    #[error("there is no trace instance at {}; it has to be made before tracing", path.display())]
    NoInstance {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// This user may not trace.
    #[error("{} is closed to this user; run as root", path.display())]
    Denied {
        /// The file that was refused.
        path: PathBuf,
    },
    /// The kernel was built without these events.
    #[error(
        "this kernel has no event {}; one with CONFIG_BLK_DEV_IO_TRACE is needed", .events.join(", ")
    )]
    NoEvents {
        /// `system:event`.
        events: Vec<String>,
    },
    /// The instance is there, but does not record what is needed.
    #[error(
        "the trace instance {} does not record {}; enable these events in it",
        path.display(), .events.join(", ")
    )]
    EventsOff {
        /// The instance.
        path: PathBuf,
        /// `system:event`.
        events: Vec<String>,
    },
    /// The clock of the instance does not count nanoseconds that all processors agree on.
    #[error("the trace instance {} uses the clock {clock}; set mono", path.display())]
    WrongClock {
        /// The instance.
        path: PathBuf,
        /// The clock that is set.
        clock: String,
    },
    /// The kernel describes its events in a way that is not understood.
    #[error("{} is not understood: {what}; this kernel's trace format is unknown", path.display())]
    UnknownFormat {
        /// The description.
        path: PathBuf,
        /// What is missing in it.
        what: String,
    },
    /// Nothing to trace.
    #[error("no block device to trace was named; tmpfs and network file systems have none")]
    NoDevice,
    /// A file of the instance could not be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A setting of the instance could not be changed.
    #[error("{file} of the trace instance cannot be set to {value:?}: {source}")]
    NotSet {
        /// The file within the instance.
        file: String,
        /// The wanted value.
        value: String,
        /// The system's error.
        source: io::Error,
    },
    /// The steps of a trace came in the wrong order.
    #[error("cannot {asked} a trace that is {state}; the order is start, stop, take")]
    OutOfOrder {
        /// The step requested.
        asked: &'static str,
        /// What the trace was doing.
        state: &'static str,
    },
}

impl TraceError {
    /// The error of reading `path`.
    pub(crate) fn reading(path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Unreadable { path, source },
        }
    }
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

#[cfg(test)]
mod scope_tests {
    use super::*;

    fn number(text: &str) -> DeviceNumber {
        text.parse().unwrap()
    }

    fn layer(name: &str, at: &str, kind: LayerKind, depth: u32, below: &[&str]) -> BlockLayer {
        BlockLayer {
            name: name.to_owned(),
            device_number: Some(number(at)),
            kind,
            depth,
            below: below.iter().map(|&name| name.to_owned()).collect(),
            size_bytes: None,
            alignment_offset_bytes: None,
        }
    }

    #[test]
    fn devices_without_requests_are_passed_through() {
        let partition = || LayerKind::Partition { number: None, start_bytes: None };
        let stack = [
            layer("dm-0", "253:0", LayerKind::Lvm { name: None }, 0, &["sda2", "sdb1"]),
            layer("sda2", "8:2", partition(), 1, &["sda"]),
            layer("sdb1", "8:17", partition(), 1, &["sdb"]),
            layer("sda", "8:0", LayerKind::Disk, 2, &[]),
            layer("sdb", "8:16", LayerKind::Disk, 2, &[]),
        ];
        let found = devices(&stack);
        let numbers: Vec<_> = found.iter().map(|d| (d.number, d.partitions.clone())).collect();
        let wanted = [("8:0", "8:2"), ("8:16", "8:17")];
        assert_eq!(numbers, wanted.map(|(disk, part)| (number(disk), vec![number(part)])));
        let looped = LayerKind::Loop {
            backing_file: None,
            direct_io: None,
            offset_bytes: None,
            backing_file_system: None,
            backing_block_bytes: None,
        };
        let stack = [
            layer("loop1", "7:1", looped, 0, &["sda"]),
            layer("sda", "8:0", LayerKind::Disk, 1, &[]),
        ];
        let found = devices(&stack);
        assert_eq!((found.len(), found[0].name.as_str()), (1, "loop1"));
    }

    #[test]
    fn numbers_of_disk_and_partition_mean_the_disk() {
        let mut devices = Vec::new();
        add(&mut devices, "sda", number("8:0"), Some(number("8:1")));
        add(&mut devices, "sda", number("8:0"), Some(number("8:1")));
        add(&mut devices, "loop3", number("7:3"), None);
        let scope = TraceScope { devices, ..TraceScope::default() };
        assert_eq!(scope.names(), "sda+loop3");
        assert_eq!(scope.index((8 << 20) | 1), Some(0));
        assert_eq!(scope.index(8 << 20), Some(0));
        assert_eq!(scope.index((7 << 20) | 3), Some(1));
        assert_eq!(scope.index((7 << 20) | 4), None);
        assert_eq!(scope.device_filter(), "dev == 8388608 || dev == 8388609 || dev == 7340035");
    }
}
