//! Who logs in, and where to, when the address does not say it.
//!
//! Purpose: fills an address up from the user's usual places. What is said first counts, as with
//! MySQL's own programs: the address, then the option file (`--defaults-file`, else
//! `~/.my.cnf`; section `[client]`), then the environment (`MYSQL_PWD`, `USER`), then defaults.
//! Files for the whole machine are not read, and lines that include other files are passed over.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use thiserror::Error;

use crate::address::{HostPort, Password, ServerAddress};

/// Sections of an option file that concern every client.
const SECTIONS: [&str; 3] = ["client", "client-server", "client-mariadb"];

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
    /// A port that is none.
    #[error("{path}: port = {found} is no number from 1 to 65535")]
    Port {
        /// In which file.
        path: PathBuf,
        /// What was found.
        found: String,
    },
}

/// Where to look for what an address leaves out.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// `--defaults-file`: read in place of `~/.my.cnf`, and it must be there.
    pub defaults_file: Option<PathBuf>,
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
    /// When `--defaults-file` cannot be read, or an option file has a port that is none.
    pub fn complete(&self, address: ServerAddress) -> Result<ServerAddress, CredentialsError> {
        let options = match (&self.defaults_file, env::var_os("HOME")) {
            (Some(path), _) => ClientOptions::read(path)?,
            (None, Some(home)) => {
                let path = Path::new(&home).join(".my.cnf");
                if path.is_file() { ClientOptions::read(&path)? } else { ClientOptions::default() }
            }
            (None, None) => ClientOptions::default(),
        };
        let around = Surroundings {
            password: env::var("MYSQL_PWD").ok(),
            user: env::var("USER").or_else(|_| env::var("LOGNAME")).ok(),
        };
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
}

impl ClientOptions {
    fn read(path: &Path) -> Result<Self, CredentialsError> {
        let wrong = |source| CredentialsError::Read { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(wrong)?;
        let port = |found| CredentialsError::Port { path: path.to_owned(), found };
        Self::parse(&text).map_err(port)
    }

    /// Fails with a port that is none.
    fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        let mut is_ours = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_ours = SECTIONS.contains(&section.trim());
                continue;
            }
            let is_skipped = line.starts_with(['#', ';', '!']) || !is_ours;
            let Some((name, value)) = line.split_once('=').filter(|_| !is_skipped) else {
                continue;
            };
            let value = unquoted(value.trim());
            match name.trim().replace('_', "-").as_str() {
                "user" => options.user = Some(value),
                "password" | "loose-password" => options.password = Some(Password(value)),
                "host" => options.host = Some(value),
                "port" => {
                    let port = value.parse().ok().filter(|port| *port > 0);
                    options.port = Some(port.ok_or(value)?);
                }
                "socket" => options.socket = Some(value.into()),
                _ => {}
            }
        }
        Ok(options)
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
!include /etc/other.cnf
[mysqldump]
password=other
";

    fn filled(address: &str, options: &str, password: Option<&str>) -> ServerAddress {
        let around = Surroundings {
            password: password.map(str::to_owned),
            user: Some("somebody".to_owned()),
        };
        completed(address.parse().unwrap(), ClientOptions::parse(options).unwrap(), around)
    }

    fn password(address: &ServerAddress) -> Option<&str> {
        address.password.as_ref().map(|password| password.0.as_str())
    }

    #[test]
    fn option_files_are_read_as_the_servers_own_programs_do() {
        let options = ClientOptions::parse(FILE).unwrap();
        assert_eq!(options.user.as_deref(), Some("bench"));
        assert_eq!(options.password, Some(Password("hun#ter\\2".to_owned())));
        assert_eq!(options.port, Some(3307));
        assert_eq!(options.socket, Some("/run/a b.sock".into()));
        assert_eq!(ClientOptions::parse("[client]\nport=http"), Err("http".to_owned()));
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
        assert_eq!(environment.user.as_deref(), Some("somebody"));
        assert_eq!(password(&environment), Some("env"));
        let nothing =
            completed("mysql://".parse().unwrap(), Default::default(), Default::default());
        assert_eq!(nothing.to_string(), "mysql://root@127.0.0.1:3306");
    }

    #[test]
    fn a_host_of_the_file_counts_before_its_socket() {
        let far = "[client]\nhost=db1\nport=3310\nsocket=/run/s\n";
        assert_eq!(filled("mysql:///x", far, None).to_string(), "mysql://somebody@db1:3310/x");
        let near = "[client]\nhost=localhost\nsocket=/run/s\n";
        assert_eq!(filled("mysql:///x", near, None).socket, Some("/run/s".into()));
    }

    #[test]
    fn a_file_that_was_named_must_be_there() {
        let credentials = Credentials { defaults_file: Some("/nowhere/my.cnf".into()) };
        let error = credentials.complete(ServerAddress::default()).unwrap_err().to_string();
        assert!(error.contains("/nowhere/my.cnf"), "{error}");
    }
}
