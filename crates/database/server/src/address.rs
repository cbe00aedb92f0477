//! Where servers are: `mysql://user:password@h1:3306,[::1]:3307/db?socket=PATH&ssl=required`.
//!
//! Invariant: what is printed of an address, also by `Debug`, holds no password. Nothing is looked
//! up here: who the user is when the address does not say so is known by
//! [`crate::Credentials`].

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use iostrata_units::parse_duration;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

/// Where a server listens when nothing is said.
pub const DEFAULT_PORT: u16 = 3306;
/// How long a server may take to accept a connection when nothing is said.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What means something in an address and is therefore escaped.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'%')
    .add(b'/')
    .add(b'?')
    .add(b'#')
    .add(b'@')
    .add(b':')
    .add(b',')
    .add(b'&')
    .add(b'=');
/// The same in a path, whose parts stay to be read.
const ESCAPED_IN_PATHS: &AsciiSet = &ESCAPED.remove(b'/').remove(b':').remove(b',');
const PARAMETERS: &str =
    "socket, ssl, ssl_verify, ssl_ca, connect_timeout, read_timeout, dialect, password";

/// Why a text is no address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// Another scheme, or none.
    #[error(
        "`{found}` is no address of a server: it begins with mysql://, \
         for example mysql://user@127.0.0.1:3306/db"
    )]
    Scheme {
        /// What was found in its place.
        found: String,
    },
    /// A port that is none.
    #[error("port `{found}` of host {host} is no number from 1 to 65535")]
    Port {
        /// Of which host.
        host: String,
        /// What was found.
        found: String,
    },
    /// A bracket without its other half.
    #[error("host `{found}` has one bracket only; an IPv6 address is written as [::1]:3306")]
    Bracket {
        /// The host.
        found: String,
    },
    /// Several colons outside brackets.
    #[error("host `{found}` has several colons; write an IPv6 address in brackets, as [::1]:3306")]
    Colons {
        /// The host.
        found: String,
    },
    /// Nothing between two commas.
    #[error("a host is missing beside a comma in `{found}`")]
    EmptyHost {
        /// The list of hosts.
        found: String,
    },
    /// An escape that gives no text.
    #[error("{part} of the address is no UTF-8 once its %XX are decoded")]
    Encoding {
        /// Which part.
        part: &'static str,
    },
    /// An unknown parameter.
    #[error("unknown parameter `{found}` behind the `?` of the address; known are {PARAMETERS}")]
    Parameter {
        /// Its name.
        found: String,
    },
    /// A parameter's value.
    #[error("{name}={found} in the address: use {fix}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What was found.
        found: String,
        /// What it takes.
        fix: &'static str,
    },
    /// A socket beside several hosts.
    #[error(
        "a socket is one server, but the address names {hosts} hosts as well; name one of both"
    )]
    SocketAndHosts {
        /// How many.
        hosts: usize,
    },
}

/// A host and its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port; [`DEFAULT_PORT`] where none is named.
    pub port: Option<u16>,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.unwrap_or(DEFAULT_PORT);
        match self.host.contains(':') {
            true => write!(f, "[{}]:{port}", self.host),
            false => write!(f, "{}:{port}", self.host),
        }
    }
}

/// A password. It is told to servers only.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Never. Passwords are not sent in clear even so.
    #[default]
    Disabled,
    /// Where the server offers it. Plain text is accepted too, so no certificate is looked at.
    Preferred,
    /// Always, and the server proves who it is as [`ServerAddress::verification`] has it.
    Required,
}

/// What of a server's certificate is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// That a trusted authority issued it for this host.
    #[default]
    Host,
    /// That a trusted authority issued it: servers make certificates that name no host.
    Authority,
    /// Nothing.
    Nothing,
}

impl Verification {
    fn word(self) -> &'static str {
        match self {
            Self::Host => "on",
            Self::Authority => "ca",
            Self::Nothing => "off",
        }
    }
}

impl Encryption {
    fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Preferred => "preferred",
            Self::Required => "required",
        }
    }
}

/// Where servers of one database are, and how they are talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// In turn for each connection; empty where a socket or the user's option file says it.
    pub hosts: Vec<HostPort>,
    /// A local socket in place of hosts.
    pub socket: Option<PathBuf>,
    /// The user.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<Password>,
    /// The database.
    pub database: Option<String>,
    /// Whether connections are encrypted.
    pub encryption: Encryption,
    /// What of the server's certificate is verified.
    pub verification: Verification,
    /// A file with certificates that are trusted besides the well-known ones.
    pub ca: Option<PathBuf>,
    /// How long a server may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long a server may take to answer; for ever without one.
    pub read_timeout: Option<Duration>,
    /// Whether the server is asked for no more than an unknown one, whatever it says that it is:
    /// for proxies between.
    pub asks_least: bool,
}

