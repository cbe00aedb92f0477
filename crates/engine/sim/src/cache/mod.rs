//! The page cache and how it writes back.

mod submission;

pub use submission::Submission;
