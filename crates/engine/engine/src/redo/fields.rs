//! Integers in a block of bytes.
//!
//! Invariant: offsets come from `layout` and lie within the block.

pub(crate) fn get_u32(from: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&from[at..at + 4]);
    u32::from_le_bytes(bytes)
}

pub(crate) fn get_u64(from: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&from[at..at + 8]);
    u64::from_le_bytes(bytes)
}

pub(crate) fn put_u32(into: &mut [u8], at: usize, value: u32) {
    into[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(into: &mut [u8], at: usize, value: u64) {
    into[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
