//! How a change was undone, and what was left doing it.
//!
//! Invariant: what is neither ours nor as before is never touched, and always named.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a change was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It was in place and is as before.
    PutBack,
    /// It was as before already: it never happened, or went with the device or a reboot.
    AsBefore,
    /// The kernel does it when the last user of the thing ends.
    WhenUnused,
    /// What is there is neither ours nor what was before; it is left.
    LeftAlone,
}

/// A thing that was left as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// What.
    pub thing: String,
    /// What was found there.
    pub found: String,
    /// What was there before.
    pub prior: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thing, found, prior } = self;
        write!(f, "{thing} is {found}, was {prior}: it was changed since, so it stays")
    }
}

/// How one change was undone, and what was left doing it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// How.
    pub how: How,
    /// Things that are neither ours nor as before.
    pub left: Vec<Left>,
}

impl Undone {
    pub(crate) fn put_back() -> Self {
        Self { how: How::PutBack, left: Vec::new() }
    }

    pub(crate) fn as_before() -> Self {
        Self { how: How::AsBefore, left: Vec::new() }
    }

    pub(crate) fn when_unused() -> Self {
        Self { how: How::WhenUnused, left: Vec::new() }
    }

    pub(crate) fn left_alone(thing: String, found: impl Into<String>, prior: &str) -> Self {
        let left = Left { thing, found: found.into(), prior: prior.to_owned() };
        Self { how: How::LeftAlone, left: vec![left] }
    }

    /// Sets a value back by `put`, unless it is as before already, or changed by others by now.
    pub(crate) fn of_value<E>(
        thing: String,
        now: &str,
        was: &str,
        is_ours: bool,
        put: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        if now == was {
            return Ok(Self::as_before());
        }
        if !is_ours {
            return Ok(Self::left_alone(thing, now, was));
        }
        put().map(|()| Self::put_back())
    }
}
