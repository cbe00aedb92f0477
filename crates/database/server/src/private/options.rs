//! The options of a private server: what every one gets, what its flavour needs, and the user's.
//!
//! Invariant: pure; nothing of a private server lies outside of its directory, it listens only on
//! its socket unless a port is given, and the user's options come last, so that they win.

use std::path::{Path, PathBuf};

use super::error::PrivateError;
use super::program::ServerProgram;

/// Where the things of a private server are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The directory that was made for it.
    pub(super) dir: PathBuf,
    /// Its data directory, in it or elsewhere.
    pub(super) data: PathBuf,
}

impl Layout {
    pub(super) fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Short, because the kernel takes no long ones.
    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    /// Holds the number of the process that listens; MySQL makes it.
    pub(super) fn socket_lock(&self) -> PathBuf {
        self.dir.join("socket.lock")
    }

    pub(super) fn first_statements(&self) -> PathBuf {
        self.dir.join("first.sql")
    }

    fn data_and_temporary(&self) -> [String; 2] {
        let (data, temporary) = (self.data.display(), self.temporary());
        [format!("--datadir={data}"), format!("--tmpdir={}", temporary.display())]
    }
}

/// Options of a private server that its user may not set.
const RESERVED: [(&str, &str); 19] = [
    ("basedir", "it follows from the program"),
    ("bootstrap", "iostrata makes the data directory"),
    ("daemonize", "iostrata starts and ends the server"),
    ("datadir", "the data directory is the run's own"),
    ("defaults-extra-file", "no option files are read"),
    ("defaults-file", "no option files are read"),
    ("defaults-group-suffix", "no option files are read"),
    ("init-file", "it is made from the first statements"),
    ("initialize", "iostrata makes the data directory"),
    ("initialize-insecure", "iostrata makes the data directory"),
    ("log-error", "the server's output is kept by iostrata"),
    ("no-defaults", "it is always given"),
    ("pid-file", "it lies in the server's directory"),
    ("port", "it is chosen with the address"),
    ("bind-address", "the server listens on this machine only"),
    ("skip-networking", "it is chosen with the address"),
    ("socket", "it lies in the server's directory"),
    ("tmpdir", "it lies in the server's directory"),
    ("user", "the user is chosen with the server"),
];

/// The user's options, each with its two dashes.
///
/// # Errors
/// [`PrivateError::Reserved`].
pub(super) fn checked(options: &[String]) -> Result<Vec<String>, PrivateError> {
    let checked = |option: &String| {
        let words = option.trim().trim_start_matches('-');
        let name = name_of(words);
        match RESERVED.iter().find(|(reserved, _)| *reserved == name) {
            Some((_, why)) => Err(PrivateError::Reserved { option: option.clone(), why }),
            None => Ok(format!("--{words}")),
        }
    };
    options.iter().map(checked).collect()
}

/// The name of an option, as servers read it: dashes and underscores are one.
fn name_of(words: &str) -> String {
    let name = words.split('=').next().unwrap_or(words).replace('_', "-").to_ascii_lowercase();
    name.strip_prefix("loose-").map_or(name.clone(), str::to_owned)
}

/// What a server is started with.
pub(super) struct RunningOptions<'a> {
    pub(super) layout: &'a Layout,
    /// On which port of 127.0.0.1 it listens besides its socket.
    pub(super) port: Option<u16>,
    /// It runs as root, which requires an option.
    pub(super) as_root: bool,
    /// Whether statements run before the first client can connect.
    pub(super) has_first_statements: bool,
    /// The user's options, checked.
    pub(super) options: &'a [String],
}

