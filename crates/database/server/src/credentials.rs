//! Who logs in, and where to, when the address does not name it.
//!
//! Purpose: fills an address up from the user's usual places. The first source counts, as with
//! MySQL's own programs: the address, then the option file (`--defaults-file`, else `~/.my.cnf`),
//! then the environment (`MYSQL_PWD`, `USER`), then defaults. Option files are read as the servers'
//! own clients read them. Invariant: what an option file sets about the security of a connection is
//! done or refused, never ignored. Files for the whole machine are not read.

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
    /// It is world-writable.
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
    /// A value without a `=` before it.
    #[error("{path}:{line}: {name} has no = before its value; write {name} = VALUE")]
    NoEquals {
        /// In which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The option.
        name: String,
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

/// The values of the environment.
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

/// The options for clients in an option file.
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
        // The source that sets encryption sets all of it.
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

    /// Adds the clients' own defaults: naming an authority turns on verification by it, and `ssl`
    /// alone encrypts without verifying the server.
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
    /// Of the sections for every client. The last one counts, as with MySQL's programs.
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
                if let Some(name) = without_equals(line) {
                    let (path, name) = (path.to_owned(), name.to_owned());
                    return Err(CredentialsError::NoEquals { path, line: at, name });
                }
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

/// The option of a line whose value has no `=` before it. Taken for an option that is not known, it
/// would log another user in.
fn without_equals(line: &str) -> Option<&str> {
    const OF_LOGINS: [&str; 5] = ["user", "password", "host", "port", "socket"];
    let before = line.split('=').next().unwrap_or_default().trim();
    let (name, rest) = before.split_once(char::is_whitespace)?;
    (OF_LOGINS.contains(&name) && !rest.trim_start().starts_with('#')).then_some(name)
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
        // Encryption required by the address is not turned off by the file.
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
mod tests {
    use super::*;

    const FILE: &str = "
# of the user
[mysqld]
user = mysql
[client]
user=\"bench\"   # who
password = 'hun#ter\\\\2'
port=3307
socket = /run/a\\sb.sock
[mysqldump]
password=other
";

    fn options(text: &str) -> Result<ClientOptions, CredentialsError> {
        grouped(text, "", None)
    }

    fn grouped(
        text: &str,
        suffix: &str,
        group: Option<&str>,
    ) -> Result<ClientOptions, CredentialsError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my.cnf");
        fs::write(&path, text.replace("DIR", &dir.path().display().to_string())).unwrap();
        fs::create_dir(dir.path().join("more")).unwrap();
        for (name, text) in [
            ("more/b.cnf", "[client]\nuser=of_b\nport=2"),
            ("more/a.cnf", "[client]\nuser=of_a\nhost=h"),
            ("more/not.txt", "[client]\nuser=other"),
            ("self.cnf", "!include DIR/self.cnf"),
        ] {
            let text = text.replace("DIR", &dir.path().display().to_string());
            fs::write(dir.path().join(name), text).unwrap();
        }
        ClientOptions::read(Some(&path), Some(suffix.to_owned()), group)
    }

    fn filled(address: &str, text: &str, password: Option<&str>) -> ServerAddress {
        let around = Surroundings {
            password: password.map(str::to_owned),
            user: Some("unix_user".to_owned()),
        };
        completed(address.parse().unwrap(), options(text).unwrap(), around)
    }

    fn password(address: &ServerAddress) -> Option<&str> {
        address.password.as_ref().map(|password| password.0.as_str())
    }

    #[test]
    fn option_files_are_read_as_the_servers_own_programs_do() {
        let read = options(FILE).unwrap();
        assert_eq!(read.user.as_deref(), Some("bench"));
        assert_eq!(read.password, Some(Password("hun#ter\\2".to_owned())));
        assert_eq!(read.port, Some(3307));
        assert_eq!(read.socket, Some("/run/a b.sock".into()));
        let error = options("[client]\nport=http").unwrap_err().to_string();
        assert!(error.contains("my.cnf:2: port = http: use a number from 1 to 65535"), "{error}");
    }

    #[test]
    fn what_is_said_first_counts() {
        let all = filled("mysql://me:mine@db/x", FILE, Some("env"));
        assert_eq!((all.user.as_deref(), password(&all)), (Some("me"), Some("mine")));
        assert_eq!(all.socket, None);
        let file = filled("mysql:///x", FILE, Some("env"));
        assert_eq!((file.user.as_deref(), password(&file)), (Some("bench"), Some("hun#ter\\2")));
        assert_eq!(file.socket, Some("/run/a b.sock".into()));
        let environment = filled("mysql://db", "", Some("env"));
        assert_eq!(environment.user.as_deref(), Some("unix_user"));
        assert_eq!(password(&environment), Some("env"));
        let nothing =
            completed("mysql://".parse().unwrap(), Default::default(), Default::default());
        assert_eq!(nothing.to_string(), "mysql://root@127.0.0.1:3306");
    }

    #[test]
    fn a_host_of_the_file_counts_before_its_socket() {
        let far = "[client]\nhost=db1\nport=3310\nsocket=/run/s\n";
        assert_eq!(filled("mysql:///x", far, None).to_string(), "mysql://unix_user@db1:3310/x");
        let near = "[client]\nhost=localhost\nsocket=/run/s\n";
        assert_eq!(filled("mysql:///x", near, None).socket, Some("/run/s".into()));
    }

    #[test]
    fn encryption_is_what_the_clients_make_of_the_file() {
        use Encryption::*;
        use Verification::*;
        for (text, encryption, verification) in [
            ("", None, None),
            ("ssl-mode=disabled", Some(Disabled), None),
            ("ssl_mode = PREFERRED", Some(Preferred), None),
            ("ssl-mode=REQUIRED", Some(Required), Some(Nothing)),
            ("ssl-mode=VERIFY_CA\nssl-ca=/ca", Some(Required), Some(Authority)),
            ("ssl-mode=REQUIRED\nssl-ca=/ca", Some(Required), Some(Nothing)),
            ("ssl-ca=/ca", Some(Required), Some(Authority)),
            ("loose-ssl-mode='VERIFY_IDENTITY' # all", Some(Required), Some(Host)),
            ("ssl", Some(Required), Some(Nothing)),
            ("ssl=1", Some(Required), Some(Nothing)),
            ("ssl=0\nssl-ca=/ca", Some(Disabled), None),
            ("skip-ssl", Some(Disabled), None),
            ("disable_ssl", Some(Disabled), None),
            ("enable-ssl", Some(Required), Some(Nothing)),
            ("ssl-verify-server-cert", Some(Required), Some(Host)),
            ("ssl\nssl-verify-server-cert=ON", Some(Required), Some(Host)),
            ("skip-ssl-verify-server-cert", None, Some(Nothing)),
        ] {
            let read = options(&format!("[client]\n{text}\n")).unwrap();
            assert_eq!((read.encryption, read.verification), (encryption, verification), "{text}");
        }
    }

    #[test]
    fn the_address_counts_before_what_the_file_says_of_encryption() {
        use Encryption::*;
        use Verification::*;
        let strict = "[client]\nssl-mode=VERIFY_IDENTITY\nssl-ca=/ca\nssl-cert=/c\nssl-key=/k\n";
        for (address, file, encryption, verification) in [
            ("mysql://h", strict, Required, Some(Host)),
            ("mysql://h?ssl=preferred", strict, Preferred, None),
            ("mysql://h?ssl_verify=off", strict, Required, Some(Nothing)),
            ("mysql://h?ssl=required", "[client]\nssl-mode=REQUIRED", Required, None),
            ("mysql://h?ssl_verify=on", "[client]\nskip-ssl", Required, Some(Host)),
            ("mysql://h?ssl_ca=/x", "[client]\nssl-mode=REQUIRED", Required, None),
            ("mysql://h?ssl_ca=/x", "[client]\nssl-mode=VERIFY_CA", Required, Some(Authority)),
            ("mysql://h", "[client]\nskip-ssl", Disabled, None),
        ] {
            let filled = filled(address, file, None);
            let found = (filled.encryption_in_use(), filled.verification);
            assert_eq!(found, (encryption, verification), "{address} {file}");
        }
        let all = filled("mysql://h", strict, None);
        let files = [&all.ca, &all.certificate, &all.certificate_key];
        assert_eq!(
            files.map(|file| file.as_deref()),
            ["/ca", "/c", "/k"].map(|p| Some(Path::new(p)))
        );
    }

    #[test]
    fn keys_of_servers_are_taken_as_the_file_says() {
        for (text, key) in [
            ("get-server-public-key", ServerKey::Shown),
            ("get_server_public_key=0", ServerKey::Nothing),
            ("server-public-key-path=/k\nget-server-public-key=1", ServerKey::Pinned("/k".into())),
        ] {
            assert_eq!(options(&format!("[client]\n{text}")).unwrap().server_key, key, "{text}");
        }
        let file = "[client]\nget-server-public-key\n";
        let address = filled("mysql://h?get_server_public_key=off", file, None);
        assert_eq!(address.server_key, ServerKey::Nothing);
    }

    #[test]
    fn what_concerns_security_and_is_not_understood_is_refused_by_its_line() {
        for name in ["ssl-crl", "ssl_capath", "ssl-cipher", "tls-version", "ssl-fp", "login-path"] {
            let error = options(&format!("[client]\nuser=b\n{name}=x\n")).unwrap_err().to_string();
            let named = name.replace('_', "-");
            assert!(error.contains(&format!("my.cnf:3: {named} is not understood")), "{error}");
        }
        for ignored in [
            "loose-ssl-crl=x",
            "max_allowed_packet=16M",
            "default-character-set=utf8mb4",
            "no-beep",
        ] {
            assert_eq!(options(&format!("[client]\n{ignored}")).unwrap(), ClientOptions::default());
        }
        // Sections of others are theirs.
        assert!(options("[mysqld]\nssl-crl=x\ntls-version=y\n[mysql]\nssl-cipher=z\n").is_ok());
        for (text, fix) in [("ssl-mode=ON", "VERIFY_CA"), ("ssl=maybe", "use 1 or 0")] {
            let error = options(&format!("[client]\n{text}")).unwrap_err().to_string();
            assert!(error.contains("my.cnf:2: ") && error.contains(fix), "{error}");
        }
    }

    #[test]
    fn a_value_without_an_equals_sign_is_refused_and_not_repeated() {
        for line in ["password s3cret", "password s3=cret", "user\tb", "host db1 # of the shop"] {
            let error = options(&format!("[client]\n{line}\n")).unwrap_err().to_string();
            let name = line.split_whitespace().next().unwrap();
            assert!(error.contains(&format!("my.cnf:2: {name} has no = before")), "{error}");
            assert!(!error.contains("cret") && !error.contains("db1"), "{error}");
        }
        for line in ["password", "password # asked for", "user = b", "no-beep", "prompt \\u@\\h"] {
            assert!(options(&format!("[client]\n{line}\n")).is_ok(), "{line}");
        }
    }

    #[test]
    fn files_that_are_included_are_read_in_their_place() {
        let read = options("[client]\nuser=first\n!include DIR/more/a.cnf\nport=7\n").unwrap();
        assert_eq!((read.user.as_deref(), read.host.as_deref()), (Some("of_a"), Some("h")));
        assert_eq!(read.port, Some(7), "the section goes on behind the include");
        let read = options("!includedir DIR/more\n[client]\nhost=own\n").unwrap();
        assert_eq!((read.user.as_deref(), read.host.as_deref()), (Some("of_b"), Some("own")));
        assert_eq!(read.port, Some(2));
        let error = options("!include DIR/self.cnf").unwrap_err();
        assert!(matches!(error, CredentialsError::Deep { .. }), "{error}");
        for missing in ["!include DIR/gone.cnf", "!includedir DIR/gone"] {
            let error = options(missing).unwrap_err();
            assert!(matches!(error, CredentialsError::Read { .. }), "{error}");
        }
    }

    #[test]
    fn sections_with_a_suffix_and_the_section_of_the_address_are_read() {
        let text = "[client.db1]\nuser=one\nhost=db1\n[client]\nuser=all\npassword=p\nsocket=/s\n\
                    [client_x]\nuser=x\n[client.db2]\nuser=two\nssl-mode=REQUIRED\n";
        let user = |suffix, group| grouped(text, suffix, group).unwrap().user.unwrap();
        assert_eq!(user("", None), "all");
        assert_eq!(user("_x", None), "x");
        assert_eq!(user("_y", None), "all");
        assert_eq!(user("", Some("db1")), "one", "also where it comes first");
        assert_eq!(user("_x", Some("db2")), "two");
        let two = grouped(text, "", Some("db2")).unwrap();
        assert_eq!(two.password, Some(Password("p".to_owned())));
        assert_eq!(two.encryption, Some(Encryption::Required));
        let error = grouped(text, "", Some("db3")).unwrap_err().to_string();
        assert!(
            error.contains("no section [client.db3] in") && error.contains("my.cnf"),
            "{error}"
        );
        let error = ClientOptions::read(None, None, Some("a")).unwrap_err().to_string();
        assert!(error.contains("~/.my.cnf, which is missing"), "{error}");
    }

    #[test]
    fn a_file_that_was_named_must_be_there_and_be_one_that_can_be_trusted() {
        use std::os::unix::fs::PermissionsExt as _;
        let credentials = |path: &Path| Credentials {
            defaults_file: Some(path.to_owned()),
            ..Default::default()
        };
        let error = credentials(Path::new("/nowhere/my.cnf")).complete(ServerAddress::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/nowhere/my.cnf"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let login = dir.path().join(".mylogin.cnf");
        fs::write(&login, [0, 0, 0, 0, 7, 200]).unwrap();
        let error = credentials(&login).complete(ServerAddress::default()).unwrap_err().to_string();
        assert!(error.contains(".mylogin.cnf: encrypted login paths are not read"), "{error}");
        let open = dir.path().join("open.cnf");
        fs::write(&open, "[client]\n").unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
        let error = credentials(&open).complete(ServerAddress::default()).unwrap_err().to_string();
        assert!(error.contains("chmod o-w"), "{error}");
    }

    #[test]
    fn the_purpose_is_what_the_server_is_logged_in_to_for() {
        let loads = Credentials { purpose: Purpose::Load, ..Default::default() };
        let address = "mysql://b:x@127.0.0.1".parse().unwrap();
        assert_eq!(loads.complete(address).unwrap().purpose, Purpose::Load);
    }
}
