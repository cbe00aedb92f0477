//! Groups with limits: where one with a controller can be made, in either generation of control
//! groups, and this process moved into its groups and back.
//!
//! Version 1: below this process's own group, so that limits above stay in force. Version 2: groups
//! with processes cannot have limited children, so beside it, under the nearest group above that
//! passes the controller on; at the top it is enabled when it is not. Invariants: a group is made
//! by us under a name that carries our process, and goes with its limits; processes that are still
//! in it at the end are moved to the group around it. Only the process of the journal is moved, and
//! only back to where it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;
use iostrata_plan::study::IoLimits;

use crate::change::Change;
use crate::effect::{Effect, GroupVersion, How, Left, Move, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::kind;
use crate::platform::{self, Platform};
use crate::seen::{DeviceRef, Owner};

/// In which a limit of processor time is kept.
const CPU_PERIOD_US: u64 = 100_000;

/// What is limited; of I/O the disk's number too.
pub(super) enum Limits {
    Memory(u64),
    /// Thousandths of one processor.
    Cpu(u64),
    Io(String, IoLimits),
}

pub(super) fn prior(
    platform: &dyn Platform,
    name: &str,
    controller: &str,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let place = place(platform, controller)?;
    let dir = place.parent.join(format!("{OWN}{}-{name}", platform.owner().pid));
    let is_made = active
        .iter()
        .any(|entry| matches!(&entry.prior, Prior::Group { dir: other, .. } if *other == dir));
    let exists = platform.look(&dir).map_err(|source| system("look at", &dir, source))?.is_some();
    if exists && !is_made {
        let found = "exists".to_owned();
        let fix = "run iostrata restore, which removes groups of killed runs";
        return Err(ChangeError::Taken { path: dir, found, fix });
    }
    Ok(Prior::Group { version: place.version, dir, make: !is_made, enable: place.enable })
}

/// Number of the disk that a device is or lies on, `7:3`.
pub(super) fn number_of(
    platform: &dyn Platform,
    device: &DeviceRef,
) -> Result<String, ChangeError> {
    let found = kind::resolve(platform, device)?;
    let cell = Path::new("/sys/block").join(found.disk).join("dev");
    platform.read(&cell).map_err(|source| system("read", &cell, source))
}

pub(super) fn apply(
    platform: &dyn Platform,
    prior: &Prior,
    change: &Change,
    limits: &Limits,
) -> Result<Effect, ChangeError> {
    let Prior::Group { version, dir, make, enable } = prior else {
        return Err(ChangeError::Damaged { what: change.describe() });
    };
    if let Some(top) = enable {
        let cell = top.join("cgroup.subtree_control");
        let name = controller(change);
        platform.write(&cell, &format!("+{name}")).map_err(|error| refused(&cell, error))?;
    }
    if *make {
        platform.make_dir(dir).map_err(|source| system("make the group", dir, source))?;
    }
    let cells = cells(*version, limits);
    for (name, text) in &cells {
        let cell = dir.join(name);
        platform.write(&cell, text).map_err(|error| refused(&cell, error))?;
    }
    let read = |name: &str| Some((name.to_owned(), platform.read(&dir.join(name)).ok()?));
    let limits = cells.keys().filter_map(|name| read(name)).collect();
    Ok(Effect::Group { version: *version, dir: dir.clone(), limits })
}

fn controller(change: &Change) -> &'static str {
    match change {
        Change::MemoryGroup { .. } => "memory",
        Change::CpuGroup { .. } => "cpu",
        _ => "io",
    }
}

fn refused(cell: &Path, error: std::io::Error) -> ChangeError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINVAL | libc::EBUSY | libc::EOPNOTSUPP) => {
            ChangeError::unavailable(
                cell.display().to_string(),
                format!("the kernel refuses it: {error}"),
                "use a kernel with this limit, outside of a container",
            )
        }
        _ => system("write", cell, error),
    }
}

