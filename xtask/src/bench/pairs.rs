//! Pairs of runs of two programs: the case, how fio and the release build of iostrata are run, what
//! one run came to, and the comparison as text.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use iostrata_stats::{Comparison, Conclusion};
use serde_json::Value;

use crate::workspace::{self, Workspace};

/// What both sides do, direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityCase {
    /// `randread` or `randwrite`.
    pub rw: &'static str,
    /// Bytes of a request, as both programs write it.
    pub block: &'static str,
    /// Memory of the requests, by fio's name.
    pub memory: &'static str,
    /// `sync` or `io_uring`.
    pub engine: &'static str,
    /// Threads.
    pub jobs: u32,
    /// Requests in flight per thread.
    pub depth: u32,
}

/// Figures of one run that both programs report.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchSample {
    /// Completed operations per second.
    pub iops: f64,
    /// Processor time of the workers, user and system, per completed operation.
    pub cpu_ns_per_io: f64,
    /// What speaks against the figures, in the program's words.
    pub verdicts: Vec<String>,
}

/// Runs of both sides, in pairs.
#[derive(Default)]
pub struct Pairs {
    /// fio.
    pub fio: Vec<BenchSample>,
    /// iostrata.
    pub ours: Vec<BenchSample>,
}

impl Pairs {
    /// Runs both sides `count` times, the order turned round from pair to pair. `note` gets each
    /// finished pair.
    ///
    /// # Errors
    /// When a run fails.
    pub fn alternate(
        count: usize,
        mut fio: impl FnMut() -> Result<BenchSample>,
        mut ours: impl FnMut() -> Result<BenchSample>,
        mut note: impl FnMut(&BenchSample, &BenchSample),
    ) -> Result<Self> {
        let mut pairs = Self::default();
        for pair in 0..count {
            let (theirs, own) = if pair % 2 == 0 {
                let theirs = fio()?;
                (theirs, ours()?)
            } else {
                let own = ours()?;
                (fio()?, own)
            };
            note(&theirs, &own);
            pairs.fio.push(theirs);
            pairs.ours.push(own);
        }
        Ok(pairs)
    }

    /// One figure of both sides: fio's, ours.
    pub fn figures(&self, of: impl Fn(&BenchSample) -> f64) -> (Vec<f64>, Vec<f64>) {
        (self.fio.iter().map(&of).collect(), self.ours.iter().map(&of).collect())
    }

