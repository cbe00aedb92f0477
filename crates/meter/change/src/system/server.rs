//! Programs: servers that are started, tied to this process or not, found again, queried within a
//! bounded time and ended; and others that die with this process.
//!
//! Invariants: a server holds nothing of its starter's but the journal, where that was requested; a
//! process is signalled through a descriptor of it, after its start time was checked, so its number
//! cannot have changed hands; a server that may hang is queried on a thread of its own. When this
//! process is killed, the kernel kills a program that dies with it; one that was started just after
//! is not begun.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{io, thread};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};

use crate::platform::RunError;
use crate::seen::{Answer, Owner};
use crate::server::{Ending, Greeting, RunAs, ServerCommand, Tie};
use crate::{seen, system};

/// How long an answer may take; a server that answers at all does so at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between the two halves of starting a program its command line is empty for a moment.
const HALF_STARTED_WAIT: Duration = Duration::from_millis(10);
const HALF_STARTED_TRIES: u32 = 100;

const OOM_FILES: [&str; 2] = ["memory.events", "memory.oom_control"];
const OUT_OF_MEMORY: &str = "the kernel killed it because its memory limit was reached; raise the \
                             limit or give it a smaller buffer pool";

/// Servers that this process started.
#[derive(Default)]
pub(super) struct StartedServers(Mutex<Vec<StartedServer>>);

struct StartedServer {
    process: Owner,
    child: Child,
    said: File,
    /// Its control groups, and how many processes the kernel had killed in them before.
    groups: Vec<PathBuf>,
    oom_kills: u64,
}

impl StartedServers {
    pub(super) fn start(&self, server: &ServerCommand, tie: Tie<'_>) -> Result<Owner, RunError> {
        // In memory: it is gone with its last user, and need not be read.
        let said = memfd_create("said", MemfdFlags::CLOEXEC).map(File::from);
        let said = said.map_err(|errno| RunError::Start(errno.into()))?;
        let copy = || said.try_clone().map(Stdio::from).map_err(RunError::Start);
        let groups = match &tie {
            Tie::Life { groups, .. } => groups.to_vec(),
            Tie::None(_) => Vec::new(),
        };
        let oom_kills = oom_kills(&groups);
        let mut command = Command::new(&server.program);
        command.args(&server.arguments).current_dir("/").stdin(Stdio::null());
        command.stdout(copy()?).stderr(copy()?);
        let spawned = match tie {
            Tie::None(held) => {
                let held = held.map(|held| held.as_raw_fd());
                // SAFETY: between fork and exec the closure makes system calls and allocates
                // nothing.
                unsafe { command.pre_exec(move || alone(held)) };
                command.spawn()
            }
            Tie::Life { groups, run_as } => {
                bound(&mut command, groups, run_as).map_err(RunError::Start)?;
                spawn_for_life(command)
            }
        };
        let child = match spawned {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RunError::Missing),
            spawned => spawned.map_err(RunError::Start)?,
        };
        // Until it is reaped here its number is its own.
        let process = seen::of_process(child.id());
        let running = StartedServer { process: process.clone(), child, said, groups, oom_kills };
        self.lock().push(running);
        Ok(process)
    }

    /// Reaps a server that ended; returns its output, or how it ended when it printed nothing. Of
    /// one that ran out of the memory of its group only that: it had no time to print anything.
    pub(super) fn said(&self, process: &Owner) -> Option<String> {
        let mut started = self.lock();
        let one = started.iter_mut().find(|one| one.process == *process)?;
        let status = one.child.try_wait().ok()??;
        if status.signal() == Some(libc::SIGKILL) && oom_kills(&one.groups) > one.oom_kills {
            return Some(OUT_OF_MEMORY.to_owned());
        }
        let mut bytes = vec![0; one.said.metadata().ok()?.len() as usize];
        one.said.read_exact_at(&mut bytes, 0).ok()?;
        let said = short(&String::from_utf8_lossy(&bytes));
        Some(if said.is_empty() { status.to_string() } else { said })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<StartedServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many processes the kernel has killed in these groups for lack of memory. Each version of
/// control groups has a file of its own for it.
fn oom_kills(groups: &[PathBuf]) -> u64 {
    let files = groups.iter().flat_map(|dir| OOM_FILES.map(|name| dir.join(name)));
    let texts: Vec<String> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok()).sum()
}

