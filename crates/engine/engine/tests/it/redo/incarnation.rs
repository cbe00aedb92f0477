//! A frame that a crash left behind the end never comes back.

use std::sync::Arc;

use iostrata_engine::redo::Redo;
use iostrata_innodb::Lsn;
use iostrata_io::disk::{Aligned, Disk, Durability, FileMode, FileName, MemDisk};

use crate::redo::common::{reopen, short, smallest};

/// Bytes of a frame with a short body, and of an incarnation frame.
const FRAME: u64 = 17;

/// Frames and blocks of 512 bytes end together at multiples of this LSN.
const BOTH: u64 = FRAME * 512;

#[test]
fn a_frame_left_on_a_border_of_blocks_stays_dead() {
    let memory = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let start = Lsn(2 * BOTH - 10 * FRAME);
    Redo::create(Arc::clone(&disk), &smallest(), start).unwrap();
    let (redo, _) = reopen(&disk, &smallest()).unwrap();
    let first: Vec<_> = (0..40).map(|index| short(1, index)).collect();
    for body in &first {
        redo.append(body);
    }
    redo.make_durable(redo.lsn()).unwrap();
    drop(redo);
    // As if the crash had lost the sector in which the third frame begins, and only that.
    let name = FileName::new("redo-000000").unwrap();
    let file = disk.open(&name, FileMode::Existing).unwrap();
    let mut bytes = memory.content(&name).unwrap();
    let lost = (start.0 + 3 * FRAME - 16_384 + 4096) as usize;
    bytes[lost..lost + 8].fill(0xa5);
    disk.write(file, 0, &Aligned::from_slice(&bytes), Durability::Volatile).unwrap();

    let (redo, found) = reopen(&disk, &smallest()).unwrap();
    assert_eq!(found, first[..2], "one frame is the first life's incarnation");
    let mut second = found;
    while redo.lsn().0 < 2 * BOTH {
        second.push(short(2, second.len() as u32));
        redo.append(second.last().unwrap());
    }
    assert_eq!(redo.lsn().0, 2 * BOTH, "just before a frame of the first life");
    redo.make_durable(redo.lsn()).unwrap();
    drop(redo);
    assert_eq!(reopen(&disk, &smallest()).unwrap().1, second);
}
