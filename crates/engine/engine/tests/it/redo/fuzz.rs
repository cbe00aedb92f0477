//! Arbitrary bytes as the files of a log: for a fuzzer, whose target includes this file, and for
//! random bytes.
//!
//! Invariant: whatever the bytes, opening, scanning and going on end in success or a typed error.

use std::sync::Arc;

use crc32c::crc32c;
use iostrata_engine::EngineError;
use iostrata_engine::disk::{Aligned, Disk, Durability, FileMode, FileName, MemDisk};
use iostrata_engine::redo::layout::{
    CONTROL_NAME, CONTROL_SLOT_BYTES, SEGMENT_PREFIX, control, header,
};
use iostrata_engine::redo::{Redo, RedoSettings, RedoSync};

/// A segment file of the smallest size.
const SEGMENT_BYTES: usize = 20_480;
const SEGMENTS: usize = 3;

/// Takes bytes as a control file and three segments, opens and scans the log, goes on with it and
/// appends. The first byte selects the files that get valid seals.
pub fn fuzz_scan(bytes: &[u8]) -> Result<usize, EngineError> {
    let (seals, rest) = bytes.split_first().map_or((0, bytes), |(seals, rest)| (*seals, rest));
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rest = rest;
    let mut next = |bytes: usize| {
        let mut file = Aligned::zeroed(bytes);
        let some = rest.len().min(bytes);
        file[..some].copy_from_slice(&rest[..some]);
        rest = &rest[some..];
        file
    };
    let mut slots = next(2 * CONTROL_SLOT_BYTES);
    for slot in 0..2 {
        if seals & (1 << slot) != 0 {
            reseal(&mut slots[slot * CONTROL_SLOT_BYTES..], control::CRC);
        }
    }
    put(&disk, CONTROL_NAME, &slots)?;
    for number in 0..SEGMENTS {
        let mut file = next(SEGMENT_BYTES);
        if seals & (4 << number) != 0 {
            reseal(&mut file, header::CRC);
        }
        put(&disk, &format!("{SEGMENT_PREFIX}{number:06}"), &file)?;
    }
    go_on(disk)
}

fn reseal(file: &mut [u8], crc_at: usize) {
    let crc = crc32c(&file[..crc_at]);
    file[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
}

fn put(disk: &Arc<dyn Disk>, name: &str, content: &Aligned) -> Result<(), EngineError> {
    let file = disk.open(&FileName::new(name)?, FileMode::Create)?;
    let written = disk.write(file, 0, content, Durability::Volatile);
    disk.close(file);
    Ok(written?)
}

fn go_on(disk: Arc<dyn Disk>) -> Result<usize, EngineError> {
    let settings = RedoSettings {
        capacity_bytes: 65_536,
        log_buffer_bytes: 65_536,
        write_ahead_bytes: 512,
        sync: RedoSync::Fdatasync,
    };
    let (redo, mut scan) = Redo::open(disk, settings, Default::default())?;
    let mut bytes = 0;
    while let Some(frame) = scan.next()? {
        bytes += frame.body.len();
    }
    redo.start(scan)?;
    let age = redo.lsn().0.saturating_sub(redo.checkpoint_lsn().0);
    if age < redo.limits().max_age {
        redo.append(b"more");
        redo.make_durable(redo.lsn())?;
        redo.take_checkpoint(redo.lsn(), true)?;
    }
    Ok(bytes)
}
