//! The process that works in a directory, such as a server in that of its data: what it waits for,
//! and what holds it back, from one look to the next.
//!
//! A process and a directory are the same place by device and inode, so that a path of another
//! mount namespace is not mistaken. What another user's process does may be hidden: then the file
//! that holds its id is believed where the process has the owner of the directory. Invariants:
//! pressure is that of the process's own control group, where groups report it, else the machine's.
//! A process that was restarted, or moved to another group, has no figures until the next look: its
//! counters are different ones.

use std::collections::BTreeMap;
use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iostrata_io::Mount;
use iostrata_run::host::{BlockLayer, HeldBackShares};

use crate::host::cgroup::{Cgroup, FoundLimit, ThrottleCounters, group_v2, limits_on, quota_group};
use crate::host::cpu::CpuTimes;
use crate::host::pressure::Pressure;
use crate::host::{HostError, Root, describe_path};

/// A process that is gone is looked for again after this time: that reads all of `/proc`.
const FIND_AGAIN: Duration = Duration::from_secs(5);

/// Tasks of a process that are checked.
const TASKS_MAX: usize = 5_000;

/// How often the state of tasks is checked within a span.
const LOOKS: u32 = 4;

/// What tasks of a process wait for over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskWaits {
    /// Tasks that wait for a processor, on average.
    pub processor: u64,
    /// Share of the time in which tasks could have run that they waited for a processor, in
    /// percent.
    pub waited_pct: u64,
    /// Tasks that are in uninterruptible sleep (state D), as for I/O: so many at every look.
    pub uninterruptible: u64,
}

/// Finds the process.
pub type FindProcess = Box<dyn Fn() -> Option<u32> + Send>;

/// A process that is watched for long.
pub struct HeldBack {
    root: Root,
    find: FindProcess,
    mounts: Vec<Mount>,
    /// The devices below its data, whose limits count.
    layers: Vec<BlockLayer>,
    pid: Option<u32>,
    sought: Instant,
    last: Option<GroupLook>,
}

/// The groups of a process.
#[derive(Clone, Debug, Default, PartialEq)]
struct ProcessGroups {
    pid: Option<u32>,
    /// Whose pressure it is.
    pressure: Option<Cgroup>,
    cpu: Option<Cgroup>,
    limits: Vec<FoundLimit>,
}

#[derive(Debug)]
struct GroupLook {
    at: Instant,
    groups: ProcessGroups,
    pressure: Pressure,
    throttle: ThrottleCounters,
    cpu: Option<CpuTimes>,
}

impl HeldBack {
    /// Finds the process whose data lies in a directory.
    ///
    /// # Errors
    /// As [`describe_path`] of the directory.
    pub fn of(root: &Root, data: &Path, find: FindProcess) -> Result<Self, HostError> {
        let layers = describe_path(root, data)?.block_stack;
        let (mounts, pid) = (crate::host::mounts(root), find());
        let (root, sought) = (root.clone(), Instant::now());
        let mut held = Self { root, find, mounts, layers, pid, sought, last: None };
        held.last = Some(held.look());
        Ok(held)
    }

    /// What is not reported, and why; one sentence each.
    pub fn missing(&self) -> Vec<String> {
        let mut out = Vec::new();
        let Some(last) = &self.last else { return out };
        if last.pressure == Pressure::default() {
            out.push("pressure: the kernel does not report it; boot it with psi=1".to_owned());
        } else if self.pid.is_none() {
            let text = "its process is not found, so the whole machine's is shown; run as root";
            out.push(format!("pressure of its own: {text}"));
        }
        if self.pid.is_some() && last.groups.cpu.is_none() && last.groups.limits.is_empty() {
            let text = "throttle: no control group limits its I/O or processors";
            out.push(text.to_owned());
        } else if self.pid.is_none() {
            out.push("throttle: its process is not found; run as root".to_owned());
        }
        out
    }

    /// What happened since the last look.
    pub fn since_last(&mut self) -> HeldBackShares {
        if !self.is_there() && self.sought.elapsed() >= FIND_AGAIN {
            (self.pid, self.sought) = ((self.find)(), Instant::now());
        }
        let now = self.look();
        let shares = self.last.as_ref().map(|last| now.since(last)).unwrap_or_default();
        self.last = Some(now);
        shares
    }

