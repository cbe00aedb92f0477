//! Any redo files are opened and scanned without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _frames_or_why_not = iostrata_engine::redo::fuzz_scan(bytes);
});
