//! Programs of Debian's unstable suite, unpacked beside the system.
//!
//! Invariant: apt works in directories of its own, on a copy of this machine's source with another
//! suite; no package is installed, and the programs run with the libraries that were unpacked with
//! them, by their own loader.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::commands::{said, write_wrapper};

/// Unpacks packages and all that they need, and makes the program one that starts by itself.
///
/// # Errors
/// When this is no Debian release, apt fails or the program is not among the packages.
pub fn unpack(tree: &Path, packages: &[&str], program: &str) -> Result<()> {
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

/// Puts a script in the place of a program that runs it by the loader beside it.
fn wrap(tree: &Path, program: &str) -> Result<()> {
    let program = tree.join(program);
    let name = program.file_name().context("a program has a name")?;
    let (loader, libraries) = loader(tree)?;
    let real = tree.join("usr/libexec").join(name);
    fs::create_dir_all(tree.join("usr/libexec"))?;
    fs::rename(&program, &real).with_context(|| format!("there is no {}", program.display()))?;
    // The kernel shows the name by which the loader is run as that of the process.
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
