//! What a reader sees of a row: decided here and nowhere else.
//!
//! Invariant: every read of a table, of one key or of a range, asks here. A snapshot sees what
//! commits up to its number wrote. Who took a lower number still holds its leaves latched, so a
//! reader that finds a row finds everything up to its snapshot in the leaf or behind it.

use crate::error::{EngineError, Failure};
use crate::page::Cell;
use crate::page::layout::VERSION_BYTES;
use crate::storage::Storage;

/// Sees the newest version of every row.
pub(crate) const NEWEST: u64 = u64::MAX;

/// What a snapshot sees of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible<'p> {
    Row(&'p [u8]),
    Nothing,
    /// An older version, which lies here.
    Older(u64),
}

/// What a snapshot sees of a cell. One without a version is older than every snapshot.
#[inline]
pub(crate) fn visible<'p>(cell: &Cell<'p>, snapshot: u64) -> Visible<'p> {
    match cell.version() {
        Some(version) if version.number > snapshot => match version.older {
            0 => Visible::Nothing,
            pointer => Visible::Older(pointer),
        },
        _ if cell.is_tombstone() => Visible::Nothing,
        _ => Visible::Row(cell.payload()),
    }
}

/// Copies the value of the newest version that a snapshot sees, from a pointer on. False when the
/// row was not there. No latch is held: it may need the disk.
#[cold]
pub(crate) fn older_version(
    storage: &Storage,
    mut pointer: u64,
    snapshot: u64,
    value: &mut Vec<u8>,
) -> Result<bool, EngineError> {
    loop {
        let found = storage.versions.read(pointer, value);
        let found = found.map_err(|error| EngineError::Io(Failure::new(error)))?;
        let Some(flags) = found else {
            let what = format!("a version at {pointer} is gone that snapshot {snapshot} may see");
            return Err(storage.poison.broken(what));
        };
        let cell = Cell { flags, key: &[], value };
        let is_versioned = cell.is_versioned();
        match visible(&cell, snapshot) {
            Visible::Nothing => return Ok(false),
            Visible::Older(next) => pointer = next,
            Visible::Row(_) => {
                if is_versioned {
                    value.truncate(value.len() - VERSION_BYTES);
                }
                return Ok(true);
            }
        }
    }
}
