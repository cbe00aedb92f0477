//! The target that the user named, open.

use std::path::Path;

use iostrata_embedded::EmbeddedTarget;
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use iostrata_target::{Schema, Target, TargetError, Trouble};

use crate::args::TargetArgs;
use crate::exit_error::ExitError;

/// A target that is open.
pub enum Opened {
    /// The embedded engine.
    Engine(EmbeddedTarget),
    /// A server.
    Server(Box<ServerTarget>),
}

impl Opened {
    /// Opens the target for the tables of a schema. An engine that is not there is made if `makes`.
    ///
    /// # Errors
    /// A target that is none; what opening said.
    pub fn open(args: &TargetArgs, schema: &Schema, makes: bool) -> Result<Self, ExitError> {
        if let Some(dir) = args.target.strip_prefix("engine:") {
            return Self::engine(args, Path::new(dir), schema, makes);
        }
        if args.target.is_empty() {
            return Err(ExitError::Usage(
                "--target is missing: write engine:DIR or mysql://user@host:port/db".to_owned(),
            ));
        }
        if !args.target.starts_with("mysql://") {
            return Err(ExitError::Usage(format!(
                "--target {}: write engine:DIR or mysql://user@host:port/db",
                args.target.split(':').next().unwrap_or_default()
            )));
        }
        if let Some(setting) = args.engine.first() {
            return Err(ExitError::Usage(format!(
                "--engine {setting}: a server's settings are its own; use it with engine:DIR"
            )));
        }
        let credentials = args.login.for_loads();
        let address = server_address(&args.target, &credentials, "--target: ")?;
        let storage_engine = args.storage_engine.clone();
        if makes && address.database.is_some() {
            // Whoever may not make one needs it to be there, which opening says.
            let _refused = ServerTarget::create_database(address.clone());
        }
        let opened = ServerTarget::open(address, storage_engine).map_err(ending)?;
        Ok(Self::Server(Box::new(opened)))
    }

    fn engine(
        args: &TargetArgs,
        dir: &Path,
        schema: &Schema,
        makes: bool,
    ) -> Result<Self, ExitError> {
        if let Some(name) = &args.storage_engine {
            return Err(ExitError::Usage(format!(
                "--storage-engine {name}: the embedded engine is one; use it with mysql://"
            )));
        }
        let settings: Result<Vec<(String, String)>, ExitError> = args
            .engine
            .iter()
            .map(|setting| match setting.split_once('=') {
                Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
                None => Err(ExitError::Usage(format!("--engine {setting}: write name=value"))),
            })
            .collect();
        if !makes && !dir.is_dir() {
            return Err(ExitError::Usage(format!(
                "--target engine:{0}: there is no directory {0}; make it with `prepare`",
                dir.display()
            )));
        }
        EmbeddedTarget::open(dir, schema, &settings?).map(Self::Engine).map_err(ending)
    }

    /// The target.
    pub fn target(&self) -> &dyn Target {
        match self {
            Self::Engine(target) => target,
            Self::Server(target) => &**target,
        }
    }

    /// The storage engine of a table, which is the one that was asked for, if any was.
    ///
    /// # Errors
    /// Another one; what the target said.
    pub fn storage_engine(
        &self,
        asked: Option<&str>,
        schema: &Schema,
        table: usize,
    ) -> Result<Option<String>, ExitError> {
        let found = self.target().table_facts(schema, table).map_err(ending)?.storage_engine;
        match (asked, &found) {
            (Some(asked), Some(found)) if !asked.eq_ignore_ascii_case(found) => {
                Err(ExitError::Usage(format!(
                    "--storage-engine {asked}: table {} is there with {found}; load it again with \
                     `prepare --reset`",
                    schema.tables[table].name
                )))
            }
            _ => Ok(found),
        }
    }

    /// Whether a session keeps its thread waiting for the target.
    pub fn blocks(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Closes it, so that an engine has nothing to recover.
    ///
    /// # Errors
    /// What the engine said.
    pub fn close(self) -> Result<(), ExitError> {
        match self {
            Self::Engine(target) => target.close().map_err(ending),
            Self::Server(_) => Ok(()),
        }
    }
}

/// A server's address as the user wrote it, with what it leaves out. Errors begin with the prefix,
/// which names the option, and repeat no password.
///
/// # Errors
/// What is no address; an option file that cannot be read.
pub fn server_address(
    target: &str,
    credentials: &Credentials,
    prefix: &str,
) -> Result<ServerAddress, ExitError> {
    let usage = |error: &dyn std::fmt::Display| ExitError::Usage(format!("{prefix}{error}"));
    let address: ServerAddress = target.parse().map_err(|error| usage(&error))?;
    credentials.complete(address).map_err(|error| usage(&error))
}

/// Errors of servers whose connections are used up: all of them, or those of the user.
const NO_CONNECTION_LEFT: [&str; 3] = ["1040", "1203", "1226"];

/// How a command ends that a target refused.
pub fn ending(error: TargetError) -> ExitError {
    match (error.trouble, error.code.as_str()) {
        (_, "broken") => ExitError::Bug(error.to_string()),
        (Trouble::NotReady, code) if NO_CONNECTION_LEFT.contains(&code) => {
            ExitError::Busy(error.to_string())
        }
        (Trouble::NotReady, _) => ExitError::Usage(error.to_string()),
        _ => ExitError::NotHere(error.to_string()),
    }
}
