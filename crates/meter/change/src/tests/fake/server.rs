//! Servers of the stand-in, and how they behave.

use std::io;
use std::path::{Path, PathBuf};

use super::{FakePlatform, Machine, Node, seen};
use crate::owner::Owner;
use crate::seen::{Answer, SeenKind};
use crate::server::{Ending, Greeting, ServerCommand};
use crate::variables::{ServerError, ServerToken, ServerValues, Servers};

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerWays {
    /// It mounts, answers, and ends when it is asked to.
    Well,
    /// It answers nobody, and ends only when it is killed.
    Stuck,
    /// It never mounts, and ends only when it is killed.
    Mute,
    /// It answers, and ends only some time after it was killed.
    Lingering,
}

impl FakePlatform {
    /// There, then mounted.
    pub(super) fn begin_server(&self, server: &ServerCommand) -> io::Result<Owner> {
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
    pub(super) fn begin_database(
        &self,
        server: &ServerCommand,
        groups: &[PathBuf],
    ) -> io::Result<Owner> {
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

    pub(super) fn greet(&self, socket: &Path) -> Greeting {
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
    pub(super) fn users_of(&self, file: &Path) -> Vec<String> {
        let machine = self.machine.borrow();
        let has_open =
            |server: &ServerCommand| argument(server, "--datadir=").as_deref() == file.parent();
        let users = machine.servers.iter().filter(|(_, server)| has_open(server));
        users.map(|(process, _)| format!("mysqld (process {})", process.pid)).collect()
    }

    pub(super) fn end_server(&self, process: &Owner, how: Ending) -> io::Result<()> {
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
    pub(super) fn lingers(&self) -> bool {
        let looks = self.busy.get();
        let lingers = self.server.get() == ServerWays::Lingering && looks > 0;
        self.busy.set(looks - u32::from(lingers));
        lingers
    }

    pub(super) fn ask_server(&self, file: &Path) -> Answer {
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
    pub(super) fn assert_no_wait(&self, path: &Path) {
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
        self.look(address, &[])?;
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
