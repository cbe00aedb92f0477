//! What a target reports about itself.

use iostrata_run::{TransactionDurability, TransactionTarget};

/// How a table is kept, and how large it is. Absent is what the target does not report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// The storage engine of a server that has several.
    pub storage_engine: Option<String>,
    /// Bytes of rows and indexes together: of its file, or of all files where tables share them.
    pub table_bytes: Option<u64>,
    /// Bytes of its indexes without that of the key where rows are kept by it. Servers may only
    /// estimate it, and late.
    pub index_bytes: Option<u64>,
}

/// What a target reports about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetFacts {
    /// Without secrets: as the user named it.
    pub name: String,
    /// `engine`, `mysql`, `mariadb`, `percona`, `tidb`, or what an unknown one calls itself.
    pub flavour: String,
    /// As it calls its version itself.
    pub version: String,
    /// What a commit survives.
    pub durability: TransactionDurability,
    /// Every setting, by name, in order.
    pub settings: Vec<(String, String)>,
}

impl TargetFacts {
    /// Which target it is, with those of its settings that are worth keeping.
    pub fn identity(&self, is_kept: impl Fn(&str) -> bool) -> TransactionTarget {
        let Self { name, flavour, version, settings, .. } = self.clone();
        let settings = settings.into_iter().filter(|(name, _)| is_kept(name)).collect();
        TransactionTarget { name, flavour, version, settings }
    }
}
