//! One line of the catalogue.

use std::fmt;

/// What an option does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionEffect {
    /// It changes what is run or written: what, for the documentation.
    Changes(&'static str),
    /// It is read and ignored, with this warning.
    Warned(&'static str),
    /// It is refused: why, and what to do instead.
    Refused(&'static str),
}

impl fmt::Display for OptionEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changes(what) => f.write_str(what),
            Self::Warned(why) => write!(f, "ignored: {why}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

/// One option of fio.
#[derive(Clone, Copy, Debug)]
pub struct FioOption {
    /// Its name, with underscores.
    pub name: &'static str,
    /// Other names that fio accepts for it.
    pub aliases: &'static [&'static str],
    /// What it does here.
    pub effect: OptionEffect,
    /// Values that request what is done anyway: accepted without a warning.
    pub neutral: &'static [&'static str],
    /// A value that has the effect; with `;` and other options that it needs.
    pub example: &'static str,
    /// Whether it stands without a value, and in the command line takes one only behind a `=`.
    pub bare: bool,
}

impl FioOption {
    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether a value requests what is done anyway.
    pub(in crate::fio) fn is_neutral(&self, value: &str) -> bool {
        self.neutral.contains(&value)
    }

    /// The example's value.
    pub fn example_value(&self) -> &'static str {
        self.example.split_once(';').map_or(self.example, |(value, _)| value)
    }

    /// The other options that the example needs, one per line.
    pub fn example_beside(&self) -> impl Iterator<Item = &'static str> {
        self.example.split(';').skip(1)
    }

    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(super) const fn but(mut self, neutral: &'static [&'static str]) -> Self {
        self.neutral = neutral;
        self
    }

    pub(super) const fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    const fn new(name: &'static str, example: &'static str, effect: OptionEffect) -> Self {
        Self { name, aliases: &[], effect, neutral: &[], example, bare: false }
    }
}

pub(super) const fn changes(
    name: &'static str,
    example: &'static str,
    what: &'static str,
) -> FioOption {
    FioOption::new(name, example, OptionEffect::Changes(what))
}

pub(super) const fn warned(
    name: &'static str,
    example: &'static str,
    why: &'static str,
) -> FioOption {
    FioOption::new(name, example, OptionEffect::Warned(why))
}

pub(super) const fn refused(
    name: &'static str,
    example: &'static str,
    why: &'static str,
) -> FioOption {
    FioOption::new(name, example, OptionEffect::Refused(why))
}
