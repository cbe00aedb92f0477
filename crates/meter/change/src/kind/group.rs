//! Groups with limits: where one with a controller can be made, in either generation of control
//! groups, and this process moved into its groups and back.
//!
//! Version 1: below this process's own group, so that limits above stay in force. Version 2: groups
//! with processes cannot have limited children, so not below it but under the nearest group above
//! that passes the controller on; at the top it is enabled when it is not. Invariants: a group is
//! made by us under a name that carries our process, and goes with its limits; processes that are
//! still in it at the end are moved to the group around it. Only the process of the journal is
//! moved, and only back to where it was.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;
use iostrata_plan::study::IoLimits;
use iostrata_stats::units;
use serde::{Deserialize, Serialize};

use super::device::resolve;
use super::{Change, Entry, JournalEntry, Kind, Member, Prior, Site, Uses};
use crate::error::{ChangeError, system};
use crate::platform::{self, Platform};
use crate::seen::{DeviceRef, Owner};
use crate::undone::{How, Left, Undone};

/// In which a limit of processor time is kept.
const CPU_PERIOD_US: u64 = 100_000;

/// Makes a group whose memory, page cache included, is limited. Undone: removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryGroup {
    /// Its name within the session.
    pub name: String,
    /// Limit in bytes.
    pub limit_bytes: u64,
}

/// Makes a group whose processor time is limited. Undone: removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuGroup {
    /// Its name within the session; the same as another group's makes them one.
    pub name: String,
    /// Thousandths of one processor.
    pub milli_cpus: u64,
}

/// Makes a group whose I/O on a device is limited. Undone: removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoGroup {
    /// Its name within the session; the same as another group's makes them one.
    pub name: String,
    /// On which device; for a partition its disk is meant.
    pub device: DeviceRef,
    /// How much.
    pub limits: IoLimits,
}

/// Generation of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupVersion {
    /// One tree per controller; I/O limits hold for direct I/O and syncs, not for write-back.
    V1,
    /// One tree.
    V2,
}

/// The directory of a group, whether it has to be made, and where its controller has to be
/// enabled first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupPrior {
    version: GroupVersion,
    dir: PathBuf,
    make: bool,
    enable: Option<PathBuf>,
}

/// A group was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEffect {
    /// Generation.
    pub version: GroupVersion,
    /// Its directory.
    pub dir: PathBuf,
    /// The limits as read back, by file name.
    pub limits: BTreeMap<String, String>,
}

/// What is limited; of I/O on which disk too.
enum Limit<'a> {
    Memory(u64),
    /// Thousandths of one processor.
    Cpu(u64),
    Io(&'a DeviceRef, IoLimits),
}

impl Limit<'_> {
    /// The controller, as version 2 calls it.
    fn controller(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Cpu(_) => "cpu",
            Self::Io(..) => "io",
        }
    }
}

impl fmt::Display for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => {
                write!(f, "{} of memory and page cache", units::bytes(*bytes as f64))
            }
            Self::Cpu(milli) => write!(f, "{} processors", *milli as f64 / 1e3),
            Self::Io(device, limits) => write!(f, "{} on {device}", limited(limits)),
        }
    }
}

/// A group with one limit.
trait Limited: Member<Change> {
    fn name(&self) -> &str;

    fn limit(&self) -> Limit<'_>;

    fn uses(&mut self) -> Uses<'_> {
        Uses { group: Some(self.name()), ..Uses::default() }
    }
}

impl Limited for MemoryGroup {
    fn name(&self) -> &str {
        &self.name
    }

    fn limit(&self) -> Limit<'_> {
        Limit::Memory(self.limit_bytes)
    }
}

impl Limited for CpuGroup {
    fn name(&self) -> &str {
        &self.name
    }

    fn limit(&self) -> Limit<'_> {
        Limit::Cpu(self.milli_cpus)
    }
}

impl Limited for IoGroup {
    fn name(&self) -> &str {
        &self.name
    }

    fn limit(&self) -> Limit<'_> {
        Limit::Io(&self.device, self.limits)
    }

    fn uses(&mut self) -> Uses<'_> {
        let (device, group) = (Some(&mut self.device), Some(self.name.as_str()));
        Uses { device, group, ..Uses::default() }
    }
}

fn limited(limits: &IoLimits) -> String {
    let count = |limit: Option<u64>, what: &str| limit.map(|limit| format!("{limit} {what}"));
    let rate = |limit: Option<u64>, what: &str| {
        limit.map(|limit| format!("{}/s {what}", units::bytes(limit as f64)))
    };
    let parts = [
        count(limits.read_iops, "reads/s"),
        count(limits.write_iops, "writes/s"),
        rate(limits.read_bytes_per_s, "read"),
        rate(limits.write_bytes_per_s, "written"),
    ];
    match parts.into_iter().flatten().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "any I/O".to_owned(),
        limited => limited,
    }
}

