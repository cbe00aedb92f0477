//! What can be changed: a closed set, as plain data, with the closed sets of names in it.
//!
//! Invariants: a change names things by what stays the same (paths, names), never by a number that
//! the kernel gave out; a name of a setting is the kernel's own, so that a journal reads like the
//! system does. It says what is wanted; what was there before is the journal's.
//!
//! Later changes stand on earlier ones that made or set what they use: undoing in reverse order
//! never pulls away what another change stands on, and a change with nothing to put back holds
//! nothing up.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use iostrata_plan::study::IoLimits;
use serde::{Deserialize, Serialize};

use crate::seen::DeviceRef;
use crate::server::{RunAs, ServerCommand};
use crate::variables::ServerSetting;

/// One change of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Makes a file for a loop device. Undone: the file is removed.
    BackingFile {
        /// Where; must not exist, its directory must.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// How much of it is written.
        prewrite: Prewrite,
    },
    /// Attaches a free loop device. Undone: detached.
    Loop {
        /// The file, over which there is no loop device yet.
        backing: PathBuf,
        /// Direct I/O on the file, so that nothing is cached twice; refused is an error.
        direct: bool,
        /// Logical block size of the device in bytes; absent: the kernel's choice.
        block_bytes: Option<u32>,
    },
    /// Makes a file system. What the device held before is lost and cannot be put back.
    MakeFilesystem {
        /// On what.
        device: DeviceRef,
        /// Which.
        kind: FilesystemKind,
        /// Further arguments of the mkfs program, one per element.
        options: Vec<String>,
        /// Name of the file system.
        label: Option<String>,
    },
    /// Mounts a file system. Undone: unmounted, and directories that were made for it removed.
    Mount {
        /// What.
        device: DeviceRef,
        /// Where: an empty directory, or one that is made with all above it.
        at: PathBuf,
        /// Its type.
        kind: FilesystemKind,
        /// Mount options as of mount(8), one per element.
        options: Vec<String>,
    },
    /// Starts a program that serves a file system through FUSE, in a session of its own and with
    /// `/` as its directory, and waits until `at` is mounted and the file `disk` in it answers.
    /// Undone: the program ended, unmounted, and directories that were made for it removed.
    FuseServer {
        /// Where: an empty directory, or one that is made with all above it. It is the program's
        /// last argument, by which the process is found again.
        at: PathBuf,
        /// The program; absolute.
        program: PathBuf,
        /// Its arguments before `at`; paths in them are absolute.
        arguments: Vec<String>,
        /// Whether it keeps the session's journal locked, so that [`crate::Session::hand_over`] can
        /// leave it behind.
        holds_journal: bool,
    },
    /// Changes options of a mount that the same session made. Undone: the options as before.
    Remount {
        /// Where it is mounted.
        at: PathBuf,
        /// Options to set; only those that have an opposite, so that they can be undone.
        options: Vec<String>,
    },
    /// Sets an attribute of a queue. Undone: the value before, with all that setting it reset.
    Queue {
        /// Of which device; for a partition its disk is meant.
        device: DeviceRef,
        /// Which.
        attribute: QueueAttribute,
        /// To what; the kernel may take another value.
        value: String,
    },
    /// Writes dirty pages and drops the page cache. Nothing to undo.
    DropCaches,
    /// Sets a write-back setting. Undone: the value before, in the form that it had.
    Sysctl {
        /// Which.
        which: VmSetting,
        /// To what.
        value: u64,
    },
    /// Makes a group whose memory, page cache included, is limited. Undone: removed.
    MemoryGroup {
        /// Its name within the session.
        name: String,
        /// Limit in bytes.
        limit_bytes: u64,
    },
    /// Makes a group whose processor time is limited. Undone: removed.
    CpuGroup {
        /// Its name within the session; the same as another group's makes them one.
        name: String,
        /// Thousandths of one processor.
        milli_cpus: u64,
    },
    /// Makes a group whose I/O on a device is limited. Undone: removed.
    IoGroup {
        /// Its name within the session; the same as another group's makes them one.
        name: String,
        /// On which device; for a partition its disk is meant.
        device: DeviceRef,
        /// How much.
        limits: IoLimits,
    },
    /// Moves this process into the groups of a name that the same session made. Undone: back to
    /// where it was, so a load can be in it for one point and out of it for the next.
    EnterGroup {
        /// The name.
        name: String,
    },
    /// Sets the frequency governor of a processor. Undone: the one before.
    Governor {
        /// Number of the processor.
        cpu: u32,
        /// Which governor.
        value: String,
    },
    /// Makes a directory for databases of this run. Undone: removed with all that is in it.
    ServerDirectory {
        /// Where; must not exist, the directory above it must.
        path: PathBuf,
    },
    /// Starts a database server in a session of its own and waits until it greets on its socket. It
    /// dies with this process. Undone: ended.
    DatabaseServer {
        /// Its data directory: in one that the same session made, unless `is_named`. An argument
        /// names it, by which the process is found again.
        data_dir: PathBuf,
        /// The user named this very directory as one that a server may be started on.
        is_named: bool,
        /// Where it listens.
        socket: PathBuf,
        /// The program, absolute, or a script that ends by executing it with the same arguments.
        program: PathBuf,
        /// All its arguments; paths in them are absolute and free of links.
        arguments: Vec<String>,
        /// The groups of this name, made by the same session, in which it runs.
        group: Option<String>,
        /// As whom it runs; absent: as this process.
        run_as: Option<RunAs>,
    },
    /// Sets global variables of a database server, until the server ends, and lets
    /// [`crate::Session::adjust`] change them later. Undone: the values before, on the same running
    /// server, in an order in which none cuts another.
    ServerSettings {
        /// Address of the server, without secrets.
        server: String,
        /// What is set at once; the server may take other values. Settings that bound each other
        /// are set in an order of their own, the others in this one.
        settings: Vec<ServerSetting>,
        /// What else may be adjusted later, by name.
        adjustable: Vec<String>,
    },
    /// Mounts tracefs where the kernel wants it, unless it is mounted. Undone: unmounted, unless
    /// somebody uses it by then.
    MountTracefs,
    /// Makes a trace buffer of its own. Undone: removed.
    TraceInstance {
        /// Its name within the session.
        name: String,
        /// Events to enable, as `block:block_rq_issue`.
        events: Vec<String>,
        /// Buffer per processor, in KiB.
        buffer_kib: u64,
        /// Clock of its time stamps, as `mono`.
        clock: String,
    },
}

