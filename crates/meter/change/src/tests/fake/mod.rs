//! A machine that is only data, for tests of what is done to one.
//!
//! It behaves as the kernel does where that matters: schedulers reset other attributes, values are
//! clamped, a ratio and its bytes exclude each other, groups bring their files along, what is in
//! use is busy. It writes down the journal and itself around every alteration, so that every moment
//! at which a process can be killed is known from one run.

mod machine;

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::{fs, io};

use iostrata_io::Mount;

use crate::error::{ChangeError, system};
use crate::journal::StateDir;
use crate::kind::GroupVersion;
use crate::names::Prewrite;
use crate::platform::{MountRequest, Platform, Refusal, RunError};
use crate::seen::{Answer, DeviceState, FileToken, LoopDevice, Owner, PathEntry, SeenKind};
use crate::server::{Ending, Greeting, ServerCommand, Tie};
use crate::variables::{ServerError, ServerToken, ServerValues, Servers};

pub(crate) use machine::{BOUNDED, Machine, Node};

const TRACING: &str = "/sys/kernel/tracing";

/// The journal's bytes and the machine at one moment.
pub(crate) type Moment = (Vec<u8>, Machine);

/// A machine with a process on it.
pub(crate) struct FakePlatform {
    pub(crate) machine: RefCell<Machine>,
    pub(crate) moments: RefCell<Vec<Moment>>,
    pub(crate) owner: Owner,
    pub(crate) owner_lives: bool,
    /// So often unmounting fails because of others, or a killed server is still there.
    pub(crate) busy: Cell<u32>,
    /// This directory appears just before the next one is made.
    pub(crate) appears: RefCell<Option<PathBuf>>,
    /// What servers do.
    pub(crate) server: Cell<ServerWays>,
    /// How a server was ended first.
    pub(crate) first_ending: Cell<Option<Ending>>,
    /// What a server holds until its end.
    pub(crate) held: RefCell<Option<OwnedFd>>,
    /// Whether the database server answers.
    pub(crate) server_answers: Cell<bool>,
    pub(crate) server_uid: RefCell<Option<String>>,
    /// Which variable of the database server cannot be set.
    pub(crate) refused_variable: RefCell<Option<String>>,
    /// This write is refused once.
    pub(crate) refuses: RefCell<Option<PathBuf>>,
    state: StateDir,
    version: GroupVersion,
    inodes: Cell<u64>,
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl FakePlatform {
    pub(crate) fn new(state: &StateDir, version: GroupVersion) -> Self {
        Self::on(Machine::new(version), state, version)
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
            appears: RefCell::new(None),
            server: Cell::new(ServerWays::Well),
            first_ending: Cell::new(None),
            held: RefCell::new(None),
            server_answers: Cell::new(true),
            server_uid: RefCell::new(Some("first".to_owned())),
            refused_variable: RefCell::new(None),
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

    /// Sets a cell as another process would.
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

impl Platform for FakePlatform {
    fn read(&self, cell: &Path) -> io::Result<String> {
        let machine = self.machine.borrow();
        if cell == Path::new("/proc/self/cgroup") {
            let group = machine.groups[Path::new("/cg")].strip_prefix("/cg").unwrap().to_owned();
            return Ok(match self.version {
                GroupVersion::V1 => format!("3:memory,cpu,blkio:/{}", group.display()),
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

    fn look(&self, path: &Path) -> io::Result<Option<PathEntry>> {
        let machine = self.machine.borrow();
        self.assert_no_wait(path);
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
        if let Some(other) = self.appears.take() {
            self.machine.borrow_mut().nodes.insert(other, Node::Dir);
        }
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

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        // One after the other, the innermost first.
        loop {
            let last =
                self.machine.borrow().nodes.keys().rfind(|path| path.starts_with(dir)).cloned();
            let Some(last) = last else { return Ok(()) };
            self.alter(|machine| machine.nodes.remove(&last).map(drop).ok_or(errno(libc::ENOENT)))?;
        }
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
        self.assert_no_wait(&device.backing.path);
        self.alter(|machine| {
            if machine.mounts.iter().any(|mount| Path::new(&mount.source) == node) {
                return Err(errno(libc::EBUSY));
            }
            machine.loops.remove(&device.name);
            Ok(())
        })
    }

    fn mounts(&self) -> io::Result<Vec<Mount>> {
        Ok(self.machine.borrow().mounts.clone())
    }

    fn mount(&self, request: &MountRequest) -> Result<(), Refusal> {
        let said = format!("Unknown parameter '{}'", request.options.join(","));
        let refused = |source| Refusal { said: said.clone(), source };
        if request.options.iter().any(|option| option == "nobarrier") {
            return Err(refused(errno(libc::EINVAL)));
        }
        let mount = Mount {
            at: request.at.clone(),
            root: "/".to_owned(),
            kind: request.kind.to_owned(),
            source: request.source.display().to_string(),
            options: vec!["rw".to_owned(), "relatime".to_owned()],
            super_options: request.options.clone(),
            ..Mount::default()
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

    fn start(&self, server: &ServerCommand, tie: Tie<'_>) -> Result<Owner, RunError> {
        let started = match tie {
            Tie::None(held) => {
                *self.held.borrow_mut() = held.map(|held| held.try_clone_to_owned().unwrap());
                self.begin_server(server)
            }
            Tie::Life { groups, .. } => self.begin_database(server, groups),
        };
        started.map_err(RunError::Start)
    }

    fn greeting(&self, socket: &Path) -> Greeting {
        self.greet(socket)
    }

    fn said(&self, process: &Owner) -> Option<String> {
        (!self.is_alive(process)).then(|| "it ended".to_owned())
    }

    fn servers(&self, server: &ServerCommand) -> io::Result<Vec<Owner>> {
        let machine = self.machine.borrow();
        let same = machine.servers.iter().filter(|(_, other)| other == server);
        Ok(same.map(|(process, _)| process.clone()).collect())
    }

    fn end(&self, process: &Owner, how: Ending) -> io::Result<()> {
        self.end_server(process, how)
    }

    fn ask(&self, file: &Path) -> Answer {
        self.ask_server(file)
    }

    fn in_use(&self, device: &Path) -> io::Result<Option<DeviceState>> {
        self.state(device).map(|state| matches!(state, DeviceState::Mounted(_)).then_some(state))
    }

    fn openers(&self, _: &Path) -> Vec<String> {
        Vec::new()
    }

    fn writers(&self, file: &Path) -> Vec<String> {
        self.users_of(file)
    }

    fn servers_at(&self) -> &dyn Servers {
        self
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn sync(&self) {}

    fn owner(&self) -> Owner {
        self.owner.clone()
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        let machine = self.machine.borrow();
        let is_server = machine.servers.iter().any(|(process, _)| process == owner);
        is_server || self.lingers() || self.owner_lives && *owner == self.owner
    }

    fn now_us(&self) -> u64 {
        1_000_000
    }

    fn pause(&self) {}
}

fn seen(kind: SeenKind, inode: u64, bytes: u64) -> PathEntry {
    let device = (254, 0);
    PathEntry {
        kind,
        device,
        inode,
        number: (0, 0),
        bytes,
        is_private: true,
        born_us: Some(1_000_000),
    }
}

// Servers of the stand-in, and how they behave.

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerWays {
    /// It mounts, answers, and ends on request.
    Well,
    /// It never answers, and ends only when it is killed.
    Stuck,
    /// It never mounts, and ends only when it is killed.
    Mute,
    /// It answers, and ends only some time after it was killed.
    Lingering,
}

impl FakePlatform {
    /// There, then mounted.
    fn begin_server(&self, server: &ServerCommand) -> io::Result<Owner> {
        let at = PathBuf::from(server.arguments.last().unwrap());
        self.inodes.set(self.inodes.get() + 1);
        let inode = self.inodes.get();
        let process = Owner { pid: inode as u32, start_ticks: 9, ..self.owner.clone() };
        let started = (process.clone(), server.clone());
        self.alter(|machine| {
            machine.servers.push(started);
            Ok(())
        })?;
        if self.server.get() != ServerWays::Mute {
            self.alter(|machine| {
                machine.serve(&at, inode);
                Ok(())
            })?;
        }
        Ok(process)
    }

    /// There, then in its groups, then listening, with a file in its data directory.
    fn begin_database(&self, server: &ServerCommand, groups: &[PathBuf]) -> io::Result<Owner> {
        self.inodes.set(self.inodes.get() + 1);
        let inode = self.inodes.get();
        let process = Owner { pid: inode as u32, start_ticks: 9, ..self.owner.clone() };
        let started = (process.clone(), server.clone());
        self.alter(|machine| {
            for dir in groups {
                assert!(machine.nodes.contains_key(dir), "{} is not there", dir.display());
                machine.groups.insert(format!("/process/{}", process.pid).into(), dir.clone());
            }
            machine.servers.push(started);
            Ok(())
        })?;
        let data = argument(server, "--datadir=").unwrap();
        assert!(self.machine.borrow().nodes.contains_key(&data), "{} is missing", data.display());
        let files = [Some(data.join("ibdata1")), argument(server, "--socket=")];
        for file in files.into_iter().flatten().filter(|_| self.server.get() != ServerWays::Mute) {
            self.alter(|machine| {
                machine.nodes.insert(file, Node::File { inode, bytes: 1 });
                Ok(())
            })?;
        }
        Ok(process)
    }

    fn greet(&self, socket: &Path) -> Greeting {
        let machine = self.machine.borrow();
        let listens =
            |server: &ServerCommand| argument(server, "--socket=").as_deref() == Some(socket);
        let is_there = machine.servers.iter().any(|(_, server)| listens(server));
        match self.server.get() {
            ServerWays::Well | ServerWays::Lingering
                if is_there && machine.nodes.contains_key(socket) =>
            {
                Greeting::Ready { version: "11.4.5-MariaDB".to_owned() }
            }
            ServerWays::Stuck => Greeting::Refused("Too many connections".to_owned()),
            _ => Greeting::Silent,
        }
    }

    /// Database servers that have a file of their data directory open.
    fn users_of(&self, file: &Path) -> Vec<String> {
        let machine = self.machine.borrow();
        let has_open =
            |server: &ServerCommand| argument(server, "--datadir=").as_deref() == file.parent();
        let users = machine.servers.iter().filter(|(_, server)| has_open(server));
        users.map(|(process, _)| format!("mysqld (process {})", process.pid)).collect()
    }

    fn end_server(&self, process: &Owner, how: Ending) -> io::Result<()> {
        self.first_ending.set(self.first_ending.get().or(Some(how)));
        if how == Ending::Asked && self.server.get() != ServerWays::Well {
            return Ok(());
        }
        self.alter(|machine: &mut Machine| {
            machine.end(process);
            Ok(())
        })?;
        self.held.take();
        Ok(())
    }

    /// Whether a server that was killed is still there at this look.
    fn lingers(&self) -> bool {
        let looks = self.busy.get();
        let lingers = self.server.get() == ServerWays::Lingering && looks > 0;
        self.busy.set(looks - u32::from(lingers));
        lingers
    }

    fn ask_server(&self, file: &Path) -> Answer {
        let machine = self.machine.borrow();
        let at = file.parent().unwrap();
        match (machine.server_at(at), machine.inode(file)) {
            (Some(_), _) if self.server.get() == ServerWays::Stuck => Answer::Stuck,
            (Some(_), Some(inode)) => Answer::There(seen(SeenKind::File, inode, 4096)),
            (None, _) if machine.mounts.iter().any(|mount| mount.at == at) => Answer::Dead,
            _ => Answer::NotThere,
        }
    }

    /// Panics where a real process would wait for ever.
    fn assert_no_wait(&self, path: &Path) {
        let machine = self.machine.borrow();
        for mount in machine.mounts.iter().filter(|mount| mount.is_fuse()) {
            let is_stuck = self.server.get() == ServerWays::Stuck;
            let hangs = is_stuck && machine.server_at(&mount.at).is_some();
            assert!(!hangs || !path.starts_with(&mount.at), "{} is touched", path.display());
        }
    }
}

/// The path behind an argument.
fn argument(server: &ServerCommand, name: &str) -> Option<PathBuf> {
    let words = server.arguments.iter().filter_map(|word| word.to_str()?.strip_prefix(name));
    words.map(PathBuf::from).next()
}

impl Servers for FakePlatform {
    fn look(&self, _: &str, names: &[&str]) -> Result<(ServerToken, ServerValues), ServerError> {
        if !self.server_answers.get() {
            return Err(ServerError::NoAnswer("connection refused".to_owned()));
        }
        let machine = self.machine.borrow();
        let (data_dir, started_s) = ("/data/mysql".into(), machine.started_s);
        let (place, uid) = ("host:3306".to_owned(), self.server_uid.borrow().clone());
        let token = ServerToken { data_dir, place, started_s, uid };
        let value = |name: &&str| Some(((*name).to_owned(), machine.variables.get(*name)?));
        let values = names.iter().filter_map(value);
        Ok((token, values.map(|(name, value)| (name, value.to_string())).collect()))
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        Servers::look(self, address, &[])?;
        let refused = || ServerError::Refused(format!("{name} can't be {value}"));
        if self.refused_variable.borrow().as_deref() == Some(name) {
            return Err(refused());
        }
        let value = value.parse().map_err(|_| refused())?;
        let set = self.alter(|machine| {
            machine.set_variable(name, value);
            Ok(())
        });
        set.map_err(|_| refused())
    }
}
