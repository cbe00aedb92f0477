//! Connections: over TCP, by socket, encrypted or not.
//!
//! Invariant: every connection of this crate is made here. A server that accepts and then says
//! nothing is given up after the connect timeout when a target is opened; sessions wait as long as
//! the address says.

use std::collections::HashMap;
use std::panic;
use std::time::{Duration, Instant};

use iostrata_target::{TargetError, Trouble};
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, Error, OptsBuilder, SslOpts};

use crate::address::{DEFAULT_PORT, Encryption, HostPort, ServerAddress, Verification};
use crate::failure;
use crate::turns::Turns;

/// After so long without a word the kernel asks whether the other side is still there.
const KEEPALIVE_MS: u32 = 30_000;
/// How often and how many times it asks before the connection is gone.
const PROBE_S: u32 = 10;
const PROBES: u32 = 3;

/// What makes a node of a Galera cluster wait for all that was committed elsewhere.
const CATCH_UP: [&str; 3] =
    ["SET SESSION wsrep_sync_wait = 1", "SELECT 1", "SET SESSION wsrep_sync_wait = DEFAULT"];
const UNKNOWN_VARIABLE: u16 = 1193;

/// Lets a connection be silent for an hour at least, whatever the server allows as a rule.
/// MySQL refuses what GREATEST gives as it is.
const LAST: &str =
    "SET SESSION wait_timeout = CAST(GREATEST(@@SESSION.wait_timeout, 3600) AS UNSIGNED)";
/// Of one that holds a claim and speaks more often than that: when its host is lost, the server
/// ends the claim soon.
const LAST_CLAIM: &str = "SET SESSION wait_timeout = 90";

/// How long a connection waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as connecting may take: what is asked is answered at once.
    Short,
    /// As long as the address says.
    AsAsked,
}

/// Makes connections to the servers of one address.
#[derive(Debug)]
pub(crate) struct Connector {
    address: ServerAddress,
    /// The address without secrets, for messages.
    pub name: String,
    turns: Turns,
    start: Instant,
    /// What lets a connection be silent, where it is held while nothing is asked.
    lasts: Option<&'static str>,
}

impl Connector {
    /// Connects nowhere yet. The address is complete.
    pub(crate) fn new(address: ServerAddress) -> Self {
        let turns = Turns::new(address.hosts.len().max(1));
        let (name, start) = (address.to_string(), Instant::now());
        Self { name, address, turns, start, lasts: None }
    }

    /// The database that the address names.
    pub(crate) fn database(&self) -> Option<&str> {
        self.address.database.as_deref()
    }

    /// The same servers, for somebody who asks now and then and holds the connection meanwhile.
    pub(crate) fn lasting(&self) -> Self {
        Self { lasts: Some(LAST), ..Self::new(self.address.clone()) }
    }

    /// The same servers, for a claim.
    pub(crate) fn claiming(&self) -> Self {
        Self { lasts: Some(LAST_CLAIM), ..Self::new(self.address.clone()) }
    }

    /// The same servers without a database.
    pub(crate) fn without_database(&self) -> Self {
        Self::new(ServerAddress { database: None, ..self.address.clone() })
    }

