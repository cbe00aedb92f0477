//! What the tests share: small logs and frames that hold their number.

use std::sync::Arc;

use iostrata_engine::EngineError;
use iostrata_engine::redo::{Redo, RedoSettings, RedoSync, Scan};
use iostrata_innodb::Lsn;
use iostrata_io::disk::Disk;

use crate::common::is_damage;

/// The first LSN of the test logs: no border of anything, and 60 short frames before an LSN (26112)
/// at which a short frame and a block of 512 bytes end together.
pub const START: Lsn = Lsn(25_092);

/// The smallest log there is, in the smallest blocks.
pub fn smallest() -> RedoSettings {
    RedoSettings {
        capacity_bytes: 65_536,
        log_buffer_bytes: 65_536,
        write_ahead_bytes: 512,
        sync: RedoSync::Fdatasync,
    }
}

/// A body of 8 bytes, so that its frame has the length of an incarnation frame: a frame that a
/// crash left lies just where one of the next life would.
pub fn short(life: u32, index: u32) -> Vec<u8> {
    [life.to_le_bytes(), index.to_le_bytes()].concat()
}

/// A body of 8 to 3000 bytes.
pub fn long(life: u32, index: u32) -> Vec<u8> {
    let more = ((u64::from(index) * 2_654_435_761) >> 7) % 3000;
    let mut body = short(life, index);
    body.resize(8 + more as usize, index as u8);
    body
}

pub fn create(disk: &Arc<dyn Disk>, settings: &RedoSettings) -> Result<(), EngineError> {
    Redo::create(Arc::clone(disk), settings, START)
}

/// A started log and what was in it.
pub fn reopen(
    disk: &Arc<dyn Disk>,
    settings: &RedoSettings,
) -> Result<(Redo, Vec<Vec<u8>>), EngineError> {
    let (redo, mut scan) = Redo::open(Arc::clone(disk), settings.clone(), Default::default())?;
    let bodies = drain(&mut scan)?;
    redo.start(scan)?;
    Ok((redo, bodies))
}

/// A new, started log.
pub fn fresh(disk: &Arc<dyn Disk>, settings: &RedoSettings) -> Redo {
    create(disk, settings).unwrap();
    let (redo, bodies) = reopen(disk, settings).unwrap();
    assert!(bodies.is_empty());
    redo
}

pub fn drain(scan: &mut Scan) -> Result<Vec<Vec<u8>>, EngineError> {
    let mut bodies = Vec::new();
    let mut at = scan.checkpoint();
    while let Some(frame) = scan.next()? {
        assert!(frame.start >= at && frame.end > frame.start, "{frame:?} after {at}");
        at = frame.end;
        bodies.push(frame.body.to_vec());
    }
    Ok(bodies)
}

/// Appends bodies, durably and without a checkpoint, until the log is so old.
pub fn fill(redo: &Redo, life: u32, age: u64) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    while redo.lsn().0 - redo.checkpoint_lsn().0 < age {
        bodies.push(long(life, bodies.len() as u32));
        let end = redo.append(bodies.last().unwrap()).end;
        redo.make_durable(end).unwrap();
    }
    bodies
}

/// Appends a body and makes it durable, with a checkpoint before when the log is half full.
pub fn commit(redo: &Redo, body: &[u8]) -> Result<Lsn, EngineError> {
    let age = redo.lsn().0 - redo.checkpoint_lsn().0;
    if age > redo.limits().async_age {
        redo.take_checkpoint(Lsn(redo.durable().0), false)?;
    }
    let end = redo.append(body).end;
    redo.make_durable(end)?;
    Ok(end)
}

/// Whether there is a log that was made completely.
pub fn exists(disk: &Arc<dyn Disk>) -> bool {
    let opened = Redo::open(Arc::clone(disk), smallest(), Default::default());
    opened.map_or_else(|error| !is_damage(&error, &["cannot be found"]), |_| true)
}
