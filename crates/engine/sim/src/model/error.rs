//! Why a disk can't be modelled.

use std::path::PathBuf;

use iostrata_stats::units::bytes;
use thiserror::Error;

/// Why a disk can't be modelled as requested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// An option that the model does not have.
    #[error("the disk model {model} has no option `{option}`: {why}; leave it out")]
    Option {
        /// The model's name.
        model: &'static str,
        /// The option.
        option: &'static str,
        /// Why it has none.
        why: &'static str,
    },
    /// Too few bytes to hold anything.
    #[error(
        "a disk of {} is too small for the model {model}: it takes at least {}",
        bytes(*found_bytes as f64), bytes(*least_bytes as f64)
    )]
    TooSmall {
        /// The model's name.
        model: &'static str,
        /// The requested value.
        found_bytes: u64,
        /// What would have been taken.
        least_bytes: u64,
    },
    /// Too many bytes.
    #[error(
        "a disk of {} is too large for the model {model}: it takes at most {}",
        bytes(*found_bytes as f64), bytes(*most_bytes as f64)
    )]
    TooLarge {
        /// The model's name.
        model: &'static str,
        /// The requested value.
        found_bytes: u64,
        /// What would have been taken.
        most_bytes: u64,
    },
    /// A size that is not whole sectors.
    #[error("a disk of {found_bytes} bytes does not end at a sector: take a multiple of 4096")]
    Uneven {
        /// The requested value.
        found_bytes: u64,
    },
    /// A measured disk without its measurement.
    #[error(
        "the disk probe:{} needs what `iostrata probe --json` printed, and it was not read",
        .file.display()
    )]
    ProbeMissing {
        /// The file that was named.
        file: PathBuf,
    },
    /// A probe that did not measure what the model needs.
    #[error("the probe did not measure {what}: {fix}")]
    ProbeIncomplete {
        /// What is missing.
        what: &'static str,
        /// What to do.
        fix: &'static str,
    },
}
