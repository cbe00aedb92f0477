//! Which volumes stand at the same time.
//!
//! Invariant: the volumes of a batch fit into the place together; the points of a batch are
//! measured interleaved, batches one after the other.

use iostrata_linux::host::{Root, describe_path};

use super::layout::VolumeLayout;
use super::{StudyTask, space_bytes};
use crate::StudyError;

/// Share of the place's free bytes that volumes may take.
const SPACE_SHARE: f64 = 0.8;

/// Volumes that fit into the place at the same time are measured interleaved; others one batch
/// after the other. A named device holds one volume at a time.
pub(super) fn batches(
    layouts: &[VolumeLayout],
    task: &StudyTask<'_>,
) -> Result<Vec<Vec<VolumeLayout>>, StudyError> {
    if task.place.device.is_some() {
        return Ok(layouts.iter().map(|layout| vec![layout.clone()]).collect());
    }
    let free = describe_path(&Root::system(), &task.place.dir)?.free_bytes.unwrap_or(u64::MAX);
    let room = (free as f64 * SPACE_SHARE) as u64;
    let mut batches: Vec<Vec<VolumeLayout>> = Vec::new();
    let mut taken = u64::MAX;
    for layout in layouts {
        let bytes = space_bytes(std::slice::from_ref(layout));
        if bytes > room {
            return Err(StudyError::NoRoom {
                dir: task.place.dir.display().to_string(),
                needed_bytes: bytes,
                room_bytes: room,
            });
        }
        match batches.last_mut() {
            Some(batch) if taken.saturating_add(bytes) <= room => {
                batch.push(layout.clone());
                taken += bytes;
            }
            _ => {
                batches.push(vec![layout.clone()]);
                taken = bytes;
            }
        }
    }
    Ok(batches)
}