/// The files of the limits with what is written into them.
fn cells(version: GroupVersion, limits: &Limits) -> BTreeMap<&'static str, String> {
    let one = |name, text| BTreeMap::from([(name, text)]);
    match (version, limits) {
        (GroupVersion::V1, Limits::Memory(bytes)) => {
            one("memory.limit_in_bytes", bytes.to_string())
        }
        (GroupVersion::V2, Limits::Memory(bytes)) => one("memory.max", bytes.to_string()),
        // The period of a group in version 1 is this one, unless somebody sets it.
        (GroupVersion::V1, Limits::Cpu(milli)) => {
            one("cpu.cfs_quota_us", (milli * CPU_PERIOD_US / 1000).to_string())
        }
        (GroupVersion::V2, Limits::Cpu(milli)) => {
            one("cpu.max", format!("{} {CPU_PERIOD_US}", milli * CPU_PERIOD_US / 1000))
        }
        (GroupVersion::V1, Limits::Io(number, limits)) => {
            let files = [
                ("blkio.throttle.read_iops_device", limits.read_iops),
                ("blkio.throttle.write_iops_device", limits.write_iops),
                ("blkio.throttle.read_bps_device", limits.read_bytes_per_s),
                ("blkio.throttle.write_bps_device", limits.write_bytes_per_s),
            ];
            let set =
                |(file, limit): (_, Option<u64>)| Some((file, format!("{number} {}", limit?)));
            files.into_iter().filter_map(set).collect()
        }
        (GroupVersion::V2, Limits::Io(number, limits)) => {
            let word = |name: &str, limit: Option<u64>| {
                limit.map_or_else(|| format!("{name}=max"), |limit| format!("{name}={limit}"))
            };
            let words = [
                word("rbps", limits.read_bytes_per_s),
                word("wbps", limits.write_bytes_per_s),
                word("riops", limits.read_iops),
                word("wiops", limits.write_iops),
            ];
            one("io.max", format!("{number} {}", words.join(" ")))
        }
    }
}

pub(super) fn undo(
    platform: &dyn Platform,
    entry: &JournalEntry,
    (version, dir): (GroupVersion, &PathBuf),
    make: bool,
    enable: Option<&Path>,
) -> Result<Undone, ChangeError> {
    let exists = platform.look(dir).map_err(|source| system("look at", dir, source))?.is_some();
    let mut undone = Undone { how: How::AsBefore, left: Vec::new() };
    if exists && make {
        remove(platform, dir)?;
        undone.how = How::PutBack;
    } else if exists {
        unlimit(platform, entry, version, dir)?;
        undone.how = How::PutBack;
    }
    if let Some(top) = enable {
        disable(platform, entry, top, &mut undone)?;
    }
    Ok(undone)
}

fn remove(platform: &dyn Platform, dir: &Path) -> Result<(), ChangeError> {
    let fail = |source| system("remove the group", dir, source);
    match platform::while_busy(platform, || platform.remove_dir(dir)) {
        Err(error) if platform::is_busy(&error) => {}
        Err(error) if platform::is_missing(&error) => return Ok(()),
        done => return done.map_err(fail),
    }
    let around = dir.parent().unwrap_or(dir).join("cgroup.procs");
    let inside = platform.read(&dir.join("cgroup.procs")).map_err(fail)?;
    for pid in inside.split_whitespace() {
        match platform.write(&around, pid) {
            // One that ended meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            moved => moved.map_err(fail)?,
        }
    }
    platform::while_busy(platform, || platform.remove_dir(dir)).map_err(fail)
}

/// Takes the limits of one change out of a group that another made.
fn unlimit(
    platform: &dyn Platform,
    entry: &JournalEntry,
    version: GroupVersion,
    dir: &Path,
) -> Result<(), ChangeError> {
    let cell = match (version, &entry.change) {
        (GroupVersion::V2, Change::MemoryGroup { .. }) => {
            (dir.join("memory.max"), "max".to_owned())
        }
        (GroupVersion::V2, Change::CpuGroup { .. }) => (dir.join("cpu.max"), "max".to_owned()),
        (GroupVersion::V2, Change::IoGroup { device, .. }) => {
            // A device that is gone took its limits along.
            let Ok(number) = number_of(platform, device) else { return Ok(()) };
            (dir.join("io.max"), format!("{number} rbps=max wbps=max riops=max wiops=max"))
        }
        // In version 1 each controller has a directory of its own, which its change made.
        _ => return Ok(()),
    };
    platform.write(&cell.0, &cell.1).map_err(|source| system("set back", &cell.0, source))
}

