//! Any redo files are opened and scanned without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engine/engine/tests/it/redo/fuzz.rs"]
mod fuzz;

fuzz_target!(|bytes: &[u8]| {
    let _frames_or_why_not = fuzz::fuzz_scan(bytes);
});
