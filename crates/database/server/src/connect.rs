//! Connections: over TCP, by socket, encrypted or not.
//!
//! Invariant: every connection of this crate is made here. A server that accepts and then sends
//! nothing is given up after the connect timeout when a target is opened; sessions wait as long as
//! the address sets.

use std::collections::HashMap;
use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, panic};

use iostrata_database::target::{TargetError, Trouble};
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{ClientIdentity, Conn, DriverError, Error, OptsBuilder, SslOpts};

use crate::address::{DEFAULT_PORT, Encryption, HostPort, ServerAddress, ServerKey, Verification};
use crate::failure;
use crate::turns::Turns;

/// After so long without traffic the kernel probes whether the other side is still there.
const KEEPALIVE_MS: u32 = 30_000;
/// How often and how many times it probes before the connection is gone.
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

/// No file exists below a device.
const NO_KEY_FILE: &str = "/dev/null/server_public_key";
/// The end of the head of a key in PEM.
const PUBLIC_KEY: &str = " PUBLIC KEY-----";
const NO_TLS: &str = "the server offers no TLS";

/// How long a connection waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as connecting may take: these queries are answered at once.
    Short,
    /// As long as the address sets.
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
    /// What lets a connection be idle, where it is held without queries.
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

    /// Whether all its connections are in plain text.
    pub(crate) fn is_plain(&self) -> bool {
        self.address.hosts.is_empty() || self.address.encryption_in_use() == Encryption::Disabled
    }

    /// The same servers, for a caller that queries now and then and keeps its connection open.
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
            // A server that refuses it is queried all the same; the next query reconnects if need
            // be.
            Ok(()) | Err(Error::MySqlError(_)) => Ok(conn),
            Err(error) => Err(failure::told(&self.name, lasts, &error)),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn connect_to(&self, host: Option<&HostPort>, patience: Patience) -> Result<Conn, TargetError> {
        // A socket is not encrypted: nothing on the way could read it.
        let encryption = host.map_or(Encryption::Disabled, |_| self.address.encryption_in_use());
        self.check_files(encryption)?;
        // A second connection for each one would lead to another server behind a balancer.
        let at = host.map_or_else(|| "the socket".to_owned(), HostPort::to_string);
        let is_known =
            encryption == Encryption::Preferred && plain_text::without_tls().contains(&at);
        let encrypts = encryption != Encryption::Disabled && !is_known;
        let (result, plain_because) = match self.attempt(host, patience, encrypts) {
            // Preferred: where encryption does not come about, plain text is taken.
            Err(error)
                if encrypts && encryption == Encryption::Preferred && may_be_of_tls(&error) =>
            {
                let because = match error {
                    Error::DriverError(DriverError::TlsNotSupported) => {
                        plain_text::without_tls().insert(at.clone());
                        NO_TLS.to_owned()
                    }
                    error => error.to_string(),
                };
                (self.attempt(host, patience, false), Some(because))
            }
            Err(error) => {
                plain_text::without_tls().remove(&at);
                (Err(error), None)
            }
            Ok(conn) => (Ok(conn), is_known.then(|| NO_TLS.to_owned())),
        };
        match result {
            Ok(conn) => {
                let far = host.filter(|host| !host.is_loopback());
                if let Some((far, because)) = far.zip(plain_because) {
                    plain_text::note(far, &failure::printable(&because));
                }
                Ok(conn)
            }
            Err(error) if is_without_key(&error) => Err(self.without_key(&at)),
            Err(error) => {
                // Some errors of the library name the place themselves.
                let names_place = error.to_string().contains(&at);
                let attempt = match names_place {
                    true => "connecting".to_owned(),
                    false => format!("connecting to {at}"),
                };
                Err(failure::told(&self.name, &attempt, &error))
            }
        }
    }

    /// The library takes a file that it cannot read for a failure of the connection, after which
    /// plain text would do where encryption is preferred.
    fn check_files(&self, encryption: Encryption) -> Result<(), TargetError> {
        let address = &self.address;
        let files = [
            ("ssl_ca", address.ca.as_ref()),
            ("ssl_cert", address.identity().map(|(certificate, _)| certificate)),
            ("ssl_key", address.identity().map(|(_, key)| key)),
        ];
        let wrong = |text, fix| TargetError::not_ready(&self.name, "tls", text, fix);
        let read = |name: &str, path: &Path| {
            fs::read(path).map_err(|error| {
                let text = format!("cannot read {name}={}: {error}", path.display());
                wrong(text, "name a file that this user may read")
            })
        };
        for (name, path) in files.into_iter().filter(|_| encryption != Encryption::Disabled) {
            path.map_or(Ok(Vec::new()), |path| read(name, path))?;
        }
        let ServerKey::Pinned(path) = &address.server_key else { return Ok(()) };
        let key = read("server_public_key", path)?;
        if String::from_utf8_lossy(&key).contains(PUBLIC_KEY) {
            return Ok(());
        }
        let text = format!("server_public_key={} holds no public key in PEM", path.display());
        Err(wrong(text, "name a copy of public_key.pem of the server's data directory"))
    }

    /// The server requested the whole password where nothing protects it.
    fn without_key(&self, at: &str) -> TargetError {
        let text = format!(
            "connecting to {at}: the server requests the whole password \
             (caching_sha2_password), and the connection is not encrypted; it was not sent"
        );
        let fix = "use ssl=required; or take the RSA key that the server shows, unseen, by \
                   get_server_public_key=on; or pin it by server_public_key=FILE";
        TargetError::not_ready(&self.name, "auth", text, fix)
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
        let verification = address.verification.unwrap_or_default();
        let accepts = address.encryption_in_use() == Encryption::Preferred
            || verification == Verification::Nothing;
        let identity = address.identity();
        let identity = identity.map(|(own, key)| ClientIdentity::new(own.clone(), key.clone()));
        let encrypted = SslOpts::default()
            .with_root_cert_path(address.ca.clone())
            .with_client_identity(identity)
            .with_danger_skip_domain_validation(verification == Verification::Authority)
            .with_danger_accept_invalid_certs(accepts);
        let options = options.ssl_opts(encrypts.then_some(encrypted));
        // Without a configured key the library requests one of the server, and takes it. With a
        // path that no file can have it fails there and sends nothing.
        let key = match &address.server_key {
            ServerKey::Pinned(path) => Some(path.clone()),
            _ if host.is_some_and(|host| address.takes_key_of(host)) => None,
            _ => Some(PathBuf::from(NO_KEY_FILE)),
        };
        let options = options.server_key_path(key);
        // The library panics where a server requests a login method that was left out of it
        // (parsec), and where a key is invalid.
        let login = panic::catch_unwind(|| Conn::new(options));
        login.unwrap_or_else(|_| {
            let plugin = "a plugin or with a key that this program cannot use".to_owned();
            Err(Error::DriverError(DriverError::UnknownAuthPlugin(plugin)))
        })
    }
}

