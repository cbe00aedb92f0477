//! `cargo xtask bench tune`: the stall of a full redo on a real server, with `iostrata tune` and
//! without.
//!
//! A private server with a small redo on a volume that is held to so many requests per second runs
//! sysbench-tpcc's load. Sides take turns, each on a copy of the same loaded data. On the untuned
//! side `tune --dry-run` watches, so that both sides are asked alike. Invariant: the tuner is asked
//! to end while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::iostrata::Iostrata;
use super::tune_table::{TuneSample, print, print_json};
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;

/// A server that loads its tables takes so long at most.
const READY_WITHIN: Duration = Duration::from_secs(900);
/// The tuner ends so long before the load, and so many of its last seconds are not counted.
const EARLIER_S: u64 = 3;
const LEFT_OUT_S: usize = 12;

/// What is run.
struct TuneBench {
    iostrata: PathBuf,
    home: PathBuf,
    server: String,
    redo: String,
    pool: String,
    iops: u64,
    threads: u32,
    warehouses: u32,
    warm_up_s: u64,
    seconds: u64,
    /// When as many threads again begin, in seconds of the measured time.
    double_at_s: u64,
    /// Further words of the tuner.
    tuner: Vec<String>,
}

/// Runs the benchmark.
///
/// # Errors
/// When a program does not build or a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let rounds = args.option("--rounds", 2_usize)?;
    let sides = args.option("--sides", "own,tuned".to_owned())?;
    let dir: PathBuf = args.option("--dir", std::env::temp_dir())?;
    let kept: String = args.option("--prepared", String::new())?;
    let tuner: String = args.option("--tune", String::new())?;
    let mut bench = TuneBench {
        iostrata: PathBuf::new(),
        home: PathBuf::new(),
        server: args.option("--server", "mariadbd".to_owned())?,
        redo: args.option("--redo", "100M".to_owned())?,
        pool: args.option("--pool", "2G".to_owned())?,
        iops: args.option("--iops", 1500)?,
        threads: args.option("--threads", 8)?,
        warehouses: args.option("--warehouses", 4)?,
        warm_up_s: args.option("--warm-up", 60)?,
        seconds: args.option("--seconds", 300)?,
        double_at_s: args.option("--double-at", 0)?,
        tuner: tuner.split_whitespace().map(str::to_owned).collect(),
    };
    let is_json = args.flag("--json");
    args.finish()?;
    if let Some(other) = sides.split(',').find(|side| !["own", "tuned"].contains(side)) {
        bail!("--sides {other}: there are own and tuned");
    }
    let workspace = Workspace::read()?;
    bench.iostrata = Iostrata::build(&workspace)?.program().to_owned();
    let _lock = execute::lock(&workspace.target.join("xtask"))?;
    bench.home = dir.join(format!("iostrata-tune-{}", std::process::id()));
    fs::create_dir_all(&bench.home)
        .with_context(|| format!("cannot make {}", bench.home.display()))?;
    let kept = match kept.is_empty() {
        true => bench.home.join("kept"),
        false => PathBuf::from(kept),
    };
    let mut samples = Vec::new();
    let measured = (0..rounds).try_for_each(|round| {
        let mut order: Vec<&str> = sides.split(',').collect();
        if round % 2 == 1 {
            order.reverse();
        }
        order.into_iter().try_for_each(|side| {
            samples.push(bench.side(side == "tuned", &kept, round)?);
            Ok(())
        })
    });
    fs::remove_dir_all(&bench.home)?;
    measured.and_then(|()| if is_json { print_json(&samples) } else { print(&samples) })
}

impl TuneBench {
    /// One run of one side.
    fn side(&self, is_tuned: bool, kept: &Path, round: usize) -> Result<TuneSample> {
        let name = if is_tuned { "tuned" } else { "own" };
        // A short path: sockets have no long ones.
        let server_dir = self.home.join("s");
        let mut load = self.load(&server_dir, kept)?;
        let address =
            format!("mysql://root@localhost/tpcc?socket={}", server_dir.join("socket").display());
        let began = Instant::now();
        let tuner = self.tuner(&mut load, &address, is_tuned, &format!("{name}-{round}"), began);
        let tuner = match tuner {
            Ok(tuner) => tuner,
            Err(error) => {
                // It cleans up after itself.
                let _gone = load.kill();
                return Err(error);
            }
        };
        let more = self.more_load(&address);
        let load = document(load, "tpcc run")?;
        let tuned = document(tuner, "tune")?;
        if let Some(mut more) = more? {
            more.wait()?;
        }
        let sample = TuneSample::of(is_tuned, &load, &tuned, LEFT_OUT_S)?;
        eprintln!("{name}: {sample}");
        Ok(sample)
    }

