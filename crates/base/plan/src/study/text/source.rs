//! A text with its name, so that a byte of it can be named as line and column.

use super::error::{StudyTextError, TextPlace};

/// The text of a study and where it came from.
#[derive(Clone, Debug)]
pub(in crate::study) struct SourceText {
    /// The file as it was named.
    pub file: String,
    /// What it holds.
    pub text: String,
}

impl SourceText {
    /// Line and column of a byte.
    pub fn place(&self, at: usize) -> TextPlace {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        TextPlace {
            file: self.file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// An error at a byte of the text.
    pub(in crate::study) fn error(
        &self,
        at: usize,
        thing: impl Into<String>,
        found: &str,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> StudyTextError {
        let mut error = StudyTextError::said(thing, found, why, fix);
        error.place = Some(Box::new(self.place(at)));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_lines_and_columns() {
        let source = SourceText { file: "a.toml".into(), text: "a = 1\n\u{e9}\u{e9} = 2\n".into() };
        let at = |byte| (source.place(byte).line, source.place(byte).column);
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(4), (1, 5));
        assert_eq!(at(6), (2, 1));
        assert_eq!(at(7), (2, 1));
        assert_eq!(at(10), (2, 3));
        assert_eq!(at(9999), (3, 1));
    }
}
