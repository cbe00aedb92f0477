//! Runs fio.

use super::pairs::BenchSample;
use super::pairs::ParityCase;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The null engine with every statistic on, one job.
///
/// # Errors
/// When fio is not installed or fails.
pub fn null(runtime_s: u32) -> Result<BenchSample> {
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
pub fn case(case: &ParityCase, file: &Path, size: &str, runtime_s: u32) -> Result<BenchSample> {
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

#[derive(Default)]
struct Total {
    ios: f64,
    iops: f64,
    cpu_ns: f64,
}

impl Total {
    fn add(&mut self, job: &Value) -> Option<()> {
        for way in ["read", "write"] {
            self.ios += job[way]["total_ios"].as_f64()?;
            self.iops += job[way]["iops"].as_f64()?;
        }
        let busy = (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0;
        self.cpu_ns += busy * job["job_runtime"].as_f64()? * 1e6;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"fio: a warning
    { "fio version": "fio-3.33", "jobs": [ { "error": 0, "job_runtime": 8000,
      "usr_cpu": 10.0, "sys_cpu": 40.0,
      "read": { "total_ios": 400000, "iops": 100000.0, "runtime": 4000 },
      "write": { "total_ios": 0, "iops": 0.0, "runtime": 0 } } ] }"#;

    #[test]
    fn cpu_is_a_share_of_the_summed_run_time() {
        let sample = sample(TEXT).unwrap();
        assert_eq!((sample.iops, sample.cpu_ns_per_io), (100_000.0, 10_000.0));
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
