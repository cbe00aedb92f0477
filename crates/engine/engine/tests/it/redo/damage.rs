//! Segments that the medium damaged, and those that a crash left half-made.

use std::sync::Arc;

use iostrata_engine::EngineError;
use iostrata_io::disk::{Aligned, Disk, Durability, FileMode, FileName, MemDisk};

use crate::common::is_damage;
use crate::redo::common::{fill, fresh, reopen, smallest};

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn overwrite(disk: &MemDisk, file: &str, at: u64, bytes: &[u8]) {
    let file = disk.open(&name(file), FileMode::Existing).unwrap();
    disk.write(file, at, &Aligned::from_slice(bytes), Durability::Volatile).unwrap();
    disk.close(file);
}

/// A log without a checkpoint that lies in two of its three segments, and its bodies.
fn in_two_segments() -> (MemDisk, Vec<Vec<u8>>) {
    let memory = MemDisk::new();
    let redo = fresh(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &smallest());
    let bodies = fill(&redo, 1, 12_000);
    (memory, bodies)
}

fn found(memory: &MemDisk) -> Result<Vec<Vec<u8>>, EngineError> {
    reopen(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &smallest()).map(|(_redo, bodies)| bodies)
}

#[test]
fn a_damaged_segment_that_the_log_needs_is_named() {
    let (memory, bodies) = in_two_segments();
    assert!(found(&memory.copy()).unwrap() == bodies);
    for (file, at, lsn) in [("redo-000000", 20, 25_092), ("redo-000002", 40, 32_768)] {
        let memory = memory.copy();
        overwrite(&memory, file, at, &[0xa5]);
        let before = memory.content(&name(file)).unwrap();
        for _again in 0..2 {
            let error = found(&memory).unwrap_err();
            assert!(is_damage(&error, &[file, "damaged segment", &lsn.to_string()]), "{error}");
        }
        assert_eq!(memory.content(&name(file)), Some(before), "nothing is removed");
    }
}

#[test]
fn a_segment_that_was_cut_is_named() {
    let (memory, _) = in_two_segments();
    let file = memory.open(&name("redo-000002"), FileMode::Existing).unwrap();
    memory.set_len(file, 20_000).unwrap();
    let error = found(&memory).unwrap_err();
    assert!(is_damage(&error, &["redo-000002 is a damaged", "LSN 32768"]), "{error}");
}

#[test]
fn a_damaged_segment_that_the_log_does_not_need_is_made_anew() {
    let (memory, bodies) = in_two_segments();
    overwrite(&memory, "redo-000001", 20, &[0xa5]);
    assert!(found(&memory).unwrap() == bodies);
    assert!(memory.content(&name("redo-000001")).is_none());
    assert_eq!(memory.list().unwrap().len(), 4, "three segments and the control file");
}

#[test]
fn a_half_made_segment_is_no_damage() {
    for bytes in [0, 700, 4096, 10_000, 20_480] {
        let (memory, bodies) = in_two_segments();
        memory.remove(&name("redo-000001")).unwrap();
        memory.open(&name("redo-000007"), FileMode::CreateNew).unwrap();
        if bytes > 0 {
            overwrite(&memory, "redo-000007", 0, &vec![0; bytes]);
        }
        assert!(found(&memory).unwrap() == bodies, "{bytes} bytes of zeros");
        assert!(memory.content(&name("redo-000007")).is_none());
        assert_eq!(memory.list().unwrap().len(), 4, "three segments and the control file");
    }
}
