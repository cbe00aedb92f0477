//! Making a log and its segment files.
//!
//! Invariant: the control file becomes valid last, when every segment and its name are durable; so
//! a log is either there whole or not at all, and a half-made one is made anew. A segment has a
//! valid header only when all of it is written and synced, so that a write into it finds its room
//! allocated; a failure removes what was made.

use std::sync::Arc;

use iostrata_innodb::Lsn;
use iostrata_io::disk::{Aligned, Disk, DiskError, FileMode, FileName};

use crate::error::EngineError;
use crate::redo::control::Control;
use crate::redo::file::{OpenFile, sync_unless_none};
use crate::redo::layout::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, CONTROL_NAME, CONTROL_SLOT_BYTES, GRANULE_BYTES, Geometry,
    HEADER_BLOCK_BYTES, Plan, SEGMENT_PREFIX,
};
use crate::redo::segments::{Header, LSN_MAX, Segment, number_of};
use crate::redo::{Redo, RedoSettings, RedoSync};

const FIRST_INCARNATION: u64 = 1;

impl Redo {
    /// Makes a log that begins at `start`; a half-made one is completed.
    pub fn create(disk: Arc<dyn Disk>, s: &RedoSettings, start: Lsn) -> Result<(), EngineError> {
        let disk = &disk;
        check_block(s.write_ahead_bytes)?;
        if !(1..LSN_MAX).contains(&start.0) {
            let (name, range) = ("first LSN of the redo log", "1 to 2^62");
            return Err(EngineError::range(name, start.0, range));
        }
        let plan = Plan::fresh(s.capacity_bytes)?;
        if read_control(disk)?.is_some() {
            let what = "there is a redo log here already; open it, or remove its files";
            return Err(EngineError::damaged(what.to_owned()));
        }
        remove_leftovers(disk)?;
        let first = start.0 / GRANULE_BYTES * GRANULE_BYTES;
        let header = |index: u64| {
            let (first, sequence) = if index == 0 { (first, 1) } else { (0, 0) };
            Header { first, sequence, geometry: plan.geometry }
        };
        let headers: Vec<Header> = (0..plan.segments).map(header).collect();
        drop(make_segments(disk, plan.geometry, 0, &headers, s.sync)?);
        let control = Control {
            sequence: 1,
            checkpoint: start.0,
            incarnation: FIRST_INCARNATION,
            durable: start.0,
            geometry: plan.geometry,
            block_bytes: s.write_ahead_bytes,
            clean: true,
            opened: false,
            identity: 0,
        };
        make_control(disk, &control, s.sync)
            .map_err(|cause| not_made(2 * CONTROL_SLOT_BYTES as u64, cause))
    }

    pub fn bytes_to_make(s: &RedoSettings) -> Result<u64, EngineError> {
        let plan = Plan::fresh(s.capacity_bytes)?;
        Ok(plan.segments * plan.geometry.file_bytes() + 2 * CONTROL_SLOT_BYTES as u64)
    }
}

pub(crate) fn check_block(bytes: u32) -> Result<(), EngineError> {
    if bytes.is_power_of_two() && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let (name, range) = ("log_write_ahead_size", "a power of two from 512 to 16384");
    Err(EngineError::range(name, bytes.into(), range))
}

pub(crate) fn control_name() -> Result<FileName, EngineError> {
    FileName::new(CONTROL_NAME).map_err(EngineError::disk("name the control file of the redo log"))
}

/// The newest valid slot and its open file; none without one.
pub(crate) fn read_control(
    disk: &Arc<dyn Disk>,
) -> Result<Option<(OpenFile, Control)>, EngineError> {
    let failed = EngineError::disk("read the control file of the redo log");
    let file = match OpenFile::open(disk, control_name()?, FileMode::Existing) {
        Ok(file) => file,
        Err(DiskError::NotFound { .. }) => return Ok(None),
        Err(cause) => return Err(failed(cause)),
    };
    let mut slots = Aligned::zeroed(2 * CONTROL_SLOT_BYTES);
    if file.len().map_err(&failed)? < slots.len() as u64 {
        return Ok(None);
    }
    file.read(0, &mut slots).map_err(&failed)?;
    Ok(Control::decode(&slots)?.map(|control| (file, control)))
}

fn remove_leftovers(disk: &Arc<dyn Disk>) -> Result<(), EngineError> {
    let failed = EngineError::disk("clear a half-made the redo log");
    for name in disk.list().map_err(&failed)? {
        if number_of(&name).is_some() || name.as_str() == CONTROL_NAME {
            disk.remove(&name).map_err(&failed)?;
        }
    }
    Ok(())
}

fn make_control(disk: &Arc<dyn Disk>, control: &Control, sync: RedoSync) -> Result<(), DiskError> {
    let file = OpenFile::open(disk, FileName::new(CONTROL_NAME)?, FileMode::CreateNew)?;
    let mut slots = Aligned::zeroed(2 * CONTROL_SLOT_BYTES);
    control.encode(&mut slots[control.slot_at() as usize..]);
    file.write(0, &slots, RedoSync::Fsync)?;
    sync_unless_none(&file, sync)?;
    if sync == RedoSync::None { Ok(()) } else { disk.sync_dir() }
}

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
