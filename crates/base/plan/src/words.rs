//! Values that users name by words.
//!
//! Invariant: a word stands for one value of its set, and exactly one of its names is shown.

use crate::study::nearest::nearest;

/// Why a text is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {fix}")]
pub struct ValueError {
    /// What is wrong with it.
    pub why: String,
    /// What to write instead.
    pub fix: String,
}

/// A value with its names.
#[derive(Clone, Copy, Debug)]
pub struct Word<T: 'static> {
    /// The value.
    pub value: T,
    /// How it is shown.
    pub name: &'static str,
    /// Other names that are taken.
    pub aliases: &'static [&'static str],
    /// A line of help; empty where the name is enough.
    pub help: &'static str,
}

pub(crate) const fn word<T: Copy>(value: T, name: &'static str) -> Word<T> {
    Word { value, name, aliases: &[], help: "" }
}

impl<T: Copy> Word<T> {
    pub(crate) const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    fn is(&self, text: &str) -> bool {
        self.name == text || self.aliases.contains(&text)
    }
}

/// A closed set of values that have names.
pub trait Words: Copy + PartialEq + 'static {
    /// The table.
    const WORDS: &'static [Word<Self>];

    /// The value of this name; upper case is taken as well.
    fn of(text: &str) -> Option<Self> {
        let of = |text: &str| Self::WORDS.iter().find(|word| word.is(text));
        of(text).or_else(|| of(&text.to_ascii_lowercase())).map(|word| word.value)
    }

    /// The name that is shown.
    fn name(self) -> &'static str {
        let found = Self::WORDS.iter().find(|word| word.value == self);
        found.map_or("?", |word| word.name)
    }

    /// Every name that is shown.
    fn names() -> Vec<&'static str> {
        Self::WORDS.iter().map(|word| word.name).collect()
    }
}

/// The error of a word that is none of these, with the nearest one.
pub(crate) fn unknown(text: &str, names: &[&'static str]) -> ValueError {
    let list = names.join(", ");
    let fix = match nearest(text, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? ({list})"),
        None => format!("use one of {list}"),
    };
    ValueError { why: "there is no such value".to_owned(), fix }
}
