//! A machine that is only data, for tests of what is done to one.
//!
//! It behaves as the kernel does where that matters: schedulers reset other attributes, values are
//! clamped, a ratio and its bytes exclude each other, groups bring their files along, what is in
//! use is busy. It writes down the journal and itself around every alteration, so that every moment
//! at which a process can be killed is known from one run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::DeviceState;
use crate::effect::GroupVersion;
use crate::error::{ChangeError, system};
use crate::owner::Owner;
use crate::settings::Prewrite;
use crate::state::StateDir;
use crate::world::{
    FileToken, LoopDevice, MountRequest, Mounted, Refusal, RunError, Seen, SeenKind, World,
};

pub(crate) const TRACING: &str = "/sys/kernel/tracing";

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
    pub(crate) mounts: Vec<Mounted>,
    /// Where the process is, by tree.
    pub(crate) groups: BTreeMap<PathBuf, PathBuf>,
}

/// The journal's bytes and the machine at one moment.
pub(crate) type Moment = (Vec<u8>, Machine);

/// A machine with a process on it.
pub(crate) struct FakeWorld {
    pub(crate) machine: RefCell<Machine>,
    pub(crate) moments: RefCell<Vec<Moment>>,
    pub(crate) owner: Owner,
    pub(crate) owner_lives: bool,
    /// Unmounting fails so often because of others.
    pub(crate) busy: Cell<u32>,
    /// This write is refused once.
    pub(crate) refuses: RefCell<Option<PathBuf>>,
    state: StateDir,
    version: GroupVersion,
    inodes: Cell<u64>,
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl FakeWorld {
    pub(crate) fn new(state: &StateDir, version: GroupVersion) -> Self {
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
        for (setting, value) in VM {
            cell(format!("/proc/sys/vm/{setting}"), value);
        }
        cell("/proc/sys/vm/drop_caches".to_owned(), "0");
        cell("/cg/cgroup.controllers".to_owned(), "cpu io memory");
        cell("/cg/cgroup.subtree_control".to_owned(), "cpu");
        let home = (PathBuf::from("/cg"), PathBuf::from("/cg/own"));
        let (loops, groups) = (BTreeMap::new(), BTreeMap::from([home]));
        let machine = Machine { nodes, loops, mounts: vec![cgroups(version)], groups };
        Self::on(machine, state, version)
    }

    /// A process on a machine as it is.
    pub(crate) fn on(machine: Machine, state: &StateDir, version: GroupVersion) -> Self {
        let owner = Owner { pid: 77, start_ticks: 7, boot_id: "first".to_owned() };
        Self {
            machine: RefCell::new(machine),
            moments: RefCell::new(Vec::new()),
            owner,
            owner_lives: true,
            busy: Cell::new(0),
            refuses: RefCell::new(None),
            state: state.clone(),
            version,
            inodes: Cell::new(100),
        }
    }

    /// The same after its process was killed.
    pub(crate) fn without_owner(mut self) -> Self {
        self.owner_lives = false;
        self
    }

    /// The value of a cell.
    pub(crate) fn cell(&self, path: &str) -> String {
        self.read(Path::new(path)).unwrap()
    }

    /// Sets a cell as somebody else would.
    pub(crate) fn set(&self, path: &str, value: &str) {
        let mut machine = self.machine.borrow_mut();
        machine.nodes.insert(path.into(), Node::Cell(value.to_owned()));
    }

    fn note(&self) {
        let bytes = self.state.journals().first().map(|path| fs::read(path).unwrap());
        let moment = (bytes.unwrap_or_default(), self.machine.borrow().clone());
        self.moments.borrow_mut().push(moment);
    }

    fn alter<T>(&self, act: impl FnOnce(&mut Machine) -> io::Result<T>) -> io::Result<T> {
        self.note();
        let done = act(&mut self.machine.borrow_mut());
        self.note();
        done
    }
}

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
const GROUP_FILES: [&str; 5] = [
    "memory.limit_in_bytes",
    "memory.max",
    "io.max",
    "blkio.throttle.write_iops_device",
    "blkio.throttle.read_bps_device",
];

fn cgroups(version: GroupVersion) -> Mounted {
    let (kind, options) = match version {
        GroupVersion::V1 => ("cgroup", vec!["blkio".to_owned(), "memory".to_owned()]),
        GroupVersion::V2 => ("cgroup2", Vec::new()),
    };
    Mounted {
        at: "/cg".into(),
        root: "/".to_owned(),
        kind: kind.to_owned(),
        source: "cgroup".to_owned(),
        options: Vec::new(),
        super_options: options,
    }
}

impl Machine {
    fn put(&mut self, cell: &Path, value: &str) -> io::Result<()> {
        match self.nodes.get_mut(cell) {
            Some(Node::Cell(text)) => {
                *text = value.to_owned();
                Ok(())
            }
            _ => Err(errno(libc::ENOENT)),
        }
    }

