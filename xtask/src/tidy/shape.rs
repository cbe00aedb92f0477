//! Sizes: files, functions and lines that a reader can hold.

use super::Breach;
use super::rust::{self, Literal};
use super::source::SourceFile;
use super::tables::{FILE_LINES_MAX, FUNCTION_LINES_MAX, LINE_CHARS_MAX, LONG_FILES};

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
        let is_in_word = source.code[..start].chars().next_back().is_some_and(rust::is_word);
        let rest = &source.code[start..];
        let line = source.line_of(start);
        let Some(end) = rust::item_end(rest).filter(|_| !is_in_word && !source.is_test(line))
        else {
            continue;
        };
        let lines = rest[..end].matches('\n').count() + 1;
        let name: String = rest[3..].chars().take_while(|&char| rust::is_word(char)).collect();
        // Without a name it is a function pointer.
        if lines > FUNCTION_LINES_MAX && !name.is_empty() {
            let text = format!("fn {name} has {lines} lines; {FUNCTION_LINES_MAX} are allowed");
            breaches.push(Breach::new(&source.path, line, text));
        }
    }
    breaches
}

/// A line fits beside another one. Addresses cannot be broken; sentences in strings need not be,
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

#[cfg(test)]
mod tests {
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
