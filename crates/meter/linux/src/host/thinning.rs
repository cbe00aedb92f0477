//! Samples in bounded memory: when it is full, every second one is dropped and from then on only
//! every second one is kept.
//!
//! Invariant: memory is reserved once; the first sample stays; kept samples are evenly spaced.

/// A bounded list that halves its resolution when full.
#[derive(Debug)]
pub(crate) struct Thinning<T> {
    kept: Vec<T>,
    capacity: usize,
    /// One of this many samples is kept.
    stride: u64,
    offered: u64,
}

impl<T: Copy> Thinning<T> {
    /// Room for `capacity` samples, of which at least two are granted.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(2);
        Self { kept: Vec::with_capacity(capacity), capacity, stride: 1, offered: 0 }
    }

    pub(crate) fn offer(&mut self, sample: T) {
        let due = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !due {
            return;
        }
        if self.kept.len() == self.capacity {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
            // With an odd capacity the sample at hand falls between two kept ones.
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.kept.push(sample);
    }

    pub(crate) fn kept(&self) -> &[T] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_are_kept_while_there_is_room() {
        let mut list = Thinning::with_capacity(4);
        (0..4).for_each(|n| list.offer(n));
        assert_eq!(list.kept(), [0, 1, 2, 3]);
        list.offer(4);
        assert_eq!(list.kept(), [0, 2, 4]);
        (5..9).for_each(|n| list.offer(n));
        assert_eq!(list.kept(), [0, 4, 8]);
    }

    proptest! {
        #[test]
        fn spacing_is_even_and_memory_bounded(capacity in 0usize..20, count in 1u64..2000) {
            let mut list = Thinning::with_capacity(capacity);
            let room = list.kept.capacity();
            (0..count).for_each(|n| list.offer(n));
            prop_assert_eq!(list.kept.capacity(), room);
            prop_assert!(list.kept().len() <= capacity.max(2));
            prop_assert_eq!(list.kept()[0], 0);
            prop_assert!(list.kept().windows(2).all(|pair| pair[1] - pair[0] == list.stride));
            prop_assert!(count - list.kept().last().unwrap() <= list.stride);
        }
    }
}
