//! `cargo xtask bench sysbench`: the OLTP family by both programs on one private MariaDB.
//!
//! Purpose: rates equal to sysbench's within the intervals, and processor time per transaction at
//! most sysbench's, or the difference stated. Both run on the tables that sysbench made, with the
//! same options, in turns. Processor time covers the whole process, its start and its end included.
//! The server syncs no commit, so that it waits for nothing but processors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use iostrata_stats::{PAIRS_MIN, paired};
use serde_json::Value;

use super::pairs::{BenchSample, Iostrata, Pairs, follows, print_verdicts, ratio};
use crate::args::Args;
use crate::test::execute;
use crate::workspace::Workspace;

/// Ticks of processor time in a second, as the kernel shows them to everybody.
const TICKS_PER_S: f64 = 100.0;
/// How long a server may take to begin.
const START_MAX: Duration = Duration::from_secs(60);
const DATABASE: &str = "sbtest";

/// Runs every member at every number of threads, and prints one table.
///
/// # Errors
/// When sysbench or MariaDB is not installed, or a run fails.
pub fn run(mut args: Args) -> Result<()> {
    let pairs: usize = args.option("--pairs", 8)?;
    let runtime_s: u32 = args.option("--runtime", 5)?;
    let members = args.option("--members", "oltp_read_write,oltp_point_select".to_owned())?;
    let threads = args.option("--threads", "1,8".to_owned())?;
    let table_size: u32 = args.option("--table-size", 100_000)?;
    let dir: PathBuf = args.option("--dir", std::env::temp_dir())?;
    let program: PathBuf = args.option("--program", PathBuf::new())?;
    args.finish()?;
    ensure!(pairs >= PAIRS_MIN, "--pairs {pairs}: a conclusion needs at least {PAIRS_MIN}");
    let workspace = Workspace::read()?;
    let iostrata = match program.as_os_str().is_empty() {
        true => Iostrata::build(&workspace)?.program().to_owned(),
        false => program.canonicalize().context("--program")?,
    };
    let _lock = execute::lock()?;
    let home = dir.join(format!("iostrata-sysbench-{}", std::process::id()));
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let measured = SysbenchServer::start(&home).and_then(|server| {
        let bench = SysbenchBench { iostrata, server, home: home.clone(), table_size, runtime_s };
        bench.measure((&members, &threads), pairs)
    });
    fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
    print(&measured?)
}

struct SysbenchBench {
    /// The program.
    iostrata: PathBuf,
    server: SysbenchServer,
    home: PathBuf,
    table_size: u32,
    runtime_s: u32,
}

impl SysbenchBench {
    fn measure(&self, (members, threads): (&str, &str), pairs: usize) -> Result<Vec<SysbenchRow>> {
        self.sysbench("oltp_read_write", "1", "prepare")?;
        let mut rows = Vec::new();
        for member in members.split(',') {
            for threads in threads.split(',') {
                let name = format!("{member}, threads {threads}");
                println!("{name}");
                // Both find the rows in memory.
                self.theirs(member, threads)?;
                let pairs = Pairs::alternate(
                    pairs,
                    || self.theirs(member, threads),
                    || self.ours(member, threads),
                    |theirs, ours| {
                        let of = |one: &BenchSample| {
                            format!("{:>9.0} /s {:>8.1} us", one.iops, one.cpu_ns_per_io / 1e3)
                        };
                        println!("  sysbench {}   iostrata {}", of(theirs), of(ours));
                    },
                )?;
                rows.push(SysbenchRow { name, pairs });
            }
        }
        Ok(rows)
    }

    /// The options that both take.
    fn options(&self, threads: &str) -> Vec<String> {
        vec![
            format!("--mysql-socket={}", self.server.socket.display()),
            "--mysql-user=root".to_owned(),
            format!("--mysql-db={DATABASE}"),
            "--tables=1".to_owned(),
            format!("--table-size={}", self.table_size),
            format!("--threads={threads}"),
            format!("--time={}", self.runtime_s),
            "--rand-type=uniform".to_owned(),
        ]
    }

    fn sysbench(&self, member: &str, threads: &str, verb: &str) -> Result<(String, f64)> {
        let mut command = Command::new("sysbench");
        command.arg(member).args(self.options(threads)).arg(verb).current_dir(&self.home);
        timed(&mut command)
    }

    fn theirs(&self, member: &str, threads: &str) -> Result<BenchSample> {
        let (printed, cpu_s) = self.sysbench(member, threads, "run")?;
        let (transactions, per_s) = printed_rate(&printed)
            .with_context(|| format!("sysbench printed no transactions: {printed}"))?;
        let cpu_ns_per_io = 1e9 * cpu_s / transactions.max(1.0);
        Ok(BenchSample { iops: per_s, cpu_ns_per_io, verdicts: Vec::new() })
    }

