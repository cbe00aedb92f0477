//! Runs fio.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::case::ParityCase;
use super::fio_json;
use super::sample::BenchSample;

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
    fio_json::sample(&String::from_utf8_lossy(&output.stdout))
        .with_context(|| format!("fio {}", words.join(" ")))
}
