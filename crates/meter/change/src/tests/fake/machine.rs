//! What of a machine can be altered, and how its kernel behaves.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::{TRACING, errno};
use crate::kind::GroupVersion;
use crate::seen::{FileToken, Owner};
use crate::server::{ServerCommand, served_file};
use iostrata_io::Mount;

/// Something at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Dir,
    Cell(String),
    File { inode: u64, bytes: u64 },
}

/// All of the machine that can be altered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) nodes: BTreeMap<PathBuf, Node>,
    pub(crate) loops: BTreeMap<String, FileToken>,
    pub(crate) mounts: Vec<Mount>,
    /// Servers that live.
    pub(crate) servers: Vec<(Owner, ServerCommand)>,
    /// Variables of the database server, and when it started.
    pub(crate) variables: BTreeMap<String, u64>,
    pub(crate) started_s: u64,
    /// Whether it clamps as MariaDB does.
    pub(crate) is_mariadb: bool,
    /// Where the process is, by tree.
    pub(crate) groups: BTreeMap<PathBuf, PathBuf>,
}

/// Variables that bound each other.
pub(crate) const BOUNDED: [&str; 4] = [
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_max_dirty_pages_pct",
];
const QUEUE: [(&str, &str); 5] = [
    ("scheduler", "[none] mq-deadline bfq"),
    ("nr_requests", "128"),
    ("read_ahead_kb", "128"),
    ("wbt_lat_usec", "2000"),
    ("iostats", "1"),
];
const VM: [(&str, &str); 6] = [
    ("dirty_ratio", "20"),
    ("dirty_background_ratio", "10"),
    ("dirty_bytes", "0"),
    ("dirty_background_bytes", "0"),
    ("dirty_expire_centisecs", "3000"),
    ("dirty_writeback_centisecs", "500"),
];
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";
const INSTANCE_FILES: [&str; 3] =
    ["buffer_size_kb", "trace_clock", "events/block/block_rq_issue/enable"];
const GROUP_FILES: [&str; 7] = [
    "cpu.cfs_quota_us",
    "cpu.max",
    "memory.limit_in_bytes",
    "memory.max",
    "io.max",
    "blkio.throttle.write_iops_device",
    "blkio.throttle.read_bps_device",
];

fn cgroups(version: GroupVersion) -> Mount {
    let (kind, options) = match version {
        GroupVersion::V1 => ("cgroup", ["blkio", "cpu", "memory"].map(str::to_owned).to_vec()),
        GroupVersion::V2 => ("cgroup2", Vec::new()),
    };
    Mount {
        at: "/cg".into(),
        root: "/".to_owned(),
        kind: kind.to_owned(),
        source: "cgroup".to_owned(),
        options: Vec::new(),
        super_options: options,
        ..Mount::default()
    }
}

impl Machine {
    /// Two free loop devices, groups of one generation, nothing changed.
    pub(super) fn new(version: GroupVersion) -> Self {
        let mut nodes = BTreeMap::new();
        for dir in ["/", "/data", "/cg", "/cg/own", TRACING] {
            nodes.insert(PathBuf::from(dir), Node::Dir);
        }
        let mut cell = |path: String, value: &str| {
            nodes.insert(PathBuf::from(path), Node::Cell(value.to_owned()));
        };
        for name in ["loop0", "loop1"] {
            for (attribute, value) in QUEUE {
                cell(format!("/sys/block/{name}/queue/{attribute}"), value);
            }
            cell(format!("/sys/block/{name}/dev"), &format!("7:{}", &name[4..]));
        }
        cell("/dev/fuse".to_owned(), "");
        cell(GOVERNOR.to_owned(), "powersave");
        for (setting, value) in VM {
            cell(format!("/proc/sys/vm/{setting}"), value);
        }
        cell("/proc/sys/vm/drop_caches".to_owned(), "0");
        cell("/cg/cgroup.controllers".to_owned(), "cpu io memory pids");
        cell("/cg/cgroup.subtree_control".to_owned(), "pids");
        let home = (PathBuf::from("/cg"), PathBuf::from("/cg/own"));
        let (loops, groups) = (BTreeMap::new(), BTreeMap::from([home]));
        let [capacity, capacity_max, lwm, pct] = BOUNDED;
        let variables = [
            (capacity, 200),
            (capacity_max, 2_000),
            (lwm, 10),
            (pct, 90),
            ("innodb_flush_neighbors", 1),
            ("buffer_pool_mib", 128),
        ];
        Self {
            nodes,
            loops,
            mounts: vec![cgroups(version)],
            servers: Vec::new(),
            variables: variables.map(|(name, value)| (name.to_owned(), value)).into(),
            started_s: 1_000,
            is_mariadb: version == GroupVersion::V2,
            groups,
        }
    }

    /// MySQL cuts the capacity that is set, MariaDB moves the other one; lowering the dirty limit
    /// lowers the one below it on both; the pool is of whole chunks.
    pub(crate) fn set_variable(&mut self, name: &str, value: u64) {
        let [capacity, capacity_max, lwm, pct] = BOUNDED;
        let now = BOUNDED.map(|name| self.variables[name]);
        let ([now_capacity, now_max, now_lwm, now_pct], is_mariadb) = (now, self.is_mariadb);
        let mut moved: Option<(&str, u64)> = None;
        let value = match name {
            _ if name == capacity && value > now_max && is_mariadb => {
                moved = Some((capacity_max, 2 * value));
                value
            }
            _ if name == capacity => value.min(now_max),
            _ if name == capacity_max && value < now_capacity && is_mariadb => {
                moved = Some((capacity, value));
                value
            }
            _ if name == capacity_max => value.max(now_capacity),
            _ if name == lwm => value.min(now_pct),
            _ if name == pct => {
                moved = (value < now_lwm).then_some((lwm, value));
                value
            }
            "buffer_pool_mib" => value.next_multiple_of(128),
            _ => value,
        };
        if let Some((other, value)) = moved {
            self.variables.insert(other.to_owned(), value);
        }
        self.variables.insert(name.to_owned(), value);
    }

