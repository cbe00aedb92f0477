//! An emulated disk with a file system on it, for as long as a run lasts.
//!
//! Purpose: the same comparison on a disk that this machine does not have.
//! Invariant: what was made is taken away in the opposite order by [`Disk::end`], or on drop when
//! an error or a signal ends the run: mount, then disk. It emulates nothing itself: the main
//! program of this repository does.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::PeerError;

/// Size of the disk, as the main program reads it.
const SIZE: &str = "4G";
/// Tries to take away what is still in use for a moment.
const TRIES: u32 = 20;
/// Time between two of them.
const PAUSE: Duration = Duration::from_millis(250);

/// The default path of the main program: the release build of the main workspace.
pub const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/iostrata");

/// A disk and its mount.
#[derive(Debug)]
pub struct Disk {
    program: PathBuf,
    dir: PathBuf,
    device: Option<String>,
    is_mounted: bool,
}

impl Disk {
    /// Starts a disk of this model, makes a file system on it and mounts it on the empty directory
    /// `dir`.
    ///
    /// # Errors
    /// When this is not root, the program is not built, or a step fails; what was made until then
    /// is taken away.
    pub fn start(program: &Path, model: &str, dir: PathBuf) -> Result<Self, PeerError> {
        if !rustix::process::geteuid().is_root() {
            return Err(PeerError::Disk(
                "an emulated disk needs root: it is mounted and has a loop device; run with sudo"
                    .to_owned(),
            ));
        }
        if !program.exists() {
            return Err(PeerError::Disk(format!(
                "there is no program {}, which starts emulated disks; build it by cargo build \
                 --release -p iostrata, or say where it is by --iostrata PATH",
                program.display()
            )));
        }
        let mut disk = Self { program: program.to_owned(), dir, device: None, is_mounted: false };
        let words = ["disk", "start", "--json", "--size", SIZE, "--model", model];
        let device = device(&run(Command::new(program).args(words))?)?;
        disk.device = Some(device.clone());
        // Nothing is left to be made in the background while something else is measured.
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-E", options, &device]))?;
        run(Command::new("mount").args(["-o", "noatime", &device]).arg(&disk.dir))?;
        disk.is_mounted = true;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes all of it away.
    ///
    /// # Errors
    /// When something stays; it names what.
    pub fn end(mut self) -> Result<(), PeerError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), PeerError> {
        if self.is_mounted {
            patiently(|| run(Command::new("umount").arg(&self.dir)))?;
            self.is_mounted = false;
        }
        if let Some(device) = &self.device {
            patiently(|| run(Command::new(&self.program).args(["disk", "stop", device])))?;
            self.device = None;
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // An error that matters is already on its way.
        let _ = self.take_away();
    }
}

/// Tries again while it fails: a file system may be in use for a moment longer.
fn patiently(step: impl Fn() -> Result<String, PeerError>) -> Result<(), PeerError> {
    for _ in 1..TRIES {
        if step().is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    step().map(drop)
}

/// Its output. In a process group of its own, so that a signal from the terminal ends only this
/// program, which then takes away what there is.
fn run(command: &mut Command) -> Result<String, PeerError> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_os_string();
    let name = name.to_string_lossy().into_owned();
    let failed = |why: String| PeerError::Disk(format!("{name} failed: {}", why.trim()));
    let output = command.process_group(0).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{}: {said}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The device that `disk start --json` names.
fn device(output: &str) -> Result<String, PeerError> {
    let document: Option<serde_json::Value> = serde_json::from_str(output).ok();
    let device = document.and_then(|document| Some(document.get("device")?.as_str()?.to_owned()));
    device.ok_or_else(|| PeerError::Disk(format!("disk start named no device: {}", output.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_read() {
        assert_eq!(device(r#"{"device": "/dev/loop3", "pid": 7}"#).unwrap(), "/dev/loop3");
        assert!(device("{}").is_err());
        assert!(device("/dev/loop3").is_err());
    }

    #[test]
    fn what_fails_says_so() {
        let told = |command: &mut Command| run(command).unwrap_err().to_string();
        assert!(told(&mut Command::new("/no/such/program")).contains("program failed"));
        let text = told(Command::new("ls").arg("/no/such/file"));
        assert!(text.starts_with("ls failed: ") && text.contains("/no/such/file"), "{text}");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("iostrata");
        let found = Disk::start(&program, "nvme", dir.path().to_owned()).unwrap_err().to_string();
        let is_root = rustix::process::geteuid().is_root();
        assert!(found.contains(if is_root { "cargo build --release" } else { "root" }), "{found}");
    }
}
