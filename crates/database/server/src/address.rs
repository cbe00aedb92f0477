//! Where servers are: `mysql://user:password@h1:3306,[::1]:3307/db?socket=PATH&ssl=required`.
//!
//! Invariant: what is printed of an address, also by `Debug` and in errors, holds no password.
//! Nothing is looked up here: [`crate::Credentials`] finds the user where the address does not name
//! one.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use iostrata_stats::units::parse_duration;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

/// The default port of a server.
pub const DEFAULT_PORT: u16 = 3306;
/// How long a server may take to accept a connection by default.
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
const PARAMETERS: &str = "socket, ssl, ssl_verify, ssl_ca, ssl_cert, ssl_key, \
                          get_server_public_key, server_public_key, group, connect_timeout, \
                          read_timeout, dialect, password";

/// Why a text is no address of a server.
///
/// Parts are named by their place and not quoted: any part may be one of a password that was not
/// escaped. The scheme is before every password.
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
    /// An `@` behind the `?`, so that the login is cut.
    #[error(
        "an @ is behind the ? of the address; a ? in the user or password is written as %3F \
         (and # as %23), an @ in a parameter as %40"
    )]
    Cut,
    /// An invalid port.
    #[error(
        "the port of host {nth} of the address is no number from 1 to 65535; what has a meaning \
         in an address is written as %XX in a user or password"
    )]
    Port {
        /// Of which host, from 1.
        nth: usize,
    },
    /// A bracket without its other half.
    #[error(
        "host {nth} of the address has one bracket only; an IPv6 address is written as [::1]:3306"
    )]
    Bracket {
        /// Which host, from 1.
        nth: usize,
    },
    /// Several colons outside brackets.
    #[error(
        "host {nth} of the address has several colons; write an IPv6 address in brackets, as \
         [::1]:3306"
    )]
    Colons {
        /// Which host, from 1.
        nth: usize,
    },
    /// Nothing between two commas.
    #[error("host {nth} of the address is missing next to a comma")]
    EmptyHost {
        /// Which host, from 1.
        nth: usize,
    },
    /// An escape that gives no text.
    #[error("{part} of the address is no UTF-8 once its %XX are decoded")]
    Encoding {
        /// Which part.
        part: &'static str,
    },
    /// An unknown parameter.
    #[error("parameter {nth} behind the ? of the address is unknown; known are {PARAMETERS}")]
    Parameter {
        /// Which, from 1.
        nth: usize,
    },
    /// A login path of MySQL's own programs.
    #[error(
        "login_path: the encrypted login paths of ~/.mylogin.cnf are not read; put user and \
         password into a section [client.NAME] of an option file (mode 0600) and use group=NAME"
    )]
    LoginPath,
    /// A parameter's value.
    #[error("{name} in the address takes {fix}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What it takes.
        fix: &'static str,
    },
    /// A socket together with several hosts.
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

impl HostPort {
    /// Whether it is this host by the loopback interface, judged by its name.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
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

/// A password. It is sent to servers only.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Never. Requests and answers can be read on the way.
    Disabled,
    /// Where the server offers it. Plain text is accepted too, so no certificate is checked.
    Preferred,
    /// Always, and the server proves who it is as [`ServerAddress::verification`] has it.
    Required,
}

/// What a server is logged in to for. It decides where the address sets nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To watch it and to set it: encryption is preferred, and no key of a server is taken unseen.
    #[default]
    Administration,
    /// To load it: connections are in plain text, and a server on this host may show its key.
    Load,
}

