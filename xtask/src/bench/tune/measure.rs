//! One measured run: a private server with its load, and the tuner or a watcher beside it.
//!
//! Invariant: `tune --dry-run` watches the sides that are not tuned, so that all are asked alike;
//! the tuner ends while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::limit;
use super::run::{KeptRun, RunKey, RunTimes};
use super::scenario::{Side, TuneChange};
use super::server::BenchServer;

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
            TuneChange::LimitHalved => limit::halve(load).map(|()| None),
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
        // One that has ended is nobody's loss.
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
