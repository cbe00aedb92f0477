//! Bits of a Space page, against a plain list of booleans.

use iostrata_engine::page::{ApplyFault, PageKind, PageSize, Record};
use proptest::prelude::*;

use crate::page::twin::{NO, Twin};

#[test]
fn every_bit_of_every_size_is_there_and_no_more() {
    for size in PageSize::ALL {
        let bits = size.space_bits();
        assert_eq!(bits as usize, (size.bytes() - 64) * 8);
        let mut twin = Twin::new(size, PageKind::Space);
        let set = |from, count| Record::SetBits { from, count, set: true };
        assert_eq!(twin.view().first_clear(0), Some(0));
        assert_eq!(twin.view().first_clear(bits - 1), Some(bits - 1));
        assert_eq!(twin.view().first_clear(bits), None);
        assert_eq!(twin.view().first_clear(u32::MAX), None);
        assert_eq!(twin.view().bits_set_in(bits - 1..u32::MAX), 0);
        assert_eq!(twin.view().bits_set_in(u32::MAX - 1..u32::MAX), 0);
        for (from, count) in [(bits, 1), (bits - 1, 2), (0, bits + 1), (u32::MAX, u32::MAX)] {
            let fault = twin.apply(&set(from, count));
            assert!(matches!(fault, Err(ApplyFault::OutOfRange { .. })), "{from} {count}");
        }
        twin.apply(&set(0, bits - 1)).unwrap();
        assert_eq!(twin.view().first_clear(0), Some(bits - 1));
        twin.apply(&set(bits - 1, 1)).unwrap();
        assert_eq!(
            (twin.view().first_clear(0), twin.view().bits_set_in(0..u32::MAX)),
            (None, bits)
        );
        twin.apply(&Record::SetBits { from: 0, count: bits, set: false }).unwrap();
        assert_eq!(twin.view().bits_set_in(0..u32::MAX), 0);
    }
}

#[test]
fn nothing_is_given_out_or_back_twice() {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Space);
    let bits = |from, count, set| Record::SetBits { from, count, set };
    twin.apply(&bits(100, 50, true)).unwrap();
    let fault = |bit| Err(ApplyFault::AlreadySo { page: NO, bit });
    assert_eq!(twin.apply(&bits(90, 20, true)), fault(100));
    assert_eq!(twin.apply(&bits(149, 1, true)), fault(149));
    assert_eq!(twin.apply(&bits(140, 20, false)), fault(150));
    assert_eq!(twin.apply(&bits(99, 2, false)), fault(99));
}

proptest! {
    #![proptest_config(crate::page::twin::cases(100))]

    #[test]
    fn bits_are_a_list_of_booleans(
        runs in prop::collection::vec((0u32..700, 0u32..200), 1..60),
        probes in prop::collection::vec((0u32..1000, 0u32..400), 1..20),
    ) {
        let mut twin = Twin::new(PageSize::MIN, PageKind::Space);
        let mut model = vec![false; PageSize::MIN.space_bits() as usize];
        for (from, count) in runs {
            let range = from as usize..(from + count) as usize;
            let set = !model[range.start];
            let is_whole = model[range.clone()].iter().all(|bit| *bit != set);
            let result = twin.apply(&Record::SetBits { from, count, set });
            prop_assert_eq!(result.is_ok(), is_whole);
            if is_whole {
                model[range].fill(set);
            }
        }
        let view = twin.view();
        let set = model.iter().filter(|bit| **bit).count();
        prop_assert_eq!(view.bits_set_in(0..u32::MAX) as usize, set);
        for (from, count) in probes {
            let clear = model[from as usize..].iter().position(|bit| !bit);
            prop_assert_eq!(view.first_clear(from), clear.map(|at| from + at as u32));
            let range = from as usize..(from + count) as usize;
            let set = model[range].iter().filter(|bit| **bit).count();
            prop_assert_eq!(view.bits_set_in(from..from + count) as usize, set);
            prop_assert_eq!(view.bit(from), model[from as usize]);
        }
        let mut buffer = Vec::new();
        let page = view.bytes().to_vec();
        let image = Record::image_of(&iostrata_engine::page::PageView::new(&page), &mut buffer);
        twin.apply(&image).unwrap();
        prop_assert_eq!(twin.view().body(), &page[64..]);
    }
}