    /// The server with its load, as one program.
    fn load(&self, server_dir: &Path, kept: &Path) -> Result<Child> {
        let limits = format!("riops={0},wiops={0}", self.iops);
        let mut command = Command::new(&self.iostrata);
        command.current_dir(&self.home).args(["tpcc", "run", "--json", "--quiet"]);
        command.args(["--compat", "sysbench-tpcc", "--server", &self.server, "--server-io"]);
        command.arg(limits).arg("--server-dir").arg(server_dir).arg("--prepared").arg(kept);
        let log =
            if self.server.contains("mysqld") { "redo_log_capacity" } else { "log_file_size" };
        for option in [
            format!("innodb_{log}={}", self.redo),
            format!("innodb_buffer_pool_size={}", self.pool),
            "innodb_flush_method=O_DIRECT".to_owned(),
            "innodb_io_capacity=200".to_owned(),
            "innodb_io_capacity_max=2000".to_owned(),
        ] {
            command.args(["--server-option", &option]);
        }
        let words = [
            ("--warehouses", u64::from(self.warehouses)),
            ("--threads", u64::from(self.threads)),
            ("--warmup-time", self.warm_up_s),
            ("--time", self.seconds),
        ];
        for (word, value) in words {
            command.args([word, &value.to_string()]);
        }
        let command = command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().context("cannot run iostrata")
    }

    /// Begins the tuner once the server has its load; it ends by itself before the load does.
    fn tuner(
        &self,
        load: &mut Child,
        address: &str,
        is_tuned: bool,
        name: &str,
        began: Instant,
    ) -> Result<Child> {
        loop {
            if let Some(status) = load.try_wait()? {
                bail!("tpcc run ended before its server was ready: {status}");
            }
            if began.elapsed() > READY_WITHIN {
                bail!("no server within {} s", READY_WITHIN.as_secs());
            }
            // Whether there is a server, with its tables and its load.
            let probe = self.look(address)?;
            if probe.is_some_and(|look| look["tps"].as_f64().is_some_and(|tps| tps > 1.0)) {
                break;
            }
            sleep(Duration::from_millis(500));
        }
        let seconds = self.warm_up_s + self.seconds - EARLIER_S - 3;
        let mut tune = self.tune(address, !is_tuned, name).args(&["--time", &seconds.to_string()]);
        if is_tuned {
            tune = tune.args(&self.tuner.iter().map(String::as_str).collect::<Vec<_>>());
        }
        tune.spawn()
    }

    /// A look that ends at once; nothing while there is no server.
    fn look(&self, address: &str) -> Result<Option<Value>> {
        let mut command = Command::new(&self.iostrata);
        command.args(["watch", address, "--once", "--json", "--quiet"]).stderr(Stdio::null());
        let output = command.output().context("cannot run iostrata")?;
        Ok(serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success()))
    }

    fn tune(&self, address: &str, is_dry: bool, name: &str) -> TuneCall {
        let mut command = Command::new(&self.iostrata);
        command.current_dir(&self.home).args(["tune", address, "--json"]);
        command.arg("--out").arg(self.home.join(name));
        if is_dry {
            command.args(["--dry-run", "--quiet"]);
        }
        TuneCall(command)
    }

    /// As many threads again, from a moment of the measured time on.
    fn more_load(&self, address: &str) -> Result<Option<Child>> {
        if self.double_at_s == 0 {
            return Ok(None);
        }
        sleep(Duration::from_secs(self.warm_up_s + self.double_at_s));
        let seconds = self.seconds.saturating_sub(self.double_at_s + EARLIER_S).max(1);
        let mut command = Command::new(&self.iostrata);
        command.current_dir(&self.home).args(["tpcc", "run", "--quiet", "--json", "--compat"]);
        command.args(["sysbench-tpcc", "--target", address, "--warmup-time", "0", "--seed", "2"]);
        command.args(["--warehouses", &self.warehouses.to_string()]);
        command.args(["--threads", &self.threads.to_string(), "--time", &seconds.to_string()]);
        command.stdout(Stdio::null()).spawn().map(Some).context("cannot run iostrata")
    }
}

/// A call of the tuner.
struct TuneCall(Command);

impl TuneCall {
    fn args(mut self, words: &[&str]) -> Self {
        self.0.args(words);
        self
    }

    fn spawn(mut self) -> Result<Child> {
        self.0.stdout(Stdio::piped()).spawn().context("cannot run iostrata")
    }
}

/// What a program printed, once it has ended.
fn document(child: Child, what: &str) -> Result<Value> {
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{what}: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{what} printed no document"))
}
