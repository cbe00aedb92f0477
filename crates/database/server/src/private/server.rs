//! A private server from the making of its directory to the removal of it.
//!
//! Invariant: what it makes is undone by the session that it was made in; while it does not run,
//! its data directory is a consistent one that may be copied.

use std::fs;
use std::path::{Path, PathBuf};

use iostrata_change::{
    ChangeError, ChangeId, DatabaseServer, DatabaseServerEffect, Effect, Ending, Owner, Platform,
    RunAs, ServerDirectory, Session,
};

use super::data_dir;
use super::error::{PrivateError, is_about_options};
use super::options::{self, Layout, RunningOptions};
use super::program::ServerProgram;

/// Where the data of a private server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// It is made, without users but root, who needs no password over the socket.
    Fresh,
    /// It is made at this place, below a directory that the same session made.
    FreshAt(PathBuf),
    /// It is a copy of this data directory, of a server of the same version that was shut down.
    CopyOf(PathBuf),
    /// It is this very directory, which the user named and which stays.
    InPlace(PathBuf),
}

/// What kind of private server is wanted.
#[derive(Clone, Debug)]
pub struct PrivatePlan {
    /// The program.
    pub program: ServerProgram,
    /// The directory to make for it; the one above it must exist.
    pub dir: PathBuf,
    /// Its data.
    pub data: DataSource,
    /// Options under the server's own names, as `--innodb-buffer-pool-size=1G`.
    pub options: Vec<String>,
    /// On which port of 127.0.0.1 it listens; absent: on its socket only.
    pub port: Option<u16>,
    /// SQL that is run at every start, before the first client can connect; one statement each.
    pub first_statements: Vec<String>,
    /// The groups of this name, made by the same session, in which it runs.
    pub group: Option<String>,
    /// As whom it runs; absent: as this process, for root as the owner of the data.
    pub run_as: Option<RunAs>,
}

impl PrivatePlan {
    /// A server with fresh data that listens on its socket only.
    pub fn new(program: ServerProgram, dir: impl Into<PathBuf>) -> Self {
        Self {
            program,
            dir: dir.into(),
            data: DataSource::Fresh,
            options: Vec::new(),
            port: None,
            first_statements: Vec::new(),
            group: None,
            run_as: None,
        }
    }
}

/// A private server, running or not.
#[derive(Debug)]
pub struct PrivateServer {
    plan: PrivatePlan,
    layout: Layout,
    directory: ChangeId,
    running: Option<RunningServer>,
}

#[derive(Debug)]
struct RunningServer {
    change: ChangeId,
    process: Owner,
    version: String,
}

impl PrivateServer {
    /// Makes its directory and starts it.
    ///
    /// # Errors
    /// As [`PrivateServer::prepare`] and [`PrivateServer::run`]; nothing is left then.
    pub fn start<W: Platform>(
        session: &mut Session<W>,
        plan: &PrivatePlan,
    ) -> Result<Self, PrivateError> {
        let mut server = Self::prepare(session, plan)?;
        match server.run(session, &[]) {
            Ok(()) => Ok(server),
            Err(error) => {
                server.remove(session)?;
                Err(error)
            }
        }
    }

    /// Makes its directory and the data in it.
    ///
    /// # Errors
    /// [`PrivateError`] names what is missing, taken or refused; nothing is left then.
    pub fn prepare<W: Platform>(
        session: &mut Session<W>,
        plan: &PrivatePlan,
    ) -> Result<Self, PrivateError> {
        let mut plan = plan.clone();
        plan.options = options::checked(&plan.options)?;
        if let DataSource::CopyOf(from) | DataSource::InPlace(from) = &plan.data {
            plan.run_as = plan.run_as.or_else(|| data_dir::owner(from));
        }
        let above = plan.dir.parent().filter(|above| !above.as_os_str().is_empty());
        data_dir::check_room(above.unwrap_or(Path::new(".")))?;
        let dir = session.platform().real(&plan.dir);
        let made = session.apply(ServerDirectory { path: dir.clone() })?;
        let data = match &plan.data {
            DataSource::InPlace(data) | DataSource::FreshAt(data) => session.platform().real(data),
            DataSource::Fresh | DataSource::CopyOf(_) => dir.join("data"),
        };
        let server = Self { plan, layout: Layout { dir, data }, directory: made.id, running: None };
        match server.fill(session.platform()) {
            Ok(()) => Ok(server),
            Err(error) => {
                session.undo(made.id)?;
                Err(error)
            }
        }
    }

    fn fill(&self, platform: &dyn Platform) -> Result<(), PrivateError> {
        let PrivatePlan { program, data, run_as, options, first_statements, .. } = &self.plan;
        data_dir::make_dirs(&self.layout, *run_as)?;
        if !first_statements.is_empty() {
            let file = self.layout.first_statements();
            let lines: String = first_statements
                .iter()
                .map(|one| one.trim_end_matches(';').to_owned() + ";\n")
                .collect();
            fs::write(&file, lines).map_err(|e| PrivateError::system("write", &file, e))?;
        }
        match data {
            DataSource::Fresh | DataSource::FreshAt(_) => {
                data_dir::make_fresh(program, &self.layout, *run_as, self.as_root(), options)
            }
            DataSource::CopyOf(from) => data_dir::copy(platform, from, &self.layout.data, *run_as),
            DataSource::InPlace(_) => Ok(()),
        }
    }

