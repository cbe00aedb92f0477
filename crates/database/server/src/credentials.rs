//! Who logs in, and where to, when the address does not say it.
//!
//! Purpose: fills an address up from the user's usual places. What is said first counts, as with
//! MySQL's own programs: the address, then the option file (`--defaults-file`, else
//! `~/.my.cnf`), then the environment (`MYSQL_PWD`, `USER`), then defaults. Option files are read
//! as the servers' own clients read them. Invariant: what an option file says of the security of a
//! connection is done or refused, never passed over. Files for the whole machine are not read.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use thiserror::Error;

use crate::address::{
    Encryption, HostPort, Password, Purpose, ServerAddress, ServerKey, Verification,
};

/// Sections of an option file that concern every client; with a suffix, those besides.
const SECTIONS: [&str; 3] = ["client", "client-server", "client-mariadb"];
/// Files that include files in turn go so deep, as with MySQL's own programs.
const DEEPEST: usize = 10;
/// Options for the security of connections besides `ssl-*` and `tls-*`, which are not understood.
const NOT_UNDERSTOOD: [&str; 3] = ["password2", "password3", "login-path"];
const OTHERS_MAY_WRITE: u32 = 0o002;

/// Why the user's option file was not taken.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// It cannot be read.
    #[error("cannot read the option file {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Everybody may write it.
    #[error("{path}: everybody may write this option file; use chmod o-w {path}")]
    Writable {
        /// Which.
        path: PathBuf,
    },
    /// Files include each other.
    #[error("{path}:{line}: option files include each other {DEEPEST} deep; remove the include")]
    Deep {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// An encrypted file of login paths.
    #[error(
        "{path}: encrypted login paths are not read; put user and password into a section \
         [client] or [client.NAME] of an option file (mode 0600)"
    )]
    LoginPath {
        /// Which.
        path: PathBuf,
    },
    /// A value that an option does not take.
    #[error("{path}:{line}: {name} = {found}: use {fix}")]
    Value {
        /// In which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The option.
        name: String,
        /// What was found.
        found: String,
        /// What it takes.
        fix: &'static str,
    },
    /// An option for the security of the connection that this program cannot follow.
    #[error(
        "{path}:{line}: {name} is not understood, and it concerns the security of the connection; \
         remove it, or name another file by --defaults-file"
    )]
    NotUnderstood {
        /// In which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The option.
        name: String,
    },
    /// The section that the address names is in no file.
    #[error("group={group}: there is no section [client.{group}] in {place}")]
    Group {
        /// Its name.
        group: String,
        /// Where it was looked for.
        place: String,
    },
}

/// Where to look for what an address leaves out.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// `--defaults-file`: read in place of `~/.my.cnf`, and it must be there.
    pub defaults_file: Option<PathBuf>,
    /// `--defaults-group-suffix`: sections with this behind their name are read, too. Else
    /// `MYSQL_GROUP_SUFFIX`.
    pub group_suffix: Option<String>,
    /// What the server is logged in to for.
    pub purpose: Purpose,
}

/// What the environment says.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    password: Option<String>,
    user: Option<String>,
}

impl Credentials {
    /// The address with everything that it leaves out.
    ///
    /// # Errors
    /// When an option file cannot be read, holds what cannot be followed, or has no section that
    /// the address names.
    pub fn complete(&self, address: ServerAddress) -> Result<ServerAddress, CredentialsError> {
        let home = || Some(Path::new(&env::var_os("HOME")?).join(".my.cnf"));
        let path = match &self.defaults_file {
            Some(path) => Some(path.clone()),
            None => home().filter(|path| path.is_file()),
        };
        let suffix = self.group_suffix.clone().or_else(|| env::var("MYSQL_GROUP_SUFFIX").ok());
        let options = ClientOptions::read(path.as_deref(), suffix, address.group.as_deref())?;
        let around = Surroundings {
            password: env::var("MYSQL_PWD").ok(),
            user: env::var("USER").or_else(|_| env::var("LOGNAME")).ok(),
        };
        let address = ServerAddress { purpose: self.purpose, ..address };
        Ok(completed(address, options, around))
    }
}

