//! A private server for tests of this crate and of the crates above it: its directory, its session
//! and a user who is let in from this machine.
//!
//! Invariant: nothing of it is left when it is dropped.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use iostrata_change::{Owner, Session, StateDir, System};
use iostrata_database::target::TargetError;
use rustix::fs::{FlockOperation, flock};

use super::error::PrivateError;
use super::program::ServerProgram;
use super::server::{PrivatePlan, PrivateServer};
use crate::address::{HostPort, ServerAddress};
use crate::target::ServerTarget;

/// The user with all privileges, by the port and without a password.
const USER: &str = "tester";

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
        let server = PrivateServer::start(&mut session, &plan)?;
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

/// A directory that goes with its value; its path is short, because sockets are in it.
#[derive(Debug)]
struct TestDir(PathBuf);

impl TestDir {
    fn make() -> Result<Self, PrivateError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("io-{}-{number}", std::process::id()));
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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    let port = address.map(|address| address.port());
    port.map_err(|e| PrivateError::system("find a free port for the server in", &dir.0, e))
}
