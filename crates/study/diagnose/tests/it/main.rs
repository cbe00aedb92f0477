//! Diagnosis on made-up storage: clean, with one defect each, noisy, and cut off.
#![allow(clippy::unwrap_used)]

mod bounds;
mod catalogue;
mod causes;
mod clean;
mod defects;
mod disturbed;
mod partial;
mod patterns;
mod place;
mod sizing;
mod study;
mod study_answers;
mod study_queue;
mod study_response;
mod support;
mod verdict;