impl<L: Limited> Kind for L {
    type Prior = GroupPrior;
    type Effect = GroupEffect;

    fn describe(&self) -> String {
        format!("make the group {} with at most {}", self.name(), self.limit())
    }

    fn uses(&mut self) -> Uses<'_> {
        Limited::uses(self)
    }

    fn carries(&self, later: &Change) -> bool {
        later.is_in(self.name())
    }

    fn prior(&self, site: &Site<'_>) -> Result<GroupPrior, ChangeError> {
        let (platform, limit) = (site.platform, self.limit());
        if let Limit::Io(device, _) = limit {
            resolve(platform, device)?;
        }
        let place = place(platform, limit.controller())?;
        let name = format!("{OWN}{}-{}", platform.owner().pid, self.name());
        let dir = place.parent.join(name);
        let is_it =
            |entry: &JournalEntry| matches!(&entry.prior, Prior::Group(other) if other.dir == dir);
        let is_made = site.active.iter().any(is_it);
        let exists =
            platform.look(&dir).map_err(|source| system("look at", &dir, source))?.is_some();
        if exists && !is_made {
            let found = "exists".to_owned();
            let fix = "run iostrata restore, which removes groups of killed runs";
            return Err(ChangeError::Taken { path: dir, found, fix });
        }
        Ok(GroupPrior { version: place.version, dir, make: !is_made, enable: place.enable })
    }

    fn apply(&self, site: &Site<'_>, prior: &GroupPrior) -> Result<GroupEffect, ChangeError> {
        let (platform, GroupPrior { version, dir, make, enable }) = (site.platform, prior);
        let cells = cells(platform, *version, &self.limit())?;
        if let Some(top) = enable {
            let cell = top.join("cgroup.subtree_control");
            let name = self.limit().controller();
            platform.write(&cell, &format!("+{name}")).map_err(|error| refused(&cell, error))?;
        }
        if *make {
            platform.make_dir(dir).map_err(|source| system("make the group", dir, source))?;
        }
        for (name, text) in &cells {
            let cell = dir.join(name);
            platform.write(&cell, text).map_err(|error| refused(&cell, error))?;
        }
        let read = |name: &str| Some((name.to_owned(), platform.read(&dir.join(name)).ok()?));
        let limits = cells.keys().filter_map(|name| read(name)).collect();
        Ok(GroupEffect { version: *version, dir: dir.clone(), limits })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let GroupPrior { version, dir, make, enable } = entry.prior;
        let exists = platform.look(dir).map_err(|source| system("look at", dir, source))?.is_some();
        let mut undone = Undone { how: How::AsBefore, left: Vec::new() };
        if exists && *make {
            remove(platform, dir)?;
            undone.how = How::PutBack;
        } else if exists {
            unlimit(platform, entry.change.limit(), *version, dir)?;
            undone.how = How::PutBack;
        }
        if let Some(top) = enable {
            disable(platform, entry.change.limit().controller(), top, &mut undone)?;
        }
        Ok(undone)
    }
}