    /// Every verdict that came with our runs, once.
    pub fn verdicts(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.ours.iter().flat_map(|sample| sample.verdicts.iter().cloned()).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Two sides are called equal only when their interval lies within so many percent of each other.
const EQUAL_PCT: f64 = 10.0;

/// One case of the parity benchmark.
pub struct TableRow {
    /// What was done.
    pub name: String,
    /// Ours over fio's, operations per second.
    pub iops: Comparison,
    /// Ours over fio's, processor time per operation.
    pub cpu: Comparison,
    /// Verdicts of our runs against themselves.
    pub verdicts: Vec<String>,
}

/// `1.02 [0.99, 1.05]`.
pub fn ratio(comparison: &Comparison) -> String {
    match comparison.ratio.ci95 {
        Some([low, high]) => format!("{:.3} [{low:.3}, {high:.3}]", comparison.ratio.value),
        None => format!("{:.3}", comparison.ratio.value),
    }
}

/// Prints all rows with what follows from each.
pub fn print(rows: &[TableRow]) {
    println!("iostrata / fio, geometric mean of the pairs with its 95 % interval");
    println!("equal: the interval holds 1 and lies within {EQUAL_PCT} %; wide: it holds 1 only");
    let heads = ["case", "IOPS", "CPU ns/IO"].map(str::to_owned);
    let [case, iops, cpu] = heads;
    println!("{case:<34} {iops:<22} {cpu:<22} verdict");
    for row in rows {
        let (iops, cpu) = (ratio(&row.iops), ratio(&row.cpu));
        println!("{:<34} {iops:<22} {cpu:<22} {}", row.name, conclusion(row));
    }
    let mut verdicts: Vec<String> =
        rows.iter().flat_map(|row| row.verdicts.iter().cloned()).collect();
    verdicts.sort();
    verdicts.dedup();
    print_verdicts(&verdicts);
}

/// Prints iostrata's verdicts against its own runs.
pub fn print_verdicts(verdicts: &[String]) {
    if !verdicts.is_empty() {
        println!("verdicts of iostrata on its runs: {}", verdicts.join(", "));
    }
}

fn conclusion(row: &TableRow) -> String {
    format!("IOPS {}; CPU {}", follows(&row.iops), follows(&row.cpu))
}

/// A wide interval that holds 1 shows that nothing was shown, not that the two are equal.
pub fn follows(comparison: &Comparison) -> &'static str {
    match comparison.conclusion {
        Conclusion::Higher => "differs: more",
        Conclusion::Lower => "differs: less",
        Conclusion::NoMeasurableDifference if comparison.differs_by_less_than(EQUAL_PCT) => {
            "equal within the interval"
        }
        Conclusion::NoMeasurableDifference => "no difference seen, interval wide",
        Conclusion::TooFewPairs => "too few pairs",
    }
}

// Runs fio.

/// The null engine with every statistic on, one job.
///
/// # Errors
/// When fio is not installed or fails.
pub fn fio_null(runtime_s: u32) -> Result<BenchSample> {
    let runtime = format!("--runtime={runtime_s}");
    run(&[
        "--name=null",
        "--ioengine=null",
        "--size=100g",
        "--rw=randread",
        "--bs=4k",
        &runtime,
        "--time_based",
        "--output-format=json",
    ])
}

/// Does what `iostrata io` does in this case: uniform offsets with repetition, threads that share
/// one file, and for `io_uring` registered buffers and files.
///
/// # Errors
/// When fio is not installed or fails.
pub fn fio_case(case: &ParityCase, file: &Path, size: &str, runtime_s: u32) -> Result<BenchSample> {
    let mut words = vec![
        "--name=parity".to_owned(),
        format!("--filename={}", file.display()),
        format!("--rw={}", case.rw),
        format!("--ioengine={}", if case.engine == "sync" { "psync" } else { case.engine }),
        format!("--numjobs={}", case.jobs),
        format!("--iodepth={}", case.depth),
        format!("--size={size}"),
        format!("--bs={}", case.block),
        format!("--runtime={runtime_s}"),
    ];
    let same = "--direct=1 --time_based --norandommap --randrepeat=0 --thread \
                --group_reporting --overwrite=1 --output-format=json";
    words.extend(same.split_whitespace().map(str::to_owned));
    if case.memory != "malloc" {
        words.push(format!("--mem={}", case.memory));
    }
    if case.engine == "io_uring" {
        words.extend(["--fixedbufs", "--registerfiles"].map(str::to_owned));
    }
    run(&words.iter().map(String::as_str).collect::<Vec<&str>>())
}

fn run(words: &[&str]) -> Result<BenchSample> {
    let output = Command::new("fio").args(words).output();
    let output = output.context("cannot run fio; install it (Debian package fio)")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("fio {}: {}", words.join(" "), said.trim());
    }
    sample(&String::from_utf8_lossy(&output.stdout))
        .with_context(|| format!("fio {}", words.join(" ")))
}

/// Reads the output of `fio --group_reporting --output-format=json`.
///
/// # Errors
/// When it is no JSON, a field is missing, or a job failed.
pub fn sample(output: &str) -> Result<BenchSample> {
    // Warnings may stand before the document.
    let start = output.find('{').context("fio printed no JSON")?;
    let document: Value = serde_json::from_str(&output[start..]).context("fio's JSON is broken")?;
    let jobs = document["jobs"].as_array().context("fio's JSON has no jobs")?;
    let mut total = Total::default();
    for job in jobs {
        if job["error"].as_i64() != Some(0) {
            bail!("fio's job ended with error {}", job["error"]);
        }
        total.add(job).context("fio's JSON misses a field")?;
    }
    if total.ios == 0.0 {
        bail!("fio completed nothing");
    }
    let cpu_ns_per_io = total.cpu_ns / total.ios;
    Ok(BenchSample { iops: total.iops, cpu_ns_per_io, verdicts: Vec::new() })
}

/// The same with the requests of all directions over their times, which follow each other where
/// what was written is read back.
///
/// # Errors
/// As [`sample`].
pub fn sample_by_time(output: &str) -> Result<BenchSample> {
    let BenchSample { cpu_ns_per_io, verdicts, .. } = sample(output)?;
    let start = output.find('{').context("fio printed no JSON")?;
    let document: Value = serde_json::from_str(&output[start..]).context("fio's JSON is broken")?;
    let jobs = document["jobs"].as_array().context("fio's JSON has no jobs")?;
    let (mut ios, mut seconds) = (0.0, 0.0);
    for one in jobs.iter().flat_map(|job| WAYS.map(|way| &job[way])) {
        ios += one["total_ios"].as_f64().context("no total_ios")?;
        seconds += one["runtime"].as_f64().context("no runtime")? / 1000.0;
    }
    Ok(BenchSample { iops: ios / seconds, cpu_ns_per_io, verdicts })
}