/// Turns the controller off again, unless somebody limits with it meanwhile.
fn disable(
    platform: &dyn Platform,
    entry: &JournalEntry,
    top: &Path,
    undone: &mut Undone,
) -> Result<(), ChangeError> {
    let name = controller(&entry.change);
    let cell = top.join("cgroup.subtree_control");
    let now = platform.read(&cell).map_err(|source| system("read", &cell, source))?;
    if !now.split_whitespace().any(|one| one == name) {
        return Ok(());
    }
    let limited = |child: &String| {
        let limit = platform.read(&top.join(child).join(format!("{name}.max"))).unwrap_or_default();
        !limit.is_empty() && !limit.starts_with("max")
    };
    if platform.list(top).unwrap_or_default().iter().any(limited) {
        let thing = format!("the controller {name} of {}", top.display());
        let found = "in use by another group".to_owned();
        undone.left.push(Left { thing, found, prior: "disabled".to_owned() });
        return Ok(());
    }
    undone.how = How::PutBack;
    platform.write(&cell, &format!("-{name}")).map_err(|source| system("set back", &cell, source))
}

/// Groups of ours begin so, and are never taken for a home.
pub(super) const OWN: &str = "iostrata-";

/// Where a group goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupPlace {
    pub(super) version: GroupVersion,
    /// The directory above it.
    pub(super) parent: PathBuf,
    /// Where the controller has to be enabled first.
    pub(super) enable: Option<PathBuf>,
}

/// Finds a place for a group with `memory` or `io`.
pub(super) fn place(platform: &dyn Platform, controller: &str) -> Result<GroupPlace, ChangeError> {
    let mounts = platform.mounts().unwrap_or_default();
    let old_name = if controller == "io" { "blkio" } else { controller };
    let v1 = mounts.iter().find(|mount| {
        mount.kind == "cgroup" && mount.super_options.iter().any(|option| option == old_name)
    });
    if let Some(mount) = v1 {
        let parent = own_group(platform, mount, Some(old_name));
        return Ok(GroupPlace { version: GroupVersion::V1, parent, enable: None });
    }
    let v2 = mounts.iter().find(|mount| mount.kind == "cgroup2");
    v2.and_then(|mount| place_v2(platform, mount, controller)).ok_or_else(|| {
        ChangeError::unavailable(
            format!("a group with the controller {controller}"),
            "no tree of control groups that can be seen here has it",
            "mount cgroup2 at /sys/fs/cgroup on a kernel with this controller, or give the \
                  container access to it",
        )
    })
}

fn place_v2(platform: &dyn Platform, mount: &Mount, controller: &str) -> Option<GroupPlace> {
    let has = |dir: &Path, file: &str| {
        let names = platform.read(&dir.join(file)).unwrap_or_default();
        names.split_whitespace().any(|name| name == controller)
    };
    let own = own_group(platform, mount, None);
    // The top may have processes and limited children at once.
    let above = own.ancestors().skip(usize::from(own != mount.at));
    let within = above.take_while(|dir| dir.starts_with(&mount.at));
    let passes_on = |dir: &&Path| has(dir, "cgroup.subtree_control");
    let version = GroupVersion::V2;
    if let Some(parent) = within.clone().find(passes_on) {
        return Some(GroupPlace { version, parent: parent.to_owned(), enable: None });
    }
    let top = mount.at.clone();
    has(&top, "cgroup.controllers").then(|| GroupPlace {
        version,
        parent: top.clone(),
        enable: Some(top),
    })
}