/// What an option file says to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClientOptions {
    user: Option<String>,
    password: Option<Password>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    encryption: Option<Encryption>,
    verification: Option<Verification>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    certificate_key: Option<PathBuf>,
    server_key: ServerKey,
}

impl ClientOptions {
    /// Those of the file, where there is one, and of the files that it includes.
    fn read(
        path: Option<&Path>,
        suffix: Option<String>,
        group: Option<&str>,
    ) -> Result<Self, CredentialsError> {
        let mut reading = Reading { suffix: suffix.unwrap_or_default(), ..Reading::default() };
        reading.group = group.map(|group| format!("client.{group}"));
        if let Some(path) = path {
            reading.file(path, 0)?;
        }
        match group.filter(|_| !reading.has_group) {
            Some(group) => {
                let of = |path: &Path| path.display().to_string();
                let place = path.map_or_else(|| "~/.my.cnf, which is missing".to_owned(), of);
                Err(CredentialsError::Group { group: group.to_owned(), place })
            }
            None => Ok(reading.own.or(reading.common).concluded()),
        }
    }

    /// These, and what they leave out by others.
    fn or(self, other: Self) -> Self {
        // A socket is a place of its own.
        let host = if self.socket.is_some() { None } else { other.host };
        // Who says whether to encrypt says all of it.
        let verification = self.encryption.map_or(other.verification, |_| None);
        Self {
            user: self.user.or(other.user),
            password: self.password.or(other.password),
            host: self.host.or(host),
            port: self.port.or(other.port),
            socket: self.socket.or(other.socket),
            encryption: self.encryption.or(other.encryption),
            verification: self.verification.or(verification),
            ca: self.ca.or(other.ca),
            certificate: self.certificate.or(other.certificate),
            certificate_key: self.certificate_key.or(other.certificate_key),
            server_key: match self.server_key {
                ServerKey::AsPurpose => other.server_key,
                own => own,
            },
        }
    }

    /// With what the clients take for granted: an authority is named to be asked, and `ssl` by
    /// itself encrypts, whoever the server is.
    fn concluded(mut self) -> Self {
        let verifies = self.verification == Some(Verification::Host);
        if self.encryption.is_none() && (self.ca.is_some() || verifies) {
            self.encryption = Some(Encryption::Required);
        }
        if self.encryption == Some(Encryption::Required) {
            let by_ca = self.ca.as_ref().map(|_| Verification::Authority);
            let verification = self.verification.or(by_ca);
            self.verification = Some(verification.unwrap_or(Verification::Nothing));
        }
        self
    }

    /// Takes one option; `value` is what is behind its `=`. Fails with what it takes.
    fn take(&mut self, name: &str, value: Option<String>) -> Result<(), &'static str> {
        let switched = || match value.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("1" | "on" | "true") => Ok(true),
            Some("0" | "off" | "false") => Ok(false),
            Some(_) => Err("1 or 0"),
        };
        let path = || value.clone().filter(|path| !path.is_empty()).map(PathBuf::from);
        match name {
            "user" => self.user = value,
            "password" | "password1" => {
                self.password = value.map(Password).or(self.password.take())
            }
            "host" => self.host = value,
            "port" => {
                let port = value.as_deref().and_then(|port| port.parse().ok());
                let port = port.filter(|port| *port > 0);
                self.port = Some(port.ok_or("a number from 1 to 65535")?);
            }
            "socket" => self.socket = path(),
            "ssl-mode" => (self.encryption, self.verification) = mode(value.as_deref())?,
            "ssl" => {
                let is_on = switched()?;
                self.encryption =
                    Some(if is_on { Encryption::Required } else { Encryption::Disabled });
            }
            "ssl-verify-server-cert" => {
                let verifies = switched()?;
                self.verification =
                    Some(if verifies { Verification::Host } else { Verification::Nothing });
            }
            "ssl-ca" => self.ca = path(),
            "ssl-cert" => self.certificate = path(),
            "ssl-key" => self.certificate_key = path(),
            "server-public-key-path" => {
                self.server_key = path().map_or(ServerKey::AsPurpose, ServerKey::Pinned);
            }
            "get-server-public-key" if !matches!(self.server_key, ServerKey::Pinned(_)) => {
                self.server_key = if switched()? { ServerKey::Shown } else { ServerKey::Nothing };
            }
            _ => {}
        }
        Ok(())
    }
}

