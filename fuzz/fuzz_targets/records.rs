//! Any bytes are decoded as redo records and applied to a page without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| iostrata_engine::page::fuzz_records(bytes));
