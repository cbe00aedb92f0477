//! Processes that end while the machine goes on, and a power cut later.
//!
//! What a process wrote stays in the page cache: the next one reads it, whether it is durable or
//! not. So a store that believes what it finds must make it durable before it builds on it. After a
//! restart the store must hold what it held; after a power cut during the restart, what was
//! acknowledged before; after one behind it, what the restarted store held and what was
//! acknowledged since.

use std::sync::Arc;

use iostrata_io::disk::{Ending, TraceDisk};

use crate::common::chance::Chance;
use crate::common::model::History;
use crate::common::record::Recording;
use crate::common::store::Store;
use crate::common::sweep::{Crash, Sweep};

/// Power cuts of each life, and of each restart on average.
const CUTS: usize = 3;
pub const IMAGES: f64 = CUTS as f64 * 1.5;

/// What a process leaves to the next one.
pub struct Left {
    pub disk: TraceDisk,
    pub history: History,
    /// How many of the changes were acknowledged.
    pub needed: usize,
}

/// What a restarted process did.
pub struct Life {
    before: History,
    needed: usize,
    /// The point at which it was open, and the changes that it held.
    opened: usize,
    count: usize,
    disk: TraceDisk,
    after: History,
}

impl Life {
    /// What must be there after a point, and of which history.
    fn needed(&self, point: usize) -> (&History, usize) {
        if point < self.opened {
            return (&self.before, self.needed);
        }
        let acknowledged = self.after.needed(&self.disk.acknowledged(point));
        (&self.after, acknowledged.max(self.count))
    }
}

impl<S: Store> Sweep<'_, S> {
    /// Ends the process at a crash's point; once or twice goes on as the next one, which ends so,
    /// too; cuts the power at points of each. The number of images that were judged.
    pub fn restarts(
        &self,
        recording: &Recording,
        crash: Crash,
        ending: Ending,
    ) -> Result<usize, String> {
        let mut chance = Chance::new(crash.seed ^ (crash.point as u64).rotate_left(32));
        let (disk, mut point) = (&recording.disk, crash.point);
        if ending == Ending::SyncFailed || chance.percent(50) {
            point = disk.next_sync(point).unwrap_or(point);
        }
        let needed = recording.history.needed(&disk.acknowledged(point));
        let history = recording.history.clone();
        let mut left = Left { disk: disk.restarted(point, crash.seed, ending), history, needed };
        let lives = chance.within(1, 2);
        for number in 1..=lives {
            let judged = self.live(left, crash, &mut chance);
            let life = judged.map_err(|what| format!("restart {number} of {lives}: {what}"))?;
            let mut end = chance.below(life.disk.points());
            if ending == Ending::SyncFailed || chance.percent(50) {
                end = life.disk.next_sync(end).unwrap_or(end);
            }
            let (history, needed) = life.needed(end);
            let disk = life.disk.restarted(end, chance.next() >> 16, ending);
            left = Left { disk, history: history.clone(), needed };
        }
        Ok(lives * CUTS)
    }

    /// Opens what was left, commits a little, and judges what power cuts leave of that.
    pub fn live(&self, left: Left, crash: Crash, chance: &mut Chance) -> Result<Life, String> {
        let Left { disk, history: before, needed } = left;
        let turn = |on| self.opening.iter().for_each(|switch| switch.turn(on));
        let mut opened = 0;
        let open = || {
            turn(true);
            let store = S::open(Arc::new(disk.clone()), self.how);
            turn(false);
            opened = disk.points() - 1;
            store
        };
        let (store, count) = self.right(open, &before, needed, "open")?;
        let batches = chance.within(1, 12);
        let (held, seed) = (before.upto(count), chance.next());
        let after = (self.go_on)(&store, &disk, held, self.shape, seed, batches)?;
        drop(store);
        let last = disk.points() - 1;
        let life = Life { before, needed, opened, count, disk, after };
        for from in [0, life.opened, life.opened] {
            let point = chance.within(from, if from == 0 { life.opened } else { last });
            let seed = *chance.pick(&[0, 0, 1, crash.seed.wrapping_add(7)]);
            let (history, needed) = life.needed(point);
            let image = life.disk.image(point, seed, crash.tear);
            let judged = self.judge(image, history, needed, seed & 2 == 0);
            judged.map_err(|what| {
                let opened = life.opened;
                format!("power cut at {point} (open at {opened}), seed {seed}: {what}")
            })?;
        }
        Ok(life)
    }
}