/// The directory of this process's group in a tree; within a group of ours, the one around it.
fn own_group(platform: &dyn Platform, mount: &Mount, controller: Option<&str>) -> PathBuf {
    let text = platform.read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_meant = match controller {
            Some(controller) => names.split(',').any(|name| name == controller),
            None => names.is_empty(),
        };
        is_meant.then_some(path)
    });
    let path = Path::new(path.unwrap_or("/"));
    // A container sees its part of the tree: the directory that is mounted is cut off.
    let below = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let is_own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(OWN);
    let parts = below.iter().filter(|part| *part != "/").take_while(|part| !is_own(part));
    let dir = parts.fold(mount.at.clone(), |dir, part| dir.join(part));
    match platform.look(&dir) {
        Ok(Some(_)) => dir,
        _ => mount.at.clone(),
    }
}

pub(super) fn prior_enter(
    platform: &dyn Platform,
    name: &str,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let mounts = platform.mounts().unwrap_or_default();
    let to_move = |group: MadeGroup<'_>| {
        let home = home(platform, &mounts, group.version, group.controller);
        Move { home, to: group.dir.clone() }
    };
    let moves = groups(name, active)?.into_iter().map(to_move).collect();
    Ok(Prior::Outside { process: platform.owner(), moves })
}

/// A group that the session made.
pub(super) struct MadeGroup<'a> {
    controller: &'static str,
    version: GroupVersion,
    pub(super) dir: &'a PathBuf,
}

/// The groups of a name, each once.
pub(super) fn groups<'a>(
    name: &str,
    active: &'a [JournalEntry],
) -> Result<Vec<MadeGroup<'a>>, ChangeError> {
    let mut groups: Vec<MadeGroup<'a>> = Vec::new();
    for entry in active {
        let controller = match &entry.change {
            Change::MemoryGroup { name: other, .. } if other == name => "memory",
            Change::CpuGroup { name: other, .. } if other == name => "cpu",
            Change::IoGroup { name: other, .. } if other == name => "blkio",
            _ => continue,
        };
        let Prior::Group { version, dir, .. } = &entry.prior else { continue };
        if groups.iter().all(|one| one.dir != dir) {
            groups.push(MadeGroup { controller, version: *version, dir });
        }
    }
    if groups.is_empty() {
        return Err(ChangeError::unavailable(
            format!("the group {name}"),
            "this session made no group of that name",
            "make a memory or I/O group first",
        ));
    }
    Ok(groups)
}

fn home(
    platform: &dyn Platform,
    mounts: &[Mount],
    version: GroupVersion,
    controller: &str,
) -> PathBuf {
    let old = |mount: &&Mount| {
        mount.kind == "cgroup" && mount.super_options.iter().any(|option| option == controller)
    };
    let (mount, controller) = match version {
        GroupVersion::V1 => (mounts.iter().find(old), Some(controller)),
        GroupVersion::V2 => (mounts.iter().find(|mount| mount.kind == "cgroup2"), None),
    };
    mount.map(|mount| own_group(platform, mount, controller)).unwrap_or_default()
}

pub(super) fn apply_enter(
    platform: &dyn Platform,
    process: &Owner,
    moves: &[Move],
) -> Result<Effect, ChangeError> {
    for one in moves {
        enter(platform, process, &one.to)?;
    }
    Ok(Effect::Entered { dirs: moves.iter().map(|one| one.to.clone()).collect() })
}

pub(super) fn undo_enter(
    platform: &dyn Platform,
    process: &Owner,
    moves: &[Move],
) -> Result<Undone, ChangeError> {
    if !platform.is_alive(process) {
        return Ok(Undone::as_before());
    }
    let pid = process.pid.to_string();
    let mut undone = Undone::as_before();
    for one in moves.iter().rev() {
        // A group that is gone holds nobody.
        let inside = platform.read(&one.to.join("cgroup.procs")).unwrap_or_default();
        if inside.split_whitespace().any(|other| other == pid) {
            enter(platform, process, &one.home)?;
            undone = Undone::put_back();
        }
    }
    Ok(undone)
}

fn enter(
    platform: &dyn Platform,
    process: &Owner,
    dir: &std::path::Path,
) -> Result<(), ChangeError> {
    let cell = dir.join("cgroup.procs");
    let moved = platform.write(&cell, &process.pid.to_string());
    moved.map_err(|source| system("move this process into", dir, source))
}
