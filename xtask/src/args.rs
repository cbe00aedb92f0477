//! The words after `cargo xtask`.
//!
//! Purpose: flags and options taken out one by one; what is left over at the end is an error. It is
//! independent of the chores.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};

/// Words not yet taken.
pub struct Args {
    words: Vec<String>,
}

impl Args {
    /// All words after the program's name.
    pub fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// Takes the first word.
    pub fn word(&mut self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.remove(0))
    }

    /// Takes a flag such as `--install`; true when it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes a flag that may have a value, `--changed` or `--changed main`.
    pub fn flag_with_option(&mut self, name: &str) -> Option<Option<String>> {
        let at = self.words.iter().position(|word| word == name)?;
        self.words.remove(at);
        let has_value = self.words.get(at).is_some_and(|word| !word.starts_with("--"));
        Some(has_value.then(|| self.words.remove(at)))
    }

    /// Takes an option with its value, `--pairs 5`; `default` when it was not given.
    ///
    /// # Errors
    /// When the value is missing or cannot be read as a `T`.
    pub fn option<T: FromStr>(&mut self, name: &str, default: T) -> Result<T> {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(default);
        };
        self.words.remove(at);
        if at == self.words.len() {
            bail!("{name} needs a value");
        }
        let value = self.words.remove(at);
        value.parse().map_err(|_| anyhow!("{value}")).with_context(|| format!("{name}: bad value"))
    }

    /// All that is left, for another program.
    #[cfg(not(feature = "bench"))]
    pub fn rest(self) -> Vec<String> {
        self.words
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// Names the first word that was not taken.
    pub fn finish(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => bail!("{word} is not known here; see cargo xtask help"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn takes_what_it_is_asked_for() {
        let mut args = args("bench --pairs 7 --install");
        assert_eq!(args.word().as_deref(), Some("bench"));
        assert_eq!(args.option("--pairs", 5).unwrap(), 7);
        assert_eq!(args.option("--runtime", 3).unwrap(), 3);
        assert!(args.flag("--install"));
        args.finish().unwrap();
    }

    #[test]
    fn a_flag_may_have_a_value() {
        assert_eq!(args("test").flag_with_option("--changed"), None);
        assert_eq!(args("--changed --install").flag_with_option("--changed"), Some(None));
        let base = args("--install --changed v1").flag_with_option("--changed");
        assert_eq!(base, Some(Some("v1".to_owned())));
    }

    #[test]
    fn refuses_the_rest() {
        assert!(args("--bogus").finish().is_err());
        assert!(args("--pairs").option("--pairs", 5).is_err());
        assert!(args("--pairs many").option("--pairs", 5).is_err());
    }
}
