//! The control groups of a process: where they lie, and what they allow.
//!
//! Version 1 keeps one tree per controller and block I/O limits there do not add up along the way;
//! version 2 keeps one tree, and a limit holds for everything below it.

use std::path::{Path, PathBuf};

use iostrata_run::host::{CgroupFacts, CgroupVersion};

use crate::host::Root;
use iostrata_io::Mount;

/// This process, as `/proc` names it; others are named by their id.
pub(crate) const SELF: &str = "self";

/// One group of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// Generation of the tree.
    pub(crate) version: CgroupVersion,
    /// Where the tree is mounted.
    pub(crate) tree: PathBuf,
    /// The group below it, `/` for the top.
    pub(crate) path: PathBuf,
}

impl Cgroup {
    /// The group's directory.
    pub(crate) fn dir(&self) -> PathBuf {
        dir_in(&self.tree, &self.path)
    }

    /// The group and all groups above it, the innermost first.
    pub(crate) fn and_above(&self) -> impl Iterator<Item = Cgroup> + '_ {
        self.path.ancestors().map(|path| Cgroup { path: path.to_owned(), ..self.clone() })
    }
}

fn dir_in(tree: &Path, path: &Path) -> PathBuf {
    tree.join(path.strip_prefix("/").unwrap_or(path))
}

/// The group of a process in the version 2 tree.
pub(crate) fn group_v2(root: &Root, mounts: &[Mount], who: &str) -> Option<Cgroup> {
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    group(root, mount, CgroupVersion::V2, &membership_v2(root, who)?)
}

/// The group of a process in the version 1 tree of a controller.
pub(crate) fn group_v1(
    root: &Root,
    mounts: &[Mount],
    controller: &str,
    who: &str,
) -> Option<Cgroup> {
    let mount =
        mounts.iter().find(|mount| mount.kind == "cgroup" && mount.has_super_option(controller))?;
    group(root, mount, CgroupVersion::V1, &membership_v1(root, controller, who)?)
}

/// A container sees its own part of the tree: then the mounted directory is cut from the path, and
/// what does not fit below the mount is taken to be its top.
fn group(root: &Root, mount: &Mount, version: CgroupVersion, path: &str) -> Option<Cgroup> {
    let tree = mount.at.clone();
    let below = Path::new(path)
        .strip_prefix(&mount.root)
        .map(|below| Path::new("/").join(below))
        .unwrap_or_else(|_| PathBuf::from(path));
    let outside = below.components().any(|part| part.as_os_str() == "..");
    let path = match outside || !root.exists(dir_in(&tree, &below)) {
        true => PathBuf::from("/"),
        false => below,
    };
    Some(Cgroup { version, tree, path })
}

fn membership_v2(root: &Root, who: &str) -> Option<String> {
    let text = root.text(format!("/proc/{who}/cgroup"))?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

fn membership_v1(root: &Root, controller: &str, who: &str) -> Option<String> {
    let text = root.text(format!("/proc/{who}/cgroup"))?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    })
}

/// Where this process stands and what processors and memory it may use.
pub(crate) fn cgroup_facts(root: &Root) -> CgroupFacts {
    let mounts = crate::host::mounts(root);
    let v2 = group_v2(root, &mounts, SELF);
    let cpu = group_v1(root, &mounts, "cpu", SELF);
    let memory = group_v1(root, &mounts, "memory", SELF);
    let quota = tightest_quota(root, &v2, &cpu);
    let memory = tightest_memory(root, &v2, &memory);
    CgroupFacts {
        path_v2: membership_v2(root, SELF),
        path_v1_blkio: membership_v1(root, "blkio", SELF),
        cpu_quota_cpus: quota.as_ref().map(|(_, cpus)| *cpus),
        cpu_quota_version: quota.as_ref().map(|(group, _)| group.version),
        cpu_quota_group: quota.map(|(group, _)| group.path.to_string_lossy().into_owned()),
        memory_limit_bytes: memory.as_ref().map(|(_, bytes)| *bytes),
        memory_limit_version: memory.as_ref().map(|(group, _)| group.version),
        memory_limit_group: memory.map(|(group, _)| group.path.to_string_lossy().into_owned()),
    }
}

/// The tightest of all memory limits on the way up, in bytes, and the group that sets it. Above
/// `memory.high` a group is slowed down until it has given memory back.
fn tightest_memory(root: &Root, v2: &Option<Cgroup>, v1: &Option<Cgroup>) -> Option<(Cgroup, u64)> {
    let of = |group: Cgroup| {
        let files: &[&str] = match group.version {
            CgroupVersion::V2 => &["memory.max", "memory.high"],
            CgroupVersion::V1 => &["memory.limit_in_bytes"],
        };
        let number = |file: &&str| root.number::<u64>(group.dir().join(file));
        // Version 1 writes "no limit" as a number near the largest.
        let least = files.iter().filter_map(number).filter(|bytes| *bytes < 1 << 60).min();
        Some((group, least?))
    };
    above(v2).chain(above(v1)).filter_map(of).min_by_key(|(_, bytes)| *bytes)
}

fn above(group: &Option<Cgroup>) -> impl Iterator<Item = Cgroup> + '_ {
    group.iter().flat_map(Cgroup::and_above)
}

/// The group whose processor quota holds a process back, where one does. Its own `cpu.stat` is the
/// one that counts how often.
pub(crate) fn quota_group(root: &Root, mounts: &[Mount], who: &str) -> Option<Cgroup> {
    let (v2, cpu) = (group_v2(root, mounts, who), group_v1(root, mounts, "cpu", who));
    tightest_quota(root, &v2, &cpu).map(|(group, _)| group)
}

/// The tightest of all quotas on the way up, in processors, and the group that sets it.
fn tightest_quota(root: &Root, v2: &Option<Cgroup>, v1: &Option<Cgroup>) -> Option<(Cgroup, f64)> {
    let of = |group: Cgroup| {
        let cpus = match group.version {
            CgroupVersion::V2 => quota_v2(root, &group.dir()),
            CgroupVersion::V1 => quota_v1(root, &group.dir()),
        };
        Some((group, cpus?))
    };
    above(v2).chain(above(v1)).filter_map(of).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// `cpu.max`: quota and period in microseconds, or `max`.
fn quota_v2(root: &Root, dir: &Path) -> Option<f64> {
    let text = root.word(dir.join("cpu.max"))?;
    let mut words = text.split_whitespace();
    ratio(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

fn quota_v1(root: &Root, dir: &Path) -> Option<f64> {
    let quota: i64 = root.number(dir.join("cpu.cfs_quota_us"))?;
    ratio(u64::try_from(quota).ok()?, root.number(dir.join("cpu.cfs_period_us"))?)
}

fn ratio(quota_us: u64, period_us: u64) -> Option<f64> {
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}
