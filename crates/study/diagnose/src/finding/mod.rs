//! Findings: what is suspected, which points would confirm it, and what they said.

mod id;

pub use id::FindingId;
