//! A Rust file with its code told apart from comments, literals and tests.
//!
//! Purpose: let rules look for words in code without being fooled by a string or a comment.
//! Invariant: `code` has the same lines as the text; what is no code is blank.
//! It is a scanner, not a parser: macros are code like any other.

use std::path::{Path, PathBuf};

use super::rust::{self, Literal};

/// A file ready to be judged.
pub struct SourceFile {
    /// From the top directory.
    pub path: PathBuf,
    /// As written.
    pub text: String,
    /// Comments and the insides of literals blanked.
    pub code: String,
    /// Strings, without quotes.
    pub literals: Vec<Literal>,
    /// The whole file is test code.
    pub is_test_file: bool,
    /// Per line: inside an item under `#[cfg(test)]`.
    test_lines: Vec<bool>,
    /// Files that belong to a `#[cfg(test)] mod name;` in this one, without `.rs`.
    test_modules: Vec<PathBuf>,
}

impl SourceFile {
    /// Scans the text of a file.
    pub fn read(path: &Path, text: &str) -> Self {
        let (code, literals) = rust::scan(text);
        let mut source = Self {
            path: path.to_owned(),
            text: text.to_owned(),
            is_test_file: path
                .components()
                .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "examples"),
            test_lines: vec![false; code.lines().count()],
            test_modules: Vec::new(),
            code,
            literals,
        };
        source.find_tests();
        source
    }

    /// Whether this line, from 1, is test code.
    pub fn is_test(&self, line: usize) -> bool {
        self.is_test_file || self.test_lines.get(line - 1).copied().unwrap_or(false)
    }

    /// Lines of code that are no test code, with their numbers from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.code.lines().enumerate().map(|(at, line)| (at + 1, line));
        numbered.filter(|&(number, _)| !self.is_test(number))
    }

    /// The crate this file is in: `stats`, `iostrata`, `xtask`, `peers`.
    pub fn crate_name(&self) -> &str {
        let mut parts = self.path.components().filter_map(|part| part.as_os_str().to_str());
        match (parts.next(), parts.next(), parts.next()) {
            // A workspace of its own, on no tier.
            (Some("crates"), Some(name @ "peers"), _) => name,
            (Some("crates"), Some(_), Some(name)) => name,
            (Some(first), _, _) => first,
            _ => "",
        }
    }

    /// Number, from 1, of the line that holds this byte.
    pub fn line_of(&self, byte: usize) -> usize {
        self.code[..byte].matches('\n').count() + 1
    }

    fn find_tests(&mut self) {
        const MARK: &str = "#[cfg(test)]";
        for (start, _) in self.code.match_indices(MARK) {
            let rest = &self.code[start + MARK.len()..];
            let Some(opens) = rest.find(['{', ';']) else { continue };
            let item = &rest[..opens];
            let end = start + MARK.len() + rust::item_end(rest).unwrap_or(rest.len());
            if let Some(name) = module_name(item) {
                self.test_modules.push(self.module_dir().join(name));
            }
            let lines = self.line_of(start)..=self.line_of(end);
            lines.for_each(|line| {
                if let Some(is_test) = self.test_lines.get_mut(line - 1) {
                    *is_test = true;
                }
            });
        }
    }

    /// Where the modules that this file declares are.
    fn module_dir(&self) -> PathBuf {
        let dir = self.path.parent().unwrap_or(Path::new(""));
        match self.path.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") | None => dir.to_owned(),
            Some(stem) => dir.join(stem),
        }
    }
}

/// The name in `mod name`, with or without `pub`.
fn module_name(item: &str) -> Option<&str> {
    let mut words = item.split_whitespace().skip_while(|word| *word != "mod");
    words.next().and_then(|_| words.next())
}

/// Marks the files of modules that another file declares under `#[cfg(test)]`.
pub fn mark_test_files(sources: &mut [SourceFile]) {
    let modules: Vec<PathBuf> =
        sources.iter().flat_map(|source| source.test_modules.iter().cloned()).collect();
    for source in sources {
        let of = |module: &PathBuf| {
            source.path == module.with_extension("rs") || source.path.starts_with(module)
        };
        source.is_test_file |= modules.iter().any(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_inside_a_file_are_told_apart() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";
        let source = SourceFile::read(Path::new("crates/base/x/src/lib.rs"), text);
        let lines: Vec<usize> = source.lines().map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 6]);
        assert_eq!(source.crate_name(), "x");
        assert_eq!(
            SourceFile::read(Path::new("crates/peers/src/main.rs"), "").crate_name(),
            "peers"
        );
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_marked() {
        let read = |path: &str, text: &str| SourceFile::read(Path::new(path), text);
        let mut sources = [
            read("c/src/lib.rs", "#[cfg(test)]\nmod simulate;\nmod real;\n"),
            read("c/src/simulate.rs", "fn a() {}"),
            read("c/src/simulate/deep.rs", "fn a() {}"),
            read("c/src/real.rs", "#[cfg(test)]\npub(crate) mod fake;\n"),
            read("c/src/real/fake.rs", "fn a() {}"),
            read("c/tests/it/main.rs", "fn a() {}"),
        ];
        mark_test_files(&mut sources);
        let marked: Vec<bool> = sources.iter().map(|source| source.is_test_file).collect();
        assert_eq!(marked, [false, true, true, false, true, true]);
    }
}
