//! A range of keys, as a program writes it and as it is kept.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// A range of keys: `..`, `"a".."c"`, `b"a".as_slice()..`, `low..=high` of vectors, slices or
/// arrays, or a pair of [`Bound`]s.
///
/// ```
/// # use iostrata_engine::{Background, Direction, Disks, Engine, Settings};
/// # let disks = Disks::one(iostrata_engine::disk::MemDisk::new());
/// # let engine = Engine::open_on(disks, Settings::default(), Background::Manual)?;
/// let table = engine.create_table("t")?;
/// table.bulk_load([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let (low, high) = (vec![b'b'], vec![b'c']);
/// assert_eq!(table.range(..).count(), 3);
/// assert_eq!(table.range("a".."c").count(), 2);
/// assert_eq!(table.range(&b"b"[..]..).count(), 2);
/// assert_eq!(table.range(1_u8.to_be_bytes()..).count(), 3);
/// assert_eq!(table.range(low..=high).count(), 2);
/// # Ok::<(), iostrata_engine::EngineError>(())
/// ```
pub trait KeyRange {
    /// Where the range begins and ends.
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRange for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).key_bounds()
    }
}

/// Of the ranges that have ends of one type.
macro_rules! key_range {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                let low = RangeBounds::<K>::start_bound(self).map(AsRef::as_ref);
                (low, RangeBounds::<K>::end_bound(self).map(AsRef::as_ref))
            }
        }
    )*};
}

key_range!(
    Range<K>,
    RangeFrom<K>,
    RangeInclusive<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

/// The ends of a range of keys, kept.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Copies the ends of a range.
pub(crate) fn bounds(range: &impl KeyRange) -> KeyBounds {
    let (low, high) = range.key_bounds();
    (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec))
}

/// The keys that begin with a prefix.
pub(crate) fn of_prefix(prefix: &[u8]) -> KeyBounds {
    let mut end = prefix.to_vec();
    // The least key behind all of them: the last byte that can grow, grows.
    while let Some(byte) = end.pop() {
        if byte < u8::MAX {
            end.push(byte + 1);
            return (Bound::Included(prefix.to_vec()), Bound::Excluded(end));
        }
    }
    (Bound::Included(prefix.to_vec()), Bound::Unbounded)
}
