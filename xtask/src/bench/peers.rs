//! `cargo xtask bench peers`: the embedded engine beside redb, fjall, SQLite and RocksDB.
//!
//! The program of `crates/peers` does the work. Here it is only built as it ships, outside of the
//! workspace, and kept alone on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::test::execute;
use crate::workspace::{self, Workspace};

/// Where Debian puts the header that RocksDB is bound by.
const ROCKSDB_HEADER: &str = "/usr/include/rocksdb/c.h";

/// Builds the program and runs it with the words that are left.
///
/// # Errors
/// When it does not build or fails.
pub fn run(mut args: Args) -> Result<()> {
    let workspace = Workspace::read()?;
    let words: Vec<String> = std::iter::from_fn(|| args.word()).collect();
    let target = workspace.target.join("peers");
    println!("building iostrata-peers (release)");
    let mut build = workspace::cargo(&workspace.root.join("crates/peers"));
    build.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(&target);
    choose_rocksdb(&mut build);
    if !build.status().context("cannot run cargo build")?.success() {
        bail!("crates/peers does not build; its README.md says what it needs");
    }
    let _lock = execute::lock(&workspace.target.join("xtask"))?;
    let mut program = Command::new(target.join("release/iostrata-peers"));
    if !program.args(words).status().context("cannot run iostrata-peers")?.success() {
        bail!("iostrata-peers failed");
    }
    Ok(())
}

/// RocksDB from where the caller says, else as Debian installs it, else not at all.
fn choose_rocksdb(build: &mut Command) {
    if std::env::var_os("ROCKSDB_LIB_DIR").is_some()
        || std::env::var_os("ROCKSDB_COMPILE").is_some()
    {
        return;
    }
    let library = find(Path::new("/usr/lib"), "librocksdb.so");
    let is_bindable = Path::new(ROCKSDB_HEADER).exists() && has_libclang();
    match library.filter(|_| is_bindable) {
        Some(dir) => {
            build.env("ROCKSDB_LIB_DIR", dir).env("ROCKSDB_INCLUDE_DIR", "/usr/include");
        }
        None => {
            println!("without RocksDB: librocksdb-dev or libclang-dev is not installed");
            build.args(["--no-default-features", "--features", "iostrata"]);
        }
    }
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

    #[test]
    fn a_file_is_found_in_a_directory_below() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(find(source, "bench.rs"), Some(source.join("src")));
        assert_eq!(find(source, "no-such-file"), None);
    }
}
