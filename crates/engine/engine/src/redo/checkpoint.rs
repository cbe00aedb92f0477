//! Checkpoints, and what they set free.
//!
//! Invariant: a segment is free only when a durable checkpoint lies behind its last byte. The
//! checkpoint never goes back: it is published while the ledger is held.

use std::sync::atomic::Ordering;

use iostrata_innodb::flush::AgeLimits;
use iostrata_innodb::{Counter, Lsn};

use crate::error::EngineError;
use crate::redo::control::{Control, Ledger};
use crate::redo::layout::Plan;
use crate::redo::open::{make_segments, remove};
use crate::redo::segments::{Header, Segments};
use crate::redo::{Redo, RedoSync};
use crate::sync::locked;

impl Redo {
    /// Records that nothing before `lsn` is needed any more; durable when it returns. An older LSN
    /// than the last changes nothing, nor does one that is not clean at the same LSN: it may come
    /// late, when the log was closed already. `lsn` must be a border of frames; `clean` means that
    /// no records follow it.
    pub fn take_checkpoint(&self, lsn: Lsn, clean: bool) -> Result<(), EngineError> {
        assert!(lsn <= self.lsn(), "a checkpoint at {lsn} lies beyond the log");
        self.make_durable(lsn)?;
        let lsn = lsn.0;
        let mut ledger = locked(&self.ledger);
        let newest = ledger.newest;
        let is_closed = newest.clean && !newest.opened;
        let says_nothing_new = lsn == newest.checkpoint && (!clean || is_closed);
        if lsn < newest.checkpoint || says_nothing_new {
            return self.poison.check();
        }
        self.write_ledger(&mut ledger, lsn, (clean, !clean))
    }

    /// The engine whose log it is; 0 when that is not known.
    pub fn identity(&self) -> u64 {
        locked(&self.ledger).newest.identity
    }

    /// Sets whose log it is. It is kept with the next checkpoint, or when the log is started.
    pub fn set_identity(&self, identity: u64) {
        locked(&self.ledger).newest.identity = identity;
    }

    /// Writes down the checkpoint and the present geometry, then frees what lies before.
    pub(crate) fn write_ledger(
        &self,
        ledger: &mut Ledger,
        lsn: u64,
        (clean, opened): (bool, bool),
    ) -> Result<(), EngineError> {
        let next = Control {
            checkpoint: lsn,
            incarnation: ledger.incarnation_at(lsn),
            geometry: locked(&self.segments).plan.geometry,
            clean,
            opened,
            ..ledger.newest
        };
        self.write_slot(ledger, next)?;
        self.free_before(lsn);
        Ok(())
    }

    /// Writes the content of the newest slot once more, which was found and may not be durable, and
    /// that the log is opened: what is made from now on is not durable because it was closed clean.
    pub(crate) fn confirm_ledger(&self) -> Result<(), EngineError> {
        let mut ledger = locked(&self.ledger);
        let next = Control { opened: true, ..ledger.newest };
        self.write_slot(&mut ledger, next)
    }

    fn write_slot(&self, ledger: &mut Ledger, next: Control) -> Result<(), EngineError> {
        self.poison.check()?;
        let (sync, block_bytes) = {
            let writer = locked(&self.writer);
            (writer.sync, writer.block_bytes as u32)
        };
        // Without syncs nothing is known to be durable.
        let durable = if sync == RedoSync::None { next.checkpoint } else { self.durable().0 };
        let written = ledger.write(Control { durable, block_bytes, ..next }, sync);
        written.map_err(|cause| self.fail("write the control file of the redo log", cause))?;
        if !matches!(sync, RedoSync::WriteThrough | RedoSync::None) {
            self.counts.add(Counter::OsLogFsyncs, 1);
        }
        Ok(())
    }

    /// Frees what lies before a checkpoint that is durable, publishes it, and removes what has no
    /// use any more. The room comes first: a thread that reads the checkpoint may use what it
    /// freed.
    pub(crate) fn free_before(&self, checkpoint: u64) {
        let surplus = {
            let mut segments = locked(&self.segments);
            segments.free_before(checkpoint);
            self.shed(&mut segments, checkpoint);
            self.checkpoint.store(checkpoint, Ordering::Release);
            std::mem::take(&mut segments.surplus)
        };
        if !surplus.is_empty() {
            let left = remove(&self.disk, surplus);
            locked(&self.segments).surplus.extend(left);
        }
    }
}

impl Redo {
    /// Changes the capacity while the log is used. Growing makes the new segments first; shrinking
    /// lowers the limits at once and removes segments as checkpoints free them.
    ///
    /// # Errors
    /// No space, a setting out of range, and errors of the disk while segments are made change
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
                    // Less room is published before it goes, more once it is there.
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

    /// Follows the plan and publishes the room that is left. An admitted thread may still append
    /// the reserve, even when the capacity has just become smaller than the age.
    pub(crate) fn shed(&self, segments: &mut Segments, checkpoint: u64) {
        let room_bytes = segments.plan.room_bytes();
        let reserve = AgeLimits::of(room_bytes).reserve_bytes();
        segments.shed((checkpoint + room_bytes).max(self.lsn().0 + reserve));
        self.room_end.store(segments.room_end(), Ordering::Release);
    }
}