    /// Servers run as root only with an option for it.
    fn as_root(&self) -> bool {
        match self.plan.run_as {
            Some(RunAs { uid, .. }) => uid == 0,
            None => rustix::process::geteuid().is_root(),
        }
    }

    /// Starts it, with these options besides those of the plan, and waits until it lets clients in.
    ///
    /// # Errors
    /// [`PrivateError::UnknownOption`] in the server's words; [`PrivateError::OutOfOrder`] when it
    /// runs; others as their texts state. It may be started again.
    pub fn run<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        more: &[String],
    ) -> Result<(), PrivateError> {
        if self.running.is_some() {
            return Err(self.out_of_order("runs", "stop it first"));
        }
        let mut options = self.plan.options.clone();
        options.extend(options::checked(more)?);
        let wanted = RunningOptions {
            layout: &self.layout,
            port: self.plan.port,
            as_root: self.as_root(),
            has_first_statements: !self.plan.first_statements.is_empty(),
            options: &options,
        };
        let change = DatabaseServer {
            data_dir: self.layout.data.clone(),
            is_named: matches!(self.plan.data, DataSource::InPlace(_)),
            socket: self.layout.socket(),
            program: self.plan.program.path.clone(),
            arguments: options::running(&self.plan.program, &wanted),
            group: self.plan.group.clone(),
            run_as: self.plan.run_as,
        };
        let applied = session.apply(change).map_err(|error| self.explained(error))?;
        if let Effect::DatabaseServer(DatabaseServerEffect { process, version }) = applied.effect {
            self.running = Some(RunningServer { change: applied.id, process, version });
        }
        Ok(())
    }

    fn explained(&self, error: ChangeError) -> PrivateError {
        match error {
            ChangeError::Unavailable { why, .. } if is_about_options(&why) => {
                let version = self.plan.program.version.to_string();
                PrivateError::UnknownOption { version, said: why }
            }
            error => error.into(),
        }
    }

    /// Shuts it down; its data directory stays. One that has ended by itself is stopped already.
    ///
    /// # Errors
    /// When it cannot be ended; it may be tried again.
    pub fn stop<W: Platform>(&mut self, session: &mut Session<W>) -> Result<(), PrivateError> {
        if let Some(running) = &self.running {
            session.undo(running.change)?;
            // A killed one leaves its socket and MySQL's lock of it, in the way of the next.
            for left in [self.layout.socket(), self.layout.socket_lock()] {
                match fs::remove_file(&left) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                        return Err(PrivateError::system("remove", &left, e));
                    }
                    _ => {}
                }
            }
            self.running = None;
        }
        Ok(())
    }

    /// Kills it as a crash would. It counts as running until it is stopped.
    ///
    /// # Errors
    /// [`PrivateError::OutOfOrder`] when it does not run.
    pub fn kill<W: Platform>(&self, session: &Session<W>) -> Result<(), PrivateError> {
        let Some(running) = &self.running else {
            return Err(self.out_of_order("does not run", "start it first"));
        };
        let killed = session.platform().end(&running.process, Ending::Forced);
        killed.map_err(|e| PrivateError::system("kill the server in", &self.layout.dir, e))
    }

    /// Removes its directory. Where its data go with it, it is killed: it need not write them;
    /// otherwise it is shut down first.
    ///
    /// # Errors
    /// When it cannot be ended or the directory not be removed; the session tries again at its end.
    pub fn remove<W: Platform>(mut self, session: &mut Session<W>) -> Result<(), PrivateError> {
        if self.running.is_some() && self.layout.data.starts_with(&self.layout.dir) {
            self.kill(session)?;
        }
        self.stop(session)?;
        session.undo(self.directory)?;
        Ok(())
    }

    fn out_of_order(&self, found: &'static str, fix: &'static str) -> PrivateError {
        PrivateError::OutOfOrder { dir: self.layout.dir.clone(), found, fix }
    }

    /// Its address; root can log in by the socket without a password.
    pub fn address(&self) -> String {
        options::address(&self.layout.socket())
    }

    /// From its next start on it runs in the groups of this name, which the same session made; in
    /// those of this process without one.
    pub fn enter(&mut self, group: Option<&str>) {
        self.plan.group = group.map(str::to_owned);
    }

    /// Its last output, where it has ended by itself.
    pub fn last_words<W: Platform>(&self, session: &Session<W>) -> Option<String> {
        session.platform().said(self.process()?)
    }

    /// The directory that was made for it.
    pub fn dir(&self) -> &Path {
        &self.layout.dir
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.layout.socket()
    }

    /// The port of 127.0.0.1 on which it listens, if it does.
    pub fn port(&self) -> Option<u16> {
        self.plan.port
    }

    /// Its data directory, to be copied while it does not run.
    pub fn data_dir(&self) -> &Path {
        &self.layout.data
    }

    /// Its program.
    pub fn program(&self) -> &ServerProgram {
        &self.plan.program
    }

    /// Its process, while it runs.
    pub fn process(&self) -> Option<&Owner> {
        self.running.as_ref().map(|running| &running.process)
    }

    /// Its version as it greets, while it runs.
    pub fn version(&self) -> Option<&str> {
        self.running.as_ref().map(|running| running.version.as_str())
    }
}
