//! `cargo xtask bench peers`: the embedded engine compared with redb, fjall, SQLite and RocksDB.
//!
//! The program of `crates/peers` does the work. Here it is only built as it ships, outside of the
//! workspace, and kept alone on the machine. Where disks can be emulated, durable commits follow on
//! one with a slow flush, so that one command prints the whole table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::Args;
use crate::test::execute;
use crate::workspace::{self, Workspace};

/// Where Debian puts the header that RocksDB is bound by.
const ROCKSDB_HEADER: &str = "/usr/include/rocksdb/c.h";
/// A disk whose flush takes 2 ms, and what runs on it.
const SLOW_DISK: [&str; 4] = ["--emulated", "nvme-no-plp,flush=2ms", "--only", "commits"];

/// Builds the program and runs it with the words that are left; then on the emulated disk.
///
/// # Errors
/// When it does not build or fails.
pub fn run(mut args: Args) -> Result<()> {
    let workspace = Workspace::read()?;
    let words: Vec<String> = std::iter::from_fn(|| args.word()).collect();
    let built = build(&workspace)?;
    let is_followed = is_whole(&words) && can_emulate();
    if is_followed || says(&words, &["--emulated"]) {
        build_iostrata(&workspace)?;
    }
    let _lock = execute::lock()?;
    let program = Program {
        path: built.path,
        iostrata: workspace.target.join("release/iostrata"),
        is_json: says(&words, &["--json"]),
    };
    let mut entries = program.run(&words)?;
    if is_followed {
        let slow: Vec<String> =
            words.iter().map(String::as_str).chain(SLOW_DISK).map(str::to_owned).collect();
        entries.extend(program.run(&slow)?);
    }
    if program.is_json {
        println!("{}", serde_json::to_string_pretty(&Value::Array(entries))?);
    }
    Ok(())
}

/// The program of `crates/peers` as it was built.
pub struct BuiltPeers {
    /// Where it is.
    pub path: PathBuf,
    /// Whether RocksDB is in it.
    pub has_rocksdb: bool,
}

/// Builds the program, with RocksDB where that is installed.
///
/// # Errors
/// When it does not build.
pub fn build(workspace: &Workspace) -> Result<BuiltPeers> {
    let target = workspace.target.join("peers");
    // Not on stdout: that may be one JSON document.
    eprintln!("building iostrata-peers (release)");
    let mut build = workspace::cargo(&workspace.root.join("crates/peers"));
    build.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(&target);
    let has_rocksdb = choose_rocksdb(&mut build);
    if !build.status().context("cannot run cargo build")?.success() {
        bail!("crates/peers does not build; its README.md lists what it needs");
    }
    Ok(BuiltPeers { path: target.join("release/iostrata-peers"), has_rocksdb })
}

/// A run of the program.
struct Program {
    path: PathBuf,
    /// The main program, which starts emulated disks.
    iostrata: PathBuf,
    /// Whether it prints one document; runs are joined in one then.
    is_json: bool,
}

impl Program {
    /// Runs it; the entries of its document, none where it prints tables.
    fn run(&self, words: &[String]) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.path);
        command.args(words);
        if !says(words, &["--iostrata"]) {
            command.arg("--iostrata").arg(&self.iostrata);
        }
        if self.is_json {
            command.stdout(Stdio::piped());
        }
        let child = command.spawn().context("cannot run iostrata-peers")?;
        let output = child.wait_with_output().context("cannot run iostrata-peers")?;
        if !output.status.success() {
            bail!("iostrata-peers failed");
        }
        if self.is_json {
            return serde_json::from_slice(&output.stdout)
                .context("iostrata-peers printed no document");
        }
        Ok(Vec::new())
    }
}

/// Whether an option is among the words, alone or as `--only=reads`.
fn says(words: &[String], options: &[&str]) -> bool {
    words.iter().any(|word| {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        options.contains(&option)
    })
}

/// Whether everything is requested: not a part, not another disk, not help.
fn is_whole(words: &[String]) -> bool {
    !says(words, &["--only", "--emulated", "--help", "-h", "--version", "-V"])
}

/// Whether disks can be emulated here; prints it if not.
fn can_emulate() -> bool {
    let is_possible = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !is_possible {
        eprintln!("without an emulated disk: it needs root and /dev/fuse");
    }
    is_possible
}

/// Builds the main program as it ships.
fn build_iostrata(workspace: &Workspace) -> Result<()> {
    let mut build = workspace::cargo(&workspace.root);
    eprintln!("building iostrata (release)");
    build.args(["build", "--quiet", "--release", "--package", "iostrata"]);
    if !build.status().context("cannot run cargo build")?.success() {
        bail!("iostrata does not build");
    }
    Ok(())
}

/// RocksDB from the caller's place, else as Debian installs it, else not at all. Returns whether it
/// is in the build.
fn choose_rocksdb(build: &mut Command) -> bool {
    if std::env::var_os("ROCKSDB_LIB_DIR").is_some()
        || std::env::var_os("ROCKSDB_COMPILE").is_some()
    {
        return true;
    }
    let library = find(Path::new("/usr/lib"), "librocksdb.so");
    let is_bindable = Path::new(ROCKSDB_HEADER).exists() && has_libclang();
    let library = library.filter(|_| is_bindable);
    match &library {
        Some(dir) => {
            build.env("ROCKSDB_LIB_DIR", dir).env("ROCKSDB_INCLUDE_DIR", "/usr/include");
        }
        None => {
            eprintln!("without RocksDB: librocksdb-dev or libclang-dev is not installed");
            build.args(["--no-default-features", "--features", "iostrata"]);
        }
    }
    library.is_some()
}

/// The directory directly under `parent` that holds this file.
fn find(parent: &Path, name: &str) -> Option<PathBuf> {
    let dirs = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    dirs.filter(|dir| dir.join(name).exists()).min()
}

/// Whether bindgen would find libclang: named by the caller, or in a usual place.
fn has_libclang() -> bool {
    let in_llvm = |dir: PathBuf| dir.join("lib/libclang.so").exists();
    let dirs = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    std::env::var_os("LIBCLANG_PATH").is_some() || dirs.into_iter().any(in_llvm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_emulated_disk_follows_only_the_whole_table() {
        for whole in ["", "--quick", "--json --rounds 5 --dir /mnt/only"] {
            assert!(is_whole(&words(whole)), "{whole}");
        }
        for part in ["--only reads", "--only=reads", "--quick --emulated hdd-7k2", "-h"] {
            assert!(!is_whole(&words(part)), "{part}");
        }
    }

    #[test]
    fn a_file_is_found_in_a_directory_below() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(find(source, "bench.rs"), Some(source.join("src")));
        assert_eq!(find(source, "no-such-file"), None);
    }
}