    /// What its tasks wait for over a time, which it takes to look; nothing where the kernel does
    /// not report it.
    pub fn tasks_waiting(&self, span: Duration) -> Option<TaskWaits> {
        let (pid, began) = (self.pid?, Instant::now());
        let before = task_times(&self.root, pid)?;
        let mut asleep = uninterruptible(&self.root, pid);
        for _ in 1..LOOKS {
            std::thread::sleep(span / (LOOKS - 1));
            asleep = asleep.min(uninterruptible(&self.root, pid));
        }
        let (mut ran_ns, mut waited_ns) = (0, 0);
        for (task, (ran, waited)) in task_times(&self.root, pid)? {
            let (ran_before, waited_before) = before.get(&task).copied().unwrap_or((ran, waited));
            ran_ns += ran.saturating_sub(ran_before);
            waited_ns += waited.saturating_sub(waited_before);
        }
        let mean = waited_ns as f64 / began.elapsed().as_nanos() as f64;
        let waited_pct = 100 * waited_ns / (ran_ns + waited_ns).max(1);
        Some(TaskWaits { processor: mean.round() as u64, waited_pct, uninterruptible: asleep })
    }

    fn is_there(&self) -> bool {
        self.pid.is_some_and(|pid| self.root.exists(format!("/proc/{pid}")))
    }

    fn look(&self) -> GroupLook {
        let root = &self.root;
        let groups = self.groups();
        let throttle = ThrottleCounters::read(root, groups.cpu.as_ref(), &groups.limits);
        let at = Instant::now();
        let pressure = match &groups.pressure {
            Some(group) => Pressure::of_group(root, group),
            None => Pressure::read(root),
        };
        let cpu = root.text("/proc/stat").and_then(|text| CpuTimes::parse(&text));
        GroupLook { at, groups, pressure, throttle, cpu }
    }

    fn groups(&self) -> ProcessGroups {
        let Some(pid) = self.pid else { return ProcessGroups::default() };
        let (root, mounts, who) = (&self.root, &self.mounts[..], pid.to_string());
        // The top of the tree is the machine, and has no such file; that of a container has.
        let is_part = |group: &Cgroup| root.exists(group.dir().join("cgroup.events"));
        let tells = |group: &Cgroup| Pressure::of_group(root, group) != Pressure::default();
        ProcessGroups {
            pid: Some(pid),
            pressure: group_v2(root, mounts, &who).filter(is_part).filter(tells),
            cpu: quota_group(root, mounts, &who),
            limits: limits_on(root, mounts, &self.layers, &who),
        }
    }
}

/// For how long each task of a process has run and has waited for a processor since it began, in
/// nanoseconds: the first two numbers of `schedstat`.
fn task_times(root: &Root, pid: u32) -> Option<BTreeMap<String, (u64, u64)>> {
    let times = |task: String| {
        let text = root.text(format!("/proc/{pid}/task/{task}/schedstat"))?;
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
        Some((task, (numbers.next()??, numbers.next()??)))
    };
    let all: BTreeMap<_, _> = tasks(root, pid).into_iter().filter_map(times).collect();
    (!all.is_empty()).then_some(all)
}

/// The tasks of a process.
fn tasks(root: &Root, pid: u32) -> Vec<String> {
    let mut tasks = root.names(format!("/proc/{pid}/task"));
    tasks.truncate(TASKS_MAX);
    tasks
}

/// How many tasks of a process are in uninterruptible sleep now: the letter behind the name in
/// `stat`, which may hold blanks and parentheses itself.
fn uninterruptible(root: &Root, pid: u32) -> u64 {
    let is_asleep = |task: &String| {
        let text = root.text(format!("/proc/{pid}/task/{task}/stat")).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
    };
    tasks(root, pid).iter().filter(|task| is_asleep(task)).count() as u64
}

impl GroupLook {
    fn since(&self, before: &Self) -> HeldBackShares {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        if self.groups != before.groups || seconds <= 0.0 {
            return HeldBackShares::default();
        }
        // A group that limits I/O counts it itself.
        let counted_elsewhere = |_: &str| None;
        let limits = &self.groups.limits;
        HeldBackShares {
            pressure: self.pressure.shares_since(&before.pressure, seconds),
            pressure_group: self.groups.pressure.as_ref().map(Cgroup::name),
            throttle: self.throttle.since(&before.throttle, limits, seconds, counted_elsewhere),
            cpu_stolen_pct: self.stolen_since(before),
        }
    }

    fn stolen_since(&self, before: &Self) -> Option<f64> {
        Some(self.cpu?.shares_since(&before.cpu?)?.steal_pct)
    }
}

/// Where a process works, and how it is known.
#[derive(Clone, Debug)]
pub struct ProcessPlace {
    /// The directory in which it runs.
    pub dir: PathBuf,
    /// A file in it that it keeps open.
    pub file: String,
    /// A file that holds its id, absolute or below the directory.
    pub pid_file: Option<PathBuf>,
}