const WAYS: [&str; 3] = ["read", "write", "trim"];

#[derive(Default)]
struct Total {
    ios: f64,
    iops: f64,
    cpu_ns: f64,
}

impl Total {
    fn add(&mut self, job: &Value) -> Option<()> {
        for way in WAYS {
            self.ios += job[way]["total_ios"].as_f64()?;
            self.iops += job[way]["iops"].as_f64()?;
        }
        let busy = (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0;
        self.cpu_ns += busy * job["job_runtime"].as_f64()? * 1e6;
        Some(())
    }
}

// Runs the release build of iostrata.

/// The program.
pub struct Iostrata {
    program: PathBuf,
    /// Run directories go here, not into the clone.
    runs: PathBuf,
}

impl Iostrata {
    /// Builds it as it ships.
    ///
    /// # Errors
    /// When it does not build.
    pub fn build(workspace: &Workspace) -> Result<Self> {
        // Not on stdout: that may be one JSON document.
        eprintln!("building iostrata (release)");
        let mut command = workspace::cargo(&workspace.root);
        command.args(["build", "--quiet", "--release", "--package", "iostrata"]);
        if !command.status().context("cannot run cargo build")?.success() {
            bail!("iostrata does not build");
        }
        let program = workspace.target.join("release/iostrata");
        Ok(Self { program, runs: workspace.target.join("xtask/bench-run") })
    }

    /// Where run directories go.
    pub fn runs(&self) -> &Path {
        &self.runs
    }

    /// The program that was built.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The null engine, one job.
    ///
    /// # Errors
    /// When it fails or prints something else than in the contract.
    pub fn null(&self, runtime_s: u32) -> Result<BenchSample> {
        let runtime = format!("{runtime_s}s");
        let path = self.runs.with_file_name("never-made");
        self.io(
            &path,
            &["--ioengine", "null", "--rw", "randread", "--bs", "4k", "--size", "100G"],
            &runtime,
        )
    }

    /// One case on the shared file.
    ///
    /// # Errors
    /// When it fails or prints something else than in the contract.
    pub fn case(
        &self,
        case: &ParityCase,
        file: &Path,
        size: &str,
        runtime_s: u32,
    ) -> Result<BenchSample> {
        let (jobs, depth) = (case.jobs.to_string(), case.depth.to_string());
        let words = [
            "--keep",
            "--size",
            size,
            "--bs",
            case.block,
            "--mem",
            case.memory,
            "--rw",
            case.rw,
            "--direct",
            "--ioengine",
            case.engine,
            "--numjobs",
            &jobs,
            "--iodepth",
            &depth,
        ];
        self.io(file, &words, &format!("{runtime_s}s"))
    }

    fn io(&self, path: &Path, words: &[&str], runtime: &str) -> Result<BenchSample> {
        sample_of_document(&self.document(path, words, runtime, &self.runs)?)
            .with_context(|| format!("iostrata io {}", words.join(" ")))
    }

