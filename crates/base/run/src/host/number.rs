//! A block device's number, `major:minor`, as the kernel writes it.
//!
//! Invariant: the text form and the number form convert without loss; nothing else parses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number of a device. Major 0 belongs to no block device: the kernel hands such numbers out to
/// file systems that have none of their own (tmpfs, NFS, overlay) or more than one (btrfs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct DeviceNumber {
    /// The driver's number.
    pub major: u32,
    /// The device's number within its driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Whether no block device stands behind this number.
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// A text that is not `major:minor`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a device number; write major:minor, as in 8:1")]
pub struct DeviceNumberError(String);

impl FromStr for DeviceNumber {
    type Err = DeviceNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || DeviceNumberError(text.to_owned());
        let (major, minor) = text.trim().split_once(':').ok_or_else(wrong)?;
        let part = |digits: &str| digits.parse::<u32>().map_err(|_| wrong());
        Ok(Self { major: part(major)?, minor: part(minor)? })
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = DeviceNumberError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> Self {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_convert_both_ways() {
        let number: DeviceNumber = "254:16\n".parse().unwrap();
        assert_eq!(number, DeviceNumber { major: 254, minor: 16 });
        assert_eq!(serde_json::to_string(&number).unwrap(), "\"254:16\"");
        assert_eq!(serde_json::from_str::<DeviceNumber>("\"254:16\"").unwrap(), number);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "8", "8:", ":1", "8:-1", "a:b", "8:1:2", "4294967296:0"] {
            assert!(text.parse::<DeviceNumber>().is_err(), "{text:?} was taken");
        }
    }
}
