//! Rules that look at one file: words that do not belong where they stand, sizes, what was meant to
//! be done later, `unsafe`, what writes to the system, documents and manifests.

use std::path::Path;

use super::source::{Literal, SourceFile};
use super::tables::{
    ALTERING, EXITING, FILE_LINES_MAX, FUNCTION_LINES_MAX, IMPURE, LINE_CHARS_MAX, LONG_FILES,
    PRINTING, READ_ONLY, UNSAFE_FILES,
};
use super::{Breach, source, tables};

/// One breach per line of code that has one of the words.
fn words(source: &SourceFile, words: &[&str], text: &str) -> Vec<Breach> {
    let found = |line: &str| words.iter().copied().find(|word| source::has_word(line, word));
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

/// A module begins with its purpose.
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
    words(source, &prints, "only the binary prints; return the text")
}

/// No panic reaches a user.
pub fn unwrapping(source: &SourceFile) -> Vec<Breach> {
    words(source, &[".unwrap()", ".expect("], "return a typed error, or assert an invariant")
}

/// Only `main` sets exit codes; destructors run.
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

// Sizes: files, functions and lines that a reader can hold.

/// A file is one concept.
pub fn file_length(source: &SourceFile) -> Vec<Breach> {
    let lines = source.text.lines().count();
    let is_exempt = LONG_FILES.iter().any(|(path, _)| source.path.ends_with(path));
    if lines <= FILE_LINES_MAX || is_exempt {
        return Vec::new();
    }
    let text = format!("{lines} lines; split it, {FILE_LINES_MAX} are allowed");
    vec![Breach::new(&source.path, 0, text)]
}

/// A function fits on a screen.
pub fn function_length(source: &SourceFile) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (start, _) in source.code.match_indices("fn ") {
        let is_in_word = source.code[..start].chars().next_back().is_some_and(source::is_word);
        let rest = &source.code[start..];
        let line = source.line_of(start);
        let Some(end) = source::item_end(rest).filter(|_| !is_in_word && !source.is_test(line))
        else {
            continue;
        };
        let lines = rest[..end].matches('\n').count() + 1;
        let name: String = rest[3..].chars().take_while(|&char| source::is_word(char)).collect();
        // Without a name it is a function pointer.
        if lines > FUNCTION_LINES_MAX && !name.is_empty() {
            let text = format!("fn {name} has {lines} lines; {FUNCTION_LINES_MAX} are allowed");
            breaches.push(Breach::new(&source.path, line, text));
        }
    }
    breaches
}

/// A line fits next to another one. Addresses cannot be broken; sentences in strings need not be,
/// so that they can be searched for.
pub fn line_width(source: &SourceFile) -> Vec<Breach> {
    let in_string = |line: usize| {
        let holds = |literal: &Literal| literal.lines().contains(&line);
        source.literals.iter().any(holds)
    };
    let numbered = source.text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let too_wide = |line: &str| line.chars().count() > LINE_CHARS_MAX && !line.contains("://");
    let text = format!("wider than {LINE_CHARS_MAX} characters; break it");
    numbered
        .filter(|&(number, line)| too_wide(line) && !in_string(number))
        .map(|(number, _)| Breach::new(&source.path, number, text.clone()))
        .collect()
}

// What was meant to be done later.

/// Half-done code that compiles, in tests too, and notes to oneself in comments.
pub fn leftovers(source: &SourceFile) -> Vec<Breach> {
    // Split, so that this file does not find itself.
    let notes = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];
    let calls = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
    let mut breaches = Vec::new();
    for (at, (line, text)) in source.code.lines().zip(source.text.lines()).enumerate() {
        let call = calls.into_iter().find(|call| source::has_word(line, call));
        let note = notes.into_iter().find(|note| source::has_word(text, note));
        if let Some(word) = call.or(note) {
            breaches.push(Breach::new(
                &source.path,
                at + 1,
                format!("{word}: finish or remove it"),
            ));
        }
    }
    breaches
}

// `unsafe` stays in the files that the table lists.
//
// That every block states why it is sound is clippy's rule (`undocumented_unsafe_blocks`).

/// No `unsafe` outside the listed files, tests included.
pub fn unsafe_code(source: &SourceFile) -> Vec<Breach> {
    if is_listed(&source.path) {
        return Vec::new();
    }
    let lines = source.code.lines().enumerate();
    lines
        .filter(|(_, line)| source::has_word(line, "unsafe") || line.contains("allow(unsafe_code)"))
        .map(|(at, _)| {
            let text = "unsafe; move it to a listed file or list this one in xtask's tables";
            Breach::new(&source.path, at + 1, text)
        })
        .collect()
}

/// Listed files that are gone or have become safe.
pub fn stale_unsafe_files(sources: &[SourceFile]) -> Vec<Breach> {
    let uses = |path: &Path| {
        let mut sources = sources.iter().filter(|source| source.path == path);
        sources.any(|source| source::has_word(&source.code, "unsafe"))
    };
    let unused = UNSAFE_FILES.iter().map(Path::new).filter(|path| !uses(path));
    unused
        .map(|path| Breach::new(path, 0, "has no unsafe; take it off the list in xtask's tables"))
        .collect()
}