/// All arguments of a running server.
pub(super) fn running(program: &ServerProgram, wanted: &RunningOptions<'_>) -> Vec<String> {
    let layout = wanted.layout;
    let path = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
    let mut arguments = first(program, wanted.as_root);
    arguments.extend(layout.data_and_temporary());
    arguments.push(path("socket", layout.socket()));
    arguments.push(path("pid-file", layout.dir.join("pid")));
    match wanted.port {
        Some(port) => {
            arguments.extend(["--bind-address=127.0.0.1".to_owned(), format!("--port={port}")]);
        }
        None => arguments.push("--skip-networking".to_owned()),
    }
    arguments.extend(["--skip-name-resolve".to_owned(), "--server-id=1".to_owned()]);
    // More sessions than servers admit by default, for staircases up to 256 and beyond.
    arguments.push("--max-connections=1000".to_owned());
    let version = &program.version;
    if version.is_mariadb && version.is_from(11, 4) {
        // It would make a key at every start, which takes seconds.
        arguments.push("--skip-ssl".to_owned());
    }
    if !version.is_mariadb && version.is_from(8, 0) {
        // On by default, unlike elsewhere.
        arguments.extend(["--skip-log-bin".to_owned(), "--loose-mysqlx=OFF".to_owned()]);
    }
    if !version.is_mariadb && version.is_from(5, 7) {
        // Packages name a directory here that only they make.
        arguments.push(path("secure-file-priv", layout.temporary()));
    }
    if wanted.has_first_statements {
        arguments.push(path("init-file", layout.first_statements()));
    }
    arguments.extend(wanted.options.iter().cloned());
    arguments
}

/// All arguments of a server that makes its data directory: from statements that it reads, or by
/// itself.
pub(super) fn making(
    program: &ServerProgram,
    layout: &Layout,
    as_root: bool,
    options: &[String],
) -> Vec<String> {
    let mut arguments = first(program, as_root);
    arguments.extend(layout.data_and_temporary());
    if makes_its_own(program) {
        arguments.push("--initialize-insecure".to_owned());
    } else {
        let fixed = ["--bootstrap", "--log-warnings=0", "--max-allowed-packet=8M"];
        arguments.extend(fixed.map(str::to_owned));
        arguments.push("--net-buffer-length=16K".to_owned());
        // All is flushed when it ends; a crash on the way leaves nothing of use.
        arguments.push("--innodb-flush-log-at-trx-commit=0".to_owned());
        if program.version.is_mariadb {
            // The tables that it makes are of several engines.
            arguments.push("--loose-enforce-storage-engine=".to_owned());
        }
    }
    // Page size, file layout and the like are fixed here.
    let fixes_layout =
        |option: &&String| name_of(option.trim_start_matches('-')).starts_with("innodb");
    arguments.extend(options.iter().filter(fixes_layout).cloned());
    arguments
}

/// Whether the program makes a data directory by itself.
pub(super) fn makes_its_own(program: &ServerProgram) -> bool {
    !program.version.is_mariadb && program.version.is_from(5, 7)
}

fn first(program: &ServerProgram, as_root: bool) -> Vec<String> {
    let mut arguments = vec!["--no-defaults".to_owned()];
    arguments.extend(program.places());
    if as_root {
        arguments.push("--user=root".to_owned());
    }
    arguments
}

/// The address of a socket.
pub(super) fn address(socket: &Path) -> String {
    let mut encoded = String::new();
    for byte in socket.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                encoded.push(char::from(*byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    format!("mysql://root@localhost/?socket={encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn options_of_the_user_are_named_as_the_server_names_them() {
        let given = options(&["--innodb-io-capacity=500", "innodb_flush_neighbors=0", "--skip-x"]);
        let wanted = ["--innodb-io-capacity=500", "--innodb_flush_neighbors=0", "--skip-x"];
        assert_eq!(checked(&given).unwrap(), wanted);
        for reserved in ["--datadir=/var/lib/mysql", "pid_file=/x", "--loose-socket=/s", "--user"] {
            let error = checked(&options(&[reserved])).unwrap_err();
            assert!(error.to_string().contains(reserved), "{error}");
        }
    }

    #[test]
    fn an_address_leads_to_any_socket() {
        let plain = address(Path::new("/run/a-b/socket"));
        assert_eq!(plain, "mysql://root@localhost/?socket=/run/a-b/socket");
        let odd = address(Path::new("/a b&c%/s?"));
        assert_eq!(odd, "mysql://root@localhost/?socket=/a%20b%26c%25/s%3F");
    }
}
