//! The control file: where recovery begins.
//!
//! Invariant: two slots are written by turns, each sealed, so that a crash leaves at least the
//! older one; a valid slot holds only what was durable before it was written.

use crc32c::crc32c;
use iostrata_io::disk::{Aligned, DiskError};

use crate::error::EngineError;
use crate::redo::layout::{
    CONTROL_MAGIC, CONTROL_NAME, CONTROL_SLOT_BYTES, FORMAT_VERSION, Geometry, control, get_u32,
    get_u64, put_u32, put_u64,
};
use crate::redo::segments::{LSN_MAX, check_version};
use crate::redo::{OpenFile, RedoSync, sync_unless_none};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) sequence: u64,
    pub(crate) checkpoint: u64,
    /// Seals the frame that begins at the checkpoint.
    pub(crate) incarnation: u64,
    /// The log was durable at least up to here.
    pub(crate) durable: u64,
    pub(crate) geometry: Geometry,
    pub(crate) block_bytes: u32,
    pub(crate) clean: bool,
    /// It was opened since it was closed: segments may have been made.
    pub(crate) opened: bool,
    /// The engine whose log it is; 0 when that is not known.
    pub(crate) identity: u64,
}

fn get_identity(slot: &[u8]) -> u64 {
    let is_sealed = get_u32(slot, control::IDENTITY_CRC)
        == crc32c(&slot[control::IDENTITY..control::IDENTITY_CRC]);
    if is_sealed { get_u64(slot, control::IDENTITY) } else { 0 }
}

impl Control {
    pub(crate) fn slot_at(&self) -> u64 {
        self.sequence % 2 * CONTROL_SLOT_BYTES as u64
    }

    pub(crate) fn encode(&self, into: &mut [u8]) {
        into[control::MAGIC..control::MAGIC + 8].copy_from_slice(&CONTROL_MAGIC);
        put_u32(into, control::VERSION, FORMAT_VERSION);
        let clean = if self.clean { control::CLEAN } else { 0 };
        let opened = if self.opened { control::OPENED } else { 0 };
        put_u32(into, control::FLAGS, clean | opened);
        put_u64(into, control::SEQUENCE, self.sequence);
        put_u64(into, control::CHECKPOINT_LSN, self.checkpoint);
        put_u64(into, control::INCARNATION, self.incarnation);
        put_u64(into, control::DURABLE_LSN, self.durable);
        put_u64(into, control::PAYLOAD_BYTES, self.geometry.payload_bytes);
        put_u32(into, control::PAYLOAD_AT, self.geometry.payload_at);
        put_u32(into, control::BLOCK_BYTES, self.block_bytes);
        let crc = crc32c(&into[..control::CRC]);
        put_u32(into, control::CRC, crc);
        put_u64(into, control::IDENTITY, self.identity);
        let crc = crc32c(&into[control::IDENTITY..control::IDENTITY_CRC]);
        put_u32(into, control::IDENTITY_CRC, crc);
    }

    fn decode_slot(from: &[u8]) -> Result<Option<Self>, EngineError> {
        let magic = &from[control::MAGIC..control::MAGIC + 8];
        if magic != CONTROL_MAGIC || get_u32(from, control::CRC) != crc32c(&from[..control::CRC]) {
            return Ok(None);
        }
        check_version(get_u32(from, control::VERSION), CONTROL_NAME)?;
        let slot = Self {
            sequence: get_u64(from, control::SEQUENCE),
            checkpoint: get_u64(from, control::CHECKPOINT_LSN),
            incarnation: get_u64(from, control::INCARNATION),
            durable: get_u64(from, control::DURABLE_LSN),
            geometry: Geometry {
                payload_bytes: get_u64(from, control::PAYLOAD_BYTES),
                payload_at: get_u32(from, control::PAYLOAD_AT),
            },
            block_bytes: get_u32(from, control::BLOCK_BYTES),
            clean: get_u32(from, control::FLAGS) & control::CLEAN != 0,
            opened: get_u32(from, control::FLAGS) & control::OPENED != 0,
            identity: get_identity(from),
        };
        let possible = slot.geometry.is_possible()
            && slot.sequence < u64::MAX
            && (1..LSN_MAX).contains(&slot.checkpoint);
        Ok(possible.then_some(slot))
    }

    /// The newer valid slot of the file's first two; none when there is none.
    pub(crate) fn decode(file: &[u8]) -> Result<Option<Self>, EngineError> {
        let (first, second) = file.split_at(CONTROL_SLOT_BYTES);
        let (first, second) = (Self::decode_slot(first)?, Self::decode_slot(second)?);
        Ok(first.into_iter().chain(second).max_by_key(|slot| slot.sequence))
    }
}

/// The control file and the content of its newest slot.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) file: OpenFile,
    pub(crate) newest: Control,
    pub(crate) block: Aligned,
    /// From which LSN on which number seals the frames, the oldest first.
    pub(crate) incarnations: Vec<(u64, u64)>,
}

impl Ledger {
    /// Forgets the numbers of frames before `lsn`; returns the number of the frame at it.
    pub(crate) fn incarnation_at(&mut self, lsn: u64) -> u64 {
        let older = self.incarnations.iter().take_while(|(from, _)| *from <= lsn).count();
        self.incarnations.drain(..older.saturating_sub(1));
        self.incarnations.first().map_or(self.newest.incarnation, |(_, number)| *number)
    }

    pub(crate) fn write(&mut self, mut next: Control, sync: RedoSync) -> Result<(), DiskError> {
        next.sequence = self.newest.sequence + 1;
        next.encode(&mut self.block);
        self.file.write(next.slot_at(), &self.block, sync)?;
        if sync != RedoSync::WriteThrough {
            sync_unless_none(&self.file, sync)?;
        }
        self.newest = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(sequence: u64) -> Control {
        let geometry = Geometry { payload_bytes: 16_384, payload_at: 4096 };
        let (checkpoint, incarnation, durable) = (77, 3, 99);
        let (block_bytes, clean, opened) = (512, true, sequence % 2 == 1);
        let identity = 99 * (sequence % 3);
        Control {
            sequence,
            checkpoint,
            incarnation,
            durable,
            geometry,
            block_bytes,
            clean,
            opened,
            identity,
        }
    }

    fn file(slots: &[Control]) -> Vec<u8> {
        let mut file = vec![0; 2 * CONTROL_SLOT_BYTES];
        for slot in slots {
            slot.encode(&mut file[slot.slot_at() as usize..]);
        }
        file
    }

    #[test]
    fn the_newer_valid_slot_counts() {
        assert_eq!(Control::decode(&file(&[])).unwrap(), None);
        assert_eq!(Control::decode(&file(&[slot(1)])).unwrap(), Some(slot(1)));
        let mut both = file(&[slot(7), slot(8)]);
        assert_eq!(Control::decode(&both).unwrap(), Some(slot(8)));
        both[control::DURABLE_LSN] ^= 1;
        assert_eq!(Control::decode(&both).unwrap(), Some(slot(7)), "the newer one is torn");
    }
}