fn is_listed(path: &Path) -> bool {
    UNSAFE_FILES.iter().any(|listed| path == Path::new(listed))
}

// The system is read, not altered, except by the one crate that keeps a journal of it.
//
// Two simple signs: a crate that only observes opens nothing for writing, and no file that names
// `/sys` or `/proc` also writes, outside of that crate. A path that is put together elsewhere
// escapes this rule.

const WRITING: [&str; 6] = [
    "fs::write",
    "File::create",
    "File::create_new",
    "write(true)",
    "append(true)",
    "OFlags::WRONLY",
];

/// The one file that writes into this process's own memory.
const OWN_MEMORY: &str = "crates/show/iostrata/src/hidden_arguments.rs";

/// Writes where only looking is allowed.
pub fn writes(source: &SourceFile) -> Vec<Breach> {
    let is_own = source.path.ends_with(OWN_MEMORY);
    let names_system = source.literals.iter().any(|literal| {
        !is_own
            && !source.is_test(literal.line)
            && (literal.text.starts_with("/sys") || literal.text.starts_with("/proc"))
    });
    let text = if READ_ONLY.contains(&source.crate_name()) {
        "this crate only observes"
    } else if names_system && !ALTERING.contains(&source.crate_name()) {
        "this file names /sys or /proc; only the crate change may alter the system"
    } else {
        return Vec::new();
    };
    let writes = |line: &str| WRITING.iter().any(|word| source::has_word(line, word));
    source
        .lines()
        .filter(|(_, line)| writes(line))
        .map(|(number, _)| Breach::new(&source.path, number, format!("opens to write: {text}")))
        .collect()
}

// Markdown files and manifests.

/// A document begins with what it is.
pub fn title(path: &Path, text: &str) -> Vec<Breach> {
    let has_title = text
        .lines()
        .next()
        .is_some_and(|line| line.strip_prefix("# ").is_some_and(|title| !title.trim().is_empty()));
    if has_title {
        return Vec::new();
    }
    vec![Breach::new(path, 1, "no title; begin with \"# Title\"")]
}

/// Every package lives under the lints of the workspace.
pub fn inherited_lints(path: &Path, text: &str) -> Vec<Breach> {
    let inherits = text.contains("[lints]\nworkspace = true");
    if !text.contains("[package]") || inherits {
        return Vec::new();
    }
    vec![Breach::new(path, 0, "not under the workspace's lints; add [lints] workspace = true")]
}

/// A library with examples in its documentation tests them. One without is not searched for any:
/// that takes as long as compiling it.
pub fn examples(path: &Path, text: &str, sources: &[SourceFile]) -> Vec<Breach> {
    let dir = path.parent().unwrap_or(path).join("src");
    let mut own = sources.iter().filter(|source| source.path.starts_with(&dir));
    let is_library = own.clone().any(|source| source.path == dir.join("lib.rs"));
    let has_examples = own.any(|source| has_example(&source.text));
    match (text.contains("doctest = false"), has_examples) {
        (true, true) => {
            vec![Breach::new(path, 0, "its examples are not tested; remove doctest = false")]
        }
        (false, false) if is_library => {
            vec![Breach::new(path, 0, "it has no examples; add [lib] doctest = false")]
        }
        _ => Vec::new(),
    }
}

/// Whether documentation holds Rust that is compiled.
fn has_example(text: &str) -> bool {
    let mut is_open = false;
    text.lines().map(str::trim_start).any(|line| {
        let fence = line.strip_prefix("//! ```").or_else(|| line.strip_prefix("/// ```"));
        let is_end = fence.is_some() && is_open;
        is_open ^= fence.is_some();
        let is_rust = |kind: &str| kind.is_empty() || kind.starts_with("no_run");
        (fence.is_some_and(is_rust) && !is_end) || line.starts_with("#![doc = include_str!")
    })
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

#[cfg(test)]
mod shape_tests {
    use super::*;
    use std::path::Path;

    fn source(text: &str) -> SourceFile {
        SourceFile::read(Path::new("crates/base/x/src/a.rs"), text)
    }

    #[test]
    fn long_files_are_named() {
        assert!(file_length(&source(&"//\n".repeat(FILE_LINES_MAX))).is_empty());
        assert_eq!(file_length(&source(&"//\n".repeat(FILE_LINES_MAX + 1))).len(), 1);
    }

    #[test]
    fn long_functions_are_named_but_not_tests() {
        let function = |lines: usize| format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines));
        assert!(function_length(&source(&function(FUNCTION_LINES_MAX - 2))).is_empty());
        let found = function_length(&source(&format!("\n{}", function(FUNCTION_LINES_MAX))));
        assert_eq!((found.len(), found[0].line), (1, 2));
        let test = format!("#[cfg(test)]\nmod t {{\n{}}}", function(FUNCTION_LINES_MAX));
        assert!(function_length(&source(&test)).is_empty());
        let pointer = format!("struct A {{ f: fn (u8),\n{}}}", "\n".repeat(FUNCTION_LINES_MAX));
        assert!(function_length(&source(&pointer)).is_empty());
    }

    #[test]
    fn wide_lines_are_named() {
        let wide = "a".repeat(LINE_CHARS_MAX + 1);
        assert_eq!(line_width(&source(&wide)).len(), 1);
        assert!(line_width(&source(&wide[1..])).is_empty());
        assert!(line_width(&source(&format!("a(\"{wide}\");"))).is_empty());
        assert!(line_width(&source(&format!("// https://{wide}"))).is_empty());
    }
}

