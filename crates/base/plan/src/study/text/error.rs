//! What is wrong with a study's text, and where.

/// A place in a file, as editors count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A study that cannot be laid out, in the user's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{thing}{}: {why}; {fix}", before(place.as_deref()), quoted(found))]
pub struct StudyTextError {
    /// Where; absent for what was given on the command line.
    pub place: Option<Box<TextPlace>>,
    /// The thing: `[measure] budget`, `factor workers`.
    pub thing: String,
    /// The value found; empty where there is none.
    pub found: String,
    /// What is wrong with it.
    pub why: String,
    /// What to do instead.
    pub fix: String,
}

fn before(place: Option<&TextPlace>) -> String {
    place.map_or(String::new(), |place| format!("{place}: "))
}

fn quoted(found: &str) -> String {
    if found.is_empty() { String::new() } else { format!(" `{found}`") }
}

/// Longest value that an error repeats, in characters.
const FOUND_CHARS_MAX: usize = 80;

fn shortened(found: &str) -> String {
    let flat: String = found.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if flat.chars().count() <= FOUND_CHARS_MAX {
        return flat;
    }
    flat.chars().take(FOUND_CHARS_MAX).chain("...".chars()).collect()
}

impl StudyTextError {
    /// An error without a place in the file.
    pub(in crate::study) fn said(
        thing: impl Into<String>,
        found: &str,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            place: None,
            thing: thing.into(),
            found: shortened(found),
            why: why.into(),
            fix: fix.into(),
        }
    }
}