    /// The document that `iostrata io` prints of a run kept in `out`.
    ///
    /// # Errors
    /// When it fails.
    pub fn document(
        &self,
        path: &Path,
        words: &[&str],
        runtime: &str,
        out: &Path,
    ) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.arg("io").arg("--path").arg(path).args(words);
        command.args(["--runtime", runtime, "--json", "--quiet", "--out"]).arg(out);
        let output = command.stderr(Stdio::piped()).output().context("cannot run iostrata")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("iostrata io {}: {}: {}", words.join(" "), output.status, said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Reads the document that `iostrata io --json` prints.
fn sample_of_document(output: &str) -> Result<BenchSample> {
    let document: Value = serde_json::from_str(output).context("stdout is not one document")?;
    let iops = |way: &str| document[way]["iops"].as_f64();
    let iops = [iops("read"), iops("write")].into_iter().flatten().reduce(|a, b| a + b);
    let verdicts = document["verdicts"].as_array().context("no verdicts[]")?;
    Ok(BenchSample {
        iops: iops.context("neither read.iops nor write.iops")?,
        cpu_ns_per_io: document["cpu"]["ns_per_io"].as_f64().context("no cpu.ns_per_io")?,
        verdicts: verdicts.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_stats::paired;
    use std::cell::RefCell;

    #[test]
    fn the_order_turns_round() {
        let order = RefCell::new(String::new());
        let run = |name: char, iops: f64| {
            order.borrow_mut().push(name);
            Ok(BenchSample { iops, cpu_ns_per_io: 1.0, verdicts: vec![format!("from {name}")] })
        };
        let pairs = Pairs::alternate(4, || run('f', 1.0), || run('i', 2.0), |_, _| {}).unwrap();
        assert_eq!(order.take(), "fiiffiif");
        assert_eq!(pairs.figures(|sample| sample.iops), (vec![1.0; 4], vec![2.0; 4]));
        assert_eq!(pairs.verdicts(), ["from i"]);
    }

    #[test]
    fn a_row_says_what_follows() {
        let row = TableRow {
            name: "a".into(),
            iops: paired(&[10.0, 11.0, 10.0], &[10.1, 10.9, 10.0]).unwrap(),
            cpu: paired(&[10.0, 10.0, 10.0], &[5.0, 5.1, 4.9]).unwrap(),
            verdicts: Vec::new(),
        };
        assert_eq!(conclusion(&row), "IOPS equal within the interval; CPU differs: less");
        assert_eq!(ratio(&row.cpu).split(' ').next(), Some("0.500"));
    }

    #[test]
    fn a_wide_interval_is_not_called_equal() {
        let wide = paired(&[10.0, 10.0, 10.0], &[7.0, 10.0, 14.0]).unwrap();
        assert_eq!(follows(&wide), "no difference seen, interval wide");
        assert_eq!(follows(&paired(&[1.0], &[9.0]).unwrap()), "too few pairs");
    }
}

#[cfg(test)]
mod fio_tests {
    use super::*;

    const TEXT: &str = r#"fio: a warning
    { "fio version": "fio-3.33", "jobs": [ { "error": 0, "job_runtime": 8000,
      "usr_cpu": 10.0, "sys_cpu": 40.0,
      "read": { "total_ios": 400000, "iops": 100000.0, "runtime": 4000 },
      "write": { "total_ios": 0, "iops": 0.0, "runtime": 0 },
      "trim": { "total_ios": 0, "iops": 0.0, "runtime": 0 } } ] }"#;

    #[test]
    fn cpu_is_a_share_of_the_summed_run_time() {
        let sample = sample(TEXT).unwrap();
        assert_eq!((sample.iops, sample.cpu_ns_per_io), (100_000.0, 10_000.0));
    }

    #[test]
    fn what_is_read_back_counts_with_its_own_time() {
        let text = TEXT.replace(
            r#""write": { "total_ios": 0, "iops": 0.0, "runtime": 0 }"#,
            r#""write": { "total_ios": 400000, "iops": 66000.0, "runtime": 6000 }"#,
        );
        assert_eq!(sample_by_time(&text).unwrap().iops, 80_000.0);
    }

    #[test]
    fn broken_output_is_refused() {
        assert!(sample("").is_err());
        assert!(sample("{}").is_err());
        assert!(sample(&TEXT.replace("\"error\": 0", "\"error\": 5")).is_err());
        assert!(sample(&TEXT.replace("400000", "0")).is_err());
        assert!(sample(&TEXT.replace("job_runtime", "other")).is_err());
    }
}

#[cfg(test)]
mod iostrata_tests {
    use super::*;

    const TEXT: &str = r#"{"read": {"iops": 100000.5, "ios": 400002}, "write": null,
        "cpu": {"user_s": 1.0, "sys_s": 2.0, "ns_per_io": 7500.0}, "verdicts": ["cpu_limited"]}"#;

    #[test]
    fn reads_the_contract() {
        let sample = sample_of_document(TEXT).unwrap();
        assert_eq!((sample.iops, sample.cpu_ns_per_io), (100_000.5, 7_500.0));
        assert_eq!(sample.verdicts, ["cpu_limited"]);
    }

    #[test]
    fn says_what_is_missing() {
        for field in ["iops", "ns_per_io", "verdicts"] {
            assert!(sample_of_document(&TEXT.replace(field, "other")).is_err(), "{field}");
        }
        assert!(sample_of_document(&format!("progress\n{TEXT}")).is_err());
    }
}