#[cfg(test)]
mod leftovers_tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn leftovers_are_named() {
        let found =
            |text: &str| leftovers(&SourceFile::read(Path::new("crates/a/b/src/c.rs"), text)).len();
        for text in ["todo!()", "dbg!(a)", "#[ignore]", "#[ignore = \"slow\"]"] {
            assert_eq!(found(text), 1, "{text}");
        }
        assert_eq!(found(concat!("// FIX", "ME later")), 1);
        assert_eq!(found("// todo! is a macro\nlet s = \"dbg!\";"), 0);
    }
}

#[cfg(test)]
mod safety_tests {
    use super::*;

    fn source(path: &str) -> SourceFile {
        SourceFile::read(Path::new(path), "// unsafe\nfn a() { unsafe { b() } }\n")
    }

    #[test]
    fn unsafe_is_named_outside_the_list() {
        let found = unsafe_code(&source("crates/base/stats/src/a.rs"));
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert!(unsafe_code(&source(UNSAFE_FILES[0])).is_empty());
    }

    #[test]
    fn the_list_holds_nothing_else() {
        let sources: Vec<SourceFile> = UNSAFE_FILES.iter().map(|path| source(path)).collect();
        assert!(stale_unsafe_files(&sources).is_empty());
        assert_eq!(stale_unsafe_files(&sources[1..]).len(), 1);
    }
}

#[cfg(test)]
mod writes_tests {
    use super::*;
    use std::path::Path;

    fn breaches(path: &str, text: &str) -> usize {
        writes(&SourceFile::read(Path::new(path), text)).len()
    }

    #[test]
    fn writers_do_not_name_the_system() {
        let writes = "fn a() { fs::write(p, b); }\n";
        let names = "const P: &str = \"/sys/block\";\n";
        assert_eq!(breaches("crates/meter/io/src/a.rs", writes), 0);
        assert_eq!(breaches("crates/meter/io/src/a.rs", names), 0);
        assert_eq!(breaches("crates/meter/io/src/a.rs", &format!("{names}{writes}")), 1);
        assert_eq!(breaches("crates/meter/change/src/a.rs", &format!("{names}{writes}")), 0);
    }

    #[test]
    fn the_observer_never_writes() {
        let text = "fn a() { OpenOptions::new().write(true); }\n";
        assert_eq!(breaches("crates/meter/linux/src/a.rs", text), 1);
        let test = format!("#[cfg(test)]\nmod t {{\n{text}}}\n");
        assert_eq!(breaches("crates/meter/linux/src/a.rs", &test), 0);
    }
}

#[cfg(test)]
mod documents_tests {
    use super::*;

    #[test]
    fn documents_have_a_title() {
        let path = Path::new("a.md");
        assert!(title(path, "# A\ntext\n").is_empty());
        for text in ["", "text", "## A\n", "#\n", "\n# A\n"] {
            assert_eq!(title(path, text).len(), 1, "{text}");
        }
    }

    #[test]
    fn manifests_inherit_the_lints() {
        let path = Path::new("Cargo.toml");
        assert!(inherited_lints(path, "[package]\n[lints]\nworkspace = true\n").is_empty());
        assert!(inherited_lints(path, "[workspace]\n").is_empty());
        assert_eq!(inherited_lints(path, "[package]\n").len(), 1);
    }

    #[test]
    fn examples_are_tested_where_there_are_some() {
        let found = |manifest: &str, text: &str| {
            let source = SourceFile::read(Path::new("crates/a/b/src/lib.rs"), text);
            examples(Path::new("crates/a/b/Cargo.toml"), manifest, &[source]).len()
        };
        let (none, off) = ("//! Nothing.\n//! ```text\n//! ```\n", "[lib]\ndoctest = false\n");
        let some = ["//! ```\n//! a();\n//! ```\n", "#![doc = include_str!(\"README.md\")]\n"];
        assert_eq!((found("", none), found(off, none)), (1, 0));
        assert_eq!(some.map(|text| (found("", text), found(off, text))), [(0, 1), (0, 1)]);
    }
}
