//! Names of files on a disk.
//!
//! Invariant: a name stays within its directory: not empty, no slash, not `.` or `..`, at most 255
//! bytes.

use std::fmt;
use std::sync::Arc;

use crate::disk::DiskError;

/// The name of a file in the flat directory of a disk. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(Arc<str>);

impl FileName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`DiskError::BadName`] when it would leave the directory or is too long.
    pub fn new(name: impl Into<String>) -> Result<Self, DiskError> {
        let name = name.into();
        let bad = name.is_empty() || name == "." || name == ".." || name.len() > 255;
        if bad || name.contains(['/', '\0']) {
            return Err(DiskError::BadName { name });
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::FileName;

    #[test]
    fn names_stay_in_the_directory() {
        for bad in ["", ".", "..", "a/b", "/a", "a\0b", &"x".repeat(256)] {
            assert!(FileName::new(bad).is_err(), "{bad}");
        }
        assert_eq!(FileName::new("redo.0").unwrap().as_str(), "redo.0");
    }
}
