//! `cargo xtask tidy`: the rules of the house that the compiler and clippy do not know.
//!
//! Purpose: hold the borders between crates and the shape of the code, in under a second.
//! Invariant: every rule is a function from what it judges to a list of [`Breach`]es, tested on
//! snippets that break it. The tree as it stands is judged by a unit test too.
//! It judges text, not meaning: a net for the careless, no proof.

mod borders;
mod imports;
mod lanes;
mod source;
mod style;
pub mod tables;

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, Result};

use crate::workspace::{self, Workspace};
use source::SourceFile;

/// A rule broken at a place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// File, from the top directory.
    path: PathBuf,
    /// Line, from 1; 0 when the whole file is meant.
    line: usize,
    /// What is wrong and what to do.
    text: String,
}

impl Breach {
    fn new(path: &Path, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            0 => write!(f, "{path}: {}", self.text),
            line => write!(f, "{path}:{line}: {}", self.text),
        }
    }
}

/// Judges the tree and prints what is not in order.
///
/// # Errors
/// When the tree cannot be read.
pub fn run() -> Result<bool> {
    let breaches = judge(&workspace::root())?;
    breaches.iter().for_each(|breach| println!("{breach}"));
    match breaches.len() {
        0 => println!("tidy: in order"),
        count => println!("tidy: {count} not in order"),
    }
    Ok(breaches.is_empty())
}

fn judge(root: &Path) -> Result<Vec<Breach>> {
    let mut breaches = borders::judge(&Workspace::read()?);
    breaches.extend(lanes::judge(root)?);
    let (mut sources, mut manifests) = (Vec::new(), Vec::new());
    for path in files(root)? {
        let read = || {
            let place = root.join(&path);
            fs::read_to_string(&place).with_context(|| format!("cannot read {}", place.display()))
        };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => sources.push(SourceFile::read(&path, &read()?)),
            Some("md") => breaches.extend(style::title(&path, &read()?)),
            Some("toml") if path.ends_with("Cargo.toml") => {
                let text = read()?;
                breaches.extend(style::inherited_lints(&path, &text));
                manifests.push((path, text));
            }
            _ => {}
        }
    }
    source::mark_test_files(&mut sources);
    for rule in RULES {
        breaches.extend(sources.iter().flat_map(rule));
    }
    breaches.extend(style::stale_unsafe_files(&sources));
    breaches
        .extend(manifests.iter().flat_map(|(path, text)| style::examples(path, text, &sources)));
    breaches.extend(imports::circles(&sources));
    breaches.extend(imports::borders_of_modules(&sources));
    breaches.extend(imports::stale_modules(&sources));
    breaches.sort();
    Ok(breaches)
}

type Rule = fn(&SourceFile) -> Vec<Breach>;

/// Rules that look at one Rust file.
const RULES: &[Rule] = &[
    style::file_length,
    style::function_length,
    style::line_width,
    style::ascii,
    style::header,
    style::printing,
    style::unwrapping,
    style::exiting,
    style::purity,
    style::leftovers,
    style::unsafe_code,
    style::writes,
];

/// Files of the repository, from its top directory; what is built or measured is left out.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    const LEFT_OUT: [&str; 3] = ["iostrata-runs", ".git", "corpus"];
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()));
        for entry in entries? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let is_built = entry.file_name() == "target" && dir.join("Cargo.toml").is_file();
            let is_left_out = is_built || LEFT_OUT.iter().any(|name| entry.file_name() == *name);
            if kind.is_dir() && !is_left_out {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(root)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let breaches = judge(&workspace::root()).unwrap();
        let lines: Vec<String> = breaches.iter().map(Breach::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn every_crate_is_seen() {
        let files = files(&workspace::root()).unwrap();
        for path in ["xtask/src/main.rs", "crates/base/stats/src/lib.rs", "ARCHITECTURE.md"] {
            assert!(files.contains(&PathBuf::from(path)), "{path}");
        }
    }
}