    fn write(&mut self, cell: &Path, value: &str) -> io::Result<()> {
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
                if value.starts_with('+') {
                    words.push(&value[1..]);
                }
                let words = words.join(" ");
                self.put(cell, &words)
            }
            _ => self.put(cell, value),
        }
    }

    fn make_dir(&mut self, dir: &Path) -> io::Result<()> {
        if self.nodes.contains_key(dir) {
            return Err(errno(libc::EEXIST));
        }
        self.nodes.insert(dir.to_owned(), Node::Dir);
        let files: &[&str] = match dir.parent() {
            Some(above) if above.starts_with("/cg") => &GROUP_FILES,
            Some(above) if above.ends_with("instances") => &["buffer_size_kb", "trace_clock"],
            _ => &[],
        };
        for file in files {
            self.nodes.insert(dir.join(file), Node::Cell(String::new()));
        }
        Ok(())
    }

    fn remove_dir(&mut self, dir: &Path) -> io::Result<()> {
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

    fn inode(&self, path: &Path) -> Option<u64> {
        match self.nodes.get(path) {
            Some(Node::File { inode, .. }) => Some(*inode),
            _ => None,
        }
    }
}

impl World for FakeWorld {
    fn read(&self, cell: &Path) -> io::Result<String> {
        let machine = self.machine.borrow();
        if cell == Path::new("/proc/self/cgroup") {
            let group = machine.groups[Path::new("/cg")].strip_prefix("/cg").unwrap().to_owned();
            return Ok(match self.version {
                GroupVersion::V1 => format!("3:memory,blkio:/{}", group.display()),
                GroupVersion::V2 => format!("0::/{}", group.display()),
            });
        }
        if cell.ends_with("cgroup.procs") {
            let dir = cell.parent().unwrap();
            let is_in = machine.groups.values().any(|group| group == dir);
            return Ok(if is_in { self.owner.pid.to_string() } else { String::new() });
        }
        match machine.nodes.get(cell) {
            Some(Node::Cell(text)) => Ok(text.clone()),
            _ => Err(errno(libc::ENOENT)),
        }
    }

    fn write(&self, cell: &Path, text: &str) -> io::Result<()> {
        if self.refuses.borrow_mut().take_if(|refused| refused == cell).is_some() {
            return Err(errno(libc::EIO));
        }
        self.alter(|machine| machine.write(cell, text))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let machine = self.machine.borrow();
        let name = |path: &PathBuf| {
            let part = path.strip_prefix(dir).ok()?.components().next()?;
            Some(part.as_os_str().to_string_lossy().into_owned())
        };
        let mut names: Vec<String> = machine.nodes.keys().filter_map(name).collect();
        names.dedup();
        Ok(names)
    }

    fn look(&self, path: &Path) -> io::Result<Option<Seen>> {
        let machine = self.machine.borrow();
        let tracing = path == Path::new(TRACING).join("events");
        if tracing && machine.mounts.iter().any(|mount| mount.kind == "tracefs") {
            return Ok(Some(seen(SeenKind::Directory, 0, 0)));
        }
        Ok(machine.nodes.get(path).map(|node| match node {
            Node::Dir => seen(SeenKind::Directory, 0, 0),
            Node::Cell(_) => seen(SeenKind::Other, 0, 0),
            Node::File { inode, bytes } => seen(SeenKind::File, *inode, *bytes),
        }))
    }

