//! Programs that die with this process.
//!
//! Invariant: when this process is killed, the kernel kills the program; one that was started just
//! after is not begun.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::platform::RunError;

/// As much of what a failed program said as helps, in characters.
const SAID_CHARS: usize = 400;

pub(super) fn run(program: &str, arguments: &[String]) -> Result<(), RunError> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // Debian keeps such programs where users' paths do not lead.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")).env("LC_ALL", "C");
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(move || die_with(parent)) };
    let output = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RunError::Missing),
        output => output.map_err(RunError::Start)?,
    };
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let short = short(&String::from_utf8_lossy(&said));
    Err(RunError::Failed(if short.is_empty() { output.status.to_string() } else { short }))
}

/// As much of what a program said as helps, in one line.
pub(super) fn short(said: &str) -> String {
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(SAID_CHARS).collect()
}

fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: prctl with these arguments touches no memory.
    let set = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: getppid touches no memory.
    let is_orphan = unsafe { libc::getppid() } != parent as i32;
    if is_orphan { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<(), RunError> {
        run("sh", &["-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn what_a_program_said_is_kept() {
        assert!(sh("true").is_ok());
        assert!(matches!(run("no-such-program", &[]), Err(RunError::Missing)));
        let error = sh("echo bad news >&2; exit 1").unwrap_err();
        assert_eq!(error.to_string(), "bad news");
        assert!(sh("exit 7").unwrap_err().to_string().contains('7'));
    }

    #[test]
    fn it_is_bound_to_this_process() {
        // Field 12 of a process's status has no death signal; asking a child about itself needs a
        // tool, so only the refusal of an orphan is seen here.
        assert!(die_with(u32::MAX).is_err());
    }
}