/// Makes a command one whose process enters these groups, is this user's, and dies with this one.
fn bound(command: &mut Command, groups: &[PathBuf], run_as: Option<RunAs>) -> io::Result<()> {
    let open = |dir: &PathBuf| File::options().write(true).open(dir.join("cgroup.procs"));
    let groups = groups.iter().map(open).collect::<io::Result<Vec<File>>>()?;
    if let Some(RunAs { uid, gid }) = run_as {
        command.uid(uid).gid(gid);
    }
    let parent = std::process::id();
    let prepare = move || {
        for group in &groups {
            // The number 0 is the writing process.
            rustix::io::write(group, b"0")?;
        }
        alone(None)?;
        // Last, because a change of the user takes it back.
        tie_to(parent, Signal::KILL)
    };
    // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    Ok(())
}

/// Makes a process between fork and exec one that nothing ties to its starter.
fn alone(held: Option<RawFd>) -> io::Result<()> {
    // SAFETY: setsid touches no memory.
    if unsafe { libc::setsid() } < 0 {
        return Err(io::Error::last_os_error());
    }
    // What the caller itself inherited, as a lock of its shell, must not live on in the server.
    // SAFETY: close_range with these arguments touches no memory; an old kernel refuses it.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    if let Some(held) = held {
        // SAFETY: fcntl with this command touches no memory.
        if unsafe { libc::fcntl(held, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The living processes of this command line.
pub(super) fn find(server: &ServerCommand) -> io::Result<Vec<Owner>> {
    let mut found = Vec::new();
    // As the kernel names it: without links.
    let program = fs::canonicalize(&server.program).unwrap_or_else(|_| server.program.clone());
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // Before and after: the number may change hands in between.
        let process = seen::of_process(pid);
        if server.is(&command_line(pid, &program)) && process.is_alive() {
            found.push(process);
        }
    }
    Ok(found)
}

fn command_line(pid: u32, program: &Path) -> Vec<u8> {
    let read = || fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_program = || {
        let exe = fs::read_link(format!("/proc/{pid}/exe"));
        exe.is_ok_and(|exe| exe == program)
    };
    let mut line = read();
    for _ in 0..HALF_STARTED_TRIES {
        if !line.is_empty() || !is_program() {
            break;
        }
        std::thread::sleep(HALF_STARTED_WAIT);
        line = read();
    }
    line
}

pub(super) fn end(process: &Owner, how: Ending) -> io::Result<()> {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        opened => opened?,
    };
    if !process.is_alive() {
        return Ok(());
    }
    let signal = match how {
        Ending::Asked => Signal::TERM,
        Ending::Forced => Signal::KILL,
    };
    match pidfd_send_signal(&descriptor, signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        sent => Ok(sent?),
    }
}

/// How a database server greets.
pub(super) fn greeting(socket: &Path) -> Greeting {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Greeting::Silent };
    match stream.set_read_timeout(Some(PATIENCE)) {
        Ok(()) => Greeting::read(&mut stream),
        Err(_) => Greeting::Silent,
    }
}

/// Queries a file that a server may show.
pub(super) fn ask(file: &Path) -> Answer {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    // A name that was never looked up is in no cache: the server has to answer.
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let never = file.with_file_name(format!(".never-{}-{number}", std::process::id()));
    let file = file.to_owned();
    let asked = within(move || system::look(&never).and_then(|_| system::look(&file)));
    match asked {
        None => Answer::Stuck,
        Some(Ok(Some(seen))) => Answer::There(seen),
        Some(Err(error)) if is_dead(&error) => Answer::Dead,
        Some(_) => Answer::NotThere,
    }
}

/// Whether an error means that the server of a file is gone.
pub(super) fn is_dead(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED))
}

