//! A program that serves a file system or a database, as it is started, found again and ended.
//!
//! Invariant: a server is named by its whole command line, or by all its arguments where a script
//! may have executed the program; the arguments hold a place that no other change has. A name alone
//! is never enough.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that a server shows when it is ready.
pub(crate) const SERVED_FILE: &str = "disk";

/// The command line of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program.
    pub program: PathBuf,
    /// All its arguments; the place is one of them.
    pub arguments: Vec<OsString>,
    /// The program may be a script that executes another one with the same arguments.
    pub may_be_wrapped: bool,
}

impl ServerCommand {
    /// Whether the bytes of a `/proc/<pid>/cmdline` are this command line.
    pub(crate) fn is(&self, cmdline: &[u8]) -> bool {
        let Some(line) = cmdline.strip_suffix(b"\0") else { return false };
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let arguments: Vec<&[u8]> =
            self.arguments.iter().map(|word| word.as_encoded_bytes()).collect();
        if self.may_be_wrapped && !arguments.is_empty() {
            return words[1..].windows(arguments.len()).any(|some| some == arguments);
        }
        words[0] == self.program.as_os_str().as_encoded_bytes() && words[1..] == arguments
    }
}

/// A user and group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// How a server is tied to the process that starts it.
#[derive(Clone, Copy, Debug)]
pub enum Tie<'a> {
    /// It outlives it, and holds nothing of it but this file.
    None(Option<BorrowedFd<'a>>),
    /// It is killed when this process ends, however that happens.
    Life {
        /// Directories of the groups that it enters before it begins.
        groups: &'a [PathBuf],
        /// As whom it runs; absent: as this process.
        run_as: Option<RunAs>,
    },
}

/// How a server is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is asked to (SIGTERM).
    Asked,
    /// At once (SIGKILL).
    Forced,
}

/// The file in the place that a server serves.
pub(crate) fn served_file(at: &Path) -> PathBuf {
    at.join(SERVED_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_command_line_is_a_server() {
        let command = ServerCommand {
            program: "/bin/program".into(),
            arguments: vec!["disk".into(), "serve".into(), "/at".into()],
            may_be_wrapped: false,
        };
        assert!(command.is(b"/bin/program\0disk\0serve\0/at\0"));
        for other in [
            &b""[..],
            b"/bin/program\0disk\0serve\0",
            b"/bin/program\0disk\0serve\0/at/b\0",
            b"/bin/program\0disk\0serve\0/at\0more\0",
            b"program\0disk\0serve\0/at\0",
            b"/bin/program disk serve /at",
            b"vi\0/bin/program\0disk\0serve\0/at\0",
        ] {
            assert!(!command.is(other), "{}", String::from_utf8_lossy(other));
        }
    }
    #[test]
    fn a_wrapped_server_is_known_by_all_its_arguments() {
        let command = ServerCommand {
            program: "/opt/mysqld".into(),
            arguments: vec!["--no-defaults".into(), "--datadir=/d".into()],
            may_be_wrapped: true,
        };
        for line in [
            &b"/opt/mysqld\0--no-defaults\0--datadir=/d\0"[..],
            b"/bin/sh\0/opt/mysqld\0--no-defaults\0--datadir=/d\0",
            b"/lib/ld.so\0/opt/real/mysqld\0--no-defaults\0--datadir=/d\0--basedir=/opt\0",
        ] {
            assert!(command.is(line), "{}", String::from_utf8_lossy(line));
        }
        for line in [
            &b""[..],
            b"\0",
            b"/opt/mysqld\0--no-defaults\0--datadir=/d/b\0",
            b"/opt/mysqld\0--no-defaults\0--port=1\0--datadir=/d\0",
            b"/opt/mysqld\0--datadir=/d\0",
        ] {
            assert!(!command.is(line), "{}", String::from_utf8_lossy(line));
        }
    }
}