/// `ssl-mode` in MySQL's words.
fn mode(word: Option<&str>) -> Result<(Option<Encryption>, Option<Verification>), &'static str> {
    let required = |verification| Ok((Some(Encryption::Required), Some(verification)));
    match word.unwrap_or_default().to_ascii_uppercase().as_str() {
        "DISABLED" => Ok((Some(Encryption::Disabled), None)),
        "PREFERRED" => Ok((Some(Encryption::Preferred), None)),
        "REQUIRED" => required(Verification::Nothing),
        "VERIFY_CA" => required(Verification::Authority),
        "VERIFY_IDENTITY" => required(Verification::Host),
        _ => Err("DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY"),
    }
}

/// Option files while they are read, one after the other.
#[derive(Debug, Default)]
struct Reading {
    suffix: String,
    /// The section of the address.
    group: Option<String>,
    has_group: bool,
    /// Of the sections for every client. The last one said counts, as with MySQL's programs.
    common: ClientOptions,
    /// Of the section of the address.
    own: ClientOptions,
}

/// Whom a section concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Common,
    Own,
    Others,
}

impl Reading {
    fn file(&mut self, path: &Path, depth: usize) -> Result<(), CredentialsError> {
        if path.file_name().is_some_and(|name| name == ".mylogin.cnf") {
            return Err(CredentialsError::LoginPath { path: path.to_owned() });
        }
        let wrong = |source| CredentialsError::Read { path: path.to_owned(), source };
        let about = fs::metadata(path).map_err(wrong)?;
        if about.is_file() && about.mode() & OTHERS_MAY_WRITE != 0 {
            return Err(CredentialsError::Writable { path: path.to_owned() });
        }
        let text = fs::read_to_string(path).map_err(wrong)?;
        self.text(&text, path, depth)
    }

    fn text(&mut self, text: &str, path: &Path, depth: usize) -> Result<(), CredentialsError> {
        let mut section = Section::Others;
        for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
            if let Some(rest) = line.strip_prefix('[') {
                section = self.section(rest.split(']').next().unwrap_or_default().trim());
            } else if let Some(order) = line.strip_prefix('!') {
                if depth >= DEEPEST {
                    return Err(CredentialsError::Deep { path: path.to_owned(), line: at });
                }
                self.include(order, depth + 1)?;
            } else if !line.starts_with(['#', ';']) && section != Section::Others {
                self.option(line, section).map_err(|error| error.at(path, at))?;
            }
        }
        Ok(())
    }

    fn section(&mut self, name: &str) -> Section {
        if self.group.as_deref() == Some(name) {
            self.has_group = true;
            return Section::Own;
        }
        let suffix = Some(self.suffix.as_str());
        let is_suffixed = SECTIONS.iter().any(|section| name.strip_prefix(section) == suffix);
        match SECTIONS.contains(&name) || is_suffixed {
            true => Section::Common,
            false => Section::Others,
        }
    }

    /// `!include FILE`, or `!includedir DIR` for all files `*.cnf` there.
    fn include(&mut self, order: &str, depth: usize) -> Result<(), CredentialsError> {
        let Some((order, path)) = order.split_once(char::is_whitespace) else {
            return Ok(());
        };
        let path = Path::new(path.trim());
        match order {
            "include" => self.file(path, depth),
            "includedir" => {
                let wrong = |source| CredentialsError::Read { path: path.to_owned(), source };
                let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(wrong)?.collect();
                let entries = entries.map_err(wrong)?.into_iter().map(|entry| entry.path());
                let is_ours = |path: &PathBuf| path.extension().is_some_and(|end| end == "cnf");
                let mut files: Vec<PathBuf> = entries.filter(is_ours).collect();
                files.sort();
                files.iter().try_for_each(|file| self.file(file, depth))
            }
            _ => Ok(()),
        }
    }

    /// `name`, `name = value`, with the prefixes that MySQL's programs know.
    fn option(&mut self, line: &str, section: Section) -> Result<(), WrongOption> {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(unquoted(value.trim()))),
            None => (line.split('#').next().unwrap_or_default().trim(), None),
        };
        let written = name.replace('_', "-");
        let (name, is_loose) = match written.strip_prefix("loose-") {
            Some(name) => (name, true),
            None => (written.as_str(), false),
        };
        let off = name.strip_prefix("skip-").or_else(|| name.strip_prefix("disable-"));
        let (name, value) = match (off, name.strip_prefix("enable-")) {
            (Some(name), _) => (name, Some("0".to_owned())),
            (None, Some(name)) => (name, Some("1".to_owned())),
            (None, None) => (name, value),
        };
        let of = if section == Section::Own { &mut self.own } else { &mut self.common };
        let found = value.clone().unwrap_or_default();
        if is_security(name) && !is_loose {
            return Err(WrongOption { name: written, found, fix: None });
        }
        let wrong = |fix| WrongOption { name: written.clone(), found, fix: Some(fix) };
        of.take(name, value).map_err(wrong)
    }
}