impl Change {
    /// Whether there is something to put back. File systems that were made and caches that were
    /// dropped stay so.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::MakeFilesystem { .. } | Self::DropCaches)
    }

    /// The same with every path made absolute and free of links, so that it leads to the same
    /// place from a later process and reads as in the kernel's tables.
    #[must_use]
    pub(crate) fn located(mut self, real: impl Fn(&Path) -> PathBuf) -> Self {
        let place = |device: &mut DeviceRef| match device {
            DeviceRef::Loop { backing: path } | DeviceRef::Named { path, .. } => *path = real(path),
        };
        match &mut self {
            Self::BackingFile { path, .. }
            | Self::Loop { backing: path, .. }
            | Self::FuseServer { at: path, .. }
            | Self::ServerDirectory { path }
            | Self::Remount { at: path, .. } => *path = real(path),
            Self::Mount { device, at, .. } => {
                *at = real(at);
                place(device);
            }
            Self::DatabaseServer { data_dir, socket, .. } => {
                *data_dir = real(data_dir);
                *socket = real(socket);
            }
            Self::MakeFilesystem { device, .. }
            | Self::Queue { device, .. }
            | Self::IoGroup { device, .. } => place(device),
            _ => {}
        }
        self
    }

    /// The server settings that it names.
    pub(crate) fn named_settings(&self) -> Vec<&str> {
        match self {
            Self::ServerSettings { settings, adjustable, .. } => {
                let set = settings.iter().map(|one| one.name.as_str());
                set.chain(adjustable.iter().map(String::as_str)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The device that it works on.
    pub(crate) fn device(&self) -> Option<&DeviceRef> {
        match self {
            Self::MakeFilesystem { device, .. }
            | Self::Mount { device, .. }
            | Self::Queue { device, .. }
            | Self::IoGroup { device, .. } => Some(device),
            _ => None,
        }
    }
    /// The command line of the server that it starts.
    pub(crate) fn server(&self) -> Option<ServerCommand> {
        match self {
            Self::FuseServer { at, program, arguments, .. } => {
                let place = OsString::from(at);
                let arguments = arguments.iter().map(OsString::from).chain([place]).collect();
                Some(ServerCommand { program: program.clone(), arguments, may_be_wrapped: false })
            }
            Self::DatabaseServer { program, arguments, .. } => {
                let arguments = arguments.iter().map(OsString::from).collect();
                Some(ServerCommand { program: program.clone(), arguments, may_be_wrapped: true })
            }
            _ => None,
        }
    }
}

/// Whether `later` stands on `earlier`.
pub(crate) fn stands_on(later: &Change, earlier: &Change) -> bool {
    if !later.is_lasting() {
        return false;
    }
    let uses_device = |path: &Path| later.device().is_some_and(|device| is_over(device, path));
    match earlier {
        Change::BackingFile { path, .. } => {
            matches!(later, Change::Loop { backing, .. } if backing == path) || uses_device(path)
        }
        Change::Loop { backing, .. } => uses_device(backing),
        Change::Mount { at, .. } | Change::Remount { at, .. } | Change::FuseServer { at, .. } => {
            places(later).iter().any(|place| place.starts_with(at))
        }
        // Attributes of one queue reset each other.
        Change::Queue { device, .. } => {
            matches!(later, Change::Queue { device: other, .. } if same_device(device, other))
        }
        Change::Sysctl { which, .. } => {
            matches!(later, Change::Sysctl { which: other, .. } if are_one(*which, *other))
        }
        Change::ServerDirectory { path } => {
            places(later).iter().any(|place| place.starts_with(path))
        }
        Change::DatabaseServer { socket, .. } => {
            let socket = socket.to_string_lossy();
            matches!(later, Change::ServerSettings { server, .. } if server.contains(&*socket))
        }
        Change::MemoryGroup { name, .. }
        | Change::CpuGroup { name, .. }
        | Change::IoGroup { name, .. } => match later {
            Change::DatabaseServer { group, .. } => group.as_ref() == Some(name),
            Change::EnterGroup { name: other }
            | Change::MemoryGroup { name: other, .. }
            | Change::CpuGroup { name: other, .. }
            | Change::IoGroup { name: other, .. } => name == other,
            _ => false,
        },
        // Homes nest: who enters a second group comes back to the first.
        Change::EnterGroup { .. } => matches!(later, Change::EnterGroup { .. }),
        Change::Governor { cpu, .. } => {
            matches!(later, Change::Governor { cpu: other, .. } if cpu == other)
        }
        // One group may set what another noted as before, so they go back in reverse order.
        Change::ServerSettings { server, .. } => {
            matches!(later, Change::ServerSettings { server: other, .. } if server == other)
        }
        Change::MountTracefs => matches!(later, Change::TraceInstance { .. }),
        Change::TraceInstance { .. } | Change::MakeFilesystem { .. } | Change::DropCaches => false,
    }
}

fn is_over(device: &DeviceRef, path: &Path) -> bool {
    matches!(device, DeviceRef::Loop { backing } if backing == path)
}

fn same_device(one: &DeviceRef, other: &DeviceRef) -> bool {
    match (one, other) {
        (DeviceRef::Named { path: one, .. }, DeviceRef::Named { path: other, .. }) => one == other,
        (one, other) => one == other,
    }
}

fn are_one(one: VmSetting, other: VmSetting) -> bool {
    one == other || one.other_form() == Some(other)
}

/// Paths that a change needs.
fn places(change: &Change) -> Vec<&PathBuf> {
    match change {
        Change::BackingFile { path, .. } | Change::Loop { backing: path, .. } => vec![path],
        Change::Mount { at, .. } | Change::Remount { at, .. } | Change::FuseServer { at, .. } => {
            vec![at]
        }
        Change::ServerDirectory { path } => vec![path],
        Change::DatabaseServer { data_dir, socket, .. } => vec![data_dir, socket],
        _ => Vec::new(),
    }
}

/// A closed set with the kernel's name of each.
macro_rules! named {
    (
        $(#[$doc:meta])* $set:ident ($($derive:ident),*) {
            $($(#[$one:meta])* $value:ident = $name:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize $(, $derive)*)]
        pub enum $set {
            $($(#[$one])* #[serde(rename = $name)] $value,)*
        }

        impl $set {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// The kernel's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            /// The one of this name.
            pub fn of(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

named! {
    /// An attribute of a block device's queue, `/sys/block/<disk>/queue/<name>`; the scheduler
    /// first.
    QueueAttribute (PartialOrd, Ord) {
        /// Which I/O scheduler. Switching it resets others, `nr_requests` first of all.
        Scheduler = "scheduler",
        /// Requests that the queue holds.
        NrRequests = "nr_requests",
        /// Read-ahead, in KiB.
        ReadAheadKb = "read_ahead_kb",
        /// 0 merges all it can, 1 only simple merges, 2 none.
        Nomerges = "nomerges",
        /// Where completions run: 0 anywhere, 1 the submitter's group, 2 the very processor.
        RqAffinity = "rq_affinity",
        /// Latency goal of write-back throttling, in us; 0 turns it off.
        WbtLatUsec = "wbt_lat_usec",
        /// Whether completions feed the random pool.
        AddRandom = "add_random",
        /// Whether counters are kept.
        Iostats = "iostats",
    }
}

named! {
    /// A write-back setting of the kernel, `/proc/sys/vm/<name>`.
    VmSetting (PartialOrd, Ord) {
        /// Dirty share of memory at which writers write themselves, in %.
        DirtyRatio = "dirty_ratio",
        /// Dirty share of memory at which write-back begins, in %.
        DirtyBackgroundRatio = "dirty_background_ratio",
        /// As `dirty_ratio`, in bytes; setting one turns the other to 0.
        DirtyBytes = "dirty_bytes",
        /// As `dirty_background_ratio`, in bytes; setting one turns the other to 0.
        DirtyBackgroundBytes = "dirty_background_bytes",
        /// Age at which a dirty page is written, in hundredths of a second.
        DirtyExpireCentisecs = "dirty_expire_centisecs",
        /// Interval of write-back, in hundredths of a second.
        DirtyWritebackCentisecs = "dirty_writeback_centisecs",
    }
}

impl VmSetting {
    /// The other form of the same limit, which the kernel turns to 0 when this one is set.
    pub fn other_form(self) -> Option<Self> {
        match self {
            Self::DirtyRatio => Some(Self::DirtyBytes),
            Self::DirtyBytes => Some(Self::DirtyRatio),
            Self::DirtyBackgroundRatio => Some(Self::DirtyBackgroundBytes),
            Self::DirtyBackgroundBytes => Some(Self::DirtyBackgroundRatio),
            Self::DirtyExpireCentisecs | Self::DirtyWritebackCentisecs => None,
        }
    }
}

named! {
    /// A file system that can be made.
    FilesystemKind () {
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// btrfs.
        Btrfs = "btrfs",
    }
}

impl FilesystemKind {
    /// The program that makes it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
        }
    }

    /// Debian's package with the program.
    pub fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
        }
    }

    /// Arguments of every call: no discard, nothing put off until after mounting, and no question
    /// about old contents, which were looked at before.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            Self::Xfs => &["-q", "-f", "-K"],
            Self::Btrfs => &["-q", "-f", "-K"],
        }
    }
}

/// How much of a backing file is written when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prewrite {
    /// Every byte, with data that no storage can shrink, past the page cache; the extents are
    /// checked.
    All,
    /// Nothing: the file is only allocated. What a load touches has to be written first, and
    /// [`touched_unwritten_bytes`](crate::touched_unwritten_bytes) tells whether it was.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(attribute: QueueAttribute, backing: &str) -> Change {
        let device = DeviceRef::Loop { backing: backing.into() };
        Change::Queue { device, attribute, value: "1".into() }
    }

    fn vm(which: VmSetting) -> Change {
        Change::Sysctl { which, value: 1 }
    }

    #[test]
    fn devices_stand_on_what_they_are_over() {
        let file = Change::BackingFile { path: "/a".into(), bytes: 1, prewrite: Prewrite::None };
        let attached = Change::Loop { backing: "/a".into(), direct: true, block_bytes: None };
        let kind = FilesystemKind::Ext4;
        let device = DeviceRef::Loop { backing: "/a".into() };
        let mount =
            Change::Mount { device: device.clone(), at: "/m".into(), kind, options: vec![] };
        let made = Change::MakeFilesystem { device, kind, options: vec![], label: None };
        let inner = Change::BackingFile { path: "/m/b".into(), bytes: 1, prewrite: Prewrite::All };
        assert!(stands_on(&attached, &file) && !stands_on(&file, &attached));
        assert!(stands_on(&mount, &attached) && stands_on(&mount, &file));
        assert!(stands_on(&inner, &mount));
        assert!(!stands_on(&made, &attached), "nothing to put back");
        assert!(!stands_on(&queue(QueueAttribute::Iostats, "/b"), &attached));
    }

    #[test]
    fn a_loop_device_stands_on_the_server_of_its_file() {
        let at = PathBuf::from("/m/served");
        let server = Change::FuseServer {
            at: at.clone(),
            program: "/bin/program".into(),
            arguments: vec![],
            holds_journal: false,
        };
        let attached = Change::Loop { backing: at.join("disk"), direct: true, block_bytes: None };
        let other = Change::Loop { backing: "/m/disk".into(), direct: true, block_bytes: None };
        let device = DeviceRef::Loop { backing: "/a".into() };
        let kind = FilesystemKind::Ext4;
        let below = Change::Mount { device, at: "/m".into(), kind, options: vec![] };
        assert!(stands_on(&attached, &server) && !stands_on(&server, &attached));
        assert!(!stands_on(&other, &server));
        assert!(stands_on(&server, &below) && !stands_on(&below, &server));
    }

    #[test]
    fn settings_stand_on_what_resets_them() {
        use QueueAttribute::{Iostats, NrRequests, Scheduler};
        assert!(stands_on(&queue(NrRequests, "/a"), &queue(Scheduler, "/a")));
        assert!(stands_on(&queue(Scheduler, "/a"), &queue(NrRequests, "/a")));
        assert!(stands_on(&queue(NrRequests, "/a"), &queue(Iostats, "/a")));
        assert!(!stands_on(&queue(NrRequests, "/a"), &queue(Scheduler, "/b")));
        assert!(stands_on(&vm(VmSetting::DirtyBytes), &vm(VmSetting::DirtyRatio)));
        assert!(!stands_on(&vm(VmSetting::DirtyBytes), &vm(VmSetting::DirtyBackgroundRatio)));
    }

    #[test]
    fn names_lead_back() {
        for one in QueueAttribute::ALL {
            assert_eq!(QueueAttribute::of(one.name()), Some(one));
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.name()));
        }
        for one in VmSetting::ALL {
            assert_eq!(VmSetting::of(one.name()), Some(one));
            assert_eq!(one.other_form().and_then(VmSetting::other_form).unwrap_or(one), one);
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.name()));
        }
        for one in FilesystemKind::ALL {
            assert_eq!(FilesystemKind::of(one.name()), Some(one));
        }
    }
}
