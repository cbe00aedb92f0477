//! Little-endian integers at an offset.
//!
//! Invariant: total. Outside of the bytes a read gives 0 and a write does nothing; pages are never
//! so short, so that neither happens with a page's own fields.

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// Writes `field` at `at`.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    let to = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..field.len()));
    debug_assert!(to.is_some(), "{} bytes at {at} lie in the page", field.len());
    if let Some(to) = to {
        to.copy_from_slice(field);
    }
}

/// `number` as a u16. Only for what is known to fit: offsets and lengths within a page.
#[inline]
pub(crate) fn narrow(number: usize) -> u16 {
    debug_assert!(number <= usize::from(u16::MAX), "{number} fits a u16");
    number as u16
}