/// An option of the security of a connection that [`ClientOptions::take`] does not know.
fn is_security(name: &str) -> bool {
    const KNOWN: [&str; 6] =
        ["ssl", "ssl-mode", "ssl-verify-server-cert", "ssl-ca", "ssl-cert", "ssl-key"];
    let concerns = name.starts_with("ssl-") || name.starts_with("tls-");
    (concerns && !KNOWN.contains(&name)) || NOT_UNDERSTOOD.contains(&name)
}

/// An option that is not taken: one that is not understood has no value that would do.
#[derive(Debug)]
struct WrongOption {
    name: String,
    found: String,
    fix: Option<&'static str>,
}

impl WrongOption {
    fn at(self, path: &Path, line: usize) -> CredentialsError {
        let (path, Self { name, found, fix }) = (path.to_owned(), self);
        match fix {
            Some(fix) => CredentialsError::Value { path, line, name, found, fix },
            None => CredentialsError::NotUnderstood { path, line, name },
        }
    }
}

/// A value as option files write it: quoted or not, with escapes and a comment behind it.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let mut chars = value.chars().skip(usize::from(quote.is_some())).peekable();
    let mut out = String::with_capacity(value.len());
    while let Some(char) = chars.next() {
        match char {
            _ if Some(char) == quote => break,
            '#' if quote.is_none() => break,
            '\\' => match chars.next() {
                Some('s') => out.push(' '),
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push('\u{8}'),
                Some(other @ ('\\' | '"' | '\'')) => out.push(other),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            _ => out.push(char),
        }
    }
    if quote.is_none() { out.trim_end().to_owned() } else { out }
}

fn completed(
    mut address: ServerAddress,
    options: ClientOptions,
    around: Surroundings,
) -> ServerAddress {
    if address.hosts.is_empty() && address.socket.is_none() {
        // As MySQL's programs do: a socket serves only where no other host is named.
        let is_local = options.host.as_deref().is_none_or(|host| host == "localhost");
        address.socket = options.socket.filter(|_| is_local);
        if address.socket.is_none() {
            let host = options.host.unwrap_or_else(|| "127.0.0.1".to_owned());
            address.hosts = vec![HostPort { host, port: options.port }];
        }
    }
    let user = address.user.or(options.user).or(around.user);
    address.user = Some(user.unwrap_or_else(|| "root".to_owned()));
    let password = address.password.or(options.password);
    address.password = password.or(around.password.map(Password));
    if address.encryption.is_none() {
        // What asks for encryption in the address is not taken back by the file.
        let is_asked = address.encryption_in_use() == Encryption::Required;
        address.encryption = options.encryption.filter(|_| !is_asked);
        let verifies = |by: &Verification| !is_asked || *by != Verification::Nothing;
        address.verification = address.verification.or(options.verification.filter(verifies));
    }
    address.ca = address.ca.or(options.ca);
    let (certificate, key) = (options.certificate, options.certificate_key);
    if address.identity().is_none() {
        (address.certificate, address.certificate_key) = (certificate, key);
    }
    if address.server_key == ServerKey::AsPurpose {
        address.server_key = options.server_key;
    }
    address
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