/// Which RSA key of a server a password is encrypted by where the connection is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerKey {
    /// The server's own key where [`Purpose`] allows it, else none.
    #[default]
    AsPurpose,
    /// The server's own key, unverified.
    Shown,
    /// None: the login fails.
    Nothing,
    /// The one in this file.
    Pinned(PathBuf),
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
    /// In turn for each connection; empty where a socket or the user's option file gives the place.
    pub hosts: Vec<HostPort>,
    /// A local socket in place of hosts.
    pub socket: Option<PathBuf>,
    /// The user.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<Password>,
    /// The database.
    pub database: Option<String>,
    /// Whether connections are encrypted, where that is set.
    pub encryption: Option<Encryption>,
    /// What of the server's certificate is verified, where that is set.
    pub verification: Option<Verification>,
    /// A file with certificates that are trusted besides the well-known ones.
    pub ca: Option<PathBuf>,
    /// A file with the client's own certificate.
    pub certificate: Option<PathBuf>,
    /// A file with the private key of that certificate.
    pub certificate_key: Option<PathBuf>,
    /// Which RSA key of the server is taken.
    pub server_key: ServerKey,
    /// The section `[client.NAME]` of the option file, which counts before `[client]`.
    pub group: Option<String>,
    /// What decides where nothing is set.
    pub purpose: Purpose,
    /// How long a server may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long a server may take to answer; for ever without one.
    pub read_timeout: Option<Duration>,
    /// Whether no more is required of the server than of an unknown one, whatever it claims to be:
    /// for proxies in between.
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
            encryption: None,
            verification: None,
            ca: None,
            certificate: None,
            certificate_key: None,
            server_key: ServerKey::AsPurpose,
            group: None,
            purpose: Purpose::Administration,
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
        if parameters.contains('@') {
            return Err(AddressError::Cut);
        }
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
        let parameters = parameters.split('&').filter(|parameter| !parameter.is_empty());
        for (at, parameter) in parameters.enumerate() {
            address.take(parameter, at + 1)?;
        }
        if address.socket.is_some() && address.hosts.len() > 1 {
            return Err(AddressError::SocketAndHosts { hosts: address.hosts.len() });
        }
        if address.socket.is_some() {
            // The host given with a socket is this one.
            address.hosts.clear();
        }
        Ok(address)
    }
}

impl ServerAddress {
    /// Whether the server is on this host, judged by the address.
    pub fn is_local(&self) -> bool {
        // Without any host the user's option file has named the usual place, which is this host.
        self.socket.is_some() || self.hosts.iter().all(HostPort::is_loopback)
    }

    /// Whether connections are encrypted: as set, else always where something is set that requires
    /// encryption, else by the purpose.
    pub(crate) fn encryption_in_use(&self) -> Encryption {
        let verifies =
            matches!(self.verification, Some(Verification::Host | Verification::Authority));
        let by_purpose = match self.purpose {
            _ if verifies || self.ca.is_some() || self.identity().is_some() => Encryption::Required,
            Purpose::Administration => Encryption::Preferred,
            Purpose::Load => Encryption::Disabled,
        };
        self.encryption.unwrap_or(by_purpose)
    }

    /// The files of the client's certificate and its key. One file may hold both.
    pub(crate) fn identity(&self) -> Option<(&PathBuf, &PathBuf)> {
        let (certificate, key) = (self.certificate.as_ref(), self.certificate_key.as_ref());
        certificate.or(key).zip(key.or(certificate))
    }

    /// Whether the RSA key that a host shows is taken.
    pub(crate) fn takes_key_of(&self, host: &HostPort) -> bool {
        match self.server_key {
            ServerKey::AsPurpose => self.purpose == Purpose::Load && host.is_loopback(),
            ServerKey::Shown => true,
            ServerKey::Nothing | ServerKey::Pinned(_) => false,
        }
    }