    fn ours(&self, member: &str, threads: &str) -> Result<BenchSample> {
        let mut command = Command::new(&self.iostrata);
        command.arg(member).args(self.options(threads)).current_dir(&self.home);
        command.args(["--warmup-time=0", "--json", "--quiet", "--out=run", "run"]);
        let (printed, cpu_s) = timed(&mut command)?;
        fs::remove_dir_all(self.home.join("run"))?;
        let document: Value =
            serde_json::from_str(&printed).context("stdout is not one document")?;
        let completed = document["completed"].as_object().context("no completed{}")?;
        let transactions: f64 = completed.values().filter_map(Value::as_f64).sum();
        let verdicts = document["verdicts"].as_array().into_iter().flatten();
        Ok(BenchSample {
            iops: document["tps"].as_f64().context("no tps")?,
            cpu_ns_per_io: 1e9 * cpu_s / transactions.max(1.0),
            verdicts: verdicts.filter_map(|one| Some(one.as_str()?.to_owned())).collect(),
        })
    }
}

/// What a program printed, and the processor seconds that it took.
fn timed(command: &mut Command) -> Result<(String, f64)> {
    let before = children_s()?;
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::piped()).output().with_context(|| {
        format!("cannot run {program}; apt-get install sysbench mariadb-server")
    })?;
    if !output.status.success() {
        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        bail!("{program}: {}: {}", output.status, said.join(" ").trim());
    }
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), children_s()? - before))
}

/// Processor seconds of all processes that this one has waited for.
fn children_s() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    children_ticks(&stat).map(|ticks| ticks / TICKS_PER_S).context("/proc/self/stat")
}

/// The fields `cutime` and `cstime`, behind the name of the program.
fn children_ticks(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some(fields.get(13)?.parse::<f64>().ok()? + fields.get(14)?.parse::<f64>().ok()?)
}

/// Transactions in all and per second, as sysbench 1.0 prints them.
fn printed_rate(printed: &str) -> Option<(f64, f64)> {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let (transactions, rate) = line.split_once('(')?;
    let per_s = rate.split_whitespace().next()?.parse().ok()?;
    Some((transactions.trim().parse().ok()?, per_s))
}

/// One member at one number of threads.
struct SysbenchRow {
    name: String,
    pairs: Pairs,
}

fn print(rows: &[SysbenchRow]) -> Result<()> {
    println!("\niostrata / sysbench, geometric mean of the pairs with its 95 % interval");
    let [case, rate, cpu] = ["case", "transactions/s", "CPU per transaction"];
    println!("{case:<34} {rate:<22} {cpu:<22} verdict");
    let mut verdicts = Vec::new();
    for SysbenchRow { name, pairs } in rows {
        let (their_rate, our_rate) = pairs.figures(|sample| sample.iops);
        let (their_cpu, our_cpu) = pairs.figures(|sample| sample.cpu_ns_per_io);
        let rate = paired(&their_rate, &our_rate).with_context(|| format!("rate of {name}"))?;
        let cpu = paired(&their_cpu, &our_cpu).with_context(|| format!("CPU of {name}"))?;
        let follows = format!("rate {}; CPU {}", follows(&rate), follows(&cpu));
        println!("{name:<34} {:<22} {:<22} {follows}", ratio(&rate), ratio(&cpu));
        verdicts.extend(pairs.verdicts());
    }
    verdicts.sort();
    verdicts.dedup();
    print_verdicts(&verdicts);
    Ok(())
}

/// A MariaDB that ends with the value.
struct SysbenchServer {
    child: Child,
    socket: PathBuf,
}

impl SysbenchServer {
    fn start(home: &Path) -> Result<Self> {
        let data = home.join("data");
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.arg("--user=root").arg(format!("--datadir={}", data.display()));
        timed(&mut install)?;
        let socket = home.join("socket");
        let options = ["--no-defaults", "--user=root", "--skip-networking"];
        let of_engine = ["--innodb-buffer-pool-size=512M", "--innodb-flush-log-at-trx-commit=0"];
        let child = Command::new("mariadbd")
            .args(options)
            .args(of_engine)
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run mariadbd")?;
        let server = Self { child, socket };
        let began = Instant::now();
        while let Err(error) = server.make_database() {
            if began.elapsed() > START_MAX {
                return Err(error.context("mariadbd does not begin"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(server)
    }

    fn make_database(&self) -> Result<()> {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg(format!("--socket={}", self.socket.display()));
        client.args(["--user=root", "--execute"]).arg(format!("CREATE DATABASE {DATABASE}"));
        timed(&mut client).map(drop)
    }
}

impl Drop for SysbenchServer {
    fn drop(&mut self) {
        // Its data goes next, and is not needed.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysbench_prints_is_read() {
        let printed = "SQL statistics:\n    transactions:                        1234   (246.71 \
                       per sec.)\n    queries:                             24680  (4934.20 per \
                       sec.)\n";
        assert_eq!(printed_rate(printed), Some((1234.0, 246.71)));
        assert_eq!(printed_rate("FATAL: error"), None);
    }

    #[test]
    fn the_time_of_children_is_read_behind_the_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 30 12 17 18 19";
        assert_eq!(children_ticks(stat), Some(42.0));
        assert_eq!(children_ticks("7 (a) S 1"), None);
    }
}