/// Whether a login failed for lack of a server key to encrypt the password by.
fn is_without_key(error: &Error) -> bool {
    let not_dir = rustix::io::Errno::NOTDIR.raw_os_error();
    matches!(error, Error::IoError(error) if error.raw_os_error() == Some(not_dir))
}

/// Whether a connection may come about without encryption. A server that is silent is silent
/// without it, too.
fn may_be_of_tls(error: &Error) -> bool {
    let is_silence =
        |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    match error {
        Error::TlsError(_) | Error::DriverError(DriverError::TlsNotSupported) => true,
        Error::IoError(error) => !is_silence(error),
        Error::CodecError(error) => {
            let source = error.source().and_then(|source| source.downcast_ref());
            !source.is_some_and(is_silence)
        }
        _ => false,
    }
}

/// Connections that are in plain text although encryption is preferred.
pub mod plain_text {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use crate::address::HostPort;

    /// Takes a sentence for the user.
    pub type Note = fn(&str);

    static NOTE: Mutex<Option<Note>> = Mutex::new(None);
    static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    /// Hosts whose servers offer no TLS.
    static WITHOUT_TLS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

    /// The hosts, by their texts, from which TLS is not requested any more.
    pub(super) fn without_tls() -> MutexGuard<'static, BTreeSet<String>> {
        WITHOUT_TLS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets where notes go. Each host is noted once.
    pub fn tell(note: Note) {
        *NOTE.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
    }

    pub(super) fn note(host: &HostPort, because: &str) {
        let note = *NOTE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(note) = note else { return };
        let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert(host.to_string()) {
            note(&format!(
                "The connection to {host} is in plain text: {because}. Use ssl=required to \
                 refuse that, or ssl=disabled to ask for it."
            ));
        }
    }
}

/// Rows of an answer, their columns as text; `None` is NULL.
pub(crate) type TextRows = Vec<Vec<Option<String>>>;

/// The rows of a query, as printable texts; `None` for NULL.
pub(crate) fn texts(conn: &mut Conn, sql: &str) -> Result<TextRows, Error> {
    let mut out = Vec::new();
    for row in conn.query_iter(sql)? {
        let cells = row?.unwrap_raw().into_iter();
        let text = |cell| mysql::from_value_opt::<String>(cell).ok();
        let printable = |text: String| failure::printable(&text).into_owned();
        out.push(cells.map(|cell| text(cell?).map(printable)).collect());
    }
    Ok(out)
}
