//! Counters, and status pages whole and torn.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn page(sequence: u64, first: u64) -> (StatusPage, Box<[u8; STATUS_BYTES]>) {
    let values = std::array::from_fn(|at| first.wrapping_mul(at as u64 + 1));
    let counters = Counters::new(values);
    let page = StatusPage { sequence, process_id: 4711, unix_us: 1_700_000_000_000_000, counters };
    let mut bytes = Box::new([0xAA; STATUS_BYTES]);
    page.encode(&mut bytes);
    (page, bytes)
}

#[test]
fn the_enum_indexes_the_catalogue() {
    for (at, row) in COUNTERS.iter().enumerate() {
        assert_eq!(row.counter as usize, at);
        assert_eq!(row.counter.row(), row);
        assert_eq!(Counter::find(row.name), Some(row.counter));
    }
    assert_eq!(Counter::find("Innodb_buffer_pool_reads"), Some(Counter::BufferPoolReads));
    assert_eq!(Counter::find("nonsense"), None);
}

#[test]
fn names_are_distinct_and_every_sentence_is_one() {
    let names: BTreeSet<&str> = COUNTERS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), COUNTERS.len());
    for row in COUNTERS {
        assert!(row.doc.ends_with('.') && !row.doc.contains(['\n', '|']), "{row:?}");
    }
}

#[test]
fn what_was_counted_between_leaves_gauges_alone() {
    let mut earlier = Counters::default();
    earlier[Counter::Commits] = 5;
    earlier[Counter::BufferPoolPagesDirty] = 9;
    let mut now = earlier.clone();
    now[Counter::Commits] += 3;
    now[Counter::BufferPoolPagesDirty] = 4;
    let counted = now.since(&earlier);
    assert_eq!(counted[Counter::Commits], 3);
    assert_eq!(counted[Counter::BufferPoolPagesDirty], 4);
}

#[test]
fn a_whole_page_comes_back() {
    let (page, bytes) = page(7, 3);
    assert_eq!(StatusPage::decode(bytes.as_slice()), Ok(page));
}

#[test]
fn a_page_of_another_kind_is_told_from_a_torn_one() {
    let (_, bytes) = page(7, 3);
    let changed = |at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 0x40;
        StatusPage::decode(&bytes).unwrap_err()
    };
    assert_eq!(StatusPage::decode(&bytes[..100]), Err(StatusFault::Short { found: 100 }));
    assert_eq!(StatusPage::decode(&[0; STATUS_BYTES]), Err(StatusFault::Magic));
    assert_eq!(changed(0), StatusFault::Magic);
    assert_eq!(changed(8), StatusFault::Version { found: 65 });
    for at in [12, 16, 24, 32, 40, 2000, STATUS_BYTES - 16, STATUS_BYTES - 1] {
        assert_eq!(changed(at), StatusFault::Torn, "byte {at}");
    }
}

#[test]
fn a_table_of_other_counters_is_named() {
    let (_, mut bytes) = page(7, 3);
    bytes[16..24].copy_from_slice(&1_u64.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..STATUS_BYTES - 16]);
    bytes[STATUS_BYTES - 16..STATUS_BYTES - 12].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(StatusPage::decode(bytes.as_slice()), Err(StatusFault::Table { found: 1 }));
}

proptest! {
    #[test]
    fn half_written_pages_are_torn(at in 25..STATUS_BYTES - 7, first in 1..u64::MAX) {
        let (_, old) = page(7, first);
        let (_, new) = page(8, first.wrapping_add(1));
        for (front, back) in [(&new, &old), (&old, &new)] {
            let mut bytes = front.to_vec();
            bytes[at..].copy_from_slice(&back[at..]);
            prop_assert_eq!(StatusPage::decode(&bytes), Err(StatusFault::Torn));
        }
    }

    #[test]
    fn garbage_is_refused(
        bytes in prop::collection::vec(any::<u8>(), STATUS_BYTES - 2..STATUS_BYTES + 2),
        keeps_head in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if keeps_head {
            bytes[..12].copy_from_slice(&page(1, 1).1[..12]);
        }
        prop_assert!(StatusPage::decode(&bytes).is_err());
    }
}
