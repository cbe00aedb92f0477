//! Making a log and its segment files, opening one, and going on where it ends.
//!
//! Invariants of making: the control file becomes valid last, when every segment and its name are
//! durable; so a log is either there whole or not at all, and a half-made one is started over. A
//! segment has a valid header only when all of it is written and synced, so that a write into it
//! finds its room allocated; a failure removes what was made.
//! Invariants of opening: it only reads. Going on first makes what was found durable, and seals off
//! what a crash may have left behind the end by a new incarnation, before anything else is
//! appended. What the last process left may be in the page cache alone, and where one of its syncs
//! failed the system takes that for written and no later sync writes it. So nothing that was found
//! is built upon, freed or used again before it has been written once more and synced: names, the
//! log from where it was last known to be durable, the control slot. Memory is bounded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_innodb::{Counter, Lsn};
use iostrata_io::disk::{Aligned, Disk, DiskError, FileMode, FileName};

use crate::counts::Common;
use crate::error::EngineError;
use crate::redo::control::{Control, Ledger};
use crate::redo::frame::{Fill, body_crc};
use crate::redo::group_commit::{GroupCommit, Requests};
use crate::redo::layout::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, CONTROL_NAME, CONTROL_SLOT_BYTES, GRANULE_BYTES, Geometry,
    HEADER_BLOCK_BYTES, Plan, SEGMENT_PREFIX, frame,
};
use crate::redo::segments::{
    Header, LSN_MAX, Segment, Segments, damaged_segment, no_segment, not_found, number_of,
};
use crate::redo::{OpenFile, Redo, RedoSettings, RedoSync, Scan, Writer, sync_unless_none};
use crate::sync::locked;

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

fn check_block(bytes: u32) -> Result<(), EngineError> {
    if bytes.is_power_of_two() && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let (name, range) = ("log_write_ahead_size", "a power of two from 512 to 16384");
    Err(EngineError::range(name, bytes.into(), range))
}

fn control_name() -> Result<FileName, EngineError> {
    FileName::new(CONTROL_NAME).map_err(EngineError::disk("name the control file of the redo log"))
}

