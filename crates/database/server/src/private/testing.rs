//! A private server for tests of this crate and of the crates above it: its directory, its session
//! and a user who is let in from this machine.
//!
//! Invariant: nothing of it is left when it is dropped.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use iostrata_change::{Owner, Session, StateDir, System};
use iostrata_database::target::TargetError;
use rustix::fs::{FlockOperation, flock};

use super::error::PrivateError;
use super::ports::free_ports;
use super::prepared::{find_prepared, keep_prepared};
use super::program::ServerProgram;
use super::server::{PrivatePlan, PrivateServer};
use crate::address::{HostPort, ServerAddress};
use crate::target::ServerTarget;

/// The variable that names a directory in which tests keep fresh data, by the server's version.
const FRESH_DATA: &str = "IOSTRATA_TEST_DATA";

/// What those data hold.
const CONTENTS: &str = "nothing";

/// Parts of the names of options that fix how a data directory is laid out.
const LAYOUT: [&str; 5] = ["page-size", "file-path", "tablespaces", "directory", "home-dir"];

/// The user with all privileges, by the port and without a password.
const USER: &str = "tester";

impl PrivatePlan {
    /// Lets the server begin with a copy of fresh data that tests share, in the directory that the
    /// suite names: making them takes seconds. Without one it makes its own.
    ///
    /// # Errors
    /// As [`PrivatePlan::on_fresh_data_in`].
    pub fn on_shared_fresh_data(self) -> Result<Self, PrivateError> {
        match std::env::var_os(FRESH_DATA) {
            Some(dir) => self.on_fresh_data_in(Path::new(&dir)),
            None => Ok(self),
        }
    }

    /// Lets the server begin with a copy of fresh data in this directory, which are made if those
    /// of its version are not there. Where an option fixes the layout it makes its own.
    ///
    /// # Errors
    /// What was in the way of making or finding them.
    pub fn on_fresh_data_in(mut self, above: &Path) -> Result<Self, PrivateError> {
        let is_of_layout =
            |option: &String| LAYOUT.iter().any(|part| option.replace('_', "-").contains(part));
        if self.options.iter().any(is_of_layout) {
            return Ok(self);
        }
        let version = self.program.version.to_string();
        let (dir, lock) = (above.join(&version), above.join(version + ".lock"));
        let locked = fs::create_dir_all(above).and_then(|()| {
            let file = File::create(&lock)?;
            Ok(flock(&file, FlockOperation::LockExclusive).map(|()| file)?)
        });
        let _lock = locked.map_err(|e| PrivateError::system("lock", &lock, e))?;
        if !dir.exists() {
            let own = above.join(own_name());
            fs::create_dir_all(&own).map_err(|e| PrivateError::system("make", &own, e))?;
            let mut session = Session::begin(&StateDir::at(own.join("state")), System::new())?;
            let plan = PrivatePlan::new(self.program.clone(), own.join("s"));
            let server = PrivateServer::prepare(&mut session, &plan)?;
            keep_prepared(&mut session, server, &dir, CONTENTS)?;
        }
        self.data = find_prepared(&dir, &self.program, CONTENTS)?.unwrap_or(self.data);
        Ok(self)
    }
}

/// A running server that ends with its value.
#[derive(Debug)]
pub struct TestServer {
    server: PrivateServer,
    session: Session<System>,
    // The last to go.
    _dir: TestDir,
}

impl TestServer {
    /// Starts MariaDB, on a port and a socket. `None` where it is not installed.
    ///
    /// # Errors
    /// What is in the way.
    pub fn start() -> Result<Option<Self>, PrivateError> {
        match ServerProgram::find("mariadbd") {
            Ok(program) => Self::of(program).map(Some),
            Err(PrivateError::Missing { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn of(program: ServerProgram) -> Result<Self, PrivateError> {
        let dir = TestDir::make()?;
        let state = StateDir::at(dir.0.join("state"));
        let mut session = Session::begin(&state, System::new())?;
        let mut plan = PrivatePlan::new(program, dir.0.join("s"));
        plan.port = Some(free_port(&dir)?);
        plan.first_statements = vec![
            format!("CREATE USER IF NOT EXISTS {USER}@127.0.0.1"),
            format!("GRANT ALL PRIVILEGES ON *.* TO {USER}@127.0.0.1 WITH GRANT OPTION"),
        ];
        let server = PrivateServer::start(&mut session, &plan.on_shared_fresh_data()?)?;
        Ok(Self { server, session, _dir: dir })
    }

    /// Its address by the port, without a database.
    pub fn address(&self) -> ServerAddress {
        let host = HostPort { host: Ipv4Addr::LOCALHOST.to_string(), port: self.server.port() };
        ServerAddress { user: Some(USER.to_owned()), hosts: vec![host], ..ServerAddress::default() }
    }

    /// A database of it, made if it is not there.
    ///
    /// # Errors
    /// The server's error.
    pub fn target(&self, database: &str) -> Result<ServerTarget, TargetError> {
        let address = ServerAddress { database: Some(database.to_owned()), ..self.address() };
        ServerTarget::create_database(address.clone())?;
        ServerTarget::open(address, None)
    }

    /// Its process.
    pub fn process(&self) -> Option<&Owner> {
        self.server.process()
    }

    /// Kills it as a crash would.
    ///
    /// # Errors
    /// As [`PrivateServer::kill`].
    pub fn kill(&self) -> Result<(), PrivateError> {
        self.server.kill(&self.session)
    }

    /// Starts it again on the same data.
    ///
    /// # Errors
    /// As [`PrivateServer::stop`] and [`PrivateServer::run`].
    pub fn start_again(&mut self) -> Result<(), PrivateError> {
        self.server.stop(&mut self.session)?;
        self.server.run(&mut self.session, &[])
    }
}

/// A turn on a server that tests of several processes use at the same time.
#[derive(Debug)]
pub struct ServerTurn {
    _lock: File,
}

impl ServerTurn {
    /// Waits for a turn: together with others, or alone for a test that alters or counts what is
    /// the server's as a whole. It ends with the value.
    ///
    /// # Errors
    /// When the file of the turns, in the temporary directory, cannot be made or locked.
    pub fn wait(address: &ServerAddress, is_alone: bool) -> io::Result<Self> {
        let server = ServerAddress { user: None, database: None, ..address.clone() };
        let name = server.to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let lock = File::create(std::env::temp_dir().join(format!("iostrata-turns-{name}")))?;
        let how = if is_alone { FlockOperation::LockExclusive } else { FlockOperation::LockShared };
        flock(&lock, how)?;
        Ok(Self { _lock: lock })
    }
}

/// A name that this process has not used yet, and no other that may have been killed.
fn own_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("io-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A directory that goes with its value; its path is short, because sockets are in it.
#[derive(Debug)]
struct TestDir(PathBuf);

impl TestDir {
    fn make() -> Result<Self, PrivateError> {
        let dir = std::env::temp_dir().join(own_name());
        fs::create_dir(&dir).map_err(|e| PrivateError::system("make", &dir, e))?;
        Ok(Self(dir))
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        // What could not be removed shows in the temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn free_port(dir: &TestDir) -> Result<u16, PrivateError> {
    let free = free_ports(1).map(|ports| ports[0]);
    free.map_err(|e| PrivateError::system("find a free port for the server in", &dir.0, e))
}
