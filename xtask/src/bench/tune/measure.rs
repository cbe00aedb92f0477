//! One measured run: a private server with its load, with the tuner or a watcher; which servers
//! there are, and how the limit of a volume is halved.
//!
//! Invariant: `tune --dry-run` watches the sides that are not tuned, so that all are sampled alike;
//! the tuner ends while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::kept::{KeptRun, RunKey, RunTimes};
use super::{Side, TuneChange};
use crate::servers::suite;
use crate::workspace::Workspace;

/// A server that loads its tables takes so long at most.
const READY_WITHIN: Duration = Duration::from_secs(900);
/// The load goes on for so many seconds after the tuner.
const LONGER_S: u64 = 20;
const WAREHOUSES: &str = "4";
const THREADS: &str = "8";

/// What runs are made with.
pub struct Measure {
    pub iostrata: PathBuf,
    /// A directory for the server; its path is short, because sockets are in it.
    pub home: PathBuf,
    /// Where loaded data is.
    pub prepared: PathBuf,
    /// Further words of the tuner.
    pub tuner: Vec<String>,
}

impl Measure {
    /// One run; its recording goes to a directory.
    ///
    /// # Errors
    /// When a program fails.
    pub fn run(
        &self,
        key: &RunKey,
        server: &BenchServer,
        times: RunTimes,
        (fixed, recording): (&[String], &Path),
    ) -> Result<KeptRun> {
        let server_dir = self.home.join("s");
        let mut load = self.load(key, server, times, (fixed, &server_dir))?;
        let socket = server_dir.join("socket");
        let address = format!("mysql://root@localhost/tpcc?socket={}", socket.display());
        let begun = self.await_load(&mut load, &address);
        let begun = begun.and_then(|()| {
            sleep(Duration::from_secs(key.scenario.head_start_s));
            self.tuner(key, times, (&address, recording))
        });
        let tuner = match begun {
            Ok(tuner) => tuner,
            Err(error) => return Err(end(load).err().unwrap_or(error)),
        };
        let more = self.change(key, times, (load.id(), &address));
        let watched = document(tuner, "tune");
        let load = document(load, "tpcc run");
        if let Some(mut more) = more? {
            more.wait()?;
        }
        load?;
        Ok(KeptRun { key: key.clone(), times, watched: watched? })
    }

    /// The server with its load, as one program.
    fn load(
        &self,
        key: &RunKey,
        server: &BenchServer,
        times: RunTimes,
        (fixed, dir): (&[String], &Path),
    ) -> Result<Child> {
        fs::create_dir_all(&self.prepared)?;
        let limits = format!("riops={0},wiops={0}", key.scenario.iops);
        let mut command = Command::new(&self.iostrata);
        command.current_dir(&self.home).args(["tpcc", "run", "--json", "--quiet"]);
        command.args(["--compat", "sysbench-tpcc", "--server"]).arg(&server.program);
        command.args(["--server-io", &limits, "--server-dir"]).arg(dir);
        command.arg("--prepared").arg(self.prepared.join(&server.name));
        for option in [
            server.redo(key.scenario.redo_bytes),
            "innodb_buffer_pool_size=2G".to_owned(),
            "innodb_flush_method=O_DIRECT".to_owned(),
            "innodb_io_capacity=200".to_owned(),
            "innodb_io_capacity_max=2000".to_owned(),
        ] {
            command.args(["--server-option", &option]);
        }
        // The last of an option is that which holds.
        for option in fixed {
            command.args(["--server-option", option]);
        }
        command.args(["--warehouses", WAREHOUSES, "--threads", THREADS]);
        command.args(["--warmup-time", &times.warm_up_s.to_string()]);
        if let Some(rate) = key.scenario.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        let seconds = key.scenario.head_start_s + times.seconds + LONGER_S;
        command.args(["--time", &seconds.to_string()]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().context("cannot run iostrata")
    }

    /// Returns once the server has its tables and its load.
    fn await_load(&self, load: &mut Child, address: &str) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < READY_WITHIN {
            if let Some(status) = load.try_wait()? {
                bail!("tpcc run ended before its server was ready: {status}");
            }
            let look = self.look(address)?;
            if look.is_some_and(|look| look["tps"].as_f64().is_some_and(|tps| tps > 1.0)) {
                return Ok(());
            }
            sleep(Duration::from_millis(500));
        }
        bail!("no server within {} s", READY_WITHIN.as_secs())
    }

