//! Running the program in a directory of its own on a real disk.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use iostrata_change::end_with_starter;
use rustix::process::Signal;
use tempfile::TempDir;

/// A directory on the disk that holds the build, which is no tmpfs.
pub struct Bench {
    dir: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let dir = TempDir::with_prefix_in("cli-", env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program with these arguments, in the directory, its state kept there too.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = beside(env!("CARGO_BIN_EXE_iostrata"));
        command.args(arguments).current_dir(self.dir.path()).env("NO_COLOR", "1");
        command.env("IOSTRATA_STATE", self.path("state"));
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command line, words split at blanks.
    pub fn line(&self, line: &str) -> Output {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Whether the program can be run by a user who owns nothing but the directory `home`, which is
    /// made; prints it when it cannot.
    pub fn admits_nobody(&self) -> bool {
        std::fs::create_dir(self.path("home")).unwrap();
        self.set_mode("", 0o755);
        self.set_mode("home", 0o777);
        // The build's own directory may be closed to others.
        std::fs::copy(env!("CARGO_BIN_EXE_iostrata"), self.path("iostrata")).unwrap();
        let output = self.as_nobody("--version").output();
        let is_ready = output.is_ok_and(|output| output.status.success());
        if !is_ready {
            eprintln!("skipped: needs root, setpriv and a directory that others may enter");
        }
        is_ready
    }

    /// A command line as that user, in `home`, with the state where such a user's is.
    pub fn as_nobody(&self, line: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        // Set by it, since the change of the user takes it back.
        command.args(["--pdeathsig", "TERM"]);
        command.arg(self.path("iostrata")).args(line.split_whitespace()).env("NO_COLOR", "1");
        command.current_dir(self.path("home")).env("HOME", self.path("home"));
        command.env_remove("IOSTRATA_STATE").env_remove("XDG_STATE_HOME");
        command
    }

    /// Sets the permissions of something in the directory.
    pub fn set_mode(&self, name: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    /// What was written to the journals of changes that are there now.
    pub fn journal(&self) -> String {
        let entries = std::fs::read_dir(self.path("state")).into_iter().flatten().flatten();
        entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
    }

    /// Every file under the directory but those of run directories.
    pub fn data_files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// A program that gets SIGTERM when the thread of the test that starts it ends, so that a test that
/// fails or is killed leaves nothing running.
pub fn beside(program: &str) -> Command {
    let mut command = Command::new(program);
    end_with_starter(&mut command, Signal::TERM);
    command
}

/// Whether the long forms are requested.
pub fn is_soak() -> bool {
    std::env::var_os("IOSTRATA_SOAK").is_some()
}

/// One of two: the latter in the long form.
pub fn usual_or_soak<T>(usual: T, soak: T) -> T {
    if is_soak() { soak } else { usual }
}

/// Waits until something holds, which is checked once in so many milliseconds; the test fails if
/// that takes more than two minutes.
pub fn wait_until(what: &str, every_ms: u64, is_so: impl FnMut() -> bool) {
    wait_until_or(what, every_ms, is_so, String::new);
}

/// The same; a failure shows this, too.
pub fn wait_until_or(
    what: &str,
    every_ms: u64,
    mut is_so: impl FnMut() -> bool,
    otherwise: impl Fn() -> String,
) {
    let until = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < until, "within two minutes it is not so: {what}\n{}", otherwise());
        std::thread::sleep(Duration::from_millis(every_ms));
    }
}

/// Waits for the end of a program, which fails the test instead of hanging it.
pub fn wait_for_end(child: &mut Child, what: &str) -> std::process::ExitStatus {
    let mut status = None;
    wait_until(what, 5, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The one JSON document on stdout, checked against its committed schema.
pub fn document(output: &Output, schema: &str) -> serde_json::Value {
    assert!(output.status.success(), "{}", stderr(output));
    let document: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
    let schema = repository().join(format!("docs/schema/{schema}.schema.json"));
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    document
}

/// A probe that had time for these rungs: where a busy machine leaves one out, since the time was
/// over as it reports or would not do to fill the files, it may take twice as long, and once more.
pub fn probed(
    max_time_s: u64,
    rungs: &[&str],
    probe: impl Fn(&str) -> Output,
) -> (serde_json::Value, Output) {
    for times in [1, 2, 4] {
        let output = probe(&format!("--max-time {}s", times * max_time_s));
        let found = document(&output, "probe");
        let named = |of: &str, field: &str| -> Vec<String> {
            let all = found[of].as_array().into_iter().flatten();
            all.filter_map(|one| one[field].as_str().map(str::to_owned)).collect()
        };
        let (measured, reasons) = (named("rungs", "name"), named("unavailable", "why"));
        let missing = rungs.iter().find(|rung| !measured.iter().any(|name| name == *rung));
        let Some(missing) = missing else { return (found, output) };
        let of_time = ["that the probe may take were over", "filling the files took too long"];
        let is_over = reasons.iter().any(|why| of_time.iter().any(|words| why.contains(words)));
        assert!(is_over, "{missing} is missing, not for want of time: {measured:?} {reasons:?}");
    }
    panic!("even four times the time is over before {rungs:?} are measured");
}

/// The number at a place of a document.
pub fn number(document: &serde_json::Value, path: &str) -> f64 {
    let found = document.pointer(path).and_then(serde_json::Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {path}"))
}

/// The transactions that a run completed, of all kinds.
pub fn completed(document: &serde_json::Value) -> f64 {
    let of = document["completed"].as_object().unwrap();
    of.values().filter_map(serde_json::Value::as_f64).sum()
}

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether MariaDB is installed; without it a test that needs it is skipped.
pub fn has_mariadb() -> bool {
    let dirs = ["/usr/sbin", "/usr/bin", "/usr/local/bin"];
    let is_there = dirs.iter().any(|dir| Path::new(dir).join("mariadbd").exists());
    if !is_there {
        eprintln!("skipped: mariadbd is not installed");
    }
    is_there
}
