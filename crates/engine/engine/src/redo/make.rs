//! Making and removing segment files.
//!
//! Invariant: a segment has a valid header only when all of it is written and synced, so that a
//! write into it finds its room allocated; a failure removes what was made.

use std::sync::Arc;

use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, FileMode, FileName};

use crate::error::EngineError;
use crate::redo::RedoSync;
use crate::redo::file::OpenFile;
use crate::redo::geometry::Geometry;
use crate::redo::header::Header;
use crate::redo::layout::{HEADER_BLOCK_BYTES, SEGMENT_PREFIX};
use crate::redo::segments::Segment;

/// One read or write of a segment, in bytes.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

/// Makes segments with the numbers from `number` on; their names are durable too.
pub(crate) fn make_segments(
    disk: &Arc<dyn Disk>,
    geometry: Geometry,
    number: u64,
    headers: &[Header],
    sync: RedoSync,
) -> Result<Vec<Segment>, EngineError> {
    let mut made = Vec::with_capacity(headers.len());
    let result = make_into(&mut made, disk, geometry, (number, headers), sync);
    let Err(cause) = result else { return Ok(made) };
    for segment in made {
        // The first cause counts; what is left is removed at the next opening.
        let _ = disk.remove(&segment.file.name);
    }
    Err(not_made(headers.len() as u64 * geometry.file_bytes(), cause))
}

/// Why files of the log, of so many bytes, were not made. Nothing is left of them.
pub(crate) fn not_made(bytes: u64, cause: DiskError) -> EngineError {
    if !cause.is_full() {
        return EngineError::disk("make files of the redo log")(cause);
    }
    EngineError::full(format!(
        "no space for {bytes} bytes of redo ({cause}); free space or ask for less"
    ))
}

fn segment_name(number: u64) -> Result<FileName, DiskError> {
    FileName::new(format!("{SEGMENT_PREFIX}{number:06}"))
}

fn make_into(
    made: &mut Vec<Segment>,
    disk: &Arc<dyn Disk>,
    geometry: Geometry,
    (number, headers): (u64, &[Header]),
    sync: RedoSync,
) -> Result<(), DiskError> {
    for (number, header) in (number..).zip(headers) {
        let name = segment_name(number)?;
        let file = OpenFile::open(disk, name, FileMode::CreateNew)?;
        let file = Arc::new(file);
        made.push(Segment { file: Arc::clone(&file), header: *header });
        allocate(&file, geometry, sync)?;
        write_header(&file, header, RedoSync::Fsync)?;
        sync_unless_none(&file, sync)?;
    }
    if sync == RedoSync::None { Ok(()) } else { disk.sync_dir() }
}

fn allocate(file: &OpenFile, geometry: Geometry, sync: RedoSync) -> Result<(), DiskError> {
    let bytes = geometry.file_bytes();
    let mut zeros = Aligned::zeroed(bytes.min(CHUNK_BYTES) as usize);
    let mut at = 0;
    while at < bytes {
        let some = (bytes - at).min(CHUNK_BYTES);
        zeros.set_len(some as usize);
        file.write(at, &zeros, RedoSync::Fsync)?;
        at += some;
    }
    sync_unless_none(file, sync)
}

pub(crate) fn sync_unless_none(file: &OpenFile, sync: RedoSync) -> Result<(), DiskError> {
    if sync == RedoSync::None { Ok(()) } else { file.sync(SyncKind::Fsync) }
}

/// Writes a header, with zeros up to the end of its block.
pub(crate) fn write_header(
    file: &OpenFile,
    header: &Header,
    sync: RedoSync,
) -> Result<(), DiskError> {
    let mut block = Aligned::zeroed(HEADER_BLOCK_BYTES);
    header.encode(&mut block);
    file.write(0, &block, sync)
}

/// Removes segments that nothing needs; gives back those that could not be removed.
pub(crate) fn remove(disk: &Arc<dyn Disk>, surplus: Vec<Segment>) -> Vec<Segment> {
    let mut left = Vec::new();
    for segment in surplus {
        match disk.remove(&segment.file.name) {
            Ok(()) | Err(DiskError::NotFound { .. }) => {}
            Err(_) => left.push(segment),
        }
    }
    left
}