    fn real(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn disk_of(&self, device: &Path) -> io::Result<String> {
        Ok(device.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    fn state(&self, device: &Path) -> io::Result<DeviceState> {
        let machine = self.machine.borrow();
        let mount = machine.mounts.iter().find(|mount| Path::new(&mount.source) == device);
        Ok(match mount {
            Some(mount) => DeviceState::Mounted(format!("mounted at {}", mount.at.display())),
            None => DeviceState::Signed("something".to_owned()),
        })
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.alter(|machine| machine.make_dir(dir))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.alter(|machine| machine.remove_dir(dir))
    }

    fn make_file(&self, path: &Path, bytes: u64, _: Prewrite) -> Result<(), ChangeError> {
        self.inodes.set(self.inodes.get() + 1);
        let inode = self.inodes.get();
        // There, then full.
        for bytes in [0, bytes] {
            self.alter(|machine| {
                machine.nodes.insert(path.to_owned(), Node::File { inode, bytes });
                Ok(())
            })
            .map_err(|source| system("make", path, source))?;
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.alter(|machine| machine.nodes.remove(path).map(drop).ok_or(errno(libc::ENOENT)))
    }

    fn loops_over(&self, file: &FileToken) -> io::Result<Vec<LoopDevice>> {
        let machine = self.machine.borrow();
        let over = machine.loops.iter().filter(|(_, token)| *token == file);
        let device = |(name, token): (&String, &FileToken)| LoopDevice {
            name: name.clone(),
            backing: token.clone(),
            direct: true,
            block_bytes: 512,
        };
        Ok(over.map(device).collect())
    }

    fn attach(&self, backing: &FileToken, _: bool, _: Option<u32>) -> io::Result<LoopDevice> {
        self.alter(|machine| {
            let mut names = ["loop0", "loop1"].into_iter();
            let free = names.find(|name| !machine.loops.contains_key(*name));
            let name = free.ok_or(errno(libc::ENOSPC))?.to_owned();
            assert_eq!(machine.inode(&backing.path), Some(backing.inode));
            machine.loops.insert(name.clone(), backing.clone());
            let read_ahead = PathBuf::from(format!("/sys/block/{name}/queue/read_ahead_kb"));
            machine.put(&read_ahead, "2560")?;
            Ok(LoopDevice { name, backing: backing.clone(), direct: true, block_bytes: 512 })
        })
    }

    fn detach(&self, device: &LoopDevice) -> io::Result<()> {
        let node = device.path();
        self.alter(|machine| {
            if machine.mounts.iter().any(|mount| Path::new(&mount.source) == node) {
                return Err(errno(libc::EBUSY));
            }
            machine.loops.remove(&device.name);
            Ok(())
        })
    }

    fn mounts(&self) -> io::Result<Vec<Mounted>> {
        Ok(self.machine.borrow().mounts.clone())
    }

    fn mount(&self, request: &MountRequest) -> Result<(), Refusal> {
        let said = format!("Unknown parameter '{}'", request.options.join(","));
        let refused = |source| Refusal { said: said.clone(), source };
        if request.options.iter().any(|option| option == "nobarrier") {
            return Err(refused(errno(libc::EINVAL)));
        }
        let mount = Mounted {
            at: request.at.clone(),
            root: "/".to_owned(),
            kind: request.kind.to_owned(),
            source: request.source.display().to_string(),
            options: vec!["rw".to_owned(), "relatime".to_owned()],
            super_options: request.options.clone(),
        };
        self.alter(|machine| {
            machine.mounts.push(mount);
            Ok(())
        })
        .map_err(refused)
    }

    fn remount(&self, at: &Path, options: &[String]) -> Result<(), Refusal> {
        let times = ["noatime", "relatime", "strictatime"];
        let set = |machine: &mut Machine| {
            let mount = machine.mounts.iter_mut().rev().find(|mount| mount.at == at);
            let mount = mount.ok_or(errno(libc::EINVAL))?;
            for option in options {
                mount.options.retain(|other| !times.contains(&other.as_str()));
                mount.options.push(option.clone());
            }
            Ok(())
        };
        self.alter(set).map_err(|source| Refusal { said: source.to_string(), source })
    }

    fn unmount(&self, at: &Path, lazily: bool) -> io::Result<()> {
        if !lazily && self.busy.get() > 0 {
            self.busy.set(self.busy.get() - 1);
            return Err(errno(libc::EBUSY));
        }
        self.alter(|machine| {
            let found = machine.mounts.iter().rposition(|mount| mount.at == at);
            machine.mounts.remove(found.ok_or(errno(libc::EINVAL))?);
            Ok(())
        })
    }

    fn run(&self, program: &str, _: &[String]) -> Result<(), RunError> {
        if program == "mkfs.btrfs" { Err(RunError::Missing) } else { Ok(()) }
    }

    fn sync(&self) {}

    fn owner(&self) -> Owner {
        self.owner.clone()
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        self.owner_lives && *owner == self.owner
    }

    fn now_us(&self) -> u64 {
        1_000_000
    }

    fn pause(&self) {}
}

fn seen(kind: SeenKind, inode: u64, bytes: u64) -> Seen {
    let device = (254, 0);
    Seen { kind, device, inode, number: (0, 0), bytes, is_private: true, born_us: Some(1_000_000) }
}
