//! The system calls of each flush method, as one pure table.
//!
//! Invariant: a row names the system calls that InnoDB makes under the method of that name. Where
//! InnoDB takes for granted that a device keeps what it has taken, the row has two forms: the safe
//! one, which is the default, and the trusting one, which is InnoDB's own and loses data on a
//! device whose cache does not survive a loss of power.
//! It opens and syncs nothing itself.
//!
//! | method | data, doublewrite | redo | the trusting form |
//! |---|---|---|---|
//! | `fsync` | cached, synced | cached, synced | the same |
//! | `O_DSYNC` | cached, synced | cached, written through | the same |
//! | `O_DIRECT` | direct, synced | cached, synced | no sync of doublewrite |
//! | `O_DIRECT_NO_FSYNC` | direct, written through | cached, synced | nothing written through |
//! | `ALL_O_DIRECT` | direct, synced | direct, written through | redo not written through (1) |
//!
//! Cached is through the page cache, direct around it. What is written through is not synced.
//! (1) And data only after doublewrite batches, so never with doublewrite off.
//! Under every method a file is synced after it has grown.

use super::{FlushMethod, Settings};

/// When a file is synced, besides after it has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncRule {
    /// After each batch of writes: for redo, each commit group.
    EachBatch,
    /// After each batch that went through the doublewrite files.
    EachDoublewriteBatch,
    /// Only after it has grown.
    GrowthOnly,
}

/// How one kind of file is opened, written and synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FilePlan {
    /// Around the page cache (O_DIRECT).
    pub direct: bool,
    /// Each write is durable when it returns (O_DSYNC).
    pub write_through: bool,
    /// When it is synced.
    pub sync: SyncRule,
}

/// What a flush method means for every kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlushPlan {
    /// The data files. The doublewrite files are on the same disk: `direct` is the same for both.
    pub data: FilePlan,
    /// The doublewrite files.
    pub doublewrite: FilePlan,
    /// The redo files.
    pub redo: FilePlan,
}

impl FlushMethod {
    /// Its plan; `trust_device_cache` takes InnoDB's own form where that trusts the device.
    pub const fn plan(self, trust_device_cache: bool) -> FlushPlan {
        use SyncRule::{EachBatch, EachDoublewriteBatch, GrowthOnly};
        let (cached, direct) = (file(false, false, EachBatch), file(true, false, EachBatch));
        match (self, trust_device_cache) {
            (Self::Fsync, _) => plan(cached, cached, cached),
            (Self::Dsync, _) => plan(cached, cached, file(false, true, GrowthOnly)),
            (Self::Direct, false) => plan(direct, direct, cached),
            (Self::Direct, true) => plan(direct, file(true, false, GrowthOnly), cached),
            (Self::DirectNoFsync, trusting) => {
                let unsynced = file(true, !trusting, GrowthOnly);
                plan(unsynced, unsynced, cached)
            }
            (Self::AllDirect, false) => {
                // A direct write waits for the device anyway: one call instead of two.
                plan(direct, direct, file(true, true, GrowthOnly))
            }
            (Self::AllDirect, true) => {
                let data = file(true, false, EachDoublewriteBatch);
                plan(data, direct, file(true, false, GrowthOnly))
            }
        }
    }
}

impl Settings {
    /// How each kind of file is opened, written and synced.
    #[must_use]
    pub const fn flush_plan(&self) -> FlushPlan {
        self.flush_method.plan(self.trust_device_cache)
    }
}

const fn file(direct: bool, write_through: bool, sync: SyncRule) -> FilePlan {
    FilePlan { direct, write_through, sync }
}

const fn plan(data: FilePlan, doublewrite: FilePlan, redo: FilePlan) -> FlushPlan {
    FlushPlan { data, doublewrite, redo }
}

#[cfg(test)]
mod tests {
    use super::{FlushMethod, FlushPlan, SyncRule};

    fn files(plan: FlushPlan) -> [super::FilePlan; 3] {
        [plan.data, plan.doublewrite, plan.redo]
    }

    #[test]
    fn the_safe_form_leaves_nothing_to_a_cache() {
        for method in FlushMethod::ALL.iter().copied() {
            for file in files(method.plan(false)) {
                let synced = file.sync == SyncRule::EachBatch;
                assert!(synced != file.write_through, "{method}: {file:?}");
            }
        }
    }

    #[test]
    fn trust_changes_no_more_than_what_is_synced() {
        for method in FlushMethod::ALL.iter().copied() {
            let direct = |trusting| files(method.plan(trusting)).map(|file| file.direct);
            assert_eq!(direct(true), direct(false), "{method}");
            let is_same = method.plan(true) == method.plan(false);
            assert_eq!(is_same, matches!(method, FlushMethod::Fsync | FlushMethod::Dsync));
        }
    }
}
