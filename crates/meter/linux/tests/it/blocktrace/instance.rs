//! A trace instance of its own, removed again when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use iostrata_linux::blocktrace::{Setting, events};
use tempfile::TempDir;

static MADE: AtomicU32 = AtomicU32::new(0);

pub struct Instance {
    tracefs: TempDir,
    dir: PathBuf,
}

pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program} cannot be started: {e}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Instance {
    /// Makes an instance with every event on; the error names what is missing.
    pub fn make(buffer_kib: u64) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("tracing needs root".to_owned());
        }
        let tracefs = tempfile::tempdir().map_err(|e| e.to_string())?;
        let at = tracefs.path().to_string_lossy().into_owned();
        run("mount", &["-t", "tracefs", "tracefs", &at])?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("iostrata-test-{}-{number}", std::process::id());
        let dir = tracefs.path().join("instances").join(name);
        let made = Self { tracefs, dir };
        made.fill(buffer_kib)?;
        Ok(made)
    }

    fn fill(&self, buffer_kib: u64) -> Result<(), String> {
        let wanted = events(self.tracefs.path()).map_err(|e| e.to_string())?;
        let set = |file: String, value: String| {
            fs::write(self.dir.join(&file), value).map_err(|e| format!("{file}: {e}"))
        };
        fs::create_dir(&self.dir).map_err(|e| e.to_string())?;
        set("tracing_on".to_owned(), "0".to_owned())?;
        set("trace_clock".to_owned(), "mono".to_owned())?;
        set("buffer_size_kb".to_owned(), buffer_kib.to_string())?;
        wanted.iter().try_for_each(|name| {
            set(format!("events/{}/enable", name.replace(':', "/")), "1".into())
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Carries settings out by writing them.
    pub fn switch(&self) -> impl FnMut(&Setting) -> io::Result<()> {
        let dir = self.dir.clone();
        move |setting| fs::write(dir.join(&setting.file), &setting.value)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        fs::remove_dir(&self.dir).ok();
        run("umount", &[&self.tracefs.path().to_string_lossy()]).ok();
    }
}