/// Number of the disk that a device is or lies on, `7:3`.
fn number_of(platform: &dyn Platform, device: &DeviceRef) -> Result<String, ChangeError> {
    let found = resolve(platform, device)?;
    let cell = Path::new("/sys/block").join(found.disk).join("dev");
    platform.read(&cell).map_err(|source| system("read", &cell, source))
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

/// The files of a limit with what is written into them.
fn cells(
    platform: &dyn Platform,
    version: GroupVersion,
    limit: &Limit<'_>,
) -> Result<BTreeMap<&'static str, String>, ChangeError> {
    let one = |name, text| BTreeMap::from([(name, text)]);
    Ok(match (version, limit) {
        (GroupVersion::V1, Limit::Memory(bytes)) => one("memory.limit_in_bytes", bytes.to_string()),
        (GroupVersion::V2, Limit::Memory(bytes)) => one("memory.max", bytes.to_string()),
        // The default period of a group in version 1.
        (GroupVersion::V1, Limit::Cpu(milli)) => {
            one("cpu.cfs_quota_us", (milli * CPU_PERIOD_US / 1000).to_string())
        }
        (GroupVersion::V2, Limit::Cpu(milli)) => {
            one("cpu.max", format!("{} {CPU_PERIOD_US}", milli * CPU_PERIOD_US / 1000))
        }
        (GroupVersion::V1, Limit::Io(device, limits)) => {
            let number = number_of(platform, device)?;
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
        (GroupVersion::V2, Limit::Io(device, limits)) => {
            let word = |name: &str, limit: Option<u64>| {
                limit.map_or_else(|| format!("{name}=max"), |limit| format!("{name}={limit}"))
            };
            let words = [
                word("rbps", limits.read_bytes_per_s),
                word("wbps", limits.write_bytes_per_s),
                word("riops", limits.read_iops),
                word("wiops", limits.write_iops),
            ];
            one("io.max", format!("{} {}", number_of(platform, device)?, words.join(" ")))
        }
    })
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

/// Takes the limit of one change out of a group that another made.
fn unlimit(
    platform: &dyn Platform,
    limit: Limit<'_>,
    version: GroupVersion,
    dir: &Path,
) -> Result<(), ChangeError> {
    // In version 1 each controller has a directory of its own, which its change made.
    if version == GroupVersion::V1 {
        return Ok(());
    }
    let text = match limit {
        Limit::Memory(_) | Limit::Cpu(_) => "max".to_owned(),
        Limit::Io(device, _) => match number_of(platform, device) {
            Ok(number) => format!("{number} rbps=max wbps=max riops=max wiops=max"),
            // A device that is gone took its limits along.
            Err(_) => return Ok(()),
        },
    };
    let cell = dir.join(format!("{}.max", limit.controller()));
    platform.write(&cell, &text).map_err(|source| system("set back", &cell, source))
}

/// Turns the controller off again, unless another group has a limit by it meanwhile.
fn disable(
    platform: &dyn Platform,
    name: &str,
    top: &Path,
    undone: &mut Undone,
) -> Result<(), ChangeError> {
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
const OWN: &str = "iostrata-";

/// Where a group goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupPlace {
    version: GroupVersion,
    /// The directory above it.
    parent: PathBuf,
    /// Where the controller has to be enabled first.
    enable: Option<PathBuf>,
}

/// Finds a place for a group with `memory` or `io`.
fn place(platform: &dyn Platform, controller: &str) -> Result<GroupPlace, ChangeError> {
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

/// Moves this process into the groups of a name that the same session made. Undone: back to
/// where it was, so a load can be in it for one point and out of it for the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnterGroup {
    /// The name.
    pub name: String,
}

/// Which process, and from where to where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outside {
    process: Owner,
    moves: Vec<Move>,
}

/// One group that a process enters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Move {
    home: PathBuf,
    to: PathBuf,
}

/// This process is in these groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnterEffect {
    /// Their directories.
    pub dirs: Vec<PathBuf>,
}

impl Kind for EnterGroup {
    type Prior = Outside;
    type Effect = EnterEffect;

    fn describe(&self) -> String {
        format!("move this process into the group {}", self.name)
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { group: Some(&self.name), ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        // Homes nest: a process that enters a second group comes back to the first.
        matches!(later, Change::EnterGroup(_))
    }

    fn prior(&self, site: &Site<'_>) -> Result<Outside, ChangeError> {
        let platform = site.platform;
        let mounts = platform.mounts().unwrap_or_default();
        let to_move = |group: MadeGroup<'_>| {
            let home = home(platform, &mounts, group.version, group.controller);
            Move { home, to: group.dir.clone() }
        };
        let moves = groups(&self.name, site.active)?.into_iter().map(to_move).collect();
        Ok(Outside { process: platform.owner(), moves })
    }

    fn apply(&self, site: &Site<'_>, prior: &Outside) -> Result<EnterEffect, ChangeError> {
        for one in &prior.moves {
            enter(site.platform, &prior.process, &one.to)?;
        }
        Ok(EnterEffect { dirs: prior.moves.iter().map(|one| one.to.clone()).collect() })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let Outside { process, moves } = entry.prior;
        if !platform.is_alive(process) {
            return Ok(Undone::as_before());
        }
        let pid = process.pid.to_string();
        let mut undone = Undone::as_before();
        for one in moves.iter().rev() {
            // A group that is gone contains no process.
            let inside = platform.read(&one.to.join("cgroup.procs")).unwrap_or_default();
            if inside.split_whitespace().any(|other| other == pid) {
                enter(platform, process, &one.home)?;
                undone = Undone::put_back();
            }
        }
        Ok(undone)
    }
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
            Change::MemoryGroup(one) if one.name == name => "memory",
            Change::CpuGroup(one) if one.name == name => "cpu",
            Change::IoGroup(one) if one.name == name => "blkio",
            _ => continue,
        };
        let Prior::Group(GroupPrior { version, dir, .. }) = &entry.prior else { continue };
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

fn enter(platform: &dyn Platform, process: &Owner, dir: &Path) -> Result<(), ChangeError> {
    let cell = dir.join("cgroup.procs");
    let moved = platform.write(&cell, &process.pid.to_string());
    moved.map_err(|source| system("move this process into", dir, source))
}
