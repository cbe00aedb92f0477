//! Just enough of Rust's lexical rules to blank comments and literals and to match braces.
//!
//! It knows line, doc and nested block comments, strings (plain, byte, C, raw), characters and
//! lifetimes. It knows no grammar.

use std::ops::RangeInclusive;

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
pub fn scan(text: &str) -> (String, Vec<Literal>) {
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