    /// Connects to the host whose turn it is, or to the next one that answers.
    pub(crate) fn connect(&self, patience: Patience) -> Result<Conn, TargetError> {
        let mut first_failure = None;
        for host in self.turns.order(self.now_ms()) {
            let connected = self.connect_to(self.address.hosts.get(host), patience);
            let connected = connected.and_then(|conn| self.caught_up(conn));
            match connected.and_then(|conn| self.lengthened(conn)) {
                Ok(conn) => {
                    self.turns.answered(host);
                    return Ok(conn);
                }
                // A node that does not catch up in time is passed over like one that is silent.
                Err(error) if matches!(error.trouble, Trouble::Gone | Trouble::Retry) => {
                    self.turns.failed(host, self.now_ms());
                    first_failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let none = || {
            let text = "the address names no host".to_owned();
            TargetError::not_ready(&self.name, "connect", text, "write mysql://user@host:3306/db")
        };
        Err(first_failure.unwrap_or_else(none))
    }

    /// Waits, where several hosts are nodes of a cluster, until this one has what others committed
    /// before: tables that were made by one connection are there for the next. Once for each
    /// connection, so that statements cost nothing more.
    fn caught_up(&self, mut conn: Conn) -> Result<Conn, TargetError> {
        if self.address.hosts.len() < 2 || self.address.asks_least {
            return Ok(conn);
        }
        for sql in CATCH_UP {
            match conn.query_drop(sql) {
                // A server that is no such node.
                Err(Error::MySqlError(error)) if error.code == UNKNOWN_VARIABLE => break,
                done => done.map_err(|error| failure::told(&self.name, sql, &error))?,
            }
        }
        Ok(conn)
    }

    /// Lets a connection that is to last outlive pauses between two questions.
    fn lengthened(&self, mut conn: Conn) -> Result<Conn, TargetError> {
        let Some(lasts) = self.lasts else { return Ok(conn) };
        match conn.query_drop(lasts) {
            // Who refuses it is asked all the same; the next question connects again if need be.
            Ok(()) | Err(Error::MySqlError(_)) => Ok(conn),
            Err(error) => Err(failure::told(&self.name, lasts, &error)),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn connect_to(&self, host: Option<&HostPort>, patience: Patience) -> Result<Conn, TargetError> {
        let encryption = self.address.encryption;
        let first = self.attempt(host, patience, encryption != Encryption::Disabled);
        let result = match first {
            // Preferred: where encryption does not come about, plain text is taken.
            Err(Error::TlsError(_) | Error::IoError(_) | Error::CodecError(_))
            | Err(Error::DriverError(DriverError::TlsNotSupported))
                if encryption == Encryption::Preferred =>
            {
                self.attempt(host, patience, false)
            }
            other => other,
        };
        let at = host.map_or_else(|| "the socket".to_owned(), HostPort::to_string);
        result.map_err(|error| {
            // Some errors of the library name the place themselves.
            let names_place = error.to_string().contains(&at);
            let attempt =
                if names_place { "connecting".to_owned() } else { format!("connecting to {at}") };
            failure::told(&self.name, &attempt, &error)
        })
    }

    fn attempt(
        &self,
        host: Option<&HostPort>,
        patience: Patience,
        encrypts: bool,
    ) -> Result<Conn, Error> {
        let address = &self.address;
        let timeout = match patience {
            Patience::Short => Some(address.connect_timeout),
            Patience::AsAsked => address.read_timeout,
        };
        let who = HashMap::from([("program_name", "iostrata")]);
        let options = OptsBuilder::new()
            .user(address.user.clone())
            .pass(address.password.as_ref().map(|password| password.0.clone()))
            .db_name(address.database.clone())
            .prefer_socket(false)
            .tcp_connect_timeout(Some(address.connect_timeout.max(Duration::from_millis(1))))
            .tcp_keepalive_time_ms(Some(KEEPALIVE_MS))
            .tcp_keepalive_probe_interval_secs(Some(PROBE_S))
            .tcp_keepalive_probe_count(Some(PROBES))
            .read_timeout(timeout)
            .write_timeout(timeout)
            .stmt_cache_size(0)
            // What an UPDATE found is counted, also where it changed nothing.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            .connect_attrs(Some(who));
        let options = match host {
            Some(host) => options
                .ip_or_hostname(Some(host.host.clone()))
                .tcp_port(host.port.unwrap_or(DEFAULT_PORT)),
            None => options
                .socket(address.socket.as_ref().map(|path| path.to_string_lossy().into_owned())),
        };
        let accepts = address.encryption == Encryption::Preferred
            || address.verification == Verification::Nothing;
        let encrypted = SslOpts::default()
            .with_root_cert_path(address.ca.clone())
            .with_danger_skip_domain_validation(address.verification == Verification::Authority)
            .with_danger_accept_invalid_certs(accepts);
        let options = options.ssl_opts(encrypts.then_some(encrypted));
        // The library panics where a server asks for a login that was left out of it (parsec).
        let login = panic::catch_unwind(|| Conn::new(options));
        login.unwrap_or_else(|_| {
            let plugin = "a plugin that this program does not know".to_owned();
            Err(Error::DriverError(DriverError::UnknownAuthPlugin(plugin)))
        })
    }
}

/// The rows of a query, as texts; `None` for NULL.
pub(crate) fn texts(conn: &mut Conn, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
    let mut out = Vec::new();
    for row in conn.query_iter(sql)? {
        let cells = row?.unwrap_raw().into_iter();
        out.push(cells.map(|cell| mysql::from_value_opt(cell?).ok()).collect());
    }
    Ok(out)
}