/// The newest valid slot and its open file; none without one.
fn read_control(disk: &Arc<dyn Disk>) -> Result<Option<(OpenFile, Control)>, EngineError> {
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

const CHUNK_BYTES: u64 = 1 << 20;

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
fn not_made(bytes: u64, cause: DiskError) -> EngineError {
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

const BUFFER_BYTES_MIN: u64 = 65_536;
const BUFFER_BYTES_MAX: u64 = 1 << 32;

fn ledger(file: OpenFile, control: Control) -> Ledger {
    let block = Aligned::zeroed(CONTROL_SLOT_BYTES);
    Ledger { file, newest: control, block, incarnations: vec![(0, control.incarnation)] }
}

/// Every segment that is whole, and the first that is damaged: a segment whose making a crash cut
/// off has nothing but zeros, since its header is written when those are durable.
fn find_segments(disk: &Arc<dyn Disk>) -> Result<(Vec<Segment>, Option<String>), EngineError> {
    let failed = EngineError::disk("read a segment of the redo log");
    let mut block = Aligned::zeroed(HEADER_BLOCK_BYTES);
    let (mut found, mut damaged) = (Vec::new(), None);
    for name in disk.list().map_err(&failed)? {
        if number_of(&name).is_none() {
            continue;
        }
        let file = OpenFile::open(disk, name, FileMode::Existing).map_err(&failed)?;
        let bytes = file.len().map_err(&failed)?;
        let mut header = None;
        if bytes >= HEADER_BLOCK_BYTES as u64 {
            file.read(0, &mut block).map_err(&failed)?;
            header = Header::decode(&block, file.name.as_str())?;
        }
        match header.filter(|header| bytes >= header.geometry.file_bytes()) {
            Some(header) => found.push(Segment { file: Arc::new(file), header }),
            None if damaged.is_none() && !is_zeros(&file, bytes).map_err(&failed)? => {
                damaged = Some(file.name.to_string());
            }
            None => {}
        }
    }
    Ok((found, damaged))
}

/// Whether the whole blocks of a file are zeros.
fn is_zeros(file: &OpenFile, bytes: u64) -> Result<bool, DiskError> {
    let mut chunk = Aligned::zeroed(CHUNK_BYTES as usize);
    let (block, mut at) = (u64::from(file.block_bytes()), 0);
    let end = bytes / block * block;
    while at < end {
        let some = (end - at).min(CHUNK_BYTES);
        chunk.set_len(some as usize);
        file.read(at, &mut chunk)?;
        if chunk.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += some;
    }
    Ok(true)
}

fn next_number(disk: &Arc<dyn Disk>) -> Result<u64, EngineError> {
    let names = disk.list().map_err(EngineError::disk("list the files of the redo log"))?;
    Ok(names.iter().filter_map(number_of).max().map_or(0, |number| number + 1))
}

fn block_bytes(
    s: &RedoSettings,
    control: &OpenFile,
    found: &[Segment],
) -> Result<u64, EngineError> {
    let files = found.iter().map(|segment| segment.file.block_bytes());
    let needed = files.fold(control.block_bytes(), u32::max);
    if needed > BLOCK_BYTES_MAX {
        let (name, range) = ("block of the redo device in bytes", "a device of at most 16384");
        return Err(EngineError::range(name, needed.into(), range));
    }
    Ok(u64::from(s.write_ahead_bytes.max(needed)))
}

impl Redo {
    /// Opens the log for reading; `start` makes it ready for appends.
    pub fn open(
        disk: Arc<dyn Disk>,
        s: RedoSettings,
        common: Common,
    ) -> Result<(Self, Scan), EngineError> {
        let (disk, s) = (&disk, &s);
        check_block(s.write_ahead_bytes)?;
        let (file, control) = read_control(disk)?.ok_or_else(not_found)?;
        let plan = Plan::keeping(s.capacity_bytes, control.geometry)?;
        let (found, damaged) = find_segments(disk)?;
        let block_bytes = block_bytes(s, &file, &found)?;
        let mut segments = Segments::new(plan, control.checkpoint, found);
        if segments.chain.is_empty() {
            let lsn = control.checkpoint;
            return Err(damaged.map_or_else(|| no_segment(lsn), |file| damaged_segment(&file, lsn)));
        }
        segments.next_number = segments.next_number.max(next_number(disk)?);
        let scan = Scan::new(control, segments.chain.clone(), damaged)?;
        let buffer_bytes = s.log_buffer_bytes.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let buffer_bytes = buffer_bytes.next_multiple_of(GRANULE_BYTES) as usize;
        let writer = Writer {
            other: Aligned::zeroed(buffer_bytes),
            block_bytes,
            sync: s.sync,
            unsynced: Vec::new(),
        };
        let at = || AtomicU64::new(control.checkpoint);
        let redo = Self {
            disk: Arc::clone(disk),
            changing: Mutex::new(()),
            ledger: Mutex::new(ledger(file, control)),
            writer: Mutex::new(writer),
            room_end: AtomicU64::new(segments.room_end()),
            segments: Mutex::new(segments),
            fill: Mutex::new(Fill::new(Aligned::zeroed(buffer_bytes))),
            group: GroupCommit::default(),
            requests: Requests::default(),
            lsn: at(),
            buffered_from: at(),
            written: at(),
            durable: at(),
            checkpoint: at(),
            room_bytes: AtomicU64::new(plan.room_bytes()),
            buffer_bytes,
            counts: common.counts,
            poison: common.poison,
        };
        Ok((redo, scan))
    }

    /// Ends recovery: seals off whatever lies behind the end of the log, durably, and gives the
    /// LSN from which appends go on. What the scan has not read yet is read and passed over.
    pub fn start(&self, mut scan: Scan) -> Result<Lsn, EngineError> {
        self.poison.check()?;
        while scan.next()?.is_some() {}
        let end = scan.log_end();
        let plan = {
            let mut segments = locked(&self.segments);
            segments.retire_beyond(end);
            segments.plan
        };
        self.settle_found(end)?;
        let tail = self.read_tail(end)?;
        self.remove_half_made()?;
        self.adopt(plan)?;
        let incarnations = self.seal_off(&tail, end, scan.into_incarnations())?;
        let mut ledger = locked(&self.ledger);
        ledger.incarnations = incarnations;
        self.free_before(ledger.newest.checkpoint);
        Ok(self.lsn())
    }

    fn read_tail(&self, end: u64) -> Result<Vec<u8>, EngineError> {
        let block_bytes = locked(&self.writer).block_bytes;
        let start = end / block_bytes * block_bytes;
        if start == end {
            return Ok(Vec::new());
        }
        let place = locked(&self.segments).place(start);
        let place = place.ok_or_else(|| no_segment(start))?;
        let mut block = Aligned::zeroed(block_bytes as usize);
        place
            .file
            .read(place.at, &mut block)
            .map_err(EngineError::disk("read the end of the redo log"))?;
        Ok(block[..(end - start) as usize].to_vec())
    }

    fn remove_half_made(&self) -> Result<(), EngineError> {
        let failed = EngineError::disk("clear half-made segments of the redo log");
        let known: Vec<_> = {
            let segments = locked(&self.segments);
            let all = segments.chain.iter().chain(&segments.spare).chain(&segments.surplus);
            all.map(|segment| segment.file.name.clone()).collect()
        };
        for name in self.disk.list().map_err(&failed)? {
            if number_of(&name).is_some() && !known.contains(&name) {
                self.disk.remove(&name).map_err(&failed)?;
            }
        }
        Ok(())
    }

    /// Appends the incarnation frame and makes it durable. Gives which number seals which frames.
    fn seal_off(
        &self,
        tail: &[u8],
        end: u64,
        mut incarnations: Vec<(u64, u64)>,
    ) -> Result<Vec<(u64, u64)>, EngineError> {
        let room_end = self.room_end.load(Ordering::Acquire);
        if room_end < end + frame::INCARNATION_BYTES as u64 {
            // Only damage can bring that about.
            let what = format!("the redo log is full at {end}; raise its capacity");
            return Err(EngineError::damaged(what));
        }
        let old = incarnations.last().map_or(0, |(_, number)| *number);
        let new = old.wrapping_add(1);
        let sealed_end = {
            let mut fill = locked(&self.fill);
            fill.resume(tail, end);
            self.buffered_from.store(fill.base, Ordering::Relaxed);
            fill.incarnation = old;
            let body = new.to_le_bytes();
            fill.push(body_crc(frame::INCARNATION, &body), frame::INCARNATION, &body);
            fill.incarnation = new;
            self.lsn.store(fill.end, Ordering::Release);
            fill.end
        };
        self.make_durable(Lsn(sealed_end))?;
        locked(&self.fill).is_started = true;
        incarnations.push((sealed_end, new));
        Ok(incarnations)
    }
}

impl Redo {
    /// Makes the names, the log up to its end, the spare segments and the newest control slot
    /// durable, in this order.
    fn settle_found(&self, end: u64) -> Result<(), EngineError> {
        let newest = locked(&self.ledger).newest;
        let from = newest.checkpoint.max(newest.durable);
        {
            let mut writer = locked(&self.writer);
            if writer.sync != RedoSync::None {
                let synced = self.disk.sync_dir();
                synced.map_err(|cause| self.fail("sync the directory of the redo log", cause))?;
            }
            let mut rewritten = self.rewrite(&mut writer, from, end);
            // A log that was closed clean and not opened since has durable segments alone.
            if !newest.clean || newest.opened {
                rewritten = rewritten.and_then(|()| self.rewrite_spares(&writer));
            }
            rewritten.map_err(|cause| self.fail("make the redo log durable again", cause))?;
        }
        self.written.store(end, Ordering::Release);
        self.lsn.store(end, Ordering::Release);
        self.durable.store(end, Ordering::Release);
        self.confirm_ledger()
    }

    /// Writes the log from `from` to `end` where it lies already, with the headers of its segments,
    /// and syncs it.
    fn rewrite(&self, writer: &mut Writer, from: u64, end: u64) -> Result<(), DiskError> {
        let from = from / writer.block_bytes * writer.block_bytes;
        let chain: Vec<_> = locked(&self.segments).chain.iter().cloned().collect();
        for segment in chain.iter().filter(|segment| segment.header.end() > from) {
            write_header(&segment.file, &segment.header, RedoSync::Fsync)?;
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, HEADER_BLOCK_BYTES as u64);
            let result = self.rewrite_segment(writer, segment, from, end);
            let whole = writer.other.allocated();
            writer.other.set_len(whole);
            result?;
            sync_unless_none(&segment.file, writer.sync)?;
            self.counts.add(Counter::OsLogFsyncs, 1);
        }
        Ok(())
    }

    /// Writes the headers of the spare segments again. One that is only in the page cache would
    /// be lost with the power while what is written behind it next is kept: then the segment would
    /// look damaged.
    fn rewrite_spares(&self, writer: &Writer) -> Result<(), DiskError> {
        let spare: Vec<_> = locked(&self.segments).spare.iter().cloned().collect();
        for segment in spare {
            write_header(&segment.file, &segment.header, RedoSync::Fsync)?;
            sync_unless_none(&segment.file, writer.sync)?;
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, HEADER_BLOCK_BYTES as u64);
            self.counts.add(Counter::OsLogFsyncs, 1);
        }
        Ok(())
    }

    /// The block of the end is filled with zeros, as when it was written.
    fn rewrite_segment(
        &self,
        writer: &mut Writer,
        segment: &Segment,
        from: u64,
        end: u64,
    ) -> Result<(), DiskError> {
        let padded_end = end.next_multiple_of(writer.block_bytes).min(segment.header.end());
        let mut lsn = from.max(segment.header.first);
        while lsn < padded_end {
            let most = CHUNK_BYTES.min(writer.other.allocated() as u64);
            let some = (padded_end - lsn).min(most);
            let place = segment.place(lsn);
            writer.other.set_len(some as usize);
            place.file.read(place.at, &mut writer.other)?;
            let used = end.saturating_sub(lsn).min(some);
            writer.other[used as usize..].fill(0);
            place.file.write(place.at, &writer.other, RedoSync::Fsync)?;
            self.counts.add(Counter::LogWrites, 1);
            self.counts.add(Counter::OsLogWritten, some);
            lsn += some;
        }
        Ok(())
    }
}
