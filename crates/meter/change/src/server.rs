//! A program that serves a file system, as it is started, found again and ended.
//!
//! Invariant: the whole command line names a server, and its last word is the place that it serves,
//! which no other change has; a name alone is never enough.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::change::Change;

/// The file that a server shows when it is ready.
pub(crate) const SERVED_FILE: &str = "disk";

/// The command line of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program.
    pub program: PathBuf,
    /// All its arguments, the place last.
    pub arguments: Vec<OsString>,
}

impl ServerCommand {
    /// The command line of a change; `None` for one that starts no server.
    pub(crate) fn of(change: &Change) -> Option<Self> {
        let Change::FuseServer { at, program, arguments, .. } = change else { return None };
        let place = OsString::from(at);
        let arguments = arguments.iter().map(OsString::from).chain([place]).collect();
        Some(Self { program: program.clone(), arguments })
    }

    /// Whether the bytes of a `/proc/<pid>/cmdline` are this command line.
    pub(crate) fn is(&self, cmdline: &[u8]) -> bool {
        let Some(words) = cmdline.strip_suffix(b"\0") else { return false };
        let program = self.program.as_os_str();
        let all = [program].into_iter().chain(self.arguments.iter().map(OsString::as_os_str));
        words.split(|byte| *byte == 0).eq(all.map(|word| word.as_encoded_bytes()))
    }
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
}
