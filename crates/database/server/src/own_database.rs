//! A database of this program's own on a server, made for a measurement and removed after it; and
//! where a server keeps its data.
//!
//! Invariant: a database without the mark of this program is never touched. One program at a time
//! has it: the holder of the lock of its name. It is removed when the value is dropped, and what a
//! killed program left is removed before it is made again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use iostrata_database::target::TargetError;

use crate::address::ServerAddress;
use crate::connect::TextRows;
use crate::connect::{Connector, Patience, texts};
use crate::facts::named;
use crate::link::Link;

/// What it is called.
pub const OWN_DATABASE: &str = "iostrata_probe";
/// The table in it that marks its owner.
const MARK: &str = "made_by_iostrata";

/// The database, as long as the value lives.
#[derive(Debug)]
pub struct OwnDatabase {
    /// Holds the lock.
    link: Link,
    address: ServerAddress,
    is_removed: bool,
}

impl OwnDatabase {
    /// Makes it on the server of an address, in place of one that a killed program left.
    ///
    /// # Errors
    /// When no server answers, the user may not make it, another program measures there, or a
    /// database of this name exists that this program did not make.
    pub fn make(address: &ServerAddress) -> Result<Self, TargetError> {
        if address.hosts.len() > 1 {
            return Err(refused(
                address,
                format!("the address names {} hosts", address.hosts.len()),
                "name one of them: a probe measures one server",
            ));
        }
        let connector = Connector::new(ServerAddress { database: None, ..address.clone() });
        let conn = connector.connect(Patience::Short)?;
        let mut link = Link::new(conn, Arc::from(connector.name.as_str()));
        let locked = ask(&mut link, &format!("SELECT GET_LOCK('{OWN_DATABASE}', 0)"))?;
        if first(locked).as_deref() != Some("1") {
            return Err(refused(
                address,
                "another program measures this server".to_owned(),
                "wait until it has ended",
            ));
        }
        let named = format!("LIKE '{}'", OWN_DATABASE.replace('_', "\\_"));
        if !ask(&mut link, &format!("SHOW DATABASES {named}"))?.is_empty() {
            let mark = MARK.replace('_', "\\_");
            let marks = format!("SHOW TABLES FROM `{OWN_DATABASE}` LIKE '{mark}'");
            if ask(&mut link, &marks)?.is_empty() {
                return Err(refused(
                    address,
                    format!("there is a database {OWN_DATABASE} that iostrata did not create"),
                    "rename or remove it: that name is needed for the time of the measurement",
                ));
            }
            link.order(&format!("DROP DATABASE `{OWN_DATABASE}`"))?;
        }
        link.order(&format!("CREATE DATABASE `{OWN_DATABASE}`"))?;
        let database = Some(OWN_DATABASE.to_owned());
        let mut own = Self {
            link,
            address: ServerAddress { database, ..address.clone() },
            is_removed: false,
        };
        own.link.order(&format!("CREATE TABLE `{OWN_DATABASE}`.`{MARK}` (id INT PRIMARY KEY)"))?;
        Ok(own)
    }

    /// Its address.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Removes it.
    ///
    /// # Errors
    /// The server's error; the next measurement removes it then.
    pub fn remove(mut self) -> Result<(), TargetError> {
        self.drop_database()
    }

    fn drop_database(&mut self) -> Result<(), TargetError> {
        if std::mem::replace(&mut self.is_removed, true) {
            return Ok(());
        }
        let order = format!("DROP DATABASE IF EXISTS `{OWN_DATABASE}`");
        if self.link.order(&order).is_ok() {
            return Ok(());
        }
        // A connection that was idle for long may be gone.
        let connector = Connector::new(ServerAddress { database: None, ..self.address.clone() });
        let conn = connector.connect(Patience::Short)?;
        Link::new(conn, Arc::from(connector.name.as_str())).order(&order).map(drop)
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        // What failed before is the error to report.
        let _also_failed = self.drop_database();
    }
}

/// Where a server keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPlace {
    /// In this directory of this machine.
    Here(PathBuf),
    /// It is unknown, or cannot be read; the reason.
    Unknown(String),
}

impl DataPlace {
    /// Queries a server. It is taken to be on this machine when it has the machine's name and its
    /// directory has the directories of its databases.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn of(address: &ServerAddress) -> Result<Self, TargetError> {
        let connector = Connector::new(ServerAddress { database: None, ..address.clone() });
        let conn = connector.connect(Patience::Short)?;
        let mut link = Link::new(conn, Arc::from(connector.name.as_str()));
        let wanted = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('datadir', 'hostname')";
        let variables = named(ask(&mut link, wanted)?);
        let own_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let unknown = |why: String| Ok(Self::Unknown(why));
        match variables.get("hostname") {
            Some(theirs) if *theirs == own_name => {}
            Some(theirs) => {
                return unknown(format!(
                    "the server runs on another machine ({theirs}; this one is {own_name})"
                ));
            }
            None => return unknown("the server does not say on which machine it runs".to_owned()),
        }
        let Some(dir) = variables.get("datadir").map(PathBuf::from) else {
            return unknown("the server does not say where its data lies".to_owned());
        };
        match fs::read_dir(&dir) {
            Ok(_) if dir.join("mysql").is_dir() => Ok(Self::Here(dir)),
            Ok(_) => unknown(format!(
                "{} on this machine is not the server's: it may run in a container",
                dir.display()
            )),
            Err(error) => {
                unknown(format!("the server's data directory {}: {error}", dir.display()))
            }
        }
    }
}

fn refused(address: &ServerAddress, text: String, fix: &str) -> TargetError {
    TargetError::not_ready(&address.to_string(), "own_database", text, fix)
}

fn ask(link: &mut Link, sql: &str) -> Result<TextRows, TargetError> {
    let answer = texts(link.conn(), sql);
    answer.map_err(|error| link.told(sql, &error))
}

fn first(rows: TextRows) -> Option<String> {
    rows.into_iter().next()?.into_iter().next()?
}