impl Default for ServerAddress {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            socket: None,
            user: None,
            password: None,
            database: None,
            encryption: Encryption::Disabled,
            verification: Verification::Host,
            ca: None,
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: None,
            asks_least: false,
        }
    }
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let Some(rest) = text.strip_prefix("mysql://") else {
            // What stands before the first colon only: the rest may hold a password.
            let found = text.split(':').next().unwrap_or_default().to_owned();
            return Err(AddressError::Scheme { found });
        };
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold `@` and `/`: it ends at the last `@`.
        let (login, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        let mut address = Self { hosts: hosts_of(hosts)?, ..Self::default() };
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        address.user = some(decoded(user, "the user")?);
        address.password =
            password.map(|text| decoded(text, "the password")).transpose()?.map(Password);
        address.database = some(decoded(database, "the database")?);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            address.take(parameter)?;
        }
        if address.socket.is_some() && address.hosts.len() > 1 {
            return Err(AddressError::SocketAndHosts { hosts: address.hosts.len() });
        }
        if address.socket.is_some() {
            // The host beside a socket is this one.
            address.hosts.clear();
        }
        Ok(address)
    }
}

impl ServerAddress {
    /// Whether the server is on this host, as far as the address says it.
    pub fn is_local(&self) -> bool {
        let is_loopback = |host: &HostPort| match host.host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => host.host.eq_ignore_ascii_case("localhost"),
        };
        // Without any host the user's option file has named the usual place, which is this host.
        self.socket.is_some() || self.hosts.iter().all(is_loopback)
    }

    fn take(&mut self, parameter: &str) -> Result<(), AddressError> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let found = decoded(value, "a parameter")?;
        match name.replace('-', "_").as_str() {
            "socket" => self.socket = Some(found.into()),
            "ssl_ca" => self.ca = Some(found.into()),
            "password" => self.password = Some(Password(found)),
            "ssl" => {
                let all = [Encryption::Disabled, Encryption::Preferred, Encryption::Required];
                let fix = "required, preferred or disabled";
                let wrong = AddressError::Value { name: "ssl", found: found.clone(), fix };
                let named = all.into_iter().find(|one| one.word() == found);
                self.encryption = named.ok_or(wrong)?;
            }
            "ssl_verify" => {
                let all = [Verification::Host, Verification::Authority, Verification::Nothing];
                let fix = "on, ca or off";
                let wrong = AddressError::Value { name: "ssl_verify", found: found.clone(), fix };
                let named = all.into_iter().find(|one| one.word() == found);
                self.verification = named.ok_or(wrong)?;
            }
            "dialect" => {
                self.asks_least = match found.as_str() {
                    "least" => true,
                    "own" => false,
                    _ => {
                        let fix = "own or least";
                        return Err(AddressError::Value { name: "dialect", found, fix });
                    }
                };
            }
            "connect_timeout" => self.connect_timeout = timeout("connect_timeout", found)?,
            "read_timeout" => self.read_timeout = Some(timeout("read_timeout", found)?),
            _ => return Err(AddressError::Parameter { found: name.to_owned() }),
        }
        Ok(())
    }
}

/// Without the password.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mysql://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", utf8_percent_encode(user, ESCAPED))?;
        }
        for (at, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if at == 0 { "" } else { "," })?;
        }
        if let Some(database) = &self.database {
            write!(f, "/{}", utf8_percent_encode(database, ESCAPED))?;
        }
        let path = |name: &str, path: &Option<PathBuf>| {
            let path = path.as_ref()?.to_string_lossy();
            Some(format!("{name}={}", utf8_percent_encode(&path, ESCAPED_IN_PATHS)))
        };
        let (socket, ca) = (path("socket", &self.socket), path("ssl_ca", &self.ca));
        let is_plain = self.encryption == Encryption::Disabled;
        let encryption = (!is_plain).then(|| format!("ssl={}", self.encryption.word()));
        let trusts = (self.verification != Verification::Host)
            .then(|| format!("ssl_verify={}", self.verification.word()));
        let dialect = self.asks_least.then(|| "dialect=least".to_owned());
        let parameters = [socket, encryption, ca, trusts, dialect].into_iter().flatten();
        for (at, parameter) in parameters.enumerate() {
            write!(f, "{}{parameter}", if at == 0 { "?" } else { "&" })?;
        }
        Ok(())
    }
}

fn hosts_of(text: &str) -> Result<Vec<HostPort>, AddressError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(|host| host_of(host, text)).collect()
}

fn host_of(text: &str, list: &str) -> Result<HostPort, AddressError> {
    if text.is_empty() {
        return Err(AddressError::EmptyHost { found: list.to_owned() });
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => {
            let bracket = || AddressError::Bracket { found: text.to_owned() };
            let (host, rest) = inner.split_once(']').ok_or_else(bracket)?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(bracket()),
            }
        }
        None if text.matches(':').count() > 1 => {
            return Err(AddressError::Colons { found: text.to_owned() });
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let host = decoded(host, "a host")?;
    let wrong = |found: &str| AddressError::Port { host: host.clone(), found: found.to_owned() };
    let number = |text: &str| text.parse().ok().filter(|port| *port > 0).ok_or(wrong(text));
    let port = port.map(number).transpose()?;
    Ok(HostPort { host, port })
}

fn decoded(text: &str, part: &'static str) -> Result<String, AddressError> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| AddressError::Encoding { part })
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn timeout(name: &'static str, found: String) -> Result<Duration, AddressError> {
    let wrong = AddressError::Value { name, found: found.clone(), fix: "a duration such as 10s" };
    parse_duration(&found).ok().filter(|time| !time.is_zero()).ok_or(wrong)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
