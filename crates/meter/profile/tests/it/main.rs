//! The profiler on the running kernel.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod machine;
mod work;
