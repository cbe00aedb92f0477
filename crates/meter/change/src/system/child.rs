//! Programs that die with this process.
//!
//! Invariant: when this process is killed, the kernel kills the program; one that was started just
//! after is not begun.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::platform::RunError;
use crate::server::RunAs;

/// As much of what a failed program said as helps, in characters.
const SAID_CHARS: usize = 400;

/// A program that is run to its end and dies with this process.
#[derive(Clone, Debug, Default)]
pub struct BoundCommand {
    /// The program: a path, or a name that is looked for.
    pub program: PathBuf,
    /// All its arguments.
    pub arguments: Vec<String>,
    /// The file that it reads as its standard input; absent: nothing.
    pub input: Option<PathBuf>,
    /// As whom it runs; absent: as this process.
    pub run_as: Option<RunAs>,
}

impl BoundCommand {
    /// Runs it; gives what it said, both streams one after the other.
    ///
    /// # Errors
    /// When it is missing, cannot be started or fails.
    pub fn run(&self) -> Result<String, RunError> {
        let mut command = Command::new(&self.program);
        let input = match &self.input {
            Some(file) => File::open(file).map_err(RunError::Start)?.into(),
            None => Stdio::null(),
        };
        command.args(&self.arguments).stdin(input);
        // Debian keeps such programs where users' paths do not lead.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")).env("LC_ALL", "C");
        if let Some(RunAs { uid, gid }) = self.run_as {
            command.uid(uid).gid(gid);
        }
        end_with_starter(&mut command, Signal::KILL);
        let output = match command.output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RunError::Missing),
            output => output.map_err(RunError::Start)?,
        };
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said);
        if output.status.success() {
            return Ok(said.into_owned());
        }
        let short = short(&said);
        Err(RunError::Failed(if short.is_empty() { output.status.to_string() } else { short }))
    }
}

pub(super) fn run(program: &str, arguments: &[String]) -> Result<(), RunError> {
    let (program, arguments) = (program.into(), arguments.to_vec());
    BoundCommand { program, arguments, ..BoundCommand::default() }.run().map(drop)
}

/// Lets the kernel send a program this signal when the thread ends that starts it, and so when this
/// process is killed. One that was started just after is not begun. Its user may not be changed
/// afterwards, which takes this back.
pub fn end_with_starter(command: &mut Command, signal: Signal) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(move || tie_to(parent, signal)) }
}

/// What is to be started, and where its process is waited for.
type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a program that [`end_with_starter`] ties to its starter, from a thread that lives as long
/// as the process.
///
/// # Errors
/// When it cannot be started.
pub fn spawn_for_life(command: Command) -> io::Result<Child> {
    static STARTER: Mutex<Option<mpsc::Sender<Order>>> = Mutex::new(None);
    let gone = || io::Error::other("the thread that starts servers is gone");
    let (reply, started) = mpsc::channel();
    {
        let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
        let orders = match starter.as_ref() {
            Some(orders) => orders,
            None => starter.insert(begin_starter()?),
        };
        orders.send((command, reply)).map_err(|_| gone())?;
    }
    started.recv().map_err(|_| gone())?
}

fn begin_starter() -> io::Result<mpsc::Sender<Order>> {
    let (orders, taken) = mpsc::channel::<Order>();
    let serve = move || {
        for (mut command, reply) in taken {
            let _nobody_waits_any_more = reply.send(command.spawn());
        }
    };
    thread::Builder::new().name("starter".to_owned()).spawn(serve)?;
    Ok(orders)
}

/// As much of what a program said as helps, in one line; of one that marks its errors only these.
pub(super) fn short(said: &str) -> String {
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("ERROR")).collect();
    let said = if errors.is_empty() { said.to_owned() } else { errors.join(" ") };
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(SAID_CHARS).collect()
}

/// Ties a process between fork and exec to the thread that forked it.
pub(super) fn tie_to(parent: u32, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    let is_orphan = Pid::as_raw(getppid()) != parent as i32;
    if is_orphan { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sh(script: &str) -> Result<(), RunError> {
        run("sh", &["-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn what_a_program_said_is_kept() {
        assert!(sh("true").is_ok());
        assert!(matches!(run("no-such-program", &[]), Err(RunError::Missing)));
        let error = sh("echo bad news >&2; exit 1").unwrap_err();
        assert_eq!(error.to_string(), "bad news");
        let error = sh("echo '[Note] a'; echo '[ERROR] b'; echo c; exit 1").unwrap_err();
        assert_eq!(error.to_string(), "[ERROR] b");
        assert!(sh("exit 7").unwrap_err().to_string().contains('7'));
    }

    /// A program that would go on for long, tied to its starter.
    fn sleeping() -> Command {
        let mut command = Command::new("sleep");
        command.arg("600");
        end_with_starter(&mut command, Signal::TERM);
        command
    }

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let mut child = thread::spawn(|| sleeping().spawn().unwrap()).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert!(tie_to(u32::MAX, Signal::TERM).is_err(), "an orphan is not begun");
    }

    #[test]
    fn a_program_reads_its_file() {
        let file = std::env::temp_dir().join(format!("bound-{}", std::process::id()));
        std::fs::write(&file, "read me").unwrap();
        let command = BoundCommand {
            program: "cat".into(),
            input: Some(file.clone()),
            ..BoundCommand::default()
        };
        assert_eq!(command.run().unwrap(), "read me");
        std::fs::remove_file(file).unwrap();
        assert!(matches!(command.run(), Err(RunError::Start(_))));
    }

    #[test]
    fn the_end_of_a_thread_ends_nothing() {
        let start = || spawn_for_life(sleeping()).unwrap();
        let mut child = thread::spawn(start).join().unwrap();
        thread::sleep(std::time::Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "it lives on");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
