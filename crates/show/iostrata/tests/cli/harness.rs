//! Running the program in a directory of its own on a real disk.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_iostrata"));
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

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