/// The result of a call, unless it takes too long; its thread then waits on, until the server that
/// it waits for is ended.
pub(super) fn within<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    let asking = std::thread::Builder::new().name("asking".to_owned()).spawn(move || {
        let _receiver_may_be_gone = tell.send(act());
    });
    asking.ok()?;
    told.recv_timeout(PATIENCE).ok()
}

/// Processes that have a device open, as `dd (process 12)`, this one left out. By the path alone:
/// the device may hang.
pub(super) fn openers(device: &Path) -> Vec<String> {
    others(|_, link| fs::read_link(link).is_ok_and(|target| target == device))
}

/// Processes that have a file open for writing, as `mariadbd (process 12)`, this one left out; also
/// those in a container, where the file has another path.
pub(super) fn writers(file: &Path) -> Vec<String> {
    let Ok((path, meta)) = fs::canonicalize(file).and_then(|path| Ok((path, fs::metadata(file)?)))
    else {
        return Vec::new();
    };
    // Only one of the same name is looked at: others may hang.
    let is_named = |target: PathBuf| target.file_name() == path.file_name();
    let is_same = |other: fs::Metadata| (other.dev(), other.ino()) == (meta.dev(), meta.ino());
    others(|pid, link| {
        fs::read_link(link).is_ok_and(is_named)
            && fs::metadata(link).is_ok_and(is_same)
            && is_for_writing(pid, link)
    })
}

/// Other processes with a link in `/proc/PID/fd` that is like this.
fn others(is_like: impl Fn(u32, &Path) -> bool) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    let has_one = |pid: &u32| {
        let mut links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        links.any(|link| is_like(*pid, &link.path()))
    };
    others.filter(has_one).map(named).collect()
}

/// Whether a descriptor's access mode, from the octal `flags` of its `fdinfo` (proc(5)), allows
/// writing.
fn is_for_writing(pid: u32, link: &Path) -> bool {
    let Some(descriptor) = link.file_name() else { return false };
    let place = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(descriptor);
    // A descriptor that was closed meanwhile is none.
    let Ok(text) = fs::read_to_string(place) else { return false };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| libc::c_int::from_str_radix(octal.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

fn named(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} (process {pid})", name.trim())
}

/// The part of a failed program's output that helps, in characters.
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
    /// Runs it; returns its output, both streams one after the other.
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
        // With one that this user may not search, a missing program would be a forbidden one.
        let open = path.split(':').filter(|dir| Path::new(dir).join(".").exists());
        let path = open.chain(["/usr/local/sbin", "/usr/sbin", "/sbin"]).collect::<Vec<_>>();
        command.env("PATH", path.join(":")).env("LC_ALL", "C");
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
            let _receiver_may_be_gone = reply.send(command.spawn());
        }
    };
    thread::Builder::new().name("starter".to_owned()).spawn(serve)?;
    Ok(orders)
}

/// The part of a program's output that helps, in one line; only the errors where it marks them.
pub(super) fn short(said: &str) -> String {
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("ERROR")).collect();
    let said = if errors.is_empty() { said.to_owned() } else { errors.join(" ") };
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(SAID_CHARS).collect()
}

