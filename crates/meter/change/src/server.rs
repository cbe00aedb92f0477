//! A program that serves a file system or a database, as it is started, found again and ended, and
//! the first packet of a database server: whether it is ready for clients.
//!
//! Invariant: of a greeting only bytes are read, nothing is sent. A greeting is protocol version 10
//! with the server's version; all else is no server, or one that turns clients away.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that a server shows when it is ready.
const SERVED_FILE: &str = "disk";

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
    /// On request (SIGTERM).
    Asked,
    /// At once (SIGKILL).
    Forced,
}

/// The file in the place that a server serves.
pub(crate) fn served_file(at: &Path) -> PathBuf {
    at.join(SERVED_FILE)
}

/// Longest first packet that is read.
const PACKET_BYTES_MAX: usize = 4096;
/// First byte of a greeting.
const PROTOCOL_10: u8 = 10;
/// First byte of a refusal.
const REFUSAL: u8 = 0xff;

/// What came from a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// No server listens, or its greeting is not known.
    Silent,
    /// A server, ready to let clients in.
    Ready {
        /// Its version, as it reports it.
        version: String,
    },
    /// A server that turns clients away; its message.
    Refused(String),
}

impl Greeting {
    /// Reads the first packet. One that breaks off is none.
    pub(crate) fn read(from: &mut impl Read) -> Self {
        let mut header = [0; 4];
        if from.read_exact(&mut header).is_err() {
            return Self::Silent;
        }
        let bytes =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        let mut packet = vec![0; bytes.min(PACKET_BYTES_MAX)];
        match from.read_exact(&mut packet) {
            Ok(()) => Self::of_packet(&packet),
            Err(_) => Self::Silent,
        }
    }

    fn of_packet(packet: &[u8]) -> Self {
        match packet {
            [PROTOCOL_10, rest @ ..] => match rest.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    Self::Ready { version: String::from_utf8_lossy(&rest[..end]).into_owned() }
                }
                None => Self::Silent,
            },
            // Its number in two bytes, then the words.
            [REFUSAL, _, _, words @ ..] => {
                Self::Refused(String::from_utf8_lossy(words).trim().to_owned())
            }
            _ => Self::Silent,
        }
    }
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

    fn read(mut bytes: &[u8]) -> Greeting {
        Greeting::read(&mut bytes)
    }

    #[test]
    fn a_greeting_names_the_version() {
        let greeting = b"\x10\0\0\x00\x0a9.7.4\0\x08\0\0\0abcde";
        assert_eq!(read(greeting), Greeting::Ready { version: "9.7.4".to_owned() });
        for end in 0..greeting.len() {
            assert_eq!(read(&greeting[..end]), Greeting::Silent, "{end} bytes");
        }
    }

    #[test]
    fn a_refusal_is_kept_and_the_rest_is_nothing() {
        let refusal = b"\x17\0\0\0\xff\x10\x04Too many connections";
        assert_eq!(read(refusal), Greeting::Refused("Too many connections".to_owned()));
        for other in
            [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x0a", b"HTTP/1.1 400\r\n", b"\x02\0\0\0\x09\0"]
        {
            assert_eq!(read(other), Greeting::Silent, "{other:?}");
        }
    }
}
