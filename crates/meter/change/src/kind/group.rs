//! Groups with limits.
//!
//! Invariant: a group is made by us under a name that carries our process, and goes with its
//! limits; processes that are still in it at the end are moved to the group around it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cgroup::{self, OWN};
use iostrata_plan::study::IoLimits;

use crate::change::Change;
use crate::device;
use crate::effect::{Effect, GroupVersion, How, Left, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::platform::Platform;
use crate::retry;
use crate::tokens::DeviceRef;

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
    let place = cgroup::place(platform, controller)?;
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
    let found = device::resolve(platform, device)?;
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
    match retry::while_busy(platform, || platform.remove_dir(dir)) {
        Err(error) if retry::is_busy(&error) => {}
        Err(error) if retry::is_missing(&error) => return Ok(()),
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
    retry::while_busy(platform, || platform.remove_dir(dir)).map_err(fail)
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
