//! Any page image is read and checked without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| iostrata_engine::page::fuzz_page(bytes));
