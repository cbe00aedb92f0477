//! A Rust file with its code separated from comments, literals and tests, by just enough of Rust's
//! lexical rules.
//!
//! Purpose: let rules look for words in code without being fooled by a string or a comment.
//! Invariant: `code` has the same lines as the text; what is no code is blank.
//! It is a scanner, not a parser: macros are code like any other.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

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
        let (code, literals) = scan(text);
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
            let end = start + MARK.len() + item_end(rest).unwrap_or(rest.len());
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

// Just enough of Rust's lexical rules to blank comments and literals and to match braces.
//
// It recognizes line, doc and nested block comments, strings (plain, byte, C, raw), characters and
// lifetimes. It has no grammar.

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub struct Literal {
    /// Line it starts on, from 1.
    pub line: usize,
    /// What is between the quotes, escapes not resolved.
    pub text: String,
}

impl Literal {
    /// Lines it stands on.
    pub fn lines(&self) -> RangeInclusive<usize> {
        self.line..=self.line + self.text.matches('\n').count()
    }
}

/// Blanks everything that is not code; returns the rest and the strings.
fn scan(text: &str) -> (String, Vec<Literal>) {
    let mut scanner = Scanner { text, at: 0, code: String::new(), literals: Vec::new() };
    while scanner.at < text.len() {
        scanner.step();
    }
    (scanner.code, scanner.literals)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    code: String,
    literals: Vec<Literal>,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn step(&mut self) {
        let rest = self.rest();
        if rest.starts_with("//") {
            self.blank(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.blank(block_comment(rest));
        } else if let Some((open, close)) = raw_string(rest).filter(|_| !self.is_in_word()) {
            self.string(open, close);
        } else if rest.starts_with('"') {
            self.string(1, plain_string(rest));
        } else if let Some(len) = character(rest) {
            self.blank(len);
        } else {
            self.keep();
        }
    }

    /// Whether the byte before belongs to an identifier, so that `r` starts no literal.
    fn is_in_word(&self) -> bool {
        self.text[..self.at].chars().next_back().is_some_and(is_word)
    }

    fn keep(&mut self) {
        if let Some(char) = self.rest().chars().next() {
            self.code.push(char);
            self.at += char.len_utf8();
        }
    }

    fn blank(&mut self, len: usize) {
        let end = self.at + len;
        let blank = |char: char| if char == '\n' { '\n' } else { ' ' };
        self.code.extend(self.text[self.at..end].chars().map(blank));
        self.at = end;
    }

    /// A string whose inside is `open..close` from here.
    fn string(&mut self, open: usize, close: usize) {
        let line = self.text[..self.at].matches('\n').count() + 1;
        let text = self.text[self.at + open..self.at + close].to_owned();
        self.literals.push(Literal { line, text });
        self.code.push('"');
        self.at += 1;
        self.blank((close - 1).min(self.rest().len()));
        if !self.rest().is_empty() {
            self.code.push('"');
            self.at += 1;
        }
        self.at += self.rest().len() - self.rest().trim_start_matches('#').len();
    }
}

/// Part of an identifier.
pub fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Where the inside of a raw string starts and ends: `r"`, `r#"`, `br"`, `cr#"`.
fn raw_string(rest: &str) -> Option<(usize, usize)> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|next| next.starts_with(['"', '#']))
    })?;
    let next = &rest[prefix.len()..];
    let hashes = next.len() - next.trim_start_matches('#').len();
    if !next[hashes..].starts_with('"') {
        return None;
    }
    let open = prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some((open, rest[open..].find(&end).map_or(rest.len(), |len| open + len)))
}

/// Where the inside of a plain string ends.
fn plain_string(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '"' => return at,
            _ => {}
        }
    }
    rest.len()
}

/// Length of a character literal; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        let escaped = 1 + inside[1..].chars().next()?.len_utf8();
        return inside[escaped..].find('\'').map(|len| 1 + escaped + len + 1);
    }
    inside[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

/// Byte of the brace or semicolon that ends the item which starts here.
pub fn item_end(code: &str) -> Option<usize> {
    let mut nesting = 0usize;
    let mut braces = 0usize;
    for (at, char) in code.char_indices() {
        match char {
            '(' | '[' => nesting += 1,
            ')' | ']' => nesting = nesting.saturating_sub(1),
            ';' if nesting == 0 && braces == 0 => return Some(at),
            '{' => braces += 1,
            '}' if braces <= 1 => return Some(at),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

/// Whether `word` stands in the line as a whole: not as a part of a longer identifier.
pub fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_open = |char: Option<char>| !char.is_some_and(is_word);
        let starts = !word.starts_with(is_word) || is_open(line[..at].chars().next_back());
        let ends = !word.ends_with(is_word) || is_open(line[at + word.len()..].chars().next());
        starts && ends
    })
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

#[cfg(test)]
mod rust_tests {
    use super::*;

    fn code(text: &str) -> String {
        scan(text).0
    }

    #[test]
    fn comments_and_literals_are_blank() {
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(code("x(\"a\\\"b\") y"), "x(\"    \") y");
        assert_eq!(code("x = 'a'; y: &'a u8; z = '\\''; w = '\"';").matches('"').count(), 0);
        assert!(code("let a: &'static str = b'{';").contains("&'static str"));
        assert!(!code("let a = b'{';").contains('{'));
    }

    #[test]
    fn raw_strings_end_where_they_end() {
        let (code, literals) = scan("f(r#\"a \"quoted\" {\"#, br\"{\"); for\"x\" g");
        assert_eq!(literals[0].text, "a \"quoted\" {");
        assert!(!code.contains('{') && code.ends_with(" g"), "{code}");
        assert!(scan("r#type = 1; // }").0.starts_with("r#type = 1;"));
    }

    #[test]
    fn literals_know_their_line() {
        let (code, literals) = scan("a\n\"/proc\\n\"\n\"two\nlines\"; b");
        let lines: Vec<usize> = literals.iter().map(|literal| literal.line).collect();
        assert_eq!(lines, [2, 3]);
        assert_eq!(code.lines().count(), 4);
    }

    #[test]
    fn items_end_at_their_brace() {
        assert_eq!(item_end("mod x; y"), Some(5));
        assert_eq!(item_end("fn x(a: [u8; 2]) { { } } y"), Some(23));
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("std::fs::read", "fs::"));
        assert!(!has_word("procfs::read", "fs::"));
        assert!(has_word("x.unwrap()", ".unwrap()"));
        assert!(!has_word("Instantly", "Instant"));
    }
}
