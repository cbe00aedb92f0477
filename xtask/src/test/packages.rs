//! What tests use when it is there: programs of Debian packages.
//!
//! Invariant: nothing is installed unless root runs this under `CI=true` or with `--install`; what
//! is not there is named, and the tests that need it skip.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A program, or a library by its path, that some tests start.
struct Tool {
    program: &'static str,
    package: &'static str,
    serves: &'static str,
}

const TOOLS: [Tool; 8] = [
    Tool { program: "fio", package: "fio", serves: "comparison with fio" },
    Tool { program: "chromium", package: "chromium", serves: "the report in a browser" },
    Tool { program: "mkfs.ext4", package: "e2fsprogs", serves: "tests on a fresh ext4" },
    Tool { program: "mkfs.xfs", package: "xfsprogs", serves: "tests on a fresh XFS" },
    Tool { program: "mariadbd", package: "mariadb-server-core", serves: "tests on a real server" },
    Tool { program: "mariadb", package: "mariadb-client-core", serves: "tests on a real server" },
    Tool {
        program: "/usr/lib/galera/libgalera_smm.so",
        package: "galera-4",
        serves: "tests on a cluster",
    },
    Tool { program: "mkfs.btrfs", package: "btrfs-progs", serves: "tests on a fresh btrfs" },
];

/// Installs what is missing if that was requested and is possible, and names the rest.
///
/// # Errors
/// When `--install` was given and a package cannot be installed.
pub fn prepare(install: bool) -> Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    if install && !is_root {
        bail!("--install needs root; run it as root or leave it out");
    }
    let wanted = missing();
    if !wanted.is_empty() && is_root && (install || is_ci()) {
        let outcome = apt_install(&wanted);
        if install {
            outcome?;
        } else if let Err(error) = outcome {
            println!("cannot install: {error:#}");
        }
    }
    for tool in missing() {
        let Tool { program, package, serves } = tool;
        println!("not installed: {program} (Debian package {package}); left out: {serves}");
    }
    Ok(())
}

/// Room that the tests take at most where they keep their files, in bytes.
const ROOM_BYTES: u64 = 4 << 30;

/// The free space of each directory that has less than the tests may need.
pub fn without_room(dirs: &[PathBuf]) -> Vec<String> {
    let free = |dir: &Path| {
        let system = rustix::fs::statvfs(dir).ok()?;
        Some(system.f_bavail * system.f_frsize)
    };
    let few = dirs.iter().filter_map(|dir| Some((dir, free(dir)?)));
    let few = few.filter(|(_, bytes)| *bytes < ROOM_BYTES);
    few.map(|(dir, bytes)| {
        let (dir, mib, most) = (dir.display(), bytes >> 20, ROOM_BYTES >> 30);
        format!(
            "{dir} has {mib} MiB free; tests may need {most} GiB and fail without: free some, or \
             name another directory in TMPDIR or CARGO_TARGET_DIR"
        )
    })
    .collect()
}

/// Whether this runs where everything that is missing may be fetched.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Whether a test was skipped for lack of a program that is installed.
pub fn is_needless(skip: &str, is_there: impl Fn(&str) -> bool) -> bool {
    let names = |program: &str| skip.split([' ', ',', ';']).any(|word| word == program);
    TOOLS.iter().any(|tool| names(tool.program) && is_there(tool.program))
}

fn missing() -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !is_installed(tool.program)).collect()
}

/// Whether a program is on the path or where Debian keeps the administrator's programs.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(Path::new).map(Path::to_path_buf);
    std::env::split_paths(&path).chain(usual).any(|dir| dir.join(program).is_file())
}

fn apt_install(tools: &[&Tool]) -> Result<()> {
    let packages: Vec<&str> = tools.iter().map(|tool| tool.package).collect();
    println!("installing: {}", packages.join(" "));
    apt_get(&["update"])?;
    let mut words = vec!["install", "--yes", "--no-install-recommends"];
    words.extend(packages);
    apt_get(&words)
}

/// Without a network it gives up at once rather than within minutes.
fn apt_get(words: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(["-oAcquire::Retries=1", "-oAcquire::http::Timeout=20"]);
    command.arg("--quiet=2").args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.output().context("cannot run apt-get")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("apt-get {}: {}", words.join(" "), said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_is_installed() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no-such-program-anywhere"));
    }

    #[test]
    fn a_file_system_without_room_is_named() {
        let found = without_room(&["/proc".into()]);
        assert!(found[0].starts_with("/proc has 0 MiB free; tests may need 4 GiB"), "{found:?}");
        assert_eq!(without_room(&["/no-such-directory".into()]), [""; 0]);
    }

    #[test]
    fn a_test_that_could_have_run_is_no_skip() {
        let is_there = |program: &str| program == "fio";
        for (skip, is_needless) in [
            ("iostrata cli: parity: fio is not installed", true),
            ("iostrata cli: volumes: mkfs.xfs is not installed", false),
            ("iostrata cli: fio_jobs: needs root", false),
        ] {
            assert_eq!(super::is_needless(skip, is_there), is_needless, "{skip}");
        }
    }
}
