//! Lines of fio's that both programs take as they are, for what `iostrata io` does not do.
//!
//! Invariant: both sides get the same words and print the same shape, so that one reader serves
//! both. A loop device lives as long as its case.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::pairs::{self, BenchSample, Iostrata};

/// What a line works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The file of the benchmark.
    File,
    /// A loop device over it.
    Loop,
}

/// One line, without its place, size and runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioLine {
    /// What it is called.
    pub name: &'static str,
    /// What it works on.
    pub ground: Ground,
    words: &'static str,
    /// Whether it goes on for the runtime, not until its bytes are moved.
    is_timed: bool,
}

/// The lines that are compared.
pub const LINES: [FioLine; 3] = [
    FioLine {
        name: "verify 4k libaio depth 16",
        ground: Ground::File,
        words: "--rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 --overwrite=1 \
                --verify=crc32c --verify_state_save=0",
        is_timed: false,
    },
    FioLine {
        name: "randtrim 64k loop device",
        ground: Ground::Loop,
        words: "--rw=randtrim --bs=64k --ioengine=psync --norandommap",
        is_timed: true,
    },
    FioLine {
        name: "randread 4k mmap, cached",
        ground: Ground::File,
        words: "--rw=randread --bs=4k --ioengine=mmap --norandommap --invalidate=0",
        is_timed: true,
    },
];

impl FioLine {
    fn words(&self, place: &Path, size: &str, runtime_s: u32) -> Vec<String> {
        let mut words = vec![
            "--name=parity".to_owned(),
            format!("--filename={}", place.display()),
            format!("--size={size}"),
        ];
        words.extend(self.words.split_whitespace().map(str::to_owned));
        if self.is_timed {
            words.extend(["--time_based".to_owned(), format!("--runtime={runtime_s}")]);
        }
        words.extend(["--thread", "--output-format=json"].map(str::to_owned));
        words
    }

    /// The line by fio.
    ///
    /// # Errors
    /// When fio is not installed or fails.
    pub fn by_fio(&self, place: &Path, size: &str, runtime_s: u32) -> Result<BenchSample> {
        output("fio", &self.words(place, size, runtime_s), "fio")
    }

    /// The line by iostrata.
    ///
    /// # Errors
    /// When it fails.
    pub fn by_iostrata(
        &self,
        iostrata: &Iostrata,
        place: &Path,
        size: &str,
        runtime_s: u32,
    ) -> Result<BenchSample> {
        let mut words = vec!["fio".to_owned()];
        words.extend(self.words(place, size, runtime_s));
        words.extend(["--quiet", "--overwrite-contents", "--out"].map(str::to_owned));
        words.push(iostrata.runs().display().to_string());
        output(iostrata.program(), &words, "iostrata")
    }
}

fn output(
    program: impl AsRef<std::ffi::OsStr>,
    words: &[String],
    name: &str,
) -> Result<BenchSample> {
    let output = Command::new(program).args(words).stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} {}: {}", words.join(" "), said.trim());
    }
    pairs::sample_by_time(&String::from_utf8_lossy(&output.stdout))
        .with_context(|| format!("{name} {}", words.join(" ")))
}

/// A loop device over a file of its own. Dropping it detaches and removes both.
pub struct LoopDevice {
    device: PathBuf,
    file: PathBuf,
}

impl LoopDevice {
    /// One of so many bytes.
    ///
    /// # Errors
    /// When there is no losetup, or the user may not attach devices.
    pub fn attach(file: PathBuf, bytes: u64) -> Result<Self> {
        File::create(&file).and_then(|made| made.set_len(bytes)).context("a file for a loop")?;
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let output = output.context("cannot run losetup")?;
        if !output.status.success() {
            fs::remove_file(&file).context("cannot remove the file")?;
            bail!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let device = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Self { device, file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.device
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _detached = Command::new("losetup").arg("--detach").arg(&self.device).status();
        let _removed = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_place_and_size_and_a_runtime_where_it_is_timed() {
        let words = |line: &FioLine| line.words(Path::new("/f"), "1m", 2).join(" ");
        let [verify, trim, map] = &LINES;
        assert!(words(verify).starts_with("--name=parity --filename=/f --size=1m --rw=randwrite"));
        assert!(!words(verify).contains("runtime") && words(verify).contains("--verify=crc32c"));
        assert!(words(trim).contains("--rw=randtrim") && words(trim).contains("--runtime=2"));
        assert!(words(map).contains("--ioengine=mmap") && words(map).contains("--time_based"));
    }
}
