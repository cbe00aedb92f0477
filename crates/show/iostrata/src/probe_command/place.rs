//! What a probe was pointed at: where the data lies, and the database that is measured there.
//!
//! Invariant: a server's directory is measured only when it is known to be the server's: it has the
//! directory of a database that was made there a moment before.

use std::path::{Path, PathBuf};

use iostrata_run::Unavailable;
use iostrata_server::{DataPlace, OWN_DATABASE, OwnDatabase, ServerAddress};
use iostrata_study::probe::Transactions;
use rustix::fs::{Access, access};

use super::database::OwnTables;
use crate::args::ProbeArgs;
use crate::exit_error::ExitError;
use crate::signals::Interruption;
use crate::test_database::{ending, server_address};

/// What lies below the transactions.
const STORAGE: &str = "rungs of the storage";

/// What a probe was pointed at.
pub enum ProbedPlace {
    /// A directory.
    Directory(PathBuf),
    /// The directory of an embedded engine.
    Engine(PathBuf),
    /// A server.
    Server(Box<ServerPlace>),
}

/// A server, and where it keeps its data.
pub struct ServerPlace {
    address: ServerAddress,
    data: DataPlace,
}

impl ProbedPlace {
    /// What the arguments name.
    ///
    /// # Errors
    /// What is no target; a server that does not answer or does not let the user in.
    pub fn of(args: &ProbeArgs) -> Result<Self, ExitError> {
        let Some(target) = &args.target else {
            return match args.login.given() {
                Some(option) => Err(ExitError::Usage(format!(
                    "{option}: it is for a server; add --target mysql://user@host:port"
                ))),
                None => Ok(Self::Directory(args.dir.clone())),
            };
        };
        if let Some(dir) = target.strip_prefix("engine:") {
            return Ok(Self::Engine(PathBuf::from(dir)));
        }
        if !target.contains("://") {
            return Ok(Self::Directory(PathBuf::from(target)));
        }
        let credentials = args.login.credentials();
        let address = server_address(target, &credentials, "--target: ")?;
        let data = DataPlace::of(&address).map_err(ending)?;
        Ok(Self::Server(Box::new(ServerPlace { address, data: writable(data) })))
    }

    /// The directory, where there is one that can be measured.
    ///
    /// # Errors
    /// Why not.
    pub fn directory(&self) -> Result<&Path, &str> {
        match self {
            Self::Directory(dir) | Self::Engine(dir) => Ok(dir),
            Self::Server(server) => match &server.data {
                DataPlace::Here(dir) => Ok(dir),
                DataPlace::Unknown(why) => Err(why),
            },
        }
    }

    /// The database, as users know it; `None` for a directory.
    pub fn database(&self) -> Option<String> {
        match self {
            Self::Directory(_) => None,
            Self::Engine(dir) => Some(format!("engine:{}", dir.display())),
            Self::Server(server) => Some(server.address.to_string()),
        }
    }

    /// Whether transactions are to be measured.
    pub fn transactions(&self, args: &ProbeArgs) -> Transactions {
        match self.database() {
            None => Transactions::NotAsked,
            Some(_) if args.read_only => {
                let why = "transactions write, and --read-only was given";
                let fix = Some("leave out --read-only".to_owned());
                Transactions::Missing(Unavailable::impossible("transactions", why, fix))
            }
            Some(_) => Transactions::Measured,
        }
    }

    /// Makes the tables' place: a database of the program's own. Where the server's directory does
    /// not show it, that one is another server's and is not measured.
    ///
    /// # Errors
    /// What making it said.
    pub fn make_own(&mut self, interruption: &Interruption) -> Result<OwnTables, ExitError> {
        let flag = interruption.flag().clone();
        match self {
            Self::Directory(_) => Err(ExitError::Bug("a directory has no tables".to_owned())),
            Self::Engine(dir) => OwnTables::engine(dir, flag),
            Self::Server(server) => {
                let own = OwnDatabase::make(&server.address).map_err(ending)?;
                if let DataPlace::Here(dir) = &server.data
                    && !dir.join(OWN_DATABASE).is_dir()
                {
                    server.data = DataPlace::Unknown(format!(
                        "{} on this machine is not the server's",
                        dir.display()
                    ));
                }
                OwnTables::server(own, flag)
            }
        }
    }
}

/// Why the rungs below a database are missing.
pub fn below_is_unknown(why: &str) -> Unavailable {
    let fix = "run the probe on the server's machine, as a user who may write where its data lies";
    Unavailable::impossible(STORAGE, why, Some(fix.to_owned()))
}

/// A directory that this user may not write cannot be measured.
fn writable(data: DataPlace) -> DataPlace {
    match &data {
        DataPlace::Here(dir) => match access(dir, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => data,
            Err(error) => DataPlace::Unknown(format!(
                "the server's data directory {} cannot be written: {error}",
                dir.display()
            )),
        },
        DataPlace::Unknown(_) => data,
    }
}