    /// A look that ends at once; nothing while there is no server.
    fn look(&self, address: &str) -> Result<Option<Value>> {
        let mut command = Command::new(&self.iostrata);
        command.args(["watch", address, "--once", "--json", "--quiet"]).stderr(Stdio::null());
        let output = command.output().context("cannot run iostrata")?;
        Ok(serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success()))
    }

    /// The tuner, which ends by itself before the load does.
    fn tuner(
        &self,
        key: &RunKey,
        times: RunTimes,
        (address, recording): (&str, &Path),
    ) -> Result<Child> {
        let seconds = (times.warm_up_s + times.seconds).to_string();
        let mut command = Command::new(&self.iostrata);
        command.current_dir(&self.home).args(["tune", address, "--json", "--time", &seconds]);
        command.arg("--out").arg(recording);
        match key.side {
            Side::Untuned | Side::Fixed => command.args(["--dry-run", "--quiet"]),
            Side::Tuned => command.args(&self.tuner),
        };
        command.stdout(Stdio::piped()).spawn().context("cannot run iostrata")
    }

    /// What becomes otherwise in the middle; further load, where that is it.
    fn change(
        &self,
        key: &RunKey,
        times: RunTimes,
        (load, address): (u32, &str),
    ) -> Result<Option<Child>> {
        let Some(change) = key.scenario.change else { return Ok(None) };
        sleep(Duration::from_secs(times.change_at_s()));
        match change {
            TuneChange::LimitHalved => halve(load).map(|()| None),
            TuneChange::LoadDoubled => self.more_load(times, address).map(Some),
        }
    }

    /// As many threads again.
    fn more_load(&self, times: RunTimes, address: &str) -> Result<Child> {
        let seconds = times.warm_up_s + times.seconds - times.change_at_s() + 2;
        let mut command = Command::new(&self.iostrata);
        command.current_dir(&self.home).args(["tpcc", "run", "--quiet", "--json", "--compat"]);
        command.args(["sysbench-tpcc", "--target", address, "--warmup-time", "0", "--seed", "2"]);
        command.args(["--warehouses", WAREHOUSES, "--threads", THREADS]);
        command.args(["--time", &seconds.to_string()]);
        command.stdout(Stdio::null()).spawn().context("cannot run iostrata")
    }
}

/// Ends a load that is of no use; it cleans up after itself.
fn end(mut load: Child) -> Result<()> {
    if let Some(pid) = rustix::process::Pid::from_raw(load.id() as i32) {
        // One that has ended needs no signal.
        let _ended = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    load.wait().map(drop).context("cannot wait for iostrata")
}

/// What a program printed, once it has ended.
fn document(child: Child, what: &str) -> Result<Value> {
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{what}: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{what} printed no document"))
}

// Halves the limit of a server's volume while it runs.
//
// Invariant: only a group that the load's own process made is altered; it goes with the load.

const GROUPS: &str = "/sys/fs/cgroup";
/// Files of either generation that hold a limit of requests.
const CELLS: [&str; 3] =
    ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device", "io.max"];
/// How deep a group may lie.
const DEPTH: usize = 6;

/// Halves the limits of requests of the groups that a process made.
///
/// # Errors
/// When it made none, or the kernel refuses.
fn halve(maker: u32) -> Result<()> {
    let mut groups = Vec::new();
    find(Path::new(GROUPS), &format!("iostrata-{maker}-"), DEPTH, &mut groups);
    let mut halved = 0;
    for cell in groups.iter().flat_map(|group| CELLS.map(|name| group.join(name))) {
        let Ok(text) = fs::read_to_string(&cell) else { continue };
        for line in text.lines() {
            let said = || format!("cannot limit {}", cell.display());
            fs::write(&cell, half(line)).with_context(said)?;
            halved += 1;
        }
    }
    if halved == 0 {
        bail!("the load has no group with a limit below {GROUPS}");
    }
    Ok(())
}

fn find(dir: &Path, begin: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with(begin) {
            found.push(entry.path());
        } else if depth > 0 {
            find(&entry.path(), begin, depth - 1, found);
        }
    }
}

