//! Runs the release build of iostrata.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::pairs::BenchSample;
use super::pairs::ParityCase;
use crate::workspace::{self, Workspace};

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

    /// The program that was built.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The null engine, one job.
    ///
    /// # Errors
    /// When it fails or prints something else than the contract says.
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
    /// When it fails or prints something else than the contract says.
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
        sample(&self.document(path, words, runtime, &self.runs)?)
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
fn sample(output: &str) -> Result<BenchSample> {
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

    const TEXT: &str = r#"{"read": {"iops": 100000.5, "ios": 400002}, "write": null,
        "cpu": {"user_s": 1.0, "sys_s": 2.0, "ns_per_io": 7500.0}, "verdicts": ["cpu_limited"]}"#;

    #[test]
    fn reads_the_contract() {
        let sample = sample(TEXT).unwrap();
        assert_eq!((sample.iops, sample.cpu_ns_per_io), (100_000.5, 7_500.0));
        assert_eq!(sample.verdicts, ["cpu_limited"]);
    }

    #[test]
    fn says_what_is_missing() {
        for field in ["iops", "ns_per_io", "verdicts"] {
            assert!(sample(&TEXT.replace(field, "other")).is_err(), "{field}");
        }
        assert!(sample(&format!("progress\n{TEXT}")).is_err());
    }
}
