//! Words that do not belong where they stand: printing, unwrapping, exiting, impure calls.

use super::source::SourceFile;
use super::tables::{self, EXITING, IMPURE, PRINTING};
use super::{Breach, rust};

/// One breach per line of code that has one of the words.
fn words(source: &SourceFile, words: &[&str], text: &str) -> Vec<Breach> {
    let found = |line: &str| words.iter().copied().find(|word| rust::has_word(line, word));
    source
        .lines()
        .filter_map(|(number, line)| Some((number, found(line)?)))
        .map(|(number, word)| Breach::new(&source.path, number, format!("{word}: {text}")))
        .collect()
}

/// Source is ASCII, so that every terminal and editor shows the same; other characters are escaped.
pub fn ascii(source: &SourceFile) -> Vec<Breach> {
    let lines = source.text.lines().enumerate().filter(|(_, line)| !line.is_ascii());
    let text = "not ASCII; write it as \\u{...} or in words";
    lines.map(|(at, _)| Breach::new(&source.path, at + 1, text)).collect()
}

/// A module says first what it is for.
pub fn header(source: &SourceFile) -> Vec<Breach> {
    if source.is_test_file || source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![Breach::new(&source.path, 1, "no module header; begin with //! and its purpose")]
}

/// Libraries never print.
pub fn printing(source: &SourceFile) -> Vec<Breach> {
    if PRINTING.contains(&source.crate_name()) {
        return Vec::new();
    }
    let prints = ["println!", "print!", "eprintln!", "eprint!"];
    words(source, &prints, "only the binary prints; return what is to be said")
}

/// No panic reaches a user.
pub fn unwrapping(source: &SourceFile) -> Vec<Breach> {
    words(source, &[".unwrap()", ".expect("], "return a typed error, or assert an invariant")
}

/// Only `main` knows exit codes; destructors run.
pub fn exiting(source: &SourceFile) -> Vec<Breach> {
    if EXITING.iter().any(|path| source.path.ends_with(path)) {
        return Vec::new();
    }
    words(source, &["process::exit"], "return to main, so that destructors run")
}

/// Pure crates and modules touch no clock, no file, no thread.
pub fn purity(source: &SourceFile) -> Vec<Breach> {
    let is_pure = match tables::module_of(&source.path) {
        Some(rules) => rules.is_pure,
        None => tables::rules_of(source.crate_name()).is_some_and(|rules| rules.is_pure),
    };
    if !is_pure {
        return Vec::new();
    }
    let impure = [
        "std::fs",
        "std::thread",
        "std::net",
        "std::env",
        "std::process",
        "fs::",
        "thread::",
        "env::",
        "Instant",
        "SystemTime",
    ];
    let crates: Vec<String> = IMPURE.iter().map(|name| name.replace('-', "_")).collect();
    let impure: Vec<&str> = impure.into_iter().chain(crates.iter().map(String::as_str)).collect();
    words(source, &impure, "what is here is pure: no clock, no file, no thread, no environment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn breaches(rule: fn(&SourceFile) -> Vec<Breach>, path: &str, text: &str) -> usize {
        rule(&SourceFile::read(Path::new(path), text)).len()
    }

    const PURE: &str = "crates/base/stats/src/a.rs";
    const IMPURE: &str = "crates/base/run/src/a.rs";

    #[test]
    fn only_the_binary_prints() {
        let text = "fn a() { println!(); }\n// println!\n";
        assert_eq!(breaches(printing, IMPURE, text), 1);
        assert_eq!(breaches(printing, "crates/show/iostrata/src/a.rs", text), 0);
        assert_eq!(breaches(printing, IMPURE, "#[cfg(test)]\nmod t { println!() }"), 0);
    }

    #[test]
    fn nothing_unwraps_outside_tests() {
        assert_eq!(breaches(unwrapping, IMPURE, "a.unwrap();\nb.expect(\"x\");\n"), 2);
        assert_eq!(breaches(unwrapping, IMPURE, "a.unwrap_or(1); b.expect_err();"), 0);
        assert_eq!(breaches(unwrapping, "crates/base/run/tests/it/main.rs", "a.unwrap()"), 0);
    }

    #[test]
    fn only_main_exits() {
        assert_eq!(breaches(exiting, IMPURE, "std::process::exit(1)"), 1);
        assert_eq!(breaches(exiting, "crates/show/iostrata/src/main.rs", "process::exit(1)"), 0);
    }

    #[test]
    fn what_is_pure_stays_pure() {
        for text in ["use std::fs;", "use std::{thread::spawn};", "Instant::now()"] {
            assert_eq!(breaches(purity, PURE, text), 1, "{text}");
            assert_eq!(breaches(purity, IMPURE, text), 0, "{text}");
        }
        assert_eq!(breaches(purity, PURE, "use std::fmt; let instant = 1;"), 0);
        assert_eq!(breaches(purity, "crates/engine/sim/src/drive/a.rs", "use rustix::fd;"), 1);
        assert_eq!(breaches(purity, "crates/engine/sim/src/emudisk/a.rs", "use rustix::fd;"), 0);
        assert_eq!(breaches(purity, "crates/engine/engine/src/page/a.rs", "use std::fs;"), 1);
        assert_eq!(breaches(purity, "crates/engine/engine/src/redo/a.rs", "use std::fs;"), 0);
    }

    #[test]
    fn files_are_ascii_and_say_what_they_are_for() {
        assert_eq!(breaches(ascii, PURE, "//! a\n// \u{b5}s\n"), 1);
        assert_eq!(breaches(header, PURE, "//! a\n"), 0);
        assert_eq!(breaches(header, PURE, "use a;\n"), 1);
    }
}