/// A line of limits with half of each count of requests: `7:3 1500`, or `7:3 riops=1500 wbps=max`.
fn half(line: &str) -> String {
    let halved = |word: &str| word.parse::<u64>().map_or(word.to_owned(), |n| (n / 2).to_string());
    let word = |word: &str| match word.split_once('=') {
        Some((name, count)) if name.ends_with("iops") => format!("{name}={}", halved(count)),
        Some(_) => word.to_owned(),
        None => halved(word),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

// Which servers there are to measure: those that tests use.

/// A server program.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchServer {
    /// As the fleet names it.
    pub name: String,
    pub program: PathBuf,
}

impl BenchServer {
    /// The option that gives it so much redo.
    pub fn redo(&self, bytes: u64) -> String {
        match self.name.as_str() {
            // Two files of the same size.
            "mysql-5.6" => format!("innodb_log_file_size={}", bytes / 2),
            name if name.starts_with("mysql") => format!("innodb_redo_log_capacity={bytes}"),
            _ => format!("innodb_log_file_size={bytes}"),
        }
    }
}

/// Servers of these names; all that are there where none is named. The first one found is that
/// which a scenario for one server runs on.
///
/// # Errors
/// A name that is not known, or is not there; when there is none at all.
pub fn found(workspace: &Workspace, names: &[String]) -> Result<Vec<BenchServer>> {
    let known = suite::names();
    if let Some(other) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("--server {other}: there are {}", known.join(", "));
    }
    let mut found = Vec::new();
    for name in known {
        if !names.is_empty() && !names.iter().any(|one| one == name) {
            continue;
        }
        let installed = suite::program_of(name, &workspace.target.join("fleet"));
        let program = installed.or_else(|| among_programs(name));
        match program {
            Some(program) => found.push(BenchServer { name: name.to_owned(), program }),
            None if names.is_empty() => eprintln!("{name} is not installed and left out"),
            None => bail!("--server {name}: not installed; see cargo xtask servers install"),
        }
    }
    if found.is_empty() {
        bail!("no server is installed; see cargo xtask servers install");
    }
    Ok(found)
}

/// A program of this version among those that tests get.
fn among_programs(name: &str) -> Option<PathBuf> {
    let programs = std::env::var("IOSTRATA_TEST_PROGRAMS").unwrap_or_default();
    let mut paths = programs.split(':').filter(|path| !path.is_empty()).map(PathBuf::from);
    paths.find(|path| is_version(path, name))
}

fn is_version(path: &Path, name: &str) -> bool {
    let output = Command::new(path).args(["--no-defaults", "--version"]).output();
    let said = output.map(|one| String::from_utf8_lossy(&one.stdout).into_owned());
    let Some((family, version)) = name.split_once('-') else { return false };
    let is_mariadb = |said: &str| said.contains("MariaDB");
    said.is_ok_and(|said| {
        said.contains(&format!("Ver {version}.")) && is_mariadb(&said) == (family == "mariadb")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_halved_and_bytes_are_not() {
        assert_eq!(half("254:0 1500"), "254:0 750");
        let line = "254:0 rbps=max wbps=4096 riops=1500 wiops=max";
        assert_eq!(half(line), "254:0 rbps=max wbps=4096 riops=750 wiops=max");
    }

    #[test]
    fn a_process_without_a_group_is_said() {
        assert!(halve(u32::MAX).is_err());
    }
}

#[cfg(test)]
mod server_tests {
    use super::*;

    #[test]
    fn each_server_has_its_own_word_for_the_redo() {
        let redo =
            |name: &str| BenchServer { name: name.to_owned(), program: PathBuf::new() }.redo(200);
        assert_eq!(redo("mysql-5.6"), "innodb_log_file_size=100");
        assert_eq!(redo("mysql-9.7"), "innodb_redo_log_capacity=200");
        assert_eq!(redo("mariadb-11.4"), "innodb_log_file_size=200");
    }
}