    fn take(&mut self, parameter: &str, nth: usize) -> Result<(), AddressError> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let found = decoded(value, "a parameter")?;
        match name.replace('-', "_").as_str() {
            "socket" => self.socket = Some(found.into()),
            "ssl_ca" => self.ca = Some(found.into()),
            "ssl_cert" => self.certificate = Some(found.into()),
            "ssl_key" => self.certificate_key = Some(found.into()),
            "server_public_key" => self.server_key = ServerKey::Pinned(found.into()),
            "get_server_public_key" => {
                let keys = [("on", ServerKey::Shown), ("off", ServerKey::Nothing)];
                self.server_key = one_of("get_server_public_key", "on or off", keys, &found)?;
            }
            "group" => self.group = some(found),
            "login_path" => return Err(AddressError::LoginPath),
            "password" => self.password = Some(Password(found)),
            "ssl" => {
                let all = [Encryption::Disabled, Encryption::Preferred, Encryption::Required];
                let all = all.map(|one| (one.word(), one));
                let fix = "required, preferred or disabled";
                self.encryption = Some(one_of("ssl", fix, all, &found)?);
            }
            "ssl_verify" => {
                let all = [Verification::Host, Verification::Authority, Verification::Nothing];
                let all = all.map(|one| (one.word(), one));
                self.verification = Some(one_of("ssl_verify", "on, ca or off", all, &found)?);
            }
            "dialect" => {
                let all = [("own", false), ("least", true)];
                self.asks_least = one_of("dialect", "own or least", all, &found)?;
            }
            "connect_timeout" => self.connect_timeout = timeout("connect_timeout", &found)?,
            "read_timeout" => self.read_timeout = Some(timeout("read_timeout", &found)?),
            _ => return Err(AddressError::Parameter { nth }),
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
        let path = |name: &str, path: Option<&PathBuf>| {
            let path = path?.to_string_lossy();
            Some(format!("{name}={}", utf8_percent_encode(&path, ESCAPED_IN_PATHS)))
        };
        let word = |name: &str, word: Option<&str>| Some(format!("{name}={}", word?));
        let group = self.group.as_ref().map(|group| utf8_percent_encode(group, ESCAPED));
        let key = match &self.server_key {
            ServerKey::AsPurpose => None,
            ServerKey::Shown => Some("get_server_public_key=on".to_owned()),
            ServerKey::Nothing => Some("get_server_public_key=off".to_owned()),
            ServerKey::Pinned(file) => path("server_public_key", Some(file)),
        };
        let parameters = [
            path("socket", self.socket.as_ref()),
            word("ssl", self.encryption.map(Encryption::word)),
            path("ssl_ca", self.ca.as_ref()),
            word("ssl_verify", self.verification.map(Verification::word)),
            path("ssl_cert", self.certificate.as_ref()),
            path("ssl_key", self.certificate_key.as_ref()),
            key,
            group.map(|group| format!("group={group}")),
            word("dialect", self.asks_least.then_some("least")),
        ];
        for (at, parameter) in parameters.into_iter().flatten().enumerate() {
            write!(f, "{}{parameter}", if at == 0 { "?" } else { "&" })?;
        }
        Ok(())
    }
}

fn hosts_of(text: &str) -> Result<Vec<HostPort>, AddressError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').enumerate().map(|(at, host)| host_of(host, at + 1)).collect()
}

fn host_of(text: &str, nth: usize) -> Result<HostPort, AddressError> {
    if text.is_empty() {
        return Err(AddressError::EmptyHost { nth });
    }
    let bracket = AddressError::Bracket { nth };
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']').ok_or(bracket.clone())?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(bracket),
            }
        }
        None if text.matches(':').count() > 1 => return Err(AddressError::Colons { nth }),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let host = decoded(host, "a host")?;
    let number = |text: &str| text.parse().ok().filter(|port| *port > 0);
    let port = port.map(|text| number(text).ok_or(AddressError::Port { nth })).transpose()?;
    Ok(HostPort { host, port })
}

fn decoded(text: &str, part: &'static str) -> Result<String, AddressError> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| AddressError::Encoding { part })
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn one_of<T, const N: usize>(
    name: &'static str,
    fix: &'static str,
    words: [(&str, T); N],
    found: &str,
) -> Result<T, AddressError> {
    let named = words.into_iter().find(|(word, _)| *word == found);
    named.map(|(_, value)| value).ok_or(AddressError::Value { name, fix })
}

fn timeout(name: &'static str, found: &str) -> Result<Duration, AddressError> {
    let time = parse_duration(found).ok().filter(|time| !time.is_zero());
    time.ok_or(AddressError::Value { name, fix: "a duration such as 10s" })
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
