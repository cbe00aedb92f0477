//! Damaged files end in an error or in a shorter log, never in a panic.

use std::sync::Arc;

use iostrata_io::disk::{Disk, FileName, MemDisk};
use proptest::prelude::*;

use crate::redo::common::{commit, fresh, long, smallest};
use crate::redo::fuzz::fuzz_scan;

/// The files of a log with some frames, as `fuzz_scan` takes them, after the byte of seals.
fn sound() -> Vec<u8> {
    let memory = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let redo = fresh(&disk, &smallest());
    for index in 0..30 {
        commit(&redo, &long(1, index)).unwrap();
    }
    let names = ["redo-control", "redo-000000", "redo-000001", "redo-000002"];
    let content = |name: &str| memory.content(&FileName::new(name).unwrap()).unwrap();
    [vec![0], names.iter().flat_map(|name| content(name)).collect()].concat()
}

#[test]
fn what_is_sound_is_read() {
    assert!(fuzz_scan(&sound()).unwrap() > 10_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_are_no_log(bytes in prop::collection::vec(any::<u8>(), 0..70_000)) {
        let _ = fuzz_scan(&bytes);
    }

    #[test]
    fn damage_anywhere_is_survived(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        fields in prop::collection::vec((0_usize..5, 8_usize..68, any::<u8>()), 0..6),
        seals in any::<u8>(),
    ) {
        let mut bytes = sound();
        for (index, value) in damage {
            let at = 1 + index.index(bytes.len() - 1);
            bytes[at] = value;
        }
        // The fields of a slot or a header, sealed again by `seals`.
        let starts = [0, 4096, 8192, 8192 + 20_480, 8192 + 40_960];
        for (file, at, value) in fields {
            bytes[1 + starts[file] + at] = value;
        }
        bytes[0] = seals;
        let _ = fuzz_scan(&bytes);
    }
}