    pub(super) fn put(&mut self, cell: &Path, value: &str) -> io::Result<()> {
        match self.nodes.get_mut(cell) {
            Some(Node::Cell(text)) => {
                *text = value.to_owned();
                Ok(())
            }
            _ => Err(errno(libc::ENOENT)),
        }
    }

    pub(super) fn write(&mut self, cell: &Path, value: &str) -> io::Result<()> {
        let name = cell.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = value.parse::<u64>().unwrap_or(0);
        let beside = |other: &str| cell.with_file_name(other);
        match name.as_str() {
            "scheduler" => {
                if !["none", "mq-deadline", "bfq"].contains(&value) {
                    return Err(errno(libc::EINVAL));
                }
                let all = "none mq-deadline bfq".replace(value, &format!("[{value}]"));
                let requests = if value == "none" { "128" } else { "256" };
                self.put(&beside("nr_requests"), requests)?;
                let wbt = if value == "bfq" { "0" } else { "2000" };
                self.put(&beside("wbt_lat_usec"), wbt)?;
                self.put(cell, &all)
            }
            "drop_caches" => Ok(()),
            "nr_requests" => self.put(cell, &number.clamp(4, 2048).to_string()),
            "read_ahead_kb" => self.put(cell, &(number / 4 * 4).to_string()),
            "iostats" => {
                self.put(&beside("read_ahead_kb"), "2560")?;
                self.put(cell, value)
            }
            "dirty_ratio" | "dirty_background_ratio" if number > 100 => Err(errno(libc::EINVAL)),
            "dirty_ratio" | "dirty_background_ratio" => {
                self.put(&beside(&name.replace("ratio", "bytes")), "0")?;
                self.put(cell, value)
            }
            "dirty_bytes" | "dirty_background_bytes" => {
                self.put(&beside(&name.replace("bytes", "ratio")), "0")?;
                self.put(cell, value)
            }
            "cgroup.procs" => {
                let dir = cell.parent().unwrap_or(cell).to_owned();
                self.groups.insert("/cg".into(), dir);
                Ok(())
            }
            "cgroup.subtree_control" => {
                let Some(Node::Cell(now)) = self.nodes.get(cell) else {
                    return Err(errno(libc::ENOENT));
                };
                let mut words: Vec<&str> = now.split_whitespace().collect();
                words.retain(|word| *word != &value[1..]);
                words.extend(value.strip_prefix('+'));
                let words = words.join(" ");
                self.put(cell, &words)
            }
            _ => self.put(cell, value),
        }
    }

    pub(super) fn make_dir(&mut self, dir: &Path) -> io::Result<()> {
        if self.nodes.contains_key(dir) {
            return Err(errno(libc::EEXIST));
        }
        self.nodes.insert(dir.to_owned(), Node::Dir);
        let files: &[&str] = match dir.parent() {
            Some(above) if above.starts_with("/cg") => &GROUP_FILES,
            Some(above) if above.ends_with("instances") => &INSTANCE_FILES,
            _ => &[],
        };
        for file in files {
            self.nodes.insert(dir.join(file), Node::Cell(String::new()));
        }
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, dir: &Path) -> io::Result<()> {
        let inside = |path: &&PathBuf| path.starts_with(dir) && path.as_path() != dir;
        let holds = self
            .nodes
            .keys()
            .filter(inside)
            .any(|path| matches!(self.nodes[path], Node::Dir | Node::File { .. }));
        if !self.nodes.contains_key(dir) {
            return Err(errno(libc::ENOENT));
        }
        if holds || self.groups.values().any(|group| group == dir) {
            return Err(errno(libc::EBUSY));
        }
        if self.mounts.iter().any(|mount| mount.at == dir) {
            return Err(errno(libc::EBUSY));
        }
        self.nodes.retain(|path, _| !path.starts_with(dir));
        Ok(())
    }

    /// What a server does as it starts: mounts, then shows its file.
    pub(super) fn serve(&mut self, at: &Path, inode: u64) {
        let mount = Mount {
            at: at.to_owned(),
            root: "/".to_owned(),
            kind: "fuse".to_owned(),
            source: "disk".to_owned(),
            options: Vec::new(),
            super_options: Vec::new(),
            ..Mount::default()
        };
        self.mounts.push(mount);
        self.nodes.insert(served_file(at), Node::File { inode, bytes: 4096 });
    }

    /// What is left of a server's file when it ends: the mount stays, dead.
    pub(super) fn end(&mut self, process: &Owner) {
        let Some(at) = self.servers.iter().position(|(one, _)| one == process) else { return };
        let (_, server) = self.servers.remove(at);
        self.groups.remove(&PathBuf::from(format!("/process/{}", process.pid)));
        if let Some(at) = server.arguments.last() {
            self.nodes.remove(&served_file(Path::new(at)));
        }
    }

    /// The server of a place, while it lives.
    pub(super) fn server_at(&self, at: &Path) -> Option<&Owner> {
        let serves = |server: &ServerCommand| server.arguments.last().is_some_and(|one| one == at);
        self.servers.iter().find(|(_, server)| serves(server)).map(|(process, _)| process)
    }

    pub(super) fn inode(&self, path: &Path) -> Option<u64> {
        match self.nodes.get(path) {
            Some(Node::File { inode, .. }) => Some(*inode),
            _ => None,
        }
    }
}
