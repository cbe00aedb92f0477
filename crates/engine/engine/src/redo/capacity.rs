//! Changing the capacity while the log is used.
//!
//! Invariant: a new segment is used only when it and its name are durable; one is removed only when
//! nothing in it is needed. A failure before the change changes nothing.

use std::sync::atomic::Ordering;

use iostrata_innodb::flush::AgeLimits;

use crate::error::EngineError;
use crate::redo::create::{make_segments, remove};
use crate::redo::geometry::Plan;
use crate::redo::redo::Redo;
use crate::redo::segments::{Header, Segments};
use crate::sync::locked;

impl Redo {
    /// Changes the capacity while the log is used. Growing makes the new segments first; shrinking
    /// lowers the limits at once and removes segments as checkpoints free them.
    ///
    /// # Errors
    /// No space, a setting out of range, and what the disk says while segments are made change
    /// nothing.
    pub fn set_capacity(&self, capacity_bytes: u64) -> Result<(), EngineError> {
        // One change at a time; appends, commits and checkpoints go on.
        let _changing = locked(&self.changing);
        self.poison.check()?;
        let old = locked(&self.segments).plan;
        let plan = Plan::keeping(capacity_bytes, old.geometry)?;
        if plan == old {
            return Ok(());
        }
        self.adopt(plan)?;
        let mut ledger = locked(&self.ledger);
        let (lsn, clean) = (ledger.newest.checkpoint, ledger.newest.clean);
        self.write_ledger(&mut ledger, lsn, (clean, true))
    }

    /// Whether another capacity leaves less room than there is now.
    pub fn would_shrink(&self, capacity_bytes: u64) -> Result<bool, EngineError> {
        let old = locked(&self.segments).plan;
        let plan = Plan::keeping(capacity_bytes, old.geometry)?;
        Ok(plan.room_bytes() < old.room_bytes())
    }

    /// Makes what a plan needs and is not there, then follows the plan.
    pub(crate) fn adopt(&self, plan: Plan) -> Result<(), EngineError> {
        let sync = locked(&self.writer).sync;
        let unused = Header { first: 0, sequence: 0, geometry: plan.geometry };
        let mut made = Vec::new();
        loop {
            let (missing, number) = {
                let mut segments = locked(&self.segments);
                let there = segments.count_of(plan.geometry) + made.len() as u64;
                let missing = plan.segments.saturating_sub(there);
                if missing == 0 {
                    segments.plan = plan;
                    segments.spare.extend(made);
                    // Less room is told before it goes, more once it is there.
                    self.room_bytes.fetch_min(plan.room_bytes(), Ordering::AcqRel);
                    self.shed(&mut segments, self.checkpoint.load(Ordering::Acquire));
                    self.room_bytes.store(plan.room_bytes(), Ordering::Release);
                    return Ok(());
                }
                let number = segments.next_number;
                segments.next_number += missing;
                (missing, number)
            };
            // Meanwhile the old plan is followed, and may do away with some: so count again.
            let headers = vec![unused; missing as usize];
            match make_segments(&self.disk, plan.geometry, number, &headers, sync) {
                Ok(more) => made.extend(more),
                Err(error) => {
                    let left = remove(&self.disk, made);
                    locked(&self.segments).surplus.extend(left);
                    return Err(error);
                }
            }
        }
    }

    /// Follows the plan and publishes the room that is left. Whoever was admitted may still append
    /// the reserve, even when the capacity has just become smaller than the age.
    pub(crate) fn shed(&self, segments: &mut Segments, checkpoint: u64) {
        let room_bytes = segments.plan.room_bytes();
        let reserve = AgeLimits::of(room_bytes).reserve_bytes();
        segments.shed((checkpoint + room_bytes).max(self.lsn().0 + reserve));
        self.room_end.store(segments.room_end(), Ordering::Release);
    }
}