/// Ties a process between fork and exec to the thread that forked it.
fn tie_to(parent: u32, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    let is_orphan = Pid::as_raw(getppid()) != parent as i32;
    if is_orphan { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, place: &str) -> ServerCommand {
        let arguments = ["-c", script, "sh", place].map(Into::into).to_vec();
        ServerCommand { program: "/bin/sh".into(), arguments, may_be_wrapped: false }
    }

    fn wait_said(started: &StartedServers, process: &Owner) -> String {
        let tries = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            started.said(process)
        });
        tries.unwrap()
    }

    #[test]
    fn who_reads_a_file_opens_it_and_who_may_write_it_does_both() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("ibdata1"), dir.path().join("other"));
        let (inside, linked) = (dir.path().join("inside"), dir.path().join("linked"));
        fs::create_dir(&inside).unwrap();
        for path in [&file, &other, &inside.join("ibdata1")] {
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(&file, &linked).unwrap();
        let sleep = |open: File| {
            let mut command = Command::new("sleep");
            command.arg("60").stdin(open).spawn().unwrap()
        };
        for (is_read, is_written) in [(true, false), (true, true), (false, true)] {
            let mut options = File::options();
            let opened = options.read(is_read).write(is_written).open(&file).unwrap();
            let mut child = sleep(opened);
            let user = format!("sleep (process {})", child.id());
            let found = [openers(&file), writers(&file), writers(&linked)];
            let elsewhere = [&other, &inside.join("ibdata1")].map(|file| openers(file));
            child.kill().unwrap();
            child.wait().unwrap();
            let user = vec![user];
            let writer = if is_written { user.clone() } else { Vec::new() };
            assert_eq!(found, [user, writer.clone(), writer], "{is_read} {is_written}");
            assert_eq!(elsewhere.concat(), [""; 0]);
        }
        assert_eq!(
            [openers(&file), writers(&file), openers(&inside.join("gone"))].concat(),
            [""; 0]
        );
    }

    #[test]
    fn a_server_is_found_and_ended_and_what_it_said_is_kept() {
        let place = format!("/nowhere/{}", std::process::id());
        let command = sh("echo bad news >&2; echo and more; kill -STOP $$", &place);
        let started = StartedServers::default();
        let process = started.start(&command, Tie::None(None)).unwrap();
        assert_eq!(find(&command).unwrap(), std::slice::from_ref(&process));
        assert!(find(&sh("other", &place)).unwrap().is_empty());
        assert_eq!(started.said(&process), None, "it lives");
        let earlier = Owner { start_ticks: process.start_ticks - 1, ..process.clone() };
        end(&earlier, Ending::Forced).unwrap();
        assert!(process.is_alive(), "another process of its number was meant");
        end(&process, Ending::Forced).unwrap();
        let said = wait_said(&started, &process);
        assert!(said == "bad news and more" || said.contains("signal"), "{said}");
        assert!(find(&command).unwrap().is_empty());
        end(&process, Ending::Asked).unwrap();
    }

    #[test]
    fn a_server_holds_only_what_it_is_given() {
        let held = File::open("/").unwrap();
        let kept = File::open("/tmp").unwrap();
        // Inherited by this process without the mark, as from a shell.
        rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).unwrap();
        let started = StartedServers::default();
        for (given, count) in [(None, 0), (Some(&held), 1)] {
            let command =
                sh("cd /proc/$$/fd && readlink [3-9] [0-9][0-9] | grep -c '^/\\|tmp$'", "x");
            let given = given.map(std::os::fd::AsFd::as_fd);
            let process = started.start(&command, Tie::None(given)).unwrap();
            let said = wait_said(&started, &process);
            // The shell's own opened directory is closed by then.
            assert_eq!(said, count.to_string());
        }
    }

    /// A directory in place of a group, with what the kernel counts there.
    #[test]
    fn a_server_that_the_kernel_killed_for_want_of_memory_is_told_from_one_that_was_killed() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("cgroup.procs"), "").unwrap();
        let count = |kills: u32| {
            let text = format!("max 12\noom {kills}\noom_kill {kills}\noom_group_kill 0\n");
            fs::write(group.path().join("memory.events"), text).unwrap();
        };
        count(3);
        let groups = [group.path().to_owned()];
        let started = StartedServers::default();
        for (kills, how) in [(3, "signal: 9"), (4, "its memory limit was reached")] {
            let command = sh("exec sleep 60", "x");
            let tie = Tie::Life { groups: &groups, run_as: None };
            let process = started.start(&command, tie).unwrap();
            count(kills);
            end(&process, Ending::Forced).unwrap();
            let said = wait_said(&started, &process);
            assert!(said.contains(how), "{said}");
        }
        fs::write(group.path().join("memory.oom_control"), "under_oom 0\noom_kill 2\n").unwrap();
        assert_eq!(oom_kills(&groups), 6, "both versions");
    }

    #[test]
    fn a_missing_program_is_missing() {
        let command =
            ServerCommand { program: "/no/such".into(), arguments: vec![], may_be_wrapped: false };
        assert!(matches!(
            StartedServers::default().start(&command, Tie::None(None)),
            Err(RunError::Missing)
        ));
    }
}

#[cfg(test)]
mod child_tests {
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
