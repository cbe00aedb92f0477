//! Any bytes are decoded as redo records and applied to a page without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engine/engine/tests/it/page/fuzz.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod fuzz;

fuzz_target!(|bytes: &[u8]| fuzz::fuzz_records(bytes));