impl ProcessPlace {
    /// The process that is there, if one is found.
    pub fn process(&self, root: &Root) -> Option<u32> {
        let dir = metadata(root.real(&self.dir)).ok()?;
        let pid_file = self.pid_file.as_ref();
        let named = pid_file.and_then(|file| root.number::<u32>(self.dir.join(file)));
        if let Some(pid) = named {
            let is_there = match metadata(root.real(format!("/proc/{pid}/cwd"))) {
                Ok(cwd) => is_same(&cwd, &dir),
                Err(_) => metadata(root.real(format!("/proc/{pid}")))
                    .is_ok_and(|process| process.uid() == dir.uid()),
            };
            if is_there {
                return Some(pid);
            }
        }
        let file = metadata(root.real(self.dir.join(&self.file))).ok()?;
        root.names("/proc").iter().filter_map(|name| name.parse().ok()).find(|pid: &u32| {
            metadata(root.real(format!("/proc/{pid}/cwd"))).is_ok_and(|cwd| is_same(&cwd, &dir))
                && holds(root, *pid, &file)
        })
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether a process has a file open: a shell in the directory does not.
fn holds(root: &Root, pid: u32, file: &Metadata) -> bool {
    let open = Path::new("/proc").join(pid.to_string()).join("fd");
    root.names(&open)
        .iter()
        .any(|name| metadata(root.real(open.join(name))).is_ok_and(|opened| is_same(&opened, file)))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    /// A machine with a directory of data and processes that run in it.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            create_dir_all(machine.0.path().join("data")).unwrap();
            write(machine.0.path().join("data/ibdata1"), "").unwrap();
            machine
        }

        fn process(&self, pid: u32, cwd: Option<&str>, file: Option<&str>) {
            let (dir, of) = (self.0.path(), self.0.path().join(format!("proc/{pid}")));
            create_dir_all(of.join("fd")).unwrap();
            if let Some(cwd) = cwd {
                symlink(dir.join(cwd), of.join("cwd")).unwrap();
            }
            if let Some(file) = file {
                symlink(dir.join(file), of.join("fd/7")).unwrap();
            }
        }

        fn found(&self, pid_file: Option<&str>) -> Option<u32> {
            let place = ProcessPlace {
                dir: "/data".into(),
                file: "ibdata1".to_owned(),
                pid_file: pid_file.map(PathBuf::from),
            };
            place.process(&Root::at(self.0.path()))
        }
    }

    #[test]
    fn the_file_with_the_id_is_believed_only_of_a_process_that_is_there() {
        let machine = Machine::new();
        machine.process(10, Some("data"), None);
        machine.process(11, Some("proc"), None);
        for (text, found) in [("10\n", Some(10)), ("11\n", None), ("12\n", None), ("x", None)] {
            write(machine.0.path().join("data/server.pid"), text).unwrap();
            assert_eq!(machine.found(Some("server.pid")), found, "{text:?}");
        }
        // Where the kernel does not show where it runs, its owner is the directory's.
        machine.process(12, None, None);
        write(machine.0.path().join("data/server.pid"), "12\n").unwrap();
        assert_eq!(machine.found(Some("server.pid")), Some(12));
    }

    #[test]
    fn without_such_a_file_it_is_the_process_that_has_the_data_open() {
        let machine = Machine::new();
        machine.process(20, Some("data"), Some("data"));
        machine.process(21, Some("proc"), Some("data/ibdata1"));
        assert_eq!(machine.found(None), None, "a shell in the directory, and one from elsewhere");
        machine.process(22, Some("data"), Some("data/ibdata1"));
        assert_eq!(machine.found(None), Some(22));
        assert_eq!(machine.found(Some("/run/none.pid")), Some(22));
    }

    #[test]
    fn times_of_tasks_are_read() {
        let machine = Machine::new();
        let of = machine.0.path().join("proc/30/task/7");
        create_dir_all(&of).unwrap();
        write(of.join("schedstat"), "500 9000 3\n").unwrap();
        let root = Root::at(machine.0.path());
        assert_eq!(task_times(&root, 30), Some([("7".to_owned(), (500, 9000))].into()));
        write(of.join("schedstat"), "0").unwrap();
        assert_eq!(task_times(&root, 30), None, "a kernel without the figures");
    }

    #[test]
    fn tasks_in_uninterruptible_sleep_are_counted() {
        let machine = Machine::new();
        let tasks = [("D", "a"), ("S", "D) D"), ("D", "odd) S (name"), ("R", "b")];
        for (task, (state, name)) in tasks.iter().enumerate() {
            let of = machine.0.path().join(format!("proc/30/task/{task}"));
            create_dir_all(&of).unwrap();
            write(of.join("stat"), format!("{task} ({name}) {state} 1 30 30")).unwrap();
        }
        assert_eq!(uninterruptible(&Root::at(machine.0.path()), 30), 2);
        assert_eq!(uninterruptible(&Root::at(machine.0.path()), 31), 0);
    }
}
